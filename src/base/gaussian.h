/* Gaussian processes over a fixed list of places (the candidates of a search), a few of which get observed.
 *
 *     base_kernel kernel = {.features = 3, .scale = {1, 1, 1}, .signal = 0.7, .noise = 0.05, .constant = 2};
 *     base_gaussian process;
 *     int status = base_gaussian_init(&process, &kernel, place, places);
 *     if (status == SHOAL_OK) status = base_gaussian_see(&process, 17);       // place 17 was observed
 *     double likelihood = base_gaussian_explain(&process, white, value);      // value[0] was seen there
 *     double mean = base_gaussian_mean(&process, white, 4), deviation = sqrt(process.variance[4]);
 *     base_gaussian_release(&process);
 *
 * Where was looked is kept apart from what was seen: the factor of the covariance grows by one row with each place, and
 * any number of quantities can be explained with it (Rasmussen and Williams 2006, algorithm 2.1, with L^-1 K kept for
 * all places). */
#ifndef BASE_GAUSSIAN_H
#define BASE_GAUSSIAN_H

#include <stdint.h>

enum { BASE_FEATURES_MOST = 32 };

/* Matérn 5/2 with one length scale a feature: signal^2 (1 + r + r^2/3) e^-r + constant^2, r^2 = 5 sum ((a_j - b_j) /
 * scale_j)^2. signal, noise and constant are standard deviations; `constant` is how far the mean of the process may lie
 * from 0. */
typedef struct base_kernel {
    int features;
    double scale[BASE_FEATURES_MOST];
    double signal, noise, constant;
} base_kernel;

/* (1 + r + r^2/3) e^-r for r^2 / 5. */
double base_matern(double squared);
/* Covariance of two places, without noise. */
double base_kernel_value(const base_kernel *kernel, const double *a, const double *b);

/* What length scales, signal and noise are thought to be beforehand: log-normal, by their medians and the standard
 * deviations of their logarithms.  A spread that is infinite stands for no opinion. */
typedef struct base_kernel_prior {
    double scale, signal, noise;
    double scale_spread, signal_spread, noise_spread;
} base_kernel_prior;

typedef struct base_gaussian {
    base_kernel kernel;
    const double *place; /* places x features; the caller's */
    int64_t places, seen, room;
    int64_t *at;      /* which were observed */
    double *factor;   /* room x room, lower triangle: L with L L' = K + noise^2 */
    double *cross;    /* room x places: L^-1 K(observed, places) */
    double *variance; /* of the process, without noise, at each place, given where was looked */
} base_gaussian;

int base_gaussian_init(base_gaussian *process, const base_kernel *kernel, const double *place, int64_t places);
void base_gaussian_release(base_gaussian *process);
/* Place `at` was observed; may be said several times.  Only SHOAL_MEMORY can happen, and leaves it as it was. */
int base_gaussian_see(base_gaussian *process, int64_t at);
/* white = L^-1 value, both `seen` long.  Returns the logarithm of the marginal likelihood. */
double base_gaussian_explain(const base_gaussian *process, double *white, const double *value);
/* Solves L white = value for the factor of `count` rows, which lie `stride` apart, and returns the same. */
double base_gaussian_whiten(double *white, const double *value, const double *factor, int64_t stride, int64_t count);
/* A row of the factor is never shorter than this share of the variance, so that rounding cannot make it nothing. */
static const double base_least_pivot = 1e-12;
double base_gaussian_mean(const base_gaussian *process, const double *white, int64_t place);

#endif
