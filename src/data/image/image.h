/* Pictures as samples: PNG and JPEG files, and .npy arrays of images.
 *
 *     data_image image = {0};
 *     if (data_image_load(&image, "photo.jpg", DATA_IMAGE_GREY) == SHOAL_OK)
 *         status = data_image_cut(row, &image, &(data_cut){.top = 3, .left = 5, .size = 8}, scratch);
 *     data_image_release(&image);
 *
 * What a file is, its first bytes say, never its name.  A header is believed only as far as the bytes behind it could
 * bear it out, so that a short file can't ask for a lot of memory.  A file that is cut off or damaged is SHOAL_INVALID
 * with a sentence that names it, also where its decoder would go on with grey; only the end marker of a JPEG may be
 * missing. */
#ifndef DATA_IMAGE_H
#define DATA_IMAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <shoal/data.h>

/* Of one PNG or JPEG; arrays are mapped, and have no such limit. */
enum { DATA_IMAGE_PIXELS_MOST = 1 << 27 };

/* GREY says that colours are not wanted, so that a decoder need not make them; there may be three channels all the
 * same. COLOUR is as the file has it: one channel or three. */
typedef enum data_image_want { DATA_IMAGE_HEADER, DATA_IMAGE_GREY, DATA_IMAGE_COLOUR } data_image_want;

typedef struct data_image {
    int64_t images, height, width; /* all images of one file have one size; PNG and JPEG hold one */
    int channels;                  /* 1, or 3 for red, green and blue */
    shoal_type type;               /* of a sample: uint8, uint16, bool, float32 or float64 */
    const void *samples; /* image by image, row by row, channels together; NULL when only the header was read */
    const char *path;    /* for messages; not owned */
    void *owned;         /* what the samples lie in, or NULL */
    shoal_data *array;   /* likewise */
} data_image;

/* Reads no more than the header: sizes, not channels. */
int data_image_probe(data_image *out, const char *path);
int data_image_load(data_image *out, const char *path, data_image_want want);
/* The same for the PNG or JPEG in a stream of `bytes` bytes, or in memory. */
int data_image_read(data_image *out, FILE *stream, int64_t bytes, const char *path, data_image_want want);
int data_image_read_memory(data_image *out, const void *memory, size_t bytes, const char *path, data_image_want want);
void data_image_release(data_image *image);

/* A square of one image. */
typedef struct data_cut {
    int64_t image, top, left, size;
    bool colour; /* three values a pixel (equal ones, when the image is grey), instead of one */
} data_cut;

/* Writes size * size * (colour ? 3 : 1) values, row by row, channels together: integers as shares of their greatest
 * value, floats as they are.  Grey is 0.299 red + 0.587 green + 0.114 blue, in units of 1/65536.  `scratch` has room
 * for 3 * size values. SHOAL_INVALID when a value is not finite. */
int data_image_cut(double *out, const data_image *image, const data_cut *cut, double *scratch);

/* ---- what the readers of formats share --------------------------------------------------------------------------- */

typedef struct data_image_input {
    FILE *stream;                /* at its first byte; NULL when all bytes are in memory */
    const unsigned char *memory; /* there */
    int64_t bytes;
    const char *path;
    data_image_want want;
    int64_t room; /* bytes that decoding may take; 0: any number */
} data_image_input;

/* SHOAL_MEMORY when an image, whose size is set, would take more bytes a pixel than there is room for. */
int data_image_check_room(const data_image_input *input, const data_image *image, int64_t bytes_a_pixel);
/* Reads what is in memory. */
int data_image_read_input(data_image *out, const data_image_input *input);

/* Checks what a header claims, and sets the size. */
int data_image_set_size(data_image *out, const data_image_input *input, uint64_t height, uint64_t width);

/* Fails for what is neither a PNG nor a JPEG, and names it where its first bytes tell; `neither` says what it
 * should be. */
int data_image_fail_foreign(const unsigned char *head, size_t size, const char *path, const char *neither);

int data_image_read_png(data_image *out, const data_image_input *input);
int data_image_read_jpeg(data_image *out, const data_image_input *input);
int data_image_open_npy(data_image *out, const char *path, data_image_want want);

#endif
