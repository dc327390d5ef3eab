/* The pipe store from end to end: a server, a hub and stores of workers, in one process.  What every store promises is
 * proved by tests/conform; here is what only this one does. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/world.h"
#include "store/pipe/pipe.h"
#include "store/pipe/pipe_frame.h"
#include "store/pipe/pipe_server_internal.h"
#include "store/pipe/pipe_wire.h"
#include "store/store_internal.h"

#define NONCE "00112233445566778899aabbccddeeff"
#define SOON shoal_after(300)

#define succeed(call)                                                                                                  \
    do {                                                                                                               \
        if ((call) < 0)                                                                                                \
            fail_msg("%s: %s", #call, shoal_error());                                                                  \
    } while (0)

#define expect(status, call)                                                                                           \
    do {                                                                                                               \
        int got_ = (call);                                                                                             \
        if (got_ != (status))                                                                                          \
            fail_msg("%s: gave %d, not %s: %s", #call, got_, #status, shoal_error());                                  \
    } while (0)

/* What an end was told. */
typedef struct told {
    _Atomic uint32_t notes, closed;
    _Atomic uint32_t held, released; /* the link's thread is held by the note "hold" until it is released */
    pthread_mutex_t lock;
    char note[256], why[512];
} told;

static void heard(void *context, const char *note)
{
    told *self = context;
    pthread_mutex_lock(&self->lock);
    snprintf(self->note, sizeof self->note, "%s", note);
    pthread_mutex_unlock(&self->lock);
    atomic_fetch_add(&self->notes, 1);
    base_wake_word(&self->notes, 1);
    if (strcmp(note, "hold") == 0) {
        atomic_store(&self->held, 1);
        base_wake_word(&self->held, 1);
        base_wait_word(&self->released, 0, SOON);
    }
}

static void closed(void *context, const char *why)
{
    told *self = context;
    pthread_mutex_lock(&self->lock);
    snprintf(self->why, sizeof self->why, "%s", why);
    pthread_mutex_unlock(&self->lock);
    atomic_fetch_add(&self->closed, 1);
    base_wake_word(&self->closed, 1);
}

static void wait_for(_Atomic uint32_t *word, uint32_t least)
{
    int64_t deadline = SOON;
    for (uint32_t now; (now = atomic_load(word)) < least;) {
        if (base_now() >= deadline)
            fail_msg("nothing came for half a minute");
        base_wait_word(word, now, deadline);
    }
}

/* Both ends, and the store behind. */
typedef struct machine {
    char folder[64], socket[96], url[128];
    shoal_store *store, *data;
    pipe_server *server;
    pipe_hub *hub;
    told near, far;
} machine;

static void make_folder(machine *self)
{
    *self = (machine){.folder = "/tmp/test-store-pipe-XXXXXX"};
    assert_non_null(mkdtemp(self->folder));
    snprintf(self->socket, sizeof self->socket, "%s/socket", self->folder);
    snprintf(self->url, sizeof self->url, "pipe:%s", self->socket);
    pthread_mutex_init(&self->near.lock, NULL);
    pthread_mutex_init(&self->far.lock, NULL);
}

/* The same, where the far end sees one job and one key of the rows only. */
static void start_for(machine *self, const char *near_url, const char *data_url, const char *far_nonce, const char *job,
                      const char *data_key)
{
    int pair[2];
    make_folder(self);
    succeed(shoal_store_open(&self->store, near_url, NULL, SOON));
    if (data_url)
        succeed(shoal_store_open(&self->data, data_url, NULL, SOON));
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    const pipe_server_options server = {.store = self->store,
                                        .data = self->data,
                                        .job = job,
                                        .data_key = data_key,
                                        .nonce = NONCE,
                                        .events = {heard, closed, &self->near}};
    succeed(pipe_server_new(&self->server, pair[0], pair[0], &server));
    const pipe_hub_options hub = {.socket = self->socket, .nonce = far_nonce, .events = {heard, closed, &self->far}};
    succeed(pipe_hub_new(&self->hub, pair[1], pair[1], &hub));
}

static void start(machine *self, const char *near_url, const char *data_url, const char *far_nonce)
{
    start_for(self, near_url, data_url, far_nonce, NULL, NULL);
}

static void stop(machine *self)
{
    pipe_hub_free(&self->hub);
    pipe_server_free(&self->server);
    shoal_store_close(&self->store);
    shoal_store_close(&self->data);
    rmdir(self->folder);
    pthread_mutex_destroy(&self->near.lock);
    pthread_mutex_destroy(&self->far.lock);
}

static shoal_store *open_worker(const machine *self, const char *behind)
{
    shoal_store *store = NULL;
    char url[256];
    snprintf(url, sizeof url, "%s%s", self->url, behind);
    succeed(shoal_store_open(&store, url, NULL, SOON));
    return store;
}

static void expect_text(shoal_store *store, const char *key, const char *text)
{
    shoal_blob blob = {0};
    succeed(shoal_store_get(store, key, &blob, SOON));
    assert_int_equal(blob.size, strlen(text));
    assert_memory_equal(blob.data, text, blob.size);
    shoal_blob_release(&blob);
}

/* ---- what it is -------------------------------------------------------------------------------------------------- */

