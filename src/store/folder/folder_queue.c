/* Queues of the embedded store: one row for each message. `visible` is the moment from which a message may be taken:
 * when it was pushed or given back, or when the lease of whoever took it last ends; the earliest is taken first.
 *
 * A lease that has ended is lost, whether or not another has taken the message meanwhile: so what a caller sees never
 * depends on the order of events. */
#include "folder_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "base/memory.h"
#include "base/world.h"

static int bind_queue(folder_connection *connection, folder_query query, const char *queue)
{
    int status = SHOAL_OK;
    sqlite3_stmt *statement = folder_statement(connection, query, &status);
    if (statement)
        sqlite3_bind_blob(statement, 1, queue, (int)strlen(queue), SQLITE_STATIC);
    return status;
}

/* ---- pushing ----------------------------------------------------------------------------------------------------- */

static int push_inside(folder_store *self, folder_change *change, store_attempt *attempt)
{
    folder_connection *writer = self->writer;
    (void)attempt;
    int status = folder_body_place(self, change->body, change->key);
    if (status == SHOAL_OK)
        status = bind_queue(writer, QUERY_PUSH, change->key);
    if (status < 0)
        return status;
    sqlite3_stmt *statement = writer->statement[QUERY_PUSH];
    sqlite3_bind_int64(statement, 2, base_now());
    sqlite3_bind_int64(statement, 3, (int64_t)change->body->size);
    folder_body_bind(change->body, statement, 4, 5);
    return folder_step(writer, QUERY_PUSH, change->key);
}

int push_folder(shoal_store *base, const char *queue, const store_body *from, store_attempt *attempt)
{
    folder_store *self = (folder_store *)base;
    folder_body body = {.descriptor = -1};
    folder_change change = {.key = queue, .tells = true, .body = &body, .work = push_inside};
    int status = folder_check_use(self, queue, true);
    if (status == SHOAL_OK)
        status = folder_body_write(self, &body, from, queue, attempt);
    if (status == SHOAL_OK)
        status = folder_transact(self, &change, attempt);
    folder_body_release(self, &body);
    return status;
}

/* ---- taking ------------------------------------------------------------------------------------------------------ */

typedef struct take_request {
    double lease;
    shoal_message *out;
    unsigned char receipt[FOLDER_ID_BYTES];
    int64_t id, size, number;
} take_request;

static int fail_empty(folder_store *self, const char *queue)
{
    return store_fail(&self->store, queue, SHOAL_ABSENT, "no message is available");
}

/* Whether there is a message to take, without passing the gate: empty queues are polled often. */
static int look_first(folder_store *self, const char *queue, store_attempt *attempt)
{
    folder_connection *reader = NULL;
    int status = folder_reader(self, &reader, attempt);
    if (status == SHOAL_OK)
        status = bind_queue(reader, QUERY_ANY, queue);
    if (status == SHOAL_OK) {
        sqlite3_bind_int64(reader->statement[QUERY_ANY], 2, base_now());
        status = folder_step(reader, QUERY_ANY, queue);
        folder_reset(reader, QUERY_ANY);
        status = status == 0 ? fail_empty(self, queue) : status == 1 ? SHOAL_OK : status;
    }
    return folder_reader_return(self, &reader, status);
}

/* Reads the message that the statement stands on. */
static int read_message(folder_store *self, take_request *request, sqlite3_stmt *statement, const char *queue)
{
    shoal_message *out = request->out;
    request->id = sqlite3_column_int64(statement, 0);
    request->size = sqlite3_column_int64(statement, 2);
    request->number = folder_column_number(statement, 3);
    out->deliveries = sqlite3_column_int64(statement, 1) + 1;
    if (request->size < 0 || (!request->number && sqlite3_column_bytes(statement, 4) != request->size))
        return store_fail(&self->store, queue, SHOAL_BROKEN, "%s/index.db is damaged (a body has the wrong size)",
                          self->root);
    base_free(&out->data); /* of an attempt before */
    int status = store_message_room(&self->store, queue, out, (size_t)request->size);
    if (status == SHOAL_OK && !request->number && request->size > 0)
        memcpy(out->data, sqlite3_column_blob(statement, 4), (size_t)request->size);
    return status;
}

