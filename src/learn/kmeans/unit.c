/* Directions: vectors brought to length 1, for --metric cosine (docs/learn/kmeans.md, "Cosine"). */
#include <math.h>

#include "learn/kmeans/kmeans_internal.h"

/* Squares within this range neither overflow nor lose digits that matter. */
static const double square_least = 0x1p-600, square_most = 0x1p600;

static bool is_fair(double square)
{
    return square >= square_least && square <= square_most;
}

/* Brings the greatest magnitude to between 1/2 and 1 by a power of two.  False when all are 0 or one is not finite. */
static bool bring_near_one(double *values, int64_t columns)
{
    double greatest = 0;
    int exponent;
    for (int64_t k = 0; k < columns; k++) {
        if (!isfinite(values[k]))
            return false;
        greatest = fmax(greatest, fabs(values[k]));
    }
    if (greatest == 0)
        return false;
    frexp(greatest, &exponent);
    for (int64_t k = 0; k < columns; k++)
        values[k] = ldexp(values[k], -exponent);
    return true;
}

bool kmeans_make_unit(double *restrict values, const kernel_set *kernel, int64_t columns)
{
    double square = kernel->product64(values, values, columns);
    if (!is_fair(square)) {
        if (!bring_near_one(values, columns))
            return false;
        square = kernel->product64(values, values, columns);
    }
    double factor = 1 / sqrt(square);
    for (int64_t k = 0; k < columns; k++)
        values[k] *= factor;
    return true;
}

double kmeans_sum_factor(const double *sum, const kernel_set *kernel, int64_t columns)
{
    double square = kernel->product64(sum, sum, columns);
    return is_fair(square) ? 1 / sqrt(square) : 0;
}

/* What a computed |v|^2 is off from 1 at most, in units of 2^-53, when v was brought to length 1 before. */
static double unit_roundings(int64_t columns)
{
    return (double)columns / 8 + 16;
}

int kmeans_make_centres_unit(double *centres, int64_t k, int64_t columns)
{
    const kernel_set *kernel = NULL;
    int status = kernel_choose(&kernel, "portable"); /* they all give the same bits */
    for (int64_t j = 0; j < k && status == SHOAL_OK; j++) {
        double *centre = centres + j * columns;
        double off = fabs(kernel->product64(centre, centre, columns) - 1);
        if (!(off <= unit_roundings(columns) * 0x1p-52) && !kmeans_make_unit(centre, kernel, columns))
            return shoal_fail(SHOAL_INVALID,
                              "row %lld of the given centres is all zeros and has no direction, which --metric cosine "
                              "needs",
                              (long long)j + 1);
    }
    return status;
}

double kmeans_same_direction(const kmeans_model *model)
{
    double apart = unit_roundings(model->columns) * 0x1p-53;
    return kmeans_is_cosine(model) ? apart * apart : 0;
}

double kmeans_told_objective(const kmeans_model *model, double sum)
{
    return sum / model->prescale / model->prescale / model->weight_scale * (kmeans_is_cosine(model) ? 0.5 : 1);
}
