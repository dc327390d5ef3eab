/* The column of a text file that may hold words.  See data_text.h and data_words.h. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "data_text.h"

static double *cell_at(const text_reader *reader, int64_t row)
{
    return (double *)(void *)reader->data->buffer.bytes + row * reader->kept + reader->target;
}

static int64_t rows_read(const text_reader *reader)
{
    return (int64_t)(reader->data->buffer.size / ((size_t)reader->kept * sizeof(double)));
}

/* The rows read so far have numbers of words in this column, and get what those stand for. */
static void replace_cells(const text_reader *reader, const double *value)
{
    const int64_t rows = rows_read(reader);
    for (int64_t i = 0; i < rows; i++) {
        double *cell = cell_at(reader, i);
        if (!isnan(*cell))
            *cell = value[(int32_t)*cell];
    }
}

static int fail_word(const text_reader *reader, const char *at, int64_t index, const char *what)
{
    char place[TEXT_PLACE_BYTES];
    data_text_name_place(place, reader, reader->line + data_text_count_newlines(reader->at, at), index);
    return shoal_fail(SHOAL_INVALID, "%s: %s: %s", reader->data->path, place, what);
}

static int copy_word(size_t *length, text_reader *reader, const text_field *field, int64_t index)
{
    int status =
        reader->word ? SHOAL_OK : base_alloc(&reader->word, 2 * DATA_WORD_BYTES + 2, sizeof *reader->word, "a word");
    if (status < 0)
        return status;
    if (field->length > 2 * DATA_WORD_BYTES)
        return fail_word(reader, field->text, index, "the name of a class is longer than 255 bytes");
    *length = data_text_copy_field(reader->word, field);
    if (*length > DATA_WORD_BYTES)
        return fail_word(reader, field->text, index, "the name of a class is longer than 255 bytes");
    if (!base_text_is_clean(reader->word))
        return fail_word(reader, field->text, index, "the name of a class holds a control character or is not UTF-8");
    return SHOAL_OK;
}

/* More numbers than can be words: from now on they are what they are. */
static int end_words(text_reader *reader, const text_field *field, int64_t index)
{
    if (reader->words.text)
        return fail_word(reader, field->text, index,
                         "the column holds text and more than 4096 different values; are they classes?");
    replace_cells(reader, reader->words.value);
    reader->words.ended = true;
    return SHOAL_OK;
}

int data_text_take_target(double *out, const text_field *field, text_reader *reader, int64_t index)
{
    int32_t number = 0;
    size_t length = 0;
    bool full = false;
    double value = NAN;
    const bool is_number = data_text_is_number(field);
    if (is_number)
        data_number_parse(&value, field->text);
    if (reader->words.ended && !is_number)
        return fail_word(reader, field->text, index, "text in a column of more than 4096 different numbers");
    *out = value;
    if (reader->words.ended)
        return SHOAL_OK;
    int status = copy_word(&length, reader, field, index);
    if (status == SHOAL_OK)
        status = data_words_find(&number, &full, &reader->words, reader->word, length, value, !is_number);
    if (status == SHOAL_OK && full)
        status = end_words(reader, field, index);
    if (status == SHOAL_OK && !full)
        *out = number;
    return status;
}

int data_text_finish_target(text_reader *reader)
{
    shoal_data *data = reader->data;
    int32_t *ranks = NULL;
    if (reader->target < 0 || reader->words.ended || reader->words.count == 0)
        return SHOAL_OK;
    if (!reader->words.text) {
        replace_cells(reader, reader->words.value);
        return SHOAL_OK;
    }
    data->words_count = reader->words.count;
    int status = data_words_finish(&data->words, &ranks, &reader->words);
    for (int32_t i = 0; i < reader->words.count && status == SHOAL_OK; i++)
        reader->words.value[i] = ranks[i];
    if (status == SHOAL_OK)
        replace_cells(reader, reader->words.value);
    base_free(&ranks);
    return status;
}
