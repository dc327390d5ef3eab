/* Gaussian process (base/gaussian.h) with the greatest expected improvement (Jones, Schonlau and Welch 1998), after ten
 * trials by Sobol's sequence: for few trials, each of which is dear.
 *
 * Its features are the places of the parameters; a list without an order has one for each value.  Values are
 * standardised, and those far worse than the middle are brought in.  Length scale and noise are those of a few that
 * explain the trials best.  Trials that still run are taken to come out in the middle. */
#include "sampler.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <shoal/error.h>

#include "base/gaussian.h"
#include "base/memory.h"

enum {
    STARTS = 10,
    TRIALS_MOST = 200, /* that the process is made of: the best half, and the last */
    BY_CHANCE = 200,   /* candidates, and those near the best */
    NEAR_BEST = 120,
    BEST_MOST = 4,
    ONE_EACH_MOST = 8, /* a list of more values has one feature */
    DRAWS = 64,
    SCALES = 6,
    NOISES = 3
};
static const double FAR = 3; /* deviations that a bad value may lie from the middle */
static const double scales[SCALES] = {0.1, 0.2, 0.35, 0.6, 1, 2}, noises[NOISES] = {0.03, 0.15, 0.4};

typedef struct gp_model {
    const sweep_question *question;
    int features;
    int feature[SWEEP_PARAMETERS_MOST]; /* the first of each parameter */
    int each[SWEEP_PARAMETERS_MOST];    /* how many it has */
    int64_t seen, candidates;
    int64_t trial[TRIALS_MOST];
    double value[TRIALS_MOST];
    double best;
    sweep_point *candidate;
    double *place; /* of the trials, and then of the candidates */
} gp_model;

static void look_at_parameters(gp_model *model)
{
    const sweep_space *space = model->question->space;
    for (int i = 0; i < space->parameters; i++) {
        const sweep_parameter *p = &space->parameter[i];
        const bool apart = p->kind == SWEEP_LIST && !p->ordered && p->values > 1 && p->values <= ONE_EACH_MOST;
        model->each[i] = sweep_values_of(p) <= 1 ? 0 : apart ? (int)p->values : 1;
        if (model->features + model->each[i] > BASE_FEATURES_MOST)
            model->each[i] = model->features < BASE_FEATURES_MOST;
        model->feature[i] = model->features;
        model->features += model->each[i];
    }
}

