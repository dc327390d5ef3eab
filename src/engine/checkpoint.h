/* Checkpoints: a round, with what it keeps and what the run did so far, in a file or in a blob of a store.
 *
 * A checkpoint is identified by 32 bytes, a hash of everything that determines the result; a run resumes only one with
 * its own hash.  The number of processes and threads is not part of it.  The bytes may come from anywhere: everything
 * is checked before it is used. */
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

/* The caller frees *out with base_free. */
int engine_checkpoint_encode(void **out, size_t *size, const engine_checkpoint *checkpoint);
/* SHOAL_BROKEN, naming `place`, for anything but what encode wrote, whole. */
int engine_checkpoint_decode(engine_checkpoint *out, const void *bytes, size_t size, const char *place);

/* `place` is a path, or a URL of a blob as shoal_store_open_at reads it.  A file is replaced as a whole, and is on the
 * disk when put returns; get returns SHOAL_ABSENT when nothing is there; removing what is not there succeeds.  Every
 * message names the place. */
int engine_checkpoint_put(const char *place, const void *bytes, size_t size);
int engine_checkpoint_get(void **out, size_t *size, const char *place);
int engine_checkpoint_remove(const char *place);
/* Before a run: whether put could work there.  Leaves nothing behind. */
int engine_checkpoint_check(const char *place);

#endif
