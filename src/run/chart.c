/* Charts of what a run found.  See chart.h. */
#include "chart.h"

#include <math.h>
#include <stdio.h>

#include "base/memory.h"
#include "plot/plot.h"

/* One curve's part of the picture: room for the title of its axis and the labels at the left, a name above. */
enum { PART_WIDTH = 390, HEIGHT = 350, LEFT = 84, RIGHT = 16, TOP = 62, BOTTOM = 50 };

static const plot_rgb picked_colour = 0xc0392b;

static void find_range(double *least, double *greatest, const double *values, int64_t count)
{
    *least = INFINITY;
    *greatest = -INFINITY;
    for (int64_t i = 0; i < count; i++)
        if (isfinite(values[i])) {
            *least = fmin(*least, values[i]);
            *greatest = fmax(*greatest, values[i]);
        }
    if (*least > *greatest)
        *least = *greatest = NAN;
}

/* The point that a rule picks: a dashed line down to x, a ring, and its name above the frame. */
static void draw_pick(plot_canvas *canvas, const plot_box *box, const learn_chart *chart, const learn_curve *curve,
                      plot_xy at)
{
    char text[96];
    plot_line(canvas, (plot_xy[]){{at.x, box->top}, {at.x, box->bottom}}, 2,
              (plot_paint){.line = picked_colour, .width = 1, .dash = "5 4"});
    plot_dots(canvas, &at, 1, 6, (plot_paint){.filled = true, .fill = 0xffffff, .line = picked_colour, .width = 2});
    snprintf(text, sizeof text, "%s: %s = %.0f", curve->rule, chart->x_name, curve->picked);
    plot_text(canvas, (plot_xy){(box->left + box->right) / 2, box->top - 10}, text, 48,
              (plot_font){.size = 13, .anchor = PLOT_MIDDLE, .colour = picked_colour});
}

static int draw_curve(plot_canvas *canvas, plot_box box, const learn_chart *chart, const learn_curve *curve)
{
    const int64_t count = chart->count;
    plot_xy *points = NULL;
    double least, greatest;
    plot_axis x, y;
    int status = base_alloc(&points, (size_t)count, sizeof *points, "a chart");
    if (status < 0)
        return status;
    find_range(&least, &greatest, curve->values, count);
    plot_axis_init_whole(&x, chart->x[0], chart->x[count - 1], box.left, box.right);
    plot_axis_init(&y, least, greatest, box.bottom, box.top);
    plot_frame(canvas, &box, &x, &y, chart->x_name, curve->name);
    for (int64_t i = 0; i < count; i++)
        points[i] = (plot_xy){plot_axis_place(&x, (double)chart->x[i]),
                              isfinite(curve->values[i]) ? plot_axis_place(&y, curve->values[i]) : NAN};
    plot_line(canvas, points, count, (plot_paint){.line = plot_colour(0), .width = 2});
    plot_dots(canvas, points, count, 3, (plot_paint){.filled = true, .fill = plot_colour(0)});
    for (int64_t i = 0; i < count; i++)
        if ((double)chart->x[i] == curve->picked)
            draw_pick(canvas, &box, chart, curve, points[i]);
    base_free(&points);
    return SHOAL_OK;
}

int run_chart_write(const char *path, const learn_chart *chart, const char *about)
{
    plot_canvas *canvas = NULL;
    const double width = PART_WIDTH * chart->curves;
    char title[160];
    snprintf(title, sizeof title, "%s: %.100s", chart->title, about);
    int status = plot_canvas_new(&canvas, width, HEIGHT, title);
    if (status == SHOAL_OK)
        plot_text(canvas, (plot_xy){LEFT, 26}, title, (int)(width / 9), (plot_font){.size = 15, .bold = true});
    for (int i = 0; i < chart->curves && status == SHOAL_OK; i++) {
        const double left = PART_WIDTH * i;
        status = draw_curve(canvas, (plot_box){left + LEFT, TOP, left + PART_WIDTH - RIGHT, HEIGHT - BOTTOM}, chart,
                            &chart->curve[i]);
    }
    if (status == SHOAL_OK)
        status = plot_write(canvas, path);
    plot_canvas_free(&canvas);
    return status;
}
