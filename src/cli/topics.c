/* `shoal help TOPIC`: what several verbs have in common.  The same texts are sections of the manual page shoal(1). */
#include "cli.h"

#include <string.h>

static const cli_note data_notes[] = {
    {NULL,
     "Each row is an example, each column a number. DATA is a file, - for standard input, a blob of a store "
     "(az://, s3://), or gen: to generate rows. The format is found from the content, not from the name. A file of a "
     "kind that is not read (Parquet, Excel, pickle, ...) is named for what it is."},
    {"shoal data info FILE", "print what is in it: format, rows, columns, types, names"},
    {"shoal data split DATA TRAIN TEST", "deal the rows out to a training and a test set"},
    {".npy, .npz", "numpy's arrays; the first dimension is the row"},
    {"text", "CSV, TSV, or numbers separated by spaces or semicolons; also compressed (gzip, xz, bzip2, zstd)"},
    {"HDF5, MATLAB", "also FILE:NAME, where a file (.npz, too) holds several arrays"},
    {"IDX", "the format of MNIST"},
    {"TFRecord", "records of TensorFlow: images with a class, or lists of numbers; the class is the target"},
    {".fvecs, .bvecs, .ivecs", "the format of FAISS; other names with --type fvecs"},
    {"svmlight", "lines of label index:value ..., read as dense rows; the label is the target"},
    {"raw values", "files without a header: --type float32 --cols 100"},
    {"gen:blobs?rows=1e6&cols=16", "generated rows, to try things out; also gen:uniform"},
    {NULL, "These options control what is read, in every command that reads DATA:"},
    {"--header yes|no|auto", "whether the first line of a text file names the columns; auto decides from the whole "
                             "table, and the summary says what it decided"},
    {"--columns LIST", "use these columns only, in this order: names, numbers from 1 (-1 is the last), ranges such as "
                       "3-7, separated by commas"},
    {"--drop-column LIST", "use all columns but these"},
    {"--missing refuse|mean|drop", "what to do with empty cells, NA, N/A, NaN, null and ?"},
    {NULL, "More: docs/data.md."},
    {NULL, NULL},
};

static const cli_note target_notes[] = {
    {NULL, "Classifiers (logistic, bayes) learn from rows whose class is known. The class is a column of DATA, or a "
           "file with one value for each row; it may be a number or a word."},
    {"--target species", "the column named species in the header"},
    {"--target 5, --target -1", "the fifth column; the last one (the default)"},
    {"--target classes.csv", "a file with one value for each row of DATA"},
    {NULL, "--target is always read and --labels is always written: shoal predict writes the class of each row there, "
           "and shoal kmeans the cluster. Classes that are words come back as words."},
    {NULL, NULL},
};

static const cli_note output_notes[] = {
    {NULL, "The ending of a file decides what is written to it. An unknown ending is refused before the run."},
    {".npy", "an array for numpy"},
    {".csv, .tsv, .txt", "text; also compressed: .csv.gz, .csv.xz, .csv.bz2, .csv.zst"},
    {".idx", "IDX; also compressed: .idx.gz"},
    {".safetensors", "a model, for shoal predict"},
    {".png, .svg", "a picture"},
    {".jsonl", "a trace: one JSON object for each round"},
    {"-", "standard output, as text; the summary then goes to standard error"},
    {NULL, "A file that exists is replaced if it holds what this command would write there: the same format, type and "
           "rank. Anything else is refused unless --force is given. A file that the command reads is never "
           "overwritten, and a run that fails leaves outputs as they were."},
    {NULL, NULL},
};

