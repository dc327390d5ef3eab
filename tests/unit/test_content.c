/* What files hold: names must say it, and only more of the same replaces it. */
#include "data_support.h"

#include <sys/stat.h>

#include "base/memory.h"
#include "data/array.h"
#include "data/table/content.h"
#include "data/image/picture.h"
#include "data/format/safetensors.h"

static const char *const cat[] = {"cat", "a dog"};
static const data_content labels = {.kind = DATA_CONTENT_ARRAY, .type = "int32", .rank = 1, .columns = 1},
                          names = {.kind = DATA_CONTENT_ARRAY,
                                   .type = "words",
                                   .rank = 1,
                                   .columns = 1,
                                   .words = {cat, 2}},
                          centres = {.kind = DATA_CONTENT_ARRAY, .type = "float64", .rank = 2, .columns = 3},
                          result = {.kind = DATA_CONTENT_RESULT, .learner = "kmeans"},
                          model = {.kind = DATA_CONTENT_MODEL, .learner = "kmeans"},
                          picture = {.kind = DATA_CONTENT_PICTURE}, trace = {.kind = DATA_CONTENT_TRACE};

static void test_names(void **state)
{
    (void)state;
    const struct {
        const data_content *content;
        const char *good[6], *bad[6];
    } cases[] = {
        {&labels,
         {"x.npy", "x.csv", "a/x.tsv.gz", "x.idx", "-", "/dev/fd/3"},
         {"x", "x.png", "x.npy.gz", ".npy", "x."}},
        {&result, {"x.npy", "x.safetensors", "-", "x.txt"}, {"x", "x.svg", ".safetensors"}},
        {&model, {"x.safetensors", "/dev/null"}, {"x", "x.npy", "-"}},
        {&picture, {"x.png", "x.svg", "/dev/null"}, {"x", "x.jpg", "-", "x.svg.gz"}},
        {&trace, {"x.jsonl", "-", "/dev/stderr"}, {"x.json", "x"}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int j = 0; j < 6 && cases[i].good[j]; j++)
            if (data_content_check_name("--x", cases[i].good[j], cases[i].content) != SHOAL_OK)
                fail_msg("%s", shoal_error());
        for (int j = 0; j < 6 && cases[i].bad[j]; j++) {
            assert_int_equal(data_content_check_name("--x", cases[i].bad[j], cases[i].content), SHOAL_USAGE);
            assert_non_null(strstr(shoal_error(), "--x "));
            assert_non_null(strstr(shoal_error(), ": the name must end in ."));
        }
    }
    assert_int_equal(data_content_check_name("--x", "x.npy", &names), SHOAL_OK);
    assert_int_equal(data_content_check_name("--x", "x.tsv.gz", &names), SHOAL_OK);
    assert_int_equal(data_content_check_name("--x", "x.idx", &names), SHOAL_USAGE);
    assert_int_equal(data_content_check_name("--x", "x.raw", &names), SHOAL_USAGE);
    assert_int_equal(mkfifo(file_path("fifo"), 0600), 0);
    assert_int_equal(data_content_check_name("--x", file_path("fifo"), &labels), SHOAL_OK);
}

static void may_replace(const char *name, const data_content *content)
{
    if (data_content_check_old("--x", file_path(name), content) != SHOAL_OK)
        fail_msg("%s", shoal_error());
}

static void may_not(const char *name, const data_content *content, const char *says)
{
    assert_int_equal(data_content_check_old("--x", file_path(name), content), SHOAL_USAGE);
    if (!strstr(shoal_error(), says) || !strstr(shoal_error(), "--force") || !strstr(shoal_error(), name))
        fail_msg("%s: %s", says, shoal_error());
}

static void write_values(const char *name, shoal_type type, int rank, const char *const *words)
{
    static const double zeros[6];
    const data_array array = {zeros, type, rank, (int64_t[]){2, 3}, {words, words ? 2 : 0}, NULL};
    assert_int_equal(data_array_write(file_path(name), &array), SHOAL_OK);
}

