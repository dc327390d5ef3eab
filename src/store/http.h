/* Requests over HTTP, by libcurl: connections that are kept, many requests at once, and failures told apart.
 *
 *     http_pool *pool = NULL;
 *     http_request request = {.method = "GET", .url = "https://acct.blob.core.windows.net/box/key", .kind = ...};
 *     http_pool_new(&pool, store, NULL);
 *     http_add_header(&request, "x-ms-version: %s", "2021-12-02");
 *     status = http_perform(pool, &request, 1, deadline);      // SHOAL_OK: there is an answer, whatever it says
 *     ... request.status, http_header(&request, "etag"), request.answer ...
 *     http_request_release(&request);
 *
 * TLS is verified, redirects are not followed, plain http goes to loopback only.  A connection that was used is kept
 * for the next request, so that none waits for a handshake; connections that the server closed meanwhile are made
 * anew. */
#ifndef STORE_HTTP_H
#define STORE_HTTP_H

#include "store_internal.h"

typedef struct http_pool http_pool;

enum { HTTP_PARALLEL_MOST = 16, HTTP_ERROR_MOST = 64 << 10, HTTP_ANSWER_MOST = 64 << 20 };

typedef struct http_request {
    /* A request.  Zero except for what is set; http_add_header adds headers. */
    const char *method;      /* "GET", "HEAD", "PUT", "POST", "DELETE" */
    const char *url;         /* encoded */
    shoal_request_kind kind; /* what it counts as */
    store_body body;         /* what is sent, when sends_body */
    bool sends_body;
    void *buffer; /* where a 2xx answer's body goes: `room` bytes here, or fresh memory when NULL */
    size_t room;  /* with buffer: its size; without: the most that is accepted, 0 for HTTP_ANSWER_MOST */
    /* Optional.  Called when the headers of a 2xx answer are there, before its body: may set buffer and room, for which
     * http_header may be asked.  A failure, with its message set, ends http_perform. */
    int (*place)(struct http_request *request, void *place_context);
    void *place_context;
    void *headers_sent; /* private */

    /* The answer. */
    int status;        /* 200, 404, ...; 0 when there was none, and then: */
    shoal_cause cause; /* why, and whether the server may have done it: */
    bool maybe_done;
    char trouble[256]; /* what libcurl says, for people; no secrets */
    char *answer;      /* body, followed by a NUL; NULL when it went to `buffer`.  Of other than 2xx at most
                        * HTTP_ERROR_MOST bytes */
    size_t size;       /* of the body */
    char *headers;     /* private: as they came */
    double seconds;    /* how long it took */
} http_request;

typedef struct http_settings {
    const char *certificates;    /* PEM file of authorities to trust instead of the system's, or NULL */
    const char *certificates_by; /* the variable that named it, for messages, or NULL */
    int attempt_seconds;         /* seconds without a byte moving until a request is given up; 0 for 20 */
    int connect_seconds;         /* 0 for 5 */
    int parallel;                /* requests of one http_perform that are under way at once; 0 for HTTP_PARALLEL_MOST */
    bool metadata; /* plain http may also go to link-local addresses, where clouds tell a machine its identity */
} http_settings;

/* Requests are counted on `store`, which may be NULL. */
int http_pool_new(http_pool **out, shoal_store *store, const http_settings *settings);
void http_pool_free(http_pool **pool);

/* "name: value", printf-like.  Control characters in it are refused, so that no header can be smuggled in. */
int http_add_header(http_request *request, const char *format, ...) SHOAL_PRINTF(2, 3);

/* Makes all requests, at most HTTP_PARALLEL_MOST at a time, on the calling thread.  SHOAL_OK: each has a status or a
 * cause.  Otherwise a failure that no retry would change, with a message: SHOAL_MEMORY; SHOAL_USAGE for a URL that must
 * not be used (plain http to another machine); SHOAL_INVALID for an untrusted certificate, or a port without TLS;
 * SHOAL_BROKEN for an answer that is longer than `room`.  What was kept of an earlier answer is freed first, so a
 * request can be made again.  A request that only reads is repeated at once when a kept connection turns out to be
 * closed, others never. */
int http_perform(http_pool *pool, http_request *requests, size_t count, int64_t deadline);

/* A header of the answer, case-insensitive, in a buffer of the request; NULL if it is missing. */
const char *http_header(const http_request *request, const char *name, char *buffer, size_t room);

/* Seconds since 1970 of an HTTP date ("Sun, 15 Nov 2026 12:00:00 GMT"); -1 if it is not one. */
int64_t http_date(const char *text);
/* The answer's Date, in seconds since 1970; -1 when it has none. */
int64_t http_now(const http_request *request);
/* Seconds from a time, as documents of servers have it ("2026-11-15T12:00:00.000Z", or as HTTP writes dates), to `now`;
 * -1 when one of them is missing. */
double http_age_at(int64_t now, const char *text);
/* Seconds between the answer's Last-Modified and its Date; -1 when one is missing. */
double http_age(const http_request *request);
/* Seconds that Retry-After asks for, as a number or a date; 0 without one, at most an hour. */
double http_retry_after(const http_request *request);
/* What libcurl's or the server's failure means for attempt->cause; SHOAL_AGAIN or SHOAL_UNKNOWN, or SHOAL_OK if the
 * answer is not a temporary failure. 5xx, 429 and no answer at all are.  Only 429 says that nothing was done: a 503 may
 * come from a proxy in front of a server that was already at work. */
int http_passing(const http_request *request, store_attempt *attempt);

/* Percent-encodes all but letters, digits, "-._~" and, when `keep_slash`, "/". */
int http_encode(char **out, const char *text, bool keep_slash);

void http_request_release(http_request *request);

#endif