static void test_it_is_as_the_store_behind_it(void **state)
{
    machine here;
    (void)state;
    start(&here, "mem:?faults=forget:0/7s", NULL, NONCE);
    shoal_store *store = open_worker(&here, "");
    shoal_store_traits traits = shoal_store_describe(store);
    assert_string_equal(traits.scheme, "pipe");
    assert_string_equal(traits.name, here.url);
    assert_true(traits.wakes && traits.far);
    assert_true(traits.forgets == 7);
    shoal_store_close(&store);
    stop(&here);
}

static void test_prefixes_and_wrong_addresses(void **state)
{
    machine here;
    shoal_store *store = NULL;
    char url[256];
    (void)state;
    start(&here, "mem:behind/team", NULL, NONCE);
    store = open_worker(&here, "/jobs/7");
    succeed(shoal_store_put(store, "a", "text", 4, NULL, NULL, SOON));
    expect_text(here.store, "jobs/7/a", "text");
    shoal_store_close(&store);
    store = open_worker(&here, "/");
    expect_text(store, "jobs/7/a", "text");
    shoal_store_close(&store);

    expect(SHOAL_USAGE, shoal_store_open(&store, "pipe:/tmp", NULL, SOON));
    assert_non_null(strstr(shoal_error(), "no socket on that path"));
    expect(SHOAL_USAGE, shoal_store_open(&store, "pipe:", NULL, SOON));
    snprintf(url, sizeof url, "pipe:%s/absent", here.folder);
    expect(SHOAL_ABSENT, shoal_store_open(&store, url, NULL, SOON));
    assert_non_null(strstr(shoal_error(), "absent"));
    snprintf(url, sizeof url, "%s?store=rows", here.url);
    expect(SHOAL_USAGE, shoal_store_open(&store, url, NULL, SOON));
    assert_non_null(strstr(shoal_error(), "store must be data"));
    snprintf(url, sizeof url, "%s?sync=full", here.url);
    expect(SHOAL_USAGE, shoal_store_open(&store, url, NULL, SOON));
    stop(&here);
}

static void test_the_store_of_the_rows_is_only_read(void **state)
{
    machine here;
    shoal_message message = {0};
    shoal_store *other = NULL;
    char url[256];
    (void)state;
    start(&here, "mem:", "mem:rows", NONCE);
    succeed(shoal_store_put(here.data, "row", "1 2 3", 5, NULL, NULL, SOON));
    shoal_store *rows = open_worker(&here, "?store=data"), *store = open_worker(&here, "");
    expect_text(rows, "row", "1 2 3");
    expect(SHOAL_DENIED, shoal_store_put(rows, "row", "x", 1, NULL, NULL, SOON));
    expect(SHOAL_DENIED, shoal_store_remove(rows, "row", SOON));
    expect(SHOAL_DENIED, shoal_store_push(rows, "queue", "x", 1, SOON));
    expect(SHOAL_DENIED, shoal_store_take(rows, "queue", 5, &message, SOON));
    expect_text(rows, "row", "1 2 3");
    shoal_blob blob = {0};
    expect(SHOAL_ABSENT, shoal_store_get(store, "row", &blob, SOON));
    shoal_store_close(&rows);
    shoal_store_close(&store);
    stop(&here);

    start(&here, "mem:", NULL, NONCE);
    snprintf(url, sizeof url, "%s?store=data", here.url);
    expect(SHOAL_ABSENT, shoal_store_open(&other, url, NULL, SOON));
    stop(&here);
}

/* ---- sharing ----------------------------------------------------------------------------------------------------- */

enum { WORKERS = 6, LARGE = 9 << 20 };

typedef struct fetch {
    shoal_store *store;
    const unsigned char *expected;
    pthread_t thread;
    bool right;
} fetch;

static void *fetch_it(void *context)
{
    fetch *self = context;
    shoal_blob blob = {0};
    self->right = shoal_store_get(self->store, "large", &blob, SOON) == SHOAL_OK && blob.size == LARGE &&
                  memcmp(blob.data, self->expected, LARGE) == 0;
    shoal_blob_release(&blob);
    return NULL;
}

static void fetch_by_all(machine *here, const unsigned char *expected)
{
    fetch fetches[WORKERS];
    for (int i = 0; i < WORKERS; i++)
        fetches[i] = (fetch){.store = open_worker(here, ""), .expected = expected};
    for (int i = 0; i < WORKERS; i++)
        assert_int_equal(pthread_create(&fetches[i].thread, NULL, fetch_it, &fetches[i]), 0);
    for (int i = 0; i < WORKERS; i++) {
        pthread_join(fetches[i].thread, NULL);
        assert_true(fetches[i].right);
        shoal_store_close(&fetches[i].store);
    }
}

