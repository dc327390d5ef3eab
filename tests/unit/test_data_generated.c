/* Generated data: any part alone equals the same part of the whole, addresses are checked, and values never change. */
#include "data_support.h"

#include <math.h>

static void read_rows(void *out, const char *address, int64_t first, int64_t count)
{
    shoal_data *data = open_data(address);
    const void *rows;
    assert_false(shoal_data_is_resident(data));
    assert_int_equal(shoal_data_read(&rows, data, first, count, out), SHOAL_OK);
    assert_ptr_equal(rows, out);
    shoal_data_free(&data);
}

static void test_shape_and_defaults(void **state)
{
    (void)state;
    shoal_data *data = open_data("gen:uniform?rows=5e5&cols=1000&seed=1");
    assert_string_equal(shoal_data_format(data), "generated");
    assert_string_equal(shoal_data_path(data), "gen:uniform?rows=5e5&cols=1000&seed=1");
    assert_int_equal(shoal_data_rows(data), 500000);
    assert_int_equal(shoal_data_columns(data), 1000);
    assert_int_equal(shoal_data_type(data), SHOAL_FLOAT32);
    shoal_data_free(&data);
}

static void test_parts_equal_the_whole(void **state)
{
    (void)state;
    static const char *const addresses[] = {
        "gen:uniform?rows=40&cols=1037&seed=3", "gen:uniform?rows=40&cols=1037&seed=3&type=float64",
        "gen:blobs?rows=40&cols=1037&seed=3&centres=4", "gen:uniform?rows=40&cols=1037&low=-100&high=100&type=int8"};
    static unsigned char whole[40 * 1037 * 8], part[40 * 1037 * 8];
    for (int i = 0; i < 4; i++) {
        shoal_data *data = open_data(addresses[i]);
        size_t row_bytes = data_row_bytes(data);
        shoal_data_free(&data);
        read_rows(whole, addresses[i], 0, 40);
        for (int64_t first = 0; first < 40; first += 7) {
            int64_t count = first + 7 <= 40 ? 7 : 40 - first;
            read_rows(part, addresses[i], first, count);
            assert_memory_equal(part, whole + (size_t)first * row_bytes, (size_t)count * row_bytes);
        }
    }
}

/* The meaning of an address never changes: these bits were made by the first version. */
static void test_fixed_values(void **state)
{
    (void)state;
    float uniform[4], blobs[4];
    double fine[2];
    read_rows(uniform, "gen:uniform?rows=9&cols=4&seed=1", 5, 1);
    read_rows(fine, "gen:uniform?rows=9&cols=2&seed=1&type=float64", 5, 1);
    read_rows(blobs, "gen:blobs?rows=9&cols=4&seed=1", 5, 1);
    static const float expected_uniform[4] = {0x1.4ced3p-4f, 0x1.53bf24p-2f, 0x1.5a3f38p-2f, 0x1.87ca56p-1f};
    static const double expected_fine[2] = {0x1.53bf24a8533b4p-2, 0x1.87ca578cad1f9p-1};
    static const float expected_blobs[4] = {0x1.a5acecp+2f, -0x1.16bdeap+3f, -0x1.4caa2ep+3f, -0x1.21762cp+1f};
    assert_memory_equal(uniform, expected_uniform, sizeof uniform);
    assert_memory_equal(fine, expected_fine, sizeof fine);
    assert_memory_equal(blobs, expected_blobs, sizeof blobs);
}

static void test_uniform_is_uniform(void **state)
{
    (void)state;
    enum { COUNT = 100000 };
    static float values[COUNT];
    read_rows(values, "gen:uniform?rows=1000&cols=100&seed=2&low=-1&high=3", 0, 1000);
    double sum = 0, squares = 0;
    for (int i = 0; i < COUNT; i++) {
        assert_true(values[i] >= -1 && values[i] <= 3);
        sum += values[i];
        squares += (values[i] - 1) * (values[i] - 1);
    }
    assert_true(fabs(sum / COUNT - 1) < 0.02);
    assert_true(fabs(squares / COUNT - 16.0 / 12) < 0.02);
}

static void test_integers(void **state)
{
    (void)state;
    static uint8_t bytes[10000];
    int seen[4] = {0};
    read_rows(bytes, "gen:uniform?rows=100&cols=100&low=0&high=4&type=uint8", 0, 100);
    for (int i = 0; i < 10000; i++) {
        assert_true(bytes[i] < 4);
        seen[bytes[i]]++;
    }
    for (int i = 0; i < 4; i++)
        assert_true(seen[i] > 2300 && seen[i] < 2700);
    read_rows(bytes, "gen:uniform?rows=100&cols=100&low=-500&high=900&type=uint8", 0, 100); /* held within 0 and 255 */
    int least = 0, greatest = 0;
    for (int i = 0; i < 10000; i++) {
        least += bytes[i] == 0;
        greatest += bytes[i] == 255;
    }
    assert_true(least > 3000 && greatest > 4000);
}

