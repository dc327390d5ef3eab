/* The near end of a pipe store: serves a store over a link.
 *
 * Each request is one attempt at the store, made with the raw calls of its class: frames and put ids pass as they are,
 * and who asked decides what to do next.  What surely is quick is done in the link's own thread; the rest by threads
 * that are started as they are needed.  Large gets wait while enough of what others got is still to be sent, so a slow
 * link costs little memory. Those who wait for a change are looked after by one thread, which waits for any change and
 * then asks for each of them. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/world.h"
#include "store/pipe/pipe_link.h"
#include "store/pipe/pipe_wire.h"

enum {
    REQUESTS_MOST = 2048,         /* at once: more is no honest far end */
    THREADS_MOST = 16,            /* of a store that is far itself */
    THREADS_NEAR = 4,             /* of one that is not */
    LARGE = 64 * 1024,            /* a get of more than this waits until there is room */
    LENT_MOST = 32 * 1024 * 1024, /* bytes of answers that wait to be sent, before large gets do */
    RECENT = 256,                 /* answers whose versions are remembered */
    FULL_NAME = PIPE_NAME_MOST + 512,
    PAGE_MOST = 1000
};
static const double LEASE_MOST = 7 * 24 * 3600;
static const double LINGER = 0.5;     /* seconds that a last note has to be sent */
static const double LOOK_EVERY = 0.1; /* seconds until the thread that waits sees that it is to end */

typedef enum task_state {
    TASK_COMES,  /* its body does */
    TASK_QUEUED, /* for a thread */
    TASK_RUNS,
    TASK_WAITS, /* for a change */
    TASK_BEHIND /* a get that may be the same as another one, which is not yet answered */
} task_state;

/* A request that is not yet answered. */
typedef struct task {
    struct task *next, *before; /* among all */
    struct task *queued;        /* behind it in its queue */
    task_state state;
    bool cancelled; /* while it ran */
    bool looked;    /* whether the far end has it already */
    uint32_t seen;  /* of a patient get: before it looked for the key */
    uint32_t stream;
    int64_t deadline;
    unsigned char *body;
    size_t body_size, body_have;
    pipe_request request;
} task;

typedef struct task_queue {
    task *first, *last;
} task_queue;

struct pipe_server {
    pipe_server_options options;
    pipe_link *link;
    pipe_loop *loop;
    bool closed; /* the event was sent; of the loop's thread, and of free after it
                */
    int64_t body_most;

    pthread_mutex_t lock; /* taken behind the link's, never before it */
    pthread_cond_t work;
    bool stop;
    task *tasks;
    int task_count;
    task_queue small, large;
    int large_running;
    int64_t lent, coming; /* bytes of answers that are not yet sent, and of bodies
                           that are not yet here */
    base_thread *threads[THREADS_MOST];
    int thread_count, thread_most, idle;
    struct {
        uint32_t stream;
        shoal_etag etag;
    } recent[RECENT]; /* what answers were of, by stream */

    base_thread *waiter;
    _Atomic uint32_t waits; /* counts those that begin, so that the waiter can
                             sleep while there are none */
    int wait_count;
};

/* ---- tasks; the lock is held --------------------------------------------------------------------------------- */

static task *find_task(const pipe_server *self, uint32_t stream)
{
    task *each = self->tasks;
    while (each && each->stream != stream)
        each = each->next;
    return each;
}

static void add_task(pipe_server *self, task *task)
{
    task->next = self->tasks;
    if (self->tasks)
        self->tasks->before = task;
    self->tasks = task;
    self->task_count++;
}

static void remove_task(pipe_server *self, task *task)
{
    if (task->before)
        task->before->next = task->next;
    else
        self->tasks = task->next;
    if (task->next)
        task->next->before = task->before;
    self->task_count--;
    if (task->state == TASK_COMES)
        self->coming -= (int64_t)task->body_size;
    if (task->state == TASK_WAITS)
        self->wait_count--;
    base_free(&task->body);
    base_free(&task);
}

static void enqueue(task_queue *queue, task *task)
{
    task->queued = NULL;
    if (queue->last)
        queue->last->queued = task;
    else
        queue->first = task;
    queue->last = task;
}

static task *dequeue(task_queue *queue)
{
    task *task = queue->first;
    if (task) {
        queue->first = task->queued;
        if (!queue->first)
            queue->last = NULL;
    }
    return task;
}

/* ---- answering ----------------------------------------------------------------------------------------------- */

/* Bytes that the link sends. */
typedef struct lent {
    pipe_server *server;
    size_t size;
    shoal_blob blob;
    void *bytes;
} lent;

static void give_back(void *owner, size_t size)
{
    lent *lent = owner;
    pipe_server *self = lent->server;
    (void)size; /* it is one part */
    pthread_mutex_lock(&self->lock);
    self->lent -= (int64_t)lent->size;
    if (self->large.first)
        pthread_cond_signal(&self->work);
    pthread_mutex_unlock(&self->lock);
    shoal_blob_release(&lent->blob);
    base_free(&lent->bytes);
    base_free(&lent);
}

