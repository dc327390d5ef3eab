/* A worker at work for one client.  See task_serve.h. */
#include "engine/tasks/task_serve.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hex.h"
#include "base/memory.h"
#include "base/world.h"
#include "engine/store/job_admin.h"
#include "engine/store/job_run.h"
#include "engine/tasks/task_run.h"

static const double watch_often = 0.1, watch_rarely = 1; /* seconds between two looks at what runs, and at the store */
static const double wait_longest = 0.2;                  /* for the store, since a worker may be told to leave */
static const double list_rarely = 2;                     /* seconds between two listings, whatever happens */
static const double poll_least = 0.02, poll_most = 1;    /* seconds between two looks at one that does not wake */
static const double leave_soon = 1.5; /* seconds for its last words: whoever told it to leave may kill it after two */
static const double turns = 1.5;      /* leases after which a worker that serves all looks for others' work */

enum { RECENT_MOST = 256 };

/* What this worker knows of a bundle in the store. */
typedef struct known {
    task_seen seen;
    bool listed;       /* by the last listing */
    int64_t missed_at; /* when its owner had no record first, on a store that may have forgotten that; 0: it has */
} known;

/* A bundle that a thread is at. */
typedef struct hand {
    struct serving *all;
    base_thread *thread;
    task_guard *guard;
    _Atomic uint32_t stop; /* of the task that runs */
    /* Under the lock. */
    bool busy;
    int64_t number, began, looked_at; /* began: with the bundle; looked_at: for its results, last */
    int64_t task_began;
    int running;      /* the task that runs; -1: none */
    bool returns;     /* nothing more is begun of it */
    bool careful;     /* a worker died of it: its tasks run one at a time */
    bool is_void;     /* its client has removed it: nobody wants what comes of it */
    bool unpublished; /* has results that were not put */
    task_slots slots;
    int64_t done_at; /* when it was done with that bundle; 0: it is not, or the lookout has seen it */
    /* Of the thread alone. */
    shoal_blob blob;
    task_bundle bundle;
    task_claim claim;
    shoal_etag etag; /* of the claim */
    bool alone;      /* it keeps the lookout, so that nothing else runs beside it here */
} hand;

typedef struct serving {
    const task_server *server;
    task_seal seal;
    task_spec spec;
    task_means means;
    int module; /* a file in memory, or -1 */
    job_beat *beat;
    job_record record;
    job_members members;
    char host[64];

    _Atomic uint32_t lookout; /* 1: somebody is */
    _Atomic uint32_t over;    /* 1: everybody ends */
    /* Of the lookout alone. */
    known *known;
    int64_t count, room;
    uint32_t seen; /* of shoal_store_wait */
    bool stale;    /* the store is to be listed before anything else */
    int64_t listed_at;
    double pause;  /* of a store that does not wake */
    int64_t rank;  /* of this worker among the members */
    bool collided; /* another one was faster, so the members may be others by now */
    int64_t began;

    pthread_mutex_t lock;     /* never held across a call of the store */
    _Atomic uint32_t changed; /* a hand took something, or the end: for who watches */
    atomic_bool idle, closed;
    int status; /* the first failure, and its message */
    char message[512];
    hand *hand;
    int hands;
    int64_t recent[RECENT_MOST]; /* bundles whose results were put since the last listing, the oldest first */
    int recents;
    int64_t recents_gone; /* that were taken from its front, so that a place is told by how many came before */
} serving;

static int64_t deadline_of(void *context)
{
    const serving *all = context;
    return base_time_after(base_now(), all->server->patience);
}

static bool is_over(const serving *all)
{
    return atomic_load(&all->over) || atomic_load(all->server->leave);
}

static void end_all(serving *all)
{
    atomic_store(&all->over, 1);
    atomic_store(&all->changed, 1);
    base_wake_word(&all->over, INT_MAX);
    base_wake_word(&all->changed, INT_MAX);
    base_wake_word(&all->lookout, INT_MAX);
}

static void fail_all(serving *all, int status)
{
    pthread_mutex_lock(&all->lock);
    if (all->status == SHOAL_OK) {
        all->status = status;
        snprintf(all->message, sizeof all->message, "%s", shoal_error());
    }
    pthread_mutex_unlock(&all->lock);
    end_all(all);
}

static void log_line(serving *all, const char *line)
{
    if (all->server->log)
        all->server->log(all->server->log_context, line);
}

/* ---- what there is ----------------------------------------------------------------------------------------------- */

