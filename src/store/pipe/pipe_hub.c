/* The far end of a pipe store: passes the requests of a machine's workers on to the server, and its answers back.
 *
 * Bytes that several workers get are sent over the link once.  The hub keeps recent bodies of gets by key and range,
 * and says with each get which version it has, or which answer under way will bring one; the server looks at the
 * present version every time, and says "the same" instead of sending it again. So a worker never sees an older version
 * than it would without the hub.
 *
 * All of it happens in one thread, that of the loop: there is nothing to lock. What was passed on is counted: bodies
 * that workers put are taken in no faster than the link takes them, so they cost no more memory than their windows. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/world.h"
#include "store/pipe/pipe_link.h"
#include "store/pipe/pipe_wire.h"

enum { ASK_BUCKETS = 256, BODY_BUCKETS = 256, ASKS_MOST = 1500, SHARED_LEAST = 64 * 1024 };
static const int64_t CACHE_MOST = 256 << 20;
static const double LINGER = 0.5;

/* A worker's connection. */
typedef struct worker {
    struct worker *next;
    pipe_hub *hub;
    pipe_link *link;
    bool closed;
    int references; /* of those who may still use it: bytes under way, readers */
    struct ask *asks;
} worker;

/* The readers of a body while it arrives. */
typedef struct reader {
    struct reader *next;
    worker *worker;
    uint32_t stream;
} reader;

/* The bytes that a get brings. */
typedef struct body {
    struct body *chain;         /* in its bucket */
    struct body *newer, *older; /* among those that are kept */
    int references;
    bool indexed; /* offered to those who ask for the same */
    bool kept;    /* whole, and counted */
    bool data_store;
    char *key;
    int64_t offset, length;
    uint32_t stream; /* of the answer that brings it */
    shoal_etag etag; /* "" before the answer's head is here */
    size_t size, have;
    unsigned char *bytes;
    reader *readers;
} body;

/* A request that was passed on and is not yet wholly answered. */
typedef struct ask {
    struct ask *chain; /* in its bucket */
    struct ask *next;  /* of the same worker */
    worker *worker;    /* NULL: gone, or no longer interested */
    uint32_t stream, up;
    pipe_call call;
    uint64_t to_send; /* of its body, yet to come from the worker */
    uint64_t to_come; /* of its answer's body */
    bool answered;
    bool shares;   /* a get that is looked after here */
    bool patient;  /* a get that waits for its key */
    body *offered; /* what the server was told of */
    body *fills;   /* what its answer brings */
} ask;

struct pipe_hub {
    pipe_events events;
    char *socket;
    ino_t socket_number; /* of the file that the socket is */
    int listener;
    pipe_link *up;
    bool up_closed;
    pipe_loop *loop;
    worker *workers;
    uint32_t last_stream;
    ask *asks[ASK_BUCKETS];
    int ask_count;
    body *bodies[BODY_BUCKETS];
    body *newest, *oldest;
    int64_t kept, cache_most;
    _Atomic int64_t shared;
};

/* Removes the socket's file, unless another has taken its place. */
static void remove_socket(const pipe_hub *self)
{
    struct stat info;
    if (self->socket && stat(self->socket, &info) == 0 && info.st_ino == self->socket_number)
        unlink(self->socket);
}

/* ---- bodies ------------------------------------------------------------------------------------------------------ */

static body **bucket_of(pipe_hub *self, bool data_store, const char *key, int64_t offset, int64_t length)
{
    uint64_t hash = 0xcbf29ce484222325u ^ (uint64_t)offset ^ (uint64_t)length << 1 ^ (uint64_t)data_store;
    for (; *key; key++)
        hash = (hash ^ (unsigned char)*key) * 0x100000001b3u;
    return &self->bodies[(hash ^ hash >> 32) % BODY_BUCKETS];
}

static void body_release(body *body)
{
    if (--body->references > 0)
        return;
    base_free(&body->key);
    base_free(&body->bytes);
    base_free(&body);
}

