/* Partials merge exactly: any order and any grouping gives the same bytes, and the numbers in them are exact. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "base/random.h"
#include "learn/partial.h"

static uint64_t draws;

static uint64_t draw(uint64_t bound)
{
    return base_random_below(bound, 21, BASE_FOR_DATA, draws++, 0);
}

static uint64_t bits(void)
{
    return base_random_u64(21, BASE_FOR_DATA, draws++, 0);
}

/* ---- merging ----------------------------------------------------------------------------------------------------- */

enum { SUMS, WIDES, MAXIMA, ALL_RECORDS, SOME_RECORDS, EMPTY_RECORDS, ROWS, CELLS };
enum { PARTS = 9, KEPT = 5, ROW_COUNT = 90 };

static const shoal_layout layout = {.cells = CELLS,
                                    .cell = {[SUMS] = {"sums", SHOAL_CELL_SUM, 17, 0, true},
                                             [WIDES] = {"wides", SHOAL_CELL_WIDE, 5, 0, false},
                                             [MAXIMA] = {"maxima", SHOAL_CELL_MAX, 7, 0, false},
                                             [ALL_RECORDS] = {"all", SHOAL_CELL_RECORD, 0, 12, false},
                                             [SOME_RECORDS] = {"some", SHOAL_CELL_RECORD, KEPT, 3, false},
                                             [EMPTY_RECORDS] = {"keys alone", SHOAL_CELL_RECORD, 0, 0, false},
                                             [ROWS] = {"rows", SHOAL_CELL_ROW, 0, 4, false}},
                                    .carry_from = -1};

static shoal_partial *new_partial(shoal_partial *rows_of)
{
    shoal_partial *partial = NULL;
    if (learn_partial_new(&partial, &layout, 0, ROW_COUNT, rows_of) < 0)
        fail_msg("%s", shoal_error());
    return partial;
}

/* A record's bytes are a function of its key, so that equal keys are equal records. */
static void add_record(shoal_partial *partial, int cell, shoal_key key)
{
    unsigned char bytes[12];
    for (int i = 0; i < 12; i++)
        bytes[i] = (unsigned char)(key.high * 7 + key.low * 13 + (uint64_t)i);
    assert_int_equal(shoal_partial_record(partial, cell, key, bytes), SHOAL_OK);
}

static void fill(shoal_partial *partial)
{
    static const double odd[] = {0.0, -0.0, INFINITY, -INFINITY, 0x1p-1074, -0x1p-1074, 1, -1};
    for (int64_t i = 0; i < 17; i++)
        shoal_partial_values(partial, SUMS)[i] += (int64_t)(bits() >> 6) - (INT64_C(1) << 57);
    for (int64_t i = 0; i < 5; i++)
        shoal_wide_add(shoal_partial_values(partial, WIDES), 5, i, floor(ldexp((double)(int64_t)bits(), 20)), 50);
    for (int64_t i = 0; i < 7; i++)
        shoal_max_raise(shoal_partial_values(partial, MAXIMA), i, odd[draw(8)]);
    for (uint64_t n = draw(60); n > 0; n--) {
        add_record(partial, ALL_RECORDS, (shoal_key){draw(4), draw(20)});
        add_record(partial, SOME_RECORDS, (shoal_key){draw(3) << 62, draw(40)});
        add_record(partial, EMPTY_RECORDS, (shoal_key){draw(2), bits()});
    }
}

static void merge(shoal_partial *into, const shoal_partial *from)
{
    for (int cell = 0; cell < CELLS; cell++) {
        int64_t count = learn_cell_values(&layout.cell[cell]), half = count / 2; /* in two pieces, as threads do it */
        learn_partial_merge_values(into, from, cell, half, count - half);
        learn_partial_merge_values(into, from, cell, 0, half);
    }
    assert_int_equal(learn_partial_merge_records(into, from), SHOAL_OK);
}

static void expect_same(const shoal_partial *a, const shoal_partial *b)
{
    for (int cell = 0; cell < CELLS; cell++) {
        int64_t count = learn_cell_values(&layout.cell[cell]), records = shoal_partial_records(a, cell);
        if (count)
            assert_memory_equal(shoal_partial_values_const(a, cell), shoal_partial_values_const(b, cell),
                                (size_t)count * sizeof(int64_t));
        assert_int_equal(records, shoal_partial_records(b, cell));
        for (int64_t r = 0; r < records; r++) {
            shoal_key x, y;
            const void *bytes_a = shoal_partial_record_at(a, cell, r, &x),
                       *bytes_b = shoal_partial_record_at(b, cell, r, &y);
            assert_true(x.high == y.high && x.low == y.low);
            if (layout.cell[cell].bytes)
                assert_memory_equal(bytes_a, bytes_b, layout.cell[cell].bytes);
        }
    }
}

