/* src/learn/lbfgs*.c: minima are found, by steps that keep the strong Wolfe conditions, in the same bits wherever
 * a run is cut and however many threads it has; and what is not finite, not smooth, not bounded or simply wrong
 * ends it in order. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/crc.h"
#include "base/memory.h"
#include "base/pool.h"
#include "learn/lbfgs_internal.h"
#include "lbfgs_functions.h"

/* ---- a run ------------------------------------------------------------------------------------------------------- */

typedef double value_function(const void *context, int64_t n, const double *x, double *g);

typedef struct task {
    value_function *value;
    const void *context;
    learn_lbfgs_options options;
    const shoal_crew *crew;
    int cut;       /* at which evaluation all is copied to other memory; -1 at each, 0 never */
    bool any_step; /* iterates need not keep the Wolfe conditions */
} task;

typedef struct outcome {
    learn_lbfgs machine;
    double *x;
    uint32_t check; /* of every point that was evaluated */
    int evaluations, iterates;
} outcome;

static double dot(int64_t n, const double *a, const double *b)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

static double *room(int64_t count)
{
    double *out = NULL;
    assert_int_equal(base_alloc(&out, (size_t)count, sizeof *out, "a test"), SHOAL_OK);
    return out;
}

/* What another process would have: the same bytes elsewhere, and nothing where they were. */
static void move_elsewhere(learn_lbfgs *machine, learn_past *past, double **x, int64_t n)
{
    static learn_lbfgs stored;
    stored = *machine;
    memset(machine, 0xff, sizeof *machine);
    *machine = stored;
    for (int i = 0; i <= past->count; i++) {
        double *old = i < past->count ? (double *)past->iterate[i] : *x;
        const size_t bytes = sizeof *old * (size_t)(i < past->count ? 3 * n : n);
        double *copy = room(i < past->count ? 3 * n : n);
        memcpy(copy, old, bytes);
        memset(old, 0xff, bytes);
        base_free(&old);
        if (i < past->count)
            past->iterate[i] = copy;
        else
            *x = copy;
    }
}

/* Nocedal and Wright 2006, (3.7), for the step from the newest iterate to the point in `next`.  Where the change
 * is too small to be seen in f, f may rise by as much. */
static void check_wolfe(const task *of, const learn_past *past, const double *next, double before, double value)
{
    const int64_t n = of->options.parameters;
    const double *last = past->iterate[past->count - 1];
    double *moved = room(n);
    for (int64_t i = 0; i < n; i++)
        moved[i] = next[i] - last[i];
    const double slope = dot(n, last + n, last + 2 * n), now = dot(n, next + n, last + 2 * n);
    const double promised = dot(n, last + n, moved);
    assert_true(slope < 0);
    if (promised != 0) { /* but for a restart */
        assert_true(fabs(now) <= 0.9 * fabs(slope) * (1 + 1e-6));
        assert_true(value <= before + 1e-4 * promised + 1e-8 * fabs(before));
        if (-promised > 2e-8 * fabs(before))
            assert_true(value <= before + 1e-4 * promised * (1 - 1e-6));
    }
    base_free(&moved);
}

/* No point of a search has a component on the other side of 0, or on the side of 0 where the function rises. */
static void check_orthant(const task *of, const learn_past *past, const double *x)
{
    const int64_t n = of->options.parameters, first = of->options.l1_first, end = first + of->options.l1_count;
    const double *old = past->iterate[past->count - 1];
    for (int64_t i = first; i < end; i++) {
        const double g = old[n + i];
        const double side = old[i] != 0 ? old[i] : fabs(g) > of->options.l1 ? -g : 0;
        assert_true(x[i] == 0 || x[i] * side > 0);
    }
}

static void keep(learn_past *past, const double *workspace, const task *of)
{
    const int64_t n = of->options.parameters;
    if (past->count == of->options.history + 1) {
        double *oldest = (double *)past->iterate[0];
        base_free(&oldest);
        memmove(past->iterate, past->iterate + 1, sizeof *past->iterate * (size_t)of->options.history);
        past->count--;
    }
    double *copy = room(3 * n);
    memcpy(copy, workspace, 3 * sizeof *copy * (size_t)n);
    past->iterate[past->count++] = copy;
}

