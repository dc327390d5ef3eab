/* Conformance: blobs.  Each test is one promise of include/shoal/store.h. */
#ifndef CONFORM_STORE_BLOBS_H
#define CONFORM_STORE_BLOBS_H

#include "store_support.h"

static void put_text(shoal_store *store, const char *key, const char *text)
{
    succeed(shoal_store_put(store, key, text, strlen(text), NULL, NULL, SOON));
}

static void expect_text(shoal_store *store, const char *key, const char *text)
{
    shoal_blob blob = {0};
    succeed(shoal_store_get(store, key, &blob, SOON));
    if (blob.size != strlen(text) || memcmp(blob.data, text, blob.size) != 0)
        fail_msg("%s holds '%.*s', not '%s'", key, (int)blob.size, (char *)blob.data, text);
    assert_int_equal(blob.whole, strlen(text));
    assert_true(blob.etag.text[0]);
    assert_true(blob.age >= -1 && blob.age < 120);
    shoal_blob_release(&blob);
}

/* The size of a key as a listing shows it, -1 when it does not. */
static int64_t listed_size(shoal_store *store, const char *prefix, const char *key)
{
    shoal_listing page = {0};
    int64_t size = -1;
    do {
        succeed(shoal_store_list(store, prefix, NULL, &page, SOON));
        for (size_t i = 0; i < page.count; i++)
            if (strcmp(page.entries[i].key, key) == 0) {
                size = page.entries[i].size;
                assert_true(page.entries[i].age >= 0 && page.entries[i].age < 120);
            }
    } while (page.more);
    shoal_listing_release(&page);
    return size;
}

/* ---- reading one's writes ---------------------------------------------------------------------------------------- */

static void test_what_was_put_is_there_for_every_handle(void **state)
{
    (void)state;
    shoal_store *writer = open_usual(), *reader = open_usual();
    shoal_blob blob = {0};
    char key[64], text[64];
    int times = amount(30, 2, 10);
    for (int i = 0; i < times; i++) {
        snprintf(key, sizeof key, "own/%d", i);
        snprintf(text, sizeof text, "first %d", i);
        expect(SHOAL_ABSENT, shoal_store_get(reader, key, &blob, SOON));
        put_text(writer, key, text);
        expect_text(reader, key, text);
        assert_int_equal(listed_size(reader, "own/", key), strlen(text));
        put_text(writer, key, "second");
        expect_text(reader, key, "second");
        assert_int_equal(listed_size(reader, "own/", key), 6);
        succeed(shoal_store_remove(writer, key, SOON));
        expect(SHOAL_ABSENT, shoal_store_get(reader, key, &blob, SOON));
        assert_int_equal(listed_size(reader, "own/", key), -1);
        succeed(shoal_store_remove(writer, key, SOON)); /* once more is not a failure */
    }
    shoal_store_close(&writer);
    shoal_store_close(&reader);
}

/* Prints what another process has put. */
static int role_see(shoal_store *store, int index, const char *key, FILE *out)
{
    shoal_blob blob = {0};
    (void)index;
    int status = shoal_store_get(store, key, &blob, SOON);
    if (status == SHOAL_OK)
        fprintf(out, "%.*s\n", (int)blob.size, (char *)blob.data);
    shoal_blob_release(&blob);
    return status;
}

static void expect_line(void *text, int index, const char *line)
{
    (void)index;
    assert_string_equal(line, text);
}

static void test_what_was_put_is_there_for_another_process(void **state)
{
    (void)state;
    if (!here.shared)
        skip();
    shoal_store *store = open_usual();
    put_text(store, "seen", "by another process");
    race_join(race_start("see", 2, true, usual_faults(NULL), "seen"), expect_line, "by another process");
    shoal_store_close(&store);
}

/* ---- races ------------------------------------------------------------------------------------------------------- */

#define KIND_TEST SHOAL_KIND('t', 'e', 's', 't')

