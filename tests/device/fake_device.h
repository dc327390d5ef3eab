/* A device that computes on the CPU, by the definition for every pair: for what surrounds devices.  Its n-th call can
 * fail. */
#ifndef FAKE_DEVICE_H
#define FAKE_DEVICE_H

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <shoal/learn.h>

#include "kernel/device/kernel_device.h"
#include "kernel/kernel.h"

typedef struct fake_device {
    kernel_device table; /* first */
    const kernel_set *cpu;
    long long calls, fails_at; /* the call that fails, counted from 1; 0: none */
    int fails_with;            /* KERNEL_DEVICE_LOST, say */
    long long opened, closed;
    bool lost;
} fake_device;

struct kernel_device_rows {
    fake_device *device;
    kernel_device_shape shape;
    double *values, *weights, *stage_weights; /* exact */
    void *stage;
    int64_t put;
    kernel_device_units units;
    double *arrays; /* of the units */
    int32_t *label;
    double *centres;
    int64_t k;
};

enum { FAKE_ROOM = 100 };

/* Whether this call fails; all later ones do once a device is lost. */
static inline int fake_status(fake_device *self)
{
    self->calls++;
    if (self->lost || self->calls == self->fails_at) {
        int status = self->lost ? KERNEL_DEVICE_LOST : self->fails_with;
        self->lost = status == KERNEL_DEVICE_LOST;
        strcpy(self->table.message, "it was told to fail");
        return status;
    }
    return 0;
}

static inline int fake_open(kernel_device_rows **out, kernel_device *table, const kernel_device_shape *shape)
{
    fake_device *self = (fake_device *)table;
    *out = NULL;
    int status = fake_status(self);
    if (status < 0)
        return status;
    kernel_device_rows *held = calloc(1, sizeof *held);
    const size_t cells = (size_t)(shape->rows * shape->columns);
    held->device = self;
    held->shape = *shape;
    held->values = calloc(cells, sizeof(double));
    held->weights = calloc((size_t)shape->rows, sizeof(double));
    held->stage = calloc((size_t)(FAKE_ROOM * shape->columns), sizeof(double));
    held->stage_weights = calloc(FAKE_ROOM, sizeof(double));
    held->label = calloc((size_t)shape->rows, sizeof(int32_t));
    self->opened++;
    *out = held;
    return 0;
}

static inline void *fake_room(kernel_device_rows *held, int64_t *rows, double **weights)
{
    *rows = FAKE_ROOM;
    *weights = held->shape.weighted ? held->stage_weights : NULL;
    return fake_status(held->device) < 0 ? NULL : held->stage;
}

static inline int fake_put(kernel_device_rows *held, int64_t rows)
{
    static const shoal_type types[] = {SHOAL_UINT8, SHOAL_FLOAT32, SHOAL_FLOAT64};
    int status = fake_status(held->device);
    if (status < 0)
        return status;
    shoal_convert_float64(held->values + held->put * held->shape.columns, held->stage, types[held->shape.form],
                          rows * held->shape.columns);
    memcpy(held->weights + held->put, held->stage_weights, (size_t)rows * sizeof(double));
    held->put += rows;
    return 0;
}

static inline int fake_measure(kernel_device_rows *held, const kernel_device_units *units)
{
    const size_t columns = (size_t)held->shape.columns, wide = (size_t)units->wide;
    int status = fake_status(held->device);
    if (status < 0)
        return status;
    free(held->arrays);
    held->arrays = calloc(2 * columns + 2 * wide, sizeof(double));
    double *at = held->arrays;
    held->units = *units;
    held->units.origin = memcpy(at, units->origin, columns * sizeof *at);
    held->units.inverse = memcpy(at + columns, units->inverse, columns * sizeof *at);
    held->units.wide_inverse = memcpy(at + 2 * columns, units->wide_inverse, wide * sizeof *at);
    held->units.wide_column = memcpy(at + 2 * columns + wide, units->wide_column, wide * sizeof *at);
    return 0;
}

/* Row i in units, into `to`. */
static inline const double *fake_row(const kernel_device_rows *held, int64_t i, double *to)
{
    const int64_t columns = held->shape.columns;
    for (int64_t k = 0; k < columns; k++)
        to[k] = held->values[i * columns + k] * held->units.prescale;
    return to;
}

static inline double fake_weight(const kernel_device_rows *held, int64_t i)
{
    return held->shape.weighted ? held->weights[i] * held->units.weight_scale : 1;
}

static inline int fake_assign(kernel_device_rows *held, const double *centres, int64_t k, kernel_device_way way)
{
    const kernel_set *cpu = held->device->cpu;
    const int64_t columns = held->shape.columns;
    int status = fake_status(held->device);
    (void)way;
    if (status < 0)
        return status;
    free(held->centres);
    held->centres = malloc((size_t)(k * columns) * sizeof(double));
    memcpy(held->centres, centres, (size_t)(k * columns) * sizeof(double));
    held->k = k;
    double *row = malloc((size_t)columns * sizeof(double));
    for (int64_t i = 0; i < held->shape.rows; i++) {
        double least = INFINITY;
        fake_row(held, i, row);
        held->label[i] = 0;
        for (int64_t j = 0; j < k; j++) {
            const double *c = centres + j * columns;
            double v = held->shape.unit ? -cpu->product64(row, c, columns) : cpu->distance64(row, c, columns);
            if (v < least) {
                least = v;
                held->label[i] = (int32_t)j;
            }
        }
    }
    free(row);
    return 0;
}

