/* Running a learner on workers.  See run_job.h.
 *
 * Whoever starts a job is needed for nothing but its own outputs: workers go on without it.  What the outputs were to
 * be is kept on this machine (job_wish.h), for when the job is resumed. */
#include "run_job.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/pool.h"
#include "engine/store/job_hash.h"
#include "engine/store/job_setup.h"
#include "engine/store/job_spec.h"
#include "job_print.h"
#include "job_wish.h"
#include "launch/launch.h"
#include "predicted.h"

static const shoal_option rows[] = {
    {"store", 0, SHOAL_OPTION_TEXT, offsetof(cli_workers_settings, store), "URL",
     .help = "run on workers that meet in this store: a folder, az://ACCOUNT/CONTAINER or s3://BUCKET; without "
             "--workers it waits for workers that are started elsewhere"},
    {"workers", 0, SHOAL_OPTION_LIST, offsetof(cli_workers_settings, workers), "WHERE",
     .help =
         "start workers; may be given several times: local:N processes on this machine, ssh:HOST[:N],... on machines "
         "that ssh reaches, where nothing needs to be installed, slurm:N[?partition=P&time=MINUTES] on a cluster; each "
         "has its part of its machine's cores, or --threads of them; without --store they meet in a folder of this "
         "user, and the job is removed from it when it is done"},
    {"ssh", 0, SHOAL_OPTION_TEXT, offsetof(cli_workers_settings, ssh), "COMMAND",
     .help = "what ssh: calls instead of ssh, such as 'ssh -F FILE'; $SHOAL_SSH when left out"},
    {"worker-memory", 0, SHOAL_OPTION_BYTES, offsetof(cli_workers_settings, worker_memory), "BYTES",
     .help =
         "bytes that each worker may use, such as 4GiB; its part of three quarters of its machine's memory when left "
         "out",
     .least = CLI_WORKER_MEMORY_LEAST},
    {"detach", 0, SHOAL_OPTION_FLAG, offsetof(cli_workers_settings, detach), NULL,
     .help = "print the job's name and return; its workers go on, and outputs are written when it is done"},
    {"job", 0, SHOAL_OPTION_TEXT, offsetof(cli_workers_settings, name), "NAME",
     .help = "what the job's name starts with; the learner's name when left out"},
    {"slices", 0, SHOAL_OPTION_COUNT, offsetof(cli_workers_settings, slices), "N",
     .help = "parts that the rows are cut into; chosen from the data and the workers when left out; never changes the "
             "result",
     .least = 1, .most = SHOAL_JOB_SLICES_MOST},
    {"reduce", 0, SHOAL_OPTION_TEXT, offsetof(cli_workers_settings, reduce), "SHAPE",
     .help = "how partial results are merged: flat, two-level, tree:F in groups of F, or auto, which is meant when "
             "it is left out; never changes the result"},
    {"roles", 0, SHOAL_OPTION_TEXT, offsetof(cli_workers_settings, roles), "ROLES",
     .help = "all: every worker maps and reduces; split: of --workers N map, and beside them the square root of N "
             "reduce, and one reduces last; all when left out"},
    {"lease", 0, SHOAL_OPTION_REAL, offsetof(cli_workers_settings, lease), "SECONDS",
     .help = "after so long a silent worker counts as dead; chosen from the store when left out",
     .least = SHOAL_JOB_LEASE_LEAST, .most = SHOAL_JOB_LEASE_MOST},
    {"keep-rounds", 0, SHOAL_OPTION_COUNT, offsetof(cli_workers_settings, keep_rounds), "N",
     .help = "finished rounds that stay in the store; as few as are safe when left out", .least = 1,
     .most = SHOAL_JOB_KEEP_ROUNDS_MOST},
    {"patience", 0, SHOAL_OPTION_REAL, offsetof(cli_workers_settings, patience), "SECONDS",
     .help =
         "give up after so long without any worker or without the store; the job can go on later; 60 with --workers, "
         "a day with those of slurm:, which may have to wait, and an hour without any when left out",
     .least = SHOAL_JOB_PATIENCE_LEAST, .most = SHOAL_JOB_PATIENCE_MOST},
    {0},
};
const shoal_option *const cli_workers_options = rows;

