/* Links: the hello, the window, who goes first, and how a link ends.  Nothing here waits: links are served by hand,
 * over sockets whose other end is another link or the test itself, and time is what the test says.  A last test lets
 * two loops run. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "scripted_world.h"
#include "store/pipe/pipe_link_internal.h"

#define NONCE "00112233445566778899aabbccddeeff"
#define HELLO "shoal-pipe 1 0.0.1 " NONCE "\n"
enum { KIB = 1024, MIB = 1024 * 1024 };

/* What an end has heard. */
typedef struct end {
    pipe_link *link;
    int other; /* the socket's other end, when the test plays it */
    int greeted, closed, heads, cancels;
    char why[512], note[PIPE_NOTE_MOST + 1];
    uint32_t stream;
    char head[64];
    uint64_t body_size, body_heard;
    bool hold; /* says that bytes are not taken yet */
} end;

static void on_greeted(void *context)
{
    ((end *)context)->greeted++;
}

static void on_note(void *context, const char *text)
{
    strcpy(((end *)context)->note, text);
}

static void on_head(void *context, uint32_t stream, const void *head, size_t size, const void *body, uint64_t body_size)
{
    end *self = context;
    self->heads++;
    self->stream = stream;
    assert_true(size < sizeof self->head);
    memcpy(self->head, head, size);
    self->head[size] = '\0';
    self->body_size = body_size;
    if (body)
        self->body_heard += body_size;
}

static bool on_body(void *context, uint32_t stream, const void *bytes, size_t size)
{
    end *self = context;
    (void)bytes;
    self->stream = stream;
    self->body_heard += size;
    return !self->hold;
}

static void on_cancelled(void *context, uint32_t stream)
{
    ((end *)context)->cancels++;
    ((end *)context)->stream = stream;
}

static void on_closed(void *context, const char *why)
{
    end *self = context;
    self->closed++;
    snprintf(self->why, sizeof self->why, "%s", why);
}

static const pipe_link_events events = {on_greeted, on_note, on_head, on_body, on_cancelled, on_closed};

static pipe_link_options options_of(end *self, bool first)
{
    return (pipe_link_options){.first = first,
                               .nonce = NONCE,
                               .hello_within = 30,
                               .ping_every = 2,
                               .silence_most = 10,
                               .events = &events,
                               .context = self};
}

/* One end; the test plays the other, over a socket. */
static void open_alone(end *self, bool first)
{
    int pair[2];
    *self = (end){0};
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    pipe_link_options options = options_of(self, first);
    assert_int_equal(pipe_link_new(&self->link, pair[0], pair[0], &options), 0);
    self->other = pair[1];
    fcntl(self->other, F_SETFL, O_NONBLOCK);
}

static void open_both(end *near, end *far)
{
    int pair[2];
    *near = *far = (end){.other = -1};
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    pipe_link_options options = options_of(near, false);
    assert_int_equal(pipe_link_new(&near->link, pair[0], pair[0], &options), 0);
    options = options_of(far, true);
    assert_int_equal(pipe_link_new(&far->link, pair[1], pair[1], &options), 0);
}

static void close_end(end *self)
{
    pipe_link_free(&self->link);
    if (self->other >= 0)
        close(self->other);
}

/* One turn of a loop, without waiting. */
static void serve(end *self)
{
    struct pollfd in = {.fd = self->link->in, .events = POLLIN};
    pipe_link_flush(self->link);
    self->link->blocked = false;
    self->link->dirty = true;
    pipe_link_flush(self->link);
    bool readable = poll(&in, 1, 0) > 0;
    if (readable)
        pipe_link_read(self->link);
    pipe_link_tick(self->link, readable);
    pipe_link_flush(self->link);
    pipe_link_settle(self->link);
}

static void serve_both(end *near, end *far, int turns)
{
    for (int i = 0; i < turns; i++) {
        serve(near);
        serve(far);
    }
}

static void say(end *self, const void *bytes, size_t size)
{
    assert_int_equal(write(self->other, bytes, size), size);
    serve(self);
}

static void say_text(end *self, const char *text)
{
    say(self, text, strlen(text));
}

