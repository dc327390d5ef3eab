/* One process of the user's program.  See exec_program.h.
 *
 * It leads a process group, so that what it started itself can be ended with it.  Our ends of its pipes never block;
 * SIGPIPE is held back while we write, since the thread may be one that signals come to. */
#include "learn/exec/exec_program.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <shoal/error.h>

#include "base/io.h"
#include "base/memory.h"
#include "base/spawn.h"
#include "base/world.h"
#include "data/data_internal.h"

enum { SAID_BYTES = 8192, PIPE_BYTES = 1 << 20, ANSWER_STEP = 1 << 16, STREAM_IN = 0, STREAM_OUT = 1, STREAM_ERR = 2 };
static const double LOOK_EVERY = 0.05; /* seconds between two looks at what may stop a question */

struct exec_program {
    pid_t process; /* 0 once its end has been noted */
    int stream[3]; /* our ends; -1 when closed */
    int64_t asked;
    int64_t call; /* whose params it has; 0 for none */
    unsigned char *answer;
    size_t have, room;
    char said[SAID_BYTES]; /* the last of its standard error */
    size_t said_length;
    bool said_more; /* than there is room for */
};

/* ---- starting ---------------------------------------------------------------------------------------------------- */

static int open_pipes(int ours[3], int theirs[3])
{
    for (int i = 0; i < 3; i++) {
        int pair[2];
        if (pipe2(pair, O_CLOEXEC) < 0)
            return shoal_fail_errno(SHOAL_SYSTEM, errno, "can't make a pipe for a program");
        ours[i] = pair[i == STREAM_IN];
        theirs[i] = pair[i != STREAM_IN];
        (void)fcntl(ours[i], F_SETFL, fcntl(ours[i], F_GETFL) | O_NONBLOCK);
        if (i != STREAM_ERR)
            (void)fcntl(ours[i], F_SETPIPE_SZ, PIPE_BYTES); /* a smaller one only costs time */
    }
    return SHOAL_OK;
}

int exec_program_start(exec_program **out, const exec_command *command)
{
    exec_program *program = NULL;
    int theirs[3] = {-1, -1, -1};
    int status = base_alloc(&program, 1, sizeof *program, "a program");
    if (status < 0)
        return status;
    for (int i = 0; i < 3; i++)
        program->stream[i] = -1;
    status = open_pipes(program->stream, theirs);
    if (status == SHOAL_OK) {
        int error = base_spawn_shell(&program->process, command->text,
                                     &(base_spawning){.stream = {theirs[0], theirs[1], theirs[2]},
                                                      .extra = command->extra,
                                                      .folder = command->folder,
                                                      .environment = command->environment,
                                                      .group = BASE_GROUP_OWN});
        if (error)
            status = shoal_fail_errno(SHOAL_SYSTEM, error, "can't start a program in %s", command->folder);
    }
    for (int i = 0; i < 3; i++)
        base_close(&theirs[i]);
    if (status < 0)
        exec_program_end(&program, 0);
    *out = program;
    return status;
}

pid_t exec_program_id(const exec_program *program)
{
    return program->process;
}

/* ---- its end ----------------------------------------------------------------------------------------------------- */

