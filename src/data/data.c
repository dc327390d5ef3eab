/* Data sets: choosing a format, opening, reading, freeing, and wrapping memory.  See shoal/data.h.
 *
 * The formats are listed once, below; everything else here is the same for all of them. */
#include "data_internal.h"

#include <fenv.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/pool.h"
#include "data_address.h"
#include "data/table/data_columns.h"
#include "data/format/data_foreign.h"
#include "data/table/data_lines.h"
#include "data/table/data_missing.h"
#include "data/table/data_words.h"

/* In the order they are asked: what the address or the options say, then magic numbers, then what looks like text. */
static const struct data_format *const formats[] = {
    &data_generated, &data_tfrecord_folder, &data_raw,  &data_tfrecord_format, &data_npy,      &data_npz, &data_idx,
    &data_hdf5,      &data_matlab,          &data_vecs, &data_foreign_format,  &data_svmlight, &data_text};

const struct data_format *data_format_find(const data_hint *hint)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (formats[i]->recognise(hint))
            return formats[i];
    return NULL;
}

static int check_options(const char *path, const shoal_data_options *options)
{
    if (options->rows < 0 || options->columns < 0)
        return shoal_fail(SHOAL_USAGE, "%s: rows and columns can't be negative", path);
    if (options->memory < 0)
        return shoal_fail(SHOAL_USAGE, "%s: the memory limit can't be negative", path);
    return SHOAL_OK;
}

static int check_options_fit(const shoal_data *data, const shoal_data_options *options)
{
    if ((options->rows || options->columns || options->type) && !data->format->takes_shape)
        return shoal_fail(SHOAL_USAGE, "%s: --rows, --cols and --type are for raw files, and this is %s", data->path,
                          data->format->name);
    if (options->header == SHOAL_HEADER_YES && data->format != &data_text && data->format != &data_text_lines &&
        data->format != &data_foreign_format)
        return shoal_fail(SHOAL_USAGE, "%s: --header is for text files, and this is %s", data->path,
                          data->format->name);
    if (options->skip_broken && data->format != &data_tfrecord_format && data->format != &data_tfrecord_folder)
        return shoal_fail(SHOAL_USAGE, "%s: --skip-broken is for TFRecord, and this is %s", data->path,
                          data->format->name);
    return SHOAL_OK;
}

static int open_source(shoal_data *data, data_source *source, data_hint *hint)
{
    int status = data_source_open(source, hint->path, data->format != &data_raw);
    if (status < 0)
        return status;
    if (source->head_size == 0)
        return shoal_fail(SHOAL_INVALID, "%s: the file is empty", data->path);
    hint->head = source->head;
    hint->head_size = source->head_size;
    if (!data->format)
        data->format = data_format_find(hint);
    if (data->format == &data_text && data->lines)
        data->format = &data_text_lines;
    if (!data->format)
        return shoal_fail(SHOAL_INVALID,
                          "%s: not " DATA_FORMATS_READ ", nor of a kind that is known; if it holds raw values, give "
                          "--cols and --type",
                          data->path);
    return SHOAL_OK;
}

/* Reads the source: all of it, or the array of it that is named. */
static int open_content(shoal_data *data, data_source *source, const char *name, const shoal_data_options *options)
{
    if (data->format->list)
        return data_members_open(data, source, name);
    if (name)
        return shoal_fail(SHOAL_USAGE, "%s is %s, which holds one array without a name: leave out \":%s\"",
                          source->path, data->format->name, name);
    return data->format->open(data, source, options);
}

static int open_format(shoal_data *data, const char *path, const shoal_data_options *options)
{
    data_source source = {.descriptor = -1};
    const char *name = data_address_name(path);
    data_hint hint = {.path = path, .options = options};
    data->format = data_format_find(&hint);
    bool without_file = data->format && data->format->without_file;
    int status = without_file ? SHOAL_OK : data_address_file(&data->file, path);
    if (status < 0)
        return status;
    hint.path = data->file;
    fenv_t callers; /* whatever the caller rounds like, numbers in text are read the same */
    fegetenv(&callers);
    base_default_arithmetic();
    status = without_file ? SHOAL_OK : open_source(data, &source, &hint);
    if (status == SHOAL_OK)
        status = check_options_fit(data, options);
    if (status == SHOAL_OK)
        status = without_file ? data->format->open(data, NULL, options) : open_content(data, &source, name, options);
    fesetenv(&callers);
    data_source_close(&source);
    return status;
}

