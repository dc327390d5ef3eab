/* Labels: threads
 * The pool: every item once, whoever runs it; failures and the floating-point environment find their way back. */
#include <errno.h>
#include <fenv.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include <shoal/error.h>

#include "base/memory.h"
#include "base/pool.h"

enum { ITEMS_MOST = 5000, THREADS_MOST = 64 };

typedef struct counting {
    int threads;
    atomic_int times[ITEMS_MOST];
    int64_t of_thread[THREADS_MOST][8]; /* plain, as the engine's partials are: a thread number is never shared */
    atomic_int wrong;
} counting;

static base_pool *new_pool(int threads)
{
    base_pool *pool = NULL;
    if (base_pool_new(&pool, threads) < 0)
        fail_msg("%s", shoal_error());
    assert_int_equal(base_pool_threads(pool), threads > 0 ? threads : 1);
    return pool;
}

static int count_item(void *context, int64_t item, int thread)
{
    counting *job = context;
    if (thread < 0 || thread >= job->threads) {
        atomic_fetch_add(&job->wrong, 1);
        return SHOAL_OK;
    }
    atomic_fetch_add(&job->times[item], 1);
    job->of_thread[thread][0] += item;
    return SHOAL_OK;
}

static void expect_each_once(base_pool *pool, counting *job, int64_t items)
{
    int64_t sum = 0;
    memset(job, 0, sizeof *job);
    job->threads = base_pool_threads(pool);
    assert_int_equal(base_pool_each(pool, items, count_item, job), SHOAL_OK);
    assert_int_equal(atomic_load(&job->wrong), 0);
    for (int64_t i = 0; i < ITEMS_MOST; i++)
        assert_int_equal(atomic_load(&job->times[i]), i < items);
    for (int t = 0; t < job->threads; t++)
        sum += job->of_thread[t][0];
    assert_int_equal(sum, items * (items - 1) / 2); /* what threads wrote is seen here without more ado */
}

static void test_every_item_once(void **state)
{
    (void)state;
    static const int threads[] = {0, 1, 2, 3, 4, 7, 8, 16, 61};
    static const int64_t items[] = {0, 1, 2, 3, 7, 8, 9, 63, 64, 100, 1001, ITEMS_MOST};
    counting *job = malloc(sizeof *job);
    for (size_t t = 0; t < sizeof threads / sizeof *threads; t++) {
        base_pool *pool = new_pool(threads[t]);
        for (size_t i = 0; i < sizeof items / sizeof *items; i++)
            expect_each_once(pool, job, items[i]);
        base_pool_free(&pool);
        assert_null(pool);
    }
    base_pool *none = NULL;
    base_pool_free(&none);
    free(job);
}

/* Many short calls in a row: the waking and the waiting are what breaks. */
static void test_many_calls(void **state)
{
    (void)state;
    static const int threads[] = {2, 3, 8};
    counting *job = malloc(sizeof *job);
    for (size_t t = 0; t < sizeof threads / sizeof *threads; t++) {
        base_pool *pool = new_pool(threads[t]);
        memset(job, 0, sizeof *job);
        job->threads = threads[t];
        int calls = 0;
        for (; calls < 3000; calls++)
            assert_int_equal(base_pool_each(pool, calls % 5, count_item, job), SHOAL_OK);
        for (int i = 0; i < 5; i++)
            assert_int_equal(atomic_load(&job->times[i]), calls / 5 * (4 - i));
        base_pool_free(&pool);
    }
    for (int i = 0; i < 300; i++) { /* and pools that never get work, or one piece of it */
        base_pool *pool = new_pool(4);
        if (i % 2)
            assert_int_equal(base_pool_each(pool, 3, count_item, job), SHOAL_OK);
        base_pool_free(&pool);
    }
    free(job);
}

static int note_thread(void *context, int64_t item, int thread)
{
    (void)item;
    *(pthread_t *)context = pthread_self();
    return thread == 0 ? SHOAL_OK : shoal_fail(SHOAL_INVALID, "another thread");
}

