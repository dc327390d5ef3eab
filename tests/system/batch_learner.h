/* A learner that tells which rows each of its rounds saw. */
#ifndef BATCH_LEARNER_H
#define BATCH_LEARNER_H

#include <shoal/learn.h>

typedef struct batch_config {
    const char *sizes;
    int64_t rounds, group, strata, held, seed;
} batch_config;

extern const shoal_algorithm batch_learner;

#endif
