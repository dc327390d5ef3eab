/* Cancelling, resuming and removing jobs, and setting how many workers are wanted.  See job.h.
 *
 * All of it works while workers run, die or sleep: an end is a model like any other, put after the newest and only if
 * absent, and a removed job leaves a tombstone that keeps sleeping workers from writing it again. */
#include "engine/store/job_admin.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/option.h"
#include "base/world.h"
#include "engine/store/job_keys.h"
#include "engine/store/job_record.h"
#include "engine/store/job_setup.h"

/* ---- ending ------------------------------------------------------------------------------------------------------ */

/* Puts a cancelled end after `last`.  SHOAL_CONFLICT when there is something else by now. */
static int put_cancelled(shoal_store *store, const char *id, const job_model *last, const char *why, int64_t deadline)
{
    job_model end = {.number = last->number + 1, .state = SHOAL_JOB_CANCELLED, .status = SHOAL_STOPPED};
    void *bytes = NULL;
    size_t size = 0;
    int status = base_copy_text(&end.message, why);
    if (status == SHOAL_OK)
        status = job_trailer_copy(&end.trailer, &last->trailer);
    if (status == SHOAL_OK)
        status = job_model_encode(&bytes, &size, &end);
    if (status == SHOAL_OK)
        status = shoal_store_put_framed(store, job_key_model(id, end.number).text, JOB_KIND_MODEL, bytes, size,
                                        SHOAL_NOTHING, NULL, deadline);
    base_free(&bytes);
    base_free(&end.message);
    job_trailer_release(&end.trailer);
    return status;
}

/* The status for a job that has ended already. */
static int judge_ended(const char *id, const job_model *model)
{
    if (model->state == SHOAL_JOB_DONE)
        return shoal_fail(SHOAL_USAGE, "job %s is done: there is nothing to cancel", id);
    if (model->state == SHOAL_JOB_FAILED)
        return shoal_fail(SHOAL_USAGE, "job %s failed already: %s", id, model->message);
    return SHOAL_OK;
}

int shoal_job_cancel(shoal_store *store, const char *id, const char *why, int64_t deadline)
{
    job_spec *spec = NULL;
    int status = job_spec_get(&spec, store, id, deadline);
    if (status < 0)
        return status;
    do {
        job_model *model = NULL;
        status = job_newest(&model, store, spec, deadline);
        if (status == SHOAL_OK && model->state != SHOAL_JOB_RUNNING) {
            status = judge_ended(id, model);
            job_model_free(&model);
            break;
        }
        if (status == SHOAL_OK)
            status = put_cancelled(store, id, model, why ? why : "by request", deadline);
        job_model_free(&model);
    } while (status == SHOAL_CONFLICT || status == SHOAL_UNKNOWN);
    if (status == SHOAL_OK)
        status = shoal_store_remove(store, job_key_open(id).text, deadline);
    job_spec_free(&spec);
    return status;
}

/* ---- going on ---------------------------------------------------------------------------------------------------- */

int job_open(shoal_store *store, const char *id, int64_t deadline)
{
    return shoal_store_put(store, job_key_open(id).text, "", 0, NULL, NULL, deadline);
}

/* Deaths that were blamed on rows (job_round.c) are forgotten: the user says that the cause is fixed.  A live worker
 * writes its record again. */
static int forgive(shoal_store *store, const char *id, const char *folder, int64_t deadline)
{
    shoal_listing page = {0};
    int status;
    do {
        status = shoal_store_list(store, job_key_of(id, folder).text, NULL, &page, deadline);
        for (size_t i = 0; status == SHOAL_OK && i < page.count; i++) {
            job_record record;
            uint64_t worker;
            void *bytes = NULL;
            size_t size = 0;
            if (!job_key_read_worker(&worker, page.entries[i].key) ||
                job_record_get(&record, store, page.entries[i].key, deadline) < 0 || record.rescuing < 0)
                continue;
            record.rescuing = -1;
            status = job_record_encode(&bytes, &size, &record);
            if (status == SHOAL_OK)
                status = shoal_store_put_framed(store, job_key_left(id, worker).text, JOB_KIND_WORKER, bytes, size,
                                                NULL, NULL, deadline);
            if (status == SHOAL_OK && strcmp(folder, "worker/") == 0)
                status = shoal_store_remove(store, page.entries[i].key, deadline);
            base_free(&bytes);
        }
    } while (status == SHOAL_OK && page.more);
    shoal_listing_release(&page);
    return status;
}

