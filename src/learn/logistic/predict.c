/* A model of logistic regression applied to rows: one round, whose partial has a place for each row. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "learn/check.h"
#include "learn/logistic/logistic_internal.h"

enum { PREDICT_LABELS, PREDICT_BAD, PREDICT_SHARES };

/* Behind it lie weights, intercepts and labels, as doubles. */
typedef struct predict_model {
    int64_t columns, outputs, classes, probabilities;
} predict_model;

static size_t predict_model_bytes(const predict_model *model)
{
    return sizeof *model + (size_t)(model->outputs * (model->columns + 1) + model->classes) * sizeof(double);
}

static const double *weights_of(const predict_model *model)
{
    return (const double *)(model + 1);
}

static const double *labels_of(const predict_model *model)
{
    return weights_of(model) + model->outputs * (model->columns + 1);
}

/* What the functions of a grain need to know; the target would be behind the last column. */
static logistic_own own_of(const predict_model *model)
{
    return (logistic_own){.target = model->columns,
                          .features = model->columns,
                          .classes = model->classes,
                          .outputs = model->outputs,
                          .intercept = 1};
}

static int check_finite(const char *name, const double *values, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(values[i]))
            return shoal_fail(SHOAL_INVALID, "the model: value %" PRId64 " of its %s is not finite", i + 1, name);
    return SHOAL_OK;
}

static int check_config(const shoal_logistic_predict_config *config, const shoal_shape *shape)
{
    if (!config->weights || !config->intercept || !config->classes || config->columns < 1 ||
        config->columns > INT32_MAX || config->classes_count < 2 ||
        config->classes_count > SHOAL_LOGISTIC_CLASSES_MOST ||
        config->outputs != logistic_outputs(config->classes_count))
        return shoal_fail(SHOAL_INVALID,
                          "%" PRId64 " rows of %" PRId64 " weights for %" PRId64 " classes are not a logistic "
                          "regression model",
                          config->outputs, config->columns, config->classes_count);
    if (config->columns != shape->columns)
        return shoal_fail(SHOAL_INVALID, "the model is for %" PRId64 " column%s, but the data has %" PRId64,
                          config->columns, base_plural(config->columns), shape->columns);
    int status = check_finite("weights", config->weights, config->outputs * config->columns);
    if (status == SHOAL_OK)
        status = check_finite("intercept", config->intercept, config->outputs);
    if (status == SHOAL_OK)
        status = check_finite("classes", config->classes, config->classes_count);
    return status;
}

static void lay_out_predict(shoal_layout *layout, const predict_model *model)
{
    *layout = (shoal_layout){.cells = model->probabilities ? 3 : 2, .carry_from = -1};
    layout->cell[PREDICT_LABELS] = (shoal_cell){"labels", SHOAL_CELL_ROW, 0, sizeof(double), false};
    layout->cell[PREDICT_BAD] = (shoal_cell){"not finite", SHOAL_CELL_RECORD, 1, sizeof(double), false};
    if (model->probabilities)
        layout->cell[PREDICT_SHARES] =
            (shoal_cell){"probabilities", SHOAL_CELL_ROW, 0, (size_t)model->classes * sizeof(double), false};
}

static int start_predict(shoal_round **out, const void *untyped, const shoal_shape *shape)
{
    const shoal_logistic_predict_config *config = untyped;
    const predict_model header = {.columns = config->columns,
                                  .outputs = config->outputs,
                                  .classes = config->classes_count,
                                  .probabilities = config->probabilities};
    shoal_round *round = NULL;
    int status = check_config(config, shape);
    if (status == SHOAL_OK)
        status = shoal_round_new(&round, predict_model_bytes(&header));
    if (status < 0)
        return status;
    size_t weights = (size_t)(header.outputs * header.columns), outputs = (size_t)header.outputs;
    predict_model *model = round->model;
    double *values = (double *)(model + 1);
    *model = header;
    memcpy(values, config->weights, weights * sizeof *values);
    memcpy(values + weights, config->intercept, outputs * sizeof *values);
    memcpy(values + weights + outputs, config->classes, (size_t)header.classes * sizeof *values);
    lay_out_predict(&round->layout, model);
    snprintf(round->phase, sizeof round->phase, "run");
    round->steps = 1;
    *out = round;
    return SHOAL_OK;
}

static int check_predict(const shoal_algorithm *self, const shoal_round *round, const shoal_shape *shape)
{
    const predict_model *model = round->model;
    shoal_layout expected;
    (void)self;
    bool good = round->model_bytes >= sizeof *model && model->columns == shape->columns && model->columns >= 1 &&
                model->columns <= INT32_MAX && model->classes >= 2 && model->classes <= SHOAL_LOGISTIC_CLASSES_MOST &&
                model->outputs == logistic_outputs(model->classes) && round->model_bytes == predict_model_bytes(model);
    if (good)
        lay_out_predict(&expected, model);
    return good && shoal_layout_same(&round->layout, &expected)
               ? SHOAL_OK
               : shoal_fail(SHOAL_BROKEN, "round %" PRId64 " does not hold a logistic regression model for these rows",
                            round->number);
}

