/* What stands in the panels of the plan's picture, and its legend.  However many points there are, what is written
 * is bounded: a line's points that fall on the same pixel are one, markers keep a distance, and dots share a grid. */
#include "plan_picture_internal.h"

#include <math.h>
#include <string.h>

typedef enum show { SHOW_TIME, SHOW_COST, SHOW_MAP } show;

/* What a point is on the panel's axes. */
typedef double measure(const plan_point *point);

static double workers_of(const plan_point *p)
{
    return (double)p->workers;
}

static double seconds_of(const plan_point *p)
{
    return p->seconds;
}

static double dollars_of(const plan_point *p)
{
    return p->dollars;
}

static const struct view {
    const char *title, *x_title, *y_title;
    plan_unit x_unit, y_unit;
    measure *x, *y;
} views[] = {
    [SHOW_TIME] = {"Time against workers", "workers", "time", PLAN_UNIT_WORKERS, PLAN_UNIT_SECONDS, workers_of,
                   seconds_of},
    [SHOW_COST] = {"Cost against workers", "workers", "cost", PLAN_UNIT_WORKERS, PLAN_UNIT_DOLLARS, workers_of,
                   dollars_of},
    [SHOW_MAP] = {"Cost against time", "time", "cost", PLAN_UNIT_SECONDS, PLAN_UNIT_DOLLARS, seconds_of, dollars_of},
};

static const plan_point *point_at(const plan_sheet *sheet, int64_t k)
{
    return &sheet->picture->point[sheet->order[k]];
}

/* ---- how far axes go --------------------------------------------------------------------------------------------- */

typedef struct range {
    double least, greatest;
} range;

static void include(range *r, double value)
{
    r->least = fmin(r->least, value);
    r->greatest = fmax(r->greatest, value);
}

static range range_of(const plan_sheet *sheet, measure *value)
{
    range out = {INFINITY, -INFINITY};
    for (int64_t k = 0; k < sheet->points; k++)
        include(&out, value(point_at(sheet, k)));
    return out;
}

/* A limit or an interval is shown whole unless it lies far from everything else. */
static void reach(range *r, range points, double value)
{
    const double far = 8;
    if (isfinite(value) && value > 0 && value <= points.greatest * far && value >= points.least / far)
        include(r, value);
}

/* ---- intervals --------------------------------------------------------------------------------------------------- */

static bool has_interval(const plan_sheet *sheet, const plan_group *group)
{
    for (int64_t k = 0; k < group->count; k++) {
        const plan_point *p = point_at(sheet, group->start + k);
        if (p->low < p->seconds || p->high > p->seconds)
            return true;
    }
    return false;
}

/* Many bands on top of each other tell nothing: with more than two machines the best's alone. */
static bool shows_interval(const plan_sheet *sheet, const plan_group *group)
{
    return group->style != PLAN_STYLE_OTHER && (sheet->groups <= 2 || group->best) && has_interval(sheet, group);
}

static const plan_group *first_interval(const plan_sheet *sheet)
{
    for (int64_t g = 0; g < sheet->groups; g++)
        if (shows_interval(sheet, &sheet->group[g]))
            return &sheet->group[g];
    return NULL;
}

/* The limits of time or, in the panel of cost, of money; those of a point without any are the point. */
static range interval_of(const plan_point *p, show what)
{
    double at = what == SHOW_COST ? p->dollars : p->seconds, low = what == SHOW_COST ? p->dollars_low : p->low;
    double high = what == SHOW_COST ? p->dollars_high : p->high;
    return (range){low > 0 && low < at ? low : at, high > at ? high : at};
}

static bool is_step(const plan_panel *panel, double x, double before)
{
    return !(fabs(plan_axis_place(&panel->x, x) - before) < 0.5);
}

