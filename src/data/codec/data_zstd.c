/* zstd files, by libzstd.  See data_codec.h. */
#include "data/data_internal.h"

#include <zstd.h>
#include <zstd_errors.h>

/* ---- decoding ---------------------------------------------------------------------------------------------------- */

static int decode_new_zstd(void **state, const char *path)
{
    enum { WINDOW_LOG_MOST = 30 }; /* of DATA_CODEC_MEMORY */
    ZSTD_DCtx *context = ZSTD_createDCtx();
    if (!context)
        return data_codec_fail_memory(path, "decompression");
    ZSTD_DCtx_setParameter(context, ZSTD_d_windowLogMax, WINDOW_LOG_MOST);
    *state = context;
    return SHOAL_OK;
}

static int decode_again_zstd(void *state, const char *path)
{
    (void)path;
    ZSTD_DCtx_reset(state, ZSTD_reset_session_only);
    return SHOAL_OK;
}

static int fail_zstd(size_t result, const char *path)
{
    switch (ZSTD_getErrorCode(result)) {
    case ZSTD_error_memory_allocation: return data_codec_fail_memory(path, "decompression");
    case ZSTD_error_frameParameter_windowTooLarge:
        return shoal_fail(SHOAL_INVALID, "%s: decompressing it would take more than 1 GiB of memory: use unzstd", path);
    default: return data_codec_fail_corrupt(path, "zstd", ZSTD_getErrorName(result));
    }
}

static int decode_zstd(void *state, data_coding *coding, const char *path)
{
    ZSTD_inBuffer in = {coding->in, coding->in_size, 0};
    ZSTD_outBuffer out = {coding->out, coding->out_size, 0};
    const size_t result = ZSTD_decompressStream(state, &out, &in);
    if (ZSTD_isError(result))
        return fail_zstd(result, path);
    coding->in += in.pos;
    coding->in_size -= in.pos;
    coding->out += out.pos;
    coding->out_size -= out.pos;
    coding->ended = result == 0;
    return SHOAL_OK;
}

static void decode_free_zstd(void **state)
{
    ZSTD_freeDCtx(*state);
    *state = NULL;
}

/* ---- encoding ---------------------------------------------------------------------------------------------------- */

static int encode_new_zstd(void **state, const char *path)
{
    ZSTD_CCtx *context = ZSTD_createCCtx();
    if (!context)
        return data_codec_fail_memory(path, "compression");
    ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
    *state = context;
    return SHOAL_OK;
}

static int encode_zstd(void *state, data_coding *coding, const char *path)
{
    ZSTD_inBuffer in = {coding->in, coding->in_size, 0};
    ZSTD_outBuffer out = {coding->out, coding->out_size, 0};
    const size_t result = ZSTD_compressStream2(state, &out, &in, coding->last ? ZSTD_e_end : ZSTD_e_continue);
    if (ZSTD_isError(result))
        return data_codec_fail_memory(path, "compression");
    coding->in += in.pos;
    coding->in_size -= in.pos;
    coding->out += out.pos;
    coding->out_size -= out.pos;
    coding->ended = coding->last && result == 0;
    return SHOAL_OK;
}

static void encode_free_zstd(void **state)
{
    ZSTD_freeCCtx(*state);
    *state = NULL;
}

static const struct data_coder coder = {
    .decode_new = decode_new_zstd,
    .decode_again = decode_again_zstd,
    .decode = decode_zstd,
    .decode_free = decode_free_zstd,
    .encode_new = encode_new_zstd,
    .encode = encode_zstd,
    .encode_free = encode_free_zstd,
};
const struct data_coder *const data_coder_zstd = &coder;
