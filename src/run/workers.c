/* Runs on workers.  See run.h.
 *
 * Whoever starts a job is needed for nothing but its own outputs: workers go on without it.  What the outputs were to
 * be is kept on this machine (kept_request.h), for when the job is resumed. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/parting.h"
#include "base/pool.h"
#include "blobs.h"
#include "function.h"
#include "engine/store/job_setup.h"
#include "engine/store/job_spec.h"
#include "hold.h"
#include "hosts.h"
#include "launch/launch.h"
#include "predicted.h"
#include "process.h"
#include "run.h"
#include "supervisor.h"
#include "kept_request.h"

_Static_assert((int)LAUNCH_WORKERS_MOST == (int)SHOAL_JOB_WORKERS_MOST, "as many can be started as can be wanted");

/* ---- workers that this process started --------------------------------------------------------------------------- */

/* One following of a job, with the workers that this process started for it. */
typedef struct following {
    shoal_outcome *outcome;
    const shoal_request *request;
    const run_workers_options *options; /* the request's */
    run_jobs *jobs;                     /* the outcome's */
    const char *id;
    launch_group *workers;
    run_hold *hold;    /* to a deadline or a budget; never NULL while it has workers */
    shoal_store *data; /* where the rows are, for workers that can't reach that store themselves; NULL: none needs it */
    char *data_key;    /* and what they are called there */
    int64_t count, helpers; /* workers that --workers asks for; reducers beside them */
    double want_looked;
    bool said_waiting;
    bool failed_workers; /* its workers can't work */
    bool leads;          /* the request's leader has begun */
} following;

static following following_of(shoal_outcome *outcome)
{
    return (following){.outcome = outcome,
                       .request = outcome->request,
                       .options = &outcome->request->workers,
                       .jobs = &outcome->jobs,
                       .id = outcome->away.id};
}

/* A worker's sentence without the job's name, which whoever reads it has before them. */
static void shorten(char *why, const char *id)
{
    char name[SHOAL_JOB_ID_BYTES + 8];
    snprintf(name, sizeof name, "job %s: ", id);
    char *at = strstr(why, name);
    if (at)
        memmove(at, at + strlen(name), strlen(at + strlen(name)) + 1);
}

/* So that the others need not wait for its lease to end. */
static void tell_death(void *context, uint64_t worker, const char *why)
{
    following *self = context;
    char text[640];
    snprintf(text, sizeof text, "%s", why);
    shorten(text, self->id);
    shoal_job_worker_died(self->jobs->store, self->id, worker, text, shoal_after(2));
}

/* A line between those of the progress. */
static void pass_on_line(void *context, const char *line)
{
    const following *self = context;
    run_warn(self->outcome, line);
}

static bool splits_roles(const run_workers_options *options)
{
    return options->roles && strcmp(options->roles, "split") == 0;
}

static int start_workers(following *self)
{
    run_away *away = &self->outcome->away;
    const launch_ask *ask = away->ask;
    int status = SHOAL_OK;
    if (ask->count == 0)
        return SHOAL_OK;
    if (ask->far && away->file)
        status = shoal_fail(SHOAL_USAGE,
                            "job %s reads a file of this machine, which workers elsewhere do not see: "
                            "start it anew with --workers of both kinds",
                            self->id);
    if (status == SHOAL_OK && ask->through && away->url) /* those behind a pipe reach stores through this process */
        status = shoal_store_open_at(&self->data, &self->data_key, away->url, &(shoal_store_options){.read_only = true},
                                     run_jobs_deadline(self->jobs));
    if (status < 0)
        return status;
    self->count = ask->workers;
    if (splits_roles(self->options))
        self->helpers = (int64_t)ceil(sqrt((double)self->count)) + 1;
    status = run_hold_new(&self->hold, self->outcome);
    if (status < 0)
        return status;
    const launch_order order = {.store_url = self->jobs->url,
                                .store = self->jobs->store,
                                .data = self->data,
                                .data_key = self->data_key,
                                .id = self->id,
                                .spec = away->spec,
                                .kernel = self->request->place.kernel,
                                .device = self->request->place.device,
                                .threads = self->request->place.threads,
                                .memory = self->options->worker_memory,
                                .begin = run_hold_begin(self->hold),
                                .helpers = self->helpers,
                                .ssh = self->options->ssh,
                                .program = self->request->program,
                                .bound = self->request->bound,
                                .led = self->request->leader != NULL,
                                .gone = tell_death,
                                .say = pass_on_line,
                                .context = self};
    return launch_new(&self->workers, ask, &order);
}

