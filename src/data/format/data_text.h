/* What the files of the text reader share: chunks and rows (data_text.c), lines and fields (data_text_fields.c), the
 * first line with what follows from it (data_text_start.c, data_text_header.c), and words (data_text_target.c).
 *
 * The text is read in chunks.  A chunk ends with NUL, at which every scan stops; what reaches the end of the
 * chunk is given up as INCOMPLETE and done again from its start when more has been read. */
#ifndef DATA_TEXT_H
#define DATA_TEXT_H

#include "data/table/data_columns.h"
#include "data/data_internal.h"
#include "data/table/data_words.h"

enum { INCOMPLETE = 1 }; /* beside SHOAL_OK and the errors: the chunk ended first */

typedef struct text_reader {
    shoal_data *data;
    data_source *source;
    char *chunk; /* of capacity + 2 bytes: a newline and NUL may be added */
    size_t capacity;
    const char *at;     /* what is not parsed yet */
    char *end;          /* holds NUL */
    bool ended;         /* nothing follows the chunk, which then ends with a newline */
    bool added;         /* that newline is not in the file */
    char delimiter;     /* ' ' stands for any number of blanks */
    int64_t line;       /* the number of the line at `at`, from 1 */
    int64_t first_line; /* that of the header, or of the first row if there is none */
    size_t first_line_at, first_line_bytes;
    int64_t fields;       /* of each line */
    size_t *names;        /* where the name of each field starts in data->names; NULL without a header */
    int header;           /* what the options say: SHOAL_HEADER_AUTO, ... */
    bool has_header;      /* what came of it */
    bool may_be_header;   /* a first line that counts as a row with a typing error */
    int64_t kept;         /* fields that become columns */
    int64_t *place;       /* of each field, the column that it becomes, or -1 */
    bool all_in_order;    /* field i becomes column i, for all, and none may hold words */
    int64_t target;       /* the column that may hold words, or -1 */
    data_words words;     /* of it */
    char *word;           /* room for one of them */
    int64_t missing;      /* cells that hold nothing or "nan" */
    int64_t missing_line; /* and where the first of them is */
    int64_t missing_field;
    bool keep_text;             /* columns of text are noted, and not refused */
    bool blank, missing_target; /* one of them is not "nan"; is the target's */
} text_reader;

/* One field of a line. */
typedef struct text_field {
    const char *text; /* without its quotes and the blanks around it; doubled quotes are still doubled */
    size_t length;
    bool quoted;
    bool last;        /* it ends its line */
    const char *next; /* the next field or line */
} text_field;

static inline bool is_blank(char c, char delimiter)
{
    return c == ' ' || (c == '\t' && delimiter != '\t');
}

static inline const char *skip_blanks(const char *at, char delimiter)
{
    while (is_blank(*at, delimiter))
        at++;
    return at;
}

static inline bool is_newline(char c)
{
    return c == '\n' || c == '\r';
}

/* Takes the field at `at` apart.  False when the chunk ends first. */
bool data_text_take_field(text_field *field, const char *at, const char *end, char delimiter);
bool data_text_is_number(const text_field *field);
/* Copies a field's text with one quote for each that is doubled, and NUL; returns its length.  `out` has room for the
 * field and NUL, and may be the field's own text. */
size_t data_text_copy_field(char *out, const text_field *field);
/* How many lines end between two places. */
int64_t data_text_count_newlines(const char *from, const char *to);
/* Moves to the next line that is neither blank nor a comment, or INCOMPLETE. */
int data_text_skip_to_row(text_reader *reader);

/* Reads the start of the text: its delimiter, the names in its header, and which columns are wanted.  The reader is at
 * the first row then.  Close it in any case. */
int data_text_reader_open(text_reader *reader, shoal_data *data, data_source *source,
                          const shoal_data_options *options);
void data_text_reader_close(text_reader *reader);
/* Where in the text the reader is, in bytes; past its end by one if it is behind a newline that the file lacks. */
size_t data_text_position(const text_reader *reader);
/* Refuses the end of a text that is within a row: a quote is not closed. */
int data_text_check_end(text_reader *reader);
int data_text_fail_ragged(const text_reader *reader, int64_t line, int64_t fields);
/* "comma between fields, header line, gzip" */
int data_text_describe(char **out, const text_reader *reader);

/* Repeats a step that may be INCOMPLETE, reading more in between, until the chunk is long enough for it. */
int data_text_with_enough(text_reader *reader, int (*step)(text_reader *reader));

/* Finds the delimiter, counts the fields of the first line and, if it is a header, keeps its names and moves on. */
int data_text_read_start(text_reader *reader);
/* Counts the fields of the first line and decides whether it is a header; INCOMPLETE when that takes more. */
int data_text_look_at_header(text_reader *reader);
/* Notes which fields become which columns. */
int data_text_choose_columns(text_reader *reader, const shoal_data_options *options);
/* "line 3, column 2 (age)", for messages; a field counts from 0. */
enum { TEXT_PLACE_BYTES = 64 + DATA_SHOWN_BYTES };
void data_text_name_place(char out[TEXT_PLACE_BYTES], const text_reader *reader, int64_t line, int64_t field);

/* A cell of the target that is not missing: the number of its word, or its value once there are too many of them. */
int data_text_take_target(double *out, const text_field *field, text_reader *reader, int64_t index);
/* Once all rows are there: the numbers that stand for words become those of their order, or what they are. */
int data_text_finish_target(text_reader *reader);

#endif
