/* The paper's model gives the paper's numbers; and ours, fitted to the paper's measured times, comes nearer to them. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "../../bench/paper_fit.h"

/* "Communication challenges in cloud k-means" and its supplement: 500,000 rows of 1,000 columns, 1,000 clusters, 10
 * iterations. */
static const shoal_paper experiment = {.rows = 500000,
                                       .columns = 1000,
                                       .clusters = 1000,
                                       .iterations = 10,
                                       .flops = 669e6,
                                       .read = 8e6,
                                       .dollars_per_hour = 0.1,
                                       .dollars_per_request = 1e-6};

static shoal_estimate estimate(const shoal_paper *paper, int64_t mappers)
{
    shoal_estimate out;
    assert_int_equal(shoal_paper_estimate(&out, paper, mappers), SHOAL_OK);
    return out;
}

static void test_efficiencies(void **state)
{
    static const double printed[PAPER_RUNS] = {0.63, 0.61, 0.60, 0.55, 0.53, 0.49, 0.48,
                                               0.47, 0.43, 0.41, 0.37, 0.36, 0.33, 0.32};
    (void)state;
    for (int i = 0; i < PAPER_RUNS; i++) {
        shoal_estimate found = estimate(&experiment, paper_times[i].mappers);
        if (fabs(found.efficiency - printed[i]) > 0.01)
            fail_msg("%lld mappers: efficiency %.4f, printed %.2f", (long long)paper_times[i].mappers, found.efficiency,
                     printed[i]);
        assert_true(found.units == (double)paper_times[i].mappers + ceil(sqrt((double)paper_times[i].mappers)) + 1);
    }
}

static void test_best_number(void **state)
{
    (void)state;
    assert_int_equal(lround(shoal_paper_best(&experiment)), 171);
    /* The poster: writing takes half as much again as reading, since P* = (3 N F / (B1 + B2 / 2))^(2/3). */
    shoal_paper poster = experiment;
    poster.write = 8e6;
    assert_true(fabs(shoal_paper_best(&poster) - pow(3 * 500000 / 669e6 / 1.5e-6, 2.0 / 3)) < 1e-9);
    assert_true(estimate(&poster, 100).reduce == 1.5 * estimate(&experiment, 100).reduce);
    /* The formula's P* is where the time is least, but for the rounding of the square root. */
    double least = INFINITY;
    for (int64_t p = 1; p < 1000; p++)
        least = fmin(least, estimate(&poster, p).seconds);
    assert_true(estimate(&poster, lround(shoal_paper_best(&poster))).seconds < 1.05 * least);
}

static void test_sequential_times(void **state)
{
    static const struct {
        double rows, printed;
    } runs[] = {{62500, 2798}, {125000, 5597}, {250000, 11194}, {500000, 22388}};
    (void)state;
    for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) {
        shoal_paper paper = experiment;
        paper.rows = runs[i].rows;
        /* Printed with 670 Mflop/s: 0.15% less than 669 gives. */
        assert_true(fabs(estimate(&paper, 95).sequential / runs[i].printed - 1) < 0.002);
        paper.flops = 670e6;
        assert_true(fabs(estimate(&paper, 95).sequential - runs[i].printed) < 1);
    }
}

static void test_prices(void **state)
{
    (void)state;
    /* By whole hours: less than 2 dollars with 10 workers, less than 20 with 175; what is used of them: about 4, "on
     * average". */
    shoal_paper hours = experiment;
    hours.billed = 3600;
    assert_true(estimate(&hours, 10).cost > 1.4 && estimate(&hours, 10).cost < 2);
    assert_true(estimate(&hours, 175).cost > 18 && estimate(&hours, 175).cost < 20);
    shoal_estimate used = estimate(&experiment, 175);
    assert_true(used.cost < 4);
    double machines = 190 * used.seconds / 3600 * 0.1;
    assert_true(fabs(used.cost - machines - used.request_price) < 1e-12);
    assert_true(used.request_price > 0 && used.request_price < 0.05);
}

static void test_refuses(void **state)
{
    shoal_estimate out;
    shoal_paper wrong = experiment;
    (void)state;
    wrong.rows = -5;
    assert_int_equal(shoal_paper_estimate(&out, &wrong, 10), SHOAL_USAGE);
    assert_non_null(strstr(shoal_error(), "--rows"));
    wrong = experiment;
    wrong.read = NAN;
    assert_int_equal(shoal_paper_estimate(&out, &wrong, 10), SHOAL_USAGE);
    assert_non_null(strstr(shoal_error(), "--bandwidth"));
    assert_int_equal(shoal_paper_estimate(&out, &experiment, 0), SHOAL_USAGE);
    assert_non_null(strstr(shoal_error(), "--workers"));
}

/* ---- ours -------------------------------------------------------------------------------------------------------- */

static double error_of_paper(void)
{
    double sum = 0;
    for (int i = 0; i < PAPER_RUNS; i++)
        sum += fabs(estimate(&experiment, paper_times[i].mappers).seconds / paper_times[i].seconds - 1) / PAPER_RUNS;
    return sum;
}

static void test_fit(void **state)
{
    plan_fit two, three;
    plan_fitted with_two, with_three;
    (void)state;
    assert_true(fabs(error_of_paper() - 0.193) < 0.001);
    assert_int_equal(paper_fit_run(&with_two, &two, false), SHOAL_OK);
    assert_true(with_two.mean_error < 0.05);
    assert_true(with_two.left_out < 0.05);
    assert_int_equal(paper_fit_run(&with_three, &three, true), SHOAL_OK);
    assert_true(with_three.mean_error < with_two.mean_error);
    assert_true(with_three.left_out < 0.05);
}

static void test_fit_refuses(void **state)
{
    static const plan_measured good[] = {{1, 5}, {2, 3}}, negative[] = {{1, 5}, {2, -1}};
    plan_fit fit;
    plan_fitted out;
    (void)state;
    assert_int_equal(paper_fit_run(&out, &fit, false), SHOAL_OK);
    fit.frees = 1;
    assert_int_equal(plan_fit_run(&out, &fit, good, 2), SHOAL_OK);
    assert_int_equal(plan_fit_run(&out, &fit, good, 1), SHOAL_USAGE);
    assert_int_equal(plan_fit_run(&out, &fit, negative, 2), SHOAL_USAGE);
    fit.pace.operation = 0;
    assert_int_equal(plan_fit_run(&out, &fit, good, 2), SHOAL_USAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_efficiencies),     cmocka_unit_test(test_best_number),
                                       cmocka_unit_test(test_sequential_times), cmocka_unit_test(test_prices),
                                       cmocka_unit_test(test_refuses),          cmocka_unit_test(test_fit),
                                       cmocka_unit_test(test_fit_refuses)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
