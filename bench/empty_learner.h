/* The learner without work: see empty_learner.c. */
#ifndef EMPTY_LEARNER_H
#define EMPTY_LEARNER_H

#include <shoal/learn.h>

typedef struct empty_config {
    int64_t rounds, sums, numbers, kept, work, batch, group, strata;
} empty_config;

extern const shoal_algorithm empty_learner;

#endif
