/* Frames on a link.  See pipe_frame.h. */
#include "pipe_frame.h"

#include <endian.h>
#include <string.h>

#include "base/crc.h"

enum { AT_KIND = 4, AT_FLAGS = 5, AT_LENGTH = 6, AT_CRC = 8 };

/* What a kind of frame may be like. */
static const struct shape {
    uint32_t least, most;
    uint8_t flags;
} shapes[PIPE_KINDS] = {
    [PIPE_PING] = {8, 8, 0},
    [PIPE_PONG] = {8, 8, 0},
    [PIPE_CREDIT] = {8, 8, 0},
    [PIPE_NOTE] = {0, PIPE_PAYLOAD_MOST, PIPE_MORE},
    [PIPE_HEAD] = {12, PIPE_PAYLOAD_MOST, 0},
    [PIPE_BODY] = {1, PIPE_PAYLOAD_MOST, PIPE_ASK_CREDIT},
    [PIPE_CANCEL] = {0, 0, 0},
};

static uint32_t frame_checksum(const unsigned char *header, const void *payload, size_t length)
{
    return base_crc32c(base_crc32c(0, header, AT_CRC), payload, length);
}

void pipe_frame_write(unsigned char out[PIPE_FRAME_BYTES], const pipe_frame *frame)
{
    uint32_t stream = htole32(frame->stream), crc;
    uint16_t length = htole16((uint16_t)frame->length);
    memcpy(out, &stream, sizeof stream);
    out[AT_KIND] = frame->kind;
    out[AT_FLAGS] = frame->flags;
    memcpy(out + AT_LENGTH, &length, sizeof length);
    crc = htole32(frame_checksum(out, frame->payload, frame->length));
    memcpy(out + AT_CRC, &crc, sizeof crc);
}

static int refuse_frame(const char **why, const char *reason)
{
    *why = reason;
    return -1;
}

int pipe_frame_read(pipe_frame *out, const void *bytes, size_t size, const char **why)
{
    const unsigned char *header = bytes;
    uint32_t stream, crc;
    uint16_t length;
    if (size <= AT_KIND)
        return 0;
    if (header[AT_KIND] == 0 || header[AT_KIND] >= PIPE_KINDS)
        return refuse_frame(why, "a frame of an unknown kind");
    const struct shape *shape = &shapes[header[AT_KIND]];
    if (size < PIPE_FRAME_BYTES)
        return 0;
    memcpy(&stream, header, sizeof stream);
    memcpy(&length, header + AT_LENGTH, sizeof length);
    memcpy(&crc, header + AT_CRC, sizeof crc);
    *out = (pipe_frame){.stream = le32toh(stream),
                        .kind = header[AT_KIND],
                        .flags = header[AT_FLAGS],
                        .length = le16toh(length),
                        .payload = header + PIPE_FRAME_BYTES};
    if (out->flags & ~shape->flags)
        return refuse_frame(why, "a frame with invalid flags");
    if (out->length < shape->least || out->length > shape->most)
        return refuse_frame(why, "a frame with an invalid length");
    if (size < PIPE_FRAME_BYTES + (size_t)out->length)
        return 0;
    if (frame_checksum(header, out->payload, out->length) != le32toh(crc))
        return refuse_frame(why, "a frame with a wrong checksum");
    return (int)(PIPE_FRAME_BYTES + out->length);
}
