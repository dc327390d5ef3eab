/* The plan's picture: what is drawn in which panel, and who gets a name.  However many points there are, what is drawn
 * is bounded: points of a line that fall on the same pixel are one, markers keep a distance, and dots share a grid. */
#include "picture.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <shoal/error.h>

#include "base/memory.h"
#include "base/option.h"
#include "base/text.h"
#include "plan/units.h"
#include "plot/labels.h"

/* Machines differ by marker and dash, so that a black and white print tells them apart; colours only help. */
static const struct style {
    plot_rgb colour;
    const char *dash;
    plot_shape shape;
    bool filled;
} styles[PLAN_STYLES] = {
    {0x0b4f94, NULL, PLOT_CIRCLE, true},
    {0xc8500a, "5.4 4.6", PLOT_SQUARE, false},
    {0x00785a, "0.4 4.1", PLOT_UP, true},
    {0x7a3e9d, "7.4 4.6 0.4 4.6", PLOT_DIAMOND, false},
    {0x8a6500, "2.4 3.6", PLOT_CROSS, false},
    {0xb5174b, "10.4 5.6", PLOT_DOWN, true},
    {0x333333, "4.4 3.6 0.1 3.4 0.1 3.4", PLOT_PLUS, false},
    {0x00808f, "0.1 3", PLOT_SQUARE, true},
};

enum { INK = 0x111111, TITLE_SIZE = 15, BEST_SIZE = 12, SIZE = 11 };

static const plot_paint band_paint = {.filled = true, .fill = 0x999999, .width = 1, .line = 0x999999, .opacity = 0.28},
                        front_paint = {.width = 1.6, .line = INK}, ring_paint = {.width = 2, .line = INK},
                        limit_paint = {.width = 1.2, .line = INK, .dash = "5 4"},
                        other_paint = {.filled = true, .fill = 0x9a9a9a};
static const double other_radius = 1.2;

/* The points of one machine. */
typedef struct group {
    int64_t start, count; /* of the sheet's points */
    int64_t fronts;       /* of its points on the front */
    int style;            /* OTHER: it has no name */
    bool best;            /* has the best point */
    bool interval;        /* its limits are drawn */
} group;

enum { OTHER = -1 };

typedef struct sheet {
    const plan_picture *picture;
    plot_canvas *canvas;
    bool priced;              /* there are panels of cost */
    const plan_point **point; /* that can be drawn, machine by machine */
    int64_t points;
    const plan_point **step; /* the front by time */
    int64_t steps;
    group *group;
    int64_t groups, named;
    const plan_point *best; /* NULL: none */
    plot_xy *room;          /* for a path through all points */
} sheet;

/* ---- points, by machine ------------------------------------------------------------------------------------------ */

/* No two points of the front take the same time. */
static int by_time(const void *a, const void *b)
{
    const plan_point *p = *(const plan_point *const *)a, *q = *(const plan_point *const *)b;
    return (p->seconds > q->seconds) - (p->seconds < q->seconds);
}

/* Of many machines the best's gets a name, then those that have most of the front.  Many intervals on top of each other
 * tell nothing: with more than two machines the best's alone. */
static void name_groups(sheet *s)
{
    for (int64_t most = s->groups; s->named < PLAN_STYLES && s->named < s->groups; s->named++) {
        group *next = NULL;
        for (int64_t g = 0; g < s->groups; g++) {
            group *of = &s->group[g];
            bool counts = of->style == OTHER && (most <= PLAN_STYLES || of->best || of->fronts);
            if (counts && (!next || of->best > next->best || (of->best == next->best && of->fronts > next->fronts)))
                next = of;
        }
        if (!next)
            break;
        next->style = 0;
    }
    for (int64_t g = 0, style = 0; g < s->groups; g++) { /* in the order in which they were given */
        group *of = &s->group[g];
        of->style = of->style == OTHER ? OTHER : (int)style++;
        of->interval = of->interval && of->style != OTHER && (s->groups <= 2 || of->best);
    }
}

