/* Labels from a file of their own.  See labels.h. */
#include "labels.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "data/data_internal.h"
#include "data/read_whole.h"

/* Rows are copied so many at a time. */
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

static bool holds_type(shoal_type type, shoal_type other)
{
    return type == other || (ranges[type].least <= ranges[other].least && ranges[type].most >= ranges[other].most &&
                             (ranges[type].fractions || !ranges[other].fractions));
}

static bool holds_all(shoal_type type, const double *labels, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (!holds_value(type, labels[i]))
            return false;
    return true;
}

static int choose_type(shoal_type *out, shoal_type data, const double *labels, int64_t count)
{
    const shoal_type wider[] = {data,        SHOAL_UINT8,  SHOAL_INT16, SHOAL_UINT16, SHOAL_FLOAT32,
                                SHOAL_INT32, SHOAL_UINT32, SHOAL_INT64, SHOAL_FLOAT64};
    for (size_t i = 0; i < sizeof wider / sizeof *wider; i++)
        if (holds_type(wider[i], data) && holds_all(wider[i], labels, count)) {
            *out = wider[i];
            return SHOAL_OK;
        }
    return SHOAL_INVALID;
}

/* ---- rows with their labels -------------------------------------------------------------------------------------- */

static void put_value(void *at, shoal_type type, double value)
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

/* Where joined rows are made. */
typedef struct joining {
    shoal_data *data;
    const double *labels;
    shoal_type type;
    char *rows;     /* the whole */
    void *scratch;  /* for reading `at_once` rows */
    double *values; /* one row of them, when the type changes */
    int64_t at_once;
} joining;

static void join_row(const joining *self, int64_t row, const char *from)
{
    int64_t columns = shoal_data_columns(self->data);
    shoal_type type = shoal_data_type(self->data);
    size_t size = shoal_type_size(self->type);
    char *to = self->rows + (size_t)row * (size_t)(columns + 1) * size;
    if (type == self->type) {
        memcpy(to, from, (size_t)columns * size);
    } else {
        shoal_convert_float64(self->values, from, type, columns);
        for (int64_t k = 0; k < columns; k++)
            put_value(to + (size_t)k * size, self->type, self->values[k]);
    }
    put_value(to + (size_t)columns * size, self->type, self->labels[row]);
}

static int join_rows(joining *self, const char *path)
{
    int64_t rows = shoal_data_rows(self->data), columns = shoal_data_columns(self->data);
    size_t row_bytes = (size_t)columns * shoal_type_size(shoal_data_type(self->data)), joined = 0;
    self->at_once = AT_ONCE_BYTES / ((int64_t)row_bytes + 1) + 1;
    if (!base_multiply(&joined, (size_t)columns + 1, shoal_type_size(self->type)))
        return shoal_fail(SHOAL_MEMORY, "%s: the rows are too long", path);
    int status = base_alloc_unset(&self->rows, (size_t)rows, joined, "the rows with their labels");
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
    return status == SHOAL_OK ? shoal_data_check(self->data) : status;
}

static int read_labels(double **out, const shoal_outcome *outcome, const char *path)
{
    int64_t rows = 0, columns = 0;
    int status = data_read_float64(out, &rows, &columns, path);
    if (status == SHOAL_OK && !(columns == 1 && rows == outcome->rows) && !(rows == 1 && columns == outcome->rows))
        status =
            shoal_fail(SHOAL_INVALID,
                       "%s: %" PRId64 " rows and %" PRId64 " columns, but --labels needs one value for each of the "
                       "%" PRId64 " rows of %s",
                       path, rows, columns, outcome->rows, outcome->data_name);
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
            status =
                shoal_fail(SHOAL_INVALID, "%s: more than %d different labels; are they those of classes?", path, most);
            break;
        }
        memmove(seen + place + 1, seen + place, (size_t)(classes++ - place) * sizeof *seen);
        seen[place] = labels[i];
    }
    if (status == SHOAL_OK && classes < 2)
        status = shoal_fail(SHOAL_INVALID, "%s: every label is %.10g; two classes are the least", path, labels[0]);
    base_free(&seen);
    return status;
}

int run_labels_join(shoal_outcome *outcome, const char *path)
{
    joining self = {.data = outcome->data};
    shoal_data *joined = NULL;
    double *labels = NULL;
    outcome->read_once |= run_is_read_once(path);
    int status = read_labels(&labels, outcome, path);
    if (status == SHOAL_OK && outcome->face->classes_most > 0)
        status = check_classes(labels, outcome->rows, outcome->face->classes_most, path);
    self.labels = labels;
    if (status == SHOAL_OK && choose_type(&self.type, outcome->type, labels, outcome->rows) < 0)
        status = shoal_fail(SHOAL_INVALID, "%s: no type of numbers holds these labels and the %s of %s exactly", path,
                            shoal_type_name(outcome->type), outcome->data_name);
    if (status == SHOAL_OK)
        status = join_rows(&self, outcome->data_name);
    if (status == SHOAL_OK)
        status = shoal_data_wrap(&joined, self.rows, outcome->rows, outcome->columns + 1, self.type);
    if (status == SHOAL_OK)
        status = data_rename(joined, outcome->data_name);
    if (status == SHOAL_OK) {
        shoal_data_free(&outcome->data);
        outcome->data = joined;
        outcome->joined = self.rows;
        self.rows = NULL;
        outcome->columns++;
        outcome->type = self.type;
    } else {
        shoal_data_free(&joined);
    }
    base_free(&self.rows);
    base_free(&self.scratch);
    base_free(&self.values);
    base_free(&labels);
    return status;
}