int data_new(shoal_data **out, const char *path, int64_t memory)
{
    int status = base_alloc(out, 1, sizeof **out, "a data set");
    if (status < 0)
        return status;
    data_buffer_init(&(*out)->buffer, "", memory);
    (*out)->mapped_file = -1;
    (*out)->target = (*out)->label = -1;
    status = base_copy_text(&(*out)->path, path);
    (*out)->buffer.path = (*out)->path;
    return status;
}

int data_rename(shoal_data *data, const char *path)
{
    char *copy = NULL;
    int status = base_copy_text(&copy, path);
    if (status < 0)
        return status;
    base_free(&data->path);
    data->buffer.path = data->path = copy;
    return SHOAL_OK;
}

/* A label in words is the target's, or nothing that a learner can use; whoever does not want it leaves it out. */
static int check_words(const shoal_data *data, const shoal_data_options *options)
{
    for (int64_t i = 0; data->not_numbers && !options->keep_text && i < data->columns; i++)
        if (data->not_numbers[i] && i != data->label)
            return shoal_fail(SHOAL_INVALID, "%s", data->not_numbers[i]);
    return SHOAL_OK;
}

int data_refine(shoal_data **data, const shoal_data_options *options)
{
    int status = (*data)->format->chooses_columns ? SHOAL_OK : data_columns_apply(data, options);
    if (status == SHOAL_OK)
        status = check_words(*data, options);
    return status == SHOAL_OK ? data_missing_apply(data, options) : status;
}

/* With `rows_most`, text is looked at line by line, and not parsed. */
static int open_data(shoal_data **out, const char *path, const shoal_data_options *options, const int64_t *rows_most)
{
    static const shoal_data_options none;
    shoal_data *data = NULL;
    options = options ? options : &none;
    *out = NULL;
    int status = check_options(path, options);
    if (status == SHOAL_OK)
        status = data_new(&data, strcmp(path, "-") == 0 ? "standard input" : path, options->memory);
    if (status == SHOAL_OK && rows_most)
        status = base_alloc(&data->lines, 1, sizeof *data->lines, "a text file");
    if (status == SHOAL_OK && rows_most)
        data->lines->rows_most = *rows_most;
    if (status == SHOAL_OK)
        status = open_format(data, path, options);
    if (status == SHOAL_OK && data->format != &data_text_lines) {
        data_lines_free(&data->lines);
        status = data_refine(&data, options);
    }
    if (status == SHOAL_OK) {
        *out = data;
        data = NULL;
    }
    shoal_data_free(&data);
    return status;
}

int shoal_data_open(shoal_data **out, const char *path, const shoal_data_options *options)
{
    return open_data(out, path, options, NULL);
}

int data_open_lines(shoal_data **out, const char *path, const shoal_data_options *options, int64_t rows_most)
{
    return open_data(out, path, options, &rows_most);
}

static bool recognise_memory(const data_hint *hint)
{
    (void)hint;
    return false;
}

const struct data_format data_memory = {.name = "memory", .without_file = true, .recognise = recognise_memory};

const struct data_format *data_format_named(const char *name)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (strcmp(formats[i]->name, name) == 0)
            return formats[i];
    return &data_memory;
}

int shoal_data_wrap(shoal_data **out, const void *values, int64_t rows, int64_t columns, shoal_type type)
{
    shoal_data *data = NULL;
    *out = NULL;
    if (!values || rows < 0 || columns < 0 || (unsigned)type >= SHOAL_TYPES)
        return shoal_fail(SHOAL_USAGE, "memory: wrapping needs values, a shape and a type");
    int status = data_new(&data, "memory", 1);
    if (status == SHOAL_OK) {
        data->format = &data_memory;
        data->values = values;
        status = data_set_shape(data, (uint64_t)rows, (uint64_t)columns, type);
    }
    if (status == SHOAL_OK)
        status = base_copy_text(&data->detail, "rows in memory");
    if (status == SHOAL_OK) {
        *out = data;
        data = NULL;
    }
    shoal_data_free(&data);
    return status;
}