/* Merges random pairs, some of them settled on the way, until one is left. */
static shoal_partial *merge_somehow(shoal_partial *const parts[PARTS])
{
    shoal_partial *left[PARTS];
    for (int i = 0; i < PARTS; i++) {
        left[i] = new_partial(NULL);
        merge(left[i], parts[i]);
    }
    for (int count = PARTS; count > 1; count--) {
        int a = (int)draw((uint64_t)count), b = (int)draw((uint64_t)count - 1);
        b += b >= a;
        if (draw(2))
            assert_int_equal(learn_partial_settle(left[draw(2) ? a : b]), SHOAL_OK);
        merge(left[a], left[b]);
        learn_partial_free(&left[b]);
        left[b] = left[count - 1];
    }
    assert_int_equal(learn_partial_settle(left[0]), SHOAL_OK);
    return left[0];
}

static void test_any_order_any_grouping(void **state)
{
    (void)state;
    for (int round = 0; round < 20; round++) {
        shoal_partial *parts[PARTS], *expected = new_partial(NULL);
        for (int i = 0; i < PARTS; i++) {
            parts[i] = new_partial(NULL);
            if (i > 0) /* one stays neutral */
                fill(parts[i]);
            merge(expected, parts[i]);
        }
        assert_int_equal(learn_partial_settle(expected), SHOAL_OK);
        assert_true(shoal_partial_records(expected, SOME_RECORDS) <= KEPT);
        for (int again = 0; again < 10; again++) {
            shoal_partial *merged = merge_somehow(parts);
            expect_same(merged, expected);
            learn_partial_free(&merged);
        }
        for (int i = 0; i < PARTS; i++)
            learn_partial_free(&parts[i]);
        learn_partial_free(&expected);
    }
}

static void test_clearing(void **state)
{
    (void)state;
    shoal_partial *partial = new_partial(NULL), *neutral = new_partial(NULL);
    fill(partial);
    int64_t carried[17];
    memcpy(carried, shoal_partial_values(partial, SUMS), sizeof carried);
    learn_partial_clear(partial, true);
    assert_memory_equal(shoal_partial_values(partial, SUMS), carried, sizeof carried);
    memset(shoal_partial_values(partial, SUMS), 0, sizeof carried);
    expect_same(partial, neutral);
    fill(partial);
    learn_partial_clear(partial, false);
    expect_same(partial, neutral);
    for (int64_t i = 0; i < 7; i++)
        assert_true(shoal_max_value(shoal_partial_values(neutral, MAXIMA)[i]) == -INFINITY);
    learn_partial_free(&partial);
    learn_partial_free(&neutral);
}

/* Gathering is clearing and merging, and leaves what it has read neutral. */
static void test_gathering(void **state)
{
    (void)state;
    shoal_partial *neutral = new_partial(NULL);
    for (int froms = 0; froms <= 4; froms++)
        for (int add = 0; add < 2; add++) {
            shoal_partial *from[4], *into = new_partial(NULL), *expected = new_partial(NULL);
            fill(into);
            if (add)
                merge(expected, into);
            learn_partial_clear_records(into);
            learn_partial_clear_records(expected);
            for (int i = 0; i < froms; i++) {
                from[i] = new_partial(NULL);
                fill(from[i]);
                learn_partial_clear_records(from[i]);
                merge(expected, from[i]);
            }
            for (int cell = 0; cell < CELLS; cell++) {
                int64_t count = learn_cell_values(&layout.cell[cell]), half = count / 2;
                learn_partial_gather_values(into, from, froms, cell, half, count - half, add);
                learn_partial_gather_values(into, from, froms, cell, 0, half, add);
            }
            expect_same(into, expected);
            for (int i = 0; i < froms; i++) {
                expect_same(from[i], neutral);
                learn_partial_free(&from[i]);
            }
            learn_partial_free(&into);
            learn_partial_free(&expected);
        }
    learn_partial_free(&neutral);
}