/* Whether the answer is still wanted. */
static bool is_wanted(pipe_server *self, const task *task)
{
    pthread_mutex_lock(&self->lock);
    bool wanted = !task->cancelled && !self->stop && task->request.call != PIPE_DISCARD;
    pthread_mutex_unlock(&self->lock);
    return wanted;
}

static void begin(pipe_server *self, task *task);

static void remember(pipe_server *self, uint32_t stream, const shoal_etag *etag)
{
    pthread_mutex_lock(&self->lock);
    self->recent[stream % RECENT].stream = stream;
    self->recent[stream % RECENT].etag = *etag;
    pthread_mutex_unlock(&self->lock);
}

/* An answer has gone out, or never will: those that waited for it, to be told "the same", go on. */
static void go_on_behind(pipe_server *self, uint32_t stream)
{
    task *next;
    do {
        pthread_mutex_lock(&self->lock);
        next = self->tasks;
        while (next && !(next->state == TASK_BEHIND && next->request.same_as == stream))
            next = next->next;
        if (next)
            next->state = TASK_RUNS;
        pthread_mutex_unlock(&self->lock);
        if (next)
            begin(self, next);
    } while (next);
}

/* Lends bytes to a message, which gives them back when they are sent. */
static int lend(pipe_server *self, pipe_message *message, shoal_blob *blob, void *bytes, size_t size)
{
    lent *lent = NULL;
    int status = base_alloc(&lent, 1, sizeof *lent, "an answer");
    if (status < 0) {
        if (blob)
            shoal_blob_release(blob);
        base_free(&bytes);
        return status;
    }
    *lent = (struct lent){.server = self, .size = size, .bytes = bytes};
    message->part[0].bytes = blob ? blob->data : bytes;
    message->part[0].size = size;
    message->body_size = size;
    if (blob)
        lent->blob = *blob;
    message->owner = lent;
    message->release = give_back;
    pthread_mutex_lock(&self->lock);
    self->lent += (int64_t)size;
    pthread_mutex_unlock(&self->lock);
    return SHOAL_OK;
}

/* Sends an answer; whether it goes out.  Takes `bytes`, and what `blob`, which may be NULL, holds. */
static bool send_answer(pipe_server *self, const task *task, pipe_answer *answer, shoal_blob *blob, void *bytes,
                        size_t size)
{
    pipe_message message = {.stream = task->stream};
    base_writer head = {0};
    int status = size > 0 ? lend(self, &message, blob, bytes, size) : SHOAL_OK;
    if (status < 0)
        *answer = (pipe_answer){.status = status};
    if (answer->status < 0)
        snprintf(answer->message, sizeof answer->message, "%.*s", PIPE_MESSAGE_MOST - 1, shoal_error());
    pipe_answer_write(&head, task->request.call, answer);
    message.head = head.data;
    message.head_size = head.size;
    status = head.status;
    if (status == SHOAL_OK)
        status = pipe_link_send(self->link, &message); /* a dead link tells by its event */
    else
        pipe_link_fail(self->link, shoal_error());
    base_writer_release(&head);
    return status == SHOAL_OK;
}

/* Answers and ends the task.  Takes as send_answer does. */
static void reply(pipe_server *self, task *task, pipe_answer *answer, shoal_blob *blob, void *bytes, size_t size)
{
    uint32_t stream = task->stream;
    bool gets = task->request.call == PIPE_GET, leads = gets && task->request.same_as == 0, sent = false;
    if (size > 0 && is_wanted(self, task)) {
        sent = send_answer(self, task, answer, blob, bytes, size);
    } else {
        char message[PIPE_MESSAGE_MOST];
        snprintf(message, sizeof message, "%s", shoal_error());
        if (blob)
            shoal_blob_release(blob);
        base_free(&bytes);
        (void)shoal_fail(answer->status, "%s", message);
        if (is_wanted(self, task))
            sent = send_answer(self, task, answer, NULL, NULL, 0);
    }
    /* Remembered behind the answer, so that whoever is told "the same as that" has been told that; and while the task is still
     * known, so that whoever asks for the same finds one or the other. */
    if (sent && gets && size > PIPE_SHORT_MOST)
        remember(self, stream, &answer->etag);
    pthread_mutex_lock(&self->lock);
    remove_task(self, task);
    pthread_mutex_unlock(&self->lock);
    if (leads)
        go_on_behind(self, stream);
}

static void reply_short(pipe_server *self, task *task, pipe_answer *answer)
{
    reply(self, task, answer, NULL, NULL, 0);
}

static shoal_store *store_of(const pipe_server *self, const task *task)
{
    return task->request.data ? self->options.data : self->options.store;
}

static void refuse(pipe_server *self, task *task, int status);

/* ---- calls --------------------------------------------------------------------------------------------------- */

/* Each segment by itself is as the rules of keys say.  What starts with ".shoal" may come: queues made of blobs by who
 * asks. */
static int check_name(const char *name, bool whole)
{
    char segment[SHOAL_KEY_MOST + 1];
    for (;;) {
        size_t length = strcspn(name, "/");
        bool last = name[length] == '\0';
        int status = SHOAL_OK;
        if (length > SHOAL_KEY_MOST)
            return shoal_fail(SHOAL_USAGE, "a part of a key is longer than %d bytes", SHOAL_KEY_MOST);
        snprintf(segment, sizeof segment, "%.*s", (int)length, name);
        if (strcmp(segment, ".shoal") != 0)
            status = last && !whole ? store_prefix_check(segment) : store_key_check(segment);
        if (status < 0 || last)
            return status;
        name += length + 1;
    }
}

