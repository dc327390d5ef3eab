/* The loops of convolution.h for one CPU that go map by map: depthwise and 1x1 convolutions, batch norm, relu.
 *
 * Included by each dense_<set>.c behind convolution_loops.h, whose words it uses, and with these: wide64 is a vector of
 * WIDE_LANES doubles, which has the operators of numbers, and W_LOAD(p) makes it of as many floats.  POINT_TAPS times
 * POINT_OUTPUTS chains are as many as the registers hold.  Everything is static: code built for one CPU must not be
 * linked into another's. */

enum { MAP_PLACES = 8, MAP_TAPS = 9 };

/* ---- depthwise, forwards ----------------------------------------------------------------------------------------- */

/* The chains of `tile` places of a line, which are `step` pixels apart. */
ALWAYS_INLINE void map_tile(float *out, const float *in, const kernel_conv *conv, const float *weights, float bias,
                            const int tile, const int64_t step)
{
    for (int part = 0; part < KERNEL_BLOCK; part += LANES) {
        vector32 sum[MAP_PLACES];
        const float *line = in + part, *weight = weights;
        UNROLL
        for (int p = 0; p < tile; p++)
            sum[p] = V_BROADCAST(&bias);
        for (int64_t ky = 0; ky < conv->kernel_height; ky++, line += conv->width * KERNEL_BLOCK)
            for (int64_t kx = 0; kx < conv->kernel_width; kx++, weight++) {
                const vector32 factor = V_BROADCAST(weight);
                UNROLL
                for (int p = 0; p < tile; p++)
                    sum[p] = V_FMA(V_LOAD(line + (kx + p * step) * KERNEL_BLOCK), factor, sum[p]);
            }
        UNROLL
        for (int p = 0; p < tile; p++)
            V_STORE(out + p * KERNEL_BLOCK + part, sum[p]);
    }
}

/* All lines, tile by tile; the last tile of a line begins early, so that some places are computed twice. */
ALWAYS_INLINE void map_lines(float *out, const float *in, const kernel_conv *conv, const float *weights, float bias,
                             const int tile, const int64_t step)
{
    const int64_t wide = conv->places_wide;
    for (int64_t y = 0; y < conv->places_high; y++, out += wide * KERNEL_BLOCK) {
        const float *line = in + y * conv->stride * conv->width * KERNEL_BLOCK;
        for (int64_t first = 0; first < wide; first += tile) {
            const int64_t x = first + tile <= wide ? first : wide - tile;
            map_tile(out + x * KERNEL_BLOCK, line + x * step * KERNEL_BLOCK, conv, weights, bias, tile, step);
        }
    }
}

static void map_forwards(float *out, const float *in, const kernel_conv *conv, const float *weights, float bias)
{
    const int64_t wide = conv->places_wide;
    if (conv->stride == 1 && wide >= 8)
        map_lines(out, in, conv, weights, bias, 8, 1);
    else if (conv->stride == 2 && wide >= 8)
        map_lines(out, in, conv, weights, bias, 8, 2);
    else if (wide >= 4)
        map_lines(out, in, conv, weights, bias, 4, conv->stride);
    else
        map_lines(out, in, conv, weights, bias, 1, conv->stride);
}

/* ---- depthwise, backwards ---------------------------------------------------------------------------------------- */

/* Chains of MAP_TAPS weights; `tap` is where what they see lies. */
ALWAYS_INLINE void map_taps(float lanes[][KERNEL_BLOCK], const float *in, const int64_t tap[MAP_TAPS],
                            const float *slope, const kernel_conv *conv)
{
    const int64_t step = conv->stride * KERNEL_BLOCK;
    for (int part = 0; part < KERNEL_BLOCK; part += LANES) {
        vector32 sum[MAP_TAPS];
        const float *by = slope + part;
        UNROLL
        for (int t = 0; t < MAP_TAPS; t++)
            sum[t] = V_ZERO;
        for (int64_t y = 0; y < conv->places_high; y++) {
            const float *line = in + y * conv->stride * conv->width * KERNEL_BLOCK + part;
            for (int64_t x = 0; x < conv->places_wide; x++, line += step, by += KERNEL_BLOCK) {
                const vector32 from = V_LOAD(by);
                UNROLL
                for (int t = 0; t < MAP_TAPS; t++)
                    sum[t] = V_FMA(V_LOAD(line + tap[t]), from, sum[t]);
            }
        }
        UNROLL
        for (int t = 0; t < MAP_TAPS; t++)
            V_STORE(lanes[t] + part, sum[t]);
    }
}

