/* Blobs that workers can't reach where they are: they are put into the job's store.  See blobs.h.
 *
 * The key of a blob there is the hash of its name, so an upload that was cut off goes on with those that are not there:
 * a blob is put whole or not at all. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <shoal/engine.h>

#include "base/memory.h"
#include "base/text.h"
#include "blobs.h"
#include "engine/blobs.h"
#include "engine/store/job_rows.h"
#include "launch/launch.h"

static const double patience = 300; /* seconds that a store may be out of reach */

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
    const shoal_blobs *from; /* NULL: missing ones are counted alone */
    learn_rows rows;
    const void *values;
    size_t row_bytes;
    char **there; /* keys of the blobs that are there, in the order of their bytes */
    int64_t there_count;
    _Atomic int64_t missing;
} uploading;

static int compare_keys(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int is_there(bool *out, const uploading *all, const char *name)
{
    char *key = NULL;
    int status = engine_blobs_hashed_key(&key, "", name);
    *out = status == SHOAL_OK && all->there_count > 0 &&
           bsearch(&key, all->there, (size_t)all->there_count, sizeof *all->there, compare_keys);
    base_free(&key);
    return status;
}

static int upload_one(void *context, int64_t row, int thread)
{
    uploading *all = context;
    const shoal_outcome *outcome = all->outcome;
    void *bytes = NULL;
    size_t size = 0;
    char *name = NULL;
    bool there = false;
    (void)thread;
    if (run_stopped(outcome->request))
        return shoal_fail(SHOAL_STOPPED, "asked to stop before all blobs were uploaded");
    int status = outcome->face->blob_of(&name, (const char *)all->values + (size_t)row * all->row_bytes, &all->rows);
    if (status < 0 || !name)
        return status;
    status = is_there(&there, all, name);
    all->missing += status == SHOAL_OK && !there;
    if (status == SHOAL_OK && !there && all->from) {
        status = all->from->get(all->from, name, INT64_MAX, &bytes, &size);
        if (status == SHOAL_OK)
            status =
                shoal_job_put_blob(outcome->jobs.store, outcome->away.id, name, bytes, size, shoal_after(patience));
        all->from->release(all->from, &bytes);
    }
    base_free(&name);
    return status;
}

int run_blobs_upload(const shoal_outcome *outcome)
{
    const char *source = run_blobs_source(outcome);
    uploading all = {.outcome = outcome, .from = outcome->blobs_from, .rows = run_rows_of(outcome)};
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
        status = run_blobs_each(outcome->rows, upload_one, &all);
    base_free(&scratch);
    return status;
}

/* ---- going on ---------------------------------------------------------------------------------------------------- */

static int list_there(uploading *all)
{
    const run_jobs *jobs = &all->outcome->jobs;
    char prefix[SHOAL_JOB_ID_BYTES + 16];
    shoal_listing page = {0};
    int status;
    snprintf(prefix, sizeof prefix, "jobs/%s/from/", all->outcome->away.id);
    do {
        status = shoal_store_list(jobs->store, prefix, NULL, &page, run_jobs_deadline(jobs));
        const size_t have = (size_t)all->there_count;
        if (status == SHOAL_OK && page.count > 0)
            status = base_grow(&all->there, have, have + page.count, sizeof *all->there, "names of blobs");
        for (size_t i = 0; status == SHOAL_OK && i < page.count; i++)
            status = base_copy_text(&all->there[all->there_count++], page.entries[i].key + strlen(prefix));
    } while (status == SHOAL_OK && page.more);
    shoal_listing_release(&page);
    if (all->there_count > 0)
        qsort(all->there, (size_t)all->there_count, sizeof *all->there, compare_keys);
    return status;
}

/* Goes through the rows as the job's store has them, slice by slice. */
static int upload_slices(uploading *all, const job_spec *spec)
{
    job_loader *loader = NULL;
    int status = job_loader_new(&loader, spec, all->outcome->jobs.store, &(job_loader_options){.threads = 1});
    for (int64_t slice = 0; status == SHOAL_OK && slice < spec->slices; slice++) {
        job_rows *rows = NULL;
        status = job_rows_load(&rows, loader, slice, run_jobs_deadline(&all->outcome->jobs));
        if (status == SHOAL_OK) {
            const engine_rows view = job_rows_view(rows);
            const int64_t count = job_slice_rows(spec, slice);
            all->values = view.resident;
            if (!all->values)
                status = view.read(view.context, &all->values, job_slice_first_row(spec, slice), count, 0);
            if (status == SHOAL_OK)
                status = run_blobs_each(count, upload_one, all);
        }
        job_rows_free(&rows);
    }
    job_loader_free(&loader);
    return status;
}

int run_blobs_upload_missing(const shoal_outcome *outcome, const job_spec *spec, const char *source)
{
    uploading all = {.outcome = outcome, .rows = run_rows_of(outcome)};
    if (!outcome->face->blob_of || !spec->from || *spec->from)
        return SHOAL_OK;
    all.row_bytes = (size_t)spec->shape.columns * shoal_type_size(spec->shape.type);
    int status = list_there(&all);
    if (status == SHOAL_OK && source)
        status = shoal_blobs_open(&all.from, source, false, patience);
    run_doing(outcome, "uploading what workers read");
    if (status == SHOAL_OK)
        status = upload_slices(&all, spec);
    run_doing(outcome, NULL);
    if (status == SHOAL_OK && !source && all.missing > 0)
        status = shoal_fail(SHOAL_ABSENT,
                            "job %s lacks %" PRId64 " blob%s that were to be uploaded: if who submitted it was killed "
                            "meanwhile, resume it as the same user on the same machine, or remove it and submit it "
                            "again",
                            spec->id, all.missing, base_plural(all.missing));
    shoal_blobs_close(&all.from);
    for (int64_t i = 0; i < all.there_count; i++)
        base_free(&all.there[i]);
    base_free(&all.there);
    return status;
}
