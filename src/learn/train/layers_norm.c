/* Batch norm: each map, or each value of a list, less its mean over the rows and over its deviation, times a weight and
 * plus a bias.  See layers.h.
 *
 * Means and deviations are float64 sums of float32 values, whose products are exact in float64; what is done to each
 * value is one fma with float32 factors forwards, and two backwards.  Lists are made blocks of maps of one place. */
#include <math.h>
#include <string.h>

#include "learn/train/layers_internal.h"

/* What a batch norm works on: blocks of 16 rows.  Maps go through all of it one by one, so that they stay in a cache;
 * values of lists go together. */
typedef struct norm {
    const train_layer *layer;
    const float *weight, *bias;
    double *mean, *inverse; /* one over the deviation */
    int64_t maps, places, rows;
    int64_t from, count; /* of maps, at hand */
} norm;

static norm norm_of(train_work *work, int index, const train_with *with, int64_t rows)
{
    const train_layer *layer = &work->net->layer[index];
    const float *weight = with->parameters + layer->first;
    return (norm){.layer = layer,
                  .weight = weight,
                  .bias = weight + layer->outputs,
                  .mean = work->moments[index],
                  .inverse = work->moments[index] + layer->outputs,
                  .maps = layer->outputs,
                  .places = layer->in.height * layer->in.width,
                  .rows = rows,
                  .count = layer->in.flat ? layer->outputs : 1};
}

static const float *as_blocks(float *memory, const float *in, const norm *self, const kernel_set *kernel)
{
    if (!self->layer->in.flat)
        return in;
    train_to_blocks(memory, in, self->maps, kernel, self->rows);
    return memory;
}

/* Where the maps at hand begin in the block that begins with a row, and how many values they are there. */
static int64_t values_at(const norm *self, int64_t row)
{
    return (row * self->maps + self->from * KERNEL_BLOCK) * self->places;
}

static int64_t values_of(const norm *self)
{
    return self->count * self->places * KERNEL_BLOCK;
}

/* Of each map at hand the sum of x over all rows and places, and behind those of all maps the sums of x * y. */
static void find_sums(double *sums, const float *x, const float *y, const norm *self, const kernel_set *kernel)
{
    double *products = sums + self->maps + self->from;
    sums += self->from;
    memset(sums, 0, (size_t)self->count * sizeof *sums);
    memset(products, 0, (size_t)self->count * sizeof *sums);
    for (int64_t row = 0; row < self->rows; row += KERNEL_BLOCK) {
        const int64_t at = values_at(self, row), left = self->rows - row;
        kernel->convolution.sums(sums, products, x + at, y + at, self->count, self->places,
                                 left < KERNEL_BLOCK ? left : KERNEL_BLOCK);
    }
}

bool train_norm_joins(const train_net *net, int index)
{
    const train_layer *layer = &net->layer[index];
    return layer->kind == TRAIN_NORM && !layer->in.flat && !layer->saved && index + 1 < net->layers &&
           (layer[1].kind == TRAIN_RELU || layer[1].kind == TRAIN_RELU6 || layer[1].kind == TRAIN_TANH ||
            layer[1].kind == TRAIN_LOGISTIC);
}

/* out = fma(x, scale, shift), by the moments; and what the activation behind it does to that. */
static void apply_moments(float *out, const float *x, const norm *self, train_work *work, const kernel_set *kernel,
                          bool joins)
{
    float *scale = work->factors, *shift = scale + self->maps;
    for (int64_t c = self->from; c < self->from + self->count; c++) {
        const double by = (double)self->weight[c] * self->inverse[c];
        scale[c] = (float)by;
        shift[c] = (float)((double)self->bias[c] - self->mean[c] * by);
    }
    for (int64_t row = 0; row < self->rows; row += KERNEL_BLOCK) {
        const int64_t at = values_at(self, row);
        kernel->convolution.scale(out + at, x + at, scale + self->from, shift + self->from, self->count, self->places);
        if (joins)
            train_activate(out + at, out + at, self->layer[1].kind, kernel, values_of(self));
    }
}

