/* A data set with only some of its columns, in any order. */
#ifndef DATA_SELECT_H
#define DATA_SELECT_H

#include <shoal/data.h>

/* Replaces *data by one that has just these columns, counted from 0, in this order; their names go along.  The rows
 * are copied once, into memory or, above the data set's memory limit, into a temporary file; rows that were decoded are
 * rearranged where they lie.  All columns in their order change nothing.  SHOAL_USAGE for a column that does not exist
 * or is there twice, and for rows that lie in a store.  On failure *data is what it was. */
int data_select(shoal_data **data, const int64_t *columns, int64_t count);
/* The same as a new data set, for rows that someone else owns. */
int data_select_copy(shoal_data **out, shoal_data *data, const int64_t *columns, int64_t count);
/* All columns as another data set; what is resident is not copied, and must last. */
int data_alias(shoal_data **out, shoal_data *data);

#endif