/* x is the start, and belongs to the outcome from then on. */
static outcome descend(const task *of, double *x)
{
    const int64_t n = of->options.parameters;
    outcome out = {0};
    learn_past past = {0};
    learn_lbfgs_answer step = {0};
    double *g = room(n), *workspace = room(3 * n);
    assert_int_equal(learn_lbfgs_start(&out.machine, &of->options), SHOAL_OK);
    while (!step.done) {
        const double f = of->value(of->context, n, x, g);
        const double before = out.machine.value;
        out.evaluations++;
        out.check = base_crc32c(out.check, x, sizeof *x * (size_t)n);
        memset(workspace, 0xff, 3 * sizeof *workspace * (size_t)n);
        assert_int_equal(learn_lbfgs_step(&step, &out.machine, &past, f, g, x, workspace, of->crew), SHOAL_OK);
        if (step.accepted) {
            if (past.count > 0 && of->options.l1 == 0 && !of->any_step && !step.done)
                check_wolfe(of, &past, workspace, before, out.machine.value);
            keep(&past, workspace, of);
            out.iterates++;
        }
        if (past.count > 0 && of->options.l1 > 0)
            check_orthant(of, &past, x);
        assert_true(learn_lbfgs_good(&out.machine, n, past.count));
        if (of->cut < 0 || of->cut == out.evaluations)
            move_elsewhere(&out.machine, &past, &x, n);
        assert_true(out.evaluations < 100000);
    }
    assert_int_equal(out.machine.evaluations, out.evaluations);
    assert_int_equal(out.machine.accepted, out.iterates);
    if (past.count > 0)
        assert_memory_equal(x, past.iterate[past.count - 1], sizeof *x * (size_t)n);
    for (int i = 0; i < past.count; i++) {
        double *iterate = (double *)past.iterate[i];
        base_free(&iterate);
    }
    base_free(&g);
    base_free(&workspace);
    out.x = x;
    return out;
}

static double classical(const void *context, int64_t n, const double *x, double *g)
{
    (void)n;
    return lbfgs_function_value(context, x, g);
}

static task task_of(const lbfgs_function *of)
{
    return (task){.value = classical,
                  .context = of,
                  .options = {.parameters = of->n, .history = 10, .iterations = 5000, .gradient_tolerance = 1e-8}};
}

static double *start_of(const lbfgs_function *of)
{
    double *x = room(of->n);
    of->start(of->n, x);
    return x;
}

/* ---- the classical functions ------------------------------------------------------------------------------------- */

static void test_gradients(void **state)
{
    (void)state;
    for (int f = 0; f < LBFGS_FUNCTIONS; f++) {
        const lbfgs_function *of = &lbfgs_functions[f];
        double *x = start_of(of), *g = room(of->n), *other = room(of->n);
        for (int i = 0; i < of->n; i++)
            x[i] += 0.01 * (i * 7 % 5);
        const double value = lbfgs_function_value(of, x, g);
        for (int i = 0; i < of->n; i += 1 + i / 8) {
            const double here = x[i], h = 1e-5 * fmax(1, fabs(here));
            x[i] = here + h;
            const double above = lbfgs_function_value(of, x, other);
            x[i] = here - h;
            const double below = lbfgs_function_value(of, x, other);
            x[i] = here;
            assert_true(fabs((above - below) / (2 * h) - g[i]) <= 1e-6 * fmax(1, fabs(g[i])) + 1e-10 * value);
        }
        base_free(&x);
        base_free(&g);
        base_free(&other);
    }
}

static void test_minima(void **state)
{
    (void)state;
    for (int f = 0; f < LBFGS_FUNCTIONS; f++) {
        const lbfgs_function *of = &lbfgs_functions[f];
        task what = task_of(of);
        what.options.gradient_tolerance = 1e-8 * fmax(1, fabs(of->minimum));
        outcome got = descend(&what, start_of(of));
        assert_int_equal(got.machine.end, LEARN_LBFGS_GRADIENT);
        assert_true(got.machine.gradient_most <= what.options.gradient_tolerance);
        assert_true(fabs(got.machine.value - of->minimum) <= 1e-10 * fmax(1, fabs(of->minimum)));
        base_free(&got.x);
    }
}

