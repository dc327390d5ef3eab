/* dir:/path, the embedded store: a folder of this machine that any number of processes share. folder_internal.h
 * explains its layout, and why acknowledged writes survive whatever happens to the processes. */
#include "folder_internal.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/hex.h"
#include "base/memory.h"
#include "base/world.h"

enum { BODY_TRIES = 100 };
static const double CLOSE_PATIENCE = 1;    /* seconds that closing waits for the gate */
static const double LOOK_FOR_THE_DEAD = 1; /* seconds between checks whether a writer died before announcing a change */
static const double LOOK_UNMAPPED = 0.1;   /* seconds between looks of a reader that can't be woken */

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static int read_options(folder_store *self, const store_url *url)
{
    const char *sync = store_url_option(url, "sync");
    if (sync && strcmp(sync, "full") != 0 && strcmp(sync, "normal") != 0)
        return shoal_fail(SHOAL_USAGE, "%s: sync must be normal or full, not '%s'", url->text, sync);
    self->sync = sync && strcmp(sync, "full") == 0;
    return SHOAL_OK;
}

static int fail_absent_blob(const folder_store *self)
{
    struct stat info;
    bool file = stat(self->root, &info) == 0 && !S_ISDIR(info.st_mode);
    return shoal_fail(SHOAL_ABSENT, "there is no store at %s%s", self->root, file ? ": it is a file" : "");
}

/* Creates everything that makes the folder a store, the marker last. */
static int create_parts(folder_store *self, store_attempt *attempt)
{
    int status = folder_open_parts(self);
    if (status == SHOAL_OK)
        status = folder_index_create(self, attempt);
    return status == SHOAL_OK ? folder_write_marker(self) : status;
}

/* With the gate held: creates the store if requested, opens it, and cleans up after dead processes. */
static int open_inside(folder_store *self, bool create, store_attempt *attempt)
{
    bool fresh_boot = false;
    int status = folder_read_marker(self);
    if (status == SHOAL_ABSENT)
        status = create ? create_parts(self, attempt) : fail_absent_blob(self);
    if (status == SHOAL_OK && self->bodies_folder < 0)
        status = folder_open_parts(self);
    if (status == SHOAL_OK)
        status = folder_index_open(self, &fresh_boot, attempt);
    if (status == SHOAL_OK && !self->read_only)
        status = folder_sweep(self, fresh_boot, attempt);
    return status;
}

static int open_found(folder_store *self, bool create, store_attempt *attempt)
{
    int status = folder_open_root(self);
    if (status == SHOAL_OK)
        status = folder_map_shared(self);
    if (status < 0)
        return status;
    if (self->read_only)
        return open_inside(self, false, attempt);
    status = folder_enter(self, NULL, attempt);
    if (status == SHOAL_OK) {
        status = open_inside(self, create, attempt);
        if (status == SHOAL_SYSTEM &&
            folder_spare_release(self)) { /* so that a full disk does not prevent removing things */
            folder_index_close(self);
            status = open_inside(self, create, attempt);
        } else if (status == SHOAL_OK) {
            folder_spare_restore(self);
        }
        folder_leave(self);
    }
    return status;
}

static int open_folder(shoal_store *base, char **rest, const store_url *url, const shoal_store_options *options,
                       store_attempt *attempt)
{
    folder_store *self = (folder_store *)base;
    bool found = false, create = options->create && !options->read_only;
    self->root_folder = self->bodies_folder = self->temp_folder = self->gate = -1;
    self->process = getpid();
    self->read_only = options->read_only;
    self->no_links = options->within != NULL;
    pthread_mutex_init(&self->lists_lock, NULL);
    base_entropy(self->id_start, sizeof self->id_start);
    base_entropy(&self->token, sizeof self->token);
    int status = read_options(self, url);
    if (status == SHOAL_OK)
        status = folder_find(self, rest, &found, url->rest);
    if (status == SHOAL_OK)
        status = base_format(&base->name, "dir:%s", self->root);
    if (status == SHOAL_OK && options->within)
        status = folder_check_within(self, options->within);
    if (status == SHOAL_OK && !found && !create)
        status = fail_absent_blob(self);
    if (status == SHOAL_OK)
        status = folder_check_disk(self);
    if (status == SHOAL_OK && !found)
        status = folder_make_root(self);
    return status == SHOAL_OK ? open_found(self, create, attempt) : status;
}

