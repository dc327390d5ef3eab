/* Axes: how far they go, the round values at which people read them, and the frame around a plot. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "plot.h"

enum { LABEL_SIZE = 11 };

double plot_axis_place(const plot_axis *axis, double value)
{
    return axis->from + (value - axis->low) / (axis->high - axis->low) * (axis->to - axis->from);
}

/* 1, 2 or 5 times a power of ten, not less than a value. */
static double round_up(double value)
{
    const double power = pow(10, floor(log10(value)));
    return value <= power ? power : value <= 2 * power ? 2 * power : value <= 5 * power ? 5 * power : 10 * power;
}

static void add_ticks(plot_axis *axis)
{
    axis->ticks = 0;
    for (double i = ceil(axis->low / axis->step); i * axis->step <= axis->high && axis->ticks < PLOT_TICKS_MOST; i++)
        axis->tick[axis->ticks++] = i * axis->step + 0.0; /* never -0 */
}

/* Whether labels side by side have some room between them. */
static bool has_room(const plot_axis *axis)
{
    const double apart = fabs(plot_axis_place(axis, axis->low + axis->step) - axis->from);
    char label[32];
    for (int i = 0; i < axis->ticks; i++) {
        plot_axis_label(label, axis, i);
        if (plot_text_width(label, LABEL_SIZE) + 14 > apart)
            return false;
    }
    return true;
}

static void init(plot_axis *out, double least, double greatest, double from, double to, bool whole)
{
    const double huge = 1e300, gap = from > to ? 32 : 36; /* pixels between two ticks at least */
    least = isnan(least) ? 0 : fmin(fmax(least, -huge), huge);
    greatest = isnan(greatest) ? least : fmin(fmax(greatest, least), huge);
    double room = 0.04 * (greatest - least);
    /* Values that are equal, or so near that ticks could not tell them apart, stand in the middle. */
    room = fmax(room, 1e-9 * fmax(fabs(least), fabs(greatest)));
    room = room > DBL_MIN * 1e20 && (!whole || greatest > least) ? room : 1;
    *out = (plot_axis){.low = least - room, .high = greatest + room, .from = from, .to = to};
    out->step = round_up((out->high - out->low) * fmax(gap / fabs(to - from), 1.0 / (PLOT_TICKS_MOST - 1)));
    out->step = whole ? fmax(out->step, 1) : out->step;
    add_ticks(out);
    while (from < to && out->ticks > 2 && !has_room(out)) {
        out->step = round_up(1.5 * out->step);
        add_ticks(out);
    }
}

void plot_axis_init(plot_axis *out, double least, double greatest, double from, double to)
{
    init(out, least, greatest, from, to, false);
}

void plot_axis_init_whole(plot_axis *out, int64_t least, int64_t greatest, double from, double to)
{
    init(out, (double)least, (double)greatest, from, to, true);
}

/* All ticks have as many digits after the point as their step needs; very great and very small ones a power of ten. */
void plot_axis_label(char out[32], const plot_axis *axis, int tick)
{
    const double value = axis->tick[tick], most = fmax(fabs(axis->low), fabs(axis->high));
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
