/* Queues in Azure.
 *
 * A message is Base64 of a byte that says what follows and either the body itself or, for a body that would not fit,
 * the random end of the name of a blob that holds it, framed, below .shoal/bodies/ of the store's prefix.  That blob
 * is put before the message and removed after it, so that a message always has its body.
 *
 * A receipt is "ID\nPOP-RECEIPT\nBLOB": every update of a message gives another pop receipt. */
#include "azure_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc.h"
#include "base/hex.h"
#include "base/memory.h"
#include "base/world.h"
#include "store/xml.h"

enum {
    INLINE_MOST = (48 << 10) - 64, /* a message has at most 64 KiB of text */
    BODY_NAME = 33,
    KIND_BODY = SHOAL_KIND('b', 'o', 'd', 'y'),
};
static const char inside = 'i', beside = 'b'; /* the first byte */

/* ---- bodies that are blobs --------------------------------------------------------------------------------------- */

static int body_key(const azure_store *store, const char *queue, const char *name, char **out)
{
    char folder[AZURE_QUEUE_NAME];
    azure_queue_name(folder, store->container, queue);
    return base_format(out, "%s.shoal/bodies/%s/%s", store->base.prefix ? store->base.prefix : "", folder, name);
}

/* Puts the body as a blob whose name's end goes to `name`. */
static int put_body(azure_store *store, const char *queue, const store_body *body, char name[BODY_NAME],
                    store_attempt *attempt)
{
    unsigned char head[SHOAL_FRAME_BYTES], random[(BODY_NAME - 1) / 2];
    const struct iovec *first = &body->part[0], *second = &body->part[1];
    char *key = NULL, *joined = NULL;
    shoal_etag etag;
    base_entropy(random, sizeof random);
    base_hex_write(name, random, sizeof random);
    store_frame frame = {.kind = KIND_BODY, .length = store_body_size(body)};
    frame.crc = base_crc32c(base_crc32c(0, first->iov_base, first->iov_len), second->iov_base, second->iov_len);
    memcpy(frame.put_id, random, sizeof frame.put_id);
    store_frame_write(head, &frame);
    store_body framed = {{{head, sizeof head}, first->iov_len ? *first : *second}};
    int status = body_key(store, queue, name, &key);
    if (status == SHOAL_OK && first->iov_len && second->iov_len) { /* there are only two parts: join these */
        status = base_alloc_unset(&joined, store_body_size(body), 1, "a message");
        if (status == SHOAL_OK) {
            memcpy(joined, first->iov_base, first->iov_len);
            memcpy(joined + first->iov_len, second->iov_base, second->iov_len);
            framed.part[1] = (struct iovec){joined, store_body_size(body)};
        }
    }
    if (status == SHOAL_OK)
        status = put_azure(&store->base, key, &framed, NULL, &etag, attempt);
    base_free(&joined);
    base_free(&key);
    return status;
}

/* Fetches it into the message, asking again until the deadline: the message is ours already. */
static int get_body(azure_store *store, const char *queue, const char *name, shoal_message *out, int64_t deadline)
{
    shoal_blob blob = {0};
    char *key = NULL;
    int status = body_key(store, queue, name, &key);
    if (status == SHOAL_OK)
        status = store_get_framed(&store->base, key, KIND_BODY, &blob, deadline);
    if (status == SHOAL_ABSENT)
        status = store_fail(&store->base, key, SHOAL_BROKEN, "the body of a message in queue '%s' is missing", queue);
    if (status == SHOAL_OK)
        status = store_message_room(&store->base, queue, out, blob.size);
    if (status == SHOAL_OK)
        memcpy(out->data, blob.data, blob.size);
    shoal_blob_release(&blob);
    base_free(&key);
    return status;
}

/* Best effort: what is left of it costs a little until the queue is dropped. */
static void remove_body(azure_store *store, const char *queue, const char *name, const store_attempt *attempt)
{
    store_attempt own = {.deadline = attempt->deadline, .number = 1};
    char *key = NULL;
    if (body_key(store, queue, name, &key) == SHOAL_OK)
        remove_azure(&store->base, key, &own);
    base_free(&key);
}

