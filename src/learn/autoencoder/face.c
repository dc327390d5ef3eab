/* What people see of autoencoders.  See learn/face.h. */
#include "base/text.h"
#include "learn/face.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <shoal/autoencoder.h>

#include "base/memory.h"
#include "learn/autoencoder/autoencoder_internal.h"

/* ---- before the run ---------------------------------------------------------------------------------------------- */

static const shoal_option inputs[] = {
    {"start", 0, SHOAL_OPTION_TEXT, offsetof(learn_inputs, start), "MODEL",
     .help = "start from a model that an earlier run wrote with --model, with the same columns and hidden units"},
    LEARN_STANDARDISE,
    {0},
};

static int check_autoencoder(const void *from, const learn_inputs *given)
{
    const shoal_autoencoder_config *config = from;
    if (config->hidden == 0 && !given->start)
        return shoal_fail(SHOAL_USAGE, "autoencoder needs --hidden H, the number of hidden units");
    if (config->seed != 0 && given->start)
        return shoal_fail(SHOAL_USAGE, "--seed: the first weights are those of --start, so that none are drawn");
    return SHOAL_OK;
}

static const char *start_file(const char **option, const void *config, const learn_inputs *given)
{
    (void)config;
    *option = "--start";
    return given->start;
}

static bool has_linear_outputs(int output, int activation)
{
    return output == SHOAL_OUTPUT_LINEAR || (output == SHOAL_OUTPUT_AUTO && activation == SHOAL_RELU);
}

