/* The code that a job brings along: files named by their SHA-256, trusted only when the worker's starter named them.
 *
 * A worker that was started for one spec trusts what that spec names: its hash covers the hashes of all files.  Any
 * other worker runs what it has built in, and what it was told to allow. */
#ifndef JOB_CODE_H
#define JOB_CODE_H

#include "engine/store/job_spec.h"

/* What a module is called among a job's files. */
#define JOB_CODE_MODULE "module.so"

/* Whether a file that a job brings may have this name: "module.so", "command", or a path below "files/" that stays
 * there. */
bool job_code_name_is_good(const char *name);
/* Whether a comma-separated list of hex hashes has this one. */
bool job_code_allowed(const char *list, const char *sha256);
/* Puts into the spec the files that the options bring.  SHOAL_USAGE for what can't be brought. */
int job_code_list(job_spec *spec, const shoal_code *code, int codes);

/* What a worker has of a job's code. */
typedef struct job_code_here {
    char *folder; /* all files but the module; NULL for none */
    int module;   /* the module, in a sealed file in memory; -1 for none */
} job_code_here;

/* Refuses a job whose code this worker does not trust: SHOAL_INVALID with the hash that would have to be allowed. */
int job_code_check(const job_spec *spec, const shoal_worker_options *options);
/* Fetches the files of a job, from the cache where possible, and checks their hashes.  SHOAL_AGAIN if the store does
 * not have one (yet). */
int job_code_bring(job_code_here *out, const job_spec *spec, shoal_store *store, const shoal_worker_options *options,
                   int64_t deadline);
/* A sealed file in memory that has these bytes: what a module is loaded from. */
int job_code_in_memory(int *out, const void *bytes, size_t size);
/* Removes the folder and closes the module. */
void job_code_release(job_code_here *here);

#endif
