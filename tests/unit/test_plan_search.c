/* src/plan/search/search*.c: the same trials give the same next candidate, however they came; limits, failures and
 * time-outs change what is tried; and whatever makes no sense is refused with a sentence. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <shoal/error.h>

#include "../../bench/plan/search_methods.h"
#include "base/memory.h"

enum { METHODS = 3 };
static const search_method *const methods[METHODS] = {&search_ours, &search_cherrypick, &search_random};

/* ---- a world to search in ---------------------------------------------------------------------------------------- */

enum { SIZES = 4, COUNTS = 10, ALL = SIZES * COUNTS };

typedef struct world {
    plan_candidate candidate[ALL];
    plan_candidates space;
    plan_trial trial[ALL]; /* what running each does */
} world;

/* Machines of 2 to 16 cores, 1 to 19 of them.  Time has a part that is done in parallel, one that is not, and one that
 * grows with the machines: so cost is least with few, and time somewhere between. */
static void make_world(world *w)
{
    static const char *const name[SIZES] = {"two", "four", "eight", "sixteen"};
    *w = (world){.space = {.candidate = w->candidate,
                           .candidates = ALL,
                           .features = 2,
                           .feature_name = {"cores", "count"},
                           .logarithmic = {true, true}}};
    for (int64_t i = 0; i < ALL; i++) {
        const int64_t count = 1 + 2 * (i % COUNTS);
        const double cores = 2 << i / COUNTS;
        w->candidate[i] =
            (plan_candidate){name[i / COUNTS], count, 0.05 * cores * (double)count, {cores, (double)count}};
        const double seconds = 20 + 9000 / (cores * (double)count) + 3 * (double)count + (cores == 8 ? 0 : 15);
        w->trial[i] = (plan_trial){.candidate = i, .seconds = seconds};
    }
}

static double dollars_of(const world *w, int64_t i)
{
    return w->trial[i].seconds * w->candidate[i].dollars_per_hour / 3600;
}

static plan_search *start(const world *w, plan_search_options options)
{
    plan_search *search = NULL;
    assert_int_equal(plan_search_new(&search, &w->space, &options), SHOAL_OK);
    return search;
}

/* Searches to the end; `order` gets what was tried, and how many there were is returned. */
static int64_t run(int64_t *order, int64_t *best, const world *w, plan_search_options options)
{
    plan_search *search = start(w, options);
    const char *why = NULL;
    int64_t next = -1, count = 0;
    for (;;) {
        assert_int_equal(plan_search_next(&next, &why, search), SHOAL_OK);
        assert_true(why && *why);
        if (next < 0)
            break;
        assert_true(next < w->space.candidates && count < w->space.candidates);
        for (int64_t i = 0; i < count; i++)
            assert_true(order[i] != next);
        order[count++] = next;
        assert_int_equal(plan_search_tell(search, &w->trial[next]), SHOAL_OK);
    }
    assert_memory_equal(why, "stop: ", 6);
    *best = plan_search_best(search);
    plan_search_free(&search);
    assert_null(search);
    return count;
}

static const plan_search_options usual = {.objective = PLAN_COST, .seed = 7, .least = 6, .improvement = 0.1};

/* ---- tests ------------------------------------------------------------------------------------------------------- */

static void finds_what_is_best(void **state)
{
    (void)state;
    world w;
    make_world(&w);
    int64_t order[ALL], best = -1;
    for (int objective = PLAN_TIME; objective <= PLAN_COST_TIME; objective++) {
        double least = INFINITY, sum = 0, runs = 0;
        for (int64_t i = 0; i < ALL; i++) {
            const double d = dollars_of(&w, i), s = w.trial[i].seconds;
            least = fmin(least, objective == PLAN_TIME ? s : objective == PLAN_COST ? d : d * s);
        }
        for (uint64_t seed = 0; seed < 20; seed++) {
            plan_search_options options = usual;
            options.seed = seed;
            options.objective = (plan_objective)objective;
            runs += (double)run(order, &best, &w, options) / 20;
            const double d = dollars_of(&w, best), s = w.trial[best].seconds;
            sum += (objective == PLAN_TIME ? s : objective == PLAN_COST ? d : d * s) / least / 20;
        }
        assert_true(sum < 1.05);
        assert_true(runs < 14);
    }
}

