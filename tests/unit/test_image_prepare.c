/* src/data/image/image_prepare.c and what it is made of: items of pictures that are made here, beside the definition
 * written plainly. tests/system/test_images.py compares with numpy and Pillow. */
#include "data_support.h"

#include <jpeglib.h>
#include <math.h>
#include <png.h>

#include "base/memory.h"
#include "data/image/image.h"
#include "data/image/image_huffman.h"
#include "data/image/image_orientation.h"
#include "data/image/image_prepare.h"
#include "data/image/image_resample.h"

/* ---- pictures ---------------------------------------------------------------------------------------------------- */

typedef struct picture {
    int height, width, across, down; /* samples of luminance for one of colour */
    bool grey, progressive, arithmetic;
    int restart; /* rows of blocks between markers, or 0 */
    const unsigned char *exif;
    unsigned exif_size;
} picture;

typedef struct file {
    unsigned char *bytes;
    size_t size;
} file;

/* Smooth colours with sharp edges and some noise, so that every interpolation shows. */
static unsigned char sample_at(int y, int x, int c)
{
    const int noise = (int)(((unsigned)y * 7919 + (unsigned)x * 104729 + (unsigned)c * 31) * 2654435761u >> 28);
    return (unsigned char)(((x * 3 + y * (c + 1)) / 2 + (x / 9 % 2 + y / 7 % 2) * 60 * (c + 1) + noise) & 255);
}

static file make_jpeg(const picture *in)
{
    struct jpeg_compress_struct jpeg;
    struct jpeg_error_mgr errors;
    file out = {0};
    unsigned long length = 0;
    unsigned char *row = malloc((size_t)in->width * 3);
    jpeg.err = jpeg_std_error(&errors);
    jpeg_create_compress(&jpeg);
    jpeg_mem_dest(&jpeg, &out.bytes, &length);
    jpeg.image_width = (JDIMENSION)in->width;
    jpeg.image_height = (JDIMENSION)in->height;
    jpeg.input_components = 3;
    jpeg.in_color_space = JCS_RGB;
    jpeg_set_defaults(&jpeg);
    if (in->grey)
        jpeg_set_colorspace(&jpeg, JCS_GRAYSCALE);
    jpeg.comp_info[0].h_samp_factor = in->across;
    jpeg.comp_info[0].v_samp_factor = in->down;
    jpeg.restart_in_rows = in->restart;
    jpeg.arith_code = in->arithmetic;
    if (in->progressive)
        jpeg_simple_progression(&jpeg);
    jpeg_start_compress(&jpeg, TRUE);
    if (in->exif)
        jpeg_write_marker(&jpeg, JPEG_APP0 + 1, in->exif, in->exif_size);
    while (jpeg.next_scanline < jpeg.image_height) {
        for (int i = 0; i < in->width * 3; i++)
            row[i] = sample_at((int)jpeg.next_scanline, i / 3, i % 3);
        jpeg_write_scanlines(&jpeg, &row, 1);
    }
    jpeg_finish_compress(&jpeg);
    jpeg_destroy_compress(&jpeg);
    free(row);
    out.size = length;
    return out;
}

static file make_png(int height, int width)
{
    png_image image = {.version = PNG_IMAGE_VERSION,
                       .width = (png_uint_32)width,
                       .height = (png_uint_32)height,
                       .format = PNG_FORMAT_RGB};
    png_alloc_size_t room = PNG_IMAGE_PNG_SIZE_MAX(image);
    unsigned char *pixels = malloc((size_t)height * (size_t)width * 3);
    file out = {.bytes = malloc(room)};
    for (int i = 0; i < height * width * 3; i++)
        pixels[i] = sample_at(i / 3 / width, i / 3 % width, i % 3);
    assert_true(png_image_write_to_memory(&image, out.bytes, &room, 0, pixels, 0, NULL));
    free(pixels);
    out.size = room;
    return out;
}

/* ---- the definition ---------------------------------------------------------------------------------------------- */

static float lerp(float a, float b, float share)
{
    return a + (b - a) * share;
}

/* Pixel i of n that `source` are resized to lies between *below and *above. */
static float place_tf(int64_t i, int64_t n, int64_t source, int64_t *below, int64_t *above)
{
    float at = ((float)i + 0.5f) * ((float)source / (float)n) - 0.5f, floored = floorf(at);
    *below = floored < 0 ? 0 : (int64_t)floored;
    *above = floored + 1 < (float)source ? (int64_t)floored + 1 : source - 1;
    *below = *below < source ? *below : source - 1;
    return at - floored;
}

