/* PNG by libpng.  See png_write.h.  libpng leaves by longjmp, so everything that must survive it lives in a struct that
 * the function calling setjmp only points to. */
#include "png_write.h"

#include <openssl/evp.h>
#include <png.h>
#include <setjmp.h>

#include <shoal/error.h>

#include "base/memory.h"

enum { GROUP_BYTES = 3 * 1024 };

typedef struct writer {
    const data_png *picture;
    base_output *output;
    unsigned char *line; /* one row of pixels */
    png_structp png;
    png_infop info;
    char reason[128]; /* what libpng said */
    bool base64;
    unsigned char group[GROUP_BYTES]; /* bytes that are not yet base64 */
    size_t grouped;
} writer;

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
    bool good = out->base64 || base_output_write(out->output, bytes, size) == SHOAL_OK;
    for (size_t i = 0; out->base64 && i < size && good; i++) {
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
    const data_png *picture = out->picture;
    static const int colours[] = {[1] = PNG_COLOR_TYPE_GRAY, [3] = PNG_COLOR_TYPE_RGB, [4] = PNG_COLOR_TYPE_RGB_ALPHA};
    if (setjmp(png_jmpbuf(out->png)))
        return SHOAL_SYSTEM;
    png_set_write_fn(out->png, out, on_write, NULL);
    png_set_IHDR(out->png, out->info, (png_uint_32)picture->width, (png_uint_32)picture->height, 8,
                 colours[picture->channels], PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    add_mark(out);
    png_write_info(out->png, out->info);
    for (int64_t y = 0; y < picture->height; y++) {
        picture->fill_line(picture->context, out->line, y);
        png_write_row(out->png, out->line);
    }
    png_write_end(out->png, NULL);
    return SHOAL_OK;
}

static int write_picture(base_output *output, const char *path, const data_png *picture, bool base64)
{
    writer out = {.picture = picture, .output = output, .base64 = base64};
    int status = base_alloc(&out.line, (size_t)picture->width, (size_t)picture->channels, "a picture");
    if (status < 0)
        return status;
    out.png = png_create_write_struct_2(PNG_LIBPNG_VER_STRING, &out, on_error, on_warning, NULL, on_alloc, on_free);
    out.info = out.png ? png_create_info_struct(out.png) : NULL;
    if (!out.info)
        status = shoal_fail(SHOAL_MEMORY, "%s: out of memory for a picture", path);
    else if (encode(&out) < 0 && !ferror(base_output_stream(output))) /* whose own error is told at commit */
        status = shoal_fail(SHOAL_MEMORY, "%s: can't make the picture: %s", path, out.reason);
    else if (base64)
        (void)flush_group(&out); /* the same */
    png_destroy_write_struct(out.png ? &out.png : NULL, out.info ? &out.info : NULL);
    base_free(&out.line);
    return status;
}

int data_png_write(base_output *output, const char *path, const data_png *png)
{
    return write_picture(output, path, png, false);
}

int data_png_write_base64(base_output *output, const char *path, const data_png *png)
{
    return write_picture(output, path, png, true);
}
