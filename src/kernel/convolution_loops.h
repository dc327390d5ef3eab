/* The loops of convolution.h, for one CPU.
 *
 * Included by each dense_<set>.c between the macros of its vectors of floats, which dense_product.h lists, and that
 * file, and these: V_ADD and V_MULTIPLY; V_ZERO is 0 in all lanes, and V_INDEX(i) is the bits of an int32 in all;
 * V_OVER(a, b) is the V_MASK of where a is greater than b, or NaN, V_SAME(a, b) of where bits are equal, and
 * V_PICK(mask, a, b) is a there and b elsewhere.  A vector may hold fewer rows than a block: `part` is where in the
 * block it begins.  CONV_OUTPUTS outputs times CONV_PLACES places, or BACK_OUTPUTS times BACK_TAPS weights, are as many
 * chains as the registers hold.  Everything is static: code built for one CPU must not be linked into another's. */

enum { CONV_PLACES = 4 };
_Static_assert((int)CONV_OUTPUTS <= (int)KERNEL_CONV_TILE, "workspaces hold a tile's weights");

/* Where the pixel lies that a place sees at the first place of the kernel. */
static inline int64_t corner_of(const kernel_conv *conv, int64_t place)
{
    const int64_t y = place / conv->places_wide, x = place % conv->places_wide;
    return (y * conv->width + x) * conv->stride * KERNEL_BLOCK;
}

/* Cuts `count` into pieces of at most `most` that differ by one, so that no small one is left over. */
static inline int64_t piece_at(int64_t count, int64_t most, int64_t piece)
{
    const int64_t pieces = (count + most - 1) / most;
    return count * piece / pieces;
}

/* ---- forwards ---------------------------------------------------------------------------------------------------- */

/* The chains of `outs` outputs at four places; the outputs' weights lie side by side. */
ALWAYS_INLINE void conv_chains(vector32 sum[CONV_OUTPUTS][CONV_PLACES], const float *const at[CONV_PLACES],
                               const kernel_conv *conv, const float *weights, const float *bias, const int outs)
{
    const int64_t line = conv->width * KERNEL_BLOCK, channels = conv->channels / conv->groups;
    const int64_t to_line = line - conv->kernel_width * KERNEL_BLOCK;
    const int64_t to_map = conv->height * line - conv->kernel_height * line;
    const float *at0 = at[0], *at1 = at[1], *at2 = at[2], *at3 = at[3];
    int64_t from = 0;
    UNROLL
    for (int o = 0; o < outs; o++) {
        UNROLL
        for (int p = 0; p < CONV_PLACES; p++)
            sum[o][p] = V_BROADCAST(bias + o);
    }
    for (int64_t c = 0; c < channels; c++, from += to_map)
        for (int64_t ky = 0; ky < conv->kernel_height; ky++, from += to_line)
            for (int64_t kx = 0; kx < conv->kernel_width; kx++, from += KERNEL_BLOCK, weights += outs) {
                const vector32 seen[CONV_PLACES] = {V_LOAD(at0 + from), V_LOAD(at1 + from), V_LOAD(at2 + from),
                                                    V_LOAD(at3 + from)};
                UNROLL
                for (int o = 0; o < outs; o++) {
                    const vector32 weight = V_BROADCAST(weights + o);
                    UNROLL
                    for (int p = 0; p < CONV_PLACES; p++)
                        sum[o][p] = V_FMA(seen[p], weight, sum[o][p]);
                }
            }
}

/* All places of `outs` outputs that begin with `out`.  Where four places go beyond the last one, that is computed more
 * than once. */
ALWAYS_INLINE void conv_outputs(float *out, const float *in, const kernel_conv *conv, const float *weights,
                                const float *bias, const int outs)
{
    const int64_t places = conv->places_high * conv->places_wide;
    for (int64_t first = 0; first < places; first += CONV_PLACES)
        for (int part = 0; part < KERNEL_BLOCK; part += LANES) {
            vector32 sum[CONV_OUTPUTS][CONV_PLACES];
            const float *at[CONV_PLACES];
            int64_t place[CONV_PLACES];
            for (int p = 0; p < CONV_PLACES; p++) {
                place[p] = first + p < places ? first + p : places - 1;
                at[p] = in + corner_of(conv, place[p]) + part;
            }
            conv_chains(sum, at, conv, weights, bias, outs);
            UNROLL
            for (int o = 0; o < outs; o++) {
                UNROLL
                for (int p = 0; p < CONV_PLACES; p++)
                    V_STORE(out + (o * places + place[p]) * KERNEL_BLOCK + part, sum[o][p]);
            }
        }
}

