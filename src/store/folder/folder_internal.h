/* The parts of the embedded store, and how they fit together.
 *
 *     store_folder.c    the class: blobs, listing, waiting, opening and closing
 *     folder_queue.c    the class: queues
 *     folder_place.c    which folder a URL means, what is refused, how a new store is made
 *     folder_index.c    SQLite: connections, statements, transactions, what its errors mean
 *     folder_body.c     large bodies as files: written, put in their place, read, swept
 *     folder_gate.c     the gate that writers pass one at a time, and the words that processes share
 *     folder_holder.c   who is in the way, and waking a stopped one
 *
 * A store is a folder:
 *
 *     shoal-store       says that the folder is one, and of which format; written last when a store is made
 *     index.db          SQLite in WAL mode: keys, versions, queues, and bodies of at most FOLDER_INLINE_MOST bytes
 *     bodies/NUMBER     larger ones, a file each, never changed once they have this name
 *     temp/NAME         bodies being written; each is locked by its live writer
 *     gate              locked (flock) by the one process that may write to the index
 *     wake              mapped by all: counters of changes to sleep on, and hints about the gate
 *     spare             room on the disk that is given up when it is full, so that things can still be removed
 *
 * Why kill -9 leaves no harm, wherever it strikes.  A put of a large body
 *     1  writes temp/NAME, which it holds locked;
 *     2  enters the gate and begins a transaction;
 *     3  takes the next body number N from the index, and renames temp/NAME to bodies/N;
 *     4  writes the row that refers to N and lists the replaced body in `garbage`;
 *     5  commits: from here on, and not before, others see the put;
 *     6  leaves the gate, unlinks the replaced body, and takes it off the list in some later transaction.
 * Killed in 1 or 2 it leaves an unlocked temporary, which the next open sweeps.  Killed in 3 or 4 it leaves bodies/N,
 * while the index, rolled back, will hand out N again: the next large put renames over it, and every open removes
 * it.  Killed after 5 the put is done, and the replaced body is on the list, which every open sweeps.  A number that
 * was committed is never used again, so whoever reads a body reads the one its row meant, or finds it gone and looks
 * the row up again. The kernel opens the gate of whoever dies, and SQLite rolls back what was not committed.  With
 * sync=full each step is on the disk before the next that relies on it: the body's bytes before 3, its name before 5,
 * the commit before 6. */
#ifndef FOLDER_INTERNAL_H
#define FOLDER_INTERNAL_H

#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "store/store_internal.h"

enum {
    FOLDER_FORMAT = 1,
    FOLDER_INLINE_MOST = 8192, /* bytes of a body that is kept in the index */
    FOLDER_ID_BYTES = 16,      /* of versions and receipts */
    FOLDER_ETAG_LETTERS = 2 * FOLDER_ID_BYTES,
    FOLDER_IDLE_READERS = 8, /* connections kept for the next reader */
    FOLDER_GARBAGE = 32      /* removed bodies that a handle remembers to take off the list */
};

/* ---- what processes share (the file wake) ------------------------------------------------------------------------ */

/* All of these are hints, which must stay useful after any process was killed at any moment, and after a power cut.
 * Times are on the machine's clock; one too far ahead is from an earlier boot and means nothing. */
typedef struct folder_shared {
    store_wake wake;
    _Atomic uint32_t released;    /* counts times the gate was opened while someone waited; those sleep on it */
    _Atomic uint32_t holder;      /* the handle that passed the gate last; who lets others go first sleeps on it */
    _Atomic uint32_t committing;  /* not 0 while a change may be committed and not yet announced */
    _Atomic uint32_t waiters;     /* roughly how many wait at the gate: too many after one was killed */
    _Atomic int64_t eager_until;  /* a waiter that was not yet woken in vain waits until then */
    _Atomic int64_t wanted_until; /* anyone does */
    _Atomic int64_t looked_at;    /* when one of them last looked for a holder that is stopped */
    _Atomic uint32_t passed;      /* counts times the gate was passed */
    char room[4096 - 44];
} folder_shared;

