/* Lines and fields of a text file.  See data_text.h. */
#include "data_text.h"

#include <string.h>

/* Past a line end of any system; NULL when what follows a carriage return is not known yet. */
static const char *skip_newline(const char *at, const char *end)
{
    if (*at == '\n')
        return at + 1;
    if (at + 1 == end)
        return NULL;
    return at + 1 + (at[1] == '\n');
}

/* The quote that closes the one at `at`, or NULL. */
static const char *find_closing_quote(const char *at, const char *end)
{
    for (at++; (at = memchr(at, '"', (size_t)(end - at))) != NULL; at += 2)
        if (at[1] != '"')
            return at;
    return NULL;
}

/* The delimiter or line end after a field, or `end`. */
static const char *find_field_end(const char *at, const char *end, char delimiter)
{
    while (*at != delimiter && !is_newline(*at) && !(delimiter == ' ' && *at == '\t') && (*at || at < end))
        at++;
    return at;
}

/* Notes what follows a field whose text ends at `at`.  False if the chunk ends first. */
static bool finish_field(text_field *field, const char *at, const char *end, char delimiter)
{
    at = skip_blanks(at, delimiter);
    if (at == end)
        return false;
    field->last = is_newline(*at);
    if (field->last)
        field->next = skip_newline(at, end);
    else
        field->next = *at == delimiter ? at + 1 : at;
    return field->next != NULL;
}

static bool take_plain_field(text_field *field, const char *at, const char *end, char delimiter)
{
    const char *stop = find_field_end(at, end, delimiter);
    field->quoted = false;
    field->text = at;
    field->length = (size_t)(stop - at);
    while (field->length && is_blank(at[field->length - 1], delimiter))
        field->length--;
    return finish_field(field, stop, end, delimiter);
}

bool data_text_take_field(text_field *field, const char *at, const char *end, char delimiter)
{
    at = skip_blanks(at, delimiter);
    if (*at != '"')
        return take_plain_field(field, at, end, delimiter);
    const char *close = find_closing_quote(at, end);
    if (!close || close + 1 == end)
        return false;
    const char *behind = skip_blanks(close + 1, delimiter);
    bool separated = *behind == delimiter || is_newline(*behind) || (delimiter == ' ' && behind > close + 1);
    if (behind < end && !separated)
        return take_plain_field(field, at, end, delimiter); /* "a"b: the quotes are part of the text */
    field->quoted = true;
    field->text = at + 1;
    field->length = (size_t)(close - at - 1);
    return finish_field(field, close + 1, end, delimiter);
}

bool data_text_is_number(const text_field *field)
{
    return data_is_number(field->text, field->length);
}

size_t data_text_copy_field(char *out, const text_field *field)
{
    char *to = out;
    for (size_t i = 0; i < field->length; i++) {
        *to++ = field->text[i];
        i += field->quoted && field->text[i] == '"';
    }
    *to = '\0';
    return (size_t)(to - out);
}

int data_text_skip_to_row(text_reader *reader)
{
    for (;;) {
        const char *at = skip_blanks(reader->at, reader->delimiter);
        if (*at == '#')
            while (!is_newline(*at) && (*at || at < reader->end))
                at++;
        if (at == reader->end)
            return INCOMPLETE;
        if (!is_newline(*at))
            return SHOAL_OK;
        if (!(at = skip_newline(at, reader->end)))
            return INCOMPLETE;
        reader->at = at;
        reader->line++;
    }
}

int64_t data_text_count_newlines(const char *from, const char *to)
{
    int64_t count = 0;
    for (const char *at = from; at < to; at++)
        count += *at == '\n' || (*at == '\r' && at[1] != '\n');
    return count;
}
