/* What a job was submitted with, and how much of it counts for whoever resumes it.
 *
 * The spec in the store holds what the submitter asked for; but others may write to the store, too, and then a
 * resume would start programs, call hosts, and read and write files as they please.  So submitting leaves a note on
 * this machine, which also has the hash of the spec, and a resume obeys that note and its own command line.  Of a
 * job without a note all else is shown and refused, in a sentence with the option that would allow it. */
#ifndef RUN_KEPT_REQUEST_H
#define RUN_KEPT_REQUEST_H

#include <jansson.h>
#include <stdbool.h>

#include "engine/store/job_spec.h"
#include "jobs.h"
#include "outcome.h"

typedef struct run_kept_request {
    json_t *asked; /* "options", "data", "outputs", "more", "workers", "ssh", "roles"; NULL for nothing */
    bool own;      /* this user asked for it, on this machine; otherwise it is what the store says */
} run_kept_request;

/* What a run was asked to do as text of JSON, for the job's spec and for the note. */
int run_kept_text(char **out, const shoal_outcome *outcome);
/* Leaves the note.  `spec` is the SHA-256 of the job's spec in hex, `asked` the text. */
int run_kept_write(const run_jobs *jobs, const char *id, const char *spec, const char *asked);
/* SHOAL_DENIED when this user submitted a job of that name here, and the one in the store is another. */
int run_kept_find(run_kept_request *out, const shoal_job *about);
void run_kept_release(run_kept_request *kept);
/* Gets the spec, if it is still the one with that hash; SHOAL_DENIED otherwise.  What was looked at is what is run. */
int run_kept_spec(job_spec **out, const run_jobs *jobs, const char *id, const char *expected);

/* Takes out of a kept request that is not our own whatever the request's options of workers do not allow, and warns the
 * watcher; SHOAL_DENIED when the job can't go on without it.  Own requests stay as they are. */
int run_kept_restrict(run_kept_request *kept, const run_jobs *jobs, const shoal_job *about,
                      const run_workers_options *allowed, const shoal_watcher *watch);
/* Fills a request, which has its learner and the options of whoever resumes, from what was asked for.  Its texts belong
 * to the kept request. */
int run_kept_fill(shoal_request *request, const run_kept_request *kept, const char *id);

/* "shoal worker --store ... --job ...", with the --data-root and --allow-code that a worker of this job needs when it
 * is started by hand. */
int run_worker_command(char **out, const run_jobs *jobs, const shoal_job *about);
/* Whether --workers none was given. */
bool run_workers_are_none(const run_workers_options *workers);
/* SHOAL_USAGE when what --allow-code was given is not hashes with commas between. */
int run_check_hashes(const char *text);
/* The hashes of all that a job brings along, as --allow-code takes them; "" when that is nothing. */
int run_code_hashes(char **out, const shoal_job *job);
/* What --data-root has to be for a file or what a URL names, quoted for a shell. */
int run_kept_root(char **out, const char *place);
/* Where the blobs are that a job of this user gets; NULL when nobody says, or the job was submitted elsewhere. */
const char *run_kept_blobs_from(const run_kept_request *kept);
/* SHOAL_DENIED when the rows of a job that was submitted elsewhere may not be read. */
int run_kept_may_load(const run_kept_request *kept, const char *id);

#endif
