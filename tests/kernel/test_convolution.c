/* Every entry of kernel/convolution.h in every set against its definition, on shapes of all kinds.  Buffers end at a
 * page that can't be touched, so that reading or writing one value too many is a crash.
 *
 *     test_convolution [--bench]      also times what a net of two convolutions needs */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "kernel/kernel.h"

#include "buffers.h"
#include "rates.h"

static const kernel_set *sets[8];
static int count_sets;

/* ---- shapes and values ------------------------------------------------------------------------------------------- */

static int64_t draw(int64_t least, int64_t most)
{
    return least + (int64_t)(random_bits() % (uint64_t)(most - least + 1));
}

static kernel_conv random_conv(bool pool)
{
    const int64_t groups = pool || random_bits() % 3 ? 1 : draw(1, 4);
    kernel_conv conv = {.channels = groups * draw(1, pool ? 3 : 7),
                        .kernel_height = draw(1, 5),
                        .kernel_width = draw(1, 5),
                        .stride = draw(1, 3),
                        .outputs = groups * draw(1, 9),
                        .places_high = draw(1, 6),
                        .places_wide = draw(1, 6),
                        .groups = groups};
    if (pool)
        conv.outputs = conv.channels;
    conv.height = (conv.places_high - 1) * conv.stride + conv.kernel_height + draw(0, 2);
    conv.width = (conv.places_wide - 1) * conv.stride + conv.kernel_width + draw(0, 2);
    return conv;
}

static int64_t seen_values(const kernel_conv *conv)
{
    return conv->channels * conv->height * conv->width * KERNEL_BLOCK;
}

static int64_t given_values(const kernel_conv *conv)
{
    return conv->outputs * conv->places_high * conv->places_wide * KERNEL_BLOCK;
}

/* Most are between -1 and 1; some are 0, of either sign, small whole numbers, which are equal to others, or extreme. */
static float random_value(void)
{
    static const float odd[] = {0, -0.0F, 1, 2, -1, 1e-42F, -3e-39F, 1e12F, -1e13F};
    return random_bits() % 4 ? (float)(2 * random_unit() - 1) : odd[random_bits() % (sizeof odd / sizeof *odd)];
}

static float *random_values(int64_t count)
{
    float *out = fence((size_t)count * sizeof *out);
    for (int64_t i = 0; i < count; i++)
        out[i] = random_value();
    return out;
}

static float *new_values(int64_t count)
{
    float *out = fence((size_t)count * sizeof *out);
    for (int64_t i = 0; i < count; i++)
        out[i] = NAN;
    return out;
}

/* The same but for the sign of a zero. */
static void assert_same(const char *what, const kernel_set *set, const float *is, const float *expected, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (is[i] != expected[i] && !(isnan(is[i]) && isnan(expected[i])))
            fail_msg("%s of %s: %g instead of %g at %lld of %lld", what, set->name, (double)is[i], (double)expected[i],
                     (long long)i, (long long)count);
}

/* Where a value of a block lies. */
static int64_t seen_at(const kernel_conv *conv, int64_t map, int64_t place, int64_t of_kernel)
{
    const int64_t y = place / conv->places_wide * conv->stride + of_kernel / conv->kernel_width;
    const int64_t x = place % conv->places_wide * conv->stride + of_kernel % conv->kernel_width;
    return ((map * conv->height + y) * conv->width + x) * KERNEL_BLOCK;
}

/* The map that weight k of an output belongs to. */
static int64_t map_of(const kernel_conv *conv, int64_t output, int64_t k)
{
    const int64_t group = output / (conv->outputs / conv->groups);
    return group * (conv->channels / conv->groups) + k / (conv->kernel_height * conv->kernel_width);
}

/* ---- convolutions ------------------------------------------------------------------------------------------------ */

static void plain_forwards(float *out, const float *in, const kernel_conv *conv, const float *weights,
                           const float *bias)
{
    const int64_t places = conv->places_high * conv->places_wide, of_map = conv->kernel_height * conv->kernel_width;
    for (int64_t i = 0; i < given_values(conv); i++) {
        const int64_t row = i % KERNEL_BLOCK, o = i / KERNEL_BLOCK / places, place = i / KERNEL_BLOCK % places;
        out[i] = bias[o];
        for (int64_t k = 0; k < kernel_conv_depth(conv); k++)
            out[i] = fmaf(in[seen_at(conv, map_of(conv, o, k), place, k % of_map) + row],
                          weights[k * conv->outputs + o], out[i]);
    }
}

