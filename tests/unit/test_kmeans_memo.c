/* A memo only saves time.  k-means is driven by an engine that loses memos at random, maps grains twice, deals rows to
 * several slices, changes kernel sets between rounds and copies every model; the result is shoal_run's, bit for bit. */
#include "kmeans_support.h"

typedef enum start_kind {
    START_GREEDY,
    START_PARALLEL,
    START_RANDOM,
    START_AUTO,
    START_ROWS,   /* the first k rows */
    START_COPIES, /* rows, each third one a copy of another: clusters without rows */
    START_FAR,    /* every other centre far outside: clusters without rows */
} start_kind;

typedef enum weight_kind {
    LIGHT, /* none */
    MIXED, /* some of them zero */
    HEAVY, /* one of them beside which the others hardly count */
} weight_kind;

typedef struct memo_case {
    int64_t rows, columns, k;
    shoal_type type;
    data_kind data;
    double factor;
    start_kind start;
    int empty;
    weight_kind weights;
    int64_t rows_per_grain, runs, iterations;
    const char *ks; /* several K, when k is 0 */
} memo_case;

static const memo_case cases[] = {
    /* rows, columns, k, type, data, factor, start, empty, weights, rows_per_grain, runs, iterations */
    {300, 2, 7, SHOAL_FLOAT32, DATA_BLOBS, 1, START_GREEDY, SHOAL_EMPTY_FARTHEST, LIGHT, 16, 1, 20, NULL},
    {300, 2, 7, SHOAL_FLOAT64, DATA_BLOBS, 1, START_PARALLEL, SHOAL_EMPTY_FARTHEST, MIXED, 16, 1, 20, NULL},
    {300, 5, 30, SHOAL_UINT8, DATA_UNIFORM, 3, START_GREEDY, SHOAL_EMPTY_FARTHEST, LIGHT, 13, 2, 12, NULL},
    {257, 32, 40, SHOAL_FLOAT32, DATA_UNIFORM, 1, START_RANDOM, SHOAL_EMPTY_KEEP, MIXED, 11, 3, 12, NULL},
    {257, 33, 40, SHOAL_FLOAT32, DATA_UNIFORM, 1, START_PARALLEL, SHOAL_EMPTY_FARTHEST, LIGHT, 11, 2, 12, NULL},
    {257, 33, 40, SHOAL_FLOAT64, DATA_BLOBS, 1e-200, START_GREEDY, SHOAL_EMPTY_FARTHEST, MIXED, 19, 1, 12, NULL},
    {400, 70, 60, SHOAL_UINT8, DATA_BLOBS, 2, START_PARALLEL, SHOAL_EMPTY_FARTHEST, LIGHT, 7, 1, 15, NULL},
    {400, 64, 130, SHOAL_FLOAT32, DATA_BLOBS, 1, START_ROWS, SHOAL_EMPTY_FARTHEST, LIGHT, 37, 1, 15, NULL},
    {200, 129, 30, SHOAL_INT16, DATA_UNIFORM, 100, START_GREEDY, SHOAL_EMPTY_SPLIT, LIGHT, 20, 1, 12, NULL},
    {300, 140, 40, SHOAL_FLOAT32, DATA_BLOBS, 1, START_ROWS, SHOAL_EMPTY_FARTHEST, MIXED, 13, 2, 20, NULL},
    {300, 140, 40, SHOAL_UINT8, DATA_UNIFORM, 2, START_COPIES, SHOAL_EMPTY_FARTHEST, LIGHT, 13, 1, 20, NULL},
    {250, 3, 20, SHOAL_FLOAT32, DATA_GRID, 1, START_COPIES, SHOAL_EMPTY_FARTHEST, LIGHT, 10, 1, 15, NULL},
    {250, 3, 20, SHOAL_FLOAT32, DATA_GRID, 1, START_COPIES, SHOAL_EMPTY_SPLIT, MIXED, 10, 1, 15, NULL},
    {250, 40, 30, SHOAL_FLOAT64, DATA_BLOBS, 1, START_COPIES, SHOAL_EMPTY_FARTHEST, MIXED, 9, 1, 15, NULL},
    {250, 40, 30, SHOAL_FLOAT32, DATA_BLOBS, 1, START_COPIES, SHOAL_EMPTY_KEEP, LIGHT, 9, 1, 15, NULL},
    {250, 40, 30, SHOAL_FLOAT32, DATA_BLOBS, 1, START_COPIES, SHOAL_EMPTY_SPLIT, LIGHT, 9, 1, 15, NULL},
    {250, 6, 16, SHOAL_FLOAT32, DATA_BLOBS, 1, START_FAR, SHOAL_EMPTY_FARTHEST, MIXED, 25, 1, 15, NULL},
    {250, 50, 40, SHOAL_FLOAT32, DATA_UNIFORM, 1, START_FAR, SHOAL_EMPTY_FARTHEST, LIGHT, 25, 1, 15, NULL},
    {250, 50, 40, SHOAL_FLOAT32, DATA_UNIFORM, 1, START_FAR, SHOAL_EMPTY_SPLIT, MIXED, 25, 1, 15, NULL},
    {300, 9, 12, SHOAL_FLOAT64, DATA_NARROW, 1, START_GREEDY, SHOAL_EMPTY_FARTHEST, MIXED, 14, 1, 15, NULL},
    {300, 36, 30, SHOAL_FLOAT32, DATA_NARROW, 1, START_COPIES, SHOAL_EMPTY_FARTHEST, LIGHT, 14, 1, 15, NULL},
    {300, 36, 30, SHOAL_INT64, DATA_UNIFORM, 64, START_PARALLEL, SHOAL_EMPTY_FARTHEST, HEAVY, 14, 1, 15, NULL},
    {200, 10, 12, SHOAL_FLOAT32, DATA_OFFSET, 1, START_GREEDY, SHOAL_EMPTY_FARTHEST, LIGHT, 17, 1, 15, NULL},
    {200, 40, 25, SHOAL_FLOAT64, DATA_OFFSET, 1, START_RANDOM, SHOAL_EMPTY_FARTHEST, LIGHT, 17, 1, 15, NULL},
    {128, 1, 9, SHOAL_FLOAT64, DATA_LINE, 1, START_ROWS, SHOAL_EMPTY_FARTHEST, LIGHT, 5, 1, 40, NULL},
    {40, 40, 40, SHOAL_FLOAT32, DATA_UNIFORM, 1, START_GREEDY, SHOAL_EMPTY_FARTHEST, LIGHT, 1, 1, 5, NULL},
    {40, 3, 1, SHOAL_FLOAT32, DATA_UNIFORM, 1, START_GREEDY, SHOAL_EMPTY_FARTHEST, MIXED, 3, 2, 5, NULL},
    {1, 3, 1, SHOAL_FLOAT32, DATA_UNIFORM, 1, START_PARALLEL, SHOAL_EMPTY_FARTHEST, LIGHT, 4, 1, 5, NULL},
    {60, 4, 8, SHOAL_FLOAT32, DATA_UNIFORM, 1, START_GREEDY, SHOAL_EMPTY_FARTHEST, LIGHT, 100, 1, 0, NULL},
    {200, 4, 6, SHOAL_FLOAT32, DATA_TINY, 1, START_GREEDY, SHOAL_EMPTY_FARTHEST, LIGHT, 9, 1, 12, NULL},
    {200, 35, 26, SHOAL_FLOAT64, DATA_TINY, 1, START_COPIES, SHOAL_EMPTY_FARTHEST, LIGHT, 9, 1, 12, NULL},
    {300, 3, 12, SHOAL_UINT8, DATA_UNIFORM, 4, START_COPIES, SHOAL_EMPTY_FARTHEST, HEAVY, 14, 1, 15, NULL},
    {300, 3, 0, SHOAL_FLOAT32, DATA_BLOBS, 1, START_AUTO, SHOAL_EMPTY_FARTHEST, LIGHT, 14, 1, 15, "2..6"},
    {300, 130, 0, SHOAL_UINT8, DATA_UNIFORM, 3, START_AUTO, SHOAL_EMPTY_FARTHEST, MIXED, 31, 2, 9, "1,3,9,60"},
    {257, 33, 0, SHOAL_FLOAT64, DATA_BLOBS, 1e-200, START_GREEDY, SHOAL_EMPTY_KEEP, MIXED, 19, 2, 12, "2..9..3"},
    {200, 9, 0, SHOAL_FLOAT64, DATA_NARROW, 1, START_RANDOM, SHOAL_EMPTY_SPLIT, HEAVY, 14, 1, 0, "3,5"},
};

