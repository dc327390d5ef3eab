/* Several store calls at once.  See job_gang.h. */
#include "engine/store/job_gang.h"

#include <stdatomic.h>
#include <stdio.h>

#include <shoal/error.h>

#include "base/world.h"

enum { THREADS_MOST = 16 };

typedef struct gang {
    job_gang_task *task;
    void *context;
    int64_t items;
    atomic_llong next;
    atomic_int failed;
    int status; /* of the first failure, and its message: written by the thread that set `failed` */
    char message[1024];
} gang;

static void work_in_gang(void *context)
{
    gang *all = context;
    int status = SHOAL_OK;
    while (!atomic_load(&all->failed)) {
        int64_t item = atomic_fetch_add(&all->next, 1);
        if (item >= all->items)
            return;
        status = all->task(all->context, item);
        if (status == SHOAL_OK)
            continue;
        if (!atomic_exchange(&all->failed, 1)) {
            all->status = status;
            snprintf(all->message, sizeof all->message, "%s", shoal_error());
        }
        return;
    }
}

int job_gang_run(int threads, int64_t items, job_gang_task *task, void *context)
{
    gang all = {.task = task, .context = context, .items = items};
    base_thread *thread[THREADS_MOST] = {NULL};
    for (int i = 1; i < threads && i < THREADS_MOST && i < items; i++)
        if (base_thread_start(&thread[i], work_in_gang, &all) < 0)
            break; /* the threads there are do the work too */
    work_in_gang(&all);
    for (int i = 1; i < THREADS_MOST; i++)
        base_thread_join(&thread[i]);
    return all.status == SHOAL_OK ? SHOAL_OK : shoal_fail(all.status, "%s", all.message);
}
