/* The least value of a function of a few numbers, without derivatives: Nelder and Mead's simplex, started again until
 * that brings nothing more.  For fitting a handful of constants; deterministic. */
#ifndef BENCH_MINIMISE_H
#define BENCH_MINIMISE_H

enum { PLAN_MINIMISE_MOST = 24 };

/* `x` has the start and gets the place of the least value, which is returned.  `step` is how far the first simplex
 * reaches in each direction.  A value that is not finite counts as very large. */
double plan_minimise(double *x, int count, const double *step, double (*value)(const double *x, void *context),
                     void *context);

#endif
