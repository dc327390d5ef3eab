/* src/plan/least_squares.c: what is found keeps the conditions of Karush, Kuhn and Tucker, which only the least value
 * does; columns that are nothing, or made up of others, or of very different sizes do no harm. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <shoal/error.h>

#include "base/memory.h"
#include "plan/least_squares.h"

enum { ROWS_MOST = 40, COLUMNS_MOST = 9 };

static uint32_t random_state;

/* Between -1 and 1. */
static double any(void)
{
    random_state = random_state * 1664525 + 1013904223;
    return (double)(random_state >> 8) * 0x1p-23 - 1;
}

/* The slope of |A x - b|² / 2 is nothing where x is positive and not downward where x is 0. */
static void check_least(const double *x, const double *a, const double *b, int rows, int columns)
{
    double residual[ROWS_MOST], size = 0;
    for (int i = 0; i < rows; i++) {
        residual[i] = b[i];
        size += b[i] * b[i];
        for (int j = 0; j < columns; j++)
            residual[i] -= a[i * columns + j] * x[j];
    }
    for (int j = 0; j < columns; j++) {
        double slope = 0, length = 0;
        for (int i = 0; i < rows; i++) {
            slope += a[i * columns + j] * residual[i];
            length += a[i * columns + j] * a[i * columns + j];
        }
        double tolerance = 1e-9 * sqrt(size * length) + 1e-300;
        assert_true(x[j] >= 0);
        assert_true(slope <= tolerance);
        if (x[j] > 0)
            assert_true(slope >= -tolerance);
    }
}

static void test_known(void **state)
{
    const double a[] = {1, 0, 0, 1}, b[] = {3, -2}, dependent[] = {1, 2, 1, 2};
    double x[2];
    (void)state;
    assert_int_equal(plan_least_squares(x, a, b, 2, 2), SHOAL_OK);
    assert_true(fabs(x[0] - 3) < 1e-12 && x[1] == 0);
    assert_int_equal(plan_least_squares(x, dependent, (double[]){4, 4}, 2, 2), SHOAL_OK);
    assert_true(fabs(x[0] + 2 * x[1] - 4) < 1e-12 && x[0] >= 0 && x[1] >= 0);
    assert_int_equal(plan_least_squares(x, a, (double[]){-1, -1}, 2, 2), SHOAL_OK);
    assert_true(x[0] == 0 && x[1] == 0);
}

static void test_random(void **state)
{
    double a[ROWS_MOST * COLUMNS_MOST], b[ROWS_MOST], x[COLUMNS_MOST];
    (void)state;
    int positive = 0, zero = 0;
    for (uint32_t seed = 0; seed < 4000; seed++) {
        random_state = seed;
        int rows = 1 + (int)(seed % ROWS_MOST), columns = 1 + (int)(seed / 3 % COLUMNS_MOST);
        for (int i = 0; i < rows * columns; i++)
            a[i] = any() + (seed % 5 == 0 ? 1 : 0);
        for (int i = 0; i < rows; i++)
            b[i] = any();
        if (seed % 7 == 0)
            for (int i = 0; i < rows; i++) /* the last column is made up of the first */
                a[i * columns + columns - 1] = 2 * a[i * columns];
        assert_int_equal(plan_least_squares(x, a, b, rows, columns), SHOAL_OK);
        check_least(x, a, b, rows, columns);
        for (int j = 0; j < columns; j++) {
            positive += x[j] > 0;
            zero += x[j] == 0;
        }
    }
    assert_true(positive > 1000 && zero > 1000);
}

/* As times are made: constants from 1e-12 to 1e-2, found again from what they give, with a column that has no part in
 * it. */
static void test_scales(void **state)
{
    static const double truth[4] = {3e-10, 5e-12, 2e-3, 0};
    double a[20 * 4], b[20], x[4];
    (void)state;
    random_state = 1;
    for (int i = 0; i < 20; i++) {
        double rows = exp(10 + 4 * any()), columns = exp(4 + 2 * any());
        const double line[4] = {rows * columns, rows * columns * exp(2 * any()), 1, 1e6 * (2 + any())};
        b[i] = 0;
        for (int j = 0; j < 4; j++)
            b[i] += line[j] * truth[j];
        for (int j = 0; j < 4; j++)
            a[i * 4 + j] = line[j] / b[i];
    }
    for (int i = 0; i < 20; i++)
        b[i] = 1;
    assert_int_equal(plan_least_squares(x, a, b, 20, 4), SHOAL_OK);
    for (int j = 0; j < 3; j++)
        assert_true(fabs(x[j] / truth[j] - 1) < 1e-6);
    assert_true(x[3] < 1e-15);
}

static void test_nothing(void **state)
{
    const double zeros[6] = {0}, b[] = {1, 2, 3};
    double x[2] = {7, 7};
    (void)state;
    assert_int_equal(plan_least_squares(x, zeros, b, 3, 2), SHOAL_OK);
    assert_true(x[0] == 0 && x[1] == 0);
    assert_int_equal(plan_least_squares(x, (double[]){1, 2, 3, 4, 5, 6}, zeros, 3, 2), SHOAL_OK);
    assert_true(x[0] == 0 && x[1] == 0);
    assert_int_equal(plan_least_squares(x, zeros, b, 0, 2), SHOAL_OK);
    assert_true(x[0] == 0 && x[1] == 0);
    /* What is not finite ends, whatever it gives. */
    assert_int_equal(plan_least_squares(x, (double[]){NAN, 2, INFINITY, 4, 5, 6}, b, 3, 2), SHOAL_OK);
    assert_int_equal(plan_least_squares(x, (double[]){1, 2, 3, 4, 5, 6}, (double[]){1, NAN, 2}, 3, 2), SHOAL_OK);
}

static void test_memory(void **state)
{
    double x[2];
    (void)state;
    int status = SHOAL_MEMORY;
    for (int n = 0; status != SHOAL_OK; n++) {
        assert_true(n < 20);
        base_memory_fail_after(n);
        status = plan_least_squares(x, (double[]){1, 2, 3, 4}, (double[]){1, 2}, 2, 2);
        base_memory_fail_after(-1);
        assert_true(status == SHOAL_OK || status == SHOAL_MEMORY);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known),   cmocka_unit_test(test_random), cmocka_unit_test(test_scales),
        cmocka_unit_test(test_nothing), cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
