/* What a net computes: forwards, the loss, and backwards.  See layers.h; layers_conv.c has convolutions and pools,
 * layers_norm.c batch norms. */
#include "learn/train/layers.h"

#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "learn/train/layers_internal.h"

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static bool is_activation(train_kind kind)
{
    switch (kind) {
    case TRAIN_RELU:
    case TRAIN_RELU6:
    case TRAIN_TANH:
    case TRAIN_LOGISTIC:
    case TRAIN_SOFTMAX: return true;
    default: return false;
    }
}

/* Whether a layer changes what the one before gave, of which nobody needs to know how it was: activations need what
 * they gave to go back, and what is saved is added later. */
static bool is_in_place(const train_net *net, int index)
{
    const train_layer *layer = &net->layer[index];
    if (layer->kind == TRAIN_SOFTMAX)
        return true;
    if (!is_activation(layer->kind) && layer->kind != TRAIN_ADD)
        return false;
    return index > 0 && !layer[-1].saved && !is_activation(layer[-1].kind);
}

typedef struct cutting {
    char *memory; /* NULL: only counts */
    size_t used;
} cutting;

/* Memory for rows * values of four bytes each. */
static void *cut(cutting *from, int64_t rows, int64_t values)
{
    enum { ALIGNMENT = 64 };
    size_t bytes, count;
    void *out = from->memory ? from->memory + from->used : NULL;
    if (!base_multiply(&count, (size_t)rows, (size_t)values) || !base_multiply(&bytes, count, sizeof(float)) ||
        !base_add(&bytes, bytes, ALIGNMENT) || !base_add(&from->used, from->used, bytes / ALIGNMENT * ALIGNMENT))
        from->used = SIZE_MAX;
    return out;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* What the pool at `index` gives, which is computed together with its convolution. */
static float *cut_pooled(train_work *out, cutting *from, int index, int64_t filled, bool learns)
{
    const train_layer *layer = &out->net->layer[index];
    const int64_t gives = train_shape_values(&layer->out);
    out->out[index] = cut(from, filled, gives);
    out->kept[index] = learns ? cut(from, filled, gives) : NULL;
    out->branch[index] = learns && layer->saved ? cut(from, filled, gives) : NULL;
    return out->out[index];
}

void train_work_cut(train_work *out, const train_net *net, int64_t rows, bool learns, void *memory)
{
    const int64_t filled = (rows + KERNEL_BLOCK - 1) / KERNEL_BLOCK * KERNEL_BLOCK;
    cutting from = {.memory = memory};
    int64_t values = train_shape_values(&net->in), border = 0, weights = 0, maps = 0, lists = 0, listed = 0;
    *out = (train_work){.net = net};
    out->input = cut(&from, rows, values);
    out->maps = net->in.flat ? NULL : cut(&from, filled, values);
    float *last = net->in.flat ? out->input : out->maps;
    for (int i = 0; i < net->layers; i++) {
        const train_layer *layer = &net->layer[i];
        const int64_t gives = train_shape_values(&layer->out);
        const bool back = learns && i >= net->frozen;
        kernel_pooled pooled;
        const int joined = train_pooled_of(&pooled, net, i);
        if (!back) /* slopes go through later layers alone */
            values = listed = 0;
        if (joined) {
            out->joined[i] = out->joined[i + joined - 1] = joined;
            last = cut_pooled(out, &from, i + joined - 1, filled, back);
            border = larger(border, train_conv_border(layer));
            weights = larger(weights, back ? kernel_pooled_workspace(&pooled.conv) : 0);
            weights = larger(weights, kernel_conv_workspace(&pooled.conv));
            i += joined - 1;
            listed = larger(listed, train_shape_values(&net->layer[i].out));
            values = larger(values, listed);
            continue;
        }
        last = out->out[i] = is_in_place(net, i) ? last : cut(&from, layer->out.flat ? rows : filled, gives);
        if (layer->kind == TRAIN_POOL_MAX && back)
            out->chosen[i] = cut(&from, filled, gives);
        values = larger(values, gives);
        if (layer->kind == TRAIN_NORM) {
            maps = larger(maps, layer->outputs);
            lists = layer->in.flat ? larger(lists, gives) : lists;
            out->moments[i] = cut(&from, 4, layer->outputs); /* two doubles */
        }
        if (layer->saved && back)
            out->branch[i] = cut(&from, layer->out.flat ? rows : filled, gives);
        if (layer->kind == TRAIN_CONV) {
            border = larger(border, train_conv_border(layer));
            weights = larger(weights, train_conv_workspace(layer));
        }
    }
    out->exps = cut(&from, 1, net->classes);
    out->border = cut(&from, 1, border);
    out->weights = cut(&from, 1, weights);
    out->sums = cut(&from, 4, maps);
    out->factors = cut(&from, 3, maps);
    out->blocks = cut(&from, filled, lists);
    if (learns) {
        out->slope = cut(&from, filled, values);
        out->other = cut(&from, filled, values);
        out->slopes = cut(&from, filled, lists);
        out->gradient = cut(&from, 1, train_net_values(net));
        out->listed = cut(&from, KERNEL_BLOCK, listed);
    }
    out->bytes = from.used;
}

static void transpose(float *restrict out, const float *restrict values, int64_t rows, int64_t columns)
{
    enum { TILE = 16 };
    for (int64_t r = 0; r < rows; r += TILE)
        for (int64_t c = 0; c < columns; c += TILE)
            for (int64_t j = c; j < c + TILE && j < columns; j++)
                for (int64_t i = r; i < r + TILE && i < rows; i++)
                    out[j * rows + i] = values[i * columns + j];
}

void train_turn(float *out, const train_net *net, const float *parameters)
{
    for (int i = 0; i < net->layers; i++) {
        const train_layer *layer = &net->layer[i];
        if (layer->outputs > 0)
            transpose(out + layer->first, parameters + layer->first, layer->depth, layer->outputs);
    }
}

/* ---- dense layers ------------------------------------------------------------------------------------------------ */

/* out[row][j] begins with bias j; then the inputs in order. */
static void run_dense(float *out, const float *in, const train_layer *layer, const train_with *with, int64_t rows)
{
    const float *weights = with->parameters + layer->first, *bias = weights + train_layer_weights(layer);
    const int64_t units = layer->outputs, depth = layer->depth;
    for (int64_t i = 0; i < rows; i++)
        memcpy(out + i * units, bias, (size_t)units * sizeof *out);
    with->kernel->dense32.product(out, units, in, depth, 1, weights, units, rows, units, depth);
}

/* The gradient of a weight adds up the rows in order; a derivative by an input adds up the outputs in order. */
static void run_dense_back(float *in_slope, float *gradient, const float *slope, const float *in,
                           const train_layer *layer, const train_with *with, int64_t rows)
{
    const kernel_dense32 *dense = &with->kernel->dense32;
    const int64_t units = layer->outputs, depth = layer->depth;
    float *weights = gradient + layer->first;
    dense->product(weights, units, in, 1, depth, slope, units, depth, units, rows);
    dense->add_rows(weights + train_layer_weights(layer), slope, units, rows, units);
    if (!in_slope)
        return;
    memset(in_slope, 0, (size_t)(rows * depth) * sizeof *in_slope);
    dense->product(in_slope, depth, slope, units, 1, with->turned + layer->first, depth, rows, depth, units);
}

/* ---- activations and dropout ------------------------------------------------------------------------------------- */

static kernel_activation activation_of(train_kind kind)
{
    return kind == TRAIN_TANH ? KERNEL_TANH : KERNEL_LOGISTIC;
}

static float most_of(train_kind kind)
{
    return kind == TRAIN_RELU6 ? 6 : __builtin_inff();
}

void train_activate(float *out, const float *in, train_kind kind, const kernel_set *kernel, int64_t count)
{
    if (kind == TRAIN_RELU || kind == TRAIN_RELU6) {
        kernel->convolution.clip(out, in, most_of(kind), count);
        return;
    }
    if (in != out)
        memcpy(out, in, (size_t)count * sizeof *out);
    kernel->dense32.activate(out, activation_of(kind), count);
}

void train_activate_back(float *slope, float *spare, const float *gave, train_kind kind, const kernel_set *kernel,
                         int64_t count)
{
    if (kind == TRAIN_RELU || kind == TRAIN_RELU6) {
        kernel->convolution.clip_back(slope, gave, most_of(kind), count);
        return;
    }
    kernel->dense32.slope(spare, gave, activation_of(kind), count);
    kernel->dense32.multiply(slope, spare, count);
}

/* Four values a draw: value j of a row is dropped if its 32 bits are below the share.  The values of a row lie `step`
 * apart. */
static void drop_row(float *out, const float *in, const train_layer *layer, int64_t step, uint64_t key, int64_t row)
{
    const uint64_t below = (uint64_t)(layer->dropped * 0x1p32);
    const float scale = (float)(1 / (1 - layer->dropped));
    const int64_t values = train_shape_values(&layer->out);
    for (int64_t j = 0; j < values; j += 4) {
        uint32_t bits[4];
        base_random(bits, key, BASE_FOR_DROPOUT, (uint64_t)row, (uint32_t)(j / 4));
        for (int64_t k = 0; k < 4 && j + k < values; k++)
            out[(j + k) * step] = bits[k] < below ? 0 : in[(j + k) * step] * scale;
    }
}

static void run_dropout(float *out, const float *in, const train_layer *layer, int64_t rows, int index,
                        const train_drop *drop)
{
    const uint64_t key = base_random_u64(drop->seed, BASE_FOR_DROPOUT, (uint64_t)drop->step, (uint32_t)index);
    const int64_t values = train_shape_values(&layer->out), all = train_values_of(&layer->out, rows);
    if (!layer->out.flat && out != in) /* the rows that fill up the last block */
        memcpy(out + all - values * KERNEL_BLOCK, in + all - values * KERNEL_BLOCK,
               (size_t)(values * KERNEL_BLOCK) * sizeof *in);
    for (int64_t i = 0; i < rows; i++) {
        const int64_t block = i / KERNEL_BLOCK * KERNEL_BLOCK;
        const int64_t at = layer->out.flat ? i * values : block * values + i - block;
        drop_row(out + at, in + at, layer, layer->out.flat ? 1 : KERNEL_BLOCK, key, drop->row[i]);
    }
}

/* ---- what is saved and added ------------------------------------------------------------------------------------- */

/* What a layer gives; the rows are that of layer -1. */
static const float *given_by(const train_work *work, int index)
{
    return index >= 0 ? work->out[index] : work->net->in.flat ? work->input : work->maps;
}

/* `out` may be one of both. */
static void run_add(float *out, const float *a, const float *b, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        out[i] = a[i] + b[i];
}

/* ---- forwards ---------------------------------------------------------------------------------------------------- */

static void flatten(float *out, const float *in, const train_layer *layer, const kernel_set *kernel, int64_t rows)
{
    const int64_t values = train_shape_values(&layer->in);
    if (layer->in.flat)
        memcpy(out, in, (size_t)(values * rows) * sizeof *in);
    else
        train_to_lists(out, in, values, kernel, rows);
}

static void flatten_back(float *in_slope, const float *slope, const train_layer *layer, const kernel_set *kernel,
                         int64_t rows)
{
    const int64_t values = train_shape_values(&layer->in);
    if (layer->in.flat)
        memcpy(in_slope, slope, (size_t)(values * rows) * sizeof *slope);
    else
        train_to_blocks(in_slope, slope, values, kernel, rows);
}

void train_forwards_part(train_work *work, const train_with *with, int first, int end, int64_t rows,
                         const train_drop *drop)
{
    const train_net *net = work->net;
    if (!net->in.flat && first == 0)
        train_to_blocks(work->maps, work->input, train_shape_values(&net->in), with->kernel, rows);
    for (int i = first; i < end; i++) {
        const train_layer *layer = &net->layer[i];
        const float *in = given_by(work, i - 1);
        const int64_t gives = train_values_of(&layer->out, rows);
        kernel_pooled pooled;
        const int joined = train_pooled_of(&pooled, net, i);
        if (joined) {
            i += joined - 1;
            train_pooled(work->out[i], work->kept[i], in, layer, &pooled, with, rows, work);
            continue;
        }
        switch (layer->kind) {
        case TRAIN_CONV: train_conv(work->out[i], in, layer, with, rows, work); break;
        case TRAIN_POOL_MAX:
        case TRAIN_POOL_AVERAGE: train_pool(work->out[i], work->chosen[i], in, layer, with->kernel, rows); break;
        case TRAIN_DENSE: run_dense(work->out[i], in, layer, with, rows); break;
        case TRAIN_DROPOUT:
            if (drop && i >= net->frozen)
                run_dropout(work->out[i], in, layer, rows, i, drop);
            else
                memcpy(work->out[i], in, (size_t)gives * sizeof *in);
            break;
        case TRAIN_RELU:
        case TRAIN_RELU6:
        case TRAIN_TANH:
        case TRAIN_LOGISTIC: train_activate(work->out[i], in, layer->kind, with->kernel, gives); break;
        case TRAIN_NORM:
            (drop && i >= net->frozen ? train_norm : train_norm_fixed)(work, in, i, with, rows);
            i += train_norm_joins(net, i);
            break;
        case TRAIN_ADD: run_add(work->out[i], in, given_by(work, layer->source), gives); break;
        case TRAIN_FLATTEN: flatten(work->out[i], in, layer, with->kernel, rows); break;
        case TRAIN_SOFTMAX: break;
        }
    }
}

/* ---- the softmax ------------------------------------------------------------------------------------------------- */

/* The exponentials of a row less its greatest value, their sum, added in order in float64, and which is greatest: the
 * first of equals. */
static double run_softmax(float *exps, int32_t *most, const float *z, int64_t classes, const kernel_dense32 *dense)
{
    double sum = 0;
    *most = 0;
    for (int64_t j = 1; j < classes; j++)
        if (z[j] > z[*most])
            *most = (int32_t)j;
    for (int64_t j = 0; j < classes; j++)
        exps[j] = z[j] - z[*most];
    dense->exp(exps, classes);
    for (int64_t j = 0; j < classes; j++)
        sum += (double)exps[j];
    return sum;
}

void train_loss(double *loss, int64_t *right, train_work *work, const kernel_set *kernel, const int32_t *class,
                int64_t rows)
{
    const int64_t classes = work->net->classes;
    float *z = work->out[work->net->layers - 1];
    *loss = 0;
    *right = 0;
    for (int64_t i = 0; i < rows; i++, z += classes) {
        int32_t most;
        const double sum = run_softmax(work->exps, &most, z, classes, &kernel->dense32);
        *loss += kernel_log(sum) + ((double)z[most] - (double)z[class[i]]);
        *right += most == class[i];
        for (int64_t j = 0; j < classes; j++)
            z[j] = (float)((double)work->exps[j] / sum) - (j == class[i] ? 1 : 0);
    }
}

void train_decide(int32_t *most, double *probabilities, train_work *work, const kernel_set *kernel, int64_t rows)
{
    const int64_t classes = work->net->classes;
    const float *z = work->out[work->net->layers - 1];
    for (int64_t i = 0; i < rows; i++, z += classes) {
        const double sum = run_softmax(work->exps, &most[i], z, classes, &kernel->dense32);
        for (int64_t j = 0; probabilities && j < classes; j++)
            probabilities[i * classes + j] = (double)work->exps[j] / sum;
    }
}

/* ---- backwards --------------------------------------------------------------------------------------------------- */

static void swap_slopes(train_work *work)
{
    float *other = work->other;
    work->other = work->slope;
    work->slope = other;
}

/* The derivatives by what the layer gave lie in work->slope, and those by what it sees come there. */
static void run_back(train_work *work, const train_with *with, int index, int64_t rows, bool needs_inputs,
                     const train_drop *drop)
{
    const train_layer *layer = &work->net->layer[index];
    const float *in = given_by(work, index - 1);
    const int64_t gives = train_values_of(&layer->out, rows);
    switch (layer->kind) {
    case TRAIN_CONV:
        train_conv_back(needs_inputs ? work->other : NULL, work, work->slope, in, layer, with, rows);
        swap_slopes(work);
        break;
    case TRAIN_POOL_MAX:
    case TRAIN_POOL_AVERAGE:
        train_pool_back(work->other, work->slope, work->chosen[index], layer, with->kernel, rows);
        swap_slopes(work);
        break;
    case TRAIN_DENSE:
        run_dense_back(needs_inputs ? work->other : NULL, work->gradient, work->slope, in, layer, with, rows);
        swap_slopes(work);
        break;
    case TRAIN_DROPOUT: run_dropout(work->slope, work->slope, layer, rows, index, drop); break;
    case TRAIN_RELU:
    case TRAIN_RELU6:
    case TRAIN_TANH:
    case TRAIN_LOGISTIC:
        train_activate_back(work->slope, work->other, work->out[index], layer->kind, with->kernel, gives);
        break;
    case TRAIN_NORM: train_norm_back(work, in, index, with, rows, needs_inputs); break;
    case TRAIN_ADD:
        if (layer->source >= work->net->frozen)
            run_add(work->branch[layer->source], work->branch[layer->source], work->slope, gives);
        break;
    case TRAIN_FLATTEN:
        flatten_back(work->other, work->slope, layer, with->kernel, rows);
        swap_slopes(work);
        break;
    case TRAIN_SOFTMAX: break;
    }
}

/* Brings slopes of maps into lists, or into blocks, if they are not. */
static void want_slopes(train_work *work, const train_shape *shape, const kernel_set *kernel, int64_t rows, bool lists)
{
    if (shape->flat || work->slopes_listed == lists)
        return;
    (lists ? train_to_lists : train_to_blocks)(work->other, work->slope, train_shape_values(shape), kernel, rows);
    swap_slopes(work);
    work->slopes_listed = lists;
}

void train_backwards(train_work *work, const train_with *with, int64_t rows, const train_drop *drop)
{
    const train_net *net = work->net;
    int first = net->frozen;
    while (net->layer[first].outputs == 0)
        first++;
    work->slopes_listed = false;
    memcpy(work->slope, work->out[net->layers - 1], (size_t)(rows * net->classes) * sizeof *work->slope);
    for (int i = net->frozen; i < net->layers; i++)
        if (net->layer[i].saved)
            memset(work->branch[i], 0, (size_t)train_values_of(&net->layer[i].out, rows) * sizeof(float));
    for (int i = net->layers - 1; i >= first; i--) {
        const train_layer *layer = &net->layer[i];
        const int joined = work->joined[i];
        if (layer->saved) {
            want_slopes(work, &layer->out, with->kernel, rows, false);
            run_add(work->slope, work->slope, work->branch[i], train_values_of(&layer->out, rows));
        }
        want_slopes(work, &layer->out, with->kernel, rows, joined > 0);
        if (joined) {
            kernel_pooled pooled;
            const float *kept = work->kept[i];
            i -= joined - 1;
            train_pooled_of(&pooled, net, i);
            train_pooled_back(i > first ? work->other : NULL, work, work->slope, kept, given_by(work, i - 1),
                              &net->layer[i], &pooled, with, rows);
            swap_slopes(work);
        } else if (layer->kind == TRAIN_FLATTEN && i > 0 && work->joined[i - 1] > 0) {
            work->slopes_listed = true;                           /* as they are */
        } else if (i == first || !train_norm_joins(net, i - 1)) { /* which goes back through both */
            run_back(work, with, i, rows, i > first, drop);
        }
    }
}
