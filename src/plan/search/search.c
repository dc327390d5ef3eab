/* A search: checks what it is given and keeps the trials.  The choice is search_choose.c's. */
#include "search.h"

#include <math.h>
#include <string.h>

#include <shoal/error.h>

#include "base/memory.h"
#include "search_internal.h"

enum { CANDIDATES_MOST = 10000 };

/* ---- checks ------------------------------------------------------------------------------------------------------ */

static const char *candidate_name(const plan_candidate *candidate)
{
    return candidate->machine ? candidate->machine : "";
}

static int check_candidate(const plan_candidates *space, int64_t at, const plan_search_options *options)
{
    const plan_candidate *candidate = &space->candidate[at];
    const long long count = candidate->count;
    if (!isfinite(candidate->dollars_per_hour) || candidate->dollars_per_hour < 0)
        return shoal_fail(SHOAL_INVALID, "%lld of %s: %g is not a price", count, candidate_name(candidate),
                          candidate->dollars_per_hour);
    if (candidate->dollars_per_hour == 0 && (options->objective != PLAN_TIME || options->budget > 0))
        return shoal_fail(SHOAL_INVALID, "%lld of %s has no price, which cost needs", count, candidate_name(candidate));
    for (int j = 0; j < space->features; j++) {
        const double value = candidate->feature[j];
        const char *feature = space->feature_name[j] ? space->feature_name[j] : "a feature";
        if (!isfinite(value))
            return shoal_fail(SHOAL_INVALID, "%lld of %s: %s is not a number", count, candidate_name(candidate),
                              feature);
        if (space->logarithmic[j] && value <= 0)
            return shoal_fail(SHOAL_INVALID, "%lld of %s: %s is %g, and must be above 0", count,
                              candidate_name(candidate), feature, value);
    }
    for (int64_t i = 0; i < at; i++)
        if (space->candidate[i].count == candidate->count &&
            strcmp(candidate_name(&space->candidate[i]), candidate_name(candidate)) == 0)
            return shoal_fail(SHOAL_INVALID, "%lld of %s appears twice, as candidates %lld and %lld", count,
                              candidate_name(candidate), (long long)i + 1, (long long)at + 1);
    return SHOAL_OK;
}

static int check_search_options(const plan_search_options *options)
{
    if (options->objective < PLAN_TIME || options->objective > PLAN_COST_TIME)
        return shoal_fail(SHOAL_USAGE, "a search has no objective of number %d", (int)options->objective);
    if (!(options->deadline >= 0 && isfinite(options->deadline)))
        return shoal_fail(SHOAL_USAGE, "a deadline cannot be %g seconds", options->deadline);
    if (!(options->budget >= 0 && isfinite(options->budget)))
        return shoal_fail(SHOAL_USAGE, "a budget cannot be %g dollars", options->budget);
    if (options->least < 0 || options->most < 0)
        return shoal_fail(SHOAL_USAGE, "a search can't have a negative number of trials");
    if (!(options->improvement >= 0 && options->improvement < 1))
        return shoal_fail(SHOAL_USAGE, "a search stops at an improvement from 0 to below 1, not at %g",
                          options->improvement);
    return SHOAL_OK;
}

static int check_space(const plan_candidates *space, const plan_search_options *options)
{
    if (space->candidates < 1)
        return shoal_fail(SHOAL_USAGE, "a search needs candidates");
    if (space->candidates > CANDIDATES_MOST)
        return shoal_fail(SHOAL_USAGE, "%lld candidates are more than the %d a search can have",
                          (long long)space->candidates, CANDIDATES_MOST);
    if (space->features < 0 || space->features > PLAN_FEATURES_MOST)
        return shoal_fail(SHOAL_USAGE, "a candidate has 0 to %d features, not %d", PLAN_FEATURES_MOST, space->features);
    int status = check_search_options(options);
    for (int64_t i = 0; status == SHOAL_OK && i < space->candidates; i++)
        status = check_candidate(space, i, options);
    return status;
}

/* ---- places of candidates ---------------------------------------------------------------------------------------- */