static void draw_interval(plan_panel *panel, const plan_sheet *sheet, const plan_group *group, show what)
{
    FILE *file = panel->file;
    if (group->count == 1) { /* a bar */
        const plan_point *p = point_at(sheet, group->start);
        range r = interval_of(p, what);
        double x = plan_axis_place(&panel->x, (double)p->workers), top = plan_axis_place(&panel->y, r.greatest);
        double bottom = plan_axis_place(&panel->y, r.least);
        fprintf(file, "<path d=\"M%.1f %.1fV%.1fM%.1f %.1fh8M%.1f %.1fh8\" stroke=\"#777\" stroke-width=\"1.2\"/>\n", x,
                top, bottom, x - 4, top, x - 4, bottom);
        plan_panel_take_line(panel, x, top, x, bottom);
        return;
    }
    double before = NAN;
    fprintf(file, "<path d=\"");
    for (int64_t k = 0, used = 0; k < group->count; k++) {
        const plan_point *p = point_at(sheet, group->start + k);
        double x = plan_axis_place(&panel->x, (double)p->workers);
        if (k + 1 < group->count && !is_step(panel, (double)p->workers, before))
            continue;
        fprintf(file, "%c%.1f %.1f", used++ ? 'L' : 'M', x, plan_axis_place(&panel->y, interval_of(p, what).greatest));
        before = x;
    }
    before = NAN;
    for (int64_t k = group->count - 1; k >= 0; k--) {
        const plan_point *p = point_at(sheet, group->start + k);
        if (k > 0 && !is_step(panel, (double)p->workers, before))
            continue;
        before = plan_axis_place(&panel->x, (double)p->workers);
        fprintf(file, "L%.1f %.1f", before, plan_axis_place(&panel->y, interval_of(p, what).least));
    }
    fputs("z\" fill=\"#999\" fill-opacity=\"0.28\"/>\n", file);
}

/* ---- lines and markers ------------------------------------------------------------------------------------------- */

static void draw_line(plan_panel *panel, const plan_sheet *sheet, const plan_group *group, const struct view *view,
                      bool faint)
{
    const plan_style *style = &plan_styles[group->style];
    double x = NAN, y = NAN;
    if (group->count < 2)
        return;
    fprintf(panel->file, "<path fill=\"none\" stroke=\"%s\" stroke-width=\"%s\"%s stroke-dasharray=\"%s\" d=\"",
            style->colour, faint ? "0.8" : "1.6", faint ? " stroke-opacity=\"0.45\"" : "",
            *style->dash ? style->dash : "none");
    for (int64_t k = 0; k < group->count; k++) {
        const plan_point *p = point_at(sheet, group->start + k);
        double to_x = plan_axis_place(&panel->x, view->x(p)), to_y = plan_axis_place(&panel->y, view->y(p));
        if (k > 0 && k + 1 < group->count && fabs(to_x - x) < 0.7 && fabs(to_y - y) < 0.7)
            continue;
        fprintf(panel->file, "%s%.1f %.1f", k ? "L" : "M", to_x, to_y);
        if (k > 0)
            plan_panel_take_line(panel, x, y, to_x, to_y);
        x = to_x;
        y = to_y;
    }
    fputs("\"/>\n", panel->file);
}

static void open_markers(FILE *file, const plan_style *style, bool faint)
{
    fprintf(file, "<path fill=\"%s\" stroke=\"%s\" stroke-width=\"%s\"%s d=\"", style->filled ? style->colour : "#fff",
            style->colour, faint ? "0.8" : "1.4", faint ? " opacity=\"0.55\"" : "");
}

/* Markers of one machine, a distance from each other. */
static void draw_markers(plan_panel *panel, const plan_sheet *sheet, const plan_group *group, const struct view *view,
                         double radius, double apart, bool faint)
{
    const plan_style *style = &plan_styles[group->style];
    double x = NAN, y = NAN;
    open_markers(panel->file, style, faint);
    for (int64_t k = 0; k < group->count; k++) {
        const plan_point *p = point_at(sheet, group->start + k);
        double to_x = plan_axis_place(&panel->x, view->x(p)), to_y = plan_axis_place(&panel->y, view->y(p));
        if (p != sheet->best && fabs(to_x - x) < apart && fabs(to_y - y) < apart)
            continue;
        plan_marker(panel->file, style->marker, to_x, to_y, radius);
        plan_panel_take(panel, to_x, to_y);
        x = to_x;
        y = to_y;
    }
    fputs("\"/>\n", panel->file);
}

