/* Pictures of a sweep, as SVG or PNG by the ending of the name. */
#ifndef SWEEP_PICTURE_H
#define SWEEP_PICTURE_H

#include "log.h"
#include "place.h"

typedef struct sweep_picture {
    const sweep_log *log;
    const char *title;     /* the sweep's name */
    const char *objective; /* what values are called */
    int x, y;              /* contour: the parameters of the axes */
    /* Curves: what was reported of each order, in their order; `ended` orders. */
    const sweep_ended *ended;
    int64_t orders;
    double price; /* dollars that an hour of a worker costs */
} sweep_picture;

/* The value of each trial, and the best so far. */
int sweep_picture_progress(const char *path, const sweep_picture *picture);
/* Each result and the best so far over the time since the first trial began, or over what its workers have cost since,
 * busy as they were. */
int sweep_picture_time(const char *path, const sweep_picture *picture);
int sweep_picture_money(const char *path, const sweep_picture *picture);
/* The learning curve of each trial. */
int sweep_picture_curves(const char *path, const sweep_picture *picture);
/* A line for each trial through its values of all parameters, the best tenth in colour. */
int sweep_picture_parallel(const char *path, const sweep_picture *picture);
/* The trials over two parameters, on a smoothed map of how good trials near a place are. */
int sweep_picture_contour(const char *path, const sweep_picture *picture);

/* ---- for pictures ------------------------------------------------------------------------------------------------ */

/* The trials that have a value, from the best to the worst; the caller frees the list. */
int sweep_picture_rank(int64_t **out, int64_t *count, const sweep_picture *picture);
/* A value as people see it. */
double sweep_picture_value(const sweep_picture *picture, int64_t trial);

#endif
