/* The stages of a run: what shoal_request_run and shoal_request_resume go through. */
#ifndef RUN_RUN_H
#define RUN_RUN_H

#include "outcome.h"

/* On the threads of this process, or on ranks. */
int run_here(shoal_outcome *outcome);
/* On workers: submits and follows.  Then outcome->result is there, or away.detached is set.  SHOAL_STOPPED with
 * away.resume when the job stopped and can be resumed. */
int run_away_from_here(shoal_outcome *outcome);
/* Goes on with the job that is in outcome->jobs and that away names by its id and the hash of its spec. */
int run_resumed(shoal_outcome *outcome);
/* Once all outputs are written: removes a job that nobody asked to keep.  `status` is how writing them went, and is
 * returned. */
int run_away_close(shoal_outcome *outcome, int status);

/* Writes all outputs, then removes what was kept for a crash.  Collective. */
int run_finish(shoal_outcome *outcome);
/* Refuses what can be refused before anything is read, and meets other ranks. */
int run_check(const shoal_request *request);

/* Loads the rows by this process alone, and settles the learner's options by them, as before a run: for plans of it. */
int run_prepare(shoal_outcome **out, const shoal_request *request);

/* shoal_request_run, for who holds the ranks of this process itself (ranks.h). */
int run_request(shoal_outcome **out, const shoal_request *request);

#endif
