/* One trial of a search, as it is run, kept, read from elsewhere and shown. */
#ifndef CLI_PLAN_SEARCH_TRIAL_H
#define CLI_PLAN_SEARCH_TRIAL_H

#include <stdbool.h>
#include <stdint.h>

#include "plan_search_space.h"

typedef struct cli_search_trial {
    int64_t candidate;
    plan_outcome outcome;
    double seconds;
    double told_dollars;        /* what the command, or a file, says that it cost; NaN when nobody did */
    int exit_code, signal_sent; /* of a failed one: how it ended; 0 otherwise, or when that is not known */
    char said[96];              /* of a failed one: the figure it told that is none; "" otherwise */
    char why[160];              /* it was tried */
    bool from_elsewhere;        /* by --from; not in the journal */
} cli_search_trial;

/* "done", "failed", "timed out". */
const char *cli_search_outcome_name(plan_outcome outcome);
/* The outcome of that name; -1 for none. */
int cli_search_outcome_named(const char *name);
/* What it cost: as told, or by the price of its machines; NaN when neither is known. */
double cli_search_dollars(const cli_search_trial *trial, const cli_search_space *space);
/* "exit code 3", "signal 9", "timed out"; "" for one that is done. */
void cli_search_trouble(char out[128], const cli_search_trial *trial);

#endif
