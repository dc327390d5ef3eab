/* Reading and writing to the end, where a single call does less. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include <shoal/error.h>

#include "base/io.h"
#include "base/memory.h"

enum { SIZE = 1 << 20 }; /* more than a pipe takes at once */

static unsigned char bytes[SIZE], back[SIZE + 1];

static int fill(void **state)
{
    (void)state;
    for (int i = 0; i < SIZE; i++)
        bytes[i] = (unsigned char)(i * 7 + i / 251);
    return 0;
}

static void *write_and_close(void *file)
{
    errno = base_write_all(*(int *)file, bytes, SIZE);
    close(*(int *)file);
    return errno ? file : NULL;
}

/* What comes through a pipe comes in parts. */
static void through_a_pipe(void **state)
{
    int ends[2];
    pthread_t writer;
    size_t got = 0;
    void *failed;
    (void)state;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(pthread_create(&writer, NULL, write_and_close, &ends[1]), 0);
    assert_int_equal(base_read_all(ends[0], back, sizeof back, &got), 0);
    assert_int_equal(pthread_join(writer, &failed), 0);
    assert_null(failed);
    assert_int_equal(got, SIZE);
    assert_memory_equal(back, bytes, SIZE);
    close(ends[0]);
}

static void whole_from_a_pipe(void **state)
{
    int ends[2];
    pthread_t writer;
    char *text = NULL;
    size_t size = 0;
    (void)state;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(pthread_create(&writer, NULL, write_and_close, &ends[1]), 0);
    assert_int_equal(base_read_whole(&text, &size, ends[0], SIZE, "a test"), SHOAL_OK);
    assert_int_equal(pthread_join(writer, NULL), 0);
    assert_int_equal(size, SIZE);
    assert_memory_equal(text, bytes, SIZE);
    assert_int_equal(text[SIZE], '\0');
    base_free(&text);
    close(ends[0]);
}

static int file_of(size_t size)
{
    int file = memfd_create("test", MFD_CLOEXEC);
    assert_true(file >= 0);
    assert_int_equal(base_write_all_at(file, bytes, size, 0), 0);
    return file;
}

static void whole_files_and_their_limit(void **state)
{
    static const size_t sizes[] = {0, 1, (1 << 16) - 1, 1 << 16, (1 << 16) + 1, 1 << 17, SIZE};
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char *text = NULL;
        size_t size = 0;
        int file = file_of(sizes[i]);
        assert_int_equal(base_read_whole(&text, &size, file, sizes[i], "a test"), SHOAL_OK);
        assert_int_equal(size, sizes[i]);
        assert_memory_equal(text, bytes, size);
        assert_int_equal(text[size], '\0');
        base_free(&text);
        assert_int_equal(lseek(file, 0, SEEK_SET), 0);
        if (sizes[i] > 0)
            assert_int_equal(base_read_whole(&text, &size, file, sizes[i] - 1, "a test"), SHOAL_INVALID);
        base_free(&text);
        assert_int_equal(lseek(file, 0, SEEK_SET), 0);
        base_memory_fail_after(0);
        assert_int_equal(base_read_whole(&text, &size, file, sizes[i], "a test"), SHOAL_MEMORY);
        base_memory_fail_after(-1);
        base_free(&text);
        close(file);
    }
}

static void at_places(void **state)
{
    size_t got = 0;
    int file = file_of(0);
    (void)state;
    assert_int_equal(base_write_all_at(file, "fish", 4, 100), 0);
    assert_int_equal(base_read_all_at(file, back, 50, 96, &got), 0);
    assert_int_equal(got, 8);
    assert_memory_equal(back, "\0\0\0\0fish", 8);
    assert_int_equal(base_read_all_at(file, back, 50, 104, &got), 0);
    assert_int_equal(got, 0);
    assert_int_equal(base_read_all(file, back, 2, &got), 0); /* the file's own place has not moved */
    assert_int_equal(got, 2);
    assert_memory_equal(back, "\0\0", 2);
    close(file);
}

static void failures_are_told(void **state)
{
    int ends[2];
    char *text = NULL;
    size_t got = 7;
    (void)state;
    signal(SIGPIPE, SIG_IGN);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    close(ends[0]);
    assert_int_equal(base_write_all(ends[1], "x", 1), EPIPE);
    assert_int_equal(base_write_all_at(ends[1], "x", 1, 0), ESPIPE);
    assert_int_equal(base_read_all(ends[1], back, 1, &got), EBADF);
    assert_int_equal(got, 0);
    assert_int_equal(base_read_whole(&text, &got, ends[1], 10, "a test"), SHOAL_SYSTEM);
    assert_int_equal(errno, EBADF);
    base_free(&text);
    close(ends[1]);
    int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    assert_int_equal(base_write_all(full, "x", 1), ENOSPC);
    close(full);
}

static void small_files(void **state)
{
    char text[6];
    (void)state;
    assert_int_equal(base_read_small(text, sizeof text, "/proc/version"), 5);
    assert_string_equal(text, "Linux");
    assert_int_equal(base_read_small(text, sizeof text, "/proc/no such file"), 0);
    assert_string_equal(text, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(through_a_pipe),    cmocka_unit_test(whole_from_a_pipe),
        cmocka_unit_test(at_places),         cmocka_unit_test(whole_files_and_their_limit),
        cmocka_unit_test(failures_are_told), cmocka_unit_test(small_files),
    };
    return cmocka_run_group_tests(tests, fill, NULL);
}
