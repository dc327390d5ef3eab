/* Every entry of every kernel set against its definition, on random and extreme input.
 *
 *     test_kernel                   each set, each entry: exact entries bit for bit, the others within their bounds
 *     test_kernel --bench [WORD]    how fast each entry (whose name has WORD in it) of each set is, beside the rate of
 *                                   multiply-adds measured between the runs on the same thread
 *
 * The definitions are spelled out here in scalar code, and the portable set is held to them like any other.  Buffers
 * end at a page that can't be touched, so that reading or writing one value too many is a crash. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <shoal/data.h>
#include <shoal/error.h>
#include "kernel/kernel.h"

#include "buffers.h"
#include "rates.h"

static const kernel_set *sets[8];
static int count_sets;

/* ---- buffers and random input ------------------------------------------------------------------------------------ */

static float *fence_floats(int64_t count)
{
    return fence((size_t)count * sizeof(float));
}

/* Kinds of input; kernel.h promises |z| < 2^60. */
enum { UNIFORM, EQUAL, WIDE, TINY, HUGE_VALUES, TIES, ZEROS, KINDS };

static float random_float(int kind)
{
    double sign = random_bits() & 1 ? 1 : -1, unit = random_unit();
    switch (kind) {
    case EQUAL: return 0.7f;
    case WIDE: return (float)(sign * ldexp(unit, (int)(random_bits() % 80) - 60));
    case TINY: return (float)(sign * ldexp(unit, -(int)(random_bits() % 60) - 90));
    case HUGE_VALUES: return (float)(sign * ldexp(unit, 45));
    case TIES: return (float)((int)(random_bits() % 7) - 3) / 2;
    case ZEROS: return random_bits() & 1 ? 0.0f : -0.0f;
    default: return (float)(sign * unit);
    }
}

static float *random_floats(int64_t count, int kind)
{
    float *out = fence_floats(count);
    for (int64_t i = 0; i < count; i++)
        out[i] = random_float(kind);
    return out;
}

static double *random_doubles(int64_t count, int kind)
{
    double *out = fence((size_t)count * sizeof *out);
    for (int64_t i = 0; i < count; i++)
        out[i] = random_float(kind) * (1 + random_unit());
    return out;
}

/* Sizes 1 to 70, then a few large ones around the chain's length and its multiples. */
static const int64_t large_sizes[] = {127, 128, 129, 255, 257, 784, 1000, 2049, 5003};
enum { SIZES = 70 + sizeof large_sizes / sizeof *large_sizes };

static int64_t size_of(int i)
{
    return i < 70 ? i + 1 : large_sizes[i - 70];
}

/* Most |computed - true| of a sum of `roundings`-fold rounded terms with these magnitudes; underflow may lose a
 * subnormal in each column. */
static long double sum_bound(int64_t roundings, long double magnitudes, int64_t columns)
{
    long double u = (long double)roundings * 0x1p-24L;
    return u / (1 - u) * magnitudes + (long double)(2 * columns + 2) * 0x1p-150L;
}

/* ---- which sets there are ---------------------------------------------------------------------------------------- */

static void test_choose(void **state)
{
    (void)state;
    const kernel_set *set = NULL;
    unsetenv("SHOAL_KERNEL");
    assert_int_equal(kernel_choose(&set, NULL), SHOAL_OK);
    assert_ptr_equal(set, sets[count_sets - 1]);
    assert_int_equal(kernel_choose(&set, "portable"), SHOAL_OK);
    assert_ptr_equal(set, sets[0]);
    assert_int_equal(kernel_choose(&set, "abacus"), SHOAL_USAGE);
    assert_non_null(strstr(shoal_error(), "--kernel: 'abacus' is not one of auto, portable"));
    assert_non_null(strstr(shoal_error(), "portable"));
    assert_null(strstr(shoal_error(), "SHOAL_KERNEL"));
    static const char *const names[] = {"portable", "avx2", "avx512", "vnni"};
    for (int i = 0; i < 4; i++) {
        bool runs = false;
        for (int s = 0; s < count_sets; s++)
            runs |= !strcmp(sets[s]->name, names[i]);
        assert_int_equal(kernel_choose(&set, names[i]), runs ? SHOAL_OK : SHOAL_USAGE);
        if (!runs)
            assert_non_null(strstr(shoal_error(), "this CPU does not have"));
    }
    setenv("SHOAL_KERNEL", "portable", 1);
    assert_int_equal(kernel_choose(&set, "auto"), SHOAL_OK);
    assert_ptr_equal(set, sets[0]);
    assert_int_equal(kernel_choose(&set, sets[count_sets - 1]->name), SHOAL_OK);
    assert_ptr_equal(set, sets[count_sets - 1]);
    setenv("SHOAL_KERNEL", "abacus", 1);
    assert_int_equal(kernel_choose(&set, NULL), SHOAL_USAGE);
    assert_non_null(strstr(shoal_error(), "variable SHOAL_KERNEL: 'abacus' is not one of auto"));
    unsetenv("SHOAL_KERNEL");
}

static void test_shapes(void **state)
{
    (void)state;
    for (int s = 0; s < count_sets; s++) {
        const kernel_set *set = sets[s];
        assert_in_range(set->tile_rows, 1, KERNEL_TILE_ROWS_MOST);
        assert_in_range(set->tile_centres, 1, KERNEL_TILE_CENTRES_MOST);
        assert_true(set->byte_tile_rows <= KERNEL_TILE_ROWS_MOST);
        assert_true(set->byte_tile_centres <= KERNEL_TILE_CENTRES_MOST);
        assert_int_equal(!set->byte_tile_rows, !set->quantise_rows);
        assert_int_equal(!set->byte_tile_rows, !set->place_bytes);
        assert_int_equal(!set->byte_tile_rows, !set->score_bytes);
        int64_t most = (int64_t)(set->byte_row_excess + set->byte_row_most) * set->byte_centre_most;
        assert_true(most * KERNEL_BYTE_COLUMNS_MOST <= INT32_MAX);
    }
}

/* ---- centre_row -------------------------------------------------------------------------------------------------- */

static const size_t type_sizes[SHOAL_TYPES] = {4, 8, 1, 2, 4, 8, 1, 2, 4, 8, 1};

