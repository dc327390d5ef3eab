/* Counting blobs.  See blobs_counted.h. */
#include "blobs_counted.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/memory.h"
#include "base/pool.h"
#include "base/text.h"

static const double TELL_EVERY = 0.1; /* seconds */

struct run_blobs_counted {
    shoal_blobs table; /* the first member: maps get its address */
    const shoal_blobs *inner;
    const shoal_outcome *outcome;
    pthread_t runner;
    int64_t total;
    _Atomic int64_t got;
    double began, told; /* the runner's alone */
};

void run_blobs_say(char *out, size_t room, const char *what, int64_t done, int64_t total, double seconds)
{
    char number[32], of[40] = "", all[32];
    base_format_count(number, sizeof number, done);
    base_format_count(all, sizeof all, total);
    if (total > 0)
        snprintf(of, sizeof of, " of %s", all);
    snprintf(out, room, "%s%s %s%s, %.0f a second", number, of, what, base_plural(total > 0 ? total : done),
             seconds > 0 ? (double)done / seconds : 0);
}

/* Only the thread that runs the run may tell; it maps like the others. */
static void tell_count(run_blobs_counted *self)
{
    char text[96];
    double now = base_seconds();
    if (!pthread_equal(pthread_self(), self->runner) || now - self->told < TELL_EVERY)
        return;
    self->told = now;
    run_blobs_say(text, sizeof text, "file", atomic_load(&self->got), self->total, now - self->began);
    run_doing(self->outcome, text);
}

static int get_counted(const shoal_blobs *table, const char *name, int64_t most, void **bytes, size_t *size)
{
    run_blobs_counted *self = (run_blobs_counted *)(uintptr_t)table;
    int status = self->inner->get(self->inner, name, most, bytes, size);
    atomic_fetch_add(&self->got, 1);
    tell_count(self);
    return status;
}

static void release_counted(const shoal_blobs *table, void **bytes)
{
    const shoal_blobs *inner = ((const run_blobs_counted *)table)->inner;
    inner->release(inner, bytes);
}

static int put_counted(const shoal_blobs *table, const char *name, const void *bytes, size_t size)
{
    const shoal_blobs *inner = ((const run_blobs_counted *)table)->inner;
    return inner->put(inner, name, bytes, size);
}

static int has_counted(const shoal_blobs *table, const char *name, int64_t *size)
{
    const shoal_blobs *inner = ((const run_blobs_counted *)table)->inner;
    return inner->has(inner, name, size);
}

static int remove_counted(const shoal_blobs *table, const char *name)
{
    const shoal_blobs *inner = ((const run_blobs_counted *)table)->inner;
    return inner->remove(inner, name);
}

static int get_part_counted(const shoal_blobs *table, const char *name, int64_t first, void *into, size_t size)
{
    const shoal_blobs *inner = ((const run_blobs_counted *)table)->inner;
    return inner->get_part(inner, name, first, into, size);
}

int run_blobs_count(run_blobs_counted **out, const shoal_blobs *inner, const shoal_outcome *outcome, int64_t total)
{
    int status = base_alloc(out, 1, sizeof **out, "a count of blobs");
    if (status < 0)
        return status;
    run_blobs_counted *self = *out;
    self->table =
        (shoal_blobs){get_counted, release_counted, put_counted, has_counted, remove_counted, get_part_counted};
    self->inner = inner;
    self->outcome = outcome;
    self->runner = pthread_self();
    self->total = total;
    self->began = base_seconds();
    return SHOAL_OK;
}

const shoal_blobs *run_blobs_counted_table(const run_blobs_counted *counted)
{
    return counted ? &counted->table : NULL;
}

void run_blobs_counted_free(run_blobs_counted **counted)
{
    base_free(counted);
}
