/* JPEG, row by row.  See image_jpeg_rows.h.
 *
 * Of pixels that the crop leaves out only the Huffman codes are read, which tells whether the file is whole.  Beside an
 * edge of what is decoded colours are interpolated as at an edge of the image, so a few pixels more are decoded than
 * are needed. */
#include "image_jpeg_rows.h"

#include "base/memory.h"
#include "image_jpeg.h"

enum { MARGIN = 2, AT_ONCE = 2 /* rows that share colours, often */ };

int data_jpeg_reader_new(jpeg_reader **out)
{
    return base_alloc(out, 1, sizeof **out, "an image");
}

void data_jpeg_reader_free(jpeg_reader **reader)
{
    base_free(reader);
}

/* Leaves out columns on both sides.  Returns the first one that remains. */
static int64_t crop_columns(struct jpeg_decompress_struct *jpeg, const data_image_axis *columns)
{
    const int64_t from = columns->from - MARGIN, past = columns->past + MARGIN;
    JDIMENSION left = from > 0 ? (JDIMENSION)from : 0;
    JDIMENSION width = (past < jpeg->output_width ? (JDIMENSION)past : jpeg->output_width) - left;
    if (width < jpeg->output_width)
        jpeg_crop_scanline(jpeg, &left, &width);
    return left;
}

static void skip_to(struct jpeg_decompress_struct *jpeg, int64_t row)
{
    if (row > jpeg->output_scanline)
        (void)jpeg_skip_scanlines(jpeg, (JDIMENSION)row - jpeg->output_scanline);
}

/* Rows for libjpeg to write; it writes aligned ones past the caches, where we would wait for them. */
static void make_rows(struct jpeg_decompress_struct *jpeg, JSAMPROW rows[AT_ONCE])
{
    const JDIMENSION bytes = 4 * jpeg->output_width;
    JSAMPARRAY memory = jpeg->mem->alloc_sarray((j_common_ptr)jpeg, JPOOL_IMAGE, bytes + 4, AT_ONCE);
    for (int i = 0; i < AT_ONCE; i++)
        rows[i] = memory[i] + 4;
}

static void read_rows(jpeg_reader *in, data_resampler *out)
{
    struct jpeg_decompress_struct *jpeg = &in->jpeg;
    const bool inks = jpeg->out_color_space == JCS_CMYK;
    const int64_t left = crop_columns(jpeg, &out->columns), pixels = out->columns.past - out->columns.from;
    JSAMPROW rows[AT_ONCE];
    make_rows(jpeg, rows);
    skip_to(jpeg, out->rows.from - MARGIN);
    while (jpeg->output_scanline < out->rows.past) {
        int64_t row = jpeg->output_scanline;
        const int64_t past = row + jpeg_read_scanlines(jpeg, rows, AT_ONCE);
        for (int i = 0; row < past; row++, i++) {
            unsigned char *needed = rows[i] + 4 * (out->columns.from - left);
            if (row < out->rows.from || row >= out->rows.past)
                continue;
            if (inks)
                data_jpeg_print_inks(needed, 4, needed, pixels);
            data_resample_row(out, needed);
        }
    }
    skip_to(jpeg, (int64_t)jpeg->output_height - 1); /* skipping the last row would skip all codes, too */
    if (jpeg->output_scanline < jpeg->output_height)
        (void)jpeg_read_scanlines(jpeg, rows, 1);
    data_jpeg_check_whole(in);
}

/* An image that has the item's size is the item: both ways of resizing leave every pixel as it is. */
static bool is_item(const struct jpeg_decompress_struct *jpeg, const data_image_shape *shape)
{
    return shape->source_height == shape->height && shape->source_width == shape->width &&
           jpeg->jpeg_color_space != JCS_CMYK && jpeg->jpeg_color_space != JCS_YCCK;
}

static void read_item(jpeg_reader *in, data_resampler *out)
{
    struct jpeg_decompress_struct *jpeg = &in->jpeg;
    const size_t stride = 3 * (size_t)jpeg->output_width;
    while (jpeg->output_scanline < jpeg->output_height) {
        unsigned char *first = out->out + jpeg->output_scanline * stride;
        const bool last = jpeg->output_scanline + 1 == jpeg->output_height;
        (void)jpeg_read_scanlines(jpeg, (JSAMPROW[AT_ONCE]){first, last ? first : first + stride}, last ? 1 : AT_ONCE);
    }
    data_jpeg_check_whole(in);
}

/* Everything that may longjmp.  No local of this function changes after setjmp. */
static int decode(jpeg_reader *in, data_resampler *out, data_image_shape *shape, const data_image_input *input)
{
    data_image header = {0};
    if (setjmp(in->leave))
        return data_jpeg_fail(in);
    data_jpeg_begin(in, input);
    in->status = data_jpeg_read_header(in, &header, false);
    if (in->status < 0)
        return in->status;
    shape->source_height = in->jpeg.image_height;
    shape->source_width = in->jpeg.image_width;
    if (is_item(&in->jpeg, shape)) {
        in->status = data_resample_whole(out, shape);
        if (in->status < 0)
            return in->status;
        data_jpeg_start(in, JCS_RGB);
        read_item(in, out);
        return SHOAL_OK;
    }
    in->status = data_resample_begin(out, shape);
    if (in->status < 0)
        return in->status;
    data_jpeg_start(in, JCS_EXT_RGBX);
    read_rows(in, out);
    return SHOAL_OK;
}

int data_jpeg_resample(jpeg_reader *in, data_resampler *out, data_image_shape *shape, const data_image_input *input)
{
    int status = decode(in, out, shape, input);
    jpeg_destroy_decompress(&in->jpeg); /* or the next file could use this one's tables */
    return status;
}
