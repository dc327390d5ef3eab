/* Searches along a line.
 *
 * The first is that of Moré and Thuente 1994: it keeps an interval that holds points with the strong Wolfe
 * conditions, and picks the next step from cubics and parabolas through its ends.  Near a minimum the rounding of f
 * hides by how much a step lowers it; there the change of f is taken from the slopes, which turns the first Wolfe
 * condition into the approximate one of Hager and Zhang 2005, (4.1).  The second only goes back, for OWL-QN (Andrew
 * and Gao 2007).  All is made of + - * / and sqrt, so every machine takes the same steps. */
#include "learn/lbfgs_internal.h"

#include <math.h>

enum { EVALUATIONS_MOST = 30, HIDDEN_EVALUATIONS_MOST = 8 };

static const double DECREASE = 1e-4; /* of the slope at 0 that a step must make good */
static const double CURVATURE = 0.9; /* of the slope at 0 that may be left */
static const double HIDDEN = 1e-8;   /* of f: changes below it are not trusted to be seen in f */
static const double NARROW = 1e-15;  /* of the step: an interval that can't be divided any more */
static const double FARTHEST = 100;  /* times the last stretch, to where a cubic or a secant puts the minimum */
static const double BLINDLY = 4;     /* the same where the slope gets steeper, so nothing says where it lies */
static const double STEP_MOST = 1e30;

void lbfgs_line_start(learn_line *line, double slope, double step)
{
    *line = (learn_line){.slope = slope, .step = step, .best_slope = slope};
}

bool lbfgs_line_good(const learn_line *line)
{
    const double numbers[] = {line->slope,      line->step,         line->best_step,   line->best_value,
                              line->best_slope, line->other_step,   line->other_value, line->other_slope,
                              line->width,      line->width_before, line->wall};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (!isfinite(numbers[i]))
            return false;
    return line->slope <= 0 && line->step >= 0 && line->best_step >= 0 && line->other_step >= 0 && line->wall >= 0 &&
           line->evaluations >= 0 && line->evaluations <= EVALUATIONS_MOST + 1 && line->bracketed >> 1 == 0 &&
           line->settled >> 1 == 0 && line->again >> 1 == 0;
}

/* ---- strong Wolfe ------------------------------------------------------------------------------------------------ */

typedef struct point {
    double step, value, slope;
} point;

/* Where the cubic with these values and slopes has its minimum; Nocedal and Wright 2006, (3.59).  Not finite when it
 * has none. */
static double cubic(point a, point b)
{
    const double sum = a.slope + b.slope - 3 * (a.value - b.value) / (a.step - b.step);
    const double most = fmax(fabs(sum), fmax(fabs(a.slope), fabs(b.slope)));
    const double inside = (sum / most) * (sum / most) - (a.slope / most) * (b.slope / most);
    const double root = (b.step > a.step ? most : -most) * sqrt(inside);
    return b.step - (b.step - a.step) * ((b.slope + root - sum) / (b.slope - a.slope + 2 * root));
}

/* Where the parabola with value and slope at a, value at b, has its minimum. */
static double parabola(point a, point b)
{
    const double rise = (a.value - b.value) / (b.step - a.step) + a.slope;
    return a.step + (a.slope / rise) / 2 * (b.step - a.step);
}

/* Where the line through both slopes is 0. */
static double secant(point a, point b)
{
    return b.step + b.slope / (b.slope - a.slope) * (a.step - b.step);
}

static bool nearer(double a, double b, double to)
{
    return fabs(a - to) < fabs(b - to);
}

static double between(double value, double low, double high)
{
    return value < low ? low : value > high ? high : value;
}

/* The next step, from the best point so far, the other end of the interval and the newest point: cases 1 to 4 of
 * section 4 of Moré and Thuente.  Where there is no interval yet, `high` bounds it and `steep` is how far to go when
 * the slope gets steeper. */
static double pick(point best, point other, point newest, bool bracketed, double steep, double high)
{
    const bool turned = newest.slope * best.slope < 0;
    if (newest.value > best.value) {
        const double c = cubic(best, newest), q = parabola(best, newest);
        return !isfinite(c) || nearer(q, c, best.step) ? (isfinite(c) ? c + (q - c) / 2 : q) : c;
    }
    if (turned) {
        const double c = cubic(best, newest), q = secant(best, newest);
        return isfinite(c) && nearer(q, c, newest.step) ? c : q;
    }
    if (fabs(newest.slope) < fabs(best.slope)) {
        const double q = secant(best, newest);
        double c = cubic(best, newest);
        if (!isfinite(c) || (c - newest.step) * (newest.step - best.step) <= 0)
            c = high; /* the cubic's minimum does not lie ahead */
        if (!bracketed)
            return fmin(fmax(nearer(c, q, newest.step) ? q : c, newest.step + 1.1 * (newest.step - best.step)), high);
        const double limit = newest.step + 0.66 * (other.step - newest.step);
        const double chosen = nearer(c, q, newest.step) ? c : q;
        return newest.step > best.step ? fmin(chosen, limit) : fmax(chosen, limit);
    }
    if (bracketed) {
        const double c = cubic(newest, other);
        return isfinite(c) ? c : newest.step + (other.step - newest.step) / 2;
    }
    return steep;
}

/* Puts the newest point into the interval. */
static void narrow(learn_line *line, point *best, point *other, point newest)
{
    if (newest.value > best->value) {
        *other = newest;
        line->bracketed = true;
    } else {
        if (newest.slope * best->slope < 0) {
            *other = *best;
            line->bracketed = true;
        }
        *best = newest;
    }
}

