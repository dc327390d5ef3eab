/* What a launcher implements.  To add one: write launch_<name>.c with a `const struct launcher launch_<name>`, declare
 * it below, and add it to the list in launch.c, which also distributes counts. */
#ifndef LAUNCH_INTERNAL_H
#define LAUNCH_INTERNAL_H

#include <stddef.h>

#include "base/spawn.h"
#include "launch/launch.h"

/* One of a group's launchers: its state starts with this. */
typedef struct launch_workers {
    const struct launcher *class;
    const launch_order *order;
    int64_t first_slot; /* the number of its first worker within the group: decides roles */
    int64_t begin;      /* so many are started at first; -1: all */
} launch_workers;

struct launcher {
    const char *scheme; /* "ssh" in ssh:corn10,corn11:8 */
    const char *form;   /* for messages: "ssh:HOST[:N],..." */
    size_t size;        /* of its state */
    double patience;    /* as in launch_ask */
    /* Finds out what `rest`, the text after the colon, asks for: adds to the counts of *out, clears `local`, and sets
     * `far` and `through`, where that is so. */
    int (*ask)(launch_ask *out, const char *rest, const char *store_scheme, int64_t threads);
    /* Begins to start them, all or self->begin of them, and `extra` more, which is 0 for all but the first launcher of
     * a group.  What takes long runs in its own threads: tick reports how it went.  On failure free is called too. */
    int (*start)(launch_workers *self, const char *rest, int64_t extra);
    /* As the functions of the group.  tick fails, each time it is called, while nobody is left to work. */
    int (*tick)(launch_workers *self);
    void (*progress)(launch_workers *self);
    int (*scale)(launch_workers *self, int64_t count);
    int64_t (*running)(const launch_workers *self);
    int64_t (*wanted)(const launch_workers *self);
    void (*tell_leave)(launch_workers *self); /* asks all to leave, and returns at once */
    bool (*is_over)(launch_workers *self);    /* whether all have ended; none is started again from then on */
    void (*end)(launch_workers *self);        /* ends what is left, and waits for that */
    void (*free)(launch_workers *self);
};

/* How one worker reaches its store. */
typedef struct launch_worker {
    uint64_t id;
    int64_t slot; /* within the group */
    int64_t threads;
    int64_t memory;        /* bytes; 0: what it chooses */
    const char *store_url; /* "pipe:/run/.../socket", say */
    const char *data_url;  /* replaces the address of the rows' store, or NULL */
    const char *cache;     /* folder for slices, or NULL for the usual one */
    bool near;             /* sees the starter's files: may read the data it names */
    int64_t parent;        /* process that it ends with, even if that is killed; 0: it outlives its starter */
} launch_worker;

/* A worker's arguments after the program's name, as text that lives in the buffer. */
typedef struct launch_arguments {
    int count;
    const char *argument[LAUNCH_ARGUMENTS_MOST + 1]; /* ended by NULL */
    char number[5][24];                              /* those that are numbers */
    int numbers;
} launch_arguments;

/* Where a worker that runs tasks finds their client's key: its descriptor BASE_SPAWN_EXTRA, which it closes. */
#define LAUNCH_KEY_PLACE "fd:3"

/* Composes `worker --store ... --job ...`: the one place that knows a worker's command line. */
void launch_arguments_of(launch_arguments *out, const launch_order *order, const launch_worker *worker);

/* How threads are shared: at least one each. */
int64_t launch_threads_each(int64_t wanted, int64_t cores, int64_t workers);
/* The same with this machine's memory. */
int64_t launch_memory_each(int64_t wanted, int64_t workers);

extern const struct launcher launch_local, launch_ssh, launch_slurm;

/* ---- processes of one machine (launch_crew.c); the agent uses these, too ----------------------------------------- */

typedef struct launch_crew launch_crew;

typedef struct launch_crew_options {
    const char *program;  /* NULL: this very program */
    const char *task_key; /* handed to each as launch_order says, or NULL */
    base_group group;
    /* Composes the arguments of a worker that is about to be started. */
    void (*arguments)(void *context, launch_arguments *out, int64_t slot, uint64_t worker);
    void (*started)(void *context, uint64_t worker); /* NULL: not reported */
    void (*gone)(void *context, uint64_t worker, const char *why);
    void *context;
} launch_crew_options;

/* Processes whose standard input and output are /dev/null, and of whose standard error the last 4 kB are kept: a
 * failing worker's last line is its reason. */
int launch_crew_new(launch_crew **out, int64_t count, const launch_crew_options *options);
int launch_crew_tick(launch_crew *crew);
void launch_crew_progress(launch_crew *crew);
int launch_crew_scale(launch_crew *crew, int64_t count);
int64_t launch_crew_running(const launch_crew *crew);
int64_t launch_crew_wanted(const launch_crew *crew);
/* Asks all to leave (SIGTERM), and returns at once. */
void launch_crew_tell_leave(launch_crew *crew);
/* Waits for up to this many seconds for all to end, of whom none is started again from then on; whether they have. */
bool launch_crew_wait(launch_crew *crew, double seconds);
/* Kills what is left. */
void launch_crew_end(launch_crew *crew);
/* Frees; those that still run keep running. */
void launch_crew_free(launch_crew **crew);

#endif