int shoal_data_name_columns(shoal_data *data, const char *const *names)
{
    size_t bytes = 0, at = 0;
    for (int64_t i = 0; i < data->columns; i++) {
        if (!names[i])
            return shoal_fail(SHOAL_USAGE, "%s: column %lld has no name", data->path, (long long)(i + 1));
        bytes += strlen(names[i]) + 1;
    }
    base_free(&data->names);
    base_free(&data->name_offsets);
    int status = base_alloc(&data->names, bytes, 1, "names of columns");
    if (status == SHOAL_OK)
        status = base_alloc(&data->name_offsets, (size_t)data->columns, sizeof *data->name_offsets, "names of columns");
    if (status < 0) {
        base_free(&data->names);
        return status;
    }
    for (int64_t i = 0; i < data->columns; i++) {
        data->name_offsets[i] = at;
        strcpy(data->names + at, names[i]);
        at += strlen(names[i]) + 1;
    }
    return SHOAL_OK;
}

int shoal_data_name_words(shoal_data *data, const char *const *words, int64_t count)
{
    char **copies = NULL;
    if (data->columns != 1 || data->words)
        return shoal_fail(SHOAL_USAGE, "%s: words are named once, of rows of one column", data->path);
    for (int64_t i = 1; i < count; i++)
        if (strcmp(words[i - 1], words[i]) >= 0)
            return shoal_fail(SHOAL_USAGE, "%s: the words are not different and in the order of their bytes",
                              data->path);
    int status = base_alloc(&copies, (size_t)count, sizeof *copies, "words");
    for (int64_t i = 0; i < count && status == SHOAL_OK; i++)
        status = base_copy_text(&copies[i], words[i]);
    data->words = copies;
    data->words_count = copies ? count : 0;
    data->target = 0;
    return status;
}

void data_unmap(shoal_data *data)
{
    base_mapped_close(&data->mapped);
    if (data->mapped_file >= 0)
        close(data->mapped_file);
    data->mapped_file = -1;
}

void data_replace_rows(shoal_data *data, data_buffer *with, int64_t rows)
{
    const int64_t dropped = shoal_data_rows_dropped(data);
    data_unmap(data);
    data_buffer_release(&data->buffer);
    data->buffer = *with;
    *with = (data_buffer){.descriptor = -1};
    data->values = data->buffer.bytes;
    data->rows = rows;
    if (data->rank > 0)
        data->shape[0] = rows;
    data->source_rows = dropped > 0 ? rows + dropped : 0;
    base_free(&data->gone);
    if (data->format == &data_generated || data->format == &data_described)
        data->format = &data_memory;
}

void shoal_data_free(shoal_data **inout)
{
    shoal_data *data = *inout;
    if (!data)
        return;
    data_unmap(data);
    data_buffer_release(&data->buffer);
    base_free(&data->state);
    data_lines_free(&data->lines);
    data_words_free(&data->words, data->words_count);
    data_words_free(&data->not_numbers, data->columns);
    base_free(&data->means);
    base_free(&data->gone);
    base_free(&data->name_offsets);
    base_free(&data->names);
    base_free(&data->skipped_text);
    base_free(&data->detail);
    base_free(&data->file);
    base_free(&data->path);
    base_free(inout);
}

int data_set_shape(shoal_data *data, uint64_t rows, uint64_t columns, shoal_type type)
{
    size_t bytes;
    if (rows == 0)
        return shoal_fail(SHOAL_INVALID, "%s: there are no rows%s", data->path, data->names ? " below the header" : "");
    if (columns == 0)
        return shoal_fail(SHOAL_INVALID, "%s: the rows have no columns", data->path);
    if (!base_multiply(&bytes, rows, columns) || !base_multiply(&bytes, bytes, shoal_type_size(type)) ||
        bytes > INT64_MAX)
        return shoal_fail(SHOAL_INVALID, "%s: %llu rows of %llu columns of %s are more bytes than 63 bits can count",
                          data->path, (unsigned long long)rows, (unsigned long long)columns, shoal_type_name(type));
    data->rows = (int64_t)rows;
    data->columns = (int64_t)columns;
    data->type = type;
    return SHOAL_OK;
}

