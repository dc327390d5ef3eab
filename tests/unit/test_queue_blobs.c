/* The queue made of blobs: what it asks of the store, what it does with what dead takers left, and when leases lapse,
 * in a world whose clock moves only when the test says so.  What it has in common with other queues is in
 * tests/conform. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "scripted_world.h"
#include "store/store_internal.h"

/* ---- a world and a queue ----------------------------------------------------------------------------------------- */

static uint64_t random_state;

/* Messages need names that differ. */
static void random_different(void *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        random_state = random_state * 6364136223846793005 + 1442695040888963407;
        ((unsigned char *)bytes)[i] = (unsigned char)(random_state >> 56);
    }
}

static void pass(double seconds)
{
    clock_now = base_time_after(clock_now, seconds);
}

static shoal_store *store;
static const char jobs[] = "jobs";

static int set_up(void **state)
{
    (void)state;
    static base_world world;
    world = scripted_world;
    world.random = random_different;
    base_world_set(&world);
    return shoal_store_open(&store, "mem:queue/in/a/prefix?queue=blobs", NULL, SHOAL_NEVER);
}

static int clear_up(void **state)
{
    (void)state;
    shoal_store_close(&store);
    base_world_set(NULL);
    return 0;
}

static void push(const char *text)
{
    assert_int_equal(shoal_store_push(store, jobs, text, strlen(text), SHOAL_NEVER), SHOAL_OK);
}

static int take(double lease, shoal_message *out)
{
    shoal_message_release(out);
    return shoal_store_take(store, jobs, lease, out, SHOAL_NEVER);
}

/* ---- what was asked ---------------------------------------------------------------------------------------------- */

static shoal_store_counts counted;

static void expect_requests(int64_t gets, int64_t puts, int64_t lists, int64_t removes)
{
    static const shoal_request_kind kinds[] = {SHOAL_REQUEST_GET, SHOAL_REQUEST_PUT, SHOAL_REQUEST_LIST,
                                               SHOAL_REQUEST_REMOVE};
    const int64_t expected[] = {gets, puts, lists, removes};
    shoal_store_counts now = shoal_store_counted(store);
    for (int i = 0; i < 4; i++)
        if (now.requests[kinds[i]] - counted.requests[kinds[i]] != expected[i])
            fail_msg("%d requests of kind %d, not %d", (int)(now.requests[kinds[i]] - counted.requests[kinds[i]]), i,
                     (int)expected[i]);
    assert_int_equal(now.requests[SHOAL_REQUEST_QUEUE], 0);
    counted = now;
}

static int64_t gets_so_far(void)
{
    return shoal_store_counted(store).requests[SHOAL_REQUEST_GET];
}

/* ---- blobs behind the queue's back ------------------------------------------------------------------------------- */

static void full_prefix(char out[128], char which)
{
    snprintf(out, 128, "in/a/prefix/.shoal/queue/%s/%c/", jobs, which);
}

/* How many blobs of a kind there are, and the key of the first. */
static size_t blobs(char which, char *first)
{
    shoal_listing page = {0};
    char prefix[128];
    full_prefix(prefix, which);
    assert_int_equal(store_list(store, prefix, NULL, &page, SHOAL_NEVER), SHOAL_OK);
    size_t count = page.count;
    if (first && count > 0)
        snprintf(first, 256, "%s", page.entries[0].key);
    shoal_listing_release(&page);
    return count;
}