static void test_what_several_get_is_sent_once(void **state)
{
    machine here;
    unsigned char *bytes = malloc(LARGE);
    (void)state;
    assert_non_null(bytes);
    for (size_t i = 0; i < LARGE; i++)
        bytes[i] = (unsigned char)(i * 2654435761u >> 13);
    start(&here, "mem:", NULL, NONCE);
    succeed(shoal_store_put(here.store, "large", bytes, LARGE, NULL, NULL, SOON));
    fetch_by_all(&here, bytes); /* all at once: most of them while it is under way */
    pipe_figures figures = pipe_hub_figures(here.hub);
    assert_true(figures.received < LARGE + LARGE / 20);
    int64_t before = figures.received;
    fetch_by_all(&here, bytes); /* it is there */
    figures = pipe_hub_figures(here.hub);
    assert_true(figures.received - before < LARGE / 20);
    assert_true(figures.shared >= WORKERS * (int64_t)LARGE);
    assert_true(figures.round_trip > 0 && figures.round_trip < 30);
    assert_true(pipe_server_figures(here.server).sent > LARGE);

    /* Another version is seen at once, by everybody. */
    for (int i = 0; i < 3; i++) {
        bytes[i * 4000000] ^= 1;
        succeed(shoal_store_put(here.store, "large", bytes, LARGE, NULL, NULL, SOON));
        fetch_by_all(&here, bytes);
    }
    free(bytes);
    stop(&here);
}

/* A get never gives less than what was acknowledged before it began, however much is shared. */
static void *overwrite(void *context)
{
    shoal_store *store = context;
    static unsigned char bytes[200000];
    for (uint32_t i = 1; i <= 60; i++) {
        for (size_t at = 0; at < sizeof bytes; at += 4)
            memcpy(bytes + at, &i, sizeof i);
        if (shoal_store_put(store, "version", bytes, sizeof bytes, NULL, NULL, SOON) < 0 ||
            shoal_store_put(store, "least", &i, sizeof i, NULL, NULL, SOON) < 0)
            return (void *)shoal_error();
    }
    return NULL;
}

static void test_no_get_is_stale(void **state)
{
    machine here;
    pthread_t writer;
    uint32_t least = 0, got = 0;
    shoal_blob blob = {0};
    void *failure = NULL;
    (void)state;
    start(&here, "mem:", NULL, NONCE);
    shoal_store *readers[2] = {open_worker(&here, ""), open_worker(&here, "")}, *other = open_worker(&here, "");
    assert_int_equal(pthread_create(&writer, NULL, overwrite, other), 0);
    for (int i = 0; least < 60; i++) {
        if (shoal_store_get(readers[i % 2], "least", &blob, SOON) < 0)
            continue;
        memcpy(&least, blob.data, sizeof least);
        shoal_blob_release(&blob);
        succeed(shoal_store_get(readers[(i + 1) % 2], "version", &blob, SOON));
        memcpy(&got, blob.data, sizeof got);
        assert_true(got >= least);
        for (size_t at = 0; at < blob.size; at += 4) /* and it is of one piece */
            assert_memory_equal((char *)blob.data + at, &got, sizeof got);
        shoal_blob_release(&blob);
    }
    pthread_join(writer, &failure);
    assert_null(failure);
    for (int i = 0; i < 2; i++)
        shoal_store_close(&readers[i]);
    shoal_store_close(&other);
    stop(&here);
}

/* Threads that share a connection: one of those that wait serves the link for all, and none sleeps on an answer that is
 * there. */
static void *get_again_and_again(void *context)
{
    shoal_store *store = context;
    for (int i = 0; i < 2000; i++) {
        shoal_blob blob = {0};
        if (shoal_store_get(store, i % 2 ? "odd" : "even", &blob, SOON) < 0)
            return "a get failed";
        bool right = blob.size == (i % 2 ? 3 : 4);
        shoal_blob_release(&blob);
        if (!right)
            return "a get brought another's answer";
    }
    return NULL;
}

static void test_threads_share_a_connection(void **state)
{
    enum { THREADS = 4 };
    machine here;
    pthread_t threads[THREADS];
    (void)state;
    start(&here, "mem:", NULL, NONCE);
    shoal_store *store = open_worker(&here, "");
    succeed(shoal_store_put(here.store, "odd", "odd", 3, NULL, NULL, SOON));
    succeed(shoal_store_put(here.store, "even", "even", 4, NULL, NULL, SOON));
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, get_again_and_again, store), 0);
    for (int i = 0; i < THREADS; i++) {
        void *wrong = NULL;
        pthread_join(threads[i], &wrong);
        if (wrong)
            fail_msg("%s", (const char *)wrong);
    }
    shoal_store_close(&store);
    stop(&here);
}

/* ---- one job alone ----------------------------------------------------------------------------------------------- */

static void expect_keys(shoal_store *store, const char *prefix, const char *keys)
{
    shoal_listing page = {0};
    char found[256] = "";
    succeed(shoal_store_list(store, prefix, NULL, &page, SOON));
    for (size_t i = 0; i < page.count; i++) {
        strcat(found, i ? " " : "");
        strcat(found, page.entries[i].key);
    }
    assert_false(page.more);
    assert_string_equal(found, keys);
    shoal_listing_release(&page);
}

