/* Contact sheets: rows of numbers shown as small grey images side by side in one PNG.
 *
 *     data_sheet sheet = {centres, 100, 28, 28, .columns = 0};
 *     data_picture_write("centres.png", &sheet); */
#ifndef DATA_PICTURE_H
#define DATA_PICTURE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct data_sheet {
    const double *values; /* images * height * width, finite; the least is shown black, the greatest white */
    int64_t images, height, width;
    int64_t columns; /* images side by side; 0 makes the sheet roughly square */
    int64_t zoom;    /* pixels across a value, 0 for 1 */
    bool centred;    /* 0 is shown as middle grey */
} data_sheet;

/* Writes the sheet under a temporary name and renames it into place.  SHOAL_USAGE when it would be too large. */
int data_picture_write(const char *path, const data_sheet *sheet);

#endif
