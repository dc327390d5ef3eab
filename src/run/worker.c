/* Being a worker.  See worker.h.
 *
 * One thread receives signals, and waits for them and for the notice that the machine is about to go; all others block
 * them.  It tells the worker to leave and, if that takes too long, ends the process: other workers do what is left. */
#include "worker.h"

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/hex.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/pool.h"
#include "base/secret.h"
#include "base/spawn.h"
#include "engine/store/job_admin.h"
#include "engine/store/job_roots.h"
#include "kernel/device/kernel_device.h"
#include "kernel/kernel.h"
#include "learn/face.h"
#include "launch/cloud/notice.h"
#include "learn/module.h"
#include "kept_request.h"
#include "request.h"
#include "task_module.h"
#include "task_program.h"

static const double LEAVE_SECONDS = 0.9;                   /* from the order to leave to the end of the process */
static const double NOTICE_EVERY = 1, NOTICE_LONGEST = 10; /* seconds between two looks; that a command may take */

static const shoal_option work_rows[] = {
    {"job", 'j', SHOAL_OPTION_TEXT, offsetof(run_worker_options, job), "ID",
     .help = "serve only this job, and end with it (default: all jobs of the store, one after another)"},
    {"slots", 0, SHOAL_OPTION_COUNT, offsetof(run_worker_options, slots), "N",
     .help = "number of threads, and the worker's share of the work (default: all cores this process may use)",
     .least = 1, .most = 4096},
    {"memory", 0, SHOAL_OPTION_BYTES, offsetof(run_worker_options, memory), "BYTES",
     .help =
         "memory it may use, such as 4GiB; jobs that need more are refused (default: three quarters of the machine's "
         "memory, or of what its control group allows if that is less)",
     .least = RUN_WORKER_MEMORY_LEAST},
    {"roles", 0, SHOAL_OPTION_TEXT, offsetof(run_worker_options, roles), "ROLES",
     .help = "what it does: map, reduce, last, or several of these, separated by "
             "commas",
     .fallback = "map,reduce,last"},
    {"idle", 0, SHOAL_OPTION_REAL, offsetof(run_worker_options, idle), "SECONDS",
     .help = "exit after SECONDS without a job (default: never)", .least = 0.001, .most = SHOAL_JOB_PATIENCE_MOST},
    {"patience", 0, SHOAL_OPTION_REAL, offsetof(run_worker_options, patience), "SECONDS",
     .help = "exit after SECONDS without the store (default: 300)", .least = 0.1, .most = SHOAL_JOB_PATIENCE_MOST},
    {"notice", 0, SHOAL_OPTION_TEXT, offsetof(run_worker_options, notice), "CLOUD|FILE|COMMAND",
     .help = "leave when the machine is about to be taken away: as the metadata service of aws, azure or gcp says, or "
             "of whichever cloud this is (auto); when this file appears; or when this command, run once per second, "
             "exits with 0"},
    {"kernel", 0, SHOAL_OPTION_TEXT, offsetof(run_worker_options, kernel), "NAME",
     .help = "instructions to compute with: auto, portable, avx2, avx512 or vnni", .fallback = "auto"},
    {"device", 0, SHOAL_OPTION_TEXT, offsetof(run_worker_options, device), "NAME",
     .help = "what to compute on: auto, cpu, cuda or cuda:N", .fallback = "auto"},
    {"allow-code", 0, SHOAL_OPTION_TEXT, offsetof(run_worker_options, allow_code), "SHA256,...",
     .help = "serve jobs that bring code if everything they bring has one of these hashes, which shoal job show prints "
             "(default: none)"},
    {"task-key", 0, SHOAL_OPTION_TEXT, offsetof(run_worker_options, task_key), "FILE",
     .help = "run the tasks of clients whose key is in this file, as 64 hexadecimal digits (default: run no tasks)"},
    {"quiet", 'q', SHOAL_OPTION_FLAG, offsetof(run_worker_options, quiet), NULL, .help = "print only errors"},
    {0},
};
static const shoal_option data_rows[] = {
    {"cache", 0, SHOAL_OPTION_TEXT, offsetof(run_worker_options, cache), "FOLDER",
     .help = "cache fetched rows in this folder, for all workers of this machine, or 'none' (default: ~/.cache/shoal)"},
    {"cache-size", 0, SHOAL_OPTION_BYTES, offsetof(run_worker_options, cache_bytes), "BYTES",
     .help = "maximum size of the cache (default: a tenth of the free space on its disk)", .least = 1},
    {"data-root", 0, SHOAL_OPTION_LIST, offsetof(run_worker_options, data_roots), "FOLDER|URL,...",
     .help =
         "jobs may read files and folder stores of this machine that are below these folders, and other stores that "
         "are below these URLs; may be given several times (default: nothing but the store itself)"},
    {0},
};
static const shoal_option launch_rows[] = {
    {"spec", 0, SHOAL_OPTION_TEXT, offsetof(run_worker_options, spec), "SHA256",
     .help = "serve the job only if its spec has this hash"},
    {"data-store", 0, SHOAL_OPTION_TEXT, offsetof(run_worker_options, data_url), "URL",
     .help = "read the job's rows from this store instead of the one it names"},
    {"parent", 0, SHOAL_OPTION_COUNT, offsetof(run_worker_options, parent), "PID",
     .help = "end when this process ends, which must be the one that started the worker", .least = 1},
    {"id", 0, SHOAL_OPTION_TEXT, offsetof(run_worker_options, id), "HEX",
     .help = "the worker's number, 16 hexadecimal digits (default: random)"},
    {0},
};

