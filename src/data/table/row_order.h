/* Rows in a random order that nobody has to keep: each has a key, and they are ordered by it.
 *
 *     const data_order order = {.rows = 150, .seed = 1};
 *     data_border border;
 *     status = data_order_borders(&border, &order, NULL, 1, (int64_t[]){30});
 *     for (int64_t i = 0; i < 150; i++)
 *         if (data_order_before(border, data_order_key(&order, i), i)) ...           // true for 30 rows
 *
 * A key is 64 random bits, a function of the seed and the number of the row alone; of equal keys the row with the lower
 * number comes first.  So any row's place can be compared with another's, in any process and in no memory. */
#ifndef ROW_ORDER_H
#define ROW_ORDER_H

#include <stdbool.h>
#include <stdint.h>

typedef struct data_order {
    int64_t rows;
    uint64_t seed;
    bool kept; /* keys ascend with the numbers: rows keep their order */
} data_order;

uint64_t data_order_key(const data_order *order, int64_t row);

/* A key in the high half and a row in the low one. */
typedef unsigned __int128 data_border;

static inline bool data_order_before(data_border border, uint64_t key, int64_t row)
{
    return ((data_border)key << 64 | (uint64_t)row) < border;
}

/* For each group of rows, the border before which are just the first `wanted` rows of the group, or all if it has no
 * more.  `group` has one entry for each row; NULL: there is one group. */
int data_order_borders(data_border *out, const data_order *order, const int32_t *group, int64_t groups,
                       const int64_t *wanted);

#endif
