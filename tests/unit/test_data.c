/* Data sets as such: wrapping memory, reading ranges, many threads, and options that make no sense. */
#include "data_support.h"

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
    refuse(write_file("unknown", "\x01\x02\x03\x04", 4), SHOAL_INVALID, "unknown: not npy, IDX or text");
    EXPECT_VALUES(open_data(write_text("name.npy", "1,2\n")), 1, 2, 1, 2); /* content goes before the name */
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_wrap), cmocka_unit_test(test_options),
                                       cmocka_unit_test(test_many_threads)};
    return cmocka_run_group_tests_name("data", tests, folder_setup, folder_teardown);
}
