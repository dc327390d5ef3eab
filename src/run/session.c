/* Calls: a job whose rounds are made by this process, one by one.  See shoal/run.h.
 *
 * Two threads run as long as the session does.  One does what any run on workers does: submits the job, starts workers,
 * looks after them, and waits for the end.  The other leads: it is a worker of the job that neither maps nor reduces,
 * and whose update waits for the next call (learn/exec/exec_calls.h).  Whoever calls sleeps until the second has the
 * answers or the first has ended. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <shoal/run.h>

#include "base/memory.h"
#include "base/pool.h"
#include "base/text.h"
#include "base/world.h"
#include "jobs.h"
#include "learn/exec/exec_calls.h"
#include "request.h"

static const double STOP_EVERY = 0.05, PROGRESS_EVERY = 1; /* seconds between two looks */
enum { LINES_MOST = 64, DOING_BYTES = 256 };

struct shoal_session {
    const shoal_request *asked;
    shoal_request *request; /* a copy of it that is run */
    run_leader leader;
    pid_t owner;
    base_thread *run_thread, *lead_thread;
    shoal_store *store; /* the leader's */
    shoal_worker *worker;
    char id[SHOAL_JOB_ID_BYTES];
    volatile int stop; /* of the run */

    pthread_mutex_t lock; /* of all that follows */
    pthread_cond_t changed;
    int64_t call, answered; /* the last that was made; that has its answers */
    const void *params;
    size_t params_bytes, answers_bytes;
    void *answers;
    bool leads;   /* the leader is at work: there are a store and a job */
    bool awaits;  /* it waits for a call */
    bool closing; /* there will be none */
    bool leaving; /* it is not to wait any more */
    bool over;    /* the run has ended, with `status` and `why` */
    int status;
    char *why;
    /* For the watcher, which is told by who calls. */
    char *line[LINES_MOST];
    int lines;
    char doing[DOING_BYTES];
    bool does_other;
};

static void wait_changed(shoal_session *self, double seconds)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    int64_t nanoseconds = until.tv_nsec + (int64_t)(seconds * 1e9);
    until.tv_sec += nanoseconds / 1000000000;
    until.tv_nsec = nanoseconds % 1000000000;
    pthread_cond_timedwait(&self->changed, &self->lock, &until);
}

/* ---- leading ----------------------------------------------------------------------------------------------------- */

static void take_answers(void *context, int64_t call, void *answers, size_t bytes)
{
    shoal_session *self = context;
    pthread_mutex_lock(&self->lock);
    if (call == self->call && self->answered < call) {
        base_free(&self->answers);
        self->answers = answers;
        self->answers_bytes = bytes;
        self->answered = call;
        answers = NULL;
        pthread_cond_broadcast(&self->changed);
    }
    pthread_mutex_unlock(&self->lock);
    base_free(&answers); /* of a round that was done again */
}

static int await_call(void *context, int64_t call, const void **params, size_t *bytes)
{
    shoal_session *self = context;
    int status = SHOAL_OK;
    pthread_mutex_lock(&self->lock);
    self->awaits = true;
    while (self->call < call && !self->closing && !self->leaving)
        pthread_cond_wait(&self->changed, &self->lock);
    self->awaits = false;
    if (self->leaving)
        status = shoal_fail(SHOAL_STOPPED, "told to leave");
    else if (self->call < call)
        status = SHOAL_ABSENT;
    else if (self->answered >= call) /* its params are gone */
        status = shoal_fail(SHOAL_SYSTEM, "the store has lost call %lld", (long long)call);
    *params = self->params;
    *bytes = self->params_bytes;
    pthread_mutex_unlock(&self->lock);
    return status;
}

static void lead(void *context)
{
    shoal_session *self = context;
    const exec_caller caller = {.context = self, .answered = take_answers, .await = await_call};
    exec_calls_lead(&caller);
    int status = shoal_worker_run(self->worker);
    exec_calls_lead(NULL);
    if (status == SHOAL_OK || status == SHOAL_STOPPED) /* who follows the job knows how it ended */
        return;
    pthread_mutex_lock(&self->lock);
    if (base_copy_text(&self->why, shoal_error()) == SHOAL_OK)
        self->status = status;
    pthread_mutex_unlock(&self->lock);
    self->stop = 1;
}

