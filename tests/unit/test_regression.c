/* Correlation, least squares and Student's t beside tables, beside the certified values of NIST's Longley data
 * (Statistical Reference Datasets), and beside data whose line everybody knows. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <shoal/error.h>

#include "base/memory.h"
#include "base/regression.h"

static void near(double value, double expected, double share)
{
    if (!(fabs(value - expected) <= share * fabs(expected)))
        fail_msg("%.17g is not %.17g", value, expected);
}

/* ---- Student's t ------------------------------------------------------------------------------------------------- */

/* With one degree of freedom it is Cauchy's, and with two it has a closed form as well. */
static void test_student_of_few(void **state)
{
    (void)state;
    for (double t = 0.001; t < 1e6; t *= 3) {
        near(base_student_share(t, 1), 2 * atan(1 / t) / M_PI, 1e-12);
        near(base_student_share(-t, 2), 1 - t / sqrt(2 + t * t), t < 100 ? 1e-11 : 1e-3 /* the form cancels */);
    }
    assert_true(base_student_share(0, 7) == 1);
    assert_true(base_student_share(INFINITY, 7) == 0);
    assert_true(isnan(base_student_share(NAN, 7)) && isnan(base_student_share(1, 0)));
}

/* What every table of the distribution has for 95% and 99%. */
static void test_student_of_tables(void **state)
{
    static const struct {
        double share, freedom, limit;
    } table[] = {{0.05, 1, 12.70620474},   {0.05, 2, 4.30265273},
                 {0.05, 5, 2.57058184},    {0.05, 10, 2.22813885},
                 {0.05, 30, 2.04227246},   {0.05, 100, 1.98397152},
                 {0.01, 10, 3.16927267},   {0.01, 30, 2.74999565},
                 {0.05, 1e4, 1.960201244}, {0.5, 1, 1}};
    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        near(base_student_limit(table[i].share, table[i].freedom), table[i].limit, 3e-9);
        near(base_student_share(table[i].limit, table[i].freedom), table[i].share, 3e-8);
    }
    assert_true(isnan(base_student_limit(0.05, 0)) && isnan(base_student_limit(0, 3)));
}

/* ---- regressions ------------------------------------------------------------------------------------------------- */

/* Columns that are nearly made up of each other. */
static void test_longley(void **state)
{
    enum { ROWS = 16, COLUMNS = 6 };
    static const double y[ROWS] = {60323, 61122, 60171, 61187, 63221, 63639, 64989, 63761,
                                   66019, 67857, 68169, 66513, 68655, 69564, 69331, 70551};
    static const double x[ROWS][COLUMNS] = {
        {83.0, 234289, 2356, 1590, 107608, 1947},  {88.5, 259426, 2325, 1456, 108632, 1948},
        {88.2, 258054, 3682, 1616, 109773, 1949},  {89.5, 284599, 3351, 1650, 110929, 1950},
        {96.2, 328975, 2099, 3099, 112075, 1951},  {98.1, 346999, 1932, 3594, 113270, 1952},
        {99.0, 365385, 1870, 3547, 115094, 1953},  {100.0, 363112, 3578, 3350, 116219, 1954},
        {101.2, 397469, 2904, 3048, 117388, 1955}, {104.6, 419180, 2822, 2857, 118734, 1956},
        {108.4, 442769, 2936, 2798, 120445, 1957}, {110.8, 444546, 4681, 2637, 121950, 1958},
        {112.6, 482704, 3813, 2552, 123366, 1959}, {114.2, 502601, 3931, 2514, 125368, 1960},
        {115.7, 518173, 4806, 2572, 127852, 1961}, {116.9, 554894, 4007, 2827, 130081, 1962}};
    static const double values[] = {-3482258.63459582, 15.0618722713733,  -0.358191792925910E-01,
                                    -2.02022980381683, -1.03322686717359, -0.511041056535807E-01,
                                    1829.15146461355},
                        errors[] = {890420.383607373,  84.9149257747669,  0.334910077722432E-01, 0.488399681651699,
                                    0.214274163161675, 0.226073200069370, 455.478499142212};
    base_regression found;
    (void)state;
    assert_int_equal(base_regress(&found, &x[0][0], COLUMNS, y, ROWS), SHOAL_OK);
    assert_true(found.known);
    assert_int_equal(found.freedom, ROWS - COLUMNS - 1);
    near(found.r2, 0.995479004577296, 1e-12);
    for (int i = 0; i <= COLUMNS; i++) {
        near(found.of[i].value, values[i], 1e-9);
        near(found.of[i].error, errors[i], 1e-9);
        near(found.of[i].high, values[i] + 2.2621571628 * errors[i], 1e-8); /* t of 9 */
        near(found.of[i].low, values[i] - 2.2621571628 * errors[i], 1e-8);
    }
}

