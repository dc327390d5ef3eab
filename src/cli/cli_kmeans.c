/* shoal kmeans: clusters the rows of a data set. */
#include "cli.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/pool.h"
#include "data/picture.h"
#include "data/safetensors.h"
#include "kernel/kernel.h"
#include "run_job.h"

typedef struct outputs {
    const char *centres, *labels, *model, *picture, *trace;
    const char *picture_shape;
    int64_t picture_columns;
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
    cli_workers_settings workers;
    outputs outputs;
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
    {"picture-shape", 0, SHOAL_OPTION_TEXT, offsetof(outputs, picture_shape), "HxW",
     .help = "height and width of one image; square when left out and the columns allow it"},
    {"picture-columns", 0, SHOAL_OPTION_COUNT, offsetof(outputs, picture_columns), "N",
     .help = "images side by side; about as many as lines when left out", .least = 1},
    {"trace", 0, SHOAL_OPTION_TEXT, offsetof(outputs, trace), "FILE.jsonl",
     .help = "write one line of JSON for each round: round, phase, step, objective, change, seconds"},
    {0},
};
static const shoal_option *const output_options = output_rows;

static const base_option_group groups[] = {
    {"Clustering", &shoal_kmeans.options, offsetof(settings, config)},
    {"Weights", &input_options, offsetof(settings, inputs)},
    {"Output", &output_options, offsetof(settings, outputs)},
    {"Reading the data", &cli_data_options, offsetof(settings, data)},
    {"Running", &cli_run_options, offsetof(settings, run)},
    {"Running on workers", &cli_workers_options, offsetof(settings, workers)},
    {"Printing", &cli_print_options, offsetof(settings, print)},
    {"Help", &cli_common_options, offsetof(settings, common)},
    {0},
};

/* ---- before the run ------------------------------------------------------------------------------------------ */

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
    int status = cli_read_float64(start, &rows, &columns, config->init);
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

/* Fills height and width from "HxW", or finds a square. */
static int find_picture_shape(data_sheet *sheet, const outputs *outputs, int64_t columns)
{
    const char *text = outputs->picture_shape;
    char height[24] = "";
    sheet->columns = outputs->picture_columns;
    if (!text) {
        int64_t side = (int64_t)llrint(sqrt((double)columns));
        sheet->height = sheet->width = side;
        return side * side == columns
                   ? SHOAL_OK
                   : shoal_fail(SHOAL_USAGE, "--picture needs --picture-shape HxW: %" PRId64 " columns make no square",
                                columns);
    }
    size_t length = strcspn(text, "xX");
    if (text[length])
        snprintf(height, sizeof height, "%.*s", (int)(length < 20 ? length : 20), text);
    if (!text[length] || !base_parse_count(&sheet->height, height) ||
        !base_parse_count(&sheet->width, text + length + 1) || sheet->height < 1 || sheet->width < 1)
        return shoal_fail(SHOAL_USAGE, "--picture-shape: %s is not a height and a width such as 28x28", text);
    if (sheet->height > columns || sheet->width != columns / sheet->height || columns % sheet->height != 0)
        return shoal_fail(SHOAL_USAGE, "--picture-shape: %s does not make the %" PRId64 " columns of the data", text,
                          columns);
    return SHOAL_OK;
}

static int check_kernel(const char *name)
{
    const kernel_set *set = NULL;
    return kernel_choose(&set, name);
}

/* ---- after the run ------------------------------------------------------------------------------------------- */

static int write_model(const char *path, const cli_job *job, int64_t seed_of_run)
{
    const shoal_tensor *centres = shoal_result_tensor(job->result, "centres");
    char k[24], columns[24], rows[24], objective[32], iterations[24], seed[24];
    if (!path)
        return SHOAL_OK;
    snprintf(k, sizeof k, "%" PRId64, centres->shape[0]);
    snprintf(columns, sizeof columns, "%" PRId64, centres->shape[1]);
    snprintf(rows, sizeof rows, "%" PRId64, job->rows);
    snprintf(objective, sizeof objective, "%.17g", shoal_result_number(job->result, "objective"));
    snprintf(iterations, sizeof iterations, "%.0f", shoal_result_number(job->result, "iterations"));
    snprintf(seed, sizeof seed, "%" PRId64, seed_of_run);
    const data_metadata metadata[] = {
        {"learner", "kmeans"},      {"k", k},       {"columns", columns},      {"rows", rows}, {"objective", objective},
        {"iterations", iterations}, {"seed", seed}, {"version", SHOAL_VERSION}};
    const data_tensor tensor = {.name = "centres",
                                .type = centres->type,
                                .rank = 2,
                                .shape = {centres->shape[0], centres->shape[1]},
                                .values = centres->values};
    return data_safetensors_write(path, &tensor, 1, metadata, sizeof metadata / sizeof metadata[0]);
}

static int write_picture(const char *path, const cli_job *job, data_sheet *sheet)
{
    const shoal_tensor *centres = shoal_result_tensor(job->result, "centres");
    if (!path)
        return SHOAL_OK;
    sheet->images = centres->shape[0];
    sheet->values = centres->values;
    return data_picture_write(path, sheet);
}

