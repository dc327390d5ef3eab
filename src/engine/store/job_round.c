/* One round of a job: does what job_decide says until the next model is there.  See job_run.h. */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/option.h"
#include "base/world.h"
#include "engine/store/job_run.h"
#include "learn/partial.h"

/* How many workers may die of one piece in one round before it is blamed. */
enum { DEATHS_MOST = 3 };

/* How many useless messages are skipped before the worker looks for something else to do. */
enum { RUBBISH_AT_ONCE = 100 };

/* Rounds after which a worker that never has to wait tidies up anyway. */
enum { SWEEP_EVERY = 8 };

/* Seconds for which a look is recent enough to start on another worker's piece. */
static const double look_holds = 0.1;

/* Seconds between two records that tell how many slices were mapped. */
static const double tell_every = 0.5;

static int64_t top_of(const job_run *run)
{
    return run->tree->pieces - 1;
}

/* ---- what is mine ------------------------------------------------------------------------------------------------ */

static void read_assignment(job_run *run)
{
    const job_trailer *trailer = &run->model->trailer;
    if (trailer->pieces != job_tree_units(run->tree))
        return; /* round 0, or a useless trailer */
    for (int64_t unit = 0; unit < trailer->pieces; unit++) {
        int32_t holder = trailer->holder[unit];
        int64_t piece = job_tree_of_unit(run->tree, unit);
        if (holder < 0)
            job_piece_flag(run, piece, JOB_ORPHAN, 0);
        else if (trailer->member[holder].worker == run->record.worker)
            job_piece_flag(run, piece, JOB_MINE, 0);
    }
}

/* The queues of round 0, the role each needs, and which pieces it announces. */
static const char *const queue_name[3] = {"map", "reduce", "last"};
static const unsigned queue_role[3] = {SHOAL_ROLE_MAP, SHOAL_ROLE_REDUCE, SHOAL_ROLE_LAST};

void job_round_open_queues(job_run *run)
{
    for (int i = 0; i < 3; i++)
        run->queue_open[i] = run->model->number == 0 && (run->record.roles & queue_role[i]);
}

/* This worker's share of the pieces of a kind, if the spec says how many workers will come.  The product can't
 * overflow: slots are fewer than the expected workers, at most JOB_WORKERS_MOST, and pieces fewer than twice
 * JOB_SLICES_MOST. */
static int64_t share_of(const job_run *run, int queue)
{
    const job_tree *tree = run->tree;
    int64_t all = queue == 0 ? tree->nodes[0] : queue == 1 ? tree->pieces - 1 - tree->count[0] : 1;
    int64_t workers = run->spec->workers, slots = run->record.slots;
    return workers > slots ? (all * slots + workers - 1) / workers : all;
}

/* Takes one message, which names a piece to make; it is acknowledged at once, since a worker's death is noticed anyway.
 * *piece is -1 if it names none: others may write to the queue. */
static int take_message(job_run *run, int queue, int64_t *piece)
{
    job_key name = job_key_of(run->spec->id, queue_name[queue]);
    shoal_message message = {0};
    char text[24] = "";
    int status = shoal_store_take(run->store, name.text, run->spec->lease, &message, job_deadline(run));
    *piece = -1;
    if (status == SHOAL_BROKEN || status == SHOAL_MEMORY)
        return SHOAL_OK; /* the store has dropped it, or it is too large to be a number */
    if (status < 0)
        return status;
    if (message.size < sizeof text)
        memcpy(text, message.data, message.size);
    if (!base_parse_count(piece, text) || *piece < 0 || *piece >= run->tree->pieces)
        *piece = -1;
    status = shoal_store_finish(run->store, name.text, &message, job_deadline(run));
    shoal_message_release(&message);
    return status == SHOAL_LOST || status == SHOAL_UNKNOWN ? SHOAL_OK : status;
}

/* In round 0 work is handed out by the queues, one piece at a time, so that a quick worker gets more; what nobody else
 * took after a while is taken beyond the share. */