/* Anscombe's first set: y = 3 + 0.5 x. */
static void test_anscombe(void **state)
{
    static const double x[] = {10, 8, 13, 9, 11, 14, 6, 4, 12, 7, 5},
                        y[] = {8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26, 10.84, 4.82, 5.68};
    base_regression line;
    (void)state;
    assert_int_equal(base_regress(&line, x, 1, y, 11), SHOAL_OK);
    near(line.of[0].value, 3.0000909090909, 1e-12);
    near(line.of[1].value, 0.5000909090909, 1e-12);
    near(line.of[1].error, 0.1179055, 1e-6);
    near(line.of[1].p, 0.00217, 1e-3);
    near(line.r2, 0.6665425, 1e-6);
    const base_estimate r = base_correlate(x, y, 11);
    near(r.value, 0.8164205, 1e-6);
    near(r.value * r.value, line.r2, 1e-12);
    near(r.p, line.of[1].p, 1e-9);
    near(r.low, tanh(atanh(0.81642051634484) - 1.959963984540054 / sqrt(8)), 1e-9);
    near(r.high, tanh(atanh(0.81642051634484) + 1.959963984540054 / sqrt(8)), 1e-9);
}

/* ---- what can't be told ------------------------------------------------------------------------------------------ */

static void test_what_is_not_known(void **state)
{
    static const double constant[] = {3, 3, 3, 3}, up[] = {1, 2, 3, 4}, y[] = {2, 4, 6, 8.5};
    static const double twice[] = {1, 2, 2, 4, 3, 6, 4, 8}, far[] = {1e9, 1e9 + 1, 1e9 + 2, 1e9 + 3};
    base_regression found;
    (void)state;
    assert_int_equal(base_regress(&found, constant, 1, y, 4), SHOAL_OK);
    assert_false(found.known);
    assert_true(isnan(found.of[0].value) && isnan(found.of[1].value) && isnan(found.r2));
    assert_int_equal(base_regress(&found, twice, 2, y, 4), SHOAL_OK);
    assert_false(found.known);
    assert_int_equal(base_regress(&found, up, 1, y, 1), SHOAL_OK);
    assert_false(found.known);
    assert_int_equal(base_regress(&found, up, 1, y, 2), SHOAL_OK); /* a line through two points has no error */
    assert_true(found.known && isnan(found.of[1].low) && isnan(found.of[1].p));
    near(found.of[1].value, 2, 1e-12);
    assert_int_equal(base_regress(&found, up, 1, constant, 4), SHOAL_OK);
    assert_true(found.known && found.of[0].value == 3 && found.of[1].value == 0 && isnan(found.r2));
    assert_int_equal(base_regress(&found, far, 1, up, 4), SHOAL_OK); /* hardly changes, but does */
    assert_true(found.known);
    near(found.of[1].value, 1, 1e-12);
    assert_true(isnan(base_correlate(constant, y, 4).value));
    assert_true(isnan(base_correlate(up, y, 3).low) && isfinite(base_correlate(up, y, 3).p));
    assert_true(base_correlate(up, up, 4).value == 1 && base_correlate(up, up, 4).p == 0);
}

static void test_memory_that_there_is_not(void **state)
{
    static const double x[] = {1, 2, 3}, y[] = {2, 4, 7};
    base_regression found;
    int status = SHOAL_MEMORY;
    (void)state;
    for (int n = 0; n < 10 && status == SHOAL_MEMORY; n++) {
        base_memory_fail_after(n);
        status = base_regress(&found, x, 1, y, 3);
        base_memory_fail_after(-1);
        assert_true(status == SHOAL_MEMORY || n > 0);
    }
    assert_int_equal(status, SHOAL_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_student_of_few),    cmocka_unit_test(test_student_of_tables),
        cmocka_unit_test(test_longley),           cmocka_unit_test(test_anscombe),
        cmocka_unit_test(test_what_is_not_known), cmocka_unit_test(test_memory_that_there_is_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
