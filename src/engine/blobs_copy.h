/* Copying blobs from one place to another, many at once, in bounded memory.
 *
 *     const engine_copy copy = {
 *         .from = job, .to = folder, .blob = list, .count = n, .threads = 8, .memory = 256 << 20};
 *     status = engine_blobs_copy(&copy);
 *
 * Into a folder they go in pieces.  A store takes a blob as a whole, so as many are in memory as `memory` has room for;
 * one that is larger is copied while no other is. */
#ifndef ENGINE_BLOBS_COPY_H
#define ENGINE_BLOBS_COPY_H

#include <shoal/learn.h>

enum { ENGINE_COPY_PIECE = 8 << 20 };

typedef struct engine_blob {
    char *name;
    int64_t size;
} engine_blob;

typedef struct engine_copy {
    const shoal_blobs *from, *to;
    const engine_blob *blob;
    int64_t count;
    int threads;    /* copies at the same time at most */
    int64_t memory; /* bytes that all of them hold at most */
} engine_copy;

/* SHOAL_INVALID when a blob has another size than the list says. */
int engine_blobs_copy(const engine_copy *copy);

#endif
