/* Running the command of one trial: by /bin/sh, in a process group of its own, with its output in two files, timed by
 * the monotonic clock.
 *
 * A command that ends well may have told its own figures: its last lines on stdout, as long as they are made of nothing
 * but seconds=NUMBER and cost=NUMBER, count instead of what was measured. */
#ifndef PLAN_SEARCH_RUN_H
#define PLAN_SEARCH_RUN_H

#include "search_trial.h"

typedef struct plan_search_run {
    const char *command; /* with its values filled in */
    const char *stdout_path, *stderr_path;
    double timeout;           /* seconds; 0: none */
    const volatile int *stop; /* set by whoever wants an end of it */
    /* Called now and then while it runs, with the seconds so far; may be NULL. */
    void (*waiting)(void *context, double seconds);
    void *context;
} plan_search_run;

/* Sets how the trial ended.  SHOAL_STOPPED when *stop was set: the command was ended, and there
 * is no trial.  Whatever the command leaves in its group is ended, too: first SIGTERM, and SIGKILL when that did not do
 * in five seconds. */
int plan_search_run_trial(plan_trial_record *trial, const plan_search_run *run);

/* The last bytes of a file as text, of which the first line is blank when it is not whole; "" when it can't be read. */
void plan_search_read_tail(char *out, size_t size, const char *path);

/* What the last lines of `text` tell; what they don't is left alone.  False when a figure is none, which `said` then
 * has. */
bool plan_search_figures(double *seconds, double *dollars, char said[96], char *text);

#endif
