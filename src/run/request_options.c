/* The options of a request.  See request.h. */
#include "request.h"

#include <stddef.h>

static const shoal_option function_rows[] = {
    {"exec", 'e', SHOAL_OPTION_TEXT, offsetof(run_function, exec), "COMMAND",
     .help = "run this command line instead of a module: it reads .npy arrays of rows on standard input and writes "
             "one .npy array for each on standard output"},
    {"send", 0, SHOAL_OPTION_LIST, offsetof(run_function, send), "FILE",
     .help = "--exec: a file that the command needs on workers, besides those its words name; may be given again"},
    {0},
};

/* In the order of SHOAL_HEADER_AUTO, ... and SHOAL_MISSING_REFUSE, ... */
static const char *const header_choices[] = {"auto", "yes", "no", NULL};
static const char *const missing_choices[] = {"refuse", "mean", "drop", NULL};

static const shoal_option data_rows[] = {
    {"rows", 0, SHOAL_OPTION_COUNT, offsetof(shoal_data_options, rows), "N",
     .help = "raw files: how many rows there are; as many as the file holds when left out"},
    {"cols", 0, SHOAL_OPTION_COUNT, offsetof(shoal_data_options, columns), "N",
     .help = "raw files: how many columns a row has", .least = 1},
    {"type", 0, SHOAL_OPTION_TEXT, offsetof(shoal_data_options, type), "TYPE",
     .help = "raw files: the type of a value, as numpy names it: float32, uint8, i4"},
    {"header", 0, SHOAL_OPTION_CHOICE, offsetof(shoal_data_options, header), "WHEN",
     .help = "text files: whether the first line holds the names of columns: yes, no, or auto, which compares it with "
             "the rows below",
     .fallback = "auto", .choices = header_choices},
    {"columns", 0, SHOAL_OPTION_TEXT, offsetof(shoal_data_options, keep_columns), "LIST",
     .help = "read only these columns, in this order: names, numbers from 1, or from -1 backwards, and ranges such as "
             "3-7, separated by commas"},
    {"drop-column", 0, SHOAL_OPTION_TEXT, offsetof(shoal_data_options, drop_columns), "LIST",
     .help = "leave these columns out, such as one of text; a list as for --columns"},
    {"missing", 0, SHOAL_OPTION_CHOICE, offsetof(shoal_data_options, missing), "HOW",
     .help = "missing values (empty cells, NA, N/A, null, ? and NaN): refuse the data, fill in the mean of the column, "
             "or drop such rows",
     .fallback = "refuse", .choices = missing_choices},
    {"memory", 0, SHOAL_OPTION_BYTES, offsetof(shoal_data_options, memory), "BYTES",
     .help = "bytes that decoded, fetched or generated rows may take in memory, such as 500MB or 2GiB; above that "
             "decoded and fetched rows go to a temporary file and generated rows are made again each round; half of "
             "what is free when left out"},
    {0},
};

static const shoal_option place_rows[] = {
    {"threads", 't', SHOAL_OPTION_COUNT, offsetof(run_place, threads), "N",
     .help = "threads to compute with; all cores this process may use when left out; never changes the result",
     .least = 1, .most = SHOAL_THREADS_MOST},
    {"kernel", 0, SHOAL_OPTION_TEXT, offsetof(run_place, kernel), "NAME",
     .help = "instructions to compute with: auto, portable, avx2, avx512 or vnni; never changes the result",
     .fallback = "auto"},
    {"grain", 0, SHOAL_OPTION_COUNT, offsetof(run_place, rows_per_grain), "ROWS",
     .help = "rows of one unit of work; chosen from the data when left out; may change the last bits of what is "
             "learned by gradients, and of nothing else",
     .least = 1},
    {0},
};

static const char *const engines[] = {"auto", "threads", "mpi", NULL};
static const char engine_help[] =
    "auto: ranks when mpirun or srun started this, otherwise threads; threads: this process alone; mpi: ranks; never "
    "changes the result";

#define ENGINE_ROW                                                                                                     \
    {                                                                                                                  \
        "engine", 0, SHOAL_OPTION_CHOICE, offsetof(run_ranks_options, engine), "NAME",                                 \
            .help = engine_help, .fallback = "auto", .choices = engines                                                \
    }

