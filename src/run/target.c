/* What is known of each row.  See target.h. */
#include "target.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "data/data_address.h"
#include "data/data_internal.h"
#include "data/table/data_missing.h"
#include "data/table/data_select.h"

/* Rows are copied this many bytes at a time. */
enum { AT_ONCE_BYTES = 1 << 20 };

/* ---- a type that holds both -------------------------------------------------------------------------------------- */

/* All whole numbers from `least` to `most` are values of the type; between them others are, too, if it has
 * fractions. */
typedef struct type_range {
    double least, most;
    bool fractions;
} type_range;

static const type_range ranges[SHOAL_TYPES] = {
    [SHOAL_FLOAT32] = {-0x1p24, 0x1p24, true},
    [SHOAL_FLOAT64] = {-0x1p53, 0x1p53, true},
    [SHOAL_INT8] = {-0x1p7, 0x1p7 - 1, false},
    [SHOAL_INT16] = {-0x1p15, 0x1p15 - 1, false},
    [SHOAL_INT32] = {-0x1p31, 0x1p31 - 1, false},
    [SHOAL_INT64] = {-0x1p63, 0x1p63, false},
    [SHOAL_UINT8] = {0, 0x1p8 - 1, false},
    [SHOAL_UINT16] = {0, 0x1p16 - 1, false},
    [SHOAL_UINT32] = {0, 0x1p32 - 1, false},
    [SHOAL_UINT64] = {0, 0x1p64, false},
    [SHOAL_BOOL] = {0, 1, false},
};

/* 2^63 and 2^64 are the first that are not there. */
static bool holds_value(shoal_type type, double value)
{
    const type_range *range = &ranges[type];
    if (type == SHOAL_FLOAT64)
        return true;
    if (type == SHOAL_FLOAT32)
        return fabs(value) <= 0x1.fffffep127 && (double)(float)value == value;
    bool open = type == SHOAL_INT64 || type == SHOAL_UINT64;
    return value == floor(value) && value >= range->least && (open ? value < range->most : value <= range->most);
}

bool run_type_holds(shoal_type type, shoal_type other)
{
    return type == other || (ranges[type].least <= ranges[other].least && ranges[type].most >= ranges[other].most &&
                             (ranges[type].fractions || !ranges[other].fractions));
}

static bool holds_all(shoal_type type, const double *values, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (!holds_value(type, values[i]))
            return false;
    return true;
}

static int choose_type(shoal_type *out, shoal_type data, const double *values, int64_t count)
{
    const shoal_type wider[] = {data,        SHOAL_UINT8,  SHOAL_INT16, SHOAL_UINT16, SHOAL_FLOAT32,
                                SHOAL_INT32, SHOAL_UINT32, SHOAL_INT64, SHOAL_FLOAT64};
    for (size_t i = 0; i < sizeof wider / sizeof *wider; i++)
        if (run_type_holds(wider[i], data) && holds_all(wider[i], values, count)) {
            *out = wider[i];
            return SHOAL_OK;
        }
    return SHOAL_INVALID;
}

/* ---- rows with their target -------------------------------------------------------------------------------------- */

void run_put_value(void *at, shoal_type type, double value)
{
    switch (type) {
    case SHOAL_FLOAT32: *(float *)at = (float)value; break;
    case SHOAL_FLOAT64: *(double *)at = value; break;
    case SHOAL_INT8: *(int8_t *)at = (int8_t)value; break;
    case SHOAL_INT16: *(int16_t *)at = (int16_t)value; break;
    case SHOAL_INT32: *(int32_t *)at = (int32_t)value; break;
    case SHOAL_INT64: *(int64_t *)at = (int64_t)value; break;
    case SHOAL_UINT8:
    case SHOAL_BOOL: *(uint8_t *)at = (uint8_t)value; break;
    case SHOAL_UINT16: *(uint16_t *)at = (uint16_t)value; break;
    case SHOAL_UINT32: *(uint32_t *)at = (uint32_t)value; break;
    case SHOAL_UINT64: *(uint64_t *)at = (uint64_t)value; break;
    case SHOAL_TYPES: SHOAL_BUG("a type that is none");
    }
}