static float centred(const void *row, shoal_type type, int64_t k, const kernel_origin *origin)
{
    double x = 0;
    switch (type) {
    case SHOAL_FLOAT32: x = ((const float *)row)[k]; break;
    case SHOAL_FLOAT64: x = ((const double *)row)[k]; break;
    case SHOAL_INT8: x = ((const int8_t *)row)[k]; break;
    case SHOAL_INT16: x = ((const int16_t *)row)[k]; break;
    case SHOAL_INT32: x = ((const int32_t *)row)[k]; break;
    case SHOAL_INT64: x = (double)((const int64_t *)row)[k]; break;
    case SHOAL_UINT16: x = ((const uint16_t *)row)[k]; break;
    case SHOAL_UINT32: x = ((const uint32_t *)row)[k]; break;
    case SHOAL_UINT64: x = (double)((const uint64_t *)row)[k]; break;
    default: x = ((const uint8_t *)row)[k]; break;
    }
    if (type == SHOAL_FLOAT64 || (type_sizes[type] >= 4 && type != SHOAL_FLOAT32))
        return (float)((x - origin->origin64[k]) * origin->scale);
    float difference = (float)x - origin->origin32[k];
    return (float)((double)difference * origin->scale);
}

static void *random_row(shoal_type type, int64_t columns, int kind)
{
    if (type == SHOAL_FLOAT32)
        return random_floats(columns, kind);
    if (type == SHOAL_FLOAT64)
        return random_doubles(columns, kind);
    uint8_t *row = fence((size_t)columns * type_sizes[type]);
    for (size_t i = 0; i < (size_t)columns * type_sizes[type]; i++)
        row[i] = type == SHOAL_BOOL ? random_bits() & 1 : kind == EQUAL ? 255 : random_bits() & 255;
    return row;
}

static void check_centre_row(int64_t columns, shoal_type type, int kind, double scale)
{
    void *row = random_row(type, columns, kind);
    float *origin32 = random_floats(columns, kind), *out = fence_floats(columns);
    double *origin64 = fence((size_t)columns * sizeof *origin64);
    for (int64_t k = 0; k < columns; k++)
        origin64[k] = origin32[k];
    kernel_origin origin = {origin32, origin64, scale};
    for (int s = 0; s < count_sets; s++) {
        const kernel_set *set = sets[s];
        memset(out, 0xff, (size_t)columns * sizeof *out);
        set->centre_row(out, row, type, &origin, columns);
        for (int64_t k = 0; k < columns; k++) {
            float expected = centred(row, type, k, &origin);
            assert_memory_equal(&out[k], &expected, sizeof expected);
        }
    }
    drop_fences();
}

static void test_centre_row(void **state)
{
    (void)state;
    const double scales[] = {1, 0.125, 0x1p40, 0x1p-140, 0x1p-300};
    for (int i = 0; i < SIZES; i++)
        for (int type = 0; type < SHOAL_TYPES; type++)
            for (int s = 0; s < 5; s++)
                check_centre_row(size_of(i), (shoal_type)type, (i + s) % KINDS, scales[s]);
}

/* ---- distance, move ---------------------------------------------------------------------------------------------- */

#define DISTANCE(x, centre, columns)                                                                                   \
    double lane[8] = {0};                                                                                              \
    for (int64_t k = 0; k < columns; k++) {                                                                            \
        double difference = (double)x[k] - centre[k], square = difference * difference;                                \
        lane[k % 8] += square;                                                                                         \
    }                                                                                                                  \
    return ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]))

static double distance32(const float *x, const double *centre, int64_t columns)
{
    DISTANCE(x, centre, columns);
}

static double distance64(const double *x, const double *centre, int64_t columns)
{
    DISTANCE(x, centre, columns);
}