static void plain_weights_back(float *gradient, const float *in, const float *slope, const kernel_conv *conv,
                               int64_t rows)
{
    const int64_t places = conv->places_high * conv->places_wide, of_map = conv->kernel_height * conv->kernel_width;
    const int64_t depth = kernel_conv_depth(conv);
    for (int64_t k = 0; k <= depth; k++)
        for (int64_t o = 0; o < conv->outputs; o++)
            for (int64_t row = 0; row < rows; row++) {
                float sum = 0;
                for (int64_t place = 0; place < places; place++) {
                    const int64_t map = k < depth ? map_of(conv, o, k) : 0;
                    const float seen = k < depth ? in[seen_at(conv, map, place, k % of_map) + row] : 1;
                    sum = fmaf(seen, slope[(o * places + place) * KERNEL_BLOCK + row], sum);
                }
                gradient[k * conv->outputs + o] += sum;
            }
}

static void plain_inputs_back(float *in_slope, const float *slope, const kernel_conv *conv, const float *weights)
{
    const int64_t places = conv->places_high * conv->places_wide, of_map = conv->kernel_height * conv->kernel_width;
    const int64_t channels = conv->channels / conv->groups, outputs = conv->outputs / conv->groups;
    memset(in_slope, 0, (size_t)seen_values(conv) * sizeof *in_slope);
    for (int64_t map = 0; map < conv->channels; map++)
        for (int64_t k = 0; k < of_map; k++)
            for (int64_t place = 0; place < places; place++)
                for (int64_t row = 0; row < KERNEL_BLOCK; row++) {
                    float sum = 0;
                    for (int64_t j = 0; j < outputs; j++) {
                        const int64_t o = map / channels * outputs + j;
                        sum = fmaf(slope[(o * places + place) * KERNEL_BLOCK + row],
                                   weights[(map % channels * of_map + k) * conv->outputs + o], sum);
                    }
                    in_slope[seen_at(conv, map, place, k) + row] += sum;
                }
}

static void test_convolutions(void **state)
{
    (void)state;
    for (int turn = 0; turn < 150; turn++) {
        const kernel_conv conv = random_conv(false);
        const int64_t depth = kernel_conv_depth(&conv), weights_count = depth * conv.outputs, rows = draw(1, 16);
        const int64_t parameters = weights_count + conv.outputs, sees = seen_values(&conv), gives = given_values(&conv);
        const float *in = random_values(sees), *slope = random_values(gives);
        const float *weights = random_values(weights_count), *bias = random_values(conv.outputs);
        const float *before = random_values(parameters);
        float *out = new_values(gives), *in_slope = new_values(sees), *gradient = new_values(parameters);
        float *plain_out = new_values(gives), *plain_slope = new_values(sees), *plain_gradient = new_values(parameters);
        float *workspace = new_values(kernel_conv_workspace(&conv));
        plain_forwards(plain_out, in, &conv, weights, bias);
        plain_inputs_back(plain_slope, slope, &conv, weights);
        memcpy(plain_gradient, before, (size_t)parameters * sizeof *before);
        plain_weights_back(plain_gradient, in, slope, &conv, rows);
        for (int s = 0; s < count_sets; s++) {
            const kernel_convolution *run = &sets[s]->convolution;
            run->forwards(out, in, &conv, weights, bias, workspace);
            assert_same("forwards", sets[s], out, plain_out, gives);
            run->inputs_back(in_slope, slope, &conv, weights, workspace);
            assert_same("inputs_back", sets[s], in_slope, plain_slope, sees);
            memcpy(gradient, before, (size_t)parameters * sizeof *before);
            run->weights_back(gradient, in, slope, &conv, rows);
            assert_same("weights_back", sets[s], gradient, plain_gradient, parameters);
        }
        drop_fences();
    }
}

/* ---- map by map -------------------------------------------------------------------------------------------------- */

static void plain_map_inputs_back(float *in_slope, const float *slope, const kernel_conv *conv, const float *weights)
{
    memset(in_slope, 0, (size_t)seen_values(conv) * sizeof *in_slope);
    for (int64_t k = 0; k < conv->kernel_height * conv->kernel_width; k++)
        for (int64_t place = 0; place < conv->places_high * conv->places_wide; place++)
            for (int64_t row = 0; row < KERNEL_BLOCK; row++) {
                float *to = in_slope + seen_at(conv, 0, place, k) + row;
                *to = fmaf(slope[place * KERNEL_BLOCK + row], weights[k], *to);
            }
}