static int begin_leading(following *self)
{
    const run_leader *leader = self->request->leader;
    if (!leader)
        return SHOAL_OK;
    int status = leader->begin(leader->context, self->jobs->url, self->id, self->outcome->away.spec);
    self->leads = status == SHOAL_OK;
    return status;
}

static void end_leading(following *self)
{
    const run_leader *leader = self->request->leader;
    if (self->leads)
        leader->end(leader->context);
    self->leads = false;
}

/* Whoever says how many workers there are to be takes back what was said before. */
static int forget_scale(following *self)
{
    int64_t wanted = -1;
    if (self->outcome->away.ask->count == 0 || self->options->as_scaled)
        return SHOAL_OK;
    int status = shoal_job_wanted(&wanted, self->jobs->store, self->id, run_jobs_deadline(self->jobs));
    if (status == SHOAL_OK && wanted >= 0 && wanted != self->count)
        status = shoal_job_want(self->jobs->store, self->id, self->count, run_jobs_deadline(self->jobs));
    return status;
}

/* As many workers as `shoal job scale` asked for. */
static int scale_workers(following *self)
{
    double now = base_seconds(), every = shoal_store_describe(self->jobs->store).wakes ? 0.5 : 2;
    int64_t wanted = -1, held = -1;
    if (!self->workers)
        return SHOAL_OK;
    int status = run_hold_tick(&held, self->hold, launch_running(self->workers));
    if (status < 0)
        return status;
    if (held >= 0) /* a deadline decides, not `shoal job scale` */
        return held == launch_wanted(self->workers) ? SHOAL_OK : launch_scale(self->workers, held);
    if (now - self->want_looked < every)
        return SHOAL_OK;
    self->want_looked = now;
    if (shoal_job_wanted(&wanted, self->jobs->store, self->id, shoal_after(5)) < 0 || wanted < 0)
        return SHOAL_OK; /* a store that is away is the follower's to notice */
    if (self->options->foreign && wanted > self->count)
        wanted = self->count; /* whoever wrote that must not say how much is started here */
    wanted = wanted > 0 ? wanted + self->helpers : 0;
    wanted = wanted < LAUNCH_WORKERS_MOST ? wanted : LAUNCH_WORKERS_MOST;
    return wanted == launch_wanted(self->workers) ? SHOAL_OK : launch_scale(self->workers, wanted);
}

/* Workers that are started by hand read only what they are told to, and run only the code they are. */
static void say_waiting(following *self)
{
    const shoal_watcher *watch = &self->request->watch;
    char *command = NULL, *line = NULL;
    shoal_job *about = NULL;
    self->said_waiting = true;
    if (self->outcome->away.ask->count > 0 || !watch->note)
        return;
    if (shoal_job_describe(&about, self->jobs->store, self->id, 0, run_jobs_deadline(self->jobs)) == SHOAL_OK &&
        run_worker_command(&command, self->jobs, about) == SHOAL_OK &&
        base_format(&line, "waiting for workers: %s", command) == SHOAL_OK)
        watch->note(watch->context, line);
    shoal_job_free(&about);
    base_free(&line);
    base_free(&command);
}

static int look_after(void *context)
{
    following *self = context;
    if (!self->said_waiting)
        say_waiting(self);
    run_blobs_follow(self->outcome);
    int status = scale_workers(self);
    if (status == SHOAL_OK && self->workers && (status = launch_tick(self->workers)) < 0)
        self->failed_workers = true;
    return status;
}

static void on_followed_round(void *context, const shoal_round *done, const shoal_round *next, int64_t all_rows,
                              double seconds)
{
    following *self = context;
    if (self->workers) {
        launch_progress(self->workers);
        run_hold_round(self->hold, done, next, seconds);
    }
    run_on_round(self->outcome, done, next, all_rows, seconds);
}

