/* Labels: threads
 * A gang of threads: every item once, the first failure's status and message, and no more items after it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <shoal/error.h>

#include "base/world.h"
#include "engine/store/job_gang.h"

enum { ITEMS = 1000 };

static atomic_int done[ITEMS], together, most_together;

static int mark(void *context, int64_t item)
{
    const int64_t *bad = context;
    atomic_fetch_add(&done[item], 1);
    return item == *bad ? shoal_fail(SHOAL_DENIED, "item %d", (int)item) : SHOAL_OK;
}

static int total(void)
{
    int sum = 0;
    for (int i = 0; i < ITEMS; i++)
        sum += atomic_load(&done[i]);
    return sum;
}

static void every_item_once(void **state)
{
    (void)state;
    int64_t none = -1;
    for (int threads = 0; threads < 40; threads += 3) {
        memset(done, 0, sizeof done);
        assert_int_equal(job_gang_run(threads, ITEMS, mark, &none), SHOAL_OK);
        for (int i = 0; i < ITEMS; i++)
            assert_int_equal(done[i], 1);
    }
    assert_int_equal(job_gang_run(8, 0, mark, &none), SHOAL_OK);
}

static void failures_end_it(void **state)
{
    (void)state;
    int64_t bad = 7;
    memset(done, 0, sizeof done);
    assert_int_equal(job_gang_run(1, ITEMS, mark, &bad), SHOAL_DENIED);
    assert_string_equal(shoal_error(), "item 7");
    assert_int_equal(total(), 8);
    for (int i = 0; i < 50; i++) { /* from whichever thread it comes */
        bad = i * 20;
        shoal_fail(SHOAL_INVALID, "older");
        assert_int_equal(job_gang_run(8, ITEMS, mark, &bad), SHOAL_DENIED);
        char expected[32];
        snprintf(expected, sizeof expected, "item %d", (int)bad);
        assert_string_equal(shoal_error(), expected);
    }
}

/* Waits until two are here, so that it would take forever on one thread. */
static int meet(void *context, int64_t item)
{
    (void)context, (void)item;
    atomic_fetch_add(&together, 1);
    for (int64_t until = base_time_after(base_now(), 300); atomic_load(&together) < 2 && base_now() < until;)
        base_sleep_until(base_time_after(base_now(), 0.001));
    atomic_store(&most_together, atomic_load(&together));
    return SHOAL_OK;
}

/* Only item 0 fails, at once. */
static int dawdle(void *context, int64_t item)
{
    (void)context;
    atomic_fetch_add(&done[item], 1);
    if (item == 0)
        return shoal_fail(SHOAL_LOST, "item 0");
    base_sleep_until(base_time_after(base_now(), 0.01));
    return SHOAL_OK;
}

static void failures_end_the_others(void **state)
{
    (void)state;
    memset(done, 0, sizeof done);
    assert_int_equal(job_gang_run(2, ITEMS, dawdle, NULL), SHOAL_LOST);
    assert_true(total() < ITEMS);
}

static void at_the_same_time(void **state)
{
    (void)state;
    assert_int_equal(job_gang_run(2, 2, meet, NULL), SHOAL_OK);
    assert_int_equal(most_together, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_item_once),
        cmocka_unit_test(failures_end_it),
        cmocka_unit_test(failures_end_the_others),
        cmocka_unit_test(at_the_same_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
