/* What was predicted of a run and what happened.  See predicted.h. */
#include "predicted.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/pool.h"
#include "learn/module.h"
#include "plan/history.h"

/* So long a run is worth a word about how it could have been predicted. */
static const double LONG_RUN = 10;

static void warn(const char *hint)
{
    fputs("shoal: ", stderr);
    cli_put_text(stderr, shoal_error());
    fprintf(stderr, "; %s\n", hint);
}

/* ---- what happened ----------------------------------------------------------------------------------------------- */

static bool is_learning(const shoal_algorithm *algorithm)
{
    for (const cli_learner *learner = cli_learners; learner->algorithm; learner++)
        if (learner->finish && strcmp(learner->algorithm->name, algorithm->name) == 0)
            return true;
    return false;
}

/* What the learner knew beforehand; all 0 when that is nothing. */
static void ask_cost(shoal_cost *out, const cli_job *job, const void *config)
{
    const shoal_shape shape = {
        .rows = job->rows, .columns = job->columns, .type = job->type, .weighted = job->weights != NULL};
    shoal_logistic_config logistic;
    *out = (shoal_cost){0};
    if (!config || !job->algorithm->cost)
        return;
    if (job->algorithm == &shoal_logistic) { /* now it is known how many classes there are */
        logistic = *(const shoal_logistic_config *)config;
        logistic.expected_classes = (int64_t)fmax(shoal_result_number(job->result, "classes"), 0);
        config = &logistic;
    }
    if (job->algorithm->cost(out, config, &shape) < 0)
        *out = (shoal_cost){0};
}

static const shoal_cost_phase *find_phase(const shoal_cost *cost, const char *name)
{
    for (int i = 0; i < cost->phases; i++)
        if (strcmp(cost->phase[i].name, name) == 0)
            return &cost->phase[i];
    return NULL;
}

