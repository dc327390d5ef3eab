/* Changing jobs of a store: how many workers they are to have, and that they are gone.  See jobs.h. */
#include "jobs.h"

#include <inttypes.h>

#include <shoal/error.h>

const char *run_jobs_state_name(const shoal_job *job)
{
    static const char *const names[] = {"running", "done", "failed", "cancelled"};
    return job->state == SHOAL_JOB_RUNNING && job->live == 0 ? "waiting" : names[job->state];
}

static int check_running(const run_jobs *jobs, const char *id, const char *otherwise)
{
    shoal_job *job = NULL;
    int status = shoal_job_describe(&job, jobs->store, id, 0, run_jobs_deadline(jobs));
    if (status == SHOAL_OK && job->state != SHOAL_JOB_RUNNING)
        status = shoal_fail(SHOAL_USAGE, "job %s is %s and %s", id, run_jobs_state_name(job), otherwise);
    shoal_job_free(&job);
    return status;
}

int run_jobs_hold(const run_jobs *jobs, const char *id, int (*change)(void *context, control_aim *aim), void *context)
{
    control_aim aim;
    int status = check_running(jobs, id, "can't be held to anything");
    if (status == SHOAL_OK)
        status = control_aim_get(&aim, jobs->store, id, run_jobs_deadline(jobs));
    if (status == SHOAL_OK || status == SHOAL_ABSENT || status == SHOAL_BROKEN)
        status = change(context, &aim);
    return status == SHOAL_OK ? control_aim_put(jobs->store, id, &aim, run_jobs_deadline(jobs)) : status;
}

int run_jobs_scale(const run_jobs *jobs, const char *id, int64_t workers)
{
    control_aim aim;
    int status = check_running(jobs, id, "needs no workers");
    if (status == SHOAL_OK && control_aim_get(&aim, jobs->store, id, run_jobs_deadline(jobs)) == SHOAL_OK &&
        (aim.deadline > 0 || aim.budget > 0))
        status = shoal_fail(SHOAL_USAGE,
                            "job %s is held to its %s, which decides how many workers it has: `shoal job %s none` ends "
                            "that",
                            id, aim.deadline > 0 ? "deadline" : "budget", aim.deadline > 0 ? "deadline" : "budget");
    return status == SHOAL_OK ? shoal_job_want(jobs->store, id, workers, run_jobs_deadline(jobs)) : status;
}

/* What can't be read is only in the way, and what is gone already is no failure. */
static int unless_unreadable(int status)
{
    return status == SHOAL_ABSENT || status == SHOAL_INVALID || status == SHOAL_BROKEN ? SHOAL_OK : status;
}

static int check_removable(const run_jobs *jobs, const char *id)
{
    shoal_job *job = NULL;
    int status = shoal_job_describe(&job, jobs->store, id, 0, run_jobs_deadline(jobs));
    if (status == SHOAL_OK && job->state == SHOAL_JOB_RUNNING && job->live > 0)
        status = shoal_fail(SHOAL_USAGE,
                            "%" PRId64 " worker%s at work on job %s: cancel it first, or remove it with --force",
                            job->live, job->live == 1 ? " is" : "s are", id);
    shoal_job_free(&job);
    return unless_unreadable(status);
}

int run_jobs_remove(const run_jobs *jobs, const char *id, bool force)
{
    int status = force ? SHOAL_OK : check_removable(jobs, id);
    if (status == SHOAL_OK)
        status = shoal_job_remove(jobs->store, id, run_jobs_deadline(jobs));
    if (status == SHOAL_OK)
        run_jobs_forget(id);
    return status;
}

static bool is_of_kind(const shoal_job *job, run_jobs_which which)
{
    if (which == RUN_JOBS_DONE)
        return job->state == SHOAL_JOB_DONE;
    return job->state == SHOAL_JOB_RUNNING && job->round == 0 && job->live == 0;
}

int run_jobs_remove_all(int64_t *left, const run_jobs *jobs, run_jobs_which which,
                        void (*removed)(void *context, const char *id), void *context)
{
    shoal_job_id *ids = NULL;
    int64_t count = 0;
    *left = 0;
    int status = shoal_job_list(&ids, &count, jobs->store, run_jobs_deadline(jobs));
    if (status == SHOAL_OK)
        run_jobs_sweep(jobs, ids, count);
    for (int64_t i = 0; i < count && status == SHOAL_OK; i++) {
        shoal_job *job = NULL;
        status = shoal_job_describe(&job, jobs->store, ids[i].text, 0, run_jobs_deadline(jobs));
        bool goes = status == SHOAL_OK && is_of_kind(job, which);
        status = unless_unreadable(status);
        shoal_job_free(&job);
        if (goes)
            status = run_jobs_remove(jobs, ids[i].text, false);
        if (goes && status == SHOAL_USAGE) { /* a worker has come since */
            goes = false;
            status = SHOAL_OK;
        }
        if (goes && status == SHOAL_OK)
            removed(context, ids[i].text);
        *left += !goes;
    }
    shoal_job_list_free(&ids);
    return status;
}
