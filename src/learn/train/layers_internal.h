/* Layers that lie in files of their own, layers_conv.c, layers_pooled.c and layers_norm.c; for layers.c alone. */
#ifndef TRAIN_LAYERS_INTERNAL_H
#define TRAIN_LAYERS_INTERNAL_H

#include "learn/train/layers.h"

/* A convolution or a pool as kernels see it, and how many values a block has within its border; 0 if there is none. */
kernel_conv train_conv_of(const train_layer *layer);
int64_t train_conv_workspace(const train_layer *layer);
int64_t train_conv_border(const train_layer *layer);

void train_conv(float *out, const float *in, const train_layer *layer, const train_with *with, int64_t rows,
                train_work *work);
/* `in_slope` is NULL where nobody needs it. */
void train_conv_back(float *in_slope, train_work *work, const float *slope, const float *in, const train_layer *layer,
                     const train_with *with, int64_t rows);
/* A convolution, a relu if there is one, and a pool that takes the greatest of each 2x2, which are computed together:
 * how many layers that are from `index` on, or 0. */
int train_pooled_of(kernel_pooled *out, const train_net *net, int index);
/* `chosen` is NULL where nobody goes backwards. */
void train_pooled(float *out, float *chosen, const float *in, const train_layer *layer, const kernel_pooled *pooled,
                  const train_with *with, int64_t rows, train_work *work);
/* Slopes come and go as lists, row by row. */
void train_pooled_back(float *in_slope, train_work *work, const float *slope, const float *chosen, const float *in,
                       const train_layer *layer, const kernel_pooled *pooled, const train_with *with, int64_t rows);

/* A block within its border; itself where it has none. */
const float *train_with_border(float *memory, const float *in, const train_layer *layer, const kernel_conv *conv);

/* `chosen` is NULL where nobody goes backwards, and for averages. */
void train_pool(float *out, int32_t *chosen, const float *in, const train_layer *layer, const kernel_set *kernel,
                int64_t rows);
void train_pool_back(float *in_slope, const float *slope, const int32_t *chosen, const train_layer *layer,
                     const kernel_set *kernel, int64_t rows);

/* `out` and `in` may be the same; and back, where `spare` has room for all of them. */
void train_activate(float *out, const float *in, train_kind kind, const kernel_set *kernel, int64_t count);
void train_activate_back(float *slope, float *spare, const float *gave, train_kind kind, const kernel_set *kernel,
                         int64_t count);

/* Whether a batch norm and the activation behind it, which works in place, are computed together, map by map. */
bool train_norm_joins(const train_net *net, int index);
/* By the averages of the rows, which are kept for the way back, or by running ones. */
void train_norm(train_work *work, const float *in, int index, const train_with *with, int64_t rows);
void train_norm_fixed(train_work *work, const float *in, int index, const train_with *with, int64_t rows);
/* Changes the slope in its place, unless nobody needs that. */
void train_norm_back(train_work *work, const float *in, int index, const train_with *with, int64_t rows, bool needs);

#endif
