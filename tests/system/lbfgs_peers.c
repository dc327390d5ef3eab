/* L-BFGS beside liblbfgs, as a module that test_lbfgs_peers.py loads: the functions, a count of evaluations that
 * is the same for all, and runs of both.
 *
 * * What is counted is how many times a function is evaluated until, for the first time, the point that was
 * evaluated is good enough by a rule.  The stopping rules of the minimisers themselves are turned off, so none of
 * them gains by stopping early or loses by stopping late. */
#include <stdint.h>
#include <stdlib.h>

#ifdef HAVE_LIBLBFGS
#include <lbfgs.h>
#endif

#include "learn/lbfgs.h"
#include "lbfgs_functions.h"

#define PEER_API __attribute__((visibility("default")))

enum { EVALUATIONS_MOST = 20000, RULES = 2 };

/* The evaluations of one run. */
static struct {
    const lbfgs_function *of;
    int evaluations;
    int reached[RULES]; /* evaluations until the gradient was small, until the value was low; 0 before */
    double lowest;
} run;

PEER_API int peer_functions(void)
{
    return LBFGS_FUNCTIONS;
}

PEER_API const char *peer_name(int function)
{
    return lbfgs_functions[function].name;
}

PEER_API int peer_size(int function)
{
    return lbfgs_functions[function].n;
}

PEER_API double peer_minimum(int function)
{
    return lbfgs_functions[function].minimum;
}

/* A number in -1 .. 1 that looks random. */
static double scattered(int variant, int i)
{
    uint32_t bits = (uint32_t)variant * 2654435769u ^ (uint32_t)i * 2246822519u;
    for (int round = 0; round < 3; round++) {
        bits ^= bits >> 15;
        bits *= 739982445u;
    }
    return (bits >> 8) / 8388608.0 - 1;
}

/* Starts to count for a function, and gives the point to start from: the usual one, or, for a variant, one near it. */
PEER_API void peer_begin(int function, int variant, double *x)
{
    const lbfgs_function *of = &lbfgs_functions[function];
    memset(&run, 0, sizeof run);
    run.of = of;
    run.lowest = INFINITY;
    of->start(of->n, x);
    for (int i = 0; i < of->n && variant > 0; i++)
        x[i] += 0.1 * fmax(1, fabs(x[i])) * scattered(variant, i);
}

PEER_API double peer_evaluate(const double *x, double *g)
{
    const lbfgs_function *of = run.of;
    const double f = lbfgs_function_value(of, x, g), size = fmax(1, fabs(of->minimum));
    double greatest = 0;
    for (int i = 0; i < of->n; i++)
        greatest = fmax(greatest, fabs(g[i]));
    const int good[RULES] = {greatest <= 1e-5 * size, f - of->minimum <= 1e-9 * size};
    run.evaluations++;
    for (int rule = 0; rule < RULES; rule++)
        if (run.reached[rule] == 0 && good[rule])
            run.reached[rule] = run.evaluations;
    run.lowest = fmin(run.lowest, f);
    return f;
}

/* Whether the run that is being counted may end: every rule was met, or too much was evaluated. */
PEER_API int peer_enough(void)
{
    for (int rule = 0; rule < RULES; rule++)
        if (run.reached[rule] == 0)
            return run.evaluations >= EVALUATIONS_MOST;
    return 1;
}

PEER_API int peer_reached(int rule)
{
    return run.reached[rule];
}

PEER_API double peer_lowest(void)
{
    return run.lowest;
}

/* Makes the iterate in `workspace` the newest of the past, and lends the memory of the oldest, or new memory, as
 * the next workspace. */
static double *keep(learn_past *past, double *workspace, int history, size_t bytes)
{
    double *next = NULL;
    if (past->count == history + 1) {
        next = (double *)past->iterate[0];
        memmove(past->iterate, past->iterate + 1, sizeof *past->iterate * (size_t)history);
        past->count--;
    } else {
        next = malloc(bytes);
    }
    past->iterate[past->count++] = workspace;
    return next;
}

PEER_API int peer_run_shoal(double *x, int history)
{
    const size_t bytes = 3 * sizeof(double) * (size_t)run.of->n;
    const learn_lbfgs_options options = {.parameters = run.of->n, .history = history, .iterations = EVALUATIONS_MOST};
    learn_lbfgs machine;
    learn_past past = {0};
    learn_lbfgs_answer step = {0};
    double *g = malloc(bytes), *workspace = malloc(bytes);
    int status = learn_lbfgs_start(&machine, &options);
    while (status == 0 && !step.done && !peer_enough()) {
        const double f = peer_evaluate(x, g);
        status = learn_lbfgs_step(&step, &machine, &past, f, g, x, workspace, NULL);
        if (step.accepted)
            workspace = keep(&past, workspace, history, bytes);
    }
    for (int i = 0; i < past.count; i++)
        free((double *)past.iterate[i]);
    free(g);
    free(workspace);
    return status;
}

#ifdef HAVE_LIBLBFGS

static lbfgsfloatval_t evaluate(void *self, const lbfgsfloatval_t *x, lbfgsfloatval_t *g, int n, lbfgsfloatval_t step)
{
    (void)self, (void)n, (void)step;
    return peer_evaluate(x, g);
}

static int progress(void *self, const lbfgsfloatval_t *x, const lbfgsfloatval_t *g, lbfgsfloatval_t f,
                    lbfgsfloatval_t x_norm, lbfgsfloatval_t g_norm, lbfgsfloatval_t step, int n, int k, int evaluations)
{
    (void)self, (void)x, (void)g, (void)f, (void)x_norm, (void)g_norm, (void)step, (void)n, (void)k, (void)evaluations;
    return peer_enough();
}

/* Its defaults, but for the history and its own rule to stop. */
PEER_API int peer_run_liblbfgs(double *x, int history)
{
    lbfgs_parameter_t parameters;
    double *own = lbfgs_malloc(run.of->n);
    lbfgs_parameter_init(&parameters);
    parameters.m = history;
    parameters.epsilon = 0;
    memcpy(own, x, sizeof *x * (size_t)run.of->n);
    lbfgs(run.of->n, own, NULL, evaluate, progress, NULL, &parameters);
    memcpy(x, own, sizeof *x * (size_t)run.of->n);
    lbfgs_free(own);
    return 0;
}

PEER_API int peer_has_liblbfgs(void)
{
    return 1;
}

#else

PEER_API int peer_has_liblbfgs(void)
{
    return 0;
}

#endif