static const cli_note worker_notes[] = {
    {NULL, "A run uses all cores of this machine. --workers runs it on several processes or machines instead. The "
           "result has the same bits; workers may die, leave or join at any time."},
    {"--workers 4", "four processes of this machine (the same as local:4)"},
    {"--workers ssh:corn10,corn11:8", "one worker on corn10 and eight on corn11; nothing needs to be installed there"},
    {"--workers slurm:64", "64 workers that Slurm starts; slurm:64?partition=P&time=60 for more"},
    {"--store URL",
     "where workers meet: a folder, az://ACCOUNT/CONTAINER or s3://BUCKET. Without --workers, start them "
     "anywhere with shoal worker --store URL"},
    {"--detach", "return at once; the job keeps running"},
    {"mpirun -n 64 shoal kmeans ...", "ranks by MPI instead of workers"},
    {NULL, "A job is followed and controlled by its name:"},
    {"shoal check --workers ssh:corn10", "can the hosts be reached, and how fast are they?"},
    {"shoal job list, shoal job watch JOB", "what is running, and how far along it is"},
    {"shoal job resume JOB", "continue a job that stopped"},
    {NULL, "More: docs/workers.md, docs/engine-store.md, docs/engine-mpi.md."},
    {NULL, NULL},
};

static const cli_note store_notes[] = {
    {NULL, "A store holds blobs: data sets, results, and the jobs of workers. Every command that takes a URL takes all "
           "of these:"},
    {"PATH", "a folder on this machine, created if need be"},
    {"az://ACCOUNT/CONTAINER/PREFIX", "Azure Blob Storage"},
    {"s3://BUCKET/PREFIX", "Amazon S3, or a server that speaks its protocol (AWS_ENDPOINT_URL)"},
    {NULL, "Credentials come from the environment (shoal help environment). A container or bucket must exist; shoal "
           "store put --create makes one."},
    {"shoal store put -r DIR URL", "upload; a copy that was interrupted continues when the command is repeated"},
    {"shoal store get URL FILE --verify", "download, and compare checksums"},
    {"shoal store ls -l URL", "list"},
    {"shoal store bench URL", "measure latency and bandwidth"},
    {NULL, "More: docs/store.md."},
    {NULL, NULL},
};

static const cli_note alias_notes[] = {
    {NULL, "Options are also known by the names other programs give them, with - or _ between words:"},
    {"--n-clusters, --k", "--clusters (-k)"},
    {"--max-iter, --n-iter", "--iterations"},
    {"--n-init", "--runs"},
    {"--random-state, --random-seed", "--seed"},
    {"--test-size, --train-size", "--test, --train"},
    {"--tol", "--tolerance"},
    {"--learning-rate, --optimizer", "--rate, --optimiser"},
    {"--n-jobs, --num-threads", "--threads; --n-jobs -1 is all cores"},
    {"--sample-weight", "--weights"},
    {"--centers, --color, --gray, --normalize, --standardize", "--centres, --colour, --grey, --normalise, "
                                                               "--standardise"},
    {"--drop-columns, --usecols", "--drop-column, --columns"},
    {NULL, NULL},
};

const cli_note cli_exit_codes[] = {
    {"0", "Done."},
    {"1", "Failed: the input is malformed, or the system refused something. One line on standard error says why; "
          "outputs that existed before are untouched."},
    {"2", "Wrong usage: an option or argument is wrong. One line on standard error says which."},
    {"3", "A job on workers stopped before it was done and can be resumed. Standard error says why, and how."},
    {"130", "Stopped by a signal. The first Ctrl-C (or SIGTERM, SIGHUP) stops a run after its round, and the result so "
            "far is written; a job on workers stops with exit code 3. An interrupted copy continues when its command "
            "is repeated. No file is left half-written."},
    {"129, 130, 143", "Ended at once by SIGHUP, Ctrl-C or SIGTERM, as shells show it: by the second signal, or by the "
                      "first one where there is nothing to finish, as in shoal run --exec and shoal data convert. No "
                      "file is left half-written, and no worker that the command started on this machine is left "
                      "running."},
    {NULL, NULL},
};

