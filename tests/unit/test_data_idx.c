/* IDX files: every type, one to many dimensions, gzip, and headers that lie. */
#include "data_support.h"

static const char *write_idx(const char *name, unsigned type, unsigned rank, const unsigned *shape, const void *values,
                             size_t size)
{
    unsigned char bytes[2048] = {0, 0, (unsigned char)type, (unsigned char)rank};
    size_t at = 4;
    for (unsigned i = 0; i < rank; i++)
        for (int shift = 24; shift >= 0; shift -= 8)
            bytes[at++] = (unsigned char)(shape[i] >> shift);
    memcpy(bytes + at, values, size);
    return write_file(name, bytes, at + size);
}

static void test_types(void **state)
{
    (void)state;
    static const struct {
        unsigned code;
        const char *bytes;
        shoal_type type;
        double value;
    } cases[] = {
        {0x08, "\xff", SHOAL_UINT8, 255},
        {0x09, "\xff", SHOAL_INT8, -1},
        {0x0B, "\xff\xfe", SHOAL_INT16, -2},
        {0x0C, "\x00\x00\x02\x01", SHOAL_INT32, 513},
        {0x0D, "\x3f\x80\x00\x00", SHOAL_FLOAT32, 1},
        {0x0E, "\x3f\xf0\x00\x00\x00\x00\x00\x00", SHOAL_FLOAT64, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        shoal_data *data = open_data(
            write_idx("t.idx", cases[i].code, 1, (unsigned[]){1}, cases[i].bytes, shoal_type_size(cases[i].type)));
        assert_string_equal(shoal_data_format(data), "idx");
        assert_int_equal(shoal_data_type(data), cases[i].type);
        EXPECT_VALUES(data, 1, 1, cases[i].value);
    }
    refuse(write_idx("t.idx", 0x0A, 1, (unsigned[]){1}, "x", 1), SHOAL_INVALID, "not npy, npz");
}

static void test_shapes(void **state)
{
    (void)state;
    const char *six = "\1\2\3\4\5\6";
    EXPECT_VALUES(open_data(write_idx("s.idx", 8, 1, (unsigned[]){6}, six, 6)), 6, 1, 1, 2, 3, 4, 5, 6);
    shoal_data *data = open_data(write_idx("s.idx", 8, 3, (unsigned[]){2, 1, 3}, six, 6));
    assert_string_equal(shoal_data_detail(data), "IDX of 2 x 1 x 3, mapped");
    EXPECT_VALUES(data, 2, 3, 1, 2, 3, 4, 5, 6);
    refuse(write_idx("s.idx", 8, 0, NULL, six, 6), SHOAL_INVALID, "at least one dimension");
    refuse(write_idx("s.idx", 8, 2, (unsigned[]){0, 3}, six, 0), SHOAL_INVALID, "no rows");
    refuse(write_idx("s.idx", 8, 2, (unsigned[]){3, 0}, six, 0), SHOAL_INVALID, "no columns");
}

static void test_headers_that_lie(void **state)
{
    (void)state;
    const char *six = "\1\2\3\4\5\6";
    refuse(write_idx("l.idx", 8, 2, (unsigned[]){3, 3}, six, 6), SHOAL_INVALID, "take 9 bytes, but the file holds 6");
    refuse(write_idx("l.idx", 8, 2, (unsigned[]){1, 3}, six, 6), SHOAL_INVALID, "take 3 bytes, but the file holds 6");
    unsigned all[255];
    for (int i = 0; i < 255; i++)
        all[i] = 0xffffffff;
    refuse(write_idx("l.idx", 8, 3, all, six, 6), SHOAL_INVALID, "63 bits");
    refuse(write_idx("l.idx", 8, 4, all, six, 6), SHOAL_INVALID, "more than 64 bits");
    refuse(write_idx("l.idx", 8, 255, all, six, 6), SHOAL_INVALID, "more than 64 bits");
    refuse(write_file("l.idx", "\0\0\x08\x02\0\0", 6), SHOAL_INVALID, "ends inside its IDX header");
    refuse_with(write_idx("l.idx", 8, 1, (unsigned[]){6}, six, 6), &(shoal_data_options){.drop_columns = "1"},
                SHOAL_USAGE, "no column is left");
}

static void test_gzip(void **state)
{
    (void)state;
    unsigned char bytes[64];
    size_t size = read_whole_file(bytes, sizeof bytes, write_idx("g.idx", 0x0B, 2, (unsigned[]){1, 2}, "\0\1\0\2", 4));
    append_gzip("g.gz", bytes, 5);
    append_gzip("g.gz", bytes + 5, size - 5); /* two members, cut inside the header */
    for (int memory = 0; memory < 2; memory++)
        EXPECT_VALUES(open_with(file_path("g.gz"), &(shoal_data_options){.memory = memory}), 1, 2, 1, 2);
    append_gzip("short.gz", bytes, size - 1);
    refuse(file_path("short.gz"), SHOAL_INVALID, "take 4 bytes, but the file holds 3");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_types), cmocka_unit_test(test_shapes),
                                       cmocka_unit_test(test_headers_that_lie), cmocka_unit_test(test_gzip)};
    return cmocka_run_group_tests_name("data_idx", tests, folder_setup, folder_teardown);
}
