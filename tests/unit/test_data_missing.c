/* Missing values: refused with their count, filled in by exact means, or left out with their rows. */
#include "data_support.h"

#include <float.h>
#include <math.h>

#include "data/table/data_missing.h"
#include "data/image/exact_mean.h"

static const char table[] = "a,b,c\n1,2,3\n,NA,3\n4,5,?\nn/a,null,7\n";

static shoal_data *with(const char *text, int missing)
{
    return open_with(write_text("m.csv", text), &(shoal_data_options){.missing = missing});
}

static void of_text(void **state)
{
    (void)state;
    refuse(write_text("m.csv", table), SHOAL_INVALID,
           "5 values are missing, the first in line 3, column 1 (a); --missing mean fills in the mean of the column");
    shoal_data *data = with(table, SHOAL_MISSING_MEAN);
    assert_true(shoal_data_mean(data, 0) == 2.5 && shoal_data_mean(data, 2) == 13.0 / 3);
    assert_true(isnan(shoal_data_mean(data, 3)));
    assert_int_equal(data->missing, 5);
    EXPECT_VALUES(data, 4, 3, 1, 2, 3, 2.5, 3.5, 3, 4, 5, 13.0 / 3, 2.5, 3.5, 7);
    data = with(table, SHOAL_MISSING_DROP);
    assert_int_equal(data->source_rows, 4);
    assert_true(!data->gone[0] && data->gone[1] && data->gone[2] && data->gone[3]);
    EXPECT_VALUES(data, 1, 3, 1, 2, 3);
    data = with(table, SHOAL_MISSING_KEEP);
    assert_int_equal(shoal_data_rows(data), 4);
    shoal_data_free(&data);
    refuse(write_text("m.csv", "a,b\n1,nan\n2,\n3,-nan\n"), SHOAL_INVALID,
           "3 values are missing, the first in line 2, column 2 (b);");
    data = with("a,b\n1,nan\n2,3\n", SHOAL_MISSING_REFUSE); /* which is a number to those who want it */
    shoal_data_free(&data);
}

static const char *write_npy(const char *name, const void *values, shoal_type type)
{
    const char *path = file_path(name);
    assert_int_equal(shoal_npy_write(path, values, type, 2, (int64_t[]){3, 2}), SHOAL_OK);
    return path;
}

static void of_arrays(void **state)
{
    const float some[] = {1, 2, NAN, 4, 5, 6}, none[] = {1, 2, 3, 4, 5, 6};
    const double all[] = {1, NAN, 2, NAN, 3, NAN}, endless[] = {1, INFINITY, NAN, 2, 3, 4};
    data_missing found;
    (void)state;
    const char *path = write_npy("some.npy", some, SHOAL_FLOAT32);
    EXPECT_VALUES(open_with(path, &(shoal_data_options){.missing = SHOAL_MISSING_MEAN}), 3, 2, 1, 2, 3, 4, 5, 6);
    EXPECT_VALUES(open_with(path, &(shoal_data_options){.missing = SHOAL_MISSING_DROP, .memory = 1}), 2, 2, 1, 2, 5, 6);
    shoal_data *data = open_data(path);
    assert_int_equal(data_missing_count(&found, data), SHOAL_OK);
    assert_true(found.values == 1 && found.rows == 1 && found.first_row == 1 && found.first_column == 0);
    assert_int_equal(data_missing_refuse(data, &found, NULL), SHOAL_INVALID);
    assert_non_null(strstr(shoal_error(), "1 value is missing, the first in row 2, column 1;"));
    shoal_data_free(&data);
    for (int missing = SHOAL_MISSING_MEAN; missing <= SHOAL_MISSING_DROP; missing++) {
        data = open_with(write_npy("none.npy", none, SHOAL_FLOAT32), &(shoal_data_options){.missing = missing});
        assert_non_null(data->mapped); /* nothing was copied */
        shoal_data_free(&data);
    }
    refuse_with(write_npy("all.npy", all, SHOAL_FLOAT64), &(shoal_data_options){.missing = SHOAL_MISSING_MEAN},
                SHOAL_INVALID, "column 2 has no value at all");
    refuse_with(file_path("all.npy"), &(shoal_data_options){.missing = SHOAL_MISSING_DROP}, SHOAL_INVALID,
                "a value is missing in every row");
    refuse_with(write_npy("e.npy", endless, SHOAL_FLOAT64), &(shoal_data_options){.missing = SHOAL_MISSING_MEAN},
                SHOAL_INVALID, "column 2 has an infinite value");
}