static int write_outputs(cli_job *job, const outputs *outputs, int64_t seed, data_sheet *sheet)
{
    double started = base_seconds();
    int status = cli_write_tensor(outputs->centres, job->result, "centres");
    if (status == SHOAL_OK)
        status = cli_write_tensor(outputs->labels, job->result, "labels");
    if (status == SHOAL_OK)
        status = write_model(outputs->model, job, seed);
    if (status == SHOAL_OK)
        status = write_picture(outputs->picture, job, sheet);
    if (status == SHOAL_OK)
        status = cli_trace_commit(&job->trace, shoal_result_number(job->result, "objective"));
    job->write_seconds = base_seconds() - started;
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

static void print_summary(FILE *stream, const cli_job *job, const cli_file *written)
{
    double computed = (double)job->report.counter[0], skipped = (double)job->report.counter[1];
    bool converged = shoal_result_number(job->result, "converged") > 0;
    fprintf(stream, "data       ");
    cli_put_text(stream, job->data_name);
    fprintf(stream, ": %" PRId64 " rows, %" PRId64 " columns, %s\n", job->rows, job->columns,
            shoal_type_name(job->type));
    print_sizes(stream, job->result);
    fprintf(stream, "objective  %.10g after %.0f iterations, %s\n", shoal_result_number(job->result, "objective"),
            shoal_result_number(job->result, "iterations"),
            converged             ? "converged"
            : job->report.stopped ? "stopped"
                                  : "not converged");
    cli_job_print(job, stream);
    if (computed + skipped > 0)
        fprintf(stream, "distances  %.4g computed, %.4g skipped (%.1f%%)\n", computed, skipped,
                100 * skipped / (computed + skipped));
    const char *before = "wrote      ";
    for (; written->name; written++) {
        if (written->path) {
            fputs(before, stream);
            cli_put_text(stream, written->path);
            before = ", ";
        }
    }
    if (before[0] == ',')
        fputc('\n', stream);
}

/* Everything a run wrote, in the order in which it is told. */
enum { OUTPUTS = 5 };
static void list_outputs(cli_file out[OUTPUTS + 1], const outputs *from)
{
    const cli_file all[OUTPUTS + 1] = {{"--centres", from->centres}, {"--labels", from->labels},
                                       {"--model", from->model},     {"--picture", from->picture},
                                       {"--trace", from->trace},     {0}};
    memcpy(out, all, sizeof all);
}

/* A result from a store may be anything that someone put there. */
static int check_result(const cli_job *job)
{
    const shoal_tensor *centres = shoal_result_tensor(job->result, "centres");
    const shoal_tensor *labels = shoal_result_tensor(job->result, "labels");
    const shoal_tensor *sizes = shoal_result_tensor(job->result, "sizes");
    bool good = centres && centres->type == SHOAL_FLOAT64 && centres->rank == 2 && centres->shape[1] == job->columns;
    good = good && labels && labels->type == SHOAL_INT32 && labels->rank == 1 && labels->shape[0] == job->rows;
    good = good && sizes && sizes->type == SHOAL_INT64 && sizes->rank == 1 && sizes->shape[0] == centres->shape[0];
    return good ? SHOAL_OK
                : shoal_fail(SHOAL_BROKEN, "the result of job %s is not that of k-means on its data", job->away.id);
}

/* Writes and tells what was found. */
static int end_run(cli_job *job, const outputs *out, int64_t seed, data_sheet *sheet, const cli_print_settings *print)
{
    cli_file written[OUTPUTS + 1];
    list_outputs(written, out);
    FILE *summary = cli_summary_stream(written);
    int status = cli_workers_close(job, write_outputs(job, out, seed, sheet));
    if (status < 0)
        return status;
    if (print->json)
        status = cli_print_json(cli_job_json(job));
    else if (!print->quiet)
        print_summary(summary, job, written);
    if (status == SHOAL_OK && job->report.stopped) {
        double iterations = shoal_result_number(job->result, "iterations");
        fprintf(stderr, "shoal: stopped after %.0f iterations; centres and labels are those of iteration %.0f\n",
                iterations, iterations);
        status = CLI_INTERRUPTED;
    }
    return status;
}

/* ---- on workers ---------------------------------------------------------------------------------------------- */

/* What else whoever resumes the job has to know: how the picture is drawn, and the seed. */
static json_t *json_more(const settings *settings)
{
    json_t *object = json_object();
    if (settings->outputs.picture_shape)
        cli_json_put(&object, "picture-shape", cli_json_text(settings->outputs.picture_shape));
    cli_json_put(&object, "picture-columns", json_integer(settings->outputs.picture_columns));
    cli_json_put(&object, "seed", json_integer(settings->config.seed));
    return object;
}

static int run_on_workers(cli_job *job, const settings *settings, const char *path, const cli_file *written)
{
    const cli_workers_wish wish = {.config = &settings->config,
                                   .data_path = path,
                                   .data = &settings->data,
                                   .weights_path = settings->inputs.weights,
                                   .outputs = written,
                                   .more = json_more(settings),
                                   .trace_path = settings->outputs.trace};
    return cli_workers_run(job, &wish, &settings->run, &settings->workers, &settings->print);
}

int cli_kmeans_finish(cli_job *job, const json_t *asked, const cli_print_settings *print)
{
    const json_t *paths = json_object_get(asked, "outputs"), *more = json_object_get(asked, "more");
    data_sheet sheet = {0};
    outputs out = {.centres = json_string_value(json_object_get(paths, "centres")),
                   .labels = json_string_value(json_object_get(paths, "labels")),
                   .model = json_string_value(json_object_get(paths, "model")),
                   .picture = json_string_value(json_object_get(paths, "picture")),
                   .trace = json_string_value(json_object_get(paths, "trace")),
                   .picture_shape = json_string_value(json_object_get(more, "picture-shape")),
                   .picture_columns = json_integer_value(json_object_get(more, "picture-columns"))};
    int64_t seed = json_integer_value(json_object_get(more, "seed"));
    int status = check_result(job);
    if (status == SHOAL_OK && out.picture)
        status = find_picture_shape(&sheet, &out, job->columns);
    return status == SHOAL_OK ? end_run(job, &out, seed, &sheet, print) : status;
}

/* ---- the verb ------------------------------------------------------------------------------------------------ */

/* What can be refused before anything is read. */
static int check_settings(const settings *settings, const char *data, bool *on_workers)
{
    const outputs *out = &settings->outputs;
    int status = cli_workers_check(on_workers, &settings->workers);
    if (status == SHOAL_OK)
        status = check_init(&settings->config);
    if (status == SHOAL_OK && settings->config.k == 0 && is_init_word(settings->config.init))
        status = shoal_fail(SHOAL_USAGE, "kmeans needs -k K, the number of clusters");
    if (status == SHOAL_OK)
        status = check_kernel(settings->run.kernel);
    if (status == SHOAL_OK && !out->picture && (out->picture_shape || out->picture_columns))
        status = shoal_fail(SHOAL_USAGE, "--picture-shape and --picture-columns say how --picture FILE.png is drawn");
    if (status == SHOAL_OK && !*on_workers && cli_workers_only(data))
        status = shoal_fail(SHOAL_USAGE, "%s is in a store, whose rows only workers read: add --workers local:N", data);
    return status;
}

static int run_kmeans(void *from_main, const char *const *word, int words)
{
    settings *settings = from_main;
    const outputs *out = &settings->outputs;
    const char *init = is_init_word(settings->config.init) ? NULL : settings->config.init;
    const cli_file sources[] = {{"DATA", word[0]}, {"--weights", settings->inputs.weights}, {"--init", init}, {0}};
    cli_file written[OUTPUTS + 1];
    data_sheet sheet = {0};
    double *start = NULL;
    bool on_workers = false;
    cli_job job;
    (void)words;

    list_outputs(written, out);
    cli_job_init(&job, &shoal_kmeans, settings->print.quiet);
    job.keeps_part = true;
    int status = check_settings(settings, word[0], &on_workers);
    if (status == SHOAL_OK)
        status = cli_files_check(written, sources, settings->print.json);
    if (status == SHOAL_OK)
        status =
            (on_workers ? cli_workers_load : cli_job_load)(&job, word[0], &settings->data, settings->inputs.weights);
    if (status == SHOAL_OK)
        status = load_start(&start, &settings->config, &job);
    if (status == SHOAL_OK && out->picture)
        status = find_picture_shape(&sheet, out, job.columns);
    if (status == SHOAL_OK)
        status = on_workers ? run_on_workers(&job, settings, word[0], written)
                            : cli_job_run(&job, &settings->config, &settings->run, settings->data.memory, out->trace);
    if (status == SHOAL_OK && on_workers && !job.away.detached)
        status = check_result(&job);
    if (status == SHOAL_OK && !job.away.detached)
        status = end_run(&job, out, settings->config.seed, &sheet, &settings->print);
    cli_job_release(&job);
    base_free(&start);
    return status;
}

static const char *const description[] = {
    "Finds K centres such that the sum of squared distances from each row to its nearest centre, the objective, is "
    "small: seeding, then Lloyd's iteration until the centres stay where they are. DATA is a .npy, IDX, text (CSV, "
    "TSV, spaces) or raw file, .gz included where that is usual, or a generated data set such as "
    "gen:blobs?rows=1000&cols=2&seed=1; see shoal data info.",
    "The result depends on the data, the options under Clustering and the weights alone. The number of threads, the "
    "kernel and the grain never change one bit of it.",
    "Without an option for output a summary is printed and nothing is written. Every file is written under a temporary "
    "name and renamed when whole, so an old file stays until the new one is there.",
    "With --workers or --store the same is done by worker processes that meet only in a store, and the result has the "
    "same "
    "bits. Any of them may die or leave at any moment, and more may join: shoal worker. Whoever is left goes on; shoal "
    "job "
    "shows, stops, resumes and removes jobs. A signal then ends the workers that were started here, nothing is "
    "written, a "
    "sentence says how the job can go on, and the exit code is 3.",
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
    .run = run_kmeans,
};