const shoal_option *const run_worker_work_options = work_rows, *const run_worker_data_options = data_rows,
                          *const run_worker_launch_options = launch_rows;

/* ---- settings ---------------------------------------------------------------------------------------------------- */

static int parse_roles(unsigned *out, const char *text)
{
    static const struct {
        const char *name;
        unsigned role;
    } known[] = {
        {"map", SHOAL_ROLE_MAP}, {"reduce", SHOAL_ROLE_REDUCE}, {"last", SHOAL_ROLE_LAST}, {"all", SHOAL_ROLE_ALL}};
    *out = 0;
    for (const char *at = text; *out == 0 || *at;) {
        size_t length = strcspn(at, ","), i = 0;
        while (i < 4 && (strlen(known[i].name) != length || strncmp(known[i].name, at, length) != 0))
            i++;
        if (i == 4)
            return shoal_fail(SHOAL_USAGE, "--roles: '%s' should be some of map, reduce and last, separated by commas",
                              text);
        *out |= known[i].role;
        at += length + (at[length] == ',');
    }
    return SHOAL_OK;
}

static int parse_hex(uint64_t *out, const char *text)
{
    if (!base_hex_is(text, 16))
        return shoal_fail(SHOAL_USAGE, "--id: '%s' is not 16 hexadecimal digits", text);
    *out = strtoull(text, NULL, 16);
    return SHOAL_OK;
}

static int check_hash(const char *text)
{
    if (!base_hex_is(text, 64))
        return shoal_fail(SHOAL_USAGE, "--spec: '%s' is not a SHA-256 in hexadecimal digits", text);
    return SHOAL_OK;
}

/* All values as one list; NULL for none. */
static int join_roots(char **out, const shoal_texts *given)
{
    job_roots *roots = NULL;
    int status = SHOAL_OK;
    for (int i = 0; i < given->count && status == SHOAL_OK; i++) {
        char *longer = NULL;
        status = base_format(&longer, "%s%s%s", *out ? *out : "", *out ? "," : "", given->text[i]);
        base_free(out);
        *out = longer;
    }
    if (status == SHOAL_OK)
        status = job_roots_new(&roots, *out); /* so that a wrong one is reported before there is a job */
    job_roots_free(&roots);
    return status;
}

/* Memory that the options point to, apart from the command line. */
typedef struct made_texts {
    char *cache, *roots;
    base_secret *task_key;
} made_texts;