static int take_work(job_run *run)
{
    for (int queue = 0; queue < 3; queue++) {
        int64_t piece = -1;
        bool enough = run->taken[queue] >= share_of(run, queue) && base_now() < run->pace.flush_at;
        if (!run->queue_open[queue] || enough)
            continue;
        int status = SHOAL_OK;
        for (int tries = 0; tries < RUBBISH_AT_ONCE && status == SHOAL_OK && piece < 0 && !job_leaving(run); tries++)
            status = take_message(run, queue, &piece);
        if (status == SHOAL_OK && piece >= 0) {
            job_piece_flag(run, piece, JOB_MINE, 0);
            run->taken[queue]++;
            return SHOAL_OK;
        }
        if (status < 0 && status != SHOAL_ABSENT)
            return status;
        if (status == SHOAL_ABSENT)
            run->queue_open[queue] = false;
    }
    return SHOAL_OK;
}

static bool has_unmapped(const job_run *run)
{
    for (int64_t s = 0; s < run->spec->slices; s++)
        if ((run->flag[s] & JOB_MINE) && !(run->flag[s] & (JOB_HERE | JOB_STORED | JOB_LACKING)))
            return true;
    return false;
}

/* ---- acting ------------------------------------------------------------------------------------------------------ */

static void drop_slice(job_held *held)
{
    engine_slice_free(&held->slice);
    job_rows_free(&held->rows);
    held->partial = NULL;
}

/* Which of the slices that are held to let go of: one that is not this worker's, else one that it has mapped in this
 * round, since that is needed last, else any; -1 when there is none but `slice`. */
static int64_t choose_to_drop(const job_run *run, int64_t slice)
{
    int64_t chosen = -1;
    int best = -1;
    for (int64_t s = 0; s < run->spec->slices; s++) {
        int worth = !(run->flag[s] & JOB_MINE) ? 2 : run->held[s].partial ? 1 : 0;
        if (s != slice && run->held[s].slice && worth > best) {
            best = worth;
            chosen = s;
        }
    }
    return chosen;
}

/* Releases slices until `more` fit into memory.  A partial that exists only here is put first: the store has room for
 * it. */
static int make_place(job_run *run, int64_t slice, int64_t more)
{
    int64_t held = 0, drop;
    int status = SHOAL_OK;
    for (int64_t s = 0; s < run->spec->slices; s++)
        held += run->held[s].slice != NULL;
    for (; held + more > run->memory.slices && (drop = choose_to_drop(run, slice)) >= 0; held--) {
        bool here = run->held[drop].partial && (run->flag[drop] & JOB_HERE);
        if (here && !(run->flag[drop] & JOB_STORED))
            status = job_piece_put(run, drop);
        if (status < 0)
            break;
        if (here)
            job_piece_flag(run, drop, JOB_STORED, 0);
        for (int64_t piece = drop; here && piece < run->tree->count[0]; piece += run->tree->nodes[0])
            if (!run->added[piece])
                run->flag[piece] &= (unsigned char)~JOB_HERE;
        drop_slice(&run->held[drop]);
    }
    return status;
}

/* A slice is loaded when it is first mapped, and stays while it is this worker's and fits. */
static int hold_slice(job_run *run, int64_t slice)
{
    job_held *held = &run->held[slice];
    if (held->slice)
        return job_rows_check(held->rows);
    int64_t deadline = job_deadline(run);
    int status = make_place(run, slice, 1);
    if (status == SHOAL_OK)
        status = job_rows_load(&held->rows, run->loader, slice, deadline);
    if (status == SHOAL_AGAIN && base_seconds_until(deadline) < -1) /* the process was stopped between two requests */
        status = job_rows_load(&held->rows, run->loader, slice, job_deadline(run));
    if (status < 0)
        return status;
    engine_rows rows = job_rows_view(held->rows);
    status = engine_slice_new(&held->slice, run->spec->slice[slice].first_grain, run->spec->slice[slice].grains, &rows);
    if (status < 0)
        job_rows_free(&held->rows);
    return status;
}