static void test_single_maps(void **state)
{
    (void)state;
    for (int turn = 0; turn < 150; turn++) {
        kernel_conv conv = random_conv(true);
        if (turn % 3 == 0) { /* wide enough for tiles */
            conv.stride = draw(1, 2);
            conv.places_wide = draw(7, 21);
            conv.width = (conv.places_wide - 1) * conv.stride + conv.kernel_width + draw(0, 2);
            conv.height = (conv.places_high - 1) * conv.stride + conv.kernel_height + draw(0, 2);
        }
        conv.channels = conv.outputs = 1;
        const int64_t depth = kernel_conv_depth(&conv), rows = draw(1, 16);
        const int64_t sees = seen_values(&conv), gives = given_values(&conv);
        const float *in = random_values(sees), *slope = random_values(gives), *weights = random_values(depth + 1);
        const float *before = random_values(depth + 1);
        float *out = new_values(gives), *in_slope = new_values(sees), *gradient = new_values(depth + 1);
        float *plain_out = new_values(gives), *plain_slope = new_values(sees), *plain_gradient = new_values(depth + 1);
        plain_forwards(plain_out, in, &conv, weights, weights + depth);
        plain_map_inputs_back(plain_slope, slope, &conv, weights);
        memcpy(plain_gradient, before, (size_t)(depth + 1) * sizeof *before);
        plain_weights_back(plain_gradient, in, slope, &conv, rows);
        for (int s = 0; s < count_sets; s++) {
            const kernel_convolution *run = &sets[s]->convolution;
            run->map_forwards(out, in, &conv, weights, weights[depth]);
            assert_same("map_forwards", sets[s], out, plain_out, gives);
            run->map_inputs_back(in_slope, slope, &conv, weights);
            assert_same("map_inputs_back", sets[s], in_slope, plain_slope, sees);
            memcpy(gradient, before, (size_t)(depth + 1) * sizeof *before);
            run->map_weights_back(gradient, in, slope, &conv, rows);
            assert_same("map_weights_back", sets[s], gradient, plain_gradient, depth + 1);
        }
        drop_fences();
    }
}

static void test_points(void **state)
{
    (void)state;
    for (int turn = 0; turn < 40; turn++) {
        const int64_t channels = turn % 4 ? draw(1, 9) : draw(40, 110), outputs = turn % 3 ? draw(1, 9) : draw(25, 70);
        const int64_t high = draw(1, 12), wide = draw(1, 11), rows = draw(1, 16), count = (channels + 1) * outputs;
        const kernel_conv conv = {channels, high, wide, 1, 1, 1, outputs, high, wide, 1};
        const float *in = random_values(seen_values(&conv)), *slope = random_values(given_values(&conv));
        const float *before = random_values(count);
        float *gradient = new_values(count), *plain = new_values(count);
        float *workspace = new_values(KERNEL_POINT_WORKSPACE);
        memcpy(plain, before, (size_t)count * sizeof *before);
        plain_weights_back(plain, in, slope, &conv, rows);
        for (int s = 0; s < count_sets; s++) {
            memcpy(gradient, before, (size_t)count * sizeof *before);
            sets[s]->convolution.points_back(gradient, in, slope, &conv, rows, workspace);
            assert_same("points_back", sets[s], gradient, plain, count);
        }
        drop_fences();
    }
}

/* The chains of one map. */
static void plain_sums(double *sum, double *products, const float *x, const float *y, int64_t places, int64_t rows)
{
    for (int64_t row = 0; row < rows; row++) {
        double of_x[2] = {0}, of_both[2] = {0};
        for (int64_t place = 0; place < places; place++) {
            of_x[place % 2] += (double)x[place * KERNEL_BLOCK + row];
            of_both[place % 2] += (double)x[place * KERNEL_BLOCK + row] * (double)y[place * KERNEL_BLOCK + row];
        }
        *sum += of_x[0] + of_x[1];
        *products += of_both[0] + of_both[1];
    }
}

static void test_clips(void **state)
{
    (void)state;
    for (int turn = 0; turn < 40; turn++) {
        const int64_t count = draw(1, 100);
        const float most = turn % 2 ? 0.5F : INFINITY;
        float *x = random_values(count), *slope = random_values(count), *out = new_values(count);
        x[draw(0, count - 1)] = NAN;
        for (int s = 0; s < count_sets; s++) {
            sets[s]->convolution.clip(out, x, most, count);
            for (int64_t i = 0; i < count; i++)
                assert_true(isnan(x[i]) ? isnan(out[i]) : out[i] == (x[i] > most ? most : x[i] < 0 ? 0 : x[i]));
            memcpy(out, slope, (size_t)count * sizeof *out);
            sets[s]->convolution.clip_back(out, x, most, count);
            for (int64_t i = 0; i < count; i++)
                assert_true(out[i] == (x[i] > 0 && x[i] < most ? slope[i] : 0));
        }
        drop_fences();
    }
}

