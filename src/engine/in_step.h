/* Ranks in step: what processes that run one job together have to agree on, and how their partials become one.  See
 * shoal/ranks.h.
 *
 * Collective, all of it: every rank calls the same in the same order. */
#ifndef ENGINE_IN_STEP_H
#define ENGINE_IN_STEP_H

#include <shoal/learn.h>
#include <shoal/ranks.h>

enum { ENGINE_HOST_BYTES = 64 };

/* The host of this process, as messages name it. */
void engine_host(char out[ENGINE_HOST_BYTES]);

/* Makes one status of all ranks': SHOAL_OK when it is that everywhere.  Otherwise the failure of the lowest rank that
 * has one of its own, with its message on every rank, in front of it "rank 3 on h2: " unless all ranks failed with the
 * same words. */
int engine_agree(shoal_ranks *ranks, int status);
/* The same, and when none failed SHOAL_CONFLICT, as engine_compare says it, unless all ranks have the same number. */
int engine_agree_on(shoal_ranks *ranks, int status, uint32_t same, const char *what);
/* For what only rank 0 does: every rank gets its status and its message; `status` counts on rank 0 alone. */
int engine_follow_first(shoal_ranks *ranks, int status);
/* For what can't be agreed on any more: a failure ends the whole job, with this rank's message. */
void engine_must(shoal_ranks *ranks, int status);

/* SHOAL_CONFLICT unless all ranks have the same bytes: "rank 3 on h2 has another MODEL than the others".  The ranks
 * that most others agree with are right; of two, rank 0 is. */
int engine_compare(shoal_ranks *ranks, const void *bytes, size_t size, const char *what);

/* How the cores of the hosts are shared out. */
typedef struct engine_shares {
    int threads; /* of this rank */
    int before;  /* of all ranks before this one */
    int all;     /* of all ranks */
    int hosts;   /* that have ranks */
    int here;    /* ranks on this host */
} engine_shares;

/* Every rank gets as many threads as it asks for or, asking for 0, its share of the cores that it may use: those that
 * several ranks of a machine may use are shared between them.  At least one. */
int engine_share_cores(engine_shares *out, shoal_ranks *ranks, int asked);

#endif
