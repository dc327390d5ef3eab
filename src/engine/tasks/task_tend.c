/* A client's thread: it sends, collects, tidies up and mends.  See task_client.h. */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "engine/store/job_admin.h"
#include "engine/store/job_gang.h"
#include "engine/store/job_record.h"
#include "engine/tasks/task_client.h"

enum { GANG = 8, BYTES_MOST = 1 << 20 };
static const double aim_near = 0.02, aim_far = 0.25;    /* seconds that a bundle may take */
static const double poll_least = 0.02, poll_most = 0.5; /* seconds between two looks, on a store that does not wake */
static const double wait_longest = 0.1;                 /* for a store that wakes, since there is other work */
static const double count_rarely = 2;                   /* between two looks for workers while there are none */
static const double recent_part = 0.2;                  /* of a new bundle in the average */

static int threads_of(const shoal_tasks *self)
{
    return self->wakes ? 1 : GANG; /* threads pay only where there is a round trip */
}

/* ---- sending ----------------------------------------------------------------------------------------------------- */

/* A bundle that is about to be put. */
typedef struct outgoing {
    int64_t number;
    void *bytes;
    size_t size;
} outgoing;

int tasks_ring_if_due(shoal_tasks *self, bool at_once)
{
    static const double burst = 0.0003; /* seconds */
    pthread_mutex_lock(&self->lock);
    bool due = self->owes_ring && (at_once || self->waiting > 0 || -base_seconds_until(self->rung_at) > burst);
    pthread_mutex_unlock(&self->lock);
    return due ? tasks_ring(self) : SHOAL_OK;
}

int tasks_ring(shoal_tasks *self)
{
    pthread_mutex_lock(&self->lock);
    self->owes_ring = false;
    self->rung_at = base_now();
    pthread_mutex_unlock(&self->lock);
    return shoal_store_put(self->store, job_key_open(self->id).text, "", 0, NULL, NULL, tasks_deadline(self));
}

/* Under the lock: takes tasks from those that are pending. */
static int fill_bundle(task_sent *out, shoal_tasks *self, int64_t most)
{
    size_t bytes = 0;
    int status = base_alloc(&out->entry, (size_t)most, sizeof *out->entry, "a bundle of tasks");
    if (status < 0)
        return status;
    while (out->count < most && self->pending.first) {
        task_entry *next = self->pending.first;
        if (out->count > 0 && (next->alone || bytes + next->size > BYTES_MOST))
            break;
        tasks_queue_take(&self->pending);
        next->stage = TASK_OUT;
        next->bundle = out->number;
        next->index = out->count;
        bytes += next->size;
        out->entry[out->count++] = next;
        if (next->alone)
            break;
    }
    return SHOAL_OK;
}

/* Under the lock: a bundle's tasks go back to the head of those that are pending. */
static void unfill_bundle(task_sent *sent, shoal_tasks *self)
{
    for (int i = sent->count; i-- > 0;)
        if (sent->entry[i] && sent->entry[i]->stage == TASK_OUT) {
            sent->entry[i]->stage = TASK_PENDING;
            tasks_queue_add(&self->pending, sent->entry[i], true);
        }
    base_free(&sent->entry);
}

/* Under the lock. */
static int encode_bundle(outgoing *out, const shoal_tasks *self, const task_sent *sent)
{
    const void *item[TASK_BUNDLE_MOST];
    size_t bytes[TASK_BUNDLE_MOST];
    for (int i = 0; i < sent->count; i++) {
        item[i] = sent->entry[i]->bytes;
        bytes[i] = sent->entry[i]->size;
    }
    out->number = sent->number;
    return task_bundle_encode(&out->bytes, &out->size, item, bytes, sent->count, &self->seal, sent->number);
}

/* Under the lock: the next bundle, noted as out; SHOAL_ABSENT when none is to be made. */
static int make_bundle(outgoing *out, shoal_tasks *self)
{
    const task_load load = {.pending = self->pending.count,
                            .out = self->out,
                            .slots = self->slots,
                            .seconds = self->seconds,
                            .aim = self->wakes ? aim_near : aim_far};
    int64_t most = task_bundle_size(&load);
    if (most == 0 || self->status < 0 || atomic_load(&self->closing))
        return SHOAL_ABSENT;
    if (self->out == self->sent_room) {
        int64_t room = self->sent_room ? 2 * self->sent_room : 64;
        int status = base_grow(&self->sent, (size_t)self->sent_room, (size_t)room, sizeof *self->sent, "bundles");
        if (status < 0)
            return status;
        self->sent_room = room;
    }
    task_sent *sent = &self->sent[self->out];
    *sent = (task_sent){.number = self->next_bundle};
    int status = fill_bundle(sent, self, most);
    if (status == SHOAL_OK)
        status = encode_bundle(out, self, sent);
    if (status < 0) {
        unfill_bundle(sent, self);
        return status;
    }
    self->next_bundle++;
    self->out++;
    return SHOAL_OK;
}

