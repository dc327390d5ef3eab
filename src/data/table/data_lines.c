/* Text files as rows of text.  See data_lines.h. */
#include "data_lines.h"

#include <string.h>

#include "base/memory.h"
#include "data/format/data_text.h"

/* ---- opening ----------------------------------------------------------------------------------------------------- */

/* The text itself: mapped where that can be done, and otherwise decoded. */
static int keep_text_of(shoal_data *data, data_source *source)
{
    struct data_lines *lines = data->lines;
    if (source->mappable && data_source_map(&data->mapped, &data->mapped_file, source)) {
        lines->text = (const char *)base_mapped_bytes(data->mapped);
        lines->size = base_mapped_size(data->mapped);
        return SHOAL_OK;
    }
    int status = data_source_load(&data->buffer, source, SIZE_MAX);
    lines->text = (const char *)data->buffer.bytes;
    lines->size = data->buffer.size;
    return status;
}

/* Notes the line at the reader, which is a row, and moves past it. */
static int take_line(text_reader *reader)
{
    struct data_lines *lines = reader->data->lines;
    text_field field = {0};
    int64_t fields = 0, further = 0;
    int status = data_text_skip_to_row(reader);
    if (status != SHOAL_OK)
        return status;
    for (field.next = reader->at; !field.last; fields++) {
        if (fields == reader->fields)
            return data_text_fail_ragged(reader, reader->line, fields + 1);
        if (!data_text_take_field(&field, field.next, reader->end, reader->delimiter))
            return INCOMPLETE;
        further += field.quoted ? data_text_count_newlines(field.text, field.text + field.length) : 0;
    }
    if (fields < reader->fields)
        return data_text_fail_ragged(reader, reader->line, fields);
    if ((status = data_buffer_extend(&lines->index, sizeof(data_line))) < 0)
        return status;
    const data_line line = {data_text_position(reader), (size_t)(field.next - reader->at)};
    memcpy(lines->index.bytes + lines->index.size, &line, sizeof line);
    lines->index.size += sizeof line;
    lines->longest = line.size > lines->longest ? line.size : lines->longest;
    reader->at = field.next;
    reader->line += 1 + further;
    return SHOAL_OK;
}

static int64_t count_lines(const struct data_lines *lines)
{
    return (int64_t)(lines->index.size / sizeof(data_line));
}

static int take_lines(text_reader *reader)
{
    struct data_lines *lines = reader->data->lines;
    int status = SHOAL_OK;
    while (status == SHOAL_OK && count_lines(lines) < lines->rows_most)
        status = data_text_with_enough(reader, take_line);
    return status == INCOMPLETE ? data_text_check_end(reader) : status;
}

/* "\n", "\r\n" or "\r", as the first line has it. */
static const char *find_line_end(const struct data_lines *lines, size_t end)
{
    if (end == 0 || end > lines->size || lines->text[end - 1] == '\0')
        return "\n";
    if (lines->text[end - 1] == '\r')
        return "\r";
    return lines->text[end - 1] == '\n' && end > 1 && lines->text[end - 2] == '\r' ? "\r\n" : "\n";
}

static int choose_fields(struct data_lines *lines, const text_reader *reader)
{
    int status = base_alloc(&lines->field, (size_t)reader->kept, sizeof *lines->field, "columns");
    for (int64_t i = 0; i < reader->fields && status == SHOAL_OK; i++)
        if (reader->place[i] >= 0)
            lines->field[reader->place[i]] = i;
    lines->whole = reader->all_in_order;
    return status;
}

