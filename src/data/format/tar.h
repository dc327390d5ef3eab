/* Members of a tar archive (POSIX ustar), as webdataset reads them: "000017.jpg", "000017.cls".  Archives are read as
 * far as they are of this kind: plain files with short names. */
#ifndef DATA_TAR_H
#define DATA_TAR_H

#include <stdbool.h>
#include <stddef.h>

#include "base/bytes.h"

enum { DATA_TAR_NAME_MOST = 99, DATA_TAR_BLOCK = 512 };

/* One plain file: nobody's, of no time, for all to read, so that the bytes depend on name and content alone.  A name
 * has at most DATA_TAR_NAME_MOST bytes, and a file less than 8 GiB. */
void data_tar_write(base_writer *out, const char *name, const void *bytes, size_t size);
/* Two empty blocks. */
void data_tar_end(base_writer *out);

typedef struct data_tar_member {
    char name[DATA_TAR_NAME_MOST + 1];
    size_t size; /* less than 64 GiB */
} data_tar_member;

/* Reads the header of a plain file; false for any other block. */
bool data_tar_read(data_tar_member *out, const unsigned char block[DATA_TAR_BLOCK]);

#endif
