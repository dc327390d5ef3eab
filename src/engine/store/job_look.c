/* Looking: the state of a job by what is in the store, and restoring what the store forgot.  See job_run.h. */
#include "base/memory.h"
#include "base/world.h"
#include "engine/store/job_run.h"

/* Seconds after which a worker that finds nothing of its job in the store takes it for removed rather than
 * forgotten. */
static const double store_remembers = 600;

/* ---- putting back ------------------------------------------------------------------------------------------------ */

/* Whether someone removed the job, which leaves a tombstone. */
static int check_gone(job_run *run)
{
    shoal_blob blob = {0};
    job_key gone = job_key_gone(run->spec->id);
    int status = shoal_store_get(run->store, gone.text, &blob, job_deadline(run));
    shoal_blob_release(&blob);
    if (status == SHOAL_OK || status == SHOAL_MEMORY) /* too large to be read, but there */
        return shoal_fail(SHOAL_ABSENT, "job %s was removed", run->spec->id);
    return status == SHOAL_ABSENT ? SHOAL_OK : status;
}

static int has_spec(bool *out, job_run *run)
{
    shoal_blob blob = {0};
    job_key key = job_key_of(run->spec->id, "spec");
    int status = shoal_store_get(run->store, key.text, &blob, job_deadline(run));
    shoal_blob_release(&blob);
    *out = status == SHOAL_OK || status == SHOAL_MEMORY;
    return *out || status == SHOAL_ABSENT ? SHOAL_OK : status;
}

/* The job may have been removed since the look began, which is certain only after `key` was put: then the key is
 * removed again. */
static int undo_if_gone(job_run *run, const char *key)
{
    int status = check_gone(run);
    if (status == SHOAL_ABSENT && shoal_store_remove(run->store, key, job_deadline(run)) == SHOAL_OK)
        status = shoal_fail(SHOAL_ABSENT, "job %s was removed", run->spec->id);
    return status;
}

/* Puts what is not there. */
static int put_if_forgotten(job_run *run, const char *key, uint32_t kind, const void *bytes, size_t size, bool *put)
{
    int status = shoal_store_put_framed(run->store, key, kind, bytes, size, SHOAL_NOTHING, NULL, job_deadline(run));
    *put = status == SHOAL_OK;
    if (status == SHOAL_CONFLICT || status == SHOAL_UNKNOWN)
        return SHOAL_OK;
    return status == SHOAL_OK ? undo_if_gone(run, key) : status;
}

static int put_back_spec(job_run *run)
{
    job_key spec = job_key_of(run->spec->id, "spec"), open = job_key_open(run->spec->id);
    bool put = false;
    int status = put_if_forgotten(run, spec.text, JOB_KIND_SPEC, run->spec_bytes, run->spec_size, &put);
    if (status < 0 || !put)
        return status;
    job_log(run, "the store has forgotten job %s: put again", run->spec->id);
    /* The spec was gone, so the marker is gone too. */
    status = shoal_store_put(run->store, open.text, "", 0, NULL, NULL, job_deadline(run));
    return status == SHOAL_OK ? undo_if_gone(run, open.text) : status;
}

static int put_back_model(job_run *run)
{
    void *bytes = NULL;
    size_t size = 0;
    bool put = false;
    job_key model = job_key_model(run->spec->id, run->model->number);
    int status = job_kept_put(run, run->model->round, true);
    if (status == SHOAL_OK)
        status = job_model_encode(&bytes, &size, run->model);
    if (status == SHOAL_OK)
        status = put_if_forgotten(run, model.text, JOB_KIND_MODEL, bytes, size, &put);
    base_free(&bytes);
    return status;
}

/* Restores what the store forgot and this worker has.  A worker that has not looked for a long time can't tell a
 * forgotten job from one removed so long ago that its tombstone is gone, and continues only if the spec is there. */
static int put_back(job_run *run)
{
    bool there = false;
    int status = SHOAL_OK;
    if (base_now() > base_time_after(run->known_at, store_remembers)) {
        status = has_spec(&there, run);
        if (status == SHOAL_OK && !there)
            status = shoal_fail(SHOAL_ABSENT, "job %s is gone", run->spec->id);
    }
    if (status == SHOAL_OK && !there)
        status = put_back_spec(run);
    if (status == SHOAL_OK && run->model->number > 0)
        status = put_back_model(run);
    return status;
}

