/* The sum of every column: shoal run sum_rows.c data.npy */
#include <shoal/module.h>

static void add_rows(double *sum, const double *model, const shoal_rows *rows, const shoal_setting *setting)
{
    for (int64_t i = 0; i < rows->count; i++)
        for (int64_t j = 0; j < rows->columns; j++)
            sum[j] += rows->values[i * rows->columns + j];
}

SHOAL_MODULE(.map = add_rows);