/* ---- a handle ---------------------------------------------------------------------------------------------------- */

/* Every statement of the store; their texts are in folder_index.c. */
typedef enum folder_query {
    QUERY_BEGIN,
    QUERY_COMMIT,
    QUERY_ROLLBACK,
    QUERY_FIND,
    QUERY_VERSION,
    QUERY_PUT,
    QUERY_REMOVE,
    QUERY_LIST,
    QUERY_NUMBER,
    QUERY_NUMBER_SET,
    QUERY_BOOT,
    QUERY_BOOT_SET,
    QUERY_VOID_LEASES,
    QUERY_GARBAGE,
    QUERY_GARBAGE_ADD,
    QUERY_GARBAGE_FORGET,
    QUERY_IS_USED,
    QUERY_PUSH,
    QUERY_ANY,
    QUERY_NEXT,
    QUERY_LEASE,
    QUERY_EXTEND,
    QUERY_MESSAGE,
    QUERY_FINISH,
    QUERY_COUNT,
    QUERY_DROP_BODIES,
    QUERY_DROP,
    QUERIES
} folder_query;

typedef struct folder_connection {
    struct folder_connection *next;
    struct folder_store *store;
    sqlite3 *db;
    sqlite3_stmt *statement[QUERIES];
    store_attempt *attempt; /* of the call that uses it: how long SQLite may wait for a lock */
    int64_t next_look;      /* when it looks for a stopped holder of a lock next */
    pid_t blocker;          /* the process found holding it; 0 for none */
    char blocker_state;
    bool immutable;          /* reads without locks, for one call */
    struct timespec written; /* when the database that is read so was last changed */
    bool just_written;       /* so recently that a later change may have the same time */
    int error;               /* errno of the last step */
    bool full;               /* the transaction failed since the disk is full */
    bool unsure; /* its commit failed in a way that may yet come to light as done, after the machine went down */
} folder_connection;

typedef struct folder_store {
    shoal_store store;
    char *root; /* absolute, without links */
    bool sync;  /* sync=full */
    bool read_only;
    bool no_links;                                     /* no link is followed to the folder or in it */
    pid_t process;                                     /* that opened it: a forked child must not use it */
    int root_folder, bodies_folder, temp_folder, gate; /* descriptors, or -1 */
    folder_shared *shared;                             /* NULL when a reader may not map it */
    uint32_t token;                                    /* of this handle at the gate */
    int64_t turn_began;

    _Atomic uint32_t writer_lock; /* 0 free, 1 taken, 2 and someone waits: guards what follows */
    folder_connection *writer;
    int wal_pages, checkpoint_at;

    pthread_mutex_t lists_lock; /* held for a few instructions only; guards the two lists below */
    folder_connection *idle_readers;
    int idle_reader_count;
    int64_t forgettable[FOLDER_GARBAGE]; /* bodies that were unlinked and are still listed as garbage */
    int forgettable_count;

    unsigned char id_start[8]; /* random, of this handle: with the counter it makes ids that never repeat */
    _Atomic uint64_t id_count;
} folder_store;

/* ---- where (folder_place.c) -------------------------------------------------------------------------------------- */

/* Finds the store a path lies in: sets root, *rest (base_alloc'd) and *found.  When there is none, root is the path
 * itself and rest is "".  SHOAL_USAGE, SHOAL_DENIED or SHOAL_SYSTEM with a message. */
