/* Fetches rows from a store: a range of bytes, with several requests at once. */
#ifndef ENGINE_SOURCE_FETCH_H
#define ENGINE_SOURCE_FETCH_H

#include "base/pool.h"
#include "data/data_place.h"

/* `size` bytes of the blob's rows from byte `first`, counted from row 0, on all threads.  SHOAL_INVALID, with the
 * blob's URL, when it is no longer the version that the data were opened as. */
int engine_fetch(void *out, const data_place *place, int64_t first, size_t size, base_pool *pool);

/* These bytes have not been checked: a bool that is neither 0 nor 1 counts as 1, as it does in files. */
void engine_clean_bools(void *values, size_t count);

#endif
