/* Threads that copy, and the list of what they have to copy; how one is copied is in transfer_copy.c.  See
 * transfer_internal.h. */
#include "transfer_internal.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/pool.h"

/* With what may wait, the total is known early on, and a million names still don't have to fit into memory. */
enum { WAITING_MOST = 1 << 16, STACK_BYTES = 1 << 20, OUT_OF_REACH_LEAST = 3 };
static const double SECONDS_TO_STOP = 1, SECONDS_BETWEEN_PROGRESS = 0.1;

void transfer_free_entry(transfer_entry **inout)
{
    transfer_entry *entry = *inout;
    if (!entry)
        return;
    base_free(&entry->source);
    base_free(&entry->target);
    base_free(inout);
}

static bool was_stopped(const transfer *self)
{
    return self->options->stop && __atomic_load_n(self->options->stop, __ATOMIC_RELAXED);
}

/* ---- counting ---------------------------------------------------------------------------------------------------- */

void transfer_record_failure(transfer *self, int status)
{
    pthread_mutex_lock(&self->lock);
    transfer_report *report = &self->report;
    if (report->failed < TRANSFER_NAMED && base_copy_text(&report->named[report->failed], shoal_error()) < 0)
        report->named[report->failed] = NULL; /* it counts all the same */
    report->failed++;
    self->last_failure = status;
    /* Each was tried for as long as it may be.  When as many as are tried at once have failed so, the next would,
     * too. */
    self->out_of_reach = status == SHOAL_AGAIN ? self->out_of_reach + 1 : 0;
    if (self->out_of_reach >= OUT_OF_REACH_LEAST && self->out_of_reach >= self->options->jobs) {
        self->gave_up = self->stopping = true;
        pthread_cond_broadcast(&self->changed);
    }
    pthread_mutex_unlock(&self->lock);
}

void transfer_add_failure(transfer *self)
{
    transfer_record_failure(self, SHOAL_INVALID);
    pthread_mutex_lock(&self->lock);
    self->report.found++;
    pthread_mutex_unlock(&self->lock);
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */

typedef struct work {
    transfer_entry *entry; /* or */
    large_file *large;
    int64_t piece;
} work;

/* The next piece of a large file that was begun: those come first, so that few are begun at a time. */
static bool take_piece(transfer *self, work *out)
{
    for (large_file *large = self->large; large; large = large->next) {
        if (large->left == 0 || large->status < 0)
            continue;
        while (large->done[large->next_piece])
            large->next_piece++;
        *out = (work){.large = large, .piece = large->next_piece++};
        large->left--;
        large->in_hand++;
        return true;
    }
    return false;
}

static bool take_entry(transfer *self, work *out)
{
    if (!self->first)
        return false;
    *out = (work){.entry = self->first};
    self->first = self->first->next;
    if (!self->first)
        self->last = NULL;
    self->waiting--;
    return true;
}

/* Waits for something to do; false when nothing will come.  A thread at work may begin a large file. */
static bool take_work(transfer *self, work *out)
{
    bool taken = false;
    pthread_mutex_lock(&self->lock);
    while (!self->stopping && !(taken = take_piece(self, out) || take_entry(self, out)) &&
           !(self->closed && self->busy == 0))
        pthread_cond_wait(&self->changed, &self->lock);
    self->busy += taken;
    pthread_cond_broadcast(&self->changed);
    pthread_mutex_unlock(&self->lock);
    return taken;
}

static void *copy_all(void *from_start)
{
    transfer *self = from_start;
    char *buffer = NULL;
    work next = {0};
    bool fine = base_alloc_unset(&buffer, TRANSFER_PIECE, 1, "a transfer") == SHOAL_OK;
    while (fine && take_work(self, &next)) {
        int status = SHOAL_OK;
        if (next.large)
            transfer_copy_piece(self, next.large, next.piece, buffer);
        else
            status = transfer_copy_entry(self, &next.entry, buffer);
        if (status < 0)
            transfer_record_failure(self, status);
        transfer_free_entry(&next.entry);
        pthread_mutex_lock(&self->lock);
        self->busy--;
        pthread_cond_broadcast(&self->changed);
        pthread_mutex_unlock(&self->lock);
    }
    base_free(&buffer);
    pthread_mutex_lock(&self->lock);
    self->alive--;
    self->no_memory |= !fine;
    pthread_cond_broadcast(&self->changed);
    pthread_mutex_unlock(&self->lock);
    return NULL;
}

/* The time this many milliseconds from now, on the clock of the condition variables. */
static struct timespec milliseconds_from_now(long milliseconds)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += milliseconds * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    return until;
}

