/* Addresses of arrays inside files: which part of them is the file. */
#include "data_support.h"

#include "base/memory.h"
#include "data/data_address.h"

static void expect_split(const char *address, const char *file, const char *name)
{
    char *found = NULL;
    assert_int_equal(data_address_file(&found, address), SHOAL_OK);
    assert_string_equal(found, file);
    base_free(&found);
    if (name)
        assert_string_equal(data_address_name(address), name);
    else
        assert_null(data_address_name(address));
}

/* The longest file that exists is meant, and one that has the whole name before any other. */
static void test_the_longest_file(void **state)
{
    (void)state;
    write_text("a", "1\n");
    write_text("a:b", "2\n");
    char address[4][600];
    snprintf(address[0], 600, "%s/a", test_folder);
    snprintf(address[1], 600, "%s/a:b", test_folder);
    snprintf(address[2], 600, "%s/a:b:c:d", test_folder);
    snprintf(address[3], 600, "%s/a:x/y", test_folder);
    expect_split(address[0], address[0], NULL);
    expect_split(address[1], address[1], NULL);
    expect_split(address[2], address[1], "c:d");
    expect_split(address[3], address[0], "x/y");
    assert_true(data_address_exists(address[2]));
    EXPECT_VALUES(open_data(address[1]), 1, 1, 2);
}

static void test_what_is_never_split(void **state)
{
    (void)state;
    char folder[600];
    snprintf(folder, sizeof folder, "%s:x", test_folder);
    expect_split(folder, folder, NULL); /* only a file holds arrays */
    assert_false(data_address_exists(folder));
    assert_int_equal(chdir(test_folder), 0);
    write_text("gen", "");
    write_text("dir", "");
    write_text("az", "");
    expect_split("gen:uniform?rows=1&cols=1", "gen:uniform?rows=1&cols=1", NULL);
    expect_split("dir:x", "dir:x", NULL);
    expect_split("az://x/y", "az://x/y", NULL);
    expect_split("-", "-", NULL);
    expect_split(":x", ":x", NULL);
    expect_split("", "", NULL);
    assert_int_equal(chdir("/"), 0);
}

static void test_a_name_in_a_file_of_one_array(void **state)
{
    (void)state;
    char address[600];
    snprintf(address, sizeof address, "%s:x", write_text("one.csv", "1,2\n"));
    refuse(address, SHOAL_USAGE, "one.csv is text, which holds one array without a name: leave out \":x\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_longest_file),
        cmocka_unit_test(test_what_is_never_split),
        cmocka_unit_test(test_a_name_in_a_file_of_one_array),
    };
    return cmocka_run_group_tests(tests, folder_setup, folder_teardown);
}