static void test_a_far_end_sees_its_job_alone(void **state)
{
    static const char *const others[] = {"jobs/b/x", "jobs/ab/x", "jobs/x", "x", "open/b", ".shoal-x", "jobsa/a/x"};
    machine here;
    shoal_blob blob = {0};
    shoal_message message = {0};
    shoal_listing page = {0};
    uint32_t seen = 0;
    int64_t number;
    (void)state;
    start_for(&here, "mem:", "mem:rows", NONCE, "a", "row");
    shoal_store *store = open_worker(&here, ""), *rows = open_worker(&here, "?store=data");
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        const char *other = others[i];
        if (strncmp(other, ".shoal", 6) != 0)
            succeed(shoal_store_put(here.store, other, "theirs", 6, NULL, NULL, SOON));
        assert_true(shoal_store_get(store, other, &blob, SOON) < 0);
        assert_true(shoal_store_put(store, other, "mine", 4, NULL, NULL, SOON) < 0);
        assert_true(shoal_store_remove(store, other, SOON) < 0);
        if (other[0] == '.')
            continue; /* those are no keys at all */
        expect(SHOAL_DENIED, shoal_store_get(store, other, &blob, SOON));
        assert_non_null(strstr(shoal_error(), other));
        assert_non_null(strstr(shoal_error(), "does not belong to the job"));
        expect(SHOAL_DENIED, shoal_store_list(store, other, NULL, &page, SOON));
        expect(SHOAL_DENIED, shoal_store_wait(store, other, &seen, SOON));
        expect(SHOAL_DENIED, shoal_store_await(store, other, SOON, &blob, SOON));
        expect(SHOAL_DENIED, shoal_store_push(store, other, "x", 1, SOON));
        expect(SHOAL_DENIED, shoal_store_take(store, other, 5, &message, SOON));
        expect(SHOAL_DENIED, shoal_store_count(store, other, &number, SOON));
        succeed(shoal_store_discard(store, other, SOON));
    }
    expect(SHOAL_DENIED, shoal_store_list(store, "", NULL, &page, SOON));
    expect(SHOAL_DENIED, shoal_store_list(store, "jobs/", NULL, &page, SOON));
    succeed(shoal_store_put(store, "jobs/a/x", "mine", 4, NULL, NULL, SOON));
    succeed(shoal_store_put(store, "open/a", "mine", 4, NULL, NULL, SOON));
    succeed(shoal_store_push(store, "jobs/a/queue", "x", 1, SOON));
    expect_keys(store, "jobs/a", "jobs/a/x");                   /* and not jobs/ab/x */
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) /* behind all of that, also the discards */
        if (others[i][0] != '.')
            expect_text(here.store, others[i], "theirs");

    succeed(shoal_store_put(here.data, "row", "1 2", 3, NULL, NULL, SOON));
    succeed(shoal_store_put(here.data, "rows", "3 4", 3, NULL, NULL, SOON));
    expect_text(rows, "row", "1 2");
    expect(SHOAL_DENIED, shoal_store_get(rows, "rows", &blob, SOON));
    expect(SHOAL_DENIED, shoal_store_list(rows, "", NULL, &page, SOON));
    expect_keys(rows, "row", "row");
    shoal_store_close(&store);
    shoal_store_close(&rows);
    stop(&here);
}

/* ---- what is awaited --------------------------------------------------------------------------------------------- */

/* Waits until so many requests are at the server, unanswered. */
static void wait_for_tasks(const machine *here, int count)
{
    int64_t deadline = SOON;
    for (int now = -1; now != count; usleep(1000)) {
        if (base_now() >= deadline)
            fail_msg("there are %d requests at the server, and not %d", now, count);
        pthread_mutex_lock(&here->server->lock);
        now = here->server->task_count;
        pthread_mutex_unlock(&here->server->lock);
    }
}

/* A worker that awaits a key in a thread of its own. */
typedef struct awaiter {
    shoal_store *store;
    const char *key;
    pthread_t thread;
    int status;
    shoal_blob blob;
} awaiter;

static void *await_it(void *context)
{
    awaiter *self = context;
    self->status = shoal_store_await(self->store, self->key, SOON, &self->blob, SOON);
    return NULL;
}

static void test_what_is_awaited_comes_when_it_is_put(void **state)
{
    machine here;
    static char large[300000];
    awaiter awaiters[3];
    shoal_blob blob = {0};
    (void)state;
    memset(large, 'x', sizeof large);
    start(&here, "mem:", NULL, NONCE);
    for (int i = 0; i < 3; i++) {
        awaiters[i] = (awaiter){.store = open_worker(&here, ""), .key = i < 2 ? "large" : "small"};
        assert_int_equal(pthread_create(&awaiters[i].thread, NULL, await_it, &awaiters[i]), 0);
    }
    wait_for_tasks(&here, 3);
    succeed(shoal_store_put(here.store, "other", "x", 1, NULL, NULL, SOON)); /* wakes nobody */
    succeed(shoal_store_put(here.store, "small", "text", 4, NULL, NULL, SOON));
    succeed(shoal_store_put(here.store, "large", large, sizeof large, NULL, NULL, SOON));
    for (int i = 0; i < 3; i++) {
        pthread_join(awaiters[i].thread, NULL);
        assert_int_equal(awaiters[i].status, SHOAL_OK);
        assert_int_equal(awaiters[i].blob.size, i < 2 ? sizeof large : 4);
        assert_memory_equal(awaiters[i].blob.data, i < 2 ? large : "text", awaiters[i].blob.size);
        shoal_blob_release(&awaiters[i].blob);
    }
    assert_true(pipe_hub_figures(here.hub).received < (int64_t)sizeof large + 100000); /* once, for two */

    /* What was expected is there without another question; what does not come is absent, and stays expected. */
    shoal_store *store = awaiters[0].store;
    shoal_store_expect(store, "later");
    expect(SHOAL_ABSENT, shoal_store_await(store, "later", shoal_after(0.02), &blob, SOON));
    assert_non_null(strstr(shoal_error(), "later: it did not appear in time"));
    wait_for_tasks(&here, 1);
    succeed(shoal_store_put(here.store, "later", "now", 3, NULL, NULL, SOON));
    wait_for_tasks(&here, 0);
    succeed(shoal_store_remove(here.store, "later", SOON));
    succeed(shoal_store_await(store, "later", SOON, &blob, SOON)); /* it was on its way already */
    assert_int_equal(blob.size, 3);
    shoal_blob_release(&blob);
    expect(SHOAL_ABSENT, shoal_store_await(store, "later", 0, &blob, SOON));
    for (int i = 0; i < 3; i++)
        shoal_store_close(&awaiters[i].store);
    stop(&here);
}

