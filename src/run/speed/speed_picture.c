/* A speed test drawn.  See speed.h.
 *
 * Above, what the runs did to processor and files while time passed; below, a row for each source: images a second by
 * each factor, with the line of the regression. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <shoal/error.h>

#include "base/memory.h"
#include "plot/plot.h"
#include "speed.h"

enum {
    PART_WIDTH = 300,
    PART_HEIGHT = 270,
    LEFT = 62,
    RIGHT = 16,
    ABOVE = 56,
    BELOW = 50,
    WIDTH = SPEED_FACTORS * PART_WIDTH,
    TOP = 40, /* the title */
    TITLE_SIZE = 15,
    NAME_SIZE = 13,
    SIZE = 11
};

/* Where a panel's frame is: in row `row`, from column `first` on, over `columns`. */
static plot_box panel_box(int row, int first, int columns)
{
    const double left = first * PART_WIDTH, top = TOP + row * PART_HEIGHT;
    return (plot_box){left + LEFT, top + ABOVE, left + columns * PART_WIDTH - RIGHT, top + PART_HEIGHT - BELOW};
}

static void write_line(plot_canvas *canvas, double x, double y, const char *text, plot_font font)
{
    plot_text(canvas, (plot_xy){x, y}, text, (int)(WIDTH / font.size), font);
}

/* ---- what the runs did to the machine ---------------------------------------------------------------------------- */

static double load_of_processor(const speed_run *run)
{
    return run->processor / run->seconds;
}

static double load_of_files(const speed_run *run)
{
    return (double)run->bytes / run->seconds / 1e6;
}

/* The runs of the first `passes` passes, each as a line as long as it took. */
static void draw_load(plot_canvas *canvas, const speed_outcome *outcome, plot_box box, int passes, const char *name,
                      double (*load)(const speed_run *run))
{
    plot_axis x, y;
    double most = 0, end = 0;
    for (int64_t i = 0; i < outcome->runs; i++)
        if (outcome->run[i].pass < passes) {
            most = fmax(most, load(&outcome->run[i]));
            end = fmax(end, outcome->run[i].began + outcome->run[i].seconds);
        }
    plot_axis_init(&x, 0, end, box.left, box.right);
    plot_axis_init(&y, 0, most, box.bottom, box.top);
    plot_frame(canvas, &box, &x, &y, "seconds", name);
    plot_clip(canvas, &box);
    for (int64_t i = 0; i < outcome->runs; i++) {
        const speed_run *run = &outcome->run[i];
        const double height = plot_axis_place(&y, load(run));
        const plot_xy points[2] = {{plot_axis_place(&x, run->began), height},
                                   {plot_axis_place(&x, run->began + run->seconds), height}};
        if (run->pass < passes)
            plot_line(canvas, points, 2, (plot_paint){.line = plot_colour(run->source), .width = 2.5});
    }
    plot_clip(canvas, NULL);
}

static void draw_loads(plot_canvas *canvas, const speed_outcome *outcome, int row, int passes)
{
    const plot_box left = panel_box(row, 0, 2), right = panel_box(row, 2, 2);
    write_line(canvas, left.left, left.top - 14,
               passes > 1 ? "not cached: the runs are made again for each regression"
                          : "cached: the runs are made once",
               (plot_font){.size = NAME_SIZE, .bold = true});
    draw_load(canvas, outcome, left, passes, "cores at work", load_of_processor);
    draw_load(canvas, outcome, right, passes, "MB read a second", load_of_files);
}

/* ---- images a second --------------------------------------------------------------------------------------------- */

static double fastest(const speed_outcome *outcome, int source)
{
    double most = 0;
    for (int64_t i = 0; i < outcome->runs; i++)
        if (outcome->run[i].source == source)
            most = fmax(most, speed_rate(&outcome->run[i]));
    return most;
}

