/* MATLAB files of versions 5 to 7: classes, stored types, byte orders, compressed and not, and every lie. */
#include "data_support.h"

enum { ROOM = 1 << 14 };
enum {
    CELL = 1,
    STRUCT,
    OBJECT,
    TEXT,
    SPARSE,
    DOUBLE,
    SINGLE,
    INT8,
    UINT8,
    INT16,
    UINT16,
    INT32,
    UINT32,
    INT64,
    UINT64
};
enum { MI_INT8 = 1, MI_UINT8, MI_INT16, MI_UINT16, MI_INT32, MI_UINT32, MI_SINGLE, MI_DOUBLE = 9, MI_INT64 = 12 };

typedef struct mat_file {
    unsigned char bytes[ROOM];
    size_t size;
    bool is_big;
} mat_file;

static void put(mat_file *file, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        file->bytes[file->size++] = (unsigned char)(value >> 8 * (file->is_big ? bytes - 1 - i : i));
}

static void start(mat_file *file, bool is_big)
{
    *file = (mat_file){.is_big = is_big, .size = 124};
    memset(file->bytes, ' ', 116);
    memcpy(file->bytes, "MATLAB 5.0 MAT-file, by a test", 30);
    put(file, 0x0100, 2);
    put(file, 'M' << 8 | 'I', 2);
}

/* Values are given as numbers, and stored as integers of `size` bytes, or floats of 4 or 8. */
static void put_value(mat_file *file, int type, double value)
{
    const float single = (float)value;
    uint64_t bits = (uint64_t)(int64_t)value;
    uint32_t bits32;
    memcpy(&bits32, &single, sizeof bits32);
    switch (type) {
    case MI_INT8:
    case MI_UINT8: put(file, bits, 1); break;
    case MI_INT16:
    case MI_UINT16: put(file, bits, 2); break;
    case MI_INT32:
    case MI_UINT32: put(file, bits, 4); break;
    case MI_SINGLE: put(file, bits32, 4); break;
    case MI_DOUBLE: memcpy(&bits, &value, sizeof bits); /* fallthrough */
    default: put(file, bits, 8);
    }
}

static size_t type_size(int type)
{
    static const size_t sizes[] = {0, 1, 1, 2, 2, 4, 4, 4, 0, 8, 0, 0, 8, 8};
    return sizes[type];
}

/* The tag of an element, in its short form where it fits; put_padding ends it. */
static void put_tag(mat_file *file, int type, size_t bytes)
{
    if (bytes <= 4 && bytes > 0) {
        put(file, (uint64_t)bytes << 16 | (uint64_t)type, 4);
    } else {
        put(file, (uint64_t)type, 4);
        put(file, bytes, 4);
    }
}

static void put_padding(mat_file *file, size_t from)
{
    while ((file->size - from) % 8)
        put(file, 0, 1);
}

/* Adds a variable of 2 x 3, or x 2: values in the order of the file. */
static size_t add(mat_file *file, const char *name, uint32_t class, int type, int rank, const double *values)
{
    const size_t place = file->size, count = rank == 3 ? 12 : 6;
    put(file, 14, 4);
    put(file, 0, 4);
    const size_t from = file->size;
    put(file, MI_UINT32, 4);
    put(file, 8, 4);
    put(file, class, 4);
    put(file, 0, 4);
    put(file, MI_INT32, 4);
    put(file, (uint64_t)rank * 4, 4);
    put(file, 2, 4);
    put(file, 3, 4);
    if (rank == 3)
        put(file, 2, 4);
    put_padding(file, from);
    put_tag(file, MI_INT8, strlen(name));
    for (const char *at = name; *at; at++)
        put(file, (uint64_t)*at, 1);
    put_padding(file, from);
    put_tag(file, type, count * type_size(type));
    for (size_t i = 0; i < count; i++)
        put_value(file, type, values[i]);
    put_padding(file, from);
    const size_t end = file->size;
    file->size = place + 4;
    put(file, end - from, 4);
    file->size = end;
    return place;
}

/* Compresses the last variable. */
static void compress_last(mat_file *file, size_t place)
{
    static unsigned char packed[ROOM];
    uLongf bytes = sizeof packed;
    assert_int_equal(compress2(packed, &bytes, file->bytes + place, file->size - place, 9), Z_OK);
    file->size = place;
    put(file, 15, 4);
    put(file, bytes, 4);
    memcpy(file->bytes + file->size, packed, bytes);
    file->size += bytes;
}

static const char *write_mat(const char *name, const mat_file *file)
{
    return write_file(name, file->bytes, file->size);
}

static const char *address_of(const char *path, const char *name)
{
    static char address[600];
    snprintf(address, sizeof address, "%s:%s", path, name);
    return address;
}

static const double twelve[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};

