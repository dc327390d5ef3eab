/* Running a learner anywhere: on the threads of this process, on ranks, or on workers, by one call.
 *
 *     shoal_request *request = NULL;
 *     shoal_outcome *outcome = NULL;
 *     int status = shoal_request_new(&request, "kmeans");
 *     if (status == SHOAL_OK) status = shoal_request_set(request, "data", "rows.npy");
 *     if (status == SHOAL_OK) status = shoal_request_set(request, "clusters", "100");
 *     if (status == SHOAL_OK) status = shoal_request_set(request, "centres", "centres.npy");   // a file to write
 *     if (status == SHOAL_OK) status = shoal_request_set(request, "workers", "local:4");       // or both left out
 *     if (status == SHOAL_OK) status = shoal_request_program(request, "/usr/bin/shoal");       // what workers run
 *     if (status == SHOAL_OK) status = shoal_request_run(&outcome, request);
 *     if (status == SHOAL_OK) printf("%g\n", shoal_result_number(shoal_outcome_result(outcome), "objective"));
 *     shoal_outcome_free(&outcome);
 *     shoal_request_free(&request);
 *
 * A request holds the same options as the command line of `shoal kmeans`, with the same names and meanings.  The
 * outcome's bits do not depend on where it ran. */
#ifndef SHOAL_RUN_H
#define SHOAL_RUN_H

#include <shoal/data.h>
#include <shoal/engine.h>
#include <shoal/job.h>
#include <shoal/learn.h>
#include <shoal/task.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct shoal_request shoal_request;
typedef struct shoal_outcome shoal_outcome;

/* Callbacks during a run.  All are called from the thread that runs it, and may be NULL. */
typedef struct shoal_watcher {
    void *context;
    shoal_progress *round;                          /* after every round */
    bool all_rounds;                                /* report every round of a job on workers, skipping none */
    void (*doing)(void *context, const char *text); /* "loading rows.npy"; NULL: nothing more to show */
    void (*warn)(void *context, const char *line);  /* what people should know: a host that can't be reached */
    void (*note)(void *context, const char *line);  /* what the user can do meanwhile: the command that starts a
                                                     * worker */
    void (*may_stop)(void *context, bool may);      /* whether `stop` is checked from now on */
    void (*leftovers)(void *context, const char *const *paths); /* files, then folders, to remove if this process is
                                                                 * killed; ended by NULL, NULL for none */
    const volatile int *stop; /* set by a signal handler of this process: ends the run after its round */
} shoal_watcher;

/* A request for a learner by its name ("kmeans"; "exec" for a command of your own), with the defaults of all options.
 * SHOAL_USAGE when there is no such learner. */
SHOAL_API int shoal_request_new(shoal_request **out, const char *learner);
SHOAL_API void shoal_request_free(shoal_request **request);
/* Sets an option by its long name from text, as the command line does: those of the learner, of its inputs and outputs,
 * of reading data ("data" is the path; "module" that of a module), of running, of workers and of resuming.  Options
 * that may be given several times are appended to; NULL resets an option to its default.  SHOAL_USAGE with a sentence
 * that names the option. The text is copied. */
SHOAL_API int shoal_request_set(shoal_request *request, const char *name, const char *text);
/* Rows in memory instead of "data", and a weight for each or NULL.  They still belong to the caller, and must last. */
SHOAL_API int shoal_request_rows(shoal_request *request, shoal_data *rows, const double *weights);
/* What is known of each row, in memory, instead of "target": rows of one column, whose values may stand for words
 * (shoal_data_name_words).  They still belong to the caller, and must last.  SHOAL_USAGE for a learner that needs no
 * target. */
SHOAL_API int shoal_request_target(shoal_request *request, shoal_data *target);
/* Values in memory that the learner starts from, instead of a file: the first centres of k-means, one per row.  They
 * still belong to the caller, and must last.  SHOAL_USAGE for a learner without such a start. */
SHOAL_API int shoal_request_start(shoal_request *request, const double *values, int64_t rows, int64_t columns);
/* A file in memory that the command of "exec" finds on workers under this name, a path below its current folder, as it
 * finds those that "send" names.  With any of these, words of the command are not taken for files of this machine.  The
 * name is copied; the bytes still belong to the caller, and must last. */
SHOAL_API int shoal_request_file(shoal_request *request, const char *name, const void *bytes, size_t size);
/* The shoal program, which runs local workers and the supervisors of detached jobs, and is copied to other machines.  A
 * run with "workers" ends with SHOAL_USAGE when it is not named, or is another version than this library. */
SHOAL_API int shoal_request_program(shoal_request *request, const char *path);
/* Binds the run to this process: local workers end with it, even if it is killed, and do not get its terminal's
 * signals; nothing about the run is recorded on this machine; and no message says how to resume the job.  The job stays
 * in the store that the request names, for the caller to remove. */
SHOAL_API void shoal_request_bind(shoal_request *request);
SHOAL_API void shoal_request_watch(shoal_request *request, const shoal_watcher *watcher);

/* Runs it to its end and writes the files it names; may be called repeatedly.  *out is set even after a failure, unless
 * memory ran out, with what is known; it needs the request, which must last as long.  SHOAL_STOPPED after a stop
 * without a result; see shoal_outcome_resume.  With "engine" = "mpi" all ranks make the same call, and each gets the
 * outcome of its part; rank 0 has the whole result, and writes. */