_Static_assert((int)LAUNCH_WORKERS_MOST == (int)SHOAL_JOB_WORKERS_MOST, "as many can be started as can be wanted");

/* A refusal of the library begins with the field it is about; whoever typed an option is told of that. */
static int blame_option(int status)
{
    static const struct {
        const char *field, *option;
    } names[] = {{"name", "--job"},         {"slices", "--slices"},           {"reduce", "--reduce"},
                 {"lease", "--lease"},      {"keep_rounds", "--keep-rounds"}, {"rows_per_grain", "--grain"},
                 {"patience", "--patience"}};
    const char *message = shoal_error();
    size_t length = strcspn(message, " ");
    for (size_t i = 0; status == SHOAL_USAGE && i < sizeof names / sizeof *names; i++)
        if (strlen(names[i].field) == length && strncmp(message, names[i].field, length) == 0)
            return shoal_fail(status, "%s%s", names[i].option, message + length);
    return status;
}

int cli_workers_check(bool *asked, const cli_workers_settings *settings)
{
    launch_ask ask;
    job_tree tree;
    *asked = settings->store || settings->workers.count > 0;
    if (!*asked && (settings->detach || settings->ssh || settings->name || settings->slices || settings->reduce ||
                    settings->roles || settings->lease > 0 || settings->keep_rounds || settings->patience > 0 ||
                    settings->worker_memory))
        return shoal_fail(SHOAL_USAGE, "--detach, --ssh, --job, --slices, --reduce, --roles, --lease, --keep-rounds, "
                                       "--patience and --worker-memory need --workers WHERE or --store URL: without "
                                       "them this process does all the work");
    if (launch_ask_for(&ask, &settings->workers, NULL, 0) < 0)
        return SHOAL_USAGE;
    if (settings->name && job_setup_check_name(settings->name) < 0)
        return blame_option(SHOAL_USAGE);
    if (settings->roles && strcmp(settings->roles, "all") != 0 && strcmp(settings->roles, "split") != 0)
        return shoal_fail(SHOAL_USAGE, "--roles is all or split, not '%s'", settings->roles);
    if (settings->reduce && job_tree_choose(&tree, settings->reduce, 1) < 0)
        return blame_option(SHOAL_USAGE);
    return SHOAL_OK;
}

/* ---- what the job says of itself --------------------------------------------------------------------------------- */

/* The same file from any folder. */
static json_t *json_path(const char *path)
{
    char *here = path[0] == '/' || cli_is_in_store(path) || strncmp(path, "gen:", 4) == 0 ? NULL : getcwd(NULL, 0);
    char *whole = NULL;
    json_t *text = NULL;
    if (base_format(&whole, "%s%s%s", here ? here : "", here ? "/" : "", path) == SHOAL_OK)
        text = cli_json_text(whole);
    base_free(&whole);
    free(here);
    return text;
}

static json_t *json_data(const cli_workers_wish *wish)
{
    json_t *object = cli_options_json(cli_data_options, wish->data);
    cli_json_put(&object, "path", json_path(wish->data_path));
    if (wish->weights_path)
        cli_json_put(&object, "weights", json_path(wish->weights_path));
    if (wish->labels_path)
        cli_json_put(&object, "labels", json_path(wish->labels_path));
    return object;
}

static json_t *json_outputs(const cli_workers_wish *wish)
{
    json_t *object = json_object();
    for (const cli_file *output = wish->outputs; output->name; output++)
        if (output->path)
            cli_json_put(&object, output->name + strlen("--"), json_path(output->path));
    if (wish->trace && wish->trace->tensorboard)
        cli_json_put(&object, "tensorboard", json_path(wish->trace->tensorboard));
    return object;
}

static json_t *json_texts(const shoal_texts *texts)
{
    json_t *list = json_array();
    for (int i = 0; i < texts->count; i++)
        if (json_array_append_new(list, cli_json_text(texts->text[i])) < 0)
            return NULL; /* out of memory: what it was to be part of is then none, either */
    return list;
}

