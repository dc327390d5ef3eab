/* k-means on a device.  See device.h.
 *
 * Rows are put once, as uint8, float32 or float64, unit vectors where the metric asks for them; the device keeps labels
 * and sums.  Rounds that it does not do (the scan, first centres, batches) are mapped on the CPU as ever. */
#include "learn/kmeans/device.h"

#include <string.h>

#include "base/memory.h"

int kmeans_device_fail(const kmeans_held *held, int status)
{
    switch (status) {
    case KERNEL_DEVICE_ABSENT: return SHOAL_ABSENT;
    case KERNEL_DEVICE_STOPPED: return shoal_fail(SHOAL_STOPPED, "stopped while mapping rows");
    case KERNEL_DEVICE_MEMORY: return shoal_fail(SHOAL_MEMORY, "%s: %s", held->device->name, held->device->message);
    default: return shoal_fail(SHOAL_SYSTEM, "%s: %s", held->device->name, held->device->message);
    }
}

/* ---- putting rows there ------------------------------------------------------------------------------------------ */

typedef struct putting {
    const shoal_slice_rows *rows;
    const kernel_set *kernel;
    kernel_device_form form;
    bool unit;
    int64_t first, count, run; /* rows of the slice that are put now, and of one task */
    unsigned char *to;
    double *weights;
} putting;

static kernel_device_form form_of(shoal_type type, bool unit)
{
    if (!unit && (type == SHOAL_UINT8 || type == SHOAL_BOOL))
        return KERNEL_DEVICE_UINT8;
    return !unit && type == SHOAL_FLOAT32 ? KERNEL_DEVICE_FLOAT32 : KERNEL_DEVICE_FLOAT64;
}

static size_t form_size(kernel_device_form form)
{
    return form == KERNEL_DEVICE_UINT8 ? 1 : form == KERNEL_DEVICE_FLOAT32 ? sizeof(float) : sizeof(double);
}

static void put_values(unsigned char *to, const putting *job, const void *values, int64_t rows)
{
    const shoal_shape *shape = job->rows->shape;
    const int64_t count = rows * shape->columns;
    if (form_size(job->form) == shoal_type_size(shape->type) && !job->unit &&
        (job->form != KERNEL_DEVICE_FLOAT64 || shape->type == SHOAL_FLOAT64)) {
        memcpy(to, values, (size_t)count * shoal_type_size(shape->type));
        return;
    }
    shoal_convert_float64((double *)(void *)to, values, shape->type, count);
    for (int64_t i = 0; job->unit && i < rows; i++)
        kmeans_make_unit((double *)(void *)to + i * shape->columns, job->kernel, shape->columns);
}

/* A run of rows, cut where grains end. */
static int put_run(void *context, int64_t item, int thread)
{
    const putting *job = context;
    const shoal_slice_rows *rows = job->rows;
    const size_t row_bytes = (size_t)rows->shape->columns * form_size(job->form);
    int64_t at = item * job->run, end = at + job->run < job->count ? at + job->run : job->count;
    while (at < end) {
        const int64_t row = rows->first_row + job->first + at;
        const int64_t left = rows->shape->rows_per_grain - row % rows->shape->rows_per_grain;
        const int64_t count = end - at < left ? end - at : left;
        const void *values = NULL;
        int status = rows->read(rows, &values, row, count, thread);
        if (status < 0)
            return status;
        put_values(job->to + (size_t)at * row_bytes, job, values, count);
        if (job->weights)
            memcpy(job->weights + at, rows->weights + job->first + at, (size_t)count * sizeof *job->weights);
        at += count;
    }
    return SHOAL_OK;
}

