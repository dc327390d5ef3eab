/* svmlight files: what counts as one, indices, labels as numbers and words, sizes, and what is wrong by line. */
#include "data_support.h"

#include "base/memory.h"

static void test_rows(void **state)
{
    (void)state;
    const char *text = "# made by hand\n+1 1:0.5 3:2 # the first\n-1 qid:3 2:1e-3\n\n  +1  \n-1\t3:4";
    shoal_data *data = open_data(write_text("a.svm", text));
    assert_string_equal(shoal_data_format(data), "svmlight");
    assert_string_equal(shoal_data_column_name(data, 0), "f1");
    assert_string_equal(shoal_data_column_name(data, 3), "label");
    assert_non_null(strstr(shoal_data_detail(data), "3 features from index 1 on"));
    EXPECT_VALUES(data, 4, 4, 0.5, 0, 2, 1, 0, 1e-3, 0, -1, 0, 0, 0, 1, 0, 0, 4, -1);
    append_gzip("a.gz", text, strlen(text));
    for (int memory = 0; memory < 2; memory++)
        EXPECT_VALUES(open_with(file_path("a.gz"), &(shoal_data_options){.memory = memory}), 4, 4, 0.5, 0, 2, 1, 0,
                      1e-3, 0, -1, 0, 0, 0, 1, 0, 0, 4, -1);
    EXPECT_VALUES(open_data(write_text("a.svm", "\xef\xbb\xbf"
                                                "1 1:2\r\n2 1:3\r\n")),
                  2, 2, 2, 1, 3, 2);
}

/* As scikit-learn has it, one index 0 anywhere makes all count from 0. */
static void test_indices(void **state)
{
    (void)state;
    shoal_data *data = open_data(write_text("z.svm", "1 1:5\n0 0:7\n"));
    assert_string_equal(shoal_data_column_name(data, 0), "f0");
    EXPECT_VALUES(data, 2, 3, 0, 5, 1, 7, 0, 0);
    EXPECT_VALUES(open_data(write_text("z.svm", "1 2:5\n0 1:7\n")), 2, 3, 0, 5, 1, 7, 0, 0);
    /* What a model knows of features that these rows do not have. */
    EXPECT_VALUES(open_with(file_path("z.svm"), &(shoal_data_options){.features = 3}), 2, 4, 0, 5, 0, 1, 7, 0, 0, 0);
    EXPECT_VALUES(open_with(file_path("z.svm"), &(shoal_data_options){.features = 3, .feature_zero = true}), 2, 4, 0, 0,
                  5, 1, 0, 7, 0, 0);
    int64_t index;
    assert_true(data_svmlight_is_feature(&index, "f012") && index == 12);
    assert_false(data_svmlight_is_feature(&index, "f") || data_svmlight_is_feature(&index, "f1x"));
    assert_false(data_svmlight_is_feature(&index, "f99999999999999999999"));
}

static void test_labels(void **state)
{
    (void)state;
    const char *path = write_text("w.svm", "spam 1:1\nham 2:1\n7 1:3\n");
    const shoal_data_options last = {.target = ""}, named = {.target = "label", .keep_columns = "f2"};
    shoal_data *data = open_with(path, &last);
    assert_int_equal(shoal_data_target(data), 2);
    assert_string_equal(shoal_data_word(data, 0), "7");
    assert_string_equal(shoal_data_word(data, 2), "spam");
    EXPECT_VALUES(data, 3, 3, 1, 0, 2, 0, 1, 1, 3, 0, 0);
    data = open_with(path, &named);
    assert_int_equal(shoal_data_target(data), 1);
    EXPECT_VALUES(data, 3, 2, 0, 2, 1, 1, 0, 0);
    /* Without a target they are text, which is told only where it would be used. */
    data = open_data(path);
    assert_null(shoal_data_word(data, 0));
    assert_non_null(strstr(shoal_data_column_text(data, 2), "line 1: the label \"spam\" is not a number"));
    assert_int_equal(shoal_data_write(data, file_path("w.csv")), SHOAL_INVALID);
    shoal_data_free(&data);
    refuse_with(path, &(shoal_data_options){.keep_columns = "label"}, SHOAL_INVALID, "\"spam\" is not a number");
    EXPECT_VALUES(open_with(path, &(shoal_data_options){.drop_columns = "label"}), 3, 2, 1, 0, 0, 1, 3, 0);
    refuse_with(path, &(shoal_data_options){.drop_columns = "label", .target = ""}, SHOAL_USAGE, "which is the target");
}

