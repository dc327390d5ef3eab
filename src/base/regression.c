/* Ordinary least squares.  See regression.h.
 *
 * Columns and y lose their means first, so that the constant does not have to be told apart from large values that
 * hardly change; what remains of the columns is made orthogonal one after the other. */
#include "regression.h"

#include <math.h>
#include <string.h>

#include <shoal/error.h>

#include "base/memory.h"

/* How much shorter a column may become before it counts as made up of the constant and the columns before. */
static const double DEPENDENT = 1e-9;

static const double OUTSIDE = 0.05; /* of a 95% interval */

/* ---- Student's t ------------------------------------------------------------------------------------------------- */

static double log_gamma(double x)
{
    int sign;
    return lgamma_r(x, &sign);
}

/* The continued fraction of the incomplete beta function (DLMF 8.17.22), by Lentz's method; for x < (a + 1) /
 * (a + b + 2), where it converges fast. */
static double beta_fraction(double x, double a, double b)
{
    const double tiny = 1e-300;
    double c = 1, d = 1 - (a + b) * x / (a + 1), value;
    d = 1 / (fabs(d) < tiny ? tiny : d);
    value = d;
    for (int m = 1; m <= 10000; m++) {
        const double terms[2] = {m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
                                 -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))};
        double change = 1;
        for (int i = 0; i < 2; i++) {
            d = 1 + terms[i] * d;
            c = 1 + terms[i] / c;
            d = 1 / (fabs(d) < tiny ? tiny : d);
            c = fabs(c) < tiny ? tiny : c;
            change = c * d;
            value *= change;
        }
        if (fabs(change - 1) < 1e-15)
            break;
    }
    return value;
}

/* The regularised incomplete beta function I_x(a, b). */
static double beta_share(double x, double a, double b)
{
    if (!(x > 0))
        return isnan(x) ? NAN : 0;
    if (x >= 1)
        return 1;
    const double front = exp(log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * log(x) + b * log1p(-x));
    return x < (a + 1) / (a + b + 2) ? front * beta_fraction(x, a, b) / a : 1 - front * beta_fraction(1 - x, b, a) / b;
}

double base_student_share(double t, double freedom)
{
    if (isnan(t) || !(freedom > 0))
        return NAN;
    return isinf(t) ? 0 : beta_share(freedom / (freedom + t * t), freedom / 2, 0.5);
}

double base_student_limit(double share, double freedom)
{
    double low = 0, high = 1;
    if (!(freedom > 0) || !(share > 0 && share < 1))
        return NAN;
    while (base_student_share(high, freedom) > share && high < 1e300)
        high *= 2;
    for (int i = 0; i < 200 && low < high; i++) {
        const double middle = low + (high - low) / 2;
        if (middle <= low || middle >= high)
            break;
        if (base_student_share(middle, freedom) > share)
            low = middle;
        else
            high = middle;
    }
    return high;
}

/* ---- correlation ------------------------------------------------------------------------------------------------- */

static double mean_of(const double *values, int64_t stride, int64_t rows)
{
    double sum = 0;
    for (int64_t i = 0; i < rows; i++)
        sum += values[i * stride];
    return sum / (double)rows;
}

base_estimate base_correlate(const double *x, const double *y, int64_t rows)
{
    base_estimate out = {NAN, NAN, NAN, NAN, NAN};
    const double mean_x = mean_of(x, 1, rows), mean_y = mean_of(y, 1, rows);
    double xx = 0, yy = 0, xy = 0;
    for (int64_t i = 0; i < rows; i++) {
        xx += (x[i] - mean_x) * (x[i] - mean_x);
        yy += (y[i] - mean_y) * (y[i] - mean_y);
        xy += (x[i] - mean_x) * (y[i] - mean_y);
    }
    if (rows < 2 || !(xx > 0 && yy > 0))
        return out;
    out.value = fmax(-1, fmin(1, xy / sqrt(xx) / sqrt(yy)));
    const double left = 1 - out.value * out.value, freedom = (double)rows - 2;
    if (rows > 2) {
        out.error = sqrt(left / freedom);
        out.p = base_student_share(out.value / out.error, freedom);
    }
    if (rows > 3) { /* Fisher's z is nearly normal, with this deviation */
        const double z = atanh(out.value), reach = 1.959963984540054 / sqrt((double)rows - 3);
        out.low = tanh(z - reach);
        out.high = tanh(z + reach);
    }
    return out;
}

/* ---- least squares ----------------------------------------------------------------------------------------------- */

typedef struct problem {
    int64_t rows;
    int columns;
    double mean[BASE_REGRESSION_MOST];
    double *q; /* column by column: orthogonal, each of length 1 */
    double *y; /* without its mean; then what is not explained */
    double r[BASE_REGRESSION_MOST][BASE_REGRESSION_MOST], inverse[BASE_REGRESSION_MOST][BASE_REGRESSION_MOST];
} problem;

