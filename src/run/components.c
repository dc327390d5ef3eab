/* Principal components.  See components.h. */
#include "components.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "data/image/eigen.h"
#include "kernel/kernel.h"

enum { ROWS = 64, TILE = 64 }; /* rows and columns of a task */

/* Golub and Van Loan, Matrix Computations, 10.1: q is an orthonormal basis in which the covariance has three
 * diagonals. */
typedef struct lanczos {
    const shoal_crew *crew;
    const kernel_set *kernel;
    double *rows; /* less their mean, of magnitude 1 at most */
    int64_t count, columns, steps;
    double *image;   /* of the rows in the last vector of the basis, one a row */
    double *next;    /* the covariance times that vector */
    double *basis;   /* steps x columns */
    double *matrix;  /* steps x steps: the three diagonals */
    double variance; /* of the rows, all columns together */
    int64_t step;
} lanczos;

/* ---- the rows ---------------------------------------------------------------------------------------------------- */

static double find_greatest(const double *values, int64_t count)
{
    double greatest = 0;
    for (int64_t i = 0; i < count; i++)
        greatest = fmax(greatest, fabs(values[i]));
    return greatest;
}

/* What is less of a mean than this is the rounding of the mean. */
static const double nothing = 1e-14;

/* Subtracts the mean, brings the greatest magnitude to between 1/2 and 1, so that no square overflows, and adds up the
 * variance. */
static int centre_rows(lanczos *in, double *mean)
{
    const int64_t values = in->count * in->columns;
    int exponent;
    for (int64_t i = 0; i < values; i++)
        mean[i % in->columns] += in->rows[i];
    for (int64_t j = 0; j < in->columns; j++)
        mean[j] /= (double)in->count;
    for (int64_t i = 0; i < values; i++) {
        const double middle = mean[i % in->columns], apart = in->rows[i] - middle;
        in->rows[i] = fabs(apart) > nothing * fabs(middle) || isnan(apart) ? apart : 0;
    }
    const double greatest = find_greatest(in->rows, values);
    if (!isfinite(greatest))
        return shoal_fail(SHOAL_INVALID, "the values are too great for principal components");
    frexp(greatest, &exponent);
    for (int64_t i = 0; i < values; i++) {
        in->rows[i] = ldexp(in->rows[i], -exponent);
        in->variance += in->rows[i] * in->rows[i];
    }
    in->variance /= (double)in->count;
    return SHOAL_OK;
}

/* ---- products ---------------------------------------------------------------------------------------------------- */

static const double *last_vector(const lanczos *in)
{
    return in->basis + in->step * in->columns;
}

static int multiply_rows(void *context, int64_t item, int thread)
{
    const lanczos *in = context;
    const int64_t end = (item + 1) * ROWS < in->count ? (item + 1) * ROWS : in->count;
    (void)thread;
    for (int64_t r = item * ROWS; r < end; r++)
        in->image[r] = in->kernel->product64(in->rows + r * in->columns, last_vector(in), in->columns);
    return SHOAL_OK;
}

/* Each sum is one chain over the rows in order. */
static int add_columns(void *context, int64_t item, int thread)
{
    const lanczos *in = context;
    const int64_t first = item * TILE, width = in->columns - first < TILE ? in->columns - first : TILE;
    double *restrict sum = in->next + first;
    (void)thread;
    memset(sum, 0, (size_t)width * sizeof *sum);
    for (int64_t r = 0; r < in->count; r++) {
        const double *restrict row = in->rows + r * in->columns + first;
        const double factor = in->image[r];
        for (int64_t j = 0; j < width; j++)
            sum[j] += factor * row[j];
    }
    for (int64_t j = 0; j < width; j++)
        sum[j] /= (double)in->count;
    return SHOAL_OK;
}

static int multiply_covariance(lanczos *in)
{
    int status = in->crew->each(in->crew, (in->count + ROWS - 1) / ROWS, multiply_rows, in);
    return status < 0 ? status : in->crew->each(in->crew, (in->columns + TILE - 1) / TILE, add_columns, in);
}

/* ---- the basis --------------------------------------------------------------------------------------------------- */

static double norm(const lanczos *in, const double *vector)
{
    return sqrt(in->kernel->product64(vector, vector, in->columns));
}

/* Twice is enough (Parlett). */
static void make_orthogonal(const lanczos *in, double *vector, int64_t before)
{
    for (int64_t i = 0; i < 2 * before; i++) {
        const double *other = in->basis + i % before * in->columns;
        const double along = in->kernel->product64(vector, other, in->columns);
        for (int64_t j = 0; j < in->columns; j++)
            vector[j] -= along * other[j];
    }
}