int shoal_job_resume(shoal_store *store, const char *id, int64_t deadline)
{
    job_spec *spec = NULL;
    job_model *model = NULL;
    bool gone = false;
    int status = job_spec_get(&spec, store, id, deadline);
    if (status == SHOAL_OK)
        status = job_is_gone(&gone, store, id, deadline);
    if (status == SHOAL_OK && gone)
        status = shoal_fail(SHOAL_ABSENT, "job %s is being removed", id);
    if (status == SHOAL_OK)
        status = job_newest(&model, store, spec, deadline);
    if (status == SHOAL_BROKEN && spec) { /* its newest model is damaged: workers remove it and compute it again */
        status = job_setup_open(store, spec, deadline); /* perhaps from round 0 on */
        job_spec_free(&spec);
        return status;
    }
    const bool done = status == SHOAL_OK && model->state == SHOAL_JOB_DONE;
    if (status == SHOAL_OK && model->state == SHOAL_JOB_FAILED)
        status = forgive(store, id, "left/", deadline);
    if (status == SHOAL_OK && model->state == SHOAL_JOB_FAILED)
        status = forgive(store, id, "worker/", deadline);
    if (status == SHOAL_OK && !done && model->state != SHOAL_JOB_RUNNING)
        status = shoal_store_remove(store, job_key_model(id, model->number).text, deadline);
    /* The process that submitted it may have died before it had announced all; without that round 0 waits for each
     * slice. */
    if (status == SHOAL_OK && !done)
        status = model->number == 0 ? job_setup_open(store, spec, deadline) : job_open(store, id, deadline);
    job_model_free(&model);
    job_spec_free(&spec);
    return status;
}

int shoal_job_upload(shoal_store *store, const char *id, shoal_data *data, const double *weights,
                     const volatile int *stop, int64_t deadline)
{
    job_spec *spec = NULL;
    int status = job_spec_get(&spec, store, id, deadline);
    if (status == SHOAL_OK)
        status = job_setup_upload(store, spec, data, weights, stop, deadline);
    job_spec_free(&spec);
    return status;
}

/* ---- how many workers -------------------------------------------------------------------------------------------- */

int shoal_job_want(shoal_store *store, const char *id, int64_t workers, int64_t deadline)
{
    char text[24];
    if (workers < 0 || workers > SHOAL_JOB_WORKERS_MOST)
        return shoal_fail(SHOAL_USAGE, "workers must be 0 to %d, not %lld", SHOAL_JOB_WORKERS_MOST, (long long)workers);
    int length = snprintf(text, sizeof text, "%lld", (long long)workers);
    return shoal_store_put(store, job_key_of(id, "want").text, text, (size_t)length, NULL, NULL, deadline);
}

int shoal_job_wanted(int64_t *out, shoal_store *store, const char *id, int64_t deadline)
{
    char text[24] = "";
    shoal_blob blob = {0};
    *out = -1;
    int status = shoal_store_get(store, job_key_of(id, "want").text, &blob, deadline);
    if (status == SHOAL_OK && blob.size < sizeof text) {
        memcpy(text, blob.data, blob.size);
        if (!base_parse_count(out, text) || *out < 0 || *out > SHOAL_JOB_WORKERS_MOST)
            *out = -1; /* not a number of workers */
    }
    shoal_blob_release(&blob);
    return status == SHOAL_ABSENT ? SHOAL_OK : status;
}

int shoal_job_worker_died(shoal_store *store, const char *id, uint64_t worker, const char *why, int64_t deadline)
{
    job_key from = job_key_worker(id, worker), to = job_key_left(id, worker);
    job_record record;
    void *bytes = NULL;
    size_t size = 0;
    int status = job_record_get(&record, store, from.text, deadline);
    if (status == SHOAL_ABSENT)
        return SHOAL_OK;
    if (status == SHOAL_OK) {
        snprintf(record.state, sizeof record.state, "%s", why);
        status = job_record_encode(&bytes, &size, &record);
    }
    if (status == SHOAL_OK)
        status = shoal_store_put_framed(store, to.text, JOB_KIND_WORKER, bytes, size, NULL, NULL, deadline);
    if (status == SHOAL_OK || status == SHOAL_BROKEN)
        status = shoal_store_remove(store, from.text, deadline);
    base_free(&bytes);
    return status;
}

/* ---- removing ---------------------------------------------------------------------------------------------------- */

int job_is_gone(bool *out, shoal_store *store, const char *id, int64_t deadline)
{
    shoal_blob blob = {0};
    int status = shoal_store_get(store, job_key_gone(id).text, &blob, deadline);
    shoal_blob_release(&blob);
    *out = status == SHOAL_OK;
    return status == SHOAL_ABSENT ? SHOAL_OK : status;
}

