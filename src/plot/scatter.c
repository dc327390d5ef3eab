/* Scatter plots.  See scatter.h. */
#include "scatter.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <shoal/error.h>

#include "base/memory.h"

enum {
    HEIGHT = 600,
    FRAME_WIDTH = 680,
    LEFT = 76,
    TOP = 46,
    BOTTOM = 548,
    MARGIN = 20,
    LEGEND_MOST = 24,   /* groups in a legend */
    NUMBERED_MOST = 100 /* centres with a number */
};

typedef struct scatter {
    const plot_scatter *what;
    plot_canvas *canvas;
    plot_box box;
    plot_axis axis[2];
    double radius; /* of a point */
} scatter;

/* ---- where points lie -------------------------------------------------------------------------------------------- */

static bool is_drawn(const plot_scatter *what, int64_t i)
{
    return what->group[i] >= 0 && what->group[i] < what->groups && isfinite(what->places[2 * i]) &&
           isfinite(what->places[2 * i + 1]);
}

static double coordinate(const plot_scatter *what, int64_t i, int axis)
{
    return what->offset[axis] + what->factor[axis] * what->places[2 * i + axis];
}

static plot_xy on_canvas(const scatter *in, double x, double y)
{
    return (plot_xy){plot_axis_place(&in->axis[0], x), plot_axis_place(&in->axis[1], y)};
}

static void find_axes(scatter *in)
{
    const plot_scatter *what = in->what;
    double least[2] = {INFINITY, INFINITY}, greatest[2] = {-INFINITY, -INFINITY};
    for (int64_t i = 0; i < what->count; i++)
        for (int k = 0; k < 2 && is_drawn(what, i); k++) {
            least[k] = fmin(least[k], coordinate(what, i, k));
            greatest[k] = fmax(greatest[k], coordinate(what, i, k));
        }
    for (int64_t g = 0; g < what->groups; g++) {
        const double at[2] = {what->centres[g].x, what->centres[g].y};
        for (int k = 0; k < 2 && isfinite(at[0]) && isfinite(at[1]); k++) {
            least[k] = fmin(least[k], at[k]);
            greatest[k] = fmax(greatest[k], at[k]);
        }
    }
    plot_axis_init(&in->axis[0], least[0], greatest[0], in->box.left, in->box.right);
    plot_axis_init(&in->axis[1], least[1], greatest[1], in->box.bottom, in->box.top);
}

/* Smaller where there are more. */
static double choose_radius(int64_t count)
{
    return fmin(fmax(3.6 * pow((double)count / 300, -0.22), 0.5), 4.5);
}

/* ---- a few points ------------------------------------------------------------------------------------------------ */

static int draw_marks(const scatter *in)
{
    const plot_scatter *what = in->what;
    plot_xy *points = NULL;
    int status = base_alloc(&points, (size_t)what->count, sizeof *points, "a plot");
    for (int64_t colour = 0; colour < PLOT_COLOURS && status == SHOAL_OK; colour++) {
        int64_t count = 0;
        for (int64_t i = 0; i < what->count; i++)
            if (is_drawn(what, i) && what->group[i] % PLOT_COLOURS == colour)
                points[count++] = on_canvas(in, coordinate(what, i, 0), coordinate(what, i, 1));
        if (count > 0)
            plot_dots(in->canvas, points, count, in->radius,
                      (plot_paint){.filled = true, .fill = plot_colour(colour), .opacity = 0.7});
    }
    base_free(&points);
    return status;
}

/* ---- many points ------------------------------------------------------------------------------------------------- */

typedef struct pixel {
    uint64_t count, red, green, blue;
} pixel;

typedef struct density {
    pixel *pixels;
    int width, height;
    int reach; /* pixels that a point covers on each side of its own */
    double square;
} density;

/* Raises all pixels of a point. */
static void add_point(density *in, int x, int y, plot_rgb colour)
{
    for (int dy = -in->reach; dy <= in->reach; dy++)
        for (int dx = -in->reach; dx <= in->reach; dx++) {
            if (dx * dx + dy * dy > in->square || x + dx < 0 || x + dx >= in->width || y + dy < 0 ||
                y + dy >= in->height)
                continue;
            pixel *at = &in->pixels[(int64_t)(y + dy) * in->width + x + dx];
            at->count++;
            at->red += colour >> 16;
            at->green += colour >> 8 & 0xff;
            at->blue += colour & 0xff;
        }
}

static void add_points(density *into, const scatter *in)
{
    const plot_scatter *what = in->what;
    for (int64_t i = 0; i < what->count; i++) {
        if (!is_drawn(what, i))
            continue;
        const plot_xy at = on_canvas(in, coordinate(what, i, 0), coordinate(what, i, 1));
        add_point(into, (int)((at.x - in->box.left) * PLOT_SCALE), (int)((at.y - in->box.top) * PLOT_SCALE),
                  plot_colour(what->group[i]));
    }
}

