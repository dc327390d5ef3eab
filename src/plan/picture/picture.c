/* The plan's picture: what is drawn in which panel, who gets a name, and the file around it.  However many points there
 * are, what is written is bounded: points of a line that fall on the same pixel are one, markers keep a distance, and
 * dots share a grid. */
#include "picture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <shoal/error.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/option.h"
#include "base/text.h"
#include "data/picture.h"
#include "plan/units.h"
#include "plot/svg.h"
#include "svg.h"

/* Machines differ by marker and dash, so that a black and white print tells them apart; colours only help.  The paths
 * are of markers whose radius is 1. */
#define CIRCLE "M-1 0a1 1 0 1 0 2 0a1 1 0 1 0-2 0z"
#define SQUARE "M-.88-.88h1.76v1.76h-1.76z"
static const struct style {
    const char *colour, *dash, *marker;
    bool filled;
} styles[PLAN_STYLES] = {
    {"#0b4f94", "none", CIRCLE, true},
    {"#c8500a", "7 3", SQUARE, false},
    {"#00785a", "2 2.5", "M0-1.15L1 .88H-1z", true},
    {"#7a3e9d", "9 3 2 3", "M0-1.15L1.15 0 0 1.15-1.15 0z", false},
    {"#8a6500", "4 2", "M-1-1L1 1M-1 1L1-1", false},
    {"#b5174b", "12 4", "M0 1.15L1-.88H-1z", true},
    {"#333333", "6 2 1.5 2 1.5 2", "M-1.15 0H1.15M0-1.15V1.15", false},
    {"#00808f", "1 2", SQUARE, true},
};

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
    FILE *file;
    bool priced;              /* there are panels of cost */
    const plan_point **point; /* that can be drawn, machine by machine */
    int64_t points;
    const plan_point **step; /* the front by time */
    int64_t steps;
    group *group;
    int64_t groups, named;
    const plan_point *best; /* NULL: none */
    plan_xy *room;          /* for a path through all points */
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
    plan_unit x_unit, y_unit;
    measure x, y; /* the limits of the interval follow y */
} views[PANELS] = {
    {"Time", "workers", "time", PLAN_UNIT_WORKERS, PLAN_UNIT_SECONDS, WORKERS, SECONDS},
    {"Cost", "workers", "cost", PLAN_UNIT_WORKERS, PLAN_UNIT_DOLLARS, WORKERS, DOLLARS},
    {"Cost", "time", "cost", PLAN_UNIT_SECONDS, PLAN_UNIT_DOLLARS, SECONDS, DOLLARS},
};

/* The limit of a unit that was asked for; 0 for none. */
static double limit_of(const sheet *s, plan_unit unit)
{
    double limit = unit == PLAN_UNIT_SECONDS   ? s->picture->deadline
                   : unit == PLAN_UNIT_DOLLARS ? s->picture->budget
                                               : 0;
    return limit > 0 ? limit : 0;
}

/* An axis over all points; a limit or an interval is shown whole unless it lies far from everything else. */
static void make_axis(plan_axis *out, const sheet *s, plan_unit unit, measure what, bool intervals, double from,
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
    plan_axis_init(out, unit, least, greatest, from, to);
}

static plan_xy place_point(const plan_panel *panel, const plan_point *p, measure x, measure y)
{
    return (plan_xy){plan_axis_place(&panel->x, measured(p, x)), plan_axis_place(&panel->y, measured(p, y))};
}

/* Where points of a group lie, at least so far `apart`; returns how many.  With `front` only those of it. */
static int64_t place_points(plan_xy *out, const plan_panel *panel, const sheet *s, const group *of, measure x,
                            measure y, double apart, bool front)
{
    int64_t count = 0;
    for (int64_t k = of->start; k < of->start + of->count; k++) {
        plan_xy at = place_point(panel, s->point[k], x, y);
        bool far = count == 0 || fabs(at.x - out[count - 1].x) >= apart || fabs(at.y - out[count - 1].y) >= apart;
        if ((far || s->point[k] == s->best) && (!front || s->point[k]->front))
            out[count++] = at;
    }
    return count;
}

static void draw_interval(const plan_panel *panel, const sheet *s, const group *of, const struct view *view)
{
    plan_panel own = *panel; /* labels may stand on it */
    int64_t upper = place_points(s->room, panel, s, of, view->x, view->y + 2, 0.7, false);
    int64_t count = upper + place_points(s->room + upper, panel, s, of, view->x, view->y + 1, 0.7, false);
    for (int64_t i = upper, j = count - 1; i < j; i++, j--) {
        plan_xy kept = s->room[i];
        s->room[i] = s->room[j];
        s->room[j] = kept;
    }
    plan_panel_path(&own, "band", s->room, count);
}

