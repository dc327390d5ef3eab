/* src/learn/pick.c: strata, shares and orders, beside what they are defined as, counted out one by one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "learn/pick.h"

static shoal_shape make_shape(int64_t rows, int64_t rows_per_grain, int64_t strata, int64_t held)
{
    return (shoal_shape){.rows = rows,
                         .columns = 1,
                         .rows_per_grain = rows_per_grain,
                         .grains = (rows + rows_per_grain - 1) / rows_per_grain,
                         .strata = strata,
                         .held = held};
}

static const struct {
    int64_t rows, rows_per_grain, strata, held;
} shapes[] = {{1, 1, 1, 0},     {7, 1, 7, 0},      {7, 3, 2, 3},    {100, 10, 10, 0},   {100, 10, 10, 20},
              {101, 10, 4, 33}, {1000, 7, 64, 11}, {97, 50, 2, 90}, {640, 10, 16, 160}, {333, 100, 3, 332}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static shoal_shape shape_at(int i)
{
    return make_shape(shapes[i].rows, shapes[i].rows_per_grain, shapes[i].strata, shapes[i].held);
}

/* ---- strata ------------------------------------------------------------------------------------------------------ */

static void test_strata_are_all_grains_once(void **state)
{
    (void)state;
    for (int i = 0; i < SHAPES; i++) {
        shoal_shape shape = shape_at(i);
        int64_t rows = 0, drawn = 0;
        for (int64_t s = 0; s < shape.strata; s++) {
            learn_stratum of = learn_stratum_at(&shape, s);
            assert_int_equal(of.first, rows);
            assert_int_equal(of.first, learn_stratum_grain(&shape, s) * shape.rows_per_grain);
            assert_int_equal(of.before, drawn);
            assert_in_range(of.drawn, 0, of.rows);
            assert_true(of.rows > 0);
            rows += of.rows;
            drawn += of.drawn;
            double share = (double)of.rows * (double)shape.held / (double)shape.rows;
            assert_true((double)(of.rows - of.drawn) > share - 1 && (double)(of.rows - of.drawn) < share + 1);
        }
        assert_int_equal(rows, shape.rows);
        assert_int_equal(drawn, shape.rows - shape.held);
    }
}

static void test_strata_are_found_by_their_first_grain(void **state)
{
    (void)state;
    for (int i = 0; i < SHAPES; i++) {
        shoal_shape shape = shape_at(i);
        for (int64_t grain = 0; grain <= shape.grains; grain++) {
            int64_t expected = -1;
            for (int64_t s = 0; s <= shape.strata; s++)
                expected = learn_stratum_grain(&shape, s) == grain ? s : expected;
            assert_int_equal(learn_stratum_from(&shape, grain), expected);
        }
    }
}

/* The drawn and the held rows of a grain are all its rows, each in the part that its stratum says. */
static void test_parts_of_grains(void **state)
{
    (void)state;
    for (int i = 0; i < SHAPES; i++) {
        shoal_shape shape = shape_at(i);
        for (int64_t s = 0; s < shape.strata; s++) {
            learn_stratum of = learn_stratum_at(&shape, s);
            for (int64_t grain = learn_stratum_grain(&shape, s); grain < learn_stratum_grain(&shape, s + 1); grain++) {
                learn_places all = learn_part_of_grain(SHOAL_ALL, &shape, grain),
                             drawn = learn_part_of_grain(SHOAL_DRAWN, &shape, grain),
                             held = learn_part_of_grain(SHOAL_HELD, &shape, grain);
                assert_int_equal(drawn.count + held.count, all.count);
                assert_true(drawn.count == 0 || drawn.from == all.from);
                assert_true(drawn.from + drawn.count <= of.first + of.drawn || drawn.count == 0);
                assert_true(held.count == 0 || held.from >= of.first + of.drawn);
            }
        }
    }
}

/* ---- batches ----------------------------------------------------------------------------------------------------- */

