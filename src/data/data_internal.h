/* What the files of src/data share: the data set, the class of a format, and the tools readers are made of.
 *
 * Opening goes: data.c picks a format (from the address, the options, then the first bytes), the format
 * reads its header from a data_source, calls data_set_shape, and ends with data_take_values, which maps
 * the values or decodes them into a data_buffer.  Text fills its buffer itself; generated data have none. */
#ifndef DATA_INTERNAL_H
#define DATA_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <shoal/data.h>

#include "base/file.h"
#include "base/mapped.h"
#include "data/codec/data_codec.h"
#include "data/format/data_members.h"
#include "data_shape.h"

/* ---- data_buffer.c: memory that becomes an unnamed temporary file when it grows large ---------------------------- */

typedef struct data_buffer {
    unsigned char *bytes; /* NULL while nothing is reserved; moves when reserving more */
    size_t size;          /* bytes in use, kept by the user of the buffer */
    size_t capacity;      /* bytes that may be used */
    size_t memory_limit;  /* above this the bytes lie in a file */
    int descriptor;       /* of that file, or -1 */
    bool shared;          /* other processes read the file, and so the bytes must not change */
    const char *path;     /* whose content this is, for messages; not owned */
} data_buffer;

/* `memory_limit` as shoal_data_options.memory: 0 means half of what is free. */
void data_buffer_init(data_buffer *buffer, const char *path, int64_t memory_limit);
/* Makes room for `capacity` bytes in all and keeps what is there.  New bytes are zero.  Room in a file is
 * allocated on the disk at once, so that a full disk is an error here and not a signal on a later write. */
int data_buffer_reserve(data_buffer *buffer, size_t capacity);
/* Makes room for `more` bytes after the used ones, with some to spare for the next call. */
int data_buffer_extend(data_buffer *buffer, size_t more);
/* Gives back what is not used; `bytes` may move. */
void data_buffer_trim(data_buffer *buffer);
bool data_buffer_is_file(const data_buffer *buffer);
void data_buffer_release(data_buffer *buffer);

/* ---- data_source.c: the bytes of a file, a pipe or standard input, decompressed where needed --------------------- */

enum { DATA_HEAD_BYTES = 4096 };

/* A part of a file that is a file in itself: a member of a zip file. */
typedef struct data_part {
    size_t first;                   /* where it begins in the file */
    size_t packed;                  /* bytes there */
    size_t size;                    /* and of its content */
    uint32_t crc;                   /* of its content, as zlib's crc32 has it */
    const struct data_coder *coder; /* that the content is compressed by; NULL for none */
    bool is_bare;                   /* the file says no checksum, and no size of what is compressed */
} data_part;

typedef struct data_source {
    const char *path; /* for messages; not owned */
    int descriptor;
    bool mappable;                       /* a plain file of known size, not compressed, or such a part of one */
    size_t file_size;                    /* of the whole file, when mappable */
    size_t content_size;                 /* of what can be read, when mappable */
    size_t position;                     /* how much of the content was handed out */
    size_t head_size;                    /* the first bytes, read ahead to recognise the format */
    unsigned char head[DATA_HEAD_BYTES]; /* handed out again by data_source_read */
    struct data_decoding *decoding;      /* NULL for what is not compressed */
    const unsigned char *memory;         /* the content itself, if it is not a file; otherwise NULL */
    size_t memory_size;
    bool is_part;
    data_part part;   /* of it */
    size_t part_read; /* bytes of it */
    uint32_t crc;     /* of what was handed out of it */
} data_source;

/* "-" is standard input.  With `decompress`, content that starts like a compressed file is decompressed.  Closed if it
 * fails. */
int data_source_open(data_source *source, const char *path, bool decompress);
/* A part of an open file, which messages call `path`.  When its end is reached, size and checksum are compared. */
int data_source_of_part(data_source *source, const data_source *file, const char *path, const data_part *part);
/* Whether all of a part was read, and what was read is what the file says: SHOAL_INVALID if not. */
int data_source_check_part(const data_source *source);
/* Reads all that follows in a mappable source, which is `size` bytes, by all cores; of a part the checksum is
 * compared. */
