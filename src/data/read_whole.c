/* Small data sets that are read as a whole.  See read_whole.h. */
#include "read_whole.h"

#include <math.h>
#include <shoal/data.h>

#include "base/memory.h"

int data_check_finite(const double *values, int64_t rows, int64_t columns, const char *path)
{
    for (int64_t i = 0; i < rows * columns; i++)
        if (!isfinite(values[i]))
            return shoal_fail(SHOAL_INVALID, "%s: row %lld, column %lld is %s, not a finite number", path,
                              (long long)(i / columns + 1), (long long)(i % columns + 1),
                              isnan(values[i]) ? "NaN" : "infinite");
    return SHOAL_OK;
}

int data_read_float64(double **out, int64_t *rows, int64_t *columns, const char *path)
{
    shoal_data *data = NULL;
    double *values = NULL;
    void *scratch = NULL;
    const void *read = NULL;
    int status = shoal_data_open(&data, path, NULL);
    if (status < 0)
        goto done;
    *rows = shoal_data_rows(data);
    *columns = shoal_data_columns(data);
    size_t count = 0;
    if (!base_multiply(&count, (size_t)*rows, (size_t)*columns)) {
        status = shoal_fail(SHOAL_INVALID, "%s: too large to be read at once", path);
        goto done;
    }
    if ((status = base_alloc(&values, count, sizeof *values, path)) < 0)
        goto done;
    if (!shoal_data_is_resident(data)) {
        status = base_alloc(&scratch, count, shoal_type_size(shoal_data_type(data)), path);
        if (status < 0)
            goto done;
    }
    if ((status = shoal_data_read(&read, data, 0, *rows, scratch)) < 0)
        goto done;
    shoal_convert_float64(values, read, shoal_data_type(data), (int64_t)count);
    if ((status = shoal_data_check(data)) < 0)
        goto done;
    if ((status = data_check_finite(values, *rows, *columns, path)) < 0)
        goto done;
    *out = values;
    values = NULL;
done:
    base_free(&values);
    base_free(&scratch);
    shoal_data_free(&data);
    return status;
}