static int put_rows(kmeans_held *held, putting *job, const shoal_crew *crew)
{
    enum { RUN_BYTES = 1 << 18 };
    const int64_t row_bytes = job->rows->shape->columns * (int64_t)form_size(job->form);
    job->run = RUN_BYTES / row_bytes > 0 ? RUN_BYTES / row_bytes : 1;
    for (job->first = 0; job->first < held->count; job->first += job->count) {
        int64_t room = 0;
        job->to = held->device->room(held->rows, &room, &job->weights);
        if (!job->to)
            return kmeans_device_fail(held, KERNEL_DEVICE_LOST);
        job->count = held->count - job->first < room ? held->count - job->first : room;
        int status = crew->each(crew, (job->count + job->run - 1) / job->run, put_run, job);
        if (status == SHOAL_OK && crew->asked && crew->asked(crew))
            status = shoal_fail(SHOAL_STOPPED, "stopped while mapping rows");
        if (status < 0)
            return status;
        if ((status = held->device->put(held->rows, job->count)) < 0)
            return kmeans_device_fail(held, status);
    }
    return SHOAL_OK;
}

int kmeans_attach(void **out, const shoal_round *round, const shoal_slice_rows *rows, const shoal_crew *crew)
{
    const kmeans_model *model = round->model;
    const shoal_shape *shape = rows->shape;
    kmeans_held *held = NULL;
    putting job = {
        .rows = rows, .unit = kmeans_is_cosine(model), .form = form_of(shape->type, kmeans_is_cosine(model))};
    const kernel_device_shape there = {.rows = rows->rows,
                                       .columns = shape->columns,
                                       .form = job.form,
                                       .weighted = rows->weights != NULL,
                                       .unit = job.unit};
    if (model->batch > 0 || (model->distances & KMEANS_ALL))
        return SHOAL_ABSENT;
    int status = base_alloc(&held, 1, sizeof *held, "rows on a device");
    if (status < 0)
        return status;
    *held = (kmeans_held){.device = crew->device, .shape = shape, .first_row = rows->first_row, .count = rows->rows};
    *out = held;
    status = kernel_choose(&job.kernel, crew->kernel);
    if (status == SHOAL_OK && (status = held->device->open(&held->rows, held->device, &there)) < 0)
        status = kmeans_device_fail(held, status);
    return status == SHOAL_OK ? put_rows(held, &job, crew) : status;
}

void kmeans_detach(void **inout)
{
    kmeans_held *held = *inout;
    if (!held)
        return;
    if (held->rows)
        held->device->close(&held->rows);
    base_free(&held->units);
    base_free(inout);
}

/* ---- rounds ------------------------------------------------------------------------------------------------------ */

/* What rows are measured by, as bytes that can be compared. */
static int write_units(kmeans_held *held, int64_t *size, const kmeans_view *view)
{
    const kmeans_model *model = view->model;
    const double numbers[] = {model->prescale, model->scale, model->weight_scale, model->weight_inverse,
                              (double)model->wide};
    const size_t columns = (size_t)model->columns * sizeof(double), wide = (size_t)model->wide * sizeof(double);
    const int64_t bytes = (int64_t)(sizeof numbers + 2 * columns + 2 * wide);
    if (held->units_room < 2 * bytes) { /* those of before stay in the first half */
        base_free(&held->units);
        held->units_room = held->measured = 0;
        int status = base_alloc(&held->units, 2, (size_t)bytes, "units of rows on a device");
        if (status < 0)
            return status;
        held->units_room = 2 * bytes;
    }
    unsigned char *to = held->units + held->units_room / 2;
    memcpy(to, numbers, sizeof numbers);
    memcpy(to += sizeof numbers, view->origin, columns);
    memcpy(to += columns, view->inverse, columns);
    if (model->wide > 0) {
        memcpy(to += columns, view->wide_column, wide);
        memcpy(to + wide, view->wide_inverse, wide);
    }
    *size = bytes;
    return SHOAL_OK;
}

static int measure(kmeans_held *held, const kmeans_view *view)
{
    const kmeans_model *model = view->model;
    const kernel_device_units units = {.origin = view->origin,
                                       .inverse = view->inverse,
                                       .prescale = model->prescale,
                                       .scale = model->scale,
                                       .weight_scale = model->weight_scale,
                                       .weight_inverse = model->weight_inverse,
                                       .most = 0x1p62 / (double)model->rows,
                                       .wide = model->wide,
                                       .wide_column = view->wide_column,
                                       .wide_inverse = view->wide_inverse,
                                       .wide_bits = shoal_wide_bits(model->rows)};
    int64_t size = 0;
    int status = write_units(held, &size, view);
    if (status < 0)
        return status;
    const unsigned char *fresh = held->units + held->units_room / 2;
    if (held->measured == size && memcmp(held->units, fresh, (size_t)size) == 0)
        return SHOAL_OK;
    held->measured = 0;
    if ((status = held->device->measure(held->rows, &units)) < 0)
        return kmeans_device_fail(held, status);
    memcpy(held->units, fresh, (size_t)size);
    held->measured = size;
    return SHOAL_OK;
}

