/* How --picture draws rows as small images: the options of all learners that draw, and the shape of an image. */
#ifndef DATA_PICTURE_SHAPE_H
#define DATA_PICTURE_SHAPE_H

#include <stdint.h>
#include <shoal/data.h>
#include <shoal/option.h>

#include "picture.h"

typedef struct data_picture_settings {
    const char *shape; /* "HxW" or "HxWx3"; NULL: as the data say, or square */
    int64_t columns;   /* images side by side; 0: about as many as lines */
    int64_t scale;     /* pixels across a value; 0: so that small images can be seen */
} data_picture_settings;

extern const shoal_option *const data_picture_options; /* of data_picture_settings */

/* Refuses the options without a --picture to draw, and a shape that is none. */
int data_picture_check(const data_picture_settings *settings, const char *path);
/* Fills in everything of the sheet but its images, for rows of N columns.  The shape is that of the settings, or
 * that of the images in `data`, which may be NULL, or a square, grey or in colour; otherwise the rectangle nearest to a
 * square, which is noted as a guess.  SHOAL_USAGE when the columns do not make images of the shape in the settings. */
int data_picture_find(data_sheet *sheet, const data_picture_settings *settings, int64_t columns,
                      const shoal_data *data);
#endif