/* Puts ROUNDS keys, each only if absent; tells which it won. */
static int role_absent(shoal_store *store, int index, const char *argument, FILE *out)
{
    char key[64], name[16] = "";
    int rounds = 0, status = SHOAL_OK;
    sscanf(argument, "%15s %d", name, &rounds);
    for (int i = 0; i < rounds && status == SHOAL_OK; i++) {
        snprintf(key, sizeof key, "%s/%d", name, i);
        status = shoal_store_put_framed(store, key, KIND_TEST, &index, sizeof index, SHOAL_NOTHING, NULL, SOON);
        fprintf(out, "%s %d\n", status == SHOAL_OK ? "won" : status == SHOAL_CONFLICT ? "lost" : "unclear", i);
        if (status == SHOAL_CONFLICT)
            status = SHOAL_OK;
    }
    return status;
}

typedef struct winners {
    int count[64], last[64];
} winners;

static void see_winner(void *context, int index, const char *line)
{
    winners *winners = context;
    int round;
    if (sscanf(line, "won %d", &round) == 1) {
        winners->count[round]++;
        winners->last[round] = index;
    }
}

static void race_for_absent_keys(const char *name, bool processes)
{
    winners winners = {0};
    char argument[64], key[64];
    int rounds = amount(12, 2, processes ? 60 : 32);
    snprintf(argument, sizeof argument, "%s %d", name, rounds);
    race_join(race_start("absent", 32, processes, usual_faults(NULL), argument), see_winner, &winners);
    for (int i = 0; i < rounds; i++) {
        shoal_blob blob = {0};
        snprintf(key, sizeof key, "%s/%d", name, i);
        if (winners.count[i] != 1)
            fail_msg("%s was won by %d of 32 racers", key, winners.count[i]);
        succeed(shoal_store_get_framed(here.keeper, key, KIND_TEST, &blob, SOON));
        int written;
        memcpy(&written, blob.data, sizeof written);
        assert_int_equal(written, winners.last[i]);
        shoal_blob_release(&blob);
    }
}

static void test_put_if_absent_is_won_by_one_of_32_threads(void **state)
{
    (void)state;
    race_for_absent_keys("absent-t", false);
}

static void test_put_if_absent_is_won_by_one_of_32_processes(void **state)
{
    (void)state;
    if (!here.shared)
        skip();
    race_for_absent_keys("absent-p", true);
}

/* A counter that knows how much each racer added, so that a racer that lost an answer can look. */
typedef struct counter {
    int64_t total, added[RACERS_MOST];
} counter;

static int get_counter(shoal_store *store, bool framed, counter *out, shoal_etag *etag)
{
    shoal_blob blob = {0};
    int status = framed ? shoal_store_get_framed(store, "counter/framed", KIND_TEST, &blob, SOON)
                        : shoal_store_get(store, "counter/plain", &blob, SOON);
    if (status == SHOAL_OK && blob.size != sizeof *out)
        status = shoal_fail(SHOAL_BROKEN, "the counter has %zu bytes", blob.size);
    if (status == SHOAL_OK) {
        memcpy(out, blob.data, sizeof *out);
        *etag = blob.etag;
    }
    shoal_blob_release(&blob);
    return status;
}

static int put_counter(shoal_store *store, bool framed, const counter *counter, const shoal_etag *etag)
{
    return framed
               ? shoal_store_put_framed(store, "counter/framed", KIND_TEST, counter, sizeof *counter, etag, NULL, SOON)
               : shoal_store_put(store, "counter/plain", counter, sizeof *counter, etag, NULL, SOON);
}

/* Adds 1 to the counter that many times.  What was acknowledged counts; what is unclear is looked up. */
static int role_count(shoal_store *store, int index, const char *argument, FILE *out)
{
    bool framed = argument[0] == 'f';
    int times = atoi(argument + 1), done = 0, unclear = 0, status = SHOAL_OK;
    while (done < times && status == SHOAL_OK) {
        counter counter;
        shoal_etag etag;
        status = get_counter(store, framed, &counter, &etag);
        if (status < 0)
            break;
        if (counter.added[index] > done) { /* the one whose answer was lost was done */
            done++;
            continue;
        }
        counter.total++;
        counter.added[index]++;
        status = put_counter(store, framed, &counter, &etag);
        done += status == SHOAL_OK;
        unclear += status == SHOAL_UNKNOWN;
        if (status == SHOAL_CONFLICT || status == SHOAL_UNKNOWN)
            status = SHOAL_OK;
    }
    fprintf(out, "added %d unclear %d\n", done, unclear);
    return status;
}