/* All points of machines without a name, one dot a place. */
static void draw_others(plan_panel *panel, const plan_sheet *sheet, const struct view *view)
{
    enum { GRID = 2, ACROSS = PLAN_CELLS_ACROSS * PLAN_CELL / GRID, DOWN = PLAN_CELLS_DOWN * PLAN_CELL / GRID };
    bool there[DOWN][ACROSS];
    memset(there, 0, sizeof there);
    if (sheet->named == sheet->groups)
        return;
    fprintf(panel->file, "<path fill=\"none\" stroke=\"%s\" stroke-width=\"2.4\" stroke-linecap=\"round\" d=\"",
            plan_styles[PLAN_STYLE_OTHER].colour);
    for (int64_t g = sheet->named; g < sheet->groups; g++)
        for (int64_t k = 0; k < sheet->group[g].count; k++) {
            const plan_point *p = point_at(sheet, sheet->group[g].start + k);
            double x = plan_axis_place(&panel->x, view->x(p)), y = plan_axis_place(&panel->y, view->y(p));
            int across = (int)((x - panel->left) / GRID), down = (int)((y - panel->top) / GRID);
            if (across < 0 || across >= ACROSS || down < 0 || down >= DOWN || there[down][across])
                continue;
            there[down][across] = true;
            fprintf(panel->file, "M%.1f %.1fh0", x, y);
            plan_panel_take(panel, x, y);
        }
    fputs("\"/>\n", panel->file);
}

/* ---- the front --------------------------------------------------------------------------------------------------- */

/* Steps, since between two points of the front nothing is offered. */
static void draw_steps(plan_panel *panel, const plan_sheet *sheet)
{
    double x = 0, y = panel->top;
    fputs("<path class=\"front\" d=\"", panel->file);
    for (int64_t k = 0; k < sheet->step_count; k++) {
        const plan_point *p = &sheet->picture->point[sheet->steps[k]];
        double to_x = plan_axis_place(&panel->x, p->seconds), to_y = plan_axis_place(&panel->y, p->dollars);
        if (k > 0 && k + 1 < sheet->step_count && fabs(to_x - x) < 0.7 && fabs(to_y - y) < 0.7)
            continue;
        if (k == 0)
            fprintf(panel->file, "M%.1f %.1f", to_x, panel->top);
        else
            fprintf(panel->file, "H%.1f", to_x);
        fprintf(panel->file, "V%.1f", to_y);
        plan_panel_take_line(panel, k ? x : to_x, y, to_x, y);
        plan_panel_take_line(panel, to_x, y, to_x, to_y);
        x = to_x;
        y = to_y;
    }
    fprintf(panel->file, "H%.1f\"/>\n", panel->right);
    plan_panel_take_line(panel, x, y, panel->right, y);
}

static int style_of(const plan_sheet *sheet, const plan_point *p)
{
    for (int64_t g = 0; g < sheet->named; g++)
        if (strcmp(point_at(sheet, sheet->group[g].start)->machine, p->machine) == 0)
            return sheet->group[g].style;
    return PLAN_STYLE_OTHER;
}

static void draw_front(plan_panel *panel, const plan_sheet *sheet)
{
    const double apart = 7;
    double x = NAN, y = NAN;
    draw_steps(panel, sheet);
    for (int64_t k = 0; k < sheet->step_count; k++) {
        const plan_point *p = &sheet->picture->point[sheet->steps[k]];
        double to_x = plan_axis_place(&panel->x, p->seconds), to_y = plan_axis_place(&panel->y, p->dollars);
        if (p != sheet->best && k + 1 < sheet->step_count && fabs(to_x - x) < apart && fabs(to_y - y) < apart)
            continue;
        const plan_style *style = &plan_styles[style_of(sheet, p)];
        open_markers(panel->file, style, false);
        plan_marker(panel->file, style->marker, to_x, to_y, 3.6);
        fputs("\"/>\n", panel->file);
        x = to_x;
        y = to_y;
    }
}

/* How many workers the points of the front have, where there is room to say so. */
static void label_front(plan_panel *panel, const plan_sheet *sheet)
{
    const double apart = 22;
    double x = NAN, y = NAN;
    for (int64_t k = 0; k < sheet->step_count; k++) {
        const plan_point *p = &sheet->picture->point[sheet->steps[k]];
        double to_x = plan_axis_place(&panel->x, p->seconds), to_y = plan_axis_place(&panel->y, p->dollars);
        char text[32];
        if (p == sheet->best || (fabs(to_x - x) < apart && fabs(to_y - y) < apart))
            continue;
        plan_format_count(text, (double)p->workers);
        plan_panel_label_point(panel, text, 9, false, to_x, to_y, true);
        x = to_x;
        y = to_y;
    }
}

/* ---- the best ---------------------------------------------------------------------------------------------------- */

