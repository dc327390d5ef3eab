/* Running the command of one trial: by /bin/sh, in a process group of its own, with its output in two files, timed by
 * the monotonic clock.
 *
 * A command that ends well may have told its own figures: its last lines on stdout, as long as they are made of nothing
 * but seconds=NUMBER and cost=NUMBER, count instead of what was measured. */
#ifndef CLI_PLAN_SEARCH_RUN_H
#define CLI_PLAN_SEARCH_RUN_H

#include "plan_search_trial.h"

typedef struct cli_search_run {
    const char *command; /* with its values filled in */
    const char *stdout_path, *stderr_path;
    double timeout; /* seconds; 0: none */
    /* Called now and then while it runs, with the seconds so far; may be NULL. */
    void (*waiting)(void *context, double seconds);
    void *context;
} cli_search_run;

/* Sets how the trial ended.  SHOAL_STOPPED when a signal asked this program to stop: the command was ended, and there
 * is no trial.  Whatever the command leaves in its group is ended, too: first SIGTERM, and SIGKILL when that did not do
 * in five seconds. */
int cli_search_run_trial(cli_search_trial *trial, const cli_search_run *run);

/* Prints the last lines of a file, each behind `prefix`, to the stream. */
void cli_search_print_tail(FILE *stream, const char *path, const char *prefix, int lines);

/* What the last lines of `text` tell; what they don't is left alone.  False when a figure is none, which `said` then
 * has. */
bool cli_search_figures(double *seconds, double *dollars, char said[96], char *text);

#endif
