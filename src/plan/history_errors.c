/* How good predictions were, and learning from how good they were not.  See history.h. */
#include "history.h"

#include <inttypes.h>
#include <math.h>

#include <shoal/error.h>

#include "base/memory.h"
#include "base/sort.h"

int plan_history_open(plan_history *out)
{
    *out = (plan_history){0};
    int status = plan_history_path(&out->path);
    return status == SHOAL_OK ? plan_history_read(&out->run, &out->count, &out->damaged, out->path, 0) : status;
}

void plan_history_release(plan_history *history)
{
    base_free(&history->run);
    base_free(&history->path);
}

bool plan_was_predicted(const plan_run *run)
{
    return run->predicted > 0 && run->seconds >= PLAN_RUN_SHORT;
}

enum { JUDGED_LEAST = 5 };
static const double POOR_MEDIAN = 0.5, POOR_WITHIN = 0.75;

/* Of the predictions after a date; `error` has room for all runs. */
static void judge_since(plan_history_errors *out, double *error, const plan_history *history, int64_t since)
{
    *out = (plan_history_errors){.median = NAN, .worst = NAN};
    for (int64_t i = 0; i < history->count; i++) {
        const plan_run *run = &history->run[i];
        if (!plan_was_predicted(run) || (since > 0 && run->date <= since))
            continue;
        error[out->predicted++] = fabs(run->seconds / run->predicted - 1);
        out->within += run->seconds >= run->low && run->seconds <= run->high;
    }
    if (out->predicted == 0)
        return;
    base_sort_reals(error, (size_t)out->predicted);
    out->median = error[(out->predicted - 1) / 2];
    out->worst = error[out->predicted - 1];
    out->poor = out->predicted >= JUDGED_LEAST &&
                (out->median > POOR_MEDIAN || (double)out->within < POOR_WITHIN * (double)out->predicted);
}

int plan_history_judge(plan_history_errors *out, const plan_history *history, int64_t since)
{
    double *error = NULL;
    plan_history_errors present = {0};
    *out = (plan_history_errors){.median = NAN, .worst = NAN};
    int status = base_alloc(&error, (size_t)history->count, sizeof *error, "errors");
    if (status < 0)
        return status;
    judge_since(&present, error, history, since);
    judge_since(out, error, history, 0);
    out->poor = present.poor;
    base_free(&error);
    return SHOAL_OK;
}

int plan_history_learn(plan_calibration *calibration, int64_t *used, int64_t *count)
{
    plan_history history;
    int status = plan_history_open(&history);
    *used = 0;
    *count = history.count;
    if (status == SHOAL_OK && history.count == 0)
        status = shoal_fail(SHOAL_INVALID, "%s: no runs to refit from yet", history.path);
    if (status == SHOAL_OK)
        status = plan_history_refit(calibration, used, history.run, history.count);
    if (status == SHOAL_OK && *used == 0)
        status = shoal_fail(SHOAL_INVALID, "%s: none of the %" PRId64 " runs can be used for a refit", history.path,
                            history.count);
    plan_history_release(&history);
    return status;
}
