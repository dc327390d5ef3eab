/* Looking at where workers would run, without running any.
 *
 *     launch_check *check = NULL;
 *     int status = launch_check_run(&check, &specs, NULL, stop);
 *     for (int i = 0; i < check->count; i++)
 *         ... check->rows[i] ...
 *     launch_check_free(&check); */
#ifndef LAUNCH_CHECK_H
#define LAUNCH_CHECK_H

#include <stdatomic.h>

#include "launch/far_host.h"

typedef struct launch_check_row {
    char name[SHOAL_KEY_MOST]; /* "corn10", "this machine", "slurm:spot" */
    const char *launcher;      /* "ssh" */
    bool reached;
    char why[1024];  /* when it was not; or what could not be measured */
    int64_t workers; /* that the spec asks for there */
    int64_t nodes;   /* slurm: that could take work; otherwise 1 */
    far_facts facts; /* this machine's and Slurm's as far as they are known */
} launch_check_row;

typedef struct launch_check {
    int count;
    launch_check_row *rows;
} launch_check;

/* Looks at everything that the specs name, in the order they name it: hosts behind ssh are reached, all at a time, and
 * then measured one by one. `ssh` is as in launch_job; `stop` ends it with SHOAL_STOPPED.  SHOAL_USAGE for specs that
 * make no sense. */
int launch_check_run(launch_check **out, const launch_specs *specs, const char *ssh, const volatile int *stop);
void launch_check_free(launch_check **check);

#endif
