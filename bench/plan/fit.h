/* Fitting a few constants of the model to measured times of one job on different numbers of workers. */
#ifndef BENCH_FIT_H
#define BENCH_FIT_H

#include <shoal/plan.h>

typedef struct plan_measured {
    int64_t workers;
    double seconds;
} plan_measured;

enum { PLAN_FREE_MOST = 4, PLAN_MEASURED_MOST = 64 };

/* Everything an estimate needs; fitting changes what `free` points to, which lies in `site` or `pace`.  Each constant
 * is positive. */
typedef struct plan_fit {
    shoal_plan_job job;
    shoal_plan_crew crew; /* but for the workers */
    shoal_site site;
    shoal_pace pace; /* of the one phase, "run" */
    double *free[PLAN_FREE_MOST];
    int frees;
} plan_fit;

typedef struct plan_fitted {
    double mean_error, worst_error; /* of |estimated / measured - 1| */
    double left_out;                /* the mean of it, each time fitted to all the others */
    double estimated[PLAN_MEASURED_MOST], estimated_left_out[PLAN_MEASURED_MOST];
} plan_fitted;

/* Makes the sum of squares of log(estimated / measured) least, starting from what the constants are. */
int plan_fit_run(plan_fitted *out, plan_fit *fit, const plan_measured *measured, int count);

#endif