/* Whether it has ended, without noting it: until then nobody else gets its number. */
static bool has_ended(const exec_program *program, siginfo_t *how)
{
    *how = (siginfo_t){0};
    return program->process > 0 && waitid(P_PID, (id_t)program->process, how, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           how->si_pid != 0;
}

/* Pauses that grow: most programs end at once, or not at all. */
static bool wait_end(const exec_program *program, siginfo_t *how, int64_t until)
{
    for (double pause = 0.0005; !has_ended(program, how); pause = pause < 0.02 ? pause * 1.5 : pause) {
        if (base_seconds_until(until) <= 0)
            return false;
        base_sleep_until(base_time_after(base_now(), pause));
    }
    return true;
}

bool exec_program_has_ended(const exec_program *program)
{
    siginfo_t how;
    return has_ended(program, &how);
}

void exec_program_close(exec_program *program)
{
    base_close(&program->stream[STREAM_IN]);
}

void exec_program_end(exec_program **inout, int64_t until)
{
    exec_program *program = *inout;
    siginfo_t how;
    if (!program)
        return;
    for (int i = 0; i < 3; i++)
        base_close(&program->stream[i]);
    if (program->process > 0) {
        (void)wait_end(program, &how, until);
        kill(-program->process, SIGKILL);
        base_wait(program->process, NULL);
    }
    base_free(&program->answer);
    base_free(inout);
}

/* ---- what it writes ---------------------------------------------------------------------------------------------- */

static void keep_said(exec_program *program, const char *text, size_t size)
{
    if (size > SAID_BYTES - program->said_length) {
        size_t over = size - (SAID_BYTES - program->said_length);
        memmove(program->said, program->said + over, program->said_length - over);
        program->said_length -= over;
        program->said_more = true;
    }
    memcpy(program->said + program->said_length, text, size);
    program->said_length += size;
}

/* Reads what there is of standard error, but not forever. */
static void hear_said(exec_program *program)
{
    enum { READS_MOST = 64 };
    char text[SAID_BYTES / 2];
    for (int i = 0; i < READS_MOST && program->stream[STREAM_ERR] >= 0; i++) {
        ssize_t got = read(program->stream[STREAM_ERR], text, sizeof text);
        if (got > 0)
            keep_said(program, text, (size_t)got);
        else if (got == 0 || (errno != EINTR && errno != EAGAIN))
            base_close(&program->stream[STREAM_ERR]);
        else if (errno == EAGAIN)
            return;
    }
}

void exec_program_said(const exec_program *program, char *out, size_t size)
{
    enum { SEPARATOR = 3, MARK = 6 };
    const char *end = program->said + program->said_length, *from = end;
    size_t used = 0;
    while (end > program->said && strchr("\n\r ", end[-1]))
        end--;
    for (from = end; from > program->said; from--) { /* as much from the end as there is room for */
        used += from[-1] == '\n' ? SEPARATOR : 1;
        if (used + MARK >= size)
            break;
    }
    char *to = out;
    while (from > program->said && from < end && *from == '\n')
        from++;
    if (from > program->said || program->said_more)
        to = stpcpy(to, "... ");
    for (; from < end; from++)
        if (*from == '\n')
            to = stpcpy(to, " | ");
        else /* what moves a terminal's cursor would hide the rest of the message */
            *to++ = (unsigned char)*from < ' ' || *from == 0x7f ? ' ' : *from;
    *to = '\0';
}

/* What became of it, once its output has ended although it was to answer. */
static int fail_ended(exec_program *program)
{
    siginfo_t how;
    bool ended = wait_end(program, &how, base_time_after(base_now(), 2));
    hear_said(program);
    if (!ended)
        return shoal_fail(SHOAL_INVALID, "it closed its standard output");
    if (how.si_code == CLD_EXITED)
        return shoal_fail(SHOAL_INVALID, "it exited with code %d %s", how.si_status,
                          program->have > 0 ? "in the middle of its answer" : "before it answered");
    return shoal_fail(SHOAL_INVALID, "it was killed by signal %d (%s)", how.si_status, strsignal(how.si_status));
}

/* ---- an answer --------------------------------------------------------------------------------------------------- */

/* Where one exchange stands. */
enum { SENT = 4, SENT_OF_NOTE = 3 };
typedef struct exchange {
    exec_program *program;
    struct iovec *left; /* yet to be sent: notes, params and rows, each after its header */
    int parts;
    const _Atomic uint32_t *stop;
    data_npy_header header;
    size_t header_bytes; /* 0 until the whole header is there */
    size_t needed;       /* bytes of the answer, as far as known */
    double seconds;      /* that it may take in all */
} exchange;

static bool has_more(const exchange *self)
{
    size_t left = 0;
    for (int i = 0; i < self->parts; i++)
        left |= self->left[i].iov_len;
    return left > 0;
}

static int send_some(exchange *self)
{
    exec_program *program = self->program;
    while (has_more(self)) {
        ssize_t sent = writev(program->stream[STREAM_IN], self->left, self->parts);
        if (sent < 0 && errno == EAGAIN)
            return SHOAL_OK;
        if (sent < 0 && errno == EPIPE)
            break; /* it does not read any more, which is its own business if it answers */
        if (sent < 0 && errno != EINTR)
            return shoal_fail_errno(SHOAL_SYSTEM, errno, "can't write to its standard input");
        for (int i = 0; i < self->parts && sent > 0; i++) {
            size_t part = (size_t)sent < self->left[i].iov_len ? (size_t)sent : self->left[i].iov_len;
            if (part > 0) /* what has nothing to be sent has no place */
                self->left[i].iov_base = (char *)self->left[i].iov_base + part;
            self->left[i].iov_len -= part;
            sent -= (ssize_t)part;
        }
    }
    memset(self->left, 0, (size_t)self->parts * sizeof *self->left);
    return SHOAL_OK;
}

/* Told before it is read: memory that is promised and not there ends this process, and with it what others run. */
static int check_room(size_t bytes)
{
    const size_t small = (size_t)64 << 20;
    int64_t room = bytes > small ? base_memory_available() : INT64_MAX;
    return bytes <= (uint64_t)room
               ? SHOAL_OK
               : shoal_fail(SHOAL_INVALID, "its answer of %zu bytes is more than there is memory for: %lld are left",
                            bytes, (long long)room);
}

static int check_header(exchange *self)
{
    const data_npy_header *header = &self->header;
    size_t bytes = shoal_type_size(header->type);
    if (header->rank > EXEC_RANK_MOST)
        return shoal_fail(SHOAL_INVALID, "its answer has %d dimensions, more than %d", header->rank, EXEC_RANK_MOST);
    if (header->stored != DATA_STORED_SAME)
        return shoal_fail(SHOAL_INVALID, "its answer holds float16: write it as float32");
    if (header->fortran && header->rank > 1)
        return shoal_fail(SHOAL_INVALID,
                          "its answer is in Fortran order: write it in C order, as numpy.ascontiguousarray does");
    for (int i = 0; i < header->rank; i++)
        if (header->shape[i] > INT64_MAX || !base_multiply(&bytes, bytes, (size_t)header->shape[i]))
            return shoal_fail(SHOAL_INVALID, "its answer claims more bytes than there can be");
    if (!base_add(&self->needed, self->header_bytes, bytes) || self->needed > INT64_MAX)
        return shoal_fail(SHOAL_INVALID, "its answer claims more bytes than there can be");
    return check_room(bytes);
}

static int fail_no_npy(const exec_program *program)
{
    enum { SHOWN = 40 };
    char shown[SHOWN + 1];
    size_t length = program->have < SHOWN ? program->have : SHOWN;
    memcpy(shown, program->answer, length);
    while (length > 0 && shown[length - 1] == '\n')
        length--;
    shown[length] = '\0';
    for (size_t i = 0; i < length; i++)
        shown[i] = shown[i] > 0x1f && shown[i] < 0x7f ? shown[i] : '?';
    return shoal_fail(SHOAL_INVALID, "it wrote '%s%s' where an .npy array should begin", shown,
                      program->have > SHOWN ? "..." : "");
}

/* Learns from what is there how much more is needed. */
static int look_at_header(exchange *self)
{
    exec_program *program = self->program;
    if (self->header_bytes || program->have == 0)
        return SHOAL_OK;
    self->needed = data_npy_header_next(program->answer, program->have);
    if (self->needed == 0)
        return fail_no_npy(program);
    if (self->needed > program->have)
        return SHOAL_OK;
    if ((self->needed = data_npy_header_next(program->answer, self->needed)) > program->have)
        return SHOAL_OK;
    self->header_bytes = self->needed;
    int status = data_npy_parse(&self->header, program->answer, self->header_bytes, "its answer");
    return status == SHOAL_OK ? check_header(self) : status;
}

static int make_answer_room(exec_program *program, size_t needed)
{
    if (program->have < program->room)
        return SHOAL_OK;
    size_t room = program->room * 2 > ANSWER_STEP ? program->room * 2 : ANSWER_STEP;
    if (room > needed + ANSWER_STEP) /* so that one byte too many is seen */
        room = needed + ANSWER_STEP;
    room = room > program->room ? room : program->room + ANSWER_STEP;
    int status = base_grow(&program->answer, program->have, room, 1, "the answer of a program");
    if (status == SHOAL_OK)
        program->room = room;
    return status;
}

/* Reads some of its output; SHOAL_OK also when there is none. */
static int hear_some(exchange *self)
{
    exec_program *program = self->program;
    for (;;) {
        int status = make_answer_room(program, self->needed);
        if (status < 0)
            return status;
        ssize_t got = read(program->stream[STREAM_OUT], program->answer + program->have, program->room - program->have);
        if (got < 0 && errno == EAGAIN)
            return SHOAL_OK;
        if (got < 0 && errno != EINTR)
            return shoal_fail_errno(SHOAL_SYSTEM, errno, "can't read its standard output");
        if (got == 0)
            return fail_ended(program);
        program->have += got > 0 ? (size_t)got : 0;
        status = look_at_header(self);
        if (status < 0 || (self->header_bytes && program->have >= self->needed))
            return status;
    }
}

static int milliseconds_until(int64_t until)
{
    double left = base_seconds_until(until);
    return left <= 0 ? 0 : left > 3600 ? 3600 * 1000 : (int)(left * 1000) + 1;
}

static int talk(exchange *self, int64_t until)
{
    exec_program *program = self->program;
    int status = SHOAL_OK;
    while (status == SHOAL_OK && !(self->header_bytes && program->have >= self->needed)) {
        struct pollfd poll_for[3] = {{has_more(self) ? program->stream[STREAM_IN] : -1, POLLOUT, 0},
                                     {program->stream[STREAM_OUT], POLLIN, 0},
                                     {program->stream[STREAM_ERR], POLLIN, 0}};
        int64_t next = self->stop ? base_time_after(base_now(), LOOK_EVERY) : until;
        int ready = poll(poll_for, 3, milliseconds_until(next < until ? next : until));
        if (ready < 0 && errno != EINTR)
            return shoal_fail_errno(SHOAL_SYSTEM, errno, "can't wait for it");
        if (self->stop && atomic_load(self->stop))
            return shoal_fail(SHOAL_STOPPED, "its answer is not wanted any more");
        if (ready == 0 && base_seconds_until(until) <= 0) {
            hear_said(program);
            return shoal_fail(SHOAL_INVALID, "it did not answer within %.3g s", self->seconds);
        }
        if (ready <= 0)
            continue;
        if (poll_for[2].revents)
            hear_said(program);
        if (poll_for[0].revents)
            status = send_some(self);
        if (status == SHOAL_OK && poll_for[1].revents)
            status = hear_some(self);
    }
    return status;
}

/* What it wrote beyond its last answer. */
static int check_silent(exec_program *program)
{
    unsigned char more;
    ssize_t got = program->have > 0 ? 1 : read(program->stream[STREAM_OUT], &more, 1);
    if (got > 0)
        return shoal_fail(SHOAL_INVALID, "it wrote more than one array for the rows before");
    return got == 0 ? fail_ended(program) : SHOAL_OK;
}

/* Hands out the answer, and leaves in the buffer only what came after it. */
static int take_answer(exec_answer *out, exchange *self)
{
    exec_program *program = self->program;
    const data_npy_header *header = &self->header;
    size_t size = shoal_type_size(header->type), bytes = self->needed - self->header_bytes;
    if (program->have > self->needed)
        return shoal_fail(SHOAL_INVALID, "it wrote more than one array");
    /* To where it is aligned. */
    memmove(program->answer, program->answer + self->header_bytes, bytes);
    if (header->swapped)
        data_swap_bytes(program->answer, program->answer, bytes / size, size);
    *out = (exec_answer){.type = header->type, .rank = header->rank, .count = bytes / size, .values = program->answer};
    for (int i = 0; i < header->rank; i++)
        out->shape[i] = (int64_t)header->shape[i];
    program->have = 0;
    return SHOAL_OK;
}

/* With SIGPIPE held back and, if it came, taken away. */
static int talk_without_signal(exchange *self, int64_t until)
{
    sigset_t pipe, before, waiting;
    const struct timespec now = {0};
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe, &before);
    sigpending(&waiting);
    int status = talk(self, until);
    if (!sigismember(&waiting, SIGPIPE))
        while (sigtimedwait(&pipe, NULL, &now) < 0 && errno == EINTR)
            ;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return status;
}

