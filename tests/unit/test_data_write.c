/* Writing: every format reads back as it was, headers are numpy's to the byte, and failures leave nothing behind. */
#include "data_support.h"

#include "data/array.h"

#include <math.h>
#include <signal.h>
#include <sys/resource.h>

static void test_npy_header(void **state)
{
    (void)state;
    unsigned char bytes[512];
    static const struct {
        int rank;
        int64_t shape[3];
        const char *text;
    } cases[] = {
        {0, {0}, "()"}, {1, {3}, "(3,)"}, {2, {3, 1}, "(3, 1)"}, {3, {1, 3, 1}, "(1, 3, 1)"}, {2, {0, 5}, "(0, 5)"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char expected[128];
        const char *path = file_path("h.npy");
        assert_int_equal(shoal_npy_write(path, "\1\2\3", SHOAL_UINT8, cases[i].rank, cases[i].shape), SHOAL_OK);
        size_t size = read_whole_file(bytes, sizeof bytes, path);
        int length = sprintf(expected, "{'descr': '|u1', 'fortran_order': False, 'shape': %s, }", cases[i].text);
        assert_memory_equal(bytes, "\x93NUMPY\1\0v\0", 10); /* 10 + 118 = 128 */
        assert_memory_equal(bytes + 10, expected, (size_t)length);
        assert_int_equal(bytes[127], '\n');
        assert_int_equal(size, 128 + (i == 0 ? 1 : i == 4 ? 0 : 3));
    }
}

static void test_npy_refuses(void **state)
{
    (void)state;
    int files = count_files();
    assert_int_equal(shoal_npy_write(file_path("x.npy"), "", SHOAL_UINT8, 1, (int64_t[]){-1}), SHOAL_USAGE);
    assert_int_equal(shoal_npy_write(file_path("x.npy"), "", SHOAL_UINT8, 2, (int64_t[]){INT64_MAX, 9}), SHOAL_USAGE);
    assert_int_equal(shoal_npy_write(file_path("x.npy"), "", SHOAL_UINT8, 65, NULL), SHOAL_USAGE);
    assert_int_equal(shoal_npy_write("/nonexistent/x.npy", "", SHOAL_UINT8, 1, (int64_t[]){0}), SHOAL_SYSTEM);
    assert_non_null(strstr(shoal_error(), "/nonexistent/x.npy"));
    assert_int_equal(count_files(), files);
}

/* Writes, reads back, and compares values; `same_type` says that the type comes back too.  Text of float32 is read as
 * float64, and is the same value once rounded to float32. */
static void round_trip(shoal_data *data, const char *name, bool same_type)
{
    const char *path = file_path(name);
    if (shoal_data_write(data, path) < 0)
        fail_msg("%s", shoal_error());
    shoal_data_options options = {0};
    if (strstr(name, ".raw") || strstr(name, ".bin")) {
        options.columns = shoal_data_columns(data);
        options.type = shoal_type_name(shoal_data_type(data));
    }
    shoal_data *back = open_with(path, &options);
    if (same_type)
        assert_int_equal(shoal_data_type(back), shoal_data_type(data));
    int64_t count = shoal_data_rows(data) * shoal_data_columns(data);
    assert_int_equal(shoal_data_rows(back), shoal_data_rows(data));
    assert_int_equal(shoal_data_columns(back), shoal_data_columns(data));
    double *expected = all_values(data), *values = all_values(back);
    for (int64_t i = 0; i < count; i++) {
        double value = shoal_data_type(data) == SHOAL_FLOAT32 ? (float)values[i] : values[i];
        if (value != expected[i])
            fail_msg("%s: value %lld is %.17g instead of %.17g", name, (long long)i, value, expected[i]);
    }
    free(values);
    free(expected);
    shoal_data_free(&back);
}

static void test_every_format(void **state)
{
    (void)state;
    static const char *const addresses[] = {"gen:uniform?rows=3001&cols=37&low=-1e-3&high=1e6",
                                            "gen:blobs?rows=1001&cols=1&type=float64",
                                            "gen:uniform?rows=501&cols=9&high=256&type=uint8",
                                            "gen:uniform?rows=501&cols=9&low=-9999&high=9999&type=int16",
                                            "gen:uniform?rows=11&cols=1&low=-2e9&high=2e9&type=int32",
                                            "gen:uniform?rows=1&cols=5&low=-100&high=99&type=int8"};
    static const char *const names[] = {"o.npy",    "o.raw", "o.bin", "o.idx",    "o.idx.gz", "o.csv",
                                        "o.csv.gz", "o.tsv", "o.txt", "o.tsv.gz", "o.txt.gz"};
    for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++)
        for (size_t j = 0; j < sizeof names / sizeof *names; j++) {
            shoal_data *data = open_data(addresses[i]);
            round_trip(data, names[j], j < 5);
            shoal_data_free(&data);
        }
}

