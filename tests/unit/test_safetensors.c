/* src/data/format/safetensors.c: what is written is read back, files of other programs are read, lies are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <zlib.h>

#include "data/format/safetensors.h"

static char folder[] = "/tmp/shoal-safetensors-XXXXXX";
static char path[64];

static int make_folder(void **state)
{
    (void)state;
    snprintf(path, sizeof path, "%s/model.safetensors", mkdtemp(folder) ? folder : "/nowhere");
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(folder); /* fails when a test has left a file behind */
}

static void what_is_written_is_read_back(void **state)
{
    static const double centres[2][3] = {{1, 2.5, -3}, {1e300, 0, -0.0}};
    static const int32_t labels[5] = {0, 1, 1, 0, 7};
    static const uint8_t one = 200;
    const data_tensor tensors[] = {
        {"centres", SHOAL_FLOAT64, 2, {2, 3}, centres, 0},
        {"labels", SHOAL_INT32, 1, {5}, labels, 0},
        {"one \"x\" \xc3\xa4", SHOAL_UINT8, 0, {0}, &one, 0},
        {"none", SHOAL_FLOAT32, 2, {0, 9}, labels, 0},
    };
    const data_metadata metadata[] = {{"learner", "kmeans"}, {"k", "2"}};
    data_tensors *file = NULL;
    (void)state;
    assert_int_equal(data_safetensors_write(path, tensors, 4, metadata, 2), SHOAL_OK);
    assert_true(data_safetensors_is(path));
    assert_int_equal(data_safetensors_open(&file, path), SHOAL_OK);
    assert_int_equal(data_safetensors_count(file), 4);
    const data_tensor *read = data_safetensors_find(file, "centres");
    assert_int_equal(read->type, SHOAL_FLOAT64);
    assert_int_equal(read->rank, 2);
    assert_int_equal(read->shape[1], 3);
    assert_int_equal(read->bytes, sizeof centres);
    assert_memory_equal(read->values, centres, sizeof centres);
    assert_int_equal((uintptr_t)read->values % 64, 0); /* so that others can map it too */
    read = data_safetensors_find(file, "one \"x\" \xc3\xa4");
    assert_int_equal(read->rank, 0);
    assert_int_equal(*(const uint8_t *)read->values, 200);
    assert_int_equal(data_safetensors_find(file, "none")->bytes, 0);
    assert_null(data_safetensors_find(file, "absent"));
    assert_string_equal(data_safetensors_metadata(file, "learner"), "kmeans");
    assert_null(data_safetensors_metadata(file, "absent"));
    data_safetensors_close(&file);
    assert_null(file);
    data_safetensors_close(&file);
}

static void a_file_without_tensors_is_a_file(void **state)
{
    data_tensors *file = NULL;
    (void)state;
    assert_int_equal(data_safetensors_write(path, NULL, 0, NULL, 0), SHOAL_OK);
    assert_int_equal(data_safetensors_open(&file, path), SHOAL_OK);
    assert_int_equal(data_safetensors_count(file), 0);
    assert_null(data_safetensors_metadata(file, "absent"));
    data_safetensors_close(&file);
}

/* Values as another reader of the format (Python's struct and json) saw them. */
static void files_of_other_programs_are_read(void **state)
{
    static const struct {
        const char *path, *name;
        int count, rank;
        int64_t last; /* side of the shape */
        unsigned long crc;
    } vectors[] = {
        {"../shared/data/vectors/safetensors/multi_layer.safetensors", "fc1.weight", 9, 2, 256, 2913103872u},
        {"../shared/data/vectors/safetensors/mnist_convnet.safetensors", "conv3.weight", 20, 4, 3, 1676957169u},
    };
    (void)state;
    for (int i = 0; i < 2; i++) {
        data_tensors *file = NULL;
        if (access(vectors[i].path, R_OK) != 0) {
            print_message("SKIPPED: %s is not here\n", vectors[i].path);
            skip();
        }
        assert_int_equal(data_safetensors_open(&file, vectors[i].path), SHOAL_OK);
        assert_int_equal(data_safetensors_count(file), vectors[i].count);
        const data_tensor *tensor = data_safetensors_find(file, vectors[i].name);
        assert_int_equal(tensor->type, SHOAL_FLOAT32);
        assert_int_equal(tensor->rank, vectors[i].rank);
        assert_int_equal(tensor->shape[tensor->rank - 1], vectors[i].last);
        assert_int_equal(crc32(0, tensor->values, (uInt)tensor->bytes), vectors[i].crc);
        data_safetensors_close(&file);
    }
}

/* A file of the given header and that many bytes of values. */
static int parse(const char *header, size_t values)
{
    unsigned char bytes[1024] = {0};
    data_tensors *file = NULL;
    uint64_t length = strlen(header);
    memcpy(bytes, &length, 8);
    memcpy(bytes + 8, header, length);
    int status = data_safetensors_parse(&file, bytes, 8 + length + values, "x");
    data_safetensors_close(&file);
    return status;
}

