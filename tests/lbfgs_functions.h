/* Functions that are hard to minimise, with their usual starting points: what test_lbfgs.c and lbfgs_peers.c
 * measure L-BFGS by.
 *
 * * Most are from Moré, Garbow and Hillstrom 1981 ("MGH" and the number there); with n = 1000 they are copies of
 * the small function side by side, or a chain.  Each adds its gradient to g, which is 0 before. */
#ifndef LBFGS_FUNCTIONS_H
#define LBFGS_FUNCTIONS_H

#include <math.h>
#include <stddef.h>
#include <string.h>

typedef struct lbfgs_function {
    const char *name;
    int n;
    double (*value)(int n, const double *x, double *g);
    void (*start)(int n, double *x);
    double minimum;   /* of the value, as it is reached from that start */
    double precision; /* to which `minimum` is known, relative to max(1, minimum) */
} lbfgs_function;

/* Fills x by repeating a few numbers. */
static inline void repeat_numbers(int n, double *x, int count, const double *numbers)
{
    for (int i = 0; i < n; i++)
        x[i] = numbers[i % count];
}

/* ---- MGH 1 and 21 ------------------------------------------------------------------------------------------------ */

static inline double rosenbrock_value(int n, const double *x, double *g)
{
    double f = 0;
    for (int i = 0; i + 1 < n; i += 2) {
        const double a = 10 * (x[i + 1] - x[i] * x[i]), b = 1 - x[i];
        f += a * a + b * b;
        g[i] += -40 * a * x[i] - 2 * b;
        g[i + 1] += 20 * a;
    }
    return f;
}

static inline void rosenbrock_start(int n, double *x)
{
    repeat_numbers(n, x, 2, (const double[]){-1.2, 1});
}

/* ---- MGH 2 ------------------------------------------------------------------------------------------------------- */

static inline double freudenstein_value(int n, const double *x, double *g)
{
    (void)n;
    const double u = x[0], v = x[1];
    const double a = -13 + u + ((5 - v) * v - 2) * v, b = -29 + u + ((v + 1) * v - 14) * v;
    g[0] += 2 * a + 2 * b;
    g[1] += 2 * a * (10 * v - 3 * v * v - 2) + 2 * b * (3 * v * v + 2 * v - 14);
    return a * a + b * b;
}

static inline void freudenstein_start(int n, double *x)
{
    repeat_numbers(n, x, 2, (const double[]){0.5, -2});
}

/* ---- MGH 5 ------------------------------------------------------------------------------------------------------- */

static inline double beale_value(int n, const double *x, double *g)
{
    static const double y[] = {1.5, 2.25, 2.625};
    double f = 0, power = 1;
    (void)n;
    for (int i = 0; i < 3; i++) {
        const double before = power;
        power *= x[1];
        const double r = y[i] - x[0] * (1 - power);
        f += r * r;
        g[0] += 2 * r * -(1 - power);
        g[1] += 2 * r * x[0] * (i + 1) * before;
    }
    return f;
}

static inline void beale_start(int n, double *x)
{
    repeat_numbers(n, x, 1, (const double[]){1});
}

/* ---- MGH 7 ------------------------------------------------------------------------------------------------------- */

static inline double helical_value(int n, const double *x, double *g)
{
    const double pi = 3.14159265358979323846, square = x[0] * x[0] + x[1] * x[1], radius = sqrt(square);
    const double turn = atan(x[1] / x[0]) / (2 * pi) + (x[0] < 0 ? 0.5 : 0);
    const double a = 10 * (x[2] - 10 * turn), b = 10 * (radius - 1), c = x[2];
    (void)n;
    g[0] += 2 * a * 100 * x[1] / (2 * pi * square) + 20 * b * x[0] / radius;
    g[1] += 2 * a * -100 * x[0] / (2 * pi * square) + 20 * b * x[1] / radius;
    g[2] += 20 * a + 2 * c;
    return a * a + b * b + c * c;
}

static inline void helical_start(int n, double *x)
{
    repeat_numbers(n, x, 3, (const double[]){-1, 0, 0});
}

/* ---- MGH 12 ------------------------------------------------------------------------------------------------------ */

static inline double box_value(int n, const double *x, double *g)
{
    double f = 0;
    (void)n;
    for (int i = 1; i <= 10; i++) {
        const double t = 0.1 * i, a = exp(-t * x[0]), b = exp(-t * x[1]), c = exp(-t) - exp(-10 * t);
        const double r = a - b - x[2] * c;
        f += r * r;
        g[0] += 2 * r * -t * a;
        g[1] += 2 * r * t * b;
        g[2] += 2 * r * -c;
    }
    return f;
}

