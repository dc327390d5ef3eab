/* Labels: quick
 * Frames: every bit counts, and what is wrong is told apart. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/crc.h"
#include "store/store_internal.h"

static const char body[] = "the body";
enum { BODY = sizeof body - 1, WHOLE = SHOAL_FRAME_BYTES + BODY };

static void make(unsigned char out[WHOLE])
{
    store_frame frame = {.kind = SHOAL_KIND('m', 'o', 'd', 'l'), .length = BODY, .crc = base_crc32c(0, body, BODY)};
    memcpy(frame.put_id, "0123456789abcdef", STORE_PUT_ID_BYTES);
    store_frame_write(out, &frame);
    memcpy(out + SHOAL_FRAME_BYTES, body, BODY);
}

static void the_bytes_are_these(void **state)
{
    (void)state;
    /* Written down once: other programs and later versions read what was stored. */
    static const unsigned char expected[SHOAL_FRAME_BYTES - 4] =
        "shoalblb\x01\x00\x30\x00modl\x08\x00\x00\x00\x00\x00\x00\x00"
        "0123456789abcdef\x00\x00\x00";
    unsigned char bytes[WHOLE];
    store_frame frame;
    make(bytes);
    assert_memory_equal(bytes, expected, 40);
    assert_true(store_frame_check(&frame, bytes, WHOLE, NULL));
    assert_int_equal(frame.kind, SHOAL_KIND('m', 'o', 'd', 'l'));
    assert_int_equal(frame.length, BODY);
    assert_memory_equal(frame.put_id, "0123456789abcdef", STORE_PUT_ID_BYTES);
}

static void every_flipped_bit_is_found(void **state)
{
    (void)state;
    unsigned char bytes[WHOLE];
    store_frame frame;
    make(bytes);
    for (int bit = 0; bit < WHOLE * 8; bit++) {
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
        assert_false(store_frame_check(&frame, bytes, WHOLE, NULL));
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
}

static void every_length_but_one_is_wrong(void **state)
{
    (void)state;
    unsigned char bytes[WHOLE + 1];
    store_frame frame;
    const char *why;
    make(bytes);
    bytes[WHOLE] = 0;
    for (size_t size = 0; size <= WHOLE + 1; size++) {
        assert_int_equal(store_frame_check(&frame, bytes, size, &why), size == WHOLE);
        if (size >= 8 && size < WHOLE)
            assert_string_equal(why, "it is truncated");
    }
    assert_string_equal(why, "it is too long");
}

static void other_versions_are_named(void **state)
{
    (void)state;
    unsigned char bytes[WHOLE];
    store_frame frame;
    const char *why;
    make(bytes);
    bytes[8] = 2;
    uint32_t crc = base_crc32c(0, bytes, 44);
    memcpy(bytes + 44, &crc, sizeof crc);
    assert_false(store_frame_check(&frame, bytes, WHOLE, &why));
    assert_string_equal(why, "it was written by another version of shoal");
    memcpy(bytes, "\x93NUMPY\x01\x00", 8);
    assert_false(store_frame_check(&frame, bytes, WHOLE, &why));
    assert_string_equal(why, "it was not written by shoal");
}

static void a_store_names_the_key(void **state)
{
    (void)state;
    shoal_store *store = NULL;
    shoal_blob blob = {0};
    int64_t deadline = shoal_after(10);
    assert_int_equal(shoal_store_open(&store, "mem:", NULL, deadline), SHOAL_OK);
    assert_int_equal(shoal_store_put_framed(store, "a/key", 7, body, BODY, NULL, NULL, deadline), SHOAL_OK);
    assert_int_equal(shoal_store_get_framed(store, "a/key", 7, &blob, deadline), SHOAL_OK);
    assert_int_equal(blob.size, BODY);
    assert_memory_equal(blob.data, body, BODY);
    shoal_blob_release(&blob);
    assert_int_equal(shoal_store_get_framed(store, "a/key", 8, &blob, deadline), SHOAL_BROKEN);
    assert_non_null(strstr(shoal_error(), "a/key"));
    assert_int_equal(shoal_store_put(store, "plain", body, BODY, NULL, NULL, deadline), SHOAL_OK);
    assert_int_equal(shoal_store_get_framed(store, "plain", 7, &blob, deadline), SHOAL_BROKEN);
    assert_non_null(strstr(shoal_error(), "plain: it was not written by shoal"));
    assert_null(blob.data);
    shoal_store_close(&store);
}

static void no_more_than_was_expected(void **state)
{
    (void)state;
    shoal_store *store = NULL;
    shoal_blob blob = {0};
    int64_t deadline = shoal_after(10);
    assert_int_equal(shoal_store_open(&store, "mem:", NULL, deadline), SHOAL_OK);
    assert_int_equal(shoal_store_put_framed(store, "a/key", 7, body, BODY, NULL, NULL, deadline), SHOAL_OK);
    static const int64_t enough[] = {BODY, BODY + 1, INT64_MAX};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(shoal_store_get_framed_within(store, "a/key", 7, enough[i], &blob, deadline), SHOAL_OK);
        assert_int_equal(blob.size, BODY);
        assert_memory_equal(blob.data, body, BODY);
        shoal_blob_release(&blob);
    }
    for (int bounded = 0; bounded < 2; bounded++) {
        int64_t most = bounded ? INT64_MAX : BODY - 1;
        shoal_store_bound(store, bounded ? WHOLE - 1 : 0);
        assert_int_equal(shoal_store_get_framed_within(store, "a/key", 7, most, &blob, deadline), SHOAL_MEMORY);
        assert_int_equal(blob.whole, WHOLE);
        assert_null(blob.data);
    }
    assert_int_equal(shoal_store_get_framed_within(store, "nothing", 7, BODY, &blob, deadline), SHOAL_ABSENT);
    assert_int_equal(blob.whole, 0);
    shoal_store_close(&store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_bytes_are_these),           cmocka_unit_test(every_flipped_bit_is_found),
        cmocka_unit_test(every_length_but_one_is_wrong), cmocka_unit_test(other_versions_are_named),
        cmocka_unit_test(a_store_names_the_key),         cmocka_unit_test(no_more_than_was_expected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