static void release_sent(void *owner, size_t size)
{
    (void)size;
    body_release(owner);
}

static body *find_body(pipe_hub *self, const pipe_request *request)
{
    body *each = *bucket_of(self, request->data, request->name, request->offset, request->length);
    while (each && (each->data_store != request->data || each->offset != request->offset ||
                    each->length != request->length || strcmp(each->key, request->name) != 0))
        each = each->chain;
    return each;
}

/* Takes it out of the index and of what is kept. */
static void unindex(pipe_hub *self, body *old)
{
    if (!old->indexed)
        return;
    body **place = bucket_of(self, old->data_store, old->key, old->offset, old->length);
    while (*place != old)
        place = &(*place)->chain;
    *place = old->chain;
    old->indexed = false;
    if (old->kept) {
        *(old->newer ? &old->newer->older : &self->newest) = old->older;
        *(old->older ? &old->older->newer : &self->oldest) = old->newer;
        self->kept -= (int64_t)old->size;
        old->kept = false;
    }
    body_release(old);
}

static int new_body(body **out, pipe_hub *self, const pipe_request *request, uint32_t stream)
{
    body *fresh = NULL;
    int status = base_alloc(&fresh, 1, sizeof *fresh, "bytes of a get");
    if (status == SHOAL_OK)
        status = base_copy_text(&fresh->key, request->name);
    if (status < 0) {
        base_free(&fresh);
        return status;
    }
    body *old = find_body(self, request);
    if (old)
        unindex(self, old);
    fresh->references = 2; /* the index's, and the caller's */
    fresh->indexed = true;
    fresh->data_store = request->data;
    fresh->offset = request->offset;
    fresh->length = request->length;
    fresh->stream = stream;
    body **bucket = bucket_of(self, request->data, request->name, request->offset, request->length);
    fresh->chain = *bucket;
    *bucket = fresh;
    *out = fresh;
    return SHOAL_OK;
}

/* It is complete: it stays while there is room. */
static void keep_body(pipe_hub *self, body *whole)
{
    if (!whole->indexed)
        return;
    whole->kept = true;
    whole->newer = NULL;
    whole->older = self->newest;
    *(self->newest ? &self->newest->newer : &self->oldest) = whole;
    self->newest = whole;
    self->kept += (int64_t)whole->size;
    while (self->kept > self->cache_most && self->oldest)
        unindex(self, self->oldest);
}

static void touch_body(pipe_hub *self, body *used)
{
    if (!used->kept || self->newest == used)
        return;
    used->newer->older = used->older;
    *(used->older ? &used->older->newer : &self->oldest) = used->newer;
    used->older = self->newest;
    used->newer = NULL;
    self->newest->newer = used;
    self->newest = used;
}

/* ---- workers ----------------------------------------------------------------------------------------------------- */

/* Bytes on their way through. */
typedef struct chunk {
    worker *from; /* who may send more when these are gone; NULL: nobody waits for
                   that */
    unsigned char bytes[];
} chunk;

static void chunk_sent(void *owner, size_t size)
{
    chunk *chunk = owner;
    if (chunk->from) {
        if (!chunk->from->closed)
            pipe_link_taken(chunk->from->link, size);
        chunk->from->references--;
    }
    base_free(&chunk);
}

static int new_chunk(chunk **out, worker *from, const void *bytes, size_t size)
{
    int status = base_alloc_unset(out, 1, sizeof **out + size, "bytes on their way");
    if (status < 0)
        return status;
    (*out)->from = from;
    if (from)
        from->references++;
    memcpy((*out)->bytes, bytes, size);
    return SHOAL_OK;
}

/* What came of a body since `from` goes to one reader. */
static void pass_on_body(body *body, worker *worker, uint32_t stream, size_t from)
{
    if (worker->closed || from == body->have)
        return;
    body->references++;
    (void)pipe_link_append(worker->link, stream, body->bytes + from, body->have - from, release_sent, body);
}

