/* PNG files as libpng writes them, line after line; also as base64, for an image inside an SVG file. */
#ifndef DATA_PNG_WRITE_H
#define DATA_PNG_WRITE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/file.h"

typedef struct data_png {
    int64_t width, height;
    int channels; /* 1: grey; 3: red, green, blue; 4: the same and how opaque */
    /* Fills pixel row y, which has width * channels bytes. */
    void (*fill_line)(void *context, unsigned char *line, int64_t y);
    void *context;
} data_png;

/* Writes the picture, marked as ours (picture.h), to the output, which stays open.  `path` is for messages. */
int data_png_write(base_output *output, const char *path, const data_png *png);
/* The same as base64. */
int data_png_write_base64(base_output *output, const char *path, const data_png *png);

#endif