/* A case made into memory. */
typedef struct memo_work {
    void *values;
    double *weights, *start;
    shoal_kmeans_config config;
    shoal_result *expected;
    int64_t expected_rounds;
} memo_work;

static void make_start(memo_work *work, const memo_case *c)
{
    int64_t columns = c->columns;
    work->start = malloc((size_t)(c->k * columns) * sizeof(double));
    shoal_convert_float64(work->start, work->values, c->type, c->k * columns);
    for (int64_t j = 0; j < c->k; j++) {
        if (c->start == START_COPIES && j % 3 == 2)
            memcpy(work->start + j * columns, work->start + j / 2 * columns, (size_t)columns * sizeof(double));
        for (int64_t k = 0; c->start == START_FAR && j % 2 && k < columns; k++)
            work->start[j * columns + k] += 50 * (double)(j + 1);
    }
}

static void make_work(memo_work *work, const memo_case *c)
{
    static const char *const names[] = {"kmeans++", "parallel", "random", "auto"};
    *work = (memo_work){.values = make_values(c->data, c->type, c->rows, c->columns, c->factor, 77)};
    if (c->weights != LIGHT) {
        work->weights = malloc((size_t)c->rows * sizeof(double));
        for (int64_t i = 0; i < c->rows; i++) /* some weigh nothing */
            work->weights[i] = i % 11 == 10 ? 0 : 0.01 + unit(5, (uint64_t)i, 0) * (double)(i % 5 + 1);
        if (c->weights == HEAVY)
            work->weights[7] = 1e9;
    }
    work->config = (shoal_kmeans_config){.k = c->k,
                                         .ks = c->ks,
                                         .init = c->start <= START_AUTO ? names[c->start] : "file",
                                         .iterations = c->iterations,
                                         .runs = c->runs,
                                         .seed = 3,
                                         .empty = c->empty};
    if (c->start > START_AUTO)
        make_start(work, c);
    work->config.start = work->start;
}

