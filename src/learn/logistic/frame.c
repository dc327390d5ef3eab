/* The coordinates in which L-BFGS searches: weights of columns that are centred and scaled.
 *
 * Columns far from 0, or of very different size, make a narrow valley of the objective, in which L-BFGS takes thousands
 * of steps.  With centre m and scale s of each feature the coordinates are v = s w and c = b + m w, as if (x - m) / s
 * were the data; the data stay as they are, and the penalties are those of w.  The scale makes the diagonal of the
 * Hessian at w = 0 about the same for all features: with p = 1 / classes and W the weight of all rows it is  W p (1 -
 * p) variance + l2  by w.  OWL-QN has one l1 for all coordinates, so with an L1 term features are centred only. */
#include <math.h>
#include <string.h>

#include "learn/logistic/logistic_internal.h"

void logistic_frame_choose(double *centre, double *scale, const logistic_own *own, const shoal_partial *merged,
                           const shoal_shape *shape)
{
    double share = 1 / (double)own->classes, penalty = own->l2 / (own->weight * share * (1 - share));
    for (int64_t j = 0; j < own->features; j++) {
        double mean, variance;
        logistic_scan_column(&mean, &variance, merged, j < own->target ? j : j + 1, shape->rows);
        centre[j] = own->intercept ? mean : 0;
        double size = sqrt((own->intercept ? variance : variance + mean * mean) + penalty);
        scale[j] = own->l1 == 0 && size > 0 && isfinite(size) ? size : 1;
    }
}

void logistic_frame_leave(double *weights, double *intercept, const double *x, const logistic_own *own)
{
    const double *centre = logistic_centre(own), *scale = logistic_scale(own);
    for (int64_t k = 0; k < own->outputs; k++) {
        double shift = 0;
        for (int64_t j = 0; j < own->features; j++) {
            int64_t i = k * own->features + j;
            weights[i] = x[i] / scale[j];
            shift += centre[j] * weights[i];
        }
        intercept[k] = own->intercept ? x[own->outputs * own->features + k] - shift : 0;
    }
}

void logistic_frame_enter(double *x, const double *weights, const double *intercept, const logistic_own *own)
{
    const double *centre = logistic_centre(own), *scale = logistic_scale(own);
    for (int64_t k = 0; k < own->outputs; k++) {
        double shift = 0;
        for (int64_t j = 0; j < own->features; j++) {
            int64_t i = k * own->features + j;
            x[i] = weights[i] * scale[j];
            shift += centre[j] * weights[i];
        }
        if (own->intercept)
            x[own->outputs * own->features + k] = intercept[k] + shift;
    }
}

void logistic_frame_gradient(double *gradient, const logistic_own *own)
{
    const double *centre = logistic_centre(own), *scale = logistic_scale(own);
    for (int64_t k = 0; k < own->outputs; k++) {
        double by_intercept = own->intercept ? gradient[own->outputs * own->features + k] : 0;
        for (int64_t j = 0; j < own->features; j++) {
            double *by_weight = &gradient[k * own->features + j];
            *by_weight = (*by_weight - centre[j] * by_intercept) / scale[j];
        }
    }
}
