/* The two scan rounds: what the columns' values are like, before anything is clustered.
 *
 * Range: least and greatest value of each column; anything that is not finite ends the run with its row and column.
 * Spread: exact sums of values, deviations and squares, from which come the tolerance's yardstick and the columns
 * that need 128-bit sums. */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "learn/kmeans/choose.h"

/* ---- range ------------------------------------------------------------------------------------------------------- */

enum { RANGE_MOST, RANGE_BAD, RANGE_WEIGHT, RANGE_BAD_WEIGHT };

static void describe_range(shoal_round *round, const shoal_shape *shape)
{
    shoal_layout *layout = &round->layout;
    layout->cells = 4;
    layout->cell[RANGE_MOST] = (shoal_cell){"range", SHOAL_CELL_MAX, 2 * shape->columns, 0, false};
    layout->cell[RANGE_BAD] = (shoal_cell){"not finite", SHOAL_CELL_RECORD, 1, sizeof(double), false};
    layout->cell[RANGE_WEIGHT] = (shoal_cell){"greatest weight", SHOAL_CELL_MAX, 1, 0, false};
    layout->cell[RANGE_BAD_WEIGHT] = (shoal_cell){"bad weight", SHOAL_CELL_RECORD, 1, sizeof(double), false};
    round->step = 0;
    round->steps = 2;
}

static size_t scratch_range(const shoal_round *round, const kmeans_prepared *prepared, const shoal_shape *shape)
{
    (void)round, (void)prepared;
    return 3 * kmeans_cut_size((size_t)shape->columns * sizeof(double));
}

/* Raises the greatest value of each column and, behind those, the greatest negated value.  Returns false, having
 * raised nothing, when something is not finite: then a product with zero is not zero. */
#define DEFINE_RANGE(NAME, TYPE, IS_FLOAT)                                                                             \
    static bool range_##NAME(int64_t *most, const void *values, int64_t rows, int64_t columns, unsigned char *memory)  \
    {                                                                                                                  \
        TYPE *restrict low = kmeans_cut(&memory, (size_t)columns * sizeof(double));                                    \
        TYPE *restrict high = kmeans_cut(&memory, (size_t)columns * sizeof(double));                                   \
        TYPE *restrict odd = kmeans_cut(&memory, (size_t)columns * sizeof(double));                                    \
        const TYPE *x = values;                                                                                        \
        memcpy(low, x, (size_t)columns * sizeof(TYPE));                                                                \
        memcpy(high, x, (size_t)columns * sizeof(TYPE));                                                               \
        memset(odd, 0, (size_t)columns * sizeof(TYPE));                                                                \
        for (int64_t i = 0; i < rows; i++, x += columns)                                                               \
            for (int64_t k = 0; k < columns; k++) {                                                                    \
                low[k] = x[k] < low[k] ? x[k] : low[k];                                                                \
                high[k] = x[k] > high[k] ? x[k] : high[k];                                                             \
                if (IS_FLOAT)                                                                                          \
                    odd[k] += x[k] * 0;                                                                                \
            }                                                                                                          \
        for (int64_t k = 0; k < columns; k++)                                                                          \
            if (odd[k] != 0)                                                                                           \
                return false;                                                                                          \
        for (int64_t k = 0; k < columns; k++) {                                                                        \
            shoal_max_raise(most, k, (double)high[k]);                                                                 \
            shoal_max_raise(most, columns + k, -(double)low[k]);                                                       \
        }                                                                                                              \
        return true;                                                                                                   \
    }

DEFINE_RANGE(float32, float, 1)
DEFINE_RANGE(float64, double, 1)
DEFINE_RANGE(int8, int8_t, 0)
DEFINE_RANGE(int16, int16_t, 0)
DEFINE_RANGE(int32, int32_t, 0)
DEFINE_RANGE(int64, int64_t, 0)
DEFINE_RANGE(uint8, uint8_t, 0)
DEFINE_RANGE(uint16, uint16_t, 0)
DEFINE_RANGE(uint32, uint32_t, 0)
DEFINE_RANGE(uint64, uint64_t, 0)