static known *find_known(serving *all, int64_t number)
{
    int64_t low = 0, high = all->count;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (all->known[middle].seen.number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low < all->count && all->known[low].seen.number == number ? &all->known[low] : NULL;
}

static int add_known(known **out, serving *all, int64_t number)
{
    int64_t at = all->count;
    if (all->count == all->room) {
        int64_t room = all->room ? 2 * all->room : 64;
        int status = base_grow(&all->known, (size_t)all->room, (size_t)room, sizeof *all->known, "bundles");
        if (status < 0)
            return status;
        all->room = room;
    }
    while (at > 0 && all->known[at - 1].seen.number > number)
        at--;
    memmove(all->known + at + 1, all->known + at, (size_t)(all->count - at) * sizeof *all->known);
    all->known[at] = (known){.seen = {.number = number}};
    all->count++;
    *out = &all->known[at];
    return SHOAL_OK;
}

/* How many bundles' results were put so far. */
static int64_t count_recent(serving *all)
{
    pthread_mutex_lock(&all->lock);
    int64_t count = all->recents_gone + all->recents;
    pthread_mutex_unlock(&all->lock);
    return count;
}

/* Under the lock. */
static void drop_recent(serving *all, int count)
{
    all->recents -= count;
    all->recents_gone += count;
    memmove(all->recent, all->recent + count, (size_t)all->recents * sizeof *all->recent);
}

/* What was put before a listing that shows the client needs no further thought: the first `count` of all.  Others may
 * have taken some of these since they were counted. */
static void forget_recent(serving *all, int64_t count)
{
    pthread_mutex_lock(&all->lock);
    if (!all->closed && count > all->recents_gone)
        drop_recent(all, (int)(count - all->recents_gone));
    pthread_mutex_unlock(&all->lock);
}

static bool take_recent(int64_t *number, serving *all)
{
    pthread_mutex_lock(&all->lock);
    bool there = all->recents > 0;
    if (there) {
        *number = all->recent[0];
        drop_recent(all, 1);
    }
    pthread_mutex_unlock(&all->lock);
    return there;
}

static void drop_known(serving *all, const known *one)
{
    int64_t at = one - all->known;
    memmove(all->known + at, all->known + at + 1, (size_t)(all->count - at - 1) * sizeof *all->known);
    all->count--;
}

/* One listing has both what is to be done and what is taken: "jobs/ID/t" is what all of their keys start with. */
static int list_bundles(serving *all)
{
    job_key prefix = job_key_of(all->server->id, "t"), closed = job_key_of(all->server->id, task_closed),
            spec = job_key_of(all->server->id, "tasks");
    shoal_listing page = {0};
    int64_t kept = 0;
    bool there = false, gone = false;
    int64_t recent = count_recent(all);
    int status;
    all->listed_at = base_now();
    for (int64_t i = 0; i < all->count; i++) {
        all->known[i].listed = false;
        all->known[i].seen.claimed = all->known[i].seen.mine;
    }
    do {
        status = shoal_store_list(all->server->store, prefix.text, NULL, &page, deadline_of(all));
        for (size_t i = 0; status == SHOAL_OK && i < page.count; i++) {
            task_place place;
            int64_t number;
            if (strcmp(page.entries[i].key, closed.text) == 0)
                all->closed = true;
            there |= strcmp(page.entries[i].key, spec.text) == 0;
            if (!task_key_read(&place, &number, all->server->id, page.entries[i].key))
                continue;
            known *one = find_known(all, number);
            if (!one)
                status = add_known(&one, all, number);
            if (one && place == TASK_WORK)
                one->listed = true;
            if (one && place == TASK_TAKE) {
                one->seen.claimed = true;
                one->seen.since = one->seen.since != 0 ? one->seen.since : all->listed_at;
            }
        }
    } while (status == SHOAL_OK && page.more);
    shoal_listing_release(&page);
    if (status == SHOAL_OK && !there) /* it was removed, unless the store has only forgotten it */
        status = job_is_gone(&gone, all->server->store, all->server->id, deadline_of(all));
    if (status < 0)
        return status;
    if (gone)
        all->closed = true;
    forget_recent(all, recent);
    for (int64_t i = 0; i < all->count; i++)
        if (all->known[i].listed || all->known[i].seen.held)
            all->known[kept++] = all->known[i];
    all->count = kept;
    return SHOAL_OK;
}

static task_choice choose_step(serving *all)
{
    task_seen *seen = NULL;
    task_choice choice = {TASK_NOTHING, -1, 0};
    if (base_alloc(&seen, (size_t)all->count + 1, sizeof *seen, "bundles") < 0)
        return choice;
    for (int64_t i = 0; i < all->count; i++)
        seen[i] = all->known[i].seen;
    const task_taker taker = {all->server->worker, all->rank, all->members.peers};
    choice = task_choose(seen, all->count, &taker, base_time_after(0, all->spec.lease), base_now());
    base_free(&seen);
    return choice;
}

/* ---- claims ------------------------------------------------------------------------------------------------------ */

static int put_claim(hand *self, const task_claim *claim, const shoal_etag *expected)
{
    serving *all = self->all;
    void *bytes = NULL;
    size_t size = 0;
    int status = task_claim_encode(&bytes, &size, claim, &all->seal, self->number);
    if (status == SHOAL_OK)
        status = shoal_store_put_framed(all->server->store, task_key_of(all->server->id, TASK_TAKE, self->number).text,
                                        TASK_KIND_TAKE, bytes, size, expected, &self->etag, deadline_of(all));
    base_free(&bytes);
    if (status == SHOAL_OK)
        self->claim = *claim;
    return status;
}

/* SHOAL_ABSENT when there is none; one without the right seal is nobody's, and *forged. */
static int read_claim(task_claim *out, shoal_etag *etag, bool *forged, serving *all, int64_t number)
{
    job_key key = task_key_of(all->server->id, TASK_TAKE, number);
    shoal_blob blob = {0};
    *forged = false;
    int status = shoal_store_get_framed(all->server->store, key.text, TASK_KIND_TAKE, &blob, deadline_of(all));
    if (status == SHOAL_OK) {
        *etag = blob.etag;
        status = task_claim_decode(out, blob.data, blob.size, &all->seal, number);
    }
    shoal_blob_release(&blob);
    *forged = status == SHOAL_BROKEN;
    return status;
}

static int list_members(serving *all)
{
    int status = job_members_list(&all->members, all->server->store, all->server->id, deadline_of(all));
    all->rank = 0;
    for (int64_t i = 0; i < all->members.peers; i++)
        all->rank += all->members.peer[i].worker < all->server->worker;
    all->collided = false;
    return status;
}

/* Who has it, and whether that worker lives. */
static int read_owner(serving *all, known *one)
{
    task_claim claim;
    shoal_etag etag;
    bool forged;
    int64_t now = base_now();
    int status = read_claim(&claim, &etag, &forged, all, one->seen.number);
    if (forged) {
        log_line(all, "a claim on tasks was not written by a worker of their client: removed");
        status = shoal_store_remove(all->server->store, task_key_of(all->server->id, TASK_TAKE, one->seen.number).text,
                                    deadline_of(all));
        one->seen.claimed = false;
        return status;
    }
    if (status == SHOAL_ABSENT) {
        one->seen.claimed = false;
        return SHOAL_OK;
    }
    if (status < 0)
        return status;
    /* A record is put before any claim, so that a listing from now on has it, if its worker lives. */
    if (base_time_after(all->members.listed_at, all->spec.lease / 4) <= now ||
        !job_members_alive(&all->members, claim.worker, all->spec.lease))
        status = list_members(all);
    one->seen.owner = claim.worker;
    one->seen.mine = claim.worker == all->server->worker;
    one->seen.owner_lives = job_members_alive(&all->members, claim.worker, all->spec.lease);
    if (one->seen.owner_lives) {
        one->missed_at = 0;
    } else if (shoal_store_describe(all->server->store).forgets > 0) { /* it writes its record again if it lives */
        one->missed_at = one->missed_at != 0 ? one->missed_at : now;
        one->seen.owner_lives = -base_seconds_until(one->missed_at) < all->spec.lease;
    }
    one->seen.read_at = base_now();
    return status;
}

static bool is_any_busy(serving *all)
{
    bool busy = false;
    pthread_mutex_lock(&all->lock);
    for (int i = 0; i < all->hands; i++)
        busy |= all->hand[i].busy;
    pthread_mutex_unlock(&all->lock);
    return busy;
}

static void release_hand(hand *self)
{
    task_bundle_release(&self->bundle);
    shoal_blob_release(&self->blob);
    task_slots_release(&self->slots);
}

/* Gets the bundle that was claimed, and what is there of its results.  SHOAL_ABSENT when its client has removed it;
 * SHOAL_CONFLICT when all of it is done. */
static int get_bundle(hand *self, bool fresh)
{
    serving *all = self->all;
    shoal_store *store = all->server->store;
    job_key key = task_key_of(all->server->id, TASK_WORK, self->number);
    shoal_etag etag;
    bool forged = false;
    int status = SHOAL_OK;
    /* Results are looked for first: a client that has them removes what was to be done before it removes them. */
    if (!fresh)
        status = task_slots_get(&self->slots, &etag, &forged, store, &all->seal, self->number, deadline_of(all));
    if (status == SHOAL_OK && fresh && job_store_awaits(store))
        status = shoal_store_await_framed(store, key.text, TASK_KIND_WORK, base_time_after(base_now(), wait_longest),
                                          &self->blob, deadline_of(all));
    else if (status == SHOAL_OK || status == SHOAL_ABSENT)
        status = shoal_store_get_framed(store, key.text, TASK_KIND_WORK, &self->blob, deadline_of(all));
    if (status == SHOAL_ABSENT && fresh && job_store_awaits(store)) /* or it was slow */
        status = shoal_store_get_framed(store, key.text, TASK_KIND_WORK, &self->blob, deadline_of(all));
    if (status == SHOAL_OK)
        status = task_bundle_decode(&self->bundle, self->blob.data, self->blob.size, &all->seal, self->number);
    if (status == SHOAL_BROKEN) {
        char line[1100];
        snprintf(line, sizeof line, "%s: %.500s; removed", key.text, shoal_error());
        log_line(all, line);
        status = shoal_store_remove(store, key.text, deadline_of(all));
        status = status == SHOAL_OK ? SHOAL_ABSENT : status;
    }
    if (status == SHOAL_OK && self->slots.slot && self->slots.count != self->bundle.count)
        task_slots_release(&self->slots);
    if (status == SHOAL_OK && !self->slots.slot)
        status = task_slots_new(&self->slots, self->bundle.count);
    if (status == SHOAL_OK && task_slots_full(&self->slots))
        status = SHOAL_CONFLICT;
    if (status < 0)
        release_hand(self);
    return status;
}

/* The bundle was listed a moment ago, and then its client removed it. */
static int withdraw_claim(const hand *self)
{
    const serving *all = self->all;
    return shoal_store_remove(all->server->store, task_key_of(all->server->id, TASK_TAKE, self->number).text,
                              base_time_after(base_now(), all->server->patience));
}

/* Makes the claim that the choice asks for; SHOAL_ABSENT when it was not to be had. */
static int claim_bundle(hand *self, known *one, task_step step)
{
    serving *all = self->all;
    task_claim claim = {.worker = all->server->worker, .index = -1}, before;
    shoal_etag etag = shoal_etag_nothing;
    bool forged;
    int status = SHOAL_OK;
    self->number = one->seen.number;
    if (step == TASK_CLAIM) {
        if (job_store_awaits(all->server->store)) /* then the bundle is here as soon as the claim is there */
            shoal_store_expect(all->server->store, task_key_of(all->server->id, TASK_WORK, self->number).text);
        status = put_claim(self, &claim, &etag);
        if (status == SHOAL_CONFLICT || status == SHOAL_UNKNOWN) {
            if (job_store_awaits(all->server->store))
                shoal_store_expect(all->server->store, NULL);
            one->seen.claimed = all->collided = true;
            one->seen.since = status == SHOAL_UNKNOWN ? 0 : base_now(); /* 0: it may be this worker's, look at once */
            one->seen.read_at = 0;
            return SHOAL_ABSENT;
        }
        if (status == SHOAL_OK)
            status = get_bundle(self, true);
    } else {
        status = read_claim(&before, &self->etag, &forged, all, self->number);
        if (status == SHOAL_BROKEN || status == SHOAL_ABSENT ||
            (status == SHOAL_OK && before.worker != (step == TASK_CHECK ? claim.worker : one->seen.owner))) {
            one->seen = (task_seen){.number = self->number, .claimed = status != SHOAL_ABSENT};
            return SHOAL_ABSENT;
        }
        if (status == SHOAL_OK)
            status = get_bundle(self, false);
        if (status == SHOAL_OK && step == TASK_CHECK) {
            self->claim = before;
        } else if (status == SHOAL_OK) { /* from here on a death is that of the first task that is left */
            int first = 0;
            while (self->slots.slot[first].bytes)
                first++;
            claim = task_claim_inherit(&before, claim.worker);
            if (claim.index < 0 || claim.index >= self->slots.count || self->slots.slot[claim.index].bytes)
                claim = task_claim_at(&claim, first);
            self->alone = task_claim_is_decisive(&claim, claim.index);
            if (self->alone && is_any_busy(all)) { /* later, or another worker */
                release_hand(self);
                self->alone = false;
                one->seen.owner = 0;
                one->seen.read_at = base_now();
                return SHOAL_ABSENT;
            }
            etag = self->etag;
            status = put_claim(self, &claim, &etag);
            if (status == SHOAL_CONFLICT || status == SHOAL_UNKNOWN) {
                release_hand(self);
                self->alone = false;
                one->seen.read_at = 0;
                one->seen.owner = 0;
                return SHOAL_ABSENT;
            }
        }
    }
    one->seen.claimed = true;
    if (status == SHOAL_CONFLICT) { /* its client has yet to see it */
        one->seen.read_at = one->seen.checked_at = base_now();
        one->seen.owner_lives = true;
        return SHOAL_ABSENT;
    }
    if (status == SHOAL_ABSENT) {
        drop_known(all, one);
        if (step == TASK_CLAIM)
            status = withdraw_claim(self);
        return status < 0 ? status : SHOAL_ABSENT;
    }
    if (status < 0)
        return status;
    one->seen.mine = one->seen.held = true;
    one->seen.done_at = one->seen.checked_at = 0;
    return SHOAL_OK;
}

/* ---- the lookout ------------------------------------------------------------------------------------------------- */

/* Waits for a change of what is to be done, on a store that wakes; otherwise for a while, longer each time. */
static void await_work(serving *all, int64_t until)
{
    int64_t now = base_now(), latest = base_time_after(now, wait_longest);
    if (until > latest)
        until = latest;
    if (shoal_store_describe(all->server->store).wakes) {
        job_key marker = job_key_open(all->server->id); /* put again whenever there is something new */
        all->stale = shoal_store_wait(all->server->store, marker.text, &all->seen, until) == SHOAL_OK;
        return;
    }
    all->pause = all->pause < poll_least ? poll_least : all->pause < poll_most ? all->pause * 1.5 : poll_most;
    base_wait_word(&all->over, 0, base_time_after(now, all->pause));
    all->stale = true;
}

/* The more there are, the more rarely; and only where a listing costs no money. */
static bool must_list_members(const serving *all)
{
    const double least = 0.2, each = 0.02; /* seconds */
    return all->collided && shoal_store_describe(all->server->store).wakes &&
           -base_seconds_until(all->members.listed_at) > least + each * (double)all->members.peers;
}

/* One that serves all clients and jobs has seen that there is nothing, while nobody runs anything. */
static bool may_rest(serving *all)
{
    return !all->server->stays && !is_any_busy(all);
}

/* The lookout takes note of what the others are done with. */
static void see_what_is_done(serving *all)
{
    pthread_mutex_lock(&all->lock);
    for (int i = 0; i < all->hands; i++) {
        hand *each = &all->hand[i];
        known *one = each->done_at != 0 ? find_known(all, each->number) : NULL;
        if (one) {
            one->seen.held = false;
            one->seen.done_at = each->done_at;
        }
        each->done_at = 0;
    }
    pthread_mutex_unlock(&all->lock);
}

/* Finds a bundle for this hand.  SHOAL_ABSENT: everybody is to end. */
static int look_for_bundle(hand *self)
{
    serving *all = self->all;
    while (!is_over(all)) {
        int status = SHOAL_OK;
        see_what_is_done(all);
        if (all->stale || -base_seconds_until(all->listed_at) > list_rarely)
            status = list_bundles(all);
        if (status < 0)
            return status;
        all->stale = false;
        if (all->closed ||
            (!all->server->stays && -base_seconds_until(all->began) > turns * all->spec.lease && may_rest(all)))
            return SHOAL_ABSENT;
        task_choice choice = choose_step(all);
        known *one = choice.which >= 0 ? &all->known[choice.which] : NULL;
        switch (choice.step) {
        case TASK_READ: status = read_owner(all, one); break;
        case TASK_CLAIM:
        case TASK_INHERIT:
        case TASK_CHECK:
            status = claim_bundle(self, one, choice.step);
            if (status == SHOAL_OK) {
                all->pause = 0;
                return SHOAL_OK;
            }
            status = status == SHOAL_ABSENT ? SHOAL_OK : status;
            break;
        case TASK_NOTHING:
            if (all->count == 0 && may_rest(all)) {
                all->idle = true;
                return SHOAL_ABSENT;
            }
            if (must_list_members(all))
                status = list_members(all);
            if (status == SHOAL_OK)
                await_work(all, choice.until);
            break;
        }
        if (status < 0)
            return status;
    }
    return SHOAL_ABSENT;
}

static bool become_lookout(serving *all)
{
    while (!is_over(all)) {
        uint32_t nobody = 0;
        if (atomic_compare_exchange_strong(&all->lookout, &nobody, 1))
            return true;
        base_wait_word(&all->lookout, 1, base_time_after(base_now(), 1));
    }
    return false;
}

static void hand_lookout_on(hand *self)
{
    self->alone = false;
    atomic_store(&self->all->lookout, 0);
    base_wake_word(&self->all->lookout, 1);
}

/* ---- leaving nothing behind ------------------------------------------------------------------------------------- */

static int remove_outputs(serving *all, int64_t number)
{
    char name[48];
    shoal_listing page = {0};
    snprintf(name, sizeof name, "out/%llx-", (unsigned long long)number);
    job_key prefix = job_key_of(all->server->id, name);
    int status = shoal_store_list(all->server->store, prefix.text, NULL, &page, deadline_of(all));
    for (size_t i = 0; i < page.count && status == SHOAL_OK; i++)
        status = shoal_store_remove(all->server->store, page.entries[i].key, deadline_of(all));
    shoal_listing_release(&page);
    return status;
}

/* Removes what this worker has put lately, if its client has ended. */
static int withdraw_if_gone(serving *all)
{
    static const task_place places[] = {TASK_DONE, TASK_TAKE};
    bool gone = all->closed;
    int status = gone ? SHOAL_OK : job_is_gone(&gone, all->server->store, all->server->id, deadline_of(all));
    for (int64_t number; status == SHOAL_OK && take_recent(&number, all);) {
        for (size_t i = 0; gone && i < 2 && status == SHOAL_OK; i++)
            status = shoal_store_remove(all->server->store, task_key_of(all->server->id, places[i], number).text,
                                        deadline_of(all));
        if (gone && status == SHOAL_OK)
            status = remove_outputs(all, number);
    }
    if (gone)
        atomic_store(&all->closed, true);
    return status;
}

/* ---- results ----------------------------------------------------------------------------------------------------- */

/* Takes over what the store has, and stops what runs for nobody. */
static void adopt_results(hand *self, int64_t number, task_slots *from)
{
    serving *all = self->all;
    pthread_mutex_lock(&all->lock);
    bool there = self->busy && self->number == number && from->count == self->slots.count;
    for (int i = 0; there && i < from->count; i++)
        if (from->slot[i].bytes && !self->slots.slot[i].bytes) { /* cancelled, or done by another */
            self->slots.slot[i] = from->slot[i];
            from->slot[i].bytes = NULL;
            if (i == self->running)
                atomic_store(&self->stop, 1);
        }
    pthread_mutex_unlock(&all->lock);
}

/* Puts what the hand has of results, and takes over what others have; does nothing when it is at another bundle by
 * now.  The slots are copied, so that no lock is held meanwhile. */
static int publish(hand *self, int64_t number)
{
    serving *all = self->all;
    task_slots copy = {0};
    int status = SHOAL_OK;
    pthread_mutex_lock(&all->lock);
    bool there = self->busy && self->number == number;
    if (there)
        status = task_slots_new(&copy, self->slots.count);
    for (int i = 0; i < copy.count && status == SHOAL_OK; i++) {
        const struct task_slot *from = &self->slots.slot[i];
        if (!from->bytes)
            continue;
        status = base_alloc_unset(&copy.slot[i].bytes, from->size, 1, "a result");
        if (status == SHOAL_OK) {
            memcpy(copy.slot[i].bytes, from->bytes, from->size);
            copy.slot[i].size = from->size;
        }
    }
    if (there)
        self->unpublished = false;
    pthread_mutex_unlock(&all->lock);
    if (there && status == SHOAL_OK)
        status = task_slots_merge(&copy, NULL, all->server->store, &all->seal, number, deadline_of(all));
    if (there && status == SHOAL_OK)
        adopt_results(self, number, &copy);
    task_slots_release(&copy);
    return status;
}

/* Whether something was cancelled of what runs here, or done by another.  A client removes a bundle when nothing of it
 * is left to do. */
static int look_at_results(hand *self, int64_t number)
{
    serving *all = self->all;
    shoal_store *store = all->server->store;
    task_slots there = {0};
    shoal_blob blob = {0};
    shoal_etag etag;
    bool forged;
    int status = task_slots_get(&there, &etag, &forged, store, &all->seal, number, deadline_of(all));
    if (status == SHOAL_OK)
        adopt_results(self, number, &there);
    else if (status == SHOAL_ABSENT)
        status = shoal_store_get_range(store, task_key_of(all->server->id, TASK_WORK, number).text, 0, 1, NULL, NULL,
                                       &blob, deadline_of(all));
    if (status == SHOAL_ABSENT) {
        pthread_mutex_lock(&all->lock);
        if (self->busy && self->number == number) {
            self->is_void = self->returns = true;
            atomic_store(&self->stop, 1);
        }
        pthread_mutex_unlock(&all->lock);
        status = SHOAL_OK;
    }
    shoal_blob_release(&blob);
    task_slots_release(&there);
    return status;
}

/* What is put after the client has removed everything would stay: the next listing, or the end, shows it. */
static int remember_put(hand *self)
{
    serving *all = self->all;
    int status = SHOAL_OK;
    for (bool kept = false; !kept && status == SHOAL_OK;) {
        pthread_mutex_lock(&all->lock);
        kept = all->recents < RECENT_MOST;
        if (kept)
            all->recent[all->recents++] = self->number;
        pthread_mutex_unlock(&all->lock);
        status = kept ? SHOAL_OK : withdraw_if_gone(all);
    }
    return status;
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

/* The next task that is to be run, or -1.  It counts as running from then on. */
static int next_task(hand *self)
{
    serving *all = self->all;
    int next = -1;
    pthread_mutex_lock(&all->lock);
    for (int i = 0; i < self->slots.count && next < 0 && !self->returns && !is_over(all); i++)
        if (!self->slots.slot[i].bytes)
            next = i;
    self->running = next;
    self->task_began = base_now();
    atomic_store(&self->stop, is_over(all));
    pthread_mutex_unlock(&all->lock);
    return next;
}

static void keep_outcome(hand *self, int index, void *bytes, size_t size)
{
    serving *all = self->all;
    pthread_mutex_lock(&all->lock);
    if (!self->slots.slot[index].bytes) {
        self->slots.slot[index] = (struct task_slot){bytes, size};
        self->unpublished = true;
        bytes = NULL;
    }
    self->running = -1;
    pthread_mutex_unlock(&all->lock);
    base_free(&bytes);
}

static int set_apart(hand *self, int index, int state, int deaths, const char *message)
{
    void *bytes = NULL;
    size_t size = 0;
    int status = task_run_not(&bytes, &size, &self->all->means, state, deaths, message);
    if (status == SHOAL_OK)
        keep_outcome(self, index, bytes, size);
    return status;
}

/* In a bundle that a worker died of, the claim says first which task runs. */
static int mark_claim(hand *self, int index)
{
    if (!task_claim_is_careful(&self->claim) || self->claim.index == index)
        return SHOAL_OK;
    task_claim claim = task_claim_at(&self->claim, index);
    shoal_etag etag = self->etag;
    return put_claim(self, &claim, &etag);
}

static int run_one(hand *self, int index)
{
    serving *all = self->all;
    int deaths = (int)task_claim_deaths(&self->claim, index);
    char message[160];
    void *bytes = NULL;
    size_t size = 0;
    if (task_claim_is_poison(&self->claim, index)) {
        snprintf(message, sizeof message,
                 "%d workers died one after another while they ran this task, so it is not run again", deaths);
        return set_apart(self, index, SHOAL_TASK_POISON, deaths, message);
    }
    const task_running running = {.item = &self->bundle.item[index],
                                  .bundle = self->number,
                                  .index = index,
                                  .deaths = deaths,
                                  .stop = &self->stop,
                                  .guard = self->guard};
    int status = task_run(&bytes, &size, &all->means, &running);
    if (status == SHOAL_OK)
        keep_outcome(self, index, bytes, size);
    return status;
}

static int run_tasks(hand *self)
{
    int index, status = SHOAL_OK;
    while (status == SHOAL_OK && (index = next_task(self)) >= 0) {
        status = mark_claim(self, index);
        if (status == SHOAL_OK)
            status = run_one(self, index);
        if (status == SHOAL_STOPPED && !is_over(self->all))
            status = SHOAL_OK; /* that one was cancelled: publish has put it into its place */
        if (status == SHOAL_OK && task_claim_is_careful(&self->claim) && !self->is_void)
            status = publish(self, self->number); /* the next one may be the last of this worker */
        if (self->alone)
            hand_lookout_on(self);
        pthread_mutex_lock(&self->all->lock);
        self->running = -1;
        pthread_mutex_unlock(&self->all->lock);
    }
    return status == SHOAL_STOPPED ? SHOAL_OK : status;
}

/* What was not run goes back to the client, who puts it into another bundle. */
static int return_rest(hand *self)
{
    int status = SHOAL_OK;
    for (int i = 0; i < self->slots.count && status == SHOAL_OK; i++)
        if (!self->slots.slot[i].bytes)
            status = set_apart(self, i, TASK_RETURNED, 0, "");
    return status;
}

static void note_begin(hand *self)
{
    serving *all = self->all;
    pthread_mutex_lock(&all->lock);
    self->busy = true;
    self->returns = self->unpublished = self->is_void = false;
    self->careful = task_claim_is_careful(&self->claim);
    self->running = -1;
    self->began = self->looked_at = base_now();
    pthread_mutex_unlock(&all->lock);
    atomic_fetch_add(&all->changed, 1);
    base_wake_word(&all->changed, 1);
}

static void note_end(hand *self)
{
    serving *all = self->all;
    pthread_mutex_lock(&all->lock);
    self->busy = false;
    self->done_at = base_now();
    release_hand(self);
    pthread_mutex_unlock(&all->lock);
}

static int do_bundle(hand *self)
{
    int status = run_tasks(self);
    if (status == SHOAL_CONFLICT || status == SHOAL_UNKNOWN)
        status = SHOAL_OK; /* the claim is another's: this worker was thought dead */
    else if (status == SHOAL_OK)
        status = return_rest(self);
    if (status == SHOAL_OK && !self->is_void)
        status = publish(self, self->number);
    if (status == SHOAL_OK)
        status = remember_put(self);
    return status;
}

static void run_hand(void *context)
{
    hand *self = context;
    serving *all = self->all;
    while (become_lookout(all)) {
        int status = look_for_bundle(self);
        if (status == SHOAL_OK)
            note_begin(self);
        if (status < 0 || !self->alone)
            hand_lookout_on(self);
        if (status == SHOAL_OK) {
            status = do_bundle(self);
            note_end(self);
        }
        if (self->alone)
            hand_lookout_on(self);
        if (status == SHOAL_ABSENT)
            end_all(all);
        else if (status < 0)
            fail_all(all, status);
    }
}

/* ---- watching ---------------------------------------------------------------------------------------------------- */

/* Gives back what has not begun; with `all_of_it` also what runs, whose outcome is nobody's then. */
static int give_back(hand *self, int64_t number, bool all_of_it)
{
    serving *all = self->all;
    int status = SHOAL_OK;
    for (int i = 0; i < TASK_BUNDLE_MOST && status == SHOAL_OK; i++) {
        void *bytes = NULL;
        size_t size = 0;
        status = task_run_not(&bytes, &size, &all->means, TASK_RETURNED, 0, "");
        pthread_mutex_lock(&all->lock);
        bool there = status == SHOAL_OK && self->busy && self->number == number && i < self->slots.count;
        if (there && (all_of_it || i != self->running) && !self->slots.slot[i].bytes) {
            self->slots.slot[i] = (struct task_slot){bytes, size};
            bytes = NULL;
        }
        pthread_mutex_unlock(&all->lock);
        base_free(&bytes);
        if (!there)
            break;
    }
    return status;
}

/* A function that has taken too long is told to stop, and one that does not look keeps only its thread: its place is
 * filled.  Commands see to this themselves. */
static int end_overdue(hand *self, int64_t number, int index, double timeout)
{
    serving *all = self->all;
    char message[80];
    void *bytes = NULL;
    size_t size = 0;
    snprintf(message, sizeof message, "the function took longer than %g seconds", timeout);
    int status = task_run_not(&bytes, &size, &all->means, SHOAL_TASK_FAILED, 0, message);
    pthread_mutex_lock(&all->lock);
    if (status == SHOAL_OK && self->busy && self->number == number && self->running == index &&
        !self->slots.slot[index].bytes) {
        self->slots.slot[index] = (struct task_slot){bytes, size};
        self->unpublished = true;
        atomic_store(&self->stop, 1);
        bytes = NULL;
    }
    pthread_mutex_unlock(&all->lock);
    base_free(&bytes);
    return status;
}

/* A long task keeps neither the results of others nor tasks that could run elsewhere. */
static int watch_hand(hand *self, bool leaving)
{
    serving *all = self->all;
    int64_t unbegun = 0, number = 0;
    bool publishes = false, gives = false, looks = false, overdue = false;
    double timeout = 0;
    int running = -1;
    pthread_mutex_lock(&all->lock);
    if (self->busy && self->running >= 0) {
        for (int i = 0; i < self->slots.count; i++)
            unbegun += !self->slots.slot[i].bytes && i != self->running;
        double seconds = -base_seconds_until(self->began);
        bool is_long = -base_seconds_until(self->task_began) > watch_often;
        running = self->running;
        timeout = self->bundle.item[running].function ? self->bundle.item[running].timeout : 0;
        overdue = timeout > 0 && -base_seconds_until(self->task_began) > timeout && !self->slots.slot[running].bytes;
        gives = leaving || (is_long && task_gives_back(seconds, unbegun, self->careful));
        publishes = gives || overdue || (is_long && self->unpublished);
        looks = is_long && !publishes && base_seconds_until(self->looked_at) < -watch_rarely;
        self->returns |= gives;
        number = self->number;
        if (publishes || looks)
            self->looked_at = base_now();
        if (leaving)
            atomic_store(&self->stop, 1);
    }
    pthread_mutex_unlock(&all->lock);
    int status = overdue ? end_overdue(self, number, running, timeout) : SHOAL_OK;
    if (status == SHOAL_OK && gives)
        status = give_back(self, number, leaving);
    if (status == SHOAL_OK && looks)
        status = look_at_results(self, number);
    return status == SHOAL_OK && publishes ? publish(self, number) : status;
}

static void watch_all(serving *all)
{
    while (!atomic_load(&all->over)) {
        uint32_t changed = atomic_load(&all->changed);
        bool leaving = atomic_load(all->server->leave), busy = is_any_busy(all);
        for (int i = 0; busy && i < all->hands; i++) {
            int status = watch_hand(&all->hand[i], leaving);
            if (status < 0)
                fail_all(all, status);
        }
        if (leaving)
            end_all(all);
        else if (!atomic_load(&all->over))
            base_wait_word(busy ? &all->over : &all->changed, busy ? 0 : changed,
                           base_time_after(base_now(), busy ? watch_often : wait_longest));
    }
    for (int i = 0; i < all->hands; i++) /* whatever the end, nothing that runs is waited for */
        atomic_store(&all->hand[i].stop, 1);
}

/* ---- beginning and ending ---------------------------------------------------------------------------------------- */

static void fill_record(serving *all)
{
    const shoal_worker_options *options = all->server->options;
    job_record *record = &all->record;
    record->worker = all->server->worker;
    record->pid = getpid();
    record->slots = (uint32_t)options->slots;
    record->roles = SHOAL_ROLE_MAP;
    record->rescuing = -1;
    snprintf(record->host, sizeof record->host, "%s", all->host);
    snprintf(record->kernel, sizeof record->kernel, "%s", all->server->kernel);
    snprintf(record->version, sizeof record->version, "%s", SHOAL_VERSION);
    snprintf(record->state, sizeof record->state, "working");
}

/* The client's functions, from a sealed file in memory whose hash was checked. */
static int load_module(serving *all)
{
    const shoal_worker_options *options = all->server->options;
    const task_bytes module = {.apart = true, .size = all->spec.module_size};
    task_bytes wanted = module;
    task_held held = {0};
    if (!all->spec.has_module)
        return SHOAL_OK;
    if (!options->load_tasks)
        return shoal_fail(SHOAL_INVALID, "the tasks of %s bring a module, which this worker can't load",
                          all->server->id);
    memcpy(wanted.hash, all->spec.module, BASE_HASH_SIZE);
    int status = task_hold(&held, &all->means, &wanted);
    if (status == SHOAL_ABSENT || status == SHOAL_BROKEN)
        status = shoal_fail(SHOAL_AGAIN, "%s", shoal_error());
    if (status == SHOAL_OK)
        status = job_code_in_memory(&all->module, held.bytes, held.size);
    if (status == SHOAL_OK)
        status = options->load_tasks(&all->means.module, all->module);
    task_held_release(&held);
    return status;
}

static int check_client(serving *all, const void *bytes, size_t size)
{
    const task_server *server = all->server;
    if (!server->options->task_key)
        return shoal_fail(SHOAL_INVALID, "the tasks of %s need a worker with their client's key (--task-key)",
                          server->id);
    if (task_spec_decode(&all->spec, bytes, size, &all->seal) < 0)
        return shoal_fail(SHOAL_INVALID, "the tasks of %s are those of a client with another key", server->id);
    if (strcmp(all->spec.version, SHOAL_VERSION) != 0)
        return shoal_fail(SHOAL_INVALID,
                          "the tasks of %s are those of shoal %s, but this is %s: workers must have the same version",
                          server->id, all->spec.version, SHOAL_VERSION);
    return SHOAL_OK;
}

static int begin_hands(serving *all)
{
    int slots = all->server->options->slots, begun = 0;
    int status = base_alloc(&all->hand, (size_t)slots, sizeof *all->hand, "the threads");
    for (int i = 0; i < slots && status == SHOAL_OK; i++) {
        all->hand[i].all = all;
        all->hand[i].running = -1;
        status = task_guard_new(&all->hand[i].guard);
    }
    if (status < 0)
        return status;
    all->hands = slots;
    for (int i = 0; i < slots && status == SHOAL_OK; i++) {
        status = base_thread_start(&all->hand[i].thread, run_hand, &all->hand[i]);
        begun += status == SHOAL_OK;
    }
    return begun > 0 ? SHOAL_OK : status; /* those there are do the work, too */
}

static void end_hands(serving *all)
{
    for (int i = 0; all->hand && i < all->server->options->slots; i++) {
        base_thread_join(&all->hand[i].thread);
        task_guard_free(&all->hand[i].guard);
        release_hand(&all->hand[i]);
    }
    base_free(&all->hand);
}

/* Removes what a client left that has not been seen for as long as it said. */
static int sweep_client(serving *all)
{
    log_line(all, "the client of these tasks has been silent for too long: removes them");
    return shoal_job_remove(all->server->store, all->server->id, deadline_of(all));
}

static int run_serving(serving *all)
{
    const task_server *server = all->server;
    fill_record(all);
    int status = job_beat_start(&all->beat, server->store, server->id, all->spec.lease, &all->record, deadline_of(all));
    if (status < 0)
        return status;
    all->began = base_now();
    all->stale = true;
    status = begin_hands(all);
    if (status == SHOAL_OK)
        watch_all(all);
    end_hands(all);
    if (status == SHOAL_OK && all->recents > 0)
        status = withdraw_if_gone(all);
    if (status == SHOAL_OK && all->status < 0)
        status = shoal_fail(all->status, "%s", all->message);
    if (status == SHOAL_OK && atomic_load(server->leave))
        status = shoal_fail(SHOAL_STOPPED, "told to leave");
    return status;
}

/* One that serves all looks first whether there is anything, before it says that it takes part. */
static int is_there_work(bool *out, serving *all)
{
    *out = true;
    if (all->server->stays)
        return SHOAL_OK;
    int status = list_bundles(all);
    *out = false;
    for (int64_t i = 0; i < all->count; i++)
        *out |= !all->known[i].seen.claimed;
    *out |= all->count > 0; /* whose worker may be dead */
    *out &= !all->closed;
    return status;
}

int task_serve(bool *idle, const task_server *server, const void *spec, size_t size, double spec_age)
{
    serving all = {.server = server, .module = -1, .collided = true, .seal = {server->id, server->options->task_key}};
    char error[512];
    bool work = false;
    *idle = false;
    pthread_mutex_init(&all.lock, NULL);
    if (gethostname(all.host, sizeof all.host - 1) != 0)
        all.host[0] = '\0';
    all.means = (task_means){.store = server->store,
                             .id = server->id,
                             .worker = server->worker,
                             .function = server->options->functions,
                             .memory = server->options->memory / 4,
                             .host = all.host,
                             .absence = 1,
                             .leave = server->leave,
                             .deadline = deadline_of,
                             .context = &all};
    int status = check_client(&all, spec, size);
    all.means.forgets = shoal_store_describe(server->store).forgets > 0;
    if (status == SHOAL_OK && all.means.forgets)
        all.means.absence = all.spec.lease; /* in which a client looks through the store twice, if it is fast */
    if (status == SHOAL_OK && spec_age > all.spec.keep && !server->stays)
        status = sweep_client(&all);
    else if (status == SHOAL_OK) {
        status = is_there_work(&work, &all);
        *idle = !work;
        if (work && status == SHOAL_OK && server->options->cache && shoal_store_describe(server->store).far)
            status = job_cache_new(&all.means.cache, server->options->cache, server->options->cache_bytes);
        if (work && status == SHOAL_OK)
            status = load_module(&all);
        if (work && status == SHOAL_OK)
            status = run_serving(&all);
    }
    snprintf(error, sizeof error, "%s", shoal_error());
    if (work && server->options->tasks_over)
        server->options->tasks_over();
    /* Records of those that left are for jobs, which people look at; these would only pile up. */
    job_beat_stop(&all.beat, NULL, base_time_after(base_now(), status == SHOAL_STOPPED ? leave_soon : 5));
    job_cache_free(&all.means.cache);
    job_members_release(&all.members);
    base_free(&all.known);
    if (all.module >= 0)
        close(all.module);
    pthread_mutex_destroy(&all.lock);
    *idle = *idle || all.idle;
    return status < 0 ? shoal_fail(status, "%s", error) : SHOAL_OK;
}