/* What a file says of the rows. */
typedef struct known {
    const char *path;
    shoal_data *file;
    double *values; /* one for each row of the data */
} known;

/* Where joined rows are made. */
typedef struct joining {
    shoal_data *data, *joined;
    const double *target;
    void *scratch;  /* for reading `at_once` rows */
    double *values; /* one row of them, when the type changes */
    int64_t at_once;
} joining;

static void join_row(const joining *self, int64_t row, const char *from)
{
    const int64_t columns = shoal_data_columns(self->data);
    const shoal_type type = self->joined->type;
    const size_t size = shoal_type_size(type);
    unsigned char *to = self->joined->buffer.bytes + (size_t)row * data_row_bytes(self->joined);
    if (type == shoal_data_type(self->data)) {
        memcpy(to, from, (size_t)columns * size);
    } else {
        shoal_convert_float64(self->values, from, shoal_data_type(self->data), columns);
        for (int64_t k = 0; k < columns; k++)
            run_put_value(to + (size_t)k * size, type, self->values[k]);
    }
    run_put_value(to + (size_t)columns * size, type, self->target[row]);
}

static int join_rows(joining *self)
{
    const int64_t rows = shoal_data_rows(self->data), columns = shoal_data_columns(self->data);
    const size_t row_bytes = data_row_bytes(self->data), bytes = (size_t)rows * data_row_bytes(self->joined);
    self->at_once = AT_ONCE_BYTES / ((int64_t)row_bytes + 1) + 1;
    int status = data_buffer_reserve(&self->joined->buffer, bytes);
    if (status == SHOAL_OK)
        status = base_alloc(&self->scratch, (size_t)self->at_once, row_bytes, "rows");
    if (status == SHOAL_OK)
        status = base_alloc(&self->values, (size_t)columns, sizeof *self->values, "a row");
    for (int64_t first = 0; status == SHOAL_OK && first < rows; first += self->at_once) {
        int64_t count = rows - first < self->at_once ? rows - first : self->at_once;
        const void *read = NULL;
        status = shoal_data_read(&read, self->data, first, count, self->scratch);
        for (int64_t i = 0; status == SHOAL_OK && i < count; i++)
            join_row(self, first + i, (const char *)read + (size_t)i * row_bytes);
    }
    self->joined->buffer.size = bytes;
    self->joined->values = self->joined->buffer.bytes;
    return status == SHOAL_OK ? shoal_data_check(self->data) : status;
}

/* The names of the columns, and "target" for the new one. */
static int join_names(shoal_data *joined, const shoal_data *data)
{
    static const char last[] = "target";
    size_t bytes = 0;
    if (!data->names)
        return SHOAL_OK;
    for (int64_t i = 0; i < data->columns; i++)
        bytes += strlen(shoal_data_column_name(data, i)) + 1;
    int status = base_alloc(&joined->names, bytes + sizeof last, 1, "names of columns");
    if (status == SHOAL_OK)
        status = base_alloc(&joined->name_offsets, (size_t)joined->columns, sizeof *joined->name_offsets,
                            "names of columns");
    size_t at = 0;
    for (int64_t i = 0; i < joined->columns && status == SHOAL_OK; i++) {
        const char *name = i < data->columns ? shoal_data_column_name(data, i) : last;
        joined->name_offsets[i] = at;
        strcpy(joined->names + at, name);
        at += strlen(name) + 1;
    }
    return status;
}

static int join_means(shoal_data *joined, const shoal_data *data)
{
    if (!data->means)
        return SHOAL_OK;
    int status = base_alloc(&joined->means, (size_t)joined->columns, sizeof *joined->means, "means of columns");
    if (status < 0)
        return status;
    memcpy(joined->means, data->means, (size_t)data->columns * sizeof *data->means);
    joined->means[data->columns] = NAN;
    return SHOAL_OK;
}