/* After a stop whatever is in hand may be finished; but a request may hang, also one for a page of names, and then
 * nobody waits for it: what has no final name yet is for the next run to find. */
static void *watch_for_stop(void *from_start)
{
    transfer *self = from_start;
    double stop_at = 0;
    bool told = false;
    pthread_mutex_lock(&self->lock);
    while (!self->over) {
        struct timespec until = milliseconds_from_now(100);
        pthread_cond_timedwait(&self->ended, &self->lock, &until);
        if (!was_stopped(self) || self->over)
            continue;
        self->stopping = true;
        pthread_cond_broadcast(&self->changed);
        stop_at = stop_at > 0 ? stop_at : base_seconds() + SECONDS_TO_STOP;
        if (base_seconds() > stop_at && !told) {
            told = true;
            if (self->options->on_hang)
                self->options->on_hang(self->options->context);
        }
    }
    pthread_mutex_unlock(&self->lock);
    return NULL;
}

/* Signals are for the thread that started the others. */
static int start_threads(transfer *self)
{
    sigset_t stops, callers;
    pthread_attr_t attributes;
    int wanted = (int)self->options->jobs;
    int status = base_alloc(&self->threads, (size_t)wanted, sizeof *self->threads, "threads");
    if (status < 0)
        return status;
    sigemptyset(&stops);
    sigaddset(&stops, SIGINT);
    sigaddset(&stops, SIGTERM);
    sigaddset(&stops, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &stops, &callers);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    pthread_mutex_lock(&self->lock);
    int error = 0;
    while (!error && self->thread_count < wanted) {
        error = pthread_create(&self->threads[self->thread_count], &attributes, copy_all, self);
        self->thread_count += !error;
        self->alive += !error;
    }
    self->watched = pthread_create(&self->watcher, &attributes, watch_for_stop, self) == 0;
    pthread_mutex_unlock(&self->lock);
    pthread_attr_destroy(&attributes);
    pthread_sigmask(SIG_SETMASK, &callers, NULL);
    return self->thread_count > 0 ? SHOAL_OK : shoal_fail_errno(SHOAL_SYSTEM, error, "can't start a thread");
}

int transfer_start(transfer **out, const transfer_options *options, const store_place *to, const char *from_name,
                   const char *to_name)
{
    transfer *self = NULL;
    pthread_condattr_t clock;
    int status = base_alloc(&self, 1, sizeof *self, "a transfer");
    if (status < 0)
        return status;
    self->options = options;
    self->to = to;
    self->started = self->shown = base_seconds();
    pthread_mutex_init(&self->lock, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&self->changed, &clock);
    pthread_cond_init(&self->ended, &clock);
    pthread_condattr_destroy(&clock);
    /* Without a journal, in a home that can't be written to say, everything works; looking takes longer. */
    if (transfer_journal_open(&self->journal, from_name, to_name) < 0)
        self->journal = NULL;
    if (options->on_stoppable)
        options->on_stoppable(options->context, true);
    status = start_threads(self);
    *out = self;
    return status;
}

/* ---- the thread that adds ---------------------------------------------------------------------------------------- */

static void tell_progress(transfer *self)
{
    const transfer_options *options = self->options;
    const transfer_report *report = &self->report;
    double now = base_seconds();
    if (!options->on_progress || now - self->shown < SECONDS_BETWEEN_PROGRESS)
        return;
    self->shown = now;
    transfer_counts so_far = {.files = report->files + report->skipped + report->failed,
                              .files_found = report->found,
                              .bytes = self->moved,
                              .bytes_found = self->found_bytes,
                              .all_found = self->closed,
                              .seconds = now - self->started};
    options->on_progress(options->context, &so_far);
}

/* Waits a while for a change, with the lock held. */
static void wait_a_little(transfer *self)
{
    struct timespec until = milliseconds_from_now(100);
    pthread_cond_timedwait(&self->changed, &self->lock, &until);
    if (was_stopped(self))
        self->stopping = true;
    tell_progress(self);
}

static int copy_entry(transfer_entry **out, const transfer_entry *entry)
{
    transfer_entry *copy = NULL;
    int status = base_alloc(&copy, 1, sizeof *copy, "a transfer");
    if (status < 0)
        return status;
    *copy = *entry;
    copy->next = NULL;
    copy->target = NULL;
    status = base_copy_text(&copy->source, entry->source);
    if (status == SHOAL_OK)
        status = base_copy_text(&copy->target, entry->target);
    if (status < 0)
        transfer_free_entry(&copy);
    *out = copy;
    return status;
}

