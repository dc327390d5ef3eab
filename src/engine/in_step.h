/* Ranks in step: what processes that run one job together must agree on, and how their partials are merged.  See
 * shoal/ranks.h.
 *
 * All calls are collective: every rank makes the same calls in the same order. */
#ifndef ENGINE_IN_STEP_H
#define ENGINE_IN_STEP_H

#include <shoal/learn.h>
#include <shoal/ranks.h>

enum { ENGINE_HOST_BYTES = 64 };

/* The host of this process, as messages name it. */
void engine_host(char out[ENGINE_HOST_BYTES]);

/* Combines the statuses of all ranks: SHOAL_OK if all have that.  Otherwise every rank gets the status and message of
 * the lowest rank with a failure of its own, after "rank 3 on h2: " unless all ranks failed with the same message. */
int engine_agree(shoal_ranks *ranks, int status);
/* The same; if none failed, SHOAL_CONFLICT, with engine_compare's message, unless all ranks have the same number. */
int engine_agree_on(shoal_ranks *ranks, int status, uint32_t same, const char *what);
/* For what only rank 0 does: every rank gets the status and message of rank 0; `status` is ignored elsewhere. */
int engine_follow_first(shoal_ranks *ranks, int status);
/* Where it is too late to agree: a failure ends the whole job with this rank's message. */
void engine_must(shoal_ranks *ranks, int status);

/* SHOAL_CONFLICT unless all ranks have the same bytes: "rank 3 on h2 has another MODEL than the others".  The ranks
 * that most others agree with are right; of two, rank 0 is. */
int engine_compare(shoal_ranks *ranks, const void *bytes, size_t size, const char *what);

/* How the cores of the hosts are shared. */
typedef struct engine_shares {
    int threads; /* of this rank */
    int before;  /* of all ranks before this one */
    int all;     /* of all ranks */
    int hosts;   /* that have ranks */
    int here;    /* ranks on this host */
} engine_shares;

/* Every rank gets as many threads as it asks for or, if it asks for 0, its share of the cores that it may use, at least
 * one: cores that several ranks of a machine may use are divided among them. */
int engine_share_cores(engine_shares *out, shoal_ranks *ranks, int asked);

#endif