static int sort_points(sheet *s)
{
    for (int64_t i = 0; i < s->picture->points; i++) {
        const plan_point *p = &s->picture->point[i];
        if (!(isfinite(p->seconds) && p->seconds > 0 && p->workers > 0 && isfinite(p->dollars) && p->dollars >= 0))
            continue;
        if (s->points == 0 || strcmp(p->machine, s->point[s->points - 1]->machine) != 0)
            s->group[s->groups++] = (group){.start = s->points, .style = OTHER};
        group *of = &s->group[s->groups - 1];
        s->point[s->points++] = p;
        s->priced = s->priced || p->dollars > 0;
        s->best = !s->best && p->best ? p : s->best;
        of->count++;
        of->fronts += p->front;
        of->best = of->best || p == s->best;
        of->interval = of->interval || p->low < p->seconds || p->high > p->seconds;
        if (p->front)
            s->step[s->steps++] = p;
    }
    if (s->points == 0)
        return shoal_fail(SHOAL_INVALID, "nothing to draw: no configuration ever ends");
    qsort(s->step, (size_t)s->steps, sizeof *s->step, by_time);
    name_groups(s);
    return SHOAL_OK;
}

/* ---- panels ------------------------------------------------------------------------------------------------------ */

/* What a point is on an axis. */
typedef enum measure { WORKERS, SECONDS, SECONDS_LOW, SECONDS_HIGH, DOLLARS, DOLLARS_LOW, DOLLARS_HIGH } measure;

/* The limits of a point without any are the point. */
static double measured(const plan_point *p, measure what)
{
    switch (what) {
    case SECONDS_LOW: return p->low > 0 && p->low < p->seconds ? p->low : p->seconds;
    case SECONDS_HIGH: return p->high > p->seconds ? p->high : p->seconds;
    case DOLLARS_LOW: return p->dollars_low > 0 && p->dollars_low < p->dollars ? p->dollars_low : p->dollars;
    case DOLLARS_HIGH: return p->dollars_high > p->dollars ? p->dollars_high : p->dollars;
    default: return what == WORKERS ? (double)p->workers : what == SECONDS ? p->seconds : p->dollars;
    }
}

enum { MAP = 2, PANELS = 3 };
static const struct view {
    const char *title, *x_title, *y_title;
    plot_unit x_unit, y_unit;
    measure x, y; /* the limits of the interval follow y */
} views[PANELS] = {
    {"Time", "workers", "time", PLOT_COUNT, PLOT_SECONDS, WORKERS, SECONDS},
    {"Cost", "workers", "cost", PLOT_COUNT, PLOT_DOLLARS, WORKERS, DOLLARS},
    {"Cost", "time", "cost", PLOT_SECONDS, PLOT_DOLLARS, SECONDS, DOLLARS},
};

typedef struct panel {
    plot_axis x, y;
    plot_labels labels;
} panel;

/* The limit of a unit that was asked for; 0 for none. */
static double limit_of(const sheet *s, plot_unit unit)
{
    const double limit = unit == PLOT_SECONDS ? s->picture->deadline : unit == PLOT_DOLLARS ? s->picture->budget : 0;
    return limit > 0 ? limit : 0;
}

/* An axis over all points; a limit or an interval is shown whole unless it lies far from everything else. */
static void make_axis(plot_axis *out, const sheet *s, plot_unit unit, measure what, bool intervals, double from,
                      double to)
{
    const double far = 8, limit = limit_of(s, unit);
    double least = INFINITY, greatest = -INFINITY;
    for (int64_t k = 0; k < s->points; k++) {
        least = fmin(least, measured(s->point[k], what));
        greatest = fmax(greatest, measured(s->point[k], what));
    }
    const double floor = least / far, ceiling = greatest * far;
    for (int64_t g = 0; intervals && g < s->groups; g++)
        for (int64_t k = 0; s->group[g].interval && k < s->group[g].count; k++) {
            const plan_point *p = s->point[s->group[g].start + k];
            const double low = measured(p, what + 1), high = measured(p, what + 2);
            least = low >= floor ? fmin(least, low) : least;
            greatest = high <= ceiling ? fmax(greatest, high) : greatest;
        }
    if (limit > 0 && limit <= ceiling && limit >= floor) {
        least = fmin(least, limit);
        greatest = fmax(greatest, limit);
    }
    plot_axis_init_unit(out, unit, least, greatest, from, to);
}

