/* The first round: are all values numbers that the network can reproduce, and what is done to them before they go in.
 *
 * The run fails with the first bad value in reading order, whoever finds it. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "learn/autoencoder/autoencoder_internal.h"

enum { SCAN_BAD, SCAN_RANGE };
enum { RANGE_HIGH, RANGE_LOW, RANGE_VALUES }; /* the greatest value and the greatest negated value */

/* ---- looking at values ------------------------------------------------------------------------------------------- */

typedef struct bounds {
    double low, high;
} bounds;

/* What values may be at all. */
static bounds bounds_of_type(bool wide)
{
    return wide ? (bounds){-DBL_MAX, DBL_MAX} : (bounds){-FLT_MAX, FLT_MAX};
}

/* What values may be for this network: where the output has a range, they must lie in what is mapped to it. */
static bounds bounds_of(const autoencoder_own *own)
{
    bounds type = bounds_of_type(own->wide), range;
    autoencoder_range(&range.low, &range.high, (kernel_activation)own->output);
    if (own->scaling == AUTOENCODER_AUTO || isinf(range.high))
        return type;
    if (own->scaling == AUTOENCODER_GIVEN)
        range = (bounds){own->low, own->high};
    return (bounds){fmax(range.low, type.low), fmin(range.high, type.high)};
}

/* The least and the greatest of a run; false when one is outside.  Lanes, because compilers keep the order of a
 * minimum. */
static bool find_bounds(bounds *seen, const double *values, int64_t count, bounds allowed)
{
    double low[KERNEL_LANES], high[KERNEL_LANES], odd = 0;
    for (int l = 0; l < KERNEL_LANES; l++)
        low[l] = INFINITY, high[l] = -INFINITY;
    int64_t whole = count / KERNEL_LANES * KERNEL_LANES;
    for (int64_t i = 0; i < whole; i += KERNEL_LANES)
        for (int l = 0; l < KERNEL_LANES; l++) {
            low[l] = values[i + l] < low[l] ? values[i + l] : low[l];
            high[l] = values[i + l] > high[l] ? values[i + l] : high[l];
        }
    for (int64_t i = whole; i < count; i++) {
        low[0] = values[i] < low[0] ? values[i] : low[0];
        high[0] = values[i] > high[0] ? values[i] : high[0];
    }
    for (int64_t i = 0; i < count; i++) /* a NaN is neither less nor greater */
        odd += values[i] * 0;
    for (int l = 0; l < KERNEL_LANES; l++) {
        seen->low = low[l] < seen->low ? low[l] : seen->low;
        seen->high = high[l] > seen->high ? high[l] : seen->high;
    }
    return odd == 0 && seen->low >= allowed.low && seen->high <= allowed.high;
}

/* Keys grow with falling row and column, so that the greatest is the first in reading order. */
static int record_value(shoal_partial *partial, int cell, const shoal_grain *grain, int64_t index, double value)
{
    int64_t columns = grain->shape->columns;
    shoal_key key = {~(uint64_t)(grain->first_row + index / columns), ~(uint64_t)(index % columns)};
    return shoal_partial_record(partial, cell, key, &value);
}

static int look_at_grain(bounds *seen, shoal_partial *partial, int cell, const shoal_grain *grain, bounds allowed,
                         double *run)
{
    const shoal_shape *shape = grain->shape;
    int64_t count = grain->rows * shape->columns;
    for (int64_t first = 0; first < count; first += AUTOENCODER_SCAN_RUN) {
        int64_t left = count - first, some = left < AUTOENCODER_SCAN_RUN ? left : AUTOENCODER_SCAN_RUN;
        shoal_convert_float64(run, (const char *)grain->values + (size_t)first * shoal_type_size(shape->type),
                              shape->type, some);
        if (find_bounds(seen, run, some, allowed))
            continue;
        for (int64_t i = 0; i < some; i++)
            if (!(run[i] >= allowed.low && run[i] <= allowed.high))
                return record_value(partial, cell, grain, first + i, run[i]);
        SHOAL_BUG("a value that was out of bounds is gone");
    }
    return SHOAL_OK;
}

/* ---- for others of this folder ----------------------------------------------------------------------------------- */

