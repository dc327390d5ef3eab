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

/* One with all that its log says; `check` has each decision made anew.  To be closed also after a failure. */
typedef struct cli_sweep_known {
    cli_sweep_place at;
    sweep_spec *spec;
    sweep_log log;
    bool has_log;
} cli_sweep_known;

int cli_sweep_open(cli_sweep_known *out, const run_jobs_settings *from, const char *name, bool check);
void cli_sweep_close(cli_sweep_known *known);

#endif
