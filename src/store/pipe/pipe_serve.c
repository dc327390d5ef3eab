/* What the server does for each call: one attempt at the store, made with the raw calls of its class, so that frames
 * and put ids pass unchanged and the caller decides what to do next.
 *
 * Of the store the far end sees what belongs to its job, and of the store of the rows the one key they are in: every
 * name goes through pipe_full_name, and every key of a listing through is_shown. */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/world.h"
#include "store/pipe/pipe_server_internal.h"

enum { PAGE_MOST = 1000 };
static const double LEASE_MOST = 7 * 24 * 3600;

/* ---- names ------------------------------------------------------------------------------------------------------- */

static shoal_store *store_of(const pipe_server *self, const pipe_task *task)
{
    return task->request.data ? self->options.data : self->options.store;
}

/* Each segment by itself is as the rules of keys say.  What starts with ".shoal" may come: queues that the caller makes
 * of blobs. */
static int check_name(const char *name, bool whole)
{
    char segment[SHOAL_KEY_MOST + 1];
    for (;;) {
        size_t length = strcspn(name, "/");
        bool last = name[length] == '\0';
        int status = SHOAL_OK;
        if (length > SHOAL_KEY_MOST)
            return shoal_fail(SHOAL_USAGE, "a part of the key '%.40s...' is longer than %d bytes", name,
                              SHOAL_KEY_MOST);
        snprintf(segment, sizeof segment, "%.*s", (int)length, name);
        if (strcmp(segment, ".shoal") != 0)
            status = last && !whole ? store_prefix_check(segment) : store_key_check(segment);
        if (status < 0 || last)
            return status;
        name += length + 1;
    }
}

static int full_name(char out[PIPE_FULL_NAME], const shoal_store *store, const char *name, bool whole)
{
    int status = check_name(name, whole);
    if (status == SHOAL_OK && snprintf(out, PIPE_FULL_NAME, "%s%s", store->prefix, name) >= PIPE_FULL_NAME)
        status = shoal_fail(SHOAL_USAGE, "the key '%.40s...' is too long", name);
    return status;
}

/* Whether a name is ID, or below it, after `start`. */
static bool belongs(const char *name, const char *start, const char *id)
{
    size_t length = strlen(start), more = strlen(id);
    return strncmp(name, start, length) == 0 && strncmp(name + length, id, more) == 0 &&
           (name[length + more] == '\0' || name[length + more] == '/');
}

/* Whether the far end may see what has this name: of the job's, all; queues may be made of blobs by who asks. */
static bool is_shown(const pipe_server *self, bool data, const char *name)
{
    const char *job = self->options.job;
    if (data)
        return !self->options.data_key || strcmp(name, self->options.data_key) == 0;
    return !job || belongs(name, "jobs/", job) || belongs(name, "open/", job) || belongs(name, "gone/", job) ||
           belongs(name, ".shoal/queue/jobs/", job) ||
           (self->options.shared && strncmp(name, self->options.shared, strlen(self->options.shared)) == 0);
}

int pipe_full_name(char full[PIPE_FULL_NAME], const pipe_server *self, const pipe_task *task, bool whole)
{
    const shoal_store *store = store_of(self, task);
    int status = full_name(full, store, task->request.name, whole);
    if (status == SHOAL_OK && !is_shown(self, task->request.data, task->request.name))
        status = store_fail(store, task->request.name, SHOAL_DENIED, "it does not belong to the job");
    return status;
}

/* ---- blobs ------------------------------------------------------------------------------------------------------- */

static store_attempt attempt_of(const pipe_task *task)
{
    return (store_attempt){
        .deadline = task->deadline, .number = (int)task->request.number, .doubt = task->request.doubt};
}

/* How an attempt went, into the answer. */
static void write_outcome(pipe_answer *answer, int status, const store_attempt *attempt)
{
    answer->status = status;
    answer->cause = attempt->cause;
    answer->retry_after = attempt->retry_after;
}

static void fill_get(pipe_answer *answer, const shoal_blob *blob)
{
    answer->etag = blob->etag;
    answer->whole = blob->whole;
    answer->age = blob->age;
}

