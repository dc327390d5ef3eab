/* Being a worker: a process that works on the jobs of a store until they have ended, or until this machine is needed
 * for something else. */
#ifndef RUN_WORKER_H
#define RUN_WORKER_H

#include <stdbool.h>
#include <stdint.h>
#include <shoal/option.h>

#include "jobs.h"

typedef struct run_worker_options {
    const char *job, *roles, *cache, *data_url, *notice, *spec, *id, *kernel, *device, *allow_code, *task_key;
    shoal_texts data_roots;
    int64_t slots, memory, cache_bytes, parent;
    double idle, patience;
    bool quiet;
    const struct shoal_task_entry *functions; /* that tasks may name besides "program", ended by one without a name */
} run_worker_options;

/* Of run_worker_options: what it does, what it may read, what only programs that start workers say. */
extern const shoal_option *const run_worker_work_options, *const run_worker_data_options,
                                                              *const run_worker_launch_options;

/* How the work ended. */
typedef enum run_worker_end {
    RUN_WORKER_FAILED,
    RUN_WORKER_DONE,      /* its job has ended, or it was told to leave */
    RUN_WORKER_REMOVED,   /* somebody removed the job */
    RUN_WORKER_MAY_GO_ON, /* the store went away, and the job outlives that */
} run_worker_end;

/* Works, and takes over the signals of this process.  Not SHOAL_OK, with a sentence, unless the end is
 * RUN_WORKER_DONE.  `log` may be NULL. */
int run_worker(run_worker_end *end, const run_worker_options *work, run_jobs_settings where,
               void (*log)(void *context, const char *line));

#endif
