/* What the planner's model says of each number of workers.  See hold_model.h. */
#include "hold_model.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/pool.h"
#include "launch/launch.h"

static const double BEYOND_CORES = 0.03; /* of a worker's work, that one without a core of its own does */
static const double BLIND_FIXED = 0.05;  /* of a round with one worker, that more workers do not make shorter */

/* All numbers where they are few, otherwise steps of a twentieth. */
static void fill_numbers(hold_model *out, int64_t least, int64_t most)
{
    for (int64_t n = least; out->options < HOLD_OPTIONS_MOST;) {
        out->machines[out->options++] = n;
        if (n >= most)
            return;
        int64_t step = n / 20 > 1 && most - least >= HOLD_OPTIONS_MOST ? n / 20 : 1;
        n = n + step < most ? n + step : most;
    }
}

static int64_t threads_each(const shoal_outcome *outcome)
{
    const launch_ask *ask = outcome->away.ask;
    return ask->workers > 0 && ask->slots > ask->workers ? ask->slots / ask->workers : 1;
}

/* How many workers have a core each. */
static double room_of(const shoal_outcome *outcome)
{
    return outcome->away.ask->local ? fmax((double)base_cores() / (double)threads_each(outcome), 1) : INFINITY;
}

/* How many workers' worth of work so many do.  Those of one machine share its cores; up to twice as many get more of
 * them where other programs run, which is worth little as long as none do. */
static double shared(const shoal_outcome *outcome, int64_t workers)
{
    double room = room_of(outcome), n = (double)workers;
    return n <= room ? n : room + BEYOND_CORES * (fmin(n, 2 * room) - room);
}

static void fill_blindly(hold_model *out, const shoal_outcome *outcome)
{
    out->blind = true;
    out->phases = 1;
    out->phase[0] = (hold_phase){.rounds = 0};
    for (int64_t i = 0; i < out->options; i++) {
        out->phase[0].work[i] = 1 / shared(outcome, out->machines[i]);
        out->phase[0].fixed[i] = BLIND_FIXED * (1 + 0.01 * (double)(out->machines[i] - 1));
    }
}

static bool ask_cost(shoal_cost *out, const shoal_outcome *outcome)
{
    const shoal_shape shape = {.rows = outcome->rows,
                               .columns = outcome->columns,
                               .type = outcome->type,
                               .weighted = outcome->weights != NULL};
    *out = (shoal_cost){0};
    return outcome->algorithm->cost && outcome->config &&
           outcome->algorithm->cost(out, outcome->config, &shape) == SHOAL_OK && out->phases > 0;
}

static plan_run run_of(const shoal_outcome *outcome, const shoal_cost_phase *phase, int64_t workers)
{
    const run_away *away = &outcome->away;
    const run_workers_options *options = &outcome->request->workers;
    plan_run run = {.rows = (double)outcome->rows,
                    .columns = (double)outcome->columns,
                    .value_bytes = (double)shoal_type_size(outcome->type),
                    .source = away->source,
                    .workers = workers,
                    .machines = away->ask->local ? 1 : 0,
                    .threads = (double)threads_each(outcome),
                    .cores = away->ask->local ? base_cores() : (double)threads_each(outcome),
                    .slices = (double)options->slices,
                    .partial = true, /* of rounds alone, without the start */
                    .phases = 1};
    snprintf(run.learner, sizeof run.learner, "%s", outcome->algorithm->name);
    snprintf(run.reduce, sizeof run.reduce, "%s", options->reduce ? options->reduce : "");
    plan_calibration_name(run.store, sizeof run.store, away->ask->through ? away->ask->through : away->store);
    snprintf(run.phase[0].name, sizeof run.phase[0].name, "%s", phase->name);
    run.phase[0].rounds = fmax(phase->rounds, 1);
    run.phase[0].expected_rounds = run.phase[0].rounds;
    run.phase[0].operations_per_row = phase->operations_per_row;
    run.phase[0].model_bytes = phase->model_bytes;
    run.phase[0].partial_bytes = phase->partial_bytes;
    run.phase[0].row_bytes = phase->row_bytes;
    run.phase[0].kept_bytes = phase->kept_bytes;
    return run;
}

/* False where the calibration lacks something of this learner. */
static bool fill_phase(hold_phase *out, const plan_calibration *calibration, const shoal_outcome *outcome,
                       const shoal_cost_phase *phase, const hold_model *model)
{
    snprintf(out->name, sizeof out->name, "%s", phase->name);
    out->rounds = phase->rounds;
    for (int64_t i = 0; i < model->options; i++) {
        const plan_run run = run_of(outcome, phase, model->machines[i]);
        shoal_estimate estimate;
        if (plan_history_estimate(&estimate, calibration, &run) < 0)
            return false;
        double rest = estimate.reduce + estimate.update + estimate.publish;
        double all = estimate.map + estimate.straggle + rest, round = all / run.phase[0].rounds;
        if (!(round > 0) || !isfinite(round))
            return false;
        out->work[i] = round * (all - rest) / all;
        out->fixed[i] = round * rest / all;
        if (i > 0 && (double)model->machines[i] > room_of(outcome)) /* what the planner has never measured */
            out->work[i] =
                out->work[i - 1] * shared(outcome, model->machines[i - 1]) / shared(outcome, model->machines[i]);
    }
    return true;
}

void hold_model_fill(hold_model *out, const shoal_outcome *outcome, int64_t least, int64_t most)
{
    plan_calibration calibration;
    shoal_cost cost;
    char *path = NULL;
    *out = (hold_model){.room = room_of(outcome)};
    fill_numbers(out, least, most);
    bool known = ask_cost(&cost, outcome) && plan_calibration_path(&path) == SHOAL_OK &&
                 plan_calibration_read(&calibration, path) == SHOAL_OK;
    base_free(&path);
    for (int i = 0; known && i < cost.phases; i++)
        known = fill_phase(&out->phase[out->phases++], &calibration, outcome, &cost.phase[i], out);
    if (known)
        out->error = calibration.error;
    else
        fill_blindly(out, outcome);
}

const hold_phase *hold_model_phase(const hold_model *model, const char *name)
{
    for (int i = 0; i < model->phases; i++)
        if (model->blind || strcmp(model->phase[i].name, name) == 0)
            return &model->phase[i];
    return NULL;
}