static inline void box_start(int n, double *x)
{
    repeat_numbers(n, x, 3, (const double[]){0, 10, 20});
}

/* ---- MGH 13 and 22 ----------------------------------------------------------------------------------------------- */

static inline double powell_value(int n, const double *x, double *g)
{
    double f = 0;
    for (int i = 0; i + 3 < n; i += 4) {
        const double a = x[i] + 10 * x[i + 1], b = x[i + 2] - x[i + 3], c = x[i + 1] - 2 * x[i + 2],
                     d = x[i] - x[i + 3];
        f += a * a + 5 * b * b + c * c * c * c + 10 * d * d * d * d;
        g[i] += 2 * a + 40 * d * d * d;
        g[i + 1] += 20 * a + 4 * c * c * c;
        g[i + 2] += 10 * b - 8 * c * c * c;
        g[i + 3] += -10 * b - 40 * d * d * d;
    }
    return f;
}

static inline void powell_start(int n, double *x)
{
    repeat_numbers(n, x, 4, (const double[]){3, -1, 0, 1});
}

/* ---- MGH 14, alone and side by side ------------------------------------------------------------------------------ */

static inline double wood_value(int n, const double *x, double *g)
{
    double f = 0;
    for (int i = 0; i + 3 < n; i += 4) {
        const double a = x[i + 1] - x[i] * x[i], b = 1 - x[i], c = x[i + 3] - x[i + 2] * x[i + 2], d = 1 - x[i + 2];
        const double e = x[i + 1] + x[i + 3] - 2, h = x[i + 1] - x[i + 3];
        f += 100 * a * a + b * b + 90 * c * c + d * d + 10 * e * e + 0.1 * h * h;
        g[i] += -400 * a * x[i] - 2 * b;
        g[i + 1] += 200 * a + 20 * e + 0.2 * h;
        g[i + 2] += -360 * c * x[i + 2] - 2 * d;
        g[i + 3] += 180 * c + 20 * e - 0.2 * h;
    }
    return f;
}

static inline void wood_start(int n, double *x)
{
    repeat_numbers(n, x, 4, (const double[]){-3, -1, -3, -1});
}

/* ---- MGH 16 ------------------------------------------------------------------------------------------------------ */

static inline double brown_dennis_value(int n, const double *x, double *g)
{
    double f = 0;
    (void)n;
    for (int i = 1; i <= 20; i++) {
        const double t = i / 5.0, a = x[0] + t * x[1] - exp(t), b = x[2] + x[3] * sin(t) - cos(t), r = a * a + b * b;
        f += r * r;
        g[0] += 4 * r * a;
        g[1] += 4 * r * a * t;
        g[2] += 4 * r * b;
        g[3] += 4 * r * b * sin(t);
    }
    return f;
}

static inline void brown_dennis_start(int n, double *x)
{
    repeat_numbers(n, x, 4, (const double[]){25, 5, -5, -1});
}

/* ---- MGH 15 ------------------------------------------------------------------------------------------------------ */

static inline double kowalik_value(int n, const double *x, double *g)
{
    static const double y[] = {0.1957, 0.1947, 0.1735, 0.1600, 0.0844, 0.0627, 0.0456, 0.0342, 0.0323, 0.0235, 0.0246};
    static const double u[] = {4, 2, 1, 0.5, 0.25, 0.167, 0.125, 0.1, 0.0833, 0.0714, 0.0625};
    double f = 0;
    (void)n;
    for (int i = 0; i < 11; i++) {
        const double top = u[i] * u[i] + u[i] * x[1], below = u[i] * u[i] + u[i] * x[2] + x[3];
        const double r = y[i] - x[0] * top / below;
        f += r * r;
        g[0] += 2 * r * -top / below;
        g[1] += 2 * r * -x[0] * u[i] / below;
        g[2] += 2 * r * x[0] * top * u[i] / (below * below);
        g[3] += 2 * r * x[0] * top / (below * below);
    }
    return f;
}

static inline void kowalik_start(int n, double *x)
{
    repeat_numbers(n, x, 4, (const double[]){0.25, 0.39, 0.415, 0.39});
}

/* ---- MGH 23 ------------------------------------------------------------------------------------------------------ */

