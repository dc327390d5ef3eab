/* What a store implements, and what store.c does for all of them.
 *
 * An implementation (a *class*) makes one attempt at a request and says how it went.  Everything that is the same for
 * all is done above it, once: checking keys, prefixes, retries with pauses, deciding what became of a put whose answer
 * was lost, frames, counting, and a queue made of blobs for stores that have none.
 *
 *     caller ─► store.c ─► store_retry.c ─► (store_faulty.c ─►) store_azure.c ─► http.c
 *
 * To add an implementation: write <name>/store_<name>.c with a `const struct store_class store_<name>`, declare it at
 * the end of this file, and add it to the list in store.c. */
#ifndef STORE_INTERNAL_H
#define STORE_INTERNAL_H

#include <stdatomic.h>
#include <sys/uio.h>
#include <shoal/store.h>

/* ---- addresses (store_url.c) ------------------------------------------------------------------------------------- */

/* A URL taken apart.  The text after the scheme is percent-decoded; a bare path is scheme "dir", taken literally. */
typedef struct store_url {
    char *scheme;
    char *rest; /* "//acct/container/prefix", "/tmp/jobs", "name/prefix" */
    char *text; /* the URL as it was given, for messages; it never holds a secret */
    struct store_url_option {
        char *name, *value;
    } * options; /* the options after '?' */
    size_t option_count;
} store_url;

/* SHOAL_USAGE for what is not a URL, contains a secret, or repeats an option. */
int store_url_parse(store_url *out, const char *text);
void store_url_release(store_url *url);
/* The value of an option of the URL; NULL if it is not given. */
const char *store_url_option(const store_url *url, const char *name);
/* SHOAL_USAGE when the URL has an option that is not in the list (which ends with NULL). */
int store_url_check_options(const store_url *url, const char *const *known);
/* SHOAL_USAGE if a key, or the name of a queue, is not as store.h says. */
int store_key_check(const char *key);
/* The same for the start of keys, which may be empty and may end with '/' or in the middle of a segment. */
int store_prefix_check(const char *prefix);

/* ---- attempts ---------------------------------------------------------------------------------------------------- */

/* One attempt at one request.  A class returns
 *   SHOAL_OK, SHOAL_ABSENT, SHOAL_CONFLICT, SHOAL_LOST, SHOAL_DENIED, SHOAL_BROKEN, SHOAL_INVALID, SHOAL_SYSTEM,
 *   SHOAL_MEMORY: that is the answer;
 *   SHOAL_AGAIN: nothing was done, and another attempt may succeed;
 *   SHOAL_UNKNOWN: it may have been done; the layer above asks again or looks what is there.
 * With the last two it sets `cause`, and `retry_after` when the server said how long to wait.  The message is always
 * set on failure, and names the key. */
typedef struct store_attempt {
    int64_t deadline; /* the attempt ends soon after it, with SHOAL_AGAIN or SHOAL_UNKNOWN */
    shoal_cause cause;
    double retry_after; /* seconds; 0 when the server did not say */
    int number;         /* 1 is the first */
    bool doubt;         /* an earlier attempt at this very request may have been done */
} store_attempt;

/* The bytes of a put or push: a frame or nothing, and the caller's bytes.  They are stored one after the other. */
typedef struct store_body {
    struct iovec part[2];
} store_body;

static inline size_t store_body_size(const store_body *body)
{
    return body->part[0].iov_len + body->part[1].iov_len;
}

/* What part of a blob to get.  length < 0 is all of it. */
typedef struct store_range {
    int64_t offset, length;
    const shoal_etag *expected; /* or NULL */
    void *buffer;               /* of `length` bytes, or NULL */
} store_range;

/* ---- the contract of an implementation --------------------------------------------------------------------------- */

struct store_class {
    const char *scheme; /* "az" in az://account/container */
    size_t size;        /* of the implementation's struct, whose first member is a shoal_store */
    bool wakes;         /* has `wait` */
    bool far;           /* see shoal_store_traits */
    bool counts_itself; /* calls store_count for every request it sends; otherwise each call below counts as one */
    double forgets;     /* see shoal_store_traits */
    const char *const *options; /* the options its URLs may have after '?', ended by NULL; NULL for none */

    /* Splits the URL and connects.  Sets self->name, and *rest to the remaining prefix (base_alloc'd, "" for none; no
     * slash at its start or end).  On failure close is called too. */
    int (*open)(shoal_store *self, char **rest, const store_url *url, const shoal_store_options *options,
                store_attempt *attempt);
    void (*close)(shoal_store *self);

    /* Keys and names below have been checked and carry the store's prefix.  `out` is zero before. */
    int (*get)(shoal_store *self, const char *key, const store_range *range, shoal_blob *out, store_attempt *attempt);
    int (*put)(shoal_store *self, const char *key, const store_body *body, const shoal_etag *expected, shoal_etag *etag,
               store_attempt *attempt); /* etag is never NULL */
    int (*remove)(shoal_store *self, const char *key, store_attempt *attempt);
    /* Fills the page, empty before, with store_listing_add; sets `more`, and `marker` as it likes (base_alloc'd). */
    int (*list)(shoal_store *self, const char *prefix, const char *after, shoal_listing *page, store_attempt *attempt);

