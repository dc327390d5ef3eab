/* Many messages at once over one pair of file descriptors, or one socket.
 *
 * A *message* has a stream (a number chosen by the side that asks; the answer has the same), a head of some hundred
 * bytes, and a body of any length.  There are two lanes.  Heads, notes, pings and credits go first, each in one frame;
 * bodies follow in turns of a frame a stream, and of their bytes no more are under way than the *window* allows: what
 * was sent and is not yet covered by the credit that the far end gives.  The window is twice what the link was seen to
 * carry in a round trip, and at least 64 KiB.  So a short message never waits for more than that to pass, and a fast
 * link is kept full.
 *
 * A *loop* serves one or more links, in a thread of its own or in that of whoever takes its turns.  Events are called
 * in it and must not block; what they send goes out when the bytes at hand have been looked at.  What another thread
 * sends is written by that thread at once, if it can be.
 *
 * Each end pings, and holds the link for dead after so long a silence.  Only silence that the loop was there to hear
 * counts: who was stopped for an hour looks first what has come meanwhile.
 *
 * A link begins with a line from each end, "shoal-pipe PROTOCOL VERSION NONCE". What comes before it is no frame: a
 * banner, a message of the day.  It is skipped, and the end of it is kept. */
#ifndef PIPE_LINK_H
#define PIPE_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/pipe/pipe.h"
#include "store/pipe/pipe_frame.h"

enum {
    PIPE_PROTOCOL = 1,
    PIPE_JUNK_KEPT = 2000,
    PIPE_WINDOW_LEAST = 64 * 1024,
    PIPE_WINDOW_MOST = 64 * 1024 * 1024,
    PIPE_HEAD_MOST = 16 * 1024,  /* of a message */
    PIPE_SHORT_MOST = 12 * 1024, /* a body of at most this travels with its head */
};

typedef struct pipe_link pipe_link;
typedef struct pipe_loop pipe_loop;

/* All called in the loop's thread.  Pointers hold until the call returns. */
typedef struct pipe_link_events {
    void (*greeted)(void *context); /* the other end has said hello; may be NULL */
    void (*note)(void *context, const char *text);
    /* A message.  When `body` is not NULL it is all there; otherwise body_size bytes, not 0, follow by calls of
     * `body`. */
    void (*head)(void *context, uint32_t stream, const void *head, size_t size, const void *body, uint64_t body_size);
    /* The next bytes of a body, whose end the link does not know: a receiver that gets too many calls pipe_link_fail.
     * False: they are not yet taken, and pipe_link_taken will tell; until then the other end sends no more than its
     * window. */
    bool (*body)(void *context, uint32_t stream, const void *bytes, size_t size);
    void (*cancelled)(void *context, uint32_t stream);
    void (*closed)(void *context, const char *why); /* once; nothing comes after it */
} pipe_link_events;

typedef struct pipe_link_options {
    bool first;          /* says hello at once; otherwise after the other end did */
    const char *nonce;   /* both hellos must have it */
    double hello_within; /* seconds; 0: 30 */
    double ping_every;   /* seconds; 0: 2 */
    double silence_most; /* seconds; 0: 10 */
    bool local;          /* to a process of this machine, whose end is told by the system:
                 no pings, no silence */
    const pipe_link_events *events;
    void *context;
} pipe_link_options;

/* A message to be sent. */
typedef struct pipe_message {
    uint32_t stream;
    const void *head;
    size_t head_size;
    uint64_t body_size;
    struct {
        const void *bytes;
        size_t size;
    } part[2]; /* the first bytes of the body, or all; the rest follows by
                pipe_link_append */
    /* Called once for each part that is not empty, when its bytes have been written or never will be; then they may go.
     * Must not call the link.  NULL: the bytes stay until the message is dropped, or answered. */
    void (*release)(void *owner, size_t size);
    void *owner;
    /* It may wait until something else is sent, or pipe_link_flush is called: what is sent together costs one
     * wake-up. */
    bool lazy;
} pipe_message;

/* Takes the descriptors, also on failure; they may be the same one. */
int pipe_link_new(pipe_link **out, int in, int out_descriptor, const pipe_link_options *options);
/* To be called when its loop has ended, or from `after` of its loop when it is closed. */
void pipe_link_free(pipe_link **link);

/* SHOAL_AGAIN when the link is dead; then `release` has been called. */
int pipe_link_send(pipe_link *link, const pipe_message *message);
/* Sends what waits to be sent with something else. */
void pipe_link_flush(pipe_link *link);
/* More bytes of a body.  A stream that is not being sent (any more) takes nothing; `release` is called at once. */
int pipe_link_append(pipe_link *link, uint32_t stream, const void *bytes, size_t size,
                     void (*release)(void *owner, size_t size), void *owner);
/* Stops sending a message; false when all of it had been handed to the system already: the other end may have it whole.
 * When this returns, none of its bytes are looked at any more. */
bool pipe_link_drop(pipe_link *link, uint32_t stream);
/* Tells the other end that nobody waits for this stream. */
void pipe_link_cancel(pipe_link *link, uint32_t stream);
int pipe_link_note(pipe_link *link, const char *text);
/* Bytes of bodies for which the `body` event said false have been taken. */
void pipe_link_taken(pipe_link *link, size_t size);
/* The other end broke the protocol: ends the link with this sentence. */
void pipe_link_fail(pipe_link *link, const char *why);

bool pipe_link_greeted(const pipe_link *link);
void pipe_link_junk(const pipe_link *link, char *out, size_t size);
pipe_figures pipe_link_figures(const pipe_link *link);
/* Bytes of bodies that wait to be sent, and how many may be under way. */
uint64_t pipe_link_waiting(const pipe_link *link);
uint64_t pipe_link_window(const pipe_link *link);

/* ---- loops ------------------------------------------------------------------------------------------------------- */

int pipe_loop_new(pipe_loop **out);
/* Serves a link.  Before pipe_loop_start, or in the loop's thread. */
int pipe_loop_add(pipe_loop *loop, pipe_link *link);
/* Calls `ready` whenever this descriptor is readable. */
void pipe_loop_watch(pipe_loop *loop, int descriptor, void (*ready)(void *context), void *context);
/* `after`, which may be NULL, is called after each turn, when no event is in progress; a closed link is then no longer
 * served. */
int pipe_loop_start(pipe_loop *loop, void (*after)(void *context), void *context);
/* Without a thread: takes one turn in the calling one, waiting for at most so long.  One thread at a time. */
void pipe_loop_turn(pipe_loop *loop, double seconds);
/* Ends the thread.  What short messages wait to be sent get `seconds` for it; links that are open are closed without an
 * event. */
void pipe_loop_free(pipe_loop **loop, double seconds);
/* Makes it take another turn. */
void pipe_loop_wake(pipe_loop *loop);

#endif
