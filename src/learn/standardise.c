/* Columns of mean 0 and standard deviation 1.  See standardise.h.
 *
 * Rows are read twice: for the least, the greatest and the sum of every column, then for the squared distances
 * from its mean.  The squares are taken of values times a power of two that brings them near 1, so that they neither
 * overflow nor vanish. */
#include "learn/standardise.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/pool.h"
#include "data/data_place.h"
#include "data/table/data_transform.h"
#include "learn/exact.h"

/* Rows are read this many bytes at a time. */
enum { AT_ONCE_BYTES = 1 << 20 };

/* Which has room for every double, so that no value is ever left out. */
static const learn_window all_doubles = {.low = -1088, .digits = LEARN_EXACT_DIGITS_MOST};

/* What is known of one column. */
typedef struct column_sum {
    int64_t digit[LEARN_EXACT_DIGITS_MOST];
    double least, most;
} column_sum;

/* What one thread has found, and reads into. */
typedef struct share {
    column_sum *column;
    int64_t bad; /* the first value that is not finite, in reading order; INT64_MAX for none */
    void *scratch;
    double *row;
} share;

/* What the first pass finds out about a column. */
typedef struct column_centre {
    double mean, scale;
    double unit; /* the power of two that brings its values near 1 */
    bool constant;
} column_centre;

typedef struct measuring {
    shoal_data *data;
    column_centre *centres;
    bool second; /* the centres are there */
    share *shares;
    int threads;
    int64_t columns, at_once;
} measuring;

static void add_first(share *mine, int64_t number, int64_t columns)
{
    for (int64_t k = 0; k < columns; k++) {
        column_sum *column = &mine->column[k];
        double value = mine->row[k];
        int64_t unused[LEARN_EXACT_RANGE];
        if (!isfinite(value)) {
            int64_t place = number * columns + k;
            mine->bad = place < mine->bad ? place : mine->bad;
            continue;
        }
        column->least = value < column->least ? value : column->least;
        column->most = value > column->most ? value : column->most;
        learn_exact_add(column->digit, &all_doubles, value, unused);
    }
}

static void add_second(share *mine, const column_centre *centres, int64_t columns)
{
    for (int64_t k = 0; k < columns; k++) {
        double distance = mine->row[k] * centres[k].unit - centres[k].mean * centres[k].unit;
        int64_t unused[LEARN_EXACT_RANGE];
        learn_exact_add(mine->column[k].digit, &all_doubles, distance * distance, unused);
    }
}

static int measure_chunk(void *context, int64_t item, int thread)
{
    const measuring *self = context;
    share *mine = &self->shares[thread];
    const int64_t first = item * self->at_once, left = shoal_data_rows(self->data) - first;
    const int64_t count = left < self->at_once ? left : self->at_once;
    const shoal_type type = shoal_data_type(self->data);
    const size_t row_bytes = (size_t)self->columns * shoal_type_size(type);
    const void *read = NULL;
    int status = shoal_data_read(&read, self->data, first, count, mine->scratch);
    for (int64_t i = 0; i < count && status == SHOAL_OK; i++) {
        shoal_convert_float64(mine->row, (const char *)read + (size_t)i * row_bytes, type, self->columns);
        if (self->second)
            add_second(mine, self->centres, self->columns);
        else
            add_first(mine, first + i, self->columns);
    }
    return status;
}

/* Goes through all rows; the first share has everything afterwards. */
static int measure_all(measuring *self, base_pool *pool)
{
    const int64_t chunks = (shoal_data_rows(self->data) + self->at_once - 1) / self->at_once;
    for (int t = 0; t < self->threads; t++)
        for (int64_t k = 0; k < self->columns; k++)
            self->shares[t].column[k] = (column_sum){.least = INFINITY, .most = -INFINITY};
    int status = base_pool_each(pool, chunks, measure_chunk, self);
    if (status == SHOAL_OK)
        status = shoal_data_check(self->data);
    share *all = &self->shares[0];
    for (int t = 1; t < self->threads && status == SHOAL_OK; t++) {
        const share *other = &self->shares[t];
        all->bad = other->bad < all->bad ? other->bad : all->bad;
        for (int64_t k = 0; k < self->columns; k++) {
            all->column[k].least = fmin(all->column[k].least, other->column[k].least);
            all->column[k].most = fmax(all->column[k].most, other->column[k].most);
            for (int d = 0; d < LEARN_EXACT_DIGITS_MOST; d++)
                all->column[k].digit[d] += other->column[k].digit[d];
        }
    }
    return status;
}

