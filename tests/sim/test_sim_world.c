/* Labels: quick asan
 * The simulated world and its store: time, turns, deaths and pauses are what they should be, and a seed's history is
 * always the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/world.h"
#include "sim_store.h"
#include "sim_world.h"

/* A killed process loses what it had in memory, which is not a leak. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "detect_leaks=0";
}

/* ---- time and turns ---------------------------------------------------------------------------------------------- */

static _Atomic uint32_t word;
static int order[64], ordered;

static void note(int what)
{
    order[ordered++] = what;
}

static void sleep_a_while(void *context)
{
    int number = *(int *)context;
    base_sleep_until(base_time_after(base_now(), number));
    note(number);
}

static void wait_until_all(sim_process *const *process, int count)
{
    for (int i = 0; i < count; i++)
        while (!sim_process_ended(process[i]))
            sim_sleep(0.01);
}

static void time_passes_when_all_wait(void **state)
{
    static int numbers[] = {3, 1, 2};
    sim_process *process[3];
    (void)state;
    ordered = 0;
    sim_begin(&(sim_options){.seed = 1});
    for (int i = 0; i < 3; i++)
        process[i] = sim_process_start(&(sim_nature){.name = "sleeper"}, sleep_a_while, &numbers[i]);
    wait_until_all(process, 3);
    assert_int_equal(ordered, 3);
    for (int i = 0; i < 3; i++)
        assert_int_equal(order[i], i + 1);
    assert_true(sim_seconds() >= 3 && sim_seconds() < 3.05);
    sim_end();
}

static void clocks_differ(void *context)
{
    int64_t before = base_now(), world = sim_time();
    base_sleep_until(base_time_after(before, 1000));
    int64_t passed = sim_time() - world;
    *(int64_t *)context = passed;
    assert_true(base_now() >= base_time_after(before, 1000));
}

static void a_fast_clock_wakes_early(void **state)
{
    int64_t passed[2];
    sim_process *process[2];
    (void)state;
    sim_begin(&(sim_options){.seed = 1});
    process[0] = sim_process_start(&(sim_nature){.name = "fast", .offset = 5000000000000, .drift = 500}, clocks_differ,
                                   &passed[0]);
    process[1] = sim_process_start(&(sim_nature){.name = "slow", .drift = -500}, clocks_differ, &passed[1]);
    wait_until_all(process, 2);
    assert_in_range(passed[0], 999400000000, 999600000000);
    assert_in_range(passed[1], 1000400000000, 1000600000000);
    sim_end();
}

static void wait_for_word(void *context)
{
    (void)context;
    while (atomic_load(&word) == 0)
        base_wait_word(&word, 0, INT64_MAX);
    note(1);
}

static void change_word(void *context)
{
    base_thread *thread = NULL;
    (void)context;
    assert_int_equal(base_thread_start(&thread, wait_for_word, NULL), 0);
    base_sleep_until(base_time_after(base_now(), 5));
    note(0);
    atomic_store(&word, 1);
    base_wake_word(&word, 1);
    base_thread_join(&thread);
    note(2);
}

static void threads_wait_wake_and_join(void **state)
{
    sim_process *process;
    (void)state;
    ordered = 0;
    atomic_store(&word, 0);
    sim_begin(&(sim_options){.seed = 3});
    process = sim_process_start(&(sim_nature){.name = "both"}, change_word, NULL);
    wait_until_all(&process, 1);
    assert_int_equal(ordered, 3);
    for (int i = 0; i < 3; i++)
        assert_int_equal(order[i], i);
    sim_end();
}

/* ---- deaths and pauses ------------------------------------------------------------------------------------------- */

static void count_seconds(void *context)
{
    for (;;) {
        base_sleep_until(base_time_after(base_now(), 1));
        ++*(int *)context;
    }
}

static void count_in_two_threads(void *context)
{
    base_thread *thread = NULL;
    base_thread_start(&thread, count_seconds, context);
    count_seconds((int *)context + 1);
}

static void a_killed_process_does_nothing_more(void **state)
{
    int seconds[2] = {0, 0};
    (void)state;
    sim_begin(&(sim_options){.seed = 4});
    sim_process *process = sim_process_start(&(sim_nature){.name = "victim"}, count_in_two_threads, seconds);
    sim_sleep(10.5);
    sim_process_kill(process);
    sim_sleep(10);
    assert_true(sim_process_ended(process) && sim_process_killed(process));
    assert_int_equal(seconds[0], 10);
    assert_int_equal(seconds[1], 10);
    sim_end();
}

static void a_stopped_process_does_nothing_meanwhile(void **state)
{
    int seconds[2] = {0, 0};
    (void)state;
    sim_begin(&(sim_options){.seed = 5});
    sim_process *process = sim_process_start(&(sim_nature){.name = "stopped"}, count_in_two_threads, seconds);
    sim_sleep(10.5);
    sim_process_pause(process, 60);
    sim_sleep(50);
    assert_int_equal(seconds[0], 10);
    sim_sleep(20); /* late by 60 seconds, it goes on at once and then every second */
    assert_in_range(seconds[0], 19, 21);
    sim_process_kill(process);
    sim_yield();
    sim_sleep(1);
    sim_end();
}

