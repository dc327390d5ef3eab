/* Axes of a plot: how far they go, and the round values at which people read them. */
#include <math.h>

#include "base/text.h"
#include "svg.h"

static const double day = 86400;

double plan_axis_place(const plan_axis *axis, double value)
{
    double share = axis->logarithmic ? log(fmax(value, 1e-300) / axis->low) / log(axis->high / axis->low)
                                     : (value - axis->low) / (axis->high - axis->low);
    share = fmin(fmax(share, -0.5), 1.5); /* cut at the frame anyway, and infinity is no coordinate */
    return axis->from + share * (axis->to - axis->from);
}

bool plan_axis_holds(const plan_axis *axis, double value)
{
    return value >= axis->low && value <= axis->high;
}

/* ---- ticks ------------------------------------------------------------------------------------------------------- */

/* Pixels that two ticks are apart at least, by how long their labels get; a line's height on an upright axis. */
static double tick_gap(const plan_axis *axis)
{
    return axis->from > axis->to ? 24 : axis->unit == PLAN_UNIT_WORKERS ? 36 : 50;
}

static void add_tick(plan_axis *axis, double value)
{
    if (!plan_axis_holds(axis, value) || axis->ticks == PLAN_TICKS_MOST)
        return;
    for (int i = 0; i < axis->ticks; i++)
        if (fabs(plan_axis_place(axis, value) - plan_axis_place(axis, axis->tick[i])) < tick_gap(axis))
            return;
    axis->tick[axis->ticks++] = value;
}

/* Powers of ten, then what lies between them. */
static void add_decades(plan_axis *axis, double scale)
{
    static const double digits[] = {1, 2, 5};
    for (int d = 0; d < 3; d++)
        for (int e = (int)floor(log10(axis->low / scale)); e <= ceil(log10(axis->high / scale)); e++)
            add_tick(axis, digits[d] * pow(10, e) * scale);
}

/* Hours and minutes are no powers of ten: their round values in the order in which they are wanted. */
static void add_durations(plan_axis *axis)
{
    static const double wanted[] = {1,    60,     3600, 86400, 10,     600,    36000,  864000, 0.1,    0.01, 1e-3,
                                    1e-4, 8.64e6, 30,   120,   300,    1800,   7200,   18000,  8.64e7, 2,    5,
                                    20,   1200,   1e-5, 43200, 172800, 432000, 8.64e8, 8.64e9, 0};
    for (const double *value = wanted; *value; value++)
        add_tick(axis, *value);
}

/* The unit a time is told in. */
static double unit_of(double seconds)
{
    static const double size[] = {86400, 3600, 60, 1, 1e-3};
    for (int i = 0; i < 5; i++)
        if (seconds >= size[i] * (1 - 1e-9))
            return size[i];
    return 1e-6;
}

/* On a linear axis all ticks have the unit of its greater half. */
static double unit_at(const plan_axis *axis, double value)
{
    return axis->unit == PLAN_UNIT_SECONDS ? unit_of(axis->logarithmic ? value : axis->high / 2) : 1;
}

static void add_linear(plan_axis *axis)
{
    double unit = unit_at(axis, axis->high), span = (axis->high - axis->low) / unit;
    double least = span * tick_gap(axis) * 1.2 / fabs(axis->to - axis->from), power = pow(10, floor(log10(least)));
    double step = least <= power ? power : least <= 2 * power ? 2 * power : least <= 5 * power ? 5 * power : 10 * power;
    if (axis->unit == PLAN_UNIT_WORKERS && step < 1)
        step = 1;
    for (double i = ceil(axis->low / unit / step - 1e-9); i * step * unit <= axis->high * (1 + 1e-9); i++)
        if (axis->ticks < PLAN_TICKS_MOST)
            axis->tick[axis->ticks++] = i * step * unit;
}

void plan_axis_label(char out[32], const plan_axis *axis, int tick)
{
    static const struct {
        double size;
        const char *name;
    } units[] = {{86400, "d"}, {3600, "h"}, {60, "min"}, {1, "s"}, {1e-3, "ms"}, {1e-6, "µs"}};
    double value = axis->tick[tick], unit = unit_at(axis, value);
    int i = 0;
    if (axis->unit == PLAN_UNIT_WORKERS && fabs(value) < 1e6) {
        base_format_count(out, 32, (int64_t)value);
        return;
    }
    while (axis->unit == PLAN_UNIT_SECONDS && units[i].size > unit)
        i++;
    snprintf(out, 32,
             axis->unit == PLAN_UNIT_SECONDS   ? "%g %s"
             : axis->unit == PLAN_UNIT_DOLLARS ? "$%g"
                                               : "%g",
             value / unit, units[i].name);
}

/* ---- axes -------------------------------------------------------------------------------------------------------- */

/* Some room around; one value is in the middle, and small differences are to look small. */
static void widen_axis(plan_axis *axis)
{
    double span = axis->high - axis->low, least = axis->low;
    if (axis->logarithmic) {
        double factor = pow(axis->high / axis->low, 0.06);
        axis->low /= factor;
        axis->high *= factor;
        return;
    }
    double room = 0.06 * span;
    if (axis->unit != PLAN_UNIT_WORKERS)
        room = fmax(room, 0.1 * axis->high - span / 2);
    room = room > 0 ? room : 1;
    axis->low = least >= 0 && least < room ? -room / 2 : least - room;
    axis->high += room;
}

void plan_axis_init(plan_axis *out, plan_unit unit, double least, double greatest, double from, double to)
{
    const double tiny = 1e-30, huge = 1e30; /* beyond them arithmetic ends before anything sensible begins */
    *out = (plan_axis){.unit = unit, .from = from, .to = to};
    out->low = least > 0 ? fmin(fmax(least, tiny), huge) : least;
    out->high = greatest > 0 ? fmin(fmax(greatest, tiny), huge) : greatest;
    out->logarithmic = out->low > 0 && out->high / out->low >= 5;
    widen_axis(out);
    if (!out->logarithmic)
        add_linear(out);
    else if (unit == PLAN_UNIT_SECONDS && out->high > 5 && out->low < 2 * day && out->high / out->low <= 1e9)
        add_durations(out);
    else
        add_decades(out, unit == PLAN_UNIT_SECONDS && out->low >= 2 * day ? day : 1);
}
