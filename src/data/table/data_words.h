/* A column of text on its way to numbers: the different words, numbered as they come, and in the end by the order of
 * their bytes.
 *
 * Whether a column holds numbers or words is known only once all of it is read, so the words are kept, up to
 * DATA_WORDS_MOST of them; a column with more different values than that must be one of numbers. */
#ifndef DATA_WORDS_H
#define DATA_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DATA_WORDS_MOST = 4096, DATA_WORD_BYTES = 255 };

typedef struct data_word {
    char *text;
    int32_t number; /* in the order in which they came */
} data_word;

typedef struct data_words {
    data_word *sorted;
    double *value; /* by number: what the word is as a number */
    int32_t count;
    bool text;  /* some word is not a number */
    bool ended; /* there are too many numbers: they count as such from now on */
} data_words;

/* The number of a word, which is `length` bytes of UTF-8; *is_full instead when it is one too many.  `value` is its
 * value, and `text` says that it has none. */
int data_words_find(int32_t *out, bool *is_full, data_words *words, const char *word, size_t length, double value,
                    bool text);
/* For words that are text: *words by the order of their bytes, and of each number which of them it is.  Takes the
 * texts. */
int data_words_finish(char ***out, int32_t **ranks, data_words *words);
void data_words_release(data_words *words);
/* Frees what data_words_finish gave. */
void data_words_free(char ***words, int64_t count);

#endif
