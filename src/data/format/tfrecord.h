/* TFRecords: the frames of TensorFlow's record files and of what TensorBoard reads.
 *
 * A record is its length (8 bytes, little-endian), the masked CRC32C of these 8 bytes, its bytes, and their masked
 * CRC32C. */
#ifndef DATA_TFRECORD_H
#define DATA_TFRECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

/* Bytes of a frame beside those of its record. */
enum { DATA_TFRECORD_OVERHEAD = 16, DATA_TFRECORD_HEAD = 12 };

/* The checksum of bytes as a frame has it: a CRC of data that hold CRCs would be weak, so it is turned and shifted. */
uint32_t data_tfrecord_check(const void *bytes, size_t size);

/* Adds one record with its frame to what is written. */
void data_tfrecord_write(base_writer *out, const void *bytes, size_t size);

/* Whether a file of that name should hold records, in a folder of many files: "flowers00-230.tfrec",
 * "train.tfrecord-00000-of-00016"; not the index beside it, nor what is being written. */
bool data_tfrecord_is_shard(const char *name);

/* Whether bytes begin with a record: its length has the checksum that follows it. */
bool data_tfrecord_starts(const void *head, size_t size);

/* A record where it lies. */
typedef struct data_tfrecord {
    const unsigned char *bytes;
    size_t size;
    size_t offset; /* of its frame */
} data_tfrecord;

typedef enum data_tfrecord_found {
    DATA_TFRECORD_ONE,   /* a frame, whose bytes are all there */
    DATA_TFRECORD_END,   /* there is none left */
    DATA_TFRECORD_LOST,  /* the checksum of its length is wrong: where the next one begins is not known */
    DATA_TFRECORD_SHORT, /* the bytes end before it does; out->size is what its length says, 0 if there is none */
} data_tfrecord_found;

/* The frame that begins at out->offset + its size, to be found from a zeroed `out` on.  Nothing but its length is
 * looked at. */
data_tfrecord_found data_tfrecord_next(data_tfrecord *out, const unsigned char *bytes, size_t size);
/* Why a frame that was LOST or SHORT can't be read, `left` bytes before the end: for messages. */
void data_tfrecord_explain(char *out, size_t room, const data_tfrecord *record, data_tfrecord_found found, size_t left);
/* Whether the record has its checksum. */
bool data_tfrecord_is_whole(const data_tfrecord *record);

#endif
