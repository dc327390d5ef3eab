/* The near end of a pipe store: serves a store over a link.
 *
 * This file has the link, the requests that are under way, and the threads; what a request does is in
 * pipe_serve.c.  What surely is quick is done in the link's own thread; the rest by threads that are started as they
 * are needed.  A far end that asks and does not take its answers costs little: what is large waits while enough is
 * still to be sent, and the link bounds the rest. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/world.h"
#include "store/pipe/pipe_server_internal.h"

enum {
    REQUESTS_MOST = 2048, /* at once: an honest far end sends no more */
    DISCARDS_MOST = 500,  /* at once: a hub, which waits for none of them, does not count them; more are left undone */
    THREADS_NEAR = 4      /* of a store that is not far itself */
};
static const double SECONDS_MOST = 3600; /* that a request may have */
static const double LINGER = 0.5;        /* seconds that a last note has to be sent */

/* ---- tasks; the lock is held ------------------------------------------------------------------------------------- */

static pipe_task *find_task(const pipe_server *self, uint32_t stream)
{
    pipe_task *each = self->tasks;
    while (each && each->stream != stream)
        each = each->next;
    return each;
}

static void add_task(pipe_server *self, pipe_task *task)
{
    task->next = self->tasks;
    if (self->tasks)
        self->tasks->before = task;
    self->tasks = task;
    self->task_count++;
    self->discards += task->request.call == PIPE_DISCARD;
}

void pipe_task_remove(pipe_server *self, pipe_task *task)
{
    if (task->before)
        task->before->next = task->next;
    else
        self->tasks = task->next;
    if (task->next)
        task->next->before = task->before;
    self->task_count--;
    self->discards -= task->request.call == PIPE_DISCARD;
    self->bodies -= (int64_t)task->body_size;
    if (task->state == TASK_WAITS)
        self->wait_count--;
    base_free(&task->body);
    base_free(&task);
}

static void enqueue(pipe_task_queue *queue, pipe_task *task)
{
    task->queued = NULL;
    if (queue->last)
        queue->last->queued = task;
    else
        queue->first = task;
    queue->last = task;
}