typedef struct sending {
    shoal_tasks *self;
    outgoing out[GANG];
} sending;

static int put_bundle(void *context, int64_t which)
{
    const sending *all = context;
    const outgoing *out = &all->out[which];
    int status = shoal_store_put_framed(all->self->store, task_key_of(all->self->id, TASK_WORK, out->number).text,
                                        TASK_KIND_WORK, out->bytes, out->size, NULL, NULL, tasks_deadline(all->self));
    pthread_mutex_lock(&all->self->lock);
    task_sent *sent = tasks_find_sent(all->self, out->number);
    if (sent && status == SHOAL_OK)
        sent->put = true;
    pthread_mutex_unlock(&all->self->lock);
    return status;
}

int tasks_send(shoal_tasks *self)
{
    sending all = {.self = self};
    int status = SHOAL_OK, count = 0;
    pthread_mutex_lock(&self->lock);
    if (self->sending) { /* who is at it looks again before it ends */
        pthread_mutex_unlock(&self->lock);
        return SHOAL_OK;
    }
    self->sending = true;
    do {
        count = 0;
        while (count < threads_of(self) && (status = make_bundle(&all.out[count], self)) == SHOAL_OK)
            count++;
        status = status == SHOAL_ABSENT ? SHOAL_OK : status;
        if (count == 0) /* and the lock is kept until nobody is sending, so that nothing submitted meanwhile is left */
            break;
        pthread_mutex_unlock(&self->lock);
        if (status == SHOAL_OK)
            status = job_gang_run(threads_of(self), count, put_bundle, &all);
        for (int i = 0; i < count; i++)
            base_free(&all.out[i].bytes);
        pthread_mutex_lock(&self->lock);
        self->owes_ring = true;
    } while (status == SHOAL_OK);
    self->sending = false;
    pthread_mutex_unlock(&self->lock);
    return status == SHOAL_OK ? tasks_ring_if_due(self, false) : status;
}

/* ---- collecting -------------------------------------------------------------------------------------------------- */

/* Bundles whose results are to be read, or that are to be removed. */
typedef struct arrivals {
    shoal_tasks *self;
    int64_t *number; /* -1: nothing more is to be done about it */
    int64_t count, room;
} arrivals;

static int add_arrival(arrivals *all, int64_t number)
{
    if (all->count == all->room) {
        int64_t room = all->room ? 2 * all->room : 64;
        int status = base_grow(&all->number, (size_t)all->room, (size_t)room, sizeof *all->number, "results");
        if (status < 0)
            return status;
        all->room = room;
    }
    all->number[all->count++] = number;
    return SHOAL_OK;
}

/* All that the store has of a bundle.  What is to be done goes first, so that nobody does it again; the claim last, so
 * that nobody claims what is still listed. */
static int remove_bundle(const shoal_tasks *self, int64_t number)
{
    static const task_place order[] = {TASK_WORK, TASK_DONE, TASK_TAKE};
    int status = SHOAL_OK;
    for (size_t i = 0; i < TASK_PLACES && status == SHOAL_OK; i++)
        status = shoal_store_remove(self->store, task_key_of(self->id, order[i], number).text, tasks_deadline(self));
    return status;
}

static int remove_arrival(void *context, int64_t which)
{
    const arrivals *all = context;
    return all->number[which] < 0 ? SHOAL_OK : remove_bundle(all->self, all->number[which]);
}

int tasks_withdraw(shoal_tasks *self)
{
    arrivals all = {.self = self};
    int status = SHOAL_OK;
    for (int64_t i = 0; i < self->out && status == SHOAL_OK; i++)
        status = add_arrival(&all, self->sent[i].number);
    if (status == SHOAL_OK)
        status = job_gang_run(threads_of(self), all.count, remove_arrival, &all);
    base_free(&all.number);
    return status;
}

