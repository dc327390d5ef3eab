/* Sorting numbers. */
#ifndef BASE_SORT_H
#define BASE_SORT_H

#include <stddef.h>

/* From the least to the greatest; none may be NaN. */
void base_sort_reals(double *values, size_t count);

#endif
