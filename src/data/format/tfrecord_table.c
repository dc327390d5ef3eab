/* TFRecords as a table: a column for each feature, or for each value of a list of fixed length, in the order of the
 * names.
 *
 * Not every record needs to have every feature: what one lacks is missing.  Texts are columns that only a target can
 * use; others are told of when they are not left out. */
#include "data_tfrecord.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "data/table/data_columns.h"
#include "data/table/data_words.h"

/* Features are kept in order, and names of columns repeat those of lists. */
enum { FEATURES_MOST = 1 << 16, COLUMNS_MOST = 1 << 20, NAMES_MOST = 1 << 28 };

/* A feature of the file: what its records say of it. */
typedef struct table_feature {
    const char *name;
    size_t name_bytes;
    data_feature_kind kind; /* NONE: no record has a value */
    bool is_mixed;          /* floats in some records, integers in others */
    bool may_miss;          /* some record has no value */
    int64_t width;          /* values of each record that has any */
    int64_t record;         /* the first one that has */
    int64_t column;         /* the first of its own */
    int64_t seen;           /* in how many records it is */
} table_feature;

typedef struct table {
    tf_reader *reader;
    table_feature *feature;
    int64_t count, room, columns;
    double *scratch; /* a row for each thread */
} table;

/* ---- the features of a file -------------------------------------------------------------------------------------- */

static table_feature *find_feature(const table *self, const data_feature *of, int64_t *at)
{
    int64_t low = 0, high = self->count;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        table_feature *here = &self->feature[middle];
        const int order = data_feature_compare(here->name, here->name_bytes, of->name, of->name_bytes);
        if (order == 0)
            return here;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *at = low;
    return NULL;
}

static int insert_feature(table_feature **out, table *self, const data_feature *of, int64_t record)
{
    int64_t at = 0;
    int status = SHOAL_OK;
    if ((*out = find_feature(self, of, &at)))
        return SHOAL_OK;
    if (self->count == FEATURES_MOST)
        return tf_fail(self->reader, record, "there are more than %d different features", FEATURES_MOST);
    if (self->count == self->room) {
        const int64_t room = 2 * self->room + 32;
        status = base_grow(&self->feature, (size_t)self->room, (size_t)room, sizeof *self->feature, "features");
        if (status < 0)
            return status;
        self->room = room;
    }
    memmove(&self->feature[at + 1], &self->feature[at], (size_t)(self->count - at) * sizeof *self->feature);
    self->feature[at] = (table_feature){.name = of->name, .name_bytes = of->name_bytes};
    self->count++;
    *out = &self->feature[at];
    return SHOAL_OK;
}

/* What the record has is compared with what those before it have. */
static int note_values(const table *self, table_feature *known, const data_feature *of, int64_t record)
{
    const char *const kinds[] = {"", "bytes", "floats", "integers"};
    char name[DATA_SHOWN_BYTES + 1] = "";
    snprintf(name, sizeof name, "%.*s", (int)(of->name_bytes < DATA_SHOWN_BYTES ? of->name_bytes : DATA_SHOWN_BYTES),
             of->name);
    base_text_clean(name);
    known->seen++;
    if (of->count == 0) {
        known->may_miss = true;
        return SHOAL_OK;
    }
    if (known->kind == DATA_FEATURE_NONE) {
        known->kind = of->kind;
        known->width = of->kind == DATA_FEATURE_BYTES ? 1 : of->count;
        known->record = record;
        return SHOAL_OK;
    }
    const bool other_kind = (known->kind == DATA_FEATURE_BYTES) != (of->kind == DATA_FEATURE_BYTES);
    if (other_kind || (of->kind != DATA_FEATURE_BYTES && of->count != known->width)) {
        char other[TF_OTHER_ROOM];
        tf_other(other, self->reader, known->record);
        return other_kind ? tf_fail(self->reader, record, "\"%s\" is %s, and in %s it is %s", name, kinds[of->kind],
                                    other, kinds[known->kind])
                          : tf_fail(self->reader, record,
                                    "\"%s\" has %" PRId64 " value%s, and in %s it has %" PRId64
                                    "; only lists of one length become columns",
                                    name, of->count, base_plural(of->count), other, known->width);
    }
    known->is_mixed |= of->kind != known->kind;
    return SHOAL_OK;
}

static int survey(table *self)
{
    tf_reader *reader = self->reader;
    int status = SHOAL_OK;
    for (int64_t i = 0; i < reader->count && status == SHOAL_OK; i++) {
        const data_features *features = &reader->features[0];
        status = tf_parse(reader, i, 0);
        reader->has_lists |= features->has_lists;
        for (int64_t k = 0; k < features->count && status == SHOAL_OK; k++) {
            table_feature *known = NULL;
            status = insert_feature(&known, self, &features->feature[k], i);
            if (status == SHOAL_OK)
                status = note_values(self, known, &features->feature[k], i);
        }
    }
    return status;
}

