/* Which jobs a store has, and how one stands.  See job.h and job_admin.h. */
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

/* The job that a key is of; false for what others have put below jobs/. */
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

/* The job of the first key behind `after` that is of one; *found says whether there is any. */
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

/* A job may have a great many keys, so each is passed over with one request: '~' comes behind all that follow
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

/* ---- workers ----------------------------------------------------------------------------------------------------- */

void job_counts_add(shoal_store_counts *sum, const shoal_store_counts *more)
{
    for (int i = 0; i < SHOAL_REQUEST_KINDS; i++)
        sum->requests[i] += more->requests[i];
    for (int i = 0; i < SHOAL_CAUSES; i++)
        sum->causes[i] += more->causes[i];
    sum->bytes_sent += more->bytes_sent;
    sum->bytes_received += more->bytes_received;
    sum->price += more->price;
}

bool job_worker_is_lost(const shoal_job_worker *worker)
{
    if (!worker->left)
        return !worker->alive;
    return strncmp(worker->state, "left", 4) != 0 && strncmp(worker->state, "done", 4) != 0;
}

static void copy_record(shoal_job_worker *out, const job_record *record)
{
    _Static_assert(sizeof out->log == sizeof record->log && sizeof out->state == sizeof record->state, "copied whole");
    memcpy(out->host, record->host, sizeof out->host);
    memcpy(out->kernel, record->kernel, sizeof out->kernel);
    memcpy(out->version, record->version, sizeof out->version);
    memcpy(out->state, record->state, sizeof out->state);
    memcpy(out->log, record->log, sizeof out->log);
    out->id = record->worker;
    out->pid = record->pid;
    out->slots = record->slots <= INT32_MAX ? (int)record->slots : INT32_MAX;
    out->roles = record->roles;
    out->seconds = record->seconds;
    out->round = record->round;
    out->maps = record->maps;
    out->doubled = record->doubled;
    out->fetched = record->fetched;
    out->hits = record->hits;
    out->bytes = record->bytes;
    out->requests = record->counts;
}

/* Reads one record; what is broken or gone since the listing is left out. */
static int read_worker(shoal_job_worker *out, bool *there, shoal_store *store, const char *key, double lease,
                       int64_t deadline)
{
    job_record record;
    shoal_blob blob = {0};
    *there = false;
    int status = shoal_store_get_framed(store, key, JOB_KIND_WORKER, &blob, deadline);
    if (status == SHOAL_OK)
        status = job_record_decode(&record, blob.data, blob.size);
    if (status == SHOAL_OK) {
        copy_record(out, &record);
        out->age = blob.age;
        out->left = strstr(key, "/left/") != NULL;
        out->alive = !out->left && blob.age <= lease;
        *there = true;
    }
    shoal_blob_release(&blob);
    return status == SHOAL_ABSENT || status == SHOAL_BROKEN ? SHOAL_OK : status;
}

static int read_workers_below(shoal_job_worker **out, int64_t *count, shoal_store *store, const char *prefix,
                              double lease, int64_t deadline)
{
    shoal_listing page = {0};
    int status;
    do {
        status = shoal_store_list(store, prefix, NULL, &page, deadline);
        if (status == SHOAL_OK)
            status = base_grow(out, (size_t)*count, (size_t)*count + page.count + 1, sizeof **out, "the workers");
        for (size_t i = 0; status == SHOAL_OK && i < page.count; i++) {
            bool there = false;
            status = read_worker(&(*out)[*count], &there, store, page.entries[i].key, lease, deadline);
            *count += there;
        }
    } while (status == SHOAL_OK && page.more);
    shoal_listing_release(&page);
    return status;
}

/* Those that did first: one that leaves in between is then met at least once. */
int job_workers_read(shoal_job_worker **out, int64_t *count, shoal_store *store, const char *id, double lease,
                     int64_t deadline)
{
    *out = NULL;
    *count = 0;
    int status = read_workers_below(out, count, store, job_key_of(id, "worker/").text, lease, deadline);
    int64_t taking_part = *count;
    if (status == SHOAL_OK)
        status = read_workers_below(out, count, store, job_key_of(id, "left/").text, lease, deadline);
    for (int64_t i = 0; status == SHOAL_OK && i < taking_part; i++)
        for (int64_t j = taking_part; j < *count; j++)
            if ((*out)[i].id == (*out)[j].id) { /* it left while we looked */
                (*out)[j] = (*out)[--*count];
                (*out)[i].left = true;
                (*out)[i].alive = false;
                break;
            }
    if (status < 0) {
        base_free(out);
        *count = 0;
    }
    return status;
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

/* How many records there are of workers that take part. */
static int count_workers(int64_t *out, shoal_store *store, const char *id, int64_t deadline)
{
    shoal_listing page = {0};
    int status;
    *out = 0;
    do {
        status = shoal_store_list(store, job_key_of(id, "worker/").text, NULL, &page, deadline);
        *out += status == SHOAL_OK ? (int64_t)page.count : 0;
    } while (status == SHOAL_OK && page.more);
    shoal_listing_release(&page);
    return status;
}

static int describe_workers(shoal_job *job, const job_trailer *trailer, shoal_store *store, bool workers,
                            int64_t deadline)
{
    if (!workers) {
        int status = count_workers(&job->workers, store, job->id, deadline);
        job->live = job->workers;
        return status;
    }
    int status = job_workers_read(&job->worker, &job->workers, store, job->id, job->lease, deadline);
    for (int64_t i = 0; status == SHOAL_OK && i < job->workers; i++) {
        job->live += job->worker[i].alive;
        job_counts_add(&job->requests, &job->worker[i].requests);
    }
    return status == SHOAL_OK ? describe_holders(job, trailer) : status;
}

int shoal_job_describe(shoal_job **out, shoal_store *store, const char *id, bool workers, int64_t deadline)
{
    job_spec *spec = NULL;
    job_model *model = NULL;
    shoal_job *job = NULL;
    int status = job_spec_get(&spec, store, id, deadline);
    if (status == SHOAL_OK)
        status = job_newest(&model, store, spec, deadline);
    if (status == SHOAL_OK)
        status = base_alloc(&job, 1, sizeof *job, "how a job stands");
    if (status == SHOAL_OK)
        status = describe_spec(job, spec);
    if (status == SHOAL_OK)
        status = describe_model(job, model);
    if (status == SHOAL_OK)
        status = shoal_job_wanted(&job->want, store, id, deadline);
    if (status == SHOAL_OK)
        status = describe_workers(job, &model->trailer, store, workers, deadline);
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
