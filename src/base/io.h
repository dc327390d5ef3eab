/* read and write until all is done: they may stop half-way, and for a signal.
 *
 * Those that return int return 0 or an errno value, since only the caller knows what to call the file. */
#ifndef BASE_IO_H
#define BASE_IO_H

#include <stddef.h>
#include <stdint.h>

int base_write_all(int file, const void *bytes, size_t size);
int base_write_all_at(int file, const void *bytes, size_t size, int64_t offset);

/* As many bytes as there are, `size` at most. */
int base_read_all(int file, void *out, size_t size, size_t *got);
int base_read_all_at(int file, void *out, size_t size, int64_t offset, size_t *got);

/* All that comes, for files that have no size, followed by a NUL.  A status: SHOAL_MEMORY, with its message ("out of
 * memory for WHAT"); SHOAL_INVALID for more than `most` bytes and SHOAL_SYSTEM with errno, whose sentence is the
 * caller's to say.  *out is the caller's to free in any case. */
int base_read_whole(char **out, size_t *size, int file, size_t most, const char *what);

/* What a small file begins with, such as those below /proc, followed by a NUL; its length, 0 when it can't be read. */
size_t base_read_small(char *out, size_t room, const char *path);

/* Closes a descriptor that is open, and notes that it is not any more. */
void base_close(int *descriptor);

#endif
