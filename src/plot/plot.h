/* A canvas for plots, written as SVG or PNG by the ending of the name.
 *
 *     plot_canvas *canvas = NULL;
 *     int status = plot_canvas_new(&canvas, 800, 600, "inertia by K");
 *     if (status == SHOAL_OK) {
 *         plot_axis x, y;
 *         const plot_box box = {70, 40, 780, 540};
 *         plot_axis_init(&x, 2, 20, box.left, box.right);
 *         plot_axis_init(&y, 0, 1e6, box.bottom, box.top);
 *         plot_frame(canvas, &box, &x, &y, "K", "inertia");
 *         plot_line(canvas, points, count, (plot_paint){.line = plot_colour(0), .width = 2});
 *         status = plot_write(canvas, "elbow.svg");
 *     }
 *     plot_canvas_free(&canvas);
 *
 * Lengths are pixels of an SVG file, x to the right and y down; a PNG has PLOT_SCALE of its own for each.  What is
 * drawn is recorded, and what is drawn later lies on top.  Coordinates that are not finite are left out, those far
 * outside moved to where they are still outside.  Drawing can't fail: memory that there was not is reported by
 * plot_write.  The same calls make the same bytes on every machine. */
#ifndef PLOT_PLOT_H
#define PLOT_PLOT_H

#include <stdbool.h>
#include <stdint.h>

enum { PLOT_SCALE = 2 };

typedef struct plot_canvas plot_canvas;

typedef struct plot_xy {
    double x, y;
} plot_xy;

typedef struct plot_box {
    double left, top, right, bottom;
} plot_box;

/* 0xRRGGBB */
typedef uint32_t plot_rgb;

/* How something is drawn.  Lines have round ends. */
typedef struct plot_paint {
    bool filled;
    plot_rgb fill;
    double width; /* of the line; 0: none */
    plot_rgb line;
    const char *dash; /* lengths of dashes and gaps in turn: "5 4", a string that stays; NULL: unbroken */
    double opacity;   /* of the whole, where parts overlap too; 0 means 1 */
} plot_paint;

typedef enum plot_anchor { PLOT_START, PLOT_MIDDLE, PLOT_END } plot_anchor;

typedef struct plot_font {
    double size;
    plot_anchor anchor;
    bool bold;
    bool upwards; /* written from below to above */
    bool halo;    /* with a white edge, where it stands on something */
    plot_rgb colour;
} plot_font;

/* ---- canvas.c ---------------------------------------------------------------------------------------------------- */

/* White.  The title is told by browsers and read to who can't see; drawing it is up to the caller. */
int plot_canvas_new(plot_canvas **out, double width, double height, const char *title);
/* Gives it another height, as soon as what is drawn shows which. */
void plot_canvas_set_height(plot_canvas *canvas, double height);
void plot_canvas_free(plot_canvas **canvas);
/* What is drawn from now on is cut at the box; NULL: at the canvas. */
void plot_clip(plot_canvas *canvas, const plot_box *box);
/* Joins the points; a point that is not finite breaks the line.  What it encloses can be filled. */
void plot_line(plot_canvas *canvas, const plot_xy *points, int64_t count, plot_paint paint);
void plot_rectangle(plot_canvas *canvas, plot_box box, plot_paint paint);
/* Circles of one radius.  Those without a line take a few bytes each in an SVG file. */
void plot_dots(plot_canvas *canvas, const plot_xy *centres, int64_t count, double radius, plot_paint paint);
/* Other shapes that black and white print tells apart, as high as circles of this radius seem. */
typedef enum plot_shape {
    PLOT_CIRCLE,
    PLOT_SQUARE,
    PLOT_UP, /* a triangle */
    PLOT_DOWN,
    PLOT_DIAMOND,
    PLOT_CROSS,
    PLOT_PLUS
} plot_shape;
void plot_markers(plot_canvas *canvas, const plot_xy *centres, int64_t count, plot_shape shape, double radius,
                  plot_paint paint);
