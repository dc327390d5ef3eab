/* Requests that wait at a server for a change: PIPE_WAIT, and gets that await their key.
 *
 * All servers of one store have a *watch* together.  Whoever changes the store for one of them looks at once who waits
 * for that, at all of them: no other thread need be woken.  What other processes change is noticed by the watch's own
 * thread, which waits for any change of the store, and then asks for each who waits.  Whoever begins to wait is first
 * put among those that wait and then looked at, so no change is missed in between. */
#include <string.h>

#include "base/memory.h"
#include "base/world.h"
#include "store/pipe/pipe_server_internal.h"

static const double LOOK_EVERY = 0.1; /* seconds until the thread that waits sees that it is to end */
static const double LULL =
    0.001; /* seconds between two looks of it while changes are those of servers, which look themselves */

struct pipe_watch {
    struct pipe_watch *next;
    shoal_store *store;
    int users;            /* servers that have it; guarded by watches_lock */
    pthread_mutex_t lock; /* of the list; taken before a server's */
    pipe_server *servers; /* those that are told */
    bool stop;
    base_thread *thread;
    _Atomic uint32_t waits; /* counts those that begin to wait, so that the thread can sleep while there are none */
    _Atomic uint32_t own;   /* counts changes that servers made */
};

static pthread_mutex_t watches_lock = PTHREAD_MUTEX_INITIALIZER; /* taken before a watch's */
static struct pipe_watch *watches;

/* Whether the wait is over: something may have changed, its time has passed, or the store can't tell.  The lock is
 * held. */
static bool is_over(pipe_server *self, pipe_task *task, pipe_answer *answer)
{
    shoal_store *store = self->options.store;
    char full[PIPE_FULL_NAME];
    answer->seen = task->request.call == PIPE_GET ? task->seen : task->request.seen;
    answer->status = pipe_full_name(full, self, task, false);
    if (answer->status == SHOAL_OK)
        answer->status = store->class->wait(store, full, &answer->seen, 0); /* looks, and does not wait */
    return answer->status != SHOAL_AGAIN || base_now() >= task->deadline;
}

/* The key of a patient get may be there now.  Who has just begun to wait hands it to another thread: otherwise keys
 * that come and go would have it begin to wait within its own wait, ever deeper. */
static void look_again_for_get(pipe_server *self, pipe_task *task, bool just_begun)
{
    if (base_now() >= task->deadline) {
        pipe_refuse(self, task,
                    store_fail(self->options.store, task->request.name, SHOAL_ABSENT, "there is no such key"));
    } else if (just_begun) {
        pipe_wait_prepare(self, task);
        pipe_task_delegate(self, task);
    } else {
        pipe_task_begin(self, task);
    }
}

/* Answers those whose wait is over; of this stream alone, when it is not 0. */
static void answer_waits(pipe_server *self, uint32_t only)
{
    pipe_answer answer;
    for (;;) {
        pipe_task *over = NULL;
        pthread_mutex_lock(&self->lock);
        for (pipe_task *each = self->tasks; each && !over; each = each->next) {
            memset(&answer, 0, offsetof(pipe_answer, message));
            if (each->state == TASK_WAITS && (only == 0 || each->stream == only) && is_over(self, each, &answer))
                over = each;
        }
        if (over) {
            over->state = TASK_RUNS;
            self->wait_count--;
        }
        pthread_mutex_unlock(&self->lock);
        if (!over)
            return;
        if (over->request.call == PIPE_GET && (answer.status == SHOAL_OK || answer.status == SHOAL_AGAIN))
            look_again_for_get(self, over, only != 0);
        else
            pipe_reply_short(self, over, &answer);
    }
}

/* First among those that wait and then looked at: no change is missed in between.  False: nobody wants it any
 * more.  Otherwise the task may be gone when this returns. */
static bool stay(pipe_server *self, pipe_task *task)
{
    uint32_t stream = task->stream;
    pthread_mutex_lock(&self->lock);
    bool wanted = !task->cancelled && !self->stop;
    if (wanted) {
        task->state = TASK_WAITS;
        self->wait_count++;
    }
    pthread_mutex_unlock(&self->lock);
    if (!wanted)
        return false;
    answer_waits(self, stream);
    atomic_fetch_add(&self->watch->waits, 1);
    base_wake_word(&self->watch->waits, 1);
    return true;
}

static bool is_patient(const pipe_server *self, const pipe_task *task)
{
    return task->request.call == PIPE_GET && task->request.patient && !task->request.data && self->watch;
}

/* What comes from now on is a change. */
void pipe_wait_prepare(pipe_server *self, pipe_task *task)
{
    char full[PIPE_FULL_NAME];
    if (!is_patient(self, task))
        return;
    task->seen = 0;
    task->looked = false;
    if (pipe_full_name(full, self, task, true) == SHOAL_OK)
        (void)self->options.store->class->wait(self->options.store, full, &task->seen, 0);
}

