/* src/plot/scatter.c: points where they belong, in the colours of their groups; one by one when they are few, as a
 * density when they are many. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <shoal/error.h>

#include "base/memory.h"
#include "plot/canvas.h"
#include "plot/scatter.h"

enum { MANY = PLOT_SCATTER_MARKS + 1 };

static const plot_xy two_centres[2] = {{1, 10}, {3, 30}};

/* Points on a line from (0, 0), one apart, in groups by turns. */
static plot_scatter line_of(double *places, int32_t *group, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        places[2 * i] = (double)i;
        places[2 * i + 1] = (double)i;
        group[i] = (int32_t)(i % 2);
    }
    return (plot_scatter){.places = places,
                          .group = group,
                          .count = count,
                          .groups = 2,
                          .offset = {0, 0},
                          .factor = {1, 10},
                          .centres = two_centres,
                          .title = "a title",
                          .axis = {"across", "up"}};
}

static plot_canvas *draw(const plot_scatter *what)
{
    plot_canvas *canvas = NULL;
    assert_int_equal(plot_scatter_new(&canvas, what), SHOAL_OK);
    return canvas;
}

static const plot_mark *find_mark(const plot_canvas *canvas, plot_kind kind, int64_t which)
{
    for (int64_t i = 0; i < canvas->marks; i++)
        if (canvas->mark[i].kind == kind && which-- == 0)
            return &canvas->mark[i];
    return NULL;
}

static bool has_text(const plot_canvas *canvas, const char *text)
{
    for (int64_t i = 0; i < canvas->marks; i++)
        if (canvas->mark[i].kind == PLOT_TEXT && strcmp(canvas->mark[i].text, text) == 0)
            return true;
    return false;
}

static void few_points_are_dots(void **state)
{
    double places[10];
    int32_t group[5];
    plot_scatter what = line_of(places, group, 5);
    (void)state;
    group[4] = -1; /* of no group */
    plot_canvas *canvas = draw(&what);
    const plot_mark *first = find_mark(canvas, PLOT_DOTS, 0), *second = find_mark(canvas, PLOT_DOTS, 1),
                    *centre = find_mark(canvas, PLOT_DOTS, 2);
    assert_int_equal(first->count, 2);
    assert_int_equal(first->paint.fill, plot_colour(0));
    assert_int_equal(second->count, 2);
    assert_int_equal(second->paint.fill, plot_colour(1));
    /* Both axes are linear, y is upwards, and the factors count: point i is centre (i, 10 i). */
    assert_true(first->points[0].x < first->points[1].x && first->points[0].y > first->points[1].y);
    assert_true(fabs(centre->points[0].x - second->points[0].x) < 1e-9 &&
                fabs(centre->points[0].y - second->points[0].y) < 1e-9);
    assert_true(has_text(canvas, "a title") && has_text(canvas, "across") && has_text(canvas, "up"));
    assert_true(has_text(canvas, "0: 2 rows") && has_text(canvas, "1: 2 rows"));
    assert_null(find_mark(canvas, PLOT_RASTER, 0));
    plot_canvas_free(&canvas);
}

