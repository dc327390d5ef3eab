/* A job in which nothing goes wrong, or only for a while, to see how long its rounds take and what they ask of the
 * store. */
#ifndef SIM_CALM_H
#define SIM_CALM_H

#include <stdint.h>

#include "sim_learn.h"
#include "sim_store.h"

/* A while in which workers are killed, and others come in their place, and stopped; all of them run when it ends. */
typedef struct sim_trouble {
    double from, until; /* virtual seconds after the first worker's start; until 0: there is none */
    double every;       /* seconds between two blows, on average */
    double stop_most;   /* seconds that a worker is stopped at most */
    double kills;       /* share of the blows that kill */
} sim_trouble;

typedef struct sim_calm_options {
    uint64_t seed;
    int mappers, reducers, last; /* workers of a single role each */
    int workers;                 /* and of all of them */
    int64_t slices, rounds;
    double bytes;       /* as how many a model or a whole partial travels; 0: as many as it has */
    double slice_bytes; /* and the rows of a slice */
    const char *reduce;
    double lease; /* 0: the usual one */
    sim_work work;
    sim_trouble trouble;
    int64_t deserted; /* all workers die once the work of round 0 is taken and that many of its slices are put, and as
                       * many others come; 0: they do not */
    sim_cloud_options cloud;
    bool verbose;
} sim_calm_options;

enum { SIM_ROUNDS_TO_RECOVER = 5, SIM_ROUNDS_AFTER = 25 };

/* What it took. */
typedef struct sim_calm_figures {
    double seconds;          /* from the first worker's start to the result */
    double round_seconds;    /* of one round, while nothing new begins: the median of the second half */
    double round_requests;   /* of one worker in one round, leases apart: the average of the second half */
    int64_t requests;        /* of the whole job */
    double round_sent;       /* bytes that a worker sends in a round, as they are weighed: the average of all rounds */
    double deserted_seconds; /* from those deaths to the next model */
    /* With trouble: */
    double pace;            /* seconds of a round before it, the median */
    double pace_requests;   /* of one worker in one of these rounds, leases apart */
    double trouble_seconds; /* of a round that began in it, the average */
    double after_seconds;   /* of a round that began after it, the median */
    double after_requests;
    int64_t troubled;    /* rounds that began in it */
    double recovering;   /* the longest of the first SIM_ROUNDS_TO_RECOVER rounds that began after it */
    double back_seconds; /* the average of the SIM_ROUNDS_AFTER rounds after these */
    int64_t slow;        /* of both, those that took more than one and a half times the pace */
} sim_calm_figures;

/* The learner counts rows, `rounds` times; each grain is one row, each slice one grain. */
sim_calm_figures sim_calm_run(const sim_calm_options *options);

#endif
