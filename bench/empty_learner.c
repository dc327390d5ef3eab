/* A learner without work, for bench/rounds.c and, as a module, for what --workers runs: `rounds` rounds, each of which
 * has `sums` sums and a new model of `numbers` float64, and newly keeps `kept` float64 if any.  A map adds its rows to
 * one sum, after `work` microseconds of doing nothing on its core; the update copies the model and what was kept, as a
 * learner that changes all of them would.  With `batch` each round sees so many rows, in groups of `group`, drawn from
 * `strata`. */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <shoal/module.h>

#include "empty_learner.h"

enum { SUMS_USED = 64 }; /* what maps add to */

#define SIZE(field, help, fallback)                                                                                    \
#field, 0, SHOAL_OPTION_COUNT, offsetof(empty_config, field), "N", help, fallback, .most = 1e9

static const shoal_option empty_options[] = {{SIZE(rounds, "how many", "1000")},
                                             {SIZE(sums, "of a partial", "37000")},
                                             {SIZE(numbers, "of a model", "18375")},
                                             {SIZE(kept, "numbers newly kept by a round", "0")},
                                             {SIZE(work, "microseconds of a map", "0")},
                                             {SIZE(batch, "rows of a batch, 0 for all rows", "0")},
                                             {SIZE(group, "rows of one map of a batch", "32")},
                                             {SIZE(strata, "that batches are drawn from", "8")},
                                             {0}};

/* What a model begins with. */
typedef struct empty_model {
    empty_config config;
    int64_t step;
    double numbers[];
} empty_model;

/* Batch number `step` of those that the epochs are cut into; the key numbers the epoch. */
static shoal_pick pick_batch(const empty_config *config, const shoal_shape *shape, int64_t step)
{
    int64_t batches = config->batch ? (shape->rows + config->batch - 1) / config->batch : 1;
    if (!config->batch)
        return (shoal_pick){0};
    return (shoal_pick){.key = (uint64_t)(step / batches),
                        .from = step % batches * config->batch,
                        .count = config->batch,
                        .group = config->group};
}

static int make_empty_round(shoal_round **out, const empty_config *config, const shoal_shape *shape, int64_t step)
{
    int status = shoal_round_new(out, sizeof(empty_model) + (size_t)config->numbers * sizeof(double));
    if (status < 0)
        return status;
    empty_model *model = (*out)->model;
    model->config = *config;
    model->step = step;
    (*out)->layout.cells = 1;
    (*out)->layout.cell[0] = (shoal_cell){.name = "sums", .kind = SHOAL_CELL_SUM, .count = config->sums};
    (*out)->layout.pick = pick_batch(config, shape, step);
    snprintf((*out)->phase, sizeof(*out)->phase, "run");
    (*out)->step = step;
    (*out)->steps = config->rounds;
    return SHOAL_OK;
}

static int start_empty(shoal_round **out, const void *config, const shoal_shape *shape)
{
    return make_empty_round(out, config, shape, 0);
}

static int check_empty(const shoal_algorithm *self, const shoal_round *round, const shoal_shape *shape)
{
    const empty_model *model = round->model;
    (void)self, (void)shape;
    bool good = round->model_bytes >= sizeof *model && model->config.numbers >= 0 &&
                (size_t)model->config.numbers == (round->model_bytes - sizeof *model) / sizeof(double) &&
                round->layout.cells == 1 && round->layout.cell[0].kind == SHOAL_CELL_SUM &&
                round->layout.cell[0].count == model->config.sums && model->config.sums > 0 &&
                model->config.kept >= 0 && model->config.kept < INT32_MAX;
    return good ? SHOAL_OK : shoal_fail(SHOAL_BROKEN, "not a round of the empty learner");
}

static int64_t rows_per_grain_empty(const void *config, const shoal_shape *shape)
{
    (void)shape;
    return ((const empty_config *)config)->batch ? 0 : 1;
}