#define CONV_CASE(outs)                                                                                                \
    case outs:                                                                                                         \
        if (outs <= CONV_OUTPUTS)                                                                                      \
            conv_outputs(out, in, conv, weights, bias, outs <= CONV_OUTPUTS ? outs : 1);                               \
        break;
static void conv_some(float *out, const float *in, const kernel_conv *conv, const float *weights, const float *bias,
                      int64_t outs)
{
    switch (outs) {
        CONV_CASE(1)
        CONV_CASE(2)
        CONV_CASE(3)
        CONV_CASE(4)
        CONV_CASE(5)
        CONV_CASE(6)
    default: break;
    }
}
#undef CONV_CASE

static void conv_forwards(float *out, const float *in, const kernel_conv *conv, const float *weights, const float *bias,
                          float *workspace)
{
    const int64_t places = conv->places_high * conv->places_wide, outputs = conv->outputs / conv->groups;
    const int64_t sees = conv->channels / conv->groups * conv->height * conv->width * KERNEL_BLOCK;
    const int64_t depth = kernel_conv_depth(conv), pieces = (outputs + CONV_OUTPUTS - 1) / CONV_OUTPUTS;
    for (int64_t group = 0; group < conv->groups; group++)
        for (int64_t piece = 0; piece < pieces; piece++) {
            const int64_t first = group * outputs + piece_at(outputs, CONV_OUTPUTS, piece);
            const int64_t outs = group * outputs + piece_at(outputs, CONV_OUTPUTS, piece + 1) - first;
            for (int64_t k = 0; k < depth; k++)
                for (int64_t o = 0; o < outs; o++)
                    workspace[k * outs + o] = weights[k * conv->outputs + first + o];
            conv_some(out + first * places * KERNEL_BLOCK, in + group * sees, conv, workspace, bias + first, outs);
        }
}

/* ---- the gradient of weights ------------------------------------------------------------------------------------- */

enum { BACK_TILE = (BACK_TAPS * BACK_OUTPUTS + LANES - 1) / LANES * LANES };

/* Adds to each of `count` sums its lanes in the order of the rows; there is room for whole vectors of sums. */
static void add_lanes(float *sum, float lanes[][KERNEL_BLOCK], int64_t count, int64_t rows)
{
    for (int64_t i = 0; i < count; i += LANES) {
        vector32 total = V_LOAD(sum + i), column[QUAD];
        for (int64_t row = 0; row < rows; row += QUAD) {
            load_columns32(column, lanes[i] + row, KERNEL_BLOCK);
            for (int q = 0; q < QUAD && row + q < rows; q++)
                total = V_ADD(total, column[q]);
        }
        V_STORE(sum + i, total);
    }
}

/* Weights of a tile: `tap` is where what they see lies; beyond the last one it is seen more than once. */
ALWAYS_INLINE void back_tile(float lanes[][KERNEL_BLOCK], const float *in, const int64_t tap[BACK_TAPS],
                             const float *slope, const kernel_conv *conv, const int outs)
{
    const int64_t places = conv->places_high * conv->places_wide * KERNEL_BLOCK, step = conv->stride * KERNEL_BLOCK;
    for (int part = 0; part < KERNEL_BLOCK; part += LANES) {
        vector32 sum[BACK_TAPS][BACK_OUTPUTS];
        const float *by = slope + part;
        UNROLL
        for (int t = 0; t < BACK_TAPS; t++) {
            UNROLL
            for (int o = 0; o < outs; o++)
                sum[t][o] = V_ZERO;
        }
        for (int64_t y = 0; y < conv->places_high; y++) {
            const float *line = in + y * conv->stride * conv->width * KERNEL_BLOCK + part;
            for (int64_t x = 0; x < conv->places_wide; x++, line += step, by += KERNEL_BLOCK) {
                vector32 from[BACK_OUTPUTS];
                UNROLL
                for (int o = 0; o < outs; o++)
                    from[o] = V_LOAD(by + o * places);
                UNROLL
                for (int t = 0; t < BACK_TAPS; t++) {
                    const vector32 seen = V_LOAD(line + tap[t]);
                    UNROLL
                    for (int o = 0; o < outs; o++)
                        sum[t][o] = V_FMA(seen, from[o], sum[t][o]);
                }
            }
        }
        UNROLL
        for (int t = 0; t < BACK_TAPS; t++) {
            UNROLL
            for (int o = 0; o < outs; o++)
                V_STORE(lanes[t * outs + o] + part, sum[t][o]);
        }
    }
}

