/* Where the rows of this process come from: rows in a mapped file are used in place; generated rows (gen:) are made
 * here, and kept if they fit into memory; rows in a store are fetched and kept, only those of this process.
 *
 *     engine_source_new(&source, data, &shape, first_grain, grains, threads, memory);
 *     engine_source_load(source, pool);                                    // once, on all threads
 *     engine_rows rows = engine_source_rows(source, weights);              // for engine_slice_new */
#ifndef ENGINE_SOURCE_H
#define ENGINE_SOURCE_H

#include <shoal/data.h>
#include <shoal/learn.h>

#include "base/pool.h"
#include "engine/slice.h"

typedef struct engine_source engine_source;

/* The rows of `grains` grains (0 is allowed) from `first_grain`, for a mapper of `threads` threads.  `memory`: made
 * rows are kept when they take no more bytes than this, and made again each round when they take more; 0: half of
 * what is free.  *data must last. */
int engine_source_new(engine_source **out, shoal_data *data, const shoal_shape *shape, int64_t first_grain,
                      int64_t grains, int threads, int64_t memory);
void engine_source_free(engine_source **source);
/* Makes or fetches the rows to keep.  SHOAL_INVALID, with their URL, if rows in a store changed since the data were
 * opened. */
int engine_source_load(engine_source *source, base_pool *pool);
/* `weights` are those of the whole data set, or NULL. */
engine_rows engine_source_rows(engine_source *source, const double *weights);
/* A sum over the grains of this process of a mixed 64-bit hash of each grain's number, its bytes and its weights: added
 * over all processes (modulo 2^64) it shows whether two data sets are the same, whatever the number of processes. */
int engine_source_fingerprint(uint64_t *out, engine_source *source, const double *weights, base_pool *pool);

#endif
