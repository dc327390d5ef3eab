/* Fuzzes what comes from the other end of a link.  Odd inputs are read as frames, requests and answers, where what
 * passes must be written again as it was.  Even ones are a far end that speaks to a server, some to one that shows a
 * job alone: frames with good checksums, and anything in them. Whatever it says, the server must end when it is told
 * to, and take in no more than it is sent. */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "store/pipe/pipe.h"
#include "store/pipe/pipe_frame.h"
#include "store/pipe/pipe_wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

#define NONCE "00112233445566778899aabbccddeeff"

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static void read_frame(const uint8_t *bytes, size_t size)
{
    pipe_frame frame;
    const char *why = NULL;
    unsigned char again[PIPE_FRAME_BYTES];
    int taken = pipe_frame_read(&frame, bytes, size, &why);
    if (taken < 0 && (!why || !*why))
        abort();
    if (taken <= 0)
        return;
    pipe_frame_write(again, &frame);
    if ((size_t)taken > size || memcmp(again, bytes, sizeof again) != 0)
        abort();
}

/* What was read and written is read and written again as the same bytes. */
static void read_request(const uint8_t *bytes, size_t size)
{
    static pipe_request request, second;
    base_writer once = {0}, twice = {0};
    if (!pipe_request_read(&request, bytes, size))
        return;
    pipe_request_write(&once, &request);
    if (!pipe_request_read(&second, once.data, once.size))
        abort();
    pipe_request_write(&twice, &second);
    if (once.size != twice.size || memcmp(once.data, twice.data, once.size) != 0)
        abort();
    base_writer_release(&once);
    base_writer_release(&twice);
}

static void read_answers(const uint8_t *bytes, size_t size)
{
    static pipe_answer answer, second;
    shoal_listing page = {0};
    for (int call = PIPE_DESCRIBE; call < PIPE_CALLS; call++) {
        base_writer once = {0};
        if (!pipe_answer_read(&answer, (pipe_call)call, bytes, size))
            continue;
        pipe_answer_write(&once, (pipe_call)call, &answer);
        if (!pipe_answer_read(&second, (pipe_call)call, once.data, once.size) || second.status != answer.status)
            abort();
        base_writer_release(&once);
    }
    (void)pipe_entries_read(&page, bytes, size);
    shoal_listing_release(&page);
}

/* ---- speaking to a server ---------------------------------------------------------------------------------------- */

/* Bytes become frames: stream, kind, flags and length in five bytes, then the payload.  The checksum is made good. */
static size_t make_frames(unsigned char *out, size_t room, const uint8_t *bytes, size_t size)
{
    size_t used = 0;
    while (size >= 5) {
        size_t length = (size_t)bytes[3] | (size_t)(bytes[4] & 0x7f) << 8;
        length = length < size - 5 ? length : size - 5;
        if (used + PIPE_FRAME_BYTES + length > room)
            break;
        const pipe_frame frame = {
            .stream = bytes[0], .kind = bytes[1], .flags = bytes[2], .length = (uint32_t)length, .payload = bytes + 5};
        pipe_frame_write(out + used, &frame);
        memcpy(out + used + PIPE_FRAME_BYTES, bytes + 5, length);
        used += PIPE_FRAME_BYTES + length;
        bytes += 5 + length;
        size -= 5 + length;
    }
    return used;
}

static void speak(int socket, const unsigned char *bytes, size_t size)
{
    char heard[4096];
    while (size > 0) {
        ssize_t sent = send(socket, bytes, size, MSG_NOSIGNAL);
        if (sent <= 0)
            break;
        bytes += sent;
        size -= (size_t)sent;
    }
    shutdown(socket, SHUT_WR);
    while (recv(socket, heard, sizeof heard, 0) > 0) /* until the server has ended the link */
        ;
}

static void speak_to_server(const uint8_t *bytes, size_t size, bool one_job)
{
    static const char hello[] = "shoal-pipe 1 x " NONCE "\n";
    static unsigned char frames[1 << 18];
    shoal_store *store = NULL;
    pipe_server *server = NULL;
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0 ||
        shoal_store_open(&store, "mem:", NULL, SHOAL_NEVER) < 0)
        abort();
    const pipe_server_options options = {.store = store,
                                         .data = one_job ? store : NULL,
                                         .job = one_job ? "j" : NULL,
                                         .data_key = "rows",
                                         .nonce = NONCE};
    if (pipe_server_new(&server, pair[0], pair[0], &options) < 0)
        abort();
    if (send(pair[1], hello, sizeof hello - 1, MSG_NOSIGNAL) < 0)
        abort();
    speak(pair[1], frames, make_frames(frames, sizeof frames, bytes, size));
    close(pair[1]);
    pipe_server_free(&server);
    shoal_store_close(&store);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    if (size == 0)
        return 0;
    if (bytes[0] % 2 == 1) {
        read_frame(bytes + 1, size - 1);
        read_request(bytes + 1, size - 1);
        read_answers(bytes + 1, size - 1);
    } else {
        speak_to_server(bytes + 1, size - 1, bytes[0] & 4);
    }
    return 0;
}
