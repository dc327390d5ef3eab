/* shoal autoencoder: learns features of rows by reproducing them. */
#include "cli.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "job_wish.h"
#include "learn_verb.h"
#include "ranks.h"
#include "model_file.h"
#include "picture_shape.h"

typedef struct inputs {
    const char *start;
} inputs;

typedef struct outputs {
    const char *model, *features, *picture;
} outputs;

typedef struct settings {
    cli_common common;
    shoal_autoencoder_config config;
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
    {"start", 0, SHOAL_OPTION_TEXT, offsetof(inputs, start), "MODEL",
     .help = "start from what an earlier run wrote with --model, for as many columns and hidden units"},
    {0},
};
static const shoal_option *const input_options = input_rows;

static const shoal_option output_rows[] = {
    {"model", 'm', SHOAL_OPTION_TEXT, offsetof(outputs, model), "FILE.safetensors",
     .help = "write encoder and decoder, and how they were found, for shoal predict"},
    {"features", 'f', SHOAL_OPTION_TEXT, offsetof(outputs, features), "FILE.npy",
     .help = "write what the hidden layer makes of each row: H columns, in the precision of the run"},
    {"picture", 0, SHOAL_OPTION_TEXT, offsetof(outputs, picture), "FILE.png",
     .help = "write the input that each hidden unit prefers as small grey images side by side"},
    {0},
};
static const shoal_option *const output_options = output_rows;

