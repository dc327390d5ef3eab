/* A worker alone with a store, in the middle of a job that a test leads on by hand. */
#ifndef JOB_ALONE_H
#define JOB_ALONE_H

#include "engine/engine_internal.h"
#include "engine/store/job_run.h"
#include "job_support.h"

#define ALONE "toy-1" /* the job */

typedef struct alone {
    shoal_store *store;
    struct store_class class; /* the store's own, which a test may change */
    shoal_worker *worker;
    job_spec spec;
    unsigned char flag;
    job_run run;
} alone;

static inline int alone_begin(void **state)
{
    alone *all = calloc(1, sizeof *all);
    all->store = open_store("mem:");
    all->class = *all->store->class;
    all->store->class = &all->class;
    EXPECT_OK(shoal_worker_new(&all->worker, all->store, &(shoal_worker_options){.slots = 1}));
    strcpy(all->spec.id, ALONE);
    all->spec.tree = (job_tree){.levels = 1, .ranges = 1, .nodes = {1}, .count = {1}, .pieces = 1};
    all->flag = JOB_MINE; /* the top: this worker leads */
    all->run = (job_run){.worker = all->worker,
                         .store = all->store,
                         .spec = &all->spec,
                         .tree = &all->spec.tree,
                         .algorithm = &toy,
                         .flag = &all->flag};
    EXPECT_OK(base_alloc(&all->run.model, 1, sizeof *all->run.model, "a model"));
    EXPECT_OK(start_toy(&all->run.model->round, NULL, &(shoal_shape){.columns = 3}));
    *state = all;
    return 0;
}

static inline int alone_end(void **state)
{
    alone *all = *state;
    job_model_free(&all->run.next);
    job_model_free(&all->run.model);
    job_members_release(&all->run.members);
    base_free(&all->run.drop);
    shoal_worker_free(&all->worker);
    shoal_store_close(&all->store);
    free(all);
    return 0;
}

/* The round after the worker's, which keeps nothing yet; it is not in the store. */
static inline job_model *alone_next(const job_run *run)
{
    job_model *model = NULL;
    EXPECT_OK(base_alloc(&model, 1, sizeof *model, "a model"));
    EXPECT_OK(start_toy(&model->round, NULL, &(shoal_shape){.columns = 3}));
    model->number = run->model->number + 1;
    return model;
}

/* Puts a model that is whole, and makes it the worker's own. */
static inline void alone_lead(job_run *run, job_model *model)
{
    void *bytes = NULL;
    size_t size = 0;
    engine_number_round(model->round, model->number);
    job_kept_seal(model->round);
    EXPECT_OK(job_model_encode(&bytes, &size, model));
    EXPECT_OK(shoal_store_put_framed(run->store, job_key_model(ALONE, model->number).text, JOB_KIND_MODEL, bytes, size,
                                     SHOAL_NOTHING, NULL, soon()));
    EXPECT_OK(job_kept_put(run, model->round, false));
    base_free(&bytes);
    run->next = model;
    run->next_is_mine = true;
    EXPECT_OK(job_kept_pass(run));
    job_model_free(&run->model);
    run->model = model;
    run->next = NULL;
}

static inline bool alone_has(const job_run *run, job_key key)
{
    shoal_blob blob = {0};
    int status = shoal_store_get(run->store, key.text, &blob, soon());
    shoal_blob_release(&blob);
    assert_true(status == SHOAL_OK || status == SHOAL_ABSENT);
    return status == SHOAL_OK;
}

#endif
