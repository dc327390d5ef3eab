/* Tasks: functions and commands that workers run, for a client that needs nothing but a store.
 *
 *     shoal_tasks *tasks = NULL;
 *     int64_t number;
 *     shoal_task_result *result = NULL;
 *     int status = shoal_tasks_open(&tasks, store, &(shoal_tasks_options){.name = "squares"});
 *     const char *words[] = {"sort", "-n", NULL};
 *     if (status == SHOAL_OK)
 *         status = shoal_task_submit(&number, tasks, &(shoal_task){.command = words, .bytes = "2\n1\n", .size = 4});
 *     if (status == SHOAL_OK)
 *         status = shoal_task_next(&result, tasks, SHOAL_NEVER);          // whichever ends first
 *     ... result->bytes is "1\n2\n" ...
 *     shoal_task_result_free(&result);
 *     shoal_tasks_close(&tasks);                                          // removes what is left in the store
 *
 * A task makes bytes of bytes: a function that workers know by its name, a function of a module that the client brings
 * along, or a command, which reads them from its standard input and writes them to its standard output.  Workers are
 * those that run jobs (shoal/job.h), if they have the client's key: ones that the client started
 * (shoal_task_workers_start in shoal/run.h), and ones that were given it (`shoal worker --task-key FILE`).
 *
 * Promises
 *  - A task that was submitted runs *at least once*: twice, if the worker that ran it died or was silent for too long.
 *  - It gets *one* result, whoever else computes another.  Cancelling competes for that very place, so that a task was
 *    either cancelled or has a result, and everybody sees the same.
 *  - Any worker may die at any moment; what it ran is run by another.  A task during which three workers died one after
 *    another is not run again, and its result says so.
 *  - Tasks and results are authenticated by a key of the client that is in no store (HMAC-SHA-256).  What somebody
 *    else puts there is neither run nor taken for a result.
 *  - Tasks belong to their client.  What is in the store is removed when results are fetched, when the client is
 *    closed, and by a worker when the client has been silent for too long.
 *
 * docs/tasks.md explains how.  Every function may be called from any thread. */
#ifndef SHOAL_TASK_H
#define SHOAL_TASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <shoal/error.h>
#include <shoal/store.h>

