/* Eigenvectors of a symmetric matrix.  See eigen.h. */
#include "eigen.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include <shoal/error.h>

#include "base/memory.h"

enum { LANES = 8, ROTATIONS = 1 << 15, SLICE = 32, SHIFTS_MOST = 100 /* two or three are usual */ };

/* A sum of squares that is far below rounding beside elements of 1, and far above where its inverse would overflow. */
static const double NOTHING = 1e-40;

/* Rows `row` and `row + 1` of the vectors are turned by it. */
typedef struct rotation {
    int64_t row;
    double cosine, sine;
} rotation;

typedef struct solver {
    int64_t n, step;
    double *matrix;                  /* row k keeps the k-th Householder vector right of the diagonal */
    double *vectors;                 /* one a row */
    double *diagonal, *beside;       /* beside[i] is between i and i + 1 */
    double *weight, *image, *factor; /* 2 / v'v of each step; A v; what the update of the step subtracts */
    rotation *rotations;
    int64_t rotation_count;
    base_pool *pool;
} solver;

/* In eight chains that a compiler may put side by side. */
static double dot(const double *a, const double *b, int64_t count)
{
    double sum[LANES] = {0};
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES)
        for (int lane = 0; lane < LANES; lane++)
            sum[lane] += a[i + lane] * b[i + lane];
    for (int lane = 0; i < count; i++, lane++)
        sum[lane] += a[i] * b[i];
    return ((sum[0] + sum[4]) + (sum[2] + sum[6])) + ((sum[1] + sum[5]) + (sum[3] + sum[7]));
}

/* The square root of a^2 + b^2, without the library's, whose last bit differs between versions. */
static double hypotenuse(double a, double b)
{
    double great = fabs(a), small = fabs(b);
    if (great < small) {
        double swap = great;
        great = small;
        small = swap;
    }
    if (great == 0)
        return 0;
    double ratio = small / great;
    return great * sqrt(1 + ratio * ratio);
}

/* ---- three diagonals --------------------------------------------------------------------------------------------- */

/* What one task does with a row costs little, so that tasks have some. */
enum { ROWS_OF_A_TASK = 32 };

static int each_rows(solver *in, base_task *task, int64_t rows)
{
    return base_pool_each(in->pool, (rows + ROWS_OF_A_TASK - 1) / ROWS_OF_A_TASK, task, in);
}

/* The rows below the step's that a task has. */
static void rows_of(const solver *in, int64_t item, int64_t *first, int64_t *end)
{
    *first = in->step + 1 + item * ROWS_OF_A_TASK;
    *end = *first + ROWS_OF_A_TASK < in->n ? *first + ROWS_OF_A_TASK : in->n;
}

static int multiply_rows(void *context, int64_t item, int thread)
{
    solver *in = context;
    int64_t first, end, after = in->step + 1;
    const double *v = in->matrix + in->step * in->n;
    (void)thread;
    rows_of(in, item, &first, &end);
    for (int64_t r = first; r < end; r++)
        in->image[r] = in->weight[in->step] * dot(in->matrix + r * in->n + after, v + after, in->n - after);
    return SHOAL_OK;
}

/* A - v f' - f v', which stays symmetric to the bit. */
static int update_rows(void *context, int64_t item, int thread)
{
    solver *in = context;
    int64_t first, end;
    const double *restrict v = in->matrix + in->step * in->n, *restrict f = in->factor;
    (void)thread;
    rows_of(in, item, &first, &end);
    for (int64_t r = first; r < end; r++) {
        double *restrict row = in->matrix + r * in->n;
        for (int64_t j = in->step + 1; j < in->n; j++)
            row[j] -= v[r] * f[j] + f[r] * v[j];
    }
    return SHOAL_OK;
}

/* Makes row and column `step` zero but for the diagonal and its neighbour. */
static int reduce_step(solver *in)
{
    const int64_t k = in->step, after = k + 1, count = in->n - after;
    double *v = in->matrix + k * in->n;
    in->diagonal[k] = v[k];
    in->beside[k] = v[after];
    double rest = dot(v + after + 1, v + after + 1, count - 1);
    in->weight[k] = 0;
    if (rest < NOTHING)
        return SHOAL_OK;
    double length = sqrt(v[after] * v[after] + rest);
    double aim = v[after] > 0 ? -length : length;
    in->beside[k] = aim;
    v[after] -= aim;
    in->weight[k] = 2 / (v[after] * v[after] + rest);
    int status = each_rows(in, multiply_rows, count);
    if (status < 0)
        return status;
    double half = in->weight[k] / 2 * dot(in->image + after, v + after, count);
    for (int64_t j = after; j < in->n; j++)
        in->factor[j] = in->image[j] - half * v[j];
    return each_rows(in, update_rows, count);
}

