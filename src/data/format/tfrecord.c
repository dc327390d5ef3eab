/* The frames of TFRecords.  See tfrecord.h. */
#include "tfrecord.h"

#include <endian.h>
#include <stdio.h>
#include <string.h>

#include "base/crc.h"
#include "base/text.h"

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

static uint32_t load_check(const unsigned char *bytes)
{
    uint32_t check;
    memcpy(&check, bytes, sizeof check);
    return le32toh(check);
}

bool data_tfrecord_is_shard(const char *name)
{
    return strstr(name, ".tfrec") && !base_text_ends(name, ".idx") && !base_text_ends(name, ".part") &&
           !strstr(name, ".tmp-");
}

bool data_tfrecord_starts(const void *head, size_t size)
{
    return size >= DATA_TFRECORD_HEAD && data_tfrecord_check(head, 8) == load_check((const unsigned char *)head + 8);
}

data_tfrecord_found data_tfrecord_next(data_tfrecord *out, const unsigned char *bytes, size_t size)
{
    const size_t at = out->bytes ? out->offset + out->size + DATA_TFRECORD_OVERHEAD : 0, left = size - at;
    uint64_t length;
    *out = (data_tfrecord){.bytes = bytes + at, .offset = at};
    if (left == 0)
        return DATA_TFRECORD_END;
    if (left < DATA_TFRECORD_HEAD)
        return DATA_TFRECORD_SHORT;
    if (!data_tfrecord_starts(bytes + at, left))
        return DATA_TFRECORD_LOST;
    memcpy(&length, bytes + at, sizeof length);
    out->size = (size_t)le64toh(length);
    out->bytes = bytes + at + DATA_TFRECORD_HEAD;
    return left < DATA_TFRECORD_OVERHEAD || out->size > left - DATA_TFRECORD_OVERHEAD ? DATA_TFRECORD_SHORT
                                                                                      : DATA_TFRECORD_ONE;
}

void data_tfrecord_explain(char *out, size_t room, const data_tfrecord *record, data_tfrecord_found found, size_t left)
{
    if (found == DATA_TFRECORD_LOST)
        snprintf(out, room, "its length has another checksum, so neither it nor what follows can be read");
    else if (left < DATA_TFRECORD_HEAD)
        snprintf(out, room, "the file is cut off: %zu bytes are no record", left);
    else
        snprintf(out, room, "the file is cut off: a record of %zu bytes has %zu left of the file", record->size,
                 left - DATA_TFRECORD_HEAD);
}

bool data_tfrecord_is_whole(const data_tfrecord *record)
{
    return data_tfrecord_check(record->bytes, record->size) == load_check(record->bytes + record->size);
}
