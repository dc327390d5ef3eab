/* Functions of a module for task_client: what they get is what they give. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <shoal/task.h>

static int echo(void **bytes, size_t *size, const shoal_task_call *call)
{
    *bytes = malloc(call->size + 1);
    if (!*bytes)
        return SHOAL_MEMORY;
    memcpy(*bytes, call->bytes, call->size);
    *size = call->size;
    return SHOAL_OK;
}

static int doze(void **bytes, size_t *size, const shoal_task_call *call)
{
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    return echo(bytes, size, call);
}

static int nothing(void **bytes, size_t *size, const shoal_task_call *call)
{
    (void)bytes, (void)size, (void)call;
    return SHOAL_OK;
}

SHOAL_TASKS({"echo", echo}, {"doze", doze}, {"nothing", nothing});
