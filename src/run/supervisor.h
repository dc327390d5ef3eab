/* Looking after the workers of a job that goes on without the process that submitted it. */
#ifndef RUN_SUPERVISOR_H
#define RUN_SUPERVISOR_H

#include "outcome.h"

/* Starts `shoal job resume` in its own session, which starts the workers and writes the outputs in the end. */
int run_supervise(const shoal_outcome *outcome);
/* Seconds without any worker, or without the store, after which whoever follows a job gives up. */
double run_patience(const shoal_outcome *outcome);
/* Notes where the rows of a job are. */
int run_note_source(run_away *away, const char *source, const char *place);

#endif
