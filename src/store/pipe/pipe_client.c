/* A worker's connection to the hub of its machine.  See pipe_client.h. */
#include "pipe_client.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <pthread.h>

#include "base/memory.h"
#include "base/world.h"

/* A call's word: how far it is, and above that a count of nudges. */
enum { CALL_SENT, CALL_HEADED, CALL_DONE, CALL_STATE = 3, CALL_NUDGE = 4 };

struct pipe_connection {
    pipe_link *link;
    pipe_loop *loop;
    pthread_mutex_t lock;
    bool driven; /* one of those that wait serves the link for all of them */
    bool dead;
    char why[512];
    pipe_calling *calls; /* that are under way */
    uint32_t last_stream;
};

/* ---- calls; the lock is held ------------------------------------------------------------------------------------- */

static pipe_calling *find_call(const pipe_connection *self, uint32_t stream)
{
    pipe_calling *each = self->calls;
    while (each && each->stream != stream)
        each = each->next;
    return each;
}

static void leave_call(pipe_connection *self, pipe_calling *call)
{
    pipe_calling **place = &self->calls;
    while (*place != call)
        place = &(*place)->next;
    *place = call->next;
    call->waits = false;
}

static uint32_t state_of(pipe_calling *call)
{
    return atomic_load(&call->word) & CALL_STATE;
}

/* From here on a finished call belongs to its caller, who may free it at once: waking is the last use, of an address
 * only. */
static void advance_call(pipe_connection *self, pipe_calling *call, uint32_t state)
{
    bool sleeps = call->sleeps;
    if (state == CALL_DONE)
        leave_call(self, call);
    atomic_store(&call->word, (atomic_load(&call->word) & ~(uint32_t)CALL_STATE) | state);
    if (sleeps)
        base_wake_word(&call->word, INT_MAX);
}

/* Nobody serves the link: wake one of the sleepers to do so. */
static void nudge(pipe_connection *self)
{
    pipe_calling *each = self->calls;
    while (each && !each->sleeps)
        each = each->next;
    if (!each || self->driven)
        return;
    each->sleeps = false;
    atomic_fetch_add(&each->word, CALL_NUDGE);
    base_wake_word(&each->word, INT_MAX);
}

/* Where the body goes. */
static int make_call_room(pipe_calling *call, uint64_t size)
{
    int64_t left = call->answer.whole - call->request->offset, want = call->whole_length;
    uint64_t total = size;
    if (want && call->answer.status == SHOAL_OK)
        total = left <= 0 ? 0 : want > 0 && want < left ? (uint64_t)want : (uint64_t)left;
    if (size > total || (call->buffer && size > call->room))
        return shoal_fail(SHOAL_INVALID, "an answer is longer than requested");
    if (call->buffer || total == 0)
        return SHOAL_OK;
    return base_alloc_unset(&call->memory, (size_t)total, 1, "a blob");
}

static void fill_call_body(pipe_calling *call, const void *bytes, size_t size)
{
    unsigned char *to = call->buffer ? call->buffer : call->memory;
    if (size > 0)
        memcpy(to + call->have, bytes, size);
    call->have += size;
}

/* ---- what the link tells ----------------------------------------------------------------------------------------- */

static void on_head(void *context, uint32_t stream, const void *head, size_t size, const void *body, uint64_t body_size)
{
    pipe_connection *self = context;
    const char *wrong = NULL;
    pthread_mutex_lock(&self->lock);
    pipe_calling *call = find_call(self, stream);
    if (call && (state_of(call) != CALL_SENT || !pipe_answer_read(&call->answer, call->request->call, head, size))) {
        wrong = "received a malformed answer";
    } else if (call) {
        call->size = (size_t)body_size;
        if (make_call_room(call, body_size) < 0) {
            wrong = shoal_error();
        } else {
            if (body)
                fill_call_body(call, body, (size_t)body_size);
            advance_call(self, call, body ? CALL_DONE : CALL_HEADED);
        }
    }
    pthread_mutex_unlock(&self->lock);
    if (wrong)
        pipe_link_fail(self->link, wrong);
}

