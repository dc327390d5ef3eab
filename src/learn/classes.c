/* Labels among the columns of rows.  See classes.h. */
#include "learn/classes.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/text.h"
#include "learn/check.h"
#include "learn/exact.h"

enum { COLUMNS_MOST = INT32_MAX };

/* One more than may be there is enough to know that there are too many. */
enum { LABELS_MOST = LEARN_CLASSES_MOST + 1 };

/* Holds every double, so a sum of weights always has room. */
static const learn_window all_doubles = {.low = -1088, .digits = LEARN_EXACT_DIGITS_MOST};

int learn_target_place(int64_t *out, int64_t target, const shoal_shape *shape, const char *learner)
{
    if (shape->rows < 1 || shape->columns < 2 || shape->columns > COLUMNS_MOST)
        return shoal_fail(SHOAL_INVALID,
                          "%" PRId64 " row%s and %" PRId64
                          " column%s; %s needs rows with a target and at least one other column",
                          shape->rows, base_plural(shape->rows), shape->columns, base_plural(shape->columns), learner);
    *out = target > 0 ? target - 1 : target < 0 ? shape->columns + target : shape->columns - 1;
    return *out >= 0 && *out < shape->columns
               ? SHOAL_OK
               : shoal_fail(SHOAL_USAGE, "--target: there is no column %" PRId64 "; the data has %" PRId64, target,
                            shape->columns);
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

int learn_note_not_finite(shoal_partial *partial, int cell, const shoal_grain *grain)
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

int learn_refuse_not_finite(const shoal_partial *merged, int cell, const char *learner)
{
    double value;
    shoal_key key;
    if (shoal_partial_records(merged, cell) == 0)
        return SHOAL_OK;
    memcpy(&value, shoal_partial_record_at(merged, cell, 0, &key), sizeof value);
    return shoal_fail(SHOAL_INVALID, "row %" PRIu64 ", column %" PRIu64 " is %s; %s needs finite numbers",
                      ~key.high + 1, ~key.low + 1,
                      isnan(value) ? "not a number"
                      : value > 0  ? "infinite"
                                   : "minus infinity",
                      learner);
}

/* ---- labels and weights ------------------------------------------------------------------------------------------ */

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

static int scan_labels(shoal_partial *partial, const shoal_grain *grain, int64_t target, int64_t *keys)
{
    int count = 0, status = SHOAL_OK;
    for (int64_t i = 0; i < grain->rows && count < LABELS_MOST; i++) {
        int64_t key = shoal_order_key(value_at(grain, i, target));
        int place = find_place(keys, count, key);
        if (place < count && keys[place] == key)
            continue;
        memmove(keys + place + 1, keys + place, (size_t)(count - place) * sizeof *keys);
        keys[place] = key;
        count++;
    }
    for (int i = 0; status == SHOAL_OK && i < count; i++) {
        /* With the sign turned, unsigned numbers have the same order. */
        const shoal_key key = {(uint64_t)keys[i] ^ UINT64_C(1) << 63, 0};
        status = shoal_partial_record(partial, LEARN_SCAN_LABELS, key, NULL);
    }
    return status;
}

static int scan_weights(shoal_partial *partial, const shoal_grain *grain)
{
    double sum = 0, greatest = 0;
    for (int64_t i = 0; i < grain->rows; i++) {
        double weight = grain->weights[i];
        sum += weight;
        greatest = weight > greatest ? weight : greatest;
        if (!(weight >= 0 && isfinite(sum)))
            return shoal_partial_record(partial, LEARN_SCAN_BAD_WEIGHT, first_key(grain->first_row + i, 0), &weight);
    }
    shoal_max_raise(shoal_partial_values(partial, LEARN_SCAN_GREATEST), 1, greatest);
    learn_exact_add(shoal_partial_values(partial, LEARN_SCAN_WEIGHT), &all_doubles, sum,
                    shoal_partial_values(partial, LEARN_SCAN_RANGE));
    return SHOAL_OK;
}

static int read_weights(learn_scanned *out, const shoal_partial *merged, const shoal_shape *shape)
{
    double weight;
    shoal_key key;
    out->weight = (double)shape->rows;
    out->weight_greatest = 1;
    if (!shape->weighted)
        return SHOAL_OK;
    if (shoal_partial_records(merged, LEARN_SCAN_BAD_WEIGHT) > 0) {
        memcpy(&weight, shoal_partial_record_at(merged, LEARN_SCAN_BAD_WEIGHT, 0, &key), sizeof weight);
        return shoal_fail(SHOAL_INVALID,
                          "the weight of row %" PRIu64 " is %g, but weights are finite, also in sum, and at least 0",
                          ~key.high + 1, weight);
    }
    out->weight = learn_exact_value(shoal_partial_values_const(merged, LEARN_SCAN_WEIGHT), &all_doubles);
    out->weight_greatest = shoal_max_value(shoal_partial_values_const(merged, LEARN_SCAN_GREATEST)[1]);
    return out->weight > 0 && isfinite(out->weight)
               ? SHOAL_OK
               : shoal_fail(SHOAL_INVALID, "the weights of the rows add up to %g", out->weight);
}

/* ---- the scan ---------------------------------------------------------------------------------------------------- */

void learn_scan_layout(shoal_layout *layout)
{
    layout->cells = LEARN_SCAN_CELLS;
    layout->cell[LEARN_SCAN_LABELS] = (shoal_cell){"labels", SHOAL_CELL_RECORD, LABELS_MOST, 0, false};
    layout->cell[LEARN_SCAN_BAD] = (shoal_cell){"not finite", SHOAL_CELL_RECORD, 1, sizeof(double), false};
    layout->cell[LEARN_SCAN_GREATEST] = (shoal_cell){"greatest", SHOAL_CELL_MAX, 2, 0, false};
    layout->cell[LEARN_SCAN_BAD_WEIGHT] = (shoal_cell){"bad weight", SHOAL_CELL_RECORD, 1, sizeof(double), false};
    layout->cell[LEARN_SCAN_WEIGHT] = (shoal_cell){"weight", SHOAL_CELL_SUM, LEARN_EXACT_DIGITS_MOST, 0, false};
    layout->cell[LEARN_SCAN_RANGE] = (shoal_cell){"weight's range", SHOAL_CELL_MAX, LEARN_EXACT_RANGE, 0, false};
}

size_t learn_scan_scratch(void)
{
    return LABELS_MOST * sizeof(int64_t);
}

double learn_scan_bytes(int64_t classes)
{
    enum { RECORD_CELLS = 3, WORDS = 2 + LEARN_EXACT_DIGITS_MOST + LEARN_EXACT_RANGE }; /* records have a count each */
    return (WORDS + RECORD_CELLS) * sizeof(int64_t) + (double)classes * sizeof(shoal_key);
}

int learn_scan(bool *finite, shoal_partial *partial, const shoal_grain *grain, int64_t target,
               const shoal_scratch *scratch)
{
    double greatest = greatest_of(grain);
    *finite = isfinite(greatest);
    if (!*finite)
        return learn_note_not_finite(partial, LEARN_SCAN_BAD, grain);
    shoal_max_raise(shoal_partial_values(partial, LEARN_SCAN_GREATEST), 0, greatest);
    int status = scan_labels(partial, grain, target, scratch->memory);
    return status == SHOAL_OK && grain->weights ? scan_weights(partial, grain) : status;
}

int learn_scan_read(learn_scanned *out, const shoal_partial *merged, const shoal_shape *shape, int64_t target,
                    const char *learner)
{
    int64_t labels = shoal_partial_records(merged, LEARN_SCAN_LABELS);
    int status = learn_refuse_not_finite(merged, LEARN_SCAN_BAD, learner);
    if (status == SHOAL_OK)
        status = read_weights(out, merged, shape);
    if (status < 0)
        return status;
    if (labels > LEARN_CLASSES_MOST)
        return shoal_fail(SHOAL_INVALID,
                          "column %" PRId64
                          ", the target, has more than %d different values; choose another with --target",
                          target + 1, LEARN_CLASSES_MOST);
    for (int64_t i = 0; i < labels; i++) {
        shoal_key key;
        shoal_partial_record_at(merged, LEARN_SCAN_LABELS, i, &key);
        out->label[i] = shoal_max_value((int64_t)(key.high ^ UINT64_C(1) << 63));
    }
    if (labels < 2)
        return shoal_fail(SHOAL_INVALID,
                          "column %" PRId64 ", the target, is the same in every row; at least two classes are needed",
                          target + 1);
    out->classes = labels;
    out->greatest = shoal_max_value(shoal_partial_values_const(merged, LEARN_SCAN_GREATEST)[0]);
    return SHOAL_OK;
}

/* ---- classes of rows --------------------------------------------------------------------------------------------- */

bool learn_classes_good(const double *classes, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(classes[i]) || (i > 0 && !(classes[i] > classes[i - 1])))
            return false;
    return true;
}

