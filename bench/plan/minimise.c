/* Nelder and Mead's simplex in the form of Gao and Han 2012 ("Implementing the Nelder-Mead simplex algorithm with
 * adaptive parameters"), whose factors depend on the number of variables: the classical ones stall beyond a handful.  A
 * simplex can also shrink onto a place that is no minimum, so a fresh one is put there, and again, until that brings
 * nothing more. */
#include "minimise.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { ROUNDS_MOST = 20, STEPS_PER_VARIABLE = 400 };

static const double flat = 1e-13; /* values that differ by less, as a share, are equal */
static const double small = 1e-7; /* so is a simplex of this size, as a share of its first or of where it is */

typedef struct simplex {
    int count; /* of variables */
    double (*value)(const double *x, void *context);
    void *context;
    double vertex[PLAN_MINIMISE_MOST + 1][PLAN_MINIMISE_MOST]; /* the best first */
    double f[PLAN_MINIMISE_MOST + 1];
    double centre[PLAN_MINIMISE_MOST]; /* of all but the worst */
} simplex;

static double value_at(const simplex *s, const double *x)
{
    const double f = s->value(x, s->context);
    return isfinite(f) ? f : DBL_MAX;
}

/* Equal values keep their order, so that what happens does not depend on how a library sorts. */
static void sort_vertices(simplex *s)
{
    for (int i = 1; i <= s->count; i++) {
        double x[PLAN_MINIMISE_MOST];
        const double f = s->f[i];
        memcpy(x, s->vertex[i], sizeof x);
        int at = i;
        for (; at > 0 && s->f[at - 1] > f; at--) {
            memcpy(s->vertex[at], s->vertex[at - 1], sizeof x);
            s->f[at] = s->f[at - 1];
        }
        memcpy(s->vertex[at], x, sizeof x);
        s->f[at] = f;
    }
}

static void place_simplex(simplex *s, const double *x, double f, const double *step, double scale)
{
    for (int i = 0; i <= s->count; i++) {
        memcpy(s->vertex[i], x, sizeof *x * (size_t)s->count);
        if (i > 0)
            s->vertex[i][i - 1] += scale * step[i - 1];
        s->f[i] = i > 0 ? value_at(s, s->vertex[i]) : f;
    }
    sort_vertices(s);
}

static bool is_done(const simplex *s, const double *step)
{
    const int n = s->count;
    bool tiny = true;
    for (int j = 0; j < n; j++)
        for (int i = 1; i <= n; i++)
            tiny =
                tiny && fabs(s->vertex[i][j] - s->vertex[0][j]) <= small * fmax(fabs(step[j]), fabs(s->vertex[0][j]));
    return tiny || s->f[n] - s->f[0] <= flat * fabs(s->f[0]);
}

static void find_centre(simplex *s)
{
    for (int j = 0; j < s->count; j++) {
        double sum = 0;
        for (int i = 0; i < s->count; i++)
            sum += s->vertex[i][j];
        s->centre[j] = sum / s->count;
    }
}

/* The point on the line from the worst vertex through the centre, `factor` times as far behind the centre. */
static double probe(const simplex *s, double *x, double factor)
{
    for (int j = 0; j < s->count; j++)
        x[j] = s->centre[j] + factor * (s->centre[j] - s->vertex[s->count][j]);
    return value_at(s, x);
}

static void take(simplex *s, const double *x, double f)
{
    memcpy(s->vertex[s->count], x, sizeof *x * (size_t)s->count);
    s->f[s->count] = f;
}

static void shrink(simplex *s, double factor)
{
    for (int i = 1; i <= s->count; i++) {
        for (int j = 0; j < s->count; j++)
            s->vertex[i][j] = s->vertex[0][j] + factor * (s->vertex[i][j] - s->vertex[0][j]);
        s->f[i] = value_at(s, s->vertex[i]);
    }
}

static void move_once(simplex *s)
{
    const int n = s->count;
    const double wide = n > 1 ? n : 2; /* with one variable the adaptive factors would be 0 */
    double reflected[PLAN_MINIMISE_MOST], other[PLAN_MINIMISE_MOST];
    find_centre(s);
    const double f = probe(s, reflected, 1);
    if (f < s->f[0]) {
        const double further = probe(s, other, 1 + 2 / wide);
        take(s, further < f ? other : reflected, further < f ? further : f);
    } else if (f < s->f[n - 1]) {
        take(s, reflected, f);
    } else {
        const bool outside = f < s->f[n];
        const double contracted = probe(s, other, (outside ? 1 : -1) * (0.75 - 1 / (2 * wide)));
        if (contracted < s->f[n] && (!outside || contracted <= f))
            take(s, other, contracted);
        else
            shrink(s, 1 - 1 / wide);
    }
    sort_vertices(s);
}

double plan_minimise(double *x, int count, const double *step, double (*value)(const double *x, void *context),
                     void *context)
{
    simplex s = {.count = count, .value = value, .context = context};
    double best = value_at(&s, x);
    for (int round = 0; count > 0 && round < ROUNDS_MOST; round++) {
        const double before = best;
        /* Turned round each time: what lies behind one wall of values that are not finite may be open from the other
         * side. */
        place_simplex(&s, x, best, step, (round % 2 ? -1 : 1) * (round < 2 ? 1 : 0.1));
        for (int moves = 0; moves < STEPS_PER_VARIABLE * count && !is_done(&s, step); moves++)
            move_once(&s);
        best = s.f[0];
        memcpy(x, s.vertex[0], sizeof *x * (size_t)count);
        if (round > 0 && before - best <= 1e-10 * fabs(best))
            break;
    }
    return best;
}