static pipe_task *dequeue(pipe_task_queue *queue)
{
    pipe_task *task = queue->first;
    if (task) {
        queue->first = task->queued;
        if (!queue->first)
            queue->last = NULL;
    }
    return task;
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */

/* Whether so much waits to be sent that what brings more has to wait.  The lock is held. */
static bool is_bulky(const pipe_server *self, const pipe_task *task)
{
    pipe_call call = task->request.call;
    return (call == PIPE_GET && task->request.length > PIPE_LARGE) ||
           ((call == PIPE_GET || call == PIPE_LIST || call == PIPE_TAKE) && self->lent >= PIPE_LENT_MOST);
}

/* The next thing to do; the lock is held. */
static pipe_task *next_task(pipe_server *self)
{
    pipe_task *next = dequeue(&self->small);
    bool room = self->bulky_running + 1 < self->thread_most && self->lent < PIPE_LENT_MOST;
    if (!next && room && (next = dequeue(&self->bulky)))
        self->bulky_running++;
    self->queued -= next != NULL;
    return next;
}

static void run_tasks(void *context)
{
    pipe_server *self = context;
    pthread_mutex_lock(&self->lock);
    while (!self->stop) {
        pipe_task *task = next_task(self);
        if (!task) {
            self->idle++;
            pthread_cond_wait(&self->work, &self->lock);
            self->idle--;
            continue;
        }
        bool bulky = task->bulky;
        task->state = TASK_RUNS;
        pthread_mutex_unlock(&self->lock);
        pipe_serve(self, task);
        pthread_mutex_lock(&self->lock);
        if (bulky) {
            self->bulky_running--;
            if (self->bulky.first)
                pthread_cond_signal(&self->work);
        }
    }
    pthread_mutex_unlock(&self->lock);
}

/* Starts another thread when those that have nothing to do have been handed enough already. */
void pipe_task_delegate(pipe_server *self, pipe_task *task)
{
    int status = SHOAL_OK;
    pthread_mutex_lock(&self->lock);
    if (self->idle <= self->queued && self->thread_count < self->thread_most && !self->stop) {
        status = base_thread_start(&self->threads[self->thread_count], run_tasks, self);
        if (status == SHOAL_OK)
            self->thread_count++;
    }
    bool lost = status < 0 && self->thread_count == 0;
    if (!lost) {
        task->state = TASK_QUEUED;
        task->bulky = is_bulky(self, task);
        enqueue(task->bulky ? &self->bulky : &self->small, task);
        self->queued++;
        pthread_cond_signal(&self->work);
    }
    pthread_mutex_unlock(&self->lock);
    if (lost)
        pipe_refuse(self, task, status);
}

/* ---- what the link tells ----------------------------------------------------------------------------------------- */

/* A get that may have the same answer as one that was asked before waits for that, unless that one waits itself. */
static bool stay_behind(pipe_server *self, pipe_task *task)
{
    pthread_mutex_lock(&self->lock);
    const struct pipe_task *other = find_task(self, task->request.same_as);
    bool stays = other && other != task && other->request.call == PIPE_GET && other->request.same_as == 0 &&
                 (task->request.patient || !other->request.patient);
    if (stays)
        task->state = TASK_BEHIND;
    pthread_mutex_unlock(&self->lock);
    return stays;
}

static bool is_bulky_now(pipe_server *self, const pipe_task *task)
{
    pthread_mutex_lock(&self->lock);
    bool bulky = task->request.call != PIPE_GET ? is_bulky(self, task) : self->lent >= PIPE_LENT_MOST;
    pthread_mutex_unlock(&self->lock);
    return bulky;
}

void pipe_task_begin(pipe_server *self, pipe_task *task)
{
    pipe_call call = task->request.call;
    if (call == PIPE_GET && task->request.same_as != 0 && stay_behind(self, task))
        return;
    pipe_wait_prepare(self, task);
    if (task->request.data && !self->options.data)
        pipe_refuse(self, task, shoal_fail(SHOAL_ABSENT, "the job has no other store for its rows"));
    else if (call == PIPE_DESCRIBE)
        pipe_serve_describe(self, task);
    else if (call == PIPE_WAIT)
        pipe_wait_begin(self, task);
    else if (is_bulky_now(self, task) || !pipe_serve_quickly(self, task))
        pipe_task_delegate(self, task);
}

/* Room for a body; SHOAL_AGAIN when there are too many already, so that the caller retries. */
static int make_task_room(pipe_server *self, pipe_task *task, uint64_t size)
{
    bool has_body = task->request.call == PIPE_PUT || task->request.call == PIPE_PUSH;
    if (size > 0 && !has_body)
        return shoal_fail(SHOAL_INVALID, "the other end sent a request with an unexpected body");
    if (size > (uint64_t)self->bodies_most)
        return store_fail(self->options.store, task->request.name, SHOAL_MEMORY,
                          "%" PRIu64 " bytes are more than the machine that serves it can accept", size);
    pthread_mutex_lock(&self->lock);
    bool enough = self->bodies == 0 || self->bodies + (int64_t)size <= self->bodies_most;
    if (enough) {
        self->bodies += (int64_t)size;
        task->body_size = (size_t)size;
    }
    pthread_mutex_unlock(&self->lock);
    if (!enough)
        return store_fail(self->options.store, task->request.name, SHOAL_AGAIN,
                          "%" PRIu64 " bytes are more than the machine that serves it can accept just now", size);
    return has_body ? base_alloc_unset(&task->body, size ? (size_t)size : 1, 1, "a body") : SHOAL_OK;
}

static void on_head(void *context, uint32_t stream, const void *head, size_t size, const void *body, uint64_t body_size)
{
    pipe_server *self = context;
    pipe_task *task = NULL;
    int status = base_alloc(&task, 1, sizeof *task, "a request");
    if (status < 0 || !pipe_request_read(&task->request, head, size)) {
        pipe_link_fail(self->link, status < 0 ? shoal_error() : "the other end sent a malformed request");
        base_free(&task);
        return;
    }
    task->stream = stream;
    task->state = TASK_RUNS;
    task->deadline = base_time_after(base_now(), fmin(fmax(task->request.seconds, 0), SECONDS_MOST));
    pthread_mutex_lock(&self->lock);
    bool known = find_task(self, stream) != NULL, many = self->task_count >= REQUESTS_MOST;
    bool undone = task->request.call == PIPE_DISCARD && self->discards >= DISCARDS_MOST;
    bool fine = !known && !many && !undone;
    if (fine)
        add_task(self, task);
    pthread_mutex_unlock(&self->lock);
    if (known || many)
        pipe_link_fail(self->link,
                       known ? "the other end sent a request twice" : "the other end sent too many requests at once");
    if (!fine) {
        base_free(&task);
        return;
    }
    status = make_task_room(self, task, body_size);
    if (status == SHOAL_INVALID) {
        pipe_link_fail(self->link, shoal_error());
    } else if (status < 0) {
        pipe_refuse(self, task, status); /* what comes of its body is thrown away */
    } else if (body) {
        if (body_size > 0)
            memcpy(task->body, body, (size_t)body_size);
        pipe_task_begin(self, task);
    } else {
        pthread_mutex_lock(&self->lock);
        task->state = TASK_COMES;
        pthread_mutex_unlock(&self->lock);
    }
}

static bool on_body(void *context, uint32_t stream, const void *bytes, size_t size)
{
    pipe_server *self = context;
    bool whole = false, too_much = false;
    pthread_mutex_lock(&self->lock);
    pipe_task *task = find_task(self, stream);
    bool comes = task && task->state == TASK_COMES;
    if (comes) {
        too_much = size > task->body_size - task->body_have;
        if (!too_much) {
            memcpy(task->body + task->body_have, bytes, size);
            task->body_have += size;
            whole = task->body_have == task->body_size;
        }
    }
    if (whole)
        task->state = TASK_RUNS;
    pthread_mutex_unlock(&self->lock);
    if (too_much)
        pipe_link_fail(self->link, "the other end sent more of a body than it announced");
    if (whole)
        pipe_task_begin(self, task);
    return true;
}

static void unqueue(pipe_task_queue *queue, const pipe_task *task)
{
    pipe_task_queue rest = {0};
    for (struct pipe_task *each = queue->first, *next; each; each = next) {
        next = each->queued;
        if (each != task)
            enqueue(&rest, each);
    }
    *queue = rest;
}

/* Forgets a task that is not running; a running one answers nobody.  The lock is held. */
static void forget_task(pipe_server *self, pipe_task *task)
{
    if (task->state == TASK_RUNS) {
        task->cancelled = true;
        return;
    }
    if (task->state == TASK_QUEUED) {
        unqueue(task->bulky ? &self->bulky : &self->small, task);
        self->queued--;
    }
    pipe_task_remove(self, task);
}

static void on_cancelled(void *context, uint32_t stream)
{
    pipe_server *self = context;
    pthread_mutex_lock(&self->lock);
    pipe_task *task = find_task(self, stream);
    bool runs = task && task->state == TASK_RUNS;
    if (task)
        forget_task(self, task);
    pthread_mutex_unlock(&self->lock);
    (void)pipe_link_drop(self->link, stream);
    if (!runs) /* which does so itself */
        pipe_go_on_behind(self, stream);
}

static void on_closed(void *context, const char *why)
{
    pipe_server *self = context;
    pthread_mutex_lock(&self->lock);
    for (pipe_task *each = self->tasks, *next; each; each = next) {
        next = each->next;
        forget_task(self, each);
    }
    pthread_mutex_unlock(&self->lock);
    self->closed = true;
    if (self->options.events.closed)
        self->options.events.closed(self->options.events.context, why);
}

static void on_note(void *context, const char *text)
{
    pipe_server *self = context;
    if (self->options.events.heard)
        self->options.events.heard(self->options.events.context, text);
}

static const pipe_link_events server_events = {
    .note = on_note, .head = on_head, .body = on_body, .cancelled = on_cancelled, .closed = on_closed};

/* ---- beginning and end ------------------------------------------------------------------------------------------- */

int pipe_server_new(pipe_server **out_server, int in, int out, const pipe_server_options *options)
{
    pipe_server *self = NULL;
    *out_server = NULL;
    int status = base_alloc(&self, 1, sizeof *self, "the server of a pipe");
    if (status < 0) {
        close(in);
        if (out != in)
            close(out);
        return status;
    }
    self->options = *options;
    self->options.nonce = NULL; /* the link has its own copy */
    self->bodies_most = base_memory_total() / 4;
    self->thread_most = options->store->class->far ? PIPE_THREADS_MOST : THREADS_NEAR;
    pthread_mutex_init(&self->lock, NULL);
    pthread_cond_init(&self->work, NULL);
    pipe_link_options link = {.nonce = options->nonce, .events = &server_events, .context = self};
    status = pipe_link_new(&self->link, in, out, &link);
    if (status == SHOAL_OK)
        status = pipe_loop_new(&self->loop);
    if (status == SHOAL_OK)
        status = pipe_loop_add(self->loop, self->link);
    if (status == SHOAL_OK)
        status = pipe_watch_join(self);
    if (status == SHOAL_OK)
        status = pipe_loop_start(self->loop, NULL, NULL);
    if (status < 0) {
        self->closed = true;
        pipe_server_free(&self);
        return status;
    }
    *out_server = self;
    return SHOAL_OK;
}

bool pipe_server_greeted(const pipe_server *server)
{
    return pipe_link_greeted(server->link);
}

void pipe_server_junk(const pipe_server *server, char *out, size_t size)
{
    pipe_link_junk(server->link, out, size);
}

int pipe_server_tell(pipe_server *server, const char *note)
{
    return pipe_link_note(server->link, note);
}

pipe_figures pipe_server_figures(const pipe_server *server)
{
    return pipe_link_figures(server->link);
}

void pipe_server_free(pipe_server **server)
{
    pipe_server *self = *server;
    *server = NULL;
    if (!self)
        return;
    pthread_mutex_lock(&self->lock);
    self->stop = true;
    int threads = self->thread_count; /* no more are started */
    pthread_cond_broadcast(&self->work);
    pthread_mutex_unlock(&self->lock);
    for (int i = 0; i < threads; i++) /* they use the loop: it goes after them */
        base_thread_join(&self->threads[i]);
    pipe_watch_hide(self);
    pipe_loop_free(&self->loop, LINGER);
    pipe_watch_leave(self);
    pipe_link_free(&self->link);
    while (self->tasks)
        pipe_task_remove(self, self->tasks);
    if (!self->closed && self->options.events.closed)
        self->options.events.closed(self->options.events.context, "");
    pthread_cond_destroy(&self->work);
    pthread_mutex_destroy(&self->lock);
    base_free(&self);
}