static void see_added(void *context, int index, const char *line)
{
    counter *sum = context;
    int added;
    if (sscanf(line, "added %d", &added) == 1) {
        sum->total += added;
        sum->added[index] += added;
    }
}

static void race_for_the_counter(bool framed, bool processes, const char *faults, int times)
{
    counter counter = {0}, sum = {0}, zero = {0};
    shoal_etag etag;
    char argument[32];
    int racers = here.latency > 0.001 ? 6 : 12;
    succeed(put_counter(here.keeper, framed, &zero, NULL));
    snprintf(argument, sizeof argument, "%c%d", framed ? 'f' : 'p', amount(times, 2, 3.0 * racers));
    race_join(race_start("count", racers, processes, faults, argument), see_added, &sum);
    succeed(get_counter(here.keeper, framed, &counter, &etag));
    if (counter.total != sum.total)
        fail_msg("%" PRId64 " increments were acknowledged, %" PRId64 " are there", sum.total, counter.total);
    for (int i = 0; i < racers; i++)
        assert_int_equal(counter.added[i], sum.added[i]);
}

static void test_a_counter_loses_no_increment(void **state)
{
    (void)state;
    race_for_the_counter(true, false, usual_faults(NULL), 25);
    race_for_the_counter(false, false, usual_faults(NULL), 25);
    if (here.shared)
        race_for_the_counter(true, true, usual_faults(NULL), 25);
}

/* Many answers are lost, and some reads show what was there before: the conditions decide all the same. */
static void test_a_counter_loses_no_increment_though_answers_are_lost(void **state)
{
    (void)state;
    race_for_the_counter(true, false, "after:0.2,cut:0.1,before:0.05", 7);
    race_for_the_counter(false, false, "after:0.2,cut:0.1,stale:0.1/50ms", 7);
}

/* ---- listing ----------------------------------------------------------------------------------------------------- */

typedef struct key_set {
    char **key;
    size_t count;
} key_set;

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void key_set_add(key_set *set, const char *key)
{
    set->key = realloc(set->key, (set->count + 1) * sizeof *set->key);
    assert_non_null(set->key);
    set->key[set->count++] = strdup(key);
}

static void key_set_free(key_set *set)
{
    for (size_t i = 0; i < set->count; i++)
        free(set->key[i]);
    free(set->key);
    *set = (key_set){0};
}

/* Lists and compares with what of the sorted set it should be; the number of pages. */
static int expect_listing(shoal_store *store, const key_set *all, const char *prefix, const char *after)
{
    shoal_listing page = {0};
    size_t next = 0;
    int pages = 0;
    do {
        succeed(shoal_store_list(store, prefix, after, &page, SOON));
        pages++;
        for (size_t i = 0; i < page.count; i++, next++) {
            while (next < all->count && (strncmp(all->key[next], prefix, strlen(prefix)) != 0 ||
                                         (after && strcmp(all->key[next], after) <= 0)))
                next++;
            if (next >= all->count || strcmp(all->key[next], page.entries[i].key) != 0)
                fail_msg("listing '%s' after '%s': '%s' comes where '%s' should", prefix, after ? after : "",
                         page.entries[i].key, next < all->count ? all->key[next] : "the end");
            assert_int_equal(page.entries[i].size, strlen(page.entries[i].key));
            assert_true(page.entries[i].etag.text[0]);
        }
    } while (page.more);
    for (; next < all->count; next++)
        if (strncmp(all->key[next], prefix, strlen(prefix)) == 0 && (!after || strcmp(all->key[next], after) > 0))
            fail_msg("listing '%s' after '%s': '%s' is missing", prefix, after ? after : "", all->key[next]);
    shoal_listing_release(&page);
    return pages;
}

/* Puts every INDEX-th of the keys of the page test; each body is as long as its key. */
static int role_fill(shoal_store *store, int index, const char *argument, FILE *out)
{
    int count = 0, racers = 1, status = SHOAL_OK;
    char key[64];
    (void)out;
    sscanf(argument, "%d %d", &count, &racers);
    for (int i = index; i < count && status == SHOAL_OK; i += racers) {
        snprintf(key, sizeof key, "list/%05d", (int)((int64_t)i * 7919 % count)); /* in no order */
        status = shoal_store_put(store, key, key, strlen(key), NULL, NULL, SOON);
    }
    return status;
}