static int make_options(shoal_worker_options *out, const run_worker_options *work, made_texts *texts)
{
    const kernel_set *set = NULL;
    kernel_device *device = NULL;
    int status = parse_roles(&out->roles, work->roles);
    if (status == SHOAL_OK)
        status = kernel_choose(&set, work->kernel);
    if (status == SHOAL_OK && work->device) /* one that is named must be there, whatever jobs there will be */
        status = kernel_device_choose(&device, work->device);
    if (status == SHOAL_OK && work->id)
        status = parse_hex(&out->id, work->id);
    if (status == SHOAL_OK && work->spec)
        status = check_hash(work->spec);
    if (status == SHOAL_OK && work->allow_code)
        status = run_check_hashes(work->allow_code);
    if (status == SHOAL_OK && work->task_key)
        status = run_read_task_key(&texts->task_key, work->task_key);
    if (status == SHOAL_OK)
        status = join_roots(&texts->roots, &work->data_roots);
    if (status == SHOAL_OK)
        status = work->cache
                     ? base_copy_text(&texts->cache, work->cache)
                     : base_user_path(&texts->cache, BASE_CACHE, NULL, NULL); /* a user without a home keeps nothing */
    out->job = work->job;
    out->spec = work->spec;
    out->slots = (int)work->slots;
    out->memory = work->memory > 0 ? work->memory : base_memory_share(1);
    base_memory_hold(out->memory + out->memory / 4); /* jobs need little beyond their plan, unless they are an attack */
    out->kernel = work->kernel;
    out->device = work->device;
    out->cache = texts->cache && strcmp(texts->cache, "none") != 0 ? texts->cache : NULL;
    out->cache_bytes = work->cache_bytes;
    out->data_root = texts->roots;
    out->data_url = work->data_url;
    out->allow_code = work->allow_code;
    out->load = learn_module_load;
    out->load_tasks = run_load_tasks;
    out->functions = work->functions ? work->functions : run_task_functions;
    out->tasks_over = run_task_programs_end;
    out->task_key = texts->task_key ? (const unsigned char *)base_secret_text(texts->task_key) : NULL;
    out->idle = work->idle;
    out->patience = work->patience;
    return status;
}

/* ---- being told to go -------------------------------------------------------------------------------------------- */

typedef struct watch {
    shoal_worker *worker;
    const char *notice;
    void (*log)(void *context, const char *line);
    pid_t parent;        /* that it ends with; 0 for none */
    cloud_notice *cloud; /* the notice is what a cloud says; NULL otherwise */
    bool is_file;        /* the notice is a file that appears */
    pid_t command;       /* that runs now; 0 for none */
    double asked;        /* when the notice was last looked for */
    double leaving;      /* when the worker was told to leave; 0 before */
    atomic_bool over;    /* the worker is done */
    pthread_t thread;
} watch;

static void wanted_signals(sigset_t *out)
{
    sigemptyset(out);
    sigaddset(out, SIGINT);
    sigaddset(out, SIGTERM);
    sigaddset(out, SIGHUP);
    sigaddset(out, SIGUSR1); /* the worker is done: stop waiting */
}

/* An absolute path that is not a program is a file to wait for. */
static bool is_notice_file(const char *notice)
{
    struct stat about;
    if (notice[0] != '/' || strpbrk(notice, " \t\n"))
        return false;
    return stat(notice, &about) < 0 || !S_ISREG(about.st_mode) || access(notice, X_OK) < 0;
}

static void start_command(watch *self)
{
    if (base_spawn_shell(&self->command, self->notice,
                         &(base_spawning){.stream = {0, 1, 2}, .group = BASE_GROUP_OWN}) != 0)
        self->command = 0;
}

static void end_command(watch *self)
{
    if (self->command == 0)
        return;
    kill(-self->command, SIGKILL); /* the group, which is the command's own */
    base_wait(self->command, NULL);
    self->command = 0;
}