/* "64 × c7i.large": the legend has where that is. */
static void name_best(char out[80], const plan_point *best)
{
    char workers[32];
    const char *slash = strrchr(best->machine, '/'), *machine = slash ? slash + 1 : best->machine;
    plan_format_count(workers, (double)best->workers);
    if (*machine)
        snprintf(out, 80, "%.20s × %.28s", workers, machine);
    else
        snprintf(out, 80, "%.20s %s", workers, best->workers == 1 ? "worker" : "workers");
}

static void ring_best(plan_panel *panel, const plan_sheet *sheet, const struct view *view)
{
    const double radius = 8;
    if (!sheet->best)
        return;
    double x = plan_axis_place(&panel->x, view->x(sheet->best)), y = plan_axis_place(&panel->y, view->y(sheet->best));
    fprintf(panel->file, "<circle class=\"ring\" cx=\"%.1f\" cy=\"%.1f\" r=\"%g\"/>\n", x, y, radius);
    for (double dy = -radius; dy <= radius; dy += PLAN_CELL)
        plan_panel_take_line(panel, x - radius, y + dy, x + radius, y + dy);
}

static void label_best(plan_panel *panel, const plan_sheet *sheet, const struct view *view)
{
    char text[80];
    if (!sheet->best)
        return;
    name_best(text, sheet->best);
    plan_panel_label_point(panel, text, 11, true, plan_axis_place(&panel->x, view->x(sheet->best)),
                           plan_axis_place(&panel->y, view->y(sheet->best)), false);
}

/* ---- panels ------------------------------------------------------------------------------------------------------ */

static void init_axes(plan_panel *panel, const plan_sheet *sheet, show what)
{
    const struct view *view = &views[what];
    const plan_picture *picture = sheet->picture;
    range xs = range_of(sheet, view->x), ys = range_of(sheet, view->y), x = xs, y = ys;
    reach(&y, ys, what == SHOW_TIME ? picture->deadline : picture->budget);
    if (what == SHOW_MAP)
        reach(&x, xs, picture->deadline);
    for (int64_t g = 0; what != SHOW_MAP && g < sheet->named; g++)
        for (int64_t k = 0; shows_interval(sheet, &sheet->group[g]) && k < sheet->group[g].count; k++) {
            range r = interval_of(point_at(sheet, sheet->group[g].start + k), what);
            reach(&y, ys, r.least);
            reach(&y, ys, r.greatest);
        }
    plan_axis_init(&panel->x, view->x_unit, x.least, x.greatest, panel->left, panel->right);
    plan_axis_init(&panel->y, view->y_unit, y.least, y.greatest, panel->bottom, panel->top);
}

static void draw_limits(plan_panel *panel, const plan_sheet *sheet, show what)
{
    const bool deadline = sheet->picture->deadline > 0 && what != SHOW_COST,
               budget = sheet->picture->budget > 0 && what != SHOW_TIME;
    char text[48] = "deadline ";
    if (deadline)
        plan_panel_limit(panel, what == SHOW_MAP, sheet->picture->deadline);
    if (budget)
        plan_panel_limit(panel, false, sheet->picture->budget);
    if (deadline) {
        plan_format_seconds(text + strlen(text), sheet->picture->deadline);
        plan_panel_limit_label(panel, what == SHOW_MAP, sheet->picture->deadline, text);
    }
    if (budget) {
        strcpy(text, "budget ");
        plan_format_dollars(text + strlen(text), sheet->picture->budget);
        plan_panel_limit_label(panel, false, sheet->picture->budget, text);
    }
}

static void draw_panel(plan_panel *panel, const plan_sheet *sheet, show what)
{
    const struct view *view = &views[what];
    init_axes(panel, sheet, what);
    plan_panel_open(panel, view->title, view->x_title, view->y_title);
    for (int64_t g = 0; what != SHOW_MAP && g < sheet->named; g++)
        if (shows_interval(sheet, &sheet->group[g]))
            draw_interval(panel, sheet, &sheet->group[g], what);
    draw_others(panel, sheet, view);
    for (int64_t g = 0; g < sheet->named; g++) {
        draw_line(panel, sheet, &sheet->group[g], view, what == SHOW_MAP);
        draw_markers(panel, sheet, &sheet->group[g], view, what == SHOW_MAP ? 2 : 3, what == SHOW_MAP ? 5 : 13,
                     what == SHOW_MAP);
    }
    if (what == SHOW_MAP)
        draw_front(panel, sheet);
    ring_best(panel, sheet, view);
    draw_limits(panel, sheet, what);
    label_best(panel, sheet, view);
    if (what == SHOW_MAP)
        label_front(panel, sheet);
    plan_panel_close(panel);
}

