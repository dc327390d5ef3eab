/* Gaussian processes by a Cholesky factor that grows row by row.  gaussian.h tells what is kept and why. */
#include "gaussian.h"

#include <math.h>
#include <string.h>

#include <shoal/error.h>

#include "base/memory.h"

double base_matern(double squared)
{
    const double r = sqrt(5 * squared);
    return (1 + r + r * r / 3) * exp(-r);
}

double base_kernel_value(const base_kernel *kernel, const double *a, const double *b)
{
    double squared = 0;
    for (int j = 0; j < kernel->features; j++) {
        const double d = (a[j] - b[j]) / kernel->scale[j];
        squared += d * d;
    }
    return kernel->signal * kernel->signal * base_matern(squared) + kernel->constant * kernel->constant;
}

/* ---- the process ------------------------------------------------------------------------------------------------- */

int base_gaussian_init(base_gaussian *process, const base_kernel *kernel, const double *place, int64_t places)
{
    *process = (base_gaussian){.kernel = *kernel, .place = place, .places = places};
    int status = base_alloc(&process->variance, (size_t)places, sizeof *process->variance, "a Gaussian process");
    for (int64_t i = 0; status == SHOAL_OK && i < places; i++)
        process->variance[i] = kernel->signal * kernel->signal + kernel->constant * kernel->constant;
    return status;
}

void base_gaussian_release(base_gaussian *process)
{
    base_free(&process->at);
    base_free(&process->factor);
    base_free(&process->cross);
    base_free(&process->variance);
}

static int make_gaussian_room(base_gaussian *process)
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

int base_gaussian_see(base_gaussian *process, int64_t at)
{
    if (process->seen == process->room) {
        int status = make_gaussian_room(process);
        if (status < 0)
            return status;
    }
    const base_kernel *kernel = &process->kernel;
    const int64_t n = process->seen, places = process->places;
    double *row = process->factor + n * process->room, *cross = process->cross + n * places;
    for (int64_t j = 0; j < n; j++)
        row[j] = process->cross[j * places + at];
    const double prior = kernel->signal * kernel->signal + kernel->constant * kernel->constant;
    row[n] = sqrt(fmax(process->variance[at], base_least_pivot * prior) + kernel->noise * kernel->noise);
    for (int64_t i = 0; i < places; i++)
        cross[i] =
            base_kernel_value(kernel, process->place + at * kernel->features, process->place + i * kernel->features);
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

double base_gaussian_whiten(double *white, const double *value, const double *factor, int64_t stride, int64_t count)
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

double base_gaussian_explain(const base_gaussian *process, double *white, const double *value)
{
    return base_gaussian_whiten(white, value, process->factor, process->room, process->seen);
}

double base_gaussian_mean(const base_gaussian *process, const double *white, int64_t place)
{
    double mean = 0;
    for (int64_t i = 0; i < process->seen; i++)
        mean += white[i] * process->cross[i * process->places + place];
    return mean;
}