SHOAL_API int shoal_request_run(shoal_outcome **out, const shoal_request *request);
/* Goes on with a job that was submitted to the request's store, which is of the learner of that name, as
 * `shoal job resume` does: workers, files and outputs are those it was submitted with on this machine. */
SHOAL_API int shoal_request_resume(shoal_outcome **out, const shoal_request *request, const char *id);

/* ---- calls -------------------------------------------------------------------------------------------------------
 *
 * A command of your own that is called again and again over the same rows, by workers that stay in between:
 *
 *     shoal_session *session = NULL;
 *     const void *answers = NULL;
 *     size_t bytes = 0;
 *     status = shoal_session_open(&session, request);                   // an "exec" with "data", "workers", a program
 *     for (int i = 0; i < 100 && status == SHOAL_OK; i++) {
 *         status = shoal_session_call(session, params, params_bytes, &answers, &bytes);
 *         ... make the next params of the answers, which last until the next call
 *     }
 *     shoal_session_close(&session);
 *
 * Each program of a worker reads .npy arrays from its standard input: bytes with one dimension, the params of a call,
 * which it keeps; and rows, with two, which it answers with an array of bytes on its standard output.  A call gives
 * each grain of rows to one program and returns all answers, joined in the order of the rows, so it does not depend on
 * the workers.  Programs may get params again, and a grain may be answered twice; one that was never asked for has got
 * no params.  Rows and files are sent once, and programs start once; workers that die, also between two calls, are
 * replaced. */
typedef struct shoal_session shoal_session;

/* Begins to start the workers of a request for "exec", and returns without waiting for them.  The request must last,
 * unchanged but for its watcher, until the session is closed.  SHOAL_USAGE for another learner. */
SHOAL_API int shoal_session_open(shoal_session **out, const shoal_request *request);
/* Makes one call and waits for its end; one thread at a time.  The request's watcher is told from within it; its `stop`
 * ends the session, with SHOAL_STOPPED.  After any failure the session is over, and every further call fails the same
 * way: a program that fails its answer does so as well as workers that can't be started. */
SHOAL_API int shoal_session_call(shoal_session *session, const void *params, size_t bytes, const void **answers,
                                 size_t *answers_bytes);
/* Ends the workers and removes what the job had in a store that was not named.  In a process that was forked since,
 * which has no part in it, it does nothing.  Accepts a NULL inside. */
SHOAL_API void shoal_session_close(shoal_session **session);

/* ---- workers for tasks -------------------------------------------------------------------------------------------
 *
 * Workers for a client of tasks (shoal/task.h), which stay until they are stopped:
 *
 *     const char *where[] = {"4", "ssh:corn10,corn11:8", NULL};
 *     status = shoal_task_workers_start(&workers, tasks, "dir:/tmp/st",
 *                                       &(shoal_task_workers_options){.workers = where, .program = "/usr/bin/shoal"});
 *     ... submit tasks, take results ...
 *     shoal_task_workers_stop(&workers);
 *     shoal_tasks_close(&tasks); */
typedef struct shoal_task_workers shoal_task_workers;

typedef struct shoal_task_workers_options {
    const char *const *workers; /* as --workers says, ended by NULL */
    const char *program;        /* as shoal_request_program says; it and `ssh` must last until they are stopped */
    const char *ssh;            /* as --ssh does; NULL: $SHOAL_SSH, or ssh */
    int64_t threads, memory;    /* of each; 0: its share of its machine's */
    const char *shared; /* keys that begin so are for workers of other machines, too ("sweeps/mine/"); or NULL */
    /* Told what people should know: a host that can't be reached.  From a thread of its own.  May be NULL. */
    void (*say)(void *context, const char *line);
    void *context;
} shoal_task_workers_options;

/* Starts them, gives them the client's key, and looks after them: those that die are started again, and the client is
 * told; when none can work any more the client's waits end with the reason (shoal_tasks_fail).  They end with this
 * process, even if it is killed.  `url` is the address of the client's store.  SHOAL_USAGE for what can't be started:
 * an array of Slurm, say, whose workers could not be given a key. */
SHOAL_API int shoal_task_workers_start(shoal_task_workers **out, shoal_tasks *tasks, const char *url,
                                       const shoal_task_workers_options *options);
/* How many of them run, as far as is known. */
SHOAL_API int64_t shoal_task_workers_running(shoal_task_workers *workers);
/* Tells them to leave, ends those that have not within two seconds, and frees.  Accepts a NULL inside. */
SHOAL_API void shoal_task_workers_stop(shoal_task_workers **workers);

SHOAL_API void shoal_outcome_free(shoal_outcome **outcome);
/* The following accept NULL too. */
/* The result; NULL if there is none, as for a job that continues by itself. */
SHOAL_API const shoal_result *shoal_outcome_result(const shoal_outcome *outcome);
SHOAL_API const shoal_report *shoal_outcome_report(const shoal_outcome *outcome);
/* The job's name in its store; "" when it ran in this process. */
SHOAL_API const char *shoal_outcome_job(const shoal_outcome *outcome);
/* After SHOAL_STOPPED: the command that resumes the job; NULL when there is nothing to resume. */
SHOAL_API const char *shoal_outcome_resume(const shoal_outcome *outcome);

#ifdef __cplusplus
}
#endif
#endif
