/* A worker's side of the pipe store: a connection to the hub of its machine, and calls that wait for their answers.
 *
 * There is no thread for it: one of the threads that wait for answers serves the link for all of them.  Any thread
 * makes calls; several may be under way at once, from one thread too: pipe_call_begin, then pipe_call_end, which waits.
 * A broken connection stays broken; the next caller makes a new one. */
#ifndef PIPE_CLIENT_H
#define PIPE_CLIENT_H

#include "store/pipe/pipe_link.h"
#include "store/pipe/pipe_wire.h"

typedef struct pipe_connection pipe_connection;

/* SHOAL_AGAIN when nobody listens there. */
int pipe_connection_open(pipe_connection **out, const char *socket);
/* Whether it can still be used. */
bool pipe_connection_lives(const pipe_connection *connection);
/* No call may be under way. */
void pipe_connection_close(pipe_connection **connection);

/* Zero before, but for the first group. */
typedef struct pipe_calling {
    const pipe_request *request;
    const store_body *body; /* of a put or push; stays until the call has ended */
    void *buffer;           /* where the answer's body goes, or NULL for fresh memory */
    size_t room;            /* of the buffer */
    bool lazy;              /* it may be sent with the next request, or when its answer is waited for */
    /* Of a get whose whole range is asked for piece by piece, of which this is the first: fresh memory is made for all
     * of it, as far as the blob goes. Otherwise 0. */
    int64_t whole_length;

    pipe_answer answer;
    unsigned char *memory; /* what was made; the caller's, also when the call failed */
    size_t size;           /* of the answer's body */

    /* Private. */
    struct pipe_calling *next;
    uint32_t stream;
    bool waits; /* is among those that are under way */
    size_t have;
    bool lost, surely; /* the link broke; and the server has certainly not received it */
    char why[512];
    bool sleeps; /* its caller does, and may be asked to serve the link */
    _Atomic uint32_t word;
} pipe_calling;

/* Sends the request.  On failure, SHOAL_AGAIN, it has ended. */
int pipe_call_begin(pipe_connection *connection, pipe_calling *call);
/* Waits until the head of the answer is here; false when it never will be: the call is to be ended then. */
bool pipe_call_head(pipe_connection *connection, pipe_calling *call, int64_t deadline);
/* Waits until all of the answer is here, or the call has failed; whether it is so. */
bool pipe_call_done(pipe_connection *connection, pipe_calling *call, int64_t until);
/* Sends a request that has no answer, with the next one that has. */
int pipe_call_post(pipe_connection *connection, const pipe_request *request);
/* Waits for all of the answer: SHOAL_OK, whatever the answer says.  SHOAL_AGAIN or SHOAL_UNKNOWN, with a cause and a
 * reason as message, when there is none: the deadline passed, or the link broke. */
int pipe_call_end(pipe_connection *connection, pipe_calling *call, int64_t deadline, shoal_cause *cause);

#endif
