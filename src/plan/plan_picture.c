/* The plan's picture: which points are drawn in which order, who gets a name, and the file around the panels.  The
 * drawing itself is in plan_picture_draw.c and below. */
#include "plan_picture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <shoal/error.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/option.h"
#include "plan/pareto.h"
#include "plan_picture_internal.h"

/* ---- points, by machine ------------------------------------------------------------------------------------------ */

static bool can_be_drawn(const plan_point *p)
{
    return isfinite(p->seconds) && p->seconds > 0 && p->workers > 0 && isfinite(p->dollars) && p->dollars >= 0;
}

static int compare_machines(const void *a, const void *b, void *points)
{
    int64_t i = *(const int64_t *)a, j = *(const int64_t *)b;
    const plan_point *p = &((const plan_point *)points)[i], *q = &((const plan_point *)points)[j];
    int order = p->machine == q->machine ? 0 : strcmp(p->machine, q->machine);
    if (order != 0)
        return order;
    if (p->workers != q->workers)
        return p->workers < q->workers ? -1 : 1;
    return (i > j) - (i < j);
}

/* Puts the points in order and finds where each machine's begin. */
static int sort_points(plan_sheet *sheet)
{
    const plan_point *point = sheet->picture->point;
    for (int64_t i = 0; i < sheet->picture->points; i++) {
        if (!can_be_drawn(&point[i]))
            continue;
        sheet->order[sheet->points++] = i;
        sheet->priced = sheet->priced || point[i].dollars > 0;
        if (point[i].best && !sheet->best)
            sheet->best = &point[i];
    }
    if (sheet->points == 0)
        return shoal_fail(SHOAL_INVALID, "there is nothing to draw: no configuration comes to an end");
    qsort_r(sheet->order, (size_t)sheet->points, sizeof *sheet->order, compare_machines, (void *)point);
    for (int64_t k = 0; k < sheet->points; k++) {
        int64_t i = sheet->order[k];
        if (k == 0 || strcmp(point[i].machine, point[sheet->order[k - 1]].machine) != 0)
            sheet->group[sheet->groups++] = (plan_group){.start = k, .first = i};
        plan_group *group = &sheet->group[sheet->groups - 1];
        group->count++;
        group->first = i < group->first ? i : group->first;
        group->fronts += sheet->front[i];
        group->best = group->best || &point[i] == sheet->best;
    }
    return SHOAL_OK;
}

/* ---- who gets a name --------------------------------------------------------------------------------------------- */

/* The best's machine, then those that have most of the front. */
static int compare_worth(const void *a, const void *b)
{
    const plan_group *p = a, *q = b;
    if (p->best != q->best)
        return p->best ? -1 : 1;
    if (p->fronts != q->fronts)
        return p->fronts > q->fronts ? -1 : 1;
    return p->first < q->first ? -1 : 1;
}

static int compare_first(const void *a, const void *b)
{
    const plan_group *p = a, *q = b;
    return p->first < q->first ? -1 : 1;
}

static void name_groups(plan_sheet *sheet)
{
    sheet->named = sheet->groups;
    if (sheet->groups > PLAN_STYLES) {
        qsort(sheet->group, (size_t)sheet->groups, sizeof *sheet->group, compare_worth);
        sheet->named = 0;
        while (sheet->named < PLAN_STYLES && (sheet->group[sheet->named].best || sheet->group[sheet->named].fronts))
            sheet->named++;
    }
    qsort(sheet->group, (size_t)sheet->named, sizeof *sheet->group, compare_first);
    for (int64_t g = 0; g < sheet->groups; g++)
        sheet->group[g].style = g < sheet->named ? (int)g : PLAN_STYLE_OTHER;
}

/* No two points of the front take the same time. */
static int compare_times(const void *a, const void *b, void *points)
{
    const plan_point *p = &((const plan_point *)points)[*(const int64_t *)a];
    const plan_point *q = &((const plan_point *)points)[*(const int64_t *)b];
    return (p->seconds > q->seconds) - (p->seconds < q->seconds);
}

static void list_steps(plan_sheet *sheet)
{
    for (int64_t k = 0; k < sheet->points; k++)
        if (sheet->front[sheet->order[k]])
            sheet->steps[sheet->step_count++] = sheet->order[k];
    qsort_r(sheet->steps, (size_t)sheet->step_count, sizeof *sheet->steps, compare_times,
            (void *)sheet->picture->point);
}

/* ---- the file ---------------------------------------------------------------------------------------------------- */

static void write_text(FILE *file, const char *attributes, double y, const char *text, int most)
{
    fprintf(file, "<text %s x=\"16\" y=\"%g\">", attributes, y);
    plan_svg_text(file, text, most);
    fputs("</text>\n", file);
}