static bool command_says_so(watch *self)
{
    int status = 0;
    pid_t ended = self->command ? waitpid(self->command, &status, WNOHANG) : 0;
    if (self->command && ended == 0) {
        if (base_seconds() - self->asked > NOTICE_LONGEST)
            end_command(self);
        return false;
    }
    bool yes = self->command && ended == self->command && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (self->command) {
        self->command = 0;
        self->asked = base_seconds();
        return yes;
    }
    if (base_seconds() - self->asked >= NOTICE_EVERY) {
        self->asked = base_seconds();
        start_command(self);
    }
    return false;
}

/* Why the machine goes; NULL: it stays. */
static const char *look_for_notice(watch *self)
{
    static const char usual[] = "the machine is about to go";
    if (self->cloud)
        return cloud_notice_given(self->cloud);
    if (!self->notice)
        return NULL;
    if (!self->is_file)
        return command_says_so(self) ? usual : NULL;
    if (base_seconds() - self->asked < NOTICE_EVERY)
        return NULL;
    self->asked = base_seconds();
    return access(self->notice, F_OK) == 0 ? usual : NULL;
}

static void leave_service(watch *self, const char *why)
{
    if (self->leaving == 0)
        self->leaving = base_seconds();
    shoal_worker_leave(self->worker, why);
}

static const char *signal_name(int number)
{
    return number == SIGINT ? "SIGINT" : number == SIGHUP ? "SIGHUP" : "SIGTERM";
}

static void *watch_signals(void *context)
{
    watch *self = context;
    const struct timespec soon = {.tv_nsec = 50 * 1000 * 1000}, often = {.tv_nsec = 200 * 1000 * 1000},
                          later = {.tv_sec = 5};
    sigset_t wanted;
    wanted_signals(&wanted);
    while (!atomic_load(&self->over)) {
        bool close = self->notice || self->leaving > 0;
        const char *why = NULL;
        int number = sigtimedwait(&wanted, NULL, close ? &soon : self->parent ? &often : &later);
        if (self->parent && getppid() != self->parent)
            _exit(1); /* killed: nobody waits for what this worker holds, and its store is gone */
        if (number > 0 && number != SIGUSR1)
            leave_service(self, signal_name(number));
        else if (self->leaving == 0 && (why = look_for_notice(self)))
            leave_service(self, why);
        if (self->leaving > 0 && base_seconds() - self->leaving > LEAVE_SECONDS) {
            end_command(self);
            _exit(0); /* the store does not answer: others find out when the lease ends */
        }
    }
    end_command(self);
    return NULL;
}

/* Before any thread runs, so that all have these signals blocked. */
static void block_signals(void)
{
    sigset_t wanted;
    wanted_signals(&wanted);
    pthread_sigmask(SIG_BLOCK, &wanted, NULL);
    signal(SIGPIPE, SIG_IGN); /* that nobody reads the log any more is no reason to stop */
}

static int start_watch(watch *self)
{
    int status = SHOAL_OK;
    if (self->notice && cloud_notice_is_known(self->notice))
        status = cloud_notice_start(&self->cloud, self->notice, self->log, NULL);
    self->is_file = self->notice && !self->cloud && is_notice_file(self->notice);
    self->asked = -NOTICE_EVERY;
    int error = status == SHOAL_OK ? pthread_create(&self->thread, NULL, watch_signals, self) : 0;
    if (error != 0) {
        cloud_notice_stop(&self->cloud);
        status = shoal_fail_errno(SHOAL_SYSTEM, error, "can't start a thread");
    }
    return status;
}

static void stop_watch(watch *self)
{
    atomic_store(&self->over, true);
    pthread_kill(self->thread, SIGUSR1);
    pthread_join(self->thread, NULL);
    cloud_notice_stop(&self->cloud);
}

/* ---- working ----------------------------------------------------------------------------------------------------- */

/* A user who started a worker for one job is told if the job failed. */
static int judge_job(shoal_store *store, const shoal_worker_options *options)
{
    shoal_job *job = NULL;
    int status = SHOAL_OK;
    if (!options->job || options->spec || shoal_job_describe(&job, store, options->job, 0, shoal_after(5)) < 0)
        return SHOAL_OK;
    if (job->state == SHOAL_JOB_FAILED)
        status = shoal_fail(SHOAL_INVALID, "job %s failed: %s", job->id, job->message ? job->message : "unknown cause");
    shoal_job_free(&job);
    return status;
}