static void drop_readers(body *body)
{
    while (body->readers) {
        reader *each = body->readers;
        body->readers = each->next;
        each->worker->references--;
        base_free(&each);
    }
}

/* This worker's stream gets the body: what is here at once, the rest as it comes. */
static void add_reader(body *body, worker *worker, uint32_t stream)
{
    reader *fresh = NULL;
    pass_on_body(body, worker, stream, 0);
    if (body->have == body->size)
        return;
    if (base_alloc(&fresh, 1, sizeof *fresh, "a reader") < 0) {
        pipe_link_fail(worker->link, shoal_error());
        return;
    }
    *fresh = (reader){.next = body->readers, .worker = worker, .stream = stream};
    worker->references++;
    body->readers = fresh;
}

/* ---- asks -------------------------------------------------------------------------------------------------------- */

static ask *find_ask(pipe_hub *self, uint32_t up)
{
    ask *each = self->asks[up % ASK_BUCKETS];
    while (each && each->up != up)
        each = each->chain;
    return each;
}

static ask *find_workers_ask(const worker *worker, uint32_t stream)
{
    ask *each = worker->asks;
    while (each && each->stream != stream)
        each = each->next;
    return each;
}

static void leave_worker(ask *ask)
{
    if (!ask->worker)
        return;
    struct ask **place = &ask->worker->asks;
    while (*place != ask)
        place = &(*place)->next;
    *place = ask->next;
    ask->worker = NULL;
}

/* Whether nobody would miss it: a get that waits at the server for its key, and that no other refers to. */
static bool is_forsaken(const ask *ask)
{
    enum { ITS_OWN = 2 }; /* references: the index's and the ask's */
    return !ask->worker && ask->patient && !ask->answered && (!ask->fills || ask->fills->references == ITS_OWN);
}

static void end_ask(pipe_hub *self, ask *ask);

static void cancel_ask(pipe_hub *self, ask *ask)
{
    (void)pipe_link_drop(self->up, ask->up);
    pipe_link_cancel(self->up, ask->up);
    end_ask(self, ask);
}

/* Nothing refers to what was offered any more on behalf of an ask.  That may have been the last one that kept a get
 * waiting. */
static void release_offered(pipe_hub *self, body *offered)
{
    ask *brings = offered->etag.text[0] ? NULL : find_ask(self, offered->stream);
    body_release(offered);
    if (brings && !self->up_closed && is_forsaken(brings))
        cancel_ask(self, brings);
}

static void end_ask(pipe_hub *self, ask *ask)
{
    body *offered = ask->offered;
    struct ask **place = &self->asks[ask->up % ASK_BUCKETS];
    while (*place != ask)
        place = &(*place)->chain;
    *place = ask->chain;
    leave_worker(ask);
    if (ask->fills && ask->fills->have < ask->fills->size) { /* it will never be whole */
        unindex(self, ask->fills);
        drop_readers(ask->fills);
    } else if (ask->fills && ask->fills->size == 0) {
        unindex(self, ask->fills);
    }
    if (ask->fills)
        body_release(ask->fills);
    base_free(&ask);
    self->ask_count--;
    if (offered)
        release_offered(self, offered);
}

/* The worker is no longer interested.  A get that others may share goes on, unless it does nothing but wait. */
static void lose_interest(pipe_hub *self, ask *ask)
{
    leave_worker(ask);
    if (!ask->shares || is_forsaken(ask))
        cancel_ask(self, ask);
}

