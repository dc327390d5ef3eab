/* Recording what is drawn.  See plot.h. */
#include "canvas.h"

#include <locale.h>
#include <math.h>
#include <string.h>

#include <shoal/error.h>

#include "base/memory.h"
#include "base/option.h"
#include "base/text.h"

int plot_canvas_new(plot_canvas **out, double width, double height, const char *title)
{
    plot_canvas *canvas = NULL;
    int status = base_alloc(&canvas, 1, sizeof *canvas, "a plot");
    if (status == SHOAL_OK) {
        canvas->width = width;
        canvas->height = height;
        status = base_copy_text(&canvas->title, title);
    }
    if (status < 0)
        plot_canvas_free(&canvas);
    *out = canvas;
    return status;
}

void plot_canvas_set_height(plot_canvas *canvas, double height)
{
    canvas->height = height;
}

void plot_canvas_free(plot_canvas **canvas)
{
    if (!*canvas)
        return;
    for (int64_t i = 0; i < (*canvas)->marks; i++) {
        base_free(&(*canvas)->mark[i].points);
        base_free(&(*canvas)->mark[i].text);
        base_free(&(*canvas)->mark[i].pixels);
    }
    base_free(&(*canvas)->mark);
    base_free(&(*canvas)->title);
    base_free(canvas);
}

void plot_clip(plot_canvas *canvas, const plot_box *box)
{
    canvas->clipped = box != NULL;
    canvas->clip = box ? *box : (plot_box){0};
}

/* A number that all arithmetic of drawing can do. */
static double bring_in(double value)
{
    const double far = 1e5;
    return isnan(value) ? value : fmin(fmax(value, -far), far);
}

/* NULL when there is no memory for it. */
static plot_mark *add_mark(plot_canvas *canvas, plot_mark mark)
{
    if (canvas->marks == canvas->capacity && canvas->status == SHOAL_OK) {
        const int64_t capacity = canvas->capacity ? 2 * canvas->capacity : 64;
        canvas->status =
            base_grow(&canvas->mark, (size_t)canvas->capacity, (size_t)capacity, sizeof *canvas->mark, "a plot");
        canvas->capacity = canvas->status == SHOAL_OK ? capacity : canvas->capacity;
    }
    if (canvas->status < 0)
        return NULL;
    mark.clipped = canvas->clipped;
    mark.clip = canvas->clip;
    mark.paint.opacity = mark.paint.opacity > 0 ? fmin(mark.paint.opacity, 1) : 1;
    canvas->mark[canvas->marks] = mark;
    return &canvas->mark[canvas->marks++];
}

/* Takes a copy of the points; those that are not finite stay, as NaN, where they break something. */
static void add_points(plot_canvas *canvas, plot_mark mark, const plot_xy *points, int64_t count, bool breaks)
{
    plot_mark *added = add_mark(canvas, mark);
    if (!added)
        return;
    canvas->status = base_alloc(&added->points, (size_t)count, sizeof *points, "a plot");
    for (int64_t i = 0; i < count && canvas->status == SHOAL_OK; i++) {
        const bool finite = isfinite(points[i].x) && isfinite(points[i].y);
        if (finite)
            added->points[added->count++] = (plot_xy){bring_in(points[i].x), bring_in(points[i].y)};
        else if (breaks)
            added->points[added->count++] = (plot_xy){NAN, NAN};
    }
}

void plot_line(plot_canvas *canvas, const plot_xy *points, int64_t count, plot_paint paint)
{
    add_points(canvas, (plot_mark){.kind = PLOT_LINE, .paint = paint}, points, count, true);
}

void plot_dots(plot_canvas *canvas, const plot_xy *centres, int64_t count, double radius, plot_paint paint)
{
    add_points(canvas, (plot_mark){.kind = PLOT_DOTS, .paint = paint, .radius = radius}, centres, count, false);
}

static bool bring_in_box(plot_box *box)
{
    *box = (plot_box){bring_in(box->left), bring_in(box->top), bring_in(box->right), bring_in(box->bottom)};
    return box->left <= box->right && box->top <= box->bottom; /* false for NaN too */
}

void plot_rectangle(plot_canvas *canvas, plot_box box, plot_paint paint)
{
    if (bring_in_box(&box))
        add_mark(canvas, (plot_mark){.kind = PLOT_RECTANGLE, .paint = paint, .box = box});
}

int plot_text_letters(const char *text)
{
    int count = 0;
    for (bool plain; *text; count++)
        text += base_text_next(&plain, text);
    return count;
}

double plot_text_width(const char *text, double size)
{
    return plot_text_letters(text) * size * 0.6;
}

/* What can be shown of a text, and an ellipsis for the rest. */
static int shorten(char **out, const char *text, int most)
{
    const bool cut = plot_text_letters(text) > most;
    bool plain;
    size_t end = 0;
    for (int i = 0; text[end] && i < most - cut; i++)
        end += base_text_next(&plain, text + end);
    int status = base_format(out, "%.*s%s", (int)end, text, cut ? "…" : "");
    if (status == SHOAL_OK)
        base_text_clean(*out);
    return status;
}

void plot_text(plot_canvas *canvas, plot_xy at, const char *text, int most, plot_font font)
{
    if (!isfinite(at.x) || !isfinite(at.y) || !*text)
        return;
    plot_mark *added = add_mark(canvas, (plot_mark){.kind = PLOT_TEXT, .font = font});
    if (!added)
        return;
    canvas->status = base_alloc(&added->points, 1, sizeof *added->points, "a plot");
    if (canvas->status == SHOAL_OK) {
        added->points[added->count++] = (plot_xy){bring_in(at.x), bring_in(at.y)};
        canvas->status = shorten(&added->text, text, most);
    }
}

void plot_raster(plot_canvas *canvas, plot_box box, const unsigned char *pixels, int64_t width, int64_t height)
{
    plot_mark *added = bring_in_box(&box) ? add_mark(canvas, (plot_mark){.kind = PLOT_RASTER, .box = box}) : NULL;
    if (!added)
        return;
    canvas->status = base_alloc(&added->pixels, (size_t)(width * height), 4, "a plot");
    if (canvas->status < 0)
        return;
    memcpy(added->pixels, pixels, (size_t)(width * height) * 4);
    added->width = width;
    added->height = height;
}

int plot_write(const plot_canvas *canvas, const char *path)
{
    base_output *output = NULL;
    if (canvas->status < 0)
        return shoal_fail(canvas->status, "%s: out of memory for a plot", path);
    int status = base_output_open(&output, path);
    if (status == SHOAL_OK) {
        locale_t before = uselocale(base_plain_locale()); /* coordinates have points */
        status = (base_text_ends(path, ".svg") ? plot_write_svg : plot_write_png)(output, path, canvas);
        uselocale(before);
    }
    if (status == SHOAL_OK)
        status = base_output_commit(&output);
    base_output_discard(&output);
    return status;
}
