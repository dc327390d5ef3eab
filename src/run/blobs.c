/* Blobs of a run.  See blobs.h. */
#include "blobs.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/pool.h"
#include "base/text.h"
#include "blobs_counted.h"
#include "jobs.h"
#include "launch/launch.h"
#include "ranks.h"

/* Seconds that a store may be out of reach; connections that copy at the same time. */
static const double patience = 300;
enum { COPIERS = 8 };

static const shoal_option rows[] = {
    {"blobs-from", 0, SHOAL_OPTION_TEXT, offsetof(run_blobs, from), "FOLDER|URL",
     .help = "where maps get blobs by name (shoal_blobs in shoal/learn.h)"},
    {"blobs-to", 0, SHOAL_OPTION_TEXT, offsetof(run_blobs, to), "FOLDER|URL",
     .help = "where the blobs go that maps put; a folder that is missing is made"},
    {0},
};
const shoal_option *const run_blobs_options = rows;

bool run_has_blobs(const learn_face *face)
{
    return face->runs_code || face->end_blobs;
}

/* ---- where they are ---------------------------------------------------------------------------------------------- */

int run_blobs_open(shoal_outcome *outcome)
{
    const run_blobs *blobs = &outcome->request->blobs;
    int status = SHOAL_OK;
    if (blobs->from && !outcome->blobs_from)
        status = shoal_blobs_open(&outcome->blobs_from, blobs->from, false, patience);
    if (status == SHOAL_OK && blobs->to && !outcome->blobs_to)
        status = shoal_blobs_open(&outcome->blobs_to, blobs->to, true, patience);
    return status;
}

int run_blobs_watch(const shoal_blobs **out, shoal_outcome *outcome)
{
    *out = outcome->blobs_from;
    if (!*out || !outcome->face->blob_of || !outcome->request->watch.doing)
        return SHOAL_OK;
    int status = run_blobs_count(&outcome->blobs_counted, outcome->blobs_from, outcome,
                                 run_ranks() ? 0 : outcome->rows); /* a rank sees its own alone */
    *out = run_blobs_counted_table(outcome->blobs_counted);
    return status;
}

void run_blobs_follow(shoal_outcome *outcome)
{
    const double now = base_seconds();
    const bool near = shoal_store_describe(outcome->jobs.store).wakes;
    char text[96];
    if (!outcome->request->blobs.to || !outcome->request->watch.doing || now - outcome->blobs_looked < (near ? 0.5 : 5))
        return;
    outcome->blobs_looked = now;
    int64_t count = run_jobs_count_below(&outcome->jobs, outcome->away.id, "to");
    if (count <= 0) /* a store that is away is the follower's to notice */
        return;
    snprintf(text, sizeof text, "%" PRId64 " file%s made by workers", count, base_plural(count));
    run_doing(outcome, text);
}

void run_blobs_close(shoal_outcome *outcome)
{
    run_blobs_counted_free(&outcome->blobs_counted);
    shoal_blobs_close(&outcome->blobs_from);
    shoal_blobs_close(&outcome->blobs_to);
}

/* ---- for workers ------------------------------------------------------------------------------------------------- */

const char *run_blobs_source(const shoal_outcome *outcome)
{
    const char *from = outcome->request->blobs.from;
    const shoal_store_traits store = shoal_store_describe(outcome->jobs.store);
    if (!from || outcome->away.ask->far)
        return from ? "" : NULL;
    bool near = run_is_in_store(from) || (store.wakes && !store.far);
    return near ? from : "";
}

typedef struct uploading {
    const shoal_outcome *outcome;
    learn_rows rows;
    const void *values;
    size_t row_bytes;
} uploading;

static int upload_one(void *context, int64_t row, int thread)
{
    const uploading *all = context;
    const shoal_outcome *outcome = all->outcome;
    const shoal_blobs *from = outcome->blobs_from;
    void *bytes = NULL;
    size_t size = 0;
    char *name = NULL;
    (void)thread;
    if (run_stopped(outcome->request))
        return shoal_fail(SHOAL_STOPPED, "asked to stop before all blobs were uploaded");
    int status = outcome->face->blob_of(&name, (const char *)all->values + (size_t)row * all->row_bytes, &all->rows);
    if (status == SHOAL_OK)
        status = from->get(from, name, INT64_MAX, &bytes, &size);
    if (status == SHOAL_OK)
        status = shoal_job_put_blob(outcome->jobs.store, outcome->away.id, name, bytes, size, shoal_after(patience));
    from->release(from, &bytes);
    base_free(&name);
    return status;
}

