/* Naive Bayes below the command line: means and variances against a plain computation, the same bits for all grains and
 * types, sums at the ends of what doubles hold, and what is refused.  Against scikit-learn it is compared by
 * tests/system/test_bayes.py.  Labels: threads */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include <shoal/engine.h>

#include "base/memory.h"
#include "base/random.h"
#include "learn/bayes/bayes_internal.h"
#include "learn/check.h"
#include "learn/partial.h"

enum { ROWS = 600, COLUMNS = 5, FEATURES = COLUMNS - 1, CLASSES = 3 };

static double values[ROWS * COLUMNS], weights[ROWS];

/* A number between -1 and 1. */
static double any(uint64_t index)
{
    return 2 * base_random_unit(1, BASE_FOR_DATA, index, 0) - 1;
}

/* Columns of different size; one lies so far from 0 that squares of its values say nothing of its variance.  Labels are
 * not numbers from 0. */
static void make_rows(int64_t target)
{
    for (int64_t i = 0; i < ROWS; i++) {
        int class = (int)(i * 7 % CLASSES);
        for (int64_t k = 0; k < COLUMNS; k++)
            values[i * COLUMNS + k] =
                k == target ? 2.5 * class - 3
                            : (k % 2 ? 1e9 : 1) * (1 + class) + ldexp(any((uint64_t)(i * COLUMNS + k)), (int)(3 * k));
        weights[i] = (double)(i % 4) / 4;
    }
}

static bayes_config usual(void)
{
    bayes_config config = {0};
    assert_int_equal(shoal_options_default(&config, bayes_algorithm.options), SHOAL_OK);
    return config;
}

static shoal_result *learn_type(const void *rows, int64_t count, int64_t columns, shoal_type type,
                                const double *row_weights, const bayes_config *config, int64_t grain, int threads,
                                int expected)
{
    shoal_data *data = NULL;
    shoal_result *result = NULL;
    assert_int_equal(shoal_data_wrap(&data, rows, count, columns, type), SHOAL_OK);
    int status = shoal_run(&result, NULL, &bayes_algorithm, config, data, row_weights,
                           &(shoal_run_options){.threads = threads, .rows_per_grain = grain});
    if (status != expected)
        fail_msg("status %d instead of %d: %s", status, expected, status < 0 ? shoal_error() : "");
    shoal_data_free(&data);
    return result;
}

static shoal_result *learn(const double *rows, int64_t count, int64_t columns, const double *row_weights,
                           const bayes_config *config)
{
    return learn_type(rows, count, columns, SHOAL_FLOAT64, row_weights, config, 50, 1, SHOAL_OK);
}

static const double *tensor(const shoal_result *result, const char *name)
{
    return shoal_result_tensor(result, name)->values;
}

/* ---- the definition ---------------------------------------------------------------------------------------------- */

static void expect_near(const char *what, double found, long double defined)
{
    if (!(fabsl(found - defined) <= 1e-14L * fabsl(defined)))
        fail_msg("%s is %.17g, but %.17Lg by its definition", what, found, defined);
}

/* One class and column, in long double. */
static void expect_moments(const shoal_result *result, int class, int64_t column, int64_t feature, int64_t target,
                           bool weighted)
{
    long double sum = 0, weight = 0, squares = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int64_t i = 0; i < ROWS; i++) {
            long double w = weighted ? weights[i] : 1, x = values[i * COLUMNS + column];
            if (values[i * COLUMNS + target] != 2.5 * class - 3)
                continue;
            if (pass == 0)
                sum += w * x, weight += w;
            else
                squares += w * (x - sum / weight) * (x - sum / weight);
        }
    expect_near("a count", tensor(result, "counts")[class], weight);
    expect_near("a mean", tensor(result, "means")[class * FEATURES + feature], sum / weight);
    /* What is wrong with the rounded mean counts, too, by its square. */
    long double variance = squares / weight, mean_error = fabsl(sum / weight) * 0x1p-52L;
    double found = tensor(result, "variances")[class * FEATURES + feature];
    if (!(fabsl(found - variance) <= 1e-14L * variance + mean_error * mean_error))
        fail_msg("the variance of class %d, column %lld is %.17g, but %.17Lg by its definition", class,
                 (long long)column, found, variance);
}

