/* .fvecs, .bvecs and .ivecs: the ending or --type says what they are, and every row is checked. */
#include "data_support.h"

/* Writes rows, each behind its number of columns. */
static size_t put_rows(unsigned char *out, const void *values, int rows, int columns, size_t size)
{
    size_t at = 0;
    for (int i = 0; i < rows; i++) {
        for (int k = 0; k < 4; k++)
            out[at++] = (unsigned char)(columns >> (8 * k));
        memcpy(out + at, (const char *)values + (size_t)i * (size_t)columns * size, (size_t)columns * size);
        at += (size_t)columns * size;
    }
    return at;
}

static const float six[6] = {1, 2, 3, 4, 5, -6};

static void test_kinds(void **state)
{
    (void)state;
    unsigned char bytes[256], packed[256];
    size_t size = put_rows(bytes, six, 2, 3, 4);
    shoal_data *data = open_data(write_file("r.fvecs", bytes, size));
    assert_string_equal(shoal_data_format(data), "vecs");
    assert_string_equal(shoal_data_detail(data), ".fvecs, decoded into memory");
    assert_int_equal(shoal_data_type(data), SHOAL_FLOAT32);
    EXPECT_VALUES(data, 2, 3, 1, 2, 3, 4, 5, -6);
    data = open_data(append_gzip("r.fvecs.gz", bytes, size));
    assert_string_equal(shoal_data_detail(data), ".fvecs, gzip, decoded into memory");
    EXPECT_VALUES(data, 2, 3, 1, 2, 3, 4, 5, -6);
    EXPECT_VALUES(open_with(write_file("r.bin", bytes, size), &(shoal_data_options){.type = "fvecs"}), 2, 3, 1, 2, 3, 4,
                  5, -6);
    EXPECT_VALUES(open_with(file_path("r.fvecs.gz"), &(shoal_data_options){.type = "fvecs", .columns = 3, .rows = 2}),
                  2, 3, 1, 2, 3, 4, 5, -6);
    size = put_rows(packed, (const int32_t[]){-1, 2, INT32_MIN}, 3, 1, 4);
    data = open_data(write_file("r.ivecs", packed, size));
    assert_int_equal(shoal_data_type(data), SHOAL_INT32);
    EXPECT_VALUES(data, 3, 1, -1, 2, INT32_MIN);
    size = put_rows(packed, "\1\2\xff\4", 2, 2, 1);
    data = open_data(write_file("r.bvecs", packed, size));
    assert_int_equal(shoal_data_type(data), SHOAL_UINT8);
    EXPECT_VALUES(data, 2, 2, 1, 2, 255, 4);
    /* Options say what is meant in spite of the name, and so does what is inside. */
    EXPECT_VALUES(open_with(write_file("r.bvecs", "\1\2\3\4", 4), &(shoal_data_options){.columns = 2, .type = "u1"}), 2,
                  2, 1, 2, 3, 4);
    assert_int_equal(shoal_npy_write(file_path("n.npy"), six, SHOAL_FLOAT32, 1, (int64_t[]){6}), SHOAL_OK);
    assert_int_equal(rename(file_path("n.npy"), file_path("n.fvecs")), 0);
    EXPECT_VALUES(open_data(file_path("n.fvecs")), 6, 1, 1, 2, 3, 4, 5, -6);
}

static void test_lies(void **state)
{
    (void)state;
    unsigned char bytes[64];
    size_t size = put_rows(bytes, six, 2, 3, 4);
    for (int gzip = 0; gzip < 2; gzip++) {
        for (size_t cut = 4; cut < size; cut++) {
            if (cut == 16)
                continue; /* one whole row */
            unlink(file_path("c.fvecs.gz"));
            refuse(gzip ? append_gzip("c.fvecs.gz", bytes, cut) : write_file("c.fvecs", bytes, cut), SHOAL_INVALID,
                   "are not a whole number of rows of 3 values");
        }
        unlink(file_path("d.fvecs.gz"));
        bytes[16] = 4;
        refuse(gzip ? append_gzip("d.fvecs.gz", bytes, size) : write_file("d.fvecs", bytes, size), SHOAL_INVALID,
               "row 2 says that it has 4 values, and row 1 has 3");
        bytes[16] = 3;
    }
    refuse(write_file("s.fvecs", bytes, 3), SHOAL_INVALID, "too short");
    refuse(write_file("z.fvecs", "\0\0\0\0", 4), SHOAL_INVALID, "row 1 says that it has 0 values");
    refuse(write_file("n.fvecs", "\xff\xff\xff\xff", 4), SHOAL_INVALID, "row 1 says that it has -1 values");
    refuse(write_text("t.fvecs", "1,2,3\n4,5,6\n"), SHOAL_INVALID, "so this is not .fvecs; if it holds raw values");
    const char *path = write_file("o.fvecs", bytes, size);
    refuse_with(path, &(shoal_data_options){.type = "fvecs", .columns = 4}, SHOAL_USAGE,
                "which --rows and --cols deny");
    refuse_with(path, &(shoal_data_options){.type = "ivec", .columns = 4}, SHOAL_USAGE, "\"ivec\" is not a type");
    char address[600];
    snprintf(address, sizeof address, "%s:x", path);
    refuse(address, SHOAL_USAGE, "holds one array without a name");
}

/* Several pieces, by threads: all rows, and the first that is wrong however many are. */
static void test_many_rows(void **state)
{
    (void)state;
    enum { ROWS = 30000, COLUMNS = 20 };
    float *values = malloc(ROWS * COLUMNS * sizeof *values);
    unsigned char *bytes = malloc(ROWS * (COLUMNS + 1) * 4);
    for (int i = 0; i < ROWS * COLUMNS; i++)
        values[i] = (float)i;
    const size_t size = put_rows(bytes, values, ROWS, COLUMNS, 4);
    const char *path = write_file("many.fvecs", bytes, size);
    for (int limit = 0; limit < 2; limit++) {
        shoal_data *data = open_with(path, &(shoal_data_options){.memory = limit});
        assert_int_equal(shoal_data_rows(data), ROWS);
        assert_memory_equal(data->values, values, ROWS * COLUMNS * sizeof *values);
        shoal_data_free(&data);
    }
    shoal_data *data = open_data(append_gzip("many.fvecs.gz", bytes, size));
    assert_memory_equal(data->values, values, ROWS * COLUMNS * sizeof *values);
    shoal_data_free(&data);
    for (int row = 17000; row < ROWS; row++)
        bytes[row * (COLUMNS + 1) * 4] ^= 1;
    refuse(write_file("many.fvecs", bytes, size), SHOAL_INVALID, "row 17001 says that it has 21 values");
    free(values);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_kinds), cmocka_unit_test(test_lies),
                                       cmocka_unit_test(test_many_rows)};
    return cmocka_run_group_tests_name("data_vecs", tests, folder_setup, folder_teardown);
}
