/* The shape of rows: what the columns of an image or of an array of more dimensions mean.
 *
 * A file tells it (data_note_shape), and it stays with the rows wherever they are whole: when they are copied, lent,
 * split or written, and when a label or a target is put behind them or taken away. */
#ifndef DATA_SHAPE_H
#define DATA_SHAPE_H

#include <stdbool.h>
#include <stdint.h>

#include <shoal/data.h>

/* Notes the dimensions of the array that a file holds; shape[0] is the number of rows.  There may be one column more
 * than they make: a label. */
void data_note_shape(shoal_data *data, const uint64_t *shape, int rank);
/* Folds the dimensions after the first into columns; *columns is 1 for one dimension.  False when that overflows. */
bool data_fold_shape(uint64_t *columns, const uint64_t *shape, int rank);
/* Whether each row is an image: of HxW, HxWx1 or HxWx3 values. */
bool data_shape_image(int64_t *height, int64_t *width, int *channels, const shoal_data *data);
void data_shape_copy(shoal_data *to, const shoal_data *from);
/* For rows that have only these columns of others: the same shape if it is whole, else none. */
void data_shape_select(shoal_data *to, const shoal_data *from, const int64_t *columns, int64_t count);
/* The shape in which all rows are written, and how many dimensions it has: {rows, columns} where nothing else is known,
 * or where a label is among the columns.  `shape` has room for DATA_NPY_RANK_MOST. */
int data_shape_whole(int64_t *shape, const shoal_data *data);

#endif