static const base_option_group groups[] = {
    {"Learning", &shoal_autoencoder.options, offsetof(settings, config)},
    {"Going on", &input_options, offsetof(settings, inputs)},
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

/* An earlier model, whose numbers config points to. */
typedef struct start {
    double *encoder, *encoder_bias, *decoder, *decoder_bias;
} start;

static void release_start(start *start)
{
    base_free(&start->encoder);
    base_free(&start->encoder_bias);
    base_free(&start->decoder);
    base_free(&start->decoder_bias);
}

static int read_start(start *out, int64_t *hidden, int64_t *columns, const cli_model *model)
{
    int status = cli_model_matrix(&out->encoder, hidden, columns, model, "encoder.weight");
    if (status == SHOAL_OK)
        status = cli_model_vector(&out->encoder_bias, hidden, model, "encoder.bias");
    if (status == SHOAL_OK && cli_model_has(model, "decoder.weight"))
        status = cli_model_matrix(&out->decoder, columns, hidden, model, "decoder.weight");
    if (status == SHOAL_OK)
        status = cli_model_vector(&out->decoder_bias, columns, model, "decoder.bias");
    return status;
}

static bool has_linear_outputs(int output, int activation)
{
    return output == SHOAL_OUTPUT_LINEAR || (output == SHOAL_OUTPUT_AUTO && activation == SHOAL_RELU);
}

/* Weights that were found with other units are no start.  A model from elsewhere may not tell its outputs. */
static int check_units(const cli_model *model, const shoal_autoencoder_config *config, const char *path)
{
    const char *const *activations = cli_option_choices(shoal_autoencoder.options, "activation");
    const char *const *outputs = cli_option_choices(shoal_autoencoder.options, "output");
    int activation = 0, output = config->output;
    int status = cli_model_choice(&activation, model, "option.activation", activations);
    if (status == SHOAL_OK && cli_model_text(model, "option.output"))
        status = cli_model_choice(&output, model, "option.output", outputs);
    if (status < 0)
        return status;
    if (activation != config->activation)
        return shoal_fail(SHOAL_USAGE, "--start: the units of %s are %s, those of --activation %s", path,
                          activations[activation], activations[config->activation]);
    if (has_linear_outputs(output, activation) != has_linear_outputs(config->output, activation))
        return shoal_fail(SHOAL_USAGE, "--start: %s was found with --output %s, which is not --output %s", path,
                          outputs[output], outputs[config->output]);
    return SHOAL_OK;
}

/* The model's shape is left to the learner, which compares it with what is asked for; without --hidden it decides. */
static int load_start(start *out, shoal_autoencoder_config *config, const char *path)
{
    cli_model model = {0};
    if (!path)
        return SHOAL_OK;
    int status = cli_model_open_as(&model, path, "autoencoder");
    if (status == SHOAL_OK)
        status = read_start(out, &config->start_hidden, &config->start_columns, &model);
    if (status == SHOAL_OK)
        status = check_units(&model, config, path);
    cli_model_close(&model);
    if (config->hidden == 0)
        config->hidden = config->start_hidden;
    config->start_encoder = out->encoder;
    config->start_encoder_bias = out->encoder_bias;
    config->start_decoder = out->decoder;
    config->start_decoder_bias = out->decoder_bias;
    return status;
}

/* What can be refused before anything is read. */
static int check_settings(const settings *settings)
{
    if (settings->config.hidden == 0 && !settings->inputs.start)
        return shoal_fail(SHOAL_USAGE, "autoencoder needs --hidden H, the number of hidden units");
    if (settings->config.seed != 0 && settings->inputs.start)
        return shoal_fail(SHOAL_USAGE, "--seed: the first weights are those of --start, so that none are drawn");
    return cli_picture_check(&settings->picture, settings->outputs.picture);
}

/* ---- after the run ----------------------------------------------------------------------------------------------- */

/* What the end of a run needs to know, whether it was started here or resumed. */
typedef struct ending {
    outputs outputs;
    data_sheet sheet;
    const json_t *options; /* of the learner */
    cli_run_settings run;
    int64_t memory;
} ending;

/* The choice that an option of the run was given; those of a resumed job are text from a store. */
static int option_given(int *out, const ending *end, const char *name)
{
    const char *text = json_string_value(json_object_get(end->options, name));
    const char *const *choice = cli_option_choices(shoal_autoencoder.options, name);
    for (*out = 0; choice[*out]; (*out)++)
        if (text && strcmp(choice[*out], text) == 0)
            return SHOAL_OK;
    return shoal_fail(SHOAL_BROKEN, "the job's options have no --%s", name);
}

static int write_features(const cli_job *job, const void *context)
{
    const ending *end = context;
    const shoal_tensor *encoder = shoal_result_tensor(job->result, "encoder.weight");
    shoal_features_config config = {.encoder = encoder->values,
                                    .bias = shoal_result_tensor(job->result, "encoder.bias")->values,
                                    .hidden = encoder->shape[0],
                                    .columns = encoder->shape[1],
                                    .scale = shoal_result_number(job->result, "scale"),
                                    .shift = shoal_result_number(job->result, "shift")};
    const shoal_run_options options = {.threads = (int)end->run.threads,
                                       .kernel = end->run.kernel,
                                       .rows_per_grain = end->run.rows_per_grain,
                                       .memory = end->memory,
                                       .ranks = cli_ranks()};
    shoal_result *result = NULL;
    bool wanted = end->outputs.features != NULL;
    int status = cli_ranks_follow(&wanted);
    if (status < 0 || !wanted)
        return status;
    status = option_given(&config.activation, end, "activation");
    if (status == SHOAL_OK)
        status = option_given(&config.precision, end, "precision");
    if (config.precision == 0)
        config.precision = job->type == SHOAL_FLOAT64 ? 2 : 1;
    if (status == SHOAL_OK)
        status = cli_ranks_settled(shoal_run(&result, NULL, &shoal_features, &config, job->data, NULL, &options));
    if (status == SHOAL_OK && cli_is_first())
        status = cli_write_tensor(end->outputs.features, result, "features");
    shoal_result_free(&result);
    return status;
}

/* Patches are too small to be seen as they are: so many pixels across at least. */
enum { IMAGE_PIXELS = 32 };

/* The input of norm 1 that excites unit i most is its weights divided by their norm (Ng, "Sparse autoencoder").  Each
 * image is scaled by its own greatest magnitude, so that a unit of small weights is seen as well as one of large
 * ones. */
static int write_picture(const cli_job *job, const ending *end)
{
    const shoal_tensor *encoder = shoal_result_tensor(job->result, "encoder.weight");
    int64_t hidden = encoder->shape[0], columns = encoder->shape[1];
    data_sheet sheet = end->sheet;
    double *images = NULL;
    if (!end->outputs.picture)
        return SHOAL_OK;
    int64_t side = sheet.height > sheet.width ? sheet.height : sheet.width;
    sheet.zoom = (IMAGE_PIXELS + side - 1) / side;
    sheet.centred = true;
    int status = base_alloc(&images, (size_t)(hidden * columns), sizeof *images, "a picture");
    for (int64_t i = 0; status == SHOAL_OK && i < hidden; i++) {
        const double *weights = (const double *)encoder->values + i * columns;
        double most = 0;
        for (int64_t k = 0; k < columns; k++)
            most = fmax(most, fabs(weights[k]));
        for (int64_t k = 0; k < columns && most > 0; k++)
            images[i * columns + k] = weights[k] / most;
    }
    if (status == SHOAL_OK)
        status = cli_picture_write(end->outputs.picture, &sheet, images, hidden);
    base_free(&images);
    return status;
}

static int write_outputs(const cli_job *job, const void *context)
{
    static const char *const parts[] = {"encoder.weight", "encoder.bias", "decoder.weight",
                                        "decoder.bias",   "activity",     NULL};
    const ending *end = context;
    int status = cli_model_write(end->outputs.model, job, parts, end->options, NULL);
    if (status == SHOAL_OK)
        status = write_picture(job, end);
    if (status == SHOAL_OK)
        status = write_features(job, end);
    return status;
}

static void print_activity(FILE *stream, const shoal_tensor *activity)
{
    const double *mean = activity->values;
    double least = mean[0], most = mean[0];
    for (int64_t i = 1; i < activity->shape[0]; i++) {
        least = fmin(least, mean[i]);
        most = fmax(most, mean[i]);
    }
    fprintf(stream, "activity   from %.4g to %.4g, the mean of each unit over all rows\n", least, most);
}

static void print_summary(FILE *stream, const cli_job *job, const void *context)
{
    const shoal_result *result = job->result;
    const ending *end = context;
    const shoal_tensor *encoder = shoal_result_tensor(result, "encoder.weight");
    const char *activation = json_string_value(json_object_get(end->options, "activation"));
    fprintf(stream, "network    %" PRId64 "-%" PRId64 "-%" PRId64 ", %s%s\n", encoder->shape[1], encoder->shape[0],
            encoder->shape[1], activation ? activation : "",
            shoal_result_tensor(result, "decoder.weight") ? "" : ", tied");
    cli_print_descent(stream, job);
    fprintf(stream, "of which   error %.6g, weight decay %.6g, sparsity %.6g\n", shoal_result_number(result, "error"),
            shoal_result_number(result, "decay"), shoal_result_number(result, "divergence"));
    print_activity(stream, shoal_result_tensor(result, "activity"));
}

static int check_result(const cli_job *job, const void *context)
{
    const shoal_tensor *encoder = shoal_result_tensor(job->result, "encoder.weight"),
                       *decoder = shoal_result_tensor(job->result, "decoder.weight");
    int64_t hidden = encoder && encoder->rank == 2 ? encoder->shape[0] : 0;
    (void)context;
    return hidden >= 1 && cli_is_matrix(encoder, hidden, job->columns) &&
                   cli_is_vector(shoal_result_tensor(job->result, "encoder.bias"), hidden) &&
                   cli_is_vector(shoal_result_tensor(job->result, "activity"), hidden) &&
                   cli_is_vector(shoal_result_tensor(job->result, "decoder.bias"), job->columns) &&
                   (!decoder || cli_is_matrix(decoder, job->columns, hidden))
               ? SHOAL_OK
               : shoal_fail(SHOAL_BROKEN, "the result of job %s is not that of an autoencoder on its data",
                            job->away.id);
}

/* Everything a run writes, in the order in which it is told. */
enum { OUTPUTS = 4 };
static void list_outputs(cli_file out[OUTPUTS + 1], const outputs *from, const cli_trace_settings *trace)
{
    const cli_file all[OUTPUTS + 1] = {{"--model", from->model},
                                       {"--features", from->features},
                                       {"--picture", from->picture},
                                       {"--trace", trace->trace},
                                       {0}};
    memcpy(out, all, sizeof all);
}

static void add_json(json_t **object, const cli_job *job, const void *context)
{
    (void)context;
    cli_json_put(object, "hidden", json_integer(shoal_result_tensor(job->result, "encoder.weight")->shape[0]));
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
                                               .follow = write_features,
                                               .summary = print_summary,
                                               .json = add_json,
                                               .kept = "the weights are those",
                                               .context = end});
}