/* What another thread may set at any time: atomic_load(flag), or flag->load() in C++. */
#ifdef __cplusplus
#include <atomic>
typedef std::atomic<uint32_t> shoal_task_flag;
extern "C" {
#else
typedef _Atomic uint32_t shoal_task_flag;
#endif

/* ---- functions --------------------------------------------------------------------------------------------------- */

struct shoal_task_file;

/* A function's task. */
typedef struct shoal_task_call {
    const void *bytes; /* its argument, 64-byte aligned only if it is large */
    size_t size;
    const shoal_task_flag *stop; /* not 0 once nobody wants the result any more: cancelled, or the worker must leave */
    int64_t number;              /* the client's number of the task */
    /* The task's files: what a file is called is the SHA-256 of its bytes, in hex, so that who keeps some need not get
     * them again.  `bytes` is NULL until `open` has fetched them, for as long as the call lasts. */
    struct shoal_task_file *files;
    int file_count;
    int (*open)(const struct shoal_task_call *call, int file);
    void *context;      /* private */
    shoal_store *store; /* through which the worker reaches the client; behind ssh it shows the client's part of it, and
                         * what shoal_task_workers_options.shared names */
} shoal_task_call;

/* Makes a result: memory from malloc, which is the worker's to free from then on, or NULL with *size 0.  SHOAL_OK, or
 * what shoal_fail returned, whose message becomes the result's.  Called from several threads at once, possibly twice
 * for the same task. */
typedef int shoal_task_function(void **bytes, size_t *size, const shoal_task_call *call);

/* A row of a table of functions; the last has no name. */
typedef struct shoal_task_entry {
    const char *name;
    shoal_task_function *function;
} shoal_task_entry;

/* What a module exports: SHOAL_TASKS({"square", square}, {"cube", cube}); */
typedef struct shoal_task_table {
    uint32_t version, bytes; /* SHOAL_TASKS sets them */
    const shoal_task_entry *entry;
} shoal_task_table;

enum { SHOAL_TASK_VERSION = 1 };

#ifdef __cplusplus
#define SHOAL_TASK_EXPORT extern "C" __attribute__((visibility("default")))
#else
#define SHOAL_TASK_EXPORT __attribute__((visibility("default")))
#endif

/* Defines the functions of a module's file. */
#define SHOAL_TASKS(...)                                                                                               \
    static const shoal_task_entry shoal_task_entries[] = {__VA_ARGS__, {NULL, NULL}};                                  \
    SHOAL_TASK_EXPORT const shoal_task_table shoal_task_module = {SHOAL_TASK_VERSION, sizeof(shoal_task_table),        \
                                                                  shoal_task_entries}

/* ---- a client ---------------------------------------------------------------------------------------------------- */

enum {
    SHOAL_TASK_ID_BYTES = 64,        /* of a client's name, NUL included */
    SHOAL_TASK_KEY_BYTES = 32,       /* of its key */
    SHOAL_TASK_NAME_MOST = 255,      /* letters of a function's name */
    SHOAL_TASK_WORDS_MOST = 1 << 20, /* bytes of a command's words and variables together */
    SHOAL_TASK_DEATHS_MOST = 3,      /* workers that may die of a task */
};

typedef struct shoal_tasks_options {
    const char *name;         /* what the client's name in the store starts with: as that of a job; NULL: "tasks" */
    const unsigned char *key; /* SHOAL_TASK_KEY_BYTES that workers know; NULL: random ones, see shoal_tasks_key */
    const void *module;       /* a shared object with SHOAL_TASKS, `module_size` bytes, for workers to load; or NULL */
    size_t module_size;
    double lease;    /* seconds after which a silent worker counts as dead; 0: chosen from the store */
    double keep;     /* seconds without a sign of the client after which workers remove its tasks; 0: a day */
    double patience; /* seconds that the store may be out of reach; 0: 300 */
    /* Told what people should know: a forged result was refused, say.  From a thread of the client's.  May be NULL. */
    void (*warn)(void *context, const char *line);
    void *warn_context;
} shoal_tasks_options;

typedef struct shoal_tasks shoal_tasks;

/* Makes a client, and a thread that looks after its tasks.  The store must last as long; `options` may be NULL. */
SHOAL_API int shoal_tasks_open(shoal_tasks **out, shoal_store *store, const shoal_tasks_options *options);
/* Cancels what has not ended, removes all that is in the store, and frees; waits a few seconds for workers that still
 * run something.  SHOAL_OK, or why the store may have something left; accepts a NULL inside. */
SHOAL_API int shoal_tasks_close(shoal_tasks **tasks);

/* The client's name in its store; the SHA-256 of what workers are to serve, in hex; the key. */
SHOAL_API const char *shoal_tasks_id(const shoal_tasks *tasks);
SHOAL_API const char *shoal_tasks_spec(const shoal_tasks *tasks);
SHOAL_API const unsigned char *shoal_tasks_key(const shoal_tasks *tasks);
SHOAL_API shoal_store *shoal_tasks_store(const shoal_tasks *tasks);

/* ---- tasks ------------------------------------------------------------------------------------------------------- */

/* A file that a command finds, or leaves, below the folder it runs in; or bytes that tasks of a function share, which
 * lie in the store once and cross to a machine once, however many tasks have them. */
typedef struct shoal_task_file {
    const char *name; /* relative, without "..", empty or "." parts, and control characters; a function's have none */
    const void *bytes;
    size_t size;
} shoal_task_file;

/* What is to be run.  All of it is copied. */
typedef struct shoal_task {
    const char *function;       /* of the client's module, or one that workers know by this name; or NULL */
    const char *const *command; /* a program and its arguments, ended by NULL; no shell is involved */
    const void *bytes;          /* the function's argument, or what the command reads */
    size_t size;
    const char *const *environment; /* "NAME=value", ended by NULL, for a command, beside the worker's own; or NULL */
    double timeout;                 /* seconds that it may run; 0: any; a function is told to stop (call->stop) */
    const shoal_task_file *files;   /* a command runs in an empty folder but for these, `file_count` of them */
    int file_count;
    const char *const *outputs; /* names of files that it makes there and that are part of its result; ended by NULL */
} shoal_task;

/* Hands a task over and returns at once.  *number counts the client's tasks from 0.  SHOAL_USAGE for what can't be a
 * task; SHOAL_MEMORY; or why the client can do nothing more. */
SHOAL_API int shoal_task_submit(int64_t *number, shoal_tasks *tasks, const shoal_task *task);

typedef enum shoal_task_state {
    SHOAL_TASK_DONE = 1,
    SHOAL_TASK_FAILED,    /* the function failed, or the command exited with something but 0: `message` says more */
    SHOAL_TASK_CANCELLED, /* by shoal_task_cancel */
    SHOAL_TASK_POISON,    /* too many workers died while they ran it */
} shoal_task_state;

typedef struct shoal_task_result {
    int64_t number;
    shoal_task_state state;
    int status;    /* of a function: SHOAL_OK or what it returned */
    int exit_code; /* of a command: its exit code, 128 and more: a signal ended it; -1 when it did not start */
    void *bytes;   /* what the function made, or what the command wrote to standard output; also after a failure */
    size_t size;
    char *message;          /* why it failed, with the end of what a command wrote to standard error; "" */
    char host[64];          /* where it ran; "" */
    double seconds;         /* that it ran */
    int deaths;             /* of workers, while they ran it */
    shoal_task_file *files; /* that the command left, of those the task names; those that are missing are left out */
    int file_count;
    void *memory; /* private */
} shoal_task_result;

/* The result of any task that has ended and whose result was not fetched yet.  SHOAL_AGAIN at the deadline;
 * SHOAL_ABSENT when every result was fetched; or why the client can do nothing more. */
SHOAL_API int shoal_task_next(shoal_task_result **out, shoal_tasks *tasks, int64_t deadline);
/* The result of this one, once. SHOAL_ABSENT when there is no such task or its result was fetched. */
SHOAL_API int shoal_task_wait(shoal_task_result **out, shoal_tasks *tasks, int64_t number, int64_t deadline);
SHOAL_API void shoal_task_result_free(shoal_task_result **result);

/* Cancels a task.  SHOAL_OK: its result is SHOAL_TASK_CANCELLED, and if it runs it is told to stop; SHOAL_CONFLICT: it
 * has another result already; SHOAL_ABSENT: there is no such task, or its result was fetched. */
SHOAL_API int shoal_task_cancel(shoal_tasks *tasks, int64_t number, int64_t deadline);

/* How things stand. */
typedef struct shoal_tasks_counts {
    int64_t submitted, ended, fetched; /* tasks; ended are those with a result, fetched or not */
    int64_t workers, slots;            /* at work, when this was last looked at */
    int64_t forged;                    /* results that were refused since their authentication is wrong */
} shoal_tasks_counts;

SHOAL_API shoal_tasks_counts shoal_tasks_count(const shoal_tasks *tasks);

/* Says that a worker has died, for who started it: others take over what it ran at once, rather than after a lease. */
SHOAL_API int shoal_tasks_worker_died(shoal_tasks *tasks, uint64_t worker, int64_t deadline);
/* Ends every wait, now and later, with this status and message: nobody is left to work, say. */
SHOAL_API void shoal_tasks_fail(shoal_tasks *tasks, int status, const char *message);

#ifdef __cplusplus
}
#endif
#endif
