/* After the top is merged: update, assignments for the next round, the next model.  Any worker may do this, and the
 * first one wins: the content of a model is a function of the spec, and its trailer is only a hint.  See job_run.h. */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/world.h"
#include "engine/engine_internal.h"
#include "engine/store/job_run.h"

/* Seconds between the leader's listings of workers: rounds may take less than a millisecond. */
static const double members_every = 0.25;

/* ---- the trailer ------------------------------------------------------------------------------------------------- */

static void add_step(job_trailer *trailer, const shoal_round *round)
{
    if (trailer->steps == JOB_HISTORY_MOST)
        memmove(trailer->step, trailer->step + 1, (size_t)--trailer->steps * sizeof *trailer->step);
    job_step *step = &trailer->step[trailer->steps++];
    *step = (job_step){.number = round->number,
                       .step = round->step,
                       .steps = round->steps,
                       .k = round->k,
                       .objective = round->objective,
                       .change = round->change,
                       .seconds = trailer->seconds};
    snprintf(step->phase, sizeof step->phase, "%s", round->phase);
}

static int list_members(job_run *run, double every)
{
    int64_t listed = run->members.listed_at;
    if (listed && base_now() < base_time_after(listed, every))
        return SHOAL_OK;
    int status = job_members_list(&run->members, run->store, run->spec->id, job_deadline(run));
    if (status == SHOAL_OK)
        status = job_members_retire(run);
    return status;
}

int job_lead_prepare(job_run *run)
{
    return list_members(run, members_every / 2);
}

/* Whether every worker that mapped something was in the last listing of workers. */
static bool knows_makers(const job_run *run)
{
    for (int64_t s = 0; s < run->spec->slices; s++)
        if (run->maker[s] && !job_members_find(&run->members, run->maker[s]))
            return false;
    return true;
}

/* What the job has done so far, and the assignments of the next round, NULL for the end. */
static int make_trailer(job_trailer *out, job_run *run, const shoal_round *next)
{
    const job_trailer *before = &run->model->trailer;
    double seconds = job_pace_put_after(run);
    *out = *before;
    out->member = NULL;
    out->holder = NULL;
    out->members = out->pieces = 0;
    out->seconds += seconds;
    const int64_t *counted = run->counter[run->tree->pieces - 1];
    for (int i = 0; i < SHOAL_COUNTERS; i++)
        out->counter[i] = base_add_wrapping(out->counter[i], counted[i]);
    out->doubled = base_add_wrapping(out->doubled, counted[JOB_DOUBLED]);
    engine_add_phase(out->phase, &out->phases, run->model->round->phase, seconds, 1);
    add_step(out, run->model->round);
    int status = SHOAL_OK;
    if (!knows_makers(run))
        status = list_members(run, 0);
    else if (run->members.listed_at < run->pace.began)
        status = list_members(run, 2 * members_every);
    if (status == SHOAL_OK)
        status = job_members_write(out, run);
    if (status == SHOAL_OK)
        status = job_assign(out, before, run->maker, next ? job_spec_tree(run->spec, &next->layout) : run->tree);
    return status;
}

/* ---- the model --------------------------------------------------------------------------------------------------- */

/* How often a model that keeps vanishing is put before this worker gives up. */
enum { PUTS_MOST = 20 };

static bool is_computed(const job_model *model)
{
    return model->state == SHOAL_JOB_RUNNING || model->state == SHOAL_JOB_DONE;
}

/* Another worker's model for the same round must have the same content, unless one of the two says that the job failed
 * or was cancelled.  One too large to read is removed whenever it appears: this worker knows what to put instead. */
static int take_theirs(job_run *run, const job_model *mine)
{
    job_model *theirs = NULL;
    run->has_its_own = is_computed(mine);
    int status = job_take_model(&theirs, run, mine->number);
    run->has_its_own = false;
    if (status < 0)
        return status;
    if (is_computed(mine) && is_computed(theirs) && !theirs->unread && theirs->check != mine->check) {
        job_model_free(&theirs);
        return shoal_fail(
            SHOAL_SYSTEM,
            "job %s: this worker computed another model for round %lld than the one in the store: one of the two "
            "machines computes incorrectly",
            run->spec->id, (long long)mine->number);
    }
    run->next = theirs;
    return SHOAL_OK;
}

