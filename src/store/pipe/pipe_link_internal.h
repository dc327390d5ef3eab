/* A link's insides, shared by pipe_link.c (what it hears), pipe_lane.c (what it sends) and pipe_loop.c (when). */
#ifndef PIPE_LINK_INTERNAL_H
#define PIPE_LINK_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "store/pipe/pipe_link.h"

enum { PIPE_READ_BYTES = 256 * 1024, PIPE_HELLO_MOST = 256 };

/* In the length of a head: its body follows in separate frames. */
#define PIPE_BODY_FOLLOWS 0x80000000u

/* A frame of the first lane, ready to go. */
typedef struct pipe_short {
    struct pipe_short *next;
    uint32_t stream;
    uint8_t kind;
    size_t size;
    unsigned char bytes[];
} pipe_short;

/* Bytes of a body that wait. */
typedef struct pipe_piece {
    struct pipe_piece *next;
    const unsigned char *bytes;
    size_t size, sent, planned; /* planned: in frames that are being written */
    void (*release)(void *owner, size_t size);
    void *owner;
} pipe_piece;

/* A message whose body is being sent.  They are in a ring, and take turns. */
typedef struct pipe_sending {
    struct pipe_sending *next, *before;
    uint32_t stream;
    uint64_t left; /* bytes not yet written */
    pipe_piece *first, *last;
} pipe_sending;

/* What the link was seen to carry. */
typedef struct pipe_speed {
    uint64_t sent, asked, credited; /* bytes of bodies: all that were sent, up to
                                     which a credit was asked for, and given */
    uint64_t window;
    double rate;        /* bytes a second */
    double round_trip;  /* the least ever seen, seconds; 0 before the first */
    int64_t span_start; /* of the measurement that is under way; 0: none is */
    uint64_t span_from; /* what had been credited then */
} pipe_speed;

struct pipe_link {
    int in, out;
    bool socket;
    pipe_link_options options;
    char nonce[64];
    pipe_loop *loop;

    /* Of the loop's thread alone. */
    unsigned char *read; /* PIPE_READ_BYTES: what was read and not yet understood */
    size_t read_size;
    bool line_too_long;
    char line[PIPE_HELLO_MOST]; /* the line that is being read, before the hello */
    size_t line_size;
    char *note; /* that is being put together */
    size_t note_size;
    uint64_t credit_due; /* asked for by the other end, as a count of its bytes;
                          0: nothing was */
    double silence;      /* seconds heard so far */
    int64_t looked;      /* when the loop last looked */
    int64_t next_ping, hello_due;
    bool ended; /* the event has been sent */

    /* Shared; the lock guards everything below. */
    pthread_mutex_t lock;
    bool said, greeted;  /* our hello, and the other end's */
    _Atomic bool failed; /* nothing is sent or read any more */
    bool gone;           /* the other end takes nothing any more; what it said before is still read */
    bool dirty;          /* there is something to send, and the loop's thread will */
    bool blocked;        /* the system took no more: wait until it is writable */
    char why[512];
    char junk[PIPE_JUNK_KEPT + PIPE_HELLO_MOST]; /* what came before the hello, maybe with it */
    size_t junk_size;
    pipe_short *first, *last;
    size_t short_bytes;                                       /* of all of these */
    pipe_sending *turn;                                       /* whose turn it is */
    uint64_t waiting;                                         /* bytes of bodies in the ring */
    unsigned char rest[PIPE_FRAME_BYTES + PIPE_PAYLOAD_MOST]; /* of a frame that the system took a part of */
    size_t rest_at, rest_size;
    pipe_speed speed;
    uint64_t received, taken; /* bytes of bodies */
    int64_t all_sent, all_received;
    double ping_least[4]; /* of the last pings */
    unsigned pings;
    double best_rate;
};

/* ---- sending (pipe_lane.c); the lock is held --------------------------------------------------------------------- */

/* Puts a frame into the first lane.  One that holds too much already breaks the link: the far end asks, and does not
 * read. */
int pipe_lane_add(pipe_link *link, const pipe_frame *frame, const void *prefix, size_t prefix_size);
/* Writes what can be written. */
void pipe_lane_flush(pipe_link *link);
/* Whether nothing can be written now, so that the loop has to wait for something else. */
bool pipe_lane_stuck(const pipe_link *link);
/* Frees all that waits, and releases its bytes. */
void pipe_lane_clear(pipe_link *link);
/* The far end has accepted this many bytes of bodies in total. */
bool pipe_lane_credited(pipe_link *link, uint64_t count);

/* Marks the link as failed, with a reason unless there is one already.  The lock is held. */
void pipe_link_broke(pipe_link *link, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- for the loop ------------------------------------------------------------------------------------------------ */

/* Reads what is there, and calls events. */
void pipe_link_read(pipe_link *link);
/* Judges silence, pings; the seconds until it should be called next. */
double pipe_link_tick(pipe_link *link, bool heard);
/* Ends it if it has failed; whether it has. */
bool pipe_link_settle(pipe_link *link);
bool pipe_loop_here(const pipe_loop *loop);

#endif
