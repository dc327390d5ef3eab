/* The bytes of a file, of a part of one, of a pipe or of standard input, decompressed where needed.  See
 * data_internal.h.
 *
 * Reading is by read(2), so that a file that shrinks meanwhile is a short file and not a signal; only
 * data_source_map maps.  Compressed streams may follow each other, and zero bytes may pad the end. */
#include "data_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/io.h"
#include "base/memory.h"
#include "base/pool.h"

enum { INPUT_BYTES = 128 << 10 };

struct data_decoding {
    const struct data_coder *coder;
    void *state;
    const char *name;
    const data_codec *codec; /* NULL for a part, after whose stream none follows */
    bool in_stream;          /* between a stream's first and last byte */
    bool input_ended;
    const unsigned char *next; /* of the input */
    size_t left;
    unsigned char input[INPUT_BYTES];
};

/* The next bytes as they are in the file. */
static int read_input(size_t *got, data_source *source, void *out, size_t size)
{
    int error;
    if (source->is_part) {
        const size_t left = source->part.packed - source->part_read;
        error = base_read_all_at(source->descriptor, out, size < left ? size : left,
                                 (int64_t)(source->part.first + source->part_read), got);
        source->part_read += *got;
    } else {
        error = base_read_all(source->descriptor, out, size, got);
    }
    return error ? shoal_fail_errno(SHOAL_SYSTEM, error, "%s: can't read", source->path) : SHOAL_OK;
}

/* ---- decompression ----------------------------------------------------------------------------------------------- */

/* What was read ahead is the start of the input. */
static int decoding_new(data_source *source, const struct data_coder *coder, const char *name, const data_codec *codec)
{
    struct data_decoding *decoding = NULL;
    int status = base_alloc(&decoding, 1, sizeof *decoding, "decompression");
    if (status < 0)
        return status;
    if ((status = coder->decode_new(&decoding->state, source->path)) < 0) {
        base_free(&decoding);
        return status;
    }
    memcpy(decoding->input, source->head, source->head_size);
    decoding->coder = coder;
    decoding->name = name;
    decoding->codec = codec;
    decoding->next = decoding->input;
    decoding->left = source->head_size;
    decoding->in_stream = true;
    source->decoding = decoding;
    source->head_size = 0;
    return SHOAL_OK;
}

static void decoding_free(data_source *source)
{
    if (source->decoding)
        source->decoding->coder->decode_free(&source->decoding->state);
    base_free(&source->decoding);
}

/* Reads more input behind what is left of it. */
static int refill(data_source *source)
{
    struct data_decoding *decoding = source->decoding;
    size_t got;
    memmove(decoding->input, decoding->next, decoding->left);
    decoding->next = decoding->input;
    int status = read_input(&got, source, decoding->input + decoding->left, sizeof decoding->input - decoding->left);
    decoding->left += got;
    decoding->input_ended = got == 0;
    return status;
}

/* After a stream: skips padding and starts the next one, if there is one. */
static int start_next_stream(data_source *source)
{
    struct data_decoding *decoding = source->decoding;
    for (; decoding->left && *decoding->next == 0; decoding->left--)
        decoding->next++;
    if (decoding->left == 0)
        return SHOAL_OK;
    if (decoding->left < DATA_CODEC_HEAD_BYTES && !decoding->input_ended)
        return refill(source);
    if (!decoding->codec->recognise(decoding->next, decoding->left))
        return shoal_fail(SHOAL_INVALID, "%s: data after the end of the %s data", source->path, decoding->name);
    decoding->in_stream = true;
    return decoding->coder->decode_again(decoding->state, source->path);
}

static int read_decoded(size_t *got, data_source *source, void *out, size_t size)
{
    struct data_decoding *decoding = source->decoding;
    int status = SHOAL_OK;
    *got = 0;
    while (status == SHOAL_OK && *got < size) {
        if (decoding->left == 0 && !decoding->input_ended)
            if ((status = refill(source)) < 0)
                break;
        if (!decoding->in_stream && (decoding->left == 0 || !decoding->codec))
            break;
        if (!decoding->in_stream) {
            status = start_next_stream(source);
            continue;
        }
        data_coding coding = {decoding->next, decoding->left, (unsigned char *)out + *got, size - *got, false, false};
        status = decoding->coder->decode(decoding->state, &coding, source->path);
        const bool stuck = coding.in_size == decoding->left && coding.out_size == size - *got && !coding.ended;
        decoding->next = coding.in;
        decoding->left = coding.in_size;
        *got = size - coding.out_size;
        decoding->in_stream = !coding.ended;
        if (status == SHOAL_OK && stuck && decoding->input_ended)
            status = shoal_fail(SHOAL_INVALID, "%s: the %s data ends early: the file is cut off", source->path,
                                decoding->name);
        else if (status == SHOAL_OK && stuck)
            status = refill(source);
    }
    return status;
}

const char *data_source_detail(const data_source *source)
{
    const data_codec *codec = data_source_codec(source);
    return codec ? codec->detail : "";
}

const data_codec *data_source_codec(const data_source *source)
{
    return source->decoding ? source->decoding->codec : NULL;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

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
    return source->decoding ? read_decoded(got, source, out, size) : read_input(got, source, out, size);
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
    if (source->is_part && status == SHOAL_OK) {
        source->crc = (uint32_t)crc32_z(source->crc, out, *got);
        status = *got < size ? data_source_check_part(source) : SHOAL_OK;
    }
    return status;
}