int folder_find(folder_store *self, char **rest, bool *found, const char *path);
/* Refuses a file system, that of the root or of the nearest folder above it, where locks can't be relied on. */
int folder_check_disk(const folder_store *self);
/* SHOAL_DENIED unless the store's folder is this one or below it. */
int folder_check_within(const folder_store *self, const char *folder);
/* The same for a disk of the kind `magic`, as statfs calls it; NULL when it is fine, else what it is called. */
const char *folder_disk_refused(long magic);
/* Creates the folder and those above it, and checks that it holds only what a store may. */
int folder_make_root(folder_store *self);
/* Opens the root, and the gate unless only to read. */
int folder_open_root(folder_store *self);
/* SHOAL_ABSENT when there is no marker, SHOAL_INVALID when it is not of this format. */
int folder_read_marker(const folder_store *self);
int folder_write_marker(const folder_store *self);
/* Maps the shared words, and opens the folders in it; what is missing is made, unless only to read. */
int folder_map_shared(folder_store *self);
int folder_open_parts(folder_store *self);
/* Gives up the spare room; false when there is none.  Takes it again, if there is enough. */
bool folder_spare_release(const folder_store *self);
void folder_spare_restore(const folder_store *self);

/* ---- the gate (folder_gate.c, folder_holder.c) ------------------------------------------------------------------- */

/* Waits for this handle's turn among its threads, then among all processes; SHOAL_AGAIN, with the cause and a sentence,
 * at the attempt's deadline. */
int folder_enter(folder_store *self, const char *key, store_attempt *attempt);
void folder_leave(folder_store *self);
/* A process that dies between these two may leave a change that nobody was told of; the next to enter tells
 * everybody. */
void folder_announce_begin(folder_store *self);
void folder_announce_end(folder_store *self, const char *key);
/* Tells everybody if a process died in between and none came since; false if no process was in between, dead or
 * alive. */
bool folder_announce_for_the_dead(folder_store *self);

/* Finds out who holds a lock of a kind ("FLOCK", or "POSIX" on SQLite's shared memory) on a file, and wakes it when it
 * is stopped.  Sets the process, 0 when none can be seen from here, and the letter of its state. */
void folder_wake_holder(const char *kind, const struct stat *file, pid_t *holder, char *state);
/* SHOAL_AGAIN with the cause, and a message that names the process in the way. */
int folder_fail_busy(folder_store *self, const char *key, store_attempt *attempt, pid_t holder, char state);

/* ---- the index (folder_index.c) ---------------------------------------------------------------------------------- */

/* Makes the tables if they are not there. */
int folder_index_create(folder_store *self, store_attempt *attempt);
/* Opens the first connection and checks the format; for writers, who hold the gate, also voids leases of an earlier
 * start of the machine, and says whether this is the first open since. */
int folder_index_open(folder_store *self, bool *fresh_boot, store_attempt *attempt);
void folder_index_close(folder_store *self);

/* A connection for reading; it goes back by folder_reader_return, with all its statements reset.  That answers
 * `status`, what came of the reading, or SHOAL_AGAIN when it was done without locks and a writer came meanwhile: then
 * it may be garbage. */
int folder_reader(folder_store *self, folder_connection **out, store_attempt *attempt);
int folder_reader_return(folder_store *self, folder_connection **connection, int status);

/* A statement ready to be bound; NULL, with the message set and *status, when it can't be made. */
sqlite3_stmt *folder_statement(folder_connection *connection, folder_query query, int *status);
/* Runs to the next row: 1 for a row, 0 at the end, else a status with its message.  Anything but a row resets. */
int folder_step(folder_connection *connection, folder_query query, const char *key);
/* Both, for a statement with nothing to bind. */
int folder_run(folder_connection *connection, folder_query query, const char *key);
void folder_reset(folder_connection *connection, folder_query query);

/* One change of the index: what it is about, and what is done in its transaction. */
typedef struct folder_change {
    const char *key;          /* or the queue: for messages, and whom to tell */
    bool tells;               /* those who wait for the key */
    struct folder_body *body; /* that `work` puts in its place, or NULL */
    bool frees;               /* it makes room, and may use up the spare room for that */
    bool used_spare;          /* it did */
    int64_t replaced;         /* set by `work`: a body that is referred to no longer; 0 for none */
    /* Runs within the transaction, perhaps twice.  Anything but SHOAL_OK rolls back and is the answer. */
    int (*work)(folder_store *self, struct folder_change *change, store_attempt *attempt);
    void *context; /* what `work` needs besides */
} folder_change;

