/* How rows are cut into grains where a learner does not say. */
#ifndef DATA_GRAIN_H
#define DATA_GRAIN_H

#include <stdint.h>

/* Grains are about a mebibyte of rows, so that they amortise a hand-over and spread over many threads; at least 64 of
 * them where rows allow it.  84 is a multiple of every tile's rows. */
static inline int64_t data_rows_per_grain(int64_t rows, int64_t row_bytes)
{
    enum { GRAIN_BYTES = 1 << 20, ROWS_LEAST = 252, ROWS_MOST = 8064, GRAINS_WANTED = 64, TILES = 84 };
    int64_t by_bytes = GRAIN_BYTES / row_bytes / TILES * TILES;
    int64_t by_count = rows / GRAINS_WANTED / TILES * TILES;
    int64_t choice = by_bytes < by_count ? by_bytes : by_count;
    if (choice < ROWS_LEAST)
        choice = ROWS_LEAST;
    return choice > ROWS_MOST ? ROWS_MOST : choice;
}

#endif
