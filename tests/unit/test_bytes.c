/* Numbers to bytes and back: the bytes are fixed, nothing is read beyond the end, and failures are remembered. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <shoal/error.h>

#include "base/bytes.h"
#include "base/memory.h"

static void write_some(base_writer *out)
{
    base_write_u8(out, 0xfe);
    base_write_u32(out, 0x01020304);
    base_write_u64(out, UINT64_C(0x1122334455667788));
    base_write_i64(out, -2);
    base_write_double(out, -1.5);
    base_write_text(out, "fish");
    base_write_text(out, "");
    base_write_bytes(out, "\0\1\2", 3);
    base_write_bytes(out, NULL, 0);
}

static const unsigned char some[] = {0xfe, 4,    3,    2,    1,    0x88, 0x77, 0x66, 0x55, 0x44, 0x33,
                                     0x22, 0x11, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0,
                                     0,    0,    0,    0,    0,    0xf8, 0xbf, 4,    0,    0,    0,
                                     'f',  'i',  's',  'h',  0,    0,    0,    0,    0,    1,    2};

static void test_bytes_are_fixed(void **state)
{
    (void)state;
    base_writer out = {0};
    void *bytes = NULL;
    size_t size = 0;
    write_some(&out);
    assert_int_equal(base_writer_take(&out, &bytes, &size), SHOAL_OK);
    assert_int_equal(size, sizeof some);
    assert_memory_equal(bytes, some, size);
    assert_null(out.data); /* it is ours now, and the writer can start again */
    base_write_u8(&out, 1);
    assert_int_equal(out.size, 1);
    base_writer_release(&out);
    base_writer_release(&out);
    base_free(&bytes);
}

/* Reads what write_some wrote; true when all was as it was. */
static bool read_some(base_reader *in)
{
    char text[5], empty[1];
    bool same = base_read_u8(in) == 0xfe;
    same &= base_read_u32(in) == 0x01020304;
    same &= base_read_u64(in) == UINT64_C(0x1122334455667788);
    same &= base_read_i64(in) == -2;
    same &= base_read_double(in) == -1.5;
    base_read_text(in, text, sizeof text);
    same &= strcmp(text, "fish") == 0;
    base_read_text(in, empty, sizeof empty);
    same &= empty[0] == 0;
    const void *rest = base_read_bytes(in, 3);
    return same && rest && memcmp(rest, "\0\1\2", 3) == 0;
}

static void test_reading_back(void **state)
{
    (void)state;
    base_reader in = base_reader_of(some, sizeof some);
    assert_true(read_some(&in));
    assert_true(base_reader_done(&in));
    in = base_reader_of(some, sizeof some);
    base_read_u8(&in);
    assert_false(base_reader_done(&in)); /* something is left */
}

/* The reader reports whatever is missing, and returns zeros from then on.  Each length is allocated separately, so that
 * the address sanitizer sees a byte too many. */
static void test_every_truncation(void **state)
{
    (void)state;
    for (size_t size = 0; size < sizeof some; size++) {
        unsigned char *bytes = malloc(size + 1);
        memcpy(bytes, some, size);
        bytes = realloc(bytes, size ? size : 1);
        base_reader in = base_reader_of(bytes, size);
        char text[8] = "before";
        assert_false(read_some(&in));
        assert_true(in.bad);
        assert_false(base_reader_done(&in));
        assert_int_equal(base_read_u8(&in), 0);
        assert_int_equal(base_read_u32(&in), 0);
        assert_int_equal(base_read_u64(&in), 0);
        assert_true(base_read_double(&in) == 0);
        assert_null(base_read_bytes(&in, 0));
        base_read_text(&in, text, sizeof text);
        assert_string_equal(text, "");
        free(bytes);
    }
}

