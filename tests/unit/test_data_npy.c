/* .npy files: what numpy may write is read, what it may not is refused with a sentence. */
#include "data_support.h"

#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/data_internal.h"

/* Writes an npy file with the given header text; version 1 unless `version` says otherwise. */
static const char *write_npy(const char *name, int version, const char *header, const void *values, size_t size)
{
    unsigned char bytes[4096] = "\x93NUMPY";
    size_t length = strlen(header), at = 6;
    bytes[at++] = (unsigned char)version;
    bytes[at++] = 0;
    for (int i = 0; i < (version == 1 ? 2 : 4); i++)
        bytes[at++] = (unsigned char)(length >> (8 * i));
    memcpy(bytes + at, header, length);
    at += length;
    assert_true(at + size <= sizeof bytes);
    memcpy(bytes + at, values, size);
    return write_file(name, bytes, at + size);
}

#define HEADER(descr, order, shape) "{'descr': '" descr "', 'fortran_order': " order ", 'shape': " shape ", }"

static const float six[6] = {1, 2, 3, 4, 5, 6};

static void test_versions(void **state)
{
    (void)state;
    for (int version = 1; version <= 3; version++) {
        shoal_data *data = open_data(write_npy("v.npy", version, HEADER("<f4", "False", "(2, 3)"), six, sizeof six));
        assert_string_equal(shoal_data_format(data), "npy");
        assert_int_equal(shoal_data_type(data), SHOAL_FLOAT32);
        assert_true(shoal_data_is_resident(data));
        assert_null(shoal_data_column_name(data, 0));
        EXPECT_VALUES(data, 2, 3, 1, 2, 3, 4, 5, 6);
    }
    refuse(write_npy("v.npy", 4, HEADER("<f4", "False", "(2, 3)"), six, sizeof six), SHOAL_INVALID, "version 4.0");
    refuse(write_npy("v.npy", 0, HEADER("<f4", "False", "(2, 3)"), six, sizeof six), SHOAL_INVALID, "version 0.0");
}

/* float16 becomes float32, whatever the order of bytes and of indices. */
static void test_half(void **state)
{
    (void)state;
    static const uint16_t halves[6] = {0x3c00, 0xc000, 0x0001, 0x7bff, 0xfc00, 0x3555};
    const double values[6] = {1, -2, 0x1p-24, 65504, -INFINITY, 0.333251953125};
    uint16_t swapped[6];
    for (int i = 0; i < 6; i++)
        swapped[i] = (uint16_t)(halves[i] << 8 | halves[i] >> 8);
    for (int gzip = 0; gzip < 2; gzip++)
        for (int big = 0; big < 2; big++)
            for (int fortran = 0; fortran < 2; fortran++) {
                char header[128];
                snprintf(header, sizeof header, HEADER("%cf2", "%s", "(2, 3)"), big ? '>' : '<',
                         fortran ? "True" : "False");
                const char *path = write_npy("h.npy", 1, header, big ? swapped : halves, sizeof halves);
                if (gzip) {
                    unsigned char bytes[512];
                    size_t size = read_whole_file(bytes, sizeof bytes, path);
                    unlink(file_path("h.npy.gz"));
                    path = append_gzip("h.npy.gz", bytes, size);
                }
                shoal_data *data = open_data(path);
                assert_int_equal(shoal_data_type(data), SHOAL_FLOAT32);
                assert_non_null(strstr(shoal_data_detail(data), "float16 read as float32"));
                const double *v = values;
                if (fortran)
                    EXPECT_VALUES(data, 2, 3, v[0], v[2], v[4], v[1], v[3], v[5]);
                else
                    EXPECT_VALUES(data, 2, 3, v[0], v[1], v[2], v[3], v[4], v[5]);
            }
    refuse(write_npy("h.npy", 1, HEADER("<f2", "False", "(2, 3)"), halves, 11), SHOAL_INVALID,
           "take 12 bytes, but the file holds 11");
    refuse(write_npy("h.npy", 1, HEADER("|f2", "False", "(2, 3)"), halves, 12), SHOAL_INVALID, "'|f2'");
}

