/* Workers for a client of tasks.  See shoal/run.h.
 *
 * A thread looks after them.  A worker that died while it ran tasks is started again however often that happens, since
 * it is for the tasks' results to say which of them killed it; one that dies before it has ever joined is given up as
 * those of jobs are. */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <shoal/run.h>

#include "base/hex.h"
#include "base/memory.h"
#include "base/secret.h"
#include "base/world.h"
#include "engine/store/job_keys.h"
#include "launch/launch.h"
#include "run/tasks.h"
#include "process.h"

static const double LOOK_EVERY = 0.05, STOP_SECONDS = 2;

struct shoal_task_workers {
    shoal_tasks *tasks;
    shoal_task_workers_options options;
    char *url, *shared;
    launch_specs specs;
    base_secret *key; /* in hex */
    launch_group *group;
    base_thread *thread;
    _Atomic uint32_t stops;
    atomic_llong running;
    int64_t ended;    /* tasks, when that was last looked at */
    bool joined_died; /* a worker that had joined has died */
};

/* Others take over what it ran at once. */
static void tell_death(void *context, uint64_t worker, const char *why)
{
    shoal_task_workers *self = context;
    shoal_blob blob = {0};
    job_key key = job_key_worker(shoal_tasks_id(self->tasks), worker);
    (void)why;
    int status = shoal_store_get(shoal_tasks_store(self->tasks), key.text, &blob, shoal_after(2));
    shoal_blob_release(&blob);
    self->joined_died |= status == SHOAL_OK;
    (void)shoal_tasks_worker_died(self->tasks, worker, shoal_after(2));
}

static void pass_on_line(void *context, const char *line)
{
    const shoal_task_workers *self = context;
    if (self->options.say)
        self->options.say(self->options.context, line);
}

static void look_after(void *context)
{
    shoal_task_workers *self = context;
    int status = SHOAL_OK;
    while (!atomic_load(&self->stops)) {
        int64_t ended = shoal_tasks_count(self->tasks).ended;
        if (ended != self->ended || self->joined_died)
            launch_progress(self->group);
        self->ended = ended;
        self->joined_died = false;
        if (status == SHOAL_OK && (status = launch_tick(self->group)) < 0 && !self->joined_died)
            shoal_tasks_fail(self->tasks, status, shoal_error());
        atomic_store(&self->running, launch_running(self->group));
        base_wait_word(&self->stops, 0, base_time_after(base_now(), LOOK_EVERY));
    }
}

static int ask_for(launch_ask *out, const launch_specs *specs, const char *scheme, int64_t threads)
{
    int status = launch_ask_for(out, specs, scheme, threads);
    if (status == SHOAL_OK && out->least > 0)
        status = shoal_fail(SHOAL_USAGE, "--workers: a range of workers is for jobs with --deadline or --budget; for "
                                         "tasks it is one number");
    return status;
}

int run_check_task_workers(const shoal_texts *specs)
{
    launch_ask ask = {0};
    return ask_for(&ask, specs, NULL, 0);
}

static int start_group(shoal_task_workers *self)
{
    const shoal_task_workers_options *options = &self->options;
    const char *scheme = shoal_store_describe(shoal_tasks_store(self->tasks)).scheme;
    launch_ask ask = {0};
    int status = ask_for(&ask, &self->specs, scheme, options->threads);
    if (status == SHOAL_OK && ask.outlive)
        status = shoal_fail(SHOAL_USAGE,
                            "workers of Slurm that reach %s by themselves can't be given the key of tasks: "
                            "start `shoal worker --task-key FILE` there",
                            self->url);
    if (status < 0)
        return status;
    const launch_order order = {.store_url = self->url,
                                .store = shoal_tasks_store(self->tasks),
                                .id = shoal_tasks_id(self->tasks),
                                .spec = shoal_tasks_spec(self->tasks),
                                .task_key = base_secret_text(self->key),
                                .shared = self->shared,
                                .kernel = "auto",
                                .threads = options->threads,
                                .memory = options->memory,
                                .ssh = options->ssh,
                                .program = options->program,
                                .bound = true,
                                .gone = tell_death,
                                .say = pass_on_line,
                                .context = self};
    return launch_new(&self->group, &ask, &order);
}

static int copy_specs(shoal_task_workers *self)
{
    int status = SHOAL_OK;
    for (int i = 0; self->options.workers && self->options.workers[i] && status == SHOAL_OK; i++) {
        if (i == SHOAL_TEXTS_MOST)
            return shoal_fail(SHOAL_USAGE, "there can be %d specs of workers at most", SHOAL_TEXTS_MOST);
        status = base_copy_text((char **)&self->specs.text[i], self->options.workers[i]);
        self->specs.count += status == SHOAL_OK;
    }
    if (status == SHOAL_OK && self->specs.count == 0)
        status = shoal_fail(SHOAL_USAGE, "no workers are named: \"4\", say, or \"ssh:HOST:4\"");
    return status;
}

static void release(shoal_task_workers **inout)
{
    shoal_task_workers *self = *inout;
    launch_free(&self->group);
    for (int i = 0; i < self->specs.count; i++)
        base_free((char **)&self->specs.text[i]);
    base_free(&self->url);
    base_free(&self->shared);
    base_secret_free(&self->key);
    base_free(inout);
}

int shoal_task_workers_start(shoal_task_workers **out, shoal_tasks *tasks, const char *url,
                             const shoal_task_workers_options *options)
{
    shoal_task_workers *self = NULL;
    char key[2 * SHOAL_TASK_KEY_BYTES + 1];
    *out = NULL;
    int status = run_check_program(options->program);
    if (status == SHOAL_OK)
        status = run_ask_program(options->program);
    if (status == SHOAL_OK)
        status = base_alloc(&self, 1, sizeof *self, "workers");
    if (status < 0)
        return status;
    self->tasks = tasks;
    self->options = *options;
    base_hex_write(key, shoal_tasks_key(tasks), SHOAL_TASK_KEY_BYTES);
    status = base_secret_set(&self->key, key, sizeof key - 1);
    base_wipe(key, sizeof key);
    if (status == SHOAL_OK)
        status = base_copy_text(&self->url, url);
    if (status == SHOAL_OK && options->shared)
        status = base_copy_text(&self->shared, options->shared);
    if (status == SHOAL_OK)
        status = copy_specs(self);
    if (status == SHOAL_OK)
        status = start_group(self);
    self->options.workers = NULL; /* the caller's; they were copied */
    if (status == SHOAL_OK && (status = base_thread_start(&self->thread, look_after, self)) < 0)
        launch_stop(self->group, 0);
    if (status < 0)
        release(&self);
    *out = self;
    return status;
}

int64_t shoal_task_workers_running(shoal_task_workers *self)
{
    return atomic_load(&self->running);
}

void shoal_task_workers_stop(shoal_task_workers **inout)
{
    shoal_task_workers *self = *inout;
    if (!self)
        return;
    atomic_store(&self->stops, 1);
    base_wake_word(&self->stops, INT_MAX);
    base_thread_join(&self->thread);
    launch_stop(self->group, STOP_SECONDS);
    release(inout);
}
