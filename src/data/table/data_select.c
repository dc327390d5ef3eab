/* Choosing columns.  See data_select.h.
 *
 * The chosen columns are copied as runs of neighbours, so that leaving out one column of many costs little more than
 * copying the rows. */
#include "base/text.h"
#include "data/table/data_select.h"

#include <inttypes.h>
#include <string.h>

#include "base/memory.h"
#include "data/data_internal.h"
#include "data_words.h"

/* Rows are read this many bytes at a time. */
enum { AT_ONCE_BYTES = 1 << 20 };

/* Neighbouring columns, in bytes from the start of a row. */
typedef struct column_run {
    size_t from, bytes;
} column_run;

typedef struct selection {
    const int64_t *columns;
    int64_t count;
    column_run *runs;
    int64_t runs_count;
    size_t row_bytes, selected_bytes;
} selection;

static int check_selection(const shoal_data *data, const int64_t *columns, int64_t count)
{
    bool *seen = NULL;
    int status = base_alloc(&seen, (size_t)data->columns, sizeof *seen, "columns");
    for (int64_t i = 0; i < count && status == SHOAL_OK; i++) {
        if (columns[i] < 0 || columns[i] >= data->columns)
            status = shoal_fail(SHOAL_USAGE, "%s: there is no column %" PRId64 "; there are %" PRId64, data->path,
                                columns[i] + 1, data->columns);
        else if (seen[columns[i]])
            status = shoal_fail(SHOAL_USAGE, "%s: column %" PRId64 " is chosen twice", data->path, columns[i] + 1);
        else
            seen[columns[i]] = true;
    }
    if (status == SHOAL_OK && count < 1)
        status = shoal_fail(SHOAL_USAGE, "%s: no column is chosen", data->path);
    base_free(&seen);
    return status;
}

static bool is_identity(const shoal_data *data, const int64_t *columns, int64_t count)
{
    bool same = count == data->columns;
    for (int64_t i = 0; same && i < count; i++)
        same = columns[i] == i;
    return same;
}

static int selection_init(selection *out, const shoal_data *data, const int64_t *columns, int64_t count)
{
    const size_t size = shoal_type_size(data->type);
    *out = (selection){
        .columns = columns, .count = count, .row_bytes = data_row_bytes(data), .selected_bytes = (size_t)count * size};
    int status = base_alloc(&out->runs, (size_t)count, sizeof *out->runs, "columns");
    if (status < 0)
        return status;
    for (int64_t i = 0; i < count; i++) {
        if (i > 0 && columns[i] == columns[i - 1] + 1)
            out->runs[out->runs_count - 1].bytes += size;
        else
            out->runs[out->runs_count++] = (column_run){(size_t)columns[i] * size, size};
    }
    return SHOAL_OK;
}

static void copy_rows(unsigned char *out, const unsigned char *in, int64_t rows, const selection *chosen)
{
    for (int64_t i = 0; i < rows; i++, in += chosen->row_bytes)
        for (int64_t k = 0; k < chosen->runs_count; k++) {
            memcpy(out, in + chosen->runs[k].from, chosen->runs[k].bytes);
            out += chosen->runs[k].bytes;
        }
}

static int select_names(char **names, size_t **offsets, const shoal_data *data, const selection *chosen)
{
    size_t room = 0;
    if (!data->names)
        return SHOAL_OK;
    for (int64_t i = 0; i < chosen->count; i++)
        room += strlen(shoal_data_column_name(data, chosen->columns[i])) + 1;
    int status = base_alloc(names, room, 1, "names of columns");
    if (status == SHOAL_OK)
        status = base_alloc(offsets, (size_t)chosen->count, sizeof **offsets, "names of columns");
    size_t at = 0;
    for (int64_t i = 0; i < chosen->count && status == SHOAL_OK; i++) {
        const char *name = shoal_data_column_name(data, chosen->columns[i]);
        (*offsets)[i] = at;
        strcpy(*names + at, name);
        at += strlen(name) + 1;
    }
    return status;
}

