/* See sort.h. */
#include "base/sort.h"

#include <stdlib.h>

static int compare_reals(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void base_sort_reals(double *values, size_t count)
{
    qsort(values, count, sizeof *values, compare_reals);
}