static void does_the_same_twice_and_another_from_another_seed(void **state)
{
    (void)state;
    world w;
    make_world(&w);
    for (int method = 0; method < METHODS; method++) {
        plan_search_options options = usual;
        int64_t order[3][ALL], best[3], count[3];
        options.method = methods[method];
        options.most = 9;
        for (int i = 0; i < 3; i++) {
            options.seed = i < 2 ? 3 : 4;
            count[i] = run(order[i], &best[i], &w, options);
        }
        assert_int_equal(count[0], count[1]);
        assert_memory_equal(order[0], order[1], sizeof **order * (size_t)count[0]);
        assert_memory_not_equal(order[0], order[2], 3 * sizeof **order);
    }
}

static void goes_on_from_its_trials(void **state)
{
    (void)state;
    world w;
    make_world(&w);
    w.trial[5].outcome = PLAN_TRIAL_FAILED;
    for (int64_t i = 0; i < 6; i++)
        w.trial[20 + i].outcome = PLAN_TRIAL_TIMED_OUT;
    for (int method = 0; method < METHODS; method++) {
        plan_search_options options = usual;
        options.method = methods[method];
        options.most = 12;
        options.improvement = 0;
        int64_t order[ALL], best = -1, next = -1;
        assert_int_equal(run(order, &best, &w, options), 12);
        for (int64_t cut = 0; cut < 12; cut++) {
            plan_search *search = start(&w, options);
            for (int64_t i = 0; i < cut; i++)
                assert_int_equal(plan_search_tell(search, &w.trial[order[i]]), SHOAL_OK);
            for (int again = 0; again < 2; again++) {
                assert_int_equal(plan_search_next(&next, NULL, search), SHOAL_OK);
                assert_int_equal(next, order[cut]);
            }
            plan_search_free(&search);
        }
    }
}

static void starts_far_apart(void **state)
{
    (void)state;
    world w;
    make_world(&w);
    double apart = 0;
    for (uint64_t seed = 0; seed < 50; seed++) {
        plan_search_options options = usual;
        int64_t order[ALL], best = -1;
        options.seed = seed;
        options.most = 3;
        assert_int_equal(run(order, &best, &w, options), 3);
        double nearest = INFINITY;
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < i; j++)
                nearest =
                    fmin(nearest, hypot((double)(order[i] / COUNTS - order[j] / COUNTS) / (SIZES - 1),
                                        log((double)w.candidate[order[i]].count / (double)w.candidate[order[j]].count) /
                                            log(19)));
        apart += nearest / 50;
    }
    assert_true(apart > 0.4); /* by chance alone: 0.3 */
}

static void meets_deadline_and_budget(void **state)
{
    (void)state;
    world w;
    make_world(&w);
    for (int method = 0; method < METHODS && methods[method]->init; method++) {
        int64_t order[ALL], best = -1;
        int met = 0, within = 0;
        for (uint64_t seed = 0; seed < 10; seed++) {
            plan_search_options options = usual;
            options.seed = seed;
            options.method = methods[method];
            options.deadline = 150;
            int64_t count = run(order, &best, &w, options);
            assert_true(best < 0 || w.trial[best].seconds <= 150);
            for (int64_t i = 3; i < count; i++)
                met += w.trial[order[i]].seconds <= 200 ? 1 : -1;
            options.deadline = 0;
            options.budget = 0.3;
            options.objective = PLAN_TIME;
            count = run(order, &best, &w, options);
            assert_true(best < 0 || dollars_of(&w, best) <= 0.3);
            for (int64_t i = 3; i < count; i++)
                within += dollars_of(&w, order[i]) <= 0.35 ? 1 : -1;
        }
        assert_true(met > 0 &&
                    within > 0); /* most of those that the model chose; of all candidates less than half are */
    }
}

static void gives_up_on_a_deadline_that_nothing_meets(void **state)
{
    (void)state;
    world w;
    make_world(&w);
    plan_search_options options = usual;
    int64_t order[ALL], best = 0;
    options.deadline = 0.5;
    assert_true(run(order, &best, &w, options) < 10);
    assert_int_equal(best, -1);
    plan_search *search = start(&w, options);
    assert_true(isnan(plan_search_best_value(search)));
    plan_search_free(&search);
}

/* Half of the candidates are bad, and they are the cheapest: small machines fail, or what takes long is ended. */
static void spoil_half(world *w, plan_outcome kind)
{
    make_world(w);
    for (int64_t i = 0; i < ALL; i++)
        if (kind == PLAN_TRIAL_FAILED ? i < 2 * COUNTS : w->trial[i].seconds > 250)
            w->trial[i] = (plan_trial){.candidate = i, .outcome = kind, .seconds = kind == PLAN_TRIAL_FAILED ? 0 : 250};
}