void autoencoder_bad_cell(shoal_cell *cell)
{
    *cell = (shoal_cell){"bad value", SHOAL_CELL_RECORD, 1, sizeof(double), false};
}

int autoencoder_note_bad(shoal_partial *partial, int cell, const shoal_grain *grain, bool wide, double *scratch)
{
    bounds seen = {INFINITY, -INFINITY};
    return look_at_grain(&seen, partial, cell, grain, bounds_of_type(wide), scratch);
}

typedef struct bad_value {
    long long row, column; /* from 1 */
    double value;
} bad_value;

static bool find_bad(bad_value *out, const shoal_partial *merged, int cell)
{
    shoal_key key;
    if (shoal_partial_records(merged, cell) == 0)
        return false;
    memcpy(&out->value, shoal_partial_record_at(merged, cell, 0, &key), sizeof out->value);
    out->row = (long long)~key.high + 1;
    out->column = (long long)~key.low + 1;
    return true;
}

static int refuse_not_finite(const bad_value *bad)
{
    return shoal_fail(SHOAL_INVALID, "row %lld, column %lld is %s; an autoencoder needs finite numbers", bad->row,
                      bad->column,
                      isnan(bad->value) ? "not a number"
                      : bad->value > 0  ? "infinite"
                                        : "minus infinity");
}

static int refuse_large(const bad_value *bad)
{
    return shoal_fail(SHOAL_INVALID,
                      "row %lld, column %lld: %.9g is beyond float32: only a model of --precision float64 takes it",
                      bad->row, bad->column, bad->value);
}

int autoencoder_refuse_bad(const shoal_partial *merged, int cell)
{
    bad_value bad;
    if (!find_bad(&bad, merged, cell))
        return SHOAL_OK;
    return isfinite(bad.value) ? refuse_large(&bad) : refuse_not_finite(&bad);
}

/* ---- the round --------------------------------------------------------------------------------------------------- */

void autoencoder_scan_layout(shoal_layout *layout, const void *own, const shoal_shape *shape)
{
    (void)own, (void)shape;
    layout->cells = 2;
    autoencoder_bad_cell(&layout->cell[SCAN_BAD]);
    layout->cell[SCAN_RANGE] = (shoal_cell){"range", SHOAL_CELL_MAX, RANGE_VALUES, 0, false};
}

size_t autoencoder_scan_scratch(const void *own, const shoal_shape *shape)
{
    (void)own, (void)shape;
    return AUTOENCODER_SCAN_RUN * sizeof(double);
}

int autoencoder_scan(shoal_partial *partial, const void *own, const shoal_grain *grain, const shoal_scratch *scratch)
{
    bounds seen = {INFINITY, -INFINITY};
    int status = look_at_grain(&seen, partial, SCAN_BAD, grain, bounds_of(own), scratch->memory);
    int64_t *range = shoal_partial_values(partial, SCAN_RANGE);
    if (seen.low <= seen.high) {
        shoal_max_raise(range, RANGE_HIGH, seen.high);
        shoal_max_raise(range, RANGE_LOW, -seen.low);
    }
    return status;
}

static int refuse_value(const autoencoder_own *own, const bad_value *bad)
{
    const char *name = autoencoder_activation_name((kernel_activation)own->output);
    double low, high;
    autoencoder_range(&low, &high, (kernel_activation)own->output);
    if (!isfinite(bad->value))
        return refuse_not_finite(bad);
    if (own->scaling == AUTOENCODER_AUTO || isinf(high))
        return refuse_large(bad);
    if (own->scaling == AUTOENCODER_GIVEN)
        return shoal_fail(SHOAL_INVALID,
                          "row %lld, column %lld: %.9g is outside %.9g to %.9g, which --rescale maps to %g to %g, the "
                          "range of %s outputs",
                          bad->row, bad->column, bad->value, own->low, own->high, low, high, name);
    return shoal_fail(SHOAL_INVALID,
                      "row %lld, column %lld: %.9g is outside %g to %g, the range of %s outputs; --rescale auto maps "
                      "the data's own range to it, or use --output linear",
                      bad->row, bad->column, bad->value, low, high, name);
}

