/* Output that replaces its target when whole, compressed where wanted.  See data_internal.h. */
#include "data_internal.h"

#include "base/memory.h"

enum { OUTPUT_BYTES = 128 << 10 };

struct data_encoding {
    const struct data_coder *coder;
    void *state;
    unsigned char output[OUTPUT_BYTES];
};

static int encoding_new(data_sink *sink, const data_codec *codec)
{
    struct data_encoding *encoding = NULL;
    int status = data_codec_check(codec, sink->path, true);
    if (status == SHOAL_OK)
        status = base_alloc(&encoding, 1, sizeof *encoding, "compression");
    if (status < 0)
        return status;
    encoding->coder = *codec->coder;
    status = encoding->coder->encode_new(&encoding->state, sink->path);
    if (status < 0)
        base_free(&encoding);
    sink->encoding = encoding;
    return status;
}

/* Compresses bytes and writes what comes out; with `last`, all that is left. */
static int encode_some(data_sink *sink, const void *bytes, size_t size, bool last)
{
    struct data_encoding *encoding = sink->encoding;
    data_coding coding = {.in = bytes, .in_size = size, .last = last};
    int status = SHOAL_OK;
    do {
        coding.out = encoding->output;
        coding.out_size = sizeof encoding->output;
        status = encoding->coder->encode(encoding->state, &coding, sink->path);
        if (status == SHOAL_OK)
            status = base_output_write(sink->output, encoding->output, sizeof encoding->output - coding.out_size);
    } while (status == SHOAL_OK && (last ? !coding.ended : coding.in_size > 0 || coding.out_size == 0));
    return status;
}

int data_sink_open(data_sink *sink, const char *path, const data_codec *codec)
{
    *sink = (data_sink){.path = path};
    int status = codec ? encoding_new(sink, codec) : SHOAL_OK;
    return status < 0 ? status : base_output_open(&sink->output, path);
}

int data_sink_write(data_sink *sink, const void *bytes, size_t size)
{
    if (!sink->encoding)
        return base_output_write(sink->output, bytes, size);
    return size > 0 ? encode_some(sink, bytes, size, false) : SHOAL_OK;
}

static void encoding_free(data_sink *sink)
{
    if (sink->encoding)
        sink->encoding->coder->encode_free(&sink->encoding->state);
    base_free(&sink->encoding);
}

int data_sink_finish(data_sink *sink)
{
    int status = sink->encoding ? encode_some(sink, "", 0, true) : SHOAL_OK;
    encoding_free(sink);
    return status == SHOAL_OK ? base_output_flush(sink->output) : status;
}

int data_sink_commit(data_sink *sink)
{
    int status = sink->encoding ? encode_some(sink, "", 0, true) : SHOAL_OK;
    return status < 0 ? status : base_output_commit(&sink->output);
}

void data_sink_close(data_sink *sink)
{
    encoding_free(sink);
    base_output_discard(&sink->output);
}
