/* Points in groups, of which there may be any number: a few are drawn one by one, many as a density, whose pixels have
 * the mean colour of the points there, and are the more opaque the more there are. */
#ifndef PLOT_SCATTER_H
#define PLOT_SCATTER_H

#include "plot.h"

typedef struct plot_scatter {
    const double *places; /* two numbers a point */
    const int32_t *group; /* of each, below `groups`; others are not drawn */
    int64_t count, groups;
    /* Along each axis, a point lies at offset + factor * number. */
    double offset[2], factor[2];
    const plot_xy *centres; /* one a group, where they lie; those that are not finite are not drawn */
    const char *title;
    const char *note;    /* in small print above; NULL for none */
    const char *axis[2]; /* what the axes are called */
} plot_scatter;

/* Points that a plot has as marks of their own; of more it has the density. */
enum { PLOT_SCATTER_MARKS = 5000 };

/* Draws into a new canvas.  The same points give the same bytes. */
int plot_scatter_new(plot_canvas **out, const plot_scatter *what);

#endif