static int reduce(solver *in)
{
    int status = SHOAL_OK;
    for (in->step = 0; status == SHOAL_OK && in->step + 2 < in->n; in->step++)
        status = reduce_step(in);
    if (in->n >= 2) {
        const double *corner = in->matrix + (in->n - 2) * in->n + in->n - 2;
        in->diagonal[in->n - 2] = corner[0];
        in->beside[in->n - 2] = corner[1];
    }
    in->diagonal[in->n - 1] = in->matrix[in->n * in->n - 1];
    return status;
}

static int reflect_rows(void *context, int64_t item, int thread)
{
    solver *in = context;
    int64_t first, end, after = in->step + 1;
    const double *restrict v = in->matrix + in->step * in->n;
    (void)thread;
    rows_of(in, item, &first, &end);
    for (int64_t r = first; r < end; r++) {
        double *restrict row = in->vectors + r * in->n;
        double share = in->weight[in->step] * dot(row + after, v + after, in->n - after);
        for (int64_t j = after; j < in->n; j++)
            row[j] -= share * v[j];
    }
    return SHOAL_OK;
}

/* The transposed product of all reflections, from the last to the first, when most of it is still that of the unit
 * matrix. */
static int gather_reflections(solver *in)
{
    int status = SHOAL_OK;
    memset(in->vectors, 0, (size_t)in->n * (size_t)in->n * sizeof *in->vectors);
    for (int64_t i = 0; i < in->n; i++)
        in->vectors[i * in->n + i] = 1;
    for (in->step = in->n - 3; status == SHOAL_OK && in->step >= 0; in->step--)
        if (in->weight[in->step] != 0)
            status = each_rows(in, reflect_rows, in->n - in->step - 1);
    return status;
}

/* ---- QL ---------------------------------------------------------------------------------------------------------- */

/* All rotations that wait, over some columns that stay near. */
static int turn_slice(void *context, int64_t item, int thread)
{
    solver *in = context;
    const int64_t first = item * SLICE, count = in->n - first < SLICE ? in->n - first : SLICE;
    (void)thread;
    for (int64_t i = 0; i < in->rotation_count; i++) {
        const double c = in->rotations[i].cosine, s = in->rotations[i].sine;
        double *restrict upper = in->vectors + in->rotations[i].row * in->n + first, *restrict lower = upper + in->n;
        for (int64_t j = 0; j < count; j++) {
            double below = lower[j];
            lower[j] = s * upper[j] + c * below;
            upper[j] = c * upper[j] - s * below;
        }
    }
    return SHOAL_OK;
}

static int turn(solver *in)
{
    int status = base_pool_each(in->pool, (in->n + SLICE - 1) / SLICE, turn_slice, in);
    in->rotation_count = 0;
    return status;
}

/* The end of the block that starts at `first`: behind it is nothing that counts beside the diagonal. */
static int64_t block_end(const solver *in, int64_t first)
{
    for (int64_t m = first; m + 1 < in->n; m++)
        if (fabs(in->beside[m]) <= DBL_EPSILON * (fabs(in->diagonal[m]) + fabs(in->diagonal[m + 1])) + DBL_EPSILON / 64)
            return m;
    return in->n - 1;
}

