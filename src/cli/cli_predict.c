/* shoal predict: what a model that was found before says of rows.  Which learner it is of, the model itself tells. */
#include "cli.h"

#include <inttypes.h>
#include <string.h>

#include "base/memory.h"
#include "base/pool.h"
#include "kernel/kernel.h"
#include "predict.h"
#include "ranks.h"

static const cli_predictor *const predictors[] = {
    &cli_predict_kmeans,
    &cli_predict_logistic,
    &cli_predict_autoencoder,
};
enum { PREDICTORS = sizeof predictors / sizeof predictors[0] };

const char *const cli_predict_names[CLI_PREDICT_OUTPUTS] = {"labels", "distances", "probabilities", "features"};

typedef struct settings {
    cli_common common;
    const char *outputs[CLI_PREDICT_OUTPUTS];
    shoal_data_options data;
    cli_run_settings run;
    cli_ranks_settings ranks;
    cli_print_settings print;
} settings;

static const shoal_option output_rows[] = {
    {"labels", 'l', SHOAL_OPTION_TEXT, CLI_LABELS * sizeof(char *), "FILE.npy",
     .help = "kmeans: write the number of the nearest centre of each row: int32, from 0; logistic: the most probable "
             "class: float64"},
    {"distances", 'd', SHOAL_OPTION_TEXT, CLI_DISTANCES * sizeof(char *), "FILE.npy",
     .help = "kmeans: write the distance of each row to its nearest centre: float64"},
    {"probabilities", 'p', SHOAL_OPTION_TEXT, CLI_PROBABILITIES * sizeof(char *), "FILE.npy",
     .help = "logistic: write the probability of each class for each row: float64, a column for each class"},
    {"features", 'f', SHOAL_OPTION_TEXT, CLI_FEATURES * sizeof(char *), "FILE.npy",
     .help = "autoencoder: write what the hidden layer makes of each row: a column for each hidden unit"},
    {0},
};
static const shoal_option *const output_options = output_rows;

static const base_option_group groups[] = {
    {"Output", &output_options, offsetof(settings, outputs)},
    {"Reading the data", &cli_data_options, offsetof(settings, data)},
    {"Running", &cli_run_options, offsetof(settings, run)},
    {"Ranks", &cli_engine_options, offsetof(settings, ranks)},
    {"Printing", &cli_print_options, offsetof(settings, print)},
    {"Help", &cli_common_options, offsetof(settings, common)},
    {0},
};

/* ---- the model --------------------------------------------------------------------------------------------------- */

static const cli_predictor *find_predictor(const char *learner)
{
    for (int i = 0; i < PREDICTORS; i++)
        if (strcmp(predictors[i]->learner, learner) == 0)
            return predictors[i];
    return NULL;
}

/* Refuses an output that models of this kind do not have. */
static int check_outputs(const cli_predictor *predictor, const char *path, const char *const *wanted)
{
    char gives[80] = "";
    for (int i = 0; i < CLI_PREDICT_OUTPUTS; i++) {
        size_t length = strlen(gives);
        if (predictor->gives[i])
            snprintf(gives + length, sizeof gives - length, "%s--%s", length > 0 ? " and " : "", cli_predict_names[i]);
    }
    for (int i = 0; i < CLI_PREDICT_OUTPUTS; i++)
        if (wanted[i] && !predictor->gives[i])
            return shoal_fail(SHOAL_USAGE, "--%s: %s is a model of %s, which gives %s", cli_predict_names[i], path,
                              predictor->learner, gives);
    return SHOAL_OK;
}

static int load_model(cli_prediction *out, const cli_predictor **predictor, const char *path, const char *const *wanted)
{
    cli_model model = {0};
    int status = cli_ranks_can_read("MODEL", path);
    const bool plain = status == SHOAL_OK && !data_safetensors_is(path); /* rows of numbers are centres */
    if (status == SHOAL_OK && !plain)
        status = cli_model_open(&model, path);
    if (status < 0)
        return status;
    *predictor = find_predictor(plain ? "kmeans" : model.learner);
    status = *predictor ? check_outputs(*predictor, path, wanted)
                        : shoal_fail(SHOAL_INVALID, "%s: a model of '%s', a learner that this program does not have",
                                     path, model.learner);
    if (status == SHOAL_OK)
        status = (*predictor)->load(out, plain ? NULL : &model, path, wanted);
    cli_model_close(&model);
    return status;
}

static void release_model(cli_prediction *prediction)
{
    for (size_t i = 0; i < sizeof prediction->values / sizeof prediction->values[0]; i++)
        base_free(&prediction->values[i]);
}

static int check_columns(const cli_prediction *prediction, const cli_predictor *predictor, const cli_job *job,
                         const char *path)
{
    const char *hint = predictor->hint && job->columns == prediction->columns + 1 ? predictor->hint : "";
    if (job->columns == prediction->columns)
        return SHOAL_OK;
    return shoal_fail(SHOAL_INVALID, "%s has %" PRId64 " columns, but %s is a model for %" PRId64 "%s", job->data_name,
                      job->columns, path, prediction->columns, hint);
}

