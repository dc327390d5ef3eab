/* Weights as small images.  See sheet.h. */
#include "sheet.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <shoal/error.h>

#include "base/memory.h"

enum {
    MARGIN = 20,
    TOP = 52,
    GAP = 14,
    CAPTION = 16,
    SIDE_LEAST = 96, /* of an image whose scale nobody chose */
    SIDE_MOST = 10000,
    SCALE_WIDTH = 220,
    SCALE_HEIGHT = 12,
    SCALE_ROOM = 56,
    STEPS = 201
};

typedef struct sheet {
    const plot_sheet *what;
    plot_canvas *canvas;
    plot_xy corner;
    int64_t across, down;
    double width, height; /* of an image */
    double step;          /* from one image to the next, to the right */
    double most;          /* the magnitude that has the darkest colour */
    bool beyond;          /* some are greater */
} sheet;

/* ---- colours ----------------------------------------------------------------------------------------------------- */

/* From -1 to 1; both halves grow darker alike, so that they are told apart by people with any kind of sight, and 0 from
 * both also without colours. */
static plot_rgb colour_of(double share)
{
    static const double red[3] = {0xa0, 0x0f, 0x20}, blue[3] = {0x0b, 0x3f, 0x8c};
    const double *end = share > 0 ? red : blue, strength = fmin(fabs(share), 1);
    plot_rgb out = 0;
    for (int c = 0; c < 3; c++) {
        const double middle = (255 + end[c]) / 2 + (end[c] > 100 ? 40 : 0); /* so that the way there is bright */
        const double value =
            strength < 0.5 ? 255 + 2 * strength * (middle - 255) : middle + (2 * strength - 1) * (end[c] - middle);
        out = out << 8 | (plot_rgb)lrint(fmin(value, 255));
    }
    return out;
}

static void set_pixel(unsigned char rgba[4], const sheet *in, const double *value)
{
    const double scale = in->most > 0 ? in->most : 1;
    const plot_rgb colour = isfinite(value[0]) ? colour_of(value[0] / scale) : 0xffffff;
    for (int c = 0; c < 3; c++)
        rgba[c] =
            in->what->channels == 3
                ? (unsigned char)(isfinite(value[c]) ? lrint(127.5 + 127.5 * fmin(fmax(value[c] / scale, -1), 1)) : 128)
                : (unsigned char)(colour >> (16 - 8 * c));
    rgba[3] = 255;
}

static void set_colours(unsigned char rgba[4], const unsigned char *colours)
{
    for (int c = 0; c < 3; c++)
        rgba[c] = colours[c];
    rgba[3] = 255;
}

/* ---- sizes ------------------------------------------------------------------------------------------------------- */

static int choose_sizes(sheet *in)
{
    const plot_sheet *what = in->what;
    const int64_t side = what->width > what->height ? what->width : what->height;
    const double scale = what->scale > 0 ? what->scale / PLOT_SCALE : fmax(ceil((double)SIDE_LEAST / (double)side), 1);
    in->width = scale * (double)what->width;
    in->height = scale * (double)what->height;
    in->step = fmax(in->width, 40) + GAP;
    const double square = ceil(sqrt((double)what->images * in->height / in->width) - 1e-9);
    in->across = what->across > 0 ? what->across : (int64_t)fmax(square, 1);
    in->across = in->across < what->images ? in->across : what->images;
    in->down = (what->images - 1) / in->across + 1;
    if (in->step * (double)in->across > SIDE_MOST || (in->height + CAPTION + GAP) * (double)in->down > SIDE_MOST)
        return shoal_fail(SHOAL_USAGE,
                          "%lld images of %lldx%lld values are too many, or too large, for one picture: choose a "
                          "smaller --picture-scale",
                          (long long)what->images, (long long)what->height, (long long)what->width);
    return SHOAL_OK;
}