static void test_arrays(void **state)
{
    (void)state;
    static const char *const formats[] = {"npy", "csv", "tsv.gz", "txt", "idx", "idx.gz"};
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        char name[32];
        snprintf(name, sizeof name, "a.%s", formats[i]);
        may_replace(name, &labels); /* nothing is there */
        write_values(name, SHOAL_INT32, 1, NULL);
        may_replace(name, &labels);
        may_not(name, &centres, i == 0 ? "an .npy array of int32 with 1 dimension, not float64 with 2 dimensions" : "");
        write_values(name, SHOAL_FLOAT64, 2, NULL);
        may_replace(name, &centres);
        may_not(name, &labels, i == 1 ? "integers in 3 columns, not integers in 1 column" : "");
    }
    write_values("w.npy", SHOAL_FLOAT64, 1, cat);
    may_not("w.npy", &labels, "an .npy array of words with 1 dimension, not int32");
    may_replace("w.npy", &names);
    write_values("w.csv", SHOAL_FLOAT64, 1, cat);
    may_not("w.csv", &labels, "words in 1 column, not integers in 1 column");
    may_replace("w.csv", &names);
    rename(file_path("a.csv"), file_path("a.csv.gz"));
    may_not("a.csv.gz", &centres, "integers in 3 columns");
    rename(file_path("a.npy"), file_path("a.bin"));
    may_not("a.bin", &centres, "an .npy array of float64");
}

static void write_bytes(const char *name, const char *bytes, size_t size)
{
    FILE *file = fopen(file_path(name), "wb");
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    fclose(file);
}

