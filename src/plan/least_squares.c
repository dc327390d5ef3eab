/* Non-negative least squares by active sets: Lawson and Hanson, "Solving Least Squares Problems" (1974), chapter 23.
 *
 * Columns are scaled to length 1 first, since constants of a model differ by many powers of ten.  A column that others
 * make up already is left at 0. */
#include "least_squares.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include <shoal/error.h>

#include "base/memory.h"

/* How much shorter a column becomes before it counts as made up of others; how steep a descent must be, as a share of
 * |b|. */
static const double DEPENDENT = 1e-9, STEEP = 1e-12;

typedef struct problem {
    int rows, columns;
    double *a;      /* column by column, each of length 1, or 0 where it is nothing but zeros */
    double *length; /* of the columns before */
    const double *b;
    double *q, *r; /* of the columns in use; q column by column, r row by row */
    double *x, *trial;
    double *residual; /* b - A x */
    bool *used;       /* columns that may differ from 0 */
    bool *refused;    /* columns that brought nothing since x changed last */
} problem;

static double dot(const double *a, const double *b, int count)
{
    double sum = 0;
    for (int i = 0; i < count; i++)
        sum += a[i] * b[i];
    return sum;
}

static void add(double *to, double factor, const double *what, int count)
{
    for (int i = 0; i < count; i++)
        to[i] += factor * what[i];
}

/* Splits off from column j of q what the columns in use before it have of it, twice so that rounding leaves nothing. */
static void orthogonalise(problem *self, int j)
{
    int m = self->rows, n = self->columns;
    double *column = self->q + (size_t)j * m;
    memcpy(column, self->a + (size_t)j * m, (size_t)m * sizeof *column);
    memset(self->r + (size_t)j * n, 0, (size_t)n * sizeof *self->r);
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < j; i++) {
            if (!self->used[i])
                continue;
            double share = dot(self->q + (size_t)i * m, column, m);
            self->r[(size_t)i * n + j] = share + (pass ? self->r[(size_t)i * n + j] : 0);
            add(column, -share, self->q + (size_t)i * m, m);
        }
    double left = sqrt(dot(column, column, m));
    bool dependent = !(left > DEPENDENT);
    self->r[(size_t)j * n + j] = dependent ? 0 : left;
    for (int i = 0; i < m; i++)
        column[i] = dependent ? 0 : column[i] / left;
}

/* The best x of the columns in use, whatever its signs: into `trial`. */
static void solve_used(problem *self)
{
    int m = self->rows, n = self->columns;
    for (int j = 0; j < n; j++)
        if (self->used[j])
            orthogonalise(self, j);
    for (int j = n - 1; j >= 0; j--) {
        const double *row = self->r + (size_t)j * n;
        self->trial[j] = 0;
        if (!self->used[j] || row[j] == 0)
            continue;
        double sum = dot(self->q + (size_t)j * m, self->b, m);
        for (int i = j + 1; i < n; i++)
            sum -= self->used[i] ? row[i] * self->trial[i] : 0;
        self->trial[j] = sum / row[j];
    }
}

static void find_residual(problem *self)
{
    memcpy(self->residual, self->b, (size_t)self->rows * sizeof *self->residual);
    for (int j = 0; j < self->columns; j++)
        if (self->x[j] != 0)
            add(self->residual, -self->x[j], self->a + (size_t)j * self->rows, self->rows);
}

/* The column along which the residual falls fastest; -1 when none is left. */
static int steepest(const problem *self, double least)
{
    int best = -1;
    for (int j = 0; j < self->columns; j++) {
        if (self->used[j] || self->refused[j])
            continue;
        double slope = dot(self->a + (size_t)j * self->rows, self->residual, self->rows);
        if (slope > least) {
            least = slope;
            best = j;
        }
    }
    return best;
}

/* Goes from x towards the trial until the first value would be negative; that one leaves.  False when none was in the
 * way. */