/* Maps own->low and own->high to the ends of the output's range, or to 0 and 1 where it has none. */
static int set_scale(autoencoder_own *own)
{
    double low, high;
    autoencoder_range(&low, &high, (kernel_activation)own->output);
    if (isinf(high))
        low = 0, high = 1;
    if (own->scaling == AUTOENCODER_AS_IT_IS)
        return SHOAL_OK;
    if (own->low == own->high)
        return shoal_fail(SHOAL_INVALID, "every value is %.9g: --rescale auto finds no range to map", own->low);
    own->scale = (high - low) / (own->high - own->low);
    own->shift = low - own->low * own->scale;
    bounds type = bounds_of_type(own->wide);
    bool apart = own->wide || (float)own->low < (float)own->high;
    if (!(apart && own->scale >= (own->wide ? DBL_MIN : FLT_MIN) && own->scale <= type.high &&
          fabs(own->shift) <= type.high))
        return shoal_fail(SHOAL_INVALID, "values from %.9g to %.9g can't be scaled to %g to %g in %s", own->low,
                          own->high, low, high, own->wide ? "float64" : "float32");
    return SHOAL_OK;
}

/* Groups are laid out one after another; sizes only have to be right within some powers of two. */
static void plan_group(gradient_plan *plan, int group, int64_t count, double size, bool narrow)
{
    if (group < 0)
        return;
    plan->group[group] = (gradient_group){.first = plan->sums, .count = count, .size = size, .narrow = narrow};
    plan->sums += count;
}

static void plan_sums(gradient_plan *plan, const autoencoder_own *own, double greatest, const shoal_shape *shape)
{
    autoencoder_groups groups = autoencoder_groups_of(own);
    double rows = (double)shape->rows_per_grain, miss = greatest + 1;
    int64_t weights = own->hidden * own->columns;
    bool narrow = !own->wide;
    plan->groups = groups.count;
    plan_group(plan, groups.error, 1, rows * (double)own->columns * miss * miss, false);
    plan_group(plan, groups.activity, own->hidden, rows * miss, narrow);
    plan_group(plan, groups.encoder_bias, own->hidden, rows * miss, narrow);
    plan_group(plan, groups.decoder_bias, own->columns, rows * miss, narrow);
    plan_group(plan, groups.encoder, weights, rows * miss * miss, narrow);
    plan_group(plan, groups.decoder, weights, rows * miss * miss, narrow);
    plan_group(plan, groups.slopes, own->hidden, rows, narrow);
    plan_group(plan, groups.reach, weights, rows * miss, narrow);
}

/* `greatest` is that of what goes into the network. */
static void fill_plan(gradient_plan *out, const autoencoder_own *own, double greatest, const shoal_shape *shape)
{
    *out = (gradient_plan){.notes = own->hidden + 3,
                           .search = {.parameters = autoencoder_place_of(own).count,
                                      .history = own->history,
                                      .iterations = own->iterations,
                                      .gradient_tolerance = own->tolerance,
                                      .change_tolerance = own->change}};
    plan_sums(out, own, greatest, shape);
}

bool autoencoder_is_plan(const gradient_plan *plan, const autoencoder_own *own, const shoal_shape *shape)
{
    gradient_plan expected;
    fill_plan(&expected, own, 0, shape);
    return gradient_plan_alike(plan, &expected);
}

int autoencoder_plan(gradient_plan *out, void **inout, size_t *own_bytes, const shoal_partial *merged,
                     const shoal_shape *shape)
{
    autoencoder_own *own = *inout;
    bad_value bad;
    (void)own_bytes;
    if (find_bad(&bad, merged, SCAN_BAD))
        return refuse_value(own, &bad);
    const int64_t *range = shoal_partial_values_const(merged, SCAN_RANGE);
    double high = shoal_max_value(range[RANGE_HIGH]), low = -shoal_max_value(range[RANGE_LOW]);
    if (own->scaling == AUTOENCODER_AUTO) {
        own->low = low;
        own->high = high;
    }
    int status = set_scale(own);
    if (status < 0)
        return status;
    double greatest = fmax(fabs(low * own->scale + own->shift), fabs(high * own->scale + own->shift));
    fill_plan(out, own, greatest, shape);
    return SHOAL_OK;
}