/* ---- failures are seen ------------------------------------------------------------------------------------------- */

static void hang(void *context)
{
    (void)context;
    base_wait_word(&word, atomic_load(&word), INT64_MAX);
}

/* Runs `run` in a child whose output is thrown away; its exit status. */
static int status_of(void (*run)(void))
{
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        if (!freopen("/dev/null", "w", stderr))
            _exit(3);
        run();
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}

static void deadlock(void)
{
    static _Atomic uint32_t never;
    sim_begin(&(sim_options){.seed = 6});
    sim_process_start(&(sim_nature){.name = "stuck"}, hang, NULL);
    base_wait_word(&never, 0, INT64_MAX);
}

static void endless(void)
{
    sim_begin(&(sim_options){.seed = 6});
    for (;;)
        sim_sleep(1000);
}

static void restless(void)
{
    sim_begin(&(sim_options){.seed = 6, .steps = 1000});
    for (;;)
        sim_yield();
}

static void who_never_ends_fails(void **state)
{
    (void)state;
    assert_int_equal(status_of(deadlock), 1);
    assert_int_equal(status_of(endless), 1);
    assert_int_equal(status_of(restless), 1);
}

/* ---- the store --------------------------------------------------------------------------------------------------- */

typedef struct shop {
    sim_cloud *cloud;
    int done, held, most_held, deliveries;
    int64_t puts_won;
} shop;

enum { MESSAGES = 20, WORKERS = 7 };

/* Takes messages and finishes them, and races for a blob of each. */
static void serve(void *context)
{
    shop *shop = context;
    shoal_store *store = NULL;
    sim_store_open(&store, shop->cloud);
    for (int idle = 0; idle < 8;) {
        shoal_message message;
        char key[64];
        int status = shoal_store_take(store, "jobs", 5, &message, shoal_after(100));
        if (status != SHOAL_OK) {
            idle++;
            base_sleep_until(shoal_after(1));
            continue;
        }
        shop->deliveries++;
        snprintf(key, sizeof key, "done/%.*s", (int)message.size, (char *)message.data);
        status = shoal_store_put_framed(store, key, SHOAL_KIND('t', 'e', 's', 't'), "x", 1, SHOAL_NOTHING, NULL,
                                        shoal_after(100));
        shop->puts_won += status == SHOAL_OK;
        if (shoal_store_finish(store, "jobs", &message, shoal_after(100)) == SHOAL_OK)
            shop->done++;
        shoal_message_release(&message);
        idle = 0;
    }
    shoal_store_close(&store);
}

static uint64_t run_shop(shop *shop, uint64_t seed, const sim_cloud_options *options)
{
    sim_process *process[WORKERS];
    shoal_store *store = NULL;
    *shop = (struct shop){0};
    sim_begin(&(sim_options){.seed = seed, .spurious = 0.01});
    shop->cloud = sim_cloud_new(options);
    sim_store_open(&store, shop->cloud);
    for (int i = 0; i < MESSAGES; i++) {
        char text[16];
        snprintf(text, sizeof text, "%d", i);
        assert_int_equal(shoal_store_push(store, "jobs", text, strlen(text), shoal_after(100)), SHOAL_OK);
    }
    for (int i = 0; i < WORKERS; i++) {
        char name[24];
        snprintf(name, sizeof name, "worker %d", i);
        process[i] = sim_process_start(&(sim_nature){.name = name, .mortal = i > 0}, serve, shop);
    }
    wait_until_all(process, WORKERS);
    int64_t left = -1;
    assert_int_equal(shoal_store_count(store, "jobs", &left, shoal_after(100)), SHOAL_OK);
    assert_int_equal(left, 0);
    assert_int_equal(sim_cloud_blobs(shop->cloud, "done/", NULL), MESSAGES);
    shoal_store_close(&store);
    sim_cloud_free(&shop->cloud);
    uint64_t hash = sim_history_hash();
    sim_end();
    return hash;
}

static void a_good_store_delivers_once(void **state)
{
    (void)state;
    for (int variant = 0; variant < 4; variant++) {
        shop shop;
        run_shop(&shop, 11,
                 &(sim_cloud_options){.wakes = variant & 1, .blob_queue = variant & 2, .latency = 0.01, .jitter = 0.5});
        assert_int_equal(shop.done, MESSAGES);
        assert_int_equal(shop.deliveries, MESSAGES);
        assert_int_equal(shop.puts_won, MESSAGES);
    }
}