/* What a missing slice means: it may still be on its way; after a long time nobody brings it. */
static int note_lacking(job_run *run, int64_t slice)
{
    int64_t now = base_now(), first = job_slice_first_row(run->spec, slice);
    char text[256];
    job_piece_flag(run, slice, JOB_LACKING, 0);
    if (!run->lacking_from)
        run->lacking_from = now;
    if (-base_seconds_until(run->lacking_from) < 300)
        return SHOAL_OK;
    snprintf(text, sizeof text,
             "rows %lld to %lld of %s are not in the store: its upload was cut short; resume the job where the data is",
             (long long)first + 1, (long long)(first + job_slice_rows(run->spec, slice)), run->spec->data_name);
    return job_lead_fail(run, SHOAL_INVALID, text);
}

/* Only now is it known how much scratch the round needs; slices make room for it before it is used. */
static int begin_mapping(job_run *run, int64_t slice)
{
    if (run->begun)
        return SHOAL_OK;
    int status = job_blame(run, engine_mapper_begin(run->mapper, run->model->round));
    if (status == SHOAL_OK) {
        job_memory_scratch(&run->memory, engine_mapper_scratch(run->mapper));
        status = make_place(run, slice, 0);
    }
    run->begun = status == SHOAL_OK;
    return status;
}

/* In a long round others see how far this worker is: now and then where a request costs nothing, and with its beats
 * elsewhere. */
static int tell_maps(job_run *run)
{
    int64_t now = base_now();
    job_beat_set(run->beat, &run->record);
    if (!shoal_store_describe(run->store).wakes || now < base_time_after(run->told_at, tell_every))
        return SHOAL_OK;
    run->told_at = now;
    return job_beat_now(run->beat, job_deadline(run));
}

static int map_slice(job_run *run, int64_t slice)
{
    job_held *held = &run->held[slice];
    int status = hold_slice(run, slice);
    if (status == SHOAL_ABSENT)
        return note_lacking(run, slice);
    run->lacking_from = 0;
    int64_t began = base_now();
    if (status == SHOAL_OK)
        status = begin_mapping(run, slice);
    if (status == SHOAL_OK)
        status = job_blame(run, engine_slice_map(&held->partial, run->mapper, held->slice));
    if (status == SHOAL_INVALID || status == SHOAL_USAGE)
        return job_lead_fail(run, status, shoal_error());
    if (status < 0)
        return status;
    engine_mapper_counted(run->mapper, run->counter[slice]);
    run->maker[slice] = run->record.worker;
    held->used = run->model->number;
    job_piece_flag(run, slice, JOB_HERE, 0);
    run->record.maps++;
    status = tell_maps(run);
    job_pace_mapped(run, -base_seconds_until(began));
    return status;
}

static int merge_piece(job_run *run, int64_t piece)
{
    int64_t first, end, came;
    shoal_partial *sum = NULL;
    int status = job_piece_fetch(run, piece, false, &came);
    job_tree_children(run->tree, piece, &first, &end);
    for (int64_t child = first; status == SHOAL_OK && child < end; child++) {
        if (!(run->flag[child] & JOB_HERE))
            return SHOAL_OK; /* it vanished meanwhile: decide again */
        status = job_piece_add(run, child);
    }
    if (status == SHOAL_OK)
        status = job_piece_sum(&sum, run, piece);
    if (status == SHOAL_OK)
        status = learn_partial_settle(sum);
    if (status < 0)
        return status;
    run->flag[piece] |= JOB_HERE;
    return piece == top_of(run) ? job_lead(run) : SHOAL_OK;
}

/* Sets what is waited for from now on: a piece of a group (its parent), or the next model (-1).  Tidying up is done
 * meanwhile. */
static int begin_waiting(job_run *run, int64_t piece, int64_t parent)
{
    int status = SHOAL_OK;
    if (run->waiting_for == piece)
        return SHOAL_OK;
    if (run->waiting_for < 0 || piece < 0) /* the children of a group are expected together */
        job_pace_wait_anew(run);
    run->waiting_for = piece;
    run->seen_child = 0;
    if (run->swept_in < run->model->number)
        status = job_sweep(run);
    run->swept_in = run->model->number;
    return status == SHOAL_OK && parent == top_of(run) ? job_lead_prepare(run) : status;
}

