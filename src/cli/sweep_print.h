/* How sweeps are shown to people and as JSON. */
#ifndef CLI_SWEEP_PRINT_H
#define CLI_SWEEP_PRINT_H

#include "cli.h"
#include "sweep/runner.h"

/* "running", "paused", "done", "failed". */
const char *cli_sweep_state(const sweep_trial *trial);
/* "rate 0.01, batch 32" */
void cli_sweep_print_point(FILE *stream, const sweep_space *space, const sweep_point *point);
/* The head of a table of trials, and one line of it. */
void cli_sweep_print_head(const sweep_spec *spec);
void cli_sweep_print_trial(const sweep_log *log, int64_t trial);
/* "best       trial 7: ...", how many trials there are in which state, and what was spent. */
void cli_sweep_print_end(const sweep_spec *spec, const sweep_log *log, const sweep_place *place);
/* A trial as an object; the whole of a sweep. */
json_t *cli_sweep_trial_json(const sweep_log *log, int64_t trial);
json_t *cli_sweep_json(const sweep_spec *spec, const sweep_log *log, const char *name);
/* The value of a trial as it was reported; NaN for none. */
double cli_sweep_value(const sweep_log *log, int64_t trial);

#endif
