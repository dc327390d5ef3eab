/* What the files that read TFRecords share: the records of all files, and going through them on all threads. */
#ifndef DATA_TFRECORD_ROWS_H
#define DATA_TFRECORD_ROWS_H

#include "base/pool.h"
#include "data/data_internal.h"
#include "data/table/data_words.h"
#include "example_read.h"
#include "tfrecord.h"

/* A file, or one of a folder's. */
typedef struct tf_file {
    char *path;
    size_t first, end; /* where it lies in the content */
    bool is_packed;    /* bytes count in what was decompressed */
    int64_t before;    /* records of the files before it */
} tf_file;

typedef struct tf_reader {
    shoal_data *data;
    const shoal_data_options *options;
    base_pool *pool;
    const unsigned char *content; /* of all files, one after another */
    tf_file *file;
    int64_t files;
    data_tfrecord *records;  /* all that are not left out; offsets are of the content */
    int64_t *numbers;        /* which of all records each is, from 0; NULL while all are there */
    int64_t count, room;     /* of them */
    data_features *features; /* of one record, for each thread */
    bool has_lists;          /* some record is a SequenceExample */
    bool *broken;            /* which records fail */
    bool *damaged;           /* which of these may be left out */
    bool dropped;            /* some were, and nothing else is wrong: the rows are to be made again */
    int64_t skipped;         /* records that were left out */
    int64_t losses;          /* files that can't be read on from somewhere */
    char *told, *lost;       /* about the first of either; or NULL */
    base_task *task;         /* that is tried with each */
    void *rows;              /* what the task needs to know of the rows */
} tf_reader;

/* SHOAL_INVALID, naming the file, the record, counted from 0 here, and the byte where it begins. */
int tf_fail(const tf_reader *reader, int64_t record, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Parses a record for this thread, into reader->features[thread]. */
int tf_parse(tf_reader *reader, int64_t record, int thread);
/* Passes on the status of what can only fail because the record itself is damaged: such a one may be left out. */
int tf_damaged(tf_reader *reader, int64_t record, int status);
/* Runs the task with every record, on all threads, and the reader as its context.  Of several records that fail by
 * SHOAL_INVALID the first is told.  Where all of them may be left out, they are, and it is SHOAL_INVALID, too, with
 * reader->dropped. */
int tf_for_records(tf_reader *reader, base_task *task);
/* The number of a text among the words so far; the words, in the order of their bytes, become those of the data set,
 * and each record's number its place among them. */
int tf_add_word(const tf_reader *reader, data_words *words, int32_t *number, int64_t record, const unsigned char *text,
                size_t size);
int tf_finish_words(tf_reader *reader, data_words *words, int32_t *number);

/* ---- tfrecord_files.c -------------------------------------------------------------------------------------------- */

int tf_take_file(tf_reader *reader, data_buffer *loaded, data_source *source);
/* All shards in the folder that data->path names, and in those below, by their names. */
int tf_take_folder(tf_reader *reader, data_buffer *loaded);
void tf_release_files(tf_reader *reader);

/* Where a record is, as tf_fail says it: "a.tfrec: record 2, byte 145". */
enum { TF_PLACE_ROOM = 512 };
void tf_place(char *out, size_t size, const tf_reader *reader, int64_t record);
/* The same of another record that a message compares with: "record 1", or of several files "record 1 of a.tfrec". */
enum { TF_OTHER_ROOM = 200 };
void tf_other(char out[TF_OTHER_ROOM], const tf_reader *reader, int64_t record);

/* ---- tfrecord_images.c ------------------------------------------------------------------------------------------- */

/* The name of the feature that is an image, by what a parsed record has; NULL when there is none. */
const data_feature *tf_find_image(const data_features *features);
/* Makes rows of images. */
int tf_take_images(tf_reader *reader);

/* ---- tfrecord_table.c -------------------------------------------------------------------------------------------- */

/* Makes rows of numbers. */
int tf_take_table(tf_reader *reader);

#endif