static int make_settings(char **out, const cli_workers_wish *wish, const cli_workers_settings *settings,
                         const shoal_algorithm *algorithm)
{
    json_t *object = json_object();
    cli_json_put(&object, "options", cli_options_json(algorithm->options, wish->config));
    cli_json_put(&object, "data", json_data(wish));
    cli_json_put(&object, "outputs", json_outputs(wish));
    if (wish->more)
        cli_json_put(&object, "more", wish->more);
    if (settings->workers.count > 0)
        cli_json_put(&object, "workers", json_texts(&settings->workers));
    const char *ssh = settings->ssh ? settings->ssh : getenv("SHOAL_SSH");
    if (ssh && settings->workers.count > 0) /* so that whoever resumes it reaches the same hosts */
        cli_json_put(&object, "ssh", cli_json_text(ssh));
    if (settings->roles)
        cli_json_put(&object, "roles", cli_json_text(settings->roles));
    char *text = object ? json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL;
    json_decref(object);
    int status = text ? base_copy_text(out, text) : shoal_fail(SHOAL_MEMORY, "out of memory for the job's settings");
    free(text);
    return status;
}

/* ---- workers that this process started --------------------------------------------------------------------------- */

/* One following of a job, with the workers that this process started for it. */
typedef struct following {
    cli_job *job;
    cli_jobs *jobs;
    const char *id;
    const cli_run_settings *run;
    const cli_workers_settings *settings;
    const cli_workers_wish *wish; /* NULL for who resumes */
    bool quiet;
    launch_group *workers;
    shoal_store *data; /* where the rows are, for workers that can't reach that store themselves; NULL: none needs it */
    int64_t count, helpers; /* workers that --workers asks for; reducers beside them */
    char *data_folder;      /* where the file is that workers read; NULL when they need none */
    char *data_url;         /* where the rows are, when that is another store; NULL otherwise */
    char *data_key;         /* and what they are called there */
    double want_looked;
    bool said_waiting;
    bool lame; /* its workers can't work */
} following;

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
static void say_line(void *context, const char *line)
{
    following *self = context;
    if (self->quiet)
        return;
    cli_progress_clear(&self->job->progress);
    fputs("shoal: ", stderr);
    cli_put_text(stderr, line);
    fputc('\n', stderr);
}

/* Those behind a pipe reach other stores through this process. */
static int open_data(following *self)
{
    return shoal_store_open_at(&self->data, &self->data_key, self->data_url, &(shoal_store_options){.read_only = true},
                               cli_jobs_deadline(self->jobs));
}

/* For what is predicted of such a run. */
static void note_crew(following *self, const launch_ask *ask)
{
    cli_job_away *away = &self->job->away;
    const shoal_texts *specs = &self->settings->workers;
    away->mappers = ask->workers;
    away->local = true;
    for (int i = 0; i < specs->count; i++) {
        away->local = away->local && strncmp(specs->text[i], "local:", 6) == 0;
        if (ask->piped && strncmp(specs->text[i], "local:", 6) != 0)
            away->through = strncmp(specs->text[i], "slurm:", 6) == 0 ? "slurm" : "ssh";
    }
    away->split_roles = self->settings->roles && strcmp(self->settings->roles, "split") == 0;
    away->reduce = self->settings->reduce;
    away->slices = self->settings->slices;
}

static int start_workers(following *self)
{
    launch_ask ask;
    const char *scheme = shoal_store_describe(self->jobs->store).scheme;
    if (self->settings->workers.count == 0)
        return SHOAL_OK;
    int status = launch_ask_for(&ask, &self->settings->workers, scheme, self->run->threads);
    if (status == SHOAL_OK && ask.far && self->data_folder)
        status = shoal_fail(SHOAL_USAGE,
                            "job %s reads a file of this machine, which workers elsewhere do not see: start it anew "
                            "with --workers of both kinds",
                            self->id);
    if (status == SHOAL_OK && ask.piped && self->data_url)
        status = open_data(self);
    if (status < 0)
        return status;
    self->count = ask.workers;
    note_crew(self, &ask);
    if (self->job->away.split_roles)
        self->helpers = (int64_t)ceil(sqrt((double)self->count)) + 1;
    const launch_job job = {.store_url = self->jobs->url,
                            .store = self->jobs->store,
                            .data = self->data,
                            .data_key = self->data_key,
                            .id = self->id,
                            .spec = self->job->away.spec,
                            .kernel = self->run->kernel,
                            .threads = self->run->threads,
                            .memory = self->settings->worker_memory,
                            .helpers = self->helpers,
                            .ssh = self->settings->ssh,
                            .gone = tell_death,
                            .say = say_line,
                            .context = self};
    return launch_new(&self->workers, &self->settings->workers, &job);
}

