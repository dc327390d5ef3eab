/* A text file as rows of text: for what must lose nothing of it, neither words nor digits nor quotes.
 *
 *     shoal_data *data = NULL;
 *     int status = data_open_lines(&data, "iris.csv", &options, INT64_MAX);
 *     if (status == SHOAL_OK && data->lines) ...            // text; of any other format it is the usual data set
 *     shoal_data_free(&data);
 *
 * Such a data set has rows, columns and names, but no values: shoal_data_read fails.  data_lines_values reads them from
 * the same bytes. */
#ifndef DATA_LINES_H
#define DATA_LINES_H

#include "data/data_internal.h"

/* A line of the text, with its end, which the last one may lack; a quoted field may hold further line ends. */
typedef struct data_line {
    size_t at, size;
} data_line;

struct data_lines {
    const char *text; /* all of it, mapped or decoded */
    size_t size;
    size_t before;        /* bytes in front of the header, or of the first row: a mark of UTF-8, comments */
    data_line header;     /* of size 0 when there is none */
    data_buffer index;    /* a data_line for each row */
    size_t longest;       /* bytes of the longest line */
    const char *line_end; /* what ends lines */
    char delimiter;
    int64_t fields;    /* of a line */
    int64_t *field;    /* of each column, which field it is */
    bool whole;        /* every field is a column, in order */
    int64_t rows_most; /* how many rows are looked at */
};

/* As shoal_data_open, but text files are looked at line by line, up to `rows_most` of them, and not parsed.
 * `options->missing`, `target` and `keep_text` do not count then. */
int data_open_lines(shoal_data **out, const char *path, const shoal_data_options *options, int64_t rows_most);
/* Chooses columns of lines that have them all, as options->keep_columns and drop_columns say. */
int data_lines_choose(shoal_data *data, const shoal_data_options *options);
/* The values of the same text. */
int data_lines_values(shoal_data **out, const shoal_data *data, const shoal_data_options *options);
data_line data_lines_row(const shoal_data *data, int64_t row);

/* Room for taking one line apart.  Release it, whatever data_cells_init returns. */
typedef struct data_cells {
    char *line; /* a copy of it */
    char *made; /* what is written instead */
    struct text_field *field;
} data_cells;
int data_cells_init(data_cells *cells, const shoal_data *data);
void data_cells_release(data_cells *cells);
/* Takes a line apart.  It may have become another since it was looked at: SHOAL_INVALID. */
int data_cells_take(data_cells *cells, const shoal_data *data, data_line line);
/* A column's text, without quotes, ended by NUL; each may be asked for once. */
const char *data_cells_text(data_cells *cells, const shoal_data *data, int64_t column);
/* The line as it is written with this delimiter, and ended: as it is in the file when nothing changes. */
int data_lines_render(const char **out, size_t *size, data_cells *cells, const shoal_data *data, data_line line,
                      char delimiter);

#endif