static int take_inside(folder_store *self, folder_change *change, store_attempt *attempt)
{
    folder_connection *writer = self->writer;
    take_request *request = change->context;
    int64_t now = base_now();
    (void)attempt;
    int status = bind_queue(writer, QUERY_NEXT, change->key);
    if (status < 0)
        return status;
    sqlite3_bind_int64(writer->statement[QUERY_NEXT], 2, now);
    status = folder_step(writer, QUERY_NEXT, change->key);
    if (status == 0)
        return fail_empty(self, change->key);
    if (status == 1)
        status = read_message(self, request, writer->statement[QUERY_NEXT], change->key);
    folder_reset(writer, QUERY_NEXT);
    if (status < 0 || !folder_statement(writer, QUERY_LEASE, &status))
        return status;
    sqlite3_stmt *statement = writer->statement[QUERY_LEASE];
    sqlite3_bind_int64(statement, 1, request->id);
    sqlite3_bind_int64(statement, 2, base_time_after(now, request->lease));
    sqlite3_bind_blob(statement, 3, request->receipt, sizeof request->receipt, SQLITE_STATIC);
    return folder_step(writer, QUERY_LEASE, change->key);
}

int take_folder(shoal_store *base, const char *queue, double lease, shoal_message *out, store_attempt *attempt)
{
    folder_store *self = (folder_store *)base;
    take_request request = {.lease = lease, .out = out};
    folder_change change = {.key = queue, .work = take_inside, .context = &request};
    char receipt[FOLDER_ETAG_LETTERS + 1];
    int status = folder_check_use(self, queue, true);
    if (status == SHOAL_OK)
        status = look_first(self, queue, attempt);
    if (status < 0)
        return status;
    folder_fresh_id(self, request.receipt);
    status = folder_transact(self, &change, attempt);
    if (status == SHOAL_OK && request.number)
        status = folder_body_read(self, request.number, request.size, out->data, 0, request.size, queue);
    if (status == SHOAL_ABSENT && request.number) { /* the lease ended meanwhile, and another finished the message */
        attempt->cause = SHOAL_CAUSE_RACE;
        return store_fail(base, queue, SHOAL_AGAIN, "a message disappeared before it was read");
    }
    if (status < 0)
        return status;
    base_hex_write(receipt, request.receipt, sizeof request.receipt);
    snprintf(out->receipt, sizeof out->receipt, "%" PRId64 " %s", request.id, receipt);
    return SHOAL_OK;
}

/* ---- what holders do --------------------------------------------------------------------------------------------- */

typedef struct holder_request {
    const shoal_message *message;
    double lease;
    int64_t id;
    bool gone; /* there is no such message any more */
} holder_request;

/* Finds the message of a receipt; SHOAL_LOST when it is not held by that receipt, or no longer. */
static int find_held(folder_store *self, folder_change *change)
{
    folder_connection *writer = self->writer;
    holder_request *request = change->context;
    char *end = NULL, holder[FOLDER_ETAG_LETTERS + 1] = "";
    int status = SHOAL_OK;
    request->id = strtoll(request->message->receipt, &end, 10);
    sqlite3_stmt *statement = folder_statement(writer, QUERY_MESSAGE, &status);
    if (!statement)
        return status;
    sqlite3_bind_int64(statement, 1, request->id);
    status = folder_step(writer, QUERY_MESSAGE, change->key);
    if (status < 0)
        return status;
    request->gone = status == 0;
    bool mine = false;
    if (status == 1) {
        const void *queue = sqlite3_column_blob(statement, 0), *id = sqlite3_column_blob(statement, 1);
        size_t length = strlen(change->key);
        if (id && sqlite3_column_bytes(statement, 1) == FOLDER_ID_BYTES)
            base_hex_write(holder, id, FOLDER_ID_BYTES);
        mine = queue && (size_t)sqlite3_column_bytes(statement, 0) == length && !memcmp(queue, change->key, length) &&
               *end == ' ' && holder[0] && strcmp(end + 1, holder) == 0 &&
               sqlite3_column_int64(statement, 2) > base_now();
        change->replaced = folder_column_number(statement, 3);
        folder_reset(writer, QUERY_MESSAGE);
    }
    return mine ? SHOAL_OK : store_fail(&self->store, change->key, SHOAL_LOST, "the lease of the message has expired");
}