static void say_frame(end *self, pipe_frame frame)
{
    unsigned char bytes[PIPE_FRAME_BYTES + 256];
    assert_true(frame.length <= 256);
    if (frame.length)
        memcpy(bytes + PIPE_FRAME_BYTES, frame.payload, frame.length);
    frame.payload = bytes + PIPE_FRAME_BYTES;
    pipe_frame_write(bytes, &frame);
    say(self, bytes, PIPE_FRAME_BYTES + frame.length);
}

static void say_credit(end *self, uint64_t count)
{
    say_frame(self, (pipe_frame){.kind = PIPE_CREDIT, .length = 8, .payload = (const unsigned char *)&count});
}

/* What the link wrote, frame by frame, as the test reads it. */
typedef struct heard {
    unsigned char bytes[4 * MIB];
    size_t size, at;
} heard;

static void take_in(heard *out, end *self)
{
    ssize_t more;
    do {
        serve(self);
        more = read(self->other, out->bytes + out->size, sizeof out->bytes - out->size);
        out->size += more > 0 ? (size_t)more : 0;
    } while (more > 0);
}

static bool next_frame(heard *self, pipe_frame *frame)
{
    const char *why = "";
    int size = pipe_frame_read(frame, self->bytes + self->at, self->size - self->at, &why);
    if (size < 0)
        fail_msg("%s", why);
    self->at += (size_t)size;
    return size > 0;
}

static heard wire;

/* Says hello both ways, and forgets what was heard so far. */
static void greet(end *self)
{
    say_text(self, HELLO);
    assert_int_equal(self->greeted, 1);
    wire.size = wire.at = 0;
    take_in(&wire, self);
    assert_non_null(memmem(wire.bytes, wire.size, NONCE "\n", 33));
    wire.size = wire.at = 0;
}

static void send_body(end *self, uint32_t stream, const void *body, size_t size)
{
    const pipe_message message = {
        .stream = stream, .head = "head", .head_size = 4, .body_size = size, .part = {{body, size}}};
    assert_int_equal(pipe_link_send(self->link, &message), SHOAL_OK);
}

static unsigned char big[2 * MIB];

/* ---- the hello --------------------------------------------------------------------------------------------------- */

static void test_both_say_hello_and_nothing_goes_before_it(void **state)
{
    end near, far;
    (void)state;
    open_both(&near, &far);
    assert_int_equal(pipe_link_note(near.link, "from near"), SHOAL_OK);
    serve(&near);
    struct pollfd nothing = {.fd = far.link->in, .events = POLLIN};
    assert_int_equal(poll(&nothing, 1, 0), 0); /* the near end waits: a shell may be reading what it would say */
    serve_both(&near, &far, 4);
    assert_true(near.greeted == 1 && far.greeted == 1);
    assert_string_equal(far.note, "from near");
    close_end(&near);
    close_end(&far);
}

static void test_junk_before_the_hello_is_skipped_and_kept(void **state)
{
    end self;
    char junk[3000], line[1001];
    (void)state;
    open_alone(&self, false);
    say_text(&self, "Welcome to corn10\r\n\033[31mshoal-pipe is not here\nPassword: ");
    assert_int_equal(self.greeted, 0);
    pipe_link_junk(self.link, junk, sizeof junk);
    assert_string_equal(junk, "Welcome to corn10\n?[31mshoal-pipe is not here\nPassword:");
    memset(line, 'x', sizeof line - 1);
    line[sizeof line - 1] = '\0';
    for (int i = 0; i < 5; i++) {
        say_text(&self, line);
        say_text(&self, "\n");
    }
    say_text(&self, "last");
    const char *hello = "\n" HELLO;
    for (; *hello; hello++) /* one byte at a time */
        say(&self, hello, 1);
    assert_int_equal(self.greeted, 1);
    pipe_link_junk(self.link, junk, sizeof junk);
    assert_in_range(strlen(junk), 1990, PIPE_JUNK_KEPT);
    assert_string_equal(junk + strlen(junk) - 6, "x\nlast");
    pipe_link_junk(self.link, junk, 5);
    assert_string_equal(junk, "ast"); /* the end of it, in what room there is, without the line's end */
    pipe_link_note(self.link, "x");
    assert_int_equal(self.closed, 0);
    close_end(&self);
}

