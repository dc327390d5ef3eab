/* Labels: threads k-means with rows on a device, here one that computes on the CPU: the same bits as without; every
 * failure of it, at every call, leaves the result as it is and tells why; stops end the run. */
#include "device/fake_device.h"
#include "unit/kmeans_support.h"

typedef struct run {
    shoal_type type;
    data_kind kind;
    bool weighted, every_round;
    int64_t rows, columns, rows_per_grain;
    shoal_kmeans_config config;
} run;

static run usual(void)
{
    return (run){.type = SHOAL_FLOAT32,
                 .kind = DATA_UNIFORM,
                 .rows = 400,
                 .columns = 5,
                 .rows_per_grain = 64,
                 .config = {.k = 7, .iterations = 12, .runs = 1, .tolerance = 1e-6, .init = "random"}};
}

/* On the device that "auto" and "cuda" find now, or on the CPU. */
static int run_on(shoal_result **out, shoal_report *report, const run *run, const char *device)
{
    void *values = make_values(run->kind, run->type, run->rows, run->columns, 1, 5);
    double memory[1000], *weights = run->weighted ? memory : NULL;
    shoal_data *data = NULL;
    for (int64_t i = 0; weights && i < run->rows; i++)
        weights[i] = (double)(i % 4) / 2;
    const shoal_run_options options = {
        .threads = 2, .rows_per_grain = run->rows_per_grain, .device = device, .every_round = run->every_round};
    assert_int_equal(shoal_data_wrap(&data, values, run->rows, run->columns, run->type), SHOAL_OK);
    int status = shoal_run(out, report, &shoal_kmeans, &run->config, data, weights, &options);
    shoal_data_free(&data);
    free(values);
    return status;
}

static void assert_same(const shoal_result *a, const shoal_result *b)
{
    assert_int_equal(a->tensors, b->tensors);
    assert_int_equal(a->numbers, b->numbers);
    for (int i = 0; i < a->tensors; i++) {
        size_t count = 1;
        for (int d = 0; d < a->tensor[i].rank; d++)
            count *= (size_t)a->tensor[i].shape[d];
        assert_memory_equal(a->tensor[i].values, b->tensor[i].values, count * shoal_type_size(a->tensor[i].type));
    }
    for (int i = 0; i < a->numbers; i++)
        assert_memory_equal(&a->number[i].value, &b->number[i].value, sizeof(double));
}

/* The same with and without it; returns the calls that it took. */
static long long compare(const run *run, fake_device *fake, bool holds)
{
    shoal_result *here = NULL, *there = NULL;
    shoal_report report;
    assert_int_equal(run_on(&here, &report, run, "cpu"), SHOAL_OK);
    assert_null(report.device);
    kernel_device_pretend(&fake->table);
    assert_int_equal(run_on(&there, &report, run, "cuda"), SHOAL_OK);
    kernel_device_pretend(NULL);
    assert_same(here, there);
    assert_int_equal(fake->opened, fake->closed);
    assert_true(!holds || (report.device && strcmp(report.device, "fake:0") == 0));
    assert_true(holds || *report.device_lost || fake->calls == 0);
    shoal_result_free(&here);
    shoal_result_free(&there);
    return fake->calls;
}

static void test_the_same_bits(void **state)
{
    static const shoal_type types[] = {SHOAL_FLOAT32, SHOAL_FLOAT64, SHOAL_UINT8, SHOAL_INT16};
    (void)state;
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        for (int more = 0; more < 8; more++) {
            run run = usual();
            fake_device fake;
            run.type = types[t];
            run.kind = t == 1 ? DATA_NARROW : t == 0 ? DATA_BLOBS : DATA_UNIFORM;
            run.weighted = more & 1;
            run.every_round = more & 2;
            run.config.metric = more & 4 ? SHOAL_METRIC_COSINE : SHOAL_METRIC_EUCLIDEAN;
            fake_device_init(&fake);
            compare(&run, &fake, true);
        }
}

static void test_several_runs_and_several_k(void **state)
{
    run runs = usual(), several = usual(), empty = usual();
    fake_device fake;
    (void)state;
    runs.config.runs = 3;
    fake_device_init(&fake);
    compare(&runs, &fake, true);
    several.config.k = 0;
    several.config.ks = "2..4";
    several.config.init = NULL;
    fake_device_init(&fake);
    compare(&several, &fake, true);
    empty.kind = DATA_GRID;
    empty.type = SHOAL_UINT8;
    empty.columns = 2;
    empty.config.k = 40; /* some clusters lose all their rows */
    fake_device_init(&fake);
    compare(&empty, &fake, true);
}

static void test_every_failure(void **state)
{
    static const int failures[] = {KERNEL_DEVICE_LOST, KERNEL_DEVICE_MEMORY};
    (void)state;
    for (size_t f = 0; f < 2; f++)
        for (int every = 0; every < 2; every++) {
            run run = usual();
            fake_device fake;
            run.every_round = every;
            fake_device_init(&fake);
            const long long calls = compare(&run, &fake, true);
            for (long long n = 1; n <= calls; n++) {
                fake_device_init(&fake);
                fake.fails_at = n;
                fake.fails_with = failures[f];
                compare(&run, &fake, false);
            }
        }
}

static void test_words(void **state)
{
    run run = usual();
    shoal_result *result = NULL;
    shoal_report report;
    (void)state;
    assert_int_equal(run_on(&result, &report, &run, "gpu"), SHOAL_USAGE);
    assert_string_equal(shoal_error(), "--device: 'gpu' is not auto, cpu, cuda or cuda:N");
    assert_int_equal(run_on(&result, &report, &run, "cuda:-1"), SHOAL_USAGE);
    setenv("SHOAL_CUDA_PLUGIN", "/nowhere/libshoal-cuda.so", 1);
    assert_int_equal(run_on(&result, &report, &run, "cuda"), SHOAL_ABSENT);
    assert_non_null(strstr(shoal_error(), "/nowhere/libshoal-cuda.so: the CUDA plug-in can't be loaded"));
    assert_int_equal(run_on(&result, &report, &run, "auto"), SHOAL_OK); /* too little for a GPU to be looked for */
    assert_null(report.device);
    shoal_result_free(&result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_same_bits),
        cmocka_unit_test(test_several_runs_and_several_k),
        cmocka_unit_test(test_every_failure),
        cmocka_unit_test(test_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