/* One item is the caller's, and whoever is awake does many. */
static void test_without_waking_anyone(void **state)
{
    (void)state;
    counting *job = malloc(sizeof *job);
    base_pool *pool = new_pool(4);
    for (int i = 0; i < 300; i++) {
        pthread_t by = 0;
        assert_int_equal(base_pool_each(pool, 1, note_thread, &by), SHOAL_OK);
        assert_true(pthread_equal(by, pthread_self()));
        memset(job, 0, sizeof *job);
        job->threads = 4;
        assert_int_equal(base_pool_each_awake(pool, 20, count_item, job), SHOAL_OK);
        for (int item = 0; item < 20; item++)
            assert_int_equal(atomic_load(&job->times[item]), 1);
        if (i % 10 == 0)
            expect_each_once(pool, job, 100);
    }
    base_pool_free(&pool);
    free(job);
}

/* ---- stealing ---------------------------------------------------------------------------------------------------- */

typedef struct uneven {
    atomic_int times[256];
    atomic_int done;
    atomic_int first_thread; /* who had item 0 */
} uneven;

/* Item 0 ends only when all others are done: the thread that holds it must be robbed of the rest of its run. */
static int wait_for_the_others(void *context, int64_t item, int thread)
{
    uneven *job = context;
    double deadline = base_seconds() + 300;
    atomic_fetch_add(&job->times[item], 1);
    if (item == 0) {
        atomic_store(&job->first_thread, thread);
        while (atomic_load(&job->done) < 255)
            if (base_seconds() > deadline)
                return shoal_fail(SHOAL_STOPPED, "nobody took the other items");
        return SHOAL_OK;
    }
    atomic_fetch_add(&job->done, 1);
    return SHOAL_OK;
}

static void test_runs_are_stolen(void **state)
{
    (void)state;
    for (int threads = 2; threads <= 5; threads++) {
        uneven job = {.done = 0};
        base_pool *pool = new_pool(threads);
        if (base_pool_each(pool, 256, wait_for_the_others, &job) < 0)
            fail_msg("%s", shoal_error());
        for (int i = 0; i < 256; i++)
            assert_int_equal(atomic_load(&job.times[i]), 1);
        base_pool_free(&pool);
    }
}

/* ---- failures ---------------------------------------------------------------------------------------------------- */

typedef struct failing {
    int64_t at;
    atomic_int ran;
} failing;

static int fail_at(void *context, int64_t item, int thread)
{
    failing *job = context;
    (void)thread;
    atomic_fetch_add(&job->ran, 1);
    return item == job->at ? shoal_fail(SHOAL_INVALID, "item %d is bad", (int)item) : SHOAL_OK;
}

static void test_a_failure_comes_back_with_its_message(void **state)
{
    (void)state;
    char expected[64];
    for (int threads = 1; threads <= 8; threads++) {
        base_pool *pool = new_pool(threads);
        for (int64_t at = 0; at < 100; at += 9) {
            failing job = {.at = at};
            shoal_fail(SHOAL_USAGE, "an older message");
            assert_int_equal(base_pool_each(pool, 100, fail_at, &job), SHOAL_INVALID);
            snprintf(expected, sizeof expected, "item %d is bad", (int)at);
            assert_string_equal(shoal_error(), expected);
            if (threads == 1)
                assert_int_equal(atomic_load(&job.ran), at + 1); /* the rest is not run */
            job = (failing){.at = -1};
            assert_int_equal(base_pool_each(pool, 100, fail_at, &job), SHOAL_OK); /* the pool can be used again */
            assert_int_equal(atomic_load(&job.ran), 100);
        }
        base_pool_free(&pool);
    }
}

static int fail_always(void *context, int64_t item, int thread)
{
    (void)context, (void)thread;
    return shoal_fail(item % 2 ? SHOAL_INVALID : SHOAL_SYSTEM, "%s", item % 2 ? "odd" : "even");
}

