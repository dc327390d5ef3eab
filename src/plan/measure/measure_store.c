/* Measuring a store.  See measure_store.h. */
#include "measure_store.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/pool.h"
#include "base/random.h"
#include "base/sort.h"
#include "base/world.h"
#include "run/process.h"

typedef plan_store_measured bench;

enum { SMALL = 4096, LEVELS = PLAN_MEASURED_LEVELS, SAMPLES_MOST = 100000 };
const int plan_measured_connections[LEVELS] = {1, 2, 4, 8, 16};

/* Shares of the whole time; and, of what is left, how much the bandwidths may plan with: the last blobs of each take
 * longer. */
static const double LATENCY_SHARE = 0.07, SEEN_SHARE = 0.1, BANDWIDTH_SHARE = 0.7;

/* ---- samples ----------------------------------------------------------------------------------------------------- */

static int add_sample(plan_samples *self, double seconds)
{
    if (self->count == SAMPLES_MOST)
        return SHOAL_OK;
    if (!self->seconds) {
        int status = base_alloc(&self->seconds, SAMPLES_MOST, sizeof *self->seconds, "samples");
        if (status < 0)
            return status;
    }
    self->seconds[self->count++] = seconds;
    return SHOAL_OK;
}

/* The nearest rank: the least value that such a share of all does not exceed. */
static double quantile(const plan_samples *self, double share)
{
    int64_t rank = (int64_t)ceil(share * (double)self->count);
    return self->seconds[(rank > 0 ? rank : 1) - 1];
}

static void summarise_samples(plan_samples *self)
{
    if (self->count == 0)
        return;
    base_sort_reals(self->seconds, (size_t)self->count);
    self->median = quantile(self, 0.5);
    self->high = quantile(self, 0.99);
    self->mean = 0;
    for (int64_t i = 0; i < self->count; i++)
        self->mean += self->seconds[i] / (double)self->count;
}

/* ---- time -------------------------------------------------------------------------------------------------------- */

static double elapsed(int64_t since)
{
    return (double)(shoal_now() - since) * 1e-9;
}

/* The end of a measurement that begins now. */
static int64_t share_ends(const bench *self, double share)
{
    return base_time_first(shoal_after(share * self->settings->seconds), self->deadline);
}

static bool is_stopped(const bench *self)
{
    return self->watch.stop && __atomic_load_n(self->watch.stop, __ATOMIC_RELAXED);
}

static bool goes_on(const bench *self, int64_t end)
{
    return shoal_now() < end && !is_stopped(self);
}

/* A request that did not end in time is no failure: the time is over. */
static int unless_late(bench *self, int status)
{
    bool late = (status == SHOAL_AGAIN || status == SHOAL_UNKNOWN) && shoal_now() >= self->deadline - 10000000;
    self->doubt |= status == SHOAL_UNKNOWN;
    return late ? SHOAL_OK : status;
}

static int64_t request_deadline(const bench *self)
{
    return base_time_first(shoal_after(self->store.patience), self->deadline);
}

static void say_measuring(const bench *self, const char *text)
{
    if (self->watch.doing)
        self->watch.doing(self->watch.context, text);
}

static void allow_stop_measuring(const bench *self, bool may)
{
    if (self->watch.may_stop)
        self->watch.may_stop(self->watch.context, may);
}

/* ---- latency ----------------------------------------------------------------------------------------------------- */

typedef struct name {
    char text[SHOAL_KEY_MOST + 1];
} name;

static name bench_key(const bench *self, const char *what, int64_t number)
{
    name out;
    snprintf(out.text, sizeof out.text, "%s/%s-%lld", self->prefix, what, (long long)number);
    return out;
}

static int measure_put(bench *self)
{
    int64_t end = share_ends(self, LATENCY_SHARE);
    int status = SHOAL_OK;
    for (int64_t i = 0; status == SHOAL_OK && goes_on(self, end); i++) {
        int64_t began = shoal_now();
        status = shoal_store_put(self->store.store, bench_key(self, "small", i % 16).text, self->body, SMALL, NULL,
                                 NULL, request_deadline(self));
        if (status == SHOAL_OK)
            status = add_sample(&self->put, elapsed(began));
    }
    return unless_late(self, status);
}

static int measure_get(bench *self)
{
    name key = bench_key(self, "small", 0);
    int64_t end = share_ends(self, LATENCY_SHARE);
    shoal_blob blob = {0};
    int status = goes_on(self, end) ? shoal_store_put(self->store.store, key.text, self->body, SMALL, NULL, NULL,
                                                      request_deadline(self))
                                    : SHOAL_OK;
    while (status == SHOAL_OK && goes_on(self, end)) {
        int64_t began = shoal_now();
        status = shoal_store_get(self->store.store, key.text, &blob, request_deadline(self));
        if (status == SHOAL_OK)
            status = add_sample(&self->get, elapsed(began));
        shoal_blob_release(&blob);
    }
    return unless_late(self, status);
}