/* Where the columns of each are.  A feature that never has a value is a column of missing ones. */
static int place_columns(table *self)
{
    for (int64_t i = 0; i < self->count; i++) {
        table_feature *known = &self->feature[i];
        known->may_miss |= known->seen < self->reader->count || known->kind == DATA_FEATURE_NONE;
        known->width = known->width > 0 ? known->width : 1;
        known->column = self->columns;
        if (known->width > COLUMNS_MOST - self->columns)
            return tf_fail(self->reader, known->record, "the features have more than %d values", COLUMNS_MOST);
        self->columns += known->width;
    }
    if (self->columns == 0)
        return tf_fail(self->reader, 0, "it has no features");
    return SHOAL_OK;
}

/* Integers stay integers and floats floats if all are; NaN and both together need float64. */
static shoal_type choose_type(const table *self)
{
    bool floats = true, integers = true;
    for (int64_t i = 0; i < self->count; i++) {
        const table_feature *known = &self->feature[i];
        floats &= known->kind == DATA_FEATURE_FLOATS && !known->is_mixed;
        integers &= known->kind == DATA_FEATURE_INTEGERS && !known->is_mixed && !known->may_miss;
    }
    return floats ? SHOAL_FLOAT32 : integers ? SHOAL_INT64 : SHOAL_FLOAT64;
}

