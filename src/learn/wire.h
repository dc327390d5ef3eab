/* Rounds, partials and results as bytes that mean the same on every machine, for engines whose workers are processes.
 *
 * Bytes come from elsewhere: everything is checked before it is used, and SHOAL_BROKEN says what is wrong.  A decoded
 * thing encodes to the same bytes. */
#ifndef LEARN_WIRE_H
#define LEARN_WIRE_H

#include <shoal/learn.h>

#include "base/bytes.h"

/* Of the cells, which is all that partials of one layout share. */
uint32_t learn_layout_hash(const shoal_layout *layout);

void learn_round_write(base_writer *out, const shoal_round *round);
/* Reads one round; what follows is left in the reader.  What it keeps comes without values, which do not travel with
 * it. */
int learn_round_read(shoal_round **out, base_reader *in);

/* A settled partial: which rows it covers, a hash of its layout, values, records, rows. */
void learn_partial_write(base_writer *out, const shoal_partial *partial);
/* Merges an encoded partial, which ends where the bytes end, into `into` without making one of it.  SHOAL_BROKEN when
 * its layout is another one, or its rows are not all among those of `into`; then `into` is unchanged.  Records must be
 * settled again afterwards. */
int learn_partial_merge_read(shoal_partial *into, base_reader *in);
/* The same of one range of many: each cell's values are cut into that many parts, as even as can be.  For layouts
 * without RECORD and ROW cells. */
typedef struct learn_range {
    int64_t number, of;
} learn_range;
void learn_range_of_cell(const shoal_cell *cell, learn_range range, int64_t *first, int64_t *count);
/* How many bytes are written of it. */
size_t learn_partial_range_bytes(const shoal_layout *layout, learn_range range);
void learn_partial_write_range(base_writer *out, const shoal_partial *partial, learn_range range);
int learn_partial_merge_read_range(shoal_partial *into, base_reader *in, learn_range range);
/* Which rows the encoded partial that comes next says it covers; the reader stays where it is. */
void learn_partial_peek_rows(int64_t *first_row, int64_t *rows, const base_reader *in);

/* Of the tensors of a result, and of its numbers: a limit for hostile bytes rather than for learners. */
enum { LEARN_RESULT_MOST = 1 << 16 };

void learn_result_write(base_writer *out, const shoal_result *result);
int learn_result_read(shoal_result **out, base_reader *in);

#endif