static void test_other_files(void **state)
{
    (void)state;
    static const char *const texts[] = {"1 2 3\n4 5 6\n",     "1\n2\n",    "0.5,1\n2,3\n", "1 1:a\n",
                                        "2020-01-01 12:30\n", "1:2 3:4\n", "# 1 1:2\n5\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        shoal_data *data = NULL;
        if (shoal_data_open(&data, write_text("t.txt", texts[i]), &(shoal_data_options){.keep_text = true}) == SHOAL_OK)
            assert_string_equal(shoal_data_format(data), "text");
        shoal_data_free(&data);
    }
    char wide[9000] = "1";
    for (int i = 1; strlen(wide) < sizeof wide - 20; i++)
        sprintf(wide + strlen(wide), " %d:1", i);
    shoal_data *data = open_data(write_text("wide.svm", wide)); /* its first line is longer than what is looked at */
    assert_string_equal(shoal_data_format(data), "svmlight");
    shoal_data_free(&data);
}

static void test_faults(void **state)
{
    (void)state;
    static const struct {
        const char *text, *sentence;
    } cases[] = {
        {"1 1:2\n1 2:3 1:4\n", "f.svm: line 2: \"1:4\" follows a greater index"},
        {"1 1:2\n\n1 2:3 2:4\n", "line 3: \"2:4\" has the same index as the pair before it"},
        {"1 1:2\n1,3 2:3\n", "line 2: the label \"1,3\" names several classes, and a row can have only one"},
        {"1,3 2:3\n", "line 1: the label \"1,3\" names several classes"},
        {"1 1:2\n2:3 3:4\n", "line 2: the line must begin with a label, and \"2:3\" is none"},
        {"1 1:2\n1 2-3\n", "line 2: \"2-3\" is not index:value"},
        {"1 1:2\n1 -2:3\n", "line 2: \"-2:3\" is not index:value"},
        {"1 1:2\n1 2:\n", "line 2: \"2:\" is not index:value"},
        {"1 1:2\n1 2:x\n", "line 2: \"2:x\": the value is not a number"},
        {"1 1:2\n1 2:1x\n", "line 2: \"2:1x\": the value is not a number"},
        {"1 1:2\n1 99999999999:1\n", "line 2: \"99999999999:1\": the index is greater than"},
        {"1 1:2\n1 qid:x 2:1\n", "line 2: \"qid:x\" is not qid: with a number"},
        {"1 1:2\n1 2000000000:1\n", "sparse rows are not supported; keep fewer features, or allow that much with "
                                    "--memory"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        refuse(write_text("f.svm", cases[i].text), SHOAL_INVALID, cases[i].sentence);
    refuse(write_file("f.svm", "1 1:2\n1 2:3\0 4:5\n", 18), SHOAL_INVALID, "line 2");
}

/* More text than one piece, where the last of many faults must not be the one that is told. */
static void test_pieces(void **state)
{
    (void)state;
    enum { LINES = 400000 };
    char *text = malloc(LINES * 16), *at = text;
    for (int i = 0; i < LINES; i++)
        at += sprintf(at, "%d %d:%d\n", i % 3, i % 7 + 1, i);
    shoal_data *data = open_data(write_file("big.svm", text, (size_t)(at - text)));
    double *values = all_values(data);
    assert_int_equal(shoal_data_rows(data), LINES);
    for (int i = 0; i < LINES; i++)
        assert_true(values[i * 8 + i % 7] == i && values[i * 8 + 7] == i % 3);
    free(values);
    shoal_data_free(&data);
    text[strlen("0 1:0\n1 2:1\n") + 1] = 'x';
    at[-2] = 'x';
    text[(at - text) / 2] = 'x';
    refuse(write_file("big.svm", text, (size_t)(at - text)), SHOAL_INVALID, "line 3: ");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows),   cmocka_unit_test(test_indices),
                                       cmocka_unit_test(test_labels), cmocka_unit_test(test_other_files),
                                       cmocka_unit_test(test_faults), cmocka_unit_test(test_pieces)};
    return cmocka_run_group_tests_name("data_svmlight", tests, folder_setup, folder_teardown);
}