/* A removed job has ended like any other; if the job that a worker was started for is not there, the store has
 * forgotten it, and it will be put there again. */
static int judge_end(run_worker_end *end, shoal_store *store, const shoal_worker_options *options, int status)
{
    bool gone = false;
    char *why = NULL;
    *end = status >= 0 ? RUN_WORKER_DONE : RUN_WORKER_FAILED;
    if (status >= 0)
        return status;
    int kept = base_copy_text(&why, shoal_error());
    if (status == SHOAL_ABSENT && options->job && kept == SHOAL_OK &&
        job_is_gone(&gone, store, options->job, shoal_after(5)) == SHOAL_OK && (gone || options->spec))
        *end = gone ? RUN_WORKER_REMOVED : RUN_WORKER_MAY_GO_ON;
    else if (status == SHOAL_STOPPED || status == SHOAL_AGAIN || status == SHOAL_UNKNOWN)
        *end = RUN_WORKER_MAY_GO_ON;
    status = shoal_fail(status, "%s", why ? why : "out of memory");
    base_free(&why);
    return status;
}

static int work_on_jobs(run_worker_end *end, shoal_store *store, const shoal_worker_options *options,
                        const run_worker_options *work)
{
    watch watch = {.notice = work->notice, .log = options->log, .parent = (pid_t)work->parent};
    int status = shoal_worker_new(&watch.worker, store, options);
    if (status < 0)
        return status;
    status = start_watch(&watch);
    if (status == SHOAL_OK) {
        status = shoal_worker_run(watch.worker);
        stop_watch(&watch);
        if (status == SHOAL_STOPPED && watch.leaving > 0)
            status = SHOAL_OK;
        else if (status == SHOAL_OK)
            status = judge_job(store, options);
    }
    shoal_worker_free(&watch.worker);
    return judge_end(end, store, options, status);
}

/* So that a user whose worker has nothing to do sees where it looks. */
static void say_serving(const shoal_worker_options *options, const char *url)
{
    char *line = NULL;
    if (options->log && base_format(&line, "serves the jobs of %s", url) == SHOAL_OK)
        options->log(options->log_context, line);
    base_free(&line);
}

int run_worker(run_worker_end *end, const run_worker_options *work, run_jobs_settings where,
               void (*log)(void *context, const char *line))
{
    shoal_worker_options options = {.algorithms = learn_algorithms(), .load = learn_module_load, .log = log};
    char id[SHOAL_JOB_ID_BYTES];
    made_texts texts = {0};
    run_jobs jobs = {0};
    *end = RUN_WORKER_FAILED;
    if (work->parent > 0) /* also for one that is stopped, or has not looked yet */
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (work->parent > 0 && getppid() != work->parent)
        return shoal_fail(SHOAL_USAGE, "--parent %" PRId64 " is not the process that started this worker, or has ended",
                          work->parent);
    block_signals();
    int status = make_options(&options, work, &texts);
    if (work->patience > 0 && work->patience < where.patience)
        where.patience = work->patience; /* also for the first request */
    if (status == SHOAL_OK)
        status = run_jobs_open(&jobs, &where, work->job ? RUN_JOBS_WRITE : RUN_JOBS_CREATE);
    if (status == SHOAL_OK && options.job && !options.spec) { /* a caller that knows the hash knows the whole name */
        status = run_jobs_find(id, &jobs, options.job);
        options.job = id;
    }
    if (status == SHOAL_OK && !options.job)
        say_serving(&options, jobs.url);
    if (status == SHOAL_OK)
        status = work_on_jobs(end, jobs.store, &options, work);
    run_jobs_close(&jobs);
    base_free(&texts.cache);
    base_free(&texts.roots);
    base_secret_free(&texts.task_key);
    return status;
}