/* A pixel of the item, with all of the image before us. */
static unsigned char define_tf(const data_image *image, const data_image_recipe *recipe, int y, int x, int c)
{
    int64_t h = recipe->height, w = recipe->width, rows[2], columns[2];
    float values[2][2];
    if (image->width * recipe->height < image->height * recipe->width)
        h = image->height * recipe->width / image->width;
    else
        w = image->width * recipe->height / image->height;
    float down = place_tf(y + (h - recipe->height) / 2, h, image->height, &rows[0], &rows[1]);
    float across = place_tf(x + (w - recipe->width) / 2, w, image->width, &columns[0], &columns[1]);
    for (int i = 0; i < 4; i++)
        values[i / 2][i % 2] =
            ((const unsigned char *)image->samples)[(rows[i / 2] * image->width + columns[i % 2]) * image->channels +
                                                    (image->channels == 3 ? c : 0)];
    return (unsigned char)lerp(lerp(values[0][0], values[0][1], across), lerp(values[1][0], values[1][1], across),
                               down);
}

/* What of pixel i of n comes from pixel x of `source`, of which `reach` on both sides count. */
static double triangle(int64_t x, double centre, double reach)
{
    return fmax(0, 1 - fabs((double)x + 0.5 - centre) / reach);
}

/* Weights of all pixels of the source, divided by their sum. */
static void weigh(float *out, int64_t i, int64_t n, int64_t source)
{
    const double scale = (double)source / (double)n, centre = ((double)i + 0.5) * scale, reach = scale > 1 ? scale : 1;
    double sum = 0;
    for (int64_t x = 0; x < source; x++)
        sum += triangle(x, centre, reach);
    for (int64_t x = 0; x < source; x++)
        out[x] = (float)(triangle(x, centre, reach) / sum);
}

static unsigned char define_antialias(const data_image *image, const data_image_recipe *recipe, int y, int x, int c)
{
    enum { SIDE_MOST = 256 };
    float down[SIDE_MOST], across[SIDE_MOST], all = 0;
    int64_t h = recipe->height, w = recipe->width;
    assert_true(image->height <= SIDE_MOST && image->width <= SIDE_MOST);
    if (image->width * recipe->height < image->height * recipe->width)
        h = image->height * recipe->width / image->width;
    else
        w = image->width * recipe->height / image->height;
    weigh(down, y + (h - recipe->height) / 2, h, image->height);
    weigh(across, x + (w - recipe->width) / 2, w, image->width);
    for (int64_t row = 0; row < image->height; row++) {
        float sum = 0;
        for (int64_t column = 0; column < image->width && down[row] > 0; column++)
            sum +=
                across[column] *
                ((const unsigned char *)
                     image->samples)[(row * image->width + column) * image->channels + (image->channels == 3 ? c : 0)];
        all += down[row] * sum;
    }
    return (unsigned char)(all + 0.5f);
}

static unsigned char define(const data_image *image, const data_image_recipe *recipe, int y, int x, int c)
{
    return recipe->resize == DATA_IMAGE_TF ? define_tf(image, recipe, y, x, c)
                                           : define_antialias(image, recipe, y, x, c);
}

