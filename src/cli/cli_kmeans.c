/* shoal kmeans: clusters the rows of a data set. */
#include "cli.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "learn_verb.h"
#include "ranks.h"
#include "model_file.h"
#include "picture_shape.h"

typedef struct outputs {
    const char *centres, *labels, *model, *picture;
} outputs;

typedef struct inputs {
    const char *weights;
} inputs;

typedef struct settings {
    cli_common common;
    shoal_kmeans_config config;
    shoal_data_options data;
    inputs inputs;
    cli_run_settings run;
    cli_ranks_settings ranks;
    cli_workers_settings workers;
    outputs outputs;
    cli_picture_settings picture;
    cli_trace_settings trace;
    cli_print_settings print;
} settings;

static const shoal_option input_rows[] = {
    {"weights", 'w', SHOAL_OPTION_TEXT, offsetof(inputs, weights), "FILE",
     .help = "a weight for each row, finite and at least 0, as any data file of one column or one row"},
    {0},
};
static const shoal_option *const input_options = input_rows;

static const shoal_option output_rows[] = {
    {"centres", 'c', SHOAL_OPTION_TEXT, offsetof(outputs, centres), "FILE.npy",
     .help = "write the centres: float64, K rows"},
    {"labels", 'l', SHOAL_OPTION_TEXT, offsetof(outputs, labels), "FILE.npy",
     .help = "write the cluster of each row: int32, from 0"},
    {"model", 'm', SHOAL_OPTION_TEXT, offsetof(outputs, model), "FILE.safetensors",
     .help = "write the centres and how they were found, for shoal predict"},
    {"picture", 0, SHOAL_OPTION_TEXT, offsetof(outputs, picture), "FILE.png",
     .help = "write the centres as small grey images side by side"},
    {0},
};
static const shoal_option *const output_options = output_rows;

static const base_option_group groups[] = {
    {"Clustering", &shoal_kmeans.options, offsetof(settings, config)},
    {"Weights", &input_options, offsetof(settings, inputs)},
    {"Output", &output_options, offsetof(settings, outputs)},
    {"Picture", &cli_picture_options, offsetof(settings, picture)},
    {"Following the run", &cli_trace_options, offsetof(settings, trace)},
    {"Reading the data", &cli_data_options, offsetof(settings, data)},
    {"Running", &cli_run_options, offsetof(settings, run)},
    {"Ranks and checkpoints", &cli_ranks_options, offsetof(settings, ranks)},
    {"Running on workers", &cli_workers_options, offsetof(settings, workers)},
    {"Printing", &cli_print_options, offsetof(settings, print)},
    {"Help", &cli_common_options, offsetof(settings, common)},
    {0},
};

/* ---- before the run ---------------------------------------------------------------------------------------------- */

static const char *const init_words[] = {"auto", "kmeans++", "parallel", "random"};
enum { INIT_WORDS = 4 };

static bool is_init_word(const char *text)
{
    if (!text)
        return true; /* the learner's default */
    for (int i = 0; i < INIT_WORDS; i++)
        if (strcmp(text, init_words[i]) == 0)
            return true;
    return false;
}