/* The store's server died and has forgotten the job's first seconds: what was uploaded then may be gone as well. */
static int put_again(void *context)
{
    following *self = context;
    const run_code *code = self->outcome->function ? &self->outcome->function->code : NULL;
    const shoal_outcome *outcome = self->outcome;
    int status = SHOAL_OK;
    if (code && code->count > 0)
        status = shoal_job_put_code(self->jobs->store, self->id, code->file, code->count, SHOAL_NEVER);
    if (status < 0 || !outcome->data)
        return status;
    return shoal_job_upload(self->jobs->store, self->id, outcome->data, outcome->weights, self->request->watch.stop,
                            SHOAL_NEVER);
}

/* ---- following --------------------------------------------------------------------------------------------------- */

/* Whether no worker ever joined the job, which this process submitted. */
static bool is_unstarted(const run_away *away)
{
    return !away->resumed && away->report.run.rounds == 0 && away->report.workers == 0;
}

/* Why a job stands still, and how to resume it. */
static int fail_stopped(const following *self, const char *why)
{
    char *message = NULL;
    run_away *away = &self->outcome->away;
    int status = base_copy_text(&message, why); /* which may be the message that is about to be replaced */
    if (status == SHOAL_OK && !self->options->passing)
        status = run_jobs_command(&away->resume, self->jobs, "resume", self->id);
    if (status == SHOAL_OK && !self->options->passing && self->failed_workers && is_unstarted(away))
        status = run_jobs_command(&away->remove, self->jobs, "remove", self->id);
    if (status == SHOAL_OK)
        status = shoal_fail(SHOAL_STOPPED, "%s", message);
    away->stopped = true;
    base_free(&message);
    return status;
}

/* A job that nobody asked to keep is removed; whether it was. */
static bool remove_unkept(const following *self)
{
    if (self->outcome->away.keep ||
        shoal_job_remove(self->jobs->store, self->id, run_jobs_deadline(self->jobs)) != SHOAL_OK)
        return false;
    run_jobs_forget(self->id);
    return true;
}

/* A function that crashes its workers would crash them again: the job can't be resumed. */
static int fail_crashed(const following *self, const char *why)
{
    const run_function *function = &self->request->function;
    const char *what = function->exec     ? function->exec
                       : function->module ? function->module
                                          : self->outcome->algorithm->name;
    char *logs = NULL, *removal = NULL;
    int status;
    if (remove_unkept(self))
        return shoal_fail(SHOAL_INVALID, "%s: %s; run it without --workers to see what it prints", what, why);
    status = run_jobs_command(&logs, self->jobs, "logs", self->id);
    if (status == SHOAL_OK)
        status = run_jobs_command(&removal, self->jobs, "remove", self->id);
    if (status == SHOAL_OK)
        status = shoal_fail(SHOAL_INVALID, "%s: %s; `%s` prints the workers' logs, `%s` removes the job", what, why,
                            logs, removal);
    base_free(&removal);
    base_free(&logs);
    return status;
}

/* A job whose workers fail, and one that nobody works on, are as they were and can be resumed.  One that no worker ever
 * joined and that nobody asked to keep is not worth that. */
static int end_workerless(const following *self, const char *why)
{
    if (self->failed_workers && self->outcome->face->runs_code && launch_is_crash(why))
        return fail_crashed(self, why);
    if (self->failed_workers && is_unstarted(&self->outcome->away) && remove_unkept(self))
        return shoal_fail(SHOAL_INVALID, "%s; nothing was computed, and the job is removed", why);
    return fail_stopped(self, why);
}

static bool can_be_resumed(int status)
{
    return status == SHOAL_STOPPED || status == SHOAL_AGAIN || status == SHOAL_UNKNOWN || status == SHOAL_DENIED;
}

/* A job that nobody asked to keep is removed when its input is wrong.  Any other can be resumed after that is fixed,
 * unless it is the rows themselves: a job with other rows is another one. */
static int end_failed(const following *self, int failure, const char *why)
{
    char *command = NULL;
    bool wrong_input = failure == SHOAL_INVALID || failure == SHOAL_USAGE;
    bool wrong_rows =
        failure == SHOAL_INVALID && !strstr(why, self->outcome->data_name); /* learners see rows, not files */
    const char *name = wrong_rows ? self->outcome->data_name : "", *colon = wrong_rows ? ": " : "";
    const char *verb = failure == SHOAL_ABSENT ? NULL : wrong_rows ? "remove" : "resume";
    const char *hint =
        wrong_rows ? "for other rows start a new job; remove this one with" : "after fixing it, resume with";
    if (wrong_input && remove_unkept(self))
        verb = NULL;
    if (verb && !self->options->passing && run_jobs_command(&command, self->jobs, verb, self->id) == SHOAL_OK)
        failure = shoal_fail(failure, "%s%s%s; %s `%s`", name, colon, why, hint, command);
    else
        failure = shoal_fail(failure, "%s%s%s", name, colon, why);
    base_free(&command);
    return failure;
}