static void test_moments(void **state)
{
    bayes_config config = usual();
    (void)state;
    config.smoothing = 0;
    for (int64_t target = 0; target < COLUMNS; target += 2)
        for (int weighted = 0; weighted < 2; weighted++) {
            make_rows(target);
            config.target = target + 1;
            shoal_result *result = learn(values, ROWS, COLUMNS, weighted ? weights : NULL, &config);
            assert_int_equal(shoal_result_tensor(result, "means")->shape[0], CLASSES);
            assert_int_equal(shoal_result_tensor(result, "means")->shape[1], FEATURES);
            for (int c = 0; c < CLASSES; c++) {
                assert_true(tensor(result, "classes")[c] == 2.5 * c - 3);
                for (int64_t k = 0; k < COLUMNS; k++)
                    if (k != target)
                        expect_moments(result, c, k, k < target ? k : k - 1, target, weighted);
            }
            shoal_result_free(&result);
        }
}

/* The greatest variance of a column over all rows, times --smoothing. */
static void test_smoothing(void **state)
{
    bayes_config config = usual();
    double greatest = 0;
    (void)state;
    make_rows(COLUMNS - 1);
    for (int64_t k = 0; k < FEATURES; k++) {
        long double mean = 0, squares = 0;
        for (int64_t i = 0; i < ROWS; i++)
            mean += values[i * COLUMNS + k] / (long double)ROWS;
        for (int64_t i = 0; i < ROWS; i++)
            squares += (values[i * COLUMNS + k] - mean) * (values[i * COLUMNS + k] - mean);
        greatest = fmax(greatest, (double)(squares / ROWS));
    }
    config.smoothing = 0;
    shoal_result *plain = learn(values, ROWS, COLUMNS, NULL, &config);
    config.smoothing = 0.25;
    shoal_result *smooth = learn(values, ROWS, COLUMNS, NULL, &config);
    double added = shoal_result_number(smooth, "smoothing");
    expect_near("the smoothing", added, 0.25L * greatest);
    assert_true(shoal_result_number(plain, "smoothing") == 0);
    for (int64_t i = 0; i < CLASSES * FEATURES; i++)
        assert_true(tensor(smooth, "variances")[i] == tensor(plain, "variances")[i] + added);
    assert_memory_equal(tensor(smooth, "means"), tensor(plain, "means"), CLASSES * FEATURES * sizeof(double));
    shoal_result_free(&plain);
    shoal_result_free(&smooth);
}

static void test_priors_and_likelihood(void **state)
{
    static const double rows[] = {1, 0, 3, 0, 2, 0, 6, 1, 8, 1};
    bayes_config config = usual();
    (void)state;
    config.smoothing = 0;
    for (config.priors = 0; config.priors < 2; config.priors++) {
        shoal_result *result = learn(rows, 5, 2, NULL, &config);
        double sum = 0;
        for (int c = 0; c < 2; c++)
            assert_true(tensor(result, "priors")[c] == (config.priors ? 0.5 : c ? 0.4 : 0.6));
        for (int i = 0; i < 5; i++) {
            int c = (int)rows[2 * i + 1];
            double v = tensor(result, "variances")[c], d = rows[2 * i] - tensor(result, "means")[c];
            sum += log(tensor(result, "priors")[c]) - log(2 * acos(-1) * v) / 2 - d * d / (2 * v);
        }
        assert_true(fabs(shoal_result_number(result, "log_likelihood") - sum) < 1e-13 * fabs(sum));
        shoal_result_free(&result);
    }
}

/* ---- bits -------------------------------------------------------------------------------------------------------- */

static void expect_same(const shoal_result *a, const shoal_result *b)
{
    for (int i = 0; i < a->tensors; i++) {
        int64_t count = a->tensor[i].shape[0] * (a->tensor[i].rank > 1 ? a->tensor[i].shape[1] : 1);
        assert_memory_equal(a->tensor[i].values, b->tensor[i].values, (size_t)count * sizeof(double));
    }
    for (int i = 0; i < a->numbers; i++)
        assert_memory_equal(&a->number[i].value, &b->number[i].value, sizeof(double));
}

static void test_grains_and_threads_change_nothing(void **state)
{
    const bayes_config config = usual();
    (void)state;
    make_rows(COLUMNS - 1);
    for (int weighted = 0; weighted < 2; weighted++) {
        const double *with = weighted ? weights : NULL;
        shoal_result *one = learn(values, ROWS, COLUMNS, with, &config);
        for (int64_t grain = 1; grain <= ROWS; grain = grain * 7 + 3) {
            shoal_result *other = learn_type(values, ROWS, COLUMNS, SHOAL_FLOAT64, with, &config, grain, 3, SHOAL_OK);
            expect_same(one, other);
            shoal_result_free(&other);
        }
        shoal_result_free(&one);
    }
}