static void map_weights_back(float *gradient, const float *in, const float *slope, const kernel_conv *conv,
                             int64_t rows)
{
    enum { TILE = (MAP_TAPS + LANES - 1) / LANES * LANES };
    const int64_t weights = conv->kernel_height * conv->kernel_width;
    _Alignas(64) float lanes[TILE][KERNEL_BLOCK] = {{0}}, sum[TILE] = {0};
    for (int64_t first = 0; first < weights; first += MAP_TAPS) {
        const int64_t taps = weights - first < MAP_TAPS ? weights - first : MAP_TAPS;
        int64_t tap[MAP_TAPS];
        for (int64_t t = 0; t < MAP_TAPS; t++) {
            const int64_t k = first + (t < taps ? t : taps - 1);
            tap[t] = (k / conv->kernel_width * conv->width + k % conv->kernel_width) * KERNEL_BLOCK;
        }
        map_taps(lanes, in, tap, slope, conv);
        memcpy(sum, gradient + first, (size_t)taps * sizeof *sum);
        add_lanes(sum, lanes, taps, rows);
        memcpy(gradient + first, sum, (size_t)taps * sizeof *sum);
    }
    back_biases(gradient + weights, slope, conv, rows);
}

/* Some pixels side by side that each see every column of the kernel, from its lines `from` to `to`. */
ALWAYS_INLINE void map_pixels(float *out, const float *slope, const kernel_conv *conv, const float *weights,
                              int64_t from, int64_t to, const int pixels)
{
    for (int part = 0; part < KERNEL_BLOCK; part += LANES) {
        vector32 sum[MAP_PLACES];
        UNROLL
        for (int p = 0; p < pixels; p++)
            sum[p] = V_ZERO;
        for (int64_t ky = from; ky < to; ky++)
            for (int64_t kx = 0; kx < conv->kernel_width; kx++) {
                const vector32 factor = V_BROADCAST(weights + ky * conv->kernel_width + kx);
                const float *at = slope - (ky * conv->places_wide + kx) * KERNEL_BLOCK + part;
                UNROLL
                for (int p = 0; p < pixels; p++)
                    sum[p] = V_FMA(V_LOAD(at + p * KERNEL_BLOCK), factor, sum[p]);
            }
        UNROLL
        for (int p = 0; p < pixels; p++)
            V_STORE(out + p * KERNEL_BLOCK + part, sum[p]);
    }
}

/* A pixel that sees what there is of the kernel. */
static void map_pixel(float *out, const float *slope, const kernel_conv *conv, const float *weights, int64_t y,
                      int64_t x)
{
    vector32 sum[KERNEL_BLOCK / LANES];
    for (int v = 0; v < KERNEL_BLOCK / LANES; v++)
        sum[v] = V_ZERO;
    for (int64_t ky = 0; ky < conv->kernel_height && ky <= y; ky++) {
        const int64_t place_y = (y - ky) / conv->stride;
        if ((y - ky) % conv->stride != 0 || place_y >= conv->places_high)
            continue;
        for (int64_t kx = 0; kx < conv->kernel_width && kx <= x; kx++) {
            const int64_t place_x = (x - kx) / conv->stride;
            const float *at = slope + (place_y * conv->places_wide + place_x) * KERNEL_BLOCK;
            if ((x - kx) % conv->stride != 0 || place_x >= conv->places_wide)
                continue;
            for (int v = 0; v < KERNEL_BLOCK / LANES; v++)
                sum[v] = V_FMA(V_LOAD(at + v * LANES), V_BROADCAST(weights + ky * conv->kernel_width + kx), sum[v]);
        }
    }
    for (int v = 0; v < KERNEL_BLOCK / LANES; v++)
        V_STORE(out + v * LANES, sum[v]);
}

