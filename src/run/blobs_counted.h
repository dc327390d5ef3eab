/* Blobs that tell the watcher how many of them the maps of this process have got. */
#ifndef RUN_BLOBS_COUNTED_H
#define RUN_BLOBS_COUNTED_H

#include "outcome.h"

typedef struct run_blobs_counted run_blobs_counted;

/* Hands out a table that gets from `inner` and counts.  Made by the thread that runs the run, which is the one that
 * tells, as a watcher expects it; `total` is how many there will be, 0 when nobody knows. */
int run_blobs_count(run_blobs_counted **out, const shoal_blobs *inner, const shoal_outcome *outcome, int64_t total);
const shoal_blobs *run_blobs_counted_table(const run_blobs_counted *counted);
void run_blobs_counted_free(run_blobs_counted **counted);

/* "1,234 of 3,670 blobs, 230 a second". */
void run_blobs_say(char *out, size_t room, const char *what, int64_t done, int64_t total, double seconds);

#endif
