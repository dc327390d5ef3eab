/* libjpeg-turbo with our rules of what is broken; for image_jpeg*.c alone.
 *
 * Its accurate integer transform, its colours and its interpolation have the same bits on every processor, with vectors
 * or without.  libjpeg goes on after damage with a warning and whatever is at hand: here a warning that means lost
 * pixels ends the reading, but a missing end marker does not when everything before it came.  It leaves by our longjmp,
 * so everything that must survive it lives in a struct that the function calling setjmp points to. */
#ifndef DATA_IMAGE_JPEG_H
#define DATA_IMAGE_JPEG_H

#include <setjmp.h>
#include <stdio.h>

#include <jpeglib.h>

#include "image.h"

typedef struct jpeg_reader {
    struct jpeg_error_mgr errors; /* first: libjpeg hands out pointers to it */
    jmp_buf leave;
    struct jpeg_decompress_struct jpeg;
    struct jpeg_progress_mgr progress;
    const data_image_input *input;
    int status;         /* of a failure that has its message already */
    bool ended;         /* all bytes were read, and more were wanted */
    bool out_of_memory; /* what libjpeg failed for */
    char reason[JMSG_LENGTH_MAX];
} jpeg_reader;

/* ---- after setjmp(in->leave) ------------------------------------------------------------------------------------- */

/* Makes a decoder for the file, which the caller destroys whatever happens. */
void data_jpeg_begin(jpeg_reader *in, const data_image_input *input);
/* Reads the header, and checks what it claims, and what decoding takes; `whole`: with all pixels in memory. */
int data_jpeg_read_header(jpeg_reader *in, data_image *out, bool whole);
/* `colours`: of pixels that are neither grey nor CMYK. */
void data_jpeg_start(jpeg_reader *in, J_COLOR_SPACE colours);
/* Leaves, when not all of the image came. */
void data_jpeg_check_whole(jpeg_reader *in);

/* ---- anywhere ---------------------------------------------------------------------------------------------------- */

/* The failure of a reader that left. */
int data_jpeg_fail(const jpeg_reader *in);
/* Four inks of each pixel, inverted as Adobe writes them, become three lights, in place or further to the front. */
void data_jpeg_print_inks(unsigned char *out, int step, const unsigned char *inks, int64_t pixels);

#endif
