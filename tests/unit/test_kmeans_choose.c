/* Choosing a number of clusters: scores of small cases that can be computed by hand, the search for clusterings of a
 * sample, and several K of one run beside runs of each K alone. */
#include "kmeans_support.h"

#include "learn/kmeans/choose.h"
#include "learn/kmeans/score.h"
#include "learn/kmeans/search.h"

static int each_in_turn(const shoal_crew *self, int64_t items, int (*task)(void *context, int64_t item, int thread),
                        void *context)
{
    int status = SHOAL_OK;
    (void)self;
    for (int64_t i = 0; status == SHOAL_OK && i < items; i++)
        status = task(context, i, 0);
    return status;
}

static const shoal_crew crew = {.each = each_in_turn, .threads = 1, .kernel = "portable"};

static const kernel_set *portable(void)
{
    const kernel_set *kernel = NULL;
    hand_check(kernel_choose(&kernel, "portable"));
    return kernel;
}

/* ---- scores ------------------------------------------------------------------------------------------------------ */

/* Rows at 0, 1, 10, 12 and 40 on a line. */
static void test_silhouettes(void **state)
{
    static const double rows[] = {0, 1, 10, 12, 40};
    static const int32_t labels[] = {0, 0, 1, 1, 2, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 0, 0, 0, 0, 4};
    static const int64_t ks[] = {3, 1, 5, 6};
    const kmeans_points points = {rows, 5, 1, false};
    double scores[4];
    (void)state;
    hand_check(kmeans_silhouettes(scores, &points, labels, ks, 4, portable(), &crew));
    const double by_hand = ((11 - 1) / 11. + (10 - 1) / 10. + (9.5 - 2) / 9.5 + (11.5 - 2) / 11.5 + 0) / 5;
    assert_true(fabs(scores[0] - by_hand) < 1e-15);
    assert_true(isnan(scores[1])); /* one cluster */
    assert_true(isnan(scores[2])); /* as many as rows */
    const double inside[] = {23 / 3., 21 / 3., 21 / 3., 25 / 3.}, outside[] = {40, 39, 30, 28};
    double total = 0;
    for (int i = 0; i < 4; i++)
        total += (outside[i] - inside[i]) / outside[i];
    assert_true(fabs(scores[3] - total / 5) < 1e-15); /* labels 1, 2, 3 and 5 have no rows */
}

static void test_calinski_harabasz(void **state)
{
    (void)state;
    assert_true(kmeans_calinski_harabasz(90, 10, 10, 3) == 90. / 2 / (10. / 7));
    assert_true(kmeans_calinski_harabasz(90, 0, 10, 3) == 1);
    assert_true(isnan(kmeans_calinski_harabasz(0, 10, 10, 1)));
    assert_true(isnan(kmeans_calinski_harabasz(90, 10, 3, 3)));
}

static void test_rules(void **state)
{
    static const int64_t ks[] = {2, 3, 4, 5, 6};
    static const double bent[] = {100, 40, 20, 15, 10}, straight[] = {5, 4, 3, 2, 1}, flat[] = {1, 1, 1, 1, 1};
    static const double scores[] = {NAN, 1, 3, 3, 2}, none[] = {NAN, NAN};
    (void)state;
    assert_int_equal(kmeans_elbow(ks, bent, 5), 1);
    assert_int_equal(kmeans_elbow(ks, straight, 5), -1);
    assert_int_equal(kmeans_elbow(ks, flat, 5), -1);
    assert_int_equal(kmeans_elbow(ks, bent, 2), -1);
    assert_int_equal(kmeans_elbow(ks, bent, 1), -1);
    assert_int_equal(kmeans_greatest(scores, 5), 2);
    assert_int_equal(kmeans_greatest(none, 2), -1);
}

/* ---- the search -------------------------------------------------------------------------------------------------- */

enum { SEARCHED = 90 };

/* Rows of `groups` groups on a line, those of one group within 1, groups 100 apart. */
static void make_pairs(float *distance, double *weight, int groups)
{
    for (int i = 0; i < SEARCHED; i++) {
        weight[i] = 1 + i % 3;
        for (int j = 0; j < SEARCHED; j++) {
            double apart = 100. * (i % groups - j % groups) + (i / groups % 5 - j / groups % 5) / 4.;
            distance[i * SEARCHED + j] = (float)(apart * apart);
        }
    }
}

static void test_search_finds_groups(void **state)
{
    static float distance[SEARCHED * SEARCHED];
    static const int64_t ks[] = {1, 3, 6, 9, 80};
    double weight[SEARCHED];
    int32_t labels[5 * SEARCHED];
    (void)state;
    make_pairs(distance, weight, 6);
    const kmeans_search search = {distance, weight, SEARCHED, ks, 5, 1};
    hand_check(kmeans_search_run(labels, &search, &crew));
    for (int i = 0; i < SEARCHED; i++) {
        assert_int_equal(labels[i], 0);
        assert_int_equal(labels[2 * SEARCHED + i], labels[2 * SEARCHED + i % 6]);
        for (int j = 0; j < i && j < 6; j++)
            assert_true((labels[2 * SEARCHED + i] == labels[2 * SEARCHED + j]) == (i % 6 == j));
    }
    assert_int_equal(labels[4 * SEARCHED], -1); /* clusters of one row each are not looked for */
}

