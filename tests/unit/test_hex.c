/* Hexadecimal digits: there and back, and what is none. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/hex.h"

static void there_and_back(void **state)
{
    unsigned char all[256], back[256];
    char text[2 * sizeof all + 1];
    (void)state;
    for (int i = 0; i < 256; i++)
        all[i] = (unsigned char)i;
    base_hex_write(text, all, sizeof all);
    assert_int_equal(strlen(text), 2 * sizeof all);
    assert_memory_equal(text, "000102030405060708090a0b0c0d0e0f10", 34);
    assert_string_equal(text + 508, "feff");
    assert_true(base_hex_read(back, sizeof back, text));
    assert_memory_equal(back, all, sizeof all);
    base_hex_write(text, all, 0);
    assert_string_equal(text, "");
}

static void only_lower_case_is_read(void **state)
{
    unsigned char byte;
    (void)state;
    for (int letter = CHAR_MIN; letter <= CHAR_MAX; letter++) {
        const char high[] = {(char)letter, '0', '\0'}, low[] = {'0', (char)letter, '\0'};
        bool is_digit = letter != 0 && strchr("0123456789abcdef", letter);
        assert_int_equal(base_hex_read(&byte, 1, high), is_digit);
        assert_int_equal(base_hex_read(&byte, 1, low), is_digit);
        assert_int_equal(base_hex_is(high, 2), is_digit);
    }
    assert_true(base_hex_is("", 0));
    assert_true(base_hex_is("0af9", 4));
    assert_false(base_hex_is("0af", 4));
    assert_false(base_hex_is("0af99", 4));
}

static void bytes_of_either_case(void **state)
{
    (void)state;
    for (int letter = CHAR_MIN; letter <= CHAR_MAX; letter++) {
        const char high[] = {(char)letter, '0', '\0'}, low[] = {'0', (char)letter, '\0'};
        bool is_digit = letter != 0 && strchr("0123456789abcdefABCDEF", letter); /* 0x10 | 0x20 is '0' and is none */
        assert_int_equal(base_hex_byte(high) >= 0, is_digit);
        assert_int_equal(base_hex_byte(low) >= 0, is_digit);
    }
    assert_int_equal(base_hex_byte("2F"), 0x2f);
    assert_int_equal(base_hex_byte("2f"), 0x2f);
    assert_int_equal(base_hex_byte("fF and more"), 0xff);
    assert_int_equal(base_hex_byte("00"), 0);
    assert_int_equal(base_hex_byte(""), -1);
    assert_int_equal(base_hex_byte("a"), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(there_and_back),
        cmocka_unit_test(only_lower_case_is_read),
        cmocka_unit_test(bytes_of_either_case),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
