/* How soon a job is back at its pace when a disturbance has ended, on stores that have to be asked: seed after seed,
 * workers are killed and stopped and answers are slow for a while, and the rounds after that are measured against those
 * before it.
 *
 *     test_sim_recovery [SEEDS]       more of them than a run of the tests tries */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "sim_calm.h"

/* How long rounds may take on average once five have passed, in those before the disturbance; and how many of the first
 * thirty may take one and a half times as long or more: the one killed last has to be missed first, then to be retired,
 * and the one that came last loads its rows. */
static const double BACK_MOST = 1.5;
enum { SLOW_MOST = 12 };

static int64_t seeds = 3;

typedef struct setting {
    const char *name, *reduce;
    int workers;
    double latency, map; /* seconds of a request, and of a slice */
    double slow;         /* chance that an answer takes seconds */
    double kills;
} setting;

static sim_calm_figures run(const setting *setting, uint64_t seed)
{
    static const double from = 20, until = 70;
    double pace = 6 * setting->latency + setting->map;
    sim_calm_options options = {
        .seed = seed,
        .workers = setting->workers,
        .slices = setting->workers,
        .rounds = (int64_t)(from / pace) + 500,
        .reduce = setting->reduce,
        .lease = 2,
        .work = {.map_grain = setting->map},
        .trouble = {from, until, 1, 4, setting->kills},
        .cloud = {.latency = setting->latency, .jitter = 0.3, .slow = setting->slow, .loud = from, .quiet = until}};
    return sim_calm_run(&options);
}

static double worse(double a, double b)
{
    return a > b ? a : b;
}

static void check(const setting *setting)
{
    sim_calm_figures sum = {0};
    double back_worst = 0, slowest = 0;
    int64_t slow_most = 0;
    for (int64_t seed = 1; seed <= seeds; seed++) {
        sim_calm_figures found = run(setting, (uint64_t)seed);
        sum.pace += found.pace;
        sum.pace_requests += found.pace_requests;
        sum.trouble_seconds += found.trouble_seconds;
        sum.back_seconds += found.back_seconds;
        sum.after_requests += found.after_requests;
        sum.slow += found.slow;
        slowest = worse(slowest, found.recovering);
        back_worst = worse(back_worst, found.back_seconds / found.pace);
        slow_most = found.slow > slow_most ? found.slow : slow_most;
        if (found.back_seconds > BACK_MOST * found.pace || found.slow > SLOW_MOST)
            print_message("seed %lld: back at %.2f of the pace, %lld slow rounds\n", (long long)seed,
                          found.back_seconds / found.pace, (long long)found.slow);
    }
    double n = (double)seeds;
    print_message("%-24s: %.3f s and %.1f requests a worker; in trouble %.2f s; then %.1f slow rounds (at most %lld, "
                  "of %.1f s); back at %.3f s (at most %.2f of the pace) and %.1f requests\n",
                  setting->name, sum.pace / n, sum.pace_requests / n, sum.trouble_seconds / n, (double)sum.slow / n,
                  (long long)slow_most, slowest, sum.back_seconds / n, back_worst, sum.after_requests / n);
    assert_true(back_worst <= BACK_MOST);
    assert_true(slow_most <= SLOW_MOST);
}

static void short_rounds_of_a_near_store(void **state)
{
    (void)state;
    check(&(setting){"near, flat", "flat", 4, 0.01, 0.01, 0, 0.5});
    check(&(setting){"near, two levels", "two-level", 9, 0.01, 0.01, 0, 0.5});
}

static void rounds_of_a_far_store(void **state)
{
    (void)state;
    check(&(setting){"far, flat", "flat", 8, 0.05, 0.02, 0, 0.5});
    check(&(setting){"far, stops alone", "flat", 8, 0.05, 0.02, 0, 0});
}

static void answers_that_were_slow(void **state)
{
    (void)state;
    check(&(setting){"slow answers", "flat", 4, 0.02, 0.01, 0.1, 0.2});
    check(&(setting){"slow answers, two levels", "two-level", 9, 0.02, 0.01, 0.1, 0.2});
}

static void rounds_with_work_in_them(void **state)
{
    (void)state;
    check(&(setting){"work", "flat", 4, 0.01, 0.4, 0.05, 0.3});
}

static void check_deserted(const char *reduce, int64_t put, double latency, double most)
{
    for (uint64_t seed = 1; seed <= (uint64_t)seeds; seed++) {
        sim_calm_figures found = sim_calm_run(&(sim_calm_options){.seed = seed,
                                                                  .workers = 8,
                                                                  .slices = 16,
                                                                  .rounds = 10,
                                                                  .bytes = 1,
                                                                  .reduce = reduce,
                                                                  .lease = 2,
                                                                  .deserted = put,
                                                                  .cloud = {.latency = latency, .jitter = 0.3}});
        print_message("%s, %lld of 16 slices put, requests of %.2f s: %.1f s\n", reduce, (long long)put, latency,
                      found.deserted_seconds);
        assert_true(found.deserted_seconds > 0 && found.deserted_seconds <= most);
    }
}

/* Nobody knows who took what in round 0.  Groups that lack nothing are made as soon as it is clear that nobody makes
 * them, and slices later; slow requests alone make nobody wait for minutes. */
static void what_the_dead_took_in_round_0(void **state)
{
    (void)state;
    check_deserted("ranged:3", 16, 0.01, 25);
    check_deserted("ranged:3", 16, 0.05, 25);
    check_deserted("flat", 1, 0.3, 90);
}

int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_rounds_of_a_near_store),  cmocka_unit_test(rounds_of_a_far_store),
        cmocka_unit_test(answers_that_were_slow),        cmocka_unit_test(rounds_with_work_in_them),
        cmocka_unit_test(what_the_dead_took_in_round_0),
    };
    if (count > 1)
        seeds = atoll(arguments[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
