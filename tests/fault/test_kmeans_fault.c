/* The n-th allocation fails, for every n, in every way of clustering and predicting: each failure says so, leaks
 * nothing (the address sanitizer watches), and the same call then gives the result it always gives. */
#include "unit/kmeans_support.h"

typedef struct fault_case {
    const char *init;
    int64_t columns, k, runs;
    int empty;
    bool weighted, far; /* far: a given start that leaves clusters empty */
    bool predict;
    bool generated; /* rows that are made in every round */
    const char *ks; /* several K, when k is 0 */
    int64_t batch;
} fault_case;

static const fault_case cases[] = {
    {"kmeans++", 3, 4, 1, SHOAL_EMPTY_FARTHEST, false, false, false, false, NULL, 0},
    {"kmeans++", 40, 3, 1, SHOAL_EMPTY_FARTHEST, true, false, false, false, NULL, 0},
    {"parallel", 3, 4, 2, SHOAL_EMPTY_FARTHEST, true, false, false, false, NULL, 0},
    {"parallel", 40, 26, 1, SHOAL_EMPTY_FARTHEST, false, false, false, false, NULL, 0},
    {"random", 35, 3, 2, SHOAL_EMPTY_KEEP, false, false, false, false, NULL, 0},
    {"file", 3, 6, 1, SHOAL_EMPTY_FARTHEST, true, true, false, false, NULL, 0},
    {"file", 40, 30, 1, SHOAL_EMPTY_FARTHEST, false, true, false, false, NULL, 0},
    {"file", 40, 30, 1, SHOAL_EMPTY_SPLIT, false, true, false, false, NULL, 0},
    {"kmeans++", 3, 4, 1, SHOAL_EMPTY_FARTHEST, false, false, false, true, NULL, 0},
    {"file", 3, 4, 1, 0, true, false, true, false, NULL, 0},
    {"file", 40, 30, 1, 0, false, false, true, false, NULL, 0},
    {"auto", 3, 0, 1, SHOAL_EMPTY_FARTHEST, true, false, false, false, "2..4", 0},
    {"kmeans++", 3, 0, 2, SHOAL_EMPTY_FARTHEST, false, false, false, false, "1,3", 0},
    {"auto", 3, 4, 1, SHOAL_EMPTY_FARTHEST, true, false, false, false, NULL, 20},
    {"auto", 40, 26, 2, SHOAL_EMPTY_FARTHEST, false, false, false, true, NULL, 20},
    {"file", 40, 30, 1, SHOAL_EMPTY_FARTHEST, false, true, false, false, NULL, 25},
};

enum { ROWS = 60 };

typedef struct fault_work {
    const fault_case *c;
    float *values;
    double *weights, *start;
    shoal_data *data;
} fault_work;

static int attempt(shoal_result **out, const fault_work *work, int threads)
{
    const fault_case *c = work->c;
    shoal_run_options options = {.threads = threads, .rows_per_grain = 16, .memory = c->generated};
    shoal_kmeans_config config = {.k = c->k,
                                  .ks = c->ks,
                                  .init = c->init,
                                  .start = work->start,
                                  .iterations = 3,
                                  .runs = c->runs,
                                  .empty = c->empty,
                                  .batch = c->batch,
                                  .reassignment_ratio = 0.3 * (c->batch > 0)};
    shoal_predict_config predict = {.centres = work->start, .k = c->k, .columns = c->columns, .distances = true};
    return shoal_run(out, NULL, c->predict ? &shoal_kmeans_predict : &shoal_kmeans,
                     c->predict ? (const void *)&predict : &config, work->data, c->weighted ? work->weights : NULL,
                     &options);
}

static void make_work(fault_work *work, const fault_case *c)
{
    *work = (fault_work){.c = c, .values = make_values(DATA_BLOBS, SHOAL_FLOAT32, ROWS, c->columns, 1, 6)};
    work->weights = malloc(ROWS * sizeof(double));
    for (int i = 0; i < ROWS; i++)
        work->weights[i] = 1 + i % 3;
    if (strcmp(c->init, "file") == 0) {
        work->start = malloc((size_t)(c->k * c->columns) * sizeof(double));
        shoal_convert_float64(work->start, work->values, SHOAL_FLOAT32, c->k * c->columns);
        for (int64_t i = 0; c->far && i < c->columns; i++)
            work->start[c->columns + i] += 10;
    }
    if (c->generated)
        hand_check(shoal_data_open(&work->data, "gen:blobs?rows=60&cols=3&seed=2", NULL));
    else
        hand_check(shoal_data_wrap(&work->data, work->values, ROWS, c->columns, SHOAL_FLOAT32));
}

static void fail_each_allocation(const fault_work *work, int threads)
{
    shoal_result *expected = NULL;
    hand_check(attempt(&expected, work, threads));
    for (int64_t n = 0;; n++) {
        shoal_result *result = NULL;
        assert_true(n < 20000);
        base_memory_fail_after(n);
        int status = attempt(&result, work, threads);
        base_memory_fail_after(-1);
        if (status == SHOAL_OK) {
            assert_true(n > 20);
            expect_same_results(result, expected);
            shoal_result_free(&result);
            break;
        }
        assert_null(result);
        if (status != SHOAL_MEMORY || !strstr(shoal_error(), "out of memory"))
            fail_msg("--init %s, allocation %lld: status %d, \"%s\"", work->c->init, (long long)n, status,
                     shoal_error());
    }
    shoal_result_free(&expected);
}

static void test_every_allocation(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fault_work work;
        make_work(&work, &cases[i]);
        for (int threads = 1; threads <= 2; threads++)
            fail_each_allocation(&work, threads);
        shoal_data_free(&work.data);
        free(work.values);
        free(work.weights);
        free(work.start);
    }
}

/* Sizes that no machine has are refused before anything is touched. */
static void test_too_much(void **state)
{
    (void)state;
    shoal_data *data = NULL;
    shoal_result *result = NULL;
    hand_check(shoal_data_open(&data, "gen:uniform?rows=2000000000&cols=1000000", NULL));
    shoal_kmeans_config config = {.k = 2000000000, .init = "random", .iterations = 1, .runs = 1};
    assert_int_equal(shoal_run(&result, NULL, &shoal_kmeans, &config, data, NULL, &(shoal_run_options){.threads = 1}),
                     SHOAL_MEMORY);
    assert_null(result);
    assert_non_null(strstr(shoal_error(), "out of memory"));
    shoal_data_free(&data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_allocation), cmocka_unit_test(test_too_much)};
    return cmocka_run_group_tests_name("kmeans_fault", tests, NULL, NULL);
}