/* Another machine's server and hub over the store of the first. */
static void start_beside(machine *self, shoal_store *store)
{
    int pair[2];
    make_folder(self);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    const pipe_server_options server = {.store = store, .nonce = NONCE, .events = {heard, closed, &self->near}};
    succeed(pipe_server_new(&self->server, pair[0], pair[0], &server));
    const pipe_hub_options hub = {.socket = self->socket, .nonce = NONCE, .events = {heard, closed, &self->far}};
    succeed(pipe_hub_new(&self->hub, pair[1], pair[1], &hub));
}

/* What a worker of one machine puts reaches one of another that awaits it; and a machine that goes takes nobody along,
 * although the others' puts are looked at on its behalf until then. */
static void test_machines_wake_each_other_and_come_and_go(void **state)
{
    enum { TURNS = 40 };
    machine first;
    char key[32];
    (void)state;
    start(&first, "mem:", NULL, NONCE);
    shoal_store *store = open_worker(&first, "");
    for (int turn = 0; turn < TURNS; turn++) {
        machine second;
        start_beside(&second, first.store);
        snprintf(key, sizeof key, "key%d", turn);
        awaiter awaiter = {.store = open_worker(&second, ""), .key = key};
        assert_int_equal(pthread_create(&awaiter.thread, NULL, await_it, &awaiter), 0);
        wait_for_tasks(&second, 1);
        succeed(shoal_store_put(store, key, "text", 4, NULL, NULL, SOON));
        pthread_join(awaiter.thread, NULL);
        assert_int_equal(awaiter.status, SHOAL_OK);
        assert_int_equal(awaiter.blob.size, 4);
        shoal_blob_release(&awaiter.blob);

        awaiter.key = "never";
        shoal_store_expect(awaiter.store, "never");
        expect(SHOAL_ABSENT, shoal_store_await(awaiter.store, "never", shoal_after(0.001), &awaiter.blob, SOON));
        shoal_store_expect(store, key); /* is under way while the other goes */
        shoal_store_discard(store, key, SOON);
        shoal_store_close(&awaiter.store);
        stop(&second);
        succeed(shoal_store_put(store, "other", "x", 1, NULL, NULL, SOON));
    }
    shoal_store_close(&store);
    stop(&first);
}

/* A get that was given up does not stay at the server, unless another worker's refers to it. */
static void test_what_nobody_expects_any_more_is_given_up(void **state)
{
    machine here;
    shoal_blob blob = {0};
    static char large[100000];
    (void)state;
    start(&here, "mem:", NULL, NONCE);
    shoal_store *first = open_worker(&here, ""), *second = open_worker(&here, "");
    uint32_t seen = 0;
    for (int turn = 0; turn < 4; turn++) {
        shoal_store_expect(first, "key");
        succeed(shoal_store_wait(first, "x", &seen, SOON)); /* sends it, too */
        seen = 0;
        wait_for_tasks(&here, 1);
        shoal_store_expect(second, "key");
        succeed(shoal_store_wait(second, "x", &seen, SOON));
        seen = 0;
        wait_for_tasks(&here, 2);
        shoal_store_expect(turn % 2 ? first : second, NULL);
        if (turn % 2 == 0)
            wait_for_tasks(&here, 1); /* the one that the other referred to; otherwise both are needed */
        if (turn < 2) {
            shoal_store_expect(turn % 2 ? second : first, NULL);
            wait_for_tasks(&here, 0);
            continue;
        }
        succeed(shoal_store_put(here.store, "key", large, sizeof large, NULL, NULL, SOON));
        succeed(shoal_store_await(turn % 2 ? second : first, "key", SOON, &blob, SOON));
        assert_int_equal(blob.size, sizeof large);
        shoal_blob_release(&blob);
        wait_for_tasks(&here, 0);
        succeed(shoal_store_remove(here.store, "key", SOON));
    }
    shoal_store_expect(first, "key");
    shoal_store_expect(first, "other");
    succeed(shoal_store_wait(first, "x", &seen, SOON));
    wait_for_tasks(&here, 2);
    shoal_store_close(&first); /* who is gone expects nothing */
    wait_for_tasks(&here, 0);
    shoal_store_close(&second);
    stop(&here);
}

