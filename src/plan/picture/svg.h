/* A small writer of plots as SVG: text that can't break out, axes with round ticks, and panels that know what is drawn
 * where, so that labels find free places. */
#ifndef PLAN_SVG_H
#define PLAN_SVG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct plan_xy {
    double x, y; /* pixels */
} plan_xy;

/* Text as an element with these attributes, `at` its left end on the base line, as plot_svg_escape writes it. */
void plan_svg_text(FILE *file, const char *attributes, plan_xy at, const char *text, int most);
/* A shape that was defined as KIND and a number, at this place and scale. */
void plan_svg_use(FILE *file, const char *kind, int number, plan_xy at, double scale);
/* About how wide text of this size is, rather too much than too little. */
double plan_svg_width(const char *text, double size);

/* ---- axes -------------------------------------------------------------------------------------------------------- */

typedef enum plan_unit { PLAN_UNIT_WORKERS, PLAN_UNIT_SECONDS, PLAN_UNIT_DOLLARS } plan_unit;

enum { PLAN_TICKS_MOST = 16 };

typedef struct plan_axis {
    plan_unit unit;
    bool logarithmic;
    double low, high; /* values at the ends */
    double from, to;  /* pixels of the ends */
    int ticks;
    double tick[PLAN_TICKS_MOST];
} plan_axis;

/* An axis over the values from least to greatest with some room around, logarithmic where they differ much and are
 * positive. */
void plan_axis_init(plan_axis *out, plan_unit unit, double least, double greatest, double from, double to);
/* The pixel of a value; one that is outside lies a little outside. */
double plan_axis_place(const plan_axis *axis, double value);
bool plan_axis_holds(const plan_axis *axis, double value);
/* "10 min", "$0.5", "1,000" */
void plan_axis_label(char out[32], const plan_axis *axis, int tick);

/* ---- panels ------------------------------------------------------------------------------------------------------ */

enum { PLAN_CELL = 4, PLAN_CELLS_ACROSS = 160, PLAN_CELLS_DOWN = 80 };

typedef struct plan_panel {
    FILE *file;
    double left, top, right, bottom; /* of the plot */
    plan_axis x, y;
    bool taken[PLAN_CELLS_DOWN][PLAN_CELLS_ACROSS]; /* where something is that labels should leave free */
} plan_panel;

/* Grid, frame, ticks and titles; opens the group that is cut at the frame, which plan_panel_close ends. */
void plan_panel_open(const plan_panel *panel, int number, const char *title, const char *x_title, const char *y_title);
void plan_panel_close(const plan_panel *panel);
/* A path of a class through the points, which labels then leave free. */
void plan_panel_path(plan_panel *panel, const char *class, const plan_xy *point, int64_t points);
/* Takes the cell of a point; whether it was free. */
bool plan_panel_take(plan_panel *panel, plan_xy at);
/* Text near a point, or farther off with a line that leads there; with `only_free` near or not at all. */
void plan_panel_label(plan_panel *panel, const char *text, double size, plan_xy at, bool only_free);
/* Text somewhere along a limit: a value of y, or with `of_x` of x.  Of one that is outside it stands at that end. */
void plan_panel_label_limit(plan_panel *panel, const char *text, bool of_x, double value);

#endif
