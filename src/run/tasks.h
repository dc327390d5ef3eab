/* Workers of tasks (shoal/task.h), before any is started. */
#ifndef RUN_TASKS_H
#define RUN_TASKS_H

#include <shoal/option.h>

/* SHOAL_USAGE for what can't be started for tasks. */
int run_check_task_workers(const shoal_texts *specs);

#endif
