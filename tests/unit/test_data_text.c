/* Text files: delimiters, headers, quotes, line ends, columns left out, and the message for each wrong file. */
#include "data_support.h"

#include "data/table/data_select.h"

#include <math.h>

static shoal_data *open_text(const char *text)
{
    return open_data(write_text("t.csv", text));
}

static void refuse_text(const char *text, const char *part)
{
    refuse(write_text("t.csv", text), SHOAL_INVALID, part);
}

static void test_delimiters(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "1,2,3\n4,5,6\n",           "1\t2\t3\n4\t5\t6\n",
        "1;2;3\n4;5;6\n",           "1 2 3\n4 5 6\n",
        "  1   2 3 \n4 5\t6\n",     "1, 2, 3\n4, 5 ,6\n",
        "1,\t2,\t3\n4,\t5,\t6\n",   " 1 ;2; 3\n4;5;6",
        "1,2,3\r\n4,5,6\r\n",       "1 2 3\r\n4 5 6 \r\n",
        "1,2,3\r4,5,6\r",           "\n1,2,3\n\n  \n4,5,6\n\n",
        "\357\273\2771,2,3\n4,5,6", "# a comment, \"with a quote\n1,2,3\n  # another\n4,5,6\n#",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        shoal_data *data = open_text(texts[i]);
        assert_string_equal(shoal_data_format(data), "text");
        assert_int_equal(shoal_data_type(data), SHOAL_FLOAT64);
        assert_null(shoal_data_column_name(data, 0));
        EXPECT_VALUES(data, 2, 3, 1, 2, 3, 4, 5, 6);
    }
}

static void test_one_column_or_one_row(void **state)
{
    (void)state;
    EXPECT_VALUES(open_text("5"), 1, 1, 5);
    EXPECT_VALUES(open_text("1.5\n-2e3\n"), 2, 1, 1.5, -2000);
    EXPECT_VALUES(open_text("1,2,3"), 1, 3, 1, 2, 3);
    shoal_data *data = open_text("petal length\n1\n2\n");
    assert_string_equal(shoal_data_column_name(data, 0), "petal length");
    EXPECT_VALUES(data, 2, 1, 1, 2);
}

static void test_header(void **state)
{
    (void)state;
    shoal_data *data = open_text("a, \"b \"\"two\"\"\" ,\"c\nd\",\n1,2,3,4\n");
    assert_string_equal(shoal_data_column_name(data, 0), "a");
    assert_string_equal(shoal_data_column_name(data, 1), "b \"two\"");
    assert_string_equal(shoal_data_column_name(data, 2), "c\nd");
    assert_string_equal(shoal_data_column_name(data, 3), "");
    assert_string_equal(shoal_data_detail(data), "text, comma between fields, header line, decoded into memory");
    EXPECT_VALUES(data, 1, 4, 1, 2, 3, 4);
    EXPECT_VALUES(open_text("x y\n1 2\n"), 1, 2, 1, 2);
    EXPECT_VALUES(open_text("first name\tage\n1\t2\n"), 1, 2, 1, 2);
    /* One number in the first line makes it a row: nothing is lost silently. */
    refuse_text("1,x,3\n4,5,6\n", "line 1, column 2: \"x\" is not a number");
    refuse_text(",2,3\n4,5,6\n", "1 value is missing, the first in line 1, column 1");
}