static bool on_body(void *context, uint32_t stream, const void *bytes, size_t size)
{
    pipe_connection *self = context;
    bool too_much = false;
    pthread_mutex_lock(&self->lock);
    pipe_calling *call = find_call(self, stream);
    if (call) {
        too_much = state_of(call) != CALL_HEADED || size > call->size - call->have;
        if (!too_much) {
            fill_call_body(call, bytes, size);
            if (call->have == call->size)
                advance_call(self, call, CALL_DONE);
        }
    }
    pthread_mutex_unlock(&self->lock);
    if (too_much)
        pipe_link_fail(self->link, "received more of an answer than announced");
    return true;
}

static void on_cancelled(void *context, uint32_t stream)
{
    (void)context;
    (void)stream; /* nobody asks a worker */
}

/* Ends a call that gets no answer. */
static void lose(pipe_connection *self, pipe_calling *call, const char *why)
{
    call->lost = true;
    call->surely = pipe_link_drop(self->link, call->stream);
    snprintf(call->why, sizeof call->why, "%s", why);
    advance_call(self, call, CALL_DONE);
}

static void on_closed(void *context, const char *why)
{
    pipe_connection *self = context;
    pthread_mutex_lock(&self->lock);
    self->dead = true;
    snprintf(self->why, sizeof self->why, "%s", why);
    while (self->calls)
        lose(self, self->calls, why);
    pthread_mutex_unlock(&self->lock);
}

static const pipe_link_events client_events = {
    .head = on_head, .body = on_body, .cancelled = on_cancelled, .closed = on_closed};

/* ---- connections ------------------------------------------------------------------------------------------------- */

static int connect_to(int *out, const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path)
        return shoal_fail(SHOAL_USAGE, "%s: a socket's path can't be longer than %zu bytes", path,
                          sizeof address.sun_path - 1);
    memcpy(address.sun_path, path, strlen(path) + 1);
    int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (descriptor < 0)
        return shoal_fail_errno(SHOAL_SYSTEM, errno, "%s", path);
    if (connect(descriptor, (struct sockaddr *)&address, sizeof address) < 0) {
        int error = errno;
        close(descriptor);
        return shoal_fail_errno(SHOAL_AGAIN, error, "%s: can't reach the agent of this machine", path);
    }
    *out = descriptor;
    return SHOAL_OK;
}

int pipe_connection_open(pipe_connection **out, const char *socket)
{
    pipe_connection *self = NULL;
    int descriptor = -1;
    const pipe_link_options options = {.first = true, .local = true, .events = &client_events};
    int status = connect_to(&descriptor, socket);
    if (status < 0)
        return status;
    status = base_alloc(&self, 1, sizeof *self, "a connection");
    if (status < 0) {
        close(descriptor);
        return status;
    }
    pthread_mutex_init(&self->lock, NULL);
    pipe_link_options with_context = options;
    with_context.context = self;
    status = pipe_link_new(&self->link, descriptor, descriptor, &with_context);
    if (status == SHOAL_OK)
        status = pipe_loop_new(&self->loop);
    if (status == SHOAL_OK)
        status = pipe_loop_add(self->loop, self->link);
    if (status < 0)
        pipe_connection_close(&self);
    *out = self;
    return status;
}

bool pipe_connection_lives(const pipe_connection *self)
{
    pthread_mutex_lock((pthread_mutex_t *)&self->lock);
    bool lives = !self->dead;
    pthread_mutex_unlock((pthread_mutex_t *)&self->lock);
    return lives;
}

void pipe_connection_close(pipe_connection **connection)
{
    pipe_connection *self = *connection;
    *connection = NULL;
    if (!self)
        return;
    if (self->link)
        pipe_link_flush(self->link);
    pipe_loop_free(&self->loop, 0);
    pipe_link_free(&self->link);
    pthread_mutex_destroy(&self->lock);
    base_free(&self);
}

/* ---- calling ----------------------------------------------------------------------------------------------------- */