static double product64(const double *x, const double *centre, int64_t columns)
{
    double lane[8] = {0};
    for (int64_t k = 0; k < columns; k++) {
        double product = x[k] * centre[k];
        lane[k % 8] += product;
    }
    return ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

static void check_distance(int64_t columns, int kind)
{
    float *narrow = random_floats(columns, kind);
    double *wide = random_doubles(columns, kind), *centre = random_doubles(columns, kind);
    double expected32 = distance32(narrow, centre, columns), expected64 = distance64(wide, centre, columns);
    double product = product64(wide, centre, columns);
    for (int s = 0; s < count_sets; s++) {
        const kernel_set *set = sets[s];
        double got32 = set->distance32(narrow, centre, columns), got64 = set->distance64(wide, centre, columns);
        assert_memory_equal(&got32, &expected32, sizeof got32);
        assert_memory_equal(&got64, &expected64, sizeof got64);
        got64 = set->product64(wide, centre, columns);
        assert_memory_equal(&got64, &product, sizeof got64);
    }
    drop_fences();
}

/* All pairs of some rows and centres, as many as there are of whole tiles and a rest. */
static void check_distances(int64_t columns, int64_t rows, int64_t count, int kind)
{
    enum { STRIDE = 11 };
    double *x = random_doubles(rows * columns, kind), *centres = random_doubles(count * columns, kind);
    double *out = fence((size_t)((rows - 1) * STRIDE + count) * sizeof *out);
    for (int s = 0; s < count_sets; s++) {
        sets[s]->distances(out, STRIDE, x, rows, centres, count, columns);
        for (int64_t r = 0; r < rows; r++)
            for (int64_t j = 0; j < count; j++) {
                double expected = distance64(x + r * columns, centres + j * columns, columns);
                assert_memory_equal(&out[r * STRIDE + j], &expected, sizeof expected);
            }
    }
    drop_fences();
}

static void test_distances(void **state)
{
    (void)state;
    for (int64_t columns = 8; columns <= 40; columns += 16)
        for (int kind = 0; kind < KINDS; kind++)
            for (int64_t rows = 1; rows <= 9; rows += 2)
                for (int64_t count = 1; count <= 11; count += 3)
                    check_distances(columns, rows, count, kind);
}

static void test_distance(void **state)
{
    (void)state;
    for (int i = 0; i < SIZES; i++)
        for (int kind = 0; kind < KINDS; kind++)
            check_distance(size_of(i), kind);
}

/* Values that land on halves, beyond 2^53, just below 2^62, and on 0 because the column is skipped. */
static void random_move(double *x, double *inverse, double *origin, int64_t columns, bool narrow)
{
    for (int64_t k = 0; k < columns; k++) {
        int kind = (int)(random_bits() % 6);
        origin[k] = kind == 5 ? (float)random_unit() : 0;
        x[k] = kind == 0 ? (double)((int64_t)(random_bits() % 4001) - 2000) / 2 : 2 * random_unit() - 1;
        if (narrow)
            x[k] = (float)x[k];
        inverse[k] = kind == 0 ? 1 : kind == 1 ? 0 : kind == 2 ? 0x1p61 : ldexp(1, (int)(random_bits() % 60));
    }
}

static void check_move_set(const kernel_set *set, int64_t columns, double weight, bool narrow, bool both)
{
    double *x = fence((size_t)columns * 8), *origin = fence((size_t)columns * 8), *inverse = fence((size_t)columns * 8);
    float *x32 = fence_floats(columns);
    int64_t *to = fence((size_t)columns * 8), *from = fence((size_t)columns * 8);
    random_move(x, inverse, origin, columns, narrow);
    for (int64_t k = 0; k < columns; k++) {
        x32[k] = (float)x[k];
        to[k] = k;
        from[k] = -k;
    }
    if (narrow)
        set->move32(to, both ? from : NULL, x32, origin, inverse, weight, columns);
    else
        set->move64(to, both ? from : NULL, x, origin, inverse, weight, columns);
    for (int64_t k = 0; k < columns; k++) {
        double product = weight * (x[k] - origin[k]);
        int64_t expected = (int64_t)rint(product * inverse[k]);
        assert_int_equal(to[k], k + expected);
        assert_int_equal(from[k], both ? -k - expected : -k);
    }
    drop_fences();
}

static void test_move(void **state)
{
    (void)state;
    const double weights[] = {1, 0.3, 0x1p-70};
    for (int i = 0; i < SIZES; i++)
        for (int w = 0; w < 3; w++)
            for (int s = 0; s < count_sets; s++)
                for (int form = 0; form < 4; form++)
                    check_move_set(sets[s], size_of(i), weights[w], form & 1, form & 2);
}

/* ---- dot --------------------------------------------------------------------------------------------------------- */

static void check_dot(int64_t columns, int kind)
{
    float *a = random_floats(columns, kind), *b = random_floats(columns, kind);
    long double expected = 0, magnitudes = 0;
    for (int64_t k = 0; k < columns; k++) {
        expected += (long double)a[k] * b[k];
        magnitudes += fabsl((long double)a[k] * b[k]);
    }
    long double bound = sum_bound(kernel_roundings(columns), magnitudes, columns);
    for (int s = 0; s < count_sets; s++)
        assert_true(fabsl(sets[s]->dot(a, b, columns) - expected) <= bound);
    drop_fences();
}

static void test_dot(void **state)
{
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        for (int i = 0; i < SIZES; i++)
            check_dot(size_of(i), kind);
        check_dot(70001, kind);
    }
}

/* ---- score_row --------------------------------------------------------------------------------------------------- */

static long double true_score(const float *row, const float *centre, float bias, int64_t columns,
                              long double *magnitudes);
static float *biases(const float *centres, int count, int padded, int64_t columns);

static void check_score_row(int count, int64_t columns, int kind)
{
    float *z = random_floats(columns, kind), *centres = random_floats(count * columns, kind);
    float *bias = biases(centres, count, count, columns), *scores = fence_floats(count);
    for (int s = 0; s < count_sets; s++) {
        sets[s]->score_row(scores, z, centres, bias, count, columns);
        for (int j = 0; j < count; j++) {
            long double magnitudes, expected = true_score(z, centres + j * columns, bias[j], columns, &magnitudes);
            assert_true(fabsl(scores[j] - expected) <= sum_bound(kernel_roundings(columns), magnitudes, columns));
        }
    }
    drop_fences();
}

static void test_score_row(void **state)
{
    (void)state;
    for (int kind = 0; kind < KINDS; kind++)
        for (int i = 0; i < SIZES; i++)
            check_score_row(1 + i % 11, size_of(i), kind);
    check_score_row(5, 70001, 0);
}

/* ---- pack_rows, score_float -------------------------------------------------------------------------------------- */

static int panels_of(int count, int tile)
{
    return (count + tile - 1) / tile;
}

/* Centre panels as the learner makes them: [column][tile], zeros for padding, whose bias is +infinity. */
static float *pack_centres(const float *centres, int count, int64_t columns, int tile)
{
    float *panels = fence_floats(panels_of(count, tile) * tile * columns);
    for (int j = 0; j < count; j++)
        for (int64_t k = 0; k < columns; k++)
            panels[(j / tile * columns + k) * tile + j % tile] = centres[j * columns + k];
    return panels;
}

static float *biases(const float *centres, int count, int padded, int64_t columns)
{
    float *bias = fence_floats(padded);
    for (int j = 0; j < padded; j++) {
        double square = 0;
        for (int64_t k = 0; j < count && k < columns; k++)
            square += (double)centres[j * columns + k] * centres[j * columns + k];
        bias[j] = j < count ? (float)(square / 2) : INFINITY;
    }
    return bias;
}

/* bias - row . centre, and the sum of the magnitudes */
static long double true_score(const float *row, const float *centre, float bias, int64_t columns,
                              long double *magnitudes)
{
    long double score = bias;
    *magnitudes = fabsl((long double)bias);
    for (int64_t k = 0; k < columns; k++) {
        long double product = (long double)row[k] * centre[k];
        score -= product;
        *magnitudes += fabsl(product);
    }
    return score;
}

static void check_pack_rows(const kernel_set *set, const float *panels, const float *rows, int count, int64_t columns)
{
    int tile = set->tile_rows;
    for (int r = 0; r < panels_of(count, tile) * tile; r++)
        for (int64_t k = 0; k < columns; k++) {
            float expected = r < count ? rows[r * columns + k] : 0;
            assert_memory_equal(&panels[(r / tile * columns + k) * tile + r % tile], &expected, sizeof expected);
        }
}