/* Weights found with other units can't be a start.  A model from elsewhere may lack its kind of outputs. */
static int check_units(const learn_model_file *model, const shoal_autoencoder_config *config, const char *path)
{
    const char *const *activations = learn_option_choices(shoal_autoencoder.options, "activation");
    const char *const *outputs = learn_option_choices(shoal_autoencoder.options, "output");
    int activation = 0, output = config->output;
    int status = learn_model_file_choice(&activation, model, "option.activation", activations);
    if (status == SHOAL_OK && learn_model_file_text(model, "option.output"))
        status = learn_model_file_choice(&output, model, "option.output", outputs);
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
static int settle_autoencoder(void *into, double *values[4], const learn_inputs *given, const learn_rows *about)
{
    shoal_autoencoder_config *config = into;
    int64_t *hidden = &config->start_hidden, *columns = &config->start_columns;
    learn_model_file model = {0};
    (void)about;
    if (!given->start)
        return SHOAL_OK;
    int status = learn_model_file_open_as(&model, given->start, "autoencoder");
    if (status == SHOAL_OK)
        status = learn_model_file_matrix(&values[0], hidden, columns, &model, "encoder.weight");
    if (status == SHOAL_OK)
        status = learn_model_file_vector(&values[1], hidden, &model, "encoder.bias");
    if (status == SHOAL_OK && learn_model_file_has(&model, "decoder.weight"))
        status = learn_model_file_matrix(&values[2], columns, hidden, &model, "decoder.weight");
    if (status == SHOAL_OK)
        status = learn_model_file_vector(&values[3], columns, &model, "decoder.bias");
    if (status == SHOAL_OK)
        status = check_units(&model, config, given->start);
    learn_model_file_close(&model);
    if (config->hidden == 0)
        config->hidden = config->start_hidden;
    config->start_encoder = values[0];
    config->start_encoder_bias = values[1];
    config->start_decoder = values[2];
    config->start_decoder_bias = values[3];
    return status;
}

/* ---- after the run ----------------------------------------------------------------------------------------------- */

static const learn_output outputs[] = {
    {"model", 'm', "FILE.safetensors", "write the model: encoder and decoder, for shoal predict", .kind = LEARN_MODEL},
    {"features", 'f', "FILE", "write the hidden activations of each row: H columns, in the precision of the run",
     .kind = LEARN_APPLIED, .rank = 2, .of_rows = true},
    {"picture", 0, "FILE", "draw the input that each hidden unit prefers as small images side by side: .png or .svg",
     .kind = LEARN_PICTURE},
    {0},
};

static const char *const parts[] = {"encoder.weight", "encoder.bias", "decoder.weight",
                                    "decoder.bias",   "activity",     NULL};

/* The input of norm 1 that excites unit i most is its weights divided by their norm (Ng, "Sparse autoencoder").  Each
 * image is scaled by its own greatest magnitude, so that a unit of small weights is seen as well as one of large
 * ones. */
static int draw(data_sheet *sheet, double **images, const learn_ended *ended)
{
    const shoal_tensor *encoder = shoal_result_tensor(ended->result, "encoder.weight");
    int64_t hidden = encoder->shape[0], columns = encoder->shape[1];
    int status = base_alloc(images, (size_t)(hidden * columns), sizeof **images, "a picture");
    for (int64_t i = 0; status == SHOAL_OK && i < hidden; i++) {
        const double *weights = (const double *)encoder->values + i * columns;
        double most = 0;
        for (int64_t k = 0; k < columns; k++)
            most = fmax(most, fabs(weights[k]));
        for (int64_t k = 0; k < columns && most > 0; k++)
            (*images)[i * columns + k] = weights[k] / most;
    }
    sheet->centred = true;
    sheet->values = *images;
    sheet->images = hidden;
    return status;
}

static void summarise_activity(learn_lines *lines, const shoal_tensor *activity)
{
    const double *mean = activity->values;
    double least = mean[0], most = mean[0];
    for (int64_t i = 1; i < activity->shape[0]; i++) {
        least = fmin(least, mean[i]);
        most = fmax(most, mean[i]);
    }
    learn_say(lines, "activity", "from %.4g to %.4g, the mean of each unit over all rows", least, most);
}

static void summarise_autoencoder(learn_lines *lines, const learn_ended *ended)
{
    const shoal_result *result = ended->result;
    const shoal_autoencoder_config *config = ended->config;
    const shoal_tensor *encoder = shoal_result_tensor(result, "encoder.weight");
    const char *const *activations = learn_option_choices(shoal_autoencoder.options, "activation");
    learn_say(lines, "network", "%" PRId64 "-%" PRId64 "-%" PRId64 ", %s%s", encoder->shape[1], encoder->shape[0],
              encoder->shape[1], activations[config->activation],
              shoal_result_tensor(result, "decoder.weight") ? "" : ", tied");
    learn_say_descent(lines, ended);
    learn_say(lines, "of which", "error %.6g, weight decay %.6g, sparsity %.6g", shoal_result_number(result, "error"),
              shoal_result_number(result, "decay"), shoal_result_number(result, "divergence"));
    summarise_activity(lines, shoal_result_tensor(result, "activity"));
}

static int tell_autoencoder(shoal_result *facts, const learn_ended *ended)
{
    shoal_result_set_whole(facts, "hidden", shoal_result_tensor(ended->result, "encoder.weight")->shape[0]);
    return SHOAL_OK;
}

/* ---- applying a model -------------------------------------------------------------------------------------------- */

static const learn_output predictions[] = {
    {"features", 'f', "FILE", "write the hidden activations of each row, one column per hidden unit",
     .kind = LEARN_TENSOR, .rank = 2},
    {0},
};

/* Only --score needs it, and a model from elsewhere may do without.  It is kept as hidden x columns; when tied, it is
 * the encoder. */
static int load_decoder(learn_applied *out, const learn_model_file *model)
{
    const shoal_features_config *config = out->config;
    int64_t hidden = config->hidden, columns = config->columns;
    double *decoder = NULL;
    int output = SHOAL_OUTPUT_AUTO, status = SHOAL_OK;
    if (!learn_model_file_has(model, "decoder.bias"))
        return SHOAL_OK;
    if (learn_model_file_text(model, "option.output"))
        status = learn_model_file_choice(&output, model, "option.output",
                                         learn_option_choices(shoal_autoencoder.options, "output"));
    if (status == SHOAL_OK)
        status = learn_model_file_vector(&out->values[3], &columns, model, "decoder.bias");
    if (status == SHOAL_OK && learn_model_file_has(model, "decoder.weight"))
        status = learn_model_file_matrix(&decoder, &columns, &hidden, model, "decoder.weight");
    if (status == SHOAL_OK && decoder)
        status = base_alloc(&out->values[2], (size_t)(hidden * columns), sizeof *decoder, "the decoder");
    for (int64_t k = 0; k < columns && status == SHOAL_OK && decoder; k++)
        for (int64_t j = 0; j < hidden; j++)
            out->values[2][j * columns + k] = decoder[k * hidden + j];
    out->linear = has_linear_outputs(output, config->activation);
    base_free(&decoder);
    return status;
}

static int load_autoencoder(learn_applied *out, const learn_model_file *model, const char *path)
{
    shoal_features_config *config = out->config;
    (void)path;
    int status = learn_model_file_matrix(&out->values[0], &config->hidden, &config->columns, model, "encoder.weight");
    if (status == SHOAL_OK)
        status = learn_model_file_vector(&out->values[1], &config->hidden, model, "encoder.bias");
    if (status == SHOAL_OK)
        status = learn_model_file_choice(&config->activation, model, "option.activation",
                                         learn_option_choices(shoal_autoencoder.options, "activation"));
    if (status == SHOAL_OK)
        status = learn_model_file_choice(&config->precision, model, "option.precision",
                                         learn_option_choices(shoal_autoencoder.options, "precision"));
    if (status == SHOAL_OK)
        status = learn_model_file_number(&config->scale, model, "scale");
    if (status == SHOAL_OK)
        status = learn_model_file_number(&config->shift, model, "shift");
    config->encoder = out->values[0];
    config->bias = out->values[1];
    out->columns = config->columns;
    return status == SHOAL_OK ? load_decoder(out, model) : status;
}

/* Points into the result, which has to last as long. */
static int load_ended(learn_applied *out, const learn_ended *ended)
{
    const shoal_autoencoder_config *learned = ended->config;
    const shoal_tensor *encoder = shoal_result_tensor(ended->result, "encoder.weight");
    *(shoal_features_config *)out->config =
        (shoal_features_config){.encoder = encoder->values,
                                .bias = shoal_result_tensor(ended->result, "encoder.bias")->values,
                                .hidden = encoder->shape[0],
                                .columns = encoder->shape[1],
                                .activation = learned->activation,
                                .precision = learned->precision,
                                .scale = shoal_result_number(ended->result, "scale"),
                                .shift = shoal_result_number(ended->result, "shift")};
    out->columns = encoder->shape[1];
    return SHOAL_OK;
}

/* A precision that was left to the data is left to these. */
static void settle_precision(learn_applied *applied, const learn_rows *rows)
{
    shoal_features_config *config = applied->config;
    if (config->precision == 0)
        config->precision = rows->type == SHOAL_FLOAT64 ? 2 : 1;
}

static void shape_features(int64_t *columns, shoal_type *type, const learn_applied *applied, const char *output)
{
    const shoal_features_config *config = applied->config;
    (void)output;
    *columns = config->hidden;
    *type = config->precision == 2 ? SHOAL_FLOAT64 : SHOAL_FLOAT32;
}

static double mean_of(const shoal_tensor *features)
{
    int64_t count = features->shape[0] * features->shape[1];
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += features->type == SHOAL_FLOAT64 ? ((const double *)features->values)[i]
                                               : (double)((const float *)features->values)[i];
    return sum / (double)count;
}

static void summarise_features(learn_lines *lines, const learn_applied *applied, const shoal_result *result)
{
    const shoal_features_config *config = applied->config;
    learn_say(lines, "hidden", "%" PRId64 " unit%s, mean activation %.6g", config->hidden, base_plural(config->hidden),
              mean_of(shoal_result_tensor(result, "features")));
}

static int tell_features(shoal_result *facts, const learn_applied *applied, const shoal_result *result)
{
    const shoal_features_config *config = applied->config;
    shoal_result_set_whole(facts, "hidden", config->hidden);
    shoal_result_set(facts, "activation", mean_of(shoal_result_tensor(result, "features")));
    return SHOAL_OK;
}

static int score(shoal_result *facts, const learn_applied *applied, const shoal_result *result, shoal_data *rows,
                 int threads)
{
    const shoal_features_config *config = applied->config;
    const autoencoder_way_back back = {.weights = applied->values[2] ? applied->values[2] : applied->values[0],
                                       .bias = applied->values[3],
                                       .hidden = config->hidden,
                                       .columns = config->columns,
                                       .activation = config->activation,
                                       .linear = applied->linear,
                                       .scale = config->scale,
                                       .shift = config->shift};
    double error = NAN;
    if (!back.bias)
        return shoal_fail(SHOAL_INVALID, "--score: the model has no tensor 'decoder.bias'");
    int status = autoencoder_reconstruction(&error, &back, rows, shoal_result_tensor(result, "features"), threads);
    shoal_result_set(facts, "error", error);
    return status;
}

static const learn_predictor predictor = {
    .algorithm = &shoal_features,
    .outputs = predictions,
    .load = load_autoencoder,
    .load_ended = load_ended,
    .settle = settle_precision,
    .shape = shape_features,
    .summarise = summarise_features,
    .tell = tell_features,
    .score = score,
};

/* ---- the face ---------------------------------------------------------------------------------------------------- */

static const learn_probe probe = {
    .size_option = "hidden",
    .set = {{"iterations", "10"}, {"tolerance", "0"}, {"change", "0"}},
    .shape = {{8, "4"}, {64, "10"}, {64, "100"}, {256, "32"}},
};

static const char *const description[] = {
    "Trains a network with one hidden layer to reconstruct its input. The cost is half the mean squared error of a "
    "row, plus --weight-decay times half the squared weights, plus --sparsity-weight times the divergence of each "
    "hidden unit's mean activation, over all rows, from --sparsity: the sparse autoencoder of Stanford's notes. What "
    "the hidden units respond to are features of the data. DATA is any file that shoal data info reads, or the URL "
    "of a .npy blob in a store; shoal data patches cuts one from images.",
    "Logistic outputs lie between 0 and 1, tanh outputs between -1 and 1: map other data there with --rescale, or use "
    "--output linear. relu units have no target activation: their sparsity term is --sparsity-weight times the sum of "
    "the mean activations.",
    "The result depends on the data, the options under Learning, the start and --grain. The number of threads or "
    "workers and the kernel never change one bit of it.",
    "SIGINT (Ctrl-C), SIGTERM or SIGHUP ends the run after the round it is in: the files are written from the best "
    "point so far, a sentence on stderr says so, and the exit code is 130. A second signal ends it at once, and "
    "nothing is written. A run whose cost is no longer finite ends with the last good model, and exit code 1.",
    NULL,
};

static const learn_example examples[] = {
    {"shoal autoencoder patches.npy --hidden 25 --picture units.png",
     "learn edges from patches that shoal data patches --normalise cut"},
    {"shoal autoencoder train-images-idx3-ubyte.gz --hidden 196 --rescale 0:255 --sparsity 0.1 --model "
     "digits.safetensors",
     "pen strokes from digits"},
    {"shoal predict digits.safetensors t10k-images-idx3-ubyte.gz --features features.npy", "features of new rows"},
    {"shoal autoencoder whitened.npy --hidden 100 --output linear --sparsity 0.035 --sparsity-weight 5 --weight-decay "
     "1e-3",
     "rows with values of any range, such as centred and whitened patches"},
    {"shoal autoencoder rows.npy --hidden 50 --activation relu --sparsity-weight 0.01 --tied",
     "another kind of network"},
    {"shoal autoencoder rows.npy --start model.safetensors --model more.safetensors", "continue from an earlier model"},
    {"shoal autoencoder rows.npy --hidden 30 --workers local:4 --json", "with four processes, any of which may die"},
    {NULL, NULL},
};

static const learn_example plan_examples[] = {
    {"shoal plan autoencoder --rows 10e6 --cols 784 --hidden 196 --iterations 400 --machines 'aws:us-east-1/c7i.*' "
     "--objective cost",
     "the cheapest machines for it"},
    {NULL, NULL},
};

const learn_face learn_autoencoder = {
    .algorithm = &shoal_autoencoder,
    .summary = "learn features with a network that reconstructs its rows",
    .synopsis = "--hidden H [options]",
    .description = description,
    .examples = examples,
    .plan_examples = plan_examples,
    .options_title = "Learning",
    .inputs_title = "Start and scaling",
    .inputs = inputs,
    .outputs = outputs,
    .keeps_part = true,
    .kept = "the weights are those",
    .check = check_autoencoder,
    .start_file = start_file,
    .settle = settle_autoencoder,
    .summarise = summarise_autoencoder,
    .tell = tell_autoencoder,
    .draw = draw,
    .parts = parts,
    .predictor = &predictor,
    .probe = &probe,
};