int data_source_read_rest(data_source *source, void *out, size_t size);
/* Compares the checksum of a part with what lies in the mapped file. */
int data_source_check_mapped(const data_source *source, const unsigned char *file);
/* What the content is compressed by; NULL if it is not, or is a part. */
const data_codec *data_source_codec(const data_source *source);
/* The same in the detail of a data set: ", gzip", or "". */
const char *data_source_detail(const data_source *source);
/* Bytes that are there already, as if they were a file's. */
void data_source_of_bytes(data_source *source, const char *path, const void *bytes, size_t size);
/* Reads up to `size` bytes; *got is less only at the end of the content. */
int data_source_read(size_t *got, data_source *source, void *out, size_t size);
/* Maps the whole of a mappable file, and keeps it open as *file, so that its size can be asked for.  False when the
 * system can't, and reading is the way.  Both are the caller's. */
bool data_source_map(base_mapped **out, int *file, const data_source *source);
/* Reads at most `wanted` bytes into an empty buffer, which grows only as bytes arrive. */
int data_source_load(data_buffer *buffer, data_source *source, size_t wanted);
void data_source_close(data_source *source);

/* ---- data_npy.c -------------------------------------------------------------------------------------------------- */

enum { DATA_NPY_RANK_MOST = 64 };

/* What the header of an .npy array says. */
typedef struct data_npy_header {
    int version;
    shoal_type type;
    int stored;            /* a data_stored */
    bool swapped, fortran; /* the other byte order; the first index runs fastest */
    char refused;          /* the letter of the kind of values that are not read, such as 'O'; 0 for those that are */
    int rank;
    uint64_t shape[DATA_NPY_RANK_MOST];
    bool has_descr, has_order, has_shape;
} data_npy_header;

/* For arrays that follow one another: how many bytes the header takes, as far as its first `size` bytes show.  While
 * that is more than `size`, that many bytes are needed to continue.  0 if this is not npy. */
size_t data_npy_header_next(const unsigned char *head, size_t size);
/* Reads a header, `size` bytes of which are there; `name` is what messages call it. */
int data_npy_parse(data_npy_header *out, const void *bytes, size_t size, const char *name);
/* Reads the header that a source begins with.  `refused` is set when it fails because of it. */
int data_npy_read_header(data_npy_header *out, data_source *source);
/* What values that are not read are: "Python objects". */
const char *data_npy_refused(char kind);
/* Opens the array that a source begins with, and sets all but the detail of the data set. */
int data_npy_open(data_npy_header *out, shoal_data *data, data_source *source);
/* "Fortran order, big-endian, float16 read as float32": of an open array. */
int data_npy_detail(char **out, const data_npy_header *header);

/* Reads no more than the header, and sets the shape; the source is then at the values.  Of *out, `fortran` is false
 * where the order of one column is meant. */
int data_npy_describe(data_npy_header *out, shoal_data *data, data_source *source);
/* An upper bound for the bytes of a header that starts like this; 0 if this is not npy. */
size_t data_npy_header_bytes(const unsigned char *head, size_t size);

/* ---- data_zlib.c ------------------------------------------------------------------------------------------------- */

/* A fresh stream that takes its memory from base_alloc. */
struct z_stream_s;
void data_zlib_init(struct z_stream_s *stream);

/* ---- data_write.c ------------------------------------------------------------------------------------------------ */

enum { DATA_NPY_HEADER_ROOM = 64 * 24 + 256 };
/* Writes the header of an array, version 1.0, C order, and returns how many bytes it has. */
size_t data_npy_header_write(char out[DATA_NPY_HEADER_ROOM], shoal_type type, int rank, const int64_t *shape);

