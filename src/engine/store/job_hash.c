/* SHA-256, and hexadecimal digits.  See job_hash.h. */
#include "engine/store/job_hash.h"

#include <shoal/error.h>

int job_hash_of(unsigned char out[JOB_HASH_SIZE], const void *bytes, size_t size)
{
    base_hash hash = {0};
    base_hash_add(&hash, bytes, size);
    base_hash_end(&hash, out);
    return SHOAL_OK;
}

void job_hex_write(char *out, const void *bytes, size_t size)
{
    const unsigned char *from = bytes;
    for (size_t i = 0; i < size; i++) {
        *out++ = "0123456789abcdef"[from[i] >> 4];
        *out++ = "0123456789abcdef"[from[i] & 15];
    }
    *out = '\0';
}

static int digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool job_hex_read(void *out, size_t size, const char *text)
{
    unsigned char *to = out;
    for (size_t i = 0; i < size; i++) {
        int high = digit_of(text[2 * i]), low = high < 0 ? -1 : digit_of(text[2 * i + 1]);
        if (low < 0)
            return false;
        to[i] = (unsigned char)(high * 16 + low);
    }
    return true;
}
