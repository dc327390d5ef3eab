/* What a link sends: short frames first, then bodies in turns, within the window.
 *
 * Frames are planned, written by one call of the system, and only then counted as sent, so that bytes which the system
 * did not take can still be dropped, and a short frame that comes meanwhile still goes first.  Of a frame that was cut
 * the rest is copied, and goes before all else: no memory is read after its message was dropped. */
#include "pipe_link_internal.h"

#include <endian.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/memory.h"
#include "base/world.h"

enum { FRAMES_AT_ONCE = 24, BYTES_AT_ONCE = 256 * 1024 };
/* Of short frames that wait: more than all the short answers that an honest far end can have asked for at once. */
enum { SHORT_BYTES_MOST = 64 * 1024 * 1024 };

/* Frames to be written by one call. */
typedef struct writing_plan {
    struct planned {
        pipe_short *brief;    /* of the first lane, or */
        pipe_sending *sender; /* of a body: */
        pipe_piece *piece;
        size_t size; /* of the whole frame */
        uint32_t length;
        bool asks;
        unsigned char header[PIPE_FRAME_BYTES];
    } frame[FRAMES_AT_ONCE];
    int frames;
    struct iovec part[2 * FRAMES_AT_ONCE + 1];
    int parts;
    size_t size;
    uint64_t sent, asked; /* as speed's would be */
} writing_plan;

/* ---- the first lane ---------------------------------------------------------------------------------------------- */

int pipe_lane_add(pipe_link *link, const pipe_frame *frame, const void *prefix, size_t prefix_size)
{
    pipe_short *brief = NULL;
    size_t length = prefix_size + frame->length;
    if (link->short_bytes > SHORT_BYTES_MOST) {
        pipe_link_broke(link, "the other end is not reading what it is sent");
        return shoal_fail(SHOAL_AGAIN, "%s", link->why);
    }
    int status = base_alloc_unset(&brief, 1, sizeof *brief + PIPE_FRAME_BYTES + length, "a frame");
    if (status < 0) {
        pipe_link_broke(link, "%s", shoal_error());
        return status;
    }
    *brief = (pipe_short){.stream = frame->stream, .kind = frame->kind, .size = PIPE_FRAME_BYTES + length};
    if (prefix_size > 0)
        memcpy(brief->bytes + PIPE_FRAME_BYTES, prefix, prefix_size);
    if (frame->length > 0)
        memcpy(brief->bytes + PIPE_FRAME_BYTES + prefix_size, frame->payload, frame->length);
    pipe_frame whole = *frame;
    whole.length = (uint32_t)length;
    whole.payload = brief->bytes + PIPE_FRAME_BYTES;
    pipe_frame_write(brief->bytes, &whole);
    link->short_bytes += sizeof *brief + brief->size;
    if (link->last)
        link->last->next = brief;
    else
        link->first = brief;
    link->last = brief;
    return SHOAL_OK;
}

static void remove_first(pipe_link *link)
{
    pipe_short *brief = link->first;
    link->first = brief->next;
    if (!link->first)
        link->last = NULL;
    link->short_bytes -= sizeof *brief + brief->size;
    base_free(&brief);
}

/* ---- bodies ------------------------------------------------------------------------------------------------------ */

static void release_piece(pipe_piece *piece)
{
    if (piece->release)
        piece->release(piece->owner, piece->size);
    base_free(&piece);
}

static void leave_ring(pipe_link *link, pipe_sending *sender)
{
    if (link->turn == sender)
        link->turn = sender->next == sender ? NULL : sender->next;
    sender->next->before = sender->before;
    sender->before->next = sender->next;
    base_free(&sender);
}

static pipe_sending *find_sender(const pipe_link *link, uint32_t stream)
{
    pipe_sending *each = link->turn;
    while (each && each->stream != stream)
        each = each->next == link->turn ? NULL : each->next;
    return each;
}

static int add_piece(pipe_link *link, pipe_sending *sender, const void *bytes, size_t size,
                     void (*release)(void *owner, size_t size), void *owner)
{
    pipe_piece *piece = NULL;
    int status = base_alloc(&piece, 1, sizeof *piece, "a body");
    if (status < 0)
        return status;
    *piece = (pipe_piece){.bytes = bytes, .size = size, .release = release, .owner = owner};
    if (sender->last)
        sender->last->next = piece;
    else
        sender->first = piece;
    sender->last = piece;
    link->waiting += size;
    return SHOAL_OK;
}

