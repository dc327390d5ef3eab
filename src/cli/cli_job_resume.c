/* shoal job resume: goes on with a job, whoever started it, and ends it as its verb would have. */
#include "cli.h"

#include <string.h>

#include "base/memory.h"
#include "base/pool.h"
#include "job_print.h"
#include "job_store.h"
#include "job_wish.h"
#include "learn_verb.h"
#include "predicted.h"
#include "run_job.h"

typedef struct settings {
    cli_common common;
    cli_jobs_settings jobs;
    cli_run_settings run;
    cli_workers_settings workers;
    cli_print_settings print;
} settings;

static const shoal_option worker_rows[] = {
    {"workers", 0, SHOAL_OPTION_LIST, offsetof(settings, workers.workers), "WHERE",
     .help = "start workers: local:N, ssh:HOST[:N],... or slurm:N; may be given several times; when left out, those "
             "that you submitted the job with; 'none' waits for workers that are started elsewhere"},
    {"ssh", 0, SHOAL_OPTION_TEXT, offsetof(settings, workers.ssh), "COMMAND",
     .help =
         "what ssh: calls instead of ssh, such as 'ssh -F FILE'; as you submitted the job, or $SHOAL_SSH, when left "
         "out"},
    {"allow-code", 0, SHOAL_OPTION_TEXT, offsetof(settings, workers.allow_code), "SHA256,...",
     .help = "run a job that brings code, though someone else submitted it, if all it brings has one of these hashes"},
    {"data-root", 0, SHOAL_OPTION_TEXT, offsetof(settings, workers.data_root), "FOLDER|URL,...",
     .help = "read rows of a job that someone else submitted only from files below these folders, and from stores "
             "below these URLs; none when left out"},
    {"threads", 't', SHOAL_OPTION_COUNT, offsetof(settings, run.threads), "N",
     .help = "threads of each of them; its part of the cores when left out", .least = 1, .most = SHOAL_THREADS_MOST},
    {"worker-memory", 0, SHOAL_OPTION_BYTES, offsetof(settings, workers.worker_memory), "BYTES",
     .help = "bytes that each of them may use; its part of three quarters of its machine's memory when left out",
     .least = CLI_WORKER_MEMORY_LEAST},
    {"kernel", 0, SHOAL_OPTION_TEXT, offsetof(settings, run.kernel), "NAME",
     .help = "instructions they compute with: auto, portable, avx2, avx512 or vnni", .fallback = "auto"},
    {"roles", 0, SHOAL_OPTION_TEXT, offsetof(settings, workers.roles), "ROLES",
     .help = "all: every worker maps and reduces; split: N map, the square root of N reduce, one reduces last; as "
             "you submitted the job when left out"},
    {"detach", 0, SHOAL_OPTION_FLAG, offsetof(settings, workers.detach), NULL,
     .help = "return at once; the workers go on, and outputs are written when the job is done"},
    {"as-scaled", 0, SHOAL_OPTION_FLAG, offsetof(settings, workers.as_scaled), NULL,
     .help = "start as many as shoal job scale last asked for, if it did, rather than those of --workers"},
    {"patience", 0, SHOAL_OPTION_REAL, offsetof(settings, workers.patience), "SECONDS",
     .help = "give up after so long without any worker or without the store; 60 with --workers, a day with those of "
             "slurm:, and an hour without any when left out",
     .least = SHOAL_JOB_PATIENCE_LEAST, .most = SHOAL_JOB_PATIENCE_MOST},
    {0},
};
static const shoal_option output_rows[] = {
    {"write-outputs", 0, SHOAL_OPTION_FLAG, offsetof(settings, workers.write_outputs), NULL,
     .help = "write the files that the job names, although someone else submitted it, or this user on another machine"},
    {0},
};
static const shoal_option *const worker_options = worker_rows, *const output_options = output_rows;
static const base_option_group groups[] = {
    {"Workers", &worker_options, 0},
    {"Output", &output_options, 0},
    {"Printing", &cli_print_options, offsetof(settings, print)},
    {"Store", &cli_jobs_options, offsetof(settings, jobs)},
    {"Help", &cli_common_options, offsetof(settings, common)},
    {0},
};

