/* The index of an embedded store: SQLite in WAL mode, its statements, transactions, and what its errors mean to a
 * caller.
 *
 * A handle has one connection that writes, used only inside the gate, and one for each concurrent reader; those never
 * wait for a writer.  Checkpoints happen inside the gate too: with nobody writing meanwhile they reach the end of the
 * log, which then starts over instead of growing. */
#include "folder_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/world.h"

enum {
    CHECKPOINT_PAGES = 4000,     /* in the log until they are moved to the database */
    CHECKPOINT_PAGES_SYNC = 256, /* the same with sync=full: a log that is written over is synced sooner than one that
                                  * grows, whose size has to reach the disk as well */
    CHECKPOINT_PATIENCE = 8,     /* times as many until readers that keep the log from starting over are waited for */
    WRITER_CACHE_KIB = 8192
};
static const int64_t BUSY_PAUSE = 200000;       /* nanoseconds between two tries for a lock of SQLite's */
static const int64_t STOPPED_AFTER = 200000000; /* until we look for a stopped process */
static const int64_t CHECKPOINT_WAIT = 500000000;
static const int64_t TICK_MOST = 20000000; /* between two timestamps that a file system distinguishes */

static const char schema[] =
    "CREATE TABLE IF NOT EXISTS state(name TEXT PRIMARY KEY, value) WITHOUT ROWID;INSERT OR IGNORE INTO state "
    "VALUES('bodies', 0), ('boot', '');CREATE TABLE IF NOT EXISTS blobs(key BLOB PRIMARY KEY, etag BLOB NOT NULL, time "
    "INTEGER NOT NULL, size INTEGER NOT NULL, file INTEGER, data BLOB) WITHOUT ROWID;CREATE INDEX IF NOT EXISTS "
    "blob_files ON blobs(file) WHERE file IS NOT NULL;CREATE TABLE IF NOT EXISTS messages(id INTEGER PRIMARY KEY, "
    "queue BLOB NOT NULL, visible INTEGER NOT NULL, deliveries INTEGER NOT NULL, holder BLOB, size INTEGER NOT NULL, "
    "file INTEGER, data BLOB);CREATE INDEX IF NOT EXISTS message_order ON messages(queue, visible);CREATE INDEX IF NOT "
    "EXISTS message_files ON messages(file) WHERE file IS NOT NULL;CREATE TABLE IF NOT EXISTS garbage(file INTEGER "
    "PRIMARY KEY);PRAGMA user_version = 1;";

static const char *const queries[QUERIES] = {
    [QUERY_BEGIN] = "BEGIN IMMEDIATE",
    [QUERY_COMMIT] = "COMMIT",
    [QUERY_ROLLBACK] = "ROLLBACK",
    [QUERY_FIND] = "SELECT etag, time, size, file, data FROM blobs WHERE key = ?1",
    [QUERY_VERSION] = "SELECT etag, file FROM blobs WHERE key = ?1",
    [QUERY_PUT] = "REPLACE INTO blobs(key, etag, time, size, file, data) VALUES(?1, ?2, ?3, ?4, ?5, ?6)",
    [QUERY_REMOVE] = "DELETE FROM blobs WHERE key = ?1",
    [QUERY_LIST] = "SELECT key, size, etag, time FROM blobs WHERE key >= ?1 AND key < ?2 ORDER BY key LIMIT ?3",
    [QUERY_NUMBER] = "SELECT value FROM state WHERE name = 'bodies'",
    [QUERY_NUMBER_SET] = "UPDATE state SET value = ?1 WHERE name = 'bodies'",
    [QUERY_BOOT] = "SELECT value FROM state WHERE name = 'boot'",
    [QUERY_BOOT_SET] = "UPDATE state SET value = ?1 WHERE name = 'boot'",
    [QUERY_VOID_LEASES] = "UPDATE messages SET visible = 0, holder = NULL",
    [QUERY_GARBAGE] = "SELECT file FROM garbage WHERE file > ?1 ORDER BY file LIMIT 1",
    [QUERY_GARBAGE_ADD] = "INSERT OR IGNORE INTO garbage(file) VALUES(?1)",
    [QUERY_GARBAGE_FORGET] = "DELETE FROM garbage WHERE file = ?1",
    [QUERY_IS_USED] = "SELECT 1 FROM blobs WHERE file = ?1 UNION ALL SELECT 1 FROM messages WHERE file = ?1 LIMIT 1",
    [QUERY_PUSH] = "INSERT INTO messages(queue, visible, deliveries, size, file, data) VALUES(?1, ?2, 0, ?3, ?4, ?5)",
    [QUERY_ANY] = "SELECT 1 FROM messages WHERE queue = ?1 AND visible <= ?2 LIMIT 1",
    [QUERY_NEXT] = ("SELECT id, deliveries, size, file, data FROM messages WHERE queue = ?1 AND visible <= ?2 ORDER "
                    "BY visible, id LIMIT 1"),
    [QUERY_LEASE] = "UPDATE messages SET visible = ?2, holder = ?3, deliveries = deliveries + 1 WHERE id = ?1",
    [QUERY_EXTEND] = "UPDATE messages SET visible = ?2 WHERE id = ?1",
    [QUERY_MESSAGE] = "SELECT queue, holder, visible, file FROM messages WHERE id = ?1",
    [QUERY_FINISH] = "DELETE FROM messages WHERE id = ?1",
    [QUERY_COUNT] = "SELECT count(*) FROM messages WHERE queue = ?1",
    [QUERY_DROP_BODIES] = "INSERT INTO garbage SELECT file FROM messages WHERE queue = ?1 AND file IS NOT NULL",
    [QUERY_DROP] = "DELETE FROM messages WHERE queue = ?1",
};

