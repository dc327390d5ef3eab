/* Your own learner, in its own file: `shoal run mine.c data.npy`.
 *
 *     #include <shoal/module.h>
 *
 *     static void add_rows(double *sum, const double *model, const shoal_rows *rows, const shoal_setting *setting)
 *     {
 *         for (int64_t i = 0; i < rows->count; i++)
 *             for (int64_t j = 0; j < rows->columns; j++)
 *                 sum[j] += rows->values[i * rows->columns + j];
 *     }
 *
 *     SHOAL_MODULE(.map = add_rows);
 *
 * is the sum of every column.  `map` sees a run of rows (a grain) and adds to sums that start at zero; sums of
 * different grains are added without any rounding, so the result's bits are the same for any number of threads, workers
 * and machines.  With `update` there are rounds: it makes the next model from the last one and the sums, until it says
 * that it is done.
 *
 * Everything else has a default: as many sums as there are columns; as many numbers in the model as there are sums; a
 * model of zeros at first; one round, whose sums are the result.  A learner that needs more than sums of doubles
 * provides the full interface (shoal/learn.h) instead: SHOAL_MODULE(.algorithm = &mine).  --params then sets the
 * options of that table by name. */
#ifndef SHOAL_MODULE_H
#define SHOAL_MODULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <shoal/learn.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The rows of one grain, or some of a batch, as doubles whatever their type. */
typedef struct shoal_rows {
    const double *values;  /* count * columns */
    const double *weights; /* one per row, or NULL if unweighted */
    int64_t count, columns;
    int64_t first;      /* number of the first one in the whole data set, counted from 0; of a batch: -1 */
    const int64_t *row; /* of a batch: the number of each; otherwise NULL */
} shoal_rows;

/* What stays the same through a run. */
typedef struct shoal_setting {
    int64_t rows, columns; /* of the whole data set */
    int64_t sums, numbers; /* how many sums a round has, and numbers the model; 0 while they are being asked for */
    int64_t seen;          /* rows that this round sees: all, or those of its batch; 0 while they are being asked for */
    int64_t epoch;         /* of this round's batch, counted from 0; an epoch's batches are every row once */
    const struct shoal_params *params; /* what --params said; see shoal_param */
    const shoal_blobs *from, *to;      /* of maps: --blobs-from and --blobs-to; NULL without; see shoal_setting_get */
} shoal_setting;

/* A number of --params by its name, `fallback` when there is none: --params '{"rate": 0.1}'.  true and false are 1 and
 * 0. */
SHOAL_API double shoal_param(const shoal_setting *setting, const char *name, double fallback);
/* A list of numbers of --params: how many there are, 0 when there is none; *out belongs to the setting. */
SHOAL_API int64_t shoal_param_list(const shoal_setting *setting, const char *name, const double **out);
/* A text of --params, `fallback` when there is none. */
SHOAL_API const char *shoal_param_text(const shoal_setting *setting, const char *name, const char *fallback);

/* Gets a blob of --blobs-from, and puts one in --blobs-to: photographs, say, and what was made of them.  For map, which
 * may be called twice for the same rows: what it puts must depend on these rows, the model and the parameters alone.
 * SHOAL_OK, or a failure, which ends the run whatever map makes of it. */
SHOAL_API int shoal_setting_get(const shoal_setting *setting, const char *name, void **bytes, size_t *size);
SHOAL_API void shoal_setting_release(const shoal_setting *setting, void **bytes);
SHOAL_API int shoal_setting_put(const shoal_setting *setting, const char *name, const void *bytes, size_t size);

enum { SHOAL_MODULE_VERSION = 2 };

typedef struct shoal_module {
    uint32_t version, bytes; /* SHOAL_MODULE sets them */
    const char *summary;     /* one line, or NULL */

    /* How many sums a round has, and how many numbers the model; NULL for the defaults.  What shoal_fail returned,
     * which is negative, refuses the data or the parameters. */
    int64_t (*sums)(const shoal_setting *setting);
    int64_t (*numbers)(const shoal_setting *setting);
    /* Fills the first model, which is zero before; NULL leaves it zero.  SHOAL_OK, or what shoal_fail returned. */
    int (*start)(double *model, const shoal_setting *setting);
    /* Adds what the rows contribute.  Called from many threads at once, in any order, possibly twice for the same rows:
     * it keeps no state.  Sums must be finite. */
    void (*map)(double *sum, const double *model, const shoal_rows *rows, const shoal_setting *setting);
    /* Changes the model by the merged sums of round `round` (0 is the first); true: that was the last round.  NULL:
     * there is one round, and its sums are the result. */
    bool (*update)(double *model, const double *sum, int64_t round, const shoal_setting *setting);
    /* How many rows round `round` sees, 0 for all; NULL: every round sees all.  They are a random sample, the same on
     * any number of threads and workers, and batches that follow each other go on through the same epoch, at whose end
     * there may be fewer.  The order depends on the parameter "seed" (default: 0) and the epoch, which the setting
     * has.  What shoal_fail returned refuses the parameters. */
    int64_t (*batch)(int64_t round, const shoal_setting *setting);
    /* How far things are, of the model that the sums were made with: progress and the trace show it.  May be NULL. */
    double (*objective)(const double *model, const double *sum, const shoal_setting *setting);

    const shoal_algorithm *algorithm; /* the full interface instead of all this */
} shoal_module;

#ifdef __cplusplus
#define SHOAL_MODULE_EXPORT extern "C" __attribute__((visibility("default")))
#else
#define SHOAL_MODULE_EXPORT __attribute__((visibility("default")))
#endif

/* Defines the module of this file.  In C++ it needs C++20. */
#define SHOAL_MODULE(...)                                                                                              \
    SHOAL_MODULE_EXPORT const shoal_module shoal_module_table = {                                                      \
        .version = SHOAL_MODULE_VERSION, .bytes = sizeof(shoal_module), __VA_ARGS__}

#ifdef __cplusplus
}
#endif
#endif