/* One line of text whose base line begins, ends or has its middle there.  At most `most` characters are shown: the end
 * of a longer text becomes an ellipsis.  A PNG has letters for Latin-1, and a box for others. */
void plot_text(plot_canvas *canvas, plot_xy at, const char *text, int most, plot_font font);
/* Pixels of red, green, blue and opacity, each shown as a rectangle of the box. */
void plot_raster(plot_canvas *canvas, plot_box box, const unsigned char *pixels, int64_t width, int64_t height);
/* The characters of a text. */
int plot_text_letters(const char *text);
/* About how wide a text is, rather too much than too little. */
double plot_text_width(const char *text, double size);
/* As SVG if the path ends in .svg, otherwise as PNG; under a temporary name that is renamed, marked as ours. */
int plot_write(const plot_canvas *canvas, const char *path);

/* ---- axis.c ------------------------------------------------------------------------------------------------------ */

enum { PLOT_TICKS_MOST = 16 };

typedef enum plot_unit { PLOT_PLAIN, PLOT_COUNT, PLOT_SECONDS, PLOT_DOLLARS } plot_unit;

typedef struct plot_axis {
    plot_unit unit;
    bool logarithmic;
    double low, high; /* values at the ends */
    double from, to;  /* pixels of the ends */
    double scale;     /* what the numbers of a linear axis count: 60 where seconds are told in minutes */
    double step;      /* between its ticks, of that */
    int ticks;
    double tick[PLOT_TICKS_MOST];
} plot_axis;

/* An axis over the values from least to greatest with some room around; what is not finite or too great for arithmetic
 * is brought in. */
void plot_axis_init(plot_axis *out, double least, double greatest, double from, double to);
/* The same for counts, whose ticks are whole numbers. */
void plot_axis_init_whole(plot_axis *out, int64_t least, int64_t greatest, double from, double to);
/* The same for values of a unit, with ticks such as "10 min", "$0.5", "1,000": logarithmic where they are positive and
 * differ much, and otherwise so wide that small differences look small. */
void plot_axis_init_unit(plot_axis *out, plot_unit unit, double least, double greatest, double from, double to);
/* The pixel of a value; on an axis of a unit, one that is outside lies a little outside. */
double plot_axis_place(const plot_axis *axis, double value);
void plot_axis_label(char out[32], const plot_axis *axis, int tick);
/* Grid, ticks and their labels, the titles of both axes, and the frame. */
void plot_frame(plot_canvas *canvas, const plot_box *box, const plot_axis *x, const plot_axis *y, const char *x_title,
                const char *y_title);

/* ---- palette.c --------------------------------------------------------------------------------------------------- */

enum { PLOT_COLOURS = 20 };

/* The colour of a group: PLOT_COLOURS that people with any kind of sight can tell apart as well as so many can be,
 * the first ones best; then they start again. */
plot_rgb plot_colour(int64_t group);

/* ---- legend.c ---------------------------------------------------------------------------------------------------- */

typedef struct plot_entry {
    const char *text;
    plot_rgb colour;
    enum { PLOT_ENTRY_DOT, PLOT_ENTRY_LINE, PLOT_ENTRY_DASHES } sample;
} plot_entry;

/* Draws entries below each other in as many columns as need be, and returns the width taken; where they do not fit the
 * box the last one says how many are left out.  With a NULL canvas only measures. */
double plot_legend(plot_canvas *canvas, const plot_box *box, const plot_entry *entries, int64_t count);

enum { PLOT_SAMPLE = 36 };

/* A legend of entries side by side, in rows of this width, whose samples the caller draws. */
typedef struct plot_rows {
    plot_canvas *canvas;
    double left, right;
    plot_xy next; /* where the next entry begins, halfway up */
} plot_rows;

/* Writes the text of an entry; returns where its sample begins, of a width below PLOT_SAMPLE. */
plot_xy plot_rows_add(plot_rows *rows, const char *text);

#endif