/* With every tolerance at 0 a run ends by itself, at the minimum, where steps lead nowhere any more. */
static void test_as_low_as_rounding_lets(void **state)
{
    (void)state;
    for (int f = 0; f < LBFGS_FUNCTIONS; f++) {
        const lbfgs_function *of = &lbfgs_functions[f];
        task what = task_of(of);
        what.options.gradient_tolerance = 0;
        what.any_step = true;
        outcome got = descend(&what, start_of(of));
        assert_true(got.machine.end == LEARN_LBFGS_STUCK || got.machine.end == LEARN_LBFGS_GRADIENT);
        assert_true(got.machine.gradient_most <= 1e-11 * fmax(1, fabs(of->minimum)));
        base_free(&got.x);
    }
}

/* ---- rounding ---------------------------------------------------------------------------------------------------- */

/* A bowl with walls that get steeper, on top of a height that takes away most digits of the value; `grid` rounds
 * even more off. */
typedef struct bowl {
    double height, grid;
} bowl;

static double bowl_value(const void *context, int64_t n, const double *x, double *g)
{
    const bowl *of = context;
    double f = of->height;
    for (int64_t i = 0; i < n; i++) {
        const double weight = 1 + (double)(i * i % 97), away = x[i] - (double)(i % 7);
        f += 0.5 * weight * away * away + 0.1 * away * away * away * away;
        g[i] = weight * away + 0.4 * away * away * away;
    }
    return of->grid > 0 ? nearbyint(f / of->grid) * of->grid : f;
}

static void test_rounded_values(void **state)
{
    static const bowl bowls[] = {{0, 0}, {1e6, 0}, {-1e9, 0}, {1e12, 0}, {1e3, 1e-6}, {1e6, 1e-3}};
    (void)state;
    for (size_t b = 0; b < sizeof bowls / sizeof *bowls; b++) {
        const task what = {
            .value = bowl_value,
            .context = &bowls[b],
            .options = {.parameters = 60, .history = 10, .iterations = 400, .gradient_tolerance = 1e-8 * 100}};
        outcome got = descend(&what, room(60));
        assert_int_equal(got.machine.end, LEARN_LBFGS_GRADIENT); /* the gradient is about 600 at the start */
        assert_true(got.evaluations < 150);
        for (int i = 0; i < 60; i++)
            assert_true(fabs(got.x[i] - i % 7) <= 1e-6);
        base_free(&got.x);
    }
}

/* ---- cuts and threads -------------------------------------------------------------------------------------------- */

/* Least squares with dense rows: the smooth part of a lasso. */
typedef struct rows {
    int count;
    const double *values, *targets;
} rows;

static double rows_value(const void *context, int64_t n, const double *x, double *g)
{
    const rows *of = context;
    double f = 0;
    memset(g, 0, sizeof *g * (size_t)n);
    for (int r = 0; r < of->count; r++) {
        const double *row = of->values + r * n;
        const double miss = dot(n, row, x) - of->targets[r];
        f += 0.5 * miss * miss;
        for (int64_t i = 0; i < n; i++)
            g[i] += miss * row[i];
    }
    return f;
}

enum { LASSO_ROWS = 60, LASSO_COLUMNS = 40 };

static rows lasso_rows(void)
{
    static double values[LASSO_ROWS * LASSO_COLUMNS], targets[LASSO_ROWS];
    uint32_t bits = 1;
    for (int i = 0; i < LASSO_ROWS * LASSO_COLUMNS; i++) {
        bits = bits * 1664525u + 1013904223u;
        values[i] = (double)(bits >> 8) / 8388608.0 - 1 + (i % LASSO_COLUMNS == 0 ? 1 : 0);
    }
    for (int r = 0; r < LASSO_ROWS; r++) {
        const double *row = values + r * LASSO_COLUMNS;
        targets[r] = 2 + 3 * row[1] - 2 * row[5] + 0.5 * row[9] + 0.1 * row[20];
    }
    return (rows){LASSO_ROWS, values, targets};
}

static task lasso(const rows *of, double l1, int64_t first, int64_t count)
{
    return (task){.value = rows_value,
                  .context = of,
                  .options = {.parameters = LASSO_COLUMNS,
                              .history = 8,
                              .iterations = 2000,
                              .gradient_tolerance = 1e-9,
                              .l1 = l1,
                              .l1_first = first,
                              .l1_count = count}};
}