const cli_note cli_variables[] = {
    {"SHOAL_KERNEL", "Processor instructions to use if --kernel is not given."},
    {"AZURE_STORAGE_CONNECTION_STRING, AZURE_STORAGE_ACCOUNT, AZURE_STORAGE_KEY, AZURE_STORAGE_SAS_TOKEN",
     "Credentials for az:// stores."},
    {"AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_PROFILE, AWS_REGION, AWS_ENDPOINT_URL",
     "Credentials and address for s3:// stores and aws: machines."},
    {"SHOAL_STORE", "The store of jobs if --store is not given."},
    {"SHOAL_SSH", "The command that --workers ssh: runs if --ssh is not given (default: ssh)."},
    {"SHOAL_MPI_PLUGIN", "The libshoal-mpi.so to load (default: the one for the MPI that started the program)."},
    {"SHOAL_CUDA_PLUGIN", "The libshoal-cuda.so to load for --device cuda (default: the one beside the program)."},
    {"SHOAL_PORTABLE",
     "A folder with builds of this program to copy to other machines, or none to copy the running program."},
    {"SHOAL_HDF5_LIBRARY", "The libhdf5 that reads HDF5 files (default: the one that is installed)."},
    {"SHOAL_HISTORY", "off: do not record predicted and measured times of runs."},
    {"XDG_CONFIG_HOME", "Holds the calibration, in a folder shoal (default: ~/.config)."},
    {"XDG_STATE_HOME", "Holds journals of copies, jobs without a store, and the history of runs, in a folder shoal "
                       "(default: ~/.local/state)."},
    {"XDG_CACHE_HOME", "Holds rows that workers fetched and modules that shoal run compiled, in a folder shoal "
                       "(default: ~/.cache)."},
    {"CC", "The compiler for shoal run (default: cc)."},
    {"TMPDIR", "Where temporary files go (default: /var/tmp)."},
    {NULL, NULL},
};

static const cli_topic topics[] = {
    {"data", "formats, and options for reading them", data_notes},
    {"targets", "known classes of the rows, for classifiers", target_notes},
    {"outputs", "endings of files, and what is overwritten", output_notes},
    {"workers", "several processes or machines", worker_notes},
    {"stores", "folders, Azure and S3", store_notes},
    {"aliases", "options by the names of other programs", alias_notes},
    {"exit-codes", "what the exit status means", cli_exit_codes},
    {"environment", "environment variables", cli_variables},
    {NULL, NULL, NULL},
};
const cli_topic *const cli_topics = topics;

/* Words with a dash or space between them: "exit codes" is exit-codes. */
static bool is_topic(const char *name, const char *const *word, int count)
{
    for (int i = 0; i < count; i++) {
        size_t length = strlen(word[i]);
        if ((i > 0 && *name++ != '-') || strncmp(name, word[i], length) != 0)
            return false;
        name += length;
    }
    return *name == '\0';
}

const cli_topic *cli_topic_find(const char *const *word, int count)
{
    for (const cli_topic *topic = topics; topic->name; topic++)
        if (is_topic(topic->name, word, count))
            return topic;
    return NULL;
}

/* ---- showing them ------------------------------------------------------------------------------------------------ */

enum { TERM_COLUMN_MOST = 32 };

/* Where the meanings of a topic's terms start. */
static int term_column(const cli_note *notes)
{
    int column = 8;
    for (; notes->text; notes++) {
        int needed = notes->term ? (int)strlen(notes->term) + 4 : 0;
        if (needed > column && needed <= TERM_COLUMN_MOST)
            column = needed;
    }
    return column;
}

void cli_help_topic(FILE *stream, const cli_topic *topic)
{
    int width = cli_width(), column = term_column(topic->notes);
    fprintf(stream, "%s: %s\n", topic->name, topic->summary);
    bool was_term = false;
    for (const cli_note *note = topic->notes; note->text; note++) {
        if (!note->term || !was_term)
            fputc('\n', stream);
        was_term = note->term != NULL;
        if (!note->term) {
            base_wrap(stream, note->text, 0, 0, width);
            continue;
        }
        int used = (int)strlen(note->term) + 2;
        fputs("  ", stream);
        if (used + 2 > column)
            base_wrap(stream, note->term, 2, 2, width);
        else
            fputs(note->term, stream);
        fprintf(stream, "%*s", used + 2 > column ? column : column - used, "");
        base_wrap(stream, note->text, column, column, width);
    }
}

void cli_manual_notes(FILE *stream, const cli_note *notes)
{
    bool was_term = false;
    for (; notes->text; notes++) {
        fputs(notes->term ? ".TP\n\\fB" : was_term ? ".PP\n" : "", stream);
        was_term = notes->term != NULL;
        if (notes->term) {
            base_roff(stream, notes->term);
            fputs("\\fR\n", stream);
        }
        base_roff(stream, notes->text);
        fputc('\n', stream);
    }
}
