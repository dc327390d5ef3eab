/* The distance of each row from each centre: what `shoal predict --all-distances` writes.
 *
 * Every one is the definition's, as labels are: rows and centres are laid out in float64, padded with columns of zeros,
 * which add nothing, and handed to the kernel a tile at a time.  The nearest centre is then the least of them. */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "learn/kmeans/kmeans_internal.h"

enum { ROWS_AT_ONCE = 32 };

static size_t padded_columns(int64_t columns)
{
    return ((size_t)columns + 7) / 8 * 8;
}

int kmeans_pad_centres(kmeans_prepared *prepared, const kmeans_view *view)
{
    const size_t columns = (size_t)view->model->columns, padded = padded_columns(view->model->columns);
    base_free(&prepared->padded);
    int status = base_alloc(&prepared->padded, (size_t)view->model->k, padded * sizeof(double), "centres");
    for (size_t j = 0; j < (size_t)view->model->k && status == SHOAL_OK; j++)
        memcpy(prepared->padded + j * padded, view->centres + j * columns, columns * sizeof(double));
    return status;
}

size_t kmeans_scratch_distances(const shoal_shape *shape)
{
    return kmeans_rows_bytes(shape->columns) + ROWS_AT_ONCE * padded_columns(shape->columns) * sizeof(double);
}

/* By the cosine the definition of labels is the greatest product. */
static int32_t find_greatest_product(const kmeans_rows *rows, int64_t i)
{
    const kmeans_view *view = rows->view;
    int32_t greatest = 0;
    double most = -INFINITY;
    for (int64_t j = 0; j < view->model->k; j++) {
        const double product = kmeans_rows_product(rows, i, view->centres + j * view->model->columns);
        if (product > most) {
            greatest = (int32_t)j;
            most = product;
        }
    }
    return greatest;
}

static int32_t find_least(const double *distance, int64_t count)
{
    int32_t least = 0;
    for (int64_t j = 1; j < count; j++)
        if (distance[j] < distance[least])
            least = (int32_t)j;
    return least;
}

/* Squared distances become what people are told: distances, or 1 - cosine, which is half of them. */
static void tell_distances(double *square, int64_t count, const kmeans_model *model)
{
    if (kmeans_is_cosine(model)) {
        for (int64_t i = 0; i < count; i++)
            square[i] = square[i] / 2;
        return;
    }
    for (int64_t i = 0; i < count; i++)
        square[i] = sqrt(square[i]);
    for (int64_t i = 0; i < count && model->prescale != 1; i++)
        square[i] /= model->prescale;
}

void kmeans_map_distances(double *out, int32_t *label, double *nearest, const kmeans_rows *rows,
                          const kmeans_prepared *prepared, unsigned char *memory)
{
    const kmeans_model *model = rows->view->model;
    const size_t padded = padded_columns(model->columns);
    const bool cosine = kmeans_is_cosine(model);
    double *values = (double *)memory;
    memset(values, 0, ROWS_AT_ONCE * padded * sizeof *values);
    for (int64_t first = 0; first < rows->grain->rows; first += ROWS_AT_ONCE) {
        const int64_t left = rows->grain->rows - first, count = left < ROWS_AT_ONCE ? left : ROWS_AT_ONCE;
        double *block = out + first * model->k;
        for (int64_t i = 0; i < count; i++)
            kmeans_rows_values(values + (size_t)i * padded, rows, first + i);
        prepared->kernel->distances(block, model->k, values, count, prepared->padded, model->k, (int64_t)padded);
        for (int64_t i = 0; i < count * model->k && cosine; i++)
            block[i] = block[i] > rows->same ? block[i] : 0;
        for (int64_t i = 0; i < count; i++) {
            label[first + i] =
                cosine ? find_greatest_product(rows, first + i) : find_least(block + i * model->k, model->k);
            nearest[first + i] = block[i * model->k + label[first + i]];
        }
        tell_distances(block, count * model->k, model);
    }
}
