/* One trial of a search, as it is run, kept, read from elsewhere and shown. */
#ifndef PLAN_SEARCH_TRIAL_H
#define PLAN_SEARCH_TRIAL_H

#include <stdbool.h>
#include <stdint.h>

#include "search_space.h"

typedef struct plan_trial_record {
    int64_t candidate;
    plan_outcome outcome;
    double seconds;
    double told_dollars;        /* what the command, or a file, says that it cost; NaN when nobody did */
    int exit_code, signal_sent; /* of a failed one: how it ended; 0 otherwise, or when that is not known */
    char said[96];              /* of a failed one: the figure it told that is none; "" otherwise */
    char why[160];              /* it was tried */
    bool from_elsewhere;        /* by --from; not in the journal */
} plan_trial_record;

/* "done", "failed", "timed out". */
const char *plan_search_outcome_name(plan_outcome outcome);
/* The outcome of that name; -1 for none. */
int plan_search_outcome_named(const char *name);
/* What it cost: as told, or by the price of its machines; NaN when neither is known. */
double plan_search_dollars(const plan_trial_record *trial, const plan_search_space *space);
/* "exit code 3", "signal 9", "timed out"; "" for one that is done. */
void plan_search_trouble(char out[128], const plan_trial_record *trial);

#endif
