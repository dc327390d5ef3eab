/* Text files that outputs would replace.  See content_text.h. */
#include "content_text.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "data/format/data_text.h"

enum { WORD_MOST = 4096 }; /* bytes of a word that the start of a file may cut off */

static bool is_words(const data_content *content)
{
    return content->type && strcmp(content->type, "words") == 0;
}

/* Types that are not known are floating-point ones, as most outputs are. */
static shoal_type type_of(const data_content *content)
{
    shoal_type type = SHOAL_FLOAT64;
    for (int i = 0; content->type && i < SHOAL_TYPES; i++)
        if (strcmp(content->type, shoal_type_name((shoal_type)i)) == 0)
            type = (shoal_type)i;
    return type;
}

static bool is_float(shoal_type type)
{
    return type == SHOAL_FLOAT32 || type == SHOAL_FLOAT64;
}

/* ---- as written -------------------------------------------------------------------------------------------------- */

/* Digits without zeros before them, after a minus or not. */
static bool is_integer(const char *text, size_t length)
{
    const bool negative = length > 0 && text[0] == '-';
    size_t digits = length - negative;
    text += negative;
    if (digits == 0 || digits > 20 || (text[0] == '0' && (digits > 1 || negative)))
        return false;
    for (size_t i = 0; i < digits; i++)
        if (!isdigit((unsigned char)text[i]))
            return false;
    return true;
}

static bool is_integer_of(const char *text, size_t length, shoal_type type)
{
    const bool is_signed = type >= SHOAL_INT8 && type <= SHOAL_INT64;
    const int bits = type == SHOAL_BOOL ? 1 : 8 * (int)shoal_type_size(type) - is_signed;
    if (!is_integer(text, length) || (text[0] == '-' && !is_signed))
        return false;
    errno = 0;
    const unsigned long long magnitude = strtoull(text + (text[0] == '-'), NULL, 10);
    return errno == 0 && (bits == 64 || magnitude <= (1ULL << bits) - (text[0] != '-'));
}

static bool is_number_of(const text_field *field, shoal_type type)
{
    char printed[DATA_NUMBER_CHARS];
    double value;
    if (field->quoted)
        return false;
    if (!is_float(type))
        return is_integer_of(field->text, field->length, type);
    if (field->length == 0 || data_number_parse(&value, field->text) != field->text + field->length)
        return false;
    const float single = (float)value;
    const void *at = type == SHOAL_FLOAT32 ? (const void *)&single : &value;
    return data_number_print(printed, at, type, 0) == field->length && memcmp(printed, field->text, field->length) == 0;
}

/* Whether a field is this word, in quotes just where the writer puts them. */
static bool is_word(const text_field *field, const char *word)
{
    if (field->quoted != data_write_quotes(word))
        return false;
    for (size_t i = 0; i < field->length; i++, word++) {
        if (*word == '\0' || field->text[i] != *word)
            return false;
        i += field->quoted && *word == '"'; /* which is doubled */
    }
    return *word == '\0';
}

static bool is_one_of(const text_field *field, const data_codes *words)
{
    for (int64_t i = 0; i < words->count; i++)
        if (is_word(field, words->word[i]))
            return true;
    return false;
}

/* Whether there is nothing but the field, and a delimiter or a newline. */
static bool is_bare(const text_field *field, const char *at, char delimiter)
{
    const char *end = field->text + field->length + field->quoted;
    return field->text - field->quoted == at && field->next == end + 1 && *end == (field->last ? '\n' : delimiter);
}

static bool is_as_written(const text_field *field, const data_content *content, int64_t line, int64_t column)
{
    if (line == 0 && content->names)
        return column < shoal_data_columns(content->names) &&
               is_word(field, shoal_data_column_name(content->names, column));
    return is_words(content) ? is_one_of(field, &content->words) : is_number_of(field, type_of(content));
}

