/* A convolution and the greatest of every 2x2 of its places, for one CPU: see kernel_pooled in convolution.h.
 *
 * Included by convolution_loops.h, from which it takes the vectors of floats.  Besides these it wants vectors of as
 * many int32, `integers32`, with I_LOAD, I_ADD and I_BROADCAST; V_UNLIKE(a, b), the V_MASK of where a is not b, and
 * V_BOTH(mask, mask); V_LOOK_UP(table, v), which is table[(int)v] for a table of four; and
 * V_KEEP(values, places, v, p, mask), which writes the chosen lanes of v and of p one after another, up to LANES of
 * either, and returns how many were chosen.  KEPT_CHAINS is how many chains registers hold.  Where shorter vectors are
 * quicker to load, these are `few32` of FEW_LANES with N_ZERO, N_ADD, N_LOAD, N_STORE, N_BROADCAST and N_FMA.
 *
 * Forwards, the four places of a tile are those that the pool compares: what it drops is never stored.  Backwards, few
 * places have a slope: of four the one that was chosen, and of these not the ones that the relu cut.  They differ from
 * row to row, so lanes are no longer rows: they are what a line of the kernel sees, channel by channel at each pixel,
 * and where slopes are is listed. */

enum { KEPT_LINES = 5, KEPT_VECTORS = KEPT_CHAINS < 12 ? KEPT_CHAINS : 12 };

/* ---- forwards ---------------------------------------------------------------------------------------------------- */

/* The first of the greatest values, NaN before all others. */
ALWAYS_INLINE void choose_greatest(float *out, float *chosen, const vector32 sum[CONV_PLACES], bool relu)
{
    static const float number[CONV_PLACES + 1] = {0, 1, 2, 3, KERNEL_CUT};
    vector32 greatest = sum[0], most = V_ZERO;
    UNROLL
    for (int p = 1; p < CONV_PLACES; p++) {
        const V_MASK more = V_OVER(sum[p], greatest);
        greatest = V_PICK(more, sum[p], greatest);
        most = V_PICK(more, V_BROADCAST(number + p), most);
    }
    if (relu) {
        const V_MASK stays = V_OVER(greatest, V_ZERO);
        greatest = V_PICK(stays, greatest, V_ZERO);
        most = V_PICK(stays, most, V_BROADCAST(number + KERNEL_CUT));
    }
    V_STORE(out, greatest);
    if (chosen)
        V_STORE(chosen, most);
}

ALWAYS_INLINE void pooled_outputs(float *out, float *chosen, const float *in, const kernel_pooled *pooled,
                                  const float *weights, const float *bias, const int outs)
{
    const kernel_conv *conv = &pooled->conv;
    const int64_t high = conv->places_high / 2, wide = conv->places_wide / 2;
    const int64_t right = conv->stride * KERNEL_BLOCK, down = conv->width * right;
    for (int64_t place = 0; place < high * wide; place++)
        for (int part = 0; part < KERNEL_BLOCK; part += LANES) {
            const float *corner = in + 2 * (place / wide * down + place % wide * right) + part;
            const float *at[CONV_PLACES] = {corner, corner + right, corner + down, corner + down + right};
            vector32 sum[CONV_OUTPUTS][CONV_PLACES];
            conv_chains(sum, at, conv, weights, bias, outs);
            UNROLL
            for (int o = 0; o < outs; o++) {
                const int64_t to = (o * high * wide + place) * KERNEL_BLOCK + part;
                choose_greatest(out + to, chosen ? chosen + to : NULL, sum[o], pooled->relu);
            }
        }
}

#define POOLED_CASE(outs)                                                                                              \
    case outs:                                                                                                         \
        if (outs <= CONV_OUTPUTS)                                                                                      \
            pooled_outputs(out, chosen, in, pooled, weights, bias, outs <= CONV_OUTPUTS ? outs : 1);                   \
        break;
static void pooled_some(float *out, float *chosen, const float *in, const kernel_pooled *pooled, const float *weights,
                        const float *bias, int64_t outs)
{
    switch (outs) {
        POOLED_CASE(1)
        POOLED_CASE(2)
        POOLED_CASE(3)
        POOLED_CASE(4)
        POOLED_CASE(5)
        POOLED_CASE(6)
    default: break;
    }
}
#undef POOLED_CASE