/* Opens the rows again that a resumed job was submitted with. */
static int load_again(cli_job *job, const json_t *asked)
{
    int64_t rows = job->rows, columns = job->columns;
    int status = cli_wish_load(job, asked);
    if (status < 0)
        return shoal_fail(status, "--features: %s", shoal_error());
    if (job->rows != rows || job->columns != columns)
        status = shoal_fail(SHOAL_INVALID,
                            "%s: now %" PRId64 " rows of %" PRId64 " columns; the job had %" PRId64 " of %" PRId64,
                            job->data_name, job->rows, job->columns, rows, columns);
    return status;
}

int cli_autoencoder_finish(cli_job *job, const json_t *asked, const cli_print_settings *print)
{
    const cli_picture_settings picture = cli_picture_asked(json_object_get(asked, "more"));
    const cli_trace_settings trace = cli_asked_trace(asked);
    const json_t *data = json_object_get(asked, "data");
    ending end = {.outputs = {.model = cli_asked_path(asked, "model"),
                              .features = cli_asked_path(asked, "features"),
                              .picture = cli_asked_path(asked, "picture")},
                  .memory = json_integer_value(json_object_get(data, "memory")),
                  .options = json_object_get(asked, "options")};
    int status = end.outputs.picture ? cli_picture_find(&end.sheet, &picture, job->columns) : SHOAL_OK;
    if (status == SHOAL_OK && end.outputs.features && !job->data)
        status = load_again(job, asked);
    return status == SHOAL_OK ? end_run(job, &end, &trace, print) : status;
}

