/* shoal job resume. */
#include "cli.h"

#include "run/jobs.h"
#include "run/resume.h"

typedef struct settings {
    cli_common common;
    run_jobs_settings jobs;
    run_place run;
    run_workers_options workers;
    bool force;
    cli_print_settings print;
} settings;

static const shoal_option worker_rows[] = {
    {"workers", 0, SHOAL_OPTION_LIST, offsetof(settings, workers.workers), "WHERE",
     .help = "start workers: N or local:N, ssh:HOST[:N],... or slurm:N; may be given several times; 'none' waits for "
             "workers that are started elsewhere",
     .default_text = "those the job was submitted with"},
    {"ssh", 0, SHOAL_OPTION_TEXT, offsetof(settings, workers.ssh), "COMMAND",
     .help = "the command that ssh: uses, such as 'ssh -F FILE'",
     .default_text = "as submitted, or $SHOAL_SSH, or ssh"},
    {"threads", 't', SHOAL_OPTION_COUNT, offsetof(settings, run.threads), "N",
     .help = "number of threads of each worker", .default_text = "its share of the cores", .least = 1,
     .most = SHOAL_THREADS_MOST},
    {"worker-memory", 0, SHOAL_OPTION_BYTES, offsetof(settings, workers.worker_memory), "BYTES",
     .help = "memory that each worker may use", .default_text = "its share of three quarters of its machine's memory",
     .least = RUN_WORKER_MEMORY_LEAST},
    {"kernel", 0, SHOAL_OPTION_TEXT, offsetof(settings, run.kernel), "NAME",
     .help = "instructions they compute with: auto, portable, avx2, avx512 or vnni", .fallback = "auto"},
    {"roles", 0, SHOAL_OPTION_TEXT, offsetof(settings, workers.roles), "ROLES",
     .help = "all: every worker maps and reduces; split: N map, the square root of N reduce, one reduces last",
     .default_text = "as submitted"},
    {"detach", 0, SHOAL_OPTION_FLAG, offsetof(settings, workers.detach), NULL,
     .help = "return at once; the workers keep running, and outputs are written when the job is done"},
    {"as-scaled", 0, SHOAL_OPTION_FLAG, offsetof(settings, workers.as_scaled), NULL,
     .help = "start as many workers as the last shoal job scale asked for, if any, instead of those of --workers"},
    {"patience", 0, SHOAL_OPTION_REAL, offsetof(settings, workers.patience), "SECONDS",
     .help = "give up after SECONDS without any worker or without the store",
     .default_text = "60 with --workers, a day with slurm:, an hour without any", .least = SHOAL_JOB_PATIENCE_LEAST,
     .most = SHOAL_JOB_PATIENCE_MOST},
    {0},
};
static const shoal_option *const worker_options = worker_rows;
static const base_option_group groups[] = {
    {"Workers", &worker_options, 0},
    {"Jobs that were submitted elsewhere", &run_foreign_options, offsetof(settings, workers)},
    {"Output", &run_force_options, offsetof(settings, force)},
    {"Printing", &cli_print_options, offsetof(settings, print)},
    {"Store", &run_jobs_options, offsetof(settings, jobs)},
    {"Help", &cli_common_options, offsetof(settings, common)},
    {0},
};

static int run_resume_verb(void *from_main, const char *const *word, int words)
{
    settings *settings = from_main;
    char id[SHOAL_JOB_ID_BYTES];
    shoal_outcome *outcome = NULL;
    run_jobs jobs = {0};
    cli_watch watch;
    (void)words;
    cli_watch_start(&watch, settings->print.quiet);
    const run_resume_options options = {.place = settings->run,
                                        .workers = settings->workers,
                                        .json = settings->print.json,
                                        .force = settings->force,
                                        .watch = cli_watcher(&watch)};
    int status = run_jobs_open(&jobs, &settings->jobs, RUN_JOBS_WRITE);
    if (status == SHOAL_OK)
        status = run_jobs_find(id, &jobs, word[0]);
    if (status == SHOAL_OK)
        status = run_resume(&outcome, &jobs, id, &options);
    cli_progress_clear(&watch.progress);
    status = cli_outcome_tell(outcome, &settings->print, status);
    shoal_outcome_free(&outcome);
    run_jobs_close(&jobs);
    return status;
}

static const char *const description[] = {
    "Resumes a job that stopped, was cancelled, failed for a cause that has been fixed, or lost the process that "
    "started it: starts workers, follows the job to its end, and writes the outputs it was submitted with. Rows "
    "whose upload was cut short are uploaded from the file they came from. A job that is done only has its outputs "
    "written.",
    "Workers, outputs and files are those the job was submitted with on this machine, as a note here says. What any "
    "other job asks for is shown and refused, since whoever may write to the store could have asked for it: its "
    "workers unless you give --workers, files to write unless you give --write-outputs, files to read unless you give "
    "--data-root, code unless you give --allow-code. shoal job result writes the result where you want it.",
    "The result has the same bits as without the interruption.",
    "A signal ends the workers that were started here; the job can be resumed again, and the exit code is 3.",
    NULL,
};
static const learn_example examples[] = {
    {"shoal job resume", "the only job there is, with as many workers as before"},
    {"shoal job resume kmeans-4f --store ./st --workers local:2 --detach", "with two workers, in the background"},
    {NULL, NULL},
};
const cli_verb cli_job_resume = {
    .name = "job resume",
    .summary = "resume a job",
    .word = {"ID"},
    .synopsis = "[--workers WHERE] [options]",
    .description = description,
    .examples = examples,
    .options = groups,
    .settings_size = sizeof(settings),
    .run = run_resume_verb,
};