int transfer_add(transfer *self, const transfer_entry *entry)
{
    transfer_entry *copy = NULL;
    int status = copy_entry(&copy, entry);
    if (status < 0)
        return status;
    pthread_mutex_lock(&self->lock);
    if (was_stopped(self))
        self->stopping = true;
    while (self->waiting >= WAITING_MOST && !self->stopping && self->alive > 0)
        wait_a_little(self);
    bool taken = !self->stopping && self->alive > 0;
    if (taken) {
        *(self->last ? &self->last->next : &self->first) = copy;
        self->last = copy;
        self->waiting++;
        self->report.found++;
        self->found_bytes += copy->size;
        pthread_cond_broadcast(&self->changed);
    }
    tell_progress(self);
    pthread_mutex_unlock(&self->lock);
    if (taken)
        return SHOAL_OK;
    transfer_free_entry(&copy);
    return shoal_fail(SHOAL_STOPPED, "stopped");
}

static void free_transfer(transfer **inout)
{
    transfer *self = *inout;
    while (self->first) {
        transfer_entry *entry = self->first;
        self->first = entry->next;
        transfer_free_entry(&entry);
    }
    while (self->large) {
        large_file *large = self->large;
        self->large = large->next;
        transfer_free_large(&large, true);
    }
    transfer_report_release(&self->report);
    base_free(&self->threads);
    pthread_cond_destroy(&self->changed);
    pthread_cond_destroy(&self->ended);
    pthread_mutex_destroy(&self->lock);
    base_free(inout);
}

/* One line for what became of it. */
static int judge_outcome(const transfer *self, int status)
{
    const transfer_report *report = &self->report;
    if (was_stopped(self))
        return shoal_fail(SHOAL_STOPPED, "stopped after %lld of %lld; run the same command again to continue",
                          (long long)(report->files + report->skipped), (long long)report->found);
    if (self->gave_up && (status == SHOAL_STOPPED || self->first || self->large))
        return shoal_fail(
            SHOAL_AGAIN,
            "gave up after %lld of %lld because nothing gets through; run the same command again to continue",
            (long long)(report->files + report->skipped), (long long)report->found);
    if (self->no_memory && (status == SHOAL_STOPPED || self->first || self->large))
        return shoal_fail(SHOAL_MEMORY, "out of memory for the buffers of a transfer: use fewer --jobs");
    if (status < 0 || report->failed == 0)
        return status;
    if (report->found == 1 && report->named[0])
        return shoal_fail(self->last_failure, "%s", report->named[0]);
    if (report->failed == 1 && report->named[0])
        return shoal_fail(self->last_failure, "%s (the other %lld are done)", report->named[0],
                          (long long)report->found - 1);
    return shoal_fail(SHOAL_INVALID, "%lld of %lld could not be copied", (long long)report->failed,
                      (long long)report->found);
}

int transfer_finish(transfer **inout, int status, transfer_report *report)
{
    transfer *self = *inout;
    char *message = NULL;
    if (!self)
        return status;
    if (status < 0 && base_copy_text(&message, shoal_error()) < 0) /* threads don't change it, but progress might */
        message = NULL;
    pthread_mutex_lock(&self->lock);
    self->closed = true;
    self->stopping |= status < 0;
    pthread_cond_broadcast(&self->changed);
    while (self->alive > 0)
        wait_a_little(self);
    self->over = true;
    pthread_cond_signal(&self->ended);
    pthread_mutex_unlock(&self->lock);
    for (int i = 0; i < self->thread_count; i++)
        pthread_join(self->threads[i], NULL);
    if (self->watched)
        pthread_join(self->watcher, NULL);
    if (self->options->on_stoppable)
        self->options->on_stoppable(self->options->context, false);
    if (message)
        shoal_fail(status, "%s", message);
    base_free(&message);
    status = judge_outcome(self, status);
    self->report.seconds = base_seconds() - self->started;
    transfer_journal_close(&self->journal, status == SHOAL_OK);
    self->report.begun = status != SHOAL_USAGE;
    *report = self->report;
    self->report = (transfer_report){0};
    free_transfer(inout);
    return status;
}

void transfer_report_release(transfer_report *report)
{
    for (int i = 0; i < TRANSFER_NAMED; i++)
        base_free(&report->named[i]);
}
