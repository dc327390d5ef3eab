/* What was predicted of a run and what happened.  See predicted.h. */
#include "predicted.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/pool.h"
#include "launch/launch.h"
#include "plan/history.h"
#include "store/store_internal.h"

static void warn(const shoal_outcome *outcome, const char *hint)
{
    char line[1024];
    snprintf(line, sizeof line, "%s; %s", shoal_error(), hint);
    run_warn(outcome, line);
}

/* ---- what happened ----------------------------------------------------------------------------------------------- */

/* What the learner knew beforehand; all 0 when that is nothing. */
static void ask_cost(shoal_cost *out, const shoal_outcome *outcome)
{
    const shoal_shape shape = {.rows = outcome->rows,
                               .columns = outcome->columns,
                               .type = outcome->type,
                               .weighted = outcome->weights != NULL};
    size_t size = outcome->algorithm->config_size;
    void *config = NULL;
    *out = (shoal_cost){0};
    if (!outcome->algorithm->cost || base_alloc(&config, 1, size, "options") < 0)
        return;
    memcpy(config, outcome->config, size);
    if (outcome->face->learnt)
        outcome->face->learnt(config, outcome->result);
    if (outcome->algorithm->cost(out, config, &shape) < 0)
        *out = (shoal_cost){0};
    base_free(&config);
}

static const shoal_cost_phase *find_phase(const shoal_cost *cost, const char *name)
{
    for (int i = 0; i < cost->phases; i++)
        if (strcmp(cost->phase[i].name, name) == 0)
            return &cost->phase[i];
    return NULL;
}

/* Rounds by phase; reading the rows is no round. */
static void note_phases(plan_run *run, const shoal_outcome *outcome, const shoal_cost *cost)
{
    for (int i = 0; i < outcome->report.phases && run->phases < SHOAL_COST_PHASES; i++) {
        const shoal_phase *phase = &outcome->report.phase[i];
        const shoal_cost_phase *known = find_phase(cost, phase->name);
        if (phase->rounds <= 0)
            continue;
        struct plan_run_phase *out = &run->phase[run->phases++];
        snprintf(out->name, sizeof out->name, "%s", phase->name);
        out->rounds = (double)phase->rounds;
        out->seconds = fmax(phase->seconds, 0);
        run->seconds += out->seconds;
        if (!known)
            continue;
        out->expected_rounds = known->rounds;
        out->operations_per_row = known->operations_per_row;
        out->model_bytes = known->model_bytes;
        out->partial_bytes = known->partial_bytes;
        out->row_bytes = known->row_bytes;
        out->kept_bytes = known->kept_bytes;
    }
}

/* Where and by whom.  Of workers that this process did not start itself, only what their rounds took is known. */
static void note_workers(plan_run *run, const run_away *away, const run_workers_options *options)
{
    const shoal_job_report *report = &away->report;
    const bool local = away->ask->count > 0 && away->ask->local;
    double slots = report->run.threads, there = (double)(report->workers - report->lost);
    snprintf(run->job, sizeof run->job, "%s", away->id);
    plan_calibration_name(run->store, sizeof run->store, away->ask->through ? away->ask->through : away->store);
    run->workers = away->ask->workers > 0 ? away->ask->workers : report->workers;
    run->lost = report->lost;
    run->threads = fmax(slots / fmax(there, 1), 1);
    run->machines = local ? 1 : 0;
    run->cores = local ? base_cores() : run->threads;
    run->split_roles = options->roles && strcmp(options->roles, "split") == 0;
    run->source = away->source;
    run->slices = (double)options->slices;
    snprintf(run->reduce, sizeof run->reduce, "%s", options->reduce ? options->reduce : "");
    run->partial = run->partial || away->resumed;
    run->requests = (double)store_counts_requests(&report->requests);
    if (local && !away->resumed)
        run->seconds = away->ended - away->begun;
    else if (run->source == SHOAL_PLAN_UPLOADED)
        run->source = SHOAL_PLAN_STORED;
}