static void test_listing_is_in_the_order_of_bytes_across_pages(void **state)
{
    (void)state;
    static const char *const awkward[] = {"list-",
                                          "list.a",
                                          "list/a b",
                                          "list/a-b",
                                          "list/a.b",
                                          "list/a/b",
                                          "list/a0b",
                                          "list/aB",
                                          "list/a~",
                                          "list/\xc3\xa9",
                                          "list/\xe2\x82\xac",
                                          "list/\xf0\x9f\x90\x9f",
                                          "list/\xef\xbf\xbd",
                                          "list0"};
    enum { AWKWARD = sizeof awkward / sizeof *awkward, FILLERS = 8 };
    key_set all = {0};
    char argument[32], key[64];
    int count = amount(2100, 40, 0.3);
    shoal_store *store = open_usual();
    snprintf(argument, sizeof argument, "%d %d", count, FILLERS);
    race_join(race_start("fill", FILLERS, false, NULL, argument), NULL, NULL);
    for (int i = 0; i < count; i++) {
        snprintf(key, sizeof key, "list/%05d", i);
        key_set_add(&all, key);
    }
    for (int i = 0; i < AWKWARD; i++) {
        put_text(store, awkward[i], awkward[i]);
        key_set_add(&all, awkward[i]);
    }
    qsort(all.key, all.count, sizeof *all.key, by_bytes);
    int pages = expect_listing(store, &all, "list", NULL);
    if (count == 2100)
        assert_true(pages > 2); /* of 1,000 keys */
    shoal_store_close(&store);
    store = open_small_pages(count / 8);
    assert_true(expect_listing(store, &all, "list", NULL) > 8);
    expect_listing(store, &all, "list/", NULL);
    expect_listing(store, &all, "list/000", NULL);
    expect_listing(store, &all, "list/a", NULL);
    expect_listing(store, &all, "list/", "list/00017");
    expect_listing(store, &all, "list", "list/00016z");
    expect_listing(store, &all, "list", "list/a/b");
    expect_listing(store, &all, "list/", all.key[all.count - 1]);
    expect_listing(store, &all, "list/0001", "list/00015");
    expect_listing(store, &all, "list/none", NULL);
    key_set_free(&all);
    shoal_store_close(&store);
}

/* ---- names and sizes --------------------------------------------------------------------------------------------- */

static void test_keys_with_every_awkward_character(void **state)
{
    (void)state;
    char longest[SHOAL_KEY_MOST + 1], deep[SHOAL_KEY_MOST + 1];
    const char *const keys[] = {"a",
                                "~",
                                "key/!\"#$%&'()*+,-.x/0:;<=>?@A[\\]^_`{|}~",
                                "key/with space",
                                "key/ lead",
                                "key/trail ",
                                "key/100%25",
                                "key/a%2Fb",
                                "key/a+b",
                                "key/?q=1&r=2#f",
                                "key/..x",
                                "key/.hidden",
                                "key/\xc2\xa0",
                                "key/\xc3\xa9t\xc3\xa9",
                                "key/\xe2\x82\xac",
                                "key/\xf0\x9f\x90\x9f",
                                "key/CASE",
                                "key/case",
                                "key/x/.shoal/y",
                                longest,
                                deep};
    memset(longest, 'k', sizeof longest);
    for (int i = 0; i < SHOAL_KEY_MOST; i++)
        deep[i] = i % 2 ? '/' : 'd';
    longest[SHOAL_KEY_MOST] = deep[SHOAL_KEY_MOST] = '\0';
    deep[SHOAL_KEY_MOST - 1] = 'd';
    memcpy(longest, "key/", 4);
    shoal_store *store = open_usual();
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        put_text(store, keys[i], keys[i]);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        expect_text(store, keys[i], keys[i]);
        assert_int_equal(listed_size(store, keys[i], keys[i]), strlen(keys[i]));
    }
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        succeed(shoal_store_remove(store, keys[i], SOON));
    shoal_store_close(&store);
}