static void check_cuts(task what, const double *start, bool each)
{
    const size_t bytes = sizeof *start * (size_t)what.options.parameters;
    double *x = room(what.options.parameters);
    memcpy(x, start, bytes);
    const outcome whole = descend(&what, x);
    for (int cut = each ? whole.evaluations : 0; cut >= 0; cut--) {
        what.cut = cut == 0 ? -1 : cut;
        x = room(what.options.parameters);
        memcpy(x, start, bytes);
        outcome got = descend(&what, x);
        assert_int_equal(got.check, whole.check);
        assert_memory_equal(&got.machine, &whole.machine, sizeof whole.machine);
        assert_memory_equal(got.x, whole.x, bytes);
        base_free(&got.x);
    }
    x = whole.x;
    base_free(&x);
}

static void test_cut_anywhere(void **state)
{
    (void)state;
    const rows of = lasso_rows();
    double *zeros = room(LASSO_COLUMNS);
    check_cuts(lasso(&of, 3, 1, LASSO_COLUMNS - 1), zeros, true);
    for (int f = 0; f < LBFGS_FUNCTIONS; f++) {
        double *start = start_of(&lbfgs_functions[f]);
        task what = task_of(&lbfgs_functions[f]);
        what.options.history = 1 + f;
        what.options.iterations = 25;
        check_cuts(what, start, lbfgs_functions[f].n < 100);
        base_free(&start);
    }
    base_free(&zeros);
}

/* A crew that is a pool. */
typedef struct pool_crew {
    shoal_crew crew;
    base_pool *pool;
    int64_t calls, fail_at; /* the call that fails; -1 none */
} pool_crew;

static int crew_each(const shoal_crew *self, int64_t items, int (*work)(void *, int64_t, int), void *context)
{
    pool_crew *own = (pool_crew *)self;
    if (own->calls++ == own->fail_at)
        return shoal_fail(SHOAL_STOPPED, "stopped");
    return base_pool_each(own->pool, items, work, context);
}

static void crew_init(pool_crew *crew, int threads)
{
    *crew = (pool_crew){.crew = {.each = crew_each, .threads = threads, .kernel = "portable"}, .fail_at = -1};
    assert_int_equal(base_pool_new(&crew->pool, threads), SHOAL_OK);
}

/* Odd lengths about the borders of blocks, and an L1 term that begins and ends inside of one. */
static void test_any_threads(void **state)
{
    static const bowl flat = {0, 0};
    static const int64_t sizes[] = {4097, 32769, 40001};
    (void)state;
    for (int l1 = 0; l1 <= 3; l1 += 3)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            task what = {.value = bowl_value,
                         .context = &flat,
                         .options = {.parameters = sizes[s], .history = 3, .iterations = 5, .l1 = l1}};
            what.options.l1_first = sizes[s] / 3;
            what.options.l1_count = sizes[s] / 2;
            outcome alone = descend(&what, room(sizes[s]));
            for (int threads = 1; threads <= 3; threads++) {
                pool_crew crew;
                crew_init(&crew, threads);
                what.crew = &crew.crew;
                outcome got = descend(&what, room(sizes[s]));
                assert_int_equal(got.check, alone.check);
                assert_memory_equal(&got.machine, &alone.machine, sizeof alone.machine);
                assert_true((crew.calls > 0) == (threads > 1 && sizes[s] > 7 * 4096));
                base_pool_free(&crew.pool);
                base_free(&got.x);
            }
            base_free(&alone.x);
        }
}

/* A step that fails has changed nothing of the machine. */
static void test_failing_crew(void **state)
{
    enum { N = 40000 };
    static const bowl flat = {0, 0};
    const learn_lbfgs_options options = {.parameters = N, .history = 3, .iterations = 9};
    (void)state;
    pool_crew crew;
    crew_init(&crew, 2);
    double *x = room(N), *g = room(N), *workspace = room(3 * N);
    learn_lbfgs machine, before;
    learn_past past = {0};
    learn_lbfgs_answer step;
    assert_int_equal(learn_lbfgs_start(&machine, &options), SHOAL_OK);
    double f = bowl_value(&flat, N, x, g);
    before = machine;
    for (crew.fail_at = 0; crew.fail_at < 2; crew.fail_at++) {
        crew.calls = 0;
        assert_int_equal(learn_lbfgs_step(&step, &machine, &past, f, g, x, workspace, &crew.crew), SHOAL_STOPPED);
        assert_memory_equal(&machine, &before, sizeof machine);
    }
    base_memory_fail_after(0);
    assert_int_equal(learn_lbfgs_step(&step, &machine, &past, f, g, x, workspace, &crew.crew), SHOAL_MEMORY);
    base_memory_fail_after(-1);
    assert_memory_equal(&machine, &before, sizeof machine);
    base_pool_free(&crew.pool);
    base_free(&x);
    base_free(&g);
    base_free(&workspace);
}