/* ---- looking ----------------------------------------------------------------------------------------------------- */

/* Lists the job's rounds: which pieces of this one there are, and how many, and the newest model. */
static int list_round(job_run *run, int64_t *head, int64_t *stored)
{
    job_key prefix = job_key_of(run->spec->id, "round/");
    shoal_listing page = {0};
    int status;
    *head = *stored = 0;
    for (int64_t i = 0; i < run->tree->pieces; i++)
        run->flag[i] &= (unsigned char)~JOB_STORED;
    do {
        status = shoal_store_list(run->store, prefix.text, NULL, &page, job_deadline(run));
        for (size_t i = 0; status == SHOAL_OK && i < page.count; i++) {
            int64_t round, piece;
            if (!job_key_read_round(&round, &piece, run->spec->id, run->tree, page.entries[i].key))
                continue;
            if (piece == JOB_KEY_MODEL && round > *head)
                *head = round;
            if (piece < 0 || round != run->model->number)
                continue;
            job_piece_flag(run, piece, JOB_STORED, 0);
            (*stored)++;
        }
    } while (status == SHOAL_OK && page.more);
    shoal_listing_release(&page);
    return status;
}

static int note_orphans(job_run *run)
{
    const job_trailer *trailer = &run->model->trailer;
    int status = job_members_list(&run->members, run->store, run->spec->id, job_deadline(run));
    if (status < 0 || trailer->pieces != job_tree_units(run->tree))
        return status;
    for (int64_t unit = 0; unit < trailer->pieces; unit++) {
        int32_t holder = trailer->holder[unit];
        int64_t piece = job_tree_of_unit(run->tree, unit);
        bool alive = holder >= 0 && job_members_alive(&run->members, trailer->member[holder].worker, run->spec->lease);
        bool orphan = !alive && !(run->flag[piece] & JOB_MINE);
        job_piece_flag(run, piece, orphan ? JOB_ORPHAN : 0, orphan ? 0 : JOB_ORPHAN);
    }
    return SHOAL_OK;
}

/* Missing rows are requested again when a look is due, not whenever one is needed, which could be continually. */
static void ask_again_for_rows(job_run *run)
{
    for (int64_t s = 0; s < run->spec->slices; s++)
        job_piece_flag(run, s, 0, JOB_LACKING);
}

/* Takes the newest model if it is newer, and puts back what the store has forgotten. */
static int meet_head(job_run *run, int64_t head)
{
    int status = SHOAL_OK;
    if (head > run->model->number)
        status = job_take_model(&run->next, run, head);
    else if ((head < run->model->number || head == 0) && job_kept_here(run->model->round))
        return put_back(run);
    else if (head < run->model->number) /* what this round keeps may be lost too: whoever has it puts both back */
        status = job_find_model(&run->next, run);
    return status == SHOAL_ABSENT ? SHOAL_OK : status; /* there are newer ones already */
}

int job_look(job_run *run)
{
    int64_t head = 0, stored = 0;
    if (base_now() >= run->pace.look_at)
        ask_again_for_rows(run);
    int64_t asked = base_now();
    int status = check_gone(run);
    if (status == SHOAL_OK)
        job_pace_note_trip(run, asked, false);
    if (status == SHOAL_OK && !job_leaving(run)) {
        status = list_round(run, &head, &stored);
        if (status == SHOAL_OK && !job_leaving(run))
            status = meet_head(run, head);
    }
    if (status == SHOAL_OK)
        run->known_at = base_now();
    if (status == SHOAL_OK && !run->next && !job_leaving(run))
        status = note_orphans(run);
    if (!run->watches_from)
        run->watches_from = run->members.listed_at;
    if (status == SHOAL_OK && !run->next)
        job_pace_counted(run, stored);
    job_round_open_queues(run);
    job_pace_looked(run);
    run->looked_at = base_now();
    return status;
}