/* ---- errors ------------------------------------------------------------------------------------------------------ */

static int fail_index(folder_connection *connection, int code, const char *key, store_attempt *attempt)
{
    folder_store *self = connection->store;
    int error = sqlite3_system_errno(connection->db);
    error = error ? error : connection->error;
    switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_PROTOCOL: return folder_fail_busy(self, key, attempt, connection->blocker, connection->blocker_state);
    case SQLITE_NOMEM: return store_fail(&self->store, key, SHOAL_MEMORY, "out of memory for the index");
    case SQLITE_FULL: error = ENOSPC; break;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_FORMAT:
    case SQLITE_SCHEMA:
        return store_fail(&self->store, key, SHOAL_BROKEN, "%s/index.db is damaged (%s)", self->root,
                          sqlite3_errstr(code));
    case SQLITE_READONLY: error = EROFS; break;
    case SQLITE_IOERR:
        if (code == SQLITE_IOERR_NOMEM)
            return store_fail(&self->store, key, SHOAL_MEMORY, "out of memory for the index");
        if (code == SQLITE_IOERR_SHORT_READ || code == SQLITE_IOERR_CORRUPTFS || code == SQLITE_IOERR_DATA)
            return store_fail(&self->store, key, SHOAL_BROKEN, "%s/index.db is truncated or damaged", self->root);
        break;
    case SQLITE_ERROR: /* for example no such table: another program's database, or half of ours */
        return store_fail(&self->store, key, SHOAL_BROKEN, "%s/index.db was not created by shoal, or is damaged (%s)",
                          self->root, sqlite3_errmsg(connection->db));
    default: break;
    }
    if (error)
        return shoal_fail_errno(error == EACCES || error == EPERM ? SHOAL_DENIED : SHOAL_SYSTEM, error,
                                "%s%s%s: %s/index.db", self->store.name, key ? "/" : "", key ? key : "", self->root);
    return store_fail(&self->store, key, SHOAL_SYSTEM, "%s/index.db: %s", self->root, sqlite3_errstr(code));
}

/* ---- statements -------------------------------------------------------------------------------------------------- */

sqlite3_stmt *folder_statement(folder_connection *connection, folder_query query, int *status)
{
    sqlite3_stmt **statement = &connection->statement[query];
    if (!*statement) {
        int code = sqlite3_prepare_v3(connection->db, queries[query], -1, SQLITE_PREPARE_PERSISTENT, statement, NULL);
        if (code != SQLITE_OK)
            *status = fail_index(connection, code, NULL, connection->attempt);
    }
    return *statement;
}

