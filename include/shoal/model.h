/* Models: what a run has found, kept, written, read and applied to rows.
 *
 *     shoal_model *model = NULL;
 *     shoal_application *apply = NULL;
 *     shoal_tensor about;
 *     int32_t *labels = NULL;
 *     int status = shoal_model_open(&model, "model.safetensors");             // or shoal_model_of(&model, outcome)
 *     if (status == SHOAL_OK) status = shoal_application_new(&apply, model);
 *     if (status == SHOAL_OK) status = shoal_application_set(apply, "data", "new.csv");  // or shoal_application_rows
 *     if (status == SHOAL_OK) status = shoal_application_load(apply);
 *     if (status == SHOAL_OK) status = shoal_application_output(&about, apply, "labels");
 *     if (status == SHOAL_OK) labels = malloc((size_t)about.shape[0] * sizeof *labels);
 *     if (status == SHOAL_OK)
 *         status = shoal_application_into(apply, "labels", labels, (size_t)about.shape[0] * sizeof *labels);
 *     if (status == SHOAL_OK) status = shoal_application_run(apply);
 *     shoal_application_free(&apply);
 *     shoal_model_free(&model);
 *
 * It is what `shoal predict` does, with the same options and the same bits. */
#ifndef SHOAL_MODEL_H
#define SHOAL_MODEL_H

#include <stddef.h>
#include <shoal/data.h>
#include <shoal/learn.h>
#include <shoal/run.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- models ------------------------------------------------------------------------------------------------------ */

/* Never changes: any number of applications may use it at the same time, from any threads. */
typedef struct shoal_model shoal_model;

/* Reads a model that a learner wrote with "model", as a safetensors file; or, for k-means, any data file whose rows are
 * centres.  SHOAL_INVALID names the file and what is wrong with it. */
SHOAL_API int shoal_model_open(shoal_model **out, const char *path);
/* The same of the bytes of a safetensors file, which are copied; messages call them `name`. */
SHOAL_API int shoal_model_read(shoal_model **out, const void *bytes, size_t size, const char *name);
/* What a run has found.  SHOAL_USAGE when it has no result, or its learner's models can't be applied. */
SHOAL_API int shoal_model_of(shoal_model **out, const shoal_outcome *outcome);
SHOAL_API void shoal_model_free(shoal_model **model);

/* The following belong to the model. */
/* "kmeans" */
SHOAL_API const char *shoal_model_learner(const shoal_model *model);
/* The bytes of the file that the run would write with "model"; NULL for a data file of centres. */
SHOAL_API const void *shoal_model_bytes(const shoal_model *model, size_t *size);
/* A tensor of the file by its name; its values may lie at any address.  SHOAL_ABSENT when there is none. */
SHOAL_API int shoal_model_tensor(shoal_tensor *out, const shoal_model *model, const char *name);
/* An entry of the file's metadata, such as "objective" or "option.seed"; NULL when there is none. */
SHOAL_API const char *shoal_model_text(const shoal_model *model, const char *key);
/* How many columns rows must have; the names of the columns, counted from 0, and the words that classes stand for, each
 * NULL for those beyond the last and where there are none. */
SHOAL_API int64_t shoal_model_columns(const shoal_model *model);
SHOAL_API const char *shoal_model_column_name(const shoal_model *model, int64_t column);
SHOAL_API const char *shoal_model_class_name(const shoal_model *model, int64_t number);

/* ---- applying them ----------------------------------------------------------------------------------------------- */

typedef struct shoal_application shoal_application;

/* The model must last as long. */
SHOAL_API int shoal_application_new(shoal_application **out, const shoal_model *model);
SHOAL_API void shoal_application_free(shoal_application **application);
/* Sets an option of `shoal predict` by its long name from text, "data" being the path; those of outputs name files to
 * write.  NULL resets an option.  SHOAL_USAGE with a sentence that names it.  The text is copied. */
SHOAL_API int shoal_application_set(shoal_application *application, const char *name, const char *text);
/* Rows in memory instead of "data", and a weight for each, which the objective of k-means knows, or NULL.  They still
 * belong to the caller, and must last. */
SHOAL_API int shoal_application_rows(shoal_application *application, shoal_data *rows, const double *weights);
SHOAL_API void shoal_application_watch(shoal_application *application, const shoal_watcher *watcher);

/* Reads the rows and matches their columns with the model's.  Once. */
SHOAL_API int shoal_application_load(shoal_application *application);
/* Once it is loaded: type and shape of an output, without values.  SHOAL_USAGE, with those that there are, for one that
 * models of this learner do not give. */
SHOAL_API int shoal_application_output(shoal_tensor *out, const shoal_application *application, const char *name);
/* Asks for an output, to be put straight into memory of the caller, who keeps it; `bytes` is what the output takes.
 * After a failure or a stop it may hold anything. */
SHOAL_API int shoal_application_into(shoal_application *application, const char *name, void *values, size_t bytes);
/* Computes what is asked for and writes the files that the options name; loads first if nobody did.  Once. */
SHOAL_API int shoal_application_run(shoal_application *application);
/* What came of it: numbers, such as "objective", and the tensors.  Belongs to the application. */
SHOAL_API const shoal_result *shoal_application_result(const shoal_application *application);
/* After a run with the option "score": the numbers that `shoal predict --score --json` prints, such as "accuracy" and
 * "error".  Free it with shoal_result_free. */
SHOAL_API int shoal_application_score(shoal_result **out, const shoal_application *application);

#ifdef __cplusplus
}
#endif
#endif