/* ---- the verb ---------------------------------------------------------------------------------------------------- */

/* What whoever resumes the job has to know beside options and outputs. */
static json_t *json_more(const settings *settings)
{
    json_t *object = json_object();
    cli_picture_json(&object, &settings->picture);
    return object;
}

static int run_autoencoder(void *from_main, const char *const *word, int words)
{
    settings *settings = from_main;
    const cli_file sources[] = {{"DATA", word[0]}, {"--start", settings->inputs.start}, {0}};
    cli_file written[OUTPUTS + 1];
    cli_learning learning = {.data_path = word[0],
                             .config = &settings->config,
                             .data = &settings->data,
                             .run = &settings->run,
                             .ranks = &settings->ranks,
                             .workers = &settings->workers,
                             .trace = &settings->trace,
                             .print = &settings->print,
                             .outputs = written};
    ending end = {.outputs = settings->outputs, .run = settings->run, .memory = settings->data.memory};
    json_t *options = NULL;
    start from = {0};
    cli_job job;
    (void)words;

    list_outputs(written, &settings->outputs, &settings->trace);
    cli_job_init(&job, &shoal_autoencoder, settings->print.quiet);
    job.keeps_part = true;
    int status = check_settings(settings);
    if (status == SHOAL_OK)
        status = cli_learning_check(&learning, sources);
    if (status == SHOAL_OK)
        status = cli_learning_load(&job, &learning);
    if (status == SHOAL_OK)
        status = load_start(&from, &settings->config, settings->inputs.start);
    if (status == SHOAL_OK && settings->outputs.picture)
        status = cli_picture_find(&end.sheet, &settings->picture, job.columns);
    if (status == SHOAL_OK)
        status = cli_learning_run(&job, &learning, json_more(settings));
    end.options = options = cli_options_json(shoal_autoencoder.options, &settings->config);
    if (status == SHOAL_OK && !job.away.detached)
        status = end_run(&job, &end, &settings->trace, &settings->print);
    cli_job_release(&job);
    json_decref(options);
    release_start(&from);
    return status;
}

