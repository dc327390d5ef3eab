/* How --picture draws rows as small images: the options that verbs with a picture share. */
#ifndef CLI_PICTURE_SHAPE_H
#define CLI_PICTURE_SHAPE_H

#include "cli.h"
#include "data/picture.h"

typedef struct cli_picture_settings {
    const char *shape; /* "HxW"; NULL: square */
    int64_t columns;   /* images side by side; 0: about as many as lines */
} cli_picture_settings;

extern const shoal_option *const cli_picture_options; /* of cli_picture_settings */

/* Refuses the options without a --picture to draw. */
int cli_picture_check(const cli_picture_settings *settings, const char *path);
/* Fills height, width and columns of the sheet for rows of so many columns; SHOAL_USAGE when they make no image of that
 * shape. */
int cli_picture_find(data_sheet *sheet, const cli_picture_settings *settings, int64_t columns);
/* Draws `images` rows of height * width values each; does nothing without a path. */
int cli_picture_write(const char *path, const data_sheet *sheet, const double *values, int64_t images);

/* The settings as part of what a job keeps for whoever resumes it ("more"), and back; texts belong to `more`. */
void cli_picture_json(json_t **more, const cli_picture_settings *settings);
cli_picture_settings cli_picture_asked(const json_t *more);

#endif
