/* The model fitted to what happened.  See history.h and docs/plan.md.
 *
 *  - Paces: what a phase takes is linear in the constants of its pace, so they are least squares over runs of one
 * process, errors as
 *    shares.  What was measured before counts like one more observation of each constant, and runs that are far off
 *    count less.
 *  - Rounds that happen for each one that is expected: a geometric mean.  - sync of a store: the median of what is left
 * of a round's time, of several workers: one by itself waits for nobody.  - Errors: the standard deviation of
 * log(happened / estimated); what was assumed before counts like PRIOR_RUNS runs, so that a few
 *    lucky ones do not make it 0. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <shoal/error.h>

#include "base/memory.h"
#include "base/sort.h"
#include "plan/history.h"
#include "plan/least_squares.h"

enum { CONSTANTS = 5, RUNS_MOST = 200, FIT_STEPS = 6 };
static const double PRIOR_WEIGHT = 0.2; /* of a constant as it was, beside a run */
static const double PRIOR_RUNS = 4;
static const double PRIOR_SYNCS = 2;
static const double FAR_OFF = 0.3;    /* logarithm of an error from which on a run counts less */
static const double TOO_SHORT = 2e-4; /* seconds, of which a clock and a busy machine make anything */
static const double TOO_LONG = 1e10;  /* seconds: three hundred years are no run */
static const double ERROR_LEAST = 0.02, ERROR_UNKNOWN = 0.4;

/* ---- one run ----------------------------------------------------------------------------------------------------- */

static void crew_of(shoal_plan_crew *out, const shoal_site *site, const plan_run *run)
{
    bool alone = run->store[0] == '\0';
    *out = (shoal_plan_crew){.workers = run->workers > 0 ? run->workers : 1,
                             .alone = alone,
                             .threads = run->threads,
                             .cores = run->cores,
                             .machines = run->machines,
                             .start = !alone && run->machines == 1 && !run->partial ? site->start : 0};
}

static void site_of(shoal_site *out, const plan_calibration *calibration, const plan_run *run)
{
    bool measured;
    *out = (shoal_site){.error = calibration->error, .thread_loss = calibration->thread_loss};
    if (run->store[0])
        plan_calibration_site(out, &measured, calibration, run->store);
}

static void add_run_phase(shoal_cost *cost, const struct plan_run_phase *phase)
{
    cost->phase[cost->phases++] = (shoal_cost_phase){.name = phase->name,
                                                     .rounds = phase->rounds,
                                                     .operations_per_row = phase->operations_per_row,
                                                     .model_bytes = phase->model_bytes,
                                                     .partial_bytes = phase->partial_bytes,
                                                     .row_bytes = phase->row_bytes,
                                                     .kept_bytes = phase->kept_bytes};
}

/* Of the whole run, or of one of its phases. */
static int estimate_run(shoal_estimate *out, const plan_run *run, int only, const shoal_site *site,
                        const shoal_pace *pace, int paces)
{
    shoal_cost cost = {0};
    shoal_plan_crew crew;
    for (int i = 0; i < run->phases; i++)
        if (only < 0 || i == only)
            add_run_phase(&cost, &run->phase[i]);
    const shoal_plan_job job = {.cost = &cost,
                                .learner = run->learner,
                                .rows = run->rows,
                                .columns = run->columns,
                                .value_bytes = run->value_bytes,
                                .source = run->source,
                                .reduce = run->reduce[0] ? run->reduce : NULL,
                                .slices = run->slices,
                                .split_roles = run->split_roles,
                                .known_rounds = true};
    crew_of(&crew, site, run);
    return shoal_plan_estimate(out, &job, site, pace, paces, &crew);
}

int plan_history_estimate(shoal_estimate *out, const plan_calibration *calibration, const plan_run *run)
{
    shoal_site site;
    site_of(&site, calibration, run);
    return estimate_run(out, run, -1, &site, calibration->pace, calibration->paces);
}

/* Of the same machine, with the same arithmetic. */
static bool is_alike(const plan_calibration *calibration, const plan_run *run)
{
    bool here = !calibration->host[0] || !run->host[0] || strcmp(calibration->host, run->host) == 0;
    bool same = !calibration->kernel[0] || !run->kernel[0] || strcmp(calibration->kernel, run->kernel) == 0;
    return here && same && run->phases > 0 && run->seconds >= PLAN_RUN_SHORT && run->seconds < TOO_LONG;
}

