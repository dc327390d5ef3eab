/* src/learn/standardise.c and src/data/table/data_transform.c: means and deviations of columns are those of long
 * arithmetic, the same bits on any number of threads, and rows are brought to them whatever their type.
 *
 * Labels: threads */
#include "data_support.h"

#include <math.h>

#include "base/memory.h"
#include "learn/standardise.h"

enum { ROWS = 50000, COLUMNS = 4 };

static double value_at(int64_t row, int64_t column)
{
    static const double sizes[COLUMNS] = {1, 1e-3, 1e6, 0};
    uint32_t mixed = (uint32_t)(row * COLUMNS + column) * 2654435761u;
    return 0.1 + sizes[column] * ((double)(mixed >> 8) / 0x1p24 - 0.25);
}

static double *make_rows(void)
{
    double *rows = NULL;
    assert_int_equal(base_alloc(&rows, ROWS * COLUMNS, sizeof *rows, "rows"), SHOAL_OK);
    for (int64_t i = 0; i < ROWS * COLUMNS; i++)
        rows[i] = value_at(i / COLUMNS, i % COLUMNS);
    return rows;
}

static learn_schema measure(const void *rows, int64_t count, int64_t columns, shoal_type type, int64_t target,
                            int threads)
{
    learn_schema schema = {.columns = columns - (target >= 0)};
    shoal_data *data = NULL;
    assert_int_equal(shoal_data_wrap(&data, rows, count, columns, type), SHOAL_OK);
    assert_int_equal(learn_standardise_measure(&schema, data, target, threads), SHOAL_OK);
    shoal_data_free(&data);
    return schema;
}

static void measures_are_those_of_long_arithmetic(void **state)
{
    double *rows = make_rows();
    learn_schema schema = measure(rows, ROWS, COLUMNS, SHOAL_FLOAT64, -1, 3);
    (void)state;
    for (int64_t k = 0; k < COLUMNS; k++) {
        long double sum = 0, squares = 0;
        for (int64_t i = 0; i < ROWS; i++)
            sum += rows[i * COLUMNS + k];
        for (int64_t i = 0; i < ROWS; i++)
            squares += (rows[i * COLUMNS + k] - sum / ROWS) * (rows[i * COLUMNS + k] - sum / ROWS);
        double deviation = (double)sqrtl(squares / ROWS);
        assert_true(fabs(schema.mean[k] - (double)(sum / ROWS)) <= 1e-15 * fabs((double)sum / ROWS));
        assert_true(k == 3 || fabs(schema.scale[k] / deviation - 1) < 1e-15);
    }
    assert_true(schema.mean[3] == 0.1 && schema.scale[3] == 1); /* a constant, to the bit */
    learn_schema_release(&schema);
    base_free(&rows);
}

static void threads_change_no_bit(void **state)
{
    double *rows = make_rows();
    learn_schema one = measure(rows, ROWS, COLUMNS, SHOAL_FLOAT64, 1, 1);
    (void)state;
    for (int threads = 2; threads <= 5; threads++) {
        learn_schema many = measure(rows, ROWS, COLUMNS, SHOAL_FLOAT64, 1, threads);
        assert_memory_equal(one.mean, many.mean, 3 * sizeof(double));
        assert_memory_equal(one.scale, many.scale, 3 * sizeof(double));
        learn_schema_release(&many);
    }
    learn_schema_release(&one);
    base_free(&rows);
}

static void values_of_any_size_are_measured(void **state)
{
    static const double large[] = {1e308, -1e308, 1e308, -1e308}, small[] = {5e-324, 0, 5e-324, 0};
    static const double too_large[] = {1.7e308, 1.7e308, 1.7e308, 1.7e308};
    learn_schema schema = measure(large, 4, 1, SHOAL_FLOAT64, -1, 1);
    shoal_data *data = NULL;
    (void)state;
    assert_true(schema.mean[0] == 0 && schema.scale[0] == 1e308);
    learn_schema_release(&schema);
    schema = measure(small, 4, 1, SHOAL_FLOAT64, -1, 1);
    assert_true(schema.scale[0] > 0);
    learn_schema_release(&schema);
    assert_int_equal(shoal_data_wrap(&data, too_large, 4, 1, SHOAL_FLOAT64), SHOAL_OK);
    schema = (learn_schema){.columns = 1};
    assert_int_equal(learn_standardise_measure(&schema, data, -1, 1), SHOAL_INVALID);
    assert_non_null(strstr(shoal_error(), "the values of column 1 are too large for --standardise"));
    shoal_data_free(&data);
}

