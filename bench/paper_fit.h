/* Our model of that experiment, with the constants that are fitted to its times: bench/plan_fit.c tells what comes of
 * it, and tests/unit/test_plan_paper.c holds it to its bars. */
#ifndef PAPER_FIT_H
#define PAPER_FIT_H

#include "paper_times.h"
#include "plan/fit.h"

static const shoal_cost paper_cost = {
    .operations_per_row = 3e6, .model_bytes = 8e6, .partial_bytes = 8e6, .rounds = 10};

/* Two constants are free, operations a second and bytes a second of the whole account; or three: also how much workers
 * differ. */
static inline int paper_fit_run(plan_fitted *found, plan_fit *fit, bool stragglers)
{
    plan_measured measured[PAPER_RUNS];
    for (int i = 0; i < PAPER_RUNS; i++)
        measured[i] = (plan_measured){paper_times[i].mappers, paper_times[i].seconds};
    *fit = (plan_fit){
        .job = {.cost = &paper_cost,
                .learner = "kmeans",
                .rows = 500000,
                .columns = 1000,
                .value_bytes = 8,
                .reduce = "two-level",
                .slices = -1,
                .split_roles = true},
        .crew = {.threads = 1, .cores = 1},
        .site = {.read = 8e6, .write = 8e6, .connections = 1, .account = 800e6, .straggle = stragglers ? 0.05 : 0},
        .pace = {.learner = "kmeans", .phase = "run", .operation = 1 / 669e6},
        .frees = stragglers ? 3 : 2};
    fit->free[0] = &fit->pace.operation;
    fit->free[1] = &fit->site.account;
    fit->free[2] = &fit->site.straggle;
    return plan_fit_run(found, fit, measured, PAPER_RUNS);
}

#endif
