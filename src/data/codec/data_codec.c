/* Ways of compressing files: which there are.  See data_codec.h. */
#include "data_codec.h"

#include <string.h>

#include <shoal/error.h>

static bool is_gzip(const unsigned char *head, size_t size)
{
    return size >= 3 && memcmp(head, "\x1f\x8b\x08", 3) == 0;
}

static bool is_xz(const unsigned char *head, size_t size)
{
    return size >= 6 && memcmp(head,
                               "\xfd"
                               "7zXZ\0",
                               6) == 0;
}

/* After "BZh" and a digit comes a block, or the end of an empty stream. */
static bool is_bzip2(const unsigned char *head, size_t size)
{
    return size >= 10 && memcmp(head, "BZh", 3) == 0 && head[3] >= '1' && head[3] <= '9' &&
           (memcmp(head + 4, "1AY&SY", 6) == 0 || memcmp(head + 4, "\x17\x72\x45\x38\x50\x90", 6) == 0);
}

/* A frame, or one to be skipped, with which pzstd begins. */
static bool is_zstd(const unsigned char *head, size_t size)
{
    return size >= 4 && (memcmp(head, "\x28\xb5\x2f\xfd", 4) == 0 ||
                         ((head[0] & 0xf0) == 0x50 && memcmp(head + 1, "\x2a\x4d\x18", 3) == 0));
}

static const struct data_coder *const gzip = &data_coder_gzip;
static const data_codec codecs[] = {
    {"gzip", ", gzip", ".gz", "zlib", "gunzip", is_gzip, &gzip},
    {"xz", ", xz", ".xz", "liblzma", "unxz", is_xz, &data_coder_xz},
    {"bzip2", ", bzip2", ".bz2", "libbz2", "bunzip2", is_bzip2, &data_coder_bzip2},
    {"zstd", ", zstd", ".zst", "libzstd", "unzstd", is_zstd, &data_coder_zstd},
};

const data_codec *data_codec_of_head(const unsigned char *head, size_t size)
{
    for (size_t i = 0; i < sizeof codecs / sizeof *codecs; i++)
        if (codecs[i].recognise(head, size))
            return &codecs[i];
    return NULL;
}

const data_codec *data_codec_of_name(const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof codecs / sizeof *codecs; i++) {
        const size_t bytes = strlen(codecs[i].ending);
        if (length > bytes && memcmp(name + length - bytes, codecs[i].ending, bytes) == 0)
            return &codecs[i];
    }
    return NULL;
}

int data_codec_check(const data_codec *codec, const char *path, bool writing)
{
    if (*codec->coder)
        return SHOAL_OK;
    if (writing)
        return shoal_fail(SHOAL_USAGE,
                          "%s: this program was built without %s, so it can't write %s; .gz can be written", path,
                          codec->library, codec->ending);
    return shoal_fail(SHOAL_INVALID,
                      "%s is compressed by %s, and this program was built without %s; decompress it first: %s %s", path,
                      codec->name, codec->library, codec->program, path);
}

int data_codec_fail_memory(const char *path, const char *name)
{
    return shoal_fail(SHOAL_MEMORY, "%s: out of memory for %s", path, name);
}

int data_codec_fail_corrupt(const char *path, const char *name, const char *why)
{
    return shoal_fail(SHOAL_INVALID, "%s: corrupt %s data%s%s", path, name, why ? ": " : "", why ? why : "");
}
