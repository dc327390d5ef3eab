/* Arithmetic on rows of pixels, for image_resample.c: two sets of functions, with the same bits. */
#ifndef DATA_IMAGE_ROWS_H
#define DATA_IMAGE_ROWS_H

#include <stdint.h>

typedef float data_image_lanes __attribute__((vector_size(16))); /* a pixel: red, green, blue, and one unused */

typedef struct data_image_rows {
    /* Of each of `width` pixels: what lies between pixel first[x] of the source, of four bytes, and the next one, at
     * the share of that (four times).  Writes three floats a pixel, and one behind the last. */
    void (*narrow)(float *restrict out, const unsigned char *restrict pixels, const int32_t *first,
                   const data_image_lanes *shares, int width);
    /* What lies between two rows, without its fraction.  It is no more than a rounding error below 0 or above 255. */
    void (*mix)(unsigned char *restrict out, const float *restrict top, const float *restrict bottom, float share,
                int64_t count);
} data_image_rows;

extern const data_image_rows data_image_rows_portable;
/* The fastest that this processor has. */
const data_image_rows *data_image_rows_best(void);

#endif
