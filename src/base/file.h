/* Files that are either the old one or the new one, never half of either.
 *
 *     base_output *output = NULL;
 *     int status = base_output_open(&output, "centres.npy");
 *     if (status == SHOAL_OK) status = base_output_write(output, bytes, size);
 *     if (status == SHOAL_OK) status = base_output_commit(&output);     // flushes, checks, renames
 *     base_output_discard(&output);                                     // removes the temporary if not committed
 *
 * The temporary lies beside the target (PATH.tmp-PID-N).  Targets that are no plain files, such as
 * /dev/stdout or a pipe, are written directly.  A signal handler may remove what is still open with
 * base_output_discard_all, which is async-signal-safe. */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef struct base_output base_output;

int base_output_open(base_output **out, const char *path);
int base_output_write(base_output *output, const void *bytes, size_t size);
/* The stream behind it, for printf and libraries that write to a FILE; errors are found at commit. */
FILE *base_output_stream(base_output *output);
int base_output_commit(base_output **output);
void base_output_discard(base_output **output);
void base_output_discard_all(void);

/* Checks that an output path could be opened for writing, so that a wrong name is reported before hours of work. */
int base_output_check(const char *path);

#endif