/* Closing the last connection moves the log into the database, so it happens inside the gate; but nobody waits for that
 * long.  A forked child leaves the index alone: SQLite would take its parent's locks for its own. */
static void close_folder(shoal_store *base)
{
    folder_store *self = (folder_store *)base;
    const int descriptors[] = {self->root_folder, self->bodies_folder, self->temp_folder, self->gate};
    store_attempt attempt = {.deadline = base_time_after(base_now(), CLOSE_PATIENCE)};
    if (self->process == getpid()) {
        bool inside = self->writer && folder_enter(self, NULL, &attempt) == SHOAL_OK;
        folder_index_close(self);
        if (inside)
            folder_leave(self);
    }
    if (self->shared)
        munmap(self->shared, sizeof *self->shared);
    for (size_t i = 0; i < sizeof descriptors / sizeof *descriptors; i++)
        if (descriptors[i] >= 0)
            close(descriptors[i]);
    pthread_mutex_destroy(&self->lists_lock);
    base_free(&self->root);
}

/* ---- getting ----------------------------------------------------------------------------------------------------- */

/* A row of a blob. */
typedef struct found_blob {
    shoal_etag etag;
    int64_t time, size, number;
} found_blob;

static int read_etag(shoal_etag *out, folder_store *self, sqlite3_stmt *statement, int column, const char *key)
{
    const unsigned char *id = sqlite3_column_blob(statement, column);
    if (!id || sqlite3_column_bytes(statement, column) != FOLDER_ID_BYTES)
        return store_fail(&self->store, key, SHOAL_BROKEN, "%s/index.db is damaged (a version without a name)",
                          self->root);
    *out = (shoal_etag){""};
    base_hex_write(out->text, id, FOLDER_ID_BYTES);
    return SHOAL_OK;
}

static int bind_key(folder_connection *connection, folder_query query, const char *key)
{
    int status = SHOAL_OK;
    sqlite3_stmt *statement = folder_statement(connection, query, &status);
    if (statement)
        sqlite3_bind_blob(statement, 1, key, (int)strlen(key), SQLITE_STATIC);
    return status;
}

/* The part of the blob that was asked for: where it starts, and its length. */
static void clip(int64_t *start, int64_t *length, const store_range *range, int64_t whole)
{
    *start = range->offset < whole ? range->offset : whole;
    *length = whole - *start;
    if (range->length >= 0 && range->length < *length)
        *length = range->length;
}

static int make_blob_room(const folder_store *self, const char *key, shoal_blob *out, const store_range *range,
                          int64_t length)
{
    if (!range->buffer)
        return store_blob_room(&self->store, key, out, (size_t)length);
    out->size = (size_t)length;
    return SHOAL_OK;
}

/* Reads the row that the statement stands on, and copies the bytes of a small body. */
static int read_row(folder_store *self, sqlite3_stmt *statement, const char *key, const store_range *range,
                    found_blob *found, shoal_blob *out)
{
    int64_t start, length;
    int status = read_etag(&found->etag, self, statement, 0, key);
    if (status < 0)
        return status;
    found->time = sqlite3_column_int64(statement, 1);
    found->size = sqlite3_column_int64(statement, 2);
    found->number = folder_column_number(statement, 3);
    if (range->expected && strcmp(range->expected->text, found->etag.text) != 0)
        return store_fail(&self->store, key, SHOAL_CONFLICT, "the stored version has changed");
    if (found->size < 0 || (!found->number && sqlite3_column_bytes(statement, 4) != found->size))
        return store_fail(&self->store, key, SHOAL_BROKEN, "%s/index.db is damaged (a body has the wrong size)",
                          self->root);
    if (found->number)
        return SHOAL_OK;
    clip(&start, &length, range, found->size);
    status = make_blob_room(self, key, out, range, length);
    if (status == SHOAL_OK && length > 0)
        memcpy(range->buffer ? range->buffer : out->data, (const char *)sqlite3_column_blob(statement, 4) + start,
               (size_t)length);
    return status;
}

