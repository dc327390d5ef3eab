/* A whole JPEG: baseline and progressive, grey, colour and (as Adobe writes it, inverted) CMYK; grey is the image's own
 * luminance.  See image_jpeg.h. */
#include "image_jpeg.h"

#include "base/memory.h"

static int prepare(jpeg_reader *in, data_image *out)
{
    const data_image_want want = in->input->want;
    int status = data_jpeg_read_header(in, out, true);
    if (status < 0 || want == DATA_IMAGE_HEADER)
        return status;
    data_jpeg_start(in,
                    in->jpeg.jpeg_color_space == JCS_GRAYSCALE || want == DATA_IMAGE_GREY ? JCS_GRAYSCALE : JCS_RGB);
    out->channels = in->jpeg.output_components;
    out->type = SHOAL_UINT8;
    return base_alloc_unset(&out->owned, (size_t)out->height * (size_t)out->width, (size_t)out->channels,
                            in->input->path);
}

static void read_rows(jpeg_reader *in, data_image *out)
{
    const size_t stride = (size_t)out->width * (size_t)out->channels;
    while (in->jpeg.output_scanline < in->jpeg.output_height) {
        JSAMPROW row = (unsigned char *)out->owned + in->jpeg.output_scanline * stride;
        (void)jpeg_read_scanlines(&in->jpeg, &row, 1);
    }
    data_jpeg_check_whole(in);
}

/* Everything that may longjmp.  No local of this function changes after setjmp. */
static int decode(jpeg_reader *in, const data_image_input *input, data_image *out)
{
    if (setjmp(in->leave))
        return data_jpeg_fail(in);
    data_jpeg_begin(in, input);
    in->status = prepare(in, out);
    if (in->status == SHOAL_OK && input->want != DATA_IMAGE_HEADER)
        read_rows(in, out);
    return in->status;
}

int data_image_read_jpeg(data_image *out, const data_image_input *input)
{
    jpeg_reader *in = NULL;
    int status = base_alloc(&in, 1, sizeof *in, input->path);
    if (status < 0)
        return status;
    status = decode(in, input, out);
    if (status == SHOAL_OK && input->stream && ferror(input->stream)) /* which libjpeg takes for the file's end */
        status = data_jpeg_fail(in);
    jpeg_destroy_decompress(&in->jpeg);
    base_free(&in);
    if (status < 0 || input->want == DATA_IMAGE_HEADER)
        return status;
    if (out->channels == 4) {
        data_jpeg_print_inks(out->owned, 3, out->owned, out->height * out->width);
        out->channels = 3;
    }
    out->samples = out->owned;
    return SHOAL_OK;
}