/* ---- pushing ----------------------------------------------------------------------------------------------------- */

static int message_document(const char *first, size_t first_size, const store_body *body, char **out)
{
    unsigned char *bytes = NULL;
    char *text = NULL;
    size_t size = first_size + (body ? store_body_size(body) : 0), at = first_size;
    int status = base_alloc_unset(&bytes, size, 1, "a message");
    if (status == SHOAL_OK) {
        memcpy(bytes, first, first_size);
        for (int i = 0; i < 2 && body; i++) {
            if (body->part[i].iov_len)
                memcpy(bytes + at, body->part[i].iov_base, body->part[i].iov_len);
            at += body->part[i].iov_len;
        }
        status = azure_base64(&text, bytes, size);
    }
    if (status == SHOAL_OK)
        status = base_format(out, "<QueueMessage><MessageText>%s</MessageText></QueueMessage>", text);
    base_free(&text);
    base_free(&bytes);
    return status;
}

static int make_queue(azure_store *store, const char *queue, const char *name, store_attempt *attempt)
{
    const azure_call call = {
        .method = "PUT", .service = AZURE_QUEUE, .first = name, .sends_body = true, .kind = SHOAL_REQUEST_QUEUE};
    http_request request = {0};
    char code[80];
    int status = azure_perform(store, &call, &request, attempt);
    if (status == SHOAL_OK && !azure_succeeded(&request) &&
        strcmp(azure_error_code(&request, code, sizeof code), "QueueAlreadyExists") != 0)
        status = azure_refusal(store, queue, &request, attempt);
    azure_request_release(&request);
    return status;
}

static int push_document(azure_store *store, const char *queue, const char *name, char *document,
                         store_attempt *attempt)
{
    const azure_call call = {.method = "POST",
                             .service = AZURE_QUEUE,
                             .first = name,
                             .second = "messages",
                             .query = {{"messagettl", "-1"}}, /* never forgotten */
                             .content_type = "application/xml",
                             .body.part[0] = {document, strlen(document)},
                             .sends_body = true,
                             .kind = SHOAL_REQUEST_QUEUE};
    http_request request = {0};
    int status = azure_perform(store, &call, &request, attempt);
    if (status == SHOAL_OK && !azure_succeeded(&request))
        status = azure_refusal(store, queue, &request, attempt);
    azure_request_release(&request);
    return status;
}

int push_azure(shoal_store *self, const char *queue, const store_body *body, store_attempt *attempt)
{
    azure_store *store = (azure_store *)self;
    char name[AZURE_QUEUE_NAME], blob[BODY_NAME] = "", first[BODY_NAME + 1] = {inside}, *document = NULL;
    bool large = store_body_size(body) > INLINE_MOST;
    azure_queue_name(name, store->container, queue);
    int status = large ? put_body(store, queue, body, blob, attempt) : SHOAL_OK;
    if (large)
        snprintf(first, sizeof first, "%c%s", beside, blob);
    if (status == SHOAL_OK)
        status = message_document(first, strlen(first), large ? NULL : body, &document);
    if (status == SHOAL_OK)
        status = push_document(store, queue, name, document, attempt);
    if (status == SHOAL_ABSENT && document) {
        status = make_queue(store, queue, name, attempt);
        if (status == SHOAL_OK)
            status = push_document(store, queue, name, document, attempt);
    }
    if (status < 0 && status != SHOAL_UNKNOWN &&
        *blob) { /* nobody will ever ask for it; the message is still that of the push */
        char message[1024];
        snprintf(message, sizeof message, "%s", shoal_error());
        remove_body(store, queue, blob, attempt);
        shoal_fail(status, "%s", message);
    }
    base_free(&document);
    return status;
}

/* ---- taking ------------------------------------------------------------------------------------------------------ */

typedef struct message_reading {
    azure_message *out;
    bool complete;
} message_reading;

