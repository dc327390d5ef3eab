/* Workers as processes of this machine.  See launch_internal.h.
 *
 * A worker's messages go to a file in memory rather than a pipe, so that it can keep writing after its starter was
 * killed. */
#include "launch/launch_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <shoal/error.h>

#include "base/io.h"
#include "base/memory.h"
#include "base/parting.h"
#include "base/spawn.h"
#include "base/world.h"

enum {
    TEXT_BYTES = 4096,   /* of a worker's output that are looked at */
    STARTS_A_MINUTE = 3, /* again, of one slot */
    BUDGET = 10,         /* starts again without progress; a death costs one */
    FAILURE_COSTS = 6,   /* of the budget: what failed with a reason will probably fail again, so it is tried twice */
    EXIT_GOES_ON = 3,    /* a worker's exit code when another try may help */
    STOP_POLL_MS = 5,
};
static const char this_program[] = "/proc/self/exe"; /* even if its file was replaced since */
static const double FIRST_PAUSE = 0.5, LONGEST_PAUSE = 30;

typedef struct slot {
    pid_t process; /* 0 when none runs */
    uint64_t worker;
    int text;                       /* file in memory with what it says; -1 for none */
    bool leaving;                   /* it was told to go */
    bool ended;                     /* by itself without failing, or because it was given up: it is not started again */
    int spent;                      /* of the budget */
    int deaths;                     /* since the last progress */
    int64_t due;                    /* when to start it again */
    int64_t again[STARTS_A_MINUTE]; /* when it was started again, the latest times */
} slot;

struct launch_crew {
    launch_crew_options options;
    slot *slots;
    int64_t room, wanted;
    char reason[512]; /* of the last one that was given up; "" for none */
    int key;          /* a file in memory with the key of those that run tasks; -1 for none */
};

/* ---- one worker -------------------------------------------------------------------------------------------------- */

/* What it says goes to the descriptor `text`. */
static int start(pid_t *out, const char *program, const char *const *words, int text, int key, base_group group)
{
    int error = base_spawn(out, &(base_spawning){.words = words,
                                                 .program = program,
                                                 .stream = {-1, -1, text},
                                                 .extra = key,
                                                 .group = group,
                                                 .ignores_too = true});
    return error == 0 ? SHOAL_OK : shoal_fail_errno(SHOAL_SYSTEM, error, "can't start %s", program);
}

int launch_detached(const char *program, const char *const *arguments, const char *log)
{
    const char *all[LAUNCH_ARGUMENTS_MOST + 2] = {"shoal"};
    pid_t process = 0;
    int count = 0;
    for (; arguments[count]; count++) {
        if (count == LAUNCH_ARGUMENTS_MOST)
            SHOAL_BUG("more than %d arguments", count);
        all[count + 1] = arguments[count];
    }
    const char *path = program ? program : this_program;
    int text = log ? open(log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600) : -1;
    if (log && text < 0)
        return shoal_fail_errno(SHOAL_SYSTEM, errno, "can't start %s", path);
    int status = start(&process, path, all, text, -1, BASE_GROUP_SESSION);
    base_close(&text);
    return status;
}

static int start_worker(launch_crew *self, int64_t index)
{
    slot *slot = &self->slots[index];
    launch_arguments arguments = {0};
    const char *all[LAUNCH_ARGUMENTS_MOST + 2] = {"shoal"};
    const char *program = self->options.program ? self->options.program : this_program;
    do
        base_entropy(&slot->worker, sizeof slot->worker);
    while (slot->worker == 0);
    self->options.arguments(self->options.context, &arguments, index, slot->worker);
    if (arguments.count < 0 || arguments.count > LAUNCH_ARGUMENTS_MOST)
        SHOAL_BUG("%d arguments of a worker", arguments.count);
    memcpy(all + 1, arguments.argument, (size_t)arguments.count * sizeof *all);
    if (slot->text < 0)
        slot->text = memfd_create("shoal-worker", MFD_CLOEXEC);
    if (slot->text >= 0 && (ftruncate(slot->text, 0) < 0 || lseek(slot->text, 0, SEEK_SET) < 0))
        return shoal_fail_errno(SHOAL_SYSTEM, errno, "can't keep what a worker says");
    slot->leaving = slot->ended = false;
    int status = start(&slot->process, program, all, slot->text, self->key, self->options.group);
    if (status < 0)
        return status;
    base_parting_add(slot->process);
    if (self->options.started)
        self->options.started(self->options.context, slot->worker);
    return SHOAL_OK;
}

