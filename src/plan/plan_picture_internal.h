/* What the files of the plan's picture share: text for SVG, axes with round ticks, and panels that know what is
 * drawn where, so that labels find free places. */
#ifndef PLAN_PICTURE_INTERNAL_H
#define PLAN_PICTURE_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include "plan_picture.h"

/* ---- text -------------------------------------------------------------------------------------------------------- */

/* Writes text as XML has to have it, at most `most` characters: the end of a longer one becomes an ellipsis, and
 * what XML can't hold '?'. */
void plan_svg_text(FILE *file, const char *text, int most);
/* About how wide text of this size is, rather too much than too little. */
double plan_text_width(const char *text, double size);
/* 0.5 as "500 ms", 7200 as "2 h"; 3.4 as "$3.40"; 1234 as "1,234". */
void plan_format_seconds(char out[32], double seconds);
void plan_format_dollars(char out[32], double dollars);
void plan_format_count(char out[32], double count);

/* ---- axes -------------------------------------------------------------------------------------------------------- */

typedef enum plan_unit { PLAN_UNIT_WORKERS, PLAN_UNIT_SECONDS, PLAN_UNIT_DOLLARS } plan_unit;

enum { PLAN_TICKS_MOST = 16 };

typedef struct plan_axis {
    plan_unit unit;
    bool logarithmic;
    double low, high; /* values at the ends */
    double from, to;  /* pixels of the ends */
    int ticks;
    struct plan_tick {
        double value;
        char label[32];
    } tick[PLAN_TICKS_MOST];
} plan_axis;

/* An axis over the values from least to greatest with some room around, logarithmic where they differ much and are
 * positive. */
void plan_axis_init(plan_axis *out, plan_unit unit, double least, double greatest, double from, double to);
/* The pixel of a value; one that is outside lies a little outside. */
double plan_axis_place(const plan_axis *axis, double value);
bool plan_axis_holds(const plan_axis *axis, double value);

/* ---- panels ------------------------------------------------------------------------------------------------------ */

enum { PLAN_CELL = 4, PLAN_CELLS_ACROSS = 160, PLAN_CELLS_DOWN = 80 };

typedef struct plan_panel {
    FILE *file;
    int number;
    double left, top, right, bottom; /* of the plot */
    plan_axis x, y;
    bool taken[PLAN_CELLS_DOWN][PLAN_CELLS_ACROSS]; /* where something is that labels should leave free */
} plan_panel;

typedef struct plan_style {
    const char *colour, *dash;
    int marker;
    bool filled;
} plan_style;

enum { PLAN_STYLES = 8, PLAN_STYLE_OTHER = PLAN_STYLES };
extern const plan_style plan_styles[PLAN_STYLES + 1];

/* Grid, frame, ticks and titles; opens the group that is cut at the frame, which plan_panel_close ends. */
void plan_panel_open(plan_panel *panel, const char *title, const char *x_title, const char *y_title);
void plan_panel_close(plan_panel *panel);
void plan_panel_take(plan_panel *panel, double x, double y);
void plan_panel_take_line(plan_panel *panel, double x0, double y0, double x1, double y1);
/* The subpath of a marker, for a path's d. */
void plan_marker(FILE *file, int marker, double x, double y, double radius);

typedef struct plan_place {
    double x, y; /* the text's left and middle */
} plan_place;

/* Writes text at the place of these that covers least and is inside, and returns which; with `only_free` nowhere,
 * and -1, when none is quite free. */
int plan_panel_label(plan_panel *panel, const char *text, double size, bool bold, const plan_place *place, int places,
                     bool only_free);
/* Text near a point, or farther off with a line that leads there; with `only_free` near or not at all. */
void plan_panel_label_point(plan_panel *panel, const char *text, double size, bool bold, double x, double y,
                            bool only_free);
/* A limit as a dashed line: a value of y, or with `of_x` of x.  Its label, which knows all lines once they are
 * drawn; of one that is outside it stands at that end. */
void plan_panel_limit(plan_panel *panel, bool of_x, double value);
void plan_panel_limit_label(plan_panel *panel, bool of_x, double value, const char *label);

/* ---- sheets ------------------------------------------------------------------------------------------------------ */

/* The points of one machine. */
typedef struct plan_group {
    int64_t start, count; /* in the sheet's order */
    int64_t first;        /* of its points, as they were given: groups are named in that order */
    int64_t fronts;       /* of its points on the front */
    int style;
    bool best; /* has the best point */
} plan_group;

/* What is drawn, in order. */
typedef struct plan_sheet {
    const plan_picture *picture;
    FILE *file;
    bool priced;    /* there are panels of cost */
    bool *front;    /* of the picture's points */
    int64_t *order; /* of points that can be drawn, by machine, then by workers */
    int64_t points; /* that can be */
    int64_t *steps; /* points of the front by time */
    int64_t step_count;
    plan_group *group; /* in the order in which they are named; those without a style of their own last */
    int64_t groups, named;
    const plan_point *best; /* NULL: none */
} plan_sheet;

/* Draws the panels, whose plots are from top to bottom. */
void plan_draw_panels(const plan_sheet *sheet, double top, double bottom);
/* The legend from `top` on, in rows of this width; returns where it ends.  With `only_measure` nothing is written. */
double plan_draw_legend(const plan_sheet *sheet, double top, double width, bool only_measure);

#endif
