/* The buffer: it keeps its bytes while it grows, moves to a file above its limit, and reports a full disk. */
#include "data_support.h"

#include <signal.h>
#include <sys/resource.h>

static void fill(data_buffer *buffer, size_t total, size_t step)
{
    while (buffer->size < total) {
        assert_int_equal(data_buffer_extend(buffer, step), SHOAL_OK);
        assert_true(buffer->capacity - buffer->size >= step);
        for (size_t i = 0; i < step; i++)
            buffer->bytes[buffer->size + i] = (unsigned char)((buffer->size + i) * 31 >> 3);
        buffer->size += step;
    }
}

static void check(const data_buffer *buffer)
{
    for (size_t i = 0; i < buffer->size; i++)
        if (buffer->bytes[i] != (unsigned char)(i * 31 >> 3))
            fail_msg("byte %zu", i);
}

static void test_grows_in_memory(void **state)
{
    (void)state;
    data_buffer buffer;
    data_buffer_init(&buffer, "x", 0);
    fill(&buffer, 3 << 20, 1000);
    assert_false(data_buffer_is_file(&buffer));
    check(&buffer);
    data_buffer_trim(&buffer);
    assert_true(buffer.capacity < buffer.size + 65536);
    check(&buffer);
    data_buffer_release(&buffer);
    assert_null(buffer.bytes);
}

static void test_moves_to_a_file(void **state)
{
    (void)state;
    data_buffer buffer;
    setenv("TMPDIR", test_folder, 1);
    data_buffer_init(&buffer, "x", 100000);
    fill(&buffer, 90000, 1000);
    fill(&buffer, 3 << 20, 1000);
    assert_true(data_buffer_is_file(&buffer));
    assert_int_equal(count_files(), 0); /* it has no name */
    check(&buffer);
    data_buffer_trim(&buffer);
    check(&buffer);
    fill(&buffer, 4 << 20, 1000);
    check(&buffer);
    data_buffer_release(&buffer);
    unsetenv("TMPDIR");
}

static void test_no_folder(void **state)
{
    (void)state;
    data_buffer buffer;
    setenv("TMPDIR", "/nonexistent/folder", 1);
    data_buffer_init(&buffer, "rows.csv", 1);
    assert_int_equal(data_buffer_reserve(&buffer, 100), SHOAL_SYSTEM);
    assert_non_null(strstr(shoal_error(), "rows.csv: can't make a temporary file in /nonexistent/folder"));
    data_buffer_release(&buffer);
    unsetenv("TMPDIR");
}

/* A limit on the size of files stands in for a full disk: the error comes from reserving, not as a signal later. */
static void test_full_disk(void **state)
{
    (void)state;
    data_buffer buffer;
    struct rlimit old;
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &old);
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){1 << 20, old.rlim_max});
    setenv("TMPDIR", test_folder, 1);
    data_buffer_init(&buffer, "rows.csv", 1);
    fill(&buffer, 500000, 1000);
    int status = data_buffer_reserve(&buffer, 2 << 20);
    setrlimit(RLIMIT_FSIZE, &old);
    unsetenv("TMPDIR");
    assert_int_equal(status, SHOAL_SYSTEM);
    assert_non_null(strstr(shoal_error(), "rows.csv: can't keep 2097152 decoded bytes in a temporary file"));
    check(&buffer); /* what was there stays */
    data_buffer_release(&buffer);
}

static void test_too_much(void **state)
{
    (void)state;
    data_buffer buffer;
    data_buffer_init(&buffer, "rows.csv", INT64_MAX);
    assert_int_equal(data_buffer_reserve(&buffer, (size_t)1 << 62), SHOAL_MEMORY);
    assert_non_null(strstr(shoal_error(), "rows.csv: out of memory"));
    assert_int_equal(data_buffer_reserve(&buffer, SIZE_MAX), SHOAL_MEMORY);
    fill(&buffer, 1000, 1000);
    assert_int_equal(data_buffer_extend(&buffer, SIZE_MAX - 10), SHOAL_MEMORY);
    check(&buffer);
    data_buffer_release(&buffer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_grows_in_memory), cmocka_unit_test(test_moves_to_a_file),
                                       cmocka_unit_test(test_no_folder), cmocka_unit_test(test_full_disk),
                                       cmocka_unit_test(test_too_much)};
    return cmocka_run_group_tests_name("data_buffer", tests, folder_setup, folder_teardown);
}
