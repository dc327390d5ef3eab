/* shoal store rm: removes keys.  Everything below a name takes -r, a whole store --all as well: neither can be
 * undone. */
#include "transfer.h"

#include <stdatomic.h>
#include <string.h>

#include "base/memory.h"
#include "base/pool.h"

typedef struct settings {
    cli_common common;
    cli_store_settings store;
    cli_print_settings print;
    bool recursive, all;
    int64_t jobs;
} settings;

static const shoal_option rows[] = {
    {"recursive", 'r', SHOAL_OPTION_FLAG, offsetof(settings, recursive), NULL, .help = "everything below a name, too"},
    {"all", 0, SHOAL_OPTION_FLAG, offsetof(settings, all), NULL,
     .help = "with -r: a URL may name a whole store, which is emptied"},
    {"jobs", 'j', SHOAL_OPTION_COUNT, offsetof(settings, jobs), "N", .help = "how many to remove at once",
     .fallback = "8", .least = 1, .most = 256},
    {0},
};
static const shoal_option *const options = rows;

static const base_option_group groups[] = {
    {"Removing", &options, 0},
    {"Store", &cli_store_options, offsetof(settings, store)},
    {"Printing", &cli_print_options, offsetof(settings, print)},
    {"Help", &cli_common_options, offsetof(settings, common)},
    {0},
};

typedef struct removal {
    const settings *settings;
    base_pool *pool;
    cli_progress progress;
    const store_place *from;
    shoal_entry *batch;       /* removed together */
    atomic_llong keys, bytes; /* so far */
} removal;

enum { BATCH = 1000 };

static int remove_one(void *context, int64_t item, int thread)
{
    removal *self = context;
    const shoal_entry *entry = &self->batch[item];
    (void)thread;
    int status = store_place_remove(self->from, entry->key);
    if (status == SHOAL_OK) {
        self->keys++;
        self->bytes += entry->size;
    }
    return status;
}

static int remove_batch(removal *self, int64_t count)
{
    char line[96], bytes[32];
    int status = base_pool_each(self->pool, count, remove_one, self);
    for (int64_t i = 0; i < count; i++)
        base_free(&self->batch[i].key);
    cli_format_bytes(bytes, sizeof bytes, (double)self->bytes);
    snprintf(line, sizeof line, "removed %lld keys, %s", (long long)self->keys, bytes);
    if (self->keys >= BATCH)
        cli_progress_say(&self->progress, line);
    return status;
}

/* Keys are listed a batch ahead of their removal: a listing goes on behind what it has shown, whatever becomes of
 * that. */
static int remove_listed(removal *self, store_keys *keys)
{
    const shoal_entry *entry = NULL;
    int64_t count = 0;
    int status = SHOAL_OK;
    while (status == SHOAL_OK && (status = store_keys_next(keys, &entry)) == SHOAL_OK) {
        if (entry) {
            self->batch[count] = *entry;
            self->batch[count].key = NULL;
            status = base_copy_text(&self->batch[count].key, entry->key);
            count += status == SHOAL_OK;
        }
        if (count == BATCH || (!entry && count > 0) || status < 0) {
            int removed = remove_batch(self, count);
            status = status < 0 ? status : removed;
            count = 0;
        }
        if (!entry)
            break;
    }
    for (int64_t i = 0; i < count; i++) /* left when the listing failed */
        base_free(&self->batch[i].key);
    return status;
}

/* A store that is emptied loses what its queues keep as blobs below .shoal, as a prefix does that is removed. */
static int remove_below(removal *self)
{
    store_keys keys;
    int status = store_keys_start_below(&keys, self->from);
    if (status == SHOAL_OK)
        status = remove_listed(self, &keys);
    store_keys_stop(&keys);
    if (status < 0 || *self->from->rest)
        return status;
    status = store_keys_start(&keys, self->from, ".shoal/");
    keys.own = true;
    if (status == SHOAL_OK)
        status = remove_listed(self, &keys);
    store_keys_stop(&keys);
    return status;
}

static int remove_key(removal *self)
{
    shoal_entry entry = {0};
    int status = store_place_find(self->from, self->from->rest, &entry);
    if (status == SHOAL_OK) {
        self->batch[0] = entry;
        status = remove_batch(self, 1);
    }
    return status;
}

static int has_below(bool *out, const store_place *from)
{
    const shoal_entry *first = NULL;
    store_keys keys;
    int status = store_keys_start_below(&keys, from);
    if (status == SHOAL_OK)
        status = store_keys_next(&keys, &first);
    *out = first != NULL;
    store_keys_stop(&keys);
    return status;
}