static int strata_empty(const void *config, shoal_shape *shape)
{
    const empty_config *asked = config;
    shape->strata = asked->batch ? asked->strata : 0;
    return SHOAL_OK;
}

static size_t scratch_bytes_empty(const shoal_round *round, const void *prepared, const shoal_shape *shape)
{
    (void)round, (void)prepared, (void)shape;
    return 0;
}

static double microseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1e6 * (double)now.tv_sec + 1e-3 * (double)now.tv_nsec;
}

static int map_empty(shoal_partial *partial, const shoal_round *round, const void *prepared, const shoal_grain *grain,
                     const shoal_scratch *scratch)
{
    const empty_model *model = round->model;
    (void)prepared, (void)scratch;
    for (double end = model->config.work > 0 ? microseconds() + (double)model->config.work : 0; end > 0;)
        end = microseconds() < end ? end : 0;
    shoal_partial_values(
        partial, 0)[grain->index % (model->config.sums < SUMS_USED ? model->config.sums : SUMS_USED)] += grain->rows;
    return SHOAL_OK;
}

/* What is kept is made from what was kept before: momentum. */
static int keep_empty(shoal_round *next, const shoal_round *round, const empty_config *config)
{
    size_t bytes = (size_t)config->kept * sizeof(double);
    void *kept = config->kept ? shoal_round_keep(next, bytes) : NULL;
    if (config->kept && !kept)
        return SHOAL_MEMORY;
    if (kept && round->keeps)
        memcpy(kept, round->kept[round->keeps - 1]->values, bytes);
    else if (kept)
        memset(kept, 0, bytes);
    return SHOAL_OK;
}

static int update_empty(shoal_round **next, shoal_result **result, const shoal_round *round, shoal_partial *merged,
                        const shoal_shape *shape, const shoal_crew *crew, bool stop)
{
    const empty_model *model = round->model;
    const int64_t *sum = shoal_partial_values(merged, 0);
    int64_t rows = 0;
    (void)crew, (void)stop;
    for (int64_t i = 0; i < model->config.sums && i < SUMS_USED; i++)
        rows += sum[i];
    int64_t expected = model->config.batch ? shoal_pick_rows(&round->layout.pick, shape) : shape->rows;
    if (rows != expected)
        return shoal_fail(SHOAL_BROKEN, "%lld rows were mapped, not %lld", (long long)rows, (long long)expected);
    if (model->step + 1 >= model->config.rounds) {
        int status = shoal_result_new(result);
        if (status == SHOAL_OK)
            shoal_result_set_whole(*result, "steps", model->step + 1);
        return status;
    }
    int status = make_empty_round(next, &model->config, shape, model->step + 1);
    if (status == SHOAL_OK)
        memcpy(((empty_model *)(*next)->model)->numbers, model->numbers,
               (size_t)model->config.numbers * sizeof *model->numbers);
    return status == SHOAL_OK ? keep_empty(*next, round, &model->config) : status;
}

static int cost_empty(shoal_cost *out, const void *config, const shoal_shape *shape)
{
    (void)out, (void)config, (void)shape;
    return SHOAL_OK;
}

const shoal_algorithm empty_learner = {.version = SHOAL_ALGORITHM_VERSION,
                                       .bytes = sizeof(shoal_algorithm),
                                       .name = "empty",
                                       .summary = "sums of nothing",
                                       .options = empty_options,
                                       .config_size = sizeof(empty_config),
                                       .kernel_free = true,
                                       .start = start_empty,
                                       .check = check_empty,
                                       .rows_per_grain = rows_per_grain_empty,
                                       .strata = strata_empty,
                                       .scratch_bytes = scratch_bytes_empty,
                                       .map = map_empty,
                                       .update = update_empty,
                                       .cost = cost_empty};

SHOAL_MODULE(.summary = "sums of nothing", .algorithm = &empty_learner);
