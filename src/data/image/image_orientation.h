/* How a camera was held, as EXIF says. */
#ifndef DATA_IMAGE_ORIENTATION_H
#define DATA_IMAGE_ORIENTATION_H

#include <stddef.h>

/* 1 to 8 as EXIF counts them; 1, the picture as it is, when the PNG or JPEG does not say. */
int data_image_orientation(const unsigned char *bytes, size_t size);

#endif