typedef bool range_function(int64_t *most, const void *values, int64_t rows, int64_t columns, unsigned char *memory);

static range_function *const range_of_type[SHOAL_TYPES] = {
    [SHOAL_FLOAT32] = range_float32, [SHOAL_FLOAT64] = range_float64, [SHOAL_INT8] = range_int8,
    [SHOAL_INT16] = range_int16,     [SHOAL_INT32] = range_int32,     [SHOAL_INT64] = range_int64,
    [SHOAL_UINT8] = range_uint8,     [SHOAL_UINT16] = range_uint16,   [SHOAL_UINT32] = range_uint32,
    [SHOAL_UINT64] = range_uint64,   [SHOAL_BOOL] = range_uint8,
};

static double value_at(const shoal_grain *grain, int64_t i, int64_t k)
{
    double value;
    size_t size = shoal_type_size(grain->shape->type);
    shoal_convert_float64(&value, (const char *)grain->values + (size_t)(i * grain->shape->columns + k) * size,
                          grain->shape->type, 1);
    return value;
}

/* Keys grow with falling row and column, so that the greatest is the first in reading order. */
static shoal_key first_key(int64_t row, int64_t column)
{
    return (shoal_key){~(uint64_t)row, ~(uint64_t)column};
}

static int report_not_finite(shoal_partial *partial, const shoal_grain *grain)
{
    for (int64_t i = 0; i < grain->rows; i++)
        for (int64_t k = 0; k < grain->shape->columns; k++) {
            double value = value_at(grain, i, k);
            if (!isfinite(value))
                return shoal_partial_record(partial, RANGE_BAD, first_key(grain->first_row + i, k), &value);
        }
    SHOAL_BUG("a value that was not finite is gone");
}

static int map_weights(shoal_partial *partial, const shoal_grain *grain)
{
    int64_t *most = shoal_partial_values(partial, RANGE_WEIGHT);
    for (int64_t i = 0; i < grain->rows; i++) {
        double weight = grain->weights[i];
        if (!(isfinite(weight) && weight >= 0))
            return shoal_partial_record(partial, RANGE_BAD_WEIGHT, first_key(grain->first_row + i, 0), &weight);
        shoal_max_raise(most, 0, weight);
    }
    return SHOAL_OK;
}

/* A row that has no direction: the value that is not finite, or a 0 for a row of zeros. */
static int report_no_direction(shoal_partial *partial, const shoal_grain *grain, int64_t i)
{
    double value = 0;
    int64_t k = 0;
    for (; k < grain->shape->columns && isfinite(value = value_at(grain, i, k)); k++)
        ;
    bool zeros = k == grain->shape->columns;
    return shoal_partial_record(partial, RANGE_BAD, first_key(grain->first_row + i, zeros ? 0 : k),
                                zeros ? &(double){0} : &value);
}

/* The same of rows brought to length 1. */
static int map_unit_range(shoal_partial *partial, const kernel_set *kernel, const shoal_grain *grain,
                          unsigned char *memory)
{
    const int64_t columns = grain->shape->columns;
    const size_t row_bytes = (size_t)columns * shoal_type_size(grain->shape->type);
    double *restrict row = kmeans_cut(&memory, (size_t)columns * sizeof(double));
    double *restrict low = kmeans_cut(&memory, (size_t)columns * sizeof(double));
    double *restrict high = kmeans_cut(&memory, (size_t)columns * sizeof(double));
    int64_t *most = shoal_partial_values(partial, RANGE_MOST);
    for (int64_t k = 0; k < columns; k++)
        low[k] = high[k] = 0; /* sums are taken from 0, so only the greater of both matters */
    for (int64_t i = 0; i < grain->rows; i++) {
        shoal_convert_float64(row, (const char *)grain->values + (size_t)i * row_bytes, grain->shape->type, columns);
        if (!kmeans_make_unit(row, kernel, columns))
            return report_no_direction(partial, grain, i);
        for (int64_t k = 0; k < columns; k++) {
            low[k] = row[k] < low[k] ? row[k] : low[k];
            high[k] = row[k] > high[k] ? row[k] : high[k];
        }
    }
    for (int64_t k = 0; k < columns; k++) {
        shoal_max_raise(most, k, high[k]);
        shoal_max_raise(most, columns + k, -low[k]);
    }
    return SHOAL_OK;
}