static void draw_line_of(plot_canvas *canvas, const plot_axis *x, const plot_axis *y, const base_regression *line)
{
    plot_xy ends[2];
    for (int i = 0; i < 2; i++) {
        const double at = i == 0 ? x->low : x->high;
        ends[i] = (plot_xy){plot_axis_place(x, at), plot_axis_place(y, line->of[0].value + line->of[1].value * at)};
    }
    if (line->known)
        plot_line(canvas, ends, 2, (plot_paint){.line = 0x111111, .width = 1.6});
}

static int draw_factor(plot_canvas *canvas, const speed_outcome *outcome, int row, int source, speed_factor factor)
{
    const speed_influence *of = &outcome->source[source].found.factor[factor];
    const plot_box box = panel_box(row, (int)factor, 1);
    const int pass = speed_pass(outcome, (int)factor);
    plot_axis x, y;
    plot_xy *points = NULL;
    int64_t count = 0;
    double least = INFINITY, greatest = 0;
    char text[80];
    int status = base_alloc(&points, (size_t)outcome->runs, sizeof *points, "a plot");
    if (status < 0)
        return status;
    for (int64_t i = 0; i < outcome->runs; i++) {
        least = fmin(least, speed_value(&outcome->run[i], factor));
        greatest = fmax(greatest, speed_value(&outcome->run[i], factor));
    }
    plot_axis_init_whole(&x, (int64_t)least, (int64_t)greatest, box.left, box.right);
    plot_axis_init(&y, 0, fastest(outcome, source), box.bottom, box.top);
    plot_frame(canvas, &box, &x, &y, speed_factor_names[factor], factor == 0 ? "images a second" : "");
    for (int64_t i = 0; i < outcome->runs; i++) {
        const speed_run *run = &outcome->run[i];
        if (run->source == source && run->pass == pass)
            points[count++] =
                (plot_xy){plot_axis_place(&x, speed_value(run, factor)), plot_axis_place(&y, speed_rate(run))};
    }
    plot_clip(canvas, &box);
    plot_dots(canvas, points, count, 2.5, (plot_paint){.filled = true, .fill = plot_colour(source), .opacity = 0.6});
    draw_line_of(canvas, &x, &y, &of->line);
    plot_clip(canvas, NULL);
    if (isfinite(of->correlation.value)) {
        snprintf(text, sizeof text, "r = %.2f (%.2f to %.2f)", of->correlation.value, of->correlation.low,
                 of->correlation.high);
        write_line(canvas, box.left, box.top - 8, text, (plot_font){.size = SIZE});
    }
    base_free(&points);
    return SHOAL_OK;
}

static int draw_source(plot_canvas *canvas, const speed_outcome *outcome, int row, int source)
{
    const speed_about *about = &outcome->source[source];
    const plot_box box = panel_box(row, 0, 1);
    char text[200];
    int status = SHOAL_OK;
    snprintf(text, sizeof text, "%.150s (%s)", about->name, about->kind == SPEED_IMAGES ? "images" : "TFRecord");
    write_line(canvas, box.left, box.top - 26, text,
               (plot_font){.size = NAME_SIZE, .bold = true, .colour = plot_colour(source)});
    for (int i = 0; i < SPEED_FACTORS && status == SHOAL_OK; i++)
        status = draw_factor(canvas, outcome, row, source, (speed_factor)i);
    return status;
}

int speed_draw(const char *path, const speed_outcome *outcome)
{
    plot_canvas *canvas = NULL;
    const int loads = outcome->passes > 1 ? 2 : 1;
    int status = plot_canvas_new(&canvas, WIDTH, TOP + (loads + outcome->sources) * PART_HEIGHT, "Reading speed");
    if (status < 0)
        return status;
    write_line(canvas, LEFT, 26, "Reading speed", (plot_font){.size = TITLE_SIZE, .bold = true});
    if (outcome->passes > 1)
        draw_loads(canvas, outcome, 0, outcome->passes);
    draw_loads(canvas, outcome, loads - 1, 1);
    for (int i = 0; i < outcome->sources && status == SHOAL_OK; i++)
        status = draw_source(canvas, outcome, loads + i, i);
    if (status == SHOAL_OK)
        status = plot_write(canvas, path);
    plot_canvas_free(&canvas);
    return status;
}
