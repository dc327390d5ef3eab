/* One picture made ready for training: the bytes of a file become an item of a fixed size.
 *
 *     data_image_maker *maker = NULL;
 *     data_image_recipe recipe = data_image_recipe_default;
 *     data_image_item item;
 *     int status = data_image_maker_new(&maker);                                    // one per thread
 *     if (status == SHOAL_OK)
 *         status = data_image_prepare(&item, maker, &recipe, bytes, size, "rose.jpg");
 *     ... item.bytes, item.size ...
 *     data_image_maker_free(&maker);
 *
 * The item is a function of the bytes and the recipe: neither the processor, nor the thread, nor what a maker made
 * before changes one bit.  docs/images.md defines the pixels. */
#ifndef DATA_IMAGE_PREPARE_H
#define DATA_IMAGE_PREPARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <shoal/error.h>

enum { DATA_IMAGE_SIDE_MOST = 16384 /* of an item: more pixels than DATA_IMAGE_PIXELS_MOST are refused, too */ };

typedef enum data_image_resize {
    DATA_IMAGE_TF,       /* bilinear of two pixels by two, as tf.image.resize does by default */
    DATA_IMAGE_ANTIALIAS /* a triangle as wide as the scale, as Pillow's BILINEAR */
} data_image_resize;
typedef enum data_image_encode {
    DATA_IMAGE_JPEG,
    DATA_IMAGE_RAW /* height x width x 3 bytes: red, green, blue */
} data_image_encode;
/* Huffman tables: fixed ones, trained on photographs, or each image's own, smaller by a percent, in half as much time
 * again. */
typedef enum data_image_huffman { DATA_IMAGE_FIXED, DATA_IMAGE_BEST } data_image_huffman;
typedef enum data_image_chroma { DATA_IMAGE_444, DATA_IMAGE_420 } data_image_chroma;

typedef struct data_image_recipe {
    int height, width;
    data_image_resize resize;
    data_image_encode encode;
    int quality; /* 1 to 100; it, huffman and chroma are of JPEG */
    data_image_huffman huffman;
    data_image_chroma chroma;
    bool orient;  /* turn the picture as its EXIF orientation says, before it is resized */
    int64_t room; /* bytes that decoding may take; 0: any number */
} data_image_recipe;

/* 192 x 192, tf, jpeg, 95, fixed, 444, not oriented. */
extern const data_image_recipe data_image_recipe_default;

/* SHOAL_USAGE for what no image can be made by. */
int data_image_recipe_check(const data_image_recipe *recipe);

/* Working memory and decoders, for one thread at a time; it grows as images need. */
typedef struct data_image_maker data_image_maker;
int data_image_maker_new(data_image_maker **out);
void data_image_maker_free(data_image_maker **maker);

typedef struct data_image_item {
    const unsigned char *bytes; /* the maker's, until it makes another */
    size_t size;
    int height, width;                     /* as the recipe says */
    long long source_height, source_width; /* of the picture in the file, after it was turned */
} data_image_item;

/* Decodes, turns, resizes, crops and encodes one picture.  SHOAL_INVALID with a sentence that starts with `name`, when
 * the bytes are not those of a whole PNG or JPEG: what they are instead is named where that can be told.  SHOAL_MEMORY
 * when there is not enough, or no room for it; SHOAL_USAGE for the recipe. */
int data_image_prepare(data_image_item *item, data_image_maker *maker, const data_image_recipe *recipe,
                       const void *bytes, size_t size, const char *name);

#endif