static void test_keys_that_are_none_are_refused(void **state)
{
    (void)state;
    char too_long[SHOAL_KEY_MOST + 2];
    const char *const keys[] = {"",         "a\nb", "a\x01",    "\x7f",   "\xff",  "a\xc3", "\xed\xa0\x80",
                                "\xc0\xaf", "a//b", "/a",       "a/",     "a./b",  "..",    "a/..",
                                "./a",      "a.",   ".shoal/x", ".shoal", too_long};
    shoal_store *store = open_usual();
    shoal_blob blob = {0};
    shoal_message message = {0};
    int64_t count;
    memset(too_long, 'k', sizeof too_long);
    too_long[SHOAL_KEY_MOST + 1] = '\0';
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        expect(SHOAL_USAGE, shoal_store_put(store, keys[i], "x", 1, NULL, NULL, SOON));
        expect(SHOAL_USAGE, shoal_store_put_framed(store, keys[i], KIND_TEST, "x", 1, NULL, NULL, SOON));
        expect(SHOAL_USAGE, shoal_store_get(store, keys[i], &blob, SOON));
        expect(SHOAL_USAGE, shoal_store_remove(store, keys[i], SOON));
        expect(SHOAL_USAGE, shoal_store_push(store, keys[i], "x", 1, SOON));
        expect(SHOAL_USAGE, shoal_store_take(store, keys[i], 5, &message, SOON));
        expect(SHOAL_USAGE, shoal_store_count(store, keys[i], &count, SOON));
    }
    expect(SHOAL_USAGE, shoal_store_take(store, "lease", 0.5, &message, SOON));
    expect(SHOAL_USAGE, shoal_store_take(store, "lease", 604801, &message, SOON));
    shoal_store_close(&store);
}

/* Writes, reads and overwrites a body of a size. */
static void try_size(shoal_store *store, size_t size)
{
    char key[64];
    unsigned char *bytes = malloc(size + 1);
    shoal_blob blob = {0};
    shoal_etag etag = {""}, second = {""};
    assert_non_null(bytes);
    snprintf(key, sizeof key, "size/%zu", size);
    fill(bytes, size, size);
    succeed(shoal_store_put(store, key, bytes, size, NULL, &etag, SOON));
    succeed(shoal_store_get(store, key, &blob, SOON));
    if (blob.size != size || blob.whole != (int64_t)size || memcmp(blob.data, bytes, size) != 0)
        fail_msg("a body of %zu bytes came back as another one of %zu", size, blob.size);
    assert_string_equal(blob.etag.text, etag.text);
    assert_int_equal((uintptr_t)blob.data % 64, 0);
    shoal_blob_release(&blob);
    fill(bytes, size, size + 1);
    succeed(shoal_store_put(store, key, bytes, size, &etag, &second, SOON));
    assert_true(size == 0 || strcmp(second.text, etag.text) != 0);
    succeed(shoal_store_get(store, key, &blob, SOON));
    assert_true(blob.size == size && memcmp(blob.data, bytes, size) == 0);
    shoal_blob_release(&blob);
    if (size > 10) { /* in the middle, across whatever pieces it is kept in */
        succeed(shoal_store_get_range(store, key, (int64_t)size / 2 - 5, 10, &second, NULL, &blob, SOON));
        assert_true(blob.size == 10 && memcmp(blob.data, bytes + size / 2 - 5, 10) == 0);
        shoal_blob_release(&blob);
    }
    succeed(shoal_store_remove(store, key, SOON));
    free(bytes);
}

static void test_bodies_of_every_awkward_size(void **state)
{
    (void)state;
    static const size_t sizes[] = {0,     1,      2, 4095, 8191, 8192, 8193, 48 * 1024 - 1, 48 * 1024, 48 * 1024 + 1,
                                   65536, 1 << 20};
    shoal_store *store = open_with(NULL); /* a conditional put of plain bytes can't be judged after a lost answer */
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        try_size(store, sizes[i]);
    if (here.seed == 0)
        try_size(store, ((size_t)64 << 20) + 1);
    shoal_store_close(&store);
}

