/* A model of naive Bayes applied to rows: one round, whose partial has a place for each row.
 *
 * The logarithm of the probability of class c and row x together is
 *
 *     log prior_c - sum of log(2 pi v) / 2 - sum of ((x - m) f)^2,   f = 1 / sqrt(2 v),
 *
 * each sum in the order of the columns, in float64.  Products that would take the square apart, x^2 - 2 x m + m^2,
 * would lose what columns far from 0 tell. */
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "learn/bayes/bayes_internal.h"
#include "learn/check.h"

enum { PREDICT_LABELS, PREDICT_BAD, PREDICT_SHARES };
enum { BLOCK_ROWS = 64 };

/* Behind it lie, as doubles, the labels and the constant of each class, and for each column the means and then the
 * factors f of all classes. */
typedef struct predict_model {
    int64_t columns, classes, probabilities;
} predict_model;

static size_t bytes_of(const predict_model *model)
{
    return sizeof *model + (size_t)(2 * model->classes * (model->columns + 1)) * sizeof(double);
}

static double *labels_of(const predict_model *model)
{
    return (double *)(model + 1);
}

static double *constants_of(const predict_model *model)
{
    return labels_of(model) + model->classes;
}

static double *means_of(const predict_model *model)
{
    return constants_of(model) + model->classes;
}

/* ---- the round --------------------------------------------------------------------------------------------------- */

static bool is_size(int64_t classes, int64_t columns)
{
    return classes >= 2 && classes <= LEARN_CLASSES_MOST && columns >= 1 && columns <= INT32_MAX;
}

static int check_values(const char *name, const double *values, int64_t count, bool positive)
{
    for (int64_t i = 0; i < count; i++) {
        if (!isfinite(values[i]))
            return shoal_fail(SHOAL_INVALID, "the model: value %" PRId64 " of its %s is not finite", i + 1, name);
        if (positive && !(values[i] > 0))
            return shoal_fail(SHOAL_INVALID, "the model: value %" PRId64 " of its %s is %g, not greater than 0", i + 1,
                              name, values[i]);
    }
    return SHOAL_OK;
}

static int check_config(const bayes_predict_config *config, const shoal_shape *shape)
{
    if (!config->classes || !config->means || !config->variances || !config->priors ||
        !is_size(config->classes_count, config->columns))
        return shoal_fail(SHOAL_INVALID, "%" PRId64 " classes of %" PRId64 " columns are not a naive Bayes model",
                          config->classes_count, config->columns);
    if (config->columns != shape->columns)
        return shoal_fail(SHOAL_INVALID, "the model is for %" PRId64 " column%s, but the data has %" PRId64,
                          config->columns, base_plural(config->columns), shape->columns);
    int64_t table = config->classes_count * config->columns;
    int status = check_values("classes", config->classes, config->classes_count, false);
    if (status == SHOAL_OK)
        status = check_values("means", config->means, table, false);
    if (status == SHOAL_OK)
        status = check_values("variances", config->variances, table, true);
    return status == SHOAL_OK ? check_values("priors", config->priors, config->classes_count, true) : status;
}

static void fill_model(const predict_model *model, const bayes_predict_config *config)
{
    static const double circle = 0x1.921fb54442d18p+2; /* 2 pi */
    double *mean = means_of(model), *factor = mean + model->classes * model->columns;
    memcpy(labels_of(model), config->classes, (size_t)model->classes * sizeof(double));
    for (int64_t c = 0; c < model->classes; c++) {
        double logarithms = 0;
        for (int64_t k = 0; k < model->columns; k++) {
            double variance = config->variances[c * model->columns + k];
            mean[k * model->classes + c] = config->means[c * model->columns + k];
            factor[k * model->classes + c] = 1 / sqrt(2 * variance);
            logarithms += kernel_log(circle) + kernel_log(variance);
        }
        constants_of(model)[c] = kernel_log(config->priors[c]) - logarithms / 2;
    }
}

