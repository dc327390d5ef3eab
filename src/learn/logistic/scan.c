/* Round 0 of logistic regression: which labels there are, what the columns and weights are like, and whether all is
 * finite. */
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "learn/exact.h"
#include "learn/logistic/logistic_internal.h"

enum { SCAN_LABELS, SCAN_BAD, SCAN_GREATEST, SCAN_BAD_WEIGHT, SCAN_WEIGHT, SCAN_RANGE, SCAN_MOMENTS, SCAN_CELLS };

/* One more than may be there is enough to know that there are too many. */
enum { LABELS_MOST = SHOAL_LOGISTIC_CLASSES_MOST + 1 };

/* Holds every double, so a sum of weights always has room. */
static const learn_window all_doubles = {.low = -1088, .digits = LEARN_EXACT_DIGITS_MOST};

/* Sums of a column: its values; their squared distances from the mean of their grain; and the squares of those means,
 * each times the rows of the grain.  All are rounded to float32 first, each of which has room in the usual window. */
enum { MOMENT_VALUES, MOMENT_WITHIN, MOMENT_MEANS, MOMENTS };

void logistic_scan_layout(shoal_layout *layout, const void *own, const shoal_shape *shape)
{
    int64_t digits = learn_window_usual().digits;
    (void)own;
    layout->cell[SCAN_MOMENTS] = (shoal_cell){"moments", SHOAL_CELL_SUM, MOMENTS * digits * shape->columns, 0, false};
    layout->cells = SCAN_CELLS;
    layout->cell[SCAN_LABELS] = (shoal_cell){"labels", SHOAL_CELL_RECORD, LABELS_MOST, 0, false};
    layout->cell[SCAN_BAD] = (shoal_cell){"not finite", SHOAL_CELL_RECORD, 1, sizeof(double), false};
    layout->cell[SCAN_GREATEST] = (shoal_cell){"greatest", SHOAL_CELL_MAX, 2, 0, false};
    layout->cell[SCAN_BAD_WEIGHT] = (shoal_cell){"bad weight", SHOAL_CELL_RECORD, 1, sizeof(double), false};
    layout->cell[SCAN_WEIGHT] = (shoal_cell){"weight", SHOAL_CELL_SUM, LEARN_EXACT_DIGITS_MOST, 0, false};
    layout->cell[SCAN_RANGE] = (shoal_cell){"weight's range", SHOAL_CELL_MAX, LEARN_EXACT_RANGE, 0, false};
}