void folder_reset(folder_connection *connection, folder_query query)
{
    if (connection->statement[query])
        sqlite3_reset(connection->statement[query]);
}

int folder_step(folder_connection *connection, folder_query query, const char *key)
{
    errno = 0;
    int code = sqlite3_step(connection->statement[query]);
    connection->error = errno; /* SQLite itself does not keep it when a commit fails */
    if (code == SQLITE_ROW)
        return 1;
    int status = code == SQLITE_DONE ? SHOAL_OK : fail_index(connection, code, key, connection->attempt);
    connection->full |= (code & 0xff) == SQLITE_FULL ||
                        ((code & 0xff) == SQLITE_IOERR && (connection->error == ENOSPC || connection->error == EDQUOT));
    connection->unsure |= code == SQLITE_IOERR_FSYNC || code == SQLITE_IOERR_DIR_FSYNC;
    sqlite3_reset(connection->statement[query]);
    return status;
}

int folder_run(folder_connection *connection, folder_query query, const char *key)
{
    int status = SHOAL_OK;
    return folder_statement(connection, query, &status) ? folder_step(connection, query, key) : status;
}

/* ---- connections ------------------------------------------------------------------------------------------------- */

/* Called by SQLite when a lock is taken: sleeps and has it tried again, until the deadline. */
static int wait_for_lock(void *context, int tries)
{
    folder_connection *connection = context;
    int64_t now = base_now(), deadline = connection->attempt ? connection->attempt->deadline : 0;
    if (tries == 0) {
        connection->next_look = now + STOPPED_AFTER;
        connection->blocker = 0;
    }
    if (now >= deadline)
        return 0;
    if (now >= connection->next_look) {
        char path[4096];
        struct stat info; /* stat, since opening and closing the file would drop the locks of this process */
        snprintf(path, sizeof path, "%s/index.db-shm", connection->store->root);
        if (stat(path, &info) == 0)
            folder_wake_holder("POSIX", &info, &connection->blocker, &connection->blocker_state);
        connection->next_look = now + STOPPED_AFTER;
    }
    int64_t until = now + BUSY_PAUSE;
    base_sleep_until(until < deadline ? until : deadline);
    return 1;
}

static void connection_free(folder_connection **inout)
{
    folder_connection *connection = *inout;
    if (!connection)
        return;
    for (int i = 0; i < QUERIES; i++)
        sqlite3_finalize(connection->statement[i]);
    sqlite3_close(connection->db);
    base_free(inout);
}

/* Whether the database has to be read without locks: a folder that can't be written to, with no log beside it, has no
 * place for the shared memory that SQLite would make.  A writer may come at any time, so such a connection is good for
 * one call. */
static bool is_immutable(const folder_store *self)
{
    return self->read_only && access(self->root, W_OK) != 0 &&
           faccessat(self->root_folder, "index.db-wal", F_OK, 0) != 0;
}

/* When the database was last changed; false if that can't be told. */
static bool read_time(const folder_store *self, struct timespec *out)
{
    struct stat info;
    bool known = fstatat(self->root_folder, "index.db", &info, 0) == 0;
    if (known)
        *out = info.st_mtim;
    return known;
}

static void note_time(folder_connection *connection)
{
    struct timespec *written = &connection->written;
    int64_t now = base_wall_now();
    connection->just_written = !read_time(connection->store, written);
    int64_t age = now - ((int64_t)written->tv_sec * 1000000000 + written->tv_nsec);
    connection->just_written |= age >= 0 && age < TICK_MOST;
}

/* Without locks a writer may come and go while the database is read, and pages of two versions may be mixed. */
static int check_unchanged(folder_connection *connection, int status)
{
    struct timespec now;
    if (!connection->immutable ||
        (!connection->just_written && read_time(connection->store, &now) && now.tv_sec == connection->written.tv_sec &&
         now.tv_nsec == connection->written.tv_nsec))
        return status;
    if (connection->attempt)
        connection->attempt->cause = SHOAL_CAUSE_RACE;
    return store_fail(&connection->store->store, NULL, SHOAL_AGAIN, "it was written to while being read");
}