static int map_range(shoal_partial *partial, const shoal_round *round, const kmeans_prepared *prepared,
                     const shoal_grain *grain, const shoal_scratch *scratch)
{
    const shoal_shape *shape = grain->shape;
    int status = grain->weights ? map_weights(partial, grain) : SHOAL_OK;
    if (status == SHOAL_OK && kmeans_is_cosine(round->model))
        return map_unit_range(partial, prepared->kernel, grain, scratch->memory);
    if (status == SHOAL_OK && !range_of_type[shape->type](shoal_partial_values(partial, RANGE_MOST), grain->values,
                                                          grain->rows, shape->columns, scratch->memory))
        status = report_not_finite(partial, grain);
    return status;
}

/* Half the sum without overflow. */
static double midrange(double least, double greatest)
{
    return least / 2 + greatest / 2;
}

double kmeans_power_above(double value)
{
    int exponent;
    double fraction = frexp(value, &exponent);
    return ldexp(1, fraction == 0.5 ? exponent - 1 : exponent);
}

/* A power of two whose product with `value` > 0 is about 1, as near as a float64 can come to it. */
static double inverse_power(double value)
{
    int exponent;
    frexp(value, &exponent);
    return ldexp(1, exponent > 0 ? -exponent : exponent < -1000 ? 1000 : -exponent);
}

static double clamp_power(double power)
{
    return fmin(fmax(power, 0x1p-126), 0x1p126);
}

/* So that squares stay finite, and columns beside the greatest keep their digits in the common power of two. */
#define VALUE_MOST 1e140

static double find_greatest(const int64_t *most, int64_t columns)
{
    double greatest = 0;
    for (int64_t i = 0; i < 2 * columns; i++)
        greatest = fmax(greatest, fabs(shoal_max_value(most[i])));
    return greatest;
}

/* Origin, half-width (kept in `inverse` until the spread is known), prescale and scale. */
static void set_origin(kmeans_view *view, const int64_t *most, shoal_type type)
{
    kmeans_model *model = view->model;
    int64_t columns = model->columns;
    double greatest = find_greatest(most, columns), widest = 0;
    /* Origins must be float32 numbers and squares must fit float64: only data that float32 can't hold is outside. */
    if (!kmeans_fits_float32(type) && !kmeans_is_cosine(model) &&
        (greatest >= 0x1p127 || (greatest > 0 && greatest < 0x1p-126)))
        model->prescale = inverse_power(greatest);
    for (int64_t k = 0; k < columns; k++) {
        double high = shoal_max_value(most[k]) * model->prescale,
               low = -shoal_max_value(most[columns + k]) * model->prescale;
        view->origin[k] = kmeans_is_cosine(model) ? 0 : (float)midrange(low, high);
        view->inverse[k] = fmax(high - view->origin[k], view->origin[k] - low);
        widest = fmax(widest, view->inverse[k]);
    }
    model->scale = widest > 0 ? clamp_power(1 / kmeans_power_above(widest)) : 1;
}

/* No row is farther (squared) from the origin; widths are still in `inverse`. */
static double squared_width(const kmeans_view *view)
{
    double sum = 0;
    for (int64_t k = 0; k < view->model->columns; k++)
        sum += view->inverse[k] * view->inverse[k];
    return kmeans_up(sum * (1 + 0x1p-30));
}