static void pooled_forwards(float *out, float *chosen, const float *in, const kernel_pooled *pooled,
                            const float *weights, const float *bias, float *workspace)
{
    const kernel_conv *conv = &pooled->conv;
    const int64_t gives = kernel_pooled_places(conv) * KERNEL_BLOCK, depth = kernel_conv_depth(conv);
    const int64_t pieces = (conv->outputs + CONV_OUTPUTS - 1) / CONV_OUTPUTS;
    for (int64_t piece = 0; piece < pieces; piece++) {
        const int64_t first = piece_at(conv->outputs, CONV_OUTPUTS, piece);
        const int64_t outs = piece_at(conv->outputs, CONV_OUTPUTS, piece + 1) - first;
        for (int64_t k = 0; k < depth; k++)
            for (int64_t o = 0; o < outs; o++)
                workspace[k * outs + o] = weights[k * conv->outputs + first + o];
        pooled_some(out + first * gives, chosen ? chosen + first * gives : NULL, in, pooled, workspace, bias + first,
                    outs);
    }
}

/* ---- chains over what was kept ----------------------------------------------------------------------------------- */

/* Slopes that are not 0, and where what they are multiplied by begins. */
typedef struct kept_slopes {
    float *slope;
    int32_t *at;
    int64_t count;
} kept_slopes;

/* `lines` times `vectors` chains of fma(slope, from, sum), which begin with 0 and are added to what `to` holds. */
ALWAYS_INLINE void add_kept(float *to, int64_t to_line, const float *from, int64_t from_line, const kept_slopes *kept,
                            const int lines, const int vectors)
{
    vector32 sum[KEPT_LINES][KEPT_VECTORS];
    UNROLL
    for (int l = 0; l < lines; l++) {
        UNROLL
        for (int v = 0; v < vectors; v++)
            sum[l][v] = V_ZERO;
    }
    for (int64_t i = 0; i < kept->count; i++) {
        const float *line = from + kept->at[i];
        const vector32 slope = V_BROADCAST(kept->slope + i);
        UNROLL
        for (int l = 0; l < lines; l++, line += from_line) {
            UNROLL
            for (int v = 0; v < vectors; v++)
                sum[l][v] = V_FMA(V_LOAD(line + v * LANES), slope, sum[l][v]);
        }
    }
    UNROLL
    for (int l = 0; l < lines; l++, to += to_line) {
        UNROLL
        for (int v = 0; v < vectors; v++)
            V_STORE(to + v * LANES, V_ADD(V_LOAD(to + v * LANES), sum[l][v]));
    }
}

#ifdef FEW_LANES
/* The same where a line of the kernel fits into a vector of FEW_LANES: such loads seldom reach into a second line of
 * the cache. */
ALWAYS_INLINE void add_narrow(float *to, int64_t to_line, const float *from, int64_t from_line, const kept_slopes *kept,
                              const int lines)
{
    few32 sum[KEPT_LINES];
    UNROLL
    for (int l = 0; l < lines; l++)
        sum[l] = N_ZERO;
    for (int64_t i = 0; i < kept->count; i++) {
        const float *line = from + kept->at[i];
        const few32 slope = N_BROADCAST(kept->slope + i);
        UNROLL
        for (int l = 0; l < lines; l++, line += from_line)
            sum[l] = N_FMA(N_LOAD(line), slope, sum[l]);
    }
    UNROLL
    for (int l = 0; l < lines; l++, to += to_line)
        N_STORE(to, N_ADD(N_LOAD(to), sum[l]));
}

static void add_narrow_some(float *to, int64_t to_line, const float *from, int64_t from_line, const kept_slopes *kept,
                            int64_t lines)
{
    switch (lines) {
    case 1: add_narrow(to, to_line, from, from_line, kept, 1); break;
    case 2: add_narrow(to, to_line, from, from_line, kept, 2); break;
    case 3: add_narrow(to, to_line, from, from_line, kept, 3); break;
    case 4: add_narrow(to, to_line, from, from_line, kept, 4); break;
    case 5: add_narrow(to, to_line, from, from_line, kept, 5); break;
    default: break;
    }
}
#endif

