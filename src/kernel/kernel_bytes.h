/* The two entries for bytes, written once in the vocabulary of vectors that each set's file supplies.
 *
 * Included by a kernel_<set>.c whose CPU multiplies bytes fast, after it defined the words used below and
 *     BYTE_TILE_ROWS, BYTE_TILE_VECTORS   the tile of score_bytes: rows, and vectors of centres
 *     BYTE_ROW_EXCESS, BYTE_ROW_MOST      what makes a row's values unsigned, and their greatest magnitude before that
 *     BYTE_CENTRE_MOST                    the greatest magnitude of a centre's values
 *     v_add_dots(sums, rows, centres)     each lane: sums + the dot product of four unsigned and four signed bytes.
 * Everything is static: code built for one CPU must not be linked into another's. */
#include <math.h>
#include <stdint.h>
#include <string.h>
#include "kernel/kernel.h"

#define UNROLL _Pragma("GCC unroll 16") /* clang needs telling, or it leaves the sums in memory */

enum { BYTE_TILE_CENTRES = BYTE_TILE_VECTORS * LANES };

/* ---- quantise_rows ----------------------------------------------------------------------------------------------- */

static float round_up(double value)
{
    float nearest = (float)value;
    return (double)nearest < value ? nextafterf(nearest, INFINITY) : nearest;
}

/* The values from column k on, zeros past the last column. */
static inline vector load_columns(const float *row, int64_t k, int64_t columns)
{
    return columns - k < LANES ? v_load_part(row + k, (int)(columns - k)) : v_load_any(row + k);
}

static float greatest_magnitude(const float *row, int64_t columns)
{
    vector most[4] = {v_zero(), v_zero(), v_zero(), v_zero()};
    int64_t k = 0;
    for (; k + 4 * LANES <= columns; k += 4 * LANES)
        for (int i = 0; i < 4; i++)
            most[i] = v_max(most[i], v_absolute(v_load_any(row + k + i * LANES)));
    for (; k < columns; k += LANES)
        most[0] = v_max(most[0], v_absolute(load_columns(row, k, columns)));
    most[0] = v_max(v_max(most[0], most[1]), v_max(most[2], most[3]));
    float lane[LANES], greatest = 0;
    memcpy(lane, &most[0], sizeof lane);
    for (int i = 0; i < LANES; i++)
        greatest = lane[i] > greatest ? lane[i] : greatest;
    return greatest;
}

typedef struct square_sums {
    vector values, residuals; /* of (z / step)^2 and (z / step - v)^2 */
} square_sums;

/* Writes v + excess for v = rint(z / step), for LANES columns at most, of which the first `fours` groups of four are
 * wanted.  A row's groups lie a tile's line apart. */
static inline __attribute__((always_inline)) void quantise_step(uint8_t *bytes, square_sums *sums, vector z,
                                                                vector inverse, int fours)
{
    const float excess = BYTE_ROW_EXCESS;
    vector scaled = v_multiply(z, inverse), integer = v_round(scaled), residual = v_subtract(scaled, integer);
    sums->values = v_multiply_add(scaled, scaled, sums->values);
    sums->residuals = v_multiply_add(residual, residual, sums->residuals);
    uint8_t four[LANES / 4][4];
    v_store_bytes(four[0], v_add(integer, v_broadcast(&excess)));
    for (int i = 0; i < fours; i++)
        memcpy(bytes + i * BYTE_TILE_ROWS * 4, four[i], 4);
}

static square_sums quantise_values(uint8_t *bytes, const float *row, float step, int64_t columns)
{
    const float one_by_step = 1 / step;
    const vector inverse = v_broadcast(&one_by_step);
    square_sums sums = {v_zero(), v_zero()};
    int64_t k = 0;
    for (; k + LANES <= columns; k += LANES)
        quantise_step(bytes + k * BYTE_TILE_ROWS, &sums, v_load_any(row + k), inverse, LANES / 4);
    if (k < columns)
        quantise_step(bytes + k * BYTE_TILE_ROWS, &sums, load_columns(row, k, columns), inverse,
                      (int)(columns - k + 3) / 4);
    return sums;
}

/* A row too small to divide by its step: all values 0, so that the row is its own residual. */
static void quantise_tiny(const kernel_byte_rows *out, int r, uint8_t *bytes, const float *row, int64_t columns)
{
    double sum = 0;
    for (int64_t k = 0; k < columns; k++)
        sum += (double)row[k] * row[k];
    for (int64_t k = 0; k < columns; k += 4)
        memset(bytes + k * BYTE_TILE_ROWS, BYTE_ROW_EXCESS, 4);
    out->step[r] = 0;
    out->norm[r] = out->residual[r] = round_up(sqrt(sum) * (1 + (double)(columns + 4) * 0x1p-53));
}

