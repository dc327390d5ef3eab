/* Resizing and cropping of an image whose rows come one by one.
 *
 *     status = data_resample_begin(&self, &shape);
 *     for (int64_t y = self.rows.from; y < self.rows.past; y++)
 *         data_resample_row(&self, ... row y, from pixel self.columns.from on, four bytes a pixel ...);
 *     ... self.out ...
 *
 * The image covers the item: the side that fits exactly keeps its length, the other's is truncated to whole pixels, and
 * the middle of that remains.  Only the pixels that reach the item are asked for and computed, however long the resized
 * image would be.  All arithmetic is float32 in a fixed order (docs/images.md), the same on every processor. */
#ifndef DATA_IMAGE_RESAMPLE_H
#define DATA_IMAGE_RESAMPLE_H

#include <stdint.h>

#include "image_prepare.h"
#include "image_rows.h"

/* Memory that is kept from image to image. */
typedef struct data_image_room {
    void *block;
    size_t size;
} data_image_room;

/* At least so many elements, with whatever was there before lost. */
int data_image_room_get(data_image_room *room, int64_t count, size_t size);

/* One direction: what each pixel of the item is made of. */
typedef struct data_image_axis {
    int64_t from, past;       /* the pixels of the source that are needed */
    int most;                 /* pixels of the source for one of the item */
    int32_t *first;           /* of each pixel of the item: where its own start, counted from `from` */
    int32_t *count;           /* how many there are */
    float *weights;           /* DATA_IMAGE_ANTIALIAS: `most` of each */
    data_image_lanes *shares; /* DATA_IMAGE_TF: the second pixel's share, four times */
    data_image_room memory;
} data_image_axis;

typedef struct data_image_shape {
    data_image_resize resize;
    int height, width;                   /* of the item */
    int64_t source_height, source_width; /* of the image */
} data_image_shape;

typedef struct data_resampler {
    data_image_shape shape;
    data_image_axis rows, columns;
    const data_image_rows *arithmetic;
    int64_t row;            /* the source's next, counted from rows.from */
    int done;               /* rows of the item */
    data_image_lanes *line; /* DATA_IMAGE_ANTIALIAS: a row of the source */
    float *ring;            /* rows that are as wide as the item, three floats a pixel: rows.most of them */
    float *sum;             /* one such row */
    unsigned char *out;     /* the item: height x width x 3 bytes */
    data_image_room line_memory, ring_memory, out_memory;
} data_resampler;

/* Where the resized image of n pixels has its middle part of `side`, and n itself, for both directions. */
typedef struct data_image_cover {
    int64_t height, width, top, left;
} data_image_cover;
data_image_cover data_image_cover_of(const data_image_shape *shape);

/* May be called again for the next image. */
int data_resample_begin(data_resampler *self, const data_image_shape *shape);
/* For an image that has the item's size already, whose rows the caller writes to self->out. */
int data_resample_whole(data_resampler *self, const data_image_shape *shape);
void data_resample_row(data_resampler *self, const unsigned char *pixels);
void data_resample_release(data_resampler *self);

#endif
