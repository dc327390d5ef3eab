/* See process.h. */
#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <shoal/error.h>

#include "base/io.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"
#include "base/world.h"

enum {
    GRACE = 5,           /* seconds from SIGTERM to SIGKILL */
    LINE_MOST = 1 << 16, /* longer lines are no reports */
    TAIL_BYTES = 2048,
    TAIL_SHOWN = 350, /* of it in a note, */
    TAIL_LINES = 3,   /* and not more lines */
    LOOK = 100,       /* milliseconds between two looks at the stop flag */
    LOCK_SECONDS = 8, /* that an earlier command of the same trial may take to end */
    STREAMS = 2,      /* standard output and standard error */
    PUNCH = 4 << 20   /* bytes of standard output that were read and still take room */
};

typedef struct stream {
    int file;   /* -1: closed */
    int64_t at; /* of standard output, the file: what was read */
    char line[LINE_MOST];
    size_t length;
    bool skips; /* the line is too long */
} stream;

struct sweep_process {
    pid_t id;
    int handle; /* a descriptor that is readable once it has ended; -1 where the system has none */
    bool ended, waited;
    int how; /* it ended */
    base_guard *guard;
    const char *objective, *other[SWEEP_OTHERS_MOST];
    double sign;
    bool traces, counts;
    stream stream[STREAMS];
    int append;            /* descriptor to write to the file of standard output, with which a learner traces, too */
    int watch;             /* one that tells of changes to it; -1: there is none */
    int64_t punched;       /* bytes of it that take no room any more */
    char tail[TAIL_BYTES]; /* of what it printed last */
    size_t tail_length;
    char note[SWEEP_NOTE_BYTES];
    bool nonsense; /* it reported what is not a number */
    sweep_report *report;
    int64_t reports, room;
    int64_t last;      /* step */
    int64_t at;        /* step of the last line, which may be one that was known */
    int64_t told;      /* up to here by sweep_process_take */
    double told_value; /* the best up to there */
    int64_t began;     /* when it did */
    int64_t heard;     /* when the last report came */
    int64_t until;     /* the step it is followed to */
};

/* ---- reports ----------------------------------------------------------------------------------------------------- */

static void fail_process(sweep_process *self, const char *why)
{
    if (!self->note[0])
        snprintf(self->note, sizeof self->note, "%s", why);
    base_text_clean(self->note);
}

static void add_report(sweep_process *self, int64_t step, double value, const json_t *line)
{
    if (step <= self->last)
        return; /* known already: it began again further back */
    if (self->reports == self->room) {
        const int64_t room = self->room ? 2 * self->room : 64;
        if (base_grow(&self->report, (size_t)self->room, (size_t)room, sizeof *self->report, "reports") < 0)
            return;
        self->room = room;
    }
    sweep_report *report = &self->report[self->reports++];
    *report = (sweep_report){.step = step, .value = value};
    for (int i = 0; i < SWEEP_OTHERS_MOST; i++) {
        const json_t *other = self->other[i] ? json_object_get(line, self->other[i]) : NULL;
        report->other[i] = json_is_number(other) ? json_number_value(other) : (double)NAN;
    }
    self->last = step;
    self->heard = base_now();
}

/* Whether a line is a report where the time is what counts. */
static bool tells_something(const sweep_process *self, const json_t *line)
{
    bool some = json_object_get(line, "step") != NULL;
    for (int i = 0; i < SWEEP_OTHERS_MOST; i++)
        some = some || (self->other[i] && json_object_get(line, self->other[i]));
    return some;
}

typedef enum meaning { OTHER_OUTPUT, REPORT, NONSENSE } meaning;

/* The objective's value; a line that is no JSON is meant as a report if it names the objective. */
static meaning read_value(double *out, const sweep_process *self, const json_t *json, const char *line)
{
    const json_t *value = json_object_get(json, self->objective);
    char key[256];
    snprintf(key, sizeof key, "\"%s\"", self->objective);
    if (json ? !value || (self->traces && json_is_null(value)) : !strstr(line, key))
        return OTHER_OUTPUT;
    *out = json_number_value(value);
    return json_is_number(value) && isfinite(*out) ? REPORT : NONSENSE;
}

