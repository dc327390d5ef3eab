/* Allocation: zeroed, aligned, refused with a message instead of a crash, and failing on demand. */
#include <ftw.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include <shoal/error.h>

#include "base/memory.h"

static void test_blocks_are_zeroed_and_aligned(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 63, 64, 65, 4096, (2 << 20) - 1, 2 << 20, (2 << 20) + 1, 5 << 20};
    for (int again = 0; again < 2; again++) /* the second time round memory comes back dirty */
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            unsigned char *block = NULL;
            assert_int_equal(base_alloc(&block, sizes[i], 1, "bytes"), SHOAL_OK);
            assert_non_null(block);
            assert_int_equal((uintptr_t)block % 64, 0);
            for (size_t k = 0; k < sizes[i]; k++)
                assert_int_equal(block[k], 0);
            if (sizes[i])
                memset(block, 0xff, sizes[i]);
            base_free(&block);
            assert_null(block);
        }
    void *none = NULL;
    base_free(&none);
    assert_null(none);
}

static void test_what_is_too_much_is_refused(void **state)
{
    (void)state;
    static const struct {
        size_t count, size;
    } cases[] = {{SIZE_MAX, 2},      {SIZE_MAX / 2 + 1, 2}, {1, SIZE_MAX},
                 {1, SIZE_MAX - 32}, {SIZE_MAX / 4, 1},     {SIZE_MAX / 8, 4}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        void *block = &block;
        assert_int_equal(base_alloc(&block, cases[i].count, cases[i].size, "a whale"), SHOAL_MEMORY);
        assert_null(block);
        assert_non_null(strstr(shoal_error(), "out of memory"));
        assert_non_null(strstr(shoal_error(), "a whale"));
    }
}

static void test_growing_keeps_what_was_there(void **state)
{
    (void)state;
    int32_t *values = NULL;
    assert_int_equal(base_grow(&values, 0, 3, sizeof *values, "values"), SHOAL_OK);
    for (int32_t i = 0; i < 3; i++)
        values[i] = i + 1;
    assert_int_equal(base_grow(&values, 3, 100, sizeof *values, "values"), SHOAL_OK);
    for (int32_t i = 0; i < 100; i++)
        assert_int_equal(values[i], i < 3 ? i + 1 : 0);
    int32_t *before = values;
    assert_int_equal(base_grow(&values, 100, SIZE_MAX / 2, sizeof *values, "values"), SHOAL_MEMORY);
    assert_ptr_equal(values, before);
    assert_int_equal(values[2], 3);
    base_memory_fail_after(0);
    assert_int_equal(base_grow(&values, 100, 200, sizeof *values, "values"), SHOAL_MEMORY);
    base_memory_fail_after(-1);
    assert_ptr_equal(values, before);
    assert_int_equal(base_grow(&values, 100, 2, sizeof *values, "values"), SHOAL_OK); /* and shrinking works */
    assert_int_equal(values[1], 2);
    base_free(&values);
}

static void test_failing_on_demand(void **state)
{
    (void)state;
    char *first = NULL, *second = NULL, *third = NULL;
    base_memory_fail_after(1);
    assert_int_equal(base_alloc(&first, 1, 1, "the first"), SHOAL_OK);
    assert_int_equal(base_alloc(&second, 1, 1, "the second"), SHOAL_MEMORY);
    assert_null(second);
    assert_non_null(strstr(shoal_error(), "the second"));
    assert_int_equal(base_alloc(&third, 1, 1, "the third"), SHOAL_MEMORY); /* and every later one */
    assert_int_equal(base_memory_fail_after(-1), 3);
    assert_int_equal(base_alloc(&second, 1, 1, "the second"), SHOAL_OK);
    assert_int_equal(base_memory_fail_after(-1), 1);
    base_free(&first);
    base_free(&second);
}