/* The same for the biases, which see ones. */
static void back_biases(float *gradient, const float *slope, const kernel_conv *conv, int64_t rows)
{
    const int64_t places = conv->places_high * conv->places_wide;
    _Alignas(64) float lanes[LANES][KERNEL_BLOCK], sum[LANES];
    for (int64_t first = 0; first < conv->outputs; first += LANES) {
        const int64_t outs = conv->outputs - first < LANES ? conv->outputs - first : LANES;
        memset(lanes, 0, sizeof lanes);
        for (int64_t o = 0; o < outs; o++) {
            const float *by = slope + (first + o) * places * KERNEL_BLOCK;
            for (int64_t place = 0; place < places; place++, by += KERNEL_BLOCK)
                for (int part = 0; part < KERNEL_BLOCK; part += LANES)
                    V_STORE(lanes[o] + part, V_ADD(V_LOAD(lanes[o] + part), V_LOAD(by + part)));
            sum[o] = gradient[first + o];
        }
        for (int64_t o = outs; o < LANES; o++)
            sum[o] = 0;
        add_lanes(sum, lanes, outs, rows);
        memcpy(gradient + first, sum, (size_t)outs * sizeof *sum);
    }
}

/* All weights of `outs` outputs, whose slopes begin with `slope`. */
ALWAYS_INLINE void back_outputs(float *gradient, const float *in, const float *slope, const kernel_conv *conv,
                                int64_t rows, const int outs)
{
    const int64_t depth = kernel_conv_depth(conv), of_map = conv->kernel_height * conv->kernel_width;
    _Alignas(64) float lanes[BACK_TILE][KERNEL_BLOCK] = {{0}}, sum[BACK_TILE] = {0};
    for (int64_t first = 0; first < depth; first += BACK_TAPS) {
        const int64_t taps = depth - first < BACK_TAPS ? depth - first : BACK_TAPS;
        int64_t tap[BACK_TAPS];
        for (int64_t t = 0; t < BACK_TAPS; t++) {
            const int64_t k = first + (t < taps ? t : taps - 1), place = k % of_map;
            const int64_t y = place / conv->kernel_width, x = place % conv->kernel_width;
            tap[t] = ((k / of_map * conv->height + y) * conv->width + x) * KERNEL_BLOCK;
            for (int o = 0; o < outs; o++)
                sum[t * outs + o] = gradient[k * conv->outputs + o];
        }
        back_tile(lanes, in, tap, slope, conv, outs);
        add_lanes(sum, lanes, taps * outs, rows);
        for (int64_t t = 0; t < taps; t++)
            for (int o = 0; o < outs; o++)
                gradient[(first + t) * conv->outputs + o] = sum[t * outs + o];
    }
}

#define BACK_CASE(outs)                                                                                                \
    case outs:                                                                                                         \
        if (outs <= BACK_OUTPUTS)                                                                                      \
            back_outputs(gradient, in, slope, conv, rows, outs <= BACK_OUTPUTS ? outs : 1);                            \
        break;
static void back_some(float *gradient, const float *in, const float *slope, const kernel_conv *conv, int64_t rows,
                      int64_t outs)
{
    switch (outs) {
        BACK_CASE(1)
        BACK_CASE(2)
        BACK_CASE(3)
        BACK_CASE(4)
    default: break;
    }
}
#undef BACK_CASE

