/* src/base/gaussian.c: means, deviations and likelihoods are those that scikit-learn's GaussianProcessRegressor
 * gives, the kernel that is found explains at least as well as its, places that are all the same or seen twice do no
 * harm, and running out of memory leaves all as it was. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include <shoal/error.h>

#include "../../bench/plan/kernel_fit.h"
#include "base/memory.h"

/* The first five are observed. */
static const double place[8][2] = {{-1, -0.5},    {-0.25, 1}, {0.5, 0.125}, {1, -1},
                                   {0.25, -0.75}, {0, 0},     {0.75, 0.5},  {-1, -0.5}};
static const double value[5] = {0.5, -0.25, 0.75, -1, 0.125};
static const base_kernel kernel = {.features = 2, .scale = {1.5, 0.6}, .signal = 0.7, .noise = 0.05, .constant = 2};

/* C(0.7**2) * Matern([1.5, 0.6], nu=2.5) + C(2**2), alpha=0.05**2, optimizer=None: predict(places 5 to 7,
 * return_std=True) and log_marginal_likelihood_value_, of scikit-learn 1.2. */
static const double expected_mean[3] = {0.7619585499120634, 0.3654836089171753, 0.4996084242169605};
static const double expected_deviation[3] = {0.2846278699556424, 0.41991831725281037, 0.04981557741216616};
static const double expected_likelihood = -6.838124823645748;

static void assert_near(double got, double expected, double tolerance)
{
    if (!(fabs(got - expected) <= tolerance))
        fail_msg("%.15g is not %.15g", got, expected);
}

static void see_all(base_gaussian *process, const base_kernel *with)
{
    assert_int_equal(base_gaussian_init(process, with, place[0], 8), SHOAL_OK);
    for (int64_t i = 0; i < 5; i++)
        assert_int_equal(base_gaussian_see(process, i), SHOAL_OK);
}

static void kernel_is_that_of_scikit_learn(void **state)
{
    (void)state;
    assert_near(base_kernel_value(&kernel, place[5], place[0]), 4.238142858699025, 1e-12);
    assert_near(base_kernel_value(&kernel, place[6], place[0]), 4.064508142061043, 1e-12);
    assert_near(base_kernel_value(&kernel, place[0], place[7]), 4.49, 1e-12);
}

static void predictions_are_those_of_scikit_learn(void **state)
{
    (void)state;
    base_gaussian process;
    double white[5];
    see_all(&process, &kernel);
    assert_near(base_gaussian_explain(&process, white, value), expected_likelihood, 1e-9);
    for (int i = 0; i < 3; i++) {
        assert_near(base_gaussian_mean(&process, white, 5 + i), expected_mean[i], 1e-9);
        assert_near(sqrt(process.variance[5 + i]), expected_deviation[i], 1e-9);
    }
    base_gaussian_release(&process);
}

static double wave(const double *at)
{
    return sin(2 * at[0]) + 0.3 * at[1] + 0.05 * cos(40 * at[0] + 17 * at[1]);
}

/* C(0.25) * Matern([1, 1], (0.01, 100), nu=2.5) + WhiteKernel(0.0025), n_restarts_optimizer=20 on these sixteen points
 * finds 0.9467 * Matern([1.343, 4.583]) + WhiteKernel(0.000322) with the log marginal likelihood 16.590608. */
static void the_kernel_that_is_found_explains_best(void **state)
{
    (void)state;
    const base_kernel_prior flat = {1, 0.5, 0.05, INFINITY, INFINITY, INFINITY};
    base_kernel_prior firm = {1, 0.5, 0.05, 1e-3, 1e-3, 1e-3};
    double at[16][2], seen[16], white[16], mean = 0;
    for (int i = 0; i < 16; i++) {
        at[i][0] = (i * 7 % 13) / 6.5 - 1;
        at[i][1] = (i * 5 % 11) / 5.5 - 1;
        mean += wave(at[i]) / 16;
    }
    for (int i = 0; i < 16; i++)
        seen[i] = wave(at[i]) - mean;
    base_kernel found = {.features = 2};
    assert_int_equal(base_kernel_fit(&found, &flat, at[0], seen, 16), SHOAL_OK);
    assert_near(found.scale[0], 1.343, 0.02);
    assert_near(found.scale[1], 4.583, 0.1);
    assert_near(found.signal * found.signal, 0.9467, 0.03);
    assert_near(found.noise * found.noise, 0.000322, 0.00001);
    base_gaussian process;
    assert_int_equal(base_gaussian_init(&process, &found, at[0], 16), SHOAL_OK);
    for (int64_t i = 0; i < 16; i++)
        assert_int_equal(base_gaussian_see(&process, i), SHOAL_OK);
    assert_near(base_gaussian_explain(&process, white, seen), 16.590608, 1e-3);
    base_gaussian_release(&process);
    /* Who is sure beforehand is not moved. */
    assert_int_equal(base_kernel_fit(&found, &firm, at[0], seen, 16), SHOAL_OK);
    assert_near(found.scale[0], 1, 0.01);
    assert_near(found.noise, 0.05, 0.001);
    assert_int_equal(base_kernel_fit(&found, &firm, NULL, NULL, 0), SHOAL_OK);
    assert_near(found.scale[0], 1, 1e-6);
}