static int remove_url(removal *self, const store_place *from)
{
    const bool recursive = self->settings->recursive;
    const int64_t before = self->keys;
    bool below = false;
    self->from = from;
    int status = *from->rest ? remove_key(self) : SHOAL_ABSENT;
    if (status == SHOAL_ABSENT && !recursive) {
        status = has_below(&below, from);
        if (status == SHOAL_OK)
            status = below ? shoal_fail(SHOAL_INVALID,
                                        "%s: is no key, but there are keys below it: -r removes them all", from->url)
                           : shoal_fail(SHOAL_ABSENT, "%s: there is no such key", from->url);
        return status;
    }
    if (recursive && (status == SHOAL_OK || status == SHOAL_ABSENT))
        status = remove_below(self);
    if (status == SHOAL_OK && self->keys == before && *from->rest)
        status = shoal_fail(SHOAL_ABSENT, "%s: there is no such key, and nothing below it", from->url);
    return status;
}

static int check(const settings *settings, const store_place *from)
{
    if (*from->rest)
        return SHOAL_OK;
    if (!settings->recursive)
        return shoal_fail(SHOAL_USAGE, "%s: names a whole store; -r --all removes everything in it", from->url);
    if (!settings->all)
        return shoal_fail(SHOAL_USAGE, "%s: names a whole store; if everything in it is to be removed, say --all",
                          from->url);
    return SHOAL_OK;
}

static int report(const removal *self, const store_place *const *stores, size_t count)
{
    char bytes[32];
    if (self->settings->print.json) {
        json_t *object = json_object();
        cli_json_put(&object, "keys", json_integer(self->keys));
        cli_json_put(&object, "bytes", json_integer(self->bytes));
        cli_json_put_counts(&object, stores, count);
        return cli_print_json(object);
    }
    cli_format_bytes(bytes, sizeof bytes, (double)self->bytes);
    if (!self->settings->print.quiet && self->keys > 0)
        printf("removed %lld key%s, %s\n", (long long)self->keys, self->keys == 1 ? "" : "s", bytes);
    return SHOAL_OK;
}

static int run_rm(void *from_main, const char *const *word, int words)
{
    removal self = {.settings = from_main};
    const size_t count = (size_t)words;
    store_place *from = NULL;
    const store_place **stores = NULL;
    bool begun = false;
    int status = base_alloc(&from, count, sizeof *from, "stores");
    if (status == SHOAL_OK)
        status = base_alloc(&stores, count, sizeof *stores, "stores");
    if (status == SHOAL_OK)
        status = base_alloc(&self.batch, BATCH, sizeof *self.batch, "keys");
    for (int i = 0; i < words && status == SHOAL_OK; i++) {
        stores[i] = &from[i];
        status = cli_store_open(&from[i], word[i], &self.settings->store, (shoal_store_options){0});
        if (status == SHOAL_OK)
            status = check(self.settings, &from[i]);
    }
    if (status == SHOAL_OK)
        status = base_pool_new(&self.pool, (int)self.settings->jobs);
    if (status == SHOAL_OK) {
        begun = true;
        cli_progress_start(&self.progress, self.settings->print.quiet);
    }
    for (int i = 0; i < words && status == SHOAL_OK; i++)
        status = remove_url(&self, &from[i]);
    cli_progress_clear(&self.progress);
    if (begun) {
        int printed = report(&self, stores, count);
        status = status < 0 ? status : printed;
    }
    base_pool_free(&self.pool);
    for (size_t i = 0; i < count && from; i++)
        store_place_close(&from[i]);
    base_free(&self.batch);
    base_free(&stores);
    base_free(&from);
    return status;
}

static const char *const description[] = {
    "Removes the keys that the URLs name, and says how many there were and how much they held. What is below a key "
    "stays, unless -r is given. This can't be undone.",
    "A URL that names a whole store is refused unless both -r and --all are given. What is below a name includes what "
    "queues below it keep as blobs, under .shoal; messages that a server keeps in queues of its own stay, and those "
    "whose bodies were such blobs can no longer be read.",
    NULL,
};
static const learn_example examples[] = {
    {"shoal store rm ./st/data.npy", "one key"},
    {"shoal store rm -r az://acct/box/jobs/1", "a key and everything below it"},
    {NULL, NULL},
};
const cli_verb cli_store_rm = {
    .name = "store rm",
    .summary = "remove keys from a store",
    .word = {"URL..."},
    .words_least = 1,
    .synopsis = "[-r] [options]",
    .description = description,
    .examples = examples,
    .options = groups,
    .settings_size = sizeof(settings),
    .run = run_rm,
};
