/* A worker's command line, composed in this one place.  See launch_internal.h. */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "launch/launch_internal.h"

static const char *as_text(launch_arguments *out, const char *format, unsigned long long value)
{
    char *text = out->number[out->numbers++];
    snprintf(text, sizeof out->number[0], format, value);
    return text;
}

static void add_argument(launch_arguments *out, const char *name, const char *value)
{
    out->argument[out->count++] = name;
    if (value)
        out->argument[out->count++] = value;
}

/* Of the paper's three services: one worker reduces last, about the square root of N reduce, N map. */
static const char *role_of(const launch_order *order, int64_t slot)
{
    if (order->led)
        return "map,reduce";
    return slot == 0 ? "last" : slot < order->helpers ? "reduce" : "map";
}

void launch_arguments_of(launch_arguments *out, const launch_order *order, const launch_worker *worker)
{
    *out = (launch_arguments){0};
    add_argument(out, "worker", NULL);
    add_argument(out, "--store", worker->store_url);
    add_argument(out, "--job", order->id);
    add_argument(out, "--spec", order->spec);
    add_argument(out, "--id", as_text(out, "%016llx", worker->id));
    add_argument(out, "--slots", as_text(out, "%llu", (unsigned long long)worker->threads));
    if (worker->memory > 0)
        add_argument(out, "--memory", as_text(out, "%llu", (unsigned long long)worker->memory));
    add_argument(out, "--kernel", order->kernel);
    if (order->device && *order->device && strcmp(order->device, "auto") != 0)
        add_argument(out, "--device", order->device);
    if (worker->near)
        add_argument(out, "--data-root", "/");
    if (worker->data_url)
        add_argument(out, "--data-store", worker->data_url);
    if (worker->cache)
        add_argument(out, "--cache", worker->cache);
    if (worker->parent > 0)
        add_argument(out, "--parent", as_text(out, "%llu", (unsigned long long)worker->parent));
    if (order->task_key)
        add_argument(out, "--task-key", LAUNCH_KEY_PLACE);
    if (order->led || order->helpers > 0)
        add_argument(out, "--roles", role_of(order, worker->slot));
    add_argument(out, "--quiet", NULL);
}

int64_t launch_threads_each(int64_t wanted, int64_t cores, int64_t workers)
{
    int64_t each = wanted > 0 ? wanted : workers > 0 ? cores / workers : cores;
    return each > 0 ? each : 1;
}

int64_t launch_memory_each(int64_t wanted, int64_t workers)
{
    return wanted > 0 ? wanted : base_memory_share(workers);
}
