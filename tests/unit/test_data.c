/* Data sets as such: wrapping memory, reading ranges, many threads, and options that make no sense. */
#include "data_support.h"

#include <fenv.h>
#include <pthread.h>

static const float six[6] = {1, 2, 3, 4, 5, 6};

static void test_wrap(void **state)
{
    (void)state;
    shoal_data *data = NULL;
    assert_int_equal(shoal_data_wrap(&data, six, 2, 3, SHOAL_FLOAT32), SHOAL_OK);
    assert_string_equal(shoal_data_format(data), "memory");
    assert_string_equal(shoal_data_path(data), "memory");
    assert_non_null(shoal_data_detail(data));
    const void *rows;
    assert_int_equal(shoal_data_read(&rows, data, 1, 1, NULL), SHOAL_OK);
    assert_ptr_equal(rows, six + 3);
    assert_int_equal(shoal_data_read(&rows, data, 2, 0, NULL), SHOAL_OK);
    EXPECT_VALUES(data, 2, 3, 1, 2, 3, 4, 5, 6);
    assert_int_equal(shoal_data_wrap(&data, six, 0, 3, SHOAL_FLOAT32), SHOAL_INVALID);
    assert_int_equal(shoal_data_wrap(&data, six, 3, 0, SHOAL_FLOAT32), SHOAL_INVALID);
    assert_int_equal(shoal_data_wrap(&data, six, INT64_MAX, 3, SHOAL_FLOAT32), SHOAL_INVALID);
    assert_int_equal(shoal_data_wrap(&data, NULL, 2, 3, SHOAL_FLOAT32), SHOAL_USAGE);
    assert_int_equal(shoal_data_wrap(&data, six, -2, 3, SHOAL_FLOAT32), SHOAL_USAGE);
    assert_int_equal(shoal_data_wrap(&data, six, 2, 3, SHOAL_TYPES), SHOAL_USAGE);
    assert_null(data);
    shoal_data_free(&data);
}

static void test_options(void **state)
{
    (void)state;
    refuse_with("x", &(shoal_data_options){.memory = -1}, SHOAL_USAGE, "memory limit");
    refuse_with("x", &(shoal_data_options){.columns = -1}, SHOAL_USAGE, "negative");
    refuse(write_file("unknown", "\x01\x02\x03\x04", 4), SHOAL_INVALID, "unknown: not npy, npz");
    EXPECT_VALUES(open_data(write_text("name.npy", "1,2\n")), 1, 2, 1, 2); /* content goes before the name */
}

/* What a caller asks for is checked, not trusted. */
static void test_out_of_range(void **state)
{
    (void)state;
    static const int64_t wrong[][2] = {
        {-1, 1}, {0, -1}, {0, 3}, {2, 1}, {3, 0}, {1, INT64_MAX}, {INT64_MAX, INT64_MAX}};
    const void *rows = NULL;
    float scratch[6];
    shoal_data *data = open_data(write_text("named.csv", "a,b,c\n1,2,3\n4,5,6\n"));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(shoal_data_read(&rows, data, wrong[i][0], wrong[i][1], scratch), SHOAL_USAGE);
        assert_non_null(strstr(shoal_error(), "named.csv: "));
    }
    assert_null(rows);
    assert_string_equal(shoal_data_column_name(data, 2), "c");
    assert_null(shoal_data_column_name(data, -1));
    assert_null(shoal_data_column_name(data, 3));
    shoal_data_free(&data);
    data = open_data("gen:uniform?rows=2&cols=3");
    assert_int_equal(shoal_data_read(&rows, data, 0, 1, NULL), SHOAL_USAGE);
    assert_int_equal(shoal_data_read(&rows, data, 1, 1, scratch), SHOAL_OK);
    shoal_data_free(&data);
}

/* Numbers read from text, made or converted do not depend on how the caller rounds, and it rounds so afterwards. */
static void test_rounding_of_the_caller(void **state)
{
    (void)state;
    static const int modes[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    static const int64_t large[1] = {INT64_MAX - 1};
    double values[4][3 + 8 + 1];
    char text[4][64] = {""};
    write_text("round.csv", "0.1,1.00000000000000011102230246251565404236316680908203126,2.2250738585072011e-308\n");
    for (int i = 0; i < 4; i++) {
        shoal_data *given = NULL, *wide = NULL;
        const void *rows;
        fesetround(modes[i]);
        int status = shoal_data_open(&given, file_path("round.csv"), NULL);
        int made = shoal_data_open(&wide, "gen:blobs?rows=1&cols=8&type=float64&seed=3", NULL);
        int wrote = status == SHOAL_OK ? shoal_data_write(given, file_path("round.tsv")) : status;
        if (made == SHOAL_OK)
            made = shoal_data_read(&rows, wide, 0, 1, values[i] + 3);
        shoal_convert_float64(values[i] + 11, large, SHOAL_INT64, 1);
        int mode = fegetround();
        fesetround(FE_TONEAREST);
        assert_int_equal(mode, modes[i]);
        assert_int_equal(status, SHOAL_OK);
        assert_int_equal(made, SHOAL_OK);
        assert_int_equal(wrote, SHOAL_OK);
        assert_int_equal(shoal_data_read(&rows, given, 0, 1, NULL), SHOAL_OK);
        memcpy(values[i], rows, 3 * sizeof(double));
        read_whole_file(text[i], sizeof text[i] - 1, file_path("round.tsv"));
        shoal_data_free(&given);
        shoal_data_free(&wide);
        assert_memory_equal(values[i], values[0], sizeof values[0]);
        assert_string_equal(text[i], text[0]);
    }
}

static void *read_everything(void *shared)
{
    shoal_data *data = shared;
    float scratch[64];
    const void *rows;
    double *sum = calloc(1, sizeof *sum);
    for (int64_t i = 0; i < shoal_data_rows(data); i++) {
        shoal_data_read(&rows, data, i, 1, scratch);
        for (int64_t c = 0; c < shoal_data_columns(data); c++)
            *sum += ((const float *)rows)[c];
    }
    return sum;
}

static void test_many_threads(void **state)
{
    (void)state;
    shoal_data *data = open_data("gen:blobs?rows=2000&cols=16&seed=4");
    pthread_t threads[4];
    double *sums[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, read_everything, data), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], (void **)&sums[i]);
    for (int i = 0; i < 4; i++) {
        assert_true(*sums[i] == *sums[0]);
        if (i > 0)
            free(sums[i]);
    }
    free(sums[0]);
    shoal_data_free(&data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wrap), cmocka_unit_test(test_options), cmocka_unit_test(test_out_of_range),
        cmocka_unit_test(test_rounding_of_the_caller), cmocka_unit_test(test_many_threads)};
    return cmocka_run_group_tests_name("data", tests, folder_setup, folder_teardown);
}