static int database_name(char **out, const folder_store *self, bool immutable)
{
    if (!immutable)
        return base_format(out, "%s/index.db", self->root);
    int status = base_alloc(out, 3 * strlen(self->root) + 64, 1, "a path");
    char *next = status == SHOAL_OK ? stpcpy(*out, "file:") : NULL;
    for (const char *letter = self->root; next && *letter; letter++)
        next += sprintf(next, strchr("%?#", *letter) ? "%%%02x" : "%c", (unsigned char)*letter);
    if (next)
        strcpy(next, "/index.db?immutable=1");
    return status;
}

static int connection_open(folder_connection **out, folder_store *self, bool writes, bool create,
                           store_attempt *attempt)
{
    folder_connection *connection = NULL;
    char *name = NULL, settings[256];
    int flags = (self->read_only ? SQLITE_OPEN_READONLY | SQLITE_OPEN_URI : SQLITE_OPEN_READWRITE) |
                (create ? SQLITE_OPEN_CREATE : 0) | (self->no_links ? SQLITE_OPEN_NOFOLLOW : 0) | SQLITE_OPEN_NOMUTEX |
                SQLITE_OPEN_PRIVATECACHE;
    int status = base_alloc(&connection, 1, sizeof *connection, "a connection");
    bool immutable = is_immutable(self);
    if (status == SHOAL_OK)
        status = database_name(&name, self, immutable);
    if (status < 0)
        goto done;
    connection->immutable = immutable;
    connection->store = self;
    connection->attempt = attempt;
    if (immutable)
        note_time(connection);
    int code = sqlite3_open_v2(name, &connection->db, flags, NULL);
    if (code == SQLITE_OK) {
        sqlite3_extended_result_codes(connection->db, 1);
        sqlite3_busy_handler(connection->db, wait_for_lock, connection);
        snprintf(settings, sizeof settings,
                 "PRAGMA trusted_schema = OFF; PRAGMA secure_delete = OFF; PRAGMA temp_store = MEMORY;PRAGMA "
                 "wal_autocheckpoint = 0; PRAGMA synchronous = %s; PRAGMA cache_size = %d;",
                 self->sync ? "FULL" : "NORMAL", writes ? -WRITER_CACHE_KIB : -2000);
        code = sqlite3_exec(connection->db, settings, NULL, NULL, NULL);
    }
    if (code != SQLITE_OK) {
        bool missing = (code & 0xff) == SQLITE_CANTOPEN && faccessat(self->root_folder, "index.db", F_OK, 0) != 0;
        if (!connection->db)
            status = store_fail(&self->store, NULL, SHOAL_MEMORY, "out of memory for the index");
        else if (missing && errno == ENOENT)
            status = store_fail(&self->store, NULL, SHOAL_BROKEN, "%s/index.db is missing", self->root);
        else
            status = check_unchanged(connection, fail_index(connection, code, NULL, attempt));
        goto done;
    }
    *out = connection;
    connection = NULL;
done:
    connection_free(&connection);
    base_free(&name);
    return status;
}

int folder_reader(folder_store *self, folder_connection **out, store_attempt *attempt)
{
    pthread_mutex_lock(&self->lists_lock);
    folder_connection *connection = self->idle_readers;
    if (connection) {
        self->idle_readers = connection->next;
        self->idle_reader_count--;
    }
    pthread_mutex_unlock(&self->lists_lock);
    if (connection)
        connection->attempt = attempt;
    *out = connection;
    return connection ? SHOAL_OK : connection_open(out, self, false, false, attempt);
}

int folder_reader_return(folder_store *self, folder_connection **inout, int status)
{
    folder_connection *connection = *inout;
    if (!connection)
        return status;
    status = check_unchanged(connection, status);
    connection->attempt = NULL;
    pthread_mutex_lock(&self->lists_lock);
    if (self->idle_reader_count < FOLDER_IDLE_READERS && !connection->immutable) {
        connection->next = self->idle_readers;
        self->idle_readers = connection;
        self->idle_reader_count++;
        *inout = NULL;
    }
    pthread_mutex_unlock(&self->lists_lock);
    connection_free(inout);
    return status;
}

