/* What a link hears: the hello, and frames; and how it ends.  See pipe_link.h; what it sends is in pipe_lane.c. */
#include "pipe_link_internal.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/world.h"

static const char magic[] = "shoal-pipe ";

static const double HELLO_WITHIN = 30, PING_EVERY = 2, SILENCE_MOST = 10;
/* Silence that the loop can have heard between two looks; it looks more often than that, unless it was kept from it. */
static const double LOOK_MOST = 1;

/* ---- beginning and end ------------------------------------------------------------------------------------------- */

static double or_else(double given, double otherwise)
{
    return given > 0 ? given : otherwise;
}

static void take_options(pipe_link *self, const pipe_link_options *options)
{
    self->options = *options;
    self->options.hello_within = or_else(options->hello_within, HELLO_WITHIN);
    self->options.ping_every = or_else(options->ping_every, PING_EVERY);
    self->options.silence_most = or_else(options->silence_most, SILENCE_MOST);
    snprintf(self->nonce, sizeof self->nonce, "%s", options->nonce ? options->nonce : "-");
    self->options.nonce = self->nonce;
}

/* Our hello goes before everything else, as the rest of a frame does. */
static void say_hello(pipe_link *self)
{
    self->rest_at = 0;
    self->rest_size = (size_t)snprintf((char *)self->rest, sizeof self->rest, "\n%s%d %s %s\n", magic, PIPE_PROTOCOL,
                                       SHOAL_VERSION, self->nonce);
    self->said = self->dirty = true;
}

static int set_up_descriptor(int descriptor, bool *socket)
{
    struct stat info;
    int flags = fcntl(descriptor, F_GETFL);
    if (flags < 0 || fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) < 0 || fstat(descriptor, &info) < 0)
        return shoal_fail_errno(SHOAL_SYSTEM, errno, "a link to another process");
    *socket = S_ISSOCK(info.st_mode);
    (void)fcntl(descriptor, F_SETFD, FD_CLOEXEC);
    if (*socket) {
        int room = 1 << 20; /* a request: the system may give less */
        (void)setsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
        (void)setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    } else {
        (void)fcntl(descriptor, F_SETPIPE_SZ, 1 << 18);
    }
    return SHOAL_OK;
}

int pipe_link_new(pipe_link **out, int in, int out_descriptor, const pipe_link_options *options)
{
    pipe_link *self = NULL;
    bool ignored;
    int status = base_alloc(&self, 1, sizeof *self, "a link");
    if (status < 0) {
        close(in);
        if (out_descriptor != in)
            close(out_descriptor);
        return status;
    }
    self->in = in;
    self->out = out_descriptor;
    self->speed.window = PIPE_WINDOW_LEAST;
    self->looked = base_now();
    pthread_mutex_init(&self->lock, NULL);
    take_options(self, options);
    self->hello_due = base_time_after(self->looked, self->options.hello_within);
    status = set_up_descriptor(in, &ignored);
    if (status == SHOAL_OK)
        status = set_up_descriptor(out_descriptor, &self->socket);
    if (status == SHOAL_OK)
        status = base_alloc_unset(&self->read, PIPE_READ_BYTES, 1, "a link");
    if (status == SHOAL_OK)
        status = base_alloc_unset(&self->note, PIPE_NOTE_MOST + 1, 1, "a link");
    if (status < 0) {
        pipe_link_free(&self);
        return status;
    }
    if (options->first)
        say_hello(self);
    *out = self;
    return SHOAL_OK;
}

/* Nothing is read or written once the link has failed, so that the descriptors may go then: the other end learns it. */
static void close_both(pipe_link *self)
{
    if (self->out != self->in)
        close(self->out);
    if (self->in >= 0)
        close(self->in);
    self->in = self->out = -1;
}

void pipe_link_free(pipe_link **link)
{
    pipe_link *self = *link;
    *link = NULL;
    if (!self)
        return;
    pipe_lane_clear(self);
    close_both(self);
    pthread_mutex_destroy(&self->lock);
    base_free(&self->read);
    base_free(&self->note);
    base_free(&self);
}

void pipe_link_broke(pipe_link *self, const char *format, ...)
{
    va_list arguments;
    if (self->failed)
        return;
    self->failed = true;
    va_start(arguments, format);
    vsnprintf(self->why, sizeof self->why, format, arguments);
    va_end(arguments);
}

void pipe_link_fail(pipe_link *self, const char *why)
{
    pthread_mutex_lock(&self->lock);
    pipe_link_broke(self, "%s", why);
    pthread_mutex_unlock(&self->lock);
    pipe_loop_wake(self->loop);
}