static int64_t count_bad(const world *w, const search_method *method, int64_t *without)
{
    int64_t order[ALL], best = -1, bad = 0;
    *without = 0;
    for (uint64_t seed = 0; seed < 20; seed++) {
        plan_search_options options = usual;
        options.method = method;
        options.seed = seed;
        options.improvement = 0;
        options.most = 12;
        const int64_t count = run(order, &best, w, options);
        *without += best < 0;
        for (int64_t i = 0; i < count; i++)
            bad += w->trial[order[i]].outcome != PLAN_TRIAL_DONE;
    }
    return bad;
}

/* Published CherryPick, which does not learn from failures, is what it would be without. */
static void learns_from_failures_and_time_outs(void **state)
{
    (void)state;
    for (int kind = PLAN_TRIAL_FAILED; kind <= PLAN_TRIAL_TIMED_OUT; kind++) {
        world w;
        int64_t without = 0, without_then = 0;
        spoil_half(&w, (plan_outcome)kind);
        const int64_t bad = count_bad(&w, &search_ours, &without),
                      then = count_bad(&w, &search_cherrypick, &without_then);
        assert_int_equal(without, 0);
        if (bad > 0.9 * (double)then)
            fail_msg("%lld bad runs, and %lld without learning from them", (long long)bad, (long long)then);
    }
}

static void ends_where_nothing_works(void **state)
{
    (void)state;
    for (int method = 0; method < METHODS; method++)
        for (int kind = PLAN_TRIAL_FAILED; kind <= PLAN_TRIAL_TIMED_OUT; kind++) {
            world w;
            int64_t order[ALL], best = 0;
            make_world(&w);
            for (int64_t i = 0; i < ALL; i++)
                w.trial[i] = (plan_trial){.candidate = i, .outcome = (plan_outcome)kind, .seconds = 60};
            plan_search_options options = usual;
            options.method = methods[method];
            assert_true(run(order, &best, &w, options) <= ALL);
            assert_int_equal(best, -1);
        }
}

/* That one was ended after a second says nothing of runs that may take longer, once such ones got done. */
static void a_limit_is_lifted_by_what_takes_longer(void **state)
{
    (void)state;
    world w;
    const plan_trial ended = {.candidate = 39, .outcome = PLAN_TRIAL_TIMED_OUT, .seconds = 1};
    const char *why = NULL;
    int64_t next = -1;
    make_world(&w);
    plan_search_options options = usual;
    options.least = 1;
    plan_search *search = start(&w, options);
    assert_int_equal(plan_search_tell(search, &ended), SHOAL_OK);
    assert_int_equal(plan_search_tell(search, &w.trial[9]), SHOAL_OK);
    assert_int_equal(plan_search_tell(search, &w.trial[19]), SHOAL_OK);
    assert_int_equal(plan_search_next(&next, &why, search), SHOAL_OK);
    if (next < 0)
        fail_msg("it %s", why);
    plan_search_free(&search);
}

/* Prices that only some have must not make the others look a thousand times as slow. */
static void prices_of_only_some_change_nothing(void **state)
{
    (void)state;
    world with, without;
    int64_t order[ALL], other[ALL], best = -1, other_best = -1;
    make_world(&with);
    make_world(&without);
    for (int64_t i = 0; i < ALL; i++) {
        without.candidate[i].dollars_per_hour = 0;
        with.candidate[i].dollars_per_hour *= i % 2;
    }
    plan_search_options options = usual;
    options.objective = PLAN_TIME;
    const int64_t count = run(order, &best, &with, options);
    assert_int_equal(run(other, &other_best, &without, options), count);
    assert_memory_equal(order, other, (size_t)count * sizeof *order);
}

/* Ratios that no double can hold leave the search in working order. */
static void absurd_spans_of_values_do_no_harm(void **state)
{
    (void)state;
    for (int method = 0; method < METHODS; method++)
        for (int objective = PLAN_TIME; objective <= PLAN_COST_TIME; objective++) {
            world w;
            int64_t order[ALL], best = -1;
            plan_search_options options = usual;
            options.method = methods[method];
            options.objective = (plan_objective)objective;
            options.improvement = 0;
            make_world(&w);
            w.space.candidates = 15;
            for (int64_t i = 0; i < ALL; i++)
                w.trial[i].seconds = i % 3 == 0 ? 1e-300 : i % 3 == 1 ? 1 : 1e300;
            assert_int_equal(run(order, &best, &w, options), 15);
            assert_int_equal(best % 3, 0);
        }
}

