/* Features: the hidden activations of a trained autoencoder for each row, in one round.  The operations are those
 * of training, so the bits are the same. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "learn/autoencoder/autoencoder_internal.h"
#include "learn/check.h"

enum { CELL_FEATURES, CELL_BAD };

/* The model of the one round: an autoencoder_own, then the encoder and its bias. */
static const double *encoder_of(const autoencoder_own *own)
{
    return (const double *)(own + 1);
}

static size_t model_bytes(int64_t hidden, int64_t columns)
{
    return sizeof(autoencoder_own) + (size_t)(hidden * columns + hidden) * sizeof(double);
}

static size_t real_bytes(const autoencoder_own *own)
{
    return own->wide ? sizeof(double) : sizeof(float);
}

static int check_model(const shoal_features_config *config, const shoal_shape *shape)
{
    if (!config->encoder || !config->bias || config->hidden < 1 || config->columns < 1 ||
        config->hidden > AUTOENCODER_WEIGHTS_MOST / config->columns || config->activation < SHOAL_LOGISTIC ||
        config->activation > SHOAL_RELU || (config->precision != 1 && config->precision != 2) ||
        !isfinite(config->scale) || !isfinite(config->shift))
        return shoal_fail(
            SHOAL_USAGE,
            "features need an encoder of %lld hidden units and %lld columns, an activation, a scale and a precision "
            "that are there",
            (long long)config->hidden, (long long)config->columns);
    if (config->columns != shape->columns)
        return shoal_fail(SHOAL_INVALID, "the encoder has %lld columns, the data %lld", (long long)config->columns,
                          (long long)shape->columns);
    for (int64_t i = 0; i < config->hidden * config->columns; i++)
        if (!isfinite(config->encoder[i]))
            return shoal_fail(SHOAL_INVALID, "row %lld, column %lld of the encoder is not finite",
                              (long long)(i / config->columns + 1), (long long)(i % config->columns + 1));
    for (int64_t j = 0; j < config->hidden; j++)
        if (!isfinite(config->bias[j]))
            return shoal_fail(SHOAL_INVALID, "the encoder's bias %lld is not finite", (long long)(j + 1));
    return SHOAL_OK;
}

static void lay_out_features(shoal_layout *layout, const autoencoder_own *own)
{
    *layout = (shoal_layout){.cells = 2, .carry_from = -1};
    layout->cell[CELL_FEATURES] =
        (shoal_cell){"features", SHOAL_CELL_ROW, 0, (size_t)own->hidden * real_bytes(own), false};
    autoencoder_bad_cell(&layout->cell[CELL_BAD]);
}

static int start_features(shoal_round **out, const void *untyped, const shoal_shape *shape)
{
    const shoal_features_config *config = untyped;
    int status = check_model(config, shape);
    size_t weights = (size_t)config->hidden * (size_t)config->columns, hidden = (size_t)config->hidden;
    if (status == SHOAL_OK)
        status = shoal_round_new(out, model_bytes(config->hidden, config->columns));
    if (status < 0)
        return status;
    autoencoder_own *own = (*out)->model;
    own->hidden = config->hidden;
    own->columns = config->columns;
    own->activation = autoencoder_kernel_activation(config->activation);
    own->wide = config->precision == 2;
    own->scale = config->scale;
    own->shift = config->shift;
    memcpy((double *)encoder_of(own), config->encoder, weights * sizeof(double));
    memcpy((double *)encoder_of(own) + weights, config->bias, hidden * sizeof(double));
    snprintf((*out)->phase, sizeof(*out)->phase, "run");
    lay_out_features(&(*out)->layout, own);
    return SHOAL_OK;
}

static int check_features(const shoal_algorithm *self, const shoal_round *round, const shoal_shape *shape)
{
    const autoencoder_own *own = round->model;
    shoal_layout expected;
    (void)self;
    bool good = round->model_bytes >= sizeof *own && own->columns == shape->columns && own->columns >= 1 &&
                own->hidden >= 1 && own->hidden <= AUTOENCODER_WEIGHTS_MOST / own->columns &&
                round->model_bytes == model_bytes(own->hidden, own->columns) && own->activation >= KERNEL_LOGISTIC &&
                own->activation <= KERNEL_RELU && own->wide >> 1 == 0 && isfinite(own->scale) && isfinite(own->shift);
    if (good)
        lay_out_features(&expected, own);
    return good && shoal_layout_same(&round->layout, &expected)
               ? SHOAL_OK
               : shoal_fail(SHOAL_BROKEN, "the model of a round is not an encoder for these rows");
}

