/* Frames of links: what was written is read, and everything else is refused with a reason. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/crc.h"
#include "store/pipe/pipe_frame.h"

/* A frame and its payload in memory of exactly their size, so that the sanitizer sees a look beyond it. */
static unsigned char *written(size_t *size, const pipe_frame *frame)
{
    *size = PIPE_FRAME_BYTES + frame->length;
    unsigned char *bytes = malloc(*size);
    assert_non_null(bytes);
    memcpy(bytes + PIPE_FRAME_BYTES, frame->payload, frame->length);
    pipe_frame_write(bytes, frame);
    return bytes;
}

static void expect_refused(const void *bytes, size_t size)
{
    pipe_frame frame;
    const char *why = NULL;
    assert_int_equal(pipe_frame_read(&frame, bytes, size, &why), -1);
    assert_non_null(why);
    assert_non_null(strstr(why, "frame"));
}

static void test_what_was_written_is_read(void **state)
{
    static unsigned char payload[PIPE_PAYLOAD_MOST];
    static const struct {
        uint8_t kind, flags;
        uint32_t length;
    } rows[] = {{PIPE_PING, 0, 8},
                {PIPE_PONG, 0, 8},
                {PIPE_CREDIT, 0, 8},
                {PIPE_NOTE, 0, 0},
                {PIPE_NOTE, PIPE_MORE, 5},
                {PIPE_NOTE, 0, PIPE_PAYLOAD_MOST},
                {PIPE_HEAD, 0, 12},
                {PIPE_HEAD, 0, 4000},
                {PIPE_BODY, 0, 1},
                {PIPE_CANCEL, 0, 0},
                {PIPE_BODY, PIPE_ASK_CREDIT, PIPE_PAYLOAD_MOST}};
    (void)state;
    for (size_t i = 0; i < sizeof payload; i++)
        payload[i] = (unsigned char)(i * 31 + (i >> 8));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        pipe_frame frame = {.stream = 0xfedcba98u + (uint32_t)i,
                            .kind = rows[i].kind,
                            .flags = rows[i].flags,
                            .length = rows[i].length,
                            .payload = payload};
        pipe_frame read;
        const char *why = NULL;
        size_t size;
        unsigned char *bytes = written(&size, &frame);
        assert_int_equal(pipe_frame_read(&read, bytes, size, &why), size);
        assert_int_equal(read.stream, frame.stream);
        assert_int_equal(read.kind, frame.kind);
        assert_int_equal(read.flags, frame.flags);
        assert_int_equal(read.length, frame.length);
        assert_ptr_equal(read.payload, bytes + PIPE_FRAME_BYTES);
        for (size_t shorter = 0; shorter < size; shorter += shorter < 40 ? 1 : 997) /* more is needed: no verdict */
            assert_int_equal(pipe_frame_read(&read, bytes, shorter, &why), 0);
        free(bytes);
    }
}

static void test_each_changed_bit_is_found(void **state)
{
    const pipe_frame frame = {.stream = 7,
                              .kind = PIPE_BODY,
                              .length = 40,
                              .payload = (const unsigned char *)"forty bytes of a body, all that there is"};
    pipe_frame read;
    const char *why = NULL;
    size_t size;
    unsigned char *bytes = written(&size, &frame);
    (void)state;
    for (size_t bit = 0; bit < 8 * size; bit++) {
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
        assert_true(pipe_frame_read(&read, bytes, size, &why) <= 0); /* 0: a greater length needs more bytes to judge */
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    assert_int_equal(pipe_frame_read(&read, bytes, size, &why), size);
    free(bytes);
}

/* Frames whose checksum is right and whose shape is not. */
static void test_shapes_that_there_are_not(void **state)
{
    static const unsigned char payload[PIPE_PAYLOAD_MOST + 1];
    static const struct {
        uint8_t kind, flags;
        uint32_t length;
    } rows[] = {{0, 0, 8},           {PIPE_KINDS, 0, 8},
                {255, 0, 0},         {PIPE_PING, 0, 7},
                {PIPE_PING, 1, 8},   {PIPE_PONG, 0, 9},
                {PIPE_CREDIT, 0, 0}, {PIPE_HEAD, 0, 11},
                {PIPE_HEAD, 1, 12},  {PIPE_BODY, 0, 0},
                {PIPE_BODY, 2, 1},   {PIPE_CANCEL, 0, 1},
                {PIPE_NOTE, 4, 1},   {PIPE_BODY, 0, PIPE_PAYLOAD_MOST + 1}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const pipe_frame frame = {
            .kind = rows[i].kind, .flags = rows[i].flags, .length = rows[i].length, .payload = payload};
        size_t size;
        unsigned char *bytes = written(&size, &frame);
        expect_refused(bytes, size);
        expect_refused(bytes, PIPE_FRAME_BYTES); /* the header alone tells */
        free(bytes);
    }
}

static void test_the_layout_is_what_is_documented(void **state)
{
    unsigned char bytes[PIPE_FRAME_BYTES + 3] = {0};
    uint32_t crc;
    (void)state;
    memcpy(bytes + PIPE_FRAME_BYTES, "abc", 3);
    pipe_frame_write(bytes, &(pipe_frame){.stream = 0x04030201,
                                          .kind = PIPE_BODY,
                                          .flags = PIPE_ASK_CREDIT,
                                          .length = 3,
                                          .payload = bytes + PIPE_FRAME_BYTES});
    assert_memory_equal(bytes, "\1\2\3\4\6\1\3\0", 8);
    memcpy(&crc, bytes + 8, sizeof crc);
    unsigned char checked[11];
    memcpy(checked, bytes, 8);
    memcpy(checked + 8, "abc", 3);
    assert_int_equal(crc, base_crc32c(0, checked, sizeof checked));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_was_written_is_read),
        cmocka_unit_test(test_each_changed_bit_is_found),
        cmocka_unit_test(test_shapes_that_there_are_not),
        cmocka_unit_test(test_the_layout_is_what_is_documented),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
