/* PNG by libpng: every colour type and depth, interlaced or not.  Palettes and less than 8 bits become 8 bits, 16 stay
 * 16; transparent pixels are drawn on white; gamma and colour profiles are left alone.  libpng leaves by longjmp, so
 * everything that must survive it lives in a struct that the function calling setjmp only points to. */
#include <png.h>
#include <setjmp.h>
#include <string.h>

#include "image.h"

#include "base/memory.h"

typedef struct reader {
    const data_image_input *input;
    data_image *image;
    png_structp png;
    png_infop info;
    int status;         /* of a failure that has its message already */
    bool out_of_memory; /* an allocation failed, whatever libpng made of that */
    int64_t at;         /* the next byte in memory */
    char reason[128];   /* what libpng said */
} reader;

static void on_error(png_structp png, png_const_charp text)
{
    reader *in = png_get_error_ptr(png);
    snprintf(in->reason, sizeof in->reason, "%s", text);
    png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp text)
{
    (void)png;
    (void)text;
}

static png_voidp on_alloc(png_structp png, png_alloc_size_t size)
{
    reader *in = png_get_mem_ptr(png);
    void *block = NULL;
    if (base_alloc(&block, 1, size, "an image") < 0)
        in->out_of_memory = true;
    return block;
}

static void on_free(png_structp png, png_voidp block)
{
    (void)png;
    base_free(&block);
}

static void on_read(png_structp png, png_bytep out, size_t size)
{
    reader *in = png_get_io_ptr(png);
    const data_image_input *input = in->input;
    if (!input->stream) {
        if ((uint64_t)size > (uint64_t)(input->bytes - in->at))
            png_error(png, "the file is cut off");
        memcpy(out, input->memory + in->at, size);
        in->at += (int64_t)size;
    } else if (fread(out, 1, size, input->stream) != size)
        png_error(png, ferror(input->stream) ? "it can't be read to its end" : "the file is cut off");
}

/* Deflate makes at most 1032 bytes of one, so that a greater claim can't be true. */
static int check_claim(reader *in, size_t bytes)
{
    enum { OF_ONE = 1032 };
    if (bytes / OF_ONE > (size_t)in->input->bytes)
        return shoal_fail(SHOAL_INVALID, "%s: %lld x %lld pixels can't be in a file of %lld bytes", in->input->path,
                          (long long)in->image->width, (long long)in->image->height, (long long)in->input->bytes);
    return SHOAL_OK;
}

static int prepare(reader *in)
{
    png_structp png = in->png;
    png_read_info(png, in->info);
    int status = data_image_set_size(in->image, in->input, png_get_image_height(png, in->info),
                                     png_get_image_width(png, in->info));
    if (status < 0 || in->input->want == DATA_IMAGE_HEADER)
        return status;
    png_set_expand(png);
    if (png_get_bit_depth(png, in->info) == 16 && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)
        png_set_swap(png);
    (void)png_set_interlace_handling(png);
    png_read_update_info(png, in->info);
    in->image->channels = png_get_channels(png, in->info);
    in->image->type = png_get_bit_depth(png, in->info) == 16 ? SHOAL_UINT16 : SHOAL_UINT8;
    size_t stride = png_get_rowbytes(png, in->info);
    status = check_claim(in, stride * (size_t)in->image->height);
    if (status == SHOAL_OK)
        status = data_image_check_room(in->input, in->image,
                                       in->image->channels * (in->image->type == SHOAL_UINT16 ? 2 : 1));
    if (status == SHOAL_OK)
        status = base_alloc_unset(&in->image->owned, (size_t)in->image->height, stride, in->input->path);
    return status;
}

static void read_rows(reader *in)
{
    const size_t stride = png_get_rowbytes(in->png, in->info);
    const int passes = png_get_interlace_type(in->png, in->info) == PNG_INTERLACE_NONE ? 1 : PNG_INTERLACE_ADAM7_PASSES;
    unsigned char *samples = in->image->owned;
    if (passes > 1) /* a pass changes only its own pixels */
        memset(samples, 0, stride * (size_t)in->image->height);
    for (int pass = 0; pass < passes; pass++)
        for (int64_t y = 0; y < in->image->height; y++)
            png_read_row(in->png, samples + (size_t)y * stride, NULL);
    png_read_end(in->png, NULL);
}

/* Everything that may longjmp.  No local of this function changes after setjmp. */
static int decode(reader *in)
{
    if (setjmp(png_jmpbuf(in->png)))
        return SHOAL_INVALID;
    png_set_read_fn(in->png, in, on_read);
    in->status = prepare(in);
    if (in->status == SHOAL_OK && in->input->want != DATA_IMAGE_HEADER)
        read_rows(in);
    return SHOAL_OK;
}

/* ---- over white -------------------------------------------------------------------------------------------------- */

/* One colour with its share of white, rounded to the nearest level. */
static uint32_t blend(uint64_t level, uint64_t opacity, uint64_t white)
{
    return (uint32_t)((level * opacity + white * (white - opacity) + white / 2) / white);
}

/* Takes the alpha channel away, in place. */
static void lay_over_white(data_image *image)
{
    const int64_t pixels = image->height * image->width;
    const int with = image->channels, without = with - 1;
    uint8_t *bytes = image->owned;
    uint16_t *words = image->owned;
    for (int64_t i = 0; i < pixels; i++)
        for (int c = 0; c < without; c++) {
            if (image->type == SHOAL_UINT8)
                bytes[i * without + c] = (uint8_t)blend(bytes[i * with + c], bytes[i * with + without], 255);
            else
                words[i * without + c] = (uint16_t)blend(words[i * with + c], words[i * with + without], 65535);
        }
    image->channels = without;
}

int data_image_read_png(data_image *out, const data_image_input *input)
{
    reader in = {.input = input, .image = out};
    in.png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, &in, on_error, on_warning, &in, on_alloc, on_free);
    in.info = in.png ? png_create_info_struct(in.png) : NULL;
    int status = in.info ? decode(&in) : SHOAL_MEMORY;
    if (status < 0 && (!in.info || in.out_of_memory))
        status = shoal_fail(SHOAL_MEMORY, "%s: out of memory for an image", input->path);
    else if (status < 0)
        status = shoal_fail(SHOAL_INVALID, "%s: a broken PNG image: %s", input->path, in.reason);
    else
        status = in.status;
    png_destroy_read_struct(in.png ? &in.png : NULL, in.info ? &in.info : NULL, NULL);
    if (status < 0 || input->want == DATA_IMAGE_HEADER)
        return status;
    if (out->channels == 2 || out->channels == 4)
        lay_over_white(out);
    out->samples = out->owned;
    return SHOAL_OK;
}
