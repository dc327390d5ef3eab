/* Which jobs a store has, and the state of one.  See job.h and job_admin.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/hex.h"
#include "base/memory.h"
#include "engine/store/job_admin.h"
#include "engine/store/job_keys.h"
#include "engine/store/job_record.h"

/* ---- which there are --------------------------------------------------------------------------------------------- */

typedef struct job_names {
    shoal_job_id *id;
    size_t count, room;
} job_names;

static int add_name(job_names *names, const char *id)
{
    if (names->count == names->room) {
        size_t room = names->room ? 2 * names->room : 16;
        int status = base_grow(&names->id, names->room, room, sizeof *names->id, "the names of jobs");
        if (status < 0)
            return status;
        names->room = room;
    }
    snprintf(names->id[names->count++].text, sizeof names->id->text, "%s", id);
    return SHOAL_OK;
}

/* The job that a key belongs to; false for keys that others put below jobs/. */
static bool read_id(char id[SHOAL_JOB_ID_BYTES], const char *key)
{
    const char *name = key + strlen("jobs/");
    size_t length = strcspn(name, "/");
    if (length >= SHOAL_JOB_ID_BYTES)
        return false;
    memcpy(id, name, length);
    id[length] = '\0';
    return job_id_check(id) == SHOAL_OK;
}

/* The job of the first key after `after` that belongs to one; *found says whether there is any. */
static int first_job(char id[SHOAL_JOB_ID_BYTES], bool *found, shoal_store *store, const char *after, int64_t deadline)
{
    shoal_listing page = {0};
    int status;
    *found = false;
    do {
        status = shoal_store_list(store, "jobs/", after, &page, deadline);
        for (size_t i = 0; status == SHOAL_OK && i < page.count && !*found; i++)
            *found = read_id(id, page.entries[i].key);
    } while (status == SHOAL_OK && !*found && page.more);
    shoal_listing_release(&page);
    return status;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const shoal_job_id *)a)->text, ((const shoal_job_id *)b)->text);
}

/* A job may have a great many keys, so each job is skipped with one request: '~' sorts after everything that follows
 * jobs/ID/. */
int shoal_job_list(shoal_job_id **out, int64_t *count, shoal_store *store, int64_t deadline)
{
    char id[SHOAL_JOB_ID_BYTES], after[sizeof "jobs//~" + SHOAL_JOB_ID_BYTES] = "";
    job_names names = {0};
    bool found = false;
    int status;
    *out = NULL;
    *count = 0;
    while ((status = first_job(id, &found, store, *after ? after : NULL, deadline)) == SHOAL_OK && found) {
        if ((status = add_name(&names, id)) < 0)
            break;
        snprintf(after, sizeof after, "jobs/%s/~", id);
    }
    if (status < 0) {
        base_free(&names.id);
        return status;
    }
    if (names.count > 0)
        qsort(names.id, names.count, sizeof *names.id, compare_names);
    *out = names.id;
    *count = (int64_t)names.count;
    return SHOAL_OK;
}

void shoal_job_list_free(shoal_job_id **ids)
{
    base_free(ids);
}

/* ---- how it stands ----------------------------------------------------------------------------------------------- */

int job_newest(job_model **out, shoal_store *store, const job_spec *spec, int64_t deadline)
{
    enum { TRIES = 20 };
    int status = SHOAL_ABSENT;
    for (int i = 0; i < TRIES && (status == SHOAL_ABSENT || status == SHOAL_BROKEN); i++) {
        int64_t head = 0; /* rounds may be swept between the listing and the get */
        status = job_head(&head, store, spec->id, deadline);
        if (status == SHOAL_OK)
            status = head > 0 ? job_model_get(out, store, spec->id, head, deadline) : job_model_first(out, spec);
    }
    return status;
}