static void fail_by_line(sweep_process *self, const char *what, const char *line)
{
    char why[SWEEP_NOTE_BYTES];
    snprintf(why, sizeof why, "%s: %.300s", what, line);
    fail_process(self, why);
    self->nonsense = true;
}

static double seconds_since(int64_t then)
{
    return (double)(base_now() - then) * 1e-9;
}

/* A line that is meant as a report and is none makes the trial fail: NaN, above all, which is no JSON.  What a learner
 * prints at its end counts only if its trace has not told the objective, and it was not stopped. */
static void read_line(sweep_process *self, char *line)
{
    line += strspn(line, " \t");
    if (*line != '{')
        return;
    json_t *json = json_loads(line, 0, NULL);
    const json_t *step = json_object_get(json, "step");
    /* A learner's trace says null where a round has no objective. */
    const bool summary = self->traces && !step && (self->at > 0 || json_is_true(json_object_get(json, "stopped")));
    double value = seconds_since(self->began);
    const meaning meant = summary                               ? OTHER_OUTPUT
                          : self->objective                     ? read_value(&value, self, json, line)
                          : json && tells_something(self, json) ? REPORT
                                                                : OTHER_OUTPUT;
    if (meant == NONSENSE)
        fail_by_line(self, "it reported what is not a number", line);
    else if (meant == REPORT && step && (!json_is_number(step) || !(fabs(json_number_value(step)) < 1e15)))
        fail_by_line(self, "it reported a step that is not a number", line);
    else if (meant == REPORT && !step && self->counts && !self->traces)
        fail_by_line(self, "it reported without a \"step\", which --steps counts", line);
    else if (meant == REPORT) {
        self->at = step ? (int64_t)json_number_value(step) : self->at + 1;
        add_report(self, self->at, value, json);
    }
    json_decref(json);
}

static void keep_tail(sweep_process *self, const char *bytes, size_t size)
{
    if (size >= TAIL_BYTES) {
        bytes += size - TAIL_BYTES;
        size = TAIL_BYTES;
    }
    const size_t over = self->tail_length + size > TAIL_BYTES ? self->tail_length + size - TAIL_BYTES : 0;
    memmove(self->tail, self->tail + over, self->tail_length - over);
    memcpy(self->tail + self->tail_length - over, bytes, size);
    self->tail_length += size - over;
}

static void take_bytes(sweep_process *self, stream *from, const char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (bytes[i] == '\n') {
            from->line[from->length] = '\0';
            if (!from->skips)
                read_line(self, from->line);
            from->length = 0;
            from->skips = false;
        } else if (from->length + 1 < LINE_MOST) {
            from->line[from->length++] = bytes[i] ? bytes[i] : ' ';
        } else {
            from->skips = true;
        }
    }
}

/* A report whose line will take no room any more. */
static void append_report(sweep_process *self, const sweep_report *report)
{
    json_t *object = json_object();
    base_json_put(&object, "step", json_integer(report->step));
    if (self->objective)
        base_json_put(&object, self->objective, json_real(report->value));
    for (int i = 0; i < SWEEP_OTHERS_MOST; i++)
        if (self->other[i] && isfinite(report->other[i]))
            base_json_put(&object, self->other[i], json_real(report->other[i]));
    char *text = object ? json_dumps(object, JSON_COMPACT) : NULL;
    if (text) {
        (void)base_write_all(self->append, "\n", 1);
        (void)base_write_all(self->append, text, strlen(text));
        (void)base_write_all(self->append, "\n", 1);
    }
    json_decref(object);
    free(text);
}

/* What was read of the file takes no room any more, but for the reports, which are told again at its end. */
static void punch_hole(sweep_process *self)
{
    const int64_t end = self->stream[0].at & ~(int64_t)4095;
    if (end - self->punched < PUNCH)
        return;
    for (int64_t i = 0; i < self->reports; i++)
        append_report(self, &self->report[i]);
    (void)fallocate(self->append, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, end);
    self->punched = end;
}

/* The next bytes of the file: 0 for none yet. */
static ssize_t read_file(sweep_process *self, char *bytes, size_t size)
{
    const ssize_t got = pread(self->stream[0].file, bytes, size, self->stream[0].at);
    if (got > 0)
        self->stream[0].at += got;
    return got;
}