static int full_name(char out[FULL_NAME], const shoal_store *store, const char *name, bool whole)
{
    int status = check_name(name, whole);
    if (status == SHOAL_OK && snprintf(out, FULL_NAME, "%s%s", store->prefix, name) >= FULL_NAME)
        status = shoal_fail(SHOAL_USAGE, "a key is too long");
    return status;
}

static store_attempt attempt_of(const task *task)
{
    return (store_attempt){
        .deadline = task->deadline, .number = (int)task->request.number, .doubt = task->request.doubt};
}

static void count(shoal_store *store, shoal_request kind, int64_t sent, int64_t received)
{
    if (!store->class->counts_itself)
        store_count(store, kind, sent, received);
}

/* How an attempt went, into the answer. */
static void conclude(pipe_answer *answer, int status, const store_attempt *attempt)
{
    answer->status = status;
    answer->cause = attempt->cause;
    answer->retry_after = attempt->retry_after;
}

/* Whether the far end has this version: 1 by its own account, 2 since an answer brought or brings it. */
static uint8_t has_already(pipe_server *self, const pipe_request *request, const shoal_etag *etag)
{
    if (request->known.text[0] && strcmp(request->known.text, etag->text) == 0)
        return 1;
    if (request->same_as == 0)
        return 0;
    pthread_mutex_lock(&self->lock);
    bool same = self->recent[request->same_as % RECENT].stream == request->same_as &&
                strcmp(self->recent[request->same_as % RECENT].etag.text, etag->text) == 0;
    pthread_mutex_unlock(&self->lock);
    return same ? 2 : 0;
}

static void fill_get(pipe_answer *answer, const shoal_blob *blob)
{
    answer->etag = blob->etag;
    answer->whole = blob->whole;
    answer->age = blob->age;
}

/* Looks at the present version, and whether the bytes need not be sent.  True: that is the answer. */
static bool get_same(pipe_server *self, task *task, shoal_store *store, const char *name, pipe_answer *answer)
{
    const pipe_request *request = &task->request;
    const store_range nothing = {.offset = request->offset,
                                 .expected = request->conditional ? &request->expected : NULL};
    store_attempt attempt = attempt_of(task);
    shoal_blob blob = {.age = -1};
    if (!request->known.text[0] && request->same_as == 0)
        return false;
    int status = store->class->get(store, name, &nothing, &blob, &attempt);
    count(store, SHOAL_REQUEST_GET, 0, 0);
    if (status == SHOAL_OK) {
        fill_get(answer, &blob);
        answer->same = has_already(self, request, &blob.etag);
    }
    shoal_blob_release(&blob);
    return answer->same > 0;
}

/* Sends what a get found. */
static void reply_get(pipe_server *self, task *task, pipe_answer *answer, shoal_blob *blob)
{
    if (answer->status == SHOAL_OK)
        fill_get(answer, blob);
    reply(self, task, answer, blob, NULL, answer->status == SHOAL_OK ? blob->size : 0);
}

/* Makes the attempt for at most `most` bytes of what was asked for. */
static void get(shoal_store *store, const char *name, const task *task, int64_t most, shoal_blob *out,
                pipe_answer *answer)
{
    const pipe_request *request = &task->request;
    const store_range range = {.offset = request->offset,
                               .length = request->length < most ? request->length : most,
                               .expected = request->conditional ? &request->expected : NULL};
    store_attempt attempt = attempt_of(task);
    *out = (shoal_blob){.age = -1};
    conclude(answer, store->class->get(store, name, &range, out, &attempt), &attempt);
    count(store, SHOAL_REQUEST_GET, 0, answer->status == SHOAL_OK ? (int64_t)out->size : 0);
}

static bool park(pipe_server *self, task *task);

static void serve_get(pipe_server *self, task *task, shoal_store *store, const char *name)
{
    pipe_answer answer = {.status = SHOAL_OK};
    shoal_blob blob;
    if (!task->looked && get_same(self, task, store, name, &answer)) {
        reply_short(self, task, &answer);
        return;
    }
    get(store, name, task, INT64_MAX, &blob, &answer);
    if (answer.status != SHOAL_ABSENT || !park(self, task))
        reply_get(self, task, &answer, &blob);
}

/* A get of a store that answers at once: whether it was little enough to be answered here. */
static bool get_quickly(pipe_server *self, task *task, shoal_store *store, const char *name)
{
    pipe_answer answer = {.status = SHOAL_OK};
    shoal_blob blob;
    task->looked = true;
    if (get_same(self, task, store, name, &answer)) {
        reply_short(self, task, &answer);
        return true;
    }
    get(store, name, task, LARGE, &blob, &answer);
    if (answer.status == SHOAL_OK && task->request.length > LARGE && blob.whole - task->request.offset > LARGE) {
        shoal_blob_release(&blob); /* there is more of it: not here */
        return false;
    }
    if (answer.status != SHOAL_ABSENT || !park(self, task))
        reply_get(self, task, &answer, &blob);
    return true;
}