/* What else is known of the columns: the means of the chosen ones, and where the target and the label are now. */
static int select_facts(double **means, char ***not_numbers, int64_t *target, int64_t *label, const shoal_data *data,
                        const selection *chosen)
{
    int status = data->means ? base_alloc(means, (size_t)chosen->count, sizeof **means, "means of columns") : SHOAL_OK;
    if (status == SHOAL_OK && data->not_numbers)
        status = base_alloc(not_numbers, (size_t)chosen->count, sizeof **not_numbers, "columns");
    *target = *label = -1;
    for (int64_t i = 0; i < chosen->count && status == SHOAL_OK; i++) {
        if (data->means)
            (*means)[i] = data->means[chosen->columns[i]];
        if (data->not_numbers && data->not_numbers[chosen->columns[i]])
            status = base_copy_text(&(*not_numbers)[i], data->not_numbers[chosen->columns[i]]);
        if (chosen->columns[i] == data->target)
            *target = i;
        if (chosen->columns[i] == data->label)
            *label = i;
    }
    return status;
}

/* ---- where the rows lie ------------------------------------------------------------------------------------------ */

/* A row never grows, so it can be put in front of all that is still to be read. */
static int select_in_place(shoal_data *data, const selection *chosen)
{
    unsigned char *row = NULL, *bytes = data->buffer.bytes;
    int status = base_alloc(&row, 1, chosen->row_bytes, "a row");
    for (int64_t i = 0; i < data->rows && status == SHOAL_OK; i++) {
        memcpy(row, bytes + (size_t)i * chosen->row_bytes, chosen->row_bytes);
        copy_rows(bytes + (size_t)i * chosen->selected_bytes, row, 1, chosen);
    }
    base_free(&row);
    if (status < 0)
        return status;
    data->buffer.size = (size_t)data->rows * chosen->selected_bytes;
    data_buffer_trim(&data->buffer);
    data->values = data->buffer.bytes;
    return SHOAL_OK;
}

static int fill_buffer(data_buffer *buffer, shoal_data *data, const selection *chosen)
{
    const int64_t at_once = AT_ONCE_BYTES / ((int64_t)chosen->row_bytes + 1) + 1;
    void *scratch = NULL;
    int status = data_buffer_reserve(buffer, (size_t)data->rows * chosen->selected_bytes);
    if (status == SHOAL_OK && !data->values)
        status = base_alloc_unset(&scratch, (size_t)at_once, chosen->row_bytes, "rows");
    for (int64_t first = 0; first < data->rows && status == SHOAL_OK; first += at_once) {
        const int64_t count = data->rows - first < at_once ? data->rows - first : at_once;
        const void *read = NULL;
        status = shoal_data_read(&read, data, first, count, scratch);
        if (status == SHOAL_OK) {
            copy_rows(buffer->bytes + buffer->size, read, count, chosen);
            buffer->size += (size_t)count * chosen->selected_bytes;
        }
    }
    base_free(&scratch);
    return status == SHOAL_OK ? shoal_data_check(data) : status;
}

static int copy_selected(shoal_data **out, shoal_data *data, const selection *chosen)
{
    shoal_data *copy = NULL;
    /* Rows that were wrapped or borrowed came without a limit. */
    const bool limited = data->format != &data_memory && !data->buffer.shared;
    int status = data_new(&copy, data->path, limited ? (int64_t)data->buffer.memory_limit : 0);
    if (status == SHOAL_OK)
        status = data_set_shape(copy, (uint64_t)data->rows, (uint64_t)chosen->count, data->type);
    if (status == SHOAL_OK)
        status = fill_buffer(&copy->buffer, data, chosen);
    if (status == SHOAL_OK)
        status = select_names(&copy->names, &copy->name_offsets, data, chosen);
    if (status == SHOAL_OK)
        status = select_facts(&copy->means, &copy->not_numbers, &copy->target, &copy->label, data, chosen);
    if (status == SHOAL_OK)
        status = base_format(&copy->detail, "%s; %" PRId64 " of %" PRId64 " column%s, copied",
                             data->detail ? data->detail : data->format->name, chosen->count, data->columns,
                             base_plural(data->columns));
    if (status < 0) {
        shoal_data_free(&copy);
        return status;
    }
    copy->format = data->format;
    copy->has_header = data->has_header;
    copy->missing = data->missing;
    copy->values = copy->buffer.bytes;
    data_shape_select(copy, data, chosen->columns, chosen->count);
    *out = copy;
    return SHOAL_OK;
}

