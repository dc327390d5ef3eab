/* The frames of TFRecords.  See tfrecord.h. */
#include "tfrecord.h"

#include "base/crc.h"

uint32_t data_tfrecord_check(const void *bytes, size_t size)
{
    uint32_t crc = base_crc32c(0, bytes, size);
    return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

void data_tfrecord_write(base_writer *out, const void *bytes, size_t size)
{
    unsigned char length[8];
    for (int i = 0; i < 8; i++)
        length[i] = (unsigned char)((uint64_t)size >> (8 * i));
    base_write_bytes(out, length, sizeof length);
    base_write_u32(out, data_tfrecord_check(length, sizeof length));
    base_write_bytes(out, bytes, size);
    base_write_u32(out, data_tfrecord_check(bytes, size));
}
