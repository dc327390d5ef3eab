/* The shape of rows.  See data_shape.h. */
#include "data_shape.h"

#include <string.h>

#include "base/memory.h"
#include "data_internal.h"

void data_note_shape(shoal_data *data, const uint64_t *shape, int rank)
{
    data->rank = rank <= DATA_NPY_RANK_MOST ? rank : 0;
    for (int i = 0; i < data->rank; i++)
        data->shape[i] = (int64_t)shape[i];
}

bool data_fold_shape(uint64_t *columns, const uint64_t *shape, int rank)
{
    size_t product = 1;
    for (int i = 1; i < rank; i++)
        if (!base_multiply(&product, product, shape[i]))
            return false;
    *columns = product;
    return true;
}

/* What the dimensions of a row make; 0 when they are unknown. */
static int64_t count_shaped(const shoal_data *data)
{
    int64_t columns = data->rank > 0;
    for (int i = 1; i < data->rank; i++)
        columns *= data->shape[i];
    return columns;
}

int shoal_data_dimensions(const shoal_data *data, const int64_t **out)
{
    const bool plain = data->rank < 2;
    *out = plain ? &data->columns : &data->shape[1];
    return plain ? 1 : data->rank - 1;
}

bool data_shape_image(int64_t *height, int64_t *width, int *channels, const shoal_data *data)
{
    const int64_t *shape = data->shape;
    if (data->rank != 3 && !(data->rank == 4 && (shape[3] == 1 || shape[3] == 3)))
        return false;
    *height = shape[1];
    *width = shape[2];
    *channels = data->rank == 4 ? (int)shape[3] : 1;
    return true;
}

void data_shape_copy(shoal_data *to, const shoal_data *from)
{
    to->rank = from->rank;
    memcpy(to->shape, from->shape, sizeof to->shape);
}

void data_shape_select(shoal_data *to, const shoal_data *from, const int64_t *columns, int64_t count)
{
    const int64_t shaped = count_shaped(from);
    bool whole = shaped > 0 && (count == shaped || count == shaped + 1);
    for (int64_t i = 0; i < shaped && whole; i++)
        whole = columns[i] == i;
    data_shape_copy(to, from);
    if (!whole)
        to->rank = 0;
}

int data_shape_whole(int64_t *shape, const shoal_data *data)
{
    const bool whole = data->rank > 0 && count_shaped(data) == data->columns;
    shape[0] = data->rows;
    shape[1] = data->columns;
    for (int i = 1; whole && i < data->rank; i++)
        shape[i] = data->shape[i];
    return whole ? data->rank : 2;
}