static bool step_back(problem *self)
{
    double reach = 1;
    bool blocked = false;
    for (int j = 0; j < self->columns; j++)
        if (self->used[j] && self->trial[j] <= 0) {
            double fall = self->x[j] - self->trial[j];
            reach = fmin(reach, fall > 0 ? self->x[j] / fall : 0);
            blocked = true;
        }
    for (int j = 0; j < self->columns && blocked; j++) {
        if (!self->used[j])
            continue;
        bool leaves = self->trial[j] <= 0 && self->x[j] <= reach * (self->x[j] - self->trial[j]);
        self->x[j] = leaves ? 0 : self->x[j] + reach * (self->trial[j] - self->x[j]);
        self->used[j] = !leaves && self->x[j] > 0;
    }
    return blocked;
}

/* Takes column j into use and finds the best x with it.  False when it could only be 0 there. */
static bool take_column(problem *self, int j)
{
    self->used[j] = true;
    solve_used(self);
    if (!(self->trial[j] > 0)) { /* its slope was rounding */
        self->used[j] = false;
        return false;
    }
    for (int tries = 0; tries <= self->columns && step_back(self); tries++)
        solve_used(self);
    for (int i = 0; i < self->columns; i++)
        self->x[i] = self->used[i] ? fmax(self->trial[i], 0) : 0;
    return true;
}

static void solve(problem *self)
{
    double least = STEEP * sqrt(dot(self->b, self->b, self->rows));
    find_residual(self);
    for (int steps = 0; steps < 10 * self->columns; steps++) { /* an end also where rounding goes in circles */
        int j = steepest(self, least);
        if (j < 0)
            return;
        if (take_column(self, j)) {
            find_residual(self);
            memset(self->refused, 0, (size_t)self->columns * sizeof *self->refused);
        } else
            self->refused[j] = true;
    }
}

static int make_problem_room(problem *self)
{
    size_t m = (size_t)self->rows, n = (size_t)self->columns;
    static const char what[] = "least squares";
    int status = base_alloc(&self->a, m * n, sizeof *self->a, what);
    if (status == SHOAL_OK)
        status = base_alloc(&self->q, m * n, sizeof *self->q, what);
    if (status == SHOAL_OK)
        status = base_alloc(&self->r, n * n, sizeof *self->r, what);
    if (status == SHOAL_OK)
        status = base_alloc(&self->length, n, sizeof *self->length, what);
    if (status == SHOAL_OK)
        status = base_alloc(&self->trial, n, sizeof *self->trial, what);
    if (status == SHOAL_OK)
        status = base_alloc(&self->residual, m, sizeof *self->residual, what);
    if (status == SHOAL_OK)
        status = base_alloc(&self->used, n, sizeof *self->used, what);
    if (status == SHOAL_OK)
        status = base_alloc(&self->refused, n, sizeof *self->refused, what);
    return status;
}

static void scale_columns(problem *self, const double *a)
{
    for (int j = 0; j < self->columns; j++) {
        double *column = self->a + (size_t)j * self->rows;
        for (int i = 0; i < self->rows; i++)
            column[i] = a[(size_t)i * self->columns + j];
        self->length[j] = sqrt(dot(column, column, self->rows));
        for (int i = 0; i < self->rows; i++)
            column[i] = self->length[j] > 0 ? column[i] / self->length[j] : 0;
    }
}

int plan_least_squares(double *x, const double *a, const double *b, int rows, int columns)
{
    problem self = {.rows = rows, .columns = columns, .b = b, .x = x};
    int status = make_problem_room(&self);
    memset(x, 0, (size_t)columns * sizeof *x);
    if (status == SHOAL_OK) {
        scale_columns(&self, a);
        solve(&self);
        for (int j = 0; j < columns; j++)
            x[j] = self.length[j] > 0 ? x[j] / self.length[j] : 0;
    }
    base_free(&self.a);
    base_free(&self.q);
    base_free(&self.r);
    base_free(&self.length);
    base_free(&self.trial);
    base_free(&self.residual);
    base_free(&self.used);
    base_free(&self.refused);
    return status;
}
