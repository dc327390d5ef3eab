/* L-BFGS: which direction, and what to do with the point that was evaluated.  See lbfgs.h.
 *
 * A step of the machine costs about two passes over four vectors for each pair that is remembered, and only when a
 * point is accepted; a step of the search along a line reads two. */
#include "learn/lbfgs_internal.h"

#include <math.h>
#include <string.h>

/* Between s and y of a pair that is used, and between the direction and the steepest descent. */
static const double COSINE_LEAST = 1e-10;

enum { IDLE_MOST = 20 }; /* iterations that lower neither the value nor the gradient */

/* ---- the machine ------------------------------------------------------------------------------------------------- */

static bool options_good(const learn_lbfgs_options *of)
{
    return of->parameters >= 1 && of->parameters <= INT64_MAX / 64 && of->history >= 1 &&
           of->history <= LEARN_LBFGS_HISTORY_MOST && of->iterations >= 0 && of->gradient_tolerance >= 0 &&
           of->gradient_tolerance < INFINITY && of->change_tolerance >= 0 && of->change_tolerance < INFINITY &&
           of->l1 >= 0 && of->l1 < INFINITY && of->l1_first >= 0 && of->l1_count >= 0 &&
           of->l1_first <= of->parameters && of->l1_count <= of->parameters - of->l1_first;
}

int learn_lbfgs_start(learn_lbfgs *machine, const learn_lbfgs_options *options)
{
    if (!options_good(options))
        return shoal_fail(SHOAL_USAGE,
                          "L-BFGS can't start: %lld parameters, history %lld (1 to %d), %lld iterations, tolerances "
                          "%g and %g, L1 %g over %lld parameters from %lld on",
                          (long long)options->parameters, (long long)options->history, LEARN_LBFGS_HISTORY_MOST,
                          (long long)options->iterations, options->gradient_tolerance, options->change_tolerance,
                          options->l1, (long long)options->l1_count, (long long)options->l1_first);
    memset(machine, 0, sizeof *machine);
    machine->options = *options;
    machine->change = NAN;
    return SHOAL_OK;
}

static const int64_t COUNT_MOST = INT64_MAX / 2; /* beyond all that can be counted */

static bool curvatures_good(const learn_lbfgs *machine)
{
    for (int i = 0; i < LEARN_LBFGS_HISTORY_MOST; i++)
        if (!(machine->curvature[i] >= 0 && machine->curvature[i] < INFINITY) ||
            (i >= machine->pairs && machine->curvature[i] != 0))
            return false;
    return machine->scale >= 0 && machine->scale < INFINITY;
}

bool learn_lbfgs_good(const learn_lbfgs *machine, int64_t parameters, int past)
{
    const learn_lbfgs_options *options = &machine->options;
    if (!options_good(options) || options->parameters != parameters)
        return false;
    const int64_t most = options->history + 1;
    const bool counts = machine->accepted >= 0 && past == (machine->accepted < most ? machine->accepted : most) &&
                        machine->iteration >= 0 && machine->iteration <= options->iterations &&
                        machine->evaluations >= machine->accepted / 2 && machine->evaluations <= COUNT_MOST &&
                        machine->accepted <= COUNT_MOST && machine->iteration <= machine->accepted &&
                        machine->pairs >= 0 && machine->pairs <= (past > 0 ? past - 1 : 0) && machine->idle >= 0 &&
                        machine->idle <= IDLE_MOST;
    const bool scalars = isfinite(machine->value) && machine->gradient_most >= 0 && isfinite(machine->gradient_most) &&
                         isfinite(machine->least_value) && machine->least_gradient >= 0 &&
                         isfinite(machine->least_gradient) &&
                         (isfinite(machine->change) || (isnan(machine->change) && machine->iteration == 0)) &&
                         machine->end >= LEARN_LBFGS_GOES_ON && machine->end <= LEARN_LBFGS_DIVERGED;
    return counts && scalars && curvatures_good(machine) && lbfgs_line_good(&machine->line);
}

static bool penalised(const learn_lbfgs *machine)
{
    return machine->options.l1 > 0 && machine->options.l1_count > 0;
}

/* ---- the direction ----------------------------------------------------------------------------------------------- */

/* The pairs that may be used, newest first; the first is the one between the newest iterate of the past and
 * `iterate`. */
static int list_pairs(lbfgs_pair *pairs, const learn_lbfgs *machine, const learn_past *past, const double *iterate)
{
    const int64_t n = machine->options.parameters;
    int count = 0;
    for (int i = 0; i < machine->pairs; i++) {
        const double *newer = i == 0 ? iterate : past->iterate[past->count - i];
        const double *older = past->iterate[past->count - 1 - i];
        if (machine->curvature[i] > 0)
            pairs[count++] = (lbfgs_pair){newer, newer + n, older, older + n, machine->curvature[i]};
    }
    return count;
}