static void many_points_are_a_density_of_their_mean_colours(void **state)
{
    static double places[2 * MANY];
    static int32_t group[MANY];
    plot_scatter what = line_of(places, group, MANY);
    (void)state;
    for (int64_t i = 0; i < MANY; i++) { /* three places: only group 0, only group 1, both alike */
        places[2 * i] = (double)(i % 3);
        places[2 * i + 1] = 1;
        group[i] = i % 3 == 2 ? (int32_t)(i / 3 % 2) : (int32_t)(i % 3);
    }
    plot_canvas *canvas = draw(&what);
    const plot_mark *raster = find_mark(canvas, PLOT_RASTER, 0);
    assert_non_null(raster);
    plot_axis axis[2];
    plot_axis_init(&axis[0], 0, 3, raster->box.left, raster->box.right); /* the centres count, too */
    plot_axis_init(&axis[1], 10, 30, raster->box.bottom, raster->box.top);
    for (int place = 0; place < 3; place++) {
        const int x = (int)((plot_axis_place(&axis[0], place) - raster->box.left) * PLOT_SCALE),
                  y = (int)((plot_axis_place(&axis[1], 10) - raster->box.top) * PLOT_SCALE);
        const unsigned char *at = raster->pixels + 4 * (y * raster->width + x);
        for (int c = 0; c < 3; c++) {
            const double zero = plot_colour(0) >> (16 - 8 * c) & 0xff, one = plot_colour(1) >> (16 - 8 * c) & 0xff,
                         expected = place == 0   ? zero
                                    : place == 1 ? one
                                                 : (zero + one) / 2;
            assert_true(fabs(at[c] - expected) <= 4);
        }
        assert_true(at[3] > 250);
    }
    int64_t covered = 0;
    for (int64_t i = 0; i < raster->width * raster->height; i++)
        covered += raster->pixels[4 * i + 3] > 0;
    assert_in_range(covered, 3, 3 * 60); /* nothing else */
    plot_canvas_free(&canvas);
}

static void points_and_centres_that_are_nowhere_are_left_out(void **state)
{
    double places[8];
    int32_t group[4];
    const plot_xy centres[2] = {{NAN, 1}, {INFINITY, 2}};
    plot_scatter what = line_of(places, group, 4);
    (void)state;
    places[2] = NAN;
    places[5] = INFINITY;
    what.centres = centres;
    plot_canvas *canvas = draw(&what);
    assert_int_equal(find_mark(canvas, PLOT_DOTS, 0)->count, 1);
    assert_int_equal(find_mark(canvas, PLOT_DOTS, 1)->count, 1);
    assert_int_equal(canvas->status, SHOAL_OK);
    plot_canvas_free(&canvas);
    for (int i = 0; i < 4; i++) /* no point at all */
        group[i] = 7;
    canvas = draw(&what);
    assert_int_equal(canvas->status, SHOAL_OK);
    plot_canvas_free(&canvas);
}

static void many_groups_have_no_legend_and_no_numbers(void **state)
{
    enum { GROUPS = 150 };
    static double places[2 * GROUPS];
    static int32_t group[GROUPS];
    static plot_xy centres[GROUPS];
    plot_scatter what = line_of(places, group, GROUPS);
    (void)state;
    for (int i = 0; i < GROUPS; i++) {
        group[i] = i;
        centres[i] = (plot_xy){i, 10 * i};
    }
    what.groups = GROUPS;
    what.centres = centres;
    plot_canvas *canvas = draw(&what);
    assert_false(has_text(canvas, "0: 1 row"));
    assert_false(has_text(canvas, "149"));
    plot_canvas_free(&canvas);
    what.groups = 60; /* numbers, but no legend */
    canvas = draw(&what);
    assert_false(has_text(canvas, "0: 1 row"));
    assert_true(has_text(canvas, "59"));
    plot_canvas_free(&canvas);
}

static void memory_that_is_not_there_is_told(void **state)
{
    static double places[2 * MANY];
    static int32_t group[MANY];
    (void)state;
    for (int64_t count = 10; count <= MANY; count += MANY - 10) {
        const plot_scatter what = line_of(places, group, count);
        bool whole = false;
        for (int64_t n = 0; !whole; n++) {
            plot_canvas *canvas = NULL;
            base_memory_fail_after(n);
            int status = plot_scatter_new(&canvas, &what);
            base_memory_fail_after(-1);
            assert_true(status == SHOAL_OK || (status == SHOAL_MEMORY && !canvas));
            whole = status == SHOAL_OK && canvas->status == SHOAL_OK;
            plot_canvas_free(&canvas);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_points_are_dots),
        cmocka_unit_test(many_points_are_a_density_of_their_mean_colours),
        cmocka_unit_test(points_and_centres_that_are_nowhere_are_left_out),
        cmocka_unit_test(many_groups_have_no_legend_and_no_numbers),
        cmocka_unit_test(memory_that_is_not_there_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
