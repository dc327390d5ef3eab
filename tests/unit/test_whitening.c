/* src/data/whitening*.c: what whitening promises of the rows, its file, and files that are none. */
#include "data_support.h"

#include <math.h>

#include "base/memory.h"
#include "base/random.h"
#include "data/format/safetensors.h"
#include "data/image/whitening.h"

enum { ROWS = 1300, COLUMNS = 12 };

/* Rows whose columns have much in common, around means of their own. */
static void fill(double *values)
{
    for (int64_t r = 0; r < ROWS; r++) {
        double common = base_random_unit(1, BASE_FOR_DATA, (uint64_t)r, 0);
        for (int64_t j = 0; j < COLUMNS; j++)
            values[r * COLUMNS + j] = common * (double)(j + 1) + (double)j * 10 +
                                      base_random_unit(2, BASE_FOR_DATA, (uint64_t)r, (uint32_t)j);
    }
}

static base_pool *pool_of(int threads)
{
    base_pool *pool = NULL;
    assert_int_equal(base_pool_new(&pool, threads), SHOAL_OK);
    return pool;
}

static double covariance(const double *values, int i, int j)
{
    double sum = 0;
    for (int r = 0; r < ROWS; r++)
        sum += values[r * COLUMNS + i] * values[r * COLUMNS + j];
    return sum / ROWS;
}

static double values[ROWS * COLUMNS], others[ROWS * COLUMNS];
static float singles[ROWS * COLUMNS];
static const data_rows rows = {values, SHOAL_FLOAT64, ROWS, COLUMNS},
                       other_rows = {others, SHOAL_FLOAT64, ROWS, COLUMNS};

static void whitened_columns_have_nothing_in_common(void **state)
{
    static const data_whiten methods[] = {DATA_WHITEN_ZCA, DATA_WHITEN_PCA};
    base_pool *pool = pool_of(2);
    (void)state;
    for (int m = 0; m < 2; m++) {
        data_whitening how = {.whiten = methods[m]};
        fill(values);
        assert_int_equal(data_whitening_learn(&how, &rows, pool), SHOAL_OK);
        for (int i = 0; i < COLUMNS; i++)
            for (int j = 0; j < COLUMNS; j++)
                assert_true(fabs(covariance(values, i, j) - (i == j)) < 1e-9);
        data_whitening_release(&how);
    }
    base_pool_free(&pool);
}

/* ZCA changes the rows as little as it can: each column stays most like itself. */
static void zca_leaves_columns_where_they_are(void **state)
{
    base_pool *pool = pool_of(1);
    data_whitening how = {.whiten = DATA_WHITEN_ZCA, .epsilon = 0.1};
    (void)state;
    fill(values);
    assert_int_equal(data_whitening_learn(&how, &rows, pool), SHOAL_OK);
    for (int i = 0; i < COLUMNS; i++) {
        for (int j = 0; j < COLUMNS; j++) {
            assert_true(how.matrix[i * COLUMNS + j] == how.matrix[j * COLUMNS + i]);
            assert_true(i == j || how.matrix[i * COLUMNS + i] > fabs(how.matrix[i * COLUMNS + j]));
        }
    }
    data_whitening_release(&how);
    base_pool_free(&pool);
}

static void threads_change_no_bit_and_a_file_does_the_same(void **state)
{
    base_pool *one = pool_of(1), *many = pool_of(4);
    data_whitening how = {.centre = true,
                          .whiten = DATA_WHITEN_PCA,
                          .range = true,
                          .epsilon = 0.2,
                          .low = 0.1,
                          .high = 0.9,
                          .size = 2,
                          .channels = 3},
                   again = how, loaded = {0};
    const char *path = file_path("w.safetensors");
    (void)state;
    fill(values);
    fill(others);
    assert_int_equal(data_whitening_learn(&how, &rows, one), SHOAL_OK);
    assert_int_equal(data_whitening_learn(&again, &other_rows, many), SHOAL_OK);
    assert_memory_equal(values, others, sizeof values);
    assert_int_equal(data_whitening_save(&how, path), SHOAL_OK);
    assert_int_equal(data_whitening_load(&loaded, path), SHOAL_OK);
    assert_true(loaded.size == 2 && loaded.channels == 3 && loaded.centre && loaded.whiten == DATA_WHITEN_PCA);
    fill(others);
    assert_int_equal(data_whitening_apply(&loaded, &other_rows, many), SHOAL_OK);
    assert_memory_equal(values, others, sizeof values);
    data_whitening_release(&how);
    data_whitening_release(&again);
    data_whitening_release(&loaded);
    base_pool_free(&one);
    base_pool_free(&many);
}

