/* Convolutions, pools, and the two ways in which values lie: rows of lists, and blocks of maps.  See layers.h. */
#include <string.h>

#include "learn/train/layers_internal.h"

/* ---- convolutions ------------------------------------------------------------------------------------------------ */

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* What a layer sees has the border of zeros that its places reach into. */
kernel_conv train_conv_of(const train_layer *layer)
{
    const bool pool = layer->kind != TRAIN_CONV;
    const int64_t reach_down = (layer->out.height - 1) * layer->stride + layer->kernel_height;
    const int64_t reach_right = (layer->out.width - 1) * layer->stride + layer->kernel_width;
    return (kernel_conv){.channels = layer->in.channels,
                         .height = larger(layer->pad_top + layer->in.height, reach_down),
                         .width = larger(layer->pad_left + layer->in.width, reach_right),
                         .kernel_height = layer->kernel_height,
                         .kernel_width = layer->kernel_width,
                         .stride = layer->stride,
                         .outputs = pool ? layer->in.channels : layer->outputs,
                         .places_high = layer->out.height,
                         .places_wide = layer->out.width,
                         .groups = pool ? 1 : layer->groups};
}

/* Whether each map has a kernel of its own. */
static bool is_depthwise(const train_layer *layer)
{
    return layer->kind == TRAIN_CONV && layer->groups > 1 && layer->groups == layer->in.channels &&
           layer->outputs == layer->groups;
}

static int64_t square_of(const train_layer *layer)
{
    return layer->kernel_height * layer->kernel_width;
}

/* Whether each place sees the same place of all maps. */
static bool is_product(const train_layer *layer)
{
    return square_of(layer) == 1 && layer->stride == 1 && layer->groups == 1 && layer->pad_top == 0 &&
           layer->out.height == layer->in.height && layer->out.width == layer->in.width;
}

int64_t train_conv_workspace(const train_layer *layer)
{
    const kernel_conv conv = train_conv_of(layer);
    if (is_product(layer))
        return KERNEL_POINT_WORKSPACE;
    return is_depthwise(layer) ? square_of(layer) + 1 : kernel_conv_workspace(&conv);
}

int64_t train_conv_border(const train_layer *layer)
{
    const kernel_conv conv = train_conv_of(layer);
    const bool has_none = conv.height == layer->in.height && conv.width == layer->in.width;
    return has_none ? 0 : (is_depthwise(layer) ? 1 : conv.channels) * conv.height * conv.width * KERNEL_BLOCK;
}

const float *train_with_border(float *memory, const float *in, const train_layer *layer, const kernel_conv *conv)
{
    const size_t line = (size_t)(layer->in.width * KERNEL_BLOCK);
    if (train_conv_border(layer) == 0)
        return in;
    memset(memory, 0, (size_t)train_conv_border(layer) * sizeof *memory);
    for (int64_t c = 0; c < conv->channels; c++)
        for (int64_t y = 0; y < layer->in.height; y++, in += line)
            memcpy(memory + ((c * conv->height + layer->pad_top + y) * conv->width + layer->pad_left) * KERNEL_BLOCK,
                   in, line * sizeof *in);
    return memory;
}

static void take_from_border(float *out, const float *from, const train_layer *layer, const kernel_conv *conv)
{
    const size_t line = (size_t)(layer->in.width * KERNEL_BLOCK);
    for (int64_t c = 0; c < conv->channels; c++)
        for (int64_t y = 0; y < layer->in.height; y++, out += line)
            memcpy(out, from + ((c * conv->height + layer->pad_top + y) * conv->width + layer->pad_left) * KERNEL_BLOCK,
                   line * sizeof *out);
}

/* ---- depthwise: map by map, with a border around one at a time --------------------------------------------------- */

/* A convolution of one map. */
static kernel_conv one_map(const train_layer *layer)
{
    kernel_conv conv = train_conv_of(layer);
    conv.channels = conv.outputs = conv.groups = 1;
    return conv;
}

static void run_depthwise(float *out, const float *in, const train_layer *layer, const train_with *with, int64_t rows,
                          train_work *work)
{
    const int64_t sees = layer->in.height * layer->in.width * KERNEL_BLOCK;
    const int64_t gives = layer->out.height * layer->out.width * KERNEL_BLOCK;
    const float *weights = with->turned + layer->first, *bias = with->parameters + layer->first;
    const kernel_conv conv = one_map(layer);
    bias += train_layer_weights(layer);
    for (int64_t row = 0; row < rows; row += KERNEL_BLOCK)
        for (int64_t c = 0; c < layer->outputs; c++, in += sees, out += gives)
            with->kernel->convolution.map_forwards(out, train_with_border(work->border, in, layer, &conv), &conv,
                                                   weights + c * square_of(layer), bias[c]);
}