/* Adds a place at the end of the ring. */
static int add_sender(pipe_sending **out, pipe_link *link, const pipe_message *message)
{
    pipe_sending *sender = NULL;
    int status = base_alloc(&sender, 1, sizeof *sender, "a message");
    if (status < 0)
        return status;
    *sender = (pipe_sending){.stream = message->stream, .left = message->body_size};
    sender->next = link->turn ? link->turn : sender;
    sender->before = link->turn ? link->turn->before : sender;
    sender->next->before = sender->before->next = sender;
    link->turn = sender->next;
    *out = sender;
    return SHOAL_OK;
}

static void drop_sender(pipe_link *link, pipe_sending *sender)
{
    for (pipe_piece *piece = sender->first, *next; piece; piece = next) {
        next = piece->next;
        link->waiting -= piece->size - piece->sent;
        release_piece(piece);
    }
    leave_ring(link, sender);
}

/* ---- planning ---------------------------------------------------------------------------------------------------- */

static void add_part(writing_plan *plan, const void *bytes, size_t size)
{
    plan->part[plan->parts++] = (struct iovec){.iov_base = (void *)bytes, .iov_len = size};
    plan->size += size;
}

static void plan_short(writing_plan *plan, pipe_link *link)
{
    for (pipe_short *brief = link->first; brief; brief = brief->next) {
        if (plan->frames == FRAMES_AT_ONCE || plan->size >= BYTES_AT_ONCE)
            return;
        plan->frame[plan->frames++] = (struct planned){.brief = brief, .size = brief->size};
        add_part(plan, brief->bytes, brief->size);
    }
}

/* Bytes of the sender that could be the next frame. */
static pipe_piece *next_piece(const pipe_sending *sender)
{
    pipe_piece *piece = sender->first;
    while (piece && piece->sent + piece->planned == piece->size)
        piece = piece->next;
    return piece;
}

/* Whether a frame of this length may go.  One that is beyond the window may when no credit was asked for that could
 * widen it later, and asks for it. */
static bool fits_window(bool *asks, const writing_plan *plan, const pipe_speed *speed, uint32_t length)
{
    uint64_t under_way = plan->sent - speed->credited + length, unasked = plan->sent - plan->asked + length;
    bool full = under_way > speed->window;
    *asks = full || 4 * unasked >= speed->window;
    return !full || plan->asked <= speed->credited;
}

static bool plan_body(writing_plan *plan, pipe_link *link, pipe_sending *sender)
{
    pipe_piece *piece = next_piece(sender);
    if (!piece)
        return true;
    size_t left = piece->size - piece->sent - piece->planned;
    uint32_t length = left < PIPE_PAYLOAD_MOST ? (uint32_t)left : PIPE_PAYLOAD_MOST;
    bool asks;
    if (!fits_window(&asks, plan, &link->speed, length))
        return false;
    struct planned *next = &plan->frame[plan->frames++];
    *next = (struct planned){
        .sender = sender, .piece = piece, .length = length, .size = PIPE_FRAME_BYTES + length, .asks = asks};
    pipe_frame frame = {.stream = sender->stream,
                        .kind = PIPE_BODY,
                        .flags = asks ? PIPE_ASK_CREDIT : 0,
                        .length = length,
                        .payload = piece->bytes + piece->sent + piece->planned};
    pipe_frame_write(next->header, &frame);
    add_part(plan, next->header, PIPE_FRAME_BYTES);
    add_part(plan, frame.payload, length);
    piece->planned += length;
    plan->sent += length;
    if (asks)
        plan->asked = plan->sent;
    return true;
}

