/* Running one task, in the thread that calls. */
#ifndef TASK_RUN_H
#define TASK_RUN_H

#include <stdatomic.h>

#include "engine/store/job_cache.h"
#include "engine/tasks/task_wire.h"

/* What a worker has for all tasks of a client. */
typedef struct task_means {
    shoal_store *store;
    const char *id;
    uint64_t worker;
    const shoal_task_entry *function, *module; /* tables that end with a row without a name, or NULL */
    job_cache *cache;                          /* of data that was fetched from afar, or NULL */
    const char *cache_folder;                  /* below which commands have their folders, or NULL */
    int64_t memory;                            /* bytes that a result may have */
    const char *host;
    double absence;                     /* seconds that what lies apart may be absent before that is a failure */
    bool forgets;                       /* the store may, and the client puts again what it has forgotten */
    const _Atomic uint32_t *leave;      /* not 0: then nothing is waited for; NULL: never */
    int64_t (*deadline)(void *context); /* of requests */
    void *context;
} task_means;

/* A task that may run. */
typedef struct task_running {
    const task_item *item;
    int64_t bundle;
    int index;
    int deaths;
    const _Atomic uint32_t *stop; /* not 0: nobody wants it any more */
    struct task_guard *guard;     /* of the thread: ends what commands leave if this process is killed */
} task_running;

/* Runs it and encodes what came of it: a failure of the task is an outcome, too.  Anything but SHOAL_OK is the store's
 * or the memory's failure; SHOAL_STOPPED: it was stopped, and has no outcome. */
int task_run(void **out, size_t *size, const task_means *means, const task_running *running);
/* The outcome of a task that is not run. */
int task_run_not(void **out, size_t *size, const task_means *means, int state, int deaths, const char *message);

/* ---- commands (task_command.c) ----------------------------------------------------------------------------------- */

/* Bytes that a task was given, or that came of it. */
typedef struct task_held {
    const void *bytes;
    size_t size;
    shoal_blob blob;
    job_cached cached;
    void *memory; /* base_alloc'd */
} task_held;

/* SHOAL_ABSENT when the store has none of it, SHOAL_BROKEN when it has something else. */
int task_hold(task_held *out, const task_means *means, const task_bytes *bytes);
void task_held_release(task_held *held);

typedef struct task_guard task_guard;
int task_guard_new(task_guard **out);
void task_guard_free(task_guard **guard);

/* What came of a command; what it wrote is base_alloc'd. */
typedef struct task_ended {
    int exit_code;
    char why[256]; /* "" when it exited with 0 */
    bool stopped;
    unsigned char *output;
    size_t size;
    char said[TASK_MESSAGE_MOST / 2]; /* the end of its standard error */
    int64_t said_bytes;
    char *folder; /* it ran in; the caller's to remove; NULL for none */
} task_ended;

int task_command_run(task_ended *out, const task_means *means, const task_running *running, const void *input,
                     size_t size);
void task_ended_release(task_ended *ended);

#endif