static const shoal_option engine_rows[] = {ENGINE_ROW, {0}};
static const shoal_option ranks_rows[] = {
    ENGINE_ROW,
    {"verify", 0, SHOAL_OPTION_COUNT, offsetof(run_ranks_options, verify), "N",
     .help = "ranks: compare the models that all have every N rounds, by a hash, and stop when one differs; 0: never",
     .fallback = "16"},
    {"checkpoint", 0, SHOAL_OPTION_REAL, offsetof(run_ranks_options, checkpoint), "SECONDS",
     .help =
         "keep the round that comes next every so many seconds, so that --resume can go on after a crash; 0: never"},
    {"checkpoint-file", 0, SHOAL_OPTION_TEXT, offsetof(run_ranks_options, file), "FILE|URL",
     .help = "where: a file, or a blob of a store; LEARNER.checkpoint when left out; gone when all is done"},
    {"resume", 0, SHOAL_OPTION_FLAG, offsetof(run_ranks_options, resume), NULL,
     .help = "go on with the checkpoint, with any number of threads or ranks, if there is one; the result has the "
             "same bits"},
    {0},
};
static const shoal_option trace_rows[] = {
    {"trace", 0, SHOAL_OPTION_TEXT, offsetof(run_trace_options, trace), "FILE.jsonl",
     .help = "write one line of JSON for each round: round, phase, step, objective, change, seconds"},
    {"tensorboard", 0, SHOAL_OPTION_TEXT, offsetof(run_trace_options, tensorboard), "DIR",
     .help = "write objective, change and seconds of each round, while it runs, to a file of events in this folder, "
             "which is made: tensorboard --logdir DIR shows them"},
    {0},
};
static const shoal_option workers_rows[] = {
    {"store", 0, SHOAL_OPTION_TEXT, offsetof(run_workers_options, store), "URL",
     .help = "run on workers that meet in this store: a folder, az://ACCOUNT/CONTAINER or s3://BUCKET; without "
             "--workers it waits for workers that are started elsewhere"},
    {"workers", 0, SHOAL_OPTION_LIST, offsetof(run_workers_options, workers), "WHERE",
     .help =
         "start workers; may be given several times: local:N processes on this machine, ssh:HOST[:N],... on machines "
         "that ssh reaches, where nothing needs to be installed, slurm:N[?partition=P&time=MINUTES] on a cluster; each "
         "has its part of its machine's cores, or --threads of them; without --store they meet in a folder of this "
         "user, and the job is removed from it when it is done"},
    {"ssh", 0, SHOAL_OPTION_TEXT, offsetof(run_workers_options, ssh), "COMMAND",
     .help = "what ssh: calls instead of ssh, such as 'ssh -F FILE'; $SHOAL_SSH when left out"},
    {"worker-memory", 0, SHOAL_OPTION_BYTES, offsetof(run_workers_options, worker_memory), "BYTES",
     .help =
         "bytes that each worker may use, such as 4GiB; its part of three quarters of its machine's memory when left "
         "out",
     .least = RUN_WORKER_MEMORY_LEAST},
    {"detach", 0, SHOAL_OPTION_FLAG, offsetof(run_workers_options, detach), NULL,
     .help = "print the job's name and return; its workers go on, and outputs are written when it is done"},
    {"job", 0, SHOAL_OPTION_TEXT, offsetof(run_workers_options, name), "NAME",
     .help = "what the job's name starts with; the learner's name when left out"},
    {"slices", 0, SHOAL_OPTION_COUNT, offsetof(run_workers_options, slices), "N",
     .help = "parts that the rows are cut into; chosen from the data and the workers when left out; never changes the "
             "result",
     .least = 1, .most = SHOAL_JOB_SLICES_MOST},
    {"reduce", 0, SHOAL_OPTION_TEXT, offsetof(run_workers_options, reduce), "SHAPE",
     .help = "how partial results are merged: flat, two-level, tree:F in groups of F, or auto, which is meant when "
             "it is left out; never changes the result"},
    {"roles", 0, SHOAL_OPTION_TEXT, offsetof(run_workers_options, roles), "ROLES",
     .help = "all: every worker maps and reduces; split: of --workers N map, and beside them the square root of N "
             "reduce, and one reduces last; all when left out"},
    {"lease", 0, SHOAL_OPTION_REAL, offsetof(run_workers_options, lease), "SECONDS",
     .help = "after so long a silent worker counts as dead; chosen from the store when left out",
     .least = SHOAL_JOB_LEASE_LEAST, .most = SHOAL_JOB_LEASE_MOST},
    {"keep-rounds", 0, SHOAL_OPTION_COUNT, offsetof(run_workers_options, keep_rounds), "N",
     .help = "finished rounds that stay in the store; as few as are safe when left out", .least = 1,
     .most = SHOAL_JOB_KEEP_ROUNDS_MOST},
    {"patience", 0, SHOAL_OPTION_REAL, offsetof(run_workers_options, patience), "SECONDS",
     .help =
         "give up after so long without any worker or without the store; the job can go on later; 60 with --workers, "
         "a day with those of slurm:, which may have to wait, and an hour without any when left out",
     .least = SHOAL_JOB_PATIENCE_LEAST, .most = SHOAL_JOB_PATIENCE_MOST},
    {0},
};
static const shoal_option foreign_rows[] = {
    {"write-outputs", 0, SHOAL_OPTION_FLAG, offsetof(run_workers_options, write_outputs), NULL,
     .help = "write the files that the job names, although someone else submitted it, or this user on another machine"},
    {"data-root", 0, SHOAL_OPTION_TEXT, offsetof(run_workers_options, data_root), "FOLDER|URL,...",
     .help = "read rows of a job that someone else submitted only from files below these folders, and from stores "
             "below these URLs; none when left out"},
    {"allow-code", 0, SHOAL_OPTION_TEXT, offsetof(run_workers_options, allow_code), "SHA256,...",
     .help = "run a job that brings code, though someone else submitted it, if all it brings has one of these hashes"},
    {0},
};
const shoal_option *const run_function_options = function_rows, *const run_data_options = data_rows,
                          *const run_place_options = place_rows, *const run_ranks_options_table = ranks_rows,
                          *const run_engine_options = engine_rows, *const run_trace_options_table = trace_rows,
                          *const run_workers_options_table = workers_rows, *const run_foreign_options = foreign_rows;
