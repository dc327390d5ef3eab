/* Fetching rows from a store.  See source_fetch.h. */
#include "engine/source_fetch.h"

#include <stdio.h>
#include <string.h>
#include <shoal/store.h>

static const size_t most_at_once = (size_t)8 << 20;
static const double patience = 300; /* seconds for one request, as workers have: eight at once may share a slow line */
enum { FAR_AT_ONCE = 8 };           /* concurrent requests: enough to fill a host's line */

typedef struct fetching {
    const data_place *place;
    shoal_store *store;
    shoal_etag etag;
    unsigned char *out;
    int64_t offset; /* in the blob */
    size_t size, step;
} fetching;

static int fail_changed(const data_place *place, const char *why)
{
    return shoal_fail(SHOAL_INVALID, "%s: the rows changed since they were opened: %s", place->address, why);
}

static int fetch_part(void *context, int64_t item, int thread)
{
    const fetching *job = context;
    size_t first = (size_t)item * job->step, left = job->size - first, size = left < job->step ? left : job->step;
    shoal_blob blob = {0};
    (void)thread;
    int status = shoal_store_get_range(job->store, job->place->key, job->offset + (int64_t)first, (int64_t)size,
                                       &job->etag, job->out + first, &blob, shoal_after(patience));
    if (status == SHOAL_CONFLICT)
        status = fail_changed(job->place, "the blob has another version");
    else if (status == SHOAL_ABSENT)
        status = fail_changed(job->place, "the blob is gone");
    else if (status == SHOAL_OK && blob.size != size)
        status = fail_changed(job->place, "the blob is shorter");
    shoal_blob_release(&blob);
    return status;
}

/* Enough parts for every thread to get some, if there is enough to share. */
static size_t choose_step(size_t size, int threads)
{
    static const size_t least = (size_t)256 << 10;
    size_t step = size / ((size_t)threads * 2) + 1;
    if (step < least)
        step = least;
    return step < most_at_once ? step : most_at_once;
}

static int fetch_parts(fetching *job, base_pool *pool)
{
    base_pool *more = NULL;
    int status = SHOAL_OK;
    if (shoal_store_describe(job->store).far && base_pool_threads(pool) < FAR_AT_ONCE)
        status = base_pool_new(&more, FAR_AT_ONCE);
    if (status < 0)
        return status;
    pool = more ? more : pool;
    job->step = choose_step(job->size, base_pool_threads(pool));
    status = base_pool_each(pool, (int64_t)((job->size + job->step - 1) / job->step), fetch_part, job);
    base_pool_free(&more);
    return status;
}

int engine_fetch(void *out, const data_place *place, int64_t first, size_t size, base_pool *pool)
{
    fetching job = {.place = place, .out = out, .offset = place->offset + first, .size = size};
    char *key = NULL;
    snprintf(job.etag.text, sizeof job.etag.text, "%s", place->etag);
    int status = shoal_store_open_at(&job.store, &key, place->address, &(shoal_store_options){.read_only = true},
                                     shoal_after(patience));
    if (status == SHOAL_OK && strcmp(key, place->key) != 0)
        status = fail_changed(place, "the store above it is another one");
    if (status == SHOAL_OK)
        status = fetch_parts(&job, pool);
    shoal_text_free(&key);
    shoal_store_close(&job.store);
    return status;
}

void engine_clean_bools(void *values, size_t count)
{
    unsigned char *value = values;
    for (size_t i = 0; i < count; i++)
        value[i] = value[i] != 0;
}
