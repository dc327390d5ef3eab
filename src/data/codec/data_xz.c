/* xz files, by liblzma.  See data_codec.h. */
#include "data/data_internal.h"

#include <lzma.h>

#include "base/memory.h"

static void *allocate_for_lzma(void *unused, size_t count, size_t size)
{
    void *block;
    (void)unused;
    base_alloc(&block, count, size, "compression");
    return block;
}

static void free_for_lzma(void *unused, void *block)
{
    (void)unused;
    base_free(&block);
}

static const lzma_allocator allocator = {.alloc = allocate_for_lzma, .free = free_for_lzma};

static int lzma_new(void **state)
{
    lzma_stream *stream = NULL;
    int status = base_alloc(&stream, 1, sizeof *stream, "compression");
    if (status < 0)
        return status;
    *stream = (lzma_stream)LZMA_STREAM_INIT;
    stream->allocator = &allocator;
    *state = stream;
    return SHOAL_OK;
}

static void free_xz(void **state)
{
    if (*state)
        lzma_end(*state);
    base_free(state);
}

static int decode_again_xz(void *state, const char *path)
{
    return lzma_stream_decoder(state, DATA_CODEC_MEMORY, 0) == LZMA_OK ? SHOAL_OK
                                                                       : data_codec_fail_memory(path, "decompression");
}

static int decode_new_xz(void **state, const char *path)
{
    int status = lzma_new(state);
    if (status == SHOAL_OK)
        status = decode_again_xz(*state, path);
    if (status < 0)
        free_xz(state);
    return status;
}

static lzma_ret code_lzma(lzma_stream *stream, data_coding *coding, lzma_action action)
{
    stream->next_in = coding->in;
    stream->avail_in = coding->in_size;
    stream->next_out = coding->out;
    stream->avail_out = coding->out_size;
    lzma_ret result = lzma_code(stream, action);
    coding->in = stream->next_in;
    coding->in_size = stream->avail_in;
    coding->out = stream->next_out;
    coding->out_size = stream->avail_out;
    coding->ended = result == LZMA_STREAM_END;
    return result;
}

static int decode_xz(void *state, data_coding *coding, const char *path)
{
    switch (code_lzma(state, coding, LZMA_RUN)) {
    case LZMA_OK:
    case LZMA_STREAM_END:
    case LZMA_BUF_ERROR: return SHOAL_OK;
    case LZMA_MEM_ERROR: return data_codec_fail_memory(path, "decompression");
    case LZMA_MEMLIMIT_ERROR:
        return shoal_fail(SHOAL_INVALID, "%s: decompressing it would take more than 1 GiB of memory: use unxz", path);
    case LZMA_OPTIONS_ERROR: return data_codec_fail_corrupt(path, "xz", "an unknown filter");
    default: return data_codec_fail_corrupt(path, "xz", NULL);
    }
}

static int encode_new_xz(void **state, const char *path)
{
    int status = lzma_new(state);
    if (status == SHOAL_OK && lzma_easy_encoder(*state, LZMA_PRESET_DEFAULT, LZMA_CHECK_CRC64) != LZMA_OK)
        status = data_codec_fail_memory(path, "compression");
    if (status < 0)
        free_xz(state);
    return status;
}

static int encode_xz(void *state, data_coding *coding, const char *path)
{
    lzma_ret result = code_lzma(state, coding, coding->last ? LZMA_FINISH : LZMA_RUN);
    if (result == LZMA_OK || result == LZMA_STREAM_END || result == LZMA_BUF_ERROR)
        return SHOAL_OK;
    return data_codec_fail_memory(path, "compression");
}

static const struct data_coder coder = {
    .decode_new = decode_new_xz,
    .decode_again = decode_again_xz,
    .decode = decode_xz,
    .decode_free = free_xz,
    .encode_new = encode_new_xz,
    .encode = encode_xz,
    .encode_free = free_xz,
};
const struct data_coder *const data_coder_xz = &coder;