static int update_range(shoal_round **next, shoal_result **result, const shoal_round *round, shoal_partial *merged,
                        const shoal_shape *shape, const shoal_crew *crew, bool stop)
{
    double value;
    shoal_key key;
    (void)result, (void)crew;
    if (shoal_partial_records(merged, RANGE_BAD) > 0) {
        memcpy(&value, shoal_partial_record_at(merged, RANGE_BAD, 0, &key), sizeof value);
        if (isfinite(value))
            return shoal_fail(SHOAL_INVALID,
                              "row %lld is all zeros and has no direction, which --metric cosine needs; leave it out, "
                              "or use --metric euclidean",
                              (long long)~key.high + 1);
        return shoal_fail(SHOAL_INVALID, "row %lld, column %lld is %s; k-means needs finite numbers",
                          (long long)~key.high + 1, (long long)~key.low + 1,
                          isnan(value) ? "not a number"
                          : value > 0  ? "infinite"
                                       : "minus infinity");
    }
    if (shoal_partial_records(merged, RANGE_BAD_WEIGHT) > 0) {
        memcpy(&value, shoal_partial_record_at(merged, RANGE_BAD_WEIGHT, 0, &key), sizeof value);
        return shoal_fail(SHOAL_INVALID, "the weight of row %lld is %g; weights must be finite and not negative",
                          (long long)~key.high + 1, value);
    }
    if (stop)
        return kmeans_stop_early(next, round, "scanning the data");
    for (int64_t i = 0; i < 2 * shape->columns; i++)
        if (!isfinite(shoal_max_value(shoal_partial_values(merged, RANGE_MOST)[i])))
            return kmeans_fail_merged(round, "ranges");
    const double greatest = find_greatest(shoal_partial_values(merged, RANGE_MOST), shape->columns);
    if (greatest > VALUE_MOST)
        return shoal_fail(SHOAL_INVALID, "values of up to %g are too large: scale the columns to at most %g", greatest,
                          VALUE_MOST);
    shoal_round *ranged = NULL;
    int status = kmeans_round_from(&ranged, round, KMEANS_SPREAD, 0);
    if (status < 0)
        return status;
    kmeans_view view = kmeans_view_of(ranged);
    double heaviest = shape->weighted ? shoal_max_value(shoal_partial_values(merged, RANGE_WEIGHT)[0]) : 1;
    if (!(heaviest > 0) || isinf(heaviest)) {
        shoal_round_free(&ranged);
        return isinf(heaviest) ? kmeans_fail_merged(round, "weights")
                               : shoal_fail(SHOAL_INVALID, "all weights are zero");
    }
    view.model->weight_scale = shape->weighted ? inverse_power(heaviest) : 1;
    view.model->weight_most = heaviest * view.model->weight_scale;
    set_origin(&view, shoal_partial_values(merged, RANGE_MOST), shape->type);
    if (!view.model->predicting) {
        *next = ranged;
        return SHOAL_OK;
    }
    view.model->distance_most = kmeans_up(4 * squared_width(&view));
    status = kmeans_begin_run(next, ranged, shape);
    shoal_round_free(&ranged);
    return status;
}

const kmeans_phase kmeans_range = {.name = "scan",
                                   .describe = describe_range,
                                   .scratch_bytes = scratch_range,
                                   .map = map_range,
                                   .update = update_range};

/* ---- spread ------------------------------------------------------------------------------------------------------ */

enum { SPREAD_SUM, SPREAD_DEVIATION, SPREAD_SQUARE, SPREAD_WEIGHT };

/* Deviations are summed as whole numbers of 18 bits, each column by its own width; 4,096 of them fit an int32. */
enum { DEVIATION_BITS = 18, DEVIATION_ROWS = 4096 };

static void describe_spread(shoal_round *round, const shoal_shape *shape)
{
    shoal_layout *layout = &round->layout;
    layout->cells = 4;
    layout->cell[SPREAD_SUM] = (shoal_cell){"sums", SHOAL_CELL_SUM, shape->columns, 0, false};
    layout->cell[SPREAD_DEVIATION] = (shoal_cell){"deviations", SHOAL_CELL_SUM, shape->columns, 0, false};
    layout->cell[SPREAD_SQUARE] = (shoal_cell){"squares", SHOAL_CELL_WIDE, 2, 0, false}; /* plain, weighted */
    layout->cell[SPREAD_WEIGHT] = (shoal_cell){"weight", SHOAL_CELL_SUM, 1, 0, false};
    round->step = 1;
    round->steps = 2;
}

static double quantum_inverse(double most, double terms)
{
    if (!(most > 0))
        return 1;
    return fmin(0x1p62 / kmeans_power_above(kmeans_up(most) * terms), 0x1p1000);
}

