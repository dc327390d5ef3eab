/* The writer itself: text, frames, paths, and labels that look for a free place.  See svg.h. */
#include "svg.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "plot/plot.h"
#include "plot/svg.h"

/* ---- text -------------------------------------------------------------------------------------------------------- */

void plan_svg_text(FILE *file, const char *attributes, plan_xy at, const char *text, int most)
{
    fprintf(file, "<text %s x=\"%.1f\" y=\"%.1f\">", attributes, at.x, at.y);
    plot_svg_escape(file, text, most);
    fputs("</text>\n", file);
}

void plan_svg_use(FILE *file, const char *kind, int number, plan_xy at, double scale)
{
    fprintf(file, "<use href=\"#%s%d\" transform=\"translate(%.1f %.1f) scale(%g)\"/>", kind, number, at.x, at.y,
            scale);
}

double plan_svg_width(const char *text, double size)
{
    return plot_text_letters(text) * size * 0.62;
}

/* ---- frame and ticks --------------------------------------------------------------------------------------------- */

void plan_panel_open(const plan_panel *panel, int number, const char *title, const char *x_title, const char *y_title)
{
    FILE *file = panel->file;
    double middle = (panel->left + panel->right) / 2, height = panel->bottom - panel->top;
    char label[32], turned[96];
    fprintf(file, "<g id=\"panel%d\">\n", number);
    plan_svg_text(file, "class=\"head\" text-anchor=\"middle\"", (plan_xy){middle, panel->top - 10}, title, 80);
    for (int i = 0; i < panel->x.ticks; i++) {
        double at = plan_axis_place(&panel->x, panel->x.tick[i]);
        fprintf(file, "<path class=\"grid\" d=\"M%.1f %.1fV%.1f\"/>", at, panel->top, panel->bottom);
        plan_axis_label(label, &panel->x, i);
        plan_svg_text(file, "text-anchor=\"middle\"", (plan_xy){at, panel->bottom + 15}, label, 32);
    }
    for (int i = 0; i < panel->y.ticks; i++) {
        double at = plan_axis_place(&panel->y, panel->y.tick[i]);
        fprintf(file, "<path class=\"grid\" d=\"M%.1f %.1fH%.1f\"/>", panel->left, at, panel->right);
        plan_axis_label(label, &panel->y, i);
        plan_svg_text(file, "text-anchor=\"end\"", (plan_xy){panel->left - 6, at + 4}, label, 32);
    }
    plan_svg_text(file, "text-anchor=\"middle\"", (plan_xy){middle, panel->bottom + 33}, x_title, 80);
    snprintf(turned, sizeof turned, "text-anchor=\"middle\" transform=\"translate(%.1f %.1f) rotate(-90)\"",
             panel->left - 58, panel->top + height / 2);
    plan_svg_text(file, turned, (plan_xy){0, 0}, y_title, 80);
    fprintf(file, "<clipPath id=\"cut%d\"><rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/></clipPath>\n",
            number, panel->left, panel->top, panel->right - panel->left, height);
    fprintf(file, "<g clip-path=\"url(#cut%d)\">\n", number);
}

void plan_panel_close(const plan_panel *panel)
{
    fprintf(panel->file, "</g>\n<rect class=\"frame\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>\n</g>\n",
            panel->left, panel->top, panel->right - panel->left, panel->bottom - panel->top);
}

/* ---- what is drawn where ----------------------------------------------------------------------------------------- */

static bool *cell(plan_panel *panel, plan_xy at)
{
    double across = floor((at.x - panel->left) / PLAN_CELL), down = floor((at.y - panel->top) / PLAN_CELL);
    bool inside = across >= 0 && across < PLAN_CELLS_ACROSS && down >= 0 && down < PLAN_CELLS_DOWN;
    return inside ? &panel->taken[(int)down][(int)across] : NULL;
}

bool plan_panel_take(plan_panel *panel, plan_xy at)
{
    bool *taken = cell(panel, at), was_free = taken && !*taken;
    if (taken)
        *taken = true;
    return was_free;
}

static void take_line(plan_panel *panel, plan_xy from, plan_xy to)
{
    double length = fmax(fabs(to.x - from.x), fabs(to.y - from.y));
    int steps = (int)fmin(length / (PLAN_CELL - 1), 1000) + 1;
    for (int i = 0; i <= steps; i++)
        plan_panel_take(panel, (plan_xy){from.x + (to.x - from.x) * i / steps, from.y + (to.y - from.y) * i / steps});
}

void plan_panel_path(plan_panel *panel, const char *class, const plan_xy *point, int64_t points)
{
    if (points == 0)
        return;
    fprintf(panel->file, "<path class=\"%s\" d=\"M%.1f %.1f", class, point[0].x, point[0].y);
    for (int64_t i = 1; i < points; i++) {
        fprintf(panel->file, "L%.1f %.1f", point[i].x, point[i].y);
        take_line(panel, point[i - 1], point[i]);
    }
    fputs(points == 1 ? "h0\"/>\n" : "\"/>\n", panel->file);
}

/* ---- labels ------------------------------------------------------------------------------------------------------ */

