/* What to try next.  First three candidates that lie far apart, by chance; then that with the greatest expected
 * improvement, as a share of the best so far, times the chance that it works and meets deadline and budget.
 *
 * To stop when the greatest expected improvement of one trial is small, as CherryPick does, is too early: ten
 * candidates that might each be a bit better are worth trying when none of them is.  Ours stops when trying all that is
 * left would be expected to gain too little. */
#include "search_internal.h"

#include <math.h>
#include <stdio.h>

#include "base/random.h"

enum { DRAWS_A_START = 4, GAIN_STEPS = 24 };

static double normal_below(double x)
{
    return 0.5 * erfc(-x * 0.70710678118654752);
}

/* ---- by chance --------------------------------------------------------------------------------------------------- */

/* One of the untried, each as likely; `draw` tells apart the draws for one trial. */
static int64_t draw_untried(const plan_search *search, uint32_t draw)
{
    const int64_t candidates = search->space->candidates, left = candidates - search->trials;
    uint64_t skip =
        base_random_below((uint64_t)left, search->options.seed, BASE_FOR_SEARCH, (uint64_t)search->trials, draw * 64);
    for (int64_t c = 0; c < candidates; c++)
        if (!search->tried[c] && skip-- == 0)
            return c;
    return -1;
}

/* Of a few drawn by chance that which is farthest from all tried (Mitchell 1991): spread out, yet not always in the
 * corners of the space, where runs tell least. */
static int64_t choose_start(const plan_search *search)
{
    int64_t chosen = draw_untried(search, 0);
    double farthest = -1;
    for (uint32_t draw = 0; search->trials > 0 && draw < DRAWS_A_START; draw++) {
        const int64_t c = draw_untried(search, draw);
        double nearest = INFINITY;
        for (int64_t i = 0; i < search->trials; i++)
            nearest = fmin(nearest, search_distance(search, c, search->trial[i].candidate));
        if (nearest > farthest) {
            farthest = nearest;
            chosen = c;
        }
    }
    return chosen;
}

/* ---- by what is expected ----------------------------------------------------------------------------------------- */

/* The chance that one member gives a candidate to meet a limit, which is measured with noise; 1 without a limit. */
static double chance_to_meet(const plan_search *search, int member, search_quantity quantity, double limit,
                             int64_t candidate)
{
    if (!(limit > 0))
        return 1;
    const double deviation = search_deviation(search, member, quantity, candidate),
                 noise = search->model.member[member].kernel.noise;
    return normal_below((log(limit) - search_mean(search, member, quantity, candidate)) / hypot(deviation, noise));
}

static double meets_all(const plan_search *search, int member, int64_t candidate)
{
    return chance_to_meet(search, member, SEARCH_SECONDS, search->limit, candidate) *
           chance_to_meet(search, member, SEARCH_DOLLARS, search->options.budget, candidate);
}

/* E max(0, 1 - e^(f - best)) for normal f. */
static double improvement(double mean, double deviation, double best)
{
    const double z = (best - mean) / deviation, gained = normal_below(z), lost = normal_below(z - deviation);
    /* Without a chance of it the power may be infinite. */
    return lost > 0 ? gained - exp(mean - best + deviation * deviation / 2) * lost : gained;
}

/* What a trial of one candidate that works is expected to gain.  While nothing meets deadline and budget, the chance
 * that this one does, those first that are probably better than most. */
static double expected_gain(const plan_search *search, int64_t candidate, double best, double middle)
{
    const search_model *model = &search->model;
    double sum = 0;
    for (int i = 0; i < model->members; i++) {
        if (model->weight[i] == 0)
            continue;
        const double mean = search_mean(search, i, SEARCH_OBJECTIVE, candidate);
        const double deviation = search_deviation(search, i, SEARCH_OBJECTIVE, candidate);
        const double gain =
            isfinite(best) ? improvement(mean, deviation, best) : normal_below((middle - mean) / deviation);
        sum += model->weight[i] * gain * meets_all(search, i, candidate);
    }
    return sum;
}

double search_best_so_far(const plan_search *search)
{
    return search->best >= 0 ? search_value(search, &search->trial[search->best], SEARCH_OBJECTIVE) : INFINITY;
}

/* What one member expects of trying all that is left, as if candidates were independent, which is never too little.
 * With `gain` below 0: the chance that any meets deadline and budget. */