/* Any unit vector at right angles to those before. */
static void make_fresh(const lanczos *in, double *vector, int64_t before)
{
    double length = 0;
    for (uint32_t draw = 0; !(length > 1e-8) && draw < 8; draw++) {
        for (int64_t j = 0; j < in->columns; j++)
            vector[j] = base_random_unit(0, BASE_FOR_PLOTS, (uint64_t)(before * in->columns + j), draw) - 0.5;
        make_orthogonal(in, vector, before);
        length = norm(in, vector);
    }
    for (int64_t j = 0; j < in->columns; j++)
        vector[j] /= length;
}

/* Where the rows do not vary in any other direction that the basis can reach, it goes on with one that is fresh. */
static int add_vector(lanczos *in)
{
    const int64_t at = in->step;
    int status = multiply_covariance(in);
    if (status < 0)
        return status;
    in->matrix[at * in->steps + at] = in->kernel->product64(in->next, last_vector(in), in->columns);
    if (++in->step == in->steps)
        return SHOAL_OK;
    make_orthogonal(in, in->next, in->step);
    const double length = norm(in, in->next);
    double *fresh = in->basis + in->step * in->columns;
    if (!(length > 1e-12 * in->variance)) {
        make_fresh(in, fresh, in->step);
        return SHOAL_OK;
    }
    in->matrix[at * in->steps + at + 1] = in->matrix[(at + 1) * in->steps + at] = length;
    for (int64_t j = 0; j < in->columns; j++)
        fresh[j] = in->next[j] / length;
    return SHOAL_OK;
}

/* ---- the components ---------------------------------------------------------------------------------------------- */

static void take_component(double *direction, const lanczos *in, const double *weights)
{
    int64_t greatest = 0;
    for (int64_t i = 0; i < in->steps; i++)
        for (int64_t j = 0; j < in->columns; j++)
            direction[j] += weights[i] * in->basis[i * in->columns + j];
    for (int64_t j = 0; j < in->columns; j++)
        greatest = fabs(direction[j]) > fabs(direction[greatest]) ? j : greatest;
    const double length = copysign(norm(in, direction), direction[greatest]);
    for (int64_t j = 0; j < in->columns; j++)
        direction[j] /= length;
}

static int take_components(run_components *out, const lanczos *in)
{
    double *values = NULL, *vectors = NULL;
    base_pool *pool = NULL;
    int status = base_alloc(&values, (size_t)in->steps, sizeof *values, "principal components");
    if (status == SHOAL_OK)
        status = base_alloc(&vectors, (size_t)(in->steps * in->steps), sizeof *vectors, "principal components");
    if (status == SHOAL_OK)
        status = base_pool_new(&pool, 1);
    if (status == SHOAL_OK)
        status = data_eigen(values, vectors, in->matrix, in->steps, pool);
    for (int k = 0; k < 2 && status == SHOAL_OK; k++) {
        take_component(out->direction + k * in->columns, in, vectors + k * in->steps);
        out->share[k] = in->variance > 0 ? fmax(values[k], 0) / in->variance : NAN;
    }
    base_pool_free(&pool);
    base_free(&vectors);
    base_free(&values);
    return status;
}

int run_components_find(run_components *out, double *rows, int64_t count, int64_t columns, const shoal_crew *crew)
{
    static const char what[] = "principal components";
    const int64_t steps = columns < COMPONENTS_STEPS ? columns : COMPONENTS_STEPS;
    lanczos in = {.crew = crew, .rows = rows, .count = count, .columns = columns, .steps = steps};
    *out = (run_components){0};
    int status = kernel_choose(&in.kernel, crew->kernel);
    if (status == SHOAL_OK)
        status = base_alloc(&out->mean, (size_t)columns, sizeof(double), what);
    if (status == SHOAL_OK)
        status = base_alloc(&out->direction, (size_t)columns, 2 * sizeof(double), what);
    if (status == SHOAL_OK)
        status = base_alloc(&in.image, (size_t)count, sizeof(double), what);
    if (status == SHOAL_OK)
        status = base_alloc(&in.next, (size_t)columns, sizeof(double), what);
    if (status == SHOAL_OK)
        status = base_alloc(&in.basis, (size_t)steps, (size_t)columns * sizeof(double), what);
    if (status == SHOAL_OK)
        status = base_alloc(&in.matrix, (size_t)steps, (size_t)steps * sizeof(double), what);
    if (status == SHOAL_OK)
        status = centre_rows(&in, out->mean);
    if (status < 0)
        goto done;
    make_fresh(&in, in.basis, 0);
    while (in.step < steps && status == SHOAL_OK)
        status = add_vector(&in);
    if (status == SHOAL_OK)
        status = take_components(out, &in);
done:
    base_free(&in.matrix);
    base_free(&in.basis);
    base_free(&in.next);
    base_free(&in.image);
    if (status < 0)
        run_components_release(out);
    return status;
}

void run_components_release(run_components *components)
{
    base_free(&components->mean);
    base_free(&components->direction);
}