int pipe_call_begin(pipe_connection *self, pipe_calling *call)
{
    pipe_message message = {0};
    base_writer head = {0};
    pipe_request_write(&head, call->request);
    int status = head.status;
    pthread_mutex_lock(&self->lock);
    if (status == SHOAL_OK && self->dead)
        status = shoal_fail(SHOAL_AGAIN, "%s", self->why);
    if (status == SHOAL_OK) {
        self->last_stream += self->last_stream == UINT32_MAX ? 2 : 1;
        message.stream = call->stream = self->last_stream;
        call->waits = true;
        call->next = self->calls;
        self->calls = call;
    }
    pthread_mutex_unlock(&self->lock);
    if (status == SHOAL_OK) {
        message.head = head.data;
        message.head_size = head.size;
        message.lazy = call->lazy;
        for (int i = 0; i < 2 && call->body; i++) {
            message.part[i].bytes = call->body->part[i].iov_base;
            message.part[i].size = call->body->part[i].iov_len;
            message.body_size += message.part[i].size;
        }
        status = pipe_link_send(self->link, &message);
        if (status < 0) { /* the link is dead, or there is no memory: nothing was sent */
            pthread_mutex_lock(&self->lock);
            if (call->waits)
                leave_call(self, call);
            pthread_mutex_unlock(&self->lock);
        }
    }
    base_writer_release(&head);
    return status;
}

/* Waits until a call has come that far.  A thread that waits while nobody serves the link serves it for all: the one
 * thread that is to be woken by an answer is the one that waits for it. */
static bool reached(pipe_connection *self, pipe_calling *call, uint32_t state, int64_t deadline)
{
    bool looked = false;         /* also when it is too late to wait: what came may not have been looked at */
    pipe_link_flush(self->link); /* the request itself may have been left for later */
    while (state_of(call) < state && (base_now() < deadline || !looked)) {
        looked = true;
        pthread_mutex_lock(&self->lock);
        uint32_t word = atomic_load(&call->word);
        bool drives = !self->driven && (word & CALL_STATE) < state;
        if (drives)
            self->driven = true;
        else
            call->sleeps = (word & CALL_STATE) < state;
        pthread_mutex_unlock(&self->lock);
        if ((word & CALL_STATE) >= state)
            break; /* it came just now, and nobody will change the word again */
        if (!drives) {
            base_wait_word(&call->word, word, deadline);
            continue;
        }
        do {
            pipe_loop_turn(self->loop, base_seconds_until(deadline));
        } while (state_of(call) < state && base_now() < deadline);
        pthread_mutex_lock(&self->lock);
        self->driven = false;
        pthread_mutex_unlock(&self->lock);
    }
    pthread_mutex_lock(&self->lock);
    call->sleeps = false;
    nudge(self);
    pthread_mutex_unlock(&self->lock);
    return state_of(call) >= state;
}

bool pipe_call_head(pipe_connection *self, pipe_calling *call, int64_t deadline)
{
    return reached(self, call, CALL_HEADED, deadline) && !call->lost;
}

bool pipe_call_done(pipe_connection *self, pipe_calling *call, int64_t until)
{
    return reached(self, call, CALL_DONE, until);
}

int pipe_call_post(pipe_connection *self, const pipe_request *request)
{
    base_writer head = {0};
    pipe_request_write(&head, request);
    pthread_mutex_lock(&self->lock);
    self->last_stream += self->last_stream == UINT32_MAX ? 2 : 1;
    uint32_t stream = self->last_stream;
    pthread_mutex_unlock(&self->lock);
    int status = head.status;
    if (status == SHOAL_OK)
        status = pipe_link_send(
            self->link, &(pipe_message){.stream = stream, .head = head.data, .head_size = head.size, .lazy = true});
    base_writer_release(&head);
    return status;
}

int pipe_call_end(pipe_connection *self, pipe_calling *call, int64_t deadline, shoal_cause *cause)
{
    bool late = false;
    if (!reached(self, call, CALL_DONE, deadline)) {
        pthread_mutex_lock(&self->lock);
        late = call->waits; /* or it came just now */
        if (late)
            lose(self, call, "no answer came in time");
        pthread_mutex_unlock(&self->lock);
        if (late)
            pipe_link_cancel(self->link, call->stream);
    }
    if (!call->lost)
        return SHOAL_OK;
    *cause = late ? SHOAL_CAUSE_TIMEOUT : SHOAL_CAUSE_CUT;
    return shoal_fail(call->surely ? SHOAL_AGAIN : SHOAL_UNKNOWN, "%s", call->why);
}
