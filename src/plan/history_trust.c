/* How far a prediction can be trusted: by how far the same calibration is off for earlier runs like it.  See history.h.
 *
 * Earlier runs are estimated again with the calibration as it is now, so that a new calibration or a refit is not
 * blamed for what an old one said. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <shoal/error.h>

#include "base/sort.h"
#include "plan/history.h"
#include "plan/units.h"

enum { JUDGED_MOST = 20, JUDGED_LEAST = 5, WIDENED_LEAST = 3 };
static const double NINETY = 1.6448536269514722; /* 5% of a normal variable lie above it */
static const double FACTOR_MOST = 1.5;           /* by which the median of reliable predictions may be off */
static const double WIDEST = 10;                 /* an interval over more than a decade is no prediction */
static const double SHORTER = 0.02;              /* a run that took less than this share of another says little of it */

/* A whole run of the same learner, on the same machine with the same arithmetic, with or without the same store. */
static bool is_like(const plan_run *a, const plan_run *b)
{
    return strcmp(a->learner, b->learner) == 0 && strcmp(a->store, b->store) == 0 && strcmp(a->host, b->host) == 0 &&
           strcmp(a->kernel, b->kernel) == 0 && !a->partial && a->lost == 0 && a->phases > 0 &&
           a->seconds >= PLAN_RUN_SHORT;
}

void plan_history_trust(plan_trust *out, const plan_calibration *calibration, const plan_run *run,
                        const plan_run *earlier, int64_t count)
{
    double off[JUDGED_MOST], error[JUDGED_MOST];
    size_t found = 0, since_refit = 0;
    *out = (plan_trust){.median = NAN, .reliable = true};
    for (int64_t i = count - 1; i >= 0 && found < JUDGED_MOST; i--) {
        shoal_estimate estimated;
        if (!is_like(&earlier[i], run) || earlier[i].seconds < SHORTER * run->seconds ||
            plan_history_estimate(&estimated, calibration, &earlier[i]) < 0 || !(estimated.seconds > 0) ||
            !isfinite(estimated.seconds))
            continue;
        since_refit += earlier[i].date > calibration->refitted;
        off[found] = fabs(log(earlier[i].seconds / estimated.seconds));
        error[found++] = fabs(earlier[i].seconds / estimated.seconds - 1);
    }
    out->runs = (int64_t)found;
    if (found == 0)
        return;
    base_sort_reals(off, found);
    base_sort_reals(error, found);
    out->median = error[(found - 1) / 2];
    out->worst = error[found - 1];
    out->refitted = calibration->refitted > 0 && since_refit < JUDGED_LEAST;
    if (found >= WIDENED_LEAST)
        out->error = off[(size_t)ceil(0.9 * (double)found) - 1] / NINETY;
    out->reliable = found < JUDGED_LEAST || off[(found - 1) / 2] <= log(FACTOR_MOST);
}

int plan_history_predict(shoal_estimate *out, plan_trust *trust, const plan_calibration *calibration,
                         const plan_run *run, const plan_run *earlier, int64_t count)
{
    *trust = (plan_trust){.median = NAN, .reliable = true};
    int status = plan_history_estimate(out, calibration, run);
    if (status < 0 || !isfinite(out->seconds))
        return status;
    plan_history_trust(trust, calibration, run, earlier, count);
    plan_calibration doubted = *calibration;
    doubted.error = fmax(doubted.error, trust->error);
    for (int i = 0; i < doubted.sites; i++)
        doubted.site[i].site.error = fmax(doubted.site[i].site.error, trust->error);
    status = plan_history_estimate(out, &doubted, run);
    trust->reliable &= !(out->high > WIDEST * out->low);
    return status;
}

void plan_trust_describe(char out[PLAN_DOUBT_BYTES], const plan_trust *trust)
{
    char median[PLAN_UNITS_BYTES], worst[PLAN_UNITS_BYTES];
    if (trust->runs == 0) {
        snprintf(out, PLAN_DOUBT_BYTES, "the calibration is too uncertain; run `shoal calibrate` on an idle machine");
        return;
    }
    plan_format_error(median, trust->median);
    plan_format_error(worst, trust->worst);
    snprintf(out, PLAN_DOUBT_BYTES, "the last %" PRId64 " run%s off by %s (median; worst: %s)%s", trust->runs,
             trust->runs == 1 ? " was" : "s were", median, worst,
             trust->refitted ? " even after a refit: their times vary too much" : "; run `shoal calibrate --refit`");
}
