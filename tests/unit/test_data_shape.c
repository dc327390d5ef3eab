/* The shape of rows: what a file says stays while the rows are whole, also through columns, loans and writing, and a
 * picture is drawn by it. */
#include "data_support.h"

#include "base/memory.h"
#include "data/data_lend.h"
#include "data/table/data_select.h"
#include "data/image/picture_shape.h"

/* Values of bytes in an array of these dimensions. */
static const char *write_array(const char *name, int rank, const int64_t *shape)
{
    static const unsigned char bytes[4096];
    assert_int_equal(shoal_npy_write(file_path(name), bytes, SHOAL_UINT8, rank, shape), SHOAL_OK);
    return file_path(name);
}

static void expect_shape(const shoal_data *data, int rank, const int64_t *shape)
{
    const int64_t *found;
    assert_int_equal(shoal_data_dimensions(data, &found), rank);
    assert_memory_equal(found, shape, (size_t)rank * sizeof *shape);
}
#define EXPECT_SHAPE(data, ...)                                                                                        \
    expect_shape(data, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (const int64_t[]){__VA_ARGS__})

static void test_files(void **state)
{
    (void)state;
    shoal_data *data = open_data(write_array("a.npy", 4, (int64_t[]){2, 3, 5, 3}));
    EXPECT_SHAPE(data, 3, 5, 3);
    assert_int_equal(shoal_data_columns(data), 45);
    shoal_data_free(&data);
    data = open_data(write_array("a.npy", 1, (int64_t[]){7}));
    EXPECT_SHAPE(data, 1);
    shoal_data_free(&data);
    data = open_data(write_text("a.csv", "1,2,3\n"));
    EXPECT_SHAPE(data, 3);
    shoal_data_free(&data);
}

/* Columns in another order, or fewer, are no image any more. */
static void test_columns(void **state)
{
    (void)state;
    const char *path = write_array("c.npy", 3, (int64_t[]){2, 2, 3});
    static const struct {
        const char *columns;
        bool whole;
    } cases[] = {{"1-6", true}, {"1-5", false}, {"2-6,1", false}, {"6", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        shoal_data *data = open_with(path, &(shoal_data_options){.keep_columns = cases[i].columns});
        const int64_t *shape;
        assert_int_equal(shoal_data_dimensions(data, &shape), cases[i].whole ? 2 : 1);
        assert_int_equal(shape[0], cases[i].whole ? 2 : shoal_data_columns(data));
        shoal_data_free(&data);
    }
}

static shoal_data *borrowed(shoal_data *data)
{
    shoal_data *out = NULL;
    char path[64];
    void *note = NULL;
    size_t size = 0;
    int descriptor = -1;
    assert_int_equal(data_lend(&descriptor, data), SHOAL_OK);
    snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    assert_int_equal(data_lent_describe(&note, &size, data), SHOAL_OK);
    assert_int_equal(data_borrow(&out, note, size, path), SHOAL_OK);
    base_free(&note);
    return out;
}

static void test_others(void **state)
{
    (void)state;
    shoal_data *data = open_data(write_array("o.npy", 3, (int64_t[]){2, 4, 9})), *other = borrowed(data);
    EXPECT_SHAPE(other, 4, 9);
    shoal_data_free(&other);
    assert_int_equal(data_alias(&other, data), SHOAL_OK);
    EXPECT_SHAPE(other, 4, 9);
    shoal_data_free(&other);
    shoal_data_free(&data);
}

/* A label behind an image leaves it one, and is written beside it; without it the array is whole again. */
static void test_label(void **state)
{
    (void)state;
    int64_t columns[36], shape[DATA_NPY_RANK_MOST];
    shoal_data *data = open_data(write_array("l.npy", 2, (int64_t[]){2, 37})), *other = NULL;
    data_note_shape(data, (uint64_t[]){2, 4, 9}, 3);
    assert_int_equal(data_shape_whole(shape, data), 2);
    assert_int_equal(shape[1], 37);
    for (int i = 0; i < 36; i++)
        columns[i] = i;
    assert_int_equal(data_select_copy(&other, data, columns, 36), SHOAL_OK);
    assert_int_equal(data_shape_whole(shape, other), 3);
    assert_int_equal(shape[2], 9);
    assert_int_equal(shoal_data_write(other, file_path("whole.npy")), SHOAL_OK);
    shoal_data_free(&other);
    other = open_data(file_path("whole.npy"));
    EXPECT_SHAPE(other, 4, 9);
    shoal_data_free(&other);
    shoal_data_free(&data);
}

static void expect_picture(const char *path, int64_t columns, int64_t height, int64_t width, int channels)
{
    data_sheet sheet;
    shoal_data *data = open_data(path);
    assert_int_equal(data_picture_find(&sheet, &(data_picture_settings){0}, columns, data), SHOAL_OK);
    assert_int_equal(sheet.height, height);
    assert_int_equal(sheet.width, width);
    assert_int_equal(sheet.channels, channels);
    shoal_data_free(&data);
}

/* 36 values are a square, unless the file knows better; so are those of other columns than the images have. */
static void test_pictures(void **state)
{
    (void)state;
    expect_picture(write_array("p.npy", 2, (int64_t[]){2, 36}), 36, 6, 6, 1);
    expect_picture(write_array("p.npy", 3, (int64_t[]){2, 4, 9}), 36, 4, 9, 1);
    expect_picture(write_array("p.npy", 4, (int64_t[]){2, 4, 9, 1}), 36, 4, 9, 1);
    expect_picture(write_array("p.npy", 4, (int64_t[]){2, 4, 3, 3}), 36, 4, 3, 3);
    expect_picture(write_array("p.npy", 4, (int64_t[]){2, 3, 4, 3}), 36, 3, 4, 3);
    expect_picture(write_array("p.npy", 4, (int64_t[]){2, 3, 3, 4}), 36, 6, 6, 1);
    expect_picture(write_array("p.npy", 3, (int64_t[]){2, 4, 9}), 25, 5, 5, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_files), cmocka_unit_test(test_columns),
                                       cmocka_unit_test(test_others), cmocka_unit_test(test_label),
                                       cmocka_unit_test(test_pictures)};
    return cmocka_run_group_tests_name("data_shape", tests, folder_setup, folder_teardown);
}