static void expect_closed_by(const char *said, const char *why)
{
    end self;
    open_alone(&self, false);
    say_text(&self, said);
    serve(&self);
    assert_int_equal(self.closed, 1);
    if (!strstr(self.why, why))
        fail_msg("'%s' does not say '%s'", self.why, why);
    assert_int_equal(pipe_link_note(self.link, "x"), SHOAL_AGAIN);
    close_end(&self);
}

static void test_another_hello_ends_the_link_with_a_sentence(void **state)
{
    (void)state;
    expect_closed_by("shoal-pipe 1 0.0.1 ffffffffffffffffffffffffffffffff\n", "not the expected one");
    expect_closed_by("shoal-pipe 1 0.0.1\n", "not the expected one");
    expect_closed_by("shoal-pipe 1\n", "not the expected one");
    expect_closed_by("shoal-pipe 7 9.9.9 " NONCE "\n", "shoal 9.9.9 with link protocol 7");
    expect_closed_by("shoal-pipe x y z\n", "not the expected one");
}

static void test_no_hello_in_time_ends_the_link(void **state)
{
    end self;
    (void)state;
    base_world_set(&scripted_world);
    open_alone(&self, false);
    say_text(&self, "still compiling\n");
    clock_now += INT64_C(29900000000);
    serve(&self);
    assert_int_equal(self.closed, 0);
    clock_now += INT64_C(200000000);
    serve(&self);
    assert_int_equal(self.closed, 1);
    assert_string_equal(self.why, "no hello came within 30 seconds");
    close_end(&self);
    base_world_set(NULL);
}

/* ---- messages ---------------------------------------------------------------------------------------------------- */

static void test_messages_of_every_length_come_as_they_were(void **state)
{
    static const size_t sizes[] = {0, 1, PIPE_SHORT_MOST, PIPE_SHORT_MOST + 1, PIPE_PAYLOAD_MOST, 65537, MIB + 7};
    end near, far;
    (void)state;
    open_both(&near, &far);
    serve_both(&near, &far, 4);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        far.body_heard = far.body_size = 0;
        send_body(&near, (uint32_t)i + 5, big, sizes[i]);
        serve_both(&near, &far, 200);
        assert_int_equal(far.heads, i + 1);
        assert_int_equal(far.stream, i + 5);
        assert_string_equal(far.head, "head");
        assert_int_equal(far.body_size, sizes[i]);
        assert_int_equal(far.body_heard, sizes[i]);
    }
    pipe_link_cancel(near.link, 77);
    serve_both(&near, &far, 4);
    assert_int_equal(far.cancels, 1);
    assert_int_equal(far.stream, 77);
    assert_int_equal(pipe_link_waiting(near.link), 0);
    close_end(&near);
    close_end(&far);
}

static void test_notes_of_every_length_come_in_order(void **state)
{
    end near, far;
    char *note = malloc(PIPE_NOTE_MOST + 2);
    static const size_t sizes[] = {0, 1, PIPE_PAYLOAD_MOST, PIPE_PAYLOAD_MOST + 1, PIPE_NOTE_MOST};
    (void)state;
    assert_non_null(note);
    open_both(&near, &far);
    serve_both(&near, &far, 4);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        memset(note, 'a' + (int)i, sizes[i]);
        note[sizes[i]] = '\0';
        assert_int_equal(pipe_link_note(near.link, note), SHOAL_OK);
        serve_both(&near, &far, 8);
        assert_string_equal(far.note, note);
    }
    memset(note, 'x', PIPE_NOTE_MOST + 1);
    note[PIPE_NOTE_MOST + 1] = '\0';
    assert_int_equal(pipe_link_note(near.link, note), SHOAL_USAGE);
    free(note);
    close_end(&near);
    close_end(&far);
}

/* ---- the window -------------------------------------------------------------------------------------------------- */

/* Bytes of bodies among what was heard; the last frame that asks for credit is put into *asked, as a count of bytes. */
static size_t count_bodies(size_t before, size_t *asked)
{
    pipe_frame frame;
    while (next_frame(&wire, &frame))
        if (frame.kind == PIPE_BODY) {
            before += frame.length;
            if (frame.flags & PIPE_ASK_CREDIT)
                *asked = before;
        }
    return before;
}

