/* Sums of naive Bayes, which are the same in whatever order and grains rows are added.
 *
 * A value v of a column whose |v| is at most B becomes a whole number before it is added, row by row: with a unit u, a
 * power of two for which B u < 2^b, it is
 *
 *     high = rint(v u),   low = rint((v u - high) 2^b),   v = (high + low / 2^b) / u  but for  2^-(b+1) / u,
 *
 * and high and low are added as the digits of a WIDE cell.  All of that is exact but for the last rint: a product with
 * a power of two, and what rint leaves.
 *
 * Nothing overflows: b = 62 - ceil(log2 rows) at most, |high| <= 2^b and |low| <= 2^(b-1), so both digits stay within
 * 2^62 when all rows are added.  A value is rounded by less than 2^(-2b) B: for a million rows, 2^-84 B.  It is in a
 * forged model only that a unit is too great, and then sums wrap. */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "learn/bayes/bayes_internal.h"

/* b is less for few rows, so that rint can be done by adding 1.5 * 2^52: what is added must stay below 2^51. */
enum { BITS_MOST = 50 };
/* Units of values that are all about 0 must still be finite. */
enum { EXPONENT_LEAST = -950 };

int bayes_bits(int64_t rows)
{
    int bits = shoal_wide_bits(rows);
    return bits < BITS_MOST ? bits : BITS_MOST;
}

double bayes_unit(double bound, int bits)
{
    int exponent = EXPONENT_LEAST;
    if (bound > 0)
        frexp(bound, &exponent); /* bound < 2^exponent */
    return ldexp(1, bits - (exponent > EXPONENT_LEAST ? exponent : EXPONENT_LEAST));
}

bool bayes_unit_good(double unit)
{
    int exponent;
    return unit > 0 && isfinite(unit) && frexp(unit, &exponent) == 0.5;
}

