/* Files as ends of a transfer: read through a mapping, written under another name until they are whole. */
#ifndef TRANSFER_FILE_H
#define TRANSFER_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <shoal/store.h>

/* What tells two states of a file apart: its size, which file it is, and when it was last changed, also by the clock
 * that no program can set back. */
int transfer_file_version(const char *path, int64_t *size, shoal_etag *version);
bool transfer_is_folder(const char *path);
/* Reads up to `length` bytes at `offset`; *got is less only where the file ends. */
int transfer_file_read(const char *path, int64_t offset, void *buffer, size_t length, size_t *got);

/* A file that is read through a mapping, so that one of any size takes no memory of ours. */
typedef struct transfer_mapping {
    const void *data;
    size_t size;
    bool mapped;
} transfer_mapping;

int transfer_map(transfer_mapping *out, const char *path);
int transfer_map_descriptor(transfer_mapping *out, int descriptor, const char *name);
void transfer_unmap(transfer_mapping *mapping);

/* A file that is being written.  It lies beside its target as .shoal-part-HASH, where a later run finds it and
 * continues; a lock keeps two runs from writing the same one.  Without a target it has no name at all. */
typedef struct transfer_part {
    char *path, *target, *name; /* the part, the file with all links resolved, and the name that the caller gave */
    int descriptor;
} transfer_part;

/* Makes the folders above the target, too. */
int transfer_part_open(transfer_part *out, const char *target);
int transfer_part_write(const transfer_part *part, const void *bytes, size_t size, int64_t offset);
/* Cuts the file to its size and puts it in its place. */
int transfer_part_commit(transfer_part *part, int64_t size);
/* Closes it; `keep` leaves the part for the next run. */
void transfer_part_close(transfer_part *part, bool keep);

/* Reads standard input to its end into a file without a name, and hands out a path to it. */
int transfer_spool_input(transfer_part *out, char **path);

#endif
