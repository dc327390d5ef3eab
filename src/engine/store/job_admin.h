/* What looking at jobs from outside shares: the records of all workers, the newest model. */
#ifndef JOB_ADMIN_H
#define JOB_ADMIN_H

#include <shoal/job.h>

#include "engine/store/job_model.h"

/* The records of all that take part, and of all that did. */
int job_workers_read(shoal_job_worker **out, int64_t *count, shoal_store *store, const char *id, double lease,
                     int64_t deadline);
/* Whether a worker that does not take part any more went without leaving: it died, or fell silent. */
bool job_worker_is_lost(const shoal_job_worker *worker);
void job_counts_add(shoal_store_counts *sum, const shoal_store_counts *more);

/* The newest model, round 0 included. */
int job_newest(job_model **out, shoal_store *store, const job_spec *spec, int64_t deadline);
/* Whether the job has been removed. */
int job_is_gone(bool *out, shoal_store *store, const char *id, int64_t deadline);
/* Makes sure that workers without a job of their own find this one. */
int job_open(shoal_store *store, const char *id, int64_t deadline);

#endif