static int read_message(void *context, const char *path, const char *text, size_t length)
{
    message_reading *reading = context;
    static const char row[] = "QueueMessagesList/QueueMessage";
    char **target = NULL;
    if (strncmp(path, row, sizeof row - 1) != 0 || reading->complete)
        return SHOAL_OK;
    path += sizeof row - 1;
    if (!*path && !text)
        reading->complete = true;
    if (!text)
        return SHOAL_OK;
    if (strcmp(path, "/MessageId") == 0)
        target = &reading->out->id;
    else if (strcmp(path, "/PopReceipt") == 0)
        target = &reading->out->receipt;
    else if (strcmp(path, "/MessageText") == 0)
        target = &reading->out->text;
    else if (strcmp(path, "/DequeueCount") == 0)
        reading->out->deliveries = strtoll(text, NULL, 10);
    if (!target)
        return SHOAL_OK;
    base_free(target);
    return base_copy_text_n(target, text, length);
}

void azure_message_release(azure_message *message)
{
    base_free(&message->id);
    base_free(&message->receipt);
    base_free(&message->text);
}

int azure_message_read(azure_message *out, bool *found, const char *document, size_t size)
{
    message_reading reading = {.out = out};
    *out = (azure_message){0};
    int status = xml_read(document, size, read_message, &reading);
    *found = reading.complete;
    if (status == SHOAL_OK && reading.complete && (!out->id || !out->receipt || !out->text || out->deliveries < 1))
        status = shoal_fail(SHOAL_BROKEN, "the server sent a message without an id, receipt, text or count");
    if (status < 0)
        azure_message_release(out);
    return status;
}

static int set_receipt(azure_store *store, const char *queue, shoal_message *message, const char *id,
                       const char *receipt, const char *blob)
{
    int length = snprintf(message->receipt, sizeof message->receipt, "%s\n%s\n%s", id, receipt, blob);
    if (length < 0 || (size_t)length >= sizeof message->receipt || strchr(id, '\n') || strchr(receipt, '\n'))
        return store_fail(&store->base, queue, SHOAL_INVALID, "the server's receipt for a message is too long");
    return SHOAL_OK;
}

static bool is_body_name(const unsigned char *bytes, size_t size)
{
    unsigned char name[(BODY_NAME - 1) / 2];
    return size == BODY_NAME - 1 && base_hex_read(name, sizeof name, (const char *)bytes);
}

/* Gives what the server sent to the caller: the body and a receipt. */
static int deliver_message(azure_store *store, const char *queue, const azure_message *from, shoal_message *out,
                           store_attempt *attempt)
{
    unsigned char *bytes = NULL;
    size_t size = 0;
    char blob[BODY_NAME] = "";
    int status = azure_unbase64(&bytes, &size, from->text, strlen(from->text));
    bool known = status == SHOAL_OK && size > 0 &&
                 (bytes[0] == inside || (bytes[0] == beside && is_body_name(bytes + 1, size - 1)));
    if (status == SHOAL_BROKEN || (status == SHOAL_OK && !known))
        status = store_fail(&store->base, queue, SHOAL_BROKEN, "a message was not written by shoal");
    if (status == SHOAL_OK && bytes[0] == beside) {
        snprintf(blob, sizeof blob, "%.*s", (int)(size - 1), (const char *)bytes + 1);
        status = get_body(store, queue, blob, out, attempt->deadline);
    } else if (status == SHOAL_OK) {
        status = store_message_room(&store->base, queue, out, size - 1);
        if (status == SHOAL_OK && size > 1)
            memcpy(out->data, bytes + 1, size - 1);
    }
    if (status == SHOAL_OK)
        status = set_receipt(store, queue, out, from->id, from->receipt, blob);
    out->deliveries = from->deliveries;
    base_free(&bytes);
    return status;
}

/* What is not a message is reported once and removed, because nobody could ever finish it.  If that fails, it is met
 * again. */
static void drop_broken(azure_store *store, const char *queue, const azure_message *from, store_attempt *attempt)
{
    char why[512];
    shoal_message message = {0};
    store_attempt own = {.deadline = attempt->deadline, .number = 1};
    snprintf(why, sizeof why, "%s", shoal_error());
    if (set_receipt(store, queue, &message, from->id, from->receipt, "") == SHOAL_OK)
        finish_azure(&store->base, queue, &message, &own);
    shoal_fail(SHOAL_BROKEN, "%s", why);
}

