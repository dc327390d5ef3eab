/* src/sweep: samplers give points of the space and are functions of what they are asked; rules of early stopping let
 * those go on that they should; a course refuses what can't be. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include <shoal/error.h>

#include "base/memory.h"
#include "base/random.h"
#include "sweep/course.h"

static sweep_space *read_space(const char *text)
{
    sweep_space *space = NULL;
    json_t *json = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(json);
    assert_int_equal(sweep_space_of_json(&space, "s.json", json), SHOAL_OK);
    json_decref(json);
    return space;
}

static const char two_floats[] = "{\"x\": {\"low\": -1.0, \"high\": 1.0}, \"y\": {\"low\": 1e-3, \"high\": 1.0, "
                                 "\"scale\": \"log\"}}";
static const char conditions[] = "{\"a\": [\"u\", \"v\"], \"b\": {\"low\": 1, \"high\": 3, \"type\": \"integer\", "
                                 "\"when\": {\"a\": \"v\"}}, \"c\": {\"low\": 0.0, \"high\": 1.0, \"steps\": 2}}";

static double bowl(const sweep_point *p)
{
    return (p->value[0] - 0.3) * (p->value[0] - 0.3) + pow(log10(p->value[1]) + 2, 2);
}

/* A sweep of one worker; the best it finds. */
static double run_sweep(const sweep_space *space, const sweep_sampler *sampler, uint64_t seed, int64_t trials)
{
    const sweep_rules rules = {.space = space,
                               .sampler = sampler,
                               .stopper = &sweep_stopper_none,
                               .seed = seed,
                               .trials = trials,
                               .goal = -INFINITY,
                               .rungs = {.eta = 3, .count = 1, .step = {1}}};
    sweep_course course;
    sweep_order order;
    sweep_course_init(&course, &rules);
    while (sweep_course_give(&course, &order) == SHOAL_OK)
        assert_int_equal(sweep_course_take(&course, &(sweep_result){.order = course.orders - 1,
                                                                    .step = 1,
                                                                    .value = bowl(&course.trial[order.trial].point)}),
                         SHOAL_OK);
    assert_int_equal(course.trials, trials);
    const double best = course.trial[course.best].value;
    sweep_course_release(&course);
    return best;
}

static void test_models_find_more(void **state)
{
    sweep_space *space = read_space(two_floats);
    double by_chance = 0, by_model = 0, by_process = 0;
    (void)state;
    for (uint64_t seed = 0; seed < 10; seed++) {
        by_chance += run_sweep(space, &sweep_sampler_random, seed, 60);
        by_model += run_sweep(space, &sweep_sampler_tpe, seed, 60);
        by_process += run_sweep(space, &sweep_sampler_gp, seed, 30);
    }
    assert_true(by_model < by_chance / 4);
    assert_true(by_process < by_chance / 4); /* with half of the trials */
    sweep_space_free(&space);
}

/* Points lie in the space, also where conditions leave parameters out, and the same question has the same answer. */
static void test_points_are_of_the_space(void **state)
{
    sweep_space *space = read_space(conditions);
    sweep_trial trial[40];
    (void)state;
    for (int s = 0; sweep_samplers[s]; s++)
        for (int64_t i = 0; i < 40; i++) {
            const sweep_question question = {.space = space, .seed = 7, .number = i, .trial = trial, .trials = i};
            sweep_point again, read;
            trial[i] = (sweep_trial){
                .rungs = i % 5 != 4, .state = i % 5 == 4 ? SWEEP_RUNNING : SWEEP_DONE, .value = (double)(i * 37 % 11)};
            int status = sweep_samplers[s]->suggest(&trial[i].point, &question);
            if (status == SHOAL_ABSENT && sweep_samplers[s] == &sweep_sampler_grid) {
                assert_int_equal(i, 2 + 3 * 2);
                break;
            }
            assert_int_equal(status, SHOAL_OK);
            assert_int_equal(sweep_samplers[s]->suggest(&again, &question), SHOAL_OK);
            assert_true(sweep_same_point(space, &trial[i].point, &again));
            json_t *json = sweep_point_json(space, &again);
            assert_int_equal(sweep_point_of_json(&read, space, "p", json), SHOAL_OK);
            json_decref(json);
        }
    sweep_space_free(&space);
}

