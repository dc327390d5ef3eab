/* Blobs and queues: all that workers on different machines share.
 *
 *     shoal_store *store = NULL;
 *     shoal_blob blob = {0};
 *     int64_t deadline = shoal_after(30);
 *     int status = shoal_store_open(&store, "dir:/tmp/jobs", &(shoal_store_options){.create = true}, deadline);
 *     if (status == SHOAL_OK)
 *         status = shoal_store_put(store, "hello", "world", 5, SHOAL_NOTHING, NULL, deadline);   // only if absent
 *     if (status == SHOAL_OK)
 *         status = shoal_store_get(store, "hello", &blob, deadline);
 *     shoal_blob_release(&blob);
 *     shoal_store_close(&store);
 *
 * A store is named by a URL; docs/store.md lists all kinds:
 *
 *     mem:NAME                    in this process, until the last one closes it
 *     dir:/path  or  /path        a folder of this machine; any number of processes
 *     az://ACCOUNT/CONTAINER      Azure Blob and Queue Storage
 *     s3://BUCKET                 S3 and what speaks its protocol
 *     pipe:/path/of/a/socket      the store of the user who started the agent that serves this socket, through its ssh
 *
 * and may have a prefix: keys of az://acct/data/team are below team/ in that container.  Every store keeps the promises
 * below; one conformance suite (tests/conform) proves them of each.
 *
 * Promises
 *  - What a call acknowledged is there for every process that asks afterwards: get, list, take.
 *  - A put is seen whole or not at all.  Exactly one of several racing conditional puts wins.
 *  - Listing is in the order of the keys' bytes.
 *  - A message is held by one taker at a time, while its lease lasts or is extended; one that nobody finishes is
 *    delivered again, any number of times.  Order is not promised, and a lost answer may leave a message twice.
 *  - A call returns soon after its deadline.  Until then it retries whatever may be temporary, with growing random
 *    pauses or after the time the server asked for.  A call during which the process was stopped, or the machine slept,
 *    until after its deadline gets the same time once more.
 *
 * Statuses, besides the usual ones of error.h, say what the caller does next:
 *     SHOAL_ABSENT    there is no such key; the queue has nothing to take
 *     SHOAL_CONFLICT  the condition of a put or get did not hold: someone else was first
 *     SHOAL_LOST      the lease ended, and the message is or may be someone else's
 *     SHOAL_UNKNOWN   the answer was lost, and what is there can't tell whether it was done: look before going on
 *     SHOAL_AGAIN     the deadline passed before a temporary failure did; nothing was done
 *     SHOAL_DENIED    the store refuses these credentials
 *     SHOAL_BROKEN    bytes that are not what was written
 *
 * Keys are UTF-8 of 1 to 512 bytes without control characters; their segments, separated by '/', are not empty and do
 * not end with a dot; the first is not ".shoal", which is the store's own.  The names of queues are keys too, in a
 * separate namespace.  Every function may be called from any thread. */
#ifndef SHOAL_STORE_H
#define SHOAL_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <shoal/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- time -------------------------------------------------------------------------------------------------------- */

/* Deadlines are nanoseconds on a clock of this machine that keeps running while it sleeps and is never adjusted. */
#define SHOAL_NEVER INT64_MAX
SHOAL_API int64_t shoal_now(void);
/* That many seconds from now. */
SHOAL_API int64_t shoal_after(double seconds);

/* ---- opening ----------------------------------------------------------------------------------------------------- */

typedef struct shoal_store shoal_store;

typedef struct shoal_store_options {
    bool create;    /* create the folder, container or bucket if it does not exist */
    bool read_only; /* nothing will be written: what only writers need is not checked */
    /* dir: only a store whose folder is this one or below it, an absolute path without links: SHOAL_DENIED
     * otherwise, and no link is followed from there on; NULL: any */
    const char *within;
} shoal_store_options;

/* Connects to what `url` names; `options` may be NULL.  Credentials come from the environment (docs/store.md), never
 * from the URL.  SHOAL_USAGE for a URL that makes no sense, SHOAL_ABSENT when there is no such store, SHOAL_DENIED,
 * SHOAL_INVALID for a server that does not honour conditional writes. */
