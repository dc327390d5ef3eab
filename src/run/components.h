/* The two directions in which rows vary most: their first principal components, for a picture.
 *
 * Lanczos' method with full reorthogonalisation on the covariance, which is never formed: a few dozen passes over the
 * rows, whatever the number of columns.  Every number is one fixed chain of operations, so the bits are the same for
 * any number of threads and every kernel set.  Up to COMPONENTS_STEPS columns the components are exact but for
 * rounding; of more columns they are as good as so many steps make them. */
#ifndef RUN_COMPONENTS_H
#define RUN_COMPONENTS_H

#include <shoal/learn.h>

enum { COMPONENTS_STEPS = 40 };

typedef struct run_components {
    double *mean;      /* of the rows, columns of it */
    double *direction; /* 2 x columns: unit vectors at right angles, whose greatest component is positive */
    double share[2];   /* of the variance of the rows that lies in each; NaN when they are all equal */
} run_components;

/* `rows` is count x columns, at least two columns, and is used up.  SHOAL_INVALID when values are too great. */
int run_components_find(run_components *out, double *rows, int64_t count, int64_t columns, const shoal_crew *crew);
void run_components_release(run_components *components);

#endif