static bool ran_alone(const plan_run *run)
{
    return run->store[0] == '\0';
}

/* ---- paces ------------------------------------------------------------------------------------------------------- */

/* One phase of one run: seconds = sum of share[c] times constant c. */
typedef struct observation {
    double share[CONSTANTS], seconds;
} observation;

static double *constant_of(shoal_pace *pace, int c)
{
    double *const constants[CONSTANTS] = {&pace->value, &pace->operation, &pace->round, &pace->model_byte, &pace->row};
    return constants[c];
}

/* The model is linear in the constants: each share is an estimate with one of them 1 and the others 0. */
static bool observe(observation *out, const plan_calibration *calibration, const plan_run *run, int phase)
{
    shoal_site site;
    site_of(&site, calibration, run);
    out->seconds = run->phase[phase].seconds;
    if (!(out->seconds > 0 && out->seconds < TOO_LONG) || !(run->phase[phase].rounds > 0))
        return false;
    for (int c = 0; c < CONSTANTS; c++) {
        shoal_estimate estimated;
        shoal_pace unit = {0};
        snprintf(unit.learner, sizeof unit.learner, "%s", run->learner);
        snprintf(unit.phase, sizeof unit.phase, "%s", run->phase[phase].name);
        *constant_of(&unit, c) = 1;
        if (estimate_run(&estimated, run, phase, &site, &unit, 1) < 0 || !isfinite(estimated.seconds))
            return false;
        out->share[c] = estimated.seconds;
    }
    return true;
}

static double fitted_seconds(const observation *seen, const shoal_pace *pace)
{
    double sum = 0;
    for (int c = 0; c < CONSTANTS; c++)
        sum += seen->share[c] * *constant_of((shoal_pace *)pace, c);
    return sum;
}

/* What each constant is measured by: what it was, or a tenth of the one that would explain all by itself.  `was` is 1
 * for the former. */
static void find_scales(double scale[CONSTANTS], double was[CONSTANTS], const shoal_pace *pace, const observation *seen,
                        int count)
{
    double seconds = 0, share[CONSTANTS] = {0};
    bool fresh = true;
    for (int c = 0; c < CONSTANTS; c++)
        fresh &= !(*constant_of((shoal_pace *)pace, c) > 0);
    for (int i = 0; i < count; i++) {
        seconds += seen[i].seconds;
        for (int c = 0; c < CONSTANTS; c++)
            share[c] += seen[i].share[c];
    }
    int main = share[1] > 0 ? 1 : 0; /* operations, where there are any: they are most of the work */
    for (int c = 0; c < CONSTANTS; c++) {
        double before = *constant_of((shoal_pace *)pace, c), all = share[c] > 0 ? seconds / share[c] : 0;
        bool usual = fresh && c == main;
        was[c] = before > 0 || usual;
        scale[c] = before > 0 ? before : usual ? all : 0.1 * all;
    }
}

/* Rows of a system whose unknowns are multiples of `scale`; the last ones pull to what was. */
static void fill_system(double *a, double *b, const observation *seen, int count, const shoal_pace *pace,
                        const double scale[CONSTANTS], const double was[CONSTANTS])
{
    for (int i = 0; i < count; i++) {
        double off = fabs(log(fmax(fitted_seconds(&seen[i], pace), 1e-12) / seen[i].seconds));
        double weight = (off > FAR_OFF ? sqrt(FAR_OFF / off) : 1) / (seen[i].seconds + TOO_SHORT);
        for (int c = 0; c < CONSTANTS; c++)
            a[i * CONSTANTS + c] = weight * seen[i].share[c] * scale[c];
        b[i] = weight * seen[i].seconds;
    }
    for (int c = 0; c < CONSTANTS; c++) {
        for (int other = 0; other < CONSTANTS; other++)
            a[(count + c) * CONSTANTS + other] = c == other ? PRIOR_WEIGHT : 0;
        b[count + c] = PRIOR_WEIGHT * was[c];
    }
}

