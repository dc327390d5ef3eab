/* .npz files: stored and deflated members, where they lie and how they are kept, and every lie of a zip directory. */
#include "zip_support.h"

#include <math.h>

static const float six[6] = {1, 2, 3, 4, 5, 6};
static const double three[3] = {7, 8, 9};

static const char *write_zip(const char *name, const zip_file *zip)
{
    return write_file(name, zip->bytes, zip->size);
}

/* x: 2x3 float32, y: 3 float64. */
static void make_two(zip_file *zip, bool deflated, bool wide, size_t extra)
{
    unsigned char npy[512];
    *zip = (zip_file){.wide = wide};
    size_t size = make_npy(npy, "<f4", "False", "(2, 3)", six, sizeof six);
    zip_add(zip, "x.npy", npy, size, deflated, extra);
    size = make_npy(npy, "<f8", "False", "(3,)", three, sizeof three);
    zip_add(zip, "y.npy", npy, size, deflated, 0);
    zip_finish(zip, "");
}

static void make_one(zip_file *zip, const char *name, const char *descr, const char *shape, const void *values,
                     size_t bytes)
{
    unsigned char npy[512];
    *zip = (zip_file){0};
    zip_add(zip, name, npy, make_npy(npy, descr, "False", shape, values, bytes), false, 0);
    zip_finish(zip, "");
}

static const char *address_of(const char *path, const char *name)
{
    static char address[600];
    snprintf(address, sizeof address, "%s:%s", path, name);
    return address;
}

static void test_members(void **state)
{
    (void)state;
    static zip_file zip;
    for (int deflated = 0; deflated < 2; deflated++)
        for (int wide = 0; wide < 2; wide++) {
            make_two(&zip, deflated, wide, 29); /* 30 + 5 + 29: x is aligned */
            const char *path = write_zip("two.npz", &zip);
            shoal_data *data = open_data(address_of(path, "x"));
            assert_string_equal(shoal_data_format(data), "npz");
            assert_string_equal(shoal_data_detail(data),
                                deflated ? "npz, x, deflated, C order, little-endian, decoded into memory"
                                         : "npz, x, C order, little-endian, mapped");
            EXPECT_VALUES(data, 2, 3, 1, 2, 3, 4, 5, 6);
            EXPECT_VALUES(open_data(address_of(path, "y")), 3, 1, 7, 8, 9);
            refuse(path, SHOAL_USAGE, "holds 2 arrays: x 2x3 float32, y 3 float64; name one, as in");
            refuse(address_of(path, "z"), SHOAL_USAGE, "has no array \"z\"");
        }
    make_two(&zip, false, false, 28); /* off by one */
    shoal_data *data = open_data(address_of(write_zip("two.npz", &zip), "x"));
    assert_string_equal(shoal_data_detail(data), "npz, x, C order, little-endian, decoded into memory");
    assert_int_equal((uintptr_t)data->values % 4, 0);
    EXPECT_VALUES(data, 2, 3, 1, 2, 3, 4, 5, 6);
}

/* The only array needs no name; a comment, which may hold what looks like an end, and bytes that are no array do not
 * matter. */
static void test_one(void **state)
{
    (void)state;
    static zip_file zip;
    static const uint16_t halves[3] = {0x3c, 0xc0, 1 << 8};
    unsigned char npy[512];
    zip = (zip_file){0};
    zip_add(&zip, "readme.txt", "hello", 5, false, 0);
    zip_add(&zip, "h.npy", npy, make_npy(npy, ">f2", "False", "(3,)", halves, sizeof halves), false, 0);
    zip_finish(&zip, "PK\5\6 a comment that is longer than an end record");
    shoal_data *data = open_data(write_zip("one.npz", &zip));
    assert_non_null(strstr(shoal_data_detail(data), "big-endian, float16 read as float32"));
    EXPECT_VALUES(data, 3, 1, 1, -2, 0x1p-24);
    zip = (zip_file){0};
    zip_add(&zip, "f.npy", npy, make_npy(npy, "<f4", "True", "(2, 3)", six, sizeof six), false, 0);
    zip_finish(&zip, "");
    EXPECT_VALUES(open_data(write_zip("one.npz", &zip)), 2, 3, 1, 3, 5, 2, 4, 6);
}

