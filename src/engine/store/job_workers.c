/* The workers of a job as they are seen from outside: which there are by two listings, and what each says of itself by
 * its record, at one request each.  See job_admin.h. */
#include <string.h>

#include "base/memory.h"
#include "engine/store/job_admin.h"
#include "engine/store/job_gang.h"
#include "engine/store/job_keys.h"
#include "engine/store/job_record.h"
#include "engine/store/job_run.h"

/* More records than there can be workers were forged to be read. */
enum { KEYS_MOST = 1 << 15, READERS = 16 };

/* ---- who there is ------------------------------------------------------------------------------------------------ */

void job_worker_keys_release(job_worker_keys *keys)
{
    base_free(&keys->row);
    *keys = (job_worker_keys){0};
}

static int add_keys(job_worker_keys *keys, const shoal_listing *page, bool left)
{
    size_t have = (size_t)keys->count;
    int status = base_grow(&keys->row, have, have + page->count + 1, sizeof *keys->row, "the workers");
    for (size_t i = 0; status == SHOAL_OK && i < page->count && keys->count < KEYS_MOST; i++) {
        uint64_t worker;
        if (job_key_read_worker(&worker, page->entries[i].key))
            keys->row[keys->count++] = (job_worker_key){.worker = worker, .left = left, .age = page->entries[i].age};
    }
    return status;
}

static int list_below(job_worker_keys *keys, shoal_store *store, const char *id, bool left, int64_t deadline)
{
    shoal_listing page = {0};
    int status;
    do {
        status = shoal_store_list(store, job_key_of(id, left ? "left/" : "worker/").text, NULL, &page, deadline);
        if (status == SHOAL_OK)
            status = add_keys(keys, &page, left);
    } while (status == SHOAL_OK && page.more && keys->count < KEYS_MOST);
    shoal_listing_release(&page);
    return status;
}

/* Workers that take part are listed first: one that leaves in between is then seen at least once, and if twice, it has
 * left. */
int job_worker_keys_list(job_worker_keys *out, shoal_store *store, const char *id, int64_t deadline)
{
    *out = (job_worker_keys){0};
    int status = list_below(out, store, id, false, deadline);
    int64_t taking_part = out->count;
    if (status == SHOAL_OK)
        status = list_below(out, store, id, true, deadline);
    for (int64_t i = 0; status == SHOAL_OK && i < taking_part; i++)
        for (int64_t j = taking_part; j < out->count; j++)
            if (out->row[i].worker == out->row[j].worker) {
                out->row[i] = out->row[j];
                out->row[j] = out->row[--out->count];
                break;
            }
    if (status < 0)
        job_worker_keys_release(out);
    return status;
}

bool job_worker_key_alive(const job_worker_key *key, double lease)
{
    return !key->left && key->age <= lease; /* also if the store does not say */
}

/* ---- what they say ----------------------------------------------------------------------------------------------- */

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

bool job_worker_saw_end(const shoal_job_worker *worker)
{
    return worker->left && (strncmp(worker->state, "done", 4) == 0 || strncmp(worker->state, "ended", 5) == 0);
}

bool job_worker_is_lost(const shoal_job_worker *worker)
{
    if (!worker->left)
        return !worker->alive;
    return strncmp(worker->state, "left", 4) != 0 && !job_worker_saw_end(worker);
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

typedef struct reading {
    shoal_store *store;
    const char *id;
    const job_worker_keys *keys;
    shoal_job_worker *worker;
    bool *there;
    double lease;
    int64_t deadline;
} reading;

/* Gets a worker's record, from where it was listed or, if the worker has left since then, from where it is now. */
static int get_record(shoal_blob *out, bool *left, const reading *all, const job_worker_key *from)
{
    int status = SHOAL_ABSENT;
    *left = from->left;
    if (!from->left)
        status = shoal_store_get_framed(all->store, job_key_worker(all->id, from->worker).text, JOB_KIND_WORKER, out,
                                        all->deadline);
    if (status != SHOAL_ABSENT)
        return status;
    *left = true;
    return shoal_store_get_framed(all->store, job_key_left(all->id, from->worker).text, JOB_KIND_WORKER, out,
                                  all->deadline);
}

/* Broken records, and those gone since the listing, are skipped. */
static int read_worker(void *context, int64_t i)
{
    const reading *all = context;
    shoal_job_worker *out = &all->worker[i];
    job_record record;
    shoal_blob blob = {0};
    bool left = false;
    int status = get_record(&blob, &left, all, &all->keys->row[i]);
    if (status == SHOAL_OK)
        status = job_record_decode(&record, blob.data, blob.size);
    if (status == SHOAL_OK) {
        copy_record(out, &record);
        out->age = blob.age;
        out->left = left;
        out->alive = !out->left && blob.age <= all->lease;
        all->there[i] = true;
    }
    shoal_blob_release(&blob);
    return status == SHOAL_ABSENT || status == SHOAL_BROKEN ? SHOAL_OK : status;
}

int job_worker_keys_read(shoal_job_worker **out, int64_t *count, const job_worker_keys *keys, shoal_store *store,
                         const char *id, double lease, int64_t deadline)
{
    reading all = {.store = store, .id = id, .keys = keys, .lease = lease, .deadline = deadline};
    int threads = job_store_is_near(store) ? 1 : READERS;
    *out = NULL;
    *count = 0;
    int status = base_alloc(&all.worker, (size_t)keys->count + 1, sizeof *all.worker, "the workers");
    if (status == SHOAL_OK)
        status = base_alloc(&all.there, (size_t)keys->count + 1, 1, "the workers");
    if (status == SHOAL_OK)
        status = job_gang_run(threads, keys->count, read_worker, &all);
    for (int64_t i = 0; status == SHOAL_OK && i < keys->count; i++)
        if (all.there[i])
            all.worker[(*count)++] = all.worker[i];
    base_free(&all.there);
    if (status < 0)
        base_free(&all.worker);
    *out = all.worker;
    return status;
}

int job_workers_read(shoal_job_worker **out, int64_t *count, shoal_store *store, const char *id, double lease,
                     int64_t deadline)
{
    job_worker_keys keys = {0};
    *out = NULL;
    *count = 0;
    int status = job_worker_keys_list(&keys, store, id, deadline);
    if (status == SHOAL_OK)
        status = job_worker_keys_read(out, count, &keys, store, id, lease, deadline);
    job_worker_keys_release(&keys);
    return status;
}
