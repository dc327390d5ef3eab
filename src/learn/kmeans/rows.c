/* Rows of a grain: centred as float32 for the kernels, exact for the definition and the sums. */
#include <string.h>

#include "learn/kmeans/kmeans_internal.h"

size_t kmeans_cut_size(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

void *kmeans_cut(unsigned char **memory, size_t bytes)
{
    void *cut = *memory;
    *memory += kmeans_cut_size(bytes);
    return cut;
}

bool kmeans_fits_float32(shoal_type type)
{
    switch (type) {
    case SHOAL_FLOAT32:
    case SHOAL_INT8:
    case SHOAL_UINT8:
    case SHOAL_INT16:
    case SHOAL_UINT16:
    case SHOAL_BOOL: return true;
    default: return false;
    }
}

size_t kmeans_rows_bytes(int64_t columns)
{
    return kmeans_cut_size((size_t)columns * sizeof(float)) + kmeans_cut_size((size_t)columns * sizeof(double)) +
           kmeans_cut_size(sizeof(int64_t));
}

void kmeans_rows_init(kmeans_rows *rows, const kmeans_prepared *prepared, const kmeans_view *view,
                      const shoal_grain *grain, unsigned char **memory)
{
    int64_t columns = grain->shape->columns;
    *rows =
        (kmeans_rows){.grain = grain,
                      .kernel = prepared->kernel,
                      .view = view,
                      .origin = {.origin32 = prepared->origin32, .origin64 = view->origin, .scale = view->model->scale},
                      .most = 0x1p62 / (double)view->model->rows,
                      .narrow = kmeans_fits_float32(grain->shape->type) && !kmeans_is_cosine(view->model),
                      .unit = kmeans_is_cosine(view->model),
                      .same = kmeans_same_direction(view->model)};
    rows->row32 = kmeans_cut(memory, (size_t)columns * sizeof(float));
    rows->row64 = kmeans_cut(memory, (size_t)columns * sizeof(double));
    rows->held = kmeans_cut(memory, sizeof *rows->held);
    *rows->held = -1;
}

const void *kmeans_rows_raw(const kmeans_rows *rows, int64_t i)
{
    const shoal_shape *shape = rows->grain->shape;
    return (const unsigned char *)rows->grain->values +
           (size_t)i * (size_t)shape->columns * shoal_type_size(shape->type);
}

/* A narrow row's values, without rounding. */
static const float *exact32(const kmeans_rows *rows, int64_t i)
{
    const shoal_shape *shape = rows->grain->shape;
    const void *raw = kmeans_rows_raw(rows, i);
    if (shape->type == SHOAL_FLOAT32)
        return raw;
    switch (shape->type) {
    case SHOAL_UINT8:
    case SHOAL_BOOL:
        for (int64_t k = 0; k < shape->columns; k++)
            rows->row32[k] = ((const uint8_t *)raw)[k];
        break;
    case SHOAL_INT8:
        for (int64_t k = 0; k < shape->columns; k++)
            rows->row32[k] = ((const int8_t *)raw)[k];
        break;
    case SHOAL_UINT16:
        for (int64_t k = 0; k < shape->columns; k++)
            rows->row32[k] = ((const uint16_t *)raw)[k];
        break;
    default:
        for (int64_t k = 0; k < shape->columns; k++)
            rows->row32[k] = ((const int16_t *)raw)[k];
        break;
    }
    return rows->row32;
}

/* Row i brought to length 1.  It is often asked for more than once in a row.  A row without a direction, which the scan
 * refuses, stays as it is. */
static const double *unit64(const kmeans_rows *rows, int64_t i)
{
    const shoal_shape *shape = rows->grain->shape;
    if (*rows->held != i) {
        shoal_convert_float64(rows->row64, kmeans_rows_raw(rows, i), shape->type, shape->columns);
        kmeans_make_unit(rows->row64, rows->kernel, shape->columns);
        *rows->held = i;
    }
    return rows->row64;
}

static const double *exact64(const kmeans_rows *rows, int64_t i)
{
    const shoal_shape *shape = rows->grain->shape;
    double prescale = rows->view->model->prescale;
    const void *raw = kmeans_rows_raw(rows, i);
    if (rows->unit)
        return unit64(rows, i);
    if (shape->type == SHOAL_FLOAT64 && prescale == 1)
        return raw;
    shoal_convert_float64(rows->row64, raw, shape->type, shape->columns);
    for (int64_t k = 0; prescale != 1 && k < shape->columns; k++)
        rows->row64[k] *= prescale;
    return rows->row64;
}

void kmeans_rows_centre(float *out, const kmeans_rows *rows, int64_t i)
{
    const shoal_shape *shape = rows->grain->shape;
    if (rows->narrow || (rows->view->model->prescale == 1 && !rows->unit))
        rows->kernel->centre_row(out, kmeans_rows_raw(rows, i), shape->type, &rows->origin, shape->columns);
    else
        rows->kernel->centre_row(out, exact64(rows, i), SHOAL_FLOAT64, &rows->origin, shape->columns);
}

void kmeans_rows_centre_run(float *out, const kmeans_rows *rows, int64_t i, int count)
{
    const shoal_shape *shape = rows->grain->shape;
    if (rows->narrow && shape->columns <= KERNEL_FEW_COLUMNS) {
        rows->kernel->centre_row(out, kmeans_rows_raw(rows, i), shape->type, &rows->origin, shape->columns * count);
        return;
    }
    for (int r = 0; r < count; r++)
        kmeans_rows_centre(out + r * shape->columns, rows, i + r);
}

double kmeans_rows_distance(const kmeans_rows *rows, int64_t i, const double *centre)
{
    int64_t columns = rows->grain->shape->columns;
    if (rows->narrow)
        return rows->kernel->distance32(exact32(rows, i), centre, columns);
    double distance = rows->kernel->distance64(exact64(rows, i), centre, columns);
    return distance > rows->same ? distance : 0;
}

bool kmeans_rows_are_bytes(const kmeans_view *view, const shoal_shape *shape)
{
    return (shape->type == SHOAL_UINT8 || shape->type == SHOAL_BOOL) && !kmeans_is_cosine(view->model);
}

void kmeans_rows_distances(double *out, const kmeans_rows *rows, const int32_t *label, const double *centres)
{
    enum { BLOCK = 32 };
    const shoal_grain *grain = rows->grain;
    const int64_t columns = grain->shape->columns;
    if (!kmeans_rows_are_bytes(rows->view, grain->shape)) {
        for (int64_t i = 0; i < grain->rows; i++)
            out[i] = kmeans_rows_distance(rows, i, centres + label[i] * columns);
        return;
    }
    for (int64_t first = 0; first < grain->rows; first += BLOCK) {
        const int64_t count = grain->rows - first < BLOCK ? grain->rows - first : BLOCK;
        const double *centre[BLOCK];
        for (int64_t i = 0; i < count; i++)
            centre[i] = centres + label[first + i] * columns;
        rows->kernel->distance8(out + first, kmeans_rows_raw(rows, first), centre, count, columns);
    }
}

double kmeans_rows_product(const kmeans_rows *rows, int64_t i, const double *centre)
{
    return rows->kernel->product64(exact64(rows, i), centre, rows->grain->shape->columns);
}

double kmeans_rows_weight(const kmeans_rows *rows, int64_t i)
{
    return rows->grain->weights ? rows->grain->weights[i] * rows->view->model->weight_scale : 1;
}

void kmeans_rows_move(const kmeans_rows *rows, int64_t i, int64_t *to, int64_t *from)
{
    int64_t columns = rows->grain->shape->columns;
    double weight = kmeans_rows_weight(rows, i);
    if (rows->narrow)
        rows->kernel->move32(to, from, exact32(rows, i), rows->view->origin, rows->view->inverse, weight, columns);
    else
        rows->kernel->move64(to, from, exact64(rows, i), rows->view->origin, rows->view->inverse, weight, columns);
}

void kmeans_rows_values(double *out, const kmeans_rows *rows, int64_t i)
{
    int64_t columns = rows->grain->shape->columns;
    if (!rows->narrow) {
        const double *values = exact64(rows, i);
        if (values != out)
            memcpy(out, values, (size_t)columns * sizeof *out);
        return;
    }
    const float *exact = exact32(rows, i);
    for (int64_t k = 0; k < columns; k++)
        out[k] = exact[k];
}
