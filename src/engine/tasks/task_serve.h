/* A worker at work for one client.  See shoal/task.h and task_decide.h.
 *
 * As many threads as the worker has slots run tasks, a bundle each.  One of those that have nothing to run is the
 * *lookout*: it waits for the store, lists what there is, claims a bundle, and hands the lookout on before it runs it.
 * The thread that called watches the others: it puts results that wait behind a long task, gives back what such a task
 * keeps from running elsewhere, and sees that tasks which were cancelled stop. */
#ifndef TASK_SERVE_H
#define TASK_SERVE_H

#include <shoal/job.h>

#include "engine/tasks/task_wire.h"

typedef struct task_server {
    shoal_store *store;
    const shoal_worker_options *options; /* with the defaults filled in */
    uint64_t worker;
    const char *id;                /* the client */
    const _Atomic uint32_t *leave; /* not 0: leave */
    bool stays;                    /* until the client closes; otherwise until there is nothing to do */
    double patience;
    const char *kernel, *why; /* for its record; why it leaves, when it was told to */
    void (*log)(void *context, const char *line);
    void *log_context;
} task_server;

/* Serves the client whose description, jobs/ID/tasks, these bytes are.  SHOAL_OK: the client has ended, or there is
 * nothing to do, and then *idle; SHOAL_STOPPED when told to leave; SHOAL_INVALID for a client that can't be served
 * here: this worker was not given its key, say. */
int task_serve(bool *idle, const task_server *server, const void *spec, size_t size, double spec_age);

#endif
