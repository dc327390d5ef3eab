/* Random squares of images as a .npy file, prepared for learning: cut (patches.h), whitened (whitening.h), written.
 *
 *     data_patches patches;
 *     int status = data_patches_open(&patches, &request, "patches.npy");
 *     if (status == SHOAL_OK)
 *         status = data_patches_make(&patches, images, 2, base_cores());
 *     ... patches.report ...
 *     data_patches_close(&patches);
 */
#ifndef DATA_PATCHES_FILE_H
#define DATA_PATCHES_FILE_H

#include "image_list.h"
#include "patches.h"
#include "whitening.h"

/* What is asked for, in the words of the command line. */
typedef struct data_patches_request {
    int64_t size, count, seed;
    bool colour, skip_broken;
    int type; /* 0: float32, 1: float64 */
    bool centre, normalise, whiten, whiten_pca;
    const char *epsilon, *range; /* NULL: not given */
    const char *save, *use;      /* files with a whitening, to write and to read; NULL for none */
} data_patches_request;

typedef struct data_patches {
    const data_patches_request *request;
    const char *out;
    data_patch_options options; /* whose progress the caller may set: of 0 files where something else takes a while */
    data_whitening how;
    data_image_list images;
    data_buffer rows;
    data_patch_report report;
} data_patches;

/* Checks what is asked for, and reads the whitening that is to be used.  To be closed also after a failure.  `request`
 * and `out` must outlive it. */
int data_patches_open(data_patches *self, const data_patches_request *request, const char *out);
/* Cuts, prepares and writes them; the report is there also after a failure. */
int data_patches_make(data_patches *self, const char *const *images, int count, int threads);
void data_patches_close(data_patches *self);

#endif
