/* Labels: quick
 * Addresses and keys: what is taken apart how, and what is refused with which words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "store/store_internal.h"

static void expect_parts(const char *text, const char *scheme, const char *rest)
{
    store_url url;
    if (store_url_parse(&url, text) < 0)
        fail_msg("%s: %s", text, shoal_error());
    assert_string_equal(url.scheme, scheme);
    assert_string_equal(url.rest, rest);
    assert_string_equal(url.text, text);
    store_url_release(&url);
}

static void urls(void **state)
{
    (void)state;
    expect_parts("dir:/tmp/a b", "dir", "/tmp/a b");
    expect_parts("/tmp/100%?x=y", "dir", "/tmp/100%?x=y"); /* a bare path is taken as it is */
    expect_parts("./a:b", "dir", "./a:b");
    expect_parts("az://acct/box/pre%20fix%3F%25", "az", "//acct/box/pre fix?%");
    expect_parts("s3://bucket/a%2fb?style=path", "s3", "//bucket/a/b");
    expect_parts("mem:", "mem", "");
    expect_parts("C:/x", "dir", "C:/x");
}

static void options(void **state)
{
    (void)state;
    static const char *const known[] = {"sync", "faults", NULL}, *const fewer[] = {"sync", NULL};
    store_url url;
    assert_int_equal(store_url_parse(&url, "dir:/a?sync=full&faults=seed%3A7,before:0.5"), SHOAL_OK);
    assert_string_equal(store_url_option(&url, "sync"), "full");
    assert_string_equal(store_url_option(&url, "faults"), "seed:7,before:0.5");
    assert_null(store_url_option(&url, "syn"));
    assert_int_equal(store_url_check_options(&url, known), SHOAL_OK);
    assert_int_equal(store_url_check_options(&url, fewer), SHOAL_USAGE);
    assert_non_null(strstr(shoal_error(), "'faults'"));
    store_url_release(&url);
}

static void expect_refused(const char *text, const char *words)
{
    store_url url;
    assert_int_equal(store_url_parse(&url, text), SHOAL_USAGE);
    if (!strstr(shoal_error(), words))
        fail_msg("%s gives '%s', which lacks '%s'", text, shoal_error(), words);
}

static void wrong_urls(void **state)
{
    (void)state;
    expect_refused("", "empty");
    expect_refused("dir:/a%", "two hexadecimal digits");
    expect_refused("dir:/a%4", "two hexadecimal digits");
    expect_refused("dir:/a%zz", "two hexadecimal digits");
    expect_refused("dir:/a%00b", "not 00");
    expect_refused("dir:/a?sync", "not name=value");
    expect_refused("dir:/a?=x", "not name=value");
    expect_refused("dir:/a?x=1&x=2", "twice");
    /* Secrets are refused, and not repeated. */
    static const char *const secret[] = {"az://acct/box?sv=2022&sig=c2VjcmV0", "az://acct/box?AccountKey=c2VjcmV0",
                                         "s3://c2VjcmV0:c2VjcmV0@bucket/x", "az://acct:c2VjcmV0/x@box"};
    for (int i = 0; i < 4; i++) {
        expect_refused(secret[i], "must not contain a");
        assert_null(strstr(shoal_error(), "c2VjcmV0"));
    }
}

static void unknown_kinds_of_store(void **state)
{
    (void)state;
    shoal_store *store = NULL;
    assert_int_equal(shoal_store_open(&store, "gs://bucket", NULL, shoal_after(1)), SHOAL_USAGE);
    assert_non_null(strstr(shoal_error(), "'gs'"));
    assert_null(store);
    assert_int_equal(shoal_store_open(&store, "mem:?snyc=full", NULL, shoal_after(1)), SHOAL_USAGE);
    assert_non_null(strstr(shoal_error(), "'snyc'"));
    assert_int_equal(shoal_store_open(&store, "mem:a?queue=yes", NULL, shoal_after(1)), SHOAL_USAGE);
    assert_int_equal(shoal_store_open(&store, "mem:a/x//y", NULL, shoal_after(1)), SHOAL_USAGE);
    assert_null(store);
}