static void test_batch_norms(void **state)
{
    (void)state;
    for (int turn = 0; turn < 60; turn++) {
        const int64_t maps = draw(1, 9), places = draw(1, 40), rows = draw(1, 16), map = places * KERNEL_BLOCK;
        const float *x = random_values(maps * map), *y = random_values(maps * map), *a = random_values(maps);
        const float *b = random_values(maps), *c = random_values(maps);
        float *out = new_values(maps * map);
        for (int s = 0; s < count_sets; s++) {
            const kernel_convolution *run = &sets[s]->convolution;
            double sum[9], products[9];
            for (int64_t m = 0; m < maps; m++)
                sum[m] = products[m] = (double)m;
            const float *of = turn % 2 ? x : y;
            run->sums(sum, products, x, of, maps, places, rows);
            for (int64_t m = 0; m < maps; m++) {
                double plain = (double)m, plain_products = (double)m;
                plain_sums(&plain, &plain_products, x + m * map, of + m * map, places, rows);
                assert_true(sum[m] == plain && products[m] == plain_products);
            }
            run->scale(out, x, a, b, maps, places);
            for (int64_t i = 0; i < maps * map; i++)
                assert_true(out[i] == fmaf(x[i], a[i / map], b[i / map]));
            memcpy(out, y, (size_t)(maps * map) * sizeof *out);
            run->scale_back(out, x, a, b, c, maps, places);
            for (int64_t i = 0; i < maps * map; i++)
                assert_true(out[i] == fmaf(y[i], a[i / map], fmaf(x[i], b[i / map], c[i / map])));
        }
        drop_fences();
    }
}

/* ---- convolutions and the pools behind them ---------------------------------------------------------------------- */

static kernel_pooled random_pooled(void)
{
    kernel_pooled pooled = {.conv = random_conv(false), .relu = random_bits() % 4 > 0};
    kernel_conv *conv = &pooled.conv;
    conv->groups = 1;
    conv->channels = random_bits() % 3 ? draw(1, 5) : draw(6, 35);
    conv->outputs = random_bits() % 3 ? draw(1, 9) : draw(10, 40);
    conv->places_high = draw(2, 11);
    conv->places_wide = draw(2, 11);
    conv->kernel_width = random_bits() % 4 ? conv->kernel_width : draw(5, 9);
    conv->kernel_height = random_bits() % 4 ? conv->kernel_height : draw(5, 7);
    conv->height = (conv->places_high - 1) * conv->stride + conv->kernel_height + draw(0, 2);
    conv->width = (conv->places_wide - 1) * conv->stride + conv->kernel_width + draw(0, 2);
    return pooled;
}

/* Which of all places one of the four of a pooled place is. */
static int64_t place_of(const kernel_conv *conv, int64_t pooled_place, int64_t which)
{
    const int64_t wide = conv->places_wide / 2, y = pooled_place / wide * 2 + which / 2;
    return y * conv->places_wide + pooled_place % wide * 2 + which % 2;
}

static void plain_pooled(float *out, float *chosen, const float *given, const kernel_pooled *pooled)
{
    const kernel_conv *conv = &pooled->conv;
    const int64_t places = kernel_pooled_places(conv), all = conv->places_high * conv->places_wide;
    for (int64_t i = 0; i < conv->outputs * places * KERNEL_BLOCK; i++) {
        const int64_t row = i % KERNEL_BLOCK, place = i / KERNEL_BLOCK % places, o = i / KERNEL_BLOCK / places;
        for (int p = 0; p < 4; p++) {
            const float value = given[(o * all + place_of(conv, place, p)) * KERNEL_BLOCK + row];
            if (p == 0 || value > out[i] || isnan(value)) {
                out[i] = value;
                chosen[i] = (float)p;
            }
        }
        if (pooled->relu && out[i] <= 0) {
            out[i] = 0;
            chosen[i] = KERNEL_CUT;
        }
    }
}

/* The slope of one of four places, 0 if that has none. */
static float slope_at(const float *slope, const float *chosen, const kernel_conv *conv, int64_t row, int64_t output,
                      int64_t place, int64_t which)
{
    const int64_t at = (row * conv->outputs + output) * kernel_pooled_places(conv) + place;
    return chosen[at] == (float)which ? slope[at] : 0;
}