static const cli_learner *find_learner(const char *name)
{
    for (const cli_learner *learner = cli_learners; learner->algorithm; learner++)
        if (strcmp(learner->algorithm->name, name) == 0)
            return learner;
    return NULL;
}

/* ---- rows that were not uploaded --------------------------------------------------------------------------------- */

static int64_t count_below(const cli_jobs *jobs, const char *id, const char *name)
{
    char prefix[SHOAL_JOB_ID_BYTES + 32];
    shoal_listing page = {0};
    int64_t count = 0;
    snprintf(prefix, sizeof prefix, "jobs/%s/%s/", id, name);
    do {
        if (shoal_store_list(jobs->store, prefix, NULL, &page, cli_jobs_deadline(jobs)) < 0) {
            count = -1;
            break;
        }
        count += (int64_t)page.count;
    } while (page.more);
    shoal_listing_release(&page);
    return count;
}

/* Whoever submitted the job may have died while it uploaded its rows. */
static int upload_missing(cli_job *job, const cli_jobs *jobs, const shoal_job *about, const json_t *asked)
{
    bool whole = strcmp(about->source, "uploaded") != 0 || count_below(jobs, about->id, "data") >= about->slices;
    if (whole && (!about->shape.weighted || count_below(jobs, about->id, "weights") >= about->slices))
        return SHOAL_OK;
    int status = cli_wish_load(job, asked);
    if (status == SHOAL_OK)
        status = shoal_job_upload(jobs->store, about->id, job->data, job->weights, cli_signals_stop(), SHOAL_NEVER);
    if (status < 0)
        status = shoal_fail(status, "job %s lacks rows that were to be uploaded: %s", about->id, shoal_error());
    return status;
}

/* ---- going on ---------------------------------------------------------------------------------------------------- */

/* As many workers as the job was started with, unless the command line says otherwise. */
static int choose_workers(cli_workers_settings *workers, const cli_jobs *jobs, const shoal_job *about,
                          const json_t *asked)
{
    const json_t *before = json_object_get(asked, "workers"), *spec;
    size_t i;
    bool any = false;
    if (!workers->roles)
        workers->roles = json_string_value(json_object_get(asked, "roles"));
    if (!workers->ssh)
        workers->ssh = json_string_value(json_object_get(asked, "ssh"));
    if (workers->workers.count == 0) {
        workers->as_scaled = true;
        json_array_foreach(before, i, spec) if (json_is_string(spec) && workers->workers.count < SHOAL_TEXTS_MOST)
            workers->workers.text[workers->workers.count++] = json_string_value(spec);
    } else if (workers->workers.count == 1 && strcmp(workers->workers.text[0], "none") == 0) {
        workers->workers.count = 0;
    }
    int status = cli_workers_check(
        &any, &(cli_workers_settings){.store = jobs->url, .workers = workers->workers, .roles = workers->roles});
    if (about->state == SHOAL_JOB_DONE)
        workers->workers.count = 0; /* its outputs may still have to be written */
    return status;
}

static int prepare(cli_job *job, const cli_jobs *jobs, const shoal_job *about, const json_t *asked)
{
    int status = cli_job_note_data(job, about->data, about->shape.rows, about->shape.columns, about->shape.type);
    if (status == SHOAL_OK && about->state != SHOAL_JOB_DONE)
        status = shoal_job_resume(jobs->store, about->id, cli_jobs_deadline(jobs));
    if (status == SHOAL_OK && about->state != SHOAL_JOB_DONE)
        status = upload_missing(job, jobs, about, asked);
    return status;
}

static int finish(cli_job *job, const cli_learner *learner, const json_t *asked, const cli_print_settings *print)
{
    if (learner->finish && json_object_get(asked, "outputs"))
        return learner->finish(job, asked, print);
    if (!print->quiet)
        printf("job %s is done: shoal job result %s --store %s\n", job->away.id, job->away.id, job->away.store);
    return SHOAL_OK;
}

