/* A queue made of conditional puts, for stores that keep blobs only.
 *
 * A message is two blobs below PREFIX.shoal/queue/NAME/:
 *
 *     m/ID   what was pushed; written once.  An ID starts with the time, so that the first come are mostly first served
 *     l/ID   its lease: who holds it, for how long, how often it was delivered; absent until it is first taken
 *
 * The lease decides, and a conditional put decides about the lease: made only if absent, changed only from the version
 * that was read.  So two takers never hold one message, however many race, and no blob is one for the whole queue.
 *
 *              put if absent              swap                      swap
 *     (none) ───────────────► held ◄──────────────► given back    held ──────► finished, then m/ID and l/ID are removed
 *                              └── swap by another, once the lease has lapsed
 *
 * Whether a lease has lapsed is told by the store's own clock: the blob's age, which may be a second wrong.  It has
 * when the age is 2 s and a thousandth above the lease.  The holder counts on its own clock from before it sent the
 * request, and is strict: a message whose lease ended there is lost, also where nobody else has taken it yet.  So the
 * two clocks need not agree on the time, only on the length of a second to one in a thousand.
 *
 * A listing tells sizes and versions, and that saves most reads of leases: the size of a lease tells its state, and a
 * version that was read once need not be read again until it can have lapsed.  What is listed only chooses where to
 * look.
 *
 *     request       get     put    list    remove
 *     push                   1
 *     take           1       1      2                + 1 put for each race that was lost
 *     ... nothing  0-16             1 or 2           1 when the queue is empty; gets of leases that may have lapsed
 *     extend                 1
 *     finish                 1              2
 *     count                       1 a page
 *     drop                        1 a page   1 a blob
 *
 * A page is a thousand messages or more.  When the first page is all held, take lists the next. */
#include "store_internal.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/hex.h"
#include "base/memory.h"
#include "base/world.h"

enum {
    ID_LENGTH = 32,         /* hexadecimal: 12 digits of milliseconds since 1970, 20 random ones */
    HOLDER_BYTES = 16,      /* random: who holds it */
    LEASE_BYTES = 33,       /* holder, microseconds, deliveries, state; as many bytes again as the state's number */
    FIRST_WINDOW = 32,      /* takers choose among this many of the oldest at first, so that they seldom collide */
    LOOKS = 16,             /* leases that one take reads at most */
    LONGEST_LEASE = 604800, /* seconds */
    SWAP_TRIES = 5,         /* of a swap whose outcome is unknown */
    KNOWN_LEASES = 1 << 12  /* remembered by this process */
};

#define KIND_MESSAGE SHOAL_KIND('q', 'm', 's', 'g')
#define KIND_LEASE SHOAL_KIND('q', 'l', 's', 'e')

/* The size of a lease blob tells which it is. */
typedef enum lease_state { LEASE_HELD, LEASE_FREE, LEASE_FINISHED, LEASE_STATES } lease_state;

typedef struct lease {
    unsigned char holder[HOLDER_BYTES];
    double seconds;
    int64_t deliveries;
    lease_state state;
} lease;

/* What a message's receipt holds. */
typedef struct blob_receipt {
    char id[ID_LENGTH + 1];
    lease lease;
    shoal_etag etag; /* of the lease */
} blob_receipt;

_Static_assert(sizeof(blob_receipt) <= SHOAL_RECEIPT_BYTES, "a receipt must fit into a message");

/* One call on one queue. */
typedef struct blob_queue {
    shoal_store *store;
    const char *name; /* with the prefix, for messages */
    int64_t deadline, began;
} blob_queue;