/* Whether a step promises no more than what rounding may hide. */
static bool hidden(const learn_line *line, double origin)
{
    return fabs(line->step * line->slope) <= HIDDEN * fabs(origin);
}

/* The value relative to the origin's.  Where the step is too short to show in f, that is the integral of the slope. */
static double relative(const learn_line *line, double origin, double value, double slope)
{
    const double seen = value - origin;
    if (!hidden(line, origin) || fabs(seen) > HIDDEN * fabs(origin))
        return seen;
    return line->best_value + (line->step - line->best_step) * (0.5 * line->best_slope + 0.5 * slope);
}

/* No step is worth trying any more: the best point, if it is low enough, or none. */
static lbfgs_verdict give_up(learn_line *line)
{
    if (line->best_step == 0 || line->best_value > DECREASE * line->best_step * line->slope)
        return LBFGS_FAIL;
    if (line->best_step == line->step)
        return LBFGS_TAKE;
    line->step = line->best_step;
    line->again = true;
    return LBFGS_TRY;
}

/* Behind a wall there are no values to interpolate. */
static lbfgs_verdict step_back(learn_line *line)
{
    const double from = line->best_step;
    const bool first = line->wall == 0;
    line->wall = line->step;
    line->step = from + (line->step - from) * (first ? 0.5 : 0.1);
    if (line->evaluations >= EVALUATIONS_MOST || line->step <= from || line->step >= line->wall)
        return give_up(line);
    return LBFGS_TRY;
}

/* Replaces the interval's ends by those of the function less DECREASE of the slope, or back. */
static point tilt(point of, double by)
{
    of.value -= of.step * by;
    of.slope -= by;
    return of;
}

/* Makes the newest point an end of the interval and picks the next step. */
static void advance(learn_line *line, point newest)
{
    const double least = DECREASE * line->slope;
    point best = {line->best_step, line->best_value, line->best_slope};
    point other = {line->other_step, line->other_value, line->other_slope};
    const double stretch = newest.step - best.step;
    const double limit = line->wall > 0 ? newest.step + (line->wall - newest.step) / 2 : STEP_MOST;
    const double high = fmin(newest.step + FARTHEST * stretch, limit);
    const double steep = fmin(newest.step + BLINDLY * stretch, limit);
    const bool tilted = !line->settled && newest.value <= best.value && newest.value > newest.step * least;
    const double by = tilted ? least : 0;
    best = tilt(best, by);
    other = tilt(other, by);
    newest = tilt(newest, by);
    line->step = pick(best, other, newest, line->bracketed, steep, high);
    narrow(line, &best, &other, newest);
    best = tilt(best, -by);
    other = tilt(other, -by);
    line->best_step = best.step, line->best_value = best.value, line->best_slope = best.slope;
    line->other_step = other.step, line->other_value = other.value, line->other_slope = other.slope;
}

/* Halves an interval that does not shrink fast enough by itself. */
static void keep_shrinking(learn_line *line)
{
    const double width = fabs(line->other_step - line->best_step);
    if (line->width_before > 0 && width >= 0.66 * line->width_before)
        line->step = line->best_step + (line->other_step - line->best_step) / 2;
    line->width_before = line->width;
    line->width = width;
}

lbfgs_verdict lbfgs_line_wolfe(learn_line *line, double origin, double value, double slope, bool finite)
{
    line->evaluations++;
    if (line->again)
        return finite ? LBFGS_TAKE : LBFGS_FAIL;
    if (!finite)
        return step_back(line);
    const point newest = {line->step, relative(line, origin, value, slope), slope};
    const int most = hidden(line, origin) ? HIDDEN_EVALUATIONS_MOST : EVALUATIONS_MOST;
    const bool low_enough = newest.value <= DECREASE * newest.step * line->slope;
    if (low_enough && fabs(slope) <= CURVATURE * -line->slope)
        return LBFGS_TAKE;
    if (low_enough && slope >= 0)
        line->settled = true;
    advance(line, newest);
    if (line->bracketed)
        keep_shrinking(line);
    const double low = fmin(line->best_step, line->other_step), high = fmax(line->best_step, line->other_step);
    const bool used_up = line->bracketed
                             ? !(line->step > low && line->step < high) || high - low <= NARROW * high
                             : line->step <= newest.step || line->step >= STEP_MOST || !isfinite(line->step);
    if (used_up || line->evaluations >= most) {
        line->step = newest.step;
        return give_up(line);
    }
    return LBFGS_TRY;
}

/* ---- backtracking ------------------------------------------------------------------------------------------------ */

lbfgs_verdict lbfgs_line_back(learn_line *line, double origin, double value, const lbfgs_change *change, bool finite)
{
    line->evaluations++;
    double shrink = 0.1;
    if (!finite) {
        line->wall = line->step;
    } else {
        line->bracketed = true;
        const double hidden = HIDDEN * fabs(origin);
        const double seen = value - origin;
        const bool visible = fabs(seen) > hidden || fabs(change->promised) > hidden;
        const double risen = visible ? seen : change->trapezium;
        /* Where parts of the path end at 0, the rest may lead upwards: then a shorter step is promised more. */
        if (change->promised < 0 && risen <= DECREASE * change->promised && change->moved > 0)
            return LBFGS_TAKE;
        /* The parabola through both values with the slope at 0, its minimum neither too near nor too far. */
        shrink = between(-change->promised / (2 * (risen - change->promised)), 0.1, 0.5);
    }
    line->step *= shrink;
    const bool moves = !finite || change->moved > 0;
    return moves && line->step > 0 && line->evaluations < EVALUATIONS_MOST ? LBFGS_TRY : LBFGS_FAIL;
}