static store_body body_of(const task *task)
{
    return (store_body){{{NULL, 0}, {task->body, task->body_size}}};
}

static void serve_put(pipe_server *self, task *task, shoal_store *store, const char *name)
{
    const pipe_request *request = &task->request;
    store_attempt attempt = attempt_of(task);
    pipe_answer answer = {.status = SHOAL_OK};
    store_body body = body_of(task);
    conclude(
        &answer,
        store->class->put(store, name, &body, request->conditional ? &request->expected : NULL, &answer.etag, &attempt),
        &attempt);
    count(store, SHOAL_REQUEST_PUT, (int64_t)task->body_size, 0);
    reply_short(self, task, &answer);
}

static void serve_remove(pipe_server *self, task *task, shoal_store *store, const char *name)
{
    store_attempt attempt = attempt_of(task);
    pipe_answer answer = {.status = SHOAL_OK};
    conclude(&answer, store->class->remove(store, name, &attempt), &attempt);
    count(store, SHOAL_REQUEST_REMOVE, 0, 0);
    reply_short(self, task, &answer);
}

/* Where the next page begins: 'm' and what the store says, or 'k' and the last key, when the page was cut here. */
static int mark(pipe_answer *answer, const shoal_listing *page, const char *prefix, size_t kept)
{
    int size = 0;
    answer->more = page->more || kept < page->count;
    if (kept < page->count || (page->more && !page->marker))
        size = snprintf(answer->marker, sizeof answer->marker, "k%s",
                        kept ? page->entries[kept - 1].key + strlen(prefix) : "");
    else if (page->more)
        size = snprintf(answer->marker, sizeof answer->marker, "m%s", page->marker);
    if (size >= (int)sizeof answer->marker)
        return shoal_fail(SHOAL_INVALID, "the store marks a page by a text that is too long");
    return SHOAL_OK;
}

/* The entries below the store's prefix, without it. */
static int write_page(base_writer *out, pipe_answer *answer, const shoal_listing *page, const shoal_store *store,
                      uint32_t most)
{
    size_t length = strlen(store->prefix), kept = 0;
    for (; kept < page->count && kept < most; kept++) {
        shoal_entry entry = page->entries[kept];
        if (strncmp(entry.key, store->prefix, length) != 0)
            continue; /* or the server told what nobody asked for */
        entry.key += length;
        pipe_entry_write(out, &entry);
    }
    return out->status < 0 ? out->status : mark(answer, page, store->prefix, kept);
}

static void serve_list(pipe_server *self, task *task, shoal_store *store, const char *name)
{
    const pipe_request *request = &task->request;
    const char *after = request->has_after ? request->after : NULL;
    uint32_t most = request->page < 1 || request->page > PAGE_MOST ? PAGE_MOST : request->page;
    store_attempt attempt = attempt_of(task);
    pipe_answer answer = {.status = SHOAL_OK};
    shoal_listing page = {0};
    base_writer out = {0};
    void *bytes = NULL;
    size_t size = 0;
    char full[FULL_NAME];
    if (request->marker[0] == 'k')
        after = request->marker + 1;
    int status = after ? full_name(full, store, after, false) : SHOAL_OK;
    if (status == SHOAL_OK && request->marker[0] == 'm')
        status = base_copy_text(&page.marker, request->marker + 1);
    if (status == SHOAL_OK) {
        status = store->class->list(store, name, after ? full : NULL, &page, &attempt);
        count(store, SHOAL_REQUEST_LIST, 0, 0);
    }
    if (status == SHOAL_OK)
        status = write_page(&out, &answer, &page, store, most);
    if (status == SHOAL_OK)
        status = base_writer_take(&out, &bytes, &size);
    conclude(&answer, status, &attempt);
    base_writer_release(&out);
    shoal_listing_release(&page);
    reply(self, task, &answer, NULL, bytes, size);
}

/* ---- queues -------------------------------------------------------------------------------------------------- */

static int check_lease(const shoal_store *store, const char *name, double lease, double least)
{
    return lease >= least && lease <= LEASE_MOST ? SHOAL_OK
                                                 : store_fail(store, name, SHOAL_USAGE, "a lease of %g seconds", lease);
}

/* The message as its holder has it. */
static shoal_message message_of(const pipe_request *request)
{
    shoal_message message = {.lease_ends = base_time_after(base_now(), request->lease_left)};
    memcpy(message.receipt, request->receipt, sizeof message.receipt);
    message.receipt[sizeof message.receipt - 1] = '\0';
    return message;
}

static void serve_push(pipe_server *self, task *task, shoal_store *store, const char *name)
{
    store_attempt attempt = attempt_of(task);
    pipe_answer answer = {.status = SHOAL_OK};
    store_body body = body_of(task);
    conclude(&answer,
             store->blob_queue ? store_blobs_push(store, name, task->body, task->body_size, task->deadline)
                               : store->class->push(store, name, &body, &attempt),
             &attempt);
    if (!store->blob_queue)
        count(store, SHOAL_REQUEST_QUEUE, (int64_t)task->body_size, 0);
    reply_short(self, task, &answer);
}

