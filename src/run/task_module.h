/* What a worker needs for tasks besides the engine: their client's key, and the functions of its module. */
#ifndef RUN_TASK_MODULE_H
#define RUN_TASK_MODULE_H

#include <shoal/task.h>

#include "base/secret.h"

/* Reads a key from a file or, for "fd:N", a descriptor that it closes: 64 hexadecimal digits, and perhaps the end
 * of a line. */
int run_read_task_key(base_secret **out, const char *path);
/* shoal_worker_options.load_tasks: the functions that a module exports with SHOAL_TASKS.  It stays loaded as long as
 * the process. */
int run_load_tasks(const shoal_task_entry **out, int file);

#endif
