/* A data set with other values in the same columns.  See data_transform.h. */
#include "data/table/data_transform.h"

#include <string.h>

#include "base/memory.h"
#include "data/data_internal.h"

/* Rows are read this many bytes at a time. */
enum { AT_ONCE_BYTES = 1 << 20 };

static void put_row(void *out, const double *row, int64_t columns, shoal_type type)
{
    if (type == SHOAL_FLOAT64)
        memcpy(out, row, (size_t)columns * sizeof *row);
    for (int64_t i = 0; i < columns && type == SHOAL_FLOAT32; i++)
        ((float *)out)[i] = (float)row[i];
}

static int fill_buffer(data_buffer *buffer, shoal_data *data, shoal_type type, data_change *change, const void *context)
{
    const size_t from_bytes = data_row_bytes(data), to_bytes = (size_t)data->columns * shoal_type_size(type);
    const int64_t at_once = AT_ONCE_BYTES / ((int64_t)from_bytes + 1) + 1;
    void *scratch = NULL;
    double *row = NULL;
    int status = data_buffer_reserve(buffer, (size_t)data->rows * to_bytes);
    if (status == SHOAL_OK)
        status = base_alloc(&row, (size_t)data->columns, sizeof *row, "a row");
    if (status == SHOAL_OK && !data->values)
        status = base_alloc_unset(&scratch, (size_t)at_once, from_bytes, "rows");
    for (int64_t first = 0; first < data->rows && status == SHOAL_OK; first += at_once) {
        const int64_t count = data->rows - first < at_once ? data->rows - first : at_once;
        const void *read = NULL;
        status = shoal_data_read(&read, data, first, count, scratch);
        for (int64_t i = 0; i < count && status == SHOAL_OK; i++) {
            shoal_convert_float64(row, (const char *)read + (size_t)i * from_bytes, data->type, data->columns);
            change(row, context);
            put_row(buffer->bytes + buffer->size, row, data->columns, type);
            buffer->size += to_bytes;
        }
    }
    base_free(&row);
    base_free(&scratch);
    return status == SHOAL_OK ? shoal_data_check(data) : status;
}

int data_transform(shoal_data *data, shoal_type type, data_change *change, const void *context)
{
    /* Rows that were wrapped or borrowed came without a limit. */
    const bool limited = data->format != &data_memory && !data->buffer.shared;
    size_t bytes = 0;
    data_buffer buffer;
    if (data->format == &data_described)
        return shoal_fail(
            SHOAL_USAGE,
            "%s: values can't be changed while the rows lie in a store; fetch them first with shoal store "
            "get",
            data->path);
    if (!base_multiply(&bytes, (size_t)data->columns, shoal_type_size(type)) ||
        !base_multiply(&bytes, bytes, (size_t)data->rows))
        return shoal_fail(SHOAL_MEMORY, "%s: too many values", data->path);
    data_buffer_init(&buffer, data->path, limited ? (int64_t)data->buffer.memory_limit : 0);
    int status = fill_buffer(&buffer, data, type, change, context);
    if (status < 0) {
        data_buffer_release(&buffer);
        return status;
    }
    data_unmap(data);
    data_buffer_release(&data->buffer);
    data->buffer = buffer;
    data->values = buffer.bytes;
    data->type = type;
    return SHOAL_OK;
}