typedef struct box {
    double left, top, right, bottom;
} box;

/* Of a text whose left and middle lie there. */
static box box_of(plan_xy place, double width, double size)
{
    return (box){place.x - 2, place.y - size * 0.65, place.x + width + 2, place.y + size * 0.65};
}

/* How much the box would cover; outside counts most. */
static int covered(plan_panel *panel, box b)
{
    int count = 0;
    for (double y = b.top; y <= b.bottom; y += PLAN_CELL - 1)
        for (double x = b.left; x <= b.right; x += PLAN_CELL - 1) {
            bool outside = x < panel->left + 1 || x > panel->right - 1 || y < panel->top + 1 || y > panel->bottom - 1;
            const bool *taken = outside ? NULL : cell(panel, (plan_xy){x, y});
            count += outside ? 10 : taken && *taken;
        }
    return count;
}

/* Writes text at the first of the places that covers least, and returns which; with `only_free` nowhere, and -1, when
 * none is quite free. */
static int write_label(plan_panel *panel, const char *text, const char *class, double size, const plan_xy *place,
                       int places, bool only_free)
{
    double width = plan_svg_width(text, size);
    char attributes[64];
    int best = 0, least = INT32_MAX;
    for (int i = 0; i < places && least > 0; i++) {
        int count = covered(panel, box_of(place[i], width, size));
        best = count < least ? i : best;
        least = count < least ? count : least;
    }
    if (only_free && least > 0)
        return -1;
    box b = box_of(place[best], width, size);
    for (double y = b.top; y <= b.bottom; y += PLAN_CELL - 1)
        take_line(panel, (plan_xy){b.left, y}, (plan_xy){b.right, y});
    if (least > 0) /* what lies below stays visible, and the text readable */
        fprintf(panel->file, "<rect class=\"veil\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>\n", b.left,
                b.top, b.right - b.left, b.bottom - b.top);
    snprintf(attributes, sizeof attributes, "class=\"%s\" font-size=\"%g\"", class, size);
    plan_svg_text(panel->file, attributes, (plan_xy){place[best].x, place[best].y + size * 0.36}, text, 80);
    return best;
}

void plan_panel_label(plan_panel *panel, const char *text, double size, plan_xy at, bool only_free)
{
    enum { WAYS = 16, RINGS = 9 };
    plan_xy place[WAYS * RINGS];
    double width = plan_svg_width(text, size), near = only_free ? 7 : 12;
    for (int i = 0; i < WAYS * RINGS; i++) {
        int way = i % WAYS; /* to the right and up first, then away from there on both sides */
        double angle = (-1 + (way % 2 ? way + 1 : -way) / 2.0) * 6.283185307179586 / WAYS,
               away = near + 10 * (i / WAYS);
        /* The side of its box that faces the point lies there. */
        place[i] =
            (plan_xy){at.x + cos(angle) * (away + width / 2) - width / 2, at.y + sin(angle) * (away + size * 0.65)};
    }
    int chosen = write_label(panel, text, only_free ? "number" : "name", size, place, only_free ? WAYS : WAYS * RINGS,
                             only_free);
    if (chosen < 2 * WAYS)
        return;
    box b = box_of(place[chosen], width, size); /* far off: a line leads there */
    double to_x = fmin(fmax(at.x, b.left), b.right), to_y = fmin(fmax(at.y, b.top), b.bottom),
           length = hypot(to_x - at.x, to_y - at.y);
    if (length > near)
        fprintf(panel->file, "<path class=\"lead\" d=\"M%.1f %.1fL%.1f %.1f\"/>\n", at.x + (to_x - at.x) * 8 / length,
                at.y + (to_y - at.y) * 8 / length, to_x, to_y);
}

void plan_panel_label_limit(plan_panel *panel, const char *text, bool of_x, double value)
{
    enum { ALONG = 12, SIDES = 2 };
    const plan_axis *axis = of_x ? &panel->x : &panel->y;
    plan_xy place[ALONG * SIDES];
    char label[96];
    double width, at = plan_axis_place(axis, value);
    /* One that is far away would press the plot into a corner: it is told at that end instead. */
    snprintf(label, sizeof label, "%s%s", text,
             plan_axis_holds(axis, value) ? ""
             : value > axis->high         ? (of_x ? " →" : " ↑")
                                          : (of_x ? " ←" : " ↓"));
    width = plan_svg_width(label, 10);
    at = of_x ? fmin(fmax(at, panel->left), panel->right) : fmin(fmax(at, panel->top), panel->bottom);
    for (int i = 0; i < ALONG * SIDES; i++) {
        double share = (i / SIDES) / (ALONG - 1.0), side = i % SIDES ? -1 : 1;
        if (of_x)
            place[i] = (plan_xy){side > 0 ? at + 8 : at - width - 8,
                                 panel->top + 10 + share * (panel->bottom - panel->top - 20)};
        else
            place[i] =
                (plan_xy){panel->right - width - 5 - share * (panel->right - panel->left - width - 10), at - 11 * side};
    }
    write_label(panel, label, "number", 10, place, ALONG * SIDES, false);
}
