/* The plane on which a plot shows rows: two of their columns, or their first two principal components; and where each
 * row lies on it.
 *
 *     run_plane plane;
 *     status = run_plane_find(&plane, outcome, &wanted);     // collective: a run of one or two rounds
 *     run_plane_place(&plane, centre, &x, &y);
 *     run_plane_release(&plane);
 *
 * The components are those of a sample of the rows, one of each of RUN_PLANE_SAMPLE runs of rows that are equally long,
 * or of fewer where rows are so wide that they would take more than RUN_PLANE_VALUES values; of all rows when there
 * are no more.  The same rows give the same bits on any number of threads and ranks. */
#ifndef RUN_PLANE_H
#define RUN_PLANE_H

#include "outcome.h"

enum { RUN_PLANE_SAMPLE = 20000, RUN_PLANE_VALUES = 1 << 22 };

typedef struct run_plane_wanted {
    int64_t column[2]; /* from 0; both -1: principal components */
    bool unit;         /* rows are brought to length 1 first: they count by their direction alone */
} run_plane_wanted;

typedef struct run_plane {
    run_plane_wanted wanted;
    double origin[2];     /* of principal components: the mean, from which places count */
    const double *places; /* of each row, two numbers; NULL on ranks other than the first */
    int64_t rows, columns, sampled;
    const double *direction; /* of principal components, 2 x columns; NULL otherwise */
    double share[2];         /* of the variance in them */
    shoal_result *result;    /* in which these lie */
} run_plane;

/* Finds the plane of the outcome's rows, and the places of all rows on it. */
int run_plane_find(run_plane *out, const shoal_outcome *outcome, const run_plane_wanted *wanted);
/* Where a row, or a centre, lies that has the columns of the rows. */
void run_plane_place(double place[2], const run_plane *plane, const double *values);
void run_plane_release(run_plane *plane);

#endif