/* Every class, in its own type and in those that MATLAB picks for small numbers. */
static void test_classes(void **state)
{
    (void)state;
    static const struct {
        uint32_t class;
        int stored;
        shoal_type type;
    } classes[] = {
        {DOUBLE, MI_DOUBLE, SHOAL_FLOAT64}, {DOUBLE, MI_UINT8, SHOAL_FLOAT64}, {DOUBLE, MI_INT16, SHOAL_FLOAT64},
        {DOUBLE, MI_UINT16, SHOAL_FLOAT64}, {DOUBLE, MI_INT32, SHOAL_FLOAT64}, {DOUBLE, MI_SINGLE, SHOAL_FLOAT64},
        {SINGLE, MI_SINGLE, SHOAL_FLOAT32}, {SINGLE, MI_UINT8, SHOAL_FLOAT32}, {INT8, MI_INT8, SHOAL_INT8},
        {UINT8, MI_UINT8, SHOAL_UINT8},     {INT16, MI_INT16, SHOAL_INT16},    {INT16, MI_UINT8, SHOAL_INT16},
        {UINT16, MI_UINT16, SHOAL_UINT16},  {INT32, MI_INT32, SHOAL_INT32},    {UINT32, MI_UINT32, SHOAL_UINT32},
        {INT64, MI_INT64, SHOAL_INT64},     {INT64, MI_INT16, SHOAL_INT64},    {UINT64, MI_INT64 + 1, SHOAL_UINT64}};
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        for (int big = 0; big < 2; big++)
            for (int compressed = 0; compressed < 2; compressed++) {
                static mat_file file;
                start(&file, big);
                add(&file, "before", DOUBLE, MI_DOUBLE, 2, twelve);
                const size_t place = add(&file, "x", classes[i].class, classes[i].stored, 2, twelve);
                if (compressed)
                    compress_last(&file, place);
                add(&file, "after", UINT8, MI_UINT8, 2, twelve);
                shoal_data *data = open_data(address_of(write_mat("c.mat", &file), "x"));
                assert_string_equal(shoal_data_format(data), "matlab");
                assert_int_equal(shoal_data_type(data), classes[i].type);
                assert_non_null(
                    strstr(shoal_data_detail(data), compressed ? "MATLAB 5, x, compressed" : "MATLAB 5, x"));
                EXPECT_VALUES(data, 2, 3, 1, 3, 5, 2, 4, 6);
                EXPECT_VALUES(open_data(address_of(file_path("c.mat"), "after")), 2, 3, 1, 3, 5, 2, 4, 6);
            }
}

static void test_more_dimensions(void **state)
{
    (void)state;
    static mat_file file;
    start(&file, false);
    add(&file, "images", UINT8, MI_UINT8, 3, twelve);
    EXPECT_VALUES(open_data(write_mat("i.mat", &file)), 2, 6, 1, 7, 3, 9, 5, 11, 2, 8, 4, 10, 6, 12);
    start(&file, false);
    const double negative[6] = {-1, 0, 7, -128, 127, 1};
    add(&file, "x", DOUBLE, MI_INT8, 2, negative);
    EXPECT_VALUES(open_data(write_mat("n.mat", &file)), 2, 3, -1, 7, 127, 0, -128, 1);
    start(&file, true);
    add(&file, "flags", UINT8 | 0x200, MI_UINT8, 2, negative);
    shoal_data *data = open_data(write_mat("l.mat", &file));
    assert_int_equal(shoal_data_type(data), SHOAL_BOOL);
    EXPECT_VALUES(data, 2, 3, 1, 1, 1, 0, 1, 1);
}

static void test_others(void **state)
{
    (void)state;
    static const struct {
        uint32_t class;
        const char *what;
    } others[] = {{CELL, "a cell array"},        {STRUCT, "a struct"},
                  {OBJECT, "an object"},         {TEXT, "text"},
                  {SPARSE, "a sparse matrix"},   {DOUBLE | 0x800, "complex numbers"},
                  {16, "an object or function"}, {0, "something unknown"}};
    static mat_file file;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        start(&file, false);
        add(&file, "it", others[i].class, MI_DOUBLE, 2, twelve);
        refuse(address_of(write_mat("o.mat", &file), "it"), SHOAL_INVALID, others[i].what);
        refuse(file_path("o.mat"), SHOAL_INVALID, "holds no array of numbers: only it ");
        add(&file, "x", DOUBLE, MI_DOUBLE, 2, twelve);
        add(&file, "", DOUBLE, MI_DOUBLE, 2, twelve); /* MATLAB's own */
        EXPECT_VALUES(open_data(write_mat("o.mat", &file)), 2, 3, 1, 3, 5, 2, 4, 6);
    }
    add(&file, "y", SINGLE, MI_SINGLE, 2, twelve);
    refuse(write_mat("o.mat", &file), SHOAL_USAGE, "holds 2 arrays: x 2x3 float64, y 2x3 float32; name one");
    refuse(append_gzip("o.mat.gz", file.bytes, file.size), SHOAL_INVALID, "is read from a plain file");
}

/* Where the numbers of a variable are, from its first byte, when its name has one letter. */
enum { AT_SIZE = 4, AT_FLAGS = 8, AT_CLASS = 16, AT_DIMENSIONS = 24, AT_ROWS = 32, AT_NAME = 40, AT_VALUES = 48 };

