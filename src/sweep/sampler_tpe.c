/* Tree-structured Parzen estimator over all parameters together (Bergstra, Bardenet, Bengio and Kégl, "Algorithms for
 * hyper-parameter optimization", NIPS 2011; multivariate as in Falkner, Klein and Hutter, "BOHB", ICML 2018).
 *
 * The trials are parted into a few good ones and the rest.  Each part is a mixture of kernels, one around each of its
 * points and one flat; of some points drawn from the good mixture that one is suggested where the good is greatest
 * beside the other.  A parameter that a trial does not have is flat in its kernel.  Trials that still run count among
 * the others, so that several workers do not all try the same. */
#include "sampler.h"

#include <math.h>
#include <string.h>

#include <shoal/error.h>

#include "base/memory.h"

enum {
    STARTS = 10,     /* trials by Sobol's sequence before there is a model */
    CANDIDATES = 64, /* drawn from the good mixture */
    GOOD_MOST = 25,  /* more would be none of the best */
    TABLE_MOST = 64, /* a parameter of so many values or fewer is exact, one of more is taken for a float */
    DRAWS_A_CANDIDATE = 128
};
static const double GOOD_SHARE = 0.1;
static const double WIDTH = 0.2, LEAST_WIDTH = 0.01; /* of a kernel with one trial; of any */

/* How one parameter is looked at. */
typedef struct tpe_axis {
    int64_t values; /* 0: a float */
    bool ordered;
} tpe_axis;

/* Kernels around points, one flat one last.  Those of parameters with few values are one table for all points. */
typedef struct tpe_mixture {
    int64_t points;
    double *place; /* points x parameters; NaN: flat */
    double *norm;  /* the same: minus the logarithm of what of the kernel lies within (0, 1), for floats */
    double *weight;
    double width;
    double *table[SWEEP_PARAMETERS_MOST]; /* values x values: logarithm of the chance of one around another */
} tpe_mixture;

typedef struct tpe_model {
    const sweep_question *question;
    const sweep_space *space;
    tpe_axis axis[SWEEP_PARAMETERS_MOST];
    tpe_mixture good, rest;
} tpe_model;

static double normal_below(double z)
{
    return 0.5 * erfc(-z * 0.70710678118654752);
}

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

/* The chance that a kernel around one value gives another, against a flat one: of values in order the share of a normal
 * distribution in the value's cell. */
static int fill_table(tpe_mixture *mixture, int parameter, const tpe_axis *axis)
{
    const int64_t n = axis->values;
    double *table = NULL;
    int status = base_alloc(&table, (size_t)(n * n), sizeof *table, "a model of trials");
    mixture->table[parameter] = table;
    for (int64_t a = 0; a < n && status == SHOAL_OK; a++)
        for (int64_t b = 0; b < n; b++) {
            double chance;
            if (axis->ordered) {
                const double middle = ((double)a + 0.5) / (double)n, width = mixture->width;
                chance = normal_below(((double)(b + 1) / (double)n - middle) / width) -
                         normal_below(((double)b / (double)n - middle) / width);
                chance /= normal_below((1 - middle) / width) - normal_below(-middle / width);
            } else {
                const double others = (double)mixture->points; /* each kernel has 1 of these and the flat one's share */
                chance = ((a == b) * others + 1 / (double)n) / (others + 1);
            }
            table[a * n + b] = log(fmax(chance * (double)n, 1e-300));
        }
    return status;
}

static int64_t cell_of(double place, int64_t values)
{
    const int64_t cell = (int64_t)(place * (double)values);
    return cell < values ? cell : values - 1;
}

/* The logarithm of a kernel's density, which is 1 where it is flat. */
static double log_kernel(const tpe_model *model, const tpe_mixture *mixture, int64_t at, const double place[])
{
    const int parameters = model->space->parameters;
    const double *centre = mixture->place + at * parameters, *norm = mixture->norm + at * parameters;
    double sum = 0;
    for (int i = 0; i < parameters; i++) {
        if (isnan(place[i]) || isnan(centre[i]))
            continue;
        const int64_t n = model->axis[i].values;
        if (n > 0) {
            sum += mixture->table[i][cell_of(centre[i], n) * n + cell_of(place[i], n)];
        } else {
            const double z = (place[i] - centre[i]) / mixture->width;
            sum += norm[i] - 0.5 * z * z;
        }
    }
    return sum;
}

