/* HMAC by our own SHA-256, so that programs without the cloud stores have it too.  See mac.h. */
#include "base/mac.h"

#include <string.h>

#include "base/secret.h"

enum { BLOCK = 64 };

void base_mac_begin(base_mac *mac, const void *key, size_t size)
{
    unsigned char block[BLOCK] = {0};
    *mac = (base_mac){0};
    if (size > BLOCK)
        base_hash_of(block, key, size);
    else
        memcpy(block, key, size);
    for (int i = 0; i < BLOCK; i++)
        block[i] ^= 0x36;
    base_hash_add(&mac->inner, block, BLOCK);
    for (int i = 0; i < BLOCK; i++)
        block[i] ^= 0x36 ^ 0x5c;
    base_hash_add(&mac->outer, block, BLOCK);
    base_wipe(block, sizeof block);
}

void base_mac_add(base_mac *mac, const void *bytes, size_t size)
{
    base_hash_add(&mac->inner, bytes, size);
}

void base_mac_end(base_mac *mac, unsigned char out[BASE_MAC_SIZE])
{
    unsigned char inner[BASE_HASH_SIZE];
    base_hash_end(&mac->inner, inner);
    base_hash_add(&mac->outer, inner, sizeof inner);
    base_hash_end(&mac->outer, out);
    base_wipe(mac, sizeof *mac);
}

bool base_mac_same(const unsigned char a[BASE_MAC_SIZE], const unsigned char b[BASE_MAC_SIZE])
{
    unsigned differ = 0;
    for (int i = 0; i < BASE_MAC_SIZE; i++)
        differ |= (unsigned)(a[i] ^ b[i]);
    return differ == 0;
}
