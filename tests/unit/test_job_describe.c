/* How a job stands, seen from outside: who is alive, and how many requests it takes to find out. */
#include "job_support.h"
#include "scripted_world.h"

#include "engine/store/job_record.h"
#include "engine/store/job_admin.h"

enum { MANY = 200, LEFT = 7, SILENT = 5 };

static void put_record_at(shoal_store *store, const char *key, uint64_t worker)
{
    job_record record = {.worker = worker, .slots = 2, .roles = SHOAL_ROLE_ALL, .rescuing = -1};
    void *bytes = NULL;
    size_t size = 0;
    snprintf(record.host, sizeof record.host, "corn%d", (int)worker);
    snprintf(record.state, sizeof record.state, "working");
    record.counts.requests[SHOAL_REQUEST_GET] = 10;
    EXPECT_OK(job_record_encode(&bytes, &size, &record));
    EXPECT_OK(shoal_store_put_framed(store, key, JOB_KIND_WORKER, bytes, size, NULL, NULL, soon()));
    base_free(&bytes);
}

static int64_t requests_of(shoal_store *store)
{
    shoal_store_counts counts = shoal_store_counted(store);
    return store_counts_requests(&counts);
}

static void expect_numbers(const shoal_job *job)
{
    assert_int_equal(job->workers, MANY);
    assert_int_equal(job->left, LEFT);
    assert_int_equal(job->silent, SILENT);
    assert_int_equal(job->live, MANY - LEFT - SILENT);
}

/* Of 200 workers seven have left, one of them a moment ago: its first record is still there; five are silent. */
static void many_workers_take_a_few_requests(void **state)
{
    shoal_store *store = open_store("mem:describe");
    shoal_data *data = wrapped();
    job_spec *spec = announced(store, data, NULL, 4);
    shoal_job *job = NULL;
    (void)state;
    make_remote(store);
    for (int i = 1; i <= SILENT; i++)
        put_record_at(store, job_key_worker(spec->id, (uint64_t)i).text, (uint64_t)i);
    clock_now += (int64_t)((spec->lease + 1) * 1e9);
    for (int i = SILENT + 1; i <= MANY - LEFT + 1; i++)
        put_record_at(store, job_key_worker(spec->id, (uint64_t)i).text, (uint64_t)i);
    for (int i = MANY - LEFT + 1; i <= MANY; i++)
        put_record_at(store, job_key_left(spec->id, (uint64_t)i).text, (uint64_t)i);

    int64_t before = requests_of(store);
    EXPECT_OK(shoal_job_describe(&job, store, spec->id, 32, soon()));
    int64_t few = requests_of(store) - before;
    expect_numbers(job);
    assert_null(job->worker);
    assert_true(few <= 6);
    shoal_job_free(&job);

    before = requests_of(store);
    EXPECT_OK(shoal_job_describe(&job, store, spec->id, SHOAL_JOB_ALL_RECORDS, soon()));
    expect_numbers(job);
    assert_int_equal(requests_of(store) - before, few + MANY);
    assert_int_equal(job->requests.requests[SHOAL_REQUEST_GET], 10 * MANY);
    for (int64_t i = 0; i < job->workers; i++) {
        const shoal_job_worker *worker = &job->worker[i];
        assert_int_equal(worker->left, worker->id > MANY - LEFT);
        assert_int_equal(worker->alive, worker->id > SILENT && !worker->left);
    }
    shoal_job_free(&job);
    job_spec_free(&spec);
    shoal_data_free(&data);
    shoal_store_close(&store);
}

/* A worker that leaves between the listing and the reading of its record is not lost: its requests count. */
static void a_worker_that_leaves_meanwhile(void **state)
{
    shoal_store *store = open_store("mem:leaving");
    shoal_data *data = wrapped();
    job_spec *spec = announced(store, data, NULL, 4);
    job_worker_keys keys = {0};
    shoal_job_worker *worker = NULL;
    int64_t count = 0;
    (void)state;
    put_record_at(store, job_key_worker(spec->id, 1).text, 1);
    EXPECT_OK(job_worker_keys_list(&keys, store, spec->id, soon()));
    put_record_at(store, job_key_left(spec->id, 1).text, 1);
    EXPECT_OK(shoal_store_remove(store, job_key_worker(spec->id, 1).text, soon()));
    EXPECT_OK(job_worker_keys_read(&worker, &count, &keys, store, spec->id, spec->lease, soon()));
    assert_int_equal(count, 1);
    assert_true(worker[0].left && !worker[0].alive);
    base_free(&worker);
    job_worker_keys_release(&keys);
    job_spec_free(&spec);
    shoal_data_free(&data);
    shoal_store_close(&store);
}

/* The clock moves by hand, and there is no other thread. */
static int start_none(base_thread **out, void (*run)(void *context), void *context)
{
    (void)out, (void)run, (void)context;
    return shoal_fail(SHOAL_SYSTEM, "no thread");
}

int main(void)
{
    base_world world = scripted_world;
    world.start = start_none;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(many_workers_take_a_few_requests, job_setup, job_teardown),
        cmocka_unit_test_setup_teardown(a_worker_that_leaves_meanwhile, job_setup, job_teardown),
    };
    base_world_set(&world);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
