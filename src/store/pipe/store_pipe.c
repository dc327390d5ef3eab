/* pipe:/path/of/a/socket, the store of whoever started the agent that serves this socket: see pipe.h.
 *
 * A call is one request over the connection to the agent, and its answer.  A get of many bytes is several at once, each
 * of a piece: so the far store is read while what was read before is on its way, and nobody holds more than pieces.
 * What becomes of a write whose link broke is not known here, unless part of it was never sent: the layer above
 * decides. */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "base/world.h"
#include "store/pipe/pipe_client.h"

enum { PIECE = 1 << 20, PIECES_AT_ONCE = 4, EXPECTED_MOST = 256, AWAITED_MOST = 64 << 20 };
static const double EXPECT_SECONDS = 300; /* that a get waits at the server */
static const double WAIT_WHEN_CUT = 0.1;  /* seconds before a caller is told to look, when the link is dead */

/* A connection, and how many use it. */
typedef struct shared_connection {
    pipe_connection *connection;
    int users;
} shared_connection;

/* A get that waits at the server for its key. */
typedef struct expectation {
    struct expectation *next;
    bool busy; /* someone waits for it here */
    shared_connection *shared;
    pipe_request request;
    pipe_calling call;
} expectation;

typedef struct pipe_store {
    shoal_store store;
    struct store_class class; /* as the far store is: this handle's own */
    char *socket;
    bool data;
    pthread_mutex_t lock;
    bool ready; /* the lock is there */
    shared_connection *current;
    expectation *expectations;
    int expected;
} pipe_store;

/* ---- connections ------------------------------------------------------------------------------------------------- */

/* Lets go; the last one of those that are no longer current closes it. */
static void release_connection(pipe_store *self, shared_connection *shared)
{
    pthread_mutex_lock(&self->lock);
    bool last = --shared->users == 0;
    pthread_mutex_unlock(&self->lock);
    if (last) {
        pipe_connection_close(&shared->connection);
        base_free(&shared);
    }
}

static int use_connection(shared_connection **out, pipe_store *self, store_attempt *attempt)
{
    shared_connection *old = NULL, *fresh = NULL;
    int status = SHOAL_OK;
    pthread_mutex_lock(&self->lock);
    if (self->current && !pipe_connection_lives(self->current->connection)) {
        old = self->current;
        self->current = NULL;
    }
    if (!self->current) {
        status = base_alloc(&fresh, 1, sizeof *fresh, "a connection");
        if (status == SHOAL_OK)
            status = pipe_connection_open(&fresh->connection, self->socket);
        if (status == SHOAL_OK) {
            fresh->users = 1; /* the store */
            self->current = fresh;
        } else {
            base_free(&fresh);
        }
    }
    if (self->current) {
        self->current->users++;
        *out = self->current;
    }
    pthread_mutex_unlock(&self->lock);
    if (old)
        release_connection(self, old);
    if (status == SHOAL_AGAIN && attempt)
        attempt->cause = SHOAL_CAUSE_UNREACHABLE;
    return status;
}

/* ---- a call ------------------------------------------------------------------------------------------------------ */

static void fill_request(pipe_request *out, const pipe_store *self, pipe_call call, const char *name,
                         const store_attempt *attempt)
{
    memset(out, 0, sizeof *out);
    out->call = call;
    out->data = self->data;
    out->seconds = base_seconds_until(attempt->deadline);
    out->number = (uint32_t)attempt->number;
    out->doubt = attempt->doubt;
    snprintf(out->name, sizeof out->name, "%s", name);
}

static void set_condition(pipe_request *request, const shoal_etag *expected)
{
    request->conditional = expected != NULL;
    if (expected)
        request->expected = *expected;
}

/* What an answer says, as the status of the attempt. */
static int read_outcome(const pipe_calling *call, store_attempt *attempt)
{
    const pipe_answer *answer = &call->answer;
    attempt->cause = answer->cause;
    attempt->retry_after = answer->retry_after;
    return answer->status < 0 ? shoal_fail(answer->status, "%s", answer->message) : SHOAL_OK;
}