static void test_other_types(void **state)
{
    (void)state;
    static const uint64_t large[2] = {0, (uint64_t)1 << 60};
    static const unsigned char truths[2] = {0, 1};
    shoal_data *data = NULL;
    assert_int_equal(shoal_data_wrap(&data, large, 1, 2, SHOAL_UINT64), SHOAL_OK);
    round_trip(data, "t.npy", true);
    round_trip(data, "t.csv", false);
    int files = count_files();
    assert_int_equal(shoal_data_write(data, file_path("new.idx")), SHOAL_USAGE);
    assert_non_null(strstr(shoal_error(), "IDX can't hold uint64"));
    assert_int_equal(count_files(), files);
    shoal_data_free(&data);
    assert_int_equal(shoal_data_wrap(&data, truths, 1, 2, SHOAL_BOOL), SHOAL_OK);
    round_trip(data, "t.npy", true);
    round_trip(data, "t.idx", false);
    shoal_data_free(&data);
}

static void test_names_are_kept(void **state)
{
    (void)state;
    static const char *const endings[] = {"n.csv", "n.tsv", "n.txt.gz"};
    shoal_data *data =
        open_data(write_text("names.csv", "#not this\n\"#a\",\"b \"\"c\"\"\",\"d\n,\",,e;f\n1,2,3,4,5\n"));
    for (int i = 0; i < 3; i++) {
        assert_int_equal(shoal_data_write(data, file_path(endings[i])), SHOAL_OK);
        shoal_data *back = open_data(file_path(endings[i]));
        for (int64_t c = 0; c < 5; c++)
            assert_string_equal(shoal_data_column_name(back, c), shoal_data_column_name(data, c));
        EXPECT_VALUES(back, 1, 5, 1, 2, 3, 4, 5);
    }
    shoal_data_free(&data);
}

static void test_text_as_written(void **state)
{
    (void)state;
    static const double values[4] = {0.1, -0.0, NAN, 1e100};
    char text[64];
    shoal_data *data = NULL;
    assert_int_equal(shoal_data_wrap(&data, values, 2, 2, SHOAL_FLOAT64), SHOAL_OK);
    assert_int_equal(shoal_data_write(data, file_path("w.tsv")), SHOAL_OK);
    text[read_whole_file(text, sizeof text - 1, file_path("w.tsv"))] = '\0';
    assert_string_equal(text, "0.1\t-0\nnan\t1e+100\n");
    shoal_data_free(&data);
}

static void test_wrong_names(void **state)
{
    (void)state;
    static const char *const names[] = {"x",        "x.gz",  "x.npy.gz",  "x.raw.gz", "x.bin.gz",
                                        "x.npy.xz", "x.bz2", "x.csv.lz4", "x.jpg",    "npy"};
    shoal_data *data = open_data("gen:uniform?rows=2&cols=2");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        assert_int_equal(shoal_data_write(data, file_path(names[i])), SHOAL_USAGE);
        assert_non_null(strstr(shoal_error(), "the name must end in .npy, .csv,"));
    }
    shoal_data_free(&data);
}

static int write_array(const char *name, const void *values, shoal_type type, int rank, const int64_t *shape)
{
    return data_array_write(file_path(name),
                            &(data_array){.values = values, .type = type, .rank = rank, .shape = shape});
}

static void expect_text(const char *name, const char *expected)
{
    char text[256];
    text[read_whole_file(text, sizeof text - 1, file_path(name))] = '\0';
    assert_string_equal(text, expected);
}

/* Text has the dimensions after the first side by side, as reading folds them; .npy and IDX keep them. */
static void test_arrays(void **state)
{
    (void)state;
    static const int32_t values[] = {1, -2, 3, 4, 5, 6};
    unsigned char bytes[64];
    assert_int_equal(write_array("a.csv", values, SHOAL_INT32, 3, (int64_t[]){2, 1, 3}), SHOAL_OK);
    expect_text("a.csv", "1,-2,3\n4,5,6\n");
    assert_int_equal(write_array("a.txt", values, SHOAL_INT32, 1, (int64_t[]){2}), SHOAL_OK);
    expect_text("a.txt", "1\n-2\n");
    assert_int_equal(write_array("a.tsv", values, SHOAL_INT32, 0, NULL), SHOAL_OK);
    expect_text("a.tsv", "1\n");
    assert_int_equal(write_array("a.csv", values, SHOAL_INT32, 2, (int64_t[]){0, 3}), SHOAL_OK);
    expect_text("a.csv", "");
    assert_int_equal(write_array("a.csv", NULL, SHOAL_INT32, 2, (int64_t[]){3, 0}), SHOAL_OK);
    expect_text("a.csv", "");
    assert_int_equal(write_array("a.idx", values, SHOAL_INT32, 3, (int64_t[]){1, 2, 3}), SHOAL_OK);
    assert_int_equal(read_whole_file(bytes, sizeof bytes, file_path("a.idx")), 4 + 3 * 4 + 6 * 4);
    assert_memory_equal(bytes, "\0\0\x0c\3\0\0\0\1\0\0\0\2\0\0\0\3\0\0\0\1\xff\xff\xff\xfe", 24);
    assert_int_equal(write_array("a.idx", values, SHOAL_INT32, 0, NULL), SHOAL_OK);
    assert_int_equal(read_whole_file(bytes, sizeof bytes, file_path("a.idx")), 4 + 4 + 4);
    assert_int_equal(write_array("a.jpg", values, SHOAL_INT32, 0, NULL), SHOAL_USAGE);
}