static void what_is_all_the_same_does_no_harm(void **state)
{
    (void)state;
    const double same[12] = {0};
    double seen[6] = {1, 1, 1, 1, 1, 1}, white[6];
    for (int noisy = 0; noisy < 2; noisy++) {
        const base_kernel with = {.features = 2, .scale = {1, 1}, .signal = 1, .noise = noisy ? 0.1 : 0};
        base_gaussian process;
        assert_int_equal(base_gaussian_init(&process, &with, same, 6), SHOAL_OK);
        for (int64_t i = 0; i < 6; i++)
            assert_int_equal(base_gaussian_see(&process, i % 3), SHOAL_OK);
        assert_true(isfinite(base_gaussian_explain(&process, white, seen)));
        assert_near(base_gaussian_mean(&process, white, 5), 1, 0.01);
        assert_true(process.variance[5] >= 0 && process.variance[5] < 0.01);
        base_gaussian_release(&process);
    }
    base_kernel found = {.features = 2};
    const base_kernel_prior flat = {1, 0.5, 0.05, INFINITY, INFINITY, INFINITY};
    assert_int_equal(base_kernel_fit(&found, &flat, same, seen, 6), SHOAL_OK);
    assert_true(isfinite(found.scale[0]) && isfinite(found.signal) && found.noise > 0);
}

/* Row by row is the same as at once, beyond the room that there is at first. */
static void many_places_can_be_seen(void **state)
{
    (void)state;
    enum { MANY = 100 };
    double at[MANY], seen[MANY], white[MANY];
    for (int i = 0; i < MANY; i++) {
        at[i] = 2.0 * i / MANY - 1;
        seen[i] = sin(3 * at[i]);
    }
    const base_kernel with = {.features = 1, .scale = {0.5}, .signal = 1, .noise = 1e-3};
    base_gaussian process;
    assert_int_equal(base_gaussian_init(&process, &with, at, MANY), SHOAL_OK);
    for (int64_t i = 0; i < MANY; i += 2)
        assert_int_equal(base_gaussian_see(&process, i), SHOAL_OK);
    double even[MANY / 2];
    for (int i = 0; i < MANY / 2; i++)
        even[i] = seen[2 * i];
    base_gaussian_explain(&process, white, even);
    for (int i = 1; i < MANY - 1; i += 2)
        assert_near(base_gaussian_mean(&process, white, i), seen[i], 1e-3);
    base_gaussian_release(&process);
}

static void memory_that_runs_out_is_told(void **state)
{
    (void)state;
    int64_t n = 0;
    for (int status = SHOAL_MEMORY; status != SHOAL_OK; n++) {
        base_gaussian process;
        base_kernel found = {.features = 2};
        const base_kernel_prior flat = {1, 0.5, 0.05, INFINITY, INFINITY, INFINITY};
        base_memory_fail_after(n);
        status = base_gaussian_init(&process, &kernel, place[0], 8);
        for (int64_t i = 0; status == SHOAL_OK && i < 5; i++)
            status = base_gaussian_see(&process, i);
        if (status == SHOAL_OK)
            status = base_kernel_fit(&found, &flat, place[0], value, 5);
        base_memory_fail_after(-1);
        assert_true(status == SHOAL_OK || status == SHOAL_MEMORY);
        base_gaussian_release(&process);
    }
    assert_true(n > 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernel_is_that_of_scikit_learn),
        cmocka_unit_test(predictions_are_those_of_scikit_learn),
        cmocka_unit_test(the_kernel_that_is_found_explains_best),
        cmocka_unit_test(what_is_all_the_same_does_no_harm),
        cmocka_unit_test(many_places_can_be_seen),
        cmocka_unit_test(memory_that_runs_out_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