/* All points of machines without a name, one dot a place. */
static void draw_others(plan_panel *panel, const sheet *s, const struct view *view)
{
    int64_t dots = 0;
    for (int64_t g = 0; g < s->groups; g++)
        for (int64_t k = 0; s->group[g].style == OTHER && k < s->group[g].count; k++) {
            plan_xy at = place_point(panel, s->point[s->group[g].start + k], view->x, view->y);
            if (plan_panel_take(panel, at))
                fprintf(panel->file, "%sM%.1f %.1fh0", dots++ ? "" : "<path class=\"other\" d=\"", at.x, at.y);
        }
    fputs(dots ? "\"/>\n" : "", panel->file);
}

/* How a machine's points are drawn. */
typedef struct manner {
    const char *line, *markers; /* classes; NULL: no line joins them */
    double radius, apart;       /* of markers */
    bool front;                 /* only those of it */
} manner;

static void draw_group(plan_panel *panel, const sheet *s, const group *of, const struct view *view, manner how)
{
    char class[32];
    if (of->style == OTHER)
        return;
    if (how.line) {
        snprintf(class, sizeof class, "s%d %s", of->style, how.line);
        plan_panel_path(panel, class, s->room, place_points(s->room, panel, s, of, view->x, view->y, 0.7, false));
    }
    const int64_t markers = place_points(s->room, panel, s, of, view->x, view->y, how.apart, how.front);
    fprintf(panel->file, "<g class=\"%s\">", how.markers);
    for (int64_t i = 0; i < markers; i++)
        plan_svg_use(panel->file, "m", of->style, s->room[i], how.radius);
    fputs("</g>\n", panel->file);
}

/* Steps, since between two points of the front nothing is offered. */
static void draw_front(plan_panel *panel, const sheet *s)
{
    int64_t count = 0;
    double y = panel->top;
    for (int64_t k = 0; k < s->steps; k++) {
        plan_xy at = place_point(panel, s->step[k], SECONDS, DOLLARS);
        if (k > 0 && k + 1 < s->steps && fabs(at.x - s->room[count - 1].x) < 0.7 && fabs(at.y - y) < 0.7)
            continue;
        s->room[count++] = (plan_xy){at.x, y};
        s->room[count++] = at;
        y = at.y;
    }
    s->room[count++] = (plan_xy){panel->right, y};
    plan_panel_path(panel, "front", s->room, count);
    for (int64_t g = 0; g < s->groups; g++)
        draw_group(panel, s, &s->group[g], &views[MAP], (manner){NULL, "marks", 3.6, 7, true});
}

static void draw_limit(plan_panel *panel, const sheet *s, bool of_x, bool label)
{
    const plan_axis *axis = of_x ? &panel->x : &panel->y;
    double limit = limit_of(s, axis->unit), at = plan_axis_place(axis, limit);
    char text[PLAN_UNITS_BYTES + 16];
    if (limit == 0)
        return;
    bool is_time = axis->unit == PLAN_UNIT_SECONDS;
    strcpy(text, is_time ? "deadline " : "budget ");
    (is_time ? plan_format_duration : plan_format_money)(text + strlen(text), limit);
    if (label)
        plan_panel_label_limit(panel, text, of_x, limit);
    else if (plan_axis_holds(axis, limit))
        plan_panel_path(panel, "limit",
                        (plan_xy[]){{of_x ? at : panel->left, of_x ? panel->top : at},
                                    {of_x ? at : panel->right, of_x ? panel->bottom : at}},
                        2);
}

/* "64 × c7i.large", "1 worker" */
static void name_point(char *out, size_t size, const plan_point *p, const char *machine)
{
    char workers[32];
    base_format_count(workers, sizeof workers, p->workers);
    snprintf(out, size, "%s %s%s", workers, *machine ? "× " : p->workers == 1 ? "worker" : "workers", machine);
}

static void ring_point(plan_panel *panel, plan_xy at)
{
    fprintf(panel->file, "<circle class=\"ring\" cx=\"%.1f\" cy=\"%.1f\" r=\"8\"/>\n", at.x, at.y);
    for (double dy = -8; dy <= 8; dy += PLAN_CELL)
        for (double dx = -8; dx <= 8; dx += PLAN_CELL)
            plan_panel_take(panel, (plan_xy){at.x + dx, at.y + dy});
}

/* The best's name, where the legend has where that machine is, and how many workers points of the front have, where
 * there is room to say so. */
