/* Labels that look for a free place.  See labels.h. */
#include "labels.h"

#include <limits.h>
#include <math.h>
#include <stddef.h>

/* ---- what is drawn where ----------------------------------------------------------------------------------------- */

static bool *cell(plot_labels *labels, plot_xy at)
{
    const double across = floor((at.x - labels->box.left) / PLOT_CELL),
                 down = floor((at.y - labels->box.top) / PLOT_CELL);
    const bool inside = across >= 0 && across < PLOT_CELLS_ACROSS && down >= 0 && down < PLOT_CELLS_DOWN;
    return inside ? &labels->taken[(int)down][(int)across] : NULL;
}

bool plot_labels_take(plot_labels *labels, plot_xy at)
{
    bool *taken = cell(labels, at), was_free = taken && !*taken;
    if (taken)
        *taken = true;
    return was_free;
}

void plot_labels_take_line(plot_labels *labels, const plot_xy *points, int64_t count)
{
    for (int64_t i = 1; i < count; i++) {
        const plot_xy from = points[i - 1], to = points[i];
        const int steps = (int)fmin(fmax(fabs(to.x - from.x), fabs(to.y - from.y)) / (PLOT_CELL - 1), 1000) + 1;
        for (int s = 0; s <= steps; s++)
            plot_labels_take(labels,
                             (plot_xy){from.x + (to.x - from.x) * s / steps, from.y + (to.y - from.y) * s / steps});
    }
}

/* ---- places ------------------------------------------------------------------------------------------------------ */

/* Of a text whose left and middle lie there. */
static plot_box box_of(plot_xy place, double width, double size)
{
    return (plot_box){place.x - 2, place.y - size * 0.65, place.x + width + 2, place.y + size * 0.65};
}

/* How much the box would cover; outside counts most. */
static int covered(plot_labels *labels, plot_box b)
{
    const plot_box *all = &labels->box;
    int count = 0;
    for (double y = b.top; y <= b.bottom; y += PLOT_CELL - 1)
        for (double x = b.left; x <= b.right; x += PLOT_CELL - 1) {
            const bool outside = x < all->left + 1 || x > all->right - 1 || y < all->top + 1 || y > all->bottom - 1;
            const bool *taken = outside ? NULL : cell(labels, (plot_xy){x, y});
            count += outside ? 10 : taken && *taken;
        }
    return count;
}

/* Writes text at the first of the places that covers least, and returns which; with `only_free` nowhere, and -1, when
 * none is quite free. */
static int write(plot_labels *labels, const char *text, plot_font font, const plot_xy *place, int places,
                 bool only_free)
{
    const double width = plot_text_width(text, font.size);
    int best = 0, least = INT_MAX;
    for (int i = 0; i < places && least > 0; i++) {
        const int count = covered(labels, box_of(place[i], width, font.size));
        best = count < least ? i : best;
        least = count < least ? count : least;
    }
    if (only_free && least > 0)
        return -1;
    const plot_box b = box_of(place[best], width, font.size);
    for (double y = b.top; y <= b.bottom; y += PLOT_CELL - 1)
        plot_labels_take_line(labels, (plot_xy[]){{b.left, y}, {b.right, y}}, 2);
    font.halo = least > 0;
    plot_text(labels->canvas, (plot_xy){place[best].x, place[best].y + font.size * 0.36}, text, INT_MAX, font);
    return best;
}

/* ---- labels ------------------------------------------------------------------------------------------------------ */

/* To what stands far off. */
static void lead(plot_labels *labels, plot_xy at, plot_box to, double near)
{
    const double x = fmin(fmax(at.x, to.left), to.right), y = fmin(fmax(at.y, to.top), to.bottom),
                 length = hypot(x - at.x, y - at.y);
    if (length > near)
        plot_line(labels->canvas, (plot_xy[]){{at.x + (x - at.x) * 8 / length, at.y + (y - at.y) * 8 / length}, {x, y}},
                  2, (plot_paint){.line = 0x111111, .width = 0.8});
}

void plot_labels_near(plot_labels *labels, const char *text, plot_font font, plot_xy at, bool only_free)
{
    enum { WAYS = 16, RINGS = 9 };
    plot_xy place[WAYS * RINGS];
    const double width = plot_text_width(text, font.size), near = only_free ? 7 : 12;
    for (int i = 0; i < WAYS * RINGS; i++) {
        const int way = i % WAYS; /* to the right and up first, then away from there on both sides */
        const double angle = (-1 + (way % 2 ? way + 1 : -way) / 2.0) * 6.283185307179586 / WAYS,
                     away = near + 10 * (i / WAYS);
        /* The side of its box that faces the point lies there. */
        place[i] = (plot_xy){at.x + cos(angle) * (away + width / 2) - width / 2,
                             at.y + sin(angle) * (away + font.size * 0.65)};
    }
    const int chosen = write(labels, text, font, place, only_free ? WAYS : WAYS * RINGS, only_free);
    if (chosen >= 2 * WAYS)
        lead(labels, at, box_of(place[chosen], width, font.size), near);
}

void plot_labels_along(plot_labels *labels, const char *text, plot_font font, bool upright, double at)
{
    enum { ALONG = 12, SIDES = 2 };
    const plot_box *all = &labels->box;
    const double width = plot_text_width(text, font.size);
    plot_xy place[ALONG * SIDES];
    for (int i = 0; i < ALONG * SIDES; i++) {
        const double share = (i / SIDES) / (ALONG - 1.0), side = i % SIDES ? -1 : 1;
        if (upright)
            place[i] =
                (plot_xy){side > 0 ? at + 8 : at - width - 8, all->top + 10 + share * (all->bottom - all->top - 20)};
        else
            place[i] =
                (plot_xy){all->right - width - 5 - share * (all->right - all->left - width - 10), at - 11 * side};
    }
    write(labels, text, font, place, ALONG * SIDES, false);
}