static void check_scores(const kernel_set *set, const float *rows, int count_rows, const float *centres, int count,
                         int64_t columns)
{
    int row_panels = panels_of(count_rows, set->tile_rows), centre_panels = panels_of(count, set->tile_centres);
    int padded_rows = row_panels * set->tile_rows, padded = centre_panels * set->tile_centres;
    int64_t stride = (padded + 15) / 16 * 16 + 16;
    float *panels = fence(((size_t)(padded_rows * columns) * 4 + 63) / 64 * 64);
    float *packed = pack_centres(centres, count, columns, set->tile_centres);
    float *bias = biases(centres, count, padded, columns);
    float *scores = fence_floats(padded_rows * stride);
    set->pack_rows(panels, rows, count_rows, columns);
    check_pack_rows(set, panels, rows, count_rows, columns);
    for (int64_t i = 0; i < padded_rows * stride; i++)
        scores[i] = -77;
    set->score_float(scores, stride, panels, row_panels, packed, bias, centre_panels, columns);
    for (int r = 0; r < count_rows; r++) {
        for (int j = 0; j < count; j++) {
            long double magnitudes,
                expected = true_score(rows + r * columns, centres + j * columns, bias[j], columns, &magnitudes);
            long double bound = sum_bound(kernel_roundings(columns), magnitudes, columns);
            assert_true(fabsl(scores[r * stride + j] - expected) <= bound);
        }
        for (int j = count; j < stride; j++)
            assert_true(scores[r * stride + j] == (j < padded ? INFINITY : -77));
    }
}

static void check_score_float(const kernel_set *set, int count_rows, int count, int64_t columns, int kind)
{
    float *rows = random_floats(count_rows * columns, kind), *centres = random_floats(count * columns, kind);
    check_scores(set, rows, count_rows, centres, count, columns);
    drop_fences();
}

static void test_score_float(void **state)
{
    (void)state;
    for (int s = 0; s < count_sets; s++) {
        const kernel_set *set = sets[s];
        for (int i = 0; i < SIZES - 1; i++)
            check_score_float(set, 1 + i % 29, 1 + i * 7 % 70, size_of(i), i % KINDS);
        for (int i = 1; i <= 70; i++)
            check_score_float(set, i, 71 - i, 1 + i % 5, UNIFORM);
        check_score_float(set, 13, 33, 5003, WIDE);
    }
}

/* The worst case of a chain: after 1 it loses all that is half a last place or less.  So it must not be long. */
static void test_chains(void **state)
{
    (void)state;
    const int64_t columns = 20000;
    float *row = fence_floats(columns), *centre = fence_floats(columns);
    for (int64_t k = 0; k < columns; k++) {
        row[k] = 1;
        centre[k] = k ? 0x1p-24f : 1;
    }
    long double expected = 1 + (columns - 1) * 0x1p-24L,
                bound = sum_bound(kernel_roundings(columns), expected, columns);
    for (int s = 0; s < count_sets; s++) {
        check_scores(sets[s], row, 1, centre, 1, columns);
        assert_true(fabsl(sets[s]->dot(row, centre, columns) - expected) <= bound);
    }
    drop_fences();
}

/* ---- quantise_rows, score_bytes ---------------------------------------------------------------------------------- */

static kernel_byte_rows byte_rows_new(const kernel_set *set, int count, int64_t columns)
{
    int padded = panels_of(count, set->byte_tile_rows) * set->byte_tile_rows;
    return (kernel_byte_rows){
        .panels = fence(((size_t)padded * (size_t)((columns + 3) / 4 * 4) + 63) / 64 * 64),
        .step = fence_floats(padded),
        .norm = fence_floats(padded),
        .residual = fence_floats(padded),
    };
}

static int row_value(const kernel_set *set, const kernel_byte_rows *rows, int r, int64_t k, int64_t columns)
{
    int tile = set->byte_tile_rows;
    return rows->panels[((r / tile * ((columns + 3) / 4) + k / 4) * tile + r % tile) * 4 + k % 4] -
           set->byte_row_excess;
}

static void check_quantised_row(const kernel_set *set, const kernel_byte_rows *rows, int r, const float *z,
                                int64_t columns)
{
    long double norm = 0, residual = 0, most = 0;
    for (int64_t k = 0; k < (columns + 3) / 4 * 4; k++) {
        int v = row_value(set, rows, r, k, columns);
        long double value = z && k < columns ? z[k] : 0, e = value - (long double)rows->step[r] * v;
        assert_true(abs(v) <= set->byte_row_most);
        assert_true(value != 0 || v == 0);
        norm += value * value;
        residual += e * e;
        most = fabsl(value) > most ? fabsl(value) : most;
    }
    norm = sqrtl(norm);
    residual = sqrtl(residual);
    assert_true(rows->norm[r] >= norm && rows->norm[r] <= norm * (1 + 1e-3L) + 0x1p-149L);
    assert_true(rows->residual[r] >= residual);
    assert_true(rows->residual[r] <= residual * (1 + 1e-3L) + norm * 0x1p-22L + 0x1p-149L);
    assert_true(most >= 0x1p-100L ? rows->step[r] > 0 : rows->step[r] == 0);
}

/* Bytes go where quantise_rows would put them. */
static void test_place_bytes(void **state)
{
    (void)state;
    for (int s = 0; s < count_sets; s++)
        for (int64_t columns = 1; sets[s]->byte_tile_rows > 0 && columns < 40; columns++) {
            int tile = sets[s]->byte_tile_rows;
            int64_t padded = (columns + 3) / 4 * 4;
            uint8_t *panels = fence((size_t)(2 * tile * padded)), *row = fence((size_t)columns);
            for (int r = 0; r < 2 * tile; r++) {
                for (int64_t k = 0; k < columns; k++)
                    row[k] = (uint8_t)random_bits();
                sets[s]->place_bytes(panels, row, r, columns);
                for (int64_t k = 0; k < columns; k++)
                    assert_int_equal(panels[r / tile * tile * padded + k / 4 * tile * 4 + r % tile * 4 + k % 4],
                                     row[k]);
            }
            drop_fences();
        }
}

/* ---- rows that are bytes ----------------------------------------------------------------------------------------- */

static uint8_t *random_bytes(int64_t count, int kind)
{
    uint8_t *out = fence((size_t)count);
    for (int64_t i = 0; i < count; i++)
        out[i] = kind == EQUAL ? 255 : (uint8_t)random_bits();
    return out;
}