/* Reads what there is, a bounded amount; false when there was nothing. */
static bool read_stream(sweep_process *self, int which)
{
    char bytes[1 << 14];
    stream *from = &self->stream[which];
    if (from->file < 0)
        return false;
    const ssize_t got = which == 0 ? read_file(self, bytes, sizeof bytes) : read(from->file, bytes, sizeof bytes);
    if (got > 0) {
        keep_tail(self, bytes, (size_t)got);
        if (which == 0) {
            take_bytes(self, from, bytes, (size_t)got);
            punch_hole(self);
        }
        return true;
    }
    if (which != 0 && (got == 0 || (errno != EAGAIN && errno != EINTR)))
        base_close(&from->file);
    return false;
}

/* ---- starting ---------------------------------------------------------------------------------------------------- */

/* Opens the file of standard output at its first data; a line that was cut off by a death is ended. */
static int open_reports(sweep_process *self, const char *path)
{
    const int64_t until = base_time_after(base_now(), LOCK_SECONDS);
    char last = '\n';
    self->append = open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    self->stream[0].file = open(path, O_RDONLY | O_CLOEXEC);
    if (self->append < 0 || self->stream[0].file < 0)
        return shoal_fail_errno(SHOAL_SYSTEM, errno, "%s: can't write", path);
    /* An earlier command of this trial holds the lock by its standard output until it has ended: one that was left by a
     * process that was killed, say. */
    while (flock(self->append, LOCK_EX | LOCK_NB) < 0 && base_now() < until)
        base_sleep_until(base_time_after(base_now(), 0.02));
    const off_t size = lseek(self->append, 0, SEEK_END), data = lseek(self->stream[0].file, 0, SEEK_DATA);
    if (size > 0 && pread(self->append, &last, 1, size - 1) == 1 && last != '\n')
        (void)base_write_all(self->append, "\n", 1);
    self->stream[0].at = self->punched = data > 0 ? data : 0;
    self->watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (self->watch >= 0 && inotify_add_watch(self->watch, path, IN_MODIFY) < 0)
        base_close(&self->watch);
    return SHOAL_OK;
}

static int open_streams(int inner[STREAMS], sweep_process *self, const sweep_starting *starting)
{
    for (int i = 0; i < STREAMS; i++)
        inner[i] = self->stream[i].file = -1;
    int ends[2];
    int status = open_reports(self, starting->reports);
    inner[0] = self->append;
    if (status < 0)
        return status;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return shoal_fail_errno(SHOAL_SYSTEM, errno, "can't start a trial");
    self->stream[1].file = ends[0];
    inner[1] = ends[1];
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    return SHOAL_OK;
}

static void close_streams(sweep_process *self)
{
    for (int i = 0; i < STREAMS; i++)
        base_close(&self->stream[i].file);
    base_close(&self->append);
    base_close(&self->watch);
    base_close(&self->handle);
}

/* The shell waits at a gate, and ends there if this program dies, until the guard knows its group. */
static int spawn_command(sweep_process *self, const sweep_starting *starting, const int inner[STREAMS])
{
    char *command = NULL, line[24];
    int gate[2];
    int status =
        base_format(&command, "read -r shoal_gate || exit 1; unset shoal_gate; exec </dev/null\n%s", starting->command);
    if (status == SHOAL_OK && pipe2(gate, O_CLOEXEC) < 0)
        status = shoal_fail_errno(SHOAL_SYSTEM, errno, "can't start a trial");
    if (status < 0) {
        base_free(&command);
        return status;
    }
    const int error = base_spawn_shell(&self->id, command,
                                       &(base_spawning){.stream = {gate[0], inner[0], inner[1]},
                                                        .extra = self->traces ? self->append : -1,
                                                        .folder = starting->place,
                                                        .environment = starting->environment,
                                                        .group = BASE_GROUP_OWN});
    if (!error && self->guard && self->guard->process > 0) {
        snprintf(line, sizeof line, "%ld\n", (long)self->id);
        (void)base_write_all(self->guard->pipe, line, strlen(line));
    }
    if (!error)
        (void)base_write_all(gate[1], "\n", 1);
    close(gate[0]);
    close(gate[1]);
    base_free(&command);
    return error ? shoal_fail_errno(SHOAL_SYSTEM, error, "can't start a trial") : SHOAL_OK;
}

