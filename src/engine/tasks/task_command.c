/* A command of a task: a process group of its own, in a folder of its own, spoken to over its standard streams.  See
 * task_run.h.
 *
 * It is started from threads that signals do not come to, so that one that reads nothing of its input does no harm.
 * What it writes to standard output is kept up to what a result may have; of its standard error only the end.  A
 * process that goes on in the background after the command has exited is ended with its group. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/spawn.h"
#include "base/world.h"
#include "engine/tasks/task_run.h"

extern char **environ;

enum { STEP_MS = 20, ROOM = 1 << 16, AFTER_MS = 200 };

/* ---- the guard --------------------------------------------------------------------------------------------------- */

/* Started with the first command. */
struct task_guard {
    base_guard guard;
};

int task_guard_new(task_guard **out)
{
    int status = base_alloc(out, 1, sizeof **out, "a guard");
    if (status == SHOAL_OK)
        (*out)->guard = (base_guard){.pipe = -1};
    return status;
}

void task_guard_free(task_guard **inout)
{
    if (*inout && (*inout)->guard.process > 0)
        base_guard_stop(&(*inout)->guard);
    base_free(inout);
}

/* Without a guard the command may outlive a worker that is killed, no more. */
static void guard_process(task_guard *self, pid_t process)
{
    char line[24];
    if (self->guard.process == 0 && base_guard_start(&self->guard, 0) != 0)
        return;
    int length = snprintf(line, sizeof line, "%ld\n", (long)process);
    (void)base_write_all(self->guard.pipe, line, (size_t)length);
}

/* The folder of the next command, which would stay. */
static void guard_folder(task_guard *self, const char *folder)
{
    if (self->guard.process == 0 && base_guard_start(&self->guard, 0) != 0)
        return;
    base_guard_folder(&self->guard, folder);
}

/* Before its number can be another's. */
static void release_process(task_guard *self, pid_t process)
{
    char line[24];
    int length = snprintf(line, sizeof line, "-%ld\n", (long)process);
    if (self->guard.process > 0)
        (void)base_write_all(self->guard.pipe, line, (size_t)length);
}

/* ---- its folder -------------------------------------------------------------------------------------------------- */

static int write_file(const char *folder, const task_means *means, const task_item_file *file)
{
    char *path = NULL;
    task_held held = {0};
    int descriptor = -1, error = 0;
    int status = task_hold(&held, means, &file->bytes);
    if (status == SHOAL_OK)
        status = base_format(&path, "%s/%s", folder, file->name);
    if (status == SHOAL_OK && !(error = base_make_folders_above(path, 0700, NULL))) {
        descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0700);
        error = descriptor < 0 ? errno : base_write_all(descriptor, held.bytes, held.size);
    }
    if (status == SHOAL_OK && error)
        status = shoal_fail_errno(SHOAL_SYSTEM, error, "can't write the task's file '%s'", file->name);
    base_close(&descriptor);
    base_free(&path);
    task_held_release(&held);
    return status;
}

static int make_folder(char **out, const task_means *means, const task_item *item)
{
    int status = base_make_temporary_folder(out, "shoal-task-");
    for (int i = 0; i < item->files && status == SHOAL_OK; i++)
        status = write_file(*out, means, &item->file[i]);
    return status;
}

/* ---- its environment --------------------------------------------------------------------------------------------- */

static bool names_same(const char *a, const char *b)
{
    size_t length = strcspn(a, "=");
    return strncmp(a, b, length) == 0 && b[length] == '=';
}

/* This process's variables, but for those that the task sets. */
static int make_environment(char ***out, const task_item *item)
{
    size_t have = 0, more = 0, count = 0;
    while (environ[have])
        have++;
    while (item->environment && item->environment[more])
        more++;
    int status = base_alloc(out, have + more + 1, sizeof **out, "the environment of a task");
    for (size_t i = 0; i < have && status == SHOAL_OK; i++) {
        bool replaced = false;
        for (size_t j = 0; j < more; j++)
            replaced |= names_same(item->environment[j], environ[i]);
        if (!replaced)
            (*out)[count++] = environ[i];
    }
    for (size_t j = 0; j < more && status == SHOAL_OK; j++)
        (*out)[count++] = (char *)item->environment[j];
    return status;
}