bool pipe_link_settle(pipe_link *self)
{
    char why[sizeof self->why];
    pthread_mutex_lock(&self->lock);
    bool failed = self->failed;
    memcpy(why, self->why, sizeof why);
    pthread_mutex_unlock(&self->lock);
    if (failed && !self->ended) {
        self->ended = true;
        pthread_mutex_lock(&self->lock);
        close_both(self);
        pthread_mutex_unlock(&self->lock);
        self->options.events->closed(self->options.context, why);
    }
    return failed;
}

/* ---- the hello --------------------------------------------------------------------------------------------------- */

static void keep_junk(pipe_link *self, char letter)
{
    if (self->junk_size == sizeof self->junk)
        memmove(self->junk, self->junk + 1, --self->junk_size);
    self->junk[self->junk_size++] = letter;
}

/* A line that starts as a hello does: greets, or fails with what is wrong. */
static void judge_hello(pipe_link *self)
{
    int protocol = 0, end = 0;
    char version[64] = "", nonce[sizeof self->nonce] = "";
    self->line[self->line_size] = '\0';
    int fields = sscanf(self->line + sizeof magic - 1, "%9d %63s %63s%n", &protocol, version, nonce, &end);
    if (fields >= 1 && protocol != PIPE_PROTOCOL) {
        pipe_link_broke(self, "the other end is shoal %s with link protocol %d; this is shoal %s with link protocol %d",
                        version[0] ? version : "(unknown)", protocol, SHOAL_VERSION, PIPE_PROTOCOL);
    } else if (fields != 3 || strcmp(nonce, self->nonce) != 0) {
        pipe_link_broke(self, "the other end's hello is not the expected one");
    } else {
        self->greeted = true;
        self->silence = 0;
        if (!self->said)
            say_hello(self);
    }
}

static bool is_hello(const pipe_link *self)
{
    return !self->line_too_long && self->line_size >= sizeof magic - 1 &&
           memcmp(self->line, magic, sizeof magic - 1) == 0;
}

/* Looks for the hello; how many bytes are dealt with. */
static size_t look_for_hello(pipe_link *self, const unsigned char *bytes, size_t size)
{
    size_t at = 0;
    pthread_mutex_lock(&self->lock);
    while (at < size && !self->greeted && !self->failed) {
        char letter = (char)bytes[at++];
        keep_junk(self, letter);
        if (letter != '\n') {
            self->line_too_long |= self->line_size == sizeof self->line - 1;
            if (!self->line_too_long)
                self->line[self->line_size++] = letter;
            continue;
        }
        if (is_hello(self)) {
            self->junk_size -= self->line_size + 1; /* it is none */
            judge_hello(self);
        }
        self->line_size = 0;
        self->line_too_long = false;
    }
    bool greeted = self->greeted;
    pthread_mutex_unlock(&self->lock);
    if (greeted && self->options.events->greeted)
        self->options.events->greeted(self->options.context);
    return at;
}

/* ---- frames ------------------------------------------------------------------------------------------------------ */

static uint64_t read_u64(const unsigned char *bytes)
{
    uint64_t little;
    memcpy(&little, bytes, sizeof little);
    return le64toh(little);
}

static void broke(pipe_link *self, const char *why)
{
    pthread_mutex_lock(&self->lock);
    pipe_link_broke(self, "%s", why);
    pthread_mutex_unlock(&self->lock);
}

static void hear_head(pipe_link *self, const pipe_frame *frame)
{
    uint64_t body_size = read_u64(frame->payload);
    uint32_t little;
    memcpy(&little, frame->payload + 8, sizeof little);
    uint32_t head = le32toh(little) & ~PIPE_BODY_FOLLOWS, left = frame->length - 12;
    bool follows = le32toh(little) & PIPE_BODY_FOLLOWS;
    const unsigned char *bytes = frame->payload + 12;
    bool agree = head <= left && head <= PIPE_HEAD_MOST &&
                 (follows ? left == head && body_size > 0 : left - head == body_size && body_size <= PIPE_SHORT_MOST);
    if (!agree) {
        broke(self, "the other end sent a message with inconsistent lengths");
        return;
    }
    self->options.events->head(self->options.context, frame->stream, bytes, head, follows ? NULL : bytes + head,
                               body_size);
}

