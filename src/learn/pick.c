/* Which rows a batch has.  See pick.h.
 *
 * Of D drawn rows in all, n of which are in a stratum and c in it or before it, the first p positions take
 *
 *     taken(p) = (p * n + D - c) / D, rounded down
 *
 * from this stratum: as it should be none for p = 0 and all n for p = D, never fewer for a larger p, and in between at
 * most one row from its share.  With strata of one size these are turns: position p is of stratum p % strata.  A
 * batch's places in the stratum's order are those from taken(from) to taken(from + count). */
#include "learn/pick.h"

#include "base/random.h"

int learn_pick_check(const shoal_round *round, const shoal_shape *shape)
{
    const shoal_layout *layout = &round->layout;
    const shoal_pick *pick = &layout->pick;
    if (pick->count == 0 && layout->part == SHOAL_ALL)
        return SHOAL_OK;
    if (shape->strata < 1)
        return shoal_fail(SHOAL_BROKEN, "round %lld is of a part of the rows, but there are no strata",
                          (long long)round->number);
    if (pick->count == 0 && (layout->part == SHOAL_DRAWN || layout->part == SHOAL_HELD))
        return SHOAL_OK;
    if (pick->count < 0 || pick->from < 0 || pick->group < 1 || pick->from > INT64_MAX - pick->count ||
        layout->part != SHOAL_ALL)
        return shoal_fail(SHOAL_BROKEN, "round %lld has a batch that can't be", (long long)round->number);
    if (learn_pick_groups(pick, shape) > UINT32_MAX / shape->strata)
        return shoal_fail(SHOAL_BROKEN, "round %lld has a batch of more than %u groups: make them larger",
                          (long long)round->number, UINT32_MAX);
    bool bad = layout->writes_memo;
    for (int i = 0; i < layout->cells; i++)
        bad |= layout->cell[i].kind == SHOAL_CELL_ROW || layout->cell[i].carried;
    return bad ? shoal_fail(SHOAL_BROKEN,
                            "round %lld is a batch, and has rows, carried sums or a memo that maps write to",
                            (long long)round->number)
               : SHOAL_OK;
}

/* ---- strata ------------------------------------------------------------------------------------------------------ */

/* a * b / c, rounded down, of numbers that are not negative. */
static int64_t share(int64_t a, int64_t b, int64_t c)
{
    return (int64_t)((__int128)a * b / c);
}

int64_t learn_stratum_grain(const shoal_shape *shape, int64_t stratum)
{
    return share(stratum, shape->grains, shape->strata);
}

int64_t learn_stratum_from(const shoal_shape *shape, int64_t grain)
{
    int64_t stratum = share(grain, shape->strata, shape->grains);
    stratum += learn_stratum_grain(shape, stratum) < grain;
    return learn_stratum_grain(shape, stratum) == grain ? stratum : -1;
}

static int64_t rows_before(const shoal_shape *shape, int64_t stratum)
{
    int64_t rows = learn_stratum_grain(shape, stratum) * shape->rows_per_grain;
    return rows < shape->rows ? rows : shape->rows;
}

learn_stratum learn_stratum_at(const shoal_shape *shape, int64_t stratum)
{
    int64_t first = rows_before(shape, stratum), end = rows_before(shape, stratum + 1);
    int64_t held_before = share(first, shape->held, shape->rows), held = share(end, shape->held, shape->rows);
    return (learn_stratum){.first = first,
                           .rows = end - first,
                           .drawn = end - first - (held - held_before),
                           .before = first - held_before};
}

learn_places learn_part_of_grain(shoal_part part, const shoal_shape *shape, int64_t grain)
{
    int64_t first = grain * shape->rows_per_grain, end = first + shape->rows_per_grain;
    end = end < shape->rows ? end : shape->rows;
    if (part == SHOAL_ALL)
        return (learn_places){first, end - first};
    int64_t stratum = share(grain, shape->strata, shape->grains);
    stratum += learn_stratum_grain(shape, stratum + 1) <= grain;
    learn_stratum of = learn_stratum_at(shape, stratum);
    int64_t border = of.first + of.drawn;
    if (part == SHOAL_DRAWN)
        end = end < border ? end : border;
    else
        first = first > border ? first : border;
    return (learn_places){first, end > first ? end - first : 0};
}

