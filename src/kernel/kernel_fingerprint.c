/* A hash of a fixed numeric probe: machines whose arithmetic gives the same bits have the same one.
 *
 * What every set must compute alike is probed for any learner: float64 arithmetic, conversions, rounding, subnormals,
 * the functions of the C library that learners call, and the exact entries of the set, the distance's definition and
 * the dense tables among them. Learners whose result depends on the set have its own products probed too.  Numbers are
 * hashed as they lie in memory, so that another byte order is another fingerprint: models travel as they are. */
#include <fenv.h>
#include <math.h>
#include <string.h>

#include "base/pool.h"
#include "kernel/kernel.h"

enum { COLUMNS = 141, ROWS = 16, CENTRES = 64, FEW_ROWS = 19, FEW_COLUMNS = 7, STRIDE = 128, VALUES = 48 };

typedef struct probe {
    uint64_t hash;
    uint64_t state; /* of the numbers that are put in */
} probe;

static void add(probe *to, const void *bytes, size_t size)
{
    const unsigned char *at = bytes;
    for (size_t i = 0; i < size; i++)
        to->hash = (to->hash ^ at[i]) * UINT64_C(0x100000001b3); /* FNV-1a */
}

static void add_double(probe *to, double value)
{
    add(to, &value, sizeof value);
}

static void add_integer(probe *to, int64_t value)
{
    add(to, &value, sizeof value);
}