/* A line of pixels of a kernel that goes by single steps. */
static void map_line_back(float *out, const float *slope, const kernel_conv *conv, const float *weights, int64_t y)
{
    const int64_t from = y < conv->places_high ? 0 : y - conv->places_high + 1;
    const int64_t to = y < conv->kernel_height ? y + 1 : conv->kernel_height;
    for (int64_t x = 0; x < conv->width;) {
        const bool inside = x >= conv->kernel_width - 1;
        const float *at = slope + (y * conv->places_wide + x) * KERNEL_BLOCK;
        float *pixel = out + x * KERNEL_BLOCK;
        if (inside && x + MAP_PLACES <= conv->places_wide) {
            map_pixels(pixel, at, conv, weights, from, to, MAP_PLACES);
            x += MAP_PLACES;
        } else if (inside && x + 2 <= conv->places_wide) {
            map_pixels(pixel, at, conv, weights, from, to, 2);
            x += 2;
        } else {
            map_pixel(pixel, slope, conv, weights, y, x++);
        }
    }
}

/* A line of a kernel that goes by larger steps: one place of it after another. */
static void map_line_spread(float *out, const float *slope, const kernel_conv *conv, const float *weights, int64_t y)
{
    memset(out, 0, (size_t)(conv->width * KERNEL_BLOCK) * sizeof *out);
    for (int64_t ky = y % conv->stride; ky < conv->kernel_height && ky <= y; ky += conv->stride) {
        const float *line = slope + (y - ky) / conv->stride * conv->places_wide * KERNEL_BLOCK;
        if ((y - ky) / conv->stride >= conv->places_high)
            continue;
        for (int64_t kx = 0; kx < conv->kernel_width; kx++) {
            const vector32 factor = V_BROADCAST(weights + ky * conv->kernel_width + kx);
            for (int64_t x = 0; x < conv->places_wide; x++)
                for (int part = 0; part < KERNEL_BLOCK; part += LANES) {
                    float *pixel = out + (x * conv->stride + kx) * KERNEL_BLOCK + part;
                    V_STORE(pixel, V_FMA(V_LOAD(line + x * KERNEL_BLOCK + part), factor, V_LOAD(pixel)));
                }
        }
    }
}

static void map_inputs_back(float *in_slope, const float *slope, const kernel_conv *conv, const float *weights)
{
    for (int64_t y = 0; y < conv->height; y++)
        (conv->stride == 1 ? map_line_back : map_line_spread)(in_slope + y * conv->width * KERNEL_BLOCK, slope, conv,
                                                              weights, y);
}

/* ---- the gradient of weights of 1x1 ------------------------------------------------------------------------------ */

enum { POINT_CHUNK = 48 }; /* pixels of the maps and outputs at hand, which the second cache holds */

/* Goes on with chains over `pixels` pixels, which lie `map` apart in other maps, or begins them. */
ALWAYS_INLINE void point_tile(float *lanes, const float *in, const float *slope, int64_t map, int64_t pixels,
                              int64_t taps, bool begins, const int outs)
{
    const int64_t last = taps < POINT_TAPS ? taps - 1 : POINT_TAPS - 1; /* beyond it this is computed more than once */
    for (int part = 0; part < KERNEL_BLOCK; part += LANES) {
        vector32 sum[POINT_TAPS][POINT_OUTPUTS];
        const float *at[POINT_TAPS], *by = slope + part;
        float *to[POINT_TAPS];
        UNROLL
        for (int t = 0; t < POINT_TAPS; t++) {
            at[t] = in + (t < last ? t : last) * map + part;
            to[t] = lanes + (t < last ? t : last) * KERNEL_POINT_OUTPUTS * KERNEL_BLOCK + part;
            UNROLL
            for (int o = 0; o < outs; o++)
                sum[t][o] = begins ? V_ZERO : V_LOAD(to[t] + o * KERNEL_BLOCK);
        }
        for (int64_t i = 0; i < pixels * KERNEL_BLOCK; i += KERNEL_BLOCK) {
            vector32 from[POINT_OUTPUTS];
            UNROLL
            for (int o = 0; o < outs; o++)
                from[o] = V_LOAD(by + o * map + i);
            UNROLL
            for (int t = 0; t < POINT_TAPS; t++) {
                const vector32 seen = V_LOAD(at[t] + i);
                UNROLL
                for (int o = 0; o < outs; o++)
                    sum[t][o] = V_FMA(seen, from[o], sum[t][o]);
            }
        }
        UNROLL
        for (int t = 0; t < POINT_TAPS; t++) {
            UNROLL
            for (int o = 0; o < outs; o++)
                V_STORE(to[t] + o * KERNEL_BLOCK, sum[t][o]);
        }
    }
}

