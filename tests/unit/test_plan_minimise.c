/* bench/plan/minimise.c: minima of functions of a few numbers are found, also where the simplex alone gets stuck, where
 * walls of values that are not finite stand around, and where there is nothing to find; twice the same. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "../../bench/plan/minimise.h"

typedef struct task {
    int count;
    int calls;
} task;

static double rosenbrock(const double *x, void *context)
{
    task *of = context;
    of->calls++;
    double sum = 0;
    for (int i = 0; i + 1 < of->count; i++)
        sum += 100 * pow(x[i + 1] - x[i] * x[i], 2) + pow(1 - x[i], 2);
    return sum;
}

/* A bowl that is a million times steeper one way than another, its least value at 1, 2, 3, ... */
static double bowl(const double *x, void *context)
{
    task *of = context;
    of->calls++;
    double sum = 7;
    for (int i = 0; i < of->count; i++)
        sum += pow(10, 6.0 * i / of->count) * (x[i] - i - 1) * (x[i] - i - 1);
    return sum;
}

static double fenced(const double *x, void *context)
{
    task *of = context;
    of->calls++;
    for (int i = 0; i < of->count; i++)
        if (x[i] <= 0)
            return i % 2 ? NAN : INFINITY;
    double sum = 0;
    for (int i = 0; i < of->count; i++)
        sum += x[i] - log(x[i]);
    return sum;
}

/* Powell's: the second derivative is not regular at the least value. */
static double powell(const double *x, void *context)
{
    ((task *)context)->calls++;
    return pow(x[0] + 10 * x[1], 2) + 5 * pow(x[2] - x[3], 2) + pow(x[1] - 2 * x[2], 4) + 10 * pow(x[0] - x[3], 4);
}

/* McKinnon 1998: Nelder and Mead's simplex collapses onto the origin, which is not a minimum, from the right start. */
static double mckinnon(const double *x, void *context)
{
    ((task *)context)->calls++;
    return (x[0] <= 0 ? 360 * x[0] * x[0] : 6 * x[0] * x[0]) + x[1] + x[1] * x[1];
}

static double edged(const double *x, void *context)
{
    ((task *)context)->calls++;
    return fabs(x[0] - 3) + 2 * fabs(x[1] + 1);
}

/* Edges everywhere: one simplex shrinks on the first it meets. */
static double many_edges(const double *x, void *context)
{
    const task *of = context;
    double sum = 0;
    for (int i = 0; i < of->count; i++)
        sum += (i + 1) * fabs(x[i] - 1) + (i > 0 ? 0.5 * fabs(x[i] - x[i - 1]) : 0);
    return sum;
}

static double level(const double *x, void *context)
{
    (void)x;
    ((task *)context)->calls++;
    return 5;
}

static double nowhere(const double *x, void *context)
{
    (void)x;
    ((task *)context)->calls++;
    return NAN;
}

static void fill(double *x, int count, double value)
{
    for (int i = 0; i < count; i++)
        x[i] = value;
}

static void finds_the_bottom_of_a_curved_valley(void **state)
{
    (void)state;
    for (int count = 2; count <= 6; count++) {
        task of = {.count = count};
        double x[PLAN_MINIMISE_MOST], step[PLAN_MINIMISE_MOST];
        fill(x, count, 0.1);
        x[0] = -1.2;
        fill(step, count, 0.5);
        double f = plan_minimise(x, count, step, rosenbrock, &of);
        if (f > 1 && count >= 4) /* the other minimum that the function has from four variables on */
            assert_true(f < 3.99 && x[0] < -0.7);
        else
            for (int i = 0; i < count; i++)
                assert_true(fabs(x[i] - 1) < 1e-4);
        assert_true(f == rosenbrock(x, &of));
    }
}