/* Codes are written as what they stand for; numpy has words as UCS-4 of one length. */
static void test_words(void **state)
{
    (void)state;
    static const char *const words[] = {"cat", "a \"b\"", "\xc3\xa9\xff"};
    static const double codes[] = {2, 0, 1};
    static const int64_t shape[] = {3};
    data_array array = {codes, SHOAL_FLOAT64, 1, shape, {words, 3}, NULL};
    unsigned char bytes[256];
    assert_int_equal(data_array_write(file_path("w.csv"), &array), SHOAL_OK);
    expect_text("w.csv", "\xc3\xa9\xff\ncat\n\"a \"\"b\"\"\"\n");
    assert_int_equal(data_array_write(file_path("w.npy"), &array), SHOAL_OK);
    assert_int_equal(read_whole_file(bytes, sizeof bytes, file_path("w.npy")), 128 + 3 * 5 * 4);
    assert_non_null(strstr((char *)bytes + 10, "'descr': '<U5', "));
    static const uint32_t letters[] = {0xe9, 0xdcff, 0, 0, 0, 'c', 'a', 't', 0, 0, 'a', ' ', '"', 'b', '"'};
    assert_memory_equal(bytes + 128, letters, sizeof letters);
    int files = count_files();
    assert_int_equal(data_array_write(file_path("w.idx"), &array), SHOAL_USAGE);
    assert_non_null(strstr(shoal_error(), ".idx files hold numbers, but these classes are words"));
    array.words.count = 2;
    assert_int_equal(data_array_write(file_path("v.csv"), &array), SHOAL_INVALID);
    assert_non_null(strstr(shoal_error(), "2 is not the number of one of the 2 classes"));
    assert_int_equal(count_files(), files);
}

/* A data set may be written over the file it is read from. */
static void test_over_itself(void **state)
{
    (void)state;
    shoal_data *data = open_data("gen:uniform?rows=5000&cols=20&high=100&type=uint8");
    assert_int_equal(shoal_data_write(data, file_path("self.npy")), SHOAL_OK);
    double *expected = all_values(data);
    shoal_data_free(&data);
    data = open_data(file_path("self.npy"));
    assert_int_equal(shoal_data_write(data, file_path("self.npy")), SHOAL_OK);
    shoal_data_free(&data);
    expect_values(open_data(file_path("self.npy")), 5000, 20, expected);
    free(expected);
}

/* A limit on the size of files stands in for a full disk. */
static void test_full_disk(void **state)
{
    (void)state;
    static const char *const names[] = {"full.npy", "full.csv", "full.csv.gz", "full.idx", "full.raw"};
    char old[16];
    struct rlimit limit;
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &limit);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        write_text(names[i], "old");
        int files = count_files();
        shoal_data *data = open_data("gen:uniform?rows=20000&cols=20");
        setrlimit(RLIMIT_FSIZE, &(struct rlimit){200000, limit.rlim_max});
        int status = shoal_data_write(data, file_path(names[i]));
        setrlimit(RLIMIT_FSIZE, &limit);
        assert_int_equal(status, SHOAL_SYSTEM);
        assert_non_null(strstr(shoal_error(), names[i]));
        assert_int_equal(count_files(), files);
        assert_int_equal(read_whole_file(old, sizeof old, file_path(names[i])), 3);
        shoal_data_free(&data);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_npy_header),     cmocka_unit_test(test_npy_refuses),
        cmocka_unit_test(test_every_format),   cmocka_unit_test(test_other_types),
        cmocka_unit_test(test_names_are_kept), cmocka_unit_test(test_text_as_written),
        cmocka_unit_test(test_wrong_names),    cmocka_unit_test(test_over_itself),
        cmocka_unit_test(test_full_disk),      cmocka_unit_test(test_arrays),
        cmocka_unit_test(test_words),
    };
    return cmocka_run_group_tests_name("data_write", tests, folder_setup, folder_teardown);
}
