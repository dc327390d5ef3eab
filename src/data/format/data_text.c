/* Numbers as text: comma, tab, semicolon or blanks between fields, one row a line, gzip or not.  What is
 * accepted is described in docs/data.md; how chunks work, in data_text.h.
 *
 * The text is parsed once, straight into the data set's buffer as float64. */
#include "data_text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "data/table/data_missing.h"

enum { CHUNK_BYTES = 256 << 10, GREATEST_LINE = 64 << 20 };

static bool recognise_text(const data_hint *hint)
{
    if (!hint->head)
        return false;
    if (hint->head_size >= 2 && (memcmp(hint->head, "\xff\xfe", 2) == 0 || memcmp(hint->head, "\xfe\xff", 2) == 0))
        return true; /* UTF-16, which is text, though not ours: open_text says so */
    for (size_t i = 0; i < hint->head_size; i++)
        if (hint->head[i] < 0x20 && !memchr("\t\n\v\f\r", hint->head[i], 5))
            return false;
    return true;
}

/* ---- chunks ------------------------------------------------------------------------------------------------------ */

static int grow_chunk(text_reader *reader)
{
    if (reader->capacity >= GREATEST_LINE)
        return shoal_fail(SHOAL_INVALID, "%s: line %lld is longer than %d MiB", reader->data->path,
                          (long long)reader->line, GREATEST_LINE >> 20);
    size_t capacity = reader->capacity ? 2 * reader->capacity : CHUNK_BYTES;
    size_t done = reader->chunk ? (size_t)(reader->at - reader->chunk) : 0;
    size_t used = reader->chunk ? (size_t)(reader->end - reader->chunk) : 0;
    int status = base_grow(&reader->chunk, used, capacity + 2, 1, "a part of a text file");
    if (status < 0)
        return status;
    reader->capacity = capacity;
    reader->at = reader->chunk + done;
    reader->end = reader->chunk + used;
    return SHOAL_OK;
}

/* Moves what is left to the front and reads more after it. */
static int fill_chunk(text_reader *reader)
{
    size_t left = (size_t)(reader->end - reader->at), got;
    if (left)
        memmove(reader->chunk, reader->at, left);
    reader->at = reader->chunk;
    reader->end = reader->chunk + left;
    int status = left > reader->capacity / 2 ? grow_chunk(reader) : SHOAL_OK;
    if (status == SHOAL_OK)
        status = data_source_read(&got, reader->source, reader->end, reader->capacity - left);
    if (status < 0)
        return status;
    reader->ended = got < reader->capacity - left;
    reader->end += got;
    if (reader->ended && reader->end > reader->at && reader->end[-1] != '\n')
        reader->added = true;
    if (reader->added)
        *reader->end++ = '\n';
    *reader->end = '\0';
    return SHOAL_OK;
}

int data_text_with_enough(text_reader *reader, int (*step)(text_reader *reader))
{
    int status = step(reader);
    while (status == INCOMPLETE && !reader->ended) {
        status = fill_chunk(reader);
        if (status == SHOAL_OK)
            status = step(reader);
    }
    return status;
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

void data_text_name_place(char out[TEXT_PLACE_BYTES], const text_reader *reader, int64_t line, int64_t field)
{
    const char *name = reader->names ? reader->data->names + reader->names[field] : "";
    snprintf(out, TEXT_PLACE_BYTES, "line %lld, column %lld%s%.*s%s", (long long)line, (long long)field + 1,
             *name ? " (" : "", DATA_SHOWN_BYTES, name, *name ? ")" : "");
}

/* By its name where that needs no quotes, since a name may be another column's number. */
static void advise_to_drop(char *out, size_t size, const text_reader *reader, int64_t field)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.";
    const char *name = reader->names ? reader->data->names + reader->names[field] : "";
    char called[DATA_SHOWN_BYTES + 1];
    if (*name && strlen(name) < sizeof called && strspn(name, plain) == strlen(name))
        strcpy(called, name);
    else
        snprintf(called, sizeof called, "%lld", (long long)field + 1);
    snprintf(out, size, "; --drop-column %s leaves the column out%s%s%s", called,
             reader->target >= 0 ? ", --target " : "", reader->target >= 0 ? called : "",
             reader->target >= 0 ? " makes it the target" : "");
}