double bayes_sum(const int64_t *digits, int64_t count, int64_t index, double unit, int bits)
{
    return ldexp(shoal_wide_value(digits, count, index, bits), -bits) / unit;
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

/* The bits of a number whose last place is 1 are those of `rint_by` plus the whole number that was added. */
static const double rint_by = 0x1.8p52;

static inline int64_t bits_of(double value)
{
    int64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* Adds a row of values to sums. */
static void add_row(int64_t *restrict low, int64_t *restrict high, const double *restrict value,
                    const double *restrict unit, int64_t columns, double base)
{
    const int64_t none = bits_of(rint_by);
    for (int64_t k = 0; k < columns; k++) {
        double scaled = value[k] * unit[k], whole = scaled + rint_by;
        double rest = (scaled - (whole - rint_by)) * base + rint_by;
        high[k] = base_add_wrapping(high[k], base_subtract_wrapping(bits_of(whole), none));
        low[k] = base_add_wrapping(low[k], base_subtract_wrapping(bits_of(rest), none));
    }
}

enum { BLOCK_ROWS = 256 };

/* What a thread needs for rows: a row as doubles, its values, the classes of a block, and a table or two. */
typedef struct space {
    double *row, *value, *greatest, *negative;
    int32_t *class;
} space;

static space cut_space(void *memory, int64_t columns, int64_t table)
{
    double *at = memory;
    space out = {.row = at, .value = at + columns};
    out.greatest = out.value + columns;
    out.negative = out.greatest + table;
    out.class = (int32_t *)(out.negative + table);
    return out;
}

size_t bayes_scratch(const bayes_model *model, const shoal_shape *shape)
{
    int64_t table = model->phase == BAYES_MEANS ? model->classes * model->columns : 0;
    size_t rows = (size_t)(2 * (shape->columns + table)) * sizeof(double) + BLOCK_ROWS * sizeof(int32_t);
    size_t scan = model->phase == BAYES_SCAN ? learn_scan_scratch() : 0;
    return rows > scan ? rows : scan;
}

/* Row `index` of the grain as doubles: where it lies, or in `row`. */
static const double *read_row(double *row, const shoal_grain *grain, int64_t index)
{
    const shoal_shape *shape = grain->shape;
    const char *at = (const char *)grain->values + (size_t)(index * shape->columns) * shoal_type_size(shape->type);
    if (shape->type == SHOAL_FLOAT64)
        return (const double *)at;
    shoal_convert_float64(row, at, shape->type, shape->columns);
    return row;
}

/* ---- round by round ---------------------------------------------------------------------------------------------- */

int bayes_scan_grain(shoal_partial *partial, const bayes_model *model, const shoal_grain *grain,
                     const shoal_scratch *scratch)
{
    bool finite = false;
    int status = learn_scan(&finite, partial, grain, model->target, scratch);
    if (status < 0 || !finite)
        return status;
    int64_t columns = model->columns, *greatest = shoal_partial_values(partial, BAYES_COLUMNS);
    const space space = cut_space(scratch->memory, columns, 0);
    memset(space.value, 0, (size_t)columns * sizeof *space.value);
    for (int64_t i = 0; i < grain->rows; i++) {
        const double *x = read_row(space.row, grain, i);
        for (int64_t k = 0; k < columns; k++)
            space.value[k] = fabs(x[k]) > space.value[k] ? fabs(x[k]) : space.value[k];
    }
    for (int64_t k = 0; k < columns; k++)
        shoal_max_raise(greatest, k, space.value[k]);
    return SHOAL_OK;
}

/* Calls `each` for the rows of the grain that have a weight. */
typedef void each_row(void *context, const double *x, int64_t class, double weight);

static void for_rows(each_row *each, void *context, const space *space, const bayes_model *model,
                     const shoal_grain *grain)
{
    const double *label = bayes_arrays_of(model).label;
    for (int64_t first = 0; first < grain->rows; first += BLOCK_ROWS) {
        int64_t rows = grain->rows - first < BLOCK_ROWS ? grain->rows - first : BLOCK_ROWS;
        learn_classes_find(space->class, label, model->classes, grain, first, rows, model->target);
        for (int64_t i = 0; i < rows; i++) {
            double weight = grain->weights ? grain->weights[first + i] : 1;
            if (weight != 0)
                each(context, read_row(space->row, grain, first + i), space->class[i], weight);
        }
    }
}

typedef struct summing {
    const bayes_model *model;
    bayes_arrays arrays;
    space space;
    int64_t *low, *high; /* digits of all sums */
    double base;
} summing;

static summing begin(shoal_partial *partial, int cell, const bayes_model *model, const shoal_grain *grain,
                     const shoal_scratch *scratch)
{
    int64_t table = model->classes * model->columns;
    summing self = {.model = model,
                    .arrays = bayes_arrays_of(model),
                    .space = cut_space(scratch->memory, model->columns, model->phase == BAYES_MEANS ? table : 0),
                    .low = shoal_partial_values(partial, cell),
                    .base = ldexp(1, bayes_bits(grain->shape->rows))};
    self.high = self.low + table;
    return self;
}

static void add_values(void *context, const double *x, int64_t class, double weight)
{
    const summing *self = context;
    int64_t columns = self->model->columns, at = class * columns;
    double *restrict value = self->space.value, *restrict greatest = self->space.greatest + at,
                     *restrict negative = self->space.negative + at;
    for (int64_t k = 0; k < columns; k++) {
        greatest[k] = x[k] > greatest[k] ? x[k] : greatest[k];
        negative[k] = -x[k] > negative[k] ? -x[k] : negative[k];
        value[k] = weight * x[k];
    }
    value[self->model->target] = weight;
    add_row(self->low + at, self->high + at, value, self->arrays.unit, columns, self->base);
}

void bayes_sum_values(shoal_partial *partial, const bayes_model *model, const shoal_grain *grain,
                      const shoal_scratch *scratch)
{
    summing self = begin(partial, BAYES_SUMS, model, grain, scratch);
    int64_t table = model->classes * model->columns;
    int64_t *greatest = shoal_partial_values(partial, BAYES_GREATEST),
            *negative = shoal_partial_values(partial, BAYES_NEGATIVES);
    for (int64_t i = 0; i < table; i++)
        self.space.greatest[i] = self.space.negative[i] = -INFINITY;
    for_rows(add_values, &self, &self.space, model, grain);
    for (int64_t i = 0; i < table; i++) {
        if (self.space.greatest[i] == -INFINITY)
            continue; /* of a class that is not in this grain */
        shoal_max_raise(greatest, i, self.space.greatest[i]);
        shoal_max_raise(negative, i, self.space.negative[i]);
    }
}

static void add_squares(void *context, const double *x, int64_t class, double weight)
{
    const summing *self = context;
    int64_t columns = self->model->columns, at = class * columns;
    const double *restrict mean = self->arrays.mean + at;
    double *restrict value = self->space.value;
    for (int64_t k = 0; k < columns; k++)
        value[k] = weight * ((x[k] - mean[k]) * (x[k] - mean[k]));
    value[self->model->target] = 0;
    add_row(self->low + at, self->high + at, value, self->arrays.unit + at, columns, self->base);
}

void bayes_sum_squares(shoal_partial *partial, const bayes_model *model, const shoal_grain *grain,
                       const shoal_scratch *scratch)
{
    summing self = begin(partial, BAYES_SQUARES, model, grain, scratch);
    for_rows(add_squares, &self, &self.space, model, grain);
}