static void conv_weights_back(float *gradient, const float *in, const float *slope, const kernel_conv *conv,
                              int64_t rows)
{
    const int64_t places = conv->places_high * conv->places_wide, outputs = conv->outputs / conv->groups;
    const int64_t sees = conv->channels / conv->groups * conv->height * conv->width * KERNEL_BLOCK;
    const int64_t pieces = (outputs + BACK_OUTPUTS - 1) / BACK_OUTPUTS;
    for (int64_t group = 0; group < conv->groups; group++)
        for (int64_t piece = 0; piece < pieces; piece++) {
            const int64_t first = group * outputs + piece_at(outputs, BACK_OUTPUTS, piece);
            const int64_t outs = group * outputs + piece_at(outputs, BACK_OUTPUTS, piece + 1) - first;
            back_some(gradient + first, in + group * sees, slope + first * places * KERNEL_BLOCK, conv, rows, outs);
        }
    back_biases(gradient + kernel_conv_depth(conv) * conv->outputs, slope, conv, rows);
}

/* ---- derivatives by inputs --------------------------------------------------------------------------------------- */

/* What `maps` maps are given at one place of the kernel, by all places; the maps' weights lie side by side. */
ALWAYS_INLINE void give_back(float *in_slope, const float *slope, const kernel_conv *conv, const float *weights,
                             const int maps)
{
    const int64_t places = conv->places_high * conv->places_wide, map = conv->height * conv->width * KERNEL_BLOCK;
    const int64_t outputs = conv->outputs / conv->groups;
    for (int64_t first = 0; first < places; first += CONV_PLACES)
        for (int part = 0; part < KERNEL_BLOCK; part += LANES) {
            const int64_t left = places - first;
            vector32 sum[CONV_OUTPUTS][CONV_PLACES];
            const float *by = slope + first * KERNEL_BLOCK + part, *weight = weights;
            const int64_t one = left > 1 ? KERNEL_BLOCK : 0, two = left > 2 ? 2 * KERNEL_BLOCK : one,
                          three = left > 3 ? 3 * KERNEL_BLOCK : two;
            UNROLL
            for (int c = 0; c < maps; c++) {
                UNROLL
                for (int p = 0; p < CONV_PLACES; p++)
                    sum[c][p] = V_ZERO;
            }
            for (int64_t o = 0; o < outputs; o++, by += places * KERNEL_BLOCK, weight += maps) {
                const vector32 from[CONV_PLACES] = {V_LOAD(by), V_LOAD(by + one), V_LOAD(by + two), V_LOAD(by + three)};
                UNROLL
                for (int c = 0; c < maps; c++) {
                    const vector32 factor = V_BROADCAST(weight + c);
                    UNROLL
                    for (int p = 0; p < CONV_PLACES; p++)
                        sum[c][p] = V_FMA(from[p], factor, sum[c][p]);
                }
            }
            UNROLL
            for (int p = 0; p < CONV_PLACES; p++) {
                if (p >= left)
                    break;
                float *to = in_slope + corner_of(conv, first + p) + part;
                UNROLL
                for (int c = 0; c < maps; c++)
                    V_STORE(to + c * map, V_ADD(V_LOAD(to + c * map), sum[c][p]));
            }
        }
}

#define GIVE_CASE(maps)                                                                                                \
    case maps:                                                                                                         \
        if (maps <= CONV_OUTPUTS)                                                                                      \
            give_back(in_slope, slope, conv, weights, maps <= CONV_OUTPUTS ? maps : 1);                                \
        break;
static void give_some(float *in_slope, const float *slope, const kernel_conv *conv, const float *weights, int64_t maps)
{
    switch (maps) {
        GIVE_CASE(1)
        GIVE_CASE(2)
        GIVE_CASE(3)
        GIVE_CASE(4)
        GIVE_CASE(5)
        GIVE_CASE(6)
    default: break;
    }
}
#undef GIVE_CASE

