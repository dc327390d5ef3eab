/* What came of a search: which trial was best, what it is compared with, what the model expects of what was not tried.
 * All from the trials, so that a search that was resumed says the same. */
#ifndef PLAN_SEARCH_SUMMARY_H
#define PLAN_SEARCH_SUMMARY_H

#include "search_session.h"
#include "search_space.h"

enum { PLAN_SESSION_BYTES = PLAN_SEARCH_LABEL_BYTES + 80 };

/* What is to become least: seconds, dollars, or their product. */
double plan_session_value(const plan_session *session, const plan_trial_record *trial);
/* The trial of a candidate; NULL when it was not tried. */
const plan_trial_record *plan_session_trial(const plan_session *session, int64_t candidate);
/* The least of those that meet deadline and budget but for `best`, and the fastest of all that got done; NULL for
 * none. */
const plan_trial_record *plan_session_next_best(const plan_session *session, const plan_trial_record *best);
const plan_trial_record *plan_session_fastest(const plan_session *session);

/* What the model expects most of, among what was not tried. */
typedef struct plan_expected {
    int64_t candidate;       /* -1: it has no opinion */
    double value, low, high; /* median, and the limits of 90% */
} plan_expected;

plan_expected plan_session_expect(const plan_session *session);

/* "8 of c7i.large: 12.4 s, $0.0421" */
void plan_session_describe(char out[PLAN_SESSION_BYTES], const plan_session *session, const plan_trial_record *trial);
/* " that meets the deadline of 2 h and the budget of $5", with "that meets" as the verb; "" without limits. */
void plan_session_limits(char *out, size_t size, const plan_session *session, const char *verb);
/* SHOAL_INVALID with a sentence when there were trials and none of them will do. */
int plan_session_check_best(const plan_session *session);

#endif
