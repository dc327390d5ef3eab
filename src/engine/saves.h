/* The checkpoints of one run: resuming from the last one, and writing the next when it is due.  For the format see
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
/* Collective.  If there is a checkpoint and it should be resumed, *round becomes the one that was saved, and the report
 * continues from the saved one.  SHOAL_CONFLICT if there is one that should not be resumed, or that belongs to another
 * run. */
int engine_saves_resume(engine_saves *saves, shoal_round **round);
/* On rank 0, writes the next round if a checkpoint is due, or at once. */
int engine_saves_pass(engine_saves *saves, const shoal_round *next, bool at_once);

#endif
