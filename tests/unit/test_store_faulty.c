/* The faulty store: it fails as often and in the ways it is told to, the same each time, and never otherwise.
 * Labels: quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "scripted_world.h"
#include "store/store_internal.h"

static int enter_world(void **state)
{
    (void)state;
    base_world_set(&scripted_world);
    return 0;
}

static int leave_world(void **state)
{
    (void)state;
    base_world_set(NULL);
    return 0;
}

static void pass(double seconds)
{
    clock_now = base_time_after(clock_now, seconds);
}

/* ---- handles ----------------------------------------------------------------------------------------------------- */

/* A faulty handle, and one without faults on the same store. */
typedef struct pair {
    shoal_store *faulty, *plain;
} pair;

static pair open_pair(const char *faults)
{
    pair pair = {0};
    char url[256];
    snprintf(url, sizeof url, "mem:faulty?faults=%s", faults);
    if (shoal_store_open(&pair.faulty, url, NULL, SHOAL_NEVER) < 0)
        fail_msg("%s", shoal_error());
    assert_int_equal(shoal_store_open(&pair.plain, "mem:faulty", NULL, SHOAL_NEVER), SHOAL_OK);
    return pair;
}

static void close_pair(pair *pair)
{
    shoal_store_close(&pair->faulty);
    shoal_store_close(&pair->plain);
}

/* One attempt, as the layer that tries again makes it. */
static int put_once(shoal_store *store, const char *key, const char *text, const shoal_etag *expected, shoal_etag *etag,
                    store_attempt *attempt)
{
    const store_body body = {{{NULL, 0}, {(void *)text, strlen(text)}}};
    return store->class->put(store, key, &body, expected, etag, attempt);
}

static int get_once(shoal_store *store, const char *key, char text[64], store_attempt *attempt)
{
    const store_range all = {.length = -1};
    shoal_blob blob = {.age = -1};
    text[0] = '\0';
    int status = store->class->get(store, key, &all, &blob, attempt);
    if (status == SHOAL_OK)
        snprintf(text, 64, "%.*s", (int)blob.size, (char *)blob.data);
    shoal_blob_release(&blob);
    return status;
}

static void expect_text(shoal_store *store, const char *key, const char *text)
{
    store_attempt attempt = {.deadline = SHOAL_NEVER, .number = 1};
    char found[64];
    int status = get_once(store, key, found, &attempt);
    if (text && (status != SHOAL_OK || strcmp(found, text) != 0))
        fail_msg("%s is '%s', not '%s' (%d)", key, found, text, status);
    if (!text && status != SHOAL_ABSENT)
        fail_msg("%s is '%s', not absent (%d)", key, found, status);
}

static store_attempt an_attempt(void)
{
    return (store_attempt){.deadline = SHOAL_NEVER, .number = 1};
}

/* ---- what is asked for ------------------------------------------------------------------------------------------- */

