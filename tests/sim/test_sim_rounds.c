/* What a round costs when nothing goes wrong and there is nothing to compute: time in round trips, and requests. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "sim_calm.h"

/* Rounds of a job on a store that has to be asked, and of which each request takes as long as the next, or nearly. */
static sim_calm_figures run(int workers, const char *reduce)
{
    const double latency = 0.05;
    sim_calm_figures figures = sim_calm_run(&(sim_calm_options){.seed = 1,
                                                                .workers = workers,
                                                                .slices = workers,
                                                                .rounds = 60,
                                                                .reduce = reduce,
                                                                .cloud = {.latency = latency, .jitter = 0.1}});
    figures.round_seconds /= latency;
    print_message("%3d workers, %-9s: %.1f round trips a round, %.1f requests of a worker\n", workers, reduce,
                  figures.round_seconds, figures.round_requests);
    return figures;
}

static void check(int workers, const char *reduce, double trips, double requests)
{
    sim_calm_figures figures = run(workers, reduce);
    assert_true(figures.round_seconds > 1);
    assert_true(figures.round_seconds <= trips);
    assert_true(figures.round_requests <= requests);
}

static void a_flat_round_takes_six_trips(void **state)
{
    (void)state;
    check(1, "flat", 6, 6);
    check(2, "flat", 6, 6);
    check(8, "flat", 6, 6);
    check(16, "flat", 6, 6);
}

static void a_round_in_two_levels_takes_nine_trips(void **state)
{
    (void)state;
    check(9, "two-level", 9, 6);
    check(25, "two-level", 9, 6);
    check(64, "two-level", 9, 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_flat_round_takes_six_trips),
        cmocka_unit_test(a_round_in_two_levels_takes_nine_trips),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
