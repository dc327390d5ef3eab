/* Applying a model of kmeans: the nearest centre of each row. */
#include "predict.h"

#include <inttypes.h>

/* Any data file whose rows are centres is a model, too. */
static int load(cli_prediction *out, const cli_model *model, const char *path, const char *const *wanted)
{
    shoal_predict_config *config = &out->config.kmeans;
    *config = (shoal_predict_config){.distances = wanted[CLI_DISTANCES] != NULL};
    int status = model ? cli_model_matrix(&out->values[0], &config->k, &config->columns, model, "centres")
                       : cli_read_float64(&out->values[0], &config->k, &config->columns, path);
    config->centres = out->values[0];
    out->columns = config->columns;
    return status;
}

static void print_summary(FILE *stream, const cli_job *job, const cli_prediction *prediction)
{
    fprintf(stream, "centres    %" PRId64 "\n", prediction->config.kmeans.k);
    fprintf(stream, "objective  %.10g\n", shoal_result_number(job->result, "objective"));
}

static void add_json(json_t **object, const cli_job *job, const cli_prediction *prediction)
{
    (void)job;
    cli_json_put(object, "k", json_integer(prediction->config.kmeans.k));
}

const cli_predictor cli_predict_kmeans = {
    .learner = "kmeans",
    .algorithm = &shoal_kmeans_predict,
    .gives = {[CLI_LABELS] = true, [CLI_DISTANCES] = true},
    .load = load,
    .summary = print_summary,
    .json = add_json,
};
