/* The checkpoints of one run: going on with the last one, and writing the next when it is due.  What one looks like:
 * checkpoint.h.
 *
 * Only rank 0 reads and writes; the others are told. */
#ifndef ENGINE_SAVES_H
#define ENGINE_SAVES_H

#include "engine/checkpoint.h"
#include "engine/engine_internal.h"

typedef struct engine_saves {
    const engine_call *call;
    unsigned char identity[BASE_HASH_SIZE];
    double last; /* when the last one was written, or the run began */
} engine_saves;

/* What the run is, to the bit: its learner, version, kernel where that matters, shape, options (all in round 0), code
 * and data, by a fingerprint that is the same on all ranks. */
int engine_saves_init(engine_saves *saves, const engine_call *call, const shoal_round *first, uint64_t fingerprint);
/* Collective.  *round becomes the one that was saved, and the report goes on from what was reported, when there is a
 * checkpoint and it is to be resumed.  SHOAL_CONFLICT when there is one that is not to be resumed, or that is of
 * another run. */
int engine_saves_resume(engine_saves *saves, shoal_round **round);
/* Writes the round that comes next, if this is rank 0 and it is time, or at once. */
int engine_saves_pass(engine_saves *saves, const shoal_round *next, bool at_once);

#endif
