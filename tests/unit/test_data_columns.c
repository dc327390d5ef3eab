/* Columns by name and number: --columns, --drop-column and --target of any format. */
#include "data_support.h"

static const char *write_table(void)
{
    return write_text("t.csv", "id,age,2,age\n1,2,3,4\n5,6,7,8\n");
}

static shoal_data *kept(const char *list)
{
    return open_with(write_table(), &(shoal_data_options){.keep_columns = list});
}

static void by_name_and_number(void **state)
{
    (void)state;
    EXPECT_VALUES(kept("3,1"), 2, 2, 3, 1, 7, 5);
    EXPECT_VALUES(kept(" id , -1"), 2, 2, 1, 4, 5, 8);
    EXPECT_VALUES(kept("2"), 2, 1, 3, 7); /* a name counts first */
    EXPECT_VALUES(kept("age,id"), 2, 3, 2, 4, 1, 6, 8, 5);
    EXPECT_VALUES(kept("3-4"), 2, 2, 3, 4, 7, 8);
    EXPECT_VALUES(kept("3--1,id"), 2, 3, 3, 4, 1, 7, 8, 5);
    EXPECT_VALUES(kept("-2--1"), 2, 2, 3, 4, 7, 8);
    EXPECT_VALUES(open_with(write_table(), &(shoal_data_options){.keep_columns = "1-4", .drop_columns = "age"}), 2, 2,
                  1, 3, 5, 7);
}

static void of_other_formats(void **state)
{
    static const float values[] = {1, 2, 3, 4, 5, 6};
    (void)state;
    assert_int_equal(shoal_npy_write(file_path("a.npy"), values, SHOAL_FLOAT32, 2, (int64_t[]){2, 3}), SHOAL_OK);
    EXPECT_VALUES(open_with(file_path("a.npy"), &(shoal_data_options){.keep_columns = "-1,1"}), 2, 2, 3, 1, 6, 4);
    shoal_data *data = open_with(file_path("a.npy"), &(shoal_data_options){.drop_columns = "1", .target = "-2"});
    assert_int_equal(shoal_data_target(data), 0);
    EXPECT_VALUES(data, 2, 2, 2, 3, 5, 6);
    data = open_with(file_path("a.npy"), &(shoal_data_options){.target = "2"});
    assert_int_equal(shoal_data_target(data), 1);
    assert_non_null(data->mapped); /* nothing was copied */
    shoal_data_free(&data);
    data = open_with("gen:uniform?rows=10&cols=5", &(shoal_data_options){.drop_columns = "2-4"});
    assert_int_equal(shoal_data_columns(data), 2);
    shoal_data_free(&data);
}

static void what_is_refused(void **state)
{
    static const struct {
        const char *list, *words;
    } cases[] = {
        {"agee", "--columns: there is no column \"agee\"; did you mean \"age\"?"},
        {"nothing", "there is no column \"nothing\"; the columns are id, age, 2, age"},
        {"5", "no column \"5\""},
        {"0", "no column \"0\""},
        {"-5", "no column \"-5\""},
        {"4-3", "no column \"4-3\""},
        {"3-9", "no column \"3-9\""},
        {"3-", "no column \"3-\""},
        {"--1", "no column \"--1\""},
        {"1,,3", "no column \"\""},
        {"id,1", "column \"1\" is listed twice"},
        {"99999999999999999999999999", "no column"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        refuse_with(write_table(), &(shoal_data_options){.keep_columns = cases[i].list}, SHOAL_USAGE, cases[i].words);
    refuse_with(write_table(), &(shoal_data_options){.keep_columns = "id", .drop_columns = "1"}, SHOAL_USAGE,
                "no column is left");
}

static void names_in_messages_are_clean(void **state)
{
    (void)state;
    refuse_with(write_text("t.csv", "\"new\nline\",b,c,d,e,f,g,h,i,j,k,l,m,n\n1,2,3,4,5,6,7,8,9,1,2,3,4,5\n"),
                &(shoal_data_options){.keep_columns = "something"}, SHOAL_USAGE, "new?line, b, c");
    assert_non_null(strstr(shoal_error(), "k, l and 2 more"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_name_and_number),
        cmocka_unit_test(of_other_formats),
        cmocka_unit_test(what_is_refused),
        cmocka_unit_test(names_in_messages_are_clean),
    };
    return cmocka_run_group_tests_name("data_columns", tests, folder_setup, folder_teardown);
}