/* Sends the credit that was asked for, if all up to there has been taken.  The lock is held. */
static void give_credit(pipe_link *self)
{
    if (self->credit_due == 0 || self->taken < self->credit_due)
        return;
    uint64_t little = htole64(self->taken);
    self->credit_due = 0;
    (void)pipe_lane_add(
        self, &(pipe_frame){.kind = PIPE_CREDIT, .length = 8, .payload = (const unsigned char *)&little}, NULL, 0);
    self->dirty = true;
}

static void hear_body(pipe_link *self, const pipe_frame *frame)
{
    bool taken = self->options.events->body(self->options.context, frame->stream, frame->payload, frame->length);
    pthread_mutex_lock(&self->lock);
    self->received += frame->length;
    if (taken)
        self->taken += frame->length;
    if (frame->flags & PIPE_ASK_CREDIT)
        self->credit_due = self->received;
    give_credit(self);
    pthread_mutex_unlock(&self->lock);
}

void pipe_link_taken(pipe_link *self, size_t size)
{
    pthread_mutex_lock(&self->lock);
    self->taken += size;
    if (!self->failed)
        give_credit(self);
    pthread_mutex_unlock(&self->lock);
}

static void hear_note(pipe_link *self, const pipe_frame *frame)
{
    if (frame->length > PIPE_NOTE_MOST - self->note_size || memchr(frame->payload, 0, frame->length)) {
        broke(self, "the other end sent a note that is too long or not text");
        return;
    }
    memcpy(self->note + self->note_size, frame->payload, frame->length);
    self->note_size += frame->length;
    if (frame->flags & PIPE_MORE)
        return;
    self->note[self->note_size] = '\0';
    self->note_size = 0;
    if (self->options.events->note)
        self->options.events->note(self->options.context, self->note);
}

static void hear_ping(pipe_link *self, const pipe_frame *frame)
{
    pthread_mutex_lock(&self->lock);
    (void)pipe_lane_add(self, &(pipe_frame){.kind = PIPE_PONG, .length = 8, .payload = frame->payload}, NULL, 0);
    self->dirty = true;
    pthread_mutex_unlock(&self->lock);
}

static void hear_pong(pipe_link *self, const pipe_frame *frame)
{
    double trip = (double)(base_now() - (int64_t)read_u64(frame->payload)) * 1e-9;
    if (!(trip > 0) || trip > 3600)
        return;
    pthread_mutex_lock(&self->lock);
    self->ping_least[self->pings++ % 4] = trip;
    if (self->speed.round_trip == 0 || trip < self->speed.round_trip)
        self->speed.round_trip = trip;
    pthread_mutex_unlock(&self->lock);
}

static void hear_credit(pipe_link *self, const pipe_frame *frame)
{
    pthread_mutex_lock(&self->lock);
    if (!pipe_lane_credited(self, read_u64(frame->payload)))
        pipe_link_broke(self, "the other end acknowledged more than was sent");
    self->dirty = true;
    pthread_mutex_unlock(&self->lock);
}

static void hear(pipe_link *self, const pipe_frame *frame)
{
    switch ((pipe_kind)frame->kind) {
    case PIPE_PING: hear_ping(self, frame); break;
    case PIPE_PONG: hear_pong(self, frame); break;
    case PIPE_CREDIT: hear_credit(self, frame); break;
    case PIPE_NOTE: hear_note(self, frame); break;
    case PIPE_HEAD: hear_head(self, frame); break;
    case PIPE_BODY: hear_body(self, frame); break;
    case PIPE_CANCEL: self->options.events->cancelled(self->options.context, frame->stream); break;
    case PIPE_KINDS: break;
    }
}

/* Handles what was read; an incomplete frame stays. */
static void understand(pipe_link *self)
{
    size_t at = 0;
    const char *why = NULL;
    if (!self->greeted)
        at = look_for_hello(self, self->read, self->read_size);
    while (self->greeted && !self->failed && at < self->read_size) {
        pipe_frame frame;
        int size = pipe_frame_read(&frame, self->read + at, self->read_size - at, &why);
        if (size < 0) {
            pthread_mutex_lock(&self->lock);
            pipe_link_broke(self, "the other end sent %s", why);
            pthread_mutex_unlock(&self->lock);
        }
        if (size <= 0)
            break;
        hear(self, &frame);
        at += (size_t)size;
    }
    self->read_size -= at;
    memmove(self->read, self->read + at, self->read_size);
}

