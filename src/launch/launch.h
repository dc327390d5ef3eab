/* Starting workers, and looking after them while they run.
 *
 *     launch_group *group = NULL;
 *     launch_ask ask;
 *     int status = launch_ask_for(&ask, &specs, "dir", 0);      // "local:4", "ssh:corn10,corn11:8", "slurm:64"
 *     if (status == SHOAL_OK)
 *         status = launch_new(&group, &ask, &order);
 *     while (status == SHOAL_OK && there is more to do)
 *         status = launch_tick(group);                          // once a second or more often: who died, who is due
 *     launch_stop(group, 2);                             // tells all to leave, ends who has not left two seconds later
 *     launch_free(&group);
 *
 * A *launcher* is one way of starting workers, a table of functions (launch_internal.h); each --workers gives one.
 * What all of them share: a worker that dies by a signal or fails is started again, at once at first, then after
 * growing pauses, at most three times a minute, and ten times in all, once if it failed with a reason, while the job
 * makes no progress (launch_progress).  One that ends well is not.  A machine that can't be reached is reported and
 * tried again; the job continues with the rest, and launch_tick fails only when no worker is left. */
#ifndef LAUNCH_H
#define LAUNCH_H

#include <stdbool.h>
#include <stdint.h>
#include <shoal/option.h>
#include <shoal/store.h>

/* Arguments of a process: enough for as many --workers as there can be. */
enum { LAUNCH_ARGUMENTS_MOST = 32 + 2 * SHOAL_TEXTS_MOST, LAUNCH_WORKERS_MOST = 4096 };

/* What workers are started for, and how. All texts must last as long as the group. */
typedef struct launch_order {
    const char *store_url; /* the store's address for processes that see this machine's files */
    shoal_store *store;    /* the same store, open: for workers that reach it through this process */
    /* The store of the rows, if that is another one; NULL otherwise.  Only for workers behind a pipe. */
    shoal_store *data;
    const char *data_key;  /* they may read only this key of it */
    const char *shared;    /* what begins so belongs to them, too, besides the job; NULL: nothing */
    const char *id, *spec; /* the job, and the SHA-256 of its spec in hex: they run only that */
    const char *task_key;  /* that of a client with tasks, in hex, which no command line may show; NULL: it is a job */
    const char *kernel;    /* "auto", say */
    const char *device;    /* the same; NULL: auto */
    int64_t threads;       /* of each worker; 0: its machine's cores divided among that machine's workers */
    int64_t memory;        /* bytes of each worker; 0: its part of three quarters of its machine's */
    int64_t begin;         /* so many are started at first, the others by launch_scale; 0: all */
    int64_t helpers; /* with split roles: worker 0 reduces last, 1 to helpers - 1 reduce, the rest map; 0: all do all */
    bool led;        /* this process leads the job: they map and reduce */
    const char *ssh; /* the command that ssh: uses, "ssh -F FILE", say; NULL: $SHOAL_SSH, or ssh */
    const char *program; /* shoal: what is started here and copied elsewhere; NULL: this very program */
    bool bound; /* local: they end with this process, even if it is killed, and do not get its terminal's signals */
    /* Called for every worker that is gone without having left by itself: "died: signal 9", "failed: no such store".
     * Only launch_tick, launch_stop and launch_wait call it. */
    void (*gone)(void *context, uint64_t worker, const char *why);
    /* Told what people should know while the job runs: "corn10: can't be reached: ...; trying again".  As above. */
    void (*say)(void *context, const char *line);
    void *context;
} launch_order;

/* The values of --workers, one launcher each. */
typedef shoal_texts launch_specs;

/* One of --workers. */
typedef struct launch_part {
    const struct launcher *launcher;
    const char *rest; /* of the text, after its colon, and after "A.." where it has a range */
    int64_t workers;
} launch_part;

/* What specs ask for, found out without starting anything.  The texts of the specs must last as long as this. */
typedef struct launch_ask {
    int64_t workers; /* in all: the most where it is a range, local:1..8 */
    int64_t least;   /* in all, the lower ends of ranges; 0 without any: as many as there are */
    int64_t slots;   /* threads in all, as far as this machine can tell */
    bool local;      /* all are processes of this machine */
    bool far;        /* some do not see this machine's files */
    bool outlive;    /* some go on when the process that started them is ended by a second signal: tasks of Slurm that
                      * reach the store by themselves */
    const char *through; /* how some reach the store through the process that started them: "ssh"; NULL: none does */
    double patience;     /* seconds that it may take until one works; an hour when none are started */
    int count;
    launch_part part[SHOAL_TEXTS_MOST];
} launch_ask;

/* SHOAL_USAGE with a sentence for what is not possible.  `store_scheme`, which may be NULL, is that of the job's store
 * ("dir", "az"): Slurm's workers reach cloud stores by themselves. */
int launch_ask_for(launch_ask *out, const launch_specs *specs, const char *store_scheme, int64_t threads);

typedef struct launch_group launch_group;

int launch_new(launch_group **out, const launch_ask *ask, const launch_order *order);
/* Looks after them.  Fails when none runs, none will be started again, and some have failed, with the reason of
 * the last. */
int launch_tick(launch_group *group);
/* The job has moved on: workers that died may be started again as often as before. */
void launch_progress(launch_group *group);
/* From now on there should be `count` in all: starts more, or tells the last ones to leave; launchers share them as
 * they shared those that were first asked for. */
int launch_scale(launch_group *group, int64_t count);
/* Whether a reason given by `gone` or launch_tick is a crash: what they run will crash again. */
bool launch_is_crash(const char *why);
/* How many run now, as far as is known, those that were told to leave included. */
int64_t launch_running(const launch_group *group);
/* How many should run. */
int64_t launch_wanted(const launch_group *group);
/* Tells all to leave, ends those that are still there after this many seconds, and waits for their end. */
void launch_stop(launch_group *group, double seconds);
/* Waits for up to this many seconds for all to end by themselves, and returns whether they have. */
bool launch_wait(launch_group *group, double seconds);
/* Frees; workers of this machine, and of Slurm with a store of the cloud, that still run keep running. */
void launch_free(launch_group **group);

/* Starts a program, NULL for this very one, in its own session, with nothing of this one's standard streams; what
 * it says goes to the end of the file `log`, or nowhere when that is NULL.  `arguments` are those behind the program's
 * name, ended by NULL. */
int launch_detached(const char *program, const char *const *arguments, const char *log);

#endif