static void small_and_flat_spaces_do_no_harm(void **state)
{
    (void)state;
    for (int method = 0; method < METHODS; method++) {
        world w;
        int64_t order[ALL], best = -1;
        plan_search_options options = usual;
        options.method = methods[method];
        options.improvement = 0;
        make_world(&w);
        for (int64_t i = 0; i < ALL; i++)
            w.candidate[i].feature[0] = w.candidate[i].feature[1] = 4;
        assert_int_equal(run(order, &best, &w, options), ALL);
        w.space.features = 0;
        assert_int_equal(run(order, &best, &w, options), ALL);
        make_world(&w);
        for (int64_t candidates = 1; candidates <= 4; candidates++) {
            w.space.candidates = candidates;
            assert_int_equal(run(order, &best, &w, options), candidates);
            assert_true(best >= 0);
        }
        /* All take the same: nothing is to be gained. */
        make_world(&w);
        for (int64_t i = 0; i < ALL; i++)
            w.trial[i].seconds = 100 / w.candidate[i].dollars_per_hour;
        options.improvement = 0.1;
        if (methods[method] != &search_random)
            assert_true(run(order, &best, &w, options) < 12);
        /* A span that a double can't hold. */
        make_world(&w);
        w.space.logarithmic[0] = false;
        w.candidate[0].feature[0] = -1.7e308;
        w.candidate[1].feature[0] = 1.7e308;
        run(order, &best, &w, options);
    }
}

static void never_stops_before_the_least_nor_after_the_most(void **state)
{
    (void)state;
    world w;
    make_world(&w);
    int64_t order[ALL], best = -1;
    for (int64_t trials = 1; trials < 20; trials += 3) {
        plan_search_options options = usual;
        options.least = trials;
        options.improvement = 0.9;
        assert_int_equal(run(order, &best, &w, options), trials < 3 ? 3 : trials);
        options.least = 0;
        options.improvement = 0;
        options.most = trials;
        assert_int_equal(run(order, &best, &w, options), trials);
    }
    plan_search_options options = usual;
    options.improvement = 0;
    assert_int_equal(run(order, &best, &w, options), ALL);
}

static void opinions_grow_firm(void **state)
{
    (void)state;
    world w;
    make_world(&w);
    plan_search *search = start(&w, usual);
    double mean = 0, deviation = 0, before = 0;
    assert_int_equal(plan_search_opinion(&mean, &deviation, search, 3), SHOAL_OK);
    assert_true(isnan(mean) && isinf(deviation));
    assert_int_equal(plan_search_tell(search, &w.trial[0]), SHOAL_OK);
    assert_int_equal(plan_search_opinion(&mean, &before, search, 3), SHOAL_OK);
    for (int64_t i = 1; i < ALL; i += 2)
        assert_int_equal(plan_search_tell(search, &w.trial[i]), SHOAL_OK);
    for (int64_t i = 4; i < ALL; i += 2) {
        assert_int_equal(plan_search_opinion(&mean, &deviation, search, i), SHOAL_OK);
        assert_true(deviation < before / 2);
        assert_true(fabs(mean - log(dollars_of(&w, i))) < 3 * deviation);
    }
    assert_true(plan_search_opinion(&mean, &deviation, search, ALL) == SHOAL_USAGE);
    assert_true(plan_search_opinion(&mean, &deviation, search, -1) == SHOAL_USAGE);
    plan_search_free(&search);
}

/* What was paid counts, not what the price would say. */
static void measured_dollars_count(void **state)
{
    (void)state;
    world w;
    make_world(&w);
    plan_search *search = start(&w, usual);
    assert_int_equal(plan_search_tell(search, &w.trial[0]), SHOAL_OK);
    plan_trial other = w.trial[30];
    other.dollars = 1e-6;
    assert_int_equal(plan_search_tell(search, &other), SHOAL_OK);
    assert_int_equal(plan_search_best(search), 30);
    assert_true(fabs(plan_search_best_value(search) - 1e-6) < 1e-15);
    plan_search_free(&search);
}

static void refuse(const world *w, plan_search_options options, const char *about)
{
    plan_search *search = NULL;
    assert_true(plan_search_new(&search, &w->space, &options) < 0);
    assert_null(search);
    if (!strstr(shoal_error(), about))
        fail_msg("'%s' does not say '%s'", shoal_error(), about);
}

