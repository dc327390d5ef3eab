/* The thread that serves links: waits until one can be read or written, or its time has come.  See pipe_link.h. */
#include "pipe_link_internal.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/world.h"

struct pipe_loop {
    int wake; /* an eventfd */
    _Atomic bool waking;
    _Atomic bool stop;
    double linger; /* set before stop */
    base_thread *thread;
    _Atomic(pthread_t) self;
    _Atomic bool runs;
    pipe_link **links;
    size_t count, room;
    int watched;
    void (*ready)(void *context);
    void *ready_context;
    void (*after)(void *context);
    void *after_context;
    double next;          /* seconds until a link has something to do */
    struct pollfd *polls; /* 2 + 2 * room */
};

enum { FIRST_ROOM = 8 };

int pipe_loop_new(pipe_loop **out)
{
    pipe_loop *self = NULL;
    int status = base_alloc(&self, 1, sizeof *self, "a loop");
    if (status < 0)
        return status;
    self->watched = -1;
    self->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (self->wake < 0)
        status = shoal_fail_errno(SHOAL_SYSTEM, errno, "can't make an eventfd");
    if (status == SHOAL_OK)
        status = base_alloc(&self->polls, 2, sizeof *self->polls, "a loop");
    if (status < 0)
        pipe_loop_free(&self, 0);
    *out = self;
    return status;
}

int pipe_loop_add(pipe_loop *self, pipe_link *link)
{
    int status = SHOAL_OK;
    if (self->count == self->room) {
        size_t room = self->room ? 2 * self->room : FIRST_ROOM;
        status = base_grow(&self->links, self->room, room, sizeof *self->links, "a loop");
        if (status == SHOAL_OK)
            status = base_grow(&self->polls, 2, 2 + 2 * room, sizeof *self->polls, "a loop");
        if (status == SHOAL_OK)
            self->room = room;
    }
    if (status == SHOAL_OK) {
        link->loop = self;
        self->links[self->count++] = link;
    }
    return status;
}

void pipe_loop_watch(pipe_loop *self, int descriptor, void (*ready)(void *context), void *context)
{
    self->watched = descriptor;
    self->ready = ready;
    self->ready_context = context;
}

void pipe_loop_wake(pipe_loop *self)
{
    uint64_t one = 1;
    if (self && !pipe_loop_here(self) && !atomic_exchange(&self->waking, true) &&
        write(self->wake, &one, sizeof one) < 0)
        atomic_store(&self->waking, false);
}

bool pipe_loop_here(const pipe_loop *self)
{
    return self && atomic_load_explicit(&self->runs, memory_order_acquire) &&
           pthread_equal(atomic_load(&self->self), pthread_self());
}

/* ---- a turn ------------------------------------------------------------------------------------------------------ */

static bool wants_to_write(pipe_link *link)
{
    pthread_mutex_lock(&link->lock);
    bool blocked = link->blocked && !link->failed;
    pthread_mutex_unlock(&link->lock);
    return blocked;
}

/* Fills polls: the eventfd, what is watched, and two for each link. */
static void gather(pipe_loop *self)
{
    self->polls[0] = (struct pollfd){.fd = self->wake, .events = POLLIN};
    self->polls[1] = (struct pollfd){.fd = self->watched, .events = POLLIN};
    for (size_t i = 0; i < self->count; i++) {
        pipe_link *link = self->links[i];
        self->polls[2 + 2 * i] = (struct pollfd){.fd = link->in, .events = POLLIN};
        self->polls[3 + 2 * i] = (struct pollfd){.fd = wants_to_write(link) ? link->out : -1, .events = POLLOUT};
    }
}

static void unblock(pipe_link *link)
{
    pthread_mutex_lock(&link->lock);
    link->blocked = false;
    link->dirty = true;
    pthread_mutex_unlock(&link->lock);
}

/* Flushes all, which may make others ready, and forgets those that are closed. */
static void settle_links(pipe_loop *self)
{
    for (size_t i = 0; i < self->count; i++)
        pipe_link_flush(self->links[i]);
    for (size_t i = 0; i < self->count;) {
        if (pipe_link_settle(self->links[i]))
            self->links[i] = self->links[--self->count];
        else
            i++;
    }
}

static void serve_links(pipe_loop *self, double *next)
{
    size_t count = self->count; /* those that are added meanwhile were not polled */
    uint64_t ignored;
    if (self->polls[0].revents) {
        while (read(self->wake, &ignored, sizeof ignored) > 0)
            ;
        atomic_store(&self->waking, false); /* after it: a thread that wakes us from here on writes again */
    }
    *next = 1;
    for (size_t i = 0; i < count; i++) {
        bool readable = self->polls[2 + 2 * i].revents;
        if (self->polls[3 + 2 * i].revents)
            unblock(self->links[i]);
        if (readable)
            pipe_link_read(self->links[i]);
        double due = pipe_link_tick(self->links[i], readable);
        *next = due < *next ? due : *next;
    }
    if (self->polls[1].revents)
        self->ready(self->ready_context);
}

/* Gives what is short some time to be written. */
static void linger(pipe_link *link, int64_t until)
{
    for (;;) {
        pthread_mutex_lock(&link->lock);
        link->blocked = false;
        pipe_lane_flush(link);
        bool done = link->failed || link->gone || (!link->first && link->rest_at == link->rest_size);
        pthread_mutex_unlock(&link->lock);
        double left = base_seconds_until(until);
        struct pollfd writable = {.fd = link->out, .events = POLLOUT};
        if (done || left <= 0 || poll(&writable, 1, (int)(left * 1e3) + 1) <= 0)
            return;
    }
}

void pipe_loop_turn(pipe_loop *self, double seconds)
{
    double wait = seconds < self->next ? seconds : self->next;
    atomic_store(&self->self, pthread_self());
    atomic_store_explicit(&self->runs, true, memory_order_release);
    settle_links(self);
    if (self->after)
        self->after(self->after_context);
    gather(self);
    if (poll(self->polls, (nfds_t)(2 + 2 * self->count), wait > 0 ? (int)(wait * 1e3) + 1 : 0) >= 0)
        serve_links(self, &self->next);
    settle_links(self);
    atomic_store_explicit(&self->runs, false, memory_order_release);
}

static void run_loop(void *context)
{
    pipe_loop *self = context;
    while (!atomic_load(&self->stop))
        pipe_loop_turn(self, 1);
    int64_t until = base_time_after(base_now(), self->linger);
    for (size_t i = 0; i < self->count; i++)
        linger(self->links[i], until);
}

int pipe_loop_start(pipe_loop *self, void (*after)(void *context), void *context)
{
    self->after = after;
    self->after_context = context;
    return base_thread_start(&self->thread, run_loop, self);
}

void pipe_loop_free(pipe_loop **loop, double seconds)
{
    pipe_loop *self = *loop;
    if (!self)
        return;
    self->linger = seconds;
    atomic_store(&self->stop, true);
    pipe_loop_wake(self);
    base_thread_join(&self->thread);
    *loop = NULL; /* its events may have used it until now */
    if (self->wake >= 0)
        close(self->wake);
    base_free(&self->links);
    base_free(&self->polls);
    base_free(&self);
}
