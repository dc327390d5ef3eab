/* How long trials take on so many runners. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "sweep/map.h"

static double time_of(const double *seconds, int64_t trials, int64_t at_once)
{
    double out = -1;
    assert_int_equal(sweep_map_time(&out, seconds, trials, at_once), 0);
    return out;
}

static void test_trials_go_to_who_is_free_first(void **state)
{
    const double seconds[] = {4, 1, 1, 3, 2};
    (void)state;
    assert_true(time_of(seconds, 5, 1) == 11);
    assert_true(time_of(seconds, 5, 2) == 6); /* 4 and 2 and, beside them, 1, 1 and 3 */
    assert_true(time_of(seconds, 5, 3) == 4);
    assert_true(time_of(seconds, 5, 100) == 4);
    assert_true(time_of(seconds, 0, 3) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_trials_go_to_who_is_free_first)};
    return cmocka_run_group_tests_name("sweep_map", tests, NULL, NULL);
}