/* What is known of a row is never made up. */
static void of_the_target(void **state)
{
    (void)state;
    const char *path = write_text("m.csv", "x,kind\n1,cat\n,dog\n3,\n5,cat\n");
    refuse_with(path, &(shoal_data_options){.target = "kind", .missing = SHOAL_MISSING_MEAN}, SHOAL_INVALID,
                "column 2 (kind) is the target and has missing values");
    refuse_with(path, &(shoal_data_options){.target = "kind"}, SHOAL_INVALID,
                "the first in line 3, column 1 (x); --missing drop leaves out such rows"); /* mean would be refused */
    EXPECT_VALUES(open_with(path, &(shoal_data_options){.target = "kind", .missing = SHOAL_MISSING_DROP}), 2, 2, 1, 0,
                  5, 0);
    path = write_text("m.csv", "x,kind\n1,cat\n,dog\n");
    EXPECT_VALUES(open_with(path, &(shoal_data_options){.target = "kind", .missing = SHOAL_MISSING_MEAN}), 2, 2, 1, 0,
                  1, 1);
}

static void filled_from_elsewhere(void **state)
{
    shoal_data *data = with("1,\n,4\n", SHOAL_MISSING_KEEP);
    (void)state;
    assert_int_equal(data_missing_fill(&data, (const double[]){7, 8}), SHOAL_OK);
    EXPECT_VALUES(data, 2, 2, 1, 8, 7, 4);
    data = with("1,\n,4\n", SHOAL_MISSING_KEEP);
    assert_int_equal(data_missing_fill(&data, (const double[]){NAN, 8}), SHOAL_INVALID);
    assert_non_null(strstr(shoal_error(), "nothing is known to fill in"));
    shoal_data_free(&data);
}

static void dropped_again(void **state)
{
    shoal_data *data = with("1,2\n,4\n5,6\n7,8\n", SHOAL_MISSING_DROP);
    (void)state;
    assert_int_equal(data_missing_drop(&data, (const bool[]){true, false, false}), SHOAL_OK);
    assert_int_equal(data->source_rows, 4);
    assert_true(data->gone[0] && data->gone[1] && !data->gone[2] && !data->gone[3]);
    EXPECT_VALUES(data, 2, 2, 5, 6, 7, 8);
}

static void dropped_from_generated_rows(void **state)
{
    shoal_data *all = open_data("gen:uniform?rows=4&cols=2&seed=3"),
               *some = open_data("gen:uniform?rows=4&cols=2&seed=3");
    double made[8];
    const void *rows = NULL;
    (void)state;
    assert_int_equal(shoal_data_type(all), SHOAL_FLOAT32);
    assert_int_equal(data_missing_drop(&some, (const bool[]){false, true, false, false}), SHOAL_OK);
    assert_int_equal(shoal_data_read(&rows, all, 0, 4, made), SHOAL_OK);
    assert_int_equal(shoal_data_rows(some), 3);
    assert_memory_equal(some->values, rows, 2 * sizeof(float));
    assert_memory_equal(some->values + 2 * sizeof(float), (const float *)rows + 4, 4 * sizeof(float));
    shoal_data_free(&all);
    shoal_data_free(&some);
}

/* ---- means ------------------------------------------------------------------------------------------------------- */

static double mean_of(const double *values, int count)
{
    exact_mean mean = {0};
    for (int i = 0; i < count; i++)
        exact_mean_add(&mean, values[i]);
    return exact_mean_value(&mean);
}

#define MEAN(...) mean_of((const double[]){__VA_ARGS__}, (int)(sizeof((double[]){__VA_ARGS__}) / sizeof(double)))

static void exact_means(void **state)
{
    (void)state;
    assert_true(isnan(mean_of(NULL, 0)));
    assert_true(MEAN(1, 2) == 1.5 && MEAN(0, -0.0) == 0 && MEAN(-3) == -3);
    assert_true(MEAN(1e300, 1, -1e300) == 1.0 / 3);
    assert_true(MEAN(DBL_MAX, DBL_MAX, DBL_MAX) == DBL_MAX && MEAN(-DBL_MAX, -DBL_MAX) == -DBL_MAX);
    assert_true(MEAN(DBL_MAX, -DBL_MAX, DBL_TRUE_MIN) == 0);
    assert_true(MEAN(DBL_TRUE_MIN, DBL_TRUE_MIN) == DBL_TRUE_MIN);
    assert_true(MEAN(DBL_TRUE_MIN, 0) == 0 && MEAN(3 * DBL_TRUE_MIN, 0) == 2 * DBL_TRUE_MIN); /* ties to even */
    /* The sum is halfway between two doubles, and the mean is not: rounding twice would be wrong. */
    assert_true(MEAN(0x1p53, 1, 0) == (double)((0x1p53L + 1) / 3));
    assert_true(MEAN(0.1, 0.2, 0.3) == 0.2 && MEAN(0.3, 0.1, 0.2) == 0.2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_text),
        cmocka_unit_test(of_arrays),
        cmocka_unit_test(of_the_target),
        cmocka_unit_test(dropped_again),
        cmocka_unit_test(dropped_from_generated_rows),
        cmocka_unit_test(exact_means),
        cmocka_unit_test(filled_from_elsewhere),
    };
    return cmocka_run_group_tests_name("data_missing", tests, folder_setup, folder_teardown);
}
