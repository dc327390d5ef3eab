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

/* What has come, in its order: where on the x axis, and how good, small values being good. */
typedef struct come {
    double at, value;
} come;

static void draw_best(plot_canvas *canvas, plot_xy *room, const sweep_picture *picture, const come *all, int64_t count,
                      const plot_axis *x, const plot_axis *y)
{
    int64_t points = 0;
    double best = INFINITY;
    for (int64_t i = 0; i < count; i++)
        room[i] = (plot_xy){plot_axis_place(x, all[i].at), plot_axis_place(y, picture->log->sign * all[i].value)};
    plot_clip(canvas, &area);
    plot_dots(canvas, room, count, 3, (plot_paint){.filled = true, .fill = GREY});
    for (int64_t i = 0; i < count; i++) {
        const double at = plot_axis_place(x, all[i].at);
        if (all[i].value >= best && i + 1 < count)
            continue;
        if (points > 0) {
            room[points] = (plot_xy){at, room[points - 1].y};
            points++;
        }
        best = fmin(best, all[i].value);
        room[points++] = (plot_xy){at, plot_axis_place(y, picture->log->sign * best)};
    }
    plot_line(canvas, room, points, (plot_paint){.width = 2, .line = plot_colour(0)});
}

/* The best so far over something that is a count of trials, or has a unit. */
static int write_best(const char *path, const sweep_picture *picture, const come *all, int64_t count, plot_unit unit,
                      const char *what)
{
    plot_canvas *canvas = NULL;
    plot_xy *room = NULL;
    int64_t *rank = NULL, ranked = 0;
    plot_axis x, y;
    int status = sweep_picture_rank(&rank, &ranked, picture);
    if (status == SHOAL_OK && count == 0)
        status = shoal_fail(SHOAL_INVALID, "sweep '%s' has no results that tell when they came", picture->title);
    if (status == SHOAL_OK)
        status = base_alloc(&room, 2 * (size_t)count + 2, sizeof *room, "a picture");
    if (status == SHOAL_OK)
        status = begin_picture(&canvas, picture, "best so far");
    if (status == SHOAL_OK) {
        const double last = all[count - 1].at;
        value_axis(&y, picture, rank, ranked);
        if (unit == PLOT_PLAIN)
            plot_axis_init_whole(&x, 0, last > 0 ? (int64_t)last : 1, area.left, area.right);
        else
            plot_axis_init_unit(&x, unit, 0, last > 0 ? last : 1, area.left, area.right);
        plot_frame(canvas, &area, &x, &y, what, picture->objective);
        draw_best(canvas, room, picture, all, count, &x, &y);
        status = plot_write(canvas, path);
    }
    plot_canvas_free(&canvas);
    base_free(&room);
    base_free(&rank);
    return status;
}

int sweep_picture_progress(const char *path, const sweep_picture *picture)
{
    const sweep_course *course = &picture->log->course;
    come *all = NULL;
    int64_t count = 0;
    int status = base_alloc(&all, (size_t)course->trials, sizeof *all, "a picture");
    for (int64_t i = 0; i < course->trials && status == SHOAL_OK; i++)
        if (isfinite(course->trial[i].value))
            all[count++] = (come){(double)i, course->trial[i].value};
    if (status == SHOAL_OK)
        status = write_best(path, picture, all, count, PLOT_PLAIN, "trial");
    base_free(&all);
    return status;
}

static int by_moment(const void *a, const void *b)
{
    const sweep_ended *x = *(const sweep_ended *const *)a, *y = *(const sweep_ended *const *)b;
    return (x->at > y->at) - (x->at < y->at);
}

/* Results by when they came: over the time since the first of their trials began, or what all before them cost. */
static int draw_results(const char *path, const sweep_picture *picture, bool money)
{
    const sweep_ended **order = NULL;
    come *all = NULL;
    int64_t known = 0, count = 0;
    double first = INFINITY, spent = 0;
    int status = base_alloc(&order, (size_t)picture->orders, sizeof *order, "a picture");
    if (status == SHOAL_OK)
        status = base_alloc(&all, (size_t)picture->orders, sizeof *all, "a picture");
    for (int64_t i = 0; i < picture->orders && status == SHOAL_OK; i++)
        if (picture->log->course.order[i].ended && picture->ended[i].at > 0)
            order[known++] = &picture->ended[i];
    if (status == SHOAL_OK)
        qsort(order, (size_t)known, sizeof *order, by_moment);
    for (int64_t i = 0; i < known; i++)
        first = fmin(first, order[i]->at - order[i]->seconds);
    for (int64_t i = 0; i < known; i++) {
        spent += order[i]->seconds / 3600 * picture->price;
        if (!order[i]->result.failed && isfinite(order[i]->result.value))
            all[count++] = (come){money ? spent : order[i]->at - first, picture->log->sign * order[i]->result.value};
    }
    if (status == SHOAL_OK)
        status = write_best(path, picture, all, count, money ? PLOT_DOLLARS : PLOT_SECONDS, money ? "cost" : "time");
    base_free(&order);
    base_free(&all);
    return status;
}

int sweep_picture_time(const char *path, const sweep_picture *picture)
{
    return draw_results(path, picture, false);
}

int sweep_picture_money(const char *path, const sweep_picture *picture)
{
    return draw_results(path, picture, true);
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