/* Many more values than are gathered at once. */
static void test_gathering_much(void **state)
{
    (void)state;
    enum { MANY = 5000 };
    shoal_layout large = {.cells = 1, .cell = {{"sums", SHOAL_CELL_SUM, MANY, 0, false}}, .carry_from = -1};
    shoal_partial *into = NULL, *from[3] = {NULL};
    for (int i = 0; i < 4; i++)
        assert_int_equal(learn_partial_new(i < 3 ? &from[i] : &into, &large, 0, 0, NULL), SHOAL_OK);
    for (int add = 0; add < 2; add++) {
        for (int i = 0; i < 3; i++)
            for (int64_t v = 0; v < MANY; v++)
                shoal_partial_values(from[i], 0)[v] = v * (i + 1);
        learn_partial_gather_values(into, from, 3, 0, 7, MANY - 9, add);
        for (int64_t v = 0; v < MANY; v++) {
            bool gathered = v >= 7 && v < MANY - 2;
            assert_int_equal(shoal_partial_values(into, 0)[v], gathered ? 6 * v * (add + 1) : 0);
            for (int i = 0; i < 3; i++)
                assert_int_equal(shoal_partial_values(from[i], 0)[v], gathered ? 0 : v * (i + 1));
        }
    }
    learn_partial_free(&into);
    for (int i = 0; i < 3; i++)
        learn_partial_free(&from[i]);
}

static void test_rows_are_lent_and_taken(void **state)
{
    (void)state;
    shoal_partial *owner = new_partial(NULL), *borrower = new_partial(owner);
    for (int64_t row = 0; row < ROW_COUNT; row++)
        *(int32_t *)shoal_partial_row(row % 2 ? owner : borrower, ROWS, row) = (int32_t)row;
    learn_partial_free(&borrower);
    int32_t *rows = learn_partial_take_rows(owner, ROWS);
    for (int64_t row = 0; row < ROW_COUNT; row++)
        assert_int_equal(rows[row], row);
    assert_null(learn_partial_take_rows(owner, ROWS));
    learn_partial_free(&owner);
    base_free(&rows);
}

static void test_layouts_are_compared(void **state)
{
    (void)state;
    shoal_layout other = layout;
    assert_true(learn_layout_equal(&layout, &other));
    other.cell[SUMS].count++;
    assert_false(learn_layout_equal(&layout, &other));
    other = layout;
    other.cell[SUMS].carried = false;
    assert_false(learn_layout_equal(&layout, &other));
    other = layout;
    other.cell[SUMS].kind = SHOAL_CELL_MAX;
    assert_false(learn_layout_equal(&layout, &other));
    other = layout;
    other.cell[ALL_RECORDS].bytes++;
    assert_false(learn_layout_equal(&layout, &other));
    other = layout;
    strcpy(other.cell[WIDES].name, "others");
    assert_false(learn_layout_equal(&layout, &other));
    other = layout;
    other.cells--;
    assert_false(learn_layout_equal(&layout, &other));
}

/* ---- records ----------------------------------------------------------------------------------------------------- */

