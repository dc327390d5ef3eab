/* The command of one trial: started, listened to while it reports, and ended with all that it started.
 *
 * It reports by lines of JSON on its standard output: {"step": 3, "loss": 0.2}; a line without a step is the step after
 * the last, and an error where steps are counted: whether it goes on or began anew nobody else knows.  Where its time
 * is what counts, any line with a step or one of the further keys is a report, and none is needed.  What else it prints
 * is ignored, but for the end, which is kept for the note about a trial that failed.
 *
 * Its standard output is a file in the trial's folder, rather than a pipe: what it has reported before it keeps a
 * checkpoint is there for whoever takes the trial up again, even if this process dies before it reads it.  What is no
 * report takes no room on the disk once it was read. */
#ifndef SWEEP_PROCESS_H
#define SWEEP_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/spawn.h"
#include "place.h"

typedef struct sweep_process sweep_process;

typedef struct sweep_starting {
    const char *command;                  /* for /bin/sh */
    char *const *environment;             /* NULL: ours */
    const char *place;                    /* the folder that it runs in; NULL: ours */
    const char *reports;                  /* the file; what is in it counts, but for steps up to `from` */
    const char *objective;                /* the key of its value; NULL: the time since its start is */
    const char *other[SWEEP_OTHERS_MOST]; /* further keys whose values are kept; NULL: none */
    double sign;                          /* -1 where values are to be great */
    int64_t from;                         /* reports up to this step are known already */
    double value;                         /* the best of them, as people see it; NaN for none */
    bool counts;                          /* reports must say their steps */
    bool traces;                          /* it is a learner, which reports by a trace to BASE_SPAWN_EXTRA */
    base_guard *guard;                    /* ends it should this process die; may be NULL */
} sweep_starting;

typedef enum sweep_event {
    SWEEP_REACHED, /* it has reported the step, or one after it */
    SWEEP_ENDED,   /* it ended well before */
    SWEEP_FAILS,   /* or not well; the note says how */
    SWEEP_STOPPED, /* *stop was set */
    SWEEP_RUNS,    /* the moment has come */
} sweep_event;

int sweep_process_start(sweep_process **out, const sweep_starting *starting);
/* Listens until the step is reached, the process has ended, or a moment has come.  `timeout` seconds without a report
 * are a failure; 0: any.  Call it again to go on. */
sweep_event sweep_process_follow(sweep_process *process, int64_t until, double timeout, int64_t moment,
                                 const volatile int *stop);
/* Ends it if it still runs: SIGTERM, and after five seconds SIGKILL.  What it has left in its group is ended, too. */
void sweep_process_end(sweep_process **process);

const char *sweep_process_note(const sweep_process *process);
/* Takes what was reported up to a step, and what the best value is up to it (NaN: none) and the last step; what came
 * after stays for the next call.  The caller frees the curve. */
void sweep_process_take(sweep_ended *out, sweep_process *process, int64_t until);

#endif
