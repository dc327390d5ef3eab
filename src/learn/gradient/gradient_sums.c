/* Adding the sums of grains exactly.  See gradient.h.
 *
 * A sum of a grain is rounded to a multiple of its group's quantum q and added as an int64, so that the order of grains
 * does not matter. With G grains whose greatest value is v nothing overflows while G v <= 2^62 q.  From the v of one
 * round the next one's quantum is chosen as q = 2^(e + HEADROOM - 62), where 2^e is the power of two at or above G
 * v.  So values may grow by 2^HEADROOM from one point to the next before a round has to be asked for again.  When they
 * shrink, digits are lost: below 2^-COARSE (float64) of what the quantum was made for, the round is asked for again,
 * too.  Being a function of the point alone, v is the same the second time, so a point is never asked for more than
 * twice. */
#include <math.h>

#include "learn/gradient/gradient_internal.h"

enum {
    TOTAL_BITS = 62,
    HEADROOM = 6,
    COARSE_FLOAT64 = 12,
    COARSE_FLOAT32 = 26,
    EXPONENT_LEAST = -960,
    EXPONENT_MOST = 960
};

double gradient_quantum(double size, int64_t grains)
{
    int exponent = EXPONENT_LEAST;
    if (size > 0 && isfinite(size)) {
        double fraction = frexp(size, &exponent); /* size = fraction * 2^exponent, 1/2 <= fraction < 1 */
        int more;
        exponent -= fraction == 0.5;
        fraction = frexp((double)grains, &more);
        exponent += more - (fraction == 0.5);
    }
    exponent += HEADROOM - TOTAL_BITS;
    exponent = exponent < EXPONENT_LEAST ? EXPONENT_LEAST : exponent > EXPONENT_MOST ? EXPONENT_MOST : exponent;
    return ldexp(1, exponent);
}

/* Whether the sum of all grains can't overflow. */
static bool has_room(double greatest, double quantum, int64_t grains)
{
    return greatest / quantum * (double)grains <= 0x1p62;
}

/* Notes the greatest value; false when adding is useless, since the round will be repeated. */
static bool note_greatest(gradient_sums *sums, int group, double greatest)
{
    shoal_max_raise(sums->greatest, group, greatest);
    return isfinite(greatest) && has_room(greatest, sums->model->quantum[group], sums->grains);
}

void gradient_add32(gradient_sums *sums, int group, const float *values)
{
    const gradient_group *of = &sums->model->plan.group[group];
    const kernel_dense32 *dense = &sums->kernel->dense32;
    if (note_greatest(sums, group, dense->greatest(values, of->count)))
        dense->quantise(sums->values + of->first, values, 1 / sums->model->quantum[group], of->count);
}

void gradient_add64(gradient_sums *sums, int group, const double *values)
{
    const gradient_group *of = &sums->model->plan.group[group];
    const kernel_dense64 *dense = &sums->kernel->dense64;
    if (note_greatest(sums, group, dense->greatest(values, of->count)))
        dense->quantise(sums->values + of->first, values, 1 / sums->model->quantum[group], of->count);
}

gradient_merit gradient_judge(double quantum[GRADIENT_GROUPS_MOST], const gradient_model *model,
                              const shoal_partial *merged, int64_t grains)
{
    const int64_t *keys = shoal_partial_values_const(merged, GRADIENT_CELL_GREATEST);
    gradient_merit merit = GRADIENT_FINE;
    for (int64_t i = 0; i < model->plan.groups; i++) {
        double greatest = shoal_max_value(keys[i]), had = model->quantum[i];
        double wanted = greatest > 0 ? gradient_quantum(greatest, grains) : had;
        double coarse = ldexp(wanted, model->plan.group[i].narrow ? COARSE_FLOAT32 : COARSE_FLOAT64);
        quantum[i] = had;
        if (!(greatest < INFINITY) ||
            !has_room(greatest, wanted, grains)) /* the greatest quantum has no room: too large */
            return GRADIENT_NOT_FINITE;
        if (!has_room(greatest, had, grains) || had > coarse)
            merit = GRADIENT_AGAIN;
    }
    for (int64_t i = 0; i < model->plan.groups; i++) {
        double greatest = shoal_max_value(keys[i]);
        quantum[i] = greatest > 0 ? gradient_quantum(greatest, grains) : model->quantum[i];
    }
    return merit;
}

void gradient_read_sums(double *out, const gradient_model *model, const shoal_partial *merged)
{
    const int64_t *values = shoal_partial_values_const(merged, GRADIENT_CELL_SUMS);
    for (int64_t g = 0; g < model->plan.groups; g++) {
        const gradient_group *group = &model->plan.group[g];
        for (int64_t i = group->first; i < group->first + group->count; i++)
            out[i] = (double)values[i] * model->quantum[g];
    }
}
