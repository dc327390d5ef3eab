/* A picture of how a job was held.  See picture.h. */
#include "control/picture.h"

#include <math.h>
#include <shoal/error.h>

#include "base/memory.h"
#include "plot/plot.h"

enum { WIDTH = 760, PANEL = 230, LEFT = 84, RIGHT = 24, TOP = 40, BETWEEN = 80, PANELS = 3 };
static const plot_rgb limit_colour = 0xc0392b;

/* One of the panels, below each other. */
typedef struct panel {
    plot_box box;
    plot_axis x, y;
} panel;

static void place_panel(panel *out, int index, double seconds, plot_unit unit, double least, double greatest,
                        plot_canvas *canvas, const char *title, const char *y_title)
{
    double top = TOP + index * (PANEL + BETWEEN);
    out->box = (plot_box){LEFT, top, WIDTH - RIGHT, top + PANEL};
    plot_axis_init_unit(&out->x, PLOT_SECONDS, 0, seconds, out->box.left, out->box.right);
    if (unit == PLOT_COUNT)
        plot_axis_init_whole(&out->y, (int64_t)least, (int64_t)greatest, out->box.bottom, out->box.top);
    else
        plot_axis_init_unit(&out->y, unit, least, greatest, out->box.bottom, out->box.top);
    plot_frame(canvas, &out->box, &out->x, &out->y, "since the start", y_title);
    plot_text(canvas, (plot_xy){LEFT, top - 12}, title, 64, (plot_font){.size = 14, .bold = true, .colour = 0x333333});
}

static plot_xy at(const panel *panel, double x, double y)
{
    return (plot_xy){plot_axis_place(&panel->x, x), plot_axis_place(&panel->y, y)};
}

static void draw_limit(plot_canvas *canvas, const panel *panel, double limit, const char *name)
{
    double y = plot_axis_place(&panel->y, limit);
    if (limit <= 0)
        return;
    plot_line(canvas, (plot_xy[]){{panel->box.left, y}, {panel->box.right, y}}, 2,
              (plot_paint){.line = limit_colour, .width = 1.5, .dash = "6 4"});
    plot_text(canvas, (plot_xy){panel->box.right - 6, y - 5}, name, 32,
              (plot_font){.size = 12, .anchor = PLOT_END, .halo = true, .colour = limit_colour});
}

static void draw_workers(plot_canvas *canvas, const panel *panel, const control_point *point, int64_t count,
                         plot_xy *room)
{
    int64_t used = 0;
    for (int64_t i = 0; i < count; i++) {
        if (i > 0)
            room[used++] = at(panel, point[i].at, (double)point[i - 1].workers);
        room[used++] = at(panel, point[i].at, (double)point[i].workers);
    }
    plot_line(canvas, room, used, (plot_paint){.line = plot_colour(0), .width = 2});
}

/* Where nothing was foretold the band is interrupted. */
static void draw_band(plot_canvas *canvas, const panel *panel, const control_point *point, int64_t count, plot_xy *room)
{
    for (int64_t from = 0; from < count;) {
        int64_t to = from, used = 0;
        while (to < count && point[to].end > 0)
            to++;
        for (int64_t i = from; i < to; i++)
            room[used++] = at(panel, point[i].at, point[i].high);
        for (int64_t i = to - 1; i >= from; i--)
            room[used++] = at(panel, point[i].at, point[i].low);
        plot_line(canvas, room, used, (plot_paint){.filled = true, .fill = plot_colour(0), .opacity = 0.25});
        for (int64_t i = from; i < to; i++)
            room[i - from] = at(panel, point[i].at, point[i].end);
        plot_line(canvas, room, to - from, (plot_paint){.line = plot_colour(0), .width = 2});
        from = to + 1;
    }
    plot_xy end = at(panel, point[count - 1].at, point[count - 1].at);
    plot_dots(canvas, &end, 1, 5, (plot_paint){.filled = true, .fill = 0x333333});
}

static void draw_money(plot_canvas *canvas, const panel *panel, const control_point *point, int64_t count,
                       plot_xy *room)
{
    for (int64_t i = 0; i < count; i++)
        room[i] = at(panel, point[i].at, point[i].spent);
    plot_line(canvas, room, count, (plot_paint){.line = plot_colour(0), .width = 2});
    for (int64_t i = 0; i < count; i++)
        room[i] = at(panel, point[i].at, point[i].end > 0 ? point[i].cost : NAN);
    plot_line(canvas, room, count, (plot_paint){.line = plot_colour(1), .width = 2, .dash = "2 4"});
}

static void draw_panels(plot_canvas *canvas, const control_point *point, int64_t count, const control_limits *limits,
                        plot_xy *room)
{
    panel one;
    double seconds = point[count - 1].at, late = fmax(seconds, limits->deadline);
    double money = fmax(point[count - 1].spent, limits->budget);
    int64_t most = 1;
    for (int64_t i = 0; i < count; i++) {
        most = point[i].workers > most ? point[i].workers : most;
        late = fmax(late, fmin(point[i].high, 3 * fmax(seconds, limits->deadline)));
    }
    place_panel(&one, 0, seconds, PLOT_COUNT, 0, (double)most, canvas, "Workers", "workers");
    draw_workers(canvas, &one, point, count, room);
    place_panel(&one, 1, seconds, PLOT_SECONDS, 0, late, canvas, "End as it was foretold (90% of cases), and as it was",
                "end, since the start");
    plot_clip(canvas, &one.box);
    draw_band(canvas, &one, point, count, room);
    plot_clip(canvas, NULL);
    draw_limit(canvas, &one, limits->deadline, "deadline");
    if (limits->price <= 0)
        return;
    place_panel(&one, 2, seconds, PLOT_DOLLARS, 0, money, canvas, "Money: spent, and foretold (dotted)", "dollars");
    plot_clip(canvas, &one.box);
    draw_money(canvas, &one, point, count, room);
    plot_clip(canvas, NULL);
    draw_limit(canvas, &one, limits->budget, "budget");
}

int control_draw(const char *path, const control_point *point, int64_t count, const control_limits *limits)
{
    plot_canvas *canvas = NULL;
    plot_xy *room = NULL;
    int panels = limits->price > 0 ? PANELS : PANELS - 1;
    if (count < 1)
        return shoal_fail(SHOAL_INVALID, "%s: nothing to draw", path);
    int status = base_alloc(&room, (size_t)count, 2 * sizeof *room, "a picture");
    if (status == SHOAL_OK)
        status = plot_canvas_new(&canvas, WIDTH, TOP + panels * (PANEL + BETWEEN), "How the job was held");
    if (status == SHOAL_OK) {
        draw_panels(canvas, point, count, limits, room);
        status = plot_write(canvas, path);
    }
    plot_canvas_free(&canvas);
    base_free(&room);
    return status;
}
