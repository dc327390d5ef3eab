/* The pipe store: a store that workers of another machine reach through the standard streams of one process.
 *
 *     worker ─┐ Unix                                  stdin, stdout of ssh
 *   worker ─┼─────────► hub (in the agent, far) ═══════════════════════════► server (in the starter, near) ─► any store
 *     worker ─┘ socket
 *
 * The *server* has a store and serves it over a pair of file descriptors.  The *hub* is at their other end; it serves
 * the workers of its machine on a Unix socket, fetches a blob that several of them want once, and passes everything
 * else on. To a worker it is a store like any other, "pipe:/path/of/the/socket" (store_pipe.c).
 *
 * A worker that knows what it will wait for says so (shoal_store_expect): its get then waits at the server, and the
 * answer is under way the moment the key is put.  What is only to be removed (shoal_store_discard) is asked for without
 * waiting for the answer.
 *
 * Both ends also carry notes: short texts that whoever made them exchanges beside the store's traffic, in order.
 *
 * The link itself (pipe_link.h): frames of at most 32 KiB with stream, length and CRC; notes, requests and short
 * answers go before bodies; the bytes of bodies in flight are bounded by a sliding window; each end pings every 2 s and
 * holds the link for dead after 10 s of silence.  What comes before the other end's hello is no frame: it is skipped,
 * and kept to be shown if the hello never comes. */
#ifndef PIPE_H
#define PIPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <shoal/store.h>

enum { PIPE_NOTE_MOST = 64 * 1024, PIPE_NONCE_BYTES = 33 };

/* How an end is notified.  Called from threads of the link; must not wait for the link. */
typedef struct pipe_events {
    void (*heard)(void *context, const char *note); /* a note; ends with NUL */
    void (*closed)(void *context,
                   const char *why); /* once: the other end is gone, or the link is dead; "" after pipe_*_free */
    void *context;
} pipe_events;

/* How a link does. */
typedef struct pipe_figures {
    double round_trip;       /* seconds, of the last pings the least; 0 before the first */
    double bytes_per_second; /* greatest rate at which bodies came or went, as far as seen; 0 before */
    int64_t sent, received;  /* bytes, frames included */
    int64_t shared;          /* hub: bytes of bodies that workers got without another fetch */
} pipe_figures;

/* ---- near -------------------------------------------------------------------------------------------------------- */

typedef struct pipe_server pipe_server;

typedef struct pipe_server_options {
    shoal_store *store; /* that workers see as theirs */
    /* Where the rows of the job are, when that is another one: pipe:SOCKET?store=data, read only; or NULL. */
    shoal_store *data;
    /* Of the store it shows what belongs to this job and no more, of the other one this key; NULL: all of it.  Both
     * texts must live as long as the server. */
    const char *job, *data_key;
    const char *shared; /* beside the job's, keys of the store that begin so; NULL: none */
    const char *nonce;  /* what the far end's hello must repeat: 32 hex digits */
    pipe_events events;
} pipe_server_options;

/* Serves over `in` and `out`, which it owns from then on (also on failure).  The hello is waited for in the background:
 * events tell. */
int pipe_server_new(pipe_server **out_server, int in, int out, const pipe_server_options *options);
/* Whether the far end has said hello. */
bool pipe_server_greeted(const pipe_server *server);
/* What came before the hello, its last 2,000 bytes without control characters; into `out`, which ends with NUL. */
void pipe_server_junk(const pipe_server *server, char *out, size_t size);
/* Sends a note.  SHOAL_AGAIN when the link is dead. */
int pipe_server_tell(pipe_server *server, const char *note);
pipe_figures pipe_server_figures(const pipe_server *server);
/* Ends the link; no event comes after this has returned. */
void pipe_server_free(pipe_server **server);

/* ---- far --------------------------------------------------------------------------------------------------------- */

typedef struct pipe_hub pipe_hub;

typedef struct pipe_hub_options {
    const char *socket; /* path of the Unix socket to serve workers on; its folder is the caller's, mode 0700 */
    const char *nonce;  /* for the hello */
    /* How much of what workers fetched is kept for the next one; 0: 256 MiB or an eighth of the memory, whichever is
     * less. */
    int64_t cache_bytes;
    pipe_events events;
} pipe_hub_options;

int pipe_hub_new(pipe_hub **out_hub, int in, int out, const pipe_hub_options *options);
int pipe_hub_tell(pipe_hub *hub, const char *note);
pipe_figures pipe_hub_figures(const pipe_hub *hub);
void pipe_hub_free(pipe_hub **hub);

#endif
