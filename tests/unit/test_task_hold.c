/* What a task is given, from the store or from the machine's cache: workers of one machine fetch the same bytes once,
 * none waits for ever, and what another user could have written is not taken. */
#include "job_support.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/hex.h"
#include "base/world.h"
#include "engine/tasks/task_run.h"

enum { SIZE = 100000, WORKERS = 4 };

static unsigned char content[SIZE];
static const char *const id = "0123456789abcdef";

/* A worker: its own store handle and cache, as processes have. */
typedef struct holder {
    task_means means;
    task_held held;
    pthread_t thread;
    double patience;
    atomic_int asked; /* for how long something may take */
    int status;
} holder;

static int64_t deadline_of(void *context)
{
    holder *self = context;
    atomic_fetch_add(&self->asked, 1);
    return shoal_after(self->patience);
}

static int fill(void **state)
{
    for (int i = 0; i < SIZE; i++)
        content[i] = (unsigned char)(i * 7 + (i >> 8));
    return job_setup(state);
}

static task_bytes datum(void)
{
    task_bytes bytes = {.apart = true, .size = SIZE};
    base_hash_of(bytes.hash, content, SIZE);
    return bytes;
}

/* The client's part: the datum lies in a folder's store. */
static void put_datum(const void *data)
{
    task_bytes bytes = datum();
    shoal_store *store = open_store(at("store"));
    EXPECT_OK(shoal_store_put(store, task_key_data(id, bytes.hash).text, data, SIZE, NULL, NULL, soon()));
    shoal_store_close(&store);
}

static void begin(holder *self, double patience)
{
    *self = (holder){.patience = patience};
    self->means = (task_means){.store = open_store(at("store")), .id = id, .deadline = deadline_of, .context = self};
    EXPECT_OK(job_cache_new(&self->means.cache, at("cache"), 1 << 20));
}

static void end(holder *self)
{
    task_held_release(&self->held);
    job_cache_free(&self->means.cache);
    shoal_store *store = (shoal_store *)self->means.store;
    shoal_store_close(&store);
}

static int64_t fetched(const holder *self)
{
    return shoal_store_counted(self->means.store).bytes_received / SIZE;
}

static void *run_holder(void *argument)
{
    holder *self = argument;
    task_bytes bytes = datum();
    self->status = task_hold(&self->held, &self->means, &bytes);
    return NULL;
}

static void hold(holder *self)
{
    run_holder(self);
    EXPECT_OK(self->status);
    assert_int_equal(self->held.size, SIZE);
    assert_memory_equal(self->held.bytes, content, SIZE);
}

static void take_turn(job_turn *turn, job_cache *cache)
{
    task_bytes bytes = datum();
    assert_true(job_cache_turn(turn, cache, bytes.hash, SIZE));
    assert_true(turn->held);
}

/* All of them wait before the first may fetch. */
static void is_fetched_once(void **state)
{
    (void)state;
    holder worker[WORKERS];
    job_turn turn;
    int64_t all = 0;
    put_datum(content);
    for (int i = 0; i < WORKERS; i++)
        begin(&worker[i], 20);
    take_turn(&turn, worker[0].means.cache);
    for (int i = 0; i < WORKERS; i++)
        assert_int_equal(pthread_create(&worker[i].thread, NULL, run_holder, &worker[i]), 0);
    for (int i = 0; i < WORKERS; i++)
        while (!atomic_load(&worker[i].asked))
            base_sleep_until(base_time_after(base_now(), 0.0005));
    job_turn_end(&turn);
    for (int i = 0; i < WORKERS; i++) {
        pthread_join(worker[i].thread, NULL);
        EXPECT_OK(worker[i].status);
        assert_memory_equal(worker[i].held.bytes, content, SIZE);
        assert_non_null(worker[i].held.cached.data); /* the one copy of the machine */
        assert_null(worker[i].held.blob.data);
        all += fetched(&worker[i]);
    }
    assert_int_equal(all, 1);
    for (int i = 0; i < WORKERS; i++)
        end(&worker[i]);
}

/* A worker that is stopped for good while it has the turn. */
static void waits_no_longer_than_a_request_may_take(void **state)
{
    (void)state;
    holder worker;
    job_turn turn;
    put_datum(content);
    begin(&worker, 0.3);
    take_turn(&turn, worker.means.cache);
    hold(&worker);
    assert_int_equal(fetched(&worker), 1);
    job_turn_end(&turn);
    end(&worker);
}

static void one_that_leaves_does_not_wait(void **state)
{
    (void)state;
    static const _Atomic uint32_t leave = 1;
    holder worker;
    job_turn turn;
    put_datum(content);
    begin(&worker, 1000);
    worker.means.leave = &leave;
    take_turn(&turn, worker.means.cache);
    hold(&worker);
    job_turn_end(&turn);
    end(&worker);
}

static void death_ends_a_turn(void **state)
{
    (void)state;
    int ready[2], status;
    char byte;
    holder worker;
    put_datum(content);
    begin(&worker, 1000);
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        job_turn turn;
        take_turn(&turn, worker.means.cache);
        _exit(write(ready[1], "", 1) == 1 && pause() == 0);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    task_bytes bytes = datum();
    job_turn turn;
    assert_false(job_cache_turn(&turn, worker.means.cache, bytes.hash, SIZE));
    bytes.hash[1] ^= 1; /* the turn of something else */
    assert_true(job_cache_turn(&turn, worker.means.cache, bytes.hash, SIZE));
    job_turn_end(&turn);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, &status, 0), child);
    hold(&worker);
    assert_int_equal(fetched(&worker), 1);
    close(ready[0]);
    close(ready[1]);
    end(&worker);
}

