/* Making, clearing and merging partials: what an engine needs beside the contract in shoal/learn.h. */
#ifndef LEARN_PARTIAL_H
#define LEARN_PARTIAL_H

#include <shoal/learn.h>

/* A cleared partial over `rows` rows from `first_row`, for which its ROW cells get memory, unless `rows_of`, which has
 * the same layout, lends its own. */
int learn_partial_new(shoal_partial **out, const shoal_layout *layout, int64_t first_row, int64_t rows,
                      shoal_partial *rows_of);
/* The same, where the ROW cells that `into` names (shoal_run_options.into) lie in memory of the caller. */
int learn_partial_new_into(shoal_partial **out, const shoal_layout *layout, int64_t first_row, int64_t rows,
                           const shoal_row_memory *into);
void learn_partial_free(shoal_partial **partial);
/* From now on the ROW cells of `borrower` are those of `owner`, whose layout is the same; it must have been made with
 * `rows_of`. */
void learn_partial_lend_rows(shoal_partial *borrower, shoal_partial *owner);

bool learn_layout_equal(const shoal_layout *a, const shoal_layout *b);

/* Back to the neutral element: sums 0, maxima -infinity, no records.  With keep_carried, carried sums stay. */
void learn_partial_clear(shoal_partial *partial, bool keep_carried);

/* Only drops the records: for a partial whose values are all about to be overwritten. */
void learn_partial_clear_records(shoal_partial *partial);

/* How many int64 a cell has; 0 for RECORD and ROW. */
int64_t learn_cell_values(const shoal_cell *cell);

/* All that is merged by addition as one array, the values of SUM and WIDE cells and behind them LEARN_PARTIAL_WORDS
 * words that are the engine's own; and all that is merged by maximum.  Partials of equal layouts have arrays of equal
 * length and order. */
enum { LEARN_PARTIAL_WORDS = 8 };
int64_t *learn_partial_sums(shoal_partial *partial, size_t *count);
int64_t *learn_partial_maxima(shoal_partial *partial, size_t *count);

/* Merges values [first, first + count) of a SUM, WIDE or MAX cell of `from` into `into`. */
void learn_partial_merge_values(shoal_partial *into, const shoal_partial *from, int cell, int64_t first, int64_t count);

/* The same values of `into` become those of all the `from` together or, with `add`, these are merged with them.  Those
 * of `from` are neutral afterwards: what is read is cleared at once. */
void learn_partial_gather_values(shoal_partial *into, shoal_partial *const *from, int froms, int cell, int64_t first,
                                 int64_t count, bool add);

/* Merges the records of all RECORD cells. */
int learn_partial_merge_records(shoal_partial *into, const shoal_partial *from);

/* Sorts records and drops what a layout does not keep; after it they can be read.  SHOAL_BROKEN, and nothing changes in
 * that cell, when two records have one key and different bytes: a learner is wrong, or bytes from elsewhere are. */
int learn_partial_settle(shoal_partial *partial);

/* Gives away the memory of a ROW cell: the caller frees it with base_free. */
void *learn_partial_take_rows(shoal_partial *partial, int cell);

#endif
