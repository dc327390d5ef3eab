/* Tells which rows each of its rounds saw: a module for --workers, and part of batch_runs.c.  Its result has four whole
 * numbers a round: how many rows there were, sums of their numbers and of their values that tell rows apart, each times
 * its weight in quarters, and how many maps there were. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <shoal/module.h>

#include "batch_learner.h"

enum { SIZES_MOST = 8, ROUNDS_MOST = 64, ALL_ROWS = 0, DRAWN_ROWS = -1, HELD_ROWS = -2 };
enum { ROWS, NUMBERS, VALUES, MAPS, NOTES };

static const shoal_option batch_options[] = {
    {"sizes", 0, SHOAL_OPTION_TEXT, offsetof(batch_config, sizes), "N,...",
     .help = "rows of a batch, in turn; 0: all, -1: those that batches are drawn from, -2: those that are held out",
     .fallback = "10"},
    {"rounds", 0, SHOAL_OPTION_COUNT, offsetof(batch_config, rounds), "N", "how many", "10", 1, .most = ROUNDS_MOST},
    {"group", 0, SHOAL_OPTION_COUNT, offsetof(batch_config, group), "N", "rows of a map", "4", 1, .most = 1 << 20},
    {"strata", 0, SHOAL_OPTION_COUNT, offsetof(batch_config, strata), "N", "to draw from", "16", 1, .most = 1 << 20},
    {"held", 0, SHOAL_OPTION_COUNT, offsetof(batch_config, held), "N", "rows held out", "0", 0, .most = 1 << 20},
    {"seed", 0, SHOAL_OPTION_COUNT, offsetof(batch_config, seed), "N", "of epochs", "0", 0, .most = 1 << 20},
    {0}};

typedef struct batch_model {
    int64_t rounds, group, seed;
    int64_t sizes, size[SIZES_MOST];
    int64_t round, epoch, from;
    int64_t noted[ROUNDS_MOST][NOTES];
} batch_model;

static int64_t size_of(const batch_model *model)
{
    return model->size[model->round % model->sizes];
}

static shoal_layout layout_of(const batch_model *model)
{
    const int64_t size = size_of(model);
    shoal_layout layout = {.cells = 1, .carry_from = -1};
    layout.cell[0] = (shoal_cell){.name = "noted", .kind = SHOAL_CELL_SUM, .count = NOTES};
    layout.part = size == DRAWN_ROWS ? SHOAL_DRAWN : size == HELD_ROWS ? SHOAL_HELD : SHOAL_ALL;
    if (size > 0)
        layout.pick = (shoal_pick){.key = shoal_epoch_key((uint64_t)model->seed, model->epoch),
                                   .from = model->from,
                                   .count = size,
                                   .group = model->group};
    return layout;
}

static int make_round(shoal_round **out, const batch_model *model)
{
    int status = shoal_round_new(out, sizeof *model);
    if (status < 0)
        return status;
    *(batch_model *)(*out)->model = *model;
    (*out)->layout = layout_of(model);
    (*out)->step = model->round;
    (*out)->steps = model->rounds;
    snprintf((*out)->phase, sizeof(*out)->phase, "run");
    return SHOAL_OK;
}

static int batch_start(shoal_round **out, const void *config, const shoal_shape *shape)
{
    const batch_config *asked = config;
    batch_model model = {.rounds = asked->rounds, .group = asked->group, .seed = asked->seed};
    (void)shape;
    for (const char *text = asked->sizes; text && model.sizes < SIZES_MOST; model.sizes++) {
        char *end;
        model.size[model.sizes] = strtoll(text, &end, 10);
        if (end == text || model.size[model.sizes] < HELD_ROWS || model.size[model.sizes] > INT32_MAX)
            return shoal_fail(SHOAL_USAGE, "sizes %s are no numbers from -2 on", asked->sizes);
        text = *end == ',' ? end + 1 : NULL;
    }
    return make_round(out, &model);
}

static int batch_check(const shoal_algorithm *self, const shoal_round *round, const shoal_shape *shape)
{
    const batch_model *model = round->model;
    (void)self;
    bool good = round->model_bytes == sizeof *model && model->sizes >= 1 && model->sizes <= SIZES_MOST &&
                model->group >= 1 && model->round >= 0 && model->round < model->rounds &&
                model->rounds <= ROUNDS_MOST && model->from >= 0 && model->from < shape->rows;
    const shoal_layout expected = good ? layout_of(model) : (shoal_layout){0};
    return good && shoal_layout_same(&round->layout, &expected)
               ? SHOAL_OK
               : shoal_fail(SHOAL_BROKEN, "not a round of the learner of batches");
}

static int batch_strata(const void *config, shoal_shape *shape)
{
    const batch_config *asked = config;
    shape->strata = asked->strata;
    shape->held = asked->held;
    return SHOAL_OK;
}

static size_t batch_scratch(const shoal_round *round, const void *prepared, const shoal_shape *shape)
{
    (void)round, (void)prepared;
    return (size_t)shape->columns * sizeof(double);
}

static int batch_map(shoal_partial *partial, const shoal_round *round, const void *prepared, const shoal_grain *grain,
                     const shoal_scratch *scratch)
{
    const size_t row_bytes = (size_t)grain->shape->columns * shoal_type_size(grain->shape->type);
    int64_t *noted = shoal_partial_values(partial, 0);
    double *values = scratch->memory;
    (void)round, (void)prepared;
    for (int64_t i = 0; i < grain->rows; i++) {
        const int64_t number = grain->row ? grain->row[i] : grain->first_row + i;
        const int64_t quarters = grain->weights ? llrint(grain->weights[i] * 4) : 4;
        shoal_convert_float64(values, (const char *)grain->values + (size_t)i * row_bytes, grain->shape->type,
                              grain->shape->columns);
        noted[NUMBERS] += number * number % 10007 * quarters;
        for (int64_t j = 0; j < grain->shape->columns; j++)
            noted[VALUES] += llrint(values[j] * 0x1p20) * (j + 1) * quarters;
    }
    noted[ROWS] += grain->rows;
    noted[MAPS]++;
    return SHOAL_OK;
}

/* Goes on in the epoch, behind this round's batch. */
static void pass_batch(batch_model *model, const shoal_shape *shape)
{
    const int64_t size = size_of(model), all = shape->rows - shape->held;
    model->from += size > 0 ? size : 0;
    if (model->from >= all) {
        model->from = 0;
        model->epoch++;
    }
    model->round++;
}