static void plain_pooled_weights_back(float *gradient, const float *in, const float *slope, const float *chosen,
                                      const kernel_conv *conv, int64_t rows)
{
    const int64_t places = kernel_pooled_places(conv), of_map = conv->kernel_height * conv->kernel_width;
    const int64_t depth = kernel_conv_depth(conv);
    for (int64_t o = 0; o < conv->outputs; o++) {
        float lanes[KERNEL_BLOCK] = {0};
        for (int64_t k = 0; k < depth; k++) {
            float sum = 0;
            for (int64_t i = 0; i < rows * places * 4; i++) {
                const int64_t row = i / 4 / places, place = i / 4 % places, which = i % 4;
                const float by = slope_at(slope, chosen, conv, row, o, place, which);
                const int64_t at = seen_at(conv, k / of_map, place_of(conv, place, which), k % of_map) + row;
                if (by != 0)
                    sum = fmaf(in[at], by, sum);
            }
            gradient[k * conv->outputs + o] += sum;
        }
        for (int64_t i = 0; i < rows * places * 4; i++)
            lanes[i / 4 % places % KERNEL_BLOCK] +=
                slope_at(slope, chosen, conv, i / 4 / places, o, i / 4 % places, i % 4);
        for (int half = KERNEL_BLOCK / 2; half > 0; half /= 2)
            for (int i = 0; i < half; i++)
                lanes[i] += lanes[i + half];
        gradient[depth * conv->outputs + o] += lanes[0];
    }
}

static void plain_pooled_inputs_back(float *in_slope, const float *slope, const float *chosen, const kernel_conv *conv,
                                     const float *weights, int64_t rows)
{
    const int64_t places = kernel_pooled_places(conv), of_map = conv->kernel_height * conv->kernel_width;
    const int64_t map = conv->height * conv->width, conv_wide = conv->places_wide / 2 * 2;
    memset(in_slope, 0, (size_t)(rows * conv->channels * map) * sizeof *in_slope);
    for (int64_t i = 0; i < rows * 4 * places; i++)
        for (int64_t k = 0; k < of_map; k++)
            for (int64_t c = 0; c < conv->channels; c++) {
                const int64_t row = i / 4 / places, y = i / conv_wide % (2 * (conv->places_high / 2)),
                              x = i % conv_wide;
                const int64_t place = y / 2 * (conv->places_wide / 2) + x / 2, which = y % 2 * 2 + x % 2;
                const int64_t at = seen_at(conv, c, y * conv->places_wide + x, k) / KERNEL_BLOCK;
                float sum = 0;
                for (int64_t o = 0; o < conv->outputs; o++)
                    sum = fmaf(slope_at(slope, chosen, conv, row, o, place, which),
                               weights[(c * of_map + k) * conv->outputs + o], sum);
                in_slope[row * conv->channels * map + at] += sum;
            }
}

static void test_pooled(void **state)
{
    (void)state;
    for (int turn = 0; turn < 100; turn++) {
        const kernel_pooled pooled = random_pooled();
        const kernel_conv *conv = &pooled.conv;
        const int64_t depth = kernel_conv_depth(conv), rows = turn % 2 ? KERNEL_BLOCK : draw(1, 15);
        const int64_t parameters = (depth + 1) * conv->outputs, gives = conv->outputs * kernel_pooled_places(conv);
        const int64_t sees = conv->channels * conv->height * conv->width;
        const float *in = random_values(sees * KERNEL_BLOCK), *weights = random_values(depth * conv->outputs);
        const float *bias = random_values(conv->outputs), *before = random_values(parameters);
        float *given = new_values(given_values(conv)), *out = new_values(gives * KERNEL_BLOCK);
        float *chosen = new_values(gives * KERNEL_BLOCK), *plain_out = new_values(gives * KERNEL_BLOCK);
        float *plain_chosen = new_values(gives * KERNEL_BLOCK), *listed = new_values(gives * rows);
        float *slope = random_values(gives * rows), *workspace = new_values(kernel_conv_workspace(conv));
        float *back = new_values(kernel_pooled_workspace(conv));
        float *in_slope = new_values(sees * rows), *plain_slope = new_values(sees * rows);
        float *gradient = new_values(parameters), *plain_gradient = new_values(parameters);
        plain_forwards(given, in, conv, weights, bias);
        plain_pooled(plain_out, plain_chosen, given, &pooled);
        for (int64_t i = 0; i < gives * rows; i++) {
            listed[i] = (float)draw(0, KERNEL_CUT);
            slope[i] = random_bits() % 3 ? slope[i] : 0;
        }
        plain_pooled_inputs_back(plain_slope, slope, listed, conv, weights, rows);
        memcpy(plain_gradient, before, (size_t)parameters * sizeof *before);
        plain_pooled_weights_back(plain_gradient, in, slope, listed, conv, rows);
        for (int s = 0; s < count_sets; s++) {
            const kernel_convolution *run = &sets[s]->convolution;
            run->pooled_forwards(out, NULL, in, &pooled, weights, bias, workspace);
            assert_same("pooled_forwards", sets[s], out, plain_out, gives * KERNEL_BLOCK);
            run->pooled_forwards(out, chosen, in, &pooled, weights, bias, workspace);
            assert_same("pooled_forwards", sets[s], out, plain_out, gives * KERNEL_BLOCK);
            assert_same("the choice of pooled_forwards", sets[s], chosen, plain_chosen, gives * KERNEL_BLOCK);
            run->pooled_inputs_back(in_slope, slope, listed, &pooled, weights, rows, back);
            assert_same("pooled_inputs_back", sets[s], in_slope, plain_slope, sees * rows);
            memcpy(gradient, before, (size_t)parameters * sizeof *before);
            run->pooled_weights_back(gradient, in, slope, listed, &pooled, rows, back);
            assert_same("pooled_weights_back", sets[s], gradient, plain_gradient, parameters);
        }
        drop_fences();
    }
}

