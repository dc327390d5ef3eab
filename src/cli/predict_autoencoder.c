/* Applying a model of autoencoder: what the hidden layer makes of each row. */
#include "predict.h"

#include <inttypes.h>

static int load(cli_prediction *out, const cli_model *model, const char *path, const char *const *wanted)
{
    shoal_features_config *config = &out->config.features;
    *config = (shoal_features_config){0};
    (void)path;
    (void)wanted;
    int status = cli_model_matrix(&out->values[0], &config->hidden, &config->columns, model, "encoder.weight");
    if (status == SHOAL_OK)
        status = cli_model_vector(&out->values[1], &config->hidden, model, "encoder.bias");
    if (status == SHOAL_OK)
        status = cli_model_choice(&config->activation, model, "option.activation",
                                  cli_option_choices(shoal_autoencoder.options, "activation"));
    if (status == SHOAL_OK)
        status = cli_model_choice(&config->precision, model, "option.precision",
                                  cli_option_choices(shoal_autoencoder.options, "precision"));
    if (status == SHOAL_OK)
        status = cli_model_number(&config->scale, model, "scale");
    if (status == SHOAL_OK)
        status = cli_model_number(&config->shift, model, "shift");
    config->encoder = out->values[0];
    config->bias = out->values[1];
    out->columns = config->columns;
    return status;
}

/* A precision that was left to the data is left to these. */
static int settle(cli_prediction *prediction, const cli_job *job)
{
    shoal_features_config *config = &prediction->config.features;
    if (config->precision == 0)
        config->precision = job->type == SHOAL_FLOAT64 ? 2 : 1;
    return SHOAL_OK;
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

static void print_summary(FILE *stream, const cli_job *job, const cli_prediction *prediction)
{
    fprintf(stream, "hidden     %" PRId64 " units, mean activation %.6g\n", prediction->config.features.hidden,
            mean_of(shoal_result_tensor(job->result, "features")));
}

static void add_json(json_t **object, const cli_job *job, const cli_prediction *prediction)
{
    cli_json_put(object, "hidden", json_integer(prediction->config.features.hidden));
    cli_json_put(object, "activation", cli_json_real(mean_of(shoal_result_tensor(job->result, "features"))));
}

const cli_predictor cli_predict_autoencoder = {
    .learner = "autoencoder",
    .algorithm = &shoal_features,
    .gives = {[CLI_FEATURES] = true},
    .load = load,
    .settle = settle,
    .summary = print_summary,
    .json = add_json,
};
