/* An item as a JPEG, by libjpeg-turbo's accurate transform, the same bytes on every processor. */
#ifndef DATA_IMAGE_ENCODE_H
#define DATA_IMAGE_ENCODE_H

#include <stddef.h>

#include "image_prepare.h"

typedef struct data_jpeg_writer data_jpeg_writer;

int data_jpeg_writer_new(data_jpeg_writer **out);
void data_jpeg_writer_free(data_jpeg_writer **writer);

/* Writes height x width pixels of three bytes; *bytes are the writer's, until it writes again. */
int data_jpeg_encode(const unsigned char **bytes, size_t *size, data_jpeg_writer *writer,
                     const data_image_recipe *recipe, const unsigned char *pixels, const char *name);

#endif
