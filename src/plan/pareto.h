/* What nothing beats: of many outcomes those that no other is both as fast and as cheap as. */
#ifndef PLAN_PARETO_H
#define PLAN_PARETO_H

#include <stdbool.h>
#include <stdint.h>

typedef struct plan_tradeoff {
    double seconds, dollars;
} plan_tradeoff;

/* Sets front[i] for outcome i.  One that is not finite is never among them; of equal ones the first is.  Out of memory,
 * or SHOAL_OK. */
int plan_pareto(bool *front, const plan_tradeoff *outcome, int64_t count);

#endif
