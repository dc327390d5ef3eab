/* Names of blobs and queues in Azure.
 *
 * Keys are stored under their own names, so that other programs find them, but for the backslash, which Azure turns
 * into a slash.  It is written as '[', U+F05C, '1', and what would look so as '[', U+F05C, '0'.  That keeps the order
 * of the keys, since '[' is the character before it, and changes no name in common use: U+F05C is for private use. */
#include "azure_internal.h"

#include <ctype.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <string.h>

#include "base/hex.h"
#include "base/memory.h"

static const char escape[] = "[\xef\x81\x9c"; /* '[' and U+F05C */
enum { ESCAPE_BYTES = sizeof escape - 1 };

int azure_blob_name(char **out, const char *key)
{
    char *name = NULL;
    int status = base_alloc(&name, strlen(key) + 1, ESCAPE_BYTES + 1, "the name of a blob");
    if (status < 0)
        return status;
    char *next = name;
    while (*key) {
        bool looks_so = strncmp(key, escape, ESCAPE_BYTES) == 0;
        if (*key == '\\' || looks_so) {
            memcpy(next, escape, ESCAPE_BYTES);
            next += ESCAPE_BYTES;
            *next++ = looks_so ? '0' : '1';
            key += looks_so ? ESCAPE_BYTES : 1;
        } else {
            *next++ = *key++;
        }
    }
    *out = name;
    return SHOAL_OK;
}

int azure_blob_key(char **out, const char *name, size_t length)
{
    char *key = NULL;
    int status = base_alloc(&key, length + 1, 1, "a key");
    if (status < 0)
        return status;
    char *next = key;
    for (size_t i = 0; i < length;) {
        bool escaped = length - i > ESCAPE_BYTES && memcmp(name + i, escape, ESCAPE_BYTES) == 0;
        if (escaped && name[i + ESCAPE_BYTES] == '1') {
            *next++ = '\\';
            i += ESCAPE_BYTES + 1;
        } else if (escaped && name[i + ESCAPE_BYTES] == '0') {
            memcpy(next, escape, ESCAPE_BYTES);
            next += ESCAPE_BYTES;
            i += ESCAPE_BYTES + 1;
        } else {
            *next++ = name[i++];
        }
    }
    *out = key;
    return SHOAL_OK;
}

/* A recognisable start, and 128 bits of SHA-256 of container and queue that make it unique. */
void azure_queue_name(char out[AZURE_QUEUE_NAME], const char *container, const char *queue)
{
    enum { READABLE = 28, HASH_BYTES = 16 };
    unsigned char hash[SHA256_DIGEST_LENGTH];
    char whole[2048];
    size_t length = 0;
    int written = snprintf(whole, sizeof whole, "%s/%s", container, queue);
    SHA256((const unsigned char *)whole, (size_t)written < sizeof whole ? (size_t)written : sizeof whole - 1, hash);
    for (const char *c = queue; *c && length < READABLE; c++) {
        bool plain = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9');
        if (plain)
            out[length++] = (char)tolower((unsigned char)*c);
        else if (length > 0 && out[length - 1] != '-')
            out[length++] = '-';
    }
    while (length > 0 && out[length - 1] == '-')
        length--;
    if (length == 0)
        out[length++] = 'q';
    out[length++] = '-';
    base_hex_write(out + length, hash, HASH_BYTES);
}
