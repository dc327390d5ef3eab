/* Zip files for tests, byte by byte, so that any number in them can be a lie. */
#ifndef ZIP_SUPPORT_H
#define ZIP_SUPPORT_H

#include "data_support.h"

enum { ZIP_ROOM = 1 << 16, ZIP_MEMBERS = 8 };

typedef struct zip_file {
    unsigned char bytes[ZIP_ROOM];
    size_t size;
    size_t local[ZIP_MEMBERS], entry[ZIP_MEMBERS]; /* where each member begins, and its entry of the directory */
    size_t directory, end;
    struct {
        char name[64];
        uint32_t crc;
        size_t packed, size;
        uint16_t method;
    } member[ZIP_MEMBERS];
    int count;
    bool wide; /* zip64 */
} zip_file;

static inline void zip_put(zip_file *zip, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        zip->bytes[zip->size++] = (unsigned char)(value >> (8 * i));
}

static inline void zip_put_bytes(zip_file *zip, const void *bytes, size_t size)
{
    assert_true(zip->size + size < ZIP_ROOM);
    memcpy(zip->bytes + zip->size, bytes, size);
    zip->size += size;
}

/* Raw deflate. */
static inline size_t zip_deflate(unsigned char *out, size_t room, const void *in, size_t size)
{
    z_stream stream = {0};
    assert_int_equal(deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
    stream.next_in = (unsigned char *)in;
    stream.avail_in = (unsigned)size;
    stream.next_out = out;
    stream.avail_out = (unsigned)room;
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    deflateEnd(&stream);
    return stream.total_out;
}

/* `extra` bytes of padding stand before the content, so that it can be aligned. */
static inline void zip_add(zip_file *zip, const char *name, const void *content, size_t size, bool deflated,
                           size_t extra)
{
    static unsigned char packed[ZIP_ROOM];
    const int i = zip->count++;
    assert_true(i < ZIP_MEMBERS);
    snprintf(zip->member[i].name, sizeof zip->member[i].name, "%s", name);
    zip->member[i].crc = (uint32_t)crc32(0, content, (unsigned)size);
    zip->member[i].size = zip->member[i].packed = size;
    zip->member[i].method = deflated ? 8 : 0;
    if (deflated)
        zip->member[i].packed = zip_deflate(packed, sizeof packed, content, size);
    zip->local[i] = zip->size;
    zip_put(zip, 0x04034b50, 4);
    zip_put(zip, zip->wide ? 45 : 20, 2);
    zip_put(zip, 0, 2);
    zip_put(zip, zip->member[i].method, 2);
    zip_put(zip, 0, 4);
    zip_put(zip, zip->member[i].crc, 4);
    zip_put(zip, zip->member[i].packed, 4);
    zip_put(zip, size, 4);
    zip_put(zip, strlen(name), 2);
    zip_put(zip, extra, 2);
    zip_put_bytes(zip, name, strlen(name));
    for (size_t k = 0; k < extra; k++)
        zip_put(zip, 0, 1);
    zip_put_bytes(zip, deflated ? packed : content, zip->member[i].packed);
}

static inline void zip_add_entry(zip_file *zip, int i)
{
    const char *name = zip->member[i].name;
    zip->entry[i] = zip->size;
    zip_put(zip, 0x02014b50, 4);
    zip_put(zip, 45, 2);
    zip_put(zip, 20, 2);
    zip_put(zip, 0, 2);
    zip_put(zip, zip->member[i].method, 2);
    zip_put(zip, 0, 4);
    zip_put(zip, zip->member[i].crc, 4);
    zip_put(zip, zip->wide ? UINT32_MAX : zip->member[i].packed, 4);
    zip_put(zip, zip->wide ? UINT32_MAX : zip->member[i].size, 4);
    zip_put(zip, strlen(name), 2);
    zip_put(zip, zip->wide ? 4 + 3 + 4 + 24 : 0, 2);
    zip_put(zip, 0, 8); /* no comment, disk 0, attributes */
    zip_put(zip, 0, 2);
    zip_put(zip, zip->wide ? UINT32_MAX : zip->local[i], 4);
    zip_put_bytes(zip, name, strlen(name));
    if (!zip->wide)
        return;
    zip_put(zip, 0x7075, 2); /* a field of another kind comes first */
    zip_put(zip, 3, 2);
    zip_put_bytes(zip, "abc", 3);
    zip_put(zip, 1, 2);
    zip_put(zip, 24, 2);
    zip_put(zip, zip->member[i].size, 8);
    zip_put(zip, zip->member[i].packed, 8);
    zip_put(zip, zip->local[i], 8);
}

static inline void zip_put_end64(zip_file *zip, size_t bytes)
{
    const size_t place = zip->size;
    zip_put(zip, 0x06064b50, 4);
    zip_put(zip, 44, 8);
    zip_put(zip, 45, 2);
    zip_put(zip, 45, 2);
    zip_put(zip, 0, 8);
    zip_put(zip, (uint64_t)zip->count, 8);
    zip_put(zip, (uint64_t)zip->count, 8);
    zip_put(zip, bytes, 8);
    zip_put(zip, zip->directory, 8);
    zip_put(zip, 0x07064b50, 4);
    zip_put(zip, 0, 4);
    zip_put(zip, place, 8);
    zip_put(zip, 1, 4);
}

/* The directory and the end. */
static inline void zip_finish(zip_file *zip, const char *comment)
{
    zip->directory = zip->size;
    for (int i = 0; i < zip->count; i++)
        zip_add_entry(zip, i);
    const size_t bytes = zip->size - zip->directory;
    if (zip->wide)
        zip_put_end64(zip, bytes);
    zip->end = zip->size;
    zip_put(zip, 0x06054b50, 4);
    zip_put(zip, 0, 4);
    zip_put(zip, zip->wide ? UINT16_MAX : (uint64_t)zip->count, 2);
    zip_put(zip, zip->wide ? UINT16_MAX : (uint64_t)zip->count, 2);
    zip_put(zip, zip->wide ? UINT32_MAX : bytes, 4);
    zip_put(zip, zip->wide ? UINT32_MAX : zip->directory, 4);
    zip_put(zip, strlen(comment), 2);
    zip_put_bytes(zip, comment, strlen(comment));
}

/* An .npy file with this header and values; returns its size. */
static inline size_t make_npy(unsigned char *out, const char *descr, const char *order, const char *shape,
                              const void *values, size_t size)
{
    char header[119];
    snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': %s, 'shape': %s, }", descr, order, shape);
    memcpy(out, "\x93NUMPY\1\0\x76\0", 10);
    memset(out + 10, ' ', 118);
    memcpy(out + 10, header, strlen(header));
    memcpy(out + 128, values, size);
    return 128 + size;
}

#endif