int data_source_check_part(const data_source *source)
{
    if (source->part.is_bare)
        return SHOAL_OK;
    if (source->position != source->part.size)
        return shoal_fail(SHOAL_INVALID, "%s: it is damaged: %zu bytes, but the file's directory says %zu",
                          source->path, source->position, source->part.size);
    if (source->crc != source->part.crc)
        return shoal_fail(SHOAL_INVALID, "%s: it is damaged: the checksum %08x is not the %08x of the file's directory",
                          source->path, (unsigned)source->crc, (unsigned)source->part.crc);
    return SHOAL_OK;
}

/* ---- all that follows, by all cores ------------------------------------------------------------------------------ */

enum { REST_BYTES = 4 << 20 };

/* The bytes of a plain file in pieces: read to where they are wanted, or mapped already. */
typedef struct rest {
    const data_source *source;
    size_t first, size;          /* in the file */
    unsigned char *out;          /* NULL: mapped */
    const unsigned char *mapped; /* the byte at `first` */
    uint32_t *crc;               /* of each piece; NULL: there is nothing to compare it with */
} rest;

static size_t rest_piece(const rest *self, int64_t item)
{
    const size_t left = self->size - (size_t)item * REST_BYTES;
    return left < REST_BYTES ? left : REST_BYTES;
}

static int read_piece(void *context, int64_t item, int thread)
{
    const rest *self = context;
    const size_t at = (size_t)item * REST_BYTES, size = rest_piece(self, item);
    const unsigned char *bytes = self->mapped ? self->mapped + at : self->out + at;
    size_t got = size;
    (void)thread;
    int error = self->mapped ? 0
                             : base_read_all_at(self->source->descriptor, self->out + at, size,
                                                (int64_t)(self->first + at), &got);
    if (error)
        return shoal_fail_errno(SHOAL_SYSTEM, error, "%s: can't read", self->source->path);
    if (got < size)
        return shoal_fail(SHOAL_INVALID, "%s: the file shrank while it was read", self->source->path);
    if (self->crc)
        self->crc[item] = (uint32_t)crc32_z(0, bytes, size);
    return SHOAL_OK;
}

/* *crc goes on from what it was. */
static int take_rest(uint32_t *crc, rest *self)
{
    const int64_t pieces = (int64_t)(self->size / REST_BYTES + (self->size % REST_BYTES != 0));
    base_pool *pool = NULL;
    int status = SHOAL_OK;
    if (self->source->is_part && !self->source->part.is_bare)
        status = base_alloc(&self->crc, (size_t)pieces + 1, sizeof *self->crc, "checksums");
    if (status == SHOAL_OK && pieces < 2)
        status = pieces ? read_piece(self, 0, 0) : SHOAL_OK;
    else if (status == SHOAL_OK && (status = base_pool_new(&pool, base_cores())) == SHOAL_OK)
        status = base_pool_each(pool, pieces, read_piece, self);
    for (int64_t i = 0; i < pieces && status == SHOAL_OK && self->crc; i++)
        *crc = (uint32_t)crc32_combine(*crc, self->crc[i], (z_off_t)rest_piece(self, i));
    base_pool_free(&pool);
    base_free(&self->crc);
    return status;
}

int data_source_read_rest(data_source *source, void *out, size_t size)
{
    rest self = {.source = source, .first = source->part.first + source->position, .size = size, .out = out};
    int status = take_rest(&source->crc, &self);
    source->position += size;
    return status == SHOAL_OK && source->is_part ? data_source_check_part(source) : status;
}

int data_source_check_mapped(const data_source *source, const unsigned char *file)
{
    data_source whole = *source; /* from its start */
    rest self = {.source = source, .size = source->part.size, .mapped = file + source->part.first};
    whole.crc = 0;
    whole.position = source->part.size;
    int status = take_rest(&whole.crc, &self);
    return status == SHOAL_OK ? data_source_check_part(&whole) : status;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

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
    source->file_size = source->content_size = source->mappable ? (size_t)info.st_size : 0;
    return SHOAL_OK;
}

static int open_compressed(data_source *source, const data_codec *codec)
{
    int status = data_codec_check(codec, source->path, false);
    source->mappable = false;
    if (status == SHOAL_OK)
        status = decoding_new(source, *codec->coder, codec->name, codec);
    return status == SHOAL_OK ? read_decoded(&source->head_size, source, source->head, sizeof source->head) : status;
}

int data_source_open(data_source *source, const char *path, bool decompress)
{
    *source = (data_source){.path = strcmp(path, "-") == 0 ? "standard input" : path, .descriptor = -1};
    int status = open_descriptor(source, path);
    if (status == SHOAL_OK)
        status = read_input(&source->head_size, source, source->head, sizeof source->head);
    const data_codec *codec = decompress ? data_codec_of_head(source->head, source->head_size) : NULL;
    if (status == SHOAL_OK && codec)
        status = open_compressed(source, codec);
    if (status < 0)
        data_source_close(source);
    return status;
}

void data_source_of_bytes(data_source *source, const char *path, const void *bytes, size_t size)
{
    *source = (data_source){.path = path, .descriptor = -1, .memory = bytes, .memory_size = size};
}

int data_source_of_part(data_source *source, const data_source *file, const char *path, const data_part *part)
{
    *source = (data_source){.path = path,
                            .descriptor = fcntl(file->descriptor, F_DUPFD_CLOEXEC, 0),
                            .mappable = !part->coder,
                            .file_size = file->file_size,
                            .content_size = part->size,
                            .is_part = true,
                            .part = *part};
    int status = source->descriptor < 0 ? shoal_fail_errno(SHOAL_SYSTEM, errno, "%s: can't read", path) : SHOAL_OK;
    if (status == SHOAL_OK && part->coder)
        status = decoding_new(source, part->coder, "deflated", NULL);
    if (status < 0)
        data_source_close(source);
    return status;
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
    decoding_free(source);
    if (source->descriptor >= 0)
        close(source->descriptor);
    source->descriptor = -1;
}
