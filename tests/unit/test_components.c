/* src/run/components.c: the eigenvectors of the covariance, of rows of many kinds, and the same bits for any number of
 * threads. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <shoal/error.h>

#include "base/memory.h"
#include "base/pool.h"
#include "base/random.h"
#include "data/image/eigen.h"
#include "run/components.h"

typedef struct crew_here {
    shoal_crew crew;
    base_pool *pool;
} crew_here;

static int each_here(const shoal_crew *self, int64_t items, int (*task)(void *, int64_t, int), void *context)
{
    return base_pool_each(((const crew_here *)self)->pool, items, task, context);
}

static run_components find(const double *rows, int64_t count, int64_t columns, int threads)
{
    crew_here here = {.crew = {.each = each_here, .threads = threads, .kernel = "portable"}};
    const size_t bytes = (size_t)(count * columns) * sizeof(double);
    double *used = malloc(bytes);
    run_components out;
    memcpy(used, rows, bytes);
    assert_int_equal(base_pool_new(&here.pool, threads), SHOAL_OK);
    assert_int_equal(run_components_find(&out, used, count, columns, &here.crew), SHOAL_OK);
    base_pool_free(&here.pool);
    free(used);
    return out;
}

/* Rows whose columns spread by falling factors around 7, mixed by a few rotations. */
static double *make_rows(int64_t count, int64_t columns, double fall, double scale)
{
    double *rows = malloc((size_t)(count * columns) * sizeof *rows);
    for (int64_t r = 0; r < count; r++) {
        double *row = rows + r * columns;
        for (int64_t j = 0; j < columns; j++)
            row[j] = (base_random_unit(3, BASE_FOR_DATA, (uint64_t)(r * columns + j), 0) - 0.5) * pow(fall, (double)j);
        for (int64_t j = 0; j + 1 < columns; j++) {
            const double a = row[j], b = row[j + 1];
            row[j] = 0.8 * a - 0.6 * b;
            row[j + 1] = 0.6 * a + 0.8 * b;
        }
        for (int64_t j = 0; j < columns; j++)
            row[j] = (row[j] + 7) * scale;
    }
    return rows;
}

/* Compares with the eigenvectors of the covariance, which is formed. */
static void compare(const double *rows, int64_t count, int64_t columns, double slack)
{
    const size_t square = (size_t)(columns * columns);
    double *mean = calloc((size_t)columns, sizeof *mean), *matrix = calloc(square, sizeof *matrix),
           *values = malloc((size_t)columns * sizeof *values), *vectors = malloc(square * sizeof *vectors), total = 0;
    base_pool *pool = NULL;
    for (int64_t i = 0; i < count * columns; i++)
        mean[i % columns] += rows[i] / (double)count;
    for (int64_t r = 0; r < count; r++)
        for (int64_t i = 0; i < columns; i++)
            for (int64_t j = 0; j < columns; j++)
                matrix[i * columns + j] +=
                    (rows[r * columns + i] - mean[i]) * (rows[r * columns + j] - mean[j]) / (double)count;
    for (int64_t i = 0; i < columns; i++)
        total += matrix[i * columns + i];
    assert_int_equal(base_pool_new(&pool, 1), SHOAL_OK);
    assert_int_equal(data_eigen(values, vectors, matrix, columns, pool), SHOAL_OK);
    base_pool_free(&pool);
    run_components found = find(rows, count, columns, 1);
    for (int k = 0; k < 2; k++) {
        assert_true(fabs(found.share[k] - values[k] / total) < slack);
        for (int64_t j = 0; j < columns; j++)
            assert_true(fabs(found.direction[k * columns + j] - vectors[k * columns + j]) < slack);
    }
    for (int64_t j = 0; j < columns; j++)
        assert_true(fabs(found.mean[j] - mean[j]) <= 1e-12 * fabs(mean[j]));
    run_components_release(&found);
    free(mean);
    free(matrix);
    free(values);
    free(vectors);
}

