/* What one map of a net does: a group of a batch gives a gradient, rows that are held out a loss.  See
 * train_internal.h. */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "kernel/nearest_integer.h"
#include "learn/pick.h"
#include "learn/train/train_internal.h"

/* ---- what maps share --------------------------------------------------------------------------------------------- */

void train_forget(void **inout)
{
    train_prepared *self = *inout;
    if (!self)
        return;
    base_free(&self->turned);
    base_free(inout);
}

int train_prepare_net(train_prepared **inout, const char *text, const train_shape *in, int64_t frozen,
                      const float *parameters, const char *kernel)
{
    train_prepared *self = *inout;
    int status = self ? SHOAL_OK : base_alloc(&self, 1, sizeof *self, "what rounds share");
    *inout = self;
    if (status < 0)
        return status;
    if (strcmp(self->text, text) != 0 || !train_shape_same(&self->net.in, in) || self->frozen != frozen) {
        base_free(&self->turned);
        self->text[0] = '\0';
        status = train_net_parse(&self->net, text, "--net", in);
        if (status == SHOAL_OK)
            status = train_net_freeze(&self->net, frozen);
        if (status == SHOAL_OK)
            status = base_alloc(&self->turned, (size_t)self->net.parameters, sizeof *self->turned, "weights");
        if (status < 0)
            return status;
        memcpy(self->text, text, strlen(text) + 1);
        self->frozen = frozen;
    }
    status = kernel_choose(&self->with.kernel, kernel);
    if (status < 0)
        return status;
    train_turn(self->turned, &self->net, parameters);
    self->with.net = &self->net;
    self->with.parameters = parameters;
    self->with.turned = self->turned;
    return SHOAL_OK;
}

int train_prepare(void **prepared, const shoal_round *round, const shoal_shape *shape, const shoal_crew *crew)
{
    const train_model *model = round->model;
    const train_shape in = train_shape_of(&model->set);
    (void)shape;
    if (model->phase == TRAIN_SCAN)
        return SHOAL_OK;
    return train_prepare_net((train_prepared **)prepared, model->text, &in, model->set.frozen, train_parameters(model),
                             crew->kernel);
}

static int64_t rows_at_once(const shoal_round *round, const shoal_shape *shape)
{
    const int64_t most =
        round->layout.pick.count ? learn_pick_group_rows(&round->layout.pick, shape) : TRAIN_ROWS_AT_ONCE;
    return most < shape->rows ? most : shape->rows;
}

