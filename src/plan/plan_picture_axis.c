/* Axes of the plan's picture: how far they go, and the round values at which people read them. */
#include "plan_picture_internal.h"

#include <math.h>
#include <string.h>

/* Pixels that two ticks are apart at least, by how long their labels get; a line's height on an upright axis. */
static double tick_gap(const plan_axis *axis)
{
    bool upright = axis->from > axis->to;
    return upright ? 24 : axis->unit == PLAN_UNIT_WORKERS ? 36 : 50;
}

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

/* ---- ticks of logarithmic axes ----------------------------------------------------------------------------------- */

static void add_tick(plan_axis *axis, double value, double gap)
{
    if (!plan_axis_holds(axis, value) || axis->ticks == PLAN_TICKS_MOST)
        return;
    for (int i = 0; i < axis->ticks; i++)
        if (fabs(plan_axis_place(axis, value) - plan_axis_place(axis, axis->tick[i].value)) < gap)
            return;
    axis->tick[axis->ticks++].value = value;
}

/* Powers of ten, then what lies between them. */
static void add_decades(plan_axis *axis, double scale)
{
    static const double digits[] = {1, 2, 5};
    int first = (int)floor(log10(axis->low / scale)), last = (int)ceil(log10(axis->high / scale));
    int step = (last - first) / 6 + 1; /* of many decades every second, every third */
    double gap = tick_gap(axis);
    for (int e = first; e <= last; e++)
        if (e % step == 0)
            add_tick(axis, pow(10, e) * scale, gap);
    for (int d = 1; d < 3 && step == 1; d++)
        for (int e = first; e <= last; e++)
            add_tick(axis, digits[d] * pow(10, e) * scale, gap);
}

/* Hours and minutes are no powers of ten: their round values in the order in which they are wanted. */
static void add_durations(plan_axis *axis)
{
    static const double wanted[] = {1,    60,   3600,  86400, 10, 600,    36000,  864000, 30,   120,   300,
                                    1800, 7200, 18000, 2,     5,  172800, 432000, 20,     1200, 43200, 0};
    static const double day = 86400;
    if (axis->high <= 5 || axis->low >= 2 * day || axis->high / axis->low > 1e9) {
        add_decades(axis, axis->low >= 2 * day ? day : 1);
        return;
    }
    double gap = tick_gap(axis);
    for (const double *value = wanted; *value; value++)
        add_tick(axis, *value, gap);
    for (double value = 0.1; value >= axis->low; value /= 10)
        add_tick(axis, value, gap);
    for (double value = 100 * day; value <= axis->high; value *= 10)
        add_tick(axis, value, gap);
}

static void add_workers(plan_axis *axis)
{
    if (axis->high > 80) {
        add_decades(axis, 1);
        return;
    }
    for (double value = 1; value <= axis->high; value *= 2)
        add_tick(axis, value, tick_gap(axis));
}

/* ---- ticks of linear axes ---------------------------------------------------------------------------------------- */

typedef struct scale {
    double size;
    const char *name;
} scale;

/* The unit a time is told in. */
static scale scale_of(double seconds)
{
    static const scale scales[] = {{86400, " d"}, {3600, " h"}, {60, " min"}, {1, " s"}, {1e-3, " ms"}, {1e-6, " µs"}};
    static const double least[] = {172800, 7200, 120, 1, 1e-3, 0};
    int i = 0;
    while (seconds < least[i] && !(i < 3 && seconds == scales[i].size)) /* 1 min rather than 60 s */
        i++;
    return scales[i];
}

static double round_step(double least)
{
    double power = pow(10, floor(log10(least)));
    return least <= power ? power : least <= 2 * power ? 2 * power : least <= 5 * power ? 5 * power : 10 * power;
}

static void add_linear(plan_axis *axis)
{
    double unit = axis->unit == PLAN_UNIT_SECONDS ? scale_of(axis->high).size : 1;
    double span = (axis->high - axis->low) / unit, gap = tick_gap(axis);
    double step = round_step(span * gap * 1.2 / fabs(axis->to - axis->from));
    if (axis->unit == PLAN_UNIT_WORKERS && step < 1)
        step = 1;
    double first = ceil(axis->low / unit / step - 1e-9);
    int decimals = (int)fmin(fmax(0, -floor(log10(step) + 1e-9)), 12);
    for (int i = 0; i < PLAN_TICKS_MOST && (first + i) * step * unit <= axis->high * (1 + 1e-9); i++) {
        struct plan_tick *tick = &axis->tick[axis->ticks++];
        double value = (first + i) * step;
        tick->value = value * unit;
        if (axis->unit == PLAN_UNIT_SECONDS)
            snprintf(tick->label, sizeof tick->label, "%.*f%s", decimals, value, scale_of(axis->high).name);
        else if (axis->unit == PLAN_UNIT_DOLLARS && value < 1e4)
            snprintf(tick->label, sizeof tick->label, "$%.*f", decimals == 1 ? 2 : decimals, value);
    }
}