/* ---- speaking ---------------------------------------------------------------------------------------------------- */

typedef struct talk {
    task_ended *out;
    int in, stream[2]; /* our ends of its standard input, output and error; -1 when closed */
    const unsigned char *input;
    size_t left, room;
    size_t most; /* that it may write */
    bool flooded;
    int failure;
} talk;

static void feed_input(talk *self)
{
    ssize_t done = write(self->in, self->input, self->left < ROOM ? self->left : ROOM);
    if (done > 0) {
        self->input += done;
        self->left -= (size_t)done;
    }
    if (self->left == 0 || (done < 0 && errno != EAGAIN && errno != EINTR)) /* it need not read all */
        base_close(&self->in);
}

static void keep_output(talk *self, const unsigned char *bytes, size_t count)
{
    task_ended *out = self->out;
    if (out->size + count > self->most) {
        self->flooded = true;
        return;
    }
    if (out->size + count > self->room) {
        size_t room = self->room ? 2 * self->room : ROOM;
        room = room < out->size + count ? out->size + count : room;
        int status = base_grow(&out->output, self->room, room, 1, "what a command writes");
        if (status < 0) {
            self->failure = status;
            return;
        }
        self->room = room;
    }
    memcpy(out->output + out->size, bytes, count);
    out->size += count;
}

/* The end of it. */
static void keep_said(task_ended *out, const unsigned char *bytes, size_t count)
{
    size_t most = sizeof out->said - 1, have = strlen(out->said);
    out->said_bytes += (int64_t)count;
    if (count > most) {
        bytes += count - most;
        count = most;
    }
    size_t drop = have + count > most ? have + count - most : 0;
    memmove(out->said, out->said + drop, have - drop);
    have -= drop;
    for (size_t i = 0; i < count; i++)
        out->said[have + i] = bytes[i] ? (char)bytes[i] : '?';
    out->said[have + count] = '\0';
}

static void drain_stream(talk *self, int which)
{
    static _Thread_local unsigned char bytes[ROOM];
    ssize_t count = read(self->stream[which], bytes, sizeof bytes);
    if (count > 0 && which == 0)
        keep_output(self, bytes, (size_t)count);
    else if (count > 0)
        keep_said(self->out, bytes, (size_t)count);
    else if (count == 0 || (errno != EAGAIN && errno != EINTR))
        base_close(&self->stream[which]);
}

