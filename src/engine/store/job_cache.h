/* Slices that were fetched from afar, kept in a folder of this machine by content, so that one that comes back is
 * not fetched again.
 *
 * Any number of processes share a folder.  Each file is named by its content's id and is only ever renamed into place
 * whole; a reader maps it, and keeps it even if it is removed meanwhile.  A cache never fails: what can't be
 * kept is just not there.
 *
 * Whoever puts bytes has checked that they are what their id says.  Whoever gets them can rely on that: a file that
 * another user owns or can write to is not taken. */
#ifndef JOB_CACHE_H
#define JOB_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"

typedef struct job_cache job_cache;

/* Files go to FOLDER/slices, which is created for the first one.  `bytes` limits their total size; 0: a tenth of what
 * the disk would have free without them. */
int job_cache_new(job_cache **out, const char *folder, int64_t bytes);
void job_cache_free(job_cache **cache);
/* Where the files are. */
const char *job_cache_folder(const job_cache *cache);
/* How often something could not be kept: a full disk, no permission, larger than the cache may be. */
int64_t job_cache_missed(const job_cache *cache);

/* What was found: valid until released. */
typedef struct job_cached {
    const void *data; /* aligned to 64 */
    struct base_mapped *mapped;
} job_cached;

/* Looks for `size` bytes of this content.  False when they are not there; a file that is damaged is removed. */
bool job_cache_get(job_cached *out, job_cache *cache, const unsigned char id[BASE_HASH_SIZE], size_t size);
void job_cached_release(job_cached *cached);
/* Whether the file shrank or became unreadable: what was read from it may be wrong. */
bool job_cached_is_lost(const job_cached *cached);
/* Keeps it, if it can, and removes the least recently used to stay within the limit. */
void job_cache_put(job_cache *cache, const unsigned char id[BASE_HASH_SIZE], const void *data, size_t size);

/* The turn to fetch a content: of all threads and processes that share the folder one has it at a time, so that the
 * others find there what that one has fetched and put. */
typedef struct job_turn {
    int file;
    bool held;
} job_turn;

/* False while another has the turn.  True and not held: there is no point in waiting, since the content would not be
 * kept, or the folder has no locks. */
bool job_cache_turn(job_turn *out, job_cache *cache, const unsigned char id[BASE_HASH_SIZE], size_t size);
/* So does the end of its process. */
void job_turn_end(job_turn *turn);

#endif
