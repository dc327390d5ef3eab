/* SHA-256 of what jobs are made of, and bytes as hexadecimal digits. */
#ifndef JOB_HASH_H
#define JOB_HASH_H

#include <stdbool.h>
#include <stddef.h>

enum { JOB_HASH_SIZE = 32, JOB_HASH_HEX = 2 * JOB_HASH_SIZE + 1 };

/* One hash, of bytes that come in parts.  Zero before; every call after a failure does nothing. */
typedef struct job_hash {
    void *context;
    bool failed;
} job_hash;

void job_hash_add(job_hash *hash, const void *bytes, size_t size);
/* Ends it, whether it went well or not.  SHOAL_MEMORY if it did not. */
int job_hash_end(job_hash *hash, unsigned char out[JOB_HASH_SIZE]);

int job_hash_of(unsigned char out[JOB_HASH_SIZE], const void *bytes, size_t size);

/* 2 * size lower-case digits and NUL. */
void job_hex_write(char *out, const void *bytes, size_t size);
/* The reverse of 2 * size digits; false for anything but lower-case digits. */
bool job_hex_read(void *out, size_t size, const char *text);

#endif