/* The columns of text, of which the target is none. */
static int join_text(shoal_data *joined, shoal_data *data)
{
    if (!data->not_numbers)
        return SHOAL_OK;
    int status = base_alloc(&joined->not_numbers, (size_t)joined->columns, sizeof *joined->not_numbers, "columns");
    if (status < 0)
        return status;
    memcpy(joined->not_numbers, data->not_numbers, (size_t)data->columns * sizeof *data->not_numbers);
    base_free(&data->not_numbers);
    return SHOAL_OK;
}

/* What was known of the data beside their values moves to the joined ones. */
static void move_facts(shoal_data *joined, shoal_data *data, shoal_data *file)
{
    joined->format = data->format == &data_generated ? &data_memory : data->format;
    joined->has_header = data->has_header;
    joined->missing = data->missing;
    joined->source_rows = data->source_rows;
    joined->skipped = data->skipped;
    joined->gone = data->gone;
    data->gone = NULL;
    joined->words = file->words;
    joined->words_count = file->words_count;
    file->words = NULL;
    joined->target = joined->columns - 1;
    joined->label = data->label;
    data_shape_copy(joined, data);
}

static int join(shoal_outcome *outcome, const known *from)
{
    joining self = {.data = outcome->data, .target = from->values};
    shoal_type type;
    if (choose_type(&type, outcome->type, from->values, outcome->rows) < 0)
        return shoal_fail(SHOAL_INVALID, "%s: no type of numbers holds this target and the %s of %s exactly",
                          from->path, shoal_type_name(outcome->type), outcome->data_name);
    int status = data_new(&self.joined, outcome->data_name, outcome->request->reading.memory);
    if (status == SHOAL_OK)
        status = data_set_shape(self.joined, (uint64_t)outcome->rows, (uint64_t)outcome->columns + 1, type);
    if (status == SHOAL_OK)
        status = join_rows(&self);
    if (status == SHOAL_OK)
        status = join_names(self.joined, outcome->data);
    if (status == SHOAL_OK)
        status = join_means(self.joined, outcome->data);
    if (status == SHOAL_OK)
        status = join_text(self.joined, outcome->data);
    if (status == SHOAL_OK)
        status = base_format(&self.joined->detail, "%s; the target is from %s",
                             outcome->data->detail ? outcome->data->detail : "rows", from->path);
    if (status == SHOAL_OK) {
        move_facts(self.joined, outcome->data, from->file);
        if (!outcome->data_lent)
            shoal_data_free(&outcome->data);
        outcome->data = self.joined;
        outcome->data_lent = false;
        outcome->columns++;
        outcome->type = type;
        self.joined = NULL;
    }
    shoal_data_free(&self.joined);
    base_free(&self.scratch);
    base_free(&self.values);
    return status;
}

/* ---- the file ---------------------------------------------------------------------------------------------------- */

static int64_t source_rows(const shoal_data *data)
{
    return data->gone ? data->source_rows : data->rows;
}

/* One value a row, as a column or as a row. */
static bool fits(const shoal_data *file, int64_t needed)
{
    return (file->columns == 1 && file->rows == needed) || (file->rows == 1 && file->columns == needed);
}

/* The number of rows tells better than any rule whether the first line is a name. */
static int open_known(known *out, int64_t needed, bool again)
{
    shoal_data_options options = {.target = "1", .missing = SHOAL_MISSING_KEEP};
    int status = shoal_data_open(&out->file, out->path, &options);
    const bool text = status == SHOAL_OK && out->file->format == &data_text && out->file->columns == 1 && again;
    if (text && out->file->has_header && out->file->rows + 1 == needed)
        options.header = SHOAL_HEADER_NO;
    else if (text && !out->file->has_header && out->file->rows == needed + 1)
        options.header = SHOAL_HEADER_YES;
    if (options.header == SHOAL_HEADER_AUTO)
        return status;
    shoal_data_free(&out->file);
    return shoal_data_open(&out->file, out->path, &options);
}

/* What the caller has in memory, as if it were a file.  The words are copied, since the rows will own them. */
static int open_given(known *out, shoal_data *given)
{
    int status = data_alias(&out->file, given);
    if (status == SHOAL_OK && given->words)
        status = shoal_data_name_words(out->file, (const char *const *)given->words, given->words_count);
    return status;
}