#define POINT_CASE(count)                                                                                              \
    case count:                                                                                                        \
        if (count <= POINT_OUTPUTS)                                                                                    \
            point_tile(lanes, in, slope, map, pixels, taps, begins, count <= POINT_OUTPUTS ? count : 1);               \
        break;
static void point_some(float *lanes, const float *in, const float *slope, int64_t map, int64_t pixels, int64_t taps,
                       bool begins, int64_t outs)
{
    switch (outs) {
        POINT_CASE(1)
        POINT_CASE(2)
        POINT_CASE(3)
        POINT_CASE(4)
    default: break;
    }
}
#undef POINT_CASE

/* The weights of some outputs for some maps. */
static void point_panel(float *gradient, const float *in, const float *slope, const kernel_conv *conv, int64_t maps,
                        int64_t outputs, int64_t rows, float *lanes)
{
    const int64_t places = conv->height * conv->width, map = places * KERNEL_BLOCK;
    const int64_t pieces = (outputs + POINT_OUTPUTS - 1) / POINT_OUTPUTS;
    for (int64_t first = 0; first < places; first += POINT_CHUNK) {
        const int64_t left = places - first, pixels = left < POINT_CHUNK ? left : POINT_CHUNK;
        for (int64_t c = 0; c < maps; c += POINT_TAPS)
            for (int64_t piece = 0; piece < pieces; piece++) {
                const int64_t o = piece_at(outputs, POINT_OUTPUTS, piece);
                point_some(lanes + (c * KERNEL_POINT_OUTPUTS + o) * KERNEL_BLOCK, in + c * map + first * KERNEL_BLOCK,
                           slope + o * map + first * KERNEL_BLOCK, map, pixels, maps - c, first == 0,
                           piece_at(outputs, POINT_OUTPUTS, piece + 1) - o);
            }
    }
    for (int64_t c = 0; c < maps; c++, gradient += conv->outputs) {
        float sum[KERNEL_POINT_OUTPUTS] = {0};
        memcpy(sum, gradient, (size_t)outputs * sizeof *sum);
        add_lanes(sum, (float(*)[KERNEL_BLOCK])(void *)(lanes + c * KERNEL_POINT_OUTPUTS * KERNEL_BLOCK), outputs,
                  rows);
        memcpy(gradient, sum, (size_t)outputs * sizeof *sum);
    }
}

static void points_back(float *gradient, const float *in, const float *slope, const kernel_conv *conv, int64_t rows,
                        float *workspace)
{
    const int64_t map = conv->height * conv->width * KERNEL_BLOCK, channels = conv->channels, outputs = conv->outputs;
    for (int64_t c = 0; c < channels; c += KERNEL_POINT_MAPS)
        for (int64_t o = 0; o < outputs; o += KERNEL_POINT_OUTPUTS)
            point_panel(gradient + c * outputs + o, in + c * map, slope + o * map, conv,
                        channels - c < KERNEL_POINT_MAPS ? channels - c : KERNEL_POINT_MAPS,
                        outputs - o < KERNEL_POINT_OUTPUTS ? outputs - o : KERNEL_POINT_OUTPUTS, rows, workspace);
    back_biases(gradient + channels * outputs, slope, conv, rows);
}

/* ---- batch norm -------------------------------------------------------------------------------------------------- */

