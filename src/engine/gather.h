/* Rows of a batch, gathered: the group that one map sees lies side by side, in memory that each thread has for that. */
#ifndef ENGINE_GATHER_H
#define ENGINE_GATHER_H

#include <shoal/learn.h>

#include "engine/slice.h"

typedef struct engine_gather {
    void *memory;
    size_t bytes;
} engine_gather;

/* Bytes that a thread needs for the groups of a round: 0 for one that is no batch, SIZE_MAX for too many to count. */
size_t engine_gather_bytes(const shoal_round *round, const shoal_shape *shape);
/* Makes room for that many. */
int engine_gather_reserve(engine_gather *gather, size_t bytes);
void engine_gather_free(engine_gather *gather);

/* Where the rows of a slice are, and what is kept with them. */
typedef struct engine_gather_from {
    const engine_rows *rows;
    int64_t first_row; /* of the slice */
    const unsigned char *memo;
} engine_gather_from;

/* Fills the rest of *grain, which has its shape, with group `group` of a stratum.  There may be no rows in it. */
int engine_gather_group(shoal_grain *grain, engine_gather *gather, const shoal_layout *layout,
                        const engine_gather_from *from, int64_t stratum, int64_t group, int thread);

#endif