double run_patience(const shoal_outcome *outcome)
{
    double asked = outcome->request->workers.patience;
    return asked > 0 ? asked : outcome->away.ask->patience;
}

/* What is said when a second signal ends this process at once, and with it the workers it started, save some. */
static int write_parting(char **out, const following *self)
{
    char *command = NULL;
    bool outlive = self->outcome->away.ask->outlive;
    int status = run_jobs_command(&command, self->jobs, outlive ? "cancel" : "resume", self->id);
    if (status == SHOAL_OK && outlive)
        status = base_format(out, "shoal: stopped at once; workers that run under Slurm keep working: `%s` ends them\n",
                             command);
    else if (status == SHOAL_OK)
        status = base_format(out, "shoal: stopped at once; resume the job with `%s`\n", command);
    base_free(&command);
    return status;
}

static int follow_with_workers(following *self)
{
    shoal_outcome *outcome = self->outcome;
    shoal_follow_options options = {.progress = on_followed_round,
                                    .progress_context = self,
                                    .sparse = !run_trace_is_open(&outcome->trace) && !self->request->watch.all_rounds,
                                    .tick = look_after,
                                    .tick_context = self,
                                    .forgot = put_again,
                                    .forgot_context = self,
                                    .stop = self->request->watch.stop,
                                    .patience = run_patience(outcome),
                                    .algorithms = learn_algorithms(),
                                    .spec = outcome->away.spec_bytes,
                                    .spec_size = outcome->away.spec_size};
    char *why = NULL, *parting = NULL;
    int status = begin_leading(self);
    if (status == SHOAL_OK)
        status = start_workers(self);
    if (status == SHOAL_OK)
        status = forget_scale(self);
    if (status == SHOAL_OK)
        status = write_parting(&parting, self);
    base_parting_say(parting);
    if (status == SHOAL_OK) {
        status = shoal_job_follow(&outcome->result, &outcome->away.report, self->jobs->store, self->id, &options);
        outcome->away.ended = base_seconds();
    }
    if (status < 0 && base_copy_text(&why, shoal_error()) == SHOAL_OK)
        shorten(why, self->id);
    end_leading(self);
    if (self->workers) {
        if (status < 0 || !launch_wait(self->workers, 0.3))
            launch_stop(self->workers, 2);
        launch_free(&self->workers);
    }
    if (self->hold) /* with what its workers cost until they were gone */
        run_hold_end(self->hold, status == SHOAL_OK);
    run_hold_free(&self->hold);
    base_parting_say(NULL);
    base_free(&parting);
    shoal_store_close(&self->data);
    shoal_text_free(&self->data_key);
    run_doing(outcome, NULL);
    outcome->report = outcome->away.report.run;
    if (status < 0 && run_stopped(self->request))
        status = fail_stopped(self, "stopped");
    else if (self->failed_workers || can_be_resumed(status))
        status = end_workerless(self, why ? why : "stopped");
    else if (status < 0)
        status = end_failed(self, status, why ? why : "out of memory");
    if (status < 0 && self->request->leader) /* it can't be resumed: what comes next only its leader knew */
        (void)remove_unkept(self);
    base_free(&why);
    return status;
}

static int follow_job(shoal_outcome *outcome)
{
    following self = following_of(outcome);
    int status = run_trace_open(&outcome->trace, &outcome->request->trace);
    if (status < 0)
        return status;
    run_may_stop(outcome, true);
    status = follow_with_workers(&self);
    run_may_stop(outcome, false);
    return status;
}

/* ---- going on without this process ------------------------------------------------------------------------------- */

static int detach(shoal_outcome *outcome)
{
    following self = following_of(outcome);
    outcome->away.detached = true;
    outcome->away.alone = outcome->away.ask->count == 0;
    self.count = outcome->away.ask->workers;
    int status = forget_scale(&self);
    if (status == SHOAL_OK && !outcome->away.alone)
        status = run_supervise(outcome);
    if (status == SHOAL_OK && outcome->away.alone)
        status = run_jobs_command(&outcome->away.resume, self.jobs, "resume", self.id);
    return status;
}

