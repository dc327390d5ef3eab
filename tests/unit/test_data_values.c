/* Values as a file has them become rows: swapped, transposed, cleaned or as they are, from files and from streams. */
#include "data_support.h"

#include "base/memory.h"

/* Takes what follows `offset` bytes of a file of bytes 0, 1, 2, ... */
static shoal_data *take(size_t offset, bool through_gzip, uint64_t rows, uint64_t columns, shoal_type type,
                        const data_layout *layout)
{
    unsigned char bytes[512], skipped[64];
    size_t size = rows * columns * shoal_type_size(type), got;
    for (size_t i = 0; i < size; i++)
        bytes[offset + i] = (unsigned char)i;
    unlink(file_path("v"));
    const char *path = through_gzip ? append_gzip("v", bytes, offset + size) : write_file("v", bytes, offset + size);
    data_source source;
    shoal_data *data = NULL;
    assert_int_equal(base_alloc(&data, 1, sizeof *data, "a data set"), SHOAL_OK);
    assert_int_equal(base_copy_text(&data->path, path), SHOAL_OK);
    data->format = &data_raw;
    data_buffer_init(&data->buffer, data->path, 0);
    assert_int_equal(data_source_open(&source, path, true), SHOAL_OK);
    assert_int_equal(data_source_read(&got, &source, skipped, offset), SHOAL_OK);
    assert_int_equal(data_set_shape(data, rows, columns, type), SHOAL_OK);
    assert_int_equal(data_take_values(data, &source, layout), SHOAL_OK);
    data_source_close(&source);
    return data;
}

static void test_layouts(void **state)
{
    (void)state;
    const data_layout plain = {0}, swapped = {.swapped = true};
    const data_layout fortran = {.fortran = true, .rank = 2, .shape = (uint64_t[]){2, 3}};
    const data_layout cube = {.fortran = true, .rank = 3, .shape = (uint64_t[]){2, 3, 2}};
    for (int gzip = 0; gzip < 2; gzip++)
        for (size_t offset = 0; offset < 10; offset += 3) {
            EXPECT_VALUES(take(offset, gzip, 2, 3, SHOAL_UINT8, &plain), 2, 3, 0, 1, 2, 3, 4, 5);
            EXPECT_VALUES(take(offset, gzip, 2, 3, SHOAL_UINT8, &fortran), 2, 3, 0, 2, 4, 1, 3, 5);
            EXPECT_VALUES(take(offset, gzip, 2, 6, SHOAL_UINT8, &cube), 2, 6, 0, 6, 2, 8, 4, 10, 1, 7, 3, 9, 5, 11);
            EXPECT_VALUES(take(offset, gzip, 1, 2, SHOAL_UINT16, &plain), 1, 2, 256, 770);
            EXPECT_VALUES(take(offset, gzip, 1, 2, SHOAL_UINT16, &swapped), 1, 2, 1, 515);
            EXPECT_VALUES(take(offset, gzip, 1, 1, SHOAL_UINT32, &swapped), 1, 1, 0x00010203);
            EXPECT_VALUES(take(offset, gzip, 1, 1, SHOAL_UINT64, &swapped), 1, 1, 0x0001020304050607);
        }
}

static void test_bools_are_zero_or_one(void **state)
{
    (void)state;
    const data_layout plain = {0};
    for (int gzip = 0; gzip < 2; gzip++) {
        shoal_data *data = take(0, gzip, 1, 5, SHOAL_BOOL, &plain);
        assert_memory_equal(data->values, "\0\1\1\1\1", 5);
        shoal_data_free(&data);
    }
    shoal_data *data = take(0, false, 1, 2, SHOAL_BOOL, &plain);
    assert_string_equal(data_kept(data), "mapped"); /* 0 and 1 are fine as they are */
    shoal_data_free(&data);
}

static void test_swap(void **state)
{
    (void)state;
    unsigned char out[9], in[9] = "12345678";
    data_swap_bytes(out, in, 4, 2);
    assert_memory_equal(out, "21436587", 8);
    data_swap_bytes(in, in, 1, 8);
    assert_memory_equal(in, "87654321", 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_layouts), cmocka_unit_test(test_bools_are_zero_or_one),
                                       cmocka_unit_test(test_swap)};
    return cmocka_run_group_tests_name("data_values", tests, folder_setup, folder_teardown);
}
