/* How fast a learner is with these very options and columns: some rows of the data themselves, or made-up ones, for a
 * second or two.
 *
 * What calibrate measured holds for any shape, and is off by what shapes and data differ in: how many distances k-means
 * can skip, say. A probe holds for one shape, and is better there. */
#ifndef PLAN_MEASURE_PROBE_H
#define PLAN_MEASURE_PROBE_H

#include "plan/plan.h"

/* Fills `pace`, which has room for SHOAL_COST_PHASES, with what a round and a value take in each phase; all operations
 * count as part of the values.  Where all rows of DATA were tried and the learner ended by itself, `rounds` is after
 * how many.  `thread_loss` becomes NAN where there is only one core.  SHOAL_ABSENT when no phase got far enough in
 * about that time, SHOAL_STOPPED when *stop was set. */
int plan_measure_probe(shoal_pace *pace, int *paces, double *thread_loss, const plan_probe *what);

#endif