    /* All of these or none; without them queues are made of blobs (queue_blobs.c). */
    int (*push)(shoal_store *self, const char *queue, const store_body *body, store_attempt *attempt);
    int (*take)(shoal_store *self, const char *queue, double lease, shoal_message *out, store_attempt *attempt);
    int (*extend)(shoal_store *self, const char *queue, shoal_message *message, double lease, store_attempt *attempt);
    int (*finish)(shoal_store *self, const char *queue, shoal_message *message, store_attempt *attempt);
    int (*count)(shoal_store *self, const char *queue, int64_t *out, store_attempt *attempt);
    int (*drop)(shoal_store *self, const char *queue, store_attempt *attempt);

    /* Optional, with `wakes`.  As shoal_store_wait. */
    int (*wait)(shoal_store *self, const char *name, uint32_t *seen, int64_t deadline);

    /* Optional.  As store_lend. */
    int (*lend)(shoal_store *self, const char *key, int64_t seconds, char **url, int64_t deadline);

    /* Optional, for a store that is far: as the public calls; `await` is one attempt.  The first two come together, for
     * a store that wakes. */
    int (*await)(shoal_store *self, const char *key, int64_t until, shoal_blob *out, store_attempt *attempt);
    void (*expect)(shoal_store *self, const char *key);
    int (*discard)(shoal_store *self, const char *key);
};

struct shoal_store {
    const struct store_class *class;
    char *name;      /* its name in messages: "az://acct/container"; a key's name is this, '/' and the key */
    char *prefix;    /* "" or ends with '/' */
    bool blob_queue; /* queues are made of blobs */
    int page_keys;   /* keys that one request of a listing asks for */
    int64_t most;    /* bytes that a blob or message may take; 0: any */
    struct {
        atomic_llong requests[SHOAL_REQUEST_KINDS], sent, received, causes[SHOAL_CAUSES];
        atomic_llong kept; /* bytes that puts did not send, since the server had them from an earlier put */
    } counts;
};

/* An address by which anybody gets a blob, without credentials, for so many seconds.  SHOAL_USAGE from a store that has
 * no such thing. */
int store_lend(char **url, shoal_store *store, const char *key, int64_t seconds, int64_t deadline);

/* ---- for implementations ----------------------------------------------------------------------------------------- */

/* shoal_fail, preceded by the name of the key or queue: "az://acct/box/key: ...".  Without a key just the store. */
int store_fail(const shoal_store *self, const char *key, int status, const char *format, ...) SHOAL_PRINTF(4, 5);
/* Counts a request; called by classes that count themselves. */
void store_count(shoal_store *self, shoal_request_kind kind, int64_t sent, int64_t received);
/* Adds a key to a page; `key` need not end with NUL. */
int store_listing_add(shoal_listing *page, const char *key, size_t length, int64_t size, const char *etag);
/* Says how old the entry is that was added last, if one was: `status` is what store_listing_add returned, and is
 * returned. */
int store_listing_age(shoal_listing *page, int status, double age);
/* Memory for what a get found: sets data, memory and size.  Nothing is zeroed.  SHOAL_MEMORY when the store is bounded
 * to less; without a key (NULL) the message does not name it. */
int store_blob_room(const shoal_store *self, const char *key, shoal_blob *out, size_t size);
/* The same for a message. */
int store_message_room(const shoal_store *self, const char *queue, shoal_message *out, size_t size);
/* The check that both make first. */
int store_check_size(const shoal_store *self, const char *key, int64_t size);
/* Copies text into an etag; SHOAL_INVALID when it is empty or too long. */
int store_etag_set(shoal_etag *etag, const char *text, size_t length);

/* ---- trying again (store_retry.c) -------------------------------------------------------------------------------- */

/* The pauses between attempts: full jitter (Brooker, "Exponential backoff and jitter"), from 50 ms doubling to 5 s. */
typedef struct store_backoff {
    int attempts;
} store_backoff;

/* The deadline of a call that began at that moment, or, if it passed long ago, the same time again from now: attempts
 * and pauses end soon after their deadline, so the process was stopped meanwhile, or the machine slept, and nothing
 * says that the store is unreachable. */
int64_t store_after_sleep(int64_t deadline, int64_t began);

/* Sleeps before the next attempt, at least attempt->retry_after; returns false at once if the deadline would pass
 * meanwhile.  Counts the cause. */
bool store_backoff_sleep(store_backoff *backoff, shoal_store *store, store_attempt *attempt);

/* The message of a failed attempt.  If the deadline cut the attempt short, that of the attempt before it. */
typedef struct store_last_words {
    char text[768];
} store_last_words;

void store_last_words_note(store_last_words *words, int64_t deadline);

/* As the public calls of the same names, on keys that carry the prefix.  put_id, 16 bytes or NULL, is what decides an
 * ambiguous put. */