/* A few maps of a group at a time, and for these one place of the kernel after another. */
static void give_maps(float *in_slope, const float *slope, const kernel_conv *conv, const float *weights, int64_t maps,
                      float *workspace)
{
    const int64_t of_map = conv->kernel_height * conv->kernel_width, outputs = conv->outputs / conv->groups;
    for (int64_t k = 0; k < of_map; k++) {
        const int64_t ky = k / conv->kernel_width, kx = k % conv->kernel_width;
        for (int64_t c = 0; c < maps; c++)
            for (int64_t o = 0; o < outputs; o++)
                workspace[o * maps + c] = weights[(c * of_map + k) * conv->outputs + o];
        give_some(in_slope + (ky * conv->width + kx) * KERNEL_BLOCK, slope, conv, workspace, maps);
    }
}

static void conv_inputs_back(float *in_slope, const float *slope, const kernel_conv *conv, const float *weights,
                             float *workspace)
{
    const int64_t places = conv->places_high * conv->places_wide * KERNEL_BLOCK;
    const int64_t channels = conv->channels / conv->groups, outputs = conv->outputs / conv->groups;
    const int64_t map = conv->height * conv->width * KERNEL_BLOCK, of_map = conv->kernel_height * conv->kernel_width;
    const int64_t pieces = (channels + CONV_OUTPUTS - 1) / CONV_OUTPUTS;
    memset(in_slope, 0, (size_t)(conv->channels * map) * sizeof *in_slope);
    for (int64_t group = 0; group < conv->groups; group++)
        for (int64_t piece = 0; piece < pieces; piece++) {
            const int64_t first = piece_at(channels, CONV_OUTPUTS, piece);
            const int64_t maps = piece_at(channels, CONV_OUTPUTS, piece + 1) - first;
            give_maps(in_slope + (group * channels + first) * map, slope + group * outputs * places, conv,
                      weights + first * of_map * conv->outputs + group * outputs, maps, workspace);
        }
}

/* ---- pools ------------------------------------------------------------------------------------------------------- */

static void pool_greatest(float *out, int32_t *chosen, const float *in, const kernel_conv *conv)
{
    const int64_t places = conv->places_high * conv->places_wide, map = conv->height * conv->width * KERNEL_BLOCK;
    for (int64_t i = 0; i < conv->channels * places * KERNEL_BLOCK; i += LANES) {
        const int64_t place = i / KERNEL_BLOCK;
        const float *seen = in + place / places * map + corner_of(conv, place % places) + i % KERNEL_BLOCK;
        vector32 greatest = V_LOAD(seen), most = V_INDEX(0);
        int32_t at = 0;
        for (int64_t ky = 0; ky < conv->kernel_height; ky++, seen += conv->width * KERNEL_BLOCK)
            for (int64_t kx = 0; kx < conv->kernel_width; kx++, at++) {
                const vector32 value = V_LOAD(seen + kx * KERNEL_BLOCK);
                const V_MASK more = V_OVER(value, greatest);
                greatest = V_PICK(more, value, greatest);
                most = V_PICK(more, V_INDEX(at), most);
            }
        V_STORE(out + i, greatest);
        if (chosen)
            V_STORE((float *)(void *)(chosen + i), most);
    }
}

static void pool_greatest_back(float *in_slope, const float *slope, const int32_t *chosen, const kernel_conv *conv)
{
    const int64_t places = conv->places_high * conv->places_wide, map = conv->height * conv->width * KERNEL_BLOCK;
    memset(in_slope, 0, (size_t)(conv->channels * map) * sizeof *in_slope);
    for (int64_t i = 0; i < conv->channels * places * KERNEL_BLOCK; i += LANES) {
        const int64_t place = i / KERNEL_BLOCK;
        float *to = in_slope + place / places * map + corner_of(conv, place % places) + i % KERNEL_BLOCK;
        const vector32 most = V_LOAD((const float *)(const void *)(chosen + i)), each = V_LOAD(slope + i);
        int32_t at = 0;
        for (int64_t ky = 0; ky < conv->kernel_height; ky++, to += conv->width * KERNEL_BLOCK)
            for (int64_t kx = 0; kx < conv->kernel_width; kx++, at++) {
                float *pixel = to + kx * KERNEL_BLOCK;
                V_STORE(pixel, V_ADD(V_LOAD(pixel), V_PICK(V_SAME(most, V_INDEX(at)), each, V_ZERO)));
            }
    }
}