static int look_up_blob(folder_store *self, const char *key, const store_range *range, found_blob *found,
                        shoal_blob *out, store_attempt *attempt)
{
    folder_connection *reader = NULL;
    int status = folder_reader(self, &reader, attempt);
    if (status == SHOAL_OK)
        status = bind_key(reader, QUERY_FIND, key);
    if (status == SHOAL_OK) {
        status = folder_step(reader, QUERY_FIND, key);
        if (status == 0)
            status = store_fail(&self->store, key, SHOAL_ABSENT, "there is no such key");
        else if (status == 1)
            status = read_row(self, reader->statement[QUERY_FIND], key, range, found, out);
        folder_reset(reader, QUERY_FIND);
    }
    return folder_reader_return(self, &reader, status);
}

static int read_large(folder_store *self, const char *key, const store_range *range, const found_blob *found,
                      shoal_blob *out)
{
    int64_t start, length;
    clip(&start, &length, range, found->size);
    int status = make_blob_room(self, key, out, range, length);
    if (status == SHOAL_OK)
        status = folder_body_read(self, found->number, found->size, range->buffer ? range->buffer : out->data, start,
                                  length, key);
    if (status < 0)
        base_free(&out->memory);
    return status;
}

static int get_folder(shoal_store *base, const char *key, const store_range *range, shoal_blob *out,
                      store_attempt *attempt)
{
    folder_store *self = (folder_store *)base;
    found_blob found = {.number = 0};
    int64_t missing = 0;
    int status = folder_check_use(self, key, false);
    for (int i = 0; i < BODY_TRIES && status == SHOAL_OK; i++) {
        status = look_up_blob(self, key, range, &found, out, attempt);
        if (status < 0 || !found.number)
            break;
        status = read_large(self, key, range, &found, out);
        if (status != SHOAL_ABSENT)
            break;
        /* Replaced after the row was read: the row has changed by now, or the body is really gone. */
        if (found.number == missing)
            return store_fail(base, key, SHOAL_BROKEN, "its body is missing from %s/bodies", self->root);
        missing = found.number;
        status = SHOAL_OK;
        found.number = 0;
    }
    if (status == SHOAL_OK && found.number == 0 && missing) { /* it changed faster than it can be read */
        attempt->cause = SHOAL_CAUSE_RACE;
        return store_fail(base, key, SHOAL_AGAIN, "it was replaced again and again while being read");
    }
    if (status < 0)
        return status;
    int64_t age = base_wall_now() - found.time;
    out->whole = found.size;
    out->etag = found.etag;
    out->age = age > 0 ? (double)age * 1e-9 : 0;
    return SHOAL_OK;
}

/* ---- putting and removing ---------------------------------------------------------------------------------------- */

typedef struct put_request {
    const shoal_etag *expected;
    unsigned char id[FOLDER_ID_BYTES];
} put_request;

/* The version that is there now, "" for none, and the number of its body. */
static int read_version(folder_connection *connection, const char *key, shoal_etag *etag, int64_t *number)
{
    *etag = shoal_etag_nothing;
    *number = 0;
    int status = bind_key(connection, QUERY_VERSION, key);
    if (status == SHOAL_OK)
        status = folder_step(connection, QUERY_VERSION, key);
    if (status == 1) {
        sqlite3_stmt *statement = connection->statement[QUERY_VERSION];
        status = read_etag(etag, connection->store, statement, 0, key);
        *number = folder_column_number(statement, 1);
        folder_reset(connection, QUERY_VERSION);
    }
    return status;
}

static int check_condition(folder_store *self, const char *key, const shoal_etag *expected, const shoal_etag *now)
{
    if (!expected || strcmp(expected->text, now->text) == 0)
        return SHOAL_OK;
    return store_fail(&self->store, key, SHOAL_CONFLICT,
                      now->text[0] ? "it exists, in another version" : "it does not exist");
}