static void test_what_is_no_rows(void **state)
{
    (void)state;
    static zip_file zip;
    make_one(&zip, "o.npy", "|O", "(1,)", "x", 1);
    refuse(write_zip("o.npz", &zip), SHOAL_INVALID, "holds no array of numbers: only o Python objects");
    make_one(&zip, "t.npy", "<U1", "(1,)", "x\0\0", 4);
    refuse(address_of(write_zip("t.npz", &zip), "t"), SHOAL_INVALID, "t is text, not rows of numbers");
    make_one(&zip, "s.npy", "<f4", "()", six, 4);
    refuse(address_of(write_zip("s.npz", &zip), "s"), SHOAL_INVALID, "s is a single value, not rows of numbers");
    make_one(&zip, "e.npy", "<f4", "(0, 3)", six, 0);
    refuse(write_zip("e.npz", &zip), SHOAL_INVALID, "there are no rows");
    make_one(&zip, "b.npy", "<f4", "(2, 3)", six, 23);
    refuse(write_zip("b.npz", &zip), SHOAL_INVALID, "take 24 bytes, but the file holds 23");
    make_one(&zip, "n.txt", "<f4", "(2, 3)", six, 24);
    refuse(write_zip("n.npz", &zip), SHOAL_INVALID, "is a zip file without an .npy array in it");
    zip = (zip_file){0};
    zip_add(&zip, "a.npy", "nothing", 7, false, 0);
    zip_finish(&zip, "");
    refuse(write_zip("d.npz", &zip), SHOAL_INVALID, "only a something damaged");
    zip = (zip_file){0};
    zip_finish(&zip, "");
    refuse(write_zip("none.npz", &zip), SHOAL_INVALID, "is a zip file without an .npy array in it");
}

static void test_sparse(void **state)
{
    (void)state;
    static zip_file zip;
    unsigned char npy[512];
    static const char *const names[] = {"indices.npy", "indptr.npy", "format.npy", "shape.npy", "data.npy"};
    zip = (zip_file){0};
    for (int i = 0; i < 5; i++)
        zip_add(&zip, names[i], npy, make_npy(npy, "<f8", "False", "(3,)", three, sizeof three), true, 0);
    zip_finish(&zip, "");
    const char *path = write_zip("sparse.npz", &zip);
    refuse(path, SHOAL_INVALID, "is a sparse matrix of scipy, and sparse rows are not supported; in Python: ");
    EXPECT_VALUES(open_data(address_of(path, "data")), 3, 1, 7, 8, 9);
}

/* ---- lies -------------------------------------------------------------------------------------------------------- */

static void set(zip_file *zip, size_t at, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        zip->bytes[at + (size_t)i] = (unsigned char)(value >> (8 * i));
}

