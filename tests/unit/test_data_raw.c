/* Raw files: the shape and type come from the options, which must fit the file. */
#include "data_support.h"

static void test_shapes(void **state)
{
    (void)state;
    static const int16_t six[6] = {1, 2, 3, 4, 5, -6};
    const char *path = write_file("r.bin", six, sizeof six);
    shoal_data *data = open_with(path, &(shoal_data_options){.columns = 3, .type = "int16"});
    assert_string_equal(shoal_data_format(data), "raw");
    assert_string_equal(shoal_data_detail(data), "raw, mapped");
    EXPECT_VALUES(data, 2, 3, 1, 2, 3, 4, 5, -6);
    EXPECT_VALUES(open_with(path, &(shoal_data_options){.rows = 6, .columns = 1, .type = "i2"}), 6, 1, 1, 2, 3, 4, 5,
                  -6);
    data = open_with(write_file("h.bin", six, 10), &(shoal_data_options){.columns = 5, .type = "float16"});
    assert_string_equal(shoal_data_detail(data), "raw, float16 read as float32, decoded into memory");
    EXPECT_VALUES(data, 1, 5, 0x1p-24, 0x2p-24, 0x3p-24, 0x4p-24, 0x5p-24);
    path = write_file("r.bin", six, sizeof six);
    EXPECT_VALUES(open_with(path, &(shoal_data_options){.columns = 2, .rows = 3, .type = ">f2"}), 3, 2, 0x1p-16,
                  0x2p-16, 0x3p-16, 0x4p-16, 0x1.4p-14, -57312);
    EXPECT_VALUES(open_with(path, &(shoal_data_options){.columns = 6, .type = ">i2"}), 1, 6, 256, 512, 768, 1024, 1280,
                  -1281);
}

static void test_what_does_not_fit(void **state)
{
    (void)state;
    const char *path = write_file("w.bin", "0123456789", 10);
    refuse_with(path, &(shoal_data_options){.columns = 3, .type = "u1"}, SHOAL_INVALID,
                "10 bytes are not a whole number of rows of 3 bytes");
    refuse_with(path, &(shoal_data_options){.rows = 4, .columns = 3, .type = "u1"}, SHOAL_INVALID,
                "take 12 bytes, but the file holds 10");
    refuse_with(path, &(shoal_data_options){.rows = 3, .columns = 3, .type = "u1"}, SHOAL_INVALID,
                "take 9 bytes, but the file holds 10");
    refuse_with(path, &(shoal_data_options){.columns = 2, .type = "u3"}, SHOAL_USAGE, "\"u3\" is not a type");
    refuse_with(path, &(shoal_data_options){.columns = 2}, SHOAL_USAGE, "needs its number of columns and its type");
    refuse_with(path, &(shoal_data_options){.type = "u1"}, SHOAL_USAGE, "needs its number of columns and its type");
    refuse_with(path, &(shoal_data_options){.rows = -1}, SHOAL_USAGE, "can't be negative");
    refuse_with(path, &(shoal_data_options){.columns = INT64_MAX, .type = "f8"}, SHOAL_USAGE, "too many");
    refuse_with(path, &(shoal_data_options){.rows = INT64_MAX, .columns = 9, .type = "u1"}, SHOAL_INVALID, "63 bits");
    EXPECT_VALUES(open_with(path, &(shoal_data_options){.columns = 5, .type = "u1", .drop_columns = "1,-1"}), 2, 3, '1',
                  '2', '3', '6', '7', '8');
    refuse_with(write_text("w.bin", ""), &(shoal_data_options){.columns = 5, .type = "u1"}, SHOAL_INVALID, "empty");
}

/* Bytes that look like gzip or IDX are still values. */
static void test_bytes_are_taken_as_they_are(void **state)
{
    (void)state;
    const char *path = write_file("b.bin", "\x1f\x8b\x08\0", 4);
    EXPECT_VALUES(open_with(path, &(shoal_data_options){.columns = 4, .type = "u1"}), 1, 4, 0x1f, 0x8b, 8, 0);
    path = write_file("b.bin", "\0\0\x08\1\0\0\0\1\7", 9);
    EXPECT_VALUES(open_with(path, &(shoal_data_options){.columns = 9, .type = "u1"}), 1, 9, 0, 0, 8, 1, 0, 0, 0, 1, 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_shapes), cmocka_unit_test(test_what_does_not_fit),
                                       cmocka_unit_test(test_bytes_are_taken_as_they_are)};
    return cmocka_run_group_tests_name("data_raw", tests, folder_setup, folder_teardown);
}
