/* Methods that ours is compared with: CherryPick as published (Alipourfard and others, NSDI 2017), and chance. */
#ifndef BENCH_SEARCH_METHODS_H
#define BENCH_SEARCH_METHODS_H

#include "plan/search/search_internal.h"

/* One kernel by maximum likelihood, on what ours sees.  Failures leave no trace but that they are not tried again, a
 * run that timed out counts as if it had ended then, and it stops when the next trial is expected to gain little. */
extern const search_method search_cherrypick;
extern const search_method search_random;

#endif