/* An epoch in batches of any size: the places of each stratum, all of them, in order. */
static void test_an_epoch_is_every_row_once(void **state)
{
    (void)state;
    static const int64_t sizes[] = {1, 3, 16, 128, 1000, INT64_MAX / 2};
    for (int i = 0; i < SHAPES; i++)
        for (size_t b = 0; b < sizeof sizes / sizeof *sizes; b++) {
            shoal_shape shape = shape_at(i);
            int64_t all = shape.rows - shape.held, *done = calloc((size_t)shape.strata, sizeof *done);
            for (int64_t from = 0; from < all; from += sizes[b]) {
                shoal_pick pick = {.from = from, .count = sizes[b], .group = 5};
                int64_t rows = 0;
                for (int64_t s = 0; s < shape.strata; s++) {
                    learn_stratum of = learn_stratum_at(&shape, s);
                    learn_places places = learn_pick_places(&pick, &shape, &of);
                    assert_int_equal(places.from, done[s]);
                    assert_true(places.count >= 0);
                    assert_true(places.count <= learn_pick_groups(&pick, &shape) * 5);
                    assert_true(learn_pick_group_rows(&pick, &shape) <= 5);
                    assert_true(places.count <= 5 || learn_pick_group_rows(&pick, &shape) == 5);
                    double share = (double)of.drawn / (double)all;
                    double wanted = share * (double)(sizes[b] < all - from ? sizes[b] : all - from);
                    assert_true((double)places.count > wanted - 1 && (double)places.count < wanted + 1);
                    done[s] += places.count;
                    rows += places.count;
                }
                assert_int_equal(rows, shoal_pick_rows(&pick, &shape));
            }
            for (int64_t s = 0; s < shape.strata; s++)
                assert_int_equal(done[s], learn_stratum_at(&shape, s).drawn);
            free(done);
        }
}

/* Strata of one size take turns, so that a batch has just as many rows as it asks for. */
static void test_equal_strata_take_turns(void **state)
{
    (void)state;
    shoal_shape shape = make_shape(1600, 25, 16, 160);
    for (int64_t position = 0; position < 1440; position++) {
        shoal_pick pick = {.from = position, .count = 1, .group = 1};
        for (int64_t s = 0; s < 16; s++) {
            learn_stratum of = learn_stratum_at(&shape, s);
            learn_places places = learn_pick_places(&pick, &shape, &of);
            assert_int_equal(places.count, s == position % 16);
            if (places.count)
                assert_int_equal(places.from, position / 16);
        }
    }
    assert_int_equal(shoal_pick_rows(&(shoal_pick){.from = 7, .count = 100, .group = 3}, &shape), 100);
    assert_int_equal(shoal_pick_rows(&(shoal_pick){.from = 1400, .count = 100, .group = 3}, &shape), 40);
    assert_int_equal(shoal_pick_rows(&(shoal_pick){.from = 1440, .count = 100, .group = 3}, &shape), 0);
}

static void test_the_largest_numbers(void **state)
{
    (void)state;
    shoal_shape shape = make_shape(INT64_C(1) << 61, INT64_C(1) << 30, 65536, INT64_C(1) << 59);
    shoal_pick pick = {.from = (INT64_C(1) << 60) + 12345, .count = 65536 * INT64_C(7), .group = INT64_MAX};
    assert_int_equal(shoal_pick_rows(&pick, &shape), 65536 * 7);
    assert_int_equal(learn_pick_groups(&pick, &shape), 1);
    assert_in_range(learn_pick_group_rows(&pick, &shape), 7, 10);
    learn_order order = learn_order_of(3, 9, INT64_C(1) << 61);
    assert_in_range(learn_order_row(&order, (INT64_C(1) << 61) - 1), 0, (INT64_C(1) << 61) - 1);
}

/* ---- orders ------------------------------------------------------------------------------------------------------ */

static void test_orders_are_permutations(void **state)
{
    (void)state;
    for (int64_t count = 1; count < 700; count += count < 40 ? 1 : 37) {
        bool *seen = calloc((size_t)count, sizeof *seen);
        learn_order order = learn_order_of(42, count % 5, count);
        for (int64_t place = 0; place < count; place++) {
            int64_t row = learn_order_row(&order, place);
            assert_in_range(row, 0, count - 1);
            assert_false(seen[row]);
            seen[row] = true;
        }
        free(seen);
    }
}

/* Chi-squared of how often each row comes at each place, and each pair of rows at the first two, over many keys. */
static void expect_uniform(const int64_t *seen, int64_t cells, int64_t draws)
{
    double expected = (double)draws / (double)cells, chi = 0;
    for (int64_t i = 0; i < cells; i++)
        chi += ((double)seen[i] - expected) * ((double)seen[i] - expected) / expected;
    double free_cells = (double)cells - 1, spread = chi - free_cells;
    assert_true(spread * spread < 25 * 2 * free_cells); /* within five deviations */
}