static int new_ask(ask **out, pipe_hub *self, worker *worker, uint32_t stream, pipe_call call)
{
    ask *fresh = NULL;
    int status = base_alloc(&fresh, 1, sizeof *fresh, "a request");
    if (status < 0)
        return status;
    self->last_stream += self->last_stream == UINT32_MAX ? 2 : 1; /* 0 stands for none */
    *fresh = (ask){.worker = worker, .next = worker->asks, .stream = stream, .up = self->last_stream, .call = call};
    worker->asks = fresh;
    fresh->chain = self->asks[fresh->up % ASK_BUCKETS];
    self->asks[fresh->up % ASK_BUCKETS] = fresh;
    self->ask_count++;
    *out = fresh;
    return SHOAL_OK;
}

/* A failure that is told to the worker from here. */
static void refuse_request(worker *worker, uint32_t stream, pipe_call call, int status)
{
    pipe_answer answer = {.status = status, .cause = SHOAL_CAUSE_BUSY};
    base_writer head = {0};
    snprintf(answer.message, sizeof answer.message, "%s", shoal_error());
    pipe_answer_write(&head, call, &answer);
    if (head.status == SHOAL_OK)
        (void)pipe_link_send(worker->link,
                             &(pipe_message){.stream = stream, .head = head.data, .head_size = head.size});
    base_writer_release(&head);
}

/* ---- from workers ------------------------------------------------------------------------------------------------ */

/* A get that may be shared: says what is here already, or makes a place for what will come. */
static int offer(pipe_hub *self, ask *ask, pipe_request *request)
{
    body *known = find_body(self, request);
    ask->shares = true;
    ask->patient = request->patient;
    request->known = (shoal_etag){""};
    request->same_as = 0;
    if (!known)
        return new_body(&ask->fills, self, request, ask->up);
    known->references++;
    ask->offered = known;
    if (known->etag.text[0])
        request->known = known->etag;
    else
        request->same_as = known->stream;
    touch_body(self, known);
    return SHOAL_OK;
}

static void worker_head(void *context, uint32_t stream, const void *head, size_t size, const void *body,
                        uint64_t body_size)
{
    worker *worker = context;
    pipe_hub *self = worker->hub;
    pipe_request request;
    base_writer rewritten = {0};
    ask *ask = NULL;
    if (!pipe_request_read(&request, head, size) || find_workers_ask(worker, stream)) {
        pipe_link_fail(worker->link, "a worker sent a malformed request");
        return;
    }
    if (self->ask_count >= ASKS_MOST) {
        refuse_request(worker, stream, request.call,
                       shoal_fail(SHOAL_AGAIN, "%s: too many requests at once", request.name));
        return;
    }
    if (request.call == PIPE_DISCARD && body_size == 0) { /* nobody waits for an answer */
        self->last_stream += self->last_stream == UINT32_MAX ? 2 : 1;
        (void)pipe_link_send(self->up, &(pipe_message){.stream = self->last_stream, .head = head, .head_size = size});
        return;
    }
    int status = new_ask(&ask, self, worker, stream, request.call);
    pipe_message message = {.head = head, .head_size = size, .body_size = body_size};
    if (status == SHOAL_OK && request.call == PIPE_GET && request.length >= SHARED_LEAST) {
        status = offer(self, ask, &request);
        if (status == SHOAL_OK) {
            pipe_request_write(&rewritten, &request);
            status = rewritten.status;
        }
        message.head = rewritten.data;
        message.head_size = rewritten.size;
    }
    if (status == SHOAL_OK) {
        message.stream = ask->up;
        message.part[0].bytes = body;
        message.part[0].size = body ? (size_t)body_size : 0;
        ask->to_send = body ? 0 : body_size;
        status = pipe_link_send(self->up, &message); /* copies a body that comes with its head */
    }
    if (status < 0)
        pipe_link_fail(worker->link, shoal_error());
    base_writer_release(&rewritten);
}

