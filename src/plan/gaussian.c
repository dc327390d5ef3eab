/* Gaussian processes by a Cholesky factor that grows row by row.  gaussian.h tells what is kept and why. */
#include "gaussian.h"

#include <math.h>
#include <string.h>

#include <shoal/error.h>

#include "base/memory.h"
#include "minimise.h"

/* A row of the factor is never shorter than this share of the variance, so that rounding cannot make it nothing. */
static const double least_pivot = 1e-12;

static double matern(double squared)
{
    const double r = sqrt(5 * squared);
    return (1 + r + r * r / 3) * exp(-r);
}

double plan_kernel_value(const plan_kernel *kernel, const double *a, const double *b)
{
    double squared = 0;
    for (int j = 0; j < kernel->features; j++) {
        const double d = (a[j] - b[j]) / kernel->scale[j];
        squared += d * d;
    }
    return kernel->signal * kernel->signal * matern(squared) + kernel->constant * kernel->constant;
}

/* ---- the process ------------------------------------------------------------------------------------------------- */

int plan_gaussian_init(plan_gaussian *process, const plan_kernel *kernel, const double *place, int64_t places)
{
    *process = (plan_gaussian){.kernel = *kernel, .place = place, .places = places};
    int status = base_alloc(&process->variance, (size_t)places, sizeof *process->variance, "a Gaussian process");
    for (int64_t i = 0; status == SHOAL_OK && i < places; i++)
        process->variance[i] = kernel->signal * kernel->signal + kernel->constant * kernel->constant;
    return status;
}

void plan_gaussian_release(plan_gaussian *process)
{
    base_free(&process->at);
    base_free(&process->factor);
    base_free(&process->cross);
    base_free(&process->variance);
}

static int make_room(plan_gaussian *process)
{
    const size_t old = (size_t)process->room, room = old ? 2 * old : 8, places = (size_t)process->places;
    double *factor = NULL;
    int status = base_alloc(&factor, room * room, sizeof *factor, "a Gaussian process");
    if (status == SHOAL_OK)
        status = base_grow(&process->at, old, room, sizeof *process->at, "a Gaussian process");
    if (status == SHOAL_OK)
        status = base_grow(&process->cross, old * places, room * places, sizeof *process->cross, "a Gaussian process");
    if (status < 0) {
        base_free(&factor);
        return status;
    }
    for (size_t i = 0; i < old; i++)
        memcpy(factor + i * room, process->factor + i * old, old * sizeof *factor);
    base_free(&process->factor);
    process->factor = factor;
    process->room = (int64_t)room;
    return SHOAL_OK;
}

int plan_gaussian_see(plan_gaussian *process, int64_t at)
{
    if (process->seen == process->room) {
        int status = make_room(process);
        if (status < 0)
            return status;
    }
    const plan_kernel *kernel = &process->kernel;
    const int64_t n = process->seen, places = process->places;
    double *row = process->factor + n * process->room, *cross = process->cross + n * places;
    for (int64_t j = 0; j < n; j++)
        row[j] = process->cross[j * places + at];
    const double prior = kernel->signal * kernel->signal + kernel->constant * kernel->constant;
    row[n] = sqrt(fmax(process->variance[at], least_pivot * prior) + kernel->noise * kernel->noise);
    for (int64_t i = 0; i < places; i++)
        cross[i] =
            plan_kernel_value(kernel, process->place + at * kernel->features, process->place + i * kernel->features);
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < places; i++)
            cross[i] -= row[j] * process->cross[j * places + i];
    for (int64_t i = 0; i < places; i++) {
        cross[i] /= row[n];
        process->variance[i] = fmax(process->variance[i] - cross[i] * cross[i], 0);
    }
    process->at[process->seen++] = at;
    return SHOAL_OK;
}

/* Solves L white = value, and tells how likely the value is. */
static double whiten(double *white, const double *value, const double *factor, int64_t stride, int64_t count)
{
    double likelihood = -0.5 * (double)count * log(2 * 3.14159265358979323846);
    for (int64_t i = 0; i < count; i++) {
        double left = value[i];
        for (int64_t j = 0; j < i; j++)
            left -= factor[i * stride + j] * white[j];
        white[i] = left / factor[i * stride + i];
        likelihood -= 0.5 * white[i] * white[i] + log(factor[i * stride + i]);
    }
    return likelihood;
}

double plan_gaussian_explain(const plan_gaussian *process, double *white, const double *value)
{
    return whiten(white, value, process->factor, process->room, process->seen);
}

double plan_gaussian_mean(const plan_gaussian *process, const double *white, int64_t place)
{
    double mean = 0;
    for (int64_t i = 0; i < process->seen; i++)
        mean += white[i] * process->cross[i * process->places + place];
    return mean;
}

/* ---- the kernel that explains best ------------------------------------------------------------------------------- */

typedef struct fit {
    const plan_kernel *kernel;
    const plan_kernel_prior *prior;
    const double *value;
    const double *squares; /* of the differences of each pair of places: count (count - 1) / 2 x features */
    double *factor, *white;
    int64_t count;
} fit;

/* Parameters are logarithms of multiples of the prior's medians: the length scales, signal, noise. */
static plan_kernel kernel_at(const fit *of, const double *x)
{
    plan_kernel kernel = *of->kernel;
    for (int j = 0; j < kernel.features; j++)
        kernel.scale[j] = of->prior->scale * exp(x[j]);
    kernel.signal = of->prior->signal * exp(x[kernel.features]);
    kernel.noise = of->prior->noise * exp(x[kernel.features + 1]);
    return kernel;
}

static void factorise(const fit *of, const plan_kernel *kernel)
{
    const int64_t n = of->count;
    const double signal = kernel->signal * kernel->signal, constant = kernel->constant * kernel->constant;
    const double *squares = of->squares;
    double weight[PLAN_FEATURES_MOST];
    for (int j = 0; j < kernel->features; j++)
        weight[j] = 1 / (kernel->scale[j] * kernel->scale[j]);
    for (int64_t i = 0; i < n; i++) {
        double *row = of->factor + i * n;
        for (int64_t k = 0; k < i; k++) {
            double squared = 0;
            for (int j = 0; j < kernel->features; j++)
                squared += *squares++ * weight[j];
            row[k] = signal * matern(squared) + constant;
        }
        double left = signal + constant;
        for (int64_t k = 0; k < i; k++) {
            for (int64_t m = 0; m < k; m++)
                row[k] -= row[m] * of->factor[k * n + m];
            row[k] /= of->factor[k * n + k];
            left -= row[k] * row[k];
        }
        row[i] = sqrt(fmax(left, least_pivot * (signal + constant)) + kernel->noise * kernel->noise);
    }
}

static double surprise(const double *x, void *context)
{
    const fit *of = context;
    const plan_kernel_prior *prior = of->prior;
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
    const plan_kernel kernel = kernel_at(of, x);
    factorise(of, &kernel);
    /* In steps: what is a hundred-thousandth more likely is not looked for, which halves the time. */
    return rint(1e5 * (prior_part - whiten(of->white, of->value, of->factor, of->count, of->count))) * 1e-5;
}

int plan_kernel_fit(plan_kernel *kernel, const plan_kernel_prior *prior, const double *place, const double *value,
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