static double feature_of(const plan_candidates *space, int64_t candidate, int feature)
{
    const double value = space->candidate[candidate].feature[feature];
    return space->logarithmic[feature] ? log(value) : value;
}

/* Features in which all are alike tell nothing, and are left out. */
static int place_candidates(plan_search *search)
{
    const plan_candidates *space = search->space;
    int kept[PLAN_FEATURES_MOST];
    double low[PLAN_FEATURES_MOST], high[PLAN_FEATURES_MOST];
    for (int j = 0; j < space->features; j++) {
        low[j] = INFINITY, high[j] = -INFINITY;
        for (int64_t c = 0; c < space->candidates; c++) {
            low[j] = fmin(low[j], feature_of(space, c, j));
            high[j] = fmax(high[j], feature_of(space, c, j));
        }
        if (high[j] > low[j])
            kept[search->features++] = j;
    }
    int status = base_alloc(&search->place, (size_t)space->candidates * (size_t)search->features, sizeof *search->place,
                            "a search");
    for (int64_t c = 0; status == SHOAL_OK && c < space->candidates; c++)
        for (int k = 0; k < search->features; k++) {
            const int j = kept[k];
            /* Halved first: the span of two features may be infinite. */
            search->place[c * search->features + k] =
                2 * (feature_of(space, c, j) / 2 - low[j] / 2) / (high[j] / 2 - low[j] / 2) - 1;
        }
    return status;
}

double search_distance(const plan_search *search, int64_t a, int64_t b)
{
    double sum = 0;
    for (int j = 0; j < search->features; j++) {
        const double d = search->place[a * search->features + j] - search->place[b * search->features + j];
        sum += d * d;
    }
    return sum;
}

const char *plan_objective_name(plan_objective objective)
{
    static const char *const names[] = {[PLAN_TIME] = "time", [PLAN_COST] = "cost", [PLAN_COST_TIME] = "cost*time"};
    return names[objective];
}

/* ---- the search -------------------------------------------------------------------------------------------------- */

int plan_search_new(plan_search **out, const plan_candidates *space, const plan_search_options *options)
{
    plan_search *search = NULL;
    *out = NULL;
    int status = check_space(space, options);
    if (status == SHOAL_OK)
        status = base_alloc(&search, 1, sizeof *search, "a search");
    if (status == SHOAL_OK) {
        search->space = space;
        search->options = *options;
        search->method = options->method ? options->method : &search_ours;
        search->best = -1;
        search->limit = options->deadline;
        search->priced = true;
        for (int64_t c = 0; c < space->candidates; c++)
            search->priced = search->priced && space->candidate[c].dollars_per_hour > 0;
        status = place_candidates(search);
    }
    if (status == SHOAL_OK)
        status = base_alloc(&search->tried, (size_t)space->candidates, sizeof *search->tried, "a search");
    if (status == SHOAL_OK)
        status = base_alloc(&search->works, (size_t)space->candidates, sizeof *search->works, "a search");
    if (status == SHOAL_OK)
        status = search_model_init(search);
    if (status < 0)
        plan_search_free(&search);
    *out = search;
    return status;
}

void plan_search_free(plan_search **search)
{
    if (*search) {
        search_model_release(&(*search)->model);
        base_free(&(*search)->place);
        base_free(&(*search)->trial);
        base_free(&(*search)->tried);
        base_free(&(*search)->works);
    }
    base_free(search);
}

int plan_search_next(int64_t *candidate, const char **why, plan_search *search)
{
    *candidate = search_choose(search);
    if (why)
        *why = search->why;
    return SHOAL_OK;
}