static int describe_spec(shoal_job *job, const job_spec *spec)
{
    memcpy(job->id, spec->id, sizeof job->id);
    memcpy(job->version, spec->version, sizeof job->version);
    memcpy(job->algorithm, spec->algorithm, sizeof job->algorithm);
    base_hex_write(job->spec, spec->sha256, sizeof spec->sha256);
    job->source = job_source_words[spec->source];
    job->shape = spec->shape;
    job->created = spec->created;
    job->lease = spec->lease;
    job->slices = spec->slices;
    job->pieces = spec->tree.pieces;
    job->levels = spec->tree.levels;
    for (int i = 0; i < spec->codes && i < SHOAL_CODE_MOST; i++) {
        snprintf(job->code[i].name, sizeof job->code[i].name, "%s", spec->code[i].name);
        base_hex_write(job->code[i].sha256, spec->code[i].hash, BASE_HASH_SIZE);
    }
    job->codes = spec->codes;
    int status = base_copy_text(&job->data, spec->data_name ? spec->data_name : "");
    if (status == SHOAL_OK && spec->settings)
        status = base_copy_text(&job->settings, spec->settings);
    return status;
}

static int describe_model(shoal_job *job, const job_model *model)
{
    const job_trailer *trailer = &model->trailer;
    job->state = model->state;
    job->round = model->number;
    job->objective = job->change = NAN;
    if (model->round) {
        memcpy(job->phase, model->round->phase, sizeof job->phase);
        job->step = model->round->step;
        job->steps = model->round->steps;
        job->objective = model->round->objective;
        job->change = model->round->change;
    } else if (trailer->steps > 0) {
        memcpy(job->phase, trailer->step[trailer->steps - 1].phase, sizeof job->phase);
    }
    if (model->result)
        job->objective = shoal_result_number(model->result, "objective");
    job->status = model->status;
    job->seconds = trailer->seconds;
    job->doubled = trailer->doubled;
    job->phases = trailer->phases;
    memcpy(job->phase_seconds, trailer->phase, sizeof job->phase_seconds);
    return model->message ? base_copy_text(&job->message, model->message) : SHOAL_OK;
}

/* A damaged model does not end the job: workers remove it, and continue from an older one or from the spec.  Until
 * there are some, the job is in that round, and its message says what is wrong. */
static int describe_damage(shoal_job *job, job_model **model, shoal_store *store, const job_spec *spec,
                           int64_t deadline)
{
    char why[1024], message[1200];
    int64_t head = 0;
    snprintf(why, sizeof why, "%s", shoal_error());
    snprintf(message, sizeof message, "damaged: %s; resume the job, and workers compute it again", why);
    int status = job_head(&head, store, spec->id, deadline);
    if (status == SHOAL_OK)
        status = job_model_first(model, spec);
    if (status == SHOAL_OK)
        status = describe_model(job, *model);
    job->round = head;
    return status == SHOAL_OK ? base_copy_text(&job->message, message) : status;
}

static int64_t find_worker(const shoal_job *job, uint64_t id)
{
    for (int64_t i = 0; i < job->workers; i++)
        if (job->worker[i].id == id)
            return i;
    return -1;
}

static int describe_holders(shoal_job *job, const job_trailer *trailer)
{
    int status = base_alloc(&job->holder, (size_t)job->slices, sizeof *job->holder, "the holders of slices");
    for (int64_t i = 0; status == SHOAL_OK && i < job->slices; i++) {
        int32_t member = i < trailer->pieces ? trailer->holder[i] : -1;
        job->holder[i] =
            member >= 0 && member < trailer->members ? find_worker(job, trailer->member[member].worker) : -1;
        if (job->holder[i] >= 0)
            job->worker[job->holder[i]].slices++;
    }
    return status;
}

static void count_workers(shoal_job *job, const job_worker_keys *keys)
{
    job->workers = keys->count;
    job->live = job->silent = job->left = 0;
    for (int64_t i = 0; i < keys->count; i++) {
        bool alive = job_worker_key_alive(&keys->row[i], job->lease);
        job->live += alive;
        job->left += keys->row[i].left;
        job->silent += !keys->row[i].left && !alive;
    }
}

