/* shoal worker: works on the jobs of a store until they have ended, or until this machine is needed for something
 * else. */
#include "cli.h"

#include <time.h>

#include "run/jobs.h"
#include "run/task_program.h"
#include "run/worker.h"
#include "sweep/crew.h"

typedef struct settings {
    cli_common common;
    run_jobs_settings jobs;
    run_worker_options work;
} settings;

static const base_option_group groups[] = {
    {"Work", &run_worker_work_options, offsetof(settings, work)},
    {"Data", &run_worker_data_options, offsetof(settings, work)},
    {"For programs that start workers", &run_worker_launch_options, offsetof(settings, work)},
    {"Store", &run_jobs_options, offsetof(settings, jobs)},
    {"Help", &cli_common_options, offsetof(settings, common)},
    {0},
};

static void log_line(void *context, const char *line)
{
    char moment[16];
    time_t now = time(NULL);
    struct tm parts;
    (void)context;
    localtime_r(&now, &parts);
    strftime(moment, sizeof moment, "%H:%M:%S", &parts);
    flockfile(stderr); /* several threads have something to say */
    fprintf(stderr, "%s  ", moment);
    cli_put_text(stderr, line);
    fputc('\n', stderr);
    funlockfile(stderr);
}

/* The exit code tells how the work ended. */
static int run_worker_verb(void *from_main, const char *const *word, int words)
{
    const settings *settings = from_main;
    run_worker_end end;
    run_worker_options work = settings->work;
    const shoal_task_entry functions[] = {run_task_functions[0], {"sweep", sweep_serve}, {NULL, NULL}};
    (void)word;
    (void)words;
    work.functions = functions;
    int status = run_worker(&end, &work, settings->jobs, settings->work.quiet ? NULL : log_line);
    if (end != RUN_WORKER_REMOVED && end != RUN_WORKER_MAY_GO_ON)
        return status;
    fprintf(stderr, "shoal: %s\n", shoal_error());
    return end == RUN_WORKER_REMOVED ? CLI_DONE : CLI_RESUMABLE;
}

static const char *const description[] = {
    "Works on the jobs of a store: with --job on that one until it has ended, otherwise on whatever jobs there are. "
    "Any number of workers may join a job, from any machine and at any time; each gets its share at the next round.",
    "SIGTERM, SIGINT, SIGHUP or --notice make it leave: it gives back its slices and is gone within a second. The "
    "others continue, and only what it was computing at that moment is lost. If it is killed, the others notice after "
    "the job's lease.",
    "A worker runs only the learners it has built in and, where --allow-code or --spec vouches for it, the code that a "
    "job brings, and opens files of this machine and stores other than its own only below --data-root. It refuses a "
    "job whose spec was written by another version, or by a machine whose arithmetic gives other bits, or that needs "
    "more than --memory; the job is not harmed, and other jobs are served.",
    "The exit code is 0 if its job is done or it left, 1 if the job failed or it can't do the work, and 3 if the store "
    "became unreachable and the job can be resumed.",
    NULL,
};

static const learn_example examples[] = {
    {"shoal worker --store az://acct/box/jobs", "serve whatever jobs are submitted there"},
    {"shoal worker --store ./st --job kmeans-4f --slots 2", "join one job with two threads"},
    {"shoal worker --store s3://bucket/jobs --notice /run/eviction --idle 600", "on a machine that may be taken away"},
    {NULL, NULL},
};

const cli_verb cli_worker = {
    .name = "worker",
    .summary = "work on the jobs of a store",
    .synopsis = "[--store URL] [options]",
    .description = description,
    .examples = examples,
    .options = groups,
    .settings_size = sizeof(settings),
    .run = run_worker_verb,
};