int data_select_copy(shoal_data **out, shoal_data *data, const int64_t *columns, int64_t count)
{
    selection chosen = {0};
    *out = NULL;
    int status = check_selection(data, columns, count);
    if (status == SHOAL_OK && data->format == &data_described)
        status = shoal_fail(SHOAL_USAGE,
                            "%s: columns can't be chosen while the rows lie in a store; fetch them first with shoal "
                            "store get",
                            data->path);
    if (status == SHOAL_OK)
        status = selection_init(&chosen, data, columns, count);
    if (status == SHOAL_OK)
        status = copy_selected(out, data, &chosen);
    base_free(&chosen.runs);
    return status;
}

/* Rows of this process's own buffer, which nobody else reads. */
static int rearrange(shoal_data *data, const int64_t *columns, int64_t count)
{
    selection chosen = {0};
    char *names = NULL;
    size_t *offsets = NULL;
    double *means = NULL;
    char **not_numbers = NULL;
    int64_t target = -1, label = -1;
    int status = selection_init(&chosen, data, columns, count);
    if (status == SHOAL_OK)
        status = select_names(&names, &offsets, data, &chosen);
    if (status == SHOAL_OK)
        status = select_facts(&means, &not_numbers, &target, &label, data, &chosen);
    if (status == SHOAL_OK)
        status = select_in_place(data, &chosen);
    base_free(&chosen.runs);
    if (status < 0) {
        base_free(&names);
        base_free(&offsets);
        base_free(&means);
        data_words_free(&not_numbers, count);
        return status;
    }
    base_free(&data->names);
    base_free(&data->name_offsets);
    base_free(&data->means);
    data_words_free(&data->not_numbers, data->columns);
    data->means = means;
    data->not_numbers = not_numbers;
    data->target = target;
    data->label = label;
    data->names = names;
    data->name_offsets = offsets;
    data->columns = count;
    data_shape_select(data, data, columns, count);
    return SHOAL_OK;
}

int data_select(shoal_data **inout, const int64_t *columns, int64_t count)
{
    shoal_data *data = *inout, *copy = NULL;
    int status = check_selection(data, columns, count);
    if (status < 0 || is_identity(data, columns, count))
        return status;
    if (data->values && data->values == data->buffer.bytes && !data->buffer.shared)
        return rearrange(data, columns, count);
    status = data_select_copy(&copy, data, columns, count);
    if (status < 0)
        return status;
    copy->words = data->words; /* they, and which rows are gone, stay as they were */
    copy->words_count = data->words_count;
    copy->gone = data->gone;
    copy->source_rows = data->source_rows;
    copy->skipped = data->skipped;
    copy->skipped_text = data->skipped_text;
    data->skipped_text = NULL;
    data->words = NULL;
    data->gone = NULL;
    shoal_data_free(inout);
    *inout = copy;
    return SHOAL_OK;
}

static int alias_resident(shoal_data **out, const shoal_data *data, const int64_t *columns)
{
    const selection all = {.columns = columns, .count = data->columns};
    shoal_data *alias = NULL;
    int status = shoal_data_wrap(&alias, data->values, data->rows, data->columns, data->type);
    if (status == SHOAL_OK)
        status = data_rename(alias, data->path);
    if (status == SHOAL_OK)
        status = select_names(&alias->names, &alias->name_offsets, data, &all);
    if (status == SHOAL_OK)
        data_shape_copy(alias, data);
    else
        shoal_data_free(&alias);
    *out = alias;
    return status;
}

int data_alias(shoal_data **out, shoal_data *data)
{
    int64_t *columns = NULL;
    *out = NULL;
    int status = base_alloc(&columns, (size_t)data->columns, sizeof *columns, "columns");
    for (int64_t i = 0; i < data->columns && status == SHOAL_OK; i++)
        columns[i] = i;
    if (status == SHOAL_OK)
        status =
            data->values ? alias_resident(out, data, columns) : data_select_copy(out, data, columns, data->columns);
    base_free(&columns);
    return status;
}