static inline int fake_sums(kernel_device_rows *held, const kernel_device_sums *out)
{
    const kernel_set *cpu = held->device->cpu;
    const kernel_device_units *u = &held->units;
    const int64_t columns = held->shape.columns;
    int status = fake_status(held->device);
    if (status < 0)
        return status;
    double *row = malloc((size_t)columns * sizeof(double));
    for (int64_t i = 0; i < held->shape.rows; i++) {
        const int32_t j = held->label[i];
        const double w = fake_weight(held, i);
        cpu->move64(out->values + j * columns, NULL, fake_row(held, i, row), u->origin, u->inverse, w, columns);
        out->rows[j] += w > 0;
        if (out->weight)
            out->weight[j] += llrint(w * u->weight_inverse);
        for (int64_t c = 0; c < u->wide; c++) {
            const int64_t column = u->wide_column[c];
            shoal_wide_add(out->wide, held->k * u->wide, j * u->wide + c,
                           rint(w * (row[column] - u->origin[column]) * u->wide_inverse[c]), u->wide_bits);
        }
    }
    free(row);
    return 0;
}

static inline int fake_ending(kernel_device_rows *held, kernel_device_ending *inout)
{
    const int64_t columns = held->shape.columns;
    int status = fake_status(held->device);
    if (status < 0)
        return status;
    double *row = malloc((size_t)columns * sizeof(double));
    for (int64_t i = 0; i < held->shape.rows; i++) {
        const int32_t j = held->label[i];
        double d = held->device->cpu->distance64(fake_row(held, i, row), held->centres + j * columns, columns);
        d = d > inout->same ? d : 0;
        const double term = fake_weight(held, i) * d;
        if (inout->inverse > 0)
            shoal_wide_add(inout->objective, 1, 0, rint(term * inout->inverse), inout->bits);
        inout->most = fmax(inout->most, term);
        inout->sizes[j]++;
        inout->label[i] = j;
        if (inout->distance)
            inout->distance[i] = d;
    }
    free(row);
    return 0;
}

static inline void fake_close(kernel_device_rows **inout)
{
    kernel_device_rows *held = *inout;
    if (!held)
        return;
    held->device->closed++;
    free(held->values);
    free(held->weights);
    free(held->stage);
    free(held->stage_weights);
    free(held->arrays);
    free(held->label);
    free(held->centres);
    free(held);
    *inout = NULL;
}

/* One round at a time, by the rules of kernel_device_rounds. */
static inline int fake_rounds(kernel_device_rows *held, kernel_device_rounds *job)
{
    const int64_t k = job->k, columns = held->shape.columns;
    int64_t *sums = malloc((size_t)(k * columns + 2 * k) * sizeof *sums);
    int status = 0;
    job->done = 0;
    job->converged = false;
    while (status == 0 && job->done < job->most && !job->converged) {
        kernel_device_sums out = {.values = sums, .rows = sums + k * columns, .weight = sums + k * columns + k};
        double total = 0, change = 0;
        bool empty = false, differs = false;
        memset(sums, 0, (size_t)(k * columns + 2 * k) * sizeof *sums);
        if ((status = fake_assign(held, job->centres, k, KERNEL_DEVICE_PLAIN)) < 0 ||
            (status = fake_sums(held, &out)) < 0)
            break;
        for (int64_t j = 0; j < k; j++)
            empty |= held->shape.weighted ? out.weight[j] <= 0 : out.rows[j] <= 0;
        if (empty)
            break;
        for (int64_t j = 0; j < k; j++) {
            const double weight =
                held->shape.weighted ? (double)out.weight[j] / held->units.weight_inverse : (double)out.rows[j];
            double gained = 0, moved = 0;
            for (int64_t c = 0; c < columns; c++) {
                const double inverse = held->units.inverse[c], quantum = inverse > 0 ? 1 / inverse : 0;
                double sum = (double)sums[j * columns + c] * quantum, *centre = &job->centres[j * columns + c];
                double old = *centre, from = old - held->units.origin[c];
                gained += weight * from * from - 2 * from * sum;
                *centre = held->units.origin[c] + sum / weight;
                moved += (*centre - old) * (*centre - old);
                differs |= memcmp(centre, &old, sizeof old) != 0;
            }
            total += gained;
            change += moved;
        }
        job->done++;
        job->change = change;
        job->objective = fmax(job->square_total + total, 0);
        job->converged = !differs || change <= job->least;
    }
    free(sums);
    return status;
}

static inline kernel_device *fake_device_init(fake_device *self)
{
    *self = (fake_device){.table = {.version = KERNEL_DEVICE_VERSION,
                                    .bytes = sizeof(kernel_device),
                                    .name = "fake:0",
                                    .about = "a table that computes on the CPU",
                                    .open = fake_open,
                                    .room = fake_room,
                                    .put = fake_put,
                                    .measure = fake_measure,
                                    .assign = fake_assign,
                                    .sums = fake_sums,
                                    .ending = fake_ending,
                                    .rounds = fake_rounds,
                                    .close = fake_close},
                          .fails_with = KERNEL_DEVICE_LOST};
    kernel_choose(&self->cpu, NULL);
    return &self->table;
}

#endif
