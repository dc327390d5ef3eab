/* Running a learner on workers: submitting the job, starting workers, following it to its end.  What every learner's
 * verb shares with `shoal job resume`. */
#ifndef CLI_RUN_JOB_H
#define CLI_RUN_JOB_H

#include "cli.h"
#include "job_store.h"

/* With less a worker could not do anything. */
enum { CLI_WORKER_MEMORY_LEAST = 32 << 20 };

typedef struct cli_workers_settings {
    const char *store;   /* URL */
    shoal_texts workers; /* "local:8", "ssh:corn10,corn11:8" */
    const char *ssh;     /* the command to use for ssh: */
    const char *reduce, *roles, *name;
    int64_t slices, keep_rounds, worker_memory;
    double lease, patience;
    bool detach;
    /* Of `shoal job resume`, for jobs that were submitted elsewhere (job_wish.h). */
    bool foreign;           /* it is one */
    bool write_outputs;     /* also those that only the store names */
    const char *allow_code; /* SHA-256 of what may be run, with commas between */
    const char *data_root;  /* folder, or start of URLs, that rows may be read from */
    bool as_scaled;         /* what `shoal job scale` asked for before counts more than `workers` */
    bool passing;           /* it is removed however it ends, so nobody is told how it could go on */
} cli_workers_settings;

extern const shoal_option *const cli_workers_options; /* of cli_workers_settings */

/* Whether the options ask for workers; SHOAL_USAGE when they ask for something of workers without asking for them. */
int cli_workers_check(bool *asked, const cli_workers_settings *settings);

/* What a verb tells about a run, so that whoever resumes the job can end it as the verb would have. */
typedef struct cli_workers_wish {
    const void *config;    /* of the learner */
    const char *data_path; /* as the options below read it */
    const shoal_data_options *data;
    const char *weights_path;        /* or NULL */
    const char *labels_path;         /* whose values are the last column; or NULL */
    const cli_file *outputs;         /* ended by a row without a name */
    json_t *more;                    /* further settings the learner's `finish` needs; taken, may be NULL */
    const cli_trace_settings *trace; /* its file is one of the outputs */
    const shoal_code *code;          /* files that workers need, `codes` of them */
    int codes;
} cli_workers_wish;

/* Submits and follows.  Then job->result is there, or job->detached is set.  CLI_RESUMABLE when the job stopped and
 * can go on, which has been said. */
int cli_workers_run(cli_job *job, const cli_workers_wish *wish, const cli_run_settings *run,
                    const cli_workers_settings *settings, const cli_print_settings *print);
/* Once all outputs are written: removes a job that nobody asked to keep.  `status` is how writing them went, and is
 * returned. */
int cli_workers_close(cli_job *job, int status);

/* Goes on with a job that is in the store, which job->away names by its id and the hash of its spec. */
int cli_workers_resume(cli_job *job, cli_jobs *jobs, const cli_run_settings *run, const cli_workers_settings *settings,
                       const cli_print_settings *print, const cli_trace_settings *trace);

#endif