/* A file that rows are written to, as many as `shape` says. */
typedef struct data_writing {
    const char *path, *format; /* a format such as "csv.gz"; NULL: by the path's ending */
    shoal_type type;
    int rank; /* as .npy and IDX have it; 0 for text that is there already: data_writer_text */
    const int64_t *shape;
    const shoal_data *names; /* which has the names of the columns; NULL for none */
} data_writing;
typedef struct data_writer data_writer;
/* Opens the file under a temporary name and writes what comes before the rows.  `writing` and what it points to must
 * last.  Close the writer in any case. */
int data_writer_open(data_writer **out, const data_writing *writing);
int data_writer_rows(data_writer *writer, const void *rows, int64_t count);
/* The same for rows that are text already. */
int data_writer_text(data_writer *writer, const void *bytes, size_t size);
/* As data_sink_finish and data_sink_commit. */
int data_writer_finish(data_writer *writer);
int data_writer_commit(data_writer *writer);
void data_writer_close(data_writer **writer);
/* Whether the path is written as text.  *delimiter is what its ending asks for; 0 if `like` ends the same way, so that
 * rows of text from there stay as they are, or if the path is standard output. */
bool data_write_is_text(char *delimiter, const char *path, const char *like);

/* shoal_data_write in a format such as "csv.gz"; the path's ending says which when it is NULL. */
int data_write_as(shoal_data *data, const char *path, const char *format);
/* Checks that the format, or the ending of the path, is a known one, before there is any data to write. */
int data_write_check(const char *path, const char *format);
/* Whether text begins with the names of the data set's columns. */
bool data_write_has_header(const shoal_data *data);
/* Whether text has a word in quotes, because it could be taken for something else without them. */
bool data_write_quotes(const char *word);

/* ---- data_sink.c: output, compressed where wanted ---------------------------------------------------------------- */

typedef struct data_sink {
    base_output *output;
    const char *path;               /* for messages; not owned */
    struct data_encoding *encoding; /* NULL for what is not compressed */
} data_sink;

/* Compressed by `codec`; NULL: as it is. */
int data_sink_open(data_sink *sink, const char *path, const data_codec *codec);
int data_sink_write(data_sink *sink, const void *bytes, size_t size);
/* Optional, before committing: ends the compression and writes all there is, so that of several files none is renamed
 * when the disk is full for another. */
int data_sink_finish(data_sink *sink);
/* Ends the compression and renames the file into place. */
int data_sink_commit(data_sink *sink);
/* Frees everything, and removes what was not committed. */
void data_sink_close(data_sink *sink);

/* ---- data.c: the data set and its formats ------------------------------------------------------------------------ */

/* Everything a format may be recognised by. */
typedef struct data_hint {
    const char *path;
    const shoal_data_options *options;
    const unsigned char *head; /* the first bytes of the content; NULL while the file is not yet open */
    size_t head_size;
} data_hint;

/* One format of data.  Adding one is a file with this table and a line in the list in data.c. */
struct data_format {
    const char *name;
    bool takes_shape;     /* the options rows, columns and type apply */
    bool chooses_columns; /* it reads only the columns that are asked for; of others they are chosen afterwards */
    bool without_file;    /* the address is not a path, so there is no source */
    /* Whether this format is meant.  Asked first without a head; a format that answers true then sees the
     * file's bytes as they are, compressed or not.  The first format in the list to say true is taken. */
    bool (*recognise)(const data_hint *hint);
    /* Sets shape, type, detail and values (or state).  `source` is at the start, and not empty; NULL if
     * without_file.  On failure the caller frees the data set. */
    int (*open)(shoal_data *data, data_source *source, const shoal_data_options *options);
    /* Of formats whose files may hold several arrays, in place of `open`: lists them all, numbers or not, and opens one
     * of the list as `open` would; its detail says the name.  `source` is at the start both times; a format that has
     * to move about in the file checks that it is a plain one (mappable). */
    int (*list)(data_members *out, data_source *source);
    int (*open_member)(shoal_data *data, data_source *source, const data_member *member);
    /* Writes rows to `out`, from any thread.  Only for formats that leave `values` NULL; NULL for rows that can't be
     * read. */
    void (*make_rows)(const shoal_data *data, int64_t first, int64_t count, void *out);
};
extern const struct data_format data_text_lines; /* which data_open_lines takes for data_text */
extern const struct data_format data_generated, data_raw, data_npy, data_idx, data_text, data_memory, data_described;
extern const struct data_format data_tfrecord_format, data_tfrecord_folder, data_svmlight, data_hdf5, data_npz,
    data_vecs, data_matlab, data_foreign_format;
