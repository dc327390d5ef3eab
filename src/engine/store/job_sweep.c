/* Removing what is no longer needed.  Every worker removes the pieces it put, by name, once their round is over; who leads removes old
 * models and, now and then, lists for what the dead left.  See job_run.h. */
#include <string.h>

#include "base/memory.h"
#include "base/world.h"
#include "engine/store/job_run.h"

/* Seconds between two listings for leftovers, and how many models stay beside those that must. */
static const double list_every = 10;
enum { MODELS_KEPT = 3 };

/* The first round whose model stays in any case. */
static int64_t oldest_kept(const job_run *run)
{
    return run->model->number - MODELS_KEPT - run->spec->keep_rounds;
}

static int sweep_own(job_run *run)
{
    int64_t kept = 0, before = run->model->number - run->spec->keep_rounds;
    int status = SHOAL_OK;
    for (int64_t i = 0; i < run->puts; i++) {
        struct job_put put = run->put[i];
        if (status < 0 || put.round >= before) {
            run->put[kept++] = put;
            continue;
        }
        job_key key = job_key_piece(run->spec->id, put.round, &run->spec->tree, put.piece);
        status = shoal_store_remove(run->store, key.text, job_deadline(run));
    }
    run->puts = kept;
    return status;
}

/* What a listing is to remove: pieces and models of rounds before these, but for the checkpoints of a run, if there is one. */
typedef struct sweeping {
    int64_t pieces_from, models_from;
    const job_run *run;
} sweeping;

static bool is_checkpoint(const job_run *run, int64_t round)
{
    return run && (run->checkpoint[0].round == round || run->checkpoint[1].round == round);
}

static int sweep_listed(shoal_store *store, const job_spec *spec, const sweeping *what, int64_t deadline)
{
    job_key prefix = job_key_of(spec->id, "round/");
    shoal_listing page = {0};
    bool leaving = false; /* what is left is found by the next who lists */
    int status;
    do {
        status = shoal_store_list(store, prefix.text, NULL, &page, deadline);
        for (size_t i = 0; status == SHOAL_OK && i < page.count && !leaving; i++) {
            int64_t round, piece;
            leaving = what->run && job_leaving(what->run);
            if (!job_key_read_round(&round, &piece, spec->id, NULL, page.entries[i].key))
                continue;
            if (piece < 0 ? round < what->models_from && !is_checkpoint(what->run, round) : round < what->pieces_from)
                status = shoal_store_remove(store, page.entries[i].key, deadline);
        }
    } while (status == SHOAL_OK && page.more && !leaving);
    shoal_listing_release(&page);
    return status;
}

/* Removes a model, or makes a checkpoint of it.  A store that forgets its last seconds may lose the newest models; of the two checkpoints
 * one is older than that, so that the job need not start again. */
static int retire_model(job_run *run, int64_t round)
{
    double forgets = shoal_store_describe(run->store).forgets;
    struct job_checkpoint *old = &run->checkpoint[0], *new = &run->checkpoint[1];
    int64_t now = base_now(), removed = round;
    if (forgets > 0 && (!new->round || now > base_time_after(new->at, forgets))) {
        removed = old->round;
        *old = *new;
        *new = (struct job_checkpoint){round, now};
    }
    return removed > 0 ? shoal_store_remove(run->store, job_key_model(run->spec->id, removed).text, job_deadline(run))
                       : SHOAL_OK;
}

static bool leads(const job_run *run)
{
    return run->flag[run->spec->tree.pieces - 1] & JOB_MINE;
}

int job_sweep(job_run *run)
{
    int64_t now = base_now(), oldest = oldest_kept(run);
    int status = sweep_own(run);
    if (status < 0 || !leads(run))
        return status;
    if (!run->swept_models)
        run->swept_models = oldest > 0 ? oldest : 1;
    for (; status == SHOAL_OK && run->swept_models < oldest; run->swept_models++)
        status = retire_model(run, run->swept_models);
    /* After the models that are known by name: some of those become checkpoints. */
    if (status < 0)
        return status;
    if (!run->swept_at || now > base_time_after(run->swept_at, list_every)) {
        /* The pieces of the last rounds are about to be removed by those who put them. */
        sweeping what = {run->model->number - run->spec->keep_rounds - 2, oldest, run};
        run->swept_at = now;
        status = sweep_listed(run->store, run->spec, &what, job_deadline(run));
    }
    return status;
}

static int remove_below(shoal_store *store, const char *prefix, int64_t deadline)
{
    shoal_listing page = {0};
    int status;
    do {
        status = shoal_store_list(store, prefix, NULL, &page, deadline);
        for (size_t i = 0; status == SHOAL_OK && i < page.count; i++)
            status = shoal_store_remove(store, page.entries[i].key, deadline);
    } while (status == SHOAL_OK && page.more);
    shoal_listing_release(&page);
    return status;
}

int job_sweep_all(shoal_store *store, const job_spec *spec, int64_t keep_model, int64_t deadline)
{
    static const char *const queues[] = {"setup", "map", "reduce", "last"};
    job_key open = job_key_open(spec->id);
    /* A store that may forget the end of the job still needs what it was made from; shoal_job_remove takes it away. */
    bool forgets = shoal_store_describe(store).forgets > 0;
    sweeping what = {keep_model - spec->keep_rounds, keep_model - spec->keep_rounds - (forgets ? MODELS_KEPT : 0),
                     NULL};
    int status = shoal_store_remove(store, open.text, deadline);
    for (int i = 0; status == SHOAL_OK && i < 4; i++)
        status = shoal_store_drop(store, job_key_of(spec->id, queues[i]).text, deadline);
    if (status == SHOAL_OK)
        status = sweep_listed(store, spec, &what, deadline);
    if (status == SHOAL_OK && spec->source == JOB_UPLOADED && !forgets)
        status = remove_below(store, job_key_of(spec->id, "data/").text, deadline);
    if (status == SHOAL_OK && spec->shape.weighted && !forgets)
        status = remove_below(store, job_key_of(spec->id, "weights/").text, deadline);
    return status;
}