void plan_draw_panels(const plan_sheet *sheet, double top, double bottom)
{
    const double pitch = 362, left = 76, width = sheet->priced ? 282 : 560;
    for (int what = SHOW_TIME; what <= (sheet->priced ? SHOW_MAP : SHOW_TIME); what++) {
        plan_panel panel = {
            .file = sheet->file, .number = what + 1, .left = left + what * pitch, .top = top, .bottom = bottom};
        panel.right = panel.left + width;
        draw_panel(&panel, sheet, (show)what);
    }
}

/* ---- legend ------------------------------------------------------------------------------------------------------ */

typedef enum entry { ENTRY_MACHINE, ENTRY_OTHER, ENTRY_INTERVAL, ENTRY_FRONT, ENTRY_BEST } entry;

enum { NAME_SHOWN = 40, ROW = 19, SAMPLE = 36 };

typedef struct legend {
    FILE *file; /* NULL: only measured */
    double x, y, width;
} legend;

static void draw_sample(FILE *file, entry kind, int style_number, double x, double y)
{
    const plan_style *style = &plan_styles[style_number];
    switch (kind) {
    case ENTRY_MACHINE:
        fprintf(file,
                "<path fill=\"none\" stroke=\"%s\" stroke-width=\"1.6\" stroke-dasharray=\"%s\" d=\"M%.1f %.1fh30\"/>",
                style->colour, *style->dash ? style->dash : "none", x, y);
        open_markers(file, style, false);
        plan_marker(file, style->marker, x + 15, y, 3.4);
        fputs("\"/>", file);
        break;
    case ENTRY_OTHER:
        fprintf(file,
                "<path stroke=\"%s\" stroke-width=\"2.4\" stroke-linecap=\"round\" d=\"M%.1f %.1fh0m7 -3h0m6 4h0\"/>",
                style->colour, x + 9, y);
        break;
    case ENTRY_INTERVAL:
        fprintf(file, "<rect x=\"%.1f\" y=\"%.1f\" width=\"30\" height=\"10\" fill=\"#999\" fill-opacity=\"0.28\"/>", x,
                y - 5);
        break;
    case ENTRY_FRONT: fprintf(file, "<path class=\"front\" d=\"M%.1f %.1fh14v9h16\"/>", x, y - 5); break;
    case ENTRY_BEST: fprintf(file, "<circle class=\"ring\" cx=\"%.1f\" cy=\"%.1f\" r=\"6.5\"/>", x + 16, y); break;
    }
}

static void add_entry(legend *l, entry kind, int style, const char *text)
{
    double wide = SAMPLE + fmin(plan_text_width(text, 11), NAME_SHOWN * 11 * 0.62);
    if (l->x > 16 && l->x + wide > l->width - 16) {
        l->x = 16;
        l->y += ROW;
    }
    if (l->file) {
        draw_sample(l->file, kind, style, l->x, l->y);
        fprintf(l->file, "<text x=\"%.1f\" y=\"%.1f\">", l->x + SAMPLE, l->y + 4);
        plan_svg_text(l->file, text, NAME_SHOWN);
        fputs("</text>\n", l->file);
    }
    l->x += wide + 18;
}

double plan_draw_legend(const plan_sheet *sheet, double top, double width, bool only_measure)
{
    legend l = {only_measure ? NULL : sheet->file, 16, top, width};
    for (int64_t g = 0; g < sheet->named; g++) {
        const char *machine = point_at(sheet, sheet->group[g].start)->machine;
        if (*machine)
            add_entry(&l, ENTRY_MACHINE, sheet->group[g].style, machine);
    }
    if (sheet->named < sheet->groups)
        add_entry(&l, ENTRY_OTHER, PLAN_STYLE_OTHER, "other machines");
    if (first_interval(sheet))
        add_entry(&l, ENTRY_INTERVAL, 0, sheet->groups > 2 ? "90% of runs of the best's machine" : "90% of runs");
    if (sheet->priced)
        add_entry(&l, ENTRY_FRONT, 0, "Pareto front (with workers)");
    if (sheet->best)
        add_entry(&l, ENTRY_BEST, 0, "best");
    return l.y + (l.x > 16 ? ROW / 2.0 : 0);
}
