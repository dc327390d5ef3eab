/* src/data/image*.c: pictures that are made here by libpng and libjpeg, whole, cut off at every byte, and
 * damaged.  Every other kind is in tests/system/test_patches.py, where others read the same files. */
#include "data_support.h"

#include <jpeglib.h>
#include <png.h>
#include <zlib.h>

#include "base/memory.h"
#include "data/image/image.h"

enum { SIDE = 16 };

static unsigned char pixels[SIDE * SIDE * 3];

static void make_pixels(void)
{
    for (int i = 0; i < SIDE * SIDE * 3; i++)
        pixels[i] = (unsigned char)(i * 7 + i / 48 * 3);
}

/* The bytes of a colour PNG; freed by the caller. */
static unsigned char *make_png(size_t *size)
{
    png_image image = {.version = PNG_IMAGE_VERSION, .width = SIDE, .height = SIDE, .format = PNG_FORMAT_RGB};
    png_alloc_size_t room = PNG_IMAGE_PNG_SIZE_MAX(image);
    unsigned char *bytes = malloc(room);
    make_pixels();
    assert_true(png_image_write_to_memory(&image, bytes, &room, 0, pixels, 0, NULL));
    *size = room;
    return bytes;
}

static unsigned char *make_jpeg(size_t *size, bool progressive)
{
    struct jpeg_compress_struct jpeg;
    struct jpeg_error_mgr errors;
    unsigned char *bytes = NULL;
    unsigned long length = 0;
    make_pixels();
    jpeg.err = jpeg_std_error(&errors);
    jpeg_create_compress(&jpeg);
    jpeg_mem_dest(&jpeg, &bytes, &length);
    jpeg.image_width = jpeg.image_height = SIDE;
    jpeg.input_components = 3;
    jpeg.in_color_space = JCS_RGB;
    jpeg_set_defaults(&jpeg);
    if (progressive)
        jpeg_simple_progression(&jpeg);
    jpeg_start_compress(&jpeg, TRUE);
    while (jpeg.next_scanline < SIDE) {
        JSAMPROW row = pixels + jpeg.next_scanline * SIDE * 3;
        jpeg_write_scanlines(&jpeg, &row, 1);
    }
    jpeg_finish_compress(&jpeg);
    jpeg_destroy_compress(&jpeg);
    *size = length;
    return bytes;
}

static int read_bytes(data_image *out, unsigned char *bytes, size_t size, data_image_want want)
{
    FILE *stream = fmemopen(bytes, size, "rb");
    assert_non_null(stream);
    int status = data_image_read(out, stream, (int64_t)size, "here.png", want);
    fclose(stream);
    return status;
}

static void a_png_is_read_as_it_was_written(void **state)
{
    size_t size;
    unsigned char *bytes = make_png(&size);
    data_image image;
    (void)state;
    assert_int_equal(read_bytes(&image, bytes, size, DATA_IMAGE_HEADER), SHOAL_OK);
    assert_true(image.height == SIDE && image.width == SIDE && image.images == 1 && !image.samples);
    data_image_release(&image);
    assert_int_equal(read_bytes(&image, bytes, size, DATA_IMAGE_COLOUR), SHOAL_OK);
    assert_int_equal(image.channels, 3);
    assert_int_equal(image.type, SHOAL_UINT8);
    assert_memory_equal(image.samples, pixels, sizeof pixels);
    data_image_release(&image);
    free(bytes);
}

