/* What a search believes: Gaussian processes on the logarithm of the objective.
 *
 * With a handful of trials the kernel that explains them best is a matter of chance, so ours does not choose one:
 * SEARCH_MEMBERS kernels are drawn from what is thought of kernels beforehand, and each counts by how likely it makes
 * the trials.
 *
 * The processes see cost where there are prices, also for deadlines: that twice the machines take half the time is a
 * good first guess, and a process whose mean is constant says just that of the cost.  A run that timed out is one that
 * would have taken e times as long: what is known is only that it took longer, and a bound taken as a measurement would
 * make cheap candidates that never end look good. */
#include "search_internal.h"

#include <math.h>
#include <string.h>

#include <shoal/error.h>

#include "base/memory.h"
#include "base/random.h"

/* Places go from -1 to 1 in each feature; values are logarithms. */
static const base_kernel_prior prior = {
    .scale = 1.5, .scale_spread = 1, .signal = 0.7, .signal_spread = 0.6, .noise = 0.05, .noise_spread = 0.5};
static const double constant = 2; /* the mean of all may be e^2 times that of the trials */
static const double beyond = 1;   /* logarithm of how many times its limit a run that timed out is thought to take */
static const double failing_near = 0.35;  /* distance at which a failure still counts as 0.6 of one */
static const double working_first = 0.25; /* runs that worked are assumed near every candidate: this many */
static const double weight_least = 1e-4;

/* ---- what is modelled -------------------------------------------------------------------------------------------- */

/* How much of the logarithm of the seconds, and of the dollars, is in a quantity. */
static double share_of_seconds(const plan_search *search, search_quantity quantity)
{
    const plan_objective objective = search->options.objective;
    return quantity == SEARCH_SECONDS || (quantity == SEARCH_OBJECTIVE && objective != PLAN_COST);
}

static double share_of_dollars(const plan_search *search, search_quantity quantity)
{
    const plan_objective objective = search->options.objective;
    return quantity == SEARCH_DOLLARS || (quantity == SEARCH_OBJECTIVE && objective != PLAN_TIME);
}

/* Of a second; 0 where there are no prices. */
static double log_price(const plan_search *search, int64_t candidate)
{
    return search->priced ? log(search->space->candidate[candidate].dollars_per_hour) - log(3600) : 0;
}

double search_value(const plan_search *search, const plan_trial *trial, search_quantity quantity)
{
    const double seconds = log(trial->seconds);
    const double dollars = trial->dollars > 0 ? log(trial->dollars) : seconds + log_price(search, trial->candidate);
    return share_of_seconds(search, quantity) * seconds + share_of_dollars(search, quantity) * dollars;
}

/* A quantity is `power` times what its processes see, and `known` besides: all processes see logarithms of something
 * like dollars, so that one kernel fits all quantities.  For cost times time that is (2 log cost - log price) / 2. */
static double power_of(const plan_search *search, search_quantity quantity)
{
    return share_of_seconds(search, quantity) + share_of_dollars(search, quantity);
}

static double known_of(const plan_search *search, search_quantity quantity, int64_t candidate)
{
    return -share_of_seconds(search, quantity) * log_price(search, candidate);
}

/* ---- the processes ----------------------------------------------------------------------------------------------- */

/* The place where the normal distribution has reached p. */
static double normal_quantile(double p)
{
    double low = -8, high = 8;
    for (int i = 0; i < 60; i++) {
        const double middle = (low + high) / 2;
        *(0.5 * erfc(-middle * 0.70710678118654752) < p ? &low : &high) = middle;
    }
    return (low + high) / 2;
}

/* Draws of the standard normal distribution, one in each of SEARCH_MEMBERS equal parts of it, in a random order. */
static void draw_evenly(double *out, uint64_t dimension)
{
    for (int i = 0; i < SEARCH_MEMBERS; i++)
        out[i] = normal_quantile((i + 0.5) / SEARCH_MEMBERS);
    for (uint64_t i = SEARCH_MEMBERS - 1; i > 0; i--) {
        const uint64_t other = base_random_below(i + 1, 0, BASE_FOR_SEARCH, 1000 + dimension, (uint32_t)(i * 64));
        const double kept = out[i];
        out[i] = out[other];
        out[other] = kept;
    }
}

static int init_members(plan_search *search)
{
    search_model *model = &search->model;
    const int features = search->features;
    double draw[PLAN_FEATURES_MOST + 2][SEARCH_MEMBERS];
    int status = SHOAL_OK;
    for (int j = 0; j < features + 2; j++)
        draw_evenly(draw[j], (uint64_t)j);
    for (int i = 0; status == SHOAL_OK && i < SEARCH_MEMBERS; i++) {
        base_kernel kernel = {.features = features, .constant = constant};
        kernel.signal = prior.signal * exp(prior.signal_spread * draw[0][i]);
        kernel.noise = prior.noise * exp(prior.noise_spread * draw[1][i]);
        for (int j = 0; j < features; j++)
            kernel.scale[j] = prior.scale * exp(prior.scale_spread * draw[2 + j][i]);
        status =
            base_gaussian_init(&model->member[model->members++], &kernel, search->place, search->space->candidates);
    }
    return status;
}

