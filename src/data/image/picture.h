/* Contact sheets: rows of numbers shown as small images side by side in one picture.
 *
 *     data_sheet sheet = {.values = centres, .images = 100, .height = 28, .width = 28};
 *     data_picture_write("centres.png", &sheet);
 *
 * A name that ends in .svg gets the same pixels in an SVG file, which every browser shows. */
#ifndef DATA_PICTURE_H
#define DATA_PICTURE_H

#include <stdbool.h>
#include <stdint.h>

/* What the first kilobyte of a picture has, so that it is known again and other people's pictures are not replaced. */
#define DATA_PICTURE_PNG_MARK "tEXtSoftware\0shoal"
#define DATA_PICTURE_SVG_MARK "<!-- made by shoal -->"

typedef struct data_sheet {
    /* images * height * width * channels, finite; the least is shown black, the greatest white or full colour. */
    const double *values;
    int64_t images, height, width;
    int channels;    /* 3: red, green and blue of a pixel side by side; 0 or 1: grey */
    int64_t columns; /* images side by side; 0 makes the sheet roughly square */
    int64_t scale;   /* pixels across a value; 0 for 1 */
    bool centred;    /* 0 is shown as middle grey */
    bool of_classes; /* weights of classes: each has its name, and signs have colours (plot/sheet.h) */
    bool guessed;    /* nothing says that the images have this shape (picture_shape.h) */
} data_sheet;

/* Writes the sheet under a temporary name and renames it into place.  SHOAL_USAGE when it would be too large. */
int data_picture_write(const char *path, const data_sheet *sheet);

#endif
