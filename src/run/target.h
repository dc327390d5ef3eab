/* --target COLUMN|FILE: what is known of each row, as a column of DATA or in a file beside it. */
#ifndef RUN_TARGET_H
#define RUN_TARGET_H

#include "outcome.h"

/* The target if it names a file that is there, for what may not be overwritten; NULL otherwise. */
const char *run_target_file(const char *target);
/* Sets how the target is read, for a run that has one. */
void run_target_read(shoal_data_options *reading, const shoal_outcome *outcome);
/* Once the data are open: if their target is not a column, reads one value per row from a file, as a column or as a row
 * of any format, and makes it the last column of outcome->data.  Numbers stay what they are: the type is that of the
 * data where it holds all of them, otherwise the smallest that holds both.  Words become 0, 1, 2, ... in the order of
 * their bytes.  Rows whose value is missing go where --missing drop says so. */
int run_target_settle(shoal_outcome *outcome);

/* Whether each value of the other type is one of this. */
bool run_type_holds(shoal_type type, shoal_type other);
/* Writes a value that the type holds. */
void run_put_value(void *at, shoal_type type, double value);

#endif