static int begin_leading(void *context, const char *store_url, const char *id, const char *spec)
{
    static const shoal_algorithm *const led[] = {&exec_calls, NULL};
    shoal_session *self = context;
    const shoal_worker_options options = {
        .algorithms = led, .job = id, .spec = spec, .slots = 1, .roles = SHOAL_ROLE_LAST};
    int status = shoal_store_open(&self->store, store_url, NULL, shoal_after(60));
    if (status == SHOAL_OK)
        status = shoal_worker_new(&self->worker, self->store, &options);
    if (status < 0)
        return status;
    snprintf(self->id, sizeof self->id, "%s", id);
    status = base_thread_start(&self->lead_thread, lead, self);
    pthread_mutex_lock(&self->lock);
    self->leads = status == SHOAL_OK;
    pthread_mutex_unlock(&self->lock);
    return status;
}

static void end_leading(void *context)
{
    shoal_session *self = context;
    pthread_mutex_lock(&self->lock);
    self->leads = false;
    self->leaving = true;
    pthread_cond_broadcast(&self->changed);
    pthread_mutex_unlock(&self->lock);
    shoal_worker_leave(self->worker, "the calls have ended");
    base_thread_join(&self->lead_thread);
}

/* ---- the run ----------------------------------------------------------------------------------------------------- */

static void note_doing(void *context, const char *text)
{
    shoal_session *self = context;
    pthread_mutex_lock(&self->lock);
    snprintf(self->doing, sizeof self->doing, "%s", text ? text : "");
    self->does_other = true;
    pthread_mutex_unlock(&self->lock);
}

static void note_line(void *context, const char *line)
{
    shoal_session *self = context;
    pthread_mutex_lock(&self->lock);
    if (self->lines < LINES_MOST && base_copy_text(&self->line[self->lines], line) == SHOAL_OK)
        self->lines++;
    pthread_mutex_unlock(&self->lock);
}

static void run_job(void *context)
{
    shoal_session *self = context;
    shoal_outcome *outcome = NULL;
    int status = shoal_request_run(&outcome, self->request);
    pthread_mutex_lock(&self->lock);
    if (self->status == SHOAL_OK) { /* otherwise the leader has said why */
        self->status = status;
        if (status < 0)
            (void)base_copy_text(&self->why, shoal_error());
    }
    self->over = true;
    pthread_cond_broadcast(&self->changed);
    pthread_mutex_unlock(&self->lock);
    shoal_outcome_free(&outcome);
}

/* ---- calling ----------------------------------------------------------------------------------------------------- */

/* Tells the watcher what there is to tell.  The lock is not held meanwhile. */
static void tell_watcher(shoal_session *self)
{
    const shoal_watcher *watch = &self->asked->watch;
    char doing[DOING_BYTES], *line[LINES_MOST];
    int lines = self->lines;
    bool does_other = self->does_other;
    memcpy(doing, self->doing, sizeof doing);
    memcpy(line, self->line, sizeof line);
    self->lines = 0;
    self->does_other = false;
    pthread_mutex_unlock(&self->lock);
    if (does_other && watch->doing)
        watch->doing(watch->context, doing[0] ? doing : NULL);
    for (int i = 0; i < lines; i++) {
        if (watch->warn)
            watch->warn(watch->context, line[i]);
        base_free(&line[i]);
    }
    pthread_mutex_lock(&self->lock);
}

/* How far a long call is, by what workers have said of themselves.  The lock is not held meanwhile. */
static void look_at_workers(shoal_session *self)
{
    shoal_job *job = NULL;
    char text[DOING_BYTES];
    int64_t done = 0, working = 0;
    pthread_mutex_unlock(&self->lock);
    int status = shoal_job_describe(&job, self->store, self->id, SHOAL_JOB_ALL_RECORDS, shoal_after(2));
    for (int64_t i = 0; status == SHOAL_OK && job->worker && i < job->workers; i++) {
        done += job->worker[i].maps;
        working += job->worker[i].alive && (job->worker[i].roles & SHOAL_ROLE_MAP);
    }
    if (status == SHOAL_OK) {
        done -= job->round * job->slices; /* of this round */
        done = done < 0 ? 0 : done > job->slices ? job->slices : done;
        snprintf(text, sizeof text, "%lld of %lld parts done, %lld worker%s", (long long)done, (long long)job->slices,
                 (long long)working, base_plural(working));
    }
    shoal_job_free(&job);
    if (status == SHOAL_OK && working > 0)
        note_doing(self, text);
    pthread_mutex_lock(&self->lock);
}

static int fail_over(const shoal_session *self)
{
    if (self->status == SHOAL_OK)
        return shoal_fail(SHOAL_STOPPED, "the calls have ended");
    return shoal_fail(self->status, "%s", self->why ? self->why : "out of memory");
}