static double dot(const double *a, const double *b, int64_t count)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += a[i] * b[i];
    return sum;
}

static void take_away(double *from, double factor, const double *what, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        from[i] -= factor * what[i];
}

/* Splits off what the columns before have of column j, twice so that rounding leaves nothing.  False when nothing
 * remains. */
static bool orthogonalise(problem *self, int j)
{
    const int64_t rows = self->rows;
    double *column = self->q + j * rows;
    const double before = sqrt(dot(column, column, rows));
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < j; i++) {
            const double share = dot(self->q + i * rows, column, rows);
            self->r[i][j] += share;
            take_away(column, share, self->q + i * rows, rows);
        }
    const double left = sqrt(dot(column, column, rows));
    if (!(left > DEPENDENT * before) || !(before > DEPENDENT * fabs(self->mean[j]) * sqrt((double)rows)))
        return false;
    self->r[j][j] = left;
    for (int64_t i = 0; i < rows; i++)
        column[i] /= left;
    return true;
}

/* Of the upper triangle r. */
static void invert(problem *self)
{
    for (int j = 0; j < self->columns; j++) {
        self->inverse[j][j] = 1 / self->r[j][j];
        for (int i = j - 1; i >= 0; i--) {
            double sum = 0;
            for (int k = i + 1; k <= j; k++)
                sum += self->r[i][k] * self->inverse[k][j];
            self->inverse[i][j] = -sum / self->r[i][i];
        }
    }
}

static base_estimate estimate_of(double value, double error, int64_t freedom)
{
    base_estimate out = {value, NAN, NAN, NAN, NAN};
    if (freedom < 1)
        return out;
    const double reach = base_student_limit(OUTSIDE, (double)freedom) * error;
    out.error = error;
    out.low = value - reach;
    out.high = value + reach;
    out.p = base_student_share(value / error, (double)freedom);
    return out;
}

/* y is q (qT y) and what is left; the coefficients are r^-1 qT y, and their covariance is that of what is left times
 * r^-1 r^-T. */
static void solve(base_regression *out, problem *self, double mean_y)
{
    const int64_t rows = self->rows;
    const int columns = self->columns;
    const double all = dot(self->y, self->y, rows);
    double share[BASE_REGRESSION_MOST], constant = mean_y, lever[BASE_REGRESSION_MOST] = {0}, spread = 0;
    invert(self);
    for (int j = 0; j < columns; j++) {
        share[j] = dot(self->q + j * rows, self->y, rows);
        take_away(self->y, share[j], self->q + j * rows, rows);
    }
    const double left = dot(self->y, self->y, rows);
    out->known = true;
    out->freedom = rows - columns - 1;
    out->r2 = all > 0 ? 1 - left / all : NAN;
    const double variance = out->freedom > 0 ? left / (double)out->freedom : NAN;
    for (int i = 0; i < columns; i++) {
        double value = 0, own = 0;
        for (int j = i; j < columns; j++) {
            value += self->inverse[i][j] * share[j];
            own += self->inverse[i][j] * self->inverse[i][j];
            lever[j] += self->mean[i] * self->inverse[i][j];
        }
        constant -= value * self->mean[i];
        out->of[i + 1] = estimate_of(value, sqrt(variance * own), out->freedom);
    }
    for (int j = 0; j < columns; j++)
        spread += lever[j] * lever[j];
    out->of[0] = estimate_of(constant, sqrt(variance * (1 / (double)rows + spread)), out->freedom);
}

int base_regress(base_regression *out, const double *x, int columns, const double *y, int64_t rows)
{
    problem self = {.rows = rows, .columns = columns};
    const double mean_y = mean_of(y, 1, rows);
    bool apart = rows > columns;
    *out = (base_regression){.r2 = NAN};
    for (int i = 0; i <= columns; i++)
        out->of[i] = (base_estimate){NAN, NAN, NAN, NAN, NAN};
    if (columns < 1 || columns > BASE_REGRESSION_MOST)
        SHOAL_BUG("a regression of %d columns", columns);
    int status = base_alloc(&self.q, (size_t)rows * (size_t)columns, sizeof *self.q, "least squares");
    if (status == SHOAL_OK)
        status = base_alloc(&self.y, (size_t)rows, sizeof *self.y, "least squares");
    for (int j = 0; j < columns && status == SHOAL_OK && apart; j++) {
        self.mean[j] = mean_of(x + j, columns, rows);
        for (int64_t i = 0; i < rows; i++)
            self.q[j * rows + i] = x[i * columns + j] - self.mean[j];
        apart = orthogonalise(&self, j);
    }
    if (status == SHOAL_OK && apart) {
        for (int64_t i = 0; i < rows; i++)
            self.y[i] = y[i] - mean_y;
        solve(out, &self, mean_y);
    }
    base_free(&self.q);
    base_free(&self.y);
    return status;
}
