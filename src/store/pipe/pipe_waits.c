/* Those who wait at the server for a change: PIPE_WAIT, and gets that are patient.
 *
 * One thread looks after all of them: it waits for any change of the store, and then asks for each.  Whoever begins to wait
 * is first put among those that wait and then looked at, so no change is missed in between. */
#include <string.h>

#include "base/memory.h"
#include "base/world.h"
#include "store/pipe/pipe_server_internal.h"

static const double LOOK_EVERY = 0.1; /* seconds until the thread that waits sees that it is to end */

/* Whether the wait is over: something may have changed, its time has passed, or the store can't tell.  The lock is held. */
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

/* The key of a patient get may be there now.  Who has just begun to wait hands it to another thread: otherwise keys that come
 * and go would have it begin to wait within its own wait, ever deeper. */
static void look_again(pipe_server *self, pipe_task *task, bool just_begun)
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
static void look_for(pipe_server *self, uint32_t only)
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
            look_again(self, over, only != 0);
        else
            pipe_reply_short(self, over, &answer);
    }
}

/* First among those that wait and then looked at: no change is missed in between.  False: nobody wants it any more.  Otherwise
 * the task may be gone when this returns. */
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
    look_for(self, stream);
    atomic_fetch_add(&self->waits, 1);
    base_wake_word(&self->waits, 1);
    return true;
}

static bool is_patient(const pipe_server *self, const pipe_task *task)
{
    return task->request.call == PIPE_GET && task->request.patient && !task->request.data && self->wakes;
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

void pipe_wait_for_changes(void *context)
{
    pipe_server *self = context;
    shoal_store *store = self->options.store;
    uint32_t seen = 0;
    for (;;) {
        uint32_t waits = atomic_load(&self->waits);
        pthread_mutex_lock(&self->lock);
        bool stop = self->stop, some = self->wait_count > 0;
        pthread_mutex_unlock(&self->lock);
        if (stop)
            return;
        if (some) {
            int64_t soon = base_time_after(base_now(), LOOK_EVERY);
            if (store->class->wait(store, store->prefix, &seen, soon) < 0 && base_now() < soon)
                base_sleep_until(soon); /* a store that fails is not asked without end */
            look_for(self, 0);
        } else {
            base_wait_word(&self->waits, waits, INT64_MAX);
        }
    }
}

void pipe_wait_begin(pipe_server *self, pipe_task *task)
{
    if (task->request.data || !self->wakes) {
        pipe_refuse(self, task, shoal_fail(SHOAL_USAGE, "this store can't tell of changes"));
        return;
    }
    if (!stay(self, task))
        pipe_refuse(self, task, shoal_fail(SHOAL_AGAIN, "nobody waits any more"));
}
