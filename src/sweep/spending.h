/* How long workers of a sweep were there, which is what they cost: each process that runs trials tells it every few
 * seconds, below runner/, as its sign of life. */
#ifndef SWEEP_SPENDING_H
#define SWEEP_SPENDING_H

#include "place.h"

int sweep_spending_put(const sweep_place *place, const char *runner, double worker_seconds);
/* Of all processes that ever took part but one; NULL: of all. */
int sweep_spending_sum(double *worker_seconds, const sweep_place *place, const char *but);

#endif
