/* TFRecords of images: a row is the pixels of one, height x width x 3 bytes or x 1, and behind them its class where the
 * records have one.
 *
 * First every record is looked at: which image it has, of what size, and its class; then the rows are decoded, all by
 * the readers of shoal data patches.  Names of features differ from tool to tool, so the usual ones are tried; the
 * first record decides which are meant. */
#include "data_tfrecord.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "data/table/data_columns.h"
#include "data/image/image.h"
#include "data/image/image_kind.h"

static const char *const image_names[] = {"image", "image/encoded", "image_raw", "image/raw", NULL};
static const char *const class_names[] = {"class", "label", "image/class/label", NULL};
static const char *const text_names[] = {"label", "class", "image/class/text", "class_name", NULL};
static const char *const size_names[] = {"size", NULL};
static const char *const height_names[] = {"height", "image/height", NULL};
static const char *const width_names[] = {"width", "image/width", NULL};
static const char *const depth_names[] = {"depth", "channels", "image/channels", "image/depth", NULL};

/* What was found of a record. */
typedef struct image_record {
    const unsigned char *image, *text; /* the name of its class */
    size_t image_size, text_size;
    int64_t class;
    int32_t height, width;
    int32_t raw; /* channels of plain pixels; 0: the image is encoded */
} image_record;

typedef struct images {
    image_record *record;
    const char *image; /* names of features; NULL for what there is not */
    size_t image_bytes;
    const char *class, *text;
    int64_t height, width;
    int channels;
    bool colour_found; /* in rows that were to be grey */
    bool has_label;
    int32_t *number; /* of a record's word, when words are the classes */
} images;

/* ---- which features ---------------------------------------------------------------------------------------------- */

/* The first of these names that is of that kind and not empty. */
static const data_feature *find_named(const data_features *features, const char *const *names, data_feature_kind kind)
{
    for (; *names; names++) {
        const data_feature *found = data_feature_find(features, *names);
        if (found && found->kind == kind && found->count > 0)
            return found;
    }
    return NULL;
}

/* By its name, or because it is the only one that begins as a picture does. */
const data_feature *tf_find_image(const data_features *features)
{
    const data_feature *found = find_named(features, image_names, DATA_FEATURE_BYTES);
    for (int64_t i = 0; i < features->count && !found; i++) {
        const unsigned char *bytes = NULL;
        size_t size = 0;
        if (features->feature[i].kind == DATA_FEATURE_BYTES)
            data_feature_bytes(&bytes, &size, &features->feature[i]);
        if (bytes && data_image_kind_of(bytes, size) != DATA_IMAGE_OTHER)
            found = &features->feature[i];
    }
    return found;
}

static const char *name_of_class(const data_features *features)
{
    for (const char *const *name = class_names; *name; name++) {
        const data_feature *found = data_feature_find(features, *name);
        if (found && found->kind == DATA_FEATURE_INTEGERS && found->count == 1)
            return *name;
    }
    return NULL;
}

static const char *name_of_text(const data_features *features)
{
    for (const char *const *name = text_names; *name; name++) {
        const data_feature *found = data_feature_find(features, *name);
        if (found && found->kind == DATA_FEATURE_BYTES && found->count == 1)
            return *name;
    }
    return NULL;
}

/* ---- looking at a record ----------------------------------------------------------------------------------------- */

static int64_t find_number(const data_features *features, const char *const *names)
{
    int64_t value = 0;
    const data_feature *found = find_named(features, names, DATA_FEATURE_INTEGERS);
    if (found)
        data_feature_integers(&value, 1, found);
    return value;
}

/* Plain pixels need to be told their size. */
static int take_raw_size(tf_reader *reader, image_record *self, int64_t record, const data_features *features)
{
    const data_feature *size = find_named(features, size_names, DATA_FEATURE_INTEGERS);
    int64_t shape[3] = {find_number(features, height_names), find_number(features, width_names),
                        find_number(features, depth_names)};
    if (size)
        data_feature_integers(shape, size->count < 3 ? size->count : 3, size);
    if (shape[0] == 0 || shape[1] == 0)
        return tf_fail(reader, record, "its image is neither PNG nor JPEG, and no size says how its pixels lie");
    if (shape[0] < 0 || shape[1] < 0 || shape[0] > INT32_MAX || shape[1] > INT32_MAX)
        return tf_fail(reader, record, "its image is said to have %" PRId64 " x %" PRId64 " pixels", shape[1],
                       shape[0]);
    const size_t pixels = (size_t)shape[0] * (size_t)shape[1];
    for (int channels = 1; channels <= 3; channels += 2)
        if (self->image_size % (size_t)channels == 0 && self->image_size / (size_t)channels == pixels &&
            (shape[2] == 0 || shape[2] == channels)) {
            self->height = (int32_t)shape[0];
            self->width = (int32_t)shape[1];
            self->raw = channels;
            return SHOAL_OK;
        }
    return tf_fail(reader, record,
                   "its image is neither PNG nor JPEG, and its %zu bytes are not %" PRId64 " x %" PRId64
                   " pixels of 1 or 3",
                   self->image_size, shape[0], shape[1]);
}

