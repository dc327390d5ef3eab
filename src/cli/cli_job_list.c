/* shoal job list: the jobs of a store. */
#include "cli.h"

#include <inttypes.h>
#include <time.h>

#include "job_print.h"
#include "run/jobs.h"

typedef struct settings {
    cli_common common;
    run_jobs_settings jobs;
    bool json;
} settings;

static const shoal_option print_rows[] = {
    {"json", 0, SHOAL_OPTION_FLAG, offsetof(settings, json), NULL,
     .help = "print one JSON object per line, one for each job"},
    {0},
};
static const shoal_option *const print_options = print_rows;
static const base_option_group groups[] = {
    {"Printing", &print_options, 0},
    {"Store", &run_jobs_options, offsetof(settings, jobs)},
    {"Help", &cli_common_options, offsetof(settings, common)},
    {0},
};

static void show_titles(void)
{
    printf("%-28s %-11s %-10s %6s  %-14s %7s  %s\n", "job", "learner", "state", "round", "phase", "workers", "age");
}

static int show_line(const settings *settings, const shoal_job *job, bool first)
{
    char place[64], age[24], learner[sizeof job->algorithm];
    if (settings->json)
        return cli_print_json(cli_job_show_json(job, NULL));
    cli_format_learner(learner, sizeof learner, job);
    cli_format_place(place, sizeof place, job);
    cli_format_age(age, sizeof age, (double)time(NULL) - job->created);
    if (first)
        show_titles();
    printf("%-28s %-11s %-10s %6" PRId64 "  %-14s %7" PRId64 "  %s\n", job->id, learner, run_jobs_state_name(job),
           job->round, place, job->live, age);
    return SHOAL_OK;
}

/* A job that is of a newer version is told of, and does not keep the others from being seen. */
static void show_unreadable(const settings *settings, const char *id, bool first)
{
    if (settings->json) {
        json_t *object = json_object();
        base_json_put(&object, "id", json_string(id));
        base_json_put(&object, "state", json_string("unreadable"));
        base_json_put(&object, "message", base_json_text(shoal_error()));
        cli_print_json(object);
        return;
    }
    if (first)
        show_titles();
    printf("%-28s ", id);
    cli_put_text(stdout, shoal_error());
    putchar('\n');
}

static int show_all(const settings *settings, const run_jobs *jobs)
{
    shoal_job_id *ids = NULL;
    int64_t count = 0, shown = 0;
    int status = shoal_job_list(&ids, &count, jobs->store, run_jobs_deadline(jobs));
    if (status == SHOAL_OK)
        run_jobs_sweep(jobs, ids, count);
    for (int64_t i = 0; i < count && status == SHOAL_OK; i++) {
        shoal_job *job = NULL;
        status = shoal_job_describe(&job, jobs->store, ids[i].text, 0, run_jobs_deadline(jobs));
        if (status == SHOAL_OK) {
            status = show_line(settings, job, shown++ == 0);
        } else if (status == SHOAL_INVALID || status == SHOAL_BROKEN) {
            show_unreadable(settings, ids[i].text, shown++ == 0);
            status = SHOAL_OK;
        } else if (status == SHOAL_ABSENT) { /* removed since it was listed */
            status = SHOAL_OK;
        }
        shoal_job_free(&job);
    }
    if (status == SHOAL_OK && shown == 0 && !settings->json)
        printf("there are no jobs in %s\n", jobs->url);
    shoal_job_list_free(&ids);
    return status;
}

static int run_list(void *from_main, const char *const *word, int words)
{
    const settings *settings = from_main;
    run_jobs jobs = {0};
    (void)word;
    (void)words;
    int status = run_jobs_open(&jobs, &settings->jobs, RUN_JOBS_READ);
    if (status == SHOAL_ABSENT && !settings->jobs.store) {
        if (!settings->json)
            puts(shoal_error());
        return SHOAL_OK;
    }
    if (status == SHOAL_OK)
        status = show_all(settings, &jobs);
    run_jobs_close(&jobs);
    return status;
}

static const char *const description[] = {
    "Lists the jobs of a store, one per line: name, learner, state, round, phase, active workers and age. A job is "
    "running, waiting (for workers), done, failed or cancelled.",
    NULL,
};
static const learn_example examples[] = {
    {"shoal job list", "the jobs of this user's own folder, or of SHOAL_STORE"},
    {"shoal job list --store az://acct/box/jobs --json", "for a script"},
    {NULL, NULL},
};
const cli_verb cli_job_list = {
    .name = "job list",
    .summary = "list the jobs of a store",
    .synopsis = "[--store URL] [options]",
    .description = description,
    .examples = examples,
    .options = groups,
    .settings_size = sizeof(settings),
    .run = run_list,
};