/* Values of the caller that stand for words are used as places in a list. */
static int check_word_numbers(const known *from, int64_t count)
{
    for (int64_t i = 0; i < count && from->file->words; i++)
        if (!(from->values[i] >= 0 && from->values[i] < (double)from->file->words_count) ||
            from->values[i] != floor(from->values[i]))
            return shoal_fail(SHOAL_INVALID,
                              "%s: row %" PRId64 " is %g, which is not the number of one of %" PRId64 " words",
                              from->path, i + 1, from->values[i], from->file->words_count);
    return SHOAL_OK;
}

static int read_known(known *out, const shoal_outcome *outcome)
{
    const int64_t needed = source_rows(outcome->data);
    shoal_data *given = outcome->request->target;
    const void *read = NULL;
    void *scratch = NULL;
    int status = given ? open_given(out, given) : open_known(out, needed, !run_is_read_once(out->path));
    if (status < 0)
        return status;
    if (!fits(out->file, needed))
        return shoal_fail(SHOAL_INVALID,
                          "%s: %" PRId64 " row%s and %" PRId64
                          " column%s, but --target needs one value for each of the "
                          "%" PRId64 " row%s of %s",
                          out->path, out->file->rows, base_plural(out->file->rows), out->file->columns,
                          base_plural(out->file->columns), needed, base_plural(needed), outcome->data_name);
    status = base_alloc(&out->values, (size_t)needed, sizeof *out->values, out->path);
    if (status == SHOAL_OK && !shoal_data_is_resident(out->file))
        status = base_alloc(&scratch, (size_t)needed, shoal_type_size(out->file->type), out->path);
    if (status == SHOAL_OK)
        status = shoal_data_read(&read, out->file, 0, out->file->rows, scratch);
    if (status == SHOAL_OK)
        shoal_convert_float64(out->values, read, out->file->type, needed);
    base_free(&scratch);
    if (status == SHOAL_OK)
        status = shoal_data_check(out->file);
    for (int64_t i = 0; i < needed && status == SHOAL_OK; i++)
        if (isinf(out->values[i]))
            status =
                shoal_fail(SHOAL_INVALID, "%s: row %" PRId64 " is infinite, not a finite number", out->path, i + 1);
    return status == SHOAL_OK && given ? check_word_numbers(out, needed) : status;
}

/* Leaves out what belongs to rows that are gone. */
static void follow_rows(double *values, const bool *gone, int64_t count)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < count; i++)
        if (!gone[i])
            values[kept++] = values[i];
}

static int fail_unknown_values(const known *from, int64_t first, int64_t count, bool mean)
{
    return shoal_fail(SHOAL_INVALID,
                      "%s: %" PRId64 " value%s missing, the first in row %" PRId64 "; %s--missing drop "
                      "leaves out such rows",
                      from->path, count, count == 1 ? " is" : "s are", first + 1,
                      mean ? "a target is never filled in, and " : "");
}

/* Rows of which nothing is known. */
static int drop_unknown(shoal_outcome *outcome, known *from)
{
    const int missing = outcome->request->reading.missing;
    int64_t count = 0, first = 0;
    bool *gone = NULL;
    for (int64_t i = outcome->rows - 1; i >= 0; i--)
        if (isnan(from->values[i])) {
            count++;
            first = i;
        }
    if (count == 0)
        return SHOAL_OK;
    if (missing != SHOAL_MISSING_DROP)
        return fail_unknown_values(from, first, count, missing == SHOAL_MISSING_MEAN);
    int status = base_alloc(&gone, (size_t)outcome->rows, sizeof *gone, "rows");
    for (int64_t i = 0; i < outcome->rows && status == SHOAL_OK; i++)
        gone[i] = isnan(from->values[i]);
    if (status == SHOAL_OK)
        status = data_missing_drop(&outcome->data, gone);
    if (status == SHOAL_OK) {
        follow_rows(from->values, gone, outcome->rows);
        outcome->rows = outcome->data->rows;
        outcome->data->missing += count;
    }
    base_free(&gone);
    return status;
}

