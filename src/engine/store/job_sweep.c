/* Removing what is no longer needed.  Every worker removes the pieces it put, by name, once their round is over; the
 * leader removes old models and, now and then, lists for what the dead left.  See job_run.h. */
#include <string.h>

#include "base/memory.h"
#include "base/world.h"
#include "engine/store/job_run.h"

/* Seconds between two listings for leftovers, and how many models stay besides those that must. */
static const double list_every = 10;
enum { MODELS_KEPT = 3 };

/* The first round whose model stays in any case. */
static int64_t oldest_kept(const job_run *run)
{
    return run->model->number - MODELS_KEPT - run->spec->keep_rounds;
}

int job_sweep_own(job_run *run)
{
    int64_t kept = 0, before = run->model->number - run->spec->keep_rounds;
    int status = SHOAL_OK;
    for (int64_t i = 0; i < run->puts; i++) {
        job_put put = run->put[i];
        if (status < 0 || put.round >= before || job_leaving(run)) {
            run->put[kept++] = put;
            continue;
        }
        job_key key = job_key_piece(run->spec->id, put.round, put.tree, put.piece);
        status = shoal_store_discard(run->store, key.text, job_deadline(run));
    }
    run->puts = kept;
    return status;
}

/* ---- by listing -------------------------------------------------------------------------------------------------- */

static bool is_checkpoint(const job_run *run, int64_t round)
{
    return run->checkpoint[0].round == round || run->checkpoint[1].round == round;
}

/* The first rounds of which something stays. */
typedef struct job_limits {
    int64_t pieces, models, kept;
} job_limits;

static bool is_swept(const job_run *run, int64_t round, int64_t piece, job_limits from)
{
    if (piece == JOB_KEY_KEPT)
        return round < from.kept && !job_kept_in_checkpoint(run, round);
    return piece == JOB_KEY_MODEL ? round < from.models && !is_checkpoint(run, round) : round < from.pieces;
}

/* Removes what belongs to rounds before these, but for checkpoints.  What is left when it is cut short is found by the
 * next listing. */
static int sweep_listed(job_run *run, job_limits from)
{
    job_key prefix = job_key_of(run->spec->id, "round/");
    shoal_listing page = {0};
    int status;
    do {
        status = shoal_store_list(run->store, prefix.text, NULL, &page, job_deadline(run));
        for (size_t i = 0; status == SHOAL_OK && i < page.count && !job_leaving(run); i++) {
            int64_t round, piece;
            if (!job_key_read_round(&round, &piece, run->spec->id, NULL, page.entries[i].key))
                continue;
            if (piece == JOB_KEY_MODEL && round > run->model->number + 1)
                run->pace.look_at =
                    0; /* the job continued without this worker, which slept and now leads a round that is long over */
            if (is_swept(run, round, piece, from))
                status = shoal_store_remove(run->store, page.entries[i].key, job_deadline(run));
        }
    } while (status == SHOAL_OK && page.more && !job_leaving(run));
    shoal_listing_release(&page);
    return status;
}

static int sweep_below(job_run *run, const char *folder)
{
    job_key prefix = job_key_of(run->spec->id, folder);
    shoal_listing page = {0};
    int status;
    do {
        status = shoal_store_list(run->store, prefix.text, NULL, &page, job_deadline(run));
        for (size_t i = 0; status == SHOAL_OK && i < page.count && !job_leaving(run); i++)
            status = shoal_store_remove(run->store, page.entries[i].key, job_deadline(run));
    } while (status == SHOAL_OK && page.more && !job_leaving(run));
    shoal_listing_release(&page);
    return status;
}

/* ---- models ------------------------------------------------------------------------------------------------------ */

/* Removes a model, or makes a checkpoint of it.  A store that forgets its last seconds may lose the newest models; of
 * the two checkpoints one is older than that, so that the job need not start again. */
static int retire_model(job_run *run, int64_t round)
{
    double forgets = shoal_store_describe(run->store).forgets;
    struct job_checkpoint *old = &run->checkpoint[0], *new = &run->checkpoint[1];
    int64_t now = base_now(), removed = round;
    if (forgets > 0 && (!new->round || now > base_time_after(new->at, forgets))) {
        removed = old->round;
        *old = *new;
        *new = (struct job_checkpoint){round, now, job_kept_span(run, round)};
    }
    return removed > 0 ? shoal_store_discard(run->store, job_key_model(run->spec->id, removed).text, job_deadline(run))
                       : SHOAL_OK;
}

/* A new leader keeps the checkpoints of the one before it: the two oldest models.  Younger ones may be there that the
 * other had not removed yet: if these took their place, none might be older than what may be lost. */