/* Remembers the newest pair, if its curvature is enough. */
static void remember_pair(learn_lbfgs *machine, const lbfgs_measure *at)
{
    const int64_t most = machine->options.history;
    const bool enough = at->sy > COSINE_LEAST * sqrt(at->ss) * sqrt(at->yy) && at->sy < INFINITY && at->yy > 0;
    if (machine->pairs < most)
        machine->pairs++;
    memmove(machine->curvature + 1, machine->curvature, sizeof(double) * (size_t)(machine->pairs - 1));
    machine->curvature[0] = enough ? at->sy : 0;
    if (enough)
        machine->scale = at->sy / at->yy;
}

/* The two loops of Nocedal 1980 turn the (pseudo-)gradient that lies in the iterate's third part into the direction.
 * Each pass changes q and makes the product that the next one needs. */
static void turn_gradient(lbfgs_space *space, double *slope, double *length, const learn_lbfgs *machine,
                          const learn_past *past, double *iterate, const lbfgs_measure *at)
{
    lbfgs_pair pairs[LEARN_LBFGS_HISTORY_MOST];
    double alpha[LEARN_LBFGS_HISTORY_MOST];
    double *q = iterate + 2 * space->count;
    const int count = list_pairs(pairs, machine, past, iterate);
    if (count == 0)
        return;
    double product = machine->curvature[0] > 0 ? at->sp : lbfgs_pass_down(space, q, 0, &pairs[0], &pairs[0]);
    for (int i = 0; i < count; i++) {
        alpha[i] = product / pairs[i].curvature;
        product = i + 1 < count ? lbfgs_pass_down(space, q, alpha[i], &pairs[i], &pairs[i + 1])
                                : lbfgs_pass_turn(space, q, alpha[i], machine->scale, &pairs[i]);
    }
    for (int i = count - 1; i >= 0; i--) {
        const double amount = alpha[i] - product / pairs[i].curvature;
        if (i > 0)
            product = lbfgs_pass_up(space, q, amount, &pairs[i], &pairs[i - 1]);
        else
            lbfgs_pass_close(space, slope, length, iterate, amount, &pairs[i]);
    }
}

/* Starts over with the steepest descent from a point that is already the iterate's. */
static void descend_steepest(lbfgs_space *space, learn_lbfgs *machine, double *iterate)
{
    const double square = lbfgs_pass_steepest(space, iterate), length = sqrt(square);
    const double step = machine->scale > 0 ? machine->scale : length > 1 ? 1 / length : 1;
    machine->pairs = 0;
    memset(machine->curvature, 0, sizeof machine->curvature);
    lbfgs_line_start(&machine->line, -square, step);
}

/* ---- points ------------------------------------------------------------------------------------------------------ */

static void finish_lbfgs(lbfgs_space *space, learn_lbfgs_answer *out, learn_lbfgs *machine, learn_lbfgs_end end,
                         double *x, const double *best)
{
    machine->end = end;
    out->done = true;
    if (best != NULL && space->status == SHOAL_OK && x != best)
        memcpy(x, best, sizeof *x * (size_t)space->count);
}

/* Why an accepted point is the last one, if it is. */
static learn_lbfgs_end reason_to_end(const learn_lbfgs *machine)
{
    const learn_lbfgs_options *options = &machine->options;
    if (machine->gradient_most <= options->gradient_tolerance) /* so a gradient of 0 ends it whatever the tolerance */
        return LEARN_LBFGS_GRADIENT;
    if (machine->iteration > 0 && options->change_tolerance > 0 && machine->change <= options->change_tolerance)
        return LEARN_LBFGS_CHANGE;
    if (machine->idle >= IDLE_MOST)
        return LEARN_LBFGS_STUCK;
    return machine->iteration >= options->iterations ? LEARN_LBFGS_ITERATIONS : LEARN_LBFGS_GOES_ON;
}

/* Ends, or puts the first point of the next search into x. */
static void go_on_from(lbfgs_space *space, learn_lbfgs_answer *out, learn_lbfgs *machine, double *iterate, double *x)
{
    const learn_lbfgs_end end = reason_to_end(machine);
    out->accepted = true;
    machine->accepted++;
    if (end != LEARN_LBFGS_GOES_ON) {
        memset(iterate + 2 * space->count, 0, sizeof *iterate * (size_t)space->count);
        finish_lbfgs(space, out, machine, end, x, iterate);
    } else {
        lbfgs_pass_move(space, x, iterate, machine->line.step);
    }
}

static void take_first(lbfgs_space *space, learn_lbfgs_answer *out, learn_lbfgs *machine, double value, const double *g,
                       double *x, double *iterate)
{
    lbfgs_measure at;
    lbfgs_pass_first(space, &at, iterate, x, g);
    if (!isfinite(value + at.l1) || !isfinite(at.pp)) {
        finish_lbfgs(space, out, machine, LEARN_LBFGS_DIVERGED, x, NULL);
        return;
    }
    const double length = sqrt(at.pp);
    machine->value = machine->least_value = value + at.l1;
    machine->gradient_most = machine->least_gradient = at.greatest;
    lbfgs_line_start(&machine->line, -at.pp, length > 1 ? 1 / length : 1);
    go_on_from(space, out, machine, iterate, x);
}