static int open_handle(pid_t id)
{
#ifdef SYS_pidfd_open
    const int handle = (int)syscall(SYS_pidfd_open, id, 0);
    if (handle >= 0)
        fcntl(handle, F_SETFD, FD_CLOEXEC);
    return handle;
#else
    (void)id;
    return -1;
#endif
}

int sweep_process_start(sweep_process **out, const sweep_starting *starting)
{
    sweep_process *self = NULL;
    int inner[STREAMS];
    *out = NULL;
    int status = base_alloc(&self, 1, sizeof *self, "a trial");
    if (status < 0)
        return status;
    self->handle = self->append = self->watch = -1;
    self->guard = starting->guard;
    self->objective = starting->objective;
    memcpy(self->other, starting->other, sizeof self->other);
    self->began = base_now();
    self->sign = starting->sign;
    self->traces = starting->traces;
    self->counts = starting->counts;
    self->last = self->told = starting->from;
    self->told_value = starting->value;
    self->heard = base_now();
    status = open_streams(inner, self, starting);
    if (status == SHOAL_OK)
        status = spawn_command(self, starting, inner);
    base_close(&inner[1]);
    if (status == SHOAL_OK) {
        self->handle = open_handle(self->id);
        *out = self;
        return SHOAL_OK;
    }
    close_streams(self);
    base_free(&self);
    return status;
}

/* ---- listening --------------------------------------------------------------------------------------------------- */

