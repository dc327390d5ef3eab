/* Contact sheets.  See picture.h. */
#include "picture.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include <shoal/error.h>

#include "base/file.h"
#include "base/text.h"
#include "png_write.h"

enum {
    GAP = 2,
    GAP_GREY = 255,
    PIXELS_MOST = 1000000 /* a side; libpng's own limit for readers */
};

typedef struct writer {
    const char *path;
    const data_sheet *sheet;
    int64_t across, down; /* images */
    int64_t scale;
    int channels;
    int64_t image_width, image_height; /* pixels */
    int64_t width, height;             /* pixels */
    double least, range;
    base_output *output;
} writer;

/* Images in a line so that the sheet is about as wide as high. */
static int64_t choose_across(const writer *out)
{
    const data_sheet *sheet = out->sheet;
    if (sheet->columns > 0)
        return sheet->columns < sheet->images ? sheet->columns : sheet->images;
    double side = sqrt((double)sheet->images * (double)(out->image_height + GAP) / (double)(out->image_width + GAP));
    int64_t across = (int64_t)ceil(side);
    return across < 1 ? 1 : across > sheet->images ? sheet->images : across;
}

static int plan(writer *out)
{
    const data_sheet *sheet = out->sheet;
    out->scale = sheet->scale > 0 ? sheet->scale : 1;
    out->channels = sheet->channels == 3 ? 3 : 1;
    if (sheet->images < 1 || sheet->height < 1 || sheet->width < 1 || sheet->height > PIXELS_MOST / out->scale ||
        sheet->width > PIXELS_MOST / out->scale)
        return shoal_fail(SHOAL_USAGE, "%s: can't draw %lld images of %lldx%lld", out->path, (long long)sheet->images,
                          (long long)sheet->height, (long long)sheet->width);
    out->image_width = sheet->width * out->scale;
    out->image_height = sheet->height * out->scale;
    out->across = choose_across(out);
    out->down = (sheet->images - 1) / out->across + 1;
    if (out->across > PIXELS_MOST || out->down > PIXELS_MOST)
        return shoal_fail(SHOAL_USAGE, "%s: %lld images are too many for one picture", out->path,
                          (long long)sheet->images);
    out->width = GAP + out->across * (out->image_width + GAP);
    out->height = GAP + out->down * (out->image_height + GAP);
    if (out->width > PIXELS_MOST || out->height > PIXELS_MOST)
        return shoal_fail(SHOAL_USAGE, "%s: %lldx%lld pixels are too many for one picture", out->path,
                          (long long)out->height, (long long)out->width);
    return SHOAL_OK;
}

static void find_range(writer *out)
{
    int64_t count = out->sheet->images * out->sheet->height * out->sheet->width * out->channels;
    double least = INFINITY, greatest = -INFINITY;
    for (int64_t i = 0; i < count; i++) {
        least = fmin(least, out->sheet->values[i]);
        greatest = fmax(greatest, out->sheet->values[i]);
    }
    if (out->sheet->centred) {
        greatest = fmax(fabs(least), fabs(greatest));
        least = -greatest;
    }
    out->least = least;
    out->range = greatest / 2 - least / 2; /* halves: the whole range may overflow */
}

static unsigned char shade(const writer *out, double value)
{
    double share = out->range > 0 ? (value / 2 - out->least / 2) / out->range : 0;
    return (unsigned char)(share >= 1 ? 255 : share > 0 ? lrint(share * 255) : 0); /* NaN is black */
}

/* Pixel row `y` of the sheet. */
static void fill_line(void *context, unsigned char *line, int64_t y)
{
    const writer *out = context;
    const data_sheet *sheet = out->sheet;
    int64_t within = (y - GAP) % (out->image_height + GAP), band = (y - GAP) / (out->image_height + GAP);
    memset(line, GAP_GREY, (size_t)(out->width * out->channels));
    if (y < GAP || within >= out->image_height)
        return;
    for (int64_t i = 0; i < out->across && band * out->across + i < sheet->images; i++) {
        int64_t image = band * out->across + i;
        const double *row =
            sheet->values + (image * sheet->height + within / out->scale) * sheet->width * out->channels;
        unsigned char *pixels = line + (GAP + i * (out->image_width + GAP)) * out->channels;
        for (int64_t x = 0; x < out->image_width; x++)
            for (int c = 0; c < out->channels; c++)
                *pixels++ = shade(out, row[x / out->scale * out->channels + c]);
    }
}

/* The picture as one image inside an SVG file. */
static int write_svg(writer *out, const data_png *png)
{
    FILE *stream = base_output_stream(out->output);
    fprintf(
        stream,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%lld\" height=\"%lld\" viewBox=\"0 0 %lld %lld\">\n" DATA_PICTURE_SVG_MARK
        "\n<image width=\"%lld\" height=\"%lld\" style=\"image-rendering: pixelated\" "
        "href=\"data:image/png;base64,",
        (long long)out->width, (long long)out->height, (long long)out->width, (long long)out->height,
        (long long)out->width, (long long)out->height);
    int status = data_png_write_base64(out->output, out->path, png);
    fputs("\"/>\n</svg>\n", stream);
    return status;
}

int data_picture_write(const char *path, const data_sheet *sheet)
{
    writer out = {.path = path, .sheet = sheet};
    int status = plan(&out);
    if (status < 0)
        return status;
    find_range(&out);
    const data_png png = {out.width, out.height, out.channels, fill_line, &out};
    if ((status = base_output_open(&out.output, path)) < 0)
        return status;
    status = base_text_ends(path, ".svg") ? write_svg(&out, &png) : data_png_write(out.output, path, &png);
    if (status == SHOAL_OK)
        status = base_output_commit(&out.output);
    base_output_discard(&out.output);
    return status;
}