static int put_inside(folder_store *self, folder_change *change, store_attempt *attempt)
{
    folder_connection *writer = self->writer;
    const put_request *request = change->context;
    shoal_etag now;
    (void)attempt;
    int status = read_version(writer, change->key, &now, &change->replaced);
    if (status == SHOAL_OK)
        status = check_condition(self, change->key, request->expected, &now);
    if (status == SHOAL_OK)
        status = folder_body_place(self, change->body, change->key);
    if (status == SHOAL_OK)
        status = folder_garbage_add(self, change->replaced, change->key);
    if (status == SHOAL_OK)
        status = bind_key(writer, QUERY_PUT, change->key);
    if (status < 0)
        return status;
    sqlite3_stmt *statement = writer->statement[QUERY_PUT];
    sqlite3_bind_blob(statement, 2, request->id, sizeof request->id, SQLITE_STATIC);
    sqlite3_bind_int64(statement, 3, base_wall_now());
    sqlite3_bind_int64(statement, 4, (int64_t)change->body->size);
    folder_body_bind(change->body, statement, 5, 6);
    return folder_step(writer, QUERY_PUT, change->key);
}

/* Whether a large body is worth writing at all. */
static int check_early(folder_store *self, const char *key, const shoal_etag *expected, store_attempt *attempt)
{
    folder_connection *reader = NULL;
    shoal_etag now;
    int64_t number;
    int status = folder_reader(self, &reader, attempt);
    if (status == SHOAL_OK)
        status = read_version(reader, key, &now, &number);
    if (status == SHOAL_OK)
        status = check_condition(self, key, expected, &now);
    return folder_reader_return(self, &reader, status);
}

static int put_folder(shoal_store *base, const char *key, const store_body *from, const shoal_etag *expected,
                      shoal_etag *etag, store_attempt *attempt)
{
    folder_store *self = (folder_store *)base;
    put_request request = {.expected = expected};
    folder_body body = {.descriptor = -1};
    folder_change change = {.key = key, .tells = true, .body = &body, .work = put_inside, .context = &request};
    int status = folder_check_use(self, key, true);
    if (status == SHOAL_OK && expected && store_body_size(from) > FOLDER_INLINE_MOST)
        status = check_early(self, key, expected, attempt);
    if (status == SHOAL_OK)
        status = folder_body_write(self, &body, from, key, attempt);
    if (status == SHOAL_OK) {
        folder_fresh_id(self, request.id);
        status = folder_transact(self, &change, attempt);
    }
    if (status == SHOAL_OK) {
        *etag = (shoal_etag){""};
        base_hex_write(etag->text, request.id, sizeof request.id);
    }
    folder_body_release(self, &body);
    return status;
}

static int remove_inside(folder_store *self, folder_change *change, store_attempt *attempt)
{
    shoal_etag now;
    (void)attempt;
    int status = read_version(self->writer, change->key, &now, &change->replaced);
    if (status == SHOAL_OK && !now.text[0])
        return store_fail(&self->store, change->key, SHOAL_ABSENT, "there is no such key");
    if (status == SHOAL_OK)
        status = folder_garbage_add(self, change->replaced, change->key);
    if (status == SHOAL_OK)
        status = bind_key(self->writer, QUERY_REMOVE, change->key);
    return status == SHOAL_OK ? folder_step(self->writer, QUERY_REMOVE, change->key) : status;
}

static int remove_folder(shoal_store *base, const char *key, store_attempt *attempt)
{
    folder_store *self = (folder_store *)base;
    folder_change change = {.key = key, .tells = true, .frees = true, .work = remove_inside};
    int status = folder_check_use(self, key, true);
    if (status == SHOAL_OK)
        status = folder_transact(self, &change, attempt);
    return status == SHOAL_ABSENT ? SHOAL_OK : status;
}

/* ---- listing ----------------------------------------------------------------------------------------------------- */

/* The first key a page may have: the first that has the prefix, or the first after `after`, which is `after` and a
 * NUL. */
static void bind_bounds(sqlite3_stmt *statement, const char *prefix, const char *after, char *last, size_t length)
{
    bool behind = after && strcmp(after, prefix) >= 0;
    const char *first = behind ? after : prefix;
    memcpy(last, prefix, length);
    last[length] = (char)0xff; /* no byte of UTF-8 is this large */
    sqlite3_bind_blob(statement, 1, first, (int)(strlen(first) + (behind ? 1 : 0)), SQLITE_STATIC);
    sqlite3_bind_blob(statement, 2, last, (int)length + 1, SQLITE_STATIC);
}