/* Many more than are served at once: those that are too many are left undone, and the link lives. */
static void test_discards_are_done_or_left_undone(void **state)
{
    machine here;
    char key[32];
    shoal_blob blob = {0};
    (void)state;
    start(&here, "mem:?faults=delay:1/2ms", NULL, NONCE);
    shoal_store *store = open_worker(&here, "");
    succeed(shoal_store_put(here.store, "key0", "x", 1, NULL, NULL, SOON));
    succeed(shoal_store_put(here.store, "key", "x", 1, NULL, NULL, SOON));
    for (int i = 0; i < 4000; i++) {
        snprintf(key, sizeof key, "key%d", i);
        succeed(shoal_store_discard(store, key, SOON));
    }
    expect_text(store, "key", "x");
    wait_for_tasks(&here, 0);
    expect(SHOAL_ABSENT, shoal_store_get(here.store, "key0", &blob, SOON));
    assert_int_equal(atomic_load(&here.near.closed), 0);
    succeed(shoal_store_discard(store, "key", SOON));
    shoal_store_close(&store); /* sends it */
    for (int64_t deadline = SOON; shoal_store_get(here.store, "key", &blob, SOON) != SHOAL_ABSENT;) {
        shoal_blob_release(&blob);
        assert_true(base_now() < deadline);
    }
    stop(&here);
}

/* ---- notes and the end ------------------------------------------------------------------------------------------- */

static void test_notes_pass_both_ways_and_the_end_is_told_once(void **state)
{
    machine here;
    (void)state;
    start(&here, "mem:", NULL, NONCE);
    succeed(pipe_hub_tell(here.hub, "{\"workers\": 4}"));
    wait_for(&here.near.notes, 1);
    assert_string_equal(here.near.note, "{\"workers\": 4}");
    assert_true(pipe_server_greeted(here.server));
    succeed(pipe_server_tell(here.server, "leave"));
    wait_for(&here.far.notes, 1);
    assert_string_equal(here.far.note, "leave");
    succeed(pipe_server_tell(here.server, "last")); /* is sent before the link ends */
    pipe_server_free(&here.server);
    assert_int_equal(atomic_load(&here.near.closed), 1);
    assert_string_equal(here.near.why, "");
    wait_for(&here.far.closed, 1);
    assert_string_equal(here.far.note, "last");
    assert_string_equal(here.far.why, "the other end is gone");
    expect(SHOAL_AGAIN, pipe_hub_tell(here.hub, "x"));
    stop(&here);
    assert_int_equal(atomic_load(&here.far.closed), 1);
}

static void test_a_wrong_nonce_is_refused(void **state)
{
    machine here;
    (void)state;
    start(&here, "mem:", NULL, "ffffffffffffffffffffffffffffffff");
    wait_for(&here.near.closed, 1);
    assert_non_null(strstr(here.near.why, "not the expected one"));
    assert_null(strstr(here.near.why, NONCE));
    assert_false(pipe_server_greeted(here.server));
    stop(&here);
}

/* ---- a link that breaks ------------------------------------------------------------------------------------------ */

typedef struct cut_call {
    shoal_store *store;
    int which, status;
    pthread_t thread;
    char message[512];
} cut_call;

static void *call_it(void *context)
{
    cut_call *self = context;
    shoal_blob blob = {0};
    uint32_t seen = 0;
    int64_t deadline = shoal_after(1.5);
    switch (self->which) {
    case 0: self->status = shoal_store_get(self->store, "key", &blob, deadline); break;
    case 1: self->status = shoal_store_put_framed(self->store, "key", 1, "x", 1, SHOAL_NOTHING, NULL, deadline); break;
    case 2: self->status = shoal_store_push(self->store, "queue", "x", 1, deadline); break;
    default:
        while ((self->status = shoal_store_wait(self->store, "never", &seen, deadline)) == SHOAL_OK)
            ;
        break;
    }
    snprintf(self->message, sizeof self->message, "%s", shoal_error());
    shoal_blob_release(&blob);
    return NULL;
}

/* Requests that are under way when the link breaks: nobody hangs, reads may be made again, writes are in doubt. */
static void test_a_cut_link_leaves_nobody_hanging(void **state)
{
    machine here;
    cut_call calls[4];
    (void)state;
    start(&here, "mem:?faults=delay:1/3600s", NULL, NONCE); /* nothing is ever answered */
    for (int i = 0; i < 4; i++)
        calls[i] = (cut_call){.store = open_worker(&here, ""), .which = i};
    int64_t before = pipe_server_figures(here.server).received, until = shoal_after(1);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&calls[i].thread, NULL, call_it, &calls[i]), 0);
    while (pipe_server_figures(here.server).received < before + 200 && base_now() < until)
        usleep(1000); /* until the requests are there; what follows holds also if they are not */
    pipe_hub_free(&here.hub);
    for (int i = 0; i < 4; i++) {
        pthread_join(calls[i].thread, NULL);
        bool writes = i == 1 || i == 2;
        if (calls[i].status != SHOAL_AGAIN && !(writes && calls[i].status == SHOAL_UNKNOWN))
            fail_msg("call %d gave %d: %s", i, calls[i].status, calls[i].message);
        shoal_store_close(&calls[i].store);
    }
    stop(&here);
}