/* Looks at the present version, and whether the bytes need not be sent.  True: that is the answer. */
static bool get_same(pipe_server *self, pipe_task *task, shoal_store *store, const char *name, pipe_answer *answer)
{
    const pipe_request *request = &task->request;
    const store_range nothing = {.offset = request->offset,
                                 .expected = request->conditional ? &request->expected : NULL};
    store_attempt attempt = attempt_of(task);
    shoal_blob blob = {.age = -1};
    if (!request->known.text[0] && request->same_as == 0)
        return false;
    int status = store->class->get(store, name, &nothing, &blob, &attempt);
    if (status == SHOAL_OK) {
        fill_get(answer, &blob);
        answer->same = pipe_has_already(self, request, &blob.etag);
    }
    shoal_blob_release(&blob);
    return answer->same > 0;
}

/* Sends what a get found. */
static void reply_get(pipe_server *self, pipe_task *task, pipe_answer *answer, shoal_blob *blob)
{
    if (answer->status == SHOAL_OK)
        fill_get(answer, blob);
    pipe_reply(self, task, answer, blob, NULL, answer->status == SHOAL_OK ? blob->size : 0);
}

/* Makes the attempt for at most `most` bytes of what was asked for. */
static void attempt_get(shoal_store *store, const char *name, const pipe_task *task, int64_t most, shoal_blob *out,
                        pipe_answer *answer)
{
    const pipe_request *request = &task->request;
    int64_t length = request->length < most ? request->length : most;
    int64_t end = INT64_MAX - request->offset; /* so that stores may add the two */
    const store_range range = {.offset = request->offset,
                               .length = length < end ? length : end,
                               .expected = request->conditional ? &request->expected : NULL};
    store_attempt attempt = attempt_of(task);
    *out = (shoal_blob){.age = -1};
    write_outcome(answer, store->class->get(store, name, &range, out, &attempt), &attempt);
}

static void serve_get(pipe_server *self, pipe_task *task, shoal_store *store, const char *name)
{
    pipe_answer answer = {.status = SHOAL_OK};
    shoal_blob blob;
    if (!task->looked && get_same(self, task, store, name, &answer)) {
        pipe_reply_short(self, task, &answer);
        return;
    }
    attempt_get(store, name, task, INT64_MAX, &blob, &answer);
    if (answer.status != SHOAL_ABSENT || !pipe_wait_park(self, task))
        reply_get(self, task, &answer, &blob);
}

/* A get of a store that answers at once: whether it was little enough to be answered here. */
static bool get_quickly(pipe_server *self, pipe_task *task, shoal_store *store, const char *name)
{
    pipe_answer answer = {.status = SHOAL_OK};
    shoal_blob blob;
    task->looked = true;
    if (get_same(self, task, store, name, &answer)) {
        pipe_reply_short(self, task, &answer);
        return true;
    }
    attempt_get(store, name, task, PIPE_LARGE, &blob, &answer);
    if (answer.status == SHOAL_OK && task->request.length > PIPE_LARGE &&
        blob.whole - task->request.offset > PIPE_LARGE) {
        shoal_blob_release(&blob); /* there is more of it: not here */
        return false;
    }
    if (answer.status != SHOAL_ABSENT || !pipe_wait_park(self, task))
        reply_get(self, task, &answer, &blob);
    return true;
}

static store_body body_of(const pipe_task *task)
{
    return (store_body){{{NULL, 0}, {task->body, task->body_size}}};
}

static void serve_put(pipe_server *self, pipe_task *task, shoal_store *store, const char *name)
{
    const pipe_request *request = &task->request;
    store_attempt attempt = attempt_of(task);
    pipe_answer answer = {.status = SHOAL_OK};
    store_body body = body_of(task);
    write_outcome(
        &answer,
        store->class->put(store, name, &body, request->conditional ? &request->expected : NULL, &answer.etag, &attempt),
        &attempt);
    if (answer.status == SHOAL_OK)
        pipe_watch_changed(self);
    pipe_reply_short(self, task, &answer);
}

static void serve_remove(pipe_server *self, pipe_task *task, shoal_store *store, const char *name)
{
    store_attempt attempt = attempt_of(task);
    pipe_answer answer = {.status = SHOAL_OK};
    write_outcome(&answer, store->class->remove(store, name, &attempt), &attempt);
    pipe_reply_short(self, task, &answer);
}

/* Where the next page begins: 'm' and what the store says, or 'k' and the last key, when the page was cut here. */
static int mark_next_page(pipe_answer *answer, const shoal_listing *page, const char *last, bool cut)
{
    int size = 0;
    answer->more = page->more || cut;
    if (cut || (page->more && !page->marker))
        size = snprintf(answer->marker, sizeof answer->marker, "k%s", last);
    else if (page->more)
        size = snprintf(answer->marker, sizeof answer->marker, "m%s", page->marker);
    if (size >= (int)sizeof answer->marker)
        return shoal_fail(SHOAL_INVALID, "the store's page marker is too long");
    return SHOAL_OK;
}