/* Puts the model if there is none, and otherwise takes the one that is there. */
static int put_model(job_run *run, job_model **mine)
{
    void *bytes = NULL;
    size_t size = 0;
    job_key key = job_key_model(run->spec->id, (*mine)->number);
    int status = job_model_encode(&bytes, &size, *mine);
    for (int tries = 0; status == SHOAL_OK && !run->next; tries++) {
        status = shoal_store_put_framed(run->store, key.text, JOB_KIND_MODEL, bytes, size, SHOAL_NOTHING, NULL,
                                        job_deadline(run));
        if (status == SHOAL_OK) {
            run->next = *mine;
            run->next_is_mine = run->led = true;
            *mine = NULL;
        } else if (status == SHOAL_CONFLICT || status == SHOAL_UNKNOWN) {
            status = take_theirs(run, *mine);
            if (status == SHOAL_ABSENT && tries < PUTS_MOST)
                status = SHOAL_OK; /* it was there and is gone: try again */
        }
    }
    base_free(&bytes);
    return status;
}

static int finish_job(job_run *run)
{
    int status = job_sweep_all(run, run->next->number);
    if (status < 0)
        job_log(run, "leftovers of the job could not be removed: %s", shoal_error());
    return SHOAL_OK;
}

/* Something that this round keeps is lost, so nobody can continue from it, or from any round since the one that made
 * it: their models are removed, and the job continues from an older one. */
static int go_back(job_run *run, int64_t lost)
{
    int status = SHOAL_OK;
    job_log(run, "round %lld: %s; goes back to an earlier round", (long long)run->model->number, shoal_error());
    for (int64_t number = run->model->number; status == SHOAL_OK && number >= lost; number--)
        status = shoal_store_remove(run->store, job_key_model(run->spec->id, number).text, job_deadline(run));
    return status == SHOAL_OK ? job_find_model(&run->next, run) : status;
}

int job_lead(job_run *run)
{
    job_model *model = NULL;
    shoal_partial *merged = NULL;
    const shoal_crew *crew = engine_mapper_crew(run->mapper);
    int64_t lost = 0;
    int status = job_kept_fetch(&lost, run);
    if (status == SHOAL_ABSENT)
        return go_back(run, lost);
    if (status == SHOAL_OK)
        status = base_alloc(&model, 1, sizeof *model, "a model");
    if (status == SHOAL_OK)
        status = job_piece_sum(&merged, run, run->tree->pieces - 1);
    if (status == SHOAL_OK)
        status = job_blame(run, run->algorithm->update(&model->round, &model->result, run->model->round, merged,
                                                       &run->spec->shape, crew, false));
    if (status == SHOAL_OK && model->result)
        status = shoal_result_check(model->result);
    if (status == SHOAL_INVALID || status == SHOAL_USAGE) {
        job_model_free(&model);
        return job_lead_fail(run, status, shoal_error());
    }
    if (status == SHOAL_OK) {
        model->number = run->model->number + 1;
        model->state = model->result ? SHOAL_JOB_DONE : SHOAL_JOB_RUNNING;
        if (model->round) {
            engine_number_round(model->round, model->number);
            job_kept_seal(model->round);
        }
        status = job_blame(run, job_model_check(model, run->spec, run->algorithm));
    }
    if (status == SHOAL_OK)
        status = make_trailer(&model->trailer, run, model->round);
    if (status == SHOAL_OK)
        status = put_model(run, &model);
    /* After the model, since others wait for that: should this worker die in between, the job goes back by one
     * round. */
    if (status == SHOAL_OK && run->next->round) {
        /* Another worker was faster, or this one without knowing it: then perhaps nobody has put what belongs to it. */
        if (model && model->round)
            job_kept_adopt(run->next->round, model->round);
        status = job_kept_put(run, run->next->round, false);
    }
    if (status == SHOAL_OK && run->next->state == SHOAL_JOB_DONE && !run->next->unread)
        status = finish_job(run);
    job_model_free(&model);
    return status;
}

int job_lead_fail(job_run *run, int failure, const char *message)
{
    job_model *model = NULL;
    int status = base_alloc(&model, 1, sizeof *model, "a model");
    if (status < 0)
        return status;
    model->number = run->model->number + 1;
    model->state = SHOAL_JOB_FAILED;
    model->status = failure;
    status = base_copy_text(&model->message, message);
    if (status == SHOAL_OK)
        status = job_trailer_copy(&model->trailer, &run->model->trailer);
    if (status == SHOAL_OK)
        status = put_model(run, &model);
    if (status == SHOAL_OK && run->next->state == SHOAL_JOB_FAILED) {
        job_key key = job_key_open(run->spec->id);
        status = shoal_store_remove(run->store, key.text, job_deadline(run));
    }
    job_model_free(&model);
    return status;
}
