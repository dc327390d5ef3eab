/* A plan as a picture for people, SVG or PNG by its ending: time against workers, cost against workers, and the map of
 * cost and time with the Pareto front drawn.  Readable in black and white: machines differ by marker and dash, never by
 * colour alone; the best is ringed and named. */
#ifndef PLAN_PICTURE_H
#define PLAN_PICTURE_H

#include <stdbool.h>
#include <stdint.h>

enum { PLAN_STYLES = 8 }; /* machines that are told apart; of more the rest are dots */

typedef struct plan_point {
    const char *machine; /* points of one machine are one line; "" where there is only this one */
    int64_t workers;
    double seconds, low, high;
    double dollars, dollars_low, dollars_high; /* all 0 where nothing is paid: the panels of cost are left out */
    bool front;                                /* nothing is both faster and cheaper */
    bool best;
} plan_point;

typedef struct plan_picture {
    const char *title;       /* "kmeans, 500,000 rows of 1,000 columns" */
    const char *why;         /* of the best: "cheapest that meets the deadline of 2 h" */
    double deadline, budget; /* 0: none; drawn as lines */
    const plan_point *point; /* those of a machine one after another, by workers */
    int64_t points;
    const char *counted; /* what `workers` of the points are; NULL: workers */
} plan_picture;

/* Writes the file, whole or not at all.  Points whose time is not finite are left out; SHOAL_INVALID when none is
 * left. */
int plan_picture_write(const char *path, const plan_picture *picture);

#endif
