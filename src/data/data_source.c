/* The bytes of a file, a pipe or standard input, gunzipped where needed.  See data_internal.h.
 *
 * Reading is by read(2), so that a file that shrinks meanwhile is a short file and not a signal; only
 * data_source_map maps.  Gzip members may follow each other, and zero bytes may pad the end. */
#include "data_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/io.h"
#include "base/memory.h"

enum { GUNZIP_INPUT_BYTES = 128 << 10 };

struct data_gunzip {
    z_stream stream;
    bool in_member;   /* between a member's first and last byte */
    bool input_ended; /* read(2) has said so */
    unsigned char input[GUNZIP_INPUT_BYTES];
};

static int read_descriptor(size_t *got, const data_source *source, void *out, size_t size)
{
    int error = base_read_all(source->descriptor, out, size, got);
    return error ? shoal_fail_errno(SHOAL_SYSTEM, error, "%s: can't read", source->path) : SHOAL_OK;
}

static int gunzip_new(data_source *source)
{
    struct data_gunzip *gunzip = NULL;
    int status = base_alloc(&gunzip, 1, sizeof *gunzip, "decompression");
    if (status < 0)
        return status;
    data_zlib_init(&gunzip->stream);
    enum { ONLY_GZIP = 16 };
    if (inflateInit2(&gunzip->stream, MAX_WBITS + ONLY_GZIP) != Z_OK) {
        base_free(&gunzip);
        return shoal_fail(SHOAL_MEMORY, "%s: out of memory for decompression", source->path);
    }
    memcpy(gunzip->input, source->head, source->head_size);
    gunzip->stream.next_in = gunzip->input;
    gunzip->stream.avail_in = (uInt)source->head_size;
    gunzip->in_member = true;
    source->gunzip = gunzip;
    source->head_size = 0;
    return SHOAL_OK;
}

static void gunzip_free(data_source *source)
{
    if (source->gunzip)
        inflateEnd(&source->gunzip->stream);
    base_free(&source->gunzip);
}

static int refill_gunzip(data_source *source)
{
    struct data_gunzip *gunzip = source->gunzip;
    size_t got;
    int status = read_descriptor(&got, source, gunzip->input, sizeof gunzip->input);
    gunzip->stream.next_in = gunzip->input;
    gunzip->stream.avail_in = (uInt)got;
    gunzip->input_ended = got == 0;
    return status;
}

/* After a member: skips padding and starts the next one, if there is one. */
static int start_next_member(data_source *source)
{
    struct data_gunzip *gunzip = source->gunzip;
    z_stream *stream = &gunzip->stream;
    for (; stream->avail_in && *stream->next_in == 0; stream->avail_in--)
        stream->next_in++;
    if (stream->avail_in == 0)
        return SHOAL_OK;
    if (*stream->next_in != 0x1f)
        return shoal_fail(SHOAL_INVALID, "%s: data after the end of the gzip data", source->path);
    inflateReset(stream);
    gunzip->in_member = true;
    return SHOAL_OK;
}

static int inflate_some(data_source *source)
{
    struct data_gunzip *gunzip = source->gunzip;
    int result = inflate(&gunzip->stream, Z_NO_FLUSH);
    if (result == Z_STREAM_END)
        gunzip->in_member = false;
    else if (result == Z_MEM_ERROR)
        return shoal_fail(SHOAL_MEMORY, "%s: out of memory for decompression", source->path);
    else if (result != Z_OK && result != Z_BUF_ERROR)
        return shoal_fail(SHOAL_INVALID, "%s: corrupt gzip data: %s", source->path,
                          gunzip->stream.msg ? gunzip->stream.msg : "not in gzip format");
    return SHOAL_OK;
}

static int read_gunzip(size_t *got, data_source *source, void *out, size_t size)
{
    struct data_gunzip *gunzip = source->gunzip;
    z_stream *stream = &gunzip->stream;
    int status = SHOAL_OK;
    *got = 0;
    while (status == SHOAL_OK && *got < size) {
        if (stream->avail_in == 0 && !gunzip->input_ended)
            if ((status = refill_gunzip(source)) < 0)
                break;
        if (stream->avail_in == 0 && gunzip->input_ended) {
            if (gunzip->in_member)
                status = shoal_fail(SHOAL_INVALID, "%s: the gzip data ends early: the file is cut off", source->path);
            break;
        }
        if (!gunzip->in_member) {
            status = start_next_member(source);
            continue;
        }
        size_t room = size - *got;
        uInt step = room > (1u << 30) ? 1u << 30 : (uInt)room;
        stream->next_out = (unsigned char *)out + *got;
        stream->avail_out = step;
        status = inflate_some(source);
        *got += step - stream->avail_out;
    }
    return status;
}