/* ---- what is not finite, not bounded, not true ------------------------------------------------------------------- */

/* Least at x = weight; no value at or below 0. */
static double barrier_value(const void *context, int64_t n, const double *x, double *g)
{
    const double *weight = context;
    double f = 0;
    for (int64_t i = 0; i < n; i++) {
        f += x[i] - weight[i] * log(x[i]);
        g[i] = 1 - weight[i] / x[i];
    }
    return f;
}

static void test_barrier(void **state)
{
    static const double weight[] = {1e-3, 1, 30, 5};
    static const double starts[] = {1, 1e-6, 1e4};
    (void)state;
    for (size_t s = 0; s < sizeof starts / sizeof *starts; s++) {
        const task what = {.value = barrier_value,
                           .context = weight,
                           .options = {.parameters = 4, .history = 6, .iterations = 500, .gradient_tolerance = 1e-9}};
        double *x = room(4);
        for (int i = 0; i < 4; i++)
            x[i] = starts[s];
        outcome got = descend(&what, x);
        assert_int_equal(got.machine.end, LEARN_LBFGS_GRADIENT);
        for (int i = 0; i < 4; i++)
            assert_true(fabs(got.x[i] / weight[i] - 1) <= 1e-7);
        base_free(&got.x);
    }
}

/* Functions of one number that end a run badly: `kind` says which. */
static double odd_value(const void *context, int64_t n, const double *x, double *g)
{
    const char kind = *(const char *)context;
    (void)n;
    g[0] = kind == 'r' ? -1 : 1;
    switch (kind) {
    case 'n': return NAN;                                  /* nowhere a value */
    case 'g': g[0] = INFINITY; return 0;                   /* nowhere a gradient */
    case 'a': return x[0] == 0 ? 0 : INFINITY;             /* alone at the start */
    case 'o': g[0] = x[0] == 0 ? 1 : 1e200; return x[0];   /* gradients too great to be squared */
    case 'r': return x[0];                                 /* rises where the gradient says it falls */
    case 'c': return 7;                                    /* constant, whatever the gradient says */
    case 'k': g[0] = x[0] < 0 ? -1 : 1; return fabs(x[0]); /* a kink */
    default: return x[0];                                  /* 'u': without end */
    }
}

static void check_odd(const char *kind, double start, learn_lbfgs_end end, double l1)
{
    const task what = {.value = odd_value,
                       .context = kind,
                       .options = {.parameters = 1, .history = 4, .iterations = 300, .l1 = l1, .l1_count = 1},
                       .any_step = true};
    double *x = room(1);
    x[0] = start;
    outcome got = descend(&what, x);
    assert_int_equal(got.machine.end, end);
    assert_true(fabs(got.x[0] - start) <= (*kind == 'k' ? 1 : *kind == 'c' ? 1e-5 : 0));
    base_free(&got.x);
}

static void test_bad_functions(void **state)
{
    (void)state;
    for (int l1 = 0; l1 <= 1; l1++) {
        const double weight = l1 == 0 ? 0 : 0.25;
        check_odd("n", 3, LEARN_LBFGS_DIVERGED, weight);
        check_odd("g", 3, LEARN_LBFGS_DIVERGED, weight);
        check_odd("a", 0, LEARN_LBFGS_DIVERGED, weight);
        check_odd("o", 0, LEARN_LBFGS_DIVERGED, weight);
        check_odd("r", 0, LEARN_LBFGS_STUCK, weight);
        check_odd("c", 0, LEARN_LBFGS_STUCK, weight);
    }
    check_odd("k", 0.7, LEARN_LBFGS_STUCK, 0);
}