/* One of several failures is reported, its message together with its status. */
static void test_one_of_many_failures(void **state)
{
    (void)state;
    base_pool *pool = new_pool(8);
    for (int i = 0; i < 300; i++) {
        int status = base_pool_each(pool, 64, fail_always, NULL);
        assert_string_equal(shoal_error(), status == SHOAL_INVALID ? "odd" : "even");
        assert_true(status == SHOAL_INVALID || status == SHOAL_SYSTEM);
    }
    base_pool_free(&pool);
}

/* ---- a pool in a task of another --------------------------------------------------------------------------------- */

typedef struct nested {
    base_pool *inner[4];
    atomic_int sum;
} nested;

static int add_item(void *context, int64_t item, int thread)
{
    (void)thread;
    atomic_fetch_add((atomic_int *)context, (int)item);
    return SHOAL_OK;
}

static int run_inner(void *context, int64_t item, int thread)
{
    nested *job = context;
    atomic_int sum = 0;
    int status = base_pool_each(job->inner[thread], 10, add_item, &sum);
    atomic_fetch_add(&job->sum, atomic_load(&sum));
    if (status == SHOAL_OK && item == 13)
        return shoal_fail(SHOAL_INVALID, "thirteen");
    return status;
}

static void test_pools_of_their_own_inside_tasks(void **state)
{
    (void)state;
    nested job = {.sum = 0};
    base_pool *outer = new_pool(4);
    for (int i = 0; i < 4; i++)
        job.inner[i] = new_pool(2);
    assert_int_equal(base_pool_each(outer, 13, run_inner, &job), SHOAL_OK);
    assert_int_equal(atomic_load(&job.sum), 13 * 45);
    assert_int_equal(base_pool_each(outer, 14, run_inner, &job), SHOAL_INVALID);
    assert_string_equal(shoal_error(), "thirteen");
    for (int i = 0; i < 4; i++)
        base_pool_free(&job.inner[i]);
    base_pool_free(&outer);
}

/* ---- arithmetic -------------------------------------------------------------------------------------------------- */

static int check_arithmetic(void *context, int64_t item, int thread)
{
    volatile double one = 1, third = 3, tiny = 0x1p-1022, half = 0.5;
    (void)item, (void)thread;
    if (fegetround() != FE_TONEAREST || one / third != 0x1.5555555555555p-2 || -one / third != -0x1.5555555555555p-2 ||
        tiny * half != 0x1p-1023)
        atomic_fetch_add((atomic_int *)context, 1);
    return SHOAL_OK;
}

/* A caller that rounds upwards gets the results of one that does not, and still rounds upwards afterwards. */
static void test_default_arithmetic_in_tasks(void **state)
{
    (void)state;
    static const int modes[] = {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO, FE_TONEAREST};
    for (int threads = 1; threads <= 4; threads++) {
        base_pool *pool = new_pool(threads);
        for (size_t m = 0; m < 4; m++) {
            atomic_int wrong = 0;
            failing job = {.at = 3};
            assert_int_equal(fesetround(modes[m]), 0);
            int status = base_pool_each(pool, 100, check_arithmetic, &wrong), mode = fegetround();
            int failed = base_pool_each(pool, 10, fail_at, &job), mode_after_failure = fegetround();
            base_pool *made_here = NULL; /* its threads inherit the mode */
            int made = base_pool_new(&made_here, 3);
            if (made == SHOAL_OK)
                made = base_pool_each(made_here, 100, check_arithmetic, &wrong);
            fesetround(FE_TONEAREST);
            base_pool_free(&made_here);
            assert_int_equal(status, SHOAL_OK);
            assert_int_equal(made, SHOAL_OK);
            assert_int_equal(failed, SHOAL_INVALID);
            assert_int_equal(atomic_load(&wrong), 0);
            assert_int_equal(mode, modes[m]);
            assert_int_equal(mode_after_failure, modes[m]);
        }
        base_pool_free(&pool);
    }
}

