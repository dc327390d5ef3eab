/* What the files of Gaussian naive Bayes share.
 *
 * bayes.c has options, rounds and the result; sums.c adds rows to sums that do not depend on the order; predict.c
 * applies a model; face.c is what people see.  docs/learn/bayes.md has the definitions. */
#ifndef BAYES_INTERNAL_H
#define BAYES_INTERNAL_H

#include "learn/classes.h"

#define BAYES_CALLED "naive Bayes"

typedef struct bayes_config {
    int64_t target;           /* as learn_target_place takes it */
    double smoothing;         /* share of the greatest variance of a column that is added to all variances */
    int priors;               /* BAYES_PRIORS_DATA, ... */
    int64_t expected_classes; /* for cost() alone, since only a run finds out how many there are; 0: 2 */
} bayes_config;

enum { BAYES_PRIORS_DATA, BAYES_PRIORS_UNIFORM };

extern const shoal_algorithm bayes_algorithm;

/* ---- rounds ------------------------------------------------------------------------------------------------------ */

enum { BAYES_SCAN, BAYES_MEANS, BAYES_VARIANCES, BAYES_PHASES };

/* What travels with every round.  Arrays of doubles follow it: see bayes_arrays_of.  A *table* has a row for each
 * class and a column for each of the data, so that the target has a place, too: in sums it is where weights are added
 * up. */
typedef struct bayes_model {
    int64_t phase;
    int64_t columns, target; /* of the data; the target, from 0, is among them */
    int64_t classes;         /* 0 in the scan */
    int64_t uniform;         /* every class has the same prior */
    double smoothing;
} bayes_model;

/* Pointers into a model; NULL where its phase has none. */
typedef struct bayes_arrays {
    double *label;  /* of each class, ascending; not in the scan */
    double *weight; /* of the rows of each class; in BAYES_VARIANCES */
    double *mean;   /* a table; in BAYES_VARIANCES */
    double *unit;   /* a power of two that values are multiplied by (sums.c): in BAYES_MEANS one for each column, in
                     * BAYES_VARIANCES a table */
} bayes_arrays;

size_t bayes_model_bytes(const bayes_model *model);
bayes_arrays bayes_arrays_of(const bayes_model *model);

/* ---- sums.c ------------------------------------------------------------------------------------------------------ */

/* Bits of a digit of the sums over this many rows. */
int bayes_bits(int64_t rows);
/* The power of two that brings values of up to `bound` below 2^bits. */
double bayes_unit(double bound, int bits);
bool bayes_unit_good(double unit);
/* Sum `index` of `count` in the digits of a WIDE cell, rounded once. */
double bayes_sum(const int64_t *digits, int64_t count, int64_t index, double unit, int bits);

/* Cells of the rounds. */
enum { BAYES_COLUMNS = LEARN_SCAN_CELLS };            /* BAYES_SCAN: MAX of |values| of each column */
enum { BAYES_SUMS, BAYES_GREATEST, BAYES_NEGATIVES }; /* BAYES_MEANS: tables; MAX of values, and of -values */
enum { BAYES_SQUARES };                               /* BAYES_VARIANCES: a table */

size_t bayes_scratch(const bayes_model *model, const shoal_shape *shape);
int bayes_scan_grain(shoal_partial *partial, const bayes_model *model, const shoal_grain *grain,
                     const shoal_scratch *scratch);
/* Sums of weights and of weighted values; sums of weighted squares of distances from the means. */
void bayes_sum_values(shoal_partial *partial, const bayes_model *model, const shoal_grain *grain,
                      const shoal_scratch *scratch);
void bayes_sum_squares(shoal_partial *partial, const bayes_model *model, const shoal_grain *grain,
                       const shoal_scratch *scratch);

/* ---- predict.c --------------------------------------------------------------------------------------------------- */

typedef struct bayes_predict_config {
    const double *classes, *means, *variances, *priors; /* means and variances: classes x columns */
    int64_t classes_count, columns;
    bool probabilities; /* also the probability of each class, float64 */
} bayes_predict_config;

/* Tensors: labels (float64, values of `classes`), probabilities (rows x classes, float64).  Of classes that are equally
 * likely the first is the label. */
extern const shoal_algorithm bayes_predict_algorithm;

#endif
