/* Threads that wait for work.
 *
 *     base_pool *pool = NULL;
 *     base_pool_new(&pool, 8);
 *     base_pool_each(pool, grains, map_one, &job);      // map_one(&job, item, thread) for every item, in any order
 *     base_pool_free(&pool);
 *
 * Items are dealt out in contiguous runs, one run a thread, so that a thread sees the same rows every
 * time; a thread that is done steals half of the longest run that remains.  The calling thread works too, and waits for
 * no thread that has not begun.
 * Signals come to other threads than the pool's, but for those that an instruction causes (SIGSEGV, SIGBUS, ...).
 * A task that fails stops the rest; its status and message become the call's.  Every thread computes
 * with the default floating-point environment. */
#ifndef BASE_POOL_H
#define BASE_POOL_H

#include <stdint.h>

typedef struct base_pool base_pool;

typedef int base_task(void *context, int64_t item, int thread);

/* Cores this process may use (its affinity mask and its control group's quota). */
int base_cores(void);

int base_pool_new(base_pool **out, int threads);
void base_pool_free(base_pool **pool);
int base_pool_threads(const base_pool *pool);
int base_pool_each(base_pool *pool, int64_t items, base_task *task, void *context);
/* The same by those threads that do not sleep at the moment: for work that is done by the time one has woken up. */
int base_pool_each_awake(base_pool *pool, int64_t items, base_task *task, void *context);

/* Rounding to nearest, subnormals kept, no traps, for the calling thread. */
void base_default_arithmetic(void);

/* Seconds on a clock that never goes back. */
double base_seconds(void);

#endif