/* Whoever says how many workers there are to be takes back what was said before. */
static int forget_scale(following *self)
{
    int64_t wanted = -1;
    if (self->settings->workers.count == 0 || self->settings->as_scaled)
        return SHOAL_OK;
    int status = shoal_job_wanted(&wanted, self->jobs->store, self->id, cli_jobs_deadline(self->jobs));
    if (status == SHOAL_OK && wanted >= 0 && wanted != self->count)
        status = shoal_job_want(self->jobs->store, self->id, self->count, cli_jobs_deadline(self->jobs));
    return status;
}

/* As many workers as `shoal job scale` asked for. */
static int obey(following *self)
{
    double now = base_seconds(), every = shoal_store_describe(self->jobs->store).wakes ? 0.5 : 2;
    int64_t wanted = -1;
    if (!self->workers || now - self->want_looked < every)
        return SHOAL_OK;
    self->want_looked = now;
    if (shoal_job_wanted(&wanted, self->jobs->store, self->id, shoal_after(5)) < 0 || wanted < 0)
        return SHOAL_OK; /* a store that is away is the follower's to notice */
    if (self->settings->foreign && wanted > self->count)
        wanted = self->count; /* whoever wrote that must not say how much is started here */
    wanted = wanted > 0 ? wanted + self->helpers : 0;
    wanted = wanted < LAUNCH_WORKERS_MOST ? wanted : LAUNCH_WORKERS_MOST;
    return wanted == launch_wanted(self->workers) ? SHOAL_OK : launch_scale(self->workers, wanted);
}

/* What workers that are started by hand have to be allowed to read: the file's folder, or another store than the
 * job's; NULL for nothing. */
static int copy_root(char **out, const following *self)
{
    shoal_store_traits ours = shoal_store_describe(self->jobs->store);
    const char *place = self->data_folder ? self->data_folder : self->data_url;
    bool own = false;
    int status = place && !self->data_folder ? shoal_store_url_is_below(&own, place, ours.name) : SHOAL_OK;
    return !place || own || status < 0 ? status : cli_wish_root(out, place);
}

/* Workers that are started by hand read only what they are told to, and run only the code they are. */
static void say_waiting(following *self)
{
    char *url = NULL, *root = NULL, *hashes = NULL;
    shoal_job *about = NULL;
    self->said_waiting = true;
    if (self->settings->workers.count > 0 || self->quiet)
        return;
    if (cli_quote(&url, self->jobs->url) == SHOAL_OK && copy_root(&root, self) == SHOAL_OK &&
        shoal_job_describe(&about, self->jobs->store, self->id, false, cli_jobs_deadline(self->jobs)) == SHOAL_OK &&
        cli_job_hashes(&hashes, about) == SHOAL_OK) {
        fprintf(stderr, "waiting for workers: shoal worker --store %s --job %s%s", url, self->id,
                root ? " --data-root " : "");
        cli_put_text(stderr, root ? root : "");
        fprintf(stderr, "%s%s\n", *hashes ? " --allow-code " : "", hashes);
    }
    shoal_job_free(&about);
    base_free(&hashes);
    base_free(&root);
    base_free(&url);
}

static int tick(void *context)
{
    following *self = context;
    if (!self->said_waiting)
        say_waiting(self);
    int status = obey(self);
    if (status == SHOAL_OK && self->workers && (status = launch_tick(self->workers)) < 0)
        self->lame = true;
    return status;
}

static void on_round(void *context, const shoal_round *done, const shoal_round *next, int64_t all_rows, double seconds)
{
    following *self = context;
    if (self->workers)
        launch_progress(self->workers);
    cli_job_on_round(self->job, done, next, all_rows, seconds);
}

