/* SHA-256: the examples of FIPS 180-2, in one part and in many. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/hash.h"

static void expect(base_hash *hash, const char *wanted)
{
    unsigned char out[BASE_HASH_SIZE];
    char text[2 * BASE_HASH_SIZE + 1];
    base_hash_end(hash, out);
    for (int i = 0; i < BASE_HASH_SIZE; i++)
        snprintf(text + 2 * i, 3, "%02x", out[i]);
    assert_string_equal(text, wanted);
}

static void test_published(void **state)
{
    base_hash hash = {0};
    (void)state;
    expect(&hash, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    base_hash_add(&hash, "abc", 3); /* ended, it is as good as new */
    expect(&hash, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    for (int i = 0; i < 1000; i++)
        for (int part = 1; part <= 4; part++)
            base_hash_add(&hash, (char[400]){[0 ... 399] = 'a'}, (size_t)part * 100);
    expect(&hash, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_published)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
