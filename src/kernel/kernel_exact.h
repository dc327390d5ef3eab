/* The entries that give the same bits in every set, in plain C that each set's file compiles for its own CPU.
 *
 * Included once by each kernel_<set>.c, after it defined DOUBLE_LANES, how many float64 its vectors hold (8 or a part
 * of 8).  Everything is static: code built for one CPU must not be linked into another's.  The bits agree because every
 * operation is IEEE's, in the order the definition says, and -ffp-contract=off keeps the compiler from fusing them. */
#include <shoal/data.h>
#include <string.h>
#include "kernel/kernel.h"
#include "kernel/nearest_integer.h"

typedef double exact_doubles __attribute__((vector_size(8 * DOUBLE_LANES)));
typedef float exact_floats __attribute__((vector_size(4 * DOUBLE_LANES)));
enum { EXACT_VECTORS = 8 / DOUBLE_LANES };
#ifndef WIDEN
#define WIDEN(floats) __builtin_convertvector(floats, exact_doubles)
#endif

/* (float32(x) - origin) * scale; a scale outside float32's range goes through float64, which rounds once as well. */
#define CENTRE_NARROW(type)                                                                                            \
    static void centre_##type(float *restrict out, const void *row, const kernel_origin *origin, int64_t columns)      \
    {                                                                                                                  \
        const type *restrict x = row;                                                                                  \
        const float *restrict from = origin->origin32;                                                                 \
        const float scale = (float)origin->scale;                                                                      \
        if ((double)scale == origin->scale)                                                                            \
            for (int64_t k = 0; k < columns; k++)                                                                      \
                out[k] = ((float)x[k] - from[k]) * scale;                                                              \
        else                                                                                                           \
            for (int64_t k = 0; k < columns; k++)                                                                      \
                out[k] = (float)((double)((float)x[k] - from[k]) * origin->scale);                                     \
    }

/* float32((float64(x) - origin) * scale) */
#define CENTRE_WIDE(type)                                                                                              \
    static void centre_##type(float *restrict out, const void *row, const kernel_origin *origin, int64_t columns)      \
    {                                                                                                                  \
        const type *restrict x = row;                                                                                  \
        const double *restrict from = origin->origin64;                                                                \
        const double scale = origin->scale;                                                                            \
        for (int64_t k = 0; k < columns; k++)                                                                          \
            out[k] = (float)(((double)x[k] - from[k]) * scale);                                                        \
    }

CENTRE_NARROW(float)
CENTRE_NARROW(int8_t)
CENTRE_NARROW(uint8_t)
CENTRE_NARROW(int16_t)
CENTRE_NARROW(uint16_t)
CENTRE_WIDE(double)
CENTRE_WIDE(int32_t)
CENTRE_WIDE(uint32_t)
CENTRE_WIDE(int64_t)
CENTRE_WIDE(uint64_t)
#undef CENTRE_NARROW
#undef CENTRE_WIDE

static void centre_row(float *out, const void *row, shoal_type type, const kernel_origin *origin, int64_t columns)
{
    static void (*const centre[SHOAL_TYPES])(float *restrict, const void *, const kernel_origin *, int64_t) = {
        [SHOAL_FLOAT32] = centre_float,   [SHOAL_FLOAT64] = centre_double,  [SHOAL_INT8] = centre_int8_t,
        [SHOAL_INT16] = centre_int16_t,   [SHOAL_INT32] = centre_int32_t,   [SHOAL_INT64] = centre_int64_t,
        [SHOAL_UINT8] = centre_uint8_t,   [SHOAL_UINT16] = centre_uint16_t, [SHOAL_UINT32] = centre_uint32_t,
        [SHOAL_UINT64] = centre_uint64_t, [SHOAL_BOOL] = centre_uint8_t,
    };
    centre[type](out, row, origin, columns);
}

