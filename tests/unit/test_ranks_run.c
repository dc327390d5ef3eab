/* Labels: threads
 * Runs in step: with any number of ranks every learner comes to the bytes that it comes to alone, and tells the same of
 * it. */
#include "ranks_support.h"

#include <shoal/logistic.h>

static void test_every_kind_of_cell(void **state)
{
    (void)state;
    scene of = toy_scene();
    expect_same_everywhere(&of, NULL);
    end_toy(&of);
}

/* Counters are of all ranks, on every rank. */
static void test_counters_are_of_all(void **state)
{
    (void)state;
    scene of = toy_scene();
    for (int s = 0; s < SIZES; s++) {
        run(&of, sizes[s]);
        for (int i = 0; i < sizes[s]; i++)
            assert_int_equal(of.got[i].report.counter[0], TOY_ROWS * (STEPS + 1));
    }
    end_toy(&of);
}

/* ---- learners ---------------------------------------------------------------------------------------------------- */

static void test_kmeans(void **state)
{
    (void)state;
    static const struct {
        int64_t k;
        const char *init, *data;
        bool weighted;
        int64_t grain, runs, memory;
    } cases[] = {
        {5, "auto", "gen:blobs?rows=3000&cols=6&centres=5&seed=2", false, 100, 1, 0},
        {9, "kmeans++", "gen:blobs?rows=2000&cols=3&centres=9&seed=3&type=float64", true, 64, 2, 0},
        {60, "auto", "gen:blobs?rows=2500&cols=5&centres=40&seed=4", true, 100, 1, 0},
        {30, "parallel", "gen:uniform?rows=1500&cols=2&low=0&high=9&type=uint8", false, 50, 1, 0},
        {40, "random", "gen:uniform?rows=900&cols=2&low=0&high=2&type=int8", false, 70, 1, 1}, /* clusters run empty */
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        shoal_kmeans_config config = kmeans_config(cases[c].k, cases[c].init);
        config.runs = cases[c].runs;
        shoal_data *data = open_data(cases[c].data);
        double *weights = cases[c].weighted ? make_weights(shoal_data_rows(data)) : NULL;
        scene of = {.algorithm = &shoal_kmeans,
                    .config = &config,
                    .data = data,
                    .weights = weights,
                    .options = {.rows_per_grain = cases[c].grain, .memory = cases[c].memory}};
        expect_same_everywhere(&of, NULL);
        shoal_data_free(&data);
        free(weights);
    }
}

static void test_kmeans_predict(void **state)
{
    (void)state;
    shoal_data *data = open_data("gen:blobs?rows=5000&cols=4&centres=7&seed=5");
    double centres[7 * 4];
    for (int i = 0; i < 7 * 4; i++)
        centres[i] = base_random_unit(9, BASE_FOR_DATA, (uint64_t)i, 0) * 10 - 5;
    for (int distances = 0; distances < 2; distances++) {
        shoal_predict_config config = {.centres = centres, .k = 7, .columns = 4, .distances = distances};
        scene of = {
            .algorithm = &shoal_kmeans_predict, .config = &config, .data = data, .options = {.rows_per_grain = 90}};
        expect_same_everywhere(&of, NULL);
    }
    shoal_data_free(&data);
}

/* Many rows, so that they go to rank 0 in several parts while others are mapped. */
static void test_rows_go_in_parts(void **state)
{
    (void)state;
    shoal_data *data = open_data("gen:uniform?rows=1000000&cols=1&type=float32");
    const double centres[3] = {0.1, 0.5, 0.8};
    shoal_predict_config config = {.centres = centres, .k = 3, .columns = 1, .distances = true};
    scene of = {
        .algorithm = &shoal_kmeans_predict, .config = &config, .data = data, .options = {.rows_per_grain = 5000}};
    shoal_report report;
    shoal_result *alone = run_alone(&of, &report);
    for (int size = 2; size <= 3; size++) {
        clear(&of);
        ranks_here_end end = ranks_here_run(size, run_one, &of, &(ranks_here_options){size - 1, 200, 0, 0});
        assert_false(end.aborted);
        expect_same(&of, size, alone, &report);
        assert_true(end.bytes > 1000000); /* labels and distances of what rank 0 does not have */
    }
    clear(&of);
    shoal_result_free(&alone);
    shoal_data_free(&data);
}