static int compare_words(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* The greatest n different keys, whatever came before. */
static void test_the_greatest_are_kept(void **state)
{
    (void)state;
    for (int round = 0; round < 200; round++) {
        uint64_t keys[400], count = draw(400), unique = 0, kept;
        shoal_partial *partial = new_partial(NULL);
        for (uint64_t i = 0; i < count; i++) {
            keys[i] = draw(round % 2 ? 30 : 100000);
            add_record(partial, SOME_RECORDS, (shoal_key){keys[i] >> 8, keys[i] & 255});
        }
        qsort(keys, count, sizeof *keys, compare_words);
        for (uint64_t i = 0; i < count; i++)
            if (i == 0 || keys[i] != keys[i - 1])
                keys[unique++] = keys[i];
        kept = unique < KEPT ? unique : KEPT;
        assert_int_equal(learn_partial_settle(partial), SHOAL_OK);
        assert_int_equal(shoal_partial_records(partial, SOME_RECORDS), kept);
        for (uint64_t i = 0; i < kept; i++) {
            shoal_key key;
            const unsigned char *record = shoal_partial_record_at(partial, SOME_RECORDS, (int64_t)i, &key);
            assert_true((key.high << 8 | key.low) == keys[unique - kept + i]);
            assert_int_equal(record[2], (unsigned char)(key.high * 7 + key.low * 13 + 2));
        }
        learn_partial_free(&partial);
    }
}

static void test_keys_compare_by_both_halves_unsigned(void **state)
{
    (void)state;
    static const shoal_key keys[] = {
        {0, 0}, {0, 1}, {0, UINT64_MAX}, {1, 0}, {UINT64_C(1) << 63, 0}, {UINT64_MAX, UINT64_MAX}};
    shoal_partial *partial = new_partial(NULL);
    for (int i = 5; i >= 0; i--)
        add_record(partial, ALL_RECORDS, keys[i]);
    assert_int_equal(learn_partial_settle(partial), SHOAL_OK);
    for (int i = 0; i < 6; i++) {
        shoal_key key;
        shoal_partial_record_at(partial, ALL_RECORDS, i, &key);
        assert_true(key.high == keys[i].high && key.low == keys[i].low);
    }
    learn_partial_free(&partial);
}

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

static double any_double(void)
{
    uint64_t pattern = bits();
    double value;
    if (draw(4) == 0) /* subnormals */
        pattern &= ~(UINT64_C(0x7ff) << 52);
    memcpy(&value, &pattern, sizeof value);
    return isnan(value) ? 1 : value;
}

static void test_order_keys(void **state)
{
    (void)state;
    static const double rising[] = {-INFINITY,
                                    -0x1.fffffffffffffp1023,
                                    -1,
                                    -0x1p-1022,
                                    -0x1.ffffffffffffep-1023,
                                    -0x1p-1074,
                                    0,
                                    0x1p-1074,
                                    0x1p-1022,
                                    1,
                                    0x1.0000000000001p0,
                                    0x1.fffffffffffffp1023,
                                    INFINITY};
    for (size_t i = 0; i + 1 < sizeof rising / sizeof *rising; i++)
        assert_true(shoal_order_key(rising[i]) < shoal_order_key(rising[i + 1]));
    assert_true(shoal_order_key(-0.0) == shoal_order_key(0.0));
    assert_false(signbit(shoal_max_value(shoal_order_key(-0.0))));
    for (int i = 0; i < 100000; i++) {
        double a = any_double(), b = any_double();
        assert_true((a < b) == (shoal_order_key(a) < shoal_order_key(b)));
        assert_true((a == b) == (shoal_order_key(a) == shoal_order_key(b)));
        assert_true(shoal_max_value(shoal_order_key(a)) == a);
    }
}

static void test_maxima(void **state)
{
    (void)state;
    int64_t values[2] = {shoal_order_key(-INFINITY), shoal_order_key(-INFINITY)};
    shoal_max_raise(values, 1, -5);
    shoal_max_raise(values, 1, -7);
    assert_true(shoal_max_value(values[1]) == -5);
    shoal_max_raise(values, 1, 0x1p-1074);
    assert_true(shoal_max_value(values[1]) == 0x1p-1074);
    assert_true(shoal_max_value(values[0]) == -INFINITY);
}

static void test_wide_bits(void **state)
{
    (void)state;
    assert_int_equal(shoal_wide_bits(0), 62);
    assert_int_equal(shoal_wide_bits(1), 62);
    assert_int_equal(shoal_wide_bits(2), 61);
    assert_int_equal(shoal_wide_bits(3), 60);
    assert_int_equal(shoal_wide_bits(1 << 20), 42);
    assert_int_equal(shoal_wide_bits((1 << 20) + 1), 41);
    for (int64_t rows = 1; rows < INT64_MAX / 3; rows *= 3) /* this many digits fit an int64 */
        assert_true((__int128)rows << shoal_wide_bits(rows) <= (__int128)1 << 62);
}

/* A whole double below 2^most in size, often close to it, often with few bits. */
static double whole(int most)
{
    double value = ldexp((double)(bits() >> 11), (int)draw((uint64_t)most) - 52);
    switch (draw(4)) {
    case 0: value = ldexp(1, most) - ldexp((double)draw(4) + 1, most - 53); break;
    case 1: value = (double)draw(5); break;
    default: break;
    }
    value = fmin(floor(value), ldexp(1, most) - ldexp(1, most - 53));
    return draw(2) ? -value : value;
}

/* To nearest, ties to even, from all the bits. */
static double rounded(__int128 sum)
{
    unsigned __int128 size = sum < 0 ? -(unsigned __int128)sum : (unsigned __int128)sum;
    int shift = 0;
    while (size >> shift >> 53)
        shift++;
    unsigned __int128 kept = size >> shift, rest = size - (kept << shift),
                      half = shift ? (unsigned __int128)1 << (shift - 1) : 0;
    if (shift && (rest > half || (rest == half && (kept & 1))))
        kept++;
    double value = ldexp((double)(uint64_t)kept, shift);
    return sum < 0 ? -value : value;
}

static void test_wide_sums_are_exact(void **state)
{
    (void)state;
    static const int64_t rows[] = {1, 2, 3, 100, 5000};
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
        for (int again = 0; again < 30; again++) {
            int wide = shoal_wide_bits(rows[r]), most = 2 * wide;
            int64_t digits[6] = {0};
            __int128 sum = 0;
            if (most > 124)
                most = 124; /* what __int128 can check */
            for (int64_t i = 0; i < rows[r]; i++) {
                double value = again == 0   ? ldexp(1, most) - ldexp(1, most - 53)
                               : again == 1 ? -ldexp(1, most - 1)
                                            : whole(most);
                shoal_wide_add(digits, 3, 1, value, wide);
                sum += (__int128)value;
                double is = shoal_wide_value(digits, 3, 1, wide), should_be = rounded(sum);
                if (is != should_be)
                    fail_msg("%lld rows, after adding %a: %a instead of %a", (long long)rows[r], value, is, should_be);
            }
            assert_true(digits[4] * ((__int128)1 << wide) + digits[1] == sum);
            assert_true(digits[0] == 0 && digits[2] == 0 && digits[3] == 0 && digits[5] == 0);
        }
}

/* Taking back what was added leaves nothing, digit by digit merged or not. */
static void test_wide_sums_take_back(void **state)
{
    (void)state;
    enum { VALUES = 200 };
    int64_t one[2] = {0}, other[2] = {0};
    double values[VALUES];
    int wide = shoal_wide_bits(2 * VALUES);
    for (int i = 0; i < VALUES; i++) {
        values[i] = whole(2 * wide);
        shoal_wide_add(one, 1, 0, values[i], wide);
    }
    for (int i = VALUES - 1; i >= 0; i--)
        shoal_wide_add(other, 1, 0, -values[i], wide);
    for (int d = 0; d < 2; d++)
        one[d] += other[d];
    assert_true(shoal_wide_value(one, 1, 0, wide) == 0);
}

static void test_no_memory(void **state)
{
    (void)state;
    for (int64_t n = 0;; n++) {
        shoal_partial *partial = NULL;
        base_memory_fail_after(n);
        int status = learn_partial_new(&partial, &layout, 0, ROW_COUNT, NULL);
        for (uint64_t i = 0; status == SHOAL_OK && i < 40; i++)
            status = shoal_partial_record(partial, SOME_RECORDS, (shoal_key){0, i}, "abc");
        if (status == SHOAL_OK)
            status = learn_partial_settle(partial);
        base_memory_fail_after(-1);
        if (status == SHOAL_OK)
            assert_int_equal(shoal_partial_records(partial, SOME_RECORDS), KEPT);
        learn_partial_free(&partial);
        if (status == SHOAL_OK) {
            assert_true(n > 5);
            break;
        }
        assert_int_equal(status, SHOAL_MEMORY);
        assert_non_null(strstr(shoal_error(), "out of memory"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_any_order_any_grouping),
                                       cmocka_unit_test(test_clearing),
                                       cmocka_unit_test(test_gathering),
                                       cmocka_unit_test(test_gathering_much),
                                       cmocka_unit_test(test_rows_are_lent_and_taken),
                                       cmocka_unit_test(test_layouts_are_compared),
                                       cmocka_unit_test(test_the_greatest_are_kept),
                                       cmocka_unit_test(test_keys_compare_by_both_halves_unsigned),
                                       cmocka_unit_test(test_order_keys),
                                       cmocka_unit_test(test_maxima),
                                       cmocka_unit_test(test_wide_bits),
                                       cmocka_unit_test(test_wide_sums_are_exact),
                                       cmocka_unit_test(test_wide_sums_take_back),
                                       cmocka_unit_test(test_no_memory)};
    return cmocka_run_group_tests_name("partial", tests, NULL, NULL);
}