/* Passes the gate, runs the work in a transaction, commits, tells, leaves, and removes what was replaced.  When the
 * disk is full it tries once more after a checkpoint, which lets the log start over, and then, for what frees, with
 * spare room. */
int folder_transact(folder_store *self, folder_change *change, store_attempt *attempt);
/* The same for one who holds the gate. */
int folder_transact_inside(folder_store *self, folder_change *change, store_attempt *attempt);

/* An id that was never used in this store: 64 random bits of the handle and a counter. */
void folder_fresh_id(folder_store *self, unsigned char id[FOLDER_ID_BYTES]);
/* Two hex digits for each byte, and NUL. */
/* SHOAL_USAGE in a forked child, SHOAL_DENIED for a write to a store opened for reading. */
int folder_check_use(const folder_store *self, const char *key, bool writes);

/* ---- bodies (folder_body.c) -------------------------------------------------------------------------------------- */

/* A body on its way: inline, or a temporary file of ours that becomes bodies/number. */
typedef struct folder_body {
    const store_body *from;
    size_t size;
    bool large, placed;
    int descriptor;
    char name[2 * FOLDER_ID_BYTES + 1]; /* in temp */
    int64_t number;
    unsigned char *joined; /* both parts of a small body, joined, if there are two */
} folder_body;

/* Writes a large body to a temporary; does nothing for a small one. */
int folder_body_write(folder_store *self, folder_body *body, const store_body *from, const char *key,
                      store_attempt *attempt);
/* Within a transaction: gives a large body its number and its name. */
int folder_body_place(folder_store *self, folder_body *body, const char *key);
/* Takes the name away after the transaction failed; the gate must still be held, since the number is free again.  If
 * the commit may still turn out to be done, the file stays where the row would look for it. */
void folder_body_unplace(folder_store *self, folder_body *body, bool unsure);
/* Binds number and bytes to a statement. */
void folder_body_bind(const folder_body *body, sqlite3_stmt *statement, int number_at, int bytes_at);
/* Frees it, and removes the temporary if there still is one. */
void folder_body_release(folder_store *self, folder_body *body);

/* Reads `length` bytes from `offset` of bodies/number, whose size must be `whole`.  SHOAL_ABSENT, without a message,
 * when there is no such file. */
int folder_body_read(folder_store *self, int64_t number, int64_t whole, void *out, int64_t offset, int64_t length,
                     const char *key);
/* Within a transaction: lists a body that is no longer referred to, unless it is 0, and takes those off the list that
 * this handle has unlinked. */
int folder_garbage_add(folder_store *self, int64_t number, const char *key);
/* After the transaction: unlinks it. */
void folder_garbage_unlink(folder_store *self, int64_t number);
/* Unlinks all that is on the list; `inside` tells that the gate is held. */
int folder_garbage_sweep(folder_store *self, bool inside, store_attempt *attempt);
/* Removes what dead writers left, at open, with the gate held; after a reboot also what the crash may have left. */
int folder_sweep(folder_store *self, bool fresh_boot, store_attempt *attempt);

/* A column with a body's number; 0 for none. */
static inline int64_t folder_column_number(sqlite3_stmt *statement, int column)
{
    return sqlite3_column_type(statement, column) == SQLITE_NULL ? 0 : sqlite3_column_int64(statement, column);
}

/* ---- queues (folder_queue.c) ------------------------------------------------------------------------------------- */

int push_folder(shoal_store *self, const char *queue, const store_body *body, store_attempt *attempt);
int take_folder(shoal_store *self, const char *queue, double lease, shoal_message *out, store_attempt *attempt);
int extend_folder(shoal_store *self, const char *queue, shoal_message *message, double lease, store_attempt *attempt);
int finish_folder(shoal_store *self, const char *queue, shoal_message *message, store_attempt *attempt);
int count_folder(shoal_store *self, const char *queue, int64_t *out, store_attempt *attempt);
int drop_folder(shoal_store *self, const char *queue, store_attempt *attempt);

#endif