static void they_are_the_eigenvectors_of_the_covariance(void **state)
{
    static const int64_t columns[] = {2, 3, 9, COMPONENTS_STEPS, 150};
    (void)state;
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
        double *rows = make_rows(200, columns[i], 0.9, 1);
        compare(rows, 200, columns[i], columns[i] > COMPONENTS_STEPS ? 1e-7 : 1e-10);
        free(rows);
    }
}

static void tiny_and_huge_values_do_no_harm(void **state)
{
    (void)state;
    for (int exponent = -250; exponent <= 130; exponent += 190) {
        double *plain = make_rows(50, 5, 0.7, 1), *scaled = make_rows(50, 5, 0.7, pow(10, exponent));
        run_components expected = find(plain, 50, 5, 1), found = find(scaled, 50, 5, 1);
        for (int j = 0; j < 10; j++)
            assert_true(fabs(found.direction[j] - expected.direction[j]) < 1e-9);
        run_components_release(&expected);
        run_components_release(&found);
        free(plain);
        free(scaled);
    }
}

static void rows_that_vary_in_fewer_directions_have_two_axes_all_the_same(void **state)
{
    enum { ROWS = 30, COLUMNS = 60 };
    static double rows[ROWS * COLUMNS];
    (void)state;
    for (int kind = 0; kind < 3; kind++) { /* all equal; on a line; each the only one with its value */
        for (int i = 0; i < ROWS * COLUMNS; i++)
            rows[i] = kind == 0   ? 5
                      : kind == 1 ? (double)(i / COLUMNS) * (i % COLUMNS == 1)
                                  : i % COLUMNS == i / COLUMNS;
        run_components found = find(rows, ROWS, COLUMNS, 1);
        double product = 0, square[2] = {0};
        for (int j = 0; j < COLUMNS; j++) {
            product += found.direction[j] * found.direction[COLUMNS + j];
            for (int k = 0; k < 2; k++)
                square[k] += found.direction[k * COLUMNS + j] * found.direction[k * COLUMNS + j];
        }
        assert_true(fabs(product) < 1e-9 && fabs(square[0] - 1) < 1e-9 && fabs(square[1] - 1) < 1e-9);
        assert_true(kind == 0 ? isnan(found.share[0]) : kind == 1 ? fabs(found.share[0] - 1) < 1e-9 : true);
        assert_true(kind != 1 || (fabs(found.direction[1] - 1) < 1e-9 && found.share[1] < 1e-9));
        run_components_release(&found);
    }
}

static void threads_change_no_bit(void **state)
{
    double *rows = make_rows(300, 200, 0.98, 1);
    (void)state;
    run_components one = find(rows, 300, 200, 1), many = find(rows, 300, 200, 5);
    assert_memory_equal(one.direction, many.direction, 400 * sizeof(double));
    assert_memory_equal(one.share, many.share, sizeof one.share);
    run_components_release(&one);
    run_components_release(&many);
    free(rows);
}

static void memory_that_is_not_there_is_told(void **state)
{
    double *rows = make_rows(20, 50, 0.9, 1);
    int status = SHOAL_MEMORY;
    (void)state;
    for (int allowed = 0; status != SHOAL_OK; allowed++) {
        crew_here here = {.crew = {.each = each_here, .threads = 1, .kernel = "portable"}};
        run_components out;
        assert_int_equal(base_pool_new(&here.pool, 1), SHOAL_OK);
        base_memory_fail_after(allowed);
        status = run_components_find(&out, rows, 20, 50, &here.crew);
        base_memory_fail_after(-1);
        base_pool_free(&here.pool);
        assert_true(status == SHOAL_OK || (status == SHOAL_MEMORY && !out.mean && !out.direction));
        if (status == SHOAL_OK)
            run_components_release(&out);
    }
    free(rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(they_are_the_eigenvectors_of_the_covariance),
        cmocka_unit_test(tiny_and_huge_values_do_no_harm),
        cmocka_unit_test(rows_that_vary_in_fewer_directions_have_two_axes_all_the_same),
        cmocka_unit_test(threads_change_no_bit),
        cmocka_unit_test(memory_that_is_not_there_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
