/* This program with all the libraries that it has loaded, the C library included, as one compressed tar archive: what
 * runs on any Linux of the same processor.  `ld.so --library-path FOLDER FOLDER/shoal` starts it. */
#ifndef CLOUD_BUNDLE_H
#define CLOUD_BUNDLE_H

#include <stddef.h>

enum { CLOUD_HASH_BYTES = 65 };

/* The path of the bundle, which is made unless it lies in `folder` already, and its SHA-256 in hexadecimal digits. */
int cloud_bundle_make(char **path, char hash[CLOUD_HASH_BYTES], const char *folder);

#endif
