/* Blobs of a run.  See blobs.h. */
#include "blobs.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/pool.h"
#include "base/text.h"
#include "blobs_counted.h"
#include "engine/blobs.h"
#include "engine/blobs_copy.h"
#include "jobs.h"
#include "launch/launch.h"
#include "ranks.h"

/* Seconds that a store may be out of reach; connections that copy at the same time, and bytes that they
 * hold at most, unless one blob is larger. */
static const double patience = 300;
enum { COPIERS = 8, COPY_MEMORY = 256 << 20 };

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

/* Two runs at once would write the same names, and each would remove what the other one has made.  The lock ends with
 * the process; a file system that has none, or a store, is not locked. */
static int lock_folder(int *out, const char *folder)
{
    *out = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*out >= 0 && flock(*out, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
        return shoal_fail(SHOAL_USAGE,
                          "%s: another run is writing into this folder; wait for its end, or choose another", folder);
    return SHOAL_OK;
}

int run_blobs_open(shoal_outcome *outcome)
{
    const run_blobs *blobs = &outcome->request->blobs;
    int status = SHOAL_OK;
    if (blobs->from && !outcome->blobs_from)
        status = shoal_blobs_open(&outcome->blobs_from, blobs->from, false, patience);
    if (status < 0 || !blobs->to || outcome->blobs_to)
        return status;
    status = shoal_blobs_open(&outcome->blobs_to, blobs->to, true, patience);
    if (status == SHOAL_OK && outcome->face->end_blobs && run_is_first() && !run_is_in_store(blobs->to))
        status = lock_folder(&outcome->blobs_lock, blobs->to);
    return status;
}

int run_blobs_begin(const shoal_outcome *outcome)
{
    json_t *names = NULL;
    if (!outcome->blobs_to || !outcome->face->begin_blobs || !run_is_first())
        return SHOAL_OK;
    int status = engine_blobs_names(&names, outcome->blobs_to);
    if (status == SHOAL_OK) {
        const learn_ended begun = run_ended(outcome);
        status = outcome->face->begin_blobs(outcome->blobs_to, names, &begun);
    }
    json_decref(names);
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
    if (outcome->blobs_lock >= 0)
        close(outcome->blobs_lock);
    outcome->blobs_lock = -1;
}

int run_blobs_each(int64_t items, int (*task)(void *, int64_t, int), void *context)
{
    base_pool *pool = NULL;
    int status = base_pool_new(&pool, items < COPIERS ? (int)items : COPIERS);
    if (status == SHOAL_OK)
        status = base_pool_each(pool, items, task, context);
    base_pool_free(&pool);
    return status;
}

/* ---- at the end -------------------------------------------------------------------------------------------------- */

typedef struct fetching {
    engine_blob *blob;
    int64_t count;
} fetching;

static int list_blobs(fetching *out, const run_jobs *jobs, const char *id)
{
    char prefix[SHOAL_JOB_ID_BYTES + 16];
    shoal_listing page = {0};
    int status;
    snprintf(prefix, sizeof prefix, "jobs/%s/to/", id);
    do {
        status = shoal_store_list(jobs->store, prefix, NULL, &page, run_jobs_deadline(jobs));
        size_t have = (size_t)out->count;
        if (status == SHOAL_OK && page.count > 0)
            status = base_grow(&out->blob, have, have + page.count, sizeof *out->blob, "names of blobs");
        for (size_t i = 0; status == SHOAL_OK && i < page.count; i++) {
            engine_blob *blob = &out->blob[out->count++];
            blob->size = page.entries[i].size;
            status = base_copy_text(&blob->name, page.entries[i].key + strlen(prefix));
        }
    } while (status == SHOAL_OK && page.more);
    shoal_listing_release(&page);
    return status;
}

static int fetch_blobs(const shoal_outcome *outcome)
{
    fetching all = {0};
    const shoal_blobs *from = NULL;
    int status = shoal_job_blobs(&from, outcome->jobs.store, outcome->away.id, patience);
    if (status == SHOAL_OK)
        status = list_blobs(&all, &outcome->jobs, outcome->away.id);
    if (status == SHOAL_OK && all.count > 0) {
        run_doing(outcome, "fetching what workers made");
        status = engine_blobs_copy(&(engine_copy){.from = from,
                                                  .to = outcome->blobs_to,
                                                  .blob = all.blob,
                                                  .count = all.count,
                                                  .threads = COPIERS,
                                                  .memory = COPY_MEMORY});
        run_doing(outcome, NULL);
    }
    for (int64_t i = 0; i < all.count; i++)
        base_free(&all.blob[i].name);
    base_free(&all.blob);
    shoal_blobs_close(&from);
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
