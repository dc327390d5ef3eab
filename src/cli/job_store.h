/* Where jobs are: the store that a verb means, and the job in it. */
#ifndef CLI_JOB_STORE_H
#define CLI_JOB_STORE_H

#include <stdbool.h>
#include <shoal/job.h>
#include <shoal/option.h>

typedef struct cli_jobs_settings {
    const char *store; /* NULL: SHOAL_STORE or, without that, a folder of this user */
    double patience;   /* seconds that one request may take, all its attempts included */
} cli_jobs_settings;

extern const shoal_option *const cli_jobs_options; /* of cli_jobs_settings: --store, --deadline */

typedef struct cli_jobs {
    shoal_store *store;
    char *url;
    bool named; /* by --store: whoever is told about a job has to name it too */
    double patience;
} cli_jobs;

typedef enum cli_jobs_access { CLI_JOBS_READ, CLI_JOBS_WRITE, CLI_JOBS_CREATE } cli_jobs_access;

/* The store's URL: as given, or SHOAL_STORE, or the folder of this user. */
int cli_jobs_url(char **out, const char *given);
/* Opens it.  To create is to make a folder, or this user's own one, when it is not there. */
int cli_jobs_open(cli_jobs *out, const cli_jobs_settings *settings, cli_jobs_access access);
void cli_jobs_close(cli_jobs *jobs);
int64_t cli_jobs_deadline(const cli_jobs *jobs);

/* The job that `text` means: its name, or the start or the end of it, if only one job has that; NULL: the only job
 * there is. */
int cli_jobs_find(char id[SHOAL_JOB_ID_BYTES], const cli_jobs *jobs, const char *text);
/* "shoal job VERB ID", with --store where that is needed, for a shell. */
int cli_jobs_command(char **out, const cli_jobs *jobs, const char *verb, const char *id);
/* A text as one word of a shell's command. */
int cli_quote(char **out, const char *text);
/* A file of this user about jobs, in folders that are made: $XDG_STATE_HOME/shoal/NAME. */
int cli_jobs_state_path(char **out, const char *name);
/* The same for one job: KIND/ID.KIND. */
int cli_jobs_file_path(char **out, const char *id, const char *kind);
/* Removes what this machine keeps about a job. */
void cli_jobs_forget(const char *id);

#endif
