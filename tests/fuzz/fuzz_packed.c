/* Any bytes as a shard of packed images, in each of its formats (records, an archive, arrays), read back item by item:
 * each lies within the shard, or a reason is given.  The first byte says which format.  The classes beside an array are
 * all 0. */
#include <stdlib.h>
#include <string.h>

#include <shoal/error.h>

#include "data/data_internal.h"
#include "learn/pack/pack_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

typedef struct one_blob {
    shoal_blobs table;
    const uint8_t *bytes;
    size_t size;
    int64_t items;
} one_blob;

static int has_blob(const shoal_blobs *table, const char *name, int64_t *size)
{
    (void)name;
    *size = (int64_t)((const one_blob *)table)->size;
    return SHOAL_OK;
}

static int get_part(const shoal_blobs *table, const char *name, int64_t first, void *into, size_t size)
{
    const one_blob *self = (const one_blob *)table;
    char header[DATA_NPY_HEADER_ROOM];
    if (strcmp(name, "classes") == 0) {
        memset(into, 0, size);
        if (first == 0 && data_npy_header_write(header, SHOAL_INT32, 1, &self->items) == size)
            memcpy(into, header, size);
        return SHOAL_OK;
    }
    if (first < 0 || (size_t)first > self->size || size > self->size - (size_t)first)
        return shoal_fail(SHOAL_INVALID, "%s is too short", name);
    memcpy(into, self->bytes + first, size);
    return SHOAL_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    if (size < 1)
        return 0;
    const one_blob blob = {{.has = has_blob, .get_part = get_part}, bytes + 1, size - 1, bytes[0] >> 4};
    const pack_packing packing = {bytes[0] % 3, 2, 3, bytes[0] & 8};
    const char *classes = bytes[0] & 8 ? "classes" : NULL;
    pack_reader reader;
    pack_packed item;
    volatile unsigned char sum = 0;
    int status = pack_reader_open(&reader, &blob.table, &packing, "shard", classes, blob.items);
    while (status == SHOAL_OK && (status = pack_reader_next(&item, &reader)) == SHOAL_OK && item.bytes) {
        if (item.offset < 0 || (size_t)item.offset > blob.size || item.size > blob.size - (size_t)item.offset ||
            memcmp(item.bytes, blob.bytes + item.offset, item.size) != 0)
            abort();
        for (size_t i = 0; i < item.size; i++)
            sum = (unsigned char)(sum ^ item.bytes[i]);
    }
    if (status != SHOAL_OK && status != SHOAL_INVALID)
        abort();
    pack_reader_close(&reader);
    return 0;
}