/* Writes a lease as another process would: holder, microseconds, deliveries, state, and as many bytes as the state. */
static void write_lease(const char *key, double seconds, int64_t deliveries, int state)
{
    unsigned char bytes[36] = {1, 2, 3};
    int64_t microseconds = (int64_t)(seconds * 1e6);
    shoal_etag etag;
    memcpy(bytes + 16, &microseconds, 8);
    memcpy(bytes + 24, &deliveries, 8);
    bytes[32] = (unsigned char)state;
    assert_int_equal(store_put_framed(store, key, SHOAL_KIND('q', 'l', 's', 'e'), bytes, 33 + (size_t)state, NULL,
                                      &etag, SHOAL_NEVER),
                     SHOAL_OK);
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

static void test_what_each_call_asks(void **state)
{
    (void)state;
    shoal_message message = {0};
    int64_t count;
    counted = shoal_store_counted(store);
    assert_int_equal(take(10, &message), SHOAL_ABSENT);
    expect_requests(0, 0, 1, 0);
    push("one");
    expect_requests(0, 1, 0, 0);
    assert_int_equal(take(10, &message), SHOAL_OK);
    expect_requests(1, 1, 2, 0);
    assert_int_equal(shoal_store_extend(store, jobs, &message, 20, SHOAL_NEVER), SHOAL_OK);
    expect_requests(0, 1, 0, 0);
    assert_int_equal(shoal_store_count(store, jobs, &count, SHOAL_NEVER), SHOAL_OK);
    assert_int_equal(count, 1);
    expect_requests(0, 0, 1, 0);
    assert_int_equal(shoal_store_finish(store, jobs, &message, SHOAL_NEVER), SHOAL_OK);
    expect_requests(0, 1, 0, 2);
    assert_int_equal(blobs('m', NULL) + blobs('l', NULL), 0);
    shoal_message_release(&message);
}

/* The holder is strict on its own clock; others wait for two seconds and a thousandth more. */
static void test_when_a_lease_ends_for_whom(void **state)
{
    (void)state;
    static const double leases[] = {1, 10, 10000, 604800};
    for (int i = 0; i < 4; i++) {
        shoal_message first = {0}, second = {0};
        double lapses = leases[i] * 1.001 + 2;
        push("x");
        assert_int_equal(take(leases[i], &first), SHOAL_OK);
        assert_int_equal(first.lease_ends, base_time_after(clock_now, leases[i]));
        pass(leases[i] - 0.01);
        assert_int_equal(shoal_store_extend(store, jobs, &first, leases[i], SHOAL_NEVER), SHOAL_OK);
        pass(leases[i] + 0.01);
        assert_int_equal(shoal_store_extend(store, jobs, &first, leases[i], SHOAL_NEVER), SHOAL_LOST);
        assert_int_equal(shoal_store_finish(store, jobs, &first, SHOAL_NEVER), SHOAL_LOST);
        pass(lapses - leases[i] - 0.02);
        assert_int_equal(take(5, &second), SHOAL_ABSENT);
        pass(0.02);
        assert_int_equal(take(5, &second), SHOAL_OK);
        assert_int_equal(second.deliveries, 2);
        assert_int_equal(shoal_store_finish(store, jobs, &second, SHOAL_NEVER), SHOAL_OK);
        shoal_message_release(&first);
        shoal_message_release(&second);
    }
}

/* A lease that was read is not read again before it can have lapsed, unless it was changed. */
static void test_known_leases_are_not_read_again(void **state)
{
    (void)state;
    shoal_message held[8] = {0}, other = {0};
    for (int i = 0; i < 8; i++) {
        push("x");
        assert_int_equal(take(i < 4 ? 100 : 1000, &held[i]), SHOAL_OK);
    }
    int64_t before = gets_so_far();
    assert_int_equal(take(10, &other), SHOAL_ABSENT);
    assert_int_equal(gets_so_far() - before, 8);
    assert_int_equal(take(10, &other), SHOAL_ABSENT);
    assert_int_equal(gets_so_far() - before, 8);
    assert_int_equal(shoal_store_extend(store, jobs, &held[0], 100, SHOAL_NEVER), SHOAL_OK);
    assert_int_equal(take(10, &other), SHOAL_ABSENT);
    assert_int_equal(gets_so_far() - before, 9);
    pass(102.2);
    assert_int_equal(take(10, &other), SHOAL_OK); /* one of the four that lapsed: its lease and the message are read */
    assert_int_equal(other.deliveries, 2);
    assert_int_equal(gets_so_far() - before, 11);
    for (int i = 0; i < 8; i++)
        shoal_message_release(&held[i]);
    shoal_message_release(&other);
    assert_int_equal(shoal_store_drop(store, jobs, SHOAL_NEVER), SHOAL_OK);
}

/* However many are held, a take looks at a few, and what has lapsed is found at last. */
static void test_looks_are_bounded_and_all_is_found(void **state)
{
    (void)state;
    enum { HELD = 200 };
    shoal_message message = {0};
    bool found = false;
    for (int i = 0; i < HELD; i++)
        push("x");
    for (int i = 0; i < HELD; i++)
        assert_int_equal(take(i == 100 ? 1 : 100000, &message), SHOAL_OK);
    pass(4);
    for (int i = 0; i < HELD / 16 + 2 && !found; i++) {
        int64_t before = gets_so_far();
        found = take(10, &message) == SHOAL_OK;
        assert_in_range(gets_so_far() - before, 1, 17);
    }
    assert_true(found);
    assert_int_equal(message.deliveries, 2);
    shoal_message_release(&message);
    assert_int_equal(shoal_store_drop(store, jobs, SHOAL_NEVER), SHOAL_OK);
}

/* Gives every message there is a lease. */
static void hold_all(void)
{
    shoal_listing page = {0};
    char prefix[128];
    full_prefix(prefix, 'm');
    do {
        assert_int_equal(store_list(store, prefix, NULL, &page, SHOAL_NEVER), SHOAL_OK);
        for (size_t i = 0; i < page.count; i++) {
            page.entries[i].key[strlen(prefix) - 2] = 'l';
            write_lease(page.entries[i].key, 100000, 1, 0);
        }
    } while (page.more);
    shoal_listing_release(&page);
}

static void test_what_is_free_is_found_behind_pages_of_held_ones(void **state)
{
    (void)state;
    enum { HELD = 2100 }; /* a page of mem: has 1,000 */
    shoal_message message = {0};
    int64_t count;
    for (int i = 0; i < HELD; i++)
        push("held");
    hold_all();
    assert_int_equal(take(10, &message), SHOAL_ABSENT);
    push("free");
    assert_int_equal(shoal_store_count(store, jobs, &count, SHOAL_NEVER), SHOAL_OK);
    assert_int_equal(count, HELD + 1);
    assert_int_equal(take(10, &message), SHOAL_OK);
    assert_memory_equal(message.data, "free", 4);
    shoal_message_release(&message);
    assert_int_equal(shoal_store_drop(store, jobs, SHOAL_NEVER), SHOAL_OK);
    assert_int_equal(blobs('m', NULL) + blobs('l', NULL), 0);
}

/* Those that came first are served first, but for a few dozen that takers choose among. */
static void test_the_oldest_come_first(void **state)
{
    (void)state;
    shoal_message message = {0};
    char text[16];
    for (int i = 0; i < 120; i++) {
        snprintf(text, sizeof text, "%d", i);
        push(text);
        struct timespec moment = {.tv_nsec = 1100000}; /* IDs tell milliseconds apart */
        nanosleep(&moment, NULL);
    }
    for (int i = 0; i < 80; i++) {
        int number = 0;
        assert_int_equal(take(1000, &message), SHOAL_OK);
        memcpy(text, message.data, message.size);
        text[message.size] = '\0';
        assert_int_equal(sscanf(text, "%d", &number), 1);
        assert_in_range(number, 0, i + 32);
    }
    shoal_message_release(&message);
    assert_int_equal(shoal_store_drop(store, jobs, SHOAL_NEVER), SHOAL_OK);
}

/* ---- what the dead left ------------------------------------------------------------------------------------------ */

static void test_a_finisher_that_died_is_helped(void **state)
{
    (void)state;
    shoal_message message = {0};
    char key[256];
    push("done");
    assert_int_equal(take(1000, &message), SHOAL_OK);
    assert_int_equal(blobs('l', key), 1);
    write_lease(key, 0, 1, 2); /* finished, and then it died */
    assert_int_equal(take(10, &message), SHOAL_ABSENT);
    assert_int_equal(blobs('m', NULL), 0);
    assert_int_equal(blobs('l', NULL), 0);
}

/* A message without a lease is free to be taken, so that of one that is finished the lease goes last. */
static int (*usual_remove)(shoal_store *, const char *, store_attempt *);

static int remove_and_look(shoal_store *self, const char *key, store_attempt *attempt)
{
    int status = usual_remove(self, key, attempt);
    assert_true(blobs('m', NULL) <= blobs('l', NULL));
    return status;
}

static void test_a_finished_message_is_never_free(void **state)
{
    (void)state;
    shoal_message message = {0};
    const struct store_class *before = store->class;
    struct store_class looking = *before;
    push("one");
    assert_int_equal(take(10, &message), SHOAL_OK);
    usual_remove = before->remove;
    looking.remove = remove_and_look;
    store->class = &looking;
    assert_int_equal(shoal_store_finish(store, jobs, &message, SHOAL_NEVER), SHOAL_OK);
    store->class = before;
    assert_int_equal(blobs('m', NULL) + blobs('l', NULL), 0);
    shoal_message_release(&message);
}

/* The store's clock may be ahead: then another has the message while its lease lasts on this one's. */
static void test_a_message_that_another_has_is_lost(void **state)
{
    (void)state;
    for (int finish = 0; finish < 2; finish++) {
        shoal_message message = {0};
        char key[256];
        push("one");
        assert_int_equal(take(10, &message), SHOAL_OK);
        assert_int_equal(blobs('l', key), 1);
        write_lease(key, 100, 2, 0);
        int status = finish ? shoal_store_finish(store, jobs, &message, SHOAL_NEVER)
                            : shoal_store_extend(store, jobs, &message, 20, SHOAL_NEVER);
        assert_int_equal(status, SHOAL_LOST);
        assert_int_equal(blobs('m', NULL), 1);
        assert_int_equal(shoal_store_drop(store, jobs, SHOAL_NEVER), SHOAL_OK);
        shoal_message_release(&message);
    }
}

static void test_a_lease_without_a_message_goes(void **state)
{
    (void)state;
    shoal_message message = {0};
    char key[256];
    push("first");
    assert_int_equal(take(5, &message), SHOAL_OK);
    assert_int_equal(blobs('m', key), 1);
    assert_int_equal(store_remove(store, key, SHOAL_NEVER), SHOAL_OK); /* a finisher's delayed remove, say */
    pass(8);
    push("second");
    assert_int_equal(take(5, &message), SHOAL_OK);
    assert_memory_equal(message.data, "second", 6);
    shoal_message other = {0};
    assert_int_equal(take(5, &other), SHOAL_ABSENT);
    assert_int_equal(blobs('l', NULL), 1); /* only that of the second */
    assert_int_equal(shoal_store_finish(store, jobs, &message, SHOAL_NEVER), SHOAL_OK);
    shoal_message_release(&message);
}

/* A lease nobody can read is honoured for as long as any could be: its holder may be at work. */
static void test_a_broken_lease_lapses_after_the_longest(void **state)
{
    (void)state;
    shoal_message message = {0};
    shoal_etag etag;
    char key[256];
    push("x");
    assert_int_equal(take(1, &message), SHOAL_OK);
    assert_int_equal(blobs('l', key), 1);
    const store_body body = {{{NULL, 0}, {"junk", 4}}};
    assert_int_equal(store_put(store, key, &body, NULL, NULL, &etag, SHOAL_NEVER), SHOAL_OK);
    pass(600000);
    assert_int_equal(take(5, &message), SHOAL_ABSENT);
    pass(6000);
    assert_int_equal(take(5, &message), SHOAL_OK);
    assert_int_equal(shoal_store_finish(store, jobs, &message, SHOAL_NEVER), SHOAL_OK);
    shoal_message_release(&message);
}

/* Once: then it is gone, and the others are delivered. */
static void test_a_broken_message_is_named(void **state)
{
    (void)state;
    shoal_message message = {0};
    shoal_etag etag;
    char key[256];
    push("x");
    assert_int_equal(blobs('m', key), 1);
    const store_body body = {{{NULL, 0}, {"junk", 4}}};
    assert_int_equal(store_put(store, key, &body, NULL, NULL, &etag, SHOAL_NEVER), SHOAL_OK);
    assert_int_equal(take(5, &message), SHOAL_BROKEN);
    assert_non_null(strstr(shoal_error(), key));
    assert_null(message.data);
    assert_int_equal(blobs('m', key), 0);
    assert_int_equal(blobs('l', key), 0);
    assert_int_equal(take(5, &message), SHOAL_ABSENT);
    assert_int_equal(shoal_store_drop(store, jobs, SHOAL_NEVER), SHOAL_OK);
}

static void test_a_message_of_another_making_is_refused(void **state)
{
    (void)state;
    shoal_message message = {.lease_ends = SHOAL_NEVER};
    assert_int_equal(shoal_store_extend(store, jobs, &message, 5, SHOAL_NEVER), SHOAL_USAGE);
    memset(message.receipt, 'a', sizeof message.receipt);
    assert_int_equal(shoal_store_finish(store, jobs, &message, SHOAL_NEVER), SHOAL_USAGE);
}

/* ---- answers that were lost -------------------------------------------------------------------------------------- */

/* A store whose puts are all done, and the first answers after `lose` is set lost. */
static struct store_class odd;
static int lose;
static bool ageless;

static int put_odd(shoal_store *self, const char *key, const store_body *body, const shoal_etag *expected,
                   shoal_etag *etag, store_attempt *attempt)
{
    int status = store_memory.put(self, key, body, expected, etag, attempt);
    if (lose-- <= 0)
        return status;
    attempt->cause = SHOAL_CAUSE_CUT;
    return shoal_fail(SHOAL_UNKNOWN, "lost");
}

static int get_odd(shoal_store *self, const char *key, const store_range *range, shoal_blob *out,
                   store_attempt *attempt)
{
    int status = store_memory.get(self, key, range, out, attempt);
    out->age = ageless ? -1 : out->age;
    return status;
}

static void make_odd(void)
{
    odd = store_memory;
    odd.put = put_odd;
    odd.get = get_odd;
    store->class = &odd;
    lose = 0;
    ageless = false;
}

/* Until the deadline no answer to a swap came.  Whoever looks finds it done. */
static void test_a_swap_whose_answer_never_came(void **state)
{
    (void)state;
    shoal_message message = {0}, other = {0};
    make_odd();
    push("x");
    assert_int_equal(take(50, &message), SHOAL_OK);
    lose = 1;
    assert_int_equal(shoal_store_extend(store, jobs, &message, 80, SHOAL_NEVER), SHOAL_OK);
    lose = 1000;
    int64_t ends = message.lease_ends;
    int status = shoal_store_extend(store, jobs, &message, 90, base_time_after(clock_now, 1));
    assert_int_equal(status, SHOAL_LOST);
    assert_int_equal(message.lease_ends, ends); /* what was not acknowledged is not counted on */
    lose = 0;
    assert_int_equal(shoal_store_extend(store, jobs, &message, 100, SHOAL_NEVER),
                     SHOAL_OK); /* though the version is new */
    lose = 1;
    assert_int_equal(shoal_store_extend(store, jobs, &message, 0, SHOAL_NEVER), SHOAL_OK);
    assert_int_equal(take(50, &other), SHOAL_OK);
    assert_int_equal(other.deliveries, 2);
    lose = 1000; /* no put is answered, but what is there tells that it was done */
    assert_int_equal(shoal_store_finish(store, jobs, &other, base_time_after(clock_now, 1)), SHOAL_OK);
    lose = 0;
    pass(2);
    assert_int_equal(take(50, &other), SHOAL_ABSENT);
    assert_int_equal(blobs('m', NULL) + blobs('l', NULL), 0);
    lose = 1;
    push("y");
    lose = 1;
    assert_int_equal(take(50, &other), SHOAL_OK); /* the frame tells that the lease is mine */
    assert_int_equal(other.deliveries, 1);
    assert_int_equal(shoal_store_finish(store, jobs, &other, SHOAL_NEVER), SHOAL_OK);
    shoal_message_release(&message);
    shoal_message_release(&other);
}

/* Where the store tells no ages, this process counts from when it first saw a version. */
static void test_leases_lapse_without_ages(void **state)
{
    (void)state;
    shoal_message message = {0}, other = {0};
    make_odd();
    ageless = true;
    push("x");
    assert_int_equal(take(10, &message), SHOAL_OK);
    pass(11);
    assert_int_equal(take(5, &other), SHOAL_ABSENT); /* seen for the first time */
    pass(12);
    assert_int_equal(take(5, &other), SHOAL_ABSENT);
    pass(0.1);
    assert_int_equal(take(5, &other), SHOAL_OK);
    assert_int_equal(shoal_store_finish(store, jobs, &other, SHOAL_NEVER), SHOAL_OK);
    shoal_message_release(&message);
    shoal_message_release(&other);
}

/* Whoever waits for a queue is woken by a push, whatever the prefix looks like. */
static void test_a_push_is_a_change_of_the_queue(void **state)
{
    static const char *const urls[] = {"mem:wakes?queue=blobs", "mem:wakes/a?queue=blobs",
                                       "mem:wakes/my.shoal/queue?queue=blobs",
                                       "mem:wakes/a/.shoal/queue/b?queue=blobs"};
    (void)state;
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
        shoal_store *other = NULL;
        uint32_t seen = 0;
        assert_int_equal(shoal_store_open(&other, urls[i], NULL, SHOAL_NEVER), SHOAL_OK);
        assert_int_equal(shoal_store_wait(other, "a/queue", &seen, base_now()), SHOAL_OK);
        assert_int_equal(shoal_store_wait(other, "a/queue", &seen, base_now()), SHOAL_AGAIN);
        assert_int_equal(shoal_store_push(other, "a/queue", "x", 1, SHOAL_NEVER), SHOAL_OK);
        assert_int_equal(shoal_store_wait(other, "a/queue", &seen, base_now()), SHOAL_OK);
        shoal_store_close(&other);
    }
}

