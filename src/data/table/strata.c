/* The classes of rows.  See strata.h. */
#include "strata.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "base/text.h"
#include "data/data_address.h"
#include "data_columns.h"
#include "data_lines.h"
#include "data_words.h"

enum { CLASSES_MOST = 4096 };

/* ---- shares ------------------------------------------------------------------------------------------------------ */

/* What a class lacks when its share is rounded down. */
typedef struct lack {
    int64_t group;
    uint64_t remainder, tie;
} lack;

static int compare_lacks(const void *a, const void *b)
{
    const lack *x = a, *y = b;
    if (x->remainder != y->remainder)
        return x->remainder > y->remainder ? -1 : 1;
    if (x->tie != y->tie)
        return x->tie < y->tie ? -1 : 1;
    return x->group < y->group ? -1 : x->group > y->group;
}

int data_strata_share(int64_t *out, const int64_t *rows, int64_t count, int64_t wanted, uint64_t seed)
{
    lack *lacks = NULL;
    int64_t all = 0, left = wanted;
    int status = base_alloc(&lacks, (size_t)count, sizeof *lacks, "shares of classes");
    if (status < 0)
        return status;
    for (int64_t i = 0; i < count; i++)
        all += rows[i];
    for (int64_t i = 0; i < count; i++) {
        const unsigned __int128 share = (unsigned __int128)rows[i] * (uint64_t)wanted;
        out[i] = (int64_t)(share / (uint64_t)all);
        lacks[i] = (lack){i, (uint64_t)(share % (uint64_t)all),
                          base_random_u64(seed, BASE_FOR_CLASSES, (uint64_t)i, (uint32_t)0)};
        left -= out[i];
    }
    qsort(lacks, (size_t)count, sizeof *lacks, compare_lacks);
    for (int64_t i = 0; i < left; i++) /* fewer than there are classes with a remainder */
        out[lacks[i].group]++;
    base_free(&lacks);
    return SHOAL_OK;
}

/* ---- classes ----------------------------------------------------------------------------------------------------- */