SHOAL_API int shoal_store_open(shoal_store **out, const char *url, const shoal_store_options *options,
                               int64_t deadline);
/* Like shoal_store_open, but what would be the prefix is handed out instead: "" or a key or the start of keys, the
 * caller's to free with shoal_text_free. */
SHOAL_API int shoal_store_open_at(shoal_store **out, char **rest, const char *url, const shoal_store_options *options,
                                  int64_t deadline);
SHOAL_API void shoal_store_close(shoal_store **store);

/* SHOAL_USAGE with a sentence for what is not the URL of any kind of store; nothing is opened. */
SHOAL_API int shoal_store_url_check(const char *url);
/* Whether a URL names what another names, or something below it: the same scheme, followed by all segments of the
 * other.  What follows '?' does not name another place, and is ignored.  False for one with a segment "." or "..", and
 * below a bare scheme.  SHOAL_USAGE for what is not a URL. */
SHOAL_API int shoal_store_url_is_below(bool *out, const char *url, const char *root);
/* The path in dir:/path or /path, the caller's to free with shoal_text_free; NULL for the URL of another kind of
 * store. */
SHOAL_API int shoal_store_url_folder(char **out, const char *url);
SHOAL_API void shoal_text_free(char **text);

typedef struct shoal_store_traits {
    const char *scheme; /* "dir" */
    const char *name;   /* how messages call it, without its prefix: "az://acct/container", "dir:/tmp/jobs" */
    bool wakes;         /* shoal_store_wait returns when something happens; otherwise it polls */
    bool far;           /* bytes come over a network: fetched data is worth caching */
    double forgets;     /* seconds of acknowledged writes that a failure of the server may cost */
} shoal_store_traits;

SHOAL_API shoal_store_traits shoal_store_describe(const shoal_store *store);

/* From now on a blob or message of more than this many bytes is refused with SHOAL_MEMORY before memory is allocated
 * for it, unless the caller provides the memory; 0, the default: any size.  Call it before other threads use the
 * store. */
SHOAL_API void shoal_store_bound(shoal_store *store, int64_t bytes);

/* ---- blobs ------------------------------------------------------------------------------------------------------- */

enum { SHOAL_ETAG_BYTES = 128, SHOAL_KEY_MOST = 512 };

/* One version of a blob.  Two versions of a key have different etags, unless a server makes them from the content. */
typedef struct shoal_etag {
    char text[SHOAL_ETAG_BYTES];
} shoal_etag;

/* The version of a key that is not there: a put that expects it is done only if the key is absent. */
SHOAL_API extern const shoal_etag shoal_etag_nothing;
#define SHOAL_NOTHING (&shoal_etag_nothing)

/* What a get found. */
typedef struct shoal_blob {
    void *data; /* size bytes, 64-byte aligned unless framed; NULL when a buffer was given */
    size_t size;
    int64_t whole; /* bytes of the whole blob */
    shoal_etag etag;
    double age;   /* seconds since it was written, by the store's own clock, give or take one; -1 if unknown */
    void *memory; /* private: what release frees */
} shoal_blob;

SHOAL_API void shoal_blob_release(shoal_blob *blob);

/* The whole blob, in several ranges at once when it is large.  *out is filled only on success. */
SHOAL_API int shoal_store_get(shoal_store *store, const char *key, shoal_blob *out, int64_t deadline);

/* `length` bytes from `offset`, fewer where the blob ends, none beyond it; into `buffer`, or into fresh memory when
 * that is NULL.  With `expected` only if the blob is still that version: SHOAL_CONFLICT otherwise,
 * SHOAL_ABSENT when there is none. */
SHOAL_API int shoal_store_get_range(shoal_store *store, const char *key, int64_t offset, int64_t length,
                                    const shoal_etag *expected, void *buffer, shoal_blob *out, int64_t deadline);

/* Writes a blob: always when `expected` is NULL, only if there is none with SHOAL_NOTHING, else only if that version
 * is still there; SHOAL_CONFLICT otherwise.  A conditional put of plain bytes whose answer was lost gives
 * SHOAL_UNKNOWN; framed ones can mostly tell.  `etag`, which may be NULL, gets the new version. */
SHOAL_API int shoal_store_put(shoal_store *store, const char *key, const void *data, size_t size,
                              const shoal_etag *expected, shoal_etag *etag, int64_t deadline);

