/* A data set with other values in the same columns. */
#ifndef DATA_TRANSFORM_H
#define DATA_TRANSFORM_H

#include <shoal/data.h>

/* Changes one row, as float64, in place. */
typedef void data_change(double *row, const void *context);

/* Replaces all values of a data set by what `change` makes of each row, rounded to `type`, which is SHOAL_FLOAT32 or
 * SHOAL_FLOAT64.  All else that is known of it stays.  The new rows lie in memory or, above the data set's memory
 * limit, in a temporary file.  SHOAL_USAGE for rows that lie in a store.  On failure the data set is what it was. */
int data_transform(shoal_data *data, shoal_type type, data_change *change, const void *context);

#endif