static void patches_are_squares(void **state)
{
    size_t size;
    unsigned char *bytes = make_png(&size);
    double out[5 * 5 * 3], scratch[5 * 3];
    data_image image;
    (void)state;
    assert_int_equal(read_bytes(&image, bytes, size, DATA_IMAGE_COLOUR), SHOAL_OK);
    data_cut cut = {.top = 11, .left = 3, .size = 5, .colour = true};
    assert_int_equal(data_image_cut(out, &image, &cut, scratch), SHOAL_OK);
    for (int y = 0; y < 5; y++)
        for (int x = 0; x < 5; x++) {
            const unsigned char *pixel = pixels + ((11 + y) * SIDE + 3 + x) * 3;
            for (int c = 0; c < 3; c++)
                assert_true(out[(y * 5 + x) * 3 + c] == pixel[c] / 255.0);
        }
    cut.colour = false;
    assert_int_equal(data_image_cut(out, &image, &cut, scratch), SHOAL_OK);
    const unsigned char *last = pixels + (15 * SIDE + 7) * 3;
    assert_true(out[24] == (19595 * last[0] + 38470 * last[1] + 7471 * last[2]) / (65536 * 255.0));
    data_image_release(&image);
    free(bytes);
}

/* Equal colours are that grey, to the bit. */
static void grey_of_grey_is_itself(void **state)
{
    unsigned char samples[256 * 3];
    double grey, scratch[3];
    (void)state;
    for (int i = 0; i < 256; i++)
        samples[3 * i] = samples[3 * i + 1] = samples[3 * i + 2] = (unsigned char)i;
    const data_image image = {1, 1, 256, 3, SHOAL_UINT8, samples, "x", NULL, NULL};
    for (int i = 0; i < 256; i++) {
        assert_int_equal(data_image_cut(&grey, &image, &(data_cut){.left = i, .size = 1}, scratch), SHOAL_OK);
        assert_true(grey == i / 255.0);
    }
}

static void values_that_are_not_finite_are_told(void **state)
{
    float samples[2 * 3 * 4] = {0};
    double out[4], scratch[6];
    (void)state;
    const data_image image = {2, 3, 4, 1, SHOAL_FLOAT32, samples, "x.npy", NULL, NULL};
    samples[12 + 4 + 2] = 1.0f / 0.0f; /* second image, second row, third column */
    assert_int_equal(data_image_cut(out, &image, &(data_cut){.image = 0, .size = 2}, scratch), SHOAL_OK);
    assert_int_equal(data_image_cut(out, &image, &(data_cut){.image = 1, .left = 1, .size = 2}, scratch),
                     SHOAL_INVALID);
    assert_string_equal(shoal_error(), "x.npy: image 2, row 2, column 3: inf is not a finite number");
}

/* Any start of a file must end in a sentence that names it, and no memory may stay; the last bytes may be missing. */
static void refuse_every_start(unsigned char *bytes, size_t size, size_t end)
{
    data_image image;
    for (size_t length = 1; length < size - end; length++) {
        int status = read_bytes(&image, bytes, length, DATA_IMAGE_COLOUR);
        if (status != SHOAL_INVALID || strncmp(shoal_error(), "here.png: ", 10) != 0 || image.owned)
            fail_msg("%zu of %zu bytes: status %d, \"%s\"", length, size, status, status < 0 ? shoal_error() : "");
    }
    for (size_t length = size - end; length <= size; length++) {
        assert_int_equal(read_bytes(&image, bytes, length, DATA_IMAGE_COLOUR), SHOAL_OK);
        data_image_release(&image);
    }
}

static void files_that_are_cut_off_are_refused(void **state)
{
    size_t size;
    (void)state;
    unsigned char *png = make_png(&size);
    refuse_every_start(png, size, 0);
    free(png);
    unsigned char *jpeg = make_jpeg(&size, false);
    refuse_every_start(jpeg, size, 2);
    free(jpeg);
    jpeg = make_jpeg(&size, true);
    refuse_every_start(jpeg, size, 2);
    free(jpeg);
}

/* Every byte of a file in turn has its bits turned over: whatever comes of it, it ends, and failures have a
 * sentence. */
