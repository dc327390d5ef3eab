/* HMAC-SHA-256: the examples of RFC 4231, in one part and in many. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/hex.h"
#include "base/mac.h"

static void expect_code(const void *key, size_t key_size, const void *bytes, size_t size, const char *wanted)
{
    unsigned char code[BASE_MAC_SIZE];
    char text[BASE_HASH_HEX];
    base_mac mac;
    base_mac_begin(&mac, key, key_size);
    for (size_t i = 0; i < size; i += 7)
        base_mac_add(&mac, (const char *)bytes + i, size - i < 7 ? size - i : 7);
    base_mac_end(&mac, code);
    base_hex_write(text, code, sizeof code);
    assert_string_equal(text, wanted);
}

static void test_published(void **state)
{
    unsigned char key[131], bytes[50];
    (void)state;
    memset(key, 0x0b, 20);
    expect_code(key, 20, "Hi There", 8, "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    expect_code("Jefe", 4, "what do ya want for nothing?", 28,
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    memset(key, 0xaa, sizeof key);
    memset(bytes, 0xdd, sizeof bytes);
    expect_code(key, 20, bytes, 50, "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
    expect_code(key, 131, "Test Using Larger Than Block-Size Key - Hash Key First", 54,
                "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

static void test_comparing(void **state)
{
    unsigned char a[BASE_MAC_SIZE] = {0}, b[BASE_MAC_SIZE] = {0};
    (void)state;
    assert_true(base_mac_same(a, b));
    for (int i = 0; i < BASE_MAC_SIZE; i++) {
        b[i] = 0x80;
        assert_false(base_mac_same(a, b));
        b[i] = 0;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_published), cmocka_unit_test(test_comparing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