bool data_content_text_fits(const content_text *start, const data_content *content)
{
    const char *at = start->text, *end = at + start->size;
    const size_t cut_most = is_words(content) || content->names ? WORD_MOST : DATA_NUMBER_CHARS;
    int64_t columns = content->columns, line = 0;
    text_field field = {0};
    for (; at < end; line++) {
        int64_t fields = 0;
        do {
            if (!data_text_take_field(&field, at, end, start->delimiter)) /* the start ends within a field */
                return !start->whole && (size_t)(end - at) < cut_most && (line > 0 || fields > 0);
            if (!is_bare(&field, at, start->delimiter) || !is_as_written(&field, content, line, fields))
                return false;
            at = field.next;
            fields++;
        } while (!field.last);
        if (columns > 0 && fields != columns)
            return false;
        columns = fields;
    }
    return line > (content->names != NULL);
}

/* ---- loosely read ------------------------------------------------------------------------------------------------ */

/* Text is UTF-8 and has no control characters but those of lines; the start of a file may end within a letter. */
static bool is_text(const content_text *start)
{
    enum { LETTER_MOST = 4 };
    const char *end = start->text + start->size;
    bool plain = true;
    for (const char *at = start->text; at < end && (start->whole || end - at >= LETTER_MOST);) {
        const bool of_lines = *at && strchr("\t\n\r\f", *at);
        at += base_text_next(&plain, at);
        if (!plain && !of_lines)
            return false;
    }
    return true;
}

static int kind_of(const text_field *field)
{
    if (field->length == 0 || is_integer(field->text, field->length))
        return TABLE_INTEGERS;
    return data_text_is_number(field) ? TABLE_NUMBERS : TABLE_WORDS;
}

/* Reads the next line that is neither blank nor a comment.  False when there is none as a whole. */
static bool read_line(content_table *out, const char **at, const char *end, char delimiter)
{
    text_reader reader = {.at = *at, .end = (char *)end, .delimiter = delimiter};
    text_field field;
    *out = (content_table){.values = TABLE_INTEGERS};
    if (data_text_skip_to_row(&reader) != SHOAL_OK)
        return false;
    for (*at = reader.at; data_text_take_field(&field, *at, end, delimiter);) {
        out->values = kind_of(&field) > (int)out->values ? kind_of(&field) : (int)out->values;
        out->columns++;
        *at = field.next;
        if (field.last)
            return true;
    }
    return false;
}

/* `start->text` ends with a newline, which the file may lack. */
void data_content_text_read(content_table *out, const content_text *start)
{
    const char *at = start->text, *end = at + start->size;
    content_table first, line;
    *out = (content_table){.values = is_text(start) ? TABLE_TEXT : TABLE_BYTES};
    if (out->values == TABLE_BYTES || !read_line(&first, &at, end, start->delimiter))
        return;
    content_table below = {.values = TABLE_INTEGERS, .columns = 0};
    while (read_line(&line, &at, end, start->delimiter)) {
        if (line.columns != first.columns)
            return;
        below.values = line.values > below.values ? line.values : below.values;
        below.columns = line.columns;
    }
    *out = first;
    out->header = first.values == TABLE_WORDS && below.columns > 0 && below.values != TABLE_WORDS;
    if (below.columns > 0 && (out->header || below.values > first.values))
        out->values = below.values;
}

/* ---- in words ---------------------------------------------------------------------------------------------------- */

void data_content_text_wanted(content_table *out, const data_content *content)
{
    *out = (content_table){.values = is_words(content)            ? TABLE_WORDS
                                     : is_float(type_of(content)) ? TABLE_NUMBERS
                                                                  : TABLE_INTEGERS,
                           .columns = content->columns,
                           .header = content->names != NULL};
}

void data_content_text_describe(char *out, size_t size, const content_table *table)
{
    static const char *const values[] = {"unknown bytes", "text", "integers", "numbers", "words"};
    if (table->columns == 0)
        snprintf(out, size, "%s", values[table->values]);
    else
        snprintf(out, size, "%s in %lld column%s%s", values[table->values], (long long)table->columns,
                 table->columns == 1 ? "" : "s", table->header ? " below a header" : "");
}
