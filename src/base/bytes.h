/* Numbers to bytes and back, for what travels between machines: little-endian, without gaps, every length checked.
 *
 *     base_writer out = {0};                                 base_reader in = base_reader_of(bytes, size);
 *     base_write_u32(&out, 7);                               uint32_t seven = base_read_u32(&in);
 *     base_write_bytes(&out, name, length);                  const void *name = base_read_bytes(&in, length);
 *     status = base_writer_take(&out, &bytes, &size);        if (!base_reader_done(&in)) ... not what was written
 *
 * A writer that runs out of memory and a reader that runs out of bytes remember it: look once, at the end.  A reader
 * that failed hands out zeros and NULL, so that nothing is read beyond the end. */
#ifndef BASE_BYTES_H
#define BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct base_writer {
    unsigned char *data;
    size_t size, room;
    int status; /* SHOAL_OK, or the first failure */
} base_writer;

void base_write_bytes(base_writer *writer, const void *bytes, size_t size);
/* Room for `size` bytes that the caller fills before the next write; NULL after a failure. */
void *base_write_room(base_writer *writer, size_t size);
/* Makes room for `size` bytes more at once, for those who know how many will come: nothing is copied meanwhile. */
void base_write_reserve(base_writer *writer, size_t size);
void base_write_u8(base_writer *writer, uint8_t value);
void base_write_u32(base_writer *writer, uint32_t value);
void base_write_u64(base_writer *writer, uint64_t value);
void base_write_i64(base_writer *writer, int64_t value);
void base_write_double(base_writer *writer, double value);
/* The length as 32 bits and the text without its NUL. */
void base_write_text(base_writer *writer, const char *text);
/* Hands out what was written, base_alloc'd and the caller's from then on; on failure frees it and says why. */
int base_writer_take(base_writer *writer, void **out, size_t *size);
void base_writer_release(base_writer *writer);

typedef struct base_reader {
    const unsigned char *at;
    size_t left;
    bool bad; /* something was missing or too long */
} base_reader;

base_reader base_reader_of(const void *bytes, size_t size);
/* The next `size` bytes where they lie, or NULL when there are fewer. */
const void *base_read_bytes(base_reader *reader, size_t size);
uint8_t base_read_u8(base_reader *reader);
uint32_t base_read_u32(base_reader *reader);
uint64_t base_read_u64(base_reader *reader);
int64_t base_read_i64(base_reader *reader);
double base_read_double(base_reader *reader);
/* Text into a buffer of `size` bytes, NUL included; text that is longer or holds a NUL makes the reader bad. */
void base_read_text(base_reader *reader, char *out, size_t size);
/* Whether all was there and nothing is left. */
bool base_reader_done(const base_reader *reader);

#endif