static void test_lies(void **state)
{
    (void)state;
    static const struct {
        size_t at;
        uint32_t value;
        const char *says;
    } lies[] = {
        {AT_SIZE, 1000, "it ends within a variable"},
        {AT_SIZE, UINT32_MAX, "it ends within a variable"},
        {AT_SIZE, 20, "a variable ends early"},
        {AT_FLAGS, 5, "a variable has no flags"},
        {AT_FLAGS + 4, 80, "a name or a list of dimensions is too long"},
        {AT_FLAGS + 4, 4, "a variable has no flags"},
        {AT_DIMENSIONS, 6, "a variable has no dimensions"},
        {AT_DIMENSIONS + 4, 4, "a variable has no dimensions"},
        {AT_DIMENSIONS + 4, 7, "a variable has no dimensions"},
        {AT_DIMENSIONS + 4, 10000, "a name or a list of dimensions is too long"},
        {AT_ROWS, UINT32_MAX, "a dimension is negative"},
        {AT_ROWS, 3, "not as many values as its dimensions say"},
        {AT_ROWS, INT32_MAX, "not as many values as its dimensions say"},
        {AT_ROWS, 0, "only x 0x3 an empty matrix"},
        {AT_NAME, 2 | 1 << 16, "a variable has no name"},
        {AT_NAME, 1 | 5 << 16, "a short element is too long"},
        {AT_NAME + 4, 0, "a variable has no name"},
        {AT_VALUES, 8, "have a type that its class can't have"},
        {AT_VALUES, 12, "have a type that its class can't have"},
        {AT_VALUES, 7, "not as many values as its dimensions say"},
        {AT_VALUES + 4, 40, "not as many values as its dimensions say"},
        {AT_VALUES + 4, 56, "not as many values as its dimensions say"},
    };
    static mat_file file;
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++)
        for (int big = 0; big < 2; big++)
            for (int compressed = 0; compressed < 2; compressed++) {
                start(&file, big);
                const size_t place = add(&file, "x", DOUBLE, MI_DOUBLE, 2, twelve), size = file.size;
                file.size = place + lies[i].at;
                put(&file, lies[i].value, 4);
                file.size = size;
                if (compressed && lies[i].at == AT_SIZE)
                    continue; /* which nothing needs */
                if (compressed)
                    compress_last(&file, place);
                refuse(write_mat("lie.mat", &file), SHOAL_INVALID, lies[i].says);
            }
    start(&file, false);
    size_t place = add(&file, "x", DOUBLE, MI_DOUBLE, 2, twelve);
    put(&file, 0, 8);
    compress_last(&file, place);
    refuse(write_mat("more.mat", &file), SHOAL_INVALID, "a variable is longer than its values");
    start(&file, false);
    refuse(write_mat("none.mat", &file), SHOAL_INVALID, "holds no array of numbers");
    file.bytes[125] = 2; /* 7.3, but it is no HDF5 */
    refuse(write_mat("new.mat", &file), SHOAL_INVALID, "");
}

/* A hole of any size takes nothing on a disk, and elements without content are as many as one likes. */
static void test_hole(void **state)
{
    (void)state;
    static mat_file file;
    start(&file, false);
    add(&file, "x", DOUBLE, MI_DOUBLE, 2, twelve);
    const char *path = write_mat("hole.mat", &file);
    assert_int_equal(truncate(path, (off_t)1 << 40), 0);
    refuse(path, SHOAL_INVALID, "has more than 131072 variables");
}

/* No change of a byte and no cut crashes; of what is compressed none changes a value. */
static void test_every_byte(void **state)
{
    (void)state;
    static mat_file file;
    for (int compressed = 0; compressed < 2; compressed++) {
        start(&file, false);
        const size_t place = add(&file, "x", DOUBLE, MI_UINT8, 2, twelve);
        if (compressed)
            compress_last(&file, place);
        for (size_t at = 128; at < file.size; at++)
            for (int bit = 0; bit < 8; bit++) {
                shoal_data *data = NULL;
                file.bytes[at] ^= (unsigned char)(1 << bit);
                if (shoal_data_open(&data, write_mat("byte.mat", &file), NULL) < 0)
                    assert_null(data);
                else if (compressed)
                    EXPECT_VALUES(data, 2, 3, 1, 3, 5, 2, 4, 6);
                else
                    shoal_data_free(&data);
                file.bytes[at] ^= (unsigned char)(1 << bit);
            }
        for (size_t cut = 129; cut < file.size; cut++)
            refuse(write_file("cut.mat", file.bytes, cut), SHOAL_INVALID, "cut off or damaged");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_classes), cmocka_unit_test(test_more_dimensions),
                                       cmocka_unit_test(test_others),  cmocka_unit_test(test_lies),
                                       cmocka_unit_test(test_hole),    cmocka_unit_test(test_every_byte)};
    return cmocka_run_group_tests_name("data_matlab", tests, folder_setup, folder_teardown);
}
