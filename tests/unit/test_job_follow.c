/* src/engine/store/job_follow.c: a follower whose store went back behind what it has seen. */
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_cancelled_job_ends_behind_what_was_seen, job_setup, job_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
