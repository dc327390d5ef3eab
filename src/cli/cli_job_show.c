/* shoal job show, watch and logs: how one job stands, now, until it ends, and in the words of its workers. */
#include "cli.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/world.h"
#include "job_print.h"
#include "run/jobs.h"
#include "run/kept_request.h"

typedef struct settings {
    cli_common common;
    run_jobs_settings jobs;
    bool json, workers;
    double every;
} settings;

/* With more workers than this only their numbers are shown, which takes a few requests rather than one for each. */
enum { WORKERS_SHOWN = 32 };
static const char workers_help[] = "show every worker, however many there are (default: up to 32)";

static const shoal_option show_rows[] = {
    {"workers", 0, SHOAL_OPTION_FLAG, offsetof(settings, workers), NULL, .help = workers_help},
    {"json", 0, SHOAL_OPTION_FLAG, offsetof(settings, json), NULL, .help = "print one JSON object, with every worker"},
    {0},
};
static const shoal_option watch_rows[] = {
    {"every", 0, SHOAL_OPTION_REAL, offsetof(settings, every), "SECONDS", .help = "how often to look", .fallback = "1",
     .least = 0.1},
    {"workers", 0, SHOAL_OPTION_FLAG, offsetof(settings, workers), NULL, .help = workers_help},
    {"json", 0, SHOAL_OPTION_FLAG, offsetof(settings, json), NULL,
     .help = "print one JSON object per line, one each time"},
    {0},
};
static const shoal_option *const show_options = show_rows, *const watch_options = watch_rows;
static const base_option_group show_groups[] = {
    {"Printing", &show_options, 0},
    {"Store", &run_jobs_options, offsetof(settings, jobs)},
    {"Help", &cli_common_options, offsetof(settings, common)},
    {0},
};
static const base_option_group watch_groups[] = {
    {"Printing", &watch_options, 0},
    {"Store", &run_jobs_options, offsetof(settings, jobs)},
    {"Help", &cli_common_options, offsetof(settings, common)},
    {0},
};
static const base_option_group logs_groups[] = {
    {"Store", &run_jobs_options, offsetof(settings, jobs)},
    {"Help", &cli_common_options, offsetof(settings, common)},
    {0},
};

/* ---- show -------------------------------------------------------------------------------------------------------- */

static int describe_job(shoal_job **out, const settings *settings, const run_jobs *jobs, const char *id)
{
    bool all = settings->json || settings->workers;
    return shoal_job_describe(out, jobs->store, id, all ? SHOAL_JOB_ALL_RECORDS : WORKERS_SHOWN,
                              run_jobs_deadline(jobs));
}

/* A job that waits is shown with the command that starts a worker for it. */
static int show_job(const settings *settings, const run_jobs *jobs, const shoal_job *job)
{
    char *command = NULL;
    int status = SHOAL_OK;
    if (job->state == SHOAL_JOB_RUNNING && job->live == 0)
        (void)run_worker_command(&command, jobs, job); /* a spec that is gone by now needs none */
    cli_job_held held = {0};
    held.aimed = control_aim_get(&held.aim, jobs->store, job->id, run_jobs_deadline(jobs)) == SHOAL_OK;
    held.known = held.aimed && control_held_get(&held.held, jobs->store, job->id, run_jobs_deadline(jobs)) == SHOAL_OK;
    if (settings->json)
        status = cli_print_json(cli_job_show_json(job, &held));
    else
        cli_job_show_text(stdout, job, &held, command);
    base_free(&command);
    return status;
}

static int run_show(void *from_main, const char *const *word, int words)
{
    const settings *settings = from_main;
    char id[SHOAL_JOB_ID_BYTES];
    shoal_job *job = NULL;
    run_jobs jobs = {0};
    (void)words;
    int status = run_jobs_open_one(&jobs, id, &settings->jobs, RUN_JOBS_READ, word[0]);
    if (status == SHOAL_OK)
        status = describe_job(&job, settings, &jobs, id);
    if (status == SHOAL_OK)
        status = show_job(settings, &jobs, job);
    shoal_job_free(&job);
    run_jobs_close(&jobs);
    return status;
}

/* ---- watch ------------------------------------------------------------------------------------------------------- */

/* On a terminal each picture takes the place of the one before. */
static int run_watch(void *from_main, const char *const *word, int words)
{
    const settings *settings = from_main;
    char id[SHOAL_JOB_ID_BYTES];
    bool ended = false, terminal = isatty(STDOUT_FILENO) && !settings->json;
    run_jobs jobs = {0};
    (void)words;
    int status = run_jobs_open_one(&jobs, id, &settings->jobs, RUN_JOBS_READ, word[0]);
    while (status == SHOAL_OK && !ended) {
        shoal_job *job = NULL;
        status = describe_job(&job, settings, &jobs, id);
        if (status == SHOAL_OK) {
            fputs(terminal ? "\033[H\033[J" : "", stdout);
            status = show_job(settings, &jobs, job);
            fputs(terminal || settings->json ? "" : "\n", stdout);
            fflush(stdout);
            ended = job->state != SHOAL_JOB_RUNNING;
        }
        shoal_job_free(&job);
        if (status == SHOAL_OK && !ended)
            base_sleep_until(base_time_after(base_now(), settings->every));
    }
    run_jobs_close(&jobs);
    return status;
}