static void pool_average(float *out, const float *in, const kernel_conv *conv)
{
    const int64_t places = conv->places_high * conv->places_wide, map = conv->height * conv->width * KERNEL_BLOCK;
    const float share = 1 / (float)(conv->kernel_height * conv->kernel_width);
    for (int64_t i = 0; i < conv->channels * places * KERNEL_BLOCK; i += LANES) {
        const int64_t place = i / KERNEL_BLOCK;
        const float *seen = in + place / places * map + corner_of(conv, place % places) + i % KERNEL_BLOCK;
        vector32 sum = V_ZERO;
        for (int64_t ky = 0; ky < conv->kernel_height; ky++, seen += conv->width * KERNEL_BLOCK)
            for (int64_t kx = 0; kx < conv->kernel_width; kx++)
                sum = V_ADD(sum, V_LOAD(seen + kx * KERNEL_BLOCK));
        V_STORE(out + i, V_MULTIPLY(sum, V_BROADCAST(&share)));
    }
}

static void pool_average_back(float *in_slope, const float *slope, const kernel_conv *conv)
{
    const int64_t places = conv->places_high * conv->places_wide, map = conv->height * conv->width * KERNEL_BLOCK;
    const float share = 1 / (float)(conv->kernel_height * conv->kernel_width);
    memset(in_slope, 0, (size_t)(conv->channels * map) * sizeof *in_slope);
    for (int64_t i = 0; i < conv->channels * places * KERNEL_BLOCK; i += LANES) {
        const int64_t place = i / KERNEL_BLOCK;
        float *to = in_slope + place / places * map + corner_of(conv, place % places) + i % KERNEL_BLOCK;
        const vector32 each = V_MULTIPLY(V_LOAD(slope + i), V_BROADCAST(&share));
        for (int64_t ky = 0; ky < conv->kernel_height; ky++, to += conv->width * KERNEL_BLOCK)
            for (int64_t kx = 0; kx < conv->kernel_width; kx++)
                V_STORE(to + kx * KERNEL_BLOCK, V_ADD(V_LOAD(to + kx * KERNEL_BLOCK), each));
    }
}

/* ---- order ------------------------------------------------------------------------------------------------------- */

/* As many rows as a vector holds, and QUAD columns, at a time. */
static void transpose_rows(float *restrict out, int64_t out_row, const float *restrict values, int64_t row,
                           int64_t rows, int64_t columns)
{
    int64_t i = 0;
    for (; i + LANES <= rows; i += LANES) {
        const float *from = values + i * row;
        int64_t j = 0;
        for (; j + QUAD <= columns; j += QUAD) {
            vector32 column[QUAD];
            load_columns32(column, from + j, row);
            for (int k = 0; k < QUAD; k++)
                V_STORE(out + (j + k) * out_row + i, column[k]);
        }
        for (; j < columns; j++)
            for (int64_t k = 0; k < LANES; k++)
                out[j * out_row + i + k] = from[k * row + j];
        if (i + LANES < rows && i + 2 * LANES > rows) /* those that are left, together with some once more */
            i = rows - 2 * LANES;
    }
    for (int64_t j = 0; j < columns; j++)
        for (int64_t k = i; k < rows; k++)
            out[j * out_row + k] = values[k * row + j];
}

#include "kernel/convolution_pooled.h"

static void fill_convolution(kernel_convolution *convolution)
{
    convolution->forwards = conv_forwards;
    convolution->weights_back = conv_weights_back;
    convolution->inputs_back = conv_inputs_back;
    convolution->greatest = pool_greatest;
    convolution->greatest_back = pool_greatest_back;
    convolution->average = pool_average;
    convolution->average_back = pool_average_back;
    convolution->pooled_forwards = pooled_forwards;
    convolution->pooled_weights_back = pooled_weights_back;
    convolution->pooled_inputs_back = pooled_inputs_back;
    convolution->transpose = transpose_rows;
}