int take_azure(shoal_store *self, const char *queue, double lease, shoal_message *out, store_attempt *attempt)
{
    azure_store *store = (azure_store *)self;
    char name[AZURE_QUEUE_NAME], seconds[32];
    azure_message message = {0};
    bool found = false;
    http_request request = {0};
    azure_queue_name(name, store->container, queue);
    snprintf(seconds, sizeof seconds, "%.0f", ceil(lease));
    const azure_call call = {.method = "GET",
                             .service = AZURE_QUEUE,
                             .first = name,
                             .second = "messages",
                             .query = {{"numofmessages", "1"}, {"visibilitytimeout", seconds}},
                             .kind = SHOAL_REQUEST_QUEUE};
    int status = azure_perform(store, &call, &request, attempt);
    if (status == SHOAL_OK && !azure_succeeded(&request))
        status = azure_refusal(store, queue, &request, attempt);
    else if (status == SHOAL_OK)
        status = azure_message_read(&message, &found, request.answer, request.size);
    if (status == SHOAL_BROKEN)
        store_fail(self, queue, status, "%s", shoal_error());
    if (status == SHOAL_OK && !found)
        status = store_fail(self, queue, SHOAL_ABSENT, "no message is available");
    if (status == SHOAL_OK)
        status = deliver_message(store, queue, &message, out, attempt);
    if (status == SHOAL_BROKEN && found)
        drop_broken(store, queue, &message, attempt);
    azure_message_release(&message);
    azure_request_release(&request);
    return status;
}

/* ---- holding and finishing --------------------------------------------------------------------------------------- */

typedef struct receipt_parts {
    char text[SHOAL_RECEIPT_BYTES];
    const char *pop, *blob;
    char path[SHOAL_RECEIPT_BYTES + 16]; /* "messages/ID" */
} receipt_parts;

static int read_receipt(azure_store *store, const char *queue, const shoal_message *message, receipt_parts *out)
{
    memcpy(out->text, message->receipt, sizeof out->text);
    char *first = memchr(out->text, '\n', sizeof out->text);
    char *second = first ? strchr(first + 1, '\n') : NULL;
    if (!second)
        return store_fail(&store->base, queue, SHOAL_USAGE, "this message was not taken from this store");
    *first = *second = 0;
    out->pop = first + 1;
    out->blob = second + 1;
    snprintf(out->path, sizeof out->path, "messages/%s", out->text);
    return SHOAL_OK;
}

/* A queue that does not exist has no message that could be held. */
static int lost_with_queue(azure_store *store, const char *queue, int status)
{
    return status == SHOAL_ABSENT ? store_fail(&store->base, queue, SHOAL_LOST, "the queue no longer exists") : status;
}

int extend_azure(shoal_store *self, const char *queue, shoal_message *message, double lease, store_attempt *attempt)
{
    azure_store *store = (azure_store *)self;
    char name[AZURE_QUEUE_NAME], seconds[32], pop[SHOAL_RECEIPT_BYTES];
    receipt_parts receipt;
    http_request request = {0};
    int status = read_receipt(store, queue, message, &receipt);
    if (status < 0)
        return status;
    azure_queue_name(name, store->container, queue);
    snprintf(seconds, sizeof seconds, "%.0f", ceil(lease));
    const azure_call call = {.method = "PUT", /* without a body the text stays as it is */
                             .service = AZURE_QUEUE,
                             .first = name,
                             .second = receipt.path,
                             .query = {{"popreceipt", receipt.pop}, {"visibilitytimeout", seconds}},
                             .sends_body = true,
                             .kind = SHOAL_REQUEST_QUEUE};
    status = azure_perform(store, &call, &request, attempt);
    if (status == SHOAL_OK && !azure_succeeded(&request))
        status = azure_refusal(store, queue, &request, attempt);
    else if (status == SHOAL_OK && !http_header(&request, "x-ms-popreceipt", pop, sizeof pop))
        status = store_fail(self, queue, SHOAL_INVALID, "the server's answer has no receipt for the message");
    else if (status == SHOAL_OK)
        status = set_receipt(store, queue, message, receipt.text, pop, receipt.blob);
    azure_request_release(&request);
    return lost_with_queue(store, queue, status);
}