/* Only taking is timed; pushing and finishing come before and after. */
static int measure_take(bench *self)
{
    shoal_store *store = self->store.store;
    int64_t end = share_ends(self, LATENCY_SHARE);
    int status = SHOAL_OK;
    while (status == SHOAL_OK && goes_on(self, end)) {
        shoal_message message = {0};
        status = shoal_store_push(store, self->prefix, "work", 4, request_deadline(self));
        int64_t began = shoal_now();
        if (status == SHOAL_OK)
            status = shoal_store_take(store, self->prefix, 60, &message, request_deadline(self));
        double seconds = elapsed(began);
        if (status == SHOAL_ABSENT) { /* a server may show a message a moment later */
            status = SHOAL_OK;
            continue;
        }
        if (status == SHOAL_OK)
            status = add_sample(&self->take, seconds);
        if (status == SHOAL_OK)
            status = shoal_store_finish(store, self->prefix, &message, request_deadline(self));
        shoal_message_release(&message);
    }
    return unless_late(self, status);
}

/* ---- bandwidth --------------------------------------------------------------------------------------------------- */

typedef struct stream {
    bench *bench;
    bool writes;
    int64_t end, began, bytes;
    int64_t last; /* when the last blob was whole */
    int number, status;
    char message[256];
} stream;

static int move_one(const stream *self, void *buffer)
{
    const bench *bench = self->bench;
    shoal_store *store = bench->store.store;
    name key = bench_key(bench, "large", self->number);
    int64_t size = bench->settings->size;
    shoal_blob blob = {0};
    if (self->writes)
        return shoal_store_put(store, key.text, bench->body, (size_t)size, NULL, NULL, request_deadline(bench));
    int status = shoal_store_get_range(store, key.text, 0, size, NULL, buffer, &blob, request_deadline(bench));
    if (status == SHOAL_OK && (int64_t)blob.size != size)
        status = shoal_fail(SHOAL_BROKEN, "%s: %zu bytes came, not %lld", key.text, blob.size, (long long)size);
    shoal_blob_release(&blob);
    return status;
}

/* At least one blob, so that a slow store has a figure too. */
static void *move_many(void *from_start)
{
    stream *self = from_start;
    void *buffer = NULL;
    int status = self->writes ? SHOAL_OK : base_alloc_unset(&buffer, (size_t)self->bench->settings->size, 1, "a blob");
    while (status == SHOAL_OK && !is_stopped(self->bench) && (self->bytes == 0 || shoal_now() < self->end)) {
        status = move_one(self, buffer);
        if (status < 0)
            break;
        self->bytes += self->bench->settings->size;
        self->last = shoal_now();
    }
    self->status = unless_late(self->bench, status);
    if (self->status < 0)
        snprintf(self->message, sizeof self->message, "%s", shoal_error());
    base_free(&buffer);
    return NULL;
}

/* Bytes a second of that many connections: from the start to the end of the last blob that was whole.  `left`
 * measurements, this one included, have to share the time that is left. */
static int measure_bandwidth(bench *self, int count, bool writes, int left, double *out)
{
    stream streams[16];
    pthread_t threads[16];
    int64_t began = shoal_now(), last = began, bytes = 0;
    int64_t end = began + (int64_t)(BANDWIDTH_SHARE * (double)(self->deadline - began) / left);
    int started = 0, status = SHOAL_OK, error = 0;
    *out = 0;
    for (; goes_on(self, end) && started < count && !error; started += !error) {
        streams[started] = (stream){.bench = self, .writes = writes, .end = end, .number = started};
        error = pthread_create(&threads[started], NULL, move_many, &streams[started]);
    }
    if (error)
        status = shoal_fail_errno(SHOAL_SYSTEM, error, "can't start a thread");
    for (int i = 0; i < started; i++) {
        pthread_join(threads[i], NULL);
        bytes += streams[i].bytes;
        last = streams[i].last > last ? streams[i].last : last;
        if (streams[i].status < 0 && status == SHOAL_OK)
            status = shoal_fail(streams[i].status, "%s", streams[i].message);
    }
    if (last > began && started == count)
        *out = (double)bytes / ((double)(last - began) * 1e-9);
    return status;
}