static int take_size(tf_reader *reader, image_record *self, int64_t record, const data_features *features)
{
    data_image header;
    char path[600];
    if (data_image_kind_of(self->image, self->image_size) == DATA_IMAGE_OTHER)
        return take_raw_size(reader, self, record, features);
    tf_place(path, sizeof path, reader, record);
    int status = data_image_read_memory(&header, self->image, self->image_size, path, DATA_IMAGE_HEADER);
    if (status < 0)
        return tf_damaged(reader, record, status);
    self->height = (int32_t)header.height;
    self->width = (int32_t)header.width;
    data_image_release(&header);
    return SHOAL_OK;
}

static const data_feature *find_image_again(const images *self, const data_features *features)
{
    for (int64_t i = 0; i < features->count; i++) {
        const data_feature *here = &features->feature[i];
        if (data_feature_compare(here->name, here->name_bytes, self->image, self->image_bytes) == 0)
            return here->kind == DATA_FEATURE_BYTES && here->count > 0 ? here : NULL;
    }
    return NULL;
}

static int take_class(tf_reader *reader, const images *self, image_record *out, int64_t record,
                      const data_features *features)
{
    const data_feature *class = self->class ? data_feature_find(features, self->class) : NULL;
    const data_feature *text = self->text ? data_feature_find(features, self->text) : NULL;
    if (self->class && !(class && class->kind == DATA_FEATURE_INTEGERS && class->count == 1))
        return tf_fail(reader, record, "it has no class: \"%s\" is not one integer", self->class);
    if (self->text && !(text && text->kind == DATA_FEATURE_BYTES && text->count == 1))
        return tf_fail(reader, record, "its class has no name: \"%s\" is not one text", self->text);
    if (class)
        data_feature_integers(&out->class, 1, class);
    if (text)
        data_feature_bytes(&out->text, &out->text_size, text);
    return SHOAL_OK;
}

static int look_at_record(void *context, int64_t record, int thread)
{
    tf_reader *reader = context;
    const images *self = reader->rows;
    const data_features *features = &reader->features[thread];
    image_record *out = &self->record[record];
    char first[TF_OTHER_ROOM];
    int status = tf_parse(reader, record, thread);
    if (status < 0)
        return status;
    const data_feature *image = find_image_again(self, features);
    if (!image) {
        tf_other(first, reader, 0);
        return tf_fail(reader, record, "it has no image: \"%.*s\" is not there, as it is in %s",
                       (int)(self->image_bytes < DATA_SHOWN_BYTES ? self->image_bytes : DATA_SHOWN_BYTES), self->image,
                       first);
    }
    *out = (image_record){0};
    data_feature_bytes(&out->image, &out->image_size, image);
    status = take_size(reader, out, record, features);
    return status == SHOAL_OK ? take_class(reader, self, out, record, features) : status;
}

/* The first record has been parsed. */
static int look_at_all(tf_reader *reader, images *self)
{
    const data_features *first = &reader->features[0];
    const data_feature *image = tf_find_image(first);
    self->image = image->name;
    self->image_bytes = image->name_bytes;
    self->class = name_of_class(first);
    self->text = name_of_text(first);
    int status = base_alloc(&self->record, (size_t)reader->count, sizeof *self->record, "images");
    if (status == SHOAL_OK)
        status = tf_for_records(reader, look_at_record);
    for (int64_t i = 0; i < reader->count && status == SHOAL_OK; i++) {
        const image_record *here = &self->record[i], *one = &self->record[0];
        if (here->height != one->height || here->width != one->width) {
            char other[TF_OTHER_ROOM];
            tf_other(other, reader, 0);
            status = tf_fail(reader, i,
                             "its image has %" PRId32 " x %" PRId32 " pixels, and that of %s has %" PRId32 " x %" PRId32
                             "; rows of one length need images of one size",
                             here->height, here->width, other, one->height, one->width);
        }
    }
    self->height = self->record ? self->record[0].height : 0;
    self->width = self->record ? self->record[0].width : 0;
    return status;
}

/* ---- classes ----------------------------------------------------------------------------------------------------- */