static void check_distance8(const kernel_set *set, int64_t columns, int64_t rows, int kind)
{
    enum { CENTRES = 3 };
    const uint8_t *x = random_bytes(rows * columns, kind);
    const double *centre = random_doubles(CENTRES * columns, kind), *which[16];
    float *row = fence_floats(columns);
    double *out = fence((size_t)rows * sizeof *out);
    for (int64_t r = 0; r < rows; r++)
        which[r] = centre + r * 2 % CENTRES * columns;
    set->distance8(out, x, which, rows, columns);
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t k = 0; k < columns; k++)
            row[k] = x[r * columns + k];
        const double expected = distance32(row, which[r], columns);
        assert_memory_equal(&out[r], &expected, sizeof expected);
    }
    drop_fences();
}

static void check_spread8(const kernel_set *set, int64_t columns, int kind)
{
    const uint8_t *x = random_bytes(columns, kind);
    uint32_t *sum = fence((size_t)columns * sizeof *sum), *away = fence((size_t)columns * sizeof *away);
    kernel_pairs *to = fence((size_t)columns * sizeof *to);
    int32_t *twice = fence((size_t)columns * sizeof *twice);
    uint64_t squares = 0;
    for (int64_t k = 0; k < columns; k++) {
        twice[k] = kind == EQUAL ? 0 : (int32_t)(random_bits() % 511);
        squares += (uint64_t)((2 * x[k] - twice[k]) * (2 * x[k] - twice[k]));
        sum[k] = (uint32_t)k;
        away[k] = to[k] = UINT32_MAX - 1000 - (uint32_t)k;
    }
    assert_int_equal(set->spread8(sum, away, x, twice, columns), squares);
    set->add8(to, x, columns);
    for (int64_t k = 0; k < columns; k++) {
        assert_int_equal(sum[k], k + x[k]);
        assert_int_equal(away[k], UINT32_MAX - 1000 - k + abs(2 * x[k] - twice[k]));
        assert_int_equal(to[k], UINT32_MAX - 1000 - k + x[k]);
    }
    drop_fences();
}

static void check_dots8(const kernel_set *set, int64_t bytes, int count, int kind)
{
    const uint8_t *row = random_bytes(bytes, kind);
    int8_t *others = fence((size_t)(bytes * count));
    int32_t *dots = fence((size_t)count * sizeof *dots);
    for (int64_t i = 0; i < bytes * count; i++)
        others[i] = kind == EQUAL ? -128 : (int8_t)random_bits();
    set->dots8(dots, row, others, count, bytes);
    for (int i = 0; i < count; i++) {
        int64_t expected = 0;
        for (int64_t k = 0; k < bytes; k++)
            expected += row[k] * others[i * bytes + k];
        assert_int_equal(dots[i], expected);
    }
    drop_fences();
}

static void test_rows_of_bytes(void **state)
{
    (void)state;
    for (int s = 0; s < count_sets; s++)
        for (int kind = UNIFORM; kind <= EQUAL; kind++) {
            for (int i = 0; i < SIZES; i++) {
                check_distance8(sets[s], size_of(i), 1 + i % 11, kind);
                check_spread8(sets[s], size_of(i), kind);
            }
            check_spread8(sets[s], 20000, kind);
            for (int64_t bytes = 64; bytes <= 1024; bytes += 64)
                check_dots8(sets[s], bytes, 1 + (int)bytes / 64 % 7, kind);
            check_dots8(sets[s], KERNEL_BYTE_COLUMNS_MOST, 2, kind);
        }
}

/* Centres as the learner quantises them. */
typedef struct byte_centres {
    kernel_byte_centres view;
    int8_t *panels;
    float *bias, *step, *residual, *norm;
    int32_t *offset;
} byte_centres;

static float up(long double value)
{
    float nearest = (float)value;
    return (long double)nearest < value ? nextafterf(nearest, INFINITY) : nearest;
}

static void quantise_centre(const byte_centres *out, const kernel_set *set, int j, const float *centre, int64_t columns)
{
    int tile = set->byte_tile_centres;
    long double square = 0, residual = 0, norm = 0;
    float most = 0;
    for (int64_t k = 0; k < columns; k++)
        most = fabsf(centre[k]) > most ? fabsf(centre[k]) : most;
    float step = most < 0x1p-100f ? 0 : most / (float)set->byte_centre_most;
    int32_t sum = 0;
    for (int64_t k = 0; k < columns; k++) {
        int v = step > 0 ? (int)rint((double)centre[k] / step) : 0;
        long double value = (long double)step * v, e = centre[k] - value;
        assert_true(abs(v) <= set->byte_centre_most);
        out->panels[((j / tile * ((columns + 3) / 4) + k / 4) * tile + j % tile) * 4 + k % 4] = (int8_t)v;
        square += (long double)centre[k] * centre[k];
        residual += e * e;
        norm += value * value;
        sum += v;
    }
    out->step[j] = step;
    out->offset[j] = set->byte_row_excess * sum;
    out->residual[j] = up(sqrtl(residual) + sqrtl(square) * 0x1p-20L);
    out->norm[j] = up(sqrtl(norm) * (1 + 0x1p-20L));
    out->bias[j] = -up(-square / 2 * (1 - 0x1p-20L));
}

static byte_centres byte_centres_new(const kernel_set *set, const float *centres, int count, int64_t columns)
{
    int tile = set->byte_tile_centres, padded = panels_of(count, tile) * tile;
    byte_centres out = {
        .panels = fence((size_t)padded * (size_t)((columns + 3) / 4 * 4)),
        .bias = fence_floats(padded),
        .step = fence_floats(padded),
        .residual = fence_floats(padded),
        .norm = fence_floats(padded),
        .offset = fence((size_t)padded * 4),
    };
    for (int j = 0; j < padded; j++)
        if (j < count)
            quantise_centre(&out, set, j, centres + j * columns, columns);
        else
            out.bias[j] = INFINITY;
    out.view = (kernel_byte_centres){out.panels, out.bias, out.step, out.offset, out.residual, out.norm};
    return out;
}

/* What score_bytes approximates, from the same bytes, and the sum of its terms' magnitudes. */
static long double byte_bound(const kernel_set *set, const kernel_byte_rows *rows, int r, const byte_centres *centres,
                              int j, int64_t columns, long double *magnitudes)
{
    int tile = set->byte_tile_centres;
    int64_t dot = 0;
    for (int64_t k = 0; k < columns; k++)
        dot += row_value(set, rows, r, k, columns) *
               centres->panels[((j / tile * ((columns + 3) / 4) + k / 4) * tile + j % tile) * 4 + k % 4];
    long double product = (long double)rows->step[r] * centres->step[j] * dot;
    long double errors =
        (long double)rows->norm[r] * centres->residual[j] + (long double)rows->residual[r] * centres->norm[j];
    *magnitudes = fabsl((long double)centres->bias[j]) + fabsl(product) + errors;
    return centres->bias[j] - product - errors;
}

