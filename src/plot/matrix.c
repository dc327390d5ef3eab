/* Tables of counts.  See matrix.h. */
#include "matrix.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <shoal/error.h>

#include "base/memory.h"

enum {
    CELL_MOST = 56,
    CELL_NAMED = 18, /* as high or wide as a name needs it, where the table is narrow the other way */
    WIDTH_MOST = 900,
    HEIGHT_MOST = 760,
    MARKS_MOST = 1600, /* cells that are drawn one by one */
    NAME_LETTERS = 18,
    MARGIN = 20,
    TOP = 48,
    SCALE_WIDTH = 14,
    SCALE_ROOM = 75
};

static const double name_size = 11, name_least = 6.5, number_least = 7;

typedef struct matrix {
    const plot_matrix *what;
    plot_canvas *canvas;
    plot_box box;
    double width, height; /* of a cell */
    double number;        /* size of the counts; 0: they do not fit */
    bool shares;          /* they fit below the counts */
} matrix;

/* ---- colours ----------------------------------------------------------------------------------------------------- */

static const plot_rgb right_colour = 0x00487a, wrong_colour = 0xb33c00;

/* What is not 0 can be told from it. */
static double shade_of(double share)
{
    return share > 0 ? 0.1 + 0.9 * sqrt(share) : 0;
}

static plot_rgb mix(plot_rgb colour, double shade)
{
    plot_rgb out = 0;
    for (int bits = 0; bits < 24; bits += 8)
        out |= (plot_rgb)lrint(255 + shade * ((double)(colour >> bits & 0xff) - 255)) << bits;
    return out;
}

static plot_rgb colour_of(const plot_matrix *what, int64_t row, int64_t column)
{
    return what->same == 0 || (row == column && row < what->same) ? right_colour : wrong_colour;
}

/* ---- sizes ------------------------------------------------------------------------------------------------------- */

static double widest_name(char *const *names, int64_t count, double size)
{
    double widest = 0;
    for (int64_t i = 0; i < count; i++)
        widest = fmax(widest, fmin(plot_text_width(names[i], size), NAME_LETTERS * 0.6 * size));
    return widest;
}

static int64_t greatest_count(const plot_matrix *what)
{
    int64_t greatest = 0;
    for (int64_t i = 0; i < what->rows * what->columns; i++)
        greatest = what->count[i] > greatest ? what->count[i] : greatest;
    return greatest;
}

static void choose_sizes(matrix *in)
{
    const plot_matrix *what = in->what;
    char digits[24];
    in->width = fmin(CELL_MOST, (double)WIDTH_MOST / (double)what->columns);
    in->height = fmin(CELL_MOST, (double)HEIGHT_MOST / (double)what->rows);
    if (what->rows < 2 * what->columns && what->columns < 2 * what->rows)
        in->width = in->height = fmin(in->width, in->height);
    const double width = in->width;
    in->width = fmin(in->width, fmax(in->height, CELL_NAMED));
    in->height = fmin(in->height, fmax(width, CELL_NAMED));
    snprintf(digits, sizeof digits, "%" PRId64, greatest_count(what));
    in->number = fmin(fmin(12, in->height - 3), (in->width - 4) / plot_text_width(digits, 1));
    if (in->number < number_least)
        in->number = 0;
    in->shares = in->number > 0 && in->height >= 2.6 * in->number && in->width >= plot_text_width("100%", 8) + 2;
}

/* ---- cells ------------------------------------------------------------------------------------------------------- */

static double sum_of(const plot_matrix *what, int64_t row)
{
    int64_t sum = 0;
    for (int64_t k = 0; k < what->columns; k++)
        sum += what->count[row * what->columns + k];
    return (double)sum;
}

static plot_box cell_box(const matrix *in, int64_t row, int64_t column)
{
    const double left = in->box.left + (double)column * in->width, top = in->box.top + (double)row * in->height;
    return (plot_box){left, top, left + in->width, top + in->height};
}

/* A share that is not 0 never reads as 0. */
static void format_share(char out[16], double share)
{
    const double percent = 100 * share;
    snprintf(out, 16,
             percent < 0.1                                       ? "<0.1%%"
             : percent < 9.95 || (percent > 99 && percent < 100) ? "%.1f%%"
                                                                 : "%.0f%%",
             percent > 99.9 && percent < 100 ? 99.9 : percent);
}

static bool is_dark(plot_rgb colour)
{
    return 0.3 * (double)(colour >> 16) + 0.59 * (double)(colour >> 8 & 0xff) + 0.11 * (double)(colour & 0xff) < 140;
}