static plot_xy place_point(const panel *panel, const plan_point *p, measure x, measure y)
{
    return (plot_xy){plot_axis_place(&panel->x, measured(p, x)), plot_axis_place(&panel->y, measured(p, y))};
}

/* Where points of a group lie, at least so far `apart`; returns how many.  With `front` only those of it. */
static int64_t place_points(plot_xy *out, const panel *panel, const sheet *s, const group *of, measure x, measure y,
                            double apart, bool front)
{
    int64_t count = 0;
    for (int64_t k = of->start; k < of->start + of->count; k++) {
        plot_xy at = place_point(panel, s->point[k], x, y);
        bool far = count == 0 || fabs(at.x - out[count - 1].x) >= apart || fabs(at.y - out[count - 1].y) >= apart;
        if ((far || s->point[k] == s->best) && (!front || s->point[k]->front))
            out[count++] = at;
    }
    return count;
}

/* A line that labels leave free. */
static void draw_line(const sheet *s, panel *panel, const plot_xy *points, int64_t count, plot_paint paint)
{
    plot_line(s->canvas, points, count, paint);
    plot_labels_take_line(&panel->labels, points, count);
}

/* Labels may stand on it. */
static void draw_interval(const panel *panel, const sheet *s, const group *of, const struct view *view)
{
    int64_t upper = place_points(s->room, panel, s, of, view->x, view->y + 2, 0.7, false);
    int64_t count = upper + place_points(s->room + upper, panel, s, of, view->x, view->y + 1, 0.7, false);
    for (int64_t i = upper, j = count - 1; i < j; i++, j--) {
        plot_xy kept = s->room[i];
        s->room[i] = s->room[j];
        s->room[j] = kept;
    }
    s->room[count++] = s->room[0];
    plot_line(s->canvas, s->room, count, band_paint);
}

/* All points of machines without a name, one dot a place. */
static void draw_others(panel *panel, const sheet *s, const struct view *view)
{
    int64_t dots = 0;
    for (int64_t g = 0; g < s->groups; g++)
        for (int64_t k = 0; s->group[g].style == OTHER && k < s->group[g].count; k++) {
            plot_xy at = place_point(panel, s->point[s->group[g].start + k], view->x, view->y);
            if (plot_labels_take(&panel->labels, at))
                s->room[dots++] = at;
        }
    if (dots > 0)
        plot_dots(s->canvas, s->room, dots, other_radius, other_paint);
}

/* How a machine's points are drawn. */
typedef struct manner {
    double width;         /* of the line that joins them; 0: none */
    double radius, apart; /* of markers */
    double opacity;
    bool front; /* only those of it */
} manner;

static plot_paint line_paint(int style, manner how)
{
    return (plot_paint){
        .width = how.width, .line = styles[style].colour, .dash = styles[style].dash, .opacity = how.opacity};
}

static void draw_markers(const sheet *s, const plot_xy *at, int64_t count, int style, manner how)
{
    plot_markers(s->canvas, at, count, styles[style].shape, how.radius,
                 (plot_paint){.filled = true,
                              .fill = styles[style].filled ? styles[style].colour : 0xffffff,
                              .width = 0.45 * how.radius,
                              .line = styles[style].colour,
                              .opacity = how.opacity});
}

