/* The directory of a zip file: which members it has, and where their bytes are.  Also of those beyond 4 GiB (zip64).
 *
 *     data_zip zip;
 *     status = data_zip_open(&zip, &file);                          // of a plain file
 *     status = data_zip_part(&part, &zip, &file, &zip.member[i]);   // for data_source_of_part
 *     data_zip_release(&zip);
 *
 * A directory is hostile until checked: every offset and size lies within the file.  It is a reader of our own because
 * libraries for zip files hand out copies of what is stored, where rows are to be mapped or read to their place. */
#ifndef DATA_ZIP_H
#define DATA_ZIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/data_internal.h"

typedef struct data_zip_member {
    const char *name; /* in the directory's bytes, without NUL */
    size_t name_bytes;
    uint64_t header;       /* where the member begins in the file */
    uint64_t packed, size; /* of its content: in the file, and decompressed */
    uint32_t crc;
    uint16_t method; /* 0: stored, 8: deflated */
    bool is_encrypted;
} data_zip_member;

typedef struct data_zip {
    data_zip_member *member;
    int64_t count;
    unsigned char *directory; /* its bytes */
    uint64_t directory_first; /* where it begins in the file */
} data_zip;

/* Whether a file that begins so may be a zip file. */
bool data_zip_begins(const unsigned char *head, size_t size);
int data_zip_open(data_zip *out, const data_source *file);
/* Where the content of a member is; SHOAL_INVALID if it is encrypted or compressed in another way than by deflate. */
int data_zip_part(data_part *out, const data_zip *zip, const data_source *file, const data_zip_member *member);
void data_zip_release(data_zip *zip);

#endif
