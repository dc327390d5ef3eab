/* shoal store bench: what a store can do, as a planner needs it: latency of get, put and take, bandwidth of 1 to 16
 * connections, and how soon what was put is seen by whoever waits for it.
 *
 * Everything happens below a random prefix and in a queue of that name; both are removed at the end, also after a failure or a
 * signal.  --seconds bounds the measurements as a whole: each has a share of it. */
#include "transfer.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/pool.h"
#include "base/random.h"
#include "base/world.h"

typedef struct settings {
    cli_common common;
    cli_store_settings store;
    double seconds;
    int64_t size;
    bool create, json, quiet;
} settings;

static const shoal_option rows[] = {
    {"seconds", 's', SHOAL_OPTION_REAL, offsetof(settings, seconds), "N", .help = "how long all measurements may take",
     .fallback = "20", .least = 1, .most = 86400},
    {"size", 0, SHOAL_OPTION_BYTES, offsetof(settings, size), "BYTES",
     .help = "size of the blobs that measure bandwidth", .fallback = "8MiB", .least = 1, .most = 1 << 30},
    {"create", 0, SHOAL_OPTION_FLAG, offsetof(settings, create), NULL, .help = "make the store when it is not there"},
    {"json", 0, SHOAL_OPTION_FLAG, offsetof(settings, json), NULL,
     .help = "print one JSON object instead of the table"},
    {"quiet", 'q', SHOAL_OPTION_FLAG, offsetof(settings, quiet), NULL, .help = "no progress line"},
    {0},
};
static const shoal_option *const options = rows;

static const base_option_group groups[] = {
    {"Measuring", &options, 0},
    {"Store", &cli_store_options, offsetof(settings, store)},
    {"Help", &cli_common_options, offsetof(settings, common)},
    {0},
};

enum { SMALL = 4096, LEVELS = 5, SAMPLES_MOST = 100000 };
static const int connections[LEVELS] = {1, 2, 4, 8, 16};

/* Shares of the whole time; and, of what is left, how much the bandwidths may plan with: the last blobs of each take longer. */
static const double LATENCY_SHARE = 0.07, SEEN_SHARE = 0.1, BANDWIDTH_SHARE = 0.7;

typedef struct samples {
    double *seconds;
    int64_t count;
    double median, high; /* of all; the 99th percentile */
} samples;

typedef struct bench {
    const settings *settings;
    cli_store store, other; /* the other handle puts what the first waits for */
    char *prefix;
    void *body; /* that does not compress */
    int64_t deadline;
    atomic_bool doubt; /* a put may yet be done */
    cli_progress progress;
    samples get, put, take, seen;
    double read[LEVELS], write[LEVELS]; /* bytes a second; 0 when time ran out before */
} bench;

/* ---- samples ------------------------------------------------------------------------------------------------- */

