/* Plots of rows.  See plot.h. */
#include "plot.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "data/table/data_columns.h"
#include "load.h"
#include "plot/scatter.h"

/* ---- what can be refused ----------------------------------------------------------------------------------------- */

int run_plot_check(const run_plot_settings *settings, const char *path)
{
    return settings->columns && !path
               ? shoal_fail(SHOAL_USAGE, "--plot-columns chooses the axes of --plot FILE: add --plot FILE")
               : SHOAL_OK;
}

/* The two columns of the axes, or -1 for both: principal components. */
static int find_columns(int64_t column[2], const shoal_outcome *outcome, const run_plot_settings *settings)
{
    const data_table_columns table = data_columns_of(outcome->data);
    int64_t *listed = NULL, count = 0;
    column[0] = outcome->columns == 2 ? 0 : -1;
    column[1] = outcome->columns == 2 ? 1 : -1;
    if (outcome->columns < 2)
        return shoal_fail(SHOAL_USAGE, "--plot: %s has one column, and a plot needs two", outcome->data_name);
    if (!settings->columns)
        return SHOAL_OK;
    int status = data_columns_list(&listed, &count, &table, "--plot-columns", settings->columns);
    if (status == SHOAL_OK && count != 2)
        status = shoal_fail(SHOAL_USAGE, "--plot-columns %s: a plot has two axes, and this is %" PRId64 " column%s",
                            settings->columns, count, base_plural(count));
    for (int k = 0; k < 2 && status == SHOAL_OK; k++)
        column[k] = listed[k];
    base_free(&listed);
    return status;
}

/* Rows that workers alone were to read are fetched once more, by this process. */
static int check_near(const shoal_outcome *outcome)
{
    const shoal_request *request = outcome->request;
    const int64_t memory = request->reading.memory ? request->reading.memory : base_memory_available() / 2;
    const double bytes = (double)outcome->rows * (double)outcome->columns * (double)shoal_type_size(outcome->type);
    if (!run_on_workers(&request->workers) || !request->data || !run_is_in_store(request->data) ||
        bytes <= (double)memory)
        return SHOAL_OK;
    return shoal_fail(SHOAL_USAGE,
                      "--plot: %s has %.3g GB, and all of it would be fetched here, where --memory is %.3g GB; give "
                      "more, or apply the model near the rows: shoal predict MODEL DATA --plot FILE",
                      outcome->data_name, bytes / 1e9, (double)memory / 1e9);
}

int run_plot_prepare(const shoal_outcome *outcome, const run_plot_settings *settings)
{
    int64_t column[2];
    int status = find_columns(column, outcome, settings);
    return status == SHOAL_OK ? check_near(outcome) : status;
}

/* ---- the plane --------------------------------------------------------------------------------------------------- */

int run_plot_make(run_plotted *out, const shoal_outcome *outcome, const run_plot_settings *settings,
                  const learn_plot *shown)
{
    run_plane_wanted wanted = {.unit = shown->unit};
    *out = (run_plotted){.shown = *shown};
    int status = find_columns(wanted.column, outcome, settings);
    return status == SHOAL_OK ? run_plane_find(&out->plane, outcome, &wanted) : status;
}

void run_plot_release(run_plotted *plotted)
{
    run_plane_release(&plotted->plane);
}

/* ---- drawing ----------------------------------------------------------------------------------------------------- */

/* The name of an axis: a column, or a component and how much of the variance is in it. */
static int name_axis(char **out, const run_plane *plane, const shoal_outcome *outcome, int axis)
{
    const int64_t column = plane->wanted.column[axis];
    const double percent = 100 * plane->share[axis];
    if (column < 0 && !isfinite(percent))
        return base_format(out, "PC%d", axis + 1);
    if (column < 0)
        return base_format(out, percent > 0 && percent < 1 ? "PC%d (%.1g%%)" : "PC%d (%.0f%%)", axis + 1, percent);
    const char *name = shoal_data_column_name(outcome->data, column),
               *unit = plane->wanted.unit ? ", of rows of length 1" : "";
    return name ? base_format(out, "%s%s", name, unit) : base_format(out, "column %" PRId64 "%s", column + 1, unit);
}