int main(void)
{
#define ON_ITS_OWN(test) cmocka_unit_test_setup_teardown(test, set_up, clear_up)
    const struct CMUnitTest tests[] = {
        ON_ITS_OWN(test_what_each_call_asks),
        ON_ITS_OWN(test_when_a_lease_ends_for_whom),
        ON_ITS_OWN(test_known_leases_are_not_read_again),
        ON_ITS_OWN(test_looks_are_bounded_and_all_is_found),
        ON_ITS_OWN(test_what_is_free_is_found_behind_pages_of_held_ones),
        ON_ITS_OWN(test_the_oldest_come_first),
        ON_ITS_OWN(test_a_finisher_that_died_is_helped),
        ON_ITS_OWN(test_a_finished_message_is_never_free),
        ON_ITS_OWN(test_a_message_that_another_has_is_lost),
        ON_ITS_OWN(test_a_lease_without_a_message_goes),
        ON_ITS_OWN(test_a_broken_lease_lapses_after_the_longest),
        ON_ITS_OWN(test_a_broken_message_is_named),
        ON_ITS_OWN(test_a_message_of_another_making_is_refused),
        ON_ITS_OWN(test_a_swap_whose_answer_never_came),
        ON_ITS_OWN(test_leases_lapse_without_ages),
        ON_ITS_OWN(test_a_push_is_a_change_of_the_queue),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