static void what_is_not_finite_is_named(void **state)
{
    static const float rows[] = {1, 2, 3, 4, INFINITY, 6, NAN, 8};
    learn_schema schema = {.columns = 2};
    shoal_data *data = NULL;
    (void)state;
    assert_int_equal(shoal_data_wrap(&data, rows, 4, 2, SHOAL_FLOAT32), SHOAL_OK);
    assert_int_equal(learn_standardise_measure(&schema, data, -1, 2), SHOAL_INVALID);
    assert_non_null(strstr(shoal_error(), "row 3, column 1 is not a finite number; --standardise needs finite"));
    assert_null(schema.mean);
    shoal_data_free(&data);
}

/* Every type of values, with the target between the columns, which stays. */
static void rows_of_every_type_are_scaled(void **state)
{
    (void)state;
    for (shoal_type type = 0; type < SHOAL_TYPES; type++) {
        const bool wide = type == SHOAL_FLOAT64 || (shoal_type_size(type) >= 4 && type != SHOAL_FLOAT32);
        double means[] = {0.5, 0.25}, scales[] = {2, 4};
        const learn_schema schema = {.columns = 2, .mean = means, .scale = scales};
        unsigned char bytes[6 * 8] = {0};
        shoal_data *data = NULL;
        const void *read = NULL;
        double values[6];
        for (int i = 0; i < 6; i++) { /* ones and zeros, in this type */
            const unsigned char one[8] = {1};
            const float real = 1;
            const double wider = 1;
            memcpy(bytes + (size_t)i * shoal_type_size(type),
                   type == SHOAL_FLOAT32   ? (const void *)&real
                   : type == SHOAL_FLOAT64 ? (const void *)&wider
                                           : (const void *)one,
                   i % 2 ? shoal_type_size(type) : 0);
        }
        assert_int_equal(shoal_data_wrap(&data, bytes, 2, 3, type), SHOAL_OK);
        assert_int_equal(learn_standardise_apply(data, &schema, 1), SHOAL_OK);
        assert_int_equal(shoal_data_type(data), wide ? SHOAL_FLOAT64 : SHOAL_FLOAT32);
        assert_int_equal(shoal_data_read(&read, data, 0, 2, NULL), SHOAL_OK);
        shoal_convert_float64(values, read, shoal_data_type(data), 6);
        assert_true(values[0] == -0.25 && values[1] == 1 && values[2] == -0.0625);
        assert_true(values[3] == 0.25 && values[4] == 0 && values[5] == 0.1875);
        shoal_data_free(&data);
    }
}

static void every_allocation_may_fail(void **state)
{
    static const double rows[] = {1, 2, 3, 4, 5, 6};
    (void)state;
    for (int64_t n = 0;; n++) {
        learn_schema schema = {.columns = 2};
        shoal_data *data = NULL;
        assert_int_equal(shoal_data_wrap(&data, rows, 3, 2, SHOAL_FLOAT64), SHOAL_OK);
        base_memory_fail_after(n);
        int status = learn_standardise_measure(&schema, data, -1, 2);
        if (status == SHOAL_OK)
            status = learn_standardise_apply(data, &schema, -1);
        base_memory_fail_after(-1);
        shoal_data_free(&data);
        learn_schema_release(&schema);
        if (status == SHOAL_OK)
            break;
        assert_int_equal(status, SHOAL_MEMORY);
        assert_true(n < 100);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(measures_are_those_of_long_arithmetic), cmocka_unit_test(threads_change_no_bit),
        cmocka_unit_test(values_of_any_size_are_measured),       cmocka_unit_test(what_is_not_finite_is_named),
        cmocka_unit_test(rows_of_every_type_are_scaled),         cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, folder_setup, folder_teardown);
}