static void compare_with_definition(const file *in, const data_image_recipe *recipe, data_image_maker *maker)
{
    data_image_item item;
    data_image image;
    assert_int_equal(data_image_prepare(&item, maker, recipe, in->bytes, in->size, "here.jpg"), SHOAL_OK);
    assert_int_equal(item.size, recipe->height * recipe->width * 3);
    assert_int_equal(data_image_read_memory(&image, in->bytes, in->size, "here.jpg", DATA_IMAGE_COLOUR), SHOAL_OK);
    assert_true(item.source_height == image.height && item.source_width == image.width);
    for (int i = 0; i < (int)item.size; i++) {
        const int y = i / 3 / recipe->width, x = i / 3 % recipe->width;
        if (item.bytes[i] != define(&image, recipe, y, x, i % 3))
            fail_msg("%lld x %lld to %d x %d: row %d, column %d, colour %d is %d, not %d", (long long)image.height,
                     (long long)image.width, recipe->height, recipe->width, y, x, i % 3, item.bytes[i],
                     define(&image, recipe, y, x, i % 3));
    }
    data_image_release(&image);
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

static data_image_maker *maker;

static int start(void **state)
{
    return folder_setup(state) != 0 || data_image_maker_new(&maker) < 0;
}

static int stop(void **state)
{
    data_image_maker_free(&maker);
    return folder_teardown(state);
}

static data_image_recipe raw_recipe(int height, int width)
{
    data_image_recipe recipe = data_image_recipe_default;
    recipe.encode = DATA_IMAGE_RAW;
    recipe.height = height;
    recipe.width = width;
    return recipe;
}

/* The definition goes through all pixels for each, so a few sizes have to do. */
static void antialias_is_as_defined(void **state)
{
    static const int sources[][2] = {{30, 41}, {17, 64}, {70, 23}, {9, 9}}, items[][2] = {{8, 8}, {20, 13}, {7, 31}};
    (void)state;
    for (size_t s = 0; s < sizeof sources / sizeof *sources; s++)
        for (size_t i = 0; i < sizeof items / sizeof *items; i++) {
            data_image_recipe recipe = raw_recipe(items[i][0], items[i][1]);
            file bytes = make_png(sources[s][0], sources[s][1]);
            recipe.resize = DATA_IMAGE_ANTIALIAS;
            compare_with_definition(&bytes, &recipe, maker);
            free(bytes.bytes);
        }
}

/* What is decoded is no more than the crop needs, and must be what a decoder of everything finds there: at every offset
 * within a block, beside both edges, for every way of sharing colours. */
static void items_are_as_defined(void **state)
{
    static const int samplings[][2] = {{1, 1}, {2, 1}, {2, 2}, {1, 2}, {4, 1}, {4, 2}};
    static const int items[][2] = {{8, 8}, {24, 8}, {8, 40}, {61, 47}};
    (void)state;
    for (size_t s = 0; s < sizeof samplings / sizeof samplings[0]; s++)
        for (int side = 1; side < 220; side += side < 24 ? 1 : 13)
            for (int form = 0; form < 4; form++) {
                const picture in = {.height = form == 0 ? 50 : side,
                                    .width = form == 0 ? side : 230 - 97 * (form - 1),
                                    .across = samplings[s][0],
                                    .down = samplings[s][1],
                                    .progressive = side % 3 == 0,
                                    .restart = side % 5 == 0};
                const int *to = items[(side + form) % 4];
                const data_image_recipe recipe = raw_recipe(to[0], to[1]);
                file bytes = make_jpeg(&in);
                compare_with_definition(&bytes, &recipe, maker);
                free(bytes.bytes);
            }
}

static void png_and_grey_are_as_defined(void **state)
{
    const data_image_recipe recipe = raw_recipe(20, 31);
    const picture grey = {.height = 45, .width = 90, .across = 1, .down = 1, .grey = true};
    file bytes = make_png(45, 90);
    (void)state;
    compare_with_definition(&bytes, &recipe, maker);
    free(bytes.bytes);
    bytes = make_jpeg(&grey);
    compare_with_definition(&bytes, &recipe, maker);
    free(bytes.bytes);
}

static void the_longer_side_is_truncated(void **state)
{
    static const struct {
        int64_t source_height, source_width, height, width, top, left;
    } cases[] = {{333, 500, 192, 288, 0, 48},          {500, 333, 288, 192, 48, 0},
                 {192, 192, 192, 192, 0, 0},           {100, 200, 192, 384, 0, 96},
                 {240, 319, 192, 255, 0, 31},          {2, 65500, 192, 6288000, 0, 3143904},
                 {65500, 1, 12576000, 192, 6287904, 0}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const data_image_shape shape = {DATA_IMAGE_TF, 192, 192, cases[i].source_height, cases[i].source_width};
        const data_image_cover cover = data_image_cover_of(&shape);
        assert_int_equal(cover.height, cases[i].height);
        assert_int_equal(cover.width, cases[i].width);
        assert_int_equal(cover.top, cases[i].top);
        assert_int_equal(cover.left, cases[i].left);
    }
}

/* Millions of columns that nobody sees cost nothing. */
static void only_the_crop_is_computed(void **state)
{
    const picture wide = {.height = 2, .width = 65500, .across = 2, .down = 2},
                  tall = {.height = 65500, .width = 2, .across = 2, .down = 2};
    data_image_recipe recipe = raw_recipe(192, 192);
    (void)state;
    for (int i = 0; i < 2; i++) {
        file bytes = make_jpeg(i ? &tall : &wide);
        compare_with_definition(&bytes, &recipe, maker);
        recipe.resize = DATA_IMAGE_ANTIALIAS;
        data_image_item item;
        assert_int_equal(data_image_prepare(&item, maker, &recipe, bytes.bytes, bytes.size, "x"), SHOAL_OK);
        recipe.resize = DATA_IMAGE_TF;
        free(bytes.bytes);
    }
}

/* Averages of equal values are these values, and those of a picture of its own size are the picture. */
static void antialias_keeps_what_is_even(void **state)
{
    unsigned char pixels[37 * 4];
    data_resampler resampler = {0};
    (void)state;
    for (int value = 0; value < 256; value++) {
        const data_image_shape shape = {DATA_IMAGE_ANTIALIAS, 5, 7, 53, 37};
        memset(pixels, value, sizeof pixels);
        assert_int_equal(data_resample_begin(&resampler, &shape), SHOAL_OK);
        for (int64_t y = resampler.rows.from; y < resampler.rows.past; y++)
            data_resample_row(&resampler, pixels);
        for (int i = 0; i < 5 * 7 * 3; i++)
            assert_int_equal(resampler.out[i], value);
    }
    for (int i = 0; i < (int)sizeof pixels; i++)
        pixels[i] = (unsigned char)(i * 89);
    const data_image_shape same = {DATA_IMAGE_ANTIALIAS, 1, 37, 1, 37};
    assert_int_equal(data_resample_begin(&resampler, &same), SHOAL_OK);
    data_resample_row(&resampler, pixels);
    for (int i = 0; i < 37 * 3; i++)
        assert_int_equal(resampler.out[i], pixels[i / 3 * 4 + i % 3]);
    data_resample_release(&resampler);
}

/* Every set of functions has the bits of the portable one, at every length. */
static void rows_have_the_same_bits_on_every_processor(void **state)
{
    enum { WIDEST = 150, VALUES = 3 * WIDEST + 1 };
    const data_image_rows *best = data_image_rows_best();
    unsigned char source[4 * (WIDEST + 2)], made[2][3 * WIDEST];
    float rows[2][VALUES] = {{0}};
    int32_t first[WIDEST];
    data_image_lanes shares[WIDEST];
    (void)state;
    for (int width = 1; width <= WIDEST; width++) {
        for (size_t i = 0; i < sizeof source; i++)
            source[i] = sample_at(width, (int)i / 4, (int)i % 4);
        for (int x = 0; x < width; x++) {
            const float share = x % 5 == 0 ? (float)(x % 2) : (float)((x * 37 + width * 11) % 101) / 101;
            first[x] = x * 7919 % width;
            shares[x] = (data_image_lanes){share, share, share, share};
        }
        data_image_rows_portable.narrow(rows[0], source, first, shares, width);
        best->narrow(rows[1], source, first, shares, width);
        assert_memory_equal(rows[0], rows[1], (size_t)(3 * width) * sizeof(float));
        best->narrow(rows[1], source + 4, first, shares, width);
        for (int share = 0; share < 4; share++) {
            data_image_rows_portable.mix(made[0], rows[0], rows[1], (float)share / 3, 3 * width);
            best->mix(made[1], rows[0], rows[1], (float)share / 3, 3 * width);
            assert_memory_equal(made[0], made[1], (size_t)(3 * width));
        }
    }
}

/* An image that has the item's size is not resized, by either way, but decoded as every other. */
static void an_image_of_its_own_size_stays_as_it_is(void **state)
{
    (void)state;
    for (int form = 0; form < 24; form++) {
        const picture in = {.height = 1 + form * 7,
                            .width = 41 - form,
                            .across = 1 + form % 2,
                            .down = 1 + form / 2 % 2,
                            .grey = form % 6 == 5,
                            .progressive = form % 4 == 3};
        data_image_recipe recipe = raw_recipe(in.height, in.width);
        data_image_item item;
        unsigned char *first;
        file bytes = make_jpeg(&in);
        compare_with_definition(&bytes, &recipe, maker);
        assert_int_equal(data_image_prepare(&item, maker, &recipe, bytes.bytes, bytes.size, "x"), SHOAL_OK);
        first = malloc(item.size);
        memcpy(first, item.bytes, item.size);
        recipe.resize = DATA_IMAGE_ANTIALIAS;
        assert_int_equal(data_image_prepare(&item, maker, &recipe, bytes.bytes, bytes.size, "x"), SHOAL_OK);
        assert_memory_equal(item.bytes, first, item.size);
        assert_int_equal(data_image_prepare(&item, maker, &recipe, bytes.bytes, bytes.size / 2, "x"), SHOAL_INVALID);
        free(first);
        free(bytes.bytes);
    }
}

/* A maker's items do not depend on what it made before. */
static void makers_keep_nothing(void **state)
{
    const picture pictures[] = {{.height = 40, .width = 60, .across = 2, .down = 2},
                                {.height = 90, .width = 30, .across = 1, .down = 1, .progressive = true}};
    data_image_recipe recipes[4];
    unsigned char *first[2][4];
    size_t sizes[2][4];
    file files[2];
    data_image_item item;
    (void)state;
    for (int i = 0; i < 4; i++) {
        recipes[i] = data_image_recipe_default;
        recipes[i].height = recipes[i].width = i ? 24 : 33;
        recipes[i].huffman = i % 2 ? DATA_IMAGE_BEST : DATA_IMAGE_FIXED;
        recipes[i].chroma = i > 1 ? DATA_IMAGE_420 : DATA_IMAGE_444;
    }
    for (int f = 0; f < 2; f++) {
        files[f] = make_jpeg(&pictures[f]);
        for (int i = 0; i < 4; i++) {
            data_image_maker *alone = NULL;
            assert_int_equal(data_image_maker_new(&alone), SHOAL_OK);
            assert_int_equal(data_image_prepare(&item, alone, &recipes[i], files[f].bytes, files[f].size, "x"), 0);
            first[f][i] = malloc(item.size);
            memcpy(first[f][i], item.bytes, item.size);
            sizes[f][i] = item.size;
            data_image_maker_free(&alone);
        }
    }
    for (int turn = 0; turn < 64; turn++) {
        const int f = turn * 5 / 3 % 2, i = turn * 7 / 4 % 4;
        if (turn % 7 == 3)
            assert_true(data_image_prepare(&item, maker, &recipes[i], files[f].bytes, files[f].size / 2, "x") < 0);
        assert_int_equal(data_image_prepare(&item, maker, &recipes[i], files[f].bytes, files[f].size, "x"), 0);
        assert_int_equal(item.size, sizes[f][i]);
        assert_memory_equal(item.bytes, first[f][i], item.size);
    }
    for (int i = 0; i < 8; i++)
        free(first[i / 4][i % 4]);
    free(files[0].bytes);
    free(files[1].bytes);
}

/* Takes the quantisation (or other) tables away. */
static void remove_segments(file *in, unsigned char marker)
{
    for (size_t at = 2; in->bytes[at] == 0xff && in->bytes[at + 1] != 0xda;) {
        const size_t length = 2 + (size_t)(in->bytes[at + 2] << 8 | in->bytes[at + 3]);
        if (in->bytes[at + 1] == marker) {
            in->size -= length;
            memmove(in->bytes + at, in->bytes + at + length, in->size - at);
        } else
            at += length;
    }
}

/* Tables that a file lacks are not those of the file before it. */
static void tables_are_of_one_file(void **state)
{
    enum { QUANTISATION = 0xdb };
    const picture in = {.height = 16, .width = 16, .across = 1, .down = 1};
    const data_image_recipe recipe = raw_recipe(8, 8);
    data_image_item item;
    file whole = make_jpeg(&in), part = make_jpeg(&in);
    (void)state;
    remove_segments(&part, QUANTISATION);
    assert_true(part.size < whole.size);
    assert_int_equal(data_image_prepare(&item, maker, &recipe, whole.bytes, whole.size, "x"), SHOAL_OK);
    assert_int_equal(data_image_prepare(&item, maker, &recipe, part.bytes, part.size, "x"), SHOAL_INVALID);
    free(whole.bytes);
    free(part.bytes);
}

static void items_that_are_jpegs_are_near_the_pixels(void **state)
{
    const picture in = {.height = 60, .width = 60, .across = 1, .down = 1};
    data_image_recipe recipe = raw_recipe(32, 48);
    file bytes = make_jpeg(&in);
    data_image_item item;
    data_image image;
    unsigned char pixels[32 * 48 * 3];
    size_t sizes[4];
    (void)state;
    assert_int_equal(data_image_prepare(&item, maker, &recipe, bytes.bytes, bytes.size, "x"), SHOAL_OK);
    memcpy(pixels, item.bytes, sizeof pixels);
    recipe.encode = DATA_IMAGE_JPEG;
    for (int i = 0; i < 4; i++) {
        double error = 0;
        recipe.huffman = i % 2 ? DATA_IMAGE_BEST : DATA_IMAGE_FIXED;
        recipe.chroma = i > 1 ? DATA_IMAGE_420 : DATA_IMAGE_444;
        assert_int_equal(data_image_prepare(&item, maker, &recipe, bytes.bytes, bytes.size, "x"), SHOAL_OK);
        sizes[i] = item.size;
        assert_int_equal(data_image_read_memory(&image, item.bytes, item.size, "item", DATA_IMAGE_COLOUR), SHOAL_OK);
        assert_true(image.height == 32 && image.width == 48 && image.channels == 3);
        for (size_t k = 0; k < sizeof pixels; k++)
            error += fabs((double)((const unsigned char *)image.samples)[k] - pixels[k]);
        assert_true(error / sizeof pixels < (i > 1 ? 25 : 5));
        data_image_release(&image);
    }
    assert_true(sizes[1] < sizes[0] && sizes[3] < sizes[2] && sizes[2] < sizes[0]);
    free(bytes.bytes);
}

/* A code for whatever may occur, and none of all ones. */
static void fixed_tables_are_whole(void **state)
{
    (void)state;
    for (int i = 0; i < 8; i++) {
        const int kind = i % 4;
        const data_huffman_set *set = i < 4 ? &data_huffman_fine : &data_huffman_coarse;
        const data_huffman_table *table = kind < 2 ? &set->dc[kind] : &set->ac[kind - 2];
        bool has[256] = {false};
        int count = 0;
        double used = 0;
        for (int length = 1; length <= 16; length++) {
            count += table->counts[length];
            used += table->counts[length] / (double)(1 << length);
        }
        for (int code = 0; code < count; code++) {
            assert_false(has[table->values[code]]);
            has[table->values[code]] = true;
        }
        assert_int_equal(count, kind < 2 ? 12 : 162);
        assert_true(used <= 1 - 1.0 / 65536);
        for (int bits = 0; kind < 2 && bits < 12; bits++)
            assert_true(has[bits]);
        for (int run = 0; kind > 1 && run < 16; run++)
            for (int bits = 1; bits < 11; bits++)
                assert_true(has[run << 4 | bits]);
        assert_true(kind < 2 || (has[0] && has[0xf0]));
    }
}

static int prepare(const void *bytes, size_t size)
{
    data_image_item item;
    const data_image_recipe recipe = raw_recipe(8, 8);
    /* A copy of just so many bytes, so that the address sanitizer sees what is read beyond. */
    void *copy = malloc(size ? size : 1);
    memcpy(copy, bytes, size);
    int status = data_image_prepare(&item, maker, &recipe, copy, size, "here.jpg");
    free(copy);
    if (status < 0)
        assert_true(strncmp(shoal_error(), "here.jpg: ", 10) == 0);
    return status;
}

/* Every start of a file is refused, up to its end marker; what is behind that is not looked at. */
static void cut_off_files_are_refused(void **state)
{
    const picture kinds[] = {{.height = 20, .width = 40, .across = 2, .down = 2},
                             {.height = 20, .width = 40, .across = 2, .down = 2, .progressive = true},
                             {.height = 40, .width = 20, .across = 1, .down = 1, .restart = 1}};
    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        file in = kind == 3 ? make_png(20, 40) : make_jpeg(&kinds[kind]);
        const size_t end = kind == 3 ? 0 : 2;
        for (size_t size = 0; size < in.size - end; size++)
            if (prepare(in.bytes, size) != SHOAL_INVALID)
                fail_msg("kind %d: %zu of %zu bytes are taken", kind, size, in.size);
        for (size_t size = in.size - end; size <= in.size; size++)
            assert_int_equal(prepare(in.bytes, size), SHOAL_OK);
        in.bytes = realloc(in.bytes, in.size + 100);
        memset(in.bytes + in.size, '<', 100);
        assert_int_equal(prepare(in.bytes, in.size + 100), SHOAL_OK);
        free(in.bytes);
    }
}

