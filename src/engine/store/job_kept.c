/* What rounds keep for their updates (shoal_kept): an optimiser's history, say.  See job_run.h.
 *
 * Only the leader needs it, and it usually led the round before and has it.  So it travels beside the models: each part
 * is put once, right after the model that brought it, and fetched only by a new leader that lacks it.  A job can't
 * continue from a model whose parts are lost: then it goes back to an older model, or to its start, and comes to the
 * same bytes again. */
#include <string.h>

#include "base/crc.h"
#include "base/memory.h"
#include "engine/store/job_run.h"

#define JOB_KIND_KEPT SHOAL_KIND('k', 'e', 'p', 't')

void job_kept_seal(shoal_round *round)
{
    for (int i = 0; i < round->keeps; i++)
        if (round->kept[i]->born == round->number)
            round->kept[i]->check = base_crc32c(0, round->kept[i]->values, round->kept[i]->bytes);
}

static bool is_same(const shoal_kept *a, const shoal_kept *b)
{
    return a->born == b->born && a->bytes == b->bytes && a->check == b->check;
}

void job_kept_adopt(shoal_round *round, const shoal_round *from)
{
    for (int i = 0; i < round->keeps; i++)
        for (int j = 0; j < from->keeps && !round->kept[i]->values; j++)
            if (from->kept[j]->values && is_same(round->kept[i], from->kept[j])) {
                base_free(&round->kept[i]); /* as it was read, it is held by this round alone */
                __atomic_add_fetch(&from->kept[j]->holders, 1, __ATOMIC_RELAXED);
                round->kept[i] = from->kept[j];
            }
}

bool job_kept_here(const shoal_round *round)
{
    for (int i = 0; i < round->keeps; i++)
        if (!round->kept[i]->values)
            return false;
    return true;
}

int job_kept_put(job_run *run, const shoal_round *round, bool all)
{
    int status = SHOAL_OK;
    for (int i = 0; status == SHOAL_OK && i < round->keeps; i++) {
        const shoal_kept *kept = round->kept[i];
        if (all || kept->born == round->number)
            status = shoal_store_put_framed(run->store, job_key_kept(run->spec->id, kept->born).text, JOB_KIND_KEPT,
                                            kept->values, kept->bytes, NULL, NULL, job_deadline(run));
    }
    return status;
}

/* A damaged one is removed, and then counts as absent. */
static int fetch_part(job_run *run, shoal_kept *kept)
{
    job_key key = job_key_kept(run->spec->id, kept->born);
    shoal_blob blob = {0};
    int status = shoal_store_get_framed_within(run->store, key.text, JOB_KIND_KEPT, (int64_t)kept->bytes, &blob,
                                               job_deadline(run));
    if (status == SHOAL_MEMORY && blob.whole > 0)
        status = shoal_fail(SHOAL_BROKEN, "%s has %lld bytes", key.text, (long long)blob.whole);
    if (status == SHOAL_OK && (blob.size != kept->bytes || base_crc32c(0, blob.data, blob.size) != kept->check))
        status = shoal_fail(SHOAL_BROKEN, "%s is not what round %lld keeps", key.text, (long long)run->model->number);
    if (status == SHOAL_OK)
        status = base_alloc_unset(&kept->values, kept->bytes, 1, "what a round keeps");
    if (status == SHOAL_OK && kept->bytes)
        memcpy(kept->values, blob.data, kept->bytes);
    shoal_blob_release(&blob);
    if (status != SHOAL_BROKEN)
        return status;
    job_log(run, "%s: removed", shoal_error());
    status = shoal_store_remove(run->store, key.text, job_deadline(run));
    return status < 0 ? status : shoal_fail(SHOAL_ABSENT, "%s was damaged", key.text);
}

int job_kept_fetch(int64_t *lost, job_run *run)
{
    shoal_round *round = run->model->round;
    int status = SHOAL_OK;
    for (int i = 0; status == SHOAL_OK && i < round->keeps; i++) {
        *lost = round->kept[i]->born;
        if (!round->kept[i]->values)
            status = fetch_part(run, round->kept[i]);
    }
    return status;
}

/* ---- which parts are still needed -------------------------------------------------------------------------------- */

/* Parts are dropped oldest first, so a round keeps a range of rounds' parts; one that keeps nothing needs nothing from
 * before its end. */
static job_span span_of(const job_model *model)
{
    const shoal_round *round = model->round;
    return round && round->keeps ? (job_span){round->kept[0]->born, round->kept[round->keeps - 1]->born}
                                 : (job_span){model->number + 1, model->number};
}

static bool is_in(int64_t born, job_span span)
{
    return born >= span.first && born <= span.last;
}

/* Parts that this round kept and the next does not, noted by the worker that put it: when no model keeps them any
 * longer, they are removed. */
static int note_dropped(job_run *run)
{
    const shoal_round *round = run->model->round;
    job_span stays = span_of(run->next);
    int status = SHOAL_OK;
    for (int i = 0; status == SHOAL_OK && round && i < round->keeps; i++) {
        if (is_in(round->kept[i]->born, stays))
            continue;
        if (run->drops == run->drop_room) {
            int64_t room = run->drop_room ? 2 * run->drop_room : 16;
            status = base_grow(&run->drop, (size_t)run->drop_room, (size_t)room, sizeof *run->drop, "parts of rounds");
            if (status < 0)
                break;
            run->drop_room = room;
        }
        run->drop[run->drops++] = (job_dropped){.born = round->kept[i]->born, .since = run->next->number};
    }
    return status;
}

int job_kept_pass(job_run *run)
{
    const job_model *next = run->next;
    if (next->round)
        job_kept_adopt(next->round, run->model->round);
    run->recent[next->number % JOB_RECENT] = (job_recent){next->number, span_of(next)};
    return run->next_is_mine ? note_dropped(run) : SHOAL_OK;
}

job_span job_kept_span(const job_run *run, int64_t round)
{
    const job_recent *recent = &run->recent[(uint64_t)round % JOB_RECENT];
    return round > 0 && recent->round == round ? recent->span : (job_span){0, INT64_MAX};
}

bool job_kept_in_checkpoint(const job_run *run, int64_t born)
{
    return (run->checkpoint[0].round && is_in(born, run->checkpoint[0].span)) ||
           (run->checkpoint[1].round && is_in(born, run->checkpoint[1].span));
}

int job_kept_sweep(job_run *run, int64_t oldest)
{
    int64_t stay = 0;
    int status = SHOAL_OK;
    for (int64_t i = 0; i < run->drops; i++) {
        job_dropped drop = run->drop[i];
        if (status < 0 || drop.since > oldest || job_kept_in_checkpoint(run, drop.born) || job_leaving(run))
            run->drop[stay++] = drop;
        else
            status = shoal_store_discard(run->store, job_key_kept(run->spec->id, drop.born).text, job_deadline(run));
    }
    run->drops = stay;
    return status;
}
