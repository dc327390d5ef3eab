/* The n-th allocation fails, for every n, in every way of opening and writing data: each failure says so, leaks nothing
 * (the address sanitizer watches) and leaves no file behind; then the same call succeeds.
 *
 * Decoded values lie in mappings and not in base_alloc's memory; test_data_buffer.c fails those. */
#include "unit/tfrecord_support.h"

#include "base/memory.h"

/* One case; returns the status of the call under test. */
typedef int attempt(const void *argument);

static int count_descriptors(void)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

/* Of files in the folder of this test. */
static int count_mappings(void)
{
    int count = 0;
    char line[512];
    FILE *file = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, file))
        count += strstr(line, test_folder) != NULL;
    fclose(file);
    return count;
}

/* Fails allocation 0, then 1, ... until the attempt succeeds, which must take at least one allocation. */
static void fail_each_allocation(attempt *attempt, const void *argument)
{
    int files = count_files(), descriptors = count_descriptors();
    for (int64_t n = 0;; n++) {
        assert_true(n < 1000);
        base_memory_fail_after(n);
        int status = attempt(argument);
        base_memory_fail_after(-1);
        assert_int_equal(count_descriptors(), descriptors);
        assert_int_equal(count_mappings(), 0);
        if (status == SHOAL_OK) {
            assert_true(n > 0);
            return;
        }
        if (status != SHOAL_MEMORY || !strstr(shoal_error(), "out of memory"))
            fail_msg("allocation %lld: status %d, \"%s\"", (long long)n, status, shoal_error());
        assert_int_equal(count_files(), files);
    }
}

struct open_case {
    const char *path;
    shoal_data_options options;
};

static int open_and_read(const void *argument)
{
    const struct open_case *open_case = argument;
    static unsigned char scratch[4096];
    shoal_data *data = NULL;
    const void *rows;
    int status = shoal_data_open(&data, open_case->path, &open_case->options);
    if (status == SHOAL_OK)
        status = shoal_data_read(&rows, data, 0, 1, scratch);
    else
        assert_null(data);
    shoal_data_free(&data);
    return status;
}

