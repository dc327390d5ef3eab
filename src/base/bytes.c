/* Numbers to bytes and back.  See bytes.h. */
#include "base/bytes.h"

#include <endian.h>
#include <string.h>

#include <shoal/error.h>

#include "base/memory.h"

enum { LEAST_ROOM = 256 };

/* ---- writing ----------------------------------------------------------------------------------------------------- */

void base_write_reserve(base_writer *writer, size_t size)
{
    size_t need, room = writer->room < SIZE_MAX / 2 ? 2 * writer->room : SIZE_MAX;
    unsigned char *fresh = NULL;
    if (writer->status < 0 || size <= writer->room - writer->size)
        return;
    if (!base_add(&need, writer->size, size)) {
        writer->status = shoal_fail(SHOAL_MEMORY, "out of memory: bytes to be sent");
        return;
    }
    if (room < need)
        room = need;
    if (room < LEAST_ROOM)
        room = LEAST_ROOM;
    writer->status = base_alloc_unset(&fresh, room, 1, "bytes to be sent");
    if (writer->status < 0)
        return;
    if (writer->size)
        memcpy(fresh, writer->data, writer->size);
    base_free(&writer->data);
    writer->data = fresh;
    writer->room = room;
}

void *base_write_room(base_writer *writer, size_t size)
{
    base_write_reserve(writer, size);
    if (writer->status < 0)
        return NULL;
    unsigned char *at = writer->data + writer->size;
    writer->size += size;
    return at;
}

void base_write_bytes(base_writer *writer, const void *bytes, size_t size)
{
    void *to = size ? base_write_room(writer, size) : NULL;
    if (to)
        memcpy(to, bytes, size);
}

void base_write_u8(base_writer *writer, uint8_t value)
{
    base_write_bytes(writer, &value, sizeof value);
}

void base_write_u32(base_writer *writer, uint32_t value)
{
    uint32_t little = htole32(value);
    base_write_bytes(writer, &little, sizeof little);
}

void base_write_u64(base_writer *writer, uint64_t value)
{
    uint64_t little = htole64(value);
    base_write_bytes(writer, &little, sizeof little);
}

void base_write_i64(base_writer *writer, int64_t value)
{
    base_write_u64(writer, (uint64_t)value);
}

void base_write_double(base_writer *writer, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    base_write_u64(writer, bits);
}

void base_write_text(base_writer *writer, const char *text)
{
    size_t length = strlen(text);
    base_write_u32(writer, (uint32_t)length);
    base_write_bytes(writer, text, length);
}

int base_writer_take(base_writer *writer, void **out, size_t *size)
{
    int status = writer->status;
    if (status == SHOAL_OK) {
        *out = writer->data;
        *size = writer->size;
        *writer = (base_writer){0};
    } else {
        base_writer_release(writer);
    }
    return status;
}

void base_writer_release(base_writer *writer)
{
    base_free(&writer->data);
    *writer = (base_writer){0};
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

base_reader base_reader_of(const void *bytes, size_t size)
{
    return (base_reader){.at = bytes, .left = size};
}

const void *base_read_bytes(base_reader *reader, size_t size)
{
    if (reader->bad || size > reader->left) {
        reader->bad = true;
        return NULL;
    }
    const void *at = reader->at;
    reader->at += size;
    reader->left -= size;
    return at;
}

uint8_t base_read_u8(base_reader *reader)
{
    const uint8_t *at = base_read_bytes(reader, 1);
    return at ? *at : 0;
}

uint32_t base_read_u32(base_reader *reader)
{
    uint32_t little = 0;
    const void *at = base_read_bytes(reader, sizeof little);
    if (at)
        memcpy(&little, at, sizeof little);
    return le32toh(little);
}

uint64_t base_read_u64(base_reader *reader)
{
    uint64_t little = 0;
    const void *at = base_read_bytes(reader, sizeof little);
    if (at)
        memcpy(&little, at, sizeof little);
    return le64toh(little);
}

int64_t base_read_i64(base_reader *reader)
{
    return (int64_t)base_read_u64(reader);
}

double base_read_double(base_reader *reader)
{
    uint64_t bits = base_read_u64(reader);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

void base_read_text(base_reader *reader, char *out, size_t size)
{
    uint32_t length = base_read_u32(reader);
    const char *text = length < size ? base_read_bytes(reader, length) : NULL;
    if (!text || memchr(text, 0, length)) {
        reader->bad = true;
        length = 0;
    }
    if (length)
        memcpy(out, text, length);
    out[length] = 0;
}

bool base_reader_done(const base_reader *reader)
{
    return !reader->bad && reader->left == 0;
}