/* ---- the run ----------------------------------------------------------------------------------------------------- */

static int write_outputs(cli_job *job, const char *const *wanted)
{
    double started = base_seconds();
    int status = SHOAL_OK;
    for (int i = 0; status == SHOAL_OK && i < CLI_PREDICT_OUTPUTS; i++)
        status = cli_write_tensor(wanted[i], job->result, cli_predict_names[i]);
    job->write_seconds = base_seconds() - started;
    return status;
}

static int print_result(const cli_job *job, const cli_predictor *predictor, const cli_prediction *prediction,
                        const cli_print_settings *print, const cli_file *written)
{
    FILE *stream = cli_summary_stream(written);
    if (print->json) {
        json_t *object = cli_job_json(job);
        cli_json_put(&object, "model", json_string(predictor->learner));
        if (object)
            predictor->json(&object, job, prediction);
        return cli_print_json(object);
    }
    if (print->quiet)
        return SHOAL_OK;
    cli_job_print_data(job, stream);
    predictor->summary(stream, job, prediction);
    cli_job_print(job, stream);
    cli_print_written(stream, written, NULL);
    return SHOAL_OK;
}

typedef struct loading {
    const char *path;
    const shoal_data_options *options;
} loading;

static int load(cli_job *job, void *context)
{
    const loading *what = context;
    return cli_job_load(job, what->path, what->options, NULL);
}

static int run_model(const settings *settings, const char *const *word, const cli_file *written)
{
    const cli_predictor *predictor = NULL;
    cli_prediction prediction = {0};
    cli_job job;
    int status = load_model(&prediction, &predictor, word[0], settings->outputs);
    if (status < 0) {
        release_model(&prediction);
        return status;
    }
    cli_job_init(&job, predictor->algorithm, settings->print.quiet);
    status = cli_load(&job, load, &(loading){word[1], &settings->data});
    if (status == SHOAL_OK)
        status = check_columns(&prediction, predictor, &job, word[0]);
    if (status == SHOAL_OK && predictor->settle)
        status = predictor->settle(&prediction, &job);
    if (status == SHOAL_OK)
        status = cli_job_run(&job, &prediction.config, &settings->run, &settings->ranks, settings->data.memory, NULL);
    if (status == SHOAL_OK && cli_is_first())
        status = write_outputs(&job, settings->outputs);
    if (status == SHOAL_OK && cli_is_first())
        status = print_result(&job, predictor, &prediction, &settings->print, written);
    cli_job_release(&job);
    release_model(&prediction);
    return status;
}

static int run_predict(void *from_main, const char *const *word, int words)
{
    const settings *settings = from_main;
    const cli_file sources[] = {{"MODEL", word[0]}, {"DATA", word[1]}, {0}};
    const cli_file written[] = {{"--labels", settings->outputs[CLI_LABELS]},
                                {"--distances", settings->outputs[CLI_DISTANCES]},
                                {"--probabilities", settings->outputs[CLI_PROBABILITIES]},
                                {"--features", settings->outputs[CLI_FEATURES]},
                                {0}};
    const kernel_set *set = NULL;
    (void)words;
    int status = kernel_choose(&set, settings->run.kernel);
    if (status == SHOAL_OK)
        status = cli_ranks_begin(&settings->ranks, false);
    if (status == SHOAL_OK && cli_is_first())
        status = cli_files_check(written, sources, settings->print.json);
    return status == SHOAL_OK ? run_model(settings, word, written) : status;
}

static const char *const description[] = {
    "Applies MODEL, which shoal kmeans, shoal logistic or shoal autoencoder wrote with --model, to the rows of DATA. "
    "The model says which learner it is of, and that decides what there is to write: of kmeans --labels and "
    "--distances, of logistic --labels and --probabilities, of autoencoder --features. DATA is any file or URL that "
    "the learners read, with the columns the model was found with; for logistic without the one with the labels.",
    "Of centres at the same distance the one with the lowest number wins. Any data file whose rows are centres is a "
    "model of kmeans, too, such as what --centres wrote.",
    "What is written has the bits that the learner itself would give, whatever the number of threads and the kernel.",
    NULL,
};

static const cli_example examples[] = {
    {"shoal predict model.safetensors new.npy --labels labels.npy", "label new rows"},
    {"shoal predict centres.npy new.csv --distances distances.npy --quiet", "how far each row is from its centre"},
    {"shoal predict spam.safetensors new.csv --probabilities p.npy", "how sure a classifier is"},
    {"shoal predict autoencoder.safetensors patches.npy --features features.npy", "the hidden layer, as new columns"},
    {NULL, NULL},
};

const cli_verb cli_predict = {
    .name = "predict",
    .summary = "apply a model to rows: labels, distances, probabilities or features",
    .word = {"MODEL", "DATA"},
    .words_least = 2,
    .synopsis = "[options]",
    .description = description,
    .examples = examples,
    .options = groups,
    .settings_size = sizeof(settings),
    .of_ranks = true,
    .run = run_predict,
};