static void test_texts_that_do_not_fit(void **state)
{
    (void)state;
    static const unsigned char fish[] = {4, 0, 0, 0, 'f', 'i', 's', 'h'};
    static const unsigned char with_nul[] = {4, 0, 0, 0, 'f', 0, 's', 'h'};
    static const unsigned char endless[] = {0xff, 0xff, 0xff, 0xff, 'f', 'i', 's', 'h'};
    char text[5], small[4];
    base_reader in = base_reader_of(fish, sizeof fish);
    base_read_text(&in, text, sizeof text);
    assert_string_equal(text, "fish");
    assert_true(base_reader_done(&in));
    in = base_reader_of(fish, sizeof fish);
    base_read_text(&in, small, sizeof small); /* no room for the NUL */
    assert_true(in.bad);
    assert_string_equal(small, "");
    in = base_reader_of(with_nul, sizeof with_nul);
    base_read_text(&in, text, sizeof text);
    assert_true(in.bad);
    assert_string_equal(text, "");
    in = base_reader_of(endless, sizeof endless);
    base_read_text(&in, text, sizeof text);
    assert_true(in.bad);
    in = base_reader_of(fish, sizeof fish);
    assert_null(base_read_bytes(&in, SIZE_MAX));
    assert_true(in.bad);
}

static void test_odd_numbers(void **state)
{
    (void)state;
    static const double doubles[] = {0.0, -0.0, INFINITY, -INFINITY, 0x1p-1074, 0x1.fffffffffffffp1023, NAN};
    base_writer out = {0};
    for (size_t i = 0; i < sizeof doubles / sizeof *doubles; i++)
        base_write_double(&out, doubles[i]);
    base_write_i64(&out, INT64_MIN);
    base_write_u64(&out, UINT64_MAX);
    base_reader in = base_reader_of(out.data, out.size);
    for (size_t i = 0; i < sizeof doubles / sizeof *doubles; i++) {
        double value = base_read_double(&in);
        assert_memory_equal(&value, &doubles[i], sizeof value);
    }
    assert_true(base_read_i64(&in) == INT64_MIN);
    assert_true(base_read_u64(&in) == UINT64_MAX);
    assert_true(base_reader_done(&in));
    base_writer_release(&out);
}

/* Growing loses nothing; who reserves gets the room at once. */
static void test_growing(void **state)
{
    (void)state;
    enum { COUNT = 100000 };
    base_writer out = {0};
    for (uint32_t i = 0; i < COUNT; i++)
        base_write_u32(&out, i);
    base_reader in = base_reader_of(out.data, out.size);
    for (uint32_t i = 0; i < COUNT; i++)
        assert_int_equal(base_read_u32(&in), i);
    assert_true(base_reader_done(&in));
    base_writer_release(&out);

    base_write_u8(&out, 7);
    base_write_reserve(&out, COUNT);
    const unsigned char *at = out.data;
    void *room = base_write_room(&out, COUNT);
    assert_ptr_equal(out.data, at);
    assert_ptr_equal(room, at + 1);
    assert_int_equal(out.data[0], 7);
    assert_int_equal(out.size, COUNT + 1);
    base_writer_release(&out);
}

static void test_no_memory(void **state)
{
    (void)state;
    void *bytes = &state;
    size_t size = 99;
    base_writer out = {0};
    base_write_u8(&out, 1);
    base_write_reserve(&out, SIZE_MAX); /* can't even be added up */
    assert_int_equal(out.status, SHOAL_MEMORY);
    base_writer_release(&out);
    base_write_u8(&out, 1);
    base_write_reserve(&out, SIZE_MAX / 2); /* more than there is */
    assert_int_equal(out.status, SHOAL_MEMORY);
    assert_null(base_write_room(&out, 1));
    base_writer_release(&out);
    base_memory_fail_after(0);
    write_some(&out);
    base_memory_fail_after(-1);
    write_some(&out); /* once failed, it stays so, also when there would be memory again */
    assert_int_equal(out.status, SHOAL_MEMORY);
    assert_int_equal(base_writer_take(&out, &bytes, &size), SHOAL_MEMORY);
    assert_ptr_equal(bytes, &state); /* nothing was handed out */
    assert_int_equal(size, 99);
    assert_int_equal(out.status, SHOAL_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes_are_fixed),  cmocka_unit_test(test_reading_back),
        cmocka_unit_test(test_every_truncation), cmocka_unit_test(test_texts_that_do_not_fit),
        cmocka_unit_test(test_odd_numbers),      cmocka_unit_test(test_growing),
        cmocka_unit_test(test_no_memory)};
    return cmocka_run_group_tests_name("bytes", tests, NULL, NULL);
}
