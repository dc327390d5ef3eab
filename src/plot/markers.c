/* Markers that black and white print tells apart. */
#include <math.h>
#include <stdlib.h>

#include <shoal/error.h>

#include "base/memory.h"
#include "canvas.h"

/* Corners of shapes of radius 1, the first one again at the end, and NaN between strokes. */
enum { CORNERS_MOST = 5 };
static const struct {
    int corners;
    plot_xy corner[CORNERS_MOST];
} shapes[] = {
    [PLOT_SQUARE] = {5, {{-.88, -.88}, {.88, -.88}, {.88, .88}, {-.88, .88}, {-.88, -.88}}},
    [PLOT_UP] = {4, {{0, -1.15}, {1, .88}, {-1, .88}, {0, -1.15}}},
    [PLOT_DOWN] = {4, {{0, 1.15}, {1, -.88}, {-1, -.88}, {0, 1.15}}},
    [PLOT_DIAMOND] = {5, {{0, -1.15}, {1.15, 0}, {0, 1.15}, {-1.15, 0}, {0, -1.15}}},
    [PLOT_CROSS] = {5, {{-1, -1}, {1, 1}, {NAN, NAN}, {-1, 1}, {1, -1}}},
    [PLOT_PLUS] = {5, {{-1.15, 0}, {1.15, 0}, {NAN, NAN}, {0, -1.15}, {0, 1.15}}},
};

void plot_markers(plot_canvas *canvas, const plot_xy *centres, int64_t count, plot_shape shape, double radius,
                  plot_paint paint)
{
    plot_xy *points = NULL;
    int64_t drawn = 0;
    if (shape == PLOT_CIRCLE) {
        plot_dots(canvas, centres, count, radius, paint);
        return;
    }
    int status = base_alloc(&points, (size_t)count, (CORNERS_MOST + 1) * sizeof *points, "a plot");
    for (int64_t i = 0; i < count && status == SHOAL_OK; i++) {
        for (int c = 0; c < shapes[shape].corners; c++)
            points[drawn++] = (plot_xy){centres[i].x + radius * shapes[shape].corner[c].x,
                                        centres[i].y + radius * shapes[shape].corner[c].y};
        points[drawn++] = (plot_xy){NAN, NAN};
    }
    canvas->status = canvas->status < 0 ? canvas->status : status;
    plot_line(canvas, points, drawn, paint);
    base_free(&points);
}
