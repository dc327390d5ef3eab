/* See search_run.h.
 *
 * A thread waits for the command's end and notes the time; this one waits for that, for the time-out and for
 * signals.  The end is only looked at, not taken, until the group was told to end: so long its number can't belong to
 * anybody else. */
#include "search_run.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <shoal/error.h>

#include "base/io.h"
#include "base/memory.h"
#include "base/option.h"
#include "base/spawn.h"
#include "base/world.h"

enum { GRACE = 5 };             /* seconds from SIGTERM to SIGKILL */
static const double LOOK = 0.1; /* seconds between two looks at signals */

/* ---- figures ----------------------------------------------------------------------------------------------------- */

/* What a command told; NaN and "" for what it did not. */
typedef struct figures {
    double seconds, dollars;
    char said[96]; /* the last figure that is none */
} figures;

/* Reads one word; false when it is not the name of a figure. */
static bool take_figure(figures *out, const char *word)
{
    bool is_seconds = strncmp(word, "seconds=", 8) == 0, is_cost = strncmp(word, "cost=", 5) == 0;
    double value = 0;
    if (!is_seconds && !is_cost)
        return false;
    if (base_parse_real(&value, word + (is_seconds ? 8 : 5)) && isfinite(value) && value > 0)
        *(is_seconds ? &out->seconds : &out->dollars) = value;
    else
        snprintf(out->said, sizeof out->said, "%s", word);
    return true;
}

/* Takes a line that has figures and nothing else; what `out` has already, from later lines, stays. */
static bool take_line(figures *out, char *line)
{
    figures own = {.seconds = NAN, .dollars = NAN};
    char *rest = NULL, *word = strtok_r(line, " \t\r", &rest);
    if (!word)
        return false;
    for (; word; word = strtok_r(NULL, " \t\r", &rest))
        if (!take_figure(&own, word))
            return false;
    out->seconds = isnan(out->seconds) ? own.seconds : out->seconds;
    out->dollars = isnan(out->dollars) ? own.dollars : out->dollars;
    if (!out->said[0])
        memcpy(out->said, own.said, sizeof own.said);
    return true;
}

bool plan_search_figures(double *seconds, double *dollars, char said[96], char *text)
{
    figures told = {.seconds = NAN, .dollars = NAN};
    for (size_t end = strlen(text); end > 0;) {
        while (end > 0 && strchr("\n\r\t ", text[end - 1]))
            end--;
        text[end] = '\0';
        char *line = strrchr(text, '\n');
        line = line ? line + 1 : text;
        size_t start = (size_t)(line - text);
        if (end == 0 || !take_line(&told, line))
            break;
        end = start;
    }
    if (!isnan(told.seconds))
        *seconds = told.seconds;
    if (!isnan(told.dollars))
        *dollars = told.dollars;
    memcpy(said, told.said, sizeof told.said);
    return said[0] == '\0';
}

void plan_search_read_tail(char *out, size_t size, const char *path)
{
    out[0] = '\0';
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return;
    off_t length = lseek(file, 0, SEEK_END), from = length > (off_t)size - 1 ? length - (off_t)size + 1 : 0;
    ssize_t got = pread(file, out, size - 1, from);
    close(file);
    out[got > 0 ? got : 0] = '\0';
    for (ssize_t i = 0; i < got; i++)
        out[i] = out[i] ? out[i] : ' ';
    if (from > 0) /* the first line is not whole */
        memset(out, ' ', strcspn(out, "\n"));
}

/* ---- the process ------------------------------------------------------------------------------------------------- */

typedef struct process {
    pid_t id;
    base_guard guard; /* of its group, should this program die */
    int gate[2];      /* a pipe through which the command is told to begin; -1 once it was */
    base_thread *watcher;
    _Atomic uint32_t ended; /* the word that is waited on */
    int64_t end;
} process;

static int open_output(int *out, const char *path)
{
    *out = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    return *out < 0 ? shoal_fail_errno(SHOAL_SYSTEM, errno, "%s: can't write", path) : SHOAL_OK;
}

/* Starts a shell that waits at the gate before it becomes the command, and ends there if this program is killed. */
static int start_trial(process *out, const plan_search_run *run)
{
    int files[2] = {-1, -1};
    char *command = NULL;
    int status = open_output(&files[0], run->stdout_path);
    out->gate[0] = out->gate[1] = -1;
    if (status == SHOAL_OK)
        status = open_output(&files[1], run->stderr_path);
    if (status == SHOAL_OK)
        status =
            base_format(&command, "read -r shoal_gate || exit 1; unset shoal_gate; exec </dev/null\n%s", run->command);
    if (status == SHOAL_OK && pipe2(out->gate, O_CLOEXEC) < 0)
        status = shoal_fail_errno(SHOAL_SYSTEM, errno, "can't start a process");
    if (status == SHOAL_OK) {
        int error = base_spawn_shell(
            &out->id, command, &(base_spawning){.stream = {out->gate[0], files[0], files[1]}, .group = BASE_GROUP_OWN});
        if (error)
            status = shoal_fail_errno(SHOAL_SYSTEM, error, "can't start a process");
    }
    for (int i = 0; i < 2; i++) {
        base_close(&files[i]);
        if (status < 0)
            base_close(&out->gate[i]);
    }
    base_free(&command);
    return status;
}