#define KEPT_CASE(lines, vectors)                                                                                      \
    case lines * 16 + vectors:                                                                                         \
        if (lines * vectors <= KEPT_CHAINS && vectors <= KEPT_VECTORS)                                                 \
            add_kept(to, to_line, from, from_line, kept, lines, vectors <= KEPT_VECTORS ? vectors : 1);                \
        break;
#define KEPT_CASES(lines)                                                                                              \
    KEPT_CASE(lines, 1)                                                                                                \
    KEPT_CASE(lines, 2)                                                                                                \
    KEPT_CASE(lines, 3)                                                                                                \
    KEPT_CASE(lines, 4)                                                                                                \
    KEPT_CASE(lines, 5)                                                                                                \
    KEPT_CASE(lines, 6)                                                                                                \
    KEPT_CASE(lines, 7)                                                                                                \
    KEPT_CASE(lines, 8)                                                                                                \
    KEPT_CASE(lines, 9)                                                                                                \
    KEPT_CASE(lines, 10)                                                                                               \
    KEPT_CASE(lines, 11)                                                                                               \
    KEPT_CASE(lines, 12)
/* `used` is how many floats of a line there are. */
static void add_kept_some(float *to, int64_t to_line, const float *from, int64_t from_line, const kept_slopes *kept,
                          int64_t lines, int64_t vectors, int64_t used)
{
#ifdef FEW_LANES
    if (vectors == 1 && used <= FEW_LANES) {
        add_narrow_some(to, to_line, from, from_line, kept, lines);
        return;
    }
#else
    (void)used;
#endif
    switch (lines * 16 + vectors) {
        KEPT_CASES(1)
        KEPT_CASES(2)
        KEPT_CASES(3)
        KEPT_CASES(4)
        KEPT_CASES(5)
    default: break;
    }
}
#undef KEPT_CASES
#undef KEPT_CASE

/* ---- pixels ------------------------------------------------------------------------------------------------------ */

/* How a row's channels lie: side by side at each pixel, in whole vectors where that wastes little. */
typedef struct pixel_shape {
    int64_t pixel, line, image; /* floats of one */
    int64_t vectors, weights;   /* of a line of the kernel, and floats of all its lines */
} pixel_shape;

static pixel_shape pixels_of(const kernel_conv *conv)
{
    const int64_t channels = conv->channels;
    pixel_shape self;
    self.pixel = channels < KERNEL_PIXEL_LEAST ? channels : (channels + LANES - 1) / LANES * LANES;
    self.line = conv->width * self.pixel;
    self.image = conv->height * self.line;
    self.vectors = (conv->kernel_width * self.pixel + LANES - 1) / LANES;
    self.weights = conv->kernel_height * self.vectors * LANES;
    return self;
}

/* From a block to one image after another. */
static void take_pixels(float *out, const float *in, const kernel_conv *conv, const pixel_shape *pixels, int64_t rows)
{
    const int64_t map = conv->height * conv->width;
    if (conv->channels == 1) {
        transpose_rows(out, pixels->image, in, KERNEL_BLOCK, map, rows);
        return;
    }
    for (int64_t i = 0; i < map; i++)
        transpose_rows(out + i * pixels->pixel, pixels->image, in + i * KERNEL_BLOCK, map * KERNEL_BLOCK,
                       conv->channels, rows);
}

/* ---- the gradient of weights ------------------------------------------------------------------------------------- */

/* Where a pooled place's first pixel lies, and how far from it the other three are. */
static void find_places(int32_t *base, int32_t shift[CONV_PLACES], const kernel_conv *conv, const pixel_shape *pixels)
{
    const int64_t places = kernel_pooled_places(conv), wide = conv->places_wide / 2;
    const int64_t right = conv->stride * pixels->pixel, down = conv->stride * pixels->line;
    for (int64_t place = 0; place < places; place++)
        base[place] = (int32_t)(2 * (place / wide * down + place % wide * right));
    for (int p = 0; p < CONV_PLACES; p++)
        shift[p] = (int32_t)(p / 2 * down + p % 2 * right);
}