int finish_azure(shoal_store *self, const char *queue, shoal_message *message, store_attempt *attempt)
{
    azure_store *store = (azure_store *)self;
    char name[AZURE_QUEUE_NAME], code[80];
    receipt_parts receipt;
    http_request request = {0};
    int status = read_receipt(store, queue, message, &receipt);
    if (status < 0)
        return status;
    azure_queue_name(name, store->container, queue);
    const azure_call call = {.method = "DELETE",
                             .service = AZURE_QUEUE,
                             .first = name,
                             .second = receipt.path,
                             .query = {{"popreceipt", receipt.pop}},
                             .kind = SHOAL_REQUEST_QUEUE};
    status = azure_perform(store, &call, &request, attempt);
    if (status == SHOAL_OK && !azure_succeeded(&request)) {
        /* Azure also says so of a message that another has taken; nobody has while the lease lasts. */
        bool gone = strcmp(azure_error_code(&request, code, sizeof code), "MessageNotFound") == 0 &&
                    base_now() < message->lease_ends;
        if (!(gone && attempt->doubt)) /* otherwise it was removed by the attempt whose answer was lost */
            status = azure_refusal(store, queue, &request, attempt);
    }
    if (status == SHOAL_OK && *receipt.blob)
        remove_body(store, queue, receipt.blob, attempt);
    azure_request_release(&request);
    return lost_with_queue(store, queue, status);
}

/* ---- the whole queue --------------------------------------------------------------------------------------------- */

int count_azure(shoal_store *self, const char *queue, int64_t *out, store_attempt *attempt)
{
    azure_store *store = (azure_store *)self;
    char name[AZURE_QUEUE_NAME], text[32];
    azure_queue_name(name, store->container, queue);
    const azure_call call = {.method = "GET",
                             .service = AZURE_QUEUE,
                             .first = name,
                             .query = {{"comp", "metadata"}},
                             .kind = SHOAL_REQUEST_QUEUE};
    http_request request = {0};
    int status = azure_perform(store, &call, &request, attempt);
    if (status == SHOAL_OK && !azure_succeeded(&request))
        status = azure_refusal(store, queue, &request, attempt);
    else if (status == SHOAL_OK && !http_header(&request, "x-ms-approximate-messages-count", text, sizeof text))
        status = store_fail(self, queue, SHOAL_INVALID, "the server's answer does not give the number of messages");
    else if (status == SHOAL_OK)
        *out = strtoll(text, NULL, 10);
    if (status == SHOAL_ABSENT) {
        *out = 0;
        status = SHOAL_OK;
    }
    azure_request_release(&request);
    return status;
}

/* Removes the blobs of messages that were never finished. */
static int remove_bodies(azure_store *store, const char *queue, int64_t deadline)
{
    shoal_listing page = {0};
    char *prefix = NULL;
    int status = body_key(store, queue, "", &prefix);
    do {
        if (status == SHOAL_OK)
            status = store_list(&store->base, prefix, NULL, &page, deadline);
        for (size_t i = 0; i < page.count && status == SHOAL_OK; i++)
            status = store_remove(&store->base, page.entries[i].key, deadline);
    } while (status == SHOAL_OK && page.more);
    shoal_listing_release(&page);
    base_free(&prefix);
    return status;
}

int drop_azure(shoal_store *self, const char *queue, store_attempt *attempt)
{
    azure_store *store = (azure_store *)self;
    char name[AZURE_QUEUE_NAME];
    azure_queue_name(name, store->container, queue);
    const azure_call call = {.method = "DELETE", .service = AZURE_QUEUE, .first = name, .kind = SHOAL_REQUEST_QUEUE};
    http_request request = {0};
    char code[80];
    int status = azure_perform(store, &call, &request, attempt);
    if (status == SHOAL_OK && !azure_succeeded(&request) &&
        strcmp(azure_error_code(&request, code, sizeof code), "QueueBeingDeleted") != 0) /* as good as gone */
        status = azure_refusal(store, queue, &request, attempt);
    azure_request_release(&request);
    if (status == SHOAL_OK || status == SHOAL_ABSENT)
        status = remove_bodies(store, queue, attempt->deadline);
    return status;
}