static void damage_everywhere(unsigned char *bytes, size_t size, int least_refused)
{
    data_image image;
    int refused = 0;
    for (size_t i = 0; i < size; i++) {
        bytes[i] ^= 0xff;
        int status = read_bytes(&image, bytes, size, i % 2 ? DATA_IMAGE_GREY : DATA_IMAGE_COLOUR);
        bytes[i] ^= 0xff;
        refused += status < 0;
        if (status < 0)
            assert_true(strncmp(shoal_error(), "here.png: ", 10) == 0 && !image.owned);
        data_image_release(&image);
    }
    assert_true(refused >= least_refused);
}

static void damage_never_ends_the_program(void **state)
{
    size_t size;
    (void)state;
    unsigned char *png = make_png(&size);
    damage_everywhere(png, size, (int)size * 9 / 10); /* its sums find all but what is beside the picture */
    free(png);
    unsigned char *jpeg = make_jpeg(&size, false);
    damage_everywhere(jpeg, size, 30);
    free(jpeg);
}

/* A progressive file that repeats a scan forever costs time, not sense. */
static void write_big_endian(unsigned char *out, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        out[i] = (unsigned char)(value >> (24 - 8 * i));
}

/* A header is believed as far as its file could hold so much, at 1032 bytes for one. */
static void claims_are_compared_with_the_file(void **state)
{
    enum { HEADER = 16, WIDTH = 1000, MOST = 1032 };
    size_t size;
    unsigned char *bytes = make_png(&size);
    const uint32_t possible = (uint32_t)(MOST * (size + 1) / (3 * WIDTH)) - 1;
    (void)state;
    for (uint32_t more = 0; more < 3; more += 2) {
        data_image image;
        write_big_endian(bytes + HEADER, WIDTH);
        write_big_endian(bytes + HEADER + 4, possible + more);
        write_big_endian(bytes + HEADER + 13, (uint32_t)crc32(0, bytes + HEADER - 4, 17));
        assert_int_equal(read_bytes(&image, bytes, size, DATA_IMAGE_COLOUR), SHOAL_INVALID);
        assert_int_equal(strstr(shoal_error(), "pixels can't be in a file of") != NULL, more > 0);
    }
    free(bytes);
}

static void files_of_too_many_scans_are_refused(void **state)
{
    size_t size;
    unsigned char *jpeg = make_jpeg(&size, true), *many = NULL;
    data_image image;
    (void)state;
    size_t last = 0;
    for (size_t i = 0; i + 1 < size; i++)
        if (jpeg[i] == 0xff && jpeg[i + 1] == 0xda)
            last = i;
    size_t scan = size - 2 - last, count = 600;
    many = malloc(size + count * scan);
    memcpy(many, jpeg, size - 2);
    for (size_t i = 0; i < count; i++)
        memcpy(many + size - 2 + i * scan, jpeg + last, scan);
    memcpy(many + size - 2 + count * scan, "\xff\xd9", 2);
    assert_int_equal(read_bytes(&image, many, size + count * scan, DATA_IMAGE_COLOUR), SHOAL_INVALID);
    assert_non_null(strstr(shoal_error(), "scans"));
    free(many);
    free(jpeg);
}

static void every_failing_allocation_is_told(void **state)
{
    size_t size;
    data_image image;
    (void)state;
    for (int jpeg = 0; jpeg < 2; jpeg++) {
        unsigned char *bytes = jpeg ? make_jpeg(&size, false) : make_png(&size);
        int64_t n = 0;
        for (int status = SHOAL_MEMORY; status < 0; n++) {
            assert_true(n < 100);
            base_memory_fail_after(n);
            status = read_bytes(&image, bytes, size, DATA_IMAGE_COLOUR);
            base_memory_fail_after(-1);
            if (status < 0)
                assert_true(status == SHOAL_MEMORY && strstr(shoal_error(), "out of memory") && !image.owned);
        }
        assert_true(n > 2);
        data_image_release(&image);
        free(bytes);
    }
}