/* Lists what an output was given, row by row, and adds it to 16 sums, of places by their number mod 16. */
static void list_output(kept_slopes *kept, float bias[KERNEL_BLOCK], const float *slope, const float *chosen,
                        const int32_t *base, const int32_t shift[CONV_PLACES], const kernel_pooled *pooled,
                        int64_t image, int64_t rows)
{
    static const float cut = KERNEL_CUT;
    const int64_t places = kernel_pooled_places(&pooled->conv), row_step = pooled->conv.outputs * places;
    float slope_end[KERNEL_BLOCK] = {0}, chosen_end[KERNEL_BLOCK] = {0};
    vector32 sum[KERNEL_BLOCK / LANES];
    int64_t count = 0;
    UNROLL
    for (int v = 0; v < KERNEL_BLOCK / LANES; v++)
        sum[v] = V_ZERO;
    for (int64_t row = 0; row < rows; row++, slope += row_step, chosen += row_step) {
        const integers32 first = I_BROADCAST((int32_t)(row * image));
        for (int64_t place = 0; place < places; place += KERNEL_BLOCK) {
            const int64_t left = places - place;
            const float *by = slope + place, *of = chosen + place;
            if (left < KERNEL_BLOCK) {
                by = memcpy(slope_end, by, (size_t)left * sizeof *by);
                of = memcpy(chosen_end, of, (size_t)left * sizeof *of);
            }
            UNROLL
            for (int v = 0; v < KERNEL_BLOCK / LANES; v++) {
                const vector32 each = V_LOAD(by + v * LANES), which = V_LOAD(of + v * LANES);
                const V_MASK some = V_BOTH(V_UNLIKE(each, V_ZERO), V_UNLIKE(which, V_BROADCAST(&cut)));
                const integers32 at = I_ADD(I_LOAD(base + place + v * LANES), V_LOOK_UP(shift, which));
                sum[v] = V_ADD(sum[v], V_PICK(some, each, V_ZERO));
                count += V_KEEP(kept->slope + count, kept->at + count, each, I_ADD(at, first), some);
            }
        }
    }
    UNROLL
    for (int v = 0; v < KERNEL_BLOCK / LANES; v++)
        V_STORE(bias + v * LANES, sum[v]);
    kept->count = count;
}

/* All weights of one output, line by line of the kernel, channel by channel at each place. */
static void add_output(float *sum, const float *seen, const kept_slopes *kept, const kernel_conv *conv,
                       const pixel_shape *pixels)
{
    const int64_t of_line = pixels->vectors * LANES, wide = (pixels->vectors + KEPT_VECTORS - 1) / KEPT_VECTORS;
    const int64_t vectors_most = (pixels->vectors + wide - 1) / wide;
    const int64_t lines_most = KEPT_CHAINS / vectors_most < KEPT_LINES ? KEPT_CHAINS / vectors_most : KEPT_LINES;
    const int64_t high = (conv->kernel_height + lines_most - 1) / lines_most;
    for (int64_t i = 0; i < high; i++)
        for (int64_t j = 0; j < wide; j++) {
            const int64_t line = conv->kernel_height * i / high, vector = pixels->vectors * j / wide;
            const int64_t lines = conv->kernel_height * (i + 1) / high - line;
            const int64_t vectors = pixels->vectors * (j + 1) / wide - vector;
            add_kept_some(sum + line * of_line + vector * LANES, of_line, seen + line * pixels->line + vector * LANES,
                          pixels->line, kept, lines, vectors, conv->kernel_width * pixels->pixel);
        }
}

/* l += l + 8, then + 4, + 2, + 1. */
static float add_up(float lanes[KERNEL_BLOCK])
{
    for (int half = KERNEL_BLOCK / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++)
            lanes[i] += lanes[i + half];
    return lanes[0];
}

