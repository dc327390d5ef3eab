/* A sweep's trials on workers elsewhere: those of jobs (shoal/task.h), each of which runs one trial after another until
 * the sweep is over.  To a worker that is one task, "sweep", which is the runner (runner.h) with the worker's store: so
 * workers decide by themselves, and whoever started them only looks on. */
#ifndef SWEEP_CREW_H
#define SWEEP_CREW_H

#include <shoal/option.h>
#include <shoal/task.h>

#include "runner.h"

typedef struct sweep_crew_options {
    const shoal_texts *workers;                   /* "local:4", "ssh:corn10,corn11:8", "slurm:64" */
    const char *url;                              /* of the sweep's store */
    const char *ssh;                              /* NULL: the usual one */
    const shoal_texts *send;                      /* files below this folder that trials elsewhere find below theirs */
    void (*say)(void *context, const char *line); /* what people should know; from a thread of its own */
    void *context;
} sweep_crew_options;

typedef struct sweep_crew sweep_crew;

/* Whether what is to be sent is there, before anything is begun. */
int sweep_crew_check(const sweep_crew_options *options);
/* Starts them as run->crew says, when the sweep has its limits.  To be stopped also after a failure. */
int sweep_crew_start(sweep_crew **out, const sweep_run *run);
/* Sees that every worker has something to do.  Fails when no worker can be had any more, or none can run trials. */
int sweep_crew_tend(sweep_crew *crew);
/* How many trials they run at once; 0 for NULL. */
int64_t sweep_crew_slots(const sweep_crew *crew);
/* Ends them; where the sweep is over they first may end by themselves.  Accepts a NULL inside. */
void sweep_crew_stop(sweep_crew **crew, bool over);

/* The function "sweep" of workers. */
shoal_task_function sweep_serve;

#endif
