/* One task: its argument comes, it runs, its result goes.  See task_run.h. */
#include "engine/tasks/task_run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/io.h"
#include "base/memory.h"
#include "base/world.h"

/* ---- what it is given -------------------------------------------------------------------------------------------- */

static int check_held(const task_bytes *bytes, const void *data, size_t size)
{
    unsigned char hash[BASE_HASH_SIZE];
    base_hash_of(hash, data, size);
    return size == (size_t)bytes->size && memcmp(hash, bytes->hash, sizeof hash) == 0 ? SHOAL_OK : SHOAL_BROKEN;
}

static bool is_leaving(const task_means *means)
{
    return means->leave && atomic_load(means->leave);
}

/* In this machine's cache, where only what was checked is put. */
static bool hold_cached(task_held *out, const task_means *means, const task_bytes *bytes)
{
    if (!means->cache || !job_cache_get(&out->cached, means->cache, bytes->hash, (size_t)bytes->size))
        return false;
    out->bytes = out->cached.data;
    return true;
}

/* From the store.  What the cache keeps is used from there, so that all workers of a machine share its memory. */
static int fetch_apart(task_held *out, const task_means *means, const task_bytes *bytes, const char *key)
{
    int status = shoal_store_get(means->store, key, &out->blob, means->deadline(means->context));
    if (status == SHOAL_OK && check_held(bytes, out->blob.data, out->blob.size) < 0) {
        shoal_blob_release(&out->blob);
        status = SHOAL_BROKEN;
    }
    if (status < 0)
        return status;
    out->bytes = out->blob.data;
    if (means->cache) {
        job_cache_put(means->cache, bytes->hash, out->blob.data, out->blob.size);
        if (hold_cached(out, means, bytes))
            shoal_blob_release(&out->blob);
    }
    return SHOAL_OK;
}

/* Waits while another worker of this machine fetches the same, but no longer than a request may take: that one may be
 * stopped. */
static void await_turn(job_turn *turn, const task_means *means, const task_bytes *bytes)
{
    static const double longest = 0.016;
    int64_t until = means->deadline(means->context);
    for (double pause = 0.001; !job_cache_turn(turn, means->cache, bytes->hash, (size_t)bytes->size);
         pause = pause < longest ? 2 * pause : longest) {
        if (is_leaving(means) || base_now() >= until)
            return;
        base_sleep_until(base_time_after(base_now(), pause));
    }
}

/* Once a machine: the first of its workers fetches it, and the others find it in the cache. */
static int hold_apart(task_held *out, const task_means *means, const task_bytes *bytes, const char *key)
{
    job_turn turn = {0};
    if (hold_cached(out, means, bytes))
        return SHOAL_OK;
    if (means->cache)
        await_turn(&turn, means, bytes);
    int status = hold_cached(out, means, bytes) ? SHOAL_OK : fetch_apart(out, means, bytes, key);
    job_turn_end(&turn);
    return status;
}

/* What lies apart may be absent for a while: a client puts again what its store has forgotten. */
int task_hold(task_held *out, const task_means *means, const task_bytes *bytes)
{
    static const double looks = 16;
    int64_t until = 0; /* since it was first missed, not while others were waited for */
    *out = (task_held){.bytes = bytes->inside, .size = (size_t)bytes->size};
    if (!bytes->apart)
        return SHOAL_OK;
    job_key key = bytes->place ? job_key_of(means->id, bytes->place) : task_key_data(means->id, bytes->hash);
    for (;;) {
        int status = hold_apart(out, means, bytes, key.text);
        if (status != SHOAL_ABSENT && status != SHOAL_BROKEN)
            return status;
        if (until == 0)
            until = base_time_after(base_now(), means->absence);
        if (base_now() >= until || is_leaving(means))
            return status == SHOAL_ABSENT
                       ? shoal_fail(SHOAL_ABSENT, "%s: the store does not have it any more", key.text)
                       : shoal_fail(SHOAL_BROKEN, "%s: the store has something else there", key.text);
        base_sleep_until(base_time_after(base_now(), means->absence / looks));
    }
}

