/* A canvas as PNG.  Each mark is first drawn as how much of each pixel it covers, by the distance of the pixel from
 * what is drawn; then its colour is laid over what is there.  So ends and overlaps of its parts do not show. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <shoal/error.h>

#include "base/memory.h"
#include "base/text.h"
#include "canvas.h"
#include "data/image/png_write.h"

static const double capital_height = 0.72, pen_plain = 0.085, pen_bold = 0.13; /* parts of a font's size */

typedef struct surface {
    int width, height;
    unsigned char *pixels;        /* red, green, blue */
    unsigned char *covered;       /* by the mark that is being drawn */
    int left, top, right, bottom; /* where that may be other than 0 */
    double *row;                  /* of width + 2: what a row of a filled line has more than the pixel to the left */
} surface;

/* ---- what is covered --------------------------------------------------------------------------------------------- */

typedef struct region {
    int left, top, right, bottom;
} region;

/* The pixels that a box touches, and that are there; noted as touched. */
static region touch(surface *on, double left, double top, double right, double bottom)
{
    region r = {(int)fmax(floor(left), 0), (int)fmax(floor(top), 0), (int)fmin(ceil(right), on->width),
                (int)fmin(ceil(bottom), on->height)};
    if (r.left < r.right && r.top < r.bottom) {
        on->left = r.left < on->left ? r.left : on->left;
        on->top = r.top < on->top ? r.top : on->top;
        on->right = r.right > on->right ? r.right : on->right;
        on->bottom = r.bottom > on->bottom ? r.bottom : on->bottom;
    }
    return r;
}

static void cover(surface *on, int x, int y, double share)
{
    unsigned char *covered = &on->covered[(size_t)y * (size_t)on->width + (size_t)x];
    const unsigned char value = (unsigned char)(share >= 1 ? 255 : share > 0 ? lrint(share * 255) : 0);
    *covered = value > *covered ? value : *covered;
}

static plot_xy scaled(plot_xy at)
{
    return (plot_xy){at.x * PLOT_SCALE, at.y * PLOT_SCALE};
}

/* A line with round ends; `reach` is half its width. */
static void cover_line(surface *on, plot_xy a, plot_xy b, double reach)
{
    const double dx = b.x - a.x, dy = b.y - a.y, squared = dx * dx + dy * dy;
    const region r = touch(on, fmin(a.x, b.x) - reach - 1, fmin(a.y, b.y) - reach - 1, fmax(a.x, b.x) + reach + 1,
                           fmax(a.y, b.y) + reach + 1);
    for (int y = r.top; y < r.bottom; y++)
        for (int x = r.left; x < r.right; x++) {
            const double px = x + 0.5 - a.x, py = y + 0.5 - a.y;
            const double along = squared > 0 ? fmin(fmax((px * dx + py * dy) / squared, 0), 1) : 0;
            const double ox = px - along * dx, oy = py - along * dy;
            cover(on, x, y, reach + 0.5 - sqrt(ox * ox + oy * oy));
        }
}

/* A disc, or with a `reach` the ring along its edge. */
static void cover_circle(surface *on, plot_xy at, double radius, double reach)
{
    const double far = radius + reach + 1;
    const region r = touch(on, at.x - far, at.y - far, at.x + far, at.y + far);
    for (int y = r.top; y < r.bottom; y++)
        for (int x = r.left; x < r.right; x++) {
            const double px = x + 0.5 - at.x, py = y + 0.5 - at.y, distance = sqrt(px * px + py * py);
            cover(on, x, y, reach > 0 ? reach + 0.5 - fabs(distance - radius) : radius + 0.5 - distance);
        }
}

static void cover_box(surface *on, plot_box box)
{
    const region r = touch(on, box.left, box.top, box.right, box.bottom);
    for (int y = r.top; y < r.bottom; y++)
        for (int x = r.left; x < r.right; x++)
            cover(on, x, y,
                  (fmin(box.right, x + 1) - fmax(box.left, x)) * (fmin(box.bottom, y + 1) - fmax(box.top, y)));
}