/* The first line is compared with the rows below it, whatever columns are then read. */
static void test_header_by_itself(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int found; /* 1: a header; 0: a row; -1: asked */
    } cases[] = {
        {"city,2019,2020\nParis,2,3\nRome,4,5\n", 1},
        {"id,2019,2020\n1,2,3\n", 1},
        {"city,2019,2020\nParis,2019.5,3\nRome,2018,5\n", -1}, /* one year is among its values */
        {"Paris,2,3\nRome,4,5\n", -1},
        {"Paris,2,3\nRome,4,5\nParis,6,7\n", 0},
        {"Paris,2,3\n", 0},
        {"5.1,3.5,setosa\n4.9,3,setosa\n", 0},
        {"1,x,3\n4,5,6\n", 0},
        {"id,age,2\n4,5,6\n", 1}, /* more names than numbers */
        {"x,y\nNA,2\n", 1},
        {"cat\ndog\ncat\n", 0},
        {"kind\ncat\ndog\n", 1},
        {",0,1\n0,1.5,2.5\n", 1},
        {"0,1,2\n3,4,5\n", 0},
    };
    static const char *const dropped[] = {NULL, "1", "-1", "2"};
    for (size_t i = 0; i < 4 * (sizeof cases / sizeof *cases); i++) {
        const int found = cases[i / 4].found;
        const shoal_data_options options = {
            .drop_columns = dropped[i % 4], .target = "1", .missing = SHOAL_MISSING_KEEP};
        shoal_data *data = NULL;
        int status = shoal_data_open(&data, write_text("h.csv", cases[i / 4].text), &options);
        if (found < 0) {
            assert_int_equal(status, SHOAL_INVALID);
            assert_non_null(strstr(shoal_error(), "use --header yes"));
        } else if (status == SHOAL_OK) {
            assert_int_equal(data->has_header, found);
            assert_non_null(strstr(shoal_data_detail(data), found ? "header line" : "no header"));
        } else if (status == SHOAL_INVALID) {
            assert_non_null(strstr(shoal_error(), "is not a number"));
        }
        shoal_data_free(&data);
    }
    refuse_text("1,x,3\n4,5,6\n", "\"x\" is not a number; if this line holds the names of columns, use --header yes");
}

static void test_header_as_told(void **state)
{
    (void)state;
    const char *path = write_text("h.csv", "1,2\n3,4\n");
    shoal_data *data = open_with(path, &(shoal_data_options){.header = SHOAL_HEADER_YES});
    assert_string_equal(shoal_data_column_name(data, 1), "2");
    EXPECT_VALUES(data, 1, 2, 3, 4);
    EXPECT_VALUES(open_with(path, &(shoal_data_options){.header = SHOAL_HEADER_NO}), 2, 2, 1, 2, 3, 4);
    refuse_with(write_text("h.csv", "a,b\n3,4\n"), &(shoal_data_options){.header = SHOAL_HEADER_NO}, SHOAL_INVALID,
                "line 1, column 1: \"a\" is not a number; --drop-column 1");
    EXPECT_VALUES(open_with(write_text("h.csv", "Paris,2,3\nRome,4,5\n"),
                            &(shoal_data_options){.header = SHOAL_HEADER_NO, .drop_columns = "1"}),
                  2, 2, 2, 3, 4, 5);
}

/* A column of words beside numbers: they are numbered by the order of their bytes. */
static void test_words(void **state)
{
    (void)state;
    const char *text = "kind,x\ndog,1\n\"c\"\"at\",2\nZebra,3\ndog,4\n";
    shoal_data *data = open_with(write_text("k.csv", text), &(shoal_data_options){.target = "kind"});
    assert_int_equal(shoal_data_target(data), 0);
    assert_string_equal(shoal_data_word(data, 0), "Zebra");
    assert_string_equal(shoal_data_word(data, 1), "c\"at");
    assert_string_equal(shoal_data_word(data, 2), "dog");
    assert_null(shoal_data_word(data, 3));
    assert_null(shoal_data_word(data, -1));
    EXPECT_VALUES(data, 4, 2, 2, 1, 1, 2, 0, 3, 2, 4);
    /* A target that is not kept is read all the same, as the last column. */
    data = open_with(write_text("k.csv", "kind,x,y\n7,1,a\n8,2,b\n"),
                     &(shoal_data_options){.target = "3", .keep_columns = "x"});
    assert_int_equal(shoal_data_target(data), 1);
    assert_string_equal(shoal_data_column_name(data, 1), "y");
    assert_string_equal(shoal_data_word(data, 1), "b");
    EXPECT_VALUES(data, 2, 2, 1, 0, 2, 1);
    /* Numbers stay numbers, and some text among them makes all of them words. */
    data = open_with(write_text("k.csv", "10,1\n9,2\n10.0,3\n"), &(shoal_data_options){.target = "1"});
    assert_null(shoal_data_word(data, 0));
    EXPECT_VALUES(data, 3, 2, 10, 1, 9, 2, 10, 3);
    data = open_with(write_text("k.csv", "10,1\n9,2\nten,3\n"), &(shoal_data_options){.target = "1"});
    assert_string_equal(shoal_data_word(data, 0), "10");
    EXPECT_VALUES(data, 3, 2, 0, 1, 1, 2, 2, 3);
    /* What is not a column is not an error here. */
    data = open_with(write_text("k.csv", "1,2\n3,4\n"), &(shoal_data_options){.target = "labels.csv"});
    assert_int_equal(shoal_data_target(data), -1);
    shoal_data_free(&data);
}

