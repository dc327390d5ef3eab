/* What libjpeg may pass over, and what it may not.  See image_jpeg.h. */
#include "image_jpeg.h"

#include <jerror.h>

static void on_error(j_common_ptr jpeg)
{
    jpeg_reader *in = (jpeg_reader *)jpeg->err;
    in->out_of_memory = jpeg->err->msg_code == JERR_OUT_OF_MEMORY;
    jpeg->err->format_message(jpeg, in->reason);
    longjmp(in->leave, 1);
}

/* Warnings have level -1.  Those that are passed over are of files that are odd but whole; whether one that ended early
 * is whole is found out later. */
static void on_message(j_common_ptr jpeg, int level)
{
    const int code = jpeg->err->msg_code;
    if (level >= 0 || code == JWRN_EXTRANEOUS_DATA || code == JWRN_JFIF_MAJOR || code == JWRN_ADOBE_XFORM ||
        code == JWRN_TOO_MUCH_DATA || code == JWRN_BOGUS_PROGRESSION)
        return;
    if (code == JWRN_JPEG_EOF)
        ((jpeg_reader *)jpeg->err)->ended = true;
    else
        on_error(jpeg);
}

static void on_output(j_common_ptr jpeg)
{
    (void)jpeg;
}

/* Progressive files have ten scans; thousands only cost time, and of a large image dozens do. */
static void on_progress(j_common_ptr jpeg)
{
    enum { LEAST = 32, MOST = 500 };
    jpeg_reader *in = (jpeg_reader *)jpeg->err;
    if (in->jpeg.input_scan_number <= LEAST)
        return;
    const int64_t pixels = (int64_t)in->jpeg.image_height * in->jpeg.image_width;
    int64_t most = ((int64_t)1 << 31) / pixels;
    most = most < LEAST ? LEAST : most > MOST ? MOST : most;
    if (in->jpeg.input_scan_number <= most)
        return;
    snprintf(in->reason, sizeof in->reason, "more than %d scans", (int)most);
    longjmp(in->leave, 1);
}

void data_jpeg_begin(jpeg_reader *in, const data_image_input *input)
{
    in->input = input;
    in->status = SHOAL_OK;
    in->ended = in->out_of_memory = false;
    in->jpeg.err = jpeg_std_error(&in->errors);
    in->errors.error_exit = on_error;
    in->errors.emit_message = on_message;
    in->errors.output_message = on_output;
    jpeg_create_decompress(&in->jpeg);
    in->progress.progress_monitor = on_progress;
    in->jpeg.progress = &in->progress;
    if (input->stream)
        jpeg_stdio_src(&in->jpeg, input->stream);
    else
        jpeg_mem_src(&in->jpeg, input->memory, (unsigned long)input->bytes);
}

/* A block of 8 x 8 takes a bit at least when Huffman codes it; of components that are subsampled in different
 * directions each may have half of the blocks, or less.  Arithmetic coding can do with less than a bit. */
static int check_claim(const jpeg_reader *in)
{
    enum { PIXELS_OF_A_BYTE = 1024, ARITHMETIC = 64 };
    const int64_t height = in->jpeg.image_height, width = in->jpeg.image_width,
                  most = in->input->bytes * PIXELS_OF_A_BYTE * (in->jpeg.arith_code ? ARITHMETIC : 1);
    if (height * width > most)
        return shoal_fail(SHOAL_INVALID, "%s: %lld x %lld pixels can't be in a file of %lld bytes", in->input->path,
                          (long long)width, (long long)height, (long long)in->input->bytes);
    return SHOAL_OK;
}

int data_jpeg_read_header(jpeg_reader *in, data_image *out, bool whole)
{
    (void)jpeg_read_header(&in->jpeg, TRUE);
    int status = data_image_set_size(out, in->input, in->jpeg.image_height, in->jpeg.image_width);
    if (status == SHOAL_OK)
        status = check_claim(in);
    if (status < 0 || in->input->want == DATA_IMAGE_HEADER)
        return status;
    /* Of several scans all coefficients are kept. */
    const int64_t kept = jpeg_has_multiple_scans(&in->jpeg) ? (int64_t)sizeof(JCOEF) * in->jpeg.num_components : 0;
    return data_image_check_room(in->input, out, kept + (whole ? in->jpeg.num_components : 0));
}

void data_jpeg_start(jpeg_reader *in, J_COLOR_SPACE colours)
{
    struct jpeg_decompress_struct *jpeg = &in->jpeg;
    const bool inks = jpeg->jpeg_color_space == JCS_CMYK || jpeg->jpeg_color_space == JCS_YCCK;
    jpeg->out_color_space = inks ? JCS_CMYK : colours;
    jpeg->dct_method = JDCT_ISLOW;
    jpeg->do_fancy_upsampling = TRUE;
    jpeg->do_block_smoothing = FALSE; /* of coefficients that never came: each version has its own way */
    (void)jpeg_start_decompress(jpeg);
}

/* Without an end marker a progressive file tells by the bits that are missing whether it was cut off; of one with
 * arithmetic coding, whose end may be all zeros and left away, nobody knows. */
static bool is_cut_off(const jpeg_reader *in)
{
    const struct jpeg_decompress_struct *jpeg = &in->jpeg;
    if (!in->ended)
        return false;
    for (int component = 0; jpeg->progressive_mode && component < jpeg->num_components; component++)
        for (int i = 0; i < DCTSIZE2; i++)
            if (jpeg->coef_bits[component][i] != 0)
                return true;
    return jpeg->arith_code;
}

void data_jpeg_check_whole(jpeg_reader *in)
{
    const char *reason = is_cut_off(in) ? "the file is cut off" : NULL;
    for (int i = 0; i < in->jpeg.num_components; i++)
        if (!in->jpeg.comp_info[i].quant_table) /* no scan had any */
            reason = "a colour is missing";
    if (!reason)
        return;
    snprintf(in->reason, sizeof in->reason, "%s", reason);
    longjmp(in->leave, 1);
}

int data_jpeg_fail(const jpeg_reader *in)
{
    if (in->out_of_memory)
        return shoal_fail(SHOAL_MEMORY, "%s: out of memory for an image", in->input->path);
    if (in->input->stream && ferror(in->input->stream))
        return shoal_fail(SHOAL_SYSTEM, "%s: can't be read to its end", in->input->path);
    return shoal_fail(SHOAL_INVALID, "%s: a broken JPEG image: %s", in->input->path,
                      in->ended ? "the file is cut off" : in->reason);
}

void data_jpeg_print_inks(unsigned char *out, int step, const unsigned char *inks, int64_t pixels)
{
    for (int64_t i = 0; i < pixels; i++, inks += 4, out += step)
        for (int c = 0; c < 3; c++)
            out[c] = (unsigned char)((inks[c] * inks[3] + 127) / 255);
}
