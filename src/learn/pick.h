/* Which rows a batch has.  See shoal_pick in shoal/learn.h; everything here is a function of the pick and the shape.
 *
 *     learn_stratum stratum = learn_stratum_at(shape, s);
 *     learn_places places = learn_pick_places(pick, shape, &stratum);
 *     learn_order order = learn_order_of(pick->key, s, stratum.drawn);
 *     row = stratum.first + learn_order_row(&order, places.from);              // and so on, places.count of them */
#ifndef LEARN_PICK_H
#define LEARN_PICK_H

#include <shoal/learn.h>

/* SHOAL_BROKEN, with a sentence, unless the round's pick and part go with its layout and the shape. */
int learn_pick_check(const shoal_round *round, const shoal_shape *shape);

/* The first grain of a stratum; of the one behind the last: how many grains there are. */
int64_t learn_stratum_grain(const shoal_shape *shape, int64_t stratum);
/* The stratum that begins with this grain (`strata` for the end of all grains), -1 if none does. */
int64_t learn_stratum_from(const shoal_shape *shape, int64_t grain);

typedef struct learn_stratum {
    int64_t first, rows; /* its rows */
    int64_t drawn;       /* so many of them, from the first on, are drawn from; the rest is held out */
    int64_t before;      /* drawn rows of all strata before it */
} learn_stratum;

learn_stratum learn_stratum_at(const shoal_shape *shape, int64_t stratum);

/* Places in the order of one stratum. */
typedef struct learn_places {
    int64_t from, count;
} learn_places;

learn_places learn_pick_places(const shoal_pick *pick, const shoal_shape *shape, const learn_stratum *of);
/* How many groups each stratum counts, of which the last ones may have no rows; and how many rows a group has at
 * most. */
int64_t learn_pick_groups(const shoal_pick *pick, const shoal_shape *shape);
int64_t learn_pick_group_rows(const shoal_pick *pick, const shoal_shape *shape);

/* The rows of a grain that a part has, all in one run: none, some, or all of them. */
learn_places learn_part_of_grain(shoal_part part, const shoal_shape *shape, int64_t grain);

/* A random order of the numbers below `count`, any place of which is found in a few multiplications. */
enum { LEARN_ORDER_STEPS = 6 };
typedef struct learn_order {
    uint64_t count, key[LEARN_ORDER_STEPS];
    int low_bits; /* of a power of two that is at least count, these are the low half, */
    int high_bits;
} learn_order;

learn_order learn_order_of(uint64_t key, int64_t stratum, int64_t count);
int64_t learn_order_row(const learn_order *order, int64_t place);

#endif
