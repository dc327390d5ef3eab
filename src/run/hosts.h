/* Looking at where workers would run, without running any.
 *
 *     run_hosts *check = NULL;
 *     int status = run_hosts_check(&check, &specs, NULL, stop);
 *     for (int i = 0; i < check->count; i++)
 *         ... check->rows[i] ...
 *     run_hosts_free(&check); */
#ifndef RUN_HOSTS_H
#define RUN_HOSTS_H

#include <stdatomic.h>

#include "launch/far_host.h"

typedef struct run_host {
    char name[SHOAL_KEY_MOST]; /* "corn10", "this machine", "slurm:spot" */
    const char *launcher;      /* "ssh" */
    bool reached;
    bool may_pass;   /* slurm: it was not, but jobs can be queued there, or the controller may answer later */
    char why[1024];  /* when it was not; or what could not be measured */
    int64_t workers; /* that the spec asks for there */
    int64_t nodes;   /* slurm: that could take work; otherwise 1 */
    far_facts facts; /* this machine's and Slurm's as far as they are known */
} run_host;

typedef struct run_hosts {
    int count;
    run_host *rows;
} run_hosts;

/* Looks at everything that the specs name, in the order they name it: hosts behind ssh are reached, all at a time, and
 * then measured one by one. `ssh` is as in launch_order; `stop` ends it with SHOAL_STOPPED.  SHOAL_USAGE for specs that
 * make no sense. */
int run_hosts_check(run_hosts **out, const launch_specs *specs, const char *ssh, const volatile int *stop);
void run_hosts_free(run_hosts **check);
/* Before a job is submitted: SHOAL_INVALID with the reason when no worker could be started, since Slurm is not there or
 * has no such partition or, where `reach_ssh` asks for that, since no host can be reached. */
int run_hosts_can_start(const launch_ask *ask, const char *ssh, bool reach_ssh, const volatile int *stop);

/* The store that workers would meet in, as it is reached from here. */
typedef struct run_store_seen {
    bool reached;
    double round_trip; /* seconds, the best of a few */
    char why[1024];    /* when it was not reached */
} run_store_seen;

/* What is wrong with the store is in *out and no failure; SHOAL_USAGE for a URL that makes no sense. */
int run_store_check(run_store_seen *out, const char *url, double patience);

/* Being the agent of a machine that someone reached by ssh or srun: serves its workers over standard input and output,
 * which nothing else may use, until the link ends.  `cache` is the folder in which workers keep rows, or NULL. */
int run_agent(const char *nonce, const char *cache);

#endif