static void test_words_that_are_refused(void **state)
{
    (void)state;
    const shoal_data_options first = {.target = "1"};
    refuse_with(write_text("k.csv", "a\x01,1\nb,2\na\x01,2\n"), &first, SHOAL_INVALID, "not npy, npz");
    refuse_with(write_text("k.csv", "a\xff,1\nb,2\na\xff,2\n"), &first, SHOAL_INVALID, "not UTF-8");
    char text[2 * 300 + 16];
    memset(text, 'w', sizeof text);
    memcpy(text, "a,1\na,2\n", 8);
    strcpy(text + 8 + 300, ",1\n");
    refuse_with(write_text("k.csv", text), &first, SHOAL_INVALID, "line 3, column 1: the name of a class is longer");
    refuse_with(write_text("k.csv", "kind,x\na,1\n,2\n"), &first, SHOAL_INVALID, "1 value is missing");
    refuse_with(write_text("k.csv", "kind,x\na,1\nb,2\n"),
                &(shoal_data_options){.target = "kind", .drop_columns = "kind"}, SHOAL_USAGE, "which is the target");
    refuse_with(write_text("k.csv", "x,y,z\n1,2,3\n"), &(shoal_data_options){.target = "", .keep_columns = "x,y"},
                SHOAL_USAGE, "name it with --target");
    refuse_with(write_text("k.csv", "kind,x\na,1\nb,2\n"), &(shoal_data_options){.target = ""}, SHOAL_INVALID,
                "\"a\" is not a number; --drop-column kind leaves the column out, --target kind makes it the target");
    refuse_with(write_text("k.csv", "x,x\n1,2\n"), &(shoal_data_options){.target = "x"}, SHOAL_USAGE,
                "columns 1 and 2 are both called \"x\"");
}

/* More different numbers than words may be: they stay numbers, and text is then refused. */
static void test_many_numbers_as_target(void **state)
{
    (void)state;
    enum { ROWS = 10000 };
    char *text = malloc(ROWS * 16 + 16), *at = text;
    for (int i = 0; i < ROWS; i++)
        at += sprintf(at, "%d,%d.5\n", i, i % 5000);
    shoal_data *data = open_with(write_text("n.csv", text), &(shoal_data_options){.target = "2"});
    double *values = all_values(data);
    for (int i = 0; i < ROWS; i++)
        assert_true(values[2 * i] == i && values[2 * i + 1] == i % 5000 + 0.5);
    free(values);
    shoal_data_free(&data);
    strcpy(at, "1,x\n");
    refuse_with(write_text("n.csv", text), &(shoal_data_options){.target = "2"}, SHOAL_INVALID,
                "line 10001, column 2: text in a column of more than 4096 different numbers");
    at = text;
    for (int i = 0; i < ROWS; i++)
        at += sprintf(at, "%d,w%d\n", i, i ? i : 1);
    refuse_with(write_text("n.csv", text), &(shoal_data_options){.target = "2"}, SHOAL_INVALID, "are they classes?");
    free(text);
}

static void test_quotes(void **state)
{
    (void)state;
    EXPECT_VALUES(open_text("\"1\",\"2\"\n\"3\" , 4\n"), 2, 2, 1, 2, 3, 4);
    EXPECT_VALUES(open_text("\"1\" \"2\"\n3 \"4\" \n"), 2, 2, 1, 2, 3, 4);
    refuse_text("1,2\n3,\"4\n", "line 2: a quote is opened and never closed");
    refuse_text("\"1,2\n3,4\n", "line 1: a quote is opened and never closed");
    refuse_text("1,2\n3,\"4\"5\n", "line 2, column 2: \"\"4\"5\" is not a number");
}

static void test_special_values(void **state)
{
    (void)state;
    shoal_data *data = open_text("nan,inf\n-inf,1e400\n");
    double *values = all_values(data);
    assert_true(isnan(values[0]) && values[1] == INFINITY && values[2] == -INFINITY && values[3] == INFINITY);
    free(values);
    shoal_data_free(&data);
}

