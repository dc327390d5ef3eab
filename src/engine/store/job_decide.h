/* What a worker does next: pure functions of what it knows, without a store, a clock or a thread.
 *
 * They decide who should do what in the next round (job_assign), and what to do now (job_decide).  A test explores
 * everything that can happen to a few workers (tests/unit/test_job_decide.c), a simulator runs hundreds (tests/sim). */
#ifndef JOB_DECIDE_H
#define JOB_DECIDE_H

#include "engine/store/job_model.h"

/* ---- assigning --------------------------------------------------------------------------------------------------- */

/* Assigns every piece to one of the members, given who held what: `members` are the live ones; `before` is the last
 * trailer, and maker[slice] the worker that mapped the slice in the last round, 0 when not known.  A slice stays with
 * the worker that should map it or, if there is none or it is gone, with the one that did, for its rows are loaded
 * there; a worker with more than its share gives one back per round, to one with less.  A group goes to the worker that
 * holds its first slice, if it may reduce, and its ranges to those that hold its slices.  Fills out->holder; everything
 * else of *out must be set. */
int job_assign(job_trailer *out, const job_trailer *before, const uint64_t *maker, const job_tree *tree);

/* ---- doing ------------------------------------------------------------------------------------------------------- */

/* What is known of a piece in this round. */
enum {
    JOB_MINE = 1,     /* I should make it */
    JOB_ORPHAN = 2,   /* nobody alive should make it */
    JOB_HERE = 4,     /* I have it in memory */
    JOB_STORED = 8,   /* it is in the store, as far as I know */
    JOB_LACKING = 16, /* I tried to map it, and its rows are not available now */
    JOB_FETCHED = 32, /* I have it only as a part of its parent's sum, and can't put it */
    JOB_LARGE = 64    /* one too large to fetch was removed in this round: if another as large appears, it is real */
};

typedef struct job_view {
    const job_tree *tree;
    const unsigned char *piece; /* flags of every piece; all ranges of a slice have the same, but for what is here */
    unsigned roles;
    uint64_t worker, round; /* the order in which idle workers help differs from worker to worker and round to round */
    bool late;              /* the round takes much longer than expected: anyone may make what is missing */
    bool quiet;             /* nobody seems to make the groups that could be made: anyone may */
    bool flush;             /* it takes longer than expected: others should see what I have only in memory */
} job_view;

typedef enum job_act {
    JOB_MAP,   /* map slice `piece` */
    JOB_PUT,   /* put `piece`, which is here; of a slice, all ranges */
    JOB_MERGE, /* merge the children of `piece`, all here or stored; the top: then update, and put the model */
    JOB_FETCH, /* look for the missing children of `piece`; wait for them if none is there */
    JOB_WAIT   /* wait for the next model */
} job_act;

typedef struct job_action {
    job_act act;
    int64_t piece; /* -1 for JOB_WAIT */
    bool rescue;   /* it is not mine: check again whether it is needed, and record it */
} job_action;

job_action job_decide(const job_view *view);

#endif