static double chance_of_gain(const plan_search *search, int member, double best, double gain)
{
    double none = 1;
    for (int64_t c = 0; c < search->space->candidates; c++) {
        if (search->tried[c])
            continue;
        double chance = search->works[c] * meets_all(search, member, c);
        if (gain >= 0) {
            const double z = (best + log1p(-gain) - search_mean(search, member, SEARCH_OBJECTIVE, c)) /
                             search_deviation(search, member, SEARCH_OBJECTIVE, c);
            chance *= z < -6 ? 0 : normal_below(z);
        }
        none *= 1 - chance;
    }
    return 1 - none;
}

double search_gain_of_all(const plan_search *search, double next)
{
    const search_model *model = &search->model;
    const double best = search_best_so_far(search);
    double sum = 0;
    (void)next;
    for (int i = 0; i < model->members; i++) {
        if (model->weight[i] < 1e-3)
            continue;
        double gain = 0;
        for (int step = 0; isfinite(best) && step < GAIN_STEPS; step++)
            gain += chance_of_gain(search, i, best, (step + 0.5) / GAIN_STEPS) / GAIN_STEPS;
        sum += model->weight[i] * (isfinite(best) ? gain : chance_of_gain(search, i, best, -1));
    }
    return sum;
}

/* The mean of what the model expects of the untried. */
static double middle_of_untried(const plan_search *search)
{
    double sum = 0;
    for (int64_t c = 0; c < search->space->candidates; c++)
        for (int i = 0; !search->tried[c] && i < search->model.members; i++)
            sum += search->model.weight[i] * search_mean(search, i, SEARCH_OBJECTIVE, c);
    return sum / (double)(search->space->candidates - search->trials);
}

/* ---- the decision ------------------------------------------------------------------------------------------------ */

/* The untried candidate with the greatest expected gain, which goes to *gain. */
static int64_t choose_by_model(plan_search *search, double *gain)
{
    const double best = search_best_so_far(search), middle = isfinite(best) ? 0 : middle_of_untried(search);
    int64_t chosen = -1;
    *gain = -1;
    for (int64_t c = 0; c < search->space->candidates; c++) {
        if (search->tried[c])
            continue;
        search->works[c] = search_works(search, c);
        const double expected = search->works[c] * expected_gain(search, c, best, middle);
        if (expected > *gain) {
            *gain = expected;
            chosen = c;
        }
    }
    return chosen;
}

/* What none of the trials did. */
static const char *goal_of(const plan_search *search)
{
    const bool deadline = search->options.deadline > 0, budget = search->options.budget > 0;
    return deadline && budget ? "meets deadline and budget"
           : deadline         ? "meets the deadline"
           : budget           ? "meets the budget"
                              : "works";
}

/* Whether to stop, given what the next trial is expected to gain; says why. */
static bool stops(plan_search *search, double gain)
{
    if (!(search->options.improvement > 0) || search->trials < search->options.least)
        return false;
    const double expected = search->method->left_to_gain(search, gain);
    if (expected >= search->options.improvement)
        return false;
    const double percent = 100 * expected;
    if (search->best < 0)
        snprintf(search->why, sizeof search->why, "stop: the chance that any other %s is %.2g%%", goal_of(search),
                 percent);
    else
        snprintf(search->why, sizeof search->why, "stop: %s expected to gain %.2g%%", search->method->left, percent);
    return true;
}

int64_t search_choose(plan_search *search)
{
    const int64_t candidates = search->space->candidates, most = search->options.most;
    if (search->trials == candidates || (most > 0 && search->trials >= most)) {
        snprintf(search->why, sizeof search->why,
                 search->trials == candidates ? "stop: all were tried"
                 : search->trials == 1        ? "stop: one was tried"
                                              : "stop: %lld were tried",
                 (long long)search->trials);
        return -1;
    }
    if (!search->method->init) {
        snprintf(search->why, sizeof search->why, "by chance");
        return draw_untried(search, 0);
    }
    if (search->trials < SEARCH_STARTS) {
        snprintf(search->why, sizeof search->why, "start %lld of %d", (long long)search->trials + 1, SEARCH_STARTS);
        return choose_start(search);
    }
    double gain = 0;
    const int64_t chosen = choose_by_model(search, &gain);
    if (stops(search, gain))
        return -1;
    if (search->best >= 0)
        snprintf(search->why, sizeof search->why, "expected gain %.2g%%", 100 * gain);
    else
        snprintf(search->why, sizeof search->why, "none %s yet: this one may", goal_of(search));
    return chosen;
}