static void test_bad_fields(void **state)
{
    (void)state;
    refuse_text("1,2\n3,x\n", "t.csv: line 2, column 2: \"x\" is not a number");
    refuse_text("a,b\n1,2\n3,x\n", "line 3, column 2 (b): \"x\" is not a number");
    refuse_text("a,b\n1,cat\n", "\"cat\" is not a number; --drop-column b leaves the column out");
    refuse_text("1,2\n3,\n", "1 value is missing, the first in line 2, column 2;");
    refuse_text("1,2\n\"\",4\n", "1 value is missing, the first in line 2, column 1;");
    refuse_text("1,2\n3,0x10\n", "\"0x10\" is not a number");
    refuse_text("1,5;2,5\n3,5;4,5\n",
                "line 2, column 1 (1,5): \"3,5\" is not a number; write numbers like 1234.5, without commas");
    refuse_text("1,2\n3,4 5\n", "\"4 5\" is not a number");
}

static void test_ragged_rows(void **state)
{
    (void)state;
    refuse_text("1,2,3\n4,5\n", "line 2 has fewer fields (2) than line 1 (3)");
    refuse_text("1,2\n3,4\n5,6,7\n", "line 3 has more fields than line 1 (2)");
    refuse_text("# note\n1 2 3\n\n4\n", "line 4 has fewer fields (1) than line 2 (3)");
    refuse_text("1,2\n3,4,\n", "line 2 has more fields than line 1 (2)");
}

static void test_nothing_there(void **state)
{
    (void)state;
    refuse_text("", "the file is empty");
    refuse_text("\n\n  \n", "no rows");
    refuse_text("# only a comment\n", "no rows");
    refuse_text("a,b,c\n", "no rows");
    refuse_text("\377\3761", "UTF-16");
    refuse(write_file("t.csv", "1,2\0003\n", 7), SHOAL_INVALID, "not npy, npz");
}

static void test_dropped_columns(void **state)
{
    (void)state;
    const char *text = "x,kind,y\n1,\"a,\nb\",2\n3,,4\n";
    const char *path = write_text("d.csv", text);
    shoal_data *data = open_with(path, &(shoal_data_options){.drop_columns = "kind"});
    assert_string_equal(shoal_data_column_name(data, 1), "y");
    EXPECT_VALUES(data, 2, 2, 1, 2, 3, 4);
    EXPECT_VALUES(open_with(path, &(shoal_data_options){.drop_columns = "2"}), 2, 2, 1, 2, 3, 4);
    EXPECT_VALUES(open_with(path, &(shoal_data_options){.drop_columns = " kind , x"}), 2, 1, 2, 4);
    refuse_with(path, &(shoal_data_options){.drop_columns = "z"}, SHOAL_USAGE, "no column \"z\"");
    refuse_with(path, &(shoal_data_options){.drop_columns = "0"}, SHOAL_USAGE, "no column \"0\"");
    refuse_with(path, &(shoal_data_options){.drop_columns = "4"}, SHOAL_USAGE, "no column \"4\"");
    refuse_with(path, &(shoal_data_options){.drop_columns = ""}, SHOAL_USAGE, "no column \"\"");
    refuse_with(path, &(shoal_data_options){.drop_columns = "99999999999999999999999"}, SHOAL_USAGE, "no column");
    refuse_with(path, &(shoal_data_options){.drop_columns = "1,2,3"}, SHOAL_USAGE, "no column is left");
    refuse_with(write_text("d.csv", "x,kind,y\n1,\"a,\nb\",2\n3,,z\n"), &(shoal_data_options){.drop_columns = "2"},
                SHOAL_INVALID, "line 4, column 3 (y): \"z\" is not a number");
    refuse_with(write_text("d.csv", "1 2\n"), &(shoal_data_options){.columns = 2}, SHOAL_USAGE, "raw file needs");
}