static void serve_take(pipe_server *self, task *task, shoal_store *store, const char *name)
{
    double lease = task->request.lease;
    store_attempt attempt = attempt_of(task);
    pipe_answer answer = {.status = SHOAL_OK};
    shoal_message message = {.lease_ends = base_time_after(base_now(), lease)};
    int status = check_lease(store, name, lease, 1);
    if (status == SHOAL_OK)
        status = store->blob_queue ? store_blobs_take(store, name, lease, &message, task->deadline)
                                   : store->class->take(store, name, lease, &message, &attempt);
    if (!store->blob_queue)
        count(store, SHOAL_REQUEST_QUEUE, 0, status == SHOAL_OK ? (int64_t)message.size : 0);
    conclude(&answer, status, &attempt);
    answer.number = message.deliveries;
    memcpy(answer.receipt, message.receipt, sizeof answer.receipt);
    void *bytes = status == SHOAL_OK ? message.data : NULL;
    size_t size = status == SHOAL_OK ? message.size : 0;
    if (bytes)
        message.data = NULL;
    shoal_message_release(&message);
    reply(self, task, &answer, NULL, bytes, size);
}

static void serve_extend(pipe_server *self, task *task, shoal_store *store, const char *name)
{
    double lease = task->request.lease;
    store_attempt attempt = attempt_of(task);
    pipe_answer answer = {.status = SHOAL_OK};
    shoal_message message = message_of(&task->request);
    int status = check_lease(store, name, lease, 0);
    if (status == SHOAL_OK)
        status = store->blob_queue ? store_blobs_extend(store, name, &message, lease, task->deadline)
                                   : store->class->extend(store, name, &message, lease, &attempt);
    if (!store->blob_queue)
        count(store, SHOAL_REQUEST_QUEUE, 0, 0);
    conclude(&answer, status, &attempt);
    memcpy(answer.receipt, message.receipt, sizeof answer.receipt);
    reply_short(self, task, &answer);
}

static void serve_finish(pipe_server *self, task *task, shoal_store *store, const char *name)
{
    store_attempt attempt = attempt_of(task);
    pipe_answer answer = {.status = SHOAL_OK};
    shoal_message message = message_of(&task->request);
    conclude(&answer,
             store->blob_queue ? store_blobs_finish(store, name, &message, task->deadline)
                               : store->class->finish(store, name, &message, &attempt),
             &attempt);
    if (!store->blob_queue)
        count(store, SHOAL_REQUEST_QUEUE, 0, 0);
    reply_short(self, task, &answer);
}

static void serve_count(pipe_server *self, task *task, shoal_store *store, const char *name)
{
    store_attempt attempt = attempt_of(task);
    pipe_answer answer = {.status = SHOAL_OK};
    conclude(&answer,
             store->blob_queue ? store_blobs_count(store, name, &answer.number, task->deadline)
                               : store->class->count(store, name, &answer.number, &attempt),
             &attempt);
    if (!store->blob_queue)
        count(store, SHOAL_REQUEST_QUEUE, 0, 0);
    reply_short(self, task, &answer);
}

static void serve_drop(pipe_server *self, task *task, shoal_store *store, const char *name)
{
    store_attempt attempt = attempt_of(task);
    pipe_answer answer = {.status = SHOAL_OK};
    conclude(&answer,
             store->blob_queue ? store_blobs_drop(store, name, task->deadline)
                               : store->class->drop(store, name, &attempt),
             &attempt);
    if (!store->blob_queue)
        count(store, SHOAL_REQUEST_QUEUE, 0, 0);
    reply_short(self, task, &answer);
}

/* ---- who does what ------------------------------------------------------------------------------------------- */

/* A failure that the store was not even asked about. */
static void refuse(pipe_server *self, task *task, int status)
{
    pipe_answer answer = {.status = status};
    reply_short(self, task, &answer);
}

static void serve_describe(pipe_server *self, task *task, shoal_store *store)
{
    shoal_store_traits traits = shoal_store_describe(store);
    pipe_answer answer = {.status = SHOAL_OK, .wakes = traits.wakes && !task->request.data, .forgets = traits.forgets};
    snprintf(answer.store, sizeof answer.store, "%s", traits.name);
    reply_short(self, task, &answer);
}

/* Whether a name is ID, or below it, behind `start`. */
static bool belongs(const char *name, const char *start, const char *id)
{
    size_t length = strlen(start), more = strlen(id);
    return strncmp(name, start, length) == 0 && strncmp(name + length, id, more) == 0 &&
           (name[length + more] == '\0' || name[length + more] == '/');
}

/* Whether the far end may see what has this name, or what starts with it: of the job's, all; queues may be made of blobs by who asks. */
static bool is_shown(const pipe_server *self, const pipe_request *request)
{
    const char *job = self->options.job, *name = request->name;
    if (request->data)
        return !self->options.data_key || strcmp(name, self->options.data_key) == 0;
    return !job || belongs(name, "jobs/", job) || belongs(name, "open/", job) || belongs(name, "gone/", job) ||
           belongs(name, ".shoal/queue/jobs/", job);
}

