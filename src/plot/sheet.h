/* Weights as small images side by side, each with its name: 0 is white, what is positive red, what is negative blue, by
 * one scale for all images, which is drawn below.  Images of three values a pixel have no colours left for signs: there
 * 0 is middle grey, and each value is the strength of its own colour.  Pictures in colour are shown as they are,
 * without a scale. */
#ifndef PLOT_SHEET_H
#define PLOT_SHEET_H

#include "plot.h"

typedef struct plot_sheet {
    const double *values;         /* images * height * width * channels; those that are not finite are white */
    const unsigned char *colours; /* of pictures, instead: images * height * width * 3 */
    int64_t images, height, width;
    int channels;   /* 3: red, green and blue of a pixel side by side; otherwise 1 */
    int64_t across; /* images side by side; 0 makes the sheet roughly square */
    double scale;   /* pixels across a value; 0 for what can be seen well */
    char *const *names;
    const char *title;
} plot_sheet;

/* SHOAL_USAGE when it would be too large. */
int plot_sheet_new(plot_canvas **out, const plot_sheet *what);
/* The same on a canvas that has room, with its left upper corner there: how much that takes, and the drawing. */
int plot_sheet_measure(double *width, double *height, const plot_sheet *what);
int plot_sheet_draw(plot_canvas *canvas, plot_xy corner, const plot_sheet *what);

#endif
