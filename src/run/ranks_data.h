/* Reading the input of a run on ranks: what has to be parsed is parsed once a host, and held there once. */
#ifndef RUN_RANKS_DATA_H
#define RUN_RANKS_DATA_H

#include "outcome.h"

/* Does on every rank what run_load_alone does, which opens the data and reads the weights.  The first rank of each host
 * calls it; the others of the host call it too where that costs nothing, for rows in a mapped file, in a store, or
 * generated; otherwise they borrow the rows that the first one has in memory.  Weights are always borrowed: whoever
 * loads finds them and does not read them.  Collective; a failure on one rank is one on all, and so are data that are
 * not of the same shape everywhere.  With ranks NULL this is run_load_alone. */
int run_ranks_load(shoal_outcome *outcome, shoal_ranks *ranks);

#endif
