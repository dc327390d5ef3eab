/* shoal job scale, cancel and remove. */
#include "cli.h"

#include <inttypes.h>
#include <string.h>

#include "base/memory.h"
#include "job_print.h"
#include "run/jobs.h"

typedef struct settings {
    cli_common common;
    run_jobs_settings jobs;
    bool force, all_done;
    const char *why;
} settings;

static const shoal_option cancel_rows[] = {
    {"why", 0, SHOAL_OPTION_TEXT, offsetof(settings, why), "TEXT", .help = "what to tell whoever looks at the job",
     .fallback = "by request"},
    {0},
};
static const shoal_option remove_rows[] = {
    {"force", 'f', SHOAL_OPTION_FLAG, offsetof(settings, force), NULL,
     .help = "also a job that workers are working on"},
    {"all-done", 0, SHOAL_OPTION_FLAG, offsetof(settings, all_done), NULL,
     .help = "all jobs that are done, rather than one"},
    {0},
};
static const shoal_option *const cancel_options = cancel_rows, *const remove_options = remove_rows;
static const base_option_group scale_groups[] = {
    {"Store", &run_jobs_options, offsetof(settings, jobs)},
    {"Help", &cli_common_options, offsetof(settings, common)},
    {0},
};
static const base_option_group cancel_groups[] = {
    {"Cancelling", &cancel_options, 0},
    {"Store", &run_jobs_options, offsetof(settings, jobs)},
    {"Help", &cli_common_options, offsetof(settings, common)},
    {0},
};
static const base_option_group remove_groups[] = {
    {"Removing", &remove_options, 0},
    {"Store", &run_jobs_options, offsetof(settings, jobs)},
    {"Help", &cli_common_options, offsetof(settings, common)},
    {0},
};

static int open_job(run_jobs *jobs, char id[SHOAL_JOB_ID_BYTES], const settings *settings, const char *text)
{
    int status = run_jobs_open(jobs, &settings->jobs, RUN_JOBS_WRITE);
    return status == SHOAL_OK ? run_jobs_find(id, jobs, text) : status;
}

/* ---- scale ------------------------------------------------------------------------------------------------------- */

static int check_running(const run_jobs *jobs, const char *id)
{
    shoal_job *job = NULL;
    int status = shoal_job_describe(&job, jobs->store, id, false, run_jobs_deadline(jobs));
    if (status == SHOAL_OK && job->state != SHOAL_JOB_RUNNING)
        status = shoal_fail(SHOAL_USAGE, "job %s is %s: it needs no workers", id, cli_job_state_name(job));
    shoal_job_free(&job);
    return status;
}

static int run_scale(void *from_main, const char *const *word, int words)
{
    const settings *settings = from_main;
    const char *number = words == 2 ? word[1] : word[0];
    char id[SHOAL_JOB_ID_BYTES];
    int64_t count = 0;
    run_jobs jobs = {0};
    if (!base_parse_count(&count, number) || count < 0 || count > SHOAL_JOB_WORKERS_MOST)
        return shoal_fail(SHOAL_USAGE, "job scale: '%s' is not a number of workers from 0 to %d", number,
                          SHOAL_JOB_WORKERS_MOST);
    int status = open_job(&jobs, id, settings, words == 2 ? word[0] : NULL);
    if (status == SHOAL_OK)
        status = check_running(&jobs, id);
    if (status == SHOAL_OK)
        status = shoal_job_want(jobs.store, id, count, run_jobs_deadline(&jobs));
    if (status == SHOAL_OK)
        printf("job %s is to have %" PRId64 " worker%s\n", id, count, count == 1 ? "" : "s");
    run_jobs_close(&jobs);
    return status;
}

/* ---- cancel ------------------------------------------------------------------------------------------------------ */

static int run_cancel(void *from_main, const char *const *word, int words)
{
    const settings *settings = from_main;
    char id[SHOAL_JOB_ID_BYTES];
    char *command = NULL;
    run_jobs jobs = {0};
    (void)words;
    int status = open_job(&jobs, id, settings, word[0]);
    if (status == SHOAL_OK)
        status = shoal_job_cancel(jobs.store, id, settings->why, run_jobs_deadline(&jobs));
    if (status == SHOAL_OK)
        status = run_jobs_command(&command, &jobs, "resume", id);
    if (status == SHOAL_OK)
        printf("cancelled job %s, which can go on with `%s`\n", id, command);
    base_free(&command);
    run_jobs_close(&jobs);
    return status;
}

/* ---- remove ------------------------------------------------------------------------------------------------------ */