static void test_grid_has_each_point_once(void **state)
{
    sweep_space *space = read_space(conditions), *floats = read_space(two_floats);
    sweep_trial trial[16];
    int64_t count = 0;
    (void)state;
    for (; count < 16; count++) {
        const sweep_question question = {.space = space, .number = count, .trial = trial, .trials = count};
        if (sweep_sampler_grid.suggest(&trial[count].point, &question) < 0)
            break;
        assert_false(sweep_was_tried(&question, &trial[count].point));
    }
    assert_int_equal(count, 8);
    assert_int_equal(sweep_sampler_grid.check(space), SHOAL_OK);
    assert_int_equal(sweep_sampler_grid.check(floats), SHOAL_INVALID);
    assert_non_null(strstr(shoal_error(), "\"x\""));
    sweep_space_free(&space);
    sweep_space_free(&floats);
}

/* Each of the first 2^k points has a cell of 2^k equal ones to itself, in every dimension, and so have squares of two:
 * what makes it Sobol's sequence. */
static void test_sobol_is_even(void **state)
{
    json_t *json = json_object();
    sweep_space *space = NULL;
    (void)state;
    for (int i = 0; i < SWEEP_PARAMETERS_MOST; i++) {
        char name[24];
        snprintf(name, sizeof name, "p%d", i);
        json_object_set_new(json, name, json_pack("{s:f,s:f}", "low", 0.0, "high", 1.0));
    }
    assert_int_equal(sweep_space_of_json(&space, "s", json), SHOAL_OK);
    json_decref(json);
    int met[SWEEP_PARAMETERS_MOST][64] = {{0}}, square[8][8] = {{0}};
    for (int64_t i = 0; i < 64; i++) {
        sweep_point point;
        const sweep_question question = {.space = space, .seed = 3, .number = i};
        assert_int_equal(sweep_sampler_sobol.suggest(&point, &question), SHOAL_OK);
        for (int p = 0; p < SWEEP_PARAMETERS_MOST; p++)
            met[p][(int)(point.value[p] * 64)]++;
        square[(int)(point.value[0] * 8)][(int)(point.value[1] * 8)]++;
    }
    for (int p = 0; p < SWEEP_PARAMETERS_MOST; p++)
        for (int i = 0; i < 64; i++)
            assert_int_equal(met[p][i], 1);
    for (int i = 0; i < 64; i++)
        assert_int_equal(square[i / 8][i % 8], 1);
    sweep_space_free(&space);
}

/* ---- early stopping ---------------------------------------------------------------------------------------------- */

static void assert_rungs(const sweep_stopper *stopper, int64_t steps, int64_t least, int64_t eta, int count,
                         const int64_t *step)
{
    sweep_rungs rungs = {.eta = eta};
    stopper->lay(&rungs, steps, least);
    assert_int_equal(rungs.count, count);
    for (int i = 0; i < count; i++)
        assert_int_equal(rungs.step[i], step[i]);
}

static void test_rungs(void **state)
{
    (void)state;
    assert_rungs(&sweep_stopper_asha, 50, 0, 3, 5, (const int64_t[]){1, 2, 6, 17, 50});
    assert_rungs(&sweep_stopper_asha, 50, 6, 3, 3, (const int64_t[]){6, 17, 50});
    assert_rungs(&sweep_stopper_asha, 1, 0, 3, 1, (const int64_t[]){1});
    assert_rungs(&sweep_stopper_none, 9, 0, 3, 1, (const int64_t[]){9});
    assert_rungs(&sweep_stopper_median, 4, 2, 3, 3, (const int64_t[]){2, 3, 4});
    sweep_rungs rungs = {.eta = 3};
    for (int64_t steps = 1; steps < 3000; steps++) {
        sweep_stopper_median.lay(&rungs, steps, 0);
        assert_in_range(rungs.count, 1, SWEEP_RUNGS_MOST);
        assert_int_equal(rungs.step[rungs.count - 1], steps);
        for (int i = 1; i < rungs.count; i++)
            assert_true(rungs.step[i] > rungs.step[i - 1]);
    }
}