void pipe_link_read(pipe_link *self)
{
    ssize_t size = read(self->in, self->read + self->read_size, PIPE_READ_BYTES - self->read_size);
    if (size < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    pthread_mutex_lock(&self->lock);
    if (size < 0 && errno != ECONNRESET)
        pipe_link_broke(self, "reading: %s", strerror(errno));
    else if (size <= 0)
        pipe_link_broke(self, self->greeted ? "the other end is gone" : "the other end exited before its hello");
    else
        self->all_received += size;
    pthread_mutex_unlock(&self->lock);
    if (size > 0) {
        self->read_size += (size_t)size;
        understand(self);
    }
}

/* ---- time -------------------------------------------------------------------------------------------------------- */

static void ping(pipe_link *self, int64_t now)
{
    uint64_t little = htole64((uint64_t)now);
    (void)pipe_lane_add(self, &(pipe_frame){.kind = PIPE_PING, .length = 8, .payload = (const unsigned char *)&little},
                        NULL, 0);
    self->next_ping = base_time_after(now, self->options.ping_every);
    self->dirty = true;
}

double pipe_link_tick(pipe_link *self, bool heard)
{
    int64_t now = base_now();
    double elapsed = (double)(now - self->looked) * 1e-9, most = self->options.silence_most;
    double next = LOOK_MOST / 2;
    self->looked = now;
    self->silence = heard ? 0 : self->silence + (elapsed < LOOK_MOST ? elapsed : LOOK_MOST);
    pthread_mutex_lock(&self->lock);
    if (self->gone && !heard) {
        pipe_link_broke(self, "the other end is gone");
    } else if (!self->greeted && now >= self->hello_due) {
        pipe_link_broke(self, "no hello came within %g seconds", self->options.hello_within);
    } else if (self->greeted && !self->options.local) {
        if (self->silence >= most)
            pipe_link_broke(self, "nothing was heard from the other end for %g seconds", most);
        else if (now >= self->next_ping)
            ping(self, now);
    }
    pthread_mutex_unlock(&self->lock);
    /* With the small limits of tests it has to look more often. */
    next = self->options.ping_every / 2 < next ? self->options.ping_every / 2 : next;
    next = self->options.hello_within / 4 < next ? self->options.hello_within / 4 : next;
    return next < most / 8 ? next : most / 8;
}

void pipe_link_flush(pipe_link *self)
{
    pthread_mutex_lock(&self->lock);
    bool before = pipe_lane_stuck(self);
    if (self->dirty) {
        self->dirty = false;
        pipe_lane_flush(self);
    }
    bool wake = !before && pipe_lane_stuck(self);
    pthread_mutex_unlock(&self->lock);
    if (wake) /* of another thread that takes the turns: it has to wait for other things from now on */
        pipe_loop_wake(self->loop);
}

/* ---- how it does ------------------------------------------------------------------------------------------------- */

bool pipe_link_greeted(const pipe_link *self)
{
    pthread_mutex_lock((pthread_mutex_t *)&self->lock);
    bool greeted = self->greeted;
    pthread_mutex_unlock((pthread_mutex_t *)&self->lock);
    return greeted;
}

void pipe_link_junk(const pipe_link *self, char *out, size_t size)
{
    size_t used = 0;
    if (size == 0)
        return;
    pthread_mutex_lock((pthread_mutex_t *)&self->lock);
    size_t most = size - 1 < PIPE_JUNK_KEPT ? size - 1 : PIPE_JUNK_KEPT;
    size_t from = self->junk_size > most ? self->junk_size - most : 0;
    for (size_t i = from; i < self->junk_size; i++) {
        unsigned char letter = (unsigned char)self->junk[i];
        if (letter == '\n' || letter == '\t' || letter >= 0x20)
            out[used++] = letter == 0x7f ? '?' : (char)letter;
        else if (letter != '\r')
            out[used++] = '?';
    }
    pthread_mutex_unlock((pthread_mutex_t *)&self->lock);
    while (used > 0 && (out[used - 1] == '\n' || out[used - 1] == ' '))
        used--;
    out[used] = '\0';
}

pipe_figures pipe_link_figures(const pipe_link *self)
{
    pthread_mutex_lock((pthread_mutex_t *)&self->lock);
    pipe_figures figures = {
        .bytes_per_second = self->best_rate, .sent = self->all_sent, .received = self->all_received};
    unsigned pings = self->pings < 4 ? self->pings : 4;
    for (unsigned i = 0; i < pings; i++)
        if (i == 0 || self->ping_least[i] < figures.round_trip)
            figures.round_trip = self->ping_least[i];
    pthread_mutex_unlock((pthread_mutex_t *)&self->lock);
    return figures;
}
