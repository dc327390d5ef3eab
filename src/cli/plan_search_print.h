/* What `plan search` shows: the table of trials as they go, what came of it, and the same as JSON; and how a replay
 * went. */
#ifndef CLI_PLAN_SEARCH_PRINT_H
#define CLI_PLAN_SEARCH_PRINT_H

#include "plan_search_trial.h"
#include "plan/search_replay.h"

/* A search with all that was told to it. */
typedef struct cli_search_state {
    cli_search_space *space;
    plan_search *search;
    plan_search_options options;
    const char *objective; /* "cost" */
    cli_search_trial *trial;
    int64_t trials;
    const char *journal; /* its path, or NULL */
    char stopped[192];   /* why it is over */
    int64_t next;        /* what to try, where nothing is run; -1 otherwise */
} cli_search_state;

void cli_search_print_head(const cli_search_state *state);
/* One row; trial i of the state is number i + 1. */
void cli_search_print_trial(const cli_search_state *state, int64_t index);
/* The best and how it compares, or, with `next`, what to try. */
void cli_search_print_end(const cli_search_state *state);
int cli_search_print_json(const cli_search_state *state);
/* Fails with a sentence when nothing that was tried is an answer. */
int cli_search_check_best(const cli_search_state *state);

void cli_search_print_replay(const plan_replay *replay, const plan_table *table, const plan_replay_options *options);
int cli_search_print_replay_json(const plan_replay *replay, const plan_table *table,
                                 const plan_replay_options *options);

#endif