static void free_work(memo_work *work)
{
    shoal_result_free(&work->expected);
    free(work->values);
    free(work->weights);
    free(work->start);
}

static void run_plainly(memo_work *work, const memo_case *c)
{
    shoal_data *data = NULL;
    shoal_report report;
    shoal_run_options options = {.threads = 2};
    hand_check(shoal_data_wrap(&data, work->values, c->rows, c->columns, c->type));
    hand_check(shoal_run(&work->expected, &report, &shoal_kmeans, &work->config, data, work->weights, &options));
    work->expected_rounds = report.rounds;
    shoal_data_free(&data);
}

static void run_by_hand(const memo_work *work, const memo_case *c, int slices, double loss, uint64_t seed,
                        hand_story *story)
{
    shoal_result *result = NULL;
    hand_run run = {
        .algorithm = &shoal_kmeans,
        .config = &work->config,
        .values = work->values,
        .weights = work->weights,
        .shape = {.rows = c->rows, .columns = c->columns, .type = c->type, .rows_per_grain = c->rows_per_grain},
        .slices = slices,
        .seed = seed,
        .loss = loss,
        .doubling = 0.2};
    hand_check(hand_run_all(&result, &run));
    if (run.story.rounds != work->expected_rounds)
        fail_msg("case of %lld rows, %lld columns, start %d: %lld rounds instead of %lld (%d slices, seed %llu)",
                 (long long)c->rows, (long long)c->columns, c->start, (long long)run.story.rounds,
                 (long long)work->expected_rounds, slices, (unsigned long long)seed);
    expect_same_results(result, work->expected);
    shoal_result_free(&result);
    for (int p = 0; p < KMEANS_PHASES; p++) {
        story->phase[p] += run.story.phase[p];
        story->phase_lost[p] += run.story.phase_lost[p];
    }
    story->carried += run.story.carried;
    story->lost += run.story.lost;
    story->twice += run.story.twice;
    story->wide_columns += run.story.wide_columns;
}

