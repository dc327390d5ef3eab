/* One panel of the plan's picture: frame, ticks, markers, and labels that look for a free place. */
#include "plan_picture_internal.h"

#include <math.h>

/* Machines differ by marker and dash, so that a black and white print tells them apart; colours only help. */
const plan_style plan_styles[PLAN_STYLES + 1] = {
    {"#0b4f94", "", 0, true},
    {"#c8500a", "7 3", 1, false},
    {"#00785a", "2 2.5", 2, true},
    {"#7a3e9d", "9 3 2 3", 3, false},
    {"#8a6500", "4 2", 4, false},
    {"#b5174b", "12 4", 5, true},
    {"#333333", "6 2 1.5 2 1.5 2", 6, false},
    {"#00808f", "1 2", 1, true},
    {"#9a9a9a", "", 0, true},
};

/* ---- what is drawn where ----------------------------------------------------------------------------------------- */

static bool *cell(plan_panel *panel, double x, double y)
{
    int across = (int)floor((x - panel->left) / PLAN_CELL), down = (int)floor((y - panel->top) / PLAN_CELL);
    bool inside = across >= 0 && across < PLAN_CELLS_ACROSS && down >= 0 && down < PLAN_CELLS_DOWN;
    return inside ? &panel->taken[down][across] : NULL;
}

void plan_panel_take(plan_panel *panel, double x, double y)
{
    bool *at = cell(panel, x, y);
    if (at)
        *at = true;
}

void plan_panel_take_line(plan_panel *panel, double x0, double y0, double x1, double y1)
{
    double length = fmax(fabs(x1 - x0), fabs(y1 - y0));
    int steps = (int)fmin(length / (PLAN_CELL - 1), 1000) + 1;
    for (int i = 0; i <= steps; i++)
        plan_panel_take(panel, x0 + (x1 - x0) * i / steps, y0 + (y1 - y0) * i / steps);
}

/* ---- frame and ticks --------------------------------------------------------------------------------------------- */

static void draw_ticks(const plan_panel *panel)
{
    for (int i = 0; i < panel->x.ticks; i++) {
        double at = plan_axis_place(&panel->x, panel->x.tick[i].value);
        fprintf(panel->file,
                "<path class=\"grid\" d=\"M%.1f %.1fV%.1f\"/><text class=\"tick\" x=\"%.1f\" y=\"%.1f\" "
                "text-anchor=\"middle\">%s</text>\n",
                at, panel->top, panel->bottom, at, panel->bottom + 15, panel->x.tick[i].label);
    }
    for (int i = 0; i < panel->y.ticks; i++) {
        double at = plan_axis_place(&panel->y, panel->y.tick[i].value);
        fprintf(panel->file,
                "<path class=\"grid\" d=\"M%.1f %.1fH%.1f\"/><text class=\"tick\" x=\"%.1f\" y=\"%.1f\" "
                "text-anchor=\"end\">%s</text>\n",
                panel->left, at, panel->right, panel->left - 6, at + 4, panel->y.tick[i].label);
    }
}

void plan_panel_open(plan_panel *panel, const char *title, const char *x_title, const char *y_title)
{
    double middle = (panel->left + panel->right) / 2, height = (panel->top + panel->bottom) / 2;
    fprintf(panel->file, "<g id=\"panel%d\">\n", panel->number);
    fprintf(panel->file, "<text class=\"head\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%s</text>\n", middle,
            panel->top - 10, title);
    draw_ticks(panel);
    fprintf(panel->file, "<text class=\"tick\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%s</text>\n", middle,
            panel->bottom + 33, x_title);
    fprintf(panel->file,
            "<text class=\"tick\" transform=\"translate(%.1f %.1f) rotate(-90)\" text-anchor=\"middle\">%s</text>\n",
            panel->left - 58, height, y_title);
    fprintf(panel->file,
            "<clipPath id=\"cut%d\"><rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/></clipPath>\n",
            panel->number, panel->left, panel->top, panel->right - panel->left, panel->bottom - panel->top);
    fprintf(panel->file, "<g clip-path=\"url(#cut%d)\">\n", panel->number);
}

