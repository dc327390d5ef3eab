/* What a round of workers that meet in a store takes besides its work: small jobs with real workers of this machine,
 * and the constants of shoal_site that make shoal_plan_estimate agree with them.
 *
 *     plan_engine_measured measured = {0};
 *     int status = plan_measure_engine(&measured, "dir:/tmp/st", 8, 5, &stop);
 *     if (status == SHOAL_OK) status = plan_fit_engine(&site, &measured);
 */
#ifndef PLAN_MEASURE_ENGINE_H
#define PLAN_MEASURE_ENGINE_H

#include <stdint.h>
#include <shoal/plan.h>

enum { PLAN_CREWS_MOST = 4 };

typedef struct plan_engine_measured {
    int crews;
    struct plan_crew_measured {
        int64_t workers, rows, columns, clusters;
        double seconds;             /* of a round */
        double alone;               /* of the same round without a store */
        double requests;            /* of all workers in a round */
    } crew[PLAN_CREWS_MOST], heavy; /* heavy: whose models and partials have half a megabyte */
    double start;    /* of a run, besides its rounds: submitting, until the workers are there, removing */
    double straggle; /* as in shoal_site */
} plan_engine_measured;

/* Runs jobs with 1, 2, 4 and, where that is more, `workers` workers through the store at `url`, in about that many
 * seconds, and removes them.  None is started after `until`, by base_seconds(): SHOAL_ABSENT when too few were before.
 * SHOAL_STOPPED when *stop was set. */
int plan_measure_engine(plan_engine_measured *out, const char *url, int64_t workers, double seconds, double until,
                        const volatile int *stop);

/* Sets start, sync, crowd, requests and straggle, makes rates as slow as rounds find them, and where need be lowers
 * wait, so that estimates come nearest to what was measured; the rest of *site is there already. */
int plan_fit_engine(shoal_site *site, const plan_engine_measured *measured);

#endif
