/* What rounds keep beside their models: it is in the store as long as a model is that keeps it, no longer, and it is
 * what it was. */
#include "job_alone.h"

enum { HISTORY = 3, BYTES = 100, ROUNDS = 60, MODELS = 4 }; /* as many models stay beside those that are asked for */

/* The next round: two of three bring something new. */
static void lead_on(job_run *run)
{
    const shoal_round *round = run->model->round;
    job_model *model = alone_next(run);
    int more = model->number % 3 > 0;
    for (int i = round->keeps + more > HISTORY ? 1 : 0; i < round->keeps; i++)
        shoal_round_keep_on(model->round, round, i);
    if (more)
        memset(shoal_round_keep(model->round, BYTES), (int)model->number, BYTES);
    alone_lead(run, model);
    EXPECT_OK(job_sweep(run));
}

/* How many parts there are; all that the models in the store keep are among them. */
static int count_parts(job_run *run, int *models)
{
    shoal_listing page = {0};
    int parts = 0;
    *models = 0;
    EXPECT_OK(shoal_store_list(run->store, "jobs/" ALONE "/round/", NULL, &page, soon()));
    for (size_t i = 0; i < page.count; i++) {
        int64_t round, piece;
        assert_true(job_key_read_round(&round, &piece, ALONE, NULL, page.entries[i].key));
        parts += piece == JOB_KEY_KEPT;
        if (piece != JOB_KEY_MODEL)
            continue;
        job_run other = *run; /* a worker that comes to lead from there */
        int64_t lost;
        EXPECT_OK(job_take_model(&other.model, run, round));
        EXPECT_OK(job_kept_fetch(&lost, &other));
        assert_true(job_kept_here(other.model->round));
        for (int k = 0; k < other.model->round->keeps; k++)
            assert_int_equal(*(unsigned char *)other.model->round->kept[k]->values, other.model->round->kept[k]->born);
        job_model_free(&other.model);
        ++*models;
    }
    shoal_listing_release(&page);
    return parts;
}

static void parts_stay_with_their_models(void **state)
{
    alone *all = *state;
    int models;
    for (int i = 0; i < 4 * ROUNDS; i++) {
        all->spec.keep_rounds = i < 2 * ROUNDS ? 0 : JOB_RECENT + 5; /* more rounds than a worker knows of */
        if (i > ROUNDS)
            all->run.swept_at = 0; /* it lists as well */
        lead_on(&all->run);
        int parts = count_parts(&all->run, &models);
        assert_true(models <= MODELS + (int)all->spec.keep_rounds);
        assert_true(parts <= HISTORY + models);
    }
    assert_true(models > MODELS);
}

/* What a leader that died had noted to be removed is found by listing. */
static void leftovers_go(void **state)
{
    alone *all = *state;
    int models;
    for (int i = 0; i < ROUNDS; i++) {
        lead_on(&all->run);
        all->run.drops = 0;
    }
    assert_true(count_parts(&all->run, &models) > HISTORY + MODELS);
    all->run.swept_at = 0;
    EXPECT_OK(job_sweep(&all->run));
    assert_true(count_parts(&all->run, &models) <= HISTORY + MODELS);
    EXPECT_OK(job_sweep_all(&all->run, all->run.model->number + 1));
    assert_int_equal(count_parts(&all->run, &models), 0);
}

/* A part that is whole but of another round, size or job is none: it is removed, and said to be lost. */
static void parts_are_what_they_were(void **state)
{
    alone *all = *state;
    job_run other = all->run;
    int64_t lost = 0;
    for (int i = 0; i < 5; i++)
        lead_on(&all->run);
    const shoal_kept *newest = all->run.model->round->kept[all->run.model->round->keeps - 1];
    job_key key = job_key_kept(ALONE, newest->born);
    for (int size = BYTES; size <= BYTES + 1; size++) {
        char lie[BYTES + 1] = {0};
        EXPECT_OK(shoal_store_put_framed(all->store, key.text, SHOAL_KIND('k', 'e', 'p', 't'), lie, (size_t)size, NULL,
                                         NULL, soon()));
        EXPECT_OK(job_take_model(&other.model, &all->run, all->run.model->number));
        assert_int_equal(job_kept_fetch(&lost, &other), SHOAL_ABSENT);
        assert_int_equal(lost, newest->born);
        assert_int_equal(
            shoal_store_get_framed(all->store, key.text, SHOAL_KIND('k', 'e', 'p', 't'), &(shoal_blob){0}, soon()),
            SHOAL_ABSENT);
        job_kept_adopt(other.model->round, all->run.model->round); /* who has it, has it still */
        assert_true(job_kept_here(other.model->round));
        EXPECT_OK(job_kept_put(&other, other.model->round, true));
        job_model_free(&other.model);
    }
    EXPECT_OK(job_take_model(&other.model, &all->run, all->run.model->number));
    EXPECT_OK(job_kept_fetch(&lost, &other));
    job_model_free(&other.model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(parts_stay_with_their_models, alone_begin, alone_end),
        cmocka_unit_test_setup_teardown(leftovers_go, alone_begin, alone_end),
        cmocka_unit_test_setup_teardown(parts_are_what_they_were, alone_begin, alone_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