static void draw_group(panel *panel, const sheet *s, const group *of, const struct view *view, manner how)
{
    if (of->style == OTHER)
        return;
    if (how.width > 0)
        draw_line(s, panel, s->room, place_points(s->room, panel, s, of, view->x, view->y, 0.7, false),
                  line_paint(of->style, how));
    const int64_t markers = place_points(s->room, panel, s, of, view->x, view->y, how.apart, how.front);
    if (markers > 0)
        draw_markers(s, s->room, markers, of->style, how);
}

/* Steps, since between two points of the front nothing is offered. */
static void draw_front(panel *panel, const sheet *s)
{
    int64_t count = 0;
    double y = panel->labels.box.top;
    for (int64_t k = 0; k < s->steps; k++) {
        plot_xy at = place_point(panel, s->step[k], SECONDS, DOLLARS);
        if (k > 0 && k + 1 < s->steps && fabs(at.x - s->room[count - 1].x) < 0.7 && fabs(at.y - y) < 0.7)
            continue;
        s->room[count++] = (plot_xy){at.x, y};
        s->room[count++] = at;
        y = at.y;
    }
    s->room[count++] = (plot_xy){panel->labels.box.right, y};
    draw_line(s, panel, s->room, count, front_paint);
    for (int64_t g = 0; g < s->groups; g++)
        draw_group(panel, s, &s->group[g], &views[MAP], (manner){.radius = 3.6, .apart = 7, .front = true});
}

/* One that is far away would press the plot into a corner: it is told at that end instead. */
static void draw_limit(panel *panel, const sheet *s, bool of_x, bool label)
{
    const plot_axis *axis = of_x ? &panel->x : &panel->y;
    const plot_box *box = &panel->labels.box;
    const double limit = limit_of(s, axis->unit);
    if (limit == 0)
        return;
    const bool is_time = axis->unit == PLOT_SECONDS, below = limit<axis->low, above = limit> axis->high;
    const double at = above ? axis->to : below ? axis->from : plot_axis_place(axis, limit);
    if (label) {
        char asked[PLAN_UNITS_BYTES], text[PLAN_UNITS_BYTES + 16];
        (is_time ? plan_format_duration : plan_format_money)(asked, limit);
        snprintf(text, sizeof text, "%s %s%s", is_time ? "deadline" : "budget", asked,
                 above   ? (of_x ? " →" : " ↑")
                 : below ? (of_x ? " ←" : " ↓")
                         : "");
        plot_labels_along(&panel->labels, text, (plot_font){.size = 10, .colour = INK}, of_x, at);
    } else if (!above && !below) {
        const plot_xy across[] = {{box->left, at}, {box->right, at}}, down[] = {{at, box->top}, {at, box->bottom}};
        draw_line(s, panel, of_x ? down : across, 2, limit_paint);
    }
}

/* "64 × c7i.large", "1 worker" */
static void name_point(char *out, size_t size, const plan_point *p, const char *machine)
{
    char workers[32];
    base_format_count(workers, sizeof workers, p->workers);
    snprintf(out, size, "%s %s%s", workers, *machine ? "× " : p->workers == 1 ? "worker" : "workers", machine);
}

static void ring_point(panel *panel, const sheet *s, plot_xy at)
{
    plot_dots(s->canvas, &at, 1, 8, ring_paint);
    for (double dy = -8; dy <= 8; dy += PLOT_CELL)
        plot_labels_take_line(&panel->labels, (plot_xy[]){{at.x - 8, at.y + dy}, {at.x + 8, at.y + dy}}, 2);
}

/* The best's name, where the legend has where that machine is, and how many workers points of the front have, where
 * there is room to say so. */