/* Until when each of its requests may take. */
static int64_t time_of(const blob_queue *queue)
{
    return store_after_sleep(queue->deadline, queue->began);
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

/* The key of a message ('m') or lease ('l'); of all of them when id is "". */
static int make_key(char **out, const blob_queue *queue, char which, const char *id)
{
    size_t prefix = strlen(queue->store->prefix);
    return base_format(out, "%s.shoal/queue/%s/%c/%s", queue->store->prefix, queue->name + prefix, which, id);
}

static void make_id(char out[ID_LENGTH + 1])
{
    unsigned char random[(ID_LENGTH - 12) / 2];
    uint64_t milliseconds = (uint64_t)base_wall_now() / 1000000; /* only for the order: it need not be right */
    snprintf(out, ID_LENGTH + 1, "%012llx", (unsigned long long)(milliseconds & 0xffffffffffff));
    base_entropy(random, sizeof random);
    base_hex_write(out + 12, random, sizeof random);
}

/* The queue a/m keeps its blobs among the messages of the queue a: those are not of this form. */
static bool is_id(const char *text)
{
    return base_hex_is(text, ID_LENGTH);
}

static uint64_t random_below(uint64_t bound)
{
    uint64_t word;
    base_entropy(&word, sizeof word);
    return word % bound; /* the bias is far too small to matter for a choice among thousands */
}

/* ---- leases ------------------------------------------------------------------------------------------------------ */

static void put_number(unsigned char *out, uint64_t value)
{
    for (int i = 0; i < 8; i++)
        out[i] = (unsigned char)(value >> 8 * i);
}

static uint64_t get_number(const unsigned char *bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < 8; i++)
        value |= (uint64_t)bytes[i] << 8 * i;
    return value;
}

static size_t lease_write(unsigned char out[LEASE_BYTES + LEASE_STATES], const lease *lease)
{
    memset(out, 0, LEASE_BYTES + LEASE_STATES);
    memcpy(out, lease->holder, HOLDER_BYTES);
    put_number(out + 16, (uint64_t)(lease->seconds * 1e6));
    put_number(out + 24, (uint64_t)lease->deliveries);
    out[32] = (unsigned char)lease->state;
    return LEASE_BYTES + (size_t)lease->state;
}

static bool lease_read(lease *out, const unsigned char *bytes, size_t size)
{
    if (size < LEASE_BYTES || bytes[32] >= LEASE_STATES || size != LEASE_BYTES + (size_t)bytes[32])
        return false;
    memcpy(out->holder, bytes, HOLDER_BYTES);
    out->seconds = (double)get_number(bytes + 16) * 1e-6;
    out->deliveries = (int64_t)get_number(bytes + 24);
    out->state = (lease_state)bytes[32];
    return out->seconds >= 0 && out->seconds <= LONGEST_LEASE && out->deliveries > 0;
}

/* Seconds after which a lease has expired, by the store's clock. */
static double lapses_after(const lease *lease)
{
    return lease->seconds * 1.001 + 2;
}

/* Reads a lease.  A damaged one counts as held for the longest possible lease, so that its holder, if any, is left
 * alone and its message is delivered eventually. */
static int lease_get(const blob_queue *queue, const char *id, lease *out, shoal_etag *etag, double *age)
{
    char *key = NULL;
    shoal_blob blob = {0};
    int status = make_key(&key, queue, 'l', id);
    if (status == SHOAL_OK)
        status = store_get_framed(queue->store, key, KIND_LEASE, &blob, time_of(queue));
    if (status == SHOAL_BROKEN) {
        *out = (lease){.seconds = LONGEST_LEASE, .deliveries = 1, .state = LEASE_HELD};
        status = store_get(queue->store, key, &(store_range){.offset = 0, .length = 0}, &blob, time_of(queue));
    } else if (status == SHOAL_OK && !lease_read(out, blob.data, blob.size)) {
        *out = (lease){.seconds = LONGEST_LEASE, .deliveries = 1, .state = LEASE_HELD};
    }
    if (status == SHOAL_OK) {
        *etag = blob.etag;
        *age = blob.age;
    }
    shoal_blob_release(&blob);
    base_free(&key);
    return status;
}

