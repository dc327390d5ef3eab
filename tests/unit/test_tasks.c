/* Clients of tasks and workers, in one process and a store in memory: results, failures, cancelling, giving back,
 * deaths, forgeries, what is left. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include <shoal/task.h>

#include "job_support.h"

#include "base/hex.h"
#include "base/world.h"
#include "engine/tasks/task_wire.h"

static const unsigned char key[SHOAL_TASK_KEY_BYTES] = {42};

/* ---- functions --------------------------------------------------------------------------------------------------- */

static _Atomic uint32_t started, released, stopped;

static int echo(void **bytes, size_t *size, const shoal_task_call *call)
{
    *bytes = malloc(call->size + 1);
    memcpy(*bytes, call->bytes, call->size);
    *size = call->size;
    return SHOAL_OK;
}

static int make_long(void **bytes, size_t *size, const shoal_task_call *call)
{
    *size = 300000;
    *bytes = malloc(*size);
    memset(*bytes, *(const char *)call->bytes, *size);
    return SHOAL_OK;
}

static int fail_always(void **bytes, size_t *size, const shoal_task_call *call)
{
    (void)bytes, (void)size;
    return shoal_fail(SHOAL_INVALID, "no such thing as %lld", (long long)call->number);
}

static int run_until_stopped(void **bytes, size_t *size, const shoal_task_call *call)
{
    (void)bytes, (void)size;
    atomic_store(&started, 1);
    base_wake_word(&started, INT_MAX);
    while (!atomic_load(call->stop) && !atomic_load(&released))
        base_sleep_until(base_time_after(base_now(), 0.002));
    atomic_fetch_add(&stopped, atomic_load(call->stop) != 0);
    return atomic_load(call->stop) ? shoal_fail(SHOAL_STOPPED, "stopped") : SHOAL_OK;
}

/* Its files, one after another, each with its name before it. */
static int join_files(void **bytes, size_t *size, const shoal_task_call *call)
{
    char *joined = NULL;
    size_t room = 0;
    FILE *out = open_memstream(&joined, &room);
    for (int i = 0; i < call->file_count; i++) {
        assert_null(call->files[i].bytes);
        for (int again = 0; again < 2; again++)
            EXPECT_OK(call->open(call, i));
        fprintf(out, "%s ", call->files[i].name);
        fwrite(call->files[i].bytes, 1, call->files[i].size, out);
    }
    assert_int_equal(call->open(call, call->file_count), SHOAL_USAGE);
    fclose(out);
    *bytes = joined;
    *size = room;
    return SHOAL_OK;
}

static const shoal_task_entry functions[] = {{"echo", echo},       {"long", make_long},         {"fail", fail_always},
                                             {"join", join_files}, {"wait", run_until_stopped}, {NULL, NULL}};

/* ---- a worker ---------------------------------------------------------------------------------------------------- */

typedef struct helper {
    shoal_store *store;
    shoal_worker *worker;
    pthread_t thread;
    int status;
    char said[4096];
} helper;

static void hear_line(void *context, const char *line)
{
    helper *self = context;
    size_t have = strlen(self->said);
    snprintf(self->said + have, sizeof self->said - have, "%s\n", line);
}

static void *run_worker(void *context)
{
    helper *self = context;
    self->status = shoal_worker_run(self->worker);
    return NULL;
}

/* Of one client, or of all when `id` is NULL. */
static void begin_worker(helper *self, const char *id, const unsigned char *its_key, int slots)
{
    static const shoal_algorithm *const none[] = {NULL};
    self->said[0] = '\0';
    EXPECT_OK(shoal_store_open(&self->store, "mem:tasks", NULL, SHOAL_NEVER));
    EXPECT_OK(shoal_worker_new(&self->worker, self->store,
                               &(shoal_worker_options){.algorithms = none,
                                                       .job = id,
                                                       .slots = slots,
                                                       .task_key = its_key,
                                                       .functions = functions,
                                                       .log = hear_line,
                                                       .log_context = self}));
    assert_int_equal(pthread_create(&self->thread, NULL, run_worker, self), 0);
}

static void end_worker(helper *self)
{
    shoal_worker_leave(self->worker, "the test is over");
    pthread_join(self->thread, NULL);
    shoal_worker_free(&self->worker);
    shoal_store_close(&self->store);
}