/* The store's server died and has forgotten the job's first seconds: what was uploaded then may be gone as well. */
static int on_forgot(void *context)
{
    following *self = context;
    int status = SHOAL_OK;
    if (self->wish && self->wish->codes > 0)
        status = shoal_job_put_code(self->jobs->store, self->id, self->wish->code, self->wish->codes, SHOAL_NEVER);
    if (status < 0 || !self->job->data)
        return status;
    return shoal_job_upload(self->jobs->store, self->id, self->job->data, self->job->weights, cli_signals_stop(),
                            SHOAL_NEVER);
}

/* ---- following --------------------------------------------------------------------------------------------------- */

/* Says why a job stands still and how it goes on. */
static int say_stopped(const following *self, const char *why)
{
    char *command = NULL;
    if (self->settings->passing)
        return CLI_RESUMABLE;
    int status = cli_jobs_command(&command, self->jobs, "resume", self->id);
    if (status == SHOAL_OK) {
        fputs("shoal: ", stderr);
        cli_put_text(stderr, why);
        fprintf(stderr, "; job %s can go on with `%s`\n", self->id, command);
    }
    base_free(&command);
    return status == SHOAL_OK ? CLI_RESUMABLE : status;
}

static int copy_folder(char **out, const char *path)
{
    const char *slash = strrchr(path, '/');
    int length = slash && slash > path ? (int)(slash - path) : 1;
    return base_format(out, "%.*s", length, path);
}

/* What this process has to know of the spec. */
static int read_spec(following *self)
{
    job_spec *spec = NULL;
    int status = cli_wish_spec(&spec, self->jobs, self->id, self->job->away.spec);
    if (status == SHOAL_OK && spec->source == JOB_FILE)
        status = copy_folder(&self->data_folder, spec->place);
    if (status == SHOAL_OK)
        self->job->away.source = spec->source == JOB_FILE        ? SHOAL_PLAN_FILE
                                 : spec->source == JOB_GENERATED ? SHOAL_PLAN_GENERATED
                                 : spec->source == JOB_UPLOADED  ? SHOAL_PLAN_UPLOADED
                                                                 : SHOAL_PLAN_STORED;
    if (status == SHOAL_OK && spec->source == JOB_RANGES && spec->store_url)
        status = base_copy_text(&self->data_url, spec->store_url);
    job_spec_free(&spec);
    return status;
}

/* A job whose workers can't work, and one that nobody works on, are as they were: they can go on. */
static bool can_go_on(int status)
{
    return status == SHOAL_STOPPED || status == SHOAL_AGAIN || status == SHOAL_UNKNOWN || status == SHOAL_DENIED;
}

/* A job that nobody asked to keep goes when its input is wrong.  Any other can go on once that is mended, unless it is
 * the rows themselves: a job with other rows is another one. */
static int end_failed(const following *self, int failure, const char *why)
{
    char *command = NULL;
    bool wrong_input = failure == SHOAL_INVALID || failure == SHOAL_USAGE;
    bool wrong_rows = failure == SHOAL_INVALID && !strstr(why, self->job->data_name); /* learners see rows, not files */
    const char *name = wrong_rows ? self->job->data_name : "", *colon = wrong_rows ? ": " : "";
    const char *verb = failure == SHOAL_ABSENT ? NULL : wrong_rows ? "remove" : "resume";
    const char *hint = wrong_rows ? "other rows need another job, and this one can be removed with"
                                  : "once that is mended, the job can go on with";
    if (wrong_input && !self->job->away.keep &&
        shoal_job_remove(self->jobs->store, self->id, cli_jobs_deadline(self->jobs)) == SHOAL_OK) {
        cli_jobs_forget(self->id);
        verb = NULL;
    }
    if (verb && !self->settings->passing && cli_jobs_command(&command, self->jobs, verb, self->id) == SHOAL_OK)
        failure = shoal_fail(failure, "%s%s%s; %s `%s`", name, colon, why, hint, command);
    else
        failure = shoal_fail(failure, "%s%s%s", name, colon, why);
    base_free(&command);
    return failure;
}

/* Those of a cluster may have to wait for their turn. */
static double patience_of(const cli_workers_settings *settings)
{
    double usual = settings->workers.count > 0 ? 60 : 3600;
    for (int i = 0; i < settings->workers.count; i++)
        if (strncmp(settings->workers.text[i], "slurm:", 6) == 0)
            usual = 24 * 3600;
    return settings->patience > 0 ? settings->patience : usual;
}