/* Whether the cache's file shrank or became unreadable meanwhile: what was made of it may be wrong.  A look at its end
 * also finds a file that shrank while only the kernel read it. */
static bool is_lost(const task_held *held)
{
    if (!held->cached.data || held->size == 0)
        return false;
    (void)((const volatile unsigned char *)held->bytes)[held->size - 1];
    return job_cached_is_lost(&held->cached);
}

void task_held_release(task_held *held)
{
    if (held->cached.data)
        job_cached_release(&held->cached);
    shoal_blob_release(&held->blob);
    base_free(&held->memory);
}

/* ---- what comes of it -------------------------------------------------------------------------------------------- */

/* Puts what is too large to travel inside; `place` lasts as long as the outcome is encoded. */
static int place_bytes(task_bytes *out, char place[80], const task_means *means, const task_running *running, int file,
                       const void *bytes, size_t size)
{
    *out = (task_bytes){.apart = size > TASK_INSIDE_MOST, .size = (int64_t)size, .inside = bytes};
    if (!out->apart)
        return SHOAL_OK;
    base_hash_of(out->hash, bytes, size);
    snprintf(place, 80, "out/%llx-%d-%d-%016llx", (unsigned long long)running->bundle, running->index, file,
             (unsigned long long)means->worker);
    out->place = place;
    return shoal_store_put(means->store, job_key_of(means->id, place).text, bytes, size, NULL, NULL,
                           means->deadline(means->context));
}

int task_run_not(void **out, size_t *size, const task_means *means, int state, int deaths, const char *message)
{
    const task_outcome outcome = {.state = state,
                                  .status = SHOAL_INVALID,
                                  .exit_code = -1,
                                  .deaths = deaths,
                                  .message = message,
                                  .host = state == TASK_RETURNED ? "" : means->host};
    return task_outcome_encode(out, size, &outcome);
}

static int fail_task(void **out, size_t *size, const task_means *means, const task_running *running,
                     const char *message)
{
    return task_run_not(out, size, means, SHOAL_TASK_FAILED, running->deaths, message);
}

/* ---- functions --------------------------------------------------------------------------------------------------- */

static shoal_task_function *find_function(const shoal_task_entry *table, const char *name)
{
    for (; table && table->name; table++)
        if (strcmp(table->name, name) == 0)
            return table->function;
    return NULL;
}

/* The files of a call: fetched when the function asks for them. */
typedef struct shared_files {
    const task_means *means;
    const task_item *item;
    shoal_task_file *file;
    task_held *held;
    bool absent; /* one that was asked for is not in the store */
    bool lost;   /* one can't be read any more */
} shared_files;

static int open_shared(const shoal_task_call *call, int file)
{
    shared_files *self = call->context;
    if (file < 0 || file >= call->file_count)
        return shoal_fail(SHOAL_USAGE, "a task has no file %d", file);
    if (self->file[file].bytes)
        return SHOAL_OK;
    int status = task_hold(&self->held[file], self->means, &self->item->file[file].bytes);
    self->absent |= status == SHOAL_ABSENT;
    if (status == SHOAL_OK)
        self->file[file].bytes = self->held[file].bytes ? self->held[file].bytes : "";
    return status;
}

static int begin_shared(shared_files *self)
{
    int files = self->item->files;
    int status = base_alloc(&self->file, (size_t)files + 1, sizeof *self->file, "the files of a task");
    if (status == SHOAL_OK)
        status = base_alloc(&self->held, (size_t)files + 1, sizeof *self->held, "the files of a task");
    for (int i = 0; i < files && status == SHOAL_OK; i++)
        self->file[i] =
            (shoal_task_file){.name = self->item->file[i].name, .size = (size_t)self->item->file[i].bytes.size};
    return status;
}

