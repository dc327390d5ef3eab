/* Pictures over parameters: every value lies at its place along the range, logarithms included. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <shoal/error.h>

#include "base/memory.h"
#include "picture.h"
#include "plot/plot.h"

enum { HEIGHT = 480, GREY = 0xc4c4c4, INK = 0x111111, TITLE_SIZE = 15, SIZE = 11, LABELS_MOST = 12, CELLS = 96 };

static plot_font small_font(plot_anchor anchor)
{
    return (plot_font){.size = SIZE, .anchor = anchor, .colour = INK};
}

/* Of a list the values, if they are few; of a range its ends and three places between. */
static int label_places(double place[LABELS_MOST], const sweep_parameter *p)
{
    int count = 0;
    if (p->kind == SWEEP_LIST && p->values <= LABELS_MOST) {
        for (; count < p->values; count++)
            place[count] = sweep_place_of(p, count);
        return count;
    }
    for (; count < 5; count++)
        place[count] = count / 4.0;
    return count;
}

/* Two digits do for the places of a range. */
static const char *label_text(char own[SWEEP_TEXT_BYTES], const sweep_parameter *p, double place)
{
    const double value = sweep_value_at(p, place);
    if (p->kind != SWEEP_FLOAT)
        return sweep_text(own, p, value);
    snprintf(own, SWEEP_TEXT_BYTES, "%.2g", value);
    return own;
}

/* ---- parallel coordinates ---------------------------------------------------------------------------------------- */

typedef struct columns {
    int parameter[SWEEP_PARAMETERS_MOST];
    int count;
    double gap;
    plot_box box;
} columns;

static double height_of(const columns *c, double place)
{
    return c->box.bottom + place * (c->box.top - c->box.bottom);
}

static void draw_columns(plot_canvas *canvas, const sweep_picture *picture, const columns *c)
{
    for (int k = 0; k < c->count; k++) {
        const sweep_parameter *p = &picture->log->rules.space->parameter[c->parameter[k]];
        const double x = c->box.left + k * c->gap;
        double place[LABELS_MOST];
        plot_line(canvas, (plot_xy[]){{x, c->box.top}, {x, c->box.bottom}}, 2, (plot_paint){.width = 1, .line = INK});
        plot_text(canvas, (plot_xy){x, c->box.bottom + 22}, p->name, 20,
                  (plot_font){.size = 12, .bold = true, .anchor = PLOT_MIDDLE, .colour = INK});
        for (int i = 0, labels = label_places(place, p); i < labels; i++) {
            char own[SWEEP_TEXT_BYTES];
            plot_font font = small_font(PLOT_START);
            font.halo = true;
            plot_text(canvas, (plot_xy){x + 4, height_of(c, place[i]) + 4}, label_text(own, p, place[i]), 12, font);
        }
    }
}

/* Colours from the best to the worst of those that are marked. */
static plot_rgb shade(double share)
{
    static const double best[3] = {0xc8, 0x32, 0x0a}, last[3] = {0xf0, 0xa8, 0x50};
    unsigned rgb = 0;
    for (int i = 0; i < 3; i++)
        rgb = rgb << 8 | (unsigned)lround(best[i] + share * (last[i] - best[i]));
    return rgb;
}

static void draw_trial(plot_canvas *canvas, const sweep_picture *picture, const columns *c, int64_t trial,
                       plot_paint paint)
{
    plot_xy line[SWEEP_PARAMETERS_MOST];
    const sweep_point *point = &picture->log->course.trial[trial].point;
    for (int k = 0; k < c->count; k++) {
        const double value = point->value[c->parameter[k]];
        const sweep_parameter *p = &picture->log->rules.space->parameter[c->parameter[k]];
        line[k] =
            (plot_xy){c->box.left + k * c->gap, isnan(value) ? (double)NAN : height_of(c, sweep_place_of(p, value))};
    }
    plot_line(canvas, line, c->count, paint);
}

int sweep_picture_parallel(const char *path, const sweep_picture *picture)
{
    const sweep_space *space = picture->log->rules.space;
    columns c = {.box = {40, 64, 0, 424}};
    plot_canvas *canvas = NULL;
    int64_t *rank = NULL, count = 0;
    char title[240];
    for (int i = 0; i < space->parameters; i++)
        if (sweep_values_of(&space->parameter[i]) > 1)
            c.parameter[c.count++] = i;
    if (c.count < 2)
        return shoal_fail(SHOAL_USAGE, "a picture of parallel coordinates needs two parameters that vary");
    c.gap = fmax(90, 720.0 / (c.count - 1));
    c.box.right = c.box.left + c.gap * (c.count - 1);
    int status = sweep_picture_rank(&rank, &count, picture);
    snprintf(title, sizeof title, "%.80s: all trials, the best tenth by %.80s in colour", picture->title,
             picture->objective);
    if (status == SHOAL_OK)
        status = plot_canvas_new(&canvas, c.box.right + 80, HEIGHT, title);
    if (status == SHOAL_OK) {
        const int64_t good = (count + 9) / 10;
        plot_text(canvas, (plot_xy){20, 26}, title, 200, (plot_font){.size = TITLE_SIZE, .bold = true, .colour = INK});
        for (int64_t i = count - 1; i >= 0; i--)
            draw_trial(canvas, picture, &c, rank[i],
                       (plot_paint){.width = i < good ? 2 : 1,
                                    .line = i < good ? shade(good > 1 ? (double)i / (double)(good - 1) : 0) : GREY});
        draw_columns(canvas, picture, &c);
        status = plot_write(canvas, path);
    }
    plot_canvas_free(&canvas);
    base_free(&rank);
    return status;
}

/* ---- two parameters ---------------------------------------------------------------------------------------------- */