bool pipe_wait_park(pipe_server *self, pipe_task *task)
{
    return is_patient(self, task) && base_now() < task->deadline && stay(self, task);
}

void pipe_wait_begin(pipe_server *self, pipe_task *task)
{
    if (task->request.data || !self->watch) {
        pipe_refuse(self, task, shoal_fail(SHOAL_USAGE, "this store can't report changes"));
        return;
    }
    if (!stay(self, task))
        pipe_refuse(self, task, shoal_fail(SHOAL_AGAIN, "nobody is waiting any more"));
}

/* ---- watches ----------------------------------------------------------------------------------------------------- */

static void look_at_all(struct pipe_watch *watch)
{
    pthread_mutex_lock(&watch->lock);
    for (pipe_server *each = watch->servers; each; each = each->watched)
        answer_waits(each, 0);
    pthread_mutex_unlock(&watch->lock);
}

void pipe_watch_changed(pipe_server *self)
{
    if (!self->watch)
        return;
    atomic_fetch_add(&self->watch->own, 1);
    look_at_all(self->watch);
}

/* Whether someone waits; *stop: the thread is to end. */
static bool is_waited_for(struct pipe_watch *watch, bool *stop)
{
    bool some = false;
    pthread_mutex_lock(&watch->lock);
    *stop = watch->stop;
    for (pipe_server *each = watch->servers; each && !some; each = each->watched) {
        pthread_mutex_lock(&each->lock);
        some = each->wait_count > 0;
        pthread_mutex_unlock(&each->lock);
    }
    pthread_mutex_unlock(&watch->lock);
    return some;
}

static void wait_for_changes(void *context)
{
    struct pipe_watch *watch = context;
    shoal_store *store = watch->store;
    uint32_t seen = 0;
    for (bool stop = false;;) {
        uint32_t waits = atomic_load(&watch->waits), own = atomic_load(&watch->own);
        bool some = is_waited_for(watch, &stop);
        if (stop)
            return;
        if (!some) {
            base_wait_word(&watch->waits, waits, INT64_MAX);
            continue;
        }
        int64_t soon = base_time_after(base_now(), LOOK_EVERY);
        if (store->class->wait(store, store->prefix, &seen, soon) < 0 && base_now() < soon)
            base_sleep_until(soon); /* a store that fails is not asked without end */
        look_at_all(watch);
        if (atomic_load(&watch->own) != own)
            base_sleep_until(base_time_after(base_now(), LULL));
    }
}

static int new_watch(struct pipe_watch **out, shoal_store *store)
{
    struct pipe_watch *fresh = NULL;
    int status = base_alloc(&fresh, 1, sizeof *fresh, "who waits for changes");
    if (status < 0)
        return status;
    fresh->store = store;
    pthread_mutex_init(&fresh->lock, NULL);
    status = base_thread_start(&fresh->thread, wait_for_changes, fresh);
    if (status < 0) {
        pthread_mutex_destroy(&fresh->lock);
        base_free(&fresh);
        return status;
    }
    fresh->next = watches;
    *out = watches = fresh;
    return SHOAL_OK;
}

int pipe_watch_join(pipe_server *self)
{
    shoal_store *store = self->options.store;
    int status = SHOAL_OK;
    if (!store->class->wakes)
        return SHOAL_OK;
    pthread_mutex_lock(&watches_lock);
    struct pipe_watch *watch = watches;
    while (watch && watch->store != store)
        watch = watch->next;
    if (!watch)
        status = new_watch(&watch, store);
    if (status == SHOAL_OK) {
        watch->users++;
        pthread_mutex_lock(&watch->lock);
        self->watch = watch;
        self->watched = watch->servers;
        watch->servers = self;
        pthread_mutex_unlock(&watch->lock);
    }
    pthread_mutex_unlock(&watches_lock);
    return status;
}

/* No server is left: its thread ends. */
static void end_watch(struct pipe_watch *watch)
{
    struct pipe_watch **place = &watches;
    while (*place != watch)
        place = &(*place)->next;
    *place = watch->next;
    pthread_mutex_lock(&watch->lock);
    watch->stop = true;
    pthread_mutex_unlock(&watch->lock);
    atomic_fetch_add(&watch->waits, 1);
    base_wake_word(&watch->waits, 1);
    base_thread_join(&watch->thread);
    pthread_mutex_destroy(&watch->lock);
    base_free(&watch);
}

void pipe_watch_hide(pipe_server *self)
{
    struct pipe_watch *watch = self->watch;
    if (!watch)
        return;
    pthread_mutex_lock(&watch->lock);
    pipe_server **place = &watch->servers;
    while (*place && *place != self)
        place = &(*place)->watched;
    if (*place)
        *place = self->watched;
    pthread_mutex_unlock(&watch->lock);
}

void pipe_watch_leave(pipe_server *self)
{
    if (!self->watch)
        return;
    pthread_mutex_lock(&watches_lock);
    if (--self->watch->users == 0)
        end_watch(self->watch);
    self->watch = NULL;
    pthread_mutex_unlock(&watches_lock);
}
