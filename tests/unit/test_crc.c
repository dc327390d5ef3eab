/* CRC32C: what RFC 3720 prints, and that every way of computing it gives what the definition gives, bit by bit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/crc.c"

enum { ROOM = 40 * 1024 };

/* The definition: a division of polynomials, one bit at a time. */
static uint32_t by_definition(uint32_t crc, const unsigned char *bytes, size_t size)
{
    crc = ~crc;
    for (size_t i = 0; i < size; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
    }
    return ~crc;
}

static unsigned char *new_bytes(void)
{
    unsigned char *bytes = malloc(ROOM);
    uint32_t state = 1;
    assert_non_null(bytes);
    for (int i = 0; i < ROOM; i++)
        bytes[i] = (unsigned char)((state = state * 1664525 + 1013904223) >> 24);
    return bytes;
}

/* RFC 3720, B.4. */
static void test_published(void **state)
{
    unsigned char bytes[32] = {0};
    (void)state;
    assert_int_equal(base_crc32c(0, bytes, 32), 0x8a9136aa);
    memset(bytes, 255, 32);
    assert_int_equal(base_crc32c(0, bytes, 32), 0x62a8ab43);
    for (int i = 0; i < 32; i++)
        bytes[i] = (unsigned char)i;
    assert_int_equal(base_crc32c(0, bytes, 32), 0x46dd794e);
    assert_int_equal(base_crc32c(0, "123456789", 9), 0xe3069283);
    assert_int_equal(base_crc32c(0, NULL, 0), 0);
}

/* Every length up to beyond the short lanes, and those around the long ones, at every alignment. */
static void test_every_length(void **state)
{
    unsigned char *bytes = new_bytes();
    (void)state;
    base_crc32c(0, bytes, 0); /* makes the tables */
    for (size_t size = 0; size < 20000; size += size < 1300 || size % (3 * LANE_LONG) < 2 ? 1 : 509)
        for (size_t at = 0; at < 8; at++) {
            uint32_t start = (uint32_t)(size * 2654435761u), wanted = by_definition(start, bytes + at, size);
            assert_int_equal(base_crc32c(start, bytes + at, size), wanted);
            assert_int_equal(~add_by_tables(~start, bytes + at, size), wanted);
        }
    free(bytes);
}

static void test_in_parts(void **state)
{
    unsigned char *bytes = new_bytes();
    (void)state;
    uint32_t wanted = base_crc32c(0, bytes, ROOM);
    for (size_t first = 1; first < ROOM; first += 997)
        assert_int_equal(base_crc32c(base_crc32c(0, bytes, first), bytes + first, ROOM - first), wanted);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_published),
        cmocka_unit_test(test_every_length),
        cmocka_unit_test(test_in_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