static void check_score_bytes(const kernel_set *set, int count_rows, int count, int64_t columns, int kind)
{
    int row_panels = panels_of(count_rows, set->byte_tile_rows),
        centre_panels = panels_of(count, set->byte_tile_centres);
    int padded_rows = row_panels * set->byte_tile_rows, padded = centre_panels * set->byte_tile_centres;
    int64_t stride = (padded + 15) / 16 * 16;
    float *z = random_floats(count_rows * columns, kind), *c = random_floats(count * columns, kind);
    if (kind == WIDE)
        memset(z, 0, (size_t)columns * sizeof *z);
    kernel_byte_rows rows = byte_rows_new(set, count_rows, columns);
    byte_centres centres = byte_centres_new(set, c, count, columns);
    float *lower = fence_floats(padded_rows * stride);
    set->quantise_rows(&rows, z, count_rows, columns);
    set->score_bytes(lower, stride, &rows, row_panels, &centres.view, centre_panels, columns);
    for (int r = 0; r < padded_rows; r++) {
        check_quantised_row(set, &rows, r, r < count_rows ? z + r * columns : NULL, columns);
        for (int j = count; j < padded; j++)
            assert_true(lower[r * stride + j] == INFINITY);
        for (int j = 0; j < count && r < count_rows; j++) {
            long double magnitudes, unused, got = lower[r * stride + j], square = 0;
            long double bound = byte_bound(set, &rows, r, &centres, j, columns, &magnitudes);
            for (int64_t k = 0; k < columns; k++)
                square += (long double)c[j * columns + k] * c[j * columns + k];
            long double score = true_score(z + r * columns, c + j * columns, 0, columns, &unused) + square / 2;
            assert_true(got <= score);
            assert_true(fabsl(got - bound) <= 8 * 0x1p-24L * magnitudes + 0x1p-139L);
        }
    }
    drop_fences();
}

static void test_score_bytes(void **state)
{
    (void)state;
    for (int s = 0; s < count_sets; s++) {
        const kernel_set *set = sets[s];
        if (!set->byte_tile_rows)
            continue;
        for (int i = 0; i < SIZES - 1; i++)
            check_score_bytes(set, 1 + i % 29, 1 + i * 7 % 70, size_of(i), i % KINDS);
        for (int kind = 0; kind < KINDS; kind++)
            check_score_bytes(set, 14, 35, 53, kind);
    }
}

/* The greatest dot product there is, of either sign: all values at their limit. */
static void test_bytes_do_not_overflow(void **state)
{
    (void)state;
    enum { COLUMNS = KERNEL_BYTE_COLUMNS_MOST };
    for (int s = 0; s < count_sets; s++) {
        const kernel_set *set = sets[s];
        if (!set->byte_tile_rows)
            continue;
        float *z = fence_floats(COLUMNS), *c = fence_floats(2 * COLUMNS);
        for (int k = 0; k < COLUMNS; k++)
            z[k] = c[k] = 1, c[COLUMNS + k] = -1;
        kernel_byte_rows rows = byte_rows_new(set, 1, COLUMNS);
        byte_centres centres = byte_centres_new(set, c, 2, COLUMNS);
        float *lower = fence_floats(set->byte_tile_rows * set->byte_tile_centres);
        set->quantise_rows(&rows, z, 1, COLUMNS);
        set->score_bytes(lower, set->byte_tile_centres, &rows, 1, &centres.view, 1, COLUMNS);
        for (int j = 0; j < 2; j++) {
            long double magnitudes, bound = byte_bound(set, &rows, 0, &centres, j, COLUMNS, &magnitudes);
            assert_true(fabsl(lower[j] - bound) <= 8 * 0x1p-24L * magnitudes);
        }
        drop_fences();
    }
}

/* ---- least, select ----------------------------------------------------------------------------------------------- */

static void check_least_and_select(int count, int kind)
{
    float *values = random_floats(count, kind), rest_expected = INFINITY, rest;
    for (int j = count - (int)(random_bits() % 16); j < count; j++)
        values[j] = INFINITY;
    int lowest = 0, chosen = 0;
    float threshold = values[random_bits() % (uint64_t)count];
    int32_t *expected = fence((size_t)count * 4), *indices = fence((size_t)(count + 16) * 4);
    for (int j = 0; j < count; j++) {
        lowest = values[j] < values[lowest] ? j : lowest;
        if (values[j] <= threshold)
            expected[chosen++] = j;
        else
            rest_expected = values[j] < rest_expected ? values[j] : rest_expected;
    }
    for (int s = 0; s < count_sets; s++) {
        const kernel_set *set = sets[s];
        assert_int_equal(set->least(values, count), lowest);
        assert_int_equal(set->select(indices, &rest, values, count, threshold), chosen);
        assert_memory_equal(indices, expected, (size_t)chosen * 4);
        rest_expected += 0.0f;
        assert_memory_equal(&rest, &rest_expected, sizeof rest);
    }
    drop_fences();
}

static void test_least_and_select(void **state)
{
    (void)state;
    for (int kind = 0; kind < KINDS; kind++)
        for (int count = 16; count <= 1120; count += count < 160 ? 16 : 320)
            for (int repeat = 0; repeat < 4; repeat++)
                check_least_and_select(count, kind);
}

/* ---- nearest_few ------------------------------------------------------------------------------------------------- */

/* The best and the second-best must be right within the bound, and the best that of the index.  Returns the index the
 * exact scores give. */
static int check_few_row(const kernel_nearest *got, int r, const float *row, const float *centres, const float *bias,
                         int count, int64_t columns)
{
    long double best = INFINITY, second = INFINITY, bound = 0, magnitudes;
    int lowest = 0;
    for (int j = 0; j < count; j++) {
        long double score = true_score(row, centres + j * columns, bias[j], columns, &magnitudes);
        long double here = sum_bound(kernel_roundings(columns), magnitudes, columns);
        bound = here > bound ? here : bound;
        second = score < best ? best : score < second ? score : second;
        lowest = score < best ? j : lowest;
        best = score < best ? score : best;
    }
    assert_in_range(got->index[r], 0, count - 1);
    long double of_index =
        true_score(row, centres + got->index[r] * columns, bias[got->index[r]], columns, &magnitudes);
    assert_true(fabsl(got->best[r] - best) <= bound);
    assert_true(fabsl(got->best[r] - of_index) <= bound);
    long double square = true_score(row, row, 0, columns, &magnitudes);
    assert_true(fabsl(got->square[r] + square) <= sum_bound(kernel_roundings(columns), magnitudes, columns));
    assert_true(count == 1 ? got->second[r] == INFINITY : fabsl(got->second[r] - second) <= bound);
    return lowest;
}