/* Where rounding hides whether points get lower they are accepted by their slopes, and that could go on forever. */
static void notice_progress(learn_lbfgs *machine)
{
    const bool lower = machine->value < machine->least_value || machine->gradient_most < machine->least_gradient;
    machine->idle = lower ? 0 : machine->idle + 1;
    machine->least_value = fmin(machine->least_value, machine->value);
    machine->least_gradient = fmin(machine->least_gradient, machine->gradient_most);
}

static void take_step(lbfgs_space *space, learn_lbfgs_answer *out, learn_lbfgs *machine, const learn_past *past,
                      double value, const double *g, double *x, double *iterate)
{
    lbfgs_measure at;
    lbfgs_pass_meet(space, &at, iterate, x, g, past->iterate[past->count - 1]);
    const double before = machine->value;
    machine->iteration++;
    machine->value = value + at.l1;
    machine->gradient_most = at.greatest;
    machine->change = (before - machine->value) / fmax(fmax(fabs(before), fabs(machine->value)), 1e-300);
    notice_progress(machine);
    if (reason_to_end(machine) == LEARN_LBFGS_GOES_ON) {
        double slope = 0, length = 0;
        remember_pair(machine, &at);
        turn_gradient(space, &slope, &length, machine, past, iterate, &at);
        if (slope < -COSINE_LEAST * sqrt(length) * sqrt(at.pp) && slope > -INFINITY)
            lbfgs_line_start(&machine->line, slope, 1);
        else
            descend_steepest(space, machine, iterate);
    }
    go_on_from(space, out, machine, iterate, x);
}

/* A search found nothing.  Directions made of old pairs may be bad ones; the steepest descent is the last resort. */
static void start_over(lbfgs_space *space, learn_lbfgs_answer *out, learn_lbfgs *machine, const learn_past *past,
                       double *x, double *iterate)
{
    const int64_t n = space->count;
    const double *newest = past->iterate[past->count - 1];
    if (machine->pairs == 0) {
        const bool nothing_finite = machine->line.best_step == 0 && machine->line.wall > 0 && !machine->line.bracketed;
        finish_lbfgs(space, out, machine, nothing_finite ? LEARN_LBFGS_DIVERGED : LEARN_LBFGS_STUCK, x, newest);
        return;
    }
    memcpy(iterate, newest, 2 * sizeof *iterate * (size_t)n);
    descend_steepest(space, machine, iterate);
    go_on_from(space, out, machine, iterate, x);
}

/* What the search along the line says to the point. */
static lbfgs_verdict judge_value(lbfgs_space *space, learn_lbfgs *machine, double value, const double *g,
                                 const double *x, const double *newest)
{
    if (!penalised(machine)) {
        double slope, square;
        lbfgs_pass_slope(space, &slope, &square, g, newest);
        const bool finite = isfinite(value) && isfinite(slope) && isfinite(square);
        return lbfgs_line_wolfe(&machine->line, machine->value, value, slope, finite);
    }
    lbfgs_change change;
    lbfgs_pass_change(space, &change, x, g, newest);
    const double with = value + change.l1;
    const bool finite = isfinite(with) && isfinite(change.trapezium) && isfinite(change.square);
    return lbfgs_line_back(&machine->line, machine->value, with, &change, finite);
}

static void proceed(lbfgs_space *space, learn_lbfgs_answer *out, learn_lbfgs *machine, const learn_past *past,
                    double value, const double *g, double *x, double *iterate)
{
    machine->evaluations++;
    if (machine->accepted == 0) {
        take_first(space, out, machine, value, g, x, iterate);
        return;
    }
    const double *newest = past->iterate[past->count - 1];
    switch (judge_value(space, machine, value, g, x, newest)) {
    case LBFGS_TRY: lbfgs_pass_move(space, x, newest, machine->line.step); break;
    case LBFGS_TAKE: take_step(space, out, machine, past, value, g, x, iterate); break;
    case LBFGS_FAIL: start_over(space, out, machine, past, x, iterate); break;
    }
}

int learn_lbfgs_step(learn_lbfgs_answer *out, learn_lbfgs *machine, const learn_past *past, double value,
                     const double *gradient, double *x, double *workspace, const shoal_crew *crew)
{
    lbfgs_space space;
    learn_lbfgs after = *machine;
    *out = (learn_lbfgs_answer){.done = machine->end != LEARN_LBFGS_GOES_ON};
    if (out->done)
        return SHOAL_OK;
    if (lbfgs_space_init(&space, &machine->options, crew) == SHOAL_OK)
        proceed(&space, out, &after, past, value, gradient, x, workspace);
    if (space.status == SHOAL_OK)
        *machine = after;
    lbfgs_space_release(&space);
    return space.status;
}