/* The same numbers of another type are the same rows; a weight of 0 is a row that is not there. */
static void test_types_and_weights(void **state)
{
    enum { COUNT = 60 };
    uint8_t bytes[COUNT * 2], fewer[COUNT * 2];
    double wide[COUNT * 2], row_weights[COUNT];
    int64_t kept = 0;
    const bayes_config config = usual();
    (void)state;
    for (int i = 0; i < COUNT; i++) {
        wide[2 * i] = bytes[2 * i] = (uint8_t)(i * 37 % 251);
        wide[2 * i + 1] = bytes[2 * i + 1] = (uint8_t)(i % 2);
        row_weights[i] = i % 5 != 0;
        if (row_weights[i])
            memcpy(fewer + 2 * kept++, bytes + 2 * i, 2);
    }
    shoal_result *a = learn(wide, COUNT, 2, NULL, &config),
                 *b = learn_type(bytes, COUNT, 2, SHOAL_UINT8, NULL, &config, 7, 1, SHOAL_OK);
    expect_same(a, b);
    shoal_result_free(&a);
    shoal_result_free(&b);
    a = learn(wide, COUNT, 2, row_weights, &config);
    b = learn_type(fewer, kept, 2, SHOAL_UINT8, NULL, &config, 7, 1, SHOAL_OK);
    expect_same(a, b);
    shoal_result_free(&a);
    shoal_result_free(&b);
}

/* Values at the ends of what doubles hold, and a class that is tiny beside another. */
static void test_sizes(void **state)
{
    bayes_config config = usual();
    (void)state;
    config.smoothing = 0;
    for (int exponent = -400; exponent <= 400; exponent += 100) {
        const double unit = ldexp(1, exponent), tiny = ldexp(1, exponent - 20);
        const double rows[] = {unit, 0, 3 * unit, 0, tiny, 1, 3 * tiny, 1, 5 * tiny, 1};
        shoal_result *result = learn(rows, 5, 2, NULL, &config);
        assert_true(tensor(result, "means")[0] == 2 * unit && tensor(result, "variances")[0] == unit * unit);
        assert_true(tensor(result, "means")[1] == 3 * tiny);
        expect_near("a small variance", tensor(result, "variances")[1], 8.0L / 3 * tiny * tiny);
        shoal_result_free(&result);
    }
    for (int64_t rows = 1; rows > 0 && rows <= INT64_C(1) << 40; rows *= 4) {
        const int bits = bayes_bits(rows);
        assert_true(bits >= 20 && bits <= 50 && (bits == 50 || ldexp((double)rows, bits) <= 0x1p62));
        for (double bound = 1e-320; bound < 1e300; bound *= 1e10) {
            double unit = bayes_unit(bound, bits);
            assert_true(bayes_unit_good(unit) && bound * unit < ldexp(1, bits));
        }
        assert_true(bayes_unit_good(bayes_unit(0, bits)));
    }
}

/* A column that is constant in a class has exactly that mean, and no variance, whatever the weights; rows of weight 0
 * are not there. */
static void test_constant_columns(void **state)
{
    const double rows[] = {0.1, 1, 0, 0.1, 2, 0, 0.1, 4, 0, 0.3, 5, 1, 0.3, 6, 1, -9, 7, 1, 9, 7, 1};
    const double row_weights[] = {0.1, 0.7, 0.3, 1e-3, 0.9, 0, 0};
    const bayes_config config = usual();
    (void)state;
    shoal_result *result = learn(rows, 7, 3, row_weights, &config);
    double added = shoal_result_number(result, "smoothing");
    assert_true(tensor(result, "means")[0] == 0.1 && tensor(result, "means")[2] == 0.3);
    assert_true(tensor(result, "variances")[0] == added && tensor(result, "variances")[2] == added && added > 0);
    shoal_result_free(&result);
}

/* ---- refusals ---------------------------------------------------------------------------------------------------- */

static void refuse(int expected, const char *sentence, const double *rows, int64_t count, int64_t columns,
                   const double *row_weights, bayes_config config)
{
    shoal_result *result = learn_type(rows, count, columns, SHOAL_FLOAT64, row_weights, &config, 0, 1, expected);
    assert_null(result);
    if (!strstr(shoal_error(), sentence))
        fail_msg("\"%s\" says nothing of \"%s\"", shoal_error(), sentence);
}

