/* The options of a request.  See request.h. */
#include "request.h"

#include <stddef.h>

static const shoal_option function_rows[] = {
    {"exec", 'e', SHOAL_OPTION_TEXT, offsetof(run_function, exec), "COMMAND",
     .help = "run this command line instead of a module: it reads .npy arrays of rows on standard input and writes "
             "one .npy array for each on standard output"},
    {"send", 0, SHOAL_OPTION_LIST, offsetof(run_function, send), "FILE",
     .help =
         "--exec: a file that the command needs on workers, besides the files it names; may be given several times"},
    {0},
};

/* In the order of SHOAL_HEADER_AUTO, ... and SHOAL_MISSING_REFUSE, ... */
static const char *const header_choices[] = {"auto", "yes", "no", NULL};
static const char *const missing_choices[] = {"refuse", "mean", "drop", NULL};

/* The first row is not one of run_rows_options. */
static const shoal_option data_rows[] = {
    {"missing", 0, SHOAL_OPTION_CHOICE, offsetof(shoal_data_options, missing), "HOW",
     .help = "what to do about missing values (empty cells, NA, N/A, null, ? and NaN): refuse the data, fill in the "
             "column's mean, or drop the rows",
     .fallback = "refuse", .choices = missing_choices},
    {"rows", 0, SHOAL_OPTION_COUNT, offsetof(shoal_data_options, rows), "N", .help = "raw files: number of rows",
     .default_text = "as many as the file holds"},
    {"cols", 0, SHOAL_OPTION_COUNT, offsetof(shoal_data_options, columns), "N", .help = "raw files: number of columns",
     .least = 1},
    {"type", 0, SHOAL_OPTION_TEXT, offsetof(shoal_data_options, type), "TYPE",
     .help = "raw files: type of the values, as numpy names it: float32, uint8, i4; or fvecs, bvecs, ivecs for files "
             "as FAISS writes them"},
    {"header", 0, SHOAL_OPTION_CHOICE, offsetof(shoal_data_options, header), "WHEN",
     .help = "text files: whether the first line holds column names; auto compares it with the rows below",
     .fallback = "auto", .choices = header_choices},
    {"columns", 0, SHOAL_OPTION_TEXT, offsetof(shoal_data_options, keep_columns), "LIST",
     .help = "read only these columns, in this order: names, numbers from 1, or from -1 backwards, and ranges such as "
             "3-7, separated by commas"},
    {"drop-column", 0, SHOAL_OPTION_TEXT, offsetof(shoal_data_options, drop_columns), "LIST",
     .help = "leave out these columns, such as an id or a column of text; a list as for --columns"},
    {"skip-broken", 0, SHOAL_OPTION_FLAG, offsetof(shoal_data_options, skip_broken),
     .help = "TFRecord files: leave out damaged records, and what can't be read behind one, instead of refusing the "
             "file; a line tells how many and where"},
    {"memory", 0, SHOAL_OPTION_BYTES, offsetof(shoal_data_options, memory), "BYTES",
     .help = "memory limit for decoded, fetched or generated rows, such as 500MB or 2GiB; above it decoded and fetched "
             "rows go to a temporary file, and generated rows are made again each round, as is what frozen layers give",
     .default_text = "half of the free memory"},
    {0},
};

