/* SHA-256 by libcrypto.  See hash.h.
 *
 * By the functions that it calls old: the new ones look for the hash by name at run time, among all that could ever be
 * loaded, which makes a static program 4 MB greater and wants shared libraries after all. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "hash.h"

void base_hash_add(base_hash *hash, const void *bytes, size_t size)
{
    if (!hash->begun)
        SHA256_Init(&hash->context);
    hash->begun = true;
    SHA256_Update(&hash->context, bytes, size);
}

void base_hash_end(base_hash *hash, unsigned char out[BASE_HASH_SIZE])
{
    base_hash_add(hash, "", 0); /* what nothing was added to has a hash too */
    SHA256_Final(out, &hash->context);
    *hash = (base_hash){0};
}

void base_hash_of(unsigned char out[BASE_HASH_SIZE], const void *bytes, size_t size)
{
    base_hash hash = {0};
    base_hash_add(&hash, bytes, size);
    base_hash_end(&hash, out);
}
