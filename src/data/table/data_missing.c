/* Missing values.  See data_missing.h.
 *
 * The rows are looked at first, and copied only if a value is missing, so that a mapped file without any stays mapped.
 * Means are sums without rounding, divided once (exact_mean.h): they do not depend on the order of rows. */
#include "data_missing.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"
#include "data/data_internal.h"
#include "data/image/exact_mean.h"

/* Rows are read this many bytes at a time. */
enum { AT_ONCE_BYTES = 1 << 20 };

bool data_is_missing(const char *text, size_t length)
{
    static const char *const words[] = {"", "NA", "N/A", "NaN", "null", "?"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i]) == length && strncasecmp(text, words[i], length) == 0)
            return true;
    return false;
}

/* ---- rows, some at a time ---------------------------------------------------------------------------------------- */

static bool can_miss(const shoal_data *data)
{
    return (data->type == SHOAL_FLOAT32 || data->type == SHOAL_FLOAT64) && data->format != &data_described &&
           data->format != &data_generated;
}

static double value_at(const shoal_data *data, const void *values, int64_t index)
{
    double value;
    if (data->type == SHOAL_FLOAT64)
        return ((const double *)values)[index];
    if (data->type == SHOAL_FLOAT32)
        return (double)((const float *)values)[index];
    shoal_convert_float64(&value, (const char *)values + (size_t)index * shoal_type_size(data->type), data->type, 1);
    return value;
}

/* Calls `see` for pieces of the rows, all of which lie in memory or in a file. */
static int for_rows(shoal_data *data, void *context,
                    int (*see)(void *context, const void *rows, int64_t first, int64_t count))
{
    const int64_t at_once = AT_ONCE_BYTES / ((int64_t)data_row_bytes(data) + 1) + 1;
    int status = SHOAL_OK;
    for (int64_t first = 0; first < data->rows && status == SHOAL_OK; first += at_once) {
        const int64_t count = data->rows - first < at_once ? data->rows - first : at_once;
        const void *rows = NULL;
        status = shoal_data_read(&rows, data, first, count, NULL);
        if (status == SHOAL_OK)
            status = see(context, rows, first, count);
    }
    return status == SHOAL_OK ? shoal_data_check(data) : status;
}

/* ---- counting ---------------------------------------------------------------------------------------------------- */

typedef struct search {
    const shoal_data *data;
    data_missing found;
    bool *gone; /* the rows that have any; may be NULL */
} search;

/* Not 0 when any value is not finite: most pieces have none, and this is all that is done with them. */
static bool any_odd(const shoal_data *data, const void *values, int64_t count)
{
    if (data->type == SHOAL_FLOAT32) {
        float sum = 0;
        for (int64_t i = 0; i < count; i++)
            sum += ((const float *)values)[i] * 0;
        return sum != 0;
    }
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += ((const double *)values)[i] * 0;
    return sum != 0;
}

static int search_rows(void *context, const void *rows, int64_t first, int64_t count)
{
    search *self = context;
    const int64_t columns = self->data->columns;
    if (!any_odd(self->data, rows, count * columns))
        return SHOAL_OK;
    for (int64_t i = 0; i < count; i++) {
        const int64_t before = self->found.values;
        for (int64_t k = 0; k < columns; k++) {
            if (!isnan(value_at(self->data, rows, i * columns + k)) || shoal_data_column_text(self->data, k))
                continue;
            if (self->found.values++ == 0) {
                self->found.first_row = first + i;
                self->found.first_column = k;
            }
            self->found.in_target += k == self->data->target;
        }
        self->found.rows += self->found.values > before;
        if (self->gone)
            self->gone[first + i] = self->found.values > before;
    }
    return SHOAL_OK;
}

int data_missing_count(data_missing *out, shoal_data *data)
{
    search self = {.data = data};
    int status = can_miss(data) ? for_rows(data, &self, search_rows) : SHOAL_OK;
    *out = self.found;
    return status;
}

int data_missing_refuse(const shoal_data *data, const data_missing *found, const char *advice)
{
    const char *name = shoal_data_column_name(data, found->first_column);
    if (!advice) /* a target is never filled in */
        advice = found->in_target > 0 ? "--missing drop leaves out such rows"
                                      : "--missing mean fills in the mean of the column, --missing drop leaves out "
                                        "such rows";
    return shoal_fail(
        SHOAL_INVALID, "%s: %" PRId64 " value%s missing, the first in row %" PRId64 ", column %" PRId64 "%s%.*s%s; %s",
        data->path, found->values, found->values == 1 ? " is" : "s are", found->first_row + 1, found->first_column + 1,
        name && *name ? " (" : "", DATA_SHOWN_BYTES, name ? name : "", name && *name ? ")" : "", advice);
}

