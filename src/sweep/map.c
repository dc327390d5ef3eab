/* See map.h.  The runners are a heap by when they are free. */
#include "map.h"

#include <math.h>

#include <shoal/error.h>

#include "base/memory.h"

/* The first of the heap is free later than it was. */
static void sink_first(double *heap, int64_t count)
{
    for (int64_t at = 0, next; (next = 2 * at + 1) < count; at = next) {
        next += next + 1 < count && heap[next + 1] < heap[next];
        if (heap[at] <= heap[next])
            return;
        const double kept = heap[at];
        heap[at] = heap[next];
        heap[next] = kept;
    }
}

int sweep_map_time(double *out, const double *seconds, int64_t trials, int64_t at_once)
{
    const int64_t runners = at_once < trials ? at_once : trials;
    double *heap = NULL;
    *out = 0;
    int status = base_alloc(&heap, (size_t)runners + 1, sizeof *heap, "a map");
    for (int64_t i = 0; i < trials && status == SHOAL_OK && runners > 0; i++) {
        heap[0] += seconds[i];
        *out = fmax(*out, heap[0]);
        sink_first(heap, runners);
    }
    base_free(&heap);
    return status;
}