/* "x.csv: line 2, column 5 (species): "cat" is not a number", and what to do. */
static int describe_field(char **out, const text_reader *reader, int64_t line, int64_t index, const text_field *field)
{
    const shoal_data *data = reader->data;
    char place[TEXT_PLACE_BYTES], advice[96 + 2 * DATA_SHOWN_BYTES] = "";
    data_text_name_place(place, reader, line, index);
    int shown = field->length < DATA_SHOWN_BYTES ? (int)field->length : DATA_SHOWN_BYTES;
    if (memchr(field->text, ',', field->length))
        strcpy(advice, "; write numbers like 1234.5, without commas");
    else if (line == reader->first_line && reader->may_be_header)
        strcpy(advice, "; if this line holds the names of columns, use --header yes");
    else if (data->buffer.size == 0 && !reader->keep_text) /* the first row: no typing error, but a column of text */
        advise_to_drop(advice, sizeof advice, reader, index);
    return base_format(out, "%s: %s: \"%.*s\" is not a number%s", data->path, place, shown, field->text, advice);
}

/* A cell that should be a number: an error, or the first of a column of text. */
static int take_text(text_reader *reader, int64_t index, const text_field *field)
{
    const int64_t line = reader->line + data_text_count_newlines(reader->at, field->text);
    char *sentence = NULL;
    int status = SHOAL_OK;
    if (!reader->keep_text) {
        status = describe_field(&sentence, reader, line, index, field);
        if (status == SHOAL_OK)
            status = shoal_fail(SHOAL_INVALID, "%s", sentence);
        base_free(&sentence);
        return status;
    }
    char ***noted = &reader->data->not_numbers;
    if (!*noted)
        status = base_alloc(noted, (size_t)reader->kept, sizeof **noted, "columns");
    if (status == SHOAL_OK && !(*noted)[reader->place[index]])
        status = describe_field(&(*noted)[reader->place[index]], reader, line, index, field);
    return status;
}

static int fail_missing(const text_reader *reader)
{
    char place[TEXT_PLACE_BYTES];
    data_text_name_place(place, reader, reader->missing_line, reader->missing_field);
    return shoal_fail(SHOAL_INVALID, "%s: %lld value%s missing, the first in %s; %s--missing drop leaves out such rows",
                      reader->data->path, (long long)reader->missing, reader->missing == 1 ? " is" : "s are", place,
                      reader->missing_target ? "" : "--missing mean fills in the mean of the column, ");
}

int data_text_fail_ragged(const text_reader *reader, int64_t line, int64_t fields)
{
    if (fields > reader->fields)
        return shoal_fail(SHOAL_INVALID, "%s: line %lld has more fields than line %lld (%lld)", reader->data->path,
                          (long long)line, (long long)reader->first_line, (long long)reader->fields);
    return shoal_fail(SHOAL_INVALID, "%s: line %lld has fewer fields (%lld) than line %lld (%lld)", reader->data->path,
                      (long long)line, (long long)fields, (long long)reader->first_line, (long long)reader->fields);
}

/* The common case: a bare number.  False leaves the field, such as "nan", to take_any_cell. */
static inline bool take_number(double *out, text_field *field, const char *at, char delimiter)
{
    const char *behind = data_number_parse(out, skip_blanks(at, delimiter));
    if (!behind || isnan(*out))
        return false;
    const char *stop = skip_blanks(behind, delimiter);
    const char *newline = stop + (*stop == '\r');
    field->last = *newline == '\n';
    if (field->last)
        field->next = newline + 1;
    else if (delimiter == ' ')
        field->next = stop > behind && *stop && *stop != '\r' ? stop : NULL;
    else
        field->next = *stop == delimiter ? stop + 1 : NULL;
    return field->next != NULL;
}

/* What was seen of a row, which counts once all of it is there. */
typedef struct row_seen {
    int64_t missing, missing_field; /* cells that hold nothing or "nan", and the first of them */
    int64_t missing_line;
    bool blank, missing_target; /* one of them is not "nan", which is a number to those who want it; is the target's */
    int64_t extra_lines;        /* line ends inside of fields */
} row_seen;

