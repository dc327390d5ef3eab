/* What the files of logistic regression share.
 *
 * logistic.c has options, the plan and how value and gradient come from sums; frame.c the coordinates of the search;
 * scan.c looks at the data; grain.c does the products of a grain, in float or double; link.c turns outputs into losses,
 * residuals and probabilities, always in double; predict.c applies a model. */
#ifndef LOGISTIC_INTERNAL_H
#define LOGISTIC_INTERNAL_H

#include <shoal/logistic.h>

#include "learn/classes.h"
#include "learn/gradient/gradient.h"

#define LOGISTIC_CALLED "logistic regression"
_Static_assert((int)SHOAL_LOGISTIC_CLASSES_MOST == (int)LEARN_CLASSES_MOST, "the scan counts as many");

/* What travels with every round.  Behind it lie, as doubles, once the scan has found them, the labels of the classes,
 * ascending, and the centre and the scale of each feature; and where to start: weights, intercepts and labels of an
 * earlier model. */
typedef struct logistic_own {
    int64_t target;            /* column of the labels, from 0 */
    int64_t features;          /* columns but that one */
    int64_t classes, outputs;  /* 0 before the scan */
    int64_t intercept, single; /* there is one; products are float32 */
    int64_t iterations, history;
    int64_t start_outputs, start_classes; /* 0 for a start at zero */
    double l1, l2, tolerance;
    double weight; /* of all rows */
} logistic_own;

static inline const double *logistic_classes(const logistic_own *own)
{
    return (const double *)(own + 1);
}

static inline const double *logistic_centre(const logistic_own *own)
{
    return logistic_classes(own) + own->classes;
}

static inline const double *logistic_scale(const logistic_own *own)
{
    return logistic_centre(own) + own->features;
}

static inline const double *logistic_start(const logistic_own *own)
{
    return own->classes ? logistic_scale(own) + own->features : logistic_classes(own);
}

/* Of the outputs, as few as tell the classes apart without giving any of many classes a place apart. */
static inline int64_t logistic_outputs(int64_t classes)
{
    return classes == 2 ? 1 : classes;
}

/* Of logistic.c; for tests. */
extern const gradient_class logistic_class;

/* ---- scan.c ------------------------------------------------------------------------------------------------------ */

void logistic_scan_layout(shoal_layout *layout, const void *own, const shoal_shape *shape);
size_t logistic_scan_scratch(const void *own, const shoal_shape *shape);
int logistic_scan(shoal_partial *partial, const void *own, const shoal_grain *grain, const shoal_scratch *scratch);

/* Bytes that the cells of a scan's partial take on the way. */
double logistic_scan_bytes(int64_t columns, int64_t classes);

/* About what a column's mean and variance are: good enough to scale by, and the same bits everywhere. */
void logistic_scan_column(double *mean, double *variance, const shoal_partial *merged, int64_t column, int64_t rows);

/* ---- frame.c: the coordinates in which L-BFGS searches ----------------------------------------------------------- */

/* Fills centre and scale of each feature. */
void logistic_frame_choose(double *centre, double *scale, const logistic_own *own, const shoal_partial *merged,
                           const shoal_shape *shape);
/* From coordinates to weights and intercepts (outputs each; 0 without an intercept), and back to coordinates. */
void logistic_frame_leave(double *weights, double *intercept, const double *x, const logistic_own *own);
void logistic_frame_enter(double *x, const double *weights, const double *intercept, const logistic_own *own);
/* The gradient by weights and intercepts, in place, becomes that by coordinates. */
void logistic_frame_gradient(double *gradient, const logistic_own *own);

/* ---- link.c: rows of outputs, in double -------------------------------------------------------------------------- */

/* A block of rows.  `spare` has room for a double a row, `most` for an int32. */
typedef struct logistic_block {
    int64_t rows, outputs;
    double *output; /* rows x outputs */
    double *spare;
    int32_t *most;
} logistic_block;

/* Sums over rows, each times its weight: losses, and 1 where the most likely class is the row's own. */
typedef struct logistic_sums {
    double loss, right;
} logistic_sums;

/* Adds the rows one by one, with a weight of 1 each when `weight` is NULL, and replaces the outputs by the losses'
 * derivatives. */
void logistic_losses(logistic_sums *sums, const logistic_block *block, const int32_t *class, const double *weight,
                     const kernel_dense64 *dense);
/* Fills the most likely class of each row in `most`; with `probabilities` (rows x classes) the probability of each. */
void logistic_decide(const logistic_block *block, double *probabilities, const kernel_dense64 *dense);

/* ---- grain.c ----------------------------------------------------------------------------------------------------- */

/* Weights and intercepts as the products take them. */
typedef struct logistic_prepared {
    const kernel_set *kernel;
    int64_t outputs;             /* that there is room for */
    void *values;                /* features x outputs, then outputs: float or double */
    double *weights, *intercept; /* a point outside its frame */
} logistic_prepared;

/* From the coordinates of the search, and from weights (outputs x features) and intercepts. */
int logistic_prepare_point(logistic_prepared **inout, const logistic_own *own, const double *x, const char *kernel);
int logistic_prepare_model(logistic_prepared **inout, const logistic_own *own, const double *weights,
                           const double *intercept, const char *kernel);
void logistic_forget(void **prepared);

size_t logistic_grain_scratch(const logistic_own *own, const shoal_shape *shape);
/* Gives the grain's gradient and loss to `sums`: group 0 the weights, then the intercepts if there are any,
 * then the loss, then the weight of rows that are classified correctly. */
int logistic_grain_sums(gradient_sums *sums, const logistic_own *own, const logistic_prepared *prepared,
                        const shoal_grain *grain, const shoal_scratch *scratch);

/* For rows without a target (own->target is behind the last column): calls `each` with block after block of outputs. */
typedef void logistic_each(void *context, const logistic_block *block, int64_t first_row);
void logistic_grain_outputs(const logistic_own *own, const logistic_prepared *prepared, const shoal_grain *grain,
                            const shoal_scratch *scratch, logistic_each *each, void *context);

#endif