static void lay_out(shoal_layout *layout, const predict_model *model)
{
    *layout = (shoal_layout){.cells = model->probabilities ? 3 : 2, .carry_from = -1};
    layout->cell[PREDICT_LABELS] = (shoal_cell){"labels", SHOAL_CELL_ROW, 0, sizeof(double), false};
    layout->cell[PREDICT_BAD] = (shoal_cell){"not finite", SHOAL_CELL_RECORD, 1, sizeof(double), false};
    if (model->probabilities)
        layout->cell[PREDICT_SHARES] =
            (shoal_cell){"probabilities", SHOAL_CELL_ROW, 0, (size_t)model->classes * sizeof(double), false};
}

static int start_bayes_predict(shoal_round **out, const void *untyped, const shoal_shape *shape)
{
    const bayes_predict_config *config = untyped;
    const predict_model header = {
        .columns = config->columns, .classes = config->classes_count, .probabilities = config->probabilities};
    shoal_round *round = NULL;
    int status = check_config(config, shape);
    if (status == SHOAL_OK)
        status = shoal_round_new(&round, bytes_of(&header));
    if (status < 0)
        return status;
    memcpy(round->model, &header, sizeof header);
    fill_model(round->model, config);
    lay_out(&round->layout, &header);
    snprintf(round->phase, sizeof round->phase, "run");
    round->steps = 1;
    *out = round;
    return SHOAL_OK;
}

/* A forged model may hold any numbers: they lead to wrong labels, and to no harm. */
static int check_bayes_predict(const shoal_algorithm *self, const shoal_round *round, const shoal_shape *shape)
{
    const predict_model *model = round->model;
    shoal_layout expected;
    (void)self;
    bool good = round->model_bytes >= sizeof *model && is_size(model->classes, model->columns) &&
                model->columns == shape->columns && (model->probabilities == 0 || model->probabilities == 1) &&
                round->model_bytes == bytes_of(model);
    if (good)
        lay_out(&expected, model);
    return good && shoal_layout_same(&round->layout, &expected)
               ? SHOAL_OK
               : shoal_fail(SHOAL_BROKEN, "round %" PRId64 " does not hold a naive Bayes model for these rows",
                            round->number);
}