static int refuse_bad(const measuring *self)
{
    int64_t bad = self->shares[0].bad;
    if (bad == INT64_MAX)
        return SHOAL_OK;
    return shoal_fail(SHOAL_INVALID,
                      "%s: row %" PRId64 ", column %" PRId64 " is not a finite number; --standardise "
                      "needs finite numbers",
                      shoal_data_path(self->data), bad / self->columns + 1, bad % self->columns + 1);
}

/* The mean of a column lies between its least and its greatest value, also where rounding would carry it outside. */
static int find_means(measuring *self)
{
    const double rows = (double)shoal_data_rows(self->data);
    for (int64_t k = 0; k < self->columns; k++) {
        const column_sum *column = &self->shares[0].column[k];
        column_centre *centre = &self->centres[k];
        double mean = learn_exact_value(column->digit, &all_doubles) / rows;
        int exponent = 0;
        if (!isfinite(mean))
            return shoal_fail(SHOAL_INVALID, "%s: the values of column %" PRId64 " are too large for --standardise",
                              shoal_data_path(self->data), k + 1);
        frexp(fmax(fabs(column->least), fabs(column->most)), &exponent);
        exponent = exponent < -1000 ? -1000 : exponent > 1000 ? 1000 : exponent;
        centre->mean = fmax(column->least, fmin(column->most, mean));
        centre->unit = ldexp(1, -exponent);
        centre->constant = column->least == column->most;
    }
    self->second = true;
    return SHOAL_OK;
}

static void find_scales(measuring *self)
{
    const double rows = (double)shoal_data_rows(self->data);
    for (int64_t k = 0; k < self->columns; k++) {
        column_centre *centre = &self->centres[k];
        double variance = learn_exact_value(self->shares[0].column[k].digit, &all_doubles) / rows;
        double deviation = sqrt(variance) / centre->unit;
        centre->scale = centre->constant || !(deviation > 0) ? 1 : deviation;
    }
}

static int make_shares(measuring *self)
{
    const size_t row_bytes = (size_t)self->columns * shoal_type_size(shoal_data_type(self->data));
    int status = base_alloc(&self->shares, (size_t)self->threads, sizeof *self->shares, "sums of columns");
    for (int t = 0; t < self->threads && status == SHOAL_OK; t++) {
        share *mine = &self->shares[t];
        mine->bad = INT64_MAX;
        status = base_alloc(&mine->column, (size_t)self->columns, sizeof *mine->column, "sums of columns");
        if (status == SHOAL_OK)
            status = base_alloc(&mine->row, (size_t)self->columns, sizeof *mine->row, "a row");
        if (status == SHOAL_OK && !shoal_data_is_resident(self->data))
            status = base_alloc_unset(&mine->scratch, (size_t)self->at_once, row_bytes, "rows");
    }
    return status;
}

static void free_shares(measuring *self)
{
    for (int t = 0; self->shares && t < self->threads; t++) {
        base_free(&self->shares[t].column);
        base_free(&self->shares[t].row);
        base_free(&self->shares[t].scratch);
    }
    base_free(&self->shares);
}

/* All columns but the target. */
static int keep_measures(learn_schema *schema, const measuring *self, int64_t target)
{
    int64_t count = 0;
    base_free(&schema->mean);
    base_free(&schema->scale);
    int status = base_alloc(&schema->mean, (size_t)self->columns, sizeof *schema->mean, "means of columns");
    if (status == SHOAL_OK)
        status = base_alloc(&schema->scale, (size_t)self->columns, sizeof *schema->scale, "scales of columns");
    for (int64_t k = 0; k < self->columns && status == SHOAL_OK; k++)
        if (k != target) {
            schema->mean[count] = self->centres[k].mean;
            schema->scale[count++] = self->centres[k].scale;
        }
    return status;
}