static const char *const description[] = {
    "Trains a network of one hidden layer to give back what goes in. The cost is half the mean squared error of a "
    "row, plus --weight-decay times half the squared weights, plus --sparsity-weight times the divergence of each "
    "hidden unit's mean activation, over all rows, from --sparsity: the sparse autoencoder of Stanford's notes. What "
    "the hidden units come to prefer are features of the data. DATA is any file that shoal data info reads, or the URL "
    "of a .npy blob in a store; shoal data patches cuts one from images.",
    "Logistic outputs reach 0 to 1 and tanh outputs -1 to 1: data outside has to be mapped there by --scale, or "
    "--output linear reaches all. relu units have no mean activation to aim at: their sparsity is --sparsity-weight "
    "times the sum of the mean activations.",
    "The result depends on the data, the options under Learning, where it starts and --grain alone. The number of "
    "threads or workers and the kernel never change one bit of it.",
    "With --workers or --store the same is done by worker processes that meet only in a store, and the result has the "
    "same bits. Any of them may die or leave at any moment, and more may join; shoal job shows, stops, resumes and "
    "removes jobs.",
    "Started by mpirun or srun, all ranks run it together, each on its own part of the rows, and the result has the "
    "same bits; rank 0 alone prints and writes. With --checkpoint the same command and --resume goes on after a crash, "
    "with any number of ranks or threads.",
    "SIGINT (Ctrl-C), SIGTERM or SIGHUP ends the run after the round it is in: the files are written from the best "
    "point so far, a sentence on stderr says so, and the exit code is 130. A second signal ends it at once, and "
    "nothing is written. A run whose cost has no finite value any more ends with the last good model, and exit code 1.",
    NULL,
};

static const cli_example examples[] = {
    {"shoal autoencoder patches.npy --hidden 25 --picture units.png",
     "learn edges from what shoal data patches --normalise cut"},
    {"shoal autoencoder train-images-idx3-ubyte.gz --hidden 196 --scale 0:255 --sparsity 0.1 --model "
     "digits.safetensors",
     "pen strokes from digits"},
    {"shoal predict digits.safetensors t10k-images-idx3-ubyte.gz --features features.npy", "features of new rows"},
    {"shoal autoencoder whitened.npy --hidden 100 --output linear --sparsity 0.035 --sparsity-weight 5 --weight-decay "
     "1e-3",
     "rows of any range, such as patches that were centred and whitened"},
    {"shoal autoencoder rows.npy --hidden 50 --activation relu --sparsity-weight 0.01 --tied",
     "another kind of network"},
    {"shoal autoencoder rows.npy --start model.safetensors --model more.safetensors", "go on from an earlier model"},
    {"shoal autoencoder rows.npy --hidden 30 --workers local:4 --json", "with four processes, any of which may die"},
    {NULL, NULL},
};

const cli_verb cli_autoencoder = {
    .name = "autoencoder",
    .summary = "learn features of rows by a network that gives them back",
    .word = {"DATA"},
    .words_least = 1,
    .synopsis = "--hidden H [options]",
    .description = description,
    .examples = examples,
    .options = groups,
    .settings_size = sizeof(settings),
    .of_ranks = true,
    .run = run_autoencoder,
};