static void refuses_what_makes_no_sense(void **state)
{
    (void)state;
    world w;
    make_world(&w);
    plan_search_options options = usual;
    options.improvement = 1, refuse(&w, options, "improvement"), options.improvement = NAN,
    refuse(&w, options, "improvement");
    options = usual, options.deadline = -1, refuse(&w, options, "deadline"), options.deadline = NAN,
    refuse(&w, options, "deadline");
    options = usual, options.budget = INFINITY, refuse(&w, options, "budget");
    options = usual, options.least = -1, refuse(&w, options, "negative");
    options = usual, options.objective = (plan_objective)7, refuse(&w, options, "objective");
    w.space.candidates = 0, refuse(&w, usual, "needs candidates"), make_world(&w);
    w.space.candidates = 1 << 30, refuse(&w, usual, "more than"), make_world(&w);
    w.space.features = 17, refuse(&w, usual, "features"), make_world(&w);
    w.candidate[3].feature[1] = 0, refuse(&w, usual, "7 of two: count is 0"), make_world(&w);
    w.candidate[3].feature[1] = NAN, refuse(&w, usual, "count is not a number"), make_world(&w);
    w.candidate[3].dollars_per_hour = 0, refuse(&w, usual, "7 of two has no price"), make_world(&w);
    w.candidate[3].dollars_per_hour = -2, refuse(&w, usual, "price"), make_world(&w);
    w.candidate[3].count = 1, refuse(&w, usual, "1 of two appears twice, as candidates 1 and 4"), make_world(&w);
}

static void refuses_trials_that_make_no_sense(void **state)
{
    (void)state;
    world w;
    make_world(&w);
    plan_search *search = start(&w, usual);
    assert_int_equal(plan_search_tell(search, &w.trial[4]), SHOAL_OK);
    assert_int_equal(plan_search_tell(search, &w.trial[4]), SHOAL_INVALID);
    assert_non_null(strstr(shoal_error(), "9 of two was tried already"));
    const plan_trial wrong[] = {{.candidate = -1, .seconds = 1},
                                {.candidate = ALL, .seconds = 1},
                                {.candidate = 5, .seconds = 0},
                                {.candidate = 5, .seconds = -1, .outcome = PLAN_TRIAL_FAILED},
                                {.candidate = 5, .seconds = NAN},
                                {.candidate = 5, .seconds = INFINITY},
                                {.candidate = 5, .seconds = 1, .dollars = -1},
                                {.candidate = 5, .seconds = 1, .dollars = NAN},
                                {.candidate = 5, .seconds = 1, .outcome = (plan_outcome)8}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(plan_search_tell(search, &wrong[i]), SHOAL_INVALID);
    assert_int_equal(plan_search_best(search), 4);
    plan_search_free(&search);
    plan_search_free(&search);
}

static void memory_that_runs_out_is_told(void **state)
{
    (void)state;
    world w;
    make_world(&w);
    for (int method = 0; method < METHODS; method++) {
        int64_t n = 0;
        for (int status = SHOAL_MEMORY; status != SHOAL_OK; n += 7) {
            plan_search_options options = usual;
            plan_search *search = NULL;
            options.method = methods[method];
            base_memory_fail_after(n);
            status = plan_search_new(&search, &w.space, &options);
            for (int64_t i = 0; status == SHOAL_OK && i < 10; i++)
                status = plan_search_tell(search, &w.trial[i]);
            base_memory_fail_after(-1);
            assert_true(status == SHOAL_OK || status == SHOAL_MEMORY);
            plan_search_free(&search);
        }
        assert_true(n > 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_what_is_best),
        cmocka_unit_test(does_the_same_twice_and_another_from_another_seed),
        cmocka_unit_test(goes_on_from_its_trials),
        cmocka_unit_test(starts_far_apart),
        cmocka_unit_test(meets_deadline_and_budget),
        cmocka_unit_test(gives_up_on_a_deadline_that_nothing_meets),
        cmocka_unit_test(learns_from_failures_and_time_outs),
        cmocka_unit_test(ends_where_nothing_works),
        cmocka_unit_test(a_limit_is_lifted_by_what_takes_longer),
        cmocka_unit_test(prices_of_only_some_change_nothing),
        cmocka_unit_test(absurd_spans_of_values_do_no_harm),
        cmocka_unit_test(small_and_flat_spaces_do_no_harm),
        cmocka_unit_test(never_stops_before_the_least_nor_after_the_most),
        cmocka_unit_test(opinions_grow_firm),
        cmocka_unit_test(measured_dollars_count),
        cmocka_unit_test(refuses_what_makes_no_sense),
        cmocka_unit_test(refuses_trials_that_make_no_sense),
        cmocka_unit_test(memory_that_runs_out_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
