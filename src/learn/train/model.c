/* What the rounds of a net hold, their layouts, and whether a round from elsewhere can be one.  See
 * train_internal.h. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "learn/check.h"
#include "learn/pick.h"
#include "learn/train/train_internal.h"

train_shape train_shape_of(const train_settings *set)
{
    return (train_shape){.channels = set->channels, .height = set->height, .width = set->width, .flat = set->flat != 0};
}

int train_model_net(train_net *out, const train_model *model)
{
    const train_shape in = train_shape_of(&model->set);
    int status = train_net_parse(out, model->text, "--net", &in);
    return status == SHOAL_OK ? train_net_freeze(out, model->set.frozen) : status;
}

size_t train_model_bytes(const train_net *net)
{
    return sizeof(train_model) + (size_t)train_net_values(net) * sizeof(float);
}

size_t train_weights_bytes(const train_net *net)
{
    return train_model_bytes(net) - sizeof(train_model);
}

int64_t train_steps_of_epoch(const train_model *model, const shoal_shape *shape)
{
    const int64_t rows = shape->rows - shape->held;
    return (rows + model->set.batch - 1) / model->set.batch;
}

train_part train_part_of(const train_net *net, int index, int which)
{
    const train_layer *layer = &net->layer[index];
    const int64_t first = net->parameters + layer->running;
    if (index < net->frozen)
        return (train_part){0};
    if (which == TRAIN_OF_GRADIENT)
        return (train_part){layer->first, layer->first - net->fixed, train_layer_parameters(layer)};
    return (train_part){first, first - net->fixed - net->fixed_running,
                        layer->kind == TRAIN_NORM ? 2 * layer->outputs : 0};
}

int64_t train_group_least(const train_net *net)
{
    return train_net_averages(net) > 0 ? 2 : 1;
}

int64_t train_rows_of_batch(const shoal_pick *pick, const train_net *net, const shoal_shape *shape)
{
    int64_t rows = shoal_pick_rows(pick, shape);
    for (int64_t i = 0; train_net_averages(net) > 0 && i < shape->strata; i++) {
        const learn_stratum of = learn_stratum_at(shape, i);
        const int64_t left = learn_pick_places(pick, shape, &of).count % pick->group;
        rows -= left < train_group_least(net) ? left : 0;
    }
    return rows;
}

static int bits_of(double count)
{
    int bits = 0;
    while (bits < 60 && ldexp(1, bits) < count)
        bits++;
    return bits;
}

int train_sum_bits(const shoal_layout *layout, const shoal_shape *shape)
{
    return bits_of((double)learn_pick_groups(&layout->pick, shape) * (double)shape->strata);
}

/* 2^bits sums of up to TRAIN_LOSS_MOST, 2^20, are at most 2^62 of these. */
double train_loss_unit(const shoal_layout *layout, const shoal_shape *shape)
{
    enum { MEASURED = 10, UNIT = -32 };
    const double held = (double)(shape->held / TRAIN_ROWS_AT_ONCE) + (double)shape->grains;
    const int bits = layout->pick.count > 0 ? train_sum_bits(layout, shape) : bits_of(held);
    return ldexp(1, UNIT + (bits > MEASURED ? bits - MEASURED : 0));
}

int64_t train_memo_values(const train_settings *set, const train_net *net)
{
    const train_augment *how = &set->augment;
    if (net->remembered == 0 || set->epochs < 2 || how->flip || how->crop || how->shift)
        return 0;
    return train_shape_values(&net->layer[net->remembered - 1].out);
}

void train_layout(shoal_layout *layout, const train_model *model, const train_net *net, const shoal_shape *shape)
{
    *layout = (shoal_layout){.carry_from = -1};
    if (model->phase == TRAIN_SCAN) {
        learn_scan_layout(layout);
        train_spread_layout(layout);
        return;
    }
    layout->memo_row_bytes = (size_t)train_memo_values(&model->set, net) * sizeof(float);
    layout->carry_from = model->filled > 0 ? model->filled : -1;
    layout->writes_memo = model->phase == TRAIN_REMEMBER;
    layout->cells = 1;
    layout->cell[TRAIN_CELL_MEASURES] = (shoal_cell){"measures", SHOAL_CELL_SUM, TRAIN_MEASURES, 0, false};
    if (model->phase == TRAIN_VALIDATE)
        layout->part = SHOAL_HELD;
    if (model->phase != TRAIN_RUN)
        return;
    const int64_t steps = train_steps_of_epoch(model, shape), batch = model->set.batch;
    layout->cell[TRAIN_CELL_GRADIENT] = (shoal_cell){"gradient", SHOAL_CELL_SUM, train_net_added(net), 0, false};
    layout->cell[TRAIN_CELL_GREATEST] = (shoal_cell){
        "greatest", SHOAL_CELL_MAX, (train_net_averages(net) > 0 ? 2 : 1) * (net->layers - net->frozen), 0, false};
    layout->cells = 3;
    layout->pick = (shoal_pick){.key = shoal_epoch_key((uint64_t)model->set.seed, model->step / steps),
                                .from = model->step % steps * batch,
                                .count = batch,
                                .group = model->set.group};
}

int64_t train_ended(const train_model *model, const shoal_shape *shape)
{
    return model->step / train_steps_of_epoch(model, shape) - (model->phase == TRAIN_VALIDATE);
}

train_kept train_kept_of(const train_model *model, const train_net *net, int64_t ended)
{
    train_kept out = {.moments = train_moments(model->set.optimiser)};
    const size_t word = sizeof(double);
    out.history = ((size_t)(out.moments * train_net_learns(net)) * sizeof(float) + word - 1) / word * word;
    out.bytes = out.weights = out.history + (size_t)(ended * TRAIN_EPOCH_VALUES) * word;
    out.whole = out.weights + train_weights_bytes(net);
    return out;
}

