/* Fitting constants of the model.  See fit.h. */
#include "fit.h"

#include <math.h>

#include "minimise.h"

typedef struct fitting {
    plan_fit *fit;
    const plan_measured *measured;
    int count, left_out; /* -1: none is */
} fitting;

/* Constants are searched by their logarithms: none may be negative, and all are of unknown size. */
static void set_free(plan_fit *fit, const double *x)
{
    for (int i = 0; i < fit->frees; i++)
        *fit->free[i] = exp(x[i]);
}

static double estimate(plan_fit *fit, int64_t workers)
{
    shoal_estimate estimate;
    fit->crew.workers = workers;
    int status = shoal_plan_estimate(&estimate, &fit->job, &fit->site, &fit->pace, 1, &fit->crew);
    return status == SHOAL_OK ? estimate.seconds : NAN;
}

static double misfit(const double *x, void *context)
{
    const fitting *all = context;
    double sum = 0;
    set_free(all->fit, x);
    for (int i = 0; i < all->count; i++) {
        double error =
            i == all->left_out ? 0 : log(estimate(all->fit, all->measured[i].workers) / all->measured[i].seconds);
        sum += error * error;
    }
    return sum;
}

static void search(double *x, fitting *all)
{
    double step[PLAN_FREE_MOST];
    for (int i = 0; i < all->fit->frees; i++)
        step[i] = 0.5;
    plan_minimise(x, all->fit->frees, step, misfit, all);
    set_free(all->fit, x);
}

static int check(const plan_fit *fit, const plan_measured *measured, int count)
{
    if (count <= fit->frees || count > PLAN_MEASURED_MOST || fit->frees < 1 || fit->frees > PLAN_FREE_MOST)
        return shoal_fail(SHOAL_USAGE, "%d constants can't be fitted to %d measured times", fit->frees, count);
    for (int i = 0; i < count; i++)
        if (!(measured[i].seconds > 0 && isfinite(measured[i].seconds)) || measured[i].workers < 1)
            return shoal_fail(SHOAL_USAGE, "measured time %d of %d: %g seconds on %lld workers", i + 1, count,
                              measured[i].seconds, (long long)measured[i].workers);
    for (int i = 0; i < fit->frees; i++)
        if (!(*fit->free[i] > 0))
            return shoal_fail(SHOAL_USAGE, "constant %d of %d must start above 0", i + 1, fit->frees);
    return SHOAL_OK;
}

int plan_fit_run(plan_fitted *out, plan_fit *fit, const plan_measured *measured, int count)
{
    *out = (plan_fitted){0};
    int status = check(fit, measured, count);
    if (status < 0)
        return status;
    double start[PLAN_FREE_MOST], best[PLAN_FREE_MOST];
    for (int i = 0; i < fit->frees; i++)
        start[i] = log(*fit->free[i]);
    fitting all = {.fit = fit, .measured = measured, .count = count};
    for (int i = 0; i < count; i++) {
        for (int j = 0; j < fit->frees; j++)
            best[j] = start[j];
        all.left_out = i;
        search(best, &all);
        out->estimated_left_out[i] = estimate(fit, measured[i].workers);
        out->left_out += fabs(out->estimated_left_out[i] / measured[i].seconds - 1) / count;
    }
    all.left_out = -1;
    for (int j = 0; j < fit->frees; j++)
        best[j] = start[j];
    search(best, &all);
    for (int i = 0; i < count; i++) {
        out->estimated[i] = estimate(fit, measured[i].workers);
        double error = fabs(out->estimated[i] / measured[i].seconds - 1);
        out->mean_error += error / count;
        out->worst_error = fmax(out->worst_error, error);
    }
    return isfinite(out->mean_error) ? SHOAL_OK : shoal_fail(SHOAL_INVALID, "the model can't be fitted to these times");
}
