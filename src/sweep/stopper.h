/* Rules of early stopping: how far trials go before they are compared, and which of them go on.
 *
 * A trial goes from rung to rung, each a number of steps, and pauses at each; a rule says which of those that pause is
 * taken further.  It is a function of the trials alone. */
#ifndef SWEEP_STOPPER_H
#define SWEEP_STOPPER_H

#include "trial.h"

typedef struct sweep_rungs {
    int64_t eta; /* of so many trials at a rung one goes on */
    int count;
    int64_t step[SWEEP_RUNGS_MOST]; /* growing; the last has all steps */
} sweep_rungs;

typedef struct sweep_stopper {
    const char *name, *summary;
    /* The rungs of trials of so many steps, none of which but the last is below `least`; eta is set. */
    void (*lay)(sweep_rungs *rungs, int64_t steps, int64_t least);
    /* The rung that a trial goes to first. */
    int (*first)(const sweep_rungs *rungs, int64_t number);
    /* The paused trial that goes on, or -1: none does, and a new one may begin. */
    int64_t (*next)(const sweep_rungs *rungs, const sweep_trial *trial, int64_t trials);
} sweep_stopper;

extern const sweep_stopper sweep_stopper_none, sweep_stopper_asha, sweep_stopper_hyperband, sweep_stopper_median;

/* All of them, ended by NULL, and the one of that name, or NULL. */
extern const sweep_stopper *const sweep_stoppers[];
const sweep_stopper *sweep_stopper_find(const char *name);

/* ---- for rules --------------------------------------------------------------------------------------------------- */

/* Rungs at steps, steps / eta, steps / eta^2, ... down to `least`, or four of these when that is 0. */
void sweep_lay_halvings(sweep_rungs *rungs, int64_t steps, int64_t least);
int sweep_first_of_all(const sweep_rungs *rungs, int64_t number);
/* Of trials that begin at the same rung, one that is among the best 1 / eta at the highest rung where there is any. */
int64_t sweep_promote(const sweep_rungs *rungs, const sweep_trial *trial, int64_t trials);

#endif