/* Slow requests are made beside each other, and quick ones do not wait for them. */
static void test_slow_requests_do_not_queue(void **state)
{
    enum { CALLS = 16 };
    machine here;
    cut_call calls[CALLS];
    (void)state;
    start(&here, "mem:?faults=delay:1/300ms", NULL, NONCE);
    for (int i = 0; i < CALLS; i++)
        calls[i] = (cut_call){.store = open_worker(&here, ""), .which = 2};
    int64_t started = base_now();
    for (int i = 0; i < CALLS; i++)
        assert_int_equal(pthread_create(&calls[i].thread, NULL, call_it, &calls[i]), 0);
    succeed(pipe_hub_tell(here.hub, "note"));
    wait_for(&here.near.notes, 1);
    for (int i = 0; i < CALLS; i++) {
        pthread_join(calls[i].thread, NULL);
        assert_int_equal(calls[i].status, SHOAL_OK);
        shoal_store_close(&calls[i].store);
    }
    assert_true(base_now() - started < INT64_C(4700000000)); /* not sixteen times 300 ms */
    stop(&here);
}

/* ---- hostile far ends -------------------------------------------------------------------------------------------- */

/* A server, and a socket on which the test plays the far end. */
static int start_alone(machine *self)
{
    int pair[2];
    make_folder(self);
    succeed(shoal_store_open(&self->store, "mem:", NULL, SOON));
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    const pipe_server_options server = {.store = self->store, .nonce = NONCE, .events = {heard, closed, &self->near}};
    succeed(pipe_server_new(&self->server, pair[0], pair[0], &server));
    return pair[1];
}

static void say(int socket, const void *bytes, size_t size)
{
    assert_int_equal(send(socket, bytes, size, MSG_NOSIGNAL), size);
}

/* Sends the head of a request as it is, with a body of so many bytes to follow. */
static void say_head(int socket, const void *head, uint32_t size, uint64_t body)
{
    unsigned char bytes[PIPE_FRAME_BYTES + 12 + 256];
    uint32_t length = size | (body ? 0x80000000u : 0);
    memcpy(bytes + PIPE_FRAME_BYTES, &body, sizeof body);
    memcpy(bytes + PIPE_FRAME_BYTES + 8, &length, sizeof length);
    memcpy(bytes + PIPE_FRAME_BYTES + 12, head, size);
    const pipe_frame frame = {.stream = 9, .kind = PIPE_HEAD, .length = 12 + size, .payload = bytes + PIPE_FRAME_BYTES};
    pipe_frame_write(bytes, &frame);
    say(socket, bytes, PIPE_FRAME_BYTES + frame.length);
}

static void expect_answer(int socket, const char *text)
{
    char answer[4096];
    size_t have = 0;
    while (!memmem(answer, have, text, strlen(text))) {
        ssize_t more = recv(socket, answer + have, sizeof answer - have, 0);
        if (more <= 0)
            fail_msg("the link ended, and '%s' was not said", text);
        have += (size_t)more;
    }
}

static void test_a_hostile_far_end_is_told_off(void **state)
{
    static const char hello[] = "motd\nshoal-pipe 1 x " NONCE "\n";
    pipe_request request = {.call = PIPE_PUT, .seconds = 10, .name = "key"};
    base_writer head = {0};
    (void)state;
    pipe_request_write(&head, &request);
    for (int i = 0; i < 4; i++) {
        machine here;
        int socket = start_alone(&here);
        say(socket, hello, sizeof hello - 1);
        switch (i) {
        case 0: say_head(socket, "abc", 3, 0); break;                           /* no request at all */
        case 1: say_head(socket, head.data, (uint32_t)head.size - 1, 0); break; /* cut short */
        case 2:
            say_head(socket, head.data, (uint32_t)head.size, UINT64_C(1) << 60); /* refused, and the link goes on */
            expect_answer(socket, "more than the machine that serves it can accept");
            say_head(socket, "abc", 3, 0);
            break;
        default:
            say_head(socket, head.data, (uint32_t)head.size, 100000);
            say_head(socket, head.data, (uint32_t)head.size, 100000); /* the same stream, twice */
            break;
        }
        wait_for(&here.near.closed, 1);
        if (!strstr(here.near.why, i == 3 ? "a request twice" : "malformed request"))
            fail_msg("case %d: %s", i, here.near.why);
        char junk[64];
        pipe_server_junk(here.server, junk, sizeof junk);
        assert_string_equal(junk, "motd");
        close(socket);
        stop(&here);
    }
    base_writer_release(&head);
}

static void say_frame(int socket, uint8_t kind, const char *payload)
{
    unsigned char header[PIPE_FRAME_BYTES];
    const pipe_frame frame = {
        .kind = kind, .length = (uint32_t)strlen(payload), .payload = (const unsigned char *)payload};
    pipe_frame_write(header, &frame);
    say(socket, header, sizeof header);
    say(socket, payload, frame.length);
}

/* What the other end said last is heard, also by who finds it gone when it tries to answer. */
static void test_last_words_are_heard(void **state)
{
    static const char hello[] = "shoal-pipe 1 x " NONCE "\n";
    machine here;
    (void)state;
    int socket = start_alone(&here);
    say(socket, hello, sizeof hello - 1);
    say_frame(socket, PIPE_PING, "12345678");
    say_frame(socket, PIPE_NOTE, "hold");
    wait_for(&here.near.held, 1);
    say_frame(socket, PIPE_NOTE, "last");
    close(socket);
    atomic_store(&here.near.released, 1);
    base_wake_word(&here.near.released, 1);
    wait_for(&here.near.closed, 1);
    assert_string_equal(here.near.note, "last");
    assert_string_equal(here.near.why, "the other end is gone");
    stop(&here);
}