static void label_points(panel *panel, const sheet *s, const struct view *view)
{
    const double apart = 22;
    plot_xy last = {NAN, NAN};
    char text[160];
    if (s->best) {
        const char *slash = strrchr(s->best->machine, '/');
        name_point(text, 48, s->best, slash ? slash + 1 : s->best->machine);
        plot_labels_near(&panel->labels, text, (plot_font){.size = SIZE, .bold = true, .colour = INK},
                         place_point(panel, s->best, view->x, view->y), false);
    }
    for (int64_t k = 0; view == &views[MAP] && k < s->steps; k++) {
        plot_xy at = place_point(panel, s->step[k], SECONDS, DOLLARS);
        if (s->step[k] == s->best || (fabs(at.x - last.x) < apart && fabs(at.y - last.y) < apart))
            continue;
        base_format_count(text, sizeof text, s->step[k]->workers);
        plot_labels_near(&panel->labels, text, (plot_font){.size = 9, .colour = INK}, at, true);
        last = at;
    }
}

static const manner plain = {.width = 1.6, .radius = 3, .apart = 13},
                    faint = {.width = 0.8, .radius = 2, .apart = 5, .opacity = 0.5};

static void draw_panel(const sheet *s, int what, double top, double bottom)
{
    const struct view *view = &views[what];
    const double left = 76 + 362 * what, right = left + (s->priced ? 282 : 560);
    panel panel = {.labels = {.canvas = s->canvas, .box = {left, top, right, bottom}}};
    const plot_box *box = &panel.labels.box;
    make_axis(&panel.x, s, view->x_unit, view->x, false, left, right);
    make_axis(&panel.y, s, view->y_unit, view->y, what != MAP, bottom, top);
    char title[80];
    const char *counted = s->picture->counted && view->x == WORKERS ? s->picture->counted : view->x_title;
    snprintf(title, sizeof title, "%s against %s", view->title, counted);
    plot_text(s->canvas, (plot_xy){(left + right) / 2, top - 10}, title, 80,
              (plot_font){.size = 12, .anchor = PLOT_MIDDLE, .bold = true, .colour = INK});
    plot_frame(s->canvas, box, &panel.x, &panel.y, counted, view->y_title);
    plot_clip(s->canvas, box);
    for (int64_t g = 0; what != MAP && g < s->groups; g++)
        if (s->group[g].interval)
            draw_interval(&panel, s, &s->group[g], view);
    draw_others(&panel, s, view);
    for (int64_t g = 0; g < s->groups; g++)
        draw_group(&panel, s, &s->group[g], view, what == MAP ? faint : plain);
    if (what == MAP)
        draw_front(&panel, s);
    if (s->best)
        ring_point(&panel, s, place_point(&panel, s->best, view->x, view->y));
    for (int pass = 0; pass < 4; pass++) /* labels know all lines */
        draw_limit(&panel, s, pass % 2, pass / 2);
    label_points(&panel, s, view);
    plot_clip(s->canvas, NULL);
}

/* ---- legend ------------------------------------------------------------------------------------------------------ */

enum { MARGIN = 16 };

static void add_machine(plot_rows *l, const sheet *s, const group *of)
{
    const char *machine = s->point[of->start]->machine;
    if (of->style == OTHER || !*machine)
        return;
    const plot_xy at = plot_rows_add(l, machine);
    plot_line(s->canvas, (plot_xy[]){at, {at.x + 30, at.y}}, 2, line_paint(of->style, plain));
    draw_markers(s, &(plot_xy){at.x + 15, at.y}, 1, of->style, (manner){.radius = 3.4});
}

