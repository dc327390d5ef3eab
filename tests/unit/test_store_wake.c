/* Waking: who waits for all below a name, is woken, and then asks what it was, finds it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/world.h"
#include "store/store_internal.h"

static store_wake wake;
static const char *const names[] = {"", "jobs/", "jobs/a/", "jobs/a/round/", "jobs/a/round/1"};
enum { NAMES = sizeof names / sizeof *names };
static uint32_t seen[NAMES];
static int woken;

static int64_t now_own(void)
{
    return 1;
}

/* Somebody is woken: of whatever name that is, all longer ones must tell of the change by now. */
static void wake_own(const _Atomic uint32_t *word, int most)
{
    (void)word;
    (void)most;
    woken++;
    for (int i = 0, changed = 0; i < NAMES; i++) {
        uint32_t looked = seen[i];
        bool tells = store_wake_wait(&wake, names[i], &looked, 0) == SHOAL_OK;
        assert_true(tells || !changed);
        changed |= tells;
    }
}

static void random_own(void *bytes, size_t size)
{
    (void)bytes;
    (void)size;
}

static void wait_own(const _Atomic uint32_t *word, uint32_t value, int64_t until)
{
    (void)word;
    (void)value;
    (void)until;
}

static const base_world own_world = {.now = now_own, .wait = wait_own, .wake = wake_own, .random = random_own};

static void test_the_longest_name_is_told_first(void **state)
{
    (void)state;
    for (int i = 0; i < STORE_WAKE_WORDS; i++)
        atomic_init(&wake.waiters[i], 1);
    for (int i = 0; i < NAMES; i++)
        assert_int_equal(store_wake_wait(&wake, names[i], &seen[i], 0), SHOAL_OK); /* the first look */
    base_world_set(&own_world);
    store_wake_changed(&wake, "jobs/a/round/1");
    base_world_set(NULL);
    assert_int_equal(woken, NAMES);
}

static void test_neighbours_sleep_on(void **state)
{
    uint32_t neighbour = 0;
    (void)state;
    assert_int_equal(store_wake_wait(&wake, "jobs/a/round/2", &neighbour, 0), SHOAL_OK);
    store_wake_changed(&wake, "jobs/a/round/1");
    assert_int_equal(store_wake_wait(&wake, "jobs/a/round/2", &neighbour, 0), SHOAL_AGAIN);
}

static void test_a_blob_of_a_queue_is_a_change_of_the_queue(void **state)
{
    uint32_t queue = 0;
    (void)state;
    assert_int_equal(store_wake_wait(&wake, "team/jobs/map", &queue, 0), SHOAL_OK);
    store_wake_changed(&wake, "team/.shoal/queue/jobs/map/m/0123");
    assert_int_equal(store_wake_wait(&wake, "team/jobs/map", &queue, 0), SHOAL_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_longest_name_is_told_first),
        cmocka_unit_test(test_neighbours_sleep_on),
        cmocka_unit_test(test_a_blob_of_a_queue_is_a_change_of_the_queue),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