static size_t scratch_spread(const shoal_round *round, const kmeans_prepared *prepared, const shoal_shape *shape)
{
    size_t columns = (size_t)shape->columns;
    (void)round, (void)prepared;
    return kmeans_rows_bytes(shape->columns) + kmeans_cut_size(columns * sizeof(double)) +
           5 * kmeans_cut_size(columns * sizeof(float));
}

/* One over the quantum of a WIDE cell whose terms are at most `most`. */
static double wide_inverse(double most, int64_t rows)
{
    return most > 0 ? fmin(ldexp(1, 2 * shoal_wide_bits(rows) - 2) / kmeans_power_above(kmeans_up(most)), 0x1p1000) : 1;
}

/* z * step is a deviation of DEVIATION_BITS bits; 0 for columns that hardly vary. */
static float deviation_step(const kmeans_view *view, int64_t k)
{
    double scaled = view->inverse[k] * view->model->scale;
    return scaled >= 0x1p-100 ? (float)ldexp(1 / kmeans_power_above(scaled), DEVIATION_BITS) : 0;
}

/* Adds |z| to whole-number deviations: the sum with 1.5 * 2^23 rounds to nearest, and its low bits are the number. */
static void add_deviations(uint32_t *restrict deviation, const float *restrict z, const float *restrict step,
                           int64_t columns)
{
    for (int64_t k = 0; k < columns; k++) {
        union {
            float value;
            uint32_t bits;
        } rounded = {.value = fabsf(z[k]) * step[k] + 0x1.8p23f};
        deviation[k] += rounded.bits - 0x4b400000u;
    }
}

/* A grain being scanned. */
typedef struct spreading {
    kmeans_view view; /* with the sums' quanta in place of the widths */
    kmeans_rows rows;
    shoal_grain unweighted;
    float *z, *step;
    uint32_t *deviation;
    uint32_t *sum;  /* of rows of bytes: the values' sums ... */
    int32_t *twice; /* ... and the origin, doubled, which makes it whole */
    bool whole;     /* they are used */
    double square_inverse, weighted_inverse, weight_inverse;
    int wide_bits;
} spreading;

/* Bytes lie at multiples of 1/2 from their origins, which are midranges, and so many rows and columns of them have
 * quanta of 1/4 or less.  A round that came from elsewhere may say anything of origins and widths. */
static bool can_spread_whole(const kmeans_view *view, const shoal_grain *grain)
{
    const shoal_shape *shape = grain->shape;
    bool whole = kmeans_rows_are_bytes(view, shape) && !grain->weights && shape->rows <= INT64_C(1) << 40 &&
                 shape->columns <= KERNEL_BYTE_COLUMNS_MOST && view->model->scale >= 0x1p-7 && view->model->scale <= 2;
    for (int64_t k = 0; whole && k < shape->columns; k++) {
        const double twice = 2 * view->origin[k], width = view->inverse[k];
        whole = twice >= 0 && twice <= 2 * UINT8_MAX && twice == (int32_t)twice &&
                (width == 0 || (width >= 0.5 && width <= UINT8_MAX));
    }
    return whole;
}

/* Width of a column: no value is farther from its origin.  Until the spread is known it stands in for the quantum. */
static void begin_spread(spreading *job, const shoal_round *round, const kmeans_prepared *prepared,
                         const shoal_grain *grain, unsigned char *memory)
{
    kmeans_view view = kmeans_view_of(round);
    int64_t columns = grain->shape->columns, rows = grain->shape->rows;
    double *inverse = kmeans_cut(&memory, (size_t)columns * sizeof(double));
    *job = (spreading){.view = view, .unweighted = *grain, .wide_bits = shoal_wide_bits(rows)};
    job->z = kmeans_cut(&memory, (size_t)columns * sizeof(float));
    job->step = kmeans_cut(&memory, (size_t)columns * sizeof(float));
    job->deviation = kmeans_cut(&memory, (size_t)columns * sizeof(uint32_t));
    job->sum = kmeans_cut(&memory, (size_t)columns * sizeof(uint32_t));
    job->twice = kmeans_cut(&memory, (size_t)columns * sizeof(int32_t));
    job->square_inverse = wide_inverse(squared_width(&view), rows);
    job->weighted_inverse = wide_inverse(squared_width(&view) * view.model->weight_most, rows);
    job->weight_inverse = quantum_inverse(view.model->weight_most, (double)rows);
    for (int64_t k = 0; k < columns; k++) {
        inverse[k] = quantum_inverse(view.inverse[k], (double)rows);
        job->step[k] = deviation_step(&view, k);
    }
    job->whole = can_spread_whole(&view, grain);
    for (int64_t k = 0; job->whole && k < columns; k++)
        job->twice[k] = (int32_t)(2 * view.origin[k]);
    job->view.inverse = inverse;
    job->unweighted.weights = NULL;
    kmeans_rows_init(&job->rows, prepared, &job->view, &job->unweighted, &memory);
}