/* The last line it wrote, without "shoal: "; "" if it wrote nothing. */
static void read_reason(char *out, size_t size, int text)
{
    char tail[TEXT_BYTES + 1];
    out[0] = '\0';
    off_t end = text >= 0 ? lseek(text, 0, SEEK_END) : -1;
    if (end <= 0)
        return;
    off_t from = end > TEXT_BYTES ? end - TEXT_BYTES : 0;
    ssize_t count = pread(text, tail, TEXT_BYTES, from);
    while (count > 0 && (tail[count - 1] == '\n' || tail[count - 1] == '\0'))
        count--;
    if (count <= 0)
        return;
    tail[count] = '\0';
    char *line = strrchr(tail, '\n');
    line = line ? line + 1 : tail;
    if (strncmp(line, "shoal: ", 7) == 0)
        line += 7;
    snprintf(out, size, "%.*s", (int)size - 1, line);
}

/* ---- its end ----------------------------------------------------------------------------------------------------- */

static double pause_of(const slot *slot)
{
    if (slot->deaths <= 1)
        return 0;
    double pause = ldexp(FIRST_PAUSE, slot->deaths - 2 < 10 ? slot->deaths - 2 : 10);
    return pause < LONGEST_PAUSE ? pause : LONGEST_PAUSE;
}

/* Decides when a worker that died or failed is started again, if ever. */
static void plan_again(launch_crew *self, slot *slot, bool failed, const char *why)
{
    int64_t now = base_now(), minute = base_time_after(slot->again[0], 60);
    slot->deaths++;
    slot->spent += failed ? FAILURE_COSTS : 1;
    if (slot->spent > BUDGET) {
        slot->ended = true;
        snprintf(self->reason, sizeof self->reason, "%.511s", why);
        return;
    }
    slot->due = base_time_after(now, pause_of(slot));
    if (slot->again[0] != 0 && minute > slot->due)
        slot->due = minute;
}

/* Signals that a process causes itself, rather than being sent them. */
static bool is_own_fault(int number)
{
    return number == SIGSEGV || number == SIGBUS || number == SIGABRT || number == SIGILL || number == SIGFPE;
}

static const char died_by[] = "died: signal ";

bool launch_is_crash(const char *why)
{
    const char *at = strstr(why, died_by);
    return at && is_own_fault(atoi(at + strlen(died_by)));
}

static void note_end(launch_crew *self, slot *slot, const siginfo_t *end)
{
    char why[640], reason[512];
    bool by_signal = end->si_code == CLD_KILLED || end->si_code == CLD_DUMPED;
    slot->process = 0;
    if (!by_signal && end->si_status == 0) {
        slot->ended = true;
        return;
    }
    read_reason(reason, sizeof reason, slot->text);
    if (by_signal)
        snprintf(why, sizeof why, "%s%d%s%s", died_by, end->si_status, *reason ? ", " : "", reason);
    else if (*reason)
        snprintf(why, sizeof why, "failed: %s", reason);
    else
        snprintf(why, sizeof why, "failed: exit code %d", end->si_status);
    if (self->options.gone)
        self->options.gone(self->options.context, slot->worker, why);
    if (slot->leaving)
        slot->ended = true;
    else
        plan_again(self, slot, by_signal ? is_own_fault(end->si_status) : end->si_status != EXIT_GOES_ON, why);
}

/* Checks whether the worker of a slot has ended. */
static void look_at_worker(launch_crew *self, slot *slot)
{
    siginfo_t end = {0};
    if (slot->process == 0)
        return;
    int waited = waitid(P_PID, (id_t)slot->process, &end, WEXITED | WNOHANG | WNOWAIT);
    if (waited == 0 && end.si_pid == 0)
        return;
    if (waited < 0 && errno != ECHILD)
        return;
    base_parting_remove(slot->process);
    if (waited == 0)
        waited = waitid(P_PID, (id_t)slot->process, &end, WEXITED | WNOHANG);
    if (waited == 0 && end.si_pid != 0) {
        note_end(self, slot, &end);
    } else { /* the program that embeds us reaps all children: how it ended is unknown */
        slot->process = 0;
        slot->ended = true;
    }
}

/* ---- all of them ------------------------------------------------------------------------------------------------- */

static int make_slots(launch_crew *self, int64_t count)
{
    if (count <= self->room)
        return SHOAL_OK;
    int status = base_grow(&self->slots, (size_t)self->room, (size_t)count, sizeof *self->slots, "the workers");
    if (status < 0)
        return status;
    for (int64_t i = self->room; i < count; i++)
        self->slots[i].text = -1;
    self->room = count;
    return SHOAL_OK;
}

int launch_crew_scale(launch_crew *self, int64_t count)
{
    if (count < 0 || count > LAUNCH_WORKERS_MOST)
        return shoal_fail(SHOAL_USAGE, "%lld workers: there can be 0 to %d on a machine", (long long)count,
                          LAUNCH_WORKERS_MOST);
    int status = make_slots(self, count);
    for (int64_t i = 0; i < count && status == SHOAL_OK; i++) {
        slot *slot = &self->slots[i];
        bool fresh = i >= self->wanted;
        if (fresh && slot->process == 0) {
            slot->spent = slot->deaths = 0;
            status = start_worker(self, i);
        }
    }
    if (status < 0)
        return status;
    for (int64_t i = count; i < self->room; i++) {
        slot *slot = &self->slots[i];
        if (slot->process != 0 && !slot->leaving)
            kill(slot->process, SIGTERM);
        slot->leaving = slot->ended = true;
    }
    self->wanted = count;
    return SHOAL_OK;
}

