/* Axes: how far they go, the round values at which people read them, and the frame around a plot. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "plot.h"

enum { LABEL_SIZE = 11 };

double plot_axis_place(const plot_axis *axis, double value)
{
    double share = axis->logarithmic ? log(fmax(value, DBL_MIN) / axis->low) / log(axis->high / axis->low)
                                     : (value - axis->low) / (axis->high - axis->low);
    if (axis->unit != PLOT_PLAIN)
        share = fmin(fmax(share, -0.5), 1.5); /* cut at the frame anyway, and infinity is no place */
    return axis->from + share * (axis->to - axis->from);
}

/* ---- linear axes ------------------------------------------------------------------------------------------------- */

/* 1, 2 or 5 times a power of ten, not less than a value. */
static double round_up(double value)
{
    const double power = pow(10, floor(log10(value)));
    return value <= power ? power : value <= 2 * power ? 2 * power : value <= 5 * power ? 5 * power : 10 * power;
}

static void add_ticks(plot_axis *axis)
{
    const double step = axis->step * axis->scale;
    axis->ticks = 0;
    for (double i = ceil(axis->low / step); i * step <= axis->high && axis->ticks < PLOT_TICKS_MOST; i++)
        axis->tick[axis->ticks++] = i * step + 0.0; /* never -0 */
}

/* Whether labels side by side have some room between them. */
static bool has_room(const plot_axis *axis)
{
    const double apart = fabs(plot_axis_place(axis, axis->low + axis->step * axis->scale) - axis->from);
    char label[32];
    for (int i = 0; i < axis->ticks; i++) {
        plot_axis_label(label, axis, i);
        if (plot_text_width(label, LABEL_SIZE) + 14 > apart)
            return false;
    }
    return true;
}

static void choose_step(plot_axis *axis, bool whole)
{
    const double gap = axis->from > axis->to ? 32 : 36; /* pixels between two ticks at least */
    axis->step = round_up((axis->high - axis->low) / axis->scale *
                          fmax(gap / fabs(axis->to - axis->from), 1.0 / (PLOT_TICKS_MOST - 1)));
    axis->step = whole ? fmax(axis->step, 1) : axis->step;
    add_ticks(axis);
    while (axis->from < axis->to && axis->ticks > 2 && !has_room(axis)) {
        plot_axis wider = *axis;
        wider.step = round_up(1.5 * wider.step);
        add_ticks(&wider);
        if (wider.ticks < 2 && axis->unit != PLOT_PLAIN) /* labels of a unit are short enough to stand closer */
            break;
        *axis = wider;
    }
}

static void init(plot_axis *out, double least, double greatest, double from, double to, bool whole)
{
    const double huge = 1e300;
    least = isnan(least) ? 0 : fmin(fmax(least, -huge), huge);
    greatest = isnan(greatest) ? least : fmin(fmax(greatest, least), huge);
    double room = 0.04 * (greatest - least);
    /* Values that are equal, or so near that ticks could not tell them apart, stand in the middle. */
    room = fmax(room, 1e-9 * fmax(fabs(least), fabs(greatest)));
    room = room > DBL_MIN * 1e20 && (!whole || greatest > least) ? room : 1;
    *out = (plot_axis){.low = least - room, .high = greatest + room, .from = from, .to = to, .scale = 1};
    choose_step(out, whole);
}

void plot_axis_init(plot_axis *out, double least, double greatest, double from, double to)
{
    init(out, least, greatest, from, to, false);
}

void plot_axis_init_whole(plot_axis *out, int64_t least, int64_t greatest, double from, double to)
{
    init(out, (double)least, (double)greatest, from, to, true);
}

/* ---- axes of a unit ---------------------------------------------------------------------------------------------- */

static const struct {
    double size;
    const char *name;
} times[] = {{86400, "d"}, {3600, "h"}, {60, "min"}, {1, "s"}, {1e-3, "ms"}, {1e-6, "µs"}};

/* What a time is told in. */
static int unit_of(double seconds)
{
    int i = 0;
    while (i < 5 && seconds < times[i].size * (1 - 1e-9))
        i++;
    return i;
}

/* Of a logarithmic axis: only where there is room. */
static void add_tick(plot_axis *axis, double value)
{
    const double gap = axis->from > axis->to ? 24 : axis->unit == PLOT_COUNT ? 36 : 50;
    bool room = value >= axis->low && value <= axis->high && axis->ticks < PLOT_TICKS_MOST;
    for (int i = 0; i < axis->ticks && room; i++)
        room = fabs(plot_axis_place(axis, value) - plot_axis_place(axis, axis->tick[i])) >= gap;
    if (room)
        axis->tick[axis->ticks++] = value;
}

/* Powers of ten, then what lies between them. */
static void add_decades(plot_axis *axis, double scale)
{
    static const double digits[] = {1, 2, 5};
    for (int d = 0; d < 3; d++)
        for (int e = (int)floor(log10(axis->low / scale)); e <= ceil(log10(axis->high / scale)); e++)
            add_tick(axis, digits[d] * pow(10, e) * scale);
}

/* Hours and minutes are no powers of ten: their round values in the order in which they are wanted. */
static void add_times(plot_axis *axis)
{
    static const double wanted[] = {1,    60,     3600, 86400, 10,     600,    36000,  864000, 0.1,    0.01, 1e-3,
                                    1e-4, 8.64e6, 30,   120,   300,    1800,   7200,   18000,  8.64e7, 2,    5,
                                    20,   1200,   1e-5, 43200, 172800, 432000, 8.64e8, 8.64e9, 0};
    for (const double *value = wanted; *value; value++)
        add_tick(axis, *value);
}