/* The name that the store knows it by.  SHOAL_DENIED for what is none of the far end's business. */
static int name_of(char full[FULL_NAME], const pipe_server *self, const task *task, bool whole)
{
    const shoal_store *store = store_of(self, task);
    int status = full_name(full, store, task->request.name, whole);
    if (status == SHOAL_OK && !is_shown(self, &task->request))
        status = store_fail(store, task->request.name, SHOAL_DENIED, "it does not belong to the job");
    return status;
}

/* The same; what may not be asked is answered, and false. */
static bool may_serve(pipe_server *self, task *task, char full[FULL_NAME])
{
    shoal_store *store = store_of(self, task);
    pipe_call call = task->request.call;
    bool reads = call == PIPE_GET || call == PIPE_LIST || call == PIPE_COUNT;
    int status = name_of(full, self, task, call != PIPE_LIST);
    if (status == SHOAL_OK && task->request.data && !reads)
        status = store_fail(store, task->request.name, SHOAL_DENIED, "the store of the rows is only read");
    if (status < 0)
        refuse(self, task, status);
    return status == SHOAL_OK;
}

/* Makes the attempt and answers. */
static void serve(pipe_server *self, task *task)
{
    static void (*const serves[PIPE_CALLS])(pipe_server *, struct task *, shoal_store *, const char *) = {
        [PIPE_GET] = serve_get,       [PIPE_PUT] = serve_put,        [PIPE_REMOVE] = serve_remove,
        [PIPE_LIST] = serve_list,     [PIPE_PUSH] = serve_push,      [PIPE_TAKE] = serve_take,
        [PIPE_EXTEND] = serve_extend, [PIPE_FINISH] = serve_finish,  [PIPE_COUNT] = serve_count,
        [PIPE_DROP] = serve_drop,     [PIPE_DISCARD] = serve_remove,
    };
    char full[FULL_NAME];
    if (may_serve(self, task, full))
        serves[task->request.call](self, task, store_of(self, task), full);
}

/* Does what takes so little that the link's own thread may: nothing that waits for a disk's writes, other processes or other
 * machines.  False: it is still to be done. */
static bool serve_quickly(pipe_server *self, task *task)
{
    shoal_store *store = store_of(self, task);
    pipe_call call = task->request.call;
    bool memory = store->class == &store_memory;
    char full[FULL_NAME];
    if (call == PIPE_GET && (memory || store->class == &store_folder))
        return !may_serve(self, task, full) || get_quickly(self, task, store, full);
    if (memory && call != PIPE_LIST) {
        serve(self, task);
        return true;
    }
    return false;
}

static bool is_large(const task *task)
{
    return task->request.call == PIPE_GET && task->request.length > LARGE;
}

/* The next thing to do; the lock is held. */
static task *next_task(pipe_server *self)
{
    task *next = dequeue(&self->small);
    bool room = self->large_running + 1 < self->thread_most && self->lent < LENT_MOST;
    if (!next && room && (next = dequeue(&self->large)))
        self->large_running++;
    return next;
}

static void work(void *context)
{
    pipe_server *self = context;
    pthread_mutex_lock(&self->lock);
    while (!self->stop) {
        task *task = next_task(self);
        if (!task) {
            self->idle++;
            pthread_cond_wait(&self->work, &self->lock);
            self->idle--;
            continue;
        }
        bool large = is_large(task);
        task->state = TASK_RUNS;
        pthread_mutex_unlock(&self->lock);
        serve(self, task);
        pthread_mutex_lock(&self->lock);
        if (large) {
            self->large_running--;
            if (self->large.first)
                pthread_cond_signal(&self->work);
        }
    }
    pthread_mutex_unlock(&self->lock);
}

/* Hands a task to the threads, and starts another when all are busy. */
static void delegate(pipe_server *self, task *task)
{
    int status = SHOAL_OK;
    pthread_mutex_lock(&self->lock);
    if (self->idle == 0 && self->thread_count < self->thread_most && !self->stop) {
        status = base_thread_start(&self->threads[self->thread_count], work, self);
        if (status == SHOAL_OK)
            self->thread_count++;
    }
    bool lost = status < 0 && self->thread_count == 0;
    if (!lost) {
        task->state = TASK_QUEUED;
        enqueue(is_large(task) ? &self->large : &self->small, task);
        pthread_cond_signal(&self->work);
    }
    pthread_mutex_unlock(&self->lock);
    if (lost)
        refuse(self, task, status);
}

/* ---- waiting ------------------------------------------------------------------------------------------------- */

/* Whether the wait is over: something may have changed, or its time has passed. */
static bool is_over(pipe_server *self, task *task, pipe_answer *answer)
{
    shoal_store *store = self->options.store;
    char full[FULL_NAME];
    answer->seen = task->request.call == PIPE_GET ? task->seen : task->request.seen;
    answer->status = name_of(full, self, task, false);
    if (answer->status == SHOAL_OK)
        answer->status = store->class->wait(store, full, &answer->seen, 0); /* looks, and does not wait */
    return answer->status != SHOAL_AGAIN || base_now() >= task->deadline;
}

