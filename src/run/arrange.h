/* The rows of a run that are not in the order of DATA: shuffled, or with those of another file among them, which are
 * held out.
 *
 * What is held out of a stratum are its last rows (shoal_shape), so the rows of the other file are dealt behind the
 * stratum's own.  That makes them rows like any others: they go to threads, ranks and workers with their stratum, and
 * the result has the same bits wherever it runs. */
#ifndef RUN_ARRANGE_H
#define RUN_ARRANGE_H

#include "outcome.h"

/* What the learner's options ask for; all zero for nothing. */
learn_arrangement run_arrangement_of(const shoal_request *request);
/* Arranges the rows that were loaded.  SHOAL_USAGE where they stay in a store, SHOAL_INVALID where the rows of the
 * other file do not go with them. */
int run_arrange(shoal_outcome *outcome);
/* Notes in outcome and config how many of its rows are held out, where another process arranged them. */
void run_arrange_note(shoal_outcome *outcome, int64_t held);

#endif