static void finds_the_bottom_of_a_steep_bowl(void **state)
{
    (void)state;
    for (int count = 1; count <= 12; count++) {
        task of = {.count = count};
        double x[PLAN_MINIMISE_MOST], step[PLAN_MINIMISE_MOST];
        fill(x, count, -1);
        fill(step, count, 1);
        const double f = plan_minimise(x, count, step, bowl, &of);
        assert_true(fabs(f - 7) < 1e-5);
        for (int i = 0; i < count; i++)
            assert_true(fabs(x[i] - i - 1) < 1e-2);
        assert_true(of.calls < 100000);
    }
}

static void finds_minima_that_are_not_regular(void **state)
{
    (void)state;
    task of = {.count = 4};
    double x[4] = {3, -1, 0, 1}, step[4] = {1, 1, 1, 1};
    assert_true(plan_minimise(x, 4, step, powell, &of) < 1e-10);
    for (int i = 0; i < 4; i++)
        assert_true(fabs(x[i]) < 1e-2);
    double corner[2] = {20, 20}, reach[2] = {1, 1};
    assert_true(plan_minimise(corner, 2, reach, edged, &of) < 1e-5);
}

static void does_not_stop_where_the_simplex_collapses(void **state)
{
    (void)state;
    task of = {.count = 2};
    double x[2] = {0, 0}, step[2] = {1, 1};
    assert_true(plan_minimise(x, 2, step, mckinnon, &of) < -0.25 + 1e-8);
    assert_true(fabs(x[1] + 0.5) < 1e-3);
    for (of.count = 6; of.count <= 16; of.count += 2) {
        double at[PLAN_MINIMISE_MOST], reach[PLAN_MINIMISE_MOST];
        fill(reach, of.count, 0.5);
        for (int i = 0; i < of.count; i++)
            at[i] = 5 + i;
        assert_true(plan_minimise(at, of.count, reach, many_edges, &of) < 1e-4);
    }
}

static void keeps_within_walls(void **state)
{
    (void)state;
    for (int count = 1; count <= 8; count++) {
        task of = {.count = count};
        double x[PLAN_MINIMISE_MOST], step[PLAN_MINIMISE_MOST];
        fill(x, count, 0.01);
        fill(step, count, -1); /* every first step leads out */
        assert_true(fabs(plan_minimise(x, count, step, fenced, &of) - count) < 1e-6);
    }
}

static void ends_where_nothing_is_to_be_found(void **state)
{
    (void)state;
    task of = {.count = 3};
    double x[3] = {1, 2, 3}, step[3] = {1, 1, 1};
    assert_true(plan_minimise(x, 3, step, level, &of) == 5);
    assert_true(of.calls < 1000);
    of.calls = 0;
    plan_minimise(x, 3, step, nowhere, &of);
    assert_true(of.calls < 1000);
    double still[3] = {0, 0, 0};
    assert_true(plan_minimise(x, 3, still, level, &of) == 5);
    assert_true(plan_minimise(x, 0, step, level, &of) == 5);
}

static void does_the_same_twice(void **state)
{
    (void)state;
    task of[2] = {{.count = 5}, {.count = 5}};
    double x[2][5];
    for (int i = 0; i < 2; i++) {
        double step[5] = {0.3, 0.2, 0.1, 0.2, 0.3};
        fill(x[i], 5, -0.7);
        plan_minimise(x[i], 5, step, rosenbrock, &of[i]);
    }
    assert_memory_equal(x[0], x[1], sizeof x[0]);
    assert_int_equal(of[0].calls, of[1].calls);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_the_bottom_of_a_curved_valley),
        cmocka_unit_test(finds_the_bottom_of_a_steep_bowl),
        cmocka_unit_test(finds_minima_that_are_not_regular),
        cmocka_unit_test(does_not_stop_where_the_simplex_collapses),
        cmocka_unit_test(keeps_within_walls),
        cmocka_unit_test(ends_where_nothing_is_to_be_found),
        cmocka_unit_test(does_the_same_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