static void see_missing(row_seen *seen, const text_reader *reader, const text_field *field, int64_t index)
{
    seen->blank |= !data_text_is_number(field);
    seen->missing_target |= reader->place[index] == reader->target;
    if (seen->missing++ > 0)
        return;
    seen->missing_field = index;
    seen->missing_line = reader->line + data_text_count_newlines(reader->at, field->text);
}

/* Any other field that should be a number, or is the target's. */
static int take_any_cell(double *out, text_field *field, row_seen *seen, text_reader *reader, const char *at,
                         int64_t index)
{
    const bool is_target = reader->place[index] == reader->target;
    if (!data_text_take_field(field, at, reader->end, reader->delimiter))
        return INCOMPLETE;
    const bool is_number = data_text_is_number(field);
    if (is_number)
        data_number_parse(out, field->text);
    else
        *out = NAN;
    if (data_is_missing(field->text, field->length) || (is_number && isnan(*out)))
        see_missing(seen, reader, field, index);
    else if (is_target)
        return data_text_take_target(out, field, reader, index);
    else if (!is_number)
        return take_text(reader, index, field);
    return SHOAL_OK;
}

/* Nearly all rows: takes the bare numbers that a line begins with, and returns how many there are. */
static int64_t take_bare_numbers(double *out, text_field *field, const text_reader *reader)
{
    const int64_t fields = reader->fields;
    const char delimiter = reader->delimiter;
    int64_t count = 0;
    for (text_field next; count < fields && !field->last; count++) {
        if (!take_number(&out[count], &next, field->next, delimiter))
            break;
        field->last = next.last;
        field->next = next.next;
    }
    return count;
}

/* One field, whatever it holds and wherever it goes. */
static int parse_field(double *out, text_field *field, row_seen *seen, text_reader *reader, int64_t index)
{
    const char *at = field->next;
    const int64_t place = reader->place[index];
    if (place >= 0 && (place != reader->target || reader->words.ended) &&
        take_number(&out[place], field, at, reader->delimiter))
        return SHOAL_OK;
    if (place >= 0)
        return take_any_cell(&out[place], field, seen, reader, at, index);
    if (!data_text_take_field(field, at, reader->end, reader->delimiter))
        return INCOMPLETE;
    seen->extra_lines += field->quoted ? data_text_count_newlines(field->text, field->text + field->length) : 0;
    return SHOAL_OK;
}

/* Parses the line at reader->at into `out`, and moves past it only if that succeeds. */
static int parse_row(text_reader *reader, double *out)
{
    text_field field = {.next = reader->at};
    row_seen seen = {0};
    int64_t done = reader->all_in_order ? take_bare_numbers(out, &field, reader) : 0;
    for (; !field.last; done++) {
        if (done == reader->fields)
            return data_text_fail_ragged(reader, reader->line + seen.extra_lines, done + 1);
        int status = parse_field(out, &field, &seen, reader, done);
        if (status != SHOAL_OK)
            return status;
    }
    if (done < reader->fields)
        return data_text_fail_ragged(reader, reader->line, done);
    if (seen.missing > 0 && reader->missing == 0) {
        reader->missing_line = seen.missing_line;
        reader->missing_field = seen.missing_field;
    }
    reader->missing += seen.missing;
    reader->blank |= seen.blank;
    reader->missing_target |= seen.missing_target;
    reader->at = field.next;
    reader->line += 1 + seen.extra_lines;
    return SHOAL_OK;
}

static int parse_next_row(text_reader *reader)
{
    data_buffer *buffer = &reader->data->buffer;
    size_t row_bytes = (size_t)reader->kept * sizeof(double);
    int status = data_text_skip_to_row(reader);
    if (status == SHOAL_OK)
        status = data_buffer_extend(buffer, row_bytes);
    if (status == SHOAL_OK)
        status = parse_row(reader, (double *)(void *)(buffer->bytes + buffer->size));
    if (status == SHOAL_OK)
        buffer->size += row_bytes;
    return status;
}