static int64_t first_missing(const job_run *run, int64_t piece)
{
    int64_t first, end;
    job_tree_children(run->tree, piece, &first, &end);
    while (first < end && (run->flag[first] & JOB_HERE))
        first++;
    return first < end ? first : -1;
}

/* Waits for the first child of a group that is missing, and when it has come asks for all the others, too: a worker
 * that waits for many things need not be woken for each.  At the moment when all should be there it asks for all of
 * them at once. */
static int fetch_children(job_run *run, int64_t piece)
{
    int64_t came = 0, child = first_missing(run, piece);
    job_guess *guess = job_pace_children(run, job_tree_level(run->tree, piece));
    double early = job_guess_early(guess);
    job_key key = job_key_piece(run->spec->id, run->model->number, run->tree, child);
    int status = begin_waiting(run, child, piece);
    if (status < 0)
        return status;
    if (job_store_awaits(run->store) && !job_piece_shares_blob(run, child))
        return job_leaving(run) ? SHOAL_OK : job_piece_await(run, child, job_pace_until(run), &came);
    job_pace_wait(run, key.text, &run->seen_child, early);
    int64_t asked = base_now();
    bool expected = early > 0 && !run->pace.asked && !shoal_store_describe(run->store).wakes;
    status = job_piece_fetch(run, piece, !expected, &came);
    if (status < 0)
        return status;
    bool all = first_missing(run, piece) < 0;
    job_pace_note_answer(run, asked, came, all);
    if (all)
        job_pace_note_children(run, asked, guess);
    return SHOAL_OK;
}

static int await_model(job_run *run)
{
    job_key key = job_key_model(run->spec->id, run->model->number + 1);
    int status = begin_waiting(run, -1, -1);
    if (status < 0)
        return status;
    if (job_store_awaits(run->store)) {
        status = job_leaving(run) ? SHOAL_ABSENT
                                  : job_await_model(&run->next, run, run->model->number + 1, job_pace_until(run));
        return status == SHOAL_ABSENT ? SHOAL_OK : status;
    }
    job_pace_wait(run, key.text, &run->seen_model, job_pace_early(run));
    int64_t asked = base_now();
    status = job_take_model(&run->next, run, run->model->number + 1);
    if (status != SHOAL_OK && status != SHOAL_ABSENT)
        return status;
    job_pace_note_answer(run, asked, status == SHOAL_OK, status == SHOAL_OK);
    run->pace.found = status == SHOAL_OK ? asked : 0;
    return SHOAL_OK;
}

/* ---- helping out ------------------------------------------------------------------------------------------------- */

/* How many workers have died in a row of this piece, by the record of one that died while it made the piece for another
 * worker in this round.  0 if the record is about something else.  Workers that died at the same time, as when a whole
 * site goes down, did not die in a row. */
static int64_t died_of(job_run *run, int64_t piece, const char *key)
{
    job_record record;
    uint64_t worker;
    if (job_leaving(run) || !job_key_read_worker(&worker, key) ||
        job_members_alive(&run->members, worker, run->spec->lease))
        return 0;
    bool died = job_record_get(&record, run->store, key, job_deadline(run)) == SHOAL_OK &&
                record.round == run->model->number && record.rescuing == piece;
    return died && record.deaths >= 0 && record.deaths < DEATHS_MOST ? record.deaths + 1 : 0;
}

static int count_deaths(job_run *run, int64_t piece, int64_t *deaths)
{
    const char *id = run->spec->id;
    job_key prefix = job_key_of(id, "left/");
    shoal_listing page = {0};
    int status;
    *deaths = 0;
    do {
        status = shoal_store_list(run->store, prefix.text, NULL, &page, job_deadline(run));
        for (size_t k = 0; status == SHOAL_OK && k < page.count; k++) {
            int64_t died = died_of(run, piece, page.entries[k].key);
            *deaths = died > *deaths ? died : *deaths;
        }
    } while (status == SHOAL_OK && page.more);
    shoal_listing_release(&page);
    /* Those that fell silent and whose records nobody has moved yet. */
    for (int64_t i = 0; status == SHOAL_OK && i < run->members.peers; i++) {
        int64_t died = died_of(run, piece, job_key_worker(id, run->members.peer[i].worker).text);
        *deaths = died > *deaths ? died : *deaths;
    }
    return status;
}

