/* Rows as bytes between the steps of k-means++.  See seed.h. */
#include "learn/kmeans/seed.h"

/* The memory a run may take beside its rows allows for this much. */
enum { KEPT_BYTES_MOST = 48 << 20 };

static int64_t padded_columns(const shoal_shape *shape)
{
    return (shape->columns + 3) / 4 * 4;
}

bool seed_keeps_bytes(const shoal_shape *shape)
{
    return shape->columns > KERNEL_FEW_COLUMNS && shape->columns <= KERNEL_BYTE_COLUMNS_MOST &&
           shape->rows <= KEPT_BYTES_MOST / (padded_columns(shape) + 24);
}

size_t seed_bytes_row(const shoal_shape *shape)
{
    return (4 * sizeof(float) + (size_t)padded_columns(shape) + 7) / 8 * 8; /* distances stay aligned in every grain */
}

/* Behind the distances: four numbers a row, then whole panels.  Rows that do not fill a panel are left out. */
seed_bytes seed_bytes_of(const shoal_grain *grain, const kernel_set *kernel)
{
    float *numbers = (float *)((unsigned char *)grain->memo + (size_t)grain->rows * SEED_MEMO_BYTES);
    int64_t rows = grain->rows;
    if (kernel->byte_tile_rows == 0)
        return (seed_bytes){.count = 0};
    return (seed_bytes){.rows = {.panels = (uint8_t *)(numbers + 4 * rows),
                                 .step = numbers,
                                 .norm = numbers + rows,
                                 .residual = numbers + 2 * rows},
                        .square = numbers + 3 * rows,
                        .count = rows / kernel->byte_tile_rows * kernel->byte_tile_rows};
}

void seed_bytes_fill(const seed_bytes *bytes, const kmeans_rows *rows, float *z)
{
    const kernel_set *kernel = rows->kernel;
    int64_t columns = rows->grain->shape->columns, tile = kernel->byte_tile_rows;
    for (int64_t first = 0; first < bytes->count; first += tile) {
        kernel_byte_rows panel = {.panels = bytes->rows.panels + first * padded_columns(rows->grain->shape),
                                  .step = bytes->rows.step + first,
                                  .norm = bytes->rows.norm + first,
                                  .residual = bytes->rows.residual + first};
        for (int64_t r = 0; r < tile; r++) {
            kmeans_rows_centre(z + r * columns, rows, first + r);
            bytes->square[first + r] = kernel->dot(z + r * columns, z + r * columns, columns);
        }
        kernel->quantise_rows(&panel, z, (int)tile, columns);
    }
}