static double log_density(const tpe_model *model, const tpe_mixture *mixture, const double place[])
{
    double sum = mixture->weight[mixture->points]; /* the flat one */
    for (int64_t i = 0; i < mixture->points; i++)
        sum += mixture->weight[i] * exp(log_kernel(model, mixture, i, place));
    return log(sum);
}

/* ---- the mixtures ------------------------------------------------------------------------------------------------ */

static void places_of(double place[], const sweep_space *space, const sweep_point *point)
{
    for (int i = 0; i < space->parameters; i++)
        place[i] = isnan(point->value[i]) ? (double)NAN : sweep_place_of(&space->parameter[i], point->value[i]);
}

static int init_mixture(tpe_mixture *mixture, const tpe_model *model, const int64_t *trial, int64_t points)
{
    const sweep_space *space = model->space;
    const size_t parameters = (size_t)space->parameters;
    mixture->points = points;
    /* As Scott's rule has it for as many points and dimensions. */
    mixture->width = fmax(WIDTH * pow((double)(points > 0 ? points : 1), -1.0 / (space->parameters + 4)), LEAST_WIDTH);
    int status = base_alloc(&mixture->place, (size_t)points * parameters, sizeof *mixture->place, "a model of trials");
    if (status == SHOAL_OK)
        status = base_alloc(&mixture->norm, (size_t)points * parameters, sizeof *mixture->norm, "a model of trials");
    if (status == SHOAL_OK)
        status = base_alloc(&mixture->weight, (size_t)points + 1, sizeof *mixture->weight, "a model of trials");
    for (int64_t i = 0; i < points && status == SHOAL_OK; i++) {
        double *place = mixture->place + i * space->parameters;
        places_of(place, space, &model->question->trial[trial[i]].point);
        for (int j = 0; j < space->parameters; j++)
            mixture->norm[i * space->parameters + j] =
                -log(mixture->width * 2.50662827463100050 *
                     (normal_below((1 - place[j]) / mixture->width) - normal_below(-place[j] / mixture->width)));
    }
    for (int64_t i = 0; i <= points && status == SHOAL_OK; i++)
        mixture->weight[i] = 1 / (double)(points + 1);
    for (int i = 0; i < space->parameters && status == SHOAL_OK; i++)
        if (model->axis[i].values > 0)
            status = fill_table(mixture, i, &model->axis[i]);
    return status;
}

static void release_mixture(tpe_mixture *mixture)
{
    base_free(&mixture->place);
    base_free(&mixture->norm);
    base_free(&mixture->weight);
    for (int i = 0; i < SWEEP_PARAMETERS_MOST; i++)
        base_free(&mixture->table[i]);
}

static void look_at_axes(tpe_model *model)
{
    for (int i = 0; i < model->space->parameters; i++) {
        const sweep_parameter *p = &model->space->parameter[i];
        const double values = sweep_values_of(p);
        const bool unordered = p->kind == SWEEP_LIST && !p->ordered;
        model->axis[i].ordered = !unordered;
        model->axis[i].values = unordered || values <= TABLE_MOST ? (int64_t)values : 0;
    }
}

static int init_model(tpe_model *model, const sweep_question *question)
{
    int64_t *order = NULL;
    *model = (tpe_model){.question = question, .space = question->space};
    look_at_axes(model);
    int status = base_alloc(&order, (size_t)question->trials, sizeof *order, "a model of trials");
    if (status < 0)
        return status;
    const int64_t ranked = sweep_rank_trials(order, question);
    int64_t all = ranked, good = (int64_t)ceil(GOOD_SHARE * (double)ranked);
    for (int64_t i = 0; i < question->trials; i++)
        if (question->trial[i].rungs == 0 && question->trial[i].state == SWEEP_RUNNING)
            order[all++] = i;
    good = good < GOOD_MOST ? good : GOOD_MOST;
    status = init_mixture(&model->good, model, order, good);
    if (status == SHOAL_OK)
        status = init_mixture(&model->rest, model, order + good, all - good);
    base_free(&order);
    return status;
}

