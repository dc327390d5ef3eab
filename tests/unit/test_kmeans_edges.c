/* Labels: threads
 * k-means where it is easily wrong: callers that round otherwise, values of very different sizes, clusters that stay
 * empty. */
#include <fenv.h>

#include "kmeans_support.h"

static shoal_result *cluster(const void *values, shoal_type type, int64_t rows, int64_t columns,
                             const shoal_kmeans_config *config)
{
    shoal_data *data = NULL;
    shoal_result *result = NULL;
    hand_check(shoal_data_wrap(&data, values, rows, columns, type));
    int status = shoal_run(&result, NULL, &shoal_kmeans, config, data, NULL, &(shoal_run_options){.threads = 2});
    shoal_data_free(&data);
    if (status < 0)
        fesetround(FE_TONEAREST);
    hand_check(status);
    return result;
}

/* The caller's rounding mode is its own affair: no bit of a result depends on it. */
static void test_rounding_mode_of_the_caller(void **state)
{
    (void)state;
    enum { ROWS = 600, K = 20 };
    static const int modes[] = {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    static const char *const init[] = {"kmeans++", "parallel", "random"};
    for (int64_t columns = 3; columns <= 40; columns += 37)
        for (int i = 0; i < 3; i++)
            for (int empty = 0; empty < 3; empty++) {
                float *values = make_values(DATA_BLOBS, SHOAL_FLOAT32, ROWS, columns, 1, 4);
                shoal_kmeans_config config = {.k = K, .init = init[i], .iterations = 6, .runs = 2, .empty = empty};
                shoal_result *expected = cluster(values, SHOAL_FLOAT32, ROWS, columns, &config);
                for (int m = 0; m < 3; m++) {
                    fesetround(modes[m]);
                    shoal_result *result = cluster(values, SHOAL_FLOAT32, ROWS, columns, &config);
                    int mode = fegetround();
                    fesetround(FE_TONEAREST);
                    assert_int_equal(mode, modes[m]);
                    expect_same_results(result, expected);
                    shoal_result_free(&result);
                }
                shoal_result_free(&expected);
                free(values);
            }
}

/* An empty cluster that keeps a centre far away does not take the objective's digits with it. */
static void test_far_empty_centre(void **state)
{
    (void)state;
    enum { ROWS = 200, K = 5 };
    static const double far[] = {1e3, 1e10, 1e25, 1e60, 1e150, 1e300};
    for (int64_t columns = 3; columns <= 40; columns += 37) {
        float *values = make_values(DATA_BLOBS, SHOAL_FLOAT32, ROWS, columns, 1, 4);
        double *start = malloc((size_t)(K * columns) * sizeof *start);
        for (size_t f = 0; f < sizeof far / sizeof *far; f++) {
            shoal_convert_float64(start, values, SHOAL_FLOAT32, K * columns);
            for (int64_t c = 0; c < columns; c++)
                start[columns + c] = far[f];
            shoal_kmeans_config config = {
                .k = K, .init = "file", .start = start, .iterations = 5, .runs = 1, .empty = SHOAL_EMPTY_KEEP};
            shoal_result *result = cluster(values, SHOAL_FLOAT32, ROWS, columns, &config);
            const double *centres = shoal_result_tensor(result, "centres")->values;
            const int32_t *labels = shoal_result_tensor(result, "labels")->values;
            double objective = 0;
            for (int64_t i = 0; i < ROWS; i++)
                for (int64_t c = 0; c < columns; c++)
                    objective += pow(values[i * columns + c] - centres[labels[i] * columns + c], 2);
            double told = shoal_result_number(result, "objective");
            if (!(fabs(told - objective) <= 1e-9 * objective))
                fail_msg("an empty centre at %g: objective %.12g instead of %.12g", far[f], told, objective);
            shoal_result_free(&result);
        }
        free(start);
        free(values);
    }
}

/* One row far outside leaves the others as different as they were. */
static void test_outlier_while_seeding(void **state)
{
    (void)state;
    enum { ROWS = 300, COLUMNS = 3, K = 6 };
    static const char *const init[] = {"kmeans++", "parallel", "random"};
    static const double far[] = {1e3, 1e9, 1e15, 1e100};
    for (int i = 0; i < 3; i++)
        for (size_t f = 0; f < sizeof far / sizeof *far; f++) {
            double *values = make_values(DATA_UNIFORM, SHOAL_FLOAT64, ROWS, COLUMNS, 1, 4);
            values[5 * COLUMNS] = far[f];
            shoal_kmeans_config config = {.k = K, .init = init[i], .iterations = 5, .runs = 1};
            shoal_result *result = cluster(values, SHOAL_FLOAT64, ROWS, COLUMNS, &config);
            shoal_result_free(&result);
            free(values);
        }
}

/* Three clusters of one row each lie farther from their centres than any other row; still the empty one gets a row,
 * since a cluster's last row is passed over and the next is taken. */
static void test_relocation_passes_over_last_rows(void **state)
{
    (void)state;
    static const double values[] = {100, 200, 300, 400, 0, 0.5, 1};
    static const double start[] = {90, 190, 290, 390, 0, 5000};
    shoal_kmeans_config config = {
        .k = 6, .init = "file", .start = start, .iterations = 10, .runs = 1, .empty = SHOAL_EMPTY_FARTHEST};
    for (int64_t iterations = 1; iterations <= 3; iterations++) {
        config.iterations = iterations;
        shoal_result *result = cluster(values, SHOAL_FLOAT64, 7, 1, &config);
        assert_true(shoal_result_number(result, "empty_clusters") == 0);
        shoal_result_free(&result);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rounding_mode_of_the_caller), cmocka_unit_test(test_far_empty_centre),
        cmocka_unit_test(test_outlier_while_seeding), cmocka_unit_test(test_relocation_passes_over_last_rows)};
    return cmocka_run_group_tests_name("kmeans_edges", tests, NULL, NULL);
}