static void test_columns_of_text(void **state)
{
    (void)state;
    const char *path = write_text("d.csv", "x,kind,y\n1,cat,2\n3,,4\n5,7,z\n");
    shoal_data *data = open_with(path, &(shoal_data_options){.keep_text = true, .missing = SHOAL_MISSING_KEEP});
    assert_null(shoal_data_column_text(data, 0));
    assert_null(shoal_data_column_text(data, -1));
    assert_null(shoal_data_column_text(data, 3));
    assert_non_null(strstr(shoal_data_column_text(data, 1), "d.csv: line 2, column 2 (kind): \"cat\" is not a number"));
    assert_non_null(strstr(shoal_data_column_text(data, 2), "d.csv: line 4, column 3 (y): \"z\" is not a number"));
    assert_int_equal(data_select(&data, (int64_t[]){2, 0}, 2), SHOAL_OK);
    assert_non_null(strstr(shoal_data_column_text(data, 0), "\"z\" is not a number"));
    assert_null(shoal_data_column_text(data, 1));
    shoal_data_free(&data);
    refuse_with(write_text("r.csv", "1,a\n2,b\n3\n"),
                &(shoal_data_options){.keep_text = true, .header = SHOAL_HEADER_NO}, SHOAL_INVALID, "line 3");
    data = open_with(path, &(shoal_data_options){.keep_text = true, .missing = SHOAL_MISSING_KEEP, .target = "kind"});
    assert_null(shoal_data_column_text(data, 1)); /* whose words are known */
    shoal_data_free(&data);
}

/* Rows that cross the ends of chunks, in plain text, in gzip members, and with a temporary file. */
static void test_many_rows(void **state)
{
    (void)state;
    enum { ROWS = 200000, PIECES = 3 };
    char *text = malloc(ROWS * 32), *at = text;
    for (int i = 0; i < ROWS; i++)
        at += sprintf(at, "%d,%d.25%s\"%d\"%s", i, i % 1000, i % 3 ? "," : " , ", -i, i % 7 ? "\n" : "\r\n");
    size_t size = (size_t)(at - text), done = 0;
    write_file("m.csv", text, size);
    for (int piece = 0; piece < PIECES; piece++) {
        size_t end = piece + 1 < PIECES ? size * (size_t)(piece + 1) / PIECES : size;
        append_gzip("m.csv.gz", text + done, end - done);
        done = end;
    }
    for (int round = 0; round < 3; round++) {
        shoal_data *data =
            open_with(file_path(round ? "m.csv.gz" : "m.csv"), &(shoal_data_options){.memory = round == 2});
        assert_int_equal(data_buffer_is_file(&data->buffer), round == 2);
        assert_int_equal(shoal_data_rows(data), ROWS);
        double *values = all_values(data);
        for (int i = 0; i < ROWS; i++)
            assert_true(values[3 * i] == i && values[3 * i + 1] == i % 1000 + 0.25 && values[3 * i + 2] == -i);
        free(values);
        shoal_data_free(&data);
    }
    free(text);
}

/* A row longer than a chunk, and a line that is too long. */
static void test_wide_rows(void **state)
{
    (void)state;
    enum { COLUMNS = 700000 };
    char *text = malloc(4 * COLUMNS + 1), *at = text;
    for (int i = 0; i < 2 * COLUMNS; i++) {
        *at++ = (char)('0' + i % 10);
        *at++ = i % COLUMNS == COLUMNS - 1 ? '\n' : ' ';
    }
    shoal_data *data = open_data(write_file("w.txt", text, (size_t)(at - text)));
    assert_int_equal(shoal_data_rows(data), 2);
    assert_int_equal(shoal_data_columns(data), COLUMNS);
    shoal_data_free(&data);
    free(text);
    size_t too_long = ((size_t)64 << 20) + 10;
    text = malloc(too_long);
    memset(text, '1', too_long);
    refuse(write_file("w.txt", text, too_long), SHOAL_INVALID, "line 1 is longer than 64 MiB");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_delimiters),
        cmocka_unit_test(test_one_column_or_one_row),
        cmocka_unit_test(test_header),
        cmocka_unit_test(test_quotes),
        cmocka_unit_test(test_special_values),
        cmocka_unit_test(test_bad_fields),
        cmocka_unit_test(test_ragged_rows),
        cmocka_unit_test(test_nothing_there),
        cmocka_unit_test(test_dropped_columns),
        cmocka_unit_test(test_columns_of_text),
        cmocka_unit_test(test_many_rows),
        cmocka_unit_test(test_wide_rows),
        cmocka_unit_test(test_header_by_itself),
        cmocka_unit_test(test_header_as_told),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_words_that_are_refused),
        cmocka_unit_test(test_many_numbers_as_target),
    };
    return cmocka_run_group_tests_name("data_text", tests, folder_setup, folder_teardown);
}