static int fill_page(folder_store *self, folder_connection *reader, const char *prefix, shoal_listing *page)
{
    sqlite3_stmt *statement = reader->statement[QUERY_LIST];
    int status;
    while ((status = folder_step(reader, QUERY_LIST, prefix)) == 1) {
        shoal_etag etag;
        if (page->count == (size_t)self->store.page_keys) {
            page->more = true;
            status = base_copy_text(&page->marker, page->entries[page->count - 1].key);
            break;
        }
        status = read_etag(&etag, self, statement, 2, prefix);
        const void *key = sqlite3_column_blob(statement, 0);
        if (status == SHOAL_OK)
            status = store_listing_add(page, key ? key : "", (size_t)sqlite3_column_bytes(statement, 0),
                                       sqlite3_column_int64(statement, 1), etag.text);
        status = store_listing_age(page, status, (double)(base_wall_now() - sqlite3_column_int64(statement, 3)) * 1e-9);
        if (status < 0)
            break;
    }
    return status;
}

static int list_folder(shoal_store *base, const char *prefix, const char *after, shoal_listing *page,
                       store_attempt *attempt)
{
    folder_store *self = (folder_store *)base;
    folder_connection *reader = NULL;
    char *marker = page->marker, *last = NULL;
    size_t length = strlen(prefix);
    page->marker = NULL;
    int status = folder_check_use(self, prefix, false);
    if (status == SHOAL_OK)
        status = base_alloc(&last, length + 1, 1, "a listing");
    if (status == SHOAL_OK)
        status = folder_reader(self, &reader, attempt);
    if (status == SHOAL_OK && folder_statement(reader, QUERY_LIST, &status)) {
        bind_bounds(reader->statement[QUERY_LIST], prefix, marker ? marker : after, last, length);
        sqlite3_bind_int(reader->statement[QUERY_LIST], 3, base->page_keys + 1);
        status = fill_page(self, reader, prefix, page);
        folder_reset(reader, QUERY_LIST);
    }
    status = folder_reader_return(self, &reader, status);
    base_free(&last);
    base_free(&marker);
    return status;
}

/* ---- waiting ----------------------------------------------------------------------------------------------------- */

/* Sleeps until a word changes.  A writer that was killed or stopped between its commit and telling of it is noticed by
 * the next writer; if there is none, by an occasional look at one word of memory. */
static int wait_folder(shoal_store *base, const char *prefix, uint32_t *seen, int64_t deadline)
{
    folder_store *self = (folder_store *)base;
    int status = folder_check_use(self, prefix, false);
    if (status < 0)
        return status;
    for (;;) {
        int64_t now = base_now(), look = base_time_after(now, self->shared ? LOOK_FOR_THE_DEAD : LOOK_UNMAPPED);
        int64_t until = look < deadline ? look : deadline;
        if (!self->shared) {
            base_sleep_until(*seen ? until : now);
            *seen += *seen < UINT32_MAX;
            return now < deadline ? SHOAL_OK : shoal_fail(SHOAL_AGAIN, "nothing changed in time");
        }
        status = store_wake_wait(&self->shared->wake, prefix, seen, until);
        if (status != SHOAL_AGAIN || until == deadline)
            return status;
        if (folder_announce_for_the_dead(self))
            return SHOAL_OK; /* there may have been a change that only we can announce */
    }
}

static const char *const options_folder[] = {"sync", NULL};

const struct store_class store_folder = {
    .scheme = "dir",
    .size = sizeof(struct folder_store),
    .wakes = true,
    .options = options_folder,
    .open = open_folder,
    .close = close_folder,
    .get = get_folder,
    .put = put_folder,
    .remove = remove_folder,
    .list = list_folder,
    .push = push_folder,
    .take = take_folder,
    .extend = extend_folder,
    .finish = finish_folder,
    .count = count_folder,
    .drop = drop_folder,
    .wait = wait_folder,
};
