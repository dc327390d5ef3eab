/* Blobs that maps of a job get and put: where its spec says they are, and below the job's own keys. */
#ifndef JOB_BLOBS_H
#define JOB_BLOBS_H

#include "engine/blobs.h"
#include "engine/store/job_roots.h"
#include "engine/store/job_spec.h"

/* What a worker's maps see.  All zero: nothing. */
typedef struct job_blobs {
    engine_blobs *from, *to;
    job_roots *roots;
} job_blobs;

/* *store must last as long.  SHOAL_DENIED for blobs that this worker may not read. */
int job_blobs_open(job_blobs *out, const job_spec *spec, shoal_store *store, const shoal_worker_options *options,
                   double patience);
void job_blobs_release(job_blobs *blobs);

#endif
