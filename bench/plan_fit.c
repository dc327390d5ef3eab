/* The paper's fourteen measured times (Durut and Rossi, ESANN 2011) beside its own model and beside ours, fitted to
 * them: JSON for bench/bench_plan.py.  tests/unit/test_plan_paper.c holds the bars. */
#include <math.h>
#include <stdio.h>

#include "paper_fit.h"

static int print_paper(void)
{
    const shoal_paper paper = {
        .rows = 5e5, .columns = 1e3, .clusters = 1e3, .iterations = 10, .flops = 669e6, .read = 8e6};
    double mean = 0, worst = 0;
    for (int i = 0; i < PAPER_RUNS; i++) {
        shoal_estimate estimate;
        int status = shoal_paper_estimate(&estimate, &paper, paper_times[i].mappers);
        if (status < 0)
            return status;
        double error = fabs(estimate.seconds / paper_times[i].seconds - 1);
        mean += error / PAPER_RUNS;
        worst = fmax(worst, error);
    }
    printf("[{\"model\": \"the paper's own\", \"mean_error\": %.5f, \"worst_error\": %.5f, \"left_out\": null}", mean,
           worst);
    return SHOAL_OK;
}

static int print_ours(bool stragglers)
{
    plan_fit fit;
    plan_fitted found;
    int status = paper_fit_run(&found, &fit, stragglers);
    if (status == SHOAL_OK)
        printf(",\n"
               " {\"model\": \"ours, %d constants\", \"mean_error\": %.5f, \"worst_error\": %.5f, \"left_out\": %.5f, "
               "\"flops\": %.4g, \"account\": %.4g, \"straggle\": %.4g}",
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