/* Without a lower bound it goes down as far as there are numbers, or as many steps as it may, and always ends. */
static void test_without_end(void **state)
{
    const task what = {.value = odd_value,
                       .context = "u",
                       .options = {.parameters = 1, .history = 4, .iterations = 300},
                       .any_step = true};
    (void)state;
    outcome got = descend(&what, room(1));
    assert_true(got.machine.end == LEARN_LBFGS_ITERATIONS || got.machine.end == LEARN_LBFGS_STUCK ||
                got.machine.end == LEARN_LBFGS_DIVERGED);
    assert_true(got.x[0] < -1e15 && isfinite(got.x[0]));
    base_free(&got.x);
}

/* ---- when to stop ------------------------------------------------------------------------------------------------ */

static void test_stopping(void **state)
{
    (void)state;
    const lbfgs_function *wood = NULL;
    for (int f = 0; f < LBFGS_FUNCTIONS && wood == NULL; f++)
        if (strcmp(lbfgs_functions[f].name, "Wood") == 0)
            wood = &lbfgs_functions[f];
    for (int64_t most = 0; most <= 7; most += 7) {
        task what = task_of(wood);
        what.options.iterations = most;
        outcome got = descend(&what, start_of(wood));
        assert_int_equal(got.machine.end, LEARN_LBFGS_ITERATIONS);
        assert_int_equal(got.machine.iteration, most);
        assert_int_equal(got.iterates, most + 1);
        assert_true(isnan(got.machine.change) == (most == 0));
        base_free(&got.x);
    }
    task what = task_of(wood);
    what.options.change_tolerance = 1e-3;
    outcome got = descend(&what, start_of(wood));
    assert_int_equal(got.machine.end, LEARN_LBFGS_CHANGE);
    assert_true(got.machine.change <= 1e-3);
    base_free(&got.x);
    what.options.gradient_tolerance = 1e9;
    got = descend(&what, start_of(wood));
    assert_int_equal(got.machine.end, LEARN_LBFGS_GRADIENT);
    assert_int_equal(got.evaluations, 1);
    base_free(&got.x);
}

static void test_options(void **state)
{
    static const learn_lbfgs_options good = {.parameters = 10, .history = 5, .iterations = 3, .l1 = 1, .l1_count = 10};
    learn_lbfgs machine;
    learn_lbfgs_options bad[16];
    (void)state;
    for (int i = 0; i < 16; i++)
        bad[i] = good;
    bad[0].parameters = 0;
    bad[1].parameters = INT64_MAX;
    bad[2].history = 0;
    bad[3].history = LEARN_LBFGS_HISTORY_MOST + 1;
    bad[4].iterations = -1;
    bad[5].gradient_tolerance = NAN;
    bad[6].gradient_tolerance = -1;
    bad[7].change_tolerance = NAN;
    bad[8].change_tolerance = INFINITY;
    bad[9].l1 = -1;
    bad[10].l1 = NAN;
    bad[11].l1_first = -1;
    bad[12].l1_first = 11;
    bad[13].l1_count = 11;
    bad[14].l1_first = INT64_MAX;
    bad[15].l1_count = INT64_MIN;
    assert_int_equal(learn_lbfgs_start(&machine, &good), SHOAL_OK);
    assert_true(learn_lbfgs_good(&machine, 10, 0));
    assert_false(learn_lbfgs_good(&machine, 11, 0));
    assert_false(learn_lbfgs_good(&machine, 10, 1));
    for (int i = 0; i < 16; i++) {
        assert_int_equal(learn_lbfgs_start(&machine, &bad[i]), SHOAL_USAGE);
        machine = (learn_lbfgs){.options = bad[i], .change = NAN};
        assert_false(learn_lbfgs_good(&machine, bad[i].parameters, 0));
    }
}

/* ---- machines from elsewhere ------------------------------------------------------------------------------------- */