/* Rounds by phase; reading the rows is no round. */
static void note_phases(plan_run *run, const cli_job *job, const shoal_cost *cost)
{
    for (int i = 0; i < job->report.phases && run->phases < SHOAL_COST_PHASES; i++) {
        const shoal_phase *phase = &job->report.phase[i];
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
static void note_workers(plan_run *run, const cli_job_away *away)
{
    const shoal_job_report *report = &away->report;
    double slots = report->run.threads, there = (double)(report->workers - report->lost);
    plan_calibration_name(run->store, sizeof run->store, away->through ? away->through : away->store);
    run->workers = away->mappers > 0 ? away->mappers : report->workers;
    run->lost = report->lost;
    run->threads = fmax(slots / fmax(there, 1), 1);
    run->machines = away->local ? 1 : 0;
    run->cores = away->local ? base_cores() : run->threads;
    run->split_roles = away->split_roles;
    run->source = away->source;
    run->slices = (double)away->slices;
    snprintf(run->reduce, sizeof run->reduce, "%s", away->reduce ? away->reduce : "");
    run->partial = run->partial || away->resumed;
    for (int i = 0; i < SHOAL_REQUEST_KINDS; i++)
        run->requests += (double)report->requests.requests[i];
    if (away->local && !away->resumed)
        run->seconds = away->ended - away->begun;
    else if (run->source == SHOAL_PLAN_UPLOADED)
        run->source = SHOAL_PLAN_STORED;
}

static void fill_run(plan_run *run, const cli_job *job, const shoal_cost *cost)
{
    *run = (plan_run){.date = (int64_t)time(NULL),
                      .rows = (double)job->rows,
                      .columns = (double)job->columns,
                      .value_bytes = (double)shoal_type_size(job->type),
                      .source = strncmp(job->data_name, "gen:", 4) == 0 ? SHOAL_PLAN_GENERATED : SHOAL_PLAN_FILE,
                      .workers = 1,
                      .machines = 1,
                      .threads = job->report.threads,
                      .cores = base_cores(),
                      .partial = job->report.stopped || job->result->incomplete};
    snprintf(run->learner, sizeof run->learner, "%s", job->algorithm->name);
    snprintf(run->kernel, sizeof run->kernel, "%s", job->report.kernel ? job->report.kernel : "");
    if (gethostname(run->host, sizeof run->host - 1) < 0)
        run->host[0] = '\0';
    note_phases(run, job, cost);
    if (job->away.id[0])
        note_workers(run, &job->away);
}

/* ---- what was predicted ------------------------------------------------------------------------------------------ */

/* False when nothing was measured; what is damaged is said. */
static bool read_calibration(plan_calibration *out)
{
    char *path = NULL;
    int status = plan_calibration_path(&path);
    bool named = status == SHOAL_OK;
    if (named)
        status = plan_calibration_read(out, path);
    if (named && status < 0 && status != SHOAL_ABSENT)
        warn("so nothing is predicted: shoal calibrate --fresh makes a new one");
    base_free(&path);
    return status == SHOAL_OK;
}

static void predict(cli_predicted *out, plan_run *run, bool cost_known)
{
    plan_calibration calibration;
    bool calibrated = read_calibration(&calibration);
    for (int i = 0; i < run->phases; i++)
        out->rounds += run->phase[i].rounds;
    out->took = run->seconds;
    if (!cost_known || run->phases == 0)
        return;
    out->told = calibrated && plan_history_estimate(&out->estimate, &calibration, run) == SHOAL_OK &&
                isfinite(out->estimate.seconds);
    out->uncalibrated = !out->told;
    if (out->told) {
        run->predicted = out->estimate.seconds;
        run->low = out->estimate.low;
        run->high = out->estimate.high;
    }
}

static void record(const plan_run *run)
{
    const char *wish = getenv("SHOAL_HISTORY");
    char *path = NULL;
    if ((wish && strcmp(wish, "off") == 0) || plan_history_path(&path) < 0)
        return;
    if (plan_history_add(path, run) < 0)
        warn("this run is not in the history; SHOAL_HISTORY=off keeps none");
    base_free(&path);
}

void cli_predicted_note(cli_job *job, const void *config)
{
    shoal_cost cost;
    plan_run run;
    job->predicted = (cli_predicted){.asked = job->result && is_learning(job->algorithm)};
    if (!job->predicted.asked)
        return;
    ask_cost(&cost, job, config);
    fill_run(&run, job, &cost);
    predict(&job->predicted, &run, cost.phases > 0);
    record(&run);
}

void cli_predicted_note_asked(cli_job *job, const json_t *options)
{
    char *text = json_is_object(options) ? json_dumps(options, 0) : NULL;
    shoal_params *params = NULL;
    void *config = NULL;
    bool well = text && job->algorithm->options && learn_params_new(&params, text) == SHOAL_OK &&
                base_alloc(&config, 1, job->algorithm->config_size, "options") == SHOAL_OK &&
                learn_params_set(config, job->algorithm->options, params) == SHOAL_OK;
    cli_predicted_note(job, well ? config : NULL);
    learn_params_free(&params);
    base_free(&config);
    free(text);
}

/* ---- telling ----------------------------------------------------------------------------------------------------- */

/* As many digits as can matter. */
static int digits_for(double seconds)
{
    return seconds < 0.1 ? 4 : seconds < 10 ? 2 : seconds < 1000 ? 1 : 0;
}

void cli_predicted_print(FILE *stream, const cli_job *job)
{
    const cli_predicted *is = &job->predicted;
    const shoal_estimate *estimate = &is->estimate;
    if (is->told) {
        int digits = digits_for(fmin(estimate->seconds, is->took));
        fprintf(stream, "predicted  %.*f s (%.*f to %.*f) for these %.0f round%s, took %.*f s\n", digits,
                estimate->seconds, digits, estimate->low, digits, estimate->high, is->rounds,
                is->rounds == 1 ? "" : "s", digits, is->took);
    } else if (is->uncalibrated && is->took > LONG_RUN) {
        fprintf(stream, "predicted  nothing: shoal calibrate measures this machine first\n");
    }
}

json_t *cli_predicted_json(const cli_predicted *is)
{
    const shoal_estimate *estimate = &is->estimate;
    double rounds_seconds = 0;
    if (!is->told)
        return json_null();
    json_t *object = json_object(), *phases = json_object();
    for (int i = 0; i < estimate->phases; i++) {
        cli_json_put(&phases, estimate->phase[i].name, cli_json_real(estimate->phase[i].seconds));
        rounds_seconds += estimate->phase[i].seconds;
    }
    cli_json_put(&object, "seconds", cli_json_real(estimate->seconds));
    cli_json_put(&object, "low", cli_json_real(estimate->low));
    cli_json_put(&object, "high", cli_json_real(estimate->high));
    cli_json_put(&object, "rounds", cli_json_real(is->rounds));
    cli_json_put(&object, "rounds_seconds", cli_json_real(rounds_seconds));
    cli_json_put(&object, "took", cli_json_real(is->took));
    if (phases)
        cli_json_put(&object, "phases", phases);
    return object;
}
