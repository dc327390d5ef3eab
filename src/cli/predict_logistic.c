/* Applying a model of logistic: the most probable class of each row, and the probabilities of all. */
#include "predict.h"

#include <inttypes.h>

/* Two classes have one row of weights, more have one each. */
static int load(cli_prediction *out, const cli_model *model, const char *path, const char *const *wanted)
{
    shoal_logistic_predict_config *config = &out->config.logistic;
    *config = (shoal_logistic_predict_config){.probabilities = wanted[CLI_PROBABILITIES] != NULL};
    int status = cli_model_vector(&out->values[0], &config->classes_count, model, "classes");
    if (status == SHOAL_OK && config->classes_count < 2)
        status = shoal_fail(SHOAL_INVALID,
                            "%s: tensor 'classes' has one value, but there are always two classes or more", path);
    if (status == SHOAL_OK)
        config->outputs = config->classes_count == 2 ? 1 : config->classes_count;
    if (status == SHOAL_OK)
        status = cli_model_matrix(&out->values[1], &config->outputs, &config->columns, model, "weights");
    if (status == SHOAL_OK)
        status = cli_model_vector(&out->values[2], &config->outputs, model, "intercept");
    config->classes = out->values[0];
    config->weights = out->values[1];
    config->intercept = out->values[2];
    out->columns = config->columns;
    return status;
}

/* How many rows have class `index`. */
static int64_t count_class(const cli_job *job, const shoal_logistic_predict_config *config, int64_t index)
{
    const shoal_tensor *labels = shoal_result_tensor(job->result, "labels");
    const double *label = labels->values;
    int64_t count = 0;
    for (int64_t i = 0; i < labels->shape[0]; i++)
        count += label[i] == config->classes[index];
    return count;
}

enum { CLASSES_SHOWN = 20 };

static void print_summary(FILE *stream, const cli_job *job, const cli_prediction *prediction)
{
    const shoal_logistic_predict_config *config = &prediction->config.logistic;
    const char *before = "classes    ";
    for (int64_t i = 0; i < config->classes_count && i < CLASSES_SHOWN; i++) {
        fprintf(stream, "%s%.10g: %" PRId64 " rows", before, config->classes[i], count_class(job, config, i));
        before = ", ";
    }
    if (config->classes_count > CLASSES_SHOWN)
        fprintf(stream, ", and %" PRId64 " more", config->classes_count - CLASSES_SHOWN);
    fputc('\n', stream);
}

/* Counts lie in the order of the classes: a label is a number, which no key of JSON can be. */
static void add_json(json_t **object, const cli_job *job, const cli_prediction *prediction)
{
    const shoal_logistic_predict_config *config = &prediction->config.logistic;
    json_t *classes = json_array(), *counts = json_array();
    for (int64_t i = 0; i < config->classes_count; i++) {
        json_array_append_new(classes, cli_json_real(config->classes[i]));
        json_array_append_new(counts, json_integer(count_class(job, config, i)));
    }
    cli_json_put(object, "classes", classes);
    cli_json_put(object, "counts", counts);
}

const cli_predictor cli_predict_logistic = {
    .learner = "logistic",
    .algorithm = &shoal_logistic_predict,
    .gives = {[CLI_LABELS] = true, [CLI_PROBABILITIES] = true},
    .load = load,
    .summary = print_summary,
    .json = add_json,
    .hint = ": leave out the column with the labels",
};
