/* Writing tar archives.  See tar.h. */
#include "tar.h"

#include <shoal/error.h>
#include <stdio.h>
#include <string.h>

/* The first 500 bytes of a header block; numbers are octal text. */
typedef struct tar_header {
    char name[100], mode[8], owner[8], group[8], size[12], time[12], check[8], kind, link[100], magic[6], version[2],
        owner_name[32], group_name[32], device[16], prefix[155];
    char unused[12];
} tar_header;

_Static_assert(sizeof(tar_header) == DATA_TAR_BLOCK, "a header is one block");

void data_tar_write(base_writer *out, const char *name, const void *bytes, size_t size)
{
    static const char zeros[DATA_TAR_BLOCK];
    tar_header header = {.kind = '0', .magic = "ustar", .version = {'0', '0'}};
    unsigned sum = 0;
    if (strlen(name) > DATA_TAR_NAME_MOST || size >= (size_t)1 << 33)
        SHOAL_BUG("%s does not fit into a tar archive", name);
    memcpy(header.name, name, strlen(name));
    snprintf(header.mode, sizeof header.mode, "0000444");
    snprintf(header.owner, sizeof header.owner, "0000000");
    snprintf(header.group, sizeof header.group, "0000000");
    snprintf(header.size, sizeof header.size, "%011zo", size);
    snprintf(header.time, sizeof header.time, "00000000000");
    memset(header.check, ' ', sizeof header.check); /* the checksum is made as if these were blanks */
    for (size_t i = 0; i < sizeof header; i++)
        sum += ((const unsigned char *)&header)[i];
    snprintf(header.check, sizeof header.check, "%06o", sum);
    header.check[7] = ' ';
    base_write_bytes(out, &header, sizeof header);
    base_write_bytes(out, bytes, size);
    base_write_bytes(out, zeros, (DATA_TAR_BLOCK - size % DATA_TAR_BLOCK) % DATA_TAR_BLOCK);
}

void data_tar_end(base_writer *out)
{
    static const char zeros[2 * DATA_TAR_BLOCK];
    base_write_bytes(out, zeros, sizeof zeros);
}