/* Text is replaced only if it is just what would be written there: everything else may be somebody's own. */
static void test_text(void **state)
{
    (void)state;
    static const struct {
        const data_content *content;
        const char *name, *text, *says; /* NULL: it is replaced */
    } cases[] = {
        {&labels, "t.csv", "0\n12\n-2147483648\n", NULL},
        {&labels, "t.csv", "label\n1\n2\n", "integers in 1 column below a header, not integers in 1 column"},
        {&labels, "t.csv", "# my notes\n# more\n", "text, not integers in 1 column"},
        {&labels, "t.csv", "# mine\n1\n2\n", "integers in 1 column, but not as this command writes them"},
        {&labels, "t.csv", "1\n2", "but not as this command"},
        {&labels, "t.csv", "1\r\n2\r\n", "but not as this command"},
        {&labels, "t.csv", "1\n\n2\n", "but not as this command"},
        {&labels, "t.csv", "01\n02\n", "numbers in 1 column, not integers"},
        {&labels, "t.csv", "2147483648\n", "but not as this command"},
        {&labels, "t.csv", "0.5\n1.5\n", "numbers in 1 column, not integers in 1 column"},
        {&labels, "t.csv", "1\n2\n3\nthe end\n", "words in 1 column, not integers"},
        {&labels, "t.txt", "\"It was the best of times\nthe worst\n", "text, not integers in 1 column"},
        {&labels, "t.txt", "1\n2 3\n", "text, not integers in 1 column"},
        {&labels, "t.csv", "1\n\x01\x02\n", "unknown bytes, not integers in 1 column"},
        {&labels, "t.csv", "\xff\xfe\n", "unknown bytes, not integers in 1 column"},
        {&centres, "t.csv", "1,2.5,-1e-07\n0.1,nan,-inf\n", NULL},
        {&centres, "t.tsv", "1\t2.5\t3\n", NULL},
        {&centres, "t.txt", "1 2.5 3\n", NULL},
        {&centres, "t.csv", "a,b,c\n1,2,3\n", "integers in 3 columns below a header, not numbers in 3 columns"},
        {&centres, "t.csv", "1, 2, 3\n", "integers in 3 columns, but not as this command writes them"},
        {&centres, "t.csv", "1.0,2.50,3\n", "numbers in 3 columns, but not as"},
        {&centres, "t.csv", "1,\"2\",3\n", "but not as"},
        {&centres, "t.csv", "1\t2\t3\n", "words in 1 column, not numbers in 3 columns"},
        {&centres, "t.txt", "1  2 3\n", "but not as"},
        {&centres, "t.csv", "1,2,3\n1,2\n", "text, not numbers in 3 columns"},
        {&names, "t.csv", "cat\n\"a dog\"\ncat\n", NULL},
        {&names, "t.csv", "animal\ncat\n", "words in 1 column, but not as"},
        {&names, "t.csv", "cat\na dog\n", "words in 1 column, but not as"},
        {&names, "t.csv", "\"cat\"\n", "words in 1 column, but not as"},
        {&names, "t.csv", "0\n1\n", "integers in 1 column, but not as"},
        {&names, "t.txt", "cat\nthis is a long line of text\n", "text, not words in 1 column"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_text(cases[i].name, cases[i].text);
        if (cases[i].says)
            may_not(cases[i].name, cases[i].content, cases[i].says);
        else
            may_replace(cases[i].name, cases[i].content);
    }
}

/* Of a long file the start is looked at, which may end within a value. */
static void test_long_text(void **state)
{
    (void)state;
    enum { LINES = 40000 };
    char *text = NULL;
    assert_int_equal(base_alloc(&text, LINES, 8, "a text"), SHOAL_OK);
    for (int i = 0; i < LINES; i++)
        memcpy(text + 5 * i, "1234\n", 5);
    write_bytes("long.csv", text, 5 * LINES);
    may_replace("long.csv", &labels);
    text[5 * 6000] = 'x';
    write_bytes("long.csv", text, 5 * LINES);
    may_not("long.csv", &labels, "words in 1 column");
    memset(text, '"', 1);
    write_bytes("long.csv", text, 5 * LINES);
    may_not("long.csv", &names, "text");
    base_free(&text);
}

/* Tables keep the names of their columns: only a table of the same columns is replaced. */
static void test_headers(void **state)
{
    (void)state;
    const char *path = write_text("named.csv", "x,my y\n1,2\n");
    shoal_data *data = NULL;
    assert_int_equal(shoal_data_open(&data, path, NULL), SHOAL_OK);
    const data_content table = {.kind = DATA_CONTENT_ARRAY, .type = "float64", .rank = 2, .columns = 2, .names = data};
    write_text("t.csv", "x,\"my y\"\n0.5,2\n");
    may_replace("t.csv", &table);
    write_text("t.csv", "x,z\n0.5,2\n");
    may_not("t.csv", &table, "numbers in 2 columns below a header, but not as");
    write_text("t.csv", "0.5,2\n");
    may_not("t.csv", &table, "numbers in 2 columns, not numbers in 2 columns below a header");
    write_text("t.csv", "x,\"my y\"\n");
    may_not("t.csv", &table, "words in 2 columns");
    shoal_data_free(&data);
}

/* Nothing tells raw values from other bytes but how many there are. */
static void test_raw(void **state)
{
    (void)state;
    const data_content raw = {.kind = DATA_CONTENT_ARRAY, .type = "float32", .rank = 2, .rows = 4, .columns = 3};
    data_content unknown = raw;
    static const char bytes[64] = "\x7f"
                                  "ELF\2";
    write_bytes("r.bin", bytes, 48);
    may_replace("r.bin", &raw);
    unknown.rows = 0;
    may_not("r.bin", &unknown, "unknown bytes, not float32");
    write_bytes("r.raw", bytes, 64);
    may_not("r.raw", &raw, "unknown bytes, not float32");
    write_text("r.raw", "123456789012345678901234567890123456789012345678");
    may_not("r.raw", &raw, "numbers in 1 column");
}

/* Whatever a file holds, it is read without harm and not replaced. */
static void test_hostile(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t size;
    } cases[] = {
        {"\x93NUMPY", 6},
        {"\x93NUMPY\1\0\xff\xff{'descr': '<f8'", 25},
        {"\x93NUMPY\3\0\xff\xff\xff\xff{", 13},
        {"\0\0\x0c\xff", 4},
        {"\0\0\x0c\0aaaaaaaa", 12},
        {"\x1f\x8b\x08garbage", 10},
        {"\xff\xff\xff\xff\0\0\0\0{\"a\":1}", 15},
        {"{\"round\"", 8},
        {"<html><svg/>", 12},
        {"\0\0\0\0\0\0\0\0\0\0", 10},
        {"\"never closed", 13},
        {"PK\3\4\0\0", 6},
        {"my notes\n\n", 10},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_bytes("bad.npy", cases[i].bytes, cases[i].size);
        may_not("bad.npy", &labels, "");
        assert_int_equal(rename(file_path("bad.npy"), file_path("bad.csv")), 0);
        may_not("bad.csv", &labels, "");
        may_not("bad.csv", &names, "");
        assert_int_equal(rename(file_path("bad.csv"), file_path("bad.npy")), 0);
        assert_int_equal(rename(file_path("bad.npy"), file_path("bad.safetensors")), 0);
        may_not("bad.safetensors", &model, "");
        assert_int_equal(rename(file_path("bad.safetensors"), file_path("bad.png")), 0);
        may_not("bad.png", &picture, "");
        assert_int_equal(rename(file_path("bad.png"), file_path("bad.jsonl")), 0);
        may_not("bad.jsonl", &trace, "");
    }
    write_text("empty.npy", "");
    may_replace("empty.npy", &labels);
    assert_int_equal(mkfifo(file_path("fifo.npy"), 0600), 0);
    may_replace("fifo.npy", &labels); /* and does not wait for a writer */
}