static inline double penalty_value(int n, const double *x, double *g)
{
    double f = 0, square = -0.25;
    for (int i = 0; i < n; i++)
        square += x[i] * x[i];
    for (int i = 0; i < n; i++) {
        f += 1e-5 * (x[i] - 1) * (x[i] - 1);
        g[i] += 2e-5 * (x[i] - 1) + 4 * square * x[i];
    }
    return f + square * square;
}

static inline void count_start(int n, double *x)
{
    for (int i = 0; i < n; i++)
        x[i] = i + 1;
}

/* ---- MGH 25 ------------------------------------------------------------------------------------------------------ */

static inline double variable_value(int n, const double *x, double *g)
{
    double f = 0, sum = 0;
    for (int i = 0; i < n; i++) {
        f += (x[i] - 1) * (x[i] - 1);
        sum += (i + 1) * (x[i] - 1);
    }
    for (int i = 0; i < n; i++)
        g[i] += 2 * (x[i] - 1) + (2 * sum + 4 * sum * sum * sum) * (i + 1);
    return f + sum * sum + sum * sum * sum * sum;
}

static inline void variable_start(int n, double *x)
{
    for (int i = 0; i < n; i++)
        x[i] = 1 - (i + 1.0) / n;
}

/* ---- MGH 30 ------------------------------------------------------------------------------------------------------ */

static inline double broyden_value(int n, const double *x, double *g)
{
    double f = 0;
    for (int i = 0; i < n; i++) {
        const double before = i > 0 ? x[i - 1] : 0, after = i + 1 < n ? x[i + 1] : 0;
        const double r = (3 - 2 * x[i]) * x[i] - before - 2 * after + 1;
        f += r * r;
        g[i] += 2 * r * (3 - 4 * x[i]);
        if (i > 0)
            g[i - 1] += -2 * r;
        if (i + 1 < n)
            g[i + 1] += -4 * r;
    }
    return f;
}

static inline void broyden_start(int n, double *x)
{
    repeat_numbers(n, x, 1, (const double[]){-1});
}

/* ---- Dixon and Price --------------------------------------------------------------------------------------------- */

static inline double dixon_value(int n, const double *x, double *g)
{
    double f = (x[0] - 1) * (x[0] - 1);
    g[0] += 2 * (x[0] - 1);
    for (int i = 1; i < n; i++) {
        const double r = 2 * x[i] * x[i] - x[i - 1];
        f += (i + 1) * r * r;
        g[i] += (i + 1) * 2 * r * 4 * x[i];
        g[i - 1] += (i + 1) * -2 * r;
    }
    return f;
}

static inline void ones_start(int n, double *x)
{
    repeat_numbers(n, x, 1, (const double[]){1});
}

static const lbfgs_function lbfgs_functions[] = {
    {"Rosenbrock", 2, rosenbrock_value, rosenbrock_start, 0, 1e-15},
    {"Freudenstein-Roth", 2, freudenstein_value, freudenstein_start, 48.984253679240013, 1e-12},
    {"Beale", 2, beale_value, beale_start, 0, 1e-15},
    {"helical valley", 3, helical_value, helical_start, 0, 1e-15},
    {"Box", 3, box_value, box_start, 0, 1e-15},
    {"Powell", 4, powell_value, powell_start, 0, 1e-15},
    {"Wood", 4, wood_value, wood_start, 0, 1e-15},
    {"Kowalik-Osborne", 4, kowalik_value, kowalik_start, 3.07505603849237e-4, 1e-12},
    {"Brown-Dennis", 4, brown_dennis_value, brown_dennis_start, 85822.20162635628, 1e-12},
    {"penalty I", 10, penalty_value, count_start, 7.08765146709037e-05, 1e-12},
    {"variably dimensioned", 10, variable_value, variable_start, 0, 1e-15},
    {"Rosenbrock", 1000, rosenbrock_value, rosenbrock_start, 0, 1e-15},
    {"Powell", 1000, powell_value, powell_start, 0, 1e-15},
    {"Wood", 1000, wood_value, wood_start, 0, 1e-15},
    {"Broyden tridiagonal", 1000, broyden_value, broyden_start, 0.712527909586082, 1e-15},
    {"Dixon-Price", 1000, dixon_value, ones_start, 0, 1e-15},
};

enum { LBFGS_FUNCTIONS = sizeof lbfgs_functions / sizeof *lbfgs_functions };

static inline double lbfgs_function_value(const lbfgs_function *of, const double *x, double *g)
{
    memset(g, 0, sizeof *g * (size_t)of->n);
    return of->value(of->n, x, g);
}

#endif
