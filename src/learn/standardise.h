/* Columns of mean 0 and standard deviation 1: what --standardise does to rows before a learner sees them.
 *
 * Sums are exact, so the same rows give the same bits in any order and on any number of threads.  A column that has one
 * value in all rows becomes 0: its scale is 1. */
#ifndef LEARN_STANDARDISE_H
#define LEARN_STANDARDISE_H

#include "learn/schema.h"

/* How often a sum may be added to bounds the number of rows. */
#define LEARN_STANDARDISE_ROWS_MOST (INT64_C(1) << 30)

/* Measures the columns of a data set but for `target`, counted from 0 (-1: none), and sets mean and scale of the
 * schema, which has their number.  SHOAL_INVALID for the first value that is not finite, by row and column. */
int learn_standardise_measure(learn_schema *schema, shoal_data *data, int64_t target, int threads);
/* Brings the rows to what the schema says.  They become float64 when they were float64 or integers of 32 bits or more,
 * otherwise float32. */
int learn_standardise_apply(shoal_data *data, const learn_schema *schema, int64_t target);

/* The same for centres and the like, which have the columns of the schema, and the way back to the units of the data.
 * Nothing changes where the schema, which may be NULL, has no means. */
void learn_standardise_values(double *values, int64_t rows, const learn_schema *schema);
void learn_unstandardise_values(double *values, int64_t rows, const learn_schema *schema);

#endif
