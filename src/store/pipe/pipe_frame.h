/* Frames: how bytes lie on a link.
 *
 *     offset   0   4 bytes   stream: which request this belongs to; 0 where there is none
 *              4   1         kind
 *              5   1         flags
 *              6   2         length of the payload, at most 32,768
 *              8   4         CRC32C of the eight bytes before and of the payload
 *             12             payload
 *
 * All numbers are little-endian.  Reading is pure: bytes in, a frame or a reason out. */
#ifndef PIPE_FRAME_H
#define PIPE_FRAME_H

#include <stddef.h>
#include <stdint.h>

enum { PIPE_FRAME_BYTES = 12, PIPE_PAYLOAD_MOST = 32 * 1024 };

typedef enum pipe_kind {
    PIPE_PING = 1,   /* 8 bytes that come back */
    PIPE_PONG = 2,   /* those bytes */
    PIPE_CREDIT = 3, /* 8 bytes: how many bytes of bodies have been taken so far */
    PIPE_NOTE = 4,   /* a note, or a part of one */
    PIPE_HEAD = 5,   /* the head of a message: a request or an answer */
    PIPE_BODY = 6,   /* bytes of a message's body, in order */
    PIPE_CANCEL = 7, /* nobody waits for this stream's answer any more */
    PIPE_KINDS
} pipe_kind;

enum {
    PIPE_MORE = 1,      /* of a note: it continues in the next one */
    PIPE_ASK_CREDIT = 1 /* of a body: tell by a credit when this has been taken */
};

typedef struct pipe_frame {
    uint32_t stream;
    uint8_t kind, flags;
    uint32_t length;
    const unsigned char *payload;
} pipe_frame;

/* Writes the header of a frame whose payload is these bytes. */
void pipe_frame_write(unsigned char out[PIPE_FRAME_BYTES], const pipe_frame *frame);

/* Reads the frame that starts here: the bytes it takes, 0 when more of them are needed, or -1 if this is not a frame,
 * and *why says why.  An impossible header is recognised from as few bytes as possible. */
int pipe_frame_read(pipe_frame *out, const void *bytes, size_t size, const char **why);

#endif
