/* What a job is held to and how that stands, as blobs: there and back, and what others write in their place. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <shoal/error.h>

#include "control/aim.h"

static int open_store(void **state)
{
    return shoal_store_open((shoal_store **)state, "mem:test_control_aim", &(shoal_store_options){.create = true},
                            shoal_after(20));
}

static int close_store(void **state)
{
    shoal_store_close((shoal_store **)state);
    return 0;
}

static void put_json(shoal_store *store, const char *key, uint32_t kind, const char *json)
{
    assert_int_equal(shoal_store_put_framed(store, key, kind, json, strlen(json), NULL, NULL, shoal_after(20)), 0);
}

static void test_an_aim_comes_back(void **state)
{
    shoal_store *store = *state;
    const control_aim aim = {.deadline = 1.8e9, .budget = 5, .price = 0.03, .or_stop = true};
    control_aim back;
    assert_int_equal(control_aim_get(&back, store, "none-1", shoal_after(20)), SHOAL_ABSENT);
    assert_int_equal(control_aim_put(store, "job-1", &aim, shoal_after(20)), SHOAL_OK);
    assert_int_equal(control_aim_get(&back, store, "job-1", shoal_after(20)), SHOAL_OK);
    assert_true(back.deadline == aim.deadline && back.budget == 5 && back.price == 0.03 && back.or_stop);
}

static void test_how_it_stands_comes_back(void **state)
{
    shoal_store *store = *state;
    control_held held = {.workers = 3,
                         .least = 1,
                         .most = 8,
                         .spent = 0.25,
                         .verdict = CONTROL_LATE,
                         .blind = true,
                         .phase = "run",
                         .end = INFINITY,
                         .state = {.changes = 4}},
                 back;
    control_trend_init(&held.trend, 0.2);
    held.trend.doubted = 1; /* of one round: it need not last */
    assert_int_equal(control_held_put(store, "job-1", &held, shoal_after(20)), SHOAL_OK);
    assert_int_equal(control_held_get(&back, store, "job-1", shoal_after(20)), SHOAL_OK);
    assert_true(back.workers == 3 && back.most == 8 && back.spent == 0.25 && back.verdict == CONTROL_LATE);
    assert_true(back.trend.aa == held.trend.aa && back.trend.noise == held.trend.noise && back.state.changes == 4);
    assert_true(back.blind && strcmp(back.phase, "run") == 0 && isfinite(back.end));
}

static void test_a_covariance_has_a_root(void **state)
{
    shoal_store *store = *state;
    control_held held = {.trend = {.aa = 1, .bb = 1, .ab = -1, .noise = 0.01}}, back;
    assert_int_equal(control_held_put(store, "job-3", &held, shoal_after(20)), SHOAL_OK);
    assert_int_equal(control_held_get(&back, store, "job-3", shoal_after(20)), SHOAL_OK);
    held.trend.ab = -1.1;
    assert_int_equal(control_held_put(store, "job-3", &held, shoal_after(20)), SHOAL_OK);
    assert_int_equal(control_held_get(&back, store, "job-3", shoal_after(20)), SHOAL_BROKEN);
}

static void test_forged_ones_are_refused(void **state)
{
    static const char *const forged[] = {"",
                                         "{",
                                         "[]",
                                         "7",
                                         "{}",
                                         "{\"deadline\": 0, \"budget\": 0}",
                                         "{\"deadline\": -1, \"budget\": 0, \"price\": 0}",
                                         "{\"deadline\": 1e300, \"budget\": 0, \"price\": 0}",
                                         "{\"deadline\": \"1\", \"budget\": 0, \"price\": 0}"};
    shoal_store *store = *state;
    control_aim aim;
    control_held held;
    for (size_t i = 0; i < sizeof forged / sizeof *forged; i++) {
        put_json(store, "jobs/job-2/aim", SHOAL_KIND('a', 'i', 'm', ' '), forged[i]);
        put_json(store, "jobs/job-2/held", SHOAL_KIND('h', 'e', 'l', 'd'), forged[i]);
        assert_int_equal(control_aim_get(&aim, store, "job-2", shoal_after(20)), SHOAL_BROKEN);
        assert_int_equal(control_held_get(&held, store, "job-2", shoal_after(20)), SHOAL_BROKEN);
        assert_true(aim.deadline == 0 && held.workers == 0);
    }
}

static void test_words(void **state)
{
    char line[CONTROL_LINE_BYTES];
    control_aim aim = {.deadline = 1600, .price = 1, .budget = 2};
    control_held held = {.workers = 3, .least = 1, .most = 8, .spent = 0.5, .cost = 0.75};
    (void)state;
    control_describe(line, &aim, &held, 1000);
    assert_string_equal(line, "its end can't be foretold yet; its deadline is in 10.0 min; 3 of 1 to 8 workers; $0.5 "
                              "spent, $0.75 in all of $2");
    held.end = 1630, held.low = 1560, held.high = 1700;
    control_describe(line, &aim, &held, 1540);
    assert_string_equal(line,
                        "ends in 90.0 s (90% of cases: 20.0 s to 2.7 min), 30.0 s after its deadline; 3 of 1 to 8 "
                        "workers; $0.5 spent, $0.75 in all of $2");
}

static void test_what_follows(void **state)
{
    const control_aim aim = {.deadline = 100, .budget = 5, .price = 0.03}, same = aim;
    control_aim other = aim;
    control_held held = {.worker_seconds = 7200};
    (void)state;
    assert_true(control_aim_same(&aim, &same));
    other.or_stop = true;
    assert_false(control_aim_same(&aim, &other));
    assert_false(control_is_hopeless(&aim, &held, 99));
    assert_true(control_is_hopeless(&aim, &held, 101)); /* though nothing is foretold yet */
    held.end = 101;
    assert_true(control_is_hopeless(&aim, &held, 99));
    held = (control_held){.worker_seconds = 7200, .cost = 6};
    assert_true(control_is_hopeless(&aim, &held, 99));
    control_held_price(&held, 0);
    assert_true(held.spent == 0);
    control_held_price(&held, 0.5); /* a budget is for everything from the beginning */
    assert_true(fabs(held.spent - 1) < 1e-12);
    control_held_price(&held, 7);
    assert_true(fabs(held.spent - 1) < 1e-12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_an_aim_comes_back),
                                       cmocka_unit_test(test_how_it_stands_comes_back),
                                       cmocka_unit_test(test_forged_ones_are_refused),
                                       cmocka_unit_test(test_words),
                                       cmocka_unit_test(test_what_follows),
                                       cmocka_unit_test(test_a_covariance_has_a_root)};
    return cmocka_run_group_tests(tests, open_store, close_store);
}
