/* Rows that one process decoded, lent to others of its machine, so that they lie in memory once.
 *
 *     data_lend(&descriptor, data);                          // in the process that has them
 *     data_lent_describe(&note, &size, data);                // sent to the others, with its process and the descriptor
 *     data_borrow(&data, note, size, "/proc/123/fd/7");      // in each of them
 */
#ifndef DATA_LEND_H
#define DATA_LEND_H

#include <shoal/data.h>

/* Moves the rows of a resident data set (shoal_data_is_resident) to where other processes can map them: *descriptor,
 * which the data set keeps open until it is freed.  The memory they were decoded into is released while they are
 * copied; rows in a temporary file are not copied.  The caller may free rows that were wrapped.  On failure the rows
 * may be gone: free the data set. */
int data_lend(int *descriptor, shoal_data *data);
/* Everything about the data set except its values; the caller frees *out with base_free. */
int data_lent_describe(void **out, size_t *size, const shoal_data *data);
/* The same data set, with the rows that are lent at `path`, which the lender may close afterwards.  SHOAL_DENIED
 * or SHOAL_SYSTEM if they can't be accessed from here, SHOAL_BROKEN if they are not what was lent. */
int data_borrow(shoal_data **out, const void *note, size_t size, const char *path);

#endif
