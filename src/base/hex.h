/* Bytes as hexadecimal digits: names of blobs, hashes, %XX in addresses. */
#ifndef BASE_HEX_H
#define BASE_HEX_H

#include <stdbool.h>
#include <stddef.h>

/* 2 * size lower-case digits and NUL. */
void base_hex_write(char *out, const void *bytes, size_t size);
/* The reverse of the first 2 * size digits; false for anything but lower-case digits, `out` then being undefined. */
bool base_hex_read(void *out, size_t size, const char *text);
/* Whether the text is that many lower-case digits and nothing else. */
bool base_hex_is(const char *text, size_t digits);
/* The byte that two digits of either case stand for, as behind '%' in an address; -1 when they are none, a text that
 * ends among them included. */
int base_hex_byte(const char *digits);

#endif