/* The first format in the list that says it is meant; NULL if none does. */
const struct data_format *data_format_find(const data_hint *hint);
/* The format of that name; data_memory when there is none. */
const struct data_format *data_format_named(const char *name);

struct shoal_data {
    const struct data_format *format;
    char *path; /* as it was given: a path, or the address of an array inside a file */
    char *file; /* that was read; NULL for what is in none */
    char *detail;
    int64_t rows, columns;
    shoal_type type;
    int rank;                          /* of the array that the rows are (data_shape.h); 0 when that is unknown */
    int64_t shape[DATA_NPY_RANK_MOST]; /* likewise; a row has the dimensions from shape[1] on */
    const unsigned char *values;       /* row 0, when resident; else NULL */
    base_mapped *mapped;               /* the whole file, when `values` point into it; else NULL */
    int mapped_file;                   /* its descriptor, or -1 */
    data_buffer buffer;                /* decoded values; `values` may point into it */
    char *names;                       /* header names of a text file, each ended by NUL; or NULL */
    size_t *name_offsets;              /* where each column's name starts in `names` */
    bool has_header;                   /* the first line of the file was taken for names */
    int64_t target;                    /* the column that is known of each row, from 0; -1: none */
    int64_t label;                     /* the column that the file itself says is known of each row; -1: none */
    char **words;                      /* of the target, in the order of their bytes; NULL when it holds numbers */
    int64_t words_count;               /* of them */
    char **not_numbers;                /* of columns of text, the sentence that says so; NULL when there are none */
    double *means;                     /* what missing values of each column were replaced by; NULL without that */
    int64_t missing;                   /* values that were missing and are not any more */
    int64_t source_rows;               /* before rows were left out; 0 when none was */
    bool *gone;                        /* of these rows, whether it was left out; NULL when none was */
    int64_t skipped;                   /* records of the file that were left out since they are broken */
    char *skipped_text;                /* a line about them; NULL when there is none */
    void *state;                       /* what make_rows needs; freed with base_free */
    struct data_lines *lines;          /* rows of text that were not parsed (data_lines.h), or NULL */
};

enum { DATA_SHOWN_BYTES = 40 }; /* of a text in a message */

/* Unmaps the file, if one is mapped. */
void data_unmap(shoal_data *data);

/* A data set with nothing but a path and an empty buffer; see shoal_data_options for `memory`. */
int data_new(shoal_data **out, const char *path, int64_t memory);
/* What opening does after the format: chooses columns, finds the target, and sees to missing values.  On failure *data
 * is what it was, or part of the way. */
int data_refine(shoal_data **data, const shoal_data_options *options);
void data_lines_free(struct data_lines **lines);
/* Renames a data set in messages and jobs: for rows in memory that were read from somewhere. */
int data_rename(shoal_data *data, const char *path);
/* Checks and sets what a header claims.  SHOAL_INVALID for no rows, no columns, or more bytes than fit 63 bits. */
int data_set_shape(shoal_data *data, uint64_t rows, uint64_t columns, shoal_type type);
/* Reads a type such as "float32", "f4", "<f8" or "|b1"; false when it is none of ours.  *swapped says that its
 * byte order is not this machine's. */
