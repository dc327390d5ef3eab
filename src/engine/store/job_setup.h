/* Set-up: making a spec from a data set, and uploading the rows that workers can't reach. */
#ifndef JOB_SETUP_H
#define JOB_SETUP_H

#include "engine/store/job_spec.h"

/* SHOAL_USAGE, with a sentence about the field `name`, if no job's id can start with it. */
int job_setup_check_name(const char *name);
/* A new name: `name` and 64 random bits. */
int job_setup_id(char id[SHOAL_JOB_ID_BYTES], const char *name);
/* Makes the whole spec, hashes included; what the options do not set is chosen.  Nothing is written. */
int job_setup_spec(job_spec **out, shoal_store *store, const shoal_algorithm *algorithm, const void *config,
                   shoal_data *data, const double *weights, const shoal_job_options *options);
/* Puts the spec, and opens the job.  SHOAL_USAGE when there is another job of that name; the very same spec may be
 * there already. */
int job_setup_announce(shoal_store *store, job_spec *spec, int64_t deadline);
/* Announces slices and groups in the job's queues, and puts the marker of a running job; also again, when a store
 * forgot them.  A piece that is announced twice may be made twice, and counts once. */
int job_setup_open(shoal_store *store, const job_spec *spec, int64_t deadline);
/* Uploads the missing slices, several at once: one message in the set-up queue each.  A resumed job uses it too if its
 * first upload was interrupted. */
int job_setup_upload(shoal_store *store, const job_spec *spec, shoal_data *data, const double *weights,
                     const volatile int *stop, int64_t deadline);

#endif