void plan_panel_close(plan_panel *panel)
{
    fprintf(panel->file, "</g>\n<rect class=\"frame\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>\n</g>\n",
            panel->left, panel->top, panel->right - panel->left, panel->bottom - panel->top);
}

/* ---- markers ----------------------------------------------------------------------------------------------------- */

void plan_marker(FILE *file, int marker, double x, double y, double r)
{
    const double side = 0.88 * r, up = 1.15 * r;
    switch (marker) {
    case 0:
        fprintf(file, "M%.1f %.1fa%.1f %.1f 0 1 0 %.1f 0a%.1f %.1f 0 1 0 %.1f 0z", x - r, y, r, r, 2 * r, r, r, -2 * r);
        break;
    case 1: fprintf(file, "M%.1f %.1fh%.1fv%.1fh%.1fz", x - side, y - side, 2 * side, 2 * side, -2 * side); break;
    case 2: fprintf(file, "M%.1f %.1fL%.1f %.1fL%.1f %.1fz", x, y - up, x + r, y + side, x - r, y + side); break;
    case 3:
        fprintf(file, "M%.1f %.1fL%.1f %.1fL%.1f %.1fL%.1f %.1fz", x, y - up, x + up, y, x, y + up, x - up, y);
        break;
    case 4:
        fprintf(file, "M%.1f %.1fL%.1f %.1fM%.1f %.1fL%.1f %.1f", x - r, y - r, x + r, y + r, x - r, y + r, x + r,
                y - r);
        break;
    case 5: fprintf(file, "M%.1f %.1fL%.1f %.1fL%.1f %.1fz", x, y + up, x + r, y - side, x - r, y - side); break;
    default: fprintf(file, "M%.1f %.1fH%.1fM%.1f %.1fV%.1f", x - up, y, x + up, x, y - up, y + up);
    }
}

/* ---- labels ------------------------------------------------------------------------------------------------------ */

typedef struct box {
    double left, top, right, bottom;
} box;

static box box_of(const plan_place *place, const char *text, double size)
{
    return (box){place->x - 2, place->y - size * 0.65, place->x + plan_text_width(text, size) + 2,
                 place->y + size * 0.65};
}

/* How much the box would cover; outside counts most. */
static int covered(plan_panel *panel, box b)
{
    int count = 0;
    for (double y = b.top; y <= b.bottom; y += PLAN_CELL - 1)
        for (double x = b.left; x <= b.right; x += PLAN_CELL - 1) {
            bool outside = x < panel->left + 1 || x > panel->right - 1 || y < panel->top + 1 || y > panel->bottom - 1;
            const bool *taken = outside ? NULL : cell(panel, x, y);
            count += outside ? 10 : taken && *taken;
        }
    return count;
}

int plan_panel_label(plan_panel *panel, const char *text, double size, bool bold, const plan_place *place, int places,
                     bool only_free)
{
    int best = 0, least = 1 << 30;
    for (int i = 0; i < places && least > 0; i++) {
        int count = covered(panel, box_of(&place[i], text, size));
        if (count < least) {
            least = count;
            best = i;
        }
    }
    if (places == 0 || (only_free && least > 0))
        return -1;
    box b = box_of(&place[best], text, size);
    for (double y = b.top; y <= b.bottom; y += PLAN_CELL - 1)
        plan_panel_take_line(panel, b.left, y, b.right, y);
    if (least > 0) /* what lies below stays visible, and the text readable */
        fprintf(panel->file,
                "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"#fff\" fill-opacity=\"0.75\"/>\n",
                b.left, b.top, b.right - b.left, b.bottom - b.top);
    fprintf(panel->file, "<text x=\"%.1f\" y=\"%.1f\" font-size=\"%g\"%s>", place[best].x, place[best].y + size * 0.36,
            size, bold ? " font-weight=\"bold\"" : "");
    plan_svg_text(panel->file, text, 80);
    fputs("</text>\n", panel->file);
    return best;
}

/* The place of a label of this width that is `away` from a point in a direction: the side of its box that faces the
 * point lies there. */
static plan_place place_around(double x, double y, double width, double size, double away, double angle)
{
    double across = cos(angle), down = sin(angle), half = size * 0.65;
    double middle_x = x + across * (away + width / 2), middle_y = y + down * (away + half);
    return (plan_place){middle_x - width / 2, middle_y};
}