static void test_spoilt_machines(void **state)
{
    const lbfgs_function *of = &lbfgs_functions[0];
    task what = task_of(of);
    what.options.iterations = 12;
    (void)state;
    outcome got = descend(&what, start_of(of));
    const int past = 11;
    assert_true(learn_lbfgs_good(&got.machine, of->n, past));
#define REFUSED(...)                                                                                                   \
    do {                                                                                                               \
        learn_lbfgs spoilt = got.machine;                                                                              \
        spoilt.__VA_ARGS__;                                                                                            \
        assert_false(learn_lbfgs_good(&spoilt, of->n, past));                                                          \
    } while (0)
    REFUSED(options.history = 9);
    REFUSED(iteration = -1);
    REFUSED(iteration = 13);
    REFUSED(evaluations = 0);
    REFUSED(evaluations = INT64_MAX); /* it is counted up */
    REFUSED(value = NAN);
    REFUSED(value = INFINITY);
    REFUSED(gradient_most = -1);
    REFUSED(gradient_most = NAN);
    REFUSED(change = NAN);
    REFUSED(change = INFINITY);
    REFUSED(end = -1);
    REFUSED(end = LEARN_LBFGS_DIVERGED + 1);
    REFUSED(accepted = 5);
    REFUSED(accepted = -1);
    REFUSED(pairs = -1);
    REFUSED(pairs = 11);
    REFUSED(options.history = 12, spoilt.accepted = past, spoilt.iteration = 9,
            spoilt.pairs = past); /* the next would be older than the oldest */
    REFUSED(scale = NAN);
    REFUSED(scale = -1);
    REFUSED(least_value = NAN);
    REFUSED(least_gradient = -1);
    REFUSED(idle = -1);
    REFUSED(idle = 1000);
    REFUSED(curvature[3] = NAN);
    REFUSED(curvature[0] = -1);
    REFUSED(curvature[59] = 1);
    REFUSED(line.slope = NAN);
    REFUSED(line.slope = 1);
    REFUSED(line.step = INFINITY);
    REFUSED(line.step = -1);
    REFUSED(line.best_value = NAN);
    REFUSED(line.other_slope = NAN);
    REFUSED(line.width = INFINITY);
    REFUSED(line.wall = -1);
    REFUSED(line.evaluations = -1);
    REFUSED(line.evaluations = 1000);
    REFUSED(line.bracketed = 2);
    REFUSED(line.settled = -1);
    REFUSED(line.again = 7);
#undef REFUSED
    base_free(&got.x);
}

/* ---- L1 ---------------------------------------------------------------------------------------------------------- */

/* Each component by itself: the minimum is known in closed form.  The height hides small changes. */
static double apart_value(const void *context, int64_t n, const double *x, double *g)
{
    double f = *(const double *)context;
    for (int64_t i = 0; i < n; i++) {
        const double weight = 1 + (double)(i % 5), away = x[i] - ((double)i / 10 - 3);
        f += 0.5 * weight * away * away;
        g[i] = weight * away;
    }
    return f;
}

/* The L1 term is 2 |x| of all but the first and the last. */
static void test_pseudo_gradient(void **state)
{
    enum { N = 8 };
    static const double x[N] = {0, 0, 0, 0, 3, -3, 0, 0}, g[N] = {5, 5, -5, 1, 5, 5, -1, 5};
    static const double p[N] = {5, 3, -3, 0, 7, 3, 0, 5}; /* of slopes at 0 the one nearest to 0 */
    const learn_lbfgs_options options = {.parameters = N, .history = 1, .l1 = 2, .l1_first = 1, .l1_count = 6};
    double iterate[3 * N], moved[N];
    lbfgs_measure at;
    lbfgs_space space;
    (void)state;
    assert_int_equal(lbfgs_space_init(&space, &options, NULL), SHOAL_OK);
    lbfgs_pass_first(&space, &at, iterate, x, g);
    for (int i = 0; i < N; i++)
        assert_true(iterate[2 * N + i] == -p[i]);
    assert_true(at.greatest == 7 && at.l1 == 12 && at.pp == 25 + 9 + 9 + 49 + 9 + 25);
    lbfgs_pass_move(&space, moved, iterate, 1);
    static const double expected[N] = {-5, -3, 3, 0, 0, -6, 0, -5};
    for (int i = 0; i < N; i++)
        assert_true(moved[i] == expected[i] && (moved[i] != 0 || !signbit(moved[i]))); /* one zero, so one model */
    lbfgs_space_release(&space);
}

/* A path that is cut off where it leaves the orthant may lead upwards as a whole: no such step is taken, however little
 * it rises. */