double logistic_scan_bytes(int64_t columns, int64_t classes)
{
    double words = (double)MOMENTS * learn_window_usual().digits * (double)columns + 2 + LEARN_EXACT_DIGITS_MOST +
                   LEARN_EXACT_RANGE;
    enum { RECORD_CELLS = 3 }; /* each has a count in front */
    return (words + RECORD_CELLS) * sizeof(int64_t) + (double)classes * sizeof(shoal_key);
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

static double value_at(const shoal_grain *grain, int64_t row, int64_t column)
{
    double value;
    size_t size = shoal_type_size(grain->shape->type);
    shoal_convert_float64(&value, (const char *)grain->values + (size_t)(row * grain->shape->columns + column) * size,
                          grain->shape->type, 1);
    return value;
}

/* The greatest |value|; not finite when any value is. */
#define DEFINE_GREATEST(NAME, REAL)                                                                                    \
    static double greatest_##NAME(const void *values, int64_t count)                                                   \
    {                                                                                                                  \
        const REAL *x = values;                                                                                        \
        REAL greatest = 0, odd = 0;                                                                                    \
        for (int64_t i = 0; i < count; i++) {                                                                          \
            REAL size = x[i] < 0 ? -x[i] : x[i];                                                                       \
            greatest = size > greatest ? size : greatest;                                                              \
            odd += x[i] * 0; /* not 0 for what is not finite */                                                        \
        }                                                                                                              \
        return odd == 0 ? (double)greatest : NAN;                                                                      \
    }
DEFINE_GREATEST(float, float)
DEFINE_GREATEST(double, double)

/* Of integers, which are always finite, what their type allows is enough to know. */
static double greatest_of(const shoal_grain *grain)
{
    int64_t count = grain->rows * grain->shape->columns;
    shoal_type type = grain->shape->type;
    return type == SHOAL_FLOAT32   ? greatest_float(grain->values, count)
           : type == SHOAL_FLOAT64 ? greatest_double(grain->values, count)
           : type == SHOAL_BOOL    ? 1
                                   : ldexp(1, 8 * (int)shoal_type_size(type));
}

/* Keys grow with falling row and column, so that the greatest is the first in reading order. */
static shoal_key first_key(int64_t row, int64_t column)
{
    return (shoal_key){~(uint64_t)row, ~(uint64_t)column};
}

int logistic_note_not_finite(shoal_partial *partial, int cell, const shoal_grain *grain)
{
    if (isfinite(greatest_of(grain)))
        return SHOAL_OK;
    for (int64_t i = 0; i < grain->rows; i++)
        for (int64_t k = 0; k < grain->shape->columns; k++) {
            double value = value_at(grain, i, k);
            if (!isfinite(value))
                return shoal_partial_record(partial, cell, first_key(grain->first_row + i, k), &value);
        }
    return SHOAL_OK;
}

int logistic_refuse_not_finite(const shoal_partial *merged, int cell)
{
    double value;
    shoal_key key;
    if (shoal_partial_records(merged, cell) == 0)
        return SHOAL_OK;
    memcpy(&value, shoal_partial_record_at(merged, cell, 0, &key), sizeof value);
    return shoal_fail(SHOAL_INVALID,
                      "row %" PRIu64 ", column %" PRIu64 " is %s; logistic regression needs finite numbers",
                      ~key.high + 1, ~key.low + 1,
                      isnan(value) ? "not a number"
                      : value > 0  ? "infinite"
                                   : "minus infinity");
}

/* ---- what columns are like --------------------------------------------------------------------------------------- */

static void add_moment(shoal_partial *partial, int64_t column, int which, double value)
{
    const learn_window window = learn_window_usual();
    int64_t *digits = shoal_partial_values(partial, SCAN_MOMENTS) + (column * MOMENTS + which) * window.digits;
    learn_exact_add(digits, &window, (float)fmax(fmin(value, FLT_MAX), -FLT_MAX),
                    shoal_partial_values(partial, SCAN_RANGE));
}

static double read_moment(const shoal_partial *merged, int64_t column, int which)
{
    const learn_window window = learn_window_usual();
    const int64_t *digits = shoal_partial_values_const(merged, SCAN_MOMENTS);
    return learn_exact_value(digits + (column * MOMENTS + which) * window.digits, &window);
}

/* Adds row `row` to the sums of columns: values, or squared distances from `mean`. */
static void add_row(double *sum, double *row, const double *mean, const shoal_grain *grain, int64_t index)
{
    int64_t columns = grain->shape->columns;
    shoal_type type = grain->shape->type;
    const char *at = (const char *)grain->values + (size_t)(index * columns) * shoal_type_size(type);
    shoal_convert_float64(row, at, type, columns);
    if (mean)
        for (int64_t k = 0; k < columns; k++)
            sum[k] += (row[k] - mean[k]) * (row[k] - mean[k]);
    else
        for (int64_t k = 0; k < columns; k++)
            sum[k] += row[k];
}

static void scan_columns(shoal_partial *partial, const shoal_grain *grain, double *memory)
{
    int64_t columns = grain->shape->columns;
    double *mean = memory, *within = mean + columns, *row = within + columns, rows = (double)grain->rows;
    memset(memory, 0, (size_t)(2 * columns) * sizeof *memory);
    for (int64_t i = 0; i < grain->rows; i++)
        add_row(mean, row, NULL, grain, i);
    for (int64_t k = 0; k < columns; k++)
        mean[k] /= rows;
    for (int64_t i = 0; i < grain->rows; i++)
        add_row(within, row, mean, grain, i);
    for (int64_t k = 0; k < columns; k++) {
        add_moment(partial, k, MOMENT_VALUES, mean[k] * rows);
        add_moment(partial, k, MOMENT_WITHIN, within[k]);
        add_moment(partial, k, MOMENT_MEANS, mean[k] * mean[k] * rows);
    }
}

/* What the means of grains add to the variance drowns in their rounding when they lie close to each other. */
void logistic_scan_column(double *mean, double *variance, const shoal_partial *merged, int64_t column, int64_t rows)
{
    const double noise = 1e-6;
    double count = (double)rows, means = read_moment(merged, column, MOMENT_MEANS);
    *mean = read_moment(merged, column, MOMENT_VALUES) / count;
    double between = means - *mean * *mean * count;
    *variance = (read_moment(merged, column, MOMENT_WITHIN) + (between > noise * means ? between : 0)) / count;
}

/* ---- labels ------------------------------------------------------------------------------------------------------ */

size_t logistic_scan_scratch(const void *own, const shoal_shape *shape)
{
    size_t labels = LABELS_MOST * sizeof(int64_t), columns = 3 * (size_t)shape->columns * sizeof(double);
    (void)own;
    return labels > columns ? labels : columns;
}

/* The place in the ascending list where the key is or belongs. */
static int find_place(const int64_t *keys, int count, int64_t key)
{
    int low = 0, high = count;
    while (low < high) {
        int middle = (low + high) / 2;
        if (keys[middle] < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int scan_labels(shoal_partial *partial, const logistic_own *own, const shoal_grain *grain, int64_t *keys)
{
    int count = 0, status = SHOAL_OK;
    for (int64_t i = 0; i < grain->rows && count < LABELS_MOST; i++) {
        int64_t key = shoal_order_key(value_at(grain, i, own->target));
        int place = find_place(keys, count, key);
        if (place < count && keys[place] == key)
            continue;
        memmove(keys + place + 1, keys + place, (size_t)(count - place) * sizeof *keys);
        keys[place] = key;
        count++;
    }
    for (int i = 0; status == SHOAL_OK && i < count;
         i++) /* with the sign turned, unsigned numbers have the same order */
        status =
            shoal_partial_record(partial, SCAN_LABELS, (shoal_key){(uint64_t)keys[i] ^ UINT64_C(1) << 63, 0}, NULL);
    return status;
}

/* ---- weights ----------------------------------------------------------------------------------------------------- */

static int scan_weights(shoal_partial *partial, const shoal_grain *grain)
{
    double sum = 0, greatest = 0;
    for (int64_t i = 0; i < grain->rows; i++) {
        double weight = grain->weights[i];
        sum += weight;
        greatest = weight > greatest ? weight : greatest;
        if (!(weight >= 0 && isfinite(sum)))
            return shoal_partial_record(partial, SCAN_BAD_WEIGHT, first_key(grain->first_row + i, 0), &weight);
    }
    shoal_max_raise(shoal_partial_values(partial, SCAN_GREATEST), 1, greatest);
    learn_exact_add(shoal_partial_values(partial, SCAN_WEIGHT), &all_doubles, sum,
                    shoal_partial_values(partial, SCAN_RANGE));
    return SHOAL_OK;
}

static int read_weights(logistic_found *out, const shoal_partial *merged, const shoal_shape *shape)
{
    double weight;
    shoal_key key;
    out->weight = (double)shape->rows;
    out->weight_greatest = 1;
    if (!shape->weighted)
        return SHOAL_OK;
    if (shoal_partial_records(merged, SCAN_BAD_WEIGHT) > 0) {
        memcpy(&weight, shoal_partial_record_at(merged, SCAN_BAD_WEIGHT, 0, &key), sizeof weight);
        return shoal_fail(SHOAL_INVALID,
                          "the weight of row %" PRIu64 " is %g, but weights are finite, also in sum, and at least 0",
                          ~key.high + 1, weight);
    }
    out->weight = learn_exact_value(shoal_partial_values_const(merged, SCAN_WEIGHT), &all_doubles);
    out->weight_greatest = shoal_max_value(shoal_partial_values_const(merged, SCAN_GREATEST)[1]);
    return out->weight > 0 && isfinite(out->weight)
               ? SHOAL_OK
               : shoal_fail(SHOAL_INVALID, "the weights of the rows add up to %g", out->weight);
}

/* ---- the round --------------------------------------------------------------------------------------------------- */

int logistic_scan(shoal_partial *partial, const void *untyped, const shoal_grain *grain, const shoal_scratch *scratch)
{
    double greatest = greatest_of(grain);
    if (!isfinite(greatest)) /* then nothing else of this grain matters */
        return logistic_note_not_finite(partial, SCAN_BAD, grain);
    shoal_max_raise(shoal_partial_values(partial, SCAN_GREATEST), 0, greatest);
    scan_columns(partial, grain, scratch->memory);
    int status = scan_labels(partial, untyped, grain, scratch->memory);
    return status == SHOAL_OK && grain->weights ? scan_weights(partial, grain) : status;
}

int logistic_scan_read(logistic_found *out, const logistic_own *own, const shoal_partial *merged,
                       const shoal_shape *shape)
{
    int64_t labels = shoal_partial_records(merged, SCAN_LABELS);
    int status = logistic_refuse_not_finite(merged, SCAN_BAD);
    if (status == SHOAL_OK)
        status = read_weights(out, merged, shape);
    if (status < 0)
        return status;
    if (labels > SHOAL_LOGISTIC_CLASSES_MOST)
        return shoal_fail(SHOAL_INVALID,
                          "column %" PRId64
                          ", which is to hold the labels, has more than %d different values; --target names another "
                          "column",
                          own->target + 1, SHOAL_LOGISTIC_CLASSES_MOST);
    for (int64_t i = 0; i < labels; i++) {
        shoal_key key;
        shoal_partial_record_at(merged, SCAN_LABELS, i, &key);
        out->label[i] = shoal_max_value((int64_t)(key.high ^ UINT64_C(1) << 63));
    }
    if (labels < 2)
        return shoal_fail(SHOAL_INVALID,
                          "column %" PRId64
                          ", which is to hold the labels, is %g in every row; two classes are the least",
                          own->target + 1, labels > 0 ? out->label[0] : NAN);
    out->classes = labels;
    out->greatest = shoal_max_value(shoal_partial_values_const(merged, SCAN_GREATEST)[0]);
    return SHOAL_OK;
}