/* Adds to the gradient what up to 16 outputs have, beginning with the first. */
static void add_gradient(float *gradient, const float *sums, float *spare, const kernel_conv *conv,
                         const pixel_shape *pixels, int64_t outs)
{
    const int64_t of_map = conv->kernel_height * conv->kernel_width;
    for (int64_t k = 0; k < of_map; k++) {
        const int64_t ky = k / conv->kernel_width, kx = k % conv->kernel_width;
        float *to = gradient + k * conv->outputs;
        transpose_rows(spare, KERNEL_BLOCK, sums + ky * pixels->vectors * LANES + kx * pixels->pixel, pixels->weights,
                       KERNEL_BLOCK, conv->channels);
        for (int64_t c = 0; c < conv->channels; c++, to += of_map * conv->outputs)
            for (int64_t o = 0; o < outs; o++)
                to[o] += spare[c * KERNEL_BLOCK + o];
    }
}

/* Memory of the workspace that lies one after another, each aligned. */
static void *take_floats(float **from, int64_t count)
{
    float *out = *from;
    *from += (count + KERNEL_BLOCK - 1) / KERNEL_BLOCK * KERNEL_BLOCK;
    return out;
}

static void pooled_weights_back(float *gradient, const float *in, const float *slope, const float *chosen,
                                const kernel_pooled *pooled, int64_t rows, float *workspace)
{
    const kernel_conv *conv = &pooled->conv;
    const pixel_shape pixels = pixels_of(conv);
    const int64_t places = kernel_pooled_places(conv), most = KERNEL_BLOCK * places + LANES;
    float *seen = take_floats(&workspace, KERNEL_BLOCK * pixels.image + LANES);
    float *sums = take_floats(&workspace, KERNEL_BLOCK * pixels.weights);
    float *spare = take_floats(&workspace, KERNEL_BLOCK * conv->channels);
    int32_t *base = take_floats(&workspace, places), shift[CONV_PLACES];
    kept_slopes kept = {.slope = take_floats(&workspace, most), .at = take_floats(&workspace, most)};
    float *bias = gradient + kernel_conv_depth(conv) * conv->outputs;
    take_pixels(seen, in, conv, &pixels, rows);
    find_places(base, shift, conv, &pixels);
    for (int64_t first = 0; first < conv->outputs; first += KERNEL_BLOCK) {
        const int64_t left = conv->outputs - first, outs = left < KERNEL_BLOCK ? left : KERNEL_BLOCK;
        memset(sums, 0, (size_t)(KERNEL_BLOCK * pixels.weights) * sizeof *sums);
        for (int64_t o = 0; o < outs; o++) {
            float lanes[KERNEL_BLOCK];
            const int64_t of = (first + o) * places;
            list_output(&kept, lanes, slope + of, chosen + of, base, shift, pooled, pixels.image, rows);
            bias[first + o] += add_up(lanes);
            add_output(sums + o * pixels.weights, seen, &kept, conv, &pixels);
        }
        add_gradient(gradient + first, sums, spare, conv, &pixels, outs);
    }
}

/* ---- derivatives by inputs --------------------------------------------------------------------------------------- */

/* An output's weights line by line of the kernel, channel by channel at each place, filled up with zeros. */
static void turn_weights(float *out, const float *weights, const kernel_conv *conv, const pixel_shape *pixels)
{
    const int64_t of_map = conv->kernel_height * conv->kernel_width;
    memset(out, 0, (size_t)(conv->outputs * pixels->weights) * sizeof *out);
    for (int64_t k = 0; k < of_map; k++) {
        const int64_t ky = k / conv->kernel_width, kx = k % conv->kernel_width;
        transpose_rows(out + ky * pixels->vectors * LANES + kx * pixels->pixel, pixels->weights,
                       weights + k * conv->outputs, of_map * conv->outputs, conv->channels, conv->outputs);
    }
}

/* Lists what a row's places were given, in turn each of the four of a pooled one; list i begins at start[i]. */
static void list_places(kept_slopes *kept, int32_t *start, const float *slope, const float *chosen, const int32_t *base,
                        int64_t places, int64_t outputs)
{
    static const float number[CONV_PLACES] = {0, 1, 2, 3};
    int64_t count = 0;
    for (int64_t place = 0; place < places; place++, slope += outputs, chosen += outputs)
        for (int p = 0; p < CONV_PLACES; p++) {
            *start++ = (int32_t)count;
            for (int64_t o = 0; o < outputs; o += LANES) {
                const vector32 each = V_LOAD(slope + o);
                const V_MASK some = V_BOTH(V_UNLIKE(each, V_ZERO), V_SAME(V_LOAD(chosen + o), V_BROADCAST(number + p)));
                count += V_KEEP(kept->slope + count, kept->at + count, each, I_LOAD(base + o), some);
            }
        }
    *start = (int32_t)count;
}