static int compare_numbers(const void *a, const void *b)
{
    const double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

/* Of the magnitudes that are not 0, the greatest in a hundred are shown alike: a pixel that is hardly ever used may
 * have a weight so great that beside it all others would be white. */
static int find_most(sheet *in)
{
    const plot_sheet *what = in->what;
    const int64_t values = what->images * what->height * what->width * what->channels;
    double *magnitudes = NULL;
    int64_t count = 0;
    int status = base_alloc(&magnitudes, (size_t)values, sizeof *magnitudes, "a picture");
    if (status < 0)
        return status;
    for (int64_t i = 0; i < values; i++)
        if (isfinite(what->values[i]) && what->values[i] != 0)
            magnitudes[count++] = fabs(what->values[i]);
    qsort(magnitudes, (size_t)count, sizeof *magnitudes, compare_numbers);
    if (count > 0) {
        in->most = magnitudes[count - 1 - count / 100];
        in->beyond = magnitudes[count - 1] > in->most;
    }
    base_free(&magnitudes);
    return SHOAL_OK;
}

/* ---- drawing ----------------------------------------------------------------------------------------------------- */

static int draw_images(const sheet *in)
{
    const plot_sheet *what = in->what;
    const int64_t pixels = what->height * what->width;
    unsigned char *rgba = NULL;
    int status = base_alloc(&rgba, (size_t)pixels, 4, "a picture");
    for (int64_t i = 0; i < what->images && status == SHOAL_OK; i++) {
        const double left = in->corner.x + MARGIN + (double)(i % in->across) * in->step,
                     top = in->corner.y + TOP + CAPTION + (double)(i / in->across) * (in->height + CAPTION + GAP);
        const plot_box box = {left, top, left + in->width, top + in->height};
        for (int64_t p = 0; p < pixels; p++) {
            if (what->colours)
                set_colours(rgba + 4 * p, what->colours + (i * pixels + p) * 3);
            else
                set_pixel(rgba + 4 * p, in, what->values + (i * pixels + p) * what->channels);
        }
        plot_raster(in->canvas, box, rgba, what->width, what->height);
        plot_rectangle(in->canvas, box, (plot_paint){.line = 0xaaaaaa, .width = 0.8});
        plot_text(in->canvas, (plot_xy){left, top - 4}, what->names[i],
                  (int)((in->across > 1 ? in->step - 4 : fmax(in->step, SCALE_WIDTH)) / 6.6),
                  (plot_font){.size = 11, .colour = 0x333333});
    }
    base_free(&rgba);
    return status;
}

static void draw_scale(const sheet *in, double top)
{
    unsigned char rgba[4 * STEPS];
    char text[32];
    const double left = in->corner.x + MARGIN;
    const plot_box box = {left, top, left + SCALE_WIDTH, top + SCALE_HEIGHT};
    const plot_font small = {.size = 10, .anchor = PLOT_MIDDLE, .colour = 0x333333};
    for (int i = 0; i < STEPS; i++) {
        const double value = in->most * (2.0 * i / (STEPS - 1) - 1);
        set_pixel(rgba + 4 * i, in, (const double[3]){value, value, value});
    }
    plot_raster(in->canvas, box, rgba, STEPS, 1);
    plot_rectangle(in->canvas, box, (plot_paint){.line = 0x555555, .width = 0.8});
    plot_text(in->canvas, (plot_xy){(box.left + box.right) / 2, box.bottom + 14}, "0", 4, small);
    for (int end = -1; end <= 1 && in->most > 0; end += 2) {
        snprintf(text, sizeof text, "%.3g%s", end * in->most, !in->beyond ? "" : end < 0 ? " or less" : " or more");
        plot_text(in->canvas, (plot_xy){end < 0 ? box.left : box.right, box.bottom + 14}, text, 31,
                  (plot_font){.size = 10, .anchor = end < 0 ? PLOT_START : PLOT_END, .colour = 0x333333});
    }
}

/* Below the images. */
static double bottom_of(const sheet *in)
{
    return TOP + (double)in->down * (in->height + CAPTION + GAP);
}

static void measure_sheet(double *width, double *height, const sheet *in)
{
    const double right = fmax(fmax(MARGIN + (double)in->across * in->step - GAP, MARGIN + SCALE_WIDTH),
                              MARGIN + plot_text_width(in->what->title, 14));
    *width = ceil(right + MARGIN);
    *height = ceil(bottom_of(in) + (in->what->colours ? 0 : SCALE_ROOM));
}

static int draw_sheet(sheet *in)
{
    int status = in->what->colours ? SHOAL_OK : find_most(in);
    if (status < 0)
        return status;
    plot_text(in->canvas, (plot_xy){in->corner.x + MARGIN, in->corner.y + 28}, in->what->title, 100,
              (plot_font){.size = 14, .bold = true});
    status = draw_images(in);
    if (!in->what->colours)
        draw_scale(in, in->corner.y + bottom_of(in) + 6);
    return status;
}

int plot_sheet_measure(double *width, double *height, const plot_sheet *what)
{
    sheet in = {.what = what};
    int status = choose_sizes(&in);
    if (status == SHOAL_OK)
        measure_sheet(width, height, &in);
    return status;
}

int plot_sheet_draw(plot_canvas *canvas, plot_xy corner, const plot_sheet *what)
{
    sheet in = {.what = what, .canvas = canvas, .corner = corner};
    int status = choose_sizes(&in);
    return status == SHOAL_OK ? draw_sheet(&in) : status;
}

int plot_sheet_new(plot_canvas **out, const plot_sheet *what)
{
    double width = 0, height = 0;
    *out = NULL;
    int status = plot_sheet_measure(&width, &height, what);
    if (status == SHOAL_OK)
        status = plot_canvas_new(out, width, height, what->title);
    if (status == SHOAL_OK)
        status = plot_sheet_draw(*out, (plot_xy){0, 0}, what);
    if (status < 0)
        plot_canvas_free(out);
    return status;
}
