/* TFRecords made by hand, field by field, so that every lie can be told. */
#ifndef TFRECORD_SUPPORT_H
#define TFRECORD_SUPPORT_H

#include "base/bytes.h"
#include "data/format/tfrecord.h"
#include "data_support.h"

typedef struct blob {
    const char *bytes;
    size_t size;
} blob;

/* Bytes made here are kept until the program ends. */
typedef struct kept_bytes {
    struct kept_bytes *next;
    char bytes[];
} kept_bytes;

#define BLOB(text) ((blob){text, sizeof(text) - 1})

static inline blob blob_of(base_writer *writer)
{
    assert_int_equal(writer->status, SHOAL_OK);
    static kept_bytes *all;
    kept_bytes *fresh = malloc(sizeof *fresh + writer->size + 1);
    *fresh = (kept_bytes){.next = all};
    all = fresh;
    if (writer->size > 0)
        memcpy(fresh->bytes, writer->data, writer->size);
    const blob out = {fresh->bytes, writer->size};
    base_writer_release(writer);
    return out;
}

static inline blob joined(blob a, blob b)
{
    base_writer out = {0};
    base_write_bytes(&out, a.bytes, a.size);
    base_write_bytes(&out, b.bytes, b.size);
    return blob_of(&out);
}

static inline void put_varint(base_writer *out, uint64_t value)
{
    for (; value > 127; value >>= 7)
        base_write_u8(out, (uint8_t)(value | 128));
    base_write_u8(out, (uint8_t)value);
}

/* A field of a length and bytes. */
static inline blob field_of(int number, blob value)
{
    base_writer out = {0};
    put_varint(&out, (uint64_t)number << 3 | 2);
    put_varint(&out, value.size);
    base_write_bytes(&out, value.bytes, value.size);
    return blob_of(&out);
}

static inline blob integers(int count, const int64_t *values)
{
    base_writer out = {0};
    for (int i = 0; i < count; i++)
        put_varint(&out, (uint64_t)values[i]);
    return field_of(3, field_of(1, blob_of(&out)));
}
#define INTEGERS(...) integers(sizeof((int64_t[]){__VA_ARGS__}) / 8, (const int64_t[]){__VA_ARGS__})

static inline blob floats(int count, const float *values)
{
    return field_of(2, field_of(1, (blob){(const char *)values, (size_t)count * 4}));
}
#define FLOATS(...) floats(sizeof((float[]){__VA_ARGS__}) / 4, (const float[]){__VA_ARGS__})

static inline blob bytes_list(blob value)
{
    return field_of(1, field_of(1, value));
}

/* An entry of the map. */
static inline blob entry_of(const char *name, blob feature)
{
    return field_of(1, joined(field_of(1, (blob){name, strlen(name)}), field_of(2, feature)));
}

/* An Example of entries. */
static inline blob example_of(int count, const blob *entries)
{
    blob all = BLOB("");
    for (int i = 0; i < count; i++)
        all = joined(all, entries[i]);
    return field_of(1, all);
}
#define EXAMPLE(...) example_of(sizeof((blob[]){__VA_ARGS__}) / sizeof(blob), (const blob[]){__VA_ARGS__})

static inline blob frame_of(blob record)
{
    base_writer out = {0};
    data_tfrecord_write(&out, record.bytes, record.size);
    return blob_of(&out);
}

static inline blob frames_of(int count, const blob *records)
{
    blob all = BLOB("");
    for (int i = 0; i < count; i++)
        all = joined(all, frame_of(records[i]));
    return all;
}
#define FRAMES(...) frames_of(sizeof((blob[]){__VA_ARGS__}) / sizeof(blob), (const blob[]){__VA_ARGS__})

static inline const char *write_blob(const char *name, blob content)
{
    return write_file(name, content.bytes, content.size);
}

#endif