static int await_answers(shoal_session *self)
{
    const shoal_watcher *watch = &self->asked->watch;
    double looked = base_seconds();
    while (self->answered < self->call && !self->over) {
        wait_changed(self, STOP_EVERY);
        if (watch->stop && *watch->stop)
            self->stop = 1;
        if (self->lines > 0 || self->does_other)
            tell_watcher(self);
        if (watch->doing && self->leads && base_seconds() - looked > PROGRESS_EVERY) {
            look_at_workers(self);
            looked = base_seconds();
        }
    }
    tell_watcher(self);
    return self->answered == self->call ? SHOAL_OK : fail_over(self);
}

static int check_owner(const shoal_session *self)
{
    return self->owner == getpid() ? SHOAL_OK
                                   : shoal_fail(SHOAL_USAGE,
                                                "these calls are those of process %lld, of which this one was forked: "
                                                "open a session of its own",
                                                (long long)self->owner);
}

int shoal_session_call(shoal_session *self, const void *params, size_t bytes, const void **answers,
                       size_t *answers_bytes)
{
    int status = check_owner(self);
    if (status < 0)
        return status;
    pthread_mutex_lock(&self->lock);
    if (!self->over) {
        self->params = params;
        self->params_bytes = bytes;
        self->call++;
        pthread_cond_broadcast(&self->changed);
        status = await_answers(self);
    } else {
        status = fail_over(self);
    }
    *answers = self->answers;
    *answers_bytes = self->answers_bytes;
    pthread_mutex_unlock(&self->lock);
    return status;
}

/* ---- opening and closing ----------------------------------------------------------------------------------------- */

static int check_request(const shoal_request *request)
{
    if (strcmp(request->face->algorithm->name, shoal_exec.name) != 0)
        return shoal_fail(SHOAL_USAGE, "calls are made of a command, so the request must be one for exec, not %s",
                          request->algorithm->name);
    if (request->workers.workers.count == 0 || request->workers.detach || request->workers.roles)
        return shoal_fail(SHOAL_USAGE, "calls need --workers, and neither --detach nor --roles");
    return SHOAL_OK;
}

/* The same request, told apart by who watches and who leads. */
static int copy_request(shoal_session *self, const shoal_request *request)
{
    size_t size = run_request_size(request->face);
    int status = base_alloc((char **)&self->request, size, 1, "a request");
    if (status < 0)
        return status;
    memcpy(self->request, request, size);
    self->request->algorithm = &exec_calls;
    self->request->leader = &self->leader;
    self->request->watch =
        (shoal_watcher){.context = self, .doing = note_doing, .warn = note_line, .stop = &self->stop};
    return SHOAL_OK;
}

static void release(shoal_session **inout)
{
    shoal_session *self = *inout;
    shoal_worker_free(&self->worker);
    shoal_store_close(&self->store);
    for (int i = 0; i < self->lines; i++)
        base_free(&self->line[i]);
    base_free(&self->answers);
    base_free(&self->why);
    base_free(&self->request);
    pthread_cond_destroy(&self->changed);
    pthread_mutex_destroy(&self->lock);
    base_free(inout);
}

int shoal_session_open(shoal_session **out, const shoal_request *request)
{
    shoal_session *self = NULL;
    pthread_condattr_t clock;
    *out = NULL;
    int status = check_request(request);
    if (status == SHOAL_OK)
        status = base_alloc(&self, 1, sizeof *self, "a session");
    if (status < 0)
        return status;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_mutex_init(&self->lock, NULL);
    pthread_cond_init(&self->changed, &clock);
    pthread_condattr_destroy(&clock);
    self->asked = request;
    self->owner = getpid();
    self->leader = (run_leader){.context = self, .begin = begin_leading, .end = end_leading};
    status = copy_request(self, request);
    if (status == SHOAL_OK)
        status = base_thread_start(&self->run_thread, run_job, self);
    if (status < 0)
        release(&self);
    *out = self;
    return status;
}

void shoal_session_close(shoal_session **inout)
{
    shoal_session *self = *inout;
    *inout = NULL;
    if (!self || check_owner(self) < 0)
        return;
    pthread_mutex_lock(&self->lock);
    self->closing = true;
    if (!self->awaits) /* it is in the middle of something, or has not begun */
        self->stop = 1;
    pthread_cond_broadcast(&self->changed);
    pthread_mutex_unlock(&self->lock);
    base_thread_join(&self->run_thread);
    release(&self);
}