static void write_numbers(const matrix *in, int64_t row, int64_t column, double share, plot_rgb on)
{
    const plot_box box = cell_box(in, row, column);
    const plot_xy middle = {(box.left + box.right) / 2, (box.top + box.bottom) / 2};
    const plot_rgb colour = is_dark(on) ? 0xffffff : 0x222222;
    char text[24], percent[16];
    snprintf(text, sizeof text, "%" PRId64, in->what->count[row * in->what->columns + column]);
    plot_text(in->canvas, (plot_xy){middle.x, middle.y + (in->shares ? -1 : 0.36 * in->number)}, text, 24,
              (plot_font){.size = in->number, .anchor = PLOT_MIDDLE, .colour = colour});
    if (!in->shares)
        return;
    format_share(percent, share);
    plot_text(in->canvas, (plot_xy){middle.x, middle.y + 11}, percent, 16,
              (plot_font){.size = 8.5, .anchor = PLOT_MIDDLE, .colour = colour});
}

/* What is 0 stays white and empty. */
static void draw_cells(const matrix *in)
{
    const plot_matrix *what = in->what;
    for (int64_t row = 0; row < what->rows; row++)
        for (int64_t column = 0; column < what->columns; column++) {
            const double count = (double)what->count[row * what->columns + column];
            if (count == 0)
                continue;
            const double share = count / sum_of(what, row);
            const plot_rgb colour = mix(colour_of(what, row, column), shade_of(share));
            plot_rectangle(in->canvas, cell_box(in, row, column), (plot_paint){.filled = true, .fill = colour});
            if (in->number > 0)
                write_numbers(in, row, column, share, colour);
        }
}

/* Many cells are one image, of as many pixels as it is shown by, so that no viewer has to blur them. */
static int draw_image(const matrix *in)
{
    const plot_matrix *what = in->what;
    const int64_t width = (int64_t)ceil((in->box.right - in->box.left) * PLOT_SCALE),
                  height = (int64_t)ceil((in->box.bottom - in->box.top) * PLOT_SCALE);
    plot_rgb *colours = NULL;
    unsigned char *rgba = NULL;
    int status = base_alloc(&colours, (size_t)(what->rows * what->columns), sizeof *colours, "a plot");
    if (status == SHOAL_OK)
        status = base_alloc(&rgba, (size_t)(width * height), 4, "a plot");
    for (int64_t row = 0; row < what->rows && status == SHOAL_OK; row++) {
        const double sum = sum_of(what, row);
        for (int64_t k = 0; k < what->columns; k++) {
            const double count = (double)what->count[row * what->columns + k];
            colours[row * what->columns + k] = mix(colour_of(what, row, k), shade_of(count > 0 ? count / sum : 0));
        }
    }
    for (int64_t i = 0; i < width * height && status == SHOAL_OK; i++) {
        const int64_t row = i / width * what->rows / height, column = i % width * what->columns / width;
        const plot_rgb colour = colours[row * what->columns + column];
        for (int c = 0; c < 3; c++)
            rgba[4 * i + c] = (unsigned char)(colour >> (16 - 8 * c));
        rgba[4 * i + 3] = 255;
    }
    if (status == SHOAL_OK)
        plot_raster(in->canvas, in->box, rgba, width, height);
    base_free(&rgba);
    base_free(&colours);
    return status;
}