static int fit_pace(shoal_pace *pace, const observation *seen, int count)
{
    double scale[CONSTANTS], was[CONSTANTS], x[CONSTANTS], *a = NULL, *b = NULL;
    int rows = count + CONSTANTS;
    find_scales(scale, was, pace, seen, count);
    for (int c = 0; c < CONSTANTS; c++)
        *constant_of(pace, c) = scale[c] * was[c];
    int status = base_alloc(&a, (size_t)rows * CONSTANTS, sizeof *a, "a fit");
    if (status == SHOAL_OK)
        status = base_alloc(&b, (size_t)rows, sizeof *b, "a fit");
    for (int step = 0; step < FIT_STEPS && status == SHOAL_OK; step++) {
        fill_system(a, b, seen, count, pace, scale, was);
        status = plan_least_squares(x, a, b, rows, CONSTANTS);
        for (int c = 0; c < CONSTANTS && status == SHOAL_OK; c++)
            *constant_of(pace, c) = x[c] * scale[c];
    }
    base_free(&a);
    base_free(&b);
    return status;
}

/* What is known of a phase; all 0 when that is nothing. */
static shoal_pace find_pace(const plan_calibration *calibration, const char *learner, const char *phase)
{
    shoal_pace none = {0};
    for (int i = 0; i < calibration->paces; i++)
        if (strcmp(calibration->pace[i].learner, learner) == 0 && strcmp(calibration->pace[i].phase, phase) == 0)
            return calibration->pace[i];
    snprintf(none.learner, sizeof none.learner, "%s", learner);
    snprintf(none.phase, sizeof none.phase, "%s", phase);
    return none;
}

/* Whether a phase is that of a pace. */
static bool is_of(const plan_run *run, int phase, const shoal_pace *pace)
{
    return strcmp(run->learner, pace->learner) == 0 && strcmp(run->phase[phase].name, pace->phase) == 0;
}

/* Runs that used up what they were allowed tell nothing of when they would have ended. */
static void fit_rounds(shoal_pace *pace, const plan_run *run, int64_t count)
{
    double sum = 0, runs = 0;
    for (int64_t i = 0; i < count; i++)
        for (int p = 0; p < run[i].phases && !run[i].partial; p++)
            if (is_of(&run[i], p, pace) && run[i].phase[p].rounds > 0 &&
                run[i].phase[p].rounds < 0.9 * run[i].phase[p].expected_rounds) {
                sum += log(run[i].phase[p].rounds);
                runs++;
            }
    if (runs > 0)
        pace->rounds = exp(sum / runs);
}

/* All that runs tell of one phase. */
static int refit_pace(plan_calibration *calibration, const plan_run *run, int64_t count, const char *learner,
                      const char *phase)
{
    shoal_pace pace = find_pace(calibration, learner, phase);
    observation *seen = NULL;
    int observed = 0;
    int status = base_alloc(&seen, (size_t)count, sizeof *seen, "a fit");
    for (int64_t i = 0; i < count && status == SHOAL_OK; i++)
        for (int p = 0; p < run[i].phases; p++)
            if (ran_alone(&run[i]) && is_alike(calibration, &run[i]) && is_of(&run[i], p, &pace) &&
                observe(&seen[observed], calibration, &run[i], p)) {
                observed++;
                break;
            }
    bool known = pace.value > 0 || pace.operation > 0 || pace.round > 0 || pace.model_byte > 0 || pace.row > 0;
    if (status == SHOAL_OK && observed > 0)
        status = fit_pace(&pace, seen, observed);
    if (status == SHOAL_OK && (observed > 0 || known)) {
        fit_rounds(&pace, run, count);
        status = plan_calibration_set_pace(calibration, &pace);
    }
    base_free(&seen);
    return status;
}

/* Whether some run before this one has the phase, too: then it has been seen to. */
static bool was_before(const plan_run *run, int64_t before, const plan_run *as, int phase)
{
    for (int64_t i = 0; i < before; i++)
        for (int p = 0; p < run[i].phases; p++)
            if (strcmp(run[i].learner, as->learner) == 0 && strcmp(run[i].phase[p].name, as->phase[phase].name) == 0)
                return true;
    return false;
}

static int refit_paces(plan_calibration *calibration, const plan_run *run, int64_t count)
{
    int status = SHOAL_OK;
    for (int64_t i = 0; i < count; i++)
        for (int p = 0; p < run[i].phases && status == SHOAL_OK; p++)
            if (!was_before(run, i, &run[i], p))
                status = refit_pace(calibration, run, count, run[i].learner, run[i].phase[p].name);
    return status;
}

/* ---- stores and errors ------------------------------------------------------------------------------------------- */

static bool is_whole_of(const plan_calibration *calibration, const plan_run *run, const char *store)
{
    return is_alike(calibration, run) && !run->partial && run->lost == 0 && strcmp(run->store, store) == 0;
}