/* The class of a label that the scan has seen.  Labels that count up by one, as most do, are found at once. */
static int32_t find_class(double label, const double *classes, int32_t count)
{
    double step = label - classes[0];
    if (step >= 0 && step < count && classes[(int32_t)step] == label)
        return (int32_t)step;
    int32_t low = 0, high = count - 1;
    while (low < high) {
        int32_t middle = (low + high) / 2;
        if (classes[middle] < label)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void learn_classes_find(int32_t *class, const double *classes, int64_t count, const shoal_grain *grain, int64_t first,
                        int64_t rows, int64_t target)
{
    const shoal_shape *shape = grain->shape;
    size_t size = shoal_type_size(shape->type);
    const char *at = (const char *)grain->values + (size_t)(first * shape->columns + target) * size;
    for (int64_t i = 0; i < rows; i++, at += (size_t)shape->columns * size) {
        double label;
        shoal_convert_float64(&label, at, shape->type, 1);
        class[i] = find_class(label, classes, (int32_t)count);
    }
}

void learn_subtract_greatest(int32_t *most, double *output, int64_t rows, int64_t classes)
{
    for (int64_t i = 0; i < rows; i++, output += classes) {
        int32_t at = 0;
        for (int32_t k = 1; k < classes; k++)
            at = output[k] > output[at] ? k : at;
        double greatest = output[at];
        for (int64_t k = 0; k < classes; k++)
            output[k] -= greatest;
        most[i] = at;
    }
}

double learn_sum_others(const double *exponential, int64_t classes, int32_t most)
{
    double sum = 0;
    for (int64_t k = 0; k < classes; k++)
        sum += k == most ? 0 : exponential[k];
    return sum;
}

void learn_classes_decide(int32_t *most, double *probabilities, double *output, int64_t rows, int64_t classes,
                          const kernel_dense64 *dense)
{
    learn_subtract_greatest(most, output, rows, classes);
    if (!probabilities)
        return;
    dense->exp(output, rows * classes);
    for (int64_t i = 0; i < rows; i++) {
        double *row = output + i * classes;
        double all = 1 + learn_sum_others(row, classes, most[i]);
        row[most[i]] = 1;
        for (int64_t k = 0; k < classes; k++)
            probabilities[i * classes + k] = row[k] / all;
    }
}

int learn_classes_result(shoal_result **out, shoal_partial *merged, int labels, int shares, int64_t rows,
                         int64_t classes)
{
    shoal_result *result = NULL;
    int status = shoal_result_new(&result);
    if (status == SHOAL_OK)
        status = shoal_result_take_rows(result, "labels", SHOAL_FLOAT64, merged, labels, rows);
    if (status == SHOAL_OK && shares >= 0)
        status = shoal_result_take_table(result, "probabilities", SHOAL_FLOAT64, merged, shares, rows, classes);
    if (status < 0) {
        shoal_result_free(&result);
        return status;
    }
    shoal_result_set_whole(result, "classes", classes);
    *out = result;
    return SHOAL_OK;
}

int learn_classes_result_check(const shoal_result *result, int64_t rows, int64_t classes, bool probabilities)
{
    const int64_t size[2] = {rows, classes};
    return learn_result_has(result, "labels", SHOAL_FLOAT64, 1, size) &&
                   (!probabilities || learn_result_has(result, "probabilities", SHOAL_FLOAT64, 2, size))
               ? SHOAL_OK
               : shoal_fail(SHOAL_BROKEN, "the result is not labels of these rows");
}
