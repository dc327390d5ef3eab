/* A net applied to rows: one round, whose partial has a place for each row. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "learn/check.h"
#include "learn/train/train_internal.h"

enum { PREDICT_LABELS, PREDICT_BAD, PREDICT_SHARES };
enum { ROWS_AT_ONCE = 16, ALIGNMENT = 64 };

/* The parameters and running averages follow it, as float, in the order of our own. */
typedef struct predict_model {
    train_settings set; /* of the rows and how they are scaled; the rest is 0 */
    int64_t classes, probabilities;
    double label[LEARN_CLASSES_MOST];
    char text[TRAIN_TEXT_MOST];
} predict_model;

static size_t predict_model_bytes(const train_net *net)
{
    return sizeof(predict_model) + (size_t)train_net_values(net) * sizeof(float);
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

/* ---- round 0 ----------------------------------------------------------------------------------------------------- */

static int parse_config(train_net *net, const train_predict_config *config, const shoal_shape *shape)
{
    const train_shape in = {config->channels, config->height, config->width, config->flat != 0};
    int status = train_net_parse(net, config->text, "the model's net", &in);
    if (status < 0)
        return shoal_fail(SHOAL_INVALID, "%s", shoal_error());
    if (net->classes != config->classes_count || net->classes > LEARN_CLASSES_MOST ||
        !learn_classes_good(config->classes, config->classes_count))
        return shoal_fail(SHOAL_INVALID, "the model: %" PRId64 " classes are none for a softmax of %" PRId64,
                          config->classes_count, net->classes);
    if (train_shape_values(&in) != shape->columns)
        return shoal_fail(SHOAL_INVALID, "the model is for %" PRId64 " column%s, but the data has %" PRId64,
                          train_shape_values(&in), base_plural(train_shape_values(&in)), shape->columns);
    if (!isfinite((float)config->scale) || !isfinite((float)config->shift))
        return shoal_fail(SHOAL_INVALID, "the model: 'scale' is %g and 'shift' is %g, which are to be finite float32",
                          config->scale, config->shift);
    return train_check_parameters(config->parameters, net);
}

static int start_predict(shoal_round **out, const void *untyped, const shoal_shape *shape)
{
    const train_predict_config *config = untyped;
    shoal_round *round = NULL;
    train_net net;
    int status = parse_config(&net, config, shape);
    if (status == SHOAL_OK)
        status = shoal_round_new(&round, predict_model_bytes(&net));
    if (status < 0)
        return status;
    predict_model *model = round->model;
    model->set = (train_settings){.columns = shape->columns,
                                  .target = shape->columns,
                                  .channels = config->channels,
                                  .height = config->height,
                                  .width = config->width,
                                  .flat = config->flat != 0,
                                  .scale = config->scale,
                                  .shift = config->shift};
    model->classes = config->classes_count;
    model->probabilities = config->probabilities;
    memcpy(model->label, config->classes, (size_t)config->classes_count * sizeof *model->label);
    memcpy(model->text, config->text, strlen(config->text) + 1);
    train_import((float *)(model + 1), &net, config->parameters, NULL);
    lay_out_predict(&round->layout, model);
    snprintf(round->phase, sizeof round->phase, "run");
    round->steps = 1;
    *out = round;
    return SHOAL_OK;
}

static bool is_good(const shoal_round *round, const shoal_shape *shape)
{
    const predict_model *model = round->model;
    shoal_layout expected;
    train_net net;
    if (round->model_bytes < sizeof *model || !memchr(model->text, '\0', sizeof model->text) ||
        model->set.columns != shape->columns || model->set.target != shape->columns)
        return false;
    const train_shape in = train_shape_of(&model->set);
    if (train_net_parse(&net, model->text, "--net", &in) < 0 || train_shape_values(&in) != shape->columns ||
        round->model_bytes != predict_model_bytes(&net) || model->classes != net.classes ||
        net.classes > LEARN_CLASSES_MOST)
        return false;
    lay_out_predict(&expected, model);
    return shoal_layout_same(&round->layout, &expected);
}

static int check_predict(const shoal_algorithm *self, const shoal_round *round, const shoal_shape *shape)
{
    (void)self;
    return is_good(round, shape)
               ? SHOAL_OK
               : shoal_fail(SHOAL_BROKEN, "round %" PRId64 " does not hold a net for these rows", round->number);
}

static int check_result_predict(const shoal_algorithm *self, const shoal_result *result, const shoal_round *first,
                                const shoal_shape *shape)
{
    const predict_model *model = first->model;
    (void)self;
    return learn_classes_result_check(result, shape->rows, model->classes, model->probabilities);
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static int prepare_predict(void **prepared, const shoal_round *round, const shoal_shape *shape, const shoal_crew *crew)
{
    const predict_model *model = round->model;
    const train_shape in = train_shape_of(&model->set);
    (void)shape;
    return train_prepare_net((train_prepared **)prepared, model->text, &in, 0, (const float *)(model + 1),
                             crew->kernel);
}

static size_t scratch_predict(const shoal_round *round, const void *prepared, const shoal_shape *shape)
{
    const train_prepared *shared = prepared;
    train_work work;
    size_t bytes;
    (void)round;
    train_work_cut(&work, &shared->net, ROWS_AT_ONCE, false, NULL);
    return base_add(&bytes, work.bytes, (size_t)shape->columns * sizeof(float) + ALIGNMENT) ? bytes : SIZE_MAX;
}

static int map_predict(shoal_partial *partial, const shoal_round *round, const void *prepared, const shoal_grain *grain,
                       const shoal_scratch *scratch)
{
    const predict_model *model = round->model;
    const train_prepared *shared = prepared;
    const int64_t values = train_shape_values(&shared->net.in);
    const size_t row = ((size_t)values * sizeof(float) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    train_work work;
    int32_t most[ROWS_AT_ONCE];
    train_work_cut(&work, &shared->net, ROWS_AT_ONCE, false, (char *)scratch->memory + row);
    for (int64_t first = 0; first < grain->rows; first += ROWS_AT_ONCE) {
        const int64_t left = grain->rows - first, rows = left < ROWS_AT_ONCE ? left : ROWS_AT_ONCE;
        double *label = shoal_partial_row(partial, PREDICT_LABELS, grain->first_row + first);
        double *share =
            model->probabilities ? shoal_partial_row(partial, PREDICT_SHARES, grain->first_row + first) : NULL;
        for (int64_t i = 0; i < rows; i++)
            train_take_row(work.input + i * values, scratch->memory, &model->set, grain, first + i,
                           &shared->with.kernel->dense32);
        train_forwards(&work, &shared->with, rows, NULL);
        train_decide(most, share, &work, shared->with.kernel, rows);
        for (int64_t i = 0; i < rows; i++)
            label[i] = model->label[most[i]];
    }
    return learn_note_not_finite(partial, PREDICT_BAD, grain);
}

static int update_predict(shoal_round **next, shoal_result **out, const shoal_round *round, shoal_partial *merged,
                          const shoal_shape *shape, const shoal_crew *crew, bool stop)
{
    const predict_model *model = round->model;
    (void)next, (void)crew, (void)stop;
    int status = learn_refuse_not_finite(merged, PREDICT_BAD, "a net");
    if (status < 0)
        return status;
    return learn_classes_result(out, merged, PREDICT_LABELS, model->probabilities ? PREDICT_SHARES : -1, shape->rows,
                                model->classes);
}

static int cost_predict(shoal_cost *out, const void *untyped, const shoal_shape *shape)
{
    enum { ROUND_BYTES = 256, PARTIAL_BYTES = 28 }; /* names, numbers and a layout around them on the way */
    const train_predict_config *config = untyped;
    train_net net;
    double operations = 0;
    int status = parse_config(&net, config, shape);
    if (status < 0)
        return status;
    for (int i = 0; i < net.layers; i++)
        operations += train_layer_operations(&net.layer[i]);
    const shoal_cost_phase run = {.name = "run",
                                  .rounds = 1,
                                  .operations_per_row = operations,
                                  .model_bytes = ROUND_BYTES + (double)predict_model_bytes(&net),
                                  .partial_bytes = PARTIAL_BYTES,
                                  .row_bytes =
                                      sizeof(double) * (1 + (config->probabilities ? (double)net.classes : 0))};
    *out = (shoal_cost){.operations_per_row = run.operations_per_row,
                        .model_bytes = run.model_bytes,
                        .partial_bytes = run.partial_bytes,
                        .rounds = 1,
                        .phases = 1,
                        .phase = {run}};
    return SHOAL_OK;
}

const shoal_algorithm train_predict_algorithm = {
    .version = SHOAL_ALGORITHM_VERSION,
    .bytes = sizeof(shoal_algorithm),
    .name = "train-predict",
    .summary = "label rows by a net",
    .config_size = sizeof(train_predict_config),
    .kernel_free = true,
    .start = start_predict,
    .check = check_predict,
    .check_result = check_result_predict,
    .prepare = prepare_predict,
    .forget = train_forget,
    .scratch_bytes = scratch_predict,
    .map = map_predict,
    .update = update_predict,
    .cost = cost_predict,
};
