/* A worker that is told to leave is gone within a second, whatever it waits for: the next model, the pieces of others,
 * any job at all; at stores that wake, that have to be asked, and that are far.
 *
 * One thread, and a clock that moves when somebody waits.  The word to leave comes at a moment of that clock, in the
 * middle of whatever the worker does then. */
#include "base/world.h"
#include "job_support.h"

static int64_t clock_now, leave_at, left_at;
static shoal_worker *worker;

static void tell_to_leave(void)
{
    left_at = clock_now;
    leave_at = INT64_MAX;
    shoal_worker_leave(worker, "as told");
}

/* Time passes until a moment, and the word to leave comes on the way. */
static void pass_until(int64_t until)
{
    if (leave_at <= until) {
        clock_now = leave_at > clock_now ? leave_at : clock_now;
        tell_to_leave();
    }
    clock_now = until > clock_now ? until : clock_now;
}

static int64_t now_here(void)
{
    return clock_now;
}

/* Who waits on the very word that leaving changes is woken at once. */
static void wait_here(const _Atomic uint32_t *word, uint32_t value, int64_t until)
{
    if (leave_at < until) {
        pass_until(leave_at);
        if (atomic_load(word) != value)
            return;
    }
    pass_until(until);
}

static void wake_here(const _Atomic uint32_t *word, int most)
{
    (void)word, (void)most;
}

static void random_here(void *bytes, size_t size)
{
    static unsigned char chance;
    memset(bytes, ++chance, size);
}

/* A second thread would only renew the worker's record, or fetch what the first can fetch: it never gets to run. */
static int start_here(base_thread **out, void (*run)(void *context), void *context)
{
    (void)run, (void)context;
    *out = (base_thread *)&clock_now;
    return SHOAL_OK;
}

static void join_here(base_thread *thread)
{
    (void)thread;
}

static const base_world world = {.now = now_here,
                                 .wait = wait_here,
                                 .wake = wake_here,
                                 .random = random_here,
                                 .start = start_here,
                                 .join = join_here};

/* ---- a learner --------------------------------------------------------------------------------------------------- */

static double map_takes; /* seconds of a grain */
static int mapped;       /* grains since the word to leave */

static int map_slowly(shoal_partial *partial, const shoal_round *round, const void *prepared, const shoal_grain *grain,
                      const shoal_scratch *scratch)
{
    (void)partial, (void)round, (void)prepared, (void)grain, (void)scratch;
    mapped += left_at > 0;
    pass_until(clock_now + (int64_t)(map_takes * 1e9));
    return SHOAL_OK;
}

static const shoal_algorithm slow = {
    ANY_ROUND,         .name = "slow",       .summary = "maps slowly", .start = start_toy, .scratch_bytes = scratch_toy,
    .map = map_slowly, .update = update_toy, .kernel_free = true};
static const shoal_algorithm *const known[] = {&slow, NULL};

/* ---- stores ------------------------------------------------------------------------------------------------------ */

typedef enum store_kind { NEAR, POLLED, FAR, STORE_KINDS } store_kind;

static struct store_class class;

static shoal_store *open_kind(store_kind kind)
{
    shoal_store *store = open_store("mem:");
    class = *store->class;
    class.wakes = kind != POLLED;
    class.far = kind == FAR;
    store->class = &class;
    return store;
}

/* Seconds from the word to leave, which comes that late, to the worker's end. */
static double leave_after(double seconds, store_kind kind, unsigned roles, bool any)
{
    shoal_store *store = NULL;
    shoal_data *data = wrapped();
    char id[SHOAL_JOB_ID_BYTES];
    clock_now = 1000000000;
    leave_at = INT64_MAX;
    left_at = mapped = 0;
    store = open_kind(kind);
    if (!any)
        EXPECT_OK(shoal_job_submit(id, store, &slow, NULL, data, NULL,
                                   &(shoal_job_options){.slices = 2, .rows_per_grain = 10, .lease = 3000}));
    EXPECT_OK(shoal_worker_new(
        &worker, store,
        &(shoal_worker_options){
            .algorithms = known, .job = any ? NULL : id, .slots = 1, .roles = roles, .memory = INT64_C(1) << 30}));
    leave_at = clock_now + (int64_t)(seconds * 1e9);
    assert_int_equal(shoal_worker_run(worker), SHOAL_STOPPED);
    assert_true(left_at > 0);
    shoal_worker_free(&worker);
    shoal_store_close(&store);
    shoal_data_free(&data);
    return (double)(clock_now - left_at) * 1e-9;
}

/* At many moments, of which some are at the beginning of a long wait. */
static void expect_quick(store_kind kind, unsigned roles, bool any)
{
    for (int i = 0; i < 60; i++) {
        double at = 40 + 0.37 * i + (i % 3) * 300, took = leave_after(at, kind, roles, any);
        if (took > 1)
            fail_msg("told to leave after %g s, the worker took %g s", at, took);
    }
}

/* Who only maps waits for a model that nobody makes. */
static void while_waiting_for_a_model(void **state)
{
    (void)state;
    for (int kind = 0; kind < STORE_KINDS; kind++)
        expect_quick((store_kind)kind, SHOAL_ROLE_MAP, false);
}

/* Who only leads waits for pieces that nobody makes. */
static void while_waiting_for_pieces(void **state)
{
    (void)state;
    for (int kind = 0; kind < STORE_KINDS; kind++)
        expect_quick((store_kind)kind, SHOAL_ROLE_LAST, false);
}

static void while_waiting_for_any_job(void **state)
{
    (void)state;
    for (int kind = 0; kind < STORE_KINDS; kind++)
        expect_quick((store_kind)kind, SHOAL_ROLE_ALL, true);
}

/* What is under way is a grain, and none is begun after it. */
static void while_mapping(void **state)
{
    (void)state;
    map_takes = 0.9;
    assert_true(leave_after(7.5, NEAR, SHOAL_ROLE_MAP, false) <= 1);
    assert_int_equal(mapped, 0);
}

static int begin(void **state)
{
    map_takes = 0;
    return job_setup(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(while_waiting_for_a_model, begin, job_teardown),
        cmocka_unit_test_setup_teardown(while_waiting_for_pieces, begin, job_teardown),
        cmocka_unit_test_setup_teardown(while_waiting_for_any_job, begin, job_teardown),
        cmocka_unit_test_setup_teardown(while_mapping, begin, job_teardown),
    };
    base_world_set(&world);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
