/* From the bytes of a file to an item.  See image_prepare.h.
 *
 * A JPEG that need not be turned is resized while it is decoded; any other image is decoded as a whole, and its rows,
 * turned, go the same way. */
#include "image_prepare.h"

#include "base/memory.h"
#include "image.h"
#include "image_encode.h"
#include "image_jpeg_rows.h"
#include "image_kind.h"
#include "image_orientation.h"
#include "image_resample.h"

const data_image_recipe data_image_recipe_default = {
    192, 192, DATA_IMAGE_TF, DATA_IMAGE_JPEG, 95, DATA_IMAGE_FIXED, DATA_IMAGE_444, false, 0};

struct data_image_maker {
    data_resampler resampler;
    jpeg_reader *reader;
    data_jpeg_writer *writer;
    data_image_room row;
};

int data_image_recipe_check(const data_image_recipe *recipe)
{
    const int h = recipe->height, w = recipe->width;
    if (h < 1 || w < 1 || h > DATA_IMAGE_SIDE_MOST || w > DATA_IMAGE_SIDE_MOST ||
        (int64_t)h * w > DATA_IMAGE_PIXELS_MOST)
        return shoal_fail(SHOAL_USAGE,
                          "images of %dx%d pixels can't be made: sides are 1 to %d, and all pixels %d at "
                          "most",
                          h, w, DATA_IMAGE_SIDE_MOST, DATA_IMAGE_PIXELS_MOST);
    if (recipe->quality < 1 || recipe->quality > 100)
        return shoal_fail(SHOAL_USAGE, "JPEG quality %d: must be 1 to 100", recipe->quality);
    return SHOAL_OK;
}

int data_image_maker_new(data_image_maker **out)
{
    int status = base_alloc(out, 1, sizeof **out, "an image");
    if (status == SHOAL_OK)
        status = data_jpeg_reader_new(&(*out)->reader);
    if (status == SHOAL_OK)
        status = data_jpeg_writer_new(&(*out)->writer);
    if (status < 0)
        data_image_maker_free(out);
    return status;
}

void data_image_maker_free(data_image_maker **maker)
{
    if (*maker) {
        data_resample_release(&(*maker)->resampler);
        data_jpeg_reader_free(&(*maker)->reader);
        data_jpeg_writer_free(&(*maker)->writer);
        base_free(&(*maker)->row.block);
    }
    base_free(maker);
}

/* ---- images as a whole ------------------------------------------------------------------------------------------- */

/* How to go through an image so that it comes out upright: where its first pixel is, and how far it is to the next one
 * of a row, and to the next row. */
typedef struct walk {
    int64_t height, width, first, across, down;
} walk;

/* EXIF names orientations by where the first row and the first column of the file are: 1 top and left, 2 top and right,
 * 3 bottom and right, 4 bottom and left, 5 left and top, 6 right and top, 7 right and bottom, 8 left and bottom. */
static walk walk_upright(const data_image *image, int orientation)
{
    const int64_t h = image->height, w = image->width;
    const bool sideways = orientation >= 5,
               right = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8,
               bottom = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
    /* From the last column of the file on, or from its last row. */
    walk out = {h, w, (right ? w - 1 : 0) + (bottom ? (h - 1) * w : 0), right ? -1 : 1, bottom ? -w : w};
    if (sideways)
        out = (walk){w, h, out.first, out.down, out.across};
    return out;
}

/* Pixels of a row as four bytes each. 16 bits become the nearest of 8. */
static void take_pixels(unsigned char *out, const data_image *image, int64_t first, int64_t step, int64_t count)
{
    const int channels = image->channels;
    for (int64_t i = 0; i < count; i++, out += 4) {
        const int64_t at = (first + i * step) * channels;
        for (int c = 0; c < 3; c++) {
            const int64_t sample = at + (channels == 3 ? c : 0);
            out[c] = image->type == SHOAL_UINT16
                         ? (unsigned char)((((const uint16_t *)image->samples)[sample] * 255u + 32767) / 65535)
                         : ((const unsigned char *)image->samples)[sample];
        }
        out[3] = 0;
    }
}

static int resample_whole(data_image_maker *maker, data_image_shape *shape, const data_image *image, int orientation)
{
    data_resampler *out = &maker->resampler;
    const walk walk = walk_upright(image, orientation);
    shape->source_height = walk.height;
    shape->source_width = walk.width;
    int status = data_resample_begin(out, shape);
    const int64_t from = out->columns.from, count = out->columns.past - from;
    if (status == SHOAL_OK)
        status = data_image_room_get(&maker->row, count, 4);
    for (int64_t y = out->rows.from; status == SHOAL_OK && y < out->rows.past; y++) {
        take_pixels(maker->row.block, image, walk.first + y * walk.down + from * walk.across, walk.across, count);
        data_resample_row(out, maker->row.block);
    }
    return status;
}

/* ---- one item ---------------------------------------------------------------------------------------------------- */

static int resample(data_image_maker *maker, data_image_shape *shape, bool orient, const data_image_input *input)
{
    const size_t size = (size_t)input->bytes;
    const data_image_kind kind = data_image_kind_of(input->memory, size);
    const int orientation = orient ? data_image_orientation(input->memory, size) : 1;
    data_image image = {0};
    if (kind == DATA_IMAGE_OTHER)
        return data_image_fail_foreign(input->memory, size, input->path, "neither PNG nor JPEG");
    if (kind == DATA_IMAGE_JPEG_FILE && orientation == 1)
        return data_jpeg_resample(maker->reader, &maker->resampler, shape, input);
    int status = data_image_read_input(&image, input);
    if (status == SHOAL_OK)
        status = resample_whole(maker, shape, &image, orientation);
    data_image_release(&image);
    return status;
}

int data_image_prepare(data_image_item *item, data_image_maker *maker, const data_image_recipe *recipe,
                       const void *bytes, size_t size, const char *name)
{
    const data_image_input input = {
        .memory = bytes, .bytes = (int64_t)size, .path = name, .want = DATA_IMAGE_COLOUR, .room = recipe->room};
    data_image_shape shape = {.resize = recipe->resize, .height = recipe->height, .width = recipe->width};
    *item = (data_image_item){.height = recipe->height, .width = recipe->width};
    int status = data_image_recipe_check(recipe);
    if (status == SHOAL_OK)
        status = resample(maker, &shape, recipe->orient, &input);
    if (status < 0)
        return status;
    item->source_height = shape.source_height;
    item->source_width = shape.source_width;
    item->bytes = maker->resampler.out;
    item->size = (size_t)recipe->height * (size_t)recipe->width * 3;
    if (recipe->encode == DATA_IMAGE_RAW)
        return SHOAL_OK;
    return data_jpeg_encode(&item->bytes, &item->size, maker->writer, recipe, maker->resampler.out, name);
}
