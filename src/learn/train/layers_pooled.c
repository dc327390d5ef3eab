/* A convolution and the pool behind it, computed together: what the pool drops is never stored, and the way back goes
 * only where it chose.  See convolution.h and layers.h. */
#include <string.h>

#include "learn/train/layers_internal.h"

int train_pooled_of(kernel_pooled *out, const train_net *net, int index)
{
    const train_layer *conv = &net->layer[index], *pool = conv + 1;
    if (conv->kind != TRAIN_CONV || conv->saved || index + 1 >= net->layers)
        return 0;
    const bool relu = pool->kind == TRAIN_RELU;
    pool += relu;
    if (pool[-1].saved || index + 1 + relu >= net->layers || pool->kind != TRAIN_POOL_MAX || pool->kernel_height != 2 ||
        pool->kernel_width != 2 || pool->stride != 2 || pool->out.height != conv->out.height / 2 ||
        pool->out.width != conv->out.width / 2)
        return 0;
    *out = (kernel_pooled){.conv = train_conv_of(conv), .relu = relu};
    return out->conv.groups == 1 && kernel_pooled_fits(&out->conv) ? 2 + relu : 0;
}

void train_pooled(float *out, float *chosen, const float *in, const train_layer *layer, const kernel_pooled *pooled,
                  const train_with *with, int64_t rows, train_work *work)
{
    const kernel_convolution *run = &with->kernel->convolution;
    const kernel_conv *conv = &pooled->conv;
    const int64_t sees = train_shape_values(&layer->in) * KERNEL_BLOCK;
    const int64_t gives = conv->outputs * kernel_pooled_places(conv) * KERNEL_BLOCK;
    const float *weights = with->parameters + layer->first, *bias = weights + train_layer_weights(layer);
    for (int64_t row = 0; row < rows; row += KERNEL_BLOCK, in += sees, out += gives) {
        run->pooled_forwards(out, chosen, train_with_border(work->border, in, layer, conv), pooled, weights, bias,
                             work->weights);
        if (chosen)
            chosen += gives;
    }
}

/* Lists of maps without their border. */
static void take_lists(float *out, const float *from, const train_layer *layer, const kernel_conv *conv, int64_t rows)
{
    for (int64_t map = 0; map < rows * conv->channels; map++)
        for (int64_t y = 0; y < layer->in.height; y++, out += layer->in.width)
            memcpy(out, from + (map * conv->height + layer->pad_top + y) * conv->width + layer->pad_left,
                   (size_t)layer->in.width * sizeof *out);
}

void train_pooled_back(float *in_slope, train_work *work, const float *slope, const float *chosen, const float *in,
                       const train_layer *layer, const kernel_pooled *pooled, const train_with *with, int64_t rows)
{
    const kernel_convolution *run = &with->kernel->convolution;
    const kernel_conv *conv = &pooled->conv;
    const int64_t sees = train_shape_values(&layer->in), gives = conv->outputs * kernel_pooled_places(conv);
    const bool bordered = train_conv_border(layer) > 0;
    for (; rows > 0; rows -= KERNEL_BLOCK, in += sees * KERNEL_BLOCK, chosen += gives * KERNEL_BLOCK) {
        const int64_t there = rows < KERNEL_BLOCK ? rows : KERNEL_BLOCK;
        train_to_lists(work->listed, chosen, gives, with->kernel, there);
        run->pooled_weights_back(work->gradient + layer->first, train_with_border(work->border, in, layer, conv), slope,
                                 work->listed, pooled, there, work->weights);
        if (in_slope) {
            run->pooled_inputs_back(bordered ? work->border : in_slope, slope, work->listed, pooled,
                                    with->parameters + layer->first, there, work->weights);
            if (bordered)
                take_lists(in_slope, work->border, layer, conv, there);
            in_slope += sees * there;
        }
        slope += gives * there;
    }
}