static int check_result_bayes_predict(const shoal_algorithm *self, const shoal_result *result, const shoal_round *first,
                                      const shoal_shape *shape)
{
    const predict_model *model = first->model;
    (void)self;
    return learn_classes_result_check(result, shape->rows, model->classes, model->probabilities);
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

typedef struct prepared {
    const kernel_set *kernel;
} prepared;

static int prepare_bayes_predict(void **inout, const shoal_round *round, const shoal_shape *shape,
                                 const shoal_crew *crew)
{
    int status = *inout ? SHOAL_OK : base_alloc(inout, 1, sizeof(prepared), "what rounds share");
    (void)round, (void)shape;
    return status == SHOAL_OK ? kernel_choose(&((prepared *)*inout)->kernel, crew->kernel) : status;
}

static void forget_bayes_predict(void **inout)
{
    base_free(inout);
}

static size_t scratch_bytes_bayes_predict(const shoal_round *round, const void *untyped, const shoal_shape *shape)
{
    const predict_model *model = round->model;
    (void)untyped;
    return (size_t)(shape->columns + BLOCK_ROWS * model->classes) * sizeof(double) + BLOCK_ROWS * sizeof(int32_t);
}

/* The logarithm for each class of one row.  What is too far from every class for a double is as far from each. */
static void fill_outputs(double *restrict output, const predict_model *model, const double *x)
{
    const double *restrict constant = constants_of(model), *restrict mean = means_of(model),
                           *restrict factor = mean + model->classes * model->columns;
    int64_t classes = model->classes;
    memset(output, 0, (size_t)classes * sizeof *output);
    for (int64_t k = 0; k < model->columns; k++, mean += classes, factor += classes)
        for (int64_t c = 0; c < classes; c++) {
            double away = (x[k] - mean[c]) * factor[c];
            output[c] += away * away;
        }
    for (int64_t c = 0; c < classes; c++) {
        double sum = constant[c] - output[c];
        output[c] = sum >= -DBL_MAX && sum <= DBL_MAX ? sum : -DBL_MAX;
    }
}

static int map_bayes_predict(shoal_partial *partial, const shoal_round *round, const void *untyped,
                             const shoal_grain *grain, const shoal_scratch *scratch)
{
    const predict_model *model = round->model;
    const kernel_dense64 *dense = &((const prepared *)untyped)->kernel->dense64;
    const shoal_type type = grain->shape->type;
    const size_t row_bytes = (size_t)model->columns * shoal_type_size(type);
    double *row = scratch->memory, *output = row + model->columns;
    int32_t *most = (int32_t *)(output + BLOCK_ROWS * model->classes);
    for (int64_t first = 0; first < grain->rows; first += BLOCK_ROWS) {
        int64_t rows = grain->rows - first < BLOCK_ROWS ? grain->rows - first : BLOCK_ROWS;
        int64_t row_number = grain->first_row + first;
        for (int64_t i = 0; i < rows; i++) {
            shoal_convert_float64(row, (const char *)grain->values + (size_t)(first + i) * row_bytes, type,
                                  model->columns);
            fill_outputs(output + i * model->classes, model, row);
        }
        learn_classes_decide(most, model->probabilities ? shoal_partial_row(partial, PREDICT_SHARES, row_number) : NULL,
                             output, rows, model->classes, dense);
        double *label = shoal_partial_row(partial, PREDICT_LABELS, row_number);
        for (int64_t i = 0; i < rows; i++)
            label[i] = labels_of(model)[most[i]];
    }
    return learn_note_not_finite(partial, PREDICT_BAD, grain);
}

static int update_bayes_predict(shoal_round **next, shoal_result **out, const shoal_round *round, shoal_partial *merged,
                                const shoal_shape *shape, const shoal_crew *crew, bool stop)
{
    const predict_model *model = round->model;
    (void)next, (void)crew, (void)stop;
    int status = learn_refuse_not_finite(merged, PREDICT_BAD, BAYES_CALLED);
    if (status < 0)
        return status;
    return learn_classes_result(out, merged, PREDICT_LABELS, model->probabilities ? PREDICT_SHARES : -1, shape->rows,
                                model->classes);
}

/* ---- the learner ------------------------------------------------------------------------------------------------- */

static int cost_bayes_predict(shoal_cost *out, const void *untyped, const shoal_shape *shape)
{
    enum { ROUND_BYTES = 256, PARTIAL_BYTES = 28 }; /* names, numbers and a layout around them on the way */
    const bayes_predict_config *config = untyped;
    const predict_model model = {.columns = shape->columns, .classes = config->classes_count};
    double classes = (double)config->classes_count, word = sizeof(double);
    *out = (shoal_cost){.operations_per_row = 4 * classes * (double)shape->columns,
                        .model_bytes = ROUND_BYTES + (double)bytes_of(&model),
                        .partial_bytes = PARTIAL_BYTES,
                        .rounds = 1,
                        .phases = 1};
    out->phase[0] = (shoal_cost_phase){.name = "run",
                                       .rounds = 1,
                                       .operations_per_row = out->operations_per_row,
                                       .model_bytes = out->model_bytes,
                                       .partial_bytes = out->partial_bytes,
                                       .row_bytes = word * (1 + (config->probabilities ? classes : 0))};
    return SHOAL_OK;
}

const shoal_algorithm bayes_predict_algorithm = {
    .version = SHOAL_ALGORITHM_VERSION,
    .bytes = sizeof(shoal_algorithm),
    .name = "bayes-predict",
    .summary = "label rows by a model of naive Bayes",
    .config_size = sizeof(bayes_predict_config),
    .kernel_free = true,
    .start = start_bayes_predict,
    .check = check_bayes_predict,
    .check_result = check_result_bayes_predict,
    .prepare = prepare_bayes_predict,
    .forget = forget_bayes_predict,
    .scratch_bytes = scratch_bytes_bayes_predict,
    .map = map_bayes_predict,
    .update = update_bayes_predict,
    .cost = cost_bayes_predict,
};