/* ---- batches ----------------------------------------------------------------------------------------------------- */

static int64_t taken(const shoal_shape *shape, const learn_stratum *of, int64_t position)
{
    int64_t all = shape->rows - shape->held;
    if (of->drawn == 0)
        return 0;
    position = position < all ? position : all;
    return (int64_t)(((__int128)position * of->drawn + all - (of->before + of->drawn)) / all);
}

learn_places learn_pick_places(const shoal_pick *pick, const shoal_shape *shape, const learn_stratum *of)
{
    int64_t from = taken(shape, of, pick->from);
    return (learn_places){from, taken(shape, of, pick->from + pick->count) - from};
}

/* Orders use the first numbers that belong to a stratum. */
uint64_t shoal_epoch_key(uint64_t seed, int64_t epoch)
{
    return base_random_u64(seed, BASE_FOR_PICKS, (uint64_t)epoch, UINT32_MAX);
}

int64_t shoal_pick_rows(const shoal_pick *pick, const shoal_shape *shape)
{
    int64_t rows = 0;
    for (int64_t i = 0; i < shape->strata; i++) {
        learn_stratum of = learn_stratum_at(shape, i);
        rows += learn_pick_places(pick, shape, &of).count;
    }
    return rows;
}

/* No stratum takes more places: its share of the positions, rounded up, if it is as large as any can be. */
static int64_t places_most(const shoal_pick *pick, const shoal_shape *shape)
{
    int64_t all = shape->rows - shape->held, count = pick->count < all ? pick->count : all;
    int64_t grains = (shape->grains + shape->strata - 1) / shape->strata;
    int64_t rows = grains < shape->grains ? grains * shape->rows_per_grain : shape->rows;
    rows = rows < all ? rows : all;
    int64_t most = share(count, rows, all) + 1;
    return most < count ? most : count;
}

int64_t learn_pick_group_rows(const shoal_pick *pick, const shoal_shape *shape)
{
    int64_t most = places_most(pick, shape);
    return pick->group < most ? pick->group : most;
}

int64_t learn_pick_groups(const shoal_pick *pick, const shoal_shape *shape)
{
    int64_t most = places_most(pick, shape);
    return most / pick->group + (most % pick->group > 0);
}

/* ---- the order of a stratum -------------------------------------------------------------------------------------- */

/* Over fewer numbers a network of so few steps is not random enough. */
enum { BITS_LEAST = 10 };

learn_order learn_order_of(uint64_t key, int64_t stratum, int64_t count)
{
    learn_order order = {.count = (uint64_t)count};
    int bits = BITS_LEAST;
    while (bits < 62 && (UINT64_C(1) << bits) < order.count)
        bits++;
    order.low_bits = bits / 2;
    order.high_bits = bits - order.low_bits;
    for (int i = 0; i < LEARN_ORDER_STEPS; i++)
        order.key[i] = base_random_u64(key, BASE_FOR_PICKS, (uint64_t)stratum, (uint32_t)i);
    return order;
}

/* `bits` well-mixed bits of a value and a key. */
static uint64_t mixed(uint64_t value, uint64_t key, int bits)
{
    value = (value ^ key) * UINT64_C(0x9e3779b97f4a7c15);
    value = (value ^ value >> 32) * UINT64_C(0xd6e8feb86659fd93);
    return value >> (64 - bits);
}

/* A Feistel network over the power of two, in which each half is changed by the other in turn; a number that is too
 * large goes through it again, until one is not. */
int64_t learn_order_row(const learn_order *order, int64_t place)
{
    uint64_t at = (uint64_t)place;
    do {
        uint64_t low = at & ((UINT64_C(1) << order->low_bits) - 1), high = at >> order->low_bits;
        for (int i = 0; i < LEARN_ORDER_STEPS; i += 2) {
            low ^= mixed(high, order->key[i], order->low_bits);
            high ^= mixed(low, order->key[i + 1], order->high_bits);
        }
        at = high << order->low_bits | low;
    } while (at >= order->count);
    return (int64_t)at;
}
