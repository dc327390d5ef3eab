/* Reading the input of a run on ranks: what has to be parsed is parsed once a host, and held there once. */
#ifndef CLI_RANKS_DATA_H
#define CLI_RANKS_DATA_H

#include "cli.h"

/* Does on every rank what load(job, context) does, which opens the data and reads the weights.  The first rank of
 * each host calls it; the others of the host call it too where that costs nothing, for rows in a mapped file, in a
 * store, or generated; otherwise they borrow the rows that the first one has in memory.  Weights are always
 * borrowed: load finds them in the job and does not read them.  Collective; a failure on one rank is one on all, and
 * so are data that are not of the same shape everywhere.  With ranks NULL this is load. */
int cli_ranks_load(cli_job *job, shoal_ranks *ranks, int (*load)(cli_job *job, void *context), void *context);

#endif