static void test_no_more_than_the_window_is_under_way(void **state)
{
    end self;
    size_t asked = 0;
    (void)state;
    open_alone(&self, true);
    greet(&self);
    send_body(&self, 1, big, MIB);
    take_in(&wire, &self);
    size_t sent = count_bodies(0, &asked);
    assert_int_equal(sent, PIPE_WINDOW_LEAST);
    assert_in_range(asked, 1, sent);
    take_in(&wire, &self);
    assert_int_equal(count_bodies(sent, &asked), sent); /* and not a byte more */
    while (sent < MIB) {                                /* each credit lets as much more go */
        size_t before = sent;
        say_credit(&self, asked);
        take_in(&wire, &self);
        sent = count_bodies(sent, &asked);
        assert_true(sent > before);
        assert_true(sent - asked < PIPE_WINDOW_MOST);
    }
    assert_int_equal(sent, MIB);
    say_credit(&self, MIB + 1); /* more than was sent */
    assert_int_equal(self.closed, 1);
    assert_non_null(strstr(self.why, "acknowledged more than was sent"));
    close_end(&self);
}

static void test_a_short_message_never_waits_for_a_body(void **state)
{
    end self;
    pipe_frame frame;
    size_t ignored;
    (void)state;
    open_alone(&self, true);
    greet(&self);
    send_body(&self, 1, big, 2 * MIB);
    take_in(&wire, &self);
    count_bodies(0, &ignored);
    /* The window is full, and the rest of the body waits: these go all the same, in order, and nothing before them. */
    send_body(&self, 2, "lease", 5);
    pipe_link_note(self.link, "note");
    take_in(&wire, &self);
    assert_true(next_frame(&wire, &frame));
    assert_true(frame.kind == PIPE_HEAD && frame.stream == 2);
    assert_true(next_frame(&wire, &frame));
    assert_true(frame.kind == PIPE_NOTE);
    assert_false(next_frame(&wire, &frame));
    close_end(&self);
}

static void test_a_short_message_passes_bodies_that_the_system_has_not_taken(void **state)
{
    end self;
    pipe_frame frame;
    int room = 4096;
    size_t before = 0;
    (void)state;
    open_alone(&self, true);
    greet(&self);
    setsockopt(self.link->out, SOL_SOCKET, SO_SNDBUF, &room, sizeof room); /* the system takes but little at once */
    self.link->speed.window = MIB;
    send_body(&self, 1, big, MIB);
    assert_true(self.link->blocked);
    send_body(&self, 2, "lease", 5);
    take_in(&wire, &self);
    while (next_frame(&wire, &frame) && !(frame.kind == PIPE_HEAD && frame.stream == 2))
        before += frame.length;
    assert_int_equal(frame.stream, 2);
    assert_true(before < 200 * KIB); /* what was on its way, of a megabyte */
    close_end(&self);
}

static void test_bodies_take_turns(void **state)
{
    end self;
    pipe_frame frame;
    int turns[4] = {0}, frames = 0;
    (void)state;
    open_alone(&self, true);
    greet(&self);
    self.link->speed.window = 2 * MIB;
    pthread_mutex_lock(&self.link->lock);
    self.link->blocked = true; /* until all three are there */
    pthread_mutex_unlock(&self.link->lock);
    for (uint32_t stream = 1; stream <= 3; stream++)
        send_body(&self, stream, big, stream == 2 ? 256 * KIB : 128 * KIB);
    take_in(&wire, &self);
    while (next_frame(&wire, &frame))
        if (frame.kind == PIPE_BODY) {
            turns[frame.stream]++;
            if (++frames <= 12) /* nobody is ever more than one ahead */
                for (int i = 1; i <= 3; i++)
                    assert_in_range(turns[i], frames / 3, frames / 3 + 1);
        }
    assert_int_equal(turns[1], 4);
    assert_int_equal(turns[2], 8);
    assert_int_equal(turns[3], 4);
    close_end(&self);
}

/* On a link of 1 MB/s and 10 ms it stays at its least; on one of 200 MB/s and 10 ms it is the 4 MB that this carries
 * twice. */
