/* When something will be there and when to ask for it: the arithmetic of waiting, without a clock or a store.
 *
 * Seconds are counted from the moment at which the round's model was put, which is the same for all workers, not from
 * when this one saw it: a worker that was late once would be late forever.  What a guess learns is when a thing was
 * put, by its maker's word, and never when it was found: if each looked when the others had looked before, a slow round
 * would make the next one slow. */
#ifndef JOB_GUESS_H
#define JOB_GUESS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/store/job_model.h"

/* This many rounds are remembered: few enough that rounds which have become longer for good are not asked after too
 * early for long. */
enum { JOB_GUESS_ROUNDS = 8 };

/* When something was there in the last rounds. */
typedef struct job_guess {
    double last[JOB_GUESS_ROUNDS];
    int64_t count;
} job_guess;

void job_guess_learn(job_guess *guess, double at);
/* When it may be there: as early as in the faster of the last rounds; 0 if nothing is known. */
double job_guess_early(const job_guess *guess);

/* How long the last rounds of a phase took, by the history of a model: the faster ones, and the usual time; 0 if
 * nothing is known. */
typedef struct job_length {
    double early, usual;
} job_length;
job_length job_guess_rounds(const job_trailer *trailer, const char *phase);

/* When something was put, by what its maker says: not before it was asked for without success (`absent`, negative for
 * never), and not after it was found; and then if what is said makes no sense. */
double job_guess_between(double said, double absent, double found);

/* What a request takes, after one that took so long.  One that brought something took longer for it, and tells only
 * what a request takes at most; and one that took far longer than usual tells little: the process may have been
 * stopped meanwhile. */
double job_guess_trip(double trip, double took, bool brought);

/* A worker that waits. */
typedef struct job_asking {
    double early;        /* when it may be there; 0 when unknown */
    double trip;         /* seconds of a request */
    double now;          /* seconds since the round's model was put */
    double elapsed;      /* seconds since this worker began the round */
    double first, asked; /* when it was first and last asked for; negative when not yet */
} job_asking;

/* When to ask next.  First so that the request arrives when the thing may be there; then after pauses that grow with
 * how long it has been asked for, so that what takes far longer than it may is not asked for far more often. */
double job_guess_ask(const job_asking *asking);

#endif
