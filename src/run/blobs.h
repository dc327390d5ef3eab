/* Blobs beside the rows of a run (shoal_blobs): where maps get them, and where those end up that they put.
 *
 * A run of this process, or of ranks, gets and puts them where the request says.  Maps of a job put them below the job,
 * which all its workers can reach, and whoever follows the job copies them to their place.  What they get is read from
 * where it is, if all workers see it, and otherwise put into the job's store first. */
#ifndef RUN_BLOBS_H
#define RUN_BLOBS_H

#include "engine/store/job_spec.h"
#include "outcome.h"

extern const shoal_option *const run_blobs_options; /* of run_blobs: --blobs-from, --blobs-to */

/* Whether the learner's maps may get and put blobs. */
bool run_has_blobs(const learn_face *face);
/* Opens what the request names, so that a wrong name is told before the work. */
int run_blobs_open(shoal_outcome *outcome);
void run_blobs_close(shoal_outcome *outcome);
/* Before the first map: whether blobs may go where they are to go, and what is done with those that are there. */
int run_blobs_begin(const shoal_outcome *outcome);

/* What maps of this process get blobs from: it tells the watcher how many they have got. */
int run_blobs_watch(const shoal_blobs **out, shoal_outcome *outcome);
/* Tells the watcher, now and then, how many blobs the workers of a job have put. */
void run_blobs_follow(shoal_outcome *outcome);

/* What a job's `from` is (shoal_job_options); "" when run_blobs_upload has to put them. */
const char *run_blobs_source(const shoal_outcome *outcome);
/* Puts the blobs that the rows name into the job's store; SHOAL_USAGE if the learner can't tell which. */
int run_blobs_upload(const shoal_outcome *outcome);
/* Puts those that an upload which was cut off has not put, from `source`; where that is NULL, SHOAL_ABSENT if there are
 * any. */
int run_blobs_upload_missing(const shoal_outcome *outcome, const job_spec *spec, const char *source);

/* Runs a task for each of so many items, on a few threads, since most of the time each waits for a store. */
int run_blobs_each(int64_t items, int (*task)(void *, int64_t, int), void *context);

/* Copies what a job's maps have put to its place, and puts the list of all, which comes last. */
int run_blobs_finish(shoal_outcome *outcome);

#endif
