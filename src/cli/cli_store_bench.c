/* shoal store bench: the speed of a store, for planners: latency of get, put and take, bandwidth of 1 to 16
 * connections, and how soon a put is seen by a process that waits for it.
 * plan/measure/measure_store.h measures, this prints. */
#include "store_verb.h"

#include <inttypes.h>

#include "plan/measure/measure_store.h"
#include "store/store_internal.h"

typedef struct settings {
    cli_common common;
    cli_store_settings store;
    plan_store_settings measure;
    bool json, quiet;
} settings;

static const shoal_option rows[] = {
    {"seconds", 's', SHOAL_OPTION_REAL, offsetof(settings, measure.seconds), "N",
     .help = "time limit for all measurements", .fallback = "20", .least = 1, .most = 86400},
    {"size", 0, SHOAL_OPTION_BYTES, offsetof(settings, measure.size), "BYTES",
     .help = "size of the blobs that measure bandwidth", .fallback = "8MiB", .least = 1, .most = 1 << 30},
    {"create", 0, SHOAL_OPTION_FLAG, offsetof(settings, measure.create), NULL,
     .help = "create the store if it does not exist"},
    {"json", 0, SHOAL_OPTION_FLAG, offsetof(settings, json), NULL,
     .help = "print one JSON object instead of the table"},
    {"quiet", 'q', SHOAL_OPTION_FLAG, offsetof(settings, quiet), NULL, .help = "print no progress line"},
    {0},
};
static const shoal_option *const options = rows;

static const base_option_group groups[] = {
    {"Measuring", &options, 0},
    {"Store", &cli_store_options, offsetof(settings, store)},
    {"Help", &cli_common_options, offsetof(settings, common)},
    {0},
};

/* ---- printing ---------------------------------------------------------------------------------------------------- */

static void print_latency(const char *what, const plan_samples *samples)
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

static void print_bench_table(const plan_store_measured *self)
{
    printf("%-12s %10s %10s %10s\n", "latency", "median ms", "99% ms", "samples");
    print_latency("get", &self->get);
    print_latency("put", &self->put);
    print_latency("take", &self->take);
    print_latency("seen", &self->seen);
    printf("\n%-12s %10s %10s\n", "connections", "read MB/s", "write MB/s");
    for (int i = 0; i < PLAN_MEASURED_LEVELS; i++) {
        printf("%-12d", plan_measured_connections[i]);
        print_rate(self->read[i]);
        print_rate(self->write[i]);
        putchar('\n');
    }
}

static json_t *json_latency(const plan_samples *samples)
{
    json_t *object = json_object();
    bool any = samples->count > 0;
    base_json_put(&object, "median_ms", any ? base_json_real(1e3 * samples->median) : json_null());
    base_json_put(&object, "p99_ms", any ? base_json_real(1e3 * samples->high) : json_null());
    base_json_put(&object, "samples", json_integer(samples->count));
    return object;
}

static int print_bench_json(const plan_store_measured *self)
{
    shoal_store_counts requests = {0};
    shoal_store_traits traits = shoal_store_describe(self->store.store);
    json_t *object = json_object(), *levels = json_array();
    base_json_put(&object, "url", base_json_text(self->store.url));
    base_json_put(&object, "scheme", json_string(traits.scheme));
    base_json_put(&object, "wakes", json_boolean(traits.wakes));
    base_json_put(&object, "get", json_latency(&self->get));
    base_json_put(&object, "put", json_latency(&self->put));
    base_json_put(&object, "take", json_latency(&self->take));
    base_json_put(&object, "seen", json_latency(&self->seen));
    base_json_put(&object, "size", json_integer(self->settings->size));
    for (int i = 0; i < PLAN_MEASURED_LEVELS; i++) {
        json_t *level = json_object();
        base_json_put(&level, "connections", json_integer(plan_measured_connections[i]));
        base_json_put(&level, "read_mb_s", self->read[i] > 0 ? base_json_real(self->read[i] / 1e6) : json_null());
        base_json_put(&level, "write_mb_s", self->write[i] > 0 ? base_json_real(self->write[i] / 1e6) : json_null());
        json_array_append_new(levels, level);
    }
    base_json_put(&object, "bandwidth", levels);
    store_counts_add(&requests, self->store.store);
    store_counts_add(&requests, self->other.store);
    cli_json_put_counts(&object, &requests);
    return cli_print_json(object);
}

static int run_bench(void *from_main, const char *const *word, int words)
{
    settings *settings = from_main;
    plan_store_measured measured = {0};
    cli_watch watch;
    (void)words;
    cli_watch_start(&watch, settings->quiet);
    settings->measure.patience = settings->store.patience;
    const shoal_watcher watcher = cli_watcher(&watch);
    int status = plan_measure_store(&measured, word[0], &settings->measure, &watcher);
    cli_progress_clear(&watch.progress);
    if (status == SHOAL_OK && settings->json)
        status = print_bench_json(&measured);
    else if (status == SHOAL_OK)
        print_bench_table(&measured);
    plan_store_measured_release(&measured);
    return status;
}

static const char *const description[] = {
    "Measures how long a store takes to get and put 4 KB and to take a message, how many bytes per second 1, 2, 4, 8 "
    "and 16 connections read and write, and how soon a thread that waits for a key sees it after another has put it. "
    "Everything it writes goes below a random name and is removed at the end.",
    "The time until a key is seen runs from just before the put until the waiting thread has read it. If a figure is "
    "missing, --seconds left no time for it.",
    NULL,
};
static const learn_example examples[] = {
    {"shoal store bench ./st", "a table for a store of this machine"},
    {"shoal store bench az://acct/box --seconds 60 --json", "for another program"},
    {NULL, NULL},
};
const cli_verb cli_store_bench = {
    .name = "store bench",
    .summary = "measure the speed of a store",
    .word = {"URL"},
    .words_least = 1,
    .synopsis = "[options]",
    .description = description,
    .examples = examples,
    .options = groups,
    .settings_size = sizeof(settings),
    .run = run_bench,
};
