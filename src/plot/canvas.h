/* What was drawn, for those who write it. */
#ifndef PLOT_CANVAS_H
#define PLOT_CANVAS_H

#include "base/file.h"
#include "plot.h"

typedef enum plot_kind { PLOT_LINE, PLOT_RECTANGLE, PLOT_DOTS, PLOT_TEXT, PLOT_RASTER } plot_kind;

typedef struct plot_mark {
    plot_kind kind;
    bool clipped;
    plot_box clip;
    plot_paint paint;
    plot_font font;
    plot_box box;    /* of a rectangle or a raster */
    double radius;   /* of dots */
    plot_xy *points; /* of a line, of dots; of text one; finite except for one that breaks a line */
    int64_t count;
    char *text;
    unsigned char *pixels; /* of a raster */
    int64_t width, height;
} plot_mark;

struct plot_canvas {
    double width, height;
    char *title;
    bool clipped;
    plot_box clip;
    plot_mark *mark;
    int64_t marks, capacity;
    int status; /* of the first thing that could not be recorded */
};

int plot_write_svg(base_output *output, const char *path, const plot_canvas *canvas);
int plot_write_png(base_output *output, const char *path, const plot_canvas *canvas);

/* Lines of a letter, whose height of capitals is 1 and which starts at x = 0, y = 0 being the base line: calls `line`
 * for each, and returns how far the next letter is. */
typedef void plot_stroke(void *context, plot_xy from, plot_xy to);
double plot_letter(uint32_t letter, plot_stroke *line, void *context);

#endif
