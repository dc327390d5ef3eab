/* Convolutions and pools of 16 rows side by side.
 *
 *     const kernel_convolution *convolution = &kernel->convolution;
 *     convolution->forwards(out, in, &shape, weights, bias, workspace);
 *
 * A *block* is what a layer gives for 16 rows: [map][line][column][row], so that whatever is done to a pixel is done
 * to a vector of rows, and no size of kernel, map or stride leaves lanes idle.  A block of fewer rows is filled up.
 *
 * Everything here is *exact* in the sense of kernel.h: each value is one written chain of operations, in which fma() is
 * one rounding, so that every kernel set gives the same bits. */
#ifndef KERNEL_CONVOLUTION_H
#define KERNEL_CONVOLUTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KERNEL_BLOCK = 16, KERNEL_CONV_TILE = 6, KERNEL_PIXEL_LEAST = 12 };

/* What is seen has `channels` maps of height x width, with whatever border of zeros there is.  Each output sees those
 * of its group: channels and outputs come in as many `groups`, one after another.  Pools have as many outputs as
 * channels, and one group. */
typedef struct kernel_conv {
    int64_t channels, height, width, kernel_height, kernel_width, stride, outputs, places_high, places_wide, groups;
} kernel_conv;

/* Weights that one output has. */
static inline int64_t kernel_conv_depth(const kernel_conv *conv)
{
    return conv->channels / conv->groups * conv->kernel_height * conv->kernel_width;
}

/* Floats of workspace that forwards and inputs_back want, aligned to 64 bytes. */
static inline int64_t kernel_conv_workspace(const kernel_conv *conv)
{
    const int64_t forwards = kernel_conv_depth(conv);
    const int64_t back = conv->outputs / conv->groups * conv->kernel_height * conv->kernel_width;
    return KERNEL_CONV_TILE * (forwards > back ? forwards : back);
}

/* A convolution of one group, each 2x2 of whose places a pool compares: what is left over on the right and below is
 * dropped.  Of the greatest values, those that are not above 0 are cut to 0 where there is a relu. */
typedef struct kernel_pooled {
    kernel_conv conv;
    bool relu;
} kernel_pooled;

/* Which place of the four a value is from, 0 to 3 line by line; or this, where the relu cut it. */
enum { KERNEL_CUT = 4 };

/* Places that are left of one output. */
static inline int64_t kernel_pooled_places(const kernel_conv *conv)
{
    return conv->places_high / 2 * (conv->places_wide / 2);
}

/* Channels as they lie side by side at each pixel, filled up to whole vectors. */
static inline int64_t kernel_pixel_most(int64_t channels)
{
    return channels < KERNEL_PIXEL_LEAST ? channels : (channels + KERNEL_BLOCK - 1) / KERNEL_BLOCK * KERNEL_BLOCK;
}

/* Floats of workspace that the way back wants, aligned to 64 bytes. */
static inline int64_t kernel_pooled_workspace(const kernel_conv *conv)
{
    const int64_t block = KERNEL_BLOCK, places = kernel_pooled_places(conv), pixel = kernel_pixel_most(conv->channels);
    const int64_t image = conv->height * conv->width * pixel, lists = 2 * (places + 1);
    const int64_t outputs = (conv->outputs + block - 1) / block;
    const int64_t weights = conv->kernel_height * ((conv->kernel_width * pixel + block - 1) / block);
    const int64_t by_weights = image + block * weights + conv->channels + places / block + lists + 6;
    const int64_t by_inputs =
        image / block + conv->outputs * weights + outputs * (4 * places + 1) + places / 4 + lists + 8;
    return block * (by_weights > by_inputs ? by_weights : by_inputs);
}

/* Whether an int32 can tell where all of this lies. */
static inline bool kernel_pooled_fits(const kernel_conv *conv)
{
    return kernel_pooled_workspace(conv) < INT32_MAX;
}

/* What points_back does at a time: so many maps and outputs; and floats of workspace that it wants. */
enum { KERNEL_POINT_MAPS = 48, KERNEL_POINT_OUTPUTS = 32 };
enum { KERNEL_POINT_WORKSPACE = KERNEL_POINT_MAPS * KERNEL_POINT_OUTPUTS * KERNEL_BLOCK };

