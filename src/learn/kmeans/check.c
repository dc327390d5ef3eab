/* Rounds and results of k-means that came from elsewhere: whether they can be ours.  See shoal_algorithm.check.
 *
 * Order matters: the header by itself first, then that the model has just the bytes the header asks for, then the
 * arrays, then the phase's own section; and since layouts are a function of the model, the round's must be the one that
 * describing it anew gives. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "learn/check.h"
#include "learn/kmeans/choose.h"

static bool is_in(int64_t value, int64_t least, int64_t most)
{
    return value >= least && value <= most;
}

static bool is_power_of_two(double value)
{
    int exponent;
    return value > 0 && value < INFINITY && frexp(value, &exponent) == 0.5;
}

bool kmeans_are_finite(const double *values, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(values[i]))
            return false;
    return true;
}

bool kmeans_are_sizes(const double *values, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (!(values[i] >= 0 && values[i] < INFINITY))
            return false;
    return true;
}

int kmeans_fail_merged(const shoal_round *round, const char *what)
{
    return shoal_fail(SHOAL_BROKEN, "the %s of round %lld are not what rows can add up to", what,
                      (long long)round->number);
}

/* ---- rounds ------------------------------------------------------------------------------------------------------ */

static bool is_of_shape(const kmeans_model *model, const shoal_shape *shape)
{
    return model->rows == shape->rows && model->columns == shape->columns && model->weighted == shape->weighted &&
           is_in(model->k, 1, INT32_MAX) &&
           (model->predicting || model->k <= model->rows || (model->batch > 0 && model->start == KMEANS_START_GIVEN)) &&
           is_in(shape->rows_per_grain, 1, INT32_MAX);
}

static bool are_options(const kmeans_model *model, bool predicts)
{
    return model->predicting == predicts && is_in(model->distances, 0, predicts ? KMEANS_NEAREST | KMEANS_ALL : 0) &&
           is_in(model->metric, SHOAL_METRIC_EUCLIDEAN, SHOAL_METRIC_COSINE) &&
           is_in(model->start, KMEANS_START_GREEDY, KMEANS_START_GIVEN) &&
           is_in(model->empty, SHOAL_EMPTY_FARTHEST, SHOAL_EMPTY_SPLIT) && model->iterations >= 0 &&
           is_in(model->runs, 1, KMEANS_RUNS_MOST) && model->tolerance >= 0 && is_in(model->batch, 0, INT32_MAX) &&
           is_in(model->init_size, 0, model->rows) && is_in(model->patience, 0, INT32_MAX) &&
           model->reassignment >= 0 && model->reassignment <= 1;
}

static bool is_scanned(const kmeans_model *model)
{
    const double sizes[] = {model->weight_most,  model->variance,      model->square_total,
                            model->weight_total, model->distance_most, model->objective_most};
    return is_power_of_two(model->prescale) && is_power_of_two(model->scale) && is_power_of_two(model->weight_scale) &&
           (model->weight_inverse == 0 || is_power_of_two(model->weight_inverse)) &&
           kmeans_are_sizes(sizes, sizeof sizes / sizeof *sizes);
}

/* Only a run of several leaves a best one behind. */
static bool is_position(const kmeans_model *model, int64_t number)
{
    return is_in(model->phase, KMEANS_RANGE, number == 0 ? KMEANS_RANGE : KMEANS_PHASES - 1) &&
           is_in(model->run, 0, model->runs - 1) && is_in(model->filled, 0, model->k) &&
           is_in(model->iteration, 0, model->iterations) && is_in(model->batches, 0, INT64_MAX) &&
           is_in(model->memo_round, -1, number - 1) && is_in(model->converged, 0, 1) && is_in(model->stopping, 0, 1) &&
           is_in(model->finishing, 0, 1) && is_in(model->runs_done, 0, model->runs) &&
           is_in(model->best_run, -1, model->runs > 1 ? model->runs - 1 : -1) &&
           is_in(model->best_iterations, 0, model->iterations) && is_in(model->best_converged, 0, 1) &&
           !isnan(model->best_objective);
}

static bool are_wide_columns(const kmeans_view *view)
{
    for (int64_t w = 0; w < view->model->wide; w++)
        if (!is_in(view->wide_column[w], w ? view->wide_column[w - 1] + 1 : 0, view->model->columns - 1) ||
            !is_power_of_two(view->wide_inverse[w]))
            return false;
    return true;
}

/* Drifts may be infinite: centres of which nothing is known. */
static bool are_ways(const double *ways, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (!(ways[i] >= 0))
            return false;
    return true;
}