static int lease_put(const blob_queue *queue, const char *id, const lease *lease, const shoal_etag *expected,
                     shoal_etag *etag)
{
    unsigned char bytes[LEASE_BYTES + LEASE_STATES];
    char *key = NULL;
    int status = make_key(&key, queue, 'l', id);
    if (status == SHOAL_OK)
        status = store_put_framed(queue->store, key, KIND_LEASE, bytes, lease_write(bytes, lease), expected, etag,
                                  time_of(queue));
    base_free(&key);
    return status;
}

static int remove_one(const blob_queue *queue, char which, const char *id)
{
    char *key = NULL;
    int status = make_key(&key, queue, which, id);
    if (status == SHOAL_OK)
        status = store_remove(queue->store, key, time_of(queue));
    base_free(&key);
    return status;
}

/* Removes what is left of a finished message.  The lease goes last: without it the message could be taken again. */
static int remove_both(const blob_queue *queue, const char *id)
{
    int status = remove_one(queue, 'm', id);
    if (status == SHOAL_OK)
        status = remove_one(queue, 'l', id);
    return status;
}

/* ---- leases that were read before -------------------------------------------------------------------------------- */

/* Versions of leases that this process has read, by a hash, and when they may have lapsed on this machine's clock.
 * Forgetting one, as happens when two share a place, costs a read. */
static struct known_lease {
    uint64_t mark;
    int64_t until;
} known[KNOWN_LEASES];
static pthread_mutex_t known_mutex = PTHREAD_MUTEX_INITIALIZER;

/* FNV-1a. */
static uint64_t hash_text(uint64_t hash, const char *text)
{
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3;
    return hash * 0x100000001b3;
}

static uint64_t lease_mark(const char *id, const shoal_etag *etag)
{
    return hash_text(hash_text(0xcbf29ce484222325, id), etag->text);
}

/* When a version may have lapsed; 0 when it was never read. */
static int64_t lease_known_until(uint64_t mark)
{
    pthread_mutex_lock(&known_mutex);
    const struct known_lease *place = &known[mark % KNOWN_LEASES];
    int64_t until = place->mark == mark ? place->until : 0;
    pthread_mutex_unlock(&known_mutex);
    return until;
}

/* Whether a held lease that was just read has lapsed; if not, remembers when to look again.  If the store does not
 * report ages, a version lapses once this process has known it for that long. */
static bool lease_has_lapsed(const lease *lease, const char *id, const shoal_etag *etag, double age)
{
    uint64_t mark = lease_mark(id, etag);
    int64_t now = base_now(), until = lease_known_until(mark);
    if (age >= 0 ? age >= lapses_after(lease) : until != 0 && now >= until)
        return true;
    if (age >= 0 || until == 0) {
        until = base_time_after(now, lapses_after(lease) - (age >= 0 ? age : 0));
        pthread_mutex_lock(&known_mutex);
        known[mark % KNOWN_LEASES] = (struct known_lease){mark, until};
        pthread_mutex_unlock(&known_mutex);
    }
    return false;
}

/* ---- listing ----------------------------------------------------------------------------------------------------- */

/* The messages or leases of a queue in the order of their IDs, page after page. */
typedef struct cursor {
    const blob_queue *queue;
    char *prefix;
    shoal_listing page;
    size_t next;
    bool begun;
} cursor;

static int cursor_init(cursor *out, const blob_queue *queue, char which)
{
    *out = (cursor){.queue = queue};
    return make_key(&out->prefix, queue, which, "");
}

static void cursor_release(cursor *cursor)
{
    shoal_listing_release(&cursor->page);
    base_free(&cursor->prefix);
}

static const char *cursor_id(const cursor *cursor, const shoal_entry *entry)
{
    return entry->key + strlen(cursor->prefix);
}