/* "Best: 64 × c7i.large, 12 min, $3.40: cheapest that meets the deadline of 2 h" */
static int describe_best(char **out, const plan_sheet *sheet)
{
    const plan_point *best = sheet->best;
    const char *why = sheet->picture->why ? sheet->picture->why : "";
    char seconds[32], dollars[32], workers[32];
    if (!best)
        return base_copy_text(out, why);
    plan_format_seconds(seconds, best->seconds);
    plan_format_dollars(dollars, best->dollars);
    plan_format_count(workers, (double)best->workers);
    return base_format(out, "Best: %s %s%s, %s%s%s%s%s", workers,
                       *best->machine       ? "× "
                       : best->workers == 1 ? "worker"
                                            : "workers",
                       best->machine, seconds, sheet->priced ? ", " : "", sheet->priced ? dollars : "",
                       *why ? ": " : "", why);
}

static int write_svg(plan_sheet *sheet)
{
    static const double top = 88, bottom = 352;
    const double width = sheet->priced ? 1100 : 660, legend = bottom + 56;
    const double height = plan_draw_legend(sheet, legend, width, true) + 12;
    const char *title = sheet->picture->title ? sheet->picture->title : "";
    char *best = NULL;
    int status = describe_best(&best, sheet);
    if (status < 0)
        return status;
    FILE *file = sheet->file;
    fprintf(file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%g\" height=\"%g\" viewBox=\"0 0 %g %g\" role=\"img\" "
            "font-family=\"Helvetica, Arial, 'DejaVu Sans', sans-serif\" font-size=\"11\" fill=\"#111\">\n"
            "<title>",
            width, height, width, height);
    plan_svg_text(file, title, 400);
    fputs("</title>\n<desc>", file);
    plan_svg_text(file, best, 400);
    fputs(
        "</"
        "desc>\n<style>.tick{font-size:11px}.head{font-size:12px;font-weight:bold}.grid{stroke:#e2e2e2;stroke-width:1}"
        ".frame{fill:none;stroke:#555;stroke-width:1}.limit{stroke:#111;stroke-width:1.2;stroke-dasharray:5 "
        "4;fill:none}"
        ".front{stroke:#111;stroke-width:1.6;fill:none;stroke-linejoin:miter}.ring{stroke:#111;stroke-width:2;fill:"
        "none}</style>\n",
        file);
    fprintf(file, "<rect width=\"%g\" height=\"%g\" fill=\"#fff\"/>\n", width, height);
    write_text(file, "font-size=\"15\" font-weight=\"bold\"", 27, title, (int)((width - 32) / (15 * 0.62)));
    write_text(file, "font-size=\"12\"", 48, best, (int)((width - 32) / (12 * 0.58)));
    plan_draw_panels(sheet, top, bottom);
    plan_draw_legend(sheet, legend, width, false);
    fputs("</svg>\n", file);
    base_free(&best);
    return SHOAL_OK;
}

static int find_front(plan_sheet *sheet)
{
    const plan_picture *picture = sheet->picture;
    plan_tradeoff *outcome = NULL;
    int status = base_alloc(&outcome, (size_t)picture->points, sizeof *outcome, "the Pareto front");
    for (int64_t i = 0; i < picture->points && status == SHOAL_OK; i++)
        outcome[i] = (plan_tradeoff){picture->point[i].seconds, picture->point[i].dollars};
    if (status == SHOAL_OK)
        status = plan_pareto(sheet->front, outcome, picture->points);
    base_free(&outcome);
    return status;
}

static int prepare(plan_sheet *sheet)
{
    size_t points = (size_t)sheet->picture->points;
    int status = base_alloc(&sheet->front, points, sizeof *sheet->front, "the Pareto front");
    if (status == SHOAL_OK)
        status = base_alloc(&sheet->order, points, sizeof *sheet->order, "the order of points");
    if (status == SHOAL_OK)
        status = base_alloc(&sheet->steps, points, sizeof *sheet->steps, "the Pareto front");
    if (status == SHOAL_OK)
        status = base_alloc(&sheet->group, points, sizeof *sheet->group, "the machines of a plan");
    if (status == SHOAL_OK)
        status = find_front(sheet);
    if (status == SHOAL_OK)
        status = sort_points(sheet);
    if (status == SHOAL_OK) {
        name_groups(sheet);
        list_steps(sheet);
    }
    return status;
}

int plan_picture_write(const char *path, const plan_picture *picture)
{
    plan_sheet sheet = {.picture = picture};
    base_output *output = NULL;
    int status = prepare(&sheet);
    if (status == SHOAL_OK)
        status = base_output_open(&output, path);
    if (status == SHOAL_OK) {
        sheet.file = base_output_stream(output);
        locale_t before = uselocale(base_plain_locale()); /* coordinates have points */
        status = write_svg(&sheet);
        uselocale(before);
    }
    if (status == SHOAL_OK)
        status = base_output_commit(&output);
    base_output_discard(&output);
    base_free(&sheet.front);
    base_free(&sheet.order);
    base_free(&sheet.steps);
    base_free(&sheet.group);
    return status;
}