int store_get(shoal_store *store, const char *key, const store_range *range, shoal_blob *out, int64_t deadline);
int store_put(shoal_store *store, const char *key, const store_body *body, const unsigned char *put_id,
              const shoal_etag *expected, shoal_etag *etag, int64_t deadline);
int store_remove(shoal_store *store, const char *key, int64_t deadline);
int store_await(shoal_store *store, const char *key, int64_t until, shoal_blob *out,
                int64_t deadline); /* of a class that has `await` */
int store_list(shoal_store *store, const char *prefix, const char *after, shoal_listing *page, int64_t deadline);
int store_queue_push(shoal_store *store, const char *queue, const store_body *body, int64_t deadline);
int store_queue_take(shoal_store *store, const char *queue, double lease, shoal_message *out, int64_t deadline);
int store_queue_extend(shoal_store *store, const char *queue, shoal_message *message, double lease, int64_t deadline);
int store_queue_finish(shoal_store *store, const char *queue, shoal_message *message, int64_t deadline);
int store_queue_count(shoal_store *store, const char *queue, int64_t *out, int64_t deadline);
int store_queue_drop(shoal_store *store, const char *queue, int64_t deadline);

/* ---- frames (store_frame.c) -------------------------------------------------------------------------------------- */

enum { STORE_PUT_ID_BYTES = 16 };

typedef struct store_frame {
    uint32_t kind;
    uint64_t length;
    uint32_t crc; /* of the body */
    unsigned char put_id[STORE_PUT_ID_BYTES];
} store_frame;

void store_frame_write(unsigned char out[SHOAL_FRAME_BYTES], const store_frame *frame);
/* False if the bytes are not an intact frame; *why, which may be NULL, then says why: "too short". */
bool store_frame_read(store_frame *out, const void *bytes, size_t size, const char **why);
/* Reads the frame and also checks the body after it. */
bool store_frame_check(store_frame *out, const void *bytes, size_t size, const char **why);
/* store_put and store_get with a frame; the keys carry the prefix. */
int store_put_framed(shoal_store *store, const char *key, uint32_t kind, const void *data, size_t size,
                     const shoal_etag *expected, shoal_etag *etag, int64_t deadline);
int store_get_framed(shoal_store *store, const char *key, uint32_t kind, shoal_blob *out, int64_t deadline);
/* Reduces a framed blob to its body; SHOAL_BROKEN, and the blob is released, if it is not intact. */
int store_unframe(const shoal_store *store, const char *key, uint32_t kind, shoal_blob *blob);

/* ---- queues made of blobs (queue_blobs.c) ------------------------------------------------------------------------ */

/* As the public calls; `queue` carries the prefix, as in jobs/setup, whose blobs are below jobs/.shoal/queue/setup/
 * when the prefix is jobs/. */
int store_blobs_push(shoal_store *store, const char *queue, const void *data, size_t size, int64_t deadline);
int store_blobs_take(shoal_store *store, const char *queue, double lease, shoal_message *out, int64_t deadline);
int store_blobs_extend(shoal_store *store, const char *queue, shoal_message *message, double lease, int64_t deadline);
int store_blobs_finish(shoal_store *store, const char *queue, shoal_message *message, int64_t deadline);
int store_blobs_count(shoal_store *store, const char *queue, int64_t *out, int64_t deadline);
int store_blobs_drop(shoal_store *store, const char *queue, int64_t deadline);

/* ---- waking (store_wake.c) --------------------------------------------------------------------------------------- */

/* A table of words, in memory or in a file that processes map: a change of a key bumps the words of the key and of
 * every run of its segments from the first, and a waiter sleeps on one of them. */
enum { STORE_WAKE_WORDS = 1024 };
typedef struct store_wake {
    _Atomic uint32_t word[STORE_WAKE_WORDS];    /* changes; all zero at first */
    _Atomic uint32_t waiters[STORE_WAKE_WORDS]; /* number of sleepers; too many after one was killed, never too few */
} store_wake;

void store_wake_changed(store_wake *wake, const char *key);
int store_wake_wait(store_wake *wake, const char *name, uint32_t *seen, int64_t deadline);

/* ---- faults (store_faulty.c) ------------------------------------------------------------------------------------- */

/* Wraps *inout in a store that fails as `spec` says (docs/store.md, "Faults"); the wrapper owns it from then on. */
int store_faulty_wrap(shoal_store **inout, const char *spec);
/* Tests: a store with `forget` among its faults goes back to its state this many seconds ago, as far as it was changed
 * through this handle. */
int store_faulty_forget(shoal_store *store, double seconds);

/* ---- counts and prices (store_count.c) -------------------------------------------------------------------------- */

/* What requests cost in US dollars, by scheme. */
double store_price(const char *scheme, const shoal_store_counts *counts);
/* Adds the counts of one store to those of others. */
void store_counts_add(shoal_store_counts *sum, const shoal_store *store);
/* Requests of all kinds. */
int64_t store_counts_requests(const shoal_store_counts *counts);

/* ---- implementations --------------------------------------------------------------------------------------------- */

extern const struct store_class store_memory, store_folder, store_azure, store_s3, store_pipe;

#endif
