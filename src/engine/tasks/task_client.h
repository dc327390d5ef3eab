/* A client: what task_client.c, which callers see, and task_tend.c, its thread, share.
 *
 * Everything is under one lock that is never held across a call of the store.  Who submits on a store that wakes puts
 * bundles itself, since that takes microseconds; on any other the client's thread does.  The thread waits for results,
 * hands them out, removes what is done with, and puts back what the store has lost. */
#ifndef TASK_CLIENT_H
#define TASK_CLIENT_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/secret.h"
#include "base/world.h"
#include "engine/store/job_run.h"
#include "engine/tasks/task_wire.h"

typedef enum task_stage {
    TASK_PENDING, /* in no bundle */
    TASK_OUT,     /* in one that is in the store, or on its way there */
    TASK_ENDED,   /* has a result */
    TASK_FETCHED, /* which was fetched */
} task_stage;

/* A task of the client's. */
typedef struct task_entry {
    int64_t number;
    task_stage stage;
    bool alone;  /* was given back: it travels alone from now on */
    bool queued; /* in the list of those that are pending, or of those that have ended */
    struct task_entry *next, *before;
    void *bytes; /* encoded; until its result was fetched, since that may be lost */
    size_t size;
    int64_t bundle; /* that it is in */
    int index;
    unsigned char (*hash)[BASE_HASH_SIZE]; /* of what lies apart */
    int hashes;
    void *outcome; /* encoded, once it has ended */
    size_t outcome_size;
} task_entry;

typedef struct task_queue {
    task_entry *first, *last;
    int64_t count;
} task_queue;

/* A bundle in the store. */
typedef struct task_sent {
    int64_t number;
    int count;
    task_entry **entry;
    shoal_etag seen; /* of its results, as they were read last */
    bool put;        /* it is there, as far as this client knows */
} task_sent;

/* What lies apart, by what it is. */
typedef struct task_datum {
    unsigned char hash[BASE_HASH_SIZE];
    int64_t users; /* tasks; what is small and tasks share counts as one more, and stays */
    bool busy;     /* somebody puts or removes it: it is that thread's */
    void *copy;    /* for a store that may forget it */
    size_t size;
} task_datum;

struct shoal_tasks {
    shoal_store *store;
    shoal_tasks_options options;
    char id[SHOAL_TASK_ID_BYTES], spec_hash[BASE_HASH_HEX];
    base_secret *key;
    task_seal seal;
    task_spec spec;
    void *spec_bytes;
    size_t spec_size;
    void *module;
    bool wakes, forgets;

    pthread_mutex_t lock;     /* of all that follows */
    _Atomic uint32_t changed; /* counts results and the end, for those that wait for them */
    _Atomic uint32_t bell;    /* counts what the client's thread should see */
    _Atomic uint32_t closing;
    task_entry **entry; /* by number */
    int64_t submitted, room, ended, fetched, forged;
    task_queue pending, done; /* done: ended, in the order of their results */
    task_sent *sent;          /* by number; `out` of them */
    int64_t out, sent_room, next_bundle;
    task_datum *datum;
    int64_t data, datum_room;
    bool sending;             /* somebody is */
    bool mends;               /* the store is to be looked through */
    bool owes_ring;           /* workers were not told of what was put last */
    int64_t waiting, rung_at; /* threads that wait for results; when workers were told */
    double seconds;           /* that tasks take on average; negative before the first */
    int64_t workers, slots;
    int status; /* not SHOAL_OK: nothing more can be done, and why */
    char message[512];

    /* Of the client's thread. */
    base_thread *thread;
    job_members members;
    uint32_t seen;
    int64_t checked_at, counted_at;
    double pause, count_pause;
};

/* ---- task_client.c ----------------------------------------------------------------------------------------------- */

int64_t tasks_deadline(const shoal_tasks *self);
/* Tells the caller what people should know. */
void tasks_warn(const shoal_tasks *self, const char *line);
/* Notes the first failure, and ends every wait. */
void tasks_fail(shoal_tasks *self, int status);
/* Under the lock. */
void tasks_queue_add(task_queue *queue, task_entry *entry, bool first);
task_entry *tasks_queue_take(task_queue *queue);
void tasks_notify(shoal_tasks *self);
task_sent *tasks_find_sent(shoal_tasks *self, int64_t number);
/* Gives a task its result, encoded, which is copied; for TASK_RETURNED it becomes pending again. */
int tasks_end_entry(shoal_tasks *self, task_entry *entry, int state, const void *bytes, size_t size);

/* ---- task_tend.c ------------------------------------------------------------------------------------------------- */

/* Puts bundles of what is pending, as many as should be out; by one thread at a time. */
int tasks_send(shoal_tasks *self);
/* The client's thread. */
void tasks_tend(void *context);
/* Tells workers without work that there is some, or that there will be none. */
int tasks_ring(shoal_tasks *self);
/* The same if they were not told yet of what was put.  Of a burst of submissions they are told twice, at its beginning
 * and when somebody waits for results, rather than for each: every time, each of them looks. */
int tasks_ring_if_due(shoal_tasks *self, bool at_once);
/* Removes the bundles that are out, so that workers that run them stop; once the client's thread has ended. */
int tasks_withdraw(shoal_tasks *self);

#endif