/* Answers those whose wait is over; the ones that began with `only`, when that is not 0. */
static void look_for(pipe_server *self, uint32_t only)
{
    pipe_answer answer;
    for (;;) {
        task *over = NULL;
        pthread_mutex_lock(&self->lock);
        for (task *each = self->tasks; each && !over; each = each->next) {
            memset(&answer, 0, offsetof(pipe_answer, message));
            if (each->state == TASK_WAITS && (only == 0 || each->stream == only) && is_over(self, each, &answer))
                over = each;
        }
        if (over) {
            over->state = TASK_RUNS;
            self->wait_count--;
        }
        pthread_mutex_unlock(&self->lock);
        if (!over)
            return;
        if (over->request.call == PIPE_GET && base_now() < over->deadline)
            begin(self, over); /* looks for its key again */
        else if (over->request.call == PIPE_GET)
            refuse(self, over,
                   store_fail(self->options.store, over->request.name, SHOAL_ABSENT, "there is no such key"));
        else
            reply_short(self, over, &answer);
    }
}

/* First among those that wait and then looked at: no change is missed in between.  False: nobody wants it any more.  Otherwise
 * the task may be gone when this returns. */
static bool stay(pipe_server *self, task *task)
{
    uint32_t stream = task->stream;
    pthread_mutex_lock(&self->lock);
    bool wanted = !task->cancelled && !self->stop;
    if (wanted) {
        task->state = TASK_WAITS;
        self->wait_count++;
    }
    pthread_mutex_unlock(&self->lock);
    if (!wanted)
        return false;
    look_for(self, stream);
    atomic_fetch_add(&self->waits, 1);
    base_wake_word(&self->waits, 1);
    return true;
}

static bool is_patient(const pipe_server *self, const task *task)
{
    return task->request.call == PIPE_GET && task->request.patient && !task->request.data && self->waiter;
}

/* Notes how things stand before the key is looked for: what comes from then on is a change. */
static void note_seen(pipe_server *self, task *task)
{
    char full[FULL_NAME];
    task->seen = 0;
    task->looked = false;
    if (name_of(full, self, task, true) == SHOAL_OK)
        (void)self->options.store->class->wait(self->options.store, full, &task->seen, 0);
}

/* A patient get whose key is not there waits for it.  False: it does not. */
static bool park(pipe_server *self, task *task)
{
    return is_patient(self, task) && base_now() < task->deadline && stay(self, task);
}

static void wait_for_changes(void *context)
{
    pipe_server *self = context;
    shoal_store *store = self->options.store;
    uint32_t seen = 0;
    for (;;) {
        uint32_t waits = atomic_load(&self->waits);
        pthread_mutex_lock(&self->lock);
        bool stop = self->stop, some = self->wait_count > 0;
        pthread_mutex_unlock(&self->lock);
        if (stop)
            return;
        if (some) {
            int64_t soon = base_time_after(base_now(), LOOK_EVERY);
            if (store->class->wait(store, store->prefix, &seen, soon) < 0 && base_now() < soon)
                base_sleep_until(soon); /* a store that fails is not asked without end */
            look_for(self, 0);
        } else {
            base_wait_word(&self->waits, waits, INT64_MAX);
        }
    }
}

static void begin_wait(pipe_server *self, task *task)
{
    if (task->request.data || !self->waiter) {
        refuse(self, task, shoal_fail(SHOAL_USAGE, "this store can't tell of changes"));
        return;
    }
    if (!stay(self, task))
        refuse(self, task, shoal_fail(SHOAL_AGAIN, "nobody waits any more"));
}

/* ---- what the link tells ------------------------------------------------------------------------------------- */

/* A get that may have the same answer as one that was asked before waits for that, unless that one waits itself. */
static bool stay_behind(pipe_server *self, task *task)
{
    pthread_mutex_lock(&self->lock);
    const struct task *other = find_task(self, task->request.same_as);
    bool stays = other && other != task && other->request.call == PIPE_GET && other->request.same_as == 0 &&
                 (task->request.patient || !other->request.patient);
    if (stays)
        task->state = TASK_BEHIND;
    pthread_mutex_unlock(&self->lock);
    return stays;
}

/* All of a request is here. */
static void begin(pipe_server *self, task *task)
{
    pipe_call call = task->request.call;
    if (call == PIPE_GET && task->request.same_as != 0 && stay_behind(self, task))
        return;
    if (is_patient(self, task))
        note_seen(self, task);
    if (task->request.data && !self->options.data)
        refuse(self, task, shoal_fail(SHOAL_ABSENT, "the job has no other store for its rows"));
    else if (call == PIPE_DESCRIBE)
        serve_describe(self, task, store_of(self, task));
    else if (call == PIPE_WAIT)
        begin_wait(self, task);
    else if (!serve_quickly(self, task))
        delegate(self, task);
}

/* Room for a body; SHOAL_AGAIN when too much is coming already, so that who asks tries again. */
static int make_room(pipe_server *self, task *task, uint64_t size)
{
    bool has_body = task->request.call == PIPE_PUT || task->request.call == PIPE_PUSH;
    if (size > 0 && !has_body)
        return shoal_fail(SHOAL_INVALID, "a request with a body that it can't have");
    if (size > (uint64_t)self->body_most || (self->coming > 0 && self->coming + (int64_t)size > self->body_most))
        return shoal_fail(SHOAL_MEMORY, "%s: %" PRIu64 " bytes are more than this machine can take in now",
                          task->request.name, size);
    task->body_size = (size_t)size;
    return has_body ? base_alloc_unset(&task->body, size ? (size_t)size : 1, 1, "a body") : SHOAL_OK;
}