static bool worker_body(void *context, uint32_t stream, const void *bytes, size_t size)
{
    worker *worker = context;
    ask *ask = find_workers_ask(worker, stream);
    chunk *chunk = NULL;
    if (!ask)
        return true; /* of a request that was refused */
    if (size > ask->to_send || new_chunk(&chunk, worker, bytes, size) < 0) {
        pipe_link_fail(worker->link,
                       size > ask->to_send ? "a worker sent more of a body than it announced" : shoal_error());
        return true;
    }
    ask->to_send -= size;
    (void)pipe_link_append(worker->hub->up, ask->up, chunk->bytes, size, chunk_sent, chunk);
    return false;
}

static void worker_cancelled(void *context, uint32_t stream)
{
    worker *worker = context;
    ask *ask = find_workers_ask(worker, stream);
    if (ask)
        lose_interest(worker->hub, ask);
    (void)pipe_link_drop(worker->link, stream);
}

static void worker_closed(void *context, const char *why)
{
    worker *worker = context;
    (void)why;
    worker->closed = true;
    while (worker->asks)
        lose_interest(worker->hub, worker->asks);
}

static const pipe_link_events worker_events = {
    .head = worker_head, .body = worker_body, .cancelled = worker_cancelled, .closed = worker_closed};

/* ---- from the server --------------------------------------------------------------------------------------------- */

/* Sends the head of an answer to the worker that asked, if it still wants it; all of its body, or the length of what
 * follows. */
static void answer_worker(ask *ask, const void *head, size_t size, const void *body, uint64_t body_size)
{
    pipe_message message = {.stream = ask->stream, .head = head, .head_size = size, .body_size = body_size};
    message.part[0].bytes = body;
    message.part[0].size = body ? (size_t)body_size : 0;
    if (ask->worker && !ask->worker->closed)
        (void)pipe_link_send(ask->worker->link, &message);
}

/* "The same": the answer gets the body that is here, or comes. */
static void answer_same(pipe_hub *self, ask *ask, pipe_answer *answer)
{
    body *body = ask->offered;
    base_writer head = {0};
    if (!body || strcmp(body->etag.text, answer->etag.text) != 0) {
        pipe_link_fail(self->up, "the other end refers to bytes it did not send");
        return;
    }
    answer->same = 0;
    pipe_answer_write(&head, PIPE_GET, answer);
    if (head.status == SHOAL_OK && ask->worker) {
        answer_worker(ask, head.data, head.size, NULL, body->size);
        add_reader(body, ask->worker, ask->stream);
        atomic_fetch_add(&self->shared, (int64_t)body->size);
    }
    base_writer_release(&head);
    end_ask(self, ask);
}

/* Fresh bytes follow, which others may get, too. */
static void begin_fill(pipe_hub *self, ask *ask, const pipe_answer *answer, const void *head, size_t size,
                       uint64_t body_size)
{
    int status = SHOAL_OK;
    body *body = ask->fills;
    if (!body) { /* another version than the one that was offered */
        const struct body *old = ask->offered;
        pipe_request request = {.data = old->data_store, .offset = old->offset, .length = old->length};
        snprintf(request.name, sizeof request.name, "%s", old->key);
        status = new_body(&ask->fills, self, &request, ask->up);
        body = ask->fills;
    }
    if (status == SHOAL_OK && body_size > (uint64_t)body->length)
        status = shoal_fail(SHOAL_INVALID, "the other end sent more than was requested");
    if (status == SHOAL_OK)
        status = base_alloc_unset(&body->bytes, (size_t)body_size, 1, "bytes of a get");
    if (status < 0) {
        pipe_link_fail(self->up, shoal_error());
        return;
    }
    body->etag = answer->etag;
    body->size = (size_t)body_size;
    ask->to_come = body_size;
    answer_worker(ask, head, size, NULL, body_size);
    if (ask->worker)
        add_reader(body, ask->worker, ask->stream);
}

