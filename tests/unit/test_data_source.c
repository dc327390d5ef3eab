/* Sources: files, folders, pipes and what is compressed, whole and broken. */
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

/* Adds one stream of the codec that the name ends in to a file. */
static const char *append_packed(const char *name, const void *bytes, size_t size)
{
    unsigned char packed[4096];
    char part[64];
    data_sink sink;
    snprintf(part, sizeof part, "part-%s", name);
    assert_int_equal(data_sink_open(&sink, file_path(part), data_codec_of_name(name, strlen(name))), SHOAL_OK);
    assert_int_equal(data_sink_write(&sink, bytes, size), SHOAL_OK);
    assert_int_equal(data_sink_commit(&sink), SHOAL_OK);
    data_sink_close(&sink);
    const size_t got = read_whole_file(packed, sizeof packed, file_path(part));
    FILE *file = fopen(file_path(name), "ab");
    assert_int_equal(fwrite(packed, 1, got, file), got);
    fclose(file);
    return file_path(name);
}

/* All ways of compressing: streams one after another, some of them empty, padding, files cut off at any byte, bytes
 * behind the end, and a wrong byte in the middle. */
static void test_codecs(void **state)
{
    (void)state;
    static const char text[] = "1,2\n3,4\n5,6\n";
    static const char *const endings[] = {"gz", "xz", "bz2", "zst"}, *const names[] = {"gzip", "xz", "bzip2", "zstd"};
    for (int i = 0; i < 4; i++) {
        unsigned char bytes[512];
        char name[32], part[64];
        snprintf(name, sizeof name, "x.%s", endings[i]);
        if (!*data_codec_of_name(name, strlen(name))->coder)
            continue; /* a build without the library */
        append_packed(name, text, 4);
        const size_t first = read_whole_file(bytes, sizeof bytes, file_path(name));
        append_packed(name, text + 4, 0);
        append_packed(name, text + 4, 8);
        expect_content(file_path(name), text, 12, 1);
        expect_content(file_path(name), text, 12, 100);
        size_t size = read_whole_file(bytes, sizeof bytes, file_path(name));
        snprintf(part, sizeof part, "the %s data ends early", names[i]);
        for (size_t cut = 10; cut < first; cut++)
            refuse(write_file("cut", bytes, cut), SHOAL_INVALID, part);
        refuse(write_file("cut", bytes, size - 1), SHOAL_INVALID, part);
        memset(bytes + size, 0, 8);
        expect_content(write_file("padded", bytes, size + 8), text, 12, 100);
        bytes[size + 4] = 'x';
        snprintf(part, sizeof part, "more: data after the end of the %s data", names[i]);
        refuse(write_file("more", bytes, size + 8), SHOAL_INVALID, part);
        bytes[size - 3] ^= 0x55;
        bytes[size - 7] ^= 0x55; /* a checksum at the latest */
        shoal_data *data = NULL;
        assert_int_equal(shoal_data_open(&data, write_file("wrong", bytes, size), NULL), SHOAL_INVALID);
        assert_non_null(strstr(shoal_error(), "wrong: "));
    }
}

/* What needs a library that is not there is told by name. */
static void test_codec_without_library(void **state)
{
    (void)state;
    static const struct data_coder *const none = NULL;
    data_codec codec = *data_codec_of_name("x.xz", 4);
    codec.coder = &none;
    assert_int_equal(data_codec_check(&codec, "x.csv.xz", false), SHOAL_INVALID);
    assert_string_equal(shoal_error(), "x.csv.xz is compressed by xz, and this program was built without liblzma; "
                                       "decompress it first: unxz x.csv.xz");
    assert_int_equal(data_codec_check(&codec, "x.csv.xz", true), SHOAL_USAGE);
    assert_non_null(strstr(shoal_error(), "can't write .xz; .gz can be written"));
}

/* Files that ask for more memory than anybody should give them: an xz dictionary, and a zstd window, of 4 and 2 GiB. */
static void test_codec_memory(void **state)
{
    (void)state;
    static const unsigned char xz[] = "\xfd"
                                      "7zXZ\0\0\x04\xe6\xd6\xb4\x46\x02\0\x21\x01\x28\0\0\0\xe6\xa0\x11\xb3";
    static const unsigned char zstd[] = "\x28\xb5\x2f\xfd\x00\xa8\x01\0\0";
    if (*data_codec_of_name("x.xz", 4)->coder)
        refuse(write_file("d.xz", xz, sizeof xz - 1), SHOAL_INVALID, "d.xz: decompressing it would take more than");
    if (*data_codec_of_name("x.zst", 5)->coder)
        refuse(write_file("w.zst", zstd, sizeof zstd - 1), SHOAL_INVALID, "w.zst: decompressing it would take more");
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
        cmocka_unit_test_setup_teardown(test_codecs, folder_setup, folder_teardown),
        cmocka_unit_test(test_codec_without_library),
        cmocka_unit_test_setup_teardown(test_codec_memory, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(test_decompression_bomb, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(test_what_is_no_file, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(test_standard_input, folder_setup, folder_teardown)};
    return cmocka_run_group_tests_name("data_source", tests, NULL, NULL);
}
