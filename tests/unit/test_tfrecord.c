/* src/data/format/tfrecord.c: frames are those that TensorFlow writes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <zlib.h>

#include <shoal/error.h>

#include "data/format/tfrecord.h"

/* Lengths as every event file of TensorFlow begins with them, and the checksum of nothing. */
static void checksums_are_masked(void **state)
{
    static const unsigned char of_24[] = {24, 0, 0, 0, 0, 0, 0, 0};
    (void)state;
    assert_int_equal(data_tfrecord_check(of_24, sizeof of_24), 0x224b7fa3);
    assert_int_equal(data_tfrecord_check("", 0), 0xa282ead8);
    assert_int_equal(data_tfrecord_check("123456789", 9), 0xc78ab0e5);
}

static void a_record_lies_between_two_checksums(void **state)
{
    static const unsigned char empty[] = {0, 0, 0, 0, 0, 0, 0, 0, 0x29, 0x03, 0x98, 0x07, 0xd8, 0xea, 0x82, 0xa2};
    base_writer out = {0};
    (void)state;
    data_tfrecord_write(&out, "", 0);
    assert_int_equal(out.status, SHOAL_OK);
    assert_int_equal(out.size, DATA_TFRECORD_OVERHEAD);
    assert_memory_equal(out.data, empty, sizeof empty);
    data_tfrecord_write(&out, "123456789", 9); /* goes behind it */
    assert_int_equal(out.size, 2 * DATA_TFRECORD_OVERHEAD + 9);
    assert_memory_equal(out.data + DATA_TFRECORD_OVERHEAD, "\x9\0\0\0\0\0\0\0", 8);
    assert_memory_equal(out.data + DATA_TFRECORD_OVERHEAD + DATA_TFRECORD_HEAD, "123456789", 9);
    assert_memory_equal(out.data + DATA_TFRECORD_OVERHEAD + DATA_TFRECORD_HEAD + 9, "\xe5\xb0\x8a\xc7", 4);
    base_writer_release(&out);
}

#define VECTORS "../shared/data/vectors/tfrecord/"

/* Writes the records of a file again, and counts them. */
static int write_again(const char *path)
{
    static unsigned char bytes[1 << 20];
    base_writer out = {0};
    size_t at = 0;
    int records = 0;
    gzFile file = gzopen(path, "rb"); /* plain files as well */
    if (!file)
        skip();
    int got = gzread(file, bytes, sizeof bytes);
    assert_true(got > 0 && (size_t)got < sizeof bytes);
    assert_int_equal(gzclose(file), Z_OK);
    for (size_t size = 0; at < (size_t)got; at += size + DATA_TFRECORD_OVERHEAD, records++) {
        size = 0;
        memcpy(&size, bytes + at, 4);
        assert_true(at + size + DATA_TFRECORD_OVERHEAD <= (size_t)got);
        data_tfrecord_write(&out, bytes + at + DATA_TFRECORD_HEAD, size);
    }
    assert_int_equal(out.size, got);
    assert_memory_equal(out.data, bytes, out.size);
    base_writer_release(&out);
    return records;
}

static void frames_are_those_of_tensorflow(void **state)
{
    (void)state;
    assert_int_equal(write_again(VECTORS "example.tfrecord"), 4);
    assert_int_equal(write_again(VECTORS "sequence_example.tfrecord"), 4);
    assert_true(write_again(VECTORS "data_tfrecord-00000-of-00012.gz") > 10);
    assert_true(write_again(VECTORS "data_tfrecord-00003-of-00012.gz") > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checksums_are_masked),
        cmocka_unit_test(a_record_lies_between_two_checksums),
        cmocka_unit_test(frames_are_those_of_tensorflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
