/* A command for each row of arguments, as tasks (shoal/task.h): what `shoal map` does.
 *
 * The jobs are commands of a shell.  Workers that see this machine's files run them in its current folder; others, and
 * all if files are brought or taken back, in an empty folder of their own. */
#ifndef RUN_MAP_H
#define RUN_MAP_H

#include <stdbool.h>
#include <shoal/option.h>
#include <shoal/task.h>

#include "map_words.h"

/* What has come of a job. */
typedef struct map_done {
    int64_t row;
    const char *command;
    const shoal_task_result *result; /* its output is `bytes` */
    const void *said;                /* on standard error */
    size_t said_size;
    bool failed;
    const char *why; /* "" for one that ran and exited, with whatever code */
} map_done;

typedef struct map_options {
    const map_table *table;
    const char *command; /* a template; NULL: the arguments are the commands */
    const char *shell;
    const shoal_texts *workers; /* none: this machine */
    const char *store;          /* NULL: a folder that goes when the jobs have ended */
    const char *ssh;
    int64_t jobs; /* at once, of each worker; 0: its cores */
    bool in_order;
    bool transfer;               /* each argument is a file that the job finds */
    const shoal_texts *send;     /* files that all jobs find */
    const shoal_texts *returned; /* templates of files that jobs make and that come back */
    const char *log;             /* in GNU parallel's format, or NULL */
    bool resume, resume_failed;  /* leave out the jobs that the log has; those that did not fail */
    int64_t tries;               /* of a job that fails; at least 1 */
    double timeout;              /* 0: none */
    int64_t halt;                /* failed jobs after which the others are not run; 0: any number */
    bool halt_now;               /* and what runs is ended */
    const volatile int *stop;
    /* Told of each job that has ended, of how far things are, and of what people should know.  What `done` returns ends
     * all unless it is SHOAL_OK: nobody reads any more, say. */
    int (*done)(void *context, const map_done *done);
    void (*progress)(void *context, int64_t ended, int64_t failed, int64_t jobs);
    void (*warn)(void *context, const char *line);
    void *context;
} map_options;

typedef struct map_counts {
    int64_t jobs, ended, failed, left_out; /* left_out: as the log has them */
    int halted_by;                         /* the exit code of the job that halted it; 0: none did */
} map_counts;

/* Runs them all.  SHOAL_OK also when jobs failed; SHOAL_STOPPED after a stop. */
int run_map(map_counts *out, const map_options *options);

#endif