static shoal_tasks *open_client(shoal_store **store)
{
    shoal_tasks *tasks = NULL;
    EXPECT_OK(shoal_store_open(store, "mem:tasks", NULL, SHOAL_NEVER));
    EXPECT_OK(shoal_tasks_open(&tasks, *store, &(shoal_tasks_options){.key = key, .lease = 1}));
    return tasks;
}

static int64_t submit(shoal_tasks *tasks, const char *function, const void *bytes, size_t size)
{
    int64_t number = -1;
    EXPECT_OK(shoal_task_submit(&number, tasks, &(shoal_task){.function = function, .bytes = bytes, .size = size}));
    return number;
}

static shoal_task_result *await_task(shoal_tasks *tasks, int64_t number)
{
    shoal_task_result *result = NULL;
    EXPECT_OK(shoal_task_wait(&result, tasks, number, shoal_after(60)));
    assert_int_equal(result->number, number);
    return result;
}

/* Closes the client, after which nothing of it may be in the store but the tombstone. */
static void close_client(shoal_tasks **tasks, shoal_store **store)
{
    shoal_listing page = {0};
    EXPECT_OK(shoal_tasks_close(tasks));
    EXPECT_OK(shoal_store_list(*store, "", NULL, &page, SHOAL_NEVER));
    for (size_t i = 0; i < page.count; i++)
        if (strncmp(page.entries[i].key, "gone/", 5) != 0)
            fail_msg("%s is left", page.entries[i].key);
    shoal_listing_release(&page);
    shoal_store_close(store);
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

static void test_many_small_ones(void **state)
{
    enum { COUNT = 3000 };
    static bool seen[COUNT];
    shoal_store *store = NULL;
    helper helpers[2];
    shoal_tasks *tasks = open_client(&store);
    shoal_task_result *result = NULL;
    (void)state;
    memset(seen, 0, sizeof seen);
    begin_worker(&helpers[0], shoal_tasks_id(tasks), key, 2);
    begin_worker(&helpers[1], NULL, key, 1);
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(submit(tasks, "echo", &i, sizeof i), i);
    for (int i = 0; i < COUNT; i++) {
        int number;
        EXPECT_OK(shoal_task_next(&result, tasks, shoal_after(60)));
        assert_int_equal(result->state, SHOAL_TASK_DONE);
        assert_int_equal(result->size, sizeof number);
        memcpy(&number, result->bytes, sizeof number);
        assert_int_equal(number, result->number);
        assert_false(seen[number]);
        seen[number] = true;
        shoal_task_result_free(&result);
    }
    assert_int_equal(shoal_task_next(&result, tasks, shoal_after(60)), SHOAL_ABSENT);
    shoal_tasks_counts counts = shoal_tasks_count(tasks);
    assert_int_equal(counts.fetched, COUNT);
    assert_int_equal(counts.forged, 0);
    close_client(&tasks, &store);
    end_worker(&helpers[0]);
    end_worker(&helpers[1]);
}

static void test_large_arguments_and_results(void **state)
{
    enum { SIZE = 1 << 20 };
    shoal_store *store = NULL;
    helper helper;
    shoal_tasks *tasks = open_client(&store);
    char *bytes = malloc(SIZE);
    (void)state;
    for (int i = 0; i < SIZE; i++)
        bytes[i] = (char)(i * 7 + i / 251);
    begin_worker(&helper, shoal_tasks_id(tasks), key, 2);
    int64_t echoed[4], made = submit(tasks, "long", "x", 1);
    for (int i = 0; i < 4; i++)
        echoed[i] = submit(tasks, "echo", bytes, SIZE);
    for (int i = 0; i < 4; i++) {
        shoal_task_result *result = await_task(tasks, echoed[i]);
        assert_int_equal(result->size, SIZE);
        assert_memory_equal(result->bytes, bytes, SIZE);
        shoal_task_result_free(&result);
    }
    shoal_task_result *result = await_task(tasks, made);
    assert_int_equal(result->size, 300000);
    assert_int_equal(((char *)result->bytes)[299999], 'x');
    shoal_task_result_free(&result);
    close_client(&tasks, &store);
    end_worker(&helper);
    free(bytes);
}

static int count_data(shoal_store *store)
{
    shoal_listing page = {0};
    int count = 0;
    EXPECT_OK(shoal_store_list(store, "jobs/", NULL, &page, SHOAL_NEVER));
    for (size_t i = 0; i < page.count; i++)
        count += strstr(page.entries[i].key, "/data/") != NULL;
    shoal_listing_release(&page);
    return count;
}

/* However many tasks share a file, it is in the store once: a large one until nobody needs it, a small one, which more
 * may need, until the end. */
static void test_functions_share_files(void **state)
{
    enum { LARGE = 100000, TASKS = 20, DIGITS = 64 };
    char *large = calloc(1, LARGE);
    shoal_store *store = NULL;
    helper helper;
    shoal_tasks *tasks = open_client(&store);
    const shoal_task_file files[] = {{NULL, "small", 5}, {NULL, large, LARGE}, {"is not looked at", "", 0}};
    const shoal_task task = {.function = "join", .files = files, .file_count = 3};
    int64_t number[TASKS];
    unsigned char hash[BASE_HASH_SIZE];
    char name[BASE_HASH_HEX];
    (void)state;
    base_hash_of(hash, "small", 5);
    base_hex_write(name, hash, sizeof hash);
    for (int i = 0; i < TASKS; i++)
        EXPECT_OK(shoal_task_submit(&number[i], tasks, &task));
    assert_int_equal(count_data(store), 3);
    begin_worker(&helper, shoal_tasks_id(tasks), key, 3);
    for (int i = 0; i < TASKS; i++) {
        shoal_task_result *result = await_task(tasks, number[i]);
        assert_int_equal(result->state, SHOAL_TASK_DONE);
        assert_int_equal(result->size, 3 * (DIGITS + 1) + 5 + LARGE);
        assert_memory_equal(result->bytes, name, DIGITS);
        assert_memory_equal((const char *)result->bytes + DIGITS, " small", 6);
        shoal_task_result_free(&result);
    }
    assert_int_equal(count_data(store), 2);
    EXPECT_OK(shoal_task_submit(&number[0], tasks, &task));
    shoal_task_result *result = await_task(tasks, number[0]);
    assert_int_equal(result->state, SHOAL_TASK_DONE);
    shoal_task_result_free(&result);
    close_client(&tasks, &store);
    end_worker(&helper);
    free(large);
}

static void test_failures_are_results(void **state)
{
    shoal_store *store = NULL;
    helper helper;
    shoal_tasks *tasks = open_client(&store);
    shoal_task_result *result = NULL;
    (void)state;
    begin_worker(&helper, shoal_tasks_id(tasks), key, 1);
    result = await_task(tasks, submit(tasks, "fail", "", 0));
    assert_int_equal(result->state, SHOAL_TASK_FAILED);
    assert_int_equal(result->status, SHOAL_INVALID);
    assert_string_equal(result->message, "no such thing as 0");
    shoal_task_result_free(&result);
    result = await_task(tasks, submit(tasks, "nowhere", "", 0));
    assert_int_equal(result->state, SHOAL_TASK_FAILED);
    assert_non_null(strstr(result->message, "has a function 'nowhere'"));
    shoal_task_result_free(&result);
    assert_int_equal(shoal_task_wait(&result, tasks, 0, SHOAL_NEVER), SHOAL_ABSENT); /* it was fetched */
    assert_int_equal(shoal_task_wait(&result, tasks, 77, SHOAL_NEVER), SHOAL_ABSENT);
    close_client(&tasks, &store);
    end_worker(&helper);
}

static void test_what_can_be_no_task(void **state)
{
    static const char *const no_words[] = {"", NULL}, *const words[] = {"true", NULL}, *const bad[] = {"x", NULL},
                             *const up[] = {"../x", NULL};
    const shoal_task_file outside = {"/etc/passwd", "", 0};
    const shoal_task refused[] = {
        {0},
        {.function = "a", .command = words},
        {.function = ""},
        {.command = no_words},
        {.command = words, .timeout = -1},
        {.command = words, .environment = bad},
        {.command = words, .outputs = up},
        {.command = words, .files = &outside, .file_count = 1},
        {.function = "echo", .size = 1},
        {.function = "echo", .outputs = words},
    };
    shoal_store *store = NULL;
    shoal_tasks *tasks = open_client(&store);
    int64_t number;
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        assert_int_equal(shoal_task_submit(&number, tasks, &refused[i]), SHOAL_USAGE);
    assert_int_equal(shoal_tasks_count(tasks).submitted, 0);
    close_client(&tasks, &store);
}

static void test_cancelling(void **state)
{
    shoal_store *store = NULL;
    helper helper;
    shoal_tasks *tasks = open_client(&store);
    shoal_task_result *result = NULL;
    (void)state;
    int64_t early = submit(tasks, "echo", "", 0);
    EXPECT_OK(shoal_task_cancel(tasks, early, SHOAL_NEVER)); /* nobody has it */
    assert_int_equal(shoal_task_cancel(tasks, early, SHOAL_NEVER), SHOAL_CONFLICT);
    atomic_store(&started, 0);
    atomic_store(&released, 0);
    begin_worker(&helper, shoal_tasks_id(tasks), key, 1);
    int64_t running = submit(tasks, "wait", "", 0);
    while (!atomic_load(&started))
        base_wait_word(&started, 0, base_time_after(base_now(), 60));
    EXPECT_OK(shoal_task_cancel(tasks, running, SHOAL_NEVER));
    result = await_task(tasks, running);
    assert_int_equal(result->state, SHOAL_TASK_CANCELLED);
    shoal_task_result_free(&result);
    result = await_task(tasks, early);
    assert_int_equal(result->state, SHOAL_TASK_CANCELLED);
    shoal_task_result_free(&result);
    int64_t after = submit(tasks, "echo", "q", 1); /* the thread that ran it is free again */
    result = await_task(tasks, after);
    assert_int_equal(result->state, SHOAL_TASK_DONE);
    shoal_task_result_free(&result);
    assert_int_equal(shoal_task_cancel(tasks, after, SHOAL_NEVER), SHOAL_ABSENT);
    close_client(&tasks, &store);
    end_worker(&helper);
}

static void test_a_function_may_take_so_long(void **state)
{
    shoal_store *store = NULL;
    helper helper;
    shoal_tasks *tasks = open_client(&store);
    int64_t number;
    (void)state;
    atomic_store(&released, 0);
    atomic_store(&stopped, 0);
    begin_worker(&helper, shoal_tasks_id(tasks), key, 1);
    EXPECT_OK(shoal_task_submit(&number, tasks, &(shoal_task){.function = "wait", .timeout = 0.05}));
    shoal_task_result *result = await_task(tasks, number);
    assert_int_equal(result->state, SHOAL_TASK_FAILED);
    assert_string_equal(result->message, "the function took longer than 0.05 seconds");
    shoal_task_result_free(&result);
    EXPECT_OK(shoal_task_submit(&number, tasks, &(shoal_task){.function = "echo", .timeout = 1000}));
    result = await_task(tasks, number); /* by the same thread, which is free again */
    assert_int_equal(result->state, SHOAL_TASK_DONE);
    assert_int_equal(atomic_load(&stopped), 1);
    shoal_task_result_free(&result);
    close_client(&tasks, &store);
    end_worker(&helper);
}

/* Also where no thread is left that would see it in a listing. */
static void test_closing_stops_what_runs(void **state)
{
    shoal_store *store = NULL;
    helper helper;
    shoal_tasks *tasks = open_client(&store);
    (void)state;
    atomic_store(&started, 0);
    atomic_store(&released, 0);
    atomic_store(&stopped, 0);
    begin_worker(&helper, shoal_tasks_id(tasks), key, 1);
    submit(tasks, "wait", "", 0);
    while (!atomic_load(&started))
        base_wait_word(&started, 0, base_time_after(base_now(), 60));
    close_client(&tasks, &store);
    assert_int_equal(atomic_load(&stopped), 1);
    end_worker(&helper);
}

/* One that leaves in the middle of a task gives it back, so that another runs it at once. */
static void test_leaving_is_no_death(void **state)
{
    shoal_store *store = NULL;
    helper first, second;
    shoal_tasks *tasks = open_client(&store);
    (void)state;
    atomic_store(&started, 0);
    atomic_store(&released, 0);
    begin_worker(&first, shoal_tasks_id(tasks), key, 1);
    int64_t number = submit(tasks, "wait", "", 0);
    while (!atomic_load(&started))
        base_wait_word(&started, 0, base_time_after(base_now(), 60));
    end_worker(&first);
    atomic_store(&released, 1);
    begin_worker(&second, shoal_tasks_id(tasks), key, 1);
    shoal_task_result *result = await_task(tasks, number);
    assert_int_equal(result->state, SHOAL_TASK_DONE);
    assert_int_equal(result->deaths, 0);
    shoal_task_result_free(&result);
    close_client(&tasks, &store);
    end_worker(&second);
}

/* Claims of workers that are dead, which this test puts in their place. */
static void put_dead_claim(shoal_store *store, const shoal_tasks *tasks, const task_claim *claim)
{
    const task_seal seal = {shoal_tasks_id(tasks), key};
    void *bytes = NULL;
    size_t size = 0;
    EXPECT_OK(task_claim_encode(&bytes, &size, claim, &seal, 0));
    EXPECT_OK(shoal_store_put_framed(store, task_key_of(seal.id, TASK_TAKE, 0).text, TASK_KIND_TAKE, bytes, size, NULL,
                                     NULL, SHOAL_NEVER));
    base_free(&bytes);
}

static void test_the_claim_of_a_dead_worker_is_inherited(void **state)
{
    shoal_store *store = NULL;
    helper helper;
    shoal_tasks *tasks = open_client(&store);
    (void)state;
    int64_t number = submit(tasks, "echo", "1", 1);
    put_dead_claim(store, tasks, &(task_claim){.worker = 99, .index = -1, .common = 1});
    begin_worker(&helper, shoal_tasks_id(tasks), key, 1);
    shoal_task_result *result = await_task(tasks, number);
    assert_int_equal(result->state, SHOAL_TASK_DONE);
    assert_int_equal(result->deaths, 2);
    shoal_task_result_free(&result);
    close_client(&tasks, &store);
    end_worker(&helper);
}

static void test_three_deaths_are_enough(void **state)
{
    shoal_store *store = NULL;
    helper helper;
    shoal_tasks *tasks = open_client(&store);
    (void)state;
    int64_t number = submit(tasks, "echo", "1", 1);
    put_dead_claim(store, tasks, &(task_claim){.worker = 99, .index = 0, .common = 1, .alone = 1});
    begin_worker(&helper, shoal_tasks_id(tasks), key, 1);
    shoal_task_result *result = await_task(tasks, number);
    assert_int_equal(result->state, SHOAL_TASK_POISON);
    assert_int_equal(result->deaths, 3);
    assert_non_null(strstr(result->message, "3 workers died"));
    shoal_task_result_free(&result);
    close_client(&tasks, &store);
    end_worker(&helper);
}

static void test_a_worker_without_the_key_runs_nothing(void **state)
{
    static const unsigned char other[SHOAL_TASK_KEY_BYTES] = {43};
    shoal_store *store = NULL;
    helper stranger, helper;
    shoal_tasks *tasks = open_client(&store);
    (void)state;
    int64_t number = submit(tasks, "echo", "1", 1);
    begin_worker(&stranger, shoal_tasks_id(tasks), other, 1);
    pthread_join(stranger.thread, NULL);
    assert_int_equal(stranger.status, SHOAL_INVALID);
    shoal_worker_free(&stranger.worker);
    shoal_store_close(&stranger.store);
    begin_worker(&stranger, shoal_tasks_id(tasks), NULL, 1);
    pthread_join(stranger.thread, NULL);
    assert_int_equal(stranger.status, SHOAL_INVALID);
    shoal_worker_free(&stranger.worker);
    shoal_store_close(&stranger.store);
    begin_worker(&helper, shoal_tasks_id(tasks), key, 1);
    shoal_task_result *result = await_task(tasks, number);
    assert_int_equal(result->state, SHOAL_TASK_DONE);
    shoal_task_result_free(&result);
    close_client(&tasks, &store);
    end_worker(&helper);
}

/* Tasks and results that somebody without the key has written. */
static void test_forgeries_are_refused(void **state)
{
    static const unsigned char other[SHOAL_TASK_KEY_BYTES] = {43};
    shoal_store *store = NULL;
    helper helper;
    shoal_tasks *tasks = open_client(&store);
    const char *id = shoal_tasks_id(tasks);
    task_slots slots;
    void *bytes = NULL, *item = NULL;
    size_t size = 0, item_size = 0;
    (void)state;
    const task_outcome outcome = {
        .state = SHOAL_TASK_DONE, .output = {.size = 6, .inside = "forged"}, .host = "h", .message = ""};
    EXPECT_OK(task_slots_new(&slots, 1));
    EXPECT_OK(task_outcome_encode(&slots.slot[0].bytes, &slots.slot[0].size, &outcome));
    EXPECT_OK(task_slots_encode(&bytes, &size, &slots, &(task_seal){id, other}, 0));
    int64_t number = submit(tasks, "echo", "true", 4);
    EXPECT_OK(shoal_store_put_framed(store, task_key_of(id, TASK_DONE, 0).text, TASK_KIND_DONE, bytes, size, NULL, NULL,
                                     SHOAL_NEVER));
    base_free(&bytes);
    for (int i = 0; i < 6000 && shoal_tasks_count(tasks).forged == 0; i++)
        base_sleep_until(base_time_after(base_now(), 0.01));
    EXPECT_OK(task_item_encode(&item, &item_size, 0, &(shoal_task){.function = "wait"}, NULL));
    EXPECT_OK(
        task_bundle_encode(&bytes, &size, (const void *const[]){item}, &item_size, 1, &(task_seal){id, other}, 5));
    EXPECT_OK(shoal_store_put_framed(store, task_key_of(id, TASK_WORK, 5).text, TASK_KIND_WORK, bytes, size, NULL, NULL,
                                     SHOAL_NEVER));
    base_free(&bytes);
    base_free(&item);
    atomic_store(&started, 0);
    begin_worker(&helper, id, key, 1);
    shoal_task_result *result = await_task(tasks, number);
    assert_int_equal(result->size, 4);
    assert_memory_equal(result->bytes, "true", 4);
    shoal_task_result_free(&result);
    assert_true(shoal_tasks_count(tasks).forged > 0);
    close_client(&tasks, &store);
    end_worker(&helper);
    assert_int_equal(atomic_load(&started), 0);
    task_slots_release(&slots);
}

/* What is too large to travel with its result is known by its hash: something else in its place is refused, too. */
static void test_a_forged_large_result_is_refused(void **state)
{
    shoal_store *store = NULL;
    helper helper;
    shoal_listing page = {0};
    shoal_tasks *tasks = open_client(&store);
    (void)state;
    begin_worker(&helper, shoal_tasks_id(tasks), key, 1);
    int64_t number = submit(tasks, "long", "x", 1);
    for (int i = 0; i < 6000 && shoal_tasks_count(tasks).ended == 0; i++)
        base_sleep_until(base_time_after(base_now(), 0.01));
    EXPECT_OK(shoal_store_list(store, job_key_of(shoal_tasks_id(tasks), "out/").text, NULL, &page, SHOAL_NEVER));
    assert_int_equal(page.count, 1);
    EXPECT_OK(shoal_store_put(store, page.entries[0].key, "forged", 6, NULL, NULL, SHOAL_NEVER));
    shoal_task_result *result = await_task(tasks, number);
    assert_int_equal(result->size, 300000);
    shoal_task_result_free(&result);
    assert_int_equal(shoal_tasks_count(tasks).forged, 1);
    shoal_listing_release(&page);
    close_client(&tasks, &store);
    end_worker(&helper);
}

/* A client that is gone without having closed: what it left is removed by a worker that serves all. */
static void test_what_a_dead_client_left_is_removed(void **state)
{
    shoal_store *store = NULL;
    helper helper;
    const task_spec spec = {.version = SHOAL_VERSION, .lease = 1, .keep = 1e-9};
    const task_seal seal = {"tasks-gone", key};
    void *bytes = NULL;
    size_t size = 0;
    shoal_listing page = {0};
    (void)state;
    EXPECT_OK(shoal_store_open(&store, "mem:tasks", NULL, SHOAL_NEVER));
    EXPECT_OK(task_spec_encode(&bytes, &size, &spec, &seal));
    EXPECT_OK(
        shoal_store_put_framed(store, "jobs/tasks-gone/tasks", TASK_KIND_SPEC, bytes, size, NULL, NULL, SHOAL_NEVER));
    base_free(&bytes);
    EXPECT_OK(shoal_store_put(store, "jobs/tasks-gone/todo/0000000000000003", "?", 1, NULL, NULL, SHOAL_NEVER));
    EXPECT_OK(shoal_store_put(store, "open/tasks-gone", "", 0, NULL, NULL, SHOAL_NEVER));
    begin_worker(&helper, NULL, key, 1);
    for (int i = 0; i < 6000; i++) {
        EXPECT_OK(shoal_store_list(store, "jobs/", NULL, &page, SHOAL_NEVER));
        if (page.count == 0 && !page.more)
            break;
        base_sleep_until(base_time_after(base_now(), 0.01));
        shoal_listing_release(&page);
    }
    assert_int_equal(page.count, 0);
    shoal_listing_release(&page);
    end_worker(&helper);
    shoal_store_close(&store);
}

static void test_commands(void **state)
{
    static const char *const sort[] = {"sort", "-n", NULL}, *const absent[] = {"/no/such/program", NULL},
                             *const both[] = {"sh", "-c", "cat in/a; echo \"$V\" > out; echo no >&2; exit 3", NULL},
                             *const flood[] = {"sh", "-c", "yes >&2 & yes | head -c 3000000 >&2; kill $!; echo done",
                                               NULL},
                             *const asleep[] = {"sleep", "600", NULL}, *const variables[] = {"V=value", NULL},
                             *const outputs[] = {"out", "never", NULL};
    const shoal_task_file file = {"in/a", "content", 7};
    const shoal_task task[] = {
        {.command = sort, .bytes = "2\n10\n1\n", .size = 7},
        {.command = absent},
        {.command = both, .environment = variables, .files = &file, .file_count = 1, .outputs = outputs},
        {.command = flood},
        {.command = asleep, .timeout = 0.05},
    };
    enum { COUNT = sizeof task / sizeof *task };
    shoal_store *store = NULL;
    helper helper;
    shoal_tasks *tasks = open_client(&store);
    shoal_task_result *result[COUNT];
    int64_t number[COUNT];
    (void)state;
    begin_worker(&helper, shoal_tasks_id(tasks), key, 2);
    for (int i = 0; i < COUNT; i++)
        EXPECT_OK(shoal_task_submit(&number[i], tasks, &task[i]));
    for (int i = 0; i < COUNT; i++)
        result[i] = await_task(tasks, number[i]);
    assert_int_equal(result[0]->state, SHOAL_TASK_DONE);
    assert_string_equal(result[0]->bytes, "1\n2\n10\n");
    assert_int_equal(result[1]->state, SHOAL_TASK_FAILED);
    assert_int_equal(result[1]->exit_code, -1);
    assert_non_null(strstr(result[1]->message, "'/no/such/program' can't be started: No such file"));
    assert_int_equal(result[2]->state, SHOAL_TASK_FAILED);
    assert_int_equal(result[2]->exit_code, 3);
    assert_string_equal(result[2]->bytes, "content");
    assert_string_equal(result[2]->message, "the command exited with code 3; the end of its standard error: no\n");
    assert_int_equal(result[2]->file_count, 1);
    assert_string_equal(result[2]->files[0].name, "out");
    assert_string_equal(result[2]->files[0].bytes, "value\n");
    assert_int_equal(result[3]->state, SHOAL_TASK_DONE);
    assert_string_equal(result[3]->bytes, "done\n");
    assert_true(strlen(result[3]->message) < 4096);
    assert_int_equal(result[4]->state, SHOAL_TASK_FAILED);
    assert_non_null(strstr(result[4]->message, "longer than 0.05 seconds"));
    for (int i = 0; i < COUNT; i++)
        shoal_task_result_free(&result[i]);
    close_client(&tasks, &store);
    end_worker(&helper);
}

/* In a program that lets the kernel forget its children: what can't be known is no success. */
static void test_commands_of_who_ignores_their_ends(void **state)
{
    static const char *const words[] = {"false", NULL};
    shoal_store *store = NULL;
    helper helper;
    int64_t number;
    shoal_tasks *tasks = open_client(&store);
    (void)state;
    void (*usual)(int) = signal(SIGCHLD, SIG_IGN);
    begin_worker(&helper, shoal_tasks_id(tasks), key, 1);
    EXPECT_OK(shoal_task_submit(&number, tasks, &(shoal_task){.command = words}));
    shoal_task_result *result = await_task(tasks, number);
    assert_int_equal(result->state, SHOAL_TASK_FAILED);
    assert_non_null(strstr(result->message, "SIGCHLD"));
    shoal_task_result_free(&result);
    close_client(&tasks, &store);
    end_worker(&helper);
    signal(SIGCHLD, usual);
}

/* Short tasks that travel with a long one do not wait for it. */
static void test_a_long_task_keeps_no_others(void **state)
{
    enum { COUNT = 400 };
    shoal_store *store = NULL;
    helper helper;
    shoal_tasks *tasks = open_client(&store);
    int64_t number[COUNT], slow = -1;
    (void)state;
    atomic_store(&started, 0);
    atomic_store(&released, 0);
    begin_worker(&helper, shoal_tasks_id(tasks), key, 2);
    for (int i = 0; i < COUNT; i++) { /* so that the client thinks that all are short */
        number[i] = submit(tasks, "echo", "", 0);
        if (i == COUNT / 2)
            slow = submit(tasks, "wait", "", 0);
    }
    for (int i = 0; i < COUNT; i++) {
        shoal_task_result *result = await_task(tasks, number[i]);
        assert_int_equal(result->state, SHOAL_TASK_DONE);
        shoal_task_result_free(&result);
    }
    atomic_store(&released, 1);
    shoal_task_result *result = await_task(tasks, slow);
    assert_int_equal(result->state, SHOAL_TASK_DONE);
    shoal_task_result_free(&result);
    close_client(&tasks, &store);
    end_worker(&helper);
}

/* Memory of this process that a dump would have. */
typedef struct region {
    unsigned long from, to;
} region;

static int list_dumped(region *out, int most)
{
    char line[512], rights[8] = "";
    region now = {0}, next;
    int count = 0;
    FILE *maps = fopen("/proc/self/smaps", "r");
    assert_non_null(maps);
    while (fgets(line, sizeof line, maps)) {
        if (sscanf(line, "%lx-%lx %7s", &next.from, &next.to, rights) == 3)
            now = next;
        else if (strncmp(line, "VmFlags:", 8) == 0 && !strstr(line, " dd") && strncmp(rights, "rw", 2) == 0 &&
                 now.to - now.from < (64ul << 20) && count < most) /* the sanitizer's shadows are larger */
            out[count++] = now;
    }
    fclose(maps);
    return count;
}

static bool holds(int memory, const region *place, const unsigned char *bytes, size_t size)
{
    size_t all = place->to - place->from;
    char *copy = malloc(all);
    ssize_t got = pread(memory, copy, all, (off_t)place->from);
    bool found = got > 0 && memmem(copy, (size_t)got, bytes, size) != NULL;
    free(copy);
    return found;
}

static void test_the_key_is_not_dumped(void **state)
{
    static region place[1024];
    static unsigned char dumped[] = "what a dump of this test would have";
    bool found = false;
    shoal_store *store = NULL;
    shoal_tasks *tasks = NULL;
    int memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    (void)state;
    EXPECT_OK(shoal_store_open(&store, "mem:tasks", NULL, SHOAL_NEVER));
    EXPECT_OK(shoal_tasks_open(&tasks, store, NULL));
    submit(tasks, "echo", "", 0);
    assert_true(memory >= 0);
    int count = list_dumped(place, 1024);
    for (int i = 0; i < count; i++) {
        assert_false(holds(memory, &place[i], shoal_tasks_key(tasks), SHOAL_TASK_KEY_BYTES));
        found |= holds(memory, &place[i], dumped, sizeof dumped);
    }
    assert_true(found);
    close(memory);
    close_client(&tasks, &store);
}

static void test_a_client_that_was_told_of_a_failure(void **state)
{
    shoal_store *store = NULL;
    shoal_tasks *tasks = open_client(&store);
    shoal_task_result *result = NULL;
    int64_t number;
    (void)state;
    submit(tasks, "echo", "", 0);
    assert_int_equal(shoal_task_next(&result, tasks, shoal_after(0.01)), SHOAL_AGAIN);
    shoal_tasks_fail(tasks, SHOAL_INVALID, "no worker is left");
    EXPECT_FAIL(shoal_task_next(&result, tasks, SHOAL_NEVER), SHOAL_INVALID, "no worker is left");
    EXPECT_FAIL(shoal_task_submit(&number, tasks, &(shoal_task){.function = "echo"}), SHOAL_INVALID,
                "no worker is left");
    close_client(&tasks, &store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many_small_ones),
        cmocka_unit_test(test_large_arguments_and_results),
        cmocka_unit_test(test_functions_share_files),
        cmocka_unit_test(test_failures_are_results),
        cmocka_unit_test(test_what_can_be_no_task),
        cmocka_unit_test(test_cancelling),
        cmocka_unit_test(test_a_function_may_take_so_long),
        cmocka_unit_test(test_closing_stops_what_runs),
        cmocka_unit_test(test_leaving_is_no_death),
        cmocka_unit_test(test_the_claim_of_a_dead_worker_is_inherited),
        cmocka_unit_test(test_three_deaths_are_enough),
        cmocka_unit_test(test_a_worker_without_the_key_runs_nothing),
        cmocka_unit_test(test_forgeries_are_refused),
        cmocka_unit_test(test_a_forged_large_result_is_refused),
        cmocka_unit_test(test_what_a_dead_client_left_is_removed),
        cmocka_unit_test(test_commands),
        cmocka_unit_test(test_commands_of_who_ignores_their_ends),
        cmocka_unit_test(test_a_long_task_keeps_no_others),
        cmocka_unit_test(test_the_key_is_not_dumped),
        cmocka_unit_test(test_a_client_that_was_told_of_a_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