/* Steele, Lea and Flood 2014: splitmix64. */
static uint64_t next_bits(probe *from)
{
    uint64_t z = from->state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* In (-1, 1), with all of float64's bits in use. */
static double next_unit(probe *from)
{
    return (double)((int64_t)next_bits(from) >> 10) * 0x1p-53;
}

static void fill_floats(probe *from, float *out, int count)
{
    for (int i = 0; i < count; i++)
        out[i] = (float)next_unit(from);
}

static void fill_doubles(probe *from, double *out, int count)
{
    for (int i = 0; i < count; i++)
        out[i] = next_unit(from);
}

/* ---- what is the same in every set ------------------------------------------------------------------------------- */

/* The state comes from a volatile, so that nothing of this is computed by the compiler. */
static void probe_arithmetic(probe *to)
{
    double sum = 0;
    for (int i = 0; i < VALUES; i++) {
        double a = next_unit(to), b = next_unit(to), tiny = a * 0x1p-1040 * 0x1p-30;
        sum += a * b + a / b; /* fused, it would be another number */
        add_double(to, sum);
        add_double(to, tiny); /* flushed to zero where subnormals are not kept */
        add_double(to, (double)(float)(a * 0x1p-140));
        add_double(to, sqrt(fabs(a)));
        add_double(to, rint(a * 1e6));
        add_double(to, fmin(a, b) - fmax(a, b));
        add_integer(to, llrint(b * 1e15));
        add_integer(to, (int64_t)(a * 0x1p60));
        add_double(to, (double)(int64_t)next_bits(to));
        add_double(to, (double)next_bits(to));
        add_double(to, (double)((__int128)(int64_t)next_bits(to) * (int64_t)(next_bits(to) >> 1)));
        int exponent;
        add_double(to, ldexp(frexp(a * 1e-200, &exponent), 3 - i));
        add_integer(to, exponent);
    }
}

/* Learners round logarithms down to whole numbers, so only that has to agree, not the last bit. */
static void probe_library(probe *to)
{
    for (int i = 1; i <= 4096; i++)
        add_integer(to, (int64_t)log((double)i));
}

/* A row of any type: bytes for integers, 0 and 1 for bools, fractions for floating point. */
static void fill_row(probe *from, unsigned char *row, shoal_type type)
{
    for (int k = 0; k < COLUMNS; k++) {
        uint64_t bits = next_bits(from) & (type == SHOAL_BOOL ? UINT64_C(0x0101010101010101) : UINT64_MAX);
        double wide = next_unit(from);
        float narrow = (float)wide;
        const void *value = type == SHOAL_FLOAT32 ? (void *)&narrow : type == SHOAL_FLOAT64 ? (void *)&wide : &bits;
        memcpy(row + (size_t)k * shoal_type_size(type), value, shoal_type_size(type));
    }
}

static void probe_centring(probe *to, const kernel_set *set)
{
    static const int exponents[] = {-160, 0, 60}; /* the first is beyond float32's range */
    _Alignas(64) float origin32[COLUMNS], out[COLUMNS];
    _Alignas(64) unsigned char row[COLUMNS * sizeof(double)];
    double origin64[COLUMNS];
    for (int k = 0; k < COLUMNS; k++)
        origin64[k] = origin32[k] = (float)next_unit(to);
    for (int type = 0; type < SHOAL_TYPES; type++)
        for (int i = 0; i < 3; i++) {
            kernel_origin origin = {.origin32 = origin32, .origin64 = origin64, .scale = ldexp(1, exponents[i])};
            fill_row(to, row, (shoal_type)type);
            set->centre_row(out, row, (shoal_type)type, &origin, COLUMNS);
            add(to, out, sizeof out);
        }
}

/* What the entries for rows of bytes find otherwise than whole numbers do: nothing, in a set that is right. */
static void probe_rows8(probe *to, const kernel_set *set)
{
    uint8_t x[64];
    int8_t other[64];
    float x32[64];
    int32_t dot, twice[64];
    uint32_t sum[64] = {0}, away[64] = {0};
    double centre[64], apart;
    const double *which = centre;
    int64_t pair[32] = {0};
    int32_t expected_dot = 0;
    uint64_t squares = 0;
    bool right = true;
    for (int k = 0; k < 64; k++) {
        x[k] = (uint8_t)(k * 37 + 255);
        other[k] = (int8_t)(k * 53 % 256 - 128);
        x32[k] = x[k];
        centre[k] = k * 3.7 + 1.0 / 3;
        twice[k] = k * 7;
        expected_dot += x[k] * other[k];
        squares += (uint64_t)((2 * x[k] - twice[k]) * (2 * x[k] - twice[k]));
    }
    set->distance8(&apart, x, &which, 1, 61);
    right &= apart == set->distance32(x32, centre, 61);
    set->dots8(&dot, x, other, 1, 64);
    right &= dot == expected_dot && set->spread8(sum, away, x, twice, 64) == squares;
    set->add8((kernel_pairs *)pair, x, 64);
    for (int k = 0; k < 64; k++)
        right &= sum[k] == x[k] &&
                 (int32_t)away[k] == (2 * x[k] < twice[k] ? twice[k] - 2 * x[k] : 2 * x[k] - twice[k]) &&
                 ((kernel_pairs *)pair)[k] == x[k];
    if (!right)
        add_integer(to, 1);
}

static void probe_exact(probe *to, const kernel_set *set)
{
    _Alignas(64) float x32[COLUMNS], scores[STRIDE];
    double x64[COLUMNS], centre[COLUMNS], inverse[COLUMNS], apart;
    int64_t there[COLUMNS] = {0}, here[COLUMNS] = {0};
    int32_t index[STRIDE + 16];
    float rest;
    for (int columns = 1; columns <= COLUMNS; columns += 7) {
        fill_floats(to, x32, COLUMNS);
        fill_doubles(to, x64, COLUMNS);
        fill_doubles(to, centre, COLUMNS);
        for (int k = 0; k < COLUMNS; k++)
            inverse[k] = ldexp(1, 20 + k % 40);
        add_double(to, set->distance32(x32, centre, columns));
        add_double(to, set->distance64(x64, centre, columns));
        add_double(to, set->product64(x64, centre, columns));
        if (columns % 8 == 0) { /* the same bits by another way: nothing new is added unless they differ */
            set->distances(&apart, 1, x64, 1, centre, 1, columns);
            if (apart != set->distance64(x64, centre, columns))
                add_double(to, apart);
        }
        set->move32(there, here, x32, centre, inverse, next_unit(to), columns);
        set->move64(there, NULL, x64, centre, inverse, next_unit(to), columns);
    }
    probe_rows8(to, set);
    add(to, there, sizeof there);
    add(to, here, sizeof here);
    fill_floats(to, scores, STRIDE);
    add_integer(to, set->least(scores, STRIDE));
    int count = set->select(index, &rest, scores, STRIDE, -0.25F);
    add_integer(to, count);
    add(to, index, (size_t)count * sizeof *index);
    add_double(to, rest);
}

/* Products of some rows and columns over some depth, both ways round; then what goes value by value. */
#define PROBE_DENSE(name, type, table, fill)                                                                           \
    static void name(probe *to, const kernel_set *set)                                                                 \
    {                                                                                                                  \
        enum { SIDE = 35, DEPTH = 21, DENSE = SIDE * SIDE };                                                           \
        static const kernel_activation each[] = {KERNEL_LINEAR, KERNEL_LOGISTIC, KERNEL_TANH, KERNEL_RELU};            \
        type a[DENSE], b[DENSE], c[DENSE], y[DENSE];                                                                   \
        double lanes[KERNEL_LANES] = {0};                                                                              \
        int64_t sums[DENSE] = {0};                                                                                     \
        fill(to, a, DENSE);                                                                                            \
        fill(to, b, DENSE);                                                                                            \
        fill(to, c, DENSE);                                                                                            \
        set->table.product(c, SIDE, a, DEPTH, 1, b, SIDE, SIDE, SIDE, DEPTH);                                          \
        set->table.product(c, SIDE, a, 1, SIDE, b, SIDE, SIDE, 3, DEPTH);                                              \
        set->table.product(c, SIDE, a, DEPTH, 1, b, 3, SIDE, 3, DEPTH);                                                \
        add(to, c, sizeof c);                                                                                          \
        for (int i = 0; i < DENSE; i++) /* from tiny to beyond where exp overflows */                                  \
            c[i] *= (type)ldexp(1, i % 30 - 18);                                                                       \
        for (size_t f = 0; f < sizeof each / sizeof *each; f++) {                                                      \
            memcpy(y, c, sizeof y);                                                                                    \
            set->table.activate(y, each[f], DENSE);                                                                    \
            add(to, y, sizeof y);                                                                                      \
            set->table.slope(a, y, each[f], DENSE);                                                                    \
            set->table.miss(y, b, each[f], lanes, DENSE);                                                              \
            set->table.multiply(y, a, DENSE);                                                                          \
            add(to, y, sizeof y);                                                                                      \
        }                                                                                                              \
        set->table.add_rows(y, b, SIDE, SIDE, SIDE);                                                                   \
        set->table.convert(a, b, SHOAL_UINT32, (type)0.3, (type)-0.7, SIDE);                                           \
        set->table.quantise(sums, b, 0x1p50, DENSE);                                                                   \
        add_double(to, set->table.greatest(b, DENSE));                                                                 \
        set->table.exp(c, DENSE);                                                                                      \
        add(to, y, sizeof y);                                                                                          \
        add(to, a, sizeof a);                                                                                          \
        add(to, c, sizeof c);                                                                                          \
        add(to, sums, sizeof sums);                                                                                    \
        add(to, lanes, sizeof lanes);                                                                                  \
    }

PROBE_DENSE(probe_dense32, float, dense32, fill_floats)
PROBE_DENSE(probe_dense64, double, dense64, fill_doubles)

static void probe_single(probe *to)
{
    for (int i = 0; i < VALUES; i++) {
        double x = ldexp(next_unit(to), i - 30);
        add_double(to, kernel_log(fabs(x)));
        add_double(to, kernel_log_one_plus(fabs(x)));
    }
}

/* ---- what each set may compute in its own way -------------------------------------------------------------------- */

static void probe_products(probe *to, const kernel_set *set)
{
    _Alignas(64) static const float no_bias[CENTRES];
    _Alignas(64) float rows[ROWS * COLUMNS], centres[CENTRES * COLUMNS], panels[ROWS * COLUMNS];
    _Alignas(64) float scores[ROWS * STRIDE] = {0}, bias[CENTRES];
    fill_floats(to, rows, ROWS * COLUMNS);
    fill_floats(to, centres, CENTRES * COLUMNS);
    fill_floats(to, bias, CENTRES);
    for (int columns = 1; columns <= COLUMNS; columns += 20) {
        add_double(to, set->dot(rows, centres, columns));
        set->score_row(scores, rows, centres, bias, CENTRES / 2, columns);
        add(to, scores, CENTRES / 2 * sizeof *scores);
    }
    set->pack_rows(panels, rows, set->tile_rows, COLUMNS);
    set->score_float(scores, STRIDE, panels, 1, centres, no_bias, 1, COLUMNS);
    for (int r = 0; r < set->tile_rows; r++)
        add(to, scores + r * STRIDE, (size_t)set->tile_centres * sizeof *scores);
}

static void probe_few(probe *to, const kernel_set *set)
{
    _Alignas(64) float workspace[KERNEL_FEW_WORKSPACE];
    _Alignas(64) float rows[FEW_ROWS * FEW_COLUMNS], centres[CENTRES * FEW_COLUMNS], bias[CENTRES];
    float best[FEW_ROWS], second[FEW_ROWS], square[FEW_ROWS];
    int32_t index[FEW_ROWS];
    kernel_nearest nearest = {.best = best, .second = second, .index = index, .square = square};
    fill_floats(to, rows, FEW_ROWS * FEW_COLUMNS);
    fill_floats(to, centres, CENTRES * FEW_COLUMNS);
    fill_floats(to, bias, CENTRES);
    set->nearest_few(&nearest, rows, FEW_ROWS, centres, bias, CENTRES - 1, FEW_COLUMNS, workspace);
    add(to, best, sizeof best);
    add(to, second, sizeof second);
    add(to, index, sizeof index);
    add(to, square, sizeof square);
}

static void probe_bytes(probe *to, const kernel_set *set)
{
    enum { FOURS = (COLUMNS + 3) / 4 };
    _Alignas(64) uint8_t panels[ROWS * FOURS * 4];
    _Alignas(64) int8_t centres[CENTRES * FOURS * 4];
    _Alignas(64) float rows[ROWS * COLUMNS], step[ROWS], norm[ROWS], residual[ROWS], lower[ROWS * STRIDE];
    _Alignas(64) float values[CENTRES];
    _Alignas(64) int32_t offset[CENTRES] = {0};
    kernel_byte_rows out = {.panels = panels, .step = step, .norm = norm, .residual = residual};
    kernel_byte_centres from = {
        .panels = centres, .bias = values, .step = values, .offset = offset, .residual = values, .norm = values};
    int count = set->byte_tile_rows, most = set->byte_tile_centres;
    if (count == 0 || count > ROWS || most > CENTRES)
        return;
    fill_floats(to, rows, ROWS * COLUMNS);
    fill_floats(to, values, CENTRES);
    for (int i = 0; i < CENTRES * FOURS * 4; i++)
        centres[i] = (int8_t)(next_bits(to) % 127) - 63;
    set->quantise_rows(&out, rows, count, COLUMNS);
    set->score_bytes(lower, STRIDE, &out, 1, &from, 1, COLUMNS);
    add(to, panels, (size_t)count * FOURS * 4);
    add(to, norm, (size_t)count * sizeof *norm);
    add(to, residual, (size_t)count * sizeof *residual);
    for (int r = 0; r < count; r++)
        add(to, lower + r * STRIDE, (size_t)most * sizeof *lower);
}

uint64_t kernel_fingerprint(const kernel_set *set, bool any_set)
{
    volatile uint64_t seed = 20;
    probe to = {.hash = UINT64_C(0xcbf29ce484222325), .state = seed};
    fenv_t callers;
    fegetenv(&callers);
    base_default_arithmetic();
    probe_arithmetic(&to);
    probe_library(&to);
    probe_centring(&to, set);
    probe_exact(&to, set);
    probe_dense32(&to, set);
    probe_dense64(&to, set);
    probe_single(&to);
    if (!any_set) {
        probe_products(&to, set);
        probe_few(&to, set);
        probe_bytes(&to, set);
    }
    fesetenv(&callers);
    return to.hash;
}