/* ---- transactions ------------------------------------------------------------------------------------------------ */

static int note_log_size(void *context, sqlite3 *db, const char *name, int pages)
{
    (void)db, (void)name;
    ((folder_store *)context)->wal_pages = pages;
    return SQLITE_OK;
}

/* Moves the log into the database when it has grown.  What fails here, on a full disk say, costs nothing but the log's
 * length, and is tried again when it has grown by as much again. */
static void checkpoint(folder_store *self, bool now)
{
    folder_connection *writer = self->writer;
    int most = self->sync ? CHECKPOINT_PAGES_SYNC : CHECKPOINT_PAGES;
    if (!now && self->wal_pages < self->checkpoint_at)
        return;
    bool wait = self->wal_pages >= CHECKPOINT_PATIENCE * most;
    store_attempt patience = {.deadline = base_now() + CHECKPOINT_WAIT}, *attempt = writer->attempt;
    int log = -1, moved = -2;
    writer->attempt = &patience;
    sqlite3_wal_checkpoint_v2(writer->db, NULL, wait ? SQLITE_CHECKPOINT_RESTART : SQLITE_CHECKPOINT_PASSIVE, &log,
                              &moved);
    writer->attempt = attempt;
    self->checkpoint_at = log == moved ? most : self->wal_pages + most;
}

/* Leaves the message as it is.  The statement was made when the store was opened, since now there may be no memory. */
static void roll_back(folder_connection *connection)
{
    if (!sqlite3_get_autocommit(connection->db) && connection->statement[QUERY_ROLLBACK]) {
        sqlite3_step(connection->statement[QUERY_ROLLBACK]);
        sqlite3_reset(connection->statement[QUERY_ROLLBACK]);
    }
}

/* Begins, works and commits; the gate is held. */
static int transact_once(folder_store *self, folder_change *change, store_attempt *attempt)
{
    folder_connection *writer = self->writer;
    writer->full = writer->unsure = false;
    change->replaced = 0;
    int status = folder_run(writer, QUERY_BEGIN, change->key);
    if (status == SHOAL_OK)
        status = change->work(self, change, attempt);
    if (status == SHOAL_OK) {
        folder_announce_begin(self);
        status = folder_run(writer, QUERY_COMMIT, change->key);
        folder_announce_end(self, status == SHOAL_OK && change->tells ? change->key : NULL);
    }
    if (status < 0) {
        roll_back(writer);
        if (change->body)
            folder_body_unplace(self, change->body, writer->unsure);
    }
    return status;
}

int folder_transact_inside(folder_store *self, folder_change *change, store_attempt *attempt)
{
    self->writer->attempt = attempt;
    int status = transact_once(self, change, attempt);
    if (status < 0 && self->writer->full && !self->writer->unsure) {
        checkpoint(self, true);
        status = transact_once(self, change, attempt);
    }
    if (status < 0 && self->writer->full && !self->writer->unsure && change->frees && folder_spare_release(self)) {
        change->used_spare = true;
        status = transact_once(self, change, attempt);
    }
    if (status == SHOAL_OK)
        checkpoint(self, false);
    self->writer->attempt = NULL;
    return status;
}