static const shoal_option place_rows[] = {
    {"threads", 't', SHOAL_OPTION_COUNT, offsetof(run_place, threads), "N",
     .help = "number of threads; never changes the result", .least = 1, .most = SHOAL_THREADS_MOST,
     .default_text = "all cores this process may use"},
    {"kernel", 0, SHOAL_OPTION_TEXT, offsetof(run_place, kernel), "NAME",
     .help = "processor instructions to use: auto, portable, avx2, avx512 or vnni; list: only print what is here, "
             "devices too; never changes the result",
     .fallback = "auto"},
    {"device", 0, SHOAL_OPTION_TEXT, offsetof(run_place, device), "NAME",
     .help = "what to compute on: cpu; cuda or cuda:N, a GPU; auto: the first GPU there is, for kmeans with data that "
             "pay for it, otherwise the CPU; never changes the result",
     .fallback = "auto"},
    {"grain", 0, SHOAL_OPTION_COUNT, offsetof(run_place, rows_per_grain), "ROWS",
     .help = "rows in one unit of work; may change the last bits of models trained by gradients, and of nothing else",
     .least = 1, .default_text = "chosen from the data"},
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
     .help = "ranks: every N rounds, compare a hash of the model on all ranks and stop if one differs; 0: never",
     .fallback = "16"},
    {"checkpoint", 0, SHOAL_OPTION_REAL, offsetof(run_ranks_options, checkpoint), "SECONDS",
     .help = "write a checkpoint every SECONDS, from which --resume continues after a crash", .default_text = "never"},
    {"checkpoint-file", 0, SHOAL_OPTION_TEXT, offsetof(run_ranks_options, file), "FILE|URL",
     .help = "where the checkpoint goes: a file, or a blob of a store; it is removed when the run is done",
     .default_text = "LEARNER.checkpoint"},
    {"resume", 0, SHOAL_OPTION_FLAG, offsetof(run_ranks_options, resume), NULL,
     .help = "continue from the checkpoint, if there is one, with any number of threads or ranks; the result has the "
             "same bits"},
    {0},
};
static const shoal_option trace_rows[] = {
    {"trace", 0, SHOAL_OPTION_TEXT, offsetof(run_trace_options, trace), "FILE.jsonl",
     .help = "write one line of JSON for each round: round, phase, step, objective, change, seconds"},
    {"tensorboard", 0, SHOAL_OPTION_TEXT, offsetof(run_trace_options, tensorboard), "DIR",
     .help = "write objective, change and seconds of each round, while it runs, as an event file in this folder, "
             "which is created if need be; tensorboard --logdir DIR shows them"},
    {0},
};
static const shoal_option plot_rows[] = {
    {"plot-columns", 0, SHOAL_OPTION_TEXT, offsetof(run_plot_settings, columns), "A,B",
     .help = "the two columns that are the axes of --plot: names, or numbers from 1 among the columns that are used",
     .default_text = "both where there are two, otherwise the first two principal components"},
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
         "user, and the job is removed from it when it is done; with --deadline or --budget N may be a range, 1..8"},
    {"deadline", 0, SHOAL_OPTION_TEXT, offsetof(run_workers_options, hold_deadline), "TIME",
     .help = "hold the job to end within TIME from now, such as 90m, with as few workers as 95% of cases need: it "
             "starts and ends workers while the job runs, up to those of --workers"},
    {"budget", 0, SHOAL_OPTION_TEXT, offsetof(run_workers_options, budget), "MONEY",
     .help = "hold the job to cost at most MONEY, such as 5USD, at --price: before more is spent it stops, and can be "
             "resumed"},
    {"price", 0, SHOAL_OPTION_TEXT, offsetof(run_workers_options, price), "MONEY",
     .help = "what an hour of one worker costs: 0.03USD"},
    {"or-stop", 0, SHOAL_OPTION_FLAG, offsetof(run_workers_options, or_stop), NULL,
     .help = "stop the job, which can be resumed, as soon as --deadline or --budget can't be met (default: say so and "
             "go on with the best that can be done)"},
    {"held-picture", 0, SHOAL_OPTION_TEXT, offsetof(run_workers_options, held_picture), "FILE",
     .help = "draw how the job was held when it has ended: workers, the foretold end beside the real one, and money: "
             ".svg or .png"},
    {"ssh", 0, SHOAL_OPTION_TEXT, offsetof(run_workers_options, ssh), "COMMAND",
     .help = "command that ssh: calls instead of ssh, such as 'ssh -F FILE'", .default_text = "$SHOAL_SSH, or ssh"},
    {"worker-memory", 0, SHOAL_OPTION_BYTES, offsetof(run_workers_options, worker_memory), "BYTES",
     .help = "memory that each worker may use, such as 4GiB", .least = RUN_WORKER_MEMORY_LEAST,
     .default_text = "three quarters of its machine's memory, shared among the workers there"},
    {"detach", 0, SHOAL_OPTION_FLAG, offsetof(run_workers_options, detach), NULL,
     .help = "print the job's name and return; its workers keep running, and outputs are written when it is done"},
    {"job", 0, SHOAL_OPTION_TEXT, offsetof(run_workers_options, name), "NAME", .help = "start of the job's name",
     .default_text = "the learner's name"},
    {"slices", 0, SHOAL_OPTION_COUNT, offsetof(run_workers_options, slices), "N",
     .help = "number of parts that the rows are divided into; never changes the result", .least = 1,
     .most = SHOAL_JOB_SLICES_MOST, .default_text = "chosen from the data and the workers"},
    {"reduce", 0, SHOAL_OPTION_TEXT, offsetof(run_workers_options, reduce), "SHAPE",
     .help = "how partial results are merged: flat, two-level, tree:F in groups of F, ranged[:R] in R parts of the "
             "sums that different workers merge, or auto; never changes the result",
     .default_text = "auto"},
    {"roles", 0, SHOAL_OPTION_TEXT, offsetof(run_workers_options, roles), "ROLES",
     .help = "all: every worker maps and reduces; split: N workers map, the square root of N more reduce, and one more "
             "does the last reduction",
     .default_text = "all"},
    {"lease", 0, SHOAL_OPTION_REAL, offsetof(run_workers_options, lease), "SECONDS",
     .help = "a worker that is silent for SECONDS counts as dead", .least = SHOAL_JOB_LEASE_LEAST,
     .most = SHOAL_JOB_LEASE_MOST, .default_text = "chosen from the store"},
    {"keep-rounds", 0, SHOAL_OPTION_COUNT, offsetof(run_workers_options, keep_rounds), "N",
     .help = "number of finished rounds to keep in the store", .least = 1, .most = SHOAL_JOB_KEEP_ROUNDS_MOST,
     .default_text = "as few as are safe"},
    {"patience", 0, SHOAL_OPTION_REAL, offsetof(run_workers_options, patience), "SECONDS",
     .help = "give up after SECONDS without any worker or without the store; the job can be resumed later",
     .least = SHOAL_JOB_PATIENCE_LEAST, .most = SHOAL_JOB_PATIENCE_MOST,
     .default_text = "60 with --workers, a day with slurm:, an hour without --workers"},
    {0},
};
static const shoal_option foreign_rows[] = {
    {"write-outputs", 0, SHOAL_OPTION_FLAG, offsetof(run_workers_options, write_outputs), NULL,
     .help = "write the files that the job names although it was submitted by another user or on another machine"},
    {"data-root", 0, SHOAL_OPTION_TEXT, offsetof(run_workers_options, data_root), "FOLDER|URL,...",
     .help = "folders and store URLs below which a job that another user submitted may read rows",
     .default_text = "none"},
    {"allow-code", 0, SHOAL_OPTION_TEXT, offsetof(run_workers_options, allow_code), "SHA256,...",
     .help = "run code that a job of another user brings if all of it has one of these hashes"},
    {0},
};
const shoal_option *const run_function_options = function_rows, *const run_data_options = data_rows,
                          *const run_rows_options = data_rows + 1, *const run_place_options = place_rows,
                          *const run_ranks_options_table = ranks_rows, *const run_engine_options = engine_rows,
                          *const run_trace_options_table = trace_rows, *const run_plot_options = plot_rows,
                          *const run_workers_options_table = workers_rows, *const run_foreign_options = foreign_rows;