/* A header for each array that is sent. */
typedef char array_header[DATA_NPY_HEADER_ROOM];

static void send_bytes(exchange *self, array_header header, const exec_note *note)
{
    const int64_t shape[1] = {(int64_t)(note->head_size + note->size)};
    self->left[self->parts++] = (struct iovec){header, data_npy_header_write(header, SHOAL_UINT8, 1, shape)};
    self->left[self->parts++] = (struct iovec){(void *)note->head, note->head_size};
    self->left[self->parts++] = (struct iovec){(void *)note->bytes, note->size};
}

static void send_rows(exchange *self, array_header header, const exec_question *question)
{
    const int64_t shape[2] = {question->rows, question->columns};
    size_t bytes = (size_t)question->rows * (size_t)question->columns * shoal_type_size(question->type);
    self->left[self->parts++] = (struct iovec){header, data_npy_header_write(header, question->type, 2, shape)};
    self->left[self->parts++] = (struct iovec){(void *)question->values, bytes};
}

int exec_program_ask(exec_answer *out, exec_program *program, const exec_question *question, int64_t until)
{
    const exec_note params = {.bytes = question->params, .size = question->params_bytes};
    struct iovec few[SENT_OF_NOTE + SENT], *many = NULL;
    array_header header[2], *headers = NULL;
    exchange self = {.program = program, .left = few, .stop = question->stop, .seconds = base_seconds_until(until)};
    int status = program->asked++ > 0 ? check_silent(program) : SHOAL_OK;
    if (status == SHOAL_OK && question->notes > 0)
        status = base_alloc(&headers, (size_t)question->notes, sizeof *headers, "what a program is sent");
    if (status == SHOAL_OK && question->notes > 0)
        status = base_alloc(&many, (size_t)question->notes * SENT_OF_NOTE + sizeof few / sizeof *few, sizeof *many,
                            "what a program is sent");
    if (status == SHOAL_OK) {
        self.left = many ? many : few;
        for (int i = 0; i < question->notes; i++)
            send_bytes(&self, headers[i], &question->note[i]);
        if (question->call != program->call)
            send_bytes(&self, header[0], &params);
        program->call = question->call;
        send_rows(&self, header[1], question);
        status = talk_without_signal(&self, until);
    }
    base_free(&headers);
    base_free(&many);
    return status == SHOAL_OK ? take_answer(out, &self) : status;
}