int folder_transact(folder_store *self, folder_change *change, store_attempt *attempt)
{
    int status = folder_enter(self, change->key, attempt);
    if (status < 0)
        return status;
    status = folder_transact_inside(self, change, attempt);
    folder_leave(self);
    if (status == SHOAL_OK && change->replaced)
        folder_garbage_unlink(self, change->replaced);
    if (change->used_spare)
        folder_spare_restore(self);
    return status;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static int execute(folder_connection *connection, const char *text)
{
    int code = sqlite3_exec(connection->db, text, NULL, NULL, NULL);
    if (code == SQLITE_OK)
        return SHOAL_OK;
    int status = fail_index(connection, code, NULL, connection->attempt);
    roll_back(connection);
    return status;
}

int folder_index_create(folder_store *self, store_attempt *attempt)
{
    folder_connection *connection = NULL;
    int status = connection_open(&connection, self, true, true, attempt);
    if (status == SHOAL_OK)
        status = execute(connection, "PRAGMA page_size = 8192; PRAGMA journal_mode = WAL; BEGIN IMMEDIATE;");
    if (status == SHOAL_OK)
        status = execute(connection, schema);
    if (status == SHOAL_OK)
        status = execute(connection, "COMMIT");
    connection_free(&connection);
    return status;
}

static int check_format(folder_connection *connection)
{
    sqlite3_stmt *statement = NULL;
    folder_store *self = connection->store;
    int code = sqlite3_prepare_v2(connection->db, "PRAGMA user_version", -1, &statement, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_step(statement);
    int format = code == SQLITE_ROW ? sqlite3_column_int(statement, 0) : -1;
    sqlite3_finalize(statement);
    if (code != SQLITE_ROW)
        return fail_index(connection, code, NULL, connection->attempt);
    if (format != FOLDER_FORMAT)
        return store_fail(&self->store, NULL, SHOAL_BROKEN,
                          "%s/index.db was not created by shoal, or is damaged (format %d)", self->root, format);
    return SHOAL_OK;
}

/* Leases are counted on a clock that starts with the machine.  After a restart all of them are void, as they would be
 * by now, or soon, on a clock that kept running. */
static int void_old_leases(folder_store *self, folder_change *change, store_attempt *attempt)
{
    folder_connection *writer = self->writer;
    char boot[BASE_BOOT_ID_BYTES];
    (void)attempt;
    base_boot_id(boot);
    int status = folder_run(writer, QUERY_BOOT, NULL);
    if (status == 1) {
        const char *known = (const char *)sqlite3_column_text(writer->statement[QUERY_BOOT], 0);
        *(bool *)change->context = !known || strcmp(known, boot) != 0;
        folder_reset(writer, QUERY_BOOT);
        status = SHOAL_OK;
    }
    if (status < 0 || !*(bool *)change->context)
        return status;
    if (!folder_statement(writer, QUERY_BOOT_SET, &status))
        return status;
    sqlite3_bind_text(writer->statement[QUERY_BOOT_SET], 1, boot, -1, SQLITE_TRANSIENT);
    status = folder_step(writer, QUERY_BOOT_SET, NULL);
    return status == SHOAL_OK ? folder_run(writer, QUERY_VOID_LEASES, NULL) : status;
}

int folder_index_open(folder_store *self, bool *fresh_boot, store_attempt *attempt)
{
    folder_connection *connection = NULL;
    int status = connection_open(&connection, self, !self->read_only, false, attempt);
    if (status == SHOAL_OK)
        status = check_format(connection);
    if (self->read_only)
        return folder_reader_return(self, &connection, status);
    if (status < 0) {
        connection_free(&connection);
        return status;
    }
    self->writer = connection;
    self->checkpoint_at = self->sync ? CHECKPOINT_PAGES_SYNC : CHECKPOINT_PAGES;
    sqlite3_wal_hook(connection->db, note_log_size, self);
    if (!folder_statement(connection, QUERY_ROLLBACK, &status))
        return status;
    folder_change change = {.work = void_old_leases, .context = fresh_boot};
    return folder_transact_inside(self, &change, attempt);
}

void folder_index_close(folder_store *self)
{
    while (self->idle_readers) {
        folder_connection *connection = self->idle_readers;
        self->idle_readers = connection->next;
        connection_free(&connection);
    }
    connection_free(&self->writer);
}

/* ---- small things ------------------------------------------------------------------------------------------------ */

void folder_fresh_id(folder_store *self, unsigned char id[FOLDER_ID_BYTES])
{
    uint64_t count = atomic_fetch_add(&self->id_count, 1);
    memcpy(id, self->id_start, sizeof self->id_start);
    for (int i = 0; i < 8; i++)
        id[8 + i] = (unsigned char)(count >> (56 - 8 * i));
}

int folder_check_use(const folder_store *self, const char *key, bool writes)
{
    if (self->process != getpid())
        return store_fail(&self->store, key, SHOAL_USAGE,
                          "the store was opened before a fork: open it in the process that uses it");
    if (writes && self->read_only)
        return store_fail(&self->store, key, SHOAL_DENIED, "the store was opened read-only");
    return SHOAL_OK;
}