/* The next entry, NULL at the end; the one before is valid until the page ends. */
static int cursor_next(cursor *cursor, const shoal_entry **out)
{
    for (;;) {
        while (cursor->next < cursor->page.count) {
            *out = &cursor->page.entries[cursor->next++];
            if (is_id(cursor_id(cursor, *out)))
                return SHOAL_OK;
        }
        *out = NULL;
        if (cursor->begun && !cursor->page.more)
            return SHOAL_OK;
        int status = store_list(cursor->queue->store, cursor->prefix, NULL, &cursor->page, time_of(cursor->queue));
        if (status < 0)
            return status;
        cursor->begun = true;
        cursor->next = 0;
    }
}

static bool page_ends(const cursor *cursor)
{
    return cursor->next >= cursor->page.count;
}

/* ---- what a taker may try ---------------------------------------------------------------------------------------- */

typedef struct id_list {
    char (*id)[ID_LENGTH + 1];
    size_t count, room;
} id_list;

static int id_list_add(id_list *list, const char *id)
{
    if (list->count == list->room) {
        size_t room = list->room ? 2 * list->room : 64;
        int status = base_grow(&list->id, list->room, room, sizeof *list->id, "a queue's messages");
        if (status < 0)
            return status;
        list->room = room;
    }
    memcpy(list->id[list->count++], id, ID_LENGTH + 1);
    return SHOAL_OK;
}

/* Takes a random one of the first `window` out of the list. */
static void id_list_draw(id_list *list, size_t window, char out[ID_LENGTH + 1])
{
    size_t at = random_below(window < list->count ? window : list->count);
    memcpy(out, list->id[at], ID_LENGTH + 1);
    memmove(list->id[at], list->id[at + 1], (list->count - at - 1) * sizeof *list->id);
    list->count--;
}

typedef struct survey {
    id_list fresh; /* messages without a lease */
    id_list loose; /* leases whose size says that nobody holds them */
    id_list held;  /* leases that were never read or may have lapsed */
} survey;

static int survey_lease(survey *survey, const cursor *leases, const shoal_entry *entry)
{
    const char *id = cursor_id(leases, entry);
    if (entry->size > SHOAL_FRAME_BYTES + LEASE_BYTES)
        return id_list_add(&survey->loose, id);
    if (lease_known_until(lease_mark(id, &entry->etag)) > base_now())
        return SHOAL_OK;
    return id_list_add(&survey->held, id);
}

/* Walks messages and leases side by side, both sorted by ID, to the end of the first page of messages with a fresh one.
 * Leases without a message are noted too: a taker or finisher that died left them. */
static int survey_merge(survey *survey, cursor *messages, cursor *leases)
{
    const shoal_entry *message, *lease;
    int status = cursor_next(messages, &message);
    if (status < 0 || !message)
        return status;
    status = cursor_next(leases, &lease);
    while (status == SHOAL_OK && (message || lease)) {
        int order = !message ? 1 : !lease ? -1 : strcmp(cursor_id(messages, message), cursor_id(leases, lease));
        if (order < 0)
            status = id_list_add(&survey->fresh, cursor_id(messages, message));
        else
            status = survey_lease(survey, leases, lease);
        if (status == SHOAL_OK && order <= 0) {
            if (survey->fresh.count > 0 && page_ends(messages))
                break;
            status = cursor_next(messages, &message);
        }
        if (status == SHOAL_OK && order >= 0) {
            if (!message && page_ends(leases))
                break;
            status = cursor_next(leases, &lease);
        }
    }
    return status;
}

static int survey_make(survey *out, const blob_queue *queue)
{
    cursor messages = {0}, leases = {0};
    *out = (survey){0};
    int status = cursor_init(&messages, queue, 'm');
    if (status == SHOAL_OK)
        status = cursor_init(&leases, queue, 'l');
    if (status == SHOAL_OK)
        status = survey_merge(out, &messages, &leases);
    cursor_release(&messages);
    cursor_release(&leases);
    return status;
}

/* ---- taking ------------------------------------------------------------------------------------------------------ */

