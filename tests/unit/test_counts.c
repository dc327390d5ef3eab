/* Several whole numbers in one text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <shoal/error.h>

#include "base/counts.h"

static void expect_counts(const char *text, const int64_t *values, int64_t count)
{
    base_counts counts;
    assert_int_equal(base_counts_read(&counts, "-k", text, 1, 1000000), SHOAL_OK);
    assert_int_equal(counts.count, count);
    assert_memory_equal(counts.value, values, (size_t)count * sizeof *values);
}

static void expect_refused(const char *text, const char *why)
{
    base_counts counts;
    assert_int_equal(base_counts_read(&counts, "-k", text, 1, 1000000), SHOAL_USAGE);
    if (!strstr(shoal_error(), why))
        fail_msg("'%s': %s", text, shoal_error());
}

static void test_read(void **state)
{
    (void)state;
    expect_counts("2..5", (const int64_t[]){2, 3, 4, 5}, 4);
    expect_counts("2..9..3", (const int64_t[]){2, 5, 8}, 3);
    expect_counts("2,4,8", (const int64_t[]){2, 4, 8}, 3);
    expect_counts("1..3,10,20..40..10", (const int64_t[]){1, 2, 3, 10, 20, 30, 40}, 7);
    expect_counts("7..7", (const int64_t[]){7}, 1);
    expect_counts("1e3,2e3", (const int64_t[]){1000, 2000}, 2);
}

static void test_refused(void **state)
{
    (void)state;
    expect_refused("20..2", "-k: 20..2 runs downwards: write 2..20");
    expect_refused("2..", "-k: '2..' is neither a number nor a range or list such as 2..20 or 2,4,8");
    expect_refused("..5", "is neither a number nor a range");
    expect_refused("2..x", "is neither a number nor a range");
    expect_refused("2,,4", "is neither a number nor a range");
    expect_refused("2..4..1..1", "is neither a number nor a range");
    expect_refused("2...5", "is neither a number nor a range");
    expect_refused("0..5", "-k must be at least 1 and at most 1000000, not 0..5");
    expect_refused("2..2000000", "-k must be at least 1 and at most 1000000");
    expect_refused("2..8..0", "-k: the step of 2..8..0 must be at least 1");
    expect_refused("4,2", "-k: 4,2: each number must be greater than the one before");
    expect_refused("2,2", "each number must be greater");
    expect_refused("2..100", "-k: 2..100 has more than 60 numbers: take larger steps, as in 2..100..2");
    expect_refused("1..1000000", "take larger steps, as in 1..1000000..16950");
    expect_refused("1,2..100", "more than 60 numbers: give fewer");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_read), cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