/* Why norm and residual are upper bounds, with u = 2^-24.  inverse = (1 + a) / step and scaled = (1 + b) * z * inverse
 * with |a|, |b| <= u, so scaled = (1 + d) * z / step with |d| < 2.1 u.  |z / step| is at most BYTE_ROW_MOST (1 + u), so
 * that |v| does not exceed it, and scaled - v is exact: a multiple of scaled's last place, no greater than 1/2.
 * The sums have no negative term, and each term meets at most n = columns / LANES + 1 + 4 roundings, in its lane and
 * across the lanes.  Hence a sum is at least 1 - n u of the true one, and a true root at most 1 + n u of the computed
 * one, for n u < 1/2 at least:
 *     |z|            <= step * sqrt(values) * (1 + n u) * (1 + 2.2 u)
 *     |z - step * v| <= step * |scaled - v| + step * |z / step - scaled|
 *                    <= step * sqrt(residuals) * (1 + n u) + 2.2 u * |z|       by the triangle inequality.
 * Underflow loses less than 2^-70 of a step in all; 2 n u and 3 u below cover that and the float64 arithmetic. */
static void quantise_row(const kernel_byte_rows *out, int r, uint8_t *bytes, const float *row, int64_t columns)
{
    float most = greatest_magnitude(row, columns);
    if (most < 0x1p-100f) {
        quantise_tiny(out, r, bytes, row, columns);
        return;
    }
    float step = most / BYTE_ROW_MOST;
    square_sums sums = quantise_values(bytes, row, step, columns);
    double factor = 1 + 2 * (double)(columns / LANES + 5) * 0x1p-24; /* 1 + 2 n u */
    double norm = step * sqrt(v_sum(sums.values)) * factor;
    out->step[r] = step;
    out->norm[r] = round_up(norm);
    out->residual[r] = round_up(step * sqrt(v_sum(sums.residuals)) * factor + 3 * 0x1p-24 * norm);
}

static void quantise_rows(const kernel_byte_rows *out, const float *rows, int count, int64_t columns)
{
    int64_t panel_size = (columns + 3) / 4 * 4 * BYTE_TILE_ROWS;
    int padded = (count + BYTE_TILE_ROWS - 1) / BYTE_TILE_ROWS * BYTE_TILE_ROWS;
    if (padded > count)
        memset(out->panels + count / BYTE_TILE_ROWS * panel_size, BYTE_ROW_EXCESS, (size_t)panel_size);
    for (int r = 0; r < count; r++)
        quantise_row(out, r, out->panels + r / BYTE_TILE_ROWS * panel_size + r % BYTE_TILE_ROWS * 4, rows + r * columns,
                     columns);
    for (int r = count; r < padded; r++)
        out->step[r] = out->norm[r] = out->residual[r] = 0;
}

/* ---- place_bytes ------------------------------------------------------------------------------------------------- */

static void place_bytes(uint8_t *panels, const uint8_t *row, int r, int64_t columns)
{
    uint8_t *out = panels + r / BYTE_TILE_ROWS * BYTE_TILE_ROWS * ((columns + 3) / 4 * 4) + r % BYTE_TILE_ROWS * 4;
    int64_t k = 0;
    for (; k + 4 <= columns; k += 4)
        memcpy(out + k * BYTE_TILE_ROWS, row + k, 4);
    if (k < columns) {
        uint8_t last[4] = {0};
        memcpy(last, row + k, (size_t)(columns - k));
        memcpy(out + k * BYTE_TILE_ROWS, last, 4);
    }
}

/* ---- score_bytes ------------------------------------------------------------------------------------------------- */

typedef struct byte_tile {
    const uint8_t *rows;
    const int8_t *centres;
    const float *row_step, *row_norm, *row_residual;
    const float *bias, *step, *residual, *norm;
    const int32_t *offset;
    float *lower;
    int64_t stride;
} byte_tile;

/* The bound of one row, from its dot products.
 *
 * Rounding, u = 2^-24: the difference dot - offset is exact in int32 and rounds once on its way to float32; times the
 * row's step, once; each of the three fused multiply-adds rounds once.  So no term meets more than five roundings (the
 * bias: the subtraction of 2^-140 and three), which keeps the error below 5.1 u times the sum of the magnitudes.
 * Steps are 0 or at least 2^-108, so step * difference does not underflow; where a later result is subnormal its error
 * of 2^-150 is made good by the 2^-140 taken off the bias, unless the bias is so large that taking it off changed
 * nothing: then 2^-150 is far less than u times the bias.  +infinity stays, the other terms being 0. */
