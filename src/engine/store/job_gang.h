/* Several store calls at once: items dealt out to a few threads of the world.
 *
 * Unlike base_pool's, these threads may block, and a simulator can run them. */
#ifndef JOB_GANG_H
#define JOB_GANG_H

#include <stdint.h>

typedef int job_gang_task(void *context, int64_t item);

/* Calls task(context, item) for every item, on at most `threads` threads, the calling one included; with one, in order.
 * The first failure ends the rest; its status and message become the call's. */
int job_gang_run(int threads, int64_t items, job_gang_task *task, void *context);

#endif