/* Moves what can be moved now; waits for a moment when that is nothing. */
static void talk_once(talk *self, int wait_ms)
{
    struct pollfd wanted[3] = {{.fd = self->in, .events = POLLOUT},
                               {.fd = self->stream[0], .events = POLLIN},
                               {.fd = self->stream[1], .events = POLLIN}};
    if (poll(wanted, 3, wait_ms) <= 0)
        return;
    if (self->in >= 0 && wanted[0].revents)
        feed_input(self);
    for (int i = 0; i < 2; i++)
        if (self->stream[i] >= 0 && wanted[1 + i].revents)
            drain_stream(self, i);
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

static int open_pipes(int ours[3], int theirs[3])
{
    for (int i = 0; i < 3; i++) {
        int pair[2];
        if (pipe2(pair, O_CLOEXEC) < 0)
            return shoal_fail_errno(SHOAL_SYSTEM, errno, "can't make a pipe for a command");
        ours[i] = pair[i == 0];
        theirs[i] = pair[i != 0];
        (void)fcntl(ours[i], F_SETFL, fcntl(ours[i], F_GETFL) | O_NONBLOCK);
    }
    return SHOAL_OK;
}

static bool has_ended(pid_t process)
{
    siginfo_t how = {0};
    return waitid(P_PID, (id_t)process, &how, WEXITED | WNOHANG | WNOWAIT) != 0 || how.si_pid != 0;
}

static void judge_end(task_ended *out, pid_t process)
{
    int how = 0;
    pid_t ended;
    while ((ended = waitpid(process, &how, 0)) < 0 && errno == EINTR)
        ;
    if (ended < 0) { /* nobody knows how then: that is no success */
        snprintf(out->why, sizeof out->why, "how the command ended is not known: this program ignores SIGCHLD");
    } else if (WIFSIGNALED(how)) {
        out->exit_code = 128 + WTERMSIG(how);
        snprintf(out->why, sizeof out->why, "the command was ended by signal %d", WTERMSIG(how));
    } else {
        out->exit_code = WEXITSTATUS(how);
        if (out->exit_code != 0)
            snprintf(out->why, sizeof out->why, "the command exited with code %d", out->exit_code);
    }
}

/* Until it has ended and its streams are closed, or it is ended: for what it does, or since it is not wanted. */
static void follow_command(talk *self, pid_t process, const task_running *running)
{
    task_ended *out = self->out;
    int64_t began = base_now(), ended_at = 0;
    char reason[200] = "";
    bool killed = false;
    int nap = 1; /* of one that closes its streams early: milliseconds, longer each time */
    for (;;) {
        bool open = self->stream[0] >= 0 || self->stream[1] >= 0;
        bool ended = has_ended(process);
        if (ended && ended_at == 0)
            ended_at = base_now();
        if (ended && (!open || base_seconds_until(ended_at) < -AFTER_MS / 1000.0))
            break;
        double seconds = -base_seconds_until(began);
        if (atomic_load(running->stop)) {
            out->stopped = true;
        } else if (self->flooded) {
            snprintf(reason, sizeof reason, "the command wrote more than %zu bytes to standard output", self->most);
        } else if (running->item->timeout > 0 && seconds > running->item->timeout) {
            snprintf(reason, sizeof reason, "the command took longer than %g seconds", running->item->timeout);
        }
        if (!killed && (out->stopped || reason[0] || self->failure < 0)) {
            kill(-process, SIGKILL);
            killed = true;
        }
        if (!open && !ended)
            nap = nap < STEP_MS ? nap * 2 : STEP_MS;
        talk_once(self, ended ? 1 : open ? STEP_MS : nap);
    }
    kill(-process, SIGKILL); /* what it left behind */
    if (running->guard)
        release_process(running->guard, process);
    judge_end(out, process);
    if (reason[0])
        snprintf(out->why, sizeof out->why, "%s", reason);
}

int task_command_run(task_ended *out, const task_means *means, const task_running *running, const void *input,
                     size_t size)
{
    const task_item *item = running->item;
    int ours[3] = {-1, -1, -1}, theirs[3] = {-1, -1, -1};
    char **environment = NULL;
    pid_t process = 0;
    *out = (task_ended){.exit_code = -1};
    int status = item->files > 0 || item->outputs ? make_folder(&out->folder, means, item) : SHOAL_OK;
    if (out->folder && running->guard)
        guard_folder(running->guard, out->folder);
    if (status == SHOAL_OK)
        status = make_environment(&environment, item);
    if (status == SHOAL_OK)
        status = open_pipes(ours, theirs);
    if (status == SHOAL_OK) {
        int error = base_spawn(&process, &(base_spawning){.words = item->command,
                                                          .stream = {theirs[0], theirs[1], theirs[2]},
                                                          .folder = out->folder,
                                                          .environment = environment,
                                                          .group = BASE_GROUP_OWN});
        if (error)
            status = shoal_fail_errno(SHOAL_INVALID, error, "'%s' can't be started", item->command[0]);
    }
    for (int i = 0; i < 3; i++)
        base_close(&theirs[i]);
    if (status == SHOAL_OK) {
        talk talk = {.out = out,
                     .in = ours[0],
                     .stream = {ours[1], ours[2]},
                     .input = input,
                     .left = size,
                     .most = (size_t)means->memory};
        if (running->guard)
            guard_process(running->guard, process);
        if (size == 0)
            base_close(&talk.in);
        follow_command(&talk, process, running);
        ours[0] = talk.in;
        ours[1] = talk.stream[0];
        ours[2] = talk.stream[1];
        status =
            talk.failure < 0 ? shoal_fail(SHOAL_MEMORY, "what the command wrote does not fit into memory") : SHOAL_OK;
    }
    for (int i = 0; i < 3; i++)
        base_close(&ours[i]);
    base_free(&environment);
    return status;
}

void task_ended_release(task_ended *ended)
{
    base_free(&ended->output);
    if (ended->folder)
        base_remove_folder(ended->folder);
    base_free(&ended->folder);
}