/* Rows of one blob lie around one centre, with the spread asked for. */
static void test_blobs(void **state)
{
    (void)state;
    enum { ROWS = 4000, COLUMNS = 3 };
    static double values[ROWS][COLUMNS];
    read_rows(values, "gen:blobs?rows=4000&cols=3&centres=1&spread=0.5&seed=9&type=float64", 0, ROWS);
    for (int c = 0; c < COLUMNS; c++) {
        double mean = 0, variance = 0;
        for (int r = 0; r < ROWS; r++)
            mean += values[r][c] / ROWS;
        for (int r = 0; r < ROWS; r++)
            variance += (values[r][c] - mean) * (values[r][c] - mean) / ROWS;
        assert_true(mean > -10.1 && mean < 10.1);
        assert_true(fabs(variance - 0.25) < 0.02);
    }
    read_rows(values, "gen:blobs?rows=4000&cols=3&centres=5&spread=0&seed=9&type=float64", 0, ROWS);
    int distinct = 0;
    for (int r = 0; r < ROWS; r++) {
        int same = 0;
        for (int before = 0; before < r && !same; before++)
            same = memcmp(values[r], values[before], sizeof values[r]) == 0;
        distinct += !same;
    }
    assert_int_equal(distinct, 5);
}

static void test_wrong_addresses(void **state)
{
    (void)state;
    static const struct {
        const char *address, *part;
    } cases[] = {
        {"gen:", "\"\" can't be generated"},
        {"gen:normal?rows=1&cols=1", "\"normal\" can't be generated; uniform and blobs can"},
        {"gen:uniform", "needs rows="},
        {"gen:uniform?rows=3", "needs cols="},
        {"gen:uniform?cols=3", "needs rows="},
        {"gen:uniform?rows=0&cols=3", "needs rows="},
        {"gen:uniform?rows=3&cols=3&sed=1", "has no key \"sed\""},
        {"gen:uniform?rows=3&cols=3&centres=1", "has no key \"centres\""},
        {"gen:uniform?rows=3&cols=3&centers=1", "has no key \"centers\""},
        {"gen:blobs?rows=3&cols=3&centers=1&centres=1", "is given twice"},
        {"gen:uniform?rows=3&cols=3&seed", "\"seed\" is not key=value"},
        {"gen:uniform?rows=3&cols=3&rows=4", "\"rows\" is given twice"},
        {"gen:uniform?rows=-3&cols=3", "rows= must be at least 1, not -3"},
        {"gen:uniform?rows=1.5&cols=3", "rows=1.5 is not a whole number"},
        {"gen:uniform?rows=99999999999999999999&cols=3", "is not a whole number"},
        {"gen:uniform?rows=&cols=3", "rows= is not a whole number"},
        {"gen:uniform?rows=3&cols=4294967297", "cols= is at most 4294967296"},
        {"gen:uniform?rows=3&cols=3&low=2", "low= must not be above high="},
        {"gen:uniform?rows=3&cols=3&high=nan", "high=nan is not a number"},
        {"gen:uniform?rows=3&cols=3&low=-1e308&high=1e308", "low= must not be"},
        {"gen:uniform?rows=3&cols=3&type=int64", "type=int64 is not float32"},
        {"gen:blobs?rows=3&cols=3&centres=0", "centres= is at least 1"},
        {"gen:blobs?rows=3&cols=3&spread=-1", "spread= can't be negative"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        refuse(cases[i].address, SHOAL_USAGE, cases[i].part);
    refuse("gen:uniform?rows=18446744073709551615&cols=3", SHOAL_INVALID, "63 bits");
    refuse_with("gen:uniform?rows=3&cols=3", &(shoal_data_options){.rows = 3}, SHOAL_USAGE,
                "are for raw files, and this is generated");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shape_and_defaults), cmocka_unit_test(test_parts_equal_the_whole),
        cmocka_unit_test(test_fixed_values),       cmocka_unit_test(test_uniform_is_uniform),
        cmocka_unit_test(test_integers),           cmocka_unit_test(test_blobs),
        cmocka_unit_test(test_wrong_addresses),
    };
    return cmocka_run_group_tests_name("data_generated", tests, NULL, NULL);
}
