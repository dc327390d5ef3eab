/* Random squares of many images, as rows.
 *
 * Which square a row is, is drawn before anything is decoded: for row i an image, each equally likely whatever its
 * size, and a place in it, each equally likely.  Draws depend on the seed, the row and the list of images alone, never
 * on threads or on how long a file takes.  Then each file is decoded once and its rows are filled, so that no more
 * images are in memory than there are threads. */
#ifndef DATA_PATCHES_H
#define DATA_PATCHES_H

#include "data/data_internal.h"

#include "base/pool.h"

typedef struct data_patch_options {
    int64_t size, count;
    uint64_t seed;
    bool colour;
    shoal_type type;  /* of a value: float32 or float64 */
    bool skip_broken; /* leave out files that can't be read, instead of failing */
    /* Optional.  Called from the calling thread alone. */
    void (*progress)(void *context, const char *doing, int64_t done, int64_t files);
    void *context;
} data_patch_options;

typedef struct data_patch_report {
    int64_t files, images; /* from which patches could be drawn */
    int64_t small;         /* images that have no square of that size */
    int64_t broken;        /* files left out, or 1 when the call failed for one */
    char **why;            /* a sentence for each file left out, in the order of the files; NULL elsewhere */
    int64_t why_count;
} data_patch_report;

/* Values of a row. */
int64_t data_patch_columns(const data_patch_options *options);

/* Fills an empty buffer with `count` rows.  A file that can't be read is SHOAL_INVALID or SHOAL_SYSTEM with its
 * sentence, the first in the order of `paths` when there are several; report->broken is then 1.  `paths` must outlive
 * the report. */
int data_patches_cut(data_buffer *rows, data_patch_report *report, const char *const *paths, int64_t files,
                     const data_patch_options *options, base_pool *pool);
void data_patch_report_release(data_patch_report *report);

#endif