/* Before a piece is made for somebody else, this is written down: if the piece is what killed them, that is known after
 * a few. */
static int announce_rescue(job_run *run, int64_t piece)
{
    int64_t deaths = 0;
    bool slice = piece < run->spec->slices;
    if (!slice ||
        !(run->model->number == 0 || (run->flag[piece] & JOB_ORPHAN))) /* in round 0 nobody knows who has it */
        return SHOAL_OK;
    int status = count_deaths(run, piece, &deaths);
    if (status == SHOAL_OK && deaths >= DEATHS_MOST) {
        char text[256];
        int64_t first = job_slice_first_row(run->spec, piece);
        snprintf(text, sizeof text, "%lld workers in a row died while mapping rows %lld to %lld of %s in round %lld",
                 (long long)deaths, (long long)first + 1, (long long)(first + job_slice_rows(run->spec, piece)),
                 run->spec->data_name, (long long)run->model->number);
        return job_lead_fail(run, SHOAL_INVALID, text);
    }
    run->record.rescuing = piece;
    run->record.deaths = deaths;
    job_beat_set(run->beat, &run->record);
    return status == SHOAL_OK ? job_beat_now(run->beat, job_deadline(run)) : status;
}

/* A slice was released, and the store forgot it: what is here of it are only parts of sums. */
static void forget_slice(job_run *run, int64_t slice)
{
    for (int64_t piece = slice; piece < run->tree->count[0]; piece += run->tree->nodes[0])
        if (!(run->flag[piece] & JOB_FETCHED))
            run->flag[piece] &= (unsigned char)~JOB_HERE;
}

static int act(job_run *run, job_action action)
{
    int status = SHOAL_OK;
    if (action.rescue) {
        job_log(run, "round %lld: %s %lld for another worker", (long long)run->model->number,
                action.act == JOB_MAP ? "maps slice" : "merges group", (long long)action.piece);
        status = announce_rescue(run, action.piece);
        if (status < 0 || run->next)
            return status;
        run->record.doubled++;
        run->counter[action.piece][JOB_DOUBLED]++;
    }
    switch (action.act) {
    case JOB_MAP: status = map_slice(run, action.piece); break;
    case JOB_PUT:
        if (action.piece < run->spec->slices && !run->held[action.piece].partial) {
            forget_slice(run, action.piece);
            break;
        }
        status = job_piece_put(run, action.piece);
        if (status == SHOAL_OK)
            job_piece_flag(run, action.piece, JOB_STORED, 0);
        run->pace.stored++; /* which is no sign of another worker */
        break;
    case JOB_MERGE: status = merge_piece(run, action.piece); break;
    case JOB_FETCH: status = fetch_children(run, action.piece); break;
    case JOB_WAIT: status = await_model(run); break;
    }
    if (action.rescue) {
        run->record.rescuing = -1;
        run->looked_at = 0; /* the next one only after another look */
        job_pace_helped(run);
    }
    return status;
}

/* ---- the round --------------------------------------------------------------------------------------------------- */

/* Tells the store what this worker will wait for: the others' pieces of the groups that it merges, and the next model
 * if another makes it. */
static void expect_others(job_run *run)
{
    const job_tree *tree = run->tree;
    shoal_store_expect(run->store, NULL);
    for (int64_t piece = 0; piece + 1 < tree->pieces && run->model->number > 0; piece++)
        if (!job_piece_shares_blob(run, piece) && !(run->flag[piece] & JOB_MINE) &&
            (run->flag[job_tree_parent(tree, piece)] & JOB_MINE))
            shoal_store_expect(run->store, job_key_piece(run->spec->id, run->model->number, tree, piece).text);
    if (!(run->flag[top_of(run)] & JOB_MINE))
        shoal_store_expect(run->store, job_key_model(run->spec->id, run->model->number + 1).text);
}

