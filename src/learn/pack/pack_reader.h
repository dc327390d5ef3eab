/* The items of a shard that was put, read back one after another; memory holds a megabyte of it, or one item.
 *
 *     pack_reader reader;
 *     pack_packed item;
 *     int status = pack_reader_open(&reader, to, &packed, "flowers00-230.tfrec", ".classes.npy of it or NULL");
 *     while (status == SHOAL_OK && (status = pack_reader_next(&item, &reader)) == SHOAL_OK && item.bytes)
 *         ... item.bytes, item.size, item.class ...
 *     pack_reader_close(&reader);
 *
 * What is not as it was packed is SHOAL_INVALID, with a sentence that names the shard and the byte. */
#ifndef PACK_READER_H
#define PACK_READER_H

#include <shoal/learn.h>

#include "data/format/example_read.h"
#include "learn/pack/pack_internal.h"

/* What all shards of a run have in common. */
typedef struct pack_packing {
    pack_format format;
    int height, width;
    bool has_classes;
} pack_packing;

typedef struct pack_packed {
    const unsigned char *bytes; /* of the image, until the next is read; NULL after the last */
    size_t size;
    int64_t offset; /* of these in the shard */
    int32_t class;  /* -1 for none */
} pack_packed;

typedef struct pack_reader {
    const shoal_blobs *blobs;
    pack_packing packing;
    const char *name; /* the caller's */
    int64_t size;     /* of the shard */
    int64_t next;     /* where the next item begins */
    int64_t items, read;
    int32_t *classes; /* of arrays */
    data_features features;
    /* What is in memory of the shard. */
    unsigned char *window;
    int64_t window_first, window_bytes;
    size_t window_room;
} pack_reader;

/* `items` is how many were written; `classes` names the file beside an array that has their classes, NULL for none.
 * Names must last as long as the reader. */
int pack_reader_open(pack_reader *out, const shoal_blobs *blobs, const pack_packing *packing, const char *name,
                     const char *classes, int64_t items);
int pack_reader_next(pack_packed *out, pack_reader *reader);
void pack_reader_close(pack_reader *reader);

#endif
