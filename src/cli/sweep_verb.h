/* What verbs about sweeps share: the store that one is in, and what is known of it. */
#ifndef CLI_SWEEP_VERB_H
#define CLI_SWEEP_VERB_H

#include "run/jobs.h"
#include "sweep/place.h"

/* A sweep in an open store. */
typedef struct cli_sweep_place {
    run_jobs jobs;
    sweep_place place;
} cli_sweep_place;

/* SHOAL_USAGE for what can't be the name of a sweep.  `name` must last.  To be closed also after a failure. */
int cli_sweep_place_open(cli_sweep_place *out, const run_jobs_settings *settings, const char *name,
                         run_jobs_access access);
void cli_sweep_place_close(cli_sweep_place *place);

#endif