static void run_depthwise_back(float *in_slope, train_work *work, const float *slope, const float *in,
                               const train_layer *layer, const train_with *with, int64_t rows)
{
    const kernel_convolution *run = &with->kernel->convolution;
    const int64_t sees = layer->in.height * layer->in.width * KERNEL_BLOCK, square = square_of(layer);
    const int64_t gives = layer->out.height * layer->out.width * KERNEL_BLOCK, maps = layer->outputs;
    const kernel_conv conv = one_map(layer);
    const bool bordered = train_conv_border(layer) > 0;
    float *gradient = work->gradient + layer->first, *sum = work->weights;
    for (; rows > 0; rows -= KERNEL_BLOCK)
        for (int64_t c = 0; c < maps; c++, in += sees, slope += gives) {
            float *to = bordered ? work->border : in_slope;
            for (int64_t k = 0; k <= square; k++)
                sum[k] = gradient[k * maps + c];
            run->map_weights_back(sum, train_with_border(work->border, in, layer, &conv), slope, &conv,
                                  rows < KERNEL_BLOCK ? rows : KERNEL_BLOCK);
            for (int64_t k = 0; k <= square; k++)
                gradient[k * maps + c] = sum[k];
            if (!in_slope)
                continue;
            run->map_inputs_back(to, slope, &conv, with->turned + layer->first + c * square);
            if (bordered)
                take_from_border(in_slope, to, layer, &conv);
            in_slope += sees;
        }
}

/* ---- 1x1: products of matrices ----------------------------------------------------------------------------------- */

/* The chains of convolution.forwards, which are those of a product whose columns are pixels. */
static void run_product(float *out, const float *in, const train_layer *layer, const train_with *with, int64_t rows)
{
    const int64_t pixels = layer->in.height * layer->in.width * KERNEL_BLOCK;
    const int64_t outputs = layer->outputs, depth = layer->depth;
    const float *weights = with->parameters + layer->first, *bias = weights + train_layer_weights(layer);
    for (; rows > 0; rows -= KERNEL_BLOCK, in += depth * pixels, out += outputs * pixels) {
        for (int64_t o = 0; o < outputs; o++)
            for (int64_t i = 0; i < pixels; i++)
                out[o * pixels + i] = bias[o];
        with->kernel->dense32.product(out, pixels, weights, 1, outputs, in, pixels, outputs, pixels, depth);
    }
}

static void run_product_back(float *in_slope, train_work *work, const float *slope, const float *in,
                             const train_layer *layer, const train_with *with, int64_t rows)
{
    const int64_t pixels = layer->in.height * layer->in.width * KERNEL_BLOCK;
    const int64_t outputs = layer->outputs, depth = layer->depth;
    const kernel_conv conv = train_conv_of(layer);
    for (; rows > 0; rows -= KERNEL_BLOCK, in += depth * pixels, slope += outputs * pixels) {
        with->kernel->convolution.points_back(work->gradient + layer->first, in, slope, &conv,
                                              rows < KERNEL_BLOCK ? rows : KERNEL_BLOCK, work->weights);
        if (!in_slope)
            continue;
        memset(in_slope, 0, (size_t)(depth * pixels) * sizeof *in_slope);
        with->kernel->dense32.product(in_slope, pixels, with->parameters + layer->first, outputs, 1, slope, pixels,
                                      depth, pixels, outputs);
        in_slope += depth * pixels;
    }
}

/* ---- all convolutions -------------------------------------------------------------------------------------------- */

void train_conv(float *out, const float *in, const train_layer *layer, const train_with *with, int64_t rows,
                train_work *work)
{
    if (is_depthwise(layer)) {
        run_depthwise(out, in, layer, with, rows, work);
        return;
    }
    if (is_product(layer)) {
        run_product(out, in, layer, with, rows);
        return;
    }
    const int64_t sees = train_shape_values(&layer->in) * KERNEL_BLOCK;
    const int64_t gives = train_shape_values(&layer->out) * KERNEL_BLOCK;
    const float *weights = with->parameters + layer->first, *bias = weights + train_layer_weights(layer);
    const kernel_conv conv = train_conv_of(layer);
    for (int64_t row = 0; row < rows; row += KERNEL_BLOCK, in += sees, out += gives)
        with->kernel->convolution.forwards(out, train_with_border(work->border, in, layer, &conv), &conv, weights, bias,
                                           work->weights);
}