static void test_logistic(void **state)
{
    (void)state;
    for (int classes = 2; classes <= 3; classes++) {
        double *values, *weights = classes == 3 ? make_weights(800) : NULL;
        shoal_data *data = make_classes(&values, 800, 5, classes);
        shoal_logistic_config config = {0};
        shoal_options_default(&config, shoal_logistic.options);
        config.iterations = 15;
        scene of = {.algorithm = &shoal_logistic,
                    .config = &config,
                    .data = data,
                    .weights = weights,
                    .options = {.rows_per_grain = 40}};
        shoal_result *found = NULL;
        expect_same_everywhere(&of, &found);
        shoal_data *rows = open_data("gen:uniform?rows=700&cols=4&low=0&high=3&type=float64");
        const shoal_tensor *w = shoal_result_tensor(found, "weights");
        shoal_logistic_predict_config predict = {.weights = w->values,
                                                 .intercept = shoal_result_tensor(found, "intercept")->values,
                                                 .classes = shoal_result_tensor(found, "classes")->values,
                                                 .outputs = w->shape[0],
                                                 .classes_count = classes,
                                                 .columns = 4,
                                                 .probabilities = true};
        scene later = {
            .algorithm = &shoal_logistic_predict, .config = &predict, .data = rows, .options = {.rows_per_grain = 30}};
        expect_same_everywhere(&later, NULL);
        shoal_data_free(&rows);
        shoal_data_free(&data);
        shoal_result_free(&found);
        free(values);
        free(weights);
    }
}

static void test_autoencoder(void **state)
{
    (void)state;
    shoal_autoencoder_config config = autoencoder_config();
    shoal_data *data = open_data("gen:blobs?rows=600&cols=6&centres=3&seed=5");
    scene of = {.algorithm = &shoal_autoencoder, .config = &config, .data = data, .options = {.rows_per_grain = 40}};
    shoal_result *found = NULL;
    expect_same_everywhere(&of, &found);
    shoal_features_config features = {.encoder = shoal_result_tensor(found, "encoder.weight")->values,
                                      .bias = shoal_result_tensor(found, "encoder.bias")->values,
                                      .hidden = 4,
                                      .columns = 6,
                                      .scale = shoal_result_number(found, "scale"),
                                      .shift = shoal_result_number(found, "shift"),
                                      .precision = 1};
    scene later = {.algorithm = &shoal_features, .config = &features, .data = data, .options = {.rows_per_grain = 25}};
    expect_same_everywhere(&later, NULL);
    shoal_result_free(&found);
    shoal_data_free(&data);
}

static void test_more_ranks_than_grains(void **state)
{
    (void)state;
    shoal_data *data = open_data("gen:blobs?rows=250&cols=3&centres=3&seed=5");
    shoal_kmeans_config config = kmeans_config(3, "auto");
    for (int64_t grain = 100; grain <= 300; grain += 100) {
        scene of = {.algorithm = &shoal_kmeans,
                    .config = &config,
                    .data = data,
                    .threads = 1,
                    .options = {.rows_per_grain = grain}};
        int64_t grains = (250 + grain - 1) / grain;
        shoal_report report;
        shoal_result *alone = run_alone(&of, &report);
        assert_int_equal(report.idle, 0);
        for (int s = 0; s < SIZES; s++) {
            of.options.verify = 1;
            run(&of, sizes[s]);
            expect_same(&of, sizes[s], alone, &report);
            for (int i = 0; i < sizes[s]; i++)
                assert_int_equal(of.got[i].report.idle, sizes[s] > grains ? sizes[s] - grains : 0);
        }
        clear(&of);
        shoal_result_free(&alone);
    }
    shoal_data_free(&data);
}

/* The one that is slow keeps the others waiting, and nothing else. */
static void test_a_slow_rank(void **state)
{
    (void)state;
    shoal_data *data = open_data("gen:blobs?rows=900&cols=3&centres=6&seed=5");
    shoal_kmeans_config config = kmeans_config(6, "parallel");
    scene of = {
        .algorithm = &shoal_kmeans, .config = &config, .data = data, .options = {.rows_per_grain = 50, .verify = 3}};
    shoal_report report;
    shoal_result *alone = run_alone(&of, &report);
    for (int slow = 0; slow < 3; slow++) {
        clear(&of);
        assert_false(ranks_here_run(3, run_one, &of, &(ranks_here_options){slow, 100, 0, 0}).aborted);
        expect_same(&of, 3, alone, &report);
    }
    clear(&of);
    shoal_result_free(&alone);
    shoal_data_free(&data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_kind_of_cell),
        cmocka_unit_test(test_counters_are_of_all),
        cmocka_unit_test(test_kmeans),
        cmocka_unit_test(test_kmeans_predict),
        cmocka_unit_test(test_rows_go_in_parts),
        cmocka_unit_test(test_logistic),
        cmocka_unit_test(test_autoencoder),
        cmocka_unit_test(test_more_ranks_than_grains),
        cmocka_unit_test(test_a_slow_rank),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