int search_model_init(plan_search *search)
{
    search_model *model = &search->model;
    if (!search->method->init)
        return SHOAL_OK;
    int status = search->method->init(search);
    model->modelled[SEARCH_OBJECTIVE] = true;
    model->modelled[SEARCH_SECONDS] = search->options.deadline > 0 || search->method->heeds_trouble;
    model->modelled[SEARCH_DOLLARS] = search->options.budget > 0;
    for (int q = 0; status == SHOAL_OK && q < SEARCH_QUANTITIES; q++)
        if (model->modelled[q])
            status = base_alloc(&model->mean[q], (size_t)model->members * (size_t)search->space->candidates,
                                sizeof *model->mean[q], "a search");
    for (int i = 0; i < model->members; i++)
        model->weight[i] = 1.0 / model->members;
    return status;
}

void search_model_release(search_model *model)
{
    for (int i = 0; i < model->members; i++)
        base_gaussian_release(&model->member[i]);
    for (int q = 0; q < SEARCH_QUANTITIES; q++)
        base_free(&model->mean[q]);
}

/* ---- learning from trials ---------------------------------------------------------------------------------------- */

bool search_tells_time(const plan_trial *trial)
{
    return trial->outcome != PLAN_TRIAL_FAILED;
}

double search_seen_values(double *out, const plan_search *search, search_quantity quantity)
{
    const double past_limit = search->method->heeds_trouble ? beyond : 0;
    double sum = 0;
    int64_t count = 0;
    for (int64_t i = 0; i < search->trials; i++) {
        const plan_trial *trial = &search->trial[i];
        if (!search_tells_time(trial))
            continue;
        out[count] = (search_value(search, trial, quantity) - known_of(search, quantity, trial->candidate)) /
                         power_of(search, quantity) +
                     (trial->outcome == PLAN_TRIAL_TIMED_OUT ? past_limit : 0);
        sum += out[count++];
    }
    for (int64_t i = 0; i < count; i++)
        out[i] -= sum / (double)count;
    return sum / (double)count;
}

static int see_newest(plan_search *search, double *value)
{
    int status = SHOAL_OK;
    (void)value;
    for (int i = 0; status == SHOAL_OK && i < search->model.members; i++)
        status = base_gaussian_see(&search->model.member[i], search->trial[search->trials - 1].candidate);
    return status;
}

const search_method search_ours = {.name = "best",
                                   .heeds_trouble = true,
                                   .init = init_members,
                                   .learn = see_newest,
                                   .left_to_gain = search_gain_of_all,
                                   .left = "all others together are"};

static void weigh(search_model *model, const double *likelihood)
{
    double most = -INFINITY, sum = 0;
    for (int i = 0; i < model->members; i++)
        most = fmax(most, likelihood[i]);
    for (int i = 0; i < model->members; i++) {
        const double weight = exp(likelihood[i] - most);
        model->weight[i] = weight < weight_least ? 0 : weight;
        sum += model->weight[i];
    }
    for (int i = 0; i < model->members; i++)
        model->weight[i] /= sum;
}

static void explain_by_features(plan_search *search, search_quantity quantity, double *value, double *white)
{
    search_model *model = &search->model;
    const int64_t candidates = search->space->candidates;
    const double middle = search_seen_values(value, search, quantity), power = power_of(search, quantity);
    double likelihood[SEARCH_MEMBERS];
    for (int i = 0; i < model->members; i++) {
        likelihood[i] = base_gaussian_explain(&model->member[i], white, value);
        double *mean = model->mean[quantity] + i * candidates;
        for (int64_t c = 0; c < candidates; c++)
            mean[c] =
                power * (middle + base_gaussian_mean(&model->member[i], white, c)) + known_of(search, quantity, c);
    }
    if (quantity == SEARCH_OBJECTIVE)
        weigh(model, likelihood);
}

int search_model_learn(plan_search *search)
{
    search_model *model = &search->model;
    if (model->members == 0 || !search_tells_time(&search->trial[search->trials - 1]))
        return SHOAL_OK;
    double *value = NULL, *white = NULL;
    int status = base_alloc(&value, (size_t)search->trials, sizeof *value, "a search");
    if (status == SHOAL_OK)
        status = base_alloc(&white, (size_t)search->trials, sizeof *white, "a search");
    if (status == SHOAL_OK)
        status = search->method->learn(search, value);
    for (int q = 0; status == SHOAL_OK && q < SEARCH_QUANTITIES; q++)
        if (model->modelled[q])
            explain_by_features(search, (search_quantity)q, value, white);
    base_free(&value);
    base_free(&white);
    return status;
}

/* ---- answers ----------------------------------------------------------------------------------------------------- */

double search_mean(const plan_search *search, int member, search_quantity quantity, int64_t candidate)
{
    return search->model.mean[quantity][member * search->space->candidates + candidate];
}

double search_deviation(const plan_search *search, int member, search_quantity quantity, int64_t candidate)
{
    const base_gaussian *process = &search->model.member[member];
    if (process->seen == 0)
        return INFINITY;
    return power_of(search, quantity) * sqrt(fmax(process->variance[candidate], 1e-9));
}

double search_works(const plan_search *search, int64_t candidate)
{
    double all = working_first, worked = working_first;
    if (!search->method->heeds_trouble)
        return 1;
    for (int64_t i = 0; i < search->trials; i++) {
        const double distance = search_distance(search, candidate, search->trial[i].candidate);
        const double near = exp(-0.5 * distance / (failing_near * failing_near));
        all += near;
        worked += search_tells_time(&search->trial[i]) ? near : 0;
    }
    return worked / all;
}