static void spread_row(spreading *job, shoal_partial *partial, const shoal_grain *grain, int64_t i)
{
    int64_t *squares = shoal_partial_values(partial, SPREAD_SQUARE);
    double square = kmeans_rows_distance(&job->rows, i, job->view.origin);
    kmeans_rows_centre(job->z, &job->rows, i);
    add_deviations(job->deviation, job->z, job->step, grain->shape->columns);
    kmeans_rows_move(&job->rows, i, shoal_partial_values(partial, SPREAD_SUM), NULL);
    shoal_wide_add(squares, 2, 0, rint(square * job->square_inverse), job->wide_bits);
    if (grain->weights) {
        double weight = grain->weights[i] * job->view.model->weight_scale;
        shoal_wide_add(squares, 2, 1, rint(square * weight * job->weighted_inverse), job->wide_bits);
        shoal_partial_values(partial, SPREAD_WEIGHT)[0] += kmeans_rows_whole(&job->rows, weight * job->weight_inverse);
    }
}

/* spread_row for rows `first` to `last`, of bytes, when nothing that it rounds has a fraction: the cells get the same
 * numbers. */
static void spread_whole(spreading *job, shoal_partial *partial, const shoal_grain *grain, int64_t first, int64_t last)
{
    const int64_t columns = grain->shape->columns;
    int64_t *squares = shoal_partial_values(partial, SPREAD_SQUARE), *sums = shoal_partial_values(partial, SPREAD_SUM);
    memset(job->sum, 0, (size_t)columns * sizeof *job->sum);
    for (int64_t i = first; i < last; i++) {
        const uint64_t square =
            job->rows.kernel->spread8(job->sum, job->deviation, kmeans_rows_raw(&job->rows, i), job->twice, columns);
        shoal_wide_add(squares, 2, 0, (double)square / 4 * job->square_inverse, job->wide_bits);
    }
    for (int64_t k = 0; k < columns; k++) {
        const int64_t twice = 2 * (int64_t)job->sum[k] - (last - first) * job->twice[k];
        const uint64_t all = (uint64_t)twice * (uint64_t)(job->view.inverse[k] / 2);
        sums[k] = base_add_wrapping(sums[k], (int64_t)all);
        job->deviation[k] *= (uint32_t)(job->step[k] * job->view.model->scale / 2);
    }
}

static int map_spread(shoal_partial *partial, const shoal_round *round, const kmeans_prepared *prepared,
                      const shoal_grain *grain, const shoal_scratch *scratch)
{
    spreading job;
    int64_t columns = grain->shape->columns, *deviations = shoal_partial_values(partial, SPREAD_DEVIATION);
    begin_spread(&job, round, prepared, grain, scratch->memory);
    for (int64_t first = 0; first < grain->rows; first += DEVIATION_ROWS) {
        int64_t last = grain->rows - first < DEVIATION_ROWS ? grain->rows : first + DEVIATION_ROWS;
        memset(job.deviation, 0, (size_t)columns * sizeof *job.deviation);
        if (job.whole)
            spread_whole(&job, partial, grain, first, last);
        else
            for (int64_t i = first; i < last; i++)
                spread_row(&job, partial, grain, i);
        for (int64_t k = 0; k < columns; k++)
            deviations[k] += (int32_t)job.deviation[k];
    }
    return SHOAL_OK;
}

