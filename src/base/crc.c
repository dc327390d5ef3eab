/* CRC32C by isa-l, which uses what the processor has for it.  See crc.h. */
#include "crc.h"

#include <limits.h>
#include <isa-l/crc.h>

uint32_t base_crc32c(uint32_t crc, const void *bytes, size_t size)
{
    enum { CHUNK = 1 << 30 }; /* isa-l counts bytes in an int */
    unsigned char *next = (unsigned char *)bytes;
    crc = ~crc;
    for (; size > CHUNK; size -= CHUNK, next += CHUNK)
        crc = crc32_iscsi(next, CHUNK, crc);
    return ~crc32_iscsi(next, (int)size, crc);
}