static int check_result_predict(const shoal_algorithm *self, const shoal_result *result, const shoal_round *first,
                                const shoal_shape *shape)
{
    const predict_model *model = first->model;
    (void)self;
    return learn_classes_result_check(result, shape->rows, model->classes, model->probabilities);
}

static int prepare_predict(void **prepared, const shoal_round *round, const shoal_shape *shape, const shoal_crew *crew)
{
    const predict_model *model = round->model;
    const logistic_own own = own_of(model);
    (void)shape;
    return logistic_prepare_model((logistic_prepared **)prepared, &own, weights_of(model),
                                  weights_of(model) + model->outputs * model->columns, crew->kernel);
}

static size_t scratch_predict(const shoal_round *round, const void *prepared, const shoal_shape *shape)
{
    const logistic_own own = own_of(round->model);
    (void)prepared;
    return logistic_grain_scratch(&own, shape);
}

typedef struct deciding {
    shoal_partial *partial;
    const predict_model *model;
    const kernel_dense64 *dense;
} deciding;

static void decide_classes(void *context, const logistic_block *block, int64_t first_row)
{
    const deciding *self = context;
    double *label = shoal_partial_row(self->partial, PREDICT_LABELS, first_row);
    logistic_decide(block,
                    self->model->probabilities ? shoal_partial_row(self->partial, PREDICT_SHARES, first_row) : NULL,
                    self->dense);
    for (int64_t i = 0; i < block->rows; i++)
        label[i] = labels_of(self->model)[block->most[i]];
}

static int map_predict(shoal_partial *partial, const shoal_round *round, const void *untyped, const shoal_grain *grain,
                       const shoal_scratch *scratch)
{
    const logistic_prepared *prepared = untyped;
    const logistic_own own = own_of(round->model);
    deciding self = {.partial = partial, .model = round->model, .dense = &prepared->kernel->dense64};
    logistic_grain_outputs(&own, prepared, grain, scratch, decide_classes, &self);
    return learn_note_not_finite(partial, PREDICT_BAD, grain);
}

static int update_predict(shoal_round **next, shoal_result **out, const shoal_round *round, shoal_partial *merged,
                          const shoal_shape *shape, const shoal_crew *crew, bool stop)
{
    const predict_model *model = round->model;
    (void)next, (void)crew, (void)stop;
    int status = learn_refuse_not_finite(merged, PREDICT_BAD, LOGISTIC_CALLED);
    if (status < 0)
        return status;
    return learn_classes_result(out, merged, PREDICT_LABELS, model->probabilities ? PREDICT_SHARES : -1, shape->rows,
                                model->classes);
}

static int cost_predict(shoal_cost *out, const void *untyped, const shoal_shape *shape)
{
    enum { ROUND_BYTES = 256, PARTIAL_BYTES = 28 }; /* names, numbers and a layout around them on the way */
    const shoal_logistic_predict_config *config = untyped;
    double outputs = (double)config->outputs, columns = (double)shape->columns, word = sizeof(double);
    double numbers = outputs * (columns + 1) + (double)config->classes_count;
    const shoal_cost_phase run = {.name = "run",
                                  .rounds = 1,
                                  .operations_per_row = 2 * outputs * columns,
                                  .model_bytes = ROUND_BYTES + sizeof(predict_model) + numbers * word,
                                  .partial_bytes = PARTIAL_BYTES,
                                  .row_bytes =
                                      word * (1 + (config->probabilities ? (double)config->classes_count : 0))};
    *out = (shoal_cost){.operations_per_row = run.operations_per_row,
                        .model_bytes = run.model_bytes,
                        .partial_bytes = run.partial_bytes,
                        .rounds = 1,
                        .phases = 1,
                        .phase = {run}};
    return SHOAL_OK;
}

const shoal_algorithm shoal_logistic_predict = {
    .version = SHOAL_ALGORITHM_VERSION,
    .bytes = sizeof(shoal_algorithm),
    .name = "logistic-predict",
    .summary = "label rows by a model of logistic regression",
    .config_size = sizeof(shoal_logistic_predict_config),
    .kernel_free = true,
    .start = start_predict,
    .check = check_predict,
    .check_result = check_result_predict,
    .prepare = prepare_predict,
    .forget = logistic_forget,
    .scratch_bytes = scratch_predict,
    .map = map_predict,
    .update = update_predict,
    .cost = cost_predict,
};