/* The sentence of a call that got no answer names what it was for. */
static int name_failure(const pipe_store *self, const char *name, int status)
{
    char why[512];
    snprintf(why, sizeof why, "%s", shoal_error());
    return store_fail(&self->store, name, status, "%s", why);
}

/* One request and its answer. */
static int ask_server(pipe_store *self, pipe_calling *call, store_attempt *attempt)
{
    shared_connection *shared = NULL;
    const char *name = call->request->name;
    int status = use_connection(&shared, self, attempt);
    if (status < 0)
        return name_failure(self, name, status);
    status = pipe_call_begin(shared->connection, call);
    if (status == SHOAL_AGAIN)
        attempt->cause = SHOAL_CAUSE_CUT;
    if (status == SHOAL_OK)
        status = pipe_call_end(shared->connection, call, attempt->deadline, &attempt->cause);
    status = status == SHOAL_OK ? read_outcome(call, attempt) : name_failure(self, name, status);
    if (status < 0)
        base_free(&call->memory);
    release_connection(self, shared);
    return status;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

/* Splits the path after the socket that is on it. */
static int find_socket(char **socket, char **rest, const store_url *url)
{
    size_t length = strlen(url->rest);
    for (size_t end = 1; end <= length; end++) {
        struct stat info;
        if (url->rest[end] != '/' && end < length)
            continue;
        base_free(socket);
        int status = base_copy_text_n(socket, url->rest, end);
        if (status < 0)
            return status;
        if (stat(*socket, &info) < 0)
            return shoal_fail(SHOAL_ABSENT, "%s: there is no socket at %s", url->text, *socket);
        if (S_ISSOCK(info.st_mode)) {
            while (length > end && url->rest[length - 1] == '/')
                length--;
            return base_copy_text_n(rest, url->rest + end + (end < length), length - end - (end < length));
        }
    }
    return shoal_fail(SHOAL_USAGE, "%s: there is no socket on that path; an agent creates one for its workers",
                      url->text);
}

static int open_pipe(shoal_store *base, char **rest, const store_url *url, const shoal_store_options *options,
                     store_attempt *attempt)
{
    pipe_store *self = (pipe_store *)base;
    pipe_request request;
    pipe_calling *call = NULL;
    const char *store = store_url_option(url, "store");
    int status = SHOAL_OK;
    (void)options;
    pthread_mutex_init(&self->lock, NULL);
    self->ready = true;
    self->data = store != NULL;
    if (store && strcmp(store, "data") != 0)
        status = shoal_fail(SHOAL_USAGE, "%s: store must be data or left out, not '%s'", url->text, store);
    if (status == SHOAL_OK)
        status = find_socket(&self->socket, rest, url);
    if (status == SHOAL_OK)
        status = base_format(&base->name, "pipe:%s", self->socket);
    if (status == SHOAL_OK)
        status = base_alloc(&call, 1, sizeof *call, "a request");
    if (status == SHOAL_OK) {
        fill_request(&request, self, PIPE_DESCRIBE, "", attempt);
        call->request = &request;
        status = ask_server(self, call, attempt);
    }
    if (status == SHOAL_OK) {
        self->class = *base->class;
        self->class.wakes = call->answer.wakes;
        if (!self->class.wakes) { /* there is nobody at the server who could wait */
            self->class.await = NULL;
            self->class.expect = NULL;
        }
        self->class.forgets = call->answer.forgets;
        self->class.counts_itself = call->answer.counts;
        base->class = &self->class;
    }
    base_free(&call);
    return status;
}

static void expect_pipe(shoal_store *base, const char *key);

static void close_pipe(shoal_store *base)
{
    pipe_store *self = (pipe_store *)base;
    if (self->ready)
        expect_pipe(base, NULL);
    if (self->current)
        release_connection(self, self->current);
    if (self->ready)
        pthread_mutex_destroy(&self->lock);
    base_free(&self->socket);
}

/* ---- getting ----------------------------------------------------------------------------------------------------- */

/* A get that is under way in pieces. */
typedef struct piece {
    pipe_request request;
    pipe_calling call;
    bool begun;
    size_t expected; /* bytes */
} piece;

typedef struct gathering {
    pipe_store *store;
    pipe_connection *connection;
    const char *key;
    store_attempt *attempt;
    piece pieces[PIECES_AT_ONCE];
} gathering;

/* The length of a get's n-th piece, of which `left` bytes are left.  The first ones are shorter, so that pieces which
 * are sent in turns do not end all at once, and with nothing under way. */
static size_t piece_size(size_t number, size_t left)
{
    size_t size = (number < PIECES_AT_ONCE ? number + 1 : PIECES_AT_ONCE) * PIECE;
    return size < left ? size : left;
}

static int begin_piece(gathering *self, piece *piece, int64_t offset, int64_t length, void *buffer,
                       const shoal_etag *expected, int64_t whole_length)
{
    memset(&piece->call, 0, sizeof piece->call);
    fill_request(&piece->request, self->store, PIPE_GET, self->key, self->attempt);
    piece->request.offset = offset;
    piece->request.length = length;
    set_condition(&piece->request, expected);
    piece->call.request = &piece->request;
    piece->call.buffer = buffer;
    piece->call.room = buffer ? (size_t)length : 0;
    piece->call.whole_length = whole_length;
    int status = pipe_call_begin(self->connection, &piece->call);
    if (status == SHOAL_AGAIN)
        self->attempt->cause = SHOAL_CAUSE_CUT;
    piece->begun = status == SHOAL_OK;
    return status < 0 ? name_failure(self->store, self->key, status) : SHOAL_OK;
}

static int end_piece(gathering *self, piece *piece, int64_t deadline)
{
    piece->begun = false;
    int status = pipe_call_end(self->connection, &piece->call, deadline, &self->attempt->cause);
    return status == SHOAL_OK ? read_outcome(&piece->call, self->attempt)
                              : name_failure(self->store, self->key, SHOAL_AGAIN);
}

/* The first piece tells how much there is.  *to is where all of it goes, *total its length. */
static int get_first(gathering *self, const store_range *range, unsigned char **to, size_t *total)
{
    piece *first = &self->pieces[0];
    int64_t most = self->store->store.most, wanted = range->length;
    if (most > 0 && !range->buffer && (wanted < 0 || wanted > most))
        wanted = most; /* what is more is refused once that is known */
    int64_t length = (int64_t)piece_size(0, wanted < 0 ? SIZE_MAX : (size_t)wanted);
    int status =
        begin_piece(self, first, range->offset, length, range->buffer, range->expected, range->buffer ? 0 : wanted);
    if (status < 0)
        return status;
    if (!pipe_call_head(self->connection, &first->call, self->attempt->deadline) || first->call.answer.status < 0) {
        status = end_piece(self, first, self->attempt->deadline);
        base_free(&first->call.memory);
        if (status == SHOAL_OK) /* it came while its end was looked for */
            status = store_fail(&self->store->store, self->key, SHOAL_AGAIN, "no answer came in time");
        return status;
    }
    int64_t left = first->call.answer.whole - range->offset;
    left = left < 0 ? 0 : range->length >= 0 && range->length < left ? range->length : left;
    *total = (size_t)left;
    *to = range->buffer ? range->buffer : first->call.memory;
    return range->buffer ? SHOAL_OK : store_check_size(&self->store->store, self->key, left);
}

/* The rest of it, some pieces at a time.  The first piece is under way. */
static int get_rest(gathering *self, const store_range *range, unsigned char *to, size_t total)
{
    const shoal_etag version = self->pieces[0].call.answer.etag;
    size_t asked = piece_size(0, total);
    int status = SHOAL_OK;
    for (size_t ended = 0, begun = 1; (ended < begun || asked < total) && status == SHOAL_OK;) {
        if (asked < total && begun < ended + PIECES_AT_ONCE) {
            size_t length = piece_size(begun, total - asked);
            piece *next = &self->pieces[begun++ % PIECES_AT_ONCE];
            status = begin_piece(self, next, range->offset + (int64_t)asked, (int64_t)length, to + asked, &version, 0);
            next->expected = length;
            asked += length;
            continue;
        }
        size_t number = ended++;
        piece *next = &self->pieces[number % PIECES_AT_ONCE];
        size_t expected = number == 0 ? piece_size(0, total) : next->expected;
        status = end_piece(self, next, self->attempt->deadline);
        bool changed = number > 0 && (status == SHOAL_CONFLICT || status == SHOAL_ABSENT);
        if (changed || (status == SHOAL_OK && next->call.size != expected)) {
            self->attempt->cause = SHOAL_CAUSE_RACE;
            status = store_fail(&self->store->store, self->key, SHOAL_AGAIN, "it was replaced while being fetched");
        }
    }
    return status;
}

/* None may be under way when their memory goes.  The message stays. */
static void abandon(gathering *self)
{
    char message[1024];
    shoal_cause ignored;
    snprintf(message, sizeof message, "%s", shoal_error());
    for (int i = 0; i < PIECES_AT_ONCE; i++)
        if (self->pieces[i].begun)
            (void)pipe_call_end(self->connection, &self->pieces[i].call, 0, &ignored);
    (void)shoal_fail(SHOAL_AGAIN, "%s", message);
}

static int get_pipe(shoal_store *base, const char *key, const store_range *range, shoal_blob *out,
                    store_attempt *attempt)
{
    pipe_store *self = (pipe_store *)base;
    shared_connection *shared = NULL;
    gathering *gathering = NULL;
    unsigned char *to = NULL, *memory = NULL;
    size_t total = 0;
    int status = use_connection(&shared, self, attempt);
    if (status < 0)
        return name_failure(self, key, status);
    status = base_alloc(&gathering, 1, sizeof *gathering, "a get");
    if (status == SHOAL_OK) {
        *gathering =
            (struct gathering){.store = self, .connection = shared->connection, .key = key, .attempt = attempt};
        status = get_first(gathering, range, &to, &total);
        pipe_answer *answer = &gathering->pieces[0].call.answer;
        out->etag = answer->etag;
        out->whole = answer->whole;
        out->age = answer->age;
        memory = range->buffer ? NULL : to;
        if (status == SHOAL_OK)
            status = get_rest(gathering, range, to, total);
    }
    if (status < 0 && gathering)
        abandon(gathering);
    if (status == SHOAL_OK && !range->buffer && !memory)
        status = base_alloc_unset(&memory, 1, 1, "a blob");
    if (status == SHOAL_OK) {
        out->data = out->memory = memory;
        out->size = total;
    } else {
        base_free(&memory);
    }
    base_free(&gathering);
    release_connection(self, shared);
    return status;
}

/* ---- putting, removing, listing ---------------------------------------------------------------------------------- */

/* A request that has only a name. */
static int ask_simply(shoal_store *base, pipe_call what, const char *name, pipe_calling *call, store_attempt *attempt)
{
    pipe_request request;
    fill_request(&request, (pipe_store *)base, what, name, attempt);
    call->request = &request;
    return ask_server((pipe_store *)base, call, attempt);
}

static int put_pipe(shoal_store *base, const char *key, const store_body *body, const shoal_etag *expected,
                    shoal_etag *etag, store_attempt *attempt)
{
    pipe_request request;
    pipe_calling call = {.request = &request, .body = body};
    fill_request(&request, (pipe_store *)base, PIPE_PUT, key, attempt);
    set_condition(&request, expected);
    int status = ask_server((pipe_store *)base, &call, attempt);
    if (status == SHOAL_OK)
        *etag = call.answer.etag;
    return status;
}

static int remove_pipe(shoal_store *base, const char *key, store_attempt *attempt)
{
    pipe_calling call = {0};
    return ask_simply(base, PIPE_REMOVE, key, &call, attempt);
}

static int list_pipe(shoal_store *base, const char *prefix, const char *after, shoal_listing *page,
                     store_attempt *attempt)
{
    pipe_request request;
    pipe_calling call = {.request = &request};
    fill_request(&request, (pipe_store *)base, PIPE_LIST, prefix, attempt);
    request.has_after = after != NULL;
    snprintf(request.after, sizeof request.after, "%s", after ? after : "");
    snprintf(request.marker, sizeof request.marker, "%s", page->marker ? page->marker : "");
    request.page = (uint32_t)base->page_keys;
    base_free(&page->marker);
    int status = ask_server((pipe_store *)base, &call, attempt);
    if (status == SHOAL_OK)
        status = pipe_entries_read(page, call.memory, call.size);
    page->more = status == SHOAL_OK && call.answer.more;
    if (page->more)
        status = base_copy_text(&page->marker, call.answer.marker);
    base_free(&call.memory);
    return status;
}

/* ---- queues ------------------------------------------------------------------------------------------------------ */

static int push_pipe(shoal_store *base, const char *queue, const store_body *body, store_attempt *attempt)
{
    pipe_calling call = {.body = body};
    return ask_simply(base, PIPE_PUSH, queue, &call, attempt);
}

static int take_pipe(shoal_store *base, const char *queue, double lease, shoal_message *out, store_attempt *attempt)
{
    pipe_request request;
    pipe_calling call = {.request = &request};
    fill_request(&request, (pipe_store *)base, PIPE_TAKE, queue, attempt);
    request.lease = lease;
    int status = ask_server((pipe_store *)base, &call, attempt);
    if (status == SHOAL_OK && !call.memory)
        status = base_alloc_unset(&call.memory, 1, 1, "a message");
    if (status < 0)
        return status;
    out->data = call.memory;
    out->size = call.size;
    out->deliveries = call.answer.number;
    memcpy(out->receipt, call.answer.receipt, sizeof out->receipt);
    return SHOAL_OK;
}

static int ask_holding(shoal_store *base, pipe_call what, const char *queue, shoal_message *message, double lease,
                       store_attempt *attempt)
{
    pipe_request request;
    pipe_calling call = {.request = &request};
    fill_request(&request, (pipe_store *)base, what, queue, attempt);
    request.lease = lease;
    request.lease_left = base_seconds_until(message->lease_ends);
    memcpy(request.receipt, message->receipt, sizeof request.receipt);
    int status = ask_server((pipe_store *)base, &call, attempt);
    if (status == SHOAL_OK && what == PIPE_EXTEND)
        memcpy(message->receipt, call.answer.receipt, sizeof message->receipt);
    return status;
}

static int extend_pipe(shoal_store *base, const char *queue, shoal_message *message, double lease,
                       store_attempt *attempt)
{
    return ask_holding(base, PIPE_EXTEND, queue, message, lease, attempt);
}

static int finish_pipe(shoal_store *base, const char *queue, shoal_message *message, store_attempt *attempt)
{
    return ask_holding(base, PIPE_FINISH, queue, message, 0, attempt);
}

static int count_pipe(shoal_store *base, const char *queue, int64_t *out, store_attempt *attempt)
{
    pipe_calling call = {0};
    int status = ask_simply(base, PIPE_COUNT, queue, &call, attempt);
    *out = status == SHOAL_OK ? call.answer.number : 0;
    return status;
}

static int drop_pipe(shoal_store *base, const char *queue, store_attempt *attempt)
{
    pipe_calling call = {0};
    return ask_simply(base, PIPE_DROP, queue, &call, attempt);
}

/* ---- waiting ----------------------------------------------------------------------------------------------------- */

/* Waits where the store is.  When the link breaks it is unknown what changed meanwhile: the caller looks again. */
static int wait_pipe(shoal_store *base, const char *name, uint32_t *seen, int64_t deadline)
{
    store_attempt attempt = {.deadline = deadline};
    pipe_request request;
    pipe_calling call = {.request = &request};
    fill_request(&request, (pipe_store *)base, PIPE_WAIT, name, &attempt);
    request.seen = *seen;
    int status = ask_server((pipe_store *)base, &call, &attempt);
    if (status == SHOAL_OK) {
        *seen = call.answer.seen;
        return SHOAL_OK;
    }
    if (status != SHOAL_AGAIN && status != SHOAL_UNKNOWN)
        return status;
    if (base_now() >= deadline)
        return shoal_fail(SHOAL_AGAIN, "nothing changed in time");
    int64_t soon = base_time_after(base_now(), WAIT_WHEN_CUT);
    base_sleep_until(soon < deadline ? soon : deadline);
    *seen = 0;
    return SHOAL_OK;
}

/* ---- awaiting ---------------------------------------------------------------------------------------------------- */

/* Sends a get that waits for its key where the store is. */
static int begin_expectation(expectation **out, pipe_store *self, const char *key)
{
    expectation *fresh = NULL;
    const store_attempt attempt = {.deadline = base_time_after(base_now(), EXPECT_SECONDS), .number = 1};
    int status = base_alloc(&fresh, 1, sizeof *fresh, "a get");
    if (status == SHOAL_OK)
        status = use_connection(&fresh->shared, self, NULL);
    if (status == SHOAL_OK) {
        fill_request(&fresh->request, self, PIPE_GET, key, &attempt);
        fresh->request.length = AWAITED_MOST;
        fresh->request.patient = true;
        fresh->call.request = &fresh->request;
        fresh->call.lazy = true;
        status = pipe_call_begin(fresh->shared->connection, &fresh->call);
        if (status < 0)
            release_connection(self, fresh->shared);
    }
    if (status < 0)
        base_free(&fresh);
    *out = fresh;
    return status;
}

/* Ends it, answered or not. */
static void end_expectation(pipe_store *self, expectation *old)
{
    shoal_cause ignored;
    (void)pipe_call_end(old->shared->connection, &old->call, 0, &ignored);
    base_free(&old->call.memory);
    release_connection(self, old->shared);
    base_free(&old);
}

/* One that nobody waits for. */
static expectation *find_expectation(const pipe_store *self, const char *key)
{
    expectation *each = self->expectations;
    while (each && (each->busy || strcmp(each->request.name, key) != 0))
        each = each->next;
    return each;
}

static void add_expectation(pipe_store *self, expectation *fresh)
{
    fresh->next = self->expectations;
    self->expectations = fresh;
    self->expected++;
}

static void take_expectation(pipe_store *self, const expectation *taken)
{
    expectation **place = &self->expectations;
    while (*place != taken)
        place = &(*place)->next;
    *place = taken->next;
    self->expected--;
}

/* One after the other, since ending one may wait for the link's lock. */
static void give_up_all(pipe_store *self)
{
    for (;;) {
        pthread_mutex_lock(&self->lock);
        expectation *each = self->expectations;
        while (each && each->busy)
            each = each->next;
        if (each)
            take_expectation(self, each);
        pthread_mutex_unlock(&self->lock);
        if (!each)
            return;
        end_expectation(self, each);
    }
}

static void expect_pipe(shoal_store *base, const char *key)
{
    pipe_store *self = (pipe_store *)base;
    expectation *fresh = NULL;
    if (!key) {
        give_up_all(self);
        return;
    }
    pthread_mutex_lock(&self->lock);
    bool enough = self->expected >= EXPECTED_MOST || find_expectation(self, key);
    pthread_mutex_unlock(&self->lock);
    if (enough || begin_expectation(&fresh, self, key) < 0)
        return; /* the call that awaits it learns why */
    pthread_mutex_lock(&self->lock);
    add_expectation(self, fresh);
    pthread_mutex_unlock(&self->lock);
}

/* The expectation of a key, which is this caller's from now on: one that was sent before, or a fresh one. */
static int hold_expectation(expectation **out, pipe_store *self, const char *key)
{
    pthread_mutex_lock(&self->lock);
    *out = find_expectation(self, key);
    if (*out)
        (*out)->busy = true;
    pthread_mutex_unlock(&self->lock);
    if (*out)
        return SHOAL_OK;
    int status = begin_expectation(out, self, key);
    if (status < 0)
        return status;
    pthread_mutex_lock(&self->lock);
    (*out)->busy = true;
    add_expectation(self, *out);
    pthread_mutex_unlock(&self->lock);
    return SHOAL_OK;
}

/* What the answer brought; the memory is the blob's then. */
static int take_answer(expectation *held, shoal_blob *out, store_attempt *attempt)
{
    pipe_calling *call = &held->call;
    int status = pipe_call_end(held->shared->connection, call, 0, &attempt->cause);
    if (status < 0)
        return SHOAL_AGAIN; /* nothing was to be changed, so that it may be asked again */
    status = read_outcome(call, attempt);
    if (status == SHOAL_OK && !call->memory)
        status = base_alloc_unset(&call->memory, 1, 1, "a blob");
    if (status < 0)
        return status;
    out->data = out->memory = call->memory;
    out->size = call->size;
    out->etag = call->answer.etag;
    out->whole = call->answer.whole;
    out->age = call->answer.age;
    call->memory = NULL;
    return SHOAL_OK;
}

/* Waits for the answer of one get.  SHOAL_ABSENT: the key was not there in time, or not for as long as the get
 * waited. */
static int await_once(pipe_store *self, const char *key, int64_t until, shoal_blob *out, store_attempt *attempt)
{
    expectation *held = NULL;
    int status = hold_expectation(&held, self, key);
    if (status < 0) {
        attempt->cause = SHOAL_CAUSE_UNREACHABLE;
        return name_failure(self, key, status);
    }
    bool came = pipe_call_done(held->shared->connection, &held->call, until);
    pthread_mutex_lock(&self->lock);
    bool stays = !came && self->expected <= EXPECTED_MOST;
    held->busy = false;
    if (!stays)
        take_expectation(self, held);
    pthread_mutex_unlock(&self->lock);
    bool cut = came && held->call.lost;
    if (came)
        status = take_answer(held, out, attempt);
    if (!stays)
        end_expectation(self, held);
    if (cut)
        status = name_failure(self, key, status);
    return came ? status : store_fail(&self->store, key, SHOAL_ABSENT, "it did not appear in time");
}

static int await_pipe(shoal_store *base, const char *key, int64_t until, shoal_blob *out, store_attempt *attempt)
{
    pipe_store *self = (pipe_store *)base;
    const store_range all = {.length = -1};
    pthread_mutex_lock(&self->lock);
    bool expected = find_expectation(self, key) != NULL;
    pthread_mutex_unlock(&self->lock);
    if (!expected && base_now() >= until) /* there is nothing to wait for */
        return get_pipe(base, key, &all, out, attempt);
    int status;
    do {
        status = await_once(self, key, until, out, attempt);
    } while (status == SHOAL_ABSENT && base_now() < until);
    if (status == SHOAL_OK && (int64_t)out->size < out->whole) { /* it is a large one */
        shoal_blob_release(out);
        *out = (shoal_blob){.age = -1};
        status = get_pipe(base, key, &all, out, attempt);
    }
    return status;
}

static int discard_pipe(shoal_store *base, const char *key)
{
    pipe_store *self = (pipe_store *)base;
    shared_connection *shared = NULL;
    pipe_request request;
    fill_request(&request, self, PIPE_DISCARD, key,
                 &(store_attempt){.deadline = base_time_after(base_now(), EXPECT_SECONDS), .number = 1});
    if (use_connection(&shared, self, NULL) < 0)
        return SHOAL_OK; /* what is not removed is found by the next one that looks */
    (void)pipe_call_post(shared->connection, &request);
    release_connection(self, shared);
    return SHOAL_OK;
}

static const char *const options_pipe[] = {"store", NULL};

const struct store_class store_pipe = {
    .scheme = "pipe",
    .size = sizeof(struct pipe_store),
    .wakes = true,
    .far = true,
    .options = options_pipe,
    .open = open_pipe,
    .close = close_pipe,
    .get = get_pipe,
    .put = put_pipe,
    .remove = remove_pipe,
    .list = list_pipe,
    .push = push_pipe,
    .take = take_pipe,
    .extend = extend_pipe,
    .finish = finish_pipe,
    .count = count_pipe,
    .drop = drop_pipe,
    .wait = wait_pipe,
    .await = await_pipe,
    .expect = expect_pipe,
    .discard = discard_pipe,
};