/* ---- logs -------------------------------------------------------------------------------------------------------- */

static void print_log(const char *title, const char *text)
{
    if (!*text)
        return;
    cli_put_text(stdout, title);
    putchar('\n');
    for (const char *line = text; *line;) {
        size_t length = strcspn(line, "\n");
        fputs("  ", stdout);
        cli_put_text_n(stdout, line, length);
        putchar('\n');
        line += length + (line[length] == '\n');
    }
}

/* What the process said that looks after the workers of a detached job, if that was on this machine. */
static void print_supervisor(const char *id)
{
    char text[4096];
    char *path = NULL;
    FILE *file = run_jobs_file_path(&path, id, "log") == SHOAL_OK ? fopen(path, "re") : NULL;
    if (file) {
        if (fseek(file, -(long)sizeof text + 1, SEEK_END) < 0)
            rewind(file);
        text[fread(text, 1, sizeof text - 1, file)] = '\0';
        fclose(file);
        print_log("shoal job resume, which started workers here", text);
    }
    base_free(&path);
}

static int run_logs(void *from_main, const char *const *word, int words)
{
    const settings *settings = from_main;
    char id[SHOAL_JOB_ID_BYTES], title[600];
    shoal_job *job = NULL;
    run_jobs jobs = {0};
    (void)words;
    int status = run_jobs_open_one(&jobs, id, &settings->jobs, RUN_JOBS_READ, word[0]);
    if (status == SHOAL_OK)
        status = shoal_job_describe(&job, jobs.store, id, SHOAL_JOB_ALL_RECORDS, run_jobs_deadline(&jobs));
    for (int64_t i = 0; status == SHOAL_OK && i < job->workers; i++) {
        const shoal_job_worker *worker = &job->worker[i];
        snprintf(title, sizeof title, "worker %016" PRIx64 ", %s, process %" PRId64 ": %s", worker->id, worker->host,
                 worker->pid, worker->state);
        print_log(title, *worker->log ? worker->log : "no log");
    }
    if (status == SHOAL_OK && job->workers == 0)
        printf("no worker has joined job %s yet\n", id);
    if (status == SHOAL_OK)
        print_supervisor(id);
    shoal_job_free(&job);
    run_jobs_close(&jobs);
    return status;
}

/* ---- the verbs --------------------------------------------------------------------------------------------------- */

static const char *const show_description[] = {
    "Shows the state of a job: its rounds and how long each phase took, its slices and who holds them, its workers, "
    "and the requests they sent to the store, with their price. ID is the job's name, or the start or end of it; it "
    "can be left out when the store has one job.",
    "Workers report every third of a lease, so numbers may be that old. A worker maps slices (computes with their "
    "rows), reduces groups of them (adds their results), and merges the last sums into the next model, as its roles "
    "allow. A worker that has reported nothing for a lease is silent: the others take over its slices.",
    NULL,
};
static const learn_example show_examples[] = {
    {"shoal job show", "the only job there is"},
    {"shoal job show 4f21 --store s3://bucket/jobs --json", "one of several, for a script"},
    {NULL, NULL},
};
const cli_verb cli_job_show = {
    .name = "job show",
    .summary = "show the state of a job",
    .word = {"ID"},
    .synopsis = "[options]",
    .description = show_description,
    .examples = show_examples,
    .options = show_groups,
    .settings_size = sizeof(settings),
    .run = run_show,
};

static const char *const watch_description[] = {
    "Shows what shoal job show does, again and again until the job has ended. On a terminal the screen is rewritten.",
    NULL};
static const learn_example watch_examples[] = {
    {"shoal job watch kmeans-4f --every 5", "look every five seconds"},
    {NULL, NULL},
};
const cli_verb cli_job_watch = {
    .name = "job watch",
    .summary = "show a job until it has ended",
    .word = {"ID"},
    .synopsis = "[options]",
    .description = watch_description,
    .examples = watch_examples,
    .options = watch_groups,
    .settings_size = sizeof(settings),
    .run = run_watch,
};

static const char *const logs_description[] = {
    "Prints the last log lines of each worker of a job, including those that have left or died, and of the process "
    "that supervises a detached job's workers on this machine.",
    NULL,
};
static const learn_example logs_examples[] = {
    {"shoal job logs kmeans-4f", "why did it take so long?"},
    {NULL, NULL},
};
const cli_verb cli_job_logs = {
    .name = "job logs",
    .summary = "print the logs of a job's workers",
    .word = {"ID"},
    .synopsis = "[options]",
    .description = logs_description,
    .examples = logs_examples,
    .options = logs_groups,
    .settings_size = sizeof(settings),
    .run = run_logs,
};
