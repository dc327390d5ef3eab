/* Workers on a Slurm cluster: slurm:64?partition=spot&time=30.
 *
 * With a cloud store, which any node reaches, they are tasks of an array job (slurm_array.c) and do not depend on this
 * process.  Otherwise they reach the store through this process (slurm_attached.c), and end with it. */
#include <string.h>

#include <shoal/error.h>

#include "base/memory.h"
#include "launch/slurm_internal.h"
#include "launch/slurm_options.h"

typedef struct slurm_launch {
    launch_workers base;
    launch_workers *way; /* one of the two */
} slurm_launch;

bool slurm_store_is_cloud(const char *scheme)
{
    return scheme && (strcmp(scheme, "az") == 0 || strcmp(scheme, "s3") == 0);
}

static int slurm_ask(launch_ask *out, const char *rest, const char *store_scheme, int64_t threads)
{
    slurm_options options;
    int status = slurm_options_parse(&options, rest);
    if (status < 0)
        return status;
    out->workers += options.workers;
    out->slots += options.workers * slurm_options_threads(&options, threads);
    out->local = false;
    out->far = true;
    if (slurm_store_is_cloud(store_scheme))
        out->outlive = true;
    else
        out->through = "slurm";
    slurm_options_release(&options);
    return SHOAL_OK;
}

static int slurm_start(launch_workers *base, const char *rest, int64_t extra)
{
    slurm_launch *self = (slurm_launch *)base;
    bool cloud = slurm_store_is_cloud(shoal_store_describe(base->order->store).scheme);
    const struct launcher *class = cloud ? &slurm_array : &slurm_attached;
    int status = base_alloc(&self->way, 1, class->size, "the workers");
    if (status < 0)
        return status;
    *self->way = (launch_workers){.class = class, .order = base->order, .first_slot = base->first_slot};
    status = class->start(self->way, rest, extra);
    if (status == SHOAL_OK && base->begin >= 0)
        status = class->scale(self->way, base->begin + extra);
    return status;
}

static launch_workers *way_of(const launch_workers *base)
{
    return ((const slurm_launch *)base)->way;
}

static int slurm_tick(launch_workers *base)
{
    return way_of(base)->class->tick(way_of(base));
}

static void slurm_progress(launch_workers *base)
{
    way_of(base)->class->progress(way_of(base));
}

static int slurm_scale(launch_workers *base, int64_t count)
{
    return way_of(base)->class->scale(way_of(base), count);
}

static int64_t slurm_running(const launch_workers *base)
{
    return way_of(base)->class->running(way_of(base));
}

static int64_t slurm_wanted(const launch_workers *base)
{
    return way_of(base)->class->wanted(way_of(base));
}

static void slurm_tell_leave(launch_workers *base)
{
    way_of(base)->class->tell_leave(way_of(base));
}

static bool slurm_is_over(launch_workers *base)
{
    return way_of(base)->class->is_over(way_of(base));
}

static void slurm_end(launch_workers *base)
{
    way_of(base)->class->end(way_of(base));
}

static void slurm_free(launch_workers *base)
{
    slurm_launch *self = (slurm_launch *)base;
    if (self->way)
        self->way->class->free(self->way);
    base_free(&self->way);
}

const struct launcher launch_slurm = {
    .scheme = "slurm",
    .form = "slurm:N[?OPTION=VALUE&...]",
    .size = sizeof(slurm_launch),
    .patience = 24 * 3600, /* they may have to wait in the queue */
    .ask = slurm_ask,
    .start = slurm_start,
    .tick = slurm_tick,
    .progress = slurm_progress,
    .scale = slurm_scale,
    .running = slurm_running,
    .wanted = slurm_wanted,
    .tell_leave = slurm_tell_leave,
    .is_over = slurm_is_over,
    .end = slurm_end,
    .free = slurm_free,
};