/* From `top` on, in rows of this width; returns where it ends. */
static double draw_legend(const sheet *s, double top, double width)
{
    plot_rows l = {s->canvas, MARGIN, width - MARGIN, {MARGIN, top}};
    bool interval = false;
    plot_xy at;
    for (int64_t g = 0; g < s->groups; g++) {
        add_machine(&l, s, &s->group[g]);
        interval = interval || s->group[g].interval;
    }
    if (s->named < s->groups) {
        at = plot_rows_add(&l, "other machines");
        plot_dots(s->canvas, (plot_xy[]){{at.x + 9, at.y}, {at.x + 16, at.y - 3}, {at.x + 22, at.y + 1}}, 3,
                  other_radius, other_paint);
    }
    if (interval) {
        at = plot_rows_add(&l, s->groups > 2 ? "90% of runs of the best's machine" : "90% of runs");
        plot_rectangle(s->canvas, (plot_box){at.x, at.y - 5, at.x + 30, at.y + 5}, band_paint);
    }
    if (s->priced) {
        at = plot_rows_add(&l, "Pareto front (with workers)");
        const double step = at.x + 14;
        plot_line(s->canvas, (plot_xy[]){{at.x, at.y - 5}, {step, at.y - 5}, {step, at.y + 4}, {at.x + 30, at.y + 4}},
                  4, front_paint);
    }
    if (s->best) {
        at = plot_rows_add(&l, "best");
        plot_dots(s->canvas, &(plot_xy){at.x + 16, at.y}, 1, 6.5, ring_paint);
    }
    return l.next.y;
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

/* "Best: 64 × c7i.large, 12 min, $3.40: cheapest that meets the deadline of 2 h" */
static int describe_best(char **out, const sheet *s)
{
    const char *why = s->picture->why ? s->picture->why : "";
    char name[512], seconds[PLAN_UNITS_BYTES], dollars[PLAN_UNITS_BYTES];
    if (!s->best)
        return base_copy_text(out, why);
    name_point(name, sizeof name, s->best, s->best->machine);
    plan_format_duration(seconds, s->best->seconds);
    plan_format_money(dollars, s->best->dollars);
    return base_format(out, "Best: %s, %s%s%s%s%s", name, seconds, s->priced ? ", " : "", s->priced ? dollars : "",
                       *why ? ": " : "", why);
}

static int draw(sheet *s)
{
    static const double top = 88, bottom = 352, legend_top = 412;
    const double width = s->priced ? 1100 : 660;
    const char *title = s->picture->title ? s->picture->title : "";
    char *best = NULL, *told = NULL;
    int status = describe_best(&best, s);
    if (status == SHOAL_OK)
        status = base_format(&told, "%s. %s", title, best);
    if (status == SHOAL_OK)
        status = plot_canvas_new(&s->canvas, width, legend_top, told);
    if (status == SHOAL_OK) {
        plot_text(s->canvas, (plot_xy){MARGIN, 27}, title, (int)((width - 2 * MARGIN) / (TITLE_SIZE * 0.62)),
                  (plot_font){.size = TITLE_SIZE, .bold = true, .colour = INK});
        plot_text(s->canvas, (plot_xy){MARGIN, 48}, best, (int)((width - 2 * MARGIN) / (BEST_SIZE * 0.58)),
                  (plot_font){.size = BEST_SIZE, .colour = INK});
        for (int what = 0; what < (s->priced ? PANELS : 1); what++)
            draw_panel(s, what, top, bottom);
        plot_canvas_set_height(s->canvas, draw_legend(s, legend_top, width) + 21);
    }
    base_free(&best);
    base_free(&told);
    return status;
}

int plan_picture_write(const char *path, const plan_picture *picture)
{
    sheet s = {.picture = picture};
    const size_t points = (size_t)picture->points;
    int status = base_alloc(&s.point, 2 * points, sizeof *s.point, "the points of a picture");
    if (status == SHOAL_OK)
        status = base_alloc(&s.group, points, sizeof *s.group, "the machines of a plan");
    if (status == SHOAL_OK)
        status = base_alloc(&s.room, 2 * points + 1, sizeof *s.room, "a path");
    if (status == SHOAL_OK) {
        s.step = s.point + points;
        status = sort_points(&s);
    }
    if (status == SHOAL_OK) {
        locale_t before = uselocale(base_plain_locale()); /* numbers of axes have points */
        status = draw(&s);
        uselocale(before);
    }
    if (status == SHOAL_OK)
        status = plot_write(s.canvas, path);
    plot_canvas_free(&s.canvas);
    base_free(&s.point);
    base_free(&s.group);
    base_free(&s.room);
    return status;
}
