/* shoal predict: the nearest centre of each row, by a model that was found before. */
#include "cli.h"

#include <inttypes.h>
#include <string.h>

#include "base/memory.h"
#include "base/pool.h"
#include "data/safetensors.h"
#include "kernel/kernel.h"

typedef struct outputs {
    const char *labels, *distances;
} outputs;

typedef struct settings {
    cli_common common;
    outputs outputs;
    shoal_data_options data;
    cli_run_settings run;
    cli_print_settings print;
} settings;

static const shoal_option output_rows[] = {
    {"labels", 'l', SHOAL_OPTION_TEXT, offsetof(outputs, labels), "FILE.npy",
     .help = "write the number of the nearest centre of each row: int32, from 0"},
    {"distances", 'd', SHOAL_OPTION_TEXT, offsetof(outputs, distances), "FILE.npy",
     .help = "write the distance of each row to its nearest centre: float64"},
    {0},
};
static const shoal_option *const output_options = output_rows;

static const base_option_group groups[] = {
    {"Output", &output_options, offsetof(settings, outputs)},
    {"Reading the data", &cli_data_options, offsetof(settings, data)},
    {"Running", &cli_run_options, offsetof(settings, run)},
    {"Printing", &cli_print_options, offsetof(settings, print)},
    {"Help", &cli_common_options, offsetof(settings, common)},
    {0},
};

/* Copies the tensor "centres" out of a model file; its values may lie at any address. */
static int copy_centres(double **out, int64_t *k, int64_t *columns, const char *path)
{
    data_tensors *file = NULL;
    void *aligned = NULL;
    int status = data_safetensors_open(&file, path);
    if (status < 0)
        return status;
    const data_tensor *centres = data_safetensors_find(file, "centres");
    if (!centres || centres->rank != 2 || centres->shape[0] < 1 || centres->shape[1] < 1) {
        status = shoal_fail(SHOAL_INVALID, "%s: no tensor 'centres' of K rows in it", path);
        goto done;
    }
    size_t count = centres->bytes / shoal_type_size(centres->type);
    if ((status = base_alloc(&aligned, centres->bytes, 1, path)) < 0 ||
        (status = base_alloc(out, count, sizeof **out, path)) < 0)
        goto done;
    memcpy(aligned, centres->values, centres->bytes);
    shoal_convert_float64(*out, aligned, centres->type, (int64_t)count);
    *k = centres->shape[0];
    *columns = centres->shape[1];
    status = cli_check_finite(*out, *k, *columns, path);
done:
    base_free(&aligned);
    data_safetensors_close(&file);
    return status;
}

static int load_centres(double **out, shoal_predict_config *config, const char *path)
{
    int status = data_safetensors_is(path) ? copy_centres(out, &config->k, &config->columns, path)
                                           : cli_read_float64(out, &config->k, &config->columns, path);
    config->centres = *out;
    return status;
}

static int print_result(cli_job *job, const settings *settings, FILE *summary, int64_t k)
{
    if (settings->print.json) {
        json_t *object = cli_job_json(job);
        cli_json_put(&object, "k", json_integer(k));
        return cli_print_json(object);
    }
    if (settings->print.quiet)
        return SHOAL_OK;
    fprintf(summary, "data       ");
    cli_put_text(summary, shoal_data_path(job->data));
    fprintf(summary, ": %" PRId64 " rows, %" PRId64 " columns; %" PRId64 " centres\n", shoal_data_rows(job->data),
            shoal_data_columns(job->data), k);
    fprintf(summary, "objective  %.10g\n", shoal_result_number(job->result, "objective"));
    cli_job_print(job, summary);
    return SHOAL_OK;
}

static int run_predict(void *from_main, const char *const *word, int words)
{
    settings *settings = from_main;
    const cli_file written[] = {
        {"--labels", settings->outputs.labels}, {"--distances", settings->outputs.distances}, {0}};
    const cli_file sources[] = {{"MODEL", word[0]}, {"DATA", word[1]}, {0}};
    shoal_predict_config config = {.distances = settings->outputs.distances != NULL};
    const kernel_set *set = NULL;
    double *centres = NULL;
    cli_job job;
    (void)words;

    FILE *summary = cli_summary_stream(written);
    cli_job_init(&job, &shoal_kmeans_predict, settings->print.quiet);
    int status = kernel_choose(&set, settings->run.kernel);
    if (status == SHOAL_OK)
        status = cli_files_check(written, sources, settings->print.json);
    if (status == SHOAL_OK)
        status = load_centres(&centres, &config, word[0]);
    if (status == SHOAL_OK)
        status = cli_job_load(&job, word[1], &settings->data, NULL);
    if (status == SHOAL_OK && config.columns != shoal_data_columns(job.data))
        status = shoal_fail(SHOAL_INVALID, "%s has %" PRId64 " columns, but the centres of %s have %" PRId64, word[1],
                            shoal_data_columns(job.data), word[0], config.columns);
    if (status == SHOAL_OK)
        status = cli_job_run(&job, &config, &settings->run, settings->data.memory, NULL);
    if (status < 0)
        goto done;
    double started = base_seconds();
    status = cli_write_tensor(settings->outputs.labels, job.result, "labels");
    if (status == SHOAL_OK)
        status = cli_write_tensor(settings->outputs.distances, job.result, "distances");
    job.write_seconds = base_seconds() - started;
    if (status == SHOAL_OK)
        status = print_result(&job, settings, summary, config.k);
done:
    cli_job_release(&job);
    base_free(&centres);
    return status;
}

static const char *const description[] = {
    "Finds the centre of MODEL that is nearest to each row of DATA. MODEL is what shoal kmeans --model or --centres "
    "wrote, or any data file whose rows are centres. Of centres at the same distance the one with the lowest number "
    "wins. DATA is any file that shoal kmeans reads.",
    "The labels are those that shoal kmeans itself would give, bit for bit, whatever the number of threads and the "
    "kernel.",
    NULL,
};

static const cli_example examples[] = {
    {"shoal predict model.safetensors new.npy --labels labels.npy", "label new rows"},
    {"shoal predict centres.npy new.csv --distances distances.npy --quiet", "how far each row is from its centre"},
    {NULL, NULL},
};

const cli_verb cli_predict = {
    .name = "predict",
    .summary = "label rows by the centres of a model",
    .word = {"MODEL", "DATA"},
    .words_least = 2,
    .synopsis = "[options]",
    .description = description,
    .examples = examples,
    .options = groups,
    .settings_size = sizeof(settings),
    .run = run_predict,
};