/* ---- a copy that may be changed ---------------------------------------------------------------------------------- */

/* Rows in a buffer that is this data set's alone.  Generated rows are then like any others in memory. */
static int own_rows(shoal_data *data)
{
    if (data->values && data->values == data->buffer.bytes && !data->buffer.shared)
        return SHOAL_OK;
    const bool limited = data->format != &data_memory && !data->buffer.shared;
    const size_t bytes = (size_t)data->rows * data_row_bytes(data);
    data_buffer copy;
    data_buffer_init(&copy, data->path, limited ? (int64_t)data->buffer.memory_limit : 0);
    int status = data_buffer_reserve(&copy, bytes);
    const void *read = NULL;
    if (status == SHOAL_OK)
        status = shoal_data_read(&read, data, 0, data->rows, copy.bytes);
    if (status == SHOAL_OK) {
        if (read != copy.bytes)
            memcpy(copy.bytes, read, bytes);
        copy.size = bytes;
        status = shoal_data_check(data);
    }
    if (status < 0) {
        data_buffer_release(&copy);
        return status;
    }
    data_unmap(data);
    data_buffer_release(&data->buffer);
    data->buffer = copy;
    data->values = copy.bytes;
    if (data->format == &data_generated)
        data->format = &data_memory;
    return SHOAL_OK;
}

static int fail_in_store(const shoal_data *data)
{
    return shoal_fail(SHOAL_USAGE,
                      "%s: --missing needs rows that are here, and these lie in a store; fetch them first with shoal "
                      "store get",
                      data->path);
}

/* ---- filling in -------------------------------------------------------------------------------------------------- */

static void put_real(shoal_data *data, int64_t index, double value)
{
    if (data->type == SHOAL_FLOAT32)
        ((float *)(void *)data->buffer.bytes)[index] = (float)value;
    else
        ((double *)(void *)data->buffer.bytes)[index] = value;
}

static int fail_column(const shoal_data *data, int64_t column, const char *what)
{
    const char *name = shoal_data_column_name(data, column);
    return shoal_fail(SHOAL_INVALID, "%s: column %" PRId64 "%s%.*s%s %s", data->path, column + 1,
                      name && *name ? " (" : "", DATA_SHOWN_BYTES, name ? name : "", name && *name ? ")" : "", what);
}

int data_missing_fill(shoal_data **inout, const double *fill)
{
    shoal_data *data = *inout;
    data_missing found;
    if (data->format == &data_described)
        return fail_in_store(data);
    int status = data_missing_count(&found, data);
    if (status < 0 || found.values == 0)
        return status;
    if ((status = own_rows(data)) < 0)
        return status;
    for (int64_t i = 0; i < data->rows * data->columns; i++) {
        const int64_t column = i % data->columns;
        if (!isnan(value_at(data, data->values, i)) || shoal_data_column_text(data, column))
            continue;
        if (column == data->target)
            return fail_column(data, column,
                               "is the target and has missing values, which are never filled in; "
                               "--missing drop leaves out such rows");
        if (isnan(fill[column]))
            return fail_column(data, column, "has missing values, and nothing is known to fill in");
        put_real(data, i, fill[column]);
    }
    data->missing += found.values;
    return SHOAL_OK;
}

typedef struct averaging {
    const shoal_data *data;
    exact_mean *mean; /* of each column */
} averaging;

static int add_rows(void *context, const void *rows, int64_t first, int64_t count)
{
    averaging *self = context;
    const int64_t columns = self->data->columns;
    (void)first;
    for (int64_t i = 0; i < count; i++)
        for (int64_t k = 0; k < columns; k++) {
            const double value = value_at(self->data, rows, i * columns + k);
            if (isinf(value))
                return fail_column(self->data, k, "has an infinite value, so it has no mean");
            if (!isnan(value))
                exact_mean_add(&self->mean[k], value);
        }
    return SHOAL_OK;
}

