/* HMAC-SHA-256 (RFC 2104): that bytes come from somebody who has the key. */
#ifndef BASE_MAC_H
#define BASE_MAC_H

#include <stdbool.h>

#include "base/hash.h"

enum { BASE_MAC_SIZE = BASE_HASH_SIZE };

/* One code, of bytes that come in parts. */
typedef struct base_mac {
    base_hash inner, outer;
} base_mac;

void base_mac_begin(base_mac *mac, const void *key, size_t size);
void base_mac_add(base_mac *mac, const void *bytes, size_t size);
/* Ends it, and wipes what is left of the key. */
void base_mac_end(base_mac *mac, unsigned char out[BASE_MAC_SIZE]);
/* Compares in a time that says nothing about where two codes differ. */
bool base_mac_same(const unsigned char a[BASE_MAC_SIZE], const unsigned char b[BASE_MAC_SIZE]);

#endif