/* Nine trials of which each third goes on: 9 to rung 0, 3 to rung 1, 1 to the end; and those are the best. */
static void test_asha_promotes_the_best_third(void **state)
{
    sweep_space *space = read_space(two_floats);
    sweep_rules rules = {.space = space,
                         .sampler = &sweep_sampler_random,
                         .stopper = &sweep_stopper_asha,
                         .trials = 9,
                         .goal = -INFINITY,
                         .rungs = {.eta = 3}};
    static const double value[9] = {0.5, 0.2, 0.9, 0.1, 0.7, 0.8, 0.3, 0.6, 0.4};
    int64_t came[3] = {0};
    sweep_course course;
    sweep_order order;
    (void)state;
    sweep_stopper_asha.lay(&rules.rungs, 9, 0);
    sweep_course_init(&course, &rules);
    while (sweep_course_give(&course, &order) == SHOAL_OK) {
        came[order.rung]++;
        assert_int_equal(order.until, rules.rungs.step[order.rung]);
        assert_int_equal(
            sweep_course_take(
                &course, &(sweep_result){.order = course.orders - 1, .step = order.until, .value = value[order.trial]}),
            SHOAL_OK);
    }
    assert_int_equal(came[0], 9);
    assert_in_range(came[1], 3, 5); /* some were among the best when they came */
    assert_in_range(came[2], 1, 2);
    assert_int_equal(course.trial[3].state, SWEEP_DONE);
    assert_int_equal(course.trial[2].state, SWEEP_PAUSED);
    assert_int_equal(course.best, 3);
    sweep_course_release(&course);
    sweep_space_free(&space);
}

static void test_hyperband_has_all_brackets(void **state)
{
    sweep_rungs rungs = {.eta = 3};
    int64_t met[5] = {0};
    (void)state;
    sweep_stopper_hyperband.lay(&rungs, 81, 1);
    assert_int_equal(rungs.count, 5);
    for (int64_t i = 0; i < 1430; i++)
        met[sweep_stopper_hyperband.first(&rungs, i)]++;
    static const int64_t share[5] = {81, 34, 15, 8, 5}; /* table 1 of the paper, of 143 */
    for (int i = 0; i < 5; i++)
        assert_in_range(met[i], 10 * share[i] - 10, 10 * share[i] + 10);
}

static void test_median_stops_the_worse_half(void **state)
{
    sweep_rungs rungs = {.eta = 3, .count = 2, .step = {1, 2}};
    sweep_trial trial[9];
    int gone[9] = {0};
    (void)state;
    for (int i = 0; i < 9; i++)
        trial[i] = (sweep_trial){.rungs = 1, .state = SWEEP_PAUSED, .rung = {(double)(i * 4 % 9)}};
    for (int64_t next; (next = sweep_stopper_median.next(&rungs, trial, 9)) >= 0;) {
        trial[next].state = SWEEP_DONE;
        gone[next] = 1;
    }
    for (int i = 0; i < 9; i++)
        assert_int_equal(gone[i], i * 4 % 9 <= 4);
}

/* ---- the course -------------------------------------------------------------------------------------------------- */