/* Has its group guarded, and then lets it go on.  Without a guard a command still runs, and only outlives this program
 * if that is killed. */
static void guard(process *self)
{
    char line[16];
    int length = snprintf(line, sizeof line, "%ld\n", (long)self->id);
    if (base_guard_start(&self->guard, GRACE) == 0)
        (void)base_write_all(self->guard.pipe, line, (size_t)length);
    (void)base_write_all(self->gate[1], "\n", 1); /* its other end is open here, too: nobody gets SIGPIPE */
    base_close(&self->gate[0]);
    base_close(&self->gate[1]);
}

static void signal_group(pid_t id, int number)
{
    kill(-id, number);
    kill(-id, SIGCONT); /* one that was stopped could not hear it */
}

static void watch(void *context)
{
    process *self = context;
    siginfo_t info;
    while (waitid(P_PID, (id_t)self->id, &info, WEXITED | WNOWAIT) < 0 && errno == EINTR)
        ;
    self->end = base_now();
    atomic_store(&self->ended, 1);
    base_wake_word(&self->ended, 1);
}

/* Waits until it has ended, or until the time. */
static bool await(process *self, int64_t until)
{
    while (!atomic_load(&self->ended) && base_now() < until)
        base_wait_word(&self->ended, 0, until);
    return atomic_load(&self->ended);
}

/* Takes note of the end and ends what is left of the group; nobody is told twice. */
static int clear_away(process *self, bool told, int64_t kill_at)
{
    int how;
    if (!told)
        signal_group(self->id, SIGTERM);
    base_guard_stop(&self->guard);
    base_thread_join(&self->watcher);
    base_wait(self->id, &how);
    while (kill(-self->id, 0) == 0 && base_now() < kill_at)
        base_sleep_until(base_time_after(base_now(), 0.005));
    kill(-self->id, SIGKILL);
    return how;
}

/* ---- a trial ----------------------------------------------------------------------------------------------------- */

/* Waits for the end, the time-out or a signal.  True when the command ended by itself. */
static bool follow_trial(process *self, const plan_search_run *run, int64_t began)
{
    int64_t last = run->timeout > 0 ? base_time_after(began, run->timeout) : INT64_MAX;
    for (;;) {
        int64_t now = base_now(), look = base_time_after(now, LOOK);
        if (await(self, look < last ? look : last))
            return true;
        now = base_now();
        if (*run->stop || now >= last)
            return false;
        if (run->waiting)
            run->waiting(run->context, (double)(now - began) * 1e-9);
    }
}

static void judge_trial(plan_trial_record *trial, const plan_search_run *run, int how)
{
    char text[4096];
    if (WIFSIGNALED(how))
        trial->signal_sent = WTERMSIG(how);
    else
        trial->exit_code = WEXITSTATUS(how);
    trial->outcome = trial->signal_sent || trial->exit_code ? PLAN_TRIAL_FAILED : PLAN_TRIAL_DONE;
    if (trial->outcome != PLAN_TRIAL_DONE)
        return;
    plan_search_read_tail(text, sizeof text, run->stdout_path);
    if (!plan_search_figures(&trial->seconds, &trial->told_dollars, trial->said, text))
        trial->outcome = PLAN_TRIAL_FAILED;
}

int plan_search_run_trial(plan_trial_record *trial, const plan_search_run *run)
{
    process self = {0};
    trial->told_dollars = NAN;
    int status = start_trial(&self, run);
    if (status < 0)
        return status;
    int64_t began = base_now();
    guard(&self);
    status = base_thread_start(&self.watcher, watch, &self);
    bool by_itself = status == SHOAL_OK && follow_trial(&self, run, began);
    int64_t kill_at = base_time_after(base_now(), GRACE);
    if (!by_itself) {
        signal_group(self.id, SIGTERM);
        if (status < 0 || !await(&self, kill_at))
            kill(-self.id, SIGKILL);
    }
    int how = clear_away(&self, !by_itself, kill_at);
    if (status < 0)
        return status;
    if (!by_itself && *run->stop)
        return shoal_fail(SHOAL_STOPPED, "stopped");
    trial->seconds = by_itself ? fmax((double)(self.end - began) * 1e-9, 1e-9) : run->timeout;
    if (by_itself)
        judge_trial(trial, run, how);
    else
        trial->outcome = PLAN_TRIAL_TIMED_OUT;
    return SHOAL_OK;
}