/* Where the crop ends says nothing of whether the file is whole. */
static void files_are_read_to_their_last_row(void **state)
{
    const picture tall = {.height = 400, .width = 20, .across = 2, .down = 2};
    file in = make_jpeg(&tall);
    (void)state;
    assert_int_equal(prepare(in.bytes, in.size), SHOAL_OK);
    assert_int_equal(prepare(in.bytes, in.size * 9 / 10), SHOAL_INVALID);
    assert_string_equal(shoal_error(), "here.jpg: a broken JPEG image: the file is cut off");
    free(in.bytes);
}

/* Without its end marker nobody knows whether such a file is whole. */
static void arithmetic_coding_needs_its_end_marker(void **state)
{
    const picture kind = {.height = 20, .width = 40, .across = 2, .down = 2, .arithmetic = true};
    file in = make_jpeg(&kind);
    (void)state;
    assert_int_equal(prepare(in.bytes, in.size), SHOAL_OK);
    assert_int_equal(prepare(in.bytes, in.size - 2), SHOAL_INVALID);
    free(in.bytes);
}

static void damage_never_ends_the_program(void **state)
{
    const picture kinds[] = {{.height = 20, .width = 40, .across = 2, .down = 2},
                             {.height = 20, .width = 40, .across = 2, .down = 2, .progressive = true}};
    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        file in = kind == 2 ? make_png(9, 11) : make_jpeg(&kinds[kind]);
        int refused = 0;
        for (size_t i = 0; i < in.size; i++) {
            in.bytes[i] ^= 0xff;
            refused += prepare(in.bytes, in.size) < 0;
            in.bytes[i] ^= 0xff;
        }
        assert_true(refused > 30);
        assert_int_equal(prepare(in.bytes, in.size), SHOAL_OK);
        free(in.bytes);
    }
}