static void test_what_is_refused(void **state)
{
    const double good[] = {1, 0, 2, 0, 3, 1, 5, 1}, one[] = {1, 7, 2, 7}, bad[] = {1, 0, INFINITY, 1},
                 same[] = {1, 0, 1, 0, 3, 1, 5, 1}, constant[] = {4, 0, 4, 1}, great[] = {1e200, 0, -1e200, 0, 1, 1};
    const double greater[] = {1.5e308, 0, -1.5e308, 1}, none[] = {1, 1, 0, 0}, negative[] = {1, 1, -1, 1};
    bayes_config config = usual(), sharp = config, wrong = config, far = config, choice = config;
    (void)state;
    sharp.smoothing = 0;
    wrong.smoothing = -1;
    far.target = 3;
    choice.priors = 2;
    refuse(SHOAL_INVALID, "column 2, the target, is the same in every row", one, 2, 2, NULL, config);
    refuse(SHOAL_INVALID, "row 2, column 1 is infinite; naive Bayes needs finite numbers", bad, 2, 2, NULL, config);
    refuse(SHOAL_INVALID, "column 1 is 1 in every row with label 0", same, 4, 2, NULL, sharp);
    refuse(SHOAL_INVALID, "no column but the target varies", constant, 2, 2, NULL, config);
    refuse(SHOAL_INVALID, "column 1: its values are too great", great, 3, 2, NULL, config);
    refuse(SHOAL_INVALID, "column 1: its values are too great", greater, 2, 2, NULL, config);
    refuse(SHOAL_INVALID, "every row with label 1 has a weight of 0", good, 4, 2, none, config);
    refuse(SHOAL_INVALID, "the weight of row 3 is -1", good, 4, 2, negative, config);
    refuse(SHOAL_USAGE, "--smoothing must be finite and at least 0, not -1", good, 4, 2, NULL, wrong);
    refuse(SHOAL_USAGE, "--priors must be data or uniform", good, 4, 2, NULL, choice);
    refuse(SHOAL_USAGE, "--target: there is no column 3; the data has 2", good, 4, 2, NULL, far);
    refuse(SHOAL_INVALID, "naive Bayes needs rows with a target and at least one other column", good, 8, 1, NULL,
           config);
}

/* What a store can hold in place of the result. */
static void test_results_from_elsewhere(void **state)
{
    const double rows[] = {1, 0, 2, 0, 3, 1, 5, 1};
    const shoal_shape shape = {.rows = 4, .columns = 2, .type = SHOAL_FLOAT64, .rows_per_grain = 4, .grains = 1};
    const bayes_config config = usual();
    const char *const names[] = {"classes", "means", "variances", "priors", "counts"};
    shoal_round *first = NULL;
    (void)state;
    assert_int_equal(bayes_algorithm.start(&first, &config, &shape), SHOAL_OK);
    shoal_result *result = learn(rows, 4, 2, NULL, &config);
    assert_int_equal(learn_result_check(&bayes_algorithm, result, first, &shape), SHOAL_OK);
    for (int i = 0; i < 5; i++) {
        shoal_tensor *of = (shoal_tensor *)shoal_result_tensor(result, names[i]);
        double *value = of->values, was = value[1];
        value[1] = i == 0 ? value[0] : NAN;
        assert_int_equal(learn_result_check(&bayes_algorithm, result, first, &shape), SHOAL_BROKEN);
        value[1] = was;
        of->shape[0]--;
        assert_int_equal(learn_result_check(&bayes_algorithm, result, first, &shape), SHOAL_BROKEN);
        of->shape[0]++;
        of->type = SHOAL_INT64;
        assert_int_equal(learn_result_check(&bayes_algorithm, result, first, &shape), SHOAL_BROKEN);
        of->type = SHOAL_FLOAT64;
    }
    assert_int_equal(learn_result_check(&bayes_algorithm, result, first, &shape), SHOAL_OK);
    shoal_result_free(&result);
    shoal_round_free(&first);
}

static void test_a_stop_leaves_nothing(void **state)
{
    const double rows[] = {1, 0, 2, 0, 3, 1, 5, 1};
    const bayes_config config = usual();
    const volatile int stop = 1;
    shoal_data *data = NULL;
    shoal_result *result = NULL;
    (void)state;
    assert_int_equal(shoal_data_wrap(&data, rows, 4, 2, SHOAL_FLOAT64), SHOAL_OK);
    assert_int_equal(shoal_run(&result, NULL, &bayes_algorithm, &config, data, NULL,
                               &(shoal_run_options){.threads = 1, .stop = &stop}),
                     SHOAL_STOPPED);
    assert_null(result);
    shoal_data_free(&data);
}

