/* Rows, weights and target of a run. */
#ifndef RUN_LOAD_H
#define RUN_LOAD_H

#include "outcome.h"

/* Loads what the request names: on every rank or once a host (ranks_data.h).  Collective. */
int run_load(shoal_outcome *outcome);
/* The same by this process alone.  Weights that are there already are not read. */
int run_load_alone(shoal_outcome *outcome);
/* The same, with the rows as the file has them. */
int run_load_rows(shoal_outcome *outcome);
/* After a learner refused the rows: it stops at the first value that is not a number, so if values are missing people
 * are told how many, and what to do.  Returns `status`. */
int run_explain_missing(const shoal_outcome *outcome, int status);
/* Notes what the data are called and their shape. */
int run_note_data(shoal_outcome *outcome, const char *name, int64_t rows, int64_t columns, shoal_type type);

#endif
