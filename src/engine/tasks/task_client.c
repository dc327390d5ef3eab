/* Clients of tasks, as callers see them.  See shoal/task.h and task_client.h. */
#include "engine/tasks/task_client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/secret.h"
#include "engine/store/job_admin.h"
#include "engine/tasks/task_run.h"

static const double usual_patience = 300, usual_keep = 86400;

int64_t tasks_deadline(const shoal_tasks *self)
{
    return shoal_after(self->options.patience);
}

void tasks_warn(const shoal_tasks *self, const char *line)
{
    if (self->options.warn)
        self->options.warn(self->options.warn_context, line);
}

/* ---- lists and waits --------------------------------------------------------------------------------------------- */

void tasks_queue_add(task_queue *queue, task_entry *entry, bool first)
{
    task_entry *before = first ? NULL : queue->last, *next = first ? queue->first : NULL;
    entry->queued = true;
    entry->before = before;
    entry->next = next;
    *(before ? &before->next : &queue->first) = entry;
    *(next ? &next->before : &queue->last) = entry;
    queue->count++;
}

static void remove_from_queue(task_queue *queue, task_entry *entry)
{
    *(entry->before ? &entry->before->next : &queue->first) = entry->next;
    *(entry->next ? &entry->next->before : &queue->last) = entry->before;
    queue->count--;
    entry->queued = false;
    entry->next = entry->before = NULL;
}

task_entry *tasks_queue_take(task_queue *queue)
{
    task_entry *entry = queue->first;
    if (entry)
        remove_from_queue(queue, entry);
    return entry;
}

void tasks_notify(shoal_tasks *self)
{
    atomic_fetch_add(&self->changed, 1);
    base_wake_word(&self->changed, INT_MAX);
}

static void ring_thread(shoal_tasks *self)
{
    atomic_fetch_add(&self->bell, 1);
    base_wake_word(&self->bell, INT_MAX);
}

void tasks_fail(shoal_tasks *self, int status)
{
    pthread_mutex_lock(&self->lock);
    if (self->status == SHOAL_OK) {
        self->status = status;
        snprintf(self->message, sizeof self->message, "%s", shoal_error());
    }
    pthread_mutex_unlock(&self->lock);
    tasks_notify(self);
}