/* A detached job's outputs are written by a process that has none of this one's standard streams. */
static int check_detached_outputs(const shoal_request *request)
{
    run_files outputs;
    run_request_outputs(&outputs, request);
    for (const run_file *output = outputs.file; output->name; output++)
        if (output->path && base_output_descriptor(output->path) >= 0)
            return shoal_fail(SHOAL_USAGE, "%s %s: a job that runs on with --detach has no standard output",
                              output->name, output->path);
    return SHOAL_OK;
}

/* ---- submitting -------------------------------------------------------------------------------------------------- */

/* What a job is known by again: before there is one, so that none is left without. */
typedef struct submitting {
    shoal_outcome *outcome;
    const char *asked;
} submitting;

int run_note_source(run_away *away, const char *source, const char *place)
{
    bool file = strcmp(source, "file") == 0;
    away->source = file                               ? SHOAL_PLAN_FILE
                   : strcmp(source, "generated") == 0 ? SHOAL_PLAN_GENERATED
                   : strcmp(source, "uploaded") == 0  ? SHOAL_PLAN_UPLOADED
                                                      : SHOAL_PLAN_STORED;
    return place ? base_copy_text(file ? &away->file : &away->url, place) : SHOAL_OK;
}

static int note_made(void *context, const shoal_job_made *job)
{
    const submitting *self = context;
    run_away *away = &self->outcome->away;
    snprintf(away->spec, sizeof away->spec, "%s", job->spec);
    int status = base_alloc_unset(&away->spec_bytes, job->size, 1, "a job's spec");
    if (status < 0)
        return status;
    memcpy(away->spec_bytes, job->bytes, job->size);
    away->spec_size = job->size;
    if (!self->outcome->request->bound) /* where it can't be kept, resume asks */
        (void)run_kept_write(&self->outcome->jobs, job->id, job->spec, self->asked);
    return run_note_source(away, job->source, job->place);
}

/* Where it costs no request. */
static void sweep_notes(const run_jobs *jobs)
{
    shoal_job_id *ids = NULL;
    int64_t count = 0;
    if (shoal_job_list(&ids, &count, jobs->store, run_jobs_deadline(jobs)) == SHOAL_OK)
        run_jobs_sweep(jobs, ids, count);
    shoal_job_list_free(&ids);
}

static int submit(shoal_outcome *outcome)
{
    const shoal_request *request = outcome->request;
    const run_workers_options *workers = &request->workers;
    run_away *away = &outcome->away;
    char *text = NULL;
    char id[SHOAL_JOB_ID_BYTES];
    int status = run_kept_text(&text, outcome);
    if (status == SHOAL_OK)
        status = job_setup_id(id, workers->name ? workers->name : outcome->algorithm->name);
    if (status < 0) {
        base_free(&text);
        return status;
    }
    submitting made = {.outcome = outcome, .asked = text};
    shoal_job_options options = {.id = id,
                                 .made = note_made,
                                 .made_context = &made,
                                 .slices = workers->slices,
                                 .workers = away->ask->slots,
                                 .far = away->ask->far,
                                 .code = outcome->function ? outcome->function->code.file : NULL,
                                 .codes = outcome->function ? outcome->function->code.count : 0,
                                 .from = run_blobs_source(outcome),
                                 .puts = request->blobs.to != NULL,
                                 .reduce = workers->reduce,
                                 .lease = workers->lease,
                                 .keep_rounds = workers->keep_rounds,
                                 .rows_per_grain = request->place.rows_per_grain,
                                 .kernel = request->place.kernel,
                                 .settings = text,
                                 .stop = request->watch.stop};
    run_doing(outcome, "submitting the job");
    run_may_stop(outcome, true);
    status = shoal_job_submit(away->id, outcome->jobs.store, outcome->algorithm, outcome->config, outcome->data,
                              outcome->weights, &options);
    if (status == SHOAL_OK)
        status = run_blobs_upload(outcome);
    run_may_stop(outcome, false);
    if (status < 0 && !away->id[0])
        run_jobs_forget(id);
    else if (status == SHOAL_OK && !request->bound && run_jobs_is_folder(outcome->jobs.url))
        sweep_notes(&outcome->jobs);
    base_free(&text);
    status = run_blame_option(status);
    if (status == SHOAL_INVALID && !strstr(shoal_error(), outcome->data_name)) /* a learner sees rows, not files */
        status = shoal_fail(status, "%s: %s", outcome->data_name, shoal_error());
    return status;
}