static void draw_grid(const matrix *in)
{
    const plot_paint thin = {.line = 0xe4e4e4, .width = 0.8}, edge = {.line = 0x555555, .width = 1};
    if (in->width >= 12 && in->height >= 12) {
        for (int64_t row = 1; row < in->what->rows; row++) {
            const double y = in->box.top + (double)row * in->height;
            plot_line(in->canvas, (plot_xy[]){{in->box.left, y}, {in->box.right, y}}, 2, thin);
        }
        for (int64_t column = 1; column < in->what->columns; column++) {
            const double x = in->box.left + (double)column * in->width;
            plot_line(in->canvas, (plot_xy[]){{x, in->box.top}, {x, in->box.bottom}}, 2, thin);
        }
    }
    plot_rectangle(in->canvas, in->box, edge);
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

/* Names of a line of cells that are so wide, and of which every n-th is shown where they would overlap. */
static double size_of_names(int64_t *every, double cell)
{
    const double size = fmin(fmax(0.85 * cell, name_least), name_size);
    *every = (int64_t)fmax(ceil((size + 0.5) / cell), 1);
    return size;
}

static double size_of_column_names(int64_t *every, bool *upwards, const matrix *in)
{
    const double size = size_of_names(every, in->width);
    *upwards = widest_name(in->what->column_names, in->what->columns, size) > in->width - 4;
    return size;
}

static void write_names(const matrix *in)
{
    const plot_matrix *what = in->what;
    int64_t every;
    bool upwards;
    double size = size_of_names(&every, in->height);
    const double widest = widest_name(what->row_names, what->rows, size);
    for (int64_t row = 0; row < what->rows; row += every)
        plot_text(in->canvas, (plot_xy){in->box.left - 6, in->box.top + ((double)row + 0.5) * in->height + 0.36 * size},
                  what->row_names[row], NAME_LETTERS,
                  (plot_font){.size = size, .anchor = PLOT_END, .colour = 0x333333});
    plot_text(in->canvas, (plot_xy){in->box.left - widest - 16, (in->box.top + in->box.bottom) / 2}, what->row_title,
              40, (plot_font){.size = 12, .anchor = PLOT_MIDDLE, .upwards = true});
    size = size_of_column_names(&every, &upwards, in);
    for (int64_t column = 0; column < what->columns; column += every) {
        const double middle = in->box.left + ((double)column + 0.5) * in->width;
        plot_text(
            in->canvas,
            upwards ? (plot_xy){middle + 0.36 * size, in->box.bottom + 6} : (plot_xy){middle, in->box.bottom + 15},
            what->column_names[column], NAME_LETTERS,
            (plot_font){
                .size = size, .anchor = upwards ? PLOT_END : PLOT_MIDDLE, .upwards = upwards, .colour = 0x333333});
    }
    const double deep = upwards ? widest_name(what->column_names, what->columns, size) + 6 : 15;
    plot_text(in->canvas, (plot_xy){(in->box.left + in->box.right) / 2, in->box.bottom + deep + 18}, what->column_title,
              40, (plot_font){.size = 12, .anchor = PLOT_MIDDLE});
}

/* ---- the scale of colours ---------------------------------------------------------------------------------------- */

static void draw_scale(const matrix *in, double left, plot_rgb colour, const char *called)
{
    enum { STEPS = 100 };
    static const double marks[] = {0, 0.01, 0.1, 0.25, 0.5, 1};
    const double height = fmin(fmax(in->box.bottom - in->box.top - 20, 80), 220), top = in->box.top + 20;
    unsigned char rgba[4 * STEPS];
    for (int i = 0; i < STEPS; i++) {
        const double up = 1 - (double)i / (STEPS - 1);
        const plot_rgb mixed = mix(colour, shade_of(up * up));
        for (int c = 0; c < 3; c++)
            rgba[4 * i + c] = (unsigned char)(mixed >> (16 - 8 * c));
        rgba[4 * i + 3] = 255;
    }
    const plot_box box = {left, top, left + SCALE_WIDTH, top + height};
    plot_text(in->canvas, (plot_xy){left, top - 8}, called, 12, (plot_font){.size = 11});
    plot_raster(in->canvas, box, rgba, 1, STEPS);
    plot_rectangle(in->canvas, box, (plot_paint){.line = 0x555555, .width = 0.8});
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        char text[16];
        snprintf(text, sizeof text, "%.0f%%", 100 * marks[i]);
        plot_text(in->canvas, (plot_xy){box.right + 5, box.bottom - height * sqrt(marks[i]) + 3.5}, text, 8,
                  (plot_font){.size = 9, .colour = 0x333333});
    }
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

int plot_matrix_new(plot_canvas **out, const plot_matrix *what)
{
    matrix in = {.what = what};
    int64_t every;
    bool upwards;
    choose_sizes(&in);
    const double left = MARGIN + 24 + widest_name(what->row_names, what->rows, size_of_names(&every, in.height)),
                 size = size_of_column_names(&every, &upwards, &in),
                 below = (upwards ? widest_name(what->column_names, what->columns, size) + 6 : 15) + 18 + MARGIN;
    in.box = (plot_box){left, TOP, left + in.width * (double)what->columns, TOP + in.height * (double)what->rows};
    const double right = fmax(in.box.right + MARGIN + SCALE_ROOM * (what->same > 0 ? 2 : 1),
                              left + plot_text_width(what->title, 14) + MARGIN),
                 bottom = fmax(in.box.bottom + below, TOP + 130);
    int status = plot_canvas_new(&in.canvas, ceil(right), ceil(bottom), what->title);
    if (status < 0)
        return status;
    if (what->rows * what->columns <= MARKS_MOST)
        draw_cells(&in);
    else
        status = draw_image(&in);
    draw_grid(&in);
    write_names(&in);
    draw_scale(&in, in.box.right + MARGIN, right_colour, what->same > 0 ? "right" : "share");
    if (what->same > 0)
        draw_scale(&in, in.box.right + MARGIN + SCALE_ROOM, wrong_colour, "wrong");
    plot_text(in.canvas, (plot_xy){left, TOP - 20}, what->title, 100, (plot_font){.size = 14, .bold = true});
    if (status < 0)
        plot_canvas_free(&in.canvas);
    *out = in.canvas;
    return status;
}