static void headers_that_lie_are_refused(void **state)
{
    static const struct {
        const char *header;
        size_t values;
        const char *says;
    } bad[] = {
        {"", 0, "not a JSON object"},
        {"[]", 0, "not a JSON object"},
        {"{", 0, "not a JSON object"},
        {"{}", 1, "1 bytes after the last tensor"},
        {"{\"a\":1}", 0, "tensor 'a' has type ''"},
        {"{\"a\":{\"dtype\":\"F16\",\"shape\":[1],\"data_offsets\":[0,2]}}", 2, "tensor 'a' has type 'F16'"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,4]}}", 4, "takes 4 bytes, but its shape says 3"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}", 3, "outside the file"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[-4,0]}}", 4, "outside the file"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[4,0]}}", 4, "outside the file"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0]}}", 4, "outside the file"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4,8]}}", 4, "outside the file"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0.0,4.0]}}", 4, "outside the file"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[-4],\"data_offsets\":[0,4]}}", 4, "impossible shape"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4.0],\"data_offsets\":[0,4]}}", 4, "impossible shape"},
        {"{\"a\":{\"dtype\":\"F64\",\"shape\":[4611686018427387904,4],\"data_offsets\":[0,0]}}", 0, "impossible shape"},
        {"{\"a\":{\"dtype\":\"F64\",\"shape\":[99999999999999999999],\"data_offsets\":[0,0]}}", 0, "not a JSON object"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,1]}}", 1, "no shape of at most"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":{},\"data_offsets\":[0,1]}}", 1, "no shape of at most"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}", 2, "does not start where"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
         "\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[1,3]}}",
         3, "does not start where"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
         "\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}",
         2, "does not start where"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
         "\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}",
         2, "duplicate"},
        {"{\"__metadata__\":7}", 0, "metadata is not an object"},
        {"{\"__metadata__\":{\"a\":7}}", 0, "metadata 'a' is not a string"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(parse(bad[i].header, bad[i].values), SHOAL_INVALID);
        if (!strstr(shoal_error(), bad[i].says) || strncmp(shoal_error(), "x: ", 3) != 0)
            fail_msg("%s: said '%s'", bad[i].header, shoal_error());
    }
    /* The order of the header is free, and empty tensors lie anywhere between the others. */
    assert_int_equal(parse("{\"b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]},"
                           "\"e\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[1,1]},"
                           "\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}   ",
                           2),
                     SHOAL_OK);
}

static void lengths_are_checked_against_the_file(void **state)
{
    static const uint64_t lengths[] = {3, 100000001, UINT64_MAX, UINT64_MAX - 7};
    data_tensors *file = NULL;
    (void)state;
    for (int i = 0; i < 4; i++) {
        unsigned char bytes[10] = "        {}";
        memcpy(bytes, &lengths[i], 8);
        assert_int_equal(data_safetensors_parse(&file, bytes, sizeof bytes, "x"), SHOAL_INVALID);
    }
    for (size_t size = 0; size < 8; size++)
        assert_int_equal(data_safetensors_parse(&file, "\2\0\0\0\0\0\0\0{}", size, "x"), SHOAL_INVALID);
    assert_null(file);
}

static void files_that_are_none_are_named(void **state)
{
    data_tensors *file = NULL;
    (void)state;
    assert_int_equal(data_safetensors_open(&file, "/nowhere/model"), SHOAL_SYSTEM);
    assert_string_equal(shoal_error(), "/nowhere/model: can't open: No such file or directory");
    assert_int_equal(data_safetensors_open(&file, "/dev/null"), SHOAL_INVALID);
    assert_int_equal(data_safetensors_open(&file, "/tmp"), SHOAL_INVALID);
    assert_false(data_safetensors_is("/dev/null"));
    assert_false(data_safetensors_is("/nowhere/x"));
    assert_true(data_safetensors_is("/nowhere/x.safetensors"));
    assert_int_equal(data_safetensors_write("/nowhere/x", NULL, 0, NULL, 0), SHOAL_SYSTEM);
    assert_int_equal(data_safetensors_write("/dev/full", NULL, 0, NULL, 0), SHOAL_SYSTEM);
    assert_null(file);
}

/* Cut within its last page, behind which the system puts zeros and tells nobody; and by whole pages. */
static void a_file_that_shrinks_while_it_is_read_is_told(void **state)
{
    enum { COUNT = 4096 };
    static double values[COUNT], copied[COUNT];
    const data_tensor tensor = {"values", SHOAL_FLOAT64, 1, {COUNT}, values, 0};
    (void)state;
    for (int i = 0; i < COUNT; i++)
        values[i] = i + 1;
    for (int cut = 8; cut < (int)sizeof values; cut += 20000) {
        data_tensors *file = NULL;
        struct stat info;
        assert_int_equal(data_safetensors_write(path, &tensor, 1, NULL, 0), SHOAL_OK);
        assert_int_equal(data_safetensors_open(&file, path), SHOAL_OK);
        const data_tensor *found = data_safetensors_find(file, "values");
        assert_int_equal(data_safetensors_copy(copied, file, found, path), SHOAL_OK);
        assert_memory_equal(copied, values, sizeof values);
        assert_int_equal(stat(path, &info), 0);
        assert_int_equal(truncate(path, info.st_size - cut), 0);
        assert_int_equal(data_safetensors_copy(copied, file, found, path), SHOAL_INVALID);
        assert_non_null(strstr(shoal_error(), path));
        assert_non_null(strstr(shoal_error(), "while it was in use"));
        data_safetensors_close(&file);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read_back),
        cmocka_unit_test(a_file_without_tensors_is_a_file),
        cmocka_unit_test(files_of_other_programs_are_read),
        cmocka_unit_test(headers_that_lie_are_refused),
        cmocka_unit_test(lengths_are_checked_against_the_file),
        cmocka_unit_test(files_that_are_none_are_named),
        cmocka_unit_test(a_file_that_shrinks_while_it_is_read_is_told),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