/* Reading needs what writing left; the first level writes for one connection, later ones for more. */
static int measure_bandwidths(bench *self)
{
    int status = SHOAL_OK;
    for (int i = 0; i < LEVELS && status == SHOAL_OK; i++) {
        char text[64];
        snprintf(text, sizeof text, "bandwidth of %d connection%s", plan_measured_connections[i], i ? "s" : "");
        say_measuring(self, text);
        status = measure_bandwidth(self, plan_measured_connections[i], true, 2 * (LEVELS - i), &self->write[i]);
        if (status == SHOAL_OK && self->write[i] > 0)
            status = measure_bandwidth(self, plan_measured_connections[i], false, 2 * (LEVELS - i) - 1, &self->read[i]);
    }
    return status;
}

/* ---- how soon something is seen ---------------------------------------------------------------------------------- */

typedef struct onlooker {
    bench *bench;
    int64_t end;
    atomic_llong waits_for, saw; /* numbers of keys; -1 at first */
    atomic_llong seen_at;
    atomic_bool over;
    _Atomic uint32_t word; /* changes with each of the above */
    int status;
    char message[256];
} onlooker;

static void wake_waiting(onlooker *self)
{
    atomic_fetch_add(&self->word, 1);
    base_wake_word(&self->word, INT_MAX);
}

/* Waits for one key after the other, as a worker does for a round's model. */
static void *look_for_keys(void *from_start)
{
    onlooker *self = from_start;
    const bench *bench = self->bench;
    shoal_store *store = bench->store.store;
    int status = SHOAL_OK;
    for (int64_t number = 0; status == SHOAL_OK && goes_on(self->bench, self->end); number++) {
        name key = bench_key(bench, "seen", number);
        uint32_t seen = 0;
        self->waits_for = number;
        wake_waiting(self);
        do {
            shoal_blob blob = {0};
            status = shoal_store_wait(store, key.text, &seen, self->end);
            if (status == SHOAL_OK)
                status = shoal_store_get(store, key.text, &blob, self->end);
            shoal_blob_release(&blob);
        } while (status == SHOAL_ABSENT && goes_on(self->bench, self->end));
        if (status == SHOAL_OK) {
            self->seen_at = shoal_now();
            self->saw = number;
            wake_waiting(self);
        }
    }
    self->status = status == SHOAL_ABSENT || status == SHOAL_AGAIN ? SHOAL_OK : status;
    if (self->status < 0)
        snprintf(self->message, sizeof self->message, "%s", shoal_error());
    self->over = true;
    wake_waiting(self);
    return NULL;
}

/* Waits until the onlooker has come so far; false when it will not. */
static bool await_onlooker(onlooker *self, atomic_llong *what, int64_t number)
{
    while (*what < number && !self->over && goes_on(self->bench, self->end)) {
        uint32_t now = atomic_load(&self->word);
        if (*what < number && !self->over)
            base_wait_word(&self->word, now, self->end);
    }
    return *what >= number;
}

/* From just before the put until the one who waited has read it.  A pause of random length before each put keeps a
 * store that is polled from being met at the same moment every time. */
static int put_and_await(bench *self, onlooker *onlooker)
{
    double pause = shoal_store_describe(self->store.store).wakes ? 0.002 : 0.2;
    int status = SHOAL_OK;
    for (int64_t number = 0; status == SHOAL_OK && await_onlooker(onlooker, &onlooker->waits_for, number); number++) {
        uint32_t random;
        base_entropy(&random, sizeof random);
        base_sleep_until(shoal_after(pause * random * 0x1p-32));
        int64_t began = shoal_now();
        status = shoal_store_put(self->other.store, bench_key(self, "seen", number).text, self->body, SMALL, NULL, NULL,
                                 request_deadline(self));
        if (status == SHOAL_OK && !await_onlooker(onlooker, &onlooker->saw, number))
            break;
        if (status == SHOAL_OK)
            status = add_sample(&self->seen, (double)(onlooker->seen_at - began) * 1e-9);
    }
    return unless_late(self, status);
}

static int measure_seen(bench *self)
{
    onlooker onlooker = {.bench = self, .end = share_ends(self, SEEN_SHARE), .waits_for = -1, .saw = -1};
    pthread_t thread;
    if (!goes_on(self, onlooker.end))
        return SHOAL_OK;
    int error = pthread_create(&thread, NULL, look_for_keys, &onlooker);
    if (error)
        return shoal_fail_errno(SHOAL_SYSTEM, error, "can't start a thread");
    int status = put_and_await(self, &onlooker);
    pthread_join(thread, NULL);
    return status == SHOAL_OK && onlooker.status < 0 ? shoal_fail(onlooker.status, "%s", onlooker.message) : status;
}

/* ---- before and after -------------------------------------------------------------------------------------------- */

