/* Round 0 of logistic regression: the scan of learn/classes.h, and about what columns are like. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "learn/exact.h"
#include "learn/logistic/logistic_internal.h"

enum { SCAN_MOMENTS = LEARN_SCAN_CELLS, SCAN_CELLS };

/* Sums of a column: its values; their squared distances from the mean of their grain; and the squares of those means,
 * each times the rows of the grain.  All are rounded to float32 first, each of which has room in the usual window. */
enum { MOMENT_VALUES, MOMENT_WITHIN, MOMENT_MEANS, MOMENTS };

void logistic_scan_layout(shoal_layout *layout, const void *own, const shoal_shape *shape)
{
    int64_t digits = learn_window_usual().digits;
    (void)own;
    learn_scan_layout(layout);
    layout->cell[SCAN_MOMENTS] = (shoal_cell){"moments", SHOAL_CELL_SUM, MOMENTS * digits * shape->columns, 0, false};
    layout->cells = SCAN_CELLS;
}

double logistic_scan_bytes(int64_t columns, int64_t classes)
{
    double moments = (double)MOMENTS * learn_window_usual().digits * (double)columns;
    return learn_scan_bytes(classes) + moments * sizeof(int64_t);
}

/* ---- what columns are like --------------------------------------------------------------------------------------- */

static void add_moment(shoal_partial *partial, int64_t column, int which, double value)
{
    const learn_window window = learn_window_usual();
    int64_t *digits = shoal_partial_values(partial, SCAN_MOMENTS) + (column * MOMENTS + which) * window.digits;
    learn_exact_add(digits, &window, (float)fmax(fmin(value, FLT_MAX), -FLT_MAX),
                    shoal_partial_values(partial, LEARN_SCAN_RANGE));
}

static double read_moment(const shoal_partial *merged, int64_t column, int which)
{
    const learn_window window = learn_window_usual();
    const int64_t *digits = shoal_partial_values_const(merged, SCAN_MOMENTS);
    return learn_exact_value(digits + (column * MOMENTS + which) * window.digits, &window);
}

/* Adds row `row` to the sums of columns: values, or squared distances from `mean`. */
static void add_centred_row(double *sum, double *row, const double *mean, const shoal_grain *grain, int64_t index)
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
        add_centred_row(mean, row, NULL, grain, i);
    for (int64_t k = 0; k < columns; k++)
        mean[k] /= rows;
    for (int64_t i = 0; i < grain->rows; i++)
        add_centred_row(within, row, mean, grain, i);
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

/* ---- the round --------------------------------------------------------------------------------------------------- */

size_t logistic_scan_scratch(const void *own, const shoal_shape *shape)
{
    size_t labels = learn_scan_scratch(), columns = 3 * (size_t)shape->columns * sizeof(double);
    (void)own;
    return labels > columns ? labels : columns;
}

int logistic_scan(shoal_partial *partial, const void *untyped, const shoal_grain *grain, const shoal_scratch *scratch)
{
    const logistic_own *own = untyped;
    bool finite = false;
    int status = learn_scan(&finite, partial, grain, own->target, scratch);
    if (status == SHOAL_OK && finite)
        scan_columns(partial, grain, scratch->memory);
    return status;
}