/* "age", and "pixels.1", "pixels.2", ... of a list. */
static int name_columns(table *self)
{
    enum { DIGITS = 12 };
    shoal_data *data = self->reader->data;
    size_t room = 0, at = 0;
    for (int64_t i = 0; i < self->count; i++) {
        const table_feature *known = &self->feature[i];
        const size_t bytes = known->name_bytes + DIGITS;
        if (bytes > (NAMES_MOST - room) / (size_t)known->width)
            return tf_fail(self->reader, known->record, "the names of its values are longer than %d bytes", NAMES_MOST);
        room += (size_t)known->width * bytes;
    }
    int status = base_alloc(&data->names, room, 1, "names of columns");
    if (status == SHOAL_OK)
        status = base_alloc(&data->name_offsets, (size_t)self->columns, sizeof *data->name_offsets, "names of columns");
    for (int64_t i = 0; i < self->count && status == SHOAL_OK; i++) {
        const table_feature *known = &self->feature[i];
        for (int64_t k = 0; k < known->width; k++) {
            data->name_offsets[known->column + k] = at;
            memcpy(data->names + at, known->name, known->name_bytes);
            at += known->name_bytes;
            if (known->width > 1)
                at += (size_t)sprintf(data->names + at, ".%" PRId64, k + 1);
            data->names[at++] = '\0';
        }
    }
    return status;
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

static const data_feature *feature_of(const tf_reader *reader, int thread, const table_feature *known, int64_t *at)
{
    const data_features *features = &reader->features[thread];
    while (*at < features->count) {
        const data_feature *here = &features->feature[*at];
        const int order = data_feature_compare(here->name, here->name_bytes, known->name, known->name_bytes);
        if (order > 0)
            return NULL;
        ++*at;
        if (order == 0)
            return here;
    }
    return NULL;
}

/* A row of integers as they are; all others as float64, NaN where nothing is. */
static void read_row(const table *self, int thread, int64_t *integers, double *numbers)
{
    int64_t at = 0;
    for (int64_t i = 0; i < self->count; i++) {
        const table_feature *known = &self->feature[i];
        const data_feature *of = feature_of(self->reader, thread, known, &at);
        for (int64_t k = 0; k < known->width && numbers; k++)
            numbers[known->column + k] = NAN;
        if (of && of->kind != DATA_FEATURE_BYTES && integers)
            data_feature_integers(integers + known->column, known->width, of);
        else if (of && of->kind != DATA_FEATURE_BYTES)
            data_feature_numbers(numbers + known->column, known->width, of);
    }
}

static int fill_row(void *context, int64_t record, int thread)
{
    tf_reader *reader = context;
    const table *self = reader->rows;
    shoal_data *data = reader->data;
    unsigned char *row = data->buffer.bytes + (size_t)record * data_row_bytes(data);
    double *scratch = self->scratch + (size_t)thread * (size_t)self->columns;
    int status = tf_parse(reader, record, thread);
    if (status < 0)
        return status;
    if (data->type == SHOAL_INT64)
        read_row(self, thread, (int64_t *)(void *)row, NULL);
    else
        read_row(self, thread, NULL, data->type == SHOAL_FLOAT64 ? (double *)(void *)row : scratch);
    for (int64_t i = 0; i < self->columns && data->type == SHOAL_FLOAT32; i++)
        ((float *)(void *)row)[i] = (float)scratch[i];
    return SHOAL_OK;
}

static int fill_rows(table *self)
{
    tf_reader *reader = self->reader;
    shoal_data *data = reader->data;
    const size_t threads = (size_t)base_pool_threads(reader->pool);
    int status = data_set_shape(data, (uint64_t)reader->count, (uint64_t)self->columns, choose_type(self));
    if (status == SHOAL_OK)
        status = data_buffer_reserve(&data->buffer, (size_t)data->rows * data_row_bytes(data));
    if (status == SHOAL_OK)
        status = base_alloc(&self->scratch, threads * (size_t)self->columns, sizeof *self->scratch, "rows");
    if (status < 0)
        return status;
    data->buffer.size = (size_t)data->rows * data_row_bytes(data);
    data->values = data->buffer.bytes;
    return tf_for_records(reader, fill_row);
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

static int64_t find_target(int *status, const tf_reader *reader)
{
    const data_table_columns columns = data_columns_of(reader->data);
    data_chosen chosen = {.target = -1};
    int64_t target = -1;
    if (reader->options->target)
        *status = data_columns_choose(&chosen, &columns, reader->options);
    if (*status == SHOAL_OK && chosen.target >= 0)
        target = chosen.columns[chosen.target];
    base_free(&chosen.columns);
    return target;
}

/* Words of the target, in the order of their bytes, take the place of numbers. */
static int take_words(table *self, const table_feature *known)
{
    tf_reader *reader = self->reader;
    shoal_data *data = reader->data;
    data_words words = {0};
    int32_t *number = NULL;
    int status = base_alloc(&number, (size_t)reader->count, sizeof *number, "words");
    for (int64_t i = 0; i < reader->count && status == SHOAL_OK; i++) {
        const unsigned char *text = NULL;
        size_t size = 0;
        int64_t at = 0;
        status = tf_parse(reader, i, 0);
        const data_feature *of = status == SHOAL_OK ? feature_of(reader, 0, known, &at) : NULL;
        if (of)
            data_feature_bytes(&text, &size, of);
        if (status == SHOAL_OK)
            status = text ? tf_add_word(reader, &words, &number[i], i, text, size)
                          : tf_fail(reader, i, "the target, \"%s\", has no value",
                                    shoal_data_column_name(data, known->column));
    }
    if (status == SHOAL_OK)
        status = tf_finish_words(reader, &words, number);
    for (int64_t i = 0; i < reader->count && status == SHOAL_OK; i++)
        ((double *)(void *)data->buffer.bytes)[i * data->columns + known->column] = number[i];
    data_words_release(&words);
    base_free(&number);
    return status;
}

/* What is said of a column of text unless it is left out. */
static int note_text(shoal_data *data, const table_feature *known)
{
    const char *name = shoal_data_column_name(data, known->column);
    char *sentence = NULL;
    int status = base_format(&sentence,
                             "%s: column %" PRId64 ", \"%.*s\", is text and not numbers; --drop-column leaves it out, "
                             "--target makes it the target",
                             data->path, known->column + 1, DATA_SHOWN_BYTES, name);
    if (status == SHOAL_OK)
        base_text_clean(sentence);
    data->not_numbers[known->column] = sentence;
    return status;
}

static int settle_text(table *self)
{
    shoal_data *data = self->reader->data;
    int status = base_alloc(&data->not_numbers, (size_t)self->columns, sizeof *data->not_numbers, "columns");
    const int64_t target = status == SHOAL_OK ? find_target(&status, self->reader) : -1;
    for (int64_t i = 0; i < self->count && status == SHOAL_OK; i++) {
        const table_feature *known = &self->feature[i];
        if (known->kind == DATA_FEATURE_BYTES)
            status = known->column == target ? take_words(self, known) : note_text(data, known);
    }
    return status;
}

int tf_take_table(tf_reader *reader)
{
    table self = {.reader = reader};
    reader->rows = &self;
    int status = survey(&self);
    if (status == SHOAL_OK)
        status = place_columns(&self);
    if (status == SHOAL_OK)
        status = name_columns(&self);
    if (status == SHOAL_OK)
        status = fill_rows(&self);
    if (status == SHOAL_OK)
        status = settle_text(&self);
    if (status == SHOAL_OK)
        status = base_format(&reader->data->detail, "%" PRId64 " records of %" PRId64 " feature%s", reader->count,
                             self.count, base_plural(self.count));
    base_free(&self.scratch);
    base_free(&self.feature);
    return status;
}
