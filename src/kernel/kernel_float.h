/* The float32 entries, written once in a small vocabulary of vectors that each set's file supplies.
 *
 * Included once by each kernel_<set>.c, after it defined the types vector, vector_index and vector_mask, the v_ words
 * used below, and
 *     LANES         float32 in a vector, which divides 16
 *     TILE_ROWS     rows of a tile of score_float: as many as keep all sums in registers
 *     TILE_VECTORS  vectors of centres of such a tile
 *     FEW_VECTORS   vectors of rows, and
 *     FEW_CENTRES   centres of a tile of nearest_few.
 * The loops over a tile have constant bounds, so that at -O3 compilers unroll them and keep the tile in registers.
 * Everything is static: code built for one CPU must not be linked into another's. */
#include <math.h>
#include <stdint.h>
#include <string.h>
#include "kernel/kernel.h"

enum { TILE_CENTRES = TILE_VECTORS * LANES, FEW_ROWS = FEW_VECTORS * LANES };

/* ---- score_float ------------------------------------------------------------------------------------------------- */

typedef struct tile {
    const float *rows, *centres; /* the first column of this chain in each panel */
    const float *start;          /* what the products are subtracted from: the bias or the scores so far */
    int64_t start_stride;
    float *scores;
    int64_t stride;
} tile;

/* One chain of at most KERNEL_CHAIN columns for one row panel and one centre panel. */
static __attribute__((noinline)) void score_tile(const tile *t, int64_t columns)
{
    const float *rows = t->rows, *centres = t->centres;
    vector sum[TILE_ROWS][TILE_VECTORS];
    for (int r = 0; r < TILE_ROWS; r++) {
        for (int v = 0; v < TILE_VECTORS; v++)
            sum[r][v] = v_zero();
        __builtin_prefetch(t->scores + r * t->stride, 1);
    }
    for (int64_t k = 0; k < columns; k++) {
        vector centre[TILE_VECTORS];
        for (int v = 0; v < TILE_VECTORS; v++)
            centre[v] = v_load(centres + v * LANES);
        for (int r = 0; r < TILE_ROWS; r++) {
            vector row = v_broadcast(rows + r);
            for (int v = 0; v < TILE_VECTORS; v++)
                sum[r][v] = v_multiply_add(row, centre[v], sum[r][v]);
        }
        __builtin_prefetch(rows + 12 * TILE_ROWS);
        rows += TILE_ROWS;
        centres += TILE_CENTRES;
    }
    for (int r = 0; r < TILE_ROWS; r++)
        for (int v = 0; v < TILE_VECTORS; v++)
            v_store(t->scores + r * t->stride + v * LANES,
                    v_subtract(v_load(t->start + r * t->start_stride + v * LANES), sum[r][v]));
}

/* Draws the part-th of `parts` of the next chain's centres towards the cache; past the last panel it is harmless. */
static inline void prefetch_centres(const float *next, int part, int parts)
{
    enum { LINES = KERNEL_CHAIN * TILE_CENTRES / 16 };
    int each = (LINES + parts - 1) / parts;
    for (int line = part * each; line < (part + 1) * each; line++)
        __builtin_prefetch((const char *)next + 64 * line, 0, 2);
}

/* The chain's centres stay in the first-level cache while all row panels, in the second-level cache, pass by. */
static void score_float(float *scores, int64_t stride, const float *rows, int row_panels, const float *centres,
                        const float *bias, int centre_panels, int64_t columns)
{
    for (int panel = 0; panel < centre_panels; panel++) {
        const float *centre_panel = centres + panel * columns * TILE_CENTRES;
        for (int64_t first = 0; first < columns; first += KERNEL_CHAIN) {
            int64_t length = columns - first < KERNEL_CHAIN ? columns - first : KERNEL_CHAIN;
            for (int q = 0; q < row_panels; q++) {
                float *out = scores + (int64_t)q * TILE_ROWS * stride + panel * TILE_CENTRES;
                tile t = {
                    .rows = rows + (q * columns + first) * TILE_ROWS,
                    .centres = centre_panel + first * TILE_CENTRES,
                    .start = first ? out : bias + panel * TILE_CENTRES,
                    .start_stride = first ? stride : 0,
                    .scores = out,
                    .stride = stride,
                };
                prefetch_centres(t.centres + KERNEL_CHAIN * TILE_CENTRES, q, row_panels);
                score_tile(&t, length);
            }
        }
    }
}

/* ---- pack_rows --------------------------------------------------------------------------------------------------- */

typedef float four __attribute__((vector_size(16)));