/* ---- candidates -------------------------------------------------------------------------------------------------- */

/* A place that a kernel around another gives: the distribution within (0, 1) is inverted by halving. */
static double draw_around(double centre, double width, double chance)
{
    const double below = normal_below(-centre / width), within = normal_below((1 - centre) / width) - below;
    double low = 0, high = 1;
    for (int i = 0; i < 40; i++) {
        const double middle = (low + high) / 2;
        if (normal_below((middle - centre) / width) - below < chance * within)
            low = middle;
        else
            high = middle;
    }
    return (low + high) / 2;
}

static double draw_of_table(const double *row, int64_t values, double chance)
{
    double sum = 0;
    for (int64_t b = 0; b < values; b++) {
        sum += exp(row[b]) / (double)values;
        if (chance < sum)
            return ((double)b + 0.5) / (double)values;
    }
    return ((double)values - 0.5) / (double)values;
}

static void draw_candidate(sweep_point *out, const tpe_model *model, uint32_t number)
{
    const tpe_mixture *good = &model->good;
    const uint32_t draw = (number + 1) * DRAWS_A_CANDIDATE;
    const int64_t at = (int64_t)(sweep_chance(model->question, draw) * (double)(good->points + 1));
    double place[SWEEP_PARAMETERS_MOST];
    for (int i = 0; i < model->space->parameters; i++) {
        const double chance = sweep_chance(model->question, draw + 1 + (uint32_t)i);
        const double centre = at < good->points ? good->place[at * model->space->parameters + i] : (double)NAN;
        const int64_t n = model->axis[i].values;
        place[i] = isnan(centre) ? chance
                   : n > 0       ? draw_of_table(good->table[i] + cell_of(centre, n) * n, n, chance)
                                 : draw_around(centre, good->width, chance);
    }
    sweep_point_at(out, model->space, place);
}

static double score_point(const tpe_model *model, const sweep_point *point)
{
    double place[SWEEP_PARAMETERS_MOST];
    places_of(place, model->space, point);
    return log_density(model, &model->good, place) - log_density(model, &model->rest, place);
}

/* The best of the pool, or of points drawn from the good mixture that were not tried yet; *found says whether there is
 * any. */
static void choose_best(sweep_point *out, bool *found, const tpe_model *model)
{
    const sweep_question *question = model->question;
    const int64_t candidates = question->pool ? question->pools : CANDIDATES;
    double best = -INFINITY;
    *found = false;
    for (int64_t c = 0; c < candidates; c++) {
        sweep_point point;
        if (question->pool && question->used[c])
            continue;
        if (question->pool)
            point = question->pool[c];
        else
            draw_candidate(&point, model, (uint32_t)c);
        const double score = score_point(model, &point);
        if (score > best && (question->pool || !sweep_was_tried(question, &point))) {
            best = score;
            *out = point;
            *found = true;
        }
    }
}

static int suggest_tpe(sweep_point *out, const sweep_question *question)
{
    int64_t told = 0;
    bool found = false;
    for (int64_t i = 0; i < question->trials; i++)
        told += question->trial[i].rungs > 0;
    if (told < STARTS)
        return question->pool ? sweep_point_by_chance(out, question) : sweep_sampler_sobol.suggest(out, question);
    tpe_model model;
    int status = init_model(&model, question);
    if (status == SHOAL_OK)
        choose_best(out, &found, &model);
    release_mixture(&model.good);
    release_mixture(&model.rest);
    return status < 0 || found ? status : sweep_point_by_chance(out, question);
}

const sweep_sampler sweep_sampler_tpe = {.name = "tpe",
                                         .summary =
                                             "near good trials and away from others (tree-structured Parzen estimator)",
                                         .suggest = suggest_tpe};
