/* Least squares by stochastic gradient descent, as a learner by the whole contract (shoal/learn.h); the last column is
 * the target: shoal run least_squares.c data.npy --params '{"rate": 0.01, "batch": 32, "epochs": 50}' */
#include <math.h>
#include <string.h>
#include <shoal/module.h>

typedef struct model { /* all that maps see: plain bytes, which travel */
    double rate;
    int64_t batch, epochs; /* up to here options write */
    int64_t step, steps;   /* done so far; of an epoch */
    double weight[];       /* one for each column but the last, then the intercept */
} model;

static const shoal_option options[] = {
    {"rate", 0, SHOAL_OPTION_REAL, offsetof(model, rate), "RATE", "length of a step", "0.01"},
    {"batch", 0, SHOAL_OPTION_COUNT, offsetof(model, batch), "ROWS", "rows that a step sees", "32", 1, 1e9},
    {"epochs", 0, SHOAL_OPTION_COUNT, offsetof(model, epochs), "N", "how often all rows are seen", "50", 1, 1e9},
    {0}};

static int strata(const void *config, shoal_shape *shape)
{
    shape->strata = 16;
    return SHOAL_OK;
}

/* What a round adds up, and which rows it sees. */
static shoal_layout layout_of(const model *at, const shoal_shape *shape)
{
    const shoal_cell gradient = {.name = "gradient", .kind = SHOAL_CELL_SUM, .count = shape->columns};
    const int64_t epoch = at->step / at->steps, from = at->step % at->steps * at->batch;
    const shoal_pick pick = {shoal_epoch_key(0, epoch), from, at->batch, .group = 32};
    return (shoal_layout){.cells = 1, .cell = {gradient}, .carry_from = -1, .pick = pick};
}

static int start(shoal_round **out, const void *config, const shoal_shape *shape)
{
    if (shape->type != SHOAL_FLOAT64)
        return shoal_fail(SHOAL_INVALID, "this example takes float64 alone");
    if (shoal_round_new(out, sizeof(model) + (size_t)shape->columns * sizeof(double)) < 0)
        return SHOAL_MEMORY;
    model *at = (*out)->model;
    *at = *(const model *)config;
    if (at->batch > shape->rows) /* then each batch is all rows */
        at->batch = shape->rows;
    at->steps = (shape->rows + at->batch - 1) / at->batch;
    (*out)->layout = layout_of(at, shape);
    return SHOAL_OK;
}

/* Rounds may come from elsewhere: nothing in one may lead beyond memory, or divide by 0. */
static int check(const shoal_algorithm *self, const shoal_round *round, const shoal_shape *shape)
{
    const model *at = round->model;
    bool good = round->model_bytes == sizeof *at + (size_t)shape->columns * sizeof(double) && at->step >= 0 &&
                at->step < INT64_MAX && at->batch >= 1 && at->batch <= 1000000000 &&
                at->steps == (shape->rows + at->batch - 1) / at->batch;
    shoal_layout expected = good ? layout_of(at, shape) : round->layout;
    return good && shoal_layout_same(&round->layout, &expected)
               ? SHOAL_OK
               : shoal_fail(SHOAL_BROKEN, "%s: a round of something else", self->name);
}

/* Sums are whole numbers, of 2^-32 here, so that their order can't matter; those of a whole batch are below 2^62. */
static int map(shoal_partial *partial, const shoal_round *round, const void *prepared, const shoal_grain *grain,
               const shoal_scratch *scratch)
{
    const int64_t columns = grain->shape->columns, last = columns - 1;
    const model *at = round->model;
    const double *weight = at->weight, *x = grain->values, most = 0x1p30 / (double)at->batch;
    for (int64_t i = 0; i < grain->rows; i++, x += columns) {
        double error = weight[last] - x[last];
        for (int64_t j = 0; j < last; j++)
            error += weight[j] * x[j];
        for (int64_t j = 0; j < columns; j++) {
            double slope = error * (j < last ? x[j] : 1);
            if (!(fabs(slope) < most))
                return shoal_fail(SHOAL_INVALID, "the slope is too large: try a lower rate, or smaller batches");
            shoal_partial_values(partial, 0)[j] += (int64_t)rint(slope * 0x1p32);
        }
    }
    return SHOAL_OK;
}

static int update(shoal_round **next, shoal_result **result, const shoal_round *round, shoal_partial *merged,
                  const shoal_shape *shape, const shoal_crew *crew, bool stop)
{
    const model *before = round->model;
    const int64_t *sum = shoal_partial_values(merged, 0), columns = shape->columns;
    const double step = before->rate / (double)shoal_pick_rows(&round->layout.pick, shape);
    if (start(next, before, shape) < 0)
        return SHOAL_MEMORY;
    model *at = (*next)->model;
    at->step++;
    for (int64_t j = 0; j < columns; j++)
        at->weight[j] = before->weight[j] - step * 0x1p-32 * (double)sum[j];
    (*next)->layout = layout_of(at, shape);
    const bool goes_on = at->step / at->steps < at->epochs;
    if (goes_on && !stop)
        return SHOAL_OK;
    double *to = shoal_result_new(result) < 0 ? NULL : shoal_result_add(*result, "weights", SHOAL_FLOAT64, 1, &columns);
    if (to) {
        memcpy(to, at->weight, (size_t)columns * sizeof *to);
        (*result)->incomplete = goes_on; /* it was stopped: a checkpoint of it stays */
    }
    shoal_round_free(next);
    return to ? SHOAL_OK : SHOAL_MEMORY;
}

static const shoal_algorithm least_squares =
    SHOAL_ALGORITHM(.name = "least_squares", .summary = "least squares by stochastic gradients", .options = options,
                    .config_size = sizeof(model), .kernel_free = true, .start = start, .check = check, .strata = strata,
                    .map = map, .update = update);

SHOAL_MODULE(.algorithm = &least_squares);