/* Slopes that are 0 or cut, or belong to rows that are not there, meet nothing: not even what is not finite. */
static void test_pooled_skips(void **state)
{
    (void)state;
    const kernel_pooled pooled = {.conv = {1, 6, 6, 3, 3, 1, 2, 4, 4, 1}, .relu = true};
    enum { ROWS = 3, GIVES = 2 * 4, SEES = 36 };
    float *in = new_values(SEES * KERNEL_BLOCK), *slope = new_values(GIVES * ROWS);
    float *chosen = new_values(GIVES * ROWS);
    float *gradient = new_values(20), *back = new_values(kernel_pooled_workspace(&pooled.conv));
    for (int i = 0; i < SEES * KERNEL_BLOCK; i++)
        in[i] = i % KERNEL_BLOCK == 1 ? 2 : INFINITY;
    for (int i = 0; i < GIVES * ROWS; i++) {
        slope[i] = i / GIVES == 0 ? 0 : 1;
        chosen[i] = i / GIVES == 2 ? KERNEL_CUT : 3;
    }
    for (int s = 0; s < count_sets; s++) {
        memset(gradient, 0, 20 * sizeof *gradient);
        sets[s]->convolution.pooled_weights_back(gradient, in, slope, chosen, &pooled, ROWS, back);
        for (int i = 0; i < 20; i++)
            assert_true(gradient[i] == (i < 18 ? 8 : 4));
    }
    drop_fences();
}

/* ---- pools ------------------------------------------------------------------------------------------------------- */

static void plain_pool(float *out, int32_t *chosen, float *average, const float *in, const kernel_conv *conv)
{
    const int64_t places = conv->places_high * conv->places_wide, of_map = conv->kernel_height * conv->kernel_width;
    for (int64_t i = 0; i < given_values(conv); i++) {
        const int64_t map = i / KERNEL_BLOCK / places, place = i / KERNEL_BLOCK % places, row = i % KERNEL_BLOCK;
        average[i] = 0;
        for (int64_t k = 0; k < of_map; k++) {
            const float value = in[seen_at(conv, map, place, k) + row];
            average[i] += value;
            if (k == 0 || value > out[i] || isnan(value)) {
                out[i] = value;
                chosen[i] = (int32_t)k;
            }
        }
        average[i] *= 1 / (float)of_map;
    }
}

static void plain_pool_back(float *by_greatest, float *by_average, const float *slope, const int32_t *chosen,
                            const kernel_conv *conv)
{
    const int64_t places = conv->places_high * conv->places_wide, of_map = conv->kernel_height * conv->kernel_width;
    memset(by_greatest, 0, (size_t)seen_values(conv) * sizeof *by_greatest);
    memset(by_average, 0, (size_t)seen_values(conv) * sizeof *by_average);
    for (int64_t i = 0; i < given_values(conv); i++) {
        const int64_t map = i / KERNEL_BLOCK / places, place = i / KERNEL_BLOCK % places, row = i % KERNEL_BLOCK;
        by_greatest[seen_at(conv, map, place, chosen[i]) + row] += slope[i];
        for (int64_t k = 0; k < of_map; k++)
            by_average[seen_at(conv, map, place, k) + row] += slope[i] * (1 / (float)of_map);
    }
}

