/* Patches made ready for learning.  See whitening.h. */
#include "whitening.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "eigen.h"

enum {
    BLOCK = 512 /* rows of a step of the covariance */,
    TILE = 8 /* its rows of a task */,
    ROWS = 64 /* of a task */
};

static double get(const data_rows *rows, int64_t index)
{
    return rows->type == SHOAL_FLOAT32 ? (double)((const float *)rows->values)[index]
                                       : ((const double *)rows->values)[index];
}

static void put(const data_rows *rows, int64_t index, double value)
{
    if (rows->type == SHOAL_FLOAT32)
        ((float *)rows->values)[index] = (float)value;
    else
        ((double *)rows->values)[index] = value;
}

/* ---- each row less its mean -------------------------------------------------------------------------------------- */

static void centre_rows(const data_rows *rows)
{
    for (int64_t r = 0; r < rows->count; r++) {
        const int64_t first = r * rows->columns;
        double sum = 0;
        for (int64_t j = 0; j < rows->columns; j++)
            sum += get(rows, first + j);
        for (int64_t j = 0; j < rows->columns; j++)
            put(rows, first + j, get(rows, first + j) - sum / (double)rows->columns);
    }
}

/* ---- whitening: learning ----------------------------------------------------------------------------------------- */

static void find_mean(double *mean, const data_rows *rows)
{
    for (int64_t r = 0; r < rows->count; r++)
        for (int64_t j = 0; j < rows->columns; j++)
            mean[j] += get(rows, r * rows->columns + j);
    for (int64_t j = 0; j < rows->columns; j++)
        mean[j] /= (double)rows->count;
}

typedef struct covariance {
    double *sums, *block; /* columns x columns, of which the upper half is made; BLOCK rows less the mean */
    int64_t rows, columns;
} covariance;

/* Some rows of the sums.  Each sum is one chain over all rows in order; four of them at a time save loads and
 * stores. */
static int add_products(void *context, int64_t item, int thread)
{
    covariance *in = context;
    const int64_t columns = in->columns, end = (item + 1) * TILE < columns ? (item + 1) * TILE : columns;
    (void)thread;
    for (int64_t i = item * TILE; i < end; i++) {
        double *restrict sums = in->sums + i * columns;
        int64_t r = 0;
        for (; r + 4 <= in->rows; r += 4) {
            const double *restrict a = in->block + r * columns, *restrict b = a + columns, *restrict c = b + columns,
                                   *restrict d = c + columns;
            const double ai = a[i], bi = b[i], ci = c[i], di = d[i];
            for (int64_t j = i; j < columns; j++)
                sums[j] = (((sums[j] + ai * a[j]) + bi * b[j]) + ci * c[j]) + di * d[j];
        }
        for (; r < in->rows; r++) {
            const double *restrict a = in->block + r * columns;
            const double ai = a[i];
            for (int64_t j = i; j < columns; j++)
                sums[j] += ai * a[j];
        }
    }
    return SHOAL_OK;
}

static int find_covariance(double *out, const data_rows *rows, const double *mean, base_pool *pool)
{
    covariance in = {.sums = out, .columns = rows->columns};
    int status = base_alloc(&in.block, (size_t)rows->columns, BLOCK * sizeof *in.block, "a covariance");
    for (int64_t first = 0; status == SHOAL_OK && first < rows->count; first += BLOCK) {
        in.rows = rows->count - first < BLOCK ? rows->count - first : BLOCK;
        for (int64_t r = 0; r < in.rows; r++)
            for (int64_t j = 0; j < rows->columns; j++)
                in.block[r * rows->columns + j] = get(rows, (first + r) * rows->columns + j) - mean[j];
        status = base_pool_each(pool, (rows->columns + TILE - 1) / TILE, add_products, &in);
    }
    for (int64_t i = 0; i < rows->columns; i++)
        for (int64_t j = i; j < rows->columns; j++)
            out[j * rows->columns + i] = out[i * rows->columns + j] /= (double)rows->count;
    base_free(&in.block);
    return status;
}

typedef struct rebuilding {
    double *out;
    const double *vectors; /* one a row, each by the root of its factor */
    int64_t n;
} rebuilding;