static int compare_counts(const void *a, const void *b)
{
    const uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

/* The count that is shown fully opaque: that of the densest percent, so that one place where thousands of points are
 * equal does not make all else pale. */
static int find_most(uint64_t *most, const density *in)
{
    const int64_t pixels = (int64_t)in->width * in->height;
    uint64_t *counts = NULL;
    int64_t used = 0;
    int status = base_alloc(&counts, (size_t)pixels, sizeof *counts, "a plot");
    if (status < 0)
        return status;
    for (int64_t i = 0; i < pixels; i++)
        if (in->pixels[i].count > 0)
            counts[used++] = in->pixels[i].count;
    qsort(counts, (size_t)used, sizeof *counts, compare_counts);
    *most = used > 0 ? counts[used - 1 - used / 100] : 1;
    base_free(&counts);
    return SHOAL_OK;
}

/* Few levels, so that files are small. */
static unsigned char choose_opacity(uint64_t count, uint64_t most)
{
    enum { LEVELS = 24 };
    const double least = 0.3, share = count >= most ? 1 : log1p((double)count - 1) / log1p((double)most - 1);
    return (unsigned char)lrint(255 * (least + (1 - least) * rint(LEVELS * share) / LEVELS));
}

static unsigned char mean_of(uint64_t sum, uint64_t count)
{
    enum { STEP = 4 };
    return (unsigned char)fmin(rint((double)sum / (double)count / STEP) * STEP, 255);
}

static int draw_pixels(const scatter *in, const density *from)
{
    const int64_t pixels = (int64_t)from->width * from->height;
    unsigned char *rgba = NULL;
    uint64_t most = 1;
    int status = find_most(&most, from);
    if (status == SHOAL_OK)
        status = base_alloc(&rgba, (size_t)pixels, 4, "a plot");
    if (status < 0)
        return status;
    for (int64_t i = 0; i < pixels; i++) {
        const pixel *at = &from->pixels[i];
        if (at->count == 0)
            continue;
        rgba[4 * i] = mean_of(at->red, at->count);
        rgba[4 * i + 1] = mean_of(at->green, at->count);
        rgba[4 * i + 2] = mean_of(at->blue, at->count);
        rgba[4 * i + 3] = choose_opacity(at->count, most);
    }
    plot_raster(in->canvas, in->box, rgba, from->width, from->height);
    base_free(&rgba);
    return SHOAL_OK;
}

static int draw_density(const scatter *in)
{
    const double reach = in->radius * PLOT_SCALE;
    density counted = {.width = (int)(in->box.right - in->box.left) * PLOT_SCALE,
                       .height = (int)(in->box.bottom - in->box.top) * PLOT_SCALE,
                       .reach = (int)reach,
                       .square = reach * reach};
    int status = base_alloc(&counted.pixels, (size_t)counted.width, (size_t)counted.height * sizeof(pixel), "a plot");
    if (status == SHOAL_OK) {
        add_points(&counted, in);
        status = draw_pixels(in, &counted);
    }
    base_free(&counted.pixels);
    return status;
}

/* ---- centres, legend --------------------------------------------------------------------------------------------- */

/* Discs with numbers while there is room for these, then small ones without. */
static void draw_centres(const scatter *in)
{
    const plot_scatter *what = in->what;
    const bool numbered = what->groups <= NUMBERED_MOST;
    const plot_paint paint = {.filled = true, .fill = 0xffffff, .width = numbered ? 1.5 : 1.2, .line = 0x111111};
    for (int64_t g = 0; g < what->groups; g++) {
        const plot_xy at = on_canvas(in, what->centres[g].x, what->centres[g].y);
        char number[24];
        snprintf(number, sizeof number, "%" PRId64, g);
        plot_dots(in->canvas, &at, 1, numbered ? g < 10 ? 8 : 9.5 : 2.5, paint);
        if (numbered)
            plot_text(in->canvas, (plot_xy){at.x, at.y + 3.9}, number, 8,
                      (plot_font){.size = 11, .anchor = PLOT_MIDDLE, .bold = true, .colour = 0x111111});
    }
}

typedef struct legend {
    plot_entry entry[LEGEND_MOST];
    char text[LEGEND_MOST][48];
    int64_t count;
} legend;

static void make_legend(legend *out, const plot_scatter *what)
{
    int64_t sizes[LEGEND_MOST] = {0};
    *out = (legend){.count = what->groups <= LEGEND_MOST ? what->groups : 0};
    for (int64_t i = 0; i < what->count && out->count > 0; i++)
        if (what->group[i] >= 0 && what->group[i] < what->groups)
            sizes[what->group[i]]++;
    for (int64_t g = 0; g < out->count; g++) {
        snprintf(out->text[g], sizeof out->text[g], "%" PRId64 ": %" PRId64 " row%s", g, sizes[g],
                 sizes[g] == 1 ? "" : "s");
        out->entry[g] = (plot_entry){out->text[g], plot_colour(g), PLOT_ENTRY_DOT};
    }
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

int plot_scatter_new(plot_canvas **out, const plot_scatter *what)
{
    scatter in = {.what = what, .box = {LEFT, TOP, LEFT + FRAME_WIDTH, BOTTOM}, .radius = choose_radius(what->count)};
    const plot_box beside = {in.box.right + MARGIN, TOP, in.box.right + 400, BOTTOM};
    legend entries;
    make_legend(&entries, what);
    const double width = entries.count > 0 ? plot_legend(NULL, &beside, entries.entry, entries.count) + MARGIN : 0;
    int status = plot_canvas_new(&in.canvas, ceil(in.box.right + width + MARGIN), HEIGHT, what->title);
    if (status < 0)
        return status;
    find_axes(&in);
    plot_frame(in.canvas, &in.box, &in.axis[0], &in.axis[1], what->axis[0], what->axis[1]);
    plot_clip(in.canvas, &in.box);
    status = what->count <= PLOT_SCATTER_MARKS ? draw_marks(&in) : draw_density(&in);
    plot_clip(in.canvas, NULL);
    draw_centres(&in);
    plot_text(in.canvas, (plot_xy){LEFT, TOP - 16}, what->title, 70, (plot_font){.size = 14, .bold = true});
    if (what->note)
        plot_text(in.canvas, (plot_xy){in.box.right, TOP - 6}, what->note, 80,
                  (plot_font){.size = 10, .anchor = PLOT_END, .colour = 0x666666});
    plot_legend(in.canvas, &beside, entries.entry, entries.count);
    if (status < 0)
        plot_canvas_free(&in.canvas);
    *out = in.canvas;
    return status;
}
