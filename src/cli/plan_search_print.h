/* What `plan search` shows: the table of trials as they go, what came of it, and the same as JSON. */
#ifndef CLI_PLAN_SEARCH_PRINT_H
#define CLI_PLAN_SEARCH_PRINT_H

#include "plan/search/search_session.h"

void cli_search_print_head(const plan_session *session);
/* One row; trial i of the session is number i + 1. */
void cli_search_print_trial(const plan_session *session, int64_t index);
/* On stderr: the last lines that the command of a failed trial printed. */
void cli_search_print_failure(const plan_trial_record *trial, const char *stdout_path, const char *stderr_path);
/* The best and how it compares, or, with `next`, what to try. */
void cli_search_print_end(const plan_session *session);
int cli_search_print_json(const plan_session *session);

#endif
