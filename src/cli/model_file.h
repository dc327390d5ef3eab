/* Models as files: safetensors whose metadata name the learner, its options and what it found.
 *
 *     static const char *const parts[] = {"encoder.weight", "encoder.bias", NULL};
 *     status = cli_model_write(path, job, parts, options, NULL);
 *
 *     cli_model model = {0};
 *     int64_t hidden = 0, columns = job->columns;        // 0: as many as there are, and at least one
 *     status = cli_model_open_as(&model, path, "autoencoder");
 *     if (status == SHOAL_OK)
 *         status = cli_model_matrix(&weights, &hidden, &columns, &model, "encoder.weight");
 *     if (status == SHOAL_OK)
 *         status = cli_model_number(&scale, &model, "scale");
 *     cli_model_close(&model);
 *
 * Every sentence names the file and the tensor or the entry.  A model may come from anyone: nothing in it is believed
 * unseen. */
#ifndef CLI_MODEL_FILE_H
#define CLI_MODEL_FILE_H

#include "cli.h"
#include "data/safetensors.h"

/* Writes the tensors of the result that `parts` names (ended by NULL; those that the result does not have are left
 * out).  The metadata are "learner", "version", "rows" and "columns" of the data, each number of the result under its
 * name, each of `options` (cli_options_json, or what a job's settings keep as "options") as "option.NAME", and `more`,
 * which is ended by a row without a key or NULL and counts most.  Does nothing without a path. */
int cli_model_write(const char *path, const cli_job *job, const char *const *parts, const json_t *options,
                    const data_metadata *more);

/* A model that is open. */
typedef struct cli_model {
    data_tensors *file;
    const char *path;    /* the caller's */
    const char *learner; /* "kmeans"; belongs to the model */
} cli_model;

/* Opens a model.  One without metadata that has "centres" is of kmeans; one that says nothing is refused. */
int cli_model_open(cli_model *out, const char *path);
/* The same, and refuses a model of another learner. */
int cli_model_open_as(cli_model *out, const char *path, const char *learner);
void cli_model_close(cli_model *model);

/* A tensor of two dimensions, or of one, as float64 whatever its type; all values are finite.  What is 0 in *rows,
 * *columns or *count is set to what there is, at least 1; anything else is what there must be.  The caller frees
 * *out. */
int cli_model_matrix(double **out, int64_t *rows, int64_t *columns, const cli_model *model, const char *name);
int cli_model_vector(double **out, int64_t *count, const cli_model *model, const char *name);
/* Whether there is such a tensor. */
bool cli_model_has(const cli_model *model, const char *name);

/* An entry of the metadata.  SHOAL_INVALID when it is missing or not of the kind; a number is finite. */
int cli_model_number(double *out, const cli_model *model, const char *key);
int cli_model_truth(bool *out, const cli_model *model, const char *key);
/* The index of the entry's text in `choices`, which are ended by NULL. */
int cli_model_choice(int *out, const cli_model *model, const char *key, const char *const *choices);
/* NULL when it is missing. */
const char *cli_model_text(const cli_model *model, const char *key);

#endif