/* ---- predictions ------------------------------------------------------------------------------------------------- */

static shoal_result *predict(const double *rows, int64_t count, bool probabilities, const char *kernel, int expected)
{
    static const double classes[] = {-1, 4, 9}, means[] = {0, 1e6, 3, 1e6 + 1, 0, 1e6},
                        variances[] = {1, 0.25, 2, 0.5, 1, 0.25}, priors[] = {0.5, 0.25, 0.25};
    const bayes_predict_config config = {.classes = classes,
                                         .means = means,
                                         .variances = variances,
                                         .priors = priors,
                                         .classes_count = 3,
                                         .columns = 2,
                                         .probabilities = probabilities};
    shoal_data *data = NULL;
    shoal_result *result = NULL;
    assert_int_equal(shoal_data_wrap(&data, rows, count, 2, SHOAL_FLOAT64), SHOAL_OK);
    assert_int_equal(shoal_run(&result, NULL, &bayes_predict_algorithm, &config, data, NULL,
                               &(shoal_run_options){.threads = 1, .kernel = kernel}),
                     expected);
    shoal_data_free(&data);
    return result;
}

static void test_prediction(void **state)
{
    static const double rows[] = {0, 1e6, 3, 1e6 + 1, 1.5, 1e6 + 0.5, 1e300, -1e300};
    (void)state;
    shoal_result *result = predict(rows, 4, true, NULL, SHOAL_OK),
                 *plain = predict(rows, 4, true, "portable", SHOAL_OK);
    const double *shares = tensor(result, "probabilities");
    assert_memory_equal(shares, tensor(plain, "probabilities"), 12 * sizeof(double));
    assert_true(tensor(result, "labels")[0] == -1 && tensor(result, "labels")[1] == 4);
    for (int i = 0; i < 3; i++) {
        double a = rows[2 * i], b = rows[2 * i + 1] - 1e6;
        double first = 0.5 / sqrt(0.25) * exp(-a * a / 2 - b * b * 2),
               second = 0.25 / sqrt(1) * exp(-(a - 3) * (a - 3) / 4 - (b - 1) * (b - 1)), third = first / 2,
               all = first + second + third;
        assert_true(fabs(shares[3 * i] - first / all) < 1e-14 && fabs(shares[3 * i + 1] - second / all) < 1e-14 &&
                    fabs(shares[3 * i + 2] - third / all) < 1e-14);
    }
    /* Too far from all: as far from each. */
    assert_true(tensor(result, "labels")[3] == -1);
    for (int c = 0; c < 3; c++)
        assert_true(fabs(shares[9 + c] - 1.0 / 3) < 1e-15);
    shoal_result_free(&result);
    shoal_result_free(&plain);
    const double bad[] = {0, 1e6, 0, NAN};
    predict(bad, 2, false, NULL, SHOAL_INVALID);
    assert_non_null(strstr(shoal_error(), "row 2, column 2 is not a number; naive Bayes needs finite numbers"));
}

/* The n-th allocation fails, for every n. */
static void test_out_of_memory(void **state)
{
    const double rows[] = {1, 0, 2, 0, 3, 1, 5, 1};
    const bayes_config config = usual();
    shoal_data *data = NULL;
    int status = SHOAL_MEMORY;
    (void)state;
    assert_int_equal(shoal_data_wrap(&data, rows, 4, 2, SHOAL_FLOAT64), SHOAL_OK);
    for (int64_t n = 0; status == SHOAL_MEMORY; n++) {
        shoal_result *result = NULL;
        assert_true(n < 10000);
        base_memory_fail_after(n);
        status = shoal_run(&result, NULL, &bayes_algorithm, &config, data, NULL, &(shoal_run_options){.threads = 1});
        base_memory_fail_after(-1);
        assert_true(status == SHOAL_OK ? result != NULL : result == NULL);
        shoal_result_free(&result);
    }
    assert_int_equal(status, SHOAL_OK);
    shoal_data_free(&data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_moments),
        cmocka_unit_test(test_smoothing),
        cmocka_unit_test(test_priors_and_likelihood),
        cmocka_unit_test(test_grains_and_threads_change_nothing),
        cmocka_unit_test(test_types_and_weights),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_constant_columns),
        cmocka_unit_test(test_what_is_refused),
        cmocka_unit_test(test_results_from_elsewhere),
        cmocka_unit_test(test_a_stop_leaves_nothing),
        cmocka_unit_test(test_prediction),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
