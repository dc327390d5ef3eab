/* Workers on this machine: local:8.  They see its files, and outlive their starter unless bound
 * to it. */
#include <unistd.h>
#include <shoal/error.h>

#include "base/option.h"
#include "base/pool.h"
#include "launch/launch_internal.h"

typedef struct local {
    launch_workers base;
    launch_crew *crew;
    int64_t threads, memory; /* of each */
} local;

static int parse(int64_t *count, const char *rest)
{
    if (!base_parse_count(count, rest) || *count < 1 || *count > LAUNCH_WORKERS_MOST)
        return shoal_fail(SHOAL_USAGE, "--workers: 'local:%s' should be local:N with N from 1 to %d", rest,
                          LAUNCH_WORKERS_MOST);
    return SHOAL_OK;
}

static int local_ask(launch_ask *out, const char *rest, const char *store_scheme, int64_t threads)
{
    int64_t count = 0;
    (void)store_scheme;
    int status = parse(&count, rest);
    if (status < 0)
        return status;
    out->workers += count;
    out->slots += count * launch_threads_each(threads, base_cores(), count);
    return SHOAL_OK;
}

static void compose_local(void *context, launch_arguments *out, int64_t slot, uint64_t worker)
{
    const local *self = context;
    launch_arguments_of(out, self->base.order,
                        &(launch_worker){.id = worker,
                                         .slot = self->base.first_slot + slot,
                                         .threads = self->threads,
                                         .memory = self->memory,
                                         .store_url = self->base.order->store_url,
                                         .near = true,
                                         .parent = self->base.order->bound ? getpid() : 0});
}

static void tell_gone(void *context, uint64_t worker, const char *why)
{
    const local *self = context;
    if (self->base.order->gone)
        self->base.order->gone(self->base.order->context, worker, why);
}

static int local_start(launch_workers *base, const char *rest, int64_t extra)
{
    local *self = (local *)base;
    int64_t count = 0;
    int status = parse(&count, rest);
    if (status < 0)
        return status;
    self->threads = launch_threads_each(base->order->threads, base_cores(), count);
    self->memory = launch_memory_each(base->order->memory, count);
    launch_crew_options options = {.program = base->order->program,
                                   .task_key = base->order->task_key,
                                   .group = base->order->bound ? BASE_GROUP_SESSION : BASE_GROUP_OURS,
                                   .arguments = compose_local,
                                   .gone = tell_gone,
                                   .context = self};
    return launch_crew_new(&self->crew, (base->begin >= 0 ? base->begin : count) + extra, &options);
}

static int local_tick(launch_workers *base)
{
    local *self = (local *)base;
    return launch_crew_tick(self->crew);
}

static void local_progress(launch_workers *base)
{
    launch_crew_progress(((local *)base)->crew);
}

static int local_scale(launch_workers *base, int64_t count)
{
    return launch_crew_scale(((local *)base)->crew, count);
}

static int64_t local_running(const launch_workers *base)
{
    return launch_crew_running(((const local *)base)->crew);
}

static int64_t local_wanted(const launch_workers *base)
{
    return launch_crew_wanted(((const local *)base)->crew);
}

static void local_tell_leave(launch_workers *base)
{
    launch_crew_tell_leave(((local *)base)->crew);
}

static bool local_is_over(launch_workers *base)
{
    return launch_crew_wait(((local *)base)->crew, 0);
}

static void local_end(launch_workers *base)
{
    launch_crew_end(((local *)base)->crew);
}

static void local_free(launch_workers *base)
{
    launch_crew_free(&((local *)base)->crew);
}

const struct launcher launch_local = {
    .scheme = "local",
    .form = "local:N",
    .size = sizeof(local),
    .patience = 60,
    .ask = local_ask,
    .start = local_start,
    .tick = local_tick,
    .progress = local_progress,
    .scale = local_scale,
    .running = local_running,
    .wanted = local_wanted,
    .tell_leave = local_tell_leave,
    .is_over = local_is_over,
    .end = local_end,
    .free = local_free,
};