static void test_the_window_follows_what_the_link_carries(void **state)
{
    static const struct {
        double rate, window;
    } rows[] = {{1e6, PIPE_WINDOW_LEAST}, {2e8, 4e6}};
    (void)state;
    base_world_set(&scripted_world);
    for (size_t row = 0; row < 2; row++) {
        end self;
        open_alone(&self, true);
        greet(&self);
        pipe_speed *speed = &self.link->speed;
        speed->round_trip = 0.01;
        self.link->waiting = 1; /* bodies wait all the time */
        for (int i = 0; i < 200; i++) {
            /* What fits into the window goes, and comes back after the round trip or as fast as the link is. */
            double seconds = (double)speed->window / rows[row].rate;
            clock_now += (int64_t)((seconds > 0.01 ? seconds : 0.01) * 1e9);
            speed->sent += speed->window;
            assert_true(pipe_lane_credited(self.link, speed->sent));
        }
        assert_in_range(speed->window, (uint64_t)(0.9 * rows[row].window), (uint64_t)(1.1 * rows[row].window));
        self.link->waiting = 0;
        close_end(&self);
    }
    base_world_set(NULL);
}

static void test_bytes_that_are_not_taken_hold_the_sender_back(void **state)
{
    end near, far;
    (void)state;
    open_both(&near, &far);
    serve_both(&near, &far, 4);
    far.hold = true;
    send_body(&near, 1, big, MIB);
    serve_both(&near, &far, 50);
    assert_int_equal(far.body_heard, PIPE_WINDOW_LEAST);
    far.hold = false;
    pipe_link_taken(far.link, PIPE_WINDOW_LEAST);
    serve_both(&near, &far, 200);
    assert_int_equal(far.body_heard, MIB);
    close_end(&near);
    close_end(&far);
}

/* ---- dropping ---------------------------------------------------------------------------------------------------- */

static int released;

static void on_release(void *owner, size_t size)
{
    assert_ptr_equal(owner, big);
    released += (int)size;
}

static void test_what_is_dropped_is_let_go_at_once(void **state)
{
    end self;
    pipe_frame frame;
    size_t ignored;
    unsigned char *bytes = malloc(MIB);
    (void)state;
    assert_non_null(bytes);
    memset(bytes, 1, MIB);
    open_alone(&self, true);
    greet(&self);
    released = 0;
    pipe_message message = {
        .stream = 1, .head = "", .body_size = MIB, .part = {{bytes, MIB}}, .owner = big, .release = on_release};
    assert_int_equal(pipe_link_send(self.link, &message), SHOAL_OK);
    assert_int_equal(released, 0);
    assert_true(pipe_link_drop(self.link, 1));
    assert_int_equal(released, MIB);
    free(bytes); /* the sanitizer would tell of a look at it */
    assert_false(pipe_link_drop(self.link, 1));
    take_in(&wire, &self);
    count_bodies(0, &ignored);
    send_body(&self, 2, "whole", 5);
    take_in(&wire, &self);
    assert_true(next_frame(&wire, &frame)); /* frames are still whole */
    assert_int_equal(frame.stream, 2);
    assert_false(pipe_link_drop(self.link, 2)); /* it is all with the system: the other end may have it */

    pthread_mutex_lock(&self.link->lock);
    self.link->blocked = true;
    pthread_mutex_unlock(&self.link->lock);
    send_body(&self, 3, "unsent", 6);
    assert_true(pipe_link_drop(self.link, 3));
    pthread_mutex_lock(&self.link->lock);
    self.link->blocked = false;
    pthread_mutex_unlock(&self.link->lock);
    take_in(&wire, &self);
    assert_false(next_frame(&wire, &frame));
    assert_int_equal(pipe_link_append(self.link, 3, big, 10, on_release, big), SHOAL_OK);
    assert_int_equal(released, MIB + 10);
    close_end(&self);
}

/* ---- the end ----------------------------------------------------------------------------------------------------- */

