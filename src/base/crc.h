/* CRC32C (Castagnoli), as frames and TFRecords have it. */
#ifndef BASE_CRC_H
#define BASE_CRC_H

#include <stddef.h>
#include <stdint.h>

/* The checksum of bytes whose first part had `crc`, which is 0 at the start. */
uint32_t base_crc32c(uint32_t crc, const void *bytes, size_t size);

#endif