/* SHOAL_OK also when there was no such key. */
SHOAL_API int shoal_store_remove(shoal_store *store, const char *key, int64_t deadline);

typedef struct shoal_entry {
    char *key;
    int64_t size;
    shoal_etag etag;
    double age; /* as in shoal_blob */
} shoal_entry;

/* A page of keys.  Zero before the first call. */
typedef struct shoal_listing {
    shoal_entry *entries;
    size_t count;
    bool more;    /* call again for the next page */
    char *marker; /* private */
    size_t room;  /* private */
} shoal_listing;

/* The next page of the keys that start with `prefix` ("" for all) and come after `after` (NULL for all), replacing the
 * page before; both stay the same from call to call.  A page may be empty though there are more. */
SHOAL_API int shoal_store_list(shoal_store *store, const char *prefix, const char *after, shoal_listing *page,
                               int64_t deadline);
SHOAL_API void shoal_listing_release(shoal_listing *page);

/* Waits for a change of one key or queue or, when `name` is empty or ends with '/', of any below it.  SHOAL_OK at once
 * if there may have been one since *seen was set, else when there may have been, else SHOAL_AGAIN at the deadline.
 * *seen is 0 at first and belongs to the caller, who waits and then looks: no change is missed between a look and the
 * next wait.  The end of a lease is not a change.  A store that does not wake sleeps for a while instead, longer each
 * time, and returns SHOAL_OK. */
SHOAL_API int shoal_store_wait(shoal_store *store, const char *name, uint32_t *seen, int64_t deadline);

/* Waits for a blob and gets it; SHOAL_ABSENT if there is none at the moment `until`.  The deadline, as elsewhere, is
 * for a store that does not answer. */
SHOAL_API int shoal_store_await(shoal_store *store, const char *key, int64_t until, shoal_blob *out, int64_t deadline);
/* Says that a key will be awaited, so that a remote store can ask for it at once: the answer is then on its way the
 * moment the key is put. A later await returns the blob as of some moment since this call: for keys that are put once.
 * NULL cancels everything expected and not awaited. */
SHOAL_API void shoal_store_expect(shoal_store *store, const char *key);
/* Removes a key that nobody needs any more, without a guarantee: a remote store sends it along with its next request,
 * or when it is closed, and does not wait for the answer. */
SHOAL_API int shoal_store_discard(shoal_store *store, const char *key, int64_t deadline);

/* ---- frames ------------------------------------------------------------------------------------------------------ */

/* A framed blob starts with 48 bytes that say what it is: magic, version, kind, length, the writer's random 128-bit
 * put id, and CRC32C of body and frame.  `kind` is four letters, SHOAL_KIND('m','o','d','l'). */
#define SHOAL_KIND(a, b, c, d)                                                                                         \
    ((uint32_t)(unsigned char)(a) | (uint32_t)(unsigned char)(b) << 8 | (uint32_t)(unsigned char)(c) << 16 |           \
     (uint32_t)(unsigned char)(d) << 24)
enum { SHOAL_FRAME_BYTES = 48 };

/* As shoal_store_put.  When an answer was lost, the put id that is there decides: mine means done, another's means
 * conflict or, if a version was expected, SHOAL_UNKNOWN, since mine may have been there before it. */
SHOAL_API int shoal_store_put_framed(shoal_store *store, const char *key, uint32_t kind, const void *data, size_t size,
                                     const shoal_etag *expected, shoal_etag *etag, int64_t deadline);
/* The body of a framed blob; SHOAL_BROKEN, with the key's name, when it is not one of that kind or not intact. */
SHOAL_API int shoal_store_get_framed(shoal_store *store, const char *key, uint32_t kind, shoal_blob *out,
                                     int64_t deadline);
/* The same if its body has `most` bytes or fewer, and memory is taken for no more: SHOAL_MEMORY otherwise, and then
 * out->whole is the number of bytes of the blob, including the frame; it is 0 after any other failure. */
SHOAL_API int shoal_store_get_framed_within(shoal_store *store, const char *key, uint32_t kind, int64_t most,
                                            shoal_blob *out, int64_t deadline);
