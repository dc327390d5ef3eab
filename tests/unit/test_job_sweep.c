/* Stores that forget keep older models beside the newest: of two checkpoints one is always older than what may be lost,
 * whoever leads, and no more than these stay. */
#include "job_alone.h"
#include "scripted_world.h"

enum { FORGETS = 20, MODELS = 4, CHECKPOINTS = 2, ROUNDS = 200 };

static int64_t put_at[ROUNDS + 1]; /* by round */

static void lead_on(job_run *run)
{
    clock_now += 1000000000; /* a second a round */
    alone_lead(run, alone_next(run));
    put_at[run->model->number] = clock_now;
    EXPECT_OK(job_sweep(run));
}

/* How many models there are; *age becomes that of the oldest, in seconds. */
static int count_models(const job_run *run, double *age)
{
    int count = 0;
    *age = 0;
    for (int64_t number = run->model->number; number > 0; number--)
        if (alone_has(run, job_key_model(ALONE, number))) {
            count++;
            *age = (double)(clock_now - put_at[number]) * 1e-9;
        }
    return count;
}

static void expect_checkpoints(const job_run *run)
{
    double age;
    int count = count_models(run, &age);
    if (run->model->number < 3 * FORGETS)
        return; /* what is lost then is the whole job, which its spec brings back */
    if (age <= FORGETS)
        fail_msg("round %lld: the oldest model is %g s old", (long long)run->model->number, age);
    assert_true(count <= MODELS + CHECKPOINTS);
}

static void one_model_is_older_than_what_may_be_lost(void **state)
{
    alone *all = *state;
    all->class.forgets = FORGETS;
    for (int i = 0; i < ROUNDS; i++) {
        lead_on(&all->run);
        expect_checkpoints(&all->run);
    }
}

/* A new leader only knows the checkpoints that it finds. */
static void who_leads_next_keeps_them(void **state)
{
    alone *all = *state;
    all->class.forgets = FORGETS;
    for (int i = 0; i < ROUNDS; i++) {
        if (i % 50 == 49) {
            all->run.swept_models = all->run.swept_at = 0;
            memset(all->run.checkpoint, 0, sizeof all->run.checkpoint);
        }
        lead_on(&all->run);
        expect_checkpoints(&all->run);
    }
}

static void a_store_that_remembers_has_no_checkpoints(void **state)
{
    alone *all = *state;
    double age;
    for (int i = 0; i < 3 * FORGETS; i++) {
        lead_on(&all->run);
        assert_true(count_models(&all->run, &age) <= MODELS);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_model_is_older_than_what_may_be_lost, alone_begin, alone_end),
        cmocka_unit_test_setup_teardown(who_leads_next_keeps_them, alone_begin, alone_end),
        cmocka_unit_test_setup_teardown(a_store_that_remembers_has_no_checkpoints, alone_begin, alone_end),
    };
    base_world_set(&scripted_world);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