static void up_head(void *context, uint32_t stream, const void *head, size_t size, const void *body, uint64_t body_size)
{
    pipe_hub *self = context;
    ask *ask = find_ask(self, stream);
    pipe_answer answer;
    if (!ask)
        return; /* nobody waits for it any more */
    if (ask->answered || (ask->shares && !pipe_answer_read(&answer, PIPE_GET, head, size))) {
        pipe_link_fail(self->up, "the other end sent a malformed answer");
        return;
    }
    ask->answered = true;
    if (ask->shares && answer.status == SHOAL_OK && answer.same) {
        answer_same(self, ask, &answer);
    } else if (ask->shares && answer.status == SHOAL_OK && !body) {
        begin_fill(self, ask, &answer, head, size, body_size);
    } else {
        answer_worker(ask, head, size, body, body_size);
        ask->to_come = body ? 0 : body_size;
        if (ask->to_come == 0)
            end_ask(self, ask);
    }
}

static void fill_on(pipe_hub *self, ask *ask, const void *bytes, size_t size)
{
    body *body = ask->fills;
    size_t from = body->have;
    memcpy(body->bytes + from, bytes, size);
    body->have += size;
    for (const reader *each = body->readers; each; each = each->next)
        pass_on_body(body, each->worker, each->stream, from);
    if (body->have == body->size) {
        drop_readers(body);
        keep_body(self, body);
    }
}

static bool up_body(void *context, uint32_t stream, const void *bytes, size_t size)
{
    pipe_hub *self = context;
    ask *ask = find_ask(self, stream);
    chunk *chunk = NULL;
    if (!ask)
        return true;
    if (size > ask->to_come) {
        pipe_link_fail(self->up, "the other end sent more of a body than it announced");
        return true;
    }
    ask->to_come -= size;
    if (ask->fills) {
        fill_on(self, ask, bytes, size);
    } else if (ask->worker && !ask->worker->closed) {
        if (new_chunk(&chunk, NULL, bytes, size) == SHOAL_OK)
            (void)pipe_link_append(ask->worker->link, ask->stream, chunk->bytes, size, chunk_sent, chunk);
        else
            pipe_link_fail(ask->worker->link, shoal_error());
    }
    if (ask->to_come == 0)
        end_ask(self, ask);
    return true;
}

static void up_cancelled(void *context, uint32_t stream)
{
    (void)context;
    (void)stream; /* a server asks for nothing */
}

static void up_note(void *context, const char *text)
{
    pipe_hub *self = context;
    if (self->events.heard)
        self->events.heard(self->events.context, text);
}

/* Without the server nothing can be answered: workers learn it at once. */
static void up_closed(void *context, const char *why)
{
    pipe_hub *self = context;
    self->up_closed = true;
    remove_socket(self);
    for (worker *each = self->workers; each; each = each->next)
        if (!each->closed)
            pipe_link_fail(each->link, why);
    if (self->events.closed)
        self->events.closed(self->events.context, why);
}

static const pipe_link_events up_events = {
    .note = up_note, .head = up_head, .body = up_body, .cancelled = up_cancelled, .closed = up_closed};

/* ---- connections ------------------------------------------------------------------------------------------------- */