static int follow(following *self)
{
    const double patience = patience_of(self->settings);
    shoal_follow_options options = {.progress = on_round,
                                    .progress_context = self,
                                    .sparse = !cli_trace_is_open(&self->job->trace),
                                    .tick = tick,
                                    .tick_context = self,
                                    .forgot = on_forgot,
                                    .forgot_context = self,
                                    .stop = cli_signals_stop(),
                                    .patience = patience,
                                    .algorithms = cli_algorithms()};
    char *why = NULL;
    int status = read_spec(self);
    if (status == SHOAL_OK)
        status = start_workers(self);
    if (status == SHOAL_OK)
        status = forget_scale(self);
    if (status == SHOAL_OK) {
        status = shoal_job_follow(&self->job->result, &self->job->away.report, self->jobs->store, self->id, &options);
        self->job->away.ended = base_seconds();
    }
    if (status < 0 && base_copy_text(&why, shoal_error()) == SHOAL_OK)
        shorten(why, self->id);
    if (self->workers) {
        if (status < 0 || !launch_wait(self->workers, 0.3))
            launch_stop(self->workers, 2);
        launch_free(&self->workers);
    }
    shoal_store_close(&self->data);
    shoal_text_free(&self->data_key);
    cli_progress_clear(&self->job->progress);
    self->job->report = self->job->away.report.run;
    if (status < 0 && cli_signals_stopped())
        status = say_stopped(self, "stopped");
    else if (self->lame || can_go_on(status))
        status = say_stopped(self, why ? why : "stopped");
    else if (status < 0)
        status = end_failed(self, status, why ? why : "out of memory");
    base_free(&why);
    return status;
}

static int follow_job(cli_job *job, cli_jobs *jobs, const cli_run_settings *run, const cli_workers_settings *settings,
                      const cli_print_settings *print, const cli_workers_wish *wish, const cli_trace_settings *trace)
{
    following self = {.job = job,
                      .jobs = jobs,
                      .id = job->away.id,
                      .run = run,
                      .settings = settings,
                      .wish = wish,
                      .quiet = print->quiet};
    int status = cli_trace_open(&job->trace, trace);
    if (status < 0)
        return status;
    cli_signals_allow_stop(true);
    status = follow(&self);
    cli_signals_allow_stop(false);
    base_free(&self.data_folder);
    base_free(&self.data_url);
    return status;
}

/* ---- going on without this process
 * --------------------------------------------------------------------------------- */

static int print_detached(const cli_job *job, const cli_print_settings *print)
{
    if (print->json) {
        json_t *object = json_object();
        cli_json_put(&object, "job", json_string(job->away.id));
        cli_json_put(&object, "store", cli_json_text(job->away.store));
        return cli_print_json(object);
    }
    puts(job->away.id);
    return SHOAL_OK;
}

/* Whoever looks after the workers of a detached job is `shoal job resume` in a session of its own. */
static int start_supervisor(const cli_job *job, const cli_jobs *jobs, const cli_run_settings *run,
                            const cli_workers_settings *settings)
{
    char threads[24], memory[24], patience[32];
    char *log = NULL;
    snprintf(threads, sizeof threads, "%lld", (long long)run->threads);
    snprintf(memory, sizeof memory, "%lld", (long long)settings->worker_memory);
    snprintf(patience, sizeof patience, "%.17g", patience_of(settings));
    const char *arguments[LAUNCH_ARGUMENTS_MOST + 1] = {"job",
                                                        "resume",
                                                        job->away.id,
                                                        "--store",
                                                        jobs->url,
                                                        "--roles",
                                                        settings->roles ? settings->roles : "all",
                                                        "--kernel",
                                                        run->kernel,
                                                        "--patience",
                                                        patience,
                                                        "--quiet",
                                                        "--as-scaled"};
    int count = 13;
    for (int i = 0; i < settings->workers.count; i++) {
        arguments[count++] = "--workers";
        arguments[count++] = settings->workers.text[i];
    }
    if (settings->ssh) {
        arguments[count++] = "--ssh";
        arguments[count++] = settings->ssh;
    }
    if (settings->allow_code) {
        arguments[count++] = "--allow-code";
        arguments[count++] = settings->allow_code;
    }
    if (settings->data_root) {
        arguments[count++] = "--data-root";
        arguments[count++] = settings->data_root;
    }
    if (settings->write_outputs)
        arguments[count++] = "--write-outputs";
    if (run->threads > 0) {
        arguments[count++] = "--threads";
        arguments[count++] = threads;
    }
    if (settings->worker_memory > 0) {
        arguments[count++] = "--worker-memory";
        arguments[count++] = memory;
    }
    int status = cli_jobs_file_path(&log, job->away.id, "log");
    if (status == SHOAL_OK)
        status = launch_detached(arguments, log);
    base_free(&log);
    return status;
}