static void test_pools(void **state)
{
    (void)state;
    for (int turn = 0; turn < 200; turn++) {
        const kernel_conv conv = random_conv(true);
        const int64_t sees = seen_values(&conv), gives = given_values(&conv);
        float *in = random_values(sees), *out = new_values(gives), *plain_out = new_values(gives);
        float *average = new_values(gives), *slope = random_values(gives), *in_slope = new_values(sees);
        float *by_greatest = new_values(sees), *by_average = new_values(sees);
        int32_t *chosen = fence((size_t)gives * sizeof *chosen), *plain_chosen = fence((size_t)gives * sizeof *chosen);
        if (turn % 2)
            in[draw(0, sees - 1)] = NAN;
        plain_pool(plain_out, plain_chosen, average, in, &conv);
        plain_pool_back(by_greatest, by_average, slope, plain_chosen, &conv);
        for (int s = 0; s < count_sets; s++) {
            const kernel_convolution *run = &sets[s]->convolution;
            run->greatest(out, NULL, in, &conv);
            assert_same("greatest", sets[s], out, plain_out, gives);
            memset(chosen, 0xff, (size_t)gives * sizeof *chosen);
            run->greatest(out, chosen, in, &conv);
            assert_same("greatest", sets[s], out, plain_out, gives);
            assert_memory_equal(chosen, plain_chosen, (size_t)gives * sizeof *chosen);
            run->greatest_back(in_slope, slope, chosen, &conv);
            assert_same("greatest_back", sets[s], in_slope, by_greatest, sees);
            run->average(out, in, &conv);
            assert_same("average", sets[s], out, average, gives);
            run->average_back(in_slope, slope, &conv);
            assert_same("average_back", sets[s], in_slope, by_average, sees);
        }
        drop_fences();
    }
}

static void test_transpose(void **state)
{
    (void)state;
    for (int64_t rows = 1; rows < 70; rows += 1 + rows / 9)
        for (int64_t columns = 1; columns < 70; columns += 1 + columns / 7) {
            const int64_t row = columns + rows % 3, out_row = rows + columns % 4;
            const float *values = random_values((rows - 1) * row + columns);
            float *out = new_values((columns - 1) * out_row + rows);
            for (int s = 0; s < count_sets; s++) {
                sets[s]->convolution.transpose(out, out_row, values, row, rows, columns);
                for (int64_t i = 0; i < rows * columns; i++)
                    assert_true(out[i % columns * out_row + i / columns] == values[i / columns * row + i % columns]);
            }
            drop_fences();
        }
}

/* ---- time -------------------------------------------------------------------------------------------------------- */

static void bench_one(const char *what, const kernel_set *set, double operations, double seconds)
{
    printf("%-10s %-14s %8.1f us a row %8.1f GFLOP/s of %.0f\n", set->name, what, seconds * 1e6 / KERNEL_BLOCK,
           operations / seconds * 1e-9, peak(set));
}

#define LEAST_TIME(least, call)                                                                                        \
    do {                                                                                                               \
        least = INFINITY;                                                                                              \
        for (int turn_ = 0; turn_ < 30; turn_++) {                                                                     \
            const double start_ = now();                                                                               \
            call;                                                                                                      \
            least = fmin(least, now() - start_);                                                                       \
        }                                                                                                              \
    } while (0)