static void fill_features(double *out, const gp_model *model, const sweep_point *point)
{
    const sweep_space *space = model->question->space;
    for (int i = 0; i < space->parameters; i++)
        for (int k = 0; k < model->each[i]; k++) {
            const double value = point->value[i];
            out[model->feature[i] + k] = isnan(value)          ? 0.5
                                         : model->each[i] == 1 ? sweep_place_of(&space->parameter[i], value)
                                                               : 0.7 * (value == k);
        }
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Brings values to middle 0 and a spread of about 1; what failed is as bad as the worst may be. */
static void standardise(gp_model *model, int64_t known)
{
    double sorted[TRIALS_MOST], sum = 0;
    int64_t count = 0;
    for (int64_t i = 0; i < known; i++)
        if (isfinite(model->value[i]))
            sorted[count++] = model->value[i];
    qsort(sorted, (size_t)count, sizeof *sorted, ascending);
    const double middle = count ? sorted[count / 2] : 0;
    for (int64_t i = 0; i < count; i++)
        sum += fabs(sorted[i] - middle);
    const double spread = sum > 0 ? sum / (double)count : 1;
    model->best = INFINITY;
    for (int64_t i = 0; i < model->seen; i++) {
        double *value = &model->value[i];
        *value = i >= known ? 0 : isfinite(*value) ? fmin((*value - middle) / spread, FAR) : FAR;
        if (i < known)
            model->best = fmin(model->best, *value);
    }
}

/* The best, those that ended last, and those that run. */
static int choose_trials(gp_model *model)
{
    const sweep_question *question = model->question;
    int64_t *order = NULL;
    int status = base_alloc(&order, (size_t)question->trials, sizeof *order, "a model of trials");
    if (status < 0)
        return status;
    const int64_t ranked = sweep_rank_trials(order, question), room = TRIALS_MOST - 40;
    for (int64_t i = 0; i < ranked && model->seen < room; i++)
        if (ranked <= room || i < room / 2 || order[i] >= question->trials - room / 2)
            model->trial[model->seen++] = order[i];
    const int64_t known = model->seen;
    for (int64_t i = 0; i < known; i++) {
        const sweep_trial *trial = &question->trial[model->trial[i]];
        model->value[i] = trial->state == SWEEP_FAILED ? (double)NAN : trial->value;
    }
    for (int64_t i = 0; i < question->trials && model->seen < TRIALS_MOST; i++)
        if (question->trial[i].state == SWEEP_RUNNING && question->trial[i].rungs == 0)
            model->trial[model->seen++] = i;
    standardise(model, known);
    base_free(&order);
    return SHOAL_OK;
}

/* ---- candidates -------------------------------------------------------------------------------------------------- */

/* Some by chance, and some that differ a little from the best. */
static void draw_candidate(sweep_point *out, const gp_model *model, int64_t number)
{
    const sweep_question *question = model->question;
    const sweep_space *space = question->space;
    const uint32_t draw = (uint32_t)(number + 1) * DRAWS;
    double place[SWEEP_PARAMETERS_MOST];
    const int64_t best = number % BEST_MOST < model->seen ? number % BEST_MOST : 0;
    const sweep_point *near = &question->trial[model->trial[best]].point;
    for (int i = 0; i < space->parameters; i++) {
        const double chance = sweep_chance(question, draw + (uint32_t)i);
        const double move = sweep_chance(question, draw + (uint32_t)(SWEEP_PARAMETERS_MOST + i));
        place[i] = chance;
        if (number >= BY_CHANCE && !isnan(near->value[i]) && move < 0.75) {
            const double from = sweep_place_of(&space->parameter[i], near->value[i]);
            place[i] = fmin(fmax(from + 0.1 * (chance + move / 0.75 - 1), 0), 1);
        }
    }
    sweep_point_at(out, space, place);
}

static int make_places(gp_model *model)
{
    const sweep_question *question = model->question;
    const int64_t most = question->pool ? question->pools : BY_CHANCE + NEAR_BEST;
    int status = base_alloc(&model->candidate, (size_t)most, sizeof *model->candidate, "a model of trials");
    if (status == SHOAL_OK)
        status = base_alloc(&model->place, (size_t)((model->seen + most) * model->features), sizeof *model->place,
                            "a model of trials");
    if (status < 0)
        return status;
    for (int64_t i = 0; i < model->seen; i++)
        fill_features(model->place + i * model->features, model, &question->trial[model->trial[i]].point);
    for (int64_t c = 0; c < most; c++) {
        sweep_point *point = &model->candidate[model->candidates];
        if (question->pool && question->used[c])
            continue;
        if (question->pool)
            *point = question->pool[c];
        else
            draw_candidate(point, model, c);
        if (!question->pool && sweep_was_tried(question, point))
            continue;
        fill_features(model->place + (model->seen + model->candidates) * model->features, model, point);
        model->candidates++;
    }
    return SHOAL_OK;
}

/* ---- the process ------------------------------------------------------------------------------------------------- */

static base_kernel kernel_of(const gp_model *model, double scale, double noise)
{
    base_kernel kernel = {.features = model->features, .signal = 1, .noise = noise, .constant = 0.5};
    for (int i = 0; i < model->features; i++)
        kernel.scale[i] = scale;
    return kernel;
}

/* Sees the trials; `places` of them and of candidates.  *likelihood says how well that explains the values. */
static int see_trials(base_gaussian *process, double *likelihood, double *white, const gp_model *model,
                      const base_kernel *kernel, int64_t places)
{
    int status = base_gaussian_init(process, kernel, model->place, places);
    for (int64_t i = 0; i < model->seen && status == SHOAL_OK; i++)
        status = base_gaussian_see(process, i);
    if (status == SHOAL_OK)
        *likelihood = base_gaussian_explain(process, white, model->value);
    return status;
}

/* The length scale, in the square root of the number of parameters, and the noise that explain the values best. */
static int fit_kernel(base_kernel *out, const gp_model *model)
{
    double white[TRIALS_MOST], best = -INFINITY, likelihood = 0;
    int status = SHOAL_OK;
    for (int s = 0; s < SCALES * NOISES && status == SHOAL_OK; s++) {
        const base_kernel kernel =
            kernel_of(model, scales[s / NOISES] * sqrt((double)model->features), noises[s % NOISES]);
        base_gaussian process = {0};
        status = see_trials(&process, &likelihood, white, model, &kernel, model->seen);
        base_gaussian_release(&process);
        if (status == SHOAL_OK && likelihood > best) {
            best = likelihood;
            *out = kernel;
        }
    }
    return status;
}

static double expected_improvement(double mean, double deviation, double best)
{
    const double z = (best - mean) / deviation;
    return deviation * (z * 0.5 * erfc(-z * 0.70710678118654752) + 0.39894228040143268 * exp(-0.5 * z * z));
}

static int choose_candidate(sweep_point *out, const gp_model *model)
{
    base_kernel kernel = kernel_of(model, 1, 0.1);
    base_gaussian process = {0};
    double white[TRIALS_MOST], likelihood = 0, most = -INFINITY;
    int status = fit_kernel(&kernel, model);
    if (status == SHOAL_OK)
        status = see_trials(&process, &likelihood, white, model, &kernel, model->seen + model->candidates);
    for (int64_t c = 0; c < model->candidates && status == SHOAL_OK; c++) {
        const int64_t at = model->seen + c;
        const double deviation = sqrt(fmax(process.variance[at], 1e-12));
        const double gain = expected_improvement(base_gaussian_mean(&process, white, at), deviation, model->best);
        if (gain > most) {
            most = gain;
            *out = model->candidate[c];
        }
    }
    base_gaussian_release(&process);
    return status;
}

static int suggest_gp(sweep_point *out, const sweep_question *question)
{
    int64_t told = 0;
    gp_model model = {.question = question};
    for (int64_t i = 0; i < question->trials; i++)
        told += question->trial[i].rungs > 0 && question->trial[i].state != SWEEP_FAILED;
    if (told < STARTS)
        return question->pool ? sweep_point_by_chance(out, question) : sweep_sampler_sobol.suggest(out, question);
    look_at_parameters(&model);
    int status = model.features > 0 ? choose_trials(&model) : SHOAL_OK;
    if (status == SHOAL_OK && model.features > 0)
        status = make_places(&model);
    if (status == SHOAL_OK && model.candidates > 0)
        status = choose_candidate(out, &model);
    else if (status == SHOAL_OK)
        status = sweep_point_by_chance(out, question);
    base_free(&model.candidate);
    base_free(&model.place);
    return status;
}

const sweep_sampler sweep_sampler_gp = {
    .name = "gp", .summary = "where a Gaussian process expects most (for few, dear trials)", .suggest = suggest_gp};
