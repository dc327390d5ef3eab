/* SHA-256 by libcrypto, and hexadecimal digits.  See job_hash.h. */
#include "engine/store/job_hash.h"

#include <openssl/evp.h>

#include <shoal/error.h>

void job_hash_add(job_hash *hash, const void *bytes, size_t size)
{
    if (!hash->context && !hash->failed) {
        hash->context = EVP_MD_CTX_new();
        hash->failed = !hash->context || EVP_DigestInit_ex(hash->context, EVP_sha256(), NULL) != 1;
    }
    if (!hash->failed)
        hash->failed = EVP_DigestUpdate(hash->context, bytes, size) != 1;
}

int job_hash_end(job_hash *hash, unsigned char out[JOB_HASH_SIZE])
{
    job_hash_add(hash, "", 0); /* what nothing was added to has a hash too */
    bool failed = hash->failed || EVP_DigestFinal_ex(hash->context, out, NULL) != 1;
    EVP_MD_CTX_free(hash->context);
    *hash = (job_hash){0};
    return failed ? shoal_fail(SHOAL_MEMORY, "out of memory: a hash") : SHOAL_OK;
}

int job_hash_of(unsigned char out[JOB_HASH_SIZE], const void *bytes, size_t size)
{
    job_hash hash = {0};
    job_hash_add(&hash, bytes, size);
    return job_hash_end(&hash, out);
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