/* A forged result: what the worker put, if it did, is lost.  So the tasks are run again. */
static int refuse_results(shoal_tasks *self, int64_t number)
{
    char line[400];
    snprintf(line, sizeof line,
             "%s: results that were not written by a worker of this client were refused, and their tasks run again",
             task_key_of(self->id, TASK_DONE, number).text);
    pthread_mutex_lock(&self->lock);
    self->forged++;
    task_sent *sent = tasks_find_sent(self, number);
    if (sent)
        sent->put = false;
    self->mends = true;
    pthread_mutex_unlock(&self->lock);
    tasks_warn(self, line);
    int status = shoal_store_remove(self->store, task_key_of(self->id, TASK_DONE, number).text, tasks_deadline(self));
    if (status == SHOAL_OK)
        status = shoal_store_remove(self->store, task_key_of(self->id, TASK_TAKE, number).text, tasks_deadline(self));
    return status;
}

/* Under the lock: hands out what is new; *full when all of the bundle's tasks have a result or have been given back. */
static int take_results(shoal_tasks *self, task_sent *sent, const task_slots *slots, bool *full)
{
    int status = SHOAL_OK, counted = 0;
    double seconds = 0;
    *full = task_slots_full(slots) && slots->count == sent->count;
    for (int i = 0; i < slots->count && i < sent->count && status == SHOAL_OK; i++) {
        const struct task_slot *slot = &slots->slot[i];
        task_entry *entry = sent->entry[i];
        task_outcome outcome;
        if (!slot->bytes || !entry)
            continue;
        status = task_outcome_decode(&outcome, slot->bytes, slot->size);
        if (status == SHOAL_OK && outcome.state != SHOAL_TASK_CANCELLED && outcome.state != TASK_RETURNED) {
            seconds += outcome.seconds;
            counted++;
        }
        if (status == SHOAL_OK)
            status = tasks_end_entry(self, entry, outcome.state, slot->bytes, slot->size);
        task_outcome_release(&outcome);
    }
    if (counted > 0) {
        double mean = seconds / counted;
        self->seconds =
            self->seconds < 0 || mean > self->seconds ? mean : self->seconds + recent_part * (mean - self->seconds);
    }
    return status;
}

static void forget_bundle(shoal_tasks *self, task_sent *sent)
{
    int64_t at = sent - self->sent;
    base_free(&sent->entry);
    memmove(sent, sent + 1, (size_t)(self->out - at - 1) * sizeof *sent);
    self->out--;
}

static int read_arrival(void *context, int64_t which)
{
    const arrivals *all = context;
    shoal_tasks *self = all->self;
    int64_t number = all->number[which];
    task_slots slots = {0};
    shoal_etag etag;
    bool forged = false, full = false, known;
    int status = task_slots_get(&slots, &etag, &forged, self->store, &self->seal, number, tasks_deadline(self));
    all->number[which] = -1;
    if (forged)
        return refuse_results(self, number);
    if (status == SHOAL_ABSENT)
        return SHOAL_OK;
    if (status < 0)
        return status;
    pthread_mutex_lock(&self->lock);
    task_sent *sent = tasks_find_sent(self, number);
    known = sent != NULL;
    if (sent) {
        sent->seen = etag;
        status = take_results(self, sent, &slots, &full);
        if (status == SHOAL_OK && full)
            forget_bundle(self, sent);
    }
    pthread_mutex_unlock(&self->lock);
    task_slots_release(&slots);
    if (known)
        tasks_notify(self);
    if (full || !known) /* unknown: of a worker that did them again */
        all->number[which] = number;
    return status;
}

/* Whether results are new to this client. */
static bool is_news(shoal_tasks *self, int64_t number, const shoal_etag *etag)
{
    pthread_mutex_lock(&self->lock);
    const task_sent *sent = tasks_find_sent(self, number);
    bool news = !sent || strcmp(sent->seen.text, etag->text) != 0;
    pthread_mutex_unlock(&self->lock);
    return news;
}

static int collect_results(shoal_tasks *self, bool *found)
{
    job_key prefix = task_key_prefix(self->id, TASK_DONE);
    arrivals all = {.self = self};
    shoal_listing page = {0};
    int status;
    do {
        status = shoal_store_list(self->store, prefix.text, NULL, &page, tasks_deadline(self));
        for (size_t i = 0; status == SHOAL_OK && i < page.count; i++) {
            task_place place;
            int64_t number;
            if (task_key_read(&place, &number, self->id, page.entries[i].key) &&
                is_news(self, number, &page.entries[i].etag))
                status = add_arrival(&all, number);
        }
    } while (status == SHOAL_OK && page.more);
    shoal_listing_release(&page);
    *found = all.count > 0;
    if (status == SHOAL_OK) /* all of them first: somebody waits for results, and for nothing that is removed */
        status = job_gang_run(threads_of(self), all.count, read_arrival, &all);
    if (status == SHOAL_OK)
        status = job_gang_run(threads_of(self), all.count, remove_arrival, &all);
    base_free(&all.number);
    return status;
}