static void label_points(plan_panel *panel, const sheet *s, const struct view *view)
{
    const double apart = 22;
    plan_xy last = {NAN, NAN};
    char text[160];
    if (s->best) {
        const char *slash = strrchr(s->best->machine, '/');
        name_point(text, 48, s->best, slash ? slash + 1 : s->best->machine);
        plan_panel_label(panel, text, 11, place_point(panel, s->best, view->x, view->y), false);
    }
    for (int64_t k = 0; view == &views[MAP] && k < s->steps; k++) {
        plan_xy at = place_point(panel, s->step[k], SECONDS, DOLLARS);
        if (s->step[k] == s->best || (fabs(at.x - last.x) < apart && fabs(at.y - last.y) < apart))
            continue;
        base_format_count(text, sizeof text, s->step[k]->workers);
        plan_panel_label(panel, text, 9, at, true);
        last = at;
    }
}

static void draw_panel(const sheet *s, int what, double top, double bottom)
{
    static const manner plain = {"line", "marks", 3, 13, false}, faint = {"line faint", "marks faint", 2, 5, false};
    const struct view *view = &views[what];
    const double left = 76 + 362 * what, right = left + (s->priced ? 282 : 560);
    plan_panel panel = {.file = s->file, .left = left, .top = top, .right = right, .bottom = bottom};
    make_axis(&panel.x, s, view->x_unit, view->x, false, left, right);
    make_axis(&panel.y, s, view->y_unit, view->y, what != MAP, bottom, top);
    char title[80];
    const char *counted = s->picture->counted && view->x == WORKERS ? s->picture->counted : view->x_title;
    snprintf(title, sizeof title, "%s against %s", view->title, counted);
    plan_panel_open(&panel, what + 1, title, counted, view->y_title);
    for (int64_t g = 0; what != MAP && g < s->groups; g++)
        if (s->group[g].interval)
            draw_interval(&panel, s, &s->group[g], view);
    draw_others(&panel, s, view);
    for (int64_t g = 0; g < s->groups; g++)
        draw_group(&panel, s, &s->group[g], view, what == MAP ? faint : plain);
    if (what == MAP)
        draw_front(&panel, s);
    if (s->best)
        ring_point(&panel, place_point(&panel, s->best, view->x, view->y));
    for (int pass = 0; pass < 4; pass++) /* labels know all lines */
        draw_limit(&panel, s, pass % 2, pass / 2);
    label_points(&panel, s, view);
    plan_panel_close(&panel);
}

/* ---- legend ------------------------------------------------------------------------------------------------------ */

enum { NAME_SHOWN = 40, ROW = 19, SAMPLE = 36 };

typedef struct legend {
    FILE *file; /* NULL: only measured */
    double x, y, width;
} legend;

/* `sample` is drawn from the left of the middle. */
static void add_entry(legend *l, const char *sample, const char *text)
{
    double wide = SAMPLE + fmin(plan_svg_width(text, 11), NAME_SHOWN * 11 * 0.62);
    if (l->x > 16 && l->x + wide > l->width - 16) {
        l->x = 16;
        l->y += ROW;
    }
    if (l->file) {
        fprintf(l->file, "<g transform=\"translate(%.1f %.1f)\">%s</g>", l->x, l->y, sample);
        plan_svg_text(l->file, "", (plan_xy){l->x + SAMPLE, l->y + 4}, text, NAME_SHOWN);
    }
    l->x += wide + 18;
}

/* From `top` on, in rows of this width; returns where it ends. */
static double draw_legend(const sheet *s, FILE *file, double top, double width)
{
    legend l = {file, 16, top, width};
    bool interval = false;
    for (int64_t g = 0; g < s->groups; g++) {
        char sample[128];
        const char *machine = s->point[s->group[g].start]->machine;
        snprintf(sample, sizeof sample,
                 "<path class=\"line s%d\" d=\"M0 0h30\"/><use href=\"#m%d\" transform=\"translate(15) scale(3.4)\"/>",
                 s->group[g].style, s->group[g].style);
        if (s->group[g].style != OTHER && *machine)
            add_entry(&l, sample, machine);
        interval = interval || s->group[g].interval;
    }
    if (s->named < s->groups)
        add_entry(&l, "<path class=\"other\" d=\"M9 0h0m7-3h0m6 4h0\"/>", "other machines");
    if (interval)
        add_entry(&l, "<path class=\"band\" d=\"M0-5h30v10h-30z\"/>",
                  s->groups > 2 ? "90% of runs of the best's machine" : "90% of runs");
    if (s->priced)
        add_entry(&l, "<path class=\"front\" d=\"M0-5h14v9h16\"/>", "Pareto front (with workers)");
    if (s->best)
        add_entry(&l, "<circle class=\"ring\" cx=\"16\" cy=\"0\" r=\"6.5\"/>", "best");
    return l.y + (l.x > 16 ? ROW / 2.0 : 0);
}

