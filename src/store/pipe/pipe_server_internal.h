/* The server's insides, shared by pipe_server.c (the link, the requests that are under way, threads), pipe_serve.c
 * (what each call does), pipe_reply.c (answers) and pipe_waits.c (those that wait for a change).
 *
 * A request is a *task* from its first byte until it is answered.  The thread that has set its state to TASK_RUNS, or
 * was handed it in that state, is the only one to touch it, and ends it by a reply; in every other state it belongs to
 * the lock, and may be gone when that is let go. */
#ifndef PIPE_SERVER_INTERNAL_H
#define PIPE_SERVER_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/world.h"
#include "store/pipe/pipe_link.h"
#include "store/pipe/pipe_wire.h"

enum {
    PIPE_THREADS_MOST = 16,
    PIPE_RECENT = 256,                 /* answers whose versions are remembered */
    PIPE_LENT_MOST = 32 * 1024 * 1024, /* bytes of answers that wait to be sent, before more are looked for */
    PIPE_LARGE = 64 * 1024,            /* a get of more than this waits until there is room */
    PIPE_FULL_NAME = PIPE_NAME_MOST + 512
};

typedef enum pipe_task_state {
    TASK_COMES,  /* its body does */
    TASK_QUEUED, /* for a thread */
    TASK_RUNS,
    TASK_WAITS, /* for a change */
    TASK_BEHIND /* a get that may be the same as another one, which is not yet answered */
} pipe_task_state;

/* A request that is not yet answered. */
typedef struct pipe_task {
    struct pipe_task *next, *before; /* among all */
    struct pipe_task *queued;        /* after it in its queue */
    pipe_task_state state;
    bool bulky;     /* was queued until there is room for its answer */
    bool cancelled; /* while it ran */
    bool looked;    /* whether the far end has it already */
    uint32_t seen;  /* of a patient get: before it looked for the key */
    uint32_t stream;
    int64_t deadline;
    unsigned char *body;
    size_t body_size, body_have;
    pipe_request request;
} pipe_task;

typedef struct pipe_task_queue {
    pipe_task *first, *last;
} pipe_task_queue;

struct pipe_server {
    pipe_server_options options;
    pipe_link *link;
    pipe_loop *loop;
    bool closed; /* the event was sent; of the loop's thread, and of free after it */
    int64_t bodies_most;

    pthread_mutex_t lock; /* taken after the link's lock, never before it */
    pthread_cond_t work;
    bool stop;
    pipe_task *tasks;
    int task_count, discards;
    pipe_task_queue small, bulky;
    int queued, bulky_running;
    int64_t lent, bodies; /* bytes of answers that are not yet sent, and of the bodies of requests */
    base_thread *threads[PIPE_THREADS_MOST];
    int thread_count, thread_most, idle;
    struct {
        uint32_t stream;
        shoal_etag etag;
    } recent[PIPE_RECENT]; /* what answers were of, by stream */

    struct pipe_watch *watch; /* that tells of changes of the store; NULL when it can't */
    pipe_server *watched;     /* the next one of the same watch */
    int wait_count;
};

/* ---- requests that are under way (pipe_server.c) ----------------------------------------------------------------- */

/* All of a request is here, or it is to be looked at again: serves it now, or hands it on. */
void pipe_task_begin(pipe_server *self, pipe_task *task);
/* Hands a task to the threads. */
void pipe_task_delegate(pipe_server *self, pipe_task *task);
/* Takes it out and frees it.  The lock is held. */
void pipe_task_remove(pipe_server *self, pipe_task *task);

/* ---- calls (pipe_serve.c) ---------------------------------------------------------------------------------------- */

/* Makes the attempt and answers. */
void pipe_serve(pipe_server *self, pipe_task *task);
/* Does what takes so little that the link's own thread may: nothing that waits for a disk's writes, other processes or
 * other machines.  False: it is still to be done. */
bool pipe_serve_quickly(pipe_server *self, pipe_task *task);
void pipe_serve_describe(pipe_server *self, pipe_task *task);
/* The name that the store knows it by.  SHOAL_DENIED for what is none of the far end's business. */
int pipe_full_name(char full[PIPE_FULL_NAME], const pipe_server *self, const pipe_task *task, bool whole);

/* ---- answers (pipe_reply.c); each ends the task ------------------------------------------------------------------ */

/* Takes `bytes`, and what `blob`, which may be NULL, holds.  A failure's sentence is the thread's last one. */
void pipe_reply(pipe_server *self, pipe_task *task, pipe_answer *answer, shoal_blob *blob, void *bytes, size_t size);
void pipe_reply_short(pipe_server *self, pipe_task *task, pipe_answer *answer);
/* A failure that the store was not even asked about. */
void pipe_refuse(pipe_server *self, pipe_task *task, int status);
/* Whether the far end has this version: 1 by its own account, 2 since an answer brought or brings it. */
uint8_t pipe_has_already(pipe_server *self, const pipe_request *request, const shoal_etag *etag);
/* The answer of this stream has gone out, or never will: those that waited for it, to be told "the same", go on. */
void pipe_go_on_behind(pipe_server *self, uint32_t stream);

/* ---- waiting (pipe_waits.c) -------------------------------------------------------------------------------------- */

/* Joins those that are told of changes of the same store. */
int pipe_watch_join(pipe_server *self);
/* From now on no threads but its own touch the server. */
void pipe_watch_hide(pipe_server *self);
/* And when these have ended, too, it leaves. */
void pipe_watch_leave(pipe_server *self);
/* A request of this server has changed the store: the calling thread answers everyone who waits for that, at any server
 * of the same store. */
void pipe_watch_changed(pipe_server *self);
/* A PIPE_WAIT. */
void pipe_wait_begin(pipe_server *self, pipe_task *task);
/* Notes how things stand before a key is looked for, if it is to be waited for. */
void pipe_wait_prepare(pipe_server *self, pipe_task *task);
/* Its key is not there.  True: it waits for it, and may be gone already; false: it is to be answered. */
bool pipe_wait_park(pipe_server *self, pipe_task *task);

#endif
