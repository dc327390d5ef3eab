/* bzip2 files, by libbz2.  See data_codec.h. */
#include "data/data_internal.h"

#include <bzlib.h>

#include "base/memory.h"

static void *allocate_for_bzip2(void *unused, int count, int size)
{
    void *block;
    (void)unused;
    base_alloc(&block, (size_t)count, (size_t)size, "compression");
    return block;
}

static void free_for_bzip2(void *unused, void *block)
{
    (void)unused;
    base_free(&block);
}

static int stream_new(void **state)
{
    bz_stream *stream = NULL;
    int status = base_alloc(&stream, 1, sizeof *stream, "compression");
    if (status < 0)
        return status;
    *stream = (bz_stream){.bzalloc = allocate_for_bzip2, .bzfree = free_for_bzip2};
    *state = stream;
    return SHOAL_OK;
}

/* libbz2 counts in 32 bits. */
static unsigned step_of(size_t size)
{
    return size > (1u << 30) ? 1u << 30 : (unsigned)size;
}

/* Lets `code` work on as much as it can count. */
static int code_bzip2(bz_stream *stream, data_coding *coding, int (*code)(bz_stream *stream, int action), int action)
{
    const unsigned in = step_of(coding->in_size), out = step_of(coding->out_size);
    stream->next_in = (char *)coding->in;
    stream->avail_in = in;
    stream->next_out = (char *)coding->out;
    stream->avail_out = out;
    int result = code(stream, action);
    coding->in += in - stream->avail_in;
    coding->in_size -= in - stream->avail_in;
    coding->out += out - stream->avail_out;
    coding->out_size -= out - stream->avail_out;
    coding->ended = result == BZ_STREAM_END;
    return result;
}

/* ---- decoding ---------------------------------------------------------------------------------------------------- */

static int decode_new_bzip2(void **state, const char *path)
{
    int status = stream_new(state);
    if (status == SHOAL_OK && BZ2_bzDecompressInit(*state, 0, 0) != BZ_OK) {
        base_free(state);
        status = data_codec_fail_memory(path, "decompression");
    }
    return status;
}

static int decode_again_bzip2(void *state, const char *path)
{
    BZ2_bzDecompressEnd(state);
    return BZ2_bzDecompressInit(state, 0, 0) == BZ_OK ? SHOAL_OK : data_codec_fail_memory(path, "decompression");
}

static int decompress(bz_stream *stream, int unused)
{
    (void)unused;
    return BZ2_bzDecompress(stream);
}

static int decode_bzip2(void *state, data_coding *coding, const char *path)
{
    switch (code_bzip2(state, coding, decompress, 0)) {
    case BZ_OK:
    case BZ_STREAM_END: return SHOAL_OK;
    case BZ_MEM_ERROR: return data_codec_fail_memory(path, "decompression");
    default: return data_codec_fail_corrupt(path, "bzip2", NULL);
    }
}

static void decode_free_bzip2(void **state)
{
    if (*state)
        BZ2_bzDecompressEnd(*state);
    base_free(state);
}

/* ---- encoding ---------------------------------------------------------------------------------------------------- */

static int encode_new_bzip2(void **state, const char *path)
{
    enum { BLOCK_100K = 9 };
    int status = stream_new(state);
    if (status == SHOAL_OK && BZ2_bzCompressInit(*state, BLOCK_100K, 0, 0) != BZ_OK) {
        base_free(state);
        status = data_codec_fail_memory(path, "compression");
    }
    return status;
}

static int encode_bzip2(void *state, data_coding *coding, const char *path)
{
    const bool finish = coding->last && coding->in_size <= 1u << 30;
    (void)path;
    if (!finish && coding->in_size == 0)
        return SHOAL_OK; /* which libbz2 would call an error */
    int result = code_bzip2(state, coding, BZ2_bzCompress, finish ? BZ_FINISH : BZ_RUN);
    if (result < 0)
        SHOAL_BUG("libbz2 answers %d", result);
    return SHOAL_OK;
}

static void encode_free_bzip2(void **state)
{
    if (*state)
        BZ2_bzCompressEnd(*state);
    base_free(state);
}

static const struct data_coder coder = {
    .decode_new = decode_new_bzip2,
    .decode_again = decode_again_bzip2,
    .decode = decode_bzip2,
    .decode_free = decode_free_bzip2,
    .encode_new = encode_new_bzip2,
    .encode = encode_bzip2,
    .encode_free = encode_free_bzip2,
};
const struct data_coder *const data_coder_bzip2 = &coder;