/* A body that is longer than what may come with its head, from who claims to be a worker: the hub passes on none of
 * it. */
static void test_a_hostile_worker_is_cut_off(void **state)
{
    static const char hello[] = "shoal-pipe 1 x -\n";
    enum { HEAD = 64, BODY = PIPE_SHORT_MOST + 1 };
    static unsigned char bytes[PIPE_FRAME_BYTES + 12 + HEAD + BODY];
    pipe_request request = {.call = PIPE_PUT, .seconds = 10, .name = "key"};
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    base_writer head = {0};
    uint64_t body = BODY;
    machine here;
    shoal_blob blob = {0};
    char heard[4096];
    (void)state;
    pipe_request_write(&head, &request);
    assert_true(head.size <= HEAD);
    uint32_t length = (uint32_t)head.size;
    memcpy(bytes + PIPE_FRAME_BYTES, &body, sizeof body);
    memcpy(bytes + PIPE_FRAME_BYTES + 8, &length, sizeof length);
    memcpy(bytes + PIPE_FRAME_BYTES + 12, head.data, length);
    const pipe_frame frame = {
        .stream = 9, .kind = PIPE_HEAD, .length = 12 + length + BODY, .payload = bytes + PIPE_FRAME_BYTES};
    pipe_frame_write(bytes, &frame);
    start(&here, "mem:", NULL, NONCE);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", here.socket);
    int worker = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(worker, (struct sockaddr *)&address, sizeof address), 0);
    say(worker, hello, sizeof hello - 1);
    say(worker, bytes, PIPE_FRAME_BYTES + frame.length);
    const struct timeval patience = {.tv_sec = 30};
    setsockopt(worker, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    ssize_t more;
    while ((more = recv(worker, heard, sizeof heard, 0)) > 0)
        ;
    assert_int_equal(more, 0); /* the hub has ended it */
    close(worker);
    shoal_store *store = open_worker(&here, "");
    expect(SHOAL_ABSENT, shoal_store_get(store, "key", &blob, SOON));
    shoal_store_close(&store);
    base_writer_release(&head);
    stop(&here);
}

/* Who asks and asks and takes no answer costs some memory, and then the link. */
static void test_who_reads_nothing_is_cut_off(void **state)
{
    static const char hello[] = "shoal-pipe 1 x " NONCE "\n";
    static char bytes[60000];
    (void)state;
    for (int large = 0; large < 2; large++) {
        machine here;
        base_writer head = {0};
        pipe_request request = {.call = PIPE_GET, .seconds = 10, .name = "key", .length = sizeof bytes};
        unsigned char frame_bytes[PIPE_FRAME_BYTES + 12 + 256] = {0};
        pipe_request_write(&head, &request);
        uint32_t length = (uint32_t)head.size;
        memcpy(frame_bytes + PIPE_FRAME_BYTES + 8, &length, sizeof length);
        memcpy(frame_bytes + PIPE_FRAME_BYTES + 12, head.data, head.size);
        int socket = start_alone(&here);
        succeed(shoal_store_put(here.store, "key", bytes, large ? sizeof bytes : 12000, NULL, NULL, SOON));
        say(socket, hello, sizeof hello - 1);
        for (uint32_t stream = 1; stream < 50000; stream++) {
            const pipe_frame frame = {
                .stream = stream, .kind = PIPE_HEAD, .length = 12 + length, .payload = frame_bytes + PIPE_FRAME_BYTES};
            pipe_frame_write(frame_bytes, &frame);
            if (send(socket, frame_bytes, PIPE_FRAME_BYTES + frame.length, MSG_NOSIGNAL) < 0)
                break;
        }
        wait_for(&here.near.closed, 1);
        if (!strstr(here.near.why, large ? "too many requests at once" : "is not reading what it is sent"))
            fail_msg("%s", here.near.why);
        close(socket);
        base_writer_release(&head);
        stop(&here);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_is_as_the_store_behind_it),
        cmocka_unit_test(test_prefixes_and_wrong_addresses),
        cmocka_unit_test(test_the_store_of_the_rows_is_only_read),
        cmocka_unit_test(test_what_several_get_is_sent_once),
        cmocka_unit_test(test_no_get_is_stale),
        cmocka_unit_test(test_threads_share_a_connection),
        cmocka_unit_test(test_a_far_end_sees_its_job_alone),
        cmocka_unit_test(test_what_is_awaited_comes_when_it_is_put),
        cmocka_unit_test(test_machines_wake_each_other_and_come_and_go),
        cmocka_unit_test(test_what_nobody_expects_any_more_is_given_up),
        cmocka_unit_test(test_discards_are_done_or_left_undone),
        cmocka_unit_test(test_notes_pass_both_ways_and_the_end_is_told_once),
        cmocka_unit_test(test_a_wrong_nonce_is_refused),
        cmocka_unit_test(test_a_cut_link_leaves_nobody_hanging),
        cmocka_unit_test(test_slow_requests_do_not_queue),
        cmocka_unit_test(test_a_hostile_far_end_is_told_off),
        cmocka_unit_test(test_last_words_are_heard),
        cmocka_unit_test(test_a_hostile_worker_is_cut_off),
        cmocka_unit_test(test_who_reads_nothing_is_cut_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