int kmeans_device_assign(kmeans_held *held, const kmeans_view *view, const shoal_crew *crew, int64_t *counters)
{
    int status = measure(held, view);
    if (status == SHOAL_OK && crew->asked && crew->asked(crew))
        status = shoal_fail(SHOAL_STOPPED, "stopped while mapping rows");
    if (status < 0)
        return status;
    counters[KMEANS_COMPUTED] += held->count * view->model->k;
    status = held->device->assign(held->rows, view->centres, view->model->k, KERNEL_DEVICE_BEST);
    return status < 0 ? kmeans_device_fail(held, status) : SHOAL_OK;
}

int kmeans_map_many(shoal_partial *partial, const shoal_round *round, void *held, const shoal_crew *crew,
                    int64_t *counters)
{
    const kmeans_phase *phase = kmeans_phase_of(round);
    return phase->map_many ? phase->map_many(partial, round, held, crew, counters) : SHOAL_ABSENT;
}

/* Rounds that take about so long, in all, at the rate of a fast device: whoever wants to stop a run waits no longer. */
static int64_t rounds_at_once(const kmeans_held *held, const kmeans_model *model, int64_t most)
{
    static const double seconds = 0.25, rate = 4e14;
    double work = 2 * (double)held->count * (double)model->k * (double)model->columns / rate;
    int64_t left = model->iterations - model->iteration;
    double fitting = seconds / (work + 1e-6);
    most = left < most ? left : most;
    return fitting < 1 ? 1 : fitting < (double)most ? (int64_t)fitting : most;
}

static void tell_rounds(shoal_round *next, const kernel_device_rounds *done)
{
    kmeans_view view = kmeans_view_of(next);
    kmeans_model *model = view.model;
    for (int64_t j = 0; j < model->k; j++)
        view.drift[j] = view.travel[j] = 0; /* no memo knows where the centres were */
    model->memo_round = -1;
    model->iteration += done->done;
    model->converged = done->converged;
    if (model->converged || model->stopping || model->iteration >= model->iterations)
        model->phase = kmeans_phase_after_lloyd(model);
    next->objective = kmeans_told_objective(model, done->objective);
    next->change = model->variance > 0 ? done->change / model->variance : 0;
}

int kmeans_leap(shoal_round **next, int64_t *rounds, const shoal_round *round, void *untyped, int64_t most,
                const shoal_crew *crew, int64_t *counters)
{
    kmeans_held *held = untyped;
    const kmeans_view view = kmeans_view_of(round);
    const kmeans_model *model = view.model;
    (void)crew;
    *rounds = 0;
    if (model->phase != KMEANS_LLOYD || model->wide > 0 || model->stopping || kmeans_is_cosine(model) ||
        !held->device->rounds)
        return SHOAL_OK;
    kernel_device_rounds job = {.k = model->k,
                                .most = rounds_at_once(held, model, most),
                                .least = model->tolerance * model->variance,
                                .square_total = model->square_total};
    int status = measure(held, &view);
    if (status == SHOAL_OK)
        status = kmeans_round_moved(next, round, KMEANS_LLOYD, 0);
    if (status < 0)
        return status;
    job.centres = kmeans_view_of(*next).centres;
    memcpy(job.centres, view.centres, (size_t)(model->k * model->columns) * sizeof(double));
    status = held->device->rounds(held->rows, &job);
    counters[KMEANS_COMPUTED] += job.distances;
    if (status < 0 || job.done == 0) {
        shoal_round_free(next);
        return status < 0 ? kmeans_device_fail(held, status) : SHOAL_OK;
    }
    tell_rounds(*next, &job);
    kmeans_describe(*next, held->shape);
    *rounds = job.done;
    return SHOAL_OK;
}