static int compare_reals(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int add_sample(samples *self, double seconds)
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
static double quantile(const samples *self, double share)
{
    int64_t rank = (int64_t)ceil(share * (double)self->count);
    return self->seconds[(rank > 0 ? rank : 1) - 1];
}

static void summarise(samples *self)
{
    if (self->count == 0)
        return;
    qsort(self->seconds, (size_t)self->count, sizeof *self->seconds, compare_reals);
    self->median = quantile(self, 0.5);
    self->high = quantile(self, 0.99);
}

/* ---- time ---------------------------------------------------------------------------------------------------- */

static double elapsed(int64_t since)
{
    return (double)(shoal_now() - since) * 1e-9;
}

/* The end of a measurement that begins now. */
static int64_t share_ends(const bench *self, double share)
{
    int64_t end = shoal_after(share * self->settings->seconds);
    return end < self->deadline ? end : self->deadline;
}

static bool goes_on(int64_t end)
{
    return shoal_now() < end && !cli_signals_stopped();
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
    int64_t patience = shoal_after(self->store.patience);
    return patience < self->deadline ? patience : self->deadline;
}

/* ---- latency ------------------------------------------------------------------------------------------------- */

typedef struct name {
    char text[SHOAL_KEY_MOST + 1];
} name;

static name key_of(const bench *self, const char *what, int64_t number)
{
    name out;
    snprintf(out.text, sizeof out.text, "%s/%s-%lld", self->prefix, what, (long long)number);
    return out;
}

static int measure_put(bench *self)
{
    int64_t end = share_ends(self, LATENCY_SHARE);
    int status = SHOAL_OK;
    for (int64_t i = 0; status == SHOAL_OK && goes_on(end); i++) {
        int64_t began = shoal_now();
        status = shoal_store_put(self->store.store, key_of(self, "small", i % 16).text, self->body, SMALL, NULL, NULL,
                                 request_deadline(self));
        if (status == SHOAL_OK)
            status = add_sample(&self->put, elapsed(began));
    }
    return unless_late(self, status);
}

static int measure_get(bench *self)
{
    name key = key_of(self, "small", 0);
    int64_t end = share_ends(self, LATENCY_SHARE);
    shoal_blob blob = {0};
    int status = goes_on(end) ? shoal_store_put(self->store.store, key.text, self->body, SMALL, NULL, NULL,
                                                request_deadline(self))
                              : SHOAL_OK;
    while (status == SHOAL_OK && goes_on(end)) {
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
    while (status == SHOAL_OK && goes_on(end)) {
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

/* ---- bandwidth ----------------------------------------------------------------------------------------------- */

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
    name key = key_of(bench, "large", self->number);
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
    while (status == SHOAL_OK && !cli_signals_stopped() && (self->bytes == 0 || shoal_now() < self->end)) {
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

/* Bytes a second of so many connections: from the start to the end of the last blob that was whole.  `left` measurements, this
 * one included, have to share the time that is left. */
static int measure_bandwidth(bench *self, int count, bool writes, int left, double *out)
{
    stream streams[16];
    pthread_t threads[16];
    int64_t began = shoal_now(), last = began, bytes = 0;
    int64_t end = began + (int64_t)(BANDWIDTH_SHARE * (double)(self->deadline - began) / left);
    int started = 0, status = SHOAL_OK, error = 0;
    *out = 0;
    for (; goes_on(end) && started < count && !error; started += !error) {
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
        snprintf(text, sizeof text, "bandwidth of %d connection%s", connections[i], i ? "s" : "");
        cli_progress_say(&self->progress, text);
        status = measure_bandwidth(self, connections[i], true, 2 * (LEVELS - i), &self->write[i]);
        if (status == SHOAL_OK && self->write[i] > 0)
            status = measure_bandwidth(self, connections[i], false, 2 * (LEVELS - i) - 1, &self->read[i]);
    }
    return status;
}

/* ---- how soon something is seen ------------------------------------------------------------------------------ */

typedef struct watcher {
    bench *bench;
    int64_t end;
    atomic_llong waits_for, saw; /* numbers of keys; -1 at first */
    atomic_llong seen_at;
    atomic_bool over;
    _Atomic uint32_t word; /* changes with each of the above */
    int status;
    char message[256];
} watcher;

static void tell(watcher *self)
{
    atomic_fetch_add(&self->word, 1);
    base_wake_word(&self->word, INT_MAX);
}

/* Waits for one key after the other, as a worker does for a round's model. */
static void *watch(void *from_start)
{
    watcher *self = from_start;
    const bench *bench = self->bench;
    shoal_store *store = bench->store.store;
    int status = SHOAL_OK;
    for (int64_t number = 0; status == SHOAL_OK && goes_on(self->end); number++) {
        name key = key_of(bench, "seen", number);
        uint32_t seen = 0;
        self->waits_for = number;
        tell(self);
        do {
            shoal_blob blob = {0};
            status = shoal_store_wait(store, key.text, &seen, self->end);
            if (status == SHOAL_OK)
                status = shoal_store_get(store, key.text, &blob, self->end);
            shoal_blob_release(&blob);
        } while (status == SHOAL_ABSENT && goes_on(self->end));
        if (status == SHOAL_OK) {
            self->seen_at = shoal_now();
            self->saw = number;
            tell(self);
        }
    }
    self->status = status == SHOAL_ABSENT || status == SHOAL_AGAIN ? SHOAL_OK : status;
    if (self->status < 0)
        snprintf(self->message, sizeof self->message, "%s", shoal_error());
    self->over = true;
    tell(self);
    return NULL;
}

/* Waits until the watcher has come so far; false when it will not. */
static bool await(watcher *self, atomic_llong *what, int64_t number)
{
    while (*what < number && !self->over && goes_on(self->end)) {
        uint32_t now = atomic_load(&self->word);
        if (*what < number && !self->over)
            base_wait_word(&self->word, now, self->end);
    }
    return *what >= number;
}

/* From just before the put until the one who waited has read it.  A pause of random length before each put keeps a store that
 * is polled from being met at the same moment every time. */
static int put_and_await(bench *self, watcher *watcher)
{
    double pause = shoal_store_describe(self->store.store).wakes ? 0.002 : 0.2;
    int status = SHOAL_OK;
    for (int64_t number = 0; status == SHOAL_OK && await(watcher, &watcher->waits_for, number); number++) {
        uint32_t random;
        base_entropy(&random, sizeof random);
        base_sleep_until(shoal_after(pause * random * 0x1p-32));
        int64_t began = shoal_now();
        status = shoal_store_put(self->other.store, key_of(self, "seen", number).text, self->body, SMALL, NULL, NULL,
                                 request_deadline(self));
        if (status == SHOAL_OK && !await(watcher, &watcher->saw, number))
            break;
        if (status == SHOAL_OK)
            status = add_sample(&self->seen, (double)(watcher->seen_at - began) * 1e-9);
    }
    return unless_late(self, status);
}

static int measure_seen(bench *self)
{
    watcher watcher = {.bench = self, .end = share_ends(self, SEEN_SHARE), .waits_for = -1, .saw = -1};
    pthread_t thread;
    if (!goes_on(watcher.end))
        return SHOAL_OK;
    int error = pthread_create(&thread, NULL, watch, &watcher);
    if (error)
        return shoal_fail_errno(SHOAL_SYSTEM, error, "can't start a thread");
    int status = put_and_await(self, &watcher);
    pthread_join(thread, NULL);
    return status == SHOAL_OK && watcher.status < 0 ? shoal_fail(watcher.status, "%s", watcher.message) : status;
}

/* ---- before and after ---------------------------------------------------------------------------------------- */

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

static int prepare(bench *self, const char *url)
{
    shoal_store_options options = {.create = self->settings->create};
    uint64_t random;
    base_entropy(&random, sizeof random);
    int status = cli_store_open(&self->store, url, &self->settings->store, options);
    if (status == SHOAL_OK)
        status = cli_store_open(&self->other, url, &self->settings->store, options);
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
static int clean_up(bench *self)
{
    self->store.patience = fmax(self->store.patience, 60);
    if (self->doubt) /* the server has all of a body whose answer nobody waited for, and is about to keep it */
        base_sleep_until(shoal_after(2));
    char *prefix = NULL;
    const shoal_entry *entry = NULL;
    cli_keys keys = {0};
    int status = base_format(&prefix, "%s/", self->prefix);
    if (status == SHOAL_OK)
        status = cli_keys_start(&keys, &self->store, prefix);
    while (status == SHOAL_OK && (status = cli_keys_next(&keys, &entry)) == SHOAL_OK && entry)
        status = cli_store_remove(&self->store, entry->key);
    cli_keys_stop(&keys);
    base_free(&prefix);
    int dropped = shoal_store_drop(self->store.store, self->prefix, shoal_after(self->store.patience));
    status = status < 0 ? status : dropped;
    if (status < 0)
        status = shoal_fail(status, "%s: what the bench left at %s could not be removed: %s", self->store.url,
                            self->prefix, shoal_error());
    return status;
}

static int measure(bench *self)
{
    static const struct {
        const char *what;
        int (*run)(bench *self);
    } parts[] = {{"latency of put", measure_put},
                 {"latency of get", measure_get},
                 {"latency of take", measure_take},
                 {"how soon a put is seen", measure_seen},
                 {"bandwidth", measure_bandwidths}};
    int status = SHOAL_OK;
    self->deadline = shoal_after(self->settings->seconds);
    for (size_t i = 0; i < sizeof parts / sizeof *parts && status == SHOAL_OK && !cli_signals_stopped(); i++) {
        cli_progress_say(&self->progress, parts[i].what);
        status = parts[i].run(self);
    }
    if (cli_signals_stopped())
        status = shoal_fail(SHOAL_STOPPED, "stopped");
    return status;
}

/* ---- printing ------------------------------------------------------------------------------------------------ */

static void print_latency(const char *what, const samples *samples)
{
    if (samples->count > 0)
        printf("%-12s %10.3f %10.3f %10" PRId64 "\n", what, 1e3 * samples->median, 1e3 * samples->high, samples->count);
    else
        printf("%-12s %10s %10s %10d\n", what, "-", "-", 0);
}

static void print_rate(double rate)
{
    if (rate > 0)
        printf(" %10.1f", rate / 1e6);
    else
        printf(" %10s", "-");
}

static void print_table(const bench *self)
{
    printf("%-12s %10s %10s %10s\n", "latency", "median ms", "99% ms", "samples");
    print_latency("get", &self->get);
    print_latency("put", &self->put);
    print_latency("take", &self->take);
    print_latency("seen", &self->seen);
    printf("\n%-12s %10s %10s\n", "connections", "read MB/s", "write MB/s");
    for (int i = 0; i < LEVELS; i++) {
        printf("%-12d", connections[i]);
        print_rate(self->read[i]);
        print_rate(self->write[i]);
        putchar('\n');
    }
}

static json_t *json_latency(const samples *samples)
{
    json_t *object = json_object();
    bool any = samples->count > 0;
    cli_json_put(&object, "median_ms", any ? cli_json_real(1e3 * samples->median) : json_null());
    cli_json_put(&object, "p99_ms", any ? cli_json_real(1e3 * samples->high) : json_null());
    cli_json_put(&object, "samples", json_integer(samples->count));
    return object;
}

static int print_json(const bench *self)
{
    const cli_store *stores[] = {&self->store, &self->other};
    shoal_store_traits traits = shoal_store_describe(self->store.store);
    json_t *object = json_object(), *levels = json_array();
    cli_json_put(&object, "url", cli_json_text(self->store.url));
    cli_json_put(&object, "scheme", json_string(traits.scheme));
    cli_json_put(&object, "wakes", json_boolean(traits.wakes));
    cli_json_put(&object, "get", json_latency(&self->get));
    cli_json_put(&object, "put", json_latency(&self->put));
    cli_json_put(&object, "take", json_latency(&self->take));
    cli_json_put(&object, "seen", json_latency(&self->seen));
    cli_json_put(&object, "size", json_integer(self->settings->size));
    for (int i = 0; i < LEVELS; i++) {
        json_t *level = json_object();
        cli_json_put(&level, "connections", json_integer(connections[i]));
        cli_json_put(&level, "read_mb_s", self->read[i] > 0 ? cli_json_real(self->read[i] / 1e6) : json_null());
        cli_json_put(&level, "write_mb_s", self->write[i] > 0 ? cli_json_real(self->write[i] / 1e6) : json_null());
        json_array_append_new(levels, level);
    }
    cli_json_put(&object, "bandwidth", levels);
    cli_json_put_counts(&object, stores, 2);
    return cli_print_json(object);
}

static int run_bench(void *from_main, const char *const *word, int words)
{
    bench self = {.settings = from_main};
    (void)words;
    cli_progress_start(&self.progress, self.settings->quiet);
    int status = prepare(&self, word[0]);
    if (status == SHOAL_OK) {
        cli_signals_allow_stop(true);
        status = measure(&self);
        cli_progress_say(&self.progress, "removing what was put");
        char message[512];
        snprintf(message, sizeof message, "%s", shoal_error()); /* cleaning up leaves others */
        int cleaned = clean_up(&self);
        if (status < 0 && cleaned < 0)
            status = shoal_fail(status, "%s; and %s", message, shoal_error());
        else
            status = status < 0 ? shoal_fail(status, "%s", message) : cleaned;
        cli_signals_allow_stop(false);
    }
    cli_progress_clear(&self.progress);
    samples *all[] = {&self.get, &self.put, &self.take, &self.seen};
    for (int i = 0; i < 4; i++)
        summarise(all[i]);
    if (status == SHOAL_OK && self.settings->json)
        status = print_json(&self);
    else if (status == SHOAL_OK)
        print_table(&self);
    for (int i = 0; i < 4; i++)
        base_free(&all[i]->seconds);
    base_free(&self.body);
    base_free(&self.prefix);
    cli_store_close(&self.other);
    cli_store_close(&self.store);
    return status;
}

static const char *const description[] = {
    "Measures how long a store takes to get and to put 4 KB and to take a message, how many bytes a second 1, 2, 4, 8 "
    "and 16 "
    "connections read and write, and how soon what is put through one handle is seen by a thread that waits for it "
    "through "
    "another. What it writes lies below a random name, and is removed at the end.",
    "The time until something is seen counts from before it was put until the one who waited for it has read it. A "
    "figure that "
    "is missing had no time: --seconds bounds the whole.",
    NULL,
};
static const cli_example examples[] = {
    {"shoal store bench ./st", "a table for a store of this machine"},
    {"shoal store bench az://acct/box --seconds 60 --json", "for a planner"},
    {NULL, NULL},
};
const cli_verb cli_store_bench = {
    .name = "store bench",
    .summary = "measure what a store can do",
    .word = {"URL"},
    .words_least = 1,
    .synopsis = "[options]",
    .description = description,
    .examples = examples,
    .options = groups,
    .settings_size = sizeof(settings),
    .run = run_bench,
};