static void begin_round(job_run *run)
{
    job_piece_begin(run);
    read_assignment(run);
    run->begun = false;
    run->looked_at = 0;
    run->waiting_for = -2;
    job_round_open_queues(run);
    memset(run->taken, 0, sizeof run->taken);
    for (int64_t s = 0; s < run->spec->slices; s++)
        if (run->held[s].slice && !(run->flag[s] & JOB_MINE) && run->held[s].used < run->model->number - 1)
            drop_slice(&run->held[s]);
    (void)make_place(run, -1, 0); /* puts nothing: no partial is of this round yet */
    run->record.round = run->model->number;
    job_loader_counted(run->loader, &run->record.hits, &run->record.fetched, &run->record.bytes);
    job_beat_set(run->beat, &run->record);
    job_pace_begin(run);
    run->told_at = run->pace.began;
    if (job_store_awaits(run->store)) {
        expect_others(run);
    } else { /* the first wait notices whatever comes from now on, so that it need not begin with a look */
        run->seen_model = 0;
        shoal_store_wait(run->store, job_key_model(run->spec->id, run->model->number + 1).text, &run->seen_model, 0);
    }
    if (!run->members.listed_at)
        run->pace.look_at = 0; /* just joined: the workers assigned to this round may be gone */
}

static job_action choose_action(job_run *run)
{
    int64_t now = base_now();
    job_view view = {.tree = run->tree,
                     .piece = run->flag,
                     .roles = run->record.roles,
                     .worker = run->record.worker,
                     .round = (uint64_t)run->model->number,
                     .late = now >= run->pace.late_at,
                     .quiet = job_pace_is_quiet(run),
                     .flush = now >= run->pace.flush_at};
    return job_decide(&view);
}

/* One step: a look when one is due, a message in round 0, and what job_decide says.  Nothing new is begun after the
 * worker was told to leave. */
static int do_step(job_run *run)
{
    int status = base_now() >= run->pace.look_at ? job_look(run) : SHOAL_OK;
    if (status == SHOAL_OK && !run->next && !job_leaving(run) && !has_unmapped(run))
        status = take_work(run);
    if (status < 0 || run->next)
        return status;
    job_action action = choose_action(run);
    if (action.rescue && base_now() >= base_time_after(run->looked_at, look_holds) && !job_leaving(run)) {
        status = job_look(run);
        action = choose_action(run); /* and done at once: anything in between may take longer than a look stays
                                      * recent */
    }
    return status < 0 || run->next || job_leaving(run) ? status : act(run, action);
}

int job_round_do(job_run *run)
{
    int status = SHOAL_OK;
    begin_round(run);
    while (status == SHOAL_OK && !run->next)
        status = job_leaving(run) ? shoal_fail(SHOAL_STOPPED, "told to leave") : do_step(run);
    if (status == SHOAL_OK)
        job_pace_note_round(run);
    if (status == SHOAL_OK && run->model->number >= run->swept_in + SWEEP_EVERY) { /* it never waits */
        run->swept_in = run->model->number;
        status = job_sweep(run);
    }
    return status;
}

void job_round_drop_slices(job_run *run)
{
    for (int64_t s = 0; run->held && s < run->spec->slices; s++)
        drop_slice(&run->held[s]);
}

void job_round_release(job_run *run)
{
    int64_t sums = job_tree_sums(run->spec->ranged.ranges ? &run->spec->ranged : &run->spec->tree);
    job_round_drop_slices(run);
    for (int64_t i = 0; run->sum && i < sums; i++)
        learn_partial_free(&run->sum[i]);
    base_free(&run->held);
    base_free(&run->maker);
    base_free(&run->sum);
    base_free(&run->flag);
    base_free(&run->added);
    base_free(&run->counter);
    base_free(&run->put);
}