/* Also of columns without missing values: rows that a model is applied to later may miss others. */
static int find_means(shoal_data *data)
{
    averaging self = {.data = data};
    int status = base_alloc(&self.mean, (size_t)data->columns, sizeof *self.mean, "means of columns");
    if (status == SHOAL_OK)
        status = base_alloc(&data->means, (size_t)data->columns, sizeof *data->means, "means of columns");
    if (status == SHOAL_OK)
        status = for_rows(data, &self, add_rows);
    for (int64_t k = 0; k < data->columns && status == SHOAL_OK; k++) {
        const bool none = k == data->target || shoal_data_column_text(data, k);
        data->means[k] = none ? NAN : exact_mean_value(&self.mean[k]);
        if (data->type == SHOAL_FLOAT32)
            data->means[k] = (float)data->means[k];
        if (!none && isnan(data->means[k]))
            status = fail_column(data, k, "has no value at all, so it has no mean; leave it out with --drop-column");
    }
    base_free(&self.mean);
    return status;
}

/* ---- words ------------------------------------------------------------------------------------------------------- */

int data_words_renumber(shoal_data *data, double *values, int64_t count, int64_t stride)
{
    int64_t kept = 0, *number = NULL;
    if (!data->words)
        return SHOAL_OK;
    int status = base_alloc(&number, (size_t)data->words_count, sizeof *number, "words");
    if (status < 0)
        return status;
    for (int64_t i = 0; i < count; i++)
        if (!isnan(values[i * stride]))
            number[(int64_t)values[i * stride]] = 1;
    for (int64_t i = 0; i < data->words_count; i++) {
        char *word = data->words[i];
        data->words[i] = NULL;
        if (!number[i]) {
            base_free(&word);
            continue;
        }
        number[i] = kept;
        data->words[kept++] = word;
    }
    data->words_count = kept;
    for (int64_t i = 0; i < count; i++)
        if (!isnan(values[i * stride]))
            values[i * stride] = (double)number[(int64_t)values[i * stride]];
    base_free(&number);
    return SHOAL_OK;
}

/* ---- leaving out rows -------------------------------------------------------------------------------------------- */

static int note_gone(shoal_data *data, const bool *gone)
{
    const int64_t all = data->gone ? data->source_rows : data->rows;
    int64_t at = 0;
    if (!data->gone) {
        int status = base_alloc(&data->gone, (size_t)all, sizeof *data->gone, "rows");
        if (status < 0)
            return status;
        data->source_rows = all;
    }
    for (int64_t i = 0; i < all; i++)
        if (!data->gone[i])
            data->gone[i] = gone[at++];
    return SHOAL_OK;
}

int data_missing_drop(shoal_data **inout, const bool *gone)
{
    shoal_data *data = *inout;
    const size_t row_bytes = data_row_bytes(data);
    int64_t kept = 0;
    for (int64_t i = 0; i < data->rows; i++)
        kept += !gone[i];
    if (kept == data->rows)
        return SHOAL_OK;
    if (kept == 0)
        return shoal_fail(SHOAL_INVALID, "%s: a value is missing in every row, so --missing drop leaves none",
                          data->path);
    int status = own_rows(data);
    if (status == SHOAL_OK)
        status = note_gone(data, gone);
    if (status < 0)
        return status;
    kept = 0;
    for (int64_t i = 0; i < data->rows; i++)
        if (!gone[i])
            memmove(data->buffer.bytes + (size_t)kept++ * row_bytes, data->values + (size_t)i * row_bytes, row_bytes);
    data->rows = kept;
    data->buffer.size = (size_t)kept * row_bytes;
    data_buffer_trim(&data->buffer);
    data->values = data->buffer.bytes;
    /* Only text has words, and its values are float64. */
    return data->target < 0 ? SHOAL_OK
                            : data_words_renumber(data, (double *)(void *)data->buffer.bytes + data->target, data->rows,
                                                  data->columns);
}

static int drop_rows(shoal_data **data)
{
    search self = {.data = *data};
    int status = base_alloc(&self.gone, (size_t)(*data)->rows, sizeof *self.gone, "rows");
    if (status == SHOAL_OK)
        status = for_rows(*data, &self, search_rows);
    if (status == SHOAL_OK)
        status = data_missing_drop(data, self.gone);
    if (status == SHOAL_OK)
        (*data)->missing += self.found.values;
    base_free(&self.gone);
    return status;
}

int data_missing_apply(shoal_data **data, const shoal_data_options *options)
{
    const bool changes = options->missing == SHOAL_MISSING_MEAN || options->missing == SHOAL_MISSING_DROP;
    if (changes && (*data)->format == &data_described)
        return fail_in_store(*data);
    if (!changes || !(*data)->values)
        return SHOAL_OK;
    if (options->missing == SHOAL_MISSING_DROP)
        return can_miss(*data) ? drop_rows(data) : SHOAL_OK;
    int status = find_means(*data);
    return status == SHOAL_OK ? data_missing_fill(data, (*data)->means) : status;
}
