/* What a sweep would take on machines that can be rented: time and money for each kind of machine and each number of
 * them, from what its trials took.  Pure. */
#ifndef SWEEP_MAP_H
#define SWEEP_MAP_H

#include <stdint.h>

/* Seconds until all trials have ended, each of which takes so long, when `at_once` run at once and each that is next in
 * order begins as soon as one ends.  SHOAL_MEMORY. */
int sweep_map_time(double *out, const double *seconds, int64_t trials, int64_t at_once);

#endif