/* --init is a word or a file; what is neither was more likely a misspelt word than a missing file when it looks so. */
static int check_init(const shoal_kmeans_config *config)
{
    const char *init = config->init;
    if (is_init_word(init) || strncmp(init, "gen:", 4) == 0 || access(init, F_OK) == 0 || strpbrk(init, "/."))
        return SHOAL_OK;
    const char *near = base_nearest(init, init_words, INIT_WORDS);
    return shoal_fail(SHOAL_USAGE, "--init: '%s' is neither a file nor one of auto, kmeans++, parallel, random%s%s%s",
                      init, near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
}

/* Loads the centres --init names.  The caller frees *start, which config->start points to. */
static int load_start(double **start, shoal_kmeans_config *config, const cli_job *job)
{
    if (is_init_word(config->init))
        return SHOAL_OK;
    int64_t rows = 0, columns = 0;
    int status = cli_ranks_can_read("--init", config->init);
    if (status == SHOAL_OK)
        status = cli_read_float64(start, &rows, &columns, config->init);
    if (status < 0)
        return status;
    if (columns != job->columns)
        return shoal_fail(SHOAL_INVALID, "%s: centres of %" PRId64 " columns, but %s has %" PRId64, config->init,
                          columns, job->data_name, job->columns);
    if (config->k == 0)
        config->k = rows;
    if (config->k != rows)
        return shoal_fail(SHOAL_USAGE, "-k is %" PRId64 ", but --init %s has %" PRId64 " rows", config->k, config->init,
                          rows);
    config->start = *start;
    return SHOAL_OK;
}

/* ---- after the run ----------------------------------------------------------------------------------------------- */

/* What the end of a run needs to know, whether it was started here or resumed. */
typedef struct ending {
    outputs outputs;
    data_sheet sheet;
    const json_t *options; /* of the learner */
} ending;

/* The seed has an entry of its own, as models always had it. */
static int write_model(const char *path, const cli_job *job, const json_t *options)
{
    static const char *const parts[] = {"centres", NULL};
    char seed[24];
    snprintf(seed, sizeof seed, "%lld", (long long)json_integer_value(json_object_get(options, "seed")));
    return cli_model_write(path, job, parts, options, (const data_metadata[]){{"seed", seed}, {NULL, NULL}});
}

static int write_outputs(const cli_job *job, const void *context)
{
    const ending *end = context;
    const outputs *out = &end->outputs;
    const shoal_tensor *centres = shoal_result_tensor(job->result, "centres");
    int status = cli_write_tensor(out->centres, job->result, "centres");
    if (status == SHOAL_OK)
        status = cli_write_tensor(out->labels, job->result, "labels");
    if (status == SHOAL_OK)
        status = write_model(out->model, job, end->options);
    if (status == SHOAL_OK)
        status = cli_picture_write(out->picture, &end->sheet, centres->values, centres->shape[0]);
    return status;
}

/* Rows in the smallest and the largest cluster. */
static void print_sizes(FILE *stream, const shoal_result *result)
{
    const shoal_tensor *sizes = shoal_result_tensor(result, "sizes");
    if (!sizes)
        SHOAL_BUG("the result has no sizes");
    const int64_t *size = sizes->values;
    int64_t k = sizes->shape[0], least = INT64_MAX, most = 0;
    for (int64_t i = 0; i < k; i++) {
        least = size[i] < least ? size[i] : least;
        most = size[i] > most ? size[i] : most;
    }
    fprintf(stream, "clusters   %" PRId64 ", of %" PRId64 " to %" PRId64 " rows\n", k, least, most);
}

static void print_summary(FILE *stream, const cli_job *job, const void *context)
{
    double computed = (double)job->report.counter[0], skipped = (double)job->report.counter[1];
    bool converged = shoal_result_number(job->result, "converged") > 0;
    (void)context;
    print_sizes(stream, job->result);
    fprintf(stream, "objective  %.10g after %.0f iterations, %s\n", shoal_result_number(job->result, "objective"),
            shoal_result_number(job->result, "iterations"),
            converged             ? "converged"
            : job->report.stopped ? "stopped"
                                  : "not converged");
    if (computed + skipped > 0)
        fprintf(stream, "distances  %.4g computed, %.4g skipped (%.1f%%)\n", computed, skipped,
                100 * skipped / (computed + skipped));
}

static int check_result(const cli_job *job, const void *context)
{
    const shoal_tensor *centres = shoal_result_tensor(job->result, "centres");
    const shoal_tensor *labels = shoal_result_tensor(job->result, "labels");
    const shoal_tensor *sizes = shoal_result_tensor(job->result, "sizes");
    bool good = centres && cli_is_matrix(centres, centres->shape[0], job->columns);
    good = good && labels && labels->type == SHOAL_INT32 && labels->rank == 1 && labels->shape[0] == job->rows;
    good = good && sizes && sizes->type == SHOAL_INT64 && sizes->rank == 1 && sizes->shape[0] == centres->shape[0];
    (void)context;
    return good ? SHOAL_OK
                : shoal_fail(SHOAL_BROKEN, "the result of job %s is not that of k-means on its data", job->away.id);
}

/* Everything a run writes, in the order in which it is told. */
enum { OUTPUTS = 5 };
static void list_outputs(cli_file out[OUTPUTS + 1], const outputs *from, const cli_trace_settings *trace)
{
    const cli_file all[OUTPUTS + 1] = {{"--centres", from->centres}, {"--labels", from->labels},
                                       {"--model", from->model},     {"--picture", from->picture},
                                       {"--trace", trace->trace},    {0}};
    memcpy(out, all, sizeof all);
}

/* Writes and tells what was found. */
static int end_run(cli_job *job, const ending *end, const cli_trace_settings *trace, const cli_print_settings *print)
{
    cli_file written[OUTPUTS + 1];
    list_outputs(written, &end->outputs, trace);
    return cli_learning_end(job, &(cli_ending){.outputs = written,
                                               .trace = trace,
                                               .print = print,
                                               .check = check_result,
                                               .write = write_outputs,
                                               .summary = print_summary,
                                               .kept = "centres and labels are those",
                                               .context = end});
}

int cli_kmeans_finish(cli_job *job, const json_t *asked, const cli_print_settings *print)
{
    const cli_picture_settings picture = cli_picture_asked(json_object_get(asked, "more"));
    const cli_trace_settings trace = cli_asked_trace(asked);
    ending end = {.outputs = {.centres = cli_asked_path(asked, "centres"),
                              .labels = cli_asked_path(asked, "labels"),
                              .model = cli_asked_path(asked, "model"),
                              .picture = cli_asked_path(asked, "picture")},
                  .options = json_object_get(asked, "options")};
    int status = end.outputs.picture ? cli_picture_find(&end.sheet, &picture, job->columns) : SHOAL_OK;
    return status == SHOAL_OK ? end_run(job, &end, &trace, print) : status;
}

/* ---- the verb ---------------------------------------------------------------------------------------------------- */

/* What can be refused before anything is read. */
static int check_settings(const settings *settings)
{
    int status = check_init(&settings->config);
    if (status == SHOAL_OK && settings->config.k == 0 && is_init_word(settings->config.init))
        status = shoal_fail(SHOAL_USAGE, "kmeans needs -k K, the number of clusters");
    if (status == SHOAL_OK)
        status = cli_picture_check(&settings->picture, settings->outputs.picture);
    return status;
}

/* What whoever resumes the job has to know beside options and outputs. */
static json_t *json_more(const settings *settings)
{
    json_t *object = json_object();
    cli_picture_json(&object, &settings->picture);
    return object;
}

static int run_kmeans(void *from_main, const char *const *word, int words)
{
    settings *settings = from_main;
    const char *init = is_init_word(settings->config.init) ? NULL : settings->config.init;
    const cli_file sources[] = {{"DATA", word[0]}, {"--weights", settings->inputs.weights}, {"--init", init}, {0}};
    cli_file written[OUTPUTS + 1];
    cli_learning learning = {.data_path = word[0],
                             .config = &settings->config,
                             .data = &settings->data,
                             .weights_path = settings->inputs.weights,
                             .run = &settings->run,
                             .ranks = &settings->ranks,
                             .workers = &settings->workers,
                             .trace = &settings->trace,
                             .print = &settings->print,
                             .outputs = written};
    ending end = {.outputs = settings->outputs};
    json_t *options = NULL;
    double *start = NULL;
    cli_job job;
    (void)words;

    list_outputs(written, &settings->outputs, &settings->trace);
    cli_job_init(&job, &shoal_kmeans, settings->print.quiet);
    job.keeps_part = true;
    int status = check_settings(settings);
    if (status == SHOAL_OK)
        status = cli_learning_check(&learning, sources);
    if (status == SHOAL_OK)
        status = cli_learning_load(&job, &learning);
    if (status == SHOAL_OK)
        status = load_start(&start, &settings->config, &job);
    if (status == SHOAL_OK && settings->outputs.picture)
        status = cli_picture_find(&end.sheet, &settings->picture, job.columns);
    if (status == SHOAL_OK)
        status = cli_learning_run(&job, &learning, json_more(settings));
    end.options = options = cli_options_json(shoal_kmeans.options, &settings->config);
    if (status == SHOAL_OK && !job.away.detached)
        status = end_run(&job, &end, &settings->trace, &settings->print);
    cli_job_release(&job);
    json_decref(options);
    base_free(&start);
    return status;
}

static const char *const description[] = {
    "Finds K centres such that the sum of squared distances from each row to its nearest centre, the objective, is "
    "small: seeding, then Lloyd's iteration until the centres stay where they are. DATA is a .npy, IDX, text (CSV, "
    "TSV, spaces) or raw file, .gz included where that is usual, or a generated data set such as "
    "gen:blobs?rows=1000&cols=2&seed=1, or the URL of a .npy or raw blob in a store, such as az://acct/box/rows.npy; "
    "see shoal data info and docs/data.md.",
    "The result depends on the data, the options under Clustering and the weights alone. The number of threads, the "
    "kernel and the grain never change one bit of it.",
    "Without an option for output a summary is printed and nothing is written. Every file is written under a "
    "temporary name and renamed when whole, so an old file stays until the new one is there.",
    "With --workers or --store the same is done by worker processes that meet only in a store, and the result has the "
    "same bits. Any of them may die or leave at any moment, and more may join: shoal worker. Whoever is left goes on; "
    "shoal job shows, stops, resumes and removes jobs. A signal then ends the workers that were started here, nothing "
    "is written, a sentence says how the job can go on, and the exit code is 3.",
    "Started by mpirun or srun, all ranks run it together, each on its own part of the rows, and the result has the "
    "same bits; rank 0 alone prints and writes. With --checkpoint the same command and --resume goes on after a crash, "
    "with any number of ranks or threads.",
    "SIGINT (Ctrl-C), SIGTERM or SIGHUP ends the run after the round it is in: the files are written from what has "
    "been found so far, a sentence on stderr says so, and the exit code is 130. A second signal ends it at once, and "
    "nothing is written. While the first centres are still sought there is nothing to write.",
    NULL,
};

static const cli_example examples[] = {
    {"shoal kmeans data.npy -k 100", "cluster with all cores and print a summary"},
    {"shoal kmeans data.npy -k 100 --centres centres.npy --labels labels.npy", "keep the result"},
    {"shoal kmeans train-images-idx3-ubyte.gz -k 64 --picture centres.png", "look at the centres of small images"},
    {"shoal kmeans iris.csv -k 3 --drop-column species --runs 10 --json", "the best of ten runs, for a script"},
    {"shoal kmeans data.npy --init centres.npy --iterations 1", "one more step from given centres"},
    {"shoal kmeans data.npy -k 100 --workers local:4 --centres centres.npy",
     "with four processes, any of which may die"},
    {"shoal kmeans az://acct/box/data.npy -k 100 --store az://acct/box/jobs --detach", "for workers on other machines"},
    {"mpirun -n 64 shoal kmeans data.npy -k 100 --checkpoint 60 --resume", "on a cluster; again after a crash"},
    {NULL, NULL},
};

const cli_verb cli_kmeans = {
    .name = "kmeans",
    .summary = "cluster the rows of a data set around K centres",
    .word = {"DATA"},
    .words_least = 1,
    .synopsis = "-k K [options]",
    .description = description,
    .examples = examples,
    .options = groups,
    .settings_size = sizeof(settings),
    .of_ranks = true,
    .run = run_kmeans,
};
