/* A store that fails on purpose, around any other, to test the layers above.
 *
 *     mem:jobs?faults=seed:7,before:0.05,after:0.05/cut,delay:0.1/20ms
 *
 * It is below the layer that retries, as a bad network would be.  What a call meets is drawn from the seed and the
 * number of the call, so the same calls in the same order meet the same faults. docs/store.md, "Faults", explains each.
 *
 * Stale reads and forgetting need to know what was there before.  Only then are changes made one at a time, with a read
 * before each. */
#include "store_faulty.h"

#include <pthread.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "base/world.h"

typedef struct faulty_store {
    shoal_store store;
    struct store_class class; /* as the inner one's, with our functions */
    shoal_store *inner;
    fault_spec spec;
    atomic_llong calls;
    pthread_mutex_t lock; /* of the past; held over a change when one is kept */
    past past;
} faulty_store;

/* What a call is going to meet once it is let through. */
typedef struct fate {
    shoal_cause lost; /* why its answer will be lost; SHOAL_CAUSE_NONE when it won't */
    bool stale, duplicate;
} fate;

/* What is drawn for a call, in this order: part of what a seed means. */
enum {
    DRAW_DELAY,
    DRAW_LENGTH,
    DRAW_FORGET,
    DRAW_THROTTLE,
    DRAW_BEFORE,
    DRAW_CUT,
    DRAW_HALF,
    DRAW_AFTER,
    DRAW_CAUSE,
    DRAW_STALE,
    DRAW_DUPLICATE
};

/* ---- fates ------------------------------------------------------------------------------------------------------- */

static double draw(const faulty_store *self, uint64_t call, uint32_t which)
{
    return base_random_unit(self->spec.seed, BASE_FOR_FAULTS, call, which);
}

/* The cause that was asked for, or one of those a real network has. */
static shoal_cause choose_cause(const fault *fault, bool done, double random)
{
    static const shoal_cause causes[] = {SHOAL_CAUSE_SERVER, SHOAL_CAUSE_CUT, SHOAL_CAUSE_TIMEOUT,
                                         SHOAL_CAUSE_UNREACHABLE}; /* the last can't be after it was done */
    return fault->cause != SHOAL_CAUSE_NONE ? fault->cause : causes[(int)(random * (done ? 3 : 4))];
}

static int fail_on_purpose(const faulty_store *self, const char *key, int status, shoal_cause cause,
                           store_attempt *attempt)
{
    attempt->cause = cause;
    return store_fail(&self->store, key, status, "%s, on purpose", shoal_cause_name(cause));
}

static int forget_last(faulty_store *self, double seconds)
{
    pthread_mutex_lock(&self->lock);
    int status = past_undo(&self->past, self->inner, base_time_after(base_now(), -seconds));
    pthread_mutex_unlock(&self->lock);
    return status;
}

/* Decides what a call meets.  SHOAL_OK: make it, and *out says what happens then. */
static int meet_faults(fate *out, faulty_store *self, const char *key, bool writes, store_attempt *attempt)
{
    const fault_spec *spec = &self->spec;
    uint64_t call = (uint64_t)atomic_fetch_add(&self->calls, 1);
    double random = draw(self, call, DRAW_CAUSE);
    *out = (fate){.stale = draw(self, call, DRAW_STALE) < spec->stale.chance,
                  .duplicate = draw(self, call, DRAW_DUPLICATE) < spec->duplicate.chance};
    if (draw(self, call, DRAW_DELAY) < spec->delay.chance) {
        int64_t until = base_time_after(base_now(), draw(self, call, DRAW_LENGTH) * spec->delay.seconds);
        base_sleep_until(until < attempt->deadline ? until : attempt->deadline);
        if (base_now() >= attempt->deadline)
            return fail_on_purpose(self, key, SHOAL_AGAIN, SHOAL_CAUSE_TIMEOUT, attempt);
    }
    if (draw(self, call, DRAW_FORGET) < spec->forget.chance) {
        int status = forget_last(self, spec->forget.seconds);
        if (status < 0)
            return status;
    }
    if (draw(self, call, DRAW_THROTTLE) < spec->throttle.chance) {
        attempt->retry_after = spec->throttle.seconds;
        return fail_on_purpose(self, key, SHOAL_AGAIN, SHOAL_CAUSE_THROTTLED, attempt);
    }
    if (draw(self, call, DRAW_BEFORE) < spec->before.chance)
        return fail_on_purpose(self, key, SHOAL_AGAIN, choose_cause(&spec->before, false, random), attempt);
    if (draw(self, call, DRAW_AFTER) < spec->after.chance)
        out->lost = choose_cause(&spec->after, true, random);
    /* A connection that breaks leaves a writer in doubt, whether or not the server got it all. */
    if (draw(self, call, DRAW_CUT) < spec->cut.chance) {
        if (draw(self, call, DRAW_HALF) < 0.5)
            return fail_on_purpose(self, key, writes ? SHOAL_UNKNOWN : SHOAL_AGAIN, SHOAL_CAUSE_CUT, attempt);
        out->lost = SHOAL_CAUSE_CUT;
    }
    return SHOAL_OK;
}