static void other_files_are_named(void **state)
{
    static const struct {
        size_t size;
        const char *bytes, *says;
    } cases[] = {
        {0, "", "the file is empty"},
        {10, "GIF89a\1\0\1\0", "neither PNG nor JPEG: it is a GIF image"},
        {16, "RIFF\4\0\0\0WEBPVP8 ", "a WebP image"},
        {18, "BM\x46\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0", "a BMP image"},
        {8, "II*\0\10\0\0\0", "a TIFF image"},
        {8, "MM\0*\0\0\0\10", "a TIFF image"},
        {16,
         "\0\0\0\x18"
         "ftypheic\0\0\0\0",
         "a HEIC image"},
        {16,
         "\0\0\0\x18"
         "ftypmif1\0\0\0\0",
         "a HEIC image"},
        {16,
         "\0\0\0\x18"
         "ftypavif\0\0\0\0",
         "an AVIF image"},
        {15, "<!DOCTYPE html>", "a page of HTML"},
        {9, "\xef\xbb\xbf\n<HTML", "a page of HTML"},
        {5, "<svg ", "an XML file"},
        {5, "%PDF-", "a PDF document"},
        {4, "what", "here.jpg: neither PNG nor JPEG"},
        {2, "BM", "here.jpg: neither PNG nor JPEG"},
        {2, "\xff\xd8", "here.jpg: neither PNG nor JPEG"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(prepare(cases[i].bytes, cases[i].size), SHOAL_INVALID);
        if (!strstr(shoal_error(), cases[i].says))
            fail_msg("\"%s\" does not say \"%s\"", shoal_error(), cases[i].says);
    }
}

/* ---- orientation ------------------------------------------------------------------------------------------------- */

static void set_number(unsigned char *out, unsigned value, int length, bool big)
{
    for (int i = 0; i < length; i++)
        out[i] = (unsigned char)(value >> 8 * (big ? length - 1 - i : i));
}

/* EXIF data with one other entry before it. */
static unsigned make_exif(unsigned char out[64], unsigned orientation, bool big)
{
    memset(out, 0, 64);
    memcpy(out, "Exif\0\0", 6);
    memcpy(out + 6, big ? "MM\0*" : "II*\0", 4);
    set_number(out + 10, 8, 4, big);
    set_number(out + 14, 2, 2, big);
    for (int i = 0; i < 2; i++) {
        set_number(out + 16 + 12 * i, i ? 0x112 : 0x100, 2, big);
        set_number(out + 18 + 12 * i, 3, 2, big);
        set_number(out + 20 + 12 * i, 1, 4, big);
        set_number(out + 24 + 12 * i, i ? orientation : 3, 2, big);
    }
    return 44;
}

/* Where a pixel of the upright picture is in the file: what EXIF means by the side at which its first row is, and the
 * side at which its first column is. */
static void find_in_file(int orientation, int h, int w, int *y, int *x)
{
    const int top = *y, left = *x, bottom = (orientation > 4 ? w : h) - 1 - *y,
              right = (orientation > 4 ? h : w) - 1 - *x;
    const int places[8][2] = {{top, left}, {top, right}, {bottom, right}, {bottom, left},
                              {left, top}, {right, top}, {right, bottom}, {left, bottom}};
    *y = places[orientation - 1][0];
    *x = places[orientation - 1][1];
}

static void pictures_are_turned_upright(void **state)
{
    enum { H = 12, W = 20 };
    unsigned char exif[64];
    data_image_item item;
    data_image image;
    (void)state;
    for (int orientation = 1; orientation <= 8; orientation++) {
        const picture in = {.height = H,
                            .width = W,
                            .across = 1,
                            .down = 1,
                            .exif = exif,
                            .exif_size = make_exif(exif, (unsigned)orientation, orientation % 2)};
        const int height = orientation > 4 ? W : H, width = orientation > 4 ? H : W;
        file bytes = make_jpeg(&in);
        data_image_recipe recipe = raw_recipe(height, width);
        assert_int_equal(data_image_orientation(bytes.bytes, bytes.size), orientation);
        recipe.orient = true;
        assert_int_equal(data_image_prepare(&item, maker, &recipe, bytes.bytes, bytes.size, "x"), SHOAL_OK);
        assert_true(item.source_height == height && item.source_width == width);
        assert_int_equal(data_image_read_memory(&image, bytes.bytes, bytes.size, "x", DATA_IMAGE_COLOUR), SHOAL_OK);
        for (int i = 0; i < H * W; i++) {
            int y = i / width, x = i % width;
            find_in_file(orientation, H, W, &y, &x);
            assert_memory_equal(item.bytes + 3 * i, (const unsigned char *)image.samples + 3 * (y * W + x), 3);
        }
        data_image_release(&image);
        recipe = raw_recipe(H, W); /* and as it lies in the file */
        compare_with_definition(&bytes, &recipe, maker);
        free(bytes.bytes);
    }
}

/* Whatever EXIF data claim, nothing beyond them is read. */
static void broken_exif_says_nothing(void **state)
{
    unsigned char exif[64];
    (void)state;
    const picture in = {
        .height = 8, .width = 8, .across = 1, .down = 1, .exif = exif, .exif_size = make_exif(exif, 6, true)};
    file bytes = make_jpeg(&in);
    for (size_t size = 0; size <= bytes.size; size++) {
        unsigned char *copy = malloc(size ? size : 1);
        memcpy(copy, bytes.bytes, size);
        const int found = data_image_orientation(copy, size);
        assert_true(found == 1 || (found == 6 && size > 44));
        for (size_t i = 0; size == bytes.size && i < 100; i++) {
            copy[i] ^= 0xff;
            const int other = data_image_orientation(copy, size);
            assert_true(other >= 1 && other <= 8);
            copy[i] ^= 0xff;
        }
        free(copy);
    }
    free(bytes.bytes);
    make_exif(exif, 9, false);
    bytes = make_jpeg(&in);
    assert_int_equal(data_image_orientation(bytes.bytes, bytes.size), 1);
    free(bytes.bytes);
}

/* ---- failures ---------------------------------------------------------------------------------------------------- */

static void impossible_recipes_are_refused(void **state)
{
    const picture in = {.height = 8, .width = 8, .across = 1, .down = 1};
    file bytes = make_jpeg(&in);
    data_image_item item;
    (void)state;
    static const int wrong[][3] = {{0, 8, 95}, {8, -1, 95}, {DATA_IMAGE_SIDE_MOST + 1, 8, 95},
                                   {8, 8, 0},  {8, 8, 101}, {DATA_IMAGE_SIDE_MOST, DATA_IMAGE_SIDE_MOST, 95}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        data_image_recipe recipe = data_image_recipe_default;
        recipe.height = wrong[i][0];
        recipe.width = wrong[i][1];
        recipe.quality = wrong[i][2];
        assert_int_equal(data_image_prepare(&item, maker, &recipe, bytes.bytes, bytes.size, "x"), SHOAL_USAGE);
    }
    free(bytes.bytes);
}

static void every_failing_allocation_is_reported(void **state)
{
    unsigned char exif[64];
    const picture in = {
        .height = 30, .width = 50, .across = 2, .down = 2, .exif = exif, .exif_size = make_exif(exif, 6, true)};
    file files[] = {make_jpeg(&in), make_png(30, 50)};
    (void)state;
    for (int i = 0; i < 8; i++) {
        data_image_recipe recipe = data_image_recipe_default;
        recipe.orient = i & 1;
        recipe.encode = i & 2 ? DATA_IMAGE_RAW : DATA_IMAGE_JPEG;
        recipe.resize = i & 1 ? DATA_IMAGE_TF : DATA_IMAGE_ANTIALIAS;
        int64_t n = 0;
        for (int status = SHOAL_MEMORY; status < 0; n++) {
            data_image_maker *fresh = NULL;
            data_image_item item;
            assert_true(n < 100);
            base_memory_fail_after(n);
            status = data_image_maker_new(&fresh);
            if (status == SHOAL_OK)
                status = data_image_prepare(&item, fresh, &recipe, files[i / 4].bytes, files[i / 4].size, "x");
            base_memory_fail_after(-1);
            assert_true(status == SHOAL_OK || status == SHOAL_MEMORY);
            if (status < 0 && fresh) /* the same maker goes on */
                assert_int_equal(data_image_prepare(&item, fresh, &recipe, files[i / 4].bytes, files[i / 4].size, "x"),
                                 SHOAL_OK);
            data_image_maker_free(&fresh);
        }
        assert_true(n > 5);
    }
    free(files[0].bytes);
    free(files[1].bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(items_are_as_defined),
        cmocka_unit_test(antialias_is_as_defined),
        cmocka_unit_test(png_and_grey_are_as_defined),
        cmocka_unit_test(the_longer_side_is_truncated),
        cmocka_unit_test(only_the_crop_is_computed),
        cmocka_unit_test(antialias_keeps_what_is_even),
        cmocka_unit_test(rows_have_the_same_bits_on_every_processor),
        cmocka_unit_test(an_image_of_its_own_size_stays_as_it_is),
        cmocka_unit_test(makers_keep_nothing),
        cmocka_unit_test(tables_are_of_one_file),
        cmocka_unit_test(items_that_are_jpegs_are_near_the_pixels),
        cmocka_unit_test(fixed_tables_are_whole),
        cmocka_unit_test(cut_off_files_are_refused),
        cmocka_unit_test(files_are_read_to_their_last_row),
        cmocka_unit_test(arithmetic_coding_needs_its_end_marker),
        cmocka_unit_test(damage_never_ends_the_program),
        cmocka_unit_test(other_files_are_named),
        cmocka_unit_test(pictures_are_turned_upright),
        cmocka_unit_test(broken_exif_says_nothing),
        cmocka_unit_test(impossible_recipes_are_refused),
        cmocka_unit_test(every_failing_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