/* out[k * line + r] = rows[r * columns + k] for four rows and four columns */
static inline void transpose_four(float *out, int line, const float *rows, int64_t columns)
{
    four a, b, c, d;
    memcpy(&a, rows, sizeof a);
    memcpy(&b, rows + columns, sizeof b);
    memcpy(&c, rows + 2 * columns, sizeof c);
    memcpy(&d, rows + 3 * columns, sizeof d);
    four ab = __builtin_shufflevector(a, b, 0, 4, 1, 5), cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
    four ef = __builtin_shufflevector(a, b, 2, 6, 3, 7), gh = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    a = __builtin_shufflevector(ab, cd, 0, 1, 4, 5);
    b = __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
    c = __builtin_shufflevector(ef, gh, 0, 1, 4, 5);
    d = __builtin_shufflevector(ef, gh, 2, 3, 6, 7);
    memcpy(out, &a, sizeof a);
    memcpy(out + line, &b, sizeof b);
    memcpy(out + 2 * line, &c, sizeof c);
    memcpy(out + 3 * line, &d, sizeof d);
}

/* The same for two rows. */
static inline void transpose_two(float *out, int line, const float *rows, int64_t columns)
{
    four a, b;
    memcpy(&a, rows, sizeof a);
    memcpy(&b, rows + columns, sizeof b);
    four low = __builtin_shufflevector(a, b, 0, 4, 1, 5), high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    float pair[8];
    memcpy(pair, &low, sizeof low);
    memcpy(pair + 4, &high, sizeof high);
    for (int k = 0; k < 4; k++)
        memcpy(out + k * line, pair + 2 * k, 2 * sizeof *pair);
}

/* The same for `count` rows, four at most, and all their columns. */
static inline void transpose_strip(float *out, int line, const float *rows, int count, int64_t columns)
{
    int64_t k = 0;
    if (count == 4)
        for (; k + 4 <= columns; k += 4)
            transpose_four(out + k * line, line, rows + k, columns);
    else if (count == 2)
        for (; k + 4 <= columns; k += 4)
            transpose_two(out + k * line, line, rows + k, columns);
    for (; k < columns; k++)
        for (int r = 0; r < count; r++)
            out[k * line + r] = rows[r * columns + k];
}

/* `count` rows into one panel of `line` rows, padded with zeros. */
static inline void transpose_panel(float *panel, int line, const float *rows, int count, int64_t columns)
{
    if (count < line)
        memset(panel, 0, (size_t)(line * columns) * sizeof *panel);
    for (int r = 0; r < count; r += 4)
        transpose_strip(panel + r, line, rows + r * columns, count - r < 4 ? count - r : 4, columns);
}

static void pack_rows(float *panels, const float *rows, int count, int64_t columns)
{
    for (; count > 0; count -= TILE_ROWS) {
        transpose_panel(panels, TILE_ROWS, rows, count < TILE_ROWS ? count : TILE_ROWS, columns);
        panels += TILE_ROWS * columns;
        rows += TILE_ROWS * columns;
    }
}

/* ---- dot --------------------------------------------------------------------------------------------------------- */

/* Sums of a lane's products are chained over at most KERNEL_CHAIN steps, then added up: a product meets at most its
 * own rounding, KERNEL_CHAIN, two for the four sums, four for the lanes and one for each block of DOT_BLOCK columns. */
enum { DOT_STEP = 4 * LANES, DOT_BLOCK = KERNEL_CHAIN * DOT_STEP };

static inline vector dot_block(const float *a, const float *b, int64_t columns)
{
    vector sum[4] = {v_zero(), v_zero(), v_zero(), v_zero()};
    int64_t k = 0;
    for (; k + DOT_STEP <= columns; k += DOT_STEP)
        for (int i = 0; i < 4; i++)
            sum[i] = v_multiply_add(v_load_any(a + k + i * LANES), v_load_any(b + k + i * LANES), sum[i]);
    for (; k < columns; k += LANES) {
        int64_t left = columns - k < LANES ? columns - k : LANES;
        vector product = v_multiply_add(v_load_part(a + k, (int)left), v_load_part(b + k, (int)left), v_zero());
        sum[0] = v_add(sum[0], product);
    }
    return v_add(v_add(sum[0], sum[1]), v_add(sum[2], sum[3]));
}

static float dot(const float *a, const float *b, int64_t columns)
{
    vector sum = dot_block(a, b, columns < DOT_BLOCK ? columns : DOT_BLOCK);
    for (int64_t k = DOT_BLOCK; k < columns; k += DOT_BLOCK)
        sum = v_add(sum, dot_block(a + k, b + k, columns - k < DOT_BLOCK ? columns - k : DOT_BLOCK));
    return v_sum(sum);
}

/* ---- score_row --------------------------------------------------------------------------------------------------- */

/* Dot products of z with ROW_CENTRES centres at once: z is loaded once for all of them.  Chains as in dot. */
enum { ROW_CENTRES = 4 };