/* Loses the answer of a call that was made, if that is its fate. */
static int answer(faulty_store *self, const fate *fate, const char *key, bool writes, int status,
                  store_attempt *attempt)
{
    if (fate->lost == SHOAL_CAUSE_NONE || status == SHOAL_AGAIN || status == SHOAL_UNKNOWN || status == SHOAL_MEMORY)
        return status;
    return fail_on_purpose(self, key, writes ? SHOAL_UNKNOWN : SHOAL_AGAIN, fate->lost, attempt);
}

/* What the inner store counted by itself is counted here, or nowhere when it was asked on our own account. */
static void take_counts(faulty_store *self, bool ours)
{
    shoal_store *inner = self->inner, *outer = &self->store;
    for (int i = 0; i < SHOAL_REQUEST_KINDS; i++) {
        long long count = atomic_exchange(&inner->counts.requests[i], 0);
        atomic_fetch_add(&outer->counts.requests[i], ours ? 0 : count);
    }
    long long sent = atomic_exchange(&inner->counts.sent, 0), received = atomic_exchange(&inner->counts.received, 0);
    atomic_fetch_add(&outer->counts.sent, ours ? 0 : sent);
    atomic_fetch_add(&outer->counts.received, ours ? 0 : received);
}

/* ---- the past ---------------------------------------------------------------------------------------------------- */

/* Before a change of a blob: locks the past and reads what will be replaced.  Each is followed by keep. */
static int look_before(past_change *out, faulty_store *self, const char *key, store_attempt *attempt)
{
    static const store_range all = {.length = -1};
    *out = (past_change){.what = PAST_BLOB};
    if (self->past.seconds == 0)
        return SHOAL_OK;
    pthread_mutex_lock(&self->lock);
    int status = base_copy_text(&out->name, key);
    if (status == SHOAL_OK)
        status = self->inner->class->get(self->inner, key, &all, &out->former, attempt);
    take_counts(self, true);
    out->was_there = status == SHOAL_OK;
    return status == SHOAL_ABSENT ? SHOAL_OK : status;
}

/* Before a change of a queue. */
static int copy_before(past_change *out, faulty_store *self, const char *queue, const store_body *body)
{
    *out = (past_change){.what = PAST_PUSH};
    if (self->past.seconds == 0)
        return SHOAL_OK;
    pthread_mutex_lock(&self->lock);
    int status = base_copy_text(&out->name, queue);
    if (status == SHOAL_OK)
        status = store_blob_room(&self->store, NULL, &out->former, store_body_size(body));
    char *next = out->former.data;
    for (int i = 0; i < 2 && status == SHOAL_OK; i++) {
        if (body->part[i].iov_len > 0)
            memcpy(next, body->part[i].iov_base, body->part[i].iov_len);
        next += body->part[i].iov_len;
    }
    return status;
}

/* After the change, or what was to be one: keeps it when it was made, and unlocks. */
static int keep_change(past_change *change, faulty_store *self, int status)
{
    if (self->past.seconds == 0)
        return status;
    if (status == SHOAL_OK)
        status = past_add(&self->past, change);
    else
        past_change_release(change);
    pthread_mutex_unlock(&self->lock);
    return status;
}

static int64_t stale_since(const faulty_store *self)
{
    return base_time_after(base_now(), -self->spec.stale.seconds);
}

/* A range of what was there a moment ago. */
static int copy_former(shoal_blob *out, const faulty_store *self, const past_change *change, const store_range *range)
{
    const shoal_blob *former = &change->former;
    if (!change->was_there)
        return store_fail(&self->store, change->name, SHOAL_ABSENT, "there is no such key");
    if (range->expected && strcmp(range->expected->text, former->etag.text) != 0)
        return store_fail(&self->store, change->name, SHOAL_CONFLICT, "the stored version has changed");
    size_t start = range->offset < former->whole ? (size_t)range->offset : former->size;
    size_t left = former->size - start;
    size_t size = range->length < 0 || (size_t)range->length > left ? left : (size_t)range->length;
    int status = SHOAL_OK;
    if (range->buffer)
        out->size = size;
    else
        status = store_blob_room(&self->store, change->name, out, size);
    if (status == SHOAL_OK && size > 0)
        memcpy(range->buffer ? range->buffer : out->data, (char *)former->data + start, size);
    out->whole = former->whole;
    out->etag = former->etag;
    out->age = former->age;
    return status;
}