static void a_bad_store_delivers_all_the_same(void **state)
{
    int troubled = 0;
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        const sim_cloud_options options = {.blob_queue = seed & 1,
                                           .latency = 0.05,
                                           .jitter = 0.9,
                                           .before = 0.1,
                                           .after = 0.1,
                                           .duplicate = 0.1,
                                           .slow = 0.05,
                                           .pause = 0.02,
                                           .pauses = 5,
                                           .death = 0.05,
                                           .deaths = WORKERS - 1,
                                           .request_rate = 40,
                                           .burst = 10};
        shop shop;
        run_shop(&shop, seed, &options);
        assert_true(shop.deliveries >= MESSAGES);
        troubled += shop.deliveries > MESSAGES;
    }
    assert_true(troubled > 5);
}

static void a_seed_has_one_history(void **state)
{
    const sim_cloud_options options = {
        .latency = 0.05, .jitter = 0.9, .before = 0.1, .after = 0.1, .death = 0.05, .deaths = 3};
    uint64_t hash[3];
    shop shop;
    (void)state;
    hash[0] = run_shop(&shop, 5, &options);
    hash[1] = run_shop(&shop, 5, &options);
    hash[2] = run_shop(&shop, 6, &options);
    assert_true(hash[0] == hash[1]);
    assert_true(hash[0] != hash[2]);
}

static void put_text(shoal_store *store, const char *key, const char *text)
{
    assert_int_equal(shoal_store_put(store, key, text, strlen(text), NULL, NULL, shoal_after(100)), SHOAL_OK);
}

static void assert_there(shoal_store *store, const char *key, const char *text)
{
    shoal_blob blob = {0};
    int status = shoal_store_get(store, key, &blob, shoal_after(100));
    assert_int_equal(status, text ? SHOAL_OK : SHOAL_ABSENT);
    if (text)
        assert_true(blob.size == strlen(text) && memcmp(blob.data, text, blob.size) == 0);
    shoal_blob_release(&blob);
}

static void a_store_forgets_what_it_was_told_to(void **state)
{
    shoal_store *store = NULL;
    int64_t count;
    (void)state;
    sim_begin(&(sim_options){.seed = 1});
    sim_cloud *cloud = sim_cloud_new(&(sim_cloud_options){.latency = 0.001, .forgets = 5});
    sim_store_open(&store, cloud);
    put_text(store, "old", "1");
    put_text(store, "removed", "1");
    sim_sleep(10);
    put_text(store, "middle", "1");
    sim_sleep(10);
    put_text(store, "old", "2");
    put_text(store, "new", "1");
    shoal_store_remove(store, "removed", shoal_after(100));
    shoal_store_push(store, "queue", "x", 1, shoal_after(100));
    sim_cloud_forget(cloud, 3);
    assert_there(store, "old", "1");
    assert_there(store, "middle", "1");
    assert_there(store, "removed", "1");
    assert_there(store, "new", NULL);
    assert_int_equal(shoal_store_count(store, "queue", &count, shoal_after(100)), SHOAL_OK);
    assert_int_equal(count, 0);
    shoal_store_close(&store);
    sim_cloud_free(&cloud);
    sim_end();
}

/* Eight bytes a second on a line of its own, sixteen in all. */
static void fetch(void *context)
{
    shop *shop = context;
    shoal_store *store = NULL;
    sim_store_open(&store, shop->cloud);
    assert_there(store, "blob", "0123456789abcdef");
    shoal_store_close(&store);
}

static double seconds_to_fetch(int readers)
{
    sim_process *process[WORKERS];
    shop shop = {0};
    shoal_store *store = NULL;
    sim_begin(&(sim_options){.seed = 1});
    shop.cloud = sim_cloud_new(&(sim_cloud_options){.latency = 0.5, .worker_rate = 8, .total_rate = 16});
    sim_store_open(&store, shop.cloud);
    put_text(store, "blob", "0123456789abcdef");
    double before = sim_seconds();
    for (int i = 0; i < readers; i++)
        process[i] = sim_process_start(&(sim_nature){.name = "reader"}, fetch, &shop);
    wait_until_all(process, readers);
    double seconds = sim_seconds() - before;
    shoal_store_close(&store);
    sim_cloud_free(&shop.cloud);
    sim_end();
    return seconds;
}

static void bytes_take_time(void **state)
{
    (void)state;
    assert_in_range((int64_t)(1000 * seconds_to_fetch(1)), 2490, 2550);
    assert_in_range((int64_t)(1000 * seconds_to_fetch(2)), 2490, 2950);
    assert_in_range((int64_t)(1000 * seconds_to_fetch(6)), 6000, 6600);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(time_passes_when_all_wait),
        cmocka_unit_test(a_fast_clock_wakes_early),
        cmocka_unit_test(threads_wait_wake_and_join),
        cmocka_unit_test(a_killed_process_does_nothing_more),
        cmocka_unit_test(a_stopped_process_does_nothing_meanwhile),
        cmocka_unit_test(who_never_ends_fails),
        cmocka_unit_test(a_good_store_delivers_once),
        cmocka_unit_test(a_bad_store_delivers_all_the_same),
        cmocka_unit_test(a_seed_has_one_history),
        cmocka_unit_test(a_store_forgets_what_it_was_told_to),
        cmocka_unit_test(bytes_take_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