static int check_removable(const run_jobs *jobs, const char *id)
{
    shoal_job *job = NULL;
    int status = shoal_job_describe(&job, jobs->store, id, true, run_jobs_deadline(jobs));
    if (status == SHOAL_OK && job->state == SHOAL_JOB_RUNNING && job->live > 0)
        status = shoal_fail(SHOAL_USAGE,
                            "%" PRId64 " worker%s at work on job %s: cancel it first, or remove it with --force",
                            job->live, job->live == 1 ? " is" : "s are", id);
    shoal_job_free(&job);
    /* What can't be read is only in the way. */
    return status == SHOAL_ABSENT || status == SHOAL_INVALID || status == SHOAL_BROKEN ? SHOAL_OK : status;
}

static int remove_stopped_job(const run_jobs *jobs, const char *id)
{
    int status = shoal_job_remove(jobs->store, id, run_jobs_deadline(jobs));
    if (status < 0)
        return status;
    run_jobs_forget(id);
    printf("removed job %s\n", id);
    return SHOAL_OK;
}

static int remove_done(const run_jobs *jobs)
{
    shoal_job_id *ids = NULL;
    int64_t count = 0;
    int status = shoal_job_list(&ids, &count, jobs->store, run_jobs_deadline(jobs));
    for (int64_t i = 0; i < count && status == SHOAL_OK; i++) {
        shoal_job *job = NULL;
        status = shoal_job_describe(&job, jobs->store, ids[i].text, false, run_jobs_deadline(jobs));
        bool done = status == SHOAL_OK && job->state == SHOAL_JOB_DONE;
        if (status == SHOAL_ABSENT || status == SHOAL_INVALID || status == SHOAL_BROKEN)
            status = SHOAL_OK;
        shoal_job_free(&job);
        if (done)
            status = remove_stopped_job(jobs, ids[i].text);
    }
    shoal_job_list_free(&ids);
    return status;
}

static int run_remove(void *from_main, const char *const *word, int words)
{
    const settings *settings = from_main;
    char id[SHOAL_JOB_ID_BYTES];
    run_jobs jobs = {0};
    if (settings->all_done && words > 0)
        return shoal_fail(SHOAL_USAGE, "--all-done removes all that are done: it needs no ID");
    if (!settings->all_done && words == 0)
        return shoal_fail(SHOAL_USAGE, "job remove needs ID or --all-done");
    int status = run_jobs_open(&jobs, &settings->jobs, RUN_JOBS_WRITE);
    if (status == SHOAL_OK && settings->all_done) {
        status = remove_done(&jobs);
    } else if (status == SHOAL_OK) {
        status = run_jobs_find(id, &jobs, word[0]);
        if (status == SHOAL_OK && !settings->force)
            status = check_removable(&jobs, id);
        if (status == SHOAL_OK)
            status = remove_stopped_job(&jobs, id);
    }
    run_jobs_close(&jobs);
    return status;
}

/* ---- the verbs --------------------------------------------------------------------------------------------------- */

static const char *const scale_description[] = {
    "Asks whoever started workers for a job, with --workers local:N, to keep N of them from now on: more are started, "
    "or some leave. It obeys within two seconds. Workers that were started by hand are not touched.",
    NULL,
};
static const learn_example scale_examples[] = {
    {"shoal job scale kmeans-4f 8", "eight workers from now on"},
    {NULL, NULL},
};
const cli_verb cli_job_scale = {
    .name = "job scale",
    .summary = "change the number of a job's workers",
    .word = {"ID", "N"},
    .words_least = 1,
    .synopsis = "[options]",
    .description = scale_description,
    .examples = scale_examples,
    .options = scale_groups,
    .settings_size = sizeof(settings),
    .run = run_scale,
};

static const char *const cancel_description[] = {"Ends a job. Its workers stop, what it has found so far stays in the "
                                                 "store, and it can go on with shoal job resume.",
                                                 NULL};
static const learn_example cancel_examples[] = {
    {"shoal job cancel kmeans-4f --why 'the machines are needed'", "for now"},
    {NULL, NULL},
};
const cli_verb cli_job_cancel = {
    .name = "job cancel",
    .summary = "end a job, which can go on later",
    .word = {"ID"},
    .synopsis = "[options]",
    .description = cancel_description,
    .examples = cancel_examples,
    .options = cancel_groups,
    .settings_size = sizeof(settings),
    .run = run_cancel,
};

static const char *const remove_description[] = {
    "Removes all there is of a job from the store: its result, its models, the rows it uploaded. A job that workers "
    "are working on is refused unless --force ends it first. A job whose removal was cut short is removed by saying so "
    "again.",
    NULL,
};
static const learn_example remove_examples[] = {
    {"shoal job remove kmeans-4f", "one job"},
    {"shoal job remove --all-done --store az://acct/box/jobs", "all that are done"},
    {NULL, NULL},
};
const cli_verb cli_job_remove = {
    .name = "job remove",
    .summary = "remove a job and its result",
    .word = {"ID"},
    .synopsis = "[options]",
    .description = remove_description,
    .examples = remove_examples,
    .options = remove_groups,
    .settings_size = sizeof(settings),
    .run = run_remove,
};
