/* What a partial is made of, for the files that make it: partial.c, and wire.c, which turns it into bytes. */
#ifndef LEARN_PARTIAL_INTERNAL_H
#define LEARN_PARTIAL_INTERNAL_H

#include "learn/partial.h"

typedef struct record_list {
    shoal_key *keys;
    unsigned char *bytes;
    int64_t count, capacity;
} record_list;

struct shoal_partial {
    shoal_layout layout;
    int64_t first_row, row_count;      /* the rows it covers, which its ROW cells have room for */
    int64_t *block;                    /* all values: of SUM and WIDE cells, the engine's own words, of MAX cells */
    size_t sums, maxima;               /* how many of them, gaps and the engine's words included */
    int64_t *values[SHOAL_CELLS_MOST]; /* in the block */
    unsigned char *rows[SHOAL_CELLS_MOST];
    bool rows_lent[SHOAL_CELLS_MOST];
    record_list records[SHOAL_CELLS_MOST];
};

/* Makes room for `more` records beside those that are there, settling those where the layout keeps only some. */
int learn_records_reserve(shoal_partial *partial, int cell, int64_t more);

/* Less than, equal to or greater than 0 as a is to b. */
int learn_compare_keys(shoal_key a, shoal_key b);

#endif