static void test_ranges(void **state)
{
    (void)state;
    static const struct {
        int64_t offset, length;
        size_t found;
    } ranges[] = {{0, 0, 0},
                  {0, 1, 1},
                  {0, 100, 100},
                  {0, 101, 100},
                  {99, 1, 1},
                  {99, 100, 1},
                  {100, 1, 0},
                  {100, 0, 0},
                  {1000, 10, 0},
                  {37, 20, 20},
                  {50, 0, 0},
                  {0, INT64_C(1) << 40, 100},
                  {INT64_C(1) << 40, 5, 0}};
    unsigned char bytes[100], buffer[128];
    shoal_etag etag, other = {"no such version"};
    shoal_blob blob = {0};
    shoal_store *store = open_usual();
    fill(bytes, sizeof bytes, 5);
    succeed(shoal_store_put(store, "range", bytes, sizeof bytes, NULL, &etag, SOON));
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        int64_t offset = ranges[i].offset, length = ranges[i].length;
        succeed(shoal_store_get_range(store, "range", offset, length, i % 2 ? &etag : NULL, NULL, &blob, SOON));
        if (blob.size != ranges[i].found || blob.whole != 100 ||
            (blob.size > 0 && memcmp(blob.data, bytes + offset, blob.size) != 0))
            fail_msg("%" PRId64 " bytes from %" PRId64 ": %zu came, or others", length, offset, blob.size);
        assert_string_equal(blob.etag.text, etag.text);
        shoal_blob_release(&blob);
        if (length > (int64_t)sizeof buffer)
            continue;
        memset(buffer, 0x5a, sizeof buffer);
        succeed(shoal_store_get_range(store, "range", offset, length, NULL, buffer, &blob, SOON));
        assert_true(blob.size == ranges[i].found && blob.data == NULL && blob.whole == 100);
        assert_true(blob.size == 0 || memcmp(buffer, bytes + offset, blob.size) == 0);
        for (size_t at = (size_t)length; at < sizeof buffer; at++)
            assert_int_equal(buffer[at], 0x5a);
        shoal_blob_release(&blob);
    }
    expect(SHOAL_CONFLICT, shoal_store_get_range(store, "range", 0, 10, &other, NULL, &blob, SOON));
    put_text(store, "range", "another version");
    expect(SHOAL_CONFLICT, shoal_store_get_range(store, "range", 0, 10, &etag, NULL, &blob, SOON));
    expect(SHOAL_CONFLICT, shoal_store_get_range(store, "range", 0, 10, &etag, buffer, &blob, SOON));
    expect(SHOAL_ABSENT, shoal_store_get_range(store, "no range", 0, 10, NULL, NULL, &blob, SOON));
    expect(SHOAL_USAGE, shoal_store_get_range(store, "range", -1, 10, NULL, NULL, &blob, SOON));
    put_text(store, "range", "");
    succeed(shoal_store_get_range(store, "range", 0, 10, NULL, NULL, &blob, SOON));
    assert_true(blob.size == 0 && blob.whole == 0);
    shoal_blob_release(&blob);
    shoal_store_close(&store);
}

/* ---- conditions -------------------------------------------------------------------------------------------------- */

static int put_as(shoal_store *store, bool framed, const char *key, const char *text, const shoal_etag *expected,
                  shoal_etag *etag)
{
    return framed ? shoal_store_put_framed(store, key, KIND_TEST, text, strlen(text), expected, etag, SOON)
                  : shoal_store_put(store, key, text, strlen(text), expected, etag, SOON);
}

/* A put that expects a version which is not there is refused; when an answer to it was lost, nobody can tell. */
static void expect_outdated(bool answers_get_lost, int status)
{
    if (!answers_get_lost || status != SHOAL_UNKNOWN)
        expect(SHOAL_CONFLICT, status);
}