static void on_head(void *context, uint32_t stream, const void *head, size_t size, const void *body, uint64_t body_size)
{
    pipe_server *self = context;
    task *task = NULL;
    int status = base_alloc(&task, 1, sizeof *task, "a request");
    if (status < 0 || !pipe_request_read(&task->request, head, size)) {
        pipe_link_fail(self->link, status < 0 ? shoal_error() : "the other end sent a request that makes no sense");
        base_free(&task);
        return;
    }
    task->stream = stream;
    task->state = TASK_RUNS;
    task->deadline = base_time_after(base_now(), fmax(task->request.seconds, 0));
    pthread_mutex_lock(&self->lock);
    bool known = find_task(self, stream) != NULL, many = self->task_count >= REQUESTS_MOST;
    if (!known && !many)
        add_task(self, task);
    pthread_mutex_unlock(&self->lock);
    if (known || many) {
        pipe_link_fail(self->link,
                       known ? "the other end sent a request twice" : "the other end asks too much at once");
        base_free(&task);
        return;
    }
    status = make_room(self, task, body_size);
    if (status == SHOAL_INVALID) {
        pipe_link_fail(self->link, shoal_error());
    } else if (status < 0) {
        refuse(self, task, status); /* what comes of its body is thrown away */
    } else if (body) {
        if (body_size > 0)
            memcpy(task->body, body, (size_t)body_size);
        begin(self, task);
    } else {
        pthread_mutex_lock(&self->lock);
        task->state = TASK_COMES;
        self->coming += (int64_t)body_size;
        pthread_mutex_unlock(&self->lock);
    }
}

static bool on_body(void *context, uint32_t stream, const void *bytes, size_t size)
{
    pipe_server *self = context;
    bool whole = false, too_much = false;
    pthread_mutex_lock(&self->lock);
    task *task = find_task(self, stream);
    bool comes = task && task->state == TASK_COMES;
    if (comes) {
        too_much = size > task->body_size - task->body_have;
        if (!too_much) {
            memcpy(task->body + task->body_have, bytes, size);
            task->body_have += size;
            whole = task->body_have == task->body_size;
        }
    }
    if (whole) {
        task->state = TASK_RUNS;
        self->coming -= (int64_t)task->body_size;
    }
    pthread_mutex_unlock(&self->lock);
    if (too_much)
        pipe_link_fail(self->link, "the other end sent more of a body than it said");
    if (whole)
        begin(self, task);
    return true;
}

static void unqueue(task_queue *queue, const task *task)
{
    task_queue rest = {0};
    for (struct task *each = queue->first, *next; each; each = next) {
        next = each->queued;
        if (each != task)
            enqueue(&rest, each);
    }
    *queue = rest;
}

/* Forgets a task that does not run; one that does answers nobody.  The lock is held. */
static void forget(pipe_server *self, task *task)
{
    if (task->state == TASK_RUNS) {
        task->cancelled = true;
        return;
    }
    if (task->state == TASK_QUEUED)
        unqueue(is_large(task) ? &self->large : &self->small, task);
    remove_task(self, task);
}

static void on_cancelled(void *context, uint32_t stream)
{
    pipe_server *self = context;
    pthread_mutex_lock(&self->lock);
    task *task = find_task(self, stream);
    bool runs = task && task->state == TASK_RUNS;
    if (task)
        forget(self, task);
    pthread_mutex_unlock(&self->lock);
    (void)pipe_link_drop(self->link, stream);
    if (!runs) /* which does so itself */
        go_on_behind(self, stream);
}

static void on_closed(void *context, const char *why)
{
    pipe_server *self = context;
    pthread_mutex_lock(&self->lock);
    for (task *each = self->tasks, *next; each; each = next) {
        next = each->next;
        forget(self, each);
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

/* ---- beginning and end --------------------------------------------------------------------------------------- */

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
    self->body_most = base_memory_total() / 4;
    self->thread_most = options->store->class->far ? THREADS_MOST : THREADS_NEAR;
    pthread_mutex_init(&self->lock, NULL);
    pthread_cond_init(&self->work, NULL);
    pipe_link_options link = {.nonce = options->nonce, .events = &server_events, .context = self};
    status = pipe_link_new(&self->link, in, out, &link);
    if (status == SHOAL_OK)
        status = pipe_loop_new(&self->loop);
    if (status == SHOAL_OK)
        status = pipe_loop_add(self->loop, self->link);
    if (status == SHOAL_OK && options->store->class->wakes)
        status = base_thread_start(&self->waiter, wait_for_changes, self);
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
    atomic_fetch_add(&self->waits, 1);
    base_wake_word(&self->waits, 1);
    base_thread_join(&self->waiter);
    pipe_loop_free(&self->loop, LINGER);
    pipe_link_free(&self->link);
    while (self->tasks)
        remove_task(self, self->tasks);
    if (!self->closed && self->options.events.closed)
        self->options.events.closed(self->options.events.context, "");
    pthread_cond_destroy(&self->work);
    pthread_mutex_destroy(&self->lock);
    base_free(&self);
}
