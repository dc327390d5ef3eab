/* The kernel of a Gaussian process by maximum likelihood, for methods that a search is compared with. */
#ifndef BENCH_KERNEL_FIT_H
#define BENCH_KERNEL_FIT_H

#include "base/gaussian.h"

/* The kernel that explains `value` at `place` (count x features) best: maximises marginal likelihood times prior over
 * length scales, signal and noise, from the prior's medians, each between 1/100 and 100 times its median; `features`
 * and `constant` are the caller's.  The values should have the mean 0.  More than PLAN_MINIMISE_MOST - 2 features are
 * no case here.  SHOAL_MEMORY, or SHOAL_OK. */
int base_kernel_fit(base_kernel *kernel, const base_kernel_prior *prior, const double *place, const double *value,
                    int64_t count);

#endif