static void plan_bodies(writing_plan *plan, pipe_link *link)
{
    pipe_sending *sender = link->turn;
    int frames = plan->frames, idle = 0;
    while (sender && plan->frames < FRAMES_AT_ONCE && plan->size < BYTES_AT_ONCE) {
        if (!plan_body(plan, link, sender))
            return;
        idle = plan->frames > frames ? 0 : idle + 1;
        frames = plan->frames;
        sender = sender->next;
        if (idle > 0 && sender == link->turn)
            return; /* nobody has anything that is ready; at worst some had in this
                 round, and get the next call */
    }
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

/* Counts a frame of a body as sent. */
static void commit_body(pipe_link *link, const struct planned *frame)
{
    pipe_piece *piece = frame->piece;
    pipe_sending *sender = frame->sender;
    piece->sent += frame->length;
    piece->planned -= frame->length;
    sender->left -= frame->length;
    link->waiting -= frame->length;
    link->speed.sent += frame->length;
    if (frame->asks)
        link->speed.asked = link->speed.sent;
    link->turn = sender->next;
    while (sender->first && sender->first->sent == sender->first->size) {
        piece = sender->first;
        sender->first = piece->next;
        if (!sender->first)
            sender->last = NULL;
        release_piece(piece);
    }
    if (sender->left == 0)
        leave_ring(link, sender);
}

/* Keeps what is left of a frame that the system took `taken` bytes of. */
static void keep_rest(pipe_link *link, const struct planned *frame, size_t taken)
{
    link->rest_at = 0;
    link->rest_size = frame->size - taken;
    if (frame->brief) {
        memcpy(link->rest, frame->brief->bytes + taken, link->rest_size);
        return;
    }
    /* Written so that the caller's bytes are no longer needed: what is left of the header, then of the payload. */
    size_t in_header = taken < PIPE_FRAME_BYTES ? PIPE_FRAME_BYTES - taken : 0;
    size_t in_payload = link->rest_size - in_header;
    const pipe_piece *piece = frame->piece;
    memcpy(link->rest, frame->header + PIPE_FRAME_BYTES - in_header, in_header);
    memcpy(link->rest + in_header, piece->bytes + piece->sent + frame->length - in_payload, in_payload);
}

/* Counts what the system took. */
static void commit_written(pipe_link *link, writing_plan *plan, size_t written)
{
    int next = 0;
    size_t rest = link->rest_size - link->rest_at, from_rest = written < rest ? written : rest;
    link->all_sent += (int64_t)written;
    link->rest_at += from_rest;
    written -= from_rest;
    for (; next < plan->frames && written > 0; next++) {
        struct planned *frame = &plan->frame[next];
        size_t taken = written < frame->size ? written : frame->size;
        if (taken < frame->size)
            keep_rest(link, frame, taken);
        written -= taken;
        if (frame->brief)
            remove_first(link);
        else
            commit_body(link, frame);
    }
    for (; next < plan->frames; next++)
        if (plan->frame[next].piece)
            plan->frame[next].piece->planned -= plan->frame[next].length;
}

void pipe_lane_flush(pipe_link *link)
{
    while (!link->failed && !link->gone && !link->blocked) {
        writing_plan plan;
        plan.frames = plan.parts = 0;
        plan.size = 0;
        plan.sent = link->speed.sent;
        plan.asked = link->speed.asked;
        if (link->rest_at < link->rest_size)
            add_part(&plan, link->rest + link->rest_at, link->rest_size - link->rest_at);
        if (link->said) { /* nothing goes before our hello, which is such a rest */
            plan_short(&plan, link);
            plan_bodies(&plan, link);
        }
        if (plan.parts == 0)
            return;
        struct msghdr message = {.msg_iov = plan.part, .msg_iovlen = (size_t)plan.parts};
        ssize_t written =
            link->socket ? sendmsg(link->out, &message, MSG_NOSIGNAL) : writev(link->out, plan.part, plan.parts);
        int error = errno;
        commit_written(link, &plan, written > 0 ? (size_t)written : 0);
        if (written < 0 && (error == EPIPE || error == ECONNRESET))
            link->gone = true;
        else if (written < 0 && error != EAGAIN && error != EINTR)
            pipe_link_broke(link, "writing: %s", strerror(error));
        if (written < (ssize_t)plan.size && (written >= 0 || error == EAGAIN))
            link->blocked = true;
    }
}

bool pipe_lane_stuck(const pipe_link *link)
{
    return link->failed || link->gone || link->blocked;
}

void pipe_lane_clear(pipe_link *link)
{
    while (link->first)
        remove_first(link);
    while (link->turn)
        drop_sender(link, link->turn);
}

/* ---- the window -------------------------------------------------------------------------------------------------- */

/* What a credit tells of the link's rate.  Measured while bodies wait all the time, over spans that are long enough for
 * a busy machine to be seen through; it grows at once and falls slowly. */
static void measure_rate(pipe_link *link, int64_t now)
{
    static const int64_t least_span = 5000000;
    pipe_speed *speed = &link->speed;
    bool busy = link->waiting > 0;
    int64_t elapsed = now - speed->span_start;
    if (speed->span_start && elapsed >= least_span) {
        double rate = (double)(speed->credited - speed->span_from) * 1e9 / (double)elapsed;
        speed->rate = rate > speed->rate ? rate : speed->rate + (rate - speed->rate) / 8;
        link->best_rate = rate > link->best_rate ? rate : link->best_rate;
        speed->span_start = 0;
    }
    if (!busy) {
        speed->span_start = 0;
    } else if (!speed->span_start) {
        speed->span_start = now;
        speed->span_from = speed->credited;
    }
}

bool pipe_lane_credited(pipe_link *link, uint64_t count)
{
    /* A round trip is taken for no shorter than this: processes on the way need their turns on busy cores. */
    static const double round_trip_least = 0.005;
    pipe_speed *speed = &link->speed;
    if (count < speed->credited || count > speed->sent)
        return false;
    speed->credited = count;
    measure_rate(link, base_now());
    double trip = speed->round_trip > round_trip_least ? speed->round_trip : round_trip_least;
    double window = 2 * speed->rate * trip;
    speed->window = window < PIPE_WINDOW_LEAST  ? PIPE_WINDOW_LEAST
                    : window > PIPE_WINDOW_MOST ? PIPE_WINDOW_MOST
                                                : (uint64_t)window;
    return true;
}

/* ---- for owners -------------------------------------------------------------------------------------------------- */

/* Writes at once, unless the loop's thread does so at the end of its turn. */
static void flush_or_wait(pipe_link *link, bool lazy)
{
    bool here = pipe_loop_here(link->loop), before = pipe_lane_stuck(link);
    if (here || (lazy && !link->failed))
        link->dirty = true;
    else
        pipe_lane_flush(link);
    bool wake = !here && !before && pipe_lane_stuck(link);
    pthread_mutex_unlock(&link->lock);
    if (wake)
        pipe_loop_wake(link->loop);
}

/* A message in one frame: its head, and a body that is short. */
static int send_whole(pipe_link *link, const pipe_message *message, unsigned char *front, size_t front_size)
{
    pipe_frame frame = {.stream = message->stream, .kind = PIPE_HEAD};
    unsigned char body[PIPE_SHORT_MOST];
    for (int i = 0; i < 2; i++) {
        if (message->part[i].size > 0)
            memcpy(body + frame.length, message->part[i].bytes, message->part[i].size);
        frame.length += (uint32_t)message->part[i].size;
    }
    frame.payload = body;
    return pipe_lane_add(link, &frame, front, front_size);
}

static int send_long(pipe_link *link, const pipe_message *message, unsigned char *front, size_t front_size)
{
    const pipe_frame frame = {.stream = message->stream, .kind = PIPE_HEAD};
    pipe_sending *sender = NULL;
    int status = pipe_lane_add(link, &frame, front, front_size);
    if (status == SHOAL_OK)
        status = add_sender(&sender, link, message);
    for (int i = 0; i < 2 && status == SHOAL_OK; i++)
        if (message->part[i].size > 0)
            status = add_piece(link, sender, message->part[i].bytes, message->part[i].size, message->release,
                               message->owner);
    for (pipe_piece *piece = status < 0 && sender ? sender->first : NULL; piece; piece = piece->next)
        piece->release = NULL; /* the caller releases all parts, once */
    return status;
}

/* The payload of a head's frame: the body's length, whether it is in this frame, the head's length, and the head. */
int pipe_link_send(pipe_link *link, const pipe_message *message)
{
    unsigned char front[12 + PIPE_HEAD_MOST];
    uint64_t body = message->body_size;
    bool whole = body <= PIPE_SHORT_MOST && message->part[0].size + message->part[1].size == body;
    uint32_t head = (uint32_t)message->head_size | (whole ? 0 : PIPE_BODY_FOLLOWS);
    int status = SHOAL_OK;
    if (message->head_size > PIPE_HEAD_MOST)
        SHOAL_BUG("a head of %zu bytes", message->head_size);
    uint64_t body_little = htole64(body);
    uint32_t head_little = htole32(head);
    memcpy(front, &body_little, sizeof body_little);
    memcpy(front + 8, &head_little, sizeof head_little);
    memcpy(front + 12, message->head, message->head_size);
    pthread_mutex_lock(&link->lock);
    if (link->failed) {
        status = shoal_fail(SHOAL_AGAIN, "%s", link->why);
    } else if (whole) {
        status = send_whole(link, message, front, 12 + message->head_size);
    } else {
        status = send_long(link, message, front, 12 + message->head_size);
        if (status < 0)
            pipe_link_broke(link, "%s", shoal_error());
    }
    flush_or_wait(link, message->lazy);
    for (int i = 0; i < 2 && message->release && (status < 0 || whole); i++)
        if (message->part[i].size > 0)
            message->release(message->owner, message->part[i].size);
    return status;
}

int pipe_link_append(pipe_link *link, uint32_t stream, const void *bytes, size_t size,
                     void (*release)(void *owner, size_t size), void *owner)
{
    pthread_mutex_lock(&link->lock);
    pipe_sending *sender = link->failed ? NULL : find_sender(link, stream);
    int status = sender ? add_piece(link, sender, bytes, size, release, owner) : SHOAL_OK;
    if (status < 0)
        pipe_link_broke(link, "%s", shoal_error());
    flush_or_wait(link, false);
    if ((!sender || status < 0) && release)
        release(owner, size);
    return status;
}

bool pipe_link_drop(pipe_link *link, uint32_t stream)
{
    bool dropped = false;
    pthread_mutex_lock(&link->lock);
    for (pipe_short **place = &link->first, *last = NULL; *place;) {
        pipe_short *each = *place;
        if (each->stream == stream && each->kind == PIPE_HEAD) {
            *place = each->next;
            link->short_bytes -= sizeof *each + each->size;
            base_free(&each);
            dropped = true;
        } else {
            last = each;
            place = &each->next;
        }
        link->last = last;
    }
    pipe_sending *sender = find_sender(link, stream);
    if (sender) {
        drop_sender(link, sender);
        dropped = true;
    }
    pthread_mutex_unlock(&link->lock);
    return dropped;
}

static int add_and_flush(pipe_link *link, const pipe_frame *frame)
{
    int status;
    pthread_mutex_lock(&link->lock);
    if (link->failed)
        status = shoal_fail(SHOAL_AGAIN, "%s", link->why);
    else
        status = pipe_lane_add(link, frame, NULL, 0);
    flush_or_wait(link, false);
    return status;
}

void pipe_link_cancel(pipe_link *link, uint32_t stream)
{
    (void)add_and_flush(link, &(pipe_frame){.stream = stream, .kind = PIPE_CANCEL});
}

/* Written by the loop's thread, since a note may come from one that SIGPIPE would end. */
int pipe_link_note(pipe_link *link, const char *text)
{
    size_t left = strlen(text);
    int status = SHOAL_OK;
    if (left > PIPE_NOTE_MOST)
        return shoal_fail(SHOAL_USAGE, "a note of %zu bytes is longer than %d", left, PIPE_NOTE_MOST);
    pthread_mutex_lock(&link->lock);
    if (link->failed)
        status = shoal_fail(SHOAL_AGAIN, "%s", link->why);
    do {
        size_t length = left < PIPE_PAYLOAD_MOST ? left : PIPE_PAYLOAD_MOST;
        left -= length;
        if (status == SHOAL_OK)
            status = pipe_lane_add(link,
                                   &(pipe_frame){.kind = PIPE_NOTE,
                                                 .flags = left ? PIPE_MORE : 0,
                                                 .length = (uint32_t)length,
                                                 .payload = (const unsigned char *)text},
                                   NULL, 0);
        text += length;
    } while (left > 0);
    link->dirty = true;
    pthread_mutex_unlock(&link->lock);
    pipe_loop_wake(link->loop);
    return status;
}

uint64_t pipe_link_waiting(const pipe_link *link)
{
    pthread_mutex_lock((pthread_mutex_t *)&link->lock);
    uint64_t waiting = link->waiting;
    pthread_mutex_unlock((pthread_mutex_t *)&link->lock);
    return waiting;
}

uint64_t pipe_link_window(const pipe_link *link)
{
    pthread_mutex_lock((pthread_mutex_t *)&link->lock);
    uint64_t window = link->speed.window;
    pthread_mutex_unlock((pthread_mutex_t *)&link->lock);
    return window;
}
