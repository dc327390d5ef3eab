/* Labels: threads k-means with rows on a device, here one that computes on the CPU: the same bits as without; every
 * failure of it, at every call, leaves the result as it is and tells why; stops end the run. */
#include "device/fake_device.h"
#include "unit/slice_support.h"

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
    assert_int_equal(run_on(&result, &report, &run, "cuda:64"), SHOAL_USAGE);
    assert_string_equal(shoal_error(), "--device: 'cuda:64' is beyond cuda:63");
    assert_int_equal(kernel_device_check("cuda:63"), SHOAL_OK);
    setenv("SHOAL_CUDA_PLUGIN", "/nowhere/libshoal-cuda.so", 1);
    assert_int_equal(run_on(&result, &report, &run, "cuda"), SHOAL_ABSENT);
    assert_non_null(strstr(shoal_error(), "/nowhere/libshoal-cuda.so: the CUDA plug-in can't be loaded"));
    assert_int_equal(run_on(&result, &report, &run, "auto"), SHOAL_OK); /* too little for a GPU to be looked for */
    assert_null(report.device);
    shoal_result_free(&result);
}

/* ---- slices ------------------------------------------------------------------------------------------------------ */

typedef struct one_slice {
    float values[400];
    shoal_kmeans_config config;
    shoal_round *round;
    fake_device fake;
    sliced run;
} one_slice;

static void begin_slice(one_slice *self)
{
    *self = (one_slice){.config = {.k = 3, .iterations = 5, .runs = 1, .init = "random"}};
    for (int i = 0; i < 400; i++)
        self->values[i] = (float)(i % 37);
    self->run = (sliced){.algorithm = &shoal_kmeans,
                         .config = &self->config,
                         .values = self->values,
                         .shape = {.rows = 200, .columns = 2, .type = SHOAL_FLOAT32, .rows_per_grain = 64},
                         .slices = 1,
                         .threads = 1};
    sliced_begin(&self->run);
    fake_device_init(&self->fake);
    engine_mapper_device(self->run.mapper, &self->fake.table);
    hand_check(shoal_kmeans.start(&self->round, &self->config, &self->run.shape));
}

static void end_slice(one_slice *self)
{
    shoal_round_free(&self->round);
    sliced_end(&self->run);
    assert_int_equal(self->fake.opened, self->fake.closed);
}

/* A run that was stopped while its rows went to the device has not lost that. */
static void test_stopped_while_rows_go_there(void **state)
{
    _Atomic uint32_t stop = 1;
    shoal_partial *partial = NULL;
    one_slice self;
    (void)state;
    begin_slice(&self);
    engine_mapper_watch(self.run.mapper, &stop);
    hand_check(engine_mapper_begin(self.run.mapper, self.round));
    assert_int_equal(engine_slice_map(&partial, self.run.mapper, self.run.slice[0]), SHOAL_STOPPED);
    assert_true(self.fake.opened == 1 && self.fake.closed == 1);
    assert_string_equal(engine_mapper_lost(self.run.mapper), "");
    stop = 0;
    hand_check(engine_mapper_begin(self.run.mapper, self.round));
    hand_check(engine_slice_map(&partial, self.run.mapper, self.run.slice[0]));
    assert_true(engine_slice_held(self.run.slice[0]));
    end_slice(&self);
}

static int checks;

static int fail_once(void *context)
{
    (void)context;
    return checks++ == 0 ? shoal_fail(SHOAL_INVALID, "the file has changed") : SHOAL_OK;
}

/* What a device holds was checked after it was read. */
static void test_rows_that_change_are_not_held(void **state)
{
    shoal_partial *partial = NULL;
    engine_slice *slice = NULL;
    one_slice self;
    (void)state;
    begin_slice(&self);
    const engine_rows rows = {.read = read_sliced, .check = fail_once, .context = &self.run};
    hand_check(engine_slice_new(&slice, 0, self.run.shape.grains, &rows));
    hand_check(engine_mapper_begin(self.run.mapper, self.round));
    assert_int_equal(engine_slice_map(&partial, self.run.mapper, slice), SHOAL_INVALID);
    assert_false(engine_slice_held(slice));
    hand_check(engine_slice_map(&partial, self.run.mapper, slice));
    assert_true(engine_slice_held(slice));
    engine_slice_free(&slice);
    end_slice(&self);
}

static int64_t prepared;

static int prepare_and_count(void **out, const shoal_round *round, const shoal_shape *shape, const shoal_crew *crew)
{
    prepared++;
    return shoal_kmeans.prepare(out, round, shape, crew);
}

/* Rounds without the device are made ready for once each, however it was lost. */
static void test_rounds_are_prepared_once(void **state)
{
    shoal_algorithm counted = shoal_kmeans;
    run run = usual();
    void *values = make_values(run.kind, run.type, run.rows, run.columns, 1, 5);
    const shoal_run_options options = {.threads = 1, .rows_per_grain = run.rows_per_grain, .device = "cuda"};
    shoal_data *data = NULL;
    shoal_result *result = NULL;
    shoal_report report;
    fake_device fake;
    (void)state;
    counted.prepare = prepare_and_count;
    fake_device_init(&fake);
    fake.fails_at = 1;
    kernel_device_pretend(&fake.table);
    hand_check(shoal_data_wrap(&data, values, run.rows, run.columns, run.type));
    hand_check(shoal_run(&result, &report, &counted, &run.config, data, NULL, &options));
    kernel_device_pretend(NULL);
    assert_int_equal(prepared, report.rounds);
    shoal_result_free(&result);
    shoal_data_free(&data);
    free(values);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_same_bits),
        cmocka_unit_test(test_several_runs_and_several_k),
        cmocka_unit_test(test_every_failure),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_stopped_while_rows_go_there),
        cmocka_unit_test(test_rows_that_change_are_not_held),
        cmocka_unit_test(test_rounds_are_prepared_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