/* ---- axes -------------------------------------------------------------------------------------------------------- */

static void widen(plan_axis *axis)
{
    const double room = 0.06;
    if (axis->logarithmic) {
        double factor = pow(axis->high / axis->low, room);
        axis->low /= factor;
        axis->high *= factor;
        return;
    }
    if (axis->low == axis->high) { /* one value: in the middle */
        double around = axis->unit == PLAN_UNIT_WORKERS ? 1 : axis->low > 0 ? axis->low : 1;
        axis->low -= around;
        axis->high += around;
        return;
    }
    double more = room * (axis->high - axis->low), least = 0.1 * axis->high; /* small differences are to look small */
    if (axis->unit != PLAN_UNIT_WORKERS && 2 * more + axis->high - axis->low < 2 * least)
        more = least - (axis->high - axis->low) / 2;
    axis->low = axis->low >= 0 && axis->low < more ? -more / 2 : axis->low - more;
    axis->high += more;
}

static void label_ticks(plan_axis *axis)
{
    for (int i = 0; i < axis->ticks; i++) {
        struct plan_tick *tick = &axis->tick[i];
        if (*tick->label)
            continue;
        if (axis->unit == PLAN_UNIT_SECONDS) {
            scale s = scale_of(tick->value);
            char number[32];
            if (tick->value / s.size < 99999.5)
                plan_format_count(number, tick->value / s.size);
            else
                snprintf(number, sizeof number, "%.3g", tick->value / s.size);
            snprintf(tick->label, sizeof tick->label, "%.20s%s", number, s.name);
        } else if (axis->unit == PLAN_UNIT_DOLLARS) {
            plan_format_dollars(tick->label, tick->value);
        } else {
            plan_format_count(tick->label, tick->value);
        }
    }
}

void plan_axis_init(plan_axis *out, plan_unit unit, double least, double greatest, double from, double to)
{
    const double tiny = 1e-30, huge = 1e30; /* beyond them arithmetic ends before anything sensible begins */
    *out = (plan_axis){.unit = unit, .from = from, .to = to};
    out->low = least > 0 ? fmin(fmax(least, tiny), huge) : least;
    out->high = greatest > 0 ? fmin(fmax(greatest, tiny), huge) : greatest;
    out->logarithmic = out->low > 0 && out->high / out->low >= 5;
    widen(out);
    if (!out->logarithmic)
        add_linear(out);
    else if (unit == PLAN_UNIT_SECONDS)
        add_durations(out);
    else if (unit == PLAN_UNIT_WORKERS)
        add_workers(out);
    else
        add_decades(out, 1);
    label_ticks(out);
}

/* ---- numbers for people ------------------------------------------------------------------------------------------ */

void plan_format_count(char out[32], double count)
{
    char digits[32];
    if (count != floor(count) || fabs(count) >= 1e12) {
        snprintf(out, 32, "%.6g", count);
        return;
    }
    int length = snprintf(digits, sizeof digits, "%.0f", count), used = 0;
    for (int i = 0; i < length; i++) {
        out[used++] = digits[i];
        if ((length - 1 - i) % 3 == 0 && i + 1 < length && digits[i] != '-')
            out[used++] = ',';
    }
    out[used] = '\0';
}

void plan_format_seconds(char out[32], double seconds)
{
    scale s = scale_of(seconds);
    char number[32];
    double value = seconds / s.size;
    value = value >= 100                   ? round(value)
            : round(value * 10) / 10 >= 10 ? round(value * 10) / 10
                                           : round(value * 100) / 100;
    plan_format_count(number, value);
    snprintf(out, 32, "%.20s%s", number, s.name);
}

/* The fewest decimals that show the value: at least those of cents, unless there are none. */
void plan_format_dollars(char out[32], double dollars)
{
    char number[32];
    double rounded = dollars >= 100 ? round(dollars) : dollars >= 0.1 ? round(dollars * 100) / 100 : dollars;
    if (dollars >= 1e6 || rounded == floor(rounded)) {
        double unit = dollars >= 1e9 ? 1e9 : dollars >= 1e6 ? 1e6 : 1;
        plan_format_count(number, unit > 1 ? round(rounded / unit * 100) / 100 : rounded);
        snprintf(out, 32, "$%.20s%s", number, unit == 1e9 ? "G" : unit == 1e6 ? "M" : "");
    } else if (dollars >= 0.1) {
        snprintf(out, 32, "$%.2f", rounded);
    } else if (dollars >= 1e-4) {
        int decimals = 1 - (int)floor(log10(dollars)); /* two that count */
        snprintf(number, sizeof number, "%.*f", decimals, dollars);
        size_t length = strlen(number);
        if (number[length - 1] == '0' && decimals > 2)
            number[length - 1] = '\0';
        snprintf(out, 32, "$%.20s", number);
    } else {
        snprintf(out, 32, "$%.2g", dollars);
    }
}