/* Dashes along a line whose start lies `*done` behind the first dash. */
static void cover_dashes(surface *on, const char *dash, plot_xy a, plot_xy b, double reach, double *done)
{
    const double length = hypot(b.x - a.x, b.y - a.y);
    double part[8], period = 0, at;
    int parts = 0;
    for (char *end; *dash && parts < 8; dash = end, period += part[parts++])
        part[parts] = strtod(dash, &end) * PLOT_SCALE;
    at = -fmod(*done, period);
    for (int i = 0; at < length; at += part[i], i = (i + 1) % parts) {
        const double from = fmax(at, 0), to = fmin(at + part[i], length);
        if (i % 2 == 0 && from < to)
            cover_line(on, (plot_xy){a.x + (b.x - a.x) * from / length, a.y + (b.y - a.y) * from / length},
                       (plot_xy){a.x + (b.x - a.x) * to / length, a.y + (b.y - a.y) * to / length}, reach);
    }
    *done += length;
}

/* What an edge has to its right in one row of pixels, at `y` between them: all pixels from where it crosses that. */
static void cross_edge(surface *on, plot_xy a, plot_xy b, double y, double share)
{
    if ((a.y <= y) == (b.y <= y))
        return;
    const double x = fmin(fmax(a.x + (y - a.y) / (b.y - a.y) * (b.x - a.x), 0), on->width), whole = floor(x);
    share = a.y < b.y ? share : -share;
    on->row[(int)whole] += share * (whole + 1 - x);
    on->row[(int)whole + 1] += share * (x - whole);
}

/* What a line encloses.  Each part of it is closed. */
static void cover_inside(surface *on, const plot_mark *mark)
{
    enum { LINES = 4 }; /* that are looked at in a row of pixels */
    plot_box all = {INFINITY, INFINITY, -INFINITY, -INFINITY};
    for (int64_t i = 0; i < mark->count; i++) { /* NaN is passed over */
        const plot_xy at = scaled(mark->points[i]);
        all = (plot_box){fmin(all.left, at.x), fmin(all.top, at.y), fmax(all.right, at.x), fmax(all.bottom, at.y)};
    }
    if (!(all.left <= all.right)) /* there is nothing */
        return;
    const region r = touch(on, all.left, all.top, all.right, all.bottom);
    for (int y = r.top; y < r.bottom; y++) {
        memset(on->row, 0, ((size_t)on->width + 2) * sizeof *on->row);
        for (int64_t i = 0, first = 0; i < mark->count; i++) {
            const bool last = i + 1 == mark->count || isnan(mark->points[i + 1].x);
            const plot_xy a = scaled(mark->points[i]), b = scaled(mark->points[last ? first : i + 1]);
            for (int line = 0; line < LINES && !isnan(a.x); line++)
                cross_edge(on, a, b, y + (line + 0.5) / LINES, 1.0 / LINES);
            first = isnan(a.x) || last ? i + 1 : first;
        }
        double share = 0;
        for (int x = 0; x < r.right; x++) {
            share += on->row[x];
            if (x >= r.left)
                cover(on, x, y, fabs(share));
        }
    }
}

/* ---- colours ----------------------------------------------------------------------------------------------------- */

static void blend(unsigned char *pixel, const unsigned char colour[3], double share)
{
    for (int c = 0; c < 3; c++)
        pixel[c] = (unsigned char)lrint(pixel[c] + (colour[c] - pixel[c]) * share);
}

/* The part of a region that a mark may paint. */
static region clip_region(const plot_mark *mark, region r)
{
    if (!mark->clipped)
        return r;
    const double left = rint(mark->clip.left * PLOT_SCALE), top = rint(mark->clip.top * PLOT_SCALE),
                 right = rint(mark->clip.right * PLOT_SCALE), bottom = rint(mark->clip.bottom * PLOT_SCALE);
    return (region){(int)fmax(r.left, left), (int)fmax(r.top, top), (int)fmin(r.right, right),
                    (int)fmin(r.bottom, bottom)};
}