/* Whether it has ended; its number stays its own until it is waited for. */
static bool has_ended(sweep_process *self)
{
    siginfo_t info = {0};
    if (!self->ended)
        self->ended = waitid(P_PID, (id_t)self->id, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || info.si_pid == self->id;
    return self->ended;
}

/* Waits a moment for output or the end, and reads what there is. */
static void listen_once(sweep_process *self, int milliseconds)
{
    struct pollfd poll_for[STREAMS + 1];
    char events[4096];
    int count = 0;
    if (self->stream[1].file >= 0)
        poll_for[count++] = (struct pollfd){.fd = self->stream[1].file, .events = POLLIN};
    if (self->watch >= 0)
        poll_for[count++] = (struct pollfd){.fd = self->watch, .events = POLLIN};
    if (self->handle >= 0 && !self->ended)
        poll_for[count++] = (struct pollfd){.fd = self->handle, .events = POLLIN};
    if (self->handle < 0 || self->watch < 0)
        milliseconds = milliseconds < 10 ? milliseconds : 10;
    (void)poll(poll_for, (nfds_t)count, milliseconds);
    while (self->watch >= 0 && read(self->watch, events, sizeof events) > 0)
        ;
    for (int i = 0; i < STREAMS; i++)
        read_stream(self, i);
}

/* What a process that has ended had printed; others may go on, and are not waited for. */
static void read_rest(sweep_process *self)
{
    struct stat file = {0};
    (void)fstat(self->append, &file);
    while (self->stream[0].at < file.st_size && read_stream(self, 0))
        ;
    for (int turn = 0; turn < 1024 && read_stream(self, 1); turn++)
        ;
    if (self->stream[0].length > 0)
        take_bytes(self, &self->stream[0], "\n", 1);
}

/* The last lines that it printed, as one. */
static void append_tail(char *out, size_t size, const sweep_process *self)
{
    char text[TAIL_BYTES + 1];
    size_t length = self->tail_length, start;
    int lines = 0;
    for (size_t i = 0; i < length; i++)
        text[i] = self->tail[i] ? self->tail[i] : ' ';
    while (length > 0 && strchr(" \n\r\t", text[length - 1]))
        length--;
    text[length] = '\0';
    for (start = length; start > 0 && length - start < TAIL_SHOWN; start--)
        if (text[start - 1] == '\n' && ++lines == TAIL_LINES)
            break;
    for (char *at = text + start; *at; at++)
        *at = *at == '\n' ? '|' : *at;
    const size_t used = strlen(out);
    if (text[start])
        snprintf(out + used, size - used, ": %.400s", text + start);
}

static sweep_event judge_end(sweep_process *self)
{
    char why[SWEEP_NOTE_BYTES];
    siginfo_t info = {0};
    (void)waitid(P_PID, (id_t)self->id, &info, WEXITED | WNOHANG | WNOWAIT);
    if (info.si_code == CLD_EXITED && info.si_status == 0 && !self->nonsense) {
        if (self->last > 0 || !self->objective)
            return SWEEP_ENDED;
        snprintf(why, sizeof why, "it ended without reporting \"%.100s\"", self->objective);
    } else if (info.si_code == CLD_EXITED) {
        snprintf(why, sizeof why, "exit code %d", info.si_status);
    } else {
        snprintf(why, sizeof why, "signal %d", info.si_status);
    }
    append_tail(why, sizeof why, self);
    fail_process(self, why);
    return SWEEP_FAILS;
}

sweep_event sweep_process_follow(sweep_process *self, int64_t until, double timeout, int64_t moment,
                                 const volatile int *stop)
{
    if (until != self->until)
        self->heard = base_now();
    self->until = until;
    while (read_stream(self, 0)) /* also what an earlier process has reported */
        if (self->last >= until || self->nonsense)
            break;
    for (;;) {
        if (self->nonsense)
            return SWEEP_FAILS;
        if (self->last >= until)
            return SWEEP_REACHED;
        if (*stop)
            return SWEEP_STOPPED;
        if (has_ended(self)) {
            read_rest(self);
            return self->last >= until ? SWEEP_REACHED : judge_end(self);
        }
        if (timeout > 0 && base_now() > base_time_after(self->heard, timeout)) {
            char why[96];
            snprintf(why, sizeof why, "no report for %g seconds", timeout);
            fail_process(self, why);
            return SWEEP_FAILS;
        }
        if (base_now() >= moment)
            return SWEEP_RUNS;
        listen_once(self, LOOK);
    }
}

/* ---- the end ----------------------------------------------------------------------------------------------------- */

static void signal_group(pid_t id, int number)
{
    kill(-id, number);
    kill(-id, SIGCONT); /* one that was stopped could not hear it */
}

/* Its output is read on, so that it does not wait at a full pipe. */
static void await_end(sweep_process *self, int64_t until)
{
    while (!has_ended(self) && base_now() < until)
        listen_once(self, 20);
}

void sweep_process_end(sweep_process **inout)
{
    sweep_process *self = *inout;
    char line[24];
    if (!self)
        return;
    const int64_t until = base_time_after(base_now(), GRACE);
    if (!has_ended(self)) {
        signal_group(self->id, SIGTERM);
        await_end(self, until);
    }
    kill(-self->id, SIGKILL); /* its number is still its own: nobody has waited for it */
    base_wait(self->id, NULL);
    if (self->guard && self->guard->process > 0) {
        snprintf(line, sizeof line, "-%ld\n", (long)self->id);
        (void)base_write_all(self->guard->pipe, line, strlen(line));
    }
    close_streams(self);
    base_free(&self->report);
    base_free(inout);
}

/* ---- what it has told -------------------------------------------------------------------------------------------- */

const char *sweep_process_note(const sweep_process *self)
{
    return self->note;
}

/* Of a long curve every second report is left out, as often as need be. */
static void copy_curve(sweep_ended *out, const sweep_report *report, int64_t count)
{
    int64_t gap = 1;
    while (count / gap >= SWEEP_CURVE_MOST)
        gap *= 2;
    if (base_alloc(&out->curve, (size_t)(count / gap + 1), sizeof *out->curve, "a learning curve") < 0)
        return;
    for (int64_t i = 0; i < count; i++)
        if (i % gap == 0 || i == count - 1)
            out->curve[out->reports++] = report[i];
}

void sweep_process_take(sweep_ended *out, sweep_process *self, int64_t until)
{
    int64_t count = 0;
    for (int i = 0; i < SWEEP_OTHERS_MOST; i++)
        out->other[i] = NAN;
    for (; count < self->reports && self->report[count].step <= until; count++) {
        const double value = self->report[count].value;
        if (isnan(self->told_value) || self->sign * value < self->sign * self->told_value) {
            self->told_value = value;
            memcpy(out->other, self->report[count].other, sizeof out->other);
        }
        self->told = self->report[count].step;
    }
    copy_curve(out, self->report, count);
    if (count > 0)
        memmove(self->report, self->report + count, (size_t)(self->reports - count) * sizeof *self->report);
    self->reports -= count;
    out->result.value = self->told_value;
    out->result.step = self->told;
}
