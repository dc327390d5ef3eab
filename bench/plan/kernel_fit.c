/* Marginal likelihood times prior, made greatest by Nelder and Mead's simplex. */
#include "kernel_fit.h"

#include <math.h>

#include <shoal/error.h>

#include "base/memory.h"
#include "minimise.h"

typedef struct fit {
    const base_kernel *kernel;
    const base_kernel_prior *prior;
    const double *value;
    const double *squares; /* of the differences of each pair of places: count (count - 1) / 2 x features */
    double *factor, *white;
    int64_t count;
} fit;

/* Parameters are logarithms of multiples of the prior's medians: the length scales, signal, noise. */
static base_kernel kernel_at(const fit *of, const double *x)
{
    base_kernel kernel = *of->kernel;
    for (int j = 0; j < kernel.features; j++)
        kernel.scale[j] = of->prior->scale * exp(x[j]);
    kernel.signal = of->prior->signal * exp(x[kernel.features]);
    kernel.noise = of->prior->noise * exp(x[kernel.features + 1]);
    return kernel;
}

static void factorise(const fit *of, const base_kernel *kernel)
{
    const int64_t n = of->count;
    const double signal = kernel->signal * kernel->signal, constant = kernel->constant * kernel->constant;
    const double *squares = of->squares;
    double weight[BASE_FEATURES_MOST];
    for (int j = 0; j < kernel->features; j++)
        weight[j] = 1 / (kernel->scale[j] * kernel->scale[j]);
    for (int64_t i = 0; i < n; i++) {
        double *row = of->factor + i * n;
        for (int64_t k = 0; k < i; k++) {
            double squared = 0;
            for (int j = 0; j < kernel->features; j++)
                squared += *squares++ * weight[j];
            row[k] = signal * base_matern(squared) + constant;
        }
        double left = signal + constant;
        for (int64_t k = 0; k < i; k++) {
            for (int64_t m = 0; m < k; m++)
                row[k] -= row[m] * of->factor[k * n + m];
            row[k] /= of->factor[k * n + k];
            left -= row[k] * row[k];
        }
        row[i] = sqrt(fmax(left, base_least_pivot * (signal + constant)) + kernel->noise * kernel->noise);
    }
}

static double surprise(const double *x, void *context)
{
    const fit *of = context;
    const base_kernel_prior *prior = of->prior;
    const int features = of->kernel->features;
    double prior_part = 0;
    for (int j = 0; j < features + 2; j++) {
        if (fabs(x[j]) > log(100))
            return INFINITY;
        const double spread = j < features    ? prior->scale_spread
                              : j == features ? prior->signal_spread
                                              : prior->noise_spread;
        prior_part += 0.5 * (x[j] / spread) * (x[j] / spread);
    }
    const base_kernel kernel = kernel_at(of, x);
    factorise(of, &kernel);
    /* In steps: what is a hundred-thousandth more likely is not looked for, which halves the time. */
    return rint(1e5 * (prior_part - base_gaussian_whiten(of->white, of->value, of->factor, of->count, of->count))) *
           1e-5;
}

int base_kernel_fit(base_kernel *kernel, const base_kernel_prior *prior, const double *place, const double *value,
                    int64_t count)
{
    const int features = kernel->features;
    const size_t n = (size_t)count, pairs = n * (n - (n > 0)) / 2;
    double *squares = NULL, *factor = NULL, *white = NULL;
    int status = base_alloc(&squares, pairs * (size_t)features, sizeof *squares, "a kernel");
    if (status == SHOAL_OK)
        status = base_alloc(&factor, n * n, sizeof *factor, "a kernel");
    if (status == SHOAL_OK)
        status = base_alloc(&white, n, sizeof *white, "a kernel");
    if (status == SHOAL_OK) {
        double *next = squares;
        for (int64_t i = 0; i < count; i++)
            for (int64_t k = 0; k < i; k++)
                for (int j = 0; j < features; j++) {
                    const double d = place[i * features + j] - place[k * features + j];
                    *next++ = d * d;
                }
        fit of = {kernel, prior, value, squares, factor, white, count};
        double x[PLAN_MINIMISE_MOST] = {0}, step[PLAN_MINIMISE_MOST];
        for (int j = 0; j < features + 2; j++)
            step[j] = 1;
        plan_minimise(x, features + 2, step, surprise, &of);
        *kernel = kernel_at(&of, x);
    }
    base_free(&squares);
    base_free(&factor);
    base_free(&white);
    return status;
}