int exec_program_finish(exec_program *program, int64_t until)
{
    unsigned char more[512];
    siginfo_t how;
    for (;;) {
        struct pollfd poll_for[2] = {{program->stream[STREAM_OUT], POLLIN, 0},
                                     {program->stream[STREAM_ERR], POLLIN, 0}};
        int ready = poll(poll_for, 2, milliseconds_until(until));
        if (ready == 0 && base_seconds_until(until) <= 0)
            return shoal_fail(SHOAL_INVALID, "it did not exit in time although its input had ended");
        if (ready > 0 && poll_for[1].revents)
            hear_said(program);
        if (ready <= 0 || !poll_for[0].revents)
            continue;
        ssize_t got = read(program->stream[STREAM_OUT], more, sizeof more);
        if (got > 0)
            return shoal_fail(SHOAL_INVALID, "it wrote more than one array");
        if (got == 0 || (errno != EINTR && errno != EAGAIN))
            break;
    }
    if (!wait_end(program, &how, until))
        return shoal_fail(SHOAL_INVALID, "it did not exit in time although its input had ended");
    hear_said(program);
    if (how.si_code != CLD_EXITED)
        return shoal_fail(SHOAL_INVALID, "it was killed by signal %d (%s) when its input had ended", how.si_status,
                          strsignal(how.si_status));
    if (how.si_status != 0)
        return shoal_fail(SHOAL_INVALID, "it exited with code %d when its input had ended", how.si_status);
    return SHOAL_OK;
}
