/* A JPEG that is resized while it is decoded: no more than a few rows of it are in memory at a time. */
#ifndef DATA_IMAGE_JPEG_ROWS_H
#define DATA_IMAGE_JPEG_ROWS_H

#include "image.h"
#include "image_resample.h"

typedef struct jpeg_reader jpeg_reader; /* working memory, without any state */

int data_jpeg_reader_new(jpeg_reader **out);
void data_jpeg_reader_free(jpeg_reader **reader);

/* Reads the JPEG in input->memory into the resampler, for the item that `shape` says, and sets the image's own size
 * there. */
int data_jpeg_resample(jpeg_reader *in, data_resampler *out, data_image_shape *shape, const data_image_input *input);

#endif