static void check_nearest_few(int count_rows, int count, int64_t columns, int kind)
{
    float *rows = random_floats(count_rows * columns, kind), *centres = random_floats(count * columns, kind);
    float *bias = biases(centres, count, count, columns), *workspace = fence_floats(KERNEL_FEW_WORKSPACE);
    kernel_nearest got = {fence_floats(count_rows), fence_floats(count_rows), fence((size_t)count_rows * 4),
                          fence_floats(count_rows)};
    for (int s = 0; s < count_sets; s++) {
        const kernel_set *set = sets[s];
        set->nearest_few(&got, rows, count_rows, centres, bias, count, columns, workspace);
        for (int r = 0; r < count_rows; r++) {
            int lowest = check_few_row(&got, r, rows + r * columns, centres, bias, count, columns);
            if (kind == EQUAL || kind == ZEROS || kind == TIES) /* no rounding, or the same for every centre */
                assert_int_equal(got.index[r], lowest);
        }
    }
    drop_fences();
}

static void test_nearest_few(void **state)
{
    (void)state;
    for (int columns = 1; columns <= KERNEL_FEW_COLUMNS; columns++)
        for (int i = 0; i < 12; i++)
            check_nearest_few(1 + (int)(random_bits() % 120), 1 + (int)(random_bits() % 40), columns, i % KINDS);
}

/* ---- bench ------------------------------------------------------------------------------------------------------- */

/* One workload for all entries. */
enum { BENCH_ROWS = 84, BENCH_CENTRES = 1000, BENCH_FEW = 100, BENCH_ROWS_FEW = 960 };
typedef struct bench {
    const kernel_set *set;
    int64_t columns;
    int row_panels, centre_panels;
    float *rows, *centres, *panels, *packed, *bias, *scores, *workspace;
    double *centre64, *inverse;
    int64_t *to, *from;
    uint8_t *bytes;
    int32_t *indices;
    kernel_origin origin;
    kernel_byte_rows byte_rows;
    byte_centres byte_centres;
    float best[BENCH_ROWS_FEW], second[BENCH_ROWS_FEW], square[BENCH_ROWS_FEW];
} bench;

static volatile double sink;

static void run_centre_float32(bench *b)
{
    for (int r = 0; r < BENCH_ROWS; r++)
        b->set->centre_row(b->scores, b->rows + r * b->columns, SHOAL_FLOAT32, &b->origin, b->columns);
}

static void run_centre_uint8(bench *b)
{
    for (int r = 0; r < BENCH_ROWS; r++)
        b->set->centre_row(b->scores, b->bytes + r * b->columns, SHOAL_UINT8, &b->origin, b->columns);
}

static void run_dot(bench *b)
{
    for (int r = 0; r < BENCH_ROWS; r++)
        sink = b->set->dot(b->rows + r * b->columns, b->centres, b->columns);
}

static void run_distance32(bench *b)
{
    for (int r = 0; r < BENCH_ROWS; r++)
        sink = b->set->distance32(b->rows + r * b->columns, b->centre64, b->columns);
}

static void run_move32(bench *b)
{
    for (int r = 0; r < BENCH_ROWS; r++)
        b->set->move32(b->to, b->from, b->rows + r * b->columns, b->centre64, b->inverse, 1, b->columns);
}

static void run_pack_rows(bench *b)
{
    b->set->pack_rows(b->panels, b->rows, BENCH_ROWS, b->columns);
}

static void run_score_float(bench *b)
{
    b->set->score_float(b->scores, 1024, b->panels, b->row_panels, b->packed, b->bias, b->centre_panels, b->columns);
}

static void run_quantise_rows(bench *b)
{
    b->set->quantise_rows(&b->byte_rows, b->rows, BENCH_ROWS, b->columns);
}

static void run_score_bytes(bench *b)
{
    b->set->score_bytes(b->scores, 1024, &b->byte_rows, panels_of(BENCH_ROWS, b->set->byte_tile_rows),
                        &b->byte_centres.view, panels_of(BENCH_CENTRES, b->set->byte_tile_centres), b->columns);
}

static void run_least(bench *b)
{
    for (int r = 0; r < BENCH_ROWS; r++)
        sink = b->set->least(b->scores + r * 1024, 1008);
}

static void run_select(bench *b)
{
    float rest;
    for (int r = 0; r < BENCH_ROWS; r++)
        sink = b->set->select(b->indices, &rest, b->scores + r * 1024, 1008, -0.998f);
}

static void run_nearest_few(bench *b)
{
    const kernel_nearest out = {b->best, b->second, b->indices, b->square};
    b->set->nearest_few(&out, b->centres, BENCH_ROWS_FEW, b->centres, b->bias, BENCH_FEW, b->columns, b->workspace);
}

/* What one run does: multiply-adds, or else bytes read and written. */
typedef struct bench_entry {
    const char *name;
    int64_t columns;
    void (*run)(bench *);
    double multiply_adds, bytes;
} bench_entry;

static const bench_entry bench_entries[] = {
    {"centre_row float32", 1000, run_centre_float32, 0, 84e3 * 12},
    {"centre_row uint8", 1000, run_centre_uint8, 0, 84e3 * 9},
    {"dot", 1000, run_dot, 84e3, 0},
    {"distance32", 1000, run_distance32, 84e3, 0},
    {"move32", 1000, run_move32, 0, 84e3 * 52},
    {"pack_rows", 1000, run_pack_rows, 0, 84e3 * 8},
    {"score_float", 1000, run_score_float, 84e6, 0},
    {"score_float", 128, run_score_float, 84e3 * 128, 0},
    {"score_float", 32, run_score_float, 84e3 * 32, 0},
    {"quantise_rows", 1000, run_quantise_rows, 0, 84e3 * 5},
    {"score_bytes", 1000, run_score_bytes, 84e6, 0},
    {"score_bytes", 128, run_score_bytes, 84e3 * 128, 0},
    {"least", 128, run_least, 0, 84e3 * 4},
    {"select", 128, run_select, 0, 84e3 * 4},
    {"nearest_few", 32, run_nearest_few, 96e3 * 32, 0},
    {"nearest_few", 16, run_nearest_few, 96e3 * 16, 0},
    {"nearest_few", 2, run_nearest_few, 96e3 * 2, 0},
};