/* The lanes are combined as the definition says. */
static inline double add_lanes(const double lane[8])
{
    return ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

/* The last columns go to the lane their number names. */
#define DISTANCE_END(sums, x, centre, k, columns)                                                                      \
    double lane[8];                                                                                                    \
    memcpy(lane, sums, sizeof lane);                                                                                   \
    for (; k < columns; k++) {                                                                                         \
        double difference = (double)x[k] - centre[k];                                                                  \
        lane[k % 8] += difference * difference;                                                                        \
    }                                                                                                                  \
    return add_lanes(lane)

static double distance32(const float *x, const double *centre, int64_t columns)
{
    exact_doubles sums[EXACT_VECTORS] = {0};
    int64_t k = 0;
    for (; k + 8 <= columns; k += 8)
        for (int v = 0; v < EXACT_VECTORS; v++) {
            exact_floats from;
            exact_doubles to;
            memcpy(&from, x + k + v * DOUBLE_LANES, sizeof from);
            memcpy(&to, centre + k + v * DOUBLE_LANES, sizeof to);
            exact_doubles difference = WIDEN(from) - to;
            sums[v] += difference * difference;
        }
    DISTANCE_END(sums, x, centre, k, columns);
}

static double distance64(const double *x, const double *centre, int64_t columns)
{
    exact_doubles sums[EXACT_VECTORS] = {0};
    int64_t k = 0;
    for (; k + 8 <= columns; k += 8)
        for (int v = 0; v < EXACT_VECTORS; v++) {
            exact_doubles from, to;
            memcpy(&from, x + k + v * DOUBLE_LANES, sizeof from);
            memcpy(&to, centre + k + v * DOUBLE_LANES, sizeof to);
            exact_doubles difference = from - to;
            sums[v] += difference * difference;
        }
    DISTANCE_END(sums, x, centre, k, columns);
}
#undef DISTANCE_END

static double product64(const double *a, const double *b, int64_t columns)
{
    exact_doubles sums[EXACT_VECTORS] = {0};
    double lane[8];
    int64_t k = 0;
    for (; k + 8 <= columns; k += 8)
        for (int v = 0; v < EXACT_VECTORS; v++) {
            exact_doubles left, right;
            memcpy(&left, a + k + v * DOUBLE_LANES, sizeof left);
            memcpy(&right, b + k + v * DOUBLE_LANES, sizeof right);
            sums[v] += left * right;
        }
    memcpy(lane, sums, sizeof lane);
    for (; k < columns; k++)
        lane[k % 8] += a[k] * b[k];
    return add_lanes(lane);
}

/* A tile of rows and centres has a vector of sums for each pair, as many as there are registers for. */
enum { PAIR_SIDE = DOUBLE_LANES == 8 ? 4 : 2 };

static inline double combine_lanes(const exact_doubles sums[EXACT_VECTORS])
{
    double lane[8];
    memcpy(lane, sums, sizeof lane);
    return add_lanes(lane);
}

/* One tile: `rows` and `count` are constants where it is called, so that the loops over them are unrolled. */
static inline __attribute__((always_inline)) void distance_tile(double *out, int64_t stride, const double *x,
                                                                const double *centres, int64_t columns, int rows,
                                                                int count)
{
    exact_doubles sums[PAIR_SIDE][PAIR_SIDE][EXACT_VECTORS] = {0};
    for (int64_t k = 0; k < columns; k += 8)
        for (int v = 0; v < EXACT_VECTORS; v++) {
            exact_doubles from[PAIR_SIDE];
            for (int r = 0; r < rows; r++)
                memcpy(&from[r], x + r * columns + k + v * DOUBLE_LANES, sizeof from[r]);
            for (int j = 0; j < count; j++) {
                exact_doubles to;
                memcpy(&to, centres + j * columns + k + v * DOUBLE_LANES, sizeof to);
                for (int r = 0; r < rows; r++) {
                    exact_doubles difference = from[r] - to;
                    sums[r][j][v] += difference * difference;
                }
            }
        }
    for (int r = 0; r < rows; r++)
        for (int j = 0; j < count; j++)
            out[r * stride + j] = combine_lanes(sums[r][j]);
}

static void distances(double *out, int64_t stride, const double *x, int64_t rows, const double *centres, int64_t count,
                      int64_t columns)
{
    const int64_t whole_rows = rows - rows % PAIR_SIDE, whole_centres = count - count % PAIR_SIDE;
    for (int64_t r = 0; r < whole_rows; r += PAIR_SIDE)
        for (int64_t j = 0; j < whole_centres; j += PAIR_SIDE)
            distance_tile(out + r * stride + j, stride, x + r * columns, centres + j * columns, columns, PAIR_SIDE,
                          PAIR_SIDE);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = r < whole_rows ? whole_centres : 0; j < count; j++)
            distance_tile(out + r * stride + j, stride, x + r * columns, centres + j * columns, columns, 1, 1);
}

#define MOVE(name, type)                                                                                               \
    static void name(int64_t *restrict to, int64_t *restrict from, const type *restrict x,                             \
                     const double *restrict origin, const double *restrict inverse, double weight, int64_t columns)    \
    {                                                                                                                  \
        if (from)                                                                                                      \
            for (int64_t k = 0; k < columns; k++) {                                                                    \
                int64_t value = nearest_integer(weight * ((double)x[k] - origin[k]) * inverse[k]);                     \
                to[k] = base_add_wrapping(to[k], value);                                                               \
                from[k] = base_subtract_wrapping(from[k], value);                                                      \
            }                                                                                                          \
        else                                                                                                           \
            for (int64_t k = 0; k < columns; k++)                                                                      \
                to[k] = base_add_wrapping(to[k], nearest_integer(weight * ((double)x[k] - origin[k]) * inverse[k]));   \
    }

MOVE(move32, float)
MOVE(move64, double)
#undef MOVE

#include "kernel/kernel_rows8.h"

static void fill_exact(kernel_set *set)
{
    fill_rows8(set);
    set->centre_row = centre_row;
    set->distance32 = distance32;
    set->distance64 = distance64;
    set->product64 = product64;
    set->distances = distances;
    set->move32 = move32;
    set->move64 = move64;
}