/* Where a value is in the ascending list, or belongs. */
static int64_t find_value(const data_strata *strata, double value)
{
    int64_t low = 0, high = strata->count;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (strata->value[middle] < value)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int fail_missing_class(const data_strata *strata, int64_t row, int64_t count)
{
    return shoal_fail(SHOAL_INVALID,
                      "--stratify: %" PRId64 " value%s of %s %s missing, the first in row %" PRId64
                      "; a row without a class can't be stratified",
                      count, base_plural(count), strata->source, count == 1 ? "is" : "are", row + 1);
}

/* Goes through a column of `labels` twice: for the list of values, and then for the place of each in it. */
typedef struct column_walk {
    data_strata *strata;
    shoal_data *labels;
    int64_t column;
    bool as_row; /* one row has the values side by side */
    void *scratch;
    int64_t missing, first_missing;
} column_walk;

static int note_value(column_walk *walk, int64_t row, double value)
{
    data_strata *strata = walk->strata;
    if (fabs(value) >= 0x1p53 && !isinf(value)) /* its neighbours would be the same double */
        return shoal_fail(SHOAL_INVALID,
                          "--stratify: row %" PRId64
                          " of %s has a class of 2^53 or more, where different classes can't "
                          "be told apart; number the classes from 0",
                          row + 1, strata->source);
    if (isnan(value)) {
        walk->first_missing = walk->missing++ == 0 ? row : walk->first_missing;
        return SHOAL_OK;
    }
    const int64_t place = find_value(strata, value);
    if (place < strata->count && strata->value[place] == value)
        return SHOAL_OK;
    if (strata->count == CLASSES_MOST)
        return shoal_fail(SHOAL_INVALID, "--stratify: %s has more than %d different values; are they classes?",
                          strata->source, CLASSES_MOST);
    memmove(strata->value + place + 1, strata->value + place, (size_t)(strata->count - place) * sizeof *strata->value);
    strata->value[place] = value;
    strata->count++;
    return SHOAL_OK;
}

static int note_class(column_walk *walk, int64_t row, double value)
{
    const int64_t group = find_value(walk->strata, value);
    ((int32_t *)(void *)walk->strata->group.bytes)[row] = (int32_t)group;
    walk->strata->rows[group]++;
    return SHOAL_OK;
}

static int walk_column(column_walk *walk, int (*visit)(column_walk *walk, int64_t row, double value))
{
    const shoal_type type = shoal_data_type(walk->labels);
    const int64_t rows = shoal_data_rows(walk->labels);
    const void *read;
    double value;
    int status = SHOAL_OK;
    for (int64_t row = 0; row < rows && status == SHOAL_OK; row++) {
        status = shoal_data_read(&read, walk->labels, row, 1, walk->scratch);
        const int64_t end = walk->as_row ? shoal_data_columns(walk->labels) : walk->column + 1;
        for (int64_t i = walk->column; i < end && status == SHOAL_OK; i++) {
            shoal_convert_float64(&value, (const char *)read + (size_t)i * shoal_type_size(type), type, 1);
            status = visit(walk, row + i - walk->column, value);
        }
    }
    return status == SHOAL_OK ? shoal_data_check(walk->labels) : status;
}

static int read_classes(data_strata *strata, shoal_data *labels, int64_t column, int64_t rows)
{
    column_walk walk = {
        .strata = strata, .labels = labels, .column = column, .as_row = shoal_data_rows(labels) != rows};
    size_t bytes;
    int status = base_alloc(&strata->value, CLASSES_MOST, sizeof *strata->value, "classes");
    if (status == SHOAL_OK)
        status = base_alloc(&strata->rows, CLASSES_MOST, sizeof *strata->rows, "classes");
    if (status == SHOAL_OK && !shoal_data_is_resident(labels))
        status = base_alloc(&walk.scratch, 1, data_row_bytes(labels), "a row");
    if (status == SHOAL_OK && !base_multiply(&bytes, (size_t)rows, sizeof(int32_t)))
        status = shoal_fail(SHOAL_MEMORY, "%s: too many rows", strata->source);
    if (status == SHOAL_OK)
        status = data_buffer_reserve(&strata->group, bytes);
    if (status == SHOAL_OK)
        status = walk_column(&walk, note_value);
    if (status == SHOAL_OK && walk.missing > 0)
        status = fail_missing_class(strata, walk.first_missing, walk.missing);
    if (status == SHOAL_OK)
        status = walk_column(&walk, note_class);
    base_free(&walk.scratch);
    strata->words = labels->words;
    strata->words_count = labels->words_count;
    labels->words = NULL;
    return status;
}

/* ---- where they come from ---------------------------------------------------------------------------------------- */

static int name_column(data_strata *strata, const shoal_data *data, int64_t column)
{
    const char *name = shoal_data_column_name(data, column);
    int status = name && *name ? base_format(&strata->source, "column %.*s of %s", DATA_SHOWN_BYTES, name, data->path)
                               : base_format(&strata->source, "column %" PRId64 " of %s", column + 1, data->path);
    if (status == SHOAL_OK)
        base_text_clean(strata->source);
    return status;
}

/* Of text the column is read again, where it may hold words; the first column goes along, so that no other is read. */
static int read_text_column(data_strata *strata, const shoal_data *data, const char *stratify,
                            const shoal_data_options *options)
{
    const shoal_data_options wanted = {.header = options->header,
                                       .keep_columns = "1",
                                       .target = stratify,
                                       .need_target = true,
                                       .missing = SHOAL_MISSING_KEEP,
                                       .keep_text = true,
                                       .memory = options->memory};
    shoal_data *labels = NULL;
    int status = data_lines_values(&labels, data, &wanted);
    if (status == SHOAL_OK)
        status = read_classes(strata, labels, shoal_data_target(labels), shoal_data_rows(data));
    shoal_data_free(&labels);
    return status;
}

static int check_class_file(const shoal_data *labels, const shoal_data *data)
{
    const int64_t rows = shoal_data_rows(data), has = shoal_data_rows(labels), columns = shoal_data_columns(labels);
    if ((has == rows && columns == 1) || (has == 1 && columns == rows))
        return SHOAL_OK;
    return shoal_fail(SHOAL_INVALID,
                      "%s: %" PRId64 " row%s and %" PRId64 " column%s, but --stratify needs one value for each of "
                      "the %" PRId64 " row%s of %s",
                      labels->path, has, base_plural(has), columns, base_plural(columns), rows, base_plural(rows),
                      data->path);
}

static int read_class_file(data_strata *strata, const shoal_data *data, const char *path,
                           const shoal_data_options *options)
{
    const shoal_data_options wanted = {.target = "1", .missing = SHOAL_MISSING_KEEP, .memory = options->memory};
    shoal_data *labels = NULL;
    int status = base_copy_text(&strata->source, path);
    if (status == SHOAL_OK)
        status = shoal_data_open(&labels, path, &wanted);
    if (status == SHOAL_OK)
        status = check_class_file(labels, data);
    if (status == SHOAL_OK)
        status = read_classes(strata, labels, 0, shoal_data_rows(data));
    shoal_data_free(&labels);
    return status;
}

int data_strata_open(data_strata *out, shoal_data *data, const char *stratify, const shoal_data_options *options)
{
    const data_table_columns table = data_columns_of(data);
    int64_t column;
    *out = (data_strata){0};
    data_buffer_init(&out->group, data->path, options->memory);
    int status = data_columns_find(&column, &table, "--stratify", stratify, data_address_exists(stratify));
    if (status == SHOAL_OK && column < 0)
        return read_class_file(out, data, stratify, options);
    if (status == SHOAL_OK)
        status = name_column(out, data, column);
    if (status == SHOAL_OK && data->lines)
        return read_text_column(out, data, stratify, options);
    return status == SHOAL_OK ? read_classes(out, data, column, shoal_data_rows(data)) : status;
}

void data_strata_close(data_strata *strata)
{
    data_words_free(&strata->words, strata->words_count);
    data_buffer_release(&strata->group);
    base_free(&strata->source);
    base_free(&strata->value);
    base_free(&strata->rows);
}

const char *data_strata_name(char room[DATA_NUMBER_CHARS], const data_strata *strata, int64_t group)
{
    const double value = strata->value[group];
    if (strata->words && value < (double)strata->words_count)
        return strata->words[(int64_t)value];
    data_number_print(room, &strata->value[group], SHOAL_FLOAT64, 0);
    return room;
}