static int finish_lines(text_reader *reader)
{
    shoal_data *data = reader->data;
    struct data_lines *lines = data->lines;
    char *about = NULL;
    lines->delimiter = reader->delimiter;
    lines->fields = reader->fields;
    data->has_header = reader->has_header;
    int status = data_set_shape(data, (uint64_t)count_lines(lines), (uint64_t)reader->kept, SHOAL_FLOAT64);
    if (status == SHOAL_OK)
        status = choose_fields(lines, reader);
    if (status == SHOAL_OK)
        status = data_text_describe(&about, reader);
    if (status == SHOAL_OK)
        status = base_format(&data->detail, "text, %s", about);
    base_free(&about);
    if (status < 0)
        return status;
    const data_line first = lines->header.size ? lines->header : data_lines_row(data, 0);
    lines->line_end = find_line_end(lines, first.at + first.size);
    return shoal_data_check(data);
}

static int open_lines(shoal_data *data, data_source *source, const shoal_data_options *options)
{
    const shoal_data_options wanted = {
        .header = options->header, .keep_columns = options->keep_columns, .drop_columns = options->drop_columns};
    struct data_lines *lines = data->lines;
    data_source again;
    text_reader reader = {0};
    int status = keep_text_of(data, source);
    if (status < 0)
        return status;
    data_source_of_bytes(&again, source->path, lines->text, lines->size);
    data_buffer_init(&lines->index, data->path, (int64_t)data->buffer.memory_limit);
    status = data_text_reader_open(&reader, data, &again, &wanted);
    if (status == SHOAL_OK) {
        lines->before = reader.first_line_at;
        lines->header = (data_line){reader.first_line_at, reader.has_header ? reader.first_line_bytes : 0};
        lines->longest = lines->header.size;
        status = take_lines(&reader);
    }
    if (status == SHOAL_OK)
        status = finish_lines(&reader);
    data_text_reader_close(&reader);
    return status;
}

const struct data_format data_text_lines = {.name = "text", .chooses_columns = true, .open = open_lines};

void data_lines_free(struct data_lines **lines)
{
    if (*lines) {
        data_buffer_release(&(*lines)->index);
        base_free(&(*lines)->field);
    }
    base_free(lines);
}

int data_lines_choose(shoal_data *data, const shoal_data_options *options)
{
    const data_table_columns table = data_columns_of(data);
    const shoal_data_options wanted = {.keep_columns = options->keep_columns, .drop_columns = options->drop_columns};
    size_t *offsets = NULL;
    data_chosen chosen;
    if (!wanted.keep_columns && !wanted.drop_columns)
        return SHOAL_OK;
    int status = data_columns_choose(&chosen, &table, &wanted);
    if (status == SHOAL_OK && data->names)
        status = base_alloc(&offsets, (size_t)chosen.count, sizeof *offsets, "names of columns");
    for (int64_t i = 0; i < chosen.count && status == SHOAL_OK; i++)
        if (offsets)
            offsets[i] = data->name_offsets[chosen.columns[i]];
    if (status == SHOAL_OK) {
        base_free(&data->name_offsets);
        data->name_offsets = offsets;
        base_free(&data->lines->field);
        data->lines->field = chosen.columns; /* all fields were columns, so columns count as fields do */
        chosen.columns = NULL;
        data->lines->whole = false;
        data->columns = chosen.count;
    }
    base_free(&chosen.columns);
    return status;
}

int data_lines_values(shoal_data **out, const shoal_data *data, const shoal_data_options *options)
{
    data_source source;
    shoal_data *values = NULL;
    data_source_of_bytes(&source, data->path, data->lines->text, data->lines->size);
    int status = data_new(&values, data->path, options->memory);
    if (status == SHOAL_OK) {
        values->format = &data_text;
        status = data_text.open(values, &source, options);
    }
    if (status == SHOAL_OK)
        status = data_refine(&values, options);
    if (status == SHOAL_OK)
        status = shoal_data_check(data);
    if (status < 0)
        shoal_data_free(&values);
    *out = values;
    return status;
}

/* ---- lines ------------------------------------------------------------------------------------------------------- */

data_line data_lines_row(const shoal_data *data, int64_t row)
{
    data_line line;
    memcpy(&line, data->lines->index.bytes + (size_t)row * sizeof line, sizeof line);
    if (line.size > data->lines->size - line.at)
        line.size = data->lines->size - line.at; /* the last one, without its end */
    return line;
}

