/* What the server answers.
 *
 * The bytes of answers are lent to the link, which gives them back when they are sent; how many are lent decides when
 * further large answers are looked for.  Which version an answer brought is remembered for a while, so that a hub which
 * asks for the same again is told so and gets no bytes. */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "store/pipe/pipe_server_internal.h"

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
    if (self->bulky.first)
        pthread_cond_signal(&self->work);
    pthread_mutex_unlock(&self->lock);
    shoal_blob_release(&lent->blob);
    base_free(&lent->bytes);
    base_free(&lent);
}

/* Whether the answer is still wanted. */
static bool is_wanted(pipe_server *self, const pipe_task *task)
{
    pthread_mutex_lock(&self->lock);
    bool wanted = !task->cancelled && !self->stop && task->request.call != PIPE_DISCARD;
    pthread_mutex_unlock(&self->lock);
    return wanted;
}

static void remember_version(pipe_server *self, uint32_t stream, const shoal_etag *etag)
{
    pthread_mutex_lock(&self->lock);
    self->recent[stream % PIPE_RECENT].stream = stream;
    self->recent[stream % PIPE_RECENT].etag = *etag;
    pthread_mutex_unlock(&self->lock);
}

void pipe_go_on_behind(pipe_server *self, uint32_t stream)
{
    pipe_task *next;
    do {
        pthread_mutex_lock(&self->lock);
        next = self->tasks;
        while (next && !(next->state == TASK_BEHIND && next->request.same_as == stream))
            next = next->next;
        if (next)
            next->state = TASK_RUNS;
        pthread_mutex_unlock(&self->lock);
        if (next)
            pipe_task_begin(self, next);
    } while (next);
}

/* Lends bytes to a message, which gives them back when they are sent. */
static int lend_bytes(pipe_server *self, pipe_message *message, shoal_blob *blob, void *bytes, size_t size)
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
static bool send_answer(pipe_server *self, const pipe_task *task, pipe_answer *answer, shoal_blob *blob, void *bytes,
                        size_t size)
{
    pipe_message message = {.stream = task->stream};
    base_writer head = {0};
    int status = size > 0 ? lend_bytes(self, &message, blob, bytes, size) : SHOAL_OK;
    if (status < 0)
        *answer = (pipe_answer){.status = status};
    if (answer->status < 0)
        snprintf(answer->message, sizeof answer->message, "%.*s", PIPE_MESSAGE_MOST - 1, shoal_error());
    pipe_answer_write(&head, task->request.call, answer);
    message.head = head.data;
    message.head_size = head.size;
    status = head.status;
    if (status == SHOAL_OK) {
        status = pipe_link_send(self->link, &message); /* a dead link tells by its event */
    } else {
        pipe_link_fail(self->link, shoal_error());
        if (message.owner)
            give_back(message.owner, size);
    }
    base_writer_release(&head);
    return status == SHOAL_OK;
}

void pipe_reply(pipe_server *self, pipe_task *task, pipe_answer *answer, shoal_blob *blob, void *bytes, size_t size)
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
    /* Remembered after the answer, so that a client told "the same as that" has been told that; and while the task is
     * still known, so that a request for the same finds one or the other. */
    if (sent && gets && size > PIPE_SHORT_MOST)
        remember_version(self, stream, &answer->etag);
    pthread_mutex_lock(&self->lock);
    pipe_task_remove(self, task);
    pthread_mutex_unlock(&self->lock);
    if (leads)
        pipe_go_on_behind(self, stream);
}

void pipe_reply_short(pipe_server *self, pipe_task *task, pipe_answer *answer)
{
    pipe_reply(self, task, answer, NULL, NULL, 0);
}

void pipe_refuse(pipe_server *self, pipe_task *task, int status)
{
    pipe_answer answer = {.status = status, .cause = status == SHOAL_AGAIN ? SHOAL_CAUSE_BUSY : SHOAL_CAUSE_NONE};
    pipe_reply_short(self, task, &answer);
}

uint8_t pipe_has_already(pipe_server *self, const pipe_request *request, const shoal_etag *etag)
{
    if (request->known.text[0] && strcmp(request->known.text, etag->text) == 0)
        return 1;
    if (request->same_as == 0)
        return 0;
    pthread_mutex_lock(&self->lock);
    bool same = self->recent[request->same_as % PIPE_RECENT].stream == request->same_as &&
                strcmp(self->recent[request->same_as % PIPE_RECENT].etag.text, etag->text) == 0;
    pthread_mutex_unlock(&self->lock);
    return same ? 2 : 0;
}
