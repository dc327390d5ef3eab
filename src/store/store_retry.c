/* Retries until an attempt is answered or the deadline passes, and decides about puts whose answer was lost.
 *
 * After SHOAL_UNKNOWN a request may have been done.  Reading, listing, removing and unconditional puts may simply be
 * repeated.  A conditional put that is repeated and meets a conflict may have met its own first attempt: the put id in
 * the stored frame tells. */
#include "store_internal.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/world.h"

/* ---- pauses ------------------------------------------------------------------------------------------------------ */

static double random_unit(void)
{
    uint32_t bits;
    base_entropy(&bits, sizeof bits);
    return bits * 0x1p-32;
}

bool store_backoff_sleep(store_backoff *backoff, shoal_store *store, store_attempt *attempt)
{
    static const double first = 0.05, most = 5, too_short = 0.002;
    double left = base_seconds_until(attempt->deadline);
    double ceiling = first * (double)(1 << (backoff->attempts < 10 ? backoff->attempts : 10));
    double pause = random_unit() * (ceiling < most ? ceiling : most);
    backoff->attempts++;
    atomic_fetch_add(&store->counts.causes[attempt->cause], 1);
    if (left < too_short || attempt->retry_after >= left)
        return false;
    /* With little time left half of it is slept, so that there is another attempt before the deadline. */
    pause = pause > left / 2 ? left / 2 : pause;
    pause = pause < attempt->retry_after ? attempt->retry_after : pause;
    base_sleep_until(base_time_after(base_now(), pause));
    return true;
}

void store_last_words_note(store_last_words *words, int64_t deadline)
{
    if (!words->text[0] || base_now() < deadline)
        snprintf(words->text, sizeof words->text, "%s", shoal_error());
}

/* ---- attempts ---------------------------------------------------------------------------------------------------- */

typedef struct retry {
    shoal_store *store;
    store_attempt attempt;
    store_backoff backoff;
    int64_t started;
    bool slept; /* the deadline was given anew */
    store_last_words words;
} retry;

static retry begin_retry(shoal_store *store, int64_t deadline)
{
    return (retry){.store = store, .attempt = {.deadline = deadline}, .started = base_now()};
}

int64_t store_after_sleep(int64_t deadline, int64_t began)
{
    static const double soon = 5; /* what an attempt cleans up after its deadline takes less */
    int64_t now = base_now();
    return now > base_time_after(deadline, soon) ? base_time_after(now, (double)(deadline - began) * 1e-9) : deadline;
}

/* Only once: something else may ignore deadlines, and then this would never end. */
static void forgive_sleep(retry *self)
{
    int64_t before = self->attempt.deadline;
    if (!self->slept)
        self->attempt.deadline = store_after_sleep(before, self->started);
    self->slept |= self->attempt.deadline != before;
}

/* Whether there is time for another attempt, which it prepares.  Called before each attempt. */
static bool may_try(retry *self, int last)
{
    store_attempt *attempt = &self->attempt;
    if (attempt->number > 0) {
        attempt->doubt |= last == SHOAL_UNKNOWN;
        store_last_words_note(&self->words, attempt->deadline);
        forgive_sleep(self);
        if (!store_backoff_sleep(&self->backoff, self->store, attempt))
            return false;
    } else if (base_now() >= attempt->deadline) {
        return false;
    }
    attempt->number++;
    attempt->cause = SHOAL_CAUSE_NONE;
    attempt->retry_after = 0;
    return true;
}

static bool passes(int status)
{
    return status == SHOAL_AGAIN || status == SHOAL_UNKNOWN;
}

/* The failure when time ran out. */
static int fail_in_retry(const retry *self, int status, const char *key)
{
    int made = self->attempt.number;
    if (made == 0)
        return store_fail(self->store, key, status, "the deadline passed before the first request");
    return shoal_fail(status, "%s (gave up after %d attempt%s in %.1f s)", self->words.text, made, made == 1 ? "" : "s",
                      (double)(base_now() - self->started) * 1e-9);
}

static void count(retry *self, shoal_request_kind kind, int64_t sent, int64_t received)
{
    if (!self->store->class->counts_itself)
        store_count(self->store, kind, sent, received);
}

/* ---- reading and removing ---------------------------------------------------------------------------------------- */