/* ---- rounds from elsewhere --------------------------------------------------------------------------------------- */

static bool is_count(int64_t value, int64_t least, int64_t most)
{
    return value >= least && value <= most;
}

static bool good_settings(const train_settings *set, const shoal_shape *shape)
{
    const bool counts = set->columns == shape->columns && is_count(set->target, 0, set->columns - 1) &&
                        is_count(set->channels, 1, TRAIN_VALUES_MOST) && is_count(set->height, 1, TRAIN_SIDE_MOST) &&
                        is_count(set->width, 1, TRAIN_SIDE_MOST) && is_count(set->flat, 0, 1) &&
                        is_count(set->batch, 1, INT32_MAX) && is_count(set->epochs, 0, 1 << 20) &&
                        is_count(set->group, 1, 1 << 16) && is_count(set->every, 1, INT32_MAX) && set->seed >= 0 &&
                        is_count(set->optimiser, TRAIN_SGD, TRAIN_ADAMW) &&
                        is_count(set->schedule, TRAIN_CONSTANT, TRAIN_COSINE) &&
                        is_count(set->patience, 0, INT32_MAX) && is_count(set->keep, TRAIN_BEST, TRAIN_LAST) &&
                        is_count(set->frozen, 0, TRAIN_LAYERS_MOST) && is_count(set->augment.flip, 0, 1) &&
                        is_count(set->augment.crop, 0, set->height) && is_count(set->augment.crop, 0, set->width) &&
                        is_count(set->augment.shift, 0, set->height) && is_count(set->augment.shift, 0, set->width);
    return counts && isfinite(set->rate) && isfinite(set->momentum) && isfinite(set->l1) && isfinite(set->l2) &&
           isfinite(set->warm_up) && isfinite(set->decay) && isfinite(set->scale) && isfinite(set->shift);
}

static bool good_units(const train_model *model)
{
    for (int i = 0; i < TRAIN_LAYERS_MOST; i++)
        if (!is_count(model->unit[TRAIN_OF_GRADIENT][i], -300, 300) ||
            !is_count(model->unit[TRAIN_OF_RUNNING][i], -300, 300))
            return false;
    return true;
}

/* Whose weights are kept, and where they end in their block, follows from these two. */
static bool good_epochs(const train_model *model, const shoal_shape *shape)
{
    const int64_t ended = train_ended(model, shape);
    return is_count(model->best_epoch, ended > 0, ended) &&
           model->kept_epoch == (model->set.keep == TRAIN_LAST ? ended : model->best_epoch);
}

static bool good_progress(const train_model *model, const train_net *net, const shoal_shape *shape)
{
    const bool scan = model->phase == TRAIN_SCAN;
    const int64_t memo = train_memo_values(&model->set, net);
    const int64_t steps = train_steps_of_epoch(model, shape), all = steps * model->set.epochs;
    return is_count(model->phase, TRAIN_SCAN, TRAIN_VALIDATE) && is_count(model->step, 0, all) &&
           (model->phase == TRAIN_VALIDATE || scan || model->step < all) &&
           (model->phase != TRAIN_REMEMBER || (memo > 0 && model->step % steps == 0)) &&
           (memo > 0 && model->phase >= TRAIN_RUN ? model->filled > 0 : model->filled >= 0) &&
           (memo > 0 || model->filled == 0) &&
           (model->phase != TRAIN_VALIDATE || (model->step > 0 && model->step % steps == 0)) &&
           model->classes == (scan ? 0 : net->classes) && is_count(model->repeated, 0, INT64_MAX / 2) &&
           is_count(model->seen, 0, shape->rows) && good_epochs(model, shape) &&
           (scan || learn_classes_good(model->label, model->classes));
}

/* Nothing, before the first step; then a block, behind the one with the weights of an epoch if that is another. */
static bool good_kept(const shoal_round *round, const train_net *net, const shoal_shape *shape)
{
    const train_model *model = round->model;
    const train_kept kept = train_kept_of(model, net, train_ended(model, shape));
    const size_t whole = train_kept_of(model, net, model->kept_epoch).whole;
    const bool weights = model->kept_epoch > 0;
    const bool one =
        model->phase != TRAIN_VALIDATE && model->step == model->kept_epoch * train_steps_of_epoch(model, shape);
    if (model->step == 0)
        return round->keeps == 0 && !weights;
    if (!weights || one)
        return round->keeps == 1 && round->kept[0]->bytes == (weights ? whole : kept.bytes);
    return round->keeps == 2 && round->kept[0]->bytes == whole && round->kept[1]->bytes == kept.bytes;
}

static bool is_good(const shoal_round *round, const shoal_shape *shape)
{
    const train_model *model = round->model;
    shoal_layout expected;
    train_net net;
    if (round->model_bytes < sizeof *model || !good_settings(&model->set, shape) || !good_units(model) ||
        !memchr(model->text, '\0', sizeof model->text) || shape->weighted || shape->strata < 1 ||
        train_model_net(&net, model) < 0 || net.classes > LEARN_CLASSES_MOST ||
        train_shape_values(&net.in) != shape->columns - 1 || round->model_bytes != train_model_bytes(&net) ||
        !good_progress(model, &net, shape))
        return false;
    if (!good_kept(round, &net, shape))
        return false;
    train_layout(&expected, model, &net, shape);
    return shoal_layout_same(&round->layout, &expected);
}

int train_check(const shoal_algorithm *self, const shoal_round *round, const shoal_shape *shape)
{
    (void)self;
    return is_good(round, shape)
               ? SHOAL_OK
               : shoal_fail(SHOAL_BROKEN, "round %" PRId64 " is not one of a net for these rows", round->number);
}
