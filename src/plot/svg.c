/* A canvas as SVG. */
#include <limits.h>
#include <math.h>
#include <string.h>

#include <shoal/error.h>

#include "base/text.h"
#include "canvas.h"
#include "data/image/picture.h"
#include "data/image/png_write.h"

enum { TITLE_MOST = 400 };

/* Text as XML has to have it, at most `most` characters: the end of a longer one becomes an ellipsis, and what can't be
 * shown '?'. */
static void write_escaped(FILE *file, const char *text, int most)
{
    static const char special[] = "&<>\"'", *const escaped[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
    bool cut = plot_text_letters(text) > most, plain;
    for (int i = 0; *text && i < most - cut; i++) {
        size_t length = base_text_next(&plain, text);
        const char *at = plain ? strchr(special, *text) : NULL;
        if (at)
            fputs(escaped[at - special], file);
        else
            fwrite(plain ? text : "?", 1, plain ? length : 1, file);
        text += length;
    }
    if (cut)
        fputs("…", file);
}

/* A coordinate in hundredths, without zeros that say nothing. */
static void write_number(FILE *file, const char *before, double value)
{
    char text[32];
    int length = snprintf(text, sizeof text, "%.2f", value);
    while (length > 0 && text[length - 1] == '0')
        length--;
    if (length > 0 && text[length - 1] == '.')
        length--;
    text[length] = '\0';
    fprintf(file, "%s%s", before, strcmp(text, "-0") == 0 ? "0" : text);
}

static void write_box(FILE *file, plot_box box)
{
    write_number(file, " x=\"", box.left);
    write_number(file, "\" y=\"", box.top);
    write_number(file, "\" width=\"", box.right - box.left);
    write_number(file, "\" height=\"", box.bottom - box.top);
    fputc('"', file);
}

static void write_line_style(FILE *file, plot_rgb colour, double width, const plot_paint *paint)
{
    fprintf(file, " stroke=\"#%06x\"", (unsigned)colour);
    write_number(file, " stroke-width=\"", width);
    fprintf(file, paint->dash ? "\" stroke-dasharray=\"%s\"" : "\"", paint->dash);
}

static void write_paint(FILE *file, const plot_paint *paint)
{
    if (paint->filled)
        fprintf(file, " fill=\"#%06x\"", (unsigned)paint->fill);
    else
        fputs(" fill=\"none\"", file);
    if (paint->width > 0)
        write_line_style(file, paint->line, paint->width, paint);
    if (paint->opacity < 1)
        write_number(file, " opacity=\"", paint->opacity), fputc('"', file);
    fputc('>', file);
}

static void write_line(FILE *file, const plot_mark *mark)
{
    bool broken = true;
    fputs("<path d=\"", file);
    for (int64_t i = 0; i < mark->count; i++) {
        if (!isnan(mark->points[i].x)) {
            write_number(file, broken ? "M" : "L", mark->points[i].x);
            write_number(file, " ", mark->points[i].y);
        }
        broken = isnan(mark->points[i].x);
    }
    fputc('"', file);
    write_paint(file, &mark->paint);
    fputs("</path>\n", file);
}

/* Without a line they are one path of lines without a length, whose round ends are what is seen. */
static void write_dots(FILE *file, const plot_mark *mark)
{
    const plot_paint *paint = &mark->paint;
    if (paint->width > 0) {
        fputs("<g", file);
        write_paint(file, paint);
        for (int64_t i = 0; i < mark->count; i++) {
            write_number(file, "<circle cx=\"", mark->points[i].x);
            write_number(file, "\" cy=\"", mark->points[i].y);
            write_number(file, "\" r=\"", mark->radius);
            fputs("\"/>", file);
        }
        fputs("</g>\n", file);
        return;
    }
    fputs("<path d=\"", file);
    for (int64_t i = 0; i < mark->count; i++) {
        write_number(file, "M", mark->points[i].x);
        write_number(file, " ", mark->points[i].y);
        fputs("h0", file);
    }
    fputc('"', file);
    write_paint(file, &(plot_paint){.width = 2 * mark->radius, .line = paint->fill, .opacity = paint->opacity});
    fputs("</path>\n", file);
}

static void write_text(FILE *file, const plot_mark *mark)
{
    static const char *const anchors[] = {"start", "middle", "end"};
    const plot_font *font = &mark->font;
    write_number(file, font->upwards ? "<text transform=\"translate(" : "<text x=\"", mark->points[0].x);
    write_number(file, font->upwards ? " " : "\" y=\"", mark->points[0].y);
    fprintf(file, "%s\"", font->upwards ? ") rotate(-90)" : "");
    write_number(file, " font-size=\"", font->size);
    fprintf(file, "\" text-anchor=\"%s\" fill=\"#%06x\"%s%s>", anchors[font->anchor], (unsigned)font->colour,
            font->bold ? " font-weight=\"bold\"" : "",
            font->halo ? " stroke=\"#fff\" stroke-width=\"3\" paint-order=\"stroke\"" : "");
    write_escaped(file, mark->text, INT_MAX);
    fputs("</text>\n", file);
}

static void fill_line(void *context, unsigned char *line, int64_t y)
{
    const plot_mark *mark = context;
    memcpy(line, mark->pixels + y * mark->width * 4, (size_t)mark->width * 4);
}

static int write_raster(base_output *output, const char *path, plot_mark *mark)
{
    FILE *file = base_output_stream(output);
    fputs("<image", file);
    write_box(file, mark->box);
    fputs(" preserveAspectRatio=\"none\" style=\"image-rendering:pixelated\" href=\"data:image/png;base64,", file);
    int status = data_png_write_base64(output, path, &(data_png){mark->width, mark->height, 4, fill_line, mark});
    fputs("\"/>\n", file);
    return status;
}

static int write_mark(base_output *output, const char *path, plot_mark *mark)
{
    FILE *file = base_output_stream(output);
    switch (mark->kind) {
    case PLOT_LINE: write_line(file, mark); break;
    case PLOT_DOTS: write_dots(file, mark); break;
    case PLOT_TEXT: write_text(file, mark); break;
    case PLOT_RASTER: return write_raster(output, path, mark);
    case PLOT_RECTANGLE:
        fputs("<rect", file);
        write_box(file, mark->box);
        write_paint(file, &mark->paint);
        fputs("</rect>\n", file);
        break;
    }
    return SHOAL_OK;
}

static bool is_cut_alike(const plot_mark *a, const plot_mark *b)
{
    return a->clipped == b->clipped && (!a->clipped || memcmp(&a->clip, &b->clip, sizeof a->clip) == 0);
}

int plot_write_svg(base_output *output, const char *path, const plot_canvas *canvas)
{
    FILE *file = base_output_stream(output);
    int status = SHOAL_OK, groups = 0;
    fprintf(file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%g\" height=\"%g\" viewBox=\"0 0 %g %g\" role=\"img\" "
            "font-family=\"Helvetica, Arial, 'DejaVu Sans', sans-serif\" stroke-linejoin=\"round\" "
            "stroke-linecap=\"round\">\n%s\n<title>",
            canvas->width, canvas->height, canvas->width, canvas->height, DATA_PICTURE_SVG_MARK);
    write_escaped(file, canvas->title, TITLE_MOST);
    fputs("</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n", file);
    for (int64_t i = 0; i < canvas->marks && status == SHOAL_OK; i++) {
        plot_mark *mark = &canvas->mark[i];
        if (mark->clipped && (i == 0 || !is_cut_alike(mark, mark - 1))) {
            fprintf(file, "<clipPath id=\"cut%d\"><rect", ++groups);
            write_box(file, mark->clip);
            fprintf(file, "/></clipPath>\n<g clip-path=\"url(#cut%d)\">\n", groups);
        }
        status = write_mark(output, path, mark);
        if (mark->clipped && (i + 1 == canvas->marks || !is_cut_alike(mark, mark + 1)))
            fputs("</g>\n", file);
    }
    fputs("</svg>\n", file);
    return status;
}