/* A get of a range or, without one, of what is awaited until a moment. */
static int get_or_await(shoal_store *store, const char *key, const store_range *range, int64_t until, shoal_blob *out,
                        int64_t deadline)
{
    retry self = begin_retry(store, deadline);
    int status = SHOAL_AGAIN;
    while (may_try(&self, status)) {
        *out = (shoal_blob){.age = -1};
        status = range ? store->class->get(store, key, range, out, &self.attempt)
                       : store->class->await(store, key, until, out, &self.attempt);
        count(&self, SHOAL_REQUEST_GET, 0, status == SHOAL_OK ? (int64_t)out->size : 0);
        if (status < 0)
            shoal_blob_release(out);
        if (!passes(status))
            return status;
    }
    return fail_in_retry(&self, SHOAL_AGAIN, key);
}

int store_get(shoal_store *store, const char *key, const store_range *range, shoal_blob *out, int64_t deadline)
{
    return get_or_await(store, key, range, 0, out, deadline);
}

int store_await(shoal_store *store, const char *key, int64_t until, shoal_blob *out, int64_t deadline)
{
    return get_or_await(store, key, NULL, until, out, deadline);
}

int store_list(shoal_store *store, const char *prefix, const char *after, shoal_listing *page, int64_t deadline)
{
    retry self = begin_retry(store, deadline);
    char *marker = page->marker; /* where this page begins, needed again when an attempt fails half way */
    int status = SHOAL_AGAIN;
    page->marker = NULL;
    while (may_try(&self, status)) {
        shoal_listing_release(page);
        status = marker ? base_copy_text(&page->marker, marker) : SHOAL_OK;
        if (status == SHOAL_OK)
            status = store->class->list(store, prefix, after, page, &self.attempt);
        count(&self, SHOAL_REQUEST_LIST, 0, 0);
        if (!passes(status))
            break;
    }
    if (status < 0)
        shoal_listing_release(page);
    if (passes(status)) {
        page->marker = marker; /* so that the caller may go on from here */
        return fail_in_retry(&self, SHOAL_AGAIN, prefix);
    }
    base_free(&marker);
    return status;
}

int store_remove(shoal_store *store, const char *key, int64_t deadline)
{
    retry self = begin_retry(store, deadline);
    int status = SHOAL_AGAIN;
    while (may_try(&self, status)) {
        status = store->class->remove(store, key, &self.attempt);
        count(&self, SHOAL_REQUEST_REMOVE, 0, 0);
        if (!passes(status))
            return status == SHOAL_ABSENT ? SHOAL_OK : status;
    }
    return fail_in_retry(&self, self.attempt.doubt ? SHOAL_UNKNOWN : SHOAL_AGAIN, key);
}

/* ---- putting ----------------------------------------------------------------------------------------------------- */

/* A conditional put met a conflict after an answer to it was lost: whose blob is there?  SHOAL_OK: mine. */
static int judge_conflict(retry *self, const char *key, const unsigned char *put_id, const shoal_etag *expected,
                          shoal_etag *etag)
{
    unsigned char head[SHOAL_FRAME_BYTES];
    const store_range range = {.length = sizeof head, .buffer = head};
    shoal_blob blob = {.age = -1};
    store_frame frame;
    if (!put_id)
        return store_fail(self->store, key, SHOAL_UNKNOWN,
                          "an answer was lost, and unframed bytes do not show who wrote them");
    int status = self->store->class->get(self->store, key, &range, &blob, &self->attempt);
    count(self, SHOAL_REQUEST_GET, 0, 0);
    bool mine = status == SHOAL_OK && store_frame_read(&frame, head, blob.size, NULL) &&
                memcmp(frame.put_id, put_id, STORE_PUT_ID_BYTES) == 0;
    if (mine)
        *etag = blob.etag;
    else if (status == SHOAL_OK && expected->text[0] == '\0')
        status = store_fail(self->store, key, SHOAL_CONFLICT, "another writer put it first");
    else if (status == SHOAL_OK || status == SHOAL_ABSENT)
        status = store_fail(self->store, key, SHOAL_UNKNOWN,
                            "an answer was lost, and what is there now may have replaced what was put");
    shoal_blob_release(&blob);
    return status;
}

