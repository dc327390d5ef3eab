/* Models as they lie in the store: a round, or the end of the job, followed by a trailer of hints.
 *
 * The content is a function of the spec: whoever computes round R's model gets the same bytes.  The trailer is not: it
 * says who should do what in this round, and how the job has gone so far.  It is outside the model's checksum, and
 * nothing in a result depends on it. */
#ifndef JOB_MODEL_H
#define JOB_MODEL_H

#include <shoal/job.h>

#include "engine/store/job_spec.h"

#define JOB_KIND_MODEL SHOAL_KIND('m', 'o', 'd', 'l')

enum { JOB_HISTORY_MOST = 64 };

/* A worker that takes part. */
typedef struct job_member {
    uint64_t worker;
    uint32_t slots, roles;
} job_member;

/* A finished round, as traces and progress report it. */
typedef struct job_step {
    int64_t number, step, steps, k;
    double objective, change, seconds; /* seconds from the job's start to its end, as its leaders saw them */
    char phase[24];
} job_step;

typedef struct job_trailer {
    int64_t members;
    job_member *member;
    int64_t pieces;  /* units of the round's tree: slices, and pieces above them (job_tree_units) */
    int32_t *holder; /* of each: an index into member, or -1 for nobody */
    double seconds;  /* since the job's first round began */
    int64_t doubled; /* pieces that were made for others */
    int64_t counter[SHOAL_COUNTERS];
    int phases;
    shoal_phase phase[SHOAL_PHASES_MOST];
    int64_t steps; /* the last few, oldest first */
    job_step step[JOB_HISTORY_MOST];
} job_trailer;

typedef struct job_model {
    int64_t number;
    shoal_job_state state; /* RUNNING has a round, DONE a result, the others a status and a message */
    shoal_round *round;
    shoal_result *result;
    int status;
    char *message;
    uint32_t check; /* CRC32C of the content: pieces name it */
    bool unread;    /* an end too large to hold here: only its state is known */
    job_trailer trailer;
} job_model;

void job_model_free(job_model **model);
void job_trailer_release(job_trailer *trailer);
int job_trailer_copy(job_trailer *out, const job_trailer *from);

/* Encodes a model; sets its check. */
int job_model_encode(void **out, size_t *size, job_model *model);
int job_model_decode(job_model **out, int64_t number, const void *bytes, size_t size);
/* Round 0, which is in the spec; its trailer assigns nothing.  Takes a copy of the spec's round. */
int job_model_first(job_model **out, const job_spec *spec);
/* Gets model `number` > 0; SHOAL_ABSENT if it is not there. */
int job_model_get(job_model **out, shoal_store *store, const char *id, int64_t number, int64_t deadline);
/* The same once it is there; SHOAL_ABSENT when it is not at the moment `until`. */
int job_model_await(job_model **out, shoal_store *store, const char *id, int64_t number, int64_t until,
                    int64_t deadline);

/* The first bytes of model `number`: what it claims to be, and the size of the blob, which may be anything.
 * SHOAL_BROKEN if these are not the first bytes of that model. */
int job_model_peek(shoal_job_state *state, int64_t *whole, shoal_store *store, const char *id, int64_t number,
                   int64_t deadline);

/* Whether a model's round or result fits the learner and the rows of this job, whose round 0 was checked: SHOAL_BROKEN
 * otherwise. */
int job_model_check(const job_model *model, const job_spec *spec, const shoal_algorithm *algorithm);
/* The same for a caller that knows the job's learner only if it is among `algorithms`, and nothing of its round 0;
 * anything but a result passes. */
int job_model_check_end(const job_model *model, const job_spec *spec, const shoal_algorithm *const *algorithms);
/* The one of that name; NULL when there is none.  `algorithms` ends with NULL, or is NULL. */
const shoal_algorithm *job_find_algorithm(const shoal_algorithm *const *algorithms, const char *name);

/* The newest model there is, by one listing: its number, 0 when there is none beyond the spec's. */
int job_head(int64_t *out, shoal_store *store, const char *id, int64_t deadline);

#endif
