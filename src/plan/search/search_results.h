/* Trials that were made elsewhere, from a table of text:
 *
 *     machine,count,seconds,cost,outcome
 *     c7i.large,4,812.4,,done
 *
 * Columns are found by their names, in any order: one for every parameter of the space that has several values, and
 * seconds; cost (US dollars) and outcome (done, failed, timed out) may be left out or empty. */
#ifndef PLAN_SEARCH_RESULTS_H
#define PLAN_SEARCH_RESULTS_H

#include "search_trial.h"

/* The caller frees *out.  *ignored, for people, names the columns that mean nothing; "" for none.  SHOAL_INVALID names
 * the line: a value that the space does not have, a configuration that is there twice (both lines), a number that is
 * none. */
int plan_search_results_read(plan_trial_record **out, int64_t *count, char ignored[256], const char *path,
                             const plan_search_space *space);

#endif
