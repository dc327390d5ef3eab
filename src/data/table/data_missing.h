/* Values that are missing: filled in, left out with their rows, or counted. */
#ifndef DATA_MISSING_H
#define DATA_MISSING_H

#include <stdbool.h>
#include <stddef.h>
#include <shoal/data.h>

/* Whether a cell of text stands for a value that is not there: "", NA, N/A, NaN, null, ? in any case. */
bool data_is_missing(const char *text, size_t length);

/* Does what options->missing says. */
int data_missing_apply(shoal_data **data, const shoal_data_options *options);
/* Replaces every NaN by its column's value in `fill`, but not in the target.  SHOAL_INVALID for a NaN in a column whose
 * `fill` is NaN. */
int data_missing_fill(shoal_data **data, const double *fill);
/* Leaves out the rows that are marked, besides those that are gone already. */
int data_missing_drop(shoal_data **data, const bool *gone);

/* Words of the target that none of these values stands for are forgotten, and the others numbered anew. */
int data_words_renumber(shoal_data *data, double *values, int64_t count, int64_t stride);

/* What there is of missing values. */
typedef struct data_missing {
    int64_t values, rows;            /* NaN, and rows that have any */
    int64_t first_row, first_column; /* of the first, from 0 */
    int64_t in_target;               /* of the values */
} data_missing;
/* Counts them; whole numbers have none, and so have columns of text and rows that can't be read here. */
int data_missing_count(data_missing *out, shoal_data *data);
/* SHOAL_INVALID: how many values are missing, where the first is, and `advice`; NULL: what --missing can do. */
int data_missing_refuse(const shoal_data *data, const data_missing *found, const char *advice);

#endif
