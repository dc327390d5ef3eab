/* Choosing columns: the values and names of the chosen ones, in their order, wherever the rows lie; what can't be
 * chosen is refused, and then the data set is what it was. */
#include "data_support.h"

#include "base/memory.h"
#include "data/data_lend.h"
#include "data/data_place.h"
#include "data/table/data_select.h"

#define COLUMNS(...) (const int64_t[]){__VA_ARGS__}, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)

static void expect_rows(shoal_data *data, const void *values, int64_t rows, int64_t columns)
{
    const void *read = NULL;
    assert_int_equal(shoal_data_rows(data), rows);
    assert_int_equal(shoal_data_columns(data), columns);
    assert_true(shoal_data_is_resident(data));
    assert_int_equal(data_place_of(data).kind, DATA_HERE);
    assert_int_equal(shoal_data_read(&read, data, 0, rows, NULL), SHOAL_OK);
    assert_memory_equal(read, values, (size_t)rows * data_row_bytes(data));
}

static void of_text(void **state)
{
    static const double reversed[] = {3, 2, 1, 6, 5, 4}, one[] = {2, 5};
    const int64_t limits[] = {0, 1}; /* in memory, or in a temporary file */
    (void)state;
    for (int i = 0; i < 2; i++) {
        shoal_data *data =
            open_with(write_text("a.csv", "x,yy,z\n1,2,3\n4,5,6\n"), &(shoal_data_options){.memory = limits[i]});
        assert_int_equal(data_select(&data, COLUMNS(2, 1, 0)), SHOAL_OK);
        expect_rows(data, reversed, 2, 3);
        assert_string_equal(shoal_data_column_name(data, 0), "z");
        assert_string_equal(shoal_data_column_name(data, 2), "x");
        assert_int_equal(data_select(&data, COLUMNS(1)), SHOAL_OK);
        expect_rows(data, one, 2, 1);
        assert_string_equal(shoal_data_column_name(data, 0), "yy");
        assert_null(shoal_data_column_name(data, 1));
        shoal_data_free(&data);
    }
}

static void of_a_mapped_file(void **state)
{
    static const int16_t values[] = {1, 2, 3, 4, 5, 6, 7, 8}, chosen[] = {4, 1, 2, 8, 5, 6};
    const char *path = file_path("a.npy");
    (void)state;
    assert_int_equal(shoal_npy_write(path, values, SHOAL_INT16, 2, (int64_t[]){2, 4}), SHOAL_OK);
    shoal_data *data = open_data(path);
    const shoal_data *before = data;
    assert_int_equal(data_select(&data, COLUMNS(0, 1, 2, 3)), SHOAL_OK);
    assert_ptr_equal(data, before);
    assert_int_equal(data_place_of(data).kind, DATA_IN_FILE); /* nothing was copied */
    assert_int_equal(data_select(&data, COLUMNS(3, 0, 1)), SHOAL_OK);
    expect_rows(data, chosen, 2, 3);
    assert_int_equal(shoal_data_type(data), SHOAL_INT16);
    assert_string_equal(shoal_data_format(data), "npy");
    assert_string_equal(shoal_data_path(data), path);
    assert_non_null(strstr(shoal_data_detail(data), "3 of 4 columns"));
    shoal_data_free(&data);
}

static void of_generated_rows(void **state)
{
    shoal_data *all = open_data("gen:uniform?rows=3000&cols=70"), *data = open_data("gen:uniform?rows=3000&cols=70");
    size_t size = shoal_type_size(shoal_data_type(all));
    char *rows = test_malloc(3000 * 70 * size), *chosen = test_malloc(3000 * 2 * size);
    const void *read = NULL;
    (void)state;
    assert_int_equal(shoal_data_read(&read, all, 0, 3000, rows), SHOAL_OK);
    for (size_t i = 0; i < 3000; i++) {
        memcpy(chosen + 2 * i * size, rows + (70 * i + 69) * size, size);
        memcpy(chosen + (2 * i + 1) * size, rows + 70 * i * size, size);
    }
    assert_int_equal(data_select(&data, COLUMNS(69, 0)), SHOAL_OK);
    expect_rows(data, chosen, 3000, 2);
    test_free(rows);
    test_free(chosen);
    shoal_data_free(&all);
    shoal_data_free(&data);
}

