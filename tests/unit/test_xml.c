/* Small XML documents: what is read, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <shoal/error.h>

#include "base/memory.h"
#include "store/xml.h"

/* What the reader was told, as "path=text;" and "path!;" for an end. */
static char told[4096];
static const char *stop_at;

static int reader(void *context, const char *path, const char *text, size_t length)
{
    size_t have = strlen(told);
    assert_ptr_equal(context, told);
    assert_true(!text || text[length] == 0);
    snprintf(told + have, sizeof told - have, text ? "%s=%s;" : "%s!;", path, text);
    return stop_at && strcmp(path, stop_at) == 0 ? shoal_fail(SHOAL_CONFLICT, "stopped") : SHOAL_OK;
}

static int read_text(const char *document)
{
    told[0] = 0;
    return xml_read(document, strlen(document), reader, told);
}

static void test_what_is_told(void **state)
{
    (void)state;
    assert_int_equal(read_text("\xef\xbb\xbf<?xml version=\"1.0\" encoding=\"utf-8\"?>\n"
                               "<A><B>one</B> \n"
                               " <B/><C x='1'><D>a &amp; b&#x41;<![CDATA[<&]]></D></C></A>"),
                     SHOAL_OK);
    assert_string_equal(told, "A/B=one;A/B=;A/C/D=a & bA<&;A/C!;A!;");
    assert_int_equal(read_text("<A><N Encoded=\"true\">%EF</N><N Encoded=\"false\">x</N></A>"), SHOAL_OK);
    assert_string_equal(told, "A/N@Encoded=%EF;A/N=x;A!;");
    assert_int_equal(read_text("<A>text<B/>more</A>"), SHOAL_OK); /* what stands between elements is nobody's */
    assert_string_equal(told, "A/B=;A!;");
    assert_int_equal(read_text("<A/>"), SHOAL_OK);
    assert_string_equal(told, "A=;");
    assert_int_equal(read_text(" \r\n\t<?xml version=\"1.0\"?>\n \n<A/>"), SHOAL_OK); /* sent to keep a connection */
    assert_string_equal(told, "A=;");
}

static void test_what_is_refused(void **state)
{
    (void)state;
    static const char *const broken[] = {
        "",
        " \n",
        "text",
        "<A>",
        "<A></B>",
        "<A/><B/>",
        "<A>\x01</A>",
        "<A>\xff</A>",
        "<A>&unknown;</A>",
        "<!DOCTYPE A><A/>",
        "<!DOCTYPE A [<!ENTITY e \"eeeeeeee\">]><A>&e;</A>",
        "<!DOCTYPE A [<!ENTITY e SYSTEM \"file:///etc/passwd\">]><A>&e;</A>",
    };
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        shoal_fail(SHOAL_OK, "%s", "");
        if (read_text(broken[i]) != SHOAL_BROKEN || !*shoal_error())
            fail_msg("'%s' is not refused", broken[i]);
    }
}

static void test_bounds(void **state)
{
    (void)state;
    char document[8192] = "";
    for (int depth = 15; depth <= 17; depth++) {
        document[0] = 0;
        for (int i = 0; i < depth; i++)
            strcat(document, "<a>");
        for (int i = 0; i < depth; i++)
            strcat(document, "</a>");
        assert_int_equal(read_text(document), depth <= 16 ? SHOAL_OK : SHOAL_BROKEN);
    }
    for (int length = 400; length < 600; length++) { /* names that are too long, alone and together */
        char name[600] = "";
        memset(name, 'n', (size_t)length);
        snprintf(document, sizeof document, "<%s/>", name);
        int status = read_text(document);
        assert_int_equal(status, length <= 480 || status == SHOAL_OK ? SHOAL_OK : SHOAL_BROKEN);
        assert_true(length < 512 || status == SHOAL_BROKEN);
        snprintf(document, sizeof document, "<%s><inner Encoded='true'/></%s>", name, name);
        status = read_text(document);
        assert_int_equal(status, length <= 480 || status == SHOAL_OK ? SHOAL_OK : SHOAL_BROKEN);
        assert_true(length < 499 || status == SHOAL_BROKEN);
    }
}

static void test_a_reader_that_stops(void **state)
{
    (void)state;
    stop_at = "A/B";
    assert_int_equal(read_text("<A><B>1</B><B>2</B></A>"), SHOAL_CONFLICT);
    assert_string_equal(told, "A/B=1;");
    assert_string_equal(shoal_error(), "stopped");
    stop_at = NULL;
}

static void test_no_memory(void **state)
{
    (void)state;
    base_memory_fail_after(0);
    int status = read_text("<A>text</A>");
    base_memory_fail_after(-1);
    assert_int_equal(status, SHOAL_MEMORY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_told), cmocka_unit_test(test_what_is_refused),
        cmocka_unit_test(test_bounds),       cmocka_unit_test(test_a_reader_that_stops),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