static void test_lies(void **state)
{
    (void)state;
    static zip_file zip;
    enum { LOCAL, ENTRY, END, END64, LOCATOR };
    static const struct {
        bool wide;
        int part;
        size_t at;
        uint64_t value;
        int bytes;
        const char *says;
    } lies[] = {
        {false, ENTRY, 8, 1, 2, "only x encrypted, y float64"},
        {false, ENTRY, 10, 12, 2, "something damaged"},
        {false, ENTRY, 20, 1 << 30, 4, "something damaged"},
        {false, ENTRY, 24, 5, 4, "something damaged"},
        {false, ENTRY, 42, UINT32_MAX - 1, 4, "something damaged"},
        {false, ENTRY, 42, 1, 4, "something damaged"},
        {false, ENTRY, 28, 60000, 2, "its directory is malformed"},
        {false, ENTRY, 0, 0, 4, "its directory is malformed"},
        {false, LOCAL, 8, 8, 2, "something damaged"},
        {false, LOCAL, 26, 6, 2, "something damaged"},
        {false, LOCAL, 28, 60000, 2, "something damaged"},
        {false, LOCAL, 30, 'z', 1, "something damaged"},
        {false, END, 0, 0, 1, "its end record is missing"},
        {false, END, 20, 1, 2, "its end record is missing"},
        {false, END, 4, 1, 2, "in several parts"},
        {false, END, 8, 1, 2, "in several parts"},
        {false, END, 8, 0x10001, 4, "its directory is malformed"},
        {false, END, 10, 1000, 2, "in several parts"},
        {false, END, 12, 1 << 30, 4, "lies outside"},
        {false, END, 16, UINT32_MAX - 5, 4, "lies outside"},
        {true, END64, 0, 0, 4, "its end record of 64 bits is none"},
        {true, END64, 16, 1, 4, "its end record of 64 bits is none"},
        {true, END64, 32, 3, 8, "its end record of 64 bits is none"},
        {true, END64, 40, UINT64_MAX, 8, "lies outside"},
        {true, END64, 48, UINT64_MAX, 8, "lies outside"},
        {true, LOCATOR, 8, UINT64_MAX, 8, "it ends before its directory does"},
        {true, LOCATOR, 8, 5, 8, "its end record of 64 bits is none"},
        {true, ENTRY, 46 + 5 + 2, 60000, 2, "its directory is malformed"},
        {true, ENTRY, 46 + 5 + 7 + 2, 4, 2, "its directory is malformed"},
        {true, ENTRY, 46 + 5 + 7 + 4, UINT64_MAX, 8, "something damaged"},
        {true, ENTRY, 46 + 5 + 7 + 12, UINT64_MAX, 8, "something damaged"},
        {true, ENTRY, 46 + 5 + 7 + 20, UINT64_MAX, 8, "something damaged"},
    };
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        make_two(&zip, false, lies[i].wide, 0);
        const size_t parts[] = {zip.local[0], zip.entry[0], zip.end, zip.end - 76, zip.end - 20};
        set(&zip, parts[lies[i].part] + lies[i].at, lies[i].value, lies[i].bytes);
        if (lies[i].part == ENTRY && lies[i].at == 8)
            set(&zip, zip.entry[1] + 10, 99, 2); /* so that no array is left */
        const char *path = write_zip("lie.npz", &zip);
        data_members members = {0};
        int status = data_members_find(&members, path);
        if (status == SHOAL_OK) { /* one array is left, and that it is not this one is said by its name */
            assert_int_equal(members.count, 2);
            assert_false(members.member[0].has_rows);
            data_members_release(&members);
            if (lies[i].part == ENTRY && lies[i].at == 8)
                continue;
            refuse(address_of(path, "x"), SHOAL_INVALID, lies[i].says);
        } else {
            data_members_release(&members);
            refuse(path, SHOAL_INVALID, lies[i].says);
        }
    }
    make_two(&zip, false, false, 0);
    set(&zip, zip.local[1], 0, 4);
    refuse(address_of(write_zip("lie.npz", &zip), "y"), SHOAL_INVALID, "y is something damaged");
    make_two(&zip, false, false, 0); /* more entries than the directory has room for */
    set(&zip, zip.end + 8, 50, 2);
    set(&zip, zip.end + 10, 50, 2);
    refuse(write_zip("lie.npz", &zip), SHOAL_INVALID, "more members than its directory has room for");
    make_one(&zip, "x.npy", "<f4", "(2, 3)", six, sizeof six);
    memcpy(zip.bytes + zip.local[0] + 30, "y", 1);
    refuse(write_zip("lie.npz", &zip), SHOAL_INVALID, "something damaged");
    refuse("/dev/null:x", SHOAL_SYSTEM, "can't read");
}

/* Entries that share the bytes of one member: each would be read anew. */
static void test_overlap(void **state)
{
    (void)state;
    static zip_file zip;
    make_one(&zip, "x.npy", "<f4", "(2, 3)", six, sizeof six);
    zip.size = zip.directory;
    zip.member[1] = zip.member[0];
    zip.local[1] = zip.local[0];
    zip_finish(&zip, "");
    EXPECT_VALUES(open_data(write_zip("overlap.npz", &zip)), 2, 3, 1, 2, 3, 4, 5, 6);
    zip.size = zip.directory;
    zip.count = 2;
    zip_finish(&zip, "");
    refuse(write_zip("overlap.npz", &zip), SHOAL_INVALID, "its members overlap");
}

