/* Words of a column.  See data_words.h. */
#include "data_words.h"

#include <string.h>
#include <shoal/error.h>

#include "base/memory.h"

static int compare_word(const char *word, size_t length, const char *other)
{
    const size_t other_length = strlen(other), common = length < other_length ? length : other_length;
    const int order = memcmp(word, other, common);
    return order ? order : length < other_length ? -1 : length > other_length;
}

/* Where a word is, or belongs. */
static int32_t find_place(bool *found, const data_words *words, const char *word, size_t length)
{
    int32_t low = 0, high = words->count;
    *found = false;
    while (low < high && !*found) {
        const int32_t middle = low + (high - low) / 2;
        const int order = compare_word(word, length, words->sorted[middle].text);
        *found = order == 0;
        if (order == 0)
            low = middle;
        else if (order > 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int make_room(data_words *words)
{
    int status = words->sorted ? SHOAL_OK : base_alloc(&words->sorted, DATA_WORDS_MOST, sizeof *words->sorted, "words");
    if (status == SHOAL_OK && !words->value)
        status = base_alloc(&words->value, DATA_WORDS_MOST, sizeof *words->value, "words");
    return status;
}

int data_words_find(int32_t *out, bool *is_full, data_words *words, const char *word, size_t length, double value,
                    bool text)
{
    bool found;
    char *copy = NULL;
    const int32_t place = find_place(&found, words, word, length);
    *is_full = !found && words->count == DATA_WORDS_MOST;
    words->text |= text;
    if (found)
        *out = words->sorted[place].number;
    if (found || *is_full)
        return SHOAL_OK;
    int status = make_room(words);
    if (status == SHOAL_OK)
        status = base_copy_text_n(&copy, word, length);
    if (status < 0)
        return status;
    memmove(words->sorted + place + 1, words->sorted + place, (size_t)(words->count - place) * sizeof *words->sorted);
    words->sorted[place] = (data_word){copy, words->count};
    words->value[words->count] = value;
    *out = words->count++;
    return SHOAL_OK;
}

int data_words_finish(char ***out, int32_t **ranks, data_words *words)
{
    int status = base_alloc(out, (size_t)words->count, sizeof **out, "words");
    if (status == SHOAL_OK)
        status = base_alloc(ranks, (size_t)words->count, sizeof **ranks, "words");
    for (int32_t i = 0; i < words->count && status == SHOAL_OK; i++) {
        (*ranks)[words->sorted[i].number] = i;
        (*out)[i] = words->sorted[i].text;
        words->sorted[i].text = NULL;
    }
    return status;
}

void data_words_release(data_words *words)
{
    for (int32_t i = 0; i < words->count; i++)
        base_free(&words->sorted[i].text);
    base_free(&words->sorted);
    base_free(&words->value);
}

void data_words_free(char ***words, int64_t count)
{
    for (int64_t i = 0; *words && i < count; i++)
        base_free(&(*words)[i]);
    base_free(words);
}