/* The entries below the store's prefix, without it.  What was not asked for, or is not to be seen, is left out:
 * "jobs/a" is the start of keys of the job ab, too, and a marker can be anything. */
static int write_page(base_writer *out, pipe_answer *answer, const shoal_listing *page, const pipe_server *self,
                      const pipe_task *task)
{
    const pipe_request *request = &task->request;
    const char *prefix = store_of(self, task)->prefix, *last = "";
    uint32_t most = request->page < 1 || request->page > PAGE_MOST ? PAGE_MOST : request->page;
    size_t length = strlen(prefix), named = strlen(request->name), kept = 0;
    for (; kept < page->count && kept < most; kept++) {
        shoal_entry entry = page->entries[kept];
        if (strncmp(entry.key, prefix, length) != 0)
            continue;
        entry.key += length;
        last = entry.key;
        if (strncmp(entry.key, request->name, named) == 0 && is_shown(self, request->data, entry.key))
            pipe_entry_write(out, &entry);
    }
    return out->status < 0 ? out->status : mark_next_page(answer, page, last, kept < page->count);
}

static void serve_list(pipe_server *self, pipe_task *task, shoal_store *store, const char *name)
{
    const pipe_request *request = &task->request;
    const char *after = request->has_after ? request->after : NULL;
    store_attempt attempt = attempt_of(task);
    pipe_answer answer = {.status = SHOAL_OK};
    shoal_listing page = {0};
    base_writer out = {0};
    void *bytes = NULL;
    size_t size = 0;
    char full[PIPE_FULL_NAME];
    if (request->marker[0] == 'k')
        after = request->marker + 1;
    int status = after ? full_name(full, store, after, false) : SHOAL_OK;
    if (status == SHOAL_OK && request->marker[0] == 'm')
        status = base_copy_text(&page.marker, request->marker + 1);
    if (status == SHOAL_OK)
        status = store->class->list(store, name, after ? full : NULL, &page, &attempt);
    if (status == SHOAL_OK)
        status = write_page(&out, &answer, &page, self, task);
    if (status == SHOAL_OK)
        status = base_writer_take(&out, &bytes, &size);
    write_outcome(&answer, status, &attempt);
    base_writer_release(&out);
    shoal_listing_release(&page);
    pipe_reply(self, task, &answer, NULL, bytes, size);
}

/* ---- queues ------------------------------------------------------------------------------------------------------ */

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

static void serve_push(pipe_server *self, pipe_task *task, shoal_store *store, const char *name)
{
    store_attempt attempt = attempt_of(task);
    pipe_answer answer = {.status = SHOAL_OK};
    store_body body = body_of(task);
    write_outcome(&answer,
                  store->blob_queue ? store_blobs_push(store, name, task->body, task->body_size, task->deadline)
                                    : store->class->push(store, name, &body, &attempt),
                  &attempt);
    if (answer.status == SHOAL_OK)
        pipe_watch_changed(self);
    pipe_reply_short(self, task, &answer);
}

static void serve_take(pipe_server *self, pipe_task *task, shoal_store *store, const char *name)
{
    double lease = task->request.lease;
    store_attempt attempt = attempt_of(task);
    pipe_answer answer = {.status = SHOAL_OK};
    shoal_message message = {.lease_ends = base_time_after(base_now(), lease)};
    int status = check_lease(store, name, lease, 1);
    if (status == SHOAL_OK)
        status = store->blob_queue ? store_blobs_take(store, name, lease, &message, task->deadline)
                                   : store->class->take(store, name, lease, &message, &attempt);
    write_outcome(&answer, status, &attempt);
    answer.number = message.deliveries;
    memcpy(answer.receipt, message.receipt, sizeof answer.receipt);
    void *bytes = status == SHOAL_OK ? message.data : NULL;
    size_t size = status == SHOAL_OK ? message.size : 0;
    if (bytes)
        message.data = NULL;
    shoal_message_release(&message);
    pipe_reply(self, task, &answer, NULL, bytes, size);
}