static void end_shared(shared_files *self)
{
    for (int i = 0; self->held && i < self->item->files; i++) {
        self->lost |= is_lost(&self->held[i]);
        task_held_release(&self->held[i]);
    }
    base_free(&self->held);
    base_free(&self->file);
}

static int run_function(void **out, size_t *size, const task_means *means, const task_running *running,
                        const task_held *argument)
{
    const task_item *item = running->item;
    shared_files shared = {.means = means, .item = item};
    char message[TASK_MESSAGE_MOST], place[80];
    shoal_task_function *function = find_function(means->module, item->function);
    if (!function)
        function = find_function(means->function, item->function);
    if (!function) {
        snprintf(message, sizeof message, "no module of this client, and not this worker, has a function '%s'",
                 item->function);
        return fail_task(out, size, means, running, message);
    }
    void *bytes = NULL;
    size_t length = 0;
    int64_t began = base_now();
    int status = begin_shared(&shared);
    const shoal_task_call call = {.bytes = argument->bytes,
                                  .size = argument->size,
                                  .stop = running->stop,
                                  .number = item->number,
                                  .files = shared.file,
                                  .file_count = item->files,
                                  .open = open_shared,
                                  .context = &shared,
                                  .store = means->store};
    task_outcome outcome = {.host = means->host, .deaths = running->deaths, .message = ""};
    outcome.status = status == SHOAL_OK ? function(&bytes, &length, &call) : status;
    end_shared(&shared);
    if (shared.lost || is_lost(argument)) {
        free(bytes);
        return task_run_not(out, size, means, TASK_RETURNED, 0, ""); /* to be run again */
    }
    outcome.seconds = -base_seconds_until(began);
    outcome.state = outcome.status == SHOAL_OK ? SHOAL_TASK_DONE : SHOAL_TASK_FAILED;
    if (outcome.status < 0) {
        snprintf(message, sizeof message, "%s", shoal_error());
        outcome.message = message;
    }
    status = SHOAL_OK;
    if (outcome.status == SHOAL_STOPPED && atomic_load(running->stop))
        status = shoal_fail(SHOAL_STOPPED, "the task was stopped");
    else if (outcome.status < 0 && shared.absent)
        status = shoal_fail(SHOAL_ABSENT, "%s", message);
    else if (bytes && length > 0)
        status = place_bytes(&outcome.output, place, means, running, -1, bytes, length);
    if (status == SHOAL_OK)
        status = task_outcome_encode(out, size, &outcome);
    free(bytes);
    return status;
}

/* ---- commands ---------------------------------------------------------------------------------------------------- */

static bool is_plain_file(int file, int64_t *size)
{
    struct stat about;
    if (fstat(file, &about) < 0 || !S_ISREG(about.st_mode))
        return false;
    *size = about.st_size;
    return true;
}

