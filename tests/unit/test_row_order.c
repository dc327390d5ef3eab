/* src/data/table/row_order.c: borders are where a sort would put them, for every number of rows before them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <shoal/error.h>

#include "base/memory.h"
#include "data/table/row_order.h"

enum { ROWS = 1000, GROUPS = 40 };

static int64_t count_before(data_border border, const data_order *order, const int32_t *group, int32_t which)
{
    int64_t count = 0;
    for (int64_t i = 0; i < order->rows; i++)
        count += (!group || group[i] == which) && data_order_before(border, data_order_key(order, i), i);
    return count;
}

static void any_number_of_rows_has_a_border(void **state)
{
    (void)state;
    for (int kept = 0; kept < 2; kept++) {
        const data_order order = {.rows = ROWS, .seed = 7, .kept = kept};
        data_border last = 0, border;
        for (int64_t wanted = 0; wanted <= ROWS; wanted++, last = border) {
            assert_int_equal(data_order_borders(&border, &order, NULL, 1, &wanted), SHOAL_OK);
            assert_int_equal(count_before(border, &order, NULL, 0), wanted);
            assert_true(wanted == 0 || last < border);
            if (kept && wanted > 0) /* the first rows, and no others */
                assert_true(data_order_before(border, data_order_key(&order, wanted - 1), wanted - 1));
        }
    }
}

/* With few groups and with many, which are counted by digits of another size. */
static void groups_have_their_own_borders(void **state)
{
    (void)state;
    static int32_t group[ROWS];
    static int64_t wanted[GROUPS];
    static data_border border[GROUPS];
    for (int groups = 3; groups <= GROUPS; groups += GROUPS - 3) {
        int64_t rows[GROUPS] = {0};
        const data_order order = {.rows = ROWS, .seed = 2};
        for (int i = 0; i < ROWS; i++)
            rows[group[i] = (int32_t)((i * i + i / 7) % groups)]++;
        for (int k = 0; k < groups; k++)
            wanted[k] = k % 4 == 3 ? rows[k] + 5 : rows[k] * k / groups; /* of some, more than there are */
        assert_int_equal(data_order_borders(border, &order, group, groups, wanted), SHOAL_OK);
        for (int k = 0; k < groups; k++)
            assert_int_equal(count_before(border[k], &order, group, k), wanted[k] < rows[k] ? wanted[k] : rows[k]);
    }
}

/* What was published stays: these keys decide which rows users have in their files. */
static void keys_never_change(void **state)
{
    (void)state;
    const data_order order = {.rows = 3, .seed = 1}, other = {.rows = 500, .seed = 1};
    assert_int_equal(data_order_key(&order, 0), UINT64_C(12114678449391745567));
    assert_int_equal(data_order_key(&order, 2), UINT64_C(6402078505591506677));
    assert_int_equal(data_order_key(&order, 2), data_order_key(&other, 2));
}

static void memory_may_fail(void **state)
{
    (void)state;
    const data_order order = {.rows = ROWS};
    data_border border;
    int status;
    for (int64_t n = 0;; n++) {
        base_memory_fail_after(n);
        status = data_order_borders(&border, &order, NULL, 1, (int64_t[]){5});
        base_memory_fail_after(-1);
        if (status == SHOAL_OK)
            break;
        assert_int_equal(status, SHOAL_MEMORY);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_number_of_rows_has_a_border),
        cmocka_unit_test(groups_have_their_own_borders),
        cmocka_unit_test(keys_never_change),
        cmocka_unit_test(memory_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