static void try_conditions(shoal_store *store, bool framed, bool faulty, const char *key)
{
    shoal_etag first = {""}, second = {""}, third = {""}, from_list = {""};
    shoal_listing page = {0};
    shoal_blob blob = {0};
    succeed(put_as(store, framed, key, "one", SHOAL_NOTHING, &first));
    assert_true(first.text[0]);
    expect(SHOAL_CONFLICT, put_as(store, framed, key, "two", SHOAL_NOTHING, NULL));
    succeed(put_as(store, framed, key, "two", &first, &second));
    assert_string_not_equal(first.text, second.text);
    expect_outdated(faulty, put_as(store, framed, key, "three", &first, NULL));
    succeed(put_as(store, framed, key, "three", NULL, &third));
    expect_outdated(faulty, put_as(store, framed, key, "four", &second, NULL));
    succeed(shoal_store_get(store, key, &blob, SOON));
    assert_string_equal(blob.etag.text, third.text);
    assert_true(blob.size >= 5 && memcmp((char *)blob.data + blob.size - 5, "three", 5) == 0);
    shoal_blob_release(&blob);
    succeed(shoal_store_list(store, key, NULL, &page, SOON)); /* a version from a listing is as good */
    assert_int_equal(page.count, 1);
    from_list = page.entries[0].etag;
    shoal_listing_release(&page);
    succeed(put_as(store, framed, key, "five", &from_list, &third));
    succeed(shoal_store_remove(store, key, SOON));
    expect_outdated(faulty, put_as(store, framed, key, "six", &third, NULL));
    expect(SHOAL_ABSENT, shoal_store_get(store, key, &blob, SOON));
    succeed(put_as(store, framed, key, "seven", SHOAL_NOTHING, NULL));
}

static void test_conditions_hold_or_conflict(void **state)
{
    (void)state;
    shoal_store *store = open_with(NULL);
    try_conditions(store, false, false, "condition/plain");
    try_conditions(store, true, false, "condition/framed");
    shoal_store_close(&store);
    store = open_usual();
    if (here.seed != 0)
        try_conditions(store, true, true, "condition/faulty");
    shoal_store_close(&store);
}

/* A plain conditional put whose every answer is lost is unclear; a framed one is judged by what is there. */
static void test_a_lost_answer_is_judged_by_the_frame(void **state)
{
    (void)state;
    shoal_store *store = open_with("after:0.25");
    char key[64];
    int times = amount(16, 3, 8), unclear = 0;
    for (int i = 0; i < times; i++) {
        shoal_etag etag;
        snprintf(key, sizeof key, "judged/%d", i);
        succeed(put_as(store, true, key, "mine", SHOAL_NOTHING, &etag));
        succeed(put_as(store, true, key, "mine again", &etag, &etag));
        succeed(put_as(here.keeper, true, key, "another's", &etag, NULL)); /* so the etag was that of what is there */
        expect(SHOAL_CONFLICT, put_as(store, true, key, "late", SHOAL_NOTHING, NULL));
        int status = put_as(store, true, key, "late", &etag, NULL);
        if (status != SHOAL_CONFLICT && status != SHOAL_UNKNOWN)
            fail_msg("a put on an old version gave %d", status);
        snprintf(key, sizeof key, "unclear/%d", i);
        unclear += put_as(store, false, key, "whose?", SHOAL_NOTHING, NULL) == SHOAL_UNKNOWN;
    }
    assert_true(times < 16 || unclear > 0);
    shoal_store_close(&store);
}

/* ---- prefixes ---------------------------------------------------------------------------------------------------- */

static void test_prefixes_isolate(void **state)
{
    (void)state;
    static const char *const below[] = {"room", "roomy", "room/inner"};
    shoal_store *rooms[3];
    char url[URL_MOST];
    shoal_blob blob = {0};
    shoal_message message = {0};
    for (int i = 0; i < 3; i++) {
        make_url(url, below[i], NULL, 0);
        rooms[i] = open_url(url);
        put_text(rooms[i], "key", below[i]);
        succeed(shoal_store_push(rooms[i], "queue", below[i], strlen(below[i]), SOON));
    }
    for (int i = 0; i < 3; i++) {
        expect_text(rooms[i], "key", below[i]);
        assert_int_equal(listed_size(rooms[i], "", "key"), strlen(below[i]));
        assert_int_equal(listed_size(rooms[i], "", "inner/key"), i == 0 ? 10 : -1);
        assert_int_equal(listed_size(rooms[i], "", "y/key"), -1);
        expect(SHOAL_ABSENT, shoal_store_get(rooms[i], "room/key", &blob, SOON));
        succeed(shoal_store_take(rooms[i], "queue", 30, &message, SOON));
        assert_true(message.size == strlen(below[i]) && memcmp(message.data, below[i], message.size) == 0);
        shoal_message_release(&message);
        succeed(shoal_store_drop(rooms[i], "queue", SOON));
    }
    for (int i = 0; i < 3; i++)
        shoal_store_close(&rooms[i]);
    expect_text(here.keeper, "roomy/key", "roomy");
}

#endif