/* shoal_store_await of a framed blob. */
SHOAL_API int shoal_store_await_framed(shoal_store *store, const char *key, uint32_t kind, int64_t until,
                                       shoal_blob *out, int64_t deadline);

/* ---- queues ------------------------------------------------------------------------------------------------------ */

enum { SHOAL_RECEIPT_BYTES = 768 };

typedef struct shoal_message {
    void *data;
    size_t size;
    int64_t deliveries;                /* how often it was taken, this time included */
    int64_t lease_ends;                /* on shoal_now's clock; counted from before the request was sent */
    char receipt[SHOAL_RECEIPT_BYTES]; /* private: proves who holds it */
} shoal_message;

SHOAL_API void shoal_message_release(shoal_message *message);

/* Adds a message; the queue is made when it is not there. */
SHOAL_API int shoal_store_push(shoal_store *store, const char *queue, const void *data, size_t size, int64_t deadline);
/* Takes a message that nobody holds, for `lease` seconds (1 to 604800, whole seconds are exact everywhere).
 * SHOAL_ABSENT when there is none now.  SHOAL_BROKEN for one that shoal did not write or that is damaged: it is
 * reported once and removed, so that the next take gets another.  An answer that was lost costs the message's lease,
 * not the message. */
SHOAL_API int shoal_store_take(shoal_store *store, const char *queue, double lease, shoal_message *out,
                               int64_t deadline);
/* The lease ends that many seconds from now; 0 returns the message at once.  SHOAL_LOST: it is no longer held, or that
 * is uncertain: do not continue as if it were.  It always is lost once lease_ends has passed, taken by another or
 * not. */
SHOAL_API int shoal_store_extend(shoal_store *store, const char *queue, shoal_message *message, double lease,
                                 int64_t deadline);
/* Removes a message that is held.  SHOAL_LOST when it is no longer; SHOAL_OK also when an answer was lost and the
 * message is gone. */
SHOAL_API int shoal_store_finish(shoal_store *store, const char *queue, shoal_message *message, int64_t deadline);
/* How many messages there are about now, those that are held included; 0 when there is no such queue. */
SHOAL_API int shoal_store_count(shoal_store *store, const char *queue, int64_t *out, int64_t deadline);
/* Removes the queue and all in it.  SHOAL_OK also when there is none.  Its name should not be used again: some servers
 * need half a minute until it can be. */
SHOAL_API int shoal_store_drop(shoal_store *store, const char *queue, int64_t deadline);

/* ---- what it took ------------------------------------------------------------------------------------------------ */

typedef enum shoal_request_kind {
    SHOAL_REQUEST_GET,
    SHOAL_REQUEST_PUT,
    SHOAL_REQUEST_LIST,
    SHOAL_REQUEST_REMOVE,
    SHOAL_REQUEST_QUEUE,
    SHOAL_REQUEST_OTHER, /* creating containers, getting tokens */
    SHOAL_REQUEST_KINDS
} shoal_request_kind;

/* Why a request has to be made again. */
typedef enum shoal_cause {
    SHOAL_CAUSE_NONE,
    SHOAL_CAUSE_THROTTLED,   /* 429, 503: too many requests */
    SHOAL_CAUSE_SERVER,      /* another 5xx */
    SHOAL_CAUSE_UNREACHABLE, /* no such host, nobody listens */
    SHOAL_CAUSE_CUT,         /* the connection broke */
    SHOAL_CAUSE_TIMEOUT,     /* nothing came for too long */
    SHOAL_CAUSE_RACE,        /* the server met another writer and did not decide */
    SHOAL_CAUSE_BUSY,        /* another process is in the way */
    SHOAL_CAUSES
} shoal_cause;

typedef struct shoal_store_counts {
    int64_t requests[SHOAL_REQUEST_KINDS];
    int64_t bytes_sent, bytes_received; /* of bodies */
    int64_t causes[SHOAL_CAUSES];       /* failed attempts by cause */
    double price;                       /* of the requests in US dollars; 0 where they are free */
} shoal_store_counts;

/* The requests made through this handle so far. */
SHOAL_API shoal_store_counts shoal_store_counted(const shoal_store *store);
/* "throttled", "server error", ... */
SHOAL_API const char *shoal_cause_name(shoal_cause cause);

#ifdef __cplusplus
}
#endif
#endif
