/* See search_trial.h. */
#include "search_trial.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const names[] = {"done", "failed", "timed out"};

const char *plan_search_outcome_name(plan_outcome outcome)
{
    return names[outcome];
}

int plan_search_outcome_named(const char *name)
{
    for (int i = 0; i < (int)(sizeof names / sizeof *names); i++)
        if (strcmp(name, names[i]) == 0)
            return i;
    return -1;
}

double plan_search_dollars(const plan_trial_record *trial, const plan_search_space *space)
{
    double price = space->candidate[trial->candidate].dollars_per_hour;
    if (!isnan(trial->told_dollars))
        return trial->told_dollars;
    return price > 0 ? trial->seconds * price / 3600 : NAN;
}

void plan_search_trouble(char out[128], const plan_trial_record *trial)
{
    out[0] = '\0';
    if (trial->outcome == PLAN_TRIAL_TIMED_OUT)
        snprintf(out, 128, "timed out");
    else if (trial->said[0])
        snprintf(out, 128, "it printed %s: not a number", trial->said);
    else if (trial->signal_sent)
        snprintf(out, 128, "signal %d", trial->signal_sent);
    else if (trial->exit_code)
        snprintf(out, 128, "exit code %d", trial->exit_code);
    else if (trial->outcome == PLAN_TRIAL_FAILED)
        snprintf(out, 128, "failed");
}