/* The type that holds pixels and all classes. */
static shoal_type choose_type(const tf_reader *reader, const images *self)
{
    int64_t least = 0, most = 0;
    for (int64_t i = 0; i < reader->count && !self->number; i++) {
        least = self->record[i].class < least ? self->record[i].class : least;
        most = self->record[i].class > most ? self->record[i].class : most;
    }
    for (int64_t i = 0; i < reader->count && self->number; i++)
        most = self->number[i] > most ? self->number[i] : most;
    return least < 0 || most > UINT16_MAX ? SHOAL_INT64 : most > UINT8_MAX ? SHOAL_UINT16 : SHOAL_UINT8;
}

/* Whether classes and names are two ways to say the same. */
static bool names_fit(const tf_reader *reader, const images *self, const data_words *words)
{
    int64_t of_word[DATA_WORDS_MOST];
    bool known[DATA_WORDS_MOST] = {0}, fit = true;
    for (int64_t i = 0; i < reader->count && fit; i++) {
        const int32_t word = self->number[i];
        fit = !known[word] || of_word[word] == self->record[i].class;
        of_word[word] = self->record[i].class;
        known[word] = true;
    }
    for (int32_t i = 0; i < words->count && fit; i++)
        for (int32_t k = 0; k < i && fit; k++)
            fit = of_word[i] != of_word[k];
    return fit;
}

static int add_words(tf_reader *reader, images *self, data_words *words)
{
    int status = base_alloc(&self->number, (size_t)reader->count, sizeof *self->number, "words");
    for (int64_t i = 0; i < reader->count && status == SHOAL_OK; i++)
        status = tf_add_word(reader, words, &self->number[i], i, self->record[i].text, self->record[i].text_size);
    return status;
}

/* Whether the label is the target, so that words may stand in its place. */
static int is_target(bool *out, const tf_reader *reader, const images *self)
{
    const int64_t label = self->height * self->width * self->channels;
    const data_table_columns table = {reader->data->path, label + 1, NULL, NULL, label};
    data_chosen chosen = {0};
    *out = false;
    if (!reader->options->target)
        return SHOAL_OK;
    int status = data_columns_choose(&chosen, &table, reader->options);
    *out = status == SHOAL_OK && chosen.target >= 0 && chosen.columns[chosen.target] == label;
    base_free(&chosen.columns);
    return status;
}

/* Names without numbers are text, which only a target can be. */
static int note_text(shoal_data *data)
{
    int status = base_alloc(&data->not_numbers, (size_t)data->columns, sizeof *data->not_numbers, "columns");
    return status < 0 ? status
                      : base_format(&data->not_numbers[data->label],
                                    "%s: the classes are names and not numbers; --drop-column label leaves them out",
                                    data->path);
}

