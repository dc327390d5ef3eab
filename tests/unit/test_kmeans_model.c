/* k-means' models: the same bytes whatever memory held before, since engines compare and hash them; and finding
 * copies of centres. */
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <shoal/engine.h>
#include <shoal/kmeans.h>

#include "base/random.h"
#include "learn/kmeans/kmeans_internal.h"

/* ---- the bytes of models ----------------------------------------------------------------------------------------- */

/* All that rounds of the last run had, mixed. */
static uint64_t seen;
static int64_t rounds, phases, wide;

static void look(void *context, const shoal_round *done, const shoal_round *next, int64_t rows, double seconds)
{
    (void)context, (void)rows, (void)seconds;
    const unsigned char *bytes = done->model;
    for (size_t i = 0; i < done->model_bytes; i++)
        seen = (seen ^ bytes[i]) * UINT64_C(0x100000001B3);
    rounds++;
    phases |= INT64_C(1) << ((const kmeans_model *)done->model)->phase;
    wide = ((const kmeans_model *)done->model)->wide;
    (void)next;
}

/* Every byte that malloc hands out is `perturb`, inverted, and every one that is freed becomes it. */
static uint64_t models_of(int perturb, shoal_data *data, const double *weights, const shoal_kmeans_config *config)
{
    shoal_run_options options = {.threads = 1, .progress = look};
    shoal_result *result = NULL;
    seen = UINT64_C(0xCBF29CE484222325);
    rounds = phases = 0;
    mallopt(M_PERTURB, perturb);
    assert_int_equal(shoal_run(&result, NULL, &shoal_kmeans, config, data, weights, &options), SHOAL_OK);
    shoal_result_free(&result);
    mallopt(M_PERTURB, 0);
    return seen;
}

static uint64_t models_with(int perturb, const char *url, const shoal_kmeans_config *config)
{
    shoal_data *data = NULL;
    assert_int_equal(shoal_data_open(&data, url, NULL), SHOAL_OK);
    uint64_t found = models_of(perturb, data, NULL, config);
    shoal_data_free(&data);
    return found;
}

static void test_memory_shows_nowhere(void **state)
{
    static const char *const init[] = {"random", "kmeans++", "parallel"};
    static const int64_t columns[] = {1, 3, 8, 13};
    int64_t all = 0;
    (void)state;
    for (int i = 0; i < 3; i++)
        for (int c = 0; c < 4; c++)
            for (int empty = SHOAL_EMPTY_FARTHEST; empty <= SHOAL_EMPTY_SPLIT; empty++) {
                char url[100];
                shoal_kmeans_config config = {0};
                assert_int_equal(shoal_options_default(&config, shoal_kmeans.options), SHOAL_OK);
                config.k = 11 + c;
                config.init = init[i];
                config.iterations = 6;
                config.tolerance = 0;
                config.runs = 1 + c % 2;
                config.empty = empty;
                snprintf(url, sizeof url, "gen:uniform?rows=300&cols=%d&seed=%d", (int)columns[c], i);
                uint64_t zeros = models_with(0xFF, url, &config), others = models_with(0x5A, url, &config);
                assert_true(rounds > 6);
                assert_true(zeros == others);
                all |= phases;
            }
    /* Those through which models go most: it tested something. */
    assert_true(all & INT64_C(1) << KMEANS_LLOYD && all & INT64_C(1) << KMEANS_LABEL &&
                all & INT64_C(1) << KMEANS_SAMPLE && all & INT64_C(1) << KMEANS_JUDGE);
}

static void expect_same_models(const float *values, int64_t count, int64_t columns, const double *weights,
                               const shoal_kmeans_config *config)
{
    shoal_data *data = NULL;
    assert_int_equal(shoal_data_wrap(&data, values, count, columns, SHOAL_FLOAT32), SHOAL_OK);
    uint64_t zeros = models_of(0xFF, data, weights, config);
    assert_true(zeros == models_of(0x5A, data, weights, config));
    shoal_data_free(&data);
}