/* ---- blobs ------------------------------------------------------------------------------------------------------- */

static int get_faulty(shoal_store *store, const char *key, const store_range *range, shoal_blob *out,
                      store_attempt *attempt)
{
    faulty_store *self = (faulty_store *)store;
    fate fate;
    bool done = false;
    int status = meet_faults(&fate, self, key, false, attempt);
    if (status < 0)
        return status;
    if (fate.stale) {
        pthread_mutex_lock(&self->lock);
        const past_change *change = past_since(&self->past, key, stale_since(self));
        done = change != NULL;
        if (done)
            status = copy_former(out, self, change, range);
        pthread_mutex_unlock(&self->lock);
    }
    if (!done)
        status = self->inner->class->get(self->inner, key, range, out, attempt);
    take_counts(self, false);
    status = answer(self, &fate, key, false, status, attempt);
    if (status < 0)
        shoal_blob_release(out);
    return status;
}

static int put_faulty(shoal_store *store, const char *key, const store_body *body, const shoal_etag *expected,
                      shoal_etag *etag, store_attempt *attempt)
{
    faulty_store *self = (faulty_store *)store;
    fate fate;
    shoal_etag version = {""};
    past_change change;
    int status = meet_faults(&fate, self, key, true, attempt);
    if (status < 0)
        return status;
    status = look_before(&change, self, key, attempt);
    if (status == SHOAL_OK)
        status = self->inner->class->put(self->inner, key, body, expected, &version, attempt);
    change.version = version;
    take_counts(self, false);
    status = answer(self, &fate, key, true, keep_change(&change, self, status), attempt);
    if (status == SHOAL_OK)
        *etag = version;
    return status;
}

static int remove_faulty(shoal_store *store, const char *key, store_attempt *attempt)
{
    faulty_store *self = (faulty_store *)store;
    fate fate;
    past_change change;
    int status = meet_faults(&fate, self, key, true, attempt);
    if (status < 0)
        return status;
    status = look_before(&change, self, key, attempt);
    if (status == SHOAL_OK)
        status = self->inner->class->remove(self->inner, key, attempt);
    take_counts(self, false);
    return answer(self, &fate, key, true, keep_change(&change, self, status), attempt);
}

static int list_faulty(shoal_store *store, const char *prefix, const char *after, shoal_listing *page,
                       store_attempt *attempt)
{
    faulty_store *self = (faulty_store *)store;
    fate fate;
    bool first = page->marker == NULL;
    int status = meet_faults(&fate, self, prefix, false, attempt);
    if (status < 0)
        return status;
    status = self->inner->class->list(self->inner, prefix, after, page, attempt);
    if (status == SHOAL_OK && fate.stale) {
        pthread_mutex_lock(&self->lock);
        status = past_show(&self->past, page, prefix, after, first, stale_since(self));
        pthread_mutex_unlock(&self->lock);
    }
    take_counts(self, false);
    return answer(self, &fate, prefix, false, status, attempt);
}

/* ---- queues ------------------------------------------------------------------------------------------------------ */

static int push_faulty(shoal_store *store, const char *queue, const store_body *body, store_attempt *attempt)
{
    faulty_store *self = (faulty_store *)store;
    fate fate;
    past_change change;
    int status = meet_faults(&fate, self, queue, true, attempt);
    if (status < 0)
        return status;
    status = copy_before(&change, self, queue, body);
    if (status == SHOAL_OK && fate.duplicate)
        status = self->inner->class->push(self->inner, queue, body, attempt);
    if (status == SHOAL_OK)
        status = self->inner->class->push(self->inner, queue, body, attempt);
    take_counts(self, false);
    return answer(self, &fate, queue, true, keep_change(&change, self, status), attempt);
}

static int take_faulty(shoal_store *store, const char *queue, double lease, shoal_message *out, store_attempt *attempt)
{
    faulty_store *self = (faulty_store *)store;
    fate fate;
    int status = meet_faults(&fate, self, queue, true, attempt);
    if (status < 0)
        return status;
    status = self->inner->class->take(self->inner, queue, lease, out, attempt);
    take_counts(self, false);
    status = answer(self, &fate, queue, true, status, attempt);
    if (status < 0)
        shoal_message_release(out);
    return status;
}

