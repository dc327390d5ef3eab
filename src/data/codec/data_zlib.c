/* zlib: gzip files, the deflated members of zip files, and the elements of MATLAB's.  See data_codec.h.
 *
 * Its memory is taken where all memory is taken, so that tests can make it fail. */
#include "data/data_internal.h"

#include <zlib.h>

#include "base/memory.h"

static voidpf allocate_for_zlib(voidpf unused, uInt count, uInt size)
{
    void *block;
    (void)unused;
    base_alloc(&block, count, size, "compression");
    return block;
}

static void free_for_zlib(voidpf unused, voidpf block)
{
    (void)unused;
    base_free(&block);
}

void data_zlib_init(struct z_stream_s *stream)
{
    *stream = (z_stream){.zalloc = allocate_for_zlib, .zfree = free_for_zlib};
}

/* ---- decoding ---------------------------------------------------------------------------------------------------- */

static int inflate_new(void **state, const char *path, int window_bits)
{
    z_stream *stream = NULL;
    int status = base_alloc(&stream, 1, sizeof *stream, "decompression");
    if (status < 0)
        return status;
    data_zlib_init(stream);
    if (inflateInit2(stream, window_bits) != Z_OK) {
        base_free(&stream);
        return data_codec_fail_memory(path, "decompression");
    }
    *state = stream;
    return SHOAL_OK;
}

static int decode_new_gzip(void **state, const char *path)
{
    enum { ONLY_GZIP = 16 };
    return inflate_new(state, path, MAX_WBITS + ONLY_GZIP);
}

static int decode_new_deflate(void **state, const char *path)
{
    return inflate_new(state, path, -MAX_WBITS);
}

static int decode_new_zlib(void **state, const char *path)
{
    return inflate_new(state, path, MAX_WBITS);
}

static int decode_again_zlib(void *state, const char *path)
{
    (void)path;
    inflateReset(state);
    return SHOAL_OK;
}

/* zlib counts in 32 bits. */
static uInt step_of(size_t size)
{
    return size > (1u << 30) ? 1u << 30 : (uInt)size;
}

static int decode_zlib(z_stream *stream, data_coding *coding, const char *path, const char *name)
{
    const uInt in = step_of(coding->in_size), out = step_of(coding->out_size);
    stream->next_in = (unsigned char *)coding->in;
    stream->avail_in = in;
    stream->next_out = coding->out;
    stream->avail_out = out;
    int result = inflate(stream, Z_NO_FLUSH);
    coding->in = stream->next_in;
    coding->in_size -= in - stream->avail_in;
    coding->out = stream->next_out;
    coding->out_size -= out - stream->avail_out;
    coding->ended = result == Z_STREAM_END;
    if (result == Z_MEM_ERROR)
        return data_codec_fail_memory(path, "decompression");
    if (result != Z_OK && result != Z_BUF_ERROR && result != Z_STREAM_END)
        return data_codec_fail_corrupt(path, name, stream->msg ? stream->msg : "not in its format");
    return SHOAL_OK;
}

static int decode_gzip(void *state, data_coding *coding, const char *path)
{
    return decode_zlib(state, coding, path, "gzip");
}

static int decode_deflate(void *state, data_coding *coding, const char *path)
{
    return decode_zlib(state, coding, path, "deflated");
}

static void decode_free_zlib(void **state)
{
    if (*state)
        inflateEnd(*state);
    base_free(state);
}

/* ---- encoding ---------------------------------------------------------------------------------------------------- */

static int encode_new_gzip(void **state, const char *path)
{
    enum { GZIP_HEADER = 16, MEMORY_LEVEL = 8 };
    z_stream *stream = NULL;
    int status = base_alloc(&stream, 1, sizeof *stream, "compression");
    if (status < 0)
        return status;
    data_zlib_init(stream);
    if (deflateInit2(stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, MAX_WBITS + GZIP_HEADER, MEMORY_LEVEL,
                     Z_DEFAULT_STRATEGY) != Z_OK) {
        base_free(&stream);
        return data_codec_fail_memory(path, "compression");
    }
    *state = stream;
    return SHOAL_OK;
}

static int encode_gzip(void *state, data_coding *coding, const char *path)
{
    z_stream *stream = state;
    const uInt in = step_of(coding->in_size), out = step_of(coding->out_size);
    (void)path;
    stream->next_in = (unsigned char *)coding->in;
    stream->avail_in = in;
    stream->next_out = coding->out;
    stream->avail_out = out;
    int result = deflate(stream, coding->last && in == coding->in_size ? Z_FINISH : Z_NO_FLUSH);
    coding->in = stream->next_in;
    coding->in_size -= in - stream->avail_in;
    coding->out = stream->next_out;
    coding->out_size -= out - stream->avail_out;
    coding->ended = result == Z_STREAM_END;
    return SHOAL_OK;
}

static void encode_free_gzip(void **state)
{
    if (*state)
        deflateEnd(*state);
    base_free(state);
}

const struct data_coder data_coder_gzip = {
    .decode_new = decode_new_gzip,
    .decode_again = decode_again_zlib,
    .decode = decode_gzip,
    .decode_free = decode_free_zlib,
    .encode_new = encode_new_gzip,
    .encode = encode_gzip,
    .encode_free = encode_free_gzip,
};
const struct data_coder data_coder_deflate = {
    .decode_new = decode_new_deflate,
    .decode_again = decode_again_zlib,
    .decode = decode_deflate,
    .decode_free = decode_free_zlib,
};
const struct data_coder data_coder_zlib = {
    .decode_new = decode_new_zlib,
    .decode_again = decode_again_zlib,
    .decode = decode_deflate,
    .decode_free = decode_free_zlib,
};
