/* Correlation and ordinary least squares with 95% intervals, as any book on statistics has them.
 *
 *     base_regression line;
 *     int status = base_regress(&line, batch_sizes, 1, rates, count);
 *     if (status == SHOAL_OK && line.known)
 *         printf("%g more for each, %g to %g\n", line.of[1].value, line.of[1].low, line.of[1].high);
 *
 * Errors are taken to be independent, normal and of one spread; intervals and p are Student's. */
#ifndef BASE_REGRESSION_H
#define BASE_REGRESSION_H

#include <stdbool.h>
#include <stdint.h>

enum { BASE_REGRESSION_MOST = 6 /* columns */ };

/* A number that was found, its standard error, and where it is with 95% confidence. */
typedef struct base_estimate {
    double value, error, low, high;
    double p; /* how often chance alone would bring a value as far from 0 */
} base_estimate;

typedef struct base_regression {
    bool known; /* false: the columns don't tell the coefficients apart, or there are too few rows; all else is NAN */
    int64_t freedom;                            /* rows less coefficients; with 0 there are no intervals: NAN */
    base_estimate of[BASE_REGRESSION_MOST + 1]; /* the constant, then one for each column */
    double r2;                                  /* the share of the variance that is explained; NAN if there is none */
} base_regression;

/* Fits y = of[0] + of[1] x_1 + ...; `x` has `rows` rows of `columns` values, all finite.  SHOAL_OK, or out of
 * memory. */
int base_regress(base_regression *out, const double *x, int columns, const double *y, int64_t rows);

/* Pearson's coefficient, NAN where one of both never changes; its interval is Fisher's, which needs four rows. */
base_estimate base_correlate(const double *x, const double *y, int64_t rows);

/* How often Student's t with this many degrees of freedom is at least as far from 0 as `t`; and how far that share of
 * all stays away from it: 2.228 for 0.05 and 10. */
double base_student_share(double t, double freedom);
double base_student_limit(double share, double freedom);

#endif