/* Finds the moments of the maps at hand, and adds to the running averages. */
static void find_moments(const norm *self, const float *x, train_work *work, const kernel_set *kernel)
{
    const double rows = (double)self->rows, count = rows * (double)self->places, unbiased = count / (count - 1);
    float *means = work->gradient + work->net->parameters + self->layer->running;
    float *variances = means + self->maps;
    find_sums(work->sums, x, x, self, kernel);
    for (int64_t c = self->from; c < self->from + self->count; c++) {
        const double mean = work->sums[c] / count, raw = work->sums[self->maps + c] / count - mean * mean;
        const double variance = raw < 0 ? 0 : raw;
        self->mean[c] = mean;
        self->inverse[c] = 1 / sqrt(variance + self->layer->epsilon);
        means[c] = (float)(rows * mean);
        variances[c] = (float)(rows * (variance * unbiased));
    }
}

void train_norm(train_work *work, const float *in, int index, const train_with *with, int64_t rows)
{
    norm self = norm_of(work, index, with, rows);
    const float *x = as_blocks(work->blocks, in, &self, with->kernel);
    float *out = self.layer->in.flat ? work->blocks : work->out[index];
    for (; self.from < self.maps; self.from += self.count) {
        find_moments(&self, x, work, with->kernel);
        apply_moments(out, x, &self, work, with->kernel, train_norm_joins(work->net, index));
    }
    if (self.layer->in.flat)
        train_to_lists(work->out[index], out, self.maps, with->kernel, rows);
}

void train_norm_fixed(train_work *work, const float *in, int index, const train_with *with, int64_t rows)
{
    norm self = norm_of(work, index, with, rows);
    const float *x = as_blocks(work->blocks, in, &self, with->kernel);
    const float *means = with->parameters + work->net->parameters + self.layer->running, *variances = means + self.maps;
    float *out = self.layer->in.flat ? work->blocks : work->out[index];
    for (int64_t c = 0; c < self.maps; c++) {
        self.mean[c] = (double)means[c];
        self.inverse[c] = 1 / sqrt((double)variances[c] + self.layer->epsilon);
    }
    for (; self.from < self.maps; self.from += self.count)
        apply_moments(out, x, &self, work, with->kernel, train_norm_joins(work->net, index));
    if (self.layer->in.flat)
        train_to_lists(work->out[index], out, self.maps, with->kernel, rows);
}

/* With s the derivative by y = x' * weight + bias, x' = (x - mean) * inverse, n values and sums over these:
 * the derivative by x is weight * inverse * (s - sum(s) / n - x' * sum(s x') / n), here as fma(s, a, fma(x, b, c)). */
static void go_back(float *slope, const float *x, const norm *self, train_work *work, const kernel_set *kernel,
                    bool needs)
{
    const int64_t maps = self->maps, from = self->from;
    const double count = (double)self->rows * (double)self->places;
    float *gradient = work->gradient + self->layer->first;
    float *by_slope = work->factors, *by_x = by_slope + maps, *shift = by_x + maps;
    find_sums(work->sums, slope, x, self, kernel);
    for (int64_t c = from; c < from + self->count; c++) {
        const double sum = work->sums[c], inverse = self->inverse[c], by = (double)self->weight[c] * inverse;
        const double product = inverse * (work->sums[maps + c] - self->mean[c] * sum);
        const double each = by * inverse * (product / count);
        gradient[c] += (float)product;
        gradient[maps + c] += (float)sum;
        by_slope[c] = (float)by;
        by_x[c] = (float)-each;
        shift[c] = (float)(self->mean[c] * each - by * (sum / count));
    }
    for (int64_t row = 0; needs && row < self->rows; row += KERNEL_BLOCK) {
        const int64_t at = values_at(self, row);
        kernel->convolution.scale_back(slope + at, x + at, by_slope + from, by_x + from, shift + from, self->count,
                                       self->places);
    }
}

void train_norm_back(train_work *work, const float *in, int index, const train_with *with, int64_t rows, bool needs)
{
    norm self = norm_of(work, index, with, rows);
    const bool flat = self.layer->in.flat, joins = train_norm_joins(work->net, index);
    const float *x = as_blocks(work->blocks, in, &self, with->kernel);
    float *slope = work->slope;
    if (flat)
        train_to_blocks(slope = work->slopes, work->slope, self.maps, with->kernel, rows);
    for (; self.from < self.maps; self.from += self.count) {
        for (int64_t row = 0; joins && row < rows; row += KERNEL_BLOCK)
            train_activate_back(slope + values_at(&self, row), work->other,
                                work->out[index + 1] + values_at(&self, row), self.layer[1].kind, with->kernel,
                                values_of(&self));
        go_back(slope, x, &self, work, with->kernel, needs);
    }
    if (flat && needs)
        train_to_lists(work->slope, slope, self.maps, with->kernel, rows);
}