static void read_memory(size_t *got, const data_source *source, void *out, size_t size)
{
    size_t left = source->memory_size - source->position;
    *got = size < left ? size : left;
    memcpy(out, source->memory + source->position, *got);
}

static int read_content(size_t *got, data_source *source, void *out, size_t size)
{
    if (source->memory) {
        read_memory(got, source, out, size);
        return SHOAL_OK;
    }
    return source->gunzip ? read_gunzip(got, source, out, size) : read_descriptor(got, source, out, size);
}

int data_source_read(size_t *got, data_source *source, void *out, size_t size)
{
    size_t from_head = source->position < source->head_size ? source->head_size - source->position : 0;
    from_head = from_head < size ? from_head : size;
    if (from_head)
        memcpy(out, source->head + source->position, from_head);
    size_t rest = 0;
    int status = SHOAL_OK;
    if (from_head < size)
        status = read_content(&rest, source, (char *)out + from_head, size - from_head);
    *got = from_head + rest;
    source->position += *got;
    return status;
}

static int open_descriptor(data_source *source, const char *path)
{
    struct stat info;
    bool standard_input = strcmp(path, "-") == 0;
    source->descriptor = standard_input ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
    if (source->descriptor < 0 || fstat(source->descriptor, &info) < 0)
        return shoal_fail_errno(SHOAL_SYSTEM, errno, "%s: can't read", source->path);
    if (S_ISDIR(info.st_mode))
        return shoal_fail(SHOAL_SYSTEM, "%s: can't read: it is a folder", source->path);
    /* Standard input may be a file whose first part was read already; files of /proc say size 0. */
    source->mappable = S_ISREG(info.st_mode) && info.st_size > 0 && !standard_input;
    source->file_size = source->mappable ? (size_t)info.st_size : 0;
    return SHOAL_OK;
}

static bool head_is_gzip(const data_source *source)
{
    return source->head_size >= 3 && memcmp(source->head, "\x1f\x8b\x08", 3) == 0;
}

int data_source_open(data_source *source, const char *path, bool gunzip)
{
    source->path = strcmp(path, "-") == 0 ? "standard input" : path;
    source->position = source->head_size = 0;
    source->gunzip = NULL;
    source->memory = NULL;
    int status = open_descriptor(source, path);
    if (status == SHOAL_OK)
        status = read_descriptor(&source->head_size, source, source->head, sizeof source->head);
    if (status == SHOAL_OK && gunzip && head_is_gzip(source)) {
        source->mappable = false;
        status = gunzip_new(source);
        if (status == SHOAL_OK)
            status = read_gunzip(&source->head_size, source, source->head, sizeof source->head);
    }
    if (status < 0)
        data_source_close(source);
    return status;
}

void data_source_of_bytes(data_source *source, const char *path, const void *bytes, size_t size)
{
    *source = (data_source){.path = path, .descriptor = -1, .memory = bytes, .memory_size = size};
}

bool data_source_map(base_mapped **out, int *file, const data_source *source)
{
    *file = fcntl(source->descriptor, F_DUPFD_CLOEXEC, 0);
    if (*file >= 0 && base_mapped_open(out, *file, 0, source->file_size, source->path) == SHOAL_OK)
        return true;
    if (*file >= 0)
        close(*file);
    *file = -1;
    return false;
}

int data_source_load(data_buffer *buffer, data_source *source, size_t wanted)
{
    enum { STEP = 1 << 20 };
    int status = SHOAL_OK;
    bool ended = false;
    while (status == SHOAL_OK && !ended && buffer->size < wanted) {
        size_t step = wanted - buffer->size < STEP ? wanted - buffer->size : STEP, got = 0;
        status = data_buffer_extend(buffer, step);
        if (status == SHOAL_OK)
            status = data_source_read(&got, source, buffer->bytes + buffer->size, step);
        buffer->size += got;
        ended = got < step;
    }
    return status;
}

void data_source_close(data_source *source)
{
    gunzip_free(source);
    if (source->descriptor >= 0)
        close(source->descriptor);
    source->descriptor = -1;
}