static inline __attribute__((always_inline)) void bound_row(const byte_tile *t, int r,
                                                            const vector_index dots[BYTE_TILE_VECTORS])
{
    const float tiny = 0x1p-140f;
    vector row_step = v_broadcast(t->row_step + r), row_norm = v_broadcast(t->row_norm + r);
    vector row_residual = v_broadcast(t->row_residual + r);
    for (int v = 0; v < BYTE_TILE_VECTORS; v++) {
        vector bound = v_subtract(v_load(t->bias + v * LANES), v_broadcast(&tiny));
        vector dot = v_multiply(v_difference(dots[v], v_load_index(t->offset + v * LANES)), row_step);
        bound = v_subtract_product(dot, v_load(t->step + v * LANES), bound);
        bound = v_subtract_product(row_norm, v_load(t->residual + v * LANES), bound);
        bound = v_subtract_product(row_residual, v_load(t->norm + v * LANES), bound);
        v_store(t->lower + r * t->stride + v * LANES, bound);
    }
}

/* `fours` is columns / 4, rounded up. */
static __attribute__((noinline)) void score_byte_tile(const byte_tile *t, int64_t fours)
{
    const uint8_t *rows = t->rows;
    const int8_t *centres = t->centres;
    vector_index sum[BYTE_TILE_ROWS][BYTE_TILE_VECTORS];
    UNROLL
    for (int r = 0; r < BYTE_TILE_ROWS; r++) {
        for (int v = 0; v < BYTE_TILE_VECTORS; v++)
            sum[r][v] = v_zero_index();
    }
    for (int64_t k = 0; k < fours; k++) {
        vector_index centre[BYTE_TILE_VECTORS];
        for (int v = 0; v < BYTE_TILE_VECTORS; v++) {
            centre[v] = v_load_index(centres + v * LANES * 4);
            __builtin_prefetch(centres + (8 * BYTE_TILE_VECTORS + v) * LANES * 4);
        }
        UNROLL
        for (int r = 0; r < BYTE_TILE_ROWS; r++) {
            vector_index row = v_broadcast_bytes(rows + r * 4);
            for (int v = 0; v < BYTE_TILE_VECTORS; v++)
                sum[r][v] = v_add_dots(sum[r][v], row, centre[v]);
        }
        rows += BYTE_TILE_ROWS * 4;
        centres += BYTE_TILE_CENTRES * 4;
    }
    UNROLL
    for (int r = 0; r < BYTE_TILE_ROWS; r++)
        bound_row(t, r, sum[r]);
}

static void score_bytes(float *lower, int64_t stride, const kernel_byte_rows *rows, int row_panels,
                        const kernel_byte_centres *centres, int centre_panels, int64_t columns)
{
    int64_t fours = (columns + 3) / 4;
    for (int panel = 0; panel < centre_panels; panel++) {
        int centre = panel * BYTE_TILE_CENTRES;
        byte_tile t = {
            .centres = centres->panels + fours * 4 * centre,
            .bias = centres->bias + centre,
            .step = centres->step + centre,
            .residual = centres->residual + centre,
            .norm = centres->norm + centre,
            .offset = centres->offset + centre,
            .stride = stride,
        };
        for (int q = 0; q < row_panels; q++) {
            int row = q * BYTE_TILE_ROWS;
            t.rows = rows->panels + fours * 4 * row;
            t.row_step = rows->step + row;
            t.row_norm = rows->norm + row;
            t.row_residual = rows->residual + row;
            t.lower = lower + row * stride + centre;
            score_byte_tile(&t, fours);
        }
    }
}

static void fill_bytes(kernel_set *set)
{
    set->byte_tile_rows = BYTE_TILE_ROWS;
    set->byte_tile_centres = BYTE_TILE_CENTRES;
    set->byte_row_excess = BYTE_ROW_EXCESS;
    set->byte_row_most = BYTE_ROW_MOST;
    set->byte_centre_most = BYTE_CENTRE_MOST;
    set->takes_all_bytes = BYTE_ROW_EXCESS + BYTE_ROW_MOST == 255;
    set->quantise_rows = quantise_rows;
    set->place_bytes = place_bytes;
    set->score_bytes = score_bytes;
}