int data_cells_init(data_cells *cells, const shoal_data *data)
{
    enum { NEWLINE_AND_NUL = 2, QUOTES_AND_DELIMITER = 3 };
    const struct data_lines *lines = data->lines;
    const size_t most = 2 * (lines->longest + NEWLINE_AND_NUL) + QUOTES_AND_DELIMITER * (size_t)lines->fields;
    *cells = (data_cells){0};
    int status = base_alloc(&cells->line, lines->longest + NEWLINE_AND_NUL, 1, "a line");
    if (status == SHOAL_OK)
        status = base_alloc(&cells->made, most, 1, "a line");
    if (status == SHOAL_OK)
        status = base_alloc(&cells->field, (size_t)lines->fields, sizeof *cells->field, "the fields of a line");
    return status;
}

void data_cells_release(data_cells *cells)
{
    base_free(&cells->line);
    base_free(&cells->made);
    base_free(&cells->field);
}

static bool is_ended(const struct data_lines *lines, data_line line)
{
    return line.size > 0 && is_newline(lines->text[line.at + line.size - 1]);
}

int data_cells_take(data_cells *cells, const shoal_data *data, data_line line)
{
    const struct data_lines *lines = data->lines;
    memcpy(cells->line, lines->text + line.at, line.size);
    size_t size = line.size;
    if (!is_ended(lines, line))
        cells->line[size++] = '\n';
    cells->line[size] = '\0';
    text_field field = {.next = cells->line};
    int64_t count = 0;
    /* A carriage return at the end of the copy is one that nothing follows. */
    if (cells->line[size - 1] == '\r')
        cells->line[size - 1] = '\n';
    for (; count < lines->fields && !field.last; count++) {
        if (!data_text_take_field(&field, field.next, cells->line + size, lines->delimiter))
            break;
        cells->field[count] = field;
    }
    if (count < lines->fields || !field.last)
        return shoal_fail(SHOAL_INVALID, "%s: the file changed while it was in use", data->path);
    return SHOAL_OK;
}

const char *data_cells_text(data_cells *cells, const shoal_data *data, int64_t column)
{
    const text_field *field = &cells->field[data->lines->field[column]];
    data_text_copy_field((char *)field->text, field); /* what ends the field is not needed any more */
    return field->text;
}

/* A field as it is in the file, or in quotes if it could be taken for something else without them. */
static char *render_field(char *to, const text_field *field, char delimiter)
{
    char after = field->text[field->length];
    *(char *)(field->text + field->length) = '\0';
    const bool quote = !field->quoted && (field->length > 0 || delimiter == ' ') && data_write_quotes(field->text);
    *(char *)(field->text + field->length) = after;
    if (quote || field->quoted)
        *to++ = '"';
    for (size_t i = 0; i < field->length; i++) {
        if (quote && field->text[i] == '"')
            *to++ = '"';
        *to++ = field->text[i];
    }
    if (quote || field->quoted)
        *to++ = '"';
    return to;
}

int data_lines_render(const char **out, size_t *size, data_cells *cells, const shoal_data *data, data_line line,
                      char delimiter)
{
    const struct data_lines *lines = data->lines;
    const bool as_it_is = lines->whole && delimiter == lines->delimiter;
    char *to = cells->made;
    *out = lines->text + line.at;
    *size = line.size;
    if (as_it_is && is_ended(lines, line))
        return SHOAL_OK;
    if (as_it_is) {
        memcpy(to, *out, line.size);
        to += line.size;
    } else {
        int status = data_cells_take(cells, data, line);
        if (status < 0)
            return status;
        for (int64_t i = 0; i < data->columns; i++) {
            if (i > 0)
                *to++ = delimiter;
            to = render_field(to, &cells->field[lines->field[i]], delimiter);
        }
    }
    to = stpcpy(to, lines->line_end);
    *out = cells->made;
    *size = (size_t)(to - cells->made);
    return SHOAL_OK;
}
