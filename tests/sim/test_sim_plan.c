/* The planner against the engine itself: jobs in virtual time on stores of known latency and rates, beside what
 * src/plan expects of them. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>
#include <shoal/plan.h>

#include "sim_calm.h"

enum { ROUNDS = 12 };
static const double ROWS = 1e8; /* more than enough grains for every slice */

/* A job whose models and partials have `bytes`, and whose rows are made in place. */
typedef struct story {
    int workers;
    bool split;
    const char *reduce;
    double bytes, latency, worker_rate, total_rate;
    double map; /* seconds a round that one worker alone would need */
} story;

static double simulate(const story *story)
{
    int slices = story->split ? story->workers : 2 * story->workers, groups = (int)ceil(sqrt(story->workers));
    sim_calm_options options = {.seed = 1,
                                .slices = slices,
                                .rounds = ROUNDS,
                                .reduce = story->reduce,
                                .bytes = story->bytes,
                                .work = {.map_grain = story->map / slices},
                                .cloud = {.latency = story->latency,
                                          .jitter = 0.2,
                                          .worker_rate = story->worker_rate,
                                          .total_rate = story->total_rate}};
    if (story->split) {
        options.mappers = story->workers;
        options.reducers = groups;
        options.last = 1;
    } else {
        options.workers = story->workers;
    }
    return sim_calm_run(&options).round_seconds;
}

static double expect(const story *story)
{
    const shoal_cost cost = {
        .operations_per_row = 1, .model_bytes = story->bytes, .partial_bytes = story->bytes, .rounds = 1};
    const shoal_pace pace = {.learner = "count", .phase = "run", .operation = story->map / ROWS};
    const shoal_plan_job job = {.cost = &cost,
                                .learner = "count",
                                .rows = ROWS,
                                .columns = 1,
                                .value_bytes = 1,
                                .source = SHOAL_PLAN_GENERATED,
                                .reduce = story->reduce,
                                .slices = story->split ? story->workers : 2 * story->workers,
                                .split_roles = story->split};
    const shoal_site site = {.get = story->latency,
                             .put = story->latency,
                             .wait = 0.5 * story->latency, /* by which a look comes late */
                             .read = story->worker_rate,
                             .write = story->worker_rate,
                             .connections = 8,       /* pieces that a worker fetches at once */
                             .sync = story->latency, /* what is removed */
                             .worker = story->worker_rate,
                             .account = story->total_rate,
                             .requests_per_second = 1};
    const shoal_plan_crew crew = {.workers = story->workers, .threads = 1, .cores = 1};
    shoal_estimate estimate;
    assert_int_equal(shoal_plan_estimate(&estimate, &job, &site, &pace, 1, &crew), SHOAL_OK);
    return estimate.seconds;
}

static void check(const story *story, double most)
{
    double simulated = simulate(story), expected = expect(story), error = expected / simulated - 1;
    print_message("%3d workers%s, %-9s, %4.0f MB: expected %7.3f s a round, simulated %7.3f: %+.0f%%\n", story->workers,
                  story->split ? ", split" : "", story->reduce, story->bytes / 1e6, expected, simulated, 100 * error);
    if (!(fabs(error) <= most))
        fail_msg("off by %.0f%%, more than %.0f%%", 100 * error, 100 * most);
}

/* Nothing but latency. */
static void test_latency(void **state)
{
    (void)state;
    static const story stories[] = {{4, .reduce = "flat", .latency = 0.05, .worker_rate = 1e9, .bytes = 1},
                                    {16, .reduce = "two-level", .latency = 0.05, .worker_rate = 1e9, .bytes = 1},
                                    {64, .reduce = "two-level", .latency = 0.05, .worker_rate = 1e9, .bytes = 1}};
    for (size_t i = 0; i < sizeof stories / sizeof stories[0]; i++)
        check(&stories[i], 0.25);
}

/* Much to compute, and much to send. */
static void test_bytes(void **state)
{
    (void)state;
    static const story stories[] = {
        {4, .reduce = "flat", .latency = 0.02, .worker_rate = 8e6, .total_rate = 800e6, .bytes = 8e6, .map = 40},
        {16, .reduce = "two-level", .latency = 0.02, .worker_rate = 8e6, .total_rate = 800e6, .bytes = 8e6, .map = 400},
        {50, true, .reduce = "two-level", .latency = 0.02, .worker_rate = 8e6, .total_rate = 800e6, .bytes = 8e6,
         .map = 2242},
        {100, true, .reduce = "two-level", .latency = 0.02, .worker_rate = 8e6, .total_rate = 800e6, .bytes = 8e6,
         .map = 2242},
        {50, .reduce = "ranged:10", .latency = 0.02, .worker_rate = 8e6, .total_rate = 800e6, .bytes = 8e6, .map = 800},
        {36, .reduce = "two-level", .latency = 0.02, .worker_rate = 50e6, .total_rate = 200e6, .bytes = 8e6,
         .map = 400},
    };
    for (size_t i = 0; i < sizeof stories / sizeof stories[0]; i++)
        check(&stories[i], 0.2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_latency), cmocka_unit_test(test_bytes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
