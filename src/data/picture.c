/* Contact sheets by libpng.  See picture.h.  libpng leaves by longjmp, so everything that must survive it lives in
 * a struct that the function calling setjmp only points to. */
#include "picture.h"

#include <math.h>
#include <openssl/evp.h>
#include <png.h>
#include <setjmp.h>
#include <stdbool.h>
#include <string.h>

#include <shoal/error.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"

enum {
    GROUP_BYTES = 3 * 1024,
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
    unsigned char *line; /* one row of pixels */
    base_output *output;
    png_structp png;
    png_infop info;
    char reason[128]; /* what libpng said */
    /* For an SVG file, in which the bytes of the PNG stand as base64: those that do not make a group yet. */
    bool svg;
    unsigned char group[GROUP_BYTES];
    size_t grouped;
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
static void fill_line(writer *out, int64_t y)
{
    const data_sheet *sheet = out->sheet;
    int64_t within = (y - GAP) % (out->image_height + GAP), band = (y - GAP) / (out->image_height + GAP);
    memset(out->line, GAP_GREY, (size_t)(out->width * out->channels));
    if (y < GAP || within >= out->image_height)
        return;
    for (int64_t i = 0; i < out->across && band * out->across + i < sheet->images; i++) {
        int64_t image = band * out->across + i;
        const double *row =
            sheet->values + (image * sheet->height + within / out->scale) * sheet->width * out->channels;
        unsigned char *pixels = out->line + (GAP + i * (out->image_width + GAP)) * out->channels;
        for (int64_t x = 0; x < out->image_width; x++)
            for (int c = 0; c < out->channels; c++)
                *pixels++ = shade(out, row[x / out->scale * out->channels + c]);
    }
}

static void on_error(png_structp png, png_const_charp text)
{
    writer *out = png_get_error_ptr(png);
    snprintf(out->reason, sizeof out->reason, "%s", text);
    png_longjmp(png, 1);
}

static bool flush_group(writer *out)
{
    unsigned char text[GROUP_BYTES / 3 * 4 + 1];
    int length = EVP_EncodeBlock(text, out->group, (int)out->grouped);
    out->grouped = 0;
    return base_output_write(out->output, text, (size_t)length) == SHOAL_OK;
}

static void on_write(png_structp png, png_bytep bytes, size_t size)
{
    writer *out = png_get_io_ptr(png);
    bool good = out->svg || base_output_write(out->output, bytes, size) == SHOAL_OK;
    for (size_t i = 0; out->svg && i < size && good; i++) {
        out->group[out->grouped++] = bytes[i];
        if (out->grouped == GROUP_BYTES)
            good = flush_group(out);
    }
    if (!good)
        png_error(png, "the file can't be written");
}

static void on_warning(png_structp png, png_const_charp text)
{
    (void)png;
    (void)text;
}

static png_voidp on_alloc(png_structp png, png_alloc_size_t size)
{
    void *block = NULL;
    (void)png;
    return base_alloc(&block, 1, size, "a picture") < 0 ? NULL : block;
}

static void on_free(png_structp png, png_voidp block)
{
    (void)png;
    base_free(&block);
}

/* As DATA_PICTURE_PNG_MARK has it. */
static void add_mark(writer *out)
{
    char key[] = "Software", text[] = "shoal";
    const png_text mark = {.compression = PNG_TEXT_COMPRESSION_NONE, .key = key, .text = text, .text_length = 5};
    png_set_text(out->png, out->info, &mark, 1);
}

/* Everything that may longjmp.  No local of this function changes after setjmp. */
static int encode(writer *out)
{
    if (setjmp(png_jmpbuf(out->png)))
        return SHOAL_SYSTEM;
    png_set_write_fn(out->png, out, on_write, NULL);
    png_set_IHDR(out->png, out->info, (png_uint_32)out->width, (png_uint_32)out->height, 8,
                 out->channels == 3 ? PNG_COLOR_TYPE_RGB : PNG_COLOR_TYPE_GRAY, PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    add_mark(out);
    png_write_info(out->png, out->info);
    for (int64_t y = 0; y < out->height; y++) {
        fill_line(out, y);
        png_write_row(out->png, out->line);
    }
    png_write_end(out->png, NULL);
    return SHOAL_OK;
}

/* The picture as one image inside an SVG file. */
static int encode_svg(writer *out)
{
    FILE *stream = base_output_stream(out->output);
    fprintf(
        stream,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%lld\" height=\"%lld\" viewBox=\"0 0 %lld %lld\">\n" DATA_PICTURE_SVG_MARK
        "\n<image width=\"%lld\" height=\"%lld\" style=\"image-rendering: pixelated\" "
        "href=\"data:image/png;base64,",
        (long long)out->width, (long long)out->height, (long long)out->width, (long long)out->height,
        (long long)out->width, (long long)out->height);
    int status = encode(out);
    if (status == SHOAL_OK && !flush_group(out))
        status = SHOAL_SYSTEM;
    fputs("\"/>\n</svg>\n", stream);
    return status;
}

int data_picture_write(const char *path, const data_sheet *sheet)
{
    writer out = {.path = path, .sheet = sheet, .svg = base_text_ends(path, ".svg")};
    int status = plan(&out);
    if (status < 0)
        return status;
    find_range(&out);
    if ((status = base_alloc(&out.line, (size_t)out.width, (size_t)out.channels, "a picture")) < 0)
        return status;
    out.png = png_create_write_struct_2(PNG_LIBPNG_VER_STRING, &out, on_error, on_warning, NULL, on_alloc, on_free);
    out.info = out.png ? png_create_info_struct(out.png) : NULL;
    if (!out.info) {
        status = shoal_fail(SHOAL_MEMORY, "%s: out of memory for a picture", path);
        goto done;
    }
    if ((status = base_output_open(&out.output, path)) < 0)
        goto done;
    if ((out.svg ? encode_svg(&out) : encode(&out)) < 0)
        status = ferror(base_output_stream(out.output))
                     ? base_output_commit(&out.output) /* knows the file's own error */
                     : shoal_fail(SHOAL_MEMORY, "%s: can't make the picture: %s", path, out.reason);
    else
        status = base_output_commit(&out.output);
done:
    base_output_discard(&out.output);
    png_destroy_write_struct(out.png ? &out.png : NULL, out.info ? &out.info : NULL);
    base_free(&out.line);
    return status;
}
