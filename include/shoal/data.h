/* Data sets as rows of numbers, whatever the file.
 *
 *     shoal_data *data = NULL;
 *     int status = shoal_data_open(&data, "rows.npy", NULL);      // or x.csv, x.idx.gz, gen:uniform?rows=9&cols=4
 *     const void *rows;
 *     status = shoal_data_read(&rows, data, 0, 10, scratch);      // ten rows in the data's own type
 *     shoal_data_free(&data);
 *
 * Rows are always handed out row by row in native byte order, in the type shoal_data_type() says. Files are mapped
 * where their layout allows it; what must be decoded is decoded once, into memory or, if it is large, into an unnamed
 * temporary file, so that a data set may be larger than memory. Any number of threads may read one data set. */
#ifndef SHOAL_DATA_H
#define SHOAL_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <shoal/error.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum shoal_type {
    SHOAL_FLOAT32,
    SHOAL_FLOAT64,
    SHOAL_INT8,
    SHOAL_INT16,
    SHOAL_INT32,
    SHOAL_INT64,
    SHOAL_UINT8,
    SHOAL_UINT16,
    SHOAL_UINT32,
    SHOAL_UINT64,
    SHOAL_BOOL, /* one byte, 0 or 1 */
    SHOAL_TYPES /* how many there are */
} shoal_type;

/* Bytes of one value. */
SHOAL_API size_t shoal_type_size(shoal_type type);
/* "float32", "uint8", ... as numpy spells them. */
SHOAL_API const char *shoal_type_name(shoal_type type);
/* The reverse; also accepts "f4", "<f8", "|u1" and the like in native byte order.  SHOAL_USAGE when unknown. */
SHOAL_API int shoal_type_parse(shoal_type *out, const char *name);

typedef struct shoal_data shoal_data;

/* Whether the first line of a text file holds names.  SHOAL_HEADER_AUTO decides from the first lines of the whole
 * table (docs/data.md says how); which columns are then read changes nothing. */
enum { SHOAL_HEADER_AUTO, SHOAL_HEADER_YES, SHOAL_HEADER_NO };

/* What becomes of missing values: empty cells, NA, N/A, null and ? of text files, and NaN of any file. */
enum {
    SHOAL_MISSING_REFUSE, /* cells of text are an error that counts them; NaN stays, for learners to refuse */
    SHOAL_MISSING_MEAN,   /* replaced by the mean of the column's other values, exactly summed and rounded once */
    SHOAL_MISSING_DROP,   /* rows that have any are left out */
    SHOAL_MISSING_KEEP    /* all become, or stay, NaN */
};

/* How to read a file, where the file itself does not say.  All zero means: detect everything.
 *
 * A list of columns has names of the header, numbers from 1, or from -1 backwards, and ranges such as 3-7, separated by
 * commas.  Numbers count the columns of the file, including those that are not read. */
typedef struct shoal_data_options {
    int64_t rows, columns;    /* raw files: their shape; 0 rows means as many as the file holds */
    const char *type;         /* raw files: a type name; files of FAISS: "fvecs", ...; NULL otherwise */
    int header;               /* text files: SHOAL_HEADER_AUTO, ... */
    const char *keep_columns; /* the columns to read, in this order; NULL: all */
    const char *drop_columns; /* columns to leave out; NULL: none */
    const char *target;       /* the column that is known of each row, by name or number; "" for the last one; in text
                               * it may hold words.  It is read even if keep_columns does not list it, then as the last
                               * column */
    bool need_target;         /* a target that is not a column is an error, rather than no target */
    int missing;              /* SHOAL_MISSING_REFUSE, ...; the target is never filled in */
    bool keep_text;           /* text files: a column of text is not an error, but NaN; see shoal_data_column_text */
    int64_t features;         /* svmlight files: how many features there are at least, since rows leave out zeros */
    bool feature_zero;        /* svmlight files: indices count from 0, even if no row has that one */
    int64_t memory;           /* decode into a temporary file above this many bytes; 0 means half of what is free */
    bool skip_broken;         /* TFRecord files: damaged records are left out, as is what follows a damaged length or
                               * is missing at the end; otherwise they are an error.  See shoal_data_skipped */
} shoal_data_options;

/* Opens a data set by its path ("-" is standard input) or "gen:" address.  The format is detected from the content,
 * never from the name (but for .fvecs and the like); a file is raw if the options say so.  SHOAL_USAGE for options that
 * do not fit the format, SHOAL_INVALID for invalid content, SHOAL_SYSTEM if the file can't be read. */
SHOAL_API int shoal_data_open(shoal_data **out, const char *path, const shoal_data_options *options);

/* Wraps rows in memory, which must stay alive and unchanged; nothing is copied. */
SHOAL_API int shoal_data_wrap(shoal_data **out, const void *values, int64_t rows, int64_t columns, shoal_type type);

