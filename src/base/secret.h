/* Keys and tokens: kept in pages of their own, which are left out of core dumps, not swapped where the system lets us,
 * and wiped when they are no longer needed.
 *
 *     base_secret *key = NULL;
 *     base_secret_set(&key, bytes, size);      // replaces, and wipes, what was there
 *     ... base_secret_text(key), base_secret_size(key) ...
 *     base_secret_free(&key); */
#ifndef BASE_SECRET_H
#define BASE_SECRET_H

#include <stddef.h>

typedef struct base_secret base_secret;

/* Copies `length` bytes, which may be any bytes, and adds a NUL.  On failure *out stays as it was. */
int base_secret_set(base_secret **out, const char *text, size_t length);
/* "" when there is none. */
const char *base_secret_text(const base_secret *secret);
size_t base_secret_size(const base_secret *secret);
void base_secret_free(base_secret **secret);

/* Overwrites bytes that were a secret, in a way that no compiler leaves out. */
void base_wipe(void *bytes, size_t size);

#endif
