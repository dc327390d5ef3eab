/* Distances between samples that are bytes, for recluster.c: whole numbers, and so exact in any order. */
#include <string.h>

#include "base/memory.h"
#include "learn/kmeans/seed.h"

enum { LINE = 64, HALF = 128 };

/* Whether every value is a byte; those before the first that is not are written. */
static bool take_bytes(uint8_t *out, const double *values, int64_t count)
{
    bool whole = true;
    for (int64_t i = 0; i < count; i++) {
        const double value = values[i] >= 0 && values[i] <= 255 ? values[i] : 0;
        out[i] = (uint8_t)(int)value;
        whole &= (double)out[i] == values[i];
    }
    return whole;
}

static void measure_sample(seed_samples8 *self, int64_t point)
{
    const uint8_t *row = self->row + point * self->stride;
    int64_t sum = 0, square = 0;
    for (int64_t k = 0; k < self->stride; k++) {
        sum += row[k];
        square += row[k] * row[k];
    }
    self->square[point] = square;
    self->start[point] = square - 2 * HALF * sum;
}

int seed_samples8_fill(seed_samples8 *self, const double *points, int64_t count, int64_t columns)
{
    const int64_t stride = (columns + LINE - 1) / LINE * LINE;
    uint8_t first[LINE];
    *self = (seed_samples8){.stride = stride};
    if (stride > KERNEL_BYTE_COLUMNS_MOST || !take_bytes(first, points, columns < LINE ? columns : LINE))
        return SHOAL_OK;
    int status = base_alloc(&self->row, (size_t)count, (size_t)stride, "samples");
    if (status == SHOAL_OK)
        status = base_alloc(&self->set, SEED_MEMBERS, (size_t)stride, "trials");
    if (status == SHOAL_OK)
        status = base_alloc_unset(&self->square, (size_t)count, sizeof *self->square, "norms of samples");
    if (status == SHOAL_OK)
        status = base_alloc_unset(&self->start, (size_t)count, sizeof *self->start, "norms of samples");
    for (int64_t p = 0; status == SHOAL_OK && p < count; p++) {
        if (!take_bytes(self->row + p * stride, points + p * columns, columns)) {
            seed_samples8_free(self);
            break;
        }
        measure_sample(self, p);
    }
    return status;
}

void seed_samples8_free(seed_samples8 *self)
{
    base_free(&self->row);
    base_free(&self->set);
    base_free(&self->square);
    base_free(&self->start);
}

void seed_samples8_set(seed_samples8 *self, const int64_t *trial, int64_t trials)
{
    for (int64_t t = 0; t < trials; t++)
        for (int64_t k = 0; k < self->stride; k++)
            self->set[t * self->stride + k] = (int8_t)(self->row[trial[t] * self->stride + k] - HALF);
}

/* |x - t|^2 = |x|^2 + |t|^2 - 2 x.(t - 128) - 256 (the sum of x) */
void seed_samples8_distances(double *out, const seed_samples8 *self, const kernel_set *kernel, int64_t point,
                             const int64_t *trial, int64_t trials)
{
    int32_t dot[SEED_MEMBERS];
    kernel->dots8(dot, self->row + point * self->stride, self->set, (int)trials, self->stride);
    for (int64_t t = 0; t < trials; t++)
        out[t] = (double)(self->start[point] + self->square[trial[t]] - 2 * (int64_t)dot[t]);
}