void train_conv_back(float *in_slope, train_work *work, const float *slope, const float *in, const train_layer *layer,
                     const train_with *with, int64_t rows)
{
    const kernel_convolution *run = &with->kernel->convolution;
    const int64_t sees = train_shape_values(&layer->in) * KERNEL_BLOCK;
    const int64_t gives = train_shape_values(&layer->out) * KERNEL_BLOCK;
    const kernel_conv conv = train_conv_of(layer);
    const bool bordered = train_conv_border(layer) > 0;
    if (is_depthwise(layer)) {
        run_depthwise_back(in_slope, work, slope, in, layer, with, rows);
        return;
    }
    if (is_product(layer)) {
        run_product_back(in_slope, work, slope, in, layer, with, rows);
        return;
    }
    for (; rows > 0; rows -= KERNEL_BLOCK, in += sees, slope += gives) {
        run->weights_back(work->gradient + layer->first, train_with_border(work->border, in, layer, &conv), slope,
                          &conv, rows < KERNEL_BLOCK ? rows : KERNEL_BLOCK);
        if (!in_slope)
            continue;
        float *to = bordered ? work->border : in_slope;
        run->inputs_back(to, slope, &conv, with->parameters + layer->first, work->weights);
        if (bordered)
            take_from_border(in_slope, to, layer, &conv);
        in_slope += sees;
    }
}

/* ---- pools ------------------------------------------------------------------------------------------------------- */

void train_pool(float *out, int32_t *chosen, const float *in, const train_layer *layer, const kernel_set *kernel,
                int64_t rows)
{
    const int64_t sees = train_shape_values(&layer->in) * KERNEL_BLOCK;
    const int64_t gives = train_shape_values(&layer->out) * KERNEL_BLOCK;
    const kernel_conv conv = train_conv_of(layer);
    for (int64_t row = 0; row < rows; row += KERNEL_BLOCK, in += sees, out += gives) {
        if (layer->kind == TRAIN_POOL_MAX)
            kernel->convolution.greatest(out, chosen, in, &conv);
        else
            kernel->convolution.average(out, in, &conv);
        if (chosen)
            chosen += gives;
    }
}

void train_pool_back(float *in_slope, const float *slope, const int32_t *chosen, const train_layer *layer,
                     const kernel_set *kernel, int64_t rows)
{
    const int64_t sees = train_shape_values(&layer->in) * KERNEL_BLOCK;
    const int64_t gives = train_shape_values(&layer->out) * KERNEL_BLOCK;
    const kernel_conv conv = train_conv_of(layer);
    for (; rows > 0; rows -= KERNEL_BLOCK, in_slope += sees, slope += gives)
        if (layer->kind == TRAIN_POOL_MAX) {
            kernel->convolution.greatest_back(in_slope, slope, chosen, &conv);
            chosen += gives;
        } else {
            kernel->convolution.average_back(in_slope, slope, &conv);
        }
}

/* ---- lists and blocks -------------------------------------------------------------------------------------------- */

void train_to_blocks(float *out, const float *lists, int64_t values, const kernel_set *kernel, int64_t rows)
{
    for (; rows > 0; rows -= KERNEL_BLOCK, lists += values * KERNEL_BLOCK, out += values * KERNEL_BLOCK) {
        const int64_t there = rows < KERNEL_BLOCK ? rows : KERNEL_BLOCK;
        if (there < KERNEL_BLOCK)
            memset(out, 0, (size_t)(values * KERNEL_BLOCK) * sizeof *out);
        kernel->convolution.transpose(out, KERNEL_BLOCK, lists, values, there, values);
    }
}

void train_to_lists(float *out, const float *blocks, int64_t values, const kernel_set *kernel, int64_t rows)
{
    for (; rows > 0; rows -= KERNEL_BLOCK, blocks += values * KERNEL_BLOCK, out += values * KERNEL_BLOCK)
        kernel->convolution.transpose(out, values, blocks, KERNEL_BLOCK, values,
                                      rows < KERNEL_BLOCK ? rows : KERNEL_BLOCK);
}