static void test_results_that_cannot_be(void **state)
{
    sweep_space *space = read_space(two_floats);
    sweep_rules rules = {.space = space,
                         .sampler = &sweep_sampler_sobol,
                         .stopper = &sweep_stopper_asha,
                         .trials = 3,
                         .goal = 0.5,
                         .rungs = {.eta = 3, .count = 2, .step = {3, 9}}};
    sweep_course course;
    sweep_order order;
    (void)state;
    sweep_course_init(&course, &rules);
    assert_int_equal(sweep_course_give(&course, &order), SHOAL_OK);
    const sweep_result wrong[] = {{.order = 1, .step = 3, .value = 1},
                                  {.order = -1, .step = 3, .value = 1},
                                  {.order = 0, .step = 4, .value = 1},
                                  {.order = 0, .step = -1, .value = 1, .failed = true},
                                  {.order = 0, .step = 3, .value = NAN}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(sweep_course_take(&course, &wrong[i]), SHOAL_BROKEN);
    assert_int_equal(course.open, 1);
    assert_int_equal(sweep_course_take(&course, &(sweep_result){.order = 0, .step = 3, .value = 1}), SHOAL_OK);
    assert_int_equal(sweep_course_take(&course, &(sweep_result){.order = 0, .step = 3, .value = 1}), SHOAL_BROKEN);
    assert_int_equal(course.trial[0].state, SWEEP_PAUSED);
    /* One that fails counts as worse than all; one that ends by itself is done. */
    assert_int_equal(sweep_course_give(&course, &order), SHOAL_OK);
    assert_int_equal(sweep_course_take(&course, &(sweep_result){.order = 1, .step = 0, .failed = true}), SHOAL_OK);
    assert_int_equal(course.trial[1].state, SWEEP_FAILED);
    assert_int_equal(course.best, 0);
    assert_int_equal(sweep_course_give(&course, &order), SHOAL_OK);
    assert_int_equal(sweep_course_take(&course, &(sweep_result){.order = 2, .step = 2, .value = 0.4}), SHOAL_OK);
    assert_int_equal(course.trial[2].state, SWEEP_DONE);
    assert_true(sweep_course_reached(&course));
    assert_int_equal(sweep_course_give(&course, &order), SHOAL_ABSENT);
    sweep_course_release(&course);
    sweep_space_free(&space);
}

/* Another sweep's trials are known, are in nobody's way at the rungs, and do not count against the limit. */
static void test_adopted_trials(void **state)
{
    sweep_space *space = read_space("{\"x\": [1, 2, 3, 4, 5]}");
    const sweep_rules rules = {.space = space,
                               .sampler = &sweep_sampler_grid,
                               .stopper = &sweep_stopper_asha,
                               .trials = 3,
                               .goal = -INFINITY,
                               .rungs = {.eta = 2, .count = 2, .step = {1, 2}}};
    sweep_course course;
    sweep_order order;
    (void)state;
    sweep_course_init(&course, &rules);
    assert_int_equal(sweep_course_adopt(&course, &(sweep_point){{1}}, NAN, 2), SHOAL_OK);
    assert_int_equal(course.best, -1);
    assert_int_equal(sweep_course_adopt(&course, &(sweep_point){{3}}, -7, 2), SHOAL_OK);
    assert_int_equal(course.best, 1);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(sweep_course_give(&course, &order), SHOAL_OK);
        assert_int_equal(order.trial, 2 + i);
        assert_true(course.trial[order.trial].point.value[0] == (i == 0 ? 0 : 2));
        assert_int_equal(sweep_course_take(&course, &(sweep_result){.order = i, .step = 1, .value = i}), SHOAL_OK);
    }
    assert_int_equal(sweep_course_adopt(&course, &(sweep_point){{4}}, 1, 2), SHOAL_BROKEN);
    assert_int_equal(sweep_course_give(&course, &order),
                     SHOAL_OK); /* the better of the two, not the one that is known */
    assert_int_equal(order.trial, 2);
    assert_int_equal(sweep_course_give(&course, &order), SHOAL_OK);
    assert_int_equal(order.trial, 4);
    assert_true(sweep_course_is_full(&course));
    sweep_course_release(&course);
    sweep_space_free(&space);
}

static void test_every_allocation_may_fail(void **state)
{
    sweep_space *space = read_space(conditions);
    const sweep_rules rules = {.space = space,
                               .sampler = &sweep_sampler_tpe,
                               .stopper = &sweep_stopper_none,
                               .trials = 30,
                               .goal = -INFINITY,
                               .rungs = {.eta = 3, .count = 1, .step = {1}}};
    (void)state;
    for (int64_t n = 0, failed = 1; failed; n++) {
        sweep_course course;
        sweep_order order;
        int64_t ended = 0;
        sweep_course_init(&course, &rules);
        failed = 0;
        base_memory_fail_after(n);
        while (ended < 30) {
            const int status = sweep_course_give(&course, &order);
            base_memory_fail_after(status == SHOAL_MEMORY ? -1 : n + 1000 * failed);
            failed += status == SHOAL_MEMORY;
            if (status == SHOAL_OK)
                assert_int_equal(sweep_course_take(&course, &(sweep_result){.order = ended++, .step = 1, .value = 1}),
                                 SHOAL_OK);
        }
        base_memory_fail_after(-1);
        assert_int_equal(course.trials, 30);
        sweep_course_release(&course);
    }
    sweep_space_free(&space);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_models_find_more),
        cmocka_unit_test(test_points_are_of_the_space),
        cmocka_unit_test(test_grid_has_each_point_once),
        cmocka_unit_test(test_sobol_is_even),
        cmocka_unit_test(test_rungs),
        cmocka_unit_test(test_asha_promotes_the_best_third),
        cmocka_unit_test(test_hyperband_has_all_brackets),
        cmocka_unit_test(test_median_stops_the_worse_half),
        cmocka_unit_test(test_results_that_cannot_be),
        cmocka_unit_test(test_adopted_trials),
        cmocka_unit_test(test_every_allocation_may_fail),
    };
    return cmocka_run_group_tests_name("sweep_course", tests, NULL, NULL);
}
