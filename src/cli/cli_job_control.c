/* shoal job scale, cancel and remove. */
#include "cli.h"

#include <inttypes.h>

#include "base/memory.h"
#include "base/text.h"
#include "run/jobs.h"

typedef struct settings {
    cli_common common;
    run_jobs_settings jobs;
    bool force, all_done, all_unstarted;
    const char *why;
} settings;

static const shoal_option cancel_rows[] = {
    {"why", 0, SHOAL_OPTION_TEXT, offsetof(settings, why), "TEXT",
     .help = "reason, shown to anyone who looks at the job", .fallback = "by request"},
    {0},
};
static const shoal_option remove_rows[] = {
    {"force", 'f', SHOAL_OPTION_FLAG, offsetof(settings, force), NULL,
     .help = "remove a job even if it still has workers"},
    {"all-done", 0, SHOAL_OPTION_FLAG, offsetof(settings, all_done), NULL, .help = "remove all jobs that are done"},
    {"all-unstarted", 0, SHOAL_OPTION_FLAG, offsetof(settings, all_unstarted), NULL,
     .help = "remove all jobs that have no workers and have computed nothing, such as those whose hosts could not be "
             "reached"},
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

/* ---- scale ------------------------------------------------------------------------------------------------------- */

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
    int status = run_jobs_open_one(&jobs, id, &settings->jobs, RUN_JOBS_WRITE, words == 2 ? word[0] : NULL);
    if (status == SHOAL_OK)
        status = run_jobs_scale(&jobs, id, count);
    if (status == SHOAL_OK)
        printf("job %s will have %" PRId64 " worker%s\n", id, count, base_plural(count));
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
    int status = run_jobs_open_one(&jobs, id, &settings->jobs, RUN_JOBS_WRITE, word[0]);
    if (status == SHOAL_OK)
        status = shoal_job_cancel(jobs.store, id, settings->why, run_jobs_deadline(&jobs));
    if (status == SHOAL_OK)
        status = run_jobs_command(&command, &jobs, "resume", id);
    if (status == SHOAL_OK)
        printf("cancelled job %s; resume it with `%s`\n", id, command);
    base_free(&command);
    run_jobs_close(&jobs);
    return status;
}

/* ---- remove ------------------------------------------------------------------------------------------------------ */

static void print_removed_job(void *context, const char *id)
{
    (void)context;
    printf("removed job %s\n", id);
}

static void count_removed_job(void *context, const char *id)
{
    ++*(int64_t *)context;
    print_removed_job(NULL, id);
}

static int remove_all(const run_jobs *jobs, run_jobs_which which)
{
    int64_t removed = 0, left = 0;
    int status = run_jobs_remove_all(&left, jobs, which, count_removed_job, &removed);
    if (status == SHOAL_OK && removed == 0)
        printf("no job %s%s\n", which == RUN_JOBS_DONE ? "is done" : "waits for its first worker",
               left > 0 ? "; shoal job list shows the others" : "");
    return status;
}

static int run_remove(void *from_main, const char *const *word, int words)
{
    const settings *settings = from_main;
    char id[SHOAL_JOB_ID_BYTES];
    run_jobs jobs = {0};
    bool all = settings->all_done || settings->all_unstarted;
    if (all && words > 0)
        return shoal_fail(SHOAL_USAGE, "job remove takes ID or --all-done or --all-unstarted, not both");
    if (!all && words == 0)
        return shoal_fail(SHOAL_USAGE, "job remove needs ID, --all-done or --all-unstarted");
    int status = run_jobs_open(&jobs, &settings->jobs, RUN_JOBS_WRITE);
    if (status == SHOAL_OK && settings->all_done)
        status = remove_all(&jobs, RUN_JOBS_DONE);
    if (status == SHOAL_OK && settings->all_unstarted)
        status = remove_all(&jobs, RUN_JOBS_UNSTARTED);
    if (status == SHOAL_OK && !all) {
        status = run_jobs_find(id, &jobs, word[0]);
        if (status == SHOAL_OK)
            status = run_jobs_remove(&jobs, id, settings->force);
        if (status == SHOAL_OK)
            print_removed_job(NULL, id);
    }
    run_jobs_close(&jobs);
    return status;
}

/* ---- the verbs --------------------------------------------------------------------------------------------------- */

static const char *const scale_description[] = {
    "Asks the process that started a job's workers with --workers to keep N of them from now on: within two seconds "
    "more are started, or some leave. Workers that were started by hand are not touched.",
    NULL,
};
static const learn_example scale_examples[] = {
    {"shoal job scale kmeans-4f 8", "keep eight workers from now on"},
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

static const char *const cancel_description[] = {"Cancels a job. Its workers stop, its progress stays in the store, "
                                                 "and shoal job resume continues it.",
                                                 NULL};
static const learn_example cancel_examples[] = {
    {"shoal job cancel kmeans-4f --why 'the machines are needed'", "for now"},
    {NULL, NULL},
};
const cli_verb cli_job_cancel = {
    .name = "job cancel",
    .summary = "cancel a job; it can be resumed",
    .word = {"ID"},
    .synopsis = "[options]",
    .description = cancel_description,
    .examples = cancel_examples,
    .options = cancel_groups,
    .settings_size = sizeof(settings),
    .run = run_cancel,
};

static const char *const remove_description[] = {
    "Removes everything that the store holds for a job: its result, its models and the rows it uploaded. A job that "
    "still has workers is refused unless you give --force. If a removal is interrupted, run it again.",
    NULL,
};
static const learn_example remove_examples[] = {
    {"shoal job remove kmeans-4f", "one job"},
    {"shoal job remove --all-done --store az://acct/box/jobs", "all jobs that are done"},
    {"shoal job remove --all-unstarted", "all jobs that no worker has begun"},
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
