/* Bodies too large for the index, one file each. folder_internal.h tells in which order things happen and why nothing
 * is lost or left behind when a writer is killed in between. */
#include "folder_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/hex.h"
#include "base/io.h"
#include "base/memory.h"
#include "base/world.h"

enum { NAME_LETTERS = 16, WRITE_MOST = 8 << 20, NAMES_TRIED = 10 };

static void body_name(char name[NAME_LETTERS + 1], int64_t number)
{
    snprintf(name, NAME_LETTERS + 1, "%016" PRIx64, (uint64_t)number);
}

/* The number that names a file in bodies/; 0 if it is not one of ours. */
static int64_t body_number(const char *name)
{
    char *end = NULL;
    uint64_t number = strlen(name) == NAME_LETTERS ? strtoull(name, &end, 16) : 0;
    return end && *end == '\0' && number <= INT64_MAX ? (int64_t)number : 0;
}

static int fail_body(const folder_store *self, const char *key, int error, const char *what)
{
    return shoal_fail_errno(error == EACCES || error == EPERM ? SHOAL_DENIED : SHOAL_SYSTEM, error, "%s/%s: %s",
                            self->store.name, key, what);
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

/* Makes a temporary and locks it.  Between the two someone who opens the store may take it for a dead writer's: then
 * another is made. */
static int make_temporary(folder_store *self, folder_body *body, const char *key)
{
    for (int i = 0; i < NAMES_TRIED; i++) {
        unsigned char id[FOLDER_ID_BYTES];
        struct stat info;
        folder_fresh_id(self, id);
        base_hex_write(body->name, id, sizeof id);
        body->descriptor = openat(self->temp_folder, body->name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (body->descriptor < 0)
            return fail_body(self, key, errno, "can't create a file for its body");
        if (flock(body->descriptor, LOCK_EX | LOCK_NB) == 0 && fstat(body->descriptor, &info) == 0 && info.st_nlink > 0)
            return SHOAL_OK;
        unlinkat(self->temp_folder, body->name, 0);
        close(body->descriptor);
        body->descriptor = -1;
    }
    return store_fail(&self->store, key, SHOAL_SYSTEM, "can't lock files in %s/temp", self->root);
}

static int write_bytes(folder_store *self, int descriptor, const char *bytes, size_t size, const char *key,
                       store_attempt *attempt)
{
    for (size_t done = 0; done < size;) {
        size_t most = size - done < WRITE_MOST ? size - done : WRITE_MOST;
        ssize_t more = write(descriptor, bytes + done, most);
        if (more < 0 && errno == EINTR)
            continue;
        if (more <= 0)
            return fail_body(self, key, more < 0 ? errno : EIO, "can't write its body");
        if (self->sync && size > WRITE_MOST) /* the disk may begin while the rest is copied */
            (void)sync_file_range(descriptor, 0, 0, SYNC_FILE_RANGE_WRITE);
        done += (size_t)more;
        if (done < size && base_now() >= attempt->deadline) {
            attempt->cause = SHOAL_CAUSE_TIMEOUT;
            return store_fail(&self->store, key, SHOAL_AGAIN, "the disk was too slow for %zu bytes", size);
        }
    }
    return SHOAL_OK;
}

/* A small body in two parts is joined, since SQLite takes one. */
static int join_parts(folder_body *body)
{
    const struct iovec *part = body->from->part;
    if (part[0].iov_len == 0 || part[1].iov_len == 0)
        return SHOAL_OK;
    int status = base_alloc_unset(&body->joined, body->size, 1, "a body");
    if (status == SHOAL_OK) {
        memcpy(body->joined, part[0].iov_base, part[0].iov_len);
        memcpy(body->joined + part[0].iov_len, part[1].iov_base, part[1].iov_len);
    }
    return status;
}

int folder_body_write(folder_store *self, folder_body *body, const store_body *from, const char *key,
                      store_attempt *attempt)
{
    *body = (folder_body){.from = from, .size = store_body_size(from), .descriptor = -1};
    body->large = body->size > FOLDER_INLINE_MOST;
    if (!body->large)
        return join_parts(body);
    int status = make_temporary(self, body, key);
    for (int i = 0; i < 2 && status == SHOAL_OK; i++)
        status = write_bytes(self, body->descriptor, from->part[i].iov_base, from->part[i].iov_len, key, attempt);
    if (status == SHOAL_OK && self->sync && fdatasync(body->descriptor) != 0)
        status = fail_body(self, key, errno, "can't flush its body to the disk");
    return status;
}

/* The next number.  It is handed out again if the transaction is not committed. */
static int next_number(folder_store *self, int64_t *out, const char *key)
{
    folder_connection *writer = self->writer;
    int status = folder_run(writer, QUERY_NUMBER, key);
    if (status != 1)
        return status < 0 ? status
                          : store_fail(&self->store, key, SHOAL_BROKEN,
                                       "%s/index.db is damaged (its row of state is missing)", self->root);
    *out = sqlite3_column_int64(writer->statement[QUERY_NUMBER], 0) + 1;
    folder_reset(writer, QUERY_NUMBER);
    status = SHOAL_OK;
    if (!folder_statement(writer, QUERY_NUMBER_SET, &status))
        return status;
    sqlite3_bind_int64(writer->statement[QUERY_NUMBER_SET], 1, *out);
    return folder_step(writer, QUERY_NUMBER_SET, key);
}

int folder_body_place(folder_store *self, folder_body *body, const char *key)
{
    char name[NAME_LETTERS + 1];
    if (!body->large)
        return SHOAL_OK;
    int status = next_number(self, &body->number, key);
    if (status < 0)
        return status;
    body_name(name, body->number);
    if (renameat(self->temp_folder, body->name, self->bodies_folder, name) != 0)
        return fail_body(self, key, errno, "can't rename its body into place");
    body->placed = true;
    if (self->sync && fsync(self->bodies_folder) != 0)
        return fail_body(self, key, errno, "can't flush its body's folder to the disk");
    return SHOAL_OK;
}

void folder_body_unplace(folder_store *self, folder_body *body, bool unsure)
{
    char name[NAME_LETTERS + 1];
    if (!body->placed || unsure)
        return;
    body_name(name, body->number);
    if (renameat(self->bodies_folder, name, self->temp_folder, body->name) != 0)
        unlinkat(self->bodies_folder, name, 0);
    body->placed = false;
}

void folder_body_bind(const folder_body *body, sqlite3_stmt *statement, int number_at, int bytes_at)
{
    const struct iovec *part = &body->from->part[body->from->part[0].iov_len > 0 ? 0 : 1];
    if (body->large) {
        sqlite3_bind_int64(statement, number_at, body->number);
        sqlite3_bind_null(statement, bytes_at);
    } else {
        const void *bytes = body->joined ? body->joined : part->iov_base;
        sqlite3_bind_null(statement, number_at);
        sqlite3_bind_blob(statement, bytes_at, body->size ? bytes : "", (int)body->size, SQLITE_STATIC);
    }
}

void folder_body_release(folder_store *self, folder_body *body)
{
    if (body->descriptor >= 0) {
        if (!body->placed)
            unlinkat(self->temp_folder, body->name, 0);
        close(body->descriptor);
        body->descriptor = -1;
    }
    base_free(&body->joined);
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

int folder_body_read(folder_store *self, int64_t number, int64_t whole, void *out, int64_t offset, int64_t length,
                     const char *key)
{
    char name[NAME_LETTERS + 1];
    struct stat info;
    int status = SHOAL_OK;
    body_name(name, number);
    int descriptor = openat(self->bodies_folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (descriptor < 0)
        return errno == ENOENT ? SHOAL_ABSENT : fail_body(self, key, errno, "can't open its body");
    if (fstat(descriptor, &info) != 0 || info.st_size != whole)
        status = store_fail(&self->store, key, SHOAL_BROKEN, "its body %s/bodies/%s has %lld bytes instead of %lld",
                            self->root, name, (long long)info.st_size, (long long)whole);
    if (status == SHOAL_OK) {
        size_t got;
        int error = base_read_all_at(descriptor, out, (size_t)length, offset, &got);
        if (error)
            status = fail_body(self, key, error, "can't read its body");
        else if (got < (size_t)length)
            status =
                store_fail(&self->store, key, SHOAL_BROKEN, "its body %s/bodies/%s was truncated", self->root, name);
    }
    close(descriptor);
    return status;
}

/* ---- removing ---------------------------------------------------------------------------------------------------- */

static int forget_body(folder_store *self, int64_t number, const char *key)
{
    int status = SHOAL_OK;
    sqlite3_stmt *statement = folder_statement(self->writer, QUERY_GARBAGE_FORGET, &status);
    if (!statement)
        return status;
    sqlite3_bind_int64(statement, 1, number);
    return folder_step(self->writer, QUERY_GARBAGE_FORGET, key);
}

/* A body of the list that this handle has unlinked; 0 when there is none. */
static int64_t next_forgettable(folder_store *self)
{
    pthread_mutex_lock(&self->lists_lock);
    int64_t number = self->forgettable_count > 0 ? self->forgettable[--self->forgettable_count] : 0;
    pthread_mutex_unlock(&self->lists_lock);
    return number;
}

int folder_garbage_add(folder_store *self, int64_t number, const char *key)
{
    int status = SHOAL_OK;
    if (number == 0)
        return SHOAL_OK;
    sqlite3_stmt *statement = folder_statement(self->writer, QUERY_GARBAGE_ADD, &status);
    if (!statement)
        return status;
    sqlite3_bind_int64(statement, 1, number);
    status = folder_step(self->writer, QUERY_GARBAGE_ADD, key);
    /* If this is not committed, they stay on the list until a store is opened. */
    for (int64_t gone; status == SHOAL_OK && (gone = next_forgettable(self));)
        status = forget_body(self, gone, key);
    return status;
}

static void unlink_body(folder_store *self, int64_t number)
{
    char name[NAME_LETTERS + 1];
    body_name(name, number);
    unlinkat(self->bodies_folder, name, 0);
}

void folder_garbage_unlink(folder_store *self, int64_t number)
{
    unlink_body(self, number);
    pthread_mutex_lock(&self->lists_lock);
    if (self->forgettable_count < FOLDER_GARBAGE)
        self->forgettable[self->forgettable_count++] = number;
    pthread_mutex_unlock(&self->lists_lock);
}

static int sweep_listed(folder_store *self, folder_change *change, store_attempt *attempt)
{
    folder_connection *writer = self->writer;
    int64_t number = 0;
    int status = SHOAL_OK;
    (void)change, (void)attempt;
    for (;;) {
        sqlite3_stmt *statement = folder_statement(writer, QUERY_GARBAGE, &status);
        if (!statement)
            return status;
        sqlite3_bind_int64(statement, 1, number);
        status = folder_step(writer, QUERY_GARBAGE, NULL);
        if (status != 1)
            return status;
        number = sqlite3_column_int64(statement, 0);
        folder_reset(writer, QUERY_GARBAGE);
        unlink_body(self, number);
        status = forget_body(self, number, NULL);
        if (status < 0)
            return status;
    }
}

int folder_garbage_sweep(folder_store *self, bool inside, store_attempt *attempt)
{
    folder_change change = {.work = sweep_listed, .frees = true};
    return inside ? folder_transact_inside(self, &change, attempt) : folder_transact(self, &change, attempt);
}

/* ---- what dead writers left -------------------------------------------------------------------------------------- */

/* Calls `look` with every name in a folder. */
static int each_name(folder_store *self, int folder, const char *called, int (*look)(folder_store *self, const char *))
{
    int status = SHOAL_OK;
    int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *names = copy >= 0 ? fdopendir(copy) : NULL;
    if (!names) {
        int error = errno;
        if (copy >= 0)
            close(copy);
        return shoal_fail_errno(SHOAL_SYSTEM, error, "%s: can't list %s", self->store.name, called);
    }
    for (struct dirent *entry; status == SHOAL_OK && (entry = readdir(names));)
        if (entry->d_name[0] != '.')
            status = look(self, entry->d_name);
    closedir(names);
    return status;
}

static int sweep_temporary(folder_store *self, const char *name)
{
    int descriptor = openat(self->temp_folder, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (descriptor < 0)
        return SHOAL_OK; /* its writer was quicker, or we can't tell */
    if (flock(descriptor, LOCK_EX | LOCK_NB) == 0)
        unlinkat(self->temp_folder, name, 0);
    close(descriptor);
    return SHOAL_OK;
}

/* Unlinks a body that no row refers to.  Only under the gate: outside, one in its place may wait for its commit. */
static int sweep_body(folder_store *self, const char *name)
{
    int64_t number = body_number(name);
    int status = SHOAL_OK;
    sqlite3_stmt *statement = folder_statement(self->writer, QUERY_IS_USED, &status);
    if (!statement || number == 0)
        return status;
    sqlite3_bind_int64(statement, 1, number);
    status = folder_step(self->writer, QUERY_IS_USED, NULL);
    folder_reset(self->writer, QUERY_IS_USED);
    if (status == 0)
        unlinkat(self->bodies_folder, name, 0);
    return status < 0 ? status : SHOAL_OK;
}

/* The body of a writer that died between naming and committing has the number that comes next. */
static int sweep_next_number(folder_store *self)
{
    int status = folder_run(self->writer, QUERY_NUMBER, NULL);
    if (status != 1)
        return status;
    unlink_body(self, sqlite3_column_int64(self->writer->statement[QUERY_NUMBER], 0) + 1);
    folder_reset(self->writer, QUERY_NUMBER);
    return SHOAL_OK;
}

int folder_sweep(folder_store *self, bool fresh_boot, store_attempt *attempt)
{
    self->writer->attempt = attempt;
    int status = each_name(self, self->temp_folder, "temp", sweep_temporary);
    if (status == SHOAL_OK)
        status = sweep_next_number(self);
    if (status == SHOAL_OK)
        status = folder_garbage_sweep(self, true, attempt);
    self->writer->attempt = attempt;
    if (status == SHOAL_OK && fresh_boot)
        status = each_name(self, self->bodies_folder, "bodies", sweep_body);
    self->writer->attempt = NULL;
    return status;
}
