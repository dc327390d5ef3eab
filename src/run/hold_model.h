/* What the planner's model says of each number of workers, for a job that is about to run. */
#ifndef RUN_HOLD_MODEL_H
#define RUN_HOLD_MODEL_H

#include "control/forecast.h"
#include "outcome.h"

enum { HOLD_OPTIONS_MOST = 256 };

/* A phase: what one of its rounds takes with each number of workers. */
typedef struct hold_phase {
    char name[24];
    double rounds; /* expected at most; 0: not known */
    double work[HOLD_OPTIONS_MOST], fixed[HOLD_OPTIONS_MOST];
} hold_phase;

typedef struct hold_model {
    bool blind; /* nothing is known but that work is shared: one phase, in units of a round with one worker */
    double error;
    double room; /* workers that have a core each; INFINITY where each has its own machine */
    int64_t options, machines[HOLD_OPTIONS_MOST]; /* ascending */
    int phases;
    hold_phase phase[SHOAL_COST_PHASES];
} hold_model;

void hold_model_fill(hold_model *out, const shoal_outcome *outcome, int64_t least, int64_t most);
/* The phase of that name; the first one where the model is blind; NULL when it knows none of that name. */
const hold_phase *hold_model_phase(const hold_model *model, const char *name);

#endif
