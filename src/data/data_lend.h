/* Rows that one process decoded, lent to others of its machine, so that they lie in memory once.
 *
 *     data_lend(&descriptor, data);                          // in the process that has them
 *     data_lent_describe(&note, &size, data);                // sent to the others, with its process and the descriptor
 *     data_borrow(&data, note, size, "/proc/123/fd/7");      // in each of them
 */
#ifndef DATA_LEND_H
#define DATA_LEND_H

#include <shoal/data.h>

/* Moves the rows of a data set that hands out its own (shoal_data_is_resident) to where others can map them:
 * *descriptor, which the data set has open until it is freed.  What they were decoded into is given back while they
 * are copied; rows that lie in a temporary file are not copied.  Of wrapped rows the caller's may go afterwards.  On
 * failure the rows may be gone: free the data set. */
int data_lend(int *descriptor, shoal_data *data);
/* All that is known of the data set but its values; *out is the caller's, by base_free. */
int data_lent_describe(void **out, size_t *size, const shoal_data *data);
/* The same data set, with the rows that are lent at `path`, which the lender may close from then on.  SHOAL_DENIED
 * or SHOAL_SYSTEM when they can't be seen from here, SHOAL_BROKEN when it is not what was lent. */
int data_borrow(shoal_data **out, const void *note, size_t size, const char *path);

#endif