/* By their records, which are slightly newer than the listing. */
static void count_records(shoal_job *job)
{
    job->live = job->silent = job->left = 0;
    for (int64_t i = 0; i < job->workers; i++) {
        const shoal_job_worker *worker = &job->worker[i];
        job->live += worker->alive;
        job->left += worker->left;
        job->silent += !worker->left && !worker->alive;
        job_counts_add(&job->requests, &worker->requests);
    }
}

static int describe_workers(shoal_job *job, const job_trailer *trailer, shoal_store *store, int64_t records,
                            int64_t deadline)
{
    job_worker_keys keys = {0};
    int status = job_worker_keys_list(&keys, store, job->id, deadline);
    if (status == SHOAL_OK)
        count_workers(job, &keys);
    bool read = status == SHOAL_OK && records > 0 && keys.count <= records;
    if (read)
        status = job_worker_keys_read(&job->worker, &job->workers, &keys, store, job->id, job->lease, deadline);
    job_worker_keys_release(&keys);
    if (status == SHOAL_OK && read) {
        count_records(job);
        status = describe_holders(job, trailer);
    }
    return status;
}

int shoal_job_describe(shoal_job **out, shoal_store *store, const char *id, int64_t records, int64_t deadline)
{
    job_spec *spec = NULL;
    job_model *model = NULL;
    shoal_job *job = NULL;
    int status = job_spec_get(&spec, store, id, deadline);
    if (status == SHOAL_OK)
        status = base_alloc(&job, 1, sizeof *job, "the state of a job");
    if (status == SHOAL_OK)
        status = describe_spec(job, spec);
    if (status == SHOAL_OK) {
        status = job_newest(&model, store, spec, deadline);
        status = status == SHOAL_BROKEN ? describe_damage(job, &model, store, spec, deadline)
                 : status == SHOAL_OK   ? describe_model(job, model)
                                        : status;
    }
    if (status == SHOAL_OK)
        status = shoal_job_wanted(&job->want, store, id, deadline);
    if (status == SHOAL_OK)
        status = describe_workers(job, &model->trailer, store, records, deadline);
    if (status == SHOAL_OK) {
        *out = job;
        job = NULL;
    }
    shoal_job_free(&job);
    job_model_free(&model);
    job_spec_free(&spec);
    return status;
}

void shoal_job_free(shoal_job **job)
{
    if (!*job)
        return;
    base_free(&(*job)->data);
    base_free(&(*job)->settings);
    base_free(&(*job)->message);
    base_free(&(*job)->worker);
    base_free(&(*job)->holder);
    base_free(job);
}

static int fail_not_done(const job_model *model, const char *id)
{
    switch (model->state) {
    case SHOAL_JOB_FAILED: return shoal_fail(SHOAL_STOPPED, "job %s failed: %s", id, model->message);
    case SHOAL_JOB_CANCELLED:
        return shoal_fail(SHOAL_STOPPED, "job %s was cancelled (%s) and has no result", id, model->message);
    default:
        return shoal_fail(SHOAL_STOPPED, "job %s has no result yet: it is in round %lld (%s)", id,
                          (long long)model->number, model->round->phase);
    }
}

int shoal_job_result(shoal_result **out, shoal_store *store, const char *id, const shoal_algorithm *const *algorithms,
                     int64_t deadline)
{
    job_spec *spec = NULL;
    job_model *model = NULL;
    int status = job_spec_get(&spec, store, id, deadline);
    if (status == SHOAL_OK)
        status = job_newest(&model, store, spec, deadline);
    if (status == SHOAL_BROKEN && spec)
        status = shoal_fail(SHOAL_BROKEN, "job %s: its result is damaged: %s; resume the job to compute it again", id,
                            shoal_error());
    if (status == SHOAL_OK && !model->result)
        status = fail_not_done(model, id);
    if (status == SHOAL_OK && (status = job_model_check_end(model, spec, algorithms)) < 0)
        status = shoal_fail(status, "job %s: %s", id, shoal_error());
    if (status == SHOAL_OK) {
        *out = model->result;
        model->result = NULL;
    }
    job_model_free(&model);
    job_spec_free(&spec);
    return status;
}
