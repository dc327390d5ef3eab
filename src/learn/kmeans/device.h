/* k-means on a device: the rows of a slice, held there from round to round.  See kernel/device/kernel_device.h. */
#ifndef KMEANS_DEVICE_H
#define KMEANS_DEVICE_H

#include "kernel/device/kernel_device.h"
#include "learn/kmeans/kmeans_internal.h"

typedef struct kmeans_held {
    kernel_device *device;
    kernel_device_rows *rows;
    const shoal_shape *shape; /* of the whole data set */
    int64_t first_row, count;
    int64_t measured; /* bytes of `units` that the rows were measured by; 0: not yet */
    unsigned char *units;
    int64_t units_room;
} kmeans_held;

/* shoal_algorithm.attach, detach, map_many and leap. */
int kmeans_attach(void **out, const shoal_round *round, const shoal_slice_rows *rows, const shoal_crew *crew);
void kmeans_detach(void **held);
int kmeans_map_many(shoal_partial *partial, const shoal_round *round, void *held, const shoal_crew *crew,
                    int64_t *counters);
int kmeans_leap(shoal_round **next, int64_t *rounds, const shoal_round *round, void *held, int64_t most,
                const shoal_crew *crew, int64_t *counters);

/* Brings every row's label up to date with the round's centres. */
int kmeans_device_assign(kmeans_held *held, const kmeans_view *view, const shoal_crew *crew, int64_t *counters);
/* What became of a call of the device, as a failure with its sentence. */
int kmeans_device_fail(const kmeans_held *held, int status);

#endif