/* ---- mending ----------------------------------------------------------------------------------------------------- */

/* How many workers there are, and with how many threads. */
static int count_workers(shoal_tasks *self)
{
    int64_t workers = 0, slots = 0;
    int status = job_members_list(&self->members, self->store, self->id, tasks_deadline(self));
    for (int64_t i = 0; i < self->members.peers && status == SHOAL_OK; i++) {
        job_peer *peer = &self->members.peer[i];
        job_record record;
        if (!peer->known) {
            status =
                job_record_get(&record, self->store, job_key_worker(self->id, peer->worker).text, tasks_deadline(self));
            peer->known = status == SHOAL_OK;
            peer->slots = peer->known && record.slots < 4096 ? record.slots : 1;
            status = status == SHOAL_ABSENT || status == SHOAL_BROKEN ? SHOAL_OK : status;
        }
        if (peer->known && job_members_alive(&self->members, peer->worker, self->spec.lease)) {
            workers++;
            slots += peer->slots;
        }
    }
    pthread_mutex_lock(&self->lock);
    self->workers = workers;
    self->slots = slots;
    pthread_mutex_unlock(&self->lock);
    return status;
}

/* Which of the bundles that are out are in the store. */
static int look_for_bundles(shoal_tasks *self)
{
    job_key prefix = task_key_prefix(self->id, TASK_WORK);
    shoal_listing page = {0};
    int status;
    pthread_mutex_lock(&self->lock);
    for (int64_t i = 0; i < self->out; i++)
        self->sent[i].put = false;
    pthread_mutex_unlock(&self->lock);
    do {
        status = shoal_store_list(self->store, prefix.text, NULL, &page, tasks_deadline(self));
        pthread_mutex_lock(&self->lock);
        for (size_t i = 0; status == SHOAL_OK && i < page.count; i++) {
            task_place place;
            int64_t number;
            if (!task_key_read(&place, &number, self->id, page.entries[i].key))
                continue;
            task_sent *sent = tasks_find_sent(self, number);
            if (sent)
                sent->put = true;
        }
        pthread_mutex_unlock(&self->lock);
    } while (status == SHOAL_OK && page.more);
    shoal_listing_release(&page);
    return status;
}

/* Under the lock: of the bundles that are not in the store, the first after `after`.  One of which some tasks have a
 * result can't be put as it was, since only those that are left are still here: they travel in another one. */
static int64_t next_missing(shoal_tasks *self, int64_t after)
{
    for (int64_t i = 0; i < self->out; i++) {
        task_sent *sent = &self->sent[i];
        bool whole = true;
        if (sent->put || sent->number <= after)
            continue;
        for (int j = 0; j < sent->count; j++)
            whole &= sent->entry[j] != NULL;
        if (whole)
            return sent->number;
        unfill_bundle(sent, self);
        forget_bundle(self, sent);
        i--;
    }
    return -1;
}

/* Puts again what the store does not have. */
static int put_missing(shoal_tasks *self)
{
    int status = SHOAL_OK;
    for (int64_t number = -1; status == SHOAL_OK;) {
        sending all = {.self = self};
        pthread_mutex_lock(&self->lock);
        number = next_missing(self, number);
        if (number >= 0)
            status = encode_bundle(&all.out[0], self, tasks_find_sent(self, number));
        pthread_mutex_unlock(&self->lock);
        if (number < 0)
            break;
        if (status == SHOAL_OK)
            status = put_bundle(&all, 0);
        base_free(&all.out[0].bytes);
    }
    return status;
}

