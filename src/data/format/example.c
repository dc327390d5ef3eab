/* Writing tf.train.Example.  See example.h.
 *
 * A protocol buffer's field is a tag, number * 8 + type, and its value: a varint (type 0), or a length and as many
 * bytes (type 2).  An Example holds Features (1), which holds a map (1) from a name (1) to a Feature (2), which holds a
 * list of bytes (1), floats (2) or int64 (3), whose values are field 1. */
#include "example.h"

#include <string.h>

enum { IS_BYTES = 1, IS_FLOATS = 2, IS_INTEGERS = 3 };
enum { TAG_1 = 1 << 3 | 2, TAG_2 = 2 << 3 | 2 };

/* A feature as it will be written; the sizes of what is around it are known before. */
typedef struct feature {
    const char *name;
    int kind;
    const void *bytes; /* of the values as field 1 has them, without tag and length */
    size_t size;
} feature;

static size_t varint_size(uint64_t value)
{
    size_t size = 1;
    while (value >= 128) {
        value >>= 7;
        size++;
    }
    return size;
}

static void write_varint(base_writer *out, uint64_t value)
{
    while (value >= 128) {
        base_write_u8(out, (uint8_t)(value | 128));
        value >>= 7;
    }
    base_write_u8(out, (uint8_t)value);
}

/* Of a field of type 2: tag, length and bytes. */
static size_t field_size(size_t bytes)
{
    return 1 + varint_size(bytes) + bytes;
}

static void begin_field(base_writer *out, unsigned char tag, size_t bytes)
{
    base_write_u8(out, tag);
    write_varint(out, bytes);
}

/* name = 1, value = 2; the value holds the list, which holds the values. */
static size_t entry_size(const feature *of)
{
    return field_size(strlen(of->name)) + field_size(field_size(field_size(of->size)));
}

static void write_entry(base_writer *out, const feature *of)
{
    size_t list = field_size(of->size);
    begin_field(out, TAG_1, entry_size(of));
    begin_field(out, TAG_1, strlen(of->name));
    base_write_bytes(out, of->name, strlen(of->name));
    begin_field(out, TAG_2, field_size(list));
    begin_field(out, (unsigned char)(of->kind << 3 | 2), list);
    begin_field(out, TAG_1, of->size);
    base_write_bytes(out, of->bytes, of->size);
}

void data_example_write(base_writer *out, const data_example *example)
{
    base_writer class = {0}, one_hot = {0}, size = {0};
    feature features[5];
    int count = 0;
    size_t all = 0;
    const char *name = example->label_name ? example->label_name : "";
    if (example->label >= 0) {
        write_varint(&class, (uint64_t)example->label);
        float *values = base_write_room(&one_hot, (size_t)example->labels * sizeof *values);
        for (int64_t i = 0; values && i < example->labels; i++)
            memcpy(&values[i], &(float){i == example->label ? 1 : 0}, sizeof *values);
    }
    write_varint(&size, (uint64_t)example->height);
    write_varint(&size, (uint64_t)example->width);
    if (example->label >= 0)
        features[count++] = (feature){"class", IS_INTEGERS, class.data, class.size};
    features[count++] = (feature){"image", IS_BYTES, example->image, example->image_size};
    if (example->label >= 0) {
        features[count++] = (feature){"label", IS_BYTES, name, strlen(name)};
        features[count++] = (feature){"one_hot_class", IS_FLOATS, one_hot.data, one_hot.size};
    }
    features[count++] = (feature){"size", IS_INTEGERS, size.data, size.size};
    for (int i = 0; i < count; i++)
        all += field_size(entry_size(&features[i]));
    if (class.status < 0 || one_hot.status < 0 || size.status < 0)
        out->status = class.status < 0 ? class.status : one_hot.status < 0 ? one_hot.status : size.status;
    begin_field(out, TAG_1, all);
    for (int i = 0; i < count; i++)
        write_entry(out, &features[i]);
    base_writer_release(&class);
    base_writer_release(&one_hot);
    base_writer_release(&size);
}