static void test_text(void **state)
{
    (void)state;
    char *text = NULL;
    assert_int_equal(base_copy_text(&text, "shoal"), SHOAL_OK);
    assert_string_equal(text, "shoal");
    base_free(&text);
    assert_int_equal(base_copy_text(&text, ""), SHOAL_OK);
    assert_string_equal(text, "");
    base_free(&text);
    assert_int_equal(base_copy_text_n(&text, "shoal", 2), SHOAL_OK);
    assert_string_equal(text, "sh");
    base_free(&text);
    assert_int_equal(base_format(&text, "%s-%03d-%1000s", "a", 7, "b"), SHOAL_OK);
    assert_int_equal(strlen(text), 1006);
    assert_memory_equal(text, "a-007-", 6);
    assert_string_equal(text + 1005, "b");
    base_free(&text);
    base_memory_fail_after(0);
    assert_int_equal(base_copy_text(&text, "shoal"), SHOAL_MEMORY);
    assert_null(text);
    assert_int_equal(base_format(&text, "%d", 1), SHOAL_MEMORY);
    assert_null(text);
    base_memory_fail_after(-1);
}

static void test_checked_arithmetic(void **state)
{
    (void)state;
    size_t out = 0;
    assert_true(base_multiply(&out, SIZE_MAX / 3, 3));
    assert_int_equal(out, SIZE_MAX / 3 * 3);
    assert_true(base_multiply(&out, 0, SIZE_MAX));
    assert_int_equal(out, 0);
    assert_false(base_multiply(&out, SIZE_MAX / 2 + 1, 2));
    assert_false(base_multiply(&out, (size_t)1 << 32, (size_t)1 << 32));
    assert_true(base_add(&out, SIZE_MAX - 1, 1));
    assert_true(out == SIZE_MAX);
    assert_false(base_add(&out, SIZE_MAX, 1));
}

static void test_machine(void **state)
{
    (void)state;
    assert_true(base_memory_total() > 0);
    assert_true(base_memory_available() > 0);
    assert_true(base_memory_available() <= base_memory_total());
}

