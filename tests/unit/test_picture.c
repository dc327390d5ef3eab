/* src/data/image/picture.c: the pixels of a contact sheet, as libpng reads them back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <png.h>

#include <shoal/error.h>

#include "data/image/picture.h"

static char folder[] = "/tmp/shoal-picture-XXXXXX";
static char path[64];

static int make_folder(void **state)
{
    (void)state;
    snprintf(path, sizeof path, "%s/sheet.png", mkdtemp(folder) ? folder : "/nowhere");
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(folder);
}

typedef struct pixels {
    unsigned char *grey;
    int width, height;
} pixels;

static pixels load(void)
{
    png_image image = {.version = PNG_IMAGE_VERSION};
    assert_true(png_image_begin_read_from_file(&image, path));
    image.format = PNG_FORMAT_GRAY;
    pixels out = {malloc(PNG_IMAGE_SIZE(image)), (int)image.width, (int)image.height};
    assert_non_null(out.grey);
    assert_true(png_image_finish_read(&image, NULL, out.grey, 0, NULL));
    return out;
}

static void images_stand_in_a_grid_with_gaps(void **state)
{
    /* Three images of 2x3: two in the first line, one in the second. */
    static const double values[18] = {-1, 0, 1, 0, 0, 0, /* */ 1, 1, 1, -1, -1, -1, /* */ 0.5, 0.5, 0.5, 0.5, 0.5, 0.5};
    static const unsigned char expected[10][12] = {
        {255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255},
        {255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255},
        {255, 255, 0, 128, 255, 255, 255, 255, 255, 255, 255, 255},
        {255, 255, 128, 128, 128, 255, 255, 0, 0, 0, 255, 255},
        {255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255},
        {255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255},
        {255, 255, 191, 191, 191, 255, 255, 255, 255, 255, 255, 255},
        {255, 255, 191, 191, 191, 255, 255, 255, 255, 255, 255, 255},
        {255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255},
        {255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255},
    };
    const data_sheet sheet = {.values = values, .images = 3, .height = 2, .width = 3};
    (void)state;
    assert_int_equal(data_picture_write(path, &sheet), SHOAL_OK);
    pixels read = load();
    assert_int_equal(read.width, 12);
    assert_int_equal(read.height, 10);
    assert_memory_equal(read.grey, expected, sizeof expected);
    free(read.grey);
}

static void columns_can_be_chosen(void **state)
{
    static const double values[5] = {0, 1, 2, 3, 4};
    data_sheet sheet = {.values = values, .images = 5, .height = 1, .width = 1, .columns = 5};
    (void)state;
    assert_int_equal(data_picture_write(path, &sheet), SHOAL_OK);
    pixels read = load();
    assert_int_equal(read.width, 17);
    assert_int_equal(read.height, 5);
    free(read.grey);
    sheet.columns = 99; /* never more than there are images */
    assert_int_equal(data_picture_write(path, &sheet), SHOAL_OK);
    read = load();
    assert_int_equal(read.width, 17);
    free(read.grey);
}

static void extreme_values_have_a_shade(void **state)
{
    static const double wide[2] = {-1.7e308, 1.7e308}, flat[2] = {3, 3};
    data_sheet sheet = {.values = wide, .images = 2, .height = 1, .width = 1, .columns = 2};
    (void)state;
    assert_int_equal(data_picture_write(path, &sheet), SHOAL_OK);
    pixels read = load();
    assert_int_equal(read.grey[2 * read.width + 2], 0);
    assert_int_equal(read.grey[2 * read.width + 5], 255);
    free(read.grey);
    sheet.values = flat;
    assert_int_equal(data_picture_write(path, &sheet), SHOAL_OK);
    read = load();
    assert_int_equal(read.grey[2 * read.width + 2], 0);
    free(read.grey);
}

static void small_images_can_be_enlarged(void **state)
{
    static const double values[2] = {-1, 0.5};
    const data_sheet sheet = {.values = values, .images = 1, .height = 1, .width = 2, .scale = 3, .centred = true};
    (void)state;
    assert_int_equal(data_picture_write(path, &sheet), SHOAL_OK);
    pixels read = load();
    assert_int_equal(read.width, 10);
    assert_int_equal(read.height, 7);
    for (int y = 0; y < 7; y++)
        for (int x = 0; x < 10; x++) {
            bool gap = y < 2 || y >= 5 || x < 2 || x >= 8;
            assert_int_equal(read.grey[y * 10 + x], gap ? 255 : x < 5 ? 0 : 191); /* 0 would be 128 */
        }
    free(read.grey);
}

static void what_does_not_fit_is_refused(void **state)
{
    static const double value = 0;
    static const data_sheet bad[] = {
        {.values = &value, .images = 0, .height = 1, .width = 1},
        {.values = &value, .images = 1, .height = 0, .width = 1},
        {.values = &value, .images = 1, .height = 1, .width = 0},
        {.values = &value, .images = INT64_MAX, .height = 1, .width = 1},
        {.values = &value, .images = 1, .height = INT64_MAX, .width = 1},
        {.values = &value, .images = 1, .height = 1000000, .width = 1},
        {.values = &value, .images = 1, .height = 500001, .width = 1, .scale = 2},
        {.values = &value, .images = 1000000, .height = 1, .width = 1, .columns = 1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(data_picture_write(path, &bad[i]), SHOAL_USAGE);
}

static void a_disk_that_is_full_is_told(void **state)
{
    static const double values[4] = {0, 1, 2, 3};
    const data_sheet sheet = {.values = values, .images = 4, .height = 1, .width = 1};
    (void)state;
    assert_int_equal(data_picture_write("/dev/full", &sheet), SHOAL_SYSTEM);
    assert_string_equal(shoal_error(), "/dev/full: can't write: No space left on device");
    assert_int_equal(data_picture_write("/nowhere/x.png", &sheet), SHOAL_SYSTEM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(images_stand_in_a_grid_with_gaps), cmocka_unit_test(columns_can_be_chosen),
        cmocka_unit_test(extreme_values_have_a_shade),      cmocka_unit_test(small_images_can_be_enlarged),
        cmocka_unit_test(what_does_not_fit_is_refused),     cmocka_unit_test(a_disk_that_is_full_is_told),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