/* Removes what is not a message and reports again what was wrong with it.  If that fails, its lease lapses and the next
 * taker comes here. */
static void drop_broken(const blob_queue *queue, const char *id)
{
    char why[512];
    snprintf(why, sizeof why, "%s", shoal_error());
    remove_both(queue, id);
    shoal_fail(SHOAL_BROKEN, "%s", why);
}

/* A message whose lease is mine: fetches it.  SHOAL_ABSENT if it is gone, and then so is the lease.  SHOAL_BROKEN if it
 * is not a message: it is reported this once and removed, because nobody could ever finish it. */
static int fetch_claimed(const blob_queue *queue, const blob_receipt *receipt, int64_t started, shoal_message *out)
{
    char *key = NULL;
    shoal_blob blob = {0};
    int status = make_key(&key, queue, 'm', receipt->id);
    if (status == SHOAL_OK)
        status = store_get_framed(queue->store, key, KIND_MESSAGE, &blob, time_of(queue));
    if (status == SHOAL_ABSENT) {
        remove_one(queue, 'l', receipt->id); /* if this fails, the lease lapses and the next taker comes here */
        store_fail(queue->store, queue->name, status, "a message is gone");
    }
    if (status == SHOAL_BROKEN)
        drop_broken(queue, receipt->id);
    if (status == SHOAL_OK)
        status = store_message_room(queue->store, queue->name, out, blob.size);
    if (status == SHOAL_OK) {
        if (blob.size > 0)
            memcpy(out->data, blob.data, blob.size);
        out->deliveries = receipt->lease.deliveries;
        out->lease_ends = base_time_after(started, receipt->lease.seconds);
        memcpy(out->receipt, receipt, sizeof *receipt);
    }
    shoal_blob_release(&blob);
    base_free(&key);
    return status;
}

/* Puts a lease of mine in place of `expected` and fetches the message.  SHOAL_CONFLICT if another was first,
 * SHOAL_ABSENT if the message is gone. */
static int claim_message(const blob_queue *queue, const char *id, double seconds, int64_t deliveries,
                         const shoal_etag *expected, shoal_message *out)
{
    blob_receipt receipt = {.lease = {.seconds = seconds, .deliveries = deliveries, .state = LEASE_HELD}};
    int64_t started = base_now();
    memcpy(receipt.id, id, sizeof receipt.id);
    base_entropy(receipt.lease.holder, HOLDER_BYTES);
    int status = lease_put(queue, id, &receipt.lease, expected, &receipt.etag);
    if (status == SHOAL_UNKNOWN) { /* what is there now decides */
        lease found;
        double age;
        status = lease_get(queue, id, &found, &receipt.etag, &age);
        if (status == SHOAL_OK && memcmp(found.holder, receipt.lease.holder, HOLDER_BYTES) != 0)
            status = SHOAL_CONFLICT;
    }
    return status < 0 ? status : fetch_claimed(queue, &receipt, started, out);
}

/* Looks at a lease: takes its message if nobody holds it any more, removes it if it was finished. */
static int look_at_lease(const blob_queue *queue, const char *id, double seconds, shoal_message *out)
{
    lease found;
    shoal_etag etag;
    double age;
    int status = lease_get(queue, id, &found, &etag, &age);
    if (status < 0)
        return status;
    if (found.state == LEASE_FINISHED) {
        remove_both(queue, id); /* on behalf of a process that died: if it fails, the next taker does it */
        return SHOAL_CONFLICT;
    }
    if (found.state == LEASE_HELD && !lease_has_lapsed(&found, id, &etag, age))
        return SHOAL_CONFLICT;
    return claim_message(queue, id, seconds, found.deliveries + 1, &etag, out);
}

/* Whether a candidate is gone or taken by another, so that the next one should be tried. */
static bool try_next(int status)
{
    return status == SHOAL_CONFLICT || status == SHOAL_ABSENT;
}