static inline __attribute__((always_inline)) void row_block(vector sum[ROW_CENTRES], const float *z,
                                                            const float *const centres[ROW_CENTRES], int64_t columns)
{
    int64_t k = 0;
    for (int c = 0; c < ROW_CENTRES; c++)
        sum[c] = v_zero();
    for (; k + LANES <= columns; k += LANES) {
        vector row = v_load_any(z + k);
        for (int c = 0; c < ROW_CENTRES; c++)
            sum[c] = v_multiply_add(row, v_load_any(centres[c] + k), sum[c]);
    }
    if (k < columns) {
        vector row = v_load_part(z + k, (int)(columns - k));
        for (int c = 0; c < ROW_CENTRES; c++)
            sum[c] = v_multiply_add(row, v_load_part(centres[c] + k, (int)(columns - k)), sum[c]);
    }
}

/* Dot products with ROW_CENTRES centres, by blocks so long that no lane's chain is longer than KERNEL_CHAIN. */
static inline void row_dots(float dots[ROW_CENTRES], const float *z, const float *const centres[ROW_CENTRES],
                            int64_t columns)
{
    enum { BLOCK = KERNEL_CHAIN * LANES };
    vector total[ROW_CENTRES], sum[ROW_CENTRES];
    row_block(total, z, centres, columns < BLOCK ? columns : BLOCK);
    for (int64_t k = BLOCK; k < columns; k += BLOCK) {
        const float *const rest[ROW_CENTRES] = {centres[0] + k, centres[1] + k, centres[2] + k, centres[3] + k};
        row_block(sum, z + k, rest, columns - k < BLOCK ? columns - k : BLOCK);
        for (int c = 0; c < ROW_CENTRES; c++)
            total[c] = v_add(total[c], sum[c]);
    }
    for (int c = 0; c < ROW_CENTRES; c++)
        dots[c] = v_sum(total[c]);
}

/* Centres that do not fill a group are made up by repeating the last. */
static void score_row(float *scores, const float *z, const float *centres, const float *bias, int count,
                      int64_t columns)
{
    for (int j = 0; j < count; j += ROW_CENTRES) {
        int here = count - j < ROW_CENTRES ? count - j : ROW_CENTRES;
        const float *group[ROW_CENTRES];
        float dots[ROW_CENTRES];
        for (int c = 0; c < ROW_CENTRES; c++)
            group[c] = centres + (j + (c < here ? c : here - 1)) * columns;
        row_dots(dots, z, group, columns);
        for (int c = 0; c < here; c++)
            scores[j + c] = bias[j + c] - dots[c];
    }
}

/* ---- least, select ----------------------------------------------------------------------------------------------- */

static float least_lane(vector values)
{
    float lane[LANES];
    memcpy(lane, &values, sizeof lane);
    float least = lane[0];
    for (int i = 1; i < LANES; i++)
        least = lane[i] < least ? lane[i] : least;
    return least;
}

/* First the least value, then the first place that has it; -0 and +0 are equal to both steps. */
static int least(const float *values, int count)
{
    vector low[16 / LANES];
    for (int v = 0; v < 16 / LANES; v++)
        low[v] = v_load(values + v * LANES);
    for (int j = 16; j < count; j += 16)
        for (int v = 0; v < 16 / LANES; v++)
            low[v] = v_min(low[v], v_load(values + j + v * LANES));
    for (int v = 1; v < 16 / LANES; v++)
        low[0] = v_min(low[0], low[v]);
    float value = least_lane(low[0]);
    vector all = v_broadcast(&value);
    for (int j = 0; j < count; j += LANES) {
        unsigned found = v_bits(v_at_most(v_load(values + j), all));
        if (found)
            return j + __builtin_ctz(found);
    }
    return 0;
}

/* Adding 0 makes +0 of -0: which of the two the least is would depend on the order of the lanes. */
static int select_indices(int32_t *indices, float *rest, const float *values, int count, float threshold)
{
    const float infinity = INFINITY;
    vector most = v_broadcast(&threshold), others = v_broadcast(&infinity);
    int found = 0;
    for (int j = 0; j < count; j += LANES) {
        vector value = v_load(values + j);
        vector_mask chosen = v_at_most(value, most);
        others = v_min(others, v_pick(chosen, others, value));
        for (unsigned bits = v_bits(chosen); bits; bits &= bits - 1)
            indices[found++] = j + __builtin_ctz(bits);
    }
    *rest = least_lane(others) + 0.0f;
    return found;
}

/* ---- nearest_few ------------------------------------------------------------------------------------------------- */

typedef struct few_state {
    vector best[FEW_VECTORS], second[FEW_VECTORS];
    vector_index index[FEW_VECTORS];
} few_state;

