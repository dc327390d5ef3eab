/* Sobol's sequence, whose first points cover the space more evenly than chance does, shifted by chance (digit by digit,
 * which keeps that).  Directions are those of Joe and Kuo, "Constructing Sobol sequences with better two-dimensional
 * projections", SIAM J. Sci. Comput. 30 (2008), new-joe-kuo-6. */
#include "sampler.h"

#include <shoal/error.h>

#include "base/random.h"

enum { BITS = 32, DEGREE_MOST = 8, SHIFT_DRAW = 1 << 20 };

static const struct direction {
    unsigned polynomial; /* primitive over GF(2), all its coefficients as bits */
    unsigned first[DEGREE_MOST - 1];
} directions[SWEEP_PARAMETERS_MOST] = {
    {1, {1}},
    {3, {1}},
    {7, {1, 3}},
    {11, {1, 3, 1}},
    {13, {1, 1, 1}},
    {19, {1, 1, 3, 3}},
    {25, {1, 3, 5, 13}},
    {37, {1, 1, 5, 5, 17}},
    {41, {1, 1, 5, 5, 5}},
    {47, {1, 1, 7, 11, 19}},
    {55, {1, 1, 5, 1, 1}},
    {59, {1, 1, 1, 3, 11}},
    {61, {1, 3, 5, 5, 31}},
    {67, {1, 3, 3, 9, 7, 49}},
    {91, {1, 1, 1, 15, 21, 21}},
    {97, {1, 3, 1, 13, 27, 49}},
    {103, {1, 1, 1, 15, 7, 5}},
    {109, {1, 3, 1, 15, 13, 25}},
    {115, {1, 1, 5, 5, 19, 61}},
    {131, {1, 3, 7, 11, 23, 15, 103}},
    {137, {1, 3, 7, 13, 13, 15, 69}},
    {143, {1, 1, 3, 13, 7, 35, 63}},
    {145, {1, 3, 5, 9, 1, 25, 53}},
    {157, {1, 3, 1, 13, 9, 35, 107}},
    {167, {1, 3, 1, 5, 27, 61, 31}},
    {171, {1, 1, 5, 11, 19, 41, 61}},
    {185, {1, 3, 5, 3, 3, 13, 69}},
    {191, {1, 1, 7, 13, 1, 19, 1}},
    {193, {1, 3, 7, 5, 13, 19, 59}},
    {203, {1, 1, 3, 9, 25, 29, 41}},
    {211, {1, 3, 5, 13, 23, 1, 55}},
    {213, {1, 3, 7, 3, 13, 59, 17}},
};

/* Bit k of a number of the sequence changes these bits of the place. */
static void find_directions(uint32_t out[BITS], const struct direction *of)
{
    int degree = 0;
    while (of->polynomial >> (degree + 1))
        degree++;
    for (int k = 0; k < BITS; k++) {
        uint32_t m = k < degree || degree == 0 ? of->first[degree == 0 ? 0 : k] : 0;
        if (degree > 0 && k >= degree) {
            m = out[k - degree] >> (BITS - 1 - (k - degree));
            m ^= m << degree;
            for (int j = 1; j < degree; j++)
                if (of->polynomial >> (degree - j) & 1)
                    m ^= (out[k - j] >> (BITS - 1 - (k - j))) << j;
        }
        out[k] = m << (BITS - 1 - k);
    }
}

static int suggest_sobol(sweep_point *out, const sweep_question *question)
{
    double place[SWEEP_PARAMETERS_MOST];
    uint32_t direction[BITS];
    if (question->number > UINT32_MAX)
        return shoal_fail(SHOAL_ABSENT, "Sobol's sequence has %lld points here", (long long)UINT32_MAX + 1);
    for (int i = 0; i < question->space->parameters; i++) {
        find_directions(direction, &directions[i]);
        uint32_t digits = (uint32_t)base_random_u64(question->seed, BASE_FOR_SWEEPS, (uint64_t)i, SHIFT_DRAW);
        for (int k = 0; k < BITS; k++)
            if (question->number >> k & 1)
                digits ^= direction[k];
        place[i] = ((double)digits + 0.5) / 4294967296.0;
    }
    sweep_point_at(out, question->space, place);
    return SHOAL_OK;
}

const sweep_sampler sweep_sampler_sobol = {
    .name = "sobol", .summary = "spread evenly (Sobol's sequence)", .suggest = suggest_sobol};
