/* --plot: the rows of a run as dots in the colours of their groups.
 *
 * A face says which groups and centres there are; the rows are seen from one side by a run of its own (plane.h), on the
 * threads or ranks of this process, and drawn by the first rank (plot/scatter.h).  So the rows have to be at hand: run
 * on workers, those that lie in a store are fetched if they fit into memory, and otherwise refused before the run. */
#ifndef RUN_PLOT_H
#define RUN_PLOT_H

#include "outcome.h"
#include "plane.h"

/* Refuses what can be refused before anything is read: --plot-columns without a plot, whose path may be NULL. */
int run_plot_check(const run_plot_settings *settings, const char *path);
/* The same once the rows are open: columns that are not there, rows of one column, rows that are too far away. */
int run_plot_prepare(const shoal_outcome *outcome, const run_plot_settings *settings);

/* A plot in the making: what it shows, and where the rows lie. */
typedef struct run_plotted {
    learn_plot shown;
    run_plane plane;
} run_plotted;

/* Finds the plane; collective.  To be released also after a failure. */
int run_plot_make(run_plotted *out, const shoal_outcome *outcome, const run_plot_settings *settings,
                  const learn_plot *shown);
/* Draws it: of the first rank alone. */
int run_plot_write(const char *path, const run_plotted *plotted, const shoal_outcome *outcome);
void run_plot_release(run_plotted *plotted);

/* What a title calls the rows: the name of the file without its folder. */
int run_plot_name(char **out, const shoal_outcome *outcome);

#endif