/* Rows of the sum of all v v', which is symmetric to the bit. */
static int add_outer(void *context, int64_t item, int thread)
{
    const rebuilding *in = context;
    double *restrict out = in->out + item * in->n;
    (void)thread;
    for (int64_t k = 0; k < in->n; k++) {
        const double *restrict v = in->vectors + k * in->n;
        const double factor = v[item];
        for (int64_t j = 0; j < in->n; j++)
            out[j] += factor * v[j];
    }
    return SHOAL_OK;
}

/* Scales each vector for its eigenvalue.  One of zero may come out of rounding as little less. */
static int scale_vectors(double *vectors, const double *values, const data_whitening *how)
{
    const int64_t n = how->columns;
    for (int64_t k = 0; k < n; k++) {
        double variance = (values[k] > 0 ? values[k] : 0) + how->epsilon;
        if (!(variance > 1e-12 * values[0]) || !(variance > 0))
            return shoal_fail(SHOAL_INVALID,
                              "direction %lld of %lld does not vary in these patches, so that it can't be whitened "
                              "without an --epsilon greater than %g",
                              (long long)k + 1, (long long)n, how->epsilon);
        double factor = 1 / sqrt(variance);
        for (int64_t j = 0; j < n; j++)
            vectors[k * n + j] *= how->whiten == DATA_WHITEN_ZCA ? sqrt(factor) : factor;
    }
    return SHOAL_OK;
}

static int learn_matrix(data_whitening *how, const data_rows *rows, base_pool *pool)
{
    const size_t n = (size_t)rows->columns;
    double *values = NULL, *vectors = NULL;
    if (rows->columns > DATA_WHITEN_COLUMNS_MOST)
        return shoal_fail(SHOAL_USAGE, "patches of %lld values are too long to be whitened: at most %d are possible",
                          (long long)rows->columns, DATA_WHITEN_COLUMNS_MOST);
    int status = base_alloc(&how->mean, n, sizeof *how->mean, "a whitening");
    if (status == SHOAL_OK)
        status = base_alloc(&how->matrix, n * n, sizeof *how->matrix, "a whitening");
    if (status == SHOAL_OK)
        status = base_alloc(&values, n, sizeof *values, "a whitening");
    if (status == SHOAL_OK)
        status = base_alloc(&vectors, n * n, sizeof *vectors, "a whitening");
    if (status < 0)
        goto done;
    find_mean(how->mean, rows);
    status = find_covariance(how->matrix, rows, how->mean, pool);
    if (status == SHOAL_OK && (status = data_eigen(values, vectors, how->matrix, rows->columns, pool)) == SHOAL_INVALID)
        status =
            shoal_fail(SHOAL_INVALID, "the patches can't be whitened: their values are too great for a covariance");
    if (status == SHOAL_OK)
        status = scale_vectors(vectors, values, how);
    if (status < 0)
        goto done;
    if (how->whiten == DATA_WHITEN_ZCA) {
        rebuilding zca = {how->matrix, vectors, rows->columns};
        memset(how->matrix, 0, n * n * sizeof *how->matrix);
        status = base_pool_each(pool, rows->columns, add_outer, &zca);
    } else {
        memcpy(how->matrix, vectors, n * n * sizeof *how->matrix);
    }
done:
    base_free(&vectors);
    base_free(&values);
    return status;
}

/* ---- whitening: applying ----------------------------------------------------------------------------------------- */

typedef struct applying {
    const data_rows *rows;
    const double *mean, *transposed;
    double *scratch; /* two rows a thread */
} applying;