static void put(const char *folder, const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void make_folder(char *out, size_t size, const char *root, const char *name)
{
    snprintf(out, size, "%s/%s", root, name);
    assert_int_equal(mkdir(out, 0700), 0);
}

static int remove_entry(const char *path, const struct stat *info, int kind, struct FTW *where)
{
    (void)info, (void)kind, (void)where;
    return remove(path);
}

/* The least of what every control group from the process's own up to the root leaves; in both versions. */
/* A process that may hold so much gets no more, and what it gives back again. */
static void test_no_more_than_may_be_held(void **state)
{
    enum { BLOCK = 1 << 20, BLOCKS = 8 };
    void *block[BLOCKS] = {NULL}, *more = NULL;
    (void)state;
    base_memory_hold((BLOCKS - 1) * (int64_t)BLOCK);
    int have = 0;
    while (have < BLOCKS && base_alloc(&block[have], 1, BLOCK, "a block") == SHOAL_OK)
        have++;
    assert_in_range(have, BLOCKS - 3, BLOCKS - 1);
    assert_int_equal(base_alloc(&more, 1, BLOCK, "one more"), SHOAL_MEMORY);
    assert_string_equal(shoal_error(), "out of memory: 1 times 1048576 bytes for one more; this process may hold 7 MB");
    base_free(&block[0]);
    assert_int_equal(base_alloc(&block[0], 1, BLOCK, "one more"), SHOAL_OK);
    for (int i = 0; i < have; i++)
        base_free(&block[i]);
    assert_int_equal(base_alloc(&more, BLOCKS - 3, BLOCK, "as many at once"), SHOAL_OK);
    base_free(&more);
    base_memory_hold(INT64_MAX);
}

static void test_control_groups(void **state)
{
    (void)state;
    char root[] = "/tmp/shoal-groups-XXXXXX", list[64], a[128], b[128], memory[128], in_memory[128];
    assert_non_null(mkdtemp(root));
    snprintf(list, sizeof list, "%s/list", root);
    assert_true(base_memory_left_in_groups(root, list) == INT64_MAX); /* no such file */
    put(root, "list", "1:cpu:/elsewhere\n0::/a/b\n");
    assert_true(base_memory_left_in_groups(root, list) == INT64_MAX); /* nor such groups */
    make_folder(a, sizeof a, root, "a");
    make_folder(b, sizeof b, a, "b");
    put(b, "memory.max", "max\n");
    put(b, "memory.current", "1000\n");
    assert_true(base_memory_left_in_groups(root, list) == INT64_MAX);
    put(a, "memory.max", "5000\n");
    put(a, "memory.current", "3000\n");
    assert_int_equal(base_memory_left_in_groups(root, list), 2000);
    assert_int_equal(base_memory_limit_of_groups(root, list), 5000);
    put(a, "memory.stat", "anon 1\ninactive_file_x 7\ninactive_file 500\nactive_file 9\n");
    assert_int_equal(base_memory_left_in_groups(root, list), 2500);
    put(b, "memory.max", "1200\n");
    assert_int_equal(base_memory_left_in_groups(root, list), 200);
    assert_int_equal(base_memory_limit_of_groups(root, list), 1200);
    put(b, "memory.current", "1300\n");
    assert_int_equal(base_memory_left_in_groups(root, list), 0);

    put(root, "list", "4:memory:/host/path\n1:cpu:/a/b\n"); /* version 1, seen from inside a container */
    make_folder(memory, sizeof memory, root, "memory");
    put(memory, "memory.limit_in_bytes", "9223372036854771712\n");
    put(memory, "memory.usage_in_bytes", "100\n");
    assert_true(base_memory_left_in_groups(root, list) == INT64_MAX);
    put(memory, "memory.limit_in_bytes", "700\n");
    assert_int_equal(base_memory_left_in_groups(root, list), 600);
    assert_int_equal(base_memory_limit_of_groups(root, list), 700);
    make_folder(in_memory, sizeof in_memory, memory, "host");
    put(in_memory, "memory.limit_in_bytes", "400\n");
    put(in_memory, "memory.usage_in_bytes", "50\n");
    put(in_memory, "memory.stat", "inactive_file 3\ntotal_inactive_file 10\n");
    assert_int_equal(base_memory_left_in_groups(root, list), 360);
    nftw(root, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

static void *allocate_elsewhere(void *counted)
{
    void *block = NULL;
    base_memory_fail_here(-1);
    assert_int_equal(base_alloc(&block, 1, 8, "a block"), SHOAL_OK);
    base_free(&block);
    *(int64_t *)counted = base_memory_fail_here(-1);
    return NULL;
}

static void test_one_allocation_of_one_thread_fails(void **state)
{
    (void)state;
    void *block = NULL;
    pthread_t other;
    int64_t counted = -1;
    base_memory_fail_here(1);
    assert_int_equal(base_alloc(&block, 1, 8, "a block"), SHOAL_OK);
    base_free(&block);
    assert_int_equal(pthread_create(&other, NULL, allocate_elsewhere, &counted), 0);
    pthread_join(other, NULL);
    assert_int_equal(counted, 1);
    assert_int_equal(base_alloc(&block, 1, 8, "a block"), SHOAL_MEMORY);
    assert_int_equal(base_alloc(&block, 1, 8, "a block"), SHOAL_OK); /* that one alone */
    base_free(&block);
    assert_int_equal(base_memory_fail_here(-1), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_blocks_are_zeroed_and_aligned),
                                       cmocka_unit_test(test_what_is_too_much_is_refused),
                                       cmocka_unit_test(test_growing_keeps_what_was_there),
                                       cmocka_unit_test(test_failing_on_demand),
                                       cmocka_unit_test(test_text),
                                       cmocka_unit_test(test_checked_arithmetic),
                                       cmocka_unit_test(test_no_more_than_may_be_held),
                                       cmocka_unit_test(test_control_groups),
                                       cmocka_unit_test(test_one_allocation_of_one_thread_fails),
                                       cmocka_unit_test(test_machine)};
    return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