/* ---- the file ---------------------------------------------------------------------------------------------------- */

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

static void write_styles(const sheet *s)
{
    fputs("<style>.head{font-size:12px}.head,.name{font-weight:bold}.grid{stroke:#e2e2e2}.frame{fill:none;stroke:#555}"
          ".line{fill:none;stroke-width:1.6}.faint{stroke-width:.8;opacity:.5}.veil{fill:#fff;fill-opacity:.75}"
          ".band{fill:#999;stroke:#999;fill-opacity:.28;stroke-opacity:.28}.lead{stroke:#111;stroke-width:.8}"
          ".limit{stroke:#111;stroke-width:1.2;stroke-dasharray:5 4}.front{stroke:#111;stroke-width:1.6;fill:none}"
          ".ring{stroke:#111;stroke-width:2;fill:none}"
          ".other{stroke:#9a9a9a;stroke-width:2.4;stroke-linecap:round}",
          s->file);
    for (int i = 0; i < s->named; i++)
        fprintf(s->file, ".s%d{stroke:%s;stroke-dasharray:%s}", i, styles[i].colour, styles[i].dash);
    fputs("</style>\n<defs>", s->file);
    for (int i = 0; i < s->named; i++)
        fprintf(s->file, "<path id=\"m%d\" d=\"%s\" fill=\"%s\" stroke=\"%s\" stroke-width=\".45\"/>", i,
                styles[i].marker, styles[i].filled ? styles[i].colour : "#fff", styles[i].colour);
    fputs("</defs>\n", s->file);
}

static int write_svg(const sheet *s)
{
    static const double top = 88, bottom = 352, legend_top = 408;
    const double width = s->priced ? 1100 : 660, height = draw_legend(s, NULL, legend_top, width) + 12;
    const char *title = s->picture->title ? s->picture->title : "";
    char *best = NULL;
    int status = describe_best(&best, s);
    if (status < 0)
        return status;
    fprintf(s->file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%g\" height=\"%g\" viewBox=\"0 0 %g %g\" role=\"img\" "
            "font-family=\"Helvetica, Arial, 'DejaVu Sans', sans-serif\" font-size=\"11\" fill=\"#111\">\n"
            "%s\n<title>",
            width, height, width, height, DATA_PICTURE_SVG_MARK);
    plot_svg_escape(s->file, title, 400);
    fputs("</title>\n<desc>", s->file);
    plot_svg_escape(s->file, best, 400);
    fputs("</desc>\n", s->file);
    write_styles(s);
    fprintf(s->file, "<rect width=\"%g\" height=\"%g\" fill=\"#fff\"/>\n", width, height);
    plan_svg_text(s->file, "font-size=\"15\" font-weight=\"bold\"", (plan_xy){16, 27}, title,
                  (int)((width - 32) / (15 * 0.62)));
    plan_svg_text(s->file, "font-size=\"12\"", (plan_xy){16, 48}, best, (int)((width - 32) / (12 * 0.58)));
    for (int what = 0; what < (s->priced ? PANELS : 1); what++)
        draw_panel(s, what, top, bottom);
    draw_legend(s, s->file, legend_top, width);
    fputs("</svg>\n", s->file);
    base_free(&best);
    return SHOAL_OK;
}

int plan_picture_write(const char *path, const plan_picture *picture)
{
    sheet s = {.picture = picture};
    const size_t points = (size_t)picture->points;
    base_output *output = NULL;
    int status = base_alloc(&s.point, 2 * points, sizeof *s.point, "the points of a picture");
    if (status == SHOAL_OK)
        status = base_alloc(&s.group, points, sizeof *s.group, "the machines of a plan");
    if (status == SHOAL_OK)
        status = base_alloc(&s.room, 2 * points + 1, sizeof *s.room, "a path");
    if (status == SHOAL_OK) {
        s.step = s.point + points;
        status = sort_points(&s);
    }
    if (status == SHOAL_OK)
        status = base_output_open(&output, path);
    if (status == SHOAL_OK) {
        s.file = base_output_stream(output);
        locale_t before = uselocale(base_plain_locale()); /* coordinates have points */
        status = write_svg(&s);
        uselocale(before);
    }
    if (status == SHOAL_OK)
        status = base_output_commit(&output);
    base_output_discard(&output);
    base_free(&s.point);
    base_free(&s.group);
    base_free(&s.room);
    return status;
}