static int check_result_features(const shoal_algorithm *self, const shoal_result *result, const shoal_round *first,
                                 const shoal_shape *shape)
{
    const autoencoder_own *own = first->model;
    (void)self;
    return learn_result_has(result, "features", own->wide ? SHOAL_FLOAT64 : SHOAL_FLOAT32, 2,
                            (int64_t[]){shape->rows, own->hidden})
               ? SHOAL_OK
               : shoal_fail(SHOAL_BROKEN, "the result is not the features of these rows");
}

static int prepare_features(void **inout, const shoal_round *round, const shoal_shape *shape, const shoal_crew *crew)
{
    const autoencoder_own *own = round->model;
    autoencoder_prepared *shared = *inout;
    if (shared) /* there is one round only */
        return SHOAL_OK;
    int64_t weights = own->hidden * own->columns;
    int status = base_alloc(inout, 1, sizeof *shared, "what rounds share");
    if (status < 0)
        return status;
    shared = *inout;
    shared->block_rows = autoencoder_block_rows(own->hidden, own->columns, shape);
    status = kernel_choose(&shared->kernel, crew->kernel);
    if (status == SHOAL_OK)
        status = base_alloc(&shared->encode, (size_t)weights, real_bytes(own), "the encoder");
    if (status == SHOAL_OK)
        status = base_alloc(&shared->encoder_bias, (size_t)own->hidden, real_bytes(own), "the encoder's bias");
    if (status < 0)
        return status;
    autoencoder_transpose(shared->encode, encoder_of(own), own->hidden, own->columns, own->wide);
    autoencoder_narrow(shared->encoder_bias, encoder_of(own) + weights, own->hidden, own->wide);
    return SHOAL_OK;
}

static size_t scratch_bytes_features(const shoal_round *round, const void *prepared, const shoal_shape *shape)
{
    (void)shape;
    return AUTOENCODER_SCAN_RUN * sizeof(double) + autoencoder_encode_scratch(round->model, prepared);
}

static int map_features(shoal_partial *partial, const shoal_round *round, const void *prepared,
                        const shoal_grain *grain, const shoal_scratch *scratch)
{
    const autoencoder_own *own = round->model;
    double *memory = scratch->memory;
    int status = autoencoder_note_bad(partial, CELL_BAD, grain, own->wide, memory);
    if (status == SHOAL_OK)
        autoencoder_encode(shoal_partial_row(partial, CELL_FEATURES, grain->first_row), own, prepared, grain,
                           memory + AUTOENCODER_SCAN_RUN);
    return status;
}

static int update_features(shoal_round **next, shoal_result **result, const shoal_round *round, shoal_partial *merged,
                           const shoal_shape *shape, const shoal_crew *crew, bool stop)
{
    const autoencoder_own *own = round->model;
    (void)next, (void)crew, (void)stop;
    int status = autoencoder_refuse_bad(merged, CELL_BAD);
    if (status == SHOAL_OK)
        status = shoal_result_new(result);
    if (status == SHOAL_OK)
        status = shoal_result_take_table(*result, "features", own->wide ? SHOAL_FLOAT64 : SHOAL_FLOAT32, merged,
                                         CELL_FEATURES, shape->rows, own->hidden);
    if (status < 0)
        shoal_result_free(result);
    return status;
}

static int cost_features(shoal_cost *out, const void *untyped, const shoal_shape *shape)
{
    enum { ROUND_BYTES = 200, PARTIAL_BYTES = 28 }; /* names, numbers and a layout around them on the way */
    const shoal_features_config *config = untyped;
    double hidden = (double)config->hidden, weights = hidden * (double)shape->columns;
    const shoal_cost_phase run = {.name = "run",
                                  .rounds = 1,
                                  .operations_per_row = 2 * weights,
                                  .model_bytes =
                                      ROUND_BYTES + sizeof(autoencoder_own) + (weights + hidden) * sizeof(double),
                                  .partial_bytes = PARTIAL_BYTES,
                                  .row_bytes = hidden * (config->precision == 2 ? sizeof(double) : sizeof(float))};
    *out = (shoal_cost){.operations_per_row = run.operations_per_row,
                        .model_bytes = run.model_bytes,
                        .partial_bytes = run.partial_bytes,
                        .rounds = 1,
                        .phases = 1,
                        .phase = {run}};
    return SHOAL_OK;
}

const shoal_algorithm shoal_features = {.version = SHOAL_ALGORITHM_VERSION,
                                        .bytes = sizeof(shoal_algorithm),
                                        .name = "features",
                                        .summary = "the hidden layer of an autoencoder for each row",
                                        .config_size = sizeof(shoal_features_config),
                                        .kernel_free = true,
                                        .start = start_features,
                                        .check = check_features,
                                        .check_result = check_result_features,
                                        .prepare = prepare_features,
                                        .forget = autoencoder_forget,
                                        .scratch_bytes = scratch_bytes_features,
                                        .map = map_features,
                                        .update = update_features,
                                        .cost = cost_features};