static int extend_faulty(shoal_store *store, const char *queue, shoal_message *message, double lease,
                         store_attempt *attempt)
{
    faulty_store *self = (faulty_store *)store;
    fate fate;
    shoal_message before = *message;
    int status = meet_faults(&fate, self, queue, true, attempt);
    if (status < 0)
        return status;
    status = self->inner->class->extend(self->inner, queue, message, lease, attempt);
    take_counts(self, false);
    status = answer(self, &fate, queue, true, status, attempt);
    if (status < 0)
        *message = before; /* a receipt that came with a lost answer is lost, too */
    return status;
}

static int finish_faulty(shoal_store *store, const char *queue, shoal_message *message, store_attempt *attempt)
{
    faulty_store *self = (faulty_store *)store;
    const store_body body = {{{NULL, 0}, {message->data, message->size}}};
    fate fate;
    past_change change;
    int status = meet_faults(&fate, self, queue, true, attempt);
    if (status < 0)
        return status;
    status = copy_before(&change, self, queue, &body);
    change.what = PAST_FINISH;
    if (status == SHOAL_OK)
        status = self->inner->class->finish(self->inner, queue, message, attempt);
    take_counts(self, false);
    return answer(self, &fate, queue, true, keep_change(&change, self, status), attempt);
}

static int count_faulty(shoal_store *store, const char *queue, int64_t *out, store_attempt *attempt)
{
    faulty_store *self = (faulty_store *)store;
    fate fate;
    int status = meet_faults(&fate, self, queue, false, attempt);
    if (status < 0)
        return status;
    status = self->inner->class->count(self->inner, queue, out, attempt);
    take_counts(self, false);
    return answer(self, &fate, queue, false, status, attempt);
}

static int drop_faulty(shoal_store *store, const char *queue, store_attempt *attempt)
{
    faulty_store *self = (faulty_store *)store;
    fate fate;
    int status = meet_faults(&fate, self, queue, true, attempt);
    if (status < 0)
        return status;
    status = self->inner->class->drop(self->inner, queue, attempt);
    take_counts(self, false);
    return answer(self, &fate, queue, true, status, attempt);
}

static int wait_faulty(shoal_store *store, const char *name, uint32_t *seen, int64_t deadline)
{
    faulty_store *self = (faulty_store *)store;
    return self->inner->class->wait(self->inner, name, seen, deadline);
}

/* ---- wrapping ---------------------------------------------------------------------------------------------------- */

static void close_faulty(shoal_store *store)
{
    faulty_store *self = (faulty_store *)store;
    past_release(&self->past);
    pthread_mutex_destroy(&self->lock);
    shoal_store_close(&self->inner);
}

static void fill_class(faulty_store *self)
{
    const struct store_class *inner = self->inner->class;
    self->class = (struct store_class){
        .scheme = inner->scheme,
        .size = sizeof *self,
        .wakes = inner->wakes,
        .far = inner->far,
        .counts_itself = inner->counts_itself,
        .forgets = inner->forgets + self->spec.forget.seconds,
        .close = close_faulty,
        .get = get_faulty,
        .put = put_faulty,
        .remove = remove_faulty,
        .list = list_faulty,
    };
    if (inner->push) {
        self->class.push = push_faulty;
        self->class.take = take_faulty;
        self->class.extend = extend_faulty;
        self->class.finish = finish_faulty;
        self->class.count = count_faulty;
        self->class.drop = drop_faulty;
    }
    if (inner->wait)
        self->class.wait = wait_faulty;
}

int store_faulty_wrap(shoal_store **inout, const char *spec)
{
    faulty_store *self = NULL;
    fault_spec wanted;
    int status = fault_spec_parse(&wanted, spec);
    if (status == SHOAL_OK)
        status = base_alloc(&self, 1, sizeof *self, "a faulty store");
    if (status == SHOAL_OK)
        status = base_copy_text(&self->store.name, (*inout)->name);
    if (status == SHOAL_OK)
        status = base_copy_text(&self->store.prefix, (*inout)->prefix);
    if (status < 0) {
        if (self) {
            base_free(&self->store.name);
            base_free(&self->store.prefix);
        }
        base_free(&self);
        return status;
    }
    self->inner = *inout;
    self->spec = wanted;
    self->past.seconds = wanted.forget.seconds > wanted.stale.seconds ? wanted.forget.seconds : wanted.stale.seconds;
    self->store.blob_queue = self->inner->blob_queue;
    self->store.page_keys = self->inner->page_keys;
    pthread_mutex_init(&self->lock, NULL);
    fill_class(self);
    self->store.class = &self->class;
    take_counts(self, false); /* what opening took */
    *inout = &self->store;
    return SHOAL_OK;
}

int store_faulty_forget(shoal_store *store, double seconds)
{
    if (store->class->close != close_faulty)
        return store_fail(store, NULL, SHOAL_USAGE, "only a faulty store can be told to forget");
    return forget_last((faulty_store *)store, seconds);
}
