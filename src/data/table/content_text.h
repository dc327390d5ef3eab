/* Whether a text file is just what a command would write there, and what it seems to hold otherwise.
 *
 * Numbers and words are compared with how data_array_write prints them, byte by byte: a file that was typed or came
 * from another program nearly always differs somewhere, and is then not replaced. */
#ifndef DATA_CONTENT_TEXT_H
#define DATA_CONTENT_TEXT_H

#include "content.h"

#include <stddef.h>

/* The start of a file.  `text` has `size` bytes and then NUL. */
typedef struct content_text {
    const char *text;
    size_t size;
    bool whole; /* nothing follows it */
    char delimiter;
} content_text;

/* What lines of values are, loosely read. */
typedef struct content_table {
    enum { TABLE_BYTES, TABLE_TEXT, TABLE_INTEGERS, TABLE_NUMBERS, TABLE_WORDS } values; /* the first two: no table */
    int64_t columns;
    bool header; /* a line of words above numbers */
} content_table;

/* Whether every field that was read is what the command would write in its place. */
bool data_content_text_fits(const content_text *start, const data_content *content);
/* The same for text that is rows of content->lines: whether each line that was read is one of them. */
int data_content_lines_fit(bool *out, const content_text *start, const data_content *content);
void data_content_text_read(content_table *out, const content_text *start);
/* What the command would write. */
void data_content_text_wanted(content_table *out, const data_content *content);
/* "integers in 3 columns below a header" */
void data_content_text_describe(char *out, size_t size, const content_table *table);

#endif
