/* How a model of each learner is applied: one cli_predictor a learner, listed in cli_predict.c.  The option that asks
 * for an output and the tensor of the result that it writes have one name. */
#ifndef CLI_PREDICT_H
#define CLI_PREDICT_H

#include "cli.h"
#include "model_file.h"

/* What predictions can give, in the order of cli_predict_names. */
enum { CLI_LABELS, CLI_DISTANCES, CLI_PROBABILITIES, CLI_FEATURES, CLI_PREDICT_OUTPUTS };
extern const char *const cli_predict_names[CLI_PREDICT_OUTPUTS];

/* A model in memory, ready to be run. */
typedef struct cli_prediction {
    union {
        shoal_predict_config kmeans;
        shoal_logistic_predict_config logistic;
        shoal_features_config features;
    } config;
    int64_t columns;   /* that rows must have */
    double *values[3]; /* what config points to; freed by who has the prediction */
} cli_prediction;

typedef struct cli_predictor {
    const char *learner; /* as models name it */
    const shoal_algorithm *algorithm;
    bool gives[CLI_PREDICT_OUTPUTS];
    /* Reads the model.  `model` is NULL when the file at `path` is no safetensors, for which only kmeans is
     * asked.  `wanted` has a path for each output that is. */
    int (*load)(cli_prediction *out, const cli_model *model, const char *path, const char *const *wanted);
    /* Optional.  Sets what depends on the data as well. */
    int (*settle)(cli_prediction *prediction, const cli_job *job);
    /* Prints the lines between "data" and "time", and adds to what --json prints. */
    void (*summary)(FILE *stream, const cli_job *job, const cli_prediction *prediction);
    void (*json)(json_t **object, const cli_job *job, const cli_prediction *prediction);
    const char *hint; /* for rows of one column more than the model has; NULL for none */
} cli_predictor;

extern const cli_predictor cli_predict_kmeans, cli_predict_logistic, cli_predict_autoencoder;

#endif
