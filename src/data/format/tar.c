/* Tar archives.  See tar.h. */
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

/* The sum of all bytes of a header, its checksum counted as blanks. */
static unsigned sum_of(const tar_header *header)
{
    const size_t at = offsetof(tar_header, check);
    unsigned sum = 0;
    for (size_t i = 0; i < sizeof *header; i++)
        sum += i - at < sizeof header->check ? ' ' : ((const unsigned char *)header)[i];
    return sum;
}

void data_tar_write(base_writer *out, const char *name, const void *bytes, size_t size)
{
    static const char zeros[DATA_TAR_BLOCK];
    tar_header header = {.kind = '0', .magic = "ustar", .version = {'0', '0'}};
    if (strlen(name) > DATA_TAR_NAME_MOST || size >= (size_t)1 << 33)
        SHOAL_BUG("%s does not fit into a tar archive", name);
    memcpy(header.name, name, strlen(name));
    snprintf(header.mode, sizeof header.mode, "0000444");
    snprintf(header.owner, sizeof header.owner, "0000000");
    snprintf(header.group, sizeof header.group, "0000000");
    snprintf(header.size, sizeof header.size, "%011zo", size);
    snprintf(header.time, sizeof header.time, "00000000000");
    snprintf(header.check, sizeof header.check, "%06o", sum_of(&header));
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

/* Octal digits, after blanks and up to a blank, a NUL or the end. */
static bool read_octal(uint64_t *out, const char *text, size_t room)
{
    size_t at = 0;
    *out = 0;
    while (at < room && text[at] == ' ')
        at++;
    const size_t first = at;
    for (; at < room && text[at] >= '0' && text[at] <= '7'; at++)
        *out = *out << 3 | (uint64_t)(text[at] - '0');
    return at > first && (at == room || text[at] == ' ' || text[at] == '\0');
}

bool data_tar_read(data_tar_member *out, const unsigned char block[DATA_TAR_BLOCK])
{
    tar_header header;
    uint64_t size = 0, sum = 0;
    memcpy(&header, block, sizeof header);
    if (memcmp(header.magic, "ustar", 5) != 0 || (header.kind != '0' && header.kind != '\0') || header.prefix[0] ||
        !read_octal(&sum, header.check, sizeof header.check) || sum != sum_of(&header) ||
        !read_octal(&size, header.size, sizeof header.size) || memchr(header.name, '\0', sizeof header.name) == NULL ||
        !header.name[0])
        return false;
    memcpy(out->name, header.name, sizeof header.name);
    out->size = (size_t)size;
    return true;
}