/* Removes all keys below a prefix but one. */
static int remove_below(shoal_store *store, const char *prefix, const char *but, int64_t deadline)
{
    shoal_listing page = {0};
    int status;
    do {
        status = shoal_store_list(store, prefix, NULL, &page, deadline);
        for (size_t i = 0; status == SHOAL_OK && i < page.count; i++)
            if (strcmp(page.entries[i].key, but) != 0)
                status = shoal_store_remove(store, page.entries[i].key, deadline);
    } while (status == SHOAL_OK && page.more);
    shoal_listing_release(&page);
    return status;
}

/* Removes tombstones of jobs that nobody can be asleep in now. */
static int sweep_tombstones(shoal_store *store, int64_t deadline)
{
    enum { AT_MOST = 16 };
    static const double day = 86400;
    shoal_listing page = {0};
    int status = shoal_store_list(store, "gone/", NULL, &page, deadline);
    for (size_t i = 0; status == SHOAL_OK && i < page.count && i < AT_MOST; i++) {
        shoal_blob blob = {0};
        status = shoal_store_get(store, page.entries[i].key, &blob, deadline);
        if (status == SHOAL_OK && blob.age > day)
            status = shoal_store_remove(store, page.entries[i].key, deadline);
        else if (status == SHOAL_ABSENT)
            status = SHOAL_OK;
        shoal_blob_release(&blob);
    }
    shoal_listing_release(&page);
    return status;
}

static int remove_queues(shoal_store *store, const char *id, int64_t deadline)
{
    static const char *const queues[] = {"setup", "map", "reduce", "last"};
    int status = SHOAL_OK;
    for (size_t i = 0; i < sizeof queues / sizeof *queues && status == SHOAL_OK; i++)
        status = shoal_store_drop(store, job_key_of(id, queues[i]).text, deadline);
    return status;
}

/* Waits for live workers to see the end and leave: what they write after the removal would stay.  Those that do not
 * leave are asleep, and find the tombstone when they wake. */
static int await_workers(shoal_store *store, const char *id, int64_t deadline)
{
    static const double longest = 5, usual_lease = 10;
    job_key prefix = job_key_of(id, "worker/");
    int64_t until = base_time_after(base_now(), longest);
    uint32_t seen = 0;
    int64_t live = 0;
    int status;
    do {
        job_worker_keys keys = {0};
        shoal_store_wait(store, prefix.text, &seen, base_time_after(base_now(), 0.5));
        status = job_worker_keys_list(&keys, store, id, deadline);
        live = 0;
        for (int64_t i = 0; i < keys.count; i++)
            live += job_worker_key_alive(&keys.row[i], usual_lease);
        job_worker_keys_release(&keys);
    } while (status == SHOAL_OK && live > 0 && base_now() < until);
    return status;
}

/* The tombstone is written first and the spec removed last, so that an interrupted removal can be repeated and nobody
 * starts on a job that is half gone. */
int shoal_job_remove(shoal_store *store, const char *id, int64_t deadline)
{
    job_key spec = job_key_of(id, "spec"), all = job_key_of(id, "");
    shoal_listing page = {0};
    int status = job_id_check(id);
    if (status == SHOAL_OK)
        status = shoal_store_list(store, all.text, NULL, &page, deadline);
    if (status == SHOAL_OK && page.count == 0 && !page.more)
        status = shoal_fail(SHOAL_ABSENT, "there is no job %s in %s", id, shoal_store_describe(store).name);
    shoal_listing_release(&page);
    if (status == SHOAL_OK)
        status = shoal_store_put(store, job_key_gone(id).text, "", 0, NULL, NULL, deadline);
    if (status < 0)
        return status;
    int ended = shoal_job_cancel(store, id, "removed", deadline); /* a job that has ended, or has no spec, need not be
                                                                   * ended */
    if (ended == SHOAL_DENIED || ended == SHOAL_AGAIN)
        return ended;
    status = shoal_store_remove(store, job_key_open(id).text, deadline);
    if (status == SHOAL_OK)
        status = await_workers(store, id, deadline);
    if (status == SHOAL_OK)
        status = remove_queues(store, id, deadline);
    if (status == SHOAL_OK)
        status = remove_below(store, all.text, spec.text, deadline);
    if (status == SHOAL_OK)
        status = shoal_store_remove(store, spec.text, deadline);
    if (status == SHOAL_OK)
        status = sweep_tombstones(store, deadline);
    return status;
}
