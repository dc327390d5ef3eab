/* Files that are either the old one or the new one, never half of either.
 *
 *     base_output *output = NULL;
 *     int status = base_output_open(&output, "centres.npy");
 *     if (status == SHOAL_OK) status = base_output_write(output, bytes, size);
 *     if (status == SHOAL_OK) status = base_output_commit(&output);     // flushes, checks, renames
 *     base_output_discard(&output);                                     // removes the temporary if not committed
 *
 * The temporary lies beside the target (PATH.tmp-PID-RANDOM) and is always our own.  A new file gets the mode the
 * umask leaves, an old one keeps its mode; a symbolic link stays one, and what it points to is replaced or made.
 * "-" is standard output.  Targets that are not plain files, such as a pipe, are written directly; so is what standard
 * output or standard error is, through that very descriptor, since a file that is redirected to must not be replaced
 * under it.
 *
 * "Never half" holds when the program is killed at any moment.  Nothing is forced to the disk before the rename
 * (outputs can be large), so after a crash of the machine it is up to the file system: those that write a file's data
 * before the rename over an old one, as ext4, XFS and btrfs do by default, keep one or the other.
 *
 * A signal handler may remove what is still open with base_output_discard_all, which is async-signal-safe. */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef struct base_output base_output;

int base_output_open(base_output **out, const char *path);
int base_output_write(base_output *output, const void *bytes, size_t size);
/* Before several files are committed: so that a full disk fails them all. */
int base_output_flush(base_output *output);
/* Its stream, for printf and libraries that write to a FILE; errors are found at commit. */
FILE *base_output_stream(base_output *output);
/* Commits to another path, beside the first one, than it was opened for. */
int base_output_redirect(base_output *output, const char *path);
int base_output_commit(base_output **output);
/* The same for what must outlive a crash of the machine: it is on the disk before the rename, and so is its name at the
 * return. */
int base_output_commit_to_disk(base_output **output);
void base_output_discard(base_output **output);
void base_output_discard_all(void);

/* The file an output path means: absolute, behind all links; its folder's path and its name when it is yet to be made.
 * The path itself when its folder does not exist. */
int base_output_resolve(char **out, const char *path);
/* Whether a path is a device, or something there that is not a plain file: its name has no ending that could say what
 * to write. */
bool base_output_is_special(const char *path);
/* A descriptor that is open here and that the path means: N for /dev/fd/N, 1 or 2 when it is what standard output or
 * standard error writes to; -1 otherwise.  Such an output is written as it comes, and nothing is replaced. */
int base_output_descriptor(const char *path);

/* Makes the folders above a file that are missing, for this user alone as the XDG base directory specification asks. */
int base_output_folders(const char *path);
/* Brings the name of a file in its folder to the disk; a file system that can't do it has no more to offer. */
void base_output_sync_folder(const char *path);

/* Opens what lies at a path below a folder that is open, "" for the folder itself, without following any link on the
 * way or at its end.  `flags` are those of open; without O_DIRECTORY it is a plain file that is opened, and nothing
 * else is touched: EINVAL.  -1 with errno on failure: ELOOP or ENOTDIR for a link. */
int base_open_beneath(int folder, const char *path, int flags);

/* Checks that an output path could be opened for writing, so that a wrong name is reported before hours of work. */
int base_output_check(const char *path);

#endif