/* A pool of threads, since most of the time each waits for the store. */
static int each_of(int64_t items, int (*task)(void *, int64_t, int), void *context)
{
    base_pool *pool = NULL;
    int status = base_pool_new(&pool, items < COPIERS ? (int)items : COPIERS);
    if (status == SHOAL_OK)
        status = base_pool_each(pool, items, task, context);
    base_pool_free(&pool);
    return status;
}

int run_blobs_upload(const shoal_outcome *outcome)
{
    const char *source = run_blobs_source(outcome);
    uploading all = {.outcome = outcome, .rows = run_rows_of(outcome)};
    void *scratch = NULL;
    if (!source || *source)
        return SHOAL_OK;
    if (!outcome->face->blob_of)
        return shoal_fail(SHOAL_USAGE,
                          "--blobs-from %s: some of the workers can't reach it, and only the module knows which blobs "
                          "it needs; name a store that they all reach",
                          outcome->request->blobs.from);
    all.row_bytes = (size_t)outcome->columns * shoal_type_size(outcome->type);
    int status = shoal_data_is_resident(outcome->data)
                     ? SHOAL_OK
                     : base_alloc_unset(&scratch, (size_t)outcome->rows, all.row_bytes, "rows that name blobs");
    if (status == SHOAL_OK)
        status = shoal_data_read(&all.values, outcome->data, 0, outcome->rows, scratch);
    run_doing(outcome, "uploading what workers read");
    if (status == SHOAL_OK)
        status = each_of(outcome->rows, upload_one, &all);
    base_free(&scratch);
    return status;
}

/* ---- at the end -------------------------------------------------------------------------------------------------- */

typedef struct fetching {
    const shoal_blobs *from, *to;
    char **name;
    int64_t count;
} fetching;

static int copy_one(void *context, int64_t item, int thread)
{
    const fetching *all = context;
    void *bytes = NULL;
    size_t size = 0;
    (void)thread;
    int status = all->from->get(all->from, all->name[item], INT64_MAX, &bytes, &size);
    if (status == SHOAL_OK)
        status = all->to->put(all->to, all->name[item], bytes, size);
    all->from->release(all->from, &bytes);
    return status;
}

static int list_names(fetching *out, const run_jobs *jobs, const char *id)
{
    char prefix[SHOAL_JOB_ID_BYTES + 16];
    shoal_listing page = {0};
    int status;
    snprintf(prefix, sizeof prefix, "jobs/%s/to/", id);
    do {
        status = shoal_store_list(jobs->store, prefix, NULL, &page, run_jobs_deadline(jobs));
        size_t have = (size_t)out->count;
        if (status == SHOAL_OK && page.count > 0)
            status = base_grow(&out->name, have, have + page.count, sizeof *out->name, "names of blobs");
        for (size_t i = 0; status == SHOAL_OK && i < page.count; i++)
            status = base_copy_text(&out->name[out->count++], page.entries[i].key + strlen(prefix));
    } while (status == SHOAL_OK && page.more);
    shoal_listing_release(&page);
    return status;
}

static int fetch_blobs(const shoal_outcome *outcome)
{
    fetching all = {.to = outcome->blobs_to};
    int status = shoal_job_blobs(&all.from, outcome->jobs.store, outcome->away.id, patience);
    if (status == SHOAL_OK)
        status = list_names(&all, &outcome->jobs, outcome->away.id);
    if (status == SHOAL_OK && all.count > 0) {
        run_doing(outcome, "fetching what workers made");
        status = each_of(all.count, copy_one, &all);
        run_doing(outcome, NULL);
    }
    for (int64_t i = 0; i < all.count; i++)
        base_free(&all.name[i]);
    base_free(&all.name);
    shoal_blobs_close(&all.from);
    return status;
}

int run_blobs_finish(shoal_outcome *outcome)
{
    if (!outcome->request->blobs.to || !run_is_learning(outcome))
        return SHOAL_OK;
    int status = run_blobs_open(outcome);
    if (status == SHOAL_OK && outcome->away.id[0])
        status = fetch_blobs(outcome);
    if (status == SHOAL_OK && outcome->face->end_blobs) {
        const learn_ended ended = run_ended(outcome);
        status = outcome->face->end_blobs(outcome->blobs_to, &ended);
    }
    return status;
}