static int extend_inside(folder_store *self, folder_change *change, store_attempt *attempt)
{
    folder_connection *writer = self->writer;
    const holder_request *request = change->context;
    (void)attempt;
    int status = find_held(self, change);
    change->replaced = 0;
    if (status < 0 || !folder_statement(writer, QUERY_EXTEND, &status))
        return status;
    sqlite3_stmt *statement = writer->statement[QUERY_EXTEND];
    sqlite3_bind_int64(statement, 1, request->id);
    sqlite3_bind_int64(statement, 2, base_time_after(base_now(), request->lease));
    return folder_step(writer, QUERY_EXTEND, change->key);
}

int extend_folder(shoal_store *base, const char *queue, shoal_message *message, double lease, store_attempt *attempt)
{
    folder_store *self = (folder_store *)base;
    holder_request request = {.message = message, .lease = lease};
    folder_change change = {.key = queue, .tells = lease == 0, .work = extend_inside, .context = &request};
    int status = folder_check_use(self, queue, true);
    return status == SHOAL_OK ? folder_transact(self, &change, attempt) : status;
}

static int finish_inside(folder_store *self, folder_change *change, store_attempt *attempt)
{
    folder_connection *writer = self->writer;
    const holder_request *request = change->context;
    int status = find_held(self, change);
    if (status == SHOAL_LOST && request->gone && attempt->doubt)
        return SHOAL_OK; /* an attempt before this one did it */
    if (status == SHOAL_OK)
        status = folder_garbage_add(self, change->replaced, change->key);
    if (status < 0 || !folder_statement(writer, QUERY_FINISH, &status))
        return status;
    sqlite3_bind_int64(writer->statement[QUERY_FINISH], 1, request->id);
    return folder_step(writer, QUERY_FINISH, change->key);
}

int finish_folder(shoal_store *base, const char *queue, shoal_message *message, store_attempt *attempt)
{
    folder_store *self = (folder_store *)base;
    holder_request request = {.message = message};
    folder_change change = {.key = queue, .frees = true, .work = finish_inside, .context = &request};
    int status = folder_check_use(self, queue, true);
    return status == SHOAL_OK ? folder_transact(self, &change, attempt) : status;
}

/* ---- whole queues ------------------------------------------------------------------------------------------------ */

int count_folder(shoal_store *base, const char *queue, int64_t *out, store_attempt *attempt)
{
    folder_store *self = (folder_store *)base;
    folder_connection *reader = NULL;
    int status = folder_check_use(self, queue, false);
    if (status == SHOAL_OK)
        status = folder_reader(self, &reader, attempt);
    if (status == SHOAL_OK)
        status = bind_queue(reader, QUERY_COUNT, queue);
    if (status == SHOAL_OK) {
        status = folder_step(reader, QUERY_COUNT, queue);
        if (status == 1) {
            *out = sqlite3_column_int64(reader->statement[QUERY_COUNT], 0);
            status = SHOAL_OK;
        }
        folder_reset(reader, QUERY_COUNT);
    }
    return folder_reader_return(self, &reader, status);
}

static int drop_inside(folder_store *self, folder_change *change, store_attempt *attempt)
{
    (void)attempt;
    int status = bind_queue(self->writer, QUERY_DROP_BODIES, change->key);
    if (status == SHOAL_OK)
        status = folder_step(self->writer, QUERY_DROP_BODIES, change->key);
    *(bool *)change->context = sqlite3_changes(self->writer->db) > 0;
    if (status == SHOAL_OK)
        status = bind_queue(self->writer, QUERY_DROP, change->key);
    return status == SHOAL_OK ? folder_step(self->writer, QUERY_DROP, change->key) : status;
}

int drop_folder(shoal_store *base, const char *queue, store_attempt *attempt)
{
    folder_store *self = (folder_store *)base;
    bool bodies = false;
    folder_change change = {.key = queue, .tells = true, .frees = true, .work = drop_inside, .context = &bodies};
    int status = folder_check_use(self, queue, true);
    if (status == SHOAL_OK)
        status = folder_transact(self, &change, attempt);
    if (status == SHOAL_OK && bodies)
        (void)folder_garbage_sweep(self, false, attempt); /* the queue is gone; files that stay are swept at an open */
    return status;
}
