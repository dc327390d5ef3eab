/* A job in which nothing goes wrong, to see how long its rounds take and what they ask of the store. */
#ifndef SIM_CALM_H
#define SIM_CALM_H

#include <stdint.h>

#include "sim_learn.h"
#include "sim_store.h"

typedef struct sim_calm_options {
    uint64_t seed;
    int mappers, reducers, last; /* workers of a single role each */
    int workers;                 /* and of all of them */
    int64_t slices, rounds;
    const char *reduce;
    sim_work work;
    sim_cloud_options cloud;
    bool verbose;
} sim_calm_options;

/* What it took. */
typedef struct sim_calm_figures {
    double seconds;        /* from the first worker's start to the result */
    double round_seconds;  /* of one round, as long as nothing new begins: the median of the second half */
    double round_requests; /* of one worker in one round, leases apart: the average of the second half */
    int64_t requests;      /* of the whole job */
} sim_calm_figures;

/* The learner counts rows, `rounds` times; each grain is one row, each slice one grain. */
sim_calm_figures sim_calm_run(const sim_calm_options *options);

#endif