typedef struct kernel_convolution {
    /* out = bias; then out = fma(what is seen, weight, out) in the order of channel, line and column of the kernel.
     * The weights of a place in the kernel lie side by side: weights[place * outputs + output]. */
    void (*forwards)(float *out, const float *in, const kernel_conv *conv, const float *weights, const float *bias,
                     float *workspace);
    /* For each weight and row a chain of fma(what is seen, slope, sum) over the places line by line, from 0; the sums
     * of the first `rows` rows are added to the gradient in their order.  That of the biases follows the weights'. */
    void (*weights_back)(float *gradient, const float *in, const float *slope, const kernel_conv *conv, int64_t rows);
    /* in_slope = the sum, over the places of the kernel line by line, of a chain of fma(slope, weight, sum) over the
     * outputs, from 0. */
    void (*inputs_back)(float *in_slope, const float *slope, const kernel_conv *conv, const float *weights,
                        float *workspace);

    /* What weights_back does, of a kernel of 1x1 that sees each pixel in turn, for maps that no cache holds. */
    void (*points_back)(float *gradient, const float *in, const float *slope, const kernel_conv *conv, int64_t rows,
                        float *workspace);

    /* The same of one map that has a kernel of its own (depthwise), whose weights and bias lie side by side; conv has
     * one channel, one output and one group.  The derivative by a pixel is one chain, from 0, of fma(slope, weight,
     * sum) over the places of the kernel line by line; the other chains are as above. */
    void (*map_forwards)(float *out, const float *in, const kernel_conv *conv, const float *weights, float bias);
    void (*map_weights_back)(float *gradient, const float *in, const float *slope, const kernel_conv *conv,
                             int64_t rows);
    void (*map_inputs_back)(float *in_slope, const float *slope, const kernel_conv *conv, const float *weights);

    /* For batch norm, of blocks of `maps` maps of so many places each.  For each of the first `rows` rows chains of
     * float64, from 0, of x and of x * y, which is exact, over the even places and over the odd ones, which are added
     * up; the rows' are added to the sums in order. */
    void (*sums)(double *sum, double *products, const float *x, const float *y, int64_t maps, int64_t places,
                 int64_t rows);
    /* out = fma(x, scale of the map, shift of the map) */
    void (*scale)(float *out, const float *x, const float *scale, const float *shift, int64_t maps, int64_t places);
    /* slope = fma(slope, by_slope of the map, fma(x, by_x of the map, shift of the map)) */
    void (*scale_back)(float *slope, const float *x, const float *by_slope, const float *by_x, const float *shift,
                       int64_t maps, int64_t places);

    /* out = x, at least 0 and at most `most`; NaN stays NaN.  `out` and x may be the same.  And back: slope = 0 unless
     * what this gave is between them. */
    void (*clip)(float *out, const float *x, float most, int64_t count);
    void (*clip_back)(float *slope, const float *gave, float most, int64_t count);

    /* Of each place the greatest value, the first of equals, NaN before all others; and, unless `chosen` is NULL, at
     * which place of the kernel that was. */
    void (*greatest)(float *out, int32_t *chosen, const float *in, const kernel_conv *conv);
    void (*greatest_back)(float *in_slope, const float *slope, const int32_t *chosen, const kernel_conv *conv);
    /* The sum of what a place sees, line by line, times one over their number; and back. */
    void (*average)(float *out, const float *in, const kernel_conv *conv);
    void (*average_back)(float *in_slope, const float *slope, const kernel_conv *conv);

    /* What `forwards` gives, the greatest of each 2x2 of it as `greatest` tells, and the relu; and, unless `chosen` is
     * NULL, which of the four that is. */
    void (*pooled_forwards)(float *out, float *chosen, const float *in, const kernel_pooled *pooled,
                            const float *weights, const float *bias, float *workspace);
    /* Back from there.  Slopes and choices are not blocks: they lie row by row, [row][output][line][column].  What
     * counts are slopes that are not 0, of places that were not cut; a slope belongs to the place that was chosen.
     *
     * For each weight a chain of fma(what is seen, slope, sum) over the rows, and in each over the pooled places line
     * by line, from 0, is added to the gradient.  That of a bias is added up in 16 sums, of pooled places by their
     * number mod 16, row by row; then l += l + 8, + 4, + 2, + 1. */
    void (*pooled_weights_back)(float *gradient, const float *in, const float *slope, const float *chosen,
                                const kernel_pooled *pooled, int64_t rows, float *workspace);
    /* in_slope, [row][channel][line][column], is the sum, over the places of the convolution line by line, of a chain
     * of fma(slope, weight, sum) over the outputs, from 0. */
    void (*pooled_inputs_back)(float *in_slope, const float *slope, const float *chosen, const kernel_pooled *pooled,
                               const float *weights, int64_t rows, float *workspace);

    /* out[j * out_row + i] = values[i * row + j] for i < rows and j < columns. */
    void (*transpose)(float *out, int64_t out_row, const float *values, int64_t row, int64_t rows, int64_t columns);
} kernel_convolution;

#endif