static void serve_extend(pipe_server *self, pipe_task *task, shoal_store *store, const char *name)
{
    double lease = task->request.lease;
    store_attempt attempt = attempt_of(task);
    pipe_answer answer = {.status = SHOAL_OK};
    shoal_message message = message_of(&task->request);
    int status = check_lease(store, name, lease, 0);
    if (status == SHOAL_OK)
        status = store->blob_queue ? store_blobs_extend(store, name, &message, lease, task->deadline)
                                   : store->class->extend(store, name, &message, lease, &attempt);
    write_outcome(&answer, status, &attempt);
    memcpy(answer.receipt, message.receipt, sizeof answer.receipt);
    pipe_reply_short(self, task, &answer);
}

static void serve_finish(pipe_server *self, pipe_task *task, shoal_store *store, const char *name)
{
    store_attempt attempt = attempt_of(task);
    pipe_answer answer = {.status = SHOAL_OK};
    shoal_message message = message_of(&task->request);
    write_outcome(&answer,
                  store->blob_queue ? store_blobs_finish(store, name, &message, task->deadline)
                                    : store->class->finish(store, name, &message, &attempt),
                  &attempt);
    pipe_reply_short(self, task, &answer);
}

static void serve_count(pipe_server *self, pipe_task *task, shoal_store *store, const char *name)
{
    store_attempt attempt = attempt_of(task);
    pipe_answer answer = {.status = SHOAL_OK};
    write_outcome(&answer,
                  store->blob_queue ? store_blobs_count(store, name, &answer.number, task->deadline)
                                    : store->class->count(store, name, &answer.number, &attempt),
                  &attempt);
    pipe_reply_short(self, task, &answer);
}

static void serve_drop(pipe_server *self, pipe_task *task, shoal_store *store, const char *name)
{
    store_attempt attempt = attempt_of(task);
    pipe_answer answer = {.status = SHOAL_OK};
    write_outcome(&answer,
                  store->blob_queue ? store_blobs_drop(store, name, task->deadline)
                                    : store->class->drop(store, name, &attempt),
                  &attempt);
    pipe_reply_short(self, task, &answer);
}

/* ---- who does what ----------------------------------------------------------------------------------------------- */

void pipe_serve_describe(pipe_server *self, pipe_task *task)
{
    const shoal_store *store = store_of(self, task);
    shoal_store_traits traits = shoal_store_describe(store);
    pipe_answer answer = {.status = SHOAL_OK,
                          .wakes = traits.wakes && !task->request.data,
                          .counts = store->class->counts_itself,
                          .forgets = traits.forgets};
    snprintf(answer.store, sizeof answer.store, "%s", traits.name);
    pipe_reply_short(self, task, &answer);
}

/* The same; what may not be asked is answered, and false. */
static bool may_serve(pipe_server *self, pipe_task *task, char full[PIPE_FULL_NAME])
{
    shoal_store *store = store_of(self, task);
    pipe_call call = task->request.call;
    bool reads = call == PIPE_GET || call == PIPE_LIST || call == PIPE_COUNT;
    int status = pipe_full_name(full, self, task, call != PIPE_LIST);
    if (status == SHOAL_OK && task->request.data && !reads)
        status = store_fail(store, task->request.name, SHOAL_DENIED, "the store of the rows is read-only");
    if (status < 0)
        pipe_refuse(self, task, status);
    return status == SHOAL_OK;
}

void pipe_serve(pipe_server *self, pipe_task *task)
{
    static void (*const serves[PIPE_CALLS])(pipe_server *, struct pipe_task *, shoal_store *, const char *) = {
        [PIPE_GET] = serve_get,       [PIPE_PUT] = serve_put,        [PIPE_REMOVE] = serve_remove,
        [PIPE_LIST] = serve_list,     [PIPE_PUSH] = serve_push,      [PIPE_TAKE] = serve_take,
        [PIPE_EXTEND] = serve_extend, [PIPE_FINISH] = serve_finish,  [PIPE_COUNT] = serve_count,
        [PIPE_DROP] = serve_drop,     [PIPE_DISCARD] = serve_remove,
    };
    char full[PIPE_FULL_NAME];
    if (may_serve(self, task, full))
        serves[task->request.call](self, task, store_of(self, task), full);
}

bool pipe_serve_quickly(pipe_server *self, pipe_task *task)
{
    shoal_store *store = store_of(self, task);
    pipe_call call = task->request.call;
    bool memory = store->class == &store_memory;
    char full[PIPE_FULL_NAME];
    if (call == PIPE_GET && (memory || store->class == &store_folder))
        return !may_serve(self, task, full) || get_quickly(self, task, store, full);
    if (memory && call != PIPE_LIST) {
        pipe_serve(self, task);
        return true;
    }
    return false;
}
