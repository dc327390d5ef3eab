/* What came of a search.  See search_summary.h. */
#include "search_summary.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include <shoal/error.h>

#include "plan/units.h"
#include "search_run.h"

/* ---- trials ------------------------------------------------------------------------------------------------------ */

double plan_session_value(const plan_session *session, const plan_trial_record *trial)
{
    double dollars = plan_search_dollars(trial, session->space);
    switch (session->request->options.objective) {
    case PLAN_TIME: return trial->seconds;
    case PLAN_COST: return dollars;
    default: return dollars * trial->seconds;
    }
}

const plan_trial_record *plan_session_trial(const plan_session *session, int64_t candidate)
{
    for (int64_t i = 0; i < session->trials; i++)
        if (session->trial[i].candidate == candidate)
            return &session->trial[i];
    return NULL;
}

static bool trial_meets(const plan_session *session, const plan_trial_record *trial)
{
    const plan_search_options *options = &session->request->options;
    return trial->outcome == PLAN_TRIAL_DONE && !(options->deadline > 0 && trial->seconds > options->deadline) &&
           !(options->budget > 0 && plan_search_dollars(trial, session->space) > options->budget);
}

/* The least by some measure, of those that are done (and, if asked, meet the limits), but for one of them; NULL for
 * none. */
static const plan_trial_record *least_trial(const plan_session *session,
                                            double (*measure)(const plan_session *, const plan_trial_record *),
                                            bool must_meet, const plan_trial_record *but)
{
    const plan_trial_record *least = NULL;
    for (int64_t i = 0; i < session->trials; i++) {
        const plan_trial_record *trial = &session->trial[i];
        bool counts = must_meet ? trial_meets(session, trial) : trial->outcome == PLAN_TRIAL_DONE;
        if (counts && trial != but && (!least || measure(session, trial) < measure(session, least)))
            least = trial;
    }
    return least;
}

static double trial_seconds(const plan_session *session, const plan_trial_record *trial)
{
    (void)session;
    return trial->seconds;
}

static double trial_dollars(const plan_session *session, const plan_trial_record *trial)
{
    return plan_search_dollars(trial, session->space);
}

const plan_trial_record *plan_session_next_best(const plan_session *session, const plan_trial_record *best)
{
    return least_trial(session, plan_session_value, true, best);
}

const plan_trial_record *plan_session_fastest(const plan_session *session)
{
    return least_trial(session, trial_seconds, false, NULL);
}

plan_expected plan_session_expect(const plan_session *session)
{
    plan_expected out = {.candidate = -1};
    for (int64_t i = 0; i < session->space->list.candidates; i++) {
        double mean, deviation;
        if (plan_session_trial(session, i) || plan_search_opinion(&mean, &deviation, session->search, i) < 0 ||
            !isfinite(mean) || !isfinite(deviation))
            continue;
        if (out.candidate < 0 || exp(mean) < out.value)
            out = (plan_expected){i, exp(mean), exp(mean - 1.645 * deviation), exp(mean + 1.645 * deviation)};
    }
    return out;
}

/* ---- words ------------------------------------------------------------------------------------------------------- */

void plan_session_describe(char out[PLAN_SESSION_BYTES], const plan_session *session, const plan_trial_record *trial)
{
    char label[PLAN_SEARCH_LABEL_BYTES], time[PLAN_UNITS_BYTES], money[PLAN_UNITS_BYTES];
    double dollars = plan_search_dollars(trial, session->space);
    plan_search_label(label, session->space, trial->candidate);
    plan_format_duration(time, trial->seconds);
    plan_format_money(money, dollars);
    snprintf(out, PLAN_SESSION_BYTES, "%s: %s%s%s", label, time, isnan(dollars) ? "" : ", ",
             isnan(dollars) ? "" : money);
}

void plan_session_limits(char *out, size_t size, const plan_session *session, const char *verb)
{
    char deadline[PLAN_UNITS_BYTES], budget[PLAN_UNITS_BYTES];
    const plan_search_options *options = &session->request->options;
    plan_format_duration(deadline, options->deadline);
    plan_format_money(budget, options->budget);
    out[0] = '\0';
    if (options->deadline > 0 && options->budget > 0)
        snprintf(out, size, " %s the deadline of %s and the budget of %s", verb, deadline, budget);
    else if (options->deadline > 0)
        snprintf(out, size, " %s the deadline of %s", verb, deadline);
    else if (options->budget > 0)
        snprintf(out, size, " %s the budget of %s", verb, budget);
}

int plan_session_check_best(const plan_session *session)
{
    char limits[PLAN_SESSION_BYTES], fastest[PLAN_SESSION_BYTES], cheapest[PLAN_SESSION_BYTES], trouble[128];
    const plan_trial_record *quick = plan_session_fastest(session),
                            *cheap = least_trial(session, trial_dollars, false, NULL);
    if (plan_search_best(session->search) >= 0 || session->trials == 0)
        return SHOAL_OK;
    if (!quick) {
        plan_search_trouble(trouble, &session->trial[session->trials - 1]);
        if (session->trials == 1)
            return shoal_fail(SHOAL_INVALID, "the only trial failed: %s", trouble);
        return shoal_fail(SHOAL_INVALID, "all %" PRId64 " trials failed; the last: %s", session->trials, trouble);
    }
    plan_session_limits(limits, sizeof limits, session, "meets");
    plan_session_describe(fastest, session, quick);
    plan_session_describe(cheapest, session, cheap);
    if (session->request->options.budget > 0 && cheap != quick)
        return shoal_fail(SHOAL_INVALID, "nothing that was tried%s: the fastest was %s; the cheapest was %s", limits,
                          fastest, cheapest);
    return shoal_fail(SHOAL_INVALID, "nothing that was tried%s: the fastest was %s", limits, fastest);
}