static void fill_run(plan_run *run, const shoal_outcome *outcome, const shoal_cost *cost)
{
    *run = (plan_run){.date = (int64_t)time(NULL),
                      .rows = (double)outcome->rows,
                      .columns = (double)outcome->columns,
                      .value_bytes = (double)shoal_type_size(outcome->type),
                      .source = strncmp(outcome->data_name, "gen:", 4) == 0 ? SHOAL_PLAN_GENERATED : SHOAL_PLAN_FILE,
                      .workers = 1,
                      .machines = 1,
                      .threads = outcome->report.threads,
                      .cores = base_cores(),
                      .partial = outcome->report.stopped || outcome->result->incomplete};
    snprintf(run->learner, sizeof run->learner, "%s", outcome->algorithm->name);
    snprintf(run->kernel, sizeof run->kernel, "%s", outcome->report.kernel ? outcome->report.kernel : "");
    if (gethostname(run->host, sizeof run->host - 1) < 0)
        run->host[0] = '\0';
    note_phases(run, outcome, cost);
    if (outcome->away.id[0])
        note_workers(run, &outcome->away, &outcome->request->workers);
}

/* ---- what was predicted ------------------------------------------------------------------------------------------ */

/* False when nothing was measured; what is damaged is said. */
static bool read_for_prediction(plan_calibration *out, const shoal_outcome *outcome)
{
    char *path = NULL;
    int status = plan_calibration_path(&path);
    bool named = status == SHOAL_OK;
    if (named)
        status = plan_calibration_read(out, path);
    if (named && status < 0 && status != SHOAL_ABSENT)
        warn(outcome, "so there is no prediction: run `shoal calibrate --fresh`");
    base_free(&path);
    return status == SHOAL_OK;
}

/* So many lines of the history are looked at for runs like this one. */
enum { EARLIER_MOST = 200 };

/* By the calibration, and by how good it was before: a history that can't be read has nothing against it. */
static bool estimate(run_prediction *out, const plan_calibration *calibration, const plan_run *run)
{
    plan_run *earlier = NULL;
    int64_t count = 0, damaged = 0;
    char *path = NULL;
    if (plan_history_path(&path) == SHOAL_OK)
        (void)plan_history_read(&earlier, &count, &damaged, path, EARLIER_MOST);
    int status = plan_history_predict(&out->estimate, &out->trust, calibration, run, earlier, count);
    base_free(&earlier);
    base_free(&path);
    return status == SHOAL_OK && isfinite(out->estimate.seconds);
}

static void predict(run_prediction *out, plan_run *run, bool cost_known, const shoal_outcome *outcome)
{
    plan_calibration calibration;
    bool calibrated = read_for_prediction(&calibration, outcome);
    for (int i = 0; i < run->phases; i++)
        out->rounds += run->phase[i].rounds;
    out->took = run->seconds;
    if (!cost_known || run->phases == 0)
        return;
    out->told = calibrated && estimate(out, &calibration, run);
    out->uncalibrated = !out->told;
    if (out->told) {
        run->predicted = out->estimate.seconds;
        run->low = out->estimate.low;
        run->high = out->estimate.high;
    }
}

static void record_run(const plan_run *run, const shoal_outcome *outcome)
{
    const char *kept = getenv("SHOAL_HISTORY");
    char *path = NULL;
    if ((kept && strcmp(kept, "off") == 0) || plan_history_path(&path) < 0)
        return;
    if (plan_history_add(path, run) < 0)
        warn(outcome, "this run is not in the history; SHOAL_HISTORY=off turns the history off");
    base_free(&path);
}

void run_predicted_note(shoal_outcome *outcome)
{
    shoal_cost cost;
    plan_run run;
    bool own = outcome->request->bound || outcome->request->workers.passing; /* of no use to who plans by history */
    outcome->predicted = (run_prediction){.asked = outcome->result && run_is_learning(outcome) && !own};
    if (!outcome->predicted.asked)
        return;
    ask_cost(&cost, outcome);
    fill_run(&run, outcome, &cost);
    predict(&outcome->predicted, &run, cost.phases > 0, outcome);
    record_run(&run, outcome);
}