void plan_panel_label_point(plan_panel *panel, const char *text, double size, bool bold, double x, double y,
                            bool only_free)
{
    enum { WAYS = 16, RINGS = 9 };
    plan_place place[WAYS * RINGS];
    double width = plan_text_width(text, size), near = bold ? 12 : 7;
    int places = only_free ? WAYS : WAYS * RINGS;
    for (int i = 0; i < places; i++) {
        int way = i % WAYS; /* to the right and up first, then away from there on both sides */
        double angle = (-1 + (way % 2 ? way + 1 : -way) / 2.0) * 6.283185307179586 / WAYS;
        place[i] = place_around(x, y, width, size, near + 10 * (i / WAYS), angle);
    }
    int chosen = plan_panel_label(panel, text, size, bold, place, places, only_free);
    if (chosen < 2 * WAYS)
        return;
    box b = box_of(&place[chosen], text, size); /* far off: a line leads there */
    double to_x = fmin(fmax(x, b.left), b.right), to_y = fmin(fmax(y, b.top), b.bottom),
           length = hypot(to_x - x, to_y - y);
    if (length > near)
        fprintf(panel->file, "<path d=\"M%.1f %.1fL%.1f %.1f\" stroke=\"#111\" stroke-width=\"0.8\"/>\n",
                x + (to_x - x) * 8 / length, y + (to_y - y) * 8 / length, to_x, to_y);
}

/* ---- limits ------------------------------------------------------------------------------------------------------ */

/* A limit that is far away would press the plot into a corner: it is told at that end instead. */
static void tell_outside(plan_panel *panel, bool of_x, bool beyond, const char *label)
{
    char text[96];
    plan_place place[8];
    snprintf(text, sizeof text, "%s %s", label, of_x ? (beyond ? "→" : "←") : beyond ? "↑" : "↓");
    double width = plan_text_width(text, 10);
    for (int i = 0; i < 8; i++) {
        double along = (i % 4) / 3.0, flat = panel->right - panel->left - width - 8;
        if (of_x)
            place[i] = (plan_place){beyond ? panel->right - width - 4 : panel->left + 4,
                                    panel->top + 12 + along * (panel->bottom - panel->top - 24)};
        else
            place[i] = (plan_place){panel->left + 4 + along * flat, beyond ? panel->top + 9 : panel->bottom - 9};
    }
    plan_panel_label(panel, text, 10, false, place, 8, false);
}

void plan_panel_limit(plan_panel *panel, bool of_x, double value)
{
    const plan_axis *axis = of_x ? &panel->x : &panel->y;
    double at = plan_axis_place(axis, value);
    if (!plan_axis_holds(axis, value))
        return;
    if (of_x) {
        fprintf(panel->file, "<path class=\"limit\" d=\"M%.1f %.1fV%.1f\"/>\n", at, panel->top, panel->bottom);
        plan_panel_take_line(panel, at, panel->top, at, panel->bottom);
    } else {
        fprintf(panel->file, "<path class=\"limit\" d=\"M%.1f %.1fH%.1f\"/>\n", panel->left, at, panel->right);
        plan_panel_take_line(panel, panel->left, at, panel->right, at);
    }
}

void plan_panel_limit_label(plan_panel *panel, bool of_x, double value, const char *label)
{
    enum { ALONG = 12 };
    const plan_axis *axis = of_x ? &panel->x : &panel->y;
    if (!plan_axis_holds(axis, value)) {
        tell_outside(panel, of_x, value > axis->high, label);
        return;
    }
    double at = plan_axis_place(axis, value), width = plan_text_width(label, 10);
    plan_place place[2 * ALONG];
    for (int i = 0; i < 2 * ALONG; i++) {
        double share = (i / 2) / (ALONG - 1.0), along = panel->right - panel->left - width - 10;
        bool other = i % 2;
        if (of_x)
            place[i] = (plan_place){other ? at - width - 8 : at + 8,
                                    panel->top + 10 + share * (panel->bottom - panel->top - 20)};
        else
            place[i] = (plan_place){panel->right - width - 5 - share * along, at + (other ? 12 : -11)};
    }
    plan_panel_label(panel, label, 10, false, place, 2 * ALONG, false);
}