/* Gives what an image's pixels see back to them, one line of the kernel after another, so that its weights stay near.
 * The last line comes first: what a pixel is given is in the order of the places, then, and would be if several lines
 * were given together. */
static void give_pixels(float *to, const float *weights, const kept_slopes *kept, const int32_t *start,
                        const kernel_conv *conv, const pixel_shape *pixels)
{
    const int64_t high = conv->places_high / 2 * 2, wide = conv->places_wide / 2 * 2;
    const int64_t right = conv->stride * pixels->pixel, down = conv->stride * pixels->line;
    const int64_t pieces = (pixels->vectors + KEPT_VECTORS - 1) / KEPT_VECTORS;
    for (int64_t line = conv->kernel_height - 1; line >= 0; line--)
        for (int64_t place = 0; place < high * wide; place++) {
            const int64_t y = place / wide, x = place % wide;
            const int64_t i = (y / 2 * (wide / 2) + x / 2) * CONV_PLACES + y % 2 * 2 + x % 2;
            const kept_slopes some = {kept->slope + start[i], kept->at + start[i], start[i + 1] - start[i]};
            float *pixel = to + y * down + line * pixels->line + x * right;
            for (int64_t piece = 0; some.count > 0 && piece < pieces; piece++) {
                const int64_t first = pixels->vectors * piece / pieces * LANES;
                add_kept_some(pixel + first, 0, weights + line * pixels->vectors * LANES + first, 0, &some, 1,
                              pixels->vectors * (piece + 1) / pieces - first / LANES,
                              conv->kernel_width * pixels->pixel);
            }
        }
}

static void pooled_inputs_back(float *in_slope, const float *slope, const float *chosen, const kernel_pooled *pooled,
                               const float *weights, int64_t rows, float *workspace)
{
    const kernel_conv *conv = &pooled->conv;
    const pixel_shape pixels = pixels_of(conv);
    const int64_t places = kernel_pooled_places(conv), map = conv->height * conv->width;
    const int64_t outputs = (conv->outputs + LANES - 1) / LANES * LANES, most = outputs * places + LANES;
    float *turned = take_floats(&workspace, conv->outputs * pixels.weights);
    float *image = take_floats(&workspace, pixels.image + LANES);
    float *by = take_floats(&workspace, outputs * places), *of = take_floats(&workspace, outputs * places);
    int32_t *base = take_floats(&workspace, outputs), *start = take_floats(&workspace, CONV_PLACES * places + 1);
    kept_slopes kept = {.slope = take_floats(&workspace, most), .at = take_floats(&workspace, most)};
    turn_weights(turned, weights, conv, &pixels);
    for (int64_t o = 0; o < outputs; o++)
        base[o] = (int32_t)(o * pixels.weights);
    memset(by, 0, (size_t)(outputs * places) * sizeof *by);
    for (int64_t row = 0; row < rows; row++, in_slope += conv->channels * map) {
        const int64_t first = row * conv->outputs * places;
        transpose_rows(by, outputs, slope + first, places, conv->outputs, places);
        transpose_rows(of, outputs, chosen + first, places, conv->outputs, places);
        list_places(&kept, start, by, of, base, places, outputs);
        memset(image, 0, (size_t)(pixels.image + LANES) * sizeof *image);
        give_pixels(image, turned, &kept, start, conv, &pixels);
        transpose_rows(in_slope, map, image, pixels.pixel, map, conv->channels);
    }
}

#undef V_UNLIKE
#undef V_BOTH
#undef V_LOOK_UP
#undef V_KEEP
#undef I_LOAD
#undef I_ADD
#undef I_BROADCAST
#ifdef FEW_LANES
#undef FEW_LANES
#undef N_ZERO
#undef N_ADD
#undef N_LOAD
#undef N_STORE
#undef N_BROADCAST
#undef N_FMA
#endif
