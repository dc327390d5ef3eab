/* Legends. */
#include <math.h>
#include <stdio.h>

#include "plot.h"

enum { ROW = 17, SAMPLE = 22, GAP = 14, SIZE = 11, LETTERS_MOST = 28 };

static void draw_sample(plot_canvas *canvas, plot_xy at, const plot_entry *entry)
{
    if (entry->sample == PLOT_ENTRY_DOT)
        plot_dots(canvas, &(plot_xy){at.x + 8, at.y}, 1, 5, (plot_paint){.filled = true, .fill = entry->colour});
    else
        plot_line(
            canvas, (plot_xy[]){{at.x, at.y}, {at.x + 16, at.y}}, 2,
            (plot_paint){.line = entry->colour, .width = 2, .dash = entry->sample == PLOT_ENTRY_DASHES ? "5 4" : NULL});
}

static void draw_entry(plot_canvas *canvas, plot_xy at, const plot_entry *entry)
{
    draw_sample(canvas, at, entry);
    plot_text(canvas, (plot_xy){at.x + SAMPLE, at.y + 4}, entry->text, LETTERS_MOST, (plot_font){.size = SIZE});
}

/* Of the entries that stand in one column. */
static double width_of(const plot_entry *entries, int64_t count)
{
    double widest = 0;
    for (int64_t i = 0; i < count; i++)
        widest = fmax(widest, plot_text_width(entries[i].text, SIZE));
    return SAMPLE + fmin(widest, LETTERS_MOST * SIZE * 0.6);
}

double plot_legend(plot_canvas *canvas, const plot_box *box, const plot_entry *entries, int64_t count)
{
    const int64_t rows = (int64_t)fmax(1, floor((box->bottom - box->top) / ROW));
    double left = box->left;
    for (int64_t first = 0; first < count; first += rows) {
        const int64_t here = count - first < rows ? count - first : rows;
        const double width = width_of(entries + first, here);
        const double next = count - first > here ? GAP + width_of(entries + first + here, 1) : 0;
        const bool last = next > 0 && left + width + next > box->right; /* no room for another column */
        for (int64_t i = 0; canvas && i < here - last; i++)
            draw_entry(canvas, (plot_xy){left, box->top + ROW * ((double)i + 0.5)}, &entries[first + i]);
        if (canvas && last) {
            char more[48];
            snprintf(more, sizeof more, "and %lld more", (long long)(count - first - here + 1));
            plot_text(canvas, (plot_xy){left + SAMPLE, box->top + ROW * ((double)here - 0.5) + 4}, more, 48,
                      (plot_font){.size = SIZE});
        }
        left += width + (last || first + rows >= count ? 0 : GAP);
        if (last)
            break;
    }
    return left - box->left;
}

plot_xy plot_rows_add(plot_rows *rows, const char *text)
{
    enum { HEIGHT = 19, MOST = 40, BETWEEN = 18 };
    const double width = PLOT_SAMPLE + fmin(plot_text_width(text, SIZE), MOST * SIZE * 0.6);
    if (rows->next.x > rows->left && rows->next.x + width > rows->right)
        rows->next = (plot_xy){rows->left, rows->next.y + HEIGHT};
    const plot_xy at = rows->next;
    plot_text(rows->canvas, (plot_xy){at.x + PLOT_SAMPLE, at.y + 4}, text, MOST, (plot_font){.size = SIZE});
    rows->next.x += width + BETWEEN;
    return at;
}
