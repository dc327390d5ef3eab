/* How --picture draws rows as small images: the options that all have in common who draw rows. */
#ifndef DATA_PICTURE_SHAPE_H
#define DATA_PICTURE_SHAPE_H

#include <stdint.h>
#include <shoal/option.h>

#include "picture.h"

typedef struct data_picture_settings {
    const char *shape; /* "HxW"; NULL: square */
    int64_t columns;   /* images side by side; 0: about as many as lines */
} data_picture_settings;

extern const shoal_option *const data_picture_options; /* of data_picture_settings */

/* Refuses the options without a --picture to draw. */
int data_picture_check(const data_picture_settings *settings, const char *path);
/* Fills height, width and columns of the sheet for rows of so many columns; SHOAL_USAGE when they make no image of that
 * shape. */
int data_picture_find(data_sheet *sheet, const data_picture_settings *settings, int64_t columns);
#endif
