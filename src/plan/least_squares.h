/* Least squares with x >= 0: what constants that can't be negative are fitted by. */
#ifndef PLAN_LEAST_SQUARES_H
#define PLAN_LEAST_SQUARES_H

/* Makes |A x - b| least over x >= 0.  `a` has `rows` rows of `columns` values.  Divide each row of a and b by b first
 * where errors should count as shares.  SHOAL_OK, or out of memory. */
int plan_least_squares(double *x, const double *a, const double *b, int rows, int columns);

#endif
