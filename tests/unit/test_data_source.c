/* Sources: files, folders, pipes and gzip, whole and broken. */
#include "data_support.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

/* Reads all content in steps of `step` bytes and compares. */
static void expect_content(const char *path, const char *expected, size_t size, size_t step)
{
    data_source source;
    char *content = malloc(size + step);
    size_t total = 0, got;
    if (data_source_open(&source, path, true) < 0)
        fail_msg("%s", shoal_error());
    do {
        assert_int_equal(data_source_read(&got, &source, content + total, step), SHOAL_OK);
        total += got;
    } while (got == step && total <= size);
    assert_int_equal(total, size);
    assert_memory_equal(content, expected, size);
    data_source_close(&source);
    free(content);
}

static void test_plain_and_gzip(void **state)
{
    (void)state;
    enum { SIZE = 300000 };
    char *text = malloc(SIZE);
    for (int i = 0; i < SIZE; i++)
        text[i] = (char)('a' + (unsigned)i * (unsigned)i % 26);
    write_file("plain", text, SIZE);
    append_gzip("one.gz", text, SIZE);
    append_gzip("three.gz", text, 100);
    append_gzip("three.gz", text + 100, 0);
    append_gzip("three.gz", text + 100, SIZE - 100);
    static const size_t steps[] = {1000, 4096, 5001, 1 << 20};
    for (int i = 0; i < 4; i++) {
        expect_content(file_path("plain"), text, SIZE, steps[i]);
        expect_content(file_path("one.gz"), text, SIZE, steps[i]);
        expect_content(file_path("three.gz"), text, SIZE, steps[i]);
    }
    free(text);
}

static size_t load_gzip(unsigned char *bytes, size_t room)
{
    append_gzip("whole.gz", "1,2\n3,4\n5,6\n", 12);
    return read_whole_file(bytes, room, file_path("whole.gz"));
}

static void test_broken_gzip(void **state)
{
    (void)state;
    unsigned char bytes[256];
    size_t size = load_gzip(bytes, sizeof bytes - 8);
    for (size_t cut = 3; cut < size; cut++)
        refuse(write_file("cut.gz", bytes, cut), SHOAL_INVALID, "cut.gz: the gzip data ends early");
    memset(bytes + size, 0, 8);
    expect_content(write_file("padded.gz", bytes, size + 8), "1,2\n3,4\n5,6\n", 12, 100);
    bytes[size] = 'x';
    refuse(write_file("more.gz", bytes, size + 1), SHOAL_INVALID, "more.gz: data after the end of the gzip data");
    bytes[size - 5] ^= 1; /* the checksum */
    refuse(write_file("sum.gz", bytes, size), SHOAL_INVALID, "sum.gz: corrupt gzip data");
}

/* A few bytes that unpack to many fill the temporary file, and no more than the disk has. */
static void test_decompression_bomb(void **state)
{
    (void)state;
    enum { LINES = 1 << 20 };
    char *text = malloc(2 * LINES);
    for (int i = 0; i < LINES; i++)
        memcpy(text + 2 * i, "0\n", 2);
    append_gzip("bomb.gz", text, 2 * LINES);
    free(text);
    struct rlimit old;
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &old);
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){1 << 20, old.rlim_max});
    shoal_data *data = NULL;
    int status = shoal_data_open(&data, file_path("bomb.gz"), &(shoal_data_options){.memory = 1});
    setrlimit(RLIMIT_FSIZE, &old);
    assert_int_equal(status, SHOAL_SYSTEM);
    assert_null(data);
    assert_non_null(strstr(shoal_error(), "bomb.gz: can't keep"));
}

static void test_what_is_no_file(void **state)
{
    (void)state;
    refuse(file_path("absent.npy"), SHOAL_SYSTEM, "absent.npy: can't read: No such file or directory");
    refuse(test_folder, SHOAL_SYSTEM, "it is a folder");
    refuse(write_text("empty.npy", ""), SHOAL_INVALID, "empty.npy: the file is empty");
    append_gzip("empty.gz", "", 0);
    refuse(file_path("empty.gz"), SHOAL_INVALID, "empty.gz: the file is empty");
    const char *path = write_text("secret.csv", "1,2\n");
    chmod(path, 0);
    if (access(path, R_OK) != 0) /* root may read everything */
        refuse(path, SHOAL_SYSTEM, "secret.csv: can't read: Permission denied");
}

/* Gives `bytes` as standard input and opens "-". */
static shoal_data *open_standard_input(const void *bytes, size_t size)
{
    int ends[2], old = dup(STDIN_FILENO);
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], bytes, size), (ssize_t)size);
    close(ends[1]);
    dup2(ends[0], STDIN_FILENO);
    close(ends[0]);
    shoal_data *data = open_data("-");
    dup2(old, STDIN_FILENO);
    close(old);
    return data;
}

static void test_standard_input(void **state)
{
    (void)state;
    shoal_data *data = open_standard_input("1,2\n3,4\n", 8);
    assert_string_equal(shoal_data_path(data), "standard input");
    EXPECT_VALUES(data, 2, 2, 1, 2, 3, 4);
    unsigned char bytes[256];
    EXPECT_VALUES(open_standard_input(bytes, load_gzip(bytes, sizeof bytes)), 3, 2, 1, 2, 3, 4, 5, 6);
    assert_int_equal(shoal_npy_write(file_path("p.npy"), "\1\2\3", SHOAL_UINT8, 1, (int64_t[]){3}), SHOAL_OK);
    EXPECT_VALUES(open_standard_input(bytes, read_whole_file(bytes, sizeof bytes, file_path("p.npy"))), 3, 1, 1, 2, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_plain_and_gzip, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(test_broken_gzip, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(test_decompression_bomb, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(test_what_is_no_file, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(test_standard_input, folder_setup, folder_teardown)};
    return cmocka_run_group_tests_name("data_source", tests, NULL, NULL);
}
