/* What `shoal data pack` packs: images of folders, files or a store, as rows that name them.
 *
 *     run_pack pack = {0};
 *     int status = run_pack_begin(&pack, request, images, count, "packed", &settings);   // a request for "pack"
 *     if (status == SHOAL_OK) status = run_request(&outcome, request);
 *     run_pack_release(&pack); */
#ifndef RUN_PACK_H
#define RUN_PACK_H

#include <stdbool.h>

#include "request.h"

typedef struct run_pack_settings {
    const char *classes; /* "folders", "none", or a CSV file of names and classes */
    const char *shuffle; /* a seed; NULL: images in the order of their names */
    const char *name;    /* of the shards; NULL: the first folder's */
    bool resume, force;
} run_pack_settings;

/* What a request points to while it runs. */
typedef struct run_pack {
    shoal_data *rows;
    unsigned char *bytes;
    char *root, *to, *classes, *name;
    int64_t images, class_count;
} run_pack;

/* Lists the images, finds their classes, and makes the rows.  SHOAL_USAGE or SHOAL_INVALID with a sentence about what
 * is wrong with them. */
int run_pack_begin(run_pack *out, shoal_request *request, const char *const *images, int count, const char *to,
                   const run_pack_settings *settings);
/* Passes on the status of the run.  Of a failure that begins with the name of an image, which rows have below the
 * folder of all, it says the whole path. */
int run_pack_ended(const run_pack *pack, int status);
void run_pack_release(run_pack *pack);

#endif
