/* Tables of counts as pictures: a confusion matrix.
 *
 * A row is what is known, a column what was said of it.  A cell is the darker the greater its share of its row is, by
 * the square root, so that one in a hundred is still seen: blue where both are the same, orange where they are not.
 * Counts and shares are written into cells while they fit; names are left out where they would overlap. */
#ifndef PLOT_MATRIX_H
#define PLOT_MATRIX_H

#include "plot.h"

enum { PLOT_MATRIX_MOST = 1000 }; /* rows, and columns */

typedef struct plot_matrix {
    int64_t rows, columns;
    const int64_t *count; /* rows x columns */
    char *const *row_names, *const *column_names;
    int64_t same; /* the first so many rows and columns are the same; 0: none is another, and all cells are blue */
    const char *title, *row_title, *column_title;
} plot_matrix;

int plot_matrix_new(plot_canvas **out, const plot_matrix *what);

#endif