static void test_no_memory_for_a_pool(void **state)
{
    (void)state;
    for (int64_t n = 0; n < 2; n++) {
        base_pool *pool = NULL;
        base_memory_fail_after(n);
        int status = base_pool_new(&pool, 3);
        base_memory_fail_after(-1);
        assert_int_equal(status, SHOAL_MEMORY);
        assert_null(pool);
    }
}

/* In place of the C library's: a machine with 5000 CPU ids, when a test asks for one. */
static bool is_large_machine;

int sched_getaffinity(pid_t process, size_t size, cpu_set_t *set)
{
    if (!is_large_machine) {
        long got = syscall(SYS_sched_getaffinity, process, size, set);
        if (got >= 0)
            memset((char *)set + got, 0, size - (size_t)got);
        return got < 0 ? -1 : 0;
    }
    if (size * 8 < 5000) {
        errno = EINVAL;
        return -1;
    }
    memset(set, 0, size);
    CPU_SET_S(4000, size, set);
    CPU_SET_S(4999, size, set);
    CPU_SET_S(3, size, set);
    return 0;
}

static void test_more_cores_than_a_cpu_set_has(void **state)
{
    (void)state;
    int here = base_cores();
    is_large_machine = true;
    int there = base_cores();
    is_large_machine = false;
    assert_true(there == 3 || (there < 3 && here <= there)); /* a quota of this machine may still be less */
    assert_true(there > 1 || here == 1);
}

typedef struct signals {
    atomic_int members; /* that have looked */
    atomic_int wrong;
    int threads;
} signals;

/* One item a thread: whoever has looked waits for the others. */
static int look_at_signals(void *context, int64_t item, int thread)
{
    signals *signals = context;
    sigset_t mask;
    (void)item;
    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    bool blocks = sigismember(&mask, SIGINT) && sigismember(&mask, SIGTERM) && sigismember(&mask, SIGUSR1);
    bool faults = !sigismember(&mask, SIGBUS) && !sigismember(&mask, SIGSEGV) && !sigismember(&mask, SIGFPE);
    if (blocks != (thread != 0) || !faults)
        atomic_fetch_add(&signals->wrong, 1);
    atomic_fetch_add(&signals->members, 1);
    while (atomic_load(&signals->members) < signals->threads)
        sched_yield();
    return SHOAL_OK;
}

static void test_signals_are_the_callers(void **state)
{
    (void)state;
    signals signals = {.threads = 4};
    sigset_t mask;
    base_pool *pool = new_pool(signals.threads);
    assert_int_equal(base_pool_each(pool, signals.threads, look_at_signals, &signals), SHOAL_OK);
    base_pool_free(&pool);
    assert_int_equal(atomic_load(&signals.members), signals.threads);
    assert_int_equal(atomic_load(&signals.wrong), 0);
    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    assert_int_equal(sigismember(&mask, SIGINT), 0);
}

static void test_clock_and_cores(void **state)
{
    (void)state;
    double last = base_seconds();
    for (int i = 0; i < 1000; i++) {
        double now = base_seconds();
        assert_true(now >= last);
        last = now;
    }
    assert_true(base_cores() >= 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_item_once),
                                       cmocka_unit_test(test_many_calls),
                                       cmocka_unit_test(test_without_waking_anyone),
                                       cmocka_unit_test(test_runs_are_stolen),
                                       cmocka_unit_test(test_a_failure_comes_back_with_its_message),
                                       cmocka_unit_test(test_one_of_many_failures),
                                       cmocka_unit_test(test_pools_of_their_own_inside_tasks),
                                       cmocka_unit_test(test_default_arithmetic_in_tasks),
                                       cmocka_unit_test(test_no_memory_for_a_pool),
                                       cmocka_unit_test(test_more_cores_than_a_cpu_set_has),
                                       cmocka_unit_test(test_signals_are_the_callers),
                                       cmocka_unit_test(test_clock_and_cores)};
    return cmocka_run_group_tests_name("pool", tests, NULL, NULL);
}