/* Rows that are there many times leave clusters empty. */
static void test_memory_shows_nowhere_when_clusters_are_empty(void **state)
{
    enum { ROWS = 300, COLUMNS = 3 };
    static float values[ROWS * COLUMNS];
    static double weights[ROWS];
    (void)state;
    for (int i = 0; i < ROWS * COLUMNS; i++)
        values[i] = (float)base_random_below(3, 5, BASE_FOR_DATA, 0, (uint32_t)i);
    for (int i = 0; i < ROWS; i++)
        weights[i] = i % 4;
    for (int i = 0; i < 6; i++) {
        shoal_kmeans_config config = {0};
        assert_int_equal(shoal_options_default(&config, shoal_kmeans.options), SHOAL_OK);
        config.k = 13;
        config.init = "random";
        config.tolerance = 0;
        config.empty = i / 2;
        expect_same_models(values, ROWS, COLUMNS, i % 2 ? weights : NULL, &config);
        if (config.empty == SHOAL_EMPTY_FARTHEST)
            assert_true(phases & INT64_C(1) << KMEANS_RELOCATE);
    }
}

/* Outliers on both sides of very many rows make a column wide. */
static void test_memory_shows_nowhere_with_wide_columns(void **state)
{
    enum { ROWS = 1 << 20 };
    float *values = calloc(ROWS, sizeof *values);
    shoal_kmeans_config config = {0};
    (void)state;
    assert_non_null(values);
    for (int i = 0; i < ROWS; i++)
        values[i] = (float)(i % 3);
    values[0] = 0x1p60F;
    values[1] = -0x1p60F;
    assert_int_equal(shoal_options_default(&config, shoal_kmeans.options), SHOAL_OK);
    config.k = 3;
    config.init = "random";
    config.iterations = 2;
    expect_same_models(values, ROWS, 1, NULL, &config);
    assert_int_equal(wide, 1);
    free(values);
}

/* ---- copies ------------------------------------------------------------------------------------------------------ */

enum { CENTRES_MOST = 90, COLUMNS_MOST = 20 };

static int each_here(const shoal_crew *crew, int64_t items, int (*task)(void *, int64_t, int), void *context)
{
    int status = SHOAL_OK;
    (void)crew;
    for (int64_t i = items - 1; status == SHOAL_OK && i >= 0; i--)
        status = task(context, i, 0);
    return status;
}

static void check_copies(const double *centres, int64_t count, int64_t columns)
{
    const shoal_crew crew = {.each = each_here, .threads = 1};
    int32_t copy[CENTRES_MOST], again[CENTRES_MOST];
    uint64_t hash[CENTRES_MOST];
    size_t bytes = (size_t)columns * sizeof *centres;
    assert_int_equal(kmeans_hash_and_find_copies(copy, centres, count, columns, &crew), SHOAL_OK);
    /* Equal hashes of different centres must do no harm. */
    for (int64_t j = 0; j < count; j++)
        hash[j] = UINT64_MAX - (uint64_t)(centres[j * columns] > 0);
    assert_int_equal(kmeans_find_copies(again, centres, hash, count, columns), SHOAL_OK);
    for (int64_t j = 0; j < count; j++) {
        int64_t first = 0;
        while (memcmp(centres + first * columns, centres + j * columns, bytes) != 0)
            first++;
        assert_int_equal(copy[j], first);
        assert_int_equal(again[j], first);
    }
}

static void test_copies_are_found(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        int64_t count = 1 + (int64_t)base_random_below(CENTRES_MOST, seed, BASE_FOR_DATA, 0, 0);
        int64_t columns = 1 + (int64_t)base_random_below(COLUMNS_MOST, seed, BASE_FOR_DATA, 0, 1);
        uint64_t kinds = 1 + base_random_below(40, seed, BASE_FOR_DATA, 0, 2);
        double centres[CENTRES_MOST * COLUMNS_MOST] = {0};
        for (int64_t j = 0; j < count; j++) {
            uint64_t kind = base_random_below(kinds, seed, BASE_FOR_DATA, 1, (uint32_t)j);
            /* Rows of one kind are equal; two kinds may differ in a single column, or in the sign of a zero. */
            centres[j * columns + (int64_t)(kind % (uint64_t)columns)] = (double)(kind / 2);
            if (kind == 1)
                centres[j * columns + columns - 1] = -0.0;
        }
        check_copies(centres, count, columns);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_memory_shows_nowhere),
                                       cmocka_unit_test(test_memory_shows_nowhere_when_clusters_are_empty),
                                       cmocka_unit_test(test_memory_shows_nowhere_with_wide_columns),
                                       cmocka_unit_test(test_copies_are_found)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