/* Tries what was found: messages never taken, roughly the oldest first; then those given back; then, a few at random,
 * leases that may have lapsed. */
static int take_found(const blob_queue *queue, survey *found, double lease, shoal_message *out)
{
    char id[ID_LENGTH + 1];
    int status = SHOAL_ABSENT;
    for (size_t window = FIRST_WINDOW; found->fresh.count > 0 && try_next(status);) {
        id_list_draw(&found->fresh, window, id);
        status = claim_message(queue, id, lease, 1, SHOAL_NOTHING, out);
        window = window < found->fresh.count ? 2 * window : window;
    }
    for (int looks = 0; looks < LOOKS && try_next(status); looks++) {
        id_list *list = found->loose.count > 0 ? &found->loose : &found->held;
        if (list->count == 0)
            break;
        id_list_draw(list, list == &found->loose ? FIRST_WINDOW : SIZE_MAX, id);
        status = look_at_lease(queue, id, lease, out);
    }
    return status;
}

/* ---- the calls --------------------------------------------------------------------------------------------------- */

int store_blobs_push(shoal_store *store, const char *queue, const void *data, size_t size, int64_t deadline)
{
    blob_queue here = {store, queue, deadline, base_now()};
    char id[ID_LENGTH + 1], *key = NULL;
    shoal_etag ignored;
    make_id(id);
    int status = make_key(&key, &here, 'm', id);
    if (status == SHOAL_OK) /* without a condition: the name is new, and a large message may go in parts */
        status = store_put_framed(store, key, KIND_MESSAGE, data, size, NULL, &ignored, deadline);
    base_free(&key);
    return status;
}

int store_blobs_take(shoal_store *store, const char *queue, double lease, shoal_message *out, int64_t deadline)
{
    blob_queue here = {store, queue, deadline, base_now()};
    survey found;
    int status = survey_make(&found, &here);
    if (status == SHOAL_OK)
        status = take_found(&here, &found, lease, out);
    base_free(&found.fresh.id);
    base_free(&found.loose.id);
    base_free(&found.held.id);
    if (try_next(status))
        return store_fail(store, queue, SHOAL_ABSENT, "no message is available");
    return status;
}

/* After a swap that failed or whose answer was lost.  SHOAL_OK: the lease is still mine, and its version now in the
 * receipt.  SHOAL_CONFLICT: it is not, and *state is what became of it; what is gone was finished. */
static int look_at_lease_again(const blob_queue *queue, blob_receipt *receipt, lease_state *state)
{
    lease found = {.state = LEASE_FINISHED};
    shoal_etag etag;
    double age;
    int status = lease_get(queue, receipt->id, &found, &etag, &age);
    if (status < 0 && status != SHOAL_ABSENT)
        return status;
    *state = found.state;
    if (found.state != LEASE_HELD || memcmp(found.holder, receipt->lease.holder, HOLDER_BYTES) != 0)
        return SHOAL_CONFLICT;
    receipt->etag = etag;
    return SHOAL_OK;
}

/* The failure when a swap may have been done and nothing more is known: a holder must not continue. */
static int fail_unclear(const blob_queue *queue, lease_state state)
{
    return store_fail(queue->store, queue->name, state == LEASE_FINISHED ? SHOAL_UNKNOWN : SHOAL_LOST,
                      "an answer was lost, so it is unknown who holds the message");
}

/* Whether a lease is no longer mine, though it has not expired on my clock, because an earlier attempt at this swap was
 * done and its answer lost: only the holder can have changed it. */
static bool was_done(const shoal_message *message, lease_state wanted, lease_state found)
{
    return base_now() < message->lease_ends &&
           (wanted == LEASE_FREE || (wanted == LEASE_FINISHED && found == LEASE_FINISHED));
}