static void bench_init(bench *b, const kernel_set *set, int64_t columns)
{
    memset(b, 0, sizeof *b);
    b->set = set;
    b->columns = columns;
    b->row_panels = panels_of(BENCH_ROWS, set->tile_rows);
    b->centre_panels = panels_of(BENCH_CENTRES, set->tile_centres);
    b->rows = random_floats(BENCH_ROWS * columns, UNIFORM);
    b->centres = random_floats(BENCH_CENTRES * columns, UNIFORM);
    b->panels = fence_floats((BENCH_ROWS + 16) * columns / 16 * 16);
    b->packed = pack_centres(b->centres, BENCH_CENTRES, columns, set->tile_centres);
    b->bias = biases(b->centres, BENCH_CENTRES, 1024, columns);
    b->scores = random_floats((BENCH_ROWS + 16) * 1024, UNIFORM);
    b->workspace = fence_floats(KERNEL_FEW_WORKSPACE);
    b->centre64 = random_doubles(columns, UNIFORM);
    b->inverse = fence((size_t)columns * 8);
    for (int64_t k = 0; k < columns; k++)
        b->inverse[k] = 0x1p40;
    b->to = fence((size_t)columns * 8);
    b->from = fence((size_t)columns * 8);
    b->bytes = fence((size_t)(BENCH_ROWS * columns));
    b->indices = fence(1040 * 4);
    b->origin = (kernel_origin){b->centres, b->centre64, 0.5};
    set->pack_rows(b->panels, b->rows, BENCH_ROWS, columns);
    if (set->byte_tile_rows) {
        b->byte_rows = byte_rows_new(set, BENCH_ROWS, columns);
        b->byte_centres = byte_centres_new(set, b->centres, BENCH_CENTRES, columns);
        set->quantise_rows(&b->byte_rows, b->rows, BENCH_ROWS, columns);
    }
}

/* The least time of one run, and the FMA rate measured between the runs: both are minima over the same while. */
static double time_entry(const bench_entry *entry, bench *b, double *best_peak)
{
    double best = INFINITY, end = now() + 0.12;
    int repeats = 1;
    *best_peak = 0;
    while (now() < end) {
        double rate = peak(b->set), start = now();
        for (int i = 0; i < repeats; i++)
            entry->run(b);
        double seconds = now() - start;
        *best_peak = rate > *best_peak ? rate : *best_peak;
        best = seconds / repeats < best ? seconds / repeats : best;
        if (seconds < 5e-4)
            repeats *= 2;
    }
    return best;
}

static void bench_entry_print(const bench_entry *entry, const kernel_set *set)
{
    bench b;
    double best_peak;
    bench_init(&b, set, entry->columns);
    double seconds = time_entry(entry, &b, &best_peak), rate = 2 * entry->multiply_adds / seconds * 1e-9;
    printf("%-20s %5d  %-9s %10.2f", entry->name, (int)entry->columns, set->name, 1e6 * seconds);
    if (entry->multiply_adds > 0)
        printf("  %8.1f GFLOP/s  %4.0f%% of %.0f\n", rate, 100 * rate / best_peak, best_peak);
    else
        printf("  %8.1f GB/s\n", entry->bytes / seconds * 1e-9);
    drop_fences();
}

/* How much of a row's norm its bytes miss, for uniform data: what the bound of score_bytes loses. */
static void bench_residuals(const kernel_set *set)
{
    bench b;
    double ratio = 0, centre_ratio = 0;
    bench_init(&b, set, 1000);
    for (int r = 0; r < BENCH_ROWS; r++)
        ratio += b.byte_rows.residual[r] / b.byte_rows.norm[r] / BENCH_ROWS;
    for (int j = 0; j < BENCH_CENTRES; j++)
        centre_ratio += b.byte_centres.residual[j] / b.byte_centres.norm[j] / BENCH_CENTRES;
    printf("%s: residual / norm %.5f of rows, %.5f of centres (uniform, 1000 columns)\n", set->name, ratio,
           centre_ratio);
    drop_fences();
}

static bool bench_applies(const bench_entry *entry, const kernel_set *set, const char *only)
{
    bool needs_bytes = entry->run == run_quantise_rows || entry->run == run_score_bytes;
    return (!only || strstr(entry->name, only)) && (!needs_bytes || set->byte_tile_rows);
}

static int run_bench(const char *only)
{
    printf("%-20s %5s  %-9s %10s  (84 rows, 1000 centres; nearest_few: 960 and 100)\n", "entry", "cols", "set", "us");
    for (size_t i = 0; i < sizeof bench_entries / sizeof *bench_entries; i++)
        for (int set = 0; set < count_sets; set++)
            if (bench_applies(&bench_entries[i], sets[set], only))
                bench_entry_print(&bench_entries[i], sets[set]);
    for (int set = 0; set < count_sets; set++)
        if (sets[set]->byte_tile_rows)
            bench_residuals(sets[set]);
    return 0;
}

int main(int count, char **arguments)
{
    count_sets = kernel_list(sets);
    if (count > 1 && !strcmp(arguments[1], "--bench"))
        return run_bench(count > 2 ? arguments[2] : NULL);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_choose),
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_centre_row),
        cmocka_unit_test(test_distance),
        cmocka_unit_test(test_distances),
        cmocka_unit_test(test_move),
        cmocka_unit_test(test_dot),
        cmocka_unit_test(test_score_row),
        cmocka_unit_test(test_score_float),
        cmocka_unit_test(test_score_bytes),
        cmocka_unit_test(test_least_and_select),
        cmocka_unit_test(test_bytes_do_not_overflow),
        cmocka_unit_test(test_place_bytes),
        cmocka_unit_test(test_rows_of_bytes),
        cmocka_unit_test(test_nearest_few),
        cmocka_unit_test(test_chains),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
