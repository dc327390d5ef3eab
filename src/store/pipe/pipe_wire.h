/* Requests and answers of the pipe store as bytes: what travels in the heads of a link's messages.
 *
 * Each call of a store class is one request and one answer.  Times travel as seconds that are left, since clocks
 * differ; failures with their sentence, so that the caller sees the store's own message.  Reading is pure, and refuses
 * what writing does not write. */
#ifndef PIPE_WIRE_H
#define PIPE_WIRE_H

#include "base/bytes.h"
#include "store/store_internal.h"

enum { PIPE_NAME_MOST = 1536, PIPE_MARKER_MOST = 4096, PIPE_MESSAGE_MOST = 1024 };

typedef enum pipe_call {
    PIPE_DESCRIBE = 1,
    PIPE_GET,
    PIPE_PUT, /* the body is the blob's */
    PIPE_REMOVE,
    PIPE_LIST, /* the answer's body: entries, pipe_entry_write */
    PIPE_PUSH, /* the body is the message's */
    PIPE_TAKE,
    PIPE_EXTEND,
    PIPE_FINISH,
    PIPE_COUNT,
    PIPE_DROP,
    PIPE_WAIT,
    PIPE_DISCARD, /* a remove that nobody answers */
    PIPE_CALLS
} pipe_call;

typedef struct pipe_request {
    pipe_call call;
    bool data;      /* asks the store of the rows */
    double seconds; /* until the deadline */
    uint32_t number;
    bool doubt; /* as in store_attempt */
    char name[PIPE_NAME_MOST];

    int64_t offset, length; /* get */
    shoal_etag known;       /* get, from a hub: it has this version of these very bytes,
                       "" when it does not, */
    uint32_t same_as;       /* or will have what that stream's answer brings; 0: nothing
                       does */
    bool patient;           /* get: one that is not there is waited for, until the deadline */
    bool conditional;       /* get, put: only if it is `expected` */
    shoal_etag expected;
    bool has_after; /* list */
    char after[PIPE_NAME_MOST], marker[PIPE_MARKER_MOST];
    uint32_t page;     /* list: keys at most */
    double lease;      /* take, extend */
    double lease_left; /* extend, finish: of the lease that is held */
    char receipt[SHOAL_RECEIPT_BYTES];
    uint32_t seen; /* wait */
} pipe_request;

typedef struct pipe_answer {
    int status;
    shoal_cause cause;
    double retry_after;
    char message[PIPE_MESSAGE_MOST]; /* of a failure */

    shoal_etag etag; /* get, put */
    int64_t whole;   /* get */
    double age;
    uint8_t same;                      /* get: there is no body, since it is what is known (1), or what
                   that stream's was (2) */
    int64_t number;                    /* count; take: deliveries */
    char receipt[SHOAL_RECEIPT_BYTES]; /* take, extend */
    bool more;                         /* list */
    char marker[PIPE_MARKER_MOST];
    uint32_t seen; /* wait */
    bool wakes;    /* describe */
    bool counts;   /* the store counts its requests itself: clients of the pipe do not count them again */
    double forgets;
    char store[PIPE_MESSAGE_MOST];
} pipe_answer;

void pipe_request_write(base_writer *out, const pipe_request *request);
/* False if these bytes are not a request.  Fields that the call does not use are zero. */
bool pipe_request_read(pipe_request *out, const void *bytes, size_t size);
void pipe_answer_write(base_writer *out, pipe_call call, const pipe_answer *answer);
bool pipe_answer_read(pipe_answer *out, pipe_call call, const void *bytes, size_t size);

/* Listings. */
void pipe_entry_write(base_writer *out, const shoal_entry *entry);
/* Adds all entries to the page; SHOAL_INVALID when they are none. */
int pipe_entries_read(shoal_listing *page, const void *bytes, size_t size);

#endif