/* Bytes that neither a disk nor a network makes smaller. */
static int make_body(bench *self)
{
    size_t size = self->settings->size > SMALL ? (size_t)self->settings->size : SMALL;
    size_t blocks = (size + 15) / 16;
    uint32_t(*block)[4] = NULL;
    int status = base_alloc_unset(&block, blocks, 16, "a blob");
    for (size_t i = 0; i < blocks && status == SHOAL_OK; i++)
        base_random(block[i], 1, BASE_FOR_DATA, i, 0);
    self->body = block;
    return status;
}

static int open_both(bench *self, const char *url)
{
    const shoal_store_options options = {.create = self->settings->create};
    uint64_t random;
    base_entropy(&random, sizeof random);
    int status = run_protect_secrets(url);
    if (status == SHOAL_OK)
        status = store_place_open(&self->store, url, self->settings->patience, options);
    if (status == SHOAL_OK)
        status = store_place_open(&self->other, url, self->settings->patience, options);
    if (status == SHOAL_OK)
        status = base_format(&self->prefix, "%s%sshoal-bench-%016" PRIx64, self->store.rest,
                             *self->store.rest ? "/" : "", random);
    if (status == SHOAL_OK && strlen(self->prefix) > SHOAL_KEY_MOST - 32)
        status = shoal_fail(SHOAL_USAGE, "%s: the name is too long for a bench below it", url);
    if (status == SHOAL_OK)
        status = make_body(self);
    return status;
}

/* Removes all keys below the prefix, and the queue; more patiently than it was measured, if need be. */
static int remove_all_put(bench *self)
{
    self->store.patience = fmax(self->store.patience, 60);
    if (self->doubt) /* the server has all of a body whose answer nobody waited for, and is about to keep it */
        base_sleep_until(shoal_after(2));
    char *prefix = NULL;
    const shoal_entry *entry = NULL;
    store_keys keys = {0};
    int status = base_format(&prefix, "%s/", self->prefix);
    if (status == SHOAL_OK)
        status = store_keys_start(&keys, &self->store, prefix);
    while (status == SHOAL_OK && (status = store_keys_next(&keys, &entry)) == SHOAL_OK && entry)
        status = store_place_remove(&self->store, entry->key);
    store_keys_stop(&keys);
    base_free(&prefix);
    int dropped = shoal_store_drop(self->store.store, self->prefix, shoal_after(self->store.patience));
    status = status < 0 ? status : dropped;
    if (status < 0)
        status = shoal_fail(status, "%s: could not remove what the bench left at %s: %s", self->store.url, self->prefix,
                            shoal_error());
    return status;
}

static int measure_parts(bench *self)
{
    static const struct {
        const char *what;
        int (*run)(bench *self);
    } parts[] = {{"latency of put", measure_put},
                 {"latency of get", measure_get},
                 {"latency of take", measure_take},
                 {"how soon a put is visible", measure_seen},
                 {"bandwidth", measure_bandwidths}};
    int status = SHOAL_OK;
    self->deadline = shoal_after(self->settings->seconds);
    for (size_t i = 0; i < sizeof parts / sizeof *parts && status == SHOAL_OK && !is_stopped(self); i++) {
        say_measuring(self, parts[i].what);
        status = parts[i].run(self);
    }
    if (is_stopped(self))
        status = shoal_fail(SHOAL_STOPPED, "stopped");
    return status;
}

static int measure_and_clean_up(bench *self)
{
    char message[512];
    allow_stop_measuring(self, true);
    int status = measure_parts(self);
    say_measuring(self, "removing what was put");
    snprintf(message, sizeof message, "%s", shoal_error()); /* cleaning up leaves others */
    int cleaned = remove_all_put(self);
    if (status < 0 && cleaned < 0)
        status = shoal_fail(status, "%s; and %s", message, shoal_error());
    else
        status = status < 0 ? shoal_fail(status, "%s", message) : cleaned;
    allow_stop_measuring(self, false);
    return status;
}

int plan_measure_store(plan_store_measured *out, const char *url, const plan_store_settings *settings,
                       const shoal_watcher *watcher)
{
    plan_samples *all[] = {&out->get, &out->put, &out->take, &out->seen};
    out->settings = settings;
    out->watch = *watcher;
    int status = open_both(out, url);
    if (status == SHOAL_OK)
        status = measure_and_clean_up(out);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        summarise_samples(all[i]);
    return status;
}

void plan_store_measured_release(plan_store_measured *measured)
{
    base_free(&measured->get.seconds);
    base_free(&measured->put.seconds);
    base_free(&measured->take.seconds);
    base_free(&measured->seen.seconds);
    base_free(&measured->body);
    base_free(&measured->prefix);
    store_place_close(&measured->other);
    store_place_close(&measured->store);
}