static void init_logarithmic(plot_axis *axis)
{
    const double factor = pow(axis->high / axis->low, 0.06), two_days = 2 * times[0].size;
    axis->low /= factor;
    axis->high *= factor;
    if (axis->unit == PLOT_SECONDS && axis->high > 5 && axis->low < two_days && axis->high / axis->low <= 1e9)
        add_times(axis);
    else
        add_decades(axis, axis->unit == PLOT_SECONDS && axis->low >= two_days ? times[0].size : 1);
}

void plot_axis_init_unit(plot_axis *out, plot_unit unit, double least, double greatest, double from, double to)
{
    const double tiny = 1e-30, huge = 1e30; /* beyond them arithmetic ends before anything sensible begins */
    least = least > 0 ? fmin(fmax(least, tiny), huge) : least;
    greatest = greatest > 0 ? fmin(fmax(greatest, tiny), huge) : greatest;
    *out = (plot_axis){.unit = unit, .low = least, .high = greatest, .from = from, .to = to, .scale = 1};
    out->logarithmic = least > 0 && greatest / least >= 5;
    if (out->logarithmic) {
        init_logarithmic(out);
        return;
    }
    double room = 0.06 * (greatest - least);
    if (unit != PLOT_COUNT)
        room = fmax(room, 0.1 * greatest - (greatest - least) / 2);
    room = room > 0 ? room : 1;
    out->low = least >= 0 && least < room ? -room / 2 : least - room;
    out->high = greatest + room;
    if (unit == PLOT_SECONDS) /* all ticks have the unit of its greater half */
        out->scale = times[unit_of(out->high / 2)].size;
    choose_step(out, unit == PLOT_COUNT);
}

/* ---- labels ------------------------------------------------------------------------------------------------------ */

/* All ticks have as many digits after the point as their step needs; very great and very small ones a power of ten. */
static void label_step(char out[32], const plot_axis *axis, int tick)
{
    const double value = axis->tick[tick] / axis->scale, most = fmax(fabs(axis->low), fabs(axis->high)) / axis->scale;
    const int step = (int)floor(log10(axis->step) + 1e-9), top = (int)floor(log10(most));
    if (value == 0 || (top < 6 && step >= -5)) {
        snprintf(out, 32, "%.*f", value != 0 && step < 0 ? -step : 0, value);
        return;
    }
    int digits = (int)floor(log10(fabs(value)) + 1e-9) - step;
    snprintf(out, 32, "%.*e", digits < 0 ? 0 : digits > 15 ? 15 : digits, value);
    /* 1.5e+06 is 1.5e6 */
    char *power = strchr(out, 'e');
    if (power) {
        char *digit = power + 2;
        char *to = power + 1 + (power[1] == '-');
        while (*digit == '0' && digit[1])
            digit++;
        memmove(to, digit, strlen(digit) + 1);
    }
}

void plot_axis_label(char out[32], const plot_axis *axis, int tick)
{
    const double value = axis->tick[tick];
    const int unit = unit_of(axis->logarithmic ? value : axis->scale);
    char number[32];
    if (axis->unit == PLOT_COUNT && fabs(value) < 1e6)
        base_format_count(number, sizeof number, (int64_t)value);
    else if (axis->logarithmic)
        snprintf(number, sizeof number, "%g", axis->unit == PLOT_SECONDS ? value / times[unit].size : value);
    else
        label_step(number, axis, tick);
    snprintf(out, 32, "%s%.24s%s%s", axis->unit == PLOT_DOLLARS ? "$" : "", number,
             axis->unit == PLOT_SECONDS ? " " : "", axis->unit == PLOT_SECONDS ? times[unit].name : "");
}

/* ---- the frame --------------------------------------------------------------------------------------------------- */

void plot_frame(plot_canvas *canvas, const plot_box *box, const plot_axis *x, const plot_axis *y, const char *x_title,
                const char *y_title)
{
    const plot_paint grid = {.line = 0xe4e4e4, .width = 1}, edge = {.line = 0x555555, .width = 1};
    const double size = LABEL_SIZE, middle = (box->left + box->right) / 2;
    double widest = 0;
    char label[32];
    for (int i = 0; i < x->ticks; i++) {
        const double at = plot_axis_place(x, x->tick[i]);
        plot_line(canvas, (plot_xy[]){{at, box->top}, {at, box->bottom}}, 2, grid);
        plot_axis_label(label, x, i);
        plot_text(canvas, (plot_xy){at, box->bottom + 16}, label, 32,
                  (plot_font){.size = size, .anchor = PLOT_MIDDLE, .colour = 0x333333});
    }
    for (int i = 0; i < y->ticks; i++) {
        const double at = plot_axis_place(y, y->tick[i]);
        plot_line(canvas, (plot_xy[]){{box->left, at}, {box->right, at}}, 2, grid);
        plot_axis_label(label, y, i);
        plot_text(canvas, (plot_xy){box->left - 6, at + 4}, label, 32,
                  (plot_font){.size = size, .anchor = PLOT_END, .colour = 0x333333});
        widest = fmax(widest, plot_text_width(label, size));
    }
    plot_text(canvas, (plot_xy){middle, box->bottom + 36}, x_title, (int)((box->right - box->left) / 7.2),
              (plot_font){.size = 12, .anchor = PLOT_MIDDLE});
    plot_text(canvas, (plot_xy){box->left - widest - 14, (box->top + box->bottom) / 2}, y_title,
              (int)((box->bottom - box->top) / 7.2), (plot_font){.size = 12, .anchor = PLOT_MIDDLE, .upwards = true});
    plot_rectangle(canvas, *box, edge);
}
