/* Trials of a sweep as those see them that decide: samplers (sampler.h), rules of early stopping (stopper.h).
 *
 * Values are to be small here: what is to be great was negated. */
#ifndef SWEEP_TRIAL_H
#define SWEEP_TRIAL_H

#include "space.h"

enum { SWEEP_RUNGS_MOST = 32 };

typedef enum sweep_state {
    SWEEP_RUNNING, /* an order for it was given, and has no result yet */
    SWEEP_PAUSED,  /* it stands at a rung; it may be taken further */
    SWEEP_DONE,
    SWEEP_FAILED,
} sweep_state;

typedef struct sweep_trial {
    sweep_point point;
    sweep_state state;
    int first, rungs;              /* the first rung it goes to, and the rungs it has gone through, from rung 0 on */
    double rung[SWEEP_RUNGS_MOST]; /* its least value up to each of these; NaN below `first` */
    int64_t step;                  /* it has come to */
    double value;                  /* the least so far; NaN before the first result */
} sweep_trial;

#endif