/* Names the columns of rows in memory: one name each, which are copied. */
SHOAL_API int shoal_data_name_columns(shoal_data *data, const char *const *names);
/* Says that the values of rows in memory, which have one column, are numbers of words: 0 is the first.  The words are
 * copied; they are different and in the order of their bytes. */
SHOAL_API int shoal_data_name_words(shoal_data *data, const char *const *words, int64_t count);

SHOAL_API void shoal_data_free(shoal_data **data);

SHOAL_API int64_t shoal_data_rows(const shoal_data *data);
SHOAL_API int64_t shoal_data_columns(const shoal_data *data);
SHOAL_API shoal_type shoal_data_type(const shoal_data *data);
/* The shape of a row, where the file says it: {28, 28} for images of MNIST, {192, 192, 3} for ones in colour, and
 * otherwise {columns}.  Returns how many dimensions there are; *out belongs to the data set.  One column more than they
 * make is a label behind them. */
SHOAL_API int shoal_data_dimensions(const shoal_data *data, const int64_t **out);
SHOAL_API const char *shoal_data_path(const shoal_data *data);
/* "npy", "npz", "tfrecord", "idx", "hdf5", "matlab", "vecs", "svmlight", "text", "raw", "generated", "memory". */
SHOAL_API const char *shoal_data_format(const shoal_data *data);
/* One line about the encoding for people: "npy version 1.0, Fortran order, big-endian, decoded".  */
SHOAL_API const char *shoal_data_detail(const shoal_data *data);
/* The header's name of a column of a text file, counted from 0; NULL when it has none or there is no such column. */
SHOAL_API const char *shoal_data_column_name(const shoal_data *data, int64_t column);
/* With keep_text: for a column of text, the sentence that names its first cell that is not a number; otherwise NULL. */
SHOAL_API const char *shoal_data_column_text(const shoal_data *data, int64_t column);
/* Whether the first line of a text file was taken for the names of its columns. */
SHOAL_API bool shoal_data_has_header(const shoal_data *data);
/* How many missing values were filled in or dropped with their rows; and how many rows were dropped. */
SHOAL_API int64_t shoal_data_missing(const shoal_data *data);
SHOAL_API int64_t shoal_data_rows_dropped(const shoal_data *data);
/* With skip_broken: how many records were left out, of what follows a damaged length only the first; and a line that
 * tells which, NULL when none was. */
SHOAL_API int64_t shoal_data_skipped(const shoal_data *data);
SHOAL_API const char *shoal_data_skipped_text(const shoal_data *data);
/* The column that the option `target` names, counted from 0; -1 when there is none. */
SHOAL_API int64_t shoal_data_target(const shoal_data *data);
/* When the target column holds words, its values are 0, 1, 2, ... and these the words, in the order of their bytes;
 * NULL for numbers beyond the last word, and if it holds numbers. */
SHOAL_API const char *shoal_data_word(const shoal_data *data, int64_t number);
/* The value that SHOAL_MISSING_MEAN puts into a column, counted from 0; NaN without that option, and for the target. */
SHOAL_API double shoal_data_mean(const shoal_data *data, int64_t column);

/* Whether reading hands out pointers into the data set itself, so that `scratch` is never used. */
SHOAL_API bool shoal_data_is_resident(const shoal_data *data);

/* Sets *out to rows first .. first+count-1.  `scratch` has room for them (count * columns * size) and may be NULL when
 * the data set is resident; *out stays valid while the data set and scratch do.  Rows count from 0.  SHOAL_USAGE for
 * rows that do not exist, or if scratch is needed and NULL. */
SHOAL_API int shoal_data_read(const void **out, shoal_data *data, int64_t first, int64_t count, void *scratch);

/* Call this after reading rows and before using what was computed from them: SHOAL_INVALID, naming the file, if it has
 * shrunk or become unreadable since it was opened, so that some rows may have been read as zeros.  Files of values are
 * mapped; to make this a failure and not the end of the process, opening one installs a SIGBUS handler in front of
 * the existing one.  It handles those files only and passes on everything else; a program that installs its own handler
 * while a data set is open should do the same.  Engines check by themselves. */
SHOAL_API int shoal_data_check(const shoal_data *data);

/* Converts `count` values of any type to float64, each rounded to nearest (only 64-bit integers round). */
SHOAL_API void shoal_convert_float64(double *out, const void *values, shoal_type type, int64_t count);

/* Writes an array as .npy (C order, native bytes) under a temporary name and renames it into place:
 * the old file stays whole until the new one is. */
SHOAL_API int shoal_npy_write(const char *path, const void *values, shoal_type type, int rank, const int64_t *shape);

/* Copies a data set to `path`, in the format its ending names: .npy, .csv, .tsv, .txt (space), .idx, .raw or .bin,
 * text and .idx also with .gz, .xz, .bz2 or .zst.  Written under a temporary name and renamed into place. */
SHOAL_API int shoal_data_write(shoal_data *data, const char *path);

#ifdef __cplusplus
}
#endif
#endif