/* Swaps the lease of a message for one with another length or state. */
static int swap_lease(const blob_queue *queue, shoal_message *message, double seconds, lease_state state)
{
    blob_receipt receipt;
    memcpy(&receipt, message->receipt, sizeof receipt);
    receipt.etag.text[sizeof receipt.etag.text - 1] = '\0'; /* it may have come from another machine */
    if (receipt.id[ID_LENGTH] != 0 || !is_id(receipt.id))
        return store_fail(queue->store, queue->name, SHOAL_USAGE, "this message was not taken from a queue");
    lease wanted = receipt.lease;
    bool doubt = false;
    wanted.seconds = seconds;
    wanted.state = state;
    for (int tries = 0; tries < SWAP_TRIES; tries++) {
        shoal_etag etag;
        lease_state found = LEASE_HELD;
        int64_t started = base_now();
        if (started >= message->lease_ends)
            break;
        int status = lease_put(queue, receipt.id, &wanted, &receipt.etag, &etag);
        if (status == SHOAL_OK) {
            receipt.lease = wanted;
            receipt.etag = etag;
            memcpy(message->receipt, &receipt, sizeof receipt);
            message->lease_ends = base_time_after(started, seconds);
            return SHOAL_OK;
        }
        if (status != SHOAL_CONFLICT && status != SHOAL_UNKNOWN)
            return status == SHOAL_AGAIN && doubt ? fail_unclear(queue, state) : status;
        doubt |= status == SHOAL_UNKNOWN;
        status = look_at_lease_again(queue, &receipt, &found);
        if (status == SHOAL_CONFLICT && was_done(message, state, found)) {
            message->lease_ends = started;
            return SHOAL_OK;
        }
        if (status == SHOAL_CONFLICT)
            break;
        if (status < 0)
            return status == SHOAL_AGAIN && doubt ? fail_unclear(queue, state) : status;
    }
    return store_fail(queue->store, queue->name, SHOAL_LOST, "the lease of the message has expired");
}

int store_blobs_extend(shoal_store *store, const char *queue, shoal_message *message, double lease, int64_t deadline)
{
    blob_queue here = {store, queue, deadline, base_now()};
    return swap_lease(&here, message, lease, lease > 0 ? LEASE_HELD : LEASE_FREE);
}

int store_blobs_finish(shoal_store *store, const char *queue, shoal_message *message, int64_t deadline)
{
    blob_queue here = {store, queue, deadline, base_now()};
    blob_receipt receipt;
    memcpy(&receipt, message->receipt, sizeof receipt);
    int status = swap_lease(&here, message, 0, LEASE_FINISHED);
    if (status == SHOAL_OK) /* it is finished even if this fails: a taker that meets the rest removes it */
        remove_both(&here, receipt.id);
    return status;
}

int store_blobs_count(shoal_store *store, const char *queue, int64_t *out, int64_t deadline)
{
    blob_queue here = {store, queue, deadline, base_now()};
    cursor messages = {0};
    const shoal_entry *entry = NULL;
    int64_t count = 0;
    int status = cursor_init(&messages, &here, 'm');
    while (status == SHOAL_OK && (status = cursor_next(&messages, &entry)) == SHOAL_OK && entry)
        count++;
    cursor_release(&messages);
    if (status == SHOAL_OK)
        *out = count;
    return status;
}

static int drop_all(const blob_queue *queue, char which)
{
    cursor all = {0};
    const shoal_entry *entry = NULL;
    int status = cursor_init(&all, queue, which);
    while (status == SHOAL_OK && (status = cursor_next(&all, &entry)) == SHOAL_OK && entry)
        status = store_remove(queue->store, entry->key, time_of(queue));
    cursor_release(&all);
    return status;
}

int store_blobs_drop(shoal_store *store, const char *queue, int64_t deadline)
{
    blob_queue here = {store, queue, deadline, base_now()};
    int status = drop_all(&here, 'm'); /* before the leases: a message without one could be taken */
    return status < 0 ? status : drop_all(&here, 'l');
}
