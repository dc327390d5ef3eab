/* Output that replaces its target when whole, gzipped where wanted.  See data_internal.h. */
#include "data_internal.h"

#include <zlib.h>

#include "base/memory.h"

enum { GZIP_OUTPUT_BYTES = 128 << 10 };

struct data_gzip {
    z_stream stream;
    unsigned char output[GZIP_OUTPUT_BYTES];
};

static int gzip_new(data_sink *sink)
{
    struct data_gzip *gzip = NULL;
    int status = base_alloc(&gzip, 1, sizeof *gzip, "compression");
    if (status < 0)
        return status;
    data_zlib_init(&gzip->stream);
    enum { GZIP_HEADER = 16, MEMORY_LEVEL = 8 };
    if (deflateInit2(&gzip->stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, MAX_WBITS + GZIP_HEADER, MEMORY_LEVEL,
                     Z_DEFAULT_STRATEGY) != Z_OK) {
        base_free(&gzip);
        return shoal_fail(SHOAL_MEMORY, "%s: out of memory for compression", sink->path);
    }
    sink->gzip = gzip;
    return SHOAL_OK;
}

/* Compresses what the stream was given and writes what comes out. */
static int drain(data_sink *sink, int flush)
{
    z_stream *stream = &sink->gzip->stream;
    int status = SHOAL_OK, result;
    do {
        stream->next_out = sink->gzip->output;
        stream->avail_out = sizeof sink->gzip->output;
        result = deflate(stream, flush);
        status = base_output_write(sink->output, sink->gzip->output, sizeof sink->gzip->output - stream->avail_out);
    } while (status == SHOAL_OK && (flush == Z_FINISH ? result != Z_STREAM_END : stream->avail_out == 0));
    return status;
}

int data_sink_open(data_sink *sink, const char *path, bool gzip)
{
    *sink = (data_sink){.path = path};
    int status = gzip ? gzip_new(sink) : SHOAL_OK;
    return status < 0 ? status : base_output_open(&sink->output, path);
}

int data_sink_write(data_sink *sink, const void *bytes, size_t size)
{
    if (!sink->gzip)
        return base_output_write(sink->output, bytes, size);
    z_stream *stream = &sink->gzip->stream;
    int status = SHOAL_OK;
    const unsigned char *at = bytes;
    while (status == SHOAL_OK && size > 0) {
        uInt step = size > (1u << 30) ? 1u << 30 : (uInt)size;
        stream->next_in = (unsigned char *)at;
        stream->avail_in = step;
        status = drain(sink, Z_NO_FLUSH);
        at += step;
        size -= step;
    }
    return status;
}

int data_sink_commit(data_sink *sink)
{
    int status = sink->gzip ? drain(sink, Z_FINISH) : SHOAL_OK;
    return status < 0 ? status : base_output_commit(&sink->output);
}

void data_sink_close(data_sink *sink)
{
    if (sink->gzip)
        deflateEnd(&sink->gzip->stream);
    base_free(&sink->gzip);
    base_output_discard(&sink->output);
}