/* Scores FEW_CENTRES centres from number `first` on for FEW_ROWS rows, whose lanes they are. */
static inline __attribute__((always_inline)) void few_tile(few_state *state, const float *lanes, const float *centres,
                                                           const float *bias, int first, int64_t columns)
{
    vector score[FEW_CENTRES][FEW_VECTORS];
    for (int c = 0; c < FEW_CENTRES; c++)
        for (int v = 0; v < FEW_VECTORS; v++)
            score[c][v] = v_broadcast(bias + c);
    for (int64_t k = 0; k < columns; k++) {
        vector row[FEW_VECTORS];
        for (int v = 0; v < FEW_VECTORS; v++)
            row[v] = v_load(lanes + k * FEW_ROWS + v * LANES);
        for (int c = 0; c < FEW_CENTRES; c++) {
            vector centre = v_broadcast(centres + c * columns + k);
            for (int v = 0; v < FEW_VECTORS; v++)
                score[c][v] = v_subtract_product(centre, row[v], score[c][v]);
        }
    }
    for (int v = 0; v < FEW_VECTORS; v++) {
        vector best = state->best[v], second = state->second[v];
        vector_index index = state->index[v];
        for (int c = 0; c < FEW_CENTRES; c++) {
            vector_mask better = v_below(score[c][v], best);
            second = v_min(second, v_max(best, score[c][v]));
            best = v_min(best, score[c][v]);
            index = v_pick_index(better, v_broadcast_index(first + c), index);
        }
        state->best[v] = best;
        state->second[v] = second;
        state->index[v] = index;
    }
}

/* The centres that do not fill a tile are copied and filled up with zeros, whose bias keeps them from being chosen. */
static void few_remainder(few_state *state, const float *lanes, const float *centres, const float *bias, int first,
                          int count, int64_t columns, float *workspace)
{
    float *filled_bias = workspace + FEW_CENTRES * columns;
    memset(workspace, 0, (size_t)(FEW_CENTRES * columns) * sizeof *workspace);
    memcpy(workspace, centres, (size_t)(count * columns) * sizeof *workspace);
    for (int c = 0; c < FEW_CENTRES; c++)
        filled_bias[c] = c < count ? bias[c] : INFINITY;
    few_tile(state, lanes, workspace, filled_bias, first, columns);
}

/* |z|^2 of FEW_ROWS rows, whose lanes they are. */
static void few_squares(float *square, const float *lanes, int count, int64_t columns)
{
    vector sum[FEW_VECTORS];
    for (int v = 0; v < FEW_VECTORS; v++)
        sum[v] = v_zero();
    for (int64_t k = 0; k < columns; k++)
        for (int v = 0; v < FEW_VECTORS; v++) {
            vector row = v_load(lanes + k * FEW_ROWS + v * LANES);
            sum[v] = v_multiply_add(row, row, sum[v]);
        }
    memcpy(square, sum, (size_t)count * sizeof *square);
}

static void nearest_few(const kernel_nearest *out, const float *rows, int count_rows, const float *centres,
                        const float *bias, int count, int64_t columns, float *workspace)
{
    _Static_assert((FEW_ROWS + FEW_CENTRES) * KERNEL_FEW_COLUMNS + FEW_CENTRES <= KERNEL_FEW_WORKSPACE, "workspace");
    const float infinity = INFINITY;
    float *remainder = workspace + FEW_ROWS * columns;
    for (int r = 0; r < count_rows; r += FEW_ROWS) {
        int here = count_rows - r < FEW_ROWS ? count_rows - r : FEW_ROWS, j = 0;
        few_state state;
        for (int v = 0; v < FEW_VECTORS; v++) {
            state.best[v] = state.second[v] = v_broadcast(&infinity);
            state.index[v] = v_broadcast_index(0);
        }
        transpose_panel(workspace, FEW_ROWS, rows + r * columns, here, columns);
        few_squares(out->square + r, workspace, here, columns);
        for (; j + FEW_CENTRES <= count; j += FEW_CENTRES)
            few_tile(&state, workspace, centres + j * columns, bias + j, j, columns);
        if (j < count)
            few_remainder(&state, workspace, centres + j * columns, bias + j, j, count - j, columns, remainder);
        memcpy(out->best + r, state.best, (size_t)here * sizeof *out->best);
        memcpy(out->second + r, state.second, (size_t)here * sizeof *out->second);
        memcpy(out->index + r, state.index, (size_t)here * sizeof *out->index);
    }
}

static void fill_float(kernel_set *set)
{
    set->tile_rows = TILE_ROWS;
    set->tile_centres = TILE_CENTRES;
    set->pack_rows = pack_rows;
    set->score_float = score_float;
    set->dot = dot;
    set->score_row = score_row;
    set->least = least;
    set->select = select_indices;
    set->nearest_few = nearest_few;
}
