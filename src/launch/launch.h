/* Starting workers, and looking after them while they run.
 *
 *     launch_workers *workers = NULL;
 *     int status = launch_local_new(&workers, 8, &options);
 *     while (status == SHOAL_OK && there is more to do)
 *         status = launch_tick(workers);            // once a second or more often: who died, who is due
 *     launch_stop(workers, 2);                      // tells all to leave, ends who has not left two seconds later
 *     launch_free(&workers);
 *
 * A worker that dies by a signal or fails is started again: at once at first, then after growing pauses, at most three times
 * a minute, and ten times in all, once if it failed with a reason, while the job makes no progress (launch_progress).  One
 * that ends well is not.  Workers outlive whoever started them: they finish the job, and end. */
#ifndef LAUNCH_H
#define LAUNCH_H

#include <stdbool.h>
#include <stdint.h>

typedef struct launch_workers launch_workers;

enum { LAUNCH_ARGUMENTS_MOST = 40, LAUNCH_WORKERS_MOST = 4096 };

typedef struct launch_options {
    const char *program; /* NULL: this very program */
    /* Fills the arguments of worker `slot` behind the program's name, at most LAUNCH_ARGUMENTS_MOST, and returns how
     * many; they need to last only until the next call.  `worker` is the id that this start of it must go by. */
    int (*arguments)(void *context, int64_t slot, uint64_t worker, const char **out);
    /* Told of every worker that is gone without having left by itself: "died: signal 9", "failed: no such store".
     * NULL: nobody. */
    void (*gone)(void *context, uint64_t worker, const char *why);
    void *context;
} launch_options;

/* How many workers "local:8" asks for.  SHOAL_USAGE with a sentence for anything else. */
int launch_parse(int64_t *count, const char *text);

/* Starts processes of this machine.  Their standard input and output are /dev/null, and of what they write to
 * standard error the last 4 kB are kept: a failing worker's last line is its reason. */
int launch_local_new(launch_workers **out, int64_t count, const launch_options *options);
/* Looks after them.  Fails when none runs, none will be started any more, and some have failed, with the reason of
 * the last. */
int launch_tick(launch_workers *workers);
/* The job has moved on: workers that died may be started again as often as before. */
void launch_progress(launch_workers *workers);
/* From now on there are to be `count`: starts more, or tells the last ones to leave. */
int launch_scale(launch_workers *workers, int64_t count);
/* How many run now, those that were told to leave included. */
int64_t launch_running(const launch_workers *workers);
/* How many are to run. */
int64_t launch_wanted(const launch_workers *workers);
/* Tells all to leave (SIGTERM), ends those that are still there after so many seconds (SIGKILL), and waits for their
 * end. */
void launch_stop(launch_workers *workers, double seconds);
/* Waits up to so many seconds for all to end by themselves; whether they have. */
bool launch_wait(launch_workers *workers, double seconds);
/* Starts this very program in a session of its own, with nothing of this one's standard streams; what it says goes to
 * the end of the file `log`, or nowhere when that is NULL.  `arguments` are those behind the program's name, ended by
 * NULL. */
int launch_detached(const char *const *arguments, const char *log);

/* Frees; workers that still run go on. */
void launch_free(launch_workers **workers);

#endif
