/* Samplers: which point of the space the next trial has.
 *
 * A sampler is a function of the seed, the trial's number and the trials before it, and of nothing else: whoever asks
 * the same gets the same answer. */
#ifndef SWEEP_SAMPLER_H
#define SWEEP_SAMPLER_H

#include "trial.h"

typedef struct sweep_question {
    const sweep_space *space;
    uint64_t seed;
    int64_t number; /* of the trial, from 0 */
    const sweep_trial *trial;
    int64_t trials;  /* that are known; some of them may still run */
    int64_t adopted; /* the first of them, which are another sweep's and have no number here */
    /* Points to choose from, where not all of the space can be had: a table of results.  NULL: any. */
    const sweep_point *pool;
    const bool *used; /* which of the pool were tried */
    int64_t pools;
} sweep_question;

typedef struct sweep_sampler {
    const char *name, *summary;
    /* SHOAL_INVALID for a space that it can't sample; NULL: it samples any. */
    int (*check)(const sweep_space *space);
    /* SHOAL_ABSENT when there is no further point. */
    int (*suggest)(sweep_point *out, const sweep_question *question);
} sweep_sampler;

extern const sweep_sampler sweep_sampler_grid, sweep_sampler_random, sweep_sampler_sobol, sweep_sampler_tpe,
    sweep_sampler_gp;

/* All of them, ended by NULL, and the one of that name, or NULL. */
extern const sweep_sampler *const sweep_samplers[];
const sweep_sampler *sweep_sampler_find(const char *name);

/* ---- for samplers ------------------------------------------------------------------------------------------------ */

/* A number in [0, 1) for a trial, and `draw` tells apart those for one trial. */
double sweep_chance(const sweep_question *question, uint32_t draw);
/* Fills a point from places in [0, 1), one a parameter; those that a condition leaves out get NaN. */
void sweep_point_at(sweep_point *out, const sweep_space *space, const double place[SWEEP_PARAMETERS_MOST]);
/* A point by chance; of the pool, where there is one. */
int sweep_point_by_chance(sweep_point *out, const sweep_question *question);
/* Whether a trial has this point already. */
bool sweep_was_tried(const sweep_question *question, const sweep_point *point);
/* Trials that tell something, from the best to the worst: those that came further first, by their values there, and at
 * the end those that failed.  `order` has room for all trials; returns how many there are. */
int64_t sweep_rank_trials(int64_t *order, const sweep_question *question);

#endif