/* Lays a colour over what is covered, and starts anew. */
static void paint(surface *on, const plot_mark *mark, plot_rgb rgb, double opacity)
{
    const unsigned char colour[3] = {(unsigned char)(rgb >> 16), (unsigned char)(rgb >> 8), (unsigned char)rgb};
    const region r = clip_region(mark, (region){on->left, on->top, on->right, on->bottom});
    for (int y = r.top; y < r.bottom; y++)
        for (int x = r.left; x < r.right; x++) {
            const size_t at = (size_t)y * (size_t)on->width + (size_t)x;
            if (on->covered[at])
                blend(&on->pixels[3 * at], colour, on->covered[at] * opacity / 255);
        }
    for (int y = on->top; y < on->bottom; y++)
        memset(&on->covered[(size_t)y * (size_t)on->width + (size_t)on->left], 0, (size_t)(on->right - on->left));
    on->left = on->width;
    on->top = on->height;
    on->right = on->bottom = 0;
}

/* ---- marks ------------------------------------------------------------------------------------------------------- */

static void draw_line(surface *on, const plot_mark *mark)
{
    const double reach = mark->paint.width * PLOT_SCALE / 2;
    double done = 0;
    if (mark->paint.filled) {
        cover_inside(on, mark);
        if (mark->paint.fill != mark->paint.line) /* otherwise it is one with its edge, opacity included */
            paint(on, mark, mark->paint.fill, mark->paint.opacity);
    }
    for (int64_t i = 1; i < mark->count && reach > 0; i++) {
        const plot_xy a = scaled(mark->points[i - 1]), b = scaled(mark->points[i]);
        if (isnan(a.x) || isnan(b.x))
            done = 0;
        else if (mark->paint.dash)
            cover_dashes(on, mark->paint.dash, a, b, reach, &done);
        else
            cover_line(on, a, b, reach);
    }
    paint(on, mark, mark->paint.line, mark->paint.opacity);
}

static void draw_dots(surface *on, const plot_mark *mark)
{
    const double radius = mark->radius * PLOT_SCALE, reach = mark->paint.width * PLOT_SCALE / 2;
    for (int64_t i = 0; i < mark->count && mark->paint.filled; i++)
        cover_circle(on, scaled(mark->points[i]), radius, 0);
    paint(on, mark, mark->paint.fill, mark->paint.opacity);
    for (int64_t i = 0; i < mark->count && reach > 0; i++)
        cover_circle(on, scaled(mark->points[i]), radius, reach);
    paint(on, mark, mark->paint.line, mark->paint.opacity);
}

static void draw_rectangle(surface *on, const plot_mark *mark)
{
    const plot_xy a = scaled((plot_xy){mark->box.left, mark->box.top}),
                  b = scaled((plot_xy){mark->box.right, mark->box.bottom});
    if (mark->paint.filled)
        cover_box(on, (plot_box){a.x, a.y, b.x, b.y});
    paint(on, mark, mark->paint.fill, mark->paint.opacity);
    const plot_xy corner[5] = {a, {b.x, a.y}, b, {a.x, b.y}, a};
    for (int i = 0; i < 4 && mark->paint.width > 0; i++)
        cover_line(on, corner[i], corner[i + 1], mark->paint.width * PLOT_SCALE / 2);
    paint(on, mark, mark->paint.line, mark->paint.opacity);
}