static void test_memo_loss_changes_nothing(void **state)
{
    static const struct {
        int slices;
        double loss;
    } ways[] = {{1, 0}, {1, 1}, {1, 0.3}, {3, 0.3}, {5, 0.5}};
    hand_story all = {0};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        memo_work work;
        hand_story story = {0};
        make_work(&work, &cases[i]);
        run_plainly(&work, &cases[i]);
        for (size_t w = 0; w < sizeof ways / sizeof *ways; w++)
            run_by_hand(&work, &cases[i], ways[w].slices, ways[w].loss, 100 * i + w, &story);
        free_work(&work);
        /* The cases are what they say they are. */
        if (cases[i].data == DATA_NARROW)
            assert_true(story.wide_columns > 0);
        if (cases[i].start >= START_COPIES && cases[i].empty == SHOAL_EMPTY_FARTHEST)
            assert_true(story.phase[KMEANS_RELOCATE] > 0);
        for (int p = 0; p < KMEANS_PHASES; p++) {
            all.phase[p] += story.phase[p];
            all.phase_lost[p] += story.phase_lost[p];
        }
        all.carried += story.carried;
        all.lost += story.lost;
        all.twice += story.twice;
    }
    assert_true(all.carried > 1000 && all.lost > 500 && all.twice > 1000);
    for (int p = 0; p < KMEANS_SCATTER; p++) /* batches have no memo */
        assert_true(all.phase[p] > 0);
    /* Memos were lost in every phase that has one. */
    static const kmeans_phase_id with_memo[] = {KMEANS_FETCH,    KMEANS_JUDGE, KMEANS_SAMPLE, KMEANS_LLOYD,
                                                KMEANS_RELOCATE, KMEANS_LABEL, KMEANS_TALLY};
    for (size_t p = 0; p < sizeof with_memo / sizeof *with_memo; p++)
        assert_true(all.phase_lost[with_memo[p]] > 0);
}

/* Labelling by given centres goes the same way. */
static void test_predict(void **state)
{
    (void)state;
    enum { ROWS = 150, K = 30 };
    static const int64_t columns[] = {3, 45};
    for (int c = 0; c < 2; c++) {
        float *values = make_values(DATA_BLOBS, SHOAL_FLOAT32, ROWS, columns[c], 1, 8);
        double *centres = malloc((size_t)(K * columns[c]) * sizeof *centres);
        shoal_convert_float64(centres, values, SHOAL_FLOAT32, K * columns[c]);
        memcpy(centres + 7 * columns[c], centres, (size_t)columns[c] * sizeof *centres);
        shoal_predict_config config = {.centres = centres, .k = K, .columns = columns[c], .distances = true};
        shoal_data *data = NULL;
        shoal_result *expected = NULL;
        hand_check(shoal_data_wrap(&data, values, ROWS, columns[c], SHOAL_FLOAT32));
        hand_check(
            shoal_run(&expected, NULL, &shoal_kmeans_predict, &config, data, NULL, &(shoal_run_options){.threads = 2}));
        for (uint64_t seed = 0; seed < 4; seed++) {
            shoal_result *result = NULL;
            hand_run run = {.algorithm = &shoal_kmeans_predict,
                            .config = &config,
                            .values = values,
                            .shape = {.rows = ROWS, .columns = columns[c], .type = SHOAL_FLOAT32, .rows_per_grain = 7},
                            .slices = 3,
                            .seed = seed,
                            .loss = 0.5,
                            .doubling = 0.5};
            hand_check(hand_run_all(&result, &run));
            expect_same_results(result, expected);
            shoal_result_free(&result);
        }
        shoal_result_free(&expected);
        shoal_data_free(&data);
        free(values);
        free(centres);
    }
}

/* Failures of a round come out the same way: more clusters than there are different rows. */
static void test_too_few_rows(void **state)
{
    (void)state;
    static const char *const init[] = {"kmeans++", "parallel"};
    float values[40] = {0};
    for (int i = 0; i < 20; i++)
        values[2 * i] = (float)(i % 3);
    for (int i = 0; i < 2; i++) {
        shoal_kmeans_config config = {.k = 5, .init = init[i], .iterations = 3, .runs = 1};
        shoal_result *result = NULL;
        hand_run run = {.algorithm = &shoal_kmeans,
                        .config = &config,
                        .values = values,
                        .shape = {.rows = 20, .columns = 2, .type = SHOAL_FLOAT32, .rows_per_grain = 3},
                        .slices = 3,
                        .seed = 1,
                        .loss = 0.3,
                        .doubling = 0.3};
        assert_int_equal(hand_run_all(&result, &run), SHOAL_INVALID);
        assert_null(result);
        assert_non_null(strstr(shoal_error(), "3 distinct rows"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_memo_loss_changes_nothing), cmocka_unit_test(test_predict),
                                       cmocka_unit_test(test_too_few_rows)};
    return cmocka_run_group_tests_name("kmeans_memo", tests, NULL, NULL);
}