/* Where the label is in the ascending list, or belongs. */
static int find_label(const double *list, int count, double label)
{
    int low = 0;
    while (low < count) {
        int middle = low + (count - low) / 2;
        if (list[middle] < label)
            low = middle + 1;
        else
            count = middle;
    }
    return low;
}

/* The learner checks the same, but would speak of the last column, which is not in the data that the caller knows. */
static int check_classes(const double *labels, int64_t count, int most, const char *path)
{
    double *seen = NULL;
    int classes = 0, status = base_alloc(&seen, (size_t)most, sizeof *seen, "labels");
    for (int64_t i = 0; i < count && status == SHOAL_OK; i++) {
        int place = find_label(seen, classes, labels[i]);
        if (place < classes && seen[place] == labels[i])
            continue;
        if (classes == most) {
            status = shoal_fail(SHOAL_INVALID, "%s: more than %d different values; are they classes?", path, most);
            break;
        }
        memmove(seen + place + 1, seen + place, (size_t)(classes++ - place) * sizeof *seen);
        seen[place] = labels[i];
    }
    if (status == SHOAL_OK && classes < 2)
        status =
            shoal_fail(SHOAL_INVALID, "%s: the value is the same in every row; at least two classes are needed", path);
    base_free(&seen);
    return status;
}

static int join_file(shoal_outcome *outcome, const char *path)
{
    known from = {.path = path};
    outcome->read_once |= !outcome->request->target && run_is_read_once(path);
    int status = read_known(&from, outcome);
    if (status == SHOAL_OK && outcome->data->gone)
        follow_rows(from.values, outcome->data->gone, outcome->data->source_rows);
    if (status == SHOAL_OK)
        status = drop_unknown(outcome, &from);
    if (status == SHOAL_OK)
        status = data_words_renumber(from.file, from.values, outcome->rows, 1);
    if (status == SHOAL_OK && outcome->face->classes_most > 0 && run_is_learning(outcome) && !outcome->is_held)
        status = check_classes(from.values, outcome->rows, outcome->face->classes_most, path);
    if (status == SHOAL_OK)
        status = join(outcome, &from);
    shoal_data_free(&from.file);
    base_free(&from.values);
    return status;
}

/* ---- a column or a file ------------------------------------------------------------------------------------------ */

static bool is_there(const char *path)
{
    return strcmp(path, "-") == 0 || data_address_exists(path);
}

const char *run_target_file(const char *target)
{
    return target && is_there(target) ? target : NULL;
}

static const char *target_of(const shoal_outcome *outcome)
{
    const char *given = outcome->request->inputs.target;
    if (outcome->columns_used.model) /* which is applied, to rows that may hold its target still */
        return given;
    if (!run_is_learning(outcome) || outcome->face->classes_most == 0 || outcome->request->target)
        return NULL;
    return given ? given : "";
}

void run_target_read(shoal_data_options *reading, const shoal_outcome *outcome)
{
    const char *text = target_of(outcome);
    if (!text)
        return;
    reading->target = text;
    reading->need_target = outcome->request->inputs.target_is_column || !is_there(text);
}

static void tell_that_column_counts(const shoal_outcome *outcome, const char *text)
{
    char line[320];
    snprintf(line, sizeof line, "--target %s is a column of %s; to use the file of that name, write ./%s", text,
             outcome->data_name, text);
    run_warn(outcome, line);
}

int run_target_settle(shoal_outcome *outcome)
{
    const shoal_request *request = outcome->request;
    const char *text = request->target ? "the target" : target_of(outcome);
    if (!text || !*text)
        return SHOAL_OK;
    if (!request->target && shoal_data_target(outcome->data) >= 0) {
        if (is_there(text))
            tell_that_column_counts(outcome, text);
        return SHOAL_OK;
    }
    if (!request->target && request->rows)
        return shoal_fail(SHOAL_USAGE, "--target %s: rows in memory have their target in one of their columns", text);
    if (request->data && run_is_in_store(request->data))
        return shoal_fail(SHOAL_USAGE,
                          "--target %s: the rows of %s stay in their store, so the target must be one of its columns; "
                          "or fetch it first with shoal store get",
                          text, request->data);
    outcome->columns_used.target_file = true;
    return join_file(outcome, text);
}