static void draw_raster(surface *on, const plot_mark *mark)
{
    const plot_xy a = scaled((plot_xy){mark->box.left, mark->box.top}),
                  b = scaled((plot_xy){mark->box.right, mark->box.bottom});
    const region r = clip_region(mark, (region){(int)fmax(rint(a.x), 0), (int)fmax(rint(a.y), 0),
                                                (int)fmin(rint(b.x), on->width), (int)fmin(rint(b.y), on->height)});
    for (int y = r.top; y < r.bottom; y++)
        for (int x = r.left; x < r.right; x++) {
            const int64_t across = (int64_t)((x + 0.5 - a.x) / (b.x - a.x) * (double)mark->width),
                          down = (int64_t)((y + 0.5 - a.y) / (b.y - a.y) * (double)mark->height);
            if (across < 0 || across >= mark->width || down < 0 || down >= mark->height)
                continue;
            const unsigned char *from = mark->pixels + 4 * (down * mark->width + across);
            blend(&on->pixels[3 * ((size_t)y * (size_t)on->width + (size_t)x)], from, from[3] / 255.0);
        }
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

typedef struct writing {
    surface *on;
    plot_xy start; /* of the text */
    double along;  /* of the letter, in heights of capitals */
    double height; /* of a capital, in pixels */
    double reach;  /* half of the pen */
    bool upwards;
} writing;

static plot_xy place(const writing *in, plot_xy at)
{
    const double along = (in->along + at.x) * in->height, down = at.y * in->height;
    return in->upwards ? (plot_xy){in->start.x + down, in->start.y - along}
                       : (plot_xy){in->start.x + along, in->start.y + down};
}

static void write_stroke(void *context, plot_xy from, plot_xy to)
{
    const writing *in = context;
    cover_line(in->on, place(in, from), place(in, to), in->reach);
}

static void measure_stroke(void *context, plot_xy from, plot_xy to)
{
    (void)context, (void)from, (void)to;
}

static void write_letters(writing *in, const char *text, plot_stroke *stroke)
{
    in->along = 0;
    for (uint32_t letter; *text;) {
        text += base_text_letter(&letter, text);
        in->along += plot_letter(letter, stroke, in);
    }
}

static void draw_text(surface *on, const plot_mark *mark)
{
    static const double before[] = {[PLOT_START] = 0, [PLOT_MIDDLE] = 0.5, [PLOT_END] = 1};
    const plot_font *font = &mark->font;
    const double size = font->size * PLOT_SCALE, halo = 1.5 * PLOT_SCALE;
    const double pen = size * (font->bold ? pen_bold : pen_plain) / 2;
    writing in = {.on = on,
                  .start = scaled(mark->points[0]),
                  .height = size * capital_height,
                  .reach = pen,
                  .upwards = font->upwards};
    write_letters(&in, mark->text, measure_stroke);
    const double length = in.along * in.height * before[font->anchor];
    in.start.x -= font->upwards ? 0 : length;
    in.start.y += font->upwards ? length : 0;
    if (font->halo) {
        in.reach = pen + halo;
        write_letters(&in, mark->text, write_stroke);
        paint(on, mark, 0xffffff, 1);
        in.reach = pen;
    }
    write_letters(&in, mark->text, write_stroke);
    paint(on, mark, font->colour, 1);
}

/* ---- the file ---------------------------------------------------------------------------------------------------- */

static void draw_mark(surface *on, const plot_mark *mark)
{
    switch (mark->kind) {
    case PLOT_LINE: draw_line(on, mark); break;
    case PLOT_RECTANGLE: draw_rectangle(on, mark); break;
    case PLOT_DOTS: draw_dots(on, mark); break;
    case PLOT_TEXT: draw_text(on, mark); break;
    case PLOT_RASTER: draw_raster(on, mark); break;
    }
}

static void fill_line(void *context, unsigned char *line, int64_t y)
{
    const surface *from = context;
    memcpy(line, from->pixels + y * 3 * from->width, (size_t)(3 * from->width));
}

int plot_write_png(base_output *output, const char *path, const plot_canvas *canvas)
{
    surface on = {.width = (int)ceil(canvas->width * PLOT_SCALE), .height = (int)ceil(canvas->height * PLOT_SCALE)};
    const size_t count = (size_t)on.width * (size_t)on.height;
    on.left = on.width;
    on.top = on.height;
    int status = base_alloc(&on.pixels, count, 3, "a plot");
    if (status == SHOAL_OK)
        status = base_alloc(&on.covered, count, 1, "a plot");
    if (status == SHOAL_OK)
        status = base_alloc(&on.row, (size_t)on.width + 2, sizeof *on.row, "a plot");
    if (status == SHOAL_OK) {
        memset(on.pixels, 255, 3 * count);
        for (int64_t i = 0; i < canvas->marks; i++)
            draw_mark(&on, &canvas->mark[i]);
        status = data_png_write(output, path, &(data_png){on.width, on.height, 3, fill_line, &on});
    }
    base_free(&on.row);
    base_free(&on.covered);
    base_free(&on.pixels);
    return status;
}