/* The chains of two vectors of rows, each of its even and of its odd places; x and y may be the `same`. */
ALWAYS_INLINE void norm_chains(double *of_x, double *of_both, const float *x, const float *y, int64_t places,
                               const bool same)
{
    wide64 sum[2][2], product[2][2];
    for (int v = 0; v < 2; v++)
        sum[0][v] = sum[1][v] = product[0][v] = product[1][v] = (wide64){0};
    for (int64_t place = 0; place < places; place += 2) {
        UNROLL
        for (int odd = 0; odd < 2; odd++) {
            if (place + odd == places)
                break;
            UNROLL
            for (int v = 0; v < 2; v++) {
                const int64_t at = (place + odd) * KERNEL_BLOCK + v * WIDE_LANES;
                const wide64 value = W_LOAD(x + at), other = same ? value : W_LOAD(y + at);
                sum[odd][v] += value;
                product[odd][v] += value * other;
            }
        }
    }
    for (int v = 0; v < 2; v++) {
        const wide64 all = sum[0][v] + sum[1][v], both = product[0][v] + product[1][v];
        memcpy(of_x + v * WIDE_LANES, &all, sizeof all);
        memcpy(of_both + v * WIDE_LANES, &both, sizeof both);
    }
}

static void norm_sums(double *sum, double *products, const float *x, const float *y, int64_t maps, int64_t places,
                      int64_t rows)
{
    for (int64_t m = 0; m < maps; m++, x += places * KERNEL_BLOCK, y += places * KERNEL_BLOCK) {
        double of_x[KERNEL_BLOCK], of_both[KERNEL_BLOCK];
        for (int row = 0; row < KERNEL_BLOCK; row += 2 * WIDE_LANES)
            if (x == y)
                norm_chains(of_x + row, of_both + row, x + row, x + row, places, true);
            else
                norm_chains(of_x + row, of_both + row, x + row, y + row, places, false);
        for (int64_t row = 0; row < rows; row++) {
            sum[m] += of_x[row];
            products[m] += of_both[row];
        }
    }
}

static void norm_scale(float *out, const float *x, const float *scale, const float *shift, int64_t maps, int64_t places)
{
    const int64_t map = places * KERNEL_BLOCK;
    for (int64_t m = 0; m < maps; m++, out += map, x += map) {
        const vector32 factor = V_BROADCAST(scale + m), plus = V_BROADCAST(shift + m);
        for (int64_t i = 0; i < map; i += LANES)
            V_STORE(out + i, V_FMA(V_LOAD(x + i), factor, plus));
    }
}

static void norm_scale_back(float *slope, const float *x, const float *by_slope, const float *by_x, const float *shift,
                            int64_t maps, int64_t places)
{
    const int64_t map = places * KERNEL_BLOCK;
    for (int64_t m = 0; m < maps; m++, slope += map, x += map) {
        const vector32 of_slope = V_BROADCAST(by_slope + m), of_x = V_BROADCAST(by_x + m);
        const vector32 plus = V_BROADCAST(shift + m);
        for (int64_t i = 0; i < map; i += LANES)
            V_STORE(slope + i, V_FMA(V_LOAD(slope + i), of_slope, V_FMA(V_LOAD(x + i), of_x, plus)));
    }
}

/* ---- relu -------------------------------------------------------------------------------------------------------- */

static void clip(float *out, const float *x, float most, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        const float low = x[i] < 0 ? 0 : x[i];
        out[i] = low > most ? most : low;
    }
}

static void clip_back(float *restrict slope, const float *restrict gave, float most, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        const float inner = gave[i] < most ? slope[i] : 0;
        slope[i] = gave[i] > 0 ? inner : 0;
    }
}

static void fill_maps(kernel_convolution *convolution)
{
    convolution->points_back = points_back;
    convolution->map_forwards = map_forwards;
    convolution->map_weights_back = map_weights_back;
    convolution->map_inputs_back = map_inputs_back;
    convolution->sums = norm_sums;
    convolution->scale = norm_scale;
    convolution->scale_back = norm_scale_back;
    convolution->clip = clip;
    convolution->clip_back = clip_back;
}

#undef V_ADD
#undef V_MULTIPLY
#undef V_ZERO
#undef V_MASK
#undef V_OVER
#undef V_SAME
#undef V_PICK
#undef V_INDEX
#undef W_LOAD