int learn_standardise_measure(learn_schema *schema, shoal_data *data, int64_t target, int threads)
{
    const int64_t columns = shoal_data_columns(data);
    const int64_t row_bytes = columns * (int64_t)shoal_type_size(shoal_data_type(data));
    measuring self = {.data = data, .columns = columns, .at_once = AT_ONCE_BYTES / (row_bytes + 1) + 1};
    base_pool *pool = NULL;
    if (data_place_of(data).kind == DATA_IN_BLOB)
        return shoal_fail(SHOAL_USAGE,
                          "--standardise: the rows of %s stay in their store; fetch them first with shoal "
                          "store get",
                          shoal_data_path(data));
    if (shoal_data_rows(data) > LEARN_STANDARDISE_ROWS_MOST)
        return shoal_fail(SHOAL_USAGE, "%s: --standardise takes at most %" PRId64 " rows", shoal_data_path(data),
                          LEARN_STANDARDISE_ROWS_MOST);
    int status = base_pool_new(&pool, threads > 0 ? threads : base_cores());
    self.threads = pool ? base_pool_threads(pool) : 0;
    if (status == SHOAL_OK)
        status = base_alloc(&self.centres, (size_t)columns, sizeof *self.centres, "means of columns");
    if (status == SHOAL_OK)
        status = make_shares(&self);
    if (status == SHOAL_OK)
        status = measure_all(&self, pool);
    if (status == SHOAL_OK)
        status = refuse_bad(&self);
    if (status == SHOAL_OK)
        status = find_means(&self);
    if (status == SHOAL_OK)
        status = measure_all(&self, pool);
    if (status == SHOAL_OK) {
        find_scales(&self);
        status = keep_measures(schema, &self, target);
    }
    free_shares(&self);
    base_pool_free(&pool);
    base_free(&self.centres);
    return status;
}

/* ---- applying ---------------------------------------------------------------------------------------------------- */

typedef struct scaling {
    const learn_schema *schema;
    int64_t target; /* which stays as it is, or -1 */
} scaling;

static void scale_row(double *row, const void *context)
{
    const scaling *self = context;
    const learn_schema *schema = self->schema;
    for (int64_t i = 0; i < schema->columns; i++) {
        double *value = &row[i + (self->target >= 0 && i >= self->target)];
        *value = (*value - schema->mean[i]) / schema->scale[i];
    }
}

static bool needs_double(shoal_type type)
{
    return type == SHOAL_FLOAT64 || type == SHOAL_INT32 || type == SHOAL_INT64 || type == SHOAL_UINT32 ||
           type == SHOAL_UINT64;
}

int learn_standardise_apply(shoal_data *data, const learn_schema *schema, int64_t target)
{
    const scaling self = {schema, target};
    if (shoal_data_columns(data) != schema->columns + (target >= 0))
        return shoal_fail(SHOAL_INVALID, "%s has %" PRId64 " columns, but %" PRId64 " were standardised",
                          shoal_data_path(data), shoal_data_columns(data) - (target >= 0), schema->columns);
    return data_transform(data, needs_double(shoal_data_type(data)) ? SHOAL_FLOAT64 : SHOAL_FLOAT32, scale_row, &self);
}

void learn_standardise_values(double *values, int64_t rows, const learn_schema *schema)
{
    for (int64_t i = 0; schema && schema->mean && i < rows; i++)
        scale_row(values + i * schema->columns, &(scaling){schema, -1});
}

void learn_unstandardise_values(double *values, int64_t rows, const learn_schema *schema)
{
    for (int64_t i = 0; schema && schema->mean && i < rows; i++)
        for (int64_t k = 0; k < schema->columns; k++)
            values[i * schema->columns + k] = values[i * schema->columns + k] * schema->scale[k] + schema->mean[k];
}