static bool are_arrays(const kmeans_view *view)
{
    int64_t k = view->model->k, columns = view->model->columns;
    for (int64_t i = 0; i < columns; i++) /* and so finite */
        if (!(fabs(view->origin[i]) <= FLT_MAX) || (double)(float)view->origin[i] != view->origin[i])
            return false;
    return kmeans_are_sizes(view->inverse, columns) && are_wide_columns(view) &&
           kmeans_are_finite(view->centres, k * columns) && are_ways(view->drift, k) && are_ways(view->travel, k) &&
           (!view->best || kmeans_are_finite(view->best, k * columns)) &&
           (!view->seen || kmeans_are_sizes(view->seen, k));
}

/* What describing the model anew gives, for people and for partials. */
static bool is_described(const shoal_round *round, const shoal_shape *shape)
{
    shoal_round anew = {.model = round->model, .model_bytes = round->model_bytes, .layout = {.carry_from = -1}};
    kmeans_describe(&anew, shape);
    return shoal_layout_same(&round->layout, &anew.layout) && strcmp(round->phase, anew.phase) == 0 &&
           round->step == anew.step && round->steps == anew.steps && round->k == anew.k;
}

static bool is_ours(const shoal_round *round, const shoal_shape *shape, bool predicts)
{
    const kmeans_model *model = round->model;
    if (round->model_bytes < sizeof *model || !is_of_shape(model, shape) || !are_options(model, predicts) ||
        !is_scanned(model) || !is_position(model, round->number) || !kmeans_model_is_whole(round))
        return false;
    const kmeans_phase *phase = kmeans_phase_of(round);
    kmeans_view view = kmeans_view_of(round);
    return are_arrays(&view) && kmeans_are_trials(round, &view) &&
           (phase->check ? phase->check(&view, shape) : model->extra_bytes == 0) && is_described(round, shape);
}

static int check_round(const shoal_round *round, const shoal_shape *shape, bool predicts)
{
    if (is_ours(round, shape, predicts))
        return SHOAL_OK;
    return shoal_fail(SHOAL_BROKEN, "round %lld does not hold a k-means model for these %lld rows of %lld columns",
                      (long long)round->number, (long long)shape->rows, (long long)shape->columns);
}

int kmeans_check(const shoal_algorithm *self, const shoal_round *round, const shoal_shape *shape)
{
    (void)self;
    return check_round(round, shape, false);
}

int kmeans_check_predict(const shoal_algorithm *self, const shoal_round *round, const shoal_shape *shape)
{
    (void)self;
    return check_round(round, shape, true);
}

/* ---- results ----------------------------------------------------------------------------------------------------- */

static bool are_labels(const shoal_result *result, int64_t k, int64_t rows)
{
    if (!learn_result_has(result, "labels", SHOAL_INT32, 1, &rows))
        return false;
    const int32_t *label = shoal_result_tensor(result, "labels")->values;
    for (int64_t i = 0; i < rows; i++)
        if (!is_in(label[i], 0, k - 1))
            return false;
    return true;
}

static bool are_sizes(const shoal_result *result, int64_t k, int64_t rows)
{
    if (!learn_result_has(result, "sizes", SHOAL_INT64, 1, &k))
        return false;
    const int64_t *size = shoal_result_tensor(result, "sizes")->values;
    for (int64_t j = 0; j < k; j++)
        if (!is_in(size[j], 0, rows))
            return false;
    return true;
}

int kmeans_check_result(const shoal_algorithm *self, const shoal_result *result, const shoal_round *first,
                        const shoal_shape *shape)
{
    const kmeans_model *model = first->model;
    const double told = shoal_result_number(result, "k");
    const int64_t k = model->trials > 0 && told >= 1 && told <= (double)shape->rows ? (int64_t)told : model->k;
    const int64_t size[2] = {k, shape->columns};
    (void)self;
    if (learn_result_has(result, "centres", SHOAL_FLOAT64, 2, size) && are_sizes(result, k, shape->rows) &&
        are_labels(result, k, shape->rows) && told == (double)k &&
        (model->trials == 0 || kmeans_are_trial_results(result, first)) &&
        (model->batch == 0 || learn_result_has(result, "seen", SHOAL_FLOAT64, 1, &k)) &&
        (!(model->distances & KMEANS_NEAREST) ||
         learn_result_has(result, "distances", SHOAL_FLOAT64, 1, &shape->rows)) &&
        (!(model->distances & KMEANS_ALL) ||
         learn_result_has(result, "all-distances", SHOAL_FLOAT64, 2, (int64_t[]){shape->rows, k})))
        return SHOAL_OK;
    return shoal_fail(SHOAL_BROKEN, "the result is not %lld clusters of these %lld rows of %lld columns",
                      (long long)model->k, (long long)shape->rows, (long long)shape->columns);
}