/* A file that workers read and nobody can change. */
static int keep_key(int *out, const char *key)
{
    *out = memfd_create("shoal-key", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    int error = *out < 0 ? errno : base_write_all(*out, key, strlen(key));
    if (!error && fcntl(*out, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0)
        error = errno;
    return error ? shoal_fail_errno(SHOAL_SYSTEM, error, "can't keep the key of the workers") : SHOAL_OK;
}

int launch_crew_new(launch_crew **out, int64_t count, const launch_crew_options *options)
{
    launch_crew *self = NULL;
    int status = base_alloc(&self, 1, sizeof *self, "the workers");
    if (status < 0)
        return status;
    self->options = *options;
    self->key = -1;
    if (options->task_key)
        status = keep_key(&self->key, options->task_key);
    if (status == SHOAL_OK)
        status = launch_crew_scale(self, count);
    if (status < 0) {
        launch_crew_end(self);
        launch_crew_free(&self);
        return status;
    }
    *out = self;
    return SHOAL_OK;
}

static int start_again(launch_crew *self, int64_t index, int64_t now)
{
    slot *slot = &self->slots[index];
    if (slot->process != 0 || slot->ended || slot->due > now)
        return SHOAL_OK;
    memmove(slot->again, slot->again + 1, sizeof slot->again - sizeof slot->again[0]);
    slot->again[STARTS_A_MINUTE - 1] = now;
    return start_worker(self, index);
}

int launch_crew_tick(launch_crew *self)
{
    int64_t now = base_now(), hopeful = 0;
    int status = SHOAL_OK;
    for (int64_t i = 0; i < self->room; i++)
        look_at_worker(self, &self->slots[i]);
    for (int64_t i = 0; i < self->wanted && status == SHOAL_OK; i++) {
        slot *slot = &self->slots[i];
        if (slot->process != 0 && slot->leaving)
            continue; /* scaled down and up again: its successor starts once it is gone */
        if (slot->process == 0 && slot->leaving) {
            slot->leaving = slot->ended = false;
            slot->due = 0;
        }
        status = start_again(self, i, now);
        hopeful += !slot->ended;
    }
    if (status == SHOAL_OK && hopeful == 0 && self->wanted > 0 && self->reason[0])
        return shoal_fail(SHOAL_INVALID, "the workers keep failing: the last one %s", self->reason);
    return status;
}

void launch_crew_progress(launch_crew *self)
{
    for (int64_t i = 0; i < self->room; i++)
        self->slots[i].spent = self->slots[i].deaths = 0;
}

int64_t launch_crew_running(const launch_crew *self)
{
    int64_t running = 0;
    for (int64_t i = 0; i < self->room; i++)
        running += self->slots[i].process != 0;
    return running;
}

int64_t launch_crew_wanted(const launch_crew *self)
{
    return self->wanted;
}

bool launch_crew_wait(launch_crew *self, double seconds)
{
    int64_t until = base_time_after(base_now(), seconds);
    for (;;) {
        for (int64_t i = 0; i < self->room; i++) {
            self->slots[i].leaving = true;
            look_at_worker(self, &self->slots[i]);
        }
        if (launch_crew_running(self) == 0)
            return true;
        if (base_now() >= until)
            return false;
        base_sleep_until(base_time_after(base_now(), STOP_POLL_MS / 1000.0));
    }
}

static void signal_all(launch_crew *self, int number)
{
    for (int64_t i = 0; i < self->room; i++)
        if (self->slots[i].process != 0)
            kill(self->slots[i].process, number);
}

void launch_crew_tell_leave(launch_crew *self)
{
    for (int64_t i = 0; i < self->room; i++)
        self->slots[i].leaving = true;
    signal_all(self, SIGTERM);
    signal_all(self, SIGCONT); /* a stopped process could not leave */
}

void launch_crew_end(launch_crew *self)
{
    signal_all(self, SIGKILL);
    launch_crew_wait(self, 10); /* only a process stuck in the kernel outlives this */
}

void launch_crew_free(launch_crew **crew)
{
    launch_crew *self = *crew;
    if (!self)
        return;
    for (int64_t i = 0; i < self->room; i++) {
        if (self->slots[i].process != 0)
            base_parting_remove(self->slots[i].process);
        if (self->slots[i].text >= 0)
            close(self->slots[i].text);
    }
    base_close(&self->key);
    base_free(&self->slots);
    base_free(crew);
}
