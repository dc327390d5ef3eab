/* What of a text people are shown, whoever wrote it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <shoal/error.h>

#include "base/text.h"

static const struct {
    const char *text, *shown;
} cases[] = {
    {"", ""},
    {"plain", "plain"},
    {"Gr\xc3\xb6\xc3\x9f"
     "e \xe2\x82\xac \xf0\x9f\x90\x9f",
     "Gr\xc3\xb6\xc3\x9f"
     "e \xe2\x82\xac \xf0\x9f\x90\x9f"},
    {"\x1b[2J\a\n\t\x7f", "?[2J????"},
    {"a\xc2\x9b"
     "31mb",
     "a?31mb"}, /* CSI as C1 */
    {"a\x9b"
     "31m\xff",
     "a?31m?"},                                  /* and as a bare byte */
    {"\xc2\xa0", "\xc2\xa0"},                    /* the first behind C1 */
    {"\xc0\x9b\xe0\x80\x9b", "?????"},           /* longer than need be */
    {"\xed\xa0\x80\xf4\x90\x80\x80", "???????"}, /* a surrogate; behind the last */
    {"\xe2\x80\xae"
     "gpj.\xe2\x81\xa6\xe2\x80\xa8",
     "?gpj.??"}, /* turned round */
    {"cut \xe2\x82", "cut ??"},
};

static void test_what_is_shown(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[64];
        strcpy(text, cases[i].text);
        assert_int_equal(base_text_is_clean(text), strcmp(cases[i].text, cases[i].shown) == 0);
        base_text_clean(text);
        assert_string_equal(text, cases[i].shown);
        assert_true(base_text_is_clean(text));
    }
}

static void test_messages_are_clean(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        shoal_fail(SHOAL_INVALID, "%s", cases[i].text);
        assert_string_equal(shoal_error(), cases[i].shown);
    }
}

static void test_endings(void **state)
{
    (void)state;
    assert_true(base_text_ends("rows.npy", ".npy"));
    assert_false(base_text_ends("rows.npy.gz", ".npy"));
    assert_false(base_text_ends("npy", ".npy"));
    assert_false(base_text_ends(".npy", ".npy"));
    assert_false(base_text_ends("", ".npy"));
}

static void test_plurals(void **state)
{
    (void)state;
    assert_string_equal(base_plural(1), "");
    assert_string_equal(base_plural(0), "s");
    assert_string_equal(base_plural(2), "s");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_shown),
        cmocka_unit_test(test_messages_are_clean),
        cmocka_unit_test(test_endings),
        cmocka_unit_test(test_plurals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
