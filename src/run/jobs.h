/* Where jobs are: the store that a verb means, and the job in it. */
#ifndef RUN_JOBS_H
#define RUN_JOBS_H

#include <stdbool.h>
#include <shoal/job.h>
#include <shoal/option.h>

#include "control/aim.h"

typedef struct run_jobs_settings {
    const char *store; /* NULL: SHOAL_STORE or, without that, a folder of this user */
    double patience;   /* seconds that one request may take, all its attempts included */
} run_jobs_settings;

extern const shoal_option *const run_jobs_options; /* of run_jobs_settings: --store, --deadline */

typedef struct run_jobs {
    shoal_store *store;
    char *url;
    bool named; /* by --store: whoever is told about a job has to name it too */
    double patience;
} run_jobs;

typedef enum run_jobs_access { RUN_JOBS_READ, RUN_JOBS_WRITE, RUN_JOBS_CREATE } run_jobs_access;

/* The store's URL: as given, or SHOAL_STORE, or the folder of this user. */
int run_jobs_url(char **out, const char *given);
/* Opens it.  To create is to make a folder, or this user's own one, when it is not there. */
int run_jobs_open(run_jobs *out, const run_jobs_settings *settings, run_jobs_access access);
void run_jobs_close(run_jobs *jobs);
/* Opens it and finds the job that `text` means, as run_jobs_find does; to be closed also after a failure. */
int run_jobs_open_one(run_jobs *out, char id[SHOAL_JOB_ID_BYTES], const run_jobs_settings *settings,
                      run_jobs_access access, const char *text);
int64_t run_jobs_deadline(const run_jobs *jobs);

/* The job that `text` means: its name, or the start or the end of it, if only one job has that; NULL: the only job
 * there is. */
int run_jobs_find(char id[SHOAL_JOB_ID_BYTES], const run_jobs *jobs, const char *text);
/* The same, but NULL means the only job that has not ended, if there is one such. */
int run_jobs_find_running(char id[SHOAL_JOB_ID_BYTES], const run_jobs *jobs, const char *text);
/* "shoal job VERB ID", with --store where that is needed, for a shell. */
int run_jobs_command(char **out, const run_jobs *jobs, const char *verb, const char *id);
/* A text as one word of a shell's command. */
int run_quote(char **out, const char *text);
/* A file of this user about jobs, in folders that are made: $XDG_STATE_HOME/shoal/NAME. */
int run_jobs_state_path(char **out, const char *name);
/* The same for one job: KIND/ID.KIND. */
int run_jobs_file_path(char **out, const char *id, const char *kind);
/* Removes what this machine keeps about a job. */
void run_jobs_forget(const char *id);
/* Removes what this machine keeps about jobs that are gone from this store, whose jobs are `ids`, and about those of
 * folders that have long been gone. */
void run_jobs_sweep(const run_jobs *jobs, const shoal_job_id *ids, int64_t count);
bool run_jobs_is_folder(const char *url);
/* What a store is known by again, however its URL was written: the path of a folder, a URL without its options. */
int run_jobs_place(char **out, const char *url);

/* "running", "waiting" (for workers), "done", "failed" or "cancelled". */
const char *run_jobs_state_name(const shoal_job *job);
/* Asks whoever started workers for a job to keep that many of them.  SHOAL_USAGE for a job that has ended. */
int run_jobs_scale(const run_jobs *jobs, const char *id, int64_t workers);
/* Holds a job to what `change` makes of what it is held to now, which is nothing at first: within a few seconds whoever
 * started its workers goes by it.  SHOAL_USAGE for a job that has ended, and whatever `change` returns. */
int run_jobs_hold(const run_jobs *jobs, const char *id, int (*change)(void *context, control_aim *aim), void *context);
/* Removes a job from the store, and what this machine keeps about it.  SHOAL_USAGE without `force` while workers are at
 * work on it. */
int run_jobs_remove(const run_jobs *jobs, const char *id, bool force);
/* Which jobs to remove: those that are done; those that no worker is at work on and that have computed no round. */
typedef enum run_jobs_which { RUN_JOBS_DONE, RUN_JOBS_UNSTARTED } run_jobs_which;
/* The same for all of a kind; `removed` is called for each, and *left is how many others there are. */
int run_jobs_remove_all(int64_t *left, const run_jobs *jobs, run_jobs_which which,
                        void (*removed)(void *context, const char *id), void *context);

/* How many blobs a job has below jobs/ID/NAME/; -1 when the store does not say. */
int64_t run_jobs_count_below(const run_jobs *jobs, const char *id, const char *name);

#endif