static void test_orders_are_random(void **state)
{
    (void)state;
    enum { MOST = 13, KEYS = 10000 };
    for (int64_t count = 2; count <= MOST; count++) {
        int64_t at_place[MOST * MOST] = {0}, pairs[MOST * MOST] = {0};
        for (uint64_t key = 0; key < KEYS; key++) {
            learn_order order = learn_order_of(key, 3, count);
            int64_t row[MOST];
            for (int64_t place = 0; place < count; place++) {
                row[place] = learn_order_row(&order, place);
                at_place[place * count + row[place]]++;
            }
            pairs[row[0] * (count - 1) + row[1] - (row[1] > row[0])]++;
        }
        for (int64_t place = 0; place < count; place++)
            expect_uniform(at_place + place * count, count, KEYS);
        if (count > 2)
            expect_uniform(pairs, count * (count - 1), KEYS);
    }
}

/* They are part of every result: the same for ever. */
static void test_orders_stay(void **state)
{
    (void)state;
    static const int64_t expected[] = {89, 821, 564, 809, 223};
    learn_order order = learn_order_of(1, 2, 1000);
    for (int i = 0; i < 5; i++)
        assert_int_equal(learn_order_row(&order, i), expected[i]);
}

/* ---- what can't be ----------------------------------------------------------------------------------------------- */

static void test_what_is_refused(void **state)
{
    (void)state;
    const shoal_shape shape = make_shape(100, 10, 5, 10), plain = make_shape(100, 10, 0, 0);
    const shoal_pick good = {.from = 3, .count = 20, .group = 4};
    struct {
        shoal_pick pick;
        shoal_part part;
        shoal_cell cell;
        bool writes_memo, refused;
    } cases[] = {
        {.pick = good},
        {.part = SHOAL_DRAWN},
        {.part = SHOAL_HELD},
        {.pick = good, .part = SHOAL_DRAWN, .refused = true},
        {.pick = {.count = -1, .group = 1}, .refused = true},
        {.pick = {.count = 5, .group = 0}, .refused = true},
        {.pick = {.from = -1, .count = 5, .group = 1}, .refused = true},
        {.pick = {.from = INT64_MAX, .count = 5, .group = 1}, .refused = true},
        {.pick = good, .cell = {.kind = SHOAL_CELL_ROW, .bytes = 1}, .refused = true},
        {.pick = good, .cell = {.count = 1, .carried = true}, .refused = true},
        {.pick = good, .writes_memo = true, .refused = true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        shoal_round round = {.layout = {.cells = 1, .writes_memo = cases[i].writes_memo}};
        round.layout.pick = cases[i].pick;
        round.layout.part = cases[i].part;
        round.layout.cell[0] = cases[i].cell;
        assert_int_equal(learn_pick_check(&round, &shape), cases[i].refused ? SHOAL_BROKEN : SHOAL_OK);
        assert_int_equal(learn_pick_check(&round, &plain), SHOAL_BROKEN);
    }
    assert_int_equal(learn_pick_check(&(shoal_round){0}, &plain), SHOAL_OK);
    /* More groups than a pool can be given, and as many as it can. */
    const shoal_shape huge = make_shape(INT64_C(1) << 40, 1 << 20, 16, 0);
    shoal_round round = {.layout.pick = {.count = INT64_C(1) << 33, .group = 1}};
    assert_int_equal(learn_pick_check(&round, &huge), SHOAL_BROKEN);
    round.layout.pick.group = 3;
    assert_int_equal(learn_pick_check(&round, &huge), SHOAL_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_strata_are_all_grains_once),
        cmocka_unit_test(test_strata_are_found_by_their_first_grain),
        cmocka_unit_test(test_parts_of_grains),
        cmocka_unit_test(test_an_epoch_is_every_row_once),
        cmocka_unit_test(test_equal_strata_take_turns),
        cmocka_unit_test(test_the_largest_numbers),
        cmocka_unit_test(test_orders_are_permutations),
        cmocka_unit_test(test_orders_are_random),
        cmocka_unit_test(test_orders_stay),
        cmocka_unit_test(test_what_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