static void keys(void **state)
{
    (void)state;
    static const char *const good[] = {
        "a",
        "a/b",
        ".a",
        "a.b/c",
        "...x",
        "a b",
        " ",
        "%41",
        "a?b#c&d=e+f",
        "'\"<>\\~:*|`!$^()[]{};,@",
        "\xc3\xa9",
        "\xe2\x82\xac",
        "\xf0\x9f\x90\x9f",
        "\xef\xbf\xbd",
        ".shoals",
        "x/.shoal/y",
    };
    static const char *const bad[] = {
        "",
        "/",
        "/a",
        "a/",
        "a//b",
        "a.",
        "a./b",
        ".",
        "..",
        "a/../b",
        "a\nb",
        "\x7f",
        "\x1b[2J",
        "\xc2\x85", /* a control character */
        "\xff",
        "\xc0\xaf",
        /* overlong */ "\xc3",
        "\xe2\x82",
        "\xed\xa0\x80", /* a surrogate */
        "\xf4\x90\x80\x80",
        "\xef\xbf\xbf",
        ".shoal/x",
        ".shoal",
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        if (store_key_check(good[i]) < 0)
            fail_msg("'%s' should be a key: %s", good[i], shoal_error());
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (store_key_check(bad[i]) != SHOAL_USAGE)
            fail_msg("number %zu should be no key", i);
    char longest[SHOAL_KEY_MOST + 2];
    memset(longest, 'k', sizeof longest);
    longest[SHOAL_KEY_MOST] = '\0';
    assert_int_equal(store_key_check(longest), SHOAL_OK);
    longest[SHOAL_KEY_MOST] = 'k';
    longest[SHOAL_KEY_MOST + 1] = '\0';
    assert_int_equal(store_key_check(longest), SHOAL_USAGE);
    /* The start of keys may stop anywhere. */
    assert_int_equal(store_prefix_check(""), SHOAL_OK);
    assert_int_equal(store_prefix_check("a/"), SHOAL_OK);
    assert_int_equal(store_prefix_check("a/b."), SHOAL_OK);
    assert_int_equal(store_prefix_check("a//"), SHOAL_USAGE);
    assert_int_equal(store_prefix_check("\xc3"), SHOAL_USAGE);
}

static void below(void **state)
{
    (void)state;
    bool is = false;
    static const char *const yes[][2] = {
        {"az://acct/box", "az://acct/box"},           {"az://acct/box/", "az://acct/box"},
        {"az://acct/box/a/b.npy", "az://acct/box/"},  {"az://acct/box/a/b.npy", "az://acct"},
        {"az://acct/box/a/b.npy", "az://acct/box/a"}, {"az://acct/box/a%20b/c", "az://acct/box/a b"},
        {"s3://bucket/a?region=eu", "s3://bucket"},   {"mem:rows/a", "mem:rows"},
    };
    static const char *const no[][2] = {
        {"az://acct/boxes/a", "az://acct/box"},
        {"az://acct/box", "az://acct/box/a"},
        {"az://acct2/box/a", "az://acct/box"},
        {"s3://acct/box/a", "az://acct/box"},
        {"az://acct/box/a/../../other", "az://acct/box"},
        {"az://acct/box/%2e%2e/other/a", "az://acct/box"},
        {"az://acct/box/./a", "az://acct/box"},
        {"mem:rows/a", "mem:"},
        {"mem:rows/a", "mem:/"},
    };
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
        if (shoal_store_url_is_below(&is, yes[i][0], yes[i][1]) < 0 || !is)
            fail_msg("%s should be below %s", yes[i][0], yes[i][1]);
    for (size_t i = 0; i < sizeof no / sizeof *no; i++)
        if (shoal_store_url_is_below(&is, no[i][0], no[i][1]) < 0 || is)
            fail_msg("%s should not be below %s", no[i][0], no[i][1]);
    assert_int_equal(shoal_store_url_is_below(&is, "az://user:pass@acct/box", "az://acct/box"), SHOAL_USAGE);
    assert_int_equal(shoal_store_url_is_below(&is, "", "az://acct/box"), SHOAL_USAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(urls),       cmocka_unit_test(options),
        cmocka_unit_test(wrong_urls), cmocka_unit_test(unknown_kinds_of_store),
        cmocka_unit_test(keys),       cmocka_unit_test(below),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