static void test_a_cut_in_the_middle_ends_the_link(void **state)
{
    end near, far;
    (void)state;
    open_both(&near, &far);
    serve_both(&near, &far, 4);
    send_body(&near, 1, big, MIB);
    serve(&near);
    serve(&far);
    close_end(&near);
    for (int i = 0; i < 20; i++)
        serve(&far);
    assert_int_equal(far.closed, 1);
    assert_string_equal(far.why, "the other end is gone");
    assert_true(far.body_heard < MIB);
    close_end(&far);

    open_alone(&far, false);
    shutdown(far.other, SHUT_WR);
    serve(&far);
    assert_string_equal(far.why, "the other end exited before its hello");
    close_end(&far);
}

static void test_a_pipe_whose_reader_is_gone_kills_nobody(void **state)
{
    end self = {.other = -1};
    int in[2], out[2];
    sigset_t pipes, before;
    (void)state;
    signal(SIGPIPE, SIG_DFL);
    sigemptyset(&pipes);
    sigaddset(&pipes, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipes, &before); /* as the loop's thread does */
    assert_true(pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0);
    pipe_link_options options = options_of(&self, true);
    assert_int_equal(pipe_link_new(&self.link, in[0], out[1], &options), 0);
    close(out[0]);
    serve(&self);
    assert_int_equal(self.closed, 1);
    assert_string_equal(self.why, "the other end is gone");
    signal(SIGPIPE, SIG_IGN); /* which also forgets the one that waits */
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    close(in[1]);
    close_end(&self);
}

static void test_what_is_no_frame_ends_the_link(void **state)
{
    end self;
    unsigned char head[64] = {0};
    uint32_t length;
    (void)state;
    open_alone(&self, false);
    greet(&self);
    say_text(&self, "bash: shoal: command not found\n");
    assert_int_equal(self.closed, 1);
    assert_non_null(strstr(self.why, "the other end sent a frame of an unknown kind"));
    close_end(&self);

    for (int i = 0; i < 3; i++) { /* heads that lie about their lengths */
        open_alone(&self, false);
        greet(&self);
        length = i == 0 ? 21 : i == 1 ? 0x80000000u + 20 : 0x80000000u + 19;
        memcpy(head + 8, &length, sizeof length);
        say_frame(&self, (pipe_frame){.stream = 1, .kind = PIPE_HEAD, .length = 32, .payload = head});
        assert_int_equal(self.closed, 1);
        assert_int_equal(self.heads, 0);
        assert_non_null(strstr(self.why, "inconsistent lengths"));
        close_end(&self);
    }
    open_alone(&self, false);
    greet(&self);
    say_frame(&self, (pipe_frame){.kind = PIPE_NOTE, .length = 3, .payload = (const unsigned char *)"a\0b"});
    assert_int_equal(self.closed, 1);
    assert_string_equal(self.note, "");
    close_end(&self);
}

static void test_silence_ends_the_link_and_pings_keep_it(void **state)
{
    end near, far;
    (void)state;
    base_world_set(&scripted_world);
    open_both(&near, &far);
    serve_both(&near, &far, 4);
    for (int i = 0; i < 200; i++) { /* 100 seconds of nothing but pings */
        clock_now += INT64_C(500000000);
        serve_both(&near, &far, 2);
    }
    assert_true(near.closed == 0 && far.closed == 0);
    pipe_figures figures = pipe_link_figures(near.link);
    assert_true(figures.sent > 200 && figures.sent < 5000); /* one every two seconds */
    assert_true(figures.received > 200);
    for (int i = 0; i < 19; i++) { /* the far end says nothing any more */
        clock_now += INT64_C(500000000);
        serve(&near);
    }
    assert_int_equal(near.closed, 0);
    for (int i = 0; i < 3; i++) {
        clock_now += INT64_C(500000000);
        serve(&near);
    }
    assert_int_equal(near.closed, 1);
    assert_string_equal(near.why, "nothing was heard from the other end for 10 seconds");
    close_end(&near);
    close_end(&far);
    base_world_set(NULL);
}

/* A process that was stopped, or a machine that slept, must not take its own absence for the other end's. */
static void test_who_was_away_looks_before_it_judges(void **state)
{
    end near, far;
    (void)state;
    base_world_set(&scripted_world);
    open_both(&near, &far);
    serve_both(&near, &far, 4);
    clock_now += INT64_C(3600000000000);
    serve(&near); /* nothing is there yet: the other end was away, too */
    assert_int_equal(near.closed, 0);
    serve_both(&near, &far, 4);
    clock_now += INT64_C(3600000000000);
    serve(&far); /* a ping, while only the near end is away */
    serve(&near);
    assert_true(near.closed == 0 && far.closed == 0);
    assert_true(near.link->silence == 0);
    close_end(&near);
    close_end(&far);
    base_world_set(NULL);
}

