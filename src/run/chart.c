/* Charts of what a run found.  See chart.h. */
#include "chart.h"

#include <math.h>
#include <stdio.h>

#include "base/memory.h"
#include "base/text.h"
#include "plot/plot.h"
#include "plot/sheet.h"

/* One curve's part of the picture: room for the title of its axis and the labels at the left, a name above. */
enum { PART_WIDTH = 390, HEIGHT = 350, LEFT = 84, RIGHT = 16, TOP = 62, BOTTOM = 50, LEGEND = 22 };
/* Dots are left out where they would touch. */
enum { DOTS_MOST = 40 };
/* Of filters: where they begin, how wide they are about, and how many there are at most. */
enum { FILTERS_LEFT = LEFT - 20, FILTER_SIDE = 40, FILTERS_MOST = 96 };

static const plot_rgb picked_colour = 0xc0392b;

static int64_t x_of(const learn_chart *chart, int64_t i)
{
    return chart->x ? chart->x[i] : i + 1;
}

static double value_of(const learn_curve *curve, int line, int64_t i)
{
    const int64_t stride = curve->stride > 0 ? curve->stride : 1;
    return (line ? curve->others : curve->values)[i * stride];
}

static void find_range(double *least, double *greatest, const learn_curve *curve, int64_t count)
{
    *least = INFINITY;
    *greatest = -INFINITY;
    for (int line = 0; line <= (curve->others != NULL); line++)
        for (int64_t i = 0; i < count; i++) {
            const double value = value_of(curve, line, i);
            if (isfinite(value)) {
                *least = fmin(*least, value);
                *greatest = fmax(*greatest, value);
            }
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

/* What the lines of both colours are, above the frame. */
static void draw_legend(plot_canvas *canvas, const plot_box *box, const learn_curve *curve)
{
    plot_rows rows = {canvas, box->left, box->right, {box->left, box->top - LEGEND - 12}};
    for (int line = 0; line < 2; line++) {
        const plot_xy at = plot_rows_add(&rows, curve->called[line]);
        plot_line(canvas, (plot_xy[]){{at.x, at.y}, {at.x + 26, at.y}}, 2,
                  (plot_paint){.line = plot_colour(line), .width = 2.5});
    }
}

static int draw_line(plot_canvas *canvas, const learn_chart *chart, const learn_curve *curve, int line,
                     const plot_axis *x, const plot_axis *y, plot_xy *picked)
{
    plot_xy *points = NULL;
    int status = base_alloc(&points, (size_t)chart->count, sizeof *points, "a chart");
    if (status < 0)
        return status;
    for (int64_t i = 0; i < chart->count; i++) {
        const double value = value_of(curve, line, i);
        points[i] =
            (plot_xy){plot_axis_place(x, (double)x_of(chart, i)), isfinite(value) ? plot_axis_place(y, value) : NAN};
        if ((double)x_of(chart, i) == curve->picked)
            *picked = points[i];
    }
    plot_line(canvas, points, chart->count, (plot_paint){.line = plot_colour(line), .width = 2});
    if (chart->count <= DOTS_MOST)
        plot_dots(canvas, points, chart->count, 3, (plot_paint){.filled = true, .fill = plot_colour(line)});
    base_free(&points);
    return SHOAL_OK;
}

static int draw_curve(plot_canvas *canvas, plot_box box, const learn_chart *chart, const learn_curve *curve)
{
    const int64_t count = chart->count;
    plot_xy picked = {NAN, NAN};
    double least, greatest;
    plot_axis x, y;
    int status = SHOAL_OK;
    find_range(&least, &greatest, curve, count);
    plot_axis_init_whole(&x, count > 0 ? x_of(chart, 0) : 0, count > 0 ? x_of(chart, count - 1) : 1, box.left,
                         box.right);
    plot_axis_init(&y, least, greatest, box.bottom, box.top);
    plot_frame(canvas, &box, &x, &y, chart->x_name, curve->name);
    if (curve->others)
        draw_legend(canvas, &box, curve);
    for (int line = 0; line <= (curve->others != NULL) && status == SHOAL_OK; line++)
        status = draw_line(canvas, chart, curve, line, &x, &y, &picked);
    if (isfinite(picked.x))
        draw_pick(canvas, &box, chart, curve, picked);
    return status;
}

/* ---- filters ----------------------------------------------------------------------------------------------------- */

/* A sheet of them, whose values and names the caller frees. */
static int make_sheet(plot_sheet *out, double **values, char ***names, const learn_filters *filters)
{
    const int64_t shown = filters->images < FILTERS_MOST ? filters->images : FILTERS_MOST;
    const int64_t pixels = filters->height * filters->width, channels = filters->channels;
    const int64_t side = filters->height > filters->width ? filters->height : filters->width;
    int status = base_alloc(values, (size_t)(shown * pixels * channels), sizeof **values, "a picture");
    if (status == SHOAL_OK)
        status = base_alloc(names, (size_t)shown, sizeof **names, "names of filters");
    for (int64_t i = 0; i < shown && status == SHOAL_OK; i++) {
        for (int64_t c = 0; c < channels; c++)
            for (int64_t p = 0; p < pixels; p++)
                (*values)[(i * pixels + p) * channels + c] = filters->values[(i * channels + c) * pixels + p];
        status = base_format(&(*names)[i], "%lld", (long long)i);
    }
    const double scale = fmax(ceil((double)FILTER_SIDE / (double)side), 1);
    *out = (plot_sheet){.values = *values,
                        .images = shown,
                        .height = filters->height,
                        .width = filters->width,
                        .channels = (int)channels,
                        .across = 12,
                        .scale = scale * PLOT_SCALE,
                        .names = *names,
                        .title = filters->title};
    return status;
}

static int draw_filters(plot_canvas *canvas, double top, const learn_filters *filters)
{
    plot_sheet sheet;
    double width = 0, height = 0, *values = NULL;
    char **names = NULL;
    int status = make_sheet(&sheet, &values, &names, filters);
    if (status == SHOAL_OK)
        status = plot_sheet_measure(&width, &height, &sheet);
    if (status == SHOAL_OK) {
        plot_canvas_set_height(canvas, top + height);
        status = plot_sheet_draw(canvas, (plot_xy){FILTERS_LEFT, top}, &sheet);
    }
    for (int64_t i = 0; names && i < sheet.images; i++)
        base_free(&names[i]);
    base_free(&names);
    base_free(&values);
    return status;
}

int run_chart_write(const char *path, const learn_chart *chart, const char *about)
{
    plot_canvas *canvas = NULL;
    const double width = PART_WIDTH * chart->curves;
    char title[160];
    double top = TOP;
    for (int i = 0; i < chart->curves; i++)
        top = chart->curve[i].others ? TOP + LEGEND : top;
    const double height = HEIGHT + top - TOP;
    snprintf(title, sizeof title, "%s: %.100s", chart->title, about);
    int status = plot_canvas_new(&canvas, width, height, title);
    if (status == SHOAL_OK)
        plot_text(canvas, (plot_xy){LEFT, 26}, title, (int)(width / 9), (plot_font){.size = 15, .bold = true});
    for (int i = 0; i < chart->curves && status == SHOAL_OK; i++) {
        const double left = PART_WIDTH * i;
        status = draw_curve(canvas, (plot_box){left + LEFT, top, left + PART_WIDTH - RIGHT, height - BOTTOM}, chart,
                            &chart->curve[i]);
    }
    if (status == SHOAL_OK && chart->filters.values)
        status = draw_filters(canvas, height, &chart->filters);
    if (status == SHOAL_OK)
        status = plot_write(canvas, path);
    plot_canvas_free(&canvas);
    return status;
}
