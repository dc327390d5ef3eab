/* Members of a tar archive (POSIX ustar), as webdataset reads them: "000017.jpg", "000017.cls". */
#ifndef DATA_TAR_H
#define DATA_TAR_H

#include <stddef.h>

#include "base/bytes.h"

enum { DATA_TAR_NAME_MOST = 99, DATA_TAR_BLOCK = 512 };

/* One plain file: nobody's, of no time, for all to read, so that the bytes depend on name and content alone.  A name
 * has at most DATA_TAR_NAME_MOST bytes, and a file less than 8 GiB. */
void data_tar_write(base_writer *out, const char *name, const void *bytes, size_t size);
/* Two empty blocks. */
void data_tar_end(base_writer *out);

#endif
