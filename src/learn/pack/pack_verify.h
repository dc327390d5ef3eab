/* Packed images compared with their manifest.
 *
 *     pack_verifier verifier;
 *     int status = pack_verify_begin(&verifier, blobs, "packed");
 *     while (status == SHOAL_OK && verifier.next < verifier.shards)
 *         status = pack_verify_next(&why, &verifier);               // NULL: this shard is as it was packed
 *     pack_verify_end(&verifier); */
#ifndef PACK_VERIFY_H
#define PACK_VERIFY_H

#include "learn/pack/pack_internal.h"

typedef struct pack_verifier {
    const shoal_blobs *blobs;
    const char *place; /* for messages; the caller's */
    json_t *manifest;
    const json_t *list; /* its shards */
    int64_t shards, next;
    const char *name;      /* of the shard that was looked at last, or the file beside it; the manifest's */
    int64_t images, bytes; /* of those so far that are as they were packed */
} pack_verifier;

/* SHOAL_INVALID when there is no manifest, or none of packed images. */
int pack_verify_begin(pack_verifier *out, const shoal_blobs *blobs, const char *place);
/* Reads the next shard, and the file beside it; *why says what is wrong with one of them, in static memory.  Fails when
 * that can't be told. */
int pack_verify_next(const char **why, pack_verifier *self);
void pack_verify_end(pack_verifier *self);

#endif