/* From good to bad. */
static void map_colour(unsigned char out[4], double badness)
{
    static const double stop[5][3] = {
        {0x0b, 0x4f, 0x94}, {0x3f, 0x8f, 0xb5}, {0x9f, 0xcf, 0xc4}, {0xe8, 0xec, 0xcf}, {0xfb, 0xfb, 0xf2}};
    const double at = fmin(fmax(badness, 0), 1) * 4;
    const int i = at < 3.999 ? (int)at : 3;
    for (int k = 0; k < 3; k++)
        out[k] = (unsigned char)lround(stop[i][k] + (at - i) * (stop[i + 1][k] - stop[i][k]));
    out[3] = 255;
}

/* The mean rank of the trials, each weighted by how near it is. */
static double badness_at(const plot_xy *place, int64_t count, plot_xy at)
{
    double sum = 0, weights = 1e-300;
    for (int64_t i = 0; i < count; i++) {
        const double dx = (place[i].x - at.x) / 0.08, dy = (place[i].y - at.y) / 0.08;
        const double weight = exp(-0.5 * (dx * dx + dy * dy)) + 1e-12 / (1e-6 + dx * dx + dy * dy);
        sum += weight * (double)i;
        weights += weight;
    }
    return count > 1 ? sum / weights / (double)(count - 1) : 0;
}

static void draw_axis(plot_canvas *canvas, const sweep_parameter *p, const plot_box *box, bool upwards)
{
    double place[LABELS_MOST];
    for (int i = 0, labels = label_places(place, p); i < labels; i++) {
        char own[SWEEP_TEXT_BYTES];
        const char *text = label_text(own, p, place[i]);
        const double x = box->left + place[i] * (box->right - box->left),
                     y = box->bottom + place[i] * (box->top - box->bottom);
        if (upwards)
            plot_text(canvas, (plot_xy){box->left - 8, y + 4}, text, 12, small_font(PLOT_END));
        else
            plot_text(canvas, (plot_xy){x, box->bottom + 18}, text, 12, small_font(PLOT_MIDDLE));
    }
    const plot_xy at = upwards ? (plot_xy){24, (box->top + box->bottom) / 2}
                               : (plot_xy){(box->left + box->right) / 2, box->bottom + 42};
    plot_text(canvas, at, p->name, 60,
              (plot_font){.size = 12, .bold = true, .anchor = PLOT_MIDDLE, .upwards = upwards, .colour = INK});
}

/* Places of the trials that have both parameters, from the best to the worst. */
static int64_t find_places(plot_xy *out, const sweep_picture *picture, const int64_t *rank, int64_t count)
{
    const sweep_parameter *parameter = picture->log->rules.space->parameter;
    int64_t places = 0;
    for (int64_t i = 0; i < count; i++) {
        const double *value = picture->log->course.trial[rank[i]].point.value;
        if (!isnan(value[picture->x]) && !isnan(value[picture->y]))
            out[places++] = (plot_xy){sweep_place_of(&parameter[picture->x], value[picture->x]),
                                      sweep_place_of(&parameter[picture->y], value[picture->y])};
    }
    return places;
}

static void draw_map(plot_canvas *canvas, const plot_box *box, plot_xy *place, int64_t count)
{
    unsigned char pixels[CELLS * CELLS * 4];
    for (int row = 0; row < CELLS; row++)
        for (int column = 0; column < CELLS; column++)
            map_colour(pixels + 4 * (row * CELLS + column),
                       badness_at(place, count, (plot_xy){(column + 0.5) / CELLS, 1 - (row + 0.5) / CELLS}));
    plot_raster(canvas, *box, pixels, CELLS, CELLS);
    plot_rectangle(canvas, *box, (plot_paint){.width = 1, .line = INK});
    for (int64_t i = 0; i < count; i++) {
        place[i].x = box->left + place[i].x * (box->right - box->left);
        place[i].y = box->bottom + place[i].y * (box->top - box->bottom);
    }
    plot_dots(canvas, place, count, 3, (plot_paint){.filled = true, .fill = INK, .width = 1, .line = 0xffffff});
    plot_dots(canvas, place, 1, 6, (plot_paint){.filled = true, .fill = 0xc8320a, .width = 1.5, .line = 0xffffff});
}

int sweep_picture_contour(const char *path, const sweep_picture *picture)
{
    const sweep_parameter *parameter = picture->log->rules.space->parameter;
    const plot_box box = {110, 44, 520, 424};
    plot_canvas *canvas = NULL;
    plot_xy *place = NULL;
    int64_t *rank = NULL, count = 0, places = 0;
    char title[200];
    int status = sweep_picture_rank(&rank, &count, picture);
    if (status == SHOAL_OK)
        status = base_alloc(&place, (size_t)count, sizeof *place, "a picture");
    if (status == SHOAL_OK)
        places = find_places(place, picture, rank, count);
    if (status == SHOAL_OK && places == 0)
        status = shoal_fail(SHOAL_INVALID, "no trial of sweep '%s' has both %s and %s", picture->title,
                            parameter[picture->x].name, parameter[picture->y].name);
    snprintf(title, sizeof title, "%.60s: %.60s, better where it is darker", picture->title, picture->objective);
    if (status == SHOAL_OK)
        status = plot_canvas_new(&canvas, 560, HEIGHT, title);
    if (status == SHOAL_OK) {
        plot_text(canvas, (plot_xy){20, 26}, title, 120, (plot_font){.size = TITLE_SIZE, .bold = true, .colour = INK});
        draw_map(canvas, &box, place, places);
        draw_axis(canvas, &parameter[picture->x], &box, false);
        draw_axis(canvas, &parameter[picture->y], &box, true);
        status = plot_write(canvas, path);
    }
    plot_canvas_free(&canvas);
    base_free(&place);
    base_free(&rank);
    return status;
}
