/* src/data/image/eigen.c: A v = lambda v for matrices of many kinds, and the same bits for any number of threads. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <shoal/error.h>

#include "base/random.h"
#include "data/image/eigen.h"

typedef struct problem {
    int64_t n;
    double *matrix, *values, *vectors;
} problem;

static problem solve(const double *matrix, int64_t n, int threads)
{
    const size_t bytes = (size_t)(n * n) * sizeof(double);
    problem out = {n, malloc(bytes), malloc((size_t)n * sizeof(double)), malloc(bytes)};
    double *used = malloc(bytes);
    base_pool *pool = NULL;
    memcpy(out.matrix, matrix, bytes);
    memcpy(used, matrix, bytes);
    assert_int_equal(base_pool_new(&pool, threads), SHOAL_OK);
    if (data_eigen(out.values, out.vectors, used, n, pool) < 0)
        fail_msg("%s", shoal_error());
    base_pool_free(&pool);
    free(used);
    return out;
}

static void release(problem *in)
{
    free(in->matrix);
    free(in->values);
    free(in->vectors);
}

/* Falling values, unit vectors at right angles, A v = lambda v, and the sign that was promised. */
static void check(const problem *in)
{
    const int64_t n = in->n;
    double scale = fabs(in->values[0]) + fabs(in->values[n - 1]), slack = 1e-13 * (double)n;
    for (int64_t k = 0; k < n; k++) {
        const double *v = in->vectors + k * n;
        int64_t greatest = 0;
        assert_true(k == 0 || in->values[k] <= in->values[k - 1]);
        for (int64_t i = 0; i < n; i++) {
            double image = 0;
            for (int64_t j = 0; j < n; j++)
                image += in->matrix[i * n + j] * v[j];
            assert_true(fabs(image - in->values[k] * v[i]) <= slack * scale);
            greatest = fabs(v[i]) > fabs(v[greatest]) ? i : greatest;
        }
        assert_true(v[greatest] > 0);
        for (int64_t l = 0; l <= k; l++) {
            double product = 0;
            for (int64_t j = 0; j < n; j++)
                product += v[j] * in->vectors[l * n + j];
            assert_true(fabs(product - (k == l)) <= slack);
        }
    }
}

static void fill(double *matrix, int64_t n, int kind)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j <= i; j++) {
            double random = base_random_unit(1, BASE_FOR_DATA, (uint64_t)(i * n + j), 0) - 0.5;
            double value = kind == 0   ? random
                           : kind == 1 ? (i == j       ? 2.0
                                          : i == j + 1 ? -1.0
                                                       : 0.0)                          /* three diagonals already */
                           : kind == 2 ? (double)(i == j)                              /* one value n times */
                           : kind == 3 ? (double)((i % 3) + 1) * (double)((j % 3) + 1) /* rank one */
                           : kind == 4 ? 0.0
                           : kind == 5 ? random * 1e-200
                           : kind == 6 ? random * 1e200
                                       : random * (i == j ? 1e-12 : 1.0) * (i > n / 2 ? 1e-9 : 1.0); /* far apart */
            matrix[i * n + j] = matrix[j * n + i] = value;
        }
}

static void vectors_are_those_of_the_matrix(void **state)
{
    static const int64_t sizes[] = {1, 2, 3, 5, 8, 33, 70};
    (void)state;
    for (int kind = 0; kind < 8; kind++)
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            double *matrix = malloc((size_t)(sizes[i] * sizes[i]) * sizeof *matrix);
            fill(matrix, sizes[i], kind);
            problem done = solve(matrix, sizes[i], 1);
            check(&done);
            release(&done);
            free(matrix);
        }
}

static void known_values_come_out(void **state)
{
    (void)state;
    enum { N = 20 };
    double matrix[N * N];
    fill(matrix, N, 1);
    problem done = solve(matrix, N, 1);
    for (int k = 0; k < N; k++) /* of the matrix of second differences */
        assert_true(fabs(done.values[k] - (2 - 2 * cos(3.14159265358979323846 * (N - k) / (N + 1)))) < 1e-13);
    release(&done);
}

static void threads_change_no_bit(void **state)
{
    enum { N = 101 };
    static double matrix[N * N];
    (void)state;
    fill(matrix, N, 0);
    problem one = solve(matrix, N, 1), many = solve(matrix, N, 5);
    assert_memory_equal(one.values, many.values, N * sizeof(double));
    assert_memory_equal(one.vectors, many.vectors, N * N * sizeof(double));
    release(&one);
    release(&many);
}

static void what_is_not_finite_is_refused(void **state)
{
    double matrix[4] = {1, NAN, NAN, 1}, values[2], vectors[4];
    base_pool *pool = NULL;
    (void)state;
    assert_int_equal(base_pool_new(&pool, 1), SHOAL_OK);
    assert_int_equal(data_eigen(values, vectors, matrix, 2, pool), SHOAL_INVALID);
    base_pool_free(&pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors_are_those_of_the_matrix),
        cmocka_unit_test(known_values_come_out),
        cmocka_unit_test(threads_change_no_bit),
        cmocka_unit_test(what_is_not_finite_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
