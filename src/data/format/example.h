/* tf.train.Example: how TensorFlow keeps one row of a training set, a protocol buffer of named lists.
 *
 *     base_writer out = {0};
 *     data_example_write(&out, &(data_example){.image = bytes, .image_size = size, .label = 2, .labels = names, ...});
 *
 * The five features are those of the course that many people's records follow: class, image, label, one_hot_class and
 * size, written in this order, which is that of their names, with lists packed. */
#ifndef DATA_EXAMPLE_H
#define DATA_EXAMPLE_H

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

typedef struct data_example {
    const void *image; /* as it was encoded */
    size_t image_size;
    int64_t label;          /* number of its class, or -1: then class, label and one_hot_class are left out */
    const char *label_name; /* of that class */
    int64_t labels;         /* how many classes there are */
    int64_t height, width;
} data_example;

void data_example_write(base_writer *out, const data_example *example);

#endif
