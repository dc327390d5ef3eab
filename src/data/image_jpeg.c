/* JPEG by libjpeg-turbo: baseline and progressive, grey, colour and (as Adobe writes it, inverted) CMYK.  Its accurate
 * integer transform and its colours have the same bits on every processor; grey is the image's own luminance. libjpeg
 * goes on after damage with a warning and whatever is at hand: here a warning that means lost pixels ends the reading.
 * It leaves by our longjmp, so everything that must survive it lives in a struct that the function calling setjmp
 * points to. */
#include <setjmp.h>
#include <stdio.h>

#include <jpeglib.h>

#include <jerror.h>

#include "image.h"

#include "base/memory.h"

enum { SCANS_MOST = 500 /* progressive files have ten; thousands only cost time */ };

typedef struct reader {
    struct jpeg_error_mgr errors; /* first: libjpeg hands out pointers to it */
    jmp_buf leave;
    struct jpeg_decompress_struct jpeg;
    struct jpeg_progress_mgr progress;
    const data_image_input *input;
    data_image *image;
    int status;         /* of a failure that has its message already */
    bool out_of_memory; /* what libjpeg failed for */
    char reason[JMSG_LENGTH_MAX];
} reader;

static void on_error(j_common_ptr jpeg)
{
    reader *in = (reader *)jpeg->err;
    in->out_of_memory = jpeg->err->msg_code == JERR_OUT_OF_MEMORY;
    jpeg->err->format_message(jpeg, in->reason);
    longjmp(in->leave, 1);
}

/* Warnings have level -1.  These are of files that are odd but whole. */
static void on_message(j_common_ptr jpeg, int level)
{
    const int code = jpeg->err->msg_code;
    if (level < 0 && code != JWRN_EXTRANEOUS_DATA && code != JWRN_JFIF_MAJOR && code != JWRN_ADOBE_XFORM &&
        code != JWRN_TOO_MUCH_DATA && code != JWRN_BOGUS_PROGRESSION)
        on_error(jpeg);
}

static void on_output(j_common_ptr jpeg)
{
    (void)jpeg;
}

static void on_progress(j_common_ptr jpeg)
{
    reader *in = (reader *)jpeg->err;
    if (in->jpeg.input_scan_number <= SCANS_MOST)
        return;
    snprintf(in->reason, sizeof in->reason, "more than %d scans", SCANS_MOST);
    longjmp(in->leave, 1);
}

/* A block of 8 x 8 takes a bit at least when Huffman codes it; of components that are subsampled in different
 * directions each may have half of the blocks, or less.  Arithmetic coding can do with less than a bit. */
static int check_claim(const reader *in)
{
    enum { PIXELS_OF_A_BYTE = 1024, ARITHMETIC = 64 };
    int64_t greatest = in->input->bytes * PIXELS_OF_A_BYTE * (in->jpeg.arith_code ? ARITHMETIC : 1);
    if (in->image->height * in->image->width > greatest)
        return shoal_fail(SHOAL_INVALID, "%s: %lld x %lld pixels can't be in a file of %lld bytes", in->input->path,
                          (long long)in->image->width, (long long)in->image->height, (long long)in->input->bytes);
    return SHOAL_OK;
}

static int prepare(reader *in)
{
    struct jpeg_decompress_struct *jpeg = &in->jpeg;
    (void)jpeg_read_header(jpeg, TRUE);
    int status = data_image_set_size(in->image, in->input, jpeg->image_height, jpeg->image_width);
    if (status == SHOAL_OK)
        status = check_claim(in);
    if (status < 0 || in->input->want == DATA_IMAGE_HEADER)
        return status;
    if (jpeg->jpeg_color_space == JCS_CMYK || jpeg->jpeg_color_space == JCS_YCCK)
        jpeg->out_color_space = JCS_CMYK;
    else if (jpeg->jpeg_color_space == JCS_GRAYSCALE || in->input->want == DATA_IMAGE_GREY)
        jpeg->out_color_space = JCS_GRAYSCALE;
    else
        jpeg->out_color_space = JCS_RGB;
    jpeg->dct_method = JDCT_ISLOW;
    jpeg->do_fancy_upsampling = TRUE;
    (void)jpeg_start_decompress(jpeg);
    in->image->channels = jpeg->output_components;
    in->image->type = SHOAL_UINT8;
    return base_alloc_unset(&in->image->owned, (size_t)in->image->height * (size_t)in->image->width,
                            (size_t)in->image->channels, in->input->path);
}

static void read_rows(reader *in)
{
    const size_t stride = (size_t)in->image->width * (size_t)in->image->channels;
    while (in->jpeg.output_scanline < in->jpeg.output_height) {
        JSAMPROW row = (unsigned char *)in->image->owned + in->jpeg.output_scanline * stride;
        (void)jpeg_read_scanlines(&in->jpeg, &row, 1);
    }
    (void)jpeg_finish_decompress(&in->jpeg);
}

/* Everything that may longjmp.  No local of this function changes after setjmp. */
static int decode(reader *in)
{
    in->jpeg.err = jpeg_std_error(&in->errors);
    in->errors.error_exit = on_error;
    in->errors.emit_message = on_message;
    in->errors.output_message = on_output;
    if (setjmp(in->leave))
        return SHOAL_INVALID;
    jpeg_create_decompress(&in->jpeg);
    in->progress.progress_monitor = on_progress;
    in->jpeg.progress = &in->progress;
    jpeg_stdio_src(&in->jpeg, in->input->stream);
    in->status = prepare(in);
    if (in->status == SHOAL_OK && in->input->want != DATA_IMAGE_HEADER)
        read_rows(in);
    return SHOAL_OK;
}

/* Four inks, inverted, become three lights in place. */
static void print_inks(data_image *image)
{
    unsigned char *samples = image->owned;
    for (int64_t i = 0; i < image->height * image->width; i++)
        for (int c = 0; c < 3; c++)
            samples[3 * i + c] = (unsigned char)((samples[4 * i + c] * samples[4 * i + 3] + 127) / 255);
    image->channels = 3;
}

int data_image_read_jpeg(data_image *out, const data_image_input *input)
{
    reader *in = NULL;
    int status = base_alloc(&in, 1, sizeof *in, input->path);
    if (status < 0)
        return status;
    in->input = input;
    in->image = out;
    if (decode(in) == SHOAL_OK)
        status = in->status;
    else if (in->out_of_memory)
        status = shoal_fail(SHOAL_MEMORY, "%s: out of memory for an image", input->path);
    else if (ferror(input->stream))
        status = shoal_fail(SHOAL_SYSTEM, "%s: can't be read to its end", input->path);
    else
        status = shoal_fail(SHOAL_INVALID, "%s: a broken JPEG image: %s", input->path, in->reason);
    jpeg_destroy_decompress(&in->jpeg);
    base_free(&in);
    if (status < 0 || input->want == DATA_IMAGE_HEADER)
        return status;
    if (out->channels == 4)
        print_inks(out);
    out->samples = out->owned;
    return SHOAL_OK;
}
