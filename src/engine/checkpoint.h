/* Checkpoints: a round, with what it keeps and what the run did so far, in a file or in a blob of a store.
 *
 * Who writes one says whose run it is by 32 bytes, a hash of everything that decides about the result; who reads it
 * says the same ones.  Nothing of how many processes or threads there were is in it.  Bytes come from elsewhere:
 * everything is checked before it is used. */
#ifndef ENGINE_CHECKPOINT_H
#define ENGINE_CHECKPOINT_H

#include <shoal/engine.h>

#include "base/hash.h"

typedef struct engine_checkpoint {
    unsigned char identity[BASE_HASH_SIZE];
    shoal_round *round; /* with the values of all that it keeps */
    /* Of the run so far. */
    double seconds;
    int64_t rounds;
    int phases;
    shoal_phase phase[SHOAL_PHASES_MOST];
    int64_t counter[SHOAL_COUNTERS];
} engine_checkpoint;

void engine_checkpoint_release(engine_checkpoint *checkpoint);

/* *out is the caller's, by base_free. */
int engine_checkpoint_encode(void **out, size_t *size, const engine_checkpoint *checkpoint);
/* SHOAL_BROKEN, naming `place`, for anything but what encode wrote, whole. */
int engine_checkpoint_decode(engine_checkpoint *out, const void *bytes, size_t size, const char *place);

/* `place` is a path, or a URL of a blob as shoal_store_open_at reads it.  A file is replaced as a whole, and is on the
 * disk when put returns; SHOAL_ABSENT from get when nothing is there; remove of what is not there is no failure.  Each
 * sentence names the place. */
int engine_checkpoint_put(const char *place, const void *bytes, size_t size);
int engine_checkpoint_get(void **out, size_t *size, const char *place);
int engine_checkpoint_remove(const char *place);
/* Before a run: whether put could work there.  Leaves nothing behind. */
int engine_checkpoint_check(const char *place);

#endif