/* Large arguments, of which this client keeps copies where the store may forget them. */
static int put_data_again(shoal_tasks *self)
{
    int status = SHOAL_OK;
    for (int64_t i = 0; self->forgets && status == SHOAL_OK; i++) {
        unsigned char hash[BASE_HASH_SIZE];
        shoal_blob blob = {0};
        void *copy = NULL;
        size_t size = 0;
        pthread_mutex_lock(&self->lock);
        bool more = i < self->data;
        if (more && self->datum[i].copy) {
            memcpy(hash, self->datum[i].hash, sizeof hash);
            size = self->datum[i].size;
            status = base_alloc_unset(&copy, size, 1, "a task's argument");
            if (status == SHOAL_OK)
                memcpy(copy, self->datum[i].copy, size);
        }
        pthread_mutex_unlock(&self->lock);
        if (!more)
            break;
        if (copy && shoal_store_get_range(self->store, task_key_data(self->id, hash).text, 0, 1, NULL, NULL, &blob,
                                          tasks_deadline(self)) == SHOAL_ABSENT)
            status = shoal_store_put(self->store, task_key_data(self->id, hash).text, copy, size, NULL, NULL,
                                     tasks_deadline(self));
        shoal_blob_release(&blob);
        base_free(&copy);
    }
    return status;
}

/* What the store should have of this client, and may have lost.  Putting the description again also says that the
 * client is there. */
static int mend_store(shoal_tasks *self)
{
    bool gone = false;
    int status = job_is_gone(&gone, self->store, self->id, tasks_deadline(self));
    if (status == SHOAL_OK && gone)
        return shoal_fail(SHOAL_STOPPED, "somebody has removed the tasks of %s from %s", self->id,
                          shoal_store_describe(self->store).name);
    if (status == SHOAL_OK)
        status = shoal_store_put_framed(self->store, job_key_of(self->id, "tasks").text, TASK_KIND_SPEC,
                                        self->spec_bytes, self->spec_size, NULL, NULL, tasks_deadline(self));
    if (status == SHOAL_OK)
        status = put_data_again(self);
    if (status == SHOAL_OK)
        status = look_for_bundles(self);
    if (status == SHOAL_OK)
        status = put_missing(self);
    if (status == SHOAL_OK)
        status = tasks_ring(self);
    if (status == SHOAL_OK)
        status = count_workers(self);
    self->checked_at = base_now();
    return status;
}

/* ---- the thread -------------------------------------------------------------------------------------------------- */

/* Under no lock: whether the store is to be looked through now. */
static bool must_mend(shoal_tasks *self)
{
    double every = self->spec.lease / 2 > 1 ? self->spec.lease / 2 : 1;
    pthread_mutex_lock(&self->lock);
    bool mends = self->mends;
    self->mends = false;
    pthread_mutex_unlock(&self->lock);
    return mends || -base_seconds_until(self->checked_at) > every;
}

static bool lacks_workers(shoal_tasks *self)
{
    pthread_mutex_lock(&self->lock);
    bool lacks = self->out > 0 && self->slots == 0;
    pthread_mutex_unlock(&self->lock);
    if (!lacks)
        self->count_pause = 0;
    return lacks && -base_seconds_until(self->counted_at) > self->count_pause;
}

/* Whether there may be results. */
static bool await_results(shoal_tasks *self, uint32_t bell)
{
    int64_t until = base_time_after(base_now(), wait_longest);
    if (self->wakes)
        return shoal_store_wait(self->store, task_key_prefix(self->id, TASK_DONE).text, &self->seen, until) == SHOAL_OK;
    pthread_mutex_lock(&self->lock);
    bool waits = self->out > 0;
    pthread_mutex_unlock(&self->lock);
    self->pause = self->pause < poll_least ? poll_least : self->pause < poll_most ? self->pause * 1.5 : poll_most;
    base_wait_word(&self->bell, bell, base_time_after(base_now(), waits ? self->pause : poll_most));
    if (atomic_load(&self->bell) != bell) /* something was submitted: it may be done soon */
        self->pause = 0;
    return waits;
}

void tasks_tend(void *context)
{
    shoal_tasks *self = context;
    int status = SHOAL_OK;
    while (status == SHOAL_OK && !atomic_load(&self->closing)) {
        uint32_t bell = atomic_load(&self->bell);
        bool found = false, mends = must_mend(self);
        if (mends)
            status = mend_store(self);
        else if (lacks_workers(self)) {
            status = count_workers(self);
            self->counted_at = base_now();
            self->count_pause = self->count_pause < wait_longest   ? wait_longest
                                : self->count_pause < count_rarely ? self->count_pause * 1.5
                                                                   : count_rarely;
        }
        if (status == SHOAL_OK)
            status = tasks_send(self);
        if (status == SHOAL_OK)
            status = tasks_ring_if_due(self, true);
        if (status == SHOAL_OK && (await_results(self, bell) || mends))
            status = collect_results(self, &found);
        if (found)
            self->pause = 0;
    }
    if (status < 0)
        tasks_fail(self, status);
}
