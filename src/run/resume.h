/* Going on with jobs that are in a store. */
#ifndef RUN_RESUME_H
#define RUN_RESUME_H

#include "jobs.h"
#include "outcome.h"

/* What whoever resumes a job says of it; the rest is what it was submitted with. */
typedef struct run_resume_options {
    const char *learner; /* that the job must be of; NULL: any */
    run_place place;
    run_workers_options workers;
    bool json, force;
    const char *program;
    shoal_watcher watch;
} run_resume_options;

/* Goes on with a job, follows it to its end and writes its outputs.  Takes `jobs`, also on failure. */
int run_resume(shoal_outcome **out, run_jobs *jobs, const char *id, const run_resume_options *options);

#endif
