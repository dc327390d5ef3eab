/* What a job was submitted with, and how much of it counts for whoever resumes it.
 *
 * The spec in the store holds what the submitter asked for; but others may write to the store, too, and then a
 * resume would start programs, call hosts, and read and write files as they please.  So submitting leaves a note on
 * this machine, which also has the hash of the spec, and a resume obeys that note and its own command line.  Of a
 * job without a note all else is shown and refused, in a sentence with the option that would allow it. */
#ifndef CLI_JOB_WISH_H
#define CLI_JOB_WISH_H

#include "cli.h"
#include "engine/store/job_spec.h"
#include "job_store.h"
#include "run_job.h"

typedef struct cli_wish {
    json_t *asked; /* "options", "data", "outputs", "more", "workers", "ssh", "roles"; NULL for nothing */
    bool own;      /* this user asked for it, on this machine; otherwise it is what the store says */
} cli_wish;

/* Leaves the note.  `spec` is the SHA-256 of the job's spec in hex, `asked` the settings as text of JSON. */
int cli_wish_write(const char *id, const char *spec, const char *asked);
/* SHOAL_DENIED when this user submitted a job of that name here, and the one in the store is another. */
int cli_wish_find(cli_wish *out, const shoal_job *about);
void cli_wish_release(cli_wish *wish);
/* Gets the spec, if it is still the one with that hash; SHOAL_DENIED otherwise.  What was looked at is what is run. */
int cli_wish_spec(job_spec **out, const cli_jobs *jobs, const char *id, const char *expected);

/* Takes out of a wish that is not our own whatever `allowed` does not allow, and says so on stderr unless `quiet`;
 * SHOAL_DENIED when the job can't go on without it.  Own wishes stay as they are. */
int cli_wish_restrict(cli_wish *wish, const cli_jobs *jobs, const shoal_job *about, const cli_workers_settings *allowed,
                      bool quiet);

/* What --data-root has to be for a file or what a URL names, quoted for a shell. */
int cli_wish_root(char **out, const char *place);
/* Opens the rows that a job was submitted with: data, weights, and labels as the last column. */
int cli_wish_load(cli_job *job, const json_t *asked);

#endif