bool data_type_parse(shoal_type *type, bool *swapped, const char *text, size_t length);
/* The reverse, as .npy headers spell it: "<f4", "|u1". */
const char *data_type_descr(shoal_type type);
size_t data_row_bytes(const shoal_data *data);
/* Makes these the rows, of the same columns and type, instead of those there are; takes the buffer.  Which rows were
 * left out of the file is not known any more, only how many. */
void data_replace_rows(shoal_data *data, data_buffer *with, int64_t rows);

/* ---- data_values.c: from bytes as a file has them to rows in native order ---------------------------------------- */

typedef struct data_layout {
    bool swapped;          /* the other byte order */
    bool fortran;          /* the first index runs fastest */
    int stored;            /* a data_stored */
    int rank;              /* with fortran: the dimensions as the file has them */
    const uint64_t *shape; /* likewise; shape[0] is the number of rows */
} data_layout;

/* Sets data->values to what follows in the source, mapped if the layout allows it and decoded otherwise.
 * The shape is set; bytes missing or left over are SHOAL_INVALID. */
int data_take_values(shoal_data *data, data_source *source, const data_layout *layout);
/* The same for values anywhere in a file that data->mapped is, where others may follow them. */
int data_take_mapped(shoal_data *data, size_t offset, const data_layout *layout);
/* Sets data->values to what lies in data->buffer as a file has it. */
int data_decode_buffer(shoal_data *data, const data_layout *layout);
/* Swaps the bytes of each value; `out` may be `in`. */
void data_swap_bytes(void *out, const void *in, size_t count, size_t size);
/* "mapped", "decoded into memory" or "decoded into a temporary file": how the values are kept. */
const char *data_kept(const shoal_data *data);

/* ---- data_stored.c: values that a file stores in another type than rows have ------------------------------------- */

typedef enum data_stored {
    DATA_STORED_SAME, /* the type that rows have */
    DATA_STORED_HALF, /* float16, and rows have float32 */
    DATA_STORED_TYPE  /* plus a shoal_type that fits the one that rows have */
} data_stored;

/* As data_type_parse, and float16. */
bool data_stored_parse(shoal_type *type, int *stored, bool *swapped, const char *text, size_t length);
/* Whether all values of a type can be stored for another one: they fit and take no more bytes. */
bool data_stored_fits(shoal_type stored, shoal_type type);
/* Bytes of a value as a file has it. */
size_t data_stored_size(int stored, shoal_type type);
/* From what is stored, in native byte order, to `type`, in place: there is room for as many values of that. */
void data_stored_widen(void *values, size_t count, int stored, shoal_type type);

/* ---- data_number.c: numbers as text, whatever the locale --------------------------------------------------------- */

/* Parses the decimal number, "nan" or "inf" that `text` starts with, rounded to nearest, and returns its end; NULL
 * if there is none.  The text must end with a byte that can't be part of a number, such as NUL. */
const char *data_number_parse(double *out, const char *text);
/* Whether the whole of a text is one number. */
bool data_is_number(const char *text, size_t length);
enum { DATA_NUMBER_CHARS = 32 };
/* Writes value `index` of `values` as the shortest text of at most 17 digits that reads back as the same value, with
 * NUL, and returns its length. */
size_t data_number_print(char out[DATA_NUMBER_CHARS], const void *values, shoal_type type, int64_t index);

/* ---- data_svmlight.c --------------------------------------------------------------------------------------------- */

/* Whether this is the name of a feature's column, such as "f12", and its index. */
bool data_svmlight_is_feature(int64_t *index, const char *name);

/* ---- data_vecs.c ------------------------------------------------------------------------------------------------- */

/* Whether --type names a kind of these files: "fvecs". */
bool data_vecs_is_type(const char *type);

/* ---- data_normal.c ----------------------------------------------------------------------------------------------- */

/* A standard normal deviate from 32 random bits, the same on every machine. */
double data_normal(uint32_t bits);

#endif
