/* A store that forgot what a worker has is told again; a job that was removed stays removed, even if its removal was so
 * long ago that no trace of it is left. */
#include "job_alone.h"
#include "scripted_world.h"

static const char spec_text[] = "a spec";

static int begin(void **state)
{
    alone_begin(state);
    job_run *run = &((alone *)*state)->run;
    run->spec_bytes = spec_text;
    run->spec_size = sizeof spec_text;
    ((alone *)*state)->spec.lease = 30;
    EXPECT_OK(shoal_store_put_framed(run->store, job_key_of(ALONE, "spec").text, JOB_KIND_SPEC, spec_text,
                                     sizeof spec_text, NULL, NULL, soon()));
    EXPECT_OK(shoal_store_put(run->store, job_key_open(ALONE).text, "", 0, NULL, NULL, soon()));
    for (int i = 0; i < 5; i++)
        alone_lead(run, alone_next(run));
    EXPECT_OK(job_look(run));
    return 0;
}

static void pass(double seconds)
{
    clock_now += (int64_t)(seconds * 1e9);
}

static void forget(job_run *run, job_key key)
{
    EXPECT_OK(shoal_store_remove(run->store, key.text, soon()));
}

static void forget_all(job_run *run)
{
    forget(run, job_key_of(ALONE, "spec"));
    forget(run, job_key_open(ALONE));
    for (int number = 1; number <= 5; number++)
        forget(run, job_key_model(ALONE, number));
}

static void expect_all(job_run *run)
{
    assert_true(alone_has(run, job_key_of(ALONE, "spec")));
    assert_true(alone_has(run, job_key_open(ALONE)));
    assert_true(alone_has(run, job_key_model(ALONE, 5)));
}

static void expect_nothing(job_run *run)
{
    assert_false(alone_has(run, job_key_of(ALONE, "spec")));
    assert_false(alone_has(run, job_key_open(ALONE)));
    assert_false(alone_has(run, job_key_model(ALONE, 5)));
}

static void what_was_forgotten_is_put_back(void **state)
{
    job_run *run = &((alone *)*state)->run;
    shoal_blob blob = {0};
    job_model *model = NULL;
    forget_all(run);
    EXPECT_OK(job_look(run));
    expect_all(run);
    EXPECT_OK(shoal_store_get_framed(run->store, job_key_of(ALONE, "spec").text, JOB_KIND_SPEC, &blob, soon()));
    assert_int_equal(blob.size, sizeof spec_text);
    assert_memory_equal(blob.data, spec_text, sizeof spec_text);
    shoal_blob_release(&blob);
    EXPECT_OK(job_take_model(&model, run, 5));
    assert_int_equal(model->check, run->model->check);
    job_model_free(&model);
}

/* Who is ahead of the newest model puts its own back. */
static void a_model_that_was_forgotten_is_put_back(void **state)
{
    job_run *run = &((alone *)*state)->run;
    forget(run, job_key_model(ALONE, 5));
    EXPECT_OK(job_look(run));
    expect_all(run);
    assert_null(run->next);
}

/* The mark of a removed job goes after a day, and a worker that slept that long finds nothing at all. */
static void a_job_that_is_gone_for_long_stays_gone(void **state)
{
    job_run *run = &((alone *)*state)->run;
    forget_all(run);
    pass(601);
    EXPECT_FAIL(job_look(run), SHOAL_ABSENT, "job " ALONE " is gone");
    expect_nothing(run);
}

static void a_job_that_is_gone_for_minutes_comes_back(void **state)
{
    job_run *run = &((alone *)*state)->run;
    forget_all(run);
    pass(599);
    EXPECT_OK(job_look(run));
    expect_all(run);
}

/* What counts is when the job was last seen, not when the worker joined. */
static void every_look_counts(void **state)
{
    job_run *run = &((alone *)*state)->run;
    for (int i = 0; i < 3; i++) {
        pass(400);
        EXPECT_OK(job_look(run));
    }
    forget_all(run);
    pass(400);
    EXPECT_OK(job_look(run));
    expect_all(run);
}

/* A sleeper whose job is still there does not need to be sure. */
static void a_sleeper_goes_on_with_a_job_that_is_there(void **state)
{
    job_run *run = &((alone *)*state)->run;
    forget(run, job_key_model(ALONE, 5));
    pass(100000);
    EXPECT_OK(job_look(run));
    expect_all(run);
}

static void a_job_that_was_removed_is_not_put_back(void **state)
{
    job_run *run = &((alone *)*state)->run;
    forget_all(run);
    EXPECT_OK(shoal_store_put(run->store, job_key_gone(ALONE).text, "", 0, NULL, NULL, soon()));
    EXPECT_FAIL(job_look(run), SHOAL_ABSENT, "job " ALONE " was removed");
    expect_nothing(run);
}

/* ---- a removal in the middle of a look --------------------------------------------------------------------------- */

static int (*usual_put)(shoal_store *, const char *, const store_body *, const shoal_etag *, shoal_etag *,
                        store_attempt *);
static const char *remover_comes_with; /* the end of a key: when it is put, somebody removes the job */

static int put_and_remove(shoal_store *self, const char *key, const store_body *body, const shoal_etag *expected,
                          shoal_etag *etag, store_attempt *attempt)
{
    static const store_body nothing;
    shoal_etag ignored;
    size_t length = strlen(key), end = strlen(remover_comes_with);
    int status = usual_put(self, key, body, expected, etag, attempt);
    if (length >= end && strcmp(key + length - end, remover_comes_with) == 0)
        usual_put(self, job_key_gone(ALONE).text, &nothing, NULL, &ignored, attempt);
    return status;
}

static void a_removal_meanwhile_is_noticed(void **state)
{
    static const char *const ends[] = {"/spec", ("open/" ALONE), "/model"};
    alone *all = *state;
    usual_put = all->class.put;
    all->class.put = put_and_remove;
    for (int i = 0; i < 3; i++) {
        remover_comes_with = ends[i];
        forget_all(&all->run);
        EXPECT_FAIL(job_look(&all->run), SHOAL_ABSENT, "job " ALONE " was removed");
        /* What had been put before the removal went with it. */
        assert_false(alone_has(&all->run, i == 0   ? job_key_of(ALONE, "spec")
                                          : i == 1 ? job_key_open(ALONE)
                                                   : job_key_model(ALONE, 5)));
        forget(&all->run, job_key_gone(ALONE));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_was_forgotten_is_put_back, begin, alone_end),
        cmocka_unit_test_setup_teardown(a_model_that_was_forgotten_is_put_back, begin, alone_end),
        cmocka_unit_test_setup_teardown(a_job_that_is_gone_for_long_stays_gone, begin, alone_end),
        cmocka_unit_test_setup_teardown(a_job_that_is_gone_for_minutes_comes_back, begin, alone_end),
        cmocka_unit_test_setup_teardown(every_look_counts, begin, alone_end),
        cmocka_unit_test_setup_teardown(a_sleeper_goes_on_with_a_job_that_is_there, begin, alone_end),
        cmocka_unit_test_setup_teardown(a_job_that_was_removed_is_not_put_back, begin, alone_end),
        cmocka_unit_test_setup_teardown(a_removal_meanwhile_is_noticed, begin, alone_end),
    };
    base_world_set(&scripted_world);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
