/* What a worker may read for jobs that it does not trust: folders of its machine, and stores.
 *
 * A spec names its rows, and whoever writes to the store writes specs.  So files and stores besides the job's own
 * are opened only below roots that the worker's owner named, and are opened there, rather than looked at and opened
 * afterwards. */
#ifndef JOB_ROOTS_H
#define JOB_ROOTS_H

#include <stdbool.h>
#include <shoal/store.h>

typedef struct job_roots job_roots;

/* From a comma-separated list of folders, which must exist, and URLs of stores, with or without a prefix; NULL or ""
 * for none.  SHOAL_USAGE with a sentence for anything else. */
int job_roots_new(job_roots **out, const char *list);
void job_roots_free(job_roots **roots);

/* Opens a plain file that lies below a folder of the roots, whatever links lead there.  SHOAL_DENIED when it does not,
 * SHOAL_INVALID for what is not a plain file, SHOAL_SYSTEM when it can't be read. */
int job_roots_open_file(int *out, const job_roots *roots, const char *path);

/* Opens what a URL names for reading; *key as shoal_store_open_at.  SHOAL_DENIED, before anything is opened, unless
 * it is the store `own`, or lies below a root, or `trusted` is set and it is not a folder of this machine.
 * SHOAL_SYSTEM when there is no such store. */
int job_roots_open_store(shoal_store **out, char **key, const job_roots *roots, const char *url, const shoal_store *own,
                         bool trusted, int64_t deadline);

#endif