static void other_files_are_refused(void **state)
{
    data_image image;
    (void)state;
    assert_int_equal(data_image_load(&image, write_text("a.png", "GIF89a\1"), DATA_IMAGE_GREY), SHOAL_INVALID);
    assert_non_null(strstr(shoal_error(), "a.png: neither PNG, JPEG nor .npy: it is a GIF image"));
    assert_int_equal(data_image_load(&image, write_text("a.png", ""), DATA_IMAGE_GREY), SHOAL_INVALID);
    assert_non_null(strstr(shoal_error(), "the file is empty"));
    assert_int_equal(data_image_load(&image, test_folder, DATA_IMAGE_GREY), SHOAL_SYSTEM);
    assert_non_null(strstr(shoal_error(), "not a plain file"));
    assert_int_equal(data_image_load(&image, file_path("absent"), DATA_IMAGE_GREY), SHOAL_SYSTEM);
    append_gzip("a.npy", "no array", 8);
    assert_int_equal(data_image_load(&image, file_path("a.npy"), DATA_IMAGE_GREY), SHOAL_INVALID);
    assert_non_null(strstr(shoal_error(), "neither PNG, JPEG nor .npy"));
}

static void arrays_of_images_have_their_shapes(void **state)
{
    static const struct {
        int rank;
        int64_t shape[5], images, height, width;
        int channels; /* 0: no image */
    } cases[] = {
        {2, {5, 6}, 1, 5, 6, 1},       {3, {2, 5, 6}, 2, 5, 6, 1},
        {3, {5, 6, 3}, 1, 5, 6, 3},    {3, {5, 6, 1}, 1, 5, 6, 1},
        {4, {2, 5, 6, 3}, 2, 5, 6, 3}, {4, {2, 5, 6, 1}, 2, 5, 6, 1},
        {1, {30}, 0, 0, 0, 0},         {3, {5, 6, 4}, 0, 0, 0, 0},
        {4, {2, 5, 6, 2}, 0, 0, 0, 0}, {5, {1, 2, 5, 2, 3}, 0, 0, 0, 0},
    };
    float values[180];
    data_image image;
    (void)state;
    for (int i = 0; i < 180; i++)
        values[i] = (float)i;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *path = file_path("images.npy");
        assert_int_equal(shoal_npy_write(path, values, SHOAL_FLOAT32, cases[i].rank, cases[i].shape), SHOAL_OK);
        int status = data_image_load(&image, path, DATA_IMAGE_COLOUR);
        assert_int_equal(status, cases[i].channels ? SHOAL_OK : SHOAL_INVALID);
        if (status < 0)
            continue;
        assert_true(image.images == cases[i].images && image.height == cases[i].height &&
                    image.width == cases[i].width);
        assert_int_equal(image.channels, cases[i].channels);
        assert_memory_equal(image.samples, values, 30 * sizeof *values);
        data_image_release(&image);
    }
    const int32_t whole[4] = {0};
    assert_int_equal(shoal_npy_write(file_path("images.npy"), whole, SHOAL_INT32, 2, (int64_t[]){2, 2}), SHOAL_OK);
    assert_int_equal(data_image_probe(&image, file_path("images.npy")), SHOAL_INVALID);
    assert_non_null(strstr(shoal_error(), "int32"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_png_is_read_as_it_was_written),
        cmocka_unit_test(patches_are_squares),
        cmocka_unit_test(grey_of_grey_is_itself),
        cmocka_unit_test(values_that_are_not_finite_are_told),
        cmocka_unit_test(files_that_are_cut_off_are_refused),
        cmocka_unit_test(damage_never_ends_the_program),
        cmocka_unit_test(claims_are_compared_with_the_file),
        cmocka_unit_test(files_of_too_many_scans_are_refused),
        cmocka_unit_test(every_failing_allocation_is_told),
        cmocka_unit_test(other_files_are_refused),
        cmocka_unit_test(arrays_of_images_have_their_shapes),
    };
    return cmocka_run_group_tests(tests, folder_setup, folder_teardown);
}
