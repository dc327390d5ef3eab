/* Recycling the memory of rounds: what an engine needs beside the contract in shoal/learn.h.
 *
 *     learn_recycler recycler;
 *     learn_recycle_begin(&recycler);
 *     ... rounds that this thread frees leave their memory to those that it makes, if they have the same size ...
 *     learn_recycle_end(&recycler);
 *
 * One round and one thing kept are spare at most, which is all that rounds of one size need: while a round is made, the
 * one before last is over.  What several rounds keep is spare once the last of them is freed.  Rounds that are freed
 * outside, or by another thread, are freed. */
#ifndef LEARN_ROUND_H
#define LEARN_ROUND_H

#include <shoal/learn.h>

typedef struct learn_recycler {
    shoal_round *round; /* spare, with its model; NULL when there is none */
    shoal_kept *kept;
    struct learn_recycler *outer; /* of a run in whose update this one is */
} learn_recycler;

void learn_recycle_begin(learn_recycler *recycler);
void learn_recycle_end(learn_recycler *recycler);

#endif