static void test_aligned_values_are_mapped(void **state)
{
    (void)state;
    char header[119] = HEADER("<f4", "False", "(2, 3)");
    memset(header + strlen(header), ' ', 118 - strlen(header));
    header[118] = '\0'; /* 10 + 118 bytes: values at a multiple of 64 */
    shoal_data *data = open_data(write_npy("a.npy", 1, header, six, sizeof six));
    assert_string_equal(shoal_data_detail(data), "npy version 1.0, C order, little-endian, mapped");
    EXPECT_VALUES(data, 2, 3, 1, 2, 3, 4, 5, 6);
    header[117] = '\0'; /* one less, and float32 would lie at an odd address */
    data = open_data(write_npy("a.npy", 1, header, six, sizeof six));
    assert_non_null(strstr(shoal_data_detail(data), "decoded into memory"));
    assert_int_equal((uintptr_t)data->values % 4, 0);
    EXPECT_VALUES(data, 2, 3, 1, 2, 3, 4, 5, 6);
}

/* 10 + 118 bytes, so that the values are mapped, and many pages of them. */
static shoal_data *open_pages(const char **path)
{
    static const char text[] = HEADER("<f4", "False", "(10000, 4)");
    static unsigned char bytes[128 + 160000] = "\x93NUMPY\1\0\x76";
    memset(bytes + 10, ' ', 118);
    memcpy(bytes + 10, text, sizeof text - 1);
    *path = write_file("pages.npy", bytes, sizeof bytes);
    return open_data(*path);
}

static void expect_lost(int status, const char *words)
{
    assert_int_equal(status, SHOAL_INVALID);
    assert_non_null(strstr(shoal_error(), words));
}

static double sum_of(const void *values, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += ((const volatile float *)values)[i];
    return sum;
}

static void test_a_file_that_shrinks_is_told(void **state)
{
    (void)state;
    const off_t sizes[] = {0, 5000, 128 + 160000 - 4}; /* the last within the last page: no signal comes */
    for (int i = 0; i < 3; i++) {
        const char *path = NULL;
        const void *rows = NULL;
        shoal_data *data = open_pages(&path);
        assert_int_equal(shoal_data_check(data), SHOAL_OK);
        assert_int_equal(shoal_data_read(&rows, data, 0, 10000, NULL), SHOAL_OK);
        assert_int_equal(truncate(path, sizes[i]), 0);
        assert_true(sum_of(rows, 40000) == 0);
        expect_lost(shoal_data_check(data), "pages.npy: the file shrank from 160128 to ");
        if (i < 2)
            expect_lost(shoal_data_read(&rows, data, 0, 1, NULL), "shrank");
        expect_lost(shoal_data_write(data, file_path("copy.npy")), "shrank");
        assert_int_equal(access(file_path("copy.npy"), F_OK), -1);
        shoal_data_free(&data);
    }
}

/* As after an error of the disk: the size says nothing, and the rows were zeros all the same. */
static void test_a_file_that_was_gone_for_a_while_is_told(void **state)
{
    (void)state;
    const char *path = NULL;
    const void *rows = NULL;
    shoal_data *data = open_pages(&path);
    assert_int_equal(shoal_data_read(&rows, data, 0, 10000, NULL), SHOAL_OK);
    assert_int_equal(truncate(path, 0), 0);
    assert_true(sum_of(rows, 40000) == 0);
    assert_int_equal(truncate(path, 160128), 0);
    expect_lost(shoal_data_check(data), "pages.npy: the file could not be read any more");
    shoal_data_free(&data);
}

