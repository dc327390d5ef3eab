/* The names of a job's blobs and queues.  Numbers are padded with zeros, so that names sort as numbers do.
 *
 *     open/ID                               a running job: who looks for work looks here
 *     gone/ID                               a removed job, for a day
 *     jobs/ID/spec                          what to run
 *     jobs/ID/data/SLICE, .../weights/SLICE rows and weights that were uploaded
 *     jobs/ID/code/SHA256                   files that the job brings along
 *     jobs/ID/from/NAME, .../to/NAME        blobs that maps get and put
 *     jobs/ID/want                          how many workers whoever starts them should keep up
 *     jobs/ID/aim, jobs/ID/held             what the job is held to, and how that stands (control/aim.h)
 *     jobs/ID/round/R/model                 model of round R, R > 0, or the end; only if absent
 *     jobs/ID/round/R/kept   what rounds from R on keep for the next update (shoal_kept), where R brought something new
 *     jobs/ID/round/R/LEVEL/PARENT/INDEX    a piece of round R: of a slice at level 0, of a group above; only if absent
 *     jobs/ID/round/R/LEVEL/PARENT/INDEX/RANGE    the same of one range, where sums are reduced in ranges
 *     jobs/ID/worker/W                      record of a worker that takes part, rewritten every third of a lease
 *     jobs/ID/left/W                        last record of one that does not any more
 *     queues jobs/ID/setup, map, reduce, last
 * */
#ifndef JOB_KEYS_H
#define JOB_KEYS_H

#include <stdbool.h>
#include <shoal/job.h>

#include "engine/store/job_tree.h"

typedef struct job_key {
    char text[192];
} job_key;

/* jobs/ID/NAME, as job_key_of(id, "spec"). */
job_key job_key_of(const char *id, const char *name);
job_key job_key_open(const char *id);
job_key job_key_gone(const char *id);
job_key job_key_data(const char *id, int64_t slice);
job_key job_key_weights(const char *id, int64_t slice);
job_key job_key_model(const char *id, int64_t round);
job_key job_key_kept(const char *id, int64_t round);
/* The prefix of a round; ends with '/'. */
job_key job_key_round(const char *id, int64_t round);
/* All ranges of a slice lie under one key. */
job_key job_key_piece(const char *id, int64_t round, const job_tree *tree, int64_t piece);
/* The prefix of all children of a piece; ends with '/'. */
job_key job_key_children(const char *id, int64_t round, const job_tree *tree, int64_t piece);
job_key job_key_worker(const char *id, uint64_t worker);
job_key job_key_left(const char *id, uint64_t worker);

/* Instead of a piece: what else a round has. */
enum { JOB_KEY_MODEL = -1, JOB_KEY_KEPT = -2 };

/* The round and the piece that a key below jobs/ID/round/ names, or one of the above; of a slice in ranges, the first
 * one.  False for anything else.  Without a tree (NULL) pieces are not told apart: *piece is 0 for each. */
bool job_key_read_round(int64_t *round, int64_t *piece, const char *id, const job_tree *tree, const char *key);
/* The worker that a key below worker/ or left/ names. */
bool job_key_read_worker(uint64_t *worker, const char *key);
/* Whether text may be the name of a job: 1 to 63 letters, digits, '-' and '_', a letter or digit first.  SHOAL_USAGE
 * otherwise. */
int job_id_check(const char *id);

#endif