static int adopt_checkpoints(job_run *run, int64_t oldest)
{
    job_key prefix = job_key_of(run->spec->id, "round/");
    struct job_checkpoint *old = &run->checkpoint[0], *new = &run->checkpoint[1];
    shoal_listing page = {0};
    int64_t now = base_now();
    int status;
    do {
        status = shoal_store_list(run->store, prefix.text, NULL, &page, job_deadline(run));
        for (size_t i = 0; status == SHOAL_OK && i < page.count; i++) {
            int64_t round, piece;
            if (!job_key_read_round(&round, &piece, run->spec->id, NULL, page.entries[i].key) ||
                piece != JOB_KEY_MODEL || round >= oldest || old->round > 0)
                continue;
            *old = *new; /* names sort as numbers do */
            *new = (struct job_checkpoint){round, now, job_kept_span(run, round)};
        }
    } while (status == SHOAL_OK && page.more);
    shoal_listing_release(&page);
    return status;
}

/* Models of rounds long past were removed by their leader, or are found by listing. */
static int sweep_models(job_run *run, int64_t oldest)
{
    enum { BY_NAME_MOST = 64 };
    int status = SHOAL_OK;
    if (oldest - run->swept_models > BY_NAME_MOST) {
        run->swept_models = oldest;
        run->swept_at = 0;
    }
    for (; status == SHOAL_OK && run->swept_models < oldest && !job_leaving(run); run->swept_models++)
        status = retire_model(run, run->swept_models);
    return status;
}

static bool leads(const job_run *run)
{
    return run->flag[run->tree->pieces - 1] & JOB_MINE;
}

int job_sweep(job_run *run)
{
    int64_t now = base_now(), oldest = oldest_kept(run);
    bool first = !run->swept_models;
    int status = job_sweep_own(run);
    if (status < 0 || !leads(run))
        return status;
    if (first)
        run->swept_models = oldest > 0 ? oldest : 1;
    if (first && oldest > 1 && shoal_store_describe(run->store).forgets > 0)
        status = adopt_checkpoints(run, oldest);
    if (status == SHOAL_OK)
        status = sweep_models(run, oldest);
    if (status == SHOAL_OK)
        status = job_kept_sweep(run, oldest);
    /* After the models that are known by name: some of those become checkpoints. */
    if (status < 0 || (run->swept_at && now <= base_time_after(run->swept_at, list_every)))
        return status;
    run->swept_at = now;
    /* The pieces of the last rounds are about to be removed by those who put them. */
    job_limits from = {.pieces = run->model->number - run->spec->keep_rounds - 2,
                       .models = oldest,
                       .kept = job_kept_span(run, oldest).first};
    return sweep_listed(run, from);
}

/* ---- after the end ----------------------------------------------------------------------------------------------- */

/* The first rounds of which something stays.  A store that may forget the end of the job still needs what it was made
 * from; shoal_job_remove removes it. */
static job_limits kept_at_end(const job_run *run, int64_t end)
{
    int64_t kept = end - run->spec->keep_rounds;
    job_limits from = {.pieces = kept, .models = kept, .kept = kept};
    if (shoal_store_describe(run->store).forgets > 0) {
        from.models -= MODELS_KEPT;
        from.kept = job_kept_span(run, from.models).first;
    }
    return from;
}

/* A worker that slept past the end of a job may have led rounds of long ago, whose models were gone, until it met one
 * that is there. */
int job_sweep_late(job_run *run)
{
    int status = job_sweep_own(run);
    bool finished = run->next_is_mine; /* then job_sweep_all has been here */
    return status == SHOAL_OK && run->led && !finished && !run->model->unread
               ? sweep_listed(run, kept_at_end(run, run->model->number))
               : status;
}

/* The marker is removed last: if this is interrupted, a worker that looks for any job finds it and does the rest. */
int job_sweep_all(job_run *run, int64_t end)
{
    static const char *const queues[] = {"setup", "map", "reduce", "last"};
    const job_spec *spec = run->spec;
    bool forgets = shoal_store_describe(run->store).forgets > 0;
    int status = SHOAL_OK;
    for (int i = 0; status == SHOAL_OK && i < 4 && !job_leaving(run); i++)
        status = shoal_store_drop(run->store, job_key_of(spec->id, queues[i]).text, job_deadline(run));
    if (!forgets)
        memset(run->checkpoint, 0, sizeof run->checkpoint);
    if (status == SHOAL_OK && !job_leaving(run))
        status = sweep_listed(run, kept_at_end(run, end));
    if (status == SHOAL_OK && spec->source == JOB_UPLOADED && !forgets && !job_leaving(run))
        status = sweep_below(run, "data/");
    if (status == SHOAL_OK && spec->shape.weighted && !forgets && !job_leaving(run))
        status = sweep_below(run, "weights/");
    if (status == SHOAL_OK && !job_leaving(run))
        status = shoal_store_remove(run->store, job_key_open(spec->id).text, job_deadline(run));
    return status;
}