/* Names take the place of numbers where they are wanted and mean the same, or there are no numbers. */
static int settle_classes(tf_reader *reader, images *self)
{
    data_words words = {0};
    bool wanted = false;
    self->has_label = self->class || self->text;
    if (!self->text)
        return SHOAL_OK;
    int status = is_target(&wanted, reader, self);
    if (status < 0 || (self->class && !wanted))
        return status;
    status = add_words(reader, self, &words);
    if (status == SHOAL_OK && self->class && !names_fit(reader, self, &words))
        base_free(&self->number);
    else if (status == SHOAL_OK)
        status = tf_finish_words(reader, &words, self->number);
    data_words_release(&words);
    return status;
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

/* Pixels of one byte each into a row of the data's type; grey ones three times where the rows are in colour. */
static void put_pixels(void *row, const images *self, shoal_type type, const unsigned char *from, int channels)
{
    const size_t pixels = (size_t)(self->height * self->width), values = pixels * (size_t)self->channels;
    const size_t repeat = (size_t)(self->channels / channels);
    if (type == SHOAL_UINT8 && repeat == 1)
        memcpy(row, from, values);
    for (size_t i = 0; i < values && !(type == SHOAL_UINT8 && repeat == 1); i++)
        if (type == SHOAL_UINT8)
            ((uint8_t *)row)[i] = from[i / repeat];
        else if (type == SHOAL_UINT16)
            ((uint16_t *)row)[i] = from[i / repeat];
        else
            ((int64_t *)row)[i] = from[i / repeat];
}

static void put_label(void *row, const images *self, shoal_type type, int64_t record)
{
    const int64_t at = self->height * self->width * self->channels;
    const int64_t value = self->number ? self->number[record] : self->record[record].class;
    if (type == SHOAL_UINT8)
        ((uint8_t *)row)[at] = (uint8_t)value;
    else if (type == SHOAL_UINT16)
        ((uint16_t *)row)[at] = (uint16_t)value;
    else
        ((int64_t *)row)[at] = value;
}

static int check_decoded(tf_reader *reader, const images *self, int64_t record, const data_image *image)
{
    if (image->height != self->height || image->width != self->width)
        return tf_fail(reader, record, "its image changed while it was read");
    if (image->type != SHOAL_UINT8)
        return tf_fail(reader, record, "its image has 16 bits a sample; only 8 are read");
    return SHOAL_OK;
}

/* An image in colour among grey ones is noted, and all are decoded once more. */
static int decode_record(void *context, int64_t record, int thread)
{
    tf_reader *reader = context;
    images *self = reader->rows;
    const image_record *from = &self->record[record];
    unsigned char *row = reader->data->buffer.bytes + (size_t)record * data_row_bytes(reader->data);
    data_image image = {.samples = from->image, .channels = from->raw};
    char path[600];
    int status = SHOAL_OK;
    (void)thread;
    if (!from->raw) {
        tf_place(path, sizeof path, reader, record);
        status = data_image_read_memory(&image, from->image, from->image_size, path, DATA_IMAGE_COLOUR);
        tf_damaged(reader, record, status);
        if (status == SHOAL_OK)
            status = check_decoded(reader, self, record, &image);
    }
    if (status == SHOAL_OK && image.channels > self->channels)
        __atomic_store_n(&self->colour_found, true, __ATOMIC_RELAXED);
    else if (status == SHOAL_OK)
        put_pixels(row, self, reader->data->type, image.samples, image.channels);
    if (status == SHOAL_OK && self->has_label)
        put_label(row, self, reader->data->type, record);
    data_image_release(&image);
    return status;
}

/* Makes room for rows of so many channels and decodes all images into it. */
static int decode_all(tf_reader *reader, images *self)
{
    shoal_data *data = reader->data;
    const int64_t pixels = self->height * self->width * self->channels;
    int status =
        data_set_shape(data, (uint64_t)reader->count, (uint64_t)(pixels + self->has_label), choose_type(reader, self));
    if (status == SHOAL_OK)
        status = data_buffer_reserve(&data->buffer, (size_t)data->rows * data_row_bytes(data));
    if (status < 0)
        return status;
    data->buffer.size = (size_t)data->rows * data_row_bytes(data);
    data->values = data->buffer.bytes;
    data->label = self->has_label ? pixels : -1;
    self->colour_found = false;
    return tf_for_records(reader, decode_record);
}

/* Of the first image, before there is a row.  One that is damaged is found to be so when it gets its row. */
static int find_channels(tf_reader *reader, images *self)
{
    const image_record *first = &self->record[0];
    data_image image;
    char path[600];
    self->channels = first->raw;
    if (first->raw)
        return SHOAL_OK;
    tf_place(path, sizeof path, reader, 0);
    int status = data_image_read_memory(&image, first->image, first->image_size, path, DATA_IMAGE_COLOUR);
    self->channels = 1;
    if (status == SHOAL_OK) {
        self->channels = image.channels;
        data_image_release(&image);
    }
    return status == SHOAL_INVALID ? SHOAL_OK : status;
}

static int make_rows(tf_reader *reader, images *self)
{
    int status = find_channels(reader, self);
    if (status == SHOAL_OK)
        status = settle_classes(reader, self);
    if (status == SHOAL_OK)
        status = decode_all(reader, self);
    if (status < 0 || !self->colour_found)
        return status;
    self->channels = 3; /* the label is behind more columns now */
    data_words_free(&reader->data->words, reader->data->words_count);
    reader->data->words_count = 0;
    base_free(&self->number);
    status = settle_classes(reader, self);
    return status == SHOAL_OK ? decode_all(reader, self) : status;
}

int tf_take_images(tf_reader *reader)
{
    images self = {0};
    reader->rows = &self;
    int status = look_at_all(reader, &self);
    if (status == SHOAL_OK)
        status = make_rows(reader, &self);
    if (status == SHOAL_OK && self.text && !self.class)
        status = note_text(reader->data);
    if (status == SHOAL_OK) {
        data_note_shape(
            reader->data,
            (uint64_t[]){(uint64_t)reader->count, (uint64_t)self.height, (uint64_t)self.width, (uint64_t)self.channels},
            self.channels == 1 ? 3 : 4);
        status = base_format(&reader->data->detail, "%" PRId64 " images of %" PRId64 " x %" PRId64 " pixels%s%s",
                             reader->count, self.height, self.width, self.channels == 3 ? " in colour" : "",
                             self.has_label ? " and a label" : "");
    }
    base_free(&self.number);
    base_free(&self.record);
    return status;
}
