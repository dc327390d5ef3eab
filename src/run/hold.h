/* Holding a running job to its deadline and its budget: what this process, which looks after the job's workers, knows
 * and decides.  What the job is held to, and how it stands, lies in the store (control/aim.h), so that `shoal job
 * deadline` can change it, `shoal job show` can tell it, and whoever resumes the job goes on with it. */
#ifndef RUN_HOLD_H
#define RUN_HOLD_H

#include "control/aim.h"
#include "outcome.h"

typedef struct run_hold run_hold;

/* What the options ask for, as an aim; the deadline counts from `started`, a moment of base_seconds().  SHOAL_USAGE for
 * what makes no sense.  *asked: whether they ask for anything. */
int run_hold_aim(control_aim *out, bool *asked, const run_workers_options *options, double started);
/* Of a job that has its id, before its workers are started.  Never NULL: a job that is held to nothing may be later. */
int run_hold_new(run_hold **out, shoal_outcome *outcome);
void run_hold_free(run_hold **hold);
/* How many workers to begin with; 0: it is held to nothing. */
int64_t run_hold_begin(run_hold *hold);
/* A round is over. */
void run_hold_round(run_hold *hold, const shoal_round *done, const shoal_round *next, double seconds);
/* Several times a second: how many workers there should be from now on, -1 when that is not said here.  SHOAL_STOPPED,
 * with a sentence, when the budget is spent or, with --or-stop, nothing meets what was asked for. */
int run_hold_tick(int64_t *workers, run_hold *hold, int64_t running);
/* The job has ended, well or not: puts how it stands, and tells it in a line. */
void run_hold_end(run_hold *hold, bool done);

#endif
