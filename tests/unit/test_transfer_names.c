/* Names of files and keys of a store: which can be the other, and which are in each other's way. */
#include "data_support.h"

#include "base/memory.h"
#include "store/transfer/transfer_names.c"

static void test_the_last_segment(void **state)
{
    static const struct {
        const char *name, *last;
    } cases[] = {{"a", "a"}, {"a/b", "b"}, {"a/b/", "b"},    {"/a", "a"}, {"a//", "a"},
                 {"/", ""},  {"", ""},     {"./x.y", "x.y"}, {".", "."},  {"a/..", ".."}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t length = 99;
        const char *last = transfer_last(&length, cases[i].name);
        assert_int_equal(length, strlen(cases[i].last));
        assert_memory_equal(last, cases[i].last, length);
    }
}

static void test_joining(void **state)
{
    static const struct {
        const char *base, *name, *whole;
    } cases[] = {{"a", "b", "a/b"}, {"a/", "b", "a/b"}, {"", "b", "b"},   {"a", "", "a"},
                 {"a/", "", "a/"},  {"", "", ""},       {"/", "b", "/b"}, {"a/b", "c/d", "a/b/c/d"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *whole = NULL;
        assert_int_equal(transfer_join(&whole, cases[i].base, cases[i].name), SHOAL_OK);
        assert_string_equal(whole, cases[i].whole);
        base_free(&whole);
    }
}

static void test_what_can_not_be_a_key(void **state)
{
    char longest[SHOAL_KEY_MOST + 2];
    const char *bad[] = {"",     "a//b", "/a",    "a/",   "a.",       "a./b",         ".",      "..",       "a/../b",
                         "\x01", "a\nb", "a\x7f", "\xff", "\xc0\xaf", "\xed\xa0\x80", ".shoal", ".shoal/x", longest};
    const char *good[] = {"a", "a/b", ".a", "a/.shoal/b", "..a", "a b", "\xc3\xa4", "%2f", "\xf0\x9f\x90\x9f",
                          "-", "a\\b"};
    (void)state;
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(transfer_check_key(bad[i], "the/file"), SHOAL_INVALID);
        assert_non_null(strstr(shoal_error(), "the/file"));
        assert_int_equal(transfer_check_path(bad[i], bad[i]), SHOAL_INVALID);
    }
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_int_equal(transfer_check_key(good[i], "the/file"), SHOAL_OK);
        assert_int_equal(transfer_check_path(good[i], good[i]), SHOAL_OK);
    }
    longest[SHOAL_KEY_MOST] = '\0';
    assert_int_equal(transfer_check_key(longest, "f"), SHOAL_OK);
    assert_int_equal(transfer_check_path(longest, longest), SHOAL_INVALID); /* no file has so long a name */
    longest[255] = '/';
    longest[511] = '\0';
    assert_int_equal(transfer_check_path(longest, longest), SHOAL_OK);
    assert_int_equal(transfer_check_path("a/.shoal/b", ".shoal/b"), SHOAL_OK); /* a file may be called so */
    assert_int_equal(transfer_check_path("a/.shoal-part-0123456789abcdef", ".shoal-part-0123456789abcdef"),
                     SHOAL_INVALID);
    assert_int_equal(transfer_check_path("a/.shoal-part-x", ".shoal-part-x"), SHOAL_OK);
}

/* Of names in order, `clashes` are below one that came before. */
static void expect_clashes(const char *const *names, const char *const *clashes)
{
    transfer_ancestors self = {0};
    for (; *names; names++) {
        const char *above = NULL;
        assert_int_equal(transfer_ancestors_next(&self, *names, &above), SHOAL_OK);
        bool expected = *clashes && strcmp(*clashes, *names) == 0;
        clashes += expected;
        if ((above != NULL) != expected)
            fail_msg("%s is %sbelow another", *names, above ? "" : "not ");
        if (above)
            assert_memory_equal(*names, above, strlen(above));
    }
    assert_null(*clashes);
    transfer_ancestors_release(&self);
}

static void test_a_name_that_is_file_and_folder_is_found(void **state)
{
    (void)state;
    expect_clashes((const char *const[]){"a", "a-b", "a/b", "a/c", "a0", "b/c", "b/c/d/e", "b/cd", NULL},
                   (const char *const[]){"a/b", "a/c", "b/c/d/e", NULL});
    expect_clashes((const char *const[]){"a", "aa", "aaa", "aaa/b", "ab", NULL}, (const char *const[]){"aaa/b", NULL});
    expect_clashes((const char *const[]){"a/b/c", "a/b/d", "a/bb", "c", NULL}, (const char *const[]){NULL});
    expect_clashes((const char *const[]){"x", "x.", "x./y", "x/", NULL}, (const char *const[]){"x./y", "x/", NULL});
}

static void test_many_names_that_start_alike(void **state)
{
    char names[40][64];
    transfer_ancestors self = {0};
    const char *above = NULL;
    (void)state;
    for (int i = 0; i < 40; i++) {
        memset(names[i], 'a', sizeof names[i]);
        names[i][i + 1] = '\0';
        assert_int_equal(transfer_ancestors_next(&self, names[i], &above), SHOAL_OK);
        assert_null(above);
    }
    assert_int_equal(self.count, 40);
    assert_int_equal(transfer_ancestors_next(&self, "aaa/x", &above),
                     SHOAL_OK); /* "aaa" is on the way, though out of order */
    assert_string_equal(above, "aaa");
    transfer_ancestors_release(&self);
    assert_int_equal(self.count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_last_segment),
        cmocka_unit_test(test_joining),
        cmocka_unit_test(test_what_can_not_be_a_key),
        cmocka_unit_test(test_a_name_that_is_file_and_folder_is_found),
        cmocka_unit_test(test_many_names_that_start_alike),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