static int batch_update(shoal_round **next, shoal_result **result, const shoal_round *round, shoal_partial *merged,
                        const shoal_shape *shape, const shoal_crew *crew, bool stop)
{
    batch_model model = *(const batch_model *)round->model;
    const int64_t sizes[] = {model.round + 1, NOTES};
    (void)crew;
    for (int i = 0; i < NOTES; i++)
        model.noted[model.round][i] = shoal_partial_values(merged, 0)[i];
    pass_batch(&model, shape);
    if (model.round < model.rounds && !stop)
        return make_round(next, &model);
    int status = shoal_result_new(result);
    double *out = status == SHOAL_OK ? shoal_result_add(*result, "result", SHOAL_FLOAT64, 2, sizes) : NULL;
    for (int64_t i = 0; out && i < model.round * NOTES; i++)
        out[i] = (double)model.noted[i / NOTES][i % NOTES];
    return out ? SHOAL_OK : SHOAL_MEMORY;
}

static int batch_cost(shoal_cost *out, const void *config, const shoal_shape *shape)
{
    (void)out, (void)config, (void)shape;
    return SHOAL_OK;
}

const shoal_algorithm batch_learner =
    SHOAL_ALGORITHM(.name = "batches", .summary = "which rows its rounds see", .options = batch_options,
                    .config_size = sizeof(batch_config), .kernel_free = true, .start = batch_start,
                    .check = batch_check, .strata = batch_strata, .scratch_bytes = batch_scratch, .map = batch_map,
                    .update = batch_update, .cost = batch_cost);

SHOAL_MODULE(.summary = "which rows its rounds see", .algorithm = &batch_learner);