/* Workers from elsewhere write results to the store alone. */
static void say_outputs_wait(const following *self)
{
    char *command = NULL;
    if (cli_jobs_command(&command, self->jobs, "resume", self->id) == SHOAL_OK)
        fprintf(stderr, "outputs are written here by `%s` once the job is done\n", command);
    base_free(&command);
}

static int detach(cli_job *job, cli_jobs *jobs, const cli_run_settings *run, const cli_workers_settings *settings,
                  const cli_print_settings *print, bool has_outputs)
{
    job->away.detached = true;
    following self = {.jobs = jobs, .id = job->away.id, .settings = settings};
    launch_ask ask;
    int status = launch_ask_for(&ask, &settings->workers, NULL, 0);
    self.count = ask.workers;
    if (status == SHOAL_OK)
        status = forget_scale(&self);
    if (status == SHOAL_OK && settings->workers.count > 0)
        status = start_supervisor(job, jobs, run, settings);
    if (status == SHOAL_OK && settings->workers.count == 0 && has_outputs && !print->quiet)
        say_outputs_wait(&self);
    return status == SHOAL_OK ? print_detached(job, print) : status;
}

static bool is_any_written(const cli_file *outputs)
{
    while (outputs->name && !outputs->path)
        outputs++;
    return outputs->name != NULL;
}

/* A detached job's outputs are written by a process that has none of this one's standard streams. */
static int check_detached_outputs(const cli_file *outputs)
{
    for (; outputs->name; outputs++)
        if (outputs->path && base_output_standard(outputs->path) >= 0)
            return shoal_fail(SHOAL_USAGE, "%s %s: a job that runs on with --detach has no standard output",
                              outputs->name, outputs->path);
    return SHOAL_OK;
}

/* ---- submitting -------------------------------------------------------------------------------------------------- */

/* What a job is known by again: before there is one, so that none is left without. */
typedef struct submitting {
    cli_job *job;
    const char *asked;
} submitting;

static int note_made(void *context, const char *id, const char *spec)
{
    const submitting *self = context;
    snprintf(self->job->away.spec, sizeof self->job->away.spec, "%s", spec);
    (void)cli_wish_write(id, spec, self->asked); /* where it can't be kept, resume asks */
    return SHOAL_OK;
}

static int submit(cli_job *job, const cli_jobs *jobs, const cli_workers_wish *wish, const cli_run_settings *run,
                  const cli_workers_settings *settings)
{
    char *text = NULL;
    char id[SHOAL_JOB_ID_BYTES];
    launch_ask ask;
    const char *scheme = shoal_store_describe(jobs->store).scheme;
    int status = launch_ask_for(&ask, &settings->workers, scheme, run->threads);
    if (status < 0)
        return status;
    status = make_settings(&text, wish, settings, job->algorithm);
    if (status == SHOAL_OK)
        status = job_setup_id(id, settings->name ? settings->name : job->algorithm->name);
    if (status < 0) {
        base_free(&text);
        return status;
    }
    submitting made = {.job = job, .asked = text};
    shoal_job_options options = {.id = id,
                                 .made = note_made,
                                 .made_context = &made,
                                 .slices = settings->slices,
                                 .workers = ask.slots,
                                 .far = ask.far,
                                 .code = wish->code,
                                 .codes = wish->codes,
                                 .reduce = settings->reduce,
                                 .lease = settings->lease,
                                 .keep_rounds = settings->keep_rounds,
                                 .rows_per_grain = run->rows_per_grain,
                                 .kernel = run->kernel,
                                 .settings = text,
                                 .stop = cli_signals_stop()};
    cli_progress_say(&job->progress, "submitting the job");
    cli_signals_allow_stop(true);
    status =
        shoal_job_submit(job->away.id, jobs->store, job->algorithm, wish->config, job->data, job->weights, &options);
    cli_signals_allow_stop(false);
    if (status < 0 && !job->away.id[0])
        cli_jobs_forget(id);
    base_free(&text);
    status = blame_option(status);
    if (status == SHOAL_INVALID && !strstr(shoal_error(), job->data_name)) /* a learner sees rows, not files */
        status = shoal_fail(status, "%s: %s", job->data_name, shoal_error());
    return status;
}