int store_put(shoal_store *store, const char *key, const store_body *body, const unsigned char *put_id,
              const shoal_etag *expected, shoal_etag *etag, int64_t deadline)
{
    retry self = begin_retry(store, deadline);
    int status = SHOAL_AGAIN;
    while (may_try(&self, status)) {
        status = store->class->put(store, key, body, expected, etag, &self.attempt);
        count(&self, SHOAL_REQUEST_PUT, (int64_t)store_body_size(body), 0);
        if (status == SHOAL_CONFLICT && self.attempt.doubt) {
            status = judge_conflict(&self, key, put_id, expected, etag);
            if (status == SHOAL_UNKNOWN && self.attempt.cause == SHOAL_CAUSE_NONE)
                return status; /* judged, rather than another lost answer */
        }
        if (!passes(status))
            return status;
    }
    return fail_in_retry(&self, self.attempt.doubt ? SHOAL_UNKNOWN : SHOAL_AGAIN, key);
}

/* ---- queues ------------------------------------------------------------------------------------------------------ */

int store_queue_push(shoal_store *store, const char *queue, const store_body *body, int64_t deadline)
{
    retry self = begin_retry(store, deadline);
    int status = SHOAL_AGAIN;
    while (may_try(&self, status)) {
        status = store->class->push(store, queue, body, &self.attempt);
        count(&self, SHOAL_REQUEST_QUEUE, (int64_t)store_body_size(body), 0);
        if (!passes(status))
            return status;
    }
    return fail_in_retry(&self, self.attempt.doubt ? SHOAL_UNKNOWN : SHOAL_AGAIN, queue);
}

int store_queue_take(shoal_store *store, const char *queue, double lease, shoal_message *out, int64_t deadline)
{
    retry self = begin_retry(store, deadline);
    int status = SHOAL_AGAIN;
    while (may_try(&self, status)) {
        *out = (shoal_message){.lease_ends = base_time_after(base_now(), lease)};
        status = store->class->take(store, queue, lease, out, &self.attempt);
        count(&self, SHOAL_REQUEST_QUEUE, 0, status == SHOAL_OK ? (int64_t)out->size : 0);
        if (status < 0)
            shoal_message_release(out);
        if (!passes(status))
            return status;
    }
    return fail_in_retry(&self, SHOAL_AGAIN, queue);
}

int store_queue_extend(shoal_store *store, const char *queue, shoal_message *message, double lease, int64_t deadline)
{
    retry self = begin_retry(store, deadline);
    int status = SHOAL_AGAIN;
    while (may_try(&self, status)) {
        int64_t ends = base_time_after(base_now(), lease);
        status = store->class->extend(store, queue, message, lease, &self.attempt);
        count(&self, SHOAL_REQUEST_QUEUE, 0, 0);
        if (status == SHOAL_OK)
            message->lease_ends = ends;
        if (!passes(status))
            return status;
    }
    return fail_in_retry(&self, self.attempt.doubt ? SHOAL_LOST : SHOAL_AGAIN, queue);
}

int store_queue_finish(shoal_store *store, const char *queue, shoal_message *message, int64_t deadline)
{
    retry self = begin_retry(store, deadline);
    int status = SHOAL_AGAIN;
    while (may_try(&self, status)) {
        status = store->class->finish(store, queue, message, &self.attempt);
        count(&self, SHOAL_REQUEST_QUEUE, 0, 0);
        if (!passes(status))
            return status;
    }
    return fail_in_retry(&self, self.attempt.doubt ? SHOAL_UNKNOWN : SHOAL_AGAIN, queue);
}

int store_queue_count(shoal_store *store, const char *queue, int64_t *out, int64_t deadline)
{
    retry self = begin_retry(store, deadline);
    int status = SHOAL_AGAIN;
    while (may_try(&self, status)) {
        *out = 0;
        status = store->class->count(store, queue, out, &self.attempt);
        count(&self, SHOAL_REQUEST_QUEUE, 0, 0);
        if (!passes(status))
            return status;
    }
    return fail_in_retry(&self, SHOAL_AGAIN, queue);
}

int store_queue_drop(shoal_store *store, const char *queue, int64_t deadline)
{
    retry self = begin_retry(store, deadline);
    int status = SHOAL_AGAIN;
    while (may_try(&self, status)) {
        status = store->class->drop(store, queue, &self.attempt);
        count(&self, SHOAL_REQUEST_QUEUE, 0, 0);
        if (!passes(status))
            return status == SHOAL_ABSENT ? SHOAL_OK : status;
    }
    return fail_in_retry(&self, self.attempt.doubt ? SHOAL_UNKNOWN : SHOAL_AGAIN, queue);
}