static void test_open(void **state)
{
    (void)state;
    static const double values[6] = {1, 2, 3, 4, 5, 6};
    unsigned char bytes[512];
    assert_int_equal(shoal_npy_write(file_path("a.npy"), values, SHOAL_FLOAT64, 2, (int64_t[]){2, 3}), SHOAL_OK);
    size_t size = read_whole_file(bytes, sizeof bytes, file_path("a.npy"));
    append_gzip("a.npy.gz", bytes, size);
    memcpy(strstr((char *)bytes + 10, "False"), "True ", 5);
    write_file("fortran.npy", bytes, size);
    append_gzip("fortran.npy.gz", bytes, size);
    *strchr((char *)bytes + 10, '<') = '>';
    write_file("big.npy", bytes, size);
    write_file("a.idx", "\0\0\x0b\2\0\0\0\1\0\0\0\2\0\1\0\2", 16);
    append_gzip("a.idx.gz", "\0\0\x0b\2\0\0\0\1\0\0\0\2\0\1\0\2", 16);
    write_text("a.csv", "a,b,\"c\"\n1,2,3\n4,\"5\",6\n");
    append_gzip("a.csv.gz", "1 2 3\n4 5 6\n", 12);
    static const char *const names[] = {"a.npy", "a.npy.gz", "fortran.npy", "fortran.npy.gz", "big.npy",
                                        "a.idx", "a.idx.gz", "a.csv",       "a.csv.gz"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (int memory = 0; memory < 2; memory++) /* 1 byte: everything decoded goes to a file */
            fail_each_allocation(open_and_read, &(struct open_case){file_path(names[i]), {.memory = memory}});
    fail_each_allocation(open_and_read, &(struct open_case){file_path("a.csv"), {.drop_columns = "b,1"}});
    static const char *const hdf5[] = {"plain", "gzip", "tree:x"};
    for (size_t i = 0; i < sizeof hdf5 / sizeof *hdf5; i++) {
        char path[64];
        snprintf(path, sizeof path, "tests/fuzz/corpus/hdf5/%s", hdf5[i]);
        if (open_and_read(&(struct open_case){path, {0}}) == SHOAL_OK) /* also loads the library */
            fail_each_allocation(open_and_read, &(struct open_case){path, {0}});
        else
            assert_non_null(strstr(shoal_error(), "libhdf5"));
    }
    static const struct open_case others[] = {{"tests/fuzz/corpus/npz/stored:x", {0}},
                                              {"tests/fuzz/corpus/npz/deflated:h", {0}},
                                              {"tests/fuzz/corpus/npz/deflated:f", {.memory = 1}},
                                              {"tests/fuzz/corpus/npz/zip64", {0}},
                                              {"tests/fuzz/corpus/matlab/plain:X", {0}},
                                              {"tests/fuzz/corpus/matlab/compressed:Y", {.memory = 1}},
                                              {"tests/fuzz/corpus/vecs/f3", {.type = "fvecs"}}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        fail_each_allocation(open_and_read, &others[i]);
    append_gzip("v.fvecs.gz", "\1\0\0\0abcd\1\0\0\0efgh", 16);
    fail_each_allocation(open_and_read, &(struct open_case){file_path("v.fvecs.gz"), {0}});
    fail_each_allocation(open_and_read, &(struct open_case){file_path("a.idx"), {.columns = 2, .type = ">f2"}});
    write_blob("table.tfrec", FRAMES(EXAMPLE(entry_of("a", FLOATS(1, 2)), entry_of("c", bytes_list(BLOB("x")))),
                                     EXAMPLE(entry_of("b", INTEGERS(1)), entry_of("c", bytes_list(BLOB("y"))))));
    write_blob("cut.tfrec", BLOB("\1\2\3"));
    fail_each_allocation(open_and_read, &(struct open_case){test_folder, {.drop_columns = "c", .skip_broken = true}});
    write_blob("images.tfrec",
               FRAMES(EXAMPLE(entry_of("image", bytes_list(BLOB("\1\2"))), entry_of("class", INTEGERS(3)),
                              entry_of("size", INTEGERS(1, 2)), entry_of("label", bytes_list(BLOB("x"))))));
    fail_each_allocation(open_and_read, &(struct open_case){file_path("table.tfrec"), {.target = "c"}});
    fail_each_allocation(open_and_read, &(struct open_case){file_path("table.tfrec"), {.drop_columns = "c"}});
    fail_each_allocation(open_and_read, &(struct open_case){file_path("images.tfrec"), {.target = ""}});
    fail_each_allocation(open_and_read, &(struct open_case){file_path("images.tfrec"), {.drop_columns = "label"}});
    write_blob("named.tfrec",
               FRAMES(EXAMPLE(entry_of("image", bytes_list(BLOB("\1\2"))), entry_of("size", INTEGERS(1, 2)),
                              entry_of("label", bytes_list(BLOB("x"))))));
    fail_each_allocation(open_and_read, &(struct open_case){file_path("named.tfrec"), {.target = ""}});
    write_blob("broken.tfrec", FRAMES(BLOB("\x0a\x7f"), EXAMPLE(entry_of("a", FLOATS(1, 2))), BLOB("\x0a\x7f")));
    fail_each_allocation(open_and_read, &(struct open_case){file_path("broken.tfrec"), {.skip_broken = true}});
    write_text("words.svm", "spam 1:2 3:4\nham 2:1\n7 1:1");
    fail_each_allocation(open_and_read, &(struct open_case){file_path("words.svm"), {.target = ""}});
    fail_each_allocation(open_and_read, &(struct open_case){file_path("words.svm"), {.drop_columns = "label"}});
    write_text("words.csv", "a,kind,c\n1,cat,3\n,dog,6\n7,cat,8\n");
    for (int missing = SHOAL_MISSING_MEAN; missing <= SHOAL_MISSING_DROP; missing++)
        fail_each_allocation(
            open_and_read,
            &(struct open_case){file_path("words.csv"), {.keep_columns = "c,a", .target = "kind", .missing = missing}});
    fail_each_allocation(open_and_read, &(struct open_case){file_path("a.npy"), {.keep_columns = "3,1"}});
    fail_each_allocation(open_and_read, &(struct open_case){file_path("a.idx"), {.columns = 2, .type = ">i2"}});
    fail_each_allocation(open_and_read, &(struct open_case){"gen:uniform?rows=3&cols=4", {0}});
    fail_each_allocation(open_and_read, &(struct open_case){"gen:blobs?rows=3&cols=4&centres=2", {0}});
}

/* A row longer than a chunk makes the text reader's chunk grow. */
static void test_open_wide_text(void **state)
{
    (void)state;
    enum { BYTES = 3 << 20 };
    char *text = malloc(BYTES);
    for (int i = 0; i < BYTES; i++)
        text[i] = i % 2 ? ',' : 'a';
    text[BYTES / 2 - 1] = '\n';
    for (int i = BYTES / 2; i < BYTES; i += 2)
        text[i] = '7';
    text[BYTES - 1] = '\n';
    const char *path = write_file("wide.csv", text, BYTES);
    free(text);
    fail_each_allocation(open_and_read, &(struct open_case){path, {.memory = 1 << 20}});
}

static int wrap(const void *argument)
{
    shoal_data *data = NULL;
    int status = shoal_data_wrap(&data, argument, 1, 1, SHOAL_UINT8);
    shoal_data_free(&data);
    return status;
}

static void test_wrap(void **state)
{
    (void)state;
    fail_each_allocation(wrap, "x");
}

struct write_case {
    shoal_data *data;
    const char *path;
};

static int write_data(const void *argument)
{
    const struct write_case *write_case = argument;
    return shoal_data_write(write_case->data, write_case->path);
}

static int write_npy(const void *argument)
{
    const struct write_case *write_case = argument;
    return shoal_npy_write(write_case->path, "\1\2", SHOAL_UINT8, 1, (int64_t[]){2});
}

static void test_write(void **state)
{
    (void)state;
    static const char *const names[] = {"w.npy", "w.raw", "w.idx", "w.idx.gz", "w.csv", "w.csv.gz"};
    write_text("source.csv", "a,b\n1,2\n");
    shoal_data *data = open_data(file_path("source.csv"));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[128];
        snprintf(path, sizeof path, "%s", file_path(names[i]));
        fail_each_allocation(write_data, &(struct write_case){data, path});
        unlink(path);
        fail_each_allocation(write_npy, &(struct write_case){NULL, path});
    }
    shoal_data_free(&data);
}

/* Every way of being cut off is reported, and the rest of a cut file is never read past its end. */
static void test_every_length(void **state)
{
    (void)state;
    static const double values[6] = {1, 2, 3, 4, 5, 6};
    unsigned char bytes[512];
    assert_int_equal(shoal_npy_write(file_path("l.npy"), values, SHOAL_FLOAT64, 2, (int64_t[]){2, 3}), SHOAL_OK);
    size_t size = read_whole_file(bytes, sizeof bytes, file_path("l.npy"));
    for (size_t cut = 0; cut < size; cut++) {
        shoal_data *data = NULL;
        assert_int_equal(shoal_data_open(&data, write_file("cut.npy", bytes, cut), NULL), SHOAL_INVALID);
        assert_null(data);
        assert_non_null(strstr(shoal_error(), "cut.npy: "));
        assert_int_equal(count_mappings(), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_open), cmocka_unit_test(test_open_wide_text),
                                       cmocka_unit_test(test_wrap), cmocka_unit_test(test_write),
                                       cmocka_unit_test(test_every_length)};
    return cmocka_run_group_tests_name("data_fault", tests, folder_setup, folder_teardown);
}
