/* src/engine/store/job_follow.c: a follower whose store went back to before what it has seen, and what others put
 * there. */
#include "job_support.h"

#include "engine/store/job_model.h"

static void put_model(shoal_store *store, const job_spec *spec, int64_t number)
{
    job_model *model = NULL;
    void *bytes = NULL;
    size_t size = 0;
    EXPECT_OK(job_model_first(&model, spec));
    model->number = model->round->number = number;
    for (int64_t i = 0; i < number; i++) /* rounds that take so long that the next is soon overdue */
        model->trailer.step[model->trailer.steps++] = (job_step){.number = i, .seconds = 0.05 * (double)i};
    EXPECT_OK(job_model_encode(&bytes, &size, model));
    EXPECT_OK(shoal_store_put_framed(store, job_key_model(spec->id, number).text, JOB_KIND_MODEL, bytes, size, NULL,
                                     NULL, soon()));
    base_free(&bytes);
    job_model_free(&model);
}

typedef struct scene {
    shoal_store *store;
    const job_spec *spec;
    int ticks;
} scene;

/* The store forgets the last rounds, and then somebody cancels the job. */
static int forget_and_cancel(void *context)
{
    scene *self = context;
    if (self->ticks++ != 1)
        return SHOAL_OK;
    for (int64_t number = 4; number <= 6; number++)
        EXPECT_OK(shoal_store_remove(self->store, job_key_model(self->spec->id, number).text, soon()));
    return shoal_job_cancel(self->store, self->spec->id, "changed my mind", soon());
}

static void a_cancelled_job_ends_behind_what_was_seen(void **state)
{
    (void)state;
    for (int remote = 0; remote < 2; remote++) {
        shoal_store *store = open_store(at("store"));
        shoal_data *data = wrapped();
        job_spec *spec = announced(store, data, NULL, 3);
        shoal_result *result = NULL;
        scene scene = {.store = store, .spec = spec};
        const double patience = 20;
        if (remote)
            make_remote(store);
        for (int64_t number = 2; number <= 6; number++)
            put_model(store, spec, number);
        const shoal_follow_options options = {.patience = patience, .tick = forget_and_cancel, .tick_context = &scene};
        int64_t patient = shoal_after(patience / 2);
        EXPECT_FAIL(shoal_job_follow(&result, NULL, store, spec->id, &options), SHOAL_STOPPED, "changed my mind");
        assert_true(shoal_after(0) < patient);
        job_spec_free(&spec);
        shoal_data_free(&data);
        shoal_store_close(&store);
    }
}

/* ---- what others put there --------------------------------------------------------------------------------------- */

static int refuse_result(const shoal_algorithm *self, const shoal_result *result, const shoal_round *first,
                         const shoal_shape *shape)
{
    (void)self, (void)result, (void)first, (void)shape;
    return shoal_fail(SHOAL_BROKEN, "no toy has such a result");
}

static void put_end(shoal_store *store, const job_spec *spec)
{
    job_model end = {.number = 1, .state = SHOAL_JOB_DONE};
    void *bytes = NULL;
    size_t size = 0;
    EXPECT_OK(shoal_result_new(&end.result));
    EXPECT_OK(job_model_encode(&bytes, &size, &end));
    EXPECT_OK(shoal_store_put_framed(store, job_key_model(spec->id, 1).text, JOB_KIND_MODEL, bytes, size, NULL, NULL,
                                     soon()));
    shoal_result_free(&end.result);
    base_free(&bytes);
}

/* An end that was there before anyone followed the job is looked at like any other. */
static void a_result_that_is_none(void **state)
{
    (void)state;
    shoal_store *store = open_store(at("store"));
    shoal_data *data = wrapped();
    job_spec *spec = announced(store, data, NULL, 3);
    shoal_result *result = NULL;
    shoal_algorithm strict = toy;
    const shoal_algorithm *const known[] = {&strict, NULL};
    const shoal_follow_options careful = {.patience = 20, .algorithms = known};
    strict.check_result = refuse_result;
    put_end(store, spec);
    EXPECT_FAIL(shoal_job_follow(&result, NULL, store, spec->id, &careful), SHOAL_BROKEN, "no toy has such a result");
    EXPECT_FAIL(shoal_job_result(&result, store, spec->id, known, soon()), SHOAL_BROKEN, "no toy has such a result");
    EXPECT_OK(shoal_job_result(&result, store, spec->id, NULL, soon()));
    shoal_result_free(&result);
    job_spec_free(&spec);
    shoal_data_free(&data);
    shoal_store_close(&store);
}

/* It can end between the look that found it running and the call that resumes it. */
static void a_job_that_is_done_can_be_resumed(void **state)
{
    (void)state;
    shoal_store *store = open_store(at("store"));
    shoal_data *data = wrapped();
    job_spec *spec = announced(store, data, NULL, 3);
    shoal_result *result = NULL;
    put_end(store, spec);
    EXPECT_OK(shoal_job_resume(store, spec->id, soon()));
    EXPECT_OK(shoal_job_result(&result, store, spec->id, NULL, soon()));
    shoal_result_free(&result);
    job_spec_free(&spec);
    shoal_data_free(&data);
    shoal_store_close(&store);
}

/* Keys that belong to no job are passed over, as long as a key can be and whatever they contain. */
static void jobs_are_found_among_other_keys(void **state)
{
    (void)state;
    shoal_store *store = open_store(at("store"));
    shoal_data *data = wrapped();
    job_spec *spec = announced(store, data, NULL, 3);
    shoal_job_id *ids = NULL;
    int64_t count = 0;
    char odd[SHOAL_KEY_MOST + 1] = "jobs/";
    memset(odd + 5, 'a', SHOAL_KEY_MOST - 6); /* before the job's, with no room after it */
    EXPECT_OK(shoal_store_put(store, odd, "", 0, NULL, NULL, soon()));
    odd[5] = 'z';
    EXPECT_OK(shoal_store_put(store, odd, "", 0, NULL, NULL, soon()));
    EXPECT_OK(shoal_store_put(store, "jobs/no job at all/spec", "", 0, NULL, NULL, soon()));
    EXPECT_OK(shoal_job_list(&ids, &count, store, soon()));
    assert_int_equal(count, 1);
    assert_string_equal(ids[0].text, spec->id);
    shoal_job_list_free(&ids);
    job_spec_free(&spec);
    shoal_data_free(&data);
    shoal_store_close(&store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_cancelled_job_ends_behind_what_was_seen, job_setup, job_teardown),
        cmocka_unit_test_setup_teardown(a_result_that_is_none, job_setup, job_teardown),
        cmocka_unit_test_setup_teardown(a_job_that_is_done_can_be_resumed, job_setup, job_teardown),
        cmocka_unit_test_setup_teardown(jobs_are_found_among_other_keys, job_setup, job_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