static void accept_worker(void *context)
{
    pipe_hub *self = context;
    worker *fresh = NULL;
    int descriptor = accept4(self->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (descriptor < 0) {
        if (errno == EMFILE || errno == ENFILE) /* until others have ended */
            base_sleep_until(base_time_after(base_now(), 0.01));
        return;
    }
    if (self->up_closed || base_alloc(&fresh, 1, sizeof *fresh, "a worker's connection") < 0) {
        close(descriptor);
        return;
    }
    fresh->hub = self;
    pipe_link_options options = {.local = true, .events = &worker_events, .context = fresh};
    int status = pipe_link_new(&fresh->link, descriptor, descriptor, &options);
    if (status == SHOAL_OK)
        status = pipe_loop_add(self->loop, fresh->link);
    if (status < 0) {
        pipe_link_free(&fresh->link);
        base_free(&fresh);
        return;
    }
    fresh->next = self->workers;
    self->workers = fresh;
}

/* Frees connections that are closed and that nothing refers to any more. */
static void tidy(void *context)
{
    pipe_hub *self = context;
    for (worker **place = &self->workers; *place;) {
        worker *each = *place;
        if (each->closed && each->link)
            pipe_link_free(&each->link);
        if (!each->closed || each->references > 0) {
            place = &each->next;
            continue;
        }
        *place = each->next;
        base_free(&each);
    }
}

/* ---- beginning and end ------------------------------------------------------------------------------------------- */

static int listen_on(pipe_hub *self, const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct stat info;
    if (strlen(path) >= sizeof address.sun_path)
        return shoal_fail(SHOAL_USAGE, "%s: a socket's path can't be longer than %zu bytes", path,
                          sizeof address.sun_path - 1);
    memcpy(address.sun_path, path, strlen(path) + 1);
    self->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (self->listener < 0 || bind(self->listener, (struct sockaddr *)&address, sizeof address) < 0 ||
        listen(self->listener, 128) < 0)
        return shoal_fail_errno(SHOAL_SYSTEM, errno, "%s: can't serve workers on this socket", path);
    self->socket_number = stat(path, &info) == 0 ? info.st_ino : 0;
    return base_copy_text(&self->socket, path);
}

int pipe_hub_new(pipe_hub **out_hub, int in, int out, const pipe_hub_options *options)
{
    pipe_hub *self = NULL;
    int64_t eighth = base_memory_total() / 8;
    *out_hub = NULL;
    int status = base_alloc(&self, 1, sizeof *self, "the hub of a pipe");
    if (status < 0) {
        close(in);
        if (out != in)
            close(out);
        return status;
    }
    self->events = options->events;
    self->listener = -1;
    self->cache_most = options->cache_bytes > 0 ? options->cache_bytes : eighth < CACHE_MOST ? eighth : CACHE_MOST;
    pipe_link_options link = {.first = true, .nonce = options->nonce, .events = &up_events, .context = self};
    status = pipe_link_new(&self->up, in, out, &link);
    if (status == SHOAL_OK)
        status = listen_on(self, options->socket);
    if (status == SHOAL_OK)
        status = pipe_loop_new(&self->loop);
    if (status == SHOAL_OK)
        status = pipe_loop_add(self->loop, self->up);
    if (status == SHOAL_OK) {
        pipe_loop_watch(self->loop, self->listener, accept_worker, self);
        status = pipe_loop_start(self->loop, tidy, self);
    }
    if (status < 0) {
        self->up_closed = true;
        pipe_hub_free(&self);
        return status;
    }
    *out_hub = self;
    return SHOAL_OK;
}

int pipe_hub_tell(pipe_hub *hub, const char *note)
{
    return pipe_link_note(hub->up, note);
}

pipe_figures pipe_hub_figures(const pipe_hub *hub)
{
    pipe_figures figures = pipe_link_figures(hub->up);
    figures.shared = atomic_load(&hub->shared);
    return figures;
}

void pipe_hub_free(pipe_hub **hub)
{
    pipe_hub *self = *hub;
    *hub = NULL;
    if (!self)
        return;
    pipe_loop_free(&self->loop, LINGER);
    if (self->listener >= 0)
        close(self->listener);
    remove_socket(self);
    bool told = self->up_closed;
    self->up_closed = true;
    for (worker *each = self->workers; each; each = each->next)
        each->closed = true; /* so that nothing more is told to them */
    for (int i = 0; i < ASK_BUCKETS; i++)
        while (self->asks[i])
            end_ask(self, self->asks[i]);
    pipe_link_free(&self->up);
    tidy(self);
    for (int i = 0; i < BODY_BUCKETS; i++)
        while (self->bodies[i])
            unindex(self, self->bodies[i]);
    if (!told && self->events.closed)
        self->events.closed(self->events.context, "");
    base_free(&self->socket);
    base_free(&self);
}
