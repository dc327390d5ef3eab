/* The slowest of many.  See straggle.h. */
#include "plan/straggle.h"

#include <math.h>

/* Bisection would do; Newton's steps on the logarithm of the tail, which is nearly a parabola, need a handful. */
static double upper_half(double above)
{
    double z = above < 0.4 ? sqrt(-2 * log(above)) : 0.5, target = log(above);
    for (int i = 0; i < 60; i++) {
        double tail = 0.5 * erfc(z / M_SQRT2);
        double slope = -exp(-0.5 * z * z) / sqrt(2 * M_PI) / tail;
        double step = (log(tail) - target) / slope;
        z -= step;
        if (fabs(step) < 1e-13 * (1 + fabs(z)))
            break;
    }
    return z;
}

double plan_normal_above(double above)
{
    if (!(above > 0))
        return 37; /* further out than any double's tail */
    if (above < 1e-280)
        above = 1e-280;
    if (above >= 1)
        return -37;
    return above <= 0.5 ? upper_half(above) : -upper_half(1 - above);
}

/* The greatest of n has the distribution F^n.  With F^n = exp(-exp(-g)) the density over g is that of Gumbel, smooth
 * and short, and the trapezoid rule converges at once. */
plan_slowest plan_slowest_of(double count, double deviation)
{
    static const double FROM = -4, TO = 30;
    enum { STEPS = 136 };
    if (!(count > 1) || !(deviation > 0))
        return (plan_slowest){.mean = 1,
                              .deviation = count > 1 || !(deviation > 0) ? 0 : sqrt(expm1(deviation * deviation))};
    double weights = 0, sum = 0, squares = 0;
    for (int i = 0; i <= STEPS; i++) {
        double g = FROM + (TO - FROM) * i / STEPS, weight = exp(-g - exp(-g));
        double above = -expm1(-exp(-g) / count);
        double factor = exp(deviation * plan_normal_above(above) - 0.5 * deviation * deviation);
        weights += weight;
        sum += weight * factor;
        squares += weight * factor * factor;
    }
    double mean = sum / weights, variance = squares / weights - mean * mean;
    return (plan_slowest){.mean = mean, .deviation = variance > 0 ? sqrt(variance) : 0};
}

plan_slowest plan_slowest_again(plan_slowest_memo *memo, double count, double deviation)
{
    if (memo->count != count || memo->deviation != deviation) /* a count of 0 never comes */
        *memo = (plan_slowest_memo){count, deviation, plan_slowest_of(count, deviation)};
    return memo->slowest;
}
