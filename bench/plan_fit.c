/* The paper's fourteen measured times (Durut and Rossi, ESANN 2011) beside its own model and beside ours, fitted to them: JSON for
 * bench/bench_plan.py.  tests/unit/test_plan_paper.c holds the bars. */
#include <math.h>
#include <stdio.h>

#include "plan/fit.h"

enum { RUNS = 14 };
static const plan_measured measured[RUNS] = {{10, 2223}, {50, 657},  {60, 574},  {70, 551},  {80, 560},
                                             {90, 525},  {95, 521},  {100, 539}, {110, 544}, {120, 544},
                                             {130, 574}, {140, 603}, {150, 605}, {160, 674}};
static const shoal_cost cost = {.operations_per_row = 3e6, .model_bytes = 8e6, .partial_bytes = 8e6, .rounds = 10};

static int print_paper(void)
{
    const shoal_paper paper = {
        .rows = 5e5, .columns = 1e3, .clusters = 1e3, .iterations = 10, .flops = 669e6, .read = 8e6};
    double mean = 0, worst = 0;
    for (int i = 0; i < RUNS; i++) {
        shoal_estimate estimate;
        int status = shoal_paper_estimate(&estimate, &paper, measured[i].workers);
        if (status < 0)
            return status;
        double error = fabs(estimate.seconds / measured[i].seconds - 1);
        mean += error / RUNS;
        worst = fmax(worst, error);
    }
    printf("[{\"model\": \"the paper's own\", \"mean_error\": %.5f, \"worst_error\": %.5f, \"left_out\": null}", mean,
           worst);
    return SHOAL_OK;
}

static int print_ours(bool stragglers)
{
    plan_fit fit = {
        .job = {.cost = &cost,
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
    plan_fitted found;
    fit.free[0] = &fit.pace.operation;
    fit.free[1] = &fit.site.account;
    fit.free[2] = &fit.site.straggle;
    int status = plan_fit_run(&found, &fit, measured, RUNS);
    if (status == SHOAL_OK)
        printf(",\n {\"model\": \"ours, %d constants\", \"mean_error\": %.5f, \"worst_error\": %.5f, \"left_out\": "
               "%.5f, \"flops\": "
               "%.4g, \"account\": %.4g, \"straggle\": %.4g}",
               fit.frees, found.mean_error, found.worst_error, found.left_out, 1 / fit.pace.operation, fit.site.account,
               fit.site.straggle);
    return status;
}

int main(void)
{
    int status = print_paper();
    if (status == SHOAL_OK)
        status = print_ours(false);
    if (status == SHOAL_OK)
        status = print_ours(true);
    puts("]");
    if (status < 0)
        fprintf(stderr, "bench_plan_fit: %s\n", shoal_error());
    return status < 0;
}
