/* TFRecords: the frames of TensorFlow's record files and of what TensorBoard reads.
 *
 * A record is its length (8 bytes, little-endian), the masked CRC32C of these 8 bytes, its bytes, and their masked
 * CRC32C. */
#ifndef DATA_TFRECORD_H
#define DATA_TFRECORD_H

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

/* Bytes of a frame beside those of its record. */
enum { DATA_TFRECORD_OVERHEAD = 16, DATA_TFRECORD_HEAD = 12 };

/* The checksum of bytes as a frame has it: a CRC of data that hold CRCs would be weak, so it is turned and shifted. */
uint32_t data_tfrecord_check(const void *bytes, size_t size);

/* Adds one record with its frame to what is written. */
void data_tfrecord_write(base_writer *out, const void *bytes, size_t size);

#endif