static void test_types(void **state)
{
    (void)state;
    static const struct {
        const char *descr, *bytes;
        shoal_type type;
        double value;
    } cases[] = {
        {"|i1", "\xff", SHOAL_INT8, -1},
        {"<i2", "\xfe\xff", SHOAL_INT16, -2},
        {">i2", "\xff\xfe", SHOAL_INT16, -2},
        {"<i4", "\x01\x02\x00\x00", SHOAL_INT32, 513},
        {">i4", "\x00\x00\x02\x01", SHOAL_INT32, 513},
        {"<i8", "\xff\xff\xff\xff\xff\xff\xff\xff", SHOAL_INT64, -1},
        {"|u1", "\xff", SHOAL_UINT8, 255},
        {">u1", "\x07", SHOAL_UINT8, 7},
        {"<u2", "\xff\xff", SHOAL_UINT16, 65535},
        {">u4", "\xff\xff\xff\xff", SHOAL_UINT32, 4294967295.0},
        {"<u8", "\xff\xff\xff\xff\xff\xff\xff\xff", SHOAL_UINT64, 18446744073709551616.0},
        {"|b1", "\x01", SHOAL_BOOL, 1},
        {"|b1", "\x05", SHOAL_BOOL, 1},
        {"<f4", "\x00\x00\x80\x3f", SHOAL_FLOAT32, 1},
        {">f4", "\x3f\x80\x00\x00", SHOAL_FLOAT32, 1},
        {"=f8", "\x00\x00\x00\x00\x00\x00\xf0\x3f", SHOAL_FLOAT64, 1},
        {">f8", "\x3f\xf0\x00\x00\x00\x00\x00\x00", SHOAL_FLOAT64, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char header[128];
        snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': (1,), }", cases[i].descr);
        shoal_data *data = open_data(write_npy("t.npy", 1, header, cases[i].bytes, shoal_type_size(cases[i].type)));
        assert_int_equal(shoal_data_type(data), cases[i].type);
        EXPECT_VALUES(data, 1, 1, cases[i].value);
    }
}

static void test_fortran_order(void **state)
{
    (void)state;
    EXPECT_VALUES(open_data(write_npy("f.npy", 1, HEADER("<f4", "True", "(2, 3)"), six, sizeof six)), 2, 3, 1, 3, 5, 2,
                  4, 6);
    EXPECT_VALUES(open_data(write_npy("f.npy", 1, HEADER("<f4", "True", "(6,)"), six, sizeof six)), 6, 1, 1, 2, 3, 4, 5,
                  6);
    EXPECT_VALUES(open_data(write_npy("f.npy", 1, HEADER("<f4", "True", "(1, 6)"), six, sizeof six)), 1, 6, 1, 2, 3, 4,
                  5, 6);
    /* Element (i, j, k) of shape (1, 2, 3) lies at i + j + 2k, and becomes column 3j + k. */
    EXPECT_VALUES(open_data(write_npy("f.npy", 1, HEADER("<f4", "True", "(1, 2, 3)"), six, sizeof six)), 1, 6, 1, 3, 5,
                  2, 4, 6);
}

/* More than one block of the transposition, for each size of value. */
static void test_fortran_large(void **state)
{
    (void)state;
    enum { ROWS = 150, COLUMNS = 131 };
    static const char *const descrs[] = {"|u1", "<i2", "<i4", "<i8"};
    for (int s = 0; s < 4; s++) {
        size_t size = (size_t)1 << s, total = 128 + ROWS * COLUMNS * size;
        unsigned char *bytes = calloc(total, 1);
        int length = sprintf((char *)bytes + 10, "{'descr': '%s', 'fortran_order': True, 'shape': (%d, %d)}", descrs[s],
                             ROWS, COLUMNS);
        memset(bytes + 10 + length, ' ', (size_t)(118 - length));
        memcpy(bytes, "\x93NUMPY\x01\0v\0", 10);
        for (int i = 0; i < ROWS * COLUMNS; i++)
            bytes[128 + (size_t)i * size] = (unsigned char)(i % ROWS * 3 + i / ROWS * 7);
        shoal_data *data = open_data(write_file("l.npy", bytes, total));
        double *values = all_values(data);
        for (int row = 0; row < ROWS; row++)
            for (int column = 0; column < COLUMNS; column++)
                assert_true(values[row * COLUMNS + column] == (unsigned char)(row * 3 + column * 7));
        free(values);
        free(bytes);
        shoal_data_free(&data);
    }
}

static void test_shapes(void **state)
{
    (void)state;
    EXPECT_VALUES(open_data(write_npy("s.npy", 1, HEADER("<f4", "False", "(6,)"), six, sizeof six)), 6, 1, 1, 2, 3, 4,
                  5, 6);
    EXPECT_VALUES(open_data(write_npy("s.npy", 1, HEADER("<f4", "False", "(1L, 2L, 3L)"), six, sizeof six)), 1, 6, 1, 2,
                  3, 4, 5, 6);
    refuse(write_npy("s.npy", 1, HEADER("<f4", "False", "()"), six, 4), SHOAL_INVALID, "single number");
    refuse(write_npy("s.npy", 1, HEADER("<f4", "False", "(0, 3)"), six, 0), SHOAL_INVALID, "no rows");
    refuse(write_npy("s.npy", 1, HEADER("<f4", "False", "(3, 0)"), six, 0), SHOAL_INVALID, "no columns");
    refuse(write_npy("s.npy", 1, HEADER("<f4", "False", "(-2, 3)"), six, sizeof six), SHOAL_INVALID, "negative");
    refuse(write_npy("s.npy", 1, HEADER("<f4", "False", "(99999999999999999999, 1)"), six, sizeof six), SHOAL_INVALID,
           "more than 64 bits");
    refuse(write_npy("s.npy", 1, HEADER("<f4", "False", "(1, 4294967296, 4294967296)"), six, sizeof six), SHOAL_INVALID,
           "more than 64 bits");
    refuse(write_npy("s.npy", 1, HEADER("<f4", "False", "(4294967296, 2147483648)"), six, sizeof six), SHOAL_INVALID,
           "63 bits");
}

static void test_sizes_must_agree(void **state)
{
    (void)state;
    const char *header = HEADER("<f4", "False", "(2, 3)");
    refuse(write_npy("z.npy", 1, header, six, 23), SHOAL_INVALID, "take 24 bytes, but the file holds 23");
    refuse(write_npy("z.npy", 1, header, six, 0), SHOAL_INVALID, "take 24 bytes, but the file holds 0");
    refuse(write_npy("z.npy", 1, HEADER("<f4", "False", "(1, 3)"), six, sizeof six), SHOAL_INVALID,
           "take 12 bytes, but the file holds 24");
    refuse(write_npy("z.npy", 1, HEADER("<f4", "False", "(1000000000000, 3)"), six, sizeof six), SHOAL_INVALID,
           "take 12000000000000 bytes, but the file holds 24");
}

static void test_damaged_headers(void **state)
{
    (void)state;
    static const char *const headers[] = {
        "",
        "{",
        "}",
        "{}",
        "{'descr': '<f4', 'fortran_order': False}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2 3)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (6)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': [2, 3]}",
        "{'descr': '<f4', 'fortran_order': false, 'shape': (2, 3)}",
        "{'descr': '<f4' 'fortran_order': False, 'shape': (2, 3)}",
        "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), 'more': 1}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)} x",
        "{'descr': '<f4",
        "{'descr': 4, 'fortran_order': False, 'shape': (2, 3)}",
        "{'descr': '\\x3cf4', 'fortran_order': False, 'shape': (2, 3)}",
    };
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
        refuse(write_npy("d.npy", 1, headers[i], six, sizeof six), SHOAL_INVALID, "header");
    refuse(write_text("d.npy", "\x93NUMPY"), SHOAL_INVALID, "ends inside its npy header");
    refuse(write_text("d.npy", "\x93NUMPY\x01"), SHOAL_INVALID, "ends inside its npy header");
    refuse(write_file("d.npy", "\x93NUMPY\x02\0\xff\xff\xff\xff{", 13), SHOAL_INVALID, "more than any array needs");
    refuse(write_file("d.npy", "\x93NUMPY\x01\0\xff\xff{", 11), SHOAL_INVALID, "ends inside its npy header");
}

static void test_types_that_are_no_numbers(void **state)
{
    (void)state;
    refuse(write_npy("o.npy", 1, HEADER("|O", "False", "(1,)"), six, 8), SHOAL_INVALID, "Python objects");
    refuse(write_npy("o.npy", 1, HEADER("|O8", "False", "(1,)"), six, 8), SHOAL_INVALID, "Python objects");
    refuse(write_npy("o.npy", 1, HEADER("<c8", "False", "(1,)"), six, 8), SHOAL_INVALID, "complex");
    refuse(write_npy("o.npy", 1, HEADER("|S8", "False", "(1,)"), six, 8), SHOAL_INVALID, "text");
    refuse(write_npy("o.npy", 1, HEADER("<U2", "False", "(1,)"), six, 8), SHOAL_INVALID, "text");
    refuse(write_npy("o.npy", 1, HEADER("<M8[ns]", "False", "(1,)"), six, 8), SHOAL_INVALID, "dates");
    refuse(write_npy("o.npy", 1, HEADER("<f16", "False", "(1,)"), six, 16), SHOAL_INVALID, "'<f16'");
    refuse(write_npy("o.npy", 1, HEADER("|f4", "False", "(2,)"), six, 8), SHOAL_INVALID, "'|f4'");
    refuse(write_npy("o.npy", 1, "{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (1,), }", six, 4),
           SHOAL_INVALID, "records");
}

static void test_options_that_do_not_fit(void **state)
{
    (void)state;
    const char *path = write_npy("p.npy", 1, HEADER("<f4", "False", "(2, 3)"), six, sizeof six);
    refuse_with(path, &(shoal_data_options){.columns = 3, .type = "f4"}, SHOAL_USAGE, "this is npy");
    refuse_with(path, &(shoal_data_options){.header = SHOAL_HEADER_YES}, SHOAL_USAGE, "--header is for text files");
    refuse_with(path, &(shoal_data_options){.keep_columns = "x"}, SHOAL_USAGE,
                "--columns: there is no column \"x\"; there are 3 columns, without names");
}

static void test_gzip_and_temporary_file(void **state)
{
    (void)state;
    unsigned char bytes[256];
    size_t size =
        read_whole_file(bytes, sizeof bytes,
                        write_npy("g.npy", 1, HEADER(">f4", "True", "(2, 3)"),
                                  "\x3f\x80\0\0\x40\0\0\0\x40\x40\0\0\x40\x80\0\0\x40\xa0\0\0\x40\xc0\0", 24));
    shoal_data *data = open_data(append_gzip("g.npy.gz", bytes, size));
    assert_string_equal(shoal_data_detail(data),
                        "npy version 1.0, Fortran order, big-endian, gzip, decoded into memory");
    EXPECT_VALUES(data, 2, 3, 1, 3, 5, 2, 4, 6);
    data = open_with(file_path("g.npy.gz"), &(shoal_data_options){.memory = 1});
    assert_non_null(strstr(shoal_data_detail(data), "temporary file"));
    EXPECT_VALUES(data, 2, 3, 1, 3, 5, 2, 4, 6);
    append_gzip("g.npy.gz", "x", 1);
    refuse(file_path("g.npy.gz"), SHOAL_INVALID, "take 24 bytes, but the file holds 25 or more");
}

/* As arrays come one after another in a stream: what was written is read back, also byte by byte. */
static void test_headers_of_a_stream(void **state)
{
    static const int64_t shape[4] = {7, 0, 3, INT64_MAX};
    (void)state;
    for (int rank = 0; rank <= 4; rank++) {
        char text[DATA_NPY_HEADER_ROOM + 8];
        data_npy_header header;
        size_t size = data_npy_header_write(text, SHOAL_INT16, rank, shape);
        assert_int_equal(size % 64, 0);
        size_t needed = 0;
        for (size_t have = 0; have < size; have++) {
            needed = data_npy_header_next((const unsigned char *)text, have);
            assert_true(needed > have && needed <= size);
        }
        assert_int_equal(needed, size);
        memset(text + size, 'x', 8); /* what follows does not matter */
        assert_int_equal(data_npy_header_next((const unsigned char *)text, size + 8), size);
        assert_int_equal(data_npy_parse(&header, text, size, "an array"), SHOAL_OK);
        assert_int_equal(header.type, SHOAL_INT16);
        assert_int_equal(header.rank, rank);
        assert_false(header.fortran || header.swapped);
        for (int i = 0; i < rank; i++)
            assert_int_equal(header.shape[i], shape[i]);
        assert_int_equal(data_npy_parse(&header, text, size - 1, "an array"), SHOAL_INVALID);
        assert_non_null(strstr(shoal_error(), "an array: "));
    }
    const unsigned char second[12] = "\x93NUMPY\x02\x00\x10\x00\x01\x00", other[] = "\x93NUMPX";
    assert_int_equal(data_npy_header_next(second, 7), 12);
    assert_int_equal(data_npy_header_next(second, 12), 12 + 0x10010);
    assert_int_equal(data_npy_header_next(other, 5), 10);
    assert_int_equal(data_npy_header_next(other, 6), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_versions),
        cmocka_unit_test(test_half),
        cmocka_unit_test(test_aligned_values_are_mapped),
        cmocka_unit_test(test_a_file_that_shrinks_is_told),
        cmocka_unit_test(test_a_file_that_was_gone_for_a_while_is_told),
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_fortran_order),
        cmocka_unit_test(test_fortran_large),
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_sizes_must_agree),
        cmocka_unit_test(test_damaged_headers),
        cmocka_unit_test(test_types_that_are_no_numbers),
        cmocka_unit_test(test_options_that_do_not_fit),
        cmocka_unit_test(test_gzip_and_temporary_file),
        cmocka_unit_test(test_headers_of_a_stream),
    };
    return cmocka_run_group_tests_name("data_npy", tests, folder_setup, folder_teardown);
}
