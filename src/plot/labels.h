/* Labels that look for a free place: who draws says what is where, and text goes where it covers least of it. */
#ifndef PLOT_LABELS_H
#define PLOT_LABELS_H

#include "plot.h"

enum { PLOT_CELL = 4, PLOT_CELLS_ACROSS = 160, PLOT_CELLS_DOWN = 80 };

typedef struct plot_labels {
    plot_canvas *canvas;
    plot_box box;                                   /* they stay within; at most as large as all cells */
    bool taken[PLOT_CELLS_DOWN][PLOT_CELLS_ACROSS]; /* where something is */
} plot_labels;

/* Takes the cell of a point; whether it was free. */
bool plot_labels_take(plot_labels *labels, plot_xy at);
/* Takes what a line through the points covers. */
void plot_labels_take_line(plot_labels *labels, const plot_xy *points, int64_t count);
/* Text near a point, or farther off with a line that leads there; with `only_free` near or not at all. */
void plot_labels_near(plot_labels *labels, const char *text, plot_font font, plot_xy at, bool only_free);
/* Text somewhere along a line that crosses the box at this place: upright at an x, otherwise level at a y. */
void plot_labels_along(plot_labels *labels, const char *text, plot_font font, bool upright, double at);

#endif