task_sent *tasks_find_sent(shoal_tasks *self, int64_t number)
{
    int64_t low = 0, high = self->out;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (self->sent[middle].number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low < self->out && self->sent[low].number == number ? &self->sent[low] : NULL;
}

/* ---- what lies apart --------------------------------------------------------------------------------------------- */

static task_datum *find_datum(shoal_tasks *self, const unsigned char hash[BASE_HASH_SIZE])
{
    for (int64_t i = 0; i < self->data; i++)
        if (memcmp(self->datum[i].hash, hash, BASE_HASH_SIZE) == 0)
            return &self->datum[i];
    return NULL;
}

/* Under the lock: one user more.  *fresh: it is to be put, and is busy until then.  SHOAL_AGAIN: it is busy. */
static int use_datum(bool *fresh, shoal_tasks *self, const unsigned char hash[BASE_HASH_SIZE])
{
    task_datum *datum = find_datum(self, hash);
    *fresh = !datum;
    if (datum && datum->busy)
        return SHOAL_AGAIN;
    if (!datum && self->data == self->datum_room) {
        int64_t room = self->datum_room ? 2 * self->datum_room : 16;
        int status = base_grow(&self->datum, (size_t)self->datum_room, (size_t)room, sizeof *self->datum, "arguments");
        if (status < 0)
            return status;
        self->datum_room = room;
    }
    if (!datum) {
        datum = &self->datum[self->data++];
        *datum = (task_datum){.busy = true};
        memcpy(datum->hash, hash, BASE_HASH_SIZE);
    }
    datum->users++;
    return SHOAL_OK;
}

/* Under the lock. */
static void forget_datum(shoal_tasks *self, const unsigned char hash[BASE_HASH_SIZE])
{
    task_datum *datum = find_datum(self, hash);
    base_free(&datum->copy);
    *datum = self->datum[--self->data];
}

/* Waits while another thread puts or removes the same. */
static int use_datum_soon(bool *fresh, shoal_tasks *self, const unsigned char hash[BASE_HASH_SIZE])
{
    const double pause = 0.0005;
    int status;
    while ((status = use_datum(fresh, self, hash)) == SHOAL_AGAIN) {
        pthread_mutex_unlock(&self->lock);
        base_sleep_until(base_time_after(base_now(), pause));
        pthread_mutex_lock(&self->lock);
    }
    return status;
}

/* Puts bytes that travel in no bundle, unless another task brought them already. */
static int put_apart(shoal_tasks *self, unsigned char hash[BASE_HASH_SIZE], const void *bytes, size_t size, bool stays)
{
    bool fresh;
    base_hash_of(hash, bytes, size);
    pthread_mutex_lock(&self->lock);
    int status = use_datum_soon(&fresh, self, hash);
    if (status == SHOAL_OK && fresh && self->forgets) {
        task_datum *datum = find_datum(self, hash);
        status = base_alloc_unset(&datum->copy, size, 1, "a task's argument");
        if (status == SHOAL_OK) {
            memcpy(datum->copy, bytes, size);
            datum->size = size;
        } else {
            forget_datum(self, hash);
        }
    }
    pthread_mutex_unlock(&self->lock);
    if (status < 0 || !fresh)
        return status;
    status =
        shoal_store_put(self->store, task_key_data(self->id, hash).text, bytes, size, NULL, NULL, tasks_deadline(self));
    pthread_mutex_lock(&self->lock);
    task_datum *datum = find_datum(self, hash);
    datum->busy = false;
    datum->users += stays;
    if (status < 0)
        forget_datum(self, hash);
    pthread_mutex_unlock(&self->lock);
    return status;
}

/* Under the lock: those that nobody uses any more are busy, and their hashes in `gone`. */
static int64_t release_data(shoal_tasks *self, task_entry *entry, unsigned char (*gone)[BASE_HASH_SIZE])
{
    int64_t count = 0;
    for (int i = 0; i < entry->hashes; i++) {
        task_datum *datum = find_datum(self, entry->hash[i]);
        if (!datum || --datum->users > 0)
            continue;
        memcpy(gone[count++], datum->hash, BASE_HASH_SIZE);
        datum->busy = true;
    }
    entry->hashes = 0;
    return count;
}

/* What stays of them is removed when the client is closed. */
static void discard_data(shoal_tasks *self, unsigned char (*gone)[BASE_HASH_SIZE], int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        (void)shoal_store_discard(self->store, task_key_data(self->id, gone[i]).text, tasks_deadline(self));
    pthread_mutex_lock(&self->lock);
    for (int64_t i = 0; i < count; i++)
        forget_datum(self, gone[i]);
    pthread_mutex_unlock(&self->lock);
}

/* ---- entries ----------------------------------------------------------------------------------------------------- */

static void free_entry(task_entry **inout)
{
    if (!*inout)
        return;
    base_free(&(*inout)->bytes);
    base_free(&(*inout)->hash);
    base_free(&(*inout)->outcome);
    base_free(inout);
}

int tasks_end_entry(shoal_tasks *self, task_entry *entry, int state, const void *bytes, size_t size)
{
    if (entry->stage >= TASK_ENDED)
        return SHOAL_OK;
    task_sent *sent = entry->stage == TASK_OUT ? tasks_find_sent(self, entry->bundle) : NULL;
    if (sent)
        sent->entry[entry->index] = NULL; /* from here on it may be fetched and freed, or be in another one */
    if (state == TASK_RETURNED) {
        if (entry->stage == TASK_OUT) {
            entry->stage = TASK_PENDING;
            entry->alone = true;
            tasks_queue_add(&self->pending, entry, true);
        }
        return SHOAL_OK;
    }
    int status = base_alloc_unset(&entry->outcome, size, 1, "a result");
    if (status < 0)
        return status;
    memcpy(entry->outcome, bytes, size);
    entry->outcome_size = size;
    if (entry->stage == TASK_PENDING && entry->queued)
        remove_from_queue(&self->pending, entry);
    entry->stage = TASK_ENDED;
    tasks_queue_add(&self->done, entry, false);
    self->ended++;
    return SHOAL_OK;
}

/* ---- submitting -------------------------------------------------------------------------------------------------- */

static int check_words(const char *const *words, const char *what, size_t *total)
{
    for (int i = 0; words && words[i]; i++)
        *total += strlen(words[i]) + 1;
    return *total <= SHOAL_TASK_WORDS_MOST
               ? SHOAL_OK
               : shoal_fail(SHOAL_USAGE, "the %s of a task may have %d bytes in all", what, SHOAL_TASK_WORDS_MOST);
}

static int check_file_name(const char *name)
{
    return name && base_path_stays_below(name) && strlen(name) < 4096
               ? SHOAL_OK
               : shoal_fail(SHOAL_USAGE,
                            "a task's file can't be called '%s': names are paths below its folder, without '..' and "
                            "control characters",
                            name ? name : "");
}

static int check_task(const shoal_task *task)
{
    enum { FILES_MOST = 1 << 16 };
    size_t total = 0;
    if (!task->function == !task->command)
        return shoal_fail(SHOAL_USAGE, "a task is either a function or a command");
    if (task->function && (task->function[0] == '\0' || strlen(task->function) > SHOAL_TASK_NAME_MOST))
        return shoal_fail(SHOAL_USAGE, "the name of a task's function has 1 to %d bytes", SHOAL_TASK_NAME_MOST);
    if (task->command && (!task->command[0] || !task->command[0][0]))
        return shoal_fail(SHOAL_USAGE, "a task's command names no program");
    if (task->function && (task->outputs || task->environment))
        return shoal_fail(SHOAL_USAGE, "variables and files that are made are for commands, not for functions");
    if (!(task->timeout >= 0))
        return shoal_fail(SHOAL_USAGE, "a task's timeout must be 0 or more seconds, not %g", task->timeout);
    if (task->file_count < 0 || task->file_count > FILES_MOST || (task->size > 0 && !task->bytes))
        return shoal_fail(SHOAL_USAGE, "a task has bytes that are nowhere, or more than %d files", FILES_MOST);
    int status = check_words(task->command, "words and variables", &total);
    if (status == SHOAL_OK)
        status = check_words(task->environment, "words and variables", &total);
    for (int i = 0; task->environment && task->environment[i] && status == SHOAL_OK; i++)
        if (strcspn(task->environment[i], "=") == 0 || !strchr(task->environment[i], '='))
            status = shoal_fail(SHOAL_USAGE, "'%s' is no variable: NAME=value", task->environment[i]);
    for (int i = 0; i < task->file_count && !task->function && status == SHOAL_OK; i++)
        status = check_file_name(task->files[i].name);
    for (int i = 0; task->outputs && task->outputs[i] && status == SHOAL_OK; i++)
        status = check_file_name(task->outputs[i]);
    return status;
}

static int put_all_apart(shoal_tasks *self, task_entry *entry, const shoal_task *task)
{
    int status = base_alloc(&entry->hash, (size_t)task->file_count + 1, BASE_HASH_SIZE, "a task");
    for (int i = -1; i < task->file_count && status == SHOAL_OK; i++) {
        const void *bytes = i < 0 ? task->bytes : task->files[i].bytes;
        size_t size = i < 0 ? task->size : task->files[i].size;
        bool stays = i >= 0 && task->function && size <= TASK_INSIDE_MOST;
        if (task_is_apart(task, i))
            status = put_apart(self, entry->hash[entry->hashes++], bytes, size, stays);
    }
    return status;
}

static int fail_ended(const shoal_tasks *self)
{
    return shoal_fail(self->status, "%s", self->message);
}

/* Under the lock: the entry gets its number, and its bytes, which begin with that. */
static int add_entry(shoal_tasks *self, task_entry *entry)
{
    if (self->status < 0)
        return fail_ended(self);
    if (self->submitted == self->room) {
        int64_t room = self->room ? 2 * self->room : 256;
        int status = base_grow(&self->entry, (size_t)self->room, (size_t)room, sizeof *self->entry, "tasks");
        if (status < 0)
            return status;
        self->room = room;
    }
    entry->number = self->submitted;
    for (size_t i = 0; i < sizeof entry->number; i++) /* as base_write_i64 does */
        ((unsigned char *)entry->bytes)[i] = (unsigned char)((uint64_t)entry->number >> 8 * i);
    self->entry[self->submitted++] = entry;
    tasks_queue_add(&self->pending, entry, false);
    return SHOAL_OK;
}

int shoal_task_submit(int64_t *number, shoal_tasks *self, const shoal_task *task)
{
    task_entry *entry = NULL;
    int status = check_task(task);
    if (status == SHOAL_OK)
        status = base_alloc(&entry, 1, sizeof *entry, "a task");
    if (status == SHOAL_OK)
        status = put_all_apart(self, entry, task);
    if (status == SHOAL_OK)
        status =
            task_item_encode(&entry->bytes, &entry->size, 0, task, (const unsigned char(*)[BASE_HASH_SIZE])entry->hash);
    if (status == SHOAL_OK) {
        if (entry->hashes == 0)
            base_free(&entry->hash);
        pthread_mutex_lock(&self->lock);
        status = add_entry(self, entry);
        *number = entry->number;
        pthread_mutex_unlock(&self->lock);
    }
    if (status < 0) {
        free_entry(&entry);
        return status;
    }
    if (!self->wakes) {
        ring_thread(self);
        return SHOAL_OK;
    }
    status = tasks_send(self);
    if (status < 0)
        tasks_fail(self, status);
    return status;
}

/* ---- results ----------------------------------------------------------------------------------------------------- */

void shoal_task_result_free(shoal_task_result **inout)
{
    shoal_task_result *result = *inout;
    if (!result)
        return;
    for (int i = 0; result->files && i < result->file_count; i++) {
        void *name = (void *)result->files[i].name, *bytes = (void *)result->files[i].bytes;
        base_free(&name);
        base_free(&bytes);
    }
    base_free(&result->files);
    base_free(&result->bytes);
    base_free(&result->message);
    base_free(inout);
}

/* The bytes of a result, into memory of its own.  SHOAL_ABSENT when they are not there any more, SHOAL_BROKEN when
 * something else is. */
static int fetch_bytes(void **out, size_t *size, shoal_tasks *self, const task_bytes *bytes)
{
    task_held held = {0};
    const task_means means = {
        .store = self->store, .id = self->id, .deadline = (int64_t(*)(void *))tasks_deadline, .context = self};
    int status = task_hold(&held, &means, bytes);
    if (status == SHOAL_OK)
        status = base_alloc_unset(out, held.size + 1, 1, "a result");
    if (status == SHOAL_OK) {
        memcpy(*out, held.bytes, held.size);
        ((char *)*out)[held.size] = '\0';
        *size = held.size;
    }
    task_held_release(&held);
    return status;
}

static int fetch_files(shoal_task_result *result, shoal_tasks *self, const task_outcome *outcome)
{
    int status = outcome->files > 0 ? base_alloc(&result->files, (size_t)outcome->files, sizeof *result->files, "files")
                                    : SHOAL_OK;
    for (int i = 0; i < outcome->files && status == SHOAL_OK; i++) {
        shoal_task_file *file = &result->files[i];
        status = base_copy_text((char **)&file->name, outcome->file[i].name);
        result->file_count++;
        if (status == SHOAL_OK)
            status = fetch_bytes((void **)&file->bytes, &file->size, self, &outcome->file[i].bytes);
    }
    return status;
}

static int make_result(shoal_task_result **out, shoal_tasks *self, int64_t number, const task_outcome *outcome)
{
    shoal_task_result *result = NULL;
    int status = base_alloc(&result, 1, sizeof *result, "a result");
    if (status < 0)
        return status;
    *result = (shoal_task_result){.number = number,
                                  .state = (shoal_task_state)outcome->state,
                                  .status = outcome->status,
                                  .exit_code = outcome->exit_code,
                                  .seconds = outcome->seconds,
                                  .deaths = outcome->deaths};
    snprintf(result->host, sizeof result->host, "%s", outcome->host);
    status = base_copy_text(&result->message, outcome->message);
    if (status == SHOAL_OK && outcome->output.size > 0)
        status = fetch_bytes(&result->bytes, &result->size, self, &outcome->output);
    if (status == SHOAL_OK)
        status = fetch_files(result, self, outcome);
    if (status < 0)
        shoal_task_result_free(&result);
    *out = result;
    return status;
}

static void discard_place(shoal_tasks *self, const task_bytes *bytes)
{
    if (bytes->apart && bytes->place) /* what stays is removed when the client is closed */
        (void)shoal_store_discard(self->store, job_key_of(self->id, bytes->place).text, tasks_deadline(self));
}

/* A result that the store has lost is computed again. */
static void run_again(shoal_tasks *self, task_entry *entry)
{
    pthread_mutex_lock(&self->lock);
    base_free(&entry->outcome);
    entry->stage = TASK_PENDING;
    entry->alone = true;
    self->ended--;
    tasks_queue_add(&self->pending, entry, true);
    pthread_mutex_unlock(&self->lock);
    ring_thread(self);
}

/* Part of a result that lies apart was put there by somebody who does not have the key. */
static void refuse_part(shoal_tasks *self, const char *what)
{
    char line[400];
    snprintf(line, sizeof line, "%.200s, which no worker has put: refused, and its task runs again", what);
    pthread_mutex_lock(&self->lock);
    self->forged++;
    pthread_mutex_unlock(&self->lock);
    tasks_warn(self, line);
}

/* The entry has ended and is in no list, so that it is this thread's.  SHOAL_ABSENT: it has not, any more. */
static int fetch_result(shoal_task_result **out, shoal_tasks *self, task_entry *entry)
{
    unsigned char(*gone)[BASE_HASH_SIZE] = NULL;
    task_outcome outcome;
    int64_t count = 0;
    int status = task_outcome_decode(&outcome, entry->outcome, entry->outcome_size);
    if (status == SHOAL_OK)
        status = make_result(out, self, entry->number, &outcome);
    if (status == SHOAL_OK) {
        discard_place(self, &outcome.output);
        for (int i = 0; i < outcome.files; i++)
            discard_place(self, &outcome.file[i].bytes);
    }
    task_outcome_release(&outcome);
    if (status == SHOAL_BROKEN) {
        refuse_part(self, shoal_error());
        status = SHOAL_ABSENT;
    }
    if (status == SHOAL_ABSENT) {
        run_again(self, entry);
        return status;
    }
    if (status < 0) { /* it can be asked for again */
        pthread_mutex_lock(&self->lock);
        tasks_queue_add(&self->done, entry, true);
        pthread_mutex_unlock(&self->lock);
        return status;
    }
    if (base_alloc(&gone, (size_t)entry->hashes + 1, BASE_HASH_SIZE, "a task") < 0)
        gone = NULL; /* they are removed when the client is closed */
    pthread_mutex_lock(&self->lock);
    if (gone)
        count = release_data(self, entry, gone);
    entry->stage = TASK_FETCHED;
    self->fetched++;
    self->entry[entry->number] = NULL;
    pthread_mutex_unlock(&self->lock);
    discard_data(self, gone, count);
    base_free(&gone);
    free_entry(&entry);
    return SHOAL_OK;
}

/* Under the lock: one that has ended, of that number or any if it is negative; or whether to wait for one. */
static int take_ended(task_entry **out, shoal_tasks *self, int64_t number)
{
    *out = NULL;
    if (number >= 0) {
        task_entry *entry = number < self->submitted ? self->entry[number] : NULL;
        if (!entry || (entry->stage == TASK_ENDED && !entry->queued))
            return shoal_fail(SHOAL_ABSENT, "there is no task %lld, or its result was fetched", (long long)number);
        if (entry->stage == TASK_ENDED) {
            remove_from_queue(&self->done, entry);
            *out = entry;
        }
    } else if (self->done.first) {
        *out = tasks_queue_take(&self->done);
    } else if (self->fetched == self->submitted) {
        return shoal_fail(SHOAL_ABSENT, "the results of all tasks were fetched");
    }
    return !*out && self->status < 0 ? fail_ended(self) : SHOAL_OK;
}

static void count_waiting(shoal_tasks *self, int64_t more)
{
    pthread_mutex_lock(&self->lock);
    self->waiting += more;
    pthread_mutex_unlock(&self->lock);
}

static int await_result(shoal_task_result **out, shoal_tasks *self, int64_t number, int64_t deadline)
{
    *out = NULL;
    for (;;) {
        task_entry *entry;
        uint32_t changed = atomic_load(&self->changed);
        pthread_mutex_lock(&self->lock);
        int status = take_ended(&entry, self, number);
        pthread_mutex_unlock(&self->lock);
        if (status == SHOAL_OK && entry && (status = fetch_result(out, self, entry)) != SHOAL_ABSENT)
            return status;
        if (status < 0 && !entry)
            return status;
        if ((status = tasks_ring_if_due(self, true)) < 0)
            return status;
        if (base_now() >= deadline)
            return shoal_fail(SHOAL_AGAIN, "no result came in time");
        count_waiting(self, 1);
        base_wait_word(&self->changed, changed, deadline);
        count_waiting(self, -1);
    }
}

int shoal_task_next(shoal_task_result **out, shoal_tasks *self, int64_t deadline)
{
    return await_result(out, self, -1, deadline);
}

int shoal_task_wait(shoal_task_result **out, shoal_tasks *self, int64_t number, int64_t deadline)
{
    if (number < 0)
        return shoal_fail(SHOAL_ABSENT, "there is no task %lld", (long long)number);
    return await_result(out, self, number, deadline);
}

/* ---- cancelling -------------------------------------------------------------------------------------------------- */

static int encode_cancelled(void **out, size_t *size)
{
    const task_outcome outcome = {
        .state = SHOAL_TASK_CANCELLED, .status = SHOAL_STOPPED, .exit_code = -1, .message = "the task was cancelled"};
    return task_outcome_encode(out, size, &outcome);
}

static bool is_cancelled(const void *bytes, size_t size)
{
    task_outcome outcome;
    bool cancelled = task_outcome_decode(&outcome, bytes, size) == SHOAL_OK && outcome.state == SHOAL_TASK_CANCELLED;
    task_outcome_release(&outcome);
    return cancelled;
}

static int fail_has_result(int64_t number)
{
    return shoal_fail(SHOAL_CONFLICT, "task %lld has a result already", (long long)number);
}

/* Under the lock: ends it here if no worker can have seen it; otherwise says where it is. */
static int cancel_here(shoal_tasks *self, int64_t number, const void *bytes, size_t size, int64_t *bundle, int *index,
                       int *count, bool again)
{
    task_entry *entry = number >= 0 && number < self->submitted ? self->entry[number] : NULL;
    *bundle = -1;
    if (!entry)
        return shoal_fail(SHOAL_ABSENT, "there is no task %lld, or its result was fetched", (long long)number);
    if (entry->stage >= TASK_ENDED)
        return again && is_cancelled(entry->outcome, entry->outcome_size) ? SHOAL_OK : fail_has_result(number);
    if (entry->stage == TASK_PENDING) {
        int status = tasks_end_entry(self, entry, SHOAL_TASK_CANCELLED, bytes, size);
        tasks_notify(self);
        return status;
    }
    const task_sent *sent = tasks_find_sent(self, entry->bundle);
    *bundle = entry->bundle;
    *index = entry->index;
    *count = sent ? sent->count : entry->index + 1;
    return SHOAL_OK;
}

/* Under the lock, once something is in the task's place in that bundle: what its result is.  SHOAL_AGAIN when it is in
 * another bundle by now, since it was given back or the store had lost the first. */
static int judge_cancelled(shoal_tasks *self, int64_t number, int64_t bundle, const struct task_slot *slot)
{
    task_outcome outcome;
    task_entry *entry = self->entry[number];
    int status = task_outcome_decode(&outcome, slot->bytes, slot->size);
    if (status == SHOAL_OK && entry && entry->stage == TASK_OUT && entry->bundle == bundle)
        status = tasks_end_entry(self, entry, outcome.state, slot->bytes, slot->size);
    task_outcome_release(&outcome);
    if (status < 0)
        return status;
    if (!entry)
        return shoal_fail(SHOAL_ABSENT, "the result of task %lld was fetched", (long long)number);
    if (entry->stage < TASK_ENDED)
        return SHOAL_AGAIN;
    return is_cancelled(entry->outcome, entry->outcome_size) ? SHOAL_OK : fail_has_result(number);
}

/* Puts "cancelled" into the task's place, if that is empty.  Whatever is there then is its result. */
static int cancel_there(shoal_tasks *self, int64_t number, int64_t bundle, int index, int count, const void *bytes,
                        size_t size, int64_t deadline)
{
    task_slots slots = {0};
    int status = task_slots_new(&slots, count);
    if (status == SHOAL_OK)
        status = base_alloc_unset(&slots.slot[index].bytes, size, 1, "a result");
    if (status == SHOAL_OK) {
        memcpy(slots.slot[index].bytes, bytes, size);
        slots.slot[index].size = size;
        status = task_slots_merge(&slots, NULL, self->store, &self->seal, bundle, deadline);
    }
    if (status == SHOAL_OK) {
        pthread_mutex_lock(&self->lock);
        status = judge_cancelled(self, number, bundle, &slots.slot[index]);
        pthread_mutex_unlock(&self->lock);
        tasks_notify(self);
    }
    task_slots_release(&slots);
    return status;
}

int shoal_task_cancel(shoal_tasks *self, int64_t number, int64_t deadline)
{
    void *bytes = NULL;
    size_t size = 0;
    int64_t bundle = 0;
    int index = 0, count = 0;
    int status = encode_cancelled(&bytes, &size);
    for (bool again = false; status == SHOAL_OK; again = true) {
        pthread_mutex_lock(&self->lock);
        status = cancel_here(self, number, bytes, size, &bundle, &index, &count, again);
        pthread_mutex_unlock(&self->lock);
        if (status < 0 || bundle < 0)
            break;
        status = cancel_there(self, number, bundle, index, count, bytes, size, deadline);
        if (status != SHOAL_AGAIN || base_now() >= deadline)
            break;
        status = SHOAL_OK;
    }
    base_free(&bytes);
    return status;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static int check_options(const shoal_tasks_options *options)
{
    const char *name = options->name;
    size_t length = name ? strlen(name) : 0;
    if (name && (length == 0 || length > SHOAL_JOB_NAME_MOST || job_id_check(name) < 0))
        return shoal_fail(SHOAL_USAGE, "tasks can't be called '%.60s': 1 to %d letters, digits and '-'", name,
                          SHOAL_JOB_NAME_MOST);
    if (options->lease != 0 && !(options->lease >= SHOAL_JOB_LEASE_LEAST && options->lease <= SHOAL_JOB_LEASE_MOST))
        return shoal_fail(SHOAL_USAGE, "lease must be %.15g to %.15g seconds, not %.15g", SHOAL_JOB_LEASE_LEAST,
                          SHOAL_JOB_LEASE_MOST, options->lease);
    if (!(options->keep >= 0) || !(options->patience >= 0))
        return shoal_fail(SHOAL_USAGE, "keep and patience must be 0 or more seconds");
    return SHOAL_OK;
}

static int make_identity(shoal_tasks *self)
{
    unsigned char random[8], key[SHOAL_TASK_KEY_BYTES];
    char digits[2 * sizeof random + 1];
    base_entropy(random, sizeof random);
    base_hex_write(digits, random, sizeof random);
    snprintf(self->id, sizeof self->id, "%s-%s", self->options.name ? self->options.name : "tasks", digits);
    if (self->options.key)
        memcpy(key, self->options.key, sizeof key);
    else
        base_entropy(key, sizeof key);
    int status = base_secret_set(&self->key, (const char *)key, sizeof key);
    base_wipe(key, sizeof key);
    self->seal = (task_seal){.id = self->id, .key = (const unsigned char *)base_secret_text(self->key)};
    return status;
}

static int make_spec(shoal_tasks *self)
{
    unsigned char hash[BASE_HASH_SIZE];
    const shoal_tasks_options *options = &self->options;
    self->spec = (task_spec){.lease = options->lease > 0 ? options->lease
                                      : self->wakes      ? 10
                                                         : 30,
                             .keep = options->keep > 0 ? options->keep : usual_keep,
                             .has_module = options->module != NULL,
                             .module_size = (int64_t)options->module_size};
    snprintf(self->spec.version, sizeof self->spec.version, "%s", SHOAL_VERSION);
    if (options->module)
        base_hash_of(self->spec.module, options->module, options->module_size);
    int status = task_spec_encode(&self->spec_bytes, &self->spec_size, &self->spec, &self->seal);
    if (status == SHOAL_OK) {
        base_hash_of(hash, self->spec_bytes, self->spec_size);
        base_hex_write(self->spec_hash, hash, sizeof hash);
    }
    return status;
}

/* The marker comes last, so that who finds it finds the rest. */
static int announce(shoal_tasks *self)
{
    int64_t deadline = tasks_deadline(self);
    int status = SHOAL_OK;
    if (self->options.module)
        status = put_apart(self, self->spec.module, self->options.module, self->options.module_size, true);
    if (status == SHOAL_OK)
        status = shoal_store_put_framed(self->store, job_key_of(self->id, "tasks").text, TASK_KIND_SPEC,
                                        self->spec_bytes, self->spec_size, NULL, NULL, deadline);
    if (status == SHOAL_OK)
        status = shoal_store_put(self->store, job_key_open(self->id).text, "", 0, NULL, NULL, deadline);
    self->checked_at = base_now();
    return status;
}

static void release(shoal_tasks **inout)
{
    shoal_tasks *self = *inout;
    for (int64_t i = 0; i < self->submitted; i++)
        free_entry(&self->entry[i]);
    for (int64_t i = 0; i < self->out; i++)
        base_free(&self->sent[i].entry);
    for (int64_t i = 0; i < self->data; i++)
        base_free(&self->datum[i].copy);
    base_free(&self->entry);
    base_free(&self->sent);
    base_free(&self->datum);
    base_free(&self->spec_bytes);
    job_members_release(&self->members);
    pthread_mutex_destroy(&self->lock);
    base_secret_free(&self->key);
    base_free(inout);
}

int shoal_tasks_open(shoal_tasks **out, shoal_store *store, const shoal_tasks_options *options)
{
    static const shoal_tasks_options none = {0};
    shoal_tasks *self = NULL;
    *out = NULL;
    int status = check_options(options ? options : &none);
    if (status == SHOAL_OK)
        status = base_alloc(&self, 1, sizeof *self, "a client");
    if (status < 0)
        return status;
    pthread_mutex_init(&self->lock, NULL);
    self->store = store;
    self->options = options ? *options : none;
    if (self->options.patience == 0)
        self->options.patience = usual_patience;
    self->wakes = shoal_store_describe(store).wakes;
    self->forgets = shoal_store_describe(store).forgets > 0;
    self->seconds = -1;
    status = make_identity(self);
    if (status == SHOAL_OK)
        status = make_spec(self);
    if (status == SHOAL_OK)
        status = announce(self);
    self->options.name = NULL; /* the caller's; all of it is used */
    self->options.key = NULL;
    self->options.module = NULL;
    if (status == SHOAL_OK)
        status = base_thread_start(&self->thread, tasks_tend, self);
    if (status < 0)
        release(&self);
    *out = self;
    return status;
}

/* Waits for a while for live workers to see that it is over, and removes the records of the others: what workers write
 * after that they remove themselves. */
static int await_workers(shoal_tasks *self, int64_t deadline)
{
    static const double longest = 5;
    job_key prefix = job_key_of(self->id, "worker/");
    int64_t until = base_time_after(base_now(), longest), living;
    uint32_t seen = 0;
    int status;
    do {
        status = job_members_list(&self->members, self->store, self->id, deadline);
        living = 0;
        for (int64_t i = 0; i < self->members.peers; i++)
            living += job_members_alive(&self->members, self->members.peer[i].worker, self->spec.lease);
        if (living > 0)
            shoal_store_wait(self->store, prefix.text, &seen, base_time_first(until, base_time_after(base_now(), 0.5)));
    } while (status == SHOAL_OK && living > 0 && base_now() < until);
    for (int64_t i = 0; i < self->members.peers && status == SHOAL_OK; i++)
        status = shoal_store_remove(self->store, job_key_worker(self->id, self->members.peer[i].worker).text, deadline);
    return status;
}

/* Workers without work see that it is closed by the listing of what is to be done, which they make since it rings, and
 * those that run something by its absence; what they put after that they remove. */
int shoal_tasks_close(shoal_tasks **inout)
{
    shoal_tasks *self = *inout;
    if (!self)
        return SHOAL_OK;
    *inout = NULL;
    atomic_store(&self->closing, 1);
    ring_thread(self);
    base_thread_join(&self->thread);
    int64_t deadline = tasks_deadline(self);
    int status = shoal_store_put(self->store, job_key_gone(self->id).text, "", 0, NULL, NULL, deadline);
    if (status == SHOAL_OK)
        status = shoal_store_put(self->store, job_key_of(self->id, task_closed).text, "", 0, NULL, NULL, deadline);
    if (status == SHOAL_OK)
        status = tasks_ring(self);
    if (status == SHOAL_OK)
        status = tasks_withdraw(self);
    if (status == SHOAL_OK)
        status = await_workers(self, deadline);
    if (status == SHOAL_OK)
        status = shoal_job_remove(self->store, self->id, deadline);
    release(&self);
    return status;
}

/* ---- asking ------------------------------------------------------------------------------------------------------ */

const char *shoal_tasks_id(const shoal_tasks *self)
{
    return self->id;
}

const char *shoal_tasks_spec(const shoal_tasks *self)
{
    return self->spec_hash;
}

const unsigned char *shoal_tasks_key(const shoal_tasks *self)
{
    return self->seal.key;
}

shoal_store *shoal_tasks_store(const shoal_tasks *self)
{
    return self->store;
}

shoal_tasks_counts shoal_tasks_count(const shoal_tasks *self)
{
    shoal_tasks *mutable = (shoal_tasks *)self; /* whose lock it is */
    pthread_mutex_lock(&mutable->lock);
    shoal_tasks_counts counts = {.submitted = self->submitted,
                                 .ended = self->ended,
                                 .fetched = self->fetched,
                                 .workers = self->workers,
                                 .slots = self->slots,
                                 .forged = self->forged};
    pthread_mutex_unlock(&mutable->lock);
    return counts;
}

int shoal_tasks_worker_died(shoal_tasks *self, uint64_t worker, int64_t deadline)
{
    return shoal_store_remove(self->store, job_key_worker(self->id, worker).text, deadline);
}

void shoal_tasks_fail(shoal_tasks *self, int status, const char *message)
{
    shoal_fail(status, "%s", message);
    tasks_fail(self, status);
}