/* A change of any one byte is refused, or changes no value: what is not covered by a checksum is not believed. */
static void test_every_byte(void **state)
{
    (void)state;
    static zip_file zip;
    int same = 0, refused = 0;
    for (int kind = 0; kind < 4; kind++) {
        make_two(&zip, kind & 1, kind >> 1, 29);
        for (size_t at = 0; at < zip.size; at++)
            for (int way = 0; way < 3; way++) {
                static const unsigned char masks[] = {0x01, 0x80, 0xff};
                zip.bytes[at] ^= masks[way];
                shoal_data *data = NULL;
                if (shoal_data_open(&data, address_of(write_zip("byte.npz", &zip), "x"), NULL) == SHOAL_OK) {
                    EXPECT_VALUES(data, 2, 3, 1, 2, 3, 4, 5, 6);
                    same++;
                } else {
                    assert_null(data);
                    assert_non_null(strstr(shoal_error(), "byte.npz"));
                    refused++;
                }
                zip.bytes[at] ^= masks[way];
            }
    }
    assert_true(same > 100 && refused > 1000);
}

static void test_every_length(void **state)
{
    (void)state;
    static zip_file zip;
    make_two(&zip, false, false, 0);
    for (size_t cut = 4; cut < zip.size; cut++)
        refuse(write_file("cut.npz", zip.bytes, cut), SHOAL_INVALID, "the zip file is cut off or damaged");
}

static void test_not_plain(void **state)
{
    (void)state;
    static zip_file zip;
    make_one(&zip, "x.npy", "<f4", "(2, 3)", six, sizeof six);
    refuse(append_gzip("x.npz.gz", zip.bytes, zip.size), SHOAL_INVALID, "it is read from a plain file");
}

/* More than one piece of the checksum, mapped, read and deflated; a wrong value far inside is noticed. */
static void test_large(void **state)
{
    (void)state;
    enum { VALUES = 2200000 };
    static unsigned char bytes[128 + 4 * VALUES + 512];
    static zip_file zip;
    float *values = malloc(4 * (size_t)VALUES);
    char shape[32];
    for (int i = 0; i < VALUES; i++)
        values[i] = (float)i;
    for (size_t extra = 28; extra < 30; extra++) {
        zip = (zip_file){0};
        snprintf(shape, sizeof shape, "(%d, 4)", VALUES / 4);
        size_t size = 64 - 29 + extra;
        unsigned char *member = bytes + size;
        size += make_npy(member, "<f4", "False", shape, values, 4 * (size_t)VALUES);
        zip_add(&zip, "x.npy", "", 0, false, extra);
        zip.member[0].size = zip.member[0].packed = 128 + 4 * (size_t)VALUES;
        zip.member[0].crc = (uint32_t)crc32(0, member, 128 + 4 * VALUES);
        memcpy(bytes, zip.bytes, zip.size);
        assert_int_equal(zip.size, 30 + 5 + extra);
        zip.size = 0;
        zip.local[0] = 0;
        zip_finish(&zip, "");
        set(&zip, zip.end + 16, size, 4);
        memcpy(bytes + size, zip.bytes, zip.size);
        const char *path = write_file("large.npz", bytes, size + zip.size);
        shoal_data *data = open_data(path);
        assert_non_null(strstr(shoal_data_detail(data), extra == 29 ? "mapped" : "decoded into memory"));
        assert_memory_equal(data->values, values, 4 * (size_t)VALUES);
        shoal_data_free(&data);
        bytes[size - 4000001] ^= 1;
        refuse(write_file("large.npz", bytes, size + zip.size), SHOAL_INVALID, "it is damaged: the checksum");
    }
    free(values);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_members),      cmocka_unit_test(test_one),       cmocka_unit_test(test_what_is_no_rows),
        cmocka_unit_test(test_sparse),       cmocka_unit_test(test_lies),      cmocka_unit_test(test_every_byte),
        cmocka_unit_test(test_every_length), cmocka_unit_test(test_not_plain), cmocka_unit_test(test_large),
        cmocka_unit_test(test_overlap)};
    return cmocka_run_group_tests_name("data_npz", tests, folder_setup, folder_teardown);
}