static void test_the_round_trip_is_measured(void **state)
{
    end near, far;
    (void)state;
    base_world_set(&scripted_world);
    open_both(&near, &far);
    serve_both(&near, &far, 3);
    clock_now += INT64_C(2000000000);
    serve(&near); /* pings */
    clock_now += INT64_C(30000000);
    serve(&far);
    serve(&near);
    assert_true(pipe_link_figures(near.link).round_trip > 0);
    clock_now += INT64_C(2000000000);
    serve(&near);
    clock_now += INT64_C(7000000);
    serve(&far);
    serve(&near);
    double trip = pipe_link_figures(near.link).round_trip;
    assert_true(trip <= 0.0071);
    close_end(&near);
    close_end(&far);
    base_world_set(NULL);
}

/* ---- with loops -------------------------------------------------------------------------------------------------- */

/* The far end answers what is asked, with as many bytes as are asked for. */
typedef struct peer {
    pipe_link *link;
    pipe_loop *loop;
    _Atomic uint32_t answers; /* short ones */
    _Atomic int64_t bytes;
    _Atomic uint32_t closed;
} peer;

static void peer_head(void *context, uint32_t stream, const void *head, size_t size, const void *body,
                      uint64_t body_size)
{
    peer *self = context;
    (void)body;
    if (size == 1) { /* a question */
        bool much = *(const char *)head == 'm';
        const pipe_message message = {.stream = stream,
                                      .head = "an",
                                      .head_size = 2,
                                      .body_size = much ? sizeof big : 1,
                                      .part = {{big, much ? sizeof big : 1}}};
        (void)pipe_link_send(self->link, &message);
    } else if (body_size == 1) {
        atomic_fetch_add(&self->answers, 1);
        base_wake_word(&self->answers, 1);
    }
}

static bool peer_body(void *context, uint32_t stream, const void *bytes, size_t size)
{
    peer *self = context;
    (void)stream;
    (void)bytes;
    atomic_fetch_add(&self->bytes, (int64_t)size);
    return true;
}

static void peer_cancelled(void *context, uint32_t stream)
{
    (void)context;
    (void)stream;
}

static void peer_closed(void *context, const char *why)
{
    (void)why;
    atomic_store(&((peer *)context)->closed, 1);
    base_wake_word(&((peer *)context)->closed, 1);
}

static const pipe_link_events peer_events = {
    .head = peer_head, .body = peer_body, .cancelled = peer_cancelled, .closed = peer_closed};

static void start_peer(peer *self, int in, int out, bool first)
{
    const pipe_link_options options = {
        .first = first, .nonce = NONCE, .events = &peer_events, .context = self, .hello_within = 60};
    *self = (peer){0};
    assert_int_equal(pipe_link_new(&self->link, in, out, &options), 0);
    assert_int_equal(pipe_loop_new(&self->loop), 0);
    assert_int_equal(pipe_loop_add(self->loop, self->link), 0);
    assert_int_equal(pipe_loop_start(self->loop, NULL, NULL), 0);
}

static void stop_peer(peer *self)
{
    pipe_loop_free(&self->loop, 0);
    pipe_link_free(&self->link);
}

/* A slow link: forwards 4 KiB, then sleeps as long as that takes at 4 MB/s. */
typedef struct strait {
    int from, to;
    pthread_t thread;
} strait;

static void *pass(void *context)
{
    strait *self = context;
    char bytes[4096];
    ssize_t size;
    while ((size = read(self->from, bytes, sizeof bytes)) > 0) {
        usleep((useconds_t)(size * 1000000 / 4000000));
        for (ssize_t at = 0, more; at < size; at += more)
            if ((more = write(self->to, bytes + at, (size_t)(size - at))) <= 0)
                return NULL;
    }
    close(self->to);
    return NULL;
}