static double rounds_of(const plan_run *run)
{
    double rounds = 0;
    for (int i = 0; i < run->phases; i++)
        rounds += run->phase[i].rounds;
    return rounds;
}

static int fit_sync(shoal_site *site, const plan_calibration *calibration, const char *store, const plan_run *run,
                    int64_t count)
{
    double *left = NULL;
    int64_t found = 0;
    shoal_site without = *site;
    int status = base_alloc(&left, (size_t)count + (size_t)PRIOR_SYNCS, sizeof *left, "a fit");
    without.sync = 0;
    for (int64_t i = 0; i < count && status == SHOAL_OK; i++) {
        shoal_estimate estimated;
        if (is_whole_of(calibration, &run[i], store) && rounds_of(&run[i]) > 0 &&
            (run[i].workers > 1 || run[i].split_roles) &&
            estimate_run(&estimated, &run[i], -1, &without, calibration->pace, calibration->paces) == SHOAL_OK)
            left[found++] = fmax((run[i].seconds - estimated.seconds) / rounds_of(&run[i]), 0);
    }
    if (status == SHOAL_OK && found > 0) {
        for (int i = 0; i < PRIOR_SYNCS; i++)
            left[found++] = site->sync;
        base_sort_reals(left, (size_t)found);
        site->sync = (left[(found - 1) / 2] + left[found / 2]) / 2;
    }
    base_free(&left);
    return status;
}

/* Counts the runs it could use. */
static int64_t fit_error(double *error, const plan_calibration *calibration, const shoal_site *site, const char *store,
                         const plan_run *run, int64_t count)
{
    double before = *error > 0 ? *error : ERROR_UNKNOWN, squares = PRIOR_RUNS * before * before;
    int64_t used = 0;
    for (int64_t i = 0; i < count; i++) {
        shoal_estimate estimated;
        if (!is_whole_of(calibration, &run[i], store) ||
            estimate_run(&estimated, &run[i], -1, site, calibration->pace, calibration->paces) < 0 ||
            !(estimated.seconds > 0) || !isfinite(estimated.seconds))
            continue;
        double off = log(run[i].seconds / estimated.seconds);
        squares += off * off;
        used++;
    }
    if (used > 0)
        *error = fmax(sqrt(squares / (PRIOR_RUNS + (double)used)), ERROR_LEAST);
    return used;
}

static int refit_store(plan_calibration *calibration, int64_t *used, const char *store, const plan_run *run,
                       int64_t count)
{
    plan_calibrated_site entry = {0};
    bool measured;
    plan_calibration_site(&entry.site, &measured, calibration, store);
    plan_calibration_name(entry.store, sizeof entry.store, store);
    for (int i = 0; i < calibration->sites; i++)
        if (strcmp(calibration->site[i].store, entry.store) == 0)
            entry.date = calibration->site[i].date;
    if (measured && entry.date == 0) /* as another container of its account was */
        entry.date = calibration->date;
    int status = fit_sync(&entry.site, calibration, store, run, count);
    if (status < 0)
        return status;
    int64_t known = fit_error(&entry.site.error, calibration, &entry.site, store, run, count);
    *used += known;
    return known > 0 ? plan_calibration_set_site(calibration, &entry) : SHOAL_OK;
}

static int refit_stores(plan_calibration *calibration, int64_t *used, const plan_run *run, int64_t count)
{
    int status = SHOAL_OK;
    for (int64_t i = 0; i < count && status == SHOAL_OK; i++) {
        bool seen = ran_alone(&run[i]);
        for (int64_t before = 0; before < i && !seen; before++)
            seen = strcmp(run[before].store, run[i].store) == 0;
        if (!seen)
            status = refit_store(calibration, used, run[i].store, run, count);
    }
    return status;
}

int plan_history_refit(plan_calibration *calibration, int64_t *used, const plan_run *run, int64_t count)
{
    *used = 0;
    if (count > RUNS_MOST) {
        run += count - RUNS_MOST;
        count = RUNS_MOST;
    }
    plan_calibration fitted = *calibration;
    int status = refit_paces(&fitted, run, count);
    if (status == SHOAL_OK) {
        const shoal_site alone = {.error = fitted.error, .thread_loss = fitted.thread_loss};
        *used = fit_error(&fitted.error, &fitted, &alone, "", run, count);
        status = refit_stores(&fitted, used, run, count);
    }
    if (status == SHOAL_OK)
        *calibration = fitted;
    return status;
}