/* One step from `last` up to `first` with the shift of Wilkinson. */
static int shift_once(solver *in, int64_t first, int64_t last)
{
    double *d = in->diagonal, *e = in->beside;
    double half = (d[first + 1] - d[first]) / (2 * e[first]);
    double root = hypotenuse(half, 1);
    double bulge = d[last] - d[first] + e[first] / (half + (half < 0 ? -root : root));
    double sine = 1, cosine = 1, carried = 0;
    for (int64_t i = last - 1; i >= first; i--) {
        double outer = sine * e[i], inner = cosine * e[i];
        double length = hypotenuse(outer, bulge);
        e[i + 1] = length;
        if (length == 0) { /* the block falls apart here */
            d[i + 1] -= carried;
            e[last] = 0;
            return SHOAL_OK;
        }
        sine = outer / length;
        cosine = bulge / length;
        bulge = d[i + 1] - carried;
        double mixed = (d[i] - bulge) * sine + 2 * cosine * inner;
        carried = sine * mixed;
        d[i + 1] = bulge + carried;
        bulge = cosine * mixed - inner;
        in->rotations[in->rotation_count++] = (rotation){i, cosine, sine};
        int status = in->rotation_count == ROTATIONS ? turn(in) : SHOAL_OK;
        if (status < 0)
            return status;
    }
    d[first] -= carried;
    e[first] = bulge;
    e[last] = 0;
    return SHOAL_OK;
}

static int iterate(solver *in)
{
    in->beside[in->n - 1] = 0;
    for (int64_t first = 0; first < in->n; first++) {
        int shifts = 0;
        for (int64_t last; (last = block_end(in, first)) > first; shifts++) {
            if (shifts == SHIFTS_MOST)
                return shoal_fail(SHOAL_INVALID, "the eigenvalues of a matrix of %lld columns do not settle",
                                  (long long)in->n);
            int status = shift_once(in, first, last);
            if (status < 0)
                return status;
        }
    }
    return turn(in);
}

/* ---- all together ------------------------------------------------------------------------------------------------ */

/* The greatest size of an element, and 0 when one is not finite. */
static double greatest_of(const double *matrix, int64_t count)
{
    double greatest = 0;
    for (int64_t i = 0; i < count; i++) {
        if (!isfinite(matrix[i]))
            return 0;
        greatest = fabs(matrix[i]) > greatest ? fabs(matrix[i]) : greatest;
    }
    return greatest > 0 ? greatest : 1;
}

/* Copies a vector with the sign it is to have. */
static void copy_signed(double *out, const double *vector, int64_t n)
{
    int64_t greatest = 0;
    for (int64_t j = 1; j < n; j++)
        greatest = fabs(vector[j]) > fabs(vector[greatest]) ? j : greatest;
    for (int64_t j = 0; j < n; j++)
        out[j] = vector[greatest] < 0 ? -vector[j] : vector[j];
}

/* Hands out the greatest that is left, n times; `matrix` is free by now and takes the vectors in order. */
static void sort(solver *in, double *values, double scale)
{
    for (int64_t k = 0; k < in->n; k++) {
        int64_t best = -1;
        for (int64_t i = 0; i < in->n; i++)
            if (in->weight[i] == 0 && (best < 0 || in->diagonal[i] > in->diagonal[best]))
                best = i;
        in->weight[best] = 1; /* taken */
        values[k] = in->diagonal[best] * scale;
        copy_signed(in->matrix + k * in->n, in->vectors + best * in->n, in->n);
    }
    memcpy(in->vectors, in->matrix, (size_t)in->n * (size_t)in->n * sizeof *in->vectors);
}

int data_eigen(double *values, double *vectors, double *matrix, int64_t n, base_pool *pool)
{
    solver in = {.n = n, .matrix = matrix, .vectors = vectors, .pool = pool};
    double *work = NULL;
    const double scale = greatest_of(matrix, n * n);
    if (scale == 0)
        return shoal_fail(SHOAL_INVALID, "a matrix of %lld columns holds values that are not finite", (long long)n);
    for (int64_t i = 0; i < n * n; i++)
        matrix[i] /= scale;
    int status = base_alloc(&work, (size_t)n, 5 * sizeof *work, "eigenvalues");
    if (status == SHOAL_OK)
        status = base_alloc(&in.rotations, ROTATIONS, sizeof *in.rotations, "eigenvalues");
    if (status < 0)
        goto done;
    in.diagonal = work;
    in.beside = work + n;
    in.weight = work + 2 * n;
    in.image = work + 3 * n;
    in.factor = work + 4 * n;
    status = reduce(&in);
    if (status == SHOAL_OK)
        status = gather_reflections(&in);
    if (status == SHOAL_OK)
        status = iterate(&in);
    if (status == SHOAL_OK) {
        memset(in.weight, 0, (size_t)n * sizeof *in.weight);
        sort(&in, values, scale);
    }
done:
    base_free(&in.rotations);
    base_free(&work);
    return status;
}
