/* Removing keys, many at once.  Everything below a name takes `recursive`, a whole store `all` as well: neither can be
 * undone. */
#include "transfer.h"

#include <stdatomic.h>
#include <string.h>

#include "base/memory.h"
#include "base/pool.h"
#include "store/store_internal.h"
#include "store/store_place.h"
#include "store/transfer/transfer_internal.h"

typedef struct removal {
    const transfer_options *options;
    base_pool *pool;
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
    int status = base_pool_each(self->pool, count, remove_one, self);
    for (int64_t i = 0; i < count; i++)
        base_free(&self->batch[i].key);
    if (self->options->on_progress)
        self->options->on_progress(self->options->context,
                                   &(transfer_counts){.files = self->keys, .bytes = self->bytes});
    return status;
}

/* Keys are listed a batch ahead of their removal: a listing continues after what it has shown, even if that is
 * removed. */
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

static int remove_url(removal *self, const store_place *from)
{
    const bool recursive = self->options->recursive;
    const int64_t before = self->keys;
    self->from = from;
    int status = *from->rest ? store_place_find(from, from->rest, &self->batch[0]) : SHOAL_ABSENT;
    if (status == SHOAL_OK)
        status = remove_batch(self, 1);
    if (status == SHOAL_ABSENT && !recursive)
        return transfer_fail_absent(from, "removes", "");
    if (recursive && (status == SHOAL_OK || status == SHOAL_ABSENT))
        status = remove_below(self);
    if (status == SHOAL_OK && self->keys == before && *from->rest)
        status = shoal_fail(SHOAL_ABSENT, "%s: there is no such key, and nothing below it", from->url);
    return status;
}

static int check_whole_store(const transfer_options *options, const store_place *from)
{
    if (*from->rest)
        return SHOAL_OK;
    if (!options->recursive)
        return shoal_fail(SHOAL_USAGE, "%s: names a whole store; use -r --all to remove everything in it", from->url);
    if (!options->all)
        return shoal_fail(SHOAL_USAGE, "%s: names a whole store; use --all to remove everything in it", from->url);
    return SHOAL_OK;
}

int transfer_remove(transfer_report *report, const char *const *urls, int count, const transfer_options *options)
{
    removal self = {.options = options};
    store_place *from = NULL;
    int status = base_alloc(&from, (size_t)count, sizeof *from, "stores");
    if (status == SHOAL_OK)
        status = base_alloc(&self.batch, BATCH, sizeof *self.batch, "keys");
    for (int i = 0; i < count && status == SHOAL_OK; i++) {
        status = store_place_open(&from[i], urls[i], options->patience, (shoal_store_options){0});
        if (status == SHOAL_OK)
            status = check_whole_store(options, &from[i]);
    }
    if (status == SHOAL_OK)
        status = base_pool_new(&self.pool, (int)options->jobs);
    if (status < 0)
        goto done;
    report->begun = true;
    for (int i = 0; i < count && status == SHOAL_OK; i++)
        status = remove_url(&self, &from[i]);
    report->files = self.keys;
    report->bytes = self.bytes;
    for (int i = 0; i < count; i++)
        store_counts_add(&report->requests, from[i].store);
done:
    base_pool_free(&self.pool);
    for (int i = 0; i < count && from; i++)
        store_place_close(&from[i]);
    base_free(&self.batch);
    base_free(&from);
    return status;
}