static int go_on(settings *settings, cli_jobs *jobs, const shoal_job *about, const cli_wish *wish)
{
    const json_t *asked = wish->asked;
    const cli_learner *learner = find_learner(about->algorithm);
    const cli_trace_settings trace = cli_asked_trace(asked);
    cli_job job;
    if (!learner)
        return shoal_fail(SHOAL_INVALID, "job %s needs the learner '%s', which this program does not have", about->id,
                          about->algorithm);
    cli_job_init(&job, learner->algorithm, settings->print.quiet);
    snprintf(job.away.id, sizeof job.away.id, "%s", about->id);
    snprintf(job.away.spec, sizeof job.away.spec, "%s", about->spec);
    settings->workers.foreign = !wish->own;
    int status = choose_workers(&settings->workers, jobs, about, asked);
    if (status == SHOAL_OK)
        status = prepare(&job, jobs, about, asked);
    if (status == SHOAL_OK)
        status = cli_workers_resume(&job, jobs, &settings->run, &settings->workers, &settings->print, &trace);
    if (status == SHOAL_OK && !job.away.detached && about->state != SHOAL_JOB_DONE && wish->own)
        cli_predicted_note_asked(&job, json_object_get(asked, "options"));
    if (status == SHOAL_OK && !job.away.detached)
        status = finish(&job, learner, asked, &settings->print);
    cli_job_release(&job);
    return status;
}

static int run_resume(void *from_main, const char *const *word, int words)
{
    settings *settings = from_main;
    char id[SHOAL_JOB_ID_BYTES];
    shoal_job *about = NULL;
    cli_wish wish = {0};
    cli_jobs jobs = {0};
    (void)words;
    int status = cli_jobs_open(&jobs, &settings->jobs, CLI_JOBS_WRITE);
    if (status == SHOAL_OK)
        status = cli_jobs_find(id, &jobs, word[0]);
    if (status == SHOAL_OK)
        status = shoal_job_describe(&about, jobs.store, id, false, cli_jobs_deadline(&jobs));
    if (status == SHOAL_OK)
        status = cli_wish_find(&wish, about);
    if (status == SHOAL_OK)
        status = cli_wish_restrict(&wish, &jobs, about, &settings->workers, settings->print.quiet);
    if (status == SHOAL_OK)
        status = go_on(settings, &jobs, about, &wish);
    cli_wish_release(&wish);
    shoal_job_free(&about);
    cli_jobs_close(&jobs);
    return status;
}

static const char *const description[] = {
    "Goes on with a job that stopped, was cancelled, failed for a cause that is mended, or lost whoever started it: "
    "starts workers, follows the job to its end, and writes the outputs it was submitted with. Rows whose upload was "
    "cut short are uploaded from the file they came from. A job that is done only has its outputs written.",
    "Workers, outputs and files are those that you submitted the job with on this machine, which a note here tells. "
    "What any other job asks for is shown and refused, since whoever may write to the store could have asked for it: "
    "its workers unless you give --workers, files to write unless you give --write-outputs, files to read unless you "
    "give --data-root, code unless you give --allow-code. shoal job result writes the result to where you say.",
    "The result has the bits it would have had without the break.",
    "A signal ends the workers that were started here; the job can go on again, and the exit code is 3.",
    NULL,
};
static const cli_example examples[] = {
    {"shoal job resume", "the only job there is, with as many workers as before"},
    {"shoal job resume kmeans-4f --store ./st --workers local:2 --detach", "with two workers, in the background"},
    {NULL, NULL},
};
const cli_verb cli_job_resume = {
    .name = "job resume",
    .summary = "go on with a job",
    .word = {"ID"},
    .synopsis = "[--workers WHERE] [options]",
    .description = description,
    .examples = examples,
    .options = groups,
    .settings_size = sizeof(settings),
    .run = run_resume,
};
