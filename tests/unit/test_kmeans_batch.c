/* Labels: threads
 * Mini-batch k-means: on any number of threads and ranks the same centres. */
#include <math.h>

#include "ranks_support.h"

#include "data/data_internal.h"

static shoal_kmeans_config batches_of(int64_t k, int64_t batch)
{
    shoal_kmeans_config config = {0};
    assert_int_equal(shoal_options_default(&config, shoal_kmeans.options), SHOAL_OK);
    config.k = k;
    config.batch = batch;
    config.iterations = 4;
    return config;
}

/* Whole numbers around as many centres, in any type. */
static shoal_data *make_rows(void **values, shoal_type type, int64_t rows, int64_t columns)
{
    shoal_data *data = NULL;
    *values = calloc((size_t)(rows * columns), shoal_type_size(type));
    for (int64_t i = 0; i < rows * columns; i++) {
        const double unit = base_random_unit(6, BASE_FOR_DATA, (uint64_t)i, 0);
        const double value = (double)(i / columns % 6 * (i % columns + 3)) + 9 * unit;
        if (type == SHOAL_FLOAT64)
            ((double *)*values)[i] = value;
        else if (type == SHOAL_FLOAT32)
            ((float *)*values)[i] = (float)value;
        else
            ((uint8_t *)*values)[i] = (uint8_t)fmin(value, 255);
    }
    assert_int_equal(shoal_data_wrap(&data, *values, rows, columns, type), SHOAL_OK);
    return data;
}

static void expect_everywhere(const shoal_kmeans_config *config, shoal_type type, int64_t rows, int64_t columns,
                              int64_t grain, bool weighted)
{
    void *values = NULL;
    shoal_data *data = make_rows(&values, type, rows, columns);
    double *weights = weighted ? make_weights(rows) : NULL;
    scene at = {.algorithm = &shoal_kmeans,
                .config = config,
                .data = data,
                .weights = weights,
                .options = {.rows_per_grain = grain}};
    expect_same_everywhere(&at, NULL);
    shoal_data_free(&data);
    free(values);
    free(weights);
}

static void test_the_same_everywhere(void **state)
{
    (void)state;
    shoal_kmeans_config config = batches_of(6, 50);
    expect_everywhere(&config, SHOAL_FLOAT64, 613, 4, 20, false);
    expect_everywhere(&config, SHOAL_FLOAT32, 613, 40, 17, true);
    config.runs = 3;
    config.reassignment_ratio = 0.5;
    expect_everywhere(&config, SHOAL_UINT8, 400, 40, 20, true);
    config = batches_of(40, 30); /* more clusters than a batch has rows */
    config.metric = SHOAL_METRIC_COSINE;
    expect_everywhere(&config, SHOAL_FLOAT32, 500, 9, 20, false);
    config = batches_of(3, 1000); /* one batch of all */
    config.init = "random";
    expect_everywhere(&config, SHOAL_FLOAT64, 100, 3, 10, true);
    config = batches_of(1, 1);
    expect_everywhere(&config, SHOAL_FLOAT64, 1, 3, 10, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_the_same_everywhere)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