size_t data_row_bytes(const shoal_data *data)
{
    return (size_t)data->columns * shoal_type_size(data->type);
}

int64_t shoal_data_rows(const shoal_data *data)
{
    return data->rows;
}

int64_t shoal_data_columns(const shoal_data *data)
{
    return data->columns;
}

shoal_type shoal_data_type(const shoal_data *data)
{
    return data->type;
}

const char *shoal_data_path(const shoal_data *data)
{
    return data->path;
}

const char *shoal_data_format(const shoal_data *data)
{
    return data->format->name;
}

const char *shoal_data_detail(const shoal_data *data)
{
    return data->detail;
}

const char *shoal_data_column_name(const shoal_data *data, int64_t column)
{
    if (column < 0 || column >= data->columns)
        return NULL;
    if (!data->names)
        return column == data->label ? "label" : NULL; /* behind an image, whose values have no names */
    return data->names + data->name_offsets[column];
}

const char *shoal_data_column_text(const shoal_data *data, int64_t column)
{
    return data->not_numbers && column >= 0 && column < data->columns ? data->not_numbers[column] : NULL;
}

bool shoal_data_has_header(const shoal_data *data)
{
    return data->has_header;
}

int64_t shoal_data_missing(const shoal_data *data)
{
    return data->missing;
}

int64_t shoal_data_skipped(const shoal_data *data)
{
    return data->skipped;
}

const char *shoal_data_skipped_text(const shoal_data *data)
{
    return data->skipped_text;
}

int64_t shoal_data_rows_dropped(const shoal_data *data)
{
    return data->source_rows > 0 ? data->source_rows - data->rows : 0;
}

int64_t shoal_data_target(const shoal_data *data)
{
    return data->target;
}

const char *shoal_data_word(const shoal_data *data, int64_t number)
{
    return data->words && number >= 0 && number < data->words_count ? data->words[number] : NULL;
}

double shoal_data_mean(const shoal_data *data, int64_t column)
{
    return data->means && column >= 0 && column < data->columns ? data->means[column] : NAN;
}

bool shoal_data_is_resident(const shoal_data *data)
{
    return data->values != NULL;
}

int shoal_data_check(const shoal_data *data)
{
    return data->mapped ? base_mapped_check(data->mapped, data->mapped_file, data->path) : SHOAL_OK;
}

int shoal_data_read(const void **out, shoal_data *data, int64_t first, int64_t count, void *scratch)
{
    if (first < 0 || count < 0 || first > data->rows || count > data->rows - first)
        return shoal_fail(SHOAL_USAGE, "%s: can't read %lld rows from row %lld on: there are %lld, counted from 0",
                          data->path, (long long)count, (long long)first, (long long)data->rows);
    if (data->mapped && base_mapped_is_lost(data->mapped))
        return shoal_data_check(data);
    if (data->values) {
        *out = data->values + (size_t)first * data_row_bytes(data);
        return SHOAL_OK;
    }
    if (data->lines)
        SHOAL_BUG("rows of text have no values");
    if (!data->format->make_rows)
        return shoal_fail(SHOAL_USAGE,
                          "%s: the rows are in a store, and only runs of learners fetch them from there; for anything "
                          "else fetch them first with shoal store get",
                          data->path);
    if (!scratch && count > 0)
        return shoal_fail(SHOAL_USAGE, "%s: %s rows are made when they are read, which needs scratch memory",
                          data->path, data->format->name);
    fenv_t callers;
    fegetenv(&callers);
    base_default_arithmetic();
    data->format->make_rows(data, first, count, scratch);
    fesetenv(&callers);
    *out = scratch;
    return SHOAL_OK;
}
