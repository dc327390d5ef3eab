/* Small data sets that are read as a whole: centres, weights, labels. */
#ifndef DATA_READ_WHOLE_H
#define DATA_READ_WHOLE_H

#include <stdint.h>

/* Reads a whole data set as float64; every value is finite.  The caller frees *out. */
int data_read_float64(double **out, int64_t *rows, int64_t *columns, const char *path);
/* Refuses values that are not finite, by row and column. */
int data_check_finite(const double *values, int64_t rows, int64_t columns, const char *path);

#endif
