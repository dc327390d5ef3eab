/* Pictures over trials and steps. */
#include "picture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <shoal/error.h>

#include "base/memory.h"
#include "plot/plot.h"

enum { WIDTH = 800, HEIGHT = 480, GREY = 0xa8a8a8, INK = 0x111111, TITLE_SIZE = 15 };
static const plot_box area = {78, 44, 780, 424};

double sweep_picture_value(const sweep_picture *picture, int64_t trial)
{
    return picture->log->sign * picture->log->course.trial[trial].value;
}

static int by_value(const void *a, const void *b, void *context)
{
    const sweep_trial *trial = context;
    const int64_t i = *(const int64_t *)a, j = *(const int64_t *)b;
    if (trial[i].value != trial[j].value)
        return (trial[i].value > trial[j].value) - (trial[i].value < trial[j].value);
    return (i > j) - (i < j);
}

int sweep_picture_rank(int64_t **out, int64_t *count, const sweep_picture *picture)
{
    const sweep_course *course = &picture->log->course;
    *count = 0;
    int status = base_alloc(out, (size_t)course->trials, sizeof **out, "a picture");
    for (int64_t i = 0; i < course->trials && status == SHOAL_OK; i++)
        if (isfinite(course->trial[i].value))
            (*out)[(*count)++] = i;
    if (status == SHOAL_OK)
        qsort_r(*out, (size_t)*count, sizeof **out, by_value, course->trial);
    if (status == SHOAL_OK && *count == 0)
        status =
            shoal_fail(SHOAL_INVALID, "sweep '%s' has no trial with a value: there is nothing to draw", picture->title);
    return status;
}

static int begin_picture(plot_canvas **out, const sweep_picture *picture, const char *what)
{
    char title[160];
    snprintf(title, sizeof title, "%.100s: %s", picture->title, what);
    int status = plot_canvas_new(out, WIDTH, HEIGHT, title);
    if (status == SHOAL_OK)
        plot_text(*out, (plot_xy){area.left, 26}, title, 120,
                  (plot_font){.size = TITLE_SIZE, .bold = true, .colour = INK});
    return status;
}

/* Values far worse than the worse half would leave no room for the others: they are drawn at the edge. */
static void value_axis(plot_axis *out, const sweep_picture *picture, const int64_t *rank, int64_t count)
{
    const double best = sweep_picture_value(picture, rank[0]), middle = sweep_picture_value(picture, rank[count / 2]);
    double worst = sweep_picture_value(picture, rank[count - 1]);
    if (fabs(worst - best) > 5 * fabs(middle - best) && middle != best)
        worst = best + 5 * (middle - best);
    const double least = fmin(best, worst), greatest = fmax(best, worst);
    plot_axis_init(out, least, greatest, area.bottom, area.top);
}

int sweep_picture_progress(const char *path, const sweep_picture *picture)
{
    const sweep_course *course = &picture->log->course;
    plot_canvas *canvas = NULL;
    plot_xy *line = NULL, *dots = NULL;
    int64_t *rank = NULL, count = 0, points = 0, values = 0;
    plot_axis x, y;
    int status = sweep_picture_rank(&rank, &count, picture);
    if (status == SHOAL_OK)
        status = base_alloc(&line, 2 * (size_t)course->trials, sizeof *line, "a picture");
    if (status == SHOAL_OK)
        status = base_alloc(&dots, (size_t)course->trials, sizeof *dots, "a picture");
    if (status == SHOAL_OK)
        status = begin_picture(&canvas, picture, "best so far");
    if (status < 0)
        goto done;
    value_axis(&y, picture, rank, count);
    plot_axis_init_whole(&x, 0, course->trials > 1 ? course->trials - 1 : 1, area.left, area.right);
    plot_frame(canvas, &area, &x, &y, "trial", picture->objective);
    double best = INFINITY;
    for (int64_t i = 0; i < course->trials; i++) {
        const double value = course->trial[i].value, at = plot_axis_place(&x, (double)i);
        if (!isfinite(value))
            continue;
        dots[values++] = (plot_xy){at, plot_axis_place(&y, picture->log->sign * value)};
        if (value >= best)
            continue;
        if (points > 0) {
            line[points] = (plot_xy){at, line[points - 1].y};
            points++;
        }
        best = value;
        line[points++] = (plot_xy){at, plot_axis_place(&y, picture->log->sign * best)};
    }
    plot_xy end = {plot_axis_place(&x, (double)(course->trials - 1)), line[points - 1].y};
    plot_clip(canvas, &area);
    plot_dots(canvas, dots, values, 3, (plot_paint){.filled = true, .fill = GREY});
    plot_line(canvas, line, points, (plot_paint){.width = 2, .line = plot_colour(0)});
    plot_line(canvas, (plot_xy[]){line[points - 1], end}, 2, (plot_paint){.width = 2, .line = plot_colour(0)});
    status = plot_write(canvas, path);
done:
    plot_canvas_free(&canvas);
    base_free(&line);
    base_free(&dots);
    base_free(&rank);
    return status;
}

/* ---- learning curves --------------------------------------------------------------------------------------------- */

/* The reports of one trial, order by order. */
static int64_t gather_curve(plot_xy *out, const sweep_picture *picture, int64_t trial, const plot_axis *x,
                            const plot_axis *y)
{
    int64_t points = 0;
    for (int64_t i = 0; i < picture->orders; i++) {
        if (picture->log->course.order[i].trial != trial)
            continue;
        const sweep_ended *ended = &picture->ended[i];
        for (int64_t r = 0; r < ended->reports; r++)
            out[points++] =
                (plot_xy){plot_axis_place(x, (double)ended->curve[r].step), plot_axis_place(y, ended->curve[r].value)};
    }
    return points;
}

int sweep_picture_curves(const char *path, const sweep_picture *picture)
{
    plot_canvas *canvas = NULL;
    plot_xy *line = NULL;
    int64_t *rank = NULL, count = 0, reports = 0, steps = 1;
    plot_axis x, y;
    int status = sweep_picture_rank(&rank, &count, picture);
    for (int64_t i = 0; i < picture->orders; i++) {
        const sweep_ended *ended = &picture->ended[i];
        reports += ended->reports;
        if (ended->reports > 0 && ended->curve[ended->reports - 1].step > steps)
            steps = ended->curve[ended->reports - 1].step;
    }
    if (status == SHOAL_OK)
        status = base_alloc(&line, (size_t)reports, sizeof *line, "a picture");
    if (status == SHOAL_OK)
        status = begin_picture(&canvas, picture, "learning curves");
    if (status == SHOAL_OK) {
        value_axis(&y, picture, rank, count);
        plot_axis_init_whole(&x, steps > 1 ? 1 : 0, steps, area.left, area.right);
        plot_frame(canvas, &area, &x, &y, "step", picture->objective);
        plot_clip(canvas, &area);
    }
    for (int64_t i = count - 1; i >= 0 && status == SHOAL_OK; i--) { /* the best lies on top */
        const bool good = i < (count + 9) / 10;
        const int64_t points = gather_curve(line, picture, rank[i], &x, &y);
        const plot_rgb colour = i == 0 ? plot_colour(1) : good ? plot_colour(0) : GREY;
        plot_line(canvas, line, points, (plot_paint){.width = i == 0 ? 2.4 : good ? 1.6 : 1, .line = colour});
        if (points == 1)
            plot_dots(canvas, line, 1, 2, (plot_paint){.filled = true, .fill = colour});
    }
    if (status == SHOAL_OK)
        status = plot_write(canvas, path);
    plot_canvas_free(&canvas);
    base_free(&line);
    base_free(&rank);
    return status;
}