/* As many clusters as there are different rows, and no more. */
static void test_search_of_copies(void **state)
{
    static float distance[SEARCHED * SEARCHED];
    static const int64_t ks[] = {2, 3, 4};
    double weight[SEARCHED];
    int32_t labels[3 * SEARCHED];
    (void)state;
    for (int i = 0; i < SEARCHED; i++)
        for (int j = 0; j < SEARCHED; j++)
            distance[i * SEARCHED + j] = (float)((i % 3 - j % 3) * (i % 3 - j % 3));
    for (int i = 0; i < SEARCHED; i++)
        weight[i] = 1;
    const kmeans_search search = {distance, weight, SEARCHED, ks, 3, 1};
    hand_check(kmeans_search_run(labels, &search, &crew));
    assert_true(labels[0] >= 0 && labels[SEARCHED] >= 0);
    assert_int_equal(labels[2 * SEARCHED], -1);
}

/* ---- several K --------------------------------------------------------------------------------------------------- */

enum { ROWS = 1200, COLUMNS = 5 };

static shoal_result *run_with(const float *values, const double *weights, shoal_kmeans_config config)
{
    shoal_data *data = NULL;
    shoal_result *result = NULL;
    config.iterations = 300;
    config.tolerance = 1e-4;
    config.runs = 1;
    hand_check(shoal_data_wrap(&data, values, ROWS, COLUMNS, SHOAL_FLOAT32));
    hand_check(shoal_run(&result, NULL, &shoal_kmeans, &config, data, weights, &(shoal_run_options){.threads = 2}));
    shoal_data_free(&data);
    return result;
}

static double objective_of(const shoal_result *result, int64_t trial)
{
    return ((const double *)shoal_result_tensor(result, "objectives")->values)[trial];
}

/* With a start of their own, several K are the runs of each alone. */
static void test_as_alone(void **state)
{
    float *values = make_values(DATA_BLOBS, SHOAL_FLOAT32, ROWS, COLUMNS, 1, 4);
    shoal_result *all = run_with(values, NULL, (shoal_kmeans_config){.ks = "2..12", .init = "kmeans++", .choose = 1});
    (void)state;
    for (int64_t k = 2; k <= 12; k++) {
        shoal_result *alone = run_with(values, NULL, (shoal_kmeans_config){.k = k, .init = "kmeans++"});
        assert_true(objective_of(all, k - 2) == shoal_result_number(alone, "objective"));
        if ((double)k == shoal_result_number(all, "k")) {
            const shoal_tensor *centres = shoal_result_tensor(alone, "centres");
            assert_memory_equal(centres->values, shoal_result_tensor(all, "centres")->values,
                                (size_t)(k * COLUMNS) * sizeof(double));
            assert_memory_equal(shoal_result_tensor(alone, "labels")->values,
                                shoal_result_tensor(all, "labels")->values, ROWS * sizeof(int32_t));
        }
        shoal_result_free(&alone);
    }
    assert_true(shoal_result_number(all, "k") == shoal_result_number(all, "pick_calinski_harabasz"));
    shoal_result_free(&all);
    free(values);
}

/* Started from the sample, none is worse than alone by more than a hair, and the groups there are get found. */
static void test_no_worse(void **state)
{
    float *values = make_values(DATA_BLOBS, SHOAL_FLOAT32, ROWS, COLUMNS, 1, 4);
    double weights[ROWS];
    (void)state;
    for (int i = 0; i < ROWS; i++)
        weights[i] = i % 7 == 6 ? 0 : 1 + i % 3;
    for (int weighted = 0; weighted < 2; weighted++) {
        shoal_result *all = run_with(values, weighted ? weights : NULL, (shoal_kmeans_config){.ks = "2..12"});
        for (int64_t k = 2; k <= 12; k++) {
            shoal_result *alone = run_with(values, weighted ? weights : NULL, (shoal_kmeans_config){.k = k});
            assert_true(objective_of(all, k - 2) <= 1.002 * shoal_result_number(alone, "objective"));
            shoal_result_free(&alone);
        }
        assert_true(shoal_result_number(all, "pick_silhouette") == 9); /* as DATA_BLOBS has */
        assert_true(shoal_result_number(all, "pick_calinski_harabasz") == 9);
        shoal_result_free(&all);
    }
    free(values);
}

static void test_sample(void **state)
{
    kmeans_model model = {.rows = 1000, .sample = 37, .seed = 5};
    int64_t before = -1;
    (void)state;
    for (int64_t at = 0; at < model.sample; at++) {
        const int64_t row = kmeans_sample_row(&model, at);
        assert_true(row > before && row < model.rows);
        assert_true(kmeans_sample_from(&model, row) <= at);
        for (int64_t from = 0; from <= row; from++)
            assert_true(kmeans_sample_from(&model, from) <= at);
        before = row;
    }
    model.sample = model.rows;
    for (int64_t at = 0; at < model.rows; at++)
        assert_int_equal(kmeans_sample_row(&model, at), at);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_silhouettes),
        cmocka_unit_test(test_calinski_harabasz),
        cmocka_unit_test(test_rules),
        cmocka_unit_test(test_search_finds_groups),
        cmocka_unit_test(test_search_of_copies),
        cmocka_unit_test(test_as_alone),
        cmocka_unit_test(test_no_worse),
        cmocka_unit_test(test_sample),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