static void bench(void)
{
    static const kernel_conv convs[] = {{1, 28, 28, 5, 5, 1, 20, 24, 24, 1},  {20, 12, 12, 5, 5, 1, 40, 8, 8, 1},
                                        {32, 16, 16, 3, 3, 1, 64, 14, 14, 1}, {64, 14, 14, 1, 1, 1, 64, 14, 14, 1},
                                        {24, 48, 48, 1, 1, 1, 72, 48, 48, 1}, {96, 24, 24, 1, 1, 1, 32, 24, 24, 1},
                                        {64, 16, 16, 3, 3, 1, 64, 14, 14, 64}};
    for (size_t i = 0; i < sizeof convs / sizeof *convs; i++) {
        const kernel_conv *conv = &convs[i];
        const int64_t depth = kernel_conv_depth(conv);
        const double operations = 2. * (double)(depth * given_values(conv));
        const float *in = random_values(seen_values(conv)), *slope = random_values(given_values(conv));
        const float *weights = random_values(depth * conv->outputs), *bias = random_values(conv->outputs);
        float *out = new_values(given_values(conv)), *in_slope = new_values(seen_values(conv));
        float *gradient = random_values((depth + 1) * conv->outputs);
        float *workspace = new_values(kernel_conv_workspace(conv));
        printf("%lld x %lld x %lld, %lldx%lld to %lld, %lld groups\n", (long long)conv->channels,
               (long long)conv->height, (long long)conv->width, (long long)conv->kernel_height,
               (long long)conv->kernel_width, (long long)conv->outputs, (long long)conv->groups);
        for (int s = 1; s < count_sets; s++) {
            const kernel_convolution *run = &sets[s]->convolution;
            double seconds;
            LEAST_TIME(seconds, run->forwards(out, in, conv, weights, bias, workspace));
            bench_one("forwards", sets[s], operations, seconds);
            LEAST_TIME(seconds, run->weights_back(gradient, in, slope, conv, KERNEL_BLOCK));
            bench_one("weights_back", sets[s], operations, seconds);
            if (conv->kernel_height * conv->kernel_width == 1) {
                float *points = new_values(KERNEL_POINT_WORKSPACE);
                LEAST_TIME(seconds, run->points_back(gradient, in, slope, conv, KERNEL_BLOCK, points));
                bench_one("points_back", sets[s], operations, seconds);
            }
            LEAST_TIME(seconds, run->inputs_back(in_slope, slope, conv, weights, workspace));
            bench_one("inputs_back", sets[s], operations, seconds);
        }
        drop_fences();
    }
}

/* What a pool of 2x2 behind it leaves of the first two; of slopes that are not cut, a share of 0.6. */
static void bench_pooled(void)
{
    static const kernel_pooled all[] = {{{1, 28, 28, 5, 5, 1, 20, 24, 24, 1}, true},
                                        {{20, 12, 12, 5, 5, 1, 40, 8, 8, 1}, true},
                                        {{32, 16, 16, 3, 3, 1, 64, 14, 14, 1}, true}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const kernel_pooled *pooled = &all[i];
        const kernel_conv *conv = &pooled->conv;
        const int64_t depth = kernel_conv_depth(conv), gives = conv->outputs * kernel_pooled_places(conv);
        const double operations = 2. * (double)(depth * given_values(conv));
        const float *in = random_values(seen_values(conv)), *weights = random_values(depth * conv->outputs);
        const float *slope = random_values(gives * KERNEL_BLOCK), *bias = random_values(conv->outputs);
        float *out = new_values(gives * KERNEL_BLOCK), *chosen = new_values(gives * KERNEL_BLOCK);
        float *in_slope = new_values(seen_values(conv)), *gradient = random_values((depth + 1) * conv->outputs);
        float *workspace = new_values(kernel_conv_workspace(conv)), *back = new_values(kernel_pooled_workspace(conv));
        for (int64_t j = 0; j < gives * KERNEL_BLOCK; j++)
            chosen[j] = random_unit() < 0.6 ? (float)draw(0, 3) : KERNEL_CUT;
        printf("%lld x %lld x %lld, %lldx%lld to %lld, pool 2; operations as if nothing were left out\n",
               (long long)conv->channels, (long long)conv->height, (long long)conv->width,
               (long long)conv->kernel_height, (long long)conv->kernel_width, (long long)conv->outputs);
        for (int s = 1; s < count_sets; s++) {
            const kernel_convolution *run = &sets[s]->convolution;
            double seconds;
            LEAST_TIME(seconds, run->pooled_weights_back(gradient, in, slope, chosen, pooled, KERNEL_BLOCK, back));
            bench_one("weights_back", sets[s], operations, seconds);
            LEAST_TIME(seconds, run->pooled_inputs_back(in_slope, slope, chosen, pooled, weights, KERNEL_BLOCK, back));
            bench_one("inputs_back", sets[s], operations, seconds);
            LEAST_TIME(seconds, run->pooled_forwards(out, chosen, in, pooled, weights, bias, workspace));
            bench_one("forwards", sets[s], operations, seconds);
        }
        drop_fences();
    }
}

int main(int words, char **word)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_convolutions), cmocka_unit_test(test_single_maps), cmocka_unit_test(test_points),
        cmocka_unit_test(test_clips),        cmocka_unit_test(test_batch_norms), cmocka_unit_test(test_pooled),
        cmocka_unit_test(test_pooled_skips), cmocka_unit_test(test_pools),       cmocka_unit_test(test_transpose),
    };
    count_sets = kernel_list(sets);
    const int failed = cmocka_run_group_tests_name("convolution", tests, NULL, NULL);
    if (words > 1 && strcmp(word[1], "--bench") == 0) {
        bench();
        bench_pooled();
    }
    return failed;
}
