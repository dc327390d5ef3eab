/* SHA-256, by libcrypto. */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <openssl/sha.h>

enum { BASE_HASH_SIZE = SHA256_DIGEST_LENGTH, BASE_HASH_HEX = 2 * BASE_HASH_SIZE + 1 };

/* One hash, of bytes that come in parts.  Zero before. */
typedef struct base_hash {
    SHA256_CTX context;
    bool begun;
} base_hash;

void base_hash_add(base_hash *hash, const void *bytes, size_t size);
/* Ends it; it is zero again. */
void base_hash_end(base_hash *hash, unsigned char out[BASE_HASH_SIZE]);
/* All at once. */
void base_hash_of(unsigned char out[BASE_HASH_SIZE], const void *bytes, size_t size);

#endif