static void ranges_are_clipped_at_three_deviations(void **state)
{
    base_pool *pool = pool_of(1);
    data_whitening how = {.range = true, .low = -1, .high = 1};
    double sum = 0, squares = 0;
    (void)state;
    fill(values);
    values[7] = 1e6;
    for (int i = 0; i < ROWS * COLUMNS; i++)
        sum += values[i] / (ROWS * COLUMNS);
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        singles[i] = (float)values[i];
        squares += (values[i] - sum) * (values[i] - sum);
    }
    double reach = 3 * sqrt(squares / (ROWS * COLUMNS - 1)), first = (values[0] - sum) / reach;
    const data_rows in_singles = {singles, SHOAL_FLOAT32, ROWS, COLUMNS};
    assert_int_equal(data_whitening_learn(&how, &in_singles, pool), SHOAL_OK);
    assert_true(singles[7] == 1.0f && fabs(singles[0] - first) < 1e-6);
    base_pool_free(&pool);
}

static void what_does_not_vary_is_told(void **state)
{
    base_pool *pool = pool_of(1);
    (void)state;
    for (int epsilon = 0; epsilon < 2; epsilon++) {
        data_whitening how = {.whiten = DATA_WHITEN_ZCA, .epsilon = epsilon};
        fill(values);
        for (int r = 0; r < ROWS; r++)
            values[r * COLUMNS + 3] = 5;
        assert_int_equal(data_whitening_learn(&how, &rows, pool), epsilon ? SHOAL_OK : SHOAL_INVALID);
        if (!epsilon)
            assert_non_null(strstr(shoal_error(), "direction 12 of 12 does not vary"));
        data_whitening_release(&how);
    }
    base_pool_free(&pool);
}

/* Writes a file of a whitening of 1 x 1 with one thing wrong, and expects the sentence. */
static void refuse_file(const data_tensor *tensors, int count, const data_metadata *metadata, const char *says)
{
    data_whitening how;
    const char *path = file_path("bad.safetensors");
    assert_int_equal(data_safetensors_write(path, tensors, count, metadata, 5), SHOAL_OK);
    assert_int_equal(data_whitening_load(&how, path), SHOAL_INVALID);
    if (!strstr(shoal_error(), says) || !strstr(shoal_error(), "bad.safetensors"))
        fail_msg("\"%s\" does not hold \"%s\"", shoal_error(), says);
    assert_true(!how.mean && !how.matrix);
}

static void files_that_are_no_whitening_are_refused(void **state)
{
    static const double good[4] = {0.5, 1, 0, 2}, bad[1] = {NAN}, empty[4] = {1, 1, 0, 2};
    data_tensor tensors[3] = {{"mean", SHOAL_FLOAT64, 1, {1}, good, 0},
                              {"matrix", SHOAL_FLOAT64, 2, {1, 1}, good, 0},
                              {"range", SHOAL_FLOAT64, 1, {4}, good, 0}};
    data_metadata metadata[5] = {
        {"kind", "whitening"}, {"method", "zca"}, {"size", "1"}, {"channels", "1"}, {"centre", "true"}};
    static const struct {
        int row;
        const char *text;
    } lies[] = {{0, "kmeans"}, {1, "svd"}, {2, "0"}, {2, "65"}, {2, "1x"}, {2, "99999999999999999999"},
                {3, "2"},      {3, "-1"}};
    data_whitening how;
    (void)state;
    const char *path = file_path("good.safetensors");
    assert_int_equal(data_safetensors_write(path, tensors, 3, metadata, 5), SHOAL_OK);
    assert_int_equal(data_whitening_load(&how, path), SHOAL_OK);
    data_whitening_release(&how);
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        const char *truth = metadata[lies[i].row].text;
        metadata[lies[i].row].text = lies[i].text;
        refuse_file(tensors, 3, metadata, "not a whitening");
        metadata[lies[i].row].text = truth;
    }
    metadata[2].text = "2";
    refuse_file(tensors, 3, metadata, "no tensor 'mean' of 4 float64");
    metadata[2].text = "1";
    refuse_file(tensors, 1, metadata, "no tensor 'matrix'");
    tensors[2].values = empty;
    refuse_file(tensors, 3, metadata, "'range' is not a range");
    tensors[2].values = good;
    tensors[1].values = bad;
    refuse_file(tensors, 3, metadata, "'matrix' is not finite");
}

static void every_failing_allocation_is_told(void **state)
{
    base_pool *pool = pool_of(1);
    int status = SHOAL_MEMORY;
    (void)state;
    int64_t n = 0;
    for (; status < 0; n++) {
        data_whitening how = {.whiten = DATA_WHITEN_ZCA, .epsilon = 0.1};
        assert_true(n < 50);
        fill(values);
        base_memory_fail_after(n);
        status = data_whitening_learn(&how, &rows, pool);
        base_memory_fail_after(-1);
        assert_true(status == SHOAL_OK || status == SHOAL_MEMORY);
        data_whitening_release(&how);
    }
    assert_true(n > 6);
    base_pool_free(&pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whitened_columns_have_nothing_in_common),
        cmocka_unit_test(zca_leaves_columns_where_they_are),
        cmocka_unit_test(threads_change_no_bit_and_a_file_does_the_same),
        cmocka_unit_test(ranges_are_clipped_at_three_deviations),
        cmocka_unit_test(what_does_not_vary_is_told),
        cmocka_unit_test(files_that_are_no_whitening_are_refused),
        cmocka_unit_test(every_failing_allocation_is_told),
    };
    return cmocka_run_group_tests(tests, folder_setup, folder_teardown);
}