/* Mean over the columns of their variances, from exact sums. */
static double mean_variance(const kmeans_view *view, shoal_partial *merged)
{
    const int64_t *sums = shoal_partial_values(merged, SPREAD_SUM);
    double rows = (double)view->model->rows, width = squared_width(view), means = 0;
    double squares =
        shoal_wide_value(shoal_partial_values(merged, SPREAD_SQUARE), 2, 0, shoal_wide_bits(view->model->rows)) /
        wide_inverse(width, view->model->rows);
    for (int64_t k = 0; k < view->model->columns; k++) {
        double mean = (double)sums[k] / quantum_inverse(view->inverse[k], rows) / rows;
        means += mean * mean;
    }
    return fmax(squares / rows - means, 0) / (double)view->model->columns;
}

/* A sum's quantum must be small beside the column's mean deviation; one far outlier must not flatten a column. */
static bool needs_wide(const kmeans_view *view, int64_t k, int64_t deviations)
{
    const kmeans_model *model = view->model;
    double step = deviation_step(view, k), width = view->inverse[k];
    if (!(width > 0))
        return false;
    double mean = step > 0 ? (double)deviations / (double)model->rows / step / model->scale : 0;
    return 1 / quantum_inverse(width * model->weight_most, (double)model->rows) > 0x1p-24 * mean;
}

static void set_quanta(kmeans_view *fresh, const kmeans_view *old, const int64_t *deviations)
{
    kmeans_model *model = fresh->model;
    int64_t wide = 0;
    for (int64_t k = 0; k < model->columns; k++) {
        double most = old->inverse[k] * model->weight_most;
        if (needs_wide(old, k, deviations[k])) {
            fresh->wide_column[wide] = k;
            fresh->wide_inverse[wide++] = wide_inverse(most, model->rows);
            fresh->inverse[k] = 0;
        } else {
            fresh->inverse[k] = quantum_inverse(most, (double)model->rows);
        }
    }
}

static void set_totals(kmeans_view *fresh, const kmeans_view *old, shoal_partial *merged)
{
    kmeans_model *model = fresh->model;
    double width = squared_width(old), most = model->weighted ? width * model->weight_most : width;
    model->variance = mean_variance(old, merged);
    model->square_total = shoal_wide_value(shoal_partial_values(merged, SPREAD_SQUARE), 2, model->weighted != 0,
                                           shoal_wide_bits(model->rows)) /
                          wide_inverse(most, model->rows);
    model->distance_most = kmeans_up(4 * width);
    model->weight_inverse = model->weighted ? quantum_inverse(model->weight_most, (double)model->rows) : 1;
    model->weight_total = model->weighted
                              ? (double)shoal_partial_values(merged, SPREAD_WEIGHT)[0] / model->weight_inverse
                              : (double)model->rows;
}

static int update_spread(shoal_round **next, shoal_result **result, const shoal_round *round, shoal_partial *merged,
                         const shoal_shape *shape, const shoal_crew *crew, bool stop)
{
    kmeans_view old = kmeans_view_of(round);
    const int64_t *deviations = shoal_partial_values(merged, SPREAD_DEVIATION);
    shoal_round *scanned = NULL;
    int64_t wide = 0;
    (void)result, (void)crew;
    if (stop)
        return kmeans_stop_early(next, round, "scanning the data");
    for (int64_t k = 0; k < old.model->columns; k++)
        wide += needs_wide(&old, k, deviations[k]);
    int status = kmeans_round_widen(&scanned, round, KMEANS_SPREAD, wide);
    if (status < 0)
        return status;
    kmeans_view fresh = kmeans_view_of(scanned);
    set_totals(&fresh, &old, merged);
    set_quanta(&fresh, &old, deviations);
    status = kmeans_is_trial(fresh.model) ? kmeans_begin_draw(next, scanned) : kmeans_begin_run(next, scanned, shape);
    shoal_round_free(&scanned);
    return status;
}

const kmeans_phase kmeans_spread = {.name = "scan",
                                    .describe = describe_spread,
                                    .scratch_bytes = scratch_spread,
                                    .map = map_spread,
                                    .update = update_spread};