/* What would not be kept is fetched by each, at the same time. */
static void nobody_waits_for_what_is_not_kept(void **state)
{
    (void)state;
    job_cache *small = NULL;
    job_turn first, second;
    task_bytes bytes = datum();
    EXPECT_OK(job_cache_new(&small, at("cache"), SIZE));
    assert_true(job_cache_turn(&first, small, bytes.hash, SIZE));
    assert_true(job_cache_turn(&second, small, bytes.hash, SIZE));
    assert_true(!first.held && !second.held);
    job_cache_free(&small);
    close(open(at("file"), O_CREAT | O_WRONLY, 0600));
    EXPECT_OK(job_cache_new(&small, at("file/cache"), 1 << 20)); /* no folder can be there */
    assert_true(job_cache_turn(&first, small, bytes.hash, SIZE));
    assert_false(first.held);
    job_cache_free(&small);
}

static void hostile_files_are_refused(void **state)
{
    (void)state;
    char name[BASE_HASH_HEX], path[512];
    holder worker;
    task_bytes bytes = datum();
    put_datum(content);
    begin(&worker, 20);
    hold(&worker);
    task_held_release(&worker.held);
    hold(&worker);
    assert_int_equal(fetched(&worker), 1);
    base_hex_write(name, bytes.hash, sizeof bytes.hash);
    snprintf(path, sizeof path, "%s/%s", job_cache_folder(worker.means.cache), name);
    task_held_release(&worker.held);
    assert_int_equal(chmod(path, 0622), 0); /* others could have written it */
    hold(&worker);
    assert_int_equal(fetched(&worker), 2);
    task_held_release(&worker.held);
    int file = open(path, O_WRONLY);
    assert_int_equal(pwrite(file, "?", 1, 70), 1);
    close(file);
    hold(&worker);
    assert_int_equal(fetched(&worker), 3);
    if (geteuid() == 0) { /* another user's */
        task_held_release(&worker.held);
        assert_int_equal(chown(path, 1, 1), 0);
        hold(&worker);
        assert_int_equal(fetched(&worker), 4);
    }
    end(&worker);
}

/* Neither what the store does not have nor what it has instead is kept. */
static void the_store_is_checked(void **state)
{
    (void)state;
    static const unsigned char other[SIZE];
    holder worker;
    begin(&worker, 20);
    run_holder(&worker);
    assert_int_equal(worker.status, SHOAL_ABSENT);
    assert_non_null(strstr(shoal_error(), "the store does not have it any more"));
    put_datum(other);
    run_holder(&worker);
    assert_int_equal(worker.status, SHOAL_BROKEN);
    assert_non_null(strstr(shoal_error(), "the store has something else there"));
    put_datum(content);
    hold(&worker);
    end(&worker);
}

/* The first time it runs, the cache's file shrinks under it. */
static char cached_file[512];
static int runs;

static int read_all(void **bytes, size_t *size, const shoal_task_call *call)
{
    if (runs++ == 0)
        assert_int_equal(truncate(cached_file, 4096), 0);
    *bytes = malloc(call->size);
    memcpy(*bytes, call->bytes, *size = call->size);
    return SHOAL_OK;
}

static int state_of_run(holder *worker, const task_running *running)
{
    void *encoded = NULL;
    size_t size = 0;
    task_outcome outcome;
    EXPECT_OK(task_run(&encoded, &size, &worker->means, running));
    EXPECT_OK(task_outcome_decode(&outcome, encoded, size));
    int state = outcome.state;
    task_outcome_release(&outcome);
    base_free(&encoded);
    return state;
}

static void what_was_read_from_a_damaged_file_is_no_result(void **state)
{
    (void)state;
    static const shoal_task_entry functions[] = {{"read", read_all}, {NULL, NULL}};
    static const _Atomic uint32_t stop;
    char name[BASE_HASH_HEX];
    task_item item = {.function = "read", .argument = datum()};
    const task_running running = {.item = &item, .stop = &stop};
    holder worker;
    put_datum(content);
    begin(&worker, 20);
    worker.means.function = functions;
    worker.means.host = "here";
    worker.means.memory = 1 << 20;
    base_hex_write(name, item.argument.hash, sizeof item.argument.hash);
    snprintf(cached_file, sizeof cached_file, "%s/%s", job_cache_folder(worker.means.cache), name);
    runs = 0;
    assert_int_equal(state_of_run(&worker, &running), TASK_RETURNED);
    assert_int_equal(state_of_run(&worker, &running), SHOAL_TASK_DONE);
    assert_int_equal(fetched(&worker), 2);
    end(&worker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(is_fetched_once, fill, job_teardown),
        cmocka_unit_test_setup_teardown(waits_no_longer_than_a_request_may_take, fill, job_teardown),
        cmocka_unit_test_setup_teardown(one_that_leaves_does_not_wait, fill, job_teardown),
        cmocka_unit_test_setup_teardown(death_ends_a_turn, fill, job_teardown),
        cmocka_unit_test_setup_teardown(nobody_waits_for_what_is_not_kept, fill, job_teardown),
        cmocka_unit_test_setup_teardown(hostile_files_are_refused, fill, job_teardown),
        cmocka_unit_test_setup_teardown(the_store_is_checked, fill, job_teardown),
        cmocka_unit_test_setup_teardown(what_was_read_from_a_damaged_file_is_no_result, fill, job_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
