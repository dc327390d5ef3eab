/* Shared by the calls that look at jobs from outside: the records of all workers, the newest model. */
#ifndef JOB_ADMIN_H
#define JOB_ADMIN_H

#include <shoal/job.h>

#include "engine/store/job_model.h"

/* A worker by the key of its record. */
typedef struct job_worker_key {
    uint64_t worker;
    bool left;  /* it no longer takes part */
    double age; /* seconds since it last wrote; -1 when the store does not tell */
} job_worker_key;

typedef struct job_worker_keys {
    job_worker_key *row;
    int64_t count;
} job_worker_keys;

/* All that take part, and all that did: two requests, plus one for every thousand of them. */
int job_worker_keys_list(job_worker_keys *out, shoal_store *store, const char *id, int64_t deadline);
void job_worker_keys_release(job_worker_keys *keys);
/* Whether it takes part and has written within the lease, as far as the store says. */
bool job_worker_key_alive(const job_worker_key *key, double lease);
/* Their records, one request each, several at once; *count may be less than was listed. */
int job_worker_keys_read(shoal_job_worker **out, int64_t *count, const job_worker_keys *keys, shoal_store *store,
                         const char *id, double lease, int64_t deadline);
/* Both. */
int job_workers_read(shoal_job_worker **out, int64_t *count, shoal_store *store, const char *id, double lease,
                     int64_t deadline);
/* Whether a worker stayed until the job ended, well or badly. */
bool job_worker_saw_end(const shoal_job_worker *worker);
/* Whether a worker that no longer takes part did not leave by itself: it died or fell silent. */
bool job_worker_is_lost(const shoal_job_worker *worker);
void job_counts_add(shoal_store_counts *sum, const shoal_store_counts *more);

/* The newest model, round 0 included. */
int job_newest(job_model **out, shoal_store *store, const job_spec *spec, int64_t deadline);
/* Whether the job has been removed. */
int job_is_gone(bool *out, shoal_store *store, const char *id, int64_t deadline);
/* Makes sure that workers without a job find this one. */
int job_open(shoal_store *store, const char *id, int64_t deadline);

#endif