size_t train_scratch(const shoal_round *round, const void *prepared, const shoal_shape *shape)
{
    enum { ALIGNMENT = 64 };
    const train_prepared *shared = prepared;
    const train_model *model = round->model;
    const int64_t rows = rows_at_once(round, shape);
    train_work work;
    size_t bytes;
    if (model->phase == TRAIN_SCAN)
        return learn_scan_scratch();
    train_work_cut(&work, &shared->net, rows, model->phase == TRAIN_RUN, NULL);
    const size_t row = (size_t)shape->columns * sizeof(float) + ALIGNMENT, class = (size_t)rows * sizeof(int32_t);
    return base_add(&bytes, work.bytes, row + class + ALIGNMENT) ? bytes : SIZE_MAX;
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

void train_take_row(float *out, float *spare, const train_settings *set, const shoal_grain *grain, int64_t row,
                    const kernel_dense32 *dense)
{
    const shoal_type type = grain->shape->type;
    const int64_t columns = grain->shape->columns, values = set->channels * set->height * set->width;
    const int64_t before = set->target < values ? set->target : values; /* none is left out where all are values */
    const size_t size = shoal_type_size(type);
    const char *from = (const char *)grain->values + (size_t)(row * columns) * size;
    const bool mixed = set->channels > 1 && !set->flat;
    const float scale = (float)set->scale, shift = (float)set->shift;
    float *to = mixed ? spare : out;
    dense->convert(to, from, type, scale, shift, before);
    if (before < values)
        dense->convert(to + before, from + (size_t)(before + 1) * size, type, scale, shift, values - before);
    if (!mixed)
        return;
    const int64_t places = set->height * set->width;
    for (int64_t c = 0; c < set->channels; c++)
        for (int64_t i = 0; i < places; i++)
            out[c * places + i] = spare[i * set->channels + c];
}

/* Where a map has its memory. */
typedef struct mapping {
    train_work work;
    int32_t *class;
    float *row;
} mapping;

static mapping cut_mapping(const train_prepared *shared, int64_t rows, bool learns, const shoal_grain *grain,
                           const shoal_scratch *scratch)
{
    enum { ALIGNMENT = 64 };
    mapping self;
    char *memory = scratch->memory;
    self.row = (float *)memory;
    memory += ((size_t)grain->shape->columns * sizeof(float) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    self.class = (int32_t *)memory;
    memory += ((size_t)rows * sizeof(int32_t) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    train_work_cut(&self.work, &shared->net, rows, learns, memory);
    return self;
}

static void take_images(mapping *self, const train_model *model, const train_prepared *shared, const shoal_grain *grain,
                        int64_t first, int64_t rows)
{
    const int64_t values = train_shape_values(&shared->net.in);
    for (int64_t i = 0; i < rows; i++)
        train_take_row(self->work.input + i * values, self->row, &model->set, grain, first + i,
                       &shared->with.kernel->dense32);
}

/* Between the memo, where what a row gives is a list, and the layer that gives it. */
static void to_memo(float *memo, const mapping *self, const train_prepared *shared, int64_t rows)
{
    const train_net *net = &shared->net;
    const train_shape *shape = &net->layer[net->remembered - 1].out;
    const float *gives = self->work.out[net->remembered - 1];
    if (shape->flat)
        memcpy(memo, gives, (size_t)(rows * shape->channels) * sizeof *memo);
    else
        train_to_lists(memo, gives, train_shape_values(shape), shared->with.kernel, rows);
}

static void from_memo(mapping *self, const float *memo, const train_prepared *shared, int64_t rows)
{
    const train_net *net = &shared->net;
    const train_shape *shape = &net->layer[net->remembered - 1].out;
    float *gives = self->work.out[net->remembered - 1];
    if (shape->flat)
        memcpy(gives, memo, (size_t)(rows * shape->channels) * sizeof *memo);
    else
        train_to_blocks(gives, memo, train_shape_values(shape), shared->with.kernel, rows);
}

/* Takes rows, or what the first layers have given of them in an earlier round; returns the layer that is next. */
static int take_rows(mapping *self, const train_model *model, const train_prepared *shared, const shoal_grain *grain,
                     int64_t first, int64_t rows, int64_t *counters)
{
    const int64_t remembered = train_memo_values(&model->set, &shared->net);
    learn_classes_find(self->class, model->label, model->classes, grain, first, rows, model->set.target);
    if (remembered > 0 && grain->carried && grain->memo) {
        from_memo(self, (const float *)grain->memo + first * remembered, shared, rows);
        counters[TRAIN_REMEMBERED] += rows;
        return shared->net.remembered;
    }
    take_images(self, model, shared, grain, first, rows);
    counters[TRAIN_COMPUTED] += shared->net.frozen > 0 ? rows : 0;
    return 0;
}

static void augment_rows(mapping *self, const train_model *model, const train_prepared *shared,
                         const shoal_grain *grain)
{
    const train_augment *how = &model->set.augment;
    const train_shape *in = &shared->net.in;
    if (!how->flip && !how->crop && !how->shift)
        return;
    const int64_t epoch = model->step / train_steps_of_epoch(model, grain->shape);
    for (int64_t i = 0; i < grain->rows; i++)
        train_augment_row(self->work.input + i * train_shape_values(in), self->row, how, in, (float)model->set.shift,
                          (uint64_t)model->set.seed, epoch, grain->row[i]);
}

/* ---- sums -------------------------------------------------------------------------------------------------------- */

/* A greater loss is as good as none: the gradient says so too. */
static void add_measures(shoal_partial *partial, double loss, int64_t right, double unit)
{
    int64_t *sum = shoal_partial_values(partial, TRAIN_CELL_MEASURES);
    const double counted = loss < TRAIN_LOSS_MOST ? loss : TRAIN_LOSS_MOST; /* also where it is not a number */
    sum[TRAIN_LOSS] = base_add_wrapping(sum[TRAIN_LOSS], nearest_integer(counted / unit));
    sum[TRAIN_RIGHT] += right;
}

/* Rounds each layer's gradient and running averages to their unit, once.  Those that do not fit are only told, and the
 * round is repeated. */
static void add_gradient(shoal_partial *partial, const train_model *model, const train_prepared *shared,
                         const float *gradient, int bits)
{
    const kernel_dense32 *dense = &shared->with.kernel->dense32;
    int64_t *sum = shoal_partial_values(partial, TRAIN_CELL_GRADIENT);
    int64_t *greatest = shoal_partial_values(partial, TRAIN_CELL_GREATEST);
    const int layers = shared->net.layers - shared->net.frozen;
    for (int i = 0; i < 2 * layers; i++) {
        const int which = i < layers ? TRAIN_OF_GRADIENT : TRAIN_OF_RUNNING, layer = shared->net.frozen + i % layers;
        const train_part part = train_part_of(&shared->net, layer, which);
        if (part.count == 0)
            continue;
        const double most = dense->greatest(gradient + part.first, part.count);
        const double inverse = ldexp(1, (int)-model->unit[which][layer]);
        shoal_max_raise(greatest, i, most);
        if (most * inverse < ldexp(1, 62 - bits))
            dense->quantise(sum + part.at, gradient + part.first, inverse, part.count);
    }
}

static void map_batch(shoal_partial *partial, const shoal_round *round, const train_prepared *shared,
                      const shoal_grain *grain, const shoal_scratch *scratch)
{
    const train_model *model = round->model;
    const train_drop drop = {.seed = (uint64_t)model->set.seed, .step = model->step, .row = grain->row};
    mapping self = cut_mapping(shared, rows_at_once(round, grain->shape), true, grain, scratch);
    double loss;
    int64_t right;
    if (grain->rows < train_group_least(&shared->net))
        return;
    const int first = take_rows(&self, model, shared, grain, 0, grain->rows, scratch->counters),
              end = shared->net.layers;
    augment_rows(&self, model, shared, grain);
    memset(self.work.gradient + shared->net.fixed, 0,
           (size_t)(train_net_values(&shared->net) - shared->net.fixed) * sizeof(float));
    train_forwards_part(&self.work, &shared->with, first, end, grain->rows, &drop);
    train_loss(&loss, &right, &self.work, shared->with.kernel, self.class, grain->rows);
    train_backwards(&self.work, &shared->with, grain->rows, &drop);
    add_measures(partial, loss, right, train_loss_unit(&round->layout, grain->shape));
    add_gradient(partial, model, shared, self.work.gradient, train_sum_bits(&round->layout, grain->shape));
}

static void map_held(shoal_partial *partial, const shoal_round *round, const train_prepared *shared,
                     const shoal_grain *grain, const shoal_scratch *scratch)
{
    const int64_t most = rows_at_once(round, grain->shape);
    const double unit = train_loss_unit(&round->layout, grain->shape);
    mapping self = cut_mapping(shared, most, false, grain, scratch);
    for (int64_t first = 0; first < grain->rows; first += most) {
        const int64_t left = grain->rows - first, rows = left < most ? left : most;
        double loss;
        int64_t right;
        const int layer = take_rows(&self, round->model, shared, grain, first, rows, scratch->counters);
        train_forwards_part(&self.work, &shared->with, layer, shared->net.layers, rows, NULL);
        train_loss(&loss, &right, &self.work, shared->with.kernel, self.class, rows);
        add_measures(partial, loss, right, unit);
    }
}

/* Writes what frozen layers give into the memo, unless it is there, or there is none. */
static void map_remember(shoal_partial *partial, const shoal_round *round, const train_prepared *shared,
                         const shoal_grain *grain, const shoal_scratch *scratch)
{
    const train_model *model = round->model;
    const int64_t most = rows_at_once(round, grain->shape), values = train_memo_values(&model->set, &shared->net);
    mapping self = cut_mapping(shared, most, false, grain, scratch);
    (void)partial;
    for (int64_t first = 0; first < grain->rows && !grain->carried && grain->memo; first += most) {
        const int64_t left = grain->rows - first, rows = left < most ? left : most;
        take_images(&self, model, shared, grain, first, rows);
        scratch->counters[TRAIN_COMPUTED] += rows;
        train_forwards_part(&self.work, &shared->with, 0, shared->net.remembered, rows, NULL);
        to_memo((float *)grain->memo + first * values, &self, shared, rows);
    }
}

int train_map(shoal_partial *partial, const shoal_round *round, const void *prepared, const shoal_grain *grain,
              const shoal_scratch *scratch)
{
    const train_model *model = round->model;
    bool finite;
    if (model->phase == TRAIN_SCAN) {
        train_spread_map(partial, grain, model->set.target);
        return learn_scan(&finite, partial, grain, model->set.target, scratch);
    }
    (model->phase == TRAIN_RUN        ? map_batch
     : model->phase == TRAIN_VALIDATE ? map_held
                                      : map_remember)(partial, round, prepared, grain, scratch);
    return SHOAL_OK;
}
