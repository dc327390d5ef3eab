/* The worker's own record, rewritten by a thread so that a long map does not look like a death.  See job_run.h. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/world.h"
#include "engine/store/job_run.h"

struct job_beat {
    shoal_store *store;
    job_key worker, left;
    double lease;
    int64_t joined;
    pthread_mutex_t lock; /* of the record; never held across a call of the store */
    job_record record;
    base_thread *thread;
    _Atomic uint32_t stop;
};

static int put_record(job_beat *beat, const char *key, int64_t deadline)
{
    job_record record;
    void *bytes = NULL;
    size_t size = 0;
    pthread_mutex_lock(&beat->lock);
    beat->record.beats++;
    beat->record.seconds = -base_seconds_until(beat->joined);
    beat->record.counts = shoal_store_counted(beat->store);
    record = beat->record;
    pthread_mutex_unlock(&beat->lock);
    int status = job_record_encode(&bytes, &size, &record);
    if (status == SHOAL_OK)
        status = shoal_store_put_framed(beat->store, key, JOB_KIND_WORKER, bytes, size, NULL, NULL, deadline);
    base_free(&bytes);
    return status;
}

/* A record that could not be written is written at the next beat: others wait for a whole lease before they judge. */
static void run_beat(void *context)
{
    job_beat *beat = context;
    int64_t next = base_time_after(base_now(), beat->lease / 3);
    while (!atomic_load(&beat->stop)) {
        base_wait_word(&beat->stop, 0, next);
        if (atomic_load(&beat->stop) || base_now() < next)
            continue;
        next = base_time_after(base_now(), beat->lease / 3);
        put_record(beat, beat->worker.text, next);
    }
}

int job_beat_start(job_beat **out, shoal_store *store, const char *id, double lease, const job_record *record,
                   int64_t deadline)
{
    job_beat *beat = NULL;
    int status = base_alloc(&beat, 1, sizeof *beat, "a worker's record");
    if (status < 0)
        return status;
    beat->store = store;
    beat->worker = job_key_worker(id, record->worker);
    beat->left = job_key_left(id, record->worker);
    beat->lease = lease;
    beat->joined = base_now();
    beat->record = *record;
    pthread_mutex_init(&beat->lock, NULL);
    status = put_record(beat, beat->worker.text, deadline);
    if (status == SHOAL_OK) {
        status = base_thread_start(&beat->thread, run_beat, beat);
        if (status < 0)
            shoal_store_remove(store, beat->worker.text, deadline);
    }
    if (status < 0) {
        pthread_mutex_destroy(&beat->lock);
        base_free(&beat);
        return status;
    }
    *out = beat;
    return SHOAL_OK;
}

void job_beat_set(job_beat *beat, const job_record *record)
{
    pthread_mutex_lock(&beat->lock);
    int64_t beats = beat->record.beats;
    beat->record = *record;
    beat->record.beats = beats;
    pthread_mutex_unlock(&beat->lock);
}

int job_beat_now(job_beat *beat, int64_t deadline)
{
    return put_record(beat, beat->worker.text, deadline);
}

/* The last record is put before the other is removed: a worker that dies in between is in both places and silent. */
void job_beat_stop(job_beat **inout, const char *state, int64_t deadline)
{
    job_beat *beat = *inout;
    if (!beat)
        return;
    atomic_store(&beat->stop, 1);
    base_wake_word(&beat->stop, INT_MAX);
    pthread_mutex_lock(&beat->lock);
    snprintf(beat->record.state, sizeof beat->record.state, "%s", state ? state : "");
    beat->record.rescuing = -1;
    pthread_mutex_unlock(&beat->lock);
    base_thread_join(&beat->thread);
    if (state)
        put_record(beat, beat->left.text, deadline);
    shoal_store_remove(beat->store, beat->worker.text, deadline);
    pthread_mutex_destroy(&beat->lock);
    base_free(inout);
}
