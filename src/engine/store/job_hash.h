/* SHA-256 of what jobs are made of, and bytes as hexadecimal digits. */
#ifndef JOB_HASH_H
#define JOB_HASH_H

#include <stdbool.h>
#include <stddef.h>

#include "base/hash.h"

enum { JOB_HASH_SIZE = BASE_HASH_SIZE, JOB_HASH_HEX = 2 * JOB_HASH_SIZE + 1 };

/* Always SHOAL_OK. */
int job_hash_of(unsigned char out[JOB_HASH_SIZE], const void *bytes, size_t size);

/* 2 * size lower-case digits and NUL. */
void job_hex_write(char *out, const void *bytes, size_t size);
/* The reverse of 2 * size digits; false for anything but lower-case digits. */
bool job_hex_read(void *out, size_t size, const char *text);

#endif