/* out = M x for the matrix whose columns are contiguous: each value one chain over x in order. */
static void multiply(double *restrict out, const double *restrict transposed, const double *restrict x, int64_t n)
{
    int64_t i = 0;
    memset(out, 0, (size_t)n * sizeof *out);
    for (; i + 4 <= n; i += 4) {
        const double *restrict a = transposed + i * n, *restrict b = a + n, *restrict c = b + n, *restrict d = c + n;
        for (int64_t j = 0; j < n; j++)
            out[j] = (((out[j] + x[i] * a[j]) + x[i + 1] * b[j]) + x[i + 2] * c[j]) + x[i + 3] * d[j];
    }
    for (; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            out[j] += x[i] * transposed[i * n + j];
}

static int apply_some(void *context, int64_t item, int thread)
{
    applying *in = context;
    const int64_t n = in->rows->columns;
    const int64_t end = (item + 1) * ROWS < in->rows->count ? (item + 1) * ROWS : in->rows->count;
    double *x = in->scratch + 2 * thread * n, *y = x + n;
    for (int64_t r = item * ROWS; r < end; r++) {
        for (int64_t j = 0; j < n; j++)
            x[j] = get(in->rows, r * n + j) - in->mean[j];
        multiply(y, in->transposed, x, n);
        for (int64_t j = 0; j < n; j++)
            put(in->rows, r * n + j, y[j]);
    }
    return SHOAL_OK;
}

static int apply_matrix(const data_whitening *how, const data_rows *rows, base_pool *pool)
{
    const int64_t n = rows->columns;
    double *transposed = NULL;
    applying in = {.rows = rows, .mean = how->mean};
    int status = base_alloc(&transposed, (size_t)n * (size_t)n, sizeof *transposed, "a whitening");
    if (status == SHOAL_OK)
        status =
            base_alloc(&in.scratch, (size_t)n * (size_t)base_pool_threads(pool), 2 * sizeof *in.scratch, "a whitening");
    if (status < 0)
        goto done;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            transposed[j * n + i] = how->matrix[i * n + j];
    in.transposed = transposed;
    status = base_pool_each(pool, (rows->count + ROWS - 1) / ROWS, apply_some, &in);
done:
    base_free(&in.scratch);
    base_free(&transposed);
    return status;
}

/* ---- the range --------------------------------------------------------------------------------------------------- */

/* The mean of all values, and three standard deviations of them. */
static int learn_range(data_whitening *how, const data_rows *rows)
{
    const int64_t count = rows->count * rows->columns;
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < count; i++)
        sum += get(rows, i);
    how->middle = sum / (double)count;
    for (int64_t i = 0; i < count; i++) {
        double away = get(rows, i) - how->middle;
        squares += away * away;
    }
    how->reach = count > 1 ? 3 * sqrt(squares / (double)(count - 1)) : 0;
    if (!isfinite(how->reach))
        return shoal_fail(SHOAL_INVALID, "the values of the patches are too great to be mapped to a range");
    if (!(how->reach > 0))
        return shoal_fail(SHOAL_INVALID, "all values of the patches are equal: there is nothing to map to a range");
    return SHOAL_OK;
}

static void apply_range(const data_whitening *how, const data_rows *rows)
{
    const int64_t count = rows->count * rows->columns;
    for (int64_t i = 0; i < count; i++) {
        double share = (get(rows, i) - how->middle) / how->reach;
        share = share < -1 ? -1 : share > 1 ? 1 : share;
        put(rows, i, how->low + (share + 1) * ((how->high - how->low) / 2));
    }
}

/* ---- all together ------------------------------------------------------------------------------------------------ */

/* Whitening can make values great, and a matrix from a file any value. */
static int check_finite(const data_rows *rows)
{
    for (int64_t i = 0; i < rows->count * rows->columns; i++)
        if (!isfinite(get(rows, i)))
            return shoal_fail(SHOAL_INVALID, "whitening makes values of patch %lld that are beyond %s",
                              (long long)(i / rows->columns) + 1, shoal_type_name(rows->type));
    return SHOAL_OK;
}

int data_whitening_learn(data_whitening *how, const data_rows *rows, base_pool *pool)
{
    int status = SHOAL_OK;
    how->columns = rows->columns;
    if (how->centre)
        centre_rows(rows);
    if (how->whiten) {
        status = learn_matrix(how, rows, pool);
        if (status == SHOAL_OK)
            status = apply_matrix(how, rows, pool);
        if (status == SHOAL_OK)
            status = check_finite(rows);
    }
    if (status == SHOAL_OK && how->range) {
        status = learn_range(how, rows);
        if (status == SHOAL_OK)
            apply_range(how, rows);
    }
    return status;
}

int data_whitening_apply(const data_whitening *how, const data_rows *rows, base_pool *pool)
{
    int status = SHOAL_OK;
    if (how->centre)
        centre_rows(rows);
    if (how->whiten)
        status = apply_matrix(how, rows, pool);
    if (status == SHOAL_OK && how->whiten)
        status = check_finite(rows);
    if (status == SHOAL_OK && how->range)
        apply_range(how, rows);
    return status;
}

void data_whitening_release(data_whitening *how)
{
    base_free(&how->mean);
    base_free(&how->matrix);
}