/* The files that the task names, of those that are there; they may be no links. */
static int take_files(task_outcome *outcome, char (*place)[80], const task_means *means, const task_running *running,
                      const task_ended *ended, task_held *held)
{
    int folder = ended->folder ? open(ended->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    int status = SHOAL_OK;
    for (int i = 0; running->item->outputs && running->item->outputs[i] && status == SHOAL_OK; i++) {
        int64_t size = 0;
        size_t got = 0;
        int file = folder >= 0 ? base_open_beneath(folder, running->item->outputs[i], O_RDONLY | O_CLOEXEC) : -1;
        if (file >= 0 && is_plain_file(file, &size)) {
            task_item_file *to = &outcome->file[outcome->files];
            void **memory = &held[outcome->files].memory;
            if (size > means->memory)
                status =
                    shoal_fail(SHOAL_MEMORY, "%s is too large for this worker's memory", running->item->outputs[i]);
            if (status == SHOAL_OK)
                status = base_alloc_unset(memory, (size_t)size + 1, 1, "a file of a task");
            if (status == SHOAL_OK && base_read_all(file, *memory, (size_t)size, &got) != 0)
                status = shoal_fail_errno(SHOAL_SYSTEM, errno, "%s can't be read", running->item->outputs[i]);
            if (status == SHOAL_OK)
                status = place_bytes(&to->bytes, place[outcome->files], means, running, outcome->files, *memory, got);
            to->name = running->item->outputs[i];
            outcome->files++;
        }
        base_close(&file);
    }
    base_close(&folder);
    return status;
}

static void describe_end(char *out, size_t size, const task_ended *ended)
{
    bool said = ended->said[0] != '\0';
    snprintf(out, size, "%s%s%s%s", ended->why, ended->why[0] && said ? "; the end of its standard error: " : "",
             ended->said_bytes > (int64_t)sizeof ended->said && said ? "..." : "", ended->said);
}

static int run_command(void **out, size_t *size, const task_means *means, const task_running *running,
                       const task_held *argument)
{
    char message[TASK_MESSAGE_MOST], place[80], (*places)[80] = NULL;
    task_ended ended = {0};
    task_held *held = NULL;
    int outputs = 0;
    while (running->item->outputs && running->item->outputs[outputs])
        outputs++;
    task_outcome outcome = {.host = means->host, .deaths = running->deaths};
    int64_t began = base_now();
    int status = task_command_run(&ended, means, running, argument->bytes, argument->size);
    outcome.seconds = -base_seconds_until(began);
    if (status == SHOAL_OK && is_lost(argument)) {
        task_ended_release(&ended);
        return task_run_not(out, size, means, TASK_RETURNED, 0, "");
    }
    if (status == SHOAL_OK && ended.stopped)
        status = shoal_fail(SHOAL_STOPPED, "the task was stopped");
    if (status == SHOAL_OK)
        status = base_alloc(&outcome.file, (size_t)outputs + 1, sizeof *outcome.file, "the files of a task");
    if (status == SHOAL_OK)
        status = base_alloc(&held, (size_t)outputs + 1, sizeof *held, "the files of a task");
    if (status == SHOAL_OK)
        status = base_alloc(&places, (size_t)outputs + 1, sizeof *places, "the files of a task");
    if (status == SHOAL_OK)
        status = take_files(&outcome, places, means, running, &ended, held);
    if (status == SHOAL_OK)
        status = place_bytes(&outcome.output, place, means, running, -1, ended.output, ended.size);
    if (status == SHOAL_OK) {
        outcome.state = ended.why[0] ? SHOAL_TASK_FAILED : SHOAL_TASK_DONE;
        outcome.status = ended.why[0] ? SHOAL_INVALID : SHOAL_OK;
        outcome.exit_code = ended.exit_code;
        describe_end(message, sizeof message, &ended);
        outcome.message = message;
        status = task_outcome_encode(out, size, &outcome);
    }
    for (int i = 0; held && i < outputs; i++)
        task_held_release(&held[i]);
    base_free(&held);
    base_free(&places);
    task_outcome_release(&outcome);
    task_ended_release(&ended);
    return status;
}

/* ---- both -------------------------------------------------------------------------------------------------------- */

int task_run(void **out, size_t *size, const task_means *means, const task_running *running)
{
    task_held argument = {0};
    char message[TASK_MESSAGE_MOST];
    int status = task_hold(&argument, means, &running->item->argument);
    if (status == SHOAL_OK && running->item->function)
        status = run_function(out, size, means, running, &argument);
    else if (status == SHOAL_OK)
        status = run_command(out, size, means, running, &argument);
    task_held_release(&argument);
    if (status == SHOAL_ABSENT && means->forgets) /* the client puts it there again, however long that takes it */
        return task_run_not(out, size, means, TASK_RETURNED, 0, "");
    if (status == SHOAL_ABSENT || status == SHOAL_BROKEN || status == SHOAL_MEMORY || status == SHOAL_SYSTEM ||
        status == SHOAL_INVALID) {
        snprintf(message, sizeof message, "%s", shoal_error());
        status = fail_task(out, size, means, running, message);
    }
    return status;
}