static int parse_rows(text_reader *reader)
{
    int status;
    do
        status = data_text_with_enough(reader, parse_next_row);
    while (status == SHOAL_OK);
    return status < 0 ? status : data_text_check_end(reader);
}

int data_text_check_end(text_reader *reader)
{
    if (reader->at < reader->end && data_text_skip_to_row(reader) == SHOAL_OK)
        return shoal_fail(SHOAL_INVALID, "%s: line %lld: a quote is opened and never closed", reader->data->path,
                          (long long)reader->line);
    return SHOAL_OK;
}

size_t data_text_position(const text_reader *reader)
{
    return reader->source->position + reader->added - (size_t)(reader->end - reader->at);
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static int start_text(text_reader *reader)
{
    int status = grow_chunk(reader);
    if (status == SHOAL_OK)
        status = fill_chunk(reader);
    if (status < 0)
        return status;
    if (memcmp(reader->at, "\xff\xfe", 2) == 0 || memcmp(reader->at, "\xfe\xff", 2) == 0)
        return shoal_fail(SHOAL_INVALID, "%s: this is UTF-16 text; save it as UTF-8", reader->data->path);
    if (strncmp(reader->at, "\xef\xbb\xbf", 3) == 0)
        reader->at += 3; /* the mark that some programs put before UTF-8 */
    return SHOAL_OK;
}

static int finish_text(text_reader *reader, const shoal_data_options *options)
{
    shoal_data *data = reader->data;
    if (reader->blank && options->missing == SHOAL_MISSING_REFUSE)
        return fail_missing(reader);
    int status = data_text_finish_target(reader);
    if (status < 0)
        return status;
    data->has_header = reader->has_header;
    data_buffer_trim(&data->buffer);
    data->values = data->buffer.bytes;
    uint64_t rows = data->buffer.size / ((size_t)reader->kept * sizeof(double));
    char *lines = NULL;
    status = data_set_shape(data, rows, (uint64_t)reader->kept, SHOAL_FLOAT64);
    if (status == SHOAL_OK)
        status = data_text_describe(&lines, reader);
    if (status == SHOAL_OK)
        status = base_format(&data->detail, "text, %s, %s", lines, data_kept(data));
    base_free(&lines);
    return status;
}

int data_text_describe(char **out, const text_reader *reader)
{
    const char *delimiter = reader->fields == 1         ? "one field per line"
                            : reader->delimiter == '\t' ? "tab between fields"
                            : reader->delimiter == ';'  ? "semicolon between fields"
                            : reader->delimiter == ','  ? "comma between fields"
                                                        : "blanks between fields";
    return base_format(out, "%s, %s%s", delimiter, reader->has_header ? "header line" : "no header",
                       data_source_detail(reader->source));
}

int data_text_reader_open(text_reader *reader, shoal_data *data, data_source *source, const shoal_data_options *options)
{
    *reader = (text_reader){.data = data,
                            .source = source,
                            .line = 1,
                            .delimiter = ',',
                            .header = options->header,
                            .target = -1,
                            .keep_text = options->keep_text};
    int status = start_text(reader);
    if (status == SHOAL_OK)
        status = data_text_read_start(reader);
    return status == SHOAL_OK ? data_text_choose_columns(reader, options) : status;
}

void data_text_reader_close(text_reader *reader)
{
    data_words_release(&reader->words);
    base_free(&reader->word);
    base_free(&reader->names);
    base_free(&reader->place);
    base_free(&reader->chunk);
}

static int open_text(shoal_data *data, data_source *source, const shoal_data_options *options)
{
    text_reader reader;
    int status = data_text_reader_open(&reader, data, source, options);
    if (status == SHOAL_OK)
        status = parse_rows(&reader);
    if (status == SHOAL_OK)
        status = finish_text(&reader, options);
    if (status < 0) /* the data set does not know how many columns it would have had */
        data_words_free(&data->not_numbers, reader.kept);
    data_text_reader_close(&reader);
    return status;
}

const struct data_format data_text = {
    .name = "text", .chooses_columns = true, .recognise = recognise_text, .open = open_text};