/* Places are in the units that the learner saw; axes of columns show those of the data, and components are 0 at the
 * mean. */
static void set_units(plot_scatter *to, const run_plane *plane, const shoal_outcome *outcome, int axis)
{
    const learn_schema *schema = &outcome->columns_used.schema;
    const int64_t column = plane->wanted.column[axis];
    const bool scaled = column >= 0 && schema->mean && !plane->wanted.unit;
    to->factor[axis] = scaled ? schema->scale[column] : 1;
    to->offset[axis] = scaled ? schema->mean[column] : 0;
}

static void place_centres(plot_xy *out, const plot_scatter *in, const run_plotted *plotted)
{
    const run_plane *plane = &plotted->plane;
    for (int64_t g = 0; g < plotted->shown.groups; g++) {
        double at[2];
        run_plane_place(at, plane, plotted->shown.centres + g * plane->columns);
        for (int k = 0; k < 2; k++)
            at[k] = in->offset[k] + in->factor[k] * (at[k] - plane->origin[k]);
        out[g] = (plot_xy){at[0], at[1]};
    }
}

int run_plot_name(char **out, const shoal_outcome *outcome)
{
    const bool generated = strncmp(outcome->data_name, "gen:", 4) == 0;
    const char *slash = generated ? NULL : strrchr(outcome->data_name, '/'),
               *name = slash ? slash + 1 : outcome->data_name;
    return base_copy_text_n(out, name, generated ? strcspn(name, "?") : strlen(name));
}

/* "iris.csv: 150 rows in 3 clusters" */
static int make_title(char **out, const run_plotted *plotted, const shoal_outcome *outcome)
{
    const int64_t rows = plotted->plane.rows, groups = plotted->shown.groups;
    char *name = NULL;
    int status = run_plot_name(&name, outcome);
    if (status == SHOAL_OK)
        status = base_format(out, "%s: %" PRId64 " row%s in %" PRId64 " %s%s", name, rows, base_plural(rows), groups,
                             plotted->shown.called, base_plural(groups));
    base_free(&name);
    return status;
}

int run_plot_write(const char *path, const run_plotted *plotted, const shoal_outcome *outcome)
{
    const run_plane *plane = &plotted->plane;
    plot_scatter scatter = {
        .places = plane->places, .group = plotted->shown.group, .count = plane->rows, .groups = plotted->shown.groups};
    plot_canvas *canvas = NULL;
    plot_xy *centres = NULL;
    char *axis[2] = {0}, *title = NULL, *note = NULL;
    int status = base_alloc(&centres, (size_t)scatter.groups, sizeof *centres, "a plot");
    for (int k = 0; k < 2 && status == SHOAL_OK; k++) {
        set_units(&scatter, plane, outcome, k);
        status = name_axis(&axis[k], plane, outcome, k);
        scatter.axis[k] = axis[k];
    }
    if (status == SHOAL_OK)
        status = make_title(&title, plotted, outcome);
    if (status == SHOAL_OK && plane->direction && plane->sampled < plane->rows)
        status = base_format(&note, "principal components of a sample of %" PRId64 " rows", plane->sampled);
    if (status < 0)
        goto done;
    place_centres(centres, &scatter, plotted);
    scatter.centres = centres;
    scatter.title = title;
    scatter.note = note;
    status = plot_scatter_new(&canvas, &scatter);
    if (status == SHOAL_OK)
        status = plot_write(canvas, path);
done:
    plot_canvas_free(&canvas);
    base_free(&note);
    base_free(&title);
    base_free(&axis[0]);
    base_free(&axis[1]);
    base_free(&centres);
    return status;
}