static void test_others(void **state)
{
    (void)state;
    const double value = 1;
    const data_tensor tensor = {.name = "x", .type = SHOAL_FLOAT64, .rank = 0, .values = &value};
    const data_metadata ours = {"learner", "kmeans"}, other = {"learner", "bayes"};
    assert_int_equal(data_safetensors_write(file_path("m.safetensors"), &tensor, 1, &ours, 1), SHOAL_OK);
    may_replace("m.safetensors", &model);
    may_replace("m.safetensors", &result);
    assert_int_equal(data_safetensors_write(file_path("m.safetensors"), &tensor, 1, &other, 1), SHOAL_OK);
    may_not("m.safetensors", &model, "tensors of bayes, not tensors of kmeans");
    may_not("m.safetensors", &result, "tensors of bayes");
    const data_sheet sheet = {.values = &value, .images = 1, .height = 1, .width = 1};
    assert_int_equal(data_picture_write(file_path("p.png"), &sheet), SHOAL_OK);
    may_replace("p.png", &picture);
    assert_int_equal(rename(file_path("p.png"), file_path("p.svg")), 0);
    may_not("p.svg", &picture, "a PNG picture");
    assert_int_equal(data_picture_write(file_path("p.svg"), &sheet), SHOAL_OK);
    may_replace("p.svg", &picture);
    write_text("p.svg", "<?xml version='1.0'?>\n<svg xmlns='x'/>\n");
    may_not("p.svg", &picture, "an SVG picture that another program made");
    write_bytes("p.png", "\x89PNG\r\n\x1a\n\0\0\0\rIHDR", 16);
    may_not("p.png", &picture, "a PNG picture that another program made");
    write_text("p.png", "holiday");
    may_not("p.png", &picture, "words in 1 column, not a PNG picture");
    write_text("t.jsonl", "{\"round\": 0}\n");
    may_replace("t.jsonl", &trace);
    write_text("t.jsonl", "{\"mine\": 0}\n");
    may_not("t.jsonl", &trace, "not a trace");
    write_text("t.jsonl", "{\"round\": 0}\n{\"mine\": 0}\n");
    may_not("t.jsonl", &trace, "not a trace");
}

static void test_beside(void **state)
{
    (void)state;
    char *path = NULL;
    assert_int_equal(data_content_beside(&path, file_path("b.csv.gz")), SHOAL_OK);
    assert_string_equal(path, file_path("b-2.csv.gz"));
    write_text("b-2.csv.gz", "taken");
    base_free(&path);
    assert_int_equal(data_content_beside(&path, file_path("b.csv.gz")), SHOAL_OK);
    assert_string_equal(path, file_path("b-3.csv.gz"));
    base_free(&path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),     cmocka_unit_test(test_arrays),  cmocka_unit_test(test_text),
        cmocka_unit_test(test_long_text), cmocka_unit_test(test_headers), cmocka_unit_test(test_raw),
        cmocka_unit_test(test_hostile),   cmocka_unit_test(test_others),  cmocka_unit_test(test_beside),
    };
    return cmocka_run_group_tests_name("content", tests, folder_setup, folder_teardown);
}