/* What --workers asks for, now that it is known where they meet. */
static int count_workers(shoal_outcome *outcome)
{
    const shoal_request *request = outcome->request;
    const char *scheme = shoal_store_describe(outcome->jobs.store).scheme;
    int status = base_alloc(&outcome->away.ask, 1, sizeof *outcome->away.ask, "workers");
    if (status == SHOAL_OK)
        status = launch_ask_for(outcome->away.ask, &request->workers.workers, scheme, request->place.threads);
    return status;
}

int run_away_from_here(shoal_outcome *outcome)
{
    const run_workers_options *workers = &outcome->request->workers;
    const run_jobs_settings where = {.store = workers->store, .patience = fmin(workers->patience, 60)};
    run_away *away = &outcome->away;
    run_doing(outcome, "opening the store");
    int status = workers->detach ? check_detached_outputs(outcome->request) : SHOAL_OK;
    if (status == SHOAL_OK)
        status = run_jobs_open(&outcome->jobs, &where, RUN_JOBS_CREATE);
    if (status < 0)
        return status;
    away->keep = workers->store != NULL || workers->detach;
    away->begun = base_seconds();
    status = base_copy_text(&away->store, outcome->jobs.url);
    if (status == SHOAL_OK)
        status = count_workers(outcome);
    if (status == SHOAL_OK && away->ask->outlive && outcome->request->leader)
        status = shoal_fail(SHOAL_USAGE, "calls need workers that end with this process, which those of Slurm do not "
                                         "if they reach the store by themselves: let it be a folder");
    if (status == SHOAL_OK && away->ask->count > 0)
        status = run_ask_program(outcome->request->program);
    if (status == SHOAL_OK)
        status = run_blobs_open(outcome);
    if (status == SHOAL_OK)
        status = run_blobs_begin(outcome);
    if (status == SHOAL_OK) /* of hosts behind ssh, who follows the job hears soon enough */
        status = run_hosts_can_start(away->ask, workers->ssh, workers->detach, outcome->request->watch.stop);
    if (status == SHOAL_OK)
        status = submit(outcome);
    if (status == SHOAL_STOPPED && away->id[0]) {
        const following self = following_of(outcome);
        run_doing(outcome, NULL);
        return fail_stopped(&self, "stopped while rows were uploaded");
    }
    if (status == SHOAL_OK)
        status = workers->detach ? detach(outcome) : follow_job(outcome);
    if (status == SHOAL_OK && !workers->detach)
        run_predicted_note(outcome);
    return status;
}

int run_resumed(shoal_outcome *outcome)
{
    outcome->away.keep = true;
    outcome->away.resumed = true;
    base_free(&outcome->away.store);
    int status = base_copy_text(&outcome->away.store, outcome->jobs.url);
    if (status == SHOAL_OK)
        status = count_workers(outcome);
    if (status == SHOAL_OK && outcome->request->workers.detach) /* otherwise it is seen at once */
        status =
            run_hosts_can_start(outcome->away.ask, outcome->request->workers.ssh, true, outcome->request->watch.stop);
    if (status < 0)
        return status;
    return outcome->request->workers.detach ? detach(outcome) : follow_job(outcome);
}

/* ---- afterwards -------------------------------------------------------------------------------------------------- */

int run_away_close(shoal_outcome *outcome, int status)
{
    const run_away *away = &outcome->away;
    run_jobs jobs = outcome->jobs;
    char *command = NULL, *why = NULL;
    if (!away->id[0] || away->detached)
        return status;
    if (status < 0) {
        jobs.named = true;
        if (base_copy_text(&why, shoal_error()) == SHOAL_OK &&
            run_jobs_command(&command, &jobs, "result", away->id) == SHOAL_OK)
            status = shoal_fail(status, "%s; job %s still has the result: `%s`", why, away->id, command);
        base_free(&command);
        base_free(&why);
        return status;
    }
    if (away->keep)
        return status;
    int removed = shoal_job_remove(jobs.store, away->id, run_jobs_deadline(&jobs));
    if (removed == SHOAL_OK)
        run_jobs_forget(away->id);
    return removed < 0 ? removed : status;
}