static void wait_until(_Atomic uint32_t *word, uint32_t least)
{
    int64_t deadline = base_time_after(base_now(), 300);
    for (uint32_t now; (now = atomic_load(word)) < least;) {
        if (base_now() >= deadline)
            fail_msg("nothing came for five minutes");
        base_wait_word(word, now, deadline);
    }
}

/* Short questions are answered while megabytes come through a slow link, and not after them. */
static void test_a_lease_is_quick_on_a_slow_link_under_load(void **state)
{
    enum { QUESTIONS = 10 };
    peer asker, answerer;
    int up[2], down[2], slow_up[2], slow_down[2];
    strait straits[2];
    (void)state;
    assert_true(pipe2(up, O_CLOEXEC) == 0 && pipe2(down, O_CLOEXEC) == 0 && pipe2(slow_up, O_CLOEXEC) == 0 &&
                pipe2(slow_down, O_CLOEXEC) == 0);
    straits[0] = (strait){.from = up[0], .to = slow_up[1]};
    straits[1] = (strait){.from = slow_down[0], .to = down[1]};
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&straits[i].thread, NULL, pass, &straits[i]), 0);
    start_peer(&asker, down[0], up[1], true);
    start_peer(&answerer, slow_up[0], slow_down[1], false);
    for (uint32_t stream = 1; stream <= 3; stream++)
        assert_int_equal(pipe_link_send(asker.link, &(pipe_message){.stream = stream, .head = "m", .head_size = 1}),
                         SHOAL_OK);
    while (atomic_load(&asker.bytes) < 256 * KIB && !atomic_load(&asker.closed))
        usleep(1000);
    int64_t most = 0;
    for (uint32_t i = 0; i < QUESTIONS; i++) {
        int64_t before = atomic_load(&asker.bytes);
        assert_int_equal(pipe_link_send(asker.link, &(pipe_message){.stream = 10 + i, .head = "s", .head_size = 1}),
                         SHOAL_OK);
        wait_until(&asker.answers, i + 1);
        int64_t passed = atomic_load(&asker.bytes) - before;
        most = passed > most ? passed : most;
    }
    assert_true(atomic_load(&asker.bytes) < (int64_t)(3 * sizeof big)); /* it was asked under load, indeed */
    /* At most the window and what lay in the test's own pipes was before it; of six megabytes. */
    assert_true(most <= PIPE_WINDOW_LEAST + 384 * KIB);
    stop_peer(&asker);
    wait_until(&answerer.closed, 1);
    stop_peer(&answerer);
    for (int i = 0; i < 2; i++) {
        pthread_join(straits[i].thread, NULL);
        close(straits[i].from);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_both_say_hello_and_nothing_goes_before_it),
        cmocka_unit_test(test_junk_before_the_hello_is_skipped_and_kept),
        cmocka_unit_test(test_another_hello_ends_the_link_with_a_sentence),
        cmocka_unit_test(test_no_hello_in_time_ends_the_link),
        cmocka_unit_test(test_messages_of_every_length_come_as_they_were),
        cmocka_unit_test(test_notes_of_every_length_come_in_order),
        cmocka_unit_test(test_no_more_than_the_window_is_under_way),
        cmocka_unit_test(test_a_short_message_never_waits_for_a_body),
        cmocka_unit_test(test_a_short_message_passes_bodies_that_the_system_has_not_taken),
        cmocka_unit_test(test_bodies_take_turns),
        cmocka_unit_test(test_the_window_follows_what_the_link_carries),
        cmocka_unit_test(test_bytes_that_are_not_taken_hold_the_sender_back),
        cmocka_unit_test(test_what_is_dropped_is_let_go_at_once),
        cmocka_unit_test(test_a_cut_in_the_middle_ends_the_link),
        cmocka_unit_test(test_a_pipe_whose_reader_is_gone_kills_nobody),
        cmocka_unit_test(test_what_is_no_frame_ends_the_link),
        cmocka_unit_test(test_silence_ends_the_link_and_pings_keep_it),
        cmocka_unit_test(test_who_was_away_looks_before_it_judges),
        cmocka_unit_test(test_the_round_trip_is_measured),
        cmocka_unit_test(test_a_lease_is_quick_on_a_slow_link_under_load),
    };
    signal(SIGPIPE, SIG_IGN); /* of the test's own strait */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