static int check_trial(const plan_search *search, const plan_trial *trial)
{
    if (trial->candidate < 0 || trial->candidate >= search->space->candidates)
        return shoal_fail(SHOAL_INVALID, "a trial of candidate %lld: there are %lld, from 0",
                          (long long)trial->candidate, (long long)search->space->candidates);
    const plan_candidate *candidate = &search->space->candidate[trial->candidate];
    const long long count = candidate->count;
    if (trial->outcome < PLAN_TRIAL_DONE || trial->outcome > PLAN_TRIAL_TIMED_OUT)
        return shoal_fail(SHOAL_INVALID, "a trial of %lld of %s has no outcome of number %d", count,
                          candidate_name(candidate), (int)trial->outcome);
    if (search->tried[trial->candidate])
        return shoal_fail(SHOAL_INVALID, "%lld of %s was tried already", count, candidate_name(candidate));
    /* One that failed may have done so at once. */
    if (!isfinite(trial->seconds) || trial->seconds < 0 || (trial->seconds == 0 && trial->outcome != PLAN_TRIAL_FAILED))
        return shoal_fail(SHOAL_INVALID, "a trial of %lld of %s can't take %g seconds", count,
                          candidate_name(candidate), trial->seconds);
    if (!isfinite(trial->dollars) || trial->dollars < 0)
        return shoal_fail(SHOAL_INVALID, "a trial of %lld of %s can't cost %g dollars", count,
                          candidate_name(candidate), trial->dollars);
    return SHOAL_OK;
}

static bool counts(const plan_search *search, const plan_trial *trial)
{
    const double deadline = search->options.deadline, budget = search->options.budget;
    return trial->outcome == PLAN_TRIAL_DONE && (deadline == 0 || trial->seconds <= deadline) &&
           (budget == 0 || exp(search_value(search, trial, SEARCH_DOLLARS)) <= budget * (1 + 1e-12));
}

/* Who ended one run will end others that take as long, unless one that took longer got done since. */
static void learn_limit(plan_search *search, const plan_trial *trial)
{
    const double deadline = search->options.deadline;
    if (trial->outcome == PLAN_TRIAL_DONE)
        search->longest = fmax(search->longest, trial->seconds);
    if (trial->outcome == PLAN_TRIAL_TIMED_OUT)
        search->timed_out = fmax(search->timed_out, trial->seconds);
    search->limit = deadline;
    if (search->method->heeds_trouble && search->timed_out > 0 && search->timed_out >= search->longest)
        search->limit = deadline > 0 ? fmin(deadline, search->timed_out) : search->timed_out;
}

int plan_search_tell(plan_search *search, const plan_trial *trial)
{
    int status = check_trial(search, trial);
    if (status == SHOAL_OK && search->trials == search->room) {
        const size_t old = (size_t)search->room, room = old ? 2 * old : 8;
        status = base_grow(&search->trial, old, room, sizeof *search->trial, "a search");
        if (status == SHOAL_OK)
            search->room = (int64_t)room;
    }
    if (status < 0)
        return status;
    const int64_t at = search->trials++;
    search->trial[at] = *trial;
    search->tried[trial->candidate] = true;
    if (counts(search, trial) &&
        (search->best < 0 || search_value(search, trial, SEARCH_OBJECTIVE) <
                                 search_value(search, &search->trial[search->best], SEARCH_OBJECTIVE)))
        search->best = at;
    learn_limit(search, trial);
    return search_model_learn(search);
}

int64_t plan_search_best(const plan_search *search)
{
    return search->best >= 0 ? search->trial[search->best].candidate : -1;
}

double plan_search_best_value(const plan_search *search)
{
    return search->best >= 0 ? exp(search_value(search, &search->trial[search->best], SEARCH_OBJECTIVE)) : NAN;
}

int plan_search_opinion(double *mean, double *deviation, const plan_search *search, int64_t candidate)
{
    const search_model *model = &search->model;
    double first = 0, second = 0;
    if (candidate < 0 || candidate >= search->space->candidates)
        return shoal_fail(SHOAL_USAGE, "there is no candidate %lld", (long long)candidate);
    *mean = NAN;
    *deviation = INFINITY;
    if (model->members == 0 || model->member[0].seen == 0)
        return SHOAL_OK;
    for (int i = 0; i < model->members; i++)
        first += model->weight[i] * search_mean(search, i, SEARCH_OBJECTIVE, candidate);
    for (int i = 0; i < model->members; i++) {
        const double off = search_mean(search, i, SEARCH_OBJECTIVE, candidate) - first;
        const double own = search_deviation(search, i, SEARCH_OBJECTIVE, candidate);
        second += model->weight[i] * (off * off + own * own);
    }
    *mean = first;
    *deviation = sqrt(second);
    return SHOAL_OK;
}
