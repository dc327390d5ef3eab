/* Applying models to rows: what `shoal predict` does, and what a run does whose outputs need it. */
#ifndef RUN_APPLY_H
#define RUN_APPLY_H

#include "outcome.h"

/* What a model is to be asked, and of which rows. */
typedef struct run_application {
    const char *model, *data;
    const char *target; /* what is known of the rows: a column or a file; NULL: the model's own target */
    bool score;         /* predictions are compared with it */
    shoal_data_options reading;
    run_place place;
    run_ranks_options ranks;
    bool force;               /* outputs replace whatever has their names */
    const char *const *names; /* outputs that there are, over all learners, ended by NULL */
    const char *const *paths; /* where each goes; NULL: nowhere */
    shoal_watcher watch;
} run_application;

/* What came of it. */
typedef struct run_applied {
    const learn_face *face;
    learn_applied model;
    learn_schema schema; /* what the model remembers of its columns */
    shoal_request *request;
    shoal_outcome *outcome;
} run_applied;

/* Reads the model, runs it over the rows and writes what is asked for.  Release *out whatever came of it. */
int run_apply(run_applied *out, const run_application *application);
void run_applied_release(run_applied *applied);

/* Applies what a run has found to its own rows, for the output of that name. */
int run_apply_ended(shoal_result **out, const shoal_outcome *outcome, const learn_ended *ended, const char *output);

#endif
