/* Files that are mapped, and may shrink while they are read.
 *
 *     base_mapped *mapped = NULL;
 *     status = base_mapped_open(&mapped, descriptor, 0, size, "data.npy");
 *     sum(base_mapped_bytes(mapped), size);
 *     status = base_mapped_check(mapped, descriptor, "data.npy");    // was what was summed all the file's?
 *     base_mapped_close(&mapped);
 *
 * Reading a page that the file no longer has raises SIGBUS.  The handler here replaces the whole mapping by zeros and
 * notes that it is lost, so that the reader continues, and the caller asks before using what it found.  The handler is
 * installed for the whole process with the first mapping; each further mapping checks that it is still there.  A signal
 * for another address goes to the handler before it, as a handler that is installed later should do, too. */
#ifndef BASE_MAPPED_H
#define BASE_MAPPED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct base_mapped base_mapped;

/* Maps `size` bytes from `offset`, a multiple of the page size, to be read; the descriptor may be closed then.
 * SHOAL_SYSTEM, naming `path`, when the system can't, and SHOAL_MEMORY. */
int base_mapped_open(base_mapped **out, int descriptor, int64_t offset, size_t size, const char *path);
void base_mapped_close(base_mapped **mapped);

const unsigned char *base_mapped_bytes(const base_mapped *mapped);
size_t base_mapped_size(const base_mapped *mapped);
/* Whether somebody met a page that could not be read: the file shrank, or the disk failed.  A file that shrank within
 * its last page reads as zeros there and is not noticed: its size tells. */
bool base_mapped_is_lost(const base_mapped *mapped);
/* Both for a file that was mapped from its start and whose descriptor is open still: SHOAL_INVALID, naming `path`. */
int base_mapped_check(const base_mapped *mapped, int descriptor, const char *path);

#endif
