/* Files in the system's memory: dropped from it, and counted there.
 *
 *     base_page_cache left = {0};
 *     int status = base_page_cache_drop("shard.tfrec");
 *     if (status == SHOAL_OK) status = base_page_cache_add(&left, "shard.tfrec");
 *     if (left.known) printf("%lld of %lld bytes are still there\n", left.resident, left.bytes); */
#ifndef BASE_PAGE_CACHE_H
#define BASE_PAGE_CACHE_H

#include <stdbool.h>
#include <stdint.h>

/* Of all files that were added. */
typedef struct base_page_cache {
    int64_t bytes, resident; /* whole pages are resident, the last one as far as the file goes */
    bool unknown;            /* of some file the system does not tell */
} base_page_cache;

/* Writes what is new of a file to its disk and asks the system to forget its pages.  It need not obey: pages that a
 * process has mapped stay, and file systems in memory have nowhere else to keep them. */
int base_page_cache_drop(const char *path);
/* Counts the pages of a file.  Linux tells only those who own the file or may write it. */
int base_page_cache_add(base_page_cache *to, const char *path);

#endif