int cli_workers_run(cli_job *job, const cli_workers_wish *wish, const cli_run_settings *run,
                    const cli_workers_settings *settings, const cli_print_settings *print)
{
    const cli_jobs_settings where = {.store = settings->store, .patience = fmin(settings->patience, 60)};
    cli_jobs jobs = {0};
    cli_progress_say(&job->progress, "opening the store");
    int status = settings->detach ? check_detached_outputs(wish->outputs) : SHOAL_OK;
    if (status == SHOAL_OK)
        status = cli_jobs_open(&jobs, &where, CLI_JOBS_CREATE);
    if (status < 0) {
        json_decref(wish->more);
        return status;
    }
    job->away.keep = settings->store != NULL || settings->detach;
    job->away.begun = base_seconds();
    status = base_copy_text(&job->away.store, jobs.url);
    if (status == SHOAL_OK)
        status = submit(job, &jobs, wish, run, settings);
    if (status == SHOAL_STOPPED && job->away.id[0]) {
        const following self = {.jobs = &jobs, .id = job->away.id, .settings = settings};
        cli_progress_clear(&job->progress);
        status = say_stopped(&self, "stopped while rows were uploaded");
    }
    if (status == SHOAL_OK)
        status = settings->detach ? detach(job, &jobs, run, settings, print, is_any_written(wish->outputs))
                                  : follow_job(job, &jobs, run, settings, print, wish, wish->trace);
    cli_jobs_close(&jobs);
    if (status == SHOAL_OK && !settings->detach)
        cli_predicted_note(job, wish->config);
    return status;
}

int cli_workers_resume(cli_job *job, cli_jobs *jobs, const cli_run_settings *run, const cli_workers_settings *settings,
                       const cli_print_settings *print, const cli_trace_settings *trace)
{
    job->away.keep = true;
    job->away.resumed = true;
    base_free(&job->away.store);
    int status = base_copy_text(&job->away.store, jobs->url);
    if (status < 0)
        return status;
    return settings->detach ? detach(job, jobs, run, settings, print, false)
                            : follow_job(job, jobs, run, settings, print, NULL, trace);
}

/* ---- afterwards -------------------------------------------------------------------------------------------------- */

static int say_result_is_there(const cli_job *job, int failure)
{
    const cli_jobs jobs = {.url = job->away.store, .named = true};
    char *command = NULL, *why = NULL;
    if (base_copy_text(&why, shoal_error()) == SHOAL_OK &&
        cli_jobs_command(&command, &jobs, "result", job->away.id) == SHOAL_OK)
        failure = shoal_fail(failure, "%s; job %s still has the result: `%s`", why, job->away.id, command);
    base_free(&command);
    base_free(&why);
    return failure;
}

int cli_workers_close(cli_job *job, int status)
{
    const cli_jobs_settings where = {.store = job->away.store};
    cli_jobs jobs;
    if (!job->away.id[0] || job->away.detached)
        return status;
    if (status < 0)
        return say_result_is_there(job, status);
    if (job->away.keep)
        return status;
    int removed = cli_jobs_open(&jobs, &where, CLI_JOBS_WRITE);
    if (removed == SHOAL_OK) {
        removed = shoal_job_remove(jobs.store, job->away.id, cli_jobs_deadline(&jobs));
        if (removed == SHOAL_OK)
            cli_jobs_forget(job->away.id);
        cli_jobs_close(&jobs);
    }
    return removed < 0 ? removed : status;
}