static void test_path_upwards(void **state)
{
    const lbfgs_change upwards = {.promised = 1, .moved = 1}, level = {.promised = 0, .moved = 1},
                       downwards = {.promised = -1, .moved = 1};
    learn_line line;
    (void)state;
    lbfgs_line_start(&line, -1, 1);
    assert_int_equal(lbfgs_line_back(&line, 10, 10 + 1e-5, &upwards, true), LBFGS_TRY);
    assert_true(line.step >= 0.1 && line.step <= 0.5);
    lbfgs_line_start(&line, -1, 1);
    assert_int_not_equal(lbfgs_line_back(&line, 10, 10, &level, true), LBFGS_TAKE);
    lbfgs_line_start(&line, -1, 1);
    assert_int_equal(lbfgs_line_back(&line, 10, 9, &downwards, true), LBFGS_TAKE);
}

static void test_soft_threshold(void **state)
{
    enum { N = 61 };
    static const double heights[] = {0, 0, 1e9, -1e12};
    (void)state;
    for (int begin = 0; begin < 4; begin++) {
        const task what = {.value = apart_value,
                           .context = &heights[begin],
                           .options = {.parameters = N,
                                       .history = 10,
                                       .iterations = 500,
                                       .gradient_tolerance = 1e-10,
                                       .l1 = 2,
                                       .l1_first = 5,
                                       .l1_count = 50}};
        double *x = room(N);
        for (int i = 0; i < N && begin % 2 == 1; i++)
            x[i] = i % 3 - 1;
        outcome got = descend(&what, x);
        double value = heights[begin];
        assert_int_equal(got.machine.end, LEARN_LBFGS_GRADIENT);
        for (int i = 0; i < N; i++) {
            const bool weighed = i >= 5 && i < 55;
            const double at = i / 10.0 - 3, weight = 1 + i % 5, less = weighed ? 2 / weight : 0;
            const double expected = fabs(at) <= less ? 0 : at > 0 ? at - less : at + less;
            if (expected == 0)
                assert_true(got.x[i] == 0 && !signbit(got.x[i]));
            assert_true(fabs(got.x[i] - expected) <= 1e-9);
            value += 0.5 * weight * (got.x[i] - at) * (got.x[i] - at) + (weighed ? 2 * fabs(got.x[i]) : 0);
        }
        assert_true(fabs(got.machine.value - value) <= 1e-12 * fabs(value));
        base_free(&got.x);
    }
}

/* Karush, Kuhn and Tucker: where x is not 0 the gradient is -l1 times its sign, where it is 0 the gradient is no
 * greater than l1. */
static void test_lasso(void **state)
{
    static const double weights[] = {0.01, 1, 3, 10, 1000};
    (void)state;
    const rows of = lasso_rows();
    double *g = room(LASSO_COLUMNS);
    for (size_t w = 0; w < sizeof weights / sizeof *weights; w++) {
        const task what = lasso(&of, weights[w], 1, LASSO_COLUMNS - 1);
        outcome got = descend(&what, room(LASSO_COLUMNS));
        int zeros = 0;
        assert_int_equal(got.machine.end, LEARN_LBFGS_GRADIENT);
        rows_value(&of, LASSO_COLUMNS, got.x, g);
        assert_true(fabs(g[0]) <= 1e-8);
        for (int i = 1; i < LASSO_COLUMNS; i++) {
            zeros += got.x[i] == 0;
            if (got.x[i] == 0)
                assert_true(fabs(g[i]) <= weights[w] + 1e-8);
            else
                assert_true(fabs(g[i] + copysign(weights[w], got.x[i])) <= 1e-8);
        }
        assert_true(weights[w] < 3 || zeros >= 20);
        assert_true(weights[w] < 1000 || zeros == LASSO_COLUMNS - 1);
        base_free(&got.x);
    }
    base_free(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradients),
        cmocka_unit_test(test_minima),
        cmocka_unit_test(test_as_low_as_rounding_lets),
        cmocka_unit_test(test_rounded_values),
        cmocka_unit_test(test_cut_anywhere),
        cmocka_unit_test(test_any_threads),
        cmocka_unit_test(test_failing_crew),
        cmocka_unit_test(test_barrier),
        cmocka_unit_test(test_bad_functions),
        cmocka_unit_test(test_without_end),
        cmocka_unit_test(test_stopping),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_spoilt_machines),
        cmocka_unit_test(test_pseudo_gradient),
        cmocka_unit_test(test_path_upwards),
        cmocka_unit_test(test_soft_threshold),
        cmocka_unit_test(test_lasso),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
