/* Models as files: safetensors whose metadata name the learner, its options and what it found.
 *
 *     status = learn_model_file_write(path, &learn_kmeans, &ended);
 *
 *     learn_model_file model = {0};
 *     int64_t hidden = 0, columns = rows->columns;     // 0: as many as there are, and at least one
 *     status = learn_model_file_open_as(&model, path, "autoencoder");
 *     if (status == SHOAL_OK)
 *         status = learn_model_file_matrix(&weights, &hidden, &columns, &model, "encoder.weight");
 *     if (status == SHOAL_OK)
 *         status = learn_model_file_number(&scale, &model, "scale");
 *     learn_model_file_close(&model);
 *
 * Every sentence names the file and the tensor or the entry.  A model may come from anyone: nothing in it is believed
 * unseen. */
#ifndef LEARN_MODEL_FILE_H
#define LEARN_MODEL_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "data/format/safetensors.h"
#include "learn/schema.h"

struct learn_face;
struct learn_ended;

/* Writes the parts of the model that the face names.  The metadata are "learner", "version", "rows" and "columns" of
 * the data, each number of the result under its name, each of the learner's options as "option.NAME", what the face
 * annotates, which counts most, and "schema": the columns as JSON (schema.h), unless there is nothing to say of
 * them. */
int learn_model_file_write(const char *path, const struct learn_face *face, const struct learn_ended *ended);
/* The bytes of that file, which the caller frees. */
int learn_model_file_make(void **out, size_t *size, const struct learn_face *face, const struct learn_ended *ended);

/* A model that is open. */
typedef struct learn_model_file {
    data_tensors *file;
    const char *path;    /* the caller's */
    const char *learner; /* "kmeans"; belongs to the model; NULL for tensors alone */
} learn_model_file;

/* Opens a model.  One without metadata that has "centres" is of kmeans; one that says nothing is refused. */
int learn_model_file_open(learn_model_file *out, const char *path);
/* The same of a file's bytes, which the caller keeps; messages call them `name`. */
int learn_model_file_parse(learn_model_file *out, const void *bytes, size_t size, const char *name);
/* Opens a file, and refuses a model of another learner. */
int learn_model_file_open_as(learn_model_file *out, const char *path, const char *learner);
/* Opens any tensors, also those of another program: `learner` is NULL then. */
int learn_model_file_open_tensors(learn_model_file *out, const char *path);
void learn_model_file_close(learn_model_file *model);

/* What the model remembers of its columns; all zero for one that remembers nothing.  The caller releases it. */
int learn_model_file_schema(learn_schema *out, const learn_model_file *model);

/* A tensor of two dimensions, or of one, as float64 whatever its type; all values are finite.  What is 0 in *rows,
 * *columns or *count is set to what there is, at least 1; anything else is what there must be.  The caller frees
 * *out. */
int learn_model_file_matrix(double **out, int64_t *rows, int64_t *columns, const learn_model_file *model,
                            const char *name);
int learn_model_file_vector(double **out, int64_t *count, const learn_model_file *model, const char *name);
/* The same of any shape, all of which must be as it is given, into memory of the caller. */
int learn_model_file_values(double *out, const learn_model_file *model, const char *name, int rank,
                            const int64_t *shape);
/* Whether there is such a tensor, of any shape or of this one. */
bool learn_model_file_has(const learn_model_file *model, const char *name);
bool learn_model_file_fits(const learn_model_file *model, const char *name, int rank, const int64_t *shape);

/* An entry of the metadata.  SHOAL_INVALID when it is missing or not of the kind; a number is finite. */
int learn_model_file_number(double *out, const learn_model_file *model, const char *key);
int learn_model_file_truth(bool *out, const learn_model_file *model, const char *key);
/* The index of the entry's text in `choices`, which are ended by NULL. */
int learn_model_file_choice(int *out, const learn_model_file *model, const char *key, const char *const *choices);
/* NULL when it is missing. */
const char *learn_model_file_text(const learn_model_file *model, const char *key);

#endif
