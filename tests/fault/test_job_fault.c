/* The n-th allocation fails, for every n, in making, writing and reading a job's spec and in bringing its rows: each
 * failure says so, leaks nothing (the address sanitizer watches), and the same call succeeds afterwards. */
#include "unit/job_support.h"

typedef int attempt(void *context);

/* What cases work on. */
typedef struct job {
    shoal_store *store;
    shoal_data *data;
    job_spec *spec;
    const char *url;
} job;

static int count_descriptors(void)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

/* Fails allocation 0, then 1, ... until the attempt succeeds, which must take at least one allocation. */
static void fail_each_allocation(attempt *attempt, void *context)
{
    int descriptors = count_descriptors();
    for (int64_t n = 0;; n++) {
        assert_true(n < 2000);
        base_memory_fail_after(n);
        int status = attempt(context);
        base_memory_fail_after(-1);
        assert_int_equal(count_descriptors(), descriptors);
        if (status == SHOAL_OK) {
            assert_true(n > 0);
            return;
        }
        if (status != SHOAL_MEMORY || !strstr(shoal_error(), "out of memory"))
            fail_msg("allocation %lld: status %d, \"%s\"", (long long)n, status, shoal_error());
    }
}

static int make_spec(void *context)
{
    job *of = context;
    job_spec *spec = NULL;
    int status = job_setup_spec(&spec, of->store, &toy, NULL, of->data, job_weights,
                                &(shoal_job_options){.slices = 4, .settings = "{}"});
    assert_int_equal(spec != NULL, status == SHOAL_OK);
    job_spec_free(&spec);
    return status;
}

static int write_and_read_spec(void *context)
{
    job *of = context;
    job_spec *back = NULL;
    void *bytes = NULL;
    size_t size = 0;
    int status = job_spec_encode(&bytes, &size, of->spec);
    if (status == SHOAL_OK)
        status = job_spec_decode(&back, of->spec->id, bytes, size);
    assert_int_equal(back != NULL, status == SHOAL_OK);
    base_free(&bytes);
    job_spec_free(&back);
    return status;
}

static int announce(void *context)
{
    job *of = context;
    return job_setup_announce(of->store, of->spec, soon());
}

static int upload(void *context)
{
    job *of = context;
    return job_setup_upload(of->store, of->spec, of->data, job_weights, NULL, soon());
}

static int load(void *context)
{
    job *of = context;
    job_loader *loader = NULL;
    job_rows *rows = NULL;
    int status =
        job_loader_new(&loader, of->spec, of->store, &(job_loader_options){.data_root = "/,mem:ranges", .threads = 2});
    assert_int_equal(loader != NULL, status == SHOAL_OK);
    if (status == SHOAL_OK)
        status = job_rows_load(&rows, loader, 0, soon());
    assert_int_equal(rows != NULL, status == SHOAL_OK);
    job_rows_free(&rows);
    job_loader_free(&loader);
    return status;
}

static int describe(void *context)
{
    job *of = context;
    shoal_data *data = NULL;
    int status = shoal_job_data_open(&data, of->url, NULL, soon());
    assert_int_equal(data != NULL, status == SHOAL_OK);
    shoal_data_free(&data);
    return status;
}

static void check_all(job *of)
{
    fail_each_allocation(make_spec, of);
    of->spec = spec_of(of->store, of->data, job_weights, &(shoal_job_options){.slices = 4, .settings = "{}"});
    fail_each_allocation(write_and_read_spec, of);
    fail_each_allocation(announce, of);
    fail_each_allocation(upload, of);
    fail_each_allocation(load, of);
    job_spec_free(&of->spec);
}

static void uploaded(void **state)
{
    (void)state;
    job of = {.store = open_store("mem:"), .data = wrapped()};
    check_all(&of);
    shoal_data_free(&of.data);
    shoal_store_close(&of.store);
}

static void files(void **state)
{
    (void)state;
    job of = {.store = open_store("mem:"), .data = filed()};
    check_all(&of);
    shoal_data_free(&of.data);
    shoal_store_close(&of.store);
}

static void generated(void **state)
{
    (void)state;
    job of = {.store = open_store("mem:")};
    fill_values();
    EXPECT_OK(shoal_data_open(&of.data, "gen:uniform?rows=1000&cols=3", NULL));
    check_all(&of);
    shoal_data_free(&of.data);
    shoal_store_close(&of.store);
}

static void ranges(void **state)
{
    (void)state;
    job of = {.store = open_store("mem:"), .url = "mem:ranges/rows.npy"};
    shoal_store *other = open_store("mem:ranges");
    char bytes[128 + sizeof job_values];
    shoal_data *file = filed();
    shoal_data_free(&file);
    FILE *stream = fopen(at("rows.npy"), "rb");
    assert_int_equal(fread(bytes, 1, sizeof bytes, stream), sizeof bytes);
    fclose(stream);
    EXPECT_OK(shoal_store_put(other, "rows.npy", bytes, sizeof bytes, NULL, NULL, soon()));
    fail_each_allocation(describe, &of);
    EXPECT_OK(shoal_job_data_open(&of.data, of.url, NULL, soon()));
    check_all(&of);
    shoal_data_free(&of.data);
    shoal_store_close(&other);
    shoal_store_close(&of.store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(uploaded),
        cmocka_unit_test_setup_teardown(files, job_setup, job_teardown),
        cmocka_unit_test(generated),
        cmocka_unit_test_setup_teardown(ranges, job_setup, job_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