static void test_a_wrong_option_is_one_sentence(void **state)
{
    (void)state;
    static const struct {
        const char *faults, *says;
    } rows[] = {{"before", "'before' is not name:value"},
                {"befor:0.1", "unknown fault 'befor'"},
                {"before:", "in 'before:' the chance must be a number from 0 to 1"},
                {"before:1.5", "in 'before:1.5' the chance"},
                {"before:-0.1", "in 'before:-0.1' the chance"},
                {"before:nan", "in 'before:nan' the chance"},
                {"before:x/cut", "in 'before:x/cut' the chance"},
                {"before:0.1/often", "in 'before:0.1/often' the cause must be"},
                {"before:0.1/none", "in 'before:0.1/none' the cause must be"},
                {"delay:0.1/20", "in 'delay:0.1/20' the time must be"},
                {"delay:0.1/-1s", "in 'delay:0.1/-1s' the time must be"},
                {"delay:0.1/ms", "in 'delay:0.1/ms' the time must be"},
                {"throttle:0.1/2h", "in 'throttle:0.1/2h' the time must be"},
                {"forget:0.1/3601s", "in 'forget:0.1/3601s' the time must be"},
                {"duplicate:0.1/2", "'duplicate' takes only a chance"},
                {"seed:-1", "in 'seed:-1' the seed must be a whole number"},
                {"seed:x", "in 'seed:x' the seed must be"},
                {"before:0.1,", "'' is not name:value"},
                {"cut:0.1,cut:0.2", "'cut' is given twice"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        shoal_store *store = NULL;
        char url[256];
        snprintf(url, sizeof url, "mem:faulty?faults=%s", rows[i].faults);
        assert_int_equal(shoal_store_open(&store, url, NULL, SHOAL_NEVER), SHOAL_USAGE);
        assert_null(store);
        if (!strstr(shoal_error(), rows[i].says))
            fail_msg("%s: '%s' does not say '%s'", rows[i].faults, shoal_error(), rows[i].says);
    }
    pair pair = open_pair("seed:7,before:0.05/cut,after:1e-1,cut:0,throttle:0/1.5s,delay:0.1/20ms,duplicate:1,"
                          "stale:0/100us,forget:0/2s");
    shoal_store_traits traits = shoal_store_describe(pair.faulty);
    assert_string_equal(traits.scheme, "mem");
    assert_true(traits.wakes && traits.forgets == 2);
    close_pair(&pair);
}

/* ---- chances ----------------------------------------------------------------------------------------------------- */

/* What many calls gave, as letters. */
static void outcomes(char *out, int calls, const char *faults)
{
    pair pair = open_pair(faults);
    for (int i = 0; i < calls; i++) {
        store_attempt attempt = an_attempt();
        shoal_etag etag;
        int status = put_once(pair.faulty, "key", "x", NULL, &etag, &attempt);
        out[i] = status == SHOAL_OK ? '.' : (char)('a' + 8 * (status == SHOAL_UNKNOWN) + (int)attempt.cause);
    }
    out[calls] = '\0';
    close_pair(&pair);
}

static void test_a_seed_means_the_same_faults(void **state)
{
    (void)state;
    static const char mix[] = "before:0.1,after:0.1,cut:0.1,throttle:0.1";
    char first[1001], second[1001], url[128];
    snprintf(url, sizeof url, "seed:5,%s", mix);
    outcomes(first, 1000, url);
    outcomes(second, 1000, url);
    assert_string_equal(first, second);
    snprintf(url, sizeof url, "seed:6,%s", mix);
    outcomes(second, 1000, url);
    assert_string_not_equal(first, second);
    assert_in_range(strspn(first, "."), 0, 50);
    for (const char *letter = "bcdef"; *letter; letter++) /* each cause there is */
        assert_true(strchr(first, *letter) || strchr(first, *letter + 8));
}

static void test_faults_come_as_often_as_asked(void **state)
{
    (void)state;
    static const struct {
        const char *faults;
        int status, least, most;
    } rows[] = {{"before:0.3", SHOAL_AGAIN, 250, 350},
                {"after:0.3", SHOAL_UNKNOWN, 250, 350},
                {"cut:0.3", SHOAL_UNKNOWN, 250, 350},
                {"throttle:0.3", SHOAL_AGAIN, 250, 350},
                {"before:0", SHOAL_AGAIN, 0, 0},
                {"before:1", SHOAL_AGAIN, 1000, 1000},
                {"duplicate:1,delay:0.5", SHOAL_AGAIN, 0, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        pair pair = open_pair(rows[i].faults);
        int failed = 0;
        for (int call = 0; call < 1000; call++) {
            store_attempt attempt = an_attempt();
            shoal_etag etag;
            int status = put_once(pair.faulty, "key", "x", NULL, &etag, &attempt);
            assert_true(status == SHOAL_OK || status == rows[i].status);
            assert_true((status == SHOAL_OK) == (attempt.cause == SHOAL_CAUSE_NONE));
            failed += status < 0;
        }
        assert_in_range(failed, rows[i].least, rows[i].most);
        close_pair(&pair);
    }
}

/* ---- each fault -------------------------------------------------------------------------------------------------- */

static void test_before_nothing_is_done_and_after_all_is(void **state)
{
    (void)state;
    store_attempt attempt = an_attempt();
    shoal_etag etag = {""};
    char text[64];
    pair pair = open_pair("before:1/timeout");
    assert_int_equal(put_once(pair.faulty, "key", "x", NULL, &etag, &attempt), SHOAL_AGAIN);
    assert_int_equal(attempt.cause, SHOAL_CAUSE_TIMEOUT);
    assert_non_null(strstr(shoal_error(), "mem:faulty/key: timed out"));
    expect_text(pair.plain, "key", NULL);
    close_pair(&pair);

    pair = open_pair("after:1/server");
    attempt = an_attempt();
    assert_int_equal(put_once(pair.faulty, "key", "x", NULL, &etag, &attempt), SHOAL_UNKNOWN);
    assert_int_equal(attempt.cause, SHOAL_CAUSE_SERVER);
    assert_string_equal(etag.text, ""); /* it was in the answer */
    expect_text(pair.plain, "key", "x");
    assert_int_equal(get_once(pair.faulty, "key", text, &attempt), SHOAL_AGAIN); /* a read is not in doubt */
    assert_int_equal(pair.faulty->class->remove(pair.faulty, "key", &attempt), SHOAL_UNKNOWN);
    expect_text(pair.plain, "key", NULL);
    close_pair(&pair);
}

static void test_a_cut_is_before_or_after(void **state)
{
    (void)state;
    pair pair = open_pair("cut:1");
    int done = 0;
    for (int i = 0; i < 100; i++) {
        store_attempt attempt = an_attempt();
        shoal_etag etag;
        char key[16], text[64];
        snprintf(key, sizeof key, "%d", i);
        assert_int_equal(put_once(pair.faulty, key, "x", NULL, &etag, &attempt), SHOAL_UNKNOWN);
        assert_int_equal(attempt.cause, SHOAL_CAUSE_CUT);
        done += get_once(pair.plain, key, text, &attempt) == SHOAL_OK;
    }
    assert_in_range(done, 30, 70);
    close_pair(&pair);
}

static void test_throttling_says_how_long_and_delays_pass_time(void **state)
{
    (void)state;
    store_attempt attempt = an_attempt();
    char text[64];
    pair pair = open_pair("throttle:1/30ms");
    assert_int_equal(get_once(pair.faulty, "key", text, &attempt), SHOAL_AGAIN);
    assert_int_equal(attempt.cause, SHOAL_CAUSE_THROTTLED);
    assert_true(attempt.retry_after == 0.03);
    close_pair(&pair);

    pair = open_pair("delay:1/1s");
    int64_t started = clock_now;
    for (int i = 0; i < 100; i++) {
        int64_t before = clock_now;
        attempt = an_attempt();
        assert_int_equal(get_once(pair.faulty, "key", text, &attempt), SHOAL_ABSENT);
        assert_in_range(clock_now - before, 0, 1000000000);
    }
    assert_in_range((clock_now - started) / 1000000000, 35, 65);
    attempt = (store_attempt){.deadline = clock_now, .number = 1}; /* it does not wait beyond */
    started = clock_now;
    assert_int_equal(get_once(pair.faulty, "key", text, &attempt), SHOAL_AGAIN);
    assert_int_equal(attempt.cause, SHOAL_CAUSE_TIMEOUT);
    assert_int_equal(clock_now, started);
    close_pair(&pair);
}

static int push_once(shoal_store *store, const char *text)
{
    const store_body body = {{{NULL, 0}, {(void *)text, strlen(text)}}};
    store_attempt attempt = an_attempt();
    return store->class->push(store, "queue", &body, &attempt);
}

static int64_t count_of(shoal_store *store)
{
    int64_t count = -1;
    assert_int_equal(shoal_store_count(store, "queue", &count, SHOAL_NEVER), SHOAL_OK);
    return count;
}

static void test_messages_are_doubled_or_taken_by_nobody(void **state)
{
    (void)state;
    shoal_message message = {0};
    store_attempt attempt = an_attempt();
    pair pair = open_pair("duplicate:1");
    assert_int_equal(push_once(pair.faulty, "twice"), SHOAL_OK);
    assert_int_equal(count_of(pair.plain), 2);
    close_pair(&pair);

    pair = open_pair("after:1");
    assert_int_equal(push_once(pair.faulty, "x"), SHOAL_UNKNOWN);
    assert_int_equal(count_of(pair.plain), 1);
    assert_int_equal(pair.faulty->class->take(pair.faulty, "queue", 10, &message, &attempt), SHOAL_UNKNOWN);
    assert_null(message.data);
    assert_int_equal(shoal_store_take(pair.plain, "queue", 10, &message, SHOAL_NEVER), SHOAL_ABSENT); /* it is held */
    pass(11);
    assert_int_equal(shoal_store_take(pair.plain, "queue", 10, &message, SHOAL_NEVER), SHOAL_OK);
    assert_int_equal(message.deliveries, 2);
    shoal_message before = message;
    assert_int_equal(pair.faulty->class->extend(pair.faulty, "queue", &message, 20, &attempt), SHOAL_UNKNOWN);
    assert_memory_equal(&message, &before, sizeof message);
    assert_int_equal(pair.faulty->class->finish(pair.faulty, "queue", &message, &attempt), SHOAL_UNKNOWN);
    assert_int_equal(count_of(pair.plain), 0);
    shoal_message_release(&message);
    close_pair(&pair);
}

/* ---- the past ---------------------------------------------------------------------------------------------------- */

static void put_text(shoal_store *store, const char *key, const char *text)
{
    assert_int_equal(shoal_store_put(store, key, text, strlen(text), NULL, NULL, SHOAL_NEVER), SHOAL_OK);
}

static void list_all(shoal_store *store, const char *prefix, const char *after, char out[256])
{
    shoal_listing page = {0};
    out[0] = '\0';
    assert_int_equal(shoal_store_list(store, prefix, after, &page, SHOAL_NEVER), SHOAL_OK);
    for (size_t i = 0; i < page.count; i++)
        snprintf(out + strlen(out), 256 - strlen(out), "%s=%d ", page.entries[i].key, (int)page.entries[i].size);
    shoal_listing_release(&page);
}

static void expect_list(shoal_store *store, const char *prefix, const char *after, const char *text)
{
    char found[256];
    list_all(store, prefix, after, found);
    assert_string_equal(found, text);
}

static void test_stale_reads_show_what_was_there(void **state)
{
    (void)state;
    pair pair = open_pair("stale:1/100ms");
    shoal_blob blob = {0};
    put_text(pair.plain, "b/changed", "old");
    put_text(pair.plain, "b/gone", "gone");
    put_text(pair.plain, "b/steady", "steady");
    put_text(pair.faulty, "b/changed", "newer");
    put_text(pair.faulty, "b/changed", "newest");
    put_text(pair.faulty, "b/fresh", "fresh");
    put_text(pair.faulty, "c", "c");
    assert_int_equal(shoal_store_remove(pair.faulty, "b/gone", SHOAL_NEVER), SHOAL_OK);
    pass(0.05);
    expect_text(pair.faulty, "b/changed", "old");
    expect_text(pair.faulty, "b/gone", "gone");
    expect_text(pair.faulty, "b/fresh", NULL);
    expect_text(pair.faulty, "b/steady", "steady");
    expect_text(pair.plain, "b/changed", "newest");
    expect_list(pair.faulty, "", NULL, "b/changed=3 b/gone=4 b/steady=6 ");
    expect_list(pair.faulty, "b/", "b/gone", "b/steady=6 ");
    expect_list(pair.faulty, "b/g", NULL, "b/gone=4 ");
    expect_list(pair.plain, "", NULL, "b/changed=6 b/fresh=5 b/steady=6 c=1 ");
    /* Ranges and conditions are of the version that is shown; a put is not fooled. */
    assert_int_equal(shoal_store_get_range(pair.faulty, "b/changed", 1, 10, NULL, NULL, &blob, SHOAL_NEVER), SHOAL_OK);
    assert_true(blob.size == 2 && memcmp(blob.data, "ld", 2) == 0 && blob.whole == 3);
    shoal_etag old = blob.etag;
    shoal_blob_release(&blob);
    char buffer[4];
    assert_int_equal(shoal_store_get_range(pair.faulty, "b/changed", 0, 4, &old, buffer, &blob, SHOAL_NEVER), SHOAL_OK);
    assert_true(blob.size == 3 && memcmp(buffer, "old", 3) == 0 && !blob.data);
    assert_int_equal(shoal_store_put(pair.faulty, "b/changed", "x", 1, &old, NULL, SHOAL_NEVER), SHOAL_CONFLICT);
    assert_int_equal(shoal_store_get_range(pair.plain, "b/changed", 0, 4, NULL, NULL, &blob, SHOAL_NEVER), SHOAL_OK);
    old = blob.etag;
    shoal_blob_release(&blob);
    assert_int_equal(shoal_store_get_range(pair.faulty, "b/changed", 0, 4, &old, NULL, &blob, SHOAL_NEVER),
                     SHOAL_CONFLICT);
    pass(0.06);
    expect_text(pair.faulty, "b/changed", "newest");
    expect_text(pair.faulty, "b/gone", NULL);
    expect_list(pair.faulty, "", NULL, "b/changed=6 b/fresh=5 b/steady=6 c=1 ");
    close_pair(&pair);
}

static void test_forgetting_goes_back(void **state)
{
    (void)state;
    pair pair = open_pair("forget:0/10s");
    shoal_message message = {0};
    put_text(pair.faulty, "long ago", "kept");
    pass(5);
    put_text(pair.faulty, "a", "1");
    assert_int_equal(push_once(pair.faulty, "old"), SHOAL_OK);
    pass(5);
    put_text(pair.faulty, "a", "2");
    put_text(pair.faulty, "a", "3");
    assert_int_equal(shoal_store_remove(pair.faulty, "a", SHOAL_NEVER), SHOAL_OK);
    put_text(pair.faulty, "a", "4");
    put_text(pair.faulty, "b", "made");
    put_text(pair.faulty, "mine, then another's", "mine");
    put_text(pair.plain, "mine, then another's", "another's");
    put_text(pair.faulty, "removed", "x");
    assert_int_equal(shoal_store_remove(pair.faulty, "removed", SHOAL_NEVER), SHOAL_OK);
    assert_int_equal(shoal_store_take(pair.faulty, "queue", 60, &message, SHOAL_NEVER), SHOAL_OK);
    assert_int_equal(shoal_store_finish(pair.faulty, "queue", &message, SHOAL_NEVER), SHOAL_OK);
    shoal_message_release(&message);
    assert_int_equal(push_once(pair.plain, "another's"), SHOAL_OK);
    assert_int_equal(push_once(pair.faulty, "new"), SHOAL_OK);
    assert_int_equal(count_of(pair.plain), 2);
    assert_int_equal(store_faulty_forget(pair.faulty, 3), SHOAL_OK);
    expect_text(pair.plain, "long ago", "kept");
    expect_text(pair.plain, "a", "1");
    expect_text(pair.plain, "b", NULL);
    expect_text(pair.plain, "mine, then another's", "another's");
    expect_text(pair.plain, "removed", NULL);
    assert_int_equal(count_of(pair.plain), 2); /* what was finished is there again, what was pushed is gone */
    bool old = false, other = false;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(shoal_store_take(pair.plain, "queue", 60, &message, SHOAL_NEVER), SHOAL_OK);
        old |= message.size == 3 && memcmp(message.data, "old", 3) == 0;
        other |= message.size == 9;
        shoal_message_release(&message);
    }
    assert_true(old && other);
    assert_int_equal(store_faulty_forget(pair.faulty, 3), SHOAL_OK); /* there is nothing more to forget */
    expect_text(pair.plain, "a", "1");
    assert_int_equal(store_faulty_forget(pair.faulty, 9), SHOAL_OK);
    expect_text(pair.plain, "a", NULL);
    expect_text(pair.plain, "long ago", "kept");
    assert_int_equal(store_faulty_forget(pair.plain, 9), SHOAL_USAGE);
    close_pair(&pair);
}

static void test_forgetting_by_chance(void **state)
{
    (void)state;
    pair pair = open_pair("forget:1/10s");
    put_text(pair.faulty, "a", "1"); /* the next call forgets it */
    expect_text(pair.plain, "a", "1");
    put_text(pair.faulty, "b", "2");
    expect_text(pair.plain, "a", NULL);
    expect_text(pair.plain, "b", "2");
    close_pair(&pair);
}

/* ---- counting ---------------------------------------------------------------------------------------------------- */

static int get_counting(shoal_store *self, const char *key, const store_range *range, shoal_blob *out,
                        store_attempt *attempt)
{
    store_count(self, SHOAL_REQUEST_GET, 0, 5);
    return store_memory.get(self, key, range, out, attempt);
}

static int put_counting(shoal_store *self, const char *key, const store_body *body, const shoal_etag *expected,
                        shoal_etag *etag, store_attempt *attempt)
{
    store_count(self, SHOAL_REQUEST_PUT, 7, 0);
    return store_memory.put(self, key, body, expected, etag, attempt);
}

/* What a store counts by itself is found at the wrapper; what the wrapper asks for its own use is not. */
static void test_what_the_inner_store_counts_is_counted(void **state)
{
    (void)state;
    struct store_class counting = store_memory;
    shoal_store *store = NULL;
    counting.counts_itself = true;
    counting.get = get_counting;
    counting.put = put_counting;
    assert_int_equal(shoal_store_open(&store, "mem:", NULL, SHOAL_NEVER), SHOAL_OK);
    store->class = &counting;
    assert_int_equal(store_faulty_wrap(&store, "forget:0/1s"), SHOAL_OK);
    put_text(store, "a", "1");
    put_text(store, "a", "2");
    expect_text(store, "a", "2");
    shoal_store_counts counts = shoal_store_counted(store);
    assert_int_equal(counts.requests[SHOAL_REQUEST_PUT], 2);
    assert_int_equal(counts.requests[SHOAL_REQUEST_GET], 1);
    assert_int_equal(counts.bytes_sent, 14);
    assert_int_equal(counts.bytes_received, 5);
    shoal_store_close(&store);
}

/* ---- without memory ---------------------------------------------------------------------------------------------- */

static int use_all(void)
{
    shoal_store *store = NULL;
    shoal_message message = {0};
    shoal_blob blob = {0};
    shoal_listing page = {0};
    int status = shoal_store_open(&store, "mem:?faults=stale:1/1s,forget:0/5s,duplicate:1", NULL, SHOAL_NEVER);
    for (int i = 0; i < 3 && status == SHOAL_OK; i++)
        status = shoal_store_put(store, i ? "a" : "b", "x", 1, NULL, NULL, SHOAL_NEVER);
    if (status == SHOAL_OK)
        status = shoal_store_remove(store, "a", SHOAL_NEVER);
    if (status == SHOAL_OK)
        status = shoal_store_list(store, "", NULL, &page, SHOAL_NEVER);
    if (status == SHOAL_OK)
        status = shoal_store_push(store, "queue", "x", 1, SHOAL_NEVER);
    if (status == SHOAL_OK)
        status = shoal_store_take(store, "queue", 5, &message, SHOAL_NEVER);
    if (status == SHOAL_OK)
        status = shoal_store_finish(store, "queue", &message, SHOAL_NEVER);
    if (status == SHOAL_OK)
        status = shoal_store_get(store, "a", &blob, SHOAL_NEVER); /* stale: it was not there a second ago */
    if (status == SHOAL_ABSENT)
        status = store_faulty_forget(store, 1);
    shoal_message_release(&message);
    shoal_blob_release(&blob);
    shoal_listing_release(&page);
    shoal_store_close(&store);
    return status;
}

static void test_the_nth_allocation_fails(void **state)
{
    (void)state;
    int status = SHOAL_MEMORY;
    int64_t n = 0;
    for (; status != SHOAL_OK; n++) {
        assert_true(n < 1000);
        base_memory_fail_after(n);
        status = use_all();
        base_memory_fail_after(-1);
        assert_true(status == SHOAL_OK || status == SHOAL_MEMORY);
    }
    assert_true(n > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_wrong_option_is_one_sentence),
        cmocka_unit_test(test_a_seed_means_the_same_faults),
        cmocka_unit_test(test_faults_come_as_often_as_asked),
        cmocka_unit_test(test_before_nothing_is_done_and_after_all_is),
        cmocka_unit_test(test_a_cut_is_before_or_after),
        cmocka_unit_test(test_throttling_says_how_long_and_delays_pass_time),
        cmocka_unit_test(test_messages_are_doubled_or_taken_by_nobody),
        cmocka_unit_test(test_stale_reads_show_what_was_there),
        cmocka_unit_test(test_forgetting_goes_back),
        cmocka_unit_test(test_forgetting_by_chance),
        cmocka_unit_test(test_what_the_inner_store_counts_is_counted),
        cmocka_unit_test(test_the_nth_allocation_fails),
    };
    return cmocka_run_group_tests(tests, enter_world, leave_world);
}