/* Others read the rows, and must not see them change. */
static void of_lent_rows(void **state)
{
    static const double all[] = {1, 2, 3, 4}, second[] = {2, 4};
    shoal_data *data = open_data(write_text("a.csv", "1,2\n3,4\n")), *other = NULL;
    char path[64];
    void *note = NULL;
    size_t size = 0;
    int descriptor = -1;
    (void)state;
    assert_int_equal(data_lend(&descriptor, data), SHOAL_OK);
    assert_int_equal(data_lent_describe(&note, &size, data), SHOAL_OK);
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)getpid(), descriptor);
    assert_int_equal(data_borrow(&other, note, size, path), SHOAL_OK);
    assert_int_equal(data_select(&other, COLUMNS(1)), SHOAL_OK);
    expect_rows(other, second, 2, 1);
    expect_rows(data, all, 2, 2);
    base_free(&note);
    shoal_data_free(&other);
    shoal_data_free(&data);
}

static void of_rows_of_the_caller(void **state)
{
    static const uint8_t all[] = {1, 2, 3, 4}, first[] = {1, 3};
    shoal_data *data = NULL, *copy = NULL;
    (void)state;
    assert_int_equal(shoal_data_wrap(&data, all, 2, 2, SHOAL_UINT8), SHOAL_OK);
    assert_int_equal(data_select_copy(&copy, data, COLUMNS(0)), SHOAL_OK);
    expect_rows(copy, first, 2, 1);
    assert_false(data_buffer_is_file(&copy->buffer));
    shoal_data_free(&copy);
    shoal_data_free(&data);
}

static void what_is_refused(void **state)
{
    static const double all[] = {1, 2, 3, 4};
    shoal_data *data = open_data(write_text("a.csv", "1,2\n3,4\n"));
    (void)state;
    assert_int_equal(data_select(&data, COLUMNS(0, 2)), SHOAL_USAGE);
    assert_non_null(strstr(shoal_error(), "no column 3; there are 2"));
    assert_int_equal(data_select(&data, COLUMNS(-1)), SHOAL_USAGE);
    assert_int_equal(data_select(&data, COLUMNS(1, 1)), SHOAL_USAGE);
    assert_non_null(strstr(shoal_error(), "column 2 is chosen twice"));
    assert_int_equal(data_select(&data, COLUMNS(0, 1, 0)), SHOAL_USAGE);
    assert_int_equal(data_select(&data, NULL, 0), SHOAL_USAGE);
    expect_rows(data, all, 2, 2);
    shoal_data_free(&data);
}

static void of_a_blob(void **state)
{
    static const double values[] = {1, 2, 3, 4};
    char bytes[512];
    const char *path = file_path("a.npy");
    shoal_data *data = NULL;
    (void)state;
    assert_int_equal(shoal_npy_write(path, values, SHOAL_FLOAT64, 2, (int64_t[]){2, 2}), SHOAL_OK);
    size_t size = read_whole_file(bytes, sizeof bytes, path);
    const data_blob blob = {.url = "s3://b/a.npy", .key = "a.npy", .etag = "1", .size = (int64_t)size};
    assert_int_equal(data_describe(&data, &blob, bytes, size, NULL), SHOAL_OK);
    assert_int_equal(data_select(&data, COLUMNS(1)), SHOAL_USAGE);
    assert_non_null(strstr(shoal_error(), "shoal store get"));
    shoal_data_free(&data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_text),      cmocka_unit_test(of_a_mapped_file),      cmocka_unit_test(of_generated_rows),
        cmocka_unit_test(of_lent_rows), cmocka_unit_test(of_rows_of_the_caller), cmocka_unit_test(what_is_refused),
        cmocka_unit_test(of_a_blob),
    };
    return cmocka_run_group_tests(tests, folder_setup, folder_teardown);
}
